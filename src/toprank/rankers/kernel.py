"""A perceptron for rankings that are not linear in the features, on a budget of stored documents."""

from __future__ import annotations

import warnings
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar, Literal

import numpy as np

from .._progress import track
from .._typing import Floats, Ints
from ..certificates.base import Assumption, Certificate
from ..data.csr import dense
from ..data.dataset import QueryDataset
from ..data.mapped import read_in_any_order
from ..data.validation import check_informative
from ..errors import InputError, NumbersOverflowError
from ..measures import AP, NDCG, Norm
from ..measures import measure as parse_measure
from ..measures.base import Measure
from ..model.functions import KernelFunction
from ..solvers.deadline import out_of_time
from ..solvers.steps import COMPARE_EVERY, TIE_TOLERANCE, Steps, Total
from ..solvers.stream import OnlineDescent, judge_of_rounds
from ..surrogates import Minimax, Slam
from .base import parameters
from .checking import check_parameters
from .kernel_store import Settings, Store, squared_norm
from .stream import Average, StreamRanker, by_theory, check_same_measure, choose_average, read_passes, steps_of
from .trace import Trace
from .watching import BestOnValidation


@dataclass(frozen=True)
class Round:
    """What happened in a round of a kernel perceptron."""

    measure: float
    """The measure of the ranking, divided by its best value."""
    loss: float
    mistake: bool
    znorm2: float
    """‖z_t‖²."""
    scores: Floats
    """f_t(X_t)."""


@dataclass(frozen=True)
class KernelPerceptron:
    """Algorithm 2 of online perceptrons with a kernel; with `Minimax` as its loss Algorithm 3."""

    loss: Slam | Minimax
    measure: Measure
    steps: Steps
    compare: bool = False
    """Whether the averaged f ranks every eighth list too."""

    def is_round(self, y: Floats, weight: float) -> bool:
        """Say whether a list teaches: it has two grades and something that the measure can find."""
        grades = compared_grades(self.measure, y)
        if weight == 0 or len(y) < 2 or (grades == grades[0]).all():
            return False
        return self._judged(y, y) > 0

    def play_round(self, store: Store, X: Floats, y: Floats, weight: float) -> Round:
        """Algorithm 2 of online perceptrons, round t, with a kernel k: f_t ∈ span{k(x, ·)} in place of w_t.

        1. Receive X_t, predict by the scores s = f_t(X_t), receive the grades R_t.
        2. If the measure of that ranking is below its best: z_t = Σ_i g_i k(x_i, ·), g ∈ ∂φ_v(s, R_t), and
           f_{t+1} = f_t − η z_t, where the budget may drop what older rounds added. Else f_{t+1} = f_t.

        ‖z_t‖² = gᵀKg. The scores, ‖z_t‖² and all that they lead to must be finite: `OverflowError`.
        """
        best, totals = self._judged(y, y), store.totals
        s = _scores(store.model(), X)
        reached = self._judged(s, y) / best
        if self.compare and totals[Total.ROUNDS] % COMPARE_EVERY == COMPARE_EVERY - 1:
            totals[Total.AVERAGE] += self._judged(_scores(store.model(average=True), X), y) / best
            totals[Total.LAST] += reached
        loss, znorm2 = 0.0, 0.0
        mistake = falls_short(self._judge, s, compared_grades(self.measure, y), reached)
        if mistake:
            losses, g = self.loss.per_query(s, y, np.array([0, len(y)]))
            loss, g = weight * float(losses[0]), weight * g
            moved = np.flatnonzero(g)
            znorm2 = squared_norm(store.settings.function(X[moved], g[moved]))
            if not np.isfinite(znorm2):
                raise OverflowError
            eta = self.steps.size(totals[Total.ROUNDS] + 1, totals[Total.ZNORM2] + znorm2)
            store.add(X, -eta * g, eta * eta * znorm2)
        for total, value in (
            (Total.ROUNDS, 1), (Total.STEPS, mistake), (Total.MISTAKES, mistake), (Total.MEASURE, reached),
            (Total.SURROGATE, loss), (Total.ZNORM2, znorm2), (Total.DOCS, len(y)),
        ):  # fmt: skip
            totals[total] += value
        store.end_round()
        return Round(reached, loss, mistake, znorm2, s)

    @cached_property
    def _judge(self) -> Measure:
        return judge_of_rounds(self.measure)

    def _judged(self, scores: Floats, y: Floats) -> float:
        return float(self._judge.per_query(scores, y, np.array([0, len(y)]))[0])


