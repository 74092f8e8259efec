"""Transforms φ of scores: increasing, positive, and known by their logarithm."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

import numpy as np

from .._typing import ArrayLike, Floats
from ..data.validation import check_positive
from ..errors import InputError


class TransformCode(IntEnum):
    """How a kernel names a transform."""

    LINEAR = 0
    EXPONENTIAL = 1
    SIGMOID = 2


class Transform(ABC):
    """φ: a positive, increasing function of a score. Subclasses are frozen dataclasses; `str()` parses back."""

    code: ClassVar[TransformCode]
    a: float

    @abstractmethod
    def log(self, x: ArrayLike) -> Floats:
        """Return log φ(x); NaN where φ is not positive."""

    @abstractmethod
    def log_slope(self, x: ArrayLike) -> Floats:
        """Return (log φ)'(x)."""

    @abstractmethod
    def steepest(self, bound: float, *, exact: bool = False) -> float:
        """Return log N(φ), N(φ) = sup φ' on [−bound, bound]: as the paper's Table 1 prints it, or the exact value."""

    def __call__(self, x: ArrayLike) -> Floats:
        """Return φ(x)."""
        result: Floats = np.exp(self.log(x))
        return result

    def log_range(self, bound: float) -> float:
        """Return log(φ(bound)/φ(−bound)), the width of the transformed scores."""
        return float(self.log(bound) - self.log(-bound))

    def is_positive(self, bound: float) -> bool:
        """Say whether φ > 0 on [−bound, bound]."""
        return True

    @property
    def parameters(self) -> tuple[float, float]:
        """The two numbers a kernel needs."""
        return self.a, 0.0

    def __str__(self) -> str:
        return f"{type(self).__name__.lower()}({', '.join(f'{value:g}' for value in vars(self).values())})"


@dataclass(frozen=True)
class Linear(Transform):
    """φ(x) = a x + b, positive for scores above −b/a: with ‖w‖ ≤ B and ‖x‖ ≤ M that asks for b > aBM.

    >>> Linear(1.0, 2.0)([-1.0, 0.0]).tolist()
    [1.0, 2.0]
    >>> print(Linear.on_ball(radius=10.0, norm=1.0))
    linear(1, 11)
    """

    a: float = 1.0
    b: float = 1.0
    code: ClassVar[TransformCode] = TransformCode.LINEAR

    def __post_init__(self) -> None:
        check_positive(a=self.a, b=self.b)

    @classmethod
    def on_ball(cls, radius: float, norm: float, a: float = 1.0, slack: float = 1.0) -> Linear:
        """Return a x + b with b = a·B·M + slack: positive for all weights of norm B = radius and rows of norm M."""
        return cls(a, a * radius * norm + slack)

    def __call__(self, x: ArrayLike) -> Floats:
        """Return a x + b."""
        return self.a * np.asarray(x, dtype=np.float64) + self.b

    def log(self, x: ArrayLike) -> Floats:
        """Return log(a x + b)."""
        value = self(x)
        return np.log(value, where=value > 0, out=np.full_like(value, np.nan))

    def log_slope(self, x: ArrayLike) -> Floats:
        """Return a / (a x + b)."""
        return self.a / self(x)

    def steepest(self, bound: float, *, exact: bool = False) -> float:
        """Return log a."""
        return math.log(self.a)

    def is_positive(self, bound: float) -> bool:
        """Say whether b > a·bound."""
        return self.b > self.a * bound

    @property
    def parameters(self) -> tuple[float, float]:
        """Return a and b."""
        return self.a, self.b


@dataclass(frozen=True)
class Exponential(Transform):
    """φ(x) = e^{a x}: with it P = φ/Σφ is the softmax, and ListNet and ListMLE are convex.

    >>> Exponential(2.0)([0.0]).tolist(), str(Exponential(2.0))
    ([1.0], 'exponential(2)')
    """

    a: float = 1.0
    code: ClassVar[TransformCode] = TransformCode.EXPONENTIAL

    def __post_init__(self) -> None:
        check_positive(a=self.a)

    def log(self, x: ArrayLike) -> Floats:
        """Return a x."""
        return self.a * np.asarray(x, dtype=np.float64)

    def log_slope(self, x: ArrayLike) -> Floats:
        """Return a."""
        return np.full(np.shape(x), self.a)

    def steepest(self, bound: float, *, exact: bool = False) -> float:
        """Return log(a e^{a·bound})."""
        return math.log(self.a) + self.a * bound


@dataclass(frozen=True)
class Sigmoid(Transform):
    """φ(x) = 1/(1 + e^{−a x}): scores far above 0 all count the same.

    >>> Sigmoid(1.0)([0.0]).tolist()
    [0.5]
    """

    a: float = 1.0
    code: ClassVar[TransformCode] = TransformCode.SIGMOID

    def __post_init__(self) -> None:
        check_positive(a=self.a)

    def log(self, x: ArrayLike) -> Floats:
        """Return −log(1 + e^{−a x})."""
        return -np.logaddexp(0.0, -self.a * np.asarray(x, dtype=np.float64))

    def log_slope(self, x: ArrayLike) -> Floats:
        """Return a (1 − φ(x))."""
        return self.a * np.exp(self.log(-np.asarray(x, dtype=np.float64)))

    def steepest(self, bound: float, *, exact: bool = False) -> float:
        """Return log of a/4, or of the a e^{a·bound}/(1 + e^{−a·bound})² that Table 1 prints."""
        if exact:
            return math.log(self.a / 4)
        return math.log(self.a) + self.a * bound - 2 * math.log1p(math.exp(-self.a * bound))


_KINDS: dict[str, type[Linear] | type[Exponential] | type[Sigmoid]] = {
    "linear": Linear,
    "exponential": Exponential,
    "sigmoid": Sigmoid,
}


def parse_transform(transform: str | Transform) -> Transform:
    """Return a transform from its name, with or without parameters; a transform passes through.

    >>> parse_transform("sigmoid"), parse_transform("linear(1, 20)")
    (Sigmoid(a=1.0), Linear(a=1.0, b=20.0))
    >>> parse_transform("cubic")
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: transform must be 'linear', 'exponential' or 'sigmoid', with or without parameters as in
    'linear(1, 20)', got 'cubic'
    """
    if isinstance(transform, Transform):
        return transform
    found = re.fullmatch(r"\s*(\w+)\s*(?:\(([^()]*)\))?\s*", transform) if isinstance(transform, str) else None
    kind = _KINDS.get(found[1].lower()) if found else None
    if found and kind:
        given = [part for part in (found[2] or "").split(",") if part.strip()]
        try:
            return kind(*map(float, given))
        except (TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
    raise InputError(
        "transform must be 'linear', 'exponential' or 'sigmoid', with or without parameters as in 'linear(1, 20)', "
        f"got {transform!r}"
    )
