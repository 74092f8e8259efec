"""`toprank reproduce`: a paper, figure by figure, with a verdict on each of its claims."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .._progress import each_busy
from ._common import json_option, print_json, show


@click.command()
@click.argument("paper", required=False)
@click.argument("figure", required=False)
@click.option("--list", "listed", is_flag=True, help="Name the exhibits and compute nothing.")
@click.option(
    "--out",
    default="exhibits",
    show_default=True,
    help="Folder for the data, tables and figures; each paper gets a folder inside it.",
)
@click.option("--html", is_flag=False, flag_value="", help="Also one page with all of it.  [default: OUT/PAPER.html]")
@click.option("--claims", metavar="FILE", help="Write the verdicts of all exhibits that OUT holds, as Markdown.")
@click.option("--data", help="A file, folder or data set name, for exhibits on real data.")
@click.option("--tasks", metavar="TASK,TASK", help="Which tasks, where an exhibit has several.")
@click.option("--seeds", type=int, help="How many random splits or streams.")
@click.option("--passes", type=int, help="How many passes over the data at most.")
@click.option("--scale", type=click.Choice(["none", "running", "query"]), help="How online learners scale features.")
@click.option("--max-rows", type=int, help="Rows of each task that take part.")
@json_option
def reproduce(
    paper: str | None,
    figure: str | None,
    listed: bool,
    out: str,
    html: str | None,
    claims: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Recompute a paper's figures and tables; an interrupted run goes on where it was.

    Without PAPER, the papers and exhibits are listed; without FIGURE, all of a paper's are computed.

    Example: toprank reproduce online-perceptrons fig1 --out exhibits
    """
    from .._files import replacing
    from ..papers import reproduce as job

    if claims is not None:
        text = job.replication(out)
        with replacing(claims) as draft:
            Path(draft).write_text(text, encoding="utf-8")
        show(f"wrote {claims}")
        return
    if paper is None or listed or figure == "list":
        names = {each: job.figures(each) for each in ([paper] if paper else job.papers())}
        if as_json:
            print_json(names if paper is None else names[paper])
        else:
            show("\n\n".join("\n".join([each, *map(_line, found.items())]) for each, found in names.items()))
        return
    if options["tasks"] is not None:
        options["tasks"] = [name.strip() for name in options["tasks"].split(",")]
    made = []
    for exhibit, files in each_busy(job.reproduce(paper, figure, out=out, **options), f"computing {paper}"):
        made.append(exhibit)
        if as_json:
            told = {"name": exhibit.name, "files": [str(file) for file in files], "notes": list(exhibit.notes)}
            print_json({**told, "claims": [vars(found) for found in exhibit.claims]})
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
