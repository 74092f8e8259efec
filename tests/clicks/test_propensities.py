from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import toprank as tr
from tests.oracles import clicks as oracle
from toprank import InputError
from toprank.clicks import ClickLog, Propensities


@pytest.fixture(scope="module")
def log():
    data = tr.datasets.make_graded(n_queries=60, random_state=0)
    return tr.datasets.simulate_clicks(data, [data.X[:, 0], data.X[:, 1]], sessions=120_000, cut=5, random_state=3)


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=2, max_size=2), st.data())
def test_one_document_at_two_positions_gives_the_ratio_of_its_click_rates(shown, draw):
    (n1, n2) = shown[0]
    c1, c2 = draw.draw(st.integers(1, n1)), draw.draw(st.integers(1, n2))
    log = ClickLog.from_arrays(
        ["q"] * (n1 + n2),
        ["d"] * (n1 + n2),
        [1] * n1 + [2] * n2,
        [i < c1 for i in range(n1)] + [i < c2 for i in range(n2)],
    )
    found = Propensities.estimate(log, "harvest", resamples=0)
    assert found.values[1] == pytest.approx((c2 / n2) / (c1 / n1), rel=1e-6)


def test_the_harvested_estimate_solves_its_equations(log):
    found = Propensities.estimate(log, "harvest", resamples=0)
    rows = zip(log.query, log.document, log.position, log.clicked, strict=True)
    left = oracle.score_equations(oracle.counts(rows), found.values)
    assert max(map(abs, left.values())) < 1e-4
    assert found.converged


@pytest.mark.parametrize("method", ["smooth", "harvest", "em"])
def test_the_truth_is_found(log, method):
    found = Propensities.estimate(log, method, resamples=0)
    assert np.abs(found.values - 1 / np.arange(1, 6)).max() < 0.04


def test_intervals_hold_the_truth_and_shrink_with_the_log(log):
    whole = Propensities.estimate(log, resamples=60)
    part = Propensities.estimate(log.split(0.1)[0], resamples=60)
    truth = 1 / np.arange(1, 6)
    assert ((whole.lower <= truth + 0.01) & (truth - 0.01 <= whole.upper)).all()
    assert ((part.upper - part.lower)[1:] > (whole.upper - whole.lower)[1:]).all()
    assert "intervals over resampled queries" in str(whole)
    assert "no intervals were asked for" in str(Propensities.estimate(log, resamples=0))
    again = Propensities.estimate(log, resamples=60)
    np.testing.assert_array_equal(whole.lower, again.lower)


def test_em_is_the_plain_loop():
    rng = np.random.default_rng(0)
    rows = [("q", d, k, rng.random() < 0.3 / k) for d in "abc" for k in (1, 2, 3) for _ in range(40)]
    log = ClickLog.from_arrays(*(list(c) for c in zip(*rows, strict=True)))
    found = Propensities.estimate(log, "em", resamples=0)
    table = oracle.counts(rows)
    seen, attracts = [0.9 / k**0.5 for k in (1, 2, 3)], {("q", d): 0.3 for d in "abc"}
    for _ in range(4000):
        seen, attracts = oracle.em_step(table, seen, attracts)
    np.testing.assert_allclose(found.values, np.array(seen) / seen[0], atol=2e-3)


def test_trust_bias_is_told_from_position_bias():
    data = tr.datasets.make_graded(n_queries=60, random_state=0)
    log = tr.datasets.simulate_clicks(data, [data.X[:, 0], data.X[:, 1]], model="trust", sessions=150_000, cut=5)
    places = np.arange(1, 6)
    right, wrong = (1 - (1 + places) / 100) / places, np.minimum(1, 0.65 / places) / places
    truth = (right - wrong) / (right - wrong)[0]
    affine = Propensities.estimate(log, "trust", resamples=0)
    plain = Propensities.estimate(log, "harvest", resamples=0)
    assert np.abs(affine.values - truth).max() < 0.15
    assert np.abs(plain.values - truth).max() > 0.3
    assert affine.trust[0] > affine.trust[-1]


