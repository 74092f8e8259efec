"""`toprank.contest`: hold a contest between rankers on judged queries."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from typing import get_args

import numpy as np

from ..clicks.evaluation import CLICK_VALUE
from ..data import validation
from ..data.dataset import QueryDataset
from ..data.preparation import words_of
from ..data.splits import Fold
from ..errors import InputError
from ..measures.base import Measure
from ..measures.base import measure as parse
from ..model.missing import Missing
from ..statistics._paired_tests import Test
from ..statistics.comparison import Comparison, compare
from ..statistics.evaluation import Report, evaluate_grouped
from ..statistics.fusion import NAMES, Method, fuse_scores
from .base import Contest, Entrant
from .baselines import FEATURE, ORDER
from .entries import Defaults, Grid, Rankers, entries_of
from .estimators import is_estimator
from .from_reports import finished
from .held import Held, Plan, run_folds
from .notes import notes_of, warnings_of
from .parts import Parts, folds_of, pool
from .repeats import Repeats, compare_learners, measured
from .search import entrant
from .settings import DEFAULT_RANKERS


def contest(
    train: QueryDataset | Iterable[Fold | Parts],
    test: QueryDataset | None = None,
    valid: QueryDataset | None = None,
    rankers: Rankers = DEFAULT_RANKERS,
    measure: str | Measure = "ndcg@10",
    measures: Sequence[str | Measure] = ("ndcg@10", "map"),
    *,
    grids: Mapping[str, Grid] | None = None,
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
    folds are then judged together. Without `valid`, a quarter of the training queries is held out. The best single
    feature of the training part and the order as given take part as baselines; so do fusions of all that was learned
    (`fusion`: "rrf", "combsum", "combmnz").

    `rankers` are names or objects, and may have names of your own in a dictionary. A name ("ListNet", "LightGBM",
    "XGBoost", "CatBoost") brings the settings of `contests.settings`. Anything with `fit` and `predict`,
    `decision_function` or `predict_proba` may take part: rankers and classifiers of any library, pipelines, searches.
    What is not fitted is copied and learns here: it is told its queries as it wants them (`qid`, `group`, `group_id`),
    and boosting of LightGBM, XGBoost and CatBoost stops early by the validation queries. What is fitted already takes
    part as it is, and so do runs (`Run`, or scores by query and document) and scores of the test rows.
    `grids={"mine": {"ridge__alpha": [0.1, 1.0]}}` has settings for those who bring their own: first what was given is
    tried, then every combination.

    With `prepare` ("log,query": the signed logarithm, then scaling within each query) every setting of a named ranker
    is tried with prepared features and with features as they are. With `refit` the winners learn once more, from
    training and validation queries together. With `repeats` the chosen settings learn from so many resamples of the
    training queries, with two seeds each: this says which learner is better, and what a difference is made of.

    `measure` chooses settings, `measures` are reported. `budget` is how many settings of each contestant are tried on a
    fold beyond its defaults (a path of C is one): 0 tries the defaults alone, None all there are. The same seed then
    gives the same numbers on any machine. `seconds`, processor seconds of learning, give that up: when they are spent,
    no further round of settings is started, though everybody's defaults are always tried; within a round everybody has
    the same share of what is left, at whose end rankers of ours stop. Where not everything was tried, the tables and
    the page say so first (`cut_short`).

    `baseline` names the one that the others are compared with; None compares every pair; `margin` and `n_resamples`
    are as in `compare`. `state` is a folder that keeps finished settings of our rankers, so that an interrupted contest
    goes on where it was. Who cannot learn from the data is left out, and `warnings` say why.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=60, random_state=0)
    >>> result = tr.contest(data[:40], data[40:], rankers=["RankSVM", tr.ListNet(alpha=0.1)], budget=0)
    >>> result.entrant("RankSVM").params, result.entrant("RankSVM").tried
    (({'C': 1.0},), 1)
    """
    target = parse(measure, convention=convention)
    reported = _reported(target, measures, convention)
    random_state = validation.as_seed(random_state)
    validation.check_choice(get_args(Test), test=comparison)
    plan = Plan(target, budget, seconds, refit, repeats, random_state)
    _check(plan, fusion, margin, n_resamples)
    defaults = Defaults(target, missing, random_state, ",".join(words_of(prepare)))
    held = Held(entries_of(rankers, grids or {}, defaults), plan)
    if baseline is not None:
        known = (*held.entries.names, *(NAMES[method] for method in fusion), FEATURE, ORDER)
        validation.check_choice(known, baseline=baseline)
    run_folds(held, folds_of(train, test, valid), state, progress)
    _fuse(held, fusion)
    significance = partial(
        compare, test=comparison, baseline=baseline, margin=margin, n_resamples=n_resamples, random_state=random_state
    )
    judged = _judge(held, reported, convention, significance, baseline, title)
    return judged if len(held.repeated) < 2 else replace(judged, repeats=_repeats(held, judged))


