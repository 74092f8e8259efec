"""`toprank plan`: how many queries it takes to see a difference."""

from __future__ import annotations

import click

from ._common import convention_option, json_option, listed, print_json, show


@click.command()
@click.argument("a")
@click.argument("b")
@click.argument("qrels")
@click.option("--measure", "measures", multiple=True, help="Repeatable, or by commas. [default: ndcg@10, map]")
@convention_option
@click.option("--difference", type=float, metavar="D", help="What you want to see. [default: the difference observed]")
@click.option("--power", default=0.8, show_default=True, help="With what chance.")
@click.option("--alpha", default=0.05, show_default=True, help="The level of the test.")
@click.option("--comparisons", default=1, show_default=True, help="How many tests there will be at once.")
@json_option
def plan(
    a: str,
    b: str,
    qrels: str,
    measures: tuple[str, ...],
    convention: str | None,
    difference: float | None,
    power: float,
    alpha: float,
    comparisons: int,
    as_json: bool,
) -> None:
    """Say what the judged queries at hand can show of two TREC runs, and how many queries would show a difference.

    Example: toprank plan bm25.run mine.run qrels.txt --difference 0.01
    """
    from ..data.trec import read_qrels, read_run
    from ..power import queries_needed
    from ..trec_evaluation import evaluate_run

    names = listed(*measures) or ["ndcg@10", "map"]
    judged = read_qrels(qrels)
    one, other = (evaluate_run(read_run(path), judged, names, convention or "trec_eval") for path in (a, b))
    found = queries_needed(one, other, difference=difference, power=power, alpha=alpha, comparisons=comparisons)
    if as_json:
        print_json(found.to_dict())
    else:
        show(found)
