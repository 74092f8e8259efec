"""Other libraries' words for what `fit` takes: `eval_set` for `valid`, `early_stopping_rounds` for `patience`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.dataset import QueryDataset
from ..data.validation import check_count
from ..errors import InputError

if TYPE_CHECKING:
    from .base import Ranker


def valid_of(valid: Any, eval_set: Any, eval_qid: Any) -> Any:
    """Return the validation set under whichever of its two names it came.

    LightGBM and XGBoost take lists of sets, each (X, y), and their query ids apart: one set is what there is to choose
    by here.

    >>> valid_of(None, [([[1.0]], [1])], [["a"]])
    ([[1.0]], [1], ['a'])
    """
    if eval_set is None:
        if eval_qid is not None:
            raise InputError("eval_qid goes with eval_set: the ids of its rows")
        return valid
    if valid is not None:
        raise InputError("valid and eval_set are two names of one thing: give one of them")
    one = _only(eval_set, "eval_set") if isinstance(eval_set, list) else eval_set
    if eval_qid is None:
        return one
    if isinstance(one, QueryDataset) or len(one) != 2:
        raise InputError("eval_qid has ids that eval_set has too: give them once")
    nested = isinstance(eval_qid, (list, tuple)) and len(eval_qid) and np.ndim(eval_qid[0]) > 0
    return (*one, _only(eval_qid, "eval_qid") if nested else eval_qid)


def _only(values: Any, name: str) -> Any:
    if len(values) != 1:
        raise InputError(f"{name} must hold one validation set, by which to choose, got {len(values)}")
    return values[0]


@contextmanager
def patience_of(ranker: Ranker, early_stopping_rounds: int | None) -> Iterator[None]:
    """Let a fit be as patient as `early_stopping_rounds` says; the parameter `patience` stays what it was."""
    if early_stopping_rounds is None:
        yield
        return
    own: Any = vars(ranker)
    if "patience" not in own:
        raise InputError(f"{type(ranker).__name__} has no patience: it does not stop early")
    check_count(early_stopping_rounds=early_stopping_rounds)
    before = own["patience"]
    own["patience"] = early_stopping_rounds
    try:
        yield
    finally:
        own["patience"] = before
