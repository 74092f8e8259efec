"""LETOR text, read one line and one token at a time, straight from the definition of the format."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
MAX_INDEX = 2**31 - 2


class BadTextError(Exception):
    """The text is not LETOR; `place` is (line, column), or None where the fault has no place."""

    def __init__(self, place: tuple[int, int] | None) -> None:
        super().__init__(place)
        self.place = place


@dataclass
class Parsed:
    X: np.ndarray  # dense
    y: list[float]
    ptr: list[int]
    query_ids: list[str]
    doc_ids: list[str] | None
    order: list[int] | None
    written: int


def parse(text: bytes, *, dtype=np.float32, n_features: int | None = None, zero_based: bool | None = None) -> Parsed:
    if text.startswith(b"\xef\xbb\xbf"):
        text = b"   " + text[3:]
    labels, qids, entries, ids = [], [], [], []
    for number, line in enumerate(text.split(b"\n"), start=1):
        body, hash_, comment = line.partition(b"#")
        tokens = [(m.start() + 1, m[0]) for m in re.finditer(rb"[^ \t\r]+", body)]
        if not tokens:
            continue
        column, token = tokens.pop(0)
        labels.append(value_of(token, np.float64, (number, column)))
        # Where a second token is, or would be.
        column = tokens[0][0] if tokens else len(body) + 1
        has_qid = bool(tokens) and tokens[0][1].startswith(b"qid:")
        if qids and has_qid != (qids[0] is not None):
            raise BadTextError((number, column))
        qids.append(None)
        if has_qid:
            qids[-1] = query_id(tokens.pop(0)[1][4:], number, column)
        row = {}
        twice = None
        for column, token in tokens:
            index, colon, value = token.partition(b":")
            if not re.fullmatch(rb"[0-9]+", index) or not colon:
                raise BadTextError((number, column))
            lowest = 1 if zero_based is False else 0
            highest = MAX_INDEX if n_features is None else n_features - (zero_based is True)
            if not lowest <= int(index) <= highest or len(index) > 10:
                raise BadTextError((number, column))
            found = value_of(value, dtype, (number, column))
            if int(index) in row:
                twice = twice or column
            row[int(index)] = found
        if twice:
            raise BadTextError((number, twice))
        entries.append(row)
        ids.append(document_id(comment, number, len(body) + 2) if hash_ else "")
    if not labels:
        raise BadTextError(None)
    return assemble(labels, qids, entries, ids, dtype, n_features, zero_based)


def value_of(token: bytes, dtype, place: tuple[int, int]) -> float:
    if not NUMBER.fullmatch(token):
        raise BadTextError(place)
    with np.errstate(over="ignore"):
        value = float(np.array(float(token)).astype(dtype))
    if not np.isfinite(value):
        raise BadTextError(place)
    return value


def query_id(token: bytes, line: int, column: int) -> str:
    if not token:
        raise BadTextError((line, column))
    return id_text(token, (line, column + 4))


def document_id(comment: bytes, line: int, column: int) -> str:
    found = re.match(rb"[ \t\r]*docid[ \t\r]*=[ \t\r]*([^ \t\r]+)", comment)
    found = found or re.fullmatch(rb"[ \t\r]*([^ \t\r]+)[ \t\r]*", comment)
    if not found:
        return ""
    return id_text(found[1], (line, column + found.start(1)))


def id_text(raw: bytes, place: tuple[int, int]) -> str:
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise BadTextError(place) from None
    if "\0" in text:
        raise BadTextError(place)
    return text


def assemble(labels, qids, entries, ids, dtype, n_features, zero_based) -> Parsed:
    indices = {index for row in entries for index in row}
    zero = zero_based if zero_based is not None else 0 in indices
    base = 0 if zero else 1
    seen = max(indices, default=base - 1) - base + 1
    width = n_features or seen
    if width == 0 or seen > width:
        raise BadTextError(None)
    numbers = all(re.fullmatch(r"[0-9]+", one) for one in ids)
    if qids[0] is None and numbers and len(set(ids)) < len(ids):  # Yandex: the comment of a line is its query
        qids, ids = [query_id(one.encode(), 0, 0) for one in ids], [""] * len(ids)
    first_seen = list(dict.fromkeys(qids))
    order = sorted(range(len(qids)), key=lambda r: first_seen.index(qids[r]))
    lengths = [qids.count(qid) for qid in first_seen]
    X = np.zeros((len(labels), width), dtype=dtype) if width < 10_000 else np.empty((len(labels), 0))
    if X.shape[1]:
        for r, row in enumerate(order):
            for index, value in entries[row].items():
                X[r, index - base] = value
    return Parsed(
        X=X,
        y=[labels[r] for r in order],
        ptr=[sum(lengths[:k]) for k in range(len(lengths) + 1)],
        query_ids=["0"] if first_seen == [None] else first_seen,
        doc_ids=[ids[r] for r in order] if any(ids) else None,
        order=None if order == sorted(order) else order,
        written=sum(map(len, entries)),
    )
