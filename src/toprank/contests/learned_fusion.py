"""Fusion that is learned: how much each of several runs counts, from judged queries, by any ranker.

A document has, of each run, its score on the scale of the query, the reciprocal of its rank, and whether the run
retrieved it. What is said of the fusion rests on queries that its models did not see (nested folds), beside the fusions
that learn nothing and the best single run.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec
import numpy as np

from .._files import read_whole, replacing
from .._tables import signed
from .._typing import Floats, Ints
from .._version import __version__
from ..data import validation
from ..data.dataset import QueryDataset
from ..data.grouping import numbered
from ..data.ids import id_text
from ..data.splits import QueryKFold
from ..data.trec import Qrels, Run, first_repeated
from ..errors import InputError
from ..statistics.comparison import Comparison, compare, interval_text
from ..statistics.fusion import added, fuse
from ..statistics.trec_evaluation import evaluate_run

if TYPE_CHECKING:
    from ..rankers.base import Ranker

Kind = Literal["score", "reciprocal_rank", "presence"]
Scale = Literal["standard", "minmax"]
KINDS: tuple[Kind, ...] = get_args(Kind)
FORMAT, VERSION = "toprank-fusion", 1
RANK_CONSTANT = 60.0
"""Of reciprocal ranks: 61/(60 + rank), 1 for the first document."""
LEARNED, RRF, COMBSUM = "learned fusion", "reciprocal rank fusion", "CombSUM"
ALPHAS = (1e-3, 1e-2, 1e-1)
"""Penalties of the default rankers, of which inner folds choose."""


@dataclass(frozen=True)
class FusionFeatures:
    """What the fusion knows of a document: the same for every set of runs by these names.

    Parameters
    ----------
    runs : names of the runs, in their order.
    kinds : "score" (on the scale of the query), "reciprocal_rank" (61/(60 + rank)), "presence" (1 where the run
        retrieved the document).
    scale : "standard" takes scores to mean 0 and deviation 1 within a query and run, a document that the run did not
        retrieve having the lowest of them; "minmax" to 0 … 1, such a document having 0.
    """

    runs: tuple[str, ...]
    kinds: tuple[Kind, ...] = KINDS
    scale: Scale = "standard"

    def __post_init__(self) -> None:
        if len(self.runs) < 2:
            raise InputError(f"fusion needs at least two runs, got {len(self.runs)}")
        if not self.kinds or len(set(self.kinds)) < len(self.kinds):
            raise InputError(f"features of runs are some of {', '.join(KINDS)}, each once")
        for kind in self.kinds:
            validation.check_choice(KINDS, feature=kind)
        validation.check_choice(get_args(Scale), scale=self.scale)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(f"{run} {kind}" for run in self.runs for kind in self.kinds)

    def rows(self, runs: Mapping[str, Run | Mapping[str, Mapping[str, float]]]) -> Run:
        """Return the documents that any of the runs retrieved, scores all 0."""
        given = self._given(runs)
        qid, doc_ids = (np.concatenate([id_text(getattr(run, name)) for run in given]) for name in ("qid", "doc_ids"))
        pair = numbered(qid) * (len(doc_ids) + 1) + numbered(doc_ids)
        first = np.sort(np.unique(pair, return_index=True)[1])
        first = first[np.argsort(numbered(qid[first]), kind="stable")]
        return Run(qid[first], doc_ids[first], np.zeros(len(first)))

    def columns(self, runs: Mapping[str, Run | Mapping[str, Mapping[str, float]]], rows: Run) -> Floats:
        """Return the features of these documents."""
        place = {pair: row for row, pair in enumerate(zip(rows.qid.tolist(), rows.doc_ids.tolist(), strict=True))}
        query = numbered(rows.qid)
        X = np.zeros((len(rows.qid), len(self.names)))
        for number, run in enumerate(self._given(runs)):
            at = np.array(
                [place[pair] for pair in zip(id_text(run.qid).tolist(), id_text(run.doc_ids).tolist(), strict=True)],
                dtype=np.int64,
            )
            mine = numbered(run.qid)
            made = {
                "score": self._scaled(run.scores, mine),
                "reciprocal_rank": (RANK_CONSTANT + 1) * added(run.scores, mine, "rrf", RANK_CONSTANT),
                "presence": np.ones(len(at)),
            }
            for offset, kind in enumerate(self.kinds):
                column = number * len(self.kinds) + offset
                if kind == "score" and self.scale == "standard":
                    X[:, column] = _lowest(made[kind], query[at], int(query.max(initial=-1)) + 1)[query]
                X[at, column] = made[kind]
        return X

    def _scaled(self, scores: Floats, query: Ints) -> Floats:
        if self.scale == "minmax":
            return added(scores, query, "combsum", 0.0)
        count = np.bincount(query)
        mean = np.bincount(query, scores) / count
        apart = scores - mean[query]
        deviation = np.sqrt(np.bincount(query, apart**2) / count)
        # What rounding leaves of a list of equal scores is no spread.
        flat = deviation <= 1e-12 * np.maximum(np.abs(mean), 1e-300)
        return np.where(flat[query], 0.0, apart / np.where(flat, 1.0, deviation)[query])

    def _given(self, runs: Mapping[str, Run | Mapping[str, Mapping[str, float]]]) -> list[Run]:
        lacking = next((name for name in self.runs if name not in runs), None)
        if lacking is not None or len(runs) != len(self.runs):
            raise InputError(f"this fusion takes the runs {', '.join(self.runs)}, got {', '.join(runs)}")
        given = {name: Run.of(runs[name]) for name in self.runs}
        for name, run in given.items():
            again = first_repeated(run.qid, run.doc_ids)
            if again is not None:
                raise InputError(f"run {name}: document {run.doc_ids[again]} stands twice under query {run.qid[again]}")
            if not np.isfinite(run.scores).all():
                row = int(np.flatnonzero(~np.isfinite(run.scores))[0])
                raise InputError(
                    f"run {name}: document {run.doc_ids[row]} of query {run.qid[row]} has the score {run.scores[row]}, "
                    "which is not finite: leave it out"
                )
        return list(given.values())


def _lowest(values: Floats, query: Ints, n_queries: int) -> Floats:
    """Return the lowest value of each query; 0 where there is none."""
    low = np.full(n_queries, np.inf)
    np.minimum.at(low, query, values)
    return np.where(np.isfinite(low), low, 0.0)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """The layout of a file of a learned fusion; `model` is that of a model file."""

    format: str
    version: int
    toprank: str
    runs: list[str]
    kinds: list[Kind]
    scale: Scale
    model: msgspec.Raw


@dataclass(frozen=True, eq=False)
class LearnedFusion:
    """A ranker over the features of several runs; with what unseen queries say of it, where it was learned here."""

    features: FusionFeatures
    ranker: Ranker
    unseen: Run | None = field(default=None, repr=False)
    """The judged queries, each ranked by a model that did not learn from it."""
    comparison: Comparison | None = field(default=None, repr=False)
    """That run beside reciprocal rank fusion, CombSUM and the best single run."""
    best_single: str | None = None
    chosen: str = ""
    """The ranker that inner folds chose, and of how many."""

    def apply(self, runs: Mapping[str, Run | Mapping[str, Mapping[str, float]]]) -> Run:
        """Return one run from several, by the names that it was learned with."""
        rows = self.features.rows(runs)
        X, names = self.features.columns(runs, rows), self.features.names
        data = QueryDataset.from_arrays(X, np.zeros(len(X)), rows.qid, feature_names=names)
        return Run(rows.qid, rows.doc_ids, np.asarray(self.ranker.predict(data), dtype=np.float64))

    @property
    def weights(self) -> dict[str, float] | None:
        """The weight of each feature; None where the ranker is not linear."""
        coef = getattr(self.ranker, "coef_", None)
        return None if coef is None else dict(zip(self.features.names, np.ravel(coef).tolist(), strict=True))

    @property
    def gains(self) -> list[tuple[str, float, tuple[float, float], str]]:
        """What the fusion gains over each other: its name, the difference, its interval, and better, worse or nothing.

        Better and worse take both the test, with its correction, and an interval without 0.
        """
        if self.comparison is None:
            return []
        found = []
        for each in self.comparison.differences:
            if each.measure != self.comparison.measures[0]:
                continue
            mine = each.a == LEARNED
            low, high = each.interval if mine else (-each.interval[1], -each.interval[0])
            outcome = "" if not each.shown or low <= 0 <= high else "better" if low > 0 else "worse"
            gain = each.difference if mine else -each.difference
            found.append((each.b if mine else each.a, gain, (low, high), outcome))
        return found

    @property
    def verdict(self) -> str:
        """What unseen queries show, in words: better than which of the others, and than which it is not shown to be."""
        if self.comparison is None:
            return "nothing is known of how this fusion does on unseen queries: it was read from a file"
        found: dict[str, list[str]] = {"better than": [], "not shown to differ from": [], "worse than": []}
        for other, _, _, outcome in self.gains:
            found[f"{outcome} than" if outcome else "not shown to differ from"].append(other)
        said = "; ".join(f"{words} {_listed(names)}" for words, names in found.items() if names)
        sentence = f"on unseen queries the learned fusion is {said} ({self.comparison.correction})"
        mean = self.comparison.means[self.comparison.measures[0]]
        if self.best_single is not None and mean[self.best_single] >= mean[LEARNED]:
            sentence += f"; {self.best_single} alone is no lower in the mean: take it as it is"
        return sentence

    def to_dict(self) -> dict[str, Any]:
        """Return what is known as plain values for JSON."""
        found: dict[str, Any] = {
            "runs": list(self.features.runs),
            "features": list(self.features.kinds),
            "scale": self.features.scale,
            "ranker": type(self.ranker).__name__,
            "chosen": self.chosen,
            "weights": self.weights,
            "verdict": self.verdict,
        }
        if self.comparison is not None:
            measure = self.comparison.measures[0]
            found |= {
                "measure": measure,
                "queries": self.comparison.n_queries,
                "best_single": self.best_single,
                "means": dict(self.comparison.means[measure]),
                "gains": [
                    {"over": other, "gain": gain, "interval": list(interval), "outcome": outcome or "not shown"}
                    for other, gain, interval, outcome in self.gains
                ],
            }
        return found

    def __str__(self) -> str:
        lines = [f"{self.chosen or type(self.ranker).__name__} over {', '.join(self.features.runs)}"]
        if self.comparison is not None:
            measure = self.comparison.measures[0]
            means = self.comparison.means[measure]
            width = max(map(len, means))
            lines += [f"{name:{width}}  {measure} {means[name]:.4f}" for name in sorted(means, key=lambda n: -means[n])]
            for other, gain, interval, outcome in self.gains:
                said = f"{signed(gain)} {interval_text(interval, sign=True)}, {outcome or 'not shown'}"
                lines.append(f"{LEARNED} − {other}: {said}")
        if self.weights is not None:
            least = 5e-4 * max(map(abs, self.weights.values()))
            counted = {name: weight for name, weight in self.weights.items() if abs(weight) > least}
            lines.append("weights  " + ", ".join(f"{name} {weight:+.3f}" for name, weight in counted.items()))
        return "\n".join([*lines, self.verdict])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fusion as JSON; the file appears whole or not at all."""
        from ..rankers.persistence import content_of

        model = msgspec.json.encode(content_of(self.ranker))
        here = self.features
        content = _File(FORMAT, VERSION, __version__, list(here.runs), list(here.kinds), here.scale, msgspec.Raw(model))
        with replacing(path) as draft:
            draft.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")


