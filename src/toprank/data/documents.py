"""Documents that are sent to us: bytes to types, and documents to rows; a refusal names the path to what is wrong.

Features of a document come by name, by position, or all at once as float32 (base64 in JSON, bytes in MessagePack).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from sys import getsizeof
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Struct

from .._suggest import did_you_mean
from .._typing import AnyArray
from ..errors import InputError
from .validation import LARGEST, LARGEST_GRADE

JSON, PACKED, LINES = "application/json", "application/msgpack", "application/x-ndjson"

Grade = Annotated[float, Meta(ge=0, le=LARGEST_GRADE)]
Id = Annotated[str, Meta(min_length=1, max_length=200)]
Features = dict[str, float | None] | list[float | None]
"""The features of a document; null is a missing value."""


class PathError(InputError):
    """Something that was sent cannot be used: `at` is the path to it."""

    def __init__(self, message: str, at: str | None = None) -> None:
        super().__init__(message if at is None else f"{message} - at {at}")
        self.message, self.at = message, at


class Item(Struct, forbid_unknown_fields=True):
    """A document: its features by name, or as a list in the model's order."""

    id: Id
    features: Features


class Documents(Struct, forbid_unknown_fields=True, kw_only=True):
    """A list of documents: `items`, or `ids` with `features_f32`, the rows one after the other as float32."""

    items: Annotated[list[Item], Meta(min_length=1, max_length=1000)] | None = None
    ids: Annotated[list[Id], Meta(min_length=1, max_length=1000)] | None = None
    features_f32: bytes | None = None


@cache
def _decoder(kind: Any, media: str) -> Any:
    if media == PACKED:
        return msgspec.msgpack.Decoder(kind).decode
    return msgspec.json.Decoder(kind).decode_lines if media == LINES else msgspec.json.Decoder(kind).decode


def decode(body: bytes, kind: Any, media: str = JSON) -> Any:
    """Return the body as `kind`, or one of it per line; a refusal names the path down to the feature.

    >>> decode(b'{"items": [{"id": "a", "features": {"bm25": "high"}}]}', Documents)
    Traceback (most recent call last):
    ...
    toprank.data.documents.PathError: Expected `float | null`, got `str` - at $.items[0].features.bm25
    """
    try:
        return _decoder(kind, media)(body)
    except msgspec.ValidationError as error:
        message, _, at = str(error).partition(" - at `")
        raise PathError(message, _with_key(at.rstrip("`"), body, media) or "$") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise PathError(f"the body is not {'MessagePack' if media == PACKED else 'JSON'}: {why}") from None


def _with_key(path: str, body: bytes, media: str) -> str:
    """Name the first key whose value is no number, or no grade, where msgspec only says that it is some key."""
    head, some, tail = path.partition("[...]")
    if not some:
        return path
    try:
        at = _decoder(Any, media)(body)
        for name, index in re.findall(r"\.([^.\[]+)|\[(\d+)\]", head):
            at = at[name or int(index)]
        for key, value in at.items():
            try:
                msgspec.convert(value, Grade if head.endswith("labels") else float)
            except msgspec.ValidationError:
                return f"{head}.{key}{tail}"
    except (msgspec.DecodeError, LookupError, AttributeError, TypeError, RecursionError):
        pass
    return path


@dataclass(frozen=True, eq=False)
class DocumentList:
    """Documents as a model takes them."""

    ids: list[str]
    X: AnyArray
    shown: list[int] | None = None
    """Rows in the order in which a sampled page showed them."""

    @property
    def nbytes(self) -> int:
        """What it takes in memory, with the id and the time that it is kept under."""
        # Text that is not ASCII keeps a second form of itself from the moment on when it is sent.
        texts = sum(map(getsizeof, self.ids)) + sum(len(name.encode()) for name in self.ids if not name.isascii())
        rows = 0 if self.shown is None else getsizeof(self.shown) + sum(map(getsizeof, self.shown))
        return int(self.X.nbytes) + getsizeof(self.ids) + texts + rows + 550


