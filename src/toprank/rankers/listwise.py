"""Rankers that minimise a listwise loss: in batch or on mini-batches, with a penalty or inside a ball."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import field, replace
from typing import Any, ClassVar, Literal, cast

from .._typing import Floats
from ..certificates import generalization
from ..certificates.base import Assumption, Certificate
from ..data.dataset import QueryDataset
from ..errors import InputError
from ..solvers.base import Solver, Watch
from ..surrogates.listwise import ListMLE as ListMLELoss
from ..surrogates.listwise import ListNet as ListNetLoss
from ..surrogates.listwise import Listwise, Truth
from ..surrogates.listwise import RankCosine as RankCosineLoss
from ..surrogates.transforms import Linear, Transform, parse_transform
from .base import parameters
from .composing import MinimisingRanker

ORDERS = 1 << 13
"""How many orders of documents of one grade ListMLE looks at in all queries together, where there are so many."""
_INSIDE = 0.99
"""How near the weights may come to where a linear transform stops being positive."""


class _Parameter:
    """A parameter that only `get_params` reads: scikit-learn takes whatever has a `transform` for a transformer."""

    def __init__(self, default: Any) -> None:
        self.default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, ranker: object, owner: type | None = None) -> Any:
        if ranker is None:  # asked for by the class: the default
            return self.default
        raise AttributeError(f"a ranker does not transform; its parameter is get_params()[{self.name!r}]")

    def __set__(self, ranker: object, value: Any) -> None:
        vars(ranker)[self.name] = value


@parameters
class ListwiseRanker(MinimisingRanker):
    """min_w mean_q ℓ(X_q w, y_q) + (alpha/2) ‖w‖², ‖w‖ ≤ radius, for a listwise loss ℓ.

    With a validation set the iterate with the best `measure` on it is kept; with `signs` or an L1 penalty, or several
    penalties, the best solution.

    Parameters
    ----------
    transform : a transform φ of `toprank.surrogates` or its name. A linear transform without `radius` keeps the weights
        in the ball in which a·w·x + b stays positive on the training rows.
    truth : what the true scores are: "grades", "gains" (2^grade − 1) or "order".
    alpha : weight of the penalty (alpha/2) ‖w‖², where `penalty` is None.
    penalty : `toprank.L2(alpha)`, or `toprank.L1(alpha)`, which sets weights to exactly 0 (`features_` names the
        others), or a text such as "L1:0.001". Of a list, such as [toprank.L1(0.1), toprank.L1(0.01)], the validation
        set takes the best (`penalty_`).
    signs : "+" for features that must never count against a document and "-" for those that must never count for it,
        by name, such as {"price": "-", "bm25": "+"}, or by number from 1 where features have no names. With "ramps:8"
        or "steps:16" the curve of the feature never falls, or never rises.
    radius : the weights stay in ‖w‖ ≤ radius; None is no such limit.
    solver : "lbfgs" (two passes over X per iteration), "minibatch" (AdaGrad steps on batches of queries), or a value
        such as `toprank.solvers.MiniBatch(epochs=20, batch_size=16, eta=0.1)`.
    max_iter, tol : L-BFGS takes at most `max_iter` iterations, until the gradient is below `tol` times that at w = 0.
    patience : how many iterates in a row that are no better on the validation set end the fit.
    warm_start : whether a fit begins at the weights so far.
    """

    transform: str | Transform = cast(Any, _Parameter("exponential"))
    truth: Truth = "grades"
    radius_: float | None = field(init=False)

    @property
    def _phi(self) -> Transform:
        return parse_transform(vars(self)["transform"])

    @abstractmethod
    def _loss(self) -> Listwise:
        """Return the loss that the parameters describe."""

    def _fit(self, data: QueryDataset, valid: QueryDataset | None, executor: Executor | None) -> None:
        loss = self._loss()
        self.radius_ = self._effective_radius(loss.transform, data)
        self._minimise(data, loss, valid, executor)

    def _solver(self, look: Watch | None) -> Solver:
        solver = self._parsed_solver(self.solver, ("lbfgs", "minibatch"))
        return self._gradient_solver(solver, self.radius_, look)

    def _effective_radius(self, transform: Transform, data: QueryDataset) -> float | None:
        """Return the radius; a linear transform must be positive in the ball, and has one of its own."""
        if not isinstance(transform, Linear):
            return self.radius
        norm = generalization.largest_norm(data)
        if norm == 0:
            return self.radius
        limit = transform.b / (transform.a * norm)
        if self.radius is None:
            return _INSIDE * limit
        if not self.radius < limit:
            raise InputError(
                f"{transform} is not positive for ‖w‖ ≤ {self.radius:g} on rows of norm up to {norm:.6g}: take b above "
                f"{transform.a * self.radius * norm:.6g}, or a radius below {limit:.6g}"
            )
        return self.radius

    def _certify(
        self, data: QueryDataset, here: Assumption, comparator: Floats | None, delta: float
    ) -> list[Certificate]:
        loss = self._loss()
        try:
            radius = self._effective_radius(loss.transform, data)
        except InputError:  # a radius that is too large for these rows: the certificates say so
            radius = self.radius
        found = generalization.certificates(loss, self.coef_, data, radius=radius, delta=delta)
        learned = [step.words[0] for step in self.inputs_.steps if step.learns]
        if not learned:
            return found
        fixed = Assumption("the columns were fixed before learning", False, f"{learned[0]} took its knots from rows")
        return [replace(certificate, assumptions=(*certificate.assumptions, fixed)) for certificate in found]


@parameters
class ListNet(ListwiseRanker):
    """Fits how likely the scores make each order of a list to how likely the grades make it, by cross entropy.

    min_w mean_q −Σ_π P_g(π) log P_{X_q w}(π) + (alpha/2) ‖w‖²: cross entropy of permutations (ListNet).

    `truth` says what the target distribution is made of (grades, gains or the order of y); `k` how many places π has:
    1 is the top-one form for lists of any length, "full" the whole permutation for up to 12 documents. The other
    parameters are described at `ListwiseRanker`.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=50, random_state=0)
    >>> ranker = tr.ListNet(alpha=1e-3).fit_queries(data)
    >>> ranker.solution_.converged
    True
    """

    weighs_documents: ClassVar[bool] = True

    k: int | Literal["full"] = 1

    def _loss(self) -> ListNetLoss:
        return ListNetLoss(truth=self.truth, transform=self._phi, k=self.k)


@parameters
class ListMLE(ListwiseRanker):
    """Makes the true order of each list as likely as possible.

    min_w mean_q −log P_{X_q w}(y_q) + (alpha/2) ‖w‖²: the likelihood of the true order (ListMLE).

    With `ties="sampled"` the likelihood is the mean over `orders` of the documents of one grade, drawn by
    `random_state` and their features (`surrogates.ListMLE`); None takes more of them the fewer queries there are, up to
    32. With "fixed" they keep the order of the rows, which is then learned too: on LETOR's files it
    costs several points of NDCG on the validation parts. The loss of a list grows with its length, so `alpha` is
    larger than that of ListNet. The other parameters are described at `ListwiseRanker`.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=50, random_state=0)
    >>> ranker = tr.ListMLE(alpha=1e-3, solver=tr.solvers.MiniBatch(epochs=3)).fit_queries(data)
    >>> ranker.n_iter_
    3
    """

    MOVED_PARAMETERS: ClassVar[Mapping[str, str]] = {
        name: text for name, text in ListwiseRanker.MOVED_PARAMETERS.items() if name != "random_state"
    }

    alpha: float = 0.1
    random_state: int = 0
    tol: float = 1e-3  # another draw of the orders moves the minimum by some percent: more digits would be the draw's
    ties: Literal["fixed", "sampled"] = "sampled"
    orders: int | None = None

    def _loss(self) -> ListMLELoss:
        orders = self.orders or min(32, max(1, ORDERS // vars(self).get("n_queries_in_", 1)))
        return ListMLELoss(truth=self.truth, transform=self._phi, ties=self.ties, seed=self.random_state, orders=orders)


@parameters
class RankCosine(ListwiseRanker):
    """Makes the angle between the scores and the grades of each list small.

    min_w mean_q ½ (1 − cos(φ(g_q), φ(X_q w))) + (alpha/2) ‖w‖²: the angle to the true scores (RankCosine).

    The loss is not convex: the solution is a stationary point. The parameters are described at `ListwiseRanker`.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=50, random_state=0)
    >>> ranker = tr.RankCosine(transform="sigmoid", radius=5.0).fit_queries(data)
    >>> bool(abs(ranker.coef_ @ ranker.coef_) <= 25)
    True
    """

    def _loss(self) -> RankCosineLoss:
        return RankCosineLoss(truth=self.truth, transform=self._phi)
