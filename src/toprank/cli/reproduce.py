"""`toprank reproduce`: a paper, figure by figure, with a verdict on each of its claims."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from .._progress import each_busy
from ._common import check_outputs, print_json, show
from ._options import JSON, command, option, split_names


@command()
def reproduce(
    paper: str | None,
    figure: str | None,
    only_names: bool = option("Name the exhibits and compute nothing.", "--list"),
    out: str = option(
        "Folder for the data, tables and figures; each paper gets a folder inside it.", default="exhibits"
    ),
    html: str | None = option("Also one page with all of it.  [default: OUT/PAPER.html]", is_flag=False, flag_value=""),
    claims: str | None = option("Write the verdicts of all exhibits that OUT holds, as Markdown.", metavar="FILE"),
    data: str | None = option("A file, folder or data set name, for exhibits on real data."),
    tasks: str | None = option("Which tasks, where an exhibit has several.", metavar="TASK,TASK"),
    seeds: int | None = option("How many random splits or streams."),
    passes: int | None = option("How many passes over the data at most."),
    scale: Literal["none", "running", "query"] | None = option("How online learners scale features."),
    max_rows: int | None = option("Rows of each task that take part."),
    trees: int | None = option("Clicks that boosted trees learn from in all seeds together; 0 leaves them out."),
    weak: float | None = option(
        "Judged queries that a ranker learns from before it collects clicks: a share, or a number."
    ),
    as_json: bool = JSON,
) -> None:
    """Recompute a paper's figures and tables; an interrupted run goes on where it was.

    Without PAPER, the papers and exhibits are listed; without FIGURE, all of a paper's are computed.

    Example: toprank reproduce online-perceptrons fig1 --out exhibits
    """
    from .._files import replacing
    from ..papers import reproduce as job

    check_outputs([claims, html or None], [data])
    if claims is not None:
        text = job.replication(out)
        with replacing(claims) as draft:
            Path(draft).write_text(text, encoding="utf-8")
        show(f"wrote {claims}")
        return
    if paper is None or only_names or figure == "list":
        names = {each: job.figures(each) for each in ([paper] if paper else job.papers())}
        if as_json:
            print_json(names if paper is None else names[paper])
        else:
            show("\n\n".join("\n".join([each, *map(_line, found.items())]) for each, found in names.items()))
        return
    chosen = {
        "data": data,
        "tasks": None if tasks is None else split_names(tasks),
        "seeds": seeds,
        "passes": passes,
        "scale": scale,
        "max_rows": max_rows,
        "trees": trees,
        "weak": weak,
    }
    made = []
    for exhibit, files in each_busy(job.reproduce(paper, figure, out=out, **chosen), f"computing {paper}"):
        made.append(exhibit)
        if as_json:
            about = {"name": exhibit.name, "files": [str(file) for file in files], "notes": list(exhibit.notes)}
            print_json({**about, "claims": [vars(found) for found in exhibit.claims]})
        else:
            show(f"{exhibit}\n\nwrote {', '.join(map(str, files))}\n")
    if html is not None:
        from ..papers.page import write_page

        page = html or str(Path(out) / f"{paper}.html")
        write_page(paper, made, page)
        if not as_json:
            show(f"wrote {page}")


def _line(exhibit: tuple[str, str]) -> str:
    from textwrap import wrap

    name, about = exhibit
    first, *rest = wrap(about, 56) or [""]
    return "\n".join([f"  {name:<20} {first}", *(f"  {'':<20} {line}" for line in rest)])
