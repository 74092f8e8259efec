"""What a reader of a contest must know: how it was held, what was left out and why, what casts doubt on it."""

from __future__ import annotations

from typing import Any

from .base import Entrant
from .estimators import Guest
from .held import Held
from .search import Winner
from .settings import Candidate


def notes_of(result: Held, kept: list[Candidate], entrants: list[Entrant]) -> list[str]:
    """Return how settings were chosen and what is judged, and after the warnings what else a reader must know."""
    many = len(result.tests) > 1
    each = " of each fold" if many else ""
    unseen = (
        "the test queries took no part in any choice" if result.notes.clean else "test queries took part, see below"
    )
    learned = (
        "With these settings they learned once more, from training and validation queries together; how many rounds "
        "is as chosen before"
        if result.plan.refit
        else "They learned from the training queries alone and were not fitted again with the validation queries"
    )
    notes = [
        f"Settings were chosen by {_chosen_by(result)} on the validation queries{each}, the best feature on the "
        f"training queries; {unseen}. {learned}.",
        "Tests and intervals are about these fitted models on queries like these, not about the learners: another "
        "training sample or seed would give other models.",
    ]
    if many:
        notes.append(
            "Means are over the test queries of all folds together, not means of fold means; learning curves and "
            "certificates about learning are those of fold 1."
        )
    notes += [*warnings_of(result), *dict.fromkeys(result.notes.said)]
    cut = [f"{e.name} {e.tried} of {e.planned}" for e in entrants if e.tried < e.planned]
    if cut:
        notes.append(f"{_limit(result)} ended the search early: {', '.join(cut)} settings.")
    if result.plan.seconds is not None:
        notes.append(
            f"The search had {result.plan.seconds:g} processor seconds of learning: another machine may try other "
            "settings, and choose others with the same seed."
        )
    notes += [*_fewer_settings(kept), *_made_elsewhere(result)]
    notes += [note for c in kept for note in c.notes]
    notes += [
        f"{name} does not repeat bit by bit: done again for this resumed run, it reached another validation value."
        for name, winners in result.winners.items()
        if not all(winner.repeats for winner in winners)
    ]
    if result.uninformative:
        where = "Up to " if len(result.tests) > 1 else ""
        notes.append(
            f"{where}{result.uninformative} training queries{each} have one grade only and are not informative."
        )
    return notes


def _limit(result: Held) -> str:
    """Return what ended the search, or may have, in words."""
    given = [] if result.plan.budget is None else [f"budget={result.plan.budget}"]
    given += [] if result.plan.seconds is None else [f"seconds={result.plan.seconds:g}"]
    return " or ".join(given)


def _chosen_by(result: Held) -> str:
    if not result.by_clicks:
        return result.plan.target.name
    cut = "" if result.plan.target.k is None else f" in the top {result.plan.target.k}"
    return f"the value of held-out clicks (mean discount of a click{cut}, each weighted by 1/p)"


def _fewer_settings(kept: list[Candidate]) -> list[str]:
    """Say who had fewer settings to choose among than others, and why."""
    most = max((sum(c.sizes) for c in kept), default=0)
    fewer: dict[str, list[str]] = {}
    for c in kept:
        if sum(c.sizes) < most:
            fewer.setdefault(c.why_no_more, []).append(f"{c.name} {sum(c.sizes)}")
    if not fewer:
        return []
    named = ", ".join(c.name for c in kept if sum(c.sizes) == most)
    told = "; ".join(f"{', '.join(names)} ({why})" for why, names in fewer.items())
    return [f"Not everybody had as many settings to choose among as {named} with {most}: {told}."]


def _made_elsewhere(result: Held) -> list[str]:
    """Say who did not learn here, and what is known of what it learned from."""
    others = [name for name in result.entries.made if name not in result.unseen]
    if not others:
        return []
    return [
        f"{', '.join(others)} took part as given and did not learn here: nothing tells what it learned from or was "
        "chosen by, so that the test queries were not among it is taken on trust."
    ]


def warnings_of(result: Held) -> list[str]:
    """Return what casts doubt on a result."""
    cut = {name: n for name, winners in result.winners.items() if (n := sum(winner.cut for winner in winners))}
    fits = [(name, _solution(winner)) for name, winners in result.winners.items() for winner in winners]
    unconverged = [(name, found.message) for name, found in fits if found and found.falls_short]
    capped = [name for name, winners in result.winners.items() if any(winner.capped for winner in winners)]
    return [
        *dict.fromkeys(result.notes.warned),
        *(f"{name} was left out: {reason}." for name, reason in result.left_out.items()),
        *dict.fromkeys(f"{name} did not converge: {message}." for name, message in unconverged),
        *(f"{name}: {n} of its settings ran out of time, its share of the seconds." for name, n in cut.items()),
        *(f"{name} was still rising when it reached its number of rounds: more might do better." for name in capped),
    ]


def _solution(winner: Winner) -> Any:
    """Return what a solver said of its work, where a ranker has one."""
    return None if isinstance(winner.ranker, Guest) else vars(winner.ranker).get("solution_")
