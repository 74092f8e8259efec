"""Online gradient descent on the losses of one list after the other."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._typing import AnyArray, Floats, Ints, Matrix
from ..data import linear
from ..data.validation import is_sparse
from ..errors import InputError, NumbersOverflowError
from ..measures import AP, NDCG, Gain, Measure, Norm
from ..measures.order import Ties
from ..measures.plan import discount_table
from ..measures.presets import Short
from ..surrogates import ListNet, Minimax, Slam, Surrogate
from .steps import TRIAL, Loss, Rule, Scaling, Steps, Target, Total

_EMPTY = np.empty(0)
_NO_INDICES = np.empty(0, dtype=np.int32)
_NO_PLACES = np.empty(0, dtype=np.int64)
_FITS = 300.0
"""exp of what is below this, times the length of a list, is far from overflow."""


@dataclass(eq=False)
class OnlineState:
    """What an online learner remembers: three numbers per feature and a few totals, however long the stream.

    The weights are w = η·raw / σ (σ = 1 unless features are scaled); their average over the rounds is
    η·(raw − drift/T) / σ. Rows of `weights` are raw, drift and moment; `totals` are named by `steps.Total`.
    """

    weights: Floats
    totals: Floats
    eta: float
    scaling: Scaling

    @classmethod
    def zeros(cls, n_features: int, steps: Steps, scaling: Scaling) -> OnlineState:
        """w₁ = 0."""
        return cls(np.zeros((3, n_features)), np.zeros(len(Total)), steps.eta, scaling)

    def copy(self) -> OnlineState:
        """Return a copy that can be stepped on while this one stays."""
        return OnlineState(self.weights.copy(), self.totals.copy(), self.eta, self.scaling)

    def at(self, steps: Steps) -> OnlineState:
        """Return a copy whose η is that of `steps`, its weights being the same."""
        copy = self.copy()
        if steps.eta != self.eta:
            copy.weights[:2] *= self.eta / steps.eta
            copy.eta = steps.eta
        return copy

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
        coef: Floats = self.eta * raw
        if self.scaling == Scaling.RUNNING:
            coef *= inverse_scale(self.weights[2], self.totals[Total.DOCS])
        return coef


@dataclass(frozen=True)
class Rounds:
    """What happened, a row per round: measure, surrogate f_t(w_t), mistake (0 or 1), ‖z_t‖²; and Σ_t f_t of a rival."""

    rows: Floats
    rival: Floats
    weights: Floats = field(default_factory=lambda: _EMPTY)
    """What each document weighs in the surrogate of its round, where there was a rival."""


@dataclass(frozen=True)
class OnlineDescent:
    """w_{t+1} = w_t − η_t z_t, z_t ∈ ∂f_t(w_t), f_t the surrogate of round t (online perceptrons, Eq. 17).

    With `always` false, f_t is the surrogate where the measure of the ranking by w_t falls short of its best value,
    and 0 elsewhere (Eq. 15, 28): the perceptrons. Any convex surrogate and any measure will do; SLAM by score, Minimax
    and ListNet with NDCG or AP run as one compiled loop, the others list by list.

    Lists whose grades are all equal (for SLAM with AP: all relevant, or none), or which have nothing that the measure
    could find, are no rounds.

    >>> import toprank as tr
    >>> from toprank.surrogates import PairwiseHinge
    >>> data = tr.datasets.make_graded(n_queries=30, random_state=0)
    >>> learner = OnlineDescent(PairwiseHinge(), tr.measure("ndcg@10"), Steps.parse("adaptive"), always=True)
    >>> state = learner.start(data.n_features)
    >>> rounds = learner.play(state, data.X, data.y, data.ptr)
    >>> bool(rounds.rows[-10:, 0].mean() > rounds.rows[:10, 0].mean())
    True
    """

    surrogate: Surrogate
    measure: Measure
    steps: Steps
    always: bool = False
    scaling: Scaling = Scaling.NONE
    compare: bool = False
    """Whether the averaged weights rank every eighth list too, for `OnlineState.average_ranks_better`."""

    def start(self, n_features: int) -> OnlineState:
        """Return the state before the first round."""
        return OnlineState.zeros(n_features, self.steps, self.scaling)

    @cached_property
    def _judge(self) -> Measure:
        return judge_of_rounds(self.measure)

    @cached_property
    def _compiled(self) -> tuple[Ints, Floats, int] | None:
        """Codes and reals of the compiled loop and the row of the discounts; None where it has no code for the loss."""
        target, loss, margin, row = self.measure, self.surrogate, 1.0, 0
        cut = np.iinfo(np.int64).max
        graded = isinstance(target, NDCG)
        if isinstance(target, AP) and target.k is None and target.norm == Norm.ALL:
            measure_code = Target.AP
        elif isinstance(target, NDCG):
            measure_code, row, cut = Target.NDCG, int(target.discount), cut if target.k is None else target.k
        else:
            return None
        if isinstance(loss, Slam) and loss.target == target and (loss.within == "score" or not graded):
            code, margin = Loss.SLAM, loss.margin
        elif isinstance(loss, Minimax):
            code, margin = Loss.MINIMAX, loss.margin
        elif isinstance(loss, ListNet) and loss == ListNet(truth=loss.truth) and loss.truth != "order":
            code = Loss.LISTNET
        else:
            return None
        binary = code == Loss.SLAM and measure_code == Target.AP
        above = target.above if isinstance(target, AP) else 0.0
        codes = [code, measure_code, cut, self.always, self.steps.rule, self.scaling, binary, self.compare]
        return np.array(codes, dtype=np.int64), np.array([self.steps.eta, margin, above]), row

    def _gains(self, grade: Floats) -> Floats:
        """Return what grades are worth to the measure."""
        target = self.measure
        if isinstance(target, AP):
            return np.asarray(grade > target.above, dtype=np.float64)
        return grade if isinstance(target, NDCG) and target.gain == Gain.LINEAR else np.exp2(grade) - 1

    def _truth(self, grade: Floats) -> Floats:
        """Return what ListNet's target is the softmax of."""
        return np.exp2(grade) - 1 if isinstance(self.surrogate, ListNet) and self.surrogate.truth == "gains" else grade

    def _levels(self, y: Floats, ptr: Ints) -> tuple[AnyArray, Ints, Floats, Floats]:
        """Return the levels of documents, where those of a list begin, and for each level its gain and exp(truth).

        The first two are empty where all lists share their levels: relevant or not, or whole grades. Where exp(truth)
        would not fit into a number, it is divided by that of the list's highest grade, which changes no softmax.
        """
        from . import _list_kernels

        compiled = self._compiled
        top = 1 if compiled is not None and compiled[0][6] else _list_kernels.whole_top(y)
        if 0 <= top < self._shared_tables.shape[1]:
            gain, mass = self._shared_tables[:, : top + 1]
            return _NO_INDICES, _NO_PLACES, gain, mass
        level, first, grade = _list_kernels.number_grades(y, ptr)
        truth = self._truth(grade)
        highest = truth[first[1:][np.diff(first) > 0] - 1].repeat(np.diff(first)[np.diff(first) > 0])
        return level, first, self._gains(grade), np.exp(np.where(highest < _FITS, truth, truth - highest))

    @cached_property
    def _shared_tables(self) -> Floats:
        """Gains and exp(truth) of the levels that all lists may share, as far as exp fits into a number."""
        from ._list_kernels import WHOLE

        levels = np.arange(float(WHOLE))
        levels = levels[self._truth(levels) < _FITS]
        binary = self._compiled is not None and self._compiled[0][6]
        return np.stack([levels if binary else self._gains(levels), np.exp(self._truth(levels))])

    def play(
        self,
        state: OnlineState,
        X: Matrix,
        y: Floats,
        ptr: Ints,
        order: Ints | None = None,
        query_weight: Floats | None = None,
        *,
        rival: Floats | None = None,
        scales: Floats | None = None,
    ) -> Rounds:
        """Play the lists in the given order, stepping on `state` (which must be this learner's).

        With the scores of a `rival` weight vector and `scales`, also add up f_t(c·rival) for every c in scales; then no
        list may come twice.
        """
        if order is None:
            order = np.arange(len(ptr) - 1)
        compiled = self._compiled
        if compiled is None:
            if rival is not None:
                raise InputError(f"a comparator needs a compiled loss, not {self.surrogate}")
            return Rounds(self._play_lists(state, X, y, ptr, order, query_weight), _EMPTY)
        from . import _list_kernels, _online_kernels

        codes, reals, row = compiled
        longest = int(np.diff(ptr).max(initial=1)) if len(ptr) > 2 else max(int(ptr[-1]), 1)
        ptr, parts = _own(ptr), _parts(X)
        y = _own(y)
        level, first, gain, mass = self._levels(y, ptr)
        sizes = _list_kernels.list_sizes(*parts, X.shape[1], ptr) if self.scaling == Scaling.QUERY else _EMPTY
        given = _EMPTY if rival is None else np.zeros(len(y))
        rows = np.empty((len(order), 4))
        played, bad = _online_kernels.epoch(
            *parts, y, level, first, gain, mass, ptr, order, _EMPTY if query_weight is None else query_weight, sizes,
            state.weights, state.totals, codes, reals, discount_table(longest)[row], given, rows,
        )  # fmt: skip
        if bad >= 0:
            raise _overflow(bad)
        if rival is None or scales is None:
            return Rounds(rows[:played], _EMPTY)
        losses = np.zeros(len(scales))
        minimax = codes[0] == Loss.MINIMAX
        if len(first) == 0:
            level = (y > reals[2] if codes[6] else y).astype(np.int32)
        _list_kernels.rival_losses(minimax, reals[1], rival, given, level, ptr, scales, losses)
        return Rounds(rows[:played], losses, given)

    def _play_lists(
        self, state: OnlineState, X: Matrix, y: Floats, ptr: Ints, order: Ints, query_weight: Floats | None
    ) -> Floats:
        """Play round by round in plain numpy, for losses without a compiled loop."""
        rows = []
        whole = np.zeros(2, dtype=np.int64)
        raw, drift, moment = state.weights
        totals = state.totals
        for q in order:
            a, b = ptr[q], ptr[q + 1]
            labels = y[a:b]
            weight = 1.0 if query_weight is None else float(query_weight[q])
            whole[1] = b - a
            if weight == 0 or b - a < 2 or _one_grade(self._compared(labels)):
                continue
            best = float(self._judge.per_query(labels, labels, whole)[0])
            if not best > 0:
                continue
            rows_X = X[a:b]
            size, inverse = 1.0, np.ones(len(raw))
            if self.scaling == Scaling.QUERY:
                size = list_size(rows_X)
                if size == 0:
                    continue
            totals[Total.DOCS] += b - a
            if self.scaling == Scaling.RUNNING:
                moment += within_moment(rows_X)
                if not np.isfinite(moment).all():
                    raise _overflow(int(q))
                inverse = inverse_scale(moment, totals[Total.DOCS])
            scores = linear.scores(rows_X, raw * inverse)
            if not np.isfinite(scores).all():
                raise _overflow(int(q))
            reached = float(self._judge.per_query(scores, labels, whole)[0])
            if self.compare and totals[Total.ROUNDS] % TRIAL == TRIAL - 1:
                averaged = linear.scores(rows_X, (raw - drift / totals[Total.ROUNDS]) * inverse)
                totals[Total.AVERAGE] += float(self._judge.per_query(averaged, labels, whole)[0]) / best
                totals[Total.LAST] += reached / best
            mistake = reached < best - 1e-12
            value, znorm2 = 0.0, 0.0
            if mistake or self.always:
                losses, grad = self.surrogate.per_query(self.steps.eta * size * scores, labels, whole)
                value = weight * float(losses[0])
                z = weight * size * inverse * linear.adjoint(rows_X, grad)
                znorm2 = float(z @ z)
                if not np.isfinite(znorm2):
                    raise _overflow(int(q))
                if znorm2 > 0:
                    change = self._step(totals, znorm2) * z
                    raw -= change
                    drift -= totals[Total.ROUNDS] * change
            row = (reached / best, value, float(mistake), znorm2)
            rows.append(row)
            totals[: Total.DOCS] += (1, float(znorm2 > 0), row[2], row[0], value, znorm2)
        return np.array(rows).reshape(-1, 4)

    def rounds(self, y: Floats, ptr: Ints) -> AnyArray:
        """Return which lists are rounds: those with two grades to the loss, and something for the measure to find."""
        best = self._judge.per_query(y, y, ptr)
        bounds = zip(ptr[:-1].tolist(), ptr[1:].tolist(), strict=True)
        taught = [b - a > 1 and not _one_grade(self._compared(y[a:b])) for a, b in bounds]
        return np.array(taught) & (best > 0)

    def _compared(self, labels: Floats) -> Floats:
        """Grades as the loss compares them: relevant or not for SLAM with AP."""
        if isinstance(self.surrogate, Slam) and isinstance(self.surrogate.target, AP):
            return np.asarray(labels > self.surrogate.target.above, dtype=np.float64)
        return labels

    def _step(self, totals: Floats, znorm2: float) -> float:
        if self.steps.rule == Rule.SQRT:
            return 1.0 / float(np.sqrt(totals[Total.ROUNDS] + 1))
        if self.steps.rule == Rule.ADAPTIVE:
            return 1.0 / float(np.sqrt(totals[Total.ZNORM2] + znorm2))
        return 1.0


