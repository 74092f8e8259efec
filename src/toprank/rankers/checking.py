"""What every ranker refuses, and what it warns of: parameters, grades, features, lists."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, partial
from numbers import Integral
from types import UnionType
from typing import TYPE_CHECKING, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from .._typing import AnyArray, Ints
from ..data import validation
from ..data.dataset import QueryDataset
from ..data.ids import id_text
from ..data.remote import RemoteMatrix
from ..data.splits import ROUTING
from ..errors import InputError
from ..penalties import penalties_of
from .signs import check_signs

if TYPE_CHECKING:
    from ..objective import Objective
    from .base import Ranker

ONE_LIST = 20
"""So many rows without qid may well be one list; with more of them, fit and score say that they count as one."""


def check_parameters(ranker: Ranker) -> None:
    """Refuse parameters that a ranker does not take: by their names, and by the choices that their annotations list.

    >>> import toprank as tr
    >>> check_parameters(tr.ListNet(truth="clicks"))
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: truth must be one of 'grades', 'gains', 'order', got 'clicks'
    """
    for name, may_be_none, check in _checks(type(ranker)):
        value = vars(ranker)[name]
        if value is not None or not may_be_none:
            check(**{name: value})


def _check_seed(random_state: object) -> None:
    if not isinstance(random_state, Integral) or random_state < 0:
        drawn = hasattr(random_state, "bit_generator") or hasattr(random_state, "get_state")
        remedy = ": a generator changes with every use, and a ranker repeats its fits, so draw a number from it"
        raise InputError(
            f"random_state must be a whole number not below 0, got {random_state!r}{remedy if drawn else ''}"
        )


_COUNTS = (
    "batch_size", "budget", "cut", "degree", "epochs", "every", "max_iter", "orders", "patience", "rounds", "thresholds"
)  # fmt: skip
_BY_NAME: dict[str, Callable[..., object]] = {
    **dict.fromkeys(_COUNTS, validation.check_count),
    **dict.fromkeys(("gamma", "radius", "tol"), validation.check_positive),
    **dict.fromkeys(("alpha", "coef0"), validation.check_not_negative),
    "random_state": _check_seed,
    "penalty": penalties_of,
    "signs": check_signs,
}
"""How a parameter is checked: its name means the same in every ranker."""


@cache
def _checks(kind: type[Ranker]) -> list[tuple[str, bool, Callable[..., object]]]:
    """Return the parameters that are checked, whether each may be None, and how; found once, as streams count time."""
    hints, found = get_type_hints(kind), list[tuple[str, bool, Callable[..., object]]]()
    for name in kind._get_param_names():
        parts = get_args(hints[name]) if get_origin(hints[name]) in (Union, UnionType) else (hints[name],)
        listed = [_VALUES.get(part, get_args(part) if get_origin(part) is Literal else ()) for part in parts]
        if all(listed) and parts != (bool,):
            choices = tuple(value for values in listed for value in values)
            found.append((name, False, partial(validation.check_choice, choices)))
        elif name in _BY_NAME:
            found.append((name, type(None) in parts, _BY_NAME[name]))
    return found


_VALUES = {bool: (True, False), type(None): (None,)}


def check_learnable(data: QueryDataset) -> None:
    """Refuse grades and features that no ranker can learn from, by row or column: all data passes here on its way in.

    >>> check_learnable(QueryDataset.from_arrays([[1.0], [0.0]], [1024, 0]))
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: y has the grade 1024 in row 0: grades go up to 1000, as 2^grade overflows: renumber them
    """
    grades = data.in_caller_order(data.y)
    validation.check_grades(grades, data.place)
    largest = validation.LARGEST_GRADE
    remedy = f"grades go up to {largest:g}, as 2^grade overflows: renumber them"
    validation.check_largest_grade(grades, largest, remedy, data.place)
    if data.mapped is not None:
        validation.as_matrix(data.X, feature_names=data.feature_names)  # a file can change after it was opened
    # Nothing else is asked of what lies in files or on a cluster: learners refuse what overflows.
    if data.mapped is None and not isinstance(data.X, RemoteMatrix):
        order = data.order
        known = None if data.source is None else lambda row: data.place(row if order is None else int(order[row]))
        validation.check_magnitude(data.X, data.feature_names, known)


def check_no_doc_weight(who: str, data: QueryDataset) -> None:
    """Refuse weights of documents that a ranker would ignore."""
    if data.doc_weight is not None:
        raise InputError(
            f"{who} learns without weights of documents: take ListNet, RankSVM or LinearRanker, or leave doc_weight out"
        )


def warn_of_one_list(what: str, rows: int) -> None:
    """Say that many rows without qid count as one list."""
    if rows > ONE_LIST:
        warnings.warn(
            f"{what} without qid takes all {rows:,} rows as one list; if they belong to several queries, pass "
            f"qid=... (in scikit-learn's model selection {ROUTING}; one list on purpose: qid=[0] * len(y))",
            stacklevel=3,
        )


UNEVEN_FOR_STEPS = 100.0
"""From here on one step size for all features serves the largest ones alone."""


def check_even_features(who: str, data: QueryDataset, *, steps: bool) -> None:
    """Warn of features whose ranges differ by orders of magnitude, to a ranker that treats all of them alike.

    A ranker that takes `steps` of one size learns nothing from the smaller features: it is warned much earlier, and
    refuses to start where the others are warned.
    """
    known = data.mapped is None and not isinstance(data.X, RemoteMatrix)
    ratio = validation.unevenness(data.X) if known else 1.0
    if ratio < (UNEVEN_FOR_STEPS if steps else validation.UNEVEN):
        return
    own = ', or set scale="running"' if steps else ""
    told = (
        f"{who} treats features alike, and the largest is {ratio:.0e} times the median one: set "
        f'prepare="log,query" (toprank.SignedLog, then toprank.QueryNormalizer){own}'
    )
    if steps and ratio >= validation.UNEVEN:
        raise InputError(told)
    warnings.warn(told, stacklevel=4)


OUTWEIGHS = 3.0
"""A penalty that is so many times the loss leaves nothing of it."""


def warn_of_small_features(who: str, objective: Objective, alpha: float) -> None:
    """Warn where the penalty outweighs the loss: weights that part the scores of a list by 1 cost more than it.

    Scores that differ by 1 need weights of 1/σ, σ the largest spread of a feature inside lists, and alpha/(2σ²) of
    penalty; at w = 0 there is the whole loss to gain.
    """
    if isinstance(objective.data.X, RemoteMatrix):
        return
    sample = objective.sample
    found = sample.spread()
    spread2 = float((found.diagonal() if found.ndim == 2 else found).max(initial=0.0))
    loss_at_zero, _ = sample.value_and_grad(np.zeros(objective.n_features))
    if spread2 > 0 and alpha / (2 * spread2) > OUTWEIGHS * loss_at_zero:
        warnings.warn(
            f"{who}: the penalty alpha={alpha:g} outweighs the loss, since no feature spreads by more than "
            f"{np.sqrt(spread2):.1e} inside lists: weights stay near 0. Scale the features up (prepare='query' or "
            f"'standard'), or set alpha below {spread2 / 10:.0e}",
            stacklevel=5,
        )


def warn_of_split_lists(seen: tuple[AnyArray, Ints] | None, query_ids: AnyArray, lengths: Ints) -> None:
    """Say that queries were partly learned from: a split that ignores them gives numbers of another problem."""
    if seen is None:
        return
    known = dict(zip(id_text(seen[0]).tolist(), seen[1].tolist(), strict=True))
    pairs = zip(id_text(query_ids).tolist(), lengths.tolist(), strict=True)
    split = sum(known.get(query, length) != length for query, length in pairs)
    if split:
        warnings.warn(
            f"{split} of {len(query_ids)} queries were also learned from, with other rows: the split cuts queries "
            "apart, and the value is not that of new queries; split by query (cv=toprank.QueryKFold(5))",
            stacklevel=4,
        )
