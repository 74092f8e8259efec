"""From a table of features to a data set: bodies by a schema of the plugins' API, and logs as the engines answer."""

import json

import numpy as np
import pytest

import toprank as tr
from tests.cli.calling import fail, run
from tests.export.models import linear_model
from toprank.errors import InputError
from toprank.interop import Feature, feature_set, read_features

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
FEATURES = [
    Feature("title_bm25", "match", "title"),
    Feature("title_phrase", "phrase", "title"),
    Feature("age", "field", "age_days"),
]
WORD = {"type": "string", "minLength": 1}


def closed(required, **properties):
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": False}


# What the plugins document of their API: a feature set, a model, a search that logs, and one that rescores.
TEMPLATE = {"type": "object", "minProperties": 1, "maxProperties": 1}
FEATURE = closed(
    ["name", "params", "template"], name={**WORD, "pattern": "^[^,*\\s]+$"}, params={"type": "array", "items": WORD},
    template_language={"enum": ["mustache", "derived_expression", "script_feature"]}, template=TEMPLATE,
)  # fmt: skip
FEATURE_SET = closed(
    ["featureset"],
    featureset=closed(["features"], name=WORD, features={"type": "array", "minItems": 1, "items": FEATURE}),
    validation=closed(["params", "index"], params={"type": "object"}, index=WORD),
)
NORMALIZER = {"oneOf": [
    closed(["standard"], standard=closed(["mean", "standard_deviation"], mean={"type": "number"},
                                         standard_deviation={"type": "number", "exclusiveMinimum": 0})),
    closed(["min_max"], min_max=closed(["minimum", "maximum"], minimum={"type": "number"}, maximum={"type": "number"})),
]}  # fmt: skip
MODEL = closed(
    ["model"],
    model=closed(
        ["name", "model"], name=WORD,
        model=closed(
            ["type", "definition"], type={"enum": ["model/linear", "model/xgboost+json", "model/ranklib"]},
            definition={"type": ["string", "object", "array"]},
            feature_normalizers={"type": "object", "additionalProperties": NORMALIZER},
        ),
    ),
    validation=closed(["params", "index"], params={"type": "object"}, index=WORD),
)  # fmt: skip
SLTR = closed(
    ["params"], _name=WORD, featureset=WORD, model=WORD, store=WORD, params={"type": "object"},
    cache={"type": "boolean"},     active_features={"type": "array"}, boost={"type": "number"},
)  # fmt: skip
LOG_SPEC = closed(
    ["name", "named_query"],
    name=WORD,
    named_query=WORD,
    rescore_index={"type": "integer"},
    missing_as_zero={"type": "boolean"},
)
SOLR_FEATURE = closed(
    ["name", "class", "params"], store=WORD, name=WORD, params={"type": "object"},
    **{"class": {"enum": [f"org.apache.solr.ltr.feature.{kind}Feature" for kind in ("Solr", "FieldValue", "Value")]}},
)  # fmt: skip


@pytest.mark.parametrize("engine", ["elasticsearch", "opensearch"])
@pytest.mark.parametrize("store", [None, "films"])
def test_bodies_of_the_plugins_follow_their_api(engine, store, tmp_path):
    made = feature_set(FEATURES, engine, name="movies", store=store)
    (first, place, nothing), (method, path, body) = made.requests
    root = "_ltr" if store is None else "_ltr/films"
    assert (first, place, nothing) == ("PUT", root, None)  # without it there is no store
    assert (method, path) == ("POST", f"{root}/_featureset/movies")
    jsonschema.validate(body, FEATURE_SET)
    assert [feature["name"] for feature in body["featureset"]["features"]] == ["title_bm25", "title_phrase", "age"]
    for feature in body["featureset"]["features"]:  # a parameter is declared where the template uses it
        assert ("{{keywords}}" in json.dumps(feature["template"])) == (feature["params"] == ["keywords"])
    (sltr,) = [clause["sltr"] for clause in made.logging["query"]["bool"]["filter"] if "sltr" in clause]
    jsonschema.validate(sltr, SLTR)
    spec = made.logging["ext"]["ltr_log"]["log_specs"]
    jsonschema.validate(spec, LOG_SPEC)
    assert spec["named_query"] == sltr["_name"]
    assert (sltr["featureset"], sltr.get("store")) == ("movies", store)
    model = linear_model(("title_bm25", "title_phrase", "age"), np.array([1.0, 2.0, -0.1]))
    export = tr.export.write(model, tmp_path / "m.json", engine, feature_set="movies", store=store, shift=3.0)
    jsonschema.validate(json.loads((tmp_path / "m.json").read_text()), MODEL)
    jsonschema.validate(export.rescore["rescore"]["query"]["rescore_query"]["sltr"], SLTR)


