"""A perceptron for rankings that are not linear in the features, on a budget of stored documents."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any, ClassVar, Literal, Self

import numpy as np

from .._progress import track
from .._typing import ArrayLike, Floats, Ints
from ..data._piles import physical_memory
from ..data.dataset import QueryDataset
from ..data.validation import (
    Missing,
    check_choice,
    check_count,
    check_grades,
    check_not_negative,
    check_positive,
    is_sparse,
)
from ..errors import InputError
from ..measures.base import Measure
from ..solvers.steps import Total
from ..surrogates import Slam
from .base import Ranker
from .models import KernelModel
from .online import Trace, check_teaching

_DROPS = ("oldest", "random", "smallest")


class KernelSlamPerceptron(Ranker):
    """If the ranking falls short: f ← f − η Σ_i g_i k(x_i, ·), g ∈ ∂ φ_v(f(X_t), R_t): Algorithm 2 with a kernel.

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

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=40, n_features=5, random_state=0)
    >>> ranker = tr.KernelSlamPerceptron(budget=100, epochs=2, random_state=0).fit_queries(data)
    >>> ranker.n_stored_, ranker.memory_
    (100, 5600)
    """

    state_attributes: ClassVar[tuple[str, ...]] = ("state_",)

    model_: KernelModel
    trace_: Trace

    def __init__(
        self,
        measure: str | Measure = "ndcg@10",
        *,
        kernel: Literal["rbf", "polynomial", "linear"] = "rbf",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        budget: int = 1000,
        drop: Literal["oldest", "random", "smallest"] = "oldest",
        eta: float = 0.1,
        margin: float = 1.0,
        epochs: int = 5,
        shuffle: bool = True,
        patience: int | None = None,
        random_state: int | None = 0,
        verbose: bool = False,
        missing: Missing = "error",
    ) -> None:
        self.measure = measure
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.budget = budget
        self.drop = drop
        self.eta = eta
        self.margin = margin
        self.epochs = epochs
        self.shuffle = shuffle
        self.patience = patience
        self.random_state = random_state
        self.verbose = verbose
        self.missing = missing

    def _check(self) -> Slam:
        check_choice(("rbf", "polynomial", "linear"), kernel=self.kernel)
        check_choice(_DROPS, drop=self.drop)
        check_count(degree=self.degree, budget=self.budget, epochs=self.epochs)
        check_positive(eta=self.eta)
        check_not_negative(coef0=self.coef0)
        if self.gamma is not None:
            check_positive(gamma=self.gamma)
        if self.patience is not None:
            check_count(patience=self.patience)
        return Slam(self.measure, self.margin, within="score")

    def _fit(self, data: QueryDataset, valid: QueryDataset | None, executor: Executor | None) -> None:
        loss = self._check()
        check_grades(data.y)
        check_teaching(data)
        store, rows, reached = _Store.empty(self, data.n_features), [], []
        best: tuple[float, _Store, int] | None = None
        rng = np.random.default_rng(self.random_state)
        for epoch in track(range(self.epochs), "epochs", show=self.verbose):
            order = rng.permutation(data.n_queries) if self.shuffle else np.arange(data.n_queries)
            rows.append(self._play(store, loss, data, order))
            if valid is not None:
                reached.append(loss.target.mean(store.model().scores(valid.X), valid.y, valid.ptr))
                if best is None or reached[-1] > best[0]:
                    best = reached[-1], store.copy(), epoch + 1
                elif self.patience is not None and epoch + 1 - best[2] >= self.patience:
                    break
        self.n_epochs_ = len(rows)
        self._keep(store if best is None else best[1])
        self.trace_ = Trace(np.concatenate(rows))
        if valid is not None:
            self.trace_["valid"] = np.array(reached)

    def partial_fit(
        self, X: Any, y: ArrayLike, qid: ArrayLike | None = None, query_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from one more list, or from several in the order in which their ids appear."""
        first = "_store" not in vars(self)
        data = self._checked(X, y, qid, query_weight, reset=first)
        return self._go_on(data, first)

    def partial_fit_queries(self, data: QueryDataset) -> Self:
        """Learn from more lists, in their order."""
        first = "_store" not in vars(self)
        check_grades(data.y)
        if first:
            self.n_features_in_ = data.n_features
        else:
            self._check_same_features(data)
        return self._go_on(data, first)

    def _go_on(self, data: QueryDataset, first: bool) -> Self:
        loss = self._check()
        store = _Store.empty(self, data.n_features) if first else self._store
        if not first and store.settings != _settings(self, data.n_features):
            raise InputError("kernel and budget cannot change in mid-stream: start anew with fit")
        # One list changes nothing before all its numbers are known to be finite; several need a copy to fall back on.
        store = store if data.n_queries == 1 else store.copy()
        before = store.totals.copy()
        rows = self._play(store, loss, data, np.arange(data.n_queries))
        self._keep(store)
        self.trace_ = Trace(rows, before)
        self.n_queries_in_ = data.n_queries + (0 if first else self.n_queries_in_)
        self.certificates_ = []
        return self

    def _play(self, store: _Store, loss: Slam, data: QueryDataset, order: Ints) -> Floats:
        rows, ptr = [], np.zeros(2, dtype=np.int64)
        for q in order:
            a, b = data.ptr[q], data.ptr[q + 1]
            y = data.y[a:b]
            weight = 1.0 if data.query_weight is None else float(data.query_weight[q])
            grades = y if not hasattr(loss.target, "above") else y > loss.target.above
            if weight == 0 or b - a < 2 or (grades == grades[0]).all() or not grades.any():
                continue
            X = data.X[a:b]
            X = np.ascontiguousarray(X.toarray() if is_sparse(X) else X, dtype=np.float64)
            scores = np.empty(len(y))
            store.model().score_rows(X, scores)
            ptr[1] = b - a
            if not np.isfinite(scores).all():
                raise InputError(f"numbers overflow at query {q}: scale the features down or lower degree or eta")
            best = float(loss.target.per_query(y, y, ptr)[0])
            reached = float(loss.target.per_query(scores, y, ptr)[0])
            value, gradient = 0.0, 0.0
            mistake = reached < best - 1e-12
            if mistake:
                losses, g = loss.per_query(scores, y, ptr)
                value, gradient = weight * float(losses[0]), float(weight * np.linalg.norm(g)) ** 2
                store.add(X, -self.eta * weight * g)
            rows.append((reached / best, value, float(mistake), gradient))
            store.totals[: Total.DOCS] += (1, float(mistake), float(mistake), reached / best, value, gradient)
            store.totals[Total.DOCS] += b - a
        return np.array(rows).reshape(-1, 4)

    def _keep(self, store: _Store) -> None:
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
        n = int(store.counters[0])
        return {"age": store.age[:n], "counters": store.counters, "rng": store.rng, "totals": store.totals}

    @state_.setter
    def state_(self, content: dict[str, Any]) -> None:
        self._check()
        store = _Store.empty(self, self.n_features_in_)
        n = len(self.model_.alpha)
        try:
            sound = n <= self.budget and content["age"].shape == (n,) and int(content["counters"][0]) == n
            for name in ("counters", "rng", "totals"):
                target = getattr(store, name)
                sound &= content[name].shape == target.shape and content[name].dtype == target.dtype
                target[:] = content[name]
            store.age[:n] = content["age"]
        except (KeyError, TypeError, AttributeError, IndexError, ValueError, OverflowError):
            sound = False
        if not sound or store.rng[0] == 0 or not np.isfinite(store.totals).all():
            raise InputError("$.state.state_ is not the state of a KernelSlamPerceptron of this budget")
        store.documents[:n], store.alpha[:n] = self.model_.stored, self.model_.alpha
        self._keep(store)
        self.trace_, self.certificates_ = Trace(np.empty((0, 4)), store.totals), []


