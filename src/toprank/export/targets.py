"""What an engine is to us: a way to write a model, and a way to read it back as the engine would run it."""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, TypeAlias
from xml.etree import ElementTree

import msgspec
import numpy as np

from .._typing import Floats
from ..data.preparation import Knotted
from ..data.validation import check_finite
from ..errors import InputError
from ..model import LinearFunction, Model, StumpFunction, TreeFunction
from .replicas import Replica

Form: TypeAlias = Literal["select", "view", "expression"]
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
"""A model name that needs no escaping in an address."""

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Settings:
    """How a model is written; each engine says which of these it has a use for (`Target.settings`)."""

    name: str | None = None
    """Name of the model; that of the ranker in lower case by default."""
    version: str | None = None
    """Goes behind the name, since engines do not overwrite a model; a hash of the content by default."""
    store: str | None = None
    """Feature store."""
    feature_set: str | None = None
    """Elasticsearch, OpenSearch: the feature set that the model belongs to."""
    shift: float | None = None
    """Added to every score. None: what lifts all scores above 0 in engines that need it, where this is known."""
    normalizers: bool = False
    """Write the scalers of a pipeline as the engine's own normalisers instead of folding them."""
    expressions: Mapping[str, str] = field(default_factory=dict)
    """Vespa: the rank feature behind a name, where it is not attribute(name)."""
    phase: Literal["first", "second"] = "first"
    """Vespa: the phase that the score belongs to."""
    dialect: str = "duckdb"
    """SQL: which."""
    form: Form = "select"
    """SQL: a SELECT with ranks, a view of it, or the expression of the score alone."""
    table: str = "documents"
    """SQL: the table, a dot before it if it is in a schema."""
    qid: str = "query"
    """SQL: the column of queries."""
    doc_id: str = "id"
    """SQL: the column that names a document, and parts documents of equal score."""


@dataclass(frozen=True)
class Artifact:
    """What is written: the file, its companions (files beside it, by suffix), and what to know about them."""

    content: bytes
    name: str
    notes: tuple[str, ...] = ()
    companions: Mapping[str, bytes] = field(default_factory=dict)
    rescore: Mapping[str, Any] | None = None
    """A search request that uses the model."""


_DAMAGE = (
    msgspec.MsgspecError, ElementTree.ParseError,
    ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError,
)  # fmt: skip
"""What is raised while a file is taken apart that is not what it should be."""


class Target(ABC):
    """An engine or format. Subclasses are final."""

    name: str
    family: ClassVar[str] = ""
    """What a file that nobody named is said to be for, where several targets write the same."""
    settings: ClassVar[frozenset[str]]
    prepares: ClassVar[frozenset[str]] = frozenset()
    """Preparations of features (`Inputs.steps`) that it can compute itself."""
    marks: ClassVar[re.Pattern[bytes]]
    """What a file of this target has somewhere."""
    file: str
    """What such a file is, in a message."""

    @abstractmethod
    def encode(self, model: Model, settings: Settings) -> Artifact:
        """Return the file of a model."""

    @abstractmethod
    def decode(self, content: bytes, path: str, companions: Mapping[str, bytes]) -> Replica:
        """Return the file as the engine would run it; `path` names it in messages.

        Whatever goes wrong while it is taken apart may be raised: `read` makes one line of it.
        """

    companions: ClassVar[tuple[str, ...]] = ()
    """Suffixes of the files that `decode` wants to see too, where they are there."""

    def read(self, content: bytes, path: str, companions: Mapping[str, bytes]) -> Replica:
        """Decode; what is no file of this target is refused in one line that names it."""
        try:
            return self.decode(content, path, companions)
        except _DAMAGE as error:
            if isinstance(error, InputError) and str(error).startswith(path):
                raise
            raise InputError(f"{path} is not {self.file}: {error}") from None

    def check_preparation(self, steps: Sequence[str]) -> None:
        """Refuse preparations that the target cannot compute from the features that it has."""
        for step in steps:
            if step.partition(":")[0] not in self.prepares:
                raise InputError(f"{self.name} cannot compute {_PREPARED[step.partition(':')[0]]}")

    def write(self, model: Model, settings: Settings) -> Artifact:
        """Check that model and settings fit this target, and encode."""
        if isinstance(model.function, StumpFunction) and not model.function.thresholds:
            raise InputError(f"{model.source} has learned no threshold, so all scores are equal: nothing to export")
        if model.rule.indicated:
            raise InputError(
                f"{self.name} has no column that says where {model.names[model.rule.indicated[0]]!r} is missing: fit "
                'with missing="median" or "zero"'
            )
        self.check_preparation(model.inputs.words)
        default = Settings()
        for key in (each.name for each in fields(Settings) if each.name not in ("name", "version")):
            if key not in self.settings and getattr(settings, key) != getattr(default, key):
                raise InputError(f"{self.name} has no use for {key}: leave it out")
        if settings.shift is not None:
            check_finite(shift=settings.shift)
        if settings.normalizers and not isinstance(model.function, LinearFunction):
            raise InputError(f"thresholds need no scaling, so {model.source} has no normalisers: leave them out")
        if settings.normalizers and model.scaler is None:
            raise InputError("there is no scaler to write as normalisers: they come from a folded pipeline")
        return self.encode(model, settings)


