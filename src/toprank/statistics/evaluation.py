"""How good a ranking is: values per query first, means derived from them, the convention named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np

from .._checkpoint import plain
from .._estimators import estimator_scores
from .._tables import Shown, Table
from .._typing import AnyArray, ArrayLike, Floats
from ..data import blocks, validation
from ..data.dataset import QueryDataset
from ..data.grades import warn_of_lowest_grade
from ..data.trec import Run, scores_of_run
from ..errors import InputError
from ..measures.base import Measure, mean_value
from ..measures.base import measure as parse
from ..measures.plan import Plan
from ..measures.presets import relevant_above

T = TypeVar("T")

BLOCK_DOCS = 1 << 16
"""Documents measured at a time where an executor shares the work."""


@runtime_checkable
class QueryScorer(Protocol):
    """A model that scores a data set and checks its features by name: every ranker of ours."""

    def predict_grouped(self, data: QueryDataset) -> Floats:
        """Return one score per row of `data.X`, grouped by query."""


@runtime_checkable
class RowScorer(Protocol):
    """A model that scores rows: anything with scikit-learn's `predict`; a classifier scores by how sure it is."""

    def predict(self, X: Any) -> ArrayLike:
        """Return one score per row."""


class ByMeasure(dict[str, T]):
    """Values by the name of a measure; other spellings of a name ("MAP", "ap") find them too."""

    def __missing__(self, key: str) -> T:
        try:
            name = parse(key).name
        except InputError:
            name = ""
        if ":" in key or name not in self:
            raise KeyError(f"{key!r} was not evaluated: there are {', '.join(self)}")
        return self[name]


