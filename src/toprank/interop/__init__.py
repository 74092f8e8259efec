"""Other people's programs: our losses inside LightGBM, XGBoost and PyTorch, their trees, search engines' features."""

from .engine_http import EngineClient, credentials
from .feature_logs import read_ltr_logs
from .feature_sets import Feature, FeatureSet, feature_set, read_features
from .lightgbm import lightgbm_objective
from .pulling import pull_features
from .torch import torch_loss
from .tree_files import read_trees
from .xgboost import xgboost_objective

__all__ = [
    "EngineClient",
    "Feature",
    "FeatureSet",
    "credentials",
    "feature_set",
    "lightgbm_objective",
    "pull_features",
    "read_features",
    "read_ltr_logs",
    "read_trees",
    "torch_loss",
    "xgboost_objective",
]