def _scores(f: KernelFunction, X: Floats) -> Floats:
    scores = np.empty(len(X))
    f.score_rows(X, scores)
    if not np.isfinite(scores).all():
        raise OverflowError
    return scores


@parameters
class KernelSlamPerceptron(StreamRanker):
    """The SLAM perceptron with a kernel: rankings that are not linear, from a bounded store of documents.

    If the ranking falls short: f ← f − η Σ_i g_i k(x_i, ·), g ∈ ∂ φ_v(f(X_t), R_t): Algorithm 2 with a kernel
    (`rankers.kernel.KernelPerceptron.play_round`).

    Only mistake rounds are stored, and of them only documents with g_i ≠ 0. A document that comes again is stored once,
    its coefficients add up; a list that comes again is one round. At most `budget` documents are held, and as many
    coefficients of rounds; when a new round needs room, `drop` says which other round leaves, with its whole update:
    "oldest", "random" (the randomised budget perceptron of Cavallanti, Cesa-Bianchi and Gentile, 2007), "smallest" (the
    shortest update) or "forgetron" (Dekel, Shalev-Shwartz and Singer, 2008: all coefficients shrink, then the oldest
    leaves). A round that changes more documents than the budget holds is not stored, with a warning. All the memory is
    taken at the start and never passed: `memory_` states its bytes.

    `eta` is a step size, a schedule ("sqrt:0.1", "adaptive:0.1") or "theory", the η = 1/A of margin bounds (`eta_`).
    `average` predicts with the mean of f over the rounds, of what is still stored; "auto" takes it where it ranks
    better, on the validation set or in every eighth round. `loss="minimax"` corrects the pair most out of order
    (Algorithm 3) instead of the SLAM surrogate's documents.

    `kernel` is "rbf" exp(−γ‖x − s‖²), "polynomial" (γ x·s + coef0)^degree or "linear" x·s; `gamma` is 1/n_features
    where None. Scale features beforehand. Explicit feature maps (`sklearn.kernel_approximation`) in front of
    `SlamPerceptron` are the cheaper alternative: they cost the same in every round.

    With a validation set, `fit_queries` keeps the documents of the epoch with the best `measure` on it (in a second
    store while it learns) and stops after `patience` epochs without a better one. Every round starts from what the one
    before left, so an executor has nothing to do here and changes nothing.

    While nothing has been dropped this is Algorithm 2 in the space of the kernel, and its bounds hold there, with
    ‖z_t‖² = gᵀKg and R_X² = max k(x, x): `toprank.certify`. Its `comparator` is a fitted ranker with the same kernel, a
    pair (documents, coefficients) or, for the linear kernel, a weight vector. Once rounds have been dropped, what the
    drops cost is added to Eq. 17, and the theorems that know nothing of drops say that they do not apply.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=40, n_features=5, random_state=0)
    >>> ranker = tr.KernelSlamPerceptron(budget=100, epochs=2, random_state=0).fit_queries(data)
    >>> ranker.n_stored_, ranker.memory_
    (96, 10400)
    >>> [certificate.reference for certificate in ranker.certify(data) if certificate.assumptions_hold]
    ['Lemma 5', 'Eq. 17 on a budget']
    >>> roomy = tr.KernelSlamPerceptron(budget=2000, epochs=2, random_state=0).fit_queries(data)
    >>> print(roomy.n_dropped_, roomy.certify(data)[1].verdict)
    0 holds
    """

    needs_all_rows = True

    state_attributes: ClassVar[tuple[str, ...]] = ("state_",)

    kernel: Literal["rbf", "polynomial", "linear"] = "rbf"
    gamma: float | None = None
    degree: int = 3
    coef0: float = 1.0
    budget: int = 1000
    drop: Literal["oldest", "forgetron", "random", "smallest"] = "oldest"
    loss: Literal["slam", "minimax"] = "slam"
    eta: float | str = 0.1
    average: Average = False
    margin: float = 1.0
    epochs: int = 5
    shuffle: bool = True
    patience: int | None = None
    random_state: int | None = 0
    verbose: bool = False
    function_: KernelFunction = field(init=False)
    trace_: Trace = field(init=False)
    averaged_: bool = field(init=False)
    n_epochs_: int = field(init=False)
    eta_: float = field(init=False)
    _store: Store = field(init=False)
    _passes: dict[str, Any] = field(init=False)

    def _check(self) -> Slam | Minimax:
        check_parameters(self)
        self._steps()
        slam, target = Slam(self.measure, self.margin, within="score"), self._target
        return slam if self.loss == "slam" else Minimax(self.margin, target.above if isinstance(target, AP) else None)

    def _steps(self) -> Steps:
        return steps_of(self.eta, vars(self).get("eta_"))

    def _note_theory(self, loss: Slam | Minimax, data: QueryDataset) -> None:
        """Take the step that theory gives for these lists in the space of the kernel."""
        from .kernel_replay import distance, largest_square
        from .replay import theory_step

        if by_theory(self.eta):
            own, learner = Settings.of(self, data.n_features), OnlineDescent(loss, self._target, Steps(1.0))
            radius = float(np.sqrt(largest_square(own, data)))
            self.eta_ = theory_step(str(self.eta), learner, data, radius, distance(own))

    @property
    def _target(self) -> Measure:
        return parse_measure(self.measure)

    def _fit(self, data: QueryDataset, valid: QueryDataset | None, executor: Executor | None) -> None:
        loss = self._check()
        check_informative(data.informative, data.n_docs)
        self._note_theory(loss, data)
        seed = self._seed()
        store, rows = Store.empty(self, data.n_features, seed), []
        watch = BestOnValidation[tuple[Store, bool]](self._target, valid, self.patience, self.verbose)
        rng = np.random.default_rng(seed)
        for epoch in track(range(self.epochs), "epochs", show=self.verbose):
            order = rng.permutation(data.n_queries) if self.shuffle else np.arange(data.n_queries)
            with read_in_any_order(data.X, order):
                rows.append(self._play(store, loss, data, order))
            reached, averaged = choose_average(watch, self.average, store.model)
            if watch.note(reached, partial(_kept, store, averaged), f"{epoch + 1:5d}") or out_of_time():
                break
        self.n_epochs_ = len(rows)
        kept = len(rows) if watch.best is None else watch.best_at + 1
        self._passes = {
            "epochs": kept, "seed": str(seed), "shuffle": bool(self.shuffle), "measure": str(self._target)
        }  # fmt: skip
        self._keep(*(watch.best or (store, self._averages(store))))
        self.trace_ = Trace(np.concatenate(rows))
        self.trace_.update(watch.trace())

    def _learn_more(self, data: QueryDataset) -> None:
        loss, first = self._check(), not self._has_learned
        if first or "eta_" not in vars(self) or self._store.totals[Total.STEPS] == 0:
            self._note_theory(loss, data)
        seed = self._seed() if first else 0
        store = Store.empty(self, data.n_features, seed) if first else self._store
        check_same_measure(None if first else self._passes.get("measure"), str(self._target))
        if store.settings != Settings.of(self, data.n_features):
            raise InputError("kernel and budget cannot change in mid-stream: start anew with fit")
        store = store.copy()  # a model that somebody holds shares the documents of the old one
        before = store.totals.copy()
        rows = self._play(store, loss, data, np.arange(data.n_queries))
        self._keep(store, self._averages(store))
        self.trace_ = Trace(rows, before)
        self._count_lists(data.n_queries, first)
        if first:
            self._passes = {"epochs": 1, "seed": str(seed), "shuffle": False, "measure": str(self._target)}

    def _seed(self) -> int:
        """Return the number that all randomness follows from: `random_state`, or one from the machine."""
        return int(np.random.default_rng().integers(2**63)) if self.random_state is None else int(self.random_state)

    def _averages(self, store: Store) -> bool:
        if self.average != "auto":
            return bool(self.average)
        return bool(store.totals[Total.AVERAGE] >= store.totals[Total.LAST])

    def _play(
        self, store: Store, loss: Slam | Minimax, data: QueryDataset, order: Ints, seen: Floats | None = None
    ) -> Floats:
        """Play the lists in order; `seen`, where given, gets the scores that the losses saw."""
        learner = KernelPerceptron(loss, self._target, self._steps(), self.average == "auto")
        rounds = []
        for q in order:
            a, b = data.ptr[q], data.ptr[q + 1]
            X = np.ascontiguousarray(dense(data.X[a:b]), dtype=np.float64)
            weight = 1.0 if data.query_weight is None else float(data.query_weight[q])
            if not learner.is_round(data.y[a:b], weight):
                continue
            try:
                found = learner.play_round(store, X, data.y[a:b], weight)
            except OverflowError:
                raise _overflow(q) from None
            rounds.append((found.measure, found.loss, float(found.mistake), found.znorm2))
            if seen is not None and found.mistake:
                seen[a:b] = found.scores
        if store.too_long and seen is None:
            warnings.warn(
                f"{len(store.too_long)} of {len(rounds)} rounds changed more documents than budget={self.budget} holds "
                f"and were skipped: raise it to {max(store.too_long)}",
                stacklevel=5,
            )
            store.too_long = []
        return np.array(rounds).reshape(-1, 4)

    def _keep(self, store: Store, averaged: bool) -> None:
        self._store, self.averaged_ = store, averaged
        self.function_ = store.model(averaged)

    @property
    def n_stored_(self) -> int:
        """How many documents are held, at most `budget`."""
        return self._store.counts.documents

    @property
    def n_dropped_(self) -> int:
        """How many rounds had to make room so far."""
        return self._store.counts.dropped

    @property
    def memory_(self) -> int:
        """Bytes taken by documents, their coefficients, rounds and ages: all of it from the first round on."""
        return self._store.nbytes

    @property
    def state_(self) -> dict[str, Any]:
        """What a model file keeps beside the stored documents, so that learning goes on from it with the same bits."""
        if "_store" not in vars(self):
            raise AttributeError("KernelSlamPerceptron has no state_: it is not fitted")
        step = {"eta": float(self.eta_)} if by_theory(self.eta) else {}
        return {**self._store.state(), "averaged": bool(self.averaged_), **self._passes, **step}

    @state_.setter
    def state_(self, content: dict[str, Any]) -> None:
        self._check()
        store = Store.empty(self, self.inputs_.n_outputs, 0)
        sound = False
        try:
            averaged = content["averaged"]
            sound = store.restore(content, self.function_.stored) and type(averaged) is bool
            sound &= np.array_equal(self.function_.alpha, store.model(averaged).alpha)
            passes = read_passes(content, store.totals[Total.ROUNDS])
            if by_theory(self.eta):
                self.eta_ = float(content["eta"])
                sound &= bool(0 < self.eta_ < np.inf)
        except (KeyError, TypeError, AttributeError, IndexError, ValueError, OverflowError):
            sound = False
        if not sound:
            raise InputError("$.state.state_ is not the state of a KernelSlamPerceptron of this budget")
        self._keep(store, averaged)
        self._passes = passes
        self.trace_, self.certificates_ = Trace(np.empty((0, 4)), store.totals), []

    def _as_comparator(self, comparator: Any) -> KernelFunction:
        from .kernel_replay import as_function

        return as_function(self._store.model(), comparator)

    def _certify(
        self, data: QueryDataset, here: Assumption, comparator: KernelFunction | None, delta: float
    ) -> list[Certificate]:
        from .kernel_replay import KernelReplay
        from .replay import certify_replay

        return certify_replay(here, comparator, lambda: KernelReplay(self, data))


