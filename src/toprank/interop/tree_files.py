"""Trees of other packages as one value: from a booster, a scikit-learn estimator of theirs, or a file.

LightGBM compares x ≤ threshold in float64. XGBoost rounds x to float32 and compares x < split_condition; the same is
decided by x ≤ the largest float64 number whose rounding is below the condition, so one kind of comparison does for
both, to the last bit. What a sum of trees cannot say (categories, linear leaves, several classes) is refused by name.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import log
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from .._files import read_whole
from .._typing import AnyArray, Floats
from ..errors import InputError, needed
from ..model import Inputs, MissingRule, Model, TreeFunction
from ..model.functions import Nested

ZERO = float(np.float32(1e-35))
"""What LightGBM takes for 0."""
_CATEGORICAL, _DEFAULT_LEFT = 1, 2
_MISSING = ("none", "zero", "nan")
"""LightGBM's missing types, by the bits 2 and 3 of a decision type."""


def read_trees(source: Any) -> Model:
    """Return the model of a booster, of a fitted estimator of LightGBM, XGBoost or CatBoost, or of a file of theirs.

    Files are LightGBM's text (`booster.save_model`), XGBoost's JSON or UBJSON and CatBoost's JSON; only UBJSON needs
    its package to be installed. Scores are raw: what the package returns with `raw_score=True` or `output_margin=True`.
    XGBoost adds up in float32 and this model in float64, so the last digits differ.

    >>> import lightgbm as lgb
    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=20, random_state=0)
    >>> ranker = lgb.LGBMRanker(n_estimators=3, verbosity=-1).fit(data.X, data.y, group=data.lengths)
    >>> trees = tr.interop.read_trees(ranker)
    >>> trees.source, bool((trees.scores(data) == ranker.booster_.predict(data.X, raw_score=True)).all())
    ('LightGBM', True)
    """
    if isinstance(source, (str, os.PathLike)):
        return _from_file(Path(source))
    package = type(source).__module__.partition(".")[0]
    if package == "lightgbm":
        booster = source if hasattr(source, "model_to_string") else source.booster_
        return _lightgbm(booster.model_to_string().encode(), "the booster")
    if package == "xgboost":
        booster = source
        if hasattr(source, "get_booster"):  # their estimators score with the best round alone
            booster = source.get_booster()
            best = getattr(source, "best_iteration", None) if source.early_stopping_rounds else None
            booster = booster if best is None else booster[: best + 1]
        return _xgboost(bytes(booster.save_raw("json")), "the booster")
    if package == "catboost":
        from .catboost_trees import read_catboost

        return read_catboost(source)
    raise InputError(
        f"{type(source).__name__} is no booster of LightGBM, XGBoost or CatBoost, nor the path of a file of theirs"
    )


def is_booster(model: Any) -> bool:
    """Say whether an object is one that `read_trees` takes."""
    return type(model).__module__.partition(".")[0] in ("lightgbm", "xgboost", "catboost")


def looks_like_trees(content: bytes) -> bool:
    """Say whether a file looks like a model of LightGBM, XGBoost or CatBoost."""
    from .catboost_trees import looks_like_catboost

    return (
        looks_like_catboost(content)
        or content.startswith(b"tree\n")
        or (content.startswith(b"{") and b"learner" in content[:200])
    )


def _from_file(path: Path) -> Model:
    content, _ = read_whole(path)
    if content.startswith(b"tree\n"):
        return _lightgbm(content, str(path))
    from .catboost_trees import looks_like_catboost, parse_catboost

    if looks_like_catboost(content):
        return parse_catboost(content, str(path))
    if looks_like_trees(content):
        if not content.startswith(b'{"') and not content[1:2].isspace():
            content = _from_ubjson(content, path)
        return _xgboost(content, str(path))
    raise InputError(f"{path} is no model of LightGBM (text), XGBoost (JSON, UBJSON) or CatBoost (JSON)")


def _from_ubjson(content: bytes, path: Path) -> bytes:
    xgb = needed("xgboost", "reading UBJSON")
    try:
        return bytes(xgb.Booster(model_file=bytearray(content)).save_raw("json"))
    except xgb.core.XGBoostError as error:
        raise InputError(f"{path} is no model that XGBoost can read: {str(error).splitlines()[0]}") from None


