"""One stream for any loss and any measure, against lists ranked in the loop itself and losses that are linked in."""

import os
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest
from scipy.sparse import csr_array

import toprank as tr
from toprank.measures import Measure
from toprank.solvers.steps import Scaling, Steps
from toprank.solvers.stream import CALLED, OnlineDescent
from toprank.surrogates import ListNet, Minimax, PairwiseHinge, Slam, Surrogate

LEARNERS = [
    OnlineDescent(Slam("ndcg@3", within="score"), tr.measure("ndcg@3"), Steps(0.1), compare=True),
    OnlineDescent(Slam("ndcg", within="score"), tr.measure("ndcg"), Steps.parse("adaptive"), scaling=Scaling.RUNNING),
    OnlineDescent(Slam("map"), tr.measure("map"), Steps.parse("sqrt:0.3"), scaling=Scaling.QUERY),
    OnlineDescent(Minimax(above=0.0), tr.measure("map"), Steps(1.0)),
    OnlineDescent(ListNet("gains"), tr.measure("ndcg@5"), Steps(0.1), always=True),
]


def called(learner):
    """The same learner with judge and loss called by address."""
    same = OnlineDescent(**{name: getattr(learner, name) for name in learner.__dataclass_fields__})
    vars(same).update(_ranked=None, _linked=CALLED)
    return same


@pytest.fixture(scope="module")
def data():
    made = tr.datasets.make_graded(n_queries=60, n_docs=(1, 40), n_features=11, random_state=1)
    weight = np.random.default_rng(0).uniform(0, 2, 60)
    weight[3] = 0
    return tr.QueryDataset.from_arrays(np.where(made.X > 0, made.X, 0), made.y, made.qid, query_weight=weight)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda one: f"{type(one.surrogate).__name__}-{one.measure}")
def test_calling_does_what_ranking_here_does(learner, data):
    order = np.random.default_rng(2).permutation(data.n_queries)
    found = []
    for one in (learner, called(learner)):
        for X in (data.X, csr_array(data.X)):
            state = one.start(data.n_features)
            rounds = one.play(state, X, data.y, data.ptr, order, data.query_weight)
            found.append((state.weights, state.totals, rounds))
    for weights, totals, rows in found[1:]:
        np.testing.assert_allclose(weights, found[0][0], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(totals, found[0][1], rtol=1e-9)
        np.testing.assert_allclose(rows, found[0][2], rtol=1e-8, atol=1e-9)
    assert 0 < len(found[0][2]) < data.n_queries  # lists of one document or weight 0 are no rounds


@pytest.mark.parametrize("learner", [*LEARNERS[:1], called(LEARNERS[0])], ids=["ranked", "called"])
def test_the_judge_does_not_read_the_order_of_rows(learner):
    """All scores are 0: the expected value, whatever order the rows are in."""
    y, X = np.array([2.0, 1.0, 0.0, 0.0, 0.0, 1.0]), np.eye(6)
    measured = []
    for rows in (np.argsort(-y), np.argsort(y), np.arange(6)):
        rounds = learner.play(learner.start(6), X[rows], y[rows], np.array([0, 6]))
        measured.append(rounds[0, 0])
        assert rounds[0, 2] == 1  # a mistake, also where the rows stand by grade
    assert measured[0] == measured[1] == measured[2] < 1
    wanted = tr.measure("ndcg@3:ties=average").per_query(np.zeros(6), y, [0, 6])[0]
    assert measured[0] == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("learner", [LEARNERS[0], called(LEARNERS[0])], ids=["ranked", "called"])
def test_grades_may_be_integers_apart_or_read_only(learner, data):
    """Compiled code is handed their address: it must find numbers in double precision, one after the other."""
    apart, fixed = np.repeat(data.y, 2)[::2], data.y.copy()
    fixed.flags.writeable = False
    weights = []
    for y in (data.y, data.y.astype(np.int64), apart, fixed):
        state = learner.start(data.n_features)
        learner.play(state, data.X, y, data.ptr)
        weights.append(state.weights)
    for found in weights[1:]:
        np.testing.assert_array_equal(found, weights[0])


def test_any_measure_judges_and_any_loss_is_stepped_on(data):
    @dataclass(frozen=True)
    class First(Measure):
        """Whether the best document comes first."""

        short_name: ClassVar[str] = "first-of-test"

        def per_query(self, scores, y, ptr, *, doc_ids=None):
            return np.array([float(y[a:b][scores[a:b].argmax()] == y[a:b].max()) for a, b in pairwise(ptr)])

    @dataclass(frozen=True)
    class Plain(Surrogate):
        """PairwiseHinge behind a Python function."""

        convex: ClassVar[bool] = True
        smooth: ClassVar[bool] = False

        def per_query(self, scores, y, ptr):
            return PairwiseHinge().per_query(scores, y, ptr)

    states = []
    for loss in (Plain(), PairwiseHinge()):
        learner = OnlineDescent(loss, First(), Steps(0.05))
        states.append(learner.start(data.n_features))
        rounds = learner.play(states[-1], data.X, data.y, data.ptr)
        assert set(rounds[:, 0]) == {0.0, 1.0}
        assert (rounds[:, 1] > 0)[rounds[:, 2] == 0].sum() == 0  # no step where the judge is content
    assert states[0].weights.tobytes() == states[1].weights.tobytes()


def test_minimax_for_map_reads_grades_as_relevant_or_not():
    """Two relevant documents in the wrong order are no pair (Algorithm 3 for AP)."""
    X, y = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]), np.array([2.0, 1.0, 0.0])
    ranker = tr.MinimaxPerceptron("map", shuffle=False, epochs=1, average=False).fit(X, y)
    np.testing.assert_allclose(np.abs(ranker.coef_), [1.0, 1.0])  # document 0 or 1 against 2, not 0 against 1
    again = tr.MinimaxPerceptron("map", shuffle=False, epochs=9, average=False).fit(X, y)
    assert again.coef_.tolist() == ranker.coef_.tolist()


