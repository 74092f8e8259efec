"""What a certificate is: a theorem applied to numbers that were observed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from .._html import bound_bar, element
from ..errors import InputError

if TYPE_CHECKING:
    from ..data.dataset import QueryDataset

Verdict = Literal["holds", "vacuous", "violated", "does not apply", "no verdict"]

ROUNDING = 1e-9
"""Two numbers nearer than this, in proportion, are one number: (√L)² < L in floating point for many a whole L."""


@dataclass(frozen=True)
class Assumption:
    """A condition of a theorem; `verified` is True or False where the data were asked, None where it is trusted.

    >>> print(Assumption("none of them was learned from", False, "3 of 20 were"))
    none of them was learned from (not met: 3 of 20 were)
    """

    text: str
    verified: bool | None = None
    found: str = ""
    """What the data showed, where the text alone does not say it."""

    @property
    def state(self) -> Literal["checked", "not met", "on trust"]:
        """What became of it, in a word."""
        if self.verified is None:
            return "on trust"
        return "checked" if self.verified else "not met"

    @property
    def sentence(self) -> str:
        """The condition, and what the data showed."""
        return f"{self.text}: {self.found}" if self.found else self.text

    def __str__(self) -> str:
        return f"{self.text} ({self.state}{f': {self.found}' if self.found else ''})"


@dataclass(frozen=True)
class Certificate:
    """A bound, the value it bounds, what it rests on, and all numbers that went into it.

    `value` is the bound and `observed` the quantity that the theorem puts on the other side; `sense` says which way
    the inequality points. Both are plain numbers, so `holds()` is a comparison anyone can redo. `verdict` is one of
    five: "holds" (the bound is respected and says something), "vacuous" (respected, and no better than what was known
    before: `vacuous_from`), "violated", "does not apply" (an assumption was compared and is false), and "no verdict"
    (the theorem leaves a constant unnamed, so there is nothing to compare with).

    >>> certificate = Certificate(
    ...     statement="cumulative loss ≤ A/γ²", value=40.0, observed=12.0,
    ...     assumptions=(Assumption("a unit vector separates every query with margin 0.1", True),),
    ...     reference="Corollary 7", terms={"A": 0.4, "γ": 0.1}, arithmetic="0.4/0.1² = 40", vacuous_from=100.0,
    ... )
    >>> certificate.verdict, certificate.holds()
    ('holds', True)
    >>> print(certificate)
    cumulative loss ≤ A/γ²: observed 12, bound 40 (Corollary 7); holds. Assumes: a unit vector separates every query
    with margin 0.1 (checked).
    >>> print(certificate.explain())
    cumulative loss ≤ A/γ² (Corollary 7)
      A = 0.4, γ = 0.1
      bound 0.4/0.1² = 40, vacuous from 100 on
      observed 12: holds
      checked: a unit vector separates every query with margin 0.1
    """

    statement: str
    value: float
    observed: float
    reference: str
    assumptions: tuple[Assumption, ...] = ()
    sense: Literal["<=", ">="] = "<="
    vacuous_from: float | None = None
    """A bound at or beyond this value says nothing (an expected loss that cannot exceed 1, say)."""
    order_only: bool = False
    """Whether the theorem gives only an order O(·): `value` then leaves out a constant the paper does not name."""
    meaning: str = ""
    """What it says, in the words of whoever runs the search."""
    terms: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """The numbers that went into the bound, by their symbols; "u" is the comparator."""
    arithmetic: str = ""
    """The bound, with the numbers in the places of the symbols."""
    redo: Callable[[QueryDataset], Certificate] | None = field(default=None, compare=False, repr=False)
    """How `recompute` does it."""
    _silence: ClassVar[str] = "nothing follows here"

    def __post_init__(self) -> None:
        """Let `meaning` assert nothing where nothing follows."""
        failed = next((a for a in self.assumptions if a.verified is False), None)
        if failed is not None:
            vars(self)["meaning"] = f"{self._silence}: {failed.found or f'it would take that {failed.text}'}"
        elif self.order_only:
            vars(self)["meaning"] = f"{self._silence}: the theorem leaves a constant open"

    @property
    def assumptions_hold(self) -> bool:
        """Whether no assumption was found violated."""
        return all(assumption.verified is not False for assumption in self.assumptions)

    @property
    def vacuous(self) -> bool:
        """Whether the bound says nothing."""
        if self.vacuous_from is None:
            return not math.isfinite(self.value)
        up = self.sense == "<="
        return not _clearly_below(*((self.value, self.vacuous_from) if up else (self.vacuous_from, self.value)))

    def holds(self, rtol: float = ROUNDING) -> bool:
        """Say whether the observed value respects the bound, up to rounding; `verdict` also asks what that is worth."""
        slack = rtol * max(abs(self.value), abs(self.observed), 1.0) if math.isfinite(self.value) else 0.0
        if self.sense == "<=":
            return self.observed <= self.value + slack
        return self.observed >= self.value - slack

    @property
    def verdict(self) -> Verdict:
        """What comes of it, in one of five words."""
        if not self.assumptions_hold:
            return "does not apply"
        if self.order_only:
            return "no verdict"
        if not self.holds():
            return "violated"
        return "vacuous" if self.vacuous else "holds"

    def explain(self) -> str:
        """Write the arithmetic out: every number, the bound, the observed value, and what was assumed."""
        known = ", ".join(f"{name} = {_shown(value)}" for name, value in self.terms.items())
        bound = f"bound {self.arithmetic or f'{self.value:.6g}'}"
        if self.vacuous_from is not None:
            bound += f", vacuous from {self.vacuous_from:.6g} {'on' if self.sense == '<=' else 'down'}"
        lines = [f"{self.statement} ({self.reference})", known, bound, f"observed {self.observed:.6g}: {self.verdict}"]
        lines += [f"{a.state}: {a.sentence}" for a in self.assumptions]
        return "\n  ".join(filter(None, [self.meaning and f"{self.meaning}\n", *lines])).replace("\n\n", "\n")

    def recompute(self, data: QueryDataset) -> Certificate:
        """Do it again on `data`, with the same comparator."""
        if self.redo is None:
            raise InputError(f"{self.reference} was not made from a data set here: certify again")
        return self.redo(data)

    def _claim(self) -> str:
        numbers = f"observed {self.observed:.6g}, bound {self.value:.6g}"
        return f"{self.statement}: {numbers} ({self.reference}); {self.verdict}"

    def __str__(self) -> str:
        assumes = f". Assumes: {'; '.join(map(str, self.assumptions))}" if self.assumptions else ""
        return f"{self._claim()}{assumes}."

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain values for JSON."""
        said = ("statement", "meaning", "verdict", "value", "observed", "sense", "reference", "arithmetic")
        return {name: getattr(self, name) for name in (*said, "assumptions_hold", "vacuous", "order_only")} | {
            "holds": self.holds(),
            "terms": {name: _plain(value) for name, value in self.terms.items()},
            "assumptions": [{"text": a.text, "verified": a.verified, "found": a.found} for a in self.assumptions],
        }

    def _repr_html_(self) -> str:
        sentence = element("p", escape(f"{self._claim()}."))
        assumed = [element("li", escape(str(assumption))) for assumption in self.assumptions]
        return sentence + bound_bar(self.observed, self.value) + (element("ul", *assumed) if assumed else "")


def _clearly_below(a: float, b: float) -> bool:
    """a < b, and not by rounding alone."""
    return a < b and (math.isinf(a) or math.isinf(b) or b - a > ROUNDING * max(abs(a), abs(b)))


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value if isinstance(value, (int, float, str)) else _shown(value)


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"a vector of {len(value)} weights"
    if not isinstance(value, (int, float, str)):
        return f"a {type(value).__name__}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def scientific(log_value: float) -> str:
    """Show e^log_value, however large.

    >>> scientific(math.log(1234.5)), scientific(1e4), scientific(math.log(0.5))
    ('1.23e+03', '8.81e+4342', '0.5')
    """
    if math.isinf(log_value):
        return "inf" if log_value > 0 else "0"
    if abs(log_value) < 690:
        return f"{math.exp(log_value):.3g}"
    power = log_value / math.log(10)
    return f"{10 ** (power - math.floor(power)):.3g}e{math.floor(power):+d}"
