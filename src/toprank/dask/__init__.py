"""Data sets whose features lie on the workers of a Dask cluster: the same rankers, the same bits.

with Client("tcp://…") as client:
    data = tr.dask.read_table("train/*.parquet", client, qid="query", label="label")
    ranker = tr.ListNet().fit_queries(data)
"""

from .._lazy import attach as _attach

__getattr__, __all__ = _attach(__name__, __file__)
