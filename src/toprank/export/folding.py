"""From a ranker, a pipeline or a file to the one score that can be exported."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from .._files import read_whole
from .._typing import Floats, Ints
from ..data.preparation import steps_of
from ..data.transforms import QueryNormalizer, SignedLog
from ..data.validation import check_choice
from ..errors import InputError
from ..interop.tree_files import is_booster, looks_like_trees, read_trees
from ..model import Inputs, KernelFunction, LinearFunction, MissingRule, Model, StumpFunction, TreeFunction
from ..model.missing import RULES, Missing
from ..rankers.base import Ranker
from ..rankers.persistence import parse_model

_FOLDABLE = (
    "StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, SimpleImputer and feature selectors can stand in front"
)
_UNSCALED = "thresholds need no scaling, and SimpleImputer and feature selectors can stand in front"


def fold(model: Any, features: Sequence[str] | None = None, *, missing: Missing | None = None) -> Model:
    """Return the score of a model as a value that can be exported: w·x with the scalers in front folded into w.

    RankBoost becomes its thresholds; an imputer and selectors can stand before it. Boosted trees become trees.

    `model` is a fitted ranker, a scikit-learn pipeline of scalers and a ranker, a booster or estimator of LightGBM,
    XGBoost or CatBoost, the path of a model file of toprank or of theirs, or a model already. `missing` is for trees of
    theirs, which have a side for missing values at each split: "zero" makes 0 of them, "error" says there are none.
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
    found = _fold(model)
    if missing is not None:
        check_choice(RULES, missing=missing)
        if missing in ("median", "indicator"):
            raise InputError(f'missing="{missing}" is learned in fit, and cannot be added to {found.source} afterwards')
        if not isinstance(found.function, TreeFunction):
            raise InputError(f"{found.source} has a rule for missing values already ({found.rule.words})")
        rule = MissingRule("fill", np.zeros(found.n_features)) if missing == "zero" else MissingRule()
        found = replace(found, inputs=replace(found.inputs, missing=rule))
    if features is None:
        return found
    if len(features) != len(found.names):
        raise InputError(f"{len(features)} names are given for the {len(found.names)} features of the model")
    twice = next((name for name in features if list(features).count(name) > 1), None)
    if twice is not None:
        raise InputError(f"the name {twice!r} is given twice: every feature needs one of its own")
    return found.renamed(features)


def _fold(model: Any) -> Model:
    if isinstance(model, (str, os.PathLike)):
        return _exportable(read_model(model))
    if isinstance(model, Model):
        return _exportable(model)
    if isinstance(model, Ranker):
        return _of_ranker(model)
    if is_booster(model):
        return read_trees(model)
    from sklearn.pipeline import Pipeline

    if isinstance(model, Pipeline):
        return _from_pipeline(model)
    raise InputError(
        f"a {type(model).__name__} cannot be exported: give a fitted ranker, a pipeline that ends in one, or a file"
    )


def read_model(path: str | os.PathLike[str], whole: tuple[bytes, str] | None = None) -> Model:
    """Return the model of a file: of a saved ranker, of an exported JSON file, or trees of other packages.

    `whole` is what `read_whole` found, where it was read already.
    """
    from . import own_json

    content, name = whole or read_whole(path)
    try:
        if looks_like_trees(content):
            return read_trees(path)
        folded = msgspec.json.decode(content, type=_Head).format in own_json.FORMATS
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        folded = False  # the message of `parse_model` names what is wrong
    return own_json.decode(content, name) if folded else parse_model(content, name)


class _Head(msgspec.Struct):
    format: str = ""


def _of_ranker(ranker: Ranker) -> Model:
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(ranker, "model_")
    return _exportable(ranker.model_)


def _exportable(model: Model) -> Model:
    """Return a model whose function engines know: linear, thresholds or trees."""
    model.check_one_score()
    function = model.function.as_value()
    if isinstance(function, KernelFunction):
        if function.kernel != "linear":
            raise InputError(
                f'{model.source} with kernel="{function.kernel}" is not linear in the features and no engine can run '
                'it: export a linear ranker (or kernel="linear")'
            )
        function = LinearFunction(function.alpha @ function.stored)
    return replace(model, function=function)


