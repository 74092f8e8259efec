"""The three learners, Figs. 2 and 3 (one pass over judged queries), and how the learners depend on the step size."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..._tables import Table
from ..._typing import Floats
from ...certificates.generalization import largest_norm
from ...data import catalog
from ...data.dataset import QueryDataset
from ...data.files import read
from ...data.splits import find_part
from ...data.synthetic import make_mslr_like
from ...errors import InputError
from ...rankers import MinimaxPerceptron, OnlineListNet, SlamPerceptron
from ...rankers.online import Scale
from ...rankers.perceptrons import choose_eta
from ..exhibits import Exhibit, Panel, Said, judge, panels
from ..experiments import Letor

TWO, THREE, LISTNET = "Algorithm 2 (SLAM)", "Algorithm 3 (minimax)", "ListNet"
NAMES: dict[type[Any], str] = {SlamPerceptron: TWO, MinimaxPerceptron: THREE, OnlineListNet: LISTNET}
STYLES = {TWO: "C0", THREE: "C1", LISTNET: "C2"}
"""The same colours in all figures."""
MULTIPLES = (1e-2, 1e-1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6)


def etas(kind: type[Any], past: QueryDataset, scale: Scale = None) -> tuple[float | str, ...]:
    """Return the step sizes to try, in units of 1/R_X², the same for everybody; Algorithm 3 does not depend on it.

    R_X is the largest norm of a document: a grid of fixed numbers would miss by orders of magnitude on raw features.
    Scaled features are about 1 each, so that R_X² is their number.
    """
    if kind is MinimaxPerceptron:
        return (1.0,)
    unit = 1 / (max(largest_norm(past) ** 2, 1e-300) if scale is None else past.n_features)
    constant = tuple(multiple * unit for multiple in MULTIPLES)
    return constant if kind is SlamPerceptron else (*constant, *(f"sqrt:{eta!r}" for eta in constant))


def thin(n: int, points: int = 400) -> Any:
    """Return round numbers at even steps of their logarithm, for curves over many rounds."""
    return np.unique(np.geomspace(1, n, points).astype(np.int64)) - 1


PUBLISHED = {
    "mslr-web10k": ("MSLR-WEB10K", "Algorithm 2 is better than online ListNet"),
    "yahoo-set1": ("Yahoo", "Algorithm 2 is within .02 of online ListNet"),
    "yandex": ("Yandex", "Algorithm 2 and online ListNet overlap (within .02)"),
}
"""The paper's three collections, and what it says of each."""
HEADS = "mslr-msn1-5k"
"""Heads of MSLR's fold 1, where the whole is not to be had."""

TRAIN_FILES = ("set1.train.txt", "train.txt", "imat2009_learning.txt", "msn1.fold1.train.5k.txt")
"""Files to learn from in the published layouts without folds."""
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
    if not path.is_dir() or (path / "header.json").exists():
        return read(path), path.name
    found = next((path / name for name in TRAIN_FILES if (path / name).exists()), None)
    home = next((home for home in (path, path.parent) if (home / "Fold1").is_dir()), None)
    if found is None and home is None:
        raise InputError(f"{path} holds no stream: looked for {', '.join(TRAIN_FILES)} and Fold1/train.txt")
    return read(found or find_part(home or path, 1, "train")), path.name


def _at_hand(data: Source) -> dict[str, QueryDataset]:
    """Return the streams of the paper's that the folder (None: `TOPRANK_DATA`) has, else the given or a made-up one."""
    root, there = os.environ.get(catalog.VARIABLE) if data is None else data, {}
    if isinstance(root, (str, Path)) and Path(root).is_dir():
        there = {name: home for name in (*PUBLISHED, HEADS) if (home := Letor(name, name).home(root)) is not None}
    if "mslr-web10k" in there:
        there.pop(HEADS, None)
    return {name: stream_of(home)[0] for name, home in there.items()} or dict([stream_of(data)[::-1]])


