"""Chunks of LETOR text: read one after the other, parsed and checked on several threads, given back in order."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from .._typing import AnyArray
from ..errors import InputError, ParseError
from . import _letor_kernels as kernels
from . import _rows_kernels
from ._text import ByteStream

CHUNK = 1 << 19
"""Bytes read at a time: they stay in the cache until they are parsed."""

LONGEST_LINE = 1 << 28

MAX_INDEX = 2**31 - 2
"""Feature indices are 32-bit, as in a CSR matrix."""

_TOKEN = re.compile(rb"[^ \t\r\n]*")
_NUMBER = re.compile(rb"[^ \t\r\n#]*")
_FIRST_ROW = re.compile(rb"^[ \t\r]*[^ \t\r\n#]+[ \t\r]*(qid:)?", re.MULTILINE)


@dataclass(frozen=True)
class Rules:
    """What a line may hold: the file it is in, the type of its values, its lowest and highest feature index."""

    name: str
    dtype: np.dtype[Any]
    n_features: int | None
    zero_based: bool | None

    @property
    def lowest(self) -> int:
        """Smallest index: 0, unless the file is said to count from 1."""
        return int(self.zero_based is False)

    @property
    def highest(self) -> int:
        """Largest index that could be right; a file that counts from 1 may go one further."""
        return MAX_INDEX if self.n_features is None else self.n_features - (self.zero_based is True)


class Block(NamedTuple):
    """The features and document ids of some rows, in the form that takes the least memory.

    A dense block has `values` of two dimensions, whose first column is the feature of index `first`, and no `columns`.
    A sparse block has a value and a feature index for all that is not +0. `lengths` counts what is not +0 in a row.
    `ids` are bytes, with a line feed behind each id; there are none if no row has an id.
    """

    lengths: AnyArray
    first: AnyArray
    values: AnyArray
    columns: AnyArray
    ids: AnyArray


class Chunk(NamedTuple):
    """What some lines hold."""

    labels: AnyArray
    block: Block
    written: int
    """Number of cells that the lines write, be it as 0."""
    top_index: int
    has_index_zero: bool
    longest_id: int
    has_queries: bool
    query_starts: list[int]
    query_names: list[str]
    """One for each run of rows with the same query id."""


def read_chunks(stream: ByteStream, rules: Rules, *, threads: int, size: int = CHUNK) -> Iterator[Chunk]:
    """Parse a stream on several threads; give what each chunk holds, in the order of the file.

    The calling thread reads, so Ctrl-C interrupts it even while it waits for standard input.
    """
    jobs = _jobs(stream, rules, size)
    if threads == 1:
        for job in jobs:
            yield job()
        return
    waiting: deque[Future[Chunk]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for job in jobs:
            waiting.append(pool.submit(job))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _jobs(stream: ByteStream, rules: Rules, size: int) -> Iterator[Callable[[], Chunk]]:
    """Cut a stream into chunks of whole lines, each to be parsed by a call."""
    first_line = 1
    has_queries: bool | None = None
    try:
        for text in _whole_lines(stream, rules.name, size):
            if first_line == 1 and text.startswith(b"\xef\xbb\xbf"):  # the mark some editors put before UTF-8
                text = b"   " + text[3:]
            if has_queries is None and (row := _FIRST_ROW.search(text)):
                has_queries = row[1] is not None
            n_lines = kernels.count_byte(np.frombuffer(text, dtype=np.uint8), kernels.LF)
            yield partial(parse_chunk, text, range(first_line, first_line + n_lines), bool(has_queries), rules)
            first_line += n_lines
    except InputError as error:
        yield partial(_fail, error)  # when its turn comes: a bad line before it is reported first


def _fail(error: InputError) -> Chunk:
    raise error


def _whole_lines(stream: ByteStream, name: str, size: int) -> Iterator[bytes]:
    rest: list[bytes] = []
    length = 0
    while piece := stream.read(max(size, length)):
        cut = piece.rfind(b"\n") + 1
        if cut:
            yield b"".join((*rest, memoryview(piece)[:cut]))
            rest, length = [], 0
        rest.append(piece[cut:])
        length += len(piece) - cut
        if length > LONGEST_LINE:
            raise InputError(f"{name} has a line of more than {LONGEST_LINE >> 20} MB: no LETOR text")
    if last := b"".join(rest):
        yield last + b"\n"


def parse_chunk(text: bytes, lines: range, has_queries: bool, rules: Rules) -> Chunk:
    """Return what whole lines hold, or raise what is wrong with the first bad one; `lines` are their numbers."""
    raw = np.frombuffer(text, dtype=np.uint8)
    room, entries = _make_room(len(lines), kernels.count_byte(raw, kernels.COLON), rules.dtype)
    parsed = kernels.parse_lines(raw, kernels.Limits(rules.lowest, rules.highest, has_queries), room, entries)
    problems = _Problems(text, lines.start, rules)
    # A bad line counts as far as it was read: what comes first in it is reported.
    begun = parsed.rows + (parsed.problem not in (kernels.OK, kernels.BAD_LABEL))
    problems.read_hard_numbers(room.labels[:begun], room.starts, kernels.BAD_LABEL)
    problems.read_hard_numbers(entries.values[: parsed.entries], entries.starts, kernels.BAD_VALUE)
    query_starts = np.flatnonzero(room.new_query[:begun]).tolist()
    spans = zip(room.query_starts[query_starts].tolist(), room.query_lengths[query_starts].tolist(), strict=True)
    query_names = [problems.decode(*span) for span in spans]
    if parsed.problem != kernels.OK:
        problems.add(parsed.position, parsed.problem)
    rows = kernels.Rows(*(array[: parsed.rows] for array in room))
    entries = kernels.Entries(*(array[: rows.lengths.sum(dtype=np.int64)] for array in entries))
    if not parsed.rising:
        entries = _sorted(rows, entries, problems)
    ids, longest_id = _document_ids(raw, rows, problems)
    problems.raise_first()
    first, top = int(entries.columns.min(initial=1)), int(entries.columns.max(initial=0))
    return Chunk(
        labels=rows.labels,
        block=_pack(rows.lengths, entries, first, top, ids),
        written=len(entries.values),
        top_index=top,
        has_index_zero=first == 0,
        longest_id=longest_id,
        has_queries=has_queries,
        query_starts=query_starts,
        query_names=query_names,
    )


def _make_room(n_rows: int, n_entries: int, dtype: np.dtype[Any]) -> tuple[kernels.Rows, kernels.Entries]:
    """Make arrays for rows and entries, at most one per line feed and one per colon."""
    rows = kernels.Rows(np.empty(n_rows), np.empty(n_rows, dtype=bool), *np.empty((6, n_rows), dtype=np.int32))
    columns, starts = np.empty(n_entries, dtype=np.int32), np.empty(n_entries, dtype=np.int32)
    return rows, kernels.Entries(np.empty(n_entries, dtype=dtype), columns, starts)


def _sorted(rows: kernels.Rows, entries: kernels.Entries, problems: _Problems) -> kernels.Entries:
    """Sort the entries of each row by index, and refuse an index given twice."""
    row = np.repeat(np.arange(len(rows.lengths)), rows.lengths)
    order = np.lexsort((entries.columns, row))
    values, columns, starts = (array[order] for array in entries)
    twice = (row[1:] == row[:-1]) & (columns[1:] == columns[:-1])
    if twice.any():
        problems.add(int(starts[1:][twice].min()), "a feature index given twice")
    return kernels.Entries(values, columns, starts)


def _document_ids(raw: AnyArray, rows: kernels.Rows, problems: _Problems) -> tuple[AnyArray, int]:
    """Return the ids as bytes, and the number of letters of the longest."""
    total = int(rows.id_lengths.sum(dtype=np.int64))
    if total == 0:
        return np.empty(0, dtype=np.uint8), 0
    ids = np.empty(total + len(rows.id_lengths), dtype=np.uint8)
    kernels.join_ids(raw, rows.id_starts, rows.id_lengths, ids)
    try:
        words = decode_ids(ids)
    except UnicodeDecodeError:
        words = []
    if not words or 0 in ids:
        words = [problems.decode(*span) for span in zip(rows.id_starts.tolist(), rows.id_lengths.tolist(), strict=True)]
    return ids, max(map(len, words))


def decode_ids(ids: AnyArray) -> list[str]:
    """Return the document ids of a block as text."""
    return ids.tobytes().decode().split("\n")[:-1]


def _pack(lengths: AnyArray, entries: kernels.Entries, first: int, top: int, ids: AnyArray) -> Block:
    """Make a block of sorted rows with indices `first` to `top`, dense if that takes less memory.

    So the blocks of a file take no more than its matrix will, whether that is dense or sparse in the end.
    """
    values, columns, _ = entries
    n_rows, width = len(lengths), top - first + 1
    stored = _rows_kernels.count_stored(values, lengths)
    n_stored = int(stored.sum(dtype=np.int64))
    empty = columns[:0]
    if n_rows * width * values.itemsize <= n_stored * (values.itemsize + columns.itemsize):
        if len(values) == n_rows * width:  # sorted, none twice: every column
            grid = values.reshape(n_rows, width)
        else:
            grid = np.zeros((n_rows, width), dtype=values.dtype)
            _rows_kernels.fill_rows(grid, first, lengths, values, columns)
        return Block(stored, np.array(first), grid, empty, ids)
    if n_stored < len(values):
        kept = (values != 0) | np.signbit(values)
        values, columns = values[kept], columns[kept]
    return Block(stored, np.array(first), values, columns, ids)


class _Problems:
    """What is wrong in a chunk; the first of it is raised."""

    def __init__(self, text: bytes, first_line: int, rules: Rules) -> None:
        self._text, self._first_line, self._rules = text, first_line, rules
        self._found: list[tuple[int, str]] = []

    def add(self, position: int, problem: int | str) -> None:
        """Note a problem of the token at a position."""
        self._found.append((position, problem if isinstance(problem, str) else self._explain(problem, position)))

    def raise_first(self) -> None:
        """Raise the problem that comes first in the text, if there is one, with its line and column in the file."""
        if self._found:
            position, message = min(self._found, key=itemgetter(0))
            line = self._first_line + self._text.count(b"\n", 0, position)
            column = position - self._text.rfind(b"\n", 0, position)
            token = self._token(position)[:80]
            raise ParseError(message, file=self._rules.name, line=line, column=column, text=token)

    def read_hard_numbers(self, numbers: AnyArray, starts: AnyArray, problem: int) -> None:
        """Let Python read the few numbers that the parser left as NaN; `problem` is what one beyond all bounds is."""
        for k in np.flatnonzero(np.isnan(numbers)).tolist():
            start = int(starts[k])
            number = start if problem == kernels.BAD_LABEL else self._text.index(b":", start) + 1
            with np.errstate(over="ignore"):
                numbers[k] = float(self._text[number : _end_of(_NUMBER, self._text, number)])
            if np.isinf(numbers[k]):
                self.add(start, problem)

    def decode(self, start: int, length: int) -> str:
        """Return an id as text; one that is not text is a problem."""
        raw = self._text[start : start + length]
        try:
            if b"\0" not in raw:  # an array of text would lose it
                return raw.decode()
        except UnicodeDecodeError:
            pass
        self.add(start, "an id must be UTF-8 text")
        return ""

    def _token(self, position: int) -> str:
        return self._text[position : _end_of(_TOKEN, self._text, position)].decode(errors="backslashreplace")

    def _explain(self, problem: int, position: int) -> str:
        token, rules = self._token(position), self._rules
        if problem == kernels.BAD_LABEL:
            return _problem_of_number(token, "label", np.dtype(np.float64)) or "expected a label, which is a number"
        if problem == kernels.BAD_VALUE:
            return _problem_of_number(token.partition(":")[2], "value", rules.dtype) or "expected feature:value"
        if problem == kernels.BAD_INDEX and rules.lowest == 1 and not token.partition(":")[0].strip("0"):
            return "feature index 0 in a file that is read as counting from 1: pass zero_based=True"
        if problem == kernels.BAD_INDEX and rules.n_features is not None:
            return f"feature index beyond n_features={rules.n_features}"
        return {
            kernels.BAD_QUERY: "expected an id after qid:",
            kernels.BAD_FEATURE: "expected feature:value",
            kernels.BAD_INDEX: f"feature index above {MAX_INDEX}",
            kernels.UNEXPECTED_QUERY: "qid: stands here but not on the lines before",
            kernels.MISSING_QUERY: "expected qid: as on the lines before",
        }[problem]


def _problem_of_number(token: str, what: str, dtype: np.dtype[Any]) -> str | None:
    text = token.partition("#")[0].lower().lstrip("+-")
    if text in ("nan", "inf", "infinity"):
        return f"a {what} must be finite"
    if re.fullmatch(r"(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", text, re.ASCII):
        return f"the {what} is too large for {dtype}"
    return None


def _end_of(pattern: re.Pattern[bytes], text: bytes, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start