@dataclass(frozen=True)
class _Affine:
    """x' = a x + b on the columns `kept` of the features; `fill` is for x, NaN where nothing fills yet."""

    kept: Ints
    a: Floats
    b: Floats
    fill: Floats
    steps: tuple[str, ...] = ()
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

    def prepared(self, step: str, kind: str, fill: Floats | None) -> _Affine:
        """Prepare x' by one more step; `fill` is what that step, or the ranker, puts in for missing values before."""
        if not self.plain:
            raise InputError(f"a scaler in front of {kind} cannot be folded into weights: put it behind")
        chain = self if fill is None else self.filled(fill)
        return replace(chain, steps=(*self.steps, step))


def _from_pipeline(pipeline: Any) -> Model:
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(pipeline)
    steps = [step for _, step in pipeline.steps if step is not None and step != "passthrough"]
    if not steps or not isinstance(steps[-1], Ranker):
        raise InputError("the last step of the pipeline must be a ranker of toprank")
    inner = _of_ranker(steps[-1])
    if len(steps) == 1:
        return inner
    if inner.rule.indicated:
        raise InputError('missing="indicator" behind other steps cannot be folded: fit with missing="median" or "zero"')
    if inner.inputs.widens:
        raise InputError(
            f"prepare={','.join(inner.inputs.words)!r} makes more columns and cannot be folded behind other steps: "
            "export a ranker that stands alone"
        )
    width = int(pipeline.n_features_in_)
    chain = _Affine(np.arange(width), np.ones(width), np.zeros(width), np.full(width, np.nan))
    linear = isinstance(inner.function, LinearFunction)
    chain = _applied(steps[:-1], chain, _FOLDABLE if linear else _UNSCALED)
    for step in inner.inputs.words:
        chain = chain.prepared(step, inner.source, inner.rule.fill)
    if not linear and not chain.plain:
        raise InputError(f"scalers cannot be folded into {inner.source}, which is not linear: {_UNSCALED}")
    if inner.rule.fill is not None and not chain.steps:  # a preparation lets no missing value through
        chain = chain.filled(inner.rule.fill)
    known = getattr(pipeline, "feature_names_in_", None)
    names = None if known is None else tuple(str(name) for name in known)
    inputs = Inputs(width, names, steps=steps_of(chain.steps))
    fill = _fill_of(chain, inputs.labels)
    inputs = inputs if fill is None else replace(inputs, missing=MissingRule("fill", fill))
    return _widened(inner, inputs, chain)


def _widened(inner: Model, inputs: Inputs, chain: _Affine) -> Model:
    """Return the score over all features before any selector, scalers folded in."""
    width, function = inputs.n_features, inner.function
    if isinstance(function, StumpFunction):
        stumps = replace(function, width=width, feature=chain.kept[function.feature])
        return Model(stumps, inputs, inner.source, inner.offset)
    if isinstance(function, TreeFunction):
        moved = np.where(function.feature < 0, -1, chain.kept[np.maximum(function.feature, 0)])
        return Model(replace(function, width=width, feature=moved), inputs, inner.source, inner.offset)
    weights, center, scale = np.zeros(width), np.zeros(width), np.ones(width)
    weights[chain.kept] = inner.weights * chain.a
    center[chain.kept], scale[chain.kept] = -chain.b / chain.a, 1 / chain.a
    offset = inner.offset + float(inner.weights @ chain.b)
    return Model(LinearFunction(weights), inputs, inner.source, offset, (center, scale))


def _fill_of(chain: _Affine, names: tuple[str, ...]) -> Floats | None:
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
        return chain.prepared("log", kind, _zeros(step, chain))
    if isinstance(step, QueryNormalizer):
        return chain.prepared("query" if step.method == "minmax" else "standard", kind, _zeros(step, chain))
    if isinstance(step, SelectorMixin):
        return chain.only(step.get_support(indices=True))
    raise InputError(f"{kind} cannot be folded into weights: {remedy}")


def _zeros(step: Any, chain: _Affine) -> Floats | None:
    """Return what a transformer of ours puts in for missing values."""
    return np.zeros(len(chain.kept)) if step.missing == "zero" else None


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
