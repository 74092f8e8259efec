"""The numbers inside the page: deflated, in base64, within a budget of bytes.

Two blocks. `data` is a four-byte length, a JSON header, then the values of the measures as planes of bytes
(`quantise`). `details` is JSON: the top of every system's ranking for as many queries as fit, those on which the
baseline and its challenger differ most first. Whatever is left out, the page says so.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._html import clip
from .._typing import Ints
from .additive import spread_within_queries
from .details import QueryDescriber
from .quantise import Codes, quantise
from .view import ContestView

VALUES_SHARE = 0.6
"""How much of the budget the values of the measures may take; the rest is left for rankings."""
MOST_WEIGHTS = 40
"""Features per ranker in the list of weights, by weight and as many by effect."""


@dataclass(frozen=True)
class Payload:
    """Two blocks of base64, and what is in them."""

    data: str
    details: str
    queries: Ints
    """The queries whose values are embedded."""
    measures: tuple[str, ...]
    """The measures whose values per query are embedded."""
    detailed: Ints
    """The queries whose rankings are embedded."""


def embed(view: ContestView, budget: int) -> Payload:
    """Pack what the page's views need into about `budget` bytes of base64."""
    limit = budget * 3 // 4
    queries, coded = _values(view, int(VALUES_SHARE * limit))
    header = _header(view, queries)
    planes, at = [], 0
    for measure, codes in coded.items():
        place = {"measure": view.measures.index(measure), "at": at, "width": codes.width, "table": codes.table}
        header["values"].append({**place, "low": codes.low, "step": codes.step})
        planes.append(codes.planes())
        at += len(planes[-1])
    # The names of features in the details join the header afterwards: they are few and short.
    size = len(_deflate(_block(header, planes)))
    details, detailed, used = _details(view, queries, limit - size - 64)
    used |= {f for one in header["weights"] for f in one["features"]}
    header["features"] = {str(f): view.feature(f) for f in sorted(used)}
    return Payload(
        data=_base64(_deflate(_block(header, planes))),
        details=_base64(details),
        queries=queries,
        measures=tuple(coded),
        detailed=detailed,
    )


