"""Estimators with a scikit-learn face."""

from ..interop.trees import BoostedTrees as BoostedTrees
from .additive import AdditiveRanker as AdditiveRanker
from .at_k import OnePassMiniBatch as OnePassMiniBatch
from .at_k import PerceptronAtK as PerceptronAtK
from .at_k import SGDAtK as SGDAtK
from .boosting import AdaRank as AdaRank
from .boosting import RankBoost as RankBoost
from .direct import PermuRank as PermuRank
from .direct import SVMMap as SVMMap
from .kernel import KernelSlamPerceptron as KernelSlamPerceptron
from .linear import LinearRanker as LinearRanker
from .listwise import ListMLE as ListMLE
from .listwise import ListNet as ListNet
from .listwise import RankCosine as RankCosine
from .pairwise import RankSVM as RankSVM
from .pdgd import PDGD as PDGD
from .perceptrons import MinimaxPerceptron as MinimaxPerceptron
from .perceptrons import OnlineListNet as OnlineListNet
from .perceptrons import SlamPerceptron as SlamPerceptron
from .svmperf import SVMPerf as SVMPerf

__all__: list[str]
