"""A perceptron for rankings that are not linear in the features, on a budget of stored documents."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import field
from typing import Any, ClassVar, Literal, Self

import numpy as np

from .._progress import track
from .._typing import ArrayLike, Floats, Ints
from ..certificates.base import Certificate
from ..data.dataset import QueryDataset
from ..data.validation import (
    check_choice,
    check_count,
    check_not_negative,
    check_positive,
    is_sparse,
)
from ..errors import InputError, NumbersOverflowError
from ..measures import AP
from ..solvers.online import judge_of_rounds
from ..solvers.steps import Total
from ..surrogates import Slam
from .base import Ranker, check_learnable, parameters
from .kernel_store import Store, settings, squared_norm
from .models import KernelModel
from .online import check_same_measure, check_teaching
from .trace import Trace
from .watching import BestOnValidation

_DROPS = ("oldest", "random", "smallest")


@parameters
class KernelSlamPerceptron(Ranker):
    """The SLAM perceptron with a kernel: rankings that are not linear, from a bounded store of documents.

    If the ranking falls short: f ← f − η Σ_i g_i k(x_i, ·), g ∈ ∂ φ_v(f(X_t), R_t): Algorithm 2 with a kernel.

    Only documents with g_i ≠ 0 are stored, and only on mistake rounds. At most `budget` documents are held; when a new
    one needs room, `drop` decides: "oldest" (the Forgetron of Dekel, Shalev-Shwartz and Singer, 2008), "random" (the
    randomised budget perceptron of Cavallanti, Cesa-Bianchi and Gentile, 2007) or "smallest" |α| (the removal of Wang,
    Crammer and Vucetic, 2012). All the memory is taken at the start and never passed: `memory_` states its bytes.

    `kernel` is "rbf" exp(−γ‖x − s‖²), "polynomial" (γ x·s + coef0)^degree or "linear" x·s; `gamma` is 1/n_features
    where None. Scale features beforehand. Explicit feature maps (`sklearn.kernel_approximation`) in front of
    `SlamPerceptron` are the cheaper alternative: they cost the same in every round.

    With a validation set, `fit_queries` keeps the documents of the epoch with the best `measure` on it (in a second
    store while it learns) and stops after `patience` epochs without a better one. Every round starts from what the one
    before left, so an executor has nothing to do here and changes nothing.

    While nothing has been dropped this is Algorithm 2 in the space of the kernel, and its bounds hold there, with
    ‖z_t‖² = gᵀKg and R_X² = max k(x, x): `toprank.certify`. Its `comparator` is a fitted ranker with the same kernel, a
    pair (documents, coefficients) or, for the linear kernel, a weight vector. Once a document has been dropped only
    Lemma 5, which speaks of single rounds, is left: the other certificates then say that they do not apply.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=40, n_features=5, random_state=0)
    >>> ranker = tr.KernelSlamPerceptron(budget=100, epochs=2, random_state=0).fit_queries(data)
    >>> ranker.n_stored_, ranker.memory_
    (100, 5600)
    >>> [certificate.reference for certificate in ranker.certify(data) if certificate.assumptions_hold]
    ['Lemma 5']
    >>> roomy = tr.KernelSlamPerceptron(budget=2000, epochs=2, random_state=0).fit_queries(data)
    >>> print(roomy.n_dropped_, roomy.certify(data)[1].verdict)
    0 holds
    """

    state_attributes: ClassVar[tuple[str, ...]] = ("state_",)

    kernel: Literal["rbf", "polynomial", "linear"] = "rbf"
    gamma: float | None = None
    degree: int = 3
    coef0: float = 1.0
    budget: int = 1000
    drop: Literal["oldest", "random", "smallest"] = "oldest"
    eta: float = 0.1
    margin: float = 1.0
    epochs: int = 5
    shuffle: bool = True
    patience: int | None = None
    random_state: int | None = 0
    verbose: bool = False
    model_: KernelModel = field(init=False)
    trace_: Trace = field(init=False)
    n_epochs_: int = field(init=False)
    _store: Store = field(init=False)
    _passes: dict[str, Any] = field(init=False)

    def _check(self) -> Slam:
        check_choice(("rbf", "polynomial", "linear"), kernel=self.kernel)
        check_choice(_DROPS, drop=self.drop)
        check_count(degree=self.degree, budget=self.budget, epochs=self.epochs)
        check_positive(eta=self.eta)
        check_not_negative(coef0=self.coef0)
        if self.gamma is not None:
            check_positive(gamma=self.gamma)
        return Slam(self.measure, self.margin, within="score")

    def _fit(self, data: QueryDataset, valid: QueryDataset | None, executor: Executor | None) -> None:
        loss = self._check()
        check_teaching(data)
        seed = self._seed()
        store, rows = Store.empty(self, data.n_features, seed), []
        watch = BestOnValidation[Store](loss.target, valid, self.patience, self.verbose)
        rng = np.random.default_rng(seed)
        for epoch in track(range(self.epochs), "epochs", show=self.verbose):
            order = rng.permutation(data.n_queries) if self.shuffle else np.arange(data.n_queries)
            rows.append(self._play(store, loss, data, order))
            if watch.look(store.model(), store.copy, f"{epoch + 1:5d}"):
                break
        self.n_epochs_ = len(rows)
        kept = len(rows) if watch.best is None else watch.best_at + 1
        self._passes = {
            "epochs": kept, "seed": str(seed), "shuffle": bool(self.shuffle), "measure": str(loss.target)
        }  # fmt: skip
        self._keep(watch.best or store)
        self.trace_ = Trace(np.concatenate(rows))
        self.trace_.update(watch.trace())

    def partial_fit(
        self, X: Any, y: ArrayLike, qid: ArrayLike | None = None, query_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from one more list, or from several in the order in which their ids appear."""
        first = "_store" not in vars(self)
        with self._changing() as new:
            data = new._grouped(X, y, qid, query_weight, reset=first)
            check_learnable(data)
            new._go_on(data, first)
        return self

    def partial_fit_queries(self, data: QueryDataset) -> Self:
        """Learn from more lists, in their order."""
        first = "_store" not in vars(self)
        check_learnable(data)
        with self._changing() as new:
            if first:
                new._note_features(data)
            else:
                self._check_same_features(data)
            new._go_on(data, first)
        return self

    def _go_on(self, data: QueryDataset, first: bool) -> None:
        loss = self._check()
        seed = self._seed() if first else 0
        store = Store.empty(self, data.n_features, seed) if first else self._store
        check_same_measure(None if first else self._passes.get("measure"), str(loss.target))
        if store.settings != settings(self, data.n_features):
            raise InputError("kernel and budget cannot change in mid-stream: start anew with fit")
        store = store.copy()  # a model that somebody holds shares the documents of the old one
        before = store.totals.copy()
        rows = self._play(store, loss, data, np.arange(data.n_queries))
        self._keep(store)
        self.trace_ = Trace(rows, before)
        self.n_queries_in_ = data.n_queries + (0 if first else self.n_queries_in_)
        self._note_lists(data.X, data.ptr, first=first)
        self.certificates_ = []
        if first:
            self._passes = {"epochs": 1, "seed": str(seed), "shuffle": False, "measure": str(loss.target)}

    def _seed(self) -> int:
        """Return the number that all randomness follows from: `random_state`, or one from the machine."""
        return int(np.random.default_rng().integers(2**63)) if self.random_state is None else int(self.random_state)

    def _play(self, store: Store, loss: Slam, data: QueryDataset, order: Ints, weights: Floats | None = None) -> Floats:
        """Play the lists in order; `weights`, where given, grow by what each document weighs in the surrogate."""
        rows, ptr, judge = [], np.zeros(2, dtype=np.int64), judge_of_rounds(loss.target)
        for q in order:
            a, b = data.ptr[q], data.ptr[q + 1]
            y = data.y[a:b]
            weight = 1.0 if data.query_weight is None else float(data.query_weight[q])
            ptr[1] = b - a
            grades = compared_grades(loss, y)
            if weight == 0 or b - a < 2 or (grades == grades[0]).all():
                continue
            best = float(judge.per_query(y, y, ptr)[0])
            if not best > 0:
                continue
            X = data.X[a:b]
            X = np.ascontiguousarray(X.toarray() if is_sparse(X) else X, dtype=np.float64)
            scores = np.empty(len(y))
            store.model().score_rows(X, scores)
            if not np.isfinite(scores).all():
                raise _overflow(q)
            reached = float(judge.per_query(scores, y, ptr)[0])
            value, znorm2 = 0.0, 0.0
            mistake = reached < best - 1e-12
            if mistake:
                losses, g = loss.per_query(scores, y, ptr)
                moved = np.flatnonzero(g)
                value, znorm2 = weight * float(losses[0]), squared_norm(store.function(X[moved], weight * g[moved]))
                if not np.isfinite(znorm2):
                    raise _overflow(q)
                store.add(X, -self.eta * weight * g)
                if weights is not None:
                    by_score = np.argsort(-scores, kind="stable")
                    weights[a + by_score] += weight * loss.weights(y[by_score], ptr)
            rows.append((reached / best, value, float(mistake), znorm2))
            store.totals[: Total.DOCS] += (1, float(mistake), float(mistake), reached / best, value, znorm2)
            store.totals[Total.DOCS] += b - a
        return np.array(rows).reshape(-1, 4)

    def _keep(self, store: Store) -> None:
        self._store = store
        self.model_ = store.model()

    @property
    def n_stored_(self) -> int:
        """How many documents are held, at most `budget`."""
        return int(self._store.counters[0])

    @property
    def n_dropped_(self) -> int:
        """How many documents had to make room so far."""
        return int(self._store.counters[2])

    @property
    def memory_(self) -> int:
        """Bytes taken by the stored documents, their coefficients and ages: all of it from the first round on."""
        return int(self._store.documents.nbytes + self._store.alpha.nbytes + self._store.age.nbytes)

    @property
    def state_(self) -> dict[str, Any]:
        """What a model file keeps beside the stored documents, so that learning goes on from it with the same bits."""
        if "_store" not in vars(self):
            raise AttributeError("KernelSlamPerceptron has no state_: it is not fitted")
        store = self._store
        arrays = {"counters": store.counters, "rng": store.rng, "totals": store.totals}
        return {"age": store.age[: self.n_stored_], **arrays, **self._passes}

    @state_.setter
    def state_(self, content: dict[str, Any]) -> None:
        self._check()
        store = Store.empty(self, self.n_features_in_, 0)
        n = len(self.model_.alpha)
        try:
            passes = {key: content[key] for key in ("epochs", "seed", "shuffle")}
            sound = n <= self.budget and content["age"].shape == (n,) and int(content["counters"][0]) == n
            for name in ("counters", "rng", "totals"):
                target = getattr(store, name)
                sound &= content[name].shape == target.shape and content[name].dtype == target.dtype
                target[:] = content[name]
            store.age[:n] = content["age"]
            rounds = max(1, store.totals[0])  # every pass plays at least one list
            sound &= type(passes["epochs"]) is int and bool(1 <= passes["epochs"] <= rounds)
            sound &= type(passes["shuffle"]) is bool
            passes |= {"measure": content["measure"]} if "measure" in content else {}
            sound &= passes["seed"].isdecimal() and len(passes["seed"]) < 1000
        except (KeyError, TypeError, AttributeError, IndexError, ValueError, OverflowError):
            sound = False
        if not sound or store.rng[0] == 0 or not np.isfinite(store.totals).all():
            raise InputError("$.state.state_ is not the state of a KernelSlamPerceptron of this budget")
        store.documents[:n], store.alpha[:n] = self.model_.stored, self.model_.alpha
        self._keep(store)
        self._passes = passes
        self.trace_, self.certificates_ = Trace(np.empty((0, 4)), store.totals), []

    def _as_comparator(self, comparator: Any) -> KernelModel:
        from .kernel_replay import as_function

        return as_function(self._store.model(), comparator)

    def _certify(self, data: QueryDataset, comparator: KernelModel | None, delta: float) -> list[Certificate]:
        from .kernel_replay import certify_kernel

        return certify_kernel(self, data, comparator)


def compared_grades(loss: Slam, y: Floats) -> Floats:
    """Return grades as the loss compares them: relevant or not for AP."""
    target = loss.target
    return (y > target.above).astype(np.float64) if isinstance(target, AP) else y


def _overflow(query: int) -> InputError:
    return NumbersOverflowError(f"numbers overflow at query {query}: scale the features down or lower degree or eta")
