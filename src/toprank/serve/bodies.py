"""What clients send and get back: the types decode the bodies, and the OpenAPI description is made of the same types.

Features of a document come by name, by position, or all at once as float32 (base64 in JSON, bytes in MessagePack).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import Annotated, Any, Literal, TypeVar, cast

import msgspec
import numpy as np
from msgspec import UNSET, Meta, Struct, UnsetType

from .._suggest import did_you_mean
from .._typing import AnyArray
from ..errors import InputError

DOCUMENTS, EVENTS = 1_000, 1_000
"""Most documents of one list, and most events of one request."""
LARGEST = 1e150
"""Squares of larger features do not fit into a number."""
B = TypeVar("B")

Id = Annotated[str, Meta(min_length=1, max_length=200)]
Grade = Annotated[float, Meta(ge=0, lt=1024)]
Features = dict[str, float] | list[float]


class BodyError(InputError):
    """A body that cannot be used: `at` is the path in it."""

    def __init__(self, message: str, at: str | None = None, status: int = 422) -> None:
        super().__init__(message if at is None else f"{message} - at {at}")
        self.at, self.status = at, status


class Item(Struct, forbid_unknown_fields=True):
    """A document: its features by name, or as a list in the model's order."""

    id: Id
    features: Features


class Documents(Struct, forbid_unknown_fields=True, kw_only=True):
    """A list of documents: `items`, or `ids` with `features_f32`, the rows one after the other as float32."""

    items: Annotated[list[Item], Meta(min_length=1)] | None = None
    ids: Annotated[list[Id], Meta(min_length=1)] | None = None
    features_f32: bytes | None = None


class Rank(Documents, kw_only=True):
    """What to rank; `explore` samples the ranking, so that clicks on it can be learned from."""

    top: Annotated[int, Meta(ge=1)] | None = None
    explain: bool = False
    explore: bool = False


class Feedback(Documents, kw_only=True):
    """What came of a ranking: grades (0 for documents without one), or clicks on a ranking that was sampled."""

    event_id: Id
    ranking_id: Id | None = None
    labels: dict[str, Grade] | None = None
    clicks: list[Id] | None = None
    shown: list[Id] | None = None


class Candidate(Struct):
    """A document of a rerank request; what else it holds is ignored."""

    features: Features
    id: str | None = None


class Rerank(Struct):
    """The shape of Cohere's rerank; documents are objects with features."""

    documents: Annotated[list[Candidate | str], Meta(min_length=1)]
    query: str = ""
    model: str = ""
    top_n: Annotated[int, Meta(ge=1)] | None = None


class Rollback(Struct, forbid_unknown_fields=True):
    """The version to go back to."""

    version: Annotated[int, Meta(ge=0)]


class Freeze(Struct, forbid_unknown_fields=True):
    """Whether learning stops."""

    frozen: bool = True


class Export(Struct, forbid_unknown_fields=True):
    """What `toprank export` takes: the target, and a name and version for the model."""

    to: str
    name: str | None = None
    version: str | None = None
    feature_set: str | None = None
    store: str | None = None
    dialect: str | None = None
    table: str | None = None


class Ranked(Struct):
    """A document in its place."""

    id: str
    rank: int
    score: float
    contributions: dict[str, float] | UnsetType = UNSET


class Ranking(Struct):
    """Documents, best first, and the version of the model that ranked them."""

    ranking_id: str
    version: int
    items: list[Ranked]


class Learned(Struct):
    """What became of an event; `measure` is that of the ranking before the step, null where there is none."""

    status: Literal["learned", "duplicate"]
    seq: int
    version: int
    measure: float | None = None


class Result(Struct):
    """A document by its index in the request."""

    index: int
    relevance_score: float


class Reranked(Struct):
    """Results, best first."""

    id: str
    results: list[Result]
    meta: dict[str, int]


class Problem(Struct, omit_defaults=True):
    """What is wrong, in one line, and where in the body."""

    error: str
    request_id: str = ""
    at: str | None = None


class Model(Struct):
    """The model as it is now."""

    version: int
    ranker: str
    learns: Literal["labels", "clicks", "nothing"]
    measure: str
    frozen: bool
    oldest_version: int
    n_features: int
    weights: dict[str, float] | None
    totals: dict[str, float]


class Stored(Struct):
    """What a command did: the version it left."""

    version: int
    frozen: bool | UnsetType = UNSET
    file: str | UnsetType = UNSET


@dataclass(frozen=True, eq=False)
class Lists:
    """Documents as the model takes them."""

    ids: list[str]
    X: AnyArray
    shown: tuple[int, ...] | None = None
    """Rows in the order in which a sampled page showed them."""

    @property
    def nbytes(self) -> int:
        """About what it takes in memory."""
        return int(self.X.nbytes) + 120 * len(self.ids) + 500


@cache
def _decoder(kind: Any, packed: bool) -> Any:
    return msgspec.msgpack.Decoder(kind) if packed else msgspec.json.Decoder(kind)


def decode(body: bytes, kind: type[B], packed: bool = False) -> B:
    """Return the body as `kind`; a refusal names the path down to the feature.

    >>> decode(b'{"items": [{"id": "a", "features": {"bm25": "high"}}]}', Rank)
    Traceback (most recent call last):
    ...
    toprank.serve.bodies.BodyError: Expected `float`, got `str` - at $.items[0].features.bm25
    """
    try:
        found: B = _decoder(cast(Any, kind), packed).decode(body)
    except msgspec.ValidationError as error:
        message, _, at = str(error).partition(" - at `")
        at = _named(at.rstrip("`"), body, packed) if at else "$"
        raise BodyError(message, at) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        what = "MessagePack" if packed else "JSON"
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise BodyError(f"the body is not {what}: {why}", status=400) from None
    return found


