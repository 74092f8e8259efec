from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles import clicks as oracle
from toprank import InputError
from toprank.clicks import ClickLog, Propensities

ROWS = st.lists(
    st.tuples(st.sampled_from("pqr"), st.sampled_from("abcd"), st.integers(1, 4), st.booleans()),
    min_size=1,
    max_size=40,
)


ONE = Propensities.known([1.0])


def log_of(rows, **more):
    return ClickLog.from_arrays(*(list(column) for column in zip(*rows, strict=True)), **more)


@given(ROWS)
def test_counts_are_those_of_a_plain_loop(rows):
    log = log_of(rows)
    found = {}
    c = log.counts
    for row in range(len(c.position)):
        pair = c.pair[row]
        key = (log.query_ids[c.query[pair]], log.doc_ids[c.document[pair]], int(c.position[row]))
        assert key not in found
        found[key] = [int(c.shown[row]), int(c.clicks[row])]
    assert found == oracle.counts(rows)


@given(ROWS, st.integers(1, 4))
def test_counts_up_to_a_position_are_counts_of_those_rows(rows, cut):
    near = [row for row in rows if row[2] <= cut]
    if not near:
        return
    ours, plain = log_of(rows).counts.up_to(cut), log_of(near).counts
    assert sorted(zip(ours.position, ours.shown, ours.clicks, strict=True)) == sorted(
        zip(plain.position, plain.shown, plain.clicks, strict=True)
    )
    assert ours.n_pairs == plain.n_pairs


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"position": [0, 1]}, "row 0 of the log has position 0: positions start at 1: add 1"),
        ({"position": [1, 1.5]}, "row 1 of the log has position 1.5"),
        ({"clicked": [0, 2]}, "row 1 of the log has clicked = 2"),
        ({"session": [7, 7], "position": [2, 2]}, "rows 0 and 1 of the log are one session and both have position 2"),
        ({"session": [7, 7], "document": ["a", "a"]}, "both have document a"),
        ({"session": [7, 7], "query": ["q", "p"]}, "row 1 of the log has another query than its session"),
        ({"document": ["a"]}, "document must have one value per row"),
        ({"position": [1, float("nan")]}, "row 1 of the log has position nan"),
        ({"query": ["q", None]}, "row 1 of the log has no query"),
        ({"document": ["a", float("nan")]}, "row 1 of the log has no document"),
        ({"query": [3.0, float("nan")]}, "row 1 of the log has no query"),
    ],
)
def test_what_cannot_be_a_log_is_refused_by_row(change, words):
    sound = {"query": ["q", "q"], "document": ["a", "b"], "position": [1, 2], "clicked": [0, 1]}
    ClickLog.from_arrays(**sound)
    with pytest.raises(InputError, match=words.replace("(", r"\(")):
        ClickLog.from_arrays(**{**sound, **change})


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_tables_are_read_by_the_names_people_use(make):
    frame = make({"qid": [3, 3], "doc_id": ["a", "b"], "rank": [1, 2], "click": [True, False], "session_id": [1, 1]})
    log = ClickLog.from_table(frame)
    assert log.clicked.tolist() == [True, False]
    assert log.session is not None
    with pytest.raises(InputError, match="no column 'shown_at' for the position"):
        ClickLog.from_table(frame, position="shown_at")
    with pytest.raises(InputError, match="a click log has no 'posit'"):
        ClickLog.from_table(frame, posit="rank")


def test_user_behavior_insights():
    queries = pd.DataFrame(
        {
            "query_id": ["r1", "r2"],
            "user_query": ["tea", "tea"],
            "query_response_hit_ids": [["a", "b"], ["b", "a", "c"]],
        }
    )
    events = pd.DataFrame(
        {"action_name": ["click", "view", "click"], "query_id": ["r1", "r1", "r2"], "object_id": ["b", "a", "c"]}
    )
    log = ClickLog.from_ubi(queries, events)
    assert log.query_ids.tolist() == ["tea"]
    shown = [(log.doc_ids[d], int(p), bool(c)) for d, p, c in zip(log.document, log.position, log.clicked, strict=True)]
    assert shown == [("a", 1, False), ("b", 2, True), ("b", 1, False), ("a", 2, False), ("c", 3, True)]
    with pytest.raises(InputError, match="1 clicks are on what was not shown, the first on 'z' in request 'r2'"):
        ClickLog.from_ubi(queries, events.assign(object_id=["b", "a", "z"]))
    with pytest.raises(InputError, match="'query_response_hit_ids' must hold a list of ids in each row"):
        ClickLog.from_ubi(queries.assign(query_response_hit_ids=["a,b", "b,a,c"]), events)


@pytest.mark.parametrize("make", [lambda frame: frame, pa.Table.from_pandas])
def test_user_behavior_insights_as_the_engine_keeps_it(make):
    """Events hold their object inside their attributes, and ids may be numbers."""
    queries = pd.DataFrame({"query_id": ["r1"], "user_query": ["tea"], "query_response_hit_ids": [[7, 8]]})
    inside = [{"object": {"object_id": "8"}, "position": {"ordinal": 2}}, {"object": None, "position": None}]
    events = pd.DataFrame({"action_name": ["click", "search"], "query_id": ["r1", "r1"], "event_attributes": inside})
    log = ClickLog.from_ubi(make(queries), make(events))
    assert log.doc_ids[log.document].tolist() == ["7", "8"]
    assert log.clicked.tolist() == [False, True]


def test_nothing_is_read_off_an_empty_part():
    none = log_of([("q", "a", 1, True)]).take(np.zeros(1, dtype=bool))
    assert "0 impressions" in repr(none)
    for ask in (lambda: none.counts, lambda: Propensities.estimate(none), lambda: none.effective_sample_size(ONE)):
        with pytest.raises(InputError, match="the click log is empty"):
            ask()


def test_a_split_deals_whole_sessions():
    rng = np.random.default_rng(0)
    session = np.repeat(np.arange(50), 3)
    log = ClickLog.from_arrays(
        session % 5, np.tile([0, 1, 2], 50), np.tile([1, 2, 3], 50), rng.random(150) < 0.5, session
    )
    one, two = log.split(0.5, random_state=1)
    assert one.n_impressions + two.n_impressions == 150
    assert not set(one.session) & set(two.session)
    assert 0 < one.n_impressions < 150
