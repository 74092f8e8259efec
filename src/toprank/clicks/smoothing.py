"""What is believed of propensities before a log is read: near a power law. The less a log tells, the more it counts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._typing import Floats

SPREADS = (0.05, 0.15, 0.3, 0.6)
"""How far from a power law: the log itself says how likely each of these is."""
_ROUNDS, _TOLERANCE = 100, 1e-9


@dataclass(frozen=True)
class Prior:
    """log p_k − log p_{k−1} = −η log(k/(k−1)) + ε_k, with η ~ N(0, 1) and each ε_k ~ N(0, spread²).

    η = 0 in the middle: where a log tells nothing, positions are equal and clicks stay as they are.
    """

    depth: int
    spread: float

    @cached_property
    def covariance(self) -> Floats:
        """Covariance of the steps log p_k − log p_{k−1}, k = 2, 3, …"""
        slope = np.diff(np.log(np.arange(1, self.depth + 1)))
        return np.asarray(self.spread**2 * np.eye(self.depth - 1) + np.outer(slope, slope))

    @cached_property
    def precision(self) -> Floats:
        """Inverse covariance of log p_1, log p_2, …, of which the first is not believed to be anything."""
        steps = np.diff(np.eye(self.depth), axis=0)
        return np.asarray(steps.T @ np.linalg.solve(self.covariance, steps))

    def draw(self, rng: np.random.Generator) -> Floats:
        """Return log p of a curve that is as likely as believed."""
        steps = np.linalg.cholesky(self.covariance) @ rng.standard_normal(self.depth - 1)
        return np.concatenate(([0.0], np.cumsum(steps)))


def maximise(
    rows: tuple[Any, ...], theta: Floats, precision: Floats | float = 0.0, centre: Floats | float = 0.0
) -> tuple[Floats, float, Floats, bool]:
    """Newton's method on ℓ(θ) − ½ (θ − centre)ᵀ precision (θ − centre), θ_1 = 0; steps are halved until they gain.

    ℓ is the conditional likelihood of `rows`. Return θ, the value, minus its second derivatives (but for θ_1), and
    whether the last step was small.
    """
    from . import _propensity_kernels as kernels

    n = len(theta)
    theta = theta - theta[0]
    grad, hessian = np.empty(n), np.empty((n, n))
    believed = np.broadcast_to(precision, (n, n))

    def value(theta: Floats) -> float:
        likelihood = kernels.conditional_likelihood(*rows, theta, grad, hessian)
        pull = believed @ (theta - centre)
        grad[:] -= pull
        hessian[:] += believed
        return float(likelihood - (theta - centre) @ pull / 2)

    best, small = value(theta), False
    for _ in range(_ROUNDS):
        step = np.concatenate(([0.0], np.linalg.solve(hessian[1:, 1:], grad[1:])))
        size = 1.0
        while (tried := value(theta + size * step)) < best - 1e-12 * abs(best) and size >= 1e-6:
            size /= 2
        theta, best = theta + size * step, tried
        small = bool(np.abs(size * step).max() < _TOLERANCE)
        if small:
            break
    return theta, best, hessian[1:, 1:], small


def smooth(rows: tuple[Any, ...], depth: int) -> tuple[Floats, Floats, bool]:
    """Return the mean of log p over the spreads, how likely the log makes each spread, and whether all fits ended."""
    fits, start = [], np.zeros(depth)
    for prior in (Prior(depth, spread) for spread in SPREADS):
        start, value, curvature, ended = maximise(rows, start, prior.precision)
        # log of the integral over θ, by the curvature at its peak (Laplace)
        evidence = value - np.linalg.slogdet(curvature @ prior.covariance)[1] / 2
        fits.append((start, evidence, ended))
    thetas, evidences, ends = zip(*fits, strict=True)
    chance = np.exp(np.array(evidences) - max(evidences))
    chance /= chance.sum()
    return chance @ np.array(thetas), chance, all(ends)


def drawn(rows: tuple[Any, ...], theta: Floats, chance: Floats, rng: np.random.Generator) -> Floats:
    """Return log p of a log that was drawn again, around a curve that is drawn again too.

    Where the log is long both ways of drawing agree with the bootstrap; where it is silent, p is as open as believed.
    """
    prior = Prior(len(theta), float(rng.choice(SPREADS, p=chance)))
    return maximise(rows, theta, prior.precision, prior.draw(rng))[0]
