"""Every target: the structure of its file, its arithmetic against an oracle, names, shifts and missing values."""

import json
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import toprank as tr
from tests.export.engines import as_rows, oracle_scores
from tests.export.models import linear_model, stump_model
from tests.oracles import export as oracle
from toprank.errors import InputError, MissingExtraError
from toprank.model.functions import StumpFunction

NAMES = ("bm25", "age", "clicks")
TEXT_TARGETS = ("elasticsearch", "opensearch", "solr", "vespa", "ranklib", "json")


def linear(weights=(0.25, -1.5, 3e-3), **rest):
    return linear_model(NAMES[: len(weights)], np.array(weights, dtype=np.float64), source="ListNet", **rest)


def written(model, path, to, **settings):
    export = tr.export.write(model, path, to, **settings)
    return export, path.read_text(encoding="utf-8")


numbers = st.floats(-1e6, 1e6, allow_subnormal=False)


@pytest.mark.parametrize("to", TEXT_TARGETS)
@given(
    weights=st.lists(numbers, min_size=3, max_size=3),
    X=st.lists(st.lists(st.one_of(numbers, st.just(math.nan)), min_size=3, max_size=3), min_size=1, max_size=5),
    offset=st.sampled_from([0.0, -2.5, 1e3]),
    shift=st.sampled_from([0.0, 7.25]),
    fill=st.sampled_from([(0.0, 0.0, 0.0), (1.5, 0.0, -3.0)]),
    scaled=st.booleans(),
)
def test_restated_arithmetic_is_the_oracles(tmp_path_factory, to, weights, X, offset, shift, fill, scaled):
    path = tmp_path_factory.getbasetemp() / f"restated-{to}.json"
    scaler = {"center": np.array([1.0, -3.0, 0.0]), "scale": np.array([2.0, 0.1, 1.0])}
    model = linear(weights, offset=offset, fill=np.array(fill), **scaler)
    normalizers = scaled and to in ("elasticsearch", "opensearch", "solr")
    if shift and max(map(abs, weights)) < 1e-20:  # refused: no weight can carry it
        shift = 0.0
    tr.export.write(model, path, to, shift=shift, normalizers=normalizers)
    _, replica = tr.export.read(path)
    X = np.array(X)
    columns = [NAMES.index(name) for name in replica.names or NAMES]  # a weight of 0 may be left out
    seen = np.ascontiguousarray(X[:, columns])
    got = replica.score_rows(seen)
    expected = oracle_scores(oracle, to, path, NAMES, as_rows(X))
    assert got.tolist() == pytest.approx(expected, rel=0, abs=0, nan_ok=True)
    # And the oracle is what the model says, within the bound that the verification rests on.
    own = np.nan_to_num(X, nan=0.0) if to in ("elasticsearch", "opensearch", "ranklib") else X
    truth = model.predict(own)
    constant = {"elasticsearch", "opensearch", "solr"}.isdisjoint({to}) or shift or normalizers
    if not shift and normalizers:
        truth = truth - offset - float(model.weights @ scaler["center"])
    elif constant:
        truth = truth + shift
    else:
        truth = truth - offset
    slack = 1e-12 * (np.abs(truth).max() + abs(offset) + np.abs(np.nan_to_num(X)).max() * np.abs(model.weights).sum())
    assert (np.abs(got - truth) <= replica.rounding(seen) + slack).all()


@pytest.mark.parametrize("to", TEXT_TARGETS)
def test_the_same_model_gives_the_same_bytes(tmp_path, to):
    texts = [written(linear(), tmp_path / f"{i}", to)[1] for i in range(2)]
    assert texts[0] == texts[1]
    assert texts[0].endswith("\n")


