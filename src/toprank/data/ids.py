"""Query and document ids: whatever is read from a file or a table is text, as it is written there.

Arrays that a caller passes (`qid=`, `doc_ids=`) stay what they are, so that results come back under the caller's own
keys. Where two of them meet (a data set and judgements, a click log and a table of features, two reports), their text
is compared: the number 7 and the text `7` are one id, `007` is another.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any

import numpy as np

from .._typing import AnyArray
from ..errors import InputError
from ._text import text_array


def id_text(ids: AnyArray) -> AnyArray:
    """Return ids as text: whole numbers without a decimal point, whatever their type, dates as ISO 8601 has them.

    >>> [id_text(np.array(ids)).tolist() for ids in ([7, 12], [7.0, 0.5], ["007"])]
    [['7', '12'], ['7', '0.5'], ['007']]
    """
    if ids.dtype.kind == "U":
        return ids
    if ids.dtype.kind == "M":
        return np.datetime_as_string(ids, unit="auto")
    try:
        return text_array(list(map(str if ids.dtype.kind in "iu" else _text, ids.tolist())))
    except UnicodeDecodeError as error:
        raise InputError(f"an id must be UTF-8 text, got {error.object!r}") from None


def same_ids(one: AnyArray, other: AnyArray) -> bool:
    """Say whether these are the same ids in the same order.

    >>> same_ids(np.array([7, 8]), np.array(["7", "8"])), same_ids(np.array([7]), np.array(["007"]))
    (True, False)
    """
    return len(one) == len(other) and id_text(one).tolist() == id_text(other).tolist()


def distinct_ids(*parts: AnyArray) -> set[str]:
    """Return the text of all these ids.

    >>> sorted(distinct_ids(np.array([7, 8]), np.array(["7", "x"])))
    ['7', '8', 'x']
    """
    found: Iterable[list[str]] = (id_text(part).tolist() for part in parts)
    return {text for part in found for text in part}


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return str(int(value))
    return value.isoformat() if isinstance(value, date) else str(value)