def _named(path: str, body: bytes, packed: bool) -> str:
    """Put the first key whose value is no number where msgspec only says that it is some key."""
    head, sign, tail = path.partition("[...]")
    if not sign:
        return path
    try:
        at = _decoder(Any, packed).decode(body)
        for name, index in re.findall(r"\.([^.\[]+)|\[(\d+)\]", head):
            at = at[name] if name else at[int(index)]
        for key, value in at.items():
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not number or (head.endswith("labels") and not 0 <= value < 1024):
                return f"{head}.{key}{tail}"
    except (msgspec.DecodeError, LookupError, AttributeError, TypeError, RecursionError):
        pass
    return path


class Columns:
    """The features of a model: turns documents of any form into rows."""

    def __init__(self, n_features: int, names: list[str] | None) -> None:
        self.n_features, self.names = n_features, names
        self._get = None if names is None or len(names) < 2 else itemgetter(*names)

    @property
    def labels(self) -> list[str]:
        """A name for each feature."""
        return self.names or [str(j) for j in range(self.n_features)]

    def lists(self, body: Documents) -> Lists:
        """Return the documents of a body."""
        if body.items is not None:
            if body.ids is not None or body.features_f32 is not None:
                raise BodyError("give items, or ids with features_f32, not both", "$.items")
            ids = [item.id for item in body.items]
            return _unique(ids, "$.items", ".id", self.rows([item.features for item in body.items], "$.items"))
        if body.ids is None or body.features_f32 is None:
            raise BodyError("there are no documents: give items, or ids with features_f32", "$")
        _most(len(body.ids), "$.ids")
        wanted = 4 * len(body.ids) * self.n_features
        if len(body.features_f32) != wanted:
            what = f"{len(body.ids)} documents of {self.n_features} float32 take {wanted} bytes"
            raise BodyError(f"{what}, got {len(body.features_f32)}", "$.features_f32")
        rows = np.frombuffer(body.features_f32, dtype="<f4").reshape(len(body.ids), self.n_features)
        self._check(rows, lambda row, name: f"$.features_f32 (document {row}, feature {name})")
        # A buffer of the body must not be written, which to compiled code is another type: hence the copy.
        return _unique(body.ids, "$.ids", "", rows.astype(np.float32))

    def rows(self, features: list[Features], at: str) -> AnyArray:
        """Return one row of float64 per document."""
        _most(len(features), at)
        rows = []
        for i, values in enumerate(features):
            if isinstance(values, dict):
                values = self._by_name(values, f"{at}[{i}].features")
            elif len(values) != self.n_features:
                raise BodyError(f"expected {self.n_features} numbers, got {len(values)}", f"{at}[{i}].features")
            rows.append(values)
        found = np.array(rows, dtype=np.float64)
        self._check(found, lambda row, name: f"{at}[{row}].features.{name}")
        return found

    def _by_name(self, values: dict[str, float], at: str) -> Any:
        if self.names is None:
            raise BodyError(f"this model has no names of features: send lists of {self.n_features} numbers", at)
        try:
            found = [values[self.names[0]]] if self._get is None else self._get(values)
        except KeyError as error:
            raise BodyError(f"the feature {error.args[0]!r} is missing", at) from None
        if len(values) != self.n_features:
            unknown = next(name for name in values if name not in self.names)
            raise BodyError(f"no such feature{did_you_mean(unknown, self.names)}", f"{at}.{unknown}")
        return found

    def _check(self, rows: AnyArray, place: Any) -> None:
        flat = rows.reshape(-1)
        with np.errstate(invalid="ignore", over="ignore"):
            if np.isfinite(flat.dot(flat)):  # nearly always, and quickly known
                return
            sound = abs(rows) <= LARGEST  # NaN is not
        if not sound.all():
            row, column = (int(i) for i in np.argwhere(~sound)[0])
            value = f"{rows[row, column]:g} is not a number from -{LARGEST:g} to {LARGEST:g}"
            raise BodyError(value, place(row, self.labels[column]))


def _most(n: int, at: str) -> None:
    if n > DOCUMENTS:
        raise BodyError(f"a list has at most {DOCUMENTS:,} documents, got {n:,}", at, 413)


def _unique(ids: list[str], at: str, end: str, X: AnyArray) -> Lists:
    if len(set(ids)) != len(ids):
        twice = next(i for i, name in enumerate(ids) if name in ids[:i])
        raise BodyError(f"the id {ids[twice]!r} comes twice", f"{at}[{twice}]{end}")
    return Lists(ids, X)


def rows_of(ids: list[str], lists: Lists, at: str) -> list[int]:
    """Return the row of each id, in their order; none may come twice."""
    place = {name: row for row, name in enumerate(lists.ids)}
    for i, name in enumerate(ids):
        if name not in place:
            raise BodyError(f"no document {name!r} in this ranking", f"{at}[{i}]")
    if len(set(ids)) != len(ids):
        raise BodyError("an id comes twice", at)
    return [place[name] for name in ids]