def _lightgbm(content: bytes, place: str) -> Model:
    try:
        head, *parts = content.decode().partition("\nend of trees")[0].split("\nTree=")
        about = _fields(head)
        if int(about.get("num_tree_per_iteration", "1")) != 1:
            raise ValueError("it scores several classes, and a ranking needs one score")
        if "average_output" in head.splitlines():
            raise ValueError("a random forest averages its trees: train with boosting=gbdt")
        width = int(about["max_feature_idx"]) + 1
        trees = [_lightgbm_tree(_fields(part)) for part in parts]
        names = tuple(about["feature_names"].split(" "))
        plain = names == tuple(f"Column_{j}" for j in range(width)) or len(set(names)) != width
        return _model(TreeFunction.build(width, trees), None if plain else names, "LightGBM")
    except (UnicodeDecodeError, ValueError, KeyError, IndexError, InputError) as error:
        raise InputError(f"{place} is not a LightGBM model that can be read here: {_said(error)}") from None


def _model(trees: TreeFunction, names: tuple[str, ...] | None, source: str) -> Model:
    """Return trees as a model: each split has a side for a missing value."""
    return Model(trees, Inputs(trees.n_features, names, MissingRule("native")), source)


def _fields(text: str) -> dict[str, str]:
    return {key: value for key, sign, value in (line.partition("=") for line in text.splitlines()) if sign}


def _said(error: Exception) -> str:
    return f"it lacks {error}" if isinstance(error, KeyError) else str(error)


def _lightgbm_tree(fields: dict[str, str]) -> Nested:
    if fields.get("is_linear", "0") != "0":
        raise ValueError("its leaves are linear: train with linear_tree=false")
    leaf = [float(value) for value in fields["leaf_value"].split()]
    if len(leaf) == 1:
        return leaf[0]
    keys = ("split_feature", "decision_type", "left_child", "right_child")
    feature, kind, left, right = ([int(value) for value in fields[key].split()] for key in keys)
    # An infinite threshold parts numbers from gaps; so does the largest number there is.
    threshold = np.nan_to_num([float(value) for value in fields["threshold"].split()], nan=np.nan).tolist()
    sides = [_missing_low(kind[n], threshold[n], feature[n]) for n in range(len(feature))]
    return _nested(feature, threshold, sides, left, right, leaf)


def _missing_low(kind: int, threshold: float, feature: int) -> bool:
    """Return where LightGBM sends a missing value: a missing type of none takes 0 for it."""
    if kind & _CATEGORICAL:
        raise ValueError(f"it splits feature {feature} by categories, which no target can: encode them as numbers")
    default_left, missing = bool(kind & _DEFAULT_LEFT), _MISSING[kind >> 2 & 3]
    if missing == "nan":
        return default_left
    if missing == "zero" and not (threshold >= ZERO if default_left else threshold < -ZERO):
        raise ValueError(
            f"it takes 0 for missing and sends it off its side of a threshold of feature {feature}: train with "
            "zero_as_missing=false"
        )
    return threshold >= 0


def _nested(
    feature: Sequence[int],
    threshold: Sequence[float],
    missing_low: Sequence[bool],
    left: Sequence[int],
    right: Sequence[int],
    leaf: Sequence[float] | None,
) -> Nested:
    """Return one tree from its root; a negative child is a leaf of the list `leaf`, without one −1 marks a leaf."""
    done: dict[int, Nested] = {}
    stack, seen = [0], 0
    while stack:
        node = stack[-1]
        seen += 1
        if seen > 3 * len(feature) + 3:
            raise ValueError("a tree has no end")
        if leaf is None and left[node] == -1:
            done[node] = threshold[node]
            stack.pop()
            continue
        children = [(child, leaf[~child] if leaf is not None and child < 0 else done.get(child))
                    for child in (left[node], right[node])]  # fmt: skip
        todo = [child for child, value in children if value is None]
        if todo:
            stack += todo
            continue
        low, high = (value for _, value in children)
        assert low is not None
        assert high is not None
        done[stack.pop()] = (feature[node], threshold[node], missing_low[node], low, high)
    return done[0]


