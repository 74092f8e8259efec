"""From a ranker, a pipeline or a file to the one score that can be exported."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec
import numpy as np

from .._files import read_whole
from .._typing import Floats, Ints
from ..data.transforms import QueryNormalizer, SignedLog, steps_of
from ..data.validation import check_choice
from ..errors import InputError
from ..interop.tree_files import Trees as TreesElsewhere
from ..interop.tree_files import is_booster, looks_like_trees, read_trees
from ..rankers.base import Ranker
from ..rankers.models import KernelModel, LinearModel, StumpModel, TreeModel, check_one_list
from ..rankers.persistence import parse
from .scorers import Linear, Prepared, Scorer, Step, Stumps, Trees, export_step

_FOLDABLE = (
    "StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, SimpleImputer and feature selectors can stand in front"
)
_UNSCALED = "thresholds need no scaling, and SimpleImputer and feature selectors can stand in front"


def fold(
    model: Any, features: Sequence[str] | None = None, *, missing: Literal["zero", "refuse"] | None = None
) -> Scorer:
    """Return the score of a model as a value that can be exported: w·x with the scalers in front folded into w.

    RankBoost becomes its thresholds; an imputer and selectors can stand before it. Boosted trees become trees.

    `model` is a fitted ranker, a scikit-learn pipeline of scalers and a ranker, a booster or estimator of LightGBM or
    XGBoost, the path of a model file of toprank, LightGBM or XGBoost, or a scorer already. `missing` is for trees of
    theirs, which have a side for missing values at each split: "zero" makes 0 of them, "refuse" says there are none.
    With x' = a x + b for the scalers, w'·x' = (a w')·x + w'·b: the weights become a w', the constant goes to
    `offset`. An imputer becomes the missing-value policy. `features` gives the features other names; without any they
    are f1, f2, …

    >>> import toprank as tr
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> data = tr.datasets.make_graded(n_queries=20, random_state=0)
    >>> pipe = make_pipeline(StandardScaler(), tr.ListNet()).fit(data.X, data.y, listnet__qid=data.qid)
    >>> bool(np.allclose(tr.export.fold(pipe).predict(data.X), pipe.predict(data.X)))
    True
    """
    scorer = _fold(model)
    if missing is not None:
        check_choice(("zero", "refuse"), missing=missing)
        if not isinstance(scorer, Trees):
            raise InputError(f"{scorer.source} has a rule for missing values already ({scorer.missing})")
        scorer = replace(scorer, fill=np.zeros(len(scorer.names)) if missing == "zero" else None, gaps="refuse")
    if features is None:
        return scorer
    if len(features) != len(scorer.names):
        raise InputError(f"{len(features)} names are given for the {len(scorer.names)} features of the model")
    twice = next((name for name in features if list(features).count(name) > 1), None)
    if twice is not None:
        raise InputError(f"the name {twice!r} is given twice: every feature needs one of its own")
    return scorer.renamed(tuple(features))


def _fold(model: Any) -> Scorer:
    if isinstance(model, (str, os.PathLike)):
        model = load_model(model)
    if isinstance(model, Scorer):
        return model
    if isinstance(model, Ranker):
        return _from_ranker(model)
    if is_booster(model):
        return _from_trees(read_trees(model))
    from sklearn.pipeline import Pipeline

    if isinstance(model, Pipeline):
        return _from_pipeline(model)
    raise InputError(
        f"a {type(model).__name__} cannot be exported: give a fitted ranker, a pipeline that ends in one, or a file"
    )


def load_model(path: str | os.PathLike[str], whole: tuple[bytes, str] | None = None) -> Ranker | Scorer:
    """Return what a file holds: a saved ranker, a scorer that was saved, or trees of LightGBM or XGBoost.

    `whole` is what `read_whole` found, where it was read already.
    """
    from . import own_json

    content, name = whole or read_whole(path)
    try:
        if looks_like_trees(content):
            return _from_trees(read_trees(path))
        folded = msgspec.json.decode(content, type=_Head).format in own_json.FORMATS
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        folded = False  # the message of `parse` names what is wrong
    return own_json.decode(content, name) if folded else parse(content, name)


class _Head(msgspec.Struct):
    format: str = ""


def _from_trees(trees: TreesElsewhere) -> Trees:
    return Trees(trees.names or _numbered(trees.model.n_features), trees.model, source=trees.source)


def _numbered(width: int) -> tuple[str, ...]:
    return tuple(f"f{j}" for j in range(1, width + 1))


def _from_ranker(ranker: Ranker) -> Scorer:
    inner = _unprepared(ranker)
    steps = tuple(export_step(step) for step in steps_of(ranker.prepare))
    return Prepared(replace(inner, fill=None), steps, inner.fill) if steps else inner


def _unprepared(ranker: Ranker) -> Linear | Stumps | Trees:
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(ranker, "model_")
    kind, width = type(ranker).__name__, ranker.model_.n_features
    check_one_list(ranker.model_, kind)
    known = getattr(ranker, "feature_names_in_", None)
    names = _numbered(width) if known is None else tuple(str(name) for name in known)
    fill = np.zeros(width) if ranker.missing == "zero" else None
    model = ranker.model_
    if isinstance(model, LinearModel):
        return Linear(names, model.coef.astype(np.float64), fill=fill, source=kind)
    if isinstance(model, StumpModel):
        return Stumps(names, model, fill, kind)
    if isinstance(model, KernelModel):
        if model.kernel == "linear":
            return Linear(names, model.alpha @ model.stored, fill=fill, source=kind)
        raise InputError(
            f'{kind} with kernel="{model.kernel}" is not linear in the features and no engine can run it: export a '
            'linear ranker (or kernel="linear")'
        )
    value = model.as_value()
    assert isinstance(value, TreeModel)
    return Trees(names, value, fill, kind, gaps="refuse")


@dataclass(frozen=True)
class _Affine:
    """x' = a x + b on the columns `kept` of the features; `fill` is for x, NaN where nothing fills yet."""

    kept: Ints
    a: Floats
    b: Floats
    fill: Floats
    steps: tuple[Step, ...] = ()
    """Preparations of x before a and b."""

    def then(self, factor: Floats, addend: Floats) -> _Affine:
        return replace(self, a=self.a * factor, b=self.b * factor + addend)

    def filled(self, values: Floats) -> _Affine:
        """Fill x' with `values` where nothing fills yet, told in terms of x."""
        return replace(self, fill=np.where(np.isnan(self.fill), (values - self.b) / self.a, self.fill))

    def only(self, chosen: Ints) -> _Affine:
        return replace(self, kept=self.kept[chosen], a=self.a[chosen], b=self.b[chosen], fill=self.fill[chosen])

    @property
    def plain(self) -> bool:
        return bool((self.a == 1).all() and (self.b == 0).all())

    def prepared(self, step: Step, kind: str, missing: str) -> _Affine:
        if not self.plain:
            raise InputError(f"a scaler in front of {kind} cannot be folded into weights: put it behind")
        chain = self.filled(np.zeros(len(self.kept))) if missing == "zero" else self
        return replace(chain, steps=(*self.steps, step))


