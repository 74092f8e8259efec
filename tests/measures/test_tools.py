"""Each convention agrees to nine digits with the tool it is named after, on thousands of random lists.

RankLib (Java) and the LETOR scripts are no Python packages: the first is covered by the definitions alone, the second
by the figures published with LETOR in `test_letor_figures`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import toprank as tr
from tests.measures.lists import Lists, random_lists
from toprank.measures import Measure, measure

CUTS = (1, 3, 10, 20)


def ours(text: str, convention: str, lists: Lists) -> np.ndarray:
    return measure(text, convention=convention).per_query(lists.scores, lists.y, lists.ptr, doc_ids=lists.ids)


def assert_same(text: str, convention: str, lists: Lists, theirs) -> None:
    got = ours(text, convention, lists)
    theirs = np.asarray(theirs)
    np.testing.assert_allclose(got if theirs.ndim else got.mean(), theirs, rtol=0, atol=1e-9, err_msg=text)


def test_trec_eval() -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    for seed, longest, tied in ((0, 14, True), (1, 14, False), (2, 200, True)):
        lists = random_lists(seed, 1000 if longest < 100 else 50, longest=longest, tied=tied)
        # Differences below single precision: trec_eval does not see them.
        lists.scores = lists.scores + 1e-12 * np.random.default_rng(seed).random(len(lists.scores))
        qrels = {f"q{q:04}": dict(zip(ids, map(int, y), strict=True)) for q, (_, y, ids) in enumerate(lists)}
        run = {f"q{q:04}": dict(zip(ids, scores, strict=True)) for q, (scores, _, ids) in enumerate(lists)}
        cuts = ",".join(map(str, CUTS))
        asked = {
            "ndcg",
            "map",
            "recip_rank",
            "Rprec",
            "bpref",
            *(f"{m}.{cuts}" for m in ("ndcg_cut", "map_cut", "P", "recall", "success")),
        }
        result = pytrec_eval.RelevanceEvaluator(qrels, asked).evaluate(run)

        def theirs(name: str, result=result, qrels=qrels) -> list[float]:
            return [result[query][name] for query in qrels]

        for name in ("ndcg", "map", "recip_rank", "Rprec", "bpref"):
            assert_same(name, "trec_eval", lists, theirs(name))
        assert_same("wta", "trec_eval", lists, theirs("success_1"))
        for k in CUTS:
            for name in ("ndcg_cut", "map_cut", "P", "recall", "success"):
                assert_same(f"{name}_{k}", "trec_eval", lists, theirs(f"{name}_{k}"))


def random_run(seed: int) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Judgements and a run that share some documents: unjudged ones are retrieved, judged ones are missed."""
    rng = np.random.default_rng(seed)
    qrels, run = {}, {}
    for q in range(150):
        judged = {f"d{i}": int(g) for i, g in enumerate(rng.integers(0, 4, rng.integers(1, 25)))}
        held = [f"d{i}" for i in rng.permutation(30)[: rng.integers(1, 20)]]
        qrels[f"q{q:03}"] = judged
        run[f"q{q:03}"] = dict(zip(held, rng.integers(0, 8, len(held)).astype(float).tolist(), strict=True))
    return qrels, run


def test_runs_against_trec_eval() -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    for seed in range(3):
        qrels, run = random_run(seed)
        names = ["ndcg", "map", "recip_rank", "Rprec", "bpref"]
        names += [f"{m}_{k}" for m in ("ndcg_cut", "map_cut", "P", "recall", "success") for k in (1, 5, 20)]
        asked = {"ndcg", "map", "recip_rank", "Rprec", "bpref"}
        asked |= {f"{m}.1,5,20" for m in ("ndcg_cut", "map_cut", "P", "recall", "success")}
        theirs = pytrec_eval.RelevanceEvaluator(qrels, asked).evaluate(run)
        report = tr.evaluate_run(run, qrels, names)
        for one, name in zip(report.measures, names, strict=True):
            expected = [theirs[q][name] for q in report.query_ids]
            np.testing.assert_allclose(report.per_query[one.name], expected, rtol=0, atol=1e-9, err_msg=name)


