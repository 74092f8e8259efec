"""A stream certifies from what it notes, without its lists."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.sparse import csr_array

import toprank as tr
from tests.cli.calling import fail, run

KINDS = [tr.SlamPerceptron, tr.MinimaxPerceptron, tr.OnlineListNet]


@pytest.fixture(scope="module")
def data():
    made = tr.datasets.make_graded(n_queries=60, n_docs=(2, 7), n_features=4, noise=0.5, random_state=0)
    return made._with(query_weight=1.0 + np.arange(60) % 3)


def learned(kind, data, **options):
    ranker = kind("ndcg@3", **options)
    for q in range(data.n_queries):
        ranker.partial_fit_queries(data[q : q + 1])
    return ranker


def by_definition(ranker, data):
    """The constants of Lemma 5 over the rounds with a mistake, and Σ (x_i − x̂_i)², by loops."""
    radius2 = longest = tight = heaviest = ratio = spread = 0.0
    vmax, seen, fresh = 1.0, [0.5], type(ranker)(**ranker.get_params())
    for q in range(data.n_queries):
        one = data[q : q + 1]
        fresh.partial_fit_queries(one)
        trace = fresh.trace_
        for x in trace["measure"]:
            spread += (x - np.mean(seen)) ** 2
            seen.append(x)
        if trace["mistake"].sum() == 0:
            continue
        weighed = isinstance(ranker, tr.SlamPerceptron)
        v = tr.surrogates.Slam("ndcg@3").document_weights(one.y, one.ptr) if weighed else [1.0]
        v = [w for w in v if w > 0]
        centre = one.X.mean(axis=0)
        distance2 = max(float(sum((x - centre) ** 2)) for x in one.X)
        radius2, longest = max(radius2, max(float(x @ x) for x in one.X)), max(longest, len(one.y))
        vmax, heaviest = max(vmax, max(v) / min(v)), max(heaviest, one.query_weight[0])
        tight = max(tight, one.query_weight[0] * 4 * distance2 / min(v))
        ratio = max(ratio, trace["znorm2"][0] / trace["surrogate"][0])
    return [len(seen) - 1, radius2, longest, vmax, tight, ratio, heaviest, spread]


@pytest.mark.parametrize("kind", KINDS[:2])
def test_what_is_noted_is_what_the_definitions_give(kind, data):
    ranker = learned(kind, data, eta=0.2)
    expected = by_definition(ranker, data)
    np.testing.assert_allclose(ranker._noted, expected, rtol=1e-9)
    _, radius2, longest, vmax, *_, heaviest, _ = expected
    printed = 4 * radius2 * heaviest * (min(3, longest) * vmax if kind is tr.SlamPerceptron else 1)
    name = "4 k R_X² vmax" if kind is tr.SlamPerceptron else "4 R_X²"
    assert printed == pytest.approx(ranker.certify()[1].terms[name])
    at_once = kind("ndcg@3", eta=0.2).partial_fit_queries(data)
    np.testing.assert_array_equal(at_once._noted, ranker._noted)
    sparse = kind("ndcg@3", eta=0.2).partial_fit_queries(data.with_X(csr_array(data.X)))
    np.testing.assert_allclose(sparse._noted, ranker._noted, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [None, "query", "running"])
def test_without_data_and_through_a_file(kind, scale, data, tmp_path):
    ranker = learned(kind, data, eta=0.2, scale=scale)
    first, *lemma = tr.certify(ranker)
    x = kind("ndcg@3", eta=0.2, scale=scale).partial_fit_queries(data).trace_["measure"]
    lower, upper = tr.confidence_sequence(x, changing=True)
    assert (first.lower, first.upper) == pytest.approx((lower[-1], upper[-1]))
    assert first.mean == pytest.approx(x.mean())
    assert first.n_queries == len(x)
    assert f"over its {len(x):,} rounds so far" in first.meaning
    assert len(lemma) == (kind is not tr.OnlineListNet and scale != "running")
    for certificate in lemma:
        assert certificate.verdict == "holds"
        assert certificate.observed == pytest.approx(ranker.certify(data)[0].observed)
    ranker.save(tmp_path / "model.json")
    loaded = tr.load(tmp_path / "model.json")
    assert loaded.certify() == [first, *lemma]
    assert loaded.partial_fit_queries(data[:5]).certify()[0].n_queries > len(x)


def test_a_margin_that_is_promised_is_taken_on_trust_and_can_be_refuted():
    made = tr.datasets.make_separable(n_queries=400, n_docs=4, n_features=3, n_grades=2, margin=1.0, random_state=1)
    ranker = tr.MinimaxPerceptron("map", eta=0.1).partial_fit_queries(made.data)
    *_, corollary, mistakes = ranker.certify(comparator=made.margin)
    assert (corollary.verdict, mistakes.verdict) == ("holds", "holds")
    assert mistakes.observed == ranker.totals_["mistakes"]
    assert [a.verified for a in mistakes.assumptions if "some unit vector" in a.text] == [None]
    noise = made.data._with(y=np.random.default_rng(0).permutation(made.data.y))
    wrong = tr.MinimaxPerceptron("map", eta=0.1).partial_fit_queries(noise)
    assert wrong.certify(comparator=3.0)[-1].verdict == "violated"  # so nothing ranks these lists with that margin
    with pytest.raises(tr.InputError, match="comparator"):
        wrong.certify(comparator=-1.0)


def test_what_notes_nothing_says_so(data, tmp_path):
    fitted = tr.SlamPerceptron("ndcg").fit_queries(data)
    for ranker in (fitted, fitted.partial_fit_queries(data)):
        with pytest.raises(tr.InputError, match="partial_fit alone"):
            tr.certify(ranker)
    stream = learned(tr.SlamPerceptron, data)
    stream._noted[0] -= 1  # a round that was not noted
    with pytest.raises(tr.InputError, match="partial_fit alone"):
        tr.certify(stream)
    with pytest.raises(tr.InputError, match="ListNet notes nothing"):
        tr.certify(tr.ListNet().fit_queries(data))
    learned(tr.SlamPerceptron, data).save(tmp_path / "old.json")
    content = json.loads((tmp_path / "old.json").read_text())
    kept = content["state"]["state_"]
    (kept["data"] if "noted" not in kept else kept).pop("noted")
    (tmp_path / "old.json").write_text(json.dumps(content))
    with pytest.raises(tr.InputError, match="partial_fit alone"):
        tr.load(tmp_path / "old.json").certify()


def test_the_command_line_certifies_a_stream(data, tmp_path, capsys):
    learned(tr.SlamPerceptron, data).save(tmp_path / "model.json")
    printed = run(capsys, "certify", tmp_path / "model.json")
    assert printed.startswith("over its ")
    assert "Lemma 5: holds." in printed
    assert "Corollary 7" in run(capsys, "certify", tmp_path / "model.json", "--margin", "0.5", "--all")
    assert "need DATA" in fail(capsys, "certify", tmp_path / "model.json", "--baseline", "1")
