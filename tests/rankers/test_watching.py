"""The validation set: its weights count, patience ends learning, and one that cannot choose says so."""

from dataclasses import replace

import numpy as np
import pytest

import toprank as tr
from tests.rankers.test_failed_fit import small
from toprank import rankers
from toprank.rankers.watching import BestOnValidation

ALL = [getattr(rankers, name) for name in rankers.__all__]


@pytest.fixture(scope="module")
def parts():
    made = tr.datasets.make_graded(n_queries=40, n_docs=(5, 9), n_features=4, n_grades=2, random_state=3)
    return made[:20], made[20:]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ALL)
class TestEveryRanker:
    def test_the_weights_of_the_validation_queries_count(self, kind, parts):
        """Each value that was reached is the weighted mean, computed here from single queries alone."""
        train, valid = parts
        weight = np.zeros(valid.n_queries)
        weight[[2, 5]] = 1.0, 3.0
        heavy = small(kind).fit_queries(train, replace(valid, query_weight=weight))
        only = [small(kind).fit_queries(train, valid[[q]]) for q in (2, 5)]
        curve = heavy.trace_["valid"]
        assert len(curve) >= 1
        expected = (only[0].trace_["valid"][0] + 3 * only[1].trace_["valid"][0]) / 4
        if "auto" not in kind().get_params().values():  # else each look is the better of two weight vectors
            assert curve[0] == pytest.approx(expected, abs=1e-12)
        even = small(kind).fit_queries(train, valid)
        assert even.trace_["valid"][0] != pytest.approx(curve[0], abs=1e-6)

    def test_a_validation_set_that_cannot_choose_says_so(self, kind, parts):
        train, valid = parts
        blank = replace(valid, y=np.zeros(valid.n_docs))
        weightless = replace(valid, query_weight=np.zeros(valid.n_queries))
        for bad in (blank, weightless):
            with pytest.raises(tr.InputError, match="validation set cannot choose"):
                small(kind).fit_queries(train, bad)

    def test_arrays_and_data_sets_are_the_same_door(self, kind, parts):
        train, valid = parts
        rows = small(kind).fit(train.X, train.y, train.qid, valid=(valid.X, valid.y, valid.qid))
        queries = small(kind).fit_queries(train, valid)
        assert rows.predict(valid.X).tobytes() == queries.predict(valid.X).tobytes()
        assert rows.trace_["valid"].tolist() == queries.trace_["valid"].tolist()


@pytest.mark.parametrize("kind", ALL)
class TestBothDoors:
    """`fit` and `fit_queries` refuse the same input with the same words."""

    @pytest.mark.parametrize(
        ("spoil", "message"),
        [
            (lambda X, y, w: (X, np.where(np.arange(len(y)) == 3, -2.0, y), w), "negative grade -2 in row 3"),
            (lambda X, y, w: (X, np.where(np.arange(len(y)) == 3, 1024.0, y), w), "grade 1024 in row 3"),
            (lambda X, y, w: (X * np.array([1, 1e200, 1, 1]), y, w), "in column 1"),
            (lambda X, y, w: (X, y, w[:-1]), "query_weight"),
            (lambda X, y, w: (X, y, np.where(w == w, -1.0, w)), "query_weight"),
            (lambda X, y, w: (X, np.zeros(len(y)), w), "one class only|is informative"),
        ],
    )
    @pytest.mark.parametrize("seed", [None, 0])
    def test_the_same_words(self, kind, parts, spoil, message, seed):
        train, _ = parts
        two_classes = hasattr(kind, "predict_labels")
        if two_classes and "grade" in message:
            pytest.skip("labels of two classes may be any numbers")
        rows = np.arange(train.n_docs) if seed is None else np.random.default_rng(seed).permutation(train.n_docs)
        X, y, weight = spoil(train.X[rows], train.y[rows], np.ones(train.n_queries))
        said = []
        for door in (
            lambda: small(kind).fit(X, y, train.qid[rows], weight),
            lambda: small(kind).fit_queries(tr.QueryDataset.from_arrays(X, y, train.qid[rows], query_weight=weight)),
        ):
            with pytest.raises(tr.InputError, match=message) as caught:
                door()
            said.append(str(caught.value))
        assert said[0] == said[1]

    def test_the_validation_set_is_checked_like_the_training_set(self, kind, parts):
        train, valid = parts
        huge = valid.X * 1e200
        narrow = valid.X[:, :3]
        for X, message in ((huge, "overflow"), (narrow, "expecting 4 features")):
            with pytest.raises(ValueError, match=message):
                small(kind).fit(train.X, train.y, train.qid, valid=(X, valid.y, valid.qid))
            with pytest.raises(ValueError, match=message):
                small(kind).fit_queries(train, tr.QueryDataset.from_arrays(X, valid.y, valid.qid))
        with pytest.raises(tr.InputError, match=r"valid must be a data set or \(X, y\)"):
            small(kind).fit(train.X, train.y, train.qid, valid=valid.X)


@pytest.mark.parametrize("kind", [kind for kind in ALL if hasattr(kind, "partial_fit")])
def test_a_stream_refuses_what_a_fit_refuses(kind, parts):
    train, _ = parts
    ranker = small(kind).partial_fit(train.X, train.y, train.qid)
    a, b = train.ptr[:2]
    for qid in (None, train.qid[a:b]):
        with pytest.raises(tr.InputError, match=r"overflow"):
            ranker.partial_fit(train.X[a:b] * 1e200, train.y[a:b], qid)
        if not hasattr(kind, "predict_labels"):
            for grade, message in ((-1.0, "negative grade"), (1024.0, "grade 1024 in row 1")):
                y = train.y[a:b].copy()
                y[1] = grade
                with pytest.raises(tr.InputError, match=message):
                    ranker.partial_fit(train.X[a:b], y, qid)


def test_patience_counts_looks_without_a_better_one():
    valid = tr.QueryDataset.from_arrays([[0.0], [1.0]], [1, 0])
    watch = BestOnValidation[int](tr.measure("ndcg"), valid, patience=2)
    bad, good = np.array([0.0, 1.0]), np.array([1.0, 0.0])
    stops = [watch.look(scores, lambda t=t: t) for t, scores in enumerate((bad, good, good, bad))]
    assert stops == [False, False, False, True]
    assert (watch.best, watch.best_at) == (1, 1)  # the first of equals
    with pytest.raises(tr.InputError, match="patience must be a whole number"):
        BestOnValidation(tr.measure("ndcg"), valid, patience=0)


def test_ties_on_the_validation_set_are_settled_by_document_ids():
    valid = tr.QueryDataset.from_arrays([[0.0], [0.0]], [1, 0], doc_ids=["a", "b"])
    by_id = tr.measure("map", convention="trec_eval")
    assert BestOnValidation(by_id, valid).value(np.zeros(2)) == 0.5  # the larger id comes first
    assert BestOnValidation(by_id, replace(valid, doc_ids=np.array(["b", "a"]))).value(np.zeros(2)) == 1.0


def test_verbose_prints_each_look(parts, capsys):
    train, valid = parts
    tr.ListNet(max_iter=3, verbose=True).fit_queries(train, valid)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert all("objective" in line and "ndcg@10 0." in line for line in lines)
