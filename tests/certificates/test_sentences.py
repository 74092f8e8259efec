"""What certificates say in words: which queries they speak of, what they assert, and when a bound is no news."""

import numpy as np
import pytest

import toprank as tr


def lists(n_queries=40, n_docs=6, seed=0, scale=1.0, grades=2):
    """Return lists that a linear ranker orders fairly well."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries * n_docs, 4))
    y = np.clip(np.round(X[:, 0] + 0.5 * rng.normal(size=len(X))), 0, grades - 1)
    y[::n_docs], y[1::n_docs] = grades - 1, 0
    return tr.QueryDataset.from_arrays(scale * X, y, np.repeat(np.arange(n_queries), n_docs))


def with_blanks(data, blank):
    """Return the data with `blank` queries more, none of which has a relevant document."""
    rng = np.random.default_rng(1)
    X = np.vstack([data.X, rng.normal(size=(5 * blank, data.n_features))])
    ids = np.concatenate([data.qid, 1000 + np.repeat(np.arange(blank), 5)])
    return tr.QueryDataset.from_arrays(X, np.append(data.y, np.zeros(5 * blank)), ids)


def test_rankboost_speaks_of_the_mean_over_queries():
    """One long query is ranked the wrong way round and many short ones the right way: nearly all pairs are wrong."""
    short = np.tile([[1.0], [0.0]], (200, 1)), np.tile([1.0, 0.0], 200), np.repeat(np.arange(200), 2)
    long = np.repeat([[0.0], [1.0]], 100, axis=0), np.repeat([1.0, 0.0], 100), np.full(200, 999)
    data = tr.QueryDataset.from_arrays(*(np.concatenate(pair) for pair in zip(short, long, strict=True)))
    ranker = tr.RankBoost(rounds=20).fit_queries(data)
    found = ranker.certificates_[0]
    scores = ranker.predict_grouped(data)
    wrong = sum(((scores[a:b][data.y[a:b] == 1][:, None] <= scores[a:b][data.y[a:b] == 0]).sum())
                for a, b in zip(data.ptr[:-1], data.ptr[1:], strict=True))  # fmt: skip
    assert wrong / (200 + 10_000) > 0.9 > 0.3 > found.value
    assert found.meaning.startswith("in the mean over queries with two grades, at most ")
    assert found.meaning.endswith("% of a query's pairs stand the wrong way round or are tied")
    pairs = tr.RankBoost(rounds=20, normalize=False, both_directions=True).fit_queries(data).certificates_[0]
    assert pairs.observed == pytest.approx(200 / 10_200)
    assert pairs.meaning.endswith("% of all pairs stand the wrong way round or are tied")


@pytest.mark.parametrize("ranker", [tr.SVMMap(), tr.PermuRank(rounds=3), tr.AdaRank("map", rounds=5)])
def test_blank_queries_are_named_where_they_do_not_count(ranker):
    data = with_blanks(lists(), 60)
    ranker.fit_queries(data)
    judged = tr.evaluate(ranker, data, ["map"]).mean["map"]
    found = ranker.certify(data)[0]
    observed = found.observed if found.sense == ">=" else 1 - found.observed
    assert judged < 0.45 < 0.7 < observed  # 60 of 100 queries have a map of 0 whoever ranks them
    assert "the 40 of 100 queries with " in found.meaning


def test_adaranks_own_figure_counts_blank_queries_and_says_so():
    data = with_blanks(lists(), 60)
    ranker = tr.AdaRank("map", rounds=5, rule="paper").fit_queries(data)
    found = ranker.certify(data)[-1]
    assert found.observed == pytest.approx(tr.evaluate(ranker, data, ["map"]).mean["map"])
    assert "in the mean over the 100 queries, all with a value of map, which it learned from" in found.meaning


def test_theorem_4_on_other_queries_does_not_say_that_it_learned_from_them():
    ranker = tr.AdaRank("map", rounds=5).fit_queries(lists())
    here, there = (ranker.certify(data) for data in (lists(), lists(seed=9)))
    assert all("which it learned from" in c.meaning for c in here)
    assert not any("learned from" in c.meaning for c in there)
    assert [c.meaning.split(",")[0] for c in here] == [f"after round {t}" for t in range(1, len(here) + 1)]


def test_theorem_4_prints_the_formula_that_it_computes():
    from toprank.certificates.boosting import adarank_certificates

    phi, nothing, reached = np.array([0.6, 0.4]), np.zeros(2), np.array([0.9, 0.9])
    step = np.arctanh(phi) * [1.0, 0.5]
    first, second = adarank_certificates("map", phi, nothing, step, reached)
    assert first.statement.endswith("≥ 1 − Π_t e^(−δ_t) √(1 − φ(t)²)")
    assert first.value == pytest.approx(1 - np.sqrt(1 - 0.6**2))
    assert second.statement.endswith("≥ 1 − Π_t e^(−δ_t) (½(1 + φ(t)) e^(−α_t) + ½(1 − φ(t)) e^(α_t))")
    both = 0.8 * (0.7 * np.exp(-step[1]) + 0.3 * np.exp(step[1]))
    assert second.value == pytest.approx(1 - both)


def test_a_bound_that_the_worst_order_meets_is_vacuous():
    """At scores of nearly 0 the structural hinge is 1 − AP of the worst order: any ranker has that."""
    tiny = lists(scale=1e-12)
    with pytest.warns(match="learned nothing"):
        found = tr.SVMMap(C=1.0).fit_queries(tiny).certify(tiny)[0]
    assert found.value < 0.9
    assert found.verdict == "vacuous"
    assert tr.SVMMap(C=100.0).fit_queries(lists()).certify(lists())[0].verdict == "holds"


@pytest.mark.parametrize(("kind", "theorem"), [("avg", "Theorem 7"), ("max", "Theorem 9")])
def test_mistakes_at_the_top_are_bounded_by_the_negatives_there_are(kind, theorem):
    """Lists of five positives and one negative: a negative can take one of the three first places."""
    rng = np.random.default_rng(0)
    data = tr.QueryDataset.from_arrays(
        rng.normal(size=(120, 3)), np.tile([1, 1, 1, 1, 1, 0], 20), np.repeat(np.arange(20), 6)
    )
    ranker = tr.PerceptronAtK(k=3, variant=kind, epochs=1).fit_queries(data)
    found = next(c for c in ranker.certify(data, np.zeros(3)) if c.reference == theorem)
    assert found.vacuous_from == 20
    assert found.verdict == "vacuous"


def test_mistake_bounds_of_streams_are_held_against_the_worst_orders():
    data = lists()
    ranker = tr.SlamPerceptron("map", epochs=2, random_state=0).fit_queries(data)
    worst = 2 * sum(1 - tr.measure("map").per_query(-data.y, data.y, data.ptr))
    for found in ranker.certify(data):
        if found.statement.startswith("Σ RML_t"):
            assert found.vacuous_from <= worst < 80
            assert found.verdict != "holds" or found.value < worst


def test_a_promise_that_the_worst_order_keeps_is_vacuous():
    """Where all but one of twenty documents are relevant, the worst order has an AP of .86."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4000, 3)), np.tile([0] + [1] * 19, 200)
    data = tr.QueryDataset.from_arrays(X, y, np.repeat(np.arange(200), 20))
    first = tr.certify(tr.ListNet("map").fit_queries(data[:100]), data[100:115])[0]
    assert 0.6 < first.lower < np.mean(np.arange(1, 20) / np.arange(2, 21))
    assert first.verdict == "vacuous"


