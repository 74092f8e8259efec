"""Model files: versioned JSON that is data, never code.

Parameters, models and learner state are numbers, strings, lists, arrays and a closed set of frozen values (the
dataclasses that `toprank.surrogates`, `toprank.measures`, `toprank.solvers` and `toprank.model.functions` list in
`__all__`). Nothing
else can be named by a file, and sizes are checked before anything is allocated.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Mapping, Sequence
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np

from .. import measures, solvers, surrogates
from .._files import read_whole, replacing
from .._version import __version__
from ..data.preparation import Knotted, Ramps, Step, Thresholds, steps_of
from ..data.sketch import Sketch
from ..errors import InputError
from ..model import Inputs, MissingRule, Model, functions
from ..penalties import L1, L2

if TYPE_CHECKING:
    from .base import Ranker

FORMAT = "toprank-model"
VERSION = 1
LARGEST_COUNT = 2**31 - 1
"""Largest count that a file may ask for."""


T = TypeVar("T")


class ModelFile(msgspec.Struct, forbid_unknown_fields=True):
    """The layout of a model file."""

    format: str
    version: int
    toprank: str
    ranker: str
    params: dict[str, Any]
    n_features: int
    feature_names: list[str] | None
    n_queries: int
    model: dict[str, Any]
    state: dict[str, Any]
    learned_from: str | None = None
    inputs: dict[str, Any] | None = None
    """What rows become before the model scores them: "missing" and "steps"; older files have it in the parameters."""


def content_of(ranker: Ranker, names: Sequence[str] | None = None) -> ModelFile:
    """Return what a file of the ranker holds; `names` of the features where the ranker itself has none."""
    names = getattr(ranker, "feature_names_in_", names)
    return ModelFile(
        format=FORMAT,
        version=VERSION,
        toprank=__version__,
        ranker=type(ranker).__name__,
        params={key: encode(value, key) for key, value in ranker.get_params(deep=False).items()},
        n_features=int(ranker.n_features_in_),
        feature_names=None if names is None else [str(name) for name in names],
        n_queries=int(ranker.n_queries_in_),
        model=encode(ranker.function_.as_value(), "model"),
        state=_state(ranker),
        learned_from=None if ranker.learned_from_ is None else ranker.learned_from_.text(),
        inputs={"missing": encode(ranker.inputs_.missing, "missing"), "steps": _encoded_steps(ranker)},
    )


def _encoded_steps(ranker: Ranker) -> list[Any]:
    """Return the preparation: words, and steps that learned something as values."""
    steps = ranker.inputs_.steps
    return [item for step in steps for item in ([encode(step, "steps")] if step.learns else step.words)]


def _state(ranker: Ranker) -> dict[str, Any]:
    """Return what learning goes on from; where there is a ranker for each label, their files."""
    ones = vars(ranker).get("estimators_")
    if ones is not None:
        return {"estimators_": [msgspec.to_builtins(content_of(one)) for one in ones]}
    names = [*ranker.state_attributes, *(name for name in ranker.optional_attributes if name in vars(ranker))]
    return {name: encode(getattr(ranker, name), name) for name in names}


def save(ranker: Ranker, path: str | os.PathLike[str]) -> None:
    """Write a fitted ranker; the file appears whole or not at all."""
    with replacing(path) as draft:
        draft.write_bytes(msgspec.json.format(msgspec.json.encode(content_of(ranker)), indent=1) + b"\n")


def load(path: str | os.PathLike[str]) -> Ranker:
    """Read a model file written by `Ranker.save`; `-` is standard input.

    >>> import tempfile, os, toprank as tr
    >>> ranker = tr.ListNet().fit([[1.0], [0.0]], [1, 0])
    >>> file = os.path.join(tempfile.mkdtemp(), "model.json")
    >>> ranker.save(file)
    >>> bool((tr.load(file).coef_ == ranker.coef_).all())
    True
    """
    return parse(*read_whole(path))


def parse(text: bytes, file: str) -> Ranker:
    """Do what `load` does for the contents of a file."""
    return _read(text, file, _restore)


class _Head(msgspec.Struct):
    format: str = ""


def is_model_file(text: bytes) -> bool:
    """Say whether a file calls itself one of ours."""
    try:
        return msgspec.json.decode(text, type=_Head).format == FORMAT
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False


def parse_model(text: bytes, file: str) -> Model:
    """Return what a model file scores with: no estimator is made, and scikit-learn is not loaded."""
    return _read(text, file, _model)


def _read(text: bytes, file: str, restore: Callable[[ModelFile], T]) -> T:
    try:
        content = msgspec.json.decode(text, type=ModelFile)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{file} is not a toprank model: {error}") from None
    if content.format != FORMAT or content.version != VERSION:
        raise InputError(
            f"{file} is {content.format!r} version {content.version}; this toprank reads {FORMAT!r} version {VERSION}"
        )
    try:
        return restore(content)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    except RecursionError:
        raise InputError(f"{file} is not a toprank model: it is nested too deeply") from None


def _restore(content: ModelFile) -> Ranker:
    kind = _kind_of(content.ranker)
    hints = get_type_hints(kind)
    written = FORMER_RANKERS.get(content.ranker, {}) | {
        key: decode(value, f"$.params.{key}") for key, value in content.params.items()
    }
    params = {key: _parameter(value, key, hints.get(key)) for key, value in _upgraded(kind, written).items()}
    try:
        ranker: Ranker = kind(**params)
    except TypeError as error:
        raise InputError(f"the parameters do not fit {content.ranker}: {error}") from None
    model, names = _model(content), content.feature_names
    function = model.function
    several = isinstance(function, functions.LinearFunctions) and "estimators_" in hints
    wanted = ("estimators_",) if several else ranker.state_attributes
    if set(content.state) - set(ranker.optional_attributes) != set(wanted):
        raise InputError(f"$.state must hold exactly: {', '.join(wanted) or 'nothing'}")
    ranker.function_, ranker.inputs_ = function, model.inputs
    ranker.n_features_in_, ranker.n_queries_in_ = content.n_features, content.n_queries
    if names is not None:
        ranker.feature_names_in_ = np.array(names, dtype=object)
    ranker.learned_from_ = None if content.learned_from is None else Sketch.read(content.learned_from)
    if several:
        vars(ranker)["estimators_"] = _rankers_of_labels(content, function)
        return ranker
    for name, value in content.state.items():
        setattr(ranker, name, decode(value, f"$.state.{name}"))
    ranker._check_state()
    _check_weights(ranker)
    return ranker


def _upgraded(kind: type[Ranker], params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a file as this version writes them."""
    try:
        return kind.upgraded_parameters(params)
    except TypeError as error:
        raise InputError(f"the parameters do not fit {kind.__name__}: {error}") from None


