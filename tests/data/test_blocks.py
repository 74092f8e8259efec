"""Serial, threads, processes and memory-mapped blocks: the same bits."""

import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import pairwise
from multiprocessing import get_context

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank import InputError, QueryDataset, open_queries, save_queries
from toprank.data import blocks, linear


@pytest.fixture(scope="module")
def data() -> QueryDataset:
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(150), rng.integers(1, 40, 150))
    return QueryDataset.from_arrays(rng.standard_normal((len(qid), 7)), rng.integers(0, 3, len(qid)), qid)


def gram(w, block: QueryDataset):
    s = linear.scores(block.X, w)
    return float(s @ s), linear.adjoint(block.X, s)


def test_every_executor_gives_the_same_bits(data, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "RUN_VALUES", 1000)  # an executor gets runs of blocks
    w = np.linspace(-1, 1, 7)
    fn = partial(gram, w)
    value, vector = data.map_reduce(fn, values=200)
    mapped = open_queries(save_queries(data, tmp_path / "queries"))
    with ThreadPoolExecutor(2) as threads, ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        for source in (data, mapped):
            for executor in (None, threads, processes):
                again, same = source.map_reduce(fn, executor=executor, values=200)
                assert again == value
                assert same.tobytes() == vector.tobytes()
    s = data.X @ w
    assert value == pytest.approx(s @ s)
    np.testing.assert_allclose(vector, data.X.T @ s)


def test_a_mapped_block_pickles_what_was_put_beside_its_features(data, tmp_path):
    mapped = open_queries(save_queries(data, tmp_path / "queries"))
    changed = replace(mapped, query_weight=np.arange(150.0), y=mapped.y * 2)[10:20]
    packed = pickle.dumps(changed)
    again = pickle.loads(packed)
    assert len(packed) < changed.X.nbytes
    assert isinstance(again.X, np.memmap)
    assert (again.X == changed.X).all()
    assert again.query_weight.tolist() == list(range(10, 20))
    assert (again.y == changed.y).all()


@given(st.lists(st.integers(1, 9), min_size=1, max_size=20), st.integers(1, 30))
def test_blocks_are_whole_queries_in_order(lengths, values):
    n = sum(lengths)
    whole = QueryDataset.from_arrays(
        np.arange(n, dtype=float)[:, None], np.zeros(n), np.repeat(range(len(lengths)), lengths)
    )
    parts = [part for run in blocks.LocalResults.of(whole, values).runs for part in run]
    assert np.concatenate([part.X for part in parts]).ravel().tolist() == list(range(n))
    assert [length for part in parts for length in part.lengths] == lengths
    starts = np.cumsum([0, *lengths])
    first = np.cumsum([0] + [part.n_queries for part in parts])
    for a, b in pairwise(first):  # one block for all that begin in the same stretch of rows
        assert len(set(starts[a:b] // values)) == 1
        assert b == len(lengths) or starts[b] // values != starts[a] // values


def test_combine_replaces_addition(data):
    assert data.map_reduce(lambda block: 1, values=100) > 3
    assert data.map_reduce(lambda block: int(block.lengths.max()), max, values=100) == data.lengths.max()


def test_no_blocks_is_an_error(data):
    with pytest.raises(ValueError, match="at least one block"):
        data[:0].map_reduce(len)


def test_a_mapped_folder_is_never_overwritten(data, tmp_path):
    save_queries(data, tmp_path / "queries")
    with pytest.raises(InputError, match="exists already"):
        save_queries(data, tmp_path / "queries")
    assert [entry.name for entry in tmp_path.iterdir()] == ["queries"]


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": "toprank-queries", "version": 99}'])
def test_a_bad_header_is_named(tmp_path, content):
    (tmp_path / "header.json").write_text(content)
    with pytest.raises(InputError, match=r"header\.json"):
        open_queries(tmp_path)