def test_elasticsearch_body(tmp_path):
    export, text = written(linear(), tmp_path / "es.json", "elasticsearch", feature_set="movies", name="m", version="7")
    assert json.loads(text) == {
        "model": {
            "name": "m_7",
            "model": {"type": "model/linear", "definition": '{"bm25": 0.25, "age": -1.5, "clicks": 0.003}'},
        }
    }
    assert "_ltr/_featureset/movies/_createmodel" in export.notes[0]
    assert any("scores can be negative (age" in note and "--shift-from" in note for note in export.notes)
    query = export.rescore["rescore"]["query"]
    assert query["rescore_query"]["sltr"]["model"] == "m_7"
    assert (query["query_weight"], query["rescore_query_weight"]) == (0, 1)
    assert written(linear(), tmp_path / "os.json", "opensearch", name="m", version="7")[1] == text


def test_no_warning_where_scores_cannot_be_negative(tmp_path):
    # Features of Lucene are scores of queries and so never negative: weights decide.
    export, _ = written(linear((1.0, 0.0, 2.0)), tmp_path / "es.json", "elasticsearch")
    assert not any("negative" in note for note in export.notes)


def test_a_shift_rides_on_the_largest_weight(tmp_path):
    model = linear(offset=4.0)
    export, text = written(model, tmp_path / "es.json", "elasticsearch", shift=6.0)
    body = json.loads(text)["model"]["model"]
    assert body["feature_normalizers"] == {"age": {"standard": {"mean": 10 / 1.5, "standard_deviation": 1.0}}}
    assert any("+6 is added to every score" in note for note in export.notes)
    _, replica = tr.export.read(tmp_path / "es.json")
    X = np.array([[1.0, 2.0, 3.0], [0.0, np.nan, 0.0]])
    assert replica.score_rows(X) == pytest.approx(model.predict(np.nan_to_num(X)) + 6.0, rel=1e-6)


def test_a_constant_that_has_no_place_is_left_out_and_told(tmp_path):
    for to in ("elasticsearch", "solr"):
        export, _ = written(linear(offset=4.0), tmp_path / "model.json", to)
        assert any("the constant +4 is left out" in note for note in export.notes)
    export, _ = written(linear(offset=4.0), tmp_path / "model.json", "json")
    assert not any("left out" in note for note in export.notes)


def test_normalizers_of_a_pipeline(tmp_path):
    center, scale = np.array([10.0, 0.0, 5.0]), np.array([2.0, 1.0, 4.0])
    model = linear((0.5, 1.0, 0.0), offset=-5.0, center=center, scale=scale)
    _, text = written(model, tmp_path / "es.json", "elasticsearch", normalizers=True, shift=0.0)
    body = json.loads(text)["model"]["model"]
    assert json.loads(body["definition"]) == {"bm25": 1.0, "age": 1.0}  # a weight of 0 is the plugin's default
    assert body["feature_normalizers"] == {"bm25": {"standard": {"mean": 10.0, "standard_deviation": 2.0}}}
    _, text = written(model, tmp_path / "solr.json", "solr", normalizers=True)
    norm = {"class": "org.apache.solr.ltr.norm.StandardNormalizer", "params": {"avg": "10.0", "std": "2.0"}}
    assert [feature.get("norm") for feature in json.loads(text)["features"]] == [norm, None, None]
    with pytest.raises(InputError, match="there is no scaler to write"):
        tr.export.write(linear(), tmp_path / "x.json", "solr", normalizers=True)


def test_files_with_min_max_normalizers_are_understood(tmp_path):
    file = tmp_path / "es.json"
    norm = {"a": {"min_max": {"minimum": 10, "maximum": 20}}}
    body = {"type": "model/linear", "definition": json.dumps({"a": 2.0}), "feature_normalizers": norm}
    file.write_text(json.dumps({"model": {"name": "m", "model": body}}))
    assert tr.export.read(file)[1].score_rows(np.array([[15.0], [np.nan]])).tolist() == [1.0, -2.0]
    params = {"min": "10", "max": "20"}
    feature = {"name": "a", "norm": {"class": "org.apache.solr.ltr.norm.MinMaxNormalizer", "params": params}}
    model = {"class": "org.apache.solr.ltr.model.LinearModel", "name": "m", "features": [feature]}
    file.write_text(json.dumps({**model, "params": {"weights": {"a": 2}}}))
    assert tr.export.read(file)[1].score_rows(np.array([[15.0]])).tolist() == [1.0]


