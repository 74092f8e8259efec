"""Our losses inside other people's learners (LightGBM, XGBoost, PyTorch), and their trees as a value of ours."""

from .lightgbm import LightGBMRanker as LightGBMRanker
from .lightgbm import lightgbm_objective as lightgbm_objective
from .torch import torch_loss as torch_loss
from .tree_files import Trees as Trees
from .tree_files import read_trees as read_trees
from .xgboost import XGBoostRanker as XGBoostRanker
from .xgboost import xgboost_objective as xgboost_objective

__all__ = [
    "LightGBMRanker",
    "Trees",
    "XGBoostRanker",
    "lightgbm_objective",
    "read_trees",
    "torch_loss",
    "xgboost_objective",
]
