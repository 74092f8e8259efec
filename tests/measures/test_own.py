"""A measure of the user's own: one class, and it works wherever a measure does."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

import toprank as tr
from toprank.errors import InputError
from toprank.measures import Measure, measure


@pytest.fixture
def half():
    """Half the hits of the first k ranks, in plain Python, and a parameter of its own."""

    @dataclass(frozen=True, kw_only=True)
    class Half(Measure):
        factor: float = 0.5

        short_name = "half"
        aliases = ("semi",)
        bounded = True

        def per_query(self, scores, y, ptr):
            found = []
            for a, b in pairwise(ptr):
                top = np.argsort(-scores[a:b], kind="stable")[: self.k]
                found.append(self.factor * np.mean(y[a:b][top] > 0) if b > a else 0.0)
            return found

    yield Half
    Half.forget()


@pytest.fixture
def data():
    return tr.datasets.make_graded(n_queries=30, n_docs=(4, 9), n_features=3, random_state=0)


def test_it_parses_prints_and_measures(half, data) -> None:
    one = measure("half@2")
    assert one == half(k=2)
    assert str(one) == "half@2"
    assert str(measure("semi@2:factor=0.25")) == "half@2:factor=0.25"
    expected = 0.5 * measure("p@2:ties=input").per_query(data.X[:, 0], data.y, data.ptr)
    np.testing.assert_allclose(one.per_query(data.X[:, 0], data.y, data.ptr), expected)
    assert one.mean([2, 1], [0, 1], [0, 2]) == pytest.approx(0.25)
    with pytest.raises(InputError, match="half has no rule 'gain': it has factor"):
        measure("half:gain=linear")


def test_it_is_evaluated_beside_others_and_compared(half, data) -> None:
    reports = {f"x{i}": tr.evaluate(data.feature(i), data, ["half@2", "ndcg@5"]) for i in range(2)}
    assert list(reports["x0"].mean) == ["half@2", "ndcg@5"]
    alone = tr.evaluate(data.feature(0), data, "ndcg@5")
    np.testing.assert_array_equal(reports["x0"].per_query["ndcg@5"], alone.per_query["ndcg@5"])
    assert {d.measure for d in tr.compare(reports).differences} == {"half@2", "ndcg@5"}
    rows = tr.QueryDataset.from_arrays(np.zeros((4, 1)), [0, 1, 1, 0], [1, 1, 2, 2])
    report = tr.evaluate(np.zeros(4), rows, "half@1")
    assert report.per_query["half@1"].tolist() == [0.0, 0.5]
    assert report.counts["tied_queries"] == 2, "its best and worst order are looked at as well"


def test_learners_take_it(half, data) -> None:
    permuted = tr.PermuRank(measure="half@2", rounds=3).fit_queries(data)
    assert permuted.coef_.any()
    ranker = tr.AdaRank(measure="half@2", rounds=5).fit_queries(data, valid=data)
    assert ranker.score(data.X, data.y, qid=data.qid) == pytest.approx(
        measure("half@2").mean(ranker.predict(data.X), data.y, data.ptr)
    )
    tr.ListNet(measure="half@2", max_iter=5).fit_queries(data, valid=data)


def test_a_stream_is_judged_by_it(half, data) -> None:
    """Round by round: what the weights of before reach on the list that comes, out of what can be reached."""
    ranker, wanted, got = tr.OnlineListNet(measure="half@2", eta=0.5), [], []
    for query in data:
        before = ranker.last_coef_ if wanted else np.zeros(data.n_features)
        value, best = (half(k=2).per_query(s, query.y, query.ptr)[0] for s in (query.X @ before, query.y))
        ranker.partial_fit(query.X, query.y, query.qid)
        if best > 0 and query.informative[0]:
            wanted.append(value / best)
            got.append(ranker.trace_["measure"][-1])
    assert got == wanted
    assert len(set(wanted)) > 1
    whole = tr.OnlineListNet(measure="half@2", eta=0.5).partial_fit_queries(data)
    assert whole.trace_["measure"].tolist() == wanted


def test_a_contest_chooses_and_reports_by_it(half, data, tmp_path) -> None:
    """Settings chosen by it, everybody's kind of learner, the tests, the certificates and the page."""
    more = {"budget": 0, "n_resamples": 100, "repeats": 2, "fusion": ["rrf"]}
    rankers = ["ListNet", "RankSVM", "AdaRank", "RankBoost", "SlamPerceptron", "OnlineListNet"]
    held = tr.contest(data[:15], data[20:], data[15:20], rankers, half(k=2), ["half@3", "map"], **more)
    assert held.main == "half@2"
    assert held.comparison.measures == ("half@2", "half@3", "map")
    for entrant in held.entrants:
        values = half(k=2).per_query(entrant.scores, held.data.y, held.data.ptr)
        assert entrant.report.mean["half@2"] == pytest.approx(np.mean(values))
    assert not [warning for warning in held.warnings if "left out" in warning]
    tr.write_report(held, tmp_path / "page.html")
    assert "half@2" in (tmp_path / "page.html").read_text("utf-8")


def test_what_it_raises_reaches_the_caller() -> None:
    class Broken(Measure):
        short_name = "broken"

        def per_query(self, scores, y, ptr):
            raise ZeroDivisionError("in my own code")

    try:
        with pytest.raises(ZeroDivisionError, match="in my own code"):
            tr.evaluate([1.0], y=[1], measures=["broken", "map"])
        with pytest.raises(ZeroDivisionError, match="in my own code"):
            measure("broken").mean([1.0], [1], [0, 1])
    finally:
        Broken.forget()


def test_bad_classes_are_told(half) -> None:
    with pytest.raises(InputError, match="there is a measure named 'ndcg' already: give Mine another short_name"):

        class Mine(Measure):
            short_name = "ndcg"

            def per_query(self, scores, y, ptr):
                return np.zeros(len(ptr) - 1)

    assert measure("ndcg").short_name == "ndcg"

    class Wrong(Measure):
        short_name = "wrong"

        def per_query(self, scores, y, ptr):
            return np.zeros(len(ptr))

    try:
        with pytest.raises(InputError, match=r"wrong: per_query returned shape \(3,\) for 2 queries"):
            measure("wrong").mean([1.0, 2.0], [1, 0], [0, 1, 2])
    finally:
        Wrong.forget()
    with pytest.raises(InputError, match="unknown measure 'wrong'"):
        measure("wrong")


def test_a_model_file_may_name_it_once_it_is_registered(half, data, tmp_path) -> None:
    path = tmp_path / "model.json"
    ranker = tr.ListNet(measure=half(k=2)).fit_queries(data)
    with pytest.raises(InputError, match="register"):
        ranker.save(path)
    tr.register(half)
    ranker.save(path)
    again = tr.load(path)
    assert again.measure == half(k=2)
    np.testing.assert_array_equal(again.predict(data.X), ranker.predict(data.X))
