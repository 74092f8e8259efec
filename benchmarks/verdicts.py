"""How many certificates hold, say nothing, do not apply or give no verdict: ten rankers with their defaults on fold 1.

    python -m benchmarks.verdicts ohsumed-letor3 mq2008-letor4

reads the collections below `TOPRANK_DATA`; each ranker learns from the training part and is certified on it and on the
test part.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter

import toprank as tr
from toprank.papers.experiments import Letor, homes

RANKERS = (
    tr.ListNet, tr.ListMLE, tr.RankCosine, tr.RankSVM, tr.AdaRank, tr.RankBoost, tr.SVMMap, tr.PermuRank,
    tr.SlamPerceptron, tr.MinimaxPerceptron,
)  # fmt: skip


def verdicts(name: str) -> Counter[str]:
    """Return how often each verdict is given."""
    letor = Letor(name, name)
    fold, found = letor.fold(homes([letor], None)[letor], 1), Counter[str]()
    for kind in RANKERS:
        ranker = kind().fit_queries(fold.train)
        for part in (fold.train, fold.test):
            found.update(str(certificate.verdict) for certificate in ranker.certify(part))
    return found


if __name__ == "__main__":
    for each in sys.argv[1:]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # solvers that stop early say so
            print(each, dict(verdicts(each).most_common()))
