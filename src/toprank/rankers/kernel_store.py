"""The documents that a kernel perceptron holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._typing import Floats
from ..data._piles import physical_memory
from ..errors import InputError
from ..solvers.steps import Total
from .models import KernelModel

if TYPE_CHECKING:
    from .kernel import KernelSlamPerceptron


class Store:
    """Documents on a budget: arrays of `budget` places, of which the first counters[0] are taken."""

    def __init__(self, settings: tuple[Any, ...], arrays: dict[str, Any]) -> None:
        self.settings = settings
        self.documents, self.alpha, self.age = arrays["documents"], arrays["alpha"], arrays["age"]
        self.counters, self.rng, self.totals = arrays["counters"], arrays["rng"], arrays["totals"]

    @classmethod
    def empty(cls, ranker: KernelSlamPerceptron, n_features: int, seed: int) -> Store:
        """Return a store of the ranker's budget, refusing one that this machine cannot hold."""
        size = 8 * ranker.budget * (n_features + 2)
        if size > physical_memory():
            raise InputError(
                f"budget={ranker.budget} documents of {n_features} features take {size / 1e9:.1f} GB, more than this "
                "machine has: lower the budget"
            )
        first = np.random.SeedSequence(seed).generate_state(1, np.uint64)
        arrays = {
            "documents": np.zeros((ranker.budget, n_features)),
            "alpha": np.zeros(ranker.budget),
            "age": np.zeros(ranker.budget, dtype=np.int64),
            "counters": np.zeros(3, dtype=np.int64),
            "rng": np.maximum(first, np.uint64(1)),
            "totals": np.zeros(len(Total)),
        }
        return cls(settings(ranker, n_features), arrays)

    def copy(self) -> Store:
        """Return a copy that can be added to while this one stays."""
        names = ("documents", "alpha", "age", "counters", "rng", "totals")
        return Store(self.settings, {name: getattr(self, name).copy() for name in names})

    def equals(self, other: Store) -> bool:
        """Say whether both hold the same documents and saw the same rounds, to the last bit."""
        mine, theirs = self.model(), other.model()
        pairs = ((mine.stored, theirs.stored), (mine.alpha, theirs.alpha), (self.totals, other.totals))
        return all(np.array_equal(a, b) for a, b in (*pairs, (self.counters, other.counters)))

    def model(self) -> KernelModel:
        """Return the scoring function; it shares the stored documents."""
        n = int(self.counters[0])
        return self.function(self.documents[:n], self.alpha[:n])

    def function(self, documents: Floats, alpha: Floats) -> KernelModel:
        """Return Σ_b alpha_b k(s_b, ·) of any documents."""
        kernel, gamma, coef0, degree, _, _ = self.settings
        return KernelModel(documents, alpha, kernel, gamma, coef0, degree)

    def add(self, X: Floats, change: Floats) -> None:
        """Add Σ_i change_i k(x_i, ·), dropping what the budget has no place for."""
        from . import _kernel_kernels as kernels

        drop = kernels.Drop[self.settings[5].upper()]
        kernels.store(X, change, drop, self.documents, self.alpha, self.age, self.counters, self.rng)


def squared_norm(f: KernelModel) -> float:
    """‖f‖² = Σ_b alpha_b f(s_b) in the space of the kernel."""
    values = np.empty(len(f.alpha))
    f.score_rows(f.stored, values)
    total = float((f.alpha * values).sum())
    return 0.0 if total < 0 else total  # rounding can leave a little below 0; what is not finite must stay so


def settings(ranker: KernelSlamPerceptron, n_features: int) -> tuple[Any, ...]:
    """Return what stored documents depend on: kernel, gamma, coef0, degree, budget and drop."""
    gamma = 1 / n_features if ranker.gamma is None else float(ranker.gamma)
    return ranker.kernel, gamma, float(ranker.coef0), int(ranker.degree), int(ranker.budget), ranker.drop
