"""One query in detail: the top of every system's ranking, with grades, scores and what the scores are made of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._html import clip
from .._typing import Floats, Ints
from .additive import Explainer, correlation_parts
from .view import ContestView

TOP = 10
"""Documents shown of each ranking."""
PARTS = 5
"""Features shown of each document; the rest is one sum."""
CAUSES = 10
"""Features that explain how two systems differ on a query."""
HITS = 8
"""Relevant documents whose ranks are listed."""


class QueryDescriber:
    """Describes queries one after the other and remembers which features it spoke of."""

    def __init__(self, view: ContestView) -> None:
        if view.contest.data is None:
            raise ValueError("a contest without documents has no rankings to show")
        self._view, self._data = view, view.contest.data
        self._explainers = [Explainer(view.contest, entrant) for entrant in view.contest.entrants]
        self.features: set[int] = set()

    def detail(self, q: int, place: int) -> dict[str, Any]:
        """Return query q, the page's number `place`, as values for JSON."""
        data = self._data
        rows = slice(int(data.ptr[q]), int(data.ptr[q + 1]))
        grades = data.y[rows]
        systems, shown, causes = [], [], []
        for entrant, explainer in zip(self._view.contest.entrants, self._explainers, strict=True):
            scores = entrant.scores[rows]
            order = np.argsort(-scores, kind="stable")
            order = order[np.isfinite(scores[order])]  # what was not retrieved is nowhere
            parts = explainer.parts(q)
            systems.append(self._system(order, scores, grades, parts))
            shown.append(order[:TOP])
            causes.append(None if parts is None else correlation_parts(parts, scores, grades))
        kept = np.unique(np.concatenate(shown))
        place_of = {int(doc): i for i, doc in enumerate(kept)}
        for system, docs in zip(systems, shown, strict=True):
            system["order"] = [place_of[int(doc)] for doc in docs]
        ids = None if data.doc_ids is None else data.doc_ids[rows]
        return {
            "query": place,
            "docs": [f"#{doc + 1}" if ids is None else clip(str(ids[doc]), 60) for doc in kept],
            "grades": [float(f"{grades[doc]:.6g}") for doc in kept],
            "systems": systems,
            "why": self._why(causes),
        }

    def _system(self, order: Ints, scores: Floats, grades: Floats, parts: Floats | None) -> dict[str, Any]:
        top = order[:TOP]
        hits = np.flatnonzero(grades[order] > self._view.relevant_above) + 1
        found: dict[str, Any] = {
            "scores": [f"{scores[doc]:.4g}" for doc in top],
            "hits": hits[:HITS].tolist(),
        }
        if parts is not None:
            largest = float(np.abs(parts[top]).max(initial=0))
            decimals = max(0, min(9, 2 - math.floor(math.log10(largest)))) if largest > 0 else 0
            found |= {"decimals": decimals, "parts": [self._parts(parts[doc], decimals) for doc in top]}
        return found

    def _parts(self, parts: Floats, decimals: int) -> list[int]:
        """Return feature, contribution, feature, contribution, …, and the sum of all others last.

        Contributions count units of the last decimal shown: three digits for the largest of the ranking.
        """
        largest = [int(f) for f in np.argsort(-np.abs(parts), kind="stable")[:PARTS] if parts[f] != 0]
        self.features.update(largest)
        rest = float(np.delete(parts, largest).sum())
        return [n for f in largest for n in (f, _units(parts[f], decimals))] + [_units(rest, decimals)]

    def _why(self, causes: list[Floats | None]) -> dict[str, Any] | None:
        """Return each system's correlation of scores with grades and the features' shares in it, all others last."""
        known = [cause for cause in causes if cause is not None]
        if not known:
            return None
        largest = np.argsort(-np.abs(np.stack(known)).max(axis=0), kind="stable")[:CAUSES]
        self.features.update(largest.tolist())

        def shares(cause: Floats) -> list[float]:
            return [round(float(share), 3) for share in (*cause[largest], np.delete(cause, largest).sum())]

        return {
            "features": largest.tolist(),
            "total": [None if cause is None else round(float(cause.sum()), 3) for cause in causes],
            "shares": [None if cause is None else shares(cause) for cause in causes],
        }


def _units(value: float, decimals: int) -> int:
    shown = f"{value:.{decimals}f}"
    return int(shown.replace(".", ""))
