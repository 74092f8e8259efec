"""What is tried for each ranker: one fixed list of settings per name, the defaults first.

The lists are short and the same for everybody, so a contest says how many of how many it tried. Later settings matter
less than earlier ones: a budget cuts a list off at its end. A list of C is one setting: its path is solved with warm
starts, and the validation queries choose along it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from .. import rankers as package
from .._suggest import did_you_mean
from ..errors import InputError, needed
from ..measures.base import Measure
from ..measures.base import measure as parse
from ..model.missing import Missing
from ..rankers.base import Ranker
from ..surrogates.direct import parse_ap_or_ndcg, parse_bounded
from ..surrogates.slam import slam_measure
from .estimators import Guest

Params = Mapping[str, Any]

DEFAULT_RANKERS = ("ListNet", "RankSVM", "AdaRank", "RankBoost", "SlamPerceptron", "OnlineListNet")
"""Who takes part where nobody is named: listwise, pairwise, boosted and online learners that need no extra."""

_LAMBDAMART = {"loss": "lambdarank", "rounds": 2_000, "patience": 50}
CATBOOST = "CatBoost"
ENGINES: dict[str, dict[str, Any]] = {
    "LightGBM": {"engine": "lightgbm", **_LAMBDAMART},
    "XGBoost": {"engine": "xgboost", **_LAMBDAMART},
}
"""LambdaMART as other packages have it, by the package's name: `BoostedTrees` with more rounds than will be needed."""


def _grid(**values: Sequence[Any]) -> list[dict[str, Any]]:
    return [dict(zip(values, row, strict=True)) for row in product(*values.values())]


def points(grid: Any) -> list[dict[str, Any]]:
    """Return every combination of a grid, or of several, in the order in which they are written.

    >>> points({"a": [1, 2], "b": [3]}), points([{"a": [1]}, {"b": [2]}])
    ([{'a': 1, 'b': 3}, {'a': 2, 'b': 3}], [{'a': 1}, {'b': 2}])
    """
    found = []
    for table in [grid] if isinstance(grid, Mapping) else grid:
        if not isinstance(table, Mapping):
            raise InputError(
                f"a grid is a dictionary of lists of values by parameter, or a list of them, got {table!r}"
            )
        for name, values in table.items():
            if isinstance(values, str) or not isinstance(values, (Sequence, np.ndarray)) or not len(values):
                raise InputError(f"the grid of {name!r} must be a list of values, got {values!r}")
        found += _grid(**{str(name): list(values) for name, values in table.items()})
    return found


_ALPHAS = _grid(alpha=(1e-2, 1e-4, 1e-1))
# Last or averaged weights: by default the validation queries choose, within the fit.
# Steps are tried on scaled features, where they have no unit: on raw ones a number means nothing.
_ONLINE = _grid(eta=(0.1, 1e-2, 1.0), scale=("query", "running"))
_TREES = _grid(leaves=(7, 63), eta=(0.1,)) + _grid(leaves=(31, 7, 63), eta=(0.03,))
_AT_K: list[dict[str, Any]] = [{"k": 10}, {"k": 5}, {"kappa": 1.0}]

