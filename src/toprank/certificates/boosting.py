"""Theorem 4 for AdaRank, and RankBoost's bound on the pairs it leaves the wrong way round."""

from __future__ import annotations

import numpy as np

from .._typing import Floats
from .base import Assumption, Certificate


def adarank_bounds(phi: Floats, delta: Floats, alpha: Floats) -> Floats:
    """1 − Π_{s ≤ t} e^{−δ_s} (½(1+φ_s) e^{−α_s} + ½(1−φ_s) e^{α_s}) for every round t.

    With the paper's α = ½ ln((1+φ)/(1−φ)) the bracket is √(1 − φ²): Theorem 4. As written it holds for any α, so also
    where α was capped or chosen on other data.

    >>> phi = np.array([0.6])
    >>> adarank_bounds(phi, np.zeros(1), 0.5 * np.log((1 + phi) / (1 - phi))).round(6).tolist()
    [0.2]
    """
    bracket = 0.5 * (1 + phi) * np.exp(-alpha) + 0.5 * (1 - phi) * np.exp(alpha)
    return np.asarray(1 - np.exp(np.cumsum(np.log(bracket) - delta)))


def adarank_certificates(measure: str, phi: Floats, delta: Floats, alpha: Floats, reached: Floats) -> list[Certificate]:
    """Return Theorem 4 after each round, with the mean measure that was reached on the same queries.

    >>> print(adarank_certificates("map", np.array([0.6]), np.array([0.0]), np.array([0.6931]), np.array([0.7]))[0])
    mean map after round 1 ≥ 1 − Π_t e^(−δ_t) √(1 − φ(t)²): observed 0.7, bound 0.2 (Theorem 4); holds. Assumes: map
    lies in [0, 1] (checked).
    """
    bounds = adarank_bounds(phi, delta, alpha)
    return [
        Certificate(
            statement=f"mean {measure} after round {t} ≥ 1 − Π_t e^(−δ_t) √(1 − φ(t)²)",
            value=float(bound),
            observed=float(observed),
            reference="Theorem 4",
            assumptions=(Assumption(f"{measure} lies in [0, 1]", True),),
            sense=">=",
            vacuous_from=0.0,
            meaning=f"on the queries it learned from, mean {measure} was bound to reach {float(bound):.4g}",
            terms={"round": t, "φ": float(phi[t - 1]), "δ": float(delta[t - 1]), "α": float(alpha[t - 1])},
        )
        for t, (bound, observed) in enumerate(zip(bounds, reached, strict=True), start=1)
    ]


def rankboost_certificate(loss: float, misordered: float) -> Certificate:
    """Fraction of pairs with H_i ≤ H_j ≤ mean of e^{−(H_i − H_j)} = Π_t Z_t over pairs with y_i > y_j.

    >>> rankboost_certificate(0.8, 0.3).holds()
    True
    """
    return Certificate(
        statement="weighted share of pairs that are misordered or tied ≤ Π_t Z_t",
        value=loss,
        observed=misordered,
        reference="RankBoost, ranking loss of the combined ranker",
        vacuous_from=1.0,
        meaning=f"at most {loss:.2%} of the pairs of documents stand the wrong way round",
    )
