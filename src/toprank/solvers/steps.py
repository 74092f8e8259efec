"""The codes and places that the compiled rounds of an online learner read and write, and its step sizes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from math import inf
from typing import Any

import numpy as np

from ..data.validation import check_positive
from ..errors import InputError


class Rule(IntEnum):
    """How the step of round t follows from η: η, η/√t, η/√Σ‖z‖²."""

    CONSTANT = 0
    SQRT = 1
    ADAPTIVE = 2


class Scaling(IntEnum):
    """What features are divided by."""

    NONE = 0
    RUNNING = 1
    QUERY = 2


class Total(IntEnum):
    """Places in `totals`."""

    ROUNDS = 0
    STEPS = 1
    MISTAKES = 2
    MEASURE = 3
    SURROGATE = 4
    ZNORM2 = 5
    DOCS = 6
    LAST = 7
    """Measure of the last weights in the rounds that also tried the average, each before its step."""
    AVERAGE = 8
    """Measure of the averaged weights in those rounds."""


class Note(IntEnum):
    """Places in what a stream notes for its certificates; all but the first and the last are of rounds with a step."""

    ROUNDS = 0
    RADIUS2 = 1
    """R_X², the largest squared norm of a document."""
    LONGEST = 2
    """m, the most documents in a list."""
    VMAX = 3
    """The largest ratio of two positive SLAM weights in a list."""
    TIGHT = 4
    """max diam²/vmin times the weight of the list."""
    RATIO = 5
    """max ‖z_t‖²/f_t."""
    HEAVIEST = 6
    """The largest weight of a list."""
    SPREAD = 7
    """Σ (x_i − x̂_i)² of the measures x_i, x̂_i the mean of a ½ and those before."""


TIE_TOLERANCE = 1e-12
"""Tied documents are in the best order if their expected measure is below its best value by at most this share."""

COMPARE_EVERY = 8
"""In every so many rounds the averaged weights rank the list too, so that a stream knows which weights rank better."""


@dataclass(frozen=True)
class Steps:
    """w ← Π_radius[w − η_t z_t], η_t = η (constant), η/√t (sqrt) or η/√Σ_{s≤t}‖z_s‖² (adaptive).

    `parse` reads what users write: a number, or a rule with an optional η after a colon (η = 1 where left out).

    >>> Steps.parse(0.1), str(Steps.parse("sqrt:0.5"))
    (Steps(eta=0.1, rule=<Rule.CONSTANT: 0>, radius=inf), 'sqrt:0.5')
    >>> Steps.parse("adaptive").eta
    1.0
    """

    eta: float
    rule: Rule = Rule.CONSTANT
    radius: float = inf
    """w stays in a ball of this radius."""

    def __post_init__(self) -> None:
        check_positive(eta=self.eta)
        object.__setattr__(self, "eta", float(self.eta))

    @classmethod
    def parse(cls, eta: float | str) -> Steps:
        """Return the steps that `eta` names."""
        if not isinstance(eta, str):
            return cls(eta)
        name, colon, number = eta.partition(":")
        if name not in ("constant", "sqrt", "adaptive"):
            raise InputError(
                f"eta must be a number, 'sqrt' or 'adaptive' (with η as in 'sqrt:0.1'), got {eta!r}; 'theory' is for "
                "perceptrons"
            )
        try:
            return cls(float(number) if colon else 1.0, Rule[name.upper()])
        except ValueError:
            raise InputError(f"eta must end in a number above 0 after the colon, got {eta!r}") from None

    def size(self, t: Any, squares: Any) -> Any:
        """η_t of round t, up to which Σ‖z_s‖² is `squares`; or of many rounds at once."""
        if self.rule == Rule.CONSTANT:
            return self.eta
        return self.eta / np.sqrt(t if self.rule == Rule.SQRT else squares)

    def __str__(self) -> str:
        return f"{self.rule.name.lower()}:{self.eta:g}"
