"""Anybody's estimator as a contestant: told its queries as it wants them, fitted, stopped early, scored."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._typing import Floats
from ..data.dataset import QueryDataset
from ..errors import InputError
from ..evaluation import grouped_scores
from ..measures.base import Measure

PATIENCE = 50
"""Rounds without a better value on the validation queries that end boosting, where the library can stop early."""
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
        try:
            learned = self._copy({**self.setting, **changes})
            self._fit(learned, train, valid)
        except (InputError, ArithmeticError, ImportError):
            raise
        except Exception as error:  # anybody's code can raise anything: this contestant is left out, and told why
            first = (str(error).splitlines() or [""])[0]
            raise InputError(f"{name}: {type(error).__name__}: {first}") from error
        return replace(self, learned=learned, trace_=_trace(_last(learned)))

    def refitted(self, data: QueryDataset, seed: int | None = None) -> Guest:
        """Return the guest learned anew from `data`, with as many rounds as were chosen, and another seed."""
        changes: dict[str, Any] = {}
        rounds, name = best_iteration(_last(self.learned)), _rounds_name(_last(self.estimator))
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
    if _package(estimator) == "catboost":
        names |= set(inspect.signature(type(estimator)).parameters)
    return names


def _package(estimator: Any) -> str:
    return next((p for kind in type(estimator).__mro__ if (p := kind.__module__.partition(".")[0]) in _LIBRARIES), "")


_LIBRARIES = ("lightgbm", "xgboost", "catboost")


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
    y = _labels(train, is_classifier(estimator))
    if not {"group", "qid", "group_id"} & set(parameters) and hasattr(estimator, "estimator"):
        _fit_search(estimator, X, y, train)
        return
    given = _queries(parameters, train) | _weights(parameters, train)
    if held_out is not None:
        given |= _early_stopping(estimator, parameters, *held_out, measure)
    if _package(estimator) == "catboost" and "verbose" in parameters:
        given["verbose"] = False
    estimator.fit(X, y, **given)


def _labels(data: QueryDataset, classes: bool) -> Any:
    """Return grades; for a classifier, whole ones as whole numbers."""
    whole = classes and not (data.y != np.floor(data.y)).any()
    return data.y.astype(np.int64) if whole else data.y


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
    if ("group" in inside and "qid" not in inside) or (_package(inner) == "catboost" and "group_id" in inside):
        raise InputError(
            f"{type(estimator).__name__} slices rows, and {type(inner).__name__} wants its queries whole: enter it by "
            "itself, and give its settings to the contest, grids={name: {...}}"
        )
    if "qid" in inside and not hasattr(inner, "predict_grouped"):
        from sklearn import config_context

        with config_context(enable_metadata_routing=True):
            inner.set_fit_request(qid=True)
    _call(estimator, "fit", X, data, y=y)


def _early_stopping(
    estimator: Any, parameters: Mapping[str, Any], seen: Any, valid: QueryDataset, measure: Measure
) -> dict[str, Any]:
    """Return what makes a library stop by the validation queries: by its own NDCG or MAP if it ranks, else its loss.

    The library's own parameters for it, where they are set, stay as they are.
    """
    if "valid" in parameters:  # a ranker of ours, in a pipeline
        rows = np.repeat(np.arange(valid.n_queries), valid.lengths)
        return {"valid": (seen, valid.y, rows, valid.query_weight)}
    package, ids = _package(estimator), np.repeat(np.arange(valid.n_queries), valid.lengths)
    own = estimator.get_params()
    if any(own.get(name) for name in ("early_stopping_rounds", "early_stopping_round", "od_wait")):
        patience = 0
    else:
        patience = PATIENCE
    from sklearn.base import is_classifier

    y = _labels(valid, is_classifier(estimator))
    k, kind = measure.k, "map" if measure.name.startswith("map") else "ndcg"
    if package == "lightgbm":
        import lightgbm as lgb

        calls = [lgb.early_stopping(patience, first_metric_only=True, verbose=False)] if patience else []
        # Since 4.7 eval_set is called eval_X and eval_y.
        shown = {"eval_X": seen, "eval_y": y} if "eval_X" in parameters else {"eval_set": [(seen, y)]}
        if "group" not in parameters:
            return {**shown, "callbacks": calls}
        return {
            **shown,
            "eval_group": [valid.lengths],
            "eval_metric": kind,
            "eval_at": [k or 1000],
            "callbacks": calls,
        }
    if package == "xgboost":
        metric = {"eval_metric": f"{kind}@{k}" if k else kind} if "qid" in parameters else {}
        if patience:
            estimator.set_params(early_stopping_rounds=patience, **metric)
        return {"eval_set": [(seen, y)], **({"eval_qid": [ids]} if "qid" in parameters else {})}
    if package == "catboost":
        import catboost

        if "group_id" in parameters:
            top = f":top={k}" if k else ""
            estimator.set_params(eval_metric=f"MAP{top}" if kind == "map" else f"NDCG{top};type=Exp" if k else "NDCG")
            pool = catboost.Pool(seen, y, group_id=ids)
        else:
            pool = catboost.Pool(seen, y)
        return {"eval_set": pool, **({"early_stopping_rounds": patience} if patience else {})}
    if "X_val" in parameters and own.get("early_stopping") is True:
        return {"X_val": seen, "y_val": y}
    return {}


def best_iteration(estimator: Any) -> int | None:
    """Return how many rounds a fitted library's estimator keeps, where it stopped early."""
    package = _package(estimator)
    if package == "lightgbm":
        return int(estimator.best_iteration_) or None
    if package == "xgboost" and estimator.get_params().get("early_stopping_rounds"):
        return int(estimator.best_iteration) + 1
    if package == "catboost" and estimator.get_best_iteration() is not None:
        return int(estimator.get_best_iteration()) + 1
    return None


def _rounds_name(estimator: Any) -> str | None:
    return {"lightgbm": "n_estimators", "xgboost": "n_estimators", "catboost": "iterations"}.get(_package(estimator))


def _trace(estimator: Any) -> dict[str, Floats]:
    """Return the values on the validation queries round by round, however a library calls them."""
    package = _package(estimator)
    try:
        if package == "lightgbm":
            found: Any = estimator.evals_result_
        elif package in ("xgboost", "catboost"):
            found = estimator.evals_result()
        else:
            return {}
    except Exception:  # each library has an error of its own for "nothing was evaluated"
        return {}
    parts = [values for part, values in (found or {}).items() if part != "learn"]
    values: Any = next(iter(parts[-1].values()), []) if parts else []
    return {"valid": np.asarray(values, dtype=np.float64)} if len(values) else {}


def is_fitted(estimator: Any) -> bool:
    """Say whether an estimator, ours or anybody's, has learned already.

    >>> from sklearn.linear_model import Ridge
    >>> is_fitted(Ridge()), is_fitted(Ridge().fit([[0.0], [1.0]], [0, 1]))
    (False, True)
    """
    if _package(estimator) == "catboost":
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