def test_runs_against_ir_measures() -> None:
    ir_measures = pytest.importorskip("ir_measures")
    qrels, run = random_run(5)
    run = {q: {d: s + 1e-3 * i for i, (d, s) in enumerate(docs.items())} for q, docs in run.items()}  # its ties differ
    names = ["Judged@5", "Judged@50", "Success@5", "Rprec", "Bpref", "nDCG@10", "P@5", "R@5", "RR@3", "AP@7"]
    theirs: dict[str, dict[str, float]] = {}
    for metric in ir_measures.iter_calc([ir_measures.parse_measure(name) for name in names], qrels, run):
        theirs.setdefault(str(metric.measure), {})[metric.query_id] = metric.value
    report = tr.evaluate_run(run, qrels, names)
    for one, name in zip(report.measures, names, strict=True):
        expected = [theirs[name][q] for q in report.query_ids]
        np.testing.assert_allclose(report.per_query[one.name], expected, rtol=0, atol=1e-9, err_msg=name)


def test_scikit_learn() -> None:
    from sklearn.metrics import average_precision_score, dcg_score, ndcg_score, roc_auc_score

    for seed, n, longest, grades in ((0, 400, 12, 5), (1, 10, 300, 5), (2, 100, 12, 2)):
        lists = random_lists(seed, n, shortest=2, longest=longest, grades=grades)
        for k in (None, *CUTS):
            at = "" if k is None else f"@{k}"
            assert_same(f"ndcg{at}", "sklearn", lists, [ndcg_score([y], [scores], k=k) for scores, y, _ in lists])
            assert_same(f"dcg{at}", "sklearn", lists, [dcg_score([y], [scores], k=k) for scores, y, _ in lists])
    blank = np.array([sum(y) == 0 for _, y, _ in lists])
    full = np.array([min(y) == 1 for _, y, _ in lists])
    theirs = [average_precision_score(y, scores) if sum(y) else 0.0 for scores, y, _ in lists]
    assert_same("map", "sklearn", lists, theirs)
    areas = [roc_auc_score(y, scores) for (scores, y, _), one in zip(lists, blank | full, strict=True) if not one]
    np.testing.assert_allclose(ours("auc", "sklearn", lists)[~(blank | full)], areas, rtol=0, atol=1e-9)


def lightgbm_values(lists: Lists) -> dict[str, float]:
    """LightGBM's own metrics of scores given as the starting point of a booster without trees."""
    import lightgbm

    params = {
        "objective": "lambdarank",
        "metric": ["ndcg", "map"],
        "eval_at": CUTS,
        "verbosity": -1,
        "num_threads": 1,
        "min_data_in_bin": 1,
    }
    rows = np.arange(len(lists.y), dtype=float).reshape(-1, 1)
    data = lightgbm.Dataset(rows, label=lists.y, group=lists.sizes, init_score=lists.scores, params=params)
    return {result[1]: result[2] for result in lightgbm.Booster(params, data).eval_train()}


def test_lightgbm() -> None:
    pytest.importorskip("lightgbm")
    many = [random_lists(seed, 2000, tied=seed % 2 == 0) for seed in range(2)] + [random_lists(5, 100, longest=200)]
    for lists in many + [random_lists(seed, 1) for seed in range(100, 160)]:
        for name, value in lightgbm_values(lists).items():
            assert_same(name, "lightgbm", lists, value)


def xgboost_values(lists: Lists, names: list[str]) -> dict[str, float]:
    """XGBoost's own metrics of scores given as base margin."""
    import xgboost

    data = xgboost.DMatrix(np.zeros((len(lists.y), 1)), label=lists.y, group=lists.sizes, base_margin=lists.scores)
    booster = xgboost.Booster({"objective": "rank:ndcg", "eval_metric": names, "nthread": 1}, [data])
    parts = (part.removeprefix("eval-").rpartition(":") for part in booster.eval(data).split("\t")[1:])
    return {name: float(value) for name, _, value in parts}


def test_xgboost() -> None:
    pytest.importorskip("xgboost")
    sets = [(seed, 2000, 14) for seed in range(2)] + [(5, 100, 200)] + [(seed, 1, 14) for seed in range(100, 140)]
    for seed, n, longest in sets:
        lists = random_lists(seed, n, longest=longest)
        for name, value in xgboost_values(lists, [f"ndcg@{k}{sign}" for k in CUTS for sign in ("", "-")]).items():
            text = f"{name[:-1]}:xgboost:blank=zero" if name.endswith("-") else name
            assert_same(text, "xgboost", lists, value)
        lists.y = np.minimum(lists.y, 1)  # its binary measures refuse other grades
        names = [f"{m}@{k}" for m in ("map", "pre") for k in CUTS] + [f"map@{k}-" for k in CUTS]
        for name, value in xgboost_values(lists, names).items():
            text = f"{name[:-1]}:xgboost:blank=zero" if name.endswith("-") else name
            assert_same(text, "xgboost", lists, value)