def _from_pipeline(pipeline: Any) -> Scorer:
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(pipeline)
    steps = [step for _, step in pipeline.steps if step is not None and step != "passthrough"]
    if not steps or not isinstance(steps[-1], Ranker):
        raise InputError("the last step of the pipeline must be a ranker of toprank")
    if len(steps) == 1:
        return _from_ranker(steps[-1])
    inner = _unprepared(steps[-1])
    width = int(pipeline.n_features_in_)
    chain = _Affine(np.arange(width), np.ones(width), np.zeros(width), np.full(width, np.nan))
    chain = _applied(steps[:-1], chain, _FOLDABLE if isinstance(inner, Linear) else _UNSCALED)
    for step in steps_of(steps[-1].prepare):
        chain = chain.prepared(export_step(step), inner.source, steps[-1].missing)
    if not isinstance(inner, Linear) and not chain.plain:
        raise InputError(f"scalers cannot be folded into {inner.source}, which is not linear: {_UNSCALED}")
    if inner.fill is not None and not chain.steps:  # a preparation lets no gap through
        chain = chain.filled(inner.fill)
    known = getattr(pipeline, "feature_names_in_", None)
    names = _numbered(width) if known is None else tuple(str(name) for name in known)
    policy = _policy(chain, names)
    whole = _widened(inner, names, chain, None if chain.steps else policy)
    return Prepared(whole, chain.steps, policy) if chain.steps else whole


