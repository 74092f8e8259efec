"""Where two parts meet: kinds of model × preparation × rule for missing cells, the same scores on every way out.

The scores of a data set through `model_.scores` are compared with the definitions by hand; every other way (arrays,
frames, ranks, measures, certificates, contests, files, the command line, the server, each export, workers) must give
the same scores to the last bit, the same ranking, or a refusal in one line.
"""

from __future__ import annotations

import csv
import json
import math
import warnings

import numpy as np
import pytest

import toprank as tr
from tests.cli.calling import run
from tests.oracles import preparation as oracle
from tests.serve.starting import running
from toprank.errors import InputError
from toprank.rankers.certifying import certify_performance
from toprank.rankers.persistence import parse_model

NAMES = ("bm25", "clicks", "age")
KINDS = {
    "linear": lambda **p: tr.ListNet(max_iter=20, **p),
    "online": lambda **p: tr.SlamPerceptron(epochs=1, random_state=0, scale=None, **p),
    "stumps": lambda **p: tr.RankBoost(rounds=8, **p),
    "kernel": lambda **p: tr.KernelSlamPerceptron(kernel="rbf", budget=60, epochs=1, random_state=0, **p),
    "trees": lambda **p: tr.BoostedTrees(rounds=3, loss="ListNet", **p),
}
PREPARE = ("", "log", "log,query", "standard", "+rank,+minmax,ramps:4", "steps:4")
MISSING = ("error", "zero", "median", "indicator")
SEAMS = [(kind, prepare, missing) for kind in KINDS for prepare in PREPARE for missing in MISSING]
SEAMS += [("trees", prepare, "native") for prepare in ("", "log")]


def queries(gaps: bool, n_queries: int = 14, seed: int = 0) -> tr.QueryDataset:
    """Counts with heavy tails, with a constant list, a list of one document and, if wanted, missing cells."""
    made = tr.datasets.make_graded(n_queries=n_queries, n_docs=(1, 9), n_features=3, random_state=seed)
    X = np.sinh(3 * made.X)
    X[made.ptr[1] : made.ptr[2], 1] = 2.5
    if gaps:
        X[np.random.default_rng(seed).random(X.shape) < 0.15] = np.nan
        X[0] = np.nan
    doc_ids = np.array([f"d{i}" for i in range(made.n_docs)])
    ids = np.array([f"0{q}" for q in range(made.n_queries)])
    return tr.QueryDataset.from_arrays(
        X, made.y, np.repeat(ids, made.lengths), feature_names=NAMES, doc_ids=doc_ids, missing="keep"
    )


def fitted(kind: str, prepare: str, missing: str) -> tr.rankers.base.Ranker:
    if kind == "trees":
        pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are stopped early, on features of uneven range
        return KINDS[kind](prepare=prepare, missing=missing).fit_queries(queries(missing != "error"))


def column_of(data, j: int, missing: str, train=None) -> list[float]:
    """A feature with its missing cells filled in from the rows that were learned from."""
    known = sorted(v for v in (train or data).X[:, j].tolist() if not math.isnan(v))
    middle = len(known) // 2
    fill = known[middle] if len(known) % 2 else (known[middle - 1] + known[middle]) / 2
    fill = {"zero": 0.0, "native": math.nan}.get(missing, fill)
    return [fill if math.isnan(v) else v for v in data.X[:, j].tolist()]


def by_hand(train: tr.QueryDataset, data: tr.QueryDataset, prepare: str, missing: str) -> np.ndarray:
    """What the scoring function must see, from the definitions."""
    columns = [column_of(data, j, missing, train) for j in range(3)]
    indicated = [j for j in range(3) if missing == "indicator" and np.isnan(train.X[:, j]).any()]
    columns += [[float(math.isnan(v)) for v in data.X[:, j].tolist()] for j in indicated]
    learned = [column_of(train, j, missing) for j in range(3)]
    learned += [[float(math.isnan(v)) for v in train.X[:, j].tolist()] for j in indicated]
    words = list(filter(None, prepare.split(",")))
    return np.array(oracle.prepared(columns, data.ptr.tolist(), learned, train.ptr.tolist(), words)).T


