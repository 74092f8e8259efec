"""Conventions named after tools: the rule each of them follows where definitions differ.

A convention is a table of rules: some for all measures ("*"), some for one. What a tool does not have (LightGBM has no
reciprocal rank) follows the tool's general rules, and `standard` where it has none. `standard` takes the expected value
over random orders of tied documents (McSherry and Najork 2008), so that the order of the rows counts for nothing.

Found by running the tools: XGBoost scores in single precision, reads `ndcg` without a cut-off as @32, and its `auc`
also counts pairs of equal grade, which no other tool does (ours never counts them); ranx keeps the input order of ties
only in lists of up to 15 documents (beyond, numba's quicksort leaves them in an order that nobody chose, which is not
followed here); in a weighted mean of NDCG, LightGBM and XGBoost add 1 for a query without relevant documents and its
weight to the divisor (`UNWEIGHTED_BLANKS`; in one of MAP it adds its weight), so that light blank queries can carry the
mean beyond 1, which XGBoost refuses to print; RankLib's MAP knows no cut-off, so `map@k` is refused under its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import TypeAlias

from ..data.validation import check_choice
from .order import Ties


class Gain(IntEnum):
    """What a grade is worth: EXP2 is 2^l − 1, LINEAR is l."""

    EXP2 = 0
    LINEAR = 1


class Discount(IntEnum):
    """What rank r counts: LOG2 is 1/log2(r + 1); LETOR is 1 at ranks 1 and 2, then 1/log2(r)."""

    LOG2 = 0
    LETOR = 1


class Short(IntEnum):
    """A list shorter than k: PAD counts the missing places as irrelevant, SHORTEN sets k := n, ZERO makes it 0."""

    PAD = 0
    SHORTEN = 1
    ZERO = 2


class Blank(IntEnum):
    """A query with nothing to find: ZERO and ONE are its value, SKIP leaves it out (NaN per query)."""

    ZERO = 0
    ONE = 1
    SKIP = 2


class Norm(IntEnum):
    """What average precision is divided by: ALL relevant documents, or CUT to min(relevant, k)."""

    ALL = 0
    CUT = 1


Value: TypeAlias = float | bool | None
Rules: TypeAlias = Mapping[str, Mapping[str, Value]]

_STANDARD: Rules = {
    "*": {
        "gain": Gain.EXP2,
        "discount": Discount.LOG2,
        "ties": Ties.AVERAGE,
        "short": Short.PAD,
        "blank": Blank.ZERO,
        "above": 0.0,
        "norm": Norm.ALL,
    },
    "rbp": {"p": 0.8, "graded": False},
    "err": {"gain": Gain.EXP2, "max_grade": 4.0},
    "auc": {"ties": Ties.AVERAGE, "blank": Blank.SKIP},  # without two grades there is no pair to order
    "bpref": {"unopposed": Blank.ONE},
}
_LETOR_4: Rules = {
    "*": {"discount": Discount.LETOR, "ties": Ties.INPUT},
    **{measure: {"short": Short.ZERO} for measure in ("dcg", "ndcg", "meanndcg")},
}
_BLANK_NDCG_IS_1: Rules = {measure: {"blank": Blank.ONE} for measure in ("ndcg", "meanndcg")}

CONVENTIONS: Mapping[str, Rules] = MappingProxyType(
    {
        "standard": _STANDARD,
        "letor3": {"*": {"discount": Discount.LETOR, "ties": Ties.INPUT}},
        "letor4": _LETOR_4,
        "mslr": {**_LETOR_4, "*": {"discount": Discount.LETOR, "ties": Ties.INPUT, "above": 1.0}},
        "trec_eval": {"*": {"gain": Gain.LINEAR, "ties": Ties.ID}},
        "sklearn": {
            "*": {"gain": Gain.LINEAR, "ties": Ties.AVERAGE},
            "map": {"ties": Ties.SHARED},
        },
        "lightgbm": {
            "*": {"ties": Ties.INPUT, "above": 0.5},
            **_BLANK_NDCG_IS_1,
            "map": {"norm": Norm.CUT, "blank": Blank.ONE},
        },
        "xgboost": {
            "*": {"ties": Ties.INPUT},
            **_BLANK_NDCG_IS_1,
            "map": {"norm": Norm.CUT, "blank": Blank.ONE},
            "p": {"short": Short.SHORTEN},
        },
        "catboost": {
            "*": {"gain": Gain.LINEAR, "ties": Ties.WORST, "above": 0.5},
            **_BLANK_NDCG_IS_1,
            "recall": {"blank": Blank.ONE},
            "auc": {"blank": Blank.ZERO},
            "map": {"norm": Norm.CUT},
            "p": {"short": Short.SHORTEN},
            "err": {"gain": Gain.LINEAR, "max_grade": 1.0},
        },
        "ranklib": {"*": {"ties": Ties.INPUT}, "p": {"short": Short.SHORTEN}, "map": {"k": None}},
        "ranx": {
            "*": {"gain": Gain.LINEAR, "ties": Ties.INPUT},
            "rbp": {"graded": True},
            "bpref": {"unopposed": Blank.SKIP},
        },
    }
)

UNWEIGHTED_BLANKS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"lightgbm": ("ndcg", "meanndcg"), "xgboost": ("ndcg", "meanndcg")}
)
"""Measures whose weighted mean is (Σ_{q blank} v_q + Σ_{q not} w_q v_q) / Σ_q w_q under a convention."""


def rule(convention: str, measure: str, field: str) -> Value:
    """Return what a convention says about a field of a measure; the rule for one measure goes before the general one.

    >>> rule("lightgbm", "map", "blank")
    <Blank.ONE: 1>
    >>> rule("lightgbm", "mrr", "blank")
    <Blank.ZERO: 0>
    """
    check_choice(tuple(CONVENTIONS), convention=convention)
    own = CONVENTIONS[convention]
    for table in (own.get(measure, {}), _STANDARD.get(measure, {}), own.get("*", {}), _STANDARD["*"]):
        if field in table:
            return table[field]
    raise KeyError(f"no convention has a rule for {measure}.{field}")


def fixes_cutoff(convention: str, measure: str) -> bool:
    """Say whether the convention's own measure knows no cut-off."""
    return "k" in CONVENTIONS[convention].get(measure, {})


def relevant_above(convention: str) -> float:
    """Return the grade that a document must exceed to be relevant.

    >>> relevant_above("standard"), relevant_above("mslr")
    (0.0, 1.0)
    """
    return float(rule(convention, "map", "above") or 0)
