"""Which differences between rankers show: paired tests over queries, corrected, with intervals that agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from .._checkpoint import plain
from .._tables import Shown, Table, signed
from .._typing import Floats, Seed
from ..data import validation
from ..errors import InputError
from ..measures import measure as parse_measure
from . import _intervals as intervals
from . import _statistics as statistics
from ._bounded import smallest_margin
from ._paired_tests import FEW, TESTS, PairedTest, PairResult, Test, draws_for, means_and_effects
from ._pairing import aligned, pairs_of

if TYPE_CHECKING:
    from .evaluation import Report

RESAMPLES = 10_000
"""Resamples where no other number is asked for."""

_NULL = {
    "permutation": "that the two systems could be exchanged on every query (each difference as likely with the other "
    "sign); it is not the hypothesis that the means are equal, and where differences are skewed p may be small "
    "although the means are equal",
    "t": "that differences are drawn from a normal law with mean 0; where they are skewed p is off",
    "wilcoxon": "that differences are spread evenly round 0; it weighs ranks, so verdict and interval are about the "
    "middle of the pairwise means (Hodges and Lehmann) and may point the other way than the mean",
}


@dataclass(frozen=True)
class Difference:
    """One paired comparison: is `measure` higher for system `a` than for system `b`?"""

    measure: str
    a: str
    b: str
    difference: float
    """Mean over queries of a − b."""
    interval: tuple[float, float]
    """The differences that the test does not reject, at the level at which Holm's procedure decided.

    `by_betting` says that it is the one for any differences in [−1, 1] instead.
    """
    level: float
    """Confidence of that interval by itself: 1 − alpha/k, k the comparisons still open in Holm's procedure."""
    simultaneous: tuple[float, float]
    """The same at 1 − alpha/m for all m comparisons (Bonferroni): all of these hold together with 1 − alpha."""
    effect: float | None
    """The difference in standard deviations of the queries' differences; None where they do not vary."""
    p: float
    p_holm: float
    """`p` corrected for the whole family: every pair on every measure of the comparison."""
    wins: int
    ties: int
    losses: int
    direction: int
    """Whom the test favours: 1 is a, −1 is b. Signed ranks may favour the one with the lower mean."""
    shown: bool
    """Whether p_holm ≤ alpha."""
    by_betting: bool = False
    """Whether the intervals hold for any differences in [−1, 1]: beside a margin, and where differences are few or
    skewed. Such an interval may hold 0 although the test shows that the systems differ."""
    margin: float | None = None
    p_no_worse: tuple[float, float] | None = None
    """With a margin: p, corrected, of "a is worse than b by the margin or more", and of the same about b."""
    no_worse: tuple[bool, bool] | None = None
    """Whether a is shown to be no worse than b by more than the margin, and b than a; both: they are equivalent."""

    @property
    def verdict(self) -> str:
        """The outcome in words."""
        better, within = self.a if self.direction > 0 else self.b, f"{self.margin:g}" if self.margin else ""
        a, b = self.no_worse or (False, False)
        if self.shown:
            return f"{better} is better" + (f", by less than {within}" if a and b else "")
        if a and b:
            return f"equivalent within {within}"
        return f"{self.a if a else self.b} is no worse by more than {within}" if a or b else "not shown"


