"""Rankers that boost over single features: AdaRank and RankBoost."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import field, replace
from typing import ClassVar

import numpy as np

from .._typing import Floats, Ints
from ..certificates.base import Assumption, Certificate
from ..certificates.boosting import adarank_certificates, rankboost_certificate
from ..certificates.learned import named_queries
from ..certificates.worst import worst_values
from ..data.dataset import QueryDataset
from ..errors import InputError
from ..measures import measure as parse_measure
from ..measures.base import Measure
from ..model.functions import LinearFunction, StumpFunction
from ..objective import Objective
from ..solvers.adarank import AdaRankRounds, AdaRankRule, candidate_column, feature_weights, replay
from ..solvers.base import warn_nothing_learned
from ..solvers.boosting import BinnedColumns, RankBoostRounds, Rounds, pairs_of
from ..surrogates.direct import ALL_ALIKE, is_informative, parse_bounded
from ..surrogates.pairwise import PairwiseHinge, misordered_pairs, pair_counts
from .base import Ranker, parameters
from .watching import BestOnValidation


@parameters
class AdaRank(Ranker):
    """Boosting over single features; queries that are still ranked badly weigh more in the next round.

    f = Σ_t α_t h_t, each h_t the feature with the best Σ_q P_t(q) E(q, h), P_{t+1} ∝ exp(−E(f_t)) (Fig. 6).

    The measure of every query by every feature is computed once; a round is then one matrix-vector product and one
    evaluation of f_t. Documents that score alike count as expected over their orders, so the order of the rows does not
    matter. The figure, line by line, is `solvers.adarank.AdaRankRounds.run`. `certificates_` has Theorem 4 after every
    round. With a validation set the best round is kept.

    Parameters
    ----------
    measure : any measure with values in [0, 1], or its name.
    rounds : how many rounds are played, at most.
    rule : "paper" is the figure to the letter: every query counts. It often picks one feature for ever, since P moves
        by less than a factor e. "improve" takes the best feature that raises the training measure, halves its steps
        when none does, and stops when small steps help no more. A gain below 10⁻¹² of the measure is rounding and
        counts as none. The default was chosen on validation parts of LETOR alone (`python -m benchmarks.designs`).
    both_directions : whether every feature is offered reversed too; None means with the rule "improve", which was
        chosen in the same way.
    patience : how many rounds without a better one on the validation set end the fit; None means none do.
    warm_start : whether `rounds` are added to those so far.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=50, random_state=0)
    >>> ranker = tr.AdaRank("map", rounds=10).fit_queries(data)
    >>> all(certificate.holds() for certificate in ranker.certificates_)
    True
    """

    state_attributes: ClassVar[tuple[str, ...]] = ("candidates_", "alphas_")

    measure: str | Measure = field(default="map", kw_only=False)
    rounds: int = 100
    rule: AdaRankRule = "improve"
    both_directions: bool | None = None
    patience: int | None = None
    warm_start: bool = False
    candidates_: Ints = field(init=False)
    """The feature of each round; from the number of features on, the features reversed."""
    alphas_: Floats = field(init=False)

    def _fit(self, data: QueryDataset, valid: QueryDataset | None, executor: Executor | None) -> None:
        measure = parse_bounded(self.measure)
        importance = self._importance(data, measure)
        if not is_informative(measure, data):
            warn_nothing_learned(type(self).__name__, ALL_ALIKE)
            self._keep_rounds(np.empty(0, dtype=np.int64), np.empty(0), {})
            return
        watch = BestOnValidation[int](parse_measure(self.measure), valid, self.patience)
        both = self.rule == "improve" if self.both_directions is None else bool(self.both_directions)
        look = None if valid is None else _ValidationRounds(watch).feature
        boost = AdaRankRounds(measure, self.rounds, self.rule, look, both)
        before = None if self._start() is None else Rounds(self.candidates_, self.alphas_)
        done = boost.run(data, importance, executor, before)
        keep = watch.best or len(done.candidates)
        self._keep_rounds(done.candidates[:keep], done.weights[:keep], {**done.trace, "valid": np.array(watch.reached)})
        kept = {name: values[:keep] for name, values in done.trace.items()}
        learned = Assumption("it learned from these rows", True)
        self.certificates_ = self._theorem_4(measure, Rounds(self.candidates_, self.alphas_, kept), data, learned)

    def _keep_rounds(self, candidates: Ints, alphas: Floats, trace: dict[str, Floats]) -> None:
        self.candidates_, self.alphas_, self.trace_, self.n_iter_ = candidates, alphas, trace, len(candidates)
        self.function_ = LinearFunction(feature_weights(candidates, alphas, self.inputs_.n_outputs))

    def _check_state(self) -> None:
        both = (self.candidates_, self.alphas_)
        sound = all(isinstance(values, np.ndarray) and values.shape == np.shape(both[0]) for values in both)
        sound = sound and self.candidates_.dtype == np.int64 and bool(np.isfinite(self.alphas_).all())
        sound = sound and bool(((self.candidates_ >= 0) & (self.candidates_ < 2 * self.inputs_.n_outputs)).all())
        if not sound or self.candidates_.ndim != 1:
            raise InputError("$.state is not that of an AdaRank: one feature and one weight per round")

    def _certify(
        self, data: QueryDataset, here: Assumption, comparator: Floats | None, delta: float
    ) -> list[Certificate]:
        measure = parse_bounded(self.measure)
        rounds = Rounds(self.candidates_, self.alphas_)
        played = replay(measure, data, rounds, self._importance(data, measure))
        found = self._theorem_4(measure, played, data, here)
        near = np.allclose(
            self.coef_, feature_weights(self.candidates_, self.alphas_, self.inputs_.n_outputs), rtol=1e-9, atol=1e-12
        )
        own = Assumption("the weights are those of the rounds", bool(near))
        return [replace(certificate, assumptions=(own, *certificate.assumptions)) for certificate in found]

    def _importance(self, data: QueryDataset, measure: Measure) -> Floats:
        """Return P_1: every query counts in the figure, else those with two grades."""
        informative = query_importance(data)
        if self.rule != "paper":
            return informative
        weight = np.ones(data.n_queries) if data.query_weight is None else data.query_weight
        known = ~np.isnan(measure.per_query(data.y, data.y, data.ptr))  # those that the measure does not leave out
        return np.asarray(weight * known / (weight @ known))

    def _theorem_4(self, measure: Measure, done: Rounds, data: QueryDataset, here: Assumption) -> list[Certificate]:
        trace, share = done.trace, self._importance(data, measure)
        over = named_queries(share > 0, "two grades" if self.rule != "paper" else f"a value of {measure}")
        return adarank_certificates(
            str(measure),
            trace["phi"],
            trace["delta"],
            done.weights,
            trace["measure"],
            over=f"{over}, which it learned from" if here.verified else over,
            worst=float(share @ np.nan_to_num(worst_values(measure, data.y, data.ptr))),
        )


def query_importance(data: QueryDataset) -> Floats:
    """Return weights of the queries that sum to 1: 0 for those whose grades are all equal."""
    objective = Objective(data, PairwiseHinge())
    return objective.weight / objective.total_weight


class _ValidationRounds:
    """Adds round after round to the scores of the validation part and shows them to the watcher, `every` so many."""

    def __init__(self, watch: BestOnValidation[int], every: int = 1) -> None:
        self.watch, self.every = watch, every
        self.scores = np.zeros(0 if watch.valid is None else watch.valid.n_docs)

    def feature(self, t: int, k: int, weight: float) -> bool:
        assert self.watch.valid is not None
        return self._add(t, weight * candidate_column(self.watch.valid.X, k))

    def stump(self, t: int, k: int, threshold: float, weight: float) -> bool:
        assert self.watch.valid is not None
        return self._add(t, np.where(candidate_column(self.watch.valid.X, k) > threshold, weight, 0.0))

    def _add(self, t: int, change: Floats) -> bool:
        self.scores += change
        return False if t % self.every else self.watch.look(self.scores, lambda: t)


@parameters
class RankBoost(Ranker):
    """Boosting over thresholds on single features, so that fewer pairs of documents are out of order.

    H = Σ_t α_t [x_{k_t} > θ_t], each (k, θ) with the largest |Σ_{pairs} D (h_i − h_j)|, D ∝ e^{H_j − H_i}.

    A pair's weight factors into its two documents, so a round needs one potential per document and one histogram of
    them per column, for all thresholds of all features. The rounds are `solvers.boosting.RankBoostRounds.run`.

    Parameters
    ----------
    rounds : how many stumps are added, at most.
    thresholds : how many places a feature has at most, evenly spread over the weight of the documents; a value that
        many of them share is one place. Up to 255 a value takes one byte. None means one place between any two values,
        which takes as much memory as X.
    both_directions : whether a stump may count against the documents above it too.
    normalize : whether every query has the same weight, instead of every pair.
    every : how many rounds lie between two looks at `measure` on the validation set, of which the best is kept. The
        best of hundreds of looks at a small validation part is often a lucky one.
    patience : how many looks without a better one end the fit; None means none do.
    warm_start : whether `rounds` are added to those so far.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=50, random_state=0)
    >>> ranker = tr.RankBoost(rounds=20).fit_queries(data)
    >>> print(ranker.certificates_[0])
    mean over queries with two grades of the share of pairs that are misordered or tied ≤ Π_t Z_t: ... holds.
    """

    needs_all_rows = True

    _depends_on_units: ClassVar[bool] = False

    rounds: int = 300
    thresholds: int | None = 255
    both_directions: bool = False
    normalize: bool = True
    every: int = 25
    patience: int | None = None
    warm_start: bool = False

    def _fit(self, data: QueryDataset, valid: QueryDataset | None, executor: Executor | None) -> None:
        weight = self._pair_weight(data)
        watch = BestOnValidation[int](parse_measure(self.measure), valid, self.patience)
        looks, before = _ValidationRounds(watch, min(self.every, self.rounds)), self._before()
        if before is not None and valid is not None:
            looks.scores = before.scores(valid.X)
        boost = RankBoostRounds(self.rounds, bool(self.both_directions), None if valid is None else looks.stump)
        columns = BinnedColumns.of(data.X, self.thresholds, np.repeat(query_importance(data), data.lengths))
        done, thresholds = boost.run(data, columns, weight, executor, None if before is None else before.scores(data.X))
        keep = watch.best or len(done.candidates)
        stumps = done.candidates[:keep], thresholds[:keep], done.weights[:keep]
        if before is not None:
            so_far = before.feature, before.threshold, before.weight
            stumps = tuple(np.concatenate(pair) for pair in zip(so_far, stumps, strict=True))  # type: ignore[assignment]
        self.function_ = StumpFunction(data.n_features, *stumps)
        self.n_iter_ = len(stumps[0])
        self.trace_ = {**done.trace, "valid": np.array(watch.reached)}
        self.certificates_ = self._certify(data, Assumption("it learned from these rows", True), None, 0.05)

    def _before(self) -> StumpFunction | None:
        """Return the stumps so far, where `warm_start` goes on from them."""
        return vars(self).get("function_") if self.warm_start else None

    def _pair_weight(self, data: QueryDataset) -> Floats:
        pairs, share = pair_counts(data.y, data.ptr), query_importance(data)
        weight = share / np.maximum(pairs, 1.0) if self.normalize else share
        return np.asarray(weight / float((weight * pairs).sum()))

    def _certify(
        self, data: QueryDataset, here: Assumption, comparator: Floats | None, delta: float
    ) -> list[Certificate]:
        weight, scores = self._pair_weight(data), self.function_.scores(data.X)
        wrong, tied = misordered_pairs(scores, data.y, data.ptr)
        found = exponential_loss(scores, data, weight), float(weight @ (wrong + tied))
        weighted = data.query_weight is not None
        return [rankboost_certificate(*found, by_query=bool(self.normalize), weighted=weighted)]


def exponential_loss(scores: Floats, data: QueryDataset, pair_weight: Floats) -> float:
    """Return Σ_{y_i > y_j} weight_q e^{−(s_i − s_j)}."""
    from ..solvers import _boosting_kernels as kernels

    return float(kernels.potentials(scores, pairs_of(data, pair_weight), np.empty(data.n_docs)))
