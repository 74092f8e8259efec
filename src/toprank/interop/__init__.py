"""Our losses inside other people's learners: LightGBM, XGBoost and PyTorch."""

from .lightgbm import LightGBMRanker as LightGBMRanker
from .lightgbm import lightgbm_objective as lightgbm_objective
from .torch import torch_loss as torch_loss
from .xgboost import XGBoostRanker as XGBoostRanker
from .xgboost import xgboost_objective as xgboost_objective

__all__ = ["LightGBMRanker", "XGBoostRanker", "lightgbm_objective", "torch_loss", "xgboost_objective"]
