"""Learners of precision at the top that go batch by batch: perceptrons and projected subgradient steps."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils.validation import validate_data

from .._progress import track
from .._typing import ArrayLike, Floats, Ints
from ..certificates.base import Assumption, Certificate
from ..data import validation
from ..data.dataset import QueryDataset
from ..data.labels import Indicator, TwoClasses
from ..data.validation import check_positive
from ..errors import InputError
from ..model.functions import LinearFunction
from ..solvers.at_k import LearnerAtK, State
from ..solvers.batches import Batches, Shuffle
from ..solvers.deadline import out_of_time
from ..solvers.steps import Rule, Steps
from ..surrogates.precision_at_k import (
    MistakesAvg,
    MistakesMax,
    PrecAvg,
    PrecisionSurrogate,
    PrecMax,
    PrecStruct,
    cutoff,
)
from .base import QueryWeight, parameters
from .two_classes import TwoClassRanker
from .watching import BestOnValidation


@parameters
class _MiniBatchRanker(TwoClassRanker):
    """Epochs over batches, one compiled pass each: what the perceptrons and the subgradient learners share.

    One list is cut into batches of `batch_size` rows; with several queries, each query is a batch. `shuffle` puts the
    batches of every epoch in another order ("batches"; rows are read as they are stored), deals the rows out anew
    ("rows"), or does neither (None). A batch with one class only is skipped and counted.
    """

    needs_all_rows = True

    state_attributes: ClassVar[tuple[str, ...]] = (
        *TwoClassRanker.state_attributes,
        "weights_",
        "drift_",
        "n_batches_",
        "n_skipped_",
        "n_updates_",
    )
    optional_attributes: ClassVar[tuple[str, ...]] = ("run_",)

    batch_size: int = 500
    epochs: int = 25
    average: bool = True
    shuffle: Shuffle = "batches"
    random_state: int | None = 0
    verbose: bool = False
    weights_: Floats = field(init=False)
    """The last iterate; `coef_` is it, or with `average` the mean of all of them."""
    drift_: Floats = field(init=False)
    n_batches_: int = field(init=False)
    n_skipped_: int = field(init=False)
    n_updates_: int = field(init=False)
    run_: dict[str, Any] = field(init=False)
    """What was done, for certificates: passes, seed, kind of shuffle, and what each pass lost (Δ for perceptrons)."""

    def _check_state(self) -> None:
        super()._check_state()
        sound = all(type(n) is int and n >= 0 for n in (self.n_batches_, self.n_skipped_, self.n_updates_))
        for values in (self.weights_, self.drift_):
            sound = sound and isinstance(values, np.ndarray) and values.dtype == np.float64
            sound = sound and values.shape == (self.inputs_.n_outputs,) and bool(np.isfinite(values).all())
        sound = sound and _is_record_of_run(vars(self).get("run_", {"kind": "both", "lost": np.zeros(1)}))
        if not sound:
            raise InputError(f"$.state is not that of a {type(self).__name__} on {self.inputs_.n_outputs} columns")

    @abstractmethod
    def _parts(self) -> tuple[type[PrecisionSurrogate], Steps]:
        """Check the hyper-parameters and return what a batch is stepped on, and how."""

    def _learner(self, batches: Batches, n_positive: int) -> LearnerAtK:
        """Return what happens at each batch; k means the judged list, of which a batch of rows sees a part."""
        kind, steps = self._parts()
        cut: dict[str, Any] = {"k": self.k, "kappa": self.kappa}
        if self.k is not None and not batches.by_query:
            cut = {"kappa": min(1.0, self.k / max(n_positive, 1))}
        return LearnerAtK(kind(normalize=bool(vars(self).get("normalize", False)), **cut), steps)

    def _check(self) -> None:
        if self.batch_size == 1 and not isinstance(self, PerceptronAtK):
            raise InputError("a batch of one row has one class and teaches nothing: batch_size must be at least 2")
        cutoff(self.k, self.kappa)
        self._parts()

    def _fit(self, data: QueryDataset, valid: QueryDataset | None, executor: Executor | None) -> None:
        self._check()
        batches = Batches.of(data, self.batch_size if data.n_queries == 1 else None)
        learner = self._learner(batches, self.n_positive_)
        state, lost = learner.start(data.n_features), []
        watch = BestOnValidation[LinearFunction](self._judge(), valid, verbose=self.verbose)
        trace: dict[str, list[float]] = {name: [] for name in ("loss", "updates", "skipped", "norm")}
        self.run_ = self._plan()
        passes = self._passes(data, self.run_)
        for part, order in track(passes, type(self).__name__, self.epochs, show=bool(self.verbose)):
            before = state.updates
            found = learner.play(state, part, order)
            lost.append(found.loss)
            trace["loss"].append(found.share / max(found.batches, 1))
            trace["updates"].append(state.updates - before)
            trace["skipped"].append(part.skipped(order))
            trace["norm"].append(float(np.linalg.norm(state.w)))
            model = self._model(state)
            watch.look(model, lambda model=model: model, f"{len(trace['loss']):5d}  loss {trace['loss'][-1]:.6g}")  # type: ignore[misc]
            if out_of_time():
                break
        self.n_iter_ = len(trace["loss"])
        played, skipped = batches.count * self.n_iter_, int(sum(trace["skipped"]))
        if skipped > played / 2:
            warnings.warn(
                f"{skipped:,} of {played:,} batches held one class only and were skipped: raise batch_size, "
                f"there are {self.n_positive_:,} positives in {data.n_docs:,} rows",
                stacklevel=4,
            )
        self._keep(state, skipped)
        self.run_ |= {"epochs": self.n_iter_, "lost": np.array(lost)}
        if watch.best is not None:
            self.function_ = watch.best
        curves = {name: np.array(values, dtype=np.float64) for name, values in trace.items()}
        self.trace_ = {**curves, **watch.trace()}

    def _plan(self) -> dict[str, Any]:
        """Return what a fit is about to do, with the number that all its randomness follows from."""
        drawn = np.random.default_rng().integers(2**63) if self.random_state is None else self.random_state
        plan = {"kind": "fit", "epochs": int(self.epochs), "seed": str(int(drawn)), "shuffle": self.shuffle or "none"}
        return plan | {"batch_size": int(self.batch_size)}

    def _passes(self, data: QueryDataset, plan: dict[str, Any]) -> Iterator[tuple[Batches, Ints]]:
        """Yield, for each epoch of a fit, the batches and the order in which they come."""
        rng = np.random.default_rng(int(plan["seed"]))
        batches = Batches.of(data, plan["batch_size"] if data.n_queries == 1 else None)
        batches, shuffle = _mixed_batches(batches, None if plan["shuffle"] == "none" else plan["shuffle"], rng)
        yield from batches.epochs(plan["epochs"], shuffle, rng)

    def partial_fit(
        self,
        X: Any,
        y: Any,
        qid: ArrayLike | None = None,
        query_weight: QueryWeight | None = None,
        classes: ArrayLike | None = None,
    ) -> Self:
        """Go on with one pass over these rows, in their order: in batches of `batch_size`, or query by query with qid.

        `classes` declares the two labels where the first rows may hold one of them (0 and 1 need no declaration). What
        cannot be used is refused before anything changes. With several labels a row, each goes on by itself.
        """
        labels = self._same_labels(y) if "estimators_" in vars(self) else Indicator.of(y)
        with self._learning_copy() as new:
            if labels is None:
                new._learn_more(X, y, qid, query_weight, classes)
            else:
                new._learn_more_each(X, labels, qid, query_weight, classes)
        return self

    def _learn_more_each(self, X: Any, labels: Indicator, *others: Any) -> None:
        first, rows = "function_" not in vars(self), validation.as_matrix(X, missing="keep")
        before = None if first else self._learned_before(labels)
        validate_data(self, X, reset=first, skip_check_array=True)
        self._learn_each(labels.count, before, lambda one, j: one.partial_fit(rows, labels.column(j), *others))

    def _learn_more(
        self,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | None,
        query_weight: QueryWeight | None,
        classes: ArrayLike | None,
    ) -> None:
        first = "function_" not in vars(self)
        coding = TwoClasses.of_first_rows(y, self.pos_label, classes) if first else self.coding
        given = self._grouped(X, self._read(coding, y), qid, query_weight, reset=first)
        data = self._learnable(given, first=first)
        self._check()
        batches = Batches.of(data, self.batch_size if qid is None else None)
        learner = self._learner(batches, int(data.y.sum()) + (0 if first else self.n_positive_))
        state, order = learner.start(data.n_features) if first else self._state, np.arange(batches.count)
        lost = learner.play(state, batches, order).loss
        lists = 1 if qid is None else data.n_queries
        before: dict[str, Any] = {"kind": "stream", "batch_size": int(self.batch_size), "lost": np.zeros(1)}
        before = before if first else vars(self).get("run_", {"kind": "both", "lost": np.zeros(1)})
        self.run_ = before | {"lost": before["lost"][:1] + lost}
        if before["kind"] == "fit":
            self.run_["kind"] = "both"
        if first:
            self._note_labels(data)
            self.n_queries_in_, self.certificates_, self.trace_ = lists, [], {}
        else:
            self.n_seen_ += data.n_docs
            self.n_positive_ += int(data.y.sum())
            self.n_queries_in_ += lists if qid is not None else 0
        self._keep(state, batches.skipped(order) + (0 if first else self.n_skipped_))
        self._note_rows(given.X, given.ptr, first=first)

    @property
    def _state(self) -> State:
        """The stream so far, to go on from."""
        return State(self.weights_.copy(), self.drift_.copy(), self.n_batches_, self.n_updates_)

    def _keep(self, state: State, skipped: int) -> None:
        self.weights_, self.drift_, self.n_batches_, self.n_updates_ = (
            state.w,
            state.drift,
            state.batches,
            state.updates,
        )
        self.n_skipped_, self.function_ = skipped, self._model(state)

    def _model(self, state: State) -> LinearFunction:
        return LinearFunction(state.average if self.average else state.w.copy())

    def _certify(
        self, data: QueryDataset, here: Assumption, comparator: Floats | None, delta: float
    ) -> list[Certificate]:
        from ..certificates.at_k import TopReplay, certify_mini_batches
        from .replay import nearly_equal

        coded, run = self.coding.recode(data), vars(self).get("run_") or self._plan()
        batches = Batches.of(coded, run.get("batch_size", self.batch_size) if coded.n_queries == 1 else None)
        learner, passes = self._learner(batches, int(coded.y.sum())), [(batches, np.arange(batches.count))]
        if run["kind"] == "fit":
            # What it warned of was said when it was fitted, and rows that cannot be learned from are another run.
            with warnings.catch_warnings(), suppress(InputError):
                warnings.simplefilter("ignore")
                passes = list(self._passes(coded, run)) or passes
        replay = TopReplay(learner, passes, self.weights_, run.get("lost"))
        if not nearly_equal(self._model(replay.state).coef, self.coef_):
            replay.same = replace(replay.same, verified=False)
        return certify_mini_batches(replay, self.coef_, comparator, delta)


def _is_record_of_run(run: Any) -> bool:
    """Say whether a model file's record of what was done is one."""
    try:
        sound = run["kind"] in ("fit", "stream", "both") and run["lost"].ndim == 1 and len(run["lost"]) > 0
        if run["kind"] == "fit":
            sound = sound and type(run["epochs"]) is int and 0 < run["epochs"] <= 10**6 and run["seed"].isdecimal()
            sound = sound and run["shuffle"] in ("batches", "rows", "none")
        if run["kind"] != "both":
            sound = sound and type(run["batch_size"]) is int and run["batch_size"] > 0
    except (KeyError, TypeError, AttributeError):
        return False
    return bool(sound and np.isfinite(run["lost"]).all())


