"""What a contest is held with and what comes of it, fold by fold."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from .._checkpoint import Checkpoint
from .._progress import steps
from .._typing import Floats
from ..certificates.base import Certificate
from ..data.dataset import QueryDataset
from ..data.splits import Fold
from ..errors import InputError
from ..measures.base import Measure
from ..rankers.base import Ranker
from ..rankers.certifying import not_learned_from
from ..statistics.evaluation import grouped_scores
from .baselines import FEATURE, ORDER, best_feature, feature_scores, given_order
from .entries import Entries
from .estimators import Guest
from .parts import Notes, Parts, ReadWhenNeeded, checked, pool
from .repeats import resampled
from .search import Failure, Search, Winner, curves, refitted
from .settings import Candidate

MOST_CERTIFIED = 20_000_000
"""Values in X above which no certificates are computed: some theorems play all rounds again."""


@dataclass(frozen=True)
class Plan:
    """How settings are searched for, and what becomes of the winners.

    Parameters
    ----------
    target : the measure that settings are chosen by.
    budget : settings of each contestant beyond its defaults; None tries all.
    seconds : processor seconds of learning; None is no limit.
    refit : whether winners learn once more, from training and validation queries.
    repeats : resamples of the training queries that winners learn from.
    random_state : the seed of everything that is drawn.
    """

    target: Measure
    budget: int | None = None
    seconds: float | None = None
    refit: bool = False
    repeats: int = 0
    random_state: int = 0


@dataclass
class Held:
    """Who takes part, how, and what comes of the folds, one after the other."""

    entries: Entries
    plan: Plan
    tests: list[QueryDataset] = field(default_factory=list)
    scores: dict[str, list[Floats]] = field(default_factory=dict)
    winners: dict[str, list[Winner]] = field(default_factory=dict)
    features: list[dict[str, Any]] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    curves: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    certificates: dict[str, tuple[Certificate, ...]] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)
    by_clicks: bool = False
    """Whether validation queries were clicks, and settings were chosen by their value."""
    unseen: dict[str, bool] = field(default_factory=dict)
    """Of who learned elsewhere: whether its marks say that it learned from none of the test queries, if they say."""
    uninformative: int = 0
    """Training queries with one grade only, in the fold with the most of them."""
    repeated: dict[str, list[Floats]] = field(default_factory=dict)
    """Test scores (resample × seed × document) of each learner, fold by fold."""

    @property
    def candidates(self) -> list[Candidate]:
        """Who learns here."""
        return self.entries.candidates


def run_folds(
    result: Held,
    folds: Sequence[Fold | Parts] | ReadWhenNeeded,
    state: str | os.PathLike[str] | None,
    progress: bool | None,
) -> None:
    """Hold the contest fold by fold, and note what comes of it."""
    if len(folds) == 0:
        raise InputError("there are no folds")
    plan = result.plan
    seconds, spent = inf if plan.seconds is None else float(plan.seconds), 0.0
    levels = None if plan.budget is None else plan.budget + 1
    each = {c.name: len(folds) * len(c.rankers[:levels]) for c in result.candidates}
    with steps(each, most=plan.seconds, show=progress) as tell:
        kept = Checkpoint(None if state is None else Path(state))
        search = Search(plan.target, result.candidates, kept, tell, levels)
        for number in range(len(folds)):
            where = f"fold {number + 1}/{len(folds)}, " if len(folds) > 1 else ""
            tell(f"{where}reading")
            train, valid, test = checked(folds[number], plan.random_state, result.notes)
            share = max(seconds - spent, 0.0) / (len(folds) - number)
            result.by_clicks |= valid.doc_weight is not None
            found = search.run(train, valid, share, where) if result.candidates else {}
            if plan.refit:
                tell(f"{where}fitting the winners again")
                both, _ = pool([train, valid])
                found = {who: won if isinstance(won, Failure) else refitted(won, both) for who, won in found.items()}
                train = both
            spent += _add(result, found, train, test)
            for who, won in found.items() if plan.repeats else ():
                if not isinstance(won, Failure):
                    tell(f"{where}{who}, again and again")
                    scores = resampled(won.ranker, train, test, plan.repeats, plan.random_state)
                    result.repeated.setdefault(who, []).append(scores)


def _add(result: Held, found: Mapping[str, Any], train: QueryDataset, test: QueryDataset) -> float:
    """Note the result of a fold, learned from `train`, and return the processor seconds it took."""
    first, spent = not result.tests, 0.0
    result.tests.append(test)
    result.uninformative = max(result.uninformative, int((~train.informative).sum()))
    index, sign = best_feature(train, result.plan.target)
    name = str(index + 1) if train.feature_names is None else train.feature_names[index]
    result.features.append({"feature": name, "order": "descending" if sign > 0 else "ascending"})
    scores = {ORDER: given_order(test), FEATURE: feature_scores(test, index, sign)}
    for who, won in found.items():
        if isinstance(won, Failure):
            result.left_out.setdefault(who, won.reason)
            continue
        spent += won.processor
        scores[who] = won.ranker.predict_grouped(test)
        result.winners.setdefault(who, []).append(won)
        if first:
            result.curves[who] = curves(won.ranker)
            result.certificates[who] = _certificates(won.ranker, train)
    for who, model in result.entries.made.items():
        scores[who] = _made_elsewhere(result, who, model, test)
    for who, values in scores.items():
        result.scores.setdefault(who, []).append(values)
    return spent


def _made_elsewhere(result: Held, who: str, model: Any, test: QueryDataset) -> Floats:
    """Return the scores of a contestant that did not learn here, and note what is known of how it learned."""
    if isinstance(model, Ranker):
        known = not_learned_from(model.learned_from_, test)[0]
        if known.verified is not None:
            result.unseen[who] = known.verified and result.unseen.get(who, True)
        if known.verified is False:
            result.notes.warned.append(f"{who} learned from test queries, which flatter it: {known.found}.")
    try:
        return np.asarray(grouped_scores(model, test), dtype=np.float64)
    except InputError as error:
        raise InputError(f"{who}: {error}") from None


def _certificates(ranker: Ranker | Guest, train: QueryDataset) -> tuple[Certificate, ...]:
    if isinstance(ranker, Guest) or train.row_values * train.n_docs > MOST_CERTIFIED:
        return ()
    try:
        return tuple(ranker.certify(train))
    except InputError:  # no theorem about this measure or this way of scaling
        return ()