def load_fusion(path: str | os.PathLike[str]) -> LearnedFusion:
    """Read a file that `LearnedFusion.save` wrote.

    >>> import tempfile
    >>> runs = {"one": {"q": {"a": 2.0, "b": 1.0}}, "two": {"q": {"b": 3.0, "c": 2.0}}}
    >>> fusion = learn_fusion(runs, {"q": {"b": 1}}, folds=None)
    >>> file = os.path.join(tempfile.mkdtemp(), "fusion.json")
    >>> fusion.save(file)
    >>> load_fusion(file).apply(runs).scores.tolist() == fusion.apply(runs).scores.tolist()
    True
    """
    from ..rankers.persistence import parse

    text, name = read_whole(path)
    try:
        content = msgspec.json.decode(text, type=_File)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{name} is not a learned fusion: {error}") from None
    if content.format != FORMAT or content.version != VERSION:
        raise InputError(f"{name} is {content.format!r} version {content.version}; this toprank reads {FORMAT!r} 1")
    ranker = parse(bytes(content.model), name)
    try:
        features = FusionFeatures(tuple(content.runs), tuple(content.kinds), content.scale)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    if ranker.n_features_in_ != len(features.names):
        raise InputError(f"{name}: the model has {ranker.n_features_in_} features, the runs have {len(features.names)}")
    return LearnedFusion(features, ranker)