class _Store:
    """Documents on a budget: arrays of `budget` places, of which the first counters[0] are taken."""

    def __init__(self, settings: tuple[Any, ...], arrays: dict[str, Any]) -> None:
        self.settings = settings
        self.documents, self.alpha, self.age = arrays["documents"], arrays["alpha"], arrays["age"]
        self.counters, self.rng, self.totals = arrays["counters"], arrays["rng"], arrays["totals"]

    @classmethod
    def empty(cls, ranker: KernelSlamPerceptron, n_features: int) -> _Store:
        size = 8 * ranker.budget * (n_features + 2)
        if size > physical_memory():
            raise InputError(
                f"budget={ranker.budget} documents of {n_features} features take {size / 1e9:.1f} GB, more than this "
                "machine has: lower the budget"
            )
        seed = np.random.SeedSequence(ranker.random_state).generate_state(1, np.uint64)
        arrays = {
            "documents": np.zeros((ranker.budget, n_features)),
            "alpha": np.zeros(ranker.budget),
            "age": np.zeros(ranker.budget, dtype=np.int64),
            "counters": np.zeros(3, dtype=np.int64),
            "rng": np.maximum(seed, np.uint64(1)),
            "totals": np.zeros(len(Total)),
        }
        return cls(_settings(ranker, n_features), arrays)

    def copy(self) -> _Store:
        names = ("documents", "alpha", "age", "counters", "rng", "totals")
        return _Store(self.settings, {name: getattr(self, name).copy() for name in names})

    def model(self) -> KernelModel:
        """Return the scoring function; it shares the stored documents."""
        kernel, gamma, coef0, degree, _, _ = self.settings
        n = int(self.counters[0])
        return KernelModel(self.documents[:n], self.alpha[:n], kernel, gamma, coef0, degree)

    def add(self, X: Floats, change: Floats) -> None:
        from . import _kernel_kernels as kernels

        drop = kernels.Drop[self.settings[5].upper()]
        kernels.store(X, change, drop, self.documents, self.alpha, self.age, self.counters, self.rng)


def _settings(ranker: KernelSlamPerceptron, n_features: int) -> tuple[Any, ...]:
    gamma = 1 / n_features if ranker.gamma is None else float(ranker.gamma)
    return ranker.kernel, gamma, float(ranker.coef0), int(ranker.degree), int(ranker.budget), ranker.drop