def test_solr_files(tmp_path):
    model = linear(fill=np.array([0.0, 2.0, 0.0]))
    export, text = written(model, tmp_path / "model.json", "solr", store="films", name="m", version="")
    body = json.loads(text)
    assert body["class"] == "org.apache.solr.ltr.model.LinearModel"
    assert (body["store"], body["name"]) == ("films", "m")
    assert [feature["name"] for feature in body["features"]] == list(body["params"]["weights"]) == list(NAMES)
    features = json.loads((tmp_path / "model.json.features.json").read_text())
    assert [feature["params"] for feature in features] == [
        {"field": "bm25", "defaultValue": 0.0},
        {"field": "age", "defaultValue": 2.0},
        {"field": "clicks", "defaultValue": 0.0},
    ]
    assert {feature["store"] for feature in features} == {"films"}
    assert export.files == (tmp_path / "model.json", tmp_path / "model.json.features.json")


def test_vespa_profile(tmp_path):
    model = linear_model(
        ("title match", "age"), np.array([2.0, -1.0]), offset=0.5, fill=np.array([0.0, 9.0]), source="x"
    )
    expressions = {"title match": "bm25(title)"}
    _, text = written(model, tmp_path / "p", "vespa", name="mine", version="1", expressions=expressions, phase="second")
    assert "rank-profile mine_1 {" in text
    assert "expression: if (isNan(bm25(title)), 0.0, bm25(title))" in text
    assert "expression: if (isNan(attribute(age)), 9.0, attribute(age))" in text
    assert "second-phase {" in text
    assert text.count("{") == text.count("}")
    assert oracle.vespa(text, ["bm25(title)", "attribute(age)"], [3.0, None]) == 2 * 3 - 9 + 0.5
    target, replica = tr.export.read(tmp_path / "p")
    assert (target, replica.names) == ("vespa", ("title match", "age"))
    assert replica.score_rows(np.array([[3.0, np.nan]])).tolist() == [-2.5]
    for name, problem in {"title match": "cannot be the name of an attribute", "2nd": "--map '2nd="}.items():
        with pytest.raises(InputError, match=problem):
            tr.export.write(linear_model((name,), np.ones(1)), tmp_path / "p", "vespa")
    with pytest.raises(InputError, match="no feature 'agee'"):
        tr.export.write(model, tmp_path / "p", "vespa", expressions={"agee": "now"})
    with pytest.raises(InputError, match="not a rank expression on one line"):
        tr.export.write(model, tmp_path / "p", "vespa", expressions={**expressions, "age": "a } b"})
    with pytest.raises(InputError, match=r"'a\.b_1' is not a name"):
        tr.export.write(linear(), tmp_path / "p", "vespa", name="a.b", version="1")


def test_ranklib_text(tmp_path):
    _, text = written(linear((1.0, -2.0)), tmp_path / "m.txt", "ranklib")
    assert text.splitlines()[0] == "## Coordinate Ascent"
    assert text.splitlines()[-1] == "1:1.0 2:-2.0"
    assert '## 2 = "age"' in text
    _, text = written(linear((1.0, -2.0), offset=0.5), tmp_path / "m.txt", "ranklib")
    assert (text.splitlines()[0], text.splitlines()[-1]) == ("## Linear Regression", "0:0.5 1:1.0 2:-2.0")


def test_rankboost_in_ranklib(tmp_path):
    data = tr.datasets.make_graded(n_queries=20, n_features=4, random_state=0)
    ranker = tr.RankBoost(rounds=10).fit_queries(data)
    _, text = written(ranker, tmp_path / "m.txt", "ranklib")
    assert text.splitlines()[0] == "## RankBoost"
    scores = [oracle.ranklib(text, row) for row in data.X[:20].tolist()]
    assert tr.export.read(tmp_path / "m.txt")[1].score_rows(data.X[:20].astype(np.float64)).tolist() == scores
    assert ranker.predict(data.X.astype(np.float32))[:20] == pytest.approx(scores)
    assert tr.export.verify(ranker, tmp_path / "m.txt", data).agrees
    with pytest.raises(InputError, match="no constant"):
        tr.export.write(ranker, tmp_path / "x", "ranklib", shift=1.0)


