"""Where boosting of other libraries stops: by the validation queries, in each library's own words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._typing import Floats
from ..data.dataset import QueryDataset
from ..measures.base import Measure

PATIENCE = 50
"""Rounds without a better value on the validation queries that end boosting, where the library can stop early."""


def package_of(estimator: Any) -> str:
    """Return the library of boosted trees that an estimator is from; "" for any other."""
    return next((p for kind in type(estimator).__mro__ if (p := kind.__module__.partition(".")[0]) in _LIBRARIES), "")


_LIBRARIES = ("lightgbm", "xgboost", "catboost")


def labels_of(data: QueryDataset, classes: bool) -> Any:
    """Return grades; for a classifier, whole ones as whole numbers."""
    whole = classes and not (data.y != np.floor(data.y)).any()
    return data.y.astype(np.int64) if whole else data.y


def early_stopping(
    estimator: Any, parameters: Mapping[str, Any], seen: Any, valid: QueryDataset, measure: Measure
) -> dict[str, Any]:
    """Return what makes a library stop by the validation queries: by its own NDCG or MAP if it ranks, else its loss.

    The library's own parameters for it, where they are set, stay as they are.
    """
    if "valid" in parameters:  # a ranker of ours, in a pipeline
        rows = np.repeat(np.arange(valid.n_queries), valid.lengths)
        return {"valid": (seen, valid.y, rows, valid.query_weight)}
    package, ids = package_of(estimator), np.repeat(np.arange(valid.n_queries), valid.lengths)
    own = estimator.get_params()
    if any(own.get(name) for name in ("early_stopping_rounds", "early_stopping_round", "od_wait")):
        patience = 0
    else:
        patience = PATIENCE
    from sklearn.base import is_classifier

    y = labels_of(valid, is_classifier(estimator))
    k, kind = measure.k, "map" if measure.name.startswith("map") else "ndcg"
    if kind == "map" and package == "xgboost" and valid.y.max(initial=0) > 1:  # its MAP takes grades of 0 and 1 alone
        kind = "ndcg"
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
    package = package_of(estimator)
    if package == "lightgbm":
        return int(estimator.best_iteration_) or None
    if package == "xgboost" and estimator.get_params().get("early_stopping_rounds"):
        return int(estimator.best_iteration) + 1
    if package == "catboost" and estimator.get_best_iteration() is not None:
        return int(estimator.get_best_iteration()) + 1
    return None


def rounds_name(estimator: Any) -> str | None:
    """Return what a library calls the number of rounds; None for any other estimator."""
    return {"lightgbm": "n_estimators", "xgboost": "n_estimators", "catboost": "iterations"}.get(package_of(estimator))


def trace_of(estimator: Any) -> dict[str, Floats]:
    """Return the values on the validation queries round by round, however a library calls them."""
    found: Any = getattr(estimator, "evals_result_", None) if package_of(estimator) else None
    parts = [values for part, values in (found or {}).items() if part != "learn"]
    values: Any = next(iter(parts[-1].values()), []) if parts else []
    return {"valid": np.asarray(values, dtype=np.float64)} if len(values) else {}
