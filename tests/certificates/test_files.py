"""A law over all rankers: a model that went through a file has the same certificates."""

import warnings

import numpy as np
import pytest

import toprank as tr
from toprank import rankers
from toprank.rankers.online import OnlineRanker

QUICK = {"epochs": 1, "rounds": 3, "budget": 200, "max_iter": 50}


@pytest.mark.parametrize("name", [n for n in rankers.__all__ if isinstance(getattr(rankers, n), type)])
def test_save_load_certify_is_certify(name, tmp_path):
    kind = getattr(rankers, name)
    try:
        known = kind().get_params()
    except TypeError:
        pytest.skip("an abstract class, or one that needs a loss")
    data = tr.datasets.make_graded(n_queries=20, n_docs=(4, 8), n_features=4, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few rounds do not converge
        ranker = kind(**{key: value for key, value in QUICK.items() if key in known}).fit_queries(data)
    ranker.save(tmp_path / "model.json")
    loaded = tr.load(tmp_path / "model.json")
    found, again = tr.certify(ranker, data), tr.certify(loaded, data)
    assert [c.statement for c in found] == [c.statement for c in again]
    assert [c.verdict for c in found] == [c.verdict for c in again]
    assert [c.value for c in found] == pytest.approx([c.value for c in again], nan_ok=True)
    assert found[0].verdict == "does not apply"  # it learned from these queries


STREAMS = [
    kind
    for name in rankers.__all__
    if isinstance(kind := getattr(rankers, name), type) and hasattr(kind, "partial_fit")
]


@pytest.mark.parametrize("kind", STREAMS, ids=lambda kind: kind.__name__)
def test_a_stream_that_went_through_a_file_certifies_the_same(kind, tmp_path):
    try:
        ranker = kind()
    except TypeError:
        pytest.skip("one that needs a loss")
    data = tr.datasets.make_graded(n_queries=20, n_docs=(4, 8), n_features=4, random_state=0)
    data = data._with(y=(data.y > 1).astype(float))
    for query in data:
        ranker.partial_fit(query.X, query.y, qid=np.zeros(len(query.y)))
    ranker.save(tmp_path / "model.json")
    loaded = tr.load(tmp_path / "model.json")
    assert loaded.certify(data) == ranker.certify(data)
    if isinstance(ranker, OnlineRanker):
        assert loaded.certify() == ranker.certify()
    else:
        with pytest.raises(tr.InputError, match="notes nothing"):
            ranker.certify()
