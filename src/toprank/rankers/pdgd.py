"""A ranker that learns from clicks on the pages it shows: pairwise differentiable gradient descent."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import field
from typing import Any, ClassVar, Self

import numpy as np

from .._progress import track
from .._typing import ArrayLike, Floats, Ints, Matrix
from ..data import linear
from ..data.dataset import QueryDataset
from ..data.mapped import read_in_any_order
from ..data.sketch import Sketch
from ..data.validation import check_count, check_informative, check_not_negative
from ..errors import InputError
from ..model import LinearFunction, Model, ScoringFunction
from ..solvers.deadline import out_of_time
from ..solvers.steps import Rule, Steps
from .base import Ranker, parameters
from .watching import BestOnValidation


@parameters
class PDGD(Ranker):
    """Learns from clicks alone, on rankings that it samples itself, and is not misled by where documents stood.

    A page R is drawn document by document with odds e^{w·x}; each click k against each document l without one, up to
    the place after the last click, moves w by η ρ e^{s_k} e^{s_l}/(e^{s_k} + e^{s_l})² (x_k − x_l), where
    ρ = P(R*)/(P(R) + P(R*)) and R* is R with k and l exchanged: Algorithm 1 of Oosterhuis and de Rijke (2018), in
    `clicks._pdgd_kernels.pdgd_step`.

    Show users what `sample` returns and hand back what they clicked with `partial_fit_clicks`. `cut` is how many
    documents a page has. `predict` and `rank` use the weights without sampling. `fit` is for trying it out: it shows
    `epochs` pages of each list to a user who clicks every relevant document. No bound is proved for it, so it has no
    certificates.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=100, random_state=0)
    >>> ranker = tr.PDGD(eta=0.1, cut=5)
    >>> for query in data:
    ...     shown = ranker.sample(query.X)
    ...     clicked = query.y[shown] == query.y.max()
    ...     _ = ranker.partial_fit_clicks(query.X, shown, clicked)
    >>> bool(tr.evaluate(ranker, data).mean["ndcg@10"] > 0.7)
    True
    """

    needs_all_rows = True

    learns_from = "clicks"
    state_attributes: ClassVar[tuple[str, ...]] = ("counts_",)

    eta: float | str = 0.1
    cut: int = 10
    epochs: int = 5
    random_state: int | None = 0
    verbose: bool = False
    counts_: dict[str, int] = field(init=False)
    """Pages sampled, pages learned from, and pairs that they told."""

    def start_at(self, ranker: Ranker | Model) -> Self:
        """Start at the weights of any fitted linear ranker, or of its model, instead of 0.

        Its features, its rule for missing cells and its preparation come along, and its parameters say so.

        >>> import toprank as tr
        >>> ranker = tr.ListNet().fit([[1.0], [0.0]], [1, 0])
        >>> bool((tr.PDGD().start_at(ranker).coef_ == ranker.coef_).all())
        True
        """
        model = ranker.model_ if isinstance(ranker, Ranker) else ranker
        if not isinstance(model.function, LinearFunction):
            raise InputError(f"{model.source} is not linear: clicks are learned by linear models")
        self.inputs_, self.prepare = model.inputs, ",".join(model.inputs.words)
        self._begin_at(model.function)
        if isinstance(ranker, Ranker):
            self.missing, self.learned_from_ = ranker.missing, ranker.learned_from_
            self.n_queries_in_ = ranker.n_queries_in_
        if model.inputs.names is not None:
            self.feature_names_in_ = np.array(model.inputs.names, dtype=object)
        return self

    def sample(self, X: Any) -> Ints:
        """Return the rows of one list to show, best first: drawn by the current weights, `cut` of them at most."""
        check_count(cut=self.cut)
        with self._learning_copy() as new:
            _, rows = new._one_list(X)
            scores = new.function_.scores(rows)
            rng = np.random.default_rng(None if self.random_state is None else (self.random_state, new._next_page()))
        return sampled_order(scores, rng)[: self.cut]

    def partial_fit_clicks(self, X: Any, shown: ArrayLike, clicked: ArrayLike, weight: float = 1.0) -> Self:
        """Learn from one page: `shown` are rows of X, best first, as `sample` returned them, `clicked` a flag for each.

        A page on which nothing was clicked, or everything, tells nothing. Bad input raises before anything changes.
        """
        check_not_negative(weight=weight)
        with self._learning_copy() as new:
            given, matrix = new._one_list(X)
            rows, flags = _page(shown, clicked, matrix.shape[0])
            new._step(matrix, rows, flags, weight)
            new._note_rows(given, np.array([0, matrix.shape[0]]), first=False)
        return self

    def _fit(self, data: QueryDataset, valid: QueryDataset | None, executor: Executor | None) -> None:
        check_informative(data.informative, data.n_docs)
        self._begin_at(LinearFunction(np.zeros(data.n_features)))
        rng = np.random.default_rng(self.random_state)
        informative = np.flatnonzero(data.informative)
        watch = BestOnValidation[ScoringFunction](self._judge(), valid, verbose=self.verbose)
        for epoch in track(range(self.epochs), "epochs", show=self.verbose):
            order = rng.permutation(informative)
            with read_in_any_order(data.X, order):
                for q in order.tolist():
                    query = data[q]
                    shown = sampled_order(self.function_.scores(query.X), rng)[: self.cut]
                    weight = 1.0 if query.query_weight is None else float(query.query_weight[0])
                    self._step(query.X, shown, query.y[shown] > query.y.min(), weight)
            self.n_iter_ = epoch + 1
            if watch.look(self.function_, lambda: self.function_, f"{epoch + 1:5d}") or out_of_time():
                break
        self.function_, self.trace_ = watch.best or self.function_, watch.trace()

    def _one_list(self, X: Any) -> tuple[Matrix, Matrix]:
        """Return the rows of one list as they came, and as the scoring function sees them.

        The first list of all decides the features.
        """
        if "function_" in vars(self):
            given = self._rows(X, None)
            return given.X, self.inputs_.prepared(given).X
        data = self._grouped(X, np.zeros(len(X) if not hasattr(X, "shape") else X.shape[0]), None, reset=True)
        rows = self._learnable(data, first=True).X
        self._begin_at(LinearFunction(np.zeros(rows.shape[1])))
        return data.X, rows

    def _begin_at(self, function: LinearFunction) -> None:
        """Start at these weights, before any page."""
        self.function_, self.trace_, self.certificates_ = function, {}, []
        self.n_features_in_, self.n_queries_in_ = self.inputs_.n_features, vars(self).get("n_queries_in_", 0)
        vars(self).setdefault("learned_from_", Sketch.of())
        self.counts_ = {"sampled": 0, "pages": 0, "pairs": 0}

    def _next_page(self) -> int:
        number = self.counts_["sampled"]
        self.counts_ = {**self.counts_, "sampled": number + 1}
        return number

    def _step(self, X: Matrix, shown: Ints, clicked: Floats, weight: float) -> None:
        from ..clicks._pdgd_kernels import pdgd_step
        from ..core.rows import rows_of

        steps = Steps.parse(self.eta)
        if steps.rule == Rule.ADAPTIVE:
            raise InputError("eta must be a number or 'sqrt' (with η as in 'sqrt:0.1') here, not 'adaptive'")
        theta, pages = self.coef_.copy(), self.counts_["pages"] + 1
        scores = linear.scores(X, theta)
        if not np.isfinite(scores).all():
            raise InputError("scores overflow: scale the features, or take a smaller eta")
        pairs = int(pdgd_step(rows_of(X), scores, shown, clicked, weight * steps.size(pages, None), theta))
        if pairs:
            self.function_ = LinearFunction(theta)
        self.counts_ = {**self.counts_, "pages": pages, "pairs": self.counts_["pairs"] + pairs}
        self.n_iter_ = pages

    def _check_state(self) -> None:
        counts = self.counts_
        sound = isinstance(counts, dict) and set(counts) == {"sampled", "pages", "pairs"}
        if not sound or not all(type(n) is int and n >= 0 for n in counts.values()):
            raise InputError("$.state.counts_ is not the state of a PDGD ranker")
        self.trace_, self.certificates_ = {}, []


def sampled_order(scores: Floats, rng: np.random.Generator) -> Ints:
    """Draw rows one after the other, each with odds e^score among those left.

    The largest of score + Gumbel noise is such a draw, the next one a draw from the rest, and so on.
    """
    return np.argsort(-(scores + rng.gumbel(size=len(scores))), kind="stable")


def _page(shown: ArrayLike, clicked: ArrayLike, n_docs: int) -> tuple[Ints, Any]:
    rows, flags = np.asarray(shown), np.asarray(clicked)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or flags.shape != rows.shape or flags.dtype.kind not in "biuf":
        raise InputError(
            f"shown must be row numbers and clicked a flag for each, got {rows.dtype} {rows.shape} and {flags.dtype} "
            f"{flags.shape}"
        )
    rows = np.ascontiguousarray(rows, dtype=np.int64)
    if len(rows) and not 0 <= rows.min() <= rows.max() < n_docs:
        raise InputError(f"shown has row {int(rows.min() if rows.min() < 0 else rows.max())} of {n_docs} documents")
    if len(np.unique(rows)) != len(rows):
        raise InputError("shown has a row twice: a page shows each document once")
    bad = flags[(flags != 0) & (flags != 1)]
    if len(bad):
        raise InputError(f"clicked has {bad[0]}: write 0 or 1 for each document shown")
    return rows, np.ascontiguousarray(flags != 0)
