"""TREC files: runs (`query Q0 document rank score tag`) and judgements, the qrels (`query 0 document grade`)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._typing import AnyArray, ArrayLike, Floats, Ints
from ..errors import InputError, ParseError
from . import validation
from ._text import TextSource, create_bytes, name_of, open_bytes, text_array
from .dataset import QueryDataset
from .grouping import numbered
from .ids import id_text

_RUN = "query Q0 document rank score tag"
_QRELS = "query iteration document grade"


@dataclass(frozen=True, eq=False)
class Run:
    """Documents with scores, one row each, for any number of queries.

    >>> run = Run.of({"q1": {"d1": 0.5, "d2": 0.75}})
    >>> run.doc_ids.tolist(), run.scores.tolist(), run.rank.tolist()
    (['d1', 'd2'], [0.5, 0.75], [2, 1])
    """

    qid: AnyArray
    doc_ids: AnyArray
    scores: Floats

    def __post_init__(self) -> None:
        _check_lengths(self.qid, self.doc_ids, self.scores)

    @classmethod
    def of(cls, scores: Run | Mapping[str, Mapping[str, float]]) -> Run:
        """Make a run from scores by query and document; a run is returned as it is."""
        if isinstance(scores, Run):
            return scores
        qid, doc_ids, values = _flattened(scores, "run", "score")
        return cls(qid, doc_ids, validation.as_scores(values))

    @cached_property
    def rank(self) -> Ints:
        """Each row's place in its query, 1 for the highest score; ties keep the order of the rows."""
        code = numbered(self.qid)
        order = np.lexsort((-self.scores, code))
        starts = np.flatnonzero(np.diff(code[order], prepend=-1))
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order)))) + 1
        return places


@dataclass(frozen=True, eq=False)
class Qrels:
    """Documents with grades, one row each, for any number of queries; a grade below 0 means not judged.

    >>> Qrels.of({"q1": {"d1": 2, "d2": 0}}).grades.tolist()
    [2, 0]
    """

    qid: AnyArray
    doc_ids: AnyArray
    grades: Ints

    def __post_init__(self) -> None:
        _check_lengths(self.qid, self.doc_ids, self.grades)

    @classmethod
    def of(cls, grades: Qrels | Mapping[str, Mapping[str, int]]) -> Qrels:
        """Make judgements from grades by query and document; judgements are returned as they are."""
        if isinstance(grades, Qrels):
            return grades
        qid, doc_ids, values = _flattened(grades, "qrels", "grade")
        return cls(qid, doc_ids, _whole_grades(values))


def read_run(path: TextSource) -> Run:
    """Read a TREC run, plain or compressed; the scores decide, the ranks in the file do not (as in trec_eval).

    >>> import io
    >>> read_run(io.BytesIO(b"1 Q0 d7 1 3.5 mine\\n1 Q0 d2 2 1.25 mine\\n")).scores.tolist()
    [3.5, 1.25]
    """
    table = _WordTable.read(path, _RUN)
    scores = table.numbers(4, np.float64, "a score is a number")
    if np.isnan(scores).any():
        raise table.cell_error(int(np.isnan(scores).argmax()), 4, "a score is a number")
    return Run(*table.ids(), scores)


def read_qrels(path: TextSource) -> Qrels:
    """Read TREC judgements, plain or compressed.

    >>> import io
    >>> read_qrels(io.BytesIO(b"1 0 d7 2\\n1 0 d2 0\\n")).grades.tolist()
    [2, 0]
    """
    table = _WordTable.read(path, _QRELS)
    grades = table.numbers(3, np.int64, "a grade is a whole number")
    return Qrels(*table.ids(), grades)


def write_run(run: Run, path: str | os.PathLike[str], *, tag: str = "toprank") -> None:
    """Write a TREC run, best documents first; compressed by its suffix, `-` is standard output.

    >>> write_run(Run.of({"q1": {"d1": 0.5, "d2": 0.75}}), "-")
    q1 Q0 d2 1 0.75 toprank
    q1 Q0 d1 2 0.5 toprank
    """
    again = first_repeated(run.qid, run.doc_ids)
    if again is not None:
        raise InputError(
            f"document {run.doc_ids[again]} stands twice under query {run.qid[again]}: a run holds each document of a "
            "query once, so remove the duplicate rows"
        )
    order = np.lexsort((run.rank, numbered(run.qid)))
    (label,) = _single_words("tag", np.array([tag]))
    qid, doc_ids = _single_words("query ids", run.qid[order]), _single_words("document ids", run.doc_ids[order])
    rows = zip(qid, doc_ids, run.rank[order].tolist(), run.scores[order].tolist(), strict=True)
    _write(path, (f"{q} Q0 {d} {r} {s!r} {label}\n" for q, d, r, s in rows))