def _reported(target: Measure, measures: Sequence[str | Measure], convention: str) -> list[Measure]:
    """Return the measures of the tables: that of the choice first, and none twice."""
    named = dict.fromkeys(parse(m, convention=convention) for m in measures)
    return [target, *(m for m in named if str(m) != str(target))]


def _check(plan: Plan, fusion: Sequence[Method], margin: float | None, n_resamples: int | None) -> None:
    """Refuse a plan that cannot be carried out, before anything is read or learned."""
    if n_resamples is not None:
        validation.check_count(n_resamples=n_resamples)
    if plan.budget is not None and not (validation.is_whole(plan.budget) and plan.budget >= 0):
        raise InputError(
            f"budget must be a whole number of at least 0, the settings beyond the defaults, got {plan.budget!r}; "
            "seconds= limits the time"
        )
    if plan.seconds is not None:
        validation.check_positive(seconds=plan.seconds)
    for method in fusion:
        validation.check_choice(get_args(Method), fusion=method)
    if margin is not None:
        validation.check_positive(margin=margin)
    if plan.repeats:
        validation.check_count(repeats=plan.repeats)
        if plan.repeats < 2:
            raise InputError("repeats must be at least 2: one says nothing about spread")


def _fuse(held: Held, fusion: Sequence[Method]) -> None:
    """Add the fusions of all that was learned, where there are two or more to fuse."""
    for method in fusion if len(held.winners) > 1 else ():
        held.scores[NAMES[method]] = [
            fuse_scores([held.scores[who][fold] for who in held.winners], part.ptr, method)
            for fold, part in enumerate(held.tests)
        ]


def _judge(
    result: Held,
    measures: list[Measure],
    convention: str,
    significance: Callable[[Mapping[str, Report]], Comparison],
    baseline: str | None,
    title: str,
) -> Contest:
    kept = [c for c in result.candidates if c.name not in result.left_out]
    if not kept and result.left_out:
        name, reason = next(iter(result.left_out.items()))
        raise InputError(f"nobody could learn from these data: {name}: {reason}")
    if baseline in result.left_out:
        raise InputError(f"the baseline {baseline} was left out: {result.left_out[baseline]}")
    data, fold = pool(result.tests)
    names = [
        *(c.name for c in kept),
        *result.entries.made,
        *(name for name in NAMES.values() if name in result.scores),
        FEATURE,
        ORDER,
    ]
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
        notes=notes_of(result, kept, entrants),
        warnings=warnings_of(result),
        chosen_by=CLICK_VALUE if result.by_clicks else main,
    )


def _entrant(result: Held, name: str, data: QueryDataset, measures: list[Measure], convention: str) -> Entrant:
    scores = np.concatenate(result.scores[name])
    report = evaluate_grouped(scores, data, measures, convention=convention)
    learned = result.curves.get(name, {}), result.certificates.get(name, ())
    found = entrant(name, scores, report, result.winners.get(name, []), *learned)
    if name in result.entries.made:
        model = result.entries.made[name]
        unseen = result.unseen.get(name)
        found = replace(found, learned_here=False, unseen=unseen, rankers=(model,) if is_estimator(model) else ())
    return replace(found, params=tuple(result.features)) if name == FEATURE else found


def _repeats(result: Held, contest: Contest) -> Repeats:
    """Measure what was learned again and again on the test queries, and compare the learners."""
    values = {}
    for who, folds in result.repeated.items():
        if who in result.left_out:
            continue
        parts = [measured(scores, test, result.plan.target) for scores, test in zip(folds, result.tests, strict=True)]
        values[who] = np.concatenate(parts, axis=2)
    counted = ~np.isnan(next(iter(values.values()))[0, 0])
    values = {who: one[:, :, counted] for who, one in values.items()}
    best = max(values, key=lambda who: values[who].mean())
    return compare_learners(values, best, contest.main, contest.comparison.alpha)
