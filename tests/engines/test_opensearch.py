"""OpenSearch runs the searches that are exported for it without a plugin, and the queries behind logged features.

Its learning-to-rank plugin is not published where the engine is, so that files for the plugin are still restated.
"""

import json

import numpy as np
import pytest

import toprank as tr
from tests.engines.cases import (
    FOREST,
    PLAIN,
    TreeFunction,
    collection,
    learned,
    logged,
    models,
    rows,
    same_bits,
    tree_model,
)
from tests.engines.running import opensearch
from toprank import interop

NAMES = ("bm25", "user age", "click_rate")
TEXTS = ("garden lamp", "garden chair oak", "red lamp", "solar garden lamp lamp", "tea")
FILL = (1.5, 0.0, -3.0)


def index(node, name, fields, X):
    """Rows as documents of an index of their own: what is missing is left out."""
    properties = {field: {"type": "float"} for field in fields} | {"title": {"type": "text"}, "body": {"type": "text"}}
    settings = {"number_of_shards": 1, "number_of_replicas": 0, "max_result_window": 10_000}
    node.must("PUT", name, {"settings": settings, "mappings": {"dynamic": "strict", "properties": properties}})
    lines = []
    for i, row in enumerate(X.tolist()):
        texts = {"title": TEXTS[i % 5], "body": f"{TEXTS[i * 3 % 5]} {TEXTS[i % 3]}"}
        filled = {field: x for field, x in zip(fields, row, strict=True) if x == x}
        lines += [json.dumps({"index": {"_id": str(i)}}), json.dumps(texts | filled)]
    body = "\n".join([*lines, ""]).encode()
    assert not node.must("POST", f"{name}/_bulk?refresh=true", body, "application/x-ndjson")["errors"]


@pytest.fixture(scope="module")
def node():
    with opensearch() as server:
        index(server, "rows", NAMES, rows())
        yield server


def everything(file):
    """The exported search over every document; the file leaves it to its user which to search."""
    query = json.loads(file.read_text())["query"]
    assert set(query["script_score"]["query"]) == {"match"}
    query["script_score"]["query"] = {"match_all": {}}
    return query


def scores(node, name, query, count):
    """The score of every document, float32 as the engine prints it; NaN for documents that do not match."""
    hits = node.must("POST", f"{name}/_search", {"query": query, "size": 10_000})["hits"]["hits"]
    found = np.full(count, np.nan)
    for hit in hits:
        found[int(hit["_id"])] = hit["_score"]
    return found


def cases():
    native = {"native trees": tree_model(NAMES, TreeFunction.build(3, FOREST))}
    return models(NAMES, FILL) | logged(NAMES, FILL) | native


@pytest.mark.parametrize("kind", cases())
def test_opensearch_scores_as_verify_export_says(node, tmp_path, kind):
    X = rows()
    X[3] = np.nan  # numbers of 1e30 would need a shift of that size
    index(node, kind.replace(" ", "-"), NAMES, X)
    model, file = cases()[kind], tmp_path / "m.json"
    tr.export.write(model, file, "lucene-expression", shift=tr.export.shift_for(model, X))
    got = scores(node, kind.replace(" ", "-"), everything(file), len(X))
    _, replica = tr.export.read(file)
    expected = replica.score_rows(np.ascontiguousarray(X[:, [NAMES.index(name) for name in replica.names]]))
    if "log" in kind:  # two libraries' logarithms may differ in the last bit
        assert got == pytest.approx(expected, rel=1e-6)
    else:
        assert same_bits(got, expected)
    beside = got - model.predict(X)
    assert np.abs(beside - np.median(beside)).max() < 1e-5 * np.abs(got).max()
    assert len(set(got.tolist())) > 3


def test_opensearch_ranks_a_collection_as_the_model_does(node, tmp_path):
    train, test = collection()
    fields = [f"f{j}" for j in range(1, test.n_features + 1)]
    X = test.X.astype(np.float32).astype(np.float64)
    index(node, "letor", fields, X)
    for kind, ranker in learned(train).items():
        file = tmp_path / f"{kind}.json"
        tr.export.write(ranker, file, "lucene-expression", features=fields, shift=tr.export.shift_for(ranker, test))
        got = scores(node, "letor", everything(file), len(X))
        _, replica = tr.export.read(file)
        columns = [fields.index(name) for name in replica.names]
        assert same_bits(got, replica.score_rows(np.ascontiguousarray(X[:, columns])))
        mine = ranker.predict(X, qid=test.qid)
        assert np.abs((got - mine) - np.median(got - mine)).max() < 1e-5 * np.abs(got).max()


def test_negative_scores_are_refused_as_the_note_says(node, tmp_path):
    export = tr.export.write(models(NAMES)["linear"], tmp_path / "m.json", "lucene-expression", shift=0.0)
    assert any("script_score refuses negative scores" in note for note in export.notes)
    status, answer = node.ask("POST", "rows/_search", {"query": everything(tmp_path / "m.json")})
    assert status == 400 or answer["_shards"]["failed"]
    assert "negative" in json.dumps(answer)


def test_the_queries_behind_features_say_what_their_kinds_promise(node):
    """A feature of the plugin is the score of its template's query: the queries themselves need no plugin."""
    features = [
        interop.Feature("title_bm25", "match", "title"),
        interop.Feature("body_phrase", "phrase", "body"),
        interop.Feature("age", "field", "click_rate"),
    ]
    made = interop.feature_set(features, "opensearch", name="words")
    bodies = {each["name"]: each["template"] for each in made.requests[1][2]["featureset"]["features"]}
    X = rows()
    X[:, 2] = np.abs(X[:, 2])  # scores of queries are never negative
    index(node, "features", NAMES, X)
    words = {name: json.loads(json.dumps(body).replace("{{keywords}}", "garden lamp")) for name, body in bodies.items()}
    title = scores(node, "features", words["title_bm25"], len(X))
    assert [v == v for v in title] == [bool({"garden", "lamp"} & set(TEXTS[i % 5].split())) for i in range(len(X))]
    phrase = scores(node, "features", words["body_phrase"], len(X))
    texts = [f" {TEXTS[i * 3 % 5]} {TEXTS[i % 3]} " for i in range(len(X))]
    assert [v == v for v in phrase] == [" garden lamp " in text for text in texts]
    field = scores(node, "features", words["age"], len(X))
    assert np.array_equal(field, X[:, 2].astype(np.float32).astype(np.float64), equal_nan=True) or same_bits(
        np.nan_to_num(field, nan=-1), np.nan_to_num(X[:, 2], nan=-1)
    )


def test_the_plugin_is_not_there(node):
    """Should the engine come with it one day, files for the plugin can be run too."""
    status, _ = node.ask("PUT", "_ltr")
    assert status >= 400
    assert PLAIN
