"""A click log: which document of which query was shown at which position, and whether it was clicked."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._typing import AnyArray, ArrayLike, Ints
from ..data._columns import Column, open_columns
from ..data.ids import id_text
from ..data.source import Source
from ..data.validation import as_generator, check_choice, check_share
from ..errors import InputError, naming, needed

if TYPE_CHECKING:
    from ..data.dataset import QueryDataset
    from .propensities import Propensities

_ROLES = {
    "query": ("query", "query_id", "qid"),
    "document": ("document", "doc_id", "doc"),
    "position": ("position", "rank"),
    "clicked": ("clicked", "click"),
    "session": ("session", "session_id"),
    "ranker": ("ranker", "served_by"),
}
"""Names under which a column is found when the caller names none."""
_OBJECTS = ("object_id", "event_attributes.object.object_id")
"""Names of the column with what a user acted on, in User Behavior Insights."""
_OPTIONAL = ("session", "ranker")
_IDS = ("query", "document", *_OPTIONAL)


@dataclass(frozen=True, eq=False)
class Counts:
    """The log added up: how often a document of a query was shown at a position, and how often it was clicked there.

    Rows are sorted by pair; pair i, one document of one query, owns rows `ptr[i]:ptr[i+1]`.
    """

    ptr: Ints
    query: Ints
    """Number of the query of each pair."""
    document: Ints
    """Number of the document of each pair."""
    position: Ints
    """From 1."""
    shown: Ints
    clicks: Ints

    @property
    def n_pairs(self) -> int:
        """Documents of queries."""
        return len(self.query)

    @cached_property
    def pair(self) -> Ints:
        """Pair of each row."""
        return np.repeat(np.arange(self.n_pairs), np.diff(self.ptr))

    def up_to(self, cut: int) -> Counts:
        """Return the rows at positions 1 to `cut`."""
        keep = self.position <= cut
        left = np.unique(self.pair[keep])
        ptr = np.concatenate(([0], np.cumsum(np.bincount(self.pair[keep], minlength=self.n_pairs)[left])))
        return Counts(
            ptr, self.query[left], self.document[left], self.position[keep], self.shown[keep], self.clicks[keep]
        )


@dataclass(frozen=True)
class _Places:
    """Where rows of a log came from: lines of a file, or rows of arrays, from 0."""

    source: Source = field(default_factory=Source)

    def one(self, row: int) -> str:
        """Name a row."""
        return f"row {row} of the log" if self.source.file is None else self.source.place(row)

    def both(self, row: int, other: int) -> str:
        """Name two rows."""
        if self.source.file is None:
            return f"rows {row} and {other} of the log"
        unit, number = self.source.place(row).split(" ")[:2]
        return f"{unit}s {number} and {self.source.place(other).split(' ')[1]} of {self.source.file}"


@dataclass(frozen=True, eq=False)
class ClickLog:
    """One row per document shown: its query, the position it was shown at (from 1), and whether it was clicked.

    Ids are kept once (`query_ids`, `doc_ids`, `ranker_names`), rows hold their numbers. Build one with
    `ClickLog.from_arrays`, `ClickLog.from_table` or `ClickLog.from_ubi`.

    >>> log = ClickLog.from_arrays(["q", "q", "q", "q"], ["a", "b", "b", "a"], [1, 2, 1, 2], [1, 0, 1, 0], [0, 0, 1, 1])
    >>> log
    ClickLog(4 impressions of 2 documents, 1 query, 2 sessions, 2 clicks, positions 1 to 2)
    >>> log.counts.shown.tolist(), log.counts.clicks.tolist()
    ([1, 1, 1, 1], [1, 0, 1, 0])
    """

    query: Ints
    document: Ints
    position: Ints
    clicked: AnyArray
    query_ids: AnyArray
    doc_ids: AnyArray
    session: Ints | None = None
    ranker: Ints | None = None
    ranker_names: AnyArray | None = None

    @classmethod
    def from_arrays(
        cls,
        query: ArrayLike,
        document: ArrayLike,
        position: ArrayLike,
        clicked: ArrayLike,
        session: ArrayLike | None = None,
        ranker: ArrayLike | None = None,
    ) -> ClickLog:
        """Check and number one value per row; `session` says which rows were one page of results."""
        return cls._checked(_Places(), query, document, position, clicked, session, ranker)

    @classmethod
    def _checked(
        cls,
        places: _Places,
        query: ArrayLike,
        document: ArrayLike,
        position: ArrayLike,
        clicked: ArrayLike,
        session: ArrayLike | None = None,
        ranker: ArrayLike | None = None,
    ) -> ClickLog:
        """Do what `from_arrays` does; `places` says where a row came from."""
        queries, query_ids = _numbered(query, "query")
        documents, doc_ids = _numbered(document, "document", len(queries))
        sessions = None if session is None else _numbered(session, "session", len(queries))[0]
        rankers, names = (None, None) if ranker is None else _numbered(ranker, "ranker", len(queries))
        shown_at, flags = _positions(position, len(queries), places), _flags(clicked, len(queries), places)
        log = cls(queries, documents, shown_at, flags, query_ids, doc_ids, sessions, rankers, names)
        log._check_sessions(places)
        return log

    @classmethod
    def from_table(cls, source: Any, **columns: str | None) -> ClickLog:
        """Read a table (Parquet, CSV, pandas, polars, Arrow) with one row per document shown.

        `query=`, `document=`, `position=`, `clicked=`, `session=` and `ranker=` name columns; those not named are
        looked for under their own names (and `doc_id`, `click`, …). Session and ranker may be absent. Ids are text, as
        written in a CSV file (`007` is not `7`).

        >>> import pandas as pd
        >>> frame = pd.DataFrame({"query": ["q", "q"], "doc": ["a", "b"], "position": [1, 2], "click": [0, 1]})
        >>> ClickLog.from_table(frame)
        ClickLog(2 impressions of 2 documents, 1 query, 1 click, positions 1 to 2)
        """
        unknown = sorted(set(columns) - set(_ROLES))
        if unknown:
            raise InputError(f"a click log has no {unknown[0]!r}: name columns for {', '.join(_ROLES)}")
        ids = {name for role in _IDS for name in (columns.get(role), *_ROLES[role]) if name is not None}
        table, _, origin = open_columns(source, as_written=ids - {columns.get("position"), columns.get("clicked")})
        values = {}
        for role, names in _ROLES.items():
            named = columns.get(role)
            found = next((name for name in ([named] if named else names) if name in table), None)
            if found is not None:
                with nullcontext() if origin.file is None else naming(origin.file):
                    values[role] = table[found].ids() if role in _IDS else table[found].filled()
            elif named or role not in _OPTIONAL:
                wanted = repr(named) if named else " or ".join(map(repr, names))
                raise InputError(
                    f"the log has no column {wanted} for the {role}: name it, e.g. {role}=COLUMN; the columns are "
                    f"{', '.join(map(repr, list(table)[:20]))}"
                )
        return cls._checked(_Places(origin), **values)

    @classmethod
    def from_ubi(cls, queries: Any, events: Any, *, action: str = "click") -> ClickLog:
        """Read the two tables of OpenSearch's User Behavior Insights: what was answered, and what users did.

        `queries` has `query_id` (one per request: a session here), `user_query` and the hits as they were shown in
        `query_response_hit_ids` (or `query_response_object_ids`); `events` has `action_name`, `query_id` and the
        object that was acted on in `object_id` (or in `event_attributes`, as `object.object_id`). Events with the name
        `action` are clicks; a click on what was not shown in its request is an error.
        """
        pa = needed("pyarrow", "reading User Behavior Insights")
        asked, *_ = open_columns(queries, as_written=("query_id", "user_query"))
        done, *_ = open_columns(events, as_written=("query_id", "action_name", *_OBJECTS))
        request = id_text(_complete(_one_of(asked, ("query_id",), "queries")))
        text = id_text(_complete(_one_of(asked, ("user_query",), "queries")))
        hits = _one_of(asked, ("query_response_hit_ids", "query_response_object_ids"), "queries")
        try:
            lists = pa.array(hits.values().tolist()).cast(pa.list_(pa.string()))
        except pa.ArrowException as error:
            raise InputError(f"queries: column {hits.name!r} must hold a list of ids in each row: {error}") from None
        lengths = np.diff(lists.offsets.to_numpy()).astype(np.int64)
        shown = np.asarray(lists.flatten().to_numpy(zero_copy_only=False), dtype=object)
        rows = np.repeat(np.arange(len(request)), lengths)
        position = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + 1
        name = _complete(_one_of(done, ("action_name",), "events")) == action
        at = id_text(_complete(_one_of(done, ("query_id",), "events"), name))
        on = id_text(_acted_on(done, name))
        _, both = _first_seen(np.concatenate((request[rows], at)))
        _, what = _first_seen(np.concatenate((shown, on.astype(object))))
        key = both * (int(what.max(initial=0)) + 1) + what
        impressions, clicks = key[: len(rows)], np.unique(key[len(rows) :])
        lost = ~np.isin(clicks, impressions)
        if lost.any():
            first = int(np.flatnonzero(key[len(rows) :] == clicks[lost][0])[0])
            raise InputError(
                f"events: {int(lost.sum())} clicks are on what was not shown, the first on {str(on[first])!r} in "
                f"request {str(at[first])!r}: the hits of a request must be all that users could see"
            )
        return cls.from_arrays(text[rows], shown, position, np.isin(impressions, clicks), request[rows])

    def _check_sessions(self, places: _Places) -> None:
        """Refuse a session that shows two documents at one position, one document twice, or two queries."""
        if self.session is None:
            return
        for what, other in (("position", self.position), ("document", self.document)):
            key = self.session * (int(other.max(initial=0)) + 1) + other
            order = np.argsort(key, kind="stable")
            again = np.flatnonzero(key[order][1:] == key[order][:-1])
            if len(again):
                row, before = int(order[again[0] + 1]), int(order[again[0]])
                shown = self.doc_ids[self.document[row]] if what == "document" else self.position[row]
                raise InputError(
                    f"{places.both(before, row)} are one session and both have {what} {shown!s}: a page shows "
                    f"each {what} once (is the session column right?)"
                )
        first = np.full(int(self.session.max(initial=-1)) + 1, -1, dtype=np.int64)
        first[self.session[::-1]] = self.query[::-1]
        mixed = np.flatnonzero(first[self.session] != self.query)
        if len(mixed):
            raise InputError(f"{places.one(int(mixed[0]))} has another query than its session: one page, one query")

    @property
    def n_impressions(self) -> int:
        """Rows: documents shown."""
        return len(self.query)

    @cached_property
    def counts(self) -> Counts:
        """The log added up over sessions: all that the estimators read."""
        if not self.n_impressions:
            raise InputError("the click log is empty")
        depth, documents = int(self.position.max()), len(self.doc_ids)
        pair, heads = self.query * documents + self.document, None
        if len(self.query_ids) * documents > (1 << 62) // (2 * depth):
            heads, pair = np.unique(pair, return_inverse=True)
        # Sorted numbers instead of a grouping: ten million rows take a second.
        key = np.sort((pair * depth + (self.position - 1)) * 2 + self.clicked)
        cell = key >> 1
        start = np.flatnonzero(np.concatenate(([True], cell[1:] != cell[:-1])))
        shown = np.diff(np.append(start, len(key)))
        clicks = np.add.reduceat(key & 1, start)
        of_pair, position = np.divmod(cell[start], depth)
        first = np.flatnonzero(np.concatenate(([True], of_pair[1:] != of_pair[:-1])))
        pairs = of_pair[first] if heads is None else heads[of_pair[first]]
        return Counts(
            np.append(first, len(start)).astype(np.int64),
            pairs // documents,
            pairs % documents,
            position + 1,
            shown.astype(np.int64),
            clicks.astype(np.int64),
        )

    def take(self, rows: AnyArray) -> ClickLog:
        """Return the rows of a mask or a list of numbers; ids keep their numbers."""
        columns = {name: getattr(self, name) for name in ("query", "document", "position", "clicked", *_OPTIONAL)}
        return replace(self, **{name: values[rows] for name, values in columns.items() if values is not None})

    def split(self, share: float = 0.5, random_state: int = 0) -> tuple[ClickLog, ClickLog]:
        """Return two logs, whole sessions (or, without sessions, rows) dealt at random: to learn from, to choose by."""
        check_share(share=share)
        unit = np.arange(self.n_impressions) if self.session is None else self.session
        drawn = (as_generator(random_state).random(int(unit.max(initial=-1)) + 1) < share)[unit]
        return self.take(drawn), self.take(~drawn)

    def to_queries(
        self,
        features: QueryDataset,
        propensities: Propensities,
        clip: float | None = 0.1,
        unknown: Literal["error", "drop"] = "error",
        candidates: Literal["all", "shown"] = "shown",
    ) -> QueryDataset:
        """Return the queries that have clicks: grade 1 and its weight for what was clicked, 0 for the rest.

        A document's weight is that of `weighing.click_weights`, 1/p for each click, at most 1/`clip`; a query's is the
        sum of them (times that of `features`), so that a loss that is a sum over relevant documents has, over what
        users do, the expectation that it would have with all documents judged (Joachims, Swaminathan and Schnabel 2017;
        `clip` trades a little of that for far less noise). `features` has a row per document of each query (its grades
        are not read). A click on a document without features is an error, or dropped with `unknown="drop"`. Lists hold
        what was shown: of other documents the log says nothing, and no propensity can make up for that.
        `candidates="all"` counts them as not clicked, which believes the rankers that left them out.
        """
        from .weighing import weighed

        check_choice(("error", "drop"), unknown=unknown)
        check_choice(("all", "shown"), candidates=candidates)
        return weighed(self, features, propensities, clip, drop=unknown == "drop", shown=candidates == "shown")

    def effective_sample_size(self, propensities: Propensities, clip: float | None = 0.1) -> float:
        """(Σ w)²/Σ w² over the clicks, w = 1/max(p, clip): how many clicks of equal weight would be as steady."""
        from .weighing import click_weights

        click_weights(self, propensities, clip)  # refuses what has no weight
        hit = self.counts.clicks > 0
        n, p = self.counts.clicks[hit], propensities.values[self.counts.position[hit] - 1]
        least = np.maximum(p, clip or 0.0)
        w = least.min(initial=1.0) / least  # in units of the largest weight
        return float((n * w).sum() ** 2 / (n * w * w).sum()) if hit.any() else 0.0

    def __repr__(self) -> str:
        def count(n: int, what: str, many: str = "") -> str:
            return f"{n:,} {what if n == 1 else many or what + 's'}"

        parts = [
            f"{count(self.n_impressions, 'impression')} of {count(len(np.unique(self.document)), 'document')}",
            count(len(np.unique(self.query)), "query", "queries"),
            *([] if self.session is None else [count(len(np.unique(self.session)), "session")]),
            count(int(self.clicked.sum()), "click"),
            f"positions {int(self.position.min(initial=1))} to {int(self.position.max(initial=1))}",
        ]
        return f"ClickLog({', '.join(parts)})"


def _first_seen(values: AnyArray) -> tuple[AnyArray, Ints]:
    """Return the distinct values as they appear, and the number of each row's value."""
    if values.dtype.kind in "OUS":  # a dict is faster than sorting text
        seen: dict[object, int] = {}
        items = values.tolist()
        code = np.fromiter((seen.setdefault(item, len(seen)) for item in items), dtype=np.int64, count=len(items))
        ids = np.array(list(seen)) if all(type(item) is str for item in seen) else np.empty(len(seen), dtype=object)
        if ids.dtype == object:
            ids[:] = list(seen)
        return ids, code
    ids, code = np.unique(values, return_inverse=True)
    return ids, code.astype(np.int64)


