"""Fusion of runs straight from the definitions, by dictionaries."""

from __future__ import annotations


def fused(runs, method: str) -> dict[tuple[str, str], float]:
    """Sum over runs of 1/(60 + rank), or of scores scaled to [0, 1], the latter times the number of runs for MNZ."""
    total: dict[tuple[str, str], float] = {}
    times: dict[tuple[str, str], int] = {}
    for run in runs:
        for query, docs in run.items():
            ranked = sorted(docs, key=lambda d: -docs[d])
            low, high = min(docs.values()), max(docs.values())
            for rank, doc in enumerate(ranked, 1):
                scaled = (docs[doc] - low) / (high - low) if high > low else 0.0
                total[query, doc] = total.get((query, doc), 0.0) + (1 / (60 + rank) if method == "rrf" else scaled)
                times[query, doc] = times.get((query, doc), 0) + 1
    return {key: value * times[key] if method == "combmnz" else value for key, value in total.items()}
