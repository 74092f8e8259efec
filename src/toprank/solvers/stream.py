"""The stream: lists one after the other, each scored and judged, its loss computed, and a step; any loss and judge."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from typing import Any, Literal

import numpy as np

from .._typing import AnyArray, Floats, Ints, Matrix
from ..data import linear
from ..data.csr import dense
from ..data.mapped import read_in_any_order
from ..errors import InputError, NumbersOverflowError
from ..measures import AP, NDCG, Gain, Measure, Norm
from ..measures.function import MeasureFunction
from ..measures.order import Ties
from ..measures.plan import discount_table
from ..measures.presets import Short
from ..surrogates import ListNet, Minimax, Slam, Surrogate
from ..surrogates.base import CompiledSurrogate
from ..surrogates.precision_at_k import PrecisionSurrogate
from .steps import Scaling, Steps, Target, Total

_EMPTY = np.empty(0)
_NO_ROWS = np.empty(0, dtype=np.int64)
CALLED = None, None, None
"""The loss is called by its address."""
NO_JUDGE: Any = (0, None, None)


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
    and 0 elsewhere (Eq. 15, 28): the perceptrons. Any convex surrogate and any measure will do, also one in plain
    Python: a compiled loop calls both by their addresses. Without a measure every round steps: the learners of
    precision at k, whose surrogates count the mistakes themselves.

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
    measure: Measure | None
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
        """What weights are kept in: η where a measure judges, so that no order depends on how η rounds; else 1."""
        return 1.0 if self.measure is None else self.steps.eta

    @cached_property
    def _judge(self) -> Measure | None:
        return None if self.measure is None else judge_of_rounds(self.measure)

    @cached_property
    def _above(self) -> float | None:
        """The grade above which a document is relevant, if the loss reads grades as relevant or not; else None."""
        loss = self.surrogate
        if isinstance(loss, Slam):
            return loss.target.above if isinstance(loss.target, AP) else None
        return loss.above if isinstance(loss, (Minimax, PrecisionSurrogate)) else None

    @cached_property
    def _ranked(self) -> Target | None:
        """The measure by which the compiled loop ranks lists itself; None if it calls a measure."""
        judge = self._judge
        if isinstance(judge, AP) and judge.k is None and judge.norm == Norm.ALL and self._above in (None, judge.above):
            return Target.AP
        return Target.NDCG if isinstance(judge, NDCG) and self._above is None else None

    @cached_property
    def _linked(self) -> tuple[Literal[True] | None, ...]:
        """How the compiled loop gets the loss: from the judge's order (SLAM), as Minimax, as ListNet, or by a call."""
        loss, target = self.surrogate, self.measure
        if isinstance(loss, Slam) and loss.target == target and (loss.within == "score" or isinstance(target, AP)):
            return True, None, None
        if isinstance(loss, Minimax):
            return None, True, None
        usual = isinstance(loss, ListNet) and loss.convex and loss.k == 1 and loss.truth != "order"
        return (None, None, True) if usual else CALLED

    @cached_property
    def functions(self) -> tuple[MeasureFunction | None, ListFunction]:
        """Judge and loss as compiled code calls them."""
        return None if self._judge is None else self._judge.list_function, list_function_of(self.surrogate)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to this process: addresses."""
        return {part.name: getattr(self, part.name) for part in fields(self)}

    @cached_property
    def _settings(self) -> tuple[Ints, Floats, Floats, int]:
        """Codes, numbers, gains of whole grades and the row of discounts, as the compiled rounds take them."""
        binary, judge, above = self._above is not None, self._judge, self._above
        if above is None:
            above = judge.above if isinstance(judge, AP) else 0.0 if isinstance(judge, NDCG) else -np.inf
        k = judge.k if isinstance(judge, NDCG) and judge.k is not None else np.iinfo(np.int64).max
        target = -1 if self._ranked is None else self._ranked
        codes = [self.steps.rule, self.always or judge is None, self.compare, binary, target, k]
        grades = np.arange(32.0)
        gain = np.exp2(grades) - 1 if isinstance(judge, NDCG) and judge.gain != Gain.LINEAR else grades
        row = int(judge.discount) if isinstance(judge, NDCG) else 0
        margin = self.surrogate.margin if isinstance(self.surrogate, Slam) else 0.0
        numbers = [self.unit, self.steps.eta / self.unit, self.steps.radius / self.unit, above, margin]
        return np.array(codes, dtype=np.int64), np.array(numbers), gain, row

    def play(
        self,
        state: State,
        X: Matrix,
        y: Floats,
        ptr: Ints,
        order: Ints | None = None,
        query_weight: Floats | None = None,
        *,
        rows: Ints = _NO_ROWS,
        seen: Floats = _EMPTY,
    ) -> Floats:
        """Play the lists in the given order, stepping on `state` (which must be this learner's).

        List q holds rows ptr[q]:ptr[q + 1], of X or of the permutation `rows` where one is given. Returns what
        happened, a row per round: measure, surrogate f_t(w_t), mistake (0 or 1), ‖z_t‖²; without a measure, the number
        of relevant documents stands in its place. `seen`, where given, has a place for each document and gets the
        scores that the losses saw.
        """
        kernels = _kernels()
        order = np.arange(len(ptr) - 1) if order is None else order
        y, ptr, parts = owned(np.asarray(y, dtype=np.float64)), owned(ptr), linear.parts(X)
        judge, loss = self.functions
        weight = _EMPTY if query_weight is None else query_weight
        sizes = list_sizes(X, ptr) if self.scaling == Scaling.QUERY else _EMPTY
        rounds = np.empty((len(order), 4))
        codes, numbers, gain, row = self._settings
        best, discount, judge_inputs = _EMPTY, _EMPTY, NO_JUDGE
        if judge is not None:
            judge_inputs = (judge.address, judge.codes, judge.numbers)
            longest = int(np.diff(ptr).max(initial=1)) if len(ptr) > 2 else max(int(ptr[-1]), 1)
            discount = discount_table(longest)[row]
        if self._judge is not None and not isinstance(self._judge, (AP, NDCG)):
            best = self._judge.per_query(y, y, ptr)
        linked, played, lists = self._linked, 0, order
        loss_at = loss.address if linked == CALLED or (linked[0] and loss.is_compiled) else 0 if linked[0] else None
        ball, running = self.steps.radius < np.inf or None, self.scaling == Scaling.RUNNING or None
        with read_in_any_order(X, rows if len(rows) else order):
            while True:
                count, stopped, why = kernels.epoch(
                    *parts, rows, y, ptr, lists, best, weight, sizes, state.weights, state.totals, codes, numbers, gain,
                    discount, *judge_inputs, *linked, ball, running, len(parts[2]) + len(rows) > 0 or None, loss_at,
                    loss.codes, loss.numbers, seen, rounds[played:],
                )  # fmt: skip
                played += count
                if why != kernels.NO_LOSS:
                    break
                loss_at, lists = loss.address, lists[stopped:]  # the loss is compiled only if a list needs it
        if stopped >= 0:
            if judge is not None:
                judge.check()
            loss.check()
            query = int(lists[stopped])
            raise self._refusal(y, ptr, query) if why == kernels.REFUSED else self._overflow(query)
        return rounds[:played]

    def _overflow(self, at: int) -> InputError:
        what = "batch" if self.measure is None else "query"
        return NumbersOverflowError(f"numbers overflow at {what} {at}: scale the features down or lower eta")

    def _refusal(self, y: Floats, ptr: Ints, query: int) -> InputError:
        a, b = int(ptr[query]), int(ptr[query + 1])
        if isinstance(self.surrogate, CompiledSurrogate):
            return self.surrogate.refusal(np.zeros(b - a), y[a:b], query, a)
        return InputError(f"{self.surrogate} does not take query {query}")

    def rounds(self, y: Floats, ptr: Ints) -> AnyArray:
        """Return which lists are rounds: those with two grades to the loss, and something for the measure to find."""
        found = np.ones(len(ptr) - 1) if self._judge is None else self._judge.per_query(y, y, ptr)
        labels, filled = self.compared(y), np.diff(ptr) > 0
        differ = np.zeros(len(ptr) - 1, dtype=bool)
        starts = ptr[:-1][filled]
        if len(starts):
            differ[filled] = np.maximum.reduceat(labels, starts) > np.minimum.reduceat(labels, starts)
        return differ & (found > 0)

    def compared(self, labels: Floats) -> Floats:
        """Grades as the loss compares them: relevant or not where it reads them so."""
        return labels if self._above is None else np.asarray(labels > self._above, dtype=np.float64)


@cache
def _kernels() -> Any:
    """Return the compiled part: an import statement in each call takes a microsecond."""
    from . import _stream_kernels

    return _stream_kernels


def list_sizes(X: Matrix, ptr: Ints) -> Floats:
    """1 / max_i ‖x_i − x̄‖ of each list, 0 where all its documents are equal."""
    from . import _list_kernels

    sizes: Floats = _list_kernels.list_sizes(*linear.parts(X), X.shape[1], ptr)
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
