"""Two threads at one ranker: what one of them learned is kept, the other is told; a model in use never changes."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier

import numpy as np
import pytest

import toprank as tr
from toprank import rankers
from toprank.errors import InputError

DATA = tr.datasets.make_graded(n_queries=30, n_features=4, random_state=0)
TWO = tr.QueryDataset.from_arrays(DATA.X, (DATA.y > 1).astype(int), DATA.qid)
STREAMS = [name for name in rankers.__all__ if hasattr(getattr(rankers, name), "partial_fit")]


def lists_of(name):
    return TWO if "AtK" in name or name == "OnePassMiniBatch" else DATA


@pytest.mark.parametrize("name", STREAMS)
def test_a_held_model_never_changes(name):
    data = lists_of(name)
    ranker = getattr(rankers, name)().fit_queries(data[:10])
    held, before = ranker.function_, ranker.predict(data).copy()
    for query in data[10:20]:
        ranker.partial_fit(query.X, query.y)
    np.testing.assert_array_equal(held.scores(data.X), before)
    assert ranker.function_ is not held
    ranker.fit_queries(data[20:])
    np.testing.assert_array_equal(held.scores(data.X), before)


def test_partial_fit_from_two_threads_keeps_what_it_says_it_kept():
    ranker = tr.SlamPerceptron().fit_queries(DATA[:5])
    start = ranker.n_queries_in_
    barrier = Barrier(4)

    def learn(k):
        barrier.wait()
        kept = 0
        for query in DATA:
            with suppress(InputError):
                ranker.partial_fit(query.X, query.y)
                kept += 1
        return kept

    with ThreadPoolExecutor(4) as pool:
        kept = sum(pool.map(learn, range(4)))
    assert ranker.n_queries_in_ - start == kept >= 1


def test_the_thread_that_comes_second_is_told():
    ranker = tr.SlamPerceptron().fit_queries(DATA[:5])
    later = ranker._learning_copy()
    later.__enter__()._learn_more(DATA[6])
    kept = ranker.partial_fit(DATA[5].X, DATA[5].y).function_
    with pytest.raises(InputError, match="learned in another thread meanwhile"):
        later.__exit__(None, None, None)
    assert ranker.function_ is kept