@pytest.mark.parametrize("fill", [None, (0.0, 0.0, 0.0), (1.5, 0.0, -3.0)])
def test_onnx_runs_in_onnxruntime(tmp_path, fill):
    onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
    pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    model = linear(offset=2.0, fill=None if fill is None else np.array(fill))
    tr.export.write(model, tmp_path / "a.onnx", "onnx", name="m", version="1", shift=1.0)
    tr.export.write(model, tmp_path / "b.onnx", "onnx", name="m", version="1", shift=1.0)
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
    graph = onnx.load(tmp_path / "a.onnx")
    about = {item.key: item.value for item in graph.metadata_props}
    assert json.loads(about["feature_names"]) == list(NAMES)
    assert about["missing"] == model.rule.words
    kinds = [node.op_type for node in graph.graph.node]
    assert kinds == ["Gemm"] if fill is None else kinds == ["IsNaN", "Where", "Gemm"]
    X = np.random.default_rng(0).normal(size=(50, 3))
    if fill is not None:
        X[::3, 1] = np.nan
    target, replica = tr.export.read(tmp_path / "a.onnx")
    assert target == "onnx"
    truth = model.predict(X) + 1.0
    assert (np.abs(replica.score_rows(X) - truth) <= replica.rounding(X)).all()
    assert replica.score_rows(X) == pytest.approx(truth, rel=1e-5, abs=1e-5)


def test_onnx_files_are_recognized_whatever_their_bytes(tmp_path):
    pytest.importorskip("onnx", reason="the extra onnx is not installed")
    pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    rng = np.random.default_rng(0)
    for fill in (None, rng.normal(size=3)):
        for _ in range(5):
            tr.export.write(linear(rng.normal(size=3), offset=rng.normal(), fill=fill), tmp_path / "m", "onnx")
            assert tr.export.read(tmp_path / "m")[0] == "onnx"


def test_onnx_without_the_extra_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=re.escape("pip install '.[onnx]'")):
        tr.export.write(linear(), tmp_path / "m.onnx", "onnx")


@pytest.mark.parametrize(
    ("fill", "words"),
    [
        (None, "missing values are refused"),
        (np.zeros(3), "missing values count as 0"),
        (np.array([1.0, 0.0, 2.0]), "missing values are filled in"),
    ],
)
def test_every_export_states_the_missing_value_policy(tmp_path, fill, words):
    for to in TEXT_TARGETS:
        export, text = written(linear(fill=fill), tmp_path / "model", to)
        assert export.missing.startswith(words)
        assert any(words in note for note in export.notes)
        assert words in text or to in ("elasticsearch", "opensearch", "solr", "json")  # these have no place for words
    assert json.loads(text)["missing"] == ("refuse" if fill is None else "fill")
    notes = tr.export.write(linear(fill=fill), tmp_path / "model", "elasticsearch").notes
    if fill is not None and fill.any():
        assert any("bm25 = 1, clicks = 2" in note and "Elasticsearch takes 0" in note for note in notes)


def test_missing_values_engine_by_engine(tmp_path):
    filled, zero = (
        linear((1.0, 1.0, 1.0), fill=np.array([5.0, 6.0, 7.0])),
        linear((1.0, 1.0, 1.0), fill=np.zeros(3)),
    )
    gap = np.array([[np.nan, 1.0, 1.0]])
    expected = {"elasticsearch": 2.0, "opensearch": 2.0, "ranklib": 2.0, "solr": 7.0, "vespa": 7.0, "json": 7.0}
    for to, score in expected.items():
        path = tmp_path / f"{to}.json"
        tr.export.write(filled, path, to)
        assert tr.export.read(path)[1].score_rows(gap).tolist() == [score]
        tr.export.write(zero, path, to)
        assert tr.export.read(path)[1].score_rows(gap).tolist() == [2.0]
    for to in ("vespa", "json"):  # nothing stands in: the engine has no score
        path = tmp_path / f"{to}.json"
        tr.export.write(linear((1.0, 1.0, 1.0)), path, to)
        assert np.isnan(tr.export.read(path)[1].score_rows(gap)).all()