def _check_weights(ranker: Ranker) -> None:
    """Refuse a stream whose weights are not those of the state that it goes on from."""
    from .online import OnlineRanker  # which imports this file

    if isinstance(ranker, OnlineRanker):
        expected = ranker.average_coef_ if ranker.averaged_ else ranker.last_coef_
        if not np.allclose(ranker.coef_, expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max(initial=0.0)):
            raise InputError("$.model has other weights than $.state.state_")


def _rankers_of_labels(content: ModelFile, function: Any) -> list[Ranker]:
    """Return one ranker for each label: of the kind that the file names, and each of one label only."""
    files = content.state["estimators_"]
    if not isinstance(files, list) or len(files) != len(function.coef):
        raise InputError(f"$.state.estimators_ must be {len(function.coef)} rankers, one for each label of $.model")
    ones = []
    for i, file in enumerate(files):
        try:
            part = msgspec.convert(file, ModelFile)
        except msgspec.ValidationError as error:
            raise InputError(f"$.state.estimators_[{i}]: {error}") from None
        if part.ranker != content.ranker or "estimators_" in part.state:
            raise InputError(f"$.state.estimators_[{i}] is not a {content.ranker} of one label")
        ones.append(_restore(part))
        if not np.array_equal(ones[-1].coef_, function.coef[i]):
            raise InputError(f"$.state.estimators_[{i}] has other weights than $.model")
    return ones


def _model(content: ModelFile) -> Model:
    """Return the model of a file, which fits what the file says of its features."""
    _check_known(content.ranker)
    function = decode(content.model, "$.model")
    if content.n_features < 1 or content.n_queries < 0:
        raise InputError("$.n_features must be at least 1, and $.n_queries not below 0")
    names = content.feature_names
    if names is not None and len(names) != content.n_features:
        raise InputError(f"$.feature_names has {len(names)} names for {content.n_features} features")
    rule, steps = _rule_and_steps(content)
    inputs = Inputs(content.n_features, None if names is None else tuple(names), rule, steps)
    if not isinstance(function, functions.ScoringFunction) or function.n_features != inputs.n_outputs:
        raise InputError(f"$.model does not score {inputs.n_outputs} features")
    return Model(function, inputs, content.ranker)


