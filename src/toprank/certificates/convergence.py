"""How far precision on a sample of rows strays from that on all of them (Theorem 12): measured, since C is unnamed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import Floats
from ..data import linear
from ..data.dataset import QueryDataset
from ..errors import InputError
from ..surrogates.precision_at_k import MistakesAvg, PrecAvg, PrecisionSurrogate
from .base import Assumption, Certificate
from .generalization import largest_norm

DELTA = 0.05
"""The probability with which a bound may fail."""


@dataclass(frozen=True, eq=False)
class Deviations:
    """How far samples stray from the population: the (1 − δ)-quantile of sup_w |Ψ(w; Z) − Ψ(w; sample)| per size b."""

    sizes: tuple[int, ...]
    quantiles: Floats
    delta: float

    @property
    def constants(self) -> Floats:
        """quantile · √(b / log(1/δ)): level in b where the rate of Theorem 12 is the true one."""
        return np.asarray(self.quantiles * np.sqrt(np.array(self.sizes) / math.log(1 / self.delta)))

    @property
    def exponent(self) -> float:
        """Slope of log quantile against log b; Theorem 12 says −1/2 or steeper."""
        return float(np.polyfit(np.log(self.sizes), np.log(np.maximum(self.quantiles, 1e-300)), 1)[0])


def sample_deviations(
    data: QueryDataset,
    models: Sequence[Floats],
    *,
    kappa: float,
    loss: type[PrecisionSurrogate] | None = PrecAvg,
    sizes: Sequence[int] = (),
    trials: int = 200,
    delta: float = DELTA,
    seed: int | None = None,
) -> Deviations:
    """Draw samples of each size without replacement and measure how far the loss of the worst model strays.

    `loss` is PrecRamp, PrecAvg or PrecMax in its normalised form, or None for prec@κ itself.
    """
    n, rng = data.n_docs, np.random.default_rng(seed)
    positive = int((data.y > 0).sum())
    chosen = tuple(sizes) or tuple(n // 2**i for i in (6, 5, 4, 3))
    if min(chosen) < 2 or positive == 0 or max(chosen) > n:
        raise InputError(f"samples of {chosen} rows cannot be drawn from {n}")
    scores = [linear.scores(data.X, w) for w in models]
    surrogate = None if loss is None else loss(kappa=kappa, normalize=True)

    def psi(s: Floats, y: Floats) -> float:
        if surrogate is None:
            return top_error(s, y, kappa)
        return float(surrogate.per_query(s, y, np.array([0, len(s)]))[0][0])

    truth = [psi(s, data.y) for s in scores]
    quantiles = []
    for size in chosen:
        worst = np.zeros(trials)
        for trial in range(trials):
            rows = rng.choice(n, size=size, replace=False)
            y = data.y[rows]
            worst[trial] = max(abs(psi(s[rows], y) - value) for s, value in zip(scores, truth, strict=True))
        quantiles.append(float(np.quantile(worst, 1 - delta)))
    return Deviations(chosen, np.array(quantiles), delta)


def uniform_convergence(
    data: QueryDataset,
    models: Sequence[Floats],
    *,
    loss: type[PrecisionSurrogate] | None = PrecAvg,
    delta: float = DELTA,
    seed: int | None = None,
    **sampling: Any,
) -> Certificate:
    """sup_w |Ψ(w; Z) − Ψ(w; sample of b)| ≤ C √(log(1/δ)/b) (Theorem 12), C measured on the smaller samples.

    The theorem's supremum runs over a ball and leaves C open. Here it runs over the directions of the models given and
    of eight random ones, at ‖w‖R = 1 and 4: a longer w makes the surrogate, and with it C, as large as one likes. The
    other options are those of `sample_deviations`.
    """
    name = "prec@κ" if loss is None else loss.__name__
    if "sizes" not in sampling and data.n_docs < 128:
        few = Assumption(f"there are at least 128 rows to draw samples from, not {data.n_docs}", False)
        said = f"{name} on samples of b rows strays by C√(log(1/δ)/b)"
        return Certificate(said, math.inf, math.nan, "Theorem 12", (few,), order_only=True)
    largest = largest_norm(data) or 1.0
    drawn = np.random.default_rng(seed).normal(size=(8, data.n_features))
    directions = [w / np.linalg.norm(w) for w in (*models, *drawn) if np.any(w)]
    family = [c / largest * w for w in directions for c in (1.0, 4.0)]
    found = sample_deviations(data, family, loss=loss, delta=delta, seed=seed, **sampling)
    last = found.sizes[-1]
    return Certificate(
        statement=f"{name} on samples of {last} rows strays by C√(log(1/δ)/b); measured: b^{found.exponent:.2f}",
        value=float(found.constants[:-1].max()) * math.sqrt(math.log(1 / delta) / last),
        observed=float(found.quantiles[-1]),
        reference="Theorem 12",
        assumptions=(Assumption("C is what the smaller samples show, for the directions at hand"),),
        order_only=True,
        meaning=f"what is true of {last} rows is true of all of them to within about {float(found.quantiles[-1]):.4g}",
        terms={"exponent": found.exponent, "C": float(found.constants[-1]), "b": last},
    )


def top_error(s: Floats, y: Floats, kappa: float) -> float:
    """prec@κ loss of one list, between 0 and 1."""
    return float(MistakesAvg(kappa=kappa, normalize=True).per_query(s, y, np.array([0, len(s)]))[0][0])
