"""Other people's programs: our losses inside LightGBM, XGBoost and PyTorch, their trees, search engines' features."""

from .feature_logs import read_ltr_logs as read_ltr_logs
from .feature_sets import Feature as Feature
from .feature_sets import FeatureSet as FeatureSet
from .feature_sets import feature_set as feature_set
from .feature_sets import read_features as read_features
from .lightgbm import LightGBMRanker as LightGBMRanker
from .lightgbm import lightgbm_objective as lightgbm_objective
from .torch import torch_loss as torch_loss
from .tree_files import Trees as Trees
from .tree_files import read_trees as read_trees
from .xgboost import XGBoostRanker as XGBoostRanker
from .xgboost import xgboost_objective as xgboost_objective

__all__ = [
    "Feature",
    "FeatureSet",
    "LightGBMRanker",
    "Trees",
    "XGBoostRanker",
    "feature_set",
    "lightgbm_objective",
    "read_features",
    "read_ltr_logs",
    "read_trees",
    "torch_loss",
    "xgboost_objective",
]