def _mixed_batches(batches: Batches, shuffle: Shuffle, rng: np.random.Generator) -> tuple[Batches, Shuffle]:
    """Refuse batches of which none is informative; where rows stand sorted by class, deal them out once."""
    if not batches.by_query and np.diff(batches.bounds).max(initial=0) < 2:
        raise InputError("a batch of one row has one class and is not informative: batch_size must be at least 2")
    if shuffle == "batches" and not batches.by_query and batches.in_clumps():
        found = int(batches.informative.sum())
        warnings.warn(
            f"the rows are sorted by class: {found} of {batches.count} batches hold both. They are dealt out in random "
            "order instead; shuffle='rows' does so without this warning",
            stacklevel=4,
        )
        return batches.mixed(rng), shuffle
    if shuffle != "rows" and not batches.informative.any():
        raise InputError("no batch holds both classes: set shuffle='rows', or give whole lists with qid")
    return batches, shuffle


@parameters
class PerceptronAtK(_MiniBatchRanker):
    """A perceptron for the top k: it learns from batches that have negatives among their k best rows.

    On Δ > 0 mistakes in the top k of a batch: w −= Σ false positives, w += D Σ missed positives (Algorithms 1, 2).

    `variant="avg"` spreads the reward over all missed positives, D = Δ/(n₊ − true positives); "max" gives 1 to the Δ
    best of them. There is no step size: w scales with it and the ranking does not. `average=False` predicts with the
    last iterate, as the paper does. With `batch_size=1` a row is in the top if its score is above 0: the classical
    perceptron.

    >>> import toprank as tr
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(5000, weights=[0.95], class_sep=2.0, random_state=0)
    >>> labels = np.where(y == 1, "fraud", "honest")
    >>> ranker = tr.PerceptronAtK(kappa=0.25, pos_label="fraud", random_state=0).fit(X, labels)
    >>> ranker.classes_.tolist(), bool(ranker.score(X, labels) > 0.8)
    (['honest', 'fraud'], True)
    >>> int((ranker.predict_labels(X, k=20) == "fraud").sum())
    20
    """

    variant: Literal["avg", "max"] = field(default="avg", kw_only=False)

    def _parts(self) -> tuple[type[PrecisionSurrogate], Steps]:
        return MistakesAvg if self.variant == "avg" else MistakesMax, Steps(1.0)


