"""Weights of queries by id, by row and by order of appearance mean the same queries."""

import numpy as np
import pytest

import toprank as tr
from toprank.errors import InputError

DATA = tr.datasets.make_graded(n_queries=12, n_docs=(2, 6), n_features=3, random_state=0)
IDS = np.array([f"q{(7 * q) % 12:02d}" for q in range(12)])
QID = np.repeat(IDS, DATA.lengths)
WEIGHT = {query: 1.0 + (3.0 if int(query[1:]) % 3 == 0 else 0.0) + int(query[1:]) / 10 for query in IDS.tolist()}
MIXED = np.random.default_rng(0).permutation(DATA.n_docs)


def fitted(weight):
    return tr.ListNet().fit(DATA.X[MIXED], DATA.y[MIXED], qid=QID[MIXED], query_weight=weight).coef_


def test_every_form_weighs_the_same_queries():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    appearing = list(dict.fromkeys(QID[MIXED].tolist()))
    wanted = fitted([WEIGHT[query] for query in appearing])
    rows = [WEIGHT[query] for query in QID[MIXED].tolist()]
    by_id = pd.Series(WEIGHT).sort_index()
    frame = pd.DataFrame({"weight": rows}, index=np.arange(DATA.n_docs)[::-1])
    for given in (WEIGHT, by_id, by_id[::-1], rows, np.array(rows), frame["weight"]):
        assert np.array_equal(fitted(given), wanted)
    assert not np.allclose(fitted(by_id.tolist()), wanted)  # in another order they are other queries' weights
    assert not np.allclose(fitted(None), wanted)


def test_numbers_and_their_text_are_one_id():
    qid = np.repeat([f"{q}" for q in range(12)], DATA.lengths)
    weights = {q: 1.0 + q for q in range(12)}
    found = tr.QueryDataset.from_arrays(DATA.X, DATA.y, qid, query_weight=weights)
    assert found.query_weight.tolist() == [1.0 + q for q in range(12)]


def test_what_is_refused():
    with pytest.raises(InputError, match="query_weight has no weight for query q00"):
        fitted({query: weight for query, weight in WEIGHT.items() if query != "q00"})
    rows = np.array([WEIGHT[query] for query in QID[MIXED].tolist()])
    rows[np.flatnonzero(QID[MIXED] == "q05")[1]] += 1
    with pytest.raises(InputError, match=r"query_weight differs inside query q05.*doc_weight"):
        fitted(rows)
    with pytest.raises(InputError, match=r"one weight per query \(12\)"):
        fitted(np.ones(5))
