"""Stochastic gradient steps (AdaGrad) on batches of queries, for smooth losses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._progress import track
from .._typing import Floats
from ..data import linear
from ..data.mapped import read_in_any_order
from ..data.validation import check_count, check_positive
from ..objective import Objective
from ..surrogates.base import CompiledSurrogate, refuse_doc_weight, weighted
from .ball import project
from .base import STOPPED, Solution, Solver, Watch, gradient_gap, refuse_l1
from .deadline import OUT_OF_TIME, out_of_time


@dataclass(frozen=True)
class MiniBatch(Solver):
    """w_j ← w_j − eta g_j / √(Σ_t g_tj²), g the gradient on `batch_size` queries, then back into ‖w‖ ≤ radius.

    Each coordinate's step shrinks with its past gradients (AdaGrad), so that neither the scale of the loss nor that of
    the features matters. Queries are shuffled anew in each epoch; the result is the mean of the last
    epoch's iterates (`average`) or the very last one.

    >>> import toprank as tr
    >>> from toprank.objective import Objective
    >>> from toprank.penalties import L2
    >>> data = tr.datasets.make_graded(n_queries=64, random_state=0)
    >>> objective = Objective(data, tr.surrogates.ListNet(), L2(1e-3))
    >>> solution = MiniBatch(epochs=5).minimize(objective)
    >>> solution.value < objective.value_and_grad(0 * solution.w)[0]
    True
    """

    epochs: int = 20
    batch_size: int = 16
    eta: float = 0.1
    radius: float | None = None
    average: bool = True
    random_state: int = 0
    watch: Watch | None = None
    verbose: bool = False

    def __post_init__(self) -> None:
        check_count(epochs=self.epochs, batch_size=self.batch_size)
        check_positive(eta=self.eta, radius=1.0 if self.radius is None else self.radius)

    def minimize(self, objective: Objective, w0: Floats | None = None) -> Solution:
        """Run the epochs; `watch` sees the weights that each of them would return."""
        refuse_l1(self, objective)
        rng = np.random.default_rng(self.random_state)
        radius = np.inf if self.radius is None else self.radius
        start = np.zeros(objective.n_features) if w0 is None else np.asarray(w0, dtype=np.float64)
        w, squares = project(start.copy(), radius), np.zeros(len(start))
        result, values, epoch, message = w, [], 0, f"all {self.epochs} epochs were run"
        numbers = range(1, self.epochs + 1)
        for epoch in track(numbers, "epochs") if self.verbose else numbers:
            total, count = np.zeros(len(w)), 0
            for grad in self._gradients(objective, w, rng):
                grad += objective.penalty.gradient(w)
                squares += grad * grad
                # In place, because `_gradients` computes the next gradient at this same array.
                w -= self.eta * grad / np.sqrt(np.where(squares > 0, squares, 1.0))
                w[:] = project(w, radius)
                total += w
                count += 1
                if out_of_time():
                    break
            result = total / count if self.average else w.copy()
            if self.watch is not None:
                values.append(objective.value_and_grad(result)[0])
                if self.watch(epoch, result, values[-1]):
                    message = STOPPED
                    break
            if out_of_time():
                message = OUT_OF_TIME
                break
        value, grad = objective.value_and_grad(result)
        norm = float(np.linalg.norm(grad))
        return Solution(
            w=result,
            value=value,
            grad_norm=norm,
            gap=gradient_gap(norm, objective),
            n_iter=epoch,
            converged=False,
            message=message,
            chosen=message != OUT_OF_TIME,
            trace={"value": np.array(values)} if values else {},
        )

    def _gradients(self, objective: Objective, w: Floats, rng: np.random.Generator) -> Iterator[Floats]:
        """Yield the gradient of the mean loss on batch after batch, at the w of that moment."""
        data, weight, surrogate = objective.data, objective.weight, objective.surrogate
        refuse_doc_weight(surrogate, data.doc_weight)
        seed = surrogate.tie_seed if isinstance(surrogate, CompiledSurrogate) else None
        places = None if seed is None else linear.places_by_grade(data.X, data.y, data.ptr, seed)
        informative = np.flatnonzero(weight)
        scale = len(informative) / objective.total_weight
        order = rng.permutation(informative)
        with read_in_any_order(data.X, order):
            for first in range(0, len(order), self.batch_size):
                chosen = order[first : first + self.batch_size]
                lengths = data.lengths[chosen]
                ptr = np.concatenate(([0], np.cumsum(lengths)))
                rows = np.arange(ptr[-1]) + np.repeat(data.ptr[chosen] - ptr[:-1], lengths)
                scores = linear.scores_of(data.X, w, data.ptr, chosen)
                given: dict[str, Any] = {} if places is None else {"place": places[rows]}
                if data.doc_weight is not None:
                    given["doc_weight"] = data.doc_weight[rows]
                _, slopes = weighted(*surrogate.per_query(scores, data.y[rows], ptr, **given), ptr, weight[chosen])
                yield linear.adjoint_of(data.X, slopes, data.ptr, chosen) * (scale / len(chosen))