def write_qrels(qrels: Qrels, path: str | os.PathLike[str]) -> None:
    """Write TREC judgements in the order of the rows; compressed by its suffix, `-` is standard output.

    >>> write_qrels(Qrels.of({"q1": {"d1": 2}}), "-")
    q1 0 d1 2
    """
    qid, doc_ids = _single_words("query ids", qrels.qid), _single_words("document ids", qrels.doc_ids)
    _write(path, (f"{q} 0 {d} {g}\n" for q, d, g in zip(qid, doc_ids, qrels.grades.tolist(), strict=True)))


def run_of(data: QueryDataset, scores: ArrayLike) -> Run:
    """Return the documents of a data set as a run, best first; without document ids, row numbers (from 1) are ids.

    >>> run = run_of(QueryDataset.from_arrays(np.zeros((3, 1)), [0, 1, 2], [7, 7, 8]), [0.5, 0.75, 0.25])
    >>> list(zip(run.qid.tolist(), run.doc_ids.tolist(), run.rank.tolist()))
    [('7', '2', 1), ('7', '1', 2), ('8', '3', 1)]
    """
    values = data.grouped(validation.as_scores(scores, data.n_docs))
    order = np.lexsort((-values, data.query_of_rows))
    return Run(_query_ids(data)[order], _doc_ids(data)[order], values[order])


def qrels_of(data: QueryDataset) -> Qrels:
    """Return the grades of a data set as judgements.

    >>> qrels_of(QueryDataset.from_arrays(np.zeros((2, 1)), [0, 2], doc_ids=["a", "b"])).grades.tolist()
    [0, 2]
    """
    return Qrels(_query_ids(data), _doc_ids(data), _whole_grades(data.y))


def _check_lengths(*columns: AnyArray) -> None:
    if len({len(column) for column in columns}) > 1:
        raise InputError(f"one query, document and value per row, got {', '.join(str(len(c)) for c in columns)}")


def _query_ids(data: QueryDataset) -> AnyArray:
    return np.repeat(id_text(data.query_ids), data.lengths)


def _doc_ids(data: QueryDataset) -> AnyArray:
    if data.doc_ids is not None:
        return id_text(data.doc_ids)
    rows = np.arange(data.n_docs) if data.order is None else data.order
    return (rows + 1).astype(str)


def _whole_grades(grades: ArrayLike) -> Ints:
    values = validation.as_labels(grades)
    broken = values != np.rint(values)
    if broken.any():
        raise InputError(f"qrels hold whole grades: row {int(broken.argmax())} is {values[broken.argmax()]:g}")
    return values.astype(np.int64)


def _flattened(table: object, name: str, value: str) -> tuple[AnyArray, AnyArray, list[float]]:
    """Return the queries, the documents and the values of nested dictionaries, one of each per row."""
    if not isinstance(table, Mapping) or not all(isinstance(docs, Mapping) for docs in table.values()):
        what = type(table).__name__ if not isinstance(table, Mapping) else "a dictionary of something else"
        nested = f"a dictionary {{query: {{document: {value}}}}}"
        raise InputError(f"{name} must be what toprank.read_{name} returns, or {nested}, got {what}")
    rows = [(str(q), str(d), value) for q, docs in table.items() for d, value in docs.items()]
    return np.array([q for q, _, _ in rows]), np.array([d for _, d, _ in rows]), [value for *_, value in rows]


def _single_words(what: str, ids: AnyArray) -> list[str]:
    """Return ids as text without blanks, which part the words of a line."""
    words = [str(i) for i in ids.tolist()]
    if not all(words) or re.search(r"\s", "".join(words)):
        broken = next(word for word in words if len(word.split()) != 1 or word != word.strip())
        raise InputError(f"{what} in TREC files are single words, got {broken!r}")
    return words


def _write(path: str | os.PathLike[str], lines: Iterator[str]) -> None:
    with create_bytes(path) as file:
        file.writelines(line.encode() for line in lines)


_NUMBER: dict[type, type] = {np.float64: float, np.int64: int}
_NOT_IN_NUMBERS = re.compile(rb"[\0_]")
"""What numpy or Python allow in a number, and TREC files do not."""

_WIDEST = 64
"""Most letters of a number in a column that is converted as one array, each cell of which is as wide as the widest."""

_BLANK = np.zeros(256, dtype=bool)
_BLANK[list(b" \t\n\r\v\f")] = True