SETTINGS: dict[str, list[dict[str, Any]]] = {
    "AdditiveRanker": _grid(truth=("gains",)),  # it chooses its penalty and its curves itself
    "AdaRank": [{"both_directions": False}, {"rule": "paper"}],
    "BoostedTrees": _TREES,
    "CatBoost": [{"depth": 4}, {"depth": 8}, *_grid(depth=(6, 4, 8), learning_rate=(0.03,))],
    "KernelSlamPerceptron": _grid(gamma=(None, 0.1, 1.0), eta=(0.01, 1.0)),
    "LightGBM": _TREES,
    "LinearRanker": [{"surrogate": "PairwiseHinge"}, *_ALPHAS],
    "ListMLE": _grid(alpha=(1.0, 1e-2, 10.0)),
    "ListNet": [*_ALPHAS, *_grid(truth=("gains",), alpha=(1e-3, 1e-2))],
    "MinimaxPerceptron": _grid(scale=("query", "running")),  # its rankings do not depend on eta
    "OnePassMiniBatch": [*_AT_K, *_grid(k=(10,), eta=(0.1, 10.0))],
    "OnlineListNet": _ONLINE,
    "PDGD": _grid(eta=(1e-2, 1.0)),
    "PerceptronAtK": [*_AT_K, {"average": False}, {"variant": "max"}, {"variant": "max", "k": 10}],
    "PermuRank": _grid(C=((0.1, 1.0, 10.0, 100.0, 1000.0),), measure=(None, "map")),
    "RankBoost": [{"thresholds": 100}, {"thresholds": 30}, {"normalize": False}, {"both_directions": True}],
    "RankCosine": _ALPHAS,
    "RankSVM": [{"C": tuple(10.0**power for power in range(-4, 3))}],
    "SGDAtK": [*_AT_K, *_grid(eta=(0.1, 10.0)), {"variant": "max"}],
    "SVMMap": _grid(C=(tuple(10.0**power for power in range(-2, 5)),), measure=(None, "map")),
    "SVMPerf": [*_AT_K, *_grid(C=(0.1, 10.0, 100.0))],
    "SlamPerceptron": _ONLINE,
    "XGBoost": [{"depth": 3}, {"depth": 8}, *_grid(depth=(6, 3, 8), eta=(0.03,))],
}
"""What differs from the defaults (and from `_ALWAYS`), in the order in which it is tried after them.

A `measure` in a setting is what the ranker is trained for, None the measure of the contest.
"""

_ALWAYS: dict[str, dict[str, Any]] = {
    "BoostedTrees": {"rounds": 2_000, "patience": 50},
    # The validation queries choose the epoch or the tree, so more of them than by default do no harm.
    **{name: {"epochs": 30} for name in ("SlamPerceptron", "MinimaxPerceptron", "OnlineListNet")},
    "KernelSlamPerceptron": {"budget": 500},
}

_OPTIMISES: dict[str, Callable[[Measure], object]] = {
    "AdaRank": parse_bounded,
    "KernelSlamPerceptron": slam_measure,
    "PermuRank": parse_ap_or_ndcg,
    "SVMMap": parse_ap_or_ndcg,
    "SlamPerceptron": slam_measure,
}
"""Rankers that are built on one measure, and the function that refuses a measure they cannot be built on."""


@dataclass(frozen=True)
class Candidate:
    """A contestant before the contest: its name, its rankers in the order they are tried, and notes."""

    name: str
    rankers: tuple[Any, ...]
    """Rankers of ours, or estimators of others as `Guest`."""
    notes: tuple[str, ...] = field(default=())
    why_no_more: str = "the list of contests.settings has no more"
    """Why it has no more settings, where others have."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many settings each of the rankers stands for: a path of C, or of penalties, counts each of them."""
        return tuple(max(_length(r, "C"), _length(r, "penalty")) for r in self.rankers)


def _length(ranker: Any, name: str) -> int:
    """Return how many values a parameter chooses from."""
    given = ranker.get_params(deep=False).get(name)
    return len(given) if isinstance(given, (tuple, list)) else 1


def known() -> tuple[str, ...]:
    """Return the names that can take part.

    >>> "ListNet" in known(), "LightGBM" in known()
    (True, True)
    """
    return (*package.__all__, *ENGINES, CATBOOST)


