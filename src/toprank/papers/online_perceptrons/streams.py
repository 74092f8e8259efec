"""Figs. 2 and 3: one pass over streams of judged queries, and how the learners depend on the step size."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..._tables import Table
from ..._typing import Floats
from ...data import catalog
from ...data.dataset import QueryDataset
from ...data.files import read
from ...data.splits import find_part
from ...data.synthetic import make_mslr_like
from ...errors import InputError
from ...rankers import MinimaxPerceptron, SlamPerceptron
from ...rankers.online import Scale
from ...rankers.perceptrons import choose_eta
from ..exhibits import Claim, Exhibit, claim, lines
from .learners import COLOURS, LISTNET, NAMES, THREE, TWO, etas

PUBLISHED = {"mslr-web10k": "MSLR-WEB10K", "yahoo-set1": "Yahoo", "yandex": "Yandex"}
"""The paper's three collections: train part of fold 1, set1.train.txt, and Yandex's imat2009_learning.txt."""
HEADS = "mslr-msn1-5k"
"""Heads of MSLR's fold 1, where the whole is not to be had."""

Source = str | Path | QueryDataset | None


def stream_of(data: Source) -> tuple[QueryDataset, str]:
    """Return a stream and its name: a data set, a collection's name, a file, or a folder in a published layout."""
    if isinstance(data, QueryDataset):
        return data, "the given data"
    if data is None:
        return make_mslr_like(n_queries=600, n_docs=40, n_features=136), "generated web-like lists"
    if str(data) in catalog.CATALOG and not Path(data).exists():
        return catalog.load(str(data)), str(data)
    path = Path(data)
    if path.is_dir() and not (path / "header.json").exists():
        for name in ("set1.train.txt", "train.txt", "imat2009_learning.txt"):
            if (path / name).exists():
                return read(path / name), path.name
        home = path if (path / "Fold1").is_dir() else path.parent
        return read(find_part(home, 1, "train")), path.name
    return read(path), path.name


def _at_hand(data: Source) -> dict[str, QueryDataset]:
    """Return the streams to learn from: the given one, else what `TOPRANK_DATA` has of the paper's, else generated."""
    if data is not None:
        stream, name = stream_of(data)
        return {name: stream}
    root = os.environ.get(catalog.VARIABLE)
    found = {}
    for name in (*PUBLISHED, HEADS):
        if not root:
            break
        homes = (name, *(catalog.CATALOG[name].folders if name in catalog.CATALOG else ()))
        home = next((Path(root, h) for h in homes if Path(root, h).is_dir()), None)
        if home is not None and not (name == HEADS and "mslr-web10k" in found):
            found[name] = catalog.load(name) if name == HEADS else stream_of(home)[0]
    return found or dict([stream_of(None)[::-1]])


