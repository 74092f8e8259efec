# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The value of one list to a reader who walks down it: rank-biased precision and expected reciprocal rank."""

from __future__ import annotations

import numpy as np

from ..core.jit import kernel
from ._list_kernels import LINEAR, gain_of

NEGLIGIBLE_LOG = -46.0
"""e^−46 is 1e-20: a reader who goes on with a smaller chance than that adds nothing."""


@kernel
def rank_biased_precision(gains, p):
    """(1 − p) Σ_r p^r g_r, ranks from 0; the gain is 1 for a relevant document, or its grade."""
    value, weight = 0.0, 1.0
    for r in range(len(gains)):
        value += weight * gains[r]
        weight *= p
    return (1.0 - p) * value


@kernel
def stops_by_rank(ranked, gain, max_grade):
    """R_r, the chance that a reader stops at each rank: (2^l − 1) / 2^max_grade, or l / max_grade."""
    scale, stops = max_grade if gain == LINEAR else 2.0**max_grade, np.empty(len(ranked))
    for r in range(len(ranked)):
        stops[r] = gain_of(ranked[r], gain) / scale
    return stops


@kernel
def err(stops, places):
    """Σ_r (1/r) R_r Π_{i<r} (1 − R_i) over the first `places` ranks, here from 1."""
    value, going = 0.0, 1.0
    for r in range(min(places, len(stops))):
        value += going * stops[r] / (r + 1)
        going *= 1.0 - stops[r]
    return value


@kernel
def expected_err(stops, ends, places):
    """The expected value of `err` over the orders of tied documents."""
    value, going, low, last = 0.0, 1.0, 0, min(places, len(stops))
    while low < last:
        high = ends[low]
        if stops[low] != stops[high - 1]:
            value += going * expected_err_of_group(stops[low:high], low, min(high, last) - low)
            for r in range(low, high):
                going *= 1.0 - stops[r]
        else:
            for r in range(low, min(high, last)):
                value += going * stops[r] / (r + 1)
                going *= 1.0 - stops[r]
        low = high
    return value


@kernel
def expected_err_of_group(stops, low, places):
    """What the first `places` of a tied group that begins at rank `low` add to ERR, for a reader who gets there.

    With v_j the mean of Π (1 − R) over the choices of j among the m documents with R > 0, the reader stops at the j-th
    of these with chance v_{j−1} − v_j, wherever it stands; where it stands is a draw without replacement. Costs
    O(places · j), j at most m, and only as long as v_j is not negligible (600 on a scale of 0 to 4).
    """
    t, m, most = len(stops), 0, 0.0
    for i in range(t):
        if stops[i] > 0:
            m, most = m + 1, max(most, 1.0 - stops[i])
    terms = min(m, places)
    if most <= 0.0:
        terms = 1
    elif most < 1.0:
        terms = min(terms, int(NEGLIGIBLE_LOG / np.log(most)) + 1)
    v, ahead = np.zeros(terms + 1), np.zeros(terms + 1)
    v[0] = ahead[0] = 1.0
    seen = 0
    for i in range(t):
        if stops[i] > 0:
            seen += 1
            for j in range(min(seen, terms), 0, -1):
                v[j] = (1.0 - j / seen) * v[j] + j / seen * (1.0 - stops[i]) * v[j - 1]
    value = 0.0
    for place in range(places):  # ahead[j]: the chance that j of the m stand before this place
        for j in range(min(place, terms - 1), -1, -1):
            met = (m - j) / (t - place)
            value += ahead[j] * met * (v[j] - v[j + 1]) / (low + place + 1)
            ahead[j + 1] += ahead[j] * met
            ahead[j] *= 1.0 - met
    return value
