"""A Solr node stores, logs and rescores what is exported for it; every score is compared, float32 to the bit."""

import json
from dataclasses import replace
from urllib.parse import urlencode

import numpy as np
import pytest

import toprank as tr
from tests.engines.cases import ODD, PLAIN, collection, learned, models, rows, same_bits
from tests.engines.running import solr
from tests.export.models import linear_model
from toprank import interop
from toprank.errors import InputError
from toprank.export.pushing import push
from toprank.export.targets import Settings

FILL = (1.5, 0.0, -3.0)
TEXTS = ("garden lamp", "garden chair oak", "red lamp", "solar garden lamp lamp", "tea")
QUERY = "garden lamp"


def documents(prefix, names, X):
    """Rows as documents: what is missing is left out; two text fields beside the numbers."""
    return [
        {"id": f"{prefix}{i}", "title": TEXTS[i % 5], "body": TEXTS[i * 3 % 5] + " " + TEXTS[i % 3]}
        | {name: x for name, x in zip(names, row, strict=True) if x == x}
        for i, row in enumerate(X.tolist())
    ]


def search(node, **parameters):
    """The documents that a search finds, all at once."""
    return node.must("GET", f"products/select?{urlencode({'rows': 5000, 'wt': 'json', **parameters})}")["response"][
        "docs"
    ]


def scores(node, prefix, model, count, words=None):
    """The rescored hits by id: float32, as the engine prints it."""
    more = "" if words is None else f" efi.keywords='{words}'"
    rescore = f"{{!ltr model={model} reRankDocs=5000{more}}}"
    hits = search(node, q=f"id:{prefix}*", rq=rescore, fl="id,score")
    assert len(hits) == count
    found = {hit["id"]: hit["score"] for hit in hits}
    assert [hit["score"] for hit in hits] == sorted(found.values(), reverse=True)
    return np.array([found[f"{prefix}{i}"] for i in range(count)])


@pytest.fixture(scope="module")
def node():
    with solr() as server:
        made = rows()
        for prefix, names in (("plain", PLAIN), ("odd", ODD)):
            server.must("POST", "products/update?commit=true", documents(prefix, names, made))
        yield server


def upload(node, model, folder, store, **settings):
    """Write a model and its features, and put both into the engine."""
    file = folder / f"{store}.json"
    export = tr.export.write(model, file, "solr", store=store, **settings)
    features = file.with_name(f"{store}.json.features.json")
    node.must("PUT", "products/schema/feature-store", json.loads(features.read_text(encoding="utf-8")))
    node.must("PUT", "products/schema/model-store", json.loads(file.read_text(encoding="utf-8")))
    return export.name, tr.export.read(file)[1]


@pytest.mark.parametrize("prefix", ["plain", "odd"])
@pytest.mark.parametrize("kind", models(PLAIN))
def test_solr_scores_as_verify_export_says(node, tmp_path, kind, prefix):
    names, X = (PLAIN if prefix == "plain" else ODD), rows()
    model = models(names, FILL)[kind]
    for shift in (None, 40.0):
        store = f"{prefix}_{kind}_{0 if shift is None else 1}"
        name, replica = upload(node, model, tmp_path, store, shift=shift, normalizers=kind == "scaled")
        got = scores(node, prefix, name, len(X))
        columns = [names.index(feature) for feature in replica.names]
        seen = np.ascontiguousarray(X[:, columns])
        assert same_bits(got, replica.score_rows(seen))
        beside = got - model.predict(X)  # a shift and a constant that is left out are the same for all documents
        assert (np.abs(beside - np.median(beside)) <= replica.rounding(seen) + 1e-5).all()
        assert shift is None or np.median(beside) == pytest.approx(shift, rel=1e-5)
        assert len(set(got.tolist())) > 3
        assert shift is not None or (got < 0).any() or kind in ("trees", "steps")


def test_solr_ranks_a_collection_as_the_model_does(node, tmp_path):
    train, test = collection()
    names = [f"feature {j}" for j in range(1, test.n_features + 1)]
    X = test.X.astype(np.float32).astype(np.float64)
    node.must("POST", "products/update?commit=true", documents("letor", names, X))
    for kind, ranker in learned(train).items():
        name, replica = upload(node, ranker, tmp_path, kind, features=names)
        got = scores(node, "letor", name, len(X))
        columns = [names.index(feature) for feature in replica.names]
        assert same_bits(got, replica.score_rows(np.ascontiguousarray(X[:, columns])))
        mine = ranker.predict(X, qid=test.qid)
        assert np.abs((got - mine) - np.median(got - mine)).max() < 1e-4 * max(1.0, np.abs(mine).max())