@dataclass(frozen=True)
class _WordTable:
    """A file whose lines hold the same number of words, and where each word stands."""

    file: str
    data: bytes
    starts: Ints
    """Offset of each word."""
    columns: list[list[bytes]]

    @classmethod
    def read(cls, path: TextSource, layout: str) -> _WordTable:
        width = len(layout.split())
        with open_bytes(path) as stream:
            data = stream.read()
        letters = np.frombuffer(data, dtype=np.uint8)
        blank = _BLANK[letters]
        starts = np.flatnonzero(~blank & np.concatenate(([True], blank[:-1])))
        per_line = np.diff(np.searchsorted(starts, np.flatnonzero(letters == ord("\n"))), prepend=0)
        per_line = np.append(per_line, len(starts) - per_line.sum())
        wrong = (per_line != width) & (per_line != 0)
        words = data.split()
        table = cls(name_of(path), data, starts, [words[k::width] for k in range(width)])
        if wrong.any():
            line = int(wrong.argmax())
            message = f"expected {width} words ({layout}), got {per_line[line]}"
            raise table.error(int(per_line[:line].sum()), message, until=b"\n")
        return table

    def error(self, word: int, message: str, *, until: bytes | None = None) -> ParseError:
        """Return an error that names the place of a word and shows it (or the rest of its line)."""
        start = int(self.starts[word])
        text = self.data[start : start + 1000].split(until, 1)[0].decode(errors="replace")
        line, column = self.data.count(b"\n", 0, start) + 1, start - self.data.rfind(b"\n", 0, start)
        return ParseError(message, file=self.file, line=line, column=column, text=text)

    def cell_error(self, row: int, column: int, message: str) -> ParseError:
        """Return an error that names the place of a word by its row and column."""
        return self.error(row * len(self.columns) + column, message)

    def numbers(self, column: int, dtype: type, what: str) -> AnyArray:
        """Return a column of numbers."""
        words = self.columns[column]
        if max(map(len, words), default=0) <= _WIDEST and not _NOT_IN_NUMBERS.search(b"".join(words)):
            with suppress(ValueError, OverflowError):
                return np.array(words, dtype=bytes).astype(dtype)
        wrong = next((i for i, word in enumerate(words) if not _reads_as(word, dtype)), None)
        if wrong is not None:
            raise self.cell_error(wrong, column, what)
        return np.array([_NUMBER[dtype](word) for word in words], dtype=dtype)

    def ids(self) -> tuple[AnyArray, AnyArray]:
        """Return query and document ids; a document may stand only once under a query."""
        qid, doc_ids = self._decoded(0), self._decoded(2)
        again = first_repeated(qid, doc_ids)
        if again is not None:
            raise self.cell_error(again, 2, f"this document stands twice under query {qid[again]}")
        return qid, doc_ids

    def _decoded(self, column: int) -> AnyArray:
        words = self.columns[column]
        with suppress(UnicodeDecodeError):
            return text_array([word.decode() for word in words])
        row = next(i for i, word in enumerate(words) if word.decode(errors="replace").encode() != word)
        raise self.cell_error(row, column, "ids are UTF-8 text")


def scores_of_run(run: Run, data: QueryDataset) -> Floats:
    """Return a run's score of each row of `data.X`; what the run does not hold ranks last, and is −∞.

    >>> data = QueryDataset.from_arrays([[1.0], [2.0]], [0, 1], ["q", "q"], doc_ids=["a", "b"])
    >>> scores_of_run(Run.of({"q": {"b": 0.5}}), data).tolist()
    [-inf, 0.5]
    """
    if data.doc_ids is None:
        raise InputError("a run names documents, and the data set has no doc_ids: read it with the column of their ids")
    again = first_repeated(run.qid, run.doc_ids)
    if again is not None:
        raise InputError(f"document {run.doc_ids[again]} stands twice under query {run.qid[again]} of the run")
    pairs = zip(id_text(run.qid).tolist(), id_text(run.doc_ids).tolist(), strict=True)
    known = dict(zip(pairs, run.scores.tolist(), strict=True))
    rows = zip(_query_ids(data).tolist(), _doc_ids(data).tolist(), strict=True)
    found = np.array([known.get(row, -np.inf) for row in rows], dtype=np.float64)
    if np.isneginf(found).all():
        raise InputError("the run holds none of the documents of these queries: do their ids belong together?")
    return found


def first_repeated(qid: AnyArray, doc_ids: AnyArray) -> int | None:
    """Return the first row whose document stood under the same query before; None where there is none."""
    pairs = numbered(qid) * (len(qid) + 1) + numbered(doc_ids)
    _, first = np.unique(pairs, return_index=True)
    again = np.ones(len(pairs), dtype=bool)
    again[first] = False
    return int(again.argmax()) if again.any() else None


def _reads_as(word: bytes, dtype: type) -> bool:
    with suppress(ValueError, OverflowError):
        np.array(_NUMBER[dtype](word), dtype=dtype)
        return not _NOT_IN_NUMBERS.search(word)
    return False