def _numbered(values: ArrayLike, what: str, n_rows: int | None = None) -> tuple[Ints, AnyArray]:
    try:
        array = np.asarray(values)
    except ValueError:  # lists of several lengths
        array = np.asarray(values, dtype=object)
    if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
        array = np.asarray(values, dtype=object)  # a missing value among text would become the text "nan"
    if array.ndim != 1 or (n_rows is not None and len(array) != n_rows):
        raise InputError(f"{what} must have one value per row of the log, got shape {array.shape}")
    if len(array) == 0:
        raise InputError("the click log is empty")
    try:
        ids, code = _first_seen(array)
    except TypeError:
        row = next(i for i, value in enumerate(array.tolist()) if not isinstance(value, Hashable))
        raise InputError(f"row {row} of the log has the {what} {array[row]}: an id is text or a number") from None
    for number, name in enumerate(ids.tolist()):
        if name is None or name != name:
            raise InputError(
                f"row {int(np.argmax(code == number))} of the log has no {what}: give one, or drop the row"
            )
    return code, ids


def _positions(position: ArrayLike, n_rows: int, places: _Places) -> Ints:
    array = np.asarray(position)
    if array.shape != (n_rows,) or array.dtype.kind not in "iuf":
        raise InputError(f"position must have one whole number per row of the log, got {array.dtype} {array.shape}")
    with np.errstate(invalid="ignore"):
        whole = array.astype(np.int64)
    bad = np.flatnonzero((whole != array) | (whole < 1) | (whole > 1 << 31))
    if len(bad):
        row = int(bad[0])
        remedy = "positions start at 1: add 1" if array[row] == 0 else "positions are whole numbers from 1"
        raise InputError(f"{places.one(row)} has position {array[row]}: {remedy}")
    return whole