@pytest.fixture(scope="module", params=SEAMS, ids=lambda seam: "-".join(part or "plain" for part in seam))
def seam(request):
    kind, prepare, missing = request.param
    ranker, test = fitted(kind, prepare, missing), queries(missing != "error", seed=5)
    return ranker, test, ranker.model_.scores(test)


def test_the_function_sees_what_the_definitions_say(seam):
    ranker, test, scores = seam
    rows = by_hand(queries(ranker.missing != "error"), test, ranker.prepare, ranker.missing)
    seen = ranker.inputs_.apply(test).X
    np.testing.assert_allclose(seen, rows, rtol=1e-9, atol=1e-12)
    assert np.array_equal(ranker.function_.scores(seen), scores)
    assert np.isfinite(scores).all()
    assert np.ptp(scores) > 0


def test_arrays_frames_and_ranks(seam):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    ranker, test, scores = seam
    mixed = np.random.default_rng(0).permutation(test.n_docs)
    qid = test.qid[mixed]
    frame = pd.DataFrame(test.X[mixed], columns=list(NAMES))
    found = ranker.predict(frame, qid=qid)
    if ranker.prepare == "standard":  # means are added up in the order of the rows
        np.testing.assert_allclose(found, scores[mixed], rtol=1e-9, atol=1e-12)
    else:
        assert np.array_equal(found, scores[mixed])
    swapped = tr.QueryDataset.from_arrays(
        test.X[:, [2, 0, 1]], test.y, test.qid, feature_names=("age", "bm25", "clicks"), missing="keep"
    )
    assert np.array_equal(ranker.predict(swapped), scores)
    places = ranker.rank(frame, qid=qid)
    for a, b in zip(test.ptr[:-1], test.ptr[1:], strict=True):
        rows = [int(np.flatnonzero(mixed == i)[0]) for i in range(a, b)]
        assert sorted(places[rows]) == list(range(1, b - a + 1))
        best_first = [found[rows[i]] for i in np.argsort(places[rows])]
        assert best_first == sorted(best_first, reverse=True)


def test_measures_certificates_and_files(seam, tmp_path):
    ranker, test, scores = seam
    mean = tr.evaluate(scores, test, ["ndcg@10"]).mean["ndcg@10"]
    assert tr.evaluate(ranker, test, ["ndcg@10"]).mean["ndcg@10"] == mean
    first = certify_performance(ranker, test)[0]
    assert first.mean == pytest.approx(mean, abs=1e-12)
    ranker.save(tmp_path / "model.json")
    again = tr.load(tmp_path / "model.json")
    close = ranker.predict(test) if "LightGBM" not in type(ranker).__name__ else again.predict(test)
    assert np.array_equal(again.predict(test), close)
    np.testing.assert_allclose(again.predict(test), scores, rtol=1e-12)
    alone = parse_model((tmp_path / "model.json").read_bytes(), "model.json")
    assert np.array_equal(alone.predict(test), again.predict(test))
    again.set_params(prepare="standard", missing="zero")
    assert np.array_equal(again.predict(test), alone.predict(test)), "what was fitted stays fitted"


