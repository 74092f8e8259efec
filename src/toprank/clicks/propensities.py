"""How likely a user looks at a position: estimated from a log in which documents moved, with intervals."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np

from .._drawing import empty_figure
from .._files import replacing
from .._tables import Table
from .._typing import ArrayLike, Floats, Ints
from ..data.validation import as_generator, check_choice, check_count, check_fraction
from ..errors import InputError, ParseError
from .log import ClickLog, Counts
from .smoothing import drawn, maximise, smooth

Method: TypeAlias = Literal["smooth", "harvest", "em", "trust", "known"]

_EM_ROUNDS, _EM_TOLERANCE = 20_000, 1e-8


@dataclass(frozen=True, eq=False)
class Propensities:
    """How likely each position is looked at, compared with the first: p_k = P(k is looked at) / P(1 is looked at).

    `estimate` reads them off a log, `known` takes them from you. `trust` is P(click on a document that does not
    attract) by position, and 0 unless the method is "trust". Intervals are percentiles over resampled queries; NaN
    where none were asked for.

    >>> print(Propensities.known([1.0, 0.5]))
    position      p
    --------  -----
    1         1.000
    2         0.500
    given, not estimated
    """

    values: Floats
    trust: Floats
    lower: Floats
    upper: Floats
    overlap: Ints
    """[j, k]: how many documents of queries were shown at both positions j + 1 and k + 1."""
    method: Method
    confidence: float = 0.95
    converged: bool = True

    def __post_init__(self) -> None:
        n = self.values.size
        shapes = [self.values.shape, self.trust.shape, self.lower.shape, self.upper.shape]
        known = np.append(self.values, self.trust)
        if shapes != [(n,)] * 4 or not n or not (np.isfinite(known) & (known >= 0)).all() or self.values[0] == 0:
            raise InputError("propensities are finite numbers from position 1 on, none below 0 and the first above 0")
        if self.overlap.shape != (n, n) or not isinstance(self.converged, bool):
            raise InputError("overlap must be a square table of all positions, and converged True or False")
        check_fraction(confidence=self.confidence)

    @classmethod
    def known(cls, values: ArrayLike) -> Self:
        """Return propensities that were measured elsewhere, by randomised positions for example."""
        try:
            given = np.atleast_1d(np.asarray(values))
        except ValueError:  # lists of several lengths
            given = np.empty(0, dtype=object)
        p = given.astype(np.float64) if given.dtype.kind in "biuf" else np.empty(0)
        none, zero = np.full(p.shape, np.nan), np.zeros(p.shape)
        first = p[0] if p.ndim == 1 and p.size and p[0] > 0 else 1.0
        return cls(p / first, zero, none, none, np.zeros((len(p), len(p)), int), "known")

    @classmethod
    def estimate(
        cls,
        log: ClickLog,
        method: Literal["smooth", "harvest", "em", "trust"] = "smooth",
        *,
        cut: int | None = None,
        resamples: int = 100,
        confidence: float = 0.95,
        random_state: int = 0,
    ) -> Self:
        """Estimate from documents that were shown at several positions of the same query.

        Logs of two or more rankers, or of one that changed, have such documents; which of them a user got must not
        depend on what the user wanted. "harvest" asks where the clicks of a document fell, given how many it had: the
        document's own attraction cancels (Poisson regression with one effect per document; Agarwal et al. 2019 compare
        the same documents pair of positions by pair of positions). "smooth" asks the same and, the less the log tells,
        the more it draws the answer towards a power law k^−η, whose η is estimated too (`smoothing.Prior`): nearer to
        the truth in short logs, the same in long ones, also where the truth is no power law. "em" fits the position
        model p_k·γ by expectation and maximisation, "trust" the model in which clicks on unattractive documents depend
        on the position as well (Vardasbi et al. 2020; known only up to the scale and the zero of the attraction).
        Positions after `cut` are left out. A log that does not identify the answer is refused.

        >>> import toprank as tr
        >>> data = tr.datasets.make_graded(n_queries=30, random_state=0)
        >>> log = tr.datasets.simulate_clicks(data, [data.X[:, 0], data.X[:, 1]], sessions=30_000, cut=4)
        >>> Propensities.estimate(log, resamples=0).values.round(1).tolist()
        [1.0, 0.5, 0.3, 0.2]
        """
        if not isinstance(log, ClickLog):
            raise InputError(f"log must be a ClickLog, got {type(log).__name__}: make one with ClickLog.from_table")
        check_choice(("smooth", "harvest", "em", "trust"), method=method)
        check_fraction(confidence=confidence)
        rng = as_generator(random_state)
        if cut is not None:
            check_count(cut=cut)
        depth = min(int(log.counts.position.max()), cut or sys.maxsize)
        counts = log.counts if cut is None else log.counts.up_to(depth)
        _check_identified(counts, depth, method)
        overlap = _overlap(counts, depth)
        equal = np.ones(counts.n_pairs)
        fitted = _fit(counts, depth, method, equal, None, rng)
        low, high = np.full(depth, np.nan), np.full(depth, np.nan)
        if resamples:
            draws = _resampled(counts, depth, method, fitted, resamples, rng)
            tail = 50 * (1 - confidence)
            low, high = np.percentile(draws, [tail, 100 - tail], axis=0)
        return cls(fitted.relative, fitted.wrong, low, high, overlap, method, confidence, fitted.converged)

    def __len__(self) -> int:
        return len(self.values)

    def table(self) -> Table:
        """Return one row per position: the value, its interval, and the documents behind it."""
        if self.method == "known":
            rows: list[list[Any]] = [[str(k), p] for k, p in enumerate(self.values.tolist(), 1)]
            return Table(("position", "p"), rows, notes=("given, not estimated",), digits=3)
        columns = ["position", "p", f"{self.confidence:.0%} interval", "comparisons with other positions"]
        shared = self.overlap.sum(axis=1) - np.diag(self.overlap)
        rows = [
            [str(k), p, "" if np.isnan(low) else f"[{low:.3f}, {high:.3f}]", int(n)]
            for k, (p, low, high, n) in enumerate(zip(self.values, self.lower, self.upper, shared, strict=True), 1)
        ]
        if self.method == "trust":
            columns.append("click without attraction")
            rows = [[*row, float(b)] for row, b in zip(rows, self.trust, strict=True)]
        drawn = np.isfinite(self.lower).any()
        notes = [
            f"method {self.method}; {'intervals over resampled queries' if drawn else 'no intervals were asked for'}"
        ]
        notes += [] if self.converged else ["the fit did not converge: more sessions, or a smaller cut"]
        return Table(tuple(columns), rows, notes=notes, digits=3)

    def __str__(self) -> str:
        return self.table().plain()

    def __repr__(self) -> str:
        return f"Propensities({self.values.round(3).tolist()}, method={self.method!r})"

    def _repr_html_(self) -> str:
        return self.table().html()

    def plot(self) -> Any:
        """Return a matplotlib figure (the `plot` extra): the values with their intervals, and 1/k beside them."""
        figure = empty_figure()
        axes = figure.subplots()
        places = np.arange(1, len(self) + 1)
        axes.plot(places, 1 / places, color="0.75", linestyle="--", label="1/k")
        known = np.isfinite(self.lower)
        below, above = np.where(known, self.values - self.lower, 0.0), np.where(known, self.upper - self.values, 0.0)
        spread = np.maximum([below, above], 0.0)
        axes.errorbar(places, self.values, yerr=spread, fmt="o-", capsize=3, label=self.method)
        axes.set(xlabel="position", ylabel="probability of a look, position 1 = 1", ylim=(0, None))
        axes.legend()
        return figure

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write JSON that `Propensities.load` reads back."""
        lists = {name: _plain(getattr(self, name)) for name in ("values", "trust", "lower", "upper", "overlap")}
        text = json.dumps(
            {
                "propensities": 1,
                **lists,
                "method": self.method,
                "confidence": self.confidence,
                "converged": self.converged,
            }
        )
        with replacing(path) as draft:
            draft.write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote."""
        file = str(path)
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{file} cannot be read: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
            raise ParseError(f"not a file of propensities: {error}", file=file) from None
        try:
            if content.pop("propensities") != 1:
                raise KeyError
            values, trust, lower, upper = (
                np.array(content.pop(name), dtype=np.float64) for name in ("values", "trust", "lower", "upper")
            )
            overlap = np.array(content.pop("overlap"), dtype=np.int64)
            check_choice(get_args(Method), method=content["method"])
            return cls(values, trust, lower, upper, overlap, **content)
        except InputError as error:
            raise ParseError(f"not sound: {error}", file=file) from None
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError):
            raise ParseError("not a file of propensities: write one with Propensities.save", file=file) from None


@dataclass(frozen=True, eq=False)
class _Fit:
    """Raw values of the model by position, and where the next fit may start."""

    right: Floats
    wrong: Floats
    attracts: Floats
    """By pair; with "smooth", how likely each spread around a power law is."""
    converged: bool

    @property
    def relative(self) -> Floats:
        gain = self.right - self.wrong
        return np.asarray(gain / gain[0])


def _fit(counts: Counts, depth: int, method: str, weight: Floats, start: _Fit | None, rng: np.random.Generator) -> _Fit:
    """Fit to the log, or, from a start, to one whose queries were drawn again (their `weight`)."""
    from . import _propensity_kernels as kernels

    rows = (counts.ptr, counts.position - 1, counts.shown, counts.clicks, weight)
    if method == "smooth":
        if start is None:
            theta, chance, converged = smooth(rows, depth)
        else:
            theta, chance, converged = drawn(rows, np.log(start.right), start.attracts, rng), start.attracts, True
        return _Fit(np.exp(theta), np.zeros(depth), chance, converged)
    if method == "harvest":
        theta, _, _, converged = maximise(rows, np.zeros(depth) if start is None else np.log(start.right))
        if start is not None and not (converged and np.abs(theta).max() < 30):
            raise InputError("some position is no longer compared with the others: its value runs away")
        return _Fit(np.exp(theta), np.zeros(depth), np.empty(0), converged)
    if start is None:
        places = np.arange(1, depth + 1)
        right, wrong = 0.9 / np.sqrt(places), 0.1 / places
        attracts = np.full(counts.n_pairs, 0.3)
    else:
        right, wrong, attracts = start.right.copy(), start.wrong.copy(), start.attracts.copy()
    if method == "em":
        used = kernels.position_model(*rows, _EM_ROUNDS, _EM_TOLERANCE, right, attracts)
        return _Fit(right, np.zeros(depth), attracts, used >= 0)
    used = kernels.trust_model(*rows, _EM_ROUNDS, _EM_TOLERANCE, right, wrong, attracts)
    if not (right > wrong).all():
        place = int(np.flatnonzero(~(right > wrong))[0]) + 1
        raise InputError(
            f"at position {place} attractive documents are clicked no more often than others: the trust model does "
            f"not fit; use method='smooth', or cut={max(place - 1, 1)}"
        )
    return _Fit(right, wrong, attracts, used >= 0)


def _resampled(
    counts: Counts, depth: int, method: str, fitted: _Fit, resamples: int, rng: np.random.Generator
) -> Floats:
    """Return the values for queries drawn with replacement; a draw that no longer identifies them is drawn again."""
    check_count(resamples=resamples)
    queries, of_pair = np.unique(counts.query, return_inverse=True)
    draws: list[Floats] = []
    for _ in range(20 * resamples):
        weight = np.bincount(rng.integers(0, len(queries), len(queries)), minlength=len(queries)).astype(np.float64)
        try:
            draws.append(_fit(counts, depth, method, weight[of_pair], fitted, rng).relative)
        except (InputError, np.linalg.LinAlgError):
            continue
        if len(draws) == resamples:
            return np.array(draws)
    raise InputError("too few queries show documents at several positions for intervals: pass resamples=0, or more log")


def _pairs_by_place(counts: Counts, depth: int, values: Ints) -> Any:
    from scipy.sparse import csr_array

    return csr_array((values, (counts.pair, counts.position - 1)), shape=(counts.n_pairs, depth))


def _overlap(counts: Counts, depth: int) -> Ints:
    shown = _pairs_by_place(counts, depth, np.ones(len(counts.position), dtype=np.int64))
    return np.asarray((shown.T @ shown).todense(), dtype=np.int64)


def _check_identified(counts: Counts, depth: int, method: str) -> None:
    """Refuse a log in which some position is not compared with position 1 by documents that moved between them."""
    from scipy.sparse.csgraph import connected_components

    places = np.unique(counts.position)
    if len(places) < depth:
        gap = int(np.argmax(places != np.arange(1, len(places) + 1))) + 1
        raise InputError(f"position {gap} was never shown, and later ones were: use cut={gap - 1}, or number them anew")
    clicked = np.add.reduceat(counts.clicks, counts.ptr[:-1]) > 0
    told = clicked[counts.pair]
    shown = _pairs_by_place(counts, depth, told.astype(np.int64))
    hits = _pairs_by_place(counts, depth, (counts.clicks > 0).astype(np.int64))
    moved = (np.diff(counts.ptr) > 1) & clicked
    if not moved.any():
        raise InputError(
            "no clicked document was shown at two positions of its query, so a position cannot be told from the "
            "documents that stood there: log a second ranker, or swap some results at random"
        )
    _, group = connected_components(shown.T @ shown, directed=False)
    apart = np.flatnonzero(group != group[0]) + 1
    if len(apart):
        raise InputError(
            f"position {_list(apart)} cannot be compared with position 1: no clicked document moved between them; "
            f"use cut={int(apart[0]) - 1}, or a longer log"
        )
    if method == "harvest":
        # The estimate is finite where clicks lead from every position to every other (Ford 1957).
        _, group = connected_components(hits.T @ shown, directed=True, connection="strong")
        apart = np.flatnonzero(group != group[0]) + 1
        if len(apart):
            raise InputError(
                f"position {_list(apart)}: no clicks there on documents that were also shown nearer the top (or only "
                f"there): use cut={int(apart[0]) - 1}, or a longer log"
            )


def _list(places: Ints) -> str:
    shown = ", ".join(map(str, places[:6].tolist()))
    return shown + (", …" if len(places) > 6 else "")


def _plain(values: Any) -> Any:
    return [_plain(v) if isinstance(v, list) else (None if v != v else v) for v in np.asarray(values).tolist()]
