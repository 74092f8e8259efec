"""`toprank.certify`: what is proved about a fitted ranker on a data set."""

from __future__ import annotations

from typing import Any

from ..certificates.base import Certificate
from ..data.dataset import QueryDataset
from ..errors import InputError
from .base import Ranker


def certify(ranker: Ranker, data: QueryDataset, comparator: Any = None) -> list[Certificate]:
    """Return the certificates of `ranker` on `data`, and keep them as `ranker.certificates_`.

    For online rankers `data` is the stream that they learned from, and `comparator` a weight vector to compare with:
    where it is None, the best one found in batch serves. For the kernel perceptron a comparator is a function: another
    fitted ranker with the same kernel, or a pair (documents, coefficients).

    >>> import toprank as tr
    >>> made = tr.datasets.make_separable(n_queries=200, n_docs=5, random_state=0)
    >>> ranker = tr.MinimaxPerceptron("map", random_state=0).fit_queries(made.data)
    >>> all(certificate.holds() for certificate in tr.certify(ranker, made.data, comparator=made.ranker))
    True
    """
    if not isinstance(ranker, Ranker):
        raise InputError(
            f"certify takes a toprank ranker, not {type(ranker).__name__}; "
            "for scikit-learn's Perceptron: toprank.certify_perceptron(model, X, y)"
        )
    certificates = ranker.certify(data, comparator)
    ranker.certificates_ = certificates
    return certificates
