"""Placed data: the bits of one machine, whatever the number of parts and workers."""

import gc
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

import toprank as tr
from toprank.data import blocks
from toprank.objective import Objective
from toprank.penalties import L2
from toprank.solvers import adarank

from .conftest import judged, until

pytestmark = pytest.mark.usefixtures("short_runs")

RANKERS = [
    tr.ListNet(max_iter=8),
    tr.ListNet(max_iter=8, penalty=tr.L1(1e-2), signs={1: "+", 2: "-"}),
    tr.ListMLE(max_iter=5, ties="sampled"),
    tr.ListNet(max_iter=5, transform="linear"),
    tr.RankCosine(max_iter=5),
    tr.RankSVM(max_iter=4),
    tr.RankSVM(loss="hinge", max_iter=8),
    tr.SVMMap(max_iter=8),
    tr.SVMPerf(kappa=0.5, max_iter=8),
    tr.AdaRank("map", rounds=6),
    tr.AdaRank("ndcg@5", rounds=4, rule="paper"),
    tr.LinearRanker(tr.surrogates.Slam("ndcg@10"), solver="bundle", max_iter=6),
]


def fitted(ranker, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are stopped early
        return type(ranker)(**ranker.get_params()).fit_queries(*data)


@pytest.mark.parametrize("parts", [1, 2, 7, 26])
def test_the_objective_has_the_same_bits_for_any_number_of_parts(client, parts):
    data = judged()
    far = tr.dask.place(data, client, parts=parts)
    assert len(far.X.specs) == parts
    w = np.random.default_rng(1).standard_normal(data.n_features)
    for loss in (tr.surrogates.ListNet(), tr.surrogates.PairwiseHinge("squared_hinge")):
        here, there = (Objective(each, loss, L2(0.1)) for each in (data, far))
        (value, grad), (value_there, grad_there) = here.value_and_grad(w), there.value_and_grad(w)
        assert value == value_there
        assert grad.tobytes() == grad_there.tobytes()
        if isinstance(loss, tr.surrogates.PairwiseHinge):
            assert here.expansion(w)[2](grad).tobytes() == there.expansion(w)[2](grad).tobytes()


@pytest.mark.parametrize("ranker", RANKERS, ids=repr)
def test_rankers_learn_the_same_bits(client, ranker):
    data = judged()
    here, there = fitted(ranker, data), fitted(ranker, tr.dask.place(data, client, parts=5))
    assert here.coef_.tobytes() == there.coef_.tobytes()
    assert here.coef_.any()
    assert (here.learned_from_.marks == there.learned_from_.marks).all()


def test_weights_float64_and_sparse_features(client):
    rng = np.random.default_rng(2)
    data = judged(dtype=np.float64, query_weight=rng.uniform(0, 2, 120))
    data = replace(data, doc_weight=rng.uniform(0.5, 2, data.n_docs))
    sparse = data.with_X(csr_array(np.where(rng.uniform(size=data.X.shape) < 0.3, data.X, 0)))
    for each in (data, sparse):
        here, there = (fitted(tr.ListNet(max_iter=5), one) for one in (each, tr.dask.place(each, client, parts=3)))
        assert here.coef_.tobytes() == there.coef_.tobytes()


def test_grades_and_weights_that_change_after_placing_travel_too(client):
    data = judged()
    far = tr.dask.place(data, client, parts=4)
    changes = {"y": 3 - data.y, "query_weight": np.linspace(0, 1, data.n_queries)}
    here, there = (fitted(tr.ListNet(max_iter=5), replace(one, **changes)) for one in (data, far))
    assert here.coef_.tobytes() == there.coef_.tobytes()
    assert fitted(tr.ListNet(max_iter=5), far).coef_.tobytes() != there.coef_.tobytes()


@pytest.mark.parametrize("scale", [None, "running"])
def test_online_rankers_send_their_state_along_the_parts(client, scale):
    data, valid = judged(), judged(40, seed=5)
    ranker = tr.SlamPerceptron("ndcg@10", epochs=3, shuffle=False, scale=scale)
    far = [tr.dask.place(part, client, parts=3) for part in (data, valid)]
    for here, there in (((data,), far[:1]), ((data, valid), far)):
        one, other = fitted(ranker, *here), fitted(ranker, *there)
        assert one.coef_.tobytes() == other.coef_.tobytes()
        assert one.trace_["measure"].tobytes() == other.trace_["measure"].tobytes()
        assert one.n_epochs_ == other.n_epochs_ == 3
    with pytest.raises(tr.InputError, match="shuffle=True needs all lists in one memory"):
        tr.SlamPerceptron().fit_queries(far[0])


def test_adarank_is_watched_on_placed_data(client):
    data, valid = judged(), judged(40, seed=5)
    far = [tr.dask.place(part, client, parts=3) for part in (data, valid)]
    one, other = (fitted(tr.AdaRank("map", rounds=5), *both) for both in ((data, valid), far))
    assert one.trace_["valid"].tobytes() == other.trace_["valid"].tobytes()
    assert one.coef_.tobytes() == other.coef_.tobytes()
    assert [str(c) for c in one.certify(data)] == [str(c) for c in other.certify(far[0])]


def made(dask_worker):
    """How many results the parts of a worker keep, and how many parts there are."""
    parts = [part for key, part in dask_worker.data.items() if "toprank-part" in str(key)]
    return sum(len(part.made) for part in parts), len(parts)


def test_adaranks_table_stays_on_the_workers_and_older_scores_do_not(client, monkeypatch):
    gc.collect()
    until(lambda: not any(parts for _, parts in client.run(made).values()))  # those of other tests are gone
    data, seen, sizes = judged(), [], []
    far = tr.dask.place(data, client, parts=5)
    plain, answers = adarank._Ensemble.plus, blocks.combined

    def plus(self, *step, **alone):
        until(lambda: results_and_parts()[0] <= 2 * 5)  # each part keeps the ensemble and the step tried last
        assert results_and_parts()[1] == 10
        seen.append(max(sizes))
        return plain(self, *step, **alone)

    def results_and_parts():
        return [sum(counts) for counts in zip(*client.run(made).values(), strict=True)]

    def combined(*results):
        found = answers(*results)
        sizes.append(len(pickle.dumps(found)))
        return found

    monkeypatch.setattr(adarank._Ensemble, "plus", plus)
    monkeypatch.setattr(blocks, "combined", combined)
    there = fitted(tr.AdaRank("map", rounds=6), far)
    assert there.n_iter_ > 2
    assert max(seen) < 8 * data.n_queries  # sums over queries came back, and no value of each of them
    gc.collect()
    until(lambda: sum(parts for _, parts in client.run(made).values()) == 5)  # and nothing but the rows is left


def test_a_search_over_settings(client, tmp_path):
    from toprank._checkpoint import Checkpoint
    from toprank.contests.search import Search
    from toprank.contests.settings import Candidate

    data, valid = judged(), judged(40, seed=5)
    tried = Candidate("ListNet", (tr.ListNet(max_iter=4), tr.ListNet(max_iter=4, alpha=0.1)))
    search = Search(tr.measure("ndcg@10"), [tried], Checkpoint(tmp_path), lambda *_: None)
    far = [tr.dask.place(part, client, parts=3) for part in (data, valid)]
    one, other = (search.run(*both, allotment=1e9)["ListNet"] for both in ((data, valid), far))
    assert one.valid == other.valid
    assert other.tried == 2
    assert one.ranker.coef_.tobytes() == other.ranker.coef_.tobytes()


def test_a_placed_validation_part_ends_learning_at_the_same_step(client):
    data, valid = judged(), judged(40, seed=5)
    far = [tr.dask.place(part, client, parts=3) for part in (data, valid)]
    ranker = tr.ListNet(patience=2)
    here, there = fitted(ranker, data, valid), fitted(ranker, *far)
    assert here.trace_["valid"].tobytes() == there.trace_["valid"].tobytes()
    assert here.coef_.tobytes() == there.coef_.tobytes()
    paths = [fitted(tr.RankSVM(C=[0.01, 0.1], max_iter=4), *parts) for parts in ((data, valid), far)]
    assert paths[0].C_ == paths[1].C_
    assert paths[0].coef_.tobytes() == paths[1].coef_.tobytes()


def test_evaluation_scores_and_certificates(client):
    data, test = judged(), judged(60, seed=9)
    far = tr.dask.place(test, client, parts=3)
    ranker = fitted(tr.ListNet(max_iter=5), data)
    assert ranker.predict(test).tobytes() == ranker.predict(far).tobytes()
    assert (ranker.rank(test) == ranker.rank(far)).all()
    here, there = (tr.evaluate(ranker, one, ["ndcg@10", "map"]) for one in (test, far))
    assert here.to_dict(per_query=True) == there.to_dict(per_query=True)
    first = tr.certify(ranker, test)[0]
    with pytest.warns(UserWarning, match="theorems about ListNet are left out: all rows of X are needed"):
        again, *others = tr.certify(ranker, far)
    assert (first.lower, first.upper, first.verdict) == (again.lower, again.upper, again.verdict)
    assert not others
    machine = fitted(tr.RankSVM(max_iter=4), data)
    both = [tr.certify(machine, one) for one in (data, tr.dask.place(data, client))]
    assert [str(certificate) for certificate in both[0]] == [str(certificate) for certificate in both[1]]
    assert len(both[0]) > 2
    assert both[1][0].verdict == "does not apply"  # it learned from these


REFUSED = [
    tr.RankBoost(rounds=3), tr.KernelSlamPerceptron(), tr.PerceptronAtK(k=3), tr.SGDAtK(k=3), tr.OnePassMiniBatch(k=3),
    tr.PermuRank(rounds=2), tr.PDGD(),
]  # fmt: skip


@pytest.mark.parametrize("ranker", REFUSED, ids=repr)
def test_what_needs_all_rows_in_one_memory_says_so_at_once(client, ranker, monkeypatch):
    far = tr.dask.place(judged(), client)

    def read(*_):
        pytest.fail("the rows were asked for")

    monkeypatch.setattr(far.X, "reduce", read)
    monkeypatch.setattr(far.X, "walk_parts", read)
    with pytest.raises(tr.InputError, match=f"^{type(ranker).__name__}: all rows of X are needed in one memory"):
        ranker.fit_queries(far)


def test_mapped_parts_give_the_same_bits_and_leave_no_files(client):
    data = judged()
    ranker = tr.ListNet(max_iter=5)
    sparse = data.with_X(csr_array(np.where(data.X > 1, data.X, 0)))
    for one in (data, sparse):
        far = tr.dask.place(one, client, parts=3, mapped=True)
        assert fitted(ranker, one).coef_.tobytes() == fitted(ranker, far).coef_.tobytes()
    left = client.run(lambda dask_worker: __import__("os").listdir(dask_worker.local_directory))
    assert not any(name.startswith("tmp") for names in left.values() for name in names)


def test_bad_arguments(client):
    data = judged(5)
    with pytest.raises(tr.InputError, match=r"client must be a distributed\.Client"):
        tr.dask.place(data, "tcp://nowhere:1")
    with pytest.raises(tr.InputError, match="parts"):
        tr.dask.place(data, client, parts=0)
    with pytest.raises(tr.InputError, match="timeout"):
        tr.dask.place(data, client, timeout=0)