def _widened(inner: Scorer, names: tuple[str, ...], chain: _Affine, policy: Floats | None) -> Linear | Stumps | Trees:
    """Return the score over all features before any selector, scalers folded in."""
    width = len(names)
    if isinstance(inner, Stumps):
        model = replace(inner.model, width=width, feature=chain.kept[inner.model.feature])
        return Stumps(names, model, policy, inner.source, inner.offset)
    if isinstance(inner, Trees):
        trees = inner.model
        moved = np.where(trees.feature < 0, -1, chain.kept[np.maximum(trees.feature, 0)])
        return Trees(names, replace(trees, width=width, feature=moved), policy, inner.source, inner.offset, "refuse")
    assert isinstance(inner, Linear)
    weights, center, scale = np.zeros(width), np.zeros(width), np.ones(width)
    weights[chain.kept] = inner.weights * chain.a
    center[chain.kept], scale[chain.kept] = -chain.b / chain.a, 1 / chain.a
    offset = inner.offset + float(inner.weights @ chain.b)
    return Linear(names, weights, offset, policy, inner.source, center, scale)


def _policy(chain: _Affine, names: tuple[str, ...]) -> Floats | None:
    """Return what stands in for missing values, None where nothing does."""
    gaps = np.isnan(chain.fill)
    if gaps.all():
        return None
    if gaps.any():
        column = int(chain.kept[np.flatnonzero(gaps)[0]])
        raise InputError(f"the imputer has nothing to put in for feature {names[column]!r}: drop the feature")
    fill = np.zeros(len(names))
    fill[chain.kept] = chain.fill
    return fill


def _applied(steps: list[Any], chain: _Affine, remedy: str) -> _Affine:
    for step in steps:
        chain = _step(step, chain, remedy)
    return chain


def _step(step: Any, chain: _Affine, remedy: str) -> _Affine:
    from sklearn.feature_selection import SelectorMixin
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

    kind, one, none = type(step).__name__, np.ones(len(chain.kept)), np.zeros(len(chain.kept))
    if isinstance(step, Pipeline):
        inside = [inner for _, inner in step.steps if inner is not None and inner != "passthrough"]
        return _applied(inside, chain, remedy)
    if isinstance(step, (MinMaxScaler, MaxAbsScaler)) and getattr(step, "clip", False):
        raise InputError(f"{kind}(clip=True) is not linear and cannot be folded into weights: fit with clip=False")
    if isinstance(step, StandardScaler):
        spread = one if step.scale_ is None else step.scale_
        middle = step.mean_ if step.with_mean and step.mean_ is not None else none
        return chain.then(1 / spread, -middle / spread)
    if isinstance(step, MinMaxScaler):
        return chain.then(step.scale_, step.min_)
    if isinstance(step, MaxAbsScaler):
        return chain.then(1 / step.scale_, none)
    if isinstance(step, RobustScaler):
        spread = step.scale_ if step.with_scaling else one
        middle = step.center_ if step.with_centering else none
        return chain.then(1 / spread, -middle / spread)
    if isinstance(step, SimpleImputer):
        return _imputed(step, chain)
    if isinstance(step, SignedLog):
        return chain.prepared("log", kind, step.missing)
    if isinstance(step, QueryNormalizer):
        return chain.prepared(step.method, kind, step.missing)
    if isinstance(step, SelectorMixin):
        return chain.only(step.get_support(indices=True))
    raise InputError(f"{kind} cannot be folded into weights: {remedy}")


def _imputed(step: Any, chain: _Affine) -> _Affine:
    if chain.steps:
        raise InputError("SimpleImputer behind SignedLog or QueryNormalizer comes too late: put it in front of them")
    if step.add_indicator:
        raise InputError("SimpleImputer(add_indicator=True) makes features that no engine has: fit without indicators")
    if not (isinstance(step.missing_values, float) and np.isnan(step.missing_values)):
        raise InputError(
            f"SimpleImputer(missing_values={step.missing_values!r}) replaces a number, which is not linear: use NaN"
        )
    values = np.asarray(step.statistics_, dtype=np.float64)
    if np.isnan(values).any():
        column = int(np.flatnonzero(np.isnan(values))[0])
        raise InputError(f"SimpleImputer found no value in column {column} and drops it: drop the feature before")
    return chain.filled(values)
