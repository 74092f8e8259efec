"""`toprank judge`: what a machine's grades are worth beside those of people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..errors import InputError
from ._common import answer, busy, check_outputs, check_writable, show
from ._options import CONVENTION, JSON, argument, command, option

if TYPE_CHECKING:
    from ..data.trec import Run
    from ..judging.report import JudgeReport

TARGET: Any = option(
    "What the bounds are about: these queries, those of people and of the machine together, or new ones like them.  "
    "[default: these; new where people judged all]",
)
UNJUDGED: Any = option(
    "Documents that only one of both judged: refuse them, or count them as not relevant for the other.",
    default="refuse",
)
BOUNDS_FROM: Any = option(
    "Whose judgements bounds rest on; say it before you look.  [default: both from 50 queries on that people judged, "
    "200 for differences; for new queries from 100, and 10,000 of the machine]",
)
JUDGE_NAME: Any = option("What the machine is called.  [default: from the name of its file]", metavar="NAME")


@command()
def judge(
    human: str,
    machine: str,
    runs: tuple[str, ...] = argument(metavar="[RUN]..."),
    measure: str = option("The measure that bias and bounds are about.", default="ndcg@10"),
    convention: str | None = CONVENTION,
    name: str | None = JUDGE_NAME,
    baseline: str | None = option("Hold the others against this run. [default: the machine's best]", metavar="NAME"),
    confidence: float = option("Probability with which all bounds hold.", default=0.95),
    target: Literal["these", "new"] | None = TARGET,
    bounds_from: Literal["both", "people"] | None = BOUNDS_FROM,
    unjudged: Literal["refuse", "zero"] = UNJUDGED,
    seed: int = option("Seed of the resampling, and of the queries to judge next.", default=0),
    html: str | None = option("Write a page.", metavar="FILE"),
    as_json: bool = JSON,
) -> None:
    """Say what a machine's judgements are worth: agreement with people, bias, favourites, and bounds from both.

    HUMAN and MACHINE are judgements in the format of TREC; the machine judged every query that people did, and perhaps
    others. With runs, the measure is taken by both: how much higher the machine puts each system, whether it favours
    one, how many more queries people would have to judge, and bounds on what people would say that hold whatever the
    machine says, if the queries of people are a random sample of all.

    Examples: toprank judge human.qrels gpt4.qrels; toprank judge human.qrels gpt4.qrels *.run --html judge.html
    """
    check_writable(html)
    check_outputs([html], [human, machine, *runs])
    found = judged(
        human,
        machine,
        runs,
        measure,
        convention=convention or "trec_eval",
        name=name,
        baseline=baseline,
        confidence=confidence,
        target=target,
        with_machine=None if bounds_from is None else bounds_from == "both",
        unjudged=unjudged,
        random_state=seed,
    )
    if html is not None:
        from ..report.judging import write_page

        write_page(found, html)
    answer(as_json, {**found.to_dict(), "html": html}, found)
    if html is not None and not as_json:
        show(f"\nwrote {html}")


def judged(
    human: str, machine: str, runs: tuple[str, ...], measure: str, *, name: str | None, **options: Any
) -> JudgeReport:
    """Read judgements and runs, and report on them."""
    from ..data.trec import read_qrels
    from ..judging.report import judge as report_on

    with busy("reading judgements and runs"):
        given = read_runs(runs)
        people, grades = read_qrels(human), read_qrels(machine)
    with busy("comparing the judges"):
        return report_on(people, grades, given, measure, judge_name=name or judge_name(machine), **options)


def read_runs(files: tuple[str, ...]) -> dict[str, Run]:
    """Read runs, each named after its file; by its whole path where two files share a name."""
    from ..data.trec import read_run

    stems = [Path(file).name.removesuffix(".gz").rsplit(".", 1)[0] for file in files]
    names = files if len(set(stems)) < len(stems) else tuple(stems)
    if len(set(names)) < len(names):
        raise InputError("a run is named twice: give each file once")
    return {name: read_run(file) for name, file in zip(names, files, strict=True)}


def judge_name(path: str) -> str:
    """Return what a file of judgements says of who made it: `qrels.gpt4.txt` and `gpt4.qrels` are both gpt4.

    >>> judge_name("data/qrels.gpt4.txt"), judge_name("gpt4.qrels.gz"), judge_name("-")
    ('gpt4', 'gpt4', 'the machine')
    """
    words = [word for word in Path(path).name.split(".") if word not in ("", "-", "qrels", "txt", "gz", "xz", "zst")]
    return words[0] if words else "the machine"
