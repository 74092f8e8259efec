"""Measures that only ask whether a document is relevant: its grade lies above `above`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..data import validation
from .base import BLANK, BY_CONVENTION, Measure
from .order import Ties
from .plan import Row
from .presets import Blank, Kind, Norm, Short


@dataclass(frozen=True, kw_only=True)
class P(Measure):
    """P@k = (1/k) #{r ≤ k: relevant}; `short` says whether a list of n < k documents is divided by k or by n.

    >>> P(k=5).per_query([3.0, 2.0, 1.0], [0, 2, 1], [0, 3]).tolist()
    [0.4]
    """

    above: float = BY_CONVENTION
    ties: Ties = BY_CONVENTION
    short: Short = BY_CONVENTION

    short_name: ClassVar[str] = "p"
    aliases: ClassVar[tuple[str, ...]] = ("precision", "prec", "pre")

    def row(self) -> Row:
        """Return the codes by which the compiled pass computes this measure."""
        return Row(Kind.PRECISION, self.k, ties=self.ties, short=self.short, above=self.above)


@dataclass(frozen=True, kw_only=True)
class Recall(Measure):
    """Recall@k = #{r ≤ k: relevant} / #{relevant}; `blank` where nothing is relevant.

    >>> Recall(k=2).per_query([3.0, 2.0, 1.0], [0, 2, 1], [0, 3]).tolist()
    [0.5]
    """

    above: float = BY_CONVENTION
    ties: Ties = BY_CONVENTION
    blank: Blank = BY_CONVENTION

    short_name: ClassVar[str] = "recall"

    def row(self) -> Row:
        """Return the codes by which the compiled pass computes this measure."""
        return Row(Kind.RECALL, self.k, ties=self.ties, blank=BLANK[self.blank], above=self.above)


@dataclass(frozen=True, kw_only=True)
class WTA(Measure):
    """WTA = 1 if the document at rank 1 is relevant, else 0 (winner takes all).

    >>> WTA().per_query([3.0, 2.0, 1.0], [0, 2, 1], [0, 3]).tolist()
    [0.0]
    """

    above: float = BY_CONVENTION
    ties: Ties = BY_CONVENTION

    short_name: ClassVar[str] = "wta"
    cuts: ClassVar[bool] = False

    def row(self) -> Row:
        """Return the codes by which the compiled pass computes this measure."""
        return Row(Kind.PRECISION, 1, ties=self.ties, above=self.above)


@dataclass(frozen=True, kw_only=True)
class AP(Measure):
    """AP@k = (1/R) Σ_{r ≤ k, relevant} P@r, R = #{relevant} or, with `Norm.CUT`, min(#{relevant}, k).

    The mean over queries is MAP, and both names are read. `blank` where nothing is relevant.

    >>> AP().per_query([3.0, 2.0, 1.0], [0, 2, 1], [0, 3]).round(4).tolist()
    [0.5833]
    """

    above: float = BY_CONVENTION
    ties: Ties = BY_CONVENTION
    norm: Norm = BY_CONVENTION
    blank: Blank = BY_CONVENTION

    short_name: ClassVar[str] = "map"
    aliases: ClassVar[tuple[str, ...]] = ("ap",)
    tie_rules: ClassVar[tuple[Ties, ...]] = (*Measure.tie_rules, Ties.SHARED)

    def row(self) -> Row:
        """Return the codes by which the compiled pass computes this measure."""
        blank = BLANK[self.blank]
        return Row(Kind.AP, self.k, ties=self.ties, norm=self.norm, blank=blank, above=self.above)


@dataclass(frozen=True, kw_only=True)
class MRR(Measure):
    """RR@k = 1 / (rank of the first relevant document), 0 where that lies below k; `blank` where nothing is relevant.

    >>> MRR().per_query([3.0, 2.0, 1.0], [0, 2, 1], [0, 3]).tolist()
    [0.5]
    """

    above: float = BY_CONVENTION
    ties: Ties = BY_CONVENTION
    blank: Blank = BY_CONVENTION

    short_name: ClassVar[str] = "mrr"
    aliases: ClassVar[tuple[str, ...]] = ("rr",)

    def row(self) -> Row:
        """Return the codes by which the compiled pass computes this measure."""
        return Row(Kind.RR, self.k, ties=self.ties, blank=BLANK[self.blank], above=self.above)


@dataclass(frozen=True, kw_only=True)
class RBP(Measure):
    """RBP@k = (1 − p) Σ_{r ≤ k, relevant} p^{r−1}; with `graded` each term is weighed by its grade, as ranx does.

    >>> RBP(p=0.5).per_query([3.0, 2.0, 1.0], [0, 2, 1], [0, 3]).tolist()
    [0.375]
    """

    p: float = BY_CONVENTION
    above: float = BY_CONVENTION
    ties: Ties = BY_CONVENTION
    graded: bool = BY_CONVENTION

    short_name: ClassVar[str] = "rbp"

    def __post_init__(self) -> None:
        super().__post_init__()
        validation.check_fraction(p=self.p)

    def row(self) -> Row:
        """Return the codes by which the compiled pass computes this measure."""
        return Row(Kind.RBP, self.k, ties=self.ties, norm=int(self.graded), above=self.above, parameter=self.p)


@dataclass(frozen=True, kw_only=True)
class AUC(Measure):
    """AUC = share of the pairs of different grade that are ranked the right way round; a tied pair counts half.

    For two grades it is the area under the ROC curve of the list. `blank` where all grades are equal.

    >>> AUC().per_query([3.0, 2.0, 1.0], [0, 2, 1], [0, 3]).round(4).tolist()
    [0.3333]
    """

    ties: Ties = BY_CONVENTION
    blank: Blank = BY_CONVENTION

    short_name: ClassVar[str] = "auc"
    aliases: ClassVar[tuple[str, ...]] = ("pair_accuracy",)
    cuts: ClassVar[bool] = False

    def row(self) -> Row:
        """Return the codes by which the compiled pass computes this measure."""
        return Row(Kind.AUC, ties=self.ties, blank=BLANK[self.blank])
