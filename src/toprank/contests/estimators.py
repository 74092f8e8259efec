"""Anybody's estimator as a contestant: told its queries as it wants them, fitted, stopped early, scored."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._typing import Floats
from ..data.dataset import QueryDataset
from ..data.remote import ALL_ROWS, RemoteMatrix
from ..errors import InputError
from ..measures.base import Measure
from ..statistics.evaluation import grouped_scores
from .early_stopping import best_iteration, early_stopping, labels_of, package_of, rounds_name, trace_of

_ODD_IN_NAMES = set('[]<>{}":,')
"""What LightGBM or XGBoost refuses in the name of a feature."""


@dataclass(frozen=True)
class Guest:
    """An estimator of any library in a contest, with one setting of its grid.

    It is called as a ranker is: `fit_queries`, `predict_grouped`, `get_params`.

    Parameters
    ----------
    estimator : as it was given, unfitted.
    setting : the parameters in which it differs from what was given.
    measure : the measure of the contest, for libraries that stop early by a measure of that kind.
    learned : the copy of the estimator that has learned, with the setting; None before `fit_queries`.

    >>> import toprank as tr
    >>> from sklearn.linear_model import Ridge
    >>> data = tr.datasets.make_graded(n_queries=20, random_state=0)
    >>> fitted = Guest(Ridge(), {"alpha": 0.1}, tr.measure("ndcg@10")).fit_queries(data)
    >>> bool((fitted.predict_grouped(data) == fitted.learned.predict(data.X)).all())
    True
    """

    estimator: Any
    setting: Mapping[str, Any]
    measure: Measure
    learned: Any = None
    trace_: Mapping[str, Floats] = field(default_factory=dict)
    """The values on the validation queries round by round, as "valid", where the library notes them."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the setting."""
        return dict(self.setting)

    @property
    def random_state_name(self) -> str | None:
        """The parameter that is the seed; None where there is none."""
        names = parameters_of(self.estimator)
        return next((name for name in names if name.split("__")[-1] in ("random_state", "random_seed")), None)

    def fit_queries(self, train: QueryDataset, valid: QueryDataset | None = None, **changes: Any) -> Guest:
        """Return the guest with a copy of the estimator that has learned; `valid` stops boosting early."""
        name = type(self.estimator).__name__
        if train.doc_weight is not None:
            raise InputError(f"{name} learns without weights of documents: leave doc_weight out, or take a ranker")
        if isinstance(train.X, RemoteMatrix):
            raise InputError(f"{name}: {ALL_ROWS}")
        try:
            learned = self._copy({**self.setting, **changes})
            self._fit(learned, train, valid)
        except (InputError, ArithmeticError, ImportError):
            raise
        except Exception as error:  # anybody's code can raise anything: this contestant is left out, and told why
            first = (str(error).splitlines() or [""])[0]
            raise InputError(f"{name}: {type(error).__name__}: {first}") from error
        return replace(self, learned=learned, trace_=trace_of(_last(learned)))

    def refitted(self, data: QueryDataset, seed: int | None = None) -> Guest:
        """Return the guest learned anew from `data`, with as many rounds as were chosen, and another seed."""
        changes: dict[str, Any] = {}
        rounds, name = best_iteration(_last(self.learned)), rounds_name(_last(self.estimator))
        if rounds and name:
            changes[_prefix(self.estimator) + name] = rounds
        if seed is not None and self.random_state_name is not None:
            changes[self.random_state_name] = seed
        return self.fit_queries(data, **changes)

    def predict_grouped(self, data: QueryDataset) -> Floats:
        """Return one score per row of `data.X`: what the estimator says of order (`decision_function`, and so on)."""
        try:
            return np.asarray(grouped_scores(self.learned, data), dtype=np.float64)
        except (InputError, ArithmeticError):
            raise
        except Exception as error:  # as in fit_queries
            first = (str(error).splitlines() or [""])[0]
            raise InputError(f"{type(self.estimator).__name__}: {type(error).__name__}: {first}") from error

    def _copy(self, setting: Mapping[str, Any]) -> Any:
        from sklearn.base import clone

        copy = clone(self.estimator, safe=False)
        known = parameters_of(copy)
        unknown = [name for name in setting if name not in known]
        if unknown:
            raise InputError(
                f"{type(copy).__name__} has no parameter {unknown[0]!r}: it has {', '.join(sorted(known))}"
            )
        return copy.set_params(**setting) if setting else copy

    def _fit(self, estimator: Any, train: QueryDataset, valid: QueryDataset | None) -> None:
        """Fit a pipeline step by step, so that its last step gets its queries and prepared validation rows too."""
        from sklearn.pipeline import Pipeline

        X, seen = frame_of(train), None if valid is None else frame_of(valid)
        if isinstance(estimator, Pipeline):
            steps = estimator[:-1]
            last = estimator.steps[-1][1]
            if len(steps):
                X = _call(steps, "fit_transform", X, train, y=train.y)
                seen = None if valid is None else _call(steps, "transform", seen, valid)
                estimator.steps = [*steps.steps, estimator.steps[-1]]
        else:
            last = estimator
        held_out = None if valid is None or seen is None else (seen, valid)
        _fit_last(last, X, train, held_out, self.measure)


