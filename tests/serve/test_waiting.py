"""What waiting rankings take in memory is counted as it is, whatever their ids are."""

from __future__ import annotations

import tracemalloc

import msgspec
import numpy as np
import pytest

from toprank.data.documents import DocumentList
from toprank.serve.waiting import WaitingRankings


@pytest.mark.parametrize("letter", ["a", "é", "文", "🎈"])
@pytest.mark.parametrize(("n", "length"), [(1, 1), (1000, 6), (1000, 200)])
@pytest.mark.parametrize("sampled", [False, True])
def test_the_bytes_of_waiting_rankings_are_those_in_memory(letter: str, n: int, length: int, sampled: bool) -> None:
    waiting = WaitingRankings(most=np.inf)
    rankings = 300 if n == 1 else 8
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for ranking in range(rankings):
            ids = [f"{i:06d}"[:length] + letter * (length - 6) for i in range(ranking * n, (ranking + 1) * n)]
            waiting.put(DocumentList(ids, np.zeros((n, 2)), [*range(n)] if sampled else None))
            msgspec.json.encode(ids)  # as the answer is: text that is not ASCII keeps its UTF-8 from then on
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert 0.9 * taken <= waiting.nbytes <= 2 * taken


def test_long_ids_do_not_take_more_than_was_allowed() -> None:
    waiting = WaitingRankings(most=5e6)
    for ranking in range(20):
        waiting.put(DocumentList(["🎈" * 190 + str(ranking * 1000 + i) for i in range(1000)], np.zeros((1000, 1))))
    kept = sum(len(name.encode("utf-32-le")) for _, docs, _ in waiting.lists.values() for name in docs.ids)
    assert 0 < kept <= 5e6
