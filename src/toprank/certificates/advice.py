"""Which listwise loss is proved to carry over best to new queries: the bounds of the generalisation paper, sorted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._tables import Shown, Table
from ..data.dataset import QueryDataset
from ..data.validation import check_fraction, check_informative, check_positive
from ..errors import InputError
from ..surrogates.transforms import Exponential, Linear, Sigmoid, Transform, parse_transform
from .base import scientific
from .generalization import ALGORITHMS, Algorithm, Bound, gaps, largest_norm


@dataclass(frozen=True)
class Advice(Shown):
    """Algorithm × transform, the tightest bound first; printed, it is a table."""

    bounds: tuple[Bound, ...]
    """The tightest bound of each pair."""
    printed: tuple[Bound, ...]
    """The same pairs, by the theorem as printed."""
    radius: float
    norm: float

    @property
    def best(self) -> Bound:
        """The tightest of them."""
        return self.bounds[0]

    def table(self) -> Table:
        """Return the ranking as a table."""
        rows = [
            (algorithm, transform, scientific(printed), scientific(log), by, "vacuous" if vacuous else "informative")
            for algorithm, transform, log, printed, by, vacuous in (row.values() for row in self.to_dict())
        ]
        n, m = self.best.n, self.best.m
        ball = f"‖w‖ ≤ {self.radius:g}, ‖x‖ ≤ {self.norm:.4g}"
        title = f"Gap between training and new queries, {ball}, {n} lists of up to {m}"
        notes = ("A gap of 1 or more (RankCosine: ½) says nothing: no normalised loss is larger.",)
        columns = ("algorithm", "transform", "gap as printed", "gap ≤", "by", "which is")
        return Table(columns, rows, title=title, notes=notes)

    def to_dict(self) -> list[dict[str, Any]]:
        """Return one row per pair, as plain values for JSON."""
        return [
            {
                "algorithm": b.algorithm,
                "transform": str(b.transform),
                "log_gap": b.log_value,
                "log_gap_as_printed": as_printed.log_value,
                "by": b.way,
                "vacuous": b.vacuous,
            }
            for b, as_printed in zip(self.bounds, self.printed, strict=True)
        ]


def advise(
    data: QueryDataset,
    radius: float,
    *,
    transforms: Sequence[str | Transform] | None = None,
    algorithms: Sequence[Algorithm] = ALGORITHMS,
    delta: float = 0.05,
) -> Advice:
    """Rank listwise losses and transforms by how far their loss on new queries can exceed that in training (Sec. 3.3).

    Each gap is what the certificate of a ranker with this `radius`, fitted on `data`, would add to its empirical loss.
    The default transforms are a = 1 with b = aBM + 1. The bounds compare guarantees, not accuracy: a loss that hardly
    depends on the scores has a small gap and learns little.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=200, n_docs=20, random_state=0)
    >>> advice = tr.advise(data, radius=1.0)
    >>> advice.best.algorithm, type(advice.best.transform).__name__
    ('ListMLE', 'Exponential')
    """
    check_positive(radius=radius)
    check_fraction(delta=delta)
    check_informative(data.informative)
    informative = data[data.informative]
    norm = largest_norm(informative)
    if norm == 0:
        raise InputError("every row of X is 0: no score can differ from 0")
    chosen = (Linear.on_ball(radius, norm), Exponential(), Sigmoid()) if transforms is None else transforms
    pairs = [(algorithm, parse_transform(transform)) for algorithm in algorithms for transform in chosen]
    if not pairs:
        raise InputError("there is nothing to rank: name at least one algorithm and one transform")
    found = [gaps(algorithm, transform, informative, radius, delta) for algorithm, transform in pairs]
    best = sorted(
        ((min(each, key=lambda b: b.log_value), each[0]) for each in found), key=lambda pair: pair[0].log_value
    )
    return Advice(tuple(b for b, _ in best), tuple(as_printed for _, as_printed in best), radius, norm)
