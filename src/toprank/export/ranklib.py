"""RankLib's text models: `feature:weight` pairs for linear scores, `feature:threshold:weight` for RankBoost.

Features are numbered from 1. RankLib holds features in float32 and computes in float64; a feature without a value is 0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from .._version import __version__
from ..errors import InputError
from ..rankers.models import StumpModel
from .lucene import missing_notes
from .replicas import LinearReplica, Replica, StumpReplica
from .scorers import Linear, Stumps
from .targets import Artifact, Settings, Target, model_name

RULE = "float32 features, float64 sums; a feature without a value is 0"
PLAIN, CONSTANT, BOOSTED = "Coordinate Ascent", "Linear Regression", "RankBoost"
"""The kinds of RankLib that score as our models do: w·x, w·x + c and weighted thresholds."""


class RankLib(Target):
    """RankLib's own format, for its command line and for engines that read it."""

    name = "ranklib"
    settings: ClassVar[frozenset[str]] = frozenset({"shift"})

    def encode(self, scorer: Linear | Stumps, settings: Settings) -> Artifact:
        """Return the model as text; comments give the names of the features and the missing-value policy."""
        if isinstance(scorer, Stumps):
            if settings.shift:
                raise InputError("RankBoost in ranklib has no constant: leave shift out")
            kind = BOOSTED
            pairs = [f"{feature + 1}:{threshold!r}:{weight!r}" for feature, threshold, weight in scorer.thresholds]
            notes = [_policy(scorer)]
            if scorer.offset:
                notes.append(f"the constant {scorer.offset:+g} is left out: it changes no ranking")
        else:
            constant = scorer.offset + settings.shift
            kind = CONSTANT if constant else PLAIN
            pairs = [f"0:{constant!r}"] if constant else []
            pairs += [f"{j}:{weight!r}" for j, weight in enumerate(scorer.weights.tolist(), start=1)]
            notes = missing_notes(scorer, "RankLib takes 0 for a feature without a value")
        labels = [json.dumps(name, ensure_ascii=False) for name in scorer.names]
        lines = [
            f"## {kind}",
            f"## Written by toprank {__version__} from {scorer.source}. In the model, {scorer.missing}.",
            *(f"## {j} = {label}" for j, label in enumerate(labels, start=1)),
            " ".join(pairs),
        ]
        told = f"score with java -jar RankLib.jar -load FILE -rank DATA -score OUT; RankLib calls the model {kind}"
        return Artifact(("\n".join(lines) + "\n").encode(), model_name(scorer, settings), (told, *notes))

    def recognizes(self, content: bytes) -> bool:
        """Look at the first line, which names the kind of model."""
        return content.startswith(b"## ")

    def decode(self, content: bytes, place: str, beside: Mapping[str, bytes]) -> Replica:
        """Return the model as RankLib scores with it."""
        try:
            first, *rest = (line.strip() for line in content.decode().splitlines())
            kind = first.removeprefix("## ")
            line = next((line for line in rest if line and not line.startswith("##")), "")
            parts = [pair.split(":") for pair in line.rpartition(" #")[0 if " #" in line else 2].split()]
            if kind == BOOSTED:
                return _boosted([(int(f) - 1, float(t), float(w)) for f, t, w in parts])
            if kind not in (PLAIN, CONSTANT):
                raise ValueError(f"a model of the kind {kind!r} cannot be verified here")
            pairs = {int(key): float(value) for key, value in parts}
            start = pairs.pop(0, 0.0) if kind == CONSTANT else 0.0
            if sorted(pairs) != list(range(1, len(pairs) + 1)) or not pairs:
                raise ValueError("the features are not numbered 1, 2, …")
        except (UnicodeDecodeError, ValueError) as error:
            raise InputError(f"{place} is not a linear model of RankLib: {error}") from None
        weights = np.array([pairs[j] for j in sorted(pairs)])
        if not np.isfinite(weights).all() or not np.isfinite(start):
            raise InputError(f"{place} has a weight that is not a number")
        return LinearReplica(None, weights, RULE, np.float32, np.float64, fill=np.zeros(len(weights)), start=start)


def _boosted(thresholds: list[tuple[int, float, float]]) -> StumpReplica:
    if not thresholds or min(feature for feature, _, _ in thresholds) < 0:
        raise ValueError("features are numbered from 1")
    width = 1 + max(feature for feature, _, _ in thresholds)
    features, limits, weights = (np.array(column) for column in zip(*thresholds, strict=True))
    StumpModel(width, features, limits, weights)  # refuses numbers that are not finite
    return StumpReplica(thresholds, width, RULE)


def _policy(scorer: Stumps) -> str:
    if scorer.fill is not None:
        return f"{scorer.missing}, as RankLib has it"
    return f"{scorer.missing} by the model, but RankLib takes 0: make sure that every feature has a value"
