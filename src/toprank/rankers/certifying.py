"""`toprank.certify`: what is proved about a fitted ranker on a data set."""

from __future__ import annotations

from .._typing import ArrayLike
from ..certificates.base import Certificate
from ..data.dataset import QueryDataset
from .base import Ranker


def certify(ranker: Ranker, data: QueryDataset, comparator: ArrayLike | None = None) -> list[Certificate]:
    """Return the certificates of `ranker` on `data`, and keep them as `ranker.certificates_`.

    For online rankers `data` is the stream that they learned from, and `comparator` a weight vector to compare with:
    where it is None, the best one found in batch serves.

    >>> import toprank as tr
    >>> made = tr.datasets.make_separable(n_queries=200, n_docs=5, random_state=0)
    >>> ranker = tr.MinimaxPerceptron("map", random_state=0).fit_queries(made.data)
    >>> all(certificate.holds() for certificate in tr.certify(ranker, made.data, comparator=made.ranker))
    True
    """
    certificates = ranker.certify(data, comparator)
    ranker.certificates_ = certificates
    return certificates