def test_the_command_line(seam, tmp_path, capsys):
    ranker, test, _ = seam
    ranker.save(tmp_path / "model.json")
    scores = tr.load(tmp_path / "model.json").predict(test)
    with (tmp_path / "test.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "note", "query", "bm25", "label", "clicks", "doc_id"])  # another order, a column more
        for row, grade, query, doc in zip(test.X, test.y, test.qid, test.doc_ids, strict=True):
            bm25, clicks, age = ("" if math.isnan(v) else repr(float(v)) for v in row)
            writer.writerow([age, "7", query, bm25, int(grade), clicks, doc])
    lines = run(capsys, "rank", tmp_path / "model.json", tmp_path / "test.csv").splitlines()
    found = {(query, doc): float(score) for query, doc, _, score in (line.split("\t") for line in lines)}
    assert found == dict(zip(zip(test.qid.tolist(), test.doc_ids.tolist(), strict=True), scores, strict=True))
    told = json.loads(run(capsys, "evaluate", tmp_path / "model.json", tmp_path / "test.csv", "--json"))
    assert told["mean"]["ndcg@10"] == tr.evaluate(scores, test).mean["ndcg@10"]


def test_the_server(seam, tmp_path):
    ranker, test, _ = seam
    ranker.save(tmp_path / "model.json")
    kept = tr.load(tmp_path / "model.json")
    with running(tmp_path, (tmp_path / "model.json").read_bytes()) as server:
        for q in range(4):
            one = test[q]
            wanted = kept.predict(one)
            items = [
                {"id": doc, "features": {n: None if math.isnan(v) else v for n, v in zip(NAMES, row, strict=True)}}
                for doc, row in zip(one.doc_ids.tolist(), one.X.tolist(), strict=True)
            ]
            answer = server.post("/v1/rank", {"items": items})
            scored = {item["id"]: item["score"] for item in answer["items"]}
            assert scored == dict(zip(one.doc_ids.tolist(), wanted, strict=True))
            order = [item["id"] for item in answer["items"]]
            assert order == [one.doc_ids[i] for i in np.argsort(-wanted, kind="stable")]
            documents = [{"features": item["features"]} for item in items]
            results = server.post("/v2/rerank", {"query": "q", "documents": documents})["results"]
            assert {one.doc_ids[r["index"]]: r["relevance_score"] for r in results} == scored
            if isinstance(kept, tr.SlamPerceptron):
                labels = dict(zip(one.doc_ids.tolist(), one.y.tolist(), strict=True))
                body = {"event_id": f"e{q}", "ranking_id": answer["ranking_id"], "labels": labels}
                server.post("/v1/feedback", body)
                kept.partial_fit_queries(one)


def test_every_export(seam, tmp_path):
    ranker, test, _ = seam
    refused = []
    for to in tr.export.TARGETS:
        try:
            tr.export.write(ranker, tmp_path / "file", to)
        except InputError as error:
            refused.append((to, str(error)))
            continue
        check = tr.export.verify(ranker, tmp_path / "file", test)
        engine_fills = to in ("vespa", "sql", "json", "lucene-expression", "solr", "onnx") or ranker.missing == "zero"
        assert check.agrees or (ranker.missing == "median" and not engine_fills), f"{to}: {check}"
    everything = {"linear", "stumps", "trees"}
    plain = ranker.prepare == "" and ranker.missing in ("error", "zero") and kind_of(ranker) in everything - {"trees"}
    assert all("\n" not in why for _, why in refused)
    assert not plain or not {to for to, _ in refused} - {"onnx"}, refused
    assert ranker.missing != "indicator" or len(refused) == len(tr.export.TARGETS)


def test_a_comparison_judges_the_same_scores(seam):
    ranker, test, scores = seam
    found = tr.compare({"model": tr.evaluate(ranker, test), "scores": tr.evaluate(scores, test)})
    assert all(each.difference == 0 and not each.shown for each in found.differences)


def test_a_contest_judges_what_its_model_scores(seam):
    ranker, test, _ = seam
    again = type(ranker)(**ranker.get_params(deep=False))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = queries(ranker.missing != "error"), test, queries(ranker.missing != "error", seed=7)
        held = tr.contest(*parts, rankers={"own": again}, budget=0, progress=False)
    entrant = held.entrant("own")
    scores = entrant.rankers[0].model_.scores(test)
    assert np.array_equal(entrant.scores, scores)
    assert entrant.report.mean["ndcg@10"] == tr.evaluate(scores, test).mean["ndcg@10"]
    assert entrant.rankers[0].inputs_.missing.kind == ranker.inputs_.missing.kind
    assert entrant.rankers[0].inputs_.words == ranker.inputs_.words


def kind_of(ranker) -> str:
    return next(kind for kind, make in KINDS.items() if type(make()) is type(ranker))