def _rule_and_steps(content: ModelFile) -> tuple[MissingRule, tuple[Step, ...]]:
    """Return the rule for missing cells and the preparation that a file keeps; older ones have them as parameters."""
    if content.inputs is None:
        word = _parameter(content.params.get("missing", "error"), "missing", Literal["error", "zero"])
        given = decode(content.params.get("prepare", ""), "$.params.prepare")
        prepare = _parameter(given, "prepare", str | Sequence[str])
        rule = MissingRule("fill", np.zeros(content.n_features)) if word == "zero" else MissingRule()
        return rule, _without_learning(steps_of(prepare))
    rule, steps = decode(content.inputs.get("missing"), "$.inputs.missing"), content.inputs.get("steps")
    if not isinstance(rule, MissingRule) or not isinstance(steps, list) or set(content.inputs) != {"missing", "steps"}:
        raise InputError("$.inputs must hold the rule for missing cells and the steps of preparation, and no more")
    if rule.fill is not None and len(rule.fill) != content.n_features:
        raise InputError(f"$.inputs.missing fills {len(rule.fill)} features, and there are {content.n_features}")
    found = [decode(step, f"$.inputs.steps[{i}]") for i, step in enumerate(steps)]
    if not all(isinstance(step, (str, Knotted)) for step in found):
        raise InputError("$.inputs.steps must hold words and steps with knots, and no more")
    return rule, _without_learning(steps_of(found))


