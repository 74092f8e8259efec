"""Who takes part in a contest: names, rankers, anybody's estimators, and scores that were made elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import clone

from ..data.trec import Run
from ..errors import InputError
from ..measures.base import Measure
from ..model.missing import Missing
from ..rankers.base import Ranker
from ..statistics.fusion import NAMES
from .baselines import FEATURE, ORDER
from .estimators import Guest, is_estimator, is_fitted, parameters_of
from .settings import CATBOOST, Candidate, candidate, catboost, points

Entered: TypeAlias = Any
"""A name, a ranker, an estimator, a run (a `Run`, or scores by query and document), or one score per test row."""
Rankers: TypeAlias = "Sequence[Entered] | Mapping[str, Entered]"
Grid: TypeAlias = "Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]]"
"""Values by parameter, of which every combination is tried; or several such tables, one after the other."""

_WANTED = "a contestant is a name, a ranker, an estimator with fit and predict, a run or scores of the test rows"


@dataclass(frozen=True)
class Entries:
    """Who takes part, under distinct names.

    Parameters
    ----------
    candidates : who learns in the contest.
    made : who learned elsewhere and takes part as given: fitted models, runs and scores.
    """

    candidates: list[Candidate]
    made: dict[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all of them."""
        return (*(c.name for c in self.candidates), *self.made)


@dataclass(frozen=True)
class Defaults:
    """What a contest gives to the rankers that it makes by name."""

    measure: Measure
    missing: Missing = "error"
    random_state: int = 0
    prepare: str = ""


def entries_of(rankers: Rankers, grids: Mapping[str, Grid], defaults: Defaults) -> Entries:
    """Return who takes part; `grids` has the settings of those who bring their own, by name.

    >>> from sklearn.linear_model import Ridge
    >>> from ..measures import measure
    >>> found = entries_of({"mine": Ridge()}, {"mine": {"alpha": [0.1, 10.0]}}, Defaults(measure("map")))
    >>> [guest.setting for guest in found.candidates[0].rankers]
    [{}, {'alpha': 0.1}, {'alpha': 10.0}]
    """
    given: list[tuple[str | None, Any]] = (
        [(str(name), one) for name, one in rankers.items()]
        if isinstance(rankers, Mapping)
        else [(None, one) for one in rankers]
    )
    if not given:
        raise InputError("rankers is empty: name at least one, e.g. 'ListNet'")
    found = Entries([])
    for name, one in given:
        own = name or _own_name(one, found.names)
        if own in (*found.names, FEATURE, ORDER, *NAMES.values()):
            raise InputError(f"two contestants are called {own!r}: names must differ")
        grid = grids.get(own)
        if grid is None and (_is_made(one)):
            found.made[own] = one
            continue
        found.candidates.append(replace(_candidate(one, grid, defaults), name=own))
    unknown = [name for name in grids if name not in found.names]
    if unknown:
        raise InputError(f"grids has {unknown[0]!r}, who does not take part: there are {', '.join(found.names)}")
    return found


def _is_made(one: Any) -> bool:
    """Say whether a contestant takes part as given: a fitted model, a run, or scores."""
    if isinstance(one, (str, type)):
        return False
    if isinstance(one, Ranker):
        return "function_" in vars(one)
    return is_fitted(one) if is_estimator(one) else isinstance(one, (Run, Mapping, np.ndarray, list, tuple))


def _own_name(one: Any, taken: Sequence[str]) -> str:
    """Return the name of who has been given none: that of its class, with a number where there is one already."""
    if isinstance(one, str):
        return one
    if not is_estimator(one):
        if not _is_made(one):
            raise InputError(f"{_WANTED}, got {one!r}")
        raise InputError("runs and scores need a name: pass a dictionary, {'mine': scores}")
    name = type(one).__name__
    again = (f"{name} {n}" if n > 1 else name for n in range(1, len(taken) + 2))
    return next(each for each in again if each not in taken)


def _candidate(one: Any, grid: Grid | None, defaults: Defaults) -> Candidate:
    if isinstance(one, type):
        raise InputError(f"{one.__name__} is a class: make one, {one.__name__}(), with the parameters you want")
    if isinstance(one, str) and one == CATBOOST:
        return catboost(defaults.measure, defaults.random_state, grid)
    if isinstance(one, str):
        found = candidate(one, defaults.measure, defaults.missing, defaults.random_state, defaults.prepare)
        if grid is None:
            return found
        template = found.rankers[0]
        return replace(found, rankers=_rankers(template, grid), why_no_more="the grid has no more")
    if isinstance(one, Ranker):
        why = "no grid was given: grids={name: {...}}" if grid is None else "the grid has no more"
        return Candidate(type(one).__name__, _rankers(one, grid or []), why_no_more=why)
    if not is_estimator(one):
        raise InputError(f"{_WANTED}, got {one!r}")
    if not hasattr(one, "fit") or not hasattr(one, "get_params"):
        raise InputError(f"{type(one).__name__} has no fit and get_params: it can take part fitted, without a grid")
    known = parameters_of(one)
    settings = points(grid or [])
    for name in (name for setting in settings for name in setting):
        if name not in known:
            raise InputError(f"{type(one).__name__} has no parameter {name!r}: it has {', '.join(sorted(known))}")
    why = "no grid was given: grids={name: {...}}" if grid is None else "the grid has no more"
    guests = tuple(Guest(one, setting, defaults.measure) for setting in ({}, *settings))
    return Candidate(type(one).__name__, guests, why_no_more=why)


def _rankers(template: Ranker, grid: Grid) -> tuple[Ranker, ...]:
    """Return a ranker of ours as it was given, then with each setting of a grid."""
    known = template.get_params(deep=False)
    found = [template]
    for setting in points(grid):
        for name in setting:
            if name not in known:
                raise InputError(f"{type(template).__name__} has no parameter {name!r}: it has {', '.join(known)}")
        if {**known, **setting} != known:
            found.append(clone(template).set_params(**setting))
    return tuple(found)
