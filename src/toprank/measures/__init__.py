"""Measures as values: `NDCG() @ 10` computes, prints as "ndcg@10" and parses back; its convention is part of it."""

from .base import Measure, measure
from .binary import AP, AUC, MRR, RBP, WTA, P, PAtShare, Recall, RPrecision, Success
from .cascade import ERR
from .catalog import catalog
from .dcg import DCG, NDCG, MeanNDCG
from .judged import BPref, Judged
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
    "BPref",
    "Blank",
    "Discount",
    "Gain",
    "Judged",
    "MeanNDCG",
    "Measure",
    "Norm",
    "P",
    "PAtShare",
    "RPrecision",
    "Recall",
    "Short",
    "Success",
    "Ties",
    "catalog",
    "measure",
]
