"""Any surrogate becomes a ranker: it fits, goes on with a stream, is saved, loaded and exported."""

import inspect
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import toprank as tr
from toprank import surrogates
from toprank.objective import Objective
from toprank.penalties import L2
from toprank.surrogates import Surrogate


@tr.register
@dataclass(frozen=True)
class PairwiseLogistic(Surrogate):
    """ℓ(s, y) = Σ_{y_i > y_j} log(1 + e^{−(s_i − s_j)})."""

    convex: ClassVar[bool] = True
    scale: float = 1.0

    def per_query(self, scores, y, ptr):
        losses, grad = np.zeros(len(ptr) - 1), np.zeros_like(scores)
        for q, (a, b) in enumerate(pairwise(ptr)):
            gap = self.scale * (scores[a:b, None] - scores[None, a:b])
            better = y[a:b, None] > y[None, a:b]
            losses[q] = np.logaddexp(0, -gap)[better].sum()
            pull = self.scale * np.where(better, 1 / (1 + np.exp(gap)), 0)
            grad[a:b] = pull.sum(axis=0) - pull.sum(axis=1)
        return losses, grad


def _instances():
    kinds = [getattr(surrogates, name) for name in surrogates.__all__]
    kinds = [k for k in kinds if isinstance(k, type) and issubclass(k, Surrogate) and not inspect.isabstract(k)]
    made = [k(k=1) if "kappa" in inspect.signature(k).parameters else k() for k in kinds]
    return [*made, PairwiseLogistic(), tr.surrogates.PairwiseHinge("squared_hinge")]


# A loss of whole orders takes lists of a few documents only, and a step function has no slope to follow.
LEARN = [loss for loss in _instances() if type(loss).__name__ != "TypeOne"]


