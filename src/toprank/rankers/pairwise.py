"""Ranking SVM."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import field, replace
from typing import ClassVar

from .._typing import Floats
from ..certificates import learned
from ..certificates.base import Assumption, Certificate
from ..data.dataset import QueryDataset
from ..objective import Objective
from ..penalties import L2
from ..solvers.bundle import Bundle
from ..solvers.newton import Newton
from ..surrogates.pairwise import Loss, PairwiseHinge
from .base import Ranker, parameters
from .composing import minimise_by_C


@parameters
class RankSVM(Ranker):
    """A support vector machine on pairs of documents of different grade.

    min_w ½‖w‖² + C Σ_q c_q ℓ_q(X_q w), ℓ_q the (squared) hinge over pairs of different grade, c_q query weights.

    `normalize=True` makes ℓ_q the mean over a query's pairs; False the sum, the objective of SVMrank and
    liblinear-ranksvm. In the library's other notation alpha = 1/(C Σ_q c_q). The squared hinge is solved by truncated
    Newton steps, the hinge by cutting planes, in at most `max_iter` steps. `solution_.gap` bounds the distance to the
    optimum of (alpha/2)‖w‖² + mean ℓ. C may be a list: the path is then solved with warm starts, and the value
    with the best `measure` on the validation set is kept as `C_`. `warm_start` begins at the weights so far.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=50, random_state=0)
    >>> ranker = tr.RankSVM(C=0.1).fit_queries(data)
    >>> ranker.solution_.converged
    True
    """

    state_attributes: ClassVar[tuple[str, ...]] = ("C_",)
    weighs_documents: ClassVar[bool] = True

    C: float | Sequence[float] = 1.0
    loss: Loss = "squared_hinge"
    normalize: bool = True
    tol: float = 1e-4
    max_iter: int = 1000
    warm_start: bool = False
    C_: float = field(init=False)

    def _fit(self, data: QueryDataset, valid: QueryDataset | None, executor: Executor | None) -> None:
        objective = Objective(data, PairwiseHinge(self.loss, normalize=bool(self.normalize)), executor=executor)
        solver = (Bundle if self.loss == "hinge" else Newton)(tol=self.tol, max_iter=self.max_iter)
        self.C_ = minimise_by_C(self, self.C, objective, solver, valid, objective.total_weight)

    def _certify(
        self, data: QueryDataset, here: Assumption, comparator: Floats | None, delta: float
    ) -> list[Certificate]:
        objective = Objective(data, PairwiseHinge(self.loss, normalize=bool(self.normalize)))
        objective = replace(objective, penalty=L2(1 / (self.C_ * objective.total_weight)))
        solved = learned.optimality(objective, self.coef_, here, self.tol, self.max_iter)
        return [learned.pair_bound(self.loss, self.coef_, data), solved]
