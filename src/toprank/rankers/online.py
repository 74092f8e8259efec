"""What rankers that learn from one list after the other have in common."""

from __future__ import annotations

from abc import abstractmethod
from concurrent.futures import Executor
from dataclasses import field
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._progress import track
from .._typing import ArrayLike, Floats, Ints
from ..certificates.base import Assumption, Certificate
from ..data.dataset import QueryDataset
from ..data.remote import RemoteMatrix
from ..data.validation import check_informative
from ..errors import InputError, WorkersLost
from ..measures import measure as parse_measure
from ..measures.base import Measure
from ..model.functions import LinearFunction
from ..solvers.deadline import out_of_time
from ..solvers.steps import Note, Scaling, Total
from ..solvers.stream import OnlineDescent, State
from ..surrogates import Surrogate
from .base import QueryWeight, parameters
from .checking import check_parameters
from .stream import Average, StreamRanker, by_theory, check_same_measure, choose_average, read_passes, steps_of
from .stream_notes import certify_stream, compiled, note
from .trace import Trace
from .watching import BestOnValidation

Scale: TypeAlias = Literal["running", "query"] | None

_SCALING = {None: Scaling.NONE, "running": Scaling.RUNNING, "query": Scaling.QUERY}
_LOSS_PARAMETERS = ("margin", "truth")
"""Parameters of the loss that only some online rankers have."""


class _KeptEpoch(NamedTuple):
    """What is kept of an epoch: the state, how many epochs it took, whether its averaged weights ranked better."""

    state: State
    epochs: int
    averaged: bool | None = None

    def copy(self) -> _KeptEpoch:
        return self._replace(state=self.state.copy())


def _model(state: State, averaged: bool) -> LinearFunction:
    return LinearFunction(state.average if averaged else state.last)


def _play_part(learner: OnlineDescent, state: State, lists: QueryDataset) -> tuple[State, Floats]:
    own = state.copy()
    return own, learner.play(own, lists.X, lists.y, lists.ptr, None, lists.query_weight)


