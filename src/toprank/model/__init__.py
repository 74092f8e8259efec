"""What a ranker has learned, as one value: everything between a row of features and a score."""

from .functions import (
    KernelFunction,
    LinearFunction,
    LinearFunctions,
    ScoringFunction,
    StumpFunction,
    TreeFunction,
)
from .inputs import Inputs
from .missing import MissingRule
from .model import Model

__all__ = [
    "Inputs",
    "KernelFunction",
    "LinearFunction",
    "LinearFunctions",
    "MissingRule",
    "Model",
    "ScoringFunction",
    "StumpFunction",
    "TreeFunction",
]