def _without_learning(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Refuse a step that has to be learned first."""
    for step in steps:
        if isinstance(step, Knotted):
            _ = step.learned
    return steps


FORMER_RANKERS: dict[str, dict[str, Any]] = {
    "LightGBMRanker": {"engine": "lightgbm"},
    "XGBoostRanker": {"engine": "xgboost"},
    "LightGBM": {"engine": "lightgbm"},
    "XGBoost": {"engine": "xgboost"},
}
"""Rankers of earlier versions that are `BoostedTrees` now, and the parameters that they stand for."""


def _kind_of(name: str) -> type[Ranker]:
    """Return the class of a ranker by the name that a file has for it."""
    from .. import rankers

    _check_known(name)
    kind: type[Ranker] = getattr(rankers, "BoostedTrees" if name in FORMER_RANKERS else name)
    return kind


def _check_known(name: str) -> None:
    from .. import rankers

    if name not in rankers.__all__ and name not in FORMER_RANKERS:
        raise InputError(f"unknown ranker {name!r}; known: {', '.join((*rankers.__all__, *FORMER_RANKERS))}")


def _parameter(value: Any, key: str, hint: Any) -> Any:
    """Refuse what the field cannot hold; whether a number makes sense is checked where it is used, as by hand."""
    if isinstance(value, (np.ndarray, functions.ScoringFunction)) or (
        isinstance(value, dict) and key not in ("params", "signs")
    ):
        raise InputError(f"$.params.{key} must be a number, text or a list of them, got {type(value).__name__}")
    if hint is not None and not _fits(value, hint):
        raise InputError(f"$.params.{key} must be {_name(hint)}, got {value!r}")
    if type(value) is int and value > LARGEST_COUNT and key != "random_state":
        raise InputError(f"$.params.{key} is {value}: no fit takes more than {LARGEST_COUNT}")
    if key == "random_state" and value is not None and not (isinstance(value, int) and value >= 0):
        raise InputError(f"$.params.{key} must be a whole number not below 0, or null, got {value!r}")
    return value


def _fits(value: Any, hint: Any) -> bool:
    """Say whether a decoded value is what the annotation of a field asks for; what it cannot tell passes."""
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(value, part) for part in get_args(hint))
    if get_origin(hint) is Literal:
        return isinstance(value, (str, int)) and value in get_args(hint)
    if get_origin(hint) is Sequence:
        return isinstance(value, (list, tuple)) and all(_fits(item, get_args(hint)[0]) for item in value)
    if get_origin(hint) is Mapping:
        return isinstance(value, dict)
    if hint is Any or isinstance(value, bool):
        return hint in (bool, Any)
    if hint is float:
        return isinstance(value, (int, float))
    return isinstance(value, hint) if isinstance(hint, type) else True


def _name(hint: Any) -> str:
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(map(_name, get_args(hint)))
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    words = {int: "a whole number", float: "a number", str: "text", bool: "true or false", type(None): "null"}
    return words.get(hint, getattr(hint, "__name__", str(hint)))


def encode(value: Any, name: str) -> Any:
    """Return a value as JSON can hold it, to the last bit."""
    if value is None or isinstance(value, (bool, str, int)):
        return value
    if isinstance(value, np.generic):
        return encode(value.item(), name)
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": str(value)}
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        data = value.ravel().tolist()
        data = data if np.isfinite(value).all() else encode(data, name)
        return {"$array": str(value.dtype), "shape": list(value.shape), "data": data}
    if isinstance(value, (list, tuple)):
        items = [encode(item, name) for item in value]
        return items if isinstance(value, list) else {"$tuple": items}
    if isinstance(value, dict) and all(isinstance(key, str) and not key.startswith("$") for key in value):
        return {key: encode(item, name) for key, item in value.items()}
    if isinstance(value, dict):
        return {"$pairs": [[encode(key, name), encode(item, name)] for key, item in value.items()]}
    if dataclasses.is_dataclass(value) and type(value) in (kinds := _values()).values():
        fields = {f.name: encode(getattr(value, f.name), name) for f in dataclasses.fields(value) if f.init}
        return {"$value": next(key for key, kind in kinds.items() if kind is type(value)), "fields": fields}
    own = f" (a frozen dataclass of your own: toprank.register({type(value).__name__}))"
    hint = own if dataclasses.is_dataclass(value) else ""
    raise InputError(f"{name} cannot be saved: {type(value).__name__} is not plain data{hint}")


def decode(value: Any, place: str) -> Any:
    """Return what `encode` was given; `place` names the spot in messages."""
    if isinstance(value, list):
        return [decode(item, f"{place}[{i}]") for i, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    if "$float" in value:
        if value["$float"] not in ("inf", "-inf", "nan"):
            raise InputError(f"{place} is not a number")
        return float(value["$float"])
    if "$tuple" in value:
        if not isinstance(value["$tuple"], list):
            raise InputError(f"{place} is not a tuple")
        return tuple(decode(value["$tuple"], place))
    if "$pairs" in value:
        return _decode_pairs(value["$pairs"], place)
    if "$array" in value:
        return _decode_array(value, place)
    if "$value" in value:
        kind = _values().get(str(value["$value"]))
        fields = value.get("fields")
        if kind is None or not isinstance(fields, dict):
            raise InputError(f"{place} names the unknown value {value['$value']!r}")
        try:
            return kind(**{key: decode(item, f"{place}.{key}") for key, item in fields.items()})
        except InputError:
            raise
        except (TypeError, AttributeError, ValueError, OverflowError) as error:
            raise InputError(f"{place} is not a {kind.__name__}: {error}") from None
    return {key: decode(item, f"{place}.{key}") for key, item in value.items()}


def _decode_pairs(pairs: Any, place: str) -> dict[Any, Any]:
    sound = isinstance(pairs, list) and all(
        isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], (str, int)) for pair in pairs
    )
    if not sound:
        raise InputError(f"{place} is not a list of pairs")
    return {key: decode(item, f"{place}[{key!r}]") for key, item in pairs}


def _decode_array(value: dict[str, Any], place: str) -> np.ndarray[Any, Any]:
    shape, data = value.get("shape"), value.get("data")
    sound = isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape) and isinstance(data, list)
    if not sound or math.prod(shape or ()) != len(data or ()):
        raise InputError(f"{place} is not an array: its shape and its data do not fit")
    if value["$array"] not in ("float64", "float32", "int64", "int32", "uint64", "uint32", "uint8", "bool"):
        raise InputError(f"{place} has the unknown array type {value['$array']!r}")
    try:
        items = decode(data, place)
        if not all(isinstance(item, (int, float)) for item in items):
            raise TypeError("it holds something else than numbers")
        with np.errstate(over="raise"):
            return np.array(items, dtype=value["$array"]).reshape(shape)
    except (TypeError, ValueError, OverflowError, FloatingPointError) as error:
        raise InputError(f"{place} is not an array of {value['$array']}: {error}") from None


K = TypeVar("K", bound=type)

_REGISTERED: dict[str, type] = {}


def register(kind: K) -> K:
    """Let model files name a frozen dataclass of your own: a surrogate, a transform or a measure.

    A file names it by its module and name. It can be read only where the class has been registered before: a file never
    makes toprank import anything.

    >>> import dataclasses, toprank as tr
    >>> @tr.register
    ... @dataclasses.dataclass(frozen=True)
    ... class Half:
    ...     a: float = 0.5
    >>> decode(encode(Half(0.25), "loss"), "$")
    Half(a=0.25)
    """
    if not isinstance(kind, type) or not getattr(getattr(kind, "__dataclass_params__", None), "frozen", False):
        raise InputError(f"register takes a frozen dataclass, not {kind!r}")
    _REGISTERED[f"{kind.__module__}:{kind.__qualname__}"] = kind
    return kind


def _values() -> dict[str, type]:
    """Return the frozen values a file may name: what packages list in `__all__`, and what was registered.

    Files call a scoring function a model: `LinearFunction` is "LinearModel" there.
    """
    found = dict(_REGISTERED)
    found |= {name.replace("Function", "Model"): getattr(functions, name) for name in functions.__all__}
    found |= {kind.__name__: kind for kind in (L1, L2, MissingRule, Ramps, Thresholds)}
    for package in (surrogates, measures, solvers):
        for name in package.__all__:
            kind = getattr(package, name)
            if isinstance(kind, type) and dataclasses.is_dataclass(kind):
                found[name] = kind
    return found