def _figure(number: int, measure: str, data: Source, scale: Any) -> Exhibit:
    scale = None if scale == "none" else scale
    text = "AP" if measure == "map" else "NDCG@10"
    curves: dict[str, dict[str, Floats]] = {}
    ends: dict[str, dict[str, float]] = {}
    rows: list[tuple[Any, ...]] = []
    notes = []
    for source, given in _at_hand(data).items():
        # The paper makes grades binary for AP: every grade above 0 is relevant.
        stream = replace(given, y=(given.y > 0).astype(np.float64)) if measure == "map" else given
        early = max(1, stream.n_queries // 5)
        past, rest = stream[:early], stream[early:]
        if not (past.informative.any() and rest.informative.any()):
            raise InputError(f"{source} is too short: its first fifth and the rest both need judged queries")
        curves[source], ends[source] = {}, {}
        for kind, label in NAMES.items():
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                eta = choose_eta(kind(measure=measure, scale=scale), past, etas(kind, past, scale)).eta
            notes += [f"{source}, {label}: {warning.message}." for warning in told]
            ranker = kind(measure=measure, eta=eta, scale=scale).partial_fit_queries(rest)
            curve = curves[source][label] = ranker.trace_.average("measure")
            ends[source][label] = float(curve[-10:].mean())
            rule, _, step = f"{eta}".rpartition(":")
            rows.append((source, label, f"{rule}:{float(step):.3g}".lstrip(":"), ends[source][label], float(curve[-1])))
        alike = int((~rest.informative).sum())
        notes.append(
            f"{source}: η from a grid in units of 1/R_X², chosen on the first {early} lists; the curves are of the "
            f"other {rest.n_queries}, {'plain features' if scale is None else f'scaled by {scale}'}. {alike} of them "
            "have one grade only: nothing can be ranked wrong, and they are no rounds."
        )
    drawn = [
        Panel(found, np.arange(1, 1 + len(found[TWO])), "round", f"time-averaged {text}", source, styles=STYLES)
        for source, found in curves.items()
    ]
    columns = ("stream", "learner", "η", "mean of the last ten averages", f"time-averaged {text}")
    title, values = f"Fig. {number}: time-averaged {text} over one pass", {"curves": curves, "scale": scale}
    drawing, claims = panels(*drawn, columns=3), _beside(ends, text)
    return Exhibit(f"fig{number}", title, values, Table(columns, rows), tuple(notes), drawing, claims)


@judge
def _beside(ends: Mapping[str, Mapping[str, float]], text: str) -> Said:
    for name, (label, said) in PUBLISHED.items():
        first = name == "mslr-web10k"
        there = name if name in ends else HEADS if first and HEADS in ends else ""
        label += " (here: heads of its fold 1)" if there == HEADS else ""
        sentence = f"{label}: {said} by {text}."
        if not there:
            yield sentence, None, f"{label} is not to be had here."
            continue
        two, three, listnet = (ends[there][learner] for learner in (TWO, THREE, LISTNET))
        told = ", ".join(f"{learner} {value:.4f}" for learner, value in ends[there].items()) + "."
        yield sentence, two > listnet if first else abs(two - listnet) <= 0.02, told
        if not first:
            sentence = f"{label}: Algorithm 3 is quite poor by {text} (more than .05 behind)."
            yield sentence, three < max(two, listnet) - 0.05, told


def fig2(data: Source = None, *, scale: Any = None) -> Exhibit:
    """Fig. 2: time-averaged AP over one pass of MSLR, Yahoo and Yandex, or of any stream given."""
    return _figure(2, "map", data, scale)


def fig3(data: Source = None, *, scale: Any = None) -> Exhibit:
    """Fig. 3: time-averaged NDCG@10 over one pass of MSLR, Yahoo and Yandex, or of any stream given."""
    return _figure(3, "ndcg@10", data, scale)


def eta_dependence(data: Source = None, *, points: int = 22) -> Exhibit:
    """Algorithm 2 depends on η, Algorithm 3 does not: time-averaged NDCG@10 of one pass over seven decades of η."""
    stream, source = stream_of(data)
    grid = np.geomspace(1e-4, 1e3, points)
    values: dict[str, list[float]] = {}
    for kind in (SlamPerceptron, MinimaxPerceptron):
        found = [kind("ndcg@10", eta=eta).partial_fit_queries(stream).totals_ for eta in grid.tolist()]
        values[NAMES[kind]] = [totals["measure"] / totals["rounds"] for totals in found]
    title = f"Step size and ranking, one pass over {source}"
    drawn = Panel(values, grid, "η", "time-averaged NDCG@10", log="x", styles=STYLES)
    rows: list[list[Any]] = [[f"{eta:.3g}", *(v[i] for v in values.values())] for i, eta in enumerate(grid)]
    stored, table = {"eta": grid, "values": values, "source": source}, Table(("η", *values), rows)
    return Exhibit("eta_dependence", title, stored, table, draw=panels(drawn), claims=_depends(values))


@judge
def _depends(values: Mapping[str, Sequence[float]]) -> Said:
    span = {label: max(curve) - min(curve) for label, curve in values.items()}
    told = f"Its NDCG@10 varies by {span[THREE]:.2g}."
    yield "The predictions of Algorithm 3 do not depend on η.", span[THREE] < 1e-9, told
    told = f"Its NDCG@10 varies by {span[TWO]:.4f}; read as: more than .001."
    yield "Those of Algorithm 2 do.", span[TWO] > 1e-3, told