@parameters
class SGDAtK(_MiniBatchRanker):
    """Gradient steps on batches of rows for the precision of the k best.

    w ← Π_radius[w − η_t ∂ℓ(w; batch)], η_t = eta/√t, averaged (Algorithms 3 and 4), ℓ the avg or max surrogate.

    `schedule="constant"` keeps η_t = eta. `radius` is that of the ball w stays in, None for no ball. `normalize`
    divides the loss of each batch by its k (the κ-form of Theorem 15); without it the step is the paper's Algorithm 3
    to the letter. `average=False` predicts with the last iterate.

    >>> import toprank as tr
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(5000, weights=[0.95], class_sep=2.0, random_state=0)
    >>> ranker = tr.SGDAtK(kappa=0.25, random_state=0).fit(X, y)
    >>> bool(ranker.score(X, y) > 0.8)
    True
    >>> Y = np.column_stack([y, X[:, 0] > 1])  # several labels a row: one list per label
    >>> ranker.fit(X, Y).predict(X).shape, ranker.coef_.shape
    ((5000, 2), (2, 20))
    """

    variant: Literal["avg", "max"] = field(default="avg", kw_only=False)
    eta: float = 1.0
    schedule: Literal["sqrt", "constant"] = "sqrt"
    radius: float | None = None
    normalize: bool = True

    def _parts(self) -> tuple[type[PrecisionSurrogate], Steps]:
        return PrecAvg if self.variant == "avg" else PrecMax, _subgradient_steps(self)