@dataclass(frozen=True)
class Comparison(Shown):
    """Means, intervals and paired tests of several systems on the same queries; printed, it says what is shown."""

    systems: tuple[str, ...]
    measures: tuple[str, ...]
    means: Mapping[str, Mapping[str, float]]
    """Mean by measure, then system."""
    intervals: Mapping[str, Mapping[str, tuple[float, float]]]
    """Bootstrap interval of that mean (bias-corrected and accelerated)."""
    differences: tuple[Difference, ...]
    test: Test
    alpha: float
    counted: Mapping[str, int]
    """Queries that count, by measure: a convention may skip some."""
    convention: str
    baseline: str | None
    n_resamples: int
    """Draws of the bootstrap, and flips of the permutation test where they are sampled."""
    tilted: bool = False
    """Whether half of these flips were tilted towards the tail: p then has no floor of 1 / (n_resamples + 1)."""
    sampled: int = 0
    """Comparisons whose flips were sampled; those of the others were all counted."""
    margin: float | None = None
    reports: Mapping[str, Report] = field(default_factory=dict, repr=False, compare=False)
    """What was compared."""

    @property
    def n_queries(self) -> int:
        """How many queries count, by the measure that counts most."""
        return max(self.counted.values())

    @property
    def correction(self) -> str:
        """What "shown" means here, in a few words."""
        return f"shown at {100 * self.alpha:g}%, Holm"

    @property
    def caution(self) -> str:
        """Why hardly any difference can show, where one's own number of flips is too small for the family."""
        family, smallest = len(self.differences), 1 / (self.n_resamples + 1)
        if not self.sampled or self.tilted or family * smallest <= self.alpha:
            return ""
        return (
            f"With {self.n_resamples:,} flips no p can be below {smallest:.2g}, and {family:,} times that is above "
            f"{self.alpha:g}: hardly any difference can show here, however large. Where no number of resamples is "
            "given, p has no such floor."
        )

    def counts_fewer(self, n_queries: int) -> str:
        """Return which measures count fewer than so many queries, as a sentence; empty where none does."""
        some = [f"{m} {n}" for m, n in self.counted.items() if n < n_queries]
        return f"Some measures count fewer queries: {', '.join(some)}." if some else ""

    def interval(self, system: str, measure: str) -> tuple[float, float]:
        """Return the bootstrap interval of a mean."""
        return self.intervals[measure][system]

    def difference(self, measure: str, a: str, b: str) -> Difference:
        """Return the comparison of two systems on a measure, a − b as it was made."""
        for found in self.differences:
            if (found.measure, found.a, found.b) == (measure, a, b):
                return found
        raise KeyError(f"{a!r} was not compared with {b!r} on {measure!r}")

    def tables(self) -> tuple[Table, Table]:
        """Return the means and the differences as tables, with what is needed to read them."""
        return self._means(), self._differences()

    def _means(self) -> Table:
        rows = [
            [m, *(f"{self.means[m][s]:.4f} {interval_text(self.interval(s, m))}" for s in self.systems)]
            for m in self.measures
        ]
        best = {(r, 1 + int(np.argmax([self.means[m][s] for s in self.systems]))) for r, m in enumerate(self.measures)}
        few = f" With fewer than {FEW} queries they may miss more often." if self.n_queries < FEW else ""
        return Table(
            ["measure", *self.systems],
            rows,
            title=f"Means over {self.n_queries} queries, convention {self.convention}",
            notes=[
                f"In brackets: {1 - self.alpha:.0%} bootstrap intervals (BCa) over queries, each by itself "
                f"({self.n_resamples:,} resamples).{few}",
                *([fewer] if (fewer := self.counts_fewer(self.n_queries)) else []),
            ],
            bold=best,
        )

    def _differences(self) -> Table:
        half = ", half of them tilted towards the tail" if self.tilted else ""
        sampled = f", {self.n_resamples:,} flips{half} (all flips where at most {statistics.EXACT} queries differ)"
        columns = ["measure", "compared", "difference", "interval", "effect", "p", "p (Holm)", "wins/ties/losses"]
        return Table(
            [*columns, "verdict"],
            [
                [
                    d.measure,
                    f"{d.a} − {d.b}",
                    signed(d.difference),
                    interval_text(d.interval, sign=True) + (" †" if d.by_betting else ""),
                    None if d.effect is None else signed(d.effect, 2),
                    p_text(d.p),
                    p_text(d.p_holm),
                    f"{d.wins}/{d.ties}/{d.losses}",
                    d.verdict,
                ]
                for d in self.differences
            ],
            title=f"Differences by the {TESTS[self.test]}{sampled if self.test == 'permutation' else ''}",
            notes=self.explained(),
            bold={(r, 8) for r, d in enumerate(self.differences) if d.shown},
        )

    def explained(self) -> list[str]:
        """Return what p, the intervals and the verdicts mean, sentence by sentence."""
        pairs = len(self.differences) // len(self.measures)
        lines = [
            f"A difference is shown where p (Holm) ≤ {self.alpha:g}; not shown does not mean equal. The correction "
            f"covers one family, every pair on every measure ({pairs} × {len(self.measures)}).",
            f"The hypothesis that p is about: {_NULL[self.test]}.",
        ]
        if not all(d.by_betting for d in self.differences):
            lines.append(
                "Intervals hold the differences that the test does not reject: 0 is outside exactly where a difference "
                "is shown."
            )
        if any(d.by_betting for d in self.differences):
            lines.append(
                "Intervals marked † bound the mean of any differences in [−1, 1] by betting: beside a margin, of fewer "
                f"than {FEW} queries and of skewed differences those of the test miss too often. Where one "
                "holds 0 beside a difference that is shown, the systems differ and their means may be equal."
            )
        lines.append(
            f"Each interval is at the level at which Holm's procedure decided (1 − {self.alpha:g}/k, k comparisons "
            "still open)."
        )
        return [*lines, *self._about_margin(), *([self.caution] if self.caution else [])]

    def _about_margin(self) -> list[str]:
        if not self.margin:
            return []
        lines = [
            f"No worse by more than {self.margin:g}, and equivalent where that is shown both ways: bets against a mean "
            f"difference of −{self.margin:g}, for any differences in [−1, 1], at {self.alpha:g}, Holm over both "
            "directions of every pair. Measures beyond [0, 1] have no such verdict."
        ]
        n, level = self.n_queries, self.alpha / (2 * len(self.differences))
        least = smallest_margin(n, level)
        if least > self.margin:
            lines.append(
                f"{n:,} queries are too few for this margin: even of systems that are equal on all of them no more is "
                f"shown than a margin of {least:.2g}, since a rare failure may not have been seen. Judge more queries, "
                "compare fewer systems, or take a wider margin."
            )
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON; an end of an interval that is nowhere is None."""
        found: dict[str, Any] = plain({**asdict(replace(self, reports={})), "n_queries": self.n_queries})
        del found["reports"]
        for row, d in zip(found["differences"], self.differences, strict=True):
            row["verdict"] = d.verdict
        return found

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Return one row per difference as a data frame."""
        import narwhals as nw

        names = ("by_betting", "effect", "p", "p_holm", "wins", "ties", "losses", "shown", "verdict")
        rows = [
            {"measure": d.measure, "a": d.a, "b": d.b}
            | {"mean_a": self.means[d.measure][d.a], "mean_b": self.means[d.measure][d.b], "difference": d.difference}
            | {"low": d.interval[0], "high": d.interval[1], "level": d.level}
            | {name: getattr(d, name) for name in names}
            for d in self.differences
        ]
        return nw.from_dict({key: [row[key] for row in rows] for key in rows[0]}, backend=backend).to_native()


