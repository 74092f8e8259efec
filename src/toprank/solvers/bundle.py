"""Cutting planes for convex regularised risks, smooth or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from .._typing import AnyArray, Floats, Ints
from ..data.validation import check_count, check_positive
from ..errors import InputError, MissingExtraError
from ..objective import Objective
from .base import Cuts, Solution, Solver

SHRINK, GROW = 0.5, 1.2
"""How the pull to the best point changes after a step that kept its promise, and after one that did not."""


@dataclass(frozen=True)
class Bundle(Solver):
    """min_w (alpha/2)‖w‖² + max_i (a_i·w + b_i), the cuts (a_i, b_i) tangents of the risk R, more at every step.

    Each evaluation at w adds the cut R(w') ≥ R(w) + ∂R(w)·(w' − w). The dual over the simplex,
    max_λ Σ λ_i b_i − ‖Σ λ_i a_i‖²/(2 alpha), bounds the minimum from below; the next point minimises the model plus
    a pull (mu/2)‖w − best‖² that keeps steps where the model is good (on LETOR a third of the evaluations that plain
    cutting planes take). It stops when f(w) − lower bound ≤ tol · max(f(w), f(0)/1000): `gap` is that difference,
    and `Solution.check` finds it again from the data. Needs the `svm` extra for its small quadratic programs.

    >>> import toprank as tr
    >>> from toprank.objective import Objective
    >>> data = tr.QueryDataset.from_arrays([[1.0], [0.0]], [1, 0])
    >>> objective = Objective(data, tr.surrogates.PairwiseHinge(), alpha=0.5)
    >>> solution = Bundle().minimize(objective)
    >>> solution.w.round(4).tolist(), round(solution.value, 4), bool(solution.check(objective).gap < 1e-4)
    ([1.0], 0.25, True)
    """

    tol: float = 1e-4
    max_iter: int = 2000
    idle: int = 20
    """A cut that the dual has left out this many times in a row is dropped."""

    def __post_init__(self) -> None:
        check_positive(tol=self.tol)
        check_count(max_iter=self.max_iter, idle=self.idle)

    def minimize(self, objective: Objective, w0: Floats | None = None) -> Solution:
        """Minimise a convex objective with alpha > 0 from w0 (zero where None)."""
        return self._run(objective, w0, _Model.empty(objective))[0]

    def path(self, objective: Objective, alphas: Sequence[float]) -> list[Solution]:
        """Minimise for each alpha in turn; a cut of the risk holds for every alpha, so each run starts from all cuts.

        >>> import toprank as tr
        >>> from toprank.objective import Objective
        >>> data = tr.QueryDataset.from_arrays([[1.0], [0.0]], [1, 0])
        >>> path = Bundle(tol=1e-6).path(Objective(data, tr.surrogates.PairwiseHinge()), [4.0, 2.0, 1.0])
        >>> [solution.w.round(3).tolist() for solution in path]
        [[0.25], [0.5], [1.0]]
        """
        solutions: list[Solution] = []
        model = _Model.empty(objective)
        for alpha in alphas:
            start = solutions[-1].w if solutions else None
            solution, model = self._run(replace(objective, alpha=alpha), start, model)
            solutions.append(solution)
        return solutions

    def _run(self, objective: Objective, w0: Floats | None, model: _Model) -> tuple[Solution, _Model]:
        alpha = objective.alpha
        check_positive(alpha=alpha)
        if not objective.surrogate.convex:
            raise InputError(f"cutting planes need a convex loss, and {type(objective.surrogate).__name__} is not")
        w = np.zeros(objective.n_features) if w0 is None else np.asarray(w0, dtype=np.float64)
        value, grad = objective.value_and_grad(w)
        model = model.add(w, value, grad, alpha)
        best, best_grad, best_value = w, grad, value
        floor = 1e-3 * (value if not w.any() else objective.value_and_grad(np.zeros_like(w))[0])
        lower, cuts = -np.inf, model.cuts(np.ones(1), np.array([len(model.b) - 1]))
        mu, trace, converged = alpha, _Trace(), False
        for _ in range(self.max_iter):
            weights, bound = model.dual(alpha)
            if bound > lower:
                lower, cuts = bound, model.cuts(weights, np.flatnonzero(weights))
            trace.add(best_value, lower, len(model.b))
            if best_value - lower <= self.tol * max(best_value, floor):
                converged = True
                break
            model = model.forget(weights > 0, self.idle)
            w, promised = model.step(alpha, mu, best)
            value, grad = objective.value_and_grad(w)
            model = model.add(w, value, grad, alpha)
            promise, kept = best_value - promised, best_value - value
            mu *= GROW if kept < 0.3 * promise else SHRINK if kept > 0.7 * promise else 1.0
            if value < best_value:
                best, best_value, best_grad = w, value, grad
        solution = Solution(
            w=best,
            value=best_value,
            grad_norm=float(np.linalg.norm(best_grad)),
            gap=max(best_value - lower, 0.0),
            n_iter=len(trace.values),
            converged=converged,
            message="" if converged else f"the gap did not reach tol in {self.max_iter} steps",
            trace=trace.arrays(),
            cuts=cuts,
        )
        return solution, model


@dataclass(frozen=True, eq=False)
class _Model:
    """The cuts so far: where they were taken, their slopes A and offsets b, the products A Aᵀ, and their idle time."""

    points: Floats
    A: Floats
    b: Floats
    gram: Floats
    idle: Ints

    @classmethod
    def empty(cls, objective: Objective) -> _Model:
        d = objective.n_features
        return cls(np.empty((0, d)), np.empty((0, d)), np.empty(0), np.empty((0, 0)), np.empty(0, dtype=np.int64))

    def add(self, w: Floats, value: float, grad: Floats, alpha: float) -> _Model:
        slope, offset = cut(w, value, grad, alpha)
        products = self.A @ slope
        corner = np.array([[slope @ slope]])
        gram = np.block([[self.gram, products[:, None]], [products[None, :], corner]])
        return _Model(
            np.vstack([self.points, w]),
            np.vstack([self.A, slope]),
            np.append(self.b, offset),
            gram,
            np.append(self.idle, 0),
        )

    def forget(self, used: AnyArray, limit: int) -> _Model:
        idle = np.where(used, 0, self.idle + 1)
        keep = np.flatnonzero(idle < limit)
        if len(keep) == len(idle):
            return replace(self, idle=idle)
        return _Model(self.points[keep], self.A[keep], self.b[keep], self.gram[np.ix_(keep, keep)], idle[keep])

    def dual(self, alpha: float) -> tuple[Floats, float]:
        """Return λ and the lower bound it proves."""
        weights = simplex_qp(self.gram / alpha, self.b)
        slope = weights @ self.A
        return weights, float(weights @ self.b - slope @ slope / (2 * alpha))

    def step(self, alpha: float, mu: float, centre: Floats) -> tuple[Floats, float]:
        """Return argmin of the model plus (mu/2)‖w − centre‖², and the model's value there."""
        share = mu / (alpha + mu)
        weights = simplex_qp(self.gram / (alpha + mu), self.b + share * (self.A @ centre))
        w = share * centre - (weights @ self.A) / (alpha + mu)
        return w, float(0.5 * alpha * (w @ w) + (self.A @ w + self.b).max())

    def cuts(self, weights: Floats, which: Ints) -> Cuts:
        return Cuts(self.points[which], weights[which] if len(weights) > 1 else weights)


