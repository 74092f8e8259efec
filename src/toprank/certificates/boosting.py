"""Theorem 4 for AdaRank, and RankBoost's bound on the pairs it leaves the wrong way round."""

from __future__ import annotations

import numpy as np

from .._typing import Floats
from .base import Assumption, Certificate

_PRINTED = "1 − Π_t e^(−δ_t) √(1 − φ(t)²)"
_ANY_STEP = "1 − Π_t e^(−δ_t) (½(1 + φ(t)) e^(−α_t) + ½(1 − φ(t)) e^(α_t))"


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


def adarank_certificates(
    measure: str,
    phi: Floats,
    delta: Floats,
    alpha: Floats,
    reached: Floats,
    *,
    over: str = "all queries",
    worst: float = 0.0,
) -> list[Certificate]:
    """Return Theorem 4 after each round, with the mean measure that was reached on the same queries.

    `over` names the queries of the mean, and `worst` is what their worst order has. Where the α of some round is not
    the paper's, the product is the one of `adarank_bounds`, and the statement says so.

    >>> step = 0.5 * np.log(1.6 / 0.4)
    >>> print(adarank_certificates("map", np.array([0.6]), np.array([0.0]), np.array([step]), np.array([0.7]))[0])
    mean map after round 1 ≥ 1 − Π_t e^(−δ_t) √(1 − φ(t)²): observed 0.7, bound 0.2 (Theorem 4); holds. Assumes: map
    lies in [0, 1] (checked).
    """
    bounds = adarank_bounds(phi, delta, alpha)
    by_figure = np.logical_and.accumulate(np.isclose(np.tanh(alpha), phi, rtol=1e-9, atol=1e-12))
    return [
        Certificate(
            statement=f"mean {measure} after round {t} ≥ {_PRINTED if by_figure[t - 1] else _ANY_STEP}",
            value=float(bound),
            observed=float(observed),
            reference="Theorem 4",
            assumptions=(Assumption(f"{measure} lies in [0, 1]", True),),
            sense=">=",
            vacuous_from=worst,
            meaning=f"after round {t}, {measure} was bound to reach {float(bound):.4g} in the mean over {over}",
            terms={"round": t, "φ": float(phi[t - 1]), "δ": float(delta[t - 1]), "α": float(alpha[t - 1])},
        )
        for t, (bound, observed) in enumerate(zip(bounds, reached, strict=True), start=1)
    ]


def rankboost_certificate(
    loss: float, misordered: float, *, by_query: bool = True, weighted: bool = False
) -> Certificate:
    """Fraction of pairs with H_i ≤ H_j ≤ mean of e^{−(H_i − H_j)} = Π_t Z_t over pairs with y_i > y_j.

    Where pairs are weighed `by_query`, all queries with two grades count alike; else all pairs do. `weighted` says that
    queries have weights beside.

    >>> print(rankboost_certificate(0.8, 0.3).meaning)
    in the mean over queries with two grades, at most 80.00% of a query's pairs stand the wrong way round or are tied
    """
    mean = ("weighted " if weighted else "") + "mean over queries with two grades"
    share, meaning = "share of all pairs", f"at most {loss:.2%} of all pairs stand the wrong way round or are tied"
    if weighted:
        share, meaning = "weighted share of all pairs", f"{meaning}, each with the weight of its query"
    if by_query:
        share = f"{mean} of the share of pairs"
        meaning = f"in the {mean}, at most {loss:.2%} of a query's pairs stand the wrong way round or are tied"
    return Certificate(
        statement=f"{share} that are misordered or tied ≤ Π_t Z_t",
        value=loss,
        observed=misordered,
        reference="RankBoost, ranking loss of the combined ranker",
        vacuous_from=1.0,
        meaning=meaning,
    )
