"""Which differences between rankers are real: paired tests over queries, corrected, with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from . import _statistics as statistics
from ._tables import Table
from ._typing import Floats
from .data import validation
from .errors import InputError

if TYPE_CHECKING:
    from rich.console import Group

    from .evaluation import Report

Test = Literal["permutation", "t", "wilcoxon"]

RESAMPLES = 10_000
"""Resamples where no other number is asked for."""

_NAMES = {
    "permutation": "paired sign-flip permutation test",
    "t": "paired t test",
    "wilcoxon": "Wilcoxon signed-rank test",
}


@dataclass(frozen=True)
class Difference:
    """One paired comparison: is the mean of `measure` higher for system `a` than for system `b`?"""

    measure: str
    a: str
    b: str
    difference: float
    """Mean over queries of a − b."""
    interval: tuple[float, float]
    p: float
    p_holm: float
    """`p` corrected for the whole family: every pair on every measure of the comparison."""
    wins: int
    ties: int
    losses: int
    real: bool
    """Whether p_holm ≤ alpha."""

    @property
    def verdict(self) -> str:
        """The outcome in words."""
        if not self.real:
            return "no real difference"
        return f"{self.a if self.difference > 0 else self.b} is better"


@dataclass(frozen=True)
class Comparison:
    """Means, intervals and paired tests of several systems on the same queries; printed, it says what is real."""

    systems: tuple[str, ...]
    measures: tuple[str, ...]
    means: Mapping[str, Mapping[str, float]]
    """Mean by measure, then system."""
    intervals: Mapping[str, Mapping[str, tuple[float, float]]]
    """Bootstrap interval of that mean."""
    differences: tuple[Difference, ...]
    test: Test
    alpha: float
    n_queries: int
    convention: str
    baseline: str | None
    n_resamples: int
    """Draws of the bootstrap, and flips of the permutation test where they are sampled."""
    tilted: bool = False
    """Whether half of these flips were tilted towards the tail: p then has no floor of 1 / (n_resamples + 1)."""

    @property
    def caution(self) -> str:
        """Why hardly any difference can be real, where one's own number of flips is too small for the family."""
        family, smallest = len(self.differences), 1 / (self.n_resamples + 1)
        sampled = self.test == "permutation" and not self.tilted and self.n_queries > statistics.EXACT
        if not sampled or family * smallest <= self.alpha:
            return ""
        return (
            f"With {self.n_resamples:,} flips no p can be below {smallest:.2g}, and {family:,} times that is above "
            f"{self.alpha:g}: hardly any difference can show here, however large. Where no number of resamples is "
            "given, p has no such floor."
        )

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
        level = f"{1 - self.alpha:.0%}"
        rows = [
            [m, *(_with_interval(self.means[m][s], self.interval(s, m)) for s in self.systems)] for m in self.measures
        ]
        best = {(r, 1 + int(np.argmax([self.means[m][s] for s in self.systems]))) for r, m in enumerate(self.measures)}
        means = Table(
            ["measure", *self.systems],
            rows,
            title=f"Means over {self.n_queries} queries, convention {self.convention}",
            notes=[f"In brackets: {level} bootstrap intervals over queries ({self.n_resamples:,} resamples)."],
            bold=best,
        )
        pairs = len(self.differences) // len(self.measures)
        half = ", half of them tilted towards the tail" if self.tilted else ""
        sampled = f", {self.n_resamples:,} flips{half} (all flips where at most {statistics.EXACT} queries differ)"
        differences = Table(
            ["measure", "compared", "difference", f"{level} interval", "p", "p (Holm)", "wins/ties/losses", "verdict"],
            [
                [
                    d.measure,
                    f"{d.a} − {d.b}",
                    f"{d.difference:+.4f}",
                    f"[{d.interval[0]:+.4f}, {d.interval[1]:+.4f}]",
                    _p(d.p),
                    _p(d.p_holm),
                    f"{d.wins}/{d.ties}/{d.losses}",
                    d.verdict,
                ]
                for d in self.differences
            ],
            title=f"Differences by the {_NAMES[self.test]}{sampled if self.test == 'permutation' else ''}",
            notes=[
                f"A difference is real where p (Holm) ≤ {self.alpha:g}. The correction covers one family, every pair "
                f"on every measure ({pairs} × {len(self.measures)}); the intervals are not corrected.",
                *([self.caution] if self.caution else []),
            ],
            bold={(r, 7) for r, d in enumerate(self.differences) if d.real},
        )
        return means, differences

    def to_markdown(self) -> str:
        """Return both tables in Markdown."""
        return "\n\n".join(table.markdown() for table in self.tables())

    def to_latex(self) -> str:
        """Return both tables in LaTeX (with the booktabs package)."""
        return "\n\n".join(table.latex() for table in self.tables())

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return "\n\n".join(table.plain() for table in self.tables())

    def __rich__(self) -> Group:
        from rich.console import Group

        return Group(*(table.rich() for table in self.tables()))

    def _repr_html_(self) -> str:
        return "\n".join(table.html() for table in self.tables())


