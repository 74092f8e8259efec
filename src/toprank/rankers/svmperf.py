"""SVMperf for precision at k, and the same with the tighter surrogates."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import field, replace
from typing import Literal

from .._typing import Floats
from ..certificates import learned
from ..certificates.base import Assumption, Certificate
from ..data.dataset import QueryDataset
from ..data.validation import check_positive
from ..objective import Objective
from ..penalties import L2
from ..solvers.bundle import Bundle
from ..surrogates.precision_at_k import PrecAvg, PrecisionSurrogate, PrecMax, PrecStruct, cutoff
from .base import parameters
from .composing import minimise
from .two_classes import TwoClassRanker
from .watching import BestOnValidation

Variant = Literal["avg", "max", "struct"]

_SURROGATES: dict[str, type[PrecisionSurrogate]] = {"avg": PrecAvg, "max": PrecMax, "struct": PrecStruct}


@parameters
class SVMPerf(TwoClassRanker):
    """A support vector machine for the precision of the k best rows, solved to a known gap.

    min_w ‖w‖²/(2C) + mean over lists of ℓ(w)/k by cutting planes: SVMperf for precision at k.

    `variant="struct"` is the loss of SVMperf; "avg" and "max" put the paper's upper bounds in its place, which no
    other tool offers. All rows are one list unless qid says otherwise; `solution_` carries the gap that is left. Where
    the classes overlap much, avg and max are least at w = 0 (`solution_.message` says so): learn in batches then.

    >>> import toprank as tr
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(2000, weights=[0.95], class_sep=2.0, random_state=0)
    >>> ranker = tr.SVMPerf("avg", kappa=0.25, C=1.0).fit(X, y)
    >>> ranker.solution_.converged, bool(ranker.score(X, y) > 0.8)
    (True, True)
    """

    variant: Variant = field(default="struct", kw_only=False)
    C: float = 1.0
    tol: float = 1e-3
    max_iter: int = 1000
    warm_start: bool = False

    def _fit(self, data: QueryDataset, valid: QueryDataset | None, executor: Executor | None) -> None:
        check_positive(C=self.C)
        cutoff(self.k, self.kappa)
        surrogate = _SURROGATES[self.variant](k=self.k, kappa=self.kappa, normalize=True)
        objective = Objective(data, surrogate, executor=executor)
        solver, watch = Bundle(tol=self.tol, max_iter=self.max_iter), BestOnValidation[Floats](self._judge(), valid)
        found = minimise(objective, [1 / self.C], lambda look: solver, watch, self._start())
        self._keep_solution(found.coef, found.solution, watch)
        if self.solution_.converged and not found.coef.any():
            told = "the minimum is at w = 0, which ranks nothing: raise kappa, or learn in batches (SGDAtK)"
            self.solution_ = replace(self.solution_, message=told)

    def _certify(
        self, data: QueryDataset, here: Assumption, comparator: Floats | None, delta: float
    ) -> list[Certificate]:
        coded = self.coding.recode(data)
        surrogate = _SURROGATES[self.variant](k=self.k, kappa=self.kappa, normalize=True)
        objective = Objective(coded, surrogate, L2(1 / self.C))
        solved = learned.optimality(objective, self.coef_, here, self.tol, self.max_iter)
        return [*learned.top_bounds(self.k, self.kappa, self.coef_, coded), solved]
