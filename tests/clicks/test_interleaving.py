from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from toprank import InputError
from toprank.clicks import interleave, interleaving_test

RANKING = st.permutations(list("abcdef")).flatmap(lambda p: st.integers(0, 6).map(lambda n: list(p)[:n]))


@given(RANKING, RANKING, st.integers(1, 8), st.integers(0, 2**32))
def test_a_draft_takes_turns_and_shows_nothing_twice(first, second, length, seed):
    page = interleave(np.array(first, dtype=object), np.array(second, dtype=object), length, seed)
    shown = page.shown.tolist()
    assert len(shown) == len(set(shown)) == min(length, len(set(first) | set(second)))
    for place, (document, team) in enumerate(zip(shown, page.team, strict=True)):
        ranking = (first, second)[team]
        left = [d for d in ranking if d not in shown[:place]]
        assert document == left[0]  # each takes its best that is not shown yet
    clicked = [place % 3 != 1 for place in range(len(shown))]
    pairs = list(zip(clicked, page.team.tolist(), strict=True))
    assert page.credit(clicked) == tuple(sum(click for click, team in pairs if team == who) for who in (0, 1))
    if set(first) == set(second):
        for place in range(0, len(shown) - 1, 2):
            assert set(page.team[place : place + 2].tolist()) == {0, 1}


def test_equal_rankings_share_the_places_evenly():
    teams = np.array([interleave([1, 2, 3, 4], [1, 2, 3, 4], 4, seed).team for seed in range(400)])
    for place in range(4):
        assert binomtest(int(teams[:, place].sum()), 400).pvalue > 1e-4


def test_the_test_says_who_and_when_it_cannot_say():
    assert "the second is clicked more" in str(interleaving_test([[0, 2]] * 12 + [[1, 0]]))
    even = interleaving_test([[1, 0]] * 6 + [[0, 1]] * 5)
    assert "no difference shown" in str(even)
    assert even.p == pytest.approx(binomtest(6, 11).pvalue)
    assert interleaving_test([[1, 1]]).p == 1.0
    with pytest.raises(InputError, match="two columns"):
        interleaving_test([1, 2, 3])
    for row in ([np.nan, 1], [-1, 0], ["a", "b"]):
        with pytest.raises(InputError, match="in row 0: they are counts of clicks"):
            interleaving_test([row])
