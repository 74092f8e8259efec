"""`toprank certify`: sentences with bound, observed value and what the assumptions rest on."""

import json

import pytest

import toprank as tr
from toprank.certificates.base import Certificate
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