def learn_fusion(
    runs: Mapping[str, Run | Mapping[str, Mapping[str, float]]],
    qrels: Qrels | Mapping[str, Mapping[str, int]],
    *,
    rankers: Ranker | Sequence[Ranker] | None = None,
    features: Sequence[Kind] = KINDS,
    scale: Scale = "standard",
    measure: str = "ndcg@10",
    folds: int | None = 5,
    random_state: int = 0,
) -> LearnedFusion:
    """Learn from judged queries how to fuse runs, and compare the fusion with those that learn nothing.

    Parameters
    ----------
    runs : {name: run}; the names are asked for again when the fusion is applied.
    qrels : judgements; queries without any are left out, documents without one count as grade 0.
    rankers : a ranker or several, of which inner folds choose; by default ListNet with three penalties.
    features, scale : what `FusionFeatures` takes.
    measure : what inner folds choose by, and what the comparison is of (with trec_eval's convention).
    folds : every query is ranked by a model learned without its fold; None learns on all and compares nothing.
    random_state : of the folds.

    >>> import toprank as tr
    >>> from toprank.data.trec import qrels_of, run_of
    >>> data = tr.datasets.make_graded(n_queries=40, random_state=0)
    >>> noise = np.random.default_rng(0)
    >>> scores = {name: data.y + noise.normal(size=data.n_docs) for name in ("bm25", "dense")}
    >>> fusion = learn_fusion({name: run_of(data, each) for name, each in scores.items()}, qrels_of(data))
    >>> fusion.comparison.systems[:3]
    ('learned fusion', 'reciprocal rank fusion', 'CombSUM')
    """
    judged = Qrels.of(qrels)
    if not isinstance(runs, Mapping):
        raise InputError("learn_fusion takes runs by name: {name: run}")
    made = FusionFeatures(tuple(runs), tuple(features), scale)
    given = {name: Run.of(run) for name, run in runs.items()}
    taken = {LEARNED, RRF, COMBSUM} & set(given)
    if taken:
        raise InputError(f"a run cannot be called {taken.pop()!r}: that is the name of what it is compared with")
    candidates = _candidates(rankers)
    rows = made.rows(given)
    data = _data_set(made, made.columns(given, rows), rows, judged)
    ranker = _chosen(candidates, data, judged, measure, random_state)
    said = f"{ranker!r}" + (f", chosen of {len(candidates)} by inner folds" if len(candidates) > 1 else "")
    if folds is None:
        return LearnedFusion(made, ranker.fit_queries(data), chosen=said)
    scores = np.empty(data.n_docs)
    for train, test, where in _parts(data, folds, random_state):
        best = _chosen(candidates, train, judged, measure, random_state)
        scores[where] = best.fit_queries(train).predict(test)
    unseen = Run(np.repeat(data.query_ids, data.lengths), id_text(_doc_ids(data)), scores)
    comparison, best_single = _compared(given, unseen, judged, measure, random_state)
    return LearnedFusion(made, ranker.fit_queries(data), unseen, comparison, best_single, said)


