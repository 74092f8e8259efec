"""Data sets by name and to order: `load` reads published collections, `make_…` generate.

>>> from toprank import datasets
>>> datasets.make_graded(n_queries=5, n_docs=(4, 4), random_state=0)
QueryDataset(5 queries, 20 documents, 20 features, float64)
"""

from __future__ import annotations

from .clicks.simulation import simulate_clicks
from .data.adversary import LowerBoundAdversary
from .data.catalog import CATALOG, Collection, load
from .data.synthetic import Separable, make_graded, make_mslr_like, make_separable

__all__ = [
    "CATALOG",
    "Collection",
    "LowerBoundAdversary",
    "Separable",
    "load",
    "make_graded",
    "make_mslr_like",
    "make_separable",
    "simulate_clicks",
]