def frame_of(data: QueryDataset) -> Any:
    """Return X as a frame where its features have names that every library takes, else as it is."""
    names = data.feature_names
    if names is None or data.is_sparse or any(set(name) & _ODD_IN_NAMES for name in names):
        return data.X
    try:
        import pandas as pd
    except ImportError:
        return data.X
    return pd.DataFrame(data.X, columns=list(names), copy=False)


def parameters_of(estimator: Any) -> set[str]:
    """Return the names of the parameters that `set_params` takes; CatBoost lists those that were set alone."""
    names = {str(name) for name in estimator.get_params()}
    if package_of(estimator) == "catboost":
        names |= set(inspect.signature(type(estimator)).parameters)
    return names


def _last(estimator: Any) -> Any:
    """Return the last step of a pipeline; any other estimator itself."""
    from sklearn.pipeline import Pipeline

    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def _prefix(estimator: Any) -> str:
    from sklearn.pipeline import Pipeline

    return f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""


def _call(estimator: Any, method: str, X: Any, data: QueryDataset, **given: Any) -> Any:
    """Call a method of scikit-learn's kind, with the query of each row where its routing says who wants it."""
    from sklearn import config_context

    ids = np.repeat(np.arange(data.n_queries), data.lengths)
    with config_context(enable_metadata_routing=True):
        if hasattr(estimator, "get_metadata_routing"):
            wanted = estimator.get_metadata_routing().consumes(method.replace("_transform", ""), _QUERY_NAMES)
            given |= dict.fromkeys(wanted, ids)
        return getattr(estimator, method)(X, **given)


_QUERY_NAMES = ("qid", "group_id", "groups")
"""What row-wise query ids are called in other libraries; `groups` is scikit-learn's, for splitters."""


def _fit_last(
    estimator: Any, X: Any, train: QueryDataset, held_out: tuple[Any, QueryDataset] | None, measure: Measure
) -> None:
    """Fit an estimator that is no pipeline, handing over the queries under the name that it has for them."""
    from sklearn.base import is_classifier

    parameters = inspect.signature(estimator.fit).parameters
    y = labels_of(train, is_classifier(estimator))
    if not {"group", "qid", "group_id"} & set(parameters) and hasattr(estimator, "estimator"):
        _fit_search(estimator, X, y, train)
        return
    given = _queries(parameters, train) | _weights(parameters, train)
    if held_out is not None:
        given |= early_stopping(estimator, parameters, *held_out, measure)
    if package_of(estimator) in ("catboost", "xgboost") and "verbose" in parameters:
        given["verbose"] = False
    estimator.fit(X, y, **given)


def _queries(parameters: Mapping[str, Any], data: QueryDataset) -> dict[str, Any]:
    """Return the queries as a fit wants them: an id per row (qid, group_id), or sizes of groups (group)."""
    ids = np.repeat(np.arange(data.n_queries), data.lengths)
    if "group_id" in parameters:
        return {"group_id": ids}
    if "qid" in parameters:
        return {"qid": ids}
    return {"group": data.lengths} if "group" in parameters else {}


def _weights(parameters: Mapping[str, Any], data: QueryDataset) -> dict[str, Any]:
    """Return weights of queries as a fit wants them; nothing where there are none."""
    weight = data.query_weight
    if weight is None:
        return {}
    by_row = np.repeat(weight, data.lengths)
    for name in ("query_weight", "group_weight"):
        if name in parameters:
            return {name: by_row}
    if "sample_weight" in parameters:  # XGBoost's ranker takes one for each query
        return {"sample_weight": weight if "qid" in parameters else by_row}
    raise InputError("its fit takes no weights, and the queries have some")


def _fit_search(estimator: Any, X: Any, y: Any, data: QueryDataset) -> None:
    """Fit what fits another estimator (a search for settings, say): rows are sliced there, so ids go by routing."""
    inner, depth = estimator, 0
    while hasattr(inner, "estimator") and depth < 10:
        inner, depth = _last(inner.estimator), depth + 1
    inside = inspect.signature(inner.fit).parameters
    if ("group" in inside and "qid" not in inside) or (package_of(inner) == "catboost" and "group_id" in inside):
        raise InputError(
            f"{type(estimator).__name__} slices rows, and {type(inner).__name__} wants its queries whole: enter it by "
            "itself, and give its settings to the contest, grids={name: {...}}"
        )
    if "qid" in inside and not hasattr(inner, "predict_grouped"):
        from sklearn import config_context

        with config_context(enable_metadata_routing=True):
            inner.set_fit_request(qid=True)
    _call(estimator, "fit", X, data, y=y)


def is_fitted(estimator: Any) -> bool:
    """Say whether an estimator, ours or anybody's, has learned already.

    >>> from sklearn.linear_model import Ridge
    >>> is_fitted(Ridge()), is_fitted(Ridge().fit([[0.0], [1.0]], [0, 1]))
    (False, True)
    """
    if package_of(estimator) == "catboost":
        return bool(estimator.is_fitted())
    if not hasattr(estimator, "fit"):
        return True
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(estimator)
    except (NotFittedError, TypeError):
        return False
    return True


def is_estimator(value: Any) -> bool:
    """Say whether a value scores rows: an instance with `predict` or `decision_function`, fitted or to be fitted."""
    scores = any(callable(getattr(value, name, None)) for name in ("predict", "decision_function", "predict_proba"))
    return scores and not isinstance(value, type)