def candidate(
    name: str, measure: Measure, missing: Missing = "error", random_state: int = 0, prepare: str = ""
) -> Candidate:
    """Return the settings of a ranker, made for a measure; each with features prepared first, then as they are.

    >>> from toprank.measures import measure
    >>> [r.C for r in candidate("RankSVM", measure("map")).rankers]
    [1.0, (0.0001, 0.001, 0.01, 0.1, 1.0, 10.0, 100.0)]
    """
    if name not in known():
        raise InputError(f"unknown ranker {name!r}{did_you_mean(name, known())}: there are {', '.join(known())}")
    if name == CATBOOST:
        return catboost(measure, random_state)
    kind = package.BoostedTrees if name in ENGINES else getattr(package, name)
    taken = inspect.signature(kind).parameters
    notes: tuple[str, ...] = ()
    given: dict[str, Any] = {"measure": measure, **_ALWAYS.get(name, {}), **ENGINES.get(name, {})}
    if taken["missing"].default != "native":  # trees have a side for missing cells
        given["missing"] = missing
    if "random_state" in taken:
        given["random_state"] = random_state
    try:
        _OPTIMISES.get(name, str)(measure)
    except InputError as error:
        given["measure"] = taken["measure"].default
        notes = (f"{name} was trained for {given['measure']} ({error}); its settings were chosen by {measure.name}.",)
    settings = [{**given, **_filled(chosen, given["measure"], measure)} for chosen in ({}, *SETTINGS.get(name, []))]
    distinct = [setting for place, setting in enumerate(settings) if setting not in settings[:place]]
    ways: list[dict[str, Any]] = [{"prepare": prepare}, {}] if prepare else [{}]
    return Candidate(name, tuple(kind(**setting, **way) for setting in distinct for way in ways), notes)


def catboost(measure: Measure, random_state: int = 0, grid: Any = None) -> Candidate:
    """Return CatBoost's ranker (YetiRank), with as many settings as LightGBM and XGBoost have."""
    kind = needed("catboost", "CatBoost").CatBoostRanker
    # One thread and no files beside the data: bits repeat.
    plain = {"thread_count": 1, "allow_writing_files": False, "random_seed": random_state}
    template = kind(iterations=2_000, learning_rate=0.1, depth=6, **plain)
    settings = SETTINGS["CatBoost"] if grid is None else points(grid)
    return Candidate("CatBoost", tuple(Guest(template, setting, measure) for setting in ({}, *settings)))


def _filled(setting: Params, own: Any, measure: Measure) -> dict[str, Any]:
    """Return a setting with the measure it means, under the convention of the contest."""
    if "measure" not in setting:
        return dict(setting)
    named = setting["measure"]
    return {**setting, "measure": own if named is None else parse(named, convention=measure.convention)}


def settings_of(ranker: Ranker | Guest) -> dict[str, Any]:
    """Return the parameters of a fitted ranker that a space varies, or that differ from the defaults.

    Of anybody's estimator they are those that its grid varies.

    >>> import toprank as tr
    >>> settings_of(tr.ListNet(alpha=0.1, patience=5).fit([[1.0], [0.0]], [1, 0]))
    {'alpha': 0.1, 'patience': 5, 'truth': 'grades'}
    """
    if isinstance(ranker, Guest):
        return dict(ranker.setting)
    settings = SETTINGS.get(type(ranker).__name__, [])
    if isinstance(ranker, package.BoostedTrees):
        settings = [*settings, *SETTINGS["XGBoost"]]
    defaults = {p.name: p.default for p in inspect.signature(type(ranker)).parameters.values()}
    varied = {key for setting in settings for key in setting}
    params = ranker.get_params(deep=False)
    unsaid = {"missing", "random_state", "verbose"} | ({"measure"} - varied)
    shown = {
        key: params[key]
        for key in sorted(params.keys() - unsaid)
        if params[key] is not None and (key in varied or params[key] != defaults.get(key))
    }
    if "C_" in vars(ranker):
        shown["C"] = vars(ranker)["C_"]
    if params.get("penalty") is not None:  # then alpha counts for nothing
        shown["penalty"] = str(vars(ranker).get("penalty_", params["penalty"]))
        shown.pop("alpha", None)
    return {key: str(value) if isinstance(value, Measure) else value for key, value in shown.items()}
