"""`toprank demo`: the main job, on data that everybody has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError
from ._common import answer, busy
from ._options import JSON, command, option, split_names

if TYPE_CHECKING:
    from ..contests.base import Contest

PAGE = "report.html"


@command()
def demo(
    html: str | None = option(f"Where to write the page. [default: {PAGE}]"),
    questions: tuple[str, ...] = option("Show both rankings for a question; repeatable.", "--ask", metavar="TEXT"),
    packages: str | None = option("Only these packages, separated by commas. [default: all]", metavar="NAMES"),
    generated: bool = option("Take generated queries instead of the library."),
    queries: int | None = option("How many queries to generate. [default: 400]", type=click.IntRange(4)),
    seed: int | None = option("Same seed, same generated queries. [default: 0]"),
    as_json: bool = JSON,
) -> None:
    """Learn to search the documentation of the running Python's standard library, and write a report page.

    Documents are its public functions, classes and methods; a query is the first sentence of a docstring, which is not
    indexed. Rankers learn to order what BM25 finds and are judged on packages they have not seen. The best of them is
    kept in your cache folder for --ask.

    Examples: toprank demo; toprank demo --ask "read a csv file with a header"
    """
    if not generated and (queries is not None or seed is not None):
        raise InputError("--queries and --seed are for generated queries: add --generated")
    if generated and (questions or packages is not None):
        raise InputError("--generated has no library to search: leave out --ask and --packages, or --generated")
    if questions and html is not None:
        raise InputError("--ask writes no page: leave out --html, or --ask")
    names = None if packages is None else split_names(packages)
    if questions:
        _ask(questions, names, as_json)
    elif generated:
        from ..demo import generated as job

        with busy("generating, training, evaluating"):
            contest = job.run(n_queries=400 if queries is None else queries, random_state=seed or 0)
        _show(contest, html or PAGE, as_json, {})
    else:
        with busy("loading"):
            from ..demo.job import run
        result = run(names)
        facts = {"library": result.facts, "best_on_validation": result.best}
        _show(result.contest, html or PAGE, as_json, facts)


def _ask(questions: tuple[str, ...], packages: list[str] | None, as_json: bool) -> None:
    with busy("loading"):
        from ..demo.ask import ask
    found = ask(questions, packages)
    answer(as_json, [each.to_dict() for each in found], "\n\n".join(map(str, found)))


def _show(contest: Contest, html: str, as_json: bool, facts: dict[str, Any]) -> None:
    from ..report.page import write_report

    write_report(contest, html)
    means = {entrant.name: dict(entrant.report.mean) for entrant in contest.entrants}
    values = {**facts, "means": means, "comparison": contest.comparison.to_dict(), "html": html}
    answer(as_json, values, *contest.notes, "", contest.tables()[0], f"\nwrote {html}")
