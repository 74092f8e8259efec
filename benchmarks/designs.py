"""How the library's designs of the methods were chosen: on validation parts alone, the test parts unread.

Every variant of a method offers settings and the validation part picks one. The MAP that the pick reaches on that same
part flatters the variant with more settings, so variants are compared by what a pick is worth on queries it has not
seen: one half of the validation part picks, the other half is measured, both ways, for several ways to cut it in half.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from toprank._progress import track
from toprank._tables import Cell, Table
from toprank._typing import Floats
from toprank._version import __version__
from toprank.contests.search import described, fit
from toprank.data.splits import Fold
from toprank.measures.base import Measure
from toprank.papers.direct_optimization.methods import ALPHAS, C_MAP, C_PAIRS, C_PERMU, C_SVM, ROUNDS, SLAM, WIDER
from toprank.papers.exhibits import Checkpoint, Exhibit
from toprank.papers.experiments import Place, digest
from toprank.rankers import AdaRank, ListNet, PermuRank, RankBoost, RankSVM, SlamPerceptron, SVMMap
from toprank.rankers.base import Ranker

HALVES = 20
"""In how many ways a validation part is cut in half."""

Variants = dict[str, Sequence[Ranker]]
"""Name of a variant ↦ its settings. What a learner picks by itself on the validation part, it picks on all of it."""


def _adarank(m: Measure) -> Variants:
    options = product((False, True), ("improve", "paper"))
    return {
        f"rule {rule}" + (", both directions" if both else ""): [AdaRank(m, rule=rule, both_directions=both)]
        for both, rule in options
    }


def _permurank(m: Measure) -> Variants:
    rounds = ROUNDS["PermuRank"]
    return {
        f"{pairs} pairs, from {start}, {'mean of rounds' if mean else 'best round'}": [
            PermuRank(m, C=C, rounds=rounds, pairs=pairs, start=start, average=mean) for C in C_PERMU
        ]
        for pairs, start, mean in product(("graded", "all"), ("zero", "adarank"), (True, False))
    }


def _rankboost(m: Measure) -> Variants:
    return {
        f"{'queries' if equal else 'pairs'} equal": [
            RankBoost(m, rounds=ROUNDS["RankBoost"], normalize=equal, thresholds=most) for most in (None, 100, 30)
        ]
        for equal in (True, False)
    }


def _ranksvm(m: Measure) -> Variants:
    return {
        f"{loss}, {'queries' if equal else 'pairs'} equal": [
            RankSVM(m, C=C, loss=loss, normalize=equal, tol=1e-3) for C in (C_SVM if equal else C_PAIRS)
        ]
        for loss, equal in product(("squared_hinge", "hinge"), (True, False))
    }


def _slam(m: Measure) -> Variants:
    found: Variants = {
        f"{target}, scale {scale}": [
            SlamPerceptron(
                m if target == "map" else target, eta=eta, scale=scale, epochs=ROUNDS["perceptron"], random_state=0
            )
            for eta in SLAM
        ]
        for target, scale in product(("map", "ndcg@10"), (None, "query"))
    }
    return {**found, "all four": [ranker for rankers in found.values() for ranker in rankers]}


FAMILIES: dict[str, Callable[[Measure], Variants]] = {
    "AdaRank": _adarank,
    "PermuRank": _permurank,
    "RankBoost": _rankboost,
    "RankSVM": _ranksvm,
    "SVMmap": lambda m: {
        f"relevant from grade {grade or 1:g}": [SVMMap(m, C=C, threshold=grade, tol=1e-3) for C in C_MAP]
        for grade in (None, 2.0)
    },
    "ListNet": lambda m: {
        f"target {truth}": [ListNet(m, alpha=alpha, truth=truth) for alpha in ALPHAS] for truth in ("grades", "gains")
    },
    "SLAM perceptron": _slam,
}
DEFAULTS = {
    "AdaRank": "rule improve, both directions",
    "PermuRank": "graded pairs, from zero, mean of rounds",
    "RankBoost": "queries equal",
    "RankSVM": "squared_hinge, queries equal",
    "SVMmap": "relevant from grade 1",
    "ListNet": "target grades",
    "SLAM perceptron": "all four",
}
"""What the library's own rows of the tables use."""


