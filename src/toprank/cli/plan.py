"""`toprank plan`: how many queries it takes to see a difference."""

from __future__ import annotations

from ._common import answer
from ._options import CONVENTION, JSON, MEASURES, command, option, split_names


@command()
def plan(
    a: str,
    b: str,
    qrels: str,
    measures: tuple[str, ...] = MEASURES,
    convention: str | None = CONVENTION,
    difference: float | None = option(
        "The difference that the test should show. [default: the one that is observed]", metavar="D"
    ),
    power: float = option("How likely the test should show it.", default=0.8),
    alpha: float = option("The level of the test: how likely it shows a difference that is not there.", default=0.05),
    comparisons: int = option("How many differences will be tested together.", default=1),
    as_json: bool = JSON,
) -> None:
    """Say what the judged queries at hand can show of two TREC runs, and how many queries would show a difference.

    Example: toprank plan bm25.run mine.run qrels.txt --difference 0.01
    """
    from ..data.trec import read_qrels, read_run
    from ..statistics.power import queries_needed
    from ..statistics.trec_evaluation import evaluate_run

    names = split_names(*measures) or ["ndcg@10", "map"]
    judged = read_qrels(qrels)
    one, other = (evaluate_run(read_run(path), judged, names, convention or "trec_eval") for path in (a, b))
    found = queries_needed(one, other, difference=difference, power=power, alpha=alpha, comparisons=comparisons)
    answer(as_json, found.to_dict(), found)