def _candidates(rankers: Ranker | Sequence[Ranker] | None) -> list[Ranker]:
    if rankers is None:
        from ..rankers.listwise import ListNet

        return [ListNet(alpha=alpha) for alpha in ALPHAS]
    found = list(rankers) if isinstance(rankers, Sequence) else [rankers]
    if not found or not all(hasattr(each, "fit_queries") for each in found):
        raise InputError("rankers are toprank's own, such as tr.ListNet(): one, or a list of them")
    return found


def _data_set(features: FusionFeatures, X: Floats, rows: Run, judged: Qrels) -> QueryDataset:
    pairs = zip(id_text(judged.qid).tolist(), id_text(judged.doc_ids).tolist(), strict=True)
    grades = dict(zip(pairs, np.maximum(judged.grades, 0).tolist(), strict=True))  # below 0: not judged
    kept = np.isin(rows.qid, id_text(judged.qid))
    if not kept.any():
        raise InputError("the runs and the judgements have no query in common: are the ids written the same way?")
    y = [grades.get(pair, 0) for pair in zip(rows.qid[kept].tolist(), rows.doc_ids[kept].tolist(), strict=True)]
    return QueryDataset.from_arrays(
        X[kept], y, rows.qid[kept], feature_names=features.names, doc_ids=rows.doc_ids[kept]
    )


