"""`toprank.contest`: hold a contest between rankers on judged queries."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, get_args

import numpy as np

from .._checkpoint import Checkpoint
from .._paired_tests import Test
from .._progress import steps
from .._typing import Floats
from ..certificates.base import Certificate
from ..clicks.evaluation import CLICK_VALUE
from ..comparison import Comparison, compare
from ..data import validation
from ..data.dataset import QueryDataset
from ..data.preparation import words_of
from ..data.splits import Fold
from ..errors import InputError
from ..evaluation import Report, evaluate_grouped
from ..fusion import NAMES, Method, fuse_scores
from ..measures.base import Measure
from ..measures.base import measure as parse
from ..model.missing import Missing
from ..rankers.base import Ranker
from .base import Contest, Entrant
from .baselines import FEATURE, ORDER, best_feature, feature_scores, given_order
from .from_reports import finished
from .parts import Notes, Parts, ReadWhenNeeded, checked, folds_of, pool
from .repeats import Repeats, compare_learners, measured, resampled
from .search import Failure, Search, Winner, curves, entrant, refitted
from .settings import DEFAULT_RANKERS, Candidate, candidate

Rankers = Sequence[str | Ranker] | Mapping[str, str | Ranker]

MOST_CERTIFIED = 20_000_000
"""Values in X above which no certificates are computed: some theorems play all rounds again."""


def contest(
    train: QueryDataset | Iterable[Fold | Parts],
    test: QueryDataset | None = None,
    valid: QueryDataset | None = None,
    rankers: Rankers = DEFAULT_RANKERS,
    measure: str | Measure = "ndcg@10",
    measures: Sequence[str | Measure] = ("ndcg@10", "map"),
    *,
    convention: str = "standard",
    budget: int | None = None,
    seconds: float | None = None,
    random_state: int = 0,
    missing: Missing = "error",
    prepare: str | Sequence[str] = "",
    refit: bool = False,
    fusion: Sequence[Method] = (),
    repeats: int = 0,
    comparison: Test = "permutation",
    baseline: str | None = None,
    margin: float | None = None,
    n_resamples: int | None = None,
    state: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    title: str = "Contest",
) -> Contest:
    """Fit rankers with settings chosen on validation queries, and compare them on test queries that no choice saw.

    `train` is a data set with `test` beside it, or the folds of a collection (`read_folds`): the test queries of all
    folds are then judged together. Without `valid`, a quarter of the training queries is held out. `rankers` are names
    (`contests.settings` says what is tried for each; "LightGBM" and "XGBoost" are known too) or rankers, which stay as
    they are, and may have names of your own in a dictionary. The best single feature of the training part and the
    order as given take part as baselines; so do fusions of all that was learned (`fusion`: "rrf", "combsum",
    "combmnz"). With `prepare` ("log,query" or ["log", "query"]: the signed logarithm, then scaling within each query)
    every setting of a named ranker is tried with prepared features and with features as they are. With `refit` the
    winners learn once more, from training and validation queries together. With `repeats` the chosen settings learn
    from so many resamples of the training queries, with two seeds each: the contest then also says which learner is
    better, and how much of a difference is the sample, the seed and the queries.

    `measure` chooses settings, `measures` are reported. `budget` is how many settings of each ranker are tried on a
    fold beyond its defaults (a path of C is one): 0 tries the defaults alone, None all that `contests.settings` lists.
    The same seed then gives the same numbers on any machine, however busy. `seconds`, which are processor seconds of
    learning, give that up: when they are spent, no further round of settings is started, though everybody's defaults
    are always tried; within a round everybody's setting has the same share of the time that is left, and is stopped
    when it is over. Where not everything was tried, the tables and the page say so first (`cut_short`).

    `baseline` names the one that the others are compared with; None compares every pair; `margin` and `n_resamples`
    are as in `compare`. `state` is a folder that keeps finished settings, so that an interrupted contest goes on where
    it was, with the same result. A ranker that cannot learn from the data is left out; `warnings` and `notes` say why.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=60, random_state=0)
    >>> result = tr.contest(data[:40], data[40:], rankers=["RankSVM", tr.ListNet(alpha=0.1)], budget=0)
    >>> sorted(entrant.name for entrant in result.entrants)
    ['ListNet', 'RankSVM', 'best feature', 'order as given']
    >>> result.entrant("RankSVM").params, result.entrant("RankSVM").tried
    (({'C': 1.0},), 1)
    """
    target = parse(measure, convention=convention)
    named = dict.fromkeys(parse(m, convention=convention) for m in measures)
    wanted = [target, *(m for m in named if str(m) != str(target))]
    steps = ",".join(words_of(prepare))
    entries = candidates(rankers, target, missing, random_state, steps)
    validation.check_choice(get_args(Test), test=comparison)
    if n_resamples is not None:
        validation.check_count(n_resamples=n_resamples)
    if budget is not None and not (validation.is_whole(budget) and budget >= 0):
        raise InputError(
            f"budget must be a whole number of at least 0, the settings beyond the defaults, got {budget!r}; "
            "seconds= limits the time"
        )
    if seconds is not None:
        validation.check_positive(seconds=seconds)
    for method in fusion:
        validation.check_choice(get_args(Method), fusion=method)
    fused = {NAMES[method]: method for method in fusion}
    if baseline is not None:
        validation.check_choice((*(c.name for c in entries), *fused, FEATURE, ORDER), baseline=baseline)
    if margin is not None:
        validation.check_positive(margin=margin)
    if repeats:
        validation.check_count(repeats=repeats)
        if repeats < 2:
            raise InputError("repeats must be at least 2: one says nothing about spread")
    folds = folds_of(train, test, valid)
    result = _Result(entries, target, budget, seconds, refit)
    _run_folds(result, folds, random_state, state, progress, repeats)
    for name, method in fused.items():
        if len(result.winners) > 1:
            result.scores[name] = [
                fuse_scores([result.scores[who][fold] for who in result.winners], part.ptr, method)
                for fold, part in enumerate(result.tests)
            ]
    significance = partial(
        compare, test=comparison, baseline=baseline, margin=margin, n_resamples=n_resamples, random_state=random_state
    )
    judged = _judge(result, wanted, convention, significance, baseline, title)
    return judged if len(result.repeated) < 2 else replace(judged, repeats=_repeats(result, judged))


def candidates(
    rankers: Rankers, measure: Measure, missing: Missing, random_state: int, prepare: str = ""
) -> list[Candidate]:
    """Return who takes part, under distinct names."""
    named = list(rankers.items()) if isinstance(rankers, Mapping) else [(None, ranker) for ranker in rankers]
    result: list[Candidate] = []
    for name, ranker in named:
        if isinstance(ranker, Ranker):
            found = Candidate(type(ranker).__name__, (ranker,))
        elif isinstance(ranker, str):
            found = candidate(ranker, measure, missing, random_state, prepare)
        else:
            raise InputError(f"rankers must be names or rankers of toprank, got {ranker!r}")
        found = found if name is None else replace(found, name=str(name))
        taken = {one.name for one in result}
        if name is None and isinstance(ranker, Ranker):
            again = (f"{found.name} {n}" if n > 1 else found.name for n in range(1, len(named) + 1))
            found = replace(found, name=next(one for one in again if one not in taken))
        if found.name in taken or found.name in (FEATURE, ORDER, *NAMES.values()):
            raise InputError(f"two contestants are called {found.name!r}: names must differ")
        result.append(found)
    if not result:
        raise InputError("rankers is empty: name at least one, e.g. 'ListNet'")
    return result


@dataclass
class _Result:
    """Who takes part, how, and what comes of the folds, one after the other."""

    entries: list[Candidate]
    target: Measure
    """What settings are chosen by."""
    budget: int | None
    seconds: float | None
    refit: bool
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
    uninformative: int = 0
    """Training queries with one grade only, in the fold with the most of them."""
    repeated: dict[str, list[Floats]] = field(default_factory=dict)
    """Test scores (resample × seed × document) of each learner, fold by fold."""


def _run_folds(
    result: _Result,
    folds: Sequence[Fold | Parts] | ReadWhenNeeded,
    random_state: int,
    state: str | os.PathLike[str] | None,
    progress: bool | None,
    repeats: int,
) -> None:
    """Hold the contest fold by fold, and note what comes of it."""
    if len(folds) == 0:
        raise InputError("there are no folds")
    seconds, spent = inf if result.seconds is None else float(result.seconds), 0.0
    levels = None if result.budget is None else result.budget + 1
    plan = {c.name: len(folds) * len(c.rankers[:levels]) for c in result.entries}
    with steps(plan, most=result.seconds, show=progress) as tell:
        kept = Checkpoint(None if state is None else Path(state))
        search = Search(result.target, result.entries, kept, tell, levels)
        for number in range(len(folds)):
            where = f"fold {number + 1}/{len(folds)}, " if len(folds) > 1 else ""
            tell(f"{where}reading")
            train, valid, test = checked(folds[number], random_state, result.notes)
            share = max(seconds - spent, 0.0) / (len(folds) - number)
            result.by_clicks |= valid.doc_weight is not None
            found = search.run(train, valid, share, where)
            if result.refit:
                tell(f"{where}fitting the winners again")
                both, _ = pool([train, valid])
                found = {who: won if isinstance(won, Failure) else refitted(won, both) for who, won in found.items()}
                train = both
            spent += _add(result, found, train, test)
            for who, won in found.items() if repeats else ():
                if not isinstance(won, Failure):
                    tell(f"{where}{who}, again and again")
                    scores = resampled(won.ranker, train, test, repeats, random_state)
                    result.repeated.setdefault(who, []).append(scores)


def _add(result: _Result, found: Mapping[str, Any], train: QueryDataset, test: QueryDataset) -> float:
    """Note the result of a fold, learned from `train`, and return the processor seconds it took."""
    first, spent = not result.tests, 0.0
    result.tests.append(test)
    result.uninformative = max(result.uninformative, int((~train.informative).sum()))
    index, sign = best_feature(train, result.target)
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
    for who, values in scores.items():
        result.scores.setdefault(who, []).append(values)
    return spent


def _certificates(ranker: Ranker, train: QueryDataset) -> tuple[Certificate, ...]:
    if train.row_values * train.n_docs > MOST_CERTIFIED:
        return ()
    try:
        return tuple(ranker.certify(train))
    except InputError:  # no theorem about this measure or this way of scaling
        return ()


def _judge(
    result: _Result,
    measures: list[Measure],
    convention: str,
    significance: Callable[[Mapping[str, Report]], Comparison],
    baseline: str | None,
    title: str,
) -> Contest:
    kept = [c for c in result.entries if c.name not in result.left_out]
    if not kept:
        name, reason = next(iter(result.left_out.items()))
        raise InputError(f"nobody could learn from these data: {name}: {reason}")
    if baseline in result.left_out:
        raise InputError(f"the baseline {baseline} was left out: {result.left_out[baseline]}")
    data, fold = pool(result.tests)
    names = [*(c.name for c in kept), *(name for name in NAMES.values() if name in result.scores), FEATURE, ORDER]
    entrants = [_entrant(result, name, data, measures, convention) for name in names]
    main = next(iter(entrants[0].report.per_query))
    entrants.sort(key=lambda entrant: -np.nan_to_num(entrant.report.mean[main], nan=-inf))
    return finished(
        title,
        data,
        entrants,
        significance({entrant.name: entrant.report for entrant in entrants}),
        main,
        baseline or FEATURE,
        unseen=result.notes.clean,
        fold=fold,
        notes=_notes(result, kept, entrants),
        warnings=_warnings(result),
        chosen_by=CLICK_VALUE if result.by_clicks else main,
    )


def _entrant(result: _Result, name: str, data: QueryDataset, measures: list[Measure], convention: str) -> Entrant:
    scores = np.concatenate(result.scores[name])
    report = evaluate_grouped(scores, data, measures, convention=convention)
    learned = result.curves.get(name, {}), result.certificates.get(name, ())
    found = entrant(name, scores, report, result.winners.get(name, []), *learned)
    return replace(found, params=tuple(result.features)) if name == FEATURE else found


def _notes(result: _Result, kept: list[Candidate], entrants: list[Entrant]) -> list[str]:
    many = len(result.tests) > 1
    each = " of each fold" if many else ""
    unseen = (
        "the test queries took no part in any choice" if result.notes.clean else "test queries took part, see below"
    )
    learned = (
        "With these settings they learned once more, from training and validation queries together; how many rounds "
        "is as chosen before"
        if result.refit
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
    notes += [*_warnings(result), *dict.fromkeys(result.notes.said)]
    cut = [f"{e.name} {e.tried} of {e.planned}" for e in entrants if e.tried < e.planned]
    if cut:
        notes.append(f"{_limit(result)} ended the search early: {', '.join(cut)} settings.")
    if result.seconds is not None:
        notes.append(
            f"The search had {result.seconds:g} processor seconds of learning: another machine may try other settings, "
            "and choose others with the same seed."
        )
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


def _limit(result: _Result) -> str:
    """Return what ended the search, or may have, in words."""
    given = [] if result.budget is None else [f"budget={result.budget}"]
    given += [] if result.seconds is None else [f"seconds={result.seconds:g}"]
    return " or ".join(given)


def _chosen_by(result: _Result) -> str:
    if not result.by_clicks:
        return result.target.name
    cut = "" if result.target.k is None else f" in the top {result.target.k}"
    return f"the value of held-out clicks (mean discount of a click{cut}, each weighted by 1/p)"


def _repeats(result: _Result, contest: Contest) -> Repeats:
    """Measure what was learned again and again on the test queries, and compare the learners."""
    values = {}
    for who, folds in result.repeated.items():
        if who in result.left_out:
            continue
        parts = [measured(scores, test, result.target) for scores, test in zip(folds, result.tests, strict=True)]
        values[who] = np.concatenate(parts, axis=2)
    counted = ~np.isnan(next(iter(values.values()))[0, 0])
    values = {who: one[:, :, counted] for who, one in values.items()}
    best = max(values, key=lambda who: values[who].mean())
    return compare_learners(values, best, contest.main, contest.comparison.alpha)


def _warnings(result: _Result) -> list[str]:
    """Return what casts doubt on a result."""
    cut = {name: n for name, winners in result.winners.items() if (n := sum(winner.cut for winner in winners))}
    fits = [(name, vars(w.ranker).get("solution_")) for name, winners in result.winners.items() for w in winners]
    unconverged = [(name, found.message) for name, found in fits if found and found.falls_short]
    capped = [name for name, winners in result.winners.items() if any(winner.capped for winner in winners)]
    return [
        *dict.fromkeys(result.notes.warned),
        *(f"{name} was left out: {reason}." for name, reason in result.left_out.items()),
        *dict.fromkeys(f"{name} did not converge: {message}." for name, message in unconverged),
        *(f"{name}: {n} of its settings ran out of time, its share of the seconds." for name, n in cut.items()),
        *(f"{name} was still rising when it reached its number of rounds: more might do better." for name in capped),
    ]
