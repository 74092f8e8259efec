"""`toprank certify`: sentences with bound, observed value and what the assumptions rest on."""

import json
import re

import pytest

import toprank as tr

from .calling import run


@pytest.fixture
def saved(tmp_path):
    def save(ranker: tr.Ranker) -> tuple[object, object, tr.Ranker]:
        data = tr.datasets.make_graded(n_queries=40, n_docs=(4, 9), n_features=4, random_state=0)
        tr.write_letor(data, tmp_path / "train.txt")
        read = tr.read_letor(tmp_path / "train.txt")
        ranker.fit_queries(read).save(tmp_path / "model.json")
        return tmp_path / "model.json", tmp_path / "train.txt", ranker

    return save


def test_every_certificate_is_in_one_of_the_two_lists(capsys, saved):
    model, data, ranker = saved(tr.SlamPerceptron("ndcg@10", random_state=0))
    certificates = tr.certify(ranker, tr.read_letor(data))
    out = run(capsys, "certify", model, data)
    apply, _, refused = out.partition("Not applicable")
    for certificate in certificates:
        assert certificate.reference in (apply if certificate.assumptions_hold else refused)
        if certificate.assumptions_hold:
            assert f"observed {certificate.observed:.6g}, bound {certificate.value:.6g}" in apply
    assert "✓ verified:" in apply
    assert refused


def test_trust_is_named(capsys, saved):
    model, data, _ = saved(tr.ListNet())
    assert "? on trust: the queries are independent draws from one distribution" in run(capsys, "certify", model, data)


def test_a_series_is_shortened_unless_asked(capsys, saved):
    model, data, ranker = saved(tr.AdaRank("map", rounds=12, rule="paper"))
    certificates = tr.certify(ranker, tr.read_letor(data))
    assert len(certificates) > 5
    short, long = run(capsys, "certify", model, data), run(capsys, "certify", model, data, "--all")
    assert len(re.findall(r"^Theorem 4", short, re.M)) == 2
    assert len(re.findall(r"^Theorem 4", long, re.M)) == len(certificates)
    held = sum(c.holds() for c in certificates)
    assert f"{held} of {len(certificates)} hold" in short


def test_json_has_all(capsys, saved):
    model, data, ranker = saved(tr.AdaRank("map", rounds=12, rule="paper"))
    found = json.loads(run(capsys, "certify", model, data, "--json"))
    assert [row["statement"] for row in found] == [c.statement for c in tr.certify(ranker, tr.read_letor(data))]
    assert all(a["verified"] in (True, False, None) for row in found for a in row["assumptions"])
