"""Two judges by their definitions: loops over documents, over pairs and over every sample."""

from __future__ import annotations

from itertools import combinations, permutations


def weighted_kappa(pairs: list[tuple[int, int]]) -> float:
    """1 − Σ (a − b)² over the pairs / the same over every pairing of a first with a second grade, as many as pairs."""
    seen = sum((a - b) ** 2 for a, b in pairs)
    by_chance = sum((a - b) ** 2 for a, _ in pairs for _, b in pairs) / len(pairs)
    return 1 - seen / by_chance


def mean_favour(h_a: list[float], h_b: list[float], f_a: list[float], f_b: list[float]) -> float:
    """Mean over queries of (f_a − f_b) − (h_a − h_b)."""
    return sum((fa - fb) - (ha - hb) for ha, hb, fa, fb in zip(h_a, h_b, f_a, f_b, strict=True)) / len(h_a)


def ordered_alike(h: list[float], f: list[float]) -> float:
    """Share of pairs that both means order in the same way."""
    pairs = list(combinations(range(len(h)), 2))
    return sum((h[a] > h[b]) == (f[a] > f[b]) and h[a] != h[b] and f[a] != f[b] for a, b in pairs) / len(pairs)


def samples(size: int, n: int) -> list[tuple[list[int], list[int]]]:
    """Every ordered sample of n out of size, and the others."""
    return [(list(p), [i for i in range(size) if i not in p]) for p in permutations(range(size), n)]