def compare(
    reports: Mapping[str, Report],
    test: Test = "permutation",
    *,
    baseline: str | None = None,
    alpha: float = 0.05,
    margin: float | None = None,
    n_resamples: int | None = None,
    random_state: Seed = 0,
) -> Comparison:
    """Test the differences d = a − b over queries for every pair of systems and every measure.

    `test` is `"permutation"` (sign flips of the paired differences: p = share of flips with |mean| ≥ |d̄|), `"t"`
    (paired t test) or `"wilcoxon"` (signed ranks). The permutation test's null is that a and b could be exchanged on
    every query. With a `baseline` the other systems are compared with it alone. Holm's correction covers one family:
    every pair on every measure. The interval of a difference holds what the test does not reject, at the level at
    which Holm's procedure decided: it leaves 0 out exactly where the difference is shown. Means have bootstrap
    intervals (BCa). Where the reports weigh queries, means, differences, intervals and the permutation test do too.

    With a `margin` it is also tested who is no worse by more than that, and who is equivalent. That rests on bets that
    hold for any differences in [−1, 1]. So do the intervals beside it, those of fewer than 50 queries and those of
    skewed differences (`by_betting`).

    Up to 28 differing queries all 2^n flips are counted. Beyond, 10,000 are drawn, half of them tilted towards sums as
    large as the correction asks for and weighted back (Harrison 2012, "Conservative hypothesis tests and confidence
    intervals using importance sampling"): a valid p, as small as it may be, however large the family. In a family of
    more than 10,000 comparisons each has a quarter of the draws. `n_resamples` draws that many even flips instead:
    p = (hits + 1) / (n_resamples + 1), and `caution` says where so few cannot pass the correction.

    >>> import toprank as tr
    >>> data = tr.QueryDataset.from_arrays(np.zeros((90, 1)), np.tile([0, 1, 2], 30), np.repeat(np.arange(30), 3))
    >>> noise = np.random.default_rng(0).standard_normal(90)
    >>> reports = {"good": tr.evaluate(data.y + noise, data, ["map"]), "bad": tr.evaluate(noise, data, ["map"])}
    >>> tr.compare(reports).difference("map", "good", "bad").verdict
    'good is better'
    """
    systems, values = aligned(reports)
    _check(test, alpha, margin, n_resamples)
    pairs = pairs_of(systems, baseline)
    seed, family = validation.as_seed(random_state), len(pairs) * len(values)
    drawn = draws_for(family, RESAMPLES) if n_resamples is None else n_resamples
    paired = PairedTest(test, drawn, seed, None if n_resamples is not None else alpha / family)
    rng = np.random.default_rng(seed)
    spans: dict[str, dict[str, tuple[float, float]]] = {}
    found: list[PairResult] = []
    sizes: list[tuple[float, float | None]] = []
    for measure, (rows, weight, in_mean) in values.items():
        diffs = np.stack([rows[a] - rows[b] for a, b in pairs])
        diffs[np.abs(diffs) <= statistics.TIE] = 0
        bounded = bool(rows.min() >= -1e-9 and rows.max() <= 1 + 1e-9) and not _has_no_end(measure)
        found += paired.found(measure, diffs, weight, margin, alpha / (2 * family), bounded=bounded)
        sizes += means_and_effects(diffs, weight)
        draws = intervals.bootstrap_means(in_mean, weight, drawn, rng)
        ends_of_means = [intervals.bca(row, weight, of_row, alpha) for row, of_row in zip(in_mean, draws, strict=True)]
        spans[measure] = dict(zip(systems, ends_of_means, strict=True))
    corrected = statistics.holm(np.array([one.p for one in found]))
    ends = paired.intervals(found, corrected, alpha)
    differences = [
        _difference(one, size, (systems[a], systems[b]), float(p), at, float(level), alpha)
        for one, size, (a, b), p, at, level in zip(found, sizes, pairs * len(values), corrected, *ends, strict=True)
    ]
    if margin is not None:
        differences = _with_margin(differences, found, margin, alpha)
    return Comparison(
        systems=systems,
        measures=tuple(values),
        means={m: _means(systems, one.in_mean, one.weight) for m, one in values.items()},
        intervals=spans,
        differences=tuple(differences),
        test=test,
        alpha=alpha,
        counted={m: one.values.shape[1] for m, one in values.items()},
        convention=str(next(iter(reports.values())).convention),
        baseline=baseline,
        n_resamples=drawn,
        tilted=paired.level is not None and test == "permutation",
        sampled=sum(int(np.count_nonzero(one.d)) > statistics.EXACT for one in found) if test == "permutation" else 0,
        margin=margin,
        reports=dict(reports),
    )