def _figure(number: int, measure: str, data: Source, scale: Scale) -> Exhibit:
    text = "AP" if measure == "map" else "NDCG@10"
    curves: dict[str, dict[str, Floats]] = {}
    rows: list[tuple[Any, ...]] = []
    notes = []
    for source, given in _at_hand(data).items():
        # The paper makes grades binary for AP: every grade above 0 is relevant.
        stream = replace(given, y=(given.y > 0).astype(np.float64)) if measure == "map" else given
        early = max(1, stream.n_queries // 5)
        past, rest = stream[:early], stream[early:]
        if not (past.informative.any() and rest.informative.any()):
            raise InputError(
                f"{source} is too short for a stream: its first fifth and the rest both need judged queries"
            )
        curves[source] = {}
        for kind, label in NAMES.items():
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                eta = choose_eta(kind(measure=measure, scale=scale), past, etas(kind, past, scale)).eta
            notes += [f"{source}, {label}: {warning.message}." for warning in told]
            ranker = kind(measure=measure, eta=eta, scale=scale).partial_fit_queries(rest)
            curve = curves[source][label] = ranker.trace_.average("measure")
            rows.append((source, label, _short(eta), float(curve[-10:].mean()), float(curve[-1])))
        alike = int((~rest.informative).sum())
        notes.append(
            f"{source}: η in units of 1/R_X², chosen on the first {early} lists; the curves are of the other "
            f"{rest.n_queries}, {'plain features' if scale is None else f'scaled by {scale}'}. {alike} of them "
            "have one grade only: nothing can be ranked wrong, and they are no rounds."
        )

    def draw(figure: Any) -> None:
        figure.set_size_inches(5.0 * len(curves) + 2, 4.5)
        for axis, (source, found) in zip(np.atleast_1d(figure.subplots(1, len(curves))), curves.items(), strict=True):
            rounds = np.arange(1, 1 + len(found[TWO]))
            lines(axis, rounds, found, COLOURS, xlabel="round", ylabel=f"time-averaged {text}", title=source)

    columns = ("stream", "learner", "η", "mean of the last ten averages", f"time-averaged {text}")
    ends = {
        source: {label: float(curve[-10:].mean()) for label, curve in found.items()} for source, found in curves.items()
    }
    return Exhibit(
        name=f"fig{number}",
        title=f"Fig. {number}: time-averaged {text} over one pass",
        data={"curves": curves, "scale": scale},
        table=Table(columns, rows),
        notes=tuple(notes),
        draw=draw,
        claims=tuple(verdicts(ends, text)),
    )


def _short(eta: float | str) -> str:
    return f"{eta:.3g}" if isinstance(eta, float) else f"{eta.split(':')[0]}:{float(eta.split(':')[1]):.3g}"


def verdicts(ends: Mapping[str, Mapping[str, float]], text: str) -> list[Claim]:
    """The paper's sentences on its three collections, for those at hand."""
    said: dict[str, tuple[str, Callable[[Mapping[str, float]], bool]]] = {
        "mslr-web10k": ("Algorithm 2 is better than online ListNet", lambda e: e[TWO] > e[LISTNET]),
        "yahoo-set1": ("Algorithm 2 is within .02 of online ListNet", lambda e: abs(e[TWO] - e[LISTNET]) <= 0.02),
        "yandex": ("Algorithm 2 and online ListNet overlap (within .02)", lambda e: abs(e[TWO] - e[LISTNET]) <= 0.02),
    }
    claims = []
    for name, (sentence, holds) in said.items():
        there = name if name in ends else HEADS if name == "mslr-web10k" and HEADS in ends else None
        label = PUBLISHED[name] + (" (here: heads of its fold 1)" if there == HEADS else "")
        if there is None:
            claims.append(claim(f"{label}: {sentence} by {text}.", None, f"{label} is not to be had here."))
            continue
        numbers = ", ".join(f"{label} {value:.4f}" for label, value in ends[there].items()) + "."
        claims.append(claim(f"{label}: {sentence} by {text}.", bool(holds(ends[there])), numbers))
        if name != "mslr-web10k":
            best = max(ends[there][TWO], ends[there][LISTNET])
            poor = ends[there][THREE] < best - 0.05
            claims.append(claim(f"{label}: Algorithm 3 is quite poor by {text} (more than .05 behind).", poor, numbers))
    return claims


def fig2(data: Source = None, *, scale: Any = None) -> Exhibit:
    """Fig. 2: time-averaged AP over one pass of MSLR, Yahoo and Yandex, or of any stream given."""
    return _figure(2, "map", data, None if scale == "none" else scale)


def fig3(data: Source = None, *, scale: Any = None) -> Exhibit:
    """Fig. 3: time-averaged NDCG@10 over one pass of MSLR, Yahoo and Yandex, or of any stream given."""
    return _figure(3, "ndcg@10", data, None if scale == "none" else scale)


def eta_dependence(data: Source = None, *, points: int = 22) -> Exhibit:
    """Algorithm 2 depends on η, Algorithm 3 does not: time-averaged NDCG@10 of one pass over seven decades of η."""
    stream, source = stream_of(data)
    grid = np.geomspace(1e-4, 1e3, points)
    values: dict[str, list[float]] = {}
    for kind in (SlamPerceptron, MinimaxPerceptron):
        found = [kind("ndcg@10", eta=eta).partial_fit_queries(stream).totals_ for eta in grid.tolist()]
        values[NAMES[kind]] = [totals["measure"] / totals["rounds"] for totals in found]

    def draw(figure: Any) -> None:
        axis = figure.subplots()
        lines(axis, grid, values, COLOURS, xlabel="η", ylabel="time-averaged NDCG@10", title=f"One pass over {source}")
        axis.set_xscale("log")

    span = {label: max(curve) - min(curve) for label, curve in values.items()}
    claims = (
        claim(
            "The predictions of Algorithm 3 do not depend on η.",
            span[THREE] < 1e-9,
            f"Its NDCG@10 varies by {span[THREE]:.2g}.",
        ),
        claim(
            "Those of Algorithm 2 do.",
            span[TWO] > 1e-3,
            f"Its NDCG@10 varies by {span[TWO]:.4f}; read as: more than .001.",
        ),
    )
    rows: list[list[Any]] = [[f"{eta:.3g}", *(v[i] for v in values.values())] for i, eta in enumerate(grid)]
    title = f"Step size and ranking, one pass over {source}"
    data_ = {"eta": grid, "values": values, "source": source}
    return Exhibit("eta_dependence", title, data_, Table(("η", *values), rows), draw=draw, claims=claims)