@dataclass(frozen=True, eq=False)
class Report(Shown):
    """Values of measures per query, the counts needed to read them, and the convention they follow.

    A value that is NaN (a query that its convention skips) counts in no mean. `str` is a table of the means.
    """

    measures: tuple[Measure, ...]
    per_query: Mapping[str, Floats]
    """One value per query by the name of the measure (its whole text where two measures share a name)."""
    counts: Mapping[str, int]
    """`queries`; `blank_queries` without a relevant document; `short_queries` with fewer documents than the largest
    cut-off; `tied_queries` in which the order of documents with equal scores matters to one of the measures."""
    convention: str
    query_ids: AnyArray
    query_weight: Floats | None = None
    in_file_order: Mapping[str, Floats] | None = None
    """The values per query if documents with equal scores stood as in the data; None where that makes no difference."""
    blank: AnyArray | None = None
    """Whether a query has no grade above 0, query by query; None where no measure's mean depends on it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "per_query", ByMeasure(self.per_query))
        if self.in_file_order is not None:
            object.__setattr__(self, "in_file_order", ByMeasure(self.in_file_order))

    @property
    def mean(self) -> Mapping[str, float]:
        """Mean of each measure over the queries, weighted where the data set has weights."""
        return self._means(self.per_query)

    @property
    def mean_in_file_order(self) -> Mapping[str, float]:
        """Mean of each measure if documents with equal scores stood as in the data."""
        return self._means(self.per_query if self.in_file_order is None else self.in_file_order)

    def _means(self, per_query: Mapping[str, Floats]) -> Mapping[str, float]:
        return ByMeasure(
            (name, mean_value(values, self.query_weight, self.unweighted(name))) for name, values in per_query.items()
        )

    def unweighted(self, name: str) -> AnyArray | None:
        """Return which queries a measure's weighted mean adds without their weight; None where it weighs all."""
        one = dict(zip(self.per_query, self.measures, strict=True))[name]
        return self.blank if one.adds_blanks_unweighted else None

    def table(self) -> Table:
        """Return the means as a table that says what they mean."""
        return Table(("measure", "mean"), list(self.mean.items()), notes=(self.summary(),))

    def per_query_table(self) -> Table:
        """Return one row per query."""
        columns = [values.tolist() for values in self.per_query.values()]
        rows = [[str(query), *row] for query, *row in zip(self.query_ids.tolist(), *columns, strict=True)]
        return Table(("query", *self.per_query), rows, notes=(self.summary(),))

    def summary(self) -> str:
        """Return the convention and the counts in words."""
        c, cut = self.counts, max((m.k for m in self.measures if m.k is not None), default=None)
        parts = ["1 query" if c["queries"] == 1 else f"{c['queries']} queries"]
        parts += [f"{n} of them not answered (counted as 0)"] if (n := c.get("missing_queries")) else []
        parts += [f"{n} judged but not answered (left out)"] if (n := c.get("left_out_queries")) else []
        parts += [f"{n} of the run not judged (left out)"] if (n := c.get("unjudged_queries")) else []
        parts += [f"{c['blank_queries']} without relevant documents"]
        skipped = {name: int(np.isnan(values).sum()) for name, values in self.per_query.items()}
        parts += [f"{name} counts {c['queries'] - n} of them" for name, n in skipped.items() if n]
        parts += [] if cut is None else [f"{c['short_queries']} shorter than {cut}"]
        parts += [f"{c['tied_queries']} with ties that matter"]
        given = [f"{name} {value:.4f}" for name, value in self.mean_in_file_order.items() if value != self.mean[name]]
        parts[-1] += f" (in file order {', '.join(given)})" if given else ""
        return (
            f"convention {self.convention}; " + ", ".join(parts) + ("" if self.query_weight is None else "; weighted")
        )

    def to_dict(self, *, per_query: bool = False) -> dict[str, Any]:
        """Return the report as plain values for JSON (NaN is None); with `per_query`, the value of every query too."""
        result: dict[str, Any] = {
            "convention": self.convention,
            "measures": {name: str(m) for name, m in zip(self.per_query, self.measures, strict=True)},
            "mean": self.mean,
            "mean_in_file_order": self.mean_in_file_order,
            "counts": self.counts,
        }
        if per_query:
            result["query_ids"] = [q if isinstance(q, (int, str)) else str(q) for q in self.query_ids.tolist()]
            result["per_query"] = self.per_query
        found: dict[str, Any] = plain(result)
        return found

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Return one row per query as a data frame."""
        import narwhals as nw

        values = {name: column.tolist() for name, column in self.per_query.items()}
        return nw.from_dict({"query": self.query_ids.tolist(), **values}, backend=backend).to_native()

    def __repr__(self) -> str:
        means = ", ".join(f"{name}={value:.4f}" for name, value in self.mean.items())
        return f"Report({means}; {self.counts['queries']} queries, convention {self.convention})"


def evaluate(
    model: QueryScorer | RowScorer | ArrayLike,
    data: QueryDataset | None = None,
    measures: str | Measure | Sequence[str | Measure] = ("ndcg@10", "map"),
    convention: str = "standard",
    executor: Executor | None = None,
    *,
    y: ArrayLike | None = None,
    qid: ArrayLike | None = None,
) -> Report:
    """Measure a model, or scores in the caller's row order, on judged queries; a query is sorted once for all.

    Scores need no data set: `evaluate(scores, y=grades, qid=ids)` takes grades and query ids row by row (without `qid`
    all rows are one list). `convention` is whose rules to follow (`toprank measures` lists them); a `Measure`, or a
    text that names its own, keeps it. An `executor` works on blocks of queries in parallel and changes no bit of the
    result. A single feature is a baseline too: `evaluate(data.feature("bm25"), data)`.

    >>> data = QueryDataset.from_arrays([[3.0], [2.0], [1.0]], [0, 1, 0])
    >>> evaluate([1, 3, 2, 4], y=[0, 1, 0, 1], qid=["a", "b", "b", "a"], measures=["map"]).mean["map"]
    1.0
    >>> report = evaluate(data.feature(0), data, ["ndcg@10", "map"])
    >>> report.mean["map"], report.per_query["ndcg@10"].round(4).tolist()
    (0.5, [0.6309])
    >>> print(report)
    measure    mean
    -------  ------
    ndcg@10  0.6309
    map      0.5000
    convention standard; 1 query, 0 without relevant documents, 1 shorter than 10, 0 with ties that matter
    """
    if y is not None or qid is not None:
        data = _without_features(model, data, y, qid)
    else:
        data = checked_data_set(data, ", or give y= and qid= beside scores")
    warn_of_lowest_grade(data.y, data.n_queries)
    return evaluate_grouped(grouped_scores(model, data), data, measures, convention, executor)


def checked_data_set(data: object, otherwise: str = "") -> QueryDataset:
    """Refuse anything but a data set, and say how to make one."""
    if not isinstance(data, QueryDataset):
        got = "nothing" if data is None else f"a {type(data).__name__}"
        raise InputError(
            f"data must be a QueryDataset, got {got}: read a table with toprank.read_table, group arrays with "
            f"QueryDataset.from_arrays{otherwise}"
        )
    return data


def evaluate_grouped(
    scores: ArrayLike,
    data: QueryDataset,
    measures: str | Measure | Sequence[str | Measure] = ("ndcg@10", "map"),
    convention: str = "standard",
    executor: Executor | None = None,
    *,
    of_run: bool = False,
) -> Report:
    """Do what `evaluate` does for scores given one per row of `data.X`, grouped by query.

    `of_run`: see `Plan.run_with_ties`.
    """
    wanted = [measures] if isinstance(measures, (str, Measure)) else list(measures)
    parsed = tuple(parse(m, convention=convention) for m in wanted)
    if not parsed:
        raise InputError("measures is empty: name at least one, e.g. 'ndcg@10'")
    names = [m.name for m in parsed]
    keys = [str(m) if names.count(m.name) > 1 else m.name for m in parsed]
    if len(set(keys)) != len(keys):
        raise InputError(f"measures names {next(k for k in keys if keys.count(k) > 1)} more than once")
    if of_run:
        found = Plan.of(parsed).run_with_ties(scores, data.y, data.ptr, data.doc_ids, of_run=True)
    else:
        found = _run(Plan.of(parsed), validation.as_scores(scores, data.n_docs), data, executor)
    values, matter, in_file_order = found
    conventions = tuple(dict.fromkeys(m.convention for m in parsed))
    unweighted = [m.adds_blanks_unweighted for m in parsed]
    longest_cut = max((m.k for m in parsed if m.k is not None), default=0)
    counts = {
        "queries": data.n_queries,
        "blank_queries": int((data.largest_grade <= min(map(relevant_above, conventions))).sum()),
        "short_queries": int((data.lengths < longest_cut).sum()),
        "tied_queries": int(matter.sum()),
    }
    return Report(
        measures=parsed,
        per_query=dict(zip(keys, values, strict=True)),
        counts=counts,
        convention=", ".join(conventions),
        query_ids=data.query_ids,
        query_weight=data.query_weight,
        in_file_order=dict(zip(keys, in_file_order, strict=True)) if matter.any() else None,
        blank=data.largest_grade <= 0 if data.query_weight is not None and any(unweighted) else None,
    )


def grouped_scores(model: Any, data: QueryDataset) -> ArrayLike:
    """Return one score per row of `data.X`."""
    if isinstance(model, type):
        raise InputError(f"{model.__name__} is a class: make one, fit it and evaluate that")
    model = getattr(model, "best_estimator_", model)  # a search for settings that was fitted
    if isinstance(model, QueryScorer):
        return model.predict_grouped(data)
    if isinstance(model, RowScorer) or hasattr(model, "decision_function") or hasattr(model, "predict_proba"):
        return estimator_scores(model, data)
    if isinstance(model, (Run, Mapping)):
        return scores_of_run(Run.of(model), data)
    if data.order is not None and (validation.is_sparse(model) or _is_ours(model, data)):
        raise InputError(
            "these scores are rows of the data set, which are grouped by query, and scores are taken in the row order "
            "you gave: use data.feature(...) for a feature, data.in_caller_order(...) for anything else"
        )
    values: Any = model.toarray().ravel() if validation.is_sparse(model) else model  # a column of sparse features
    return data.grouped(validation.as_scores(values, data.n_docs))


def _is_ours(scores: Any, data: QueryDataset) -> bool:
    """Say whether the scores are a column of X, or the labels, and not a copy."""
    rows = data.X.data if data.is_sparse else data.X
    return isinstance(scores, np.ndarray) and any(np.may_share_memory(scores, own) for own in (rows, data.y))


def _without_features(model: Any, data: object, y: ArrayLike | None, qid: ArrayLike | None) -> QueryDataset:
    """Return grades and ids as a data set whose one feature says nothing."""
    if data is not None:
        raise InputError("give a data set, or y= and qid= beside scores, not both")
    if y is None:
        raise InputError("y is missing: evaluate(scores, y=grades, qid=ids)")
    if isinstance(model, (QueryScorer, RowScorer)):
        raise InputError("y= and qid= go with scores, and a model needs features: evaluate(model, data)")
    return QueryDataset.from_arrays(np.zeros((len(validation.as_labels(y)), 1), dtype=np.float32), y, qid)


def _run(
    plan: Plan, scores: Floats, data: QueryDataset, executor: Executor | None
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return values, in which queries ties matter, and the values in file order: see `Plan.run_with_ties`."""
    if executor is None:
        return plan.run_with_ties(scores, data.y, data.ptr, data.doc_ids)
    cuts = blocks.block_boundaries(data.ptr, BLOCK_DOCS)
    bounds = [(int(data.ptr[a]), int(data.ptr[b])) for a, b in pairwise(cuts)]
    parts = executor.map(
        plan.run_with_ties,
        [scores[low:high] for low, high in bounds],
        [data.y[low:high] for low, high in bounds],
        [data.ptr[a : b + 1] - data.ptr[a] for a, b in pairwise(cuts)],
        [None if data.doc_ids is None else data.doc_ids[low:high] for low, high in bounds],
    )
    values, matter, in_file_order = (np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))
    return values, matter, in_file_order
