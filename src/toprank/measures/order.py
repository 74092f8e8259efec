"""Which document comes first: descending scores, and one of six rules for documents that score the same.

Every order in toprank is a stable descending sort; where documents must be shown, ties keep input order. Lists are
ordered by `_rank_kernels.rank_list`: a sort, after a selection where only the top is wanted.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from .._typing import ArrayLike, Floats, Ints
from ..data import validation


class Ties(IntEnum):
    """How documents with equal scores are ranked.

    INPUT: in the order given. ID: as trec_eval does, scores in single precision and then document ids descending.
    WORST: the lower grade first. BEST: the higher grade first. AVERAGE: the expected value over all their orders.
    SHARED: all of them stand at the last rank they take up.
    """

    INPUT = 0
    ID = 1
    WORST = 2
    AVERAGE = 3
    SHARED = 4
    BEST = 5


def ranks(scores: ArrayLike, ptr: ArrayLike) -> Ints:
    """Return each document's place in its query, 1 for the best; ties keep input order.

    >>> ranks([0.1, 0.5, 0.5, 7.0], [0, 3, 4]).tolist()
    [3, 1, 2, 1]
    """
    from .plan import places

    s = validation.as_scores(scores)
    return places(s, s, validation.as_ptr(ptr, len(s)), Ties.INPUT).astype(np.int64)


def id_places(doc_ids: ArrayLike | None, n_docs: int) -> Floats:
    """Return for each document its place among descending ids, by which `Ties.ID` settles equal scores.

    Ids are compared as text, as trec_eval does ("9" comes after "10"). Without ids the rows stand for them, so the
    later of two tied rows goes first.

    >>> id_places(["b", "a", "c"], 3).tolist()
    [1.0, 2.0, 0.0]
    """
    ids = validation.as_doc_ids(doc_ids, n_docs)
    if ids is None:
        return np.arange(n_docs - 1, -1, -1, dtype=np.float64)
    text = ids.astype(str) if ids.dtype.kind != "S" else ids
    distinct, place = np.unique(text, return_inverse=True)
    return (len(distinct) - 1 - place).astype(np.float64)