def compare(
    reports: Mapping[str, Report],
    test: Test = "permutation",
    *,
    baseline: str | None = None,
    alpha: float = 0.05,
    n_resamples: int | None = None,
    random_state: int = 0,
) -> Comparison:
    """Test d̄ = mean over queries of (a − b) against 0 for every pair of systems and every measure.

    `test` is `"permutation"` (sign flips of the paired differences: p = share of flips with |mean| ≥ |d̄|), `"t"`
    (paired t test) or `"wilcoxon"` (signed ranks). With a `baseline` the other systems are compared with it alone.
    Holm's correction covers one family: every pair on every measure. Intervals are bootstrap percentiles over queries.
    Where the reports weigh queries, means, differences, intervals and the permutation test do too.

    Up to 28 differing queries all 2^n flips are counted. Beyond, 10,000 are drawn, half of them tilted towards sums as
    large as the correction asks for and weighted back (Harrison 2012, "Conservative hypothesis tests and confidence
    intervals using importance sampling"): a valid p, as small as it may be, however large the family. A number of your
    own, `n_resamples`, draws that many even flips: p = (hits + 1) / (n_resamples + 1), and `caution` says where no
    difference can come out of the correction with so few.

    >>> import toprank as tr
    >>> data = tr.QueryDataset.from_arrays(np.zeros((90, 1)), np.tile([0, 1, 2], 30), np.repeat(np.arange(30), 3))
    >>> noise = np.random.default_rng(0).standard_normal(90)
    >>> reports = {"good": tr.evaluate(data.y + noise, data, ["map"]), "bad": tr.evaluate(noise, data, ["map"])}
    >>> tr.compare(reports).difference("map", "good", "bad").verdict
    'good is better'
    """
    validation.check_choice(get_args(Test), test=test)
    if n_resamples is not None:
        validation.check_count(n_resamples=n_resamples)
    drawn = RESAMPLES if n_resamples is None else n_resamples
    if not 0 < alpha < 1:
        raise InputError(f"alpha must be a share between 0 and 1, got {alpha!r}")
    systems, values = _aligned(reports)
    pairs = _pairs(systems, baseline)
    rng = np.random.default_rng(random_state)
    ends = [alpha / 2, 1 - alpha / 2]
    intervals: dict[str, dict[str, tuple[float, float]]] = {}
    level = None if n_resamples is not None else alpha / (len(pairs) * len(values))
    found: list[tuple[str, int, int, Floats, float, float, tuple[float, float]]] = []
    for measure, (rows, weight) in values.items():
        diffs = np.stack([rows[a] - rows[b] for a, b in pairs])
        diffs[np.abs(diffs) <= statistics.TIE] = 0
        # Every measure has the same flips, apart from the bootstrap's draws: p depends on no order.
        flips = np.random.default_rng(random_state).spawn(1)[0]
        p_values = _p_values(diffs, weight, test, drawn, flips, level)
        means = statistics.bootstrap_means(rows, weight, drawn, rng)
        intervals[measure] = {name: _ends(np.quantile(row, ends)) for name, row in zip(systems, means, strict=True)}
        found += [
            (measure, a, b, d, float((d * weight).mean()), float(p), _ends(np.quantile(means[a] - means[b], ends)))
            for (a, b), d, p in zip(pairs, diffs, p_values, strict=True)
        ]
    corrected = statistics.holm(np.array([p for *_, p, _ in found]))
    first = reports[systems[0]]
    return Comparison(
        systems=systems,
        measures=tuple(values),
        means={m: dict(zip(systems, (rows * w).mean(axis=1).tolist(), strict=True)) for m, (rows, w) in values.items()},
        intervals=intervals,
        differences=tuple(
            Difference(
                measure=measure,
                a=systems[a],
                b=systems[b],
                difference=mean,
                interval=interval,
                p=p,
                p_holm=float(p_holm),
                wins=int((d > 0).sum()),
                ties=int((d == 0).sum()),
                losses=int((d < 0).sum()),
                real=bool(p_holm <= alpha),
            )
            for (measure, a, b, d, mean, p, interval), p_holm in zip(found, corrected, strict=True)
        ),
        test=test,
        alpha=alpha,
        n_queries=len(first.query_ids),
        convention=str(first.convention),
        baseline=baseline,
        n_resamples=drawn,
        tilted=level is not None and test == "permutation",
    )