@pytest.mark.parametrize(
    ("names", "to", "message"),
    [
        (("a", ""), "elasticsearch", "blank"),
        (("a", " b"), "opensearch", "blanks at its ends"),
        (("a", "b\n"), "solr", "blanks at its ends"),
        (("a", "b,c"), "solr", "feature 'b,c' has ',' in its name.*--features"),
        (("a", "b=c"), "solr", "'b=c'"),
        (("a", "b\x07c"), "elasticsearch", r"'b\\x07c'"),
        (("a", "b c"), "vespa", "--map 'b c="),
    ],
)
def test_names_that_a_target_cannot_hold(tmp_path, names, to, message):
    with pytest.raises(InputError, match=message):
        tr.export.write(linear_model(names, np.ones(2)), tmp_path / "x", to)
    assert not list(tmp_path.iterdir())


def test_settings_that_a_target_has_no_use_for(tmp_path):
    for to, settings in {
        "elasticsearch": {"expressions": {"a": "b"}},
        "solr": {"phase": "second"},
        "vespa": {"store": "x"},
        "onnx": {"normalizers": True},
        "ranklib": {"store": "x"},
        "json": {"store": "x"},
    }.items():
        with pytest.raises(InputError, match=f"{to} has no use for {next(iter(settings))}"):
            tr.export.write(linear(), tmp_path / "x", to, **settings)
    with pytest.raises(InputError, match=r"unknown target 'elastic'.*did you mean 'elasticsearch'"):
        tr.export.write(linear(), tmp_path / "x", "elastic")
    with pytest.raises(InputError, match="'a b_1' is not a name for a model"):
        tr.export.write(linear(), tmp_path / "x", "solr", name="a b", version="1")
    with pytest.raises(InputError, match="'a/b' is not the name of a feature set"):
        tr.export.write(linear(), tmp_path / "x", "opensearch", feature_set="a/b")
    with pytest.raises(InputError, match="shift must be a finite number"):
        tr.export.write(linear(), tmp_path / "x", "opensearch", shift=math.inf)
    with pytest.raises(InputError, match="no feature that could carry the shift"):
        tr.export.write(linear((0.0, 0.0)), tmp_path / "x", "solr", shift=1.0)


def test_the_version_changes_whenever_a_score_could(tmp_path):
    def name(model, **settings):
        return tr.export.write(model, tmp_path / "x", "elasticsearch", **settings).name

    base = name(linear())
    assert re.fullmatch(r"listnet_[0-9a-f]{8}", base)
    assert name(linear()) == base
    others = {name(linear((0.25, -1.5, 4e-3))), name(linear(fill=np.zeros(3))), name(linear(), shift=1.0), base}
    assert len(others) == 4


def test_single_precision_is_watched(tmp_path):
    with pytest.raises(InputError, match="the weight of 'age' does not fit into float32"):
        tr.export.write(linear((1.0, 1e39)), tmp_path / "x", "elasticsearch")
    export = tr.export.write(linear((1e-30, 1e-40)), tmp_path / "x", "solr")
    assert any("float32 all but loses: age" in note for note in export.notes)
    assert not any("float32" in note for note in tr.export.write(linear((1.0, 0.0)), tmp_path / "x", "solr").notes)
    assert tr.export.write(linear((1.0, 1e39)), tmp_path / "x", "vespa").files


