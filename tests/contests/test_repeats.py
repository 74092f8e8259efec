"""Variance split by its sources: made-up components come back, intervals cover, learners differ only where they do."""

import numpy as np
import pytest

import toprank as tr
from toprank.contests.repeats import learner_difference


def made_up(rng, R, n, mean=0.0, sample=0.0, seed=0.0, queries=0.0, rest=0.0):
    """mean + R_r + S_rs + Q_q + e, with these standard deviations."""
    return (
        mean
        + sample * rng.standard_normal((R, 1, 1))
        + seed * rng.standard_normal((R, 2, 1))
        + queries * rng.standard_normal(n)
        + rest * rng.standard_normal((R, 2, n))
    )


def test_components_come_back():
    rng = np.random.default_rng(0)
    one = learner_difference("a", "b", made_up(rng, 400, 400, 0.3, sample=0.2, seed=0.1, queries=0.4, rest=0.5), 0.05)
    assert one.sample == pytest.approx(0.2, rel=0.12)
    assert one.seed == pytest.approx(0.1, rel=0.12)
    assert one.queries == pytest.approx(0.4, rel=0.12)
    assert one.rest == pytest.approx(0.5, rel=0.05)
    nothing = learner_difference("a", "b", np.full((3, 2, 4), 0.25), 0.05)
    assert (nothing.difference, nothing.sample, nothing.seed, nothing.queries, nothing.rest) == (0.25, 0, 0, 0, 0)


@pytest.mark.parametrize(
    "part", [{"sample": 0.3}, {"queries": 0.3}, {"sample": 0.2, "seed": 0.2, "queries": 0.2, "rest": 0.5}]
)
def test_intervals_cover(part):
    """Whatever the spread comes from, the interval of the mean holds it about 95 times in 100."""
    rng, trials = np.random.default_rng(1), 400
    held = 0
    for _ in range(trials):
        low, high = learner_difference("a", "b", made_up(rng, 6, 30, 0.1, **part), 0.05).interval
        held += low <= 0.1 <= high
    assert held / trials >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / trials)


def test_models_differ_where_learners_do_not():
    """All the spread is the training sample: many queries show that the models differ, and nothing about learners."""
    rng = np.random.default_rng(2)
    shown = np.mean(
        [learner_difference("a", "b", made_up(rng, 5, 200, sample=0.3, rest=0.01), 0.05).shown for _ in range(200)]
    )
    assert shown <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)


def test_a_contest_that_repeats():
    data = tr.datasets.make_graded(n_queries=60, n_docs=(4, 9), n_features=4, random_state=0)
    rankers = {"good": tr.RankSVM(C=1.0), "poor": tr.RankSVM(C=1e-9), "online": tr.OnlineListNet(epochs=2)}
    result = tr.contest(data[:30], data[40:], data[30:40], rankers, repeats=3)
    assert {row.b for row in result.repeats.rows} | {row.a for row in result.repeats.rows} == set(rankers)
    assert result.repeats.n == 3
    assert "3 resamples of the training queries, 2 seeds each" in str(result)
    assert result.to_dict()["repeats"]["rows"][0]["interval"]
    both = {name: rankers[name] for name in ("good", "poor")}
    (row,) = tr.contest(data[:30], data[40:], data[30:40], both, repeats=3).repeats.rows
    assert row.seed == 0  # neither has a seed
    again = tr.contest(data[:30], data[40:], data[30:40], rankers, repeats=3)
    assert again.repeats == result.repeats
    assert tr.contest(data[:30], data[40:], data[30:40], rankers).repeats is None
    for wrong in (1, -1, 2.5):
        with pytest.raises(tr.InputError, match="repeats must be"):
            tr.contest(data[:30], data[40:], data[30:40], rankers, repeats=wrong)
