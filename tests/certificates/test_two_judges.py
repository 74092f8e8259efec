"""Certificates from two judges: sentences, rules that values do not decide, and coverage on real judgements."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest, hypergeom

import toprank as tr
from toprank.certificates.base import Assumption
from toprank.certificates.judged import judged_difference, judged_interval
from toprank.certificates.two_judges import Rival, judged_performance, random_sample

REAL = os.environ.get("TOPRANK_DATA")


def two(n=60, size=300, seed=0, offset=0.1):
    rng = np.random.default_rng(seed)
    f = rng.beta(4, 3, size=size)
    h = np.clip(f - offset + rng.normal(scale=0.05, size=size), 0, 1)
    return h[:n], f[:n], f[n:], h


def test_without_a_judge_it_is_that_of_clopper_and_pearson():
    rng = np.random.default_rng(0)
    for n in (5, 30, 49):
        h = (rng.random(n) < 0.7).astype(float)
        found = judged_interval(h, rng.random(n), rng.random(100), target="new")
        wanted = binomtest(int(h.sum()), n).proportion_ci(0.95)
        assert not found.with_machine
        assert (found.lower, found.upper) == pytest.approx((wanted.low, wanted.high), abs=1e-9)


@pytest.mark.parametrize("judge", ["good", "constant", "against"])
def test_bounds_on_zeros_and_ones_miss_no_more_often_than_they_say(judge):
    # Every number of successes that a sample can have, with its probability: no simulation.
    size, n, confidence = 30, 12, 0.8
    for successes in (3, 15, 24):
        h = np.r_[np.ones(successes), np.zeros(size - successes)]
        missed = 0.0
        for k in range(n + 1):
            p = hypergeom.pmf(k, size, successes, n)
            if p == 0:
                continue
            own = np.r_[np.ones(k), np.zeros(n - k)]
            rest = np.r_[np.ones(successes - k), np.zeros(size - n - successes + k)]
            f, g = {"good": (own, rest), "constant": (own * 0 + 0.5, rest * 0 + 0.5), "against": (1 - own, 1 - rest)}[
                judge
            ]
            found = judged_interval(own, f, g, confidence, with_machine=True)
            missed += p * (not found.lower <= h.mean() <= found.upper)
        assert missed <= 1 - confidence


def test_the_smallest_mean_that_is_possible_is_not_excluded_by_rounding():
    # After k values of 0.1 nothing is left for the others: what is left has the mean 0, give or take rounding.
    from toprank.certificates import _judged_kernels as kernels

    negative = 0
    for k in range(1, 40):
        h = np.r_[np.full(k, 0.1), np.zeros(3)]
        size, left = k + 10, k * 0.1
        negative += (size * (left / size) - h[:k].cumsum()[-1]) < 0
        some = np.full(k + 3, 0.1)
        found = kernels.log_capital(h, h, some * 0, some, left / size, 0.5, size, 3.0)
        assert found < np.inf
        assert kernels.log_capital(h, h, some * 0, some, (left - 0.01) / size, 0.5, size, 99.0) == np.inf
    assert negative > 0


def test_the_number_of_queries_decides_and_no_value_does():
    for n, size, difference in ((49, False, False), (50, True, False), (199, True, False), (200, True, True)):
        h, f, others, _ = two(n, 400)
        assert judged_interval(h, f, others).with_machine is size
        assert judged_difference((h, h), (f, f), (others, others)).with_machine is difference
        bad = judged_interval(h, 1 - f, 1 - others)
        assert bad.with_machine is size
    h, f, others, _ = two(100, 350)
    many = np.tile(others, 40)  # 10,000 queries of the machine
    assert not judged_interval(h, f, many[1:], target="new").with_machine
    assert not judged_interval(h[1:], f[1:], many, target="new").with_machine
    assert judged_interval(h, f, many, target="new").with_machine


def test_the_sentence_says_what_was_found():
    h, f, others, everything = two()
    made = judged_performance(h, f, others, "ndcg@10", judge_name="gpt4")
    found = judged_interval(h, f, others)
    assert (made.lower, made.upper) == (found.lower, found.upper)
    assert made.meaning == (
        f"on these 300 queries, as people would grade them: ndcg@10 ≥ {found.lower:.4f} with 95% confidence, from 60 "
        f"queries judged by people and 240 by gpt4; people alone: ≥ {found.people.lower:.4f} "
        f"(estimate {found.mean:.4f})"
    )
    assert made.lower <= everything.mean() <= made.upper
    assert made.verdict == "holds"
    assert made.to_dict()["people"]["lower"] == found.people.lower
    new = judged_performance(h, f, others, "ndcg@10", target="new")
    assert new.meaning.startswith("on new queries like these 300, ")
    assert "60 queries judged by people (the machine takes part from 100 such queries on, and 10,000 of its own)" in (
        new.meaning
    )
    assert new.lower <= made.lower
    assert any("independent sample of those to come" in a.text for a in new.assumptions)
    several = judged_performance(h, f, others, "ndcg@10", claims=10)
    assert several.lower < made.lower
    assert several.confidence == 0.95
    every = judged_performance(h, f, [], "ndcg@10")
    assert every.meaning == f"on these 60 queries, all judged by people: ndcg@10 {h.mean():.4f}"


@pytest.mark.parametrize(
    ("gap", "said"),
    [(0.3, "better than B by at least"), (-0.3, "worse than B by at least"), (0.0, "either may be better")],
)
def test_the_sentence_of_a_difference_points_the_right_way(gap, said):
    h, f, others, everything = two(250, 600, seed=1)
    base = np.clip(everything - gap, 0, 1)
    rng = np.random.default_rng(2)
    base = np.clip(base + rng.normal(scale=0.03, size=600), 0, 1)
    judge_b = np.clip(np.r_[f, others] - gap, 0, 1)
    made = judged_performance(h, f, others, "map", against=Rival("B", base[:250], judge_b[:250], judge_b[250:]))
    assert said in made.meaning
    assert made.lower <= (everything - base).mean() <= made.upper
    assert made.with_machine
    assert made.verdict == ("vacuous" if gap == 0 else "holds")


def test_what_is_not_a_random_sample_certifies_nothing():
    h, f, others, _ = two()
    easy = np.argsort(-np.r_[f, others])
    f, others = np.r_[f, others][easy[:60]], np.r_[f, others][easy[60:]]
    made = judged_performance(h, f, others, "ndcg@10", judge_name="gpt4")
    assert made.verdict == "does not apply"
    assert made.meaning.startswith("nothing can be said from these judgements: gpt4's means are")
    assert (made.lower, made.upper) == (-1.0, 1.0)
    assert random_sample(f, others).verified is False
    assert random_sample(h, h).verified is None
    failed = Assumption("both judged the same documents", False)
    assert judged_performance(h, f, f, "ndcg@10", known=[failed]).verdict == "does not apply"
    with pytest.raises(tr.InputError, match="has no value on 1 of the queries"):
        judged_performance([0.5, np.nan], [0.5, 0.5], [0.5], "map")


def test_the_normal_law_stands_beside_and_is_that_of_the_formula():
    h, f, others, _ = two()
    found = judged_interval(h, f, others)
    c = np.cov(h, f, bias=True)[0, 1] / f.var()
    mean = h.mean() + c * (np.r_[f, others].mean() - f.mean())
    half = 1.959963984540054 * np.sqrt((h - c * f).var(ddof=1) / 60 * (1 - 60 / 300))
    assert found.approximate == pytest.approx((mean - half, mean, mean + half))
    assert found.approximate.upper - found.approximate.lower < found.upper - found.lower


@pytest.fixture(scope="module")
def dl21(tmp_path_factory):
    """NDCG@10 of runs of TREC DL 2021 by people and by GPT-4: run × query."""
    if REAL is None:
        pytest.skip("needs the files of trec-dl21 below TOPRANK_DATA")
    home, folder = Path(REAL, "trec-dl21"), tmp_path_factory.mktemp("dl21")
    with tarfile.open(home / "runs.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    qrels = [tr.read_qrels(home / f"qrels.{who}.txt") for who in ("human", "gpt4")]
    runs = [tr.read_run(path) for path in sorted(folder.rglob("*.run"))]
    return np.array([[tr.evaluate_run(r, q, ["ndcg@10"]).per_query["ndcg@10"] for q in qrels] for r in runs])


@pytest.mark.parametrize(("every", "draws"), [(16, 6), pytest.param(1, 20, marks=pytest.mark.slow)])
def test_coverage_on_runs_of_dl21(dl21, every, draws):
    rng = np.random.default_rng(0)
    for n in (10, 20, 30, 40):
        missed = total = 0
        for h, f in dl21[::every]:
            for _ in range(draws):
                order = rng.permutation(len(h))
                own, rest = order[:n], order[n:]
                for takes_part in (True, False):
                    found = judged_interval(h[own], f[own], f[rest], 0.8, with_machine=takes_part)
                    missed += not found.lower <= h.mean() <= found.upper
                    total += 1
        assert missed <= 0.2 * total, n
