"""A chunk of LETOR text: parsed by the kernel, but for a few numbers that Python reads, and checked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import Any

import numpy as np

from .._typing import AnyArray
from ..errors import InputError, ParseError
from . import _decimal_kernels
from . import _letor_kernels as kernels
from ._rows_kernels import take_spans

MAX_INDEX = 2**31 - 2
"""Feature indices are 32-bit, as in a CSR matrix."""

_TOKEN = re.compile(rb"[^ \t\r\n]*")
_LABEL = re.compile(rb"[^ \t\r\n#]*")
_BLANKS = re.compile(rb"[ \t\r]*")
_INDEX = re.compile(rb"(?<=[ \t\r])(\d+):")


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


class Chunk:
    """Whole lines and what they hold; one per thread, used again and again."""

    parsed: kernels.Parsed
    labels: AnyArray
    lengths: AnyArray
    values: AnyArray
    columns: AnyArray
    runs: AnyArray
    run_names: dict[int, str]
    id_text: AnyArray
    id_lengths: AnyArray

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.bytes = bytearray()
        self.number = self.size = self.first_line = 0
        self.fraction: float | None = None
        self.trouble: InputError | None = None
        self._rows: dict[str, AnyArray] = {}
        self._entries: dict[str, AnyArray] = {}
        self._errors: list[tuple[int, str]] = []

    def reserve(self, size: int) -> None:
        """Make room for so many bytes of text, keeping what is there."""
        if len(self.bytes) < size:
            self.bytes = self.bytes + bytes(size + size // 8 - len(self.bytes))

    def parse(self) -> None:
        """Parse the lines; what is wrong with them is kept for `check`, when their number in the file is known."""
        text = np.frombuffer(self.bytes, dtype=np.uint8)
        rows, entries = self._scratch(len(self.bytes) // 16 + 16)
        parsed = self._call_parser(text, rows, entries)
        if parsed.code == kernels.NO_ROOM:  # short lines: no line is shorter than two bytes
            rows, entries = self._scratch(len(self.bytes) // 2 + 1)
            parsed = self._call_parser(text, rows, entries)
        self._errors = []
        if parsed.code != kernels.OK:
            self._errors.append((parsed.position, self._explain(parsed.code, parsed.position)))
        n = parsed.rows
        self.labels, self.lengths = rows["labels"][:n], rows["lengths"][:n]
        self.runs, spans = rows["runs"][: parsed.runs], rows["ids"][:n]
        self._read_hard_numbers(rows["labels"], entries["values"], entries["fixes"][: parsed.fixes])
        self.values, self.columns = entries["values"][: parsed.entries], entries["columns"][: parsed.entries]
        if parsed.unsorted:
            self._sort(rows["starts"])
        self.id_lengths = spans[:, 1]
        self.id_text = np.empty(parsed.id_bytes, dtype=np.uint8)
        if parsed.id_bytes:
            take_spans(text, spans, self.id_text)
            raw = self.id_text.tobytes()
            if not raw.isascii() or b"\0" in raw:
                for start, length in spans:
                    self._decode(start, length)
        self.run_names = {int(k): self._decode(*self.runs[k, 2:]) for k in np.flatnonzero(self.runs[:, 3])}
        self.parsed = parsed

    def _scratch(self, n: int) -> tuple[dict[str, AnyArray], dict[str, AnyArray]]:
        """Arrays for n rows, and for the entries: four bytes of text are the least for one."""
        if len(self._rows.get("labels", ())) < n:
            self._rows = {
                "labels": np.empty(n),
                "lengths": np.empty(n, dtype=np.int32),
                "starts": np.empty(n, dtype=np.int64),
                "runs": np.empty((n, 4), dtype=np.int64),
                "ids": np.empty((n, 2), dtype=np.int64),
            }
        most = len(self.bytes) // 4 + 1
        if len(self._entries.get("values", ())) < most:
            self._entries = {
                "values": np.empty(most, dtype=self.rules.dtype),
                "columns": np.empty(most, dtype=np.int32),
                "fixes": np.empty((most, 3), dtype=np.int64),
            }
        return self._rows, self._entries

    def _call_parser(self, text: AnyArray, rows: dict[str, AnyArray], entries: dict[str, AnyArray]) -> kernels.Parsed:
        limits = (np.uint64(limit) for limit in (self.size, self.rules.lowest, self.rules.highest))
        arrays = (*rows.values(), *entries.values())  # in the order of the kernel's parameters
        parsed: kernels.Parsed = kernels.parse_chunk(text, *limits, *power_table(), *arrays)
        return parsed

    def _read_hard_numbers(self, labels: AnyArray, values: AnyArray, places: AnyArray) -> None:
        """Let Python read the few numbers that the parser leaves to it."""
        for entry, start, stop in places:
            value = float(self.bytes[start:stop])
            with np.errstate(over="ignore"):
                if entry < 0:
                    labels[-1 - entry] = value
                    finite = np.isfinite(value)
                else:
                    values[entry] = value
                    finite = np.isfinite(values[entry])
            if not finite:
                code = kernels.BAD_LABEL if entry < 0 else kernels.BAD_VALUE
                token = int(start) if entry < 0 else max(self.bytes.rfind(blank, 0, start) for blank in b" \t\r") + 1
                self._errors.append((token, self._explain(code, token)))

    def _sort(self, starts: AnyArray) -> None:
        """Sort the entries of each row, and refuse an index given twice."""
        row = np.repeat(np.arange(len(self.lengths)), self.lengths)
        order = np.lexsort((self.columns, row))
        self.values, self.columns = self.values[order], self.columns[order]
        twice = (row[1:] == row[:-1]) & (self.columns[1:] == self.columns[:-1])
        if twice.any():
            place = self._place_of_repeated(int(starts[row[:-1][twice][0]]))
            self._errors.append((place, "a feature index given twice"))

    def drop_zeros(self) -> None:
        """Forget the entries that are +0, which a sparse matrix does not hold."""
        kept = (self.values != 0) | np.signbit(self.values)
        if not kept.all():
            row = np.repeat(np.arange(len(self.lengths)), self.lengths)
            self.values, self.columns = self.values[kept], self.columns[kept]
            self.lengths = np.bincount(row[kept], minlength=len(self.lengths)).astype(np.int32)

    def _place_of_repeated(self, line: int) -> int:
        """Find where in a line an index stands for the second time."""
        seen: set[int] = set()
        stop = self.bytes.index(b"\n", line)
        hash_ = self.bytes.find(b"#", line, stop)
        for match in _INDEX.finditer(self.bytes, line, stop if hash_ < 0 else hash_):
            if int(match[1]) in seen:
                return match.start()
            seen.add(int(match[1]))
        raise AssertionError("no index stands twice")

    def _decode(self, start: int, length: int) -> str:
        """Return an id as text; one that is not text is an error of its line."""
        raw = self.bytes[start : start + length]
        try:
            if b"\0" not in raw:  # an array of text would lose it
                return raw.decode()
        except UnicodeDecodeError:
            pass
        self._errors.append((int(start), "an id must be UTF-8 text"))
        return ""

    def check(self, has_qid: bool | None) -> None:
        """Raise what was wrong in the chunk first; `has_qid` says what the lines before it had."""
        if self.trouble is not None:
            raise self.trouble
        if self.parsed.qid_known and has_qid not in (None, self.parsed.has_qid):
            label = _end_of(_BLANKS, self.bytes, int(self._rows["starts"][0]))
            second = _end_of(_BLANKS, self.bytes, _end_of(_LABEL, self.bytes, label))
            code = kernels.QID_MISSING if has_qid else kernels.QID_APPEARS
            self._errors.insert(0, (second, self._explain(code, second)))
        if self._errors:
            raise self.error(*min(self._errors, key=itemgetter(0)))

    def error(self, position: int, message: str) -> ParseError:
        """Name the line and the column of a position in the chunk."""
        line = self.first_line + self.bytes.count(b"\n", 0, position) + 1
        column = position - self.bytes.rfind(b"\n", 0, position)
        return ParseError(message, file=self.rules.name, line=line, column=column, text=self._token(position)[:80])

    def _token(self, position: int) -> str:
        return self.bytes[position : _end_of(_TOKEN, self.bytes, position)].decode(errors="backslashreplace")

    def _explain(self, code: int, position: int) -> str:
        token, rules = self._token(position), self.rules
        if code == kernels.BAD_LABEL:
            return _problem_of_number(token, "label", np.dtype(np.float64)) or "expected a label, which is a number"
        if code == kernels.BAD_VALUE:
            return _problem_of_number(token.partition(":")[2], "value", rules.dtype) or "expected feature:value"
        if code == kernels.BAD_INDEX and int(token.partition(":")[0]) < rules.lowest:
            return "feature index 0 in a file that is read as counting from 1: pass zero_based=True"
        if code == kernels.BAD_INDEX and rules.n_features is not None:
            return f"feature index beyond n_features={rules.n_features}"
        return {
            kernels.BAD_QID: "expected an id after qid:",
            kernels.BAD_FEATURE: "expected feature:value",
            kernels.BAD_INDEX: f"feature index above {MAX_INDEX}",
            kernels.QID_APPEARS: "qid: stands here but not on the lines before",
            kernels.QID_MISSING: "expected qid: as on the lines before",
        }[code]


def _problem_of_number(token: str, what: str, dtype: np.dtype[Any]) -> str | None:
    text = token.partition("#")[0].lower().lstrip("+-")
    if text in ("nan", "inf", "infinity"):
        return f"a {what} must be finite"
    if re.fullmatch(r"(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", text, re.ASCII):
        return f"the {what} is too large for {dtype}"
    return None


def _end_of(pattern: re.Pattern[bytes], text: bytearray, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start


@cache
def power_table() -> tuple[AnyArray, AnyArray]:
    """Return the powers of ten for the kernels, made once."""
    powers, table = _decimal_kernels.power_table()
    return powers, table
