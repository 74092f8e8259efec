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
    assert np.isnan(ours("auc", "sklearn", lists)[blank | full]).all(), "scikit-learn calls it undefined: NaN"


def lightgbm_values(lists: Lists, weight: np.ndarray | None = None) -> dict[str, float]:
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
    of_row = None if weight is None else np.repeat(weight, lists.sizes)
    given = {"label": lists.y, "group": lists.sizes, "init_score": lists.scores, "weight": of_row}
    data = lightgbm.Dataset(rows, params=params, **given)
    return {result[1]: result[2] for result in lightgbm.Booster(params, data).eval_train()}


def test_lightgbm() -> None:
    pytest.importorskip("lightgbm")
    many = [random_lists(seed, 2000, tied=seed % 2 == 0) for seed in range(2)] + [random_lists(5, 100, longest=200)]
    for lists in many + [random_lists(seed, 1) for seed in range(100, 160)]:
        for name, value in lightgbm_values(lists).items():
            assert_same(name, "lightgbm", lists, value)


def xgboost_values(lists: Lists, names: list[str], weight: np.ndarray | None = None) -> dict[str, float]:
    """XGBoost's own metrics of scores given as base margin."""
    import xgboost

    given = {"label": lists.y, "group": lists.sizes, "base_margin": lists.scores, "weight": weight}
    data = xgboost.DMatrix(np.zeros((len(lists.y), 1)), **given)
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


@pytest.mark.parametrize("tool", ["lightgbm", "xgboost"])
def test_blank_queries_with_weights(tool: str) -> None:
    """A weighted mean of NDCG adds 1 for each blank query whatever it weighs; one of average precision weighs it."""
    pytest.importorskip(tool)
    for seed, n in ((0, 300), (1, 40), (2, 7)):
        lists = random_lists(seed, n, blank=0.3)
        lists.y = np.minimum(lists.y, 1)
        # As single precision holds them, and none so small that XGBoost refuses a mean above 1.
        weight = np.random.default_rng(seed).integers(4, 40, n) / 4
        if tool == "lightgbm":
            theirs = lightgbm_values(lists, weight)
        else:
            theirs = xgboost_values(
                lists, [f"{m}@{k}{sign}" for m in ("ndcg", "map") for k in CUTS for sign in ("", "-")], weight
            )
        data = tr.QueryDataset.from_arrays(
            np.zeros((len(lists.y), 1)), lists.y, np.repeat(np.arange(n), lists.sizes), query_weight=weight
        )
        for name, value in theirs.items():
            text = f"{name[:-1]}:{tool}:blank=zero" if name.endswith("-") else f"{name}:{tool}"
            one = measure(text)
            assert abs(one.mean(lists.scores, lists.y, lists.ptr, weight) - value) < 1e-9, text
            report = tr.evaluate(lists.scores, data, [one])
            assert abs(report.mean[one.name] - value) < 1e-9, text
            compared = tr.compare({"a": report, "b": report})
            assert abs(compared.means[one.name]["a"] - value) < 1e-9, text
            low, high = compared.interval("a", one.name)
            assert low <= value <= high, text


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
    """Scores are distinct: how ranx orders ties is below.

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
        for name, values in ranx_values(list(texts), qrels, run).items():
            assert_same(texts[name], "ranx", part, values)


def ranx_values(names: list[str], qrels: dict, run: dict) -> dict[str, list[float]]:
    """ranx's values per query, from a process of its own that does not compile."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RANX],
        input=json.dumps([qrels, run, names]),
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_bpref_of_ranx() -> None:
    """Where every judged document is relevant and one of them was retrieved, ranx divides 0 by 0: NaN."""
    pytest.importorskip("ranx", reason="ranx is not installed", exc_type=ImportError)
    rng = np.random.default_rng(0)
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for q in range(120):
        grades = rng.integers(int(rng.random() < 0.4), 3, rng.integers(1, 7))
        grades[0] = 1  # without any relevant document ranx says 0 compiled and NaN not compiled
        qrels[f"q{q:03}"] = {f"d{i}": int(grade) for i, grade in enumerate(grades)}
        held = rng.permutation(9)[: rng.integers(1, 8)]
        run[f"q{q:03}"] = {f"d{i}": float(place) for place, i in enumerate(held)}
    theirs = np.array(ranx_values(["bpref", "ndcg"], qrels, run)["bpref"])
    ours = tr.evaluate_run(run, qrels, ["bpref"], convention="ranx").per_query["bpref"]
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)
    assert np.isnan(ours).sum() > 10
    assert (ours[[min(of.values()) > 0 for of in qrels.values()]] == 0).any(), "all relevant, and none retrieved"
    elsewhere = tr.evaluate_run(run, qrels, ["bpref"]).per_query["bpref"]
    np.testing.assert_allclose(elsewhere[~np.isnan(ours)], ours[~np.isnan(ours)], rtol=0, atol=1e-9)


def order_of_ties(sort, n: int) -> bool:
    """Whether a sort of tied keys keeps their order in twenty lists of n."""
    lists = [np.random.default_rng((n, seed)).integers(0, 4, n).astype(float) for seed in range(20)]
    return all(list(sort(-keys)) == sorted(range(n), key=lambda i, keys=keys: -keys[i]) for keys in lists)


def test_ranx_keeps_ties_in_order_in_lists_of_15() -> None:
    """ranx sorts by numba's argsort, which inserts up to 15 items, in order, and partitions longer lists."""
    quicksort = pytest.importorskip("numba.misc.quicksort")
    sort = quicksort.make_py_quicksort(is_argsort=True, is_np_array=True).run_quicksort
    assert [n for n in range(2, 41) if order_of_ties(sort, n)] == list(range(2, 16))


RANX_ORDER = """
import json, sys
from ranx import Run
run = Run({q: dict(docs) for q, docs in json.load(sys.stdin).items()})
print(json.dumps({q: list(docs) for q, docs in run.run.items()}))
"""


@pytest.mark.slow
def test_ties_of_compiled_ranx() -> None:
    """ranx keeps the order of tied documents in lists of up to 15, as our `ranx` does; in longer ones it does not."""
    pytest.importorskip("ranx", reason="ranx is not installed", exc_type=ImportError)
    rng = np.random.default_rng(0)
    lists = {f"{n:02}-{i}": rng.integers(0, 4, n).tolist() for n in range(2, 25) for i in range(10)}
    given = {q: [[f"d{i:02}", float(s)] for i, s in enumerate(scores)] for q, scores in lists.items()}
    call = [sys.executable, "-W", "ignore", "-c", RANX_ORDER]
    done = subprocess.run(call, input=json.dumps(given), capture_output=True, text=True, check=True)
    for q, order in json.loads(done.stdout.splitlines()[-1]).items():
        scores = lists[q]
        stable = [f"d{i:02}" for i in sorted(range(len(scores)), key=lambda i, s=scores: -s[i])]
        assert (order == stable) == (len(scores) <= 15), q


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
