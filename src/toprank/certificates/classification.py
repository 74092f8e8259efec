"""The classification perceptron's mistake bound, for scikit-learn's `Perceptron`."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np

from .._typing import ArrayLike, Floats, Ints
from ..data.csr import dense
from ..data.validation import as_matrix, as_vector
from ..errors import InputError
from .base import Assumption, Certificate


def certify_perceptron(model: Any, X: Any, y: ArrayLike, comparator: ArrayLike | None = None) -> list[Certificate]:
    """Bound the mistakes that scikit-learn's `Perceptron` made while it learned.

    mistakes ≤ L(u) + R‖u‖√L(u) + R²‖u‖² (Theorem 1), and ≤ R²/γ² where u separates with margin γ (Corollary 2).

    `model` is a fitted binary `sklearn.linear_model.Perceptron`. Its rounds, all epochs of them, are played again to
    count the mistakes, so it needs an integer `random_state` (or `shuffle=False`); that the replay ends at the model's
    own weights is checked. L(u) is the hinge loss of u on the mistake rounds. An intercept counts as one more feature
    with value 1. `comparator` has the weights, then the intercept; by default it is the model itself, at the length at
    which the bound with the hinge loss of all rounds is smallest (with that of the mistake rounds u = 0 would always
    be best, and would restate the mistakes). Vacuous where the bound is at least the number of rounds, or where u = 0
    gives as small a one.

    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.linear_model import Perceptron
    >>> X, y = make_blobs(200, centers=2, random_state=0, cluster_std=0.5)
    >>> model = Perceptron(random_state=0).fit(X, y)
    >>> [certificate.holds() for certificate in certify_perceptron(model, X, y)]
    [True, True]
    """
    rows = as_matrix(X)
    rows = np.asarray(dense(rows), dtype=np.float64)
    coef, classes = getattr(model, "coef_", None), list(getattr(model, "classes_", []))
    if coef is None or len(classes) != 2:
        raise InputError("certify_perceptron needs a fitted Perceptron with two classes")
    if rows.shape[1] != coef.shape[1]:
        raise InputError(f"X has {rows.shape[1]} features, the model {coef.shape[1]}")
    if np.shape(y) != (len(rows),):
        raise InputError(f"y must have one label for each of the {len(rows)} rows")
    sign = np.where(np.asarray(y) == classes[1], 1.0, -1.0)
    if model.fit_intercept:
        rows = np.hstack([rows, np.ones((len(rows), 1))])
    own = np.append(coef[0], model.intercept_) if model.fit_intercept else coef[0]
    missed, w = _replay(model, rows, sign)
    same = Assumption("these rounds are the model's own", bool(np.allclose(w, own, rtol=1e-9, atol=1e-9)))
    rounds = len(rows) * int(np.max(model.n_iter_))
    radius = sqrt(float((rows**2).sum(axis=1).max(initial=0.0)))

    def price(u: Floats) -> float:
        """The bound with the hinge loss of all rounds: every pass has each row once, in whatever order."""
        return _bound(radius, float(np.linalg.norm(u)), rounds / len(rows) * _hinge(u, rows, sign))

    width = rows.shape[1]
    u = own if comparator is None else as_vector(comparator, width, "the comparator (weights, then the intercept)")
    norm = float(np.linalg.norm(u))
    margin = float((sign * (rows @ u)).min(initial=inf)) / norm if norm > 0 else 0.0
    if comparator is None and norm > 0:
        lengths = [*np.geomspace(1e-4, 1e4, 161), *([1 / margin] if 0 < margin < inf else [])]
        u = min((c / norm * u for c in lengths), key=price)
        norm = float(np.linalg.norm(u))
    loss = _hinge(u, rows[missed], sign[missed])
    bound = _bound(radius, norm, loss)
    separates = Assumption(f"u/‖u‖ classifies every row with margin γ = {margin:.4g}", margin > 0)
    terms = {"u": u, "‖u‖": norm, "L(u)": loss, "R": radius, "rounds": rounds}
    known = float(rounds) if price(u) < rounds else bound  # where u = 0 does as well, L(u) restates the mistakes
    wrong = float(len(missed))
    return [
        Certificate(
            "mistakes ≤ L(u) + R‖u‖√L(u) + R²‖u‖²", bound, wrong, "Theorem 1", (same,), vacuous_from=known,
            meaning=f"of {rounds:,} rows shown while it learned, at most {bound:.6g} were classified wrongly",
            terms=terms,
            arithmetic=f"{loss:.6g} + {radius:.4g}·{norm:.4g}·√{loss:.6g} + ({radius:.4g}·{norm:.4g})² = {bound:.6g}",
        ),
        Certificate(
            "mistakes ≤ R²/γ²", radius**2 / margin**2 if margin > 0 else inf, wrong, "Corollary 2", (same, separates),
            vacuous_from=float(rounds), meaning="however long it went on, its mistakes were bound to end",
            terms=terms | {"γ": margin}, arithmetic=f"{radius:.4g}²/{margin:.4g}²",
        ),
    ]  # fmt: skip


def _hinge(u: Floats, rows: Floats, sign: Floats) -> float:
    """Σ (1 − y u·x)₊."""
    return float(np.maximum(0, 1 - sign * (rows @ u)).sum())


def _bound(radius: float, norm: float, loss: float) -> float:
    return loss + radius * norm * sqrt(loss) + (radius * norm) ** 2


def _replay(model: Any, rows: Floats, sign: Floats) -> tuple[Ints, Floats]:
    """Return the rows missed, one entry per mistake round, and the final weights."""
    order = np.arange(len(rows))
    seed = 0
    if model.shuffle:
        if not isinstance(model.random_state, (int, np.integer)):
            raise InputError("give Perceptron an integer random_state (or shuffle=False): its rounds are played again")
        state = np.random.RandomState(model.random_state)
        state.randint(1, np.iinfo(np.int32).max)  # the data set's own seed, drawn first
        seed = int(state.randint(0, np.iinfo(np.int32).max))
    w, missed = np.zeros(rows.shape[1]), []
    for _ in range(int(np.max(model.n_iter_))):
        if model.shuffle:
            _shuffle(order, seed)
        for i in order:
            if sign[i] * (rows[i] @ w) <= 0:
                w += model.eta0 * sign[i] * rows[i]
                missed.append(i)
    return np.array(missed, dtype=np.int64), w


def _shuffle(order: Ints, seed: int) -> None:
    """Shuffle as scikit-learn's stochastic gradient descent does: Fisher and Yates with Marsaglia's xorshift."""
    x = seed & 0xFFFFFFFF or 1
    n = len(order)
    for i in range(n - 1):
        x ^= (x << 13) & 0xFFFFFFFF
        x ^= x >> 17
        x ^= (x << 5) & 0xFFFFFFFF
        j = i + (x & 0x7FFFFFFF) % (n - i)
        order[i], order[j] = order[j], order[i]