@parameters
class OnePassMiniBatch(_MiniBatchRanker):
    """Learns the top of a list batch by batch, in one pass, with the loss of SVMperf.

    1PMB: w ← Π_radius[w − (eta/√t) ∂ℓ_struct(w; batch)], averaged; one pass unless `epochs` says more.

    The struct surrogate is unbounded below where k < n₊, so the ball is what keeps w finite: it is not optional.

    >>> import toprank as tr
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(5000, weights=[0.95], class_sep=2.0, random_state=0)
    >>> ranker = tr.OnePassMiniBatch(kappa=0.25, random_state=0).fit(X, y)
    >>> ranker.n_batches_, bool(np.linalg.norm(ranker.coef_) <= 10.0)
    (10, True)
    """

    epochs: int = 1
    eta: float = 1.0
    schedule: Literal["sqrt", "constant"] = "sqrt"
    radius: float = 10.0
    normalize: bool = True

    def _parts(self) -> tuple[type[PrecisionSurrogate], Steps]:
        return PrecStruct, _subgradient_steps(self)


def _subgradient_steps(ranker: SGDAtK | OnePassMiniBatch) -> Steps:
    check_positive(eta=ranker.eta)
    radius = np.inf if ranker.radius is None else float(ranker.radius)
    return Steps(ranker.eta, Rule[ranker.schedule.upper()], radius)
