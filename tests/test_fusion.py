"""Fusion against ranx, on runs that share some documents, and against the definitions on lists that share all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toprank as tr
from tests.oracles import fusion as oracle
from toprank.errors import InputError
from toprank.statistics.fusion import fuse_scores

documents = st.dictionaries(
    st.sampled_from("abcdefgh"), st.integers(0, 10_000).map(lambda n: n / 64), min_size=1
).filter(lambda docs: len(set(docs.values())) == len(docs))
runs = st.lists(st.fixed_dictionaries({"q1": documents, "q2": documents}), min_size=2, max_size=4)


def found(run: tr.Run) -> dict[tuple[str, str], float]:
    return dict(zip(zip(run.qid.tolist(), run.doc_ids.tolist(), strict=True), run.scores.tolist(), strict=True))


@settings(max_examples=60, deadline=None)
@given(runs, st.sampled_from(["rrf", "combsum", "combmnz"]))
def test_agrees_with_the_definitions(given_runs, method: str) -> None:
    assert found(tr.fuse(given_runs, method)) == pytest.approx(oracle.fused(given_runs, method), abs=1e-12)


@pytest.mark.slow  # ranx compiles for a minute
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("method", "name"), [("rrf", "rrf"), ("combsum", "sum"), ("combmnz", "mnz")])
def test_agrees_with_ranx(method: str, name: str) -> None:
    ranx = pytest.importorskip("ranx")
    rng = np.random.default_rng(0)
    given_runs = [
        {q: {f"d{d}": float(rng.random()) for d in rng.permutation(30)[:12]} for q in ("q1", "q2", "q3")}
        for _ in range(3)
    ]
    norm = None if method == "rrf" else "min-max"
    theirs = ranx.fuse(runs=[ranx.Run(run) for run in given_runs], method=name, norm=norm).to_dict()
    expected = {(q, d): s for q, docs in theirs.items() for d, s in docs.items()}
    assert found(tr.fuse(given_runs, method)) == pytest.approx(expected, abs=1e-9)


def test_lists_that_share_all_documents() -> None:
    rng = np.random.default_rng(0)
    ptr, scores = np.array([0, 3, 4, 9]), rng.random((3, 9))
    qid, docs = np.repeat(["a", "b", "c"], [3, 1, 5]), np.array([f"d{i}" for i in range(9)])
    for method in ("rrf", "combsum", "combmnz"):
        run = tr.fuse([tr.Run(qid, docs, one) for one in scores], method)
        np.testing.assert_allclose(run.scores, fuse_scores(list(scores), ptr, method), rtol=1e-12)
    assert fuse_scores(list(scores), ptr, "combsum")[3] == 0  # one document, nothing to scale by
    assert fuse_scores([np.ones(2), np.array([0.0, 1.0])], np.array([0, 2]), "combsum").tolist() == [0, 1]


def test_what_cannot_be_fused_is_named() -> None:
    one = {"q": {"a": 1.0}}
    with pytest.raises(InputError, match="at least two runs, got 1"):
        tr.fuse([one])
    with pytest.raises(InputError, match="method must be one of"):
        tr.fuse([one, one], "borda")
    with pytest.raises(InputError, match="run must be what"):
        tr.fuse([one, 3])
    twice = tr.Run(np.array(["q", "q"]), np.array(["a", "a"]), np.zeros(2))
    with pytest.raises(InputError, match="run 2: document a stands twice under query q"):
        tr.fuse([one, twice])
    with pytest.raises(InputError, match="k must be"):
        tr.fuse([one, one], k=-1)
