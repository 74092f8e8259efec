"""The stream: lists one after the other, each scored and judged, its loss computed, and a step; any loss and judge."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import isfinite
from typing import Any

import numpy as np

from .._typing import AnyArray, Floats, Ints, Matrix
from ..data.csr import dense
from ..data.mapped import read_in_any_order
from ..data.validation import LARGEST_GRADE
from ..errors import InputError, NumbersOverflowError
from ..measures import AP, NDCG, Measure, Norm
from ..measures.dcg import discounts
from ..measures.order import Ties
from ..measures.presets import Short
from ..surrogates import ListNet, Minimax, Slam, Surrogate
from ..surrogates.base import CompiledSurrogate, gain_too_large
from .steps import TIE_TOLERANCE, Scaling, Steps, Total

_EMPTY = np.empty(0)
_IN_ORDER = np.empty(0, dtype=np.int64)


@dataclass(eq=False)
class State:
    """What a stream remembers: three numbers per feature and a few totals, however long it is.

    The weights are w = unit·raw / σ (σ = 1 unless features are scaled); their average over the rounds is
    unit·(raw − drift/T) / σ. Rows of `weights` are raw, drift and moment; `totals` are named by `steps.Total`.
    """

    weights: Floats
    totals: Floats
    unit: float
    scaling: Scaling = Scaling.NONE

    def copy(self) -> State:
        """Return a copy that can be stepped on while this one stays."""
        return State(self.weights.copy(), self.totals.copy(), self.unit, self.scaling)

    def at(self, unit: float) -> State:
        """Return a copy in another unit, its weights being the same."""
        copy = self.copy()
        if unit != self.unit:
            copy.weights[:2] *= self.unit / unit
            copy.unit = unit
        return copy

    def is_sound(self, n_features: int) -> bool:
        """Say whether a stream of so many features can have led here: a file may hold anything."""
        weights, totals = self.weights, self.totals
        sound = weights.shape == (3, n_features) and totals.shape == (len(Total),)
        sound &= weights.dtype == totals.dtype == np.float64 and isinstance(self.unit, (int, float))
        return sound and bool(np.isfinite(weights).all() and np.isfinite(totals).all() and 0 < self.unit < np.inf)

    @property
    def last(self) -> Floats:
        """w after the last round, for features as they come."""
        return self._coef(self.weights[0])

    @property
    def average(self) -> Floats:
        """Mean of w over the rounds, each taken after its step."""
        rounds = self.totals[Total.ROUNDS]
        return self._coef(self.weights[0] - self.weights[1] / rounds if rounds else self.weights[0])

    @property
    def average_ranks_better(self) -> bool:
        """Whether the averaged weights ranked no worse than the last ones in the rounds that tried both."""
        return bool(self.totals[Total.AVERAGE] >= self.totals[Total.LAST])

    def _coef(self, raw: Floats) -> Floats:
        coef: Floats = self.unit * raw
        if self.scaling == Scaling.RUNNING:
            coef *= inverse_scale(self.weights[2], self.totals[Total.DOCS])
        return coef


@dataclass(frozen=True)
class OnlineDescent:
    """w_{t+1} = w_t − η_t z_t, z_t ∈ ∂f_t(w_t), f_t the surrogate of round t (online perceptrons, Eq. 17).

    With `always` false, f_t is the surrogate where the measure of the ranking by w_t falls short of its best value,
    and 0 elsewhere (Eq. 15, 28): the perceptrons. NDCG and AP judge compiled rounds of SLAM (Algorithm 2), of the
    largest hinge (Algorithm 3) and of ListNet: `_online_kernels`. With any other convex loss or any other measure, also
    one in plain Python, the same rounds are a Python loop.

    Lists whose grades are all equal (for SLAM with AP: all relevant, or none), or which have nothing that the measure
    could find, are no rounds.

    >>> import toprank as tr
    >>> from toprank.surrogates import PairwiseHinge
    >>> data = tr.datasets.make_graded(n_queries=30, random_state=0)
    >>> learner = OnlineDescent(PairwiseHinge(), tr.measure("ndcg@10"), Steps.parse("adaptive"), always=True)
    >>> state = learner.start(data.n_features)
    >>> rounds = learner.play(state, data.X, data.y, data.ptr)
    >>> bool(rounds[-10:, 0].mean() > rounds[:10, 0].mean())
    True
    """

    surrogate: Surrogate
    measure: Measure
    steps: Steps
    always: bool = False
    scaling: Scaling = Scaling.NONE
    compare: bool = False
    """Whether the averaged weights rank every eighth list too, for `State.average_ranks_better`."""

    def start(self, n_features: int) -> State:
        """Return the state before the first round: w₁ = 0."""
        return State(np.zeros((3, n_features)), np.zeros(len(Total)), self.unit, self.scaling)

    @property
    def unit(self) -> float:
        """η, in which weights are kept, so that no order depends on how η rounds."""
        return self.steps.eta

    @cached_property
    def _judge(self) -> Measure:
        return judge_of_rounds(self.measure)

    @cached_property
    def _above(self) -> float | None:
        """The grade above which a document is relevant, if the loss reads grades as relevant or not; else None."""
        loss = self.surrogate
        if isinstance(loss, Slam):
            return loss.target.above if isinstance(loss.target, AP) else None
        return loss.above if isinstance(loss, Minimax) else None

    @cached_property
    def _kernel(self) -> str | None:
        """The name of the kernel in `_online_kernels` that plays the rounds; None if Python does."""
        judge, loss = self._judge, self.surrogate
        if isinstance(judge, AP):
            judged = judge.k is None and judge.norm == Norm.ALL and self._above in (None, judge.above)
        else:
            judged = isinstance(judge, NDCG) and self._above is None
        if not judged:
            return None
        if isinstance(loss, Slam):
            return "slam_perceptron"
        if isinstance(loss, Minimax):
            return "minimax_perceptron"
        return "online_listnet" if isinstance(loss, ListNet) and loss.k == 1 and loss.convex and self.always else None

    @cached_property
    def _settings(self) -> Any:
        """What the kernels know of the learner besides its loss and its judge."""
        judge, steps = self._judge, self.steps
        above = judge.above if isinstance(judge, AP) else 0.0
        running, binary = self.scaling == Scaling.RUNNING, self._above is not None
        return _kernels().Learner(
            self.unit, int(steps.rule), steps.radius / self.unit, self.always, running, self.compare, above, binary
        )

    @cached_property
    def _rules_by_places(self) -> dict[int, tuple[Any, Any]]:
        return {}

    def rules(self, longest: int) -> tuple[Any, Any]:
        """Return judge and loss as the kernels take them, for lists of up to so many documents; they are kept."""
        judge, loss = self._judge, self.surrogate
        places = judge.k if isinstance(judge, NDCG) and judge.k is not None else 1 << longest.bit_length()
        if places not in self._rules_by_places:
            self._rules_by_places[places] = _judge_rule(judge, places), _loss_rule(loss, self.unit, places)
        return self._rules_by_places[places]

    def play(
        self,
        state: State,
        X: Matrix,
        y: Floats,
        ptr: Ints,
        order: Ints | None = None,
        query_weight: Floats | None = None,
        *,
        seen: Floats = _EMPTY,
    ) -> Floats:
        """Play the lists in the given order, stepping on `state` (which must be this learner's).

        List q holds the rows ptr[q]:ptr[q + 1] of X. Returns what happened, a row per round: measure, surrogate
        f_t(w_t), mistake (0 or 1), ‖z_t‖². `seen`, where given, has a place for each document and gets the scores that
        the losses saw.
        """
        with read_in_any_order(X, _IN_ORDER if order is None else order):
            return self.play_lists(state, self.lists(X, y, ptr, query_weight), order, seen)

    def lists(self, X: Matrix, y: Floats, ptr: Ints, query_weight: Floats | None = None) -> Any:
        """Return lists as the kernels take them (`_round_kernels.Lists`)."""
        ones, y, ptr = np.ones(len(ptr) - 1), owned(np.asarray(y, dtype=np.float64)), owned(ptr)
        weight = ones if query_weight is None else owned(query_weight)
        size = list_sizes(X, ptr) if self.scaling == Scaling.QUERY else ones
        return _kernels().Lists(_rows_of()(X), y, ptr, weight, size)

    def play_lists(self, state: State, lists: Any, order: Ints | None = None, seen: Floats = _EMPTY) -> Floats:
        """Play what `lists` has made, as `play` does."""
        kernels = _kernels()
        order = np.arange(len(lists.ptr) - 1) if order is None else order
        weights, record = kernels.Weights(*state.weights, state.totals), kernels.Record(np.empty((len(order), 4)), seen)
        if self._kernel is None:
            played = self._play_in_python(lists, order, weights, record)
            return np.asarray(record.rounds[:played])
        judge_rule, loss_rule = self.rules(longest_list(lists.ptr))
        algorithm = _algorithm(self._kernel)
        played, passed = algorithm(lists, order, judge_rule, loss_rule, self._settings, weights, record)
        if passed < len(order):
            raise self._error_at(int(order[passed]), lists.y, lists.ptr)
        return np.asarray(record.rounds[:played])

    def _play_in_python(self, lists: Any, order: Ints, state: Any, record: Any) -> int:
        """Play the rounds as `_online_kernels` does, for any loss and any measure; return how many there were."""
        kernels, learner, played = _kernels(), self._settings, 0
        work = kernels.work_of(state)
        best = self._judge.per_query(lists.y, lists.y, lists.ptr)
        counted = self.rounds(lists.y, lists.ptr) & (lists.weight * lists.size > 0)
        for q in order[counted[order]].tolist():
            first, last = int(lists.ptr[q]), int(lists.ptr[q + 1])
            R, s = lists.y[first:last], np.empty(last - first)
            if not kernels.score_round(lists, q, learner, state, work, s):
                raise self._error_at(q, lists.y, lists.ptr)
            measure, loss, znorm2 = self._share(s, R, best[q]), 0.0, 0.0
            if kernels.is_compared(learner, state):
                average = kernels.average_scores(lists, q, state, work, s)
                state.totals[Total.LAST] += measure
                state.totals[Total.AVERAGE] += self._share(average, R, best[q])
            if measure < 1.0 or self.always:
                s *= self.unit
                loss, g = self._loss_of_list(s, R, q, first)
                znorm2 = kernels.take_step(lists, q, g, learner, state, work)
                if len(record.seen) > 0:
                    record.seen[first:last] = s
            if not isfinite(loss + znorm2):
                raise self._error_at(q, lists.y, lists.ptr)
            kernels.write_down(played, measure, float(lists.weight[q]) * loss, znorm2, state, record)
            played += 1
        return played

    def _share(self, s: Floats, R: Floats, best: float) -> float:
        """The measure of a list ranked by s as a share of its best value; 1 within the rounding of expectations."""
        share = float(self._judge.per_query(s, R, np.array([0, len(s)]))[0]) / float(best)
        return 1.0 if share >= 1.0 - TIE_TOLERANCE else share

    def _loss_of_list(self, s: Floats, R: Floats, query: int, row: int) -> tuple[float, Floats]:
        """The loss of a list and its subgradient in the scores."""
        loss = self.surrogate
        try:
            values, g = loss.per_query(s, R, np.array([0, len(s)]))
        except InputError:
            if isinstance(loss, CompiledSurrogate):
                raise loss.refusal(s, R, query, row) from None  # names the row of X, not that of the list
            raise
        return float(values[0]), np.ascontiguousarray(g, dtype=np.float64)

    def _error_at(self, query: int, y: Floats, ptr: Ints) -> InputError:
        """Return why a stream cannot go on at a list: gains that do not add up, or numbers that overflow."""
        first, last = int(ptr[query]), int(ptr[query + 1])
        if y[first:last].max() > LARGEST_GRADE:
            return gain_too_large(y[first:last], first)
        return NumbersOverflowError(f"numbers overflow at query {query}: scale the features down or lower eta")

    def rounds(self, y: Floats, ptr: Ints) -> AnyArray:
        """Return which lists are rounds: those with two grades to the loss, and something for the measure to find."""
        labels, filled = self.compared(y), np.diff(ptr) > 0
        differ = np.zeros(len(ptr) - 1, dtype=bool)
        starts = ptr[:-1][filled]
        if len(starts):
            differ[filled] = np.maximum.reduceat(labels, starts) > np.minimum.reduceat(labels, starts)
        return differ & (self._judge.per_query(y, y, ptr) > 0)

    def compared(self, labels: Floats) -> Floats:
        """Grades as the loss compares them: relevant or not where it reads them so."""
        return labels if self._above is None else np.asarray(labels > self._above, dtype=np.float64)


@cache
def _kernels() -> Any:
    """Return what rounds share, compiled: an import statement in each call takes a microsecond."""
    from . import _round_kernels

    return _round_kernels


@cache
def _rows_of() -> Any:
    """Return the function that makes rows of X as kernels take them."""
    from ..core.rows import rows_of

    return rows_of


@cache
def _algorithm(name: str) -> Any:
    """Return a compiled learner by its name."""
    from . import _online_kernels

    return getattr(_online_kernels, name)


def _judge_rule(judge: Measure, places: int) -> Any:
    """Return NDCG or AP as kernels judge by it, the discounts for so many places."""
    from ..measures._list_kernels import APRule, NDCGRule

    if isinstance(judge, NDCG):
        return NDCGRule(judge.k or 0, int(judge.gain), discounts(places, judge.discount))
    return APRule(float(judge.above)) if isinstance(judge, AP) else None


def _loss_rule(loss: Surrogate, unit: float, places: int) -> Any:
    """Return a loss as kernels take it; the margin of a margin loss in units of η: φ(η s; Δ) = η φ(s; Δ/η)."""
    if isinstance(loss, Slam):
        return loss.rule(places)._replace(margin=loss.margin / unit)
    if isinstance(loss, Minimax):
        return loss.rule._replace(margin=loss.margin / unit)
    return loss.rule if isinstance(loss, ListNet) else None


def longest_list(ptr: Ints) -> int:
    """Return the number of documents of the longest list, at least 1."""
    return int(np.diff(ptr).max(initial=1)) if len(ptr) != 2 else max(int(ptr[1]) - int(ptr[0]), 1)


def list_sizes(X: Matrix, ptr: Ints) -> Floats:
    """1 / max_i ‖x_i − x̄‖ of each list, 0 where all its documents are equal."""
    from . import _list_kernels

    sizes: Floats = _list_kernels.list_sizes(_rows_of()(X), ptr, X.shape[1])
    return sizes


def inverse_scale(moment: Floats, docs: float) -> Floats:
    """1/σ_j, σ_j² = Σ over lists of Σ_i (x_ij − list mean)² / documents; 0 where a feature never varied in a list."""
    inverse = np.zeros_like(moment)
    np.divide(docs, moment, out=inverse, where=moment > 0)
    result: Floats = np.sqrt(inverse, out=inverse)
    return result


def within_moment(X: Matrix) -> Floats:
    """Σ_i (x_ij − x̄_j)² of one list."""
    rows: Floats = np.asarray(dense(X), dtype=np.float64)
    moment: Floats = ((rows - rows.mean(axis=0)) ** 2).sum(axis=0)
    return moment


def judge_of_rounds(measure: Measure) -> Measure:
    """Return the measure as rounds are judged by: tied documents by expectation, short lists like any other.

    What a convention says of these is for evaluation; LETOR 4 gives a short list 0 whatever its order.

    >>> from toprank.measures import measure
    >>> labels = np.array([0.0, 1.0])
    >>> letor4 = measure("ndcg@10", convention="letor4")
    >>> [judge.per_query(labels, labels, [0, 2]).tolist() for judge in (letor4, judge_of_rounds(letor4))]
    [[0.0], [1.0]]
    """
    if isinstance(measure, NDCG):
        return replace(measure, ties=Ties.AVERAGE, short=Short.SHORTEN)
    return replace(measure, ties=Ties.AVERAGE) if isinstance(measure, AP) else measure


def owned(array: AnyArray) -> AnyArray:
    """Copy an array that is read-only or not contiguous: the compiler would need seconds to compile for such a type."""
    return array if array.flags.writeable and array.flags.c_contiguous else array.copy()