def picked(options: Floats, halves: int = HALVES) -> tuple[float, float]:
    """Return the mean of the best option on the queries that picked it, and on the queries that did not.

    >>> picked(np.array([[1.0, 1.0, 0.0, 0.0], [0.4, 0.4, 0.4, 0.4]]), halves=2)[0]
    0.5
    """
    own = float(options.mean(axis=1).max())
    rng = np.random.default_rng(0)
    n, other = options.shape[1], []
    for _ in range(halves):
        order = rng.permutation(n)
        for judges, rest in ((order[: n // 2], order[n // 2 :]), (order[n // 2 :], order[: n // 2])):
            best = int(np.argmax(options[:, judges].mean(axis=1)))
            other.append(float(options[best, rest].mean()))
    return own, float(np.mean(other))


def _worth(rankers: Sequence[Ranker], measure: Measure, fold: Fold) -> tuple[float, float]:
    valid = fold.valid
    scores = [fit(ranker, fold.train, valid).predict_grouped(valid) for ranker in rankers]
    return picked(np.array([measure.per_query(s, valid.y, valid.ptr) for s in scores]))


def choices(*, data: Place = None, checkpoint: Place = None) -> Exhibit:
    """Which design of each method the validation parts choose: the variants that were considered, test parts unread."""
    pieces = Checkpoint(None if checkpoint is None else Path(checkpoint))
    homes = {letor: home for letor in WIDER if (home := letor.home(data)) is not None}
    jobs = [(method, letor, n) for method in FAMILIES for letor in homes for n in letor.folds(homes[letor])]
    found: dict[str, dict[str, dict[str, list[tuple[float, float]]]]] = {method: {} for method in FAMILIES}
    for method, letor, n in track(jobs, "choices"):
        fold, measure = letor.fold(homes[letor], n), letor.measure("map")
        for name, rankers in FAMILIES[method](measure).items():
            key = {"version": __version__, "choices": [described(ranker) for ranker in rankers]}
            key["data"] = digest(fold)
            worth = pieces.get(key, partial(_worth, rankers, measure, fold))
            found[method].setdefault(name, {}).setdefault(letor.name, []).append(worth)
    rows: list[list[Cell]] = []
    chosen: dict[str, str] = {}
    for method, variants in found.items() if homes else ():
        unseen = {name: np.concatenate([np.array(v)[:, 1] for v in sets.values()]) for name, sets in variants.items()}
        chosen[method] = decide(unseen, DEFAULTS[method])
        for name, sets in variants.items():
            own = np.concatenate([np.array(v)[:, 0] for v in sets.values()])
            cells = [float(np.mean(sets[letor.name], axis=0)[1]) for letor in homes]
            mark = "chosen" if name == chosen[method] else ""
            rows.append([method, name, *cells, float(unseen[name].mean()), float(own.mean()), mark])
    notes = (
        f"MAP on validation queries that did not pick the setting, over {HALVES} ways to cut a part in half; "
        "mean over folds and sets. Beside it the MAP on the queries that did pick, which grows with the settings.",
        "A design stays as it is where it is within one standard error (of the paired difference over folds) of the "
        "best; else the best takes its place. That rule was fixed with earlier figures, and AdaRank's test scores by "
        "variant, in view.",
        *(f"Left out: {letor.label}, {letor.where}." for letor in WIDER if letor not in homes),
        *(
            f"{method}: the library uses {DEFAULTS[method]!r}, the validation parts at hand choose {name!r}."
            for method, name in chosen.items()
            if name != DEFAULTS[method]
        ),
    )
    labels = (letor.label for letor in homes)
    table = Table(("method", "variant", *labels, "unseen", "picking", ""), rows)
    return Exhibit("choices", "Designs by validation MAP", {"found": found, "chosen": chosen}, table, notes)


def decide(unseen: dict[str, Floats], default: str) -> str:
    """Return the default where it is within one standard error of the best variant, else that one.

    >>> decide({"a": np.array([0.4, 0.6]), "b": np.array([0.7, 0.4])}, "a")
    'a'
    >>> decide({"a": np.array([0.4, 0.6]), "b": np.array([0.5, 0.71])}, "a")
    'b'
    """
    best = max(unseen, key=lambda name: float(unseen[name].mean()))
    behind = unseen[best] - unseen[default]
    error = float(behind.std(ddof=1)) / len(behind) ** 0.5 if len(behind) > 1 else 0.0
    return default if behind.mean() <= error else best


if __name__ == "__main__":
    print(choices(checkpoint=Path(".cache/designs")))