class Columns:
    """The features of a model: turns documents of any form into rows.

    >>> columns = Columns(2, ["bm25", "age"])
    >>> columns.rows([{"age": 2.0, "bm25": 1.5}, [0.5, 1.0]], "$.items").tolist()
    [[1.5, 2.0], [0.5, 1.0]]
    >>> columns.rows([{"age": 2.0, "bm52": 1.5}], "$.items")
    Traceback (most recent call last):
    ...
    toprank.data.documents.PathError: the feature 'bm25' is missing - at $.items[0].features
    """

    def __init__(self, n_features: int, names: list[str] | None, *, allows_missing: bool = False) -> None:
        self.n_features, self.names, self.allows_missing = n_features, names, allows_missing
        self.labels = names or [str(j) for j in range(n_features)]
        # `itemgetter` of one name does not return a tuple.
        self._get = itemgetter(*self.labels) if n_features > 1 else lambda values: (values[self.labels[0]],)

    def read(self, body: Documents) -> DocumentList:
        """Return the documents of a body."""
        if body.items is not None:
            if body.ids is not None or body.features_f32 is not None:
                raise PathError("give items, or ids with features_f32, not both", "$.items")
            ids, at, end = [item.id for item in body.items], "$.items", ".id"
            X = self.rows([item.features for item in body.items], at)
        elif body.ids is not None and body.features_f32 is not None:
            ids, at, end = body.ids, "$.ids", ""
            X = self._unpacked(len(ids), body.features_f32)
        else:
            raise PathError("there are no documents: give items, or ids with features_f32", "$")
        if len(set(ids)) != len(ids):
            twice = next(i for i, name in enumerate(ids) if name in ids[:i])
            raise PathError(f"the id {ids[twice]!r} comes twice", f"{at}[{twice}]{end}")
        return DocumentList(ids, X)

    def _unpacked(self, n: int, packed: bytes) -> AnyArray:
        if len(packed) != 4 * n * self.n_features:
            wanted = f"{n} documents of {self.n_features} float32 take {4 * n * self.n_features} bytes"
            raise PathError(f"{wanted}, got {len(packed)}", "$.features_f32")
        # A copy, since a buffer of the body must not be written, which to compiled code is another type.
        rows = np.frombuffer(packed, dtype="<f4").reshape(n, self.n_features).astype(np.float32)
        self._check(rows, "$.features_f32 (document {row}, feature {name})")
        return rows

    def rows(self, features: list[Features], at: str) -> AnyArray:
        """Return one row of float64 per document."""
        found = []
        for i, values in enumerate(features):
            if isinstance(values, dict):
                values = self._by_name(values, f"{at}[{i}].features")
            elif len(values) != self.n_features:
                raise PathError(f"expected {self.n_features} numbers, got {len(values)}", f"{at}[{i}].features")
            found.append(values)
        rows = np.array(found, dtype=np.float64)
        self._check(rows, at + "[{row}].features.{name}")
        return rows

    def _by_name(self, values: dict[str, float | None], at: str) -> Any:
        if self.names is None:
            raise PathError(f"the features of this model have no names: send lists of {self.n_features} numbers", at)
        try:
            found = self._get(values)
        except KeyError as error:
            raise PathError(f"the feature {error.args[0]!r} is missing", at) from None
        if len(values) != self.n_features:
            unknown = next(name for name in values if name not in self.names)
            raise PathError(f"no such feature{did_you_mean(unknown, self.names)}", f"{at}.{unknown}")
        return found

    def _check(self, rows: AnyArray, at: str) -> None:
        flat = rows.reshape(-1)
        with np.errstate(invalid="ignore", over="ignore"):
            if np.isfinite(flat.dot(flat)):  # nearly always, and quickly known
                return
            sound = abs(rows) <= LARGEST  # NaN is not
        if self.allows_missing:
            sound |= np.isnan(rows)
        if not sound.all():
            row, column = (int(i) for i in np.argwhere(~sound)[0])
            if np.isnan(rows[row, column]):
                why = (
                    'the value is missing, and the model refuses missing values: fit it with missing="zero" or "median"'
                )
                raise PathError(why, at.format(row=row, name=self.labels[column]))
            value = f"{rows[row, column]:g} is not a number from -{LARGEST:g} to {LARGEST:g}"
            raise PathError(value, at.format(row=row, name=self.labels[column]))
