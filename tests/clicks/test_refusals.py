"""What is no log, no seed, no propensity is refused in one line; what only looks odd is taken."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import toprank as tr
from toprank import InputError, QueryDataset
from toprank.clicks import ClickLog, Propensities, click_value, interleave, interleaving_test

DATA = QueryDataset.from_arrays(np.eye(4), [1, 0, 1, 0], doc_weight=[1, 0, 2, 0])
SCORES = [3.0, 2.0, 1.0, 0.0]
LOG = tr.datasets.simulate_clicks(DATA, SCORES, sessions=20)
FLAT = Propensities.known([1.0] * 4)
PAGE = interleave(["a", "b"], ["b", "c"], 3)
SEEDED = {
    "click_value": lambda seed: click_value(SCORES, DATA, random_state=seed),
    "split": lambda seed: LOG.split(random_state=seed),
    "estimate": lambda seed: Propensities.estimate(LOG, random_state=seed),
    "simulate_clicks": lambda seed: tr.datasets.simulate_clicks(DATA, SCORES, random_state=seed),
    "interleave": lambda seed: interleave(["a"], ["b"], random_state=seed),
}


@pytest.mark.parametrize("seed", [-1, 1.5, "x", True])
@pytest.mark.parametrize("what", SEEDED)
def test_a_seed_is_a_whole_number(what, seed):
    with pytest.raises(InputError, match="random_state must be a whole number not below 0"):
        SEEDED[what](seed)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: click_value(SCORES, np.eye(4)), "QueryDataset"),
        (lambda: tr.datasets.simulate_clicks(np.eye(4), SCORES), "QueryDataset"),
        (lambda: LOG.to_queries(np.eye(4), FLAT), "QueryDataset"),
        (lambda: LOG.to_queries(DATA, [1.0, 0.5]), "propensities must be Propensities, got list"),
        (lambda: LOG.effective_sample_size([1.0]), "propensities must be Propensities, got list"),
        (lambda: Propensities.estimate(pd.DataFrame()), "log must be a ClickLog, got DataFrame"),
        (lambda: LOG.split(2), "share must be a share between 0 and 1, got 2"),
        (lambda: LOG.split(np.nan), "share must be"),
        (
            lambda: ClickLog.from_arrays([["q"], ["q", "r"]], ["a", "b"], [1, 2], [0, 1]),
            "row 0 of the log has the query",
        ),
        (
            lambda: ClickLog.from_table(_table(document=[{"a": 1}, {}])),
            "column 'document' holds {'a': 1} in row 0: an id is text",
        ),
        (lambda: ClickLog.from_arrays(["q"], ["a"], [2**40], [1]), "row 0 of the log has position 1099511627776"),
        (lambda: Propensities.known([[1], [1, 2]]), "propensities are finite numbers"),
        (lambda: interleave([[1], [1, 2]], ["a"]), "a ranking is a list of documents"),
        (lambda: interleave("abc", "bcd"), "a ranking is a list of documents"),
        (lambda: interleave([["a"]], ["b"]), "a ranking is a list of documents"),
        (lambda: PAGE.credit([2, 0, 0]), "clicked has 2: write 0 or 1 for each document shown"),
        (lambda: PAGE.credit(["0", "0", "0"]), "clicked must have one flag per document shown"),
        (lambda: interleaving_test([[1.5, 0]]), "row 0: they are counts of clicks"),
        (lambda: interleaving_test([[np.inf, 0]]), "row 0: they are counts of clicks"),
        (lambda: ClickLog.from_ubi(_asked(), _done(event_attributes=["x"])), "event_attributes must hold"),
        (lambda: ClickLog.from_ubi(_asked(), _done(object_id=[None])), "'object_id' of the log is empty in row 0"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(call, words):
    with pytest.raises(InputError, match=words) as refused:
        call()
    assert "\n" not in str(refused.value)


def _table(**columns):
    return pd.DataFrame({"query": ["q", "q"], "document": ["a", "b"], "position": [1, 2], "clicked": [0, 1], **columns})


def _asked():
    return pd.DataFrame({"query_id": ["r"], "user_query": ["tea"], "query_response_hit_ids": [["a", "b"]]})


def _done(**columns):
    return pd.DataFrame({"action_name": ["click"], "query_id": ["r"], **columns})


def test_events_that_are_no_clicks_need_no_request_and_no_object():
    others = pd.DataFrame({"action_name": ["login", "click"], "query_id": [None, "r"], "object_id": [None, "b"]})
    log = ClickLog.from_ubi(_asked(), others)
    assert log.doc_ids[log.document[log.clicked]].tolist() == ["b"]


def test_a_position_that_was_never_shown_is_named_before_tables_are_made():
    log = ClickLog.from_arrays(["q"] * 4, ["a"] * 4, [1, 1, 10**9, 10**9], [1, 0, 1, 0])
    with pytest.raises(InputError, match=r"position 2 was never shown.*use cut=1"):
        Propensities.estimate(log)


def test_users_whose_eta_is_a_whole_number():
    whole, half = (tr.datasets.simulate_clicks(DATA, SCORES, eta=eta, sessions=50) for eta in (2, 2.0))
    np.testing.assert_array_equal(whole.clicked, half.clicked)


def test_a_query_without_documents_counts_for_nothing_on_held_out_clicks():
    weights = np.array([1.0, 5.0])
    blank = QueryDataset(np.eye(2), np.ones(2), np.array([0, 1, 1, 2, 2]), np.arange(4), doc_weight=weights)
    lists = QueryDataset.from_arrays(np.eye(2), np.ones(2), [0, 1], doc_weight=weights)
    for k in (None, 1):
        assert click_value([1.0, 2.0], blank, k).value == click_value([1.0, 2.0], lists, k).value == 1.0


def test_weights_near_the_end_of_the_numbers_are_only_weights():
    large = QueryDataset.from_arrays(np.eye(4), [1, 0, 1, 0], doc_weight=np.array([1, 0, 2, 0]) * 8e307)
    assert click_value(SCORES, large).value == pytest.approx(click_value(SCORES, DATA).value)
    tiny = Propensities.known([1, 1e-200, 1e-200, 1e-200])
    log = ClickLog.from_arrays(["q", "q"], ["a", "b"], [2, 3], [1, 1])
    assert log.effective_sample_size(tiny, None) == pytest.approx(2)
