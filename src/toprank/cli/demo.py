"""`toprank demo`: the main job, on data that everybody has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError
from ._common import busy, json_option, listed, print_json, show

if TYPE_CHECKING:
    from ..contests.base import Contest

PAGE = "report.html"


@click.command()
@click.option("--html", help=f"Where to write the page. [default: {PAGE}]")
@click.option(
    "--ask", "questions", multiple=True, metavar="TEXT", help="Show both rankings for a question; repeatable."
)
@click.option("--packages", metavar="NAMES", help="Only these packages, separated by commas. [default: all]")
@click.option("--generated", is_flag=True, help="Generated queries in place of the library.")
@click.option("--queries", type=click.IntRange(4), help="How many queries to generate. [default: 400]")
@click.option("--seed", type=int, help="Same seed, same generated queries. [default: 0]")
@json_option
def demo(
    html: str | None,
    questions: tuple[str, ...],
    packages: str | None,
    generated: bool,
    queries: int | None,
    seed: int | None,
    as_json: bool,
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
    names = None if packages is None else listed(packages)
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
    answers = ask(questions, packages)
    if as_json:
        print_json([answer.to_dict() for answer in answers])
        return
    for number, answer in enumerate(answers):
        show("\n" * (number > 0) + str(answer))


def _show(contest: Contest, html: str, as_json: bool, facts: dict[str, Any]) -> None:
    from ..report.page import write_report

    write_report(contest, html)
    if as_json:
        means = {entrant.name: dict(entrant.report.mean) for entrant in contest.entrants}
        print_json({**facts, "means": means, "comparison": contest.comparison.to_dict(), "html": html})
        return
    for note in contest.notes:
        show(note)
    show("")
    show(contest.tables()[0])
    show(f"\nwrote {html}")