def test_bodies_of_solr():
    made = feature_set(FEATURES, "solr", name="films")
    ((method, path, body),) = made.requests
    assert (method, path) == ("PUT", "schema/feature-store")
    for feature in body:
        jsonschema.validate(feature, SOLR_FEATURE)
    assert [feature["params"] for feature in body] == [
        {"q": "{!dismax qf=title}${keywords}"}, {"q": "{!field f=title}${keywords}"}, {"field": "age_days"},
    ]  # fmt: skip
    assert "[features store=films" in made.logging["params"]["fl"]


def answer_of_the_plugin(rows):
    """`rows`: document to {feature: value or None}."""
    hits = []
    for document, values in rows.items():
        log = [{"name": name} if value is None else {"name": name, "value": value} for name, value in values.items()]
        hits.append({"_index": "tmdb", "_id": document, "_score": 0.0, "fields": {"_ltrlog": [{"log": log}]},
                     "matched_queries": ["logged_features"]})  # fmt: skip
    return {"took": 3, "timed_out": False, "hits": {"total": {"value": len(hits), "relation": "eq"}, "hits": hits}}


def answer_of_solr(rows):
    """Sparse: a feature without a value is not in the vector."""
    docs = [
        {
            "id": document,
            "[features]": ",".join(f"{name}={value}" for name, value in values.items() if value is not None),
        }
        for document, values in rows.items()
    ]
    return {"responseHeader": {"status": 0}, "response": {"numFound": len(docs), "start": 0, "docs": docs}}


ROWS = {
    "q1": {"d7": {"title_bm25": 9.5, "age": 3.0}, "d2": {"title_bm25": None, "age": 8.0}},
    "q2": {
        "d7": {"title_bm25": 0.25, "age": 1e8},
        "d9": {"title_bm25": 1.5, "age": None},
        "d1": {"title_bm25": 7.0, "age": 0.0},
    },
}
JUDGED = {"q1": {"d7": 2}, "q2": {"d9": 1, "gone": 3}}


