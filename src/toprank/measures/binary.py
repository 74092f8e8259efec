"""Measures that only ask whether a document is relevant: its grade lies above `above`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .._typing import Floats, Ints
from ..data import validation
from ..errors import InputError
from .base import BY_CONVENTION, Compiled
from .order import Ties
from .plan import Recipe
from .presets import Blank, Norm, Short


def places_at_share(share: float, positives: Any) -> Any:
    """⌈κ n₊⌉ of a share κ and of n₊ relevant documents, or of many such counts; `_list_kernels` has it for kernels.

    What κ n₊ has too much by rounding adds no place: 0.07 · 100 is 7.000000000000001.

    >>> float(places_at_share(0.07, 100)), places_at_share(0.5, np.array([0, 1, 5])).tolist()
    (7.0, [0.0, 1.0, 3.0])
    """
    return np.ceil(share * positives * (1.0 - 1e-12))


@dataclass(frozen=True, kw_only=True)
class Binary(Compiled):
    """A measure in [0, 1] of who is relevant."""

    above: float = BY_CONVENTION
    ties: Ties = BY_CONVENTION

    bounded = True


@dataclass(frozen=True, kw_only=True)
class P(Binary):
    """P@k = (1/k) #{r ≤ k: relevant}; `short` says whether a list of n < k documents is divided by k or by n.

    >>> P(k=5).per_query([3.0, 2.0, 1.0], [0, 2, 1], [0, 3]).tolist()
    [0.4]
    """

    short: Short = BY_CONVENTION

    short_name = "p"
    aliases = ("precision", "prec", "pre")
    tells_apart = "top"
    function = "precision"
    codes = ("short",)


@dataclass(frozen=True, kw_only=True)
class Recall(Binary):
    """Recall@k = #{r ≤ k: relevant} / #{relevant}; `blank` where nothing is relevant.

    >>> Recall(k=2).per_query([3.0, 2.0, 1.0], [0, 2, 1], [0, 3]).tolist()
    [0.5]
    """

    blank: Blank = BY_CONVENTION

    short_name = "recall"
    aliases = ("r",)
    tells_apart = "top"
    function = "recall"
    numbers = ("share",)
    share = 0.0


@dataclass(frozen=True, kw_only=True)
class WTA(Binary):
    """WTA = 1 if the document at rank 1 is relevant, else 0 (winner takes all).

    >>> WTA().per_query([3.0, 2.0, 1.0], [0, 2, 1], [0, 3]).tolist()
    [0.0]
    """

    short_name = "wta"
    cuts = False
    tells_apart = "first"

    def recipe(self) -> Recipe:
        """Return the C function and its parameters."""
        return Recipe("precision", (int(Short.PAD),), (0.0, self.above), 1)


@dataclass(frozen=True, kw_only=True)
class Success(Binary):
    """Success@k = 1 if any of the first k documents is relevant, else 0.

    >>> Success(k=2).per_query([3.0, 2.0, 1.0], [0, 2, 1], [0, 3]).tolist()
    [1.0]
    """

    short_name = "success"
    aliases = ("hit", "hit_rate")
    tells_apart = "top"
    function = "success"


@dataclass(frozen=True, kw_only=True)
class PAtShare(Binary):
    """P@κ = P@⌈κ n₊⌉, n₊ = #{relevant} and 0 < κ ≤ 1 the `share`; read from "p@25%" or "prec@0.25".

    What the precision@k learners with `kappa` aim at. `blank` where nothing is relevant.

    >>> print(PAtShare(share=0.5), PAtShare(share=0.5).per_query([3.0, 2.0, 1.0], [0, 2, 1], [0, 3]).tolist())
    p@50% [0.0]
    """

    share: float = 0.25
    blank: Blank = BY_CONVENTION

    short_name = "p@share"
    cuts = False
    best_is_one = True
    tells_apart = "relevant"
    function = "recall"
    numbers = ("share",)

    def __post_init__(self) -> None:
        super().__post_init__()
        validation.check_positive(share=self.share)
        if self.share > 1:
            raise InputError(f"share must be at most 1, got {self.share:g}: it is a part of the relevant documents")
        object.__setattr__(self, "share", float(self.share))

    @property
    def name(self) -> str:
        """The share as a percentage where that is exact."""
        percent = f"{100 * self.share:g}"
        return f"p@{percent}%" if float(percent) / 100 == self.share else f"p@{self.share!r}"


P.by_share = PAtShare


@dataclass(frozen=True, kw_only=True)
class RPrecision(Binary):
    """R-precision = P@R, R = #{relevant}; `blank` where nothing is relevant.

    >>> RPrecision().per_query([3.0, 2.0, 1.0], [0, 2, 1], [0, 3]).tolist()
    [0.5]
    """

    blank: Blank = BY_CONVENTION

    short_name = "rprec"
    aliases = ("r-precision", "r_precision", "rprecision")
    cuts = False
    best_is_one = True
    tells_apart = "relevant"
    function = "recall"
    numbers = ("share",)
    share = 1.0


@dataclass(frozen=True, kw_only=True)
class AP(Binary):
    """AP@k = (1/R) Σ_{r ≤ k, relevant} P@r, R = #{relevant} or, with `Norm.CUT`, min(#{relevant}, k).

    The mean over queries is MAP, and both names are read. `blank` where nothing is relevant.

    >>> AP().per_query([3.0, 2.0, 1.0], [0, 2, 1], [0, 3]).round(4).tolist()
    [0.5833]
    """

    norm: Norm = BY_CONVENTION
    blank: Blank = BY_CONVENTION

    short_name = "map"
    aliases = ("ap", "map_cut")
    best_is_one = True
    tells_apart = "relevant"
    tie_rules = (*Compiled.tie_rules, Ties.SHARED)
    function = "average_precision"
    codes = ("norm",)


@dataclass(frozen=True, kw_only=True)
class MRR(Binary):
    """RR@k = 1 / (rank of the first relevant document), 0 where that lies below k; `blank` where nothing is relevant.

    >>> MRR().per_query([3.0, 2.0, 1.0], [0, 2, 1], [0, 3]).tolist()
    [0.5]
    """

    blank: Blank = BY_CONVENTION

    short_name = "mrr"
    aliases = ("rr", "recip_rank")
    best_is_one = True
    tells_apart = "first"
    function = "reciprocal_rank"


@dataclass(frozen=True, kw_only=True)
class RBP(Compiled):
    """RBP@k = (1 − p) Σ_{r ≤ k, relevant} p^{r−1}; with `graded` each term is weighed by its grade, as ranx does.

    >>> RBP(p=0.5).per_query([3.0, 2.0, 1.0], [0, 2, 1], [0, 3]).tolist()
    [0.375]
    """

    p: float = BY_CONVENTION
    above: float = BY_CONVENTION
    ties: Ties = BY_CONVENTION
    graded: bool = BY_CONVENTION

    short_name = "rbp"
    function = "rank_biased"
    codes = ("graded",)
    numbers = ("p",)

    def __post_init__(self) -> None:
        super().__post_init__()
        validation.check_fraction(p=self.p)

    @property
    def bounded(self) -> bool:
        """Whether all values lie in [0, 1]: where grades do not weigh."""
        return not self.graded

    @property
    def tells_apart(self) -> Literal["places", "relevant"]:
        """Which orders are worth the same."""
        return "places" if self.graded else "relevant"

    def check(self, y: Floats, ptr: Ints, lowest: float, highest: float) -> None:
        """Refuse grades below 0 where they weigh."""
        if self.graded and lowest < 0:
            validation.check_grades(y)


@dataclass(frozen=True, kw_only=True)
class AUC(Compiled):
    """AUC = share of the pairs of different grade that are ranked the right way round; a tied pair counts half.

    For two grades it is the area under the ROC curve of the list. `blank` where all grades are equal.

    >>> AUC().per_query([3.0, 2.0, 1.0], [0, 2, 1], [0, 3]).round(4).tolist()
    [0.3333]
    """

    ties: Ties = BY_CONVENTION
    blank: Blank = BY_CONVENTION

    short_name = "auc"
    aliases = ("pair_accuracy",)
    cuts = False
    for_runs = False
    bounded = True
    best_is_one = True
    function = "pair_accuracy"
