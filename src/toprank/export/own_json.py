"""Our own exchange format: names, weights and values for missing ones, for any program that can read JSON.

score = offset + Σ weight · value, in float64; the schema is published as `toprank.export.schema("linear")`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal

import msgspec
import numpy as np

from .._version import __version__
from ..errors import InputError
from .replicas import LinearReplica, Replica
from .scorers import Linear
from .targets import Artifact, Settings, Target, model_name, to_json

FORMAT = "toprank-linear"
VERSION = 1


class Feature(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One feature; `missing` stands in where it has no value, `center` and `scale` belong to the scaler folded in."""

    name: str
    weight: float
    missing: float | None = None
    center: float | None = None
    scale: float | None = None


class LinearFile(msgspec.Struct, forbid_unknown_fields=True):
    """The layout of the file."""

    format: str
    version: int
    toprank: str
    source: str
    missing: Literal["refuse", "fill"]
    offset: float
    features: list[Feature]
    name: str | None = None


def encode(linear: Linear, name: str | None = None) -> bytes:
    """Return a linear scorer as JSON."""
    columns = [linear.weights, linear.fill, linear.center, linear.scale]
    rows = [
        {
            "name": feature,
            **{
                key: float(column[j])
                for key, column in zip(("weight", "missing", "center", "scale"), columns, strict=True)
                if column is not None
            },
        }
        for j, feature in enumerate(linear.names)
    ]
    head = {"format": FORMAT, "version": VERSION, "toprank": __version__, "source": linear.source}
    about = {} if name is None else {"name": name}
    policy = {"missing": "refuse" if linear.fill is None else "fill", "offset": linear.offset}
    return to_json({**head, **about, **policy, "features": rows})


def decode(content: bytes, path: Path | str) -> Linear:
    """Return the scorer of a file."""
    try:
        file = msgspec.json.decode(content, type=LinearFile)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not a {FORMAT} file: {error}") from None
    if file.format != FORMAT or file.version != VERSION:
        raise InputError(f"{path} is {file.format!r} version {file.version}; this toprank reads {FORMAT!r} {VERSION}")
    rows = file.features
    if file.missing == "fill" and any(row.missing is None for row in rows):
        raise InputError(f"{path}: every feature needs a value for missing ones, since $.missing is 'fill'")
    scaled = [row.center is not None and row.scale is not None for row in rows]
    if any(scaled) and not all(scaled):
        raise InputError(f"{path}: either every feature has center and scale, or none")
    if not rows:
        raise InputError(f"{path} has no features")
    try:
        return Linear(
            tuple(row.name for row in rows),
            np.array([row.weight for row in rows]),
            file.offset,
            np.array([row.missing for row in rows], dtype=np.float64) if file.missing == "fill" else None,
            file.source,
            np.array([row.center for row in rows], dtype=np.float64) if any(scaled) else None,
            np.array([row.scale for row in rows], dtype=np.float64) if any(scaled) else None,
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


class OwnJson(Target):
    """The format as a target; `toprank export` also takes such a file as its model."""

    name = "json"
    settings: ClassVar[frozenset[str]] = frozenset({"shift"})

    def encode(self, scorer: Linear, settings: Settings) -> Artifact:
        """Return the file."""
        name = model_name(scorer, settings)
        shifted = replace(scorer, offset=scorer.offset + settings.shift)
        return Artifact(encode(shifted, name), name, (f"{scorer.missing}: the file says so",))

    def recognizes(self, content: bytes) -> bool:
        """Look for the format."""
        return re.search(rb'"format"\s*:\s*"toprank-linear"', content) is not None

    def decode(self, content: bytes, place: str, beside: Mapping[str, bytes]) -> Replica:
        """Return the score as a careful reader would compute it."""
        linear = decode(content, place)
        rule = f"float64; {linear.missing}"
        return LinearReplica(
            linear.names, linear.weights, rule, np.float64, np.float64, fill=linear.fill, start=linear.offset
        )