@pytest.mark.parametrize("answer", [answer_of_the_plugin, answer_of_solr])
def test_logs_become_a_data_set(answer, tmp_path):
    answers = {query: answer(rows) for query, rows in ROWS.items()}
    lines = [json.dumps({"query": query, "answer": found}) for query, found in answers.items()]
    (tmp_path / "answers.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "qrels.txt").write_text("q1 0 d7 2\nq2 0 d9 1\nq2 0 gone 3\nq2 0 d1 -1\n")
    for source, judgments in ((answers, JUDGED), (tmp_path / "answers.jsonl", tmp_path / "qrels.txt")):
        data = tr.read_ltr_logs(source, judgments, missing="zero")
        assert data.feature_names == ("title_bm25", "age")
        assert data.X.tolist() == [[9.5, 3.0], [0.0, 8.0], [0.25, 1e8], [1.5, 0.0], [7.0, 0.0]]
        assert data.y.tolist() == [2, 0, 0, 1, 0]
        assert data.doc_ids.tolist() == ["d7", "d2", "d7", "d9", "d1"]
        assert data.query_ids.tolist() == ["q1", "q2"]
        with pytest.raises(InputError, match=r"'title_bm25' does not match document d2 of query q1.*missing='zero'"):
            tr.read_ltr_logs(source, judgments)
    assert tr.read_ltr_logs(answers, missing="zero").y.tolist() == [0.0] * 5


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "line 1: not JSON"),
        ("[]", 'line 1: not {"query"'),
        ('{"query": 1, "answer": {}}', "line 1: not an answer with logged features: it lacks 'response'"),
        ('{"query": 1, "answer": {"hits": {"hits": [{"_id": "a"}]}}}', "it lacks 'fields'"),
        ('{"query": 1, "answer": {"response": {"docs": [{"id": "a", "[features]": "x"}]}}}', "no name=value pairs"),
        ('{"query": 1, "answer": {"response": {"docs": [{"id": "a", "[features]": "x=nan"}]}}}', "not a finite number"),
        ('{"query": 1, "answer": {"response": {"docs": []}}}', "no logged features"),
        ('{"query": 1, "answer": {"response": {"docs": [{"id": "a", "[features]": "x=1"}, '
         '{"id": "a", "[features]": "x=1"}]}}}', "document a is logged twice for query 1"),
    ],
)  # fmt: skip
def test_one_clear_line_on_broken_logs(tmp_path, line, words):
    (tmp_path / "a.jsonl").write_text(line + "\n")
    with pytest.raises(InputError) as caught:
        tr.read_ltr_logs(tmp_path / "a.jsonl")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="gone"):
        tr.read_ltr_logs(tmp_path / "gone")
    with pytest.raises(InputError, match="judgments are"):
        tr.read_ltr_logs({}, 3)


def test_the_way_in_on_the_command_line(capsys, tmp_path):
    (tmp_path / "f.csv").write_text("name,kind,field\ntitle_bm25,match,title\nage,field,age_days\n")
    assert [feature.name for feature in read_features(tmp_path / "f.csv")] == ["title_bm25", "age"]
    out = run(capsys, "features", tmp_path / "f.csv", "--for", "opensearch", "--feature-set", "movies")
    assert "PUT _ltr" in out
    assert "POST _ltr/_featureset/movies" in out
    told = json.loads(run(capsys, "features", tmp_path / "f.csv", "--for", "solr", "--json"))
    assert told["requests"][0]["path"] == "schema/feature-store"
    run(capsys, "features", tmp_path / "f.csv", "--for", "elasticsearch", "-o", tmp_path / "f.json")
    jsonschema.validate(json.loads((tmp_path / "f.json").read_text())["requests"][1]["body"], FEATURE_SET)
    lines = [json.dumps({"query": query, "answer": answer_of_the_plugin(rows)}) for query, rows in ROWS.items()]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    (tmp_path / "qrels").write_text("q1 0 d7 2\nq2 0 d9 1\n")
    read = ("read-logs", tmp_path / "a.jsonl", "--qrels", tmp_path / "qrels", "-o", tmp_path / "train.parquet")
    assert "--missing zero" in fail(capsys, *read)
    told = json.loads(run(capsys, *read, "--missing", "zero", "--json"))
    assert (told["queries"], told["documents"], told["features"]) == (2, 5, ["title_bm25", "age"])
    assert tr.read(tmp_path / "train.parquet").y.tolist() == [2, 0, 0, 1, 0]
    broken = {
        "name,kind\na,b\n": "lacks the column 'field'",
        "name,kind,field\na,root,b\n": "line 2: feature 'a' is of kind 'root'",
        "name,kind,field\na,match,\n": "line 2: a feature has a name",
        "name,kind,field\na,match,b\na,field,c\n": "'a' is there twice",
        "name,kind,field\n": "there is no feature",
        'name,kind,field\n"a,b",match,c\n': "has a sign that no engine takes",
    }
    for text, words in broken.items():
        (tmp_path / "f.csv").write_text(text)
        assert words in fail(capsys, "features", tmp_path / "f.csv", "--for", "solr")
