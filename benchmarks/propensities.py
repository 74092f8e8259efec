"""How near to the truth are propensities, harvested and drawn towards a power law? Made-up logs of real collections.

    python -m benchmarks.propensities

The error is the mean of |log p − log of the truth| over positions 2 to 10; judgements only make users click. Rankers
that learned from one and from five queries serve the pages, two to four of them; seeds 0 to 9, a fold each.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from toprank._tables import Table
from toprank._typing import AnyArray, Floats
from toprank.clicks import ClickLog, Propensities
from toprank.clicks.log import Counts
from toprank.clicks.simulation import _page
from toprank.data.dataset import QueryDataset
from toprank.errors import InputError
from toprank.papers.experiments import MQ2008, OHSUMED_3, Letor, homes
from toprank.rankers import ListNet

K = np.arange(1, 11)
CURVES = {
    "power law": [K**-eta for eta in (0.5, 1.0, 2.0)],
    "other": [
        np.exp(-(K - 1) / 4),
        np.minimum(1, 3 / K),  # flat at the top
        np.where(K < 4, 1, 0.3),  # a step
        np.maximum(1 / K, 0.35),  # a floor
        np.array([1, 0.7, 0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.3, 0.35]),  # up again at the end
    ],
}


@lru_cache
def pages(letor: Letor, seed: int, queries: int, rankers: int) -> tuple[QueryDataset, AnyArray]:
    train, rng = letor.fold(homes((letor,), None)[letor], seed % 5 + 1).train, np.random.default_rng(seed)
    able = np.flatnonzero(train.informative)
    served = [ListNet(alpha=0.1).fit_queries(train[rng.choice(able, queries, replace=False)]) for _ in range(rankers)]
    return train, np.stack([_page(ranker.predict(train.X), train, len(K)) for ranker in served])


def made(letor: Letor, seed: int, queries: int, rankers: int, p: Floats, clicks: float) -> ClickLog:
    """A log added up at once: how often each page came, how often each document on it was clicked."""
    train, shown = pages(letor, seed, queries, rankers)
    rng, there = np.random.default_rng([seed, int(clicks)]), shown >= 0
    chance = np.where(there, p * np.where(train.y[shown] > 0, 1.0, 0.1), 0.0)
    size = shown.shape[0] * shown.shape[1]
    often = rng.multinomial(round(clicks / chance.sum(axis=2).mean()), np.full(size, 1 / size))
    impressions = np.broadcast_to(often.reshape(shown.shape[:2])[:, :, None], shown.shape)
    clicked = rng.binomial(impressions, chance)
    told = there & (impressions > 0)
    cell, number = np.unique((shown * len(K) + K - 1)[told], return_inverse=True)
    document = cell // len(K)
    first = np.flatnonzero(np.diff(document, prepend=-1))
    sums = [np.bincount(number, values[told]).astype(np.int64) for values in (impressions, clicked)]
    query = np.repeat(np.arange(train.n_queries), train.lengths)[document[first]]
    one = np.zeros(1, dtype=np.int64)
    log = ClickLog(one, one, one + 1, one > 0, one, one)
    log.__dict__["counts"] = Counts(np.append(first, len(cell)), query, document[first], cell % len(K) + 1, *sums)
    return log


def judged(log: ClickLog, p: Floats, resamples: int) -> dict[str, tuple[float, float]]:
    """Return by method the error, and the share of intervals that hold the truth; nothing where one refuses."""
    found: dict[str, tuple[float, float]] = {}
    for method in ("harvest", "smooth"):
        try:
            seen = Propensities.estimate(log, method, resamples=resamples)
        except InputError:
            return {}
        held = (seen.lower <= p + 1e-9) & (p <= seen.upper + 1e-9)
        found[method] = float(np.abs(np.log(seen.values / p))[1:].mean()), float(held[1:].mean())
    return found


def main() -> None:
    found: dict[Any, list[Any]] = defaultdict(list)
    served = ((1, 2), (5, 2), (1, 3), (1, 4))
    for letor, seed, how, (kind, curves) in product((MQ2008, OHSUMED_3), range(10), served, CURVES.items()):
        for clicks, p in product((1e3, 1e4, 1e5, 1e6), curves):
            found[kind, clicks].append(judged(made(letor, seed, *how, p, clicks), p, 40))
    rows = []
    for (kind, clicks), all_runs in sorted(found.items()):
        runs = [run for run in all_runs if run]
        mean = {how: np.mean([run[how] for run in runs], axis=0).tolist() for how in runs[0]}
        better = np.mean([run["smooth"][0] < run["harvest"][0] for run in runs])
        rows.append(
            [kind, f"{clicks:,.0f}", len(runs), len(all_runs) - len(runs), *mean["harvest"], *mean["smooth"], better]
        )
    head = ("truth", "clicks", "logs", "refused", "harvest", "in 95%", "smooth", "in 95%", "smooth nearer")
    print(Table(head, rows, digits=3).plain())


if __name__ == "__main__":
    main()