def test_old_models_stay_beside_new_ones(node, tmp_path):
    X, linear = rows(), models(PLAIN, FILL)["linear"]
    old, before = upload(node, linear, tmp_path, "kept", name="products", version="1")
    first = scores(node, "plain", old, len(X))
    file = tmp_path / "next.json"
    tr.export.write(models(PLAIN, FILL)["offset"], file, "solr", store="kept", name="products", version="2")
    node.must("PUT", "products/schema/model-store", json.loads(file.read_text()))
    second = scores(node, "plain", "products_2", len(X))
    assert same_bits(second, tr.export.read(file)[1].score_rows(X))
    assert same_bits(scores(node, "plain", "products_1", len(X)), first)
    assert same_bits(first, before.score_rows(X))
    assert not same_bits(first, second)


FEATURES = [
    interop.Feature("title_bm25", "match", "title"),
    interop.Feature("body_phrase", "phrase", "body"),
    interop.Feature("age_days", "field", "age_days"),
]


def test_features_of_words_and_fields_are_logged_and_scored(node, tmp_path):
    made = interop.feature_set(FEATURES, "solr", name="words")
    for method, path, body in made.requests:
        node.must(method, f"products/{path}", body)
    parameters = made.logging["params"]
    answer = node.must("GET", "products/select?" + urlencode({
        **parameters, "q": "id:plain*", "fl": parameters["fl"].replace("WORDS", QUERY), "rows": 5000, "wt": "json",
    }))  # fmt: skip
    data = tr.read_ltr_logs({"q": answer}, missing="zero")
    assert sorted(data.feature_names) == sorted(feature.name for feature in FEATURES)
    # Words that are not in the title have no score, and a document has its own age.
    where = {name: data.feature_names.index(name) for name in data.feature_names}
    truth = dict(zip((f"plain{i}" for i in range(len(rows()))), rows()[:, 1], strict=True))
    for row, document in zip(data.X, data.doc_ids, strict=True):
        number = int(document.removeprefix("plain"))
        assert (row[where["title_bm25"]] > 0) == bool(set(TEXTS[number % 5].split()) & set(QUERY.split()))
        assert same_bits(row[where["age_days"]], np.nan_to_num(truth[document]))
    text = " ".join(("", TEXTS[0], TEXTS[0], ""))
    assert (data.X[list(data.doc_ids).index("plain0"), where["body_phrase"]] > 0) == (f" {QUERY} " in text)
    # A model of these features scores what was logged.
    rng = np.random.default_rng(0)
    named = tr.QueryDataset.from_arrays(
        np.clip(data.X, -100, 100),
        rng.integers(0, 3, data.n_docs),
        np.arange(data.n_docs) % 20,
        feature_names=data.feature_names,
    )
    ranker = tr.ListNet(alpha=0.1, missing="zero").fit_queries(named)
    file = tmp_path / "m.json"
    export = tr.export.write(ranker, file, "solr", store="words")
    node.must("PUT", "products/schema/model-store", json.loads(file.read_text()))
    got = scores(node, "plain", export.name, len(rows()), QUERY)
    _, replica = tr.export.read(file)
    columns = [data.feature_names.index(name) for name in replica.names]
    order = [int(document.removeprefix("plain")) for document in data.doc_ids]
    expected = np.empty(len(order))
    expected[order] = replica.score_rows(np.ascontiguousarray(data.X[:, columns]))
    assert same_bits(got, expected)


def test_a_damaged_file_is_refused_by_the_engine_and_by_us(node, tmp_path):
    """What the reader refuses as no model of Solr, Solr refuses too."""
    file = tmp_path / "m.json"
    upload(node, models(PLAIN)["linear"], tmp_path, "whole")
    tr.export.write(models(PLAIN)["linear"], file, "solr", store="whole", name="damaged", version="1")
    body = json.loads(file.read_text())
    del body["params"]["weights"]["age_days"]
    file.write_text(json.dumps(body))
    with pytest.raises(InputError, match="without a weight, which Solr refuses"):
        tr.export.read(file)
    status, _ = node.ask("PUT", "products/schema/model-store", body)
    assert status >= 400


