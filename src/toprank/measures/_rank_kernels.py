# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Lists in descending order of their scores: documents by rank, grades by rank, ends of tied groups.

Ranks count from 0. `ends[r]` is where the group of documents that score the same as the one at rank r ends; `ends` is
empty where no documents tie, which is how the measures know that there is nothing to average.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core.jit import kernel
from ..core.sorting import kth_largest, sort_down
from .order import Ties

INPUT, BY_ID, WORST, AVERAGE = int(Ties.INPUT), int(Ties.ID), int(Ties.WORST), int(Ties.AVERAGE)
"""SHARED orders tied documents as AVERAGE does."""


@kernel
def documents_by_rank(s, depth):
    """Return documents by falling score and their scores: at least the first `depth`, and never a part of a group."""
    n, count = len(s), 0
    order, keys = np.empty(n, np.int64), np.empty(n)
    lowest = kth_largest(s, depth) if depth < n else -np.inf
    for i in range(n):
        order[count], keys[count] = i, s[i]
        count += s[i] >= lowest
    order, keys = order[:count], keys[:count]
    sort_down(keys, order)
    return order, keys


@kernel
def ends_of_groups(keys):
    """Return where the group of equal keys that each rank belongs to ends; nothing if all keys are different."""
    n, equal = len(keys), 0
    for r in range(1, n):
        equal += keys[r] == keys[r - 1]
    if equal == 0:
        return np.empty(0, np.int64)
    ends = np.empty(n, np.int64)
    for r in range(n - 1, -1, -1):
        ends[r] = ends[r + 1] if r + 1 < n and keys[r] == keys[r + 1] else r + 1
    return ends


@kernel
def settle_ties(order, s, y, ties):
    """Put documents of equal score into the order of the rule: sort by the rule, then stably by score.

    Documents whose values will be averaged stand by falling grade, so that the order of the rows changes no bit.
    """
    keys = np.empty(len(order))
    for r in range(len(order)):
        if ties == BY_ID:
            keys[r] = order[r]  # without ids the rows stand for them, descending
        else:
            keys[r] = -y[order[r]] if ties == WORST else y[order[r]]
    sort_down(keys, order)
    for r in range(len(order)):
        keys[r] = s[order[r]]
    sort_down(keys, order)


@kernel
def rank_list(s, y, ties, depth):
    """Order a list under a tie rule; return documents by rank, grades by rank and the ends of tied groups.

    At least the first `depth` ranks are returned, and tied groups whole.
    """
    order, keys = documents_by_rank(s, depth)
    ends = ends_of_groups(keys)
    if len(ends) > 0 and ties != INPUT:
        settle_ties(order, s, y, ties)
    ranked = np.empty(len(order))
    for r in range(len(order)):
        ranked[r] = y[order[r]]
    return order, ranked, ends


class RankedLists(NamedTuple):
    """Lists that have been ordered: what every measure reads. List q begins at ptr[q] in all long arrays."""

    ranked: Any
    """Grades by rank."""
    ends: Any
    """Ends of tied groups by rank, counted from the beginning of the list."""
    n_ranked: Any
    """How many ranks of each list are filled: all, or at least as many as the deepest measure reads."""
    n_ends: Any
    """How many `ends` each list has: as many as ranks if tied documents are averaged and some tie, otherwise none."""
    mixed: Any
    """Whether documents of different grade tie among the ranks of each list."""
    y: Any
    """Grades as given; in a run also those of documents that it lacks."""
    ptr: Any


@kernel
def count_retrieved(s, first, stop):
    """Documents of a list without those at its end whose score is NaN: a run lacks them."""
    while stop > first and s[stop - 1] != s[stop - 1]:
        stop -= 1
    return stop - first


@kernel
def mixes_grades(ranked, ends):
    """Whether documents of different grade tie."""
    mixed = False
    for r in range(len(ends)):
        mixed |= ends[r] > r + 1 and ranked[r] != ranked[r + 1]
    return mixed


@kernel
def rank_lists(s, y, ptr, ties, depth):
    """Order every list under a tie rule, for measures that read the first `depth` ranks."""
    n_lists = len(ptr) - 1
    all_ranked, all_ends = np.empty(len(s)), np.empty(len(s), np.int64)
    n_ranked, n_ends, mixed = np.empty(n_lists, np.int64), np.empty(n_lists, np.int64), np.empty(n_lists, np.bool_)
    for q in range(n_lists):
        first = ptr[q]
        stop = first + count_retrieved(s, first, ptr[q + 1])
        _, ranked, ends = rank_list(s[first:stop], y[first:stop], ties, depth)
        for r in range(len(ranked)):
            all_ranked[first + r] = ranked[r]
        n_ranked[q] = len(ranked)
        mixed[q] = mixes_grades(ranked, ends)
        n_ends[q] = len(ends) if ties == AVERAGE else 0
        for r in range(n_ends[q]):
            all_ends[first + r] = ends[r]
    return RankedLists(all_ranked, all_ends, n_ranked, n_ends, mixed, y, ptr)


@kernel
def list_at(lists, q):
    """Return list q: its grades by rank, the ends of its tied groups (if any) and its grades as given."""
    first = lists.ptr[q]
    ranked, ends = lists.ranked[first : first + lists.n_ranked[q]], lists.ends[first : first + lists.n_ends[q]]
    return ranked, ends, lists.y[first : lists.ptr[q + 1]]


@kernel
def places_of_documents(s, y, ptr, ties):
    """Return the rank of every document in its list, from 1; NaN for documents that a run lacks."""
    places = np.full(len(s), np.nan)
    for q in range(len(ptr) - 1):
        first = ptr[q]
        stop = first + count_retrieved(s, first, ptr[q + 1])
        order, _, _ = rank_list(s[first:stop], y[first:stop], ties, stop - first)
        for r in range(len(order)):
            places[first + order[r]] = r + 1
    return places