@pytest.fixture(scope="module")
def data():
    return tr.datasets.make_graded(n_queries=12, n_docs=(3, 5), n_features=4, n_grades=2, random_state=0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("loss", LEARN, ids=lambda loss: type(loss).__name__)
class TestEverySurrogate:
    def test_it_learns_and_lives_in_a_file(self, loss, data, tmp_path):
        ranker = tr.LinearRanker(loss, alpha=0.1).fit_queries(data)
        objective = Objective(data, loss, L2(0.1))
        assert objective.value_and_grad(ranker.coef_)[0] < objective.value_and_grad(np.zeros(4))[0]
        ranker.save(tmp_path / "model.json")
        again = tr.load(tmp_path / "model.json")
        assert again.surrogate == loss
        assert again.predict(data).tobytes() == ranker.predict(data).tobytes()
        refitted = again.fit_queries(data)
        assert refitted.coef_.tobytes() == ranker.coef_.tobytes()

    def test_the_minimum_is_a_minimum(self, loss, data):
        """No step in any direction is lower by more than the gap that the solution states."""
        if not loss.convex:
            return
        ranker = tr.LinearRanker(loss, alpha=0.1, max_iter=2000).fit_queries(data)
        assert ranker.solution_.converged
        objective = Objective(data, loss, L2(0.1))
        here = objective.value_and_grad(ranker.coef_)[0]
        rng = np.random.default_rng(0)
        around = [objective.value_and_grad(ranker.coef_ + rng.normal(size=4) * size)[0] for size in (1e-3, 0.1) * 20]
        assert min(around) >= here - ranker.solution_.gap - 1e-9
        assert ranker.solution_.gap < 1e-3

    def test_partial_fit_goes_on_after_a_file(self, loss, data, tmp_path):
        ranker = tr.LinearRanker(loss)
        if not loss.convex:
            with pytest.raises(tr.InputError, match="partial_fit needs a convex loss"):
                ranker.partial_fit_queries(data)
            return
        whole = tr.LinearRanker(loss).partial_fit_queries(data)
        ranker.partial_fit_queries(data[:6]).save(tmp_path / "half.json")
        again = tr.load(tmp_path / "half.json").partial_fit(data[6:].X, data[6:].y, data[6:].qid)
        assert again.coef_.tobytes() == whole.coef_.tobytes()
        assert again.n_queries_in_ == data.n_queries
        assert whole.coef_.any()


def test_partial_fit_starts_at_the_fitted_weights(data):
    ranker = tr.LinearRanker(PairwiseLogistic(), average=False, steps=1e-12).fit_queries(data)
    before = ranker.coef_.copy()
    ranker.partial_fit_queries(data[:1])
    np.testing.assert_allclose(ranker.coef_, before, atol=1e-9)
    assert ranker.coef_.tobytes() != before.tobytes()


def test_solvers_agree(data):
    loss = tr.surrogates.PairwiseHinge("squared_hinge")
    found = [
        tr.LinearRanker(loss, alpha=0.5, solver=solver, tol=1e-7, max_iter=5000).fit_queries(data).coef_
        for solver in ("auto", "lbfgs", "newton", "bundle")
    ]
    for coef in found[1:]:
        np.testing.assert_allclose(coef, found[0], atol=0.03)


@pytest.mark.filterwarnings("ignore:LinearRanker learned nothing")
def test_names_and_refusals(data):
    named = tr.LinearRanker("PairwiseHinge", alpha=0.1).fit_queries(data)
    given = tr.LinearRanker(tr.surrogates.PairwiseHinge(), alpha=0.1).fit_queries(data)
    assert named.coef_.tobytes() == given.coef_.tobytes()
    for bad in ("NoSuchLoss", "Surrogate", 3):
        with pytest.raises(tr.InputError, match="surrogate must be one of"):
            tr.LinearRanker(bad).fit_queries(data)
    with pytest.raises(tr.InputError, match="knows no radius"):
        tr.LinearRanker("PairwiseHinge", radius=1.0, solver="bundle").fit_queries(data)
    with pytest.warns(ConvergenceWarning, match="LinearRanker learned nothing"):
        tr.LinearRanker("TypeOne").fit_queries(data)


@pytest.mark.parametrize(
    "ranker",
    [
        tr.LinearRanker(PairwiseLogistic(), alpha=0.1),
        tr.ListNet(),
        tr.RankCosine(),
        tr.RankSVM(),
        tr.RankSVM(loss="hinge"),
        tr.SVMMap(),
        tr.SVMPerf(),
    ],
    ids=repr,
)
def test_warm_start_begins_at_the_weights_so_far(data, ranker):
    ranker = clone(ranker).set_params(warm_start=True).fit_queries(data)
    first = ranker.n_iter_
    assert first > 1
    cold = ranker.coef_.copy()
    assert ranker.fit_queries(data).n_iter_ < first
    np.testing.assert_allclose(ranker.coef_, cold, atol=0.05 * np.abs(cold).max())
    wide = tr.datasets.make_graded(n_queries=5, n_features=9, random_state=0)
    with pytest.raises(tr.InputError, match="warm_start: the weights so far are for 4 features"):
        ranker.fit_queries(wide)


def test_an_unregistered_class_cannot_be_saved(data, tmp_path):
    @dataclass(frozen=True)
    class Own(PairwiseLogistic):
        pass

    ranker = tr.LinearRanker(Own()).fit_queries(data)
    with pytest.raises(tr.InputError, match=r"surrogate cannot be saved: Own .*toprank.register\(Own\)"):
        ranker.save(tmp_path / "model.json")
    with pytest.raises(tr.InputError, match="frozen dataclass"):
        tr.register(dict)
    # A file cannot name what is not registered, and nothing is imported to find out.
    tr.LinearRanker(PairwiseLogistic()).fit_queries(data).save(tmp_path / "model.json")
    text = (tmp_path / "model.json").read_text()
    (tmp_path / "model.json").write_text(text.replace(":PairwiseLogistic", ":Popen"))
    with pytest.raises(tr.InputError, match="unknown value"):
        tr.load(tmp_path / "model.json")
