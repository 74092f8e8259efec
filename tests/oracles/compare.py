"""Paired tests and corrections straight from their definitions, by enumeration."""

from __future__ import annotations

from fractions import Fraction
from itertools import product


def sign_flip_p(differences) -> Fraction:
    """Share of the 2^n sign patterns whose |sum| is at least the observed one, in exact arithmetic."""
    d = [Fraction(x) for x in differences]
    observed = abs(sum(d))
    patterns = list(product((1, -1), repeat=len(d)))
    hits = sum(abs(sum(sign * x for sign, x in zip(signs, d, strict=True))) >= observed for signs in patterns)
    return Fraction(hits, len(patterns))


def signed_rank_p(differences) -> float:
    """Two-sided p of the signed-rank sum for non-zero differences with distinct sizes, over all sign patterns."""
    d = [x for x in differences if x != 0]
    order = sorted(range(len(d)), key=lambda i: abs(d[i]))
    rank = {i: r for r, i in enumerate(order, 1)}
    total = sum(rank.values())
    observed = sum(rank[i] for i in range(len(d)) if d[i] > 0)
    extreme = min(observed, total - observed)
    sums = [
        sum(r for r, sign in zip(rank.values(), signs, strict=True) if sign) for signs in product((0, 1), repeat=len(d))
    ]
    return min(1.0, 2 * sum(s <= extreme for s in sums) / len(sums))


def holm_rejects(p_values, alpha: float) -> list[bool]:
    """Holm's step-down procedure: the smallest p against alpha/m, the next against alpha/(m − 1), until one fails."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    rejected = [False] * len(p_values)
    for step, i in enumerate(order):
        if p_values[i] > alpha / (len(p_values) - step):
            break
        rejected[i] = True
    return rejected


def sign_flip_p_of_whole_numbers(differences) -> Fraction:
    """The same share for whole differences, any number of them: how many sign patterns give each sum, one by one."""
    ways = {0: 1}
    for d in differences:
        more: dict[int, int] = {}
        for total, count in ways.items():
            for after in (total + int(d), total - int(d)):
                more[after] = more.get(after, 0) + count
        ways = more
    observed = abs(int(sum(differences)))
    return Fraction(sum(count for total, count in ways.items() if abs(total) >= observed), 2 ** len(differences))


def kept_shifts(differences, alpha, shifts) -> list[bool]:
    """Which shifts the sign-flip test of d − shift does not reject at level alpha: its confidence set."""
    return [sign_flip_p([Fraction(d) - Fraction(s) for d in differences]) > alpha for s in shifts]


def walsh_averages(differences) -> list[float]:
    """(d_i + d_j)/2 over i ≤ j, in order."""
    n = len(differences)
    return sorted((differences[i] + differences[j]) / 2 for i in range(n) for j in range(i, n))
