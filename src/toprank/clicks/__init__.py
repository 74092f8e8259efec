"""Learning from clicks: logs, how likely each position is seen, weights that undo it, interleaving.

>>> import toprank as tr
>>> data = tr.datasets.make_graded(n_queries=40, random_state=0)
>>> served = [data.X[:, 0], data.X[:, 1]]  # two production rankers
>>> log = tr.datasets.simulate_clicks(data, served, sessions=20_000, cut=5)
>>> seen = tr.clicks.Propensities.estimate(log, resamples=0)
>>> judged = log.to_queries(data, seen)
>>> judged.doc_weight is not None
True
"""

from __future__ import annotations

from .ab import ABMonitor, Difference, ab_sessions_needed
from .evaluation import ClickValue, click_value
from .interleaving import Interleaved, InterleavingResult, interleave, interleaving_test
from .log import ClickLog
from .monitor import InterleavingMonitor, SessionsNeeded, Share, sessions_needed
from .propensities import Propensities

__all__ = [
    "ABMonitor",
    "ClickLog",
    "ClickValue",
    "Difference",
    "Interleaved",
    "InterleavingMonitor",
    "InterleavingResult",
    "Propensities",
    "SessionsNeeded",
    "Share",
    "ab_sessions_needed",
    "click_value",
    "interleave",
    "interleaving_test",
    "sessions_needed",
]