def _aligned(reports: Mapping[str, Report]) -> tuple[tuple[str, ...], dict[str, tuple[Floats, Floats]]]:
    """Return the systems and, by measure, their values (system × query) and weights, for reports that can be paired."""
    if len(reports) < 2:
        raise InputError(f"compare needs at least two reports, got {len(reports)}")
    systems = tuple(reports)
    first, *others = reports.values()
    measures = tuple(first.per_query)
    for name, report in zip(systems[1:], others, strict=True):
        if str(report.convention) != str(first.convention):
            raise InputError(
                f"{systems[0]!r} follows the convention {first.convention} and {name!r} {report.convention}: "
                "evaluate both under one convention"
            )
        if tuple(report.per_query) != measures:
            raise InputError(
                f"{systems[0]!r} has the measures {', '.join(measures)} and {name!r} {', '.join(report.per_query)}: "
                "evaluate both with the same measures"
            )
        if not np.array_equal(report.query_ids, first.query_ids):
            raise InputError(
                f"{systems[0]!r} and {name!r} hold different queries (or another order of them): "
                "paired tests need both evaluated on the same data"
            )
        if not _same(report.query_weight, first.query_weight):
            raise InputError(
                f"{systems[0]!r} and {name!r} weigh the queries differently: evaluate both on the same data"
            )
    weight = np.ones(len(first.query_ids)) if first.query_weight is None else first.query_weight
    values = {m: _counted(m, np.array([report.per_query[m] for report in reports.values()]), weight) for m in measures}
    if not values:
        raise InputError("the reports hold no measures: there is nothing to compare")
    return systems, values


def _same(one: Floats | None, other: Floats | None) -> bool:
    return one is other if one is None or other is None else np.array_equal(one, other)


def _counted(measure: str, rows: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Leave out queries that do not count (NaN for every system alike, or weight 0); scale the weights to mean 1."""
    skipped = np.isnan(rows)
    if (skipped != skipped[0]).any():
        raise InputError(f"{measure} skips other queries in one report than in another: evaluate both on the same data")
    kept = ~skipped[0] & (weight > 0)
    if not kept.any():
        raise InputError(f"{measure} counts no query: there is nothing to compare")
    return rows[:, kept], weight[kept] / weight[kept].mean()


def _pairs(systems: tuple[str, ...], baseline: str | None) -> list[tuple[int, int]]:
    if baseline is None:
        return list(combinations(range(len(systems)), 2))
    validation.check_choice(systems, baseline=baseline)
    base = systems.index(baseline)
    return [(i, base) for i in range(len(systems)) if i != base]


def _p_values(
    diffs: Floats, weight: Floats, test: Test, n_resamples: int, rng: np.random.Generator, level: float | None
) -> Floats:
    if test == "permutation":
        return statistics.sign_flip(diffs * weight, n_resamples, rng, level)
    if (weight != 1).any():
        raise InputError(f'the {_NAMES[test]} knows no weights, and these queries have them: use test="permutation"')
    if test == "t" and diffs.shape[1] < 2:
        raise InputError("the paired t test needs at least two queries, got 1")
    one = statistics.paired_t if test == "t" else statistics.wilcoxon
    return np.array([one(d) for d in diffs])


def _ends(quantiles: Floats) -> tuple[float, float]:
    return float(quantiles[0]), float(quantiles[1])


def _with_interval(mean: float, interval: tuple[float, float]) -> str:
    return f"{mean:.4f} [{interval[0]:.4f}, {interval[1]:.4f}]"


def _p(p: float) -> str:
    return "<0.0001" if p < 5e-5 else f"{p:.4f}"