@pytest.mark.parametrize("make", [lambda: tr.SlamPerceptron("ndcg"), lambda: tr.OnlineListNet(truth="gains")])
def test_a_grade_past_all_numbers_is_named(make):
    with pytest.raises(tr.InputError, match="grade 2000 in row 1"):
        make().fit(np.eye(3), [0, 2000, 1])


def test_a_linked_loss_is_compiled_where_a_list_needs_it_and_the_stream_goes_on(data):
    target, y = tr.measure("ndcg@3"), data.y.copy()
    loss = Slam(target, margin=0.75, within="score")
    learner = OnlineDescent(loss, target, Steps(0.1), scaling=Scaling.RUNNING)
    learner.play(learner.start(11), data.X, y, data.ptr)
    assert not learner.functions[1].is_compiled
    odd = np.flatnonzero(learner.rounds(y, data.ptr))[20:40:5]
    y[data.ptr[odd]] += 0.5  # grades that are not whole are no levels
    at_once, one_by_one = learner.start(11), learner.start(11)
    rounds = learner.play(at_once, data.X, y, data.ptr)
    assert learner.functions[1].is_compiled
    apart = [learner.play(one_by_one, data.X, y, data.ptr, np.array([q])) for q in range(data.n_queries)]
    assert np.array_equal(rounds, np.concatenate(apart))
    assert np.array_equal(at_once.weights, one_by_one.weights)
    assert np.array_equal(at_once.totals, one_by_one.totals)


def test_sparse_batches_of_one_row_are_read_within_their_arrays():
    """Their list of rows is longer than X: the row that each is held against is the same for all."""
    code = "import numpy as np, scipy.sparse as sp, toprank as tr\nX, y = sp.csr_array(np.eye(50)), np.arange(50) % 2\n"
    code += "print(tr.PerceptronAtK(k=1, batch_size=1, epochs=1).fit(X, y).n_batches_)"
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": os.environ["NUMBA_CACHE_DIR"] + "-bounds"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "50\n", done.stderr
