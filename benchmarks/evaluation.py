"""How fast judged lists are measured: 6,000 queries of 118 documents, ours on one thread.

Only evaluation is timed, after each tool's own conversion of the input, and each row first checks that both sides find
the same means. ranx sorts a run when it is built, so its rows do not contain a sort and ours do.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable

import numpy as np

import toprank as tr

from . import Row, row

QUERIES, DOCS, REPEATS = 6000, 118, 15
FOUR = ("ndcg@10", "map", "p@10", "mrr")


def best(job: Callable[[], object], repeats: int = REPEATS) -> float:
    """Queries a second in the best of several runs, after one to warm up."""
    job()
    took = []
    for _ in range(repeats):
        start = time.perf_counter()
        job()
        took.append(time.perf_counter() - start)
    return QUERIES / min(took)


def make() -> tuple[tr.QueryDataset, np.ndarray]:
    """Grades as frequent as in MSLR; scores that single precision holds, because XGBoost reads no more."""
    rng = np.random.default_rng(0)
    y = rng.choice(5, p=[0.52, 0.32, 0.13, 0.02, 0.01], size=QUERIES * DOCS)
    scores = (rng.normal(size=QUERIES * DOCS) + 0.3 * y).astype(np.float32).astype(np.float64)
    ids = np.tile([f"d{i:03}" for i in range(DOCS)], QUERIES)
    qid = np.repeat([f"q{q:05}" for q in range(QUERIES)], DOCS)
    return tr.QueryDataset.from_arrays(scores[:, None], y, qid, doc_ids=ids), scores


def as_dicts(data: tr.QueryDataset, values: np.ndarray) -> dict[str, dict[str, float]]:
    return {
        str(query): dict(zip(data.doc_ids[a:b].tolist(), values[a:b].tolist(), strict=True))
        for query, a, b in zip(data.query_ids, data.ptr[:-1], data.ptr[1:], strict=True)
    }


def check(report: tr.Report, theirs: dict[str, float]) -> None:
    np.testing.assert_allclose([report.mean[name] for name in theirs], list(theirs.values()), rtol=0, atol=1e-9)


def all_four(data: tr.QueryDataset, scores: np.ndarray) -> list[Row]:
    import pytrec_eval
    from ranx import Qrels, Run
    from ranx import evaluate as ranx_evaluate
    from ranx.meta.evaluate import convert_qrels, convert_run

    job = "NDCG@10 + MAP + P@10 + MRR"
    qrels, run = as_dicts(data, data.y.astype(int)), as_dicts(data, scores)
    trec = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10", "map", "P.10", "recip_rank"})
    found = trec.evaluate(run)
    names = dict(zip(FOUR, ("ndcg_cut_10", "map", "P_10", "recip_rank"), strict=True))
    theirs = {ours: float(np.mean([found[q][name] for q in qrels])) for ours, name in names.items()}
    check(tr.evaluate(scores, data, FOUR, convention="trec_eval"), theirs)
    ours = best(lambda: tr.evaluate(scores, data, FOUR, convention="trec_eval"))
    rows = [row(job, ours, "queries/s", peer="pytrec_eval, 1 thread", theirs=best(lambda: trec.evaluate(run), 5))]

    metrics = ["ndcg@10", "map", "precision@10", "mrr"]
    objects = Qrels(qrels), Run(run)
    lists = convert_qrels(objects[0]), convert_run(objects[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numba, about ranx
        check(
            tr.evaluate(scores, data, FOUR, convention="ranx"),
            dict(zip(FOUR, ranx_evaluate(*lists, metrics).values(), strict=True)),
        )
        ours = best(lambda: tr.evaluate(scores, data, FOUR, convention="ranx"))
        threads = os.cpu_count() or 1
        documented = best(lambda: ranx_evaluate(*objects, metrics), 3)
        rows.append(
            row(job, ours, "queries/s", peer=f"ranx, Qrels and Run as documented, {threads} threads", theirs=documented)
        )
        internal = best(lambda: ranx_evaluate(*lists, metrics), 5)
        rows.append(
            row(
                job,
                ours,
                "queries/s",
                peer=f"ranx, its internal hashed and sorted lists, {threads} threads",
                theirs=internal,
            )
        )
    return rows


def ndcg_alone(data: tr.QueryDataset, scores: np.ndarray) -> list[Row]:
    import lightgbm
    import xgboost

    measure = tr.measure("ndcg@10")
    sizes = np.diff(data.ptr)
    params = {"objective": "lambdarank", "metric": "ndcg", "eval_at": [10], "verbosity": -1, "num_threads": 2}
    train = lightgbm.Dataset(
        np.arange(len(scores), dtype=float)[:, None], data.y, group=sizes, init_score=scores, params=params
    )
    booster = lightgbm.Booster(params, train)
    matrix = xgboost.DMatrix(np.zeros((len(scores), 1)), data.y, group=sizes, base_margin=scores)
    model = xgboost.Booster({"objective": "rank:ndcg", "eval_metric": "ndcg@10", "nthread": 2}, [matrix])
    expected = measure.mean(scores, data.y, data.ptr)  # no query here is blank, so all three conventions agree
    np.testing.assert_allclose(
        [booster.eval_train()[0][2], float(model.eval(matrix).rpartition(":")[2])], expected, rtol=0, atol=1e-9
    )
    ours = best(lambda: measure.per_query(scores, data.y, data.ptr))
    return [
        row("NDCG@10", ours, "queries/s", peer="LightGBM, 2 threads", theirs=best(booster.eval_train)),
        row("NDCG@10", ours, "queries/s", peer="XGBoost, 2 threads", theirs=best(lambda: model.eval(matrix))),
    ]


def run() -> list[Row]:
    data, scores = make()
    return ndcg_alone(data, scores) + all_four(data, scores)


if __name__ == "__main__":
    from benchmarks.__main__ import show

    print(show(run()))
