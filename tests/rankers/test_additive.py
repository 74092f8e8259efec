"""AdditiveRanker: how curved it is, held-out queries decide, and few queries bend nothing."""

import json

import numpy as np
import pytest

import toprank as tr
from toprank.rankers.additive import FEW_QUERIES, Form, forms_of


def bent(n_queries=90, seed=0):
    """The best documents have both features near 0, as no line says it."""
    made = tr.datasets.make_graded(n_queries=n_queries, n_features=2, random_state=seed)
    return tr.QueryDataset.from_arrays(made.X, (np.abs(made.X) < 0.7).sum(axis=1), made.qid)


@pytest.fixture(scope="module")
def curved():
    return tr.AdditiveRanker(random_state=0).fit_queries(bent()[:60])


def test_it_bends_where_held_out_queries_say_so(curved):
    assert "ramps:8" in curved.choice_["prepare"]
    assert "straight" in curved.choice_["why"]
    straight = tr.ListNet().fit_queries(bent()[:60])
    judged = [tr.evaluate(ranker, bent()[60:]).mean["ndcg@10"] for ranker in (curved, straight)]
    assert judged[0] > judged[1]


def test_it_is_the_linear_ranker_with_the_same_columns_and_penalty(curved):
    choice = curved.choice_
    same = tr.ListNet(prepare=choice["prepare"], alpha=choice["alpha"]).fit_queries(bent()[:60])
    assert np.array_equal(same.predict(bent()), curved.predict(bent()))


def test_few_queries_bend_nothing():
    data = bent(FEW_QUERIES - 1)
    ranker = tr.AdditiveRanker().fit_queries(data)
    assert ranker.choice_["prepare"] == ""
    assert "too few queries for curves" in ranker.choice_["why"]
    assert np.array_equal(ranker.coef_, tr.ListNet(alpha=ranker.choice_["alpha"]).fit_queries(data).coef_)


def test_noise_is_no_reason_to_bend():
    made = tr.datasets.make_graded(n_queries=60, n_features=3, random_state=1)
    shuffled = np.random.default_rng(0).permutation(made.y)
    noise = tr.QueryDataset.from_arrays(made.X, shuffled, made.qid)
    assert tr.AdditiveRanker().fit_queries(noise).choice_["prepare"] == ""


def test_one_standard_error_decides():
    straight = Form("", 1.0, np.array([0.5, 0.5, np.nan, 0.5, 0.5]))
    clear = Form("ramps:8", 1.0, np.array([0.6, 0.7, 0.3, 0.6, 0.7]))
    unclear = Form("ramps:8", 1.0, np.array([0.95, 0.15, 0.3, 1.0, 0.15]))
    assert clear.better_than(straight)
    assert not unclear.better_than(straight)
    assert unclear.mean > straight.mean
    assert not Form("", 1.0, np.array([0.9])).better_than(Form("", 1.0, np.array([0.1])))


def test_the_queries_that_choose_can_be_given():
    data = bent()
    ranker = tr.AdditiveRanker(alphas=(1e-2, 1e-3)).fit_queries(data[:40], valid=data[40:60])
    assert "on 20 queries held out" in ranker.choice_["why"]
    assert not any(name.startswith("_valid") for name in vars(ranker))


def test_a_file_keeps_the_choice(curved, tmp_path):
    curved.save(tmp_path / "model.json")
    again = tr.load(tmp_path / "model.json")
    assert again.choice_ == curved.choice_
    assert np.array_equal(again.predict(bent()), curved.predict(bent()))
    content = json.loads((tmp_path / "model.json").read_text())
    content["state"]["choice_"]["prepare"] = "log"
    (tmp_path / "model.json").write_text(json.dumps(content))
    with pytest.raises(tr.InputError, match=r"not the preparation in \$.inputs.steps"):
        tr.load(tmp_path / "model.json")


def test_knots_of_a_file_are_checked(curved, tmp_path):
    curved.save(tmp_path / "model.json")
    content = json.loads((tmp_path / "model.json").read_text())
    knots = next(step for step in content["inputs"]["steps"] if isinstance(step, dict))
    knots["fields"]["knot"]["data"].reverse()
    (tmp_path / "model.json").write_text(json.dumps(content))
    with pytest.raises(tr.InputError, match="rising order"):
        tr.load(tmp_path / "model.json")
    content["inputs"]["steps"] = ["ramps:8"]
    (tmp_path / "model.json").write_text(json.dumps(content))
    with pytest.raises(tr.InputError, match="no knots yet"):
        tr.load(tmp_path / "model.json")


def test_the_preparations_that_are_tried():
    assert forms_of("+rank,+minmax,ramps:8") == ["", "+rank,+minmax", "ramps:8", "+rank,+minmax,ramps:8"]
    assert forms_of("log,query") == ["log,query"]


@pytest.mark.parametrize(
    ("given", "why"),
    [({"alphas": ()}, "empty list"), ({"alphas": (1.0, 0.0)}, "alphas must"), ({"truth": "x"}, "truth")],
)
def test_nonsense_is_one_line(given, why):
    with pytest.raises(tr.InputError, match=why) as refused:
        tr.AdditiveRanker(**given).fit_queries(bent(40))
    assert "\n" not in str(refused.value)


def test_theorems_about_fixed_columns_do_not_apply_to_learned_knots():
    data = bent()
    fixed, learned = (tr.ListNet(prepare=prepare).fit_queries(data).certify(data) for prepare in ("", "ramps:3"))
    assert {certificate.verdict for certificate in learned} == {"does not apply"}
    assert {certificate.verdict for certificate in fixed} != {"does not apply"}


def test_the_features_that_count():
    data = tr.datasets.make_graded(n_queries=40, n_features=3, random_state=0)
    named = tr.QueryDataset.from_arrays(data.X, data.y, data.qid, feature_names=["a", "b", "c"])
    ranker = tr.ListNet(prepare="+rank,ramps:2").fit_queries(named)
    assert ranker.features_ == ("a", "b", "c")
    origins = ranker.inputs_.origins
    w = np.zeros(len(origins))
    w[np.flatnonzero(origins == 1)[-1]] = 2.0  # the last ramp of the rank of b
    ranker.function_ = type(ranker.function_)(w)
    assert ranker.features_ == ("b",)
    moved = np.array(named.X)
    moved[:, [0, 2]] = np.random.default_rng(0).normal(size=(named.n_docs, 2))
    other = tr.QueryDataset.from_arrays(moved, data.y, data.qid, feature_names=["a", "b", "c"])
    assert np.array_equal(ranker.predict(other), ranker.predict(named))
    stumps = tr.RankBoost(rounds=1).fit_queries(named)
    assert len(stumps.features_) == 1
    assert tr.KernelSlamPerceptron(budget=100, epochs=1).fit_queries(named).features_ == ("a", "b", "c")


def test_the_explanation_of_a_document_is_a_sum_of_curves(curved):
    from toprank.report.additive import contributions

    data = bent()[:3]
    parts = contributions(curved.model_, data)
    assert parts.shape == (data.n_docs, 2)
    np.testing.assert_allclose(parts.sum(axis=1), curved.model_.scores(data), atol=1e-9)
    if curved.choice_["prepare"] == "ramps:8":  # the part of a feature depends on its value alone
        moved = data.with_X(np.column_stack([data.X[:, 0], data.X[:, 1] + 1.0]))
        assert np.array_equal(contributions(curved.model_, moved)[:, 0], parts[:, 0])
