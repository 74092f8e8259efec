"""Measures as values: `NDCG() @ 10` computes, prints as "ndcg@10" and parses back; its convention is part of it."""

from .base import Measure, measure
from .binary import AP, AUC, MRR, RBP, WTA, P, Recall
from .cascade import ERR
from .catalog import catalog
from .dcg import DCG, NDCG, MeanNDCG
from .order import Ties
from .presets import CONVENTIONS, Blank, Discount, Gain, Norm, Short

__all__ = [
    "AP",
    "AUC",
    "CONVENTIONS",
    "DCG",
    "ERR",
    "MRR",
    "NDCG",
    "RBP",
    "WTA",
    "Blank",
    "Discount",
    "Gain",
    "MeanNDCG",
    "Measure",
    "Norm",
    "P",
    "Recall",
    "Short",
    "Ties",
    "catalog",
    "measure",
]
