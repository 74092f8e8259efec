"""The learners of precision at the top against their listings in the paper, batch by batch."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import toprank as tr
from tests.oracles import precision_at_k as oracle
from toprank.errors import InputError
from toprank.solvers.at_k import ALGORITHMS, LearnerAtK
from toprank.solvers.batches import Batches
from toprank.solvers.steps import Rule, Steps
from toprank.surrogates import PrecAvg, PrecMax, PrecStruct
from toprank.surrogates.precision_at_k import MistakesAvg, MistakesMax

SUBGRADIENTS = {
    PrecAvg: oracle.avg_subgradient,
    PrecMax: oracle.max_subgradient,
    PrecStruct: oracle.struct_subgradient,
}
LOSSES = {
    MistakesAvg: oracle.loss,
    MistakesMax: oracle.loss,
    PrecAvg: oracle.avg,
    PrecMax: oracle.maximum,
    PrecStruct: oracle.struct,
}
FORMS = {
    "dense": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "sparse": csr_array,
}


def rows(seed, n=90, d=5):
    """Rows whose values float32 holds exactly, some of them 0."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < 0.6, rng.normal(size=(n, d)), 0).astype(np.float32).astype(np.float64)
    return X, (rng.random(n) < 0.4).astype(float)


def listing(kind, batches, d, steps, normalize, **places):
    """The iterates of the paper's listing."""
    if kind in SUBGRADIENTS:
        options = {"eta": steps.eta, "radius": steps.radius, "normalize": normalize}
        return oracle.sgd(batches, d, SUBGRADIENTS[kind], **options, **places)
    run = oracle.perceptron_avg if kind is MistakesAvg else oracle.perceptron_max
    return run(batches, d, **places)[0]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dealt", [False, True], ids=["as stored", "permuted"])
@pytest.mark.parametrize("kind", ALGORITHMS)
def test_each_kernel_is_its_listing(kind, dealt, form):
    """Iterates, their mean and every loss; batches of one class are no rounds."""
    for seed, places in enumerate(({"k": 2}, {"kappa": 0.5}, {"kappa": 1.0})):
        X, y = rows(seed)
        y[:6], y[6:12] = 0, 1
        data = tr.QueryDataset.from_arrays(FORMS[form](X), y)
        batches, normalize = Batches.of(data, 6), seed == 1 and kind in SUBGRADIENTS
        if dealt:
            batches = batches.mixed(np.random.default_rng(seed))
        at = batches.rows if dealt else np.arange(len(y))
        order = np.random.default_rng(1).permutation(batches.count)
        parts = [at[6 * c : 6 * c + 6] for c in order]
        parts = [part for part in parts if 0 < y[part].sum() < len(part)]
        given = [(X[part].tolist(), y[part].astype(int).tolist()) for part in parts]
        steps = Steps(0.7, Rule.SQRT, radius=0.8) if kind in SUBGRADIENTS else Steps(1.0)
        iterates = np.array(listing(kind, given, 5, steps, normalize, **places))
        learner = LearnerAtK(kind(normalize=normalize, **places), steps)
        state = learner.start(5)
        lost = learner.play(state, batches, order)
        np.testing.assert_allclose(state.w, iterates[-1], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(state.average, iterates.mean(axis=0), rtol=1e-9, atol=1e-12)
        before, expected = np.vstack([np.zeros(5), iterates[:-1]]), []
        for w, part in zip(before, parts, strict=True):
            labels = y[part].astype(int).tolist()
            k = oracle.batch_k(labels, **both(places))
            expected.append((LOSSES[kind]((X[part] @ w).tolist(), labels, k), k))
        losses, ks = map(np.array, zip(*expected, strict=True))
        assert lost.loss == pytest.approx(losses.sum(), rel=1e-9, abs=1e-9)
        assert lost.share == pytest.approx((losses / ks).sum(), rel=1e-9, abs=1e-9)
        assert (lost.batches, lost.places, lost.largest_k) == (len(parts), ks.sum(), ks.max())
        assert state.batches == len(parts) == batches.count - batches.skipped(order)


def both(places):
    return {"k": None, "kappa": None, **places}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ALGORITHMS)
def test_a_run_in_parts_is_the_run_with_the_same_bits(kind, form):
    X, y = rows(3)
    batches = Batches.of(tr.QueryDataset.from_arrays(FORMS[form](X), y), 10)
    learner = LearnerAtK(kind(kappa=0.5), Steps(0.7, Rule.SQRT, radius=0.8))
    whole, parts, order = learner.start(5), learner.start(5), np.random.default_rng(0).permutation(batches.count)
    learner.play(whole, batches, order)
    for part in np.array_split(order, 4):
        learner.play(parts, batches, part)
    assert (whole.w.tobytes(), whole.drift.tobytes()) == (parts.w.tobytes(), parts.drift.tobytes())
    assert (whole.batches, whole.updates) == (parts.batches, parts.updates)


def test_an_update_is_a_batch_that_moves_w():
    X, y = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]), [0, 1, 1, 0]
    learner = LearnerAtK(MistakesAvg(k=1))
    state = learner.start(2)
    lost = learner.play(state, Batches.of(tr.QueryDataset.from_arrays(X, y), 2), np.arange(2))
    assert (state.updates, state.batches, lost.loss, state.w.tolist()) == (1, 2, 1.0, [-1.0, 1.0])


@pytest.mark.parametrize("kind", ALGORITHMS)
def test_numbers_that_overflow_are_told_with_their_batch(kind):
    X, y = np.full((8, 1), 1e200), np.array([0, 1] * 4)
    X[::2] = -1e200
    learner = LearnerAtK(kind(k=1), Steps(1e200))
    batches = Batches.of(tr.QueryDataset.from_arrays(-X if kind in (MistakesAvg, MistakesMax) else X, y), 2)
    with pytest.raises(InputError, match=r"numbers overflow at batch \d: scale the features down"):
        learner.play(learner.start(1), batches, np.arange(4))
