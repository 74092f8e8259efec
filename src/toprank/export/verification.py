"""Does the exported file rank as the model does? Both score the same documents, the file as its engine would."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from .._typing import AnyArray, ArrayLike, Floats, Ints, Matrix
from ..data.csr import dense
from ..data.dataset import QueryDataset
from ..data.validation import check_count
from ..errors import InputError
from ..model import Model, StumpFunction, TreeFunction
from ..model.missing import Missing
from .folding import fold
from .model_trees import same_in_single
from .replicas import Replica, unit_roundoff
from .writing import read

DOUBLE_SLACK = 64
"""Roundings of a float64 score beside one for each feature: logarithms, means, scales, and the sums of either side."""
BLOCK_ROWS = 4096
"""Rows that are dense at a time, whatever the size of a sparse X."""
LEAST_TAU = 0.9
"""Below this mean of Kendall's tau an engine that only rounds still does not rank as the model does."""

FROM_TEXT = "features from columns of text, as SQLite's .import makes them, give the same rankings"


@dataclass(frozen=True)
class Verification:
    """How far an exported file's scores and rankings are from the model's; `agrees` allows for rounding alone."""

    target: str
    engine: str
    """Who scored the file: "run by …", or "restated" where the engine's arithmetic was computed here."""
    rule: str
    """The engine's precision and missing-value rule."""
    n_queries: int
    n_docs: int
    shift: float
    """Constant between the two scores; it changes no ranking."""
    largest_difference: float
    """Largest difference of two scores beside the shift."""
    allowed: float
    """What rounding alone can do to the score of some document, at most."""
    tau: float
    """Kendall's tau-b, mean over the queries with two documents or more."""
    worst_tau: float
    top: int
    overlap: float
    """Share of the model's first `top` documents among the engine's, mean over the queries."""
    worst_overlap: float
    tied_pairs: int
    """Pairs of documents that the model tells apart and the engine does not."""
    ordered_pairs: int
    """Pairs of documents of one query that the model tells apart."""
    worst_query: str | None
    """A query with the worst overlap, where it is not 1."""
    misplaced: int
    """Documents that stand below one which scores less, by more than rounding explains."""
    not_numbers: int
    """Documents to which the engine gives no number."""
    notes: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether the rankings are the same but for rounding, and rounding leaves a ranking (`LEAST_TAU`)."""
        return self.misplaced == 0 and self.not_numbers == 0 and not self.blurred

    @property
    def blurred(self) -> bool:
        """Whether rounding alone keeps the engine's order from being the model's."""
        return self.misplaced == 0 and self.tau < LEAST_TAU

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values for JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**values, "notes": list(self.notes), "agrees": self.agrees}

    def __str__(self) -> str:
        lines = [
            f"{self.target} {self.engine} ({self.rule}): {self.n_docs:,} documents of {self.n_queries:,} queries",
            f"largest score difference  {self.largest_difference:.2g} (rounding allows {self.allowed:.2g})"
            + (f", beside a shift of {self.shift:+.6g} that changes no ranking" if self.shift else ""),
            f"Kendall's tau             {self.tau:.6f} mean, {self.worst_tau:.6f} worst",
            f"top {self.top} overlap".ljust(26)
            + f"{self.overlap:.6f} mean, {self.worst_overlap:.6f} worst"
            + ("" if self.worst_query is None else f" (query {self.worst_query})"),
            f"tied by the engine alone  {self.tied_pairs:,} of {self.ordered_pairs:,} pairs",
            *self.notes,
        ]
        if self.agrees:
            lines.append("the rankings agree: no document is out of place by more than rounding explains")
        elif self.blurred and not self.not_numbers:
            lines.append(
                f"TIED BY ROUNDING: the engine's precision leaves too little of the model's order (tau below "
                f"{LEAST_TAU}); fit again on features of like size"
            )
        else:
            lost = f", {self.not_numbers} have no score" if self.not_numbers else ""
            lines.append(f"THE RANKINGS DISAGREE: {self.misplaced} documents are out of place beyond rounding{lost}")
        return "\n".join(lines)


def verify(
    model: Any,
    path: str | os.PathLike[str],
    data: Any,
    *,
    qid: ArrayLike | None = None,
    to: str | None = None,
    top: int = 10,
    features: Sequence[str] | None = None,
    missing: Missing | None = None,
    gaps: Literal["split", "right", "zero"] | None = None,
) -> Verification:
    """Score `data` with the model in float64 and with the file as its engine would, and compare.

    `model` is what `fold` takes, `path` an exported file, `data` a data set, or rows with `qid` (NaN is a missing
    value, for which model and engine each follow their own rule; `missing` is that of `fold`). ONNX files run in
    onnxruntime. `gaps` says what a version of the plugins of Elasticsearch and OpenSearch does with a feature that does
    not match a tree's split: follow `missing` ("split", the newest), go "right", or take "zero" for it (before 2024).

    >>> import tempfile, toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=30, random_state=0)
    >>> ranker = tr.ListNet().fit_queries(data)
    >>> file = os.path.join(tempfile.mkdtemp(), "model.json")
    >>> _ = tr.export.write(ranker, file, "solr")
    >>> check = tr.export.verify(ranker, file, data)
    >>> check.target, check.agrees, check.overlap
    ('solr', True, 1.0)
    """
    check_count(top=top)
    known = fold(model, missing=missing)
    renamed = known if features is None else fold(known, features)
    target, replica = read(path, to, gaps=gaps)
    queries = data if isinstance(data, QueryDataset) else known.as_queries(data, qid, grouped=True)
    if known.inputs.names is None and queries.feature_names is not None:
        known = renamed  # the names that the export was given are the only ones the model has
    queries = known.inputs.matched(queries, known.source)
    ours = known.scores(queries)
    columns, notes = _matched(renamed, replica)
    # What the model itself rounds to float32 is no rounding of the engine.
    rounded = isinstance(known.function, TreeFunction) and same_in_single(known.function)
    rows = queries.X.astype(np.float32) if rounded else queries.X

    def compare(replica: Replica, *more: str) -> Verification:
        theirs, bound, doubtful = _run(replica, known, rows, columns, queries.ptr)
        said = (*notes, *more, *(() if doubtful is None else (_sides(doubtful),)))
        return _compare(target, replica, ours, theirs, bound, queries.ptr, queries.query_ids, top, said)

    found, text = compare(replica), replica.with_text_columns()
    if text is None or not found.agrees:
        return found
    from_text = compare(text, "what differs here are features from columns of text, as SQLite's .import makes them")
    return from_text if not from_text.agrees else replace(found, notes=(*found.notes, FROM_TEXT))


def _matched(model: Model, replica: Replica) -> tuple[Ints, tuple[str, ...]]:
    """Return the model's column behind each feature of the file."""
    everything = np.arange(len(model.names))
    if replica.names is None:
        if replica.n_features > len(everything):
            raise InputError(f"the file has {replica.n_features} features, but the model has {len(everything)}")
        return everything[: replica.n_features], ()
    place = {name: j for j, name in enumerate(model.names)}
    unknown = [name for name in replica.names if name not in place]
    if not unknown:
        return np.array([place[name] for name in replica.names], dtype=np.int64), ()
    if len(unknown) == replica.n_features == len(everything):
        return everything, ("features are matched by position: the file has other names than the model",)
    raise InputError(
        f"the file asks for the feature {unknown[0]!r}, which the model does not have: name the features as in the "
        "export (--features)"
    )


