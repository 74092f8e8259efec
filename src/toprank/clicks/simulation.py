"""Users who click: made-up logs for tests and studies, where the truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, Literal

import numpy as np

from .._typing import AnyArray, Floats, Ints
from ..data import validation
from ..data.dataset import QueryDataset
from ..errors import InputError
from ..statistics.evaluation import checked_data_set, grouped_scores
from .log import ClickLog

_CASCADE: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "perfect": ((0.0, 0.2, 0.4, 0.8, 1.0), (0.0, 0.0, 0.0, 0.0, 0.0)),
    "navigational": ((0.05, 0.3, 0.5, 0.7, 0.95), (0.2, 0.3, 0.5, 0.7, 0.9)),
    "informational": ((0.4, 0.6, 0.7, 0.8, 0.9), (0.1, 0.2, 0.3, 0.4, 0.5)),
}
"""P(click | seen) and P(stop | clicked) on a scale from the worst to the best grade (Hofmann et al. 2013)."""


def simulate_clicks(
    data: QueryDataset,
    ranker: Any,
    model: Literal["position", "cascade", "trust"] = "position",
    sessions: int = 20_000,
    *,
    cut: int = 10,
    eta: float = 1.0,
    noise: float = 0.1,
    user: Literal["perfect", "navigational", "informational"] = "navigational",
    random_state: int = 0,
) -> ClickLog:
    """Show the top `cut` of judged queries drawn at random, and let users click by their grades.

    `ranker` is a model, scores in the row order of `data`, or a list of them, one of which serves each session.
    "position": position k is seen with p_k = k^−eta, and a document that is seen is clicked if it is relevant (grade
    above 0), or else with probability `noise`. "trust": what is seen and relevant is clicked with 1 − (1 + k)/100, what
    is seen and is not with 0.65/k (Agarwal et al. 2019). "cascade": users read from the top, click and stop by grade
    (`user`). Documents are named by `data.doc_ids`, or by their row in `data` where it has none.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=5, n_docs=6, random_state=0)
    >>> tr.datasets.simulate_clicks(data, data.X[:, 0], sessions=100, cut=3).position.reshape(100, 3)[0].tolist()
    [1, 2, 3]
    """
    checked_data_set(data)
    validation.check_count(sessions=sessions, cut=cut)
    validation.check_choice(("position", "cascade", "trust"), model=model)
    validation.check_choice(tuple(_CASCADE), user=user)
    validation.check_share(noise=noise)
    validation.check_not_negative(eta=eta)
    rng = validation.as_generator(random_state)
    several = isinstance(ranker, Sequence) and not isinstance(ranker, str)
    served = ranker if several and not any(isinstance(one, Real) for one in ranker) else [ranker]
    if not served:
        raise InputError("ranker is an empty list: give at least one")
    if not data.n_docs:
        raise InputError("data has no documents: nothing can be shown")
    depth = np.minimum(data.lengths, cut)
    pages = np.stack([_page(_scores(one, data), data, cut) for one in served])
    query = rng.choice(np.flatnonzero(data.lengths > 0), size=sessions)
    who = rng.integers(0, len(served), size=sessions)
    shown = pages[who, query]  # sessions × cut, −1 behind the end of a list
    there = shown >= 0
    grade = np.where(there, data.y[shown], 0.0)
    look = rng.random(shown.shape)
    if model == "cascade":
        clicked = cascade(grade, max(float(data.y.max(initial=0.0)), 1.0), user, look, rng)
    else:
        clicked = look < _chances(model, grade > 0, eta, noise)
    places = np.broadcast_to(np.arange(1, cut + 1), shown.shape)
    session = np.broadcast_to(np.arange(sessions)[:, None], shown.shape)
    rows = shown[there]
    documents = document_ids(data)
    return ClickLog(
        query=np.repeat(query, depth[query]).astype(np.int64),
        document=rows.astype(np.int64),
        position=places[there].astype(np.int64),
        clicked=clicked[there],
        query_ids=data.query_ids,
        doc_ids=documents,
        session=session[there].astype(np.int64),
        ranker=np.repeat(who, depth[query]).astype(np.int64),
        ranker_names=np.array([f"ranker {i + 1}" for i in range(len(served))]),
    )


def document_ids(data: QueryDataset) -> AnyArray:
    """Return what documents are called in a log: their ids, or where there are none their rows."""
    return np.arange(data.n_docs) if data.doc_ids is None else data.doc_ids


def _scores(ranker: Any, data: QueryDataset) -> Floats:
    return validation.as_scores(grouped_scores(ranker, data), data.n_docs)


def _page(scores: Floats, data: QueryDataset, cut: int) -> Ints:
    """Return the first `cut` rows of each query by score, ties in row order; −1 where a list is shorter."""
    query = np.repeat(np.arange(data.n_queries), data.lengths)
    order = np.lexsort((-scores, query))
    place = np.arange(len(order)) - np.repeat(data.ptr[:-1], data.lengths)
    page = np.full((data.n_queries, cut), -1, dtype=np.int64)
    top = place < cut
    page[query[top], place[top]] = order[top]
    return page


def _chances(model: str, relevant: AnyArray, eta: float, noise: float) -> Floats:
    places = np.arange(1, relevant.shape[1] + 1)
    seen = places ** -float(eta)
    if model == "trust":
        return np.where(relevant, seen * (1 - (1 + places) / 100), seen * np.minimum(1.0, 0.65 / places))
    return np.where(relevant, seen, seen * noise)


def cascade(grade: Floats, top: float, user: str, look: Floats, rng: np.random.Generator) -> AnyArray:
    """Return what cascade users click, a row per page; grades reach from 0 to `top`, `look` are uniform draws."""
    click, stop = (np.array(values) for values in _CASCADE[user])
    scale = np.linspace(0.0, top, len(click))
    wants, leaves = np.interp(grade, scale, click), np.interp(grade, scale, stop)
    reading, ends = np.ones(len(grade), dtype=bool), rng.random(grade.shape)
    clicked = np.zeros(grade.shape, dtype=bool)
    for k in range(grade.shape[1]):
        clicked[:, k] = reading & (look[:, k] < wants[:, k])
        reading &= ~(clicked[:, k] & (ends[:, k] < leaves[:, k]))
    return clicked


def cascade_page(grade: Floats, top: float, user: str, rng: np.random.Generator) -> AnyArray:
    """Return what one cascade user clicks on one page."""
    page = grade[None, :]
    clicked: AnyArray = cascade(page, top, user, rng.random(page.shape), rng)[0]
    return clicked
