"""`toprank certify`: sentences with bound, observed value and what the assumptions rest on."""

import json

import numpy as np
import pytest

import toprank as tr
from toprank.certificates.base import Certificate
from toprank.certificates.performance import mean_interval
from toprank.cli.certify import _without_series

from .calling import fail, run


@pytest.fixture
def saved(tmp_path):
    def save(ranker: tr.Ranker) -> tuple[object, object, tr.Ranker]:
        data = tr.datasets.make_graded(n_queries=40, n_docs=(4, 9), n_features=4, random_state=0)
        tr.write_letor(data, tmp_path / "train.txt")
        read = tr.read_letor(tmp_path / "train.txt")
        ranker.fit_queries(read).save(tmp_path / "model.json")
        return tmp_path / "model.json", tmp_path / "train.txt", ranker

    return save


def test_certificates_that_say_something_are_shown_and_the_others_counted(capsys, saved):
    model, data, ranker = saved(tr.SlamPerceptron("ndcg@10", random_state=0))
    certificates = ranker.certify(tr.read_letor(data))
    short, long = run(capsys, "certify", model, data), run(capsys, "certify", model, data, "--all")
    shown = [c for c in certificates if c.verdict in ("holds", "violated", "no verdict")]
    assert 0 < len(shown) < len(certificates)
    for certificate in certificates:
        told = f"{certificate.reference}: {certificate.verdict}."
        assert told in long
        assert (told in short) == (certificate in shown)
    assert "✓ checked:" in short
    assert "Not shown:" in short
    assert "Not shown:" not in long


def test_what_was_learned_from_says_nothing_about_new_queries(capsys, saved):
    model, data, _ = saved(tr.ListNet())
    first = run(capsys, "certify", model, data).splitlines()
    assert first[0].startswith("nothing can be said of new queries from these: ")
    assert "✗ not met: none of these queries was learned from: " in "\n".join(first)


def test_new_queries_come_first(capsys, saved, tmp_path):
    model, _, ranker = saved(tr.ListNet())
    test = tr.datasets.make_graded(n_queries=60, n_docs=(4, 9), n_features=4, random_state=1)
    tr.write_letor(test, tmp_path / "test.txt")
    out = run(capsys, "certify", model, tmp_path / "test.txt", "--baseline", "1", "--confidence", "0.9")
    own, other = tr.certify(
        ranker, tr.read_letor(tmp_path / "test.txt"), confidence=0.9, baseline={"1": test.feature(0)}
    )[:2]
    assert out.startswith(f"on new queries like these 60: ndcg@10 ≥ {own.lower:.4f} with 90% confidence")
    assert other.meaning.partition(": ")[2] in out.splitlines()[0]
    assert "? on trust: the 60 queries are an independent sample of those to come" in out


def test_a_baseline_that_does_not_exist(capsys, saved):
    model, data, _ = saved(tr.ListNet())
    assert "--baseline nonsense: neither a feature" in fail(capsys, "certify", model, data, "--baseline", "nonsense")


def test_a_series_is_shortened():
    rounds = [Certificate(f"round {t}", 0.1 * t, 0.9, "Theorem 4", sense=">=", vacuous_from=0.0) for t in range(1, 8)]
    first, between, last = _without_series(rounds)
    assert "round 1" in first
    assert between == "… 5 more like it (--all prints them): 7 of 7 hold"
    assert "round 7" in last
    assert len(list(_without_series(rounds[:3]))) == 3


def test_json_has_all(capsys, saved):
    model, data, ranker = saved(tr.AdaRank("map", rounds=12, rule="paper"))
    found = json.loads(run(capsys, "certify", model, data, "--json"))["certificates"]
    assert [row["statement"] for row in found] == [c.statement for c in tr.certify(ranker, tr.read_letor(data))]
    assert all(a["verified"] in (True, False, None) for row in found for a in row["assumptions"])


def test_advice_on_the_command_line(capsys, saved):
    _, data, _ = saved(tr.ListNet())
    advice = tr.advise(tr.read_letor(data), 0.2, transforms=["sigmoid"])
    assert run(capsys, "advise", data, "--radius", "0.2", "--transform", "sigmoid") == f"{advice}\n"
    rows = json.loads(run(capsys, "advise", data, "--radius", "0.2", "--transform", "sigmoid", "--json"))
    assert [row["algorithm"] for row in rows] == [b.algorithm for b in advice.bounds]
    assert "algorithm must be one of" in fail(capsys, "advise", data, "--radius", "1", "--algorithm", "SoftRank")


def test_a_loaded_listwise_model_certifies(capsys, tmp_path):
    data = tr.datasets.make_graded(n_queries=20, random_state=0)
    tr.write_letor(data, tmp_path / "train.txt")
    for name in ("ListMLE", "RankCosine"):
        settings = ("-p", "transform=sigmoid", "-p", "radius=0.01")
        run(capsys, "fit", tmp_path / "train.txt", "--ranker", name, *settings, "-o", tmp_path / "m.json")
        assert "Theorem 1" in run(
            capsys, "certify", tmp_path / "m.json", tmp_path / "train.txt", "--all", "--delta", "0.1"
        )