def _run(replica: Replica, model: Model, X: Matrix, columns: Ints, ptr: Ints) -> tuple[Floats, Floats, int | None]:
    scores, bound = np.empty(X.shape[0]), np.empty(X.shape[0])
    doubtful: int | None = None
    for rows, block, bounds in dense_blocks(X, ptr):
        chosen = np.ascontiguousarray(block[:, columns])
        scores[rows] = replica.score_rows(chosen, np.repeat(np.arange(len(bounds) - 1), np.diff(bounds)))
        known = replica.rounding(chosen)
        if known is None:
            size = _magnitude(model, np.nan_to_num(block), bounds) + np.abs(np.nan_to_num(scores[rows]))
            known = (len(model.names) + DOUBLE_SLACK) * unit_roundoff(np.float64) * size
            known = known + 2 * replica.last * np.abs(np.nan_to_num(scores[rows]))
        bound[rows] = known
        near = replica.doubtful(chosen)
        if near is not None:
            doubtful = near + (doubtful or 0)
    return scores, bound, doubtful


def dense_blocks(X: Matrix, ptr: Ints) -> Iterator[tuple[slice, Floats, Ints]]:
    """Yield the rows of X in dense float64 blocks of whole queries, with the boundaries of the queries in each."""
    first = 0
    while first < len(ptr) - 1:
        last = max(first + 1, int(np.searchsorted(ptr, ptr[first] + BLOCK_ROWS, side="right")) - 1)
        rows = slice(int(ptr[first]), int(ptr[last]))
        yield rows, np.asarray(dense(X[rows]), dtype=np.float64), ptr[first : last + 1] - ptr[first]
        first = last