def _check(test: Test, alpha: float, margin: float | None, n_resamples: int | None) -> None:
    validation.check_choice(get_args(Test), test=test)
    if n_resamples is not None:
        validation.check_count(n_resamples=n_resamples)
    validation.check_fraction(alpha=alpha)
    if margin is not None:
        validation.check_positive(margin=margin)


def _means(systems: tuple[str, ...], values: Floats, weight: Floats) -> dict[str, float]:
    return dict(zip(systems, (values * weight).mean(axis=1).tolist(), strict=True))


def _difference(
    found: PairResult,
    size: tuple[float, float | None],
    systems: tuple[str, str],
    p_holm: float,
    ends: Floats,
    level: float,
    alpha: float,
) -> Difference:
    """Return what a test found, as one value; `ends` are the interval at its own level and the simultaneous one."""
    return Difference(
        measure=found.measure,
        a=systems[0],
        b=systems[1],
        difference=size[0],
        interval=(float(ends[0][0]), float(ends[0][1])),
        level=level,
        simultaneous=(float(ends[1][0]), float(ends[1][1])),
        effect=size[1],
        p=found.p,
        p_holm=p_holm,
        wins=int((found.d > 0).sum()),
        ties=int((found.d == 0).sum()),
        losses=int((found.d < 0).sum()),
        direction=found.direction,
        shown=p_holm <= alpha,
        by_betting=found.by_betting,
    )


def _with_margin(
    differences: Sequence[Difference], found: Sequence[PairResult], margin: float, alpha: float
) -> list[Difference]:
    """Return the differences with who is no worse by the margin or more; both sides of all are one family."""
    sides = statistics.holm(np.concatenate([one.sides for one in found])).reshape(-1, 2).tolist()
    return [
        replace(one, margin=margin, p_no_worse=(a, b), no_worse=(a <= alpha, b <= alpha))
        for one, (a, b) in zip(differences, sides, strict=True)
    ]


def _has_no_end(measure: str) -> bool:
    """Say whether the values of a measure may lie beyond [0, 1]; one that nobody knows is taken by its values."""
    try:
        return not parse_measure(measure).bounded
    except InputError:
        return False


def interval_text(interval: tuple[float, float], *, sign: bool = False) -> str:
    """Return an interval as it is printed, here and on the page.

    >>> interval_text((-0.5, float("inf")), sign=True), interval_text((0.25, 0.5))
    ('[−0.5000, +∞]', '[0.2500, 0.5000]')
    """
    ends = [f"{'−' if x < 0 else '+'}∞" if abs(x) == inf else signed(x) if sign else f"{x:.4f}" for x in interval]
    return f"[{ends[0]}, {ends[1]}]"


def p_text(p: float) -> str:
    """Return a p as it is printed."""
    return "<0.0001" if p < 5e-5 else f"{p:.4f}"
