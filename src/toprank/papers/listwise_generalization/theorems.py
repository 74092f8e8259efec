"""Theorem 2 measured: the Rademacher averages of the losses, of the transformed scores and of the scores themselves."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from ..._progress import track
from ..._tables import Table
from ..._typing import Floats
from ...certificates.generalization import Algorithm, log_c, normalizer
from ...data.dataset import QueryDataset
from ...surrogates.listwise import ListMLE, ListNet, Listwise, RankCosine
from ...surrogates.transforms import Transform
from ..exhibits import Exhibit, Said, judge
from .tables import SHORT, transforms

LOSSES: dict[Algorithm, Callable[..., Listwise]] = {"ListMLE": ListMLE, "ListNet": ListNet, "RankCosine": RankCosine}


def _ball(radius: float, directions: int = 90, shells: int = 10) -> Floats:
    """Return points of the disc: dense enough that the largest value over them is that over the disc, nearly."""
    angle = np.linspace(0, 2 * np.pi, directions, endpoint=False)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.concatenate([np.zeros((1, 2)), *(r * circle for r in np.linspace(radius / shells, radius, shells))])


def theorems(*, n: int = 12, m: int = 5, random_state: int = 0) -> Exhibit:
    """Theorem 2: R̂(l∘F) ≤ C·R̂(φ∘F) ≤ C·N·R̂(F), the averages over all signs, the suprema over a disc of weights."""
    rng = np.random.default_rng(random_state)
    X = rng.normal(size=(n * m, 2))
    X /= np.linalg.norm(X, axis=1).max()
    y = np.tile(np.arange(m, dtype=np.float64), n)
    data = QueryDataset.from_arrays(X, y, np.repeat(np.arange(n), m))
    signs = np.array(list(product((-1.0, 1.0), repeat=n)))
    rows: list[tuple[Any, ...]] = []
    for kind, phi in track(transforms(1.0, 2.0).items(), "theorems"):
        W = _ball(1.0)
        scores = data.X @ W.T
        plain = np.mean([_average(signs, scores[place::m].T) for place in range(m)])
        inner = np.mean([_average(signs, np.asarray(phi(scores[place::m])).T) for place in range(m)])
        slope = math.exp(phi.steepest(1.0, exact=True))
        for algorithm, loss in LOSSES.items():
            outer = _average(signs, _losses(algorithm, loss, phi, data, scores))
            c = math.exp(log_c(algorithm, phi, 1.0, m))
            rows.append((algorithm, SHORT[kind], outer, c * inner, c * slope * plain))
    table = Table(("loss", "φ", "R̂(l∘F)", "C·R̂(φ∘F)", "C·N·R̂(F)"), rows, digits=5)
    notes = (
        f"{n} lists of {m} documents in the plane, B = M = a = 1, b = 2; all {2**n:,} signs; "
        "suprema over 901 weights. R̂(φ∘F) and R̂(F) are means over the places of the true order, as in the proof; N is "
        "exact.",
    )
    values = {f"{row[0]}, {row[1]}": row[2:] for row in rows}
    return Exhibit("theorems", "Theorem 2: three Rademacher averages", values, table, notes, claims=_contracts(rows))


@judge
def _contracts(rows: Sequence[Sequence[Any]]) -> Said:
    first, second = (sum(row[i] <= row[i + 1] * (1 + 1e-9) for row in rows) for i in (2, 3))
    loosest, tightest = (pick(rows, key=lambda row: row[4] / row[2]) for pick in (max, min))
    told = f"In {first} of {len(rows)} settings."
    yield "Theorem 2: R̂(l∘F) ≤ C_A(φ)·R̂(φ∘F).", first == len(rows), told
    told = f"In {second} of {len(rows)} settings. The bound is loose by {loosest[4] / loosest[2]:.3g} for {loosest[0]}"
    told = f"{told} with {loosest[1]}, by {tightest[4] / tightest[2]:.3g} at least."
    yield "Theorem 2: R̂(φ∘F) ≤ N(φ)·R̂(F).", second == len(rows), told


def _average(signs: Floats, values: Floats) -> float:
    """(1/n) E_σ sup_w Σ_i σ_i v_i(w), values as weights × lists."""
    return float((signs @ values.T).max(axis=1).mean() / signs.shape[1])


def _losses(
    algorithm: Algorithm, loss: Callable[..., Listwise], phi: Transform, data: QueryDataset, scores: Floats
) -> Floats:
    m = int(data.lengths[0])
    made = ListNet(k=m, transform=phi) if loss is ListNet else loss(transform=phi)
    scale = normalizer(algorithm, phi, 1.0, m)
    columns = [made.per_query(np.ascontiguousarray(scores[:, j]), data.y, data.ptr)[0] for j in range(scores.shape[1])]
    return np.array(columns) / scale