def _doc_ids(data: QueryDataset) -> Any:
    assert data.doc_ids is not None
    return data.doc_ids


def _parts(data: QueryDataset, folds: int, random_state: int) -> Any:
    """Yield the queries to learn from, those to rank, and the rows of the latter."""
    for test in QueryKFold(folds, shuffle=True, random_state=random_state)._folds(data.n_queries):
        yield data[~test], data[test], test[data.query_of_rows]


def _chosen(candidates: Sequence[Ranker], data: QueryDataset, judged: Qrels, measure: str, random_state: int) -> Ranker:
    """Return the candidate with the best mean over queries that it did not see; the first where there is only one."""
    from sklearn.base import clone

    folds = min(5, data.n_queries)
    if len(candidates) == 1 or folds < 2:
        return clone(candidates[0])  # type: ignore[no-any-return]
    means = []
    for candidate in candidates:
        scores = np.empty(data.n_docs)
        for train, test, where in _parts(data, folds, random_state + 1):
            scores[where] = clone(candidate).fit_queries(train).predict(test)
        run = Run(np.repeat(data.query_ids, data.lengths), id_text(_doc_ids(data)), scores)
        means.append(evaluate_run(run, judged, [measure], complete=False).mean[measure])
    best = int(np.nanargmax(means)) if not all(map(math.isnan, means)) else 0
    return clone(candidates[best])  # type: ignore[no-any-return]


def _compared(
    runs: Mapping[str, Run], unseen: Run, judged: Qrels, measure: str, random_state: int
) -> tuple[Comparison, str]:
    """Compare the learned fusion with RRF, CombSUM and the single run that is best on these very queries."""
    kept = np.isin(id_text(judged.qid), unseen.qid)
    judged = Qrels(judged.qid[kept], judged.doc_ids[kept], judged.grades[kept])
    singles = {name: evaluate_run(run, judged, [measure]) for name, run in runs.items()}
    best = max(singles, key=lambda name: singles[name].mean[measure])
    given = list(runs.values())
    reports = {
        LEARNED: evaluate_run(unseen, judged, [measure]),
        RRF: evaluate_run(fuse(given, "rrf"), judged, [measure]),
        COMBSUM: evaluate_run(fuse(given, "combsum"), judged, [measure]),
        best: singles[best],
    }
    return compare(reports, baseline=LEARNED, random_state=random_state), best


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