def _kept(store: Store, averaged: bool) -> tuple[Store, bool]:
    return store.copy(), averaged


def falls_short(judge: Measure, scores: Floats, grades: Floats, share: float) -> bool:
    """Whether documents are not in their best order: as `OnlineDescent` says it, exactly where no scores are tied.

    Tied documents, grades that are not whole numbers up to 31 and other measures: by their `share` of the best value.
    """
    k = judge.k if isinstance(judge, NDCG) and judge.k is not None else len(scores)
    order = np.argsort(-scores)
    places, whole = scores[order[: k + 1]], bool(((grades == np.floor(grades)) & (grades < 32)).all())
    plain = isinstance(judge, NDCG) or (isinstance(judge, AP) and judge.k is None and judge.norm == Norm.ALL)
    if not plain or not whole or (places[1:] == places[:-1]).any():
        return share < 1 - TIE_TOLERANCE
    return bool((grades[order[:k]] != np.sort(grades)[::-1][:k]).any())


def compared_grades(target: Measure, y: Floats) -> Floats:
    """Return grades as a measure compares them: relevant or not for AP."""
    return (y > target.above).astype(np.float64) if isinstance(target, AP) else y


def _overflow(query: int) -> InputError:
    return NumbersOverflowError(f"numbers overflow at query {query}: scale the features down or lower degree or eta")