def _values(view: ContestView, limit: int) -> tuple[Ints, dict[str, Codes]]:
    """Code as many measures as fit; where not even the first does, every n-th query in the order of the difference."""
    measures = view.measures
    n, systems = len(view.query_ids), len(view.names)
    queries = np.arange(n)
    if n * systems * 3 > limit:
        first = quantise(view.values(measures[0])) if n * systems * 3 < 8 * limit else None
        if first is None or len(_deflate(first.planes())) > limit:
            gap = view.values(measures[0])
            order = np.argsort(gap[view.challenger] - gap[view.baseline], kind="stable")
            places = np.linspace(0, n - 1, max(2, limit // (3 * systems))).round().astype(np.int64)
            queries = np.sort(order[np.unique(places)])
    coded: dict[str, Codes] = {}
    left = limit
    for measure in measures:
        codes = quantise(view.values(measure)[:, queries])
        size = len(_deflate(codes.planes()))
        if size <= left or not coded:
            coded[measure] = codes
            left -= size
    return queries, coded


def _header(view: ContestView, queries: Ints) -> dict[str, Any]:
    contest = view.contest
    names = {name: i for i, name in enumerate(view.names)}
    many_folds = len(np.unique(contest.fold)) > 1
    return {
        "systems": view.labels,
        "measures": list(view.measures),
        "baseline": view.baseline,
        "challenger": view.challenger,
        "standing": view.best_first(view.measures[0]),
        "shown": contest.comparison.correction,
        "pairs": [
            (
                *(view.measures.index(d.measure), names[d.a], names[d.b]),
                *map(_fixed, (d.difference, *d.interval, d.p_holm)),
                *(d.wins, d.ties, d.losses, d.direction if d.shown else 0),
            )
            for d in contest.comparison.differences
        ],
        "queries": len(view.query_ids),
        "ids": [clip(str(query), 120) for query in view.query_ids[queries].tolist()],
        "docs": None if contest.data is None else contest.data.lengths[queries].tolist(),
        "relevant": None if view.n_relevant is None else view.n_relevant[queries].tolist(),
        "folds": contest.fold[queries].tolist() if many_folds else None,
        "values": [],
        "weights": _weights(view),
        "features": {},
    }


def _weights(view: ContestView) -> list[dict[str, Any]]:
    """Return the weights of every linear entrant: mean over folds, smallest, largest, and mean × spread."""
    from ..model.functions import LinearFunction

    found: list[dict[str, Any]] = []
    spreads: dict[str, Any] = {}
    data = view.contest.data
    if data is None:
        return found
    for i, entrant in enumerate(view.contest.entrants):
        models = [model for ranker in entrant.rankers if (model := getattr(ranker, "model_", None)) is not None]
        coefs = [model.weights for model in models if isinstance(model.function, LinearFunction)]
        if not coefs or len(coefs) < len(models) or len({len(coef) for coef in coefs}) > 1:
            continue
        prepare = {",".join(model.inputs.words) for model in models}
        if len(coefs[0]) != data.n_features or len(prepare) > 1:  # weights of other features have no mean
            continue
        key = prepare.pop()
        if key not in spreads:
            spreads[key] = spread_within_queries(models[0].inputs.apply(data, models[0].source))
        spread = spreads[key]
        folds = np.stack(coefs)
        mean = folds.mean(axis=0)
        largest = [np.argsort(-np.abs(values), kind="stable")[:MOST_WEIGHTS] for values in (mean, mean * spread)]
        kept = np.unique(np.concatenate(largest))
        columns = {"mean": mean, "low": folds.min(axis=0), "high": folds.max(axis=0), "effect": mean * spread}
        found.append(
            {"system": i, "folds": len(folds), "of": len(mean), "features": kept.tolist()}
            | {name: [significant(v) for v in column[kept]] for name, column in columns.items()}
        )
    return found


def _details(view: ContestView, queries: Ints, limit: int) -> tuple[bytes, Ints, set[int]]:
    """Return the rankings that fit, of which queries they are, and which features they speak of."""
    if view.contest.data is None:
        return _deflate(b"[]"), np.empty(0, dtype=np.int64), set()
    detailer = QueryDescriber(view)
    values = view.values(view.measures[0])
    gap = np.abs(values[view.challenger] - values[view.baseline])[queries]
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(b"[")
    done: list[int] = []
    for place in np.argsort(-np.where(np.isnan(gap), -1, gap), kind="stable"):
        chunk = dump(detailer.detail(int(queries[place]), int(place)))
        trial = packer.copy()
        more = trial.compress((b"," if done else b"") + chunk) + trial.flush(zlib.Z_SYNC_FLUSH)
        if len(packed) + len(more) > limit:
            break
        packer, packed = trial, packed + more
        done.append(int(queries[place]))
    return packed + packer.compress(b"]") + packer.flush(), np.array(done, dtype=np.int64), detailer.features


def significant(value: float, digits: int = 4) -> float:
    """Return a number rounded to so many significant digits: what is embedded is what is shown.

    >>> significant(0.0123456), significant(-1234567.0)
    (0.01235, -1235000.0)
    """
    return float(f"{value:.{digits}g}")


def dump(value: Any) -> bytes:
    """Return JSON as UTF-8; half a surrogate pair, which no file can hold, becomes a question mark."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")


def _fixed(value: float) -> float | None:
    """Round as the page shows it; an end that is nowhere is null."""
    return float(f"{value:.4f}") if math.isfinite(value) else None


def _block(header: dict[str, Any], planes: list[bytes]) -> bytes:
    text = dump(header)
    return len(text).to_bytes(4, "little") + text + b"".join(planes)


def _deflate(raw: bytes) -> bytes:
    return zlib.compress(raw, 9, wbits=-15)


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")