def test_what_the_log_does_not_tell_is_refused(log):
    data = tr.datasets.make_graded(n_queries=10, random_state=0)
    still = tr.datasets.simulate_clicks(data, data.X[:, 0], sessions=500)
    with pytest.raises(InputError, match="no clicked document was shown at two positions"):
        Propensities.estimate(still)
    # Document a moves between 1 and 2, b between 3 and 4: nothing compares the two pairs of positions.
    rows = [("q", d, k, i % 2) for d, k in (("a", 1), ("a", 2), ("b", 3), ("b", 4)) for i in range(4)]
    apart = ClickLog.from_arrays(*(list(c) for c in zip(*rows, strict=True)))
    with pytest.raises(InputError, match=r"position 3, 4 cannot be compared with position 1.*cut=2"):
        Propensities.estimate(apart)
    assert len(Propensities.estimate(apart, cut=2, resamples=0)) == 2
    rows = [("q", "a", k, int(k == 1)) for k in (1, 2) for _ in range(3)]
    silent = ClickLog.from_arrays(*(list(c) for c in zip(*rows, strict=True)))
    with pytest.raises(InputError, match="position 2: no clicks there"):
        Propensities.estimate(silent, "harvest")
    assert 0 < Propensities.estimate(silent, resamples=0).values[1] < 1


def test_saved_and_read_back(log, tmp_path):
    found = Propensities.estimate(log, resamples=10)
    found.save(tmp_path / "p.json")
    again = Propensities.load(tmp_path / "p.json")
    assert str(again) == str(found)
    np.testing.assert_array_equal(again.values, found.values)
    np.testing.assert_array_equal(again.overlap, found.overlap)
    (tmp_path / "bad.json").write_text('{"propensities": 1, "values": "x"}')
    with pytest.raises(InputError, match=r"bad\.json: not a file of propensities"):
        Propensities.load(tmp_path / "bad.json")
    assert found.plot().axes[0].get_xlabel() == "position"


@pytest.mark.parametrize("values", [[], [0.0], [1, np.nan], [1, -1], [[1, 0.5]], ["a"], None, [1, np.inf], [1j, 1]])
def test_what_cannot_be_a_propensity_is_refused(values):
    with pytest.raises(InputError, match="propensities are finite numbers"):
        Propensities.known(values)


@pytest.mark.parametrize(
    "change",
    [
        {"method": "x"},
        {"confidence": "high"},
        {"confidence": 2},
        {"converged": "no"},
        {"trust": [None]},
        {"overlap": []},
    ],
    ids=repr,
)
def test_a_file_with_a_bad_entry_is_refused_by_name(change, tmp_path):
    sound = {"propensities": 1, "values": [1], "trust": [0], "lower": [None], "upper": [None], "overlap": [[1]]}
    sound |= {"method": "em", "confidence": 0.95, "converged": True}
    file = tmp_path / "p.json"
    file.write_text(json.dumps(sound))
    assert len(Propensities.load(file)) == 1
    file.write_text(json.dumps({**sound, **change}))
    with pytest.raises(InputError, match=r"p\.json: not "):
        Propensities.load(file)
    with pytest.raises(InputError, match="absent cannot be read"):
        Propensities.load(tmp_path / "absent")


def test_the_toolkit_agrees(log):
    pytest.importorskip("torch")
    toolkit = pytest.importorskip("ultr_bias_toolkit.bias.intervention_harvesting")
    import pandas as pd

    frame = pd.DataFrame(
        {"query_id": log.query, "doc_id": log.document, "position": log.position, "click": log.clicked.astype(int)}
    )
    theirs = toolkit.AdjacentChainEstimator()(frame).examination.to_numpy()
    ours = Propensities.estimate(log, "harvest", resamples=100)
    assert np.abs(theirs - ours.values).max() < 2.5 * (ours.upper - ours.lower).max()
