"""Linear rankers out of parts: a surrogate says what is minimised, a solver how."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import field
from inspect import isabstract
from typing import Any, ClassVar

import numpy as np

from .. import surrogates
from .._typing import Floats
from ..data.dataset import QueryDataset
from ..errors import InputError
from ..measures import measure as parse_measure
from ..measures.base import Measure
from ..model.functions import LinearFunction
from ..solvers.base import Solver, Watch
from ..solvers.lbfgs import LBFGS
from ..solvers.minibatch import MiniBatch
from ..solvers.steps import Steps
from ..solvers.stream import OnlineDescent, State
from ..surrogates.base import Surrogate, TwiceDifferentiable
from .base import parameters
from .composing import SOLVERS, MinimisingRanker
from .stream import StreamRanker


@parameters
class LinearRanker(MinimisingRanker, StreamRanker):
    """Any surrogate as a ranker: weights that make its mean over the queries small.

    min_w mean_q ℓ(X_q w, y_q) + (alpha/2) ‖w‖², ‖w‖ ≤ radius, for a `surrogate` ℓ of `toprank.surrogates` (or its name)
    or your own (which `toprank.register` makes fit for model files).

    With a validation set the iterate (of L-BFGS and mini-batches) with the best `measure` on it is kept. `partial_fit`
    takes one subgradient step for each list from the weights so far; the loss must be convex.

    Parameters
    ----------
    surrogate : the loss ℓ, or its name.
    measure : what `score` reports and a validation set is judged by.
    solver : "lbfgs" (smooth losses), "newton" (those with a known curvature), "bundle" (convex ones, with corners or
        without, to a proved gap), "minibatch" (any), a value of `toprank.solvers`, or "auto", which picks by what the
        loss is.
    alpha : weight of the penalty (alpha/2) ‖w‖².
    penalty, signs : another penalty, and signs of features, for smooth losses: as at `ListNet`.
    radius : the weights stay in ‖w‖ ≤ radius; None is no such limit.
    max_iter, tol : bound a solver that is named; `tol` is a share of the value or of the slope at w = 0.
    patience : how many looks without a better iterate end the fit.
    warm_start : whether a fit begins at the weights so far.
    steps : how long the steps of `partial_fit` are: η/√Σ‖z‖² with "adaptive", other schedules as at `SlamPerceptron`.
    average : whether `partial_fit` leaves the mean of its iterates or the last one to predict with.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=50, random_state=0)
    >>> ranker = tr.LinearRanker(tr.surrogates.PairwiseHinge(), alpha=1e-2).fit_queries(data)
    >>> ranker.solution_.converged, bool(ranker.score(data.X, data.y, data.qid) > 0.9)
    (True, True)
    """

    state_attributes: ClassVar[tuple[str, ...]] = ("stream_",)
    weighs_documents: ClassVar[bool] = True

    surrogate: str | Surrogate = field(default="ListNet", kw_only=False)
    measure: str | Measure = "ndcg@10"
    solver: str | Solver = "auto"
    steps: float | str = "adaptive"
    average: bool = True
    stream_: dict[str, Floats] | None = field(init=False)
    """What `partial_fit` goes on from; None after a fit."""

    @property
    def _loss(self) -> Surrogate:
        kind: Any = getattr(surrogates, self.surrogate, None) if isinstance(self.surrogate, str) else self.surrogate
        loss = kind() if isinstance(kind, type) and issubclass(kind, Surrogate) and not isabstract(kind) else kind
        if not isinstance(loss, Surrogate):
            raise InputError(f"surrogate must be one of toprank.surrogates, or its name, got {self.surrogate!r}")
        return loss

    def _fit(self, data: QueryDataset, valid: QueryDataset | None, executor: Executor | None) -> None:
        self._minimise(data, self._loss, valid, executor)
        self.stream_ = None

    def _solver(self, look: Watch | None) -> Solver:
        chosen = self._solver_for(self._loss) if self.solver == "auto" else self.solver
        solver = self._parsed_solver(chosen, tuple(SOLVERS))
        if isinstance(solver, (LBFGS, MiniBatch)):
            return self._gradient_solver(solver, self.radius, look)
        if self.radius is not None:
            raise InputError(f"solver={self.solver!r} knows no radius: take 'lbfgs' or 'minibatch', or alpha alone")
        return solver

    def _solver_for(self, loss: Surrogate) -> str:
        """Return the name of the solver that suits a loss."""
        if self._bounded and not loss.smooth:
            raise InputError(
                f"no solver knows {self._bounded} with {type(loss).__name__}, which has corners: take a smooth loss, "
                'such as ListNet or PairwiseHinge("squared_hinge")'
            )
        if self._bounded:
            return "lbfgs"
        strong = self._penalties[0].alpha > 0 and self.radius is None
        if loss.smooth:
            return "newton" if isinstance(loss, TwiceDifferentiable) and loss.convex and strong else "lbfgs"
        return "bundle" if loss.convex and strong else "minibatch"

    def _learn_more(self, data: QueryDataset) -> None:
        if data.doc_weight is not None:
            raise InputError("partial_fit learns without weights of documents: use fit, or leave doc_weight out")
        if self._bounded:
            raise InputError(f"partial_fit knows no {self._bounded.removeprefix('an ')}: use fit")
        self._solver(None)  # a stream needs none, but a wrong name is refused here too
        loss, steps, first = self._loss, Steps.parse(self.steps), not self._has_learned
        if not loss.convex:
            raise InputError(f"partial_fit needs a convex loss, and {type(loss).__name__} is not: use fit")
        learner = OnlineDescent(loss, parse_measure(self.measure), steps, always=True)
        state = learner.start(data.n_features)
        if not first and self.stream_ is not None:
            state = self._stream.at(learner.unit)
        elif not first:  # after a fit
            state.weights[0] = self.coef_ / steps.eta
        learner.play(state, data.X, data.y, data.ptr, None, data.query_weight)
        self.function_ = LinearFunction(state.average if self.average else state.last)
        self.stream_ = {"weights": state.weights, "totals": state.totals, "eta": np.array([state.unit])}
        self._count_lists(data.n_queries, first)
        if first:
            self.trace_ = {}

    @property
    def _stream(self) -> State:
        parts: Any = self.stream_
        return State(parts["weights"], parts["totals"], float(parts["eta"][0]))

    def _check_state(self) -> None:
        try:
            sound = self.stream_ is None or self._stream.is_sound(self.inputs_.n_outputs)
        except (KeyError, TypeError, AttributeError, IndexError, ValueError):
            sound = False
        if not sound:
            raise InputError("$.state.stream_ is not the state of a stream of a LinearRanker")
