# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The inner loop of the sampled sign-flip test: sums of randomly signed differences, and what each is worth."""

import numpy as np

from ..core.jit import kernel, sum_kernel

_HIGHEST = 700.0  # beyond, exp overflows: a weight stays above 0, and so does p
_NEGLIGIBLE = 19.0  # beyond, e^{−x} adds nothing to e^x


@kernel
def tilt(sizes, target):
    """t with t K'(t) − K(t) ≥ target, and K(t) = Σ log cosh(t sizes): −log of Chernoff's bound at the tilted mean.

    The normal law's t is the least it can be; a tenth too large does no harm. Where sizes differ so much that it would
    have to grow beyond what rounding allows (1.1^300 is 10^12), t stays there: any will do, only less well.
    """
    t = np.sqrt(2 * target / (sizes**2).sum())
    for _ in range(300):
        bound = 0.0
        for size in sizes:
            rest = np.exp(-2 * t * size)
            bound += np.log(2.0) - np.log1p(rest) - 2 * t * size * rest / (1 + rest)
        if bound >= target:
            break
        t *= 1.1
    log = 0.0
    for size in sizes:
        log += t * size + np.log1p(np.exp(-2 * t * size)) - np.log(2.0)
    return t, log


@kernel
def tilt_rows(sizes, targets, tilts, logs):
    """Fill in t and K of each row of sizes; rows of zeros, and those without a target, are not tilted."""
    for h in range(sizes.shape[0]):
        if targets[h] > 0:
            tilts[h], logs[h] = tilt(sizes[h], targets[h])


@sum_kernel
def weight(s, t, log, share):
    """1 / (1 − share + share e^{−K} cosh(t s)): how much likelier an even flip is to give s than one as drawn."""
    twice = np.exp(min(t * s - log, _HIGHEST))
    if t * s < _NEGLIGIBLE:
        twice += np.exp(-t * s - log)
    return 1 / (1 - share + share * twice / 2)


@sum_kernel
def add_tails(sizes, limits, tilts, logs, bars, share, tilted, uniform, totals):
    """totals_h += Σ over draws with |S| ≥ bar_h of the weight of |S|, S = Σ ±sizes_h.

    Row b of `uniform` (whole numbers of 32 bits) says which signs of draw b are plus: those below 0 (one half), or
    below `limits_h` where the draw is tilted. Every test reads the same rows.
    """
    even = np.zeros(limits.shape[1], limits.dtype)
    for h in range(sizes.shape[0]):
        size = sizes[h]
        everything = size.sum()
        total = 0.0
        for b in range(uniform.shape[0]):
            u = uniform[b]
            limit = limits[h] if tilted[b] else even
            plus = 0.0
            for q in range(len(size)):
                plus += size[q] if u[q] < limit[q] else 0.0
            s = abs(2 * plus - everything)
            if s >= bars[h]:
                total += weight(s, tilts[h], logs[h], share)
        totals[h] += total


@sum_kernel
def half_sums(values, masses, limits, tilts, logs, share, tilted, uniform, lower, each):
    """lower_hb = min of Σ values_h / Σ masses over the queries that draw b calls plus and over the others.

    −∞ where all are on one side. each_hb is what the draw is worth; draws are as in `add_tails`.
    """
    even = np.zeros(limits.shape[1], limits.dtype)
    mass = masses.sum()
    for h in range(values.shape[0]):
        value = values[h]
        everything = value.sum()
        for b in range(uniform.shape[0]):
            u = uniform[b]
            limit = limits[h] if tilted[b] else even
            total, count = 0.0, 0.0
            for q in range(len(value)):
                inside = u[q] < limit[q]
                total += value[q] if inside else 0.0
                count += masses[q] if inside else 0.0
            rest = mass - count
            if count <= 1e-9 * mass or rest <= 1e-9 * mass:
                lower[h, b] = -np.inf
            else:
                lower[h, b] = min(total / count, (everything - total) / rest)
            each[h, b] = weight(abs(2 * total - everything), tilts[h], logs[h], share)