def test_copies_of_queries_are_counted_once():
    """Twenty queries copied tenfold are twenty queries."""
    ranker, test = tr.ListNet("map").fit_queries(lists(seed=5)), lists(n_queries=20, seed=6)
    tenfold = tr.QueryDataset.from_arrays(np.tile(test.X, (10, 1)), np.tile(test.y, 10), np.arange(1200) // 6)
    once, often = (tr.certify(ranker, data)[0] for data in (test, tenfold))
    assert (often.n_queries, often.lower, often.mean) == (20, once.lower, once.mean)
    assert "180 copies of other queries are left out" in [a.text for a in often.assumptions]
    assert not any("copies" in a.text for a in once.assumptions)
    turned = np.where(np.arange(1200) < 120, tenfold.y, 1 - tenfold.y)  # other grades: other queries
    assert tr.certify(ranker, tr.QueryDataset.from_arrays(tenfold.X, turned, tenfold.qid))[0].n_queries == 40


def test_bounds_name_the_method_that_made_them():
    from toprank.certificates.performance import difference_interval, performance

    exact = performance([0.0, 1.0, 1.0, 1.0] * 20, "mrr")
    assert exact.reference == "Clopper and Pearson"
    assert "betting" not in exact.statement
    assert performance([0.0, 1.0, 0.5, 1.0] * 20, "mrr").reference == "betting"
    lower, _, _ = difference_interval([1.0] * 30, [0.0] * 30)  # ties may come: no binomial bound of .77
    assert lower < 2 * 0.05 ** (1 / 30) - 1


@pytest.mark.parametrize("average", [False, True])
def test_a_file_with_other_weights_is_not_the_run_that_happened(average, tmp_path):
    import json

    data = lists()
    file = tmp_path / "model.json"
    tr.PerceptronAtK(k=1, average=average).fit_queries(data).save(file)
    assert {c.verdict for c in tr.load(file).certify(data)} <= {"holds", "vacuous", "no verdict", "does not apply"}
    content = json.loads(file.read_text())
    own = tr.load(file).coef_
    other = tr.ListNet().fit_queries(data)
    other.function_ = type(other.function_)(-2 * own + 0.1)
    other.save(tmp_path / "other.json")
    content["model"] = json.loads((tmp_path / "other.json").read_text())["model"]
    file.write_text(json.dumps(content))
    changed = tr.load(file)
    assert changed.coef_ == pytest.approx(-2 * own + 0.1)
    assert {c.verdict for c in changed.certify(data)} == {"does not apply"}


def test_where_nothing_follows_nothing_is_asserted():
    """Lists that cannot be separated, and theorems with an open constant."""
    rng = np.random.default_rng(0)
    noisy = tr.QueryDataset.from_arrays(
        rng.normal(size=(240, 3)), np.tile([1, 1, 0, 0, 1, 0], 40), np.repeat(np.arange(40), 6)
    )
    rows = tr.QueryDataset.from_arrays(noisy.X, noisy.y)
    made = [
        *tr.SlamPerceptron("map", random_state=0).fit_queries(noisy).certify(noisy),
        *tr.PerceptronAtK(kappa=0.5, epochs=1).fit_queries(noisy).certify(noisy),
        *tr.PerceptronAtK(kappa=0.5, epochs=1).fit_queries(rows).certify(rows),
    ]
    silent = [c for c in made if c.verdict in ("does not apply", "no verdict")]
    assert {c.verdict for c in silent} == {"does not apply", "no verdict"}
    assert all(c.meaning.startswith("nothing follows here: ") for c in silent)
    assert not any("bound to end" in c.meaning or "inf" in c.meaning for c in silent)


def test_what_a_bound_is_by_is_what_it_is():
    data = lists(grades=2)
    struct = tr.SVMPerf(k=1, variant="struct").fit_queries(data).certify(data)
    assert not any("minimises" in c.meaning for c in struct)
    own = tr.PermuRank(rounds=3).fit_queries(data).certify(data)
    assert [c.reference for c in own] == [
        "Theorem 2, Eq. 10", "Eq. 6", "Eq. 6 and Eq. 10", "Theorem 2, Eq. 7", "Theorem 3",
    ]  # fmt: skip
    assert not any("minimises" in c.meaning for c in own)
    assert "which the learner minimises" in tr.SVMMap().fit_queries(data).certify(data)[0].meaning


def test_eq_7_sums_over_all_rankings():
    from tests.oracles import direct as oracle

    data = lists(n_queries=3, n_docs=5)
    for pairs in ("graded", "all"):
        ranker = tr.PermuRank("map", rounds=3, pairs=pairs).fit_queries(data)
        found = next(c for c in ranker.certify(data) if c.reference == "Theorem 2, Eq. 7")
        scores = ranker.predict_grouped(data)
        each = [
            oracle.type_two(oracle.ap, scores[a:b].tolist(), data.y[a:b].tolist(), "hinge", "sum", pairs == "graded")
            for a, b in zip(data.ptr[:-1], data.ptr[1:], strict=True)
        ]
        assert found.value == pytest.approx(np.mean(each))


def test_theorem_3_asks_for_condition_9():
    """Type two is at most type one where every perfect order is liked better than any other by at least E."""
    data = tr.QueryDataset.from_arrays([[1.0], [0.0], [1.0], [0.0]], [1, 0, 1, 0], [0, 0, 1, 1])
    from toprank.certificates.learned import ranking_bounds

    near, far = (ranking_bounds("map", None, np.array([w]), data)[-1] for w in (3.0, 0.1))
    assert (near.reference, near.verdict) == ("Theorem 3", "holds")
    assert near.observed == pytest.approx(0.5 * np.exp(-6))  # one other order, F(π*) − F(π) = 3 − (−3)
    assert near.value == pytest.approx(np.exp(-1))
    assert far.verdict == "does not apply"  # here (8) would fail
    assert far.observed == pytest.approx(0.5 * np.exp(-0.2))
    assert far.assumptions[0].found == "so on 0 of 2 queries"