class TestAnybody:
    """What was not saved by toprank: scores, runs and trees of others."""

    @pytest.fixture
    def test(self, tmp_path):
        data = tr.datasets.make_graded(n_queries=80, n_docs=(4, 9), n_features=4, random_state=1)
        names = [f"d{i}" for i in range(data.n_docs)]
        data = data._with(query_ids=np.array([f"q{q}" for q in range(80)]), doc_ids=np.array(names))
        rows = zip(np.repeat(data.query_ids, data.lengths), data.y, names, data.X, strict=True)
        lines = [f"{q},{grade:g},{d},{','.join(map(repr, x.tolist()))}" for q, grade, d, x in rows]
        (tmp_path / "test.csv").write_text("\n".join(["query,label,doc_id,a,b,c,d", *lines]) + "\n")
        return data

    def expected(self, scores, data, measure="ndcg@10"):
        """The interval of the values per query, by the function that has oracles of its own."""
        values = tr.evaluate(scores, data, [measure]).per_query[measure]
        return mean_interval(values)

    def test_scores_by_row_and_by_name(self, capsys, tmp_path, test):
        scores = test.X[:, 0] * 2
        (tmp_path / "rows.txt").write_text("".join(f"{s!r}\n" for s in scores.tolist()))
        ids = np.repeat(test.query_ids, test.lengths)
        rows = [f"{q},{d},{s!r}" for q, d, s in zip(ids, test.doc_ids, scores.tolist(), strict=True)]
        (tmp_path / "named.csv").write_text("\n".join(["query,doc_id,score", *rows[::-1]]) + "\n")
        lower, mean, upper = self.expected(scores, test)
        for file in ("rows.txt", "named.csv"):
            told = json.loads(run(capsys, "certify", "--scores", tmp_path / file, tmp_path / "test.csv", "--json"))
            (found,) = told["certificates"]
            assert [found[name] for name in ("lower", "mean", "upper")] == pytest.approx(
                [lower, mean, upper], abs=1e-12
            )
        text = run(capsys, "certify", "--scores", tmp_path / "rows.txt", tmp_path / "test.csv", "--baseline", "b")
        assert f"ndcg@10 ≥ {self.claims(scores, test, 2):.4f}" in text
        assert "? on trust: they took no part in learning or choosing: nothing here tells what was learned from" in text
        assert "✓" not in text

    def claims(self, scores, data, n):
        return mean_interval(tr.evaluate(scores, data, ["ndcg@10"]).per_query["ndcg@10"], claims=n).lower

    def test_a_run(self, capsys, tmp_path, test):
        scores = test.X[:, 1].copy()
        run_, qrels = tr.data.trec.run_of(test, scores), tr.data.trec.qrels_of(test)
        tr.write_run(run_, tmp_path / "mine.run")
        tr.write_qrels(qrels, tmp_path / "qrels.txt")
        args = ("certify", "--trec", tmp_path / "mine.run", tmp_path / "qrels.txt", "--measure", "map", "--json")
        (found,) = json.loads(run(capsys, *args))["certificates"]
        values = tr.evaluate_run(run_, qrels, ["map"]).per_query["map"]
        assert found["lower"] == pytest.approx(mean_interval(values).lower, abs=1e-12)
        assert found["n_queries"] == 80

    @pytest.mark.filterwarnings("ignore:features are matched by position")
    def test_trees_of_others(self, capsys, tmp_path, test):
        lgb = pytest.importorskip("lightgbm")
        model = lgb.LGBMRanker(n_estimators=5, n_jobs=1, verbosity=-1).fit(test.X, test.y, group=test.lengths)
        model.booster_.save_model(tmp_path / "trees.txt")
        (found,) = json.loads(run(capsys, "certify", tmp_path / "trees.txt", tmp_path / "test.csv", "--json"))[
            "certificates"
        ]
        assert found["mean"] == pytest.approx(self.expected(model, test).mean, abs=1e-12)

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("1.0\n2.0\n", "scores has 2 values for"),
            ("", "is empty: scores are one number a line"),
            ("1.0\nnan\n", ":2: a score must be a number, got 'nan'"),
            ("query,doc_id,scored\nq1,d1,2\n", ":1: no column 'score' (did you mean"),
            ("query,doc_id,score\nq1,d1\n", ":2: 2 cells, and the header has 3"),
            ("query,doc_id,score\nx,y,1.0\n", "the run holds none of the documents of these queries"),
        ],
    )
    def test_bad_files_of_scores_are_refused_by_line(self, capsys, tmp_path, test, text, words):
        (tmp_path / "bad.csv").write_text(text)
        assert words in fail(capsys, "certify", "--scores", tmp_path / "bad.csv", tmp_path / "test.csv")

    def test_what_does_not_go_together(self, capsys, tmp_path, saved, test):
        (tmp_path / "rows.txt").write_text("1.0\n")
        rows, data = tmp_path / "rows.txt", tmp_path / "test.csv"
        assert "give one of them" in fail(capsys, "certify", "--scores", "--trec", rows, data)
        assert "are about rankers of toprank" in fail(capsys, "certify", "--scores", rows, data, "--delta", 0.1)
        assert "give DATA: the judged queries" in fail(capsys, "certify", "--scores", rows)
        model, train, _ = saved(tr.ListNet())
        assert "certified by its own measure" in fail(capsys, "certify", model, train, "--measure", "map")