def test_an_interrupted_write_leaves_the_old_files(tmp_path, monkeypatch):
    path = tmp_path / "model.json"
    tr.export.write(linear(), path, "solr")
    old = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        tr.export.write(linear((9.0, 9.0, 9.0)), path, "solr")
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == old


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"\x08\x08junk\x00",
        b"## LambdaMART\n<ensemble>",
        b"## Coordinate Ascent\n1:0.5 3:1",
        b"## Coordinate Ascent\n1:nan",
        b"## Linear Regression\n",
        b"## RankBoost\n0:1:1",
        b"## RankBoost\n1:nan:1",
        b"## \xff",
        b"rank-profile x {\n}",
        b"rank-profile x {\n    first-phase {\n        expression {\n            f_a * 2\n        }\n    }\n}",
        b'{"model": {"name": "m", "model": {"type": "model/xgboost+json", "definition": "[]"}}}',
        b'{"model": {"name": "m", "model": {"type": "model/linear", "definition": {"a": "b"}}}}',
        b'{"model": {"name": "m", "model": {"type": "model/linear", "definition": "{"}}}',
        b'{"model": {"name": "m", "model": {"type": "model/linear", "definition": {"a": 1}, '
        b'"feature_normalizers": {"b": {}}}}}',
        b'{"model": {"name": "m", "model": {"type": "model/linear", "definition": {"a": 1}, '
        b'"feature_normalizers": {"a": {"standard": {"mean": 0, "standard_deviation": 0}}}}}}',
        b'{"class": "org.apache.solr.ltr.model.LinearModel", "name": "m", "features": [{"name": "a"}], '
        b'"params": {"weights": {}}}',
        b'{"class": "org.apache.solr.ltr.model.MultipleAdditiveTreesModel", "name": "m", "features": [], '
        b'"params": {"weights": {}}}',
        b'{"class": "org.apache.solr.ltr.model.LinearModel", "name": "m", "features": [{"name": "a", '
        b'"norm": {"class": "x.y"}}], "params": {"weights": {"a": 1}}}',
        b'{"format": "toprank-linear", "version": 2, "toprank": "", "source": "", "missing": "fill", "offset": 0, '
        b'"features": []}',
        b'{"format": "toprank-linear", "version": 1, "toprank": "", "source": "", "missing": "fill", "offset": 0, '
        b'"features": [{"name": "a", "weight": 1}]}',
        b'{"format": "toprank-linear", "version": 1, "toprank": "", "source": "", "missing": "refuse", "offset": 0, '
        b'"features": [{"name": "a", "weight": 1}, {"name": "a", "weight": 1}]}',
        b'{"format": "toprank-linear", "version": 1, "toprank": "", "source": "", "missing": "refuse", "offset": 0, '
        b'"features": [{"name": "a", "weight": 1, "center": 1}, {"name": "b", "weight": 1, "center": 1, "scale": 1}]}',
    ],
)
def test_files_that_are_not_exports(tmp_path, content):
    if content.startswith(b"\x08"):  # as ONNX files do
        pytest.importorskip("onnx", reason="the extra onnx is not installed")
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(InputError, match="file") as caught:
        tr.export.read(path)
    assert str(path) in str(caught.value)


def test_shift_for_lifts_every_score():
    data = tr.datasets.make_graded(n_queries=10, n_features=3, random_state=0).X
    model = linear((1.0, -3.0, 0.5))
    shift = tr.export.shift_for(model, data)
    scores = model.predict(data)
    assert scores.min() < 0 < scores.min() + shift
    assert tr.export.shift_for(linear((0.0, 0.0, 0.0)), data) == 0.0


def test_stumps_refuse_names_of_another_number():
    model = StumpFunction(2, np.array([1]), np.array([0.5]), np.array([3.0]))
    with pytest.raises(InputError):
        stump_model(("a", "a"), model)


def test_weights_too_small_to_carry_a_shift_are_refused(tmp_path):
    with pytest.raises(tr.InputError, match=r"too small to carry a shift of 7 .*: multiply them all"):
        tr.export.write(linear([0.0, 1e-250, 0.0]), tmp_path / "es.json", "elasticsearch", shift=7.0)
    assert not (tmp_path / "es.json").exists()


@pytest.mark.parametrize("to", ["elasticsearch", "opensearch"])
def test_the_policy_for_missing_values_stands_beside_a_file_that_has_no_place_for_it(tmp_path, to):
    export = tr.export.write(linear([1.0, 2.0, 0.0], fill=np.zeros(3)), tmp_path / "es.json", to)
    assert export.files == (tmp_path / "es.json", tmp_path / "es.json.notes.json")
    about = json.loads((tmp_path / "es.json.notes.json").read_text())
    assert about["missing"] == export.missing
    assert about["name"] == export.name
    assert about["notes"] == list(export.notes)
