"""CatBoost's symmetric trees as one value: from an estimator or from the JSON that it saves.

All splits of a level ask the same: is float32(x) above a border? Leaf i is reached where the splits whose bits stand in
i say yes. What a sum of such trees cannot say (categories, text, other growth) is refused by name.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from ..errors import InputError
from ..model import Inputs, MissingRule, Model, TreeFunction
from ..model.functions import Nested
from .tree_files import rounded_below


class _Split(msgspec.Struct):
    border: float = 0.0
    float_feature_index: int = 0
    split_type: str = "FloatFeature"


class _Tree(msgspec.Struct):
    leaf_values: list[float]
    splits: list[_Split] | None = None


class _Feature(msgspec.Struct):
    feature_index: int
    flat_feature_index: int
    nan_value_treatment: Literal["AsIs", "AsFalse", "AsTrue"]
    feature_id: str = ""


class _Features(msgspec.Struct):
    float_features: list[_Feature] = []
    categorical_features: list[Any] = []


class _File(msgspec.Struct):
    features_info: _Features
    oblivious_trees: list[_Tree]
    scale_and_bias: tuple[float, list[float]]


def looks_like_catboost(content: bytes) -> bool:
    """Say whether a file looks like CatBoost's JSON."""
    return content.startswith(b"{") and b'"features_info"' in content[:200]


def read_catboost(model: Any) -> Model:
    """Return the model of a fitted estimator of CatBoost; scores are raw, as `RawFormulaVal` has them.

    >>> import catboost
    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=20, random_state=0)
    >>> theirs = catboost.CatBoostRegressor(iterations=3, verbose=False, allow_writing_files=False)
    >>> trees = read_catboost(theirs.fit(data.X, data.y))
    >>> trees.source, bool(np.allclose(trees.scores(data), theirs.predict(data.X)))
    ('CatBoost', True)
    """
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.json")
        model.save_model(path, format="json")
        return parse_catboost(Path(path).read_bytes(), "the model")


def parse_catboost(content: bytes, place: str) -> Model:
    """Return the model of CatBoost's JSON; `place` names it in messages."""
    try:
        file = msgspec.json.decode(content, type=_File)
        kinds = {split.split_type for tree in file.oblivious_trees for split in tree.splits or []}
        if file.features_info.categorical_features or kinds - {"FloatFeature"}:
            raise ValueError("it splits by categories, which no target can: encode them as numbers")
        scale, biases = file.scale_and_bias
        if len(biases) != 1:
            raise ValueError("it scores several classes or targets, and a ranking needs one score")
        features = {feature.feature_index: feature for feature in file.features_info.float_features}
        width = 1 + max((feature.flat_feature_index for feature in features.values()), default=0)
        trees: list[Nested] = [_tree(tree, features, scale) for tree in file.oblivious_trees]
        names = [""] * width
        for feature in features.values():
            names[feature.flat_feature_index] = feature.feature_id
        plain = not all(names) or len(set(names)) != width or names == [str(j) for j in range(width)]
        function = TreeFunction.build(width, [biases[0], *trees] if biases[0] else trees)
        return Model(function, Inputs(width, None if plain else tuple(names), MissingRule("native")), "CatBoost")
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError, KeyError, IndexError, InputError) as error:
        raise InputError(f"{place} is not a CatBoost model that can be read here: {error}") from None


def _tree(tree: _Tree, features: dict[int, _Feature], scale: float) -> Nested:
    """Return a symmetric tree, the split of the highest bit at its root."""
    splits = tree.splits or []
    if len(tree.leaf_values) != 2 ** len(splits):
        raise ValueError(f"a tree of {len(splits)} splits has {len(tree.leaf_values)} leaves")
    borders = np.array([split.border for split in splits], dtype=np.float32)
    # x goes low where float32(x) ≤ border, which is where it is below the next float32 number.
    with np.errstate(over="ignore"):
        above = np.nextafter(borders, np.float32(np.inf))
        thresholds = np.where(np.isfinite(above), rounded_below(above), borders.astype(np.float64)).tolist()
    level: list[Nested] = [scale * value for value in tree.leaf_values]
    for split, threshold in zip(splits, thresholds, strict=True):  # the lowest bit first: pairs of neighbours
        feature = features[split.float_feature_index]
        missing_low = feature.nan_value_treatment != "AsTrue"
        column = feature.flat_feature_index
        level = [(column, threshold, missing_low, low, high) for low, high in zip(level[::2], level[1::2], strict=True)]
    return level[0]
