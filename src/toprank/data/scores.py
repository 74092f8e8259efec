"""Files of scores that another program wrote: a number a line, or a table with a column of scores."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import numpy as np

from .._files import read_whole
from .._suggest import did_you_mean
from .._typing import Floats
from ..errors import InputError
from .trec import Run

_QUERY = ("query", "qid", "query_id")
_DOCUMENT = ("doc_id", "document", "docid", "id")


def read_scores(path: str, qid: str | None = None, doc_id: str | None = None) -> Floats | Run:
    """Return one score per row, or a run where the file names queries and documents.

    A file is one number a line, in the order of the rows that were scored (as RankLib, LightGBM and SVMrank write
    them), or a table (commas, semicolons or tabs) with a header and a column `score`; with columns of query and
    document ids besides (`qid` and `doc_id` name them), the order does not matter.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "mine.csv"
    >>> _ = file.write_text("query,doc_id,score\\nq1,d1,0.5\\nq1,d2,0.75\\n")
    >>> read_scores(str(file)).scores.tolist()
    [0.5, 0.75]
    >>> _ = file.write_text("0.5\\n0.75\\n")
    >>> read_scores(str(file)).tolist()
    [0.5, 0.75]
    """
    content, name = read_whole(path)
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise InputError(
            f"{name} is not text: scores are one number a line, or a table with a column 'score'"
        ) from None
    rows = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not rows:
        raise InputError(f"{name} is empty: scores are one number a line, or a table with a column 'score'")
    if _number(rows[0][1]) is not None:
        return np.array([_score(name, number, line) for number, line in rows])
    return _table(name, rows, qid, doc_id)


def _table(name: str, rows: Sequence[tuple[int, str]], qid: str | None, doc_id: str | None) -> Floats | Run:
    head = rows[0][1]
    sep = max("\t;,", key=head.count)
    columns = [cell.strip() for cell in next(csv.reader([head], delimiter=sep))]
    if "score" not in columns:
        raise InputError(
            f"{name}:{rows[0][0]}: no column 'score'{did_you_mean('score', columns)}: {', '.join(columns)}"
        )
    places = [_column(name, columns, wanted, known) for wanted, known in ((qid, _QUERY), (doc_id, _DOCUMENT))]
    at, scores, ids = columns.index("score"), [], []
    for number, line in rows[1:]:
        cells = next(csv.reader(io.StringIO(line), delimiter=sep))
        if len(cells) != len(columns):
            raise InputError(f"{name}:{number}: {len(cells)} cells, and the header has {len(columns)}")
        scores.append(_score(name, number, cells[at]))
        ids.append([cells[place].strip() for place in places if place is not None])
    if None in places:
        return np.array(scores)
    return Run(np.array([one[0] for one in ids]), np.array([one[1] for one in ids]), np.array(scores))


def _column(name: str, columns: Sequence[str], wanted: str | None, known: Sequence[str]) -> int | None:
    if wanted is not None and wanted not in columns:
        if wanted in known:
            wanted = None
        else:
            raise InputError(f"{name}: no column {wanted!r}{did_you_mean(wanted, columns)}: {', '.join(columns)}")
    found = [wanted] if wanted is not None else [column for column in known if column in columns]
    return columns.index(found[0]) if found else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _score(name: str, line: int, text: str) -> float:
    found = _number(text)
    if found is None or found != found:
        raise InputError(f"{name}:{line}: a score must be a number, got {text.strip()!r}")
    return found