_PREPARED = {
    "log": "the signed logarithm of a feature: let the engine compute log(1 + x) as the feature and train on that, or "
    "take another target (sql does it)",
    "query": "features scaled to 0 … 1 within a query: it scores documents one by one. Scale over all queries "
    "instead, or take another target (sql does it)",
    "standard": "features standardised within a query: it scores documents one by one. Scale over all queries "
    "instead, or take another target (sql does it)",
    "+rank": "ranks of a feature within a query: take sql, or let the server score (toprank serve)",
    "+minmax": "features scaled to 0 … 1 within a query: take sql, or let the server score (toprank serve)",
    "+standard": "features standardised within a query: take sql, or let the server score (toprank serve)",
    "ramps": "curves of a feature: take sql or lucene-expression, or let the server score (toprank serve)",
    "steps": "steps of a feature: take sql or lucene-expression, or let the server score (toprank serve)",
}


def model_name(model: Model, settings: Settings, pattern: re.Pattern[str] = NAME) -> str:
    """Return NAME_VERSION; by default the ranker's name and the hash of all that decides a score."""
    base = model.source.lower().replace(" ", "_") if settings.name is None else settings.name
    version = fingerprint(model, settings) if settings.version is None else settings.version
    name = f"{base}_{version}" if version else base
    if not pattern.fullmatch(name):
        allowed = "letters, digits and _" + ("" if pattern is IDENTIFIER else ", . and -")
        raise InputError(f"{name!r} is not a name for a model here: use {allowed}, a letter first")
    return name


def fingerprint(model: Model, settings: Settings) -> str:
    """Return eight letters that change whenever a score could."""
    content: list[Any] = [model.names, None if model.rule.fill is None else model.rule.fill.tolist(), settings.shift]
    content += [list(model.inputs.words)] if model.inputs.words else []
    for step in model.inputs.steps:
        content += [column.tolist() for column in step.learned] if isinstance(step, Knotted) else []
    function = model.function
    if isinstance(function, LinearFunction):
        content += [function.coef.tolist(), model.offset, settings.normalizers]
    elif isinstance(function, StumpFunction):
        content += [function.thresholds, model.offset]
    elif isinstance(function, TreeFunction):
        nodes = (function.root, function.feature, function.value, function.missing_low)
        content += [*(column.tolist() for column in nodes), "follow" if model.rule.native else "refuse", model.offset]
    return hashlib.sha256(json.dumps([*content, sorted(settings.expressions.items())]).encode()).hexdigest()[:8]


def check_names(names: Sequence[str], target: str, bad: str = "") -> None:
    """Refuse a feature name that the target cannot hold: empty, blank at an end, unprintable, or with a bad character.

    >>> check_names(["bm25", "a,b"], "solr", bad=",=")
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: feature 'a,b' has ',' in its name, which solr cannot hold: rename it with --features
    """
    for name in names:
        culprit = next((c for c in name if c in bad or not c.isprintable()), None)
        if not name or name != name.strip():
            raise InputError(f"feature {name!r} is blank or has blanks at its ends: rename it with --features")
        if culprit is not None:
            raise InputError(
                f"feature {name!r} has {culprit!r} in its name, which {target} cannot hold: rename it with --features"
            )


def single_precision_notes(names: Sequence[str], weights: Floats, what: str = "weight") -> list[str]:
    """Refuse numbers that overflow float32 and say which ones vanish in it."""
    with np.errstate(over="ignore", under="ignore"):
        single = weights.astype(np.float32)
    if not np.isfinite(single).all():
        name = names[int(np.flatnonzero(~np.isfinite(single))[0])]
        raise InputError(
            f"the {what} of {name!r} does not fit into float32, in which the engine computes: divide all weights by "
            "one number, no ranking changes"
        )
    tiny = float(np.finfo(np.float32).tiny)
    lost = [names[j] for j in np.flatnonzero((weights != 0) & (np.abs(single) < tiny)).tolist()]
    return [f"{what}s that float32 all but loses: {listing(lost)}; run verify-export"] if lost else []


def policy_note(model: Model, where: str, how: str) -> str:
    """State the missing-value policy and `how` the file follows it; or that nothing is promised (`where`)."""
    if model.rule.fill is None and not model.rule.native:
        return f"{model.rule.words} by the model, but {where}: make sure that every feature has a value"
    return f"{model.rule.words}{how}"


def listing(names: Sequence[str], most: int = 5) -> str:
    """Return names in one line, the first few of many."""
    return ", ".join(names[:most]) + ("" if len(names) <= most else f" and {len(names) - most} more")


def round_up(value: float) -> float:
    """Return the next number with two significant digits.

    >>> round_up(21.3), round_up(0.0123)
    (22.0, 0.013)
    """
    step = 10.0 ** (np.floor(np.log10(value)) - 1)
    return float(f"{np.ceil(value / step * (1 - 1e-12)) * step:.12g}")


def to_json(value: Any) -> bytes:
    """Return pretty JSON, the same bytes for the same value."""
    return (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
