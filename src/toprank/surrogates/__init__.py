"""What can be optimised: losses of scores and grades, as values."""

from .base import Surrogate as Surrogate
from .direct import StructuralHinge as StructuralHinge
from .direct import TypeOne as TypeOne
from .direct import TypeTwo as TypeTwo
from .listwise import ListMLE as ListMLE
from .listwise import ListNet as ListNet
from .listwise import RankCosine as RankCosine
from .minimax import Minimax as Minimax
from .pairwise import PairwiseHinge as PairwiseHinge
from .precision_at_k import PrecAvg as PrecAvg
from .precision_at_k import PrecMax as PrecMax
from .precision_at_k import PrecRamp as PrecRamp
from .precision_at_k import PrecStruct as PrecStruct
from .slam import Slam as Slam
from .transforms import Exponential as Exponential
from .transforms import Linear as Linear
from .transforms import Sigmoid as Sigmoid
from .transforms import Transform as Transform

__all__ = [
    "Exponential",
    "Linear",
    "ListMLE",
    "ListNet",
    "Minimax",
    "PairwiseHinge",
    "PrecAvg",
    "PrecMax",
    "PrecRamp",
    "PrecStruct",
    "RankCosine",
    "Sigmoid",
    "Slam",
    "StructuralHinge",
    "Surrogate",
    "Transform",
    "TypeOne",
    "TypeTwo",
]