class _TreeParam(msgspec.Struct):
    size_leaf_vector: str = "1"


class _XgbTree(msgspec.Struct):
    split_indices: list[int]
    split_conditions: list[float]
    left_children: list[int]
    right_children: list[int]
    default_left: list[int]
    split_type: list[int] = []
    tree_param: _TreeParam = msgspec.field(default_factory=_TreeParam)


class _XgbTrees(msgspec.Struct):
    trees: list[_XgbTree] = []


class _XgbBooster(msgspec.Struct):
    name: str
    model: _XgbTrees = msgspec.field(default_factory=_XgbTrees)


class _XgbParam(msgspec.Struct):
    base_score: str
    num_feature: str
    num_class: str = "0"
    num_target: str = "1"


class _XgbObjective(msgspec.Struct):
    name: str


class _XgbLearner(msgspec.Struct):
    gradient_booster: _XgbBooster
    learner_model_param: _XgbParam
    objective: _XgbObjective
    feature_names: list[str] = []


class _XgbFile(msgspec.Struct):
    learner: _XgbLearner


def _xgboost(content: bytes, place: str) -> Model:
    try:
        learner = msgspec.json.decode(content, type=_XgbFile).learner
        param, booster = learner.learner_model_param, learner.gradient_booster
        if booster.name != "gbtree":
            raise ValueError(f"its booster is {booster.name}, and only gbtree is a plain sum of trees")
        if int(param.num_class) > 1 or int(param.num_target) > 1:
            raise ValueError("it scores several classes or targets, and a ranking needs one score")
        trees = [_xgboost_tree(tree) for tree in booster.model.trees]
        base = _margin(float(param.base_score.strip("[]")), learner.objective.name)
        width = int(param.num_feature)
        names = tuple(learner.feature_names)
        function = TreeFunction.build(width, [base, *trees] if base else trees, absent_missing=True)
        return _model(function, names if len(set(names)) == width else None, "XGBoost")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError, IndexError, InputError) as error:
        raise InputError(f"{place} is not an XGBoost model that can be read here: {error}") from None


def _xgboost_tree(tree: _XgbTree) -> Nested:
    if int(tree.tree_param.size_leaf_vector) > 1:
        raise ValueError("its leaves are vectors: train with multi_strategy=one_output_per_tree")
    if any(tree.split_type):
        feature = tree.split_indices[tree.split_type.index(1)]
        raise ValueError(f"it splits feature {feature} by categories, which no target can: encode them as numbers")
    conditions = np.array(tree.split_conditions, dtype=np.float32)
    split = np.array(tree.left_children) != -1
    threshold = np.where(split, rounded_below(conditions), conditions.astype(np.float64))
    sides = [bool(side) for side in tree.default_left]
    return _nested(tree.split_indices, threshold.tolist(), sides, tree.left_children, tree.right_children, None)


def _margin(base: float, objective: str) -> float:
    """Return the score before any tree: the base score before the objective's link, as a float32 number."""
    if objective.startswith(("binary:logi", "reg:logi")):
        value = log(base / (1 - base))
    elif objective in ("count:poisson", "reg:gamma", "reg:tweedie"):
        value = log(base)
    else:
        value = base
    return float(np.float32(value))


def rounded_below(limit: AnyArray) -> Floats:
    """Return for float32 numbers the largest float64 numbers that round to a float32 number below them.

    >>> threshold = float(rounded_below(np.float32([0.1]))[0])
    >>> bool(np.float32(threshold) < np.float32(0.1) <= np.float32(np.nextafter(threshold, 1)))
    True
    """
    below = np.nextafter(limit, np.float32(-np.inf))
    middle = (below.astype(np.float64) + limit.astype(np.float64)) / 2
    middle = np.where(np.isfinite(below), middle, np.finfo(np.float64).min)
    with np.errstate(over="ignore"):
        return np.where(middle.astype(np.float32) < limit, middle, np.nextafter(middle, -np.inf))
