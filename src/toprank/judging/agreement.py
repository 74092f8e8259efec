"""Do people and a machine give the same grades? Confusion matrix, weighted kappa, and where they differ most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import AnyArray, Floats, Ints
from ..errors import InputError
from .matching import TwoJudges

DRAWS = 2000
"""Bootstrap draws of queries for the interval of kappa."""


@dataclass(frozen=True, eq=False)
class Agreement:
    """How well two judges agree on documents; that says little of whether a measure by the machine's grades is right.

    Attributes
    ----------
    grades : the grades that either of them gave.
    confusion : how many documents people gave the grade of the row and the machine that of the column.
    kappa : weighted kappa (`weighted_kappas`): 1 is perfect agreement, 0 that of judges who look at nothing.
    interval : the middle 95% of κ over bootstrap draws of whole queries.
    exact : the share of documents with equal grades.
    higher : the share of documents that the machine gives the higher grade.
    """

    grades: Ints
    confusion: Ints
    kappa: float
    interval: tuple[float, float]
    exact: float
    higher: float


def agreement(both: TwoJudges, *, random_state: int = 0) -> Agreement:
    """Compare the grades of all documents that both judged.

    >>> people = {"q": {"a": 1, "b": 0}, "r": {"a": 1, "b": 0}}
    >>> machine = {"q": {"a": 1, "b": 0}, "r": {"a": 1, "b": 1}}
    >>> found = agreement(TwoJudges.of(people, machine))
    >>> found.confusion.tolist(), found.kappa, found.exact
    ([[1, 1], [0, 2]], 0.5, 0.75)
    """
    if not len(both.by_people):
        raise InputError("people and the machine judged no document in common: are the ids written the same way?")
    grades = np.unique(np.concatenate((both.by_people, both.by_machine)))
    row, column = np.searchsorted(grades, both.by_people), np.searchsorted(grades, both.by_machine)
    g = len(grades)
    per_query = np.zeros((both.n_people, g * g))
    np.add.at(per_query, (both.query, row * g + column), 1)
    whole = per_query.sum(axis=0)
    rng = np.random.default_rng(random_state)
    drawn = rng.multinomial(both.n_people, np.full(both.n_people, 1 / both.n_people), size=DRAWS) @ per_query
    kappas = weighted_kappas(drawn.reshape(DRAWS, g, g), grades)
    low, high = np.nanquantile(kappas, [0.025, 0.975]) if np.isfinite(kappas).any() else (np.nan, np.nan)
    return Agreement(
        grades=grades,
        confusion=whole.reshape(g, g).astype(np.int64),
        kappa=float(weighted_kappas(whole.reshape(1, g, g), grades)[0]),
        interval=(float(low), float(high)),
        exact=float((both.by_people == both.by_machine).mean()),
        higher=float((both.by_machine > both.by_people).mean()),
    )


def weighted_kappas(confusion: Floats, grades: Ints) -> Floats:
    """κ = 1 − Σ w O / Σ w E of each matrix, w = (grade − grade)²; NaN where both judges give one and the same grade.

    O is the confusion matrix and E the product of its margins over n.

    >>> weighted_kappas(np.array([[[5.0, 0.0], [0.0, 5.0]], [[5.0, 5.0], [5.0, 5.0]]]), np.array([0, 1])).tolist()
    [1.0, 0.0]
    """
    w = (grades[:, None] - grades[None, :]).astype(np.float64) ** 2
    total = confusion.sum(axis=(1, 2))
    expected = confusion.sum(axis=2)[:, :, None] * confusion.sum(axis=1)[:, None, :]
    chance = (w * expected).sum(axis=(1, 2)) / total
    seen = (w * confusion).sum(axis=(1, 2))
    return np.asarray(1 - np.divide(seen, chance, out=np.full(len(seen), np.nan), where=chance > 0))


def documents_apart(both: TwoJudges, most: int) -> list[tuple[str, str, int, int]]:
    """Return the documents whose grades differ most: query, document, grade by people, grade by the machine.

    >>> both = TwoJudges.of({"q": {"a": 3, "b": 0}}, {"q": {"a": 1, "b": 1}})
    >>> documents_apart(both, 1)
    [('q', 'a', 3, 1)]
    """
    gap = np.abs(both.by_people - both.by_machine)
    rows = np.argsort(-gap, kind="stable")[:most]
    return [
        (str(both.queries[both.query[i]]), str(both.document[i]), int(both.by_people[i]), int(both.by_machine[i]))
        for i in rows.tolist()
        if gap[i]
    ]


def mean_gaps(both: TwoJudges) -> Floats:
    """Return the mean of |grade − grade| of each query of both; NaN for one without a document of both."""
    count: AnyArray = np.bincount(both.query, minlength=both.n_people)
    gaps = np.bincount(both.query, np.abs(both.by_people - both.by_machine), minlength=both.n_people)
    return np.asarray(np.divide(gaps, count, out=np.full(both.n_people, np.nan), where=count > 0))
