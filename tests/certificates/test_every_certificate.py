"""Every certificate in three cases: it holds and informs, it is vacuous, it is violated or does not apply."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Perceptron

import toprank as tr
from toprank import certificates
from toprank.certificates import at_k, boosting, convergence, generalization, learned, performance
from toprank.certificates.base import Assumption, Certificate
from toprank.certificates.mistakes import Comparator, Run, lower_bound
from toprank.objective import Objective
from toprank.penalties import L2
from toprank.solvers.at_k import LearnerAtK, Lost
from toprank.solvers.batches import Batches
from toprank.solvers.steps import Rule, Steps
from toprank.surrogates.precision_at_k import MistakesAvg, PrecAvg

SILENT = ("violated", "does not apply")
U = Comparator(norm2=1.0, loss=10.0, margin=0.5, u=np.ones(1))
FAR = Comparator(norm2=1e6, loss=1e6, margin=1e-6)
NEAR = Comparator(norm2=1.0, loss=1.0)
WORSE = Comparator(norm2=1.0, loss=10.0, margin=0.0)


def run(algorithm="minimax", **numbers):
    known = {"A": 4.0, "eta": 0.1, "loss": 5.0, "mistakes": 9, "surrogate": 12.0, "znorm2": 20.0, "largest_ratio": 3.0}
    return Run(algorithm, **(known | {"rounds": 1000.0, "zero": 500.0} | numbers))


def in_budget(**numbers):
    return run(dropped=3, rest=2.0, **numbers)


def changing(**numbers):
    return run(constant=False, half=1.0, rest=2.0, **numbers)


def top(**numbers):
    lost = Lost(batches=100, loss=10.0, share=10.0, places=100, largest_k=1)
    return at_k.TopRun(MistakesAvg, lost, numbers.get("radius", 1.0), 100.0, 100.0, ())


def replay(kind=MistakesAvg, passes=1, rows=40, rule=Rule.SQRT):
    rng = np.random.default_rng(0)
    data = tr.QueryDataset.from_arrays(rng.normal(size=(rows, 2)), rng.random(rows) < 0.5)
    batches = Batches.of(data, 10)
    learner = LearnerAtK(kind(kappa=0.5), Steps(1.0, rule, radius=1.0))
    return at_k.TopReplay(learner, [(batches, np.arange(batches.count))] * passes)


def blank(data):
    return tr.QueryDataset.from_arrays(data.X, np.zeros(data.n_docs), data.qid)


DATA = tr.datasets.make_separable(n_queries=20, n_docs=6, n_features=3, n_grades=2, margin=1.0, random_state=0)
GOOD, BAD = 10 * DATA.ranker / DATA.margin, -DATA.ranker
DATA = DATA.data


def pairs(n, mixed):
    """n lists of two; where they are not mixed, the second half wants the opposite of the first."""
    wanted = np.arange(n) % 2 == 0 if mixed else np.arange(n) < n // 2
    y = np.column_stack([wanted, ~wanted]).ravel().astype(float)
    return tr.QueryDataset.from_arrays(np.tile([1.0, -1.0], n)[:, None], y, np.repeat(np.arange(n), 2))


def listwise(n, mixed=True):
    loss = tr.surrogates.ListMLE()
    return generalization.certificates(loss, np.array([0.2]), pairs(n, mixed), radius=0.2)[-1]


def classifier(gap, epochs=5, other=False, comparator=None):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(300, 2)), np.arange(300) % 2
    X[:, 0] += np.where(y == 1, gap, -gap)
    model = Perceptron(random_state=0, max_iter=epochs, tol=None, fit_intercept=False).fit(X, y)
    return tr.certify_perceptron(model, -X if other else X, y, comparator)


def optimality(w, here=True):
    objective = Objective(DATA, tr.surrogates.PairwiseHinge("squared_hinge"), L2(1e-2))
    if w is None:
        from toprank.solvers.newton import Newton

        w = Newton().minimize(objective).w
    return learned.optimality(objective, w, Assumption("here", here), tol=1e-3, max_iter=50)


def measured(x, **options):
    return performance.performance(x, "map", **options)


def streamed(rounds, verified=True):
    return performance.stream_performance(rounds, 0.7 * rounds, 0.04 * rounds, "map", 0.95, Assumption("x", verified))


MANY = np.random.default_rng(0).random(60)
SEEN = [Assumption("none of them was learned from", False)]
PHI, NIL = np.array([0.6]), np.zeros(1)
STEP = 0.5 * np.log((1 + PHI) / (1 - PHI))

# Function: (holds and informs, vacuous, violated or does not apply). None where there is no such case: an order O(·)
# has no verdict at all, and without Lemma 5 nothing is known of the ratio.
TABLE = {
    "mistakes.Run.self_bounding": lambda: (run().self_bounding(), None, run(A=1.0).self_bounding()),
    "mistakes.Run.regret": lambda: (run().regret(U), run().regret(FAR), run(surrogate=600.0).regret(U)),
    "mistakes.Run.regret, budget": lambda: (
        in_budget().regret(U), in_budget().regret(FAR), in_budget(surrogate=600.0).regret(U),
    ),
    "mistakes.Run.regret, telescoped": lambda: (
        changing().regret(U), changing().regret(FAR), changing(surrogate=600.0).regret(U),
    ),
    "mistakes.Run.any_step": lambda: (run().any_step(U), run().any_step(FAR), run(eta=1.0).any_step(U)),
    "mistakes.Run.optimised_step": lambda: (
        run().optimised_step(U), run().optimised_step(FAR), run("slam", eta=5.0).optimised_step(U),
    ),
    "mistakes.Run.after_the_fact": lambda: (
        run().after_the_fact(U), run().after_the_fact(FAR), run("slam").after_the_fact(U),
    ),
    "mistakes.Run.separable": lambda: (run().separable(U), run().separable(FAR), run().separable(WORSE)),
    "mistakes.Run.number_of_mistakes": lambda: (
        run().number_of_mistakes(U), run().number_of_mistakes(FAR), run(mistakes=17).number_of_mistakes(U),
    ),
    "mistakes.lower_bound": lambda: (
        lower_bound("map", 1.0, 0.1, 60.0), lower_bound("map", 1.0, 0.8, 60.0), lower_bound("map", 1.0, 0.1, 40.0),
    ),
    "at_k.TopRun.mistakes": lambda: (top().mistakes(U), top().mistakes(FAR), top(radius=0.0).mistakes(NEAR)),
    "at_k.TopRun.separable": lambda: (top().separable(U), top().separable(FAR), top().separable(WORSE)),
    "at_k.online_to_batch": lambda: (at_k.online_to_batch(replay()), None, at_k.online_to_batch(replay(passes=2))),
    "at_k.generalization": lambda: (
        at_k.generalization(replay(), np.ones(2)), None, at_k.generalization(replay(passes=2), np.ones(2)),
    ),
    "at_k.convergence": lambda: (
        at_k.convergence(replay(PrecAvg), np.ones(2)), None,
        at_k.convergence(replay(PrecAvg, rule=Rule.CONSTANT), np.ones(2)),
    ),
    "convergence.uniform_convergence": lambda: (
        convergence.uniform_convergence(replay(rows=640).data, [np.ones(2)], kappa=0.5, trials=5, seed=0), None,
        convergence.uniform_convergence(replay().data, [np.ones(2)], kappa=0.5, trials=5, seed=0),
    ),
    "boosting.adarank_certificates": lambda: (
        boosting.adarank_certificates("map", PHI, NIL, STEP, np.array([0.7]))[0],
        boosting.adarank_certificates("map", NIL, NIL, NIL, np.array([0.7]))[0],
        boosting.adarank_certificates("map", PHI, NIL, STEP, np.array([0.1]))[0],
    ),
    "boosting.rankboost_certificate": lambda: (
        boosting.rankboost_certificate(0.8, 0.3), boosting.rankboost_certificate(1.2, 0.3),
        boosting.rankboost_certificate(0.2, 0.3),
    ),
    "classification.certify_perceptron": lambda: (
        classifier(3.0)[0], classifier(0.5, comparator=[100.0, 0.0])[0], classifier(3.0, other=True)[0],
    ),
    "classification.certify_perceptron, margin": lambda: (
        classifier(5.0, 40)[1], classifier(3.2, 1, comparator=[1.0, 0.0])[1], classifier(0.0)[1],
    ),
    "generalization.certificates": lambda: (listwise(40_000), listwise(20), listwise(40_000, mixed=False)),
    "learned.ranking_bounds": lambda: (
        learned.ranking_bounds("map", None, GOOD, DATA)[0], learned.ranking_bounds("map", None, BAD, DATA)[0],
        learned.ranking_bounds("map", None, GOOD, blank(DATA))[0],
    ),
    "learned.type_two_and_one": lambda: (
        learned.type_two_and_one(np.ones(1), NIL, np.ones(1), NIL, np.ones(1)),
        learned.type_two_and_one(np.ones(1), NIL, np.ones(1), np.ones(1), np.ones(1)),
        learned.type_two_and_one(np.ones(1), NIL, NIL, NIL, np.ones(1)),
    ),
    "learned.pair_bound": lambda: (
        learned.pair_bound("hinge", GOOD, DATA), learned.pair_bound("hinge", BAD, DATA),
        learned.pair_bound("hinge", GOOD, blank(DATA)),
    ),
    "learned.top_bounds": lambda: (
        learned.top_bounds(1, None, GOOD, DATA)[-1], learned.top_bounds(1, None, BAD, DATA)[-1],
        learned.top_bounds(1, None, GOOD, blank(DATA))[-1],
    ),
    "learned.optimality": lambda: (optimality(None), optimality(BAD), optimality(GOOD, here=False)),
    "performance._certificate": lambda: (measured(MANY), measured([0.5, 0.4]), measured(MANY, unseen=SEEN)),
    "performance.stream_performance": lambda: (streamed(1000), streamed(2), streamed(1000, False)),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_it_can_come_out_in_each_way(name):
    informs, vacuous, fails = TABLE[name]()
    assert informs.verdict == ("no verdict" if informs.order_only else "holds"), informs.explain()
    assert informs.order_only or informs.meaning or informs.arithmetic
    assert vacuous is None or vacuous.verdict == "vacuous", vacuous.explain()
    assert fails.verdict in SILENT, fails.explain()


HELPERS = {"_at_w", "_order_only"}
ALWAYS = {"replay.another_run", "learned._nothing"}
"""They say that nothing applies, and nothing else."""


def makers():
    """Every function that makes a certificate, by its name."""
    for path in sorted(Path(certificates.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            for child in ast.iter_child_nodes(node):
                if not isinstance(child, ast.FunctionDef):
                    continue
                called = {
                    c.func.id for c in ast.walk(child) if isinstance(c, ast.Call) and isinstance(c.func, ast.Name)
                }
                if called & {"Certificate", "PerformanceCertificate", "stream_performance", *HELPERS}:
                    owner = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
                    yield f"{path.stem}.{owner}{child.name}"


def test_no_certificate_is_missing_from_the_table():
    found = {name for name in makers() if name.split(".")[-1] not in HELPERS} - ALWAYS
    assert found >= {"mistakes.Run.regret", "learned.pair_bound", "performance._certificate"}
    assert found - {name.split(",")[0] for name in TABLE} == set()


def test_two_numbers_that_differ_by_rounding_are_one():
    """(√59)² is 58.99999999999999 in floating point: the bound 59 is neither violated nor informative by it."""
    square = float(np.sqrt(59.0)) ** 2
    assert square < 59.0
    assert Certificate("x ≤ y", square, 59.0, "a theorem").verdict == "holds"
    assert Certificate("x ≤ y", square, 50.0, "a theorem", vacuous_from=59.0).verdict == "vacuous"
    assert Certificate("x ≤ y", 58.9, 59.0, "a theorem").verdict == "violated"
    assert Certificate("x ≥ y", 59.0, square, "a theorem", sense=">=").verdict == "holds"


def test_the_mean_over_some_iterates_says_that_it_is_over_some():
    many, few = replay(rows=400), replay(rows=200)
    assert (len(many.iterates), many.lost.batches) == (32, 40)
    assert "of 32 of the 40 iterates, evenly spread" in at_k.online_to_batch(many).statement
    assert "of the 20 iterates" in at_k.online_to_batch(few).statement
    errors = [convergence.top_error(many.data.X @ w, many.data.y, 0.5) for w in many.iterates]
    assert at_k.online_to_batch(many).observed == pytest.approx(np.mean(errors))