@parameters
class OnlineRanker(StreamRanker):
    """What the online rankers share: epochs over shuffled lists, `partial_fit`, averaging, scaling, early stopping.

    `eta` is a step size, a schedule (`"sqrt:0.1"`: 0.1/√t, `"adaptive:0.1"`: 0.1/√Σ‖z‖²), or for the perceptrons
    `"theory"`: the η = 1/A of the margin bounds, A from the lists of the first pass, or for documents no longer than R
    as in `"theory:2.5"`; `eta_` is what it came to. `average` predicts with
    the mean of the iterates (True) or the last (False); both are kept (`average_coef_`, `last_coef_`). "auto" takes
    what ranks better: on the validation set where there is one, otherwise in every eighth round of the stream, which
    both rank before they learn from it; `averaged_` says which it was. Averaging steadies the ranking where the
    surrogate's minimiser ranks well. Where it does not, it settles on a poor ranking: SLAM and minimax look at the
    best-scored document of a lower grade only, and in long lists of long-tailed scores that is always an outlier.

    `scale="running"` divides each feature by its spread inside the lists seen so far, `scale="query"` divides each list
    by the largest distance of a document from the list's mean (its ranking does not change); None is the paper's plain
    algorithm. Rounds are judged with ties in input order and lists shorter than k like any other, whatever the
    convention of the measure says of them; validation follows the convention.

    With a validation set, `fit_queries` keeps the weights of the epoch with the best `measure` on it, and stops after
    `patience` epochs without a better one. `warm_start` goes on from the weights so far. Every round starts from the
    weights that the one before left, so an executor has nothing to do here and changes nothing.

    A stream that `partial_fit` alone has learned notes what certificates need: `toprank.certify(ranker)` then wants no
    data. `trace_` has the rounds of the last call of `fit` or `partial_fit`, so that memory does not grow with the
    stream; `totals_` has the sums over all rounds.
    """

    learns_from = "labels"
    state_attributes: ClassVar[tuple[str, ...]] = ("state_",)

    eta: float | str = 0.1
    epochs: int = 5
    average: Average = "auto"
    scale: Scale = None
    shuffle: bool = True
    patience: int | None = None
    warm_start: bool = False
    random_state: int | None = 0
    verbose: bool = False
    trace_: Trace = field(init=False)
    averaged_: bool = field(init=False)
    n_epochs_: int = field(init=False)
    eta_: float = field(init=False)
    _state: State = field(init=False)
    _settings: tuple[Any, ...] = field(init=False)
    _made: OnlineDescent = field(init=False)
    _measure_name: str = field(init=False)
    _passes: dict[str, Any] = field(init=False)
    _noted: Floats | None = field(init=False)
    """What a stream notes of its rounds (`solvers.steps.Note`); None after a fit."""

    @abstractmethod
    def _loss(self, target: Measure) -> Surrogate:
        """Return the loss that a round steps on."""

    _always: ClassVar[bool]
    """Whether every round steps, or only those in which the ranking falls short."""

    def _learner(self) -> OnlineDescent:
        """Return the learner of the current parameters, made anew only when they change."""
        own = (getattr(self, name, None) for name in _LOSS_PARAMETERS)
        settings = (self.measure, self.eta, vars(self).get("eta_"), self.scale, self.average, *own)
        if vars(self).get("_settings") != settings:
            check_parameters(self)
            target = parse_measure(self.measure)
            loss = self._loss(target)
            steps, compare = steps_of(self.eta, vars(self).get("eta_")), self.average == "auto"
            self._made = OnlineDescent(loss, target, steps, self._always, _SCALING[self.scale], compare)
            self._settings, self._measure_name = settings, str(target)
        return self._made

    def _fit(self, data: QueryDataset, valid: QueryDataset | None, executor: Executor | None) -> None:
        fresh = not (self.warm_start and self._has_learned)
        learner = self._learner()
        if by_theory(self.eta) and (fresh or "eta_" not in vars(self)):
            learner = self._with_theory(data)
        watch = BestOnValidation[_KeptEpoch](self._judge(), valid, self.patience, self.verbose)
        check_informative(data.informative, data.n_docs)
        state = learner.start(data.n_features) if fresh else self._continued(learner, data.n_features)
        seed = int(np.random.default_rng(self.random_state).integers(2**63))
        rng = np.random.default_rng(seed)
        before, rows = state.totals.copy(), []
        for epoch in track(range(self.epochs), "epochs", show=self.verbose):
            if isinstance(data.X, RemoteMatrix):
                state, found = self._play_on_workers(learner, state, data, data.X)
                rows += found
            else:
                order = self._order(rng, data.n_queries)
                rows.append(learner.play(state, data.X, data.y, data.ptr, order, data.query_weight))
            reached, averaged = choose_average(watch, self.average, partial(_model, state))
            kept = _KeptEpoch(state, epoch + 1, averaged)
            if watch.note(reached, kept.copy, f"{epoch + 1:5d}") or out_of_time():
                break
        self.n_epochs_ = epoch + 1
        best = watch.best or _KeptEpoch(state, self.n_epochs_)
        if not state.totals[Total.ROUNDS] > 0:
            raise InputError(
                f"no list is a round: by {learner.measure} no order of its documents is better than another, or its "
                "weight is 0"
            )
        self._passes = {"epochs": best.epochs, "seed": str(seed), "shuffle": bool(self.shuffle), "fresh": fresh}
        self._passes["measure"], self._noted = self._measure_name, None
        self._keep(best.state, best.averaged)
        self.trace_ = Trace(np.concatenate(rows), before)
        self.trace_.update(watch.trace())

    def check_cluster(self) -> None:
        """Refuse to shuffle lists on the workers of a cluster, before anybody reads them."""
        if self.shuffle:
            raise InputError(
                "shuffle=True needs all lists in one memory, and these lie on the workers of a cluster: pass "
                "shuffle=False, and the weights travel along the lists in their order"
            )

    def _with_theory(self, data: QueryDataset) -> OnlineDescent:
        """Return the learner with the step that theory gives for these lists."""
        from .replay import theory_step

        self.eta_ = theory_step(str(self.eta), self._learner(), data)
        return self._learner()

    def _play_on_workers(
        self, learner: OnlineDescent, state: State, data: QueryDataset, X: RemoteMatrix
    ) -> tuple[State, list[Floats]]:
        """Play lists that lie elsewhere: the state goes from part to part."""
        try:
            return X.walk_parts(data, partial(_play_part, learner), state)
        except WorkersLost as error:
            error.coef = state.last
            raise

    def _order(self, rng: np.random.Generator, n_queries: int) -> Ints:
        return rng.permutation(n_queries) if self.shuffle else np.arange(n_queries)

    def partial_fit(
        self, X: Any, y: ArrayLike, qid: ArrayLike | None = None, query_weight: QueryWeight | None = None
    ) -> Self:
        """Learn from one more list, or from several in the order in which their ids appear.

        Bad input raises before anything changes.
        """
        if qid is not None or query_weight is not None or not self._is_plain_list(X, y):
            return super().partial_fit(X, y, qid, query_weight)
        with self._learning_copy() as new:
            labels = np.array(y, dtype=np.float64)
            ptr = np.array((0, len(labels)))
            new._play_more(X, labels, ptr, None)
            new._note_rows(X, ptr, first=False)
        return self

    def _learn_more(self, data: QueryDataset) -> None:
        self._play_more(data.X, data.y, data.ptr, data.query_weight)

    def _is_plain_list(self, X: Any, y: Any) -> bool:
        """Say whether one list comes as two sound arrays, which then need no further look (microseconds count here)."""
        if type(X) is not np.ndarray or type(y) is not np.ndarray or "_state" not in vars(self):
            return False
        if self.inputs_.steps or self.inputs_.missing.indicated:
            return False
        sound = X.ndim == 2 and y.ndim == 1 and len(X) == len(y) > 0 and X.shape[1] == self.n_features_in_
        if not sound or "feature_names_in_" in vars(self) or not X.flags.c_contiguous or not X.flags.writeable:
            return False
        if X.dtype not in (np.float32, np.float64) or y.dtype.kind not in "fiub":
            return False
        return bool(compiled().sound_list(X, y))

    def _play_more(self, X: Any, y: Floats, ptr: Ints, query_weight: Floats | None) -> None:
        learner = self._learner()
        first = not self._has_learned
        if by_theory(self.eta) and (first or "eta_" not in vars(self) or self._state.totals[Total.STEPS] == 0):
            qid = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
            learner = self._with_theory(QueryDataset.from_arrays(X, y, qid, query_weight=query_weight))
        state = learner.start(X.shape[1]) if first else self._continued(learner, X.shape[1])
        before = state.totals.copy()
        lists = learner.lists(X, y, ptr, query_weight)
        rounds = learner.play_lists(state, lists)
        if first or self._noted is not None:
            self._noted = note(None if first else self._noted, learner, lists, X.shape[1], rounds, before)
        self._keep(state)
        self.trace_ = Trace(rounds, before)
        self._count_lists(len(ptr) - 1, first)
        if first:
            self._passes = {"epochs": 1, "seed": "0", "shuffle": False, "fresh": True}
            self._passes["measure"] = self._measure_name

    def _continued(self, learner: OnlineDescent, n_features: int) -> State:
        """Return a copy of the state to go on from."""
        check_same_measure(self._passes.get("measure"), self._measure_name)
        if self._state.scaling != learner.scaling:
            raise InputError("scale cannot change in mid-stream: the weights belong to features scaled otherwise")
        known = self._state.weights.shape[1]
        if known != n_features:
            raise InputError(f"the weights so far are for {known} features, got {n_features}")
        return self._state.at(learner.unit)

    def _keep(self, state: State, averaged: bool | None = None) -> None:
        if averaged is None:
            averaged = state.average_ranks_better if self.average == "auto" else bool(self.average)
        self.function_ = _model(state, averaged)
        self.averaged_ = averaged
        self._state = state

    @property
    def last_coef_(self) -> Floats:
        """Weights after the last round."""
        check_is_fitted(self, "model_")
        return self._state.last

    @property
    def average_coef_(self) -> Floats:
        """Mean of the weights over the rounds."""
        check_is_fitted(self, "model_")
        return self._state.average

    @property
    def totals_(self) -> dict[str, float]:
        """Sums over all rounds so far: rounds, steps, mistakes, measure, surrogate, ‖z‖², documents."""
        check_is_fitted(self, "model_")
        return {total.name.lower(): float(self._state.totals[total]) for total in Total}

    @property
    def state_(self) -> dict[str, Any]:
        """What a model file keeps so that learning goes on from it with the same bits."""
        if "_state" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no state_: it is not fitted")
        state, noted = self._state, {} if self._noted is None else {"noted": self._noted}
        return {
            "weights": state.weights, "totals": state.totals, "eta": state.unit, "scaling": state.scaling.name.lower(),
            "averaged": self.averaged_, **noted, **self._passes,
        }  # fmt: skip

    @state_.setter
    def state_(self, content: dict[str, Any]) -> None:
        try:
            totals, eta = content["totals"], content["eta"]
            state = State(content["weights"], totals, eta, Scaling[content["scaling"].upper()])
            sound = state.is_sound(self.inputs_.n_outputs)
            passes = read_passes(content, totals[Total.ROUNDS], "fresh")
            self.averaged_ = bool(content["averaged"])
            noted = content.get("noted")
            sound &= noted is None or (noted.shape == (len(Note),) and bool((noted >= 0).all()))
        except (KeyError, TypeError, AttributeError, IndexError, ValueError):
            sound = False
        if not sound:
            raise InputError("$.state.state_ is not the state of an online ranker")
        self._state, self._noted = state, noted
        if by_theory(self.eta):
            self.eta_ = float(eta)
        self._passes = passes
        self.trace_ = Trace(np.empty((0, 4)), totals)
        self.certificates_ = []

    def _certify(
        self, data: QueryDataset, here: Assumption, comparator: Floats | None, delta: float
    ) -> list[Certificate]:
        from .replay import certify_online

        return certify_online(self, data, here, comparator)

    def _certify_stream(self, margin: float | None, confidence: float) -> list[Certificate]:
        return certify_stream(self, margin, confidence)