def _flags(clicked: ArrayLike, n_rows: int, places: _Places) -> AnyArray:
    array = np.asarray(clicked)
    if array.shape != (n_rows,) or array.dtype.kind not in "biuf":
        raise InputError(f"clicked must have 0 or 1 per row of the log, got {array.dtype} {array.shape}")
    bad = np.flatnonzero((array != 0) & (array != 1))
    if len(bad):
        raise InputError(f"{places.one(int(bad[0]))} has clicked = {array[bad[0]]}: write 0 or 1")
    return array.astype(bool)


def _complete(column: Column, rows: AnyArray | slice = slice(None)) -> AnyArray:
    """Return the values of these rows, none of which may be missing."""
    empty = np.zeros(len(column.missing()), dtype=bool)
    empty[rows] = column.missing()[rows]
    if empty.any():
        raise InputError(f"column {column.name!r} of the log is empty in row {int(empty.argmax())}")
    return np.asarray(column.values())[rows]


def _one_of(columns: dict[str, Column], names: Sequence[str], table: str) -> Column:
    found = next((name for name in names if name in columns), None)
    if found is None:
        raise InputError(f"{table} has no column {' or '.join(map(repr, names))}")
    return columns[found]


def _acted_on(events: dict[str, Column], rows: AnyArray) -> AnyArray:
    """Return the id of the object of each of these events, which may lie inside its attributes."""
    if "event_attributes" not in events or "object_id" in events:
        return _complete(_one_of(events, _OBJECTS, "events"), rows)
    try:
        inside = [row["object"]["object_id"] for row in _complete(events["event_attributes"], rows).tolist()]
    except (TypeError, KeyError):
        raise InputError("events: event_attributes must hold object.object_id for each click") from None
    return np.array(inside, dtype=object)