def test_a_pushed_model_scores_live_what_its_file_says(node, tmp_path):
    """Push, and push again; the live scores are compared by the command itself."""
    client = interop.EngineClient(f"{node.address}/products")
    model = models(("title_bm25", "body_phrase", "age_days"))["trees"]
    settings = Settings(name="pushed", version="1", store="live")
    words = ["garden lamp", "tea", "it's {!func}1 AND $x"]
    looked = push(model, client, "solr", settings=settings, features=FEATURES, words=words, dry_run=True)
    assert looked.agrees is None
    assert looked.steps[0].startswith("would create")
    assert not node.must("GET", "products/schema/feature-store/live")["features"]
    done = push(model, client, "solr", settings=settings, features=FEATURES, words=words)
    assert done.steps == ("created the feature store live with 3 features", "uploaded the model pushed_1")
    assert (done.agrees, done.compared) == (True, 600)
    again = push(model, client, "solr", settings=settings, features=FEATURES, words=words[:1])
    assert "is there already, and is this one" in again.steps[1]
    assert again.agrees
    linear = models(("title_bm25", "body_phrase", "age_days"))["linear"]
    with pytest.raises(InputError, match="another model by the name 'pushed_1'"):
        push(linear, client, "solr", settings=settings)
    other = [replace(FEATURES[0], kind="phrase"), *FEATURES[1:]]
    with pytest.raises(InputError, match="the feature 'title_bm25' of 'live' is another in the engine"):
        push(model, client, "solr", settings=settings, features=other)


def test_features_are_pulled_for_judged_documents(node):
    client = interop.EngineClient(f"{node.address}/products")
    made = interop.feature_set(FEATURES, "solr", name="pulled")
    node.must("PUT", f"products/{made.requests[0][1]}", made.requests[0][2])
    qrels = tr.Qrels.of({"1": {"plain0": 2, "plain4": 0, "nowhere": 1}, "2": {"plain2": 1}})
    queries = {"1": QUERY, "2": "red"}
    data = interop.pull_features(client, "solr", "", queries, qrels, feature_set="pulled", missing="zero")
    again = interop.pull_features(client, "solr", "", queries, qrels, feature_set="pulled", missing="zero")
    assert data.X.tolist() == again.X.tolist()
    assert set(zip(data.qid.tolist(), data.doc_ids.tolist(), data.y.tolist(), strict=True)) == {
        ("1", "plain0", 2.0), ("1", "plain4", 0.0), ("2", "plain2", 1.0),
    }  # fmt: skip
    title = data.X[:, data.feature_names.index("title_bm25")]
    assert [score > 0 for score in title] == [document != "plain4" for document in data.doc_ids]


def test_the_score_of_the_search_itself_is_a_feature(node, tmp_path):
    """The score of the first pass, as a feature of a model that rescores it."""
    first = [interop.Feature("bm25", "first_pass", ""), interop.Feature("age_days", "field", "age_days")]
    made = interop.feature_set(first, "solr", name="first")
    node.must("PUT", f"products/{made.requests[0][1]}", made.requests[0][2])
    file = tmp_path / "m.json"
    model = linear_model(("bm25", "age_days"), np.array([2.0, 0.5]), fill=np.zeros(2))
    export = tr.export.write(model, file, "solr", store="first")
    node.must("PUT", "products/schema/model-store", json.loads(file.read_text()))
    plain = search(node, q="title:lamp AND id:plain*", fl="id,score,age_days")
    rescore = f"{{!ltr model={export.name} reRankDocs=5000}}"
    rescored = search(node, q="title:lamp AND id:plain*", rq=rescore, fl="id,score")
    again = {hit["id"]: hit["score"] for hit in rescored}
    assert len(plain) > 50
    rows_ = np.array([[hit["score"], hit.get("age_days", 0.0)] for hit in plain])
    assert same_bits([again[hit["id"]] for hit in plain], tr.export.read(file)[1].score_rows(rows_))
    with pytest.raises(InputError, match="do not see the score of the search"):
        interop.feature_set(first, "opensearch")
    with pytest.raises(InputError, match="leave its field empty"):
        interop.Feature("bm25", "first_pass", "title")
