"""What a certificate is: a theorem applied to numbers that were observed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

from .._html import bound_bar, element


@dataclass(frozen=True)
class Assumption:
    """A condition of a theorem; `verified` is True or False where the data were asked, None where it is trusted."""

    text: str
    verified: bool | None = None

    def __str__(self) -> str:
        state = {True: "checked", False: "VIOLATED", None: "taken on trust"}[self.verified]
        return f"{self.text} ({state})"


@dataclass(frozen=True)
class Certificate:
    """A bound, the value it bounds, and what it rests on.

    `value` is the bound and `observed` the quantity that the theorem puts on the other side; `sense` says which way
    the inequality points. Both are plain numbers, so `holds()` is a comparison anyone can redo.

    >>> certificate = Certificate(
    ...     statement="cumulative loss ≤ A/γ²", value=40.0, observed=12.0,
    ...     assumptions=(Assumption("a unit vector separates every query with margin 0.1", True),),
    ...     reference="Corollary 7",
    ... )
    >>> certificate.holds()
    True
    >>> print(certificate)
    cumulative loss ≤ A/γ²: observed 12, bound 40 (Corollary 7); holds. Assumes: a unit vector separates every query
    with margin 0.1 (checked).
    """

    statement: str
    value: float
    observed: float
    reference: str
    assumptions: tuple[Assumption, ...] = ()
    sense: Literal["<=", ">="] = "<="
    vacuous_from: float = math.inf
    """A bound at or beyond this value says nothing (an expected loss that cannot exceed 1, say)."""
    order_only: bool = False
    """Whether the theorem gives only an order O(·): `value` then leaves out a constant the paper does not name."""

    @property
    def assumptions_hold(self) -> bool:
        """Whether no assumption was found violated."""
        return all(assumption.verified is not False for assumption in self.assumptions)

    @property
    def vacuous(self) -> bool:
        """Whether the bound says nothing."""
        return not self.value < self.vacuous_from if self.sense == "<=" else not self.value > -self.vacuous_from

    def holds(self, rtol: float = 1e-9) -> bool:
        """Say whether the observed value respects the bound, up to rounding."""
        slack = rtol * max(abs(self.value), abs(self.observed), 1.0) if math.isfinite(self.value) else 0.0
        if self.sense == "<=":
            return self.observed <= self.value + slack
        return self.observed >= self.value - slack

    @property
    def verdict(self) -> str:
        """Say in a few words what comes of it: holds, vacuous, does not apply."""
        if not self.assumptions_hold:
            return "does not apply (an assumption is violated)"
        if self.vacuous:
            return "vacuous"
        held = "holds" if self.holds() else "DOES NOT HOLD"
        return f"{held} up to a constant the paper leaves unnamed" if self.order_only else held

    def _claim(self) -> str:
        numbers = f"observed {self.observed:.6g}, bound {self.value:.6g}"
        return f"{self.statement}: {numbers} ({self.reference}); {self.verdict}"

    def __str__(self) -> str:
        assumes = f". Assumes: {'; '.join(map(str, self.assumptions))}" if self.assumptions else ""
        return f"{self._claim()}{assumes}."

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain values for JSON."""
        return {
            "statement": self.statement,
            "value": self.value,
            "observed": self.observed,
            "sense": self.sense,
            "reference": self.reference,
            "assumptions": [{"text": a.text, "verified": a.verified} for a in self.assumptions],
            "holds": self.holds(),
            "assumptions_hold": self.assumptions_hold,
            "vacuous": self.vacuous,
            "order_only": self.order_only,
        }

    def _repr_html_(self) -> str:
        sentence = element("p", escape(f"{self._claim()}."))
        assumed = [element("li", escape(str(assumption))) for assumption in self.assumptions]
        return sentence + bound_bar(self.observed, self.value) + (element("ul", *assumed) if assumed else "")