def _magnitude(model: Model, X: Floats, ptr: Ints) -> Floats:
    """Return how large the numbers are that a dense row's score is added up from: rounding is a part of it.

    That is |offset| + Σ_j |w_j x_j| of a linear model, Σ_t |weight_t| of thresholds and Σ_t the largest leaf of tree t
    of trees; of prepared features also what was taken off them on the way.
    """
    function, offset = model.function, abs(model.offset)
    if isinstance(function, StumpFunction):
        return np.full(len(X), offset + float(np.abs(function.weight).sum()))
    if isinstance(function, TreeFunction):
        leaf = np.where(function.feature < 0, np.abs(function.value), 0.0)
        return np.full(len(X), offset + float(np.maximum.reduceat(leaf, np.sort(function.root)).sum()))
    weights = np.abs(model.weights)
    if not model.inputs.steps:
        return np.asarray(np.abs(X) @ weights + offset)
    rows = QueryDataset(X, np.zeros(len(X)), ptr, np.arange(len(ptr) - 1))
    size = np.asarray(np.abs(dense(model.inputs.prepared(rows).X)) @ weights + offset)
    for first, last in pairwise(ptr):
        part = X[first:last]
        spread = np.ptp(part, axis=0)
        taken = np.where(spread > 0, np.abs(part).max(axis=0) / np.where(spread > 0, spread, 1.0), 0.0) + 1.0
        if model.inputs.widens:
            size[first:last] += len(part) * float(taken.max(initial=0.0) * weights.sum())
        else:
            size[first:last] += len(part) * float(taken @ weights)
    return size


def _sides(doubtful: int) -> str:
    if not doubtful:
        return "the engine's precision moves no value across a threshold"
    return (
        f"{doubtful:,} values lie closer to a threshold than the engine's precision can tell and may be on its other "
        "side there"
    )


def _compare(
    target: str,
    replica: Replica,
    ours: Floats,
    theirs: Floats,
    bound: Floats,
    ptr: Ints,
    query_ids: AnyArray,
    top: int,
    notes: tuple[str, ...],
) -> Verification:
    numbers = np.isfinite(theirs)
    difference = np.where(numbers, theirs, np.nan) - ours
    shift = float(np.median(difference[numbers])) if numbers.any() else 0.0
    allowed = float(bound.max(initial=0.0))
    shift = 0.0 if abs(shift) <= allowed else shift
    largest = float(np.abs(difference[numbers] - shift).max(initial=0.0))
    taus, overlaps, misplaced, tied, ordered = [], [], 0, 0, 0
    for a, b in pairwise(ptr):
        s, e = ours[a:b], np.where(numbers[a:b], theirs[a:b], -np.inf)
        mine, other = np.argsort(-s, kind="stable"), np.argsort(-e, kind="stable")
        first = min(top, b - a)
        overlaps.append(len(np.intersect1d(mine[:first], other[:first])) / first if first else 1.0)
        taus.append(kendall_tau(s, e) if b - a > 1 else np.nan)
        misplaced += _misplaced(s[other], bound[a:b][other])
        ordered += int((b - a) * (b - a - 1) // 2) - _tied_pairs(s)
        tied += _tied_pairs(e) - _tied_pairs(s, e)
    worst = int(np.argmin(overlaps)) if overlaps else 0
    known = np.array(taus)[~np.isnan(taus)]
    return Verification(
        target=target,
        engine=replica.engine,
        rule=replica.rule,
        n_queries=len(query_ids),
        n_docs=len(ours),
        shift=shift,
        largest_difference=largest,
        allowed=allowed,
        tau=float(known.mean()) if len(known) else 1.0,
        worst_tau=float(known.min(initial=1.0)),
        top=top,
        overlap=float(np.mean(overlaps)) if overlaps else 1.0,
        worst_overlap=float(min(overlaps, default=1.0)),
        tied_pairs=tied,
        ordered_pairs=ordered,
        worst_query=str(query_ids[worst]) if min(overlaps, default=1.0) < 1 else None,
        misplaced=misplaced,
        not_numbers=int((~numbers).sum()),
        notes=notes,
    )


def _tied_pairs(*columns: Floats) -> int:
    """Count the pairs of documents that are equal in every column."""
    order = np.lexsort(columns)
    same = np.ones(max(len(order) - 1, 0), dtype=bool)
    for column in columns:
        same &= column[order][1:] == column[order][:-1]
    runs = np.diff(np.flatnonzero(np.concatenate(([True], ~same, [True])))) if len(order) else np.empty(0, dtype=int)
    return int((runs * (runs - 1) // 2).sum())


def _misplaced(scores: Floats, bound: Floats) -> int:
    """Count the documents, in the engine's order, that stand below one whose true score is less beyond both bounds."""
    if not len(scores):
        return 0
    lowest_above = np.minimum.accumulate(scores + bound)
    return int((scores - bound > lowest_above).sum())


def kendall_tau(first: Floats, second: Floats) -> float:
    """τ_b = (concordant − discordant) / √((pairs − tied in first)(pairs − tied in second)); 1 where both are all tied.

    >>> kendall_tau(np.array([3.0, 2.0, 1.0]), np.array([3.0, 1.0, 2.0]))
    0.333...
    """
    from scipy.stats import kendalltau

    flat = (first == first[0]).all(), (second == second[0]).all()
    if any(flat):
        return 1.0 if all(flat) else 0.0
    if len(first) == 2:  # scipy divides by n − 2 for a p-value that nobody asked for
        return 1.0 if (first[0] > first[1]) == (second[0] > second[1]) else -1.0
    return round(float(kendalltau(first, second, method="asymptotic").statistic), 12)
