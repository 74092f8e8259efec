"""Scores of anybody's fitted estimator: what it says of order, with its columns matched by name."""

from __future__ import annotations

import re
import warnings
from contextlib import suppress
from typing import Any

import numpy as np

from ._typing import AnyArray, ArrayLike, Floats
from .data.dataset import QueryDataset
from .data.matching import match_columns
from .errors import InputError


def estimator_scores(estimator: Any, data: QueryDataset) -> Floats:
    """Return one score per row of `data.X` from a fitted estimator, whose columns are matched by name."""
    names = learned_names(estimator)
    n_features = data.n_features if names is None else len(names)
    matched = match_columns(data, n_features, names, type(estimator).__name__, stacklevel=4) if names else data
    rows: Any = matched.X
    if matched.feature_names is not None and hasattr(estimator, "feature_names_in_"):
        with suppress(ImportError):  # steps that choose columns by name need a frame
            import pandas as pd

            rows = rows if matched.is_sparse else pd.DataFrame(rows, columns=list(matched.feature_names))
    return response(estimator, rows, np.repeat(np.arange(data.n_queries), data.lengths))


def response(estimator: Any, X: Any, qid: ArrayLike | None) -> Floats:
    """Return one score per row: `decision_function`, a probability or an expected grade, else `predict`.

    A classifier says how sure it is: its `decision_function`, else `predict_proba` of the larger of two classes; of
    several classes, which must be numbers, the expected one. `predict` counts for regressors and rankers alone, since
    labels are no scores. `qid` is handed on where the estimator, or a step of it, asks scikit-learn's routing for it.

    >>> from sklearn.linear_model import LogisticRegression
    >>> model = LogisticRegression().fit([[0.0], [1.0], [2.0]], [0, 1, 2])
    >>> bool((response(model, [[2.0]], None) == model.predict_proba([[2.0]]) @ [0, 1, 2]).all())
    True
    """
    classes = getattr(estimator, "classes_", None)
    classes = None if classes is None or not np.size(classes) else classes  # CatBoost's rankers have an empty list
    several = classes is not None and np.ndim(classes) == 1 and len(classes) > 2
    if hasattr(estimator, "decision_function") and not several:
        scores = np.asarray(_call(estimator, "decision_function", X, qid))
        if scores.ndim == 1:
            return np.asarray(scores, dtype=np.float64)
    if classes is not None and hasattr(estimator, "predict_proba"):
        return _expected_grade(estimator, np.asarray(_call(estimator, "predict_proba", X, qid)), np.asarray(classes))
    if type(estimator).__module__ == "xgboost.core":  # a booster takes matrices of its own alone
        import xgboost

        return np.asarray(estimator.predict(xgboost.DMatrix(X), output_margin=True), dtype=np.float64)
    if classes is not None or not hasattr(estimator, "predict"):
        raise InputError(
            f"{type(estimator).__name__} cannot score: a classifier needs decision_function or predict_proba, since "
            "its labels say nothing of the order of documents, and anything else needs predict"
        )
    return np.asarray(_call(estimator, "predict", X, qid), dtype=np.float64)


def _expected_grade(estimator: Any, probability: AnyArray, classes: AnyArray) -> Floats:
    if probability.ndim != 2 or probability.shape[1] != len(classes):
        raise InputError(f"{type(estimator).__name__}.predict_proba must have one column for each of its classes")
    if len(classes) == 2:
        return np.asarray(probability[:, 1], dtype=np.float64)
    try:
        grades = classes.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"{type(estimator).__name__} has {len(classes)} classes that are no grades ({classes[0]!r}, …): their "
            "expected value needs numbers"
        ) from None
    return np.asarray(probability @ grades, dtype=np.float64)


def _call(estimator: Any, method: str, X: Any, qid: ArrayLike | None) -> Any:
    """Call a method, with qid where scikit-learn's routing says that somebody asks for it."""
    call = getattr(estimator, method)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")  # they were matched already
        if qid is None or not hasattr(estimator, "get_metadata_routing"):
            return call(X)
        from sklearn import config_context

        with config_context(enable_metadata_routing=True):
            wanted = {"qid": qid} if estimator.get_metadata_routing().consumes(method, {"qid"}) else {}
            return call(X, **wanted)


def learned_names(estimator: Any) -> tuple[str, ...] | None:
    """Return the names of the features that an estimator or a booster learned from, where it has real ones."""
    names: Any = getattr(estimator, "feature_names_in_", None)
    if names is None and callable(getattr(estimator, "feature_name", None)):  # a booster of LightGBM
        names = estimator.feature_name()
    if names is None:
        names = getattr(estimator, "feature_names", None)  # a booster of XGBoost
    if names is None or callable(names):
        return None
    found = tuple(str(name) for name in names)
    made_up = all(re.fullmatch(rf"(Column_|f)?{j}", name) for j, name in enumerate(found))
    return None if made_up or not found else found
