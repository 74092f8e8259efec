"""Penalties: what an objective adds to the mean loss to keep the weights small, or few."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ._typing import Floats
from .data.validation import check_not_negative, is_number
from .errors import InputError


@dataclass(frozen=True)
class L2:
    """(alpha/2) ‖w‖², which makes a convex objective alpha-strongly convex.

    Parameters
    ----------
    alpha : the weight of the penalty; larger holds weights smaller.

    >>> import numpy as np
    >>> penalty, w = L2(2.0), np.array([1.0, 3.0])
    >>> penalty.value(w), penalty.gradient(w).tolist(), penalty.curvature_product(w).tolist()
    (10.0, [2.0, 6.0], [2.0, 6.0])
    """

    alpha: float = 0.0

    def __post_init__(self) -> None:
        check_not_negative(alpha=self.alpha)

    @property
    def strong_convexity(self) -> float:
        """How strongly convex the penalty is: alpha."""
        return self.alpha

    def measured(self, spreads: Callable[[], Floats]) -> L2:
        """Return the penalty itself: it takes the weights as they are."""
        return self

    def value(self, w: Floats) -> float:
        """Return (alpha/2) ‖w‖²."""
        return 0.5 * self.alpha * float(w @ w)

    def gradient(self, w: Floats) -> Floats:
        """Return alpha w."""
        return self.alpha * w

    def curvature_product(self, v: Floats) -> Floats:
        """Return the second derivative times v, alpha v; it does not depend on w."""
        return self.alpha * v


@dataclass(frozen=True)
class L1:
    """alpha Σ_j u_j |w_j|, which sets the weights of features that help little to exactly 0.

    The unit u_j of a weight is the spread of its feature: the root of its mean variance inside the lists that are
    learned from. So alpha counts scores, and a feature in other units gets the same penalty. `units` of your own
    replace the spreads, one for each column that the scores are made of: units of 1 are the plain alpha ‖w‖₁.

    Parameters
    ----------
    alpha : the weight of the penalty; larger sets more weights to 0.
    units : what the weights are measured in, one for each column; empty stands for the spreads of the features.

    >>> import numpy as np
    >>> penalty, w = L1(2.0, units=(1.0, 10.0)), np.array([1.0, -3.0])
    >>> penalty.value(w), penalty.gradient(w).tolist()
    (62.0, [2.0, -20.0])
    """

    alpha: float = 0.0
    units: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check_not_negative(alpha=self.alpha)
        object.__setattr__(self, "units", tuple(self.units))
        for unit in self.units:
            check_not_negative(units=unit)

    @property
    def strong_convexity(self) -> float:
        """How strongly convex the penalty is: not at all."""
        return 0.0

    def measured(self, spreads: Callable[[], Floats]) -> L1:
        """Return the penalty with units: its own, or the spreads of the features."""
        return self if self.units else replace(self, units=tuple(spreads().tolist()))

    def slopes(self, n_features: int) -> Floats:
        """Return alpha u_j for each weight."""
        if len(self.units) != n_features:
            raise InputError(f"L1 has {len(self.units)} units, and there are {n_features} columns: each needs one")
        return self.alpha * np.array(self.units)

    def value(self, w: Floats) -> float:
        """Return alpha Σ_j u_j |w_j|."""
        return float(self.slopes(len(w)) @ np.abs(w))

    def gradient(self, w: Floats) -> Floats:
        """Return the subgradient alpha u_j sign(w_j)."""
        return self.slopes(len(w)) * np.sign(w)

    def curvature_product(self, v: Floats) -> Floats:
        """Return the second derivative times v: it is 0 wherever there is one."""
        return np.zeros_like(v)


Penalty = L1 | L2

KINDS: dict[str, type[L1] | type[L2]] = {"L1": L1, "L2": L2}
"""Penalties by the names that a text gives them: "L1:0.001"."""


def penalties_of(penalty: str | Penalty | Sequence[str | Penalty]) -> list[Penalty]:
    """Return the penalties that a parameter names, the strongest first; all of one kind.

    >>> penalties_of("L1:0.001"), penalties_of([L2(0.1), L2(1.0)])
    ([L1(alpha=0.001, units=())], [L2(alpha=1.0), L2(alpha=0.1)])
    """
    given = list(penalty) if isinstance(penalty, (list, tuple)) else [penalty]
    found = [_penalty_of(each) for each in given]
    if not found:
        raise InputError("penalty is an empty list: give at least one, such as toprank.L1(0.001)")
    if any(replace(each, alpha=0.0) != replace(found[0], alpha=0.0) for each in found):
        raise InputError("penalty is a list of different penalties: they may differ in alpha alone")
    return sorted(found, key=lambda each: -each.alpha)


def _penalty_of(penalty: Any) -> Penalty:
    if isinstance(penalty, (L1, L2)):
        return penalty
    name, _, text = penalty.partition(":") if isinstance(penalty, str) else ("", "", "")
    if name in KINDS and is_number(text):
        return KINDS[name](float(text))
    raise InputError(
        f'penalty must be toprank.L1(alpha), toprank.L2(alpha), a text such as "L1:0.001" or a list of these, got '
        f"{penalty!r}"
    )