@dataclass
class _Trace:
    values: list[float] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    size: list[float] = field(default_factory=list)

    def add(self, value: float, lower: float, size: int) -> None:
        self.values.append(value)
        self.lower.append(lower)
        self.size.append(float(size))

    def arrays(self) -> dict[str, Floats]:
        return {"value": np.array(self.values), "lower_bound": np.array(self.lower), "cuts": np.array(self.size)}


def simplex_qp(H: Floats, c: Floats) -> Floats:
    """argmax_λ c·λ − ½ λᵀHλ over λ ≥ 0, Σ λ = 1 (H positive semidefinite), by piqp's interior point.

    >>> simplex_qp(np.array([[2.0, 0.0], [0.0, 1.0]]), np.zeros(2)).round(6).tolist()
    [0.333333, 0.666667]
    """
    n = len(c)
    if n == 1:
        return np.ones(1)
    try:
        import piqp
    except ImportError:
        raise MissingExtraError("piqp", extra="svm", purpose="the bundle solver") from None
    scale = max(float(np.abs(H).max()), float(np.ptp(c)), np.finfo(np.float64).tiny)
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-10
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = 1e-10
    # A shift of c changes nothing on the simplex, and keeps the numbers small.
    solver.setup(
        np.asfortranarray(H / scale), (c.max() - c) / scale, np.ones((1, n), order="F"), np.ones(1), x_l=np.zeros(n)
    )
    solver.solve()
    # Whatever the solver's tolerance, a point of the simplex comes back: the bound it gives is then a true one.
    weights = np.asarray(solver.result.x, dtype=np.float64)
    if not np.isfinite(weights).all():
        weights = np.ones(n)
    weights = np.where(weights > 1e-9, weights, 0.0)
    total = weights.sum()
    return weights / total if total > 0 else np.full(n, 1 / n)


def cut(w: Floats, value: float, grad: Floats, alpha: float) -> tuple[Floats, float]:
    """Return the tangent of the risk R = f − (alpha/2)‖·‖² at w: R(w') ≥ slope·w' + offset."""
    slope = grad - alpha * w
    return slope, float(value - 0.5 * alpha * (w @ w) - slope @ w)