def inverse_scale(moment: Floats, docs: float) -> Floats:
    """1/σ_j, σ_j² = Σ over lists of Σ_i (x_ij − list mean)² / documents; 0 where a feature never varied in a list."""
    inverse = np.zeros_like(moment)
    np.divide(docs, moment, out=inverse, where=moment > 0)
    result: Floats = np.sqrt(inverse, out=inverse)
    return result


def within_moment(X: Matrix) -> Floats:
    """Σ_i (x_ij − x̄_j)² of one list."""
    rows = _rows(X)
    moment: Floats = ((rows - rows.mean(axis=0)) ** 2).sum(axis=0)
    return moment


def list_size(X: Matrix) -> float:
    """1 / max_i ‖x_i − x̄‖ of one list, 0 where all its documents are equal."""
    rows = _rows(X)
    radius = float(np.sqrt(((rows - rows.mean(axis=0)) ** 2).sum(axis=1).max()))
    return 1 / radius if radius > 0 else 0.0


def _rows(X: Matrix) -> Floats:
    rows: Floats = np.asarray(X.toarray() if is_sparse(X) else X, dtype=np.float64)
    return rows


def _one_grade(labels: Floats) -> bool:
    return bool((labels == labels[0]).all())


def judge_of_rounds(measure: Measure) -> Measure:
    """Return the measure as rounds are judged by: ties in input order, a list shorter than k like any other.

    What a convention says of these is for evaluation; LETOR 4 gives a short list 0 whatever its order, but it teaches.

    >>> from toprank.measures import measure
    >>> labels = np.array([0.0, 1.0])
    >>> letor4 = measure("ndcg@10", convention="letor4")
    >>> [judge.per_query(labels, labels, [0, 2]).tolist() for judge in (letor4, judge_of_rounds(letor4))]
    [[0.0], [1.0]]
    """
    if isinstance(measure, NDCG):
        return replace(measure, ties=Ties.INPUT, short=Short.SHORTEN)
    return replace(measure, ties=Ties.INPUT) if isinstance(measure, AP) else measure


def _parts(X: Matrix) -> tuple[Any, Any, Any]:
    """X as the compiled loops take it: values, indices, indptr, the last two empty where X is dense."""
    return (X.data, X.indices, X.indptr) if is_sparse(X) else (X.reshape(-1), _NO_INDICES, _NO_INDICES)


def _own(array: AnyArray) -> AnyArray:
    """Copy an array that must not be written: to the compiler it is another type, and compiling costs seconds."""
    return array if array.flags.writeable else array.copy()


def _overflow(query: int) -> InputError:
    return NumbersOverflowError(f"numbers overflow at query {query}: scale the features down or lower eta")