def test_catboost() -> None:
    utils = pytest.importorskip("catboost.utils")
    names = {"ndcg": "NDCG", "dcg": "DCG", "map": "MAP", "mrr": "MRR", "p": "PrecisionAt", "recall": "RecallAt"}
    sets = [(seed, 2000, 14) for seed in range(2)] + [(5, 100, 200)] + [(seed, 1, 14) for seed in range(100, 115)]

    def theirs(name: str, lists: Lists) -> float:
        groups = np.repeat(np.arange(len(lists.sizes)), lists.sizes)
        (value,) = utils.eval_metric(lists.y, lists.scores, name, group_id=groups)
        return value

    for seed, n, longest in sets:
        lists = random_lists(seed, n, longest=longest)
        for k in CUTS:
            for text, name in names.items():
                assert_same(f"{text}@{k}", "catboost", lists, theirs(f"{name}:top={k}", lists))
            assert_same(f"ndcg@{k}:gain=exp2", "catboost", lists, theirs(f"NDCG:top={k};type=Exp", lists))
            assert_same(f"map@{k}:above=2", "catboost", lists, theirs(f"MAP:top={k};border=2", lists))
        assert_same("map", "catboost", lists, theirs("MAP", lists))
        assert_same("auc", "catboost", lists, theirs("QueryAUC:type=Ranking", lists))
        lists.y = lists.y / 4  # its ERR reads labels as probabilities
        assert_same("err@3", "catboost", lists, theirs("ERR:top=3", lists))
        assert_same("err", "catboost", lists, theirs("ERR", lists))


RANX = """
import json, sys
from ranx import Qrels, Run, evaluate
qrels, run, names = json.load(sys.stdin)
values = evaluate(Qrels(qrels), Run(run), names, return_mean=False)
print(json.dumps({name: values[name].tolist() for name in names}))
"""


def test_ranx() -> None:
    """Scores are distinct: how ranx orders ties depends on the sort it happens to use.

    It runs in a process of its own without compiling, since compiling it takes minutes.
    """
    pytest.importorskip("ranx", reason="ranx is not installed", exc_type=ImportError)
    lists = random_lists(0, 1000, tied=False)
    long = random_lists(1, 20, longest=150, tied=False)
    names = {"ndcg": "ndcg", "dcg": "dcg", "map": "map", "mrr": "mrr", "precision": "p", "recall": "recall"}
    texts = {f"{theirs}@{k}": f"{text}@{k}" for k in CUTS for theirs, text in names.items()}
    texts |= {"ndcg": "ndcg", "map": "map", "mrr": "mrr", "rbp.80": "rbp", "rbp.50": "rbp:p=0.5"}
    texts |= {f"ndcg_burges@{k}": f"ndcg@{k}:gain=exp2" for k in CUTS}
    for part in (lists, long):
        qrels = {f"q{q:04}": dict(zip(ids, map(int, y), strict=True)) for q, (_, y, ids) in enumerate(part)}
        run = {f"q{q:04}": dict(zip(ids, scores, strict=True)) for q, (scores, _, ids) in enumerate(part)}
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", RANX],
            input=json.dumps([qrels, run, list(texts)]),
            env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
        for name, values in json.loads(done.stdout.splitlines()[-1]).items():
            assert_same(texts[name], "ranx", part, values)


def test_a_preset_differs_from_its_neighbours() -> None:
    """The comparisons above would be empty if lists could not tell conventions apart."""
    lists = random_lists(0, 500)

    def means(text: str) -> dict[float, list[str]]:
        found: dict[float, list[str]] = {}
        for convention in ("standard", "letor3", "letor4", "trec_eval", "sklearn", "lightgbm", "catboost"):
            found.setdefault(round(float(ours(text, convention, lists).mean()), 9), []).append(convention)
        return found

    assert len(means("ndcg@10")) == 7
    assert len(means("map@3")) == 6, "letor3 and letor4 agree on average precision"
    assert isinstance(measure("ndcg"), Measure)
