"""RankBoost in every target: the trees against an oracle of each engine, the sides of thresholds, missing values."""

import json
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import toprank as tr
from tests.export.engines import RESTATED, as_rows, oracle_scores
from tests.export.models import stump_model
from tests.oracles import export as linear_oracle
from tests.oracles import export_trees as oracle
from toprank.errors import InputError
from toprank.export.model_trees import single_above, single_below
from toprank.export.solr import reached, written
from toprank.model.functions import StumpFunction

NAMES = ("bm25", "age", "flat", "clicks")
SINGLE = ("elasticsearch", "opensearch", "solr", "onnx")
"""Targets that hold thresholds in float32."""


def targets():
    return [
        pytest.param(to, marks=pytest.mark.skipif(not _has_onnx(), reason="the extra onnx is not installed"))
        if to == "onnx"
        else to
        for to in (*RESTATED, "onnx")
    ]


def _has_onnx():
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
    except ImportError:
        return False
    return True


def boosted(stumps, fill=None, names=NAMES, offset=0.0):
    feature, threshold, weight = (np.array(column) for column in zip(*stumps, strict=True))
    model = StumpFunction(len(names), feature, threshold.astype(np.float64), weight.astype(np.float64))
    return stump_model(names, model, None if fill is None else np.array(fill, dtype=np.float64), "RankBoost", offset)


grid = st.sampled_from([-2.0, -0.1, 0.0, 1e-7, 0.1, 0.25, 1.0, 1.0 + 2**-24, 3.0, 1e6])
stump_lists = st.lists(
    st.tuples(st.sampled_from([0, 1, 3]), grid, st.floats(-3, 3).filter(lambda w: abs(w) > 1e-3)),
    min_size=1,
    max_size=9,
)
tables = st.lists(st.lists(st.one_of(grid, st.just(math.nan)), min_size=4, max_size=4), min_size=1, max_size=6)


@pytest.mark.parametrize("to", targets())
@given(stumps=stump_lists, X=tables, fill=st.sampled_from([(0.0,) * 4, (0.25, -2.0, 0.0, 7.0)]), shift=st.booleans())
@example([(0, 0.1, 1.0), (0, 0.1, 2.0), (0, 3.0, -0.5)], [[0.1, 0, 0, 0], [3.0, 0, 0, 0]], (0.0,) * 4, False)
def test_the_engine_scores_as_the_model(tmp_path_factory, to, stumps, X, fill, shift):
    if to == "ranklib":
        shift, fill = False, (0.0,) * 4
    path = tmp_path_factory.getbasetemp() / f"boosted-{to}"
    model, X = boosted(stumps, fill), np.array(X)
    tr.export.write(model, path, to, shift=2.5 if shift else 0.0)
    _, replica = tr.export.read(path)
    columns = list(range(4)) if replica.names is None else [NAMES.index(name) for name in replica.names]
    seen = np.ascontiguousarray(X[:, columns[: replica.n_features]])
    got = replica.score_rows(seen)
    if to != "onnx":
        assert got.tolist() == oracle_scores(oracle, to, path, NAMES, as_rows(X))
    truth = np.array([oracle.score(stumps, row, fill) for row in as_rows(X)]) + (2.5 if shift else 0.0)
    exact = np.array_equal(X.astype(np.float32), X, equal_nan=True)
    apart = len({(f, t) for f, t, _ in stumps}) == len({(f, single_below(t)) for f, t, _ in stumps})
    if exact or apart or to not in SINGLE:
        assert (np.abs(got - truth) <= replica.rounding(seen)).all()
    if exact:  # what float32 can hold falls on the model's side of every threshold, ties with a threshold too
        assert np.abs(got - truth).max() <= 1e-5
        if to != "solr":
            assert replica.doubtful(seen) == 0


@pytest.mark.parametrize("to", targets())
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("missing", ["error", "zero"])
def test_a_fitted_ranker_ranks_alike(tmp_path, to, dtype, missing):
    rng = np.random.default_rng(7)
    data = tr.datasets.make_graded(n_queries=40, n_docs=(2, 20), n_features=5, random_state=3)
    X = data.X.astype(np.float64)
    X[:, 1] = np.round(X[:, 1])  # many ties
    X[:, 2] = 0.1  # says nothing
    X[:, 3] *= 1e-8  # far below Solr's 1e-6
    if missing == "zero":
        X[rng.random(X.shape) < 0.2] = np.nan
    X = X.astype(dtype)
    ranker = tr.RankBoost(rounds=60, both_directions=True, missing=missing).fit(X, data.y, qid=data.qid)
    assert len(set(ranker.function_.feature.tolist())) >= 3
    export = tr.export.write(ranker, tmp_path / "file", to)
    check = tr.export.verify(ranker, tmp_path / "file", X, qid=data.qid, to=to)
    assert check.agrees
    assert check.largest_difference <= 1e-5
    assert (check.tau, check.worst_overlap) == (pytest.approx(1.0, abs=1e-9), 1.0)
    assert "precision moves no value across a threshold" in str(check)
    assert any(export.missing in note for note in export.notes)


@pytest.mark.parametrize("to", RESTATED)
def test_a_wrong_threshold_or_leaf_is_found(tmp_path, to):
    data = tr.datasets.make_graded(n_queries=30, n_features=4, random_state=0)
    ranker = tr.RankBoost(rounds=8).fit_queries(data)
    model = tr.export.fold(ranker)
    feature, threshold, weight = model.function.feature, model.function.threshold, model.function.weight
    for moved in (
        StumpFunction(4, feature, threshold + 0.05, weight),
        StumpFunction(4, feature, threshold, weight * np.where(np.arange(8) == 0, -1, 1)),
        StumpFunction(4, (feature + 1) % 4, threshold, weight),
    ):
        tr.export.write(stump_model(model.names, moved), tmp_path / "file", to)
        check = tr.export.verify(ranker, tmp_path / "file", data, to=to)
        assert not check.agrees
        assert "THE RANKINGS DISAGREE" in str(check)


@given(st.floats(-1e30, 1e30))
@example(0.1)
@example(-0.1)
@example(1e-50)
@example(1.0)
def test_single_precision_neighbours(value):
    low, high = single_below(value), single_above(value)
    assert low <= value < high
    assert np.float32(low) == low
    assert np.nextafter(np.float32(low), np.float32(np.inf)) == np.float32(high)


@given(st.floats(-1e6, 1e6), st.floats(1.0001, 1e9))
@example(1.0 - 2**-25, 1.1)
@example(1.0, 1.0001)
@example(-1.0, 1.0001)
def test_neighbours_in_the_training_data_stay_apart(value, gap):
    other = value + max(abs(value), 1e-30) * 2**-23 * gap
    largest = max(abs(value), abs(other))
    if not other - value > 2**-23 * largest:  # the larger one may be the other
        other = value + largest * 2**-22 * gap
    threshold = value + 0.5 * (other - value)  # as RankBoost places it
    assert np.float32(value) <= single_below(threshold) < np.float32(other)


@given(st.one_of(st.floats(-1e30, 1e30), st.floats(-1e-4, 1e-4), st.floats(-1e-12, 1e-12)))
@example(0.0)
@example(1e-6)
@example(-1e-6)
@example(-(2.0**-7) + 1e-8)
@example(16.0)
def test_solr_adds_its_slack_to_what_is_written(threshold):
    number = written(threshold)
    got = linear_oracle.single(number + linear_oracle.single(1e-6))
    assert got == reached(number)
    assert got <= threshold
    # It is the largest that can be reached: exact, or off by less than the digits that 1e-6 leaves.
    following = np.nextafter(np.float32(number), np.float32(np.inf))
    assert got == single_below(threshold) or reached(float(following)) > threshold
    assert single_below(threshold) - got <= max(2**-43, abs(threshold) * 2**-22)
    assert (got >= 0) == (threshold >= 0)  # a value of 0, the most frequent one, is on the right side


def test_thresholds_that_single_precision_cannot_tell_apart_are_told(tmp_path):
    model = boosted([(0, 1.0, 1.0), (0, 1.0 + 2**-30, -1.0), (0, 2.0, 1.0)])
    X = np.zeros((3, 4))
    X[:, 0] = 1.0, 1.0 + 2**-31, 2.0
    for to in ("elasticsearch", "solr"):
        notes = tr.export.write(model, tmp_path / "file", to).notes
        assert any(note.startswith("1 thresholds are closer to another than float32 can tell") for note in notes)
        assert tr.export.verify(model, tmp_path / "file", X).largest_difference == 1.0  # the step between is gone
    assert not any("closer to another" in note for note in tr.export.write(model, tmp_path / "file", "json").notes)


def test_values_that_single_precision_cannot_tell_apart_are_counted(tmp_path):
    theta = 1.0 + 2**-26  # between two float32 numbers
    model = boosted([(0, theta, 1.0)], names=("a",))
    X = np.array([[1.0], [1.0 + 2**-27], [1.0 + 2**-25], [1.0 + 2**-23], [2.0]] + [[0.5], [3.0]] * 20)
    assert model.predict(X)[:5].tolist() == [0.0, 0.0, 1.0, 1.0, 1.0]
    for to, doubtful in {"elasticsearch": 2, "solr": 2, "ranklib": 1, "vespa": 0, "json": 0}.items():
        tr.export.write(model, tmp_path / "file", to)
        check = tr.export.verify(model, tmp_path / "file", X, to=to)
        assert check.agrees
        words = f"{doubtful} values lie closer to a threshold" if doubtful else "moves no value across a threshold"
        assert words in str(check)
    tr.export.write(model, tmp_path / "file", "elasticsearch")
    assert tr.export.read(tmp_path / "file")[1].score_rows(X[:5]).tolist() == [0.0, 0.0, 0.0, 1.0, 1.0]


def test_every_version_of_the_plugin_gives_a_missing_value_the_same_score(tmp_path):
    stumps = [(0, -1.0, 0.5), (0, 0.0, 1.0), (0, 2.0, 4.0), (1, -3.0, 8.0)]
    rows = [[None, None, 0.0, 0.0], [None, 1.0, 0.0, 0.0], [5.0, None, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    for fill in (None, (0.0,) * 4):
        tr.export.write(boosted(stumps, fill), tmp_path / "es.json", "opensearch")
        text = (tmp_path / "es.json").read_text()
        for version in ("zero", "right", "missing"):
            assert [oracle.plugin(text, NAMES, row, version) for row in rows] == [8.5, 8.5, 13.5, 8.5]
    export = tr.export.write(boosted(stumps, (3.0, -5.0, 0.0, 0.0)), tmp_path / "es.json", "opensearch")
    text = (tmp_path / "es.json").read_text()
    for version in ("right", "missing"):
        assert [oracle.plugin(text, NAMES, row, version) for row in rows] == [5.5, 13.5, 5.5, 8.5]
    note = next(note for note in export.notes if note.startswith("missing values"))
    assert "bm25 = 3, age = -5" in note
    assert "plugins before 2024 (OpenSearch before 3.2) take 0" in note
    assert json.loads((tmp_path / "es.json.notes.json").read_text())["missing"] == export.missing


def test_missing_values_engine_by_engine(tmp_path):
    stumps = [(0, 0.5, 1.0), (1, 0.5, 10.0)]
    gap, full = np.array([[np.nan, 1.0]]), np.array([[0.0, 1.0]])
    names = ("a", "b")
    filled, refusing = boosted(stumps, (2.0, 0.0), names), boosted(stumps, None, names)
    expected = {"elasticsearch": 11.0, "solr": 11.0, "vespa": 11.0, "json": 11.0, "ranklib": 10.0}
    for to, score in expected.items():
        tr.export.write(filled, tmp_path / "file", to)
        replica = tr.export.read(tmp_path / "file", to)[1]
        assert replica.score_rows(gap).tolist() == [score]
        assert replica.score_rows(full).tolist() == [10.0]
    expected = {"elasticsearch": 10.0, "solr": 10.0, "vespa": 11.0, "json": math.nan, "ranklib": 10.0}
    for to, score in expected.items():
        export = tr.export.write(refusing, tmp_path / "file", to)
        got = tr.export.read(tmp_path / "file", to)[1].score_rows(gap)
        assert got.tolist() == pytest.approx([score], nan_ok=True)
        assert any("missing values are refused" in note for note in export.notes)
    with pytest.raises(InputError, match="the model refuses missing values"):
        tr.export.verify(refusing, tmp_path / "file", gap)


def test_elasticsearch_body(tmp_path):
    model = boosted([(3, 0.5, 1.5), (0, 2.0, -1.0), (3, 0.5, 1.5)])
    export = tr.export.write(model, tmp_path / "es.json", "elasticsearch", name="m", version="1", shift=0.25)
    body = json.loads((tmp_path / "es.json").read_text())["model"]
    assert (body["name"], body["model"]["type"]) == ("m_1", "model/xgboost+json")
    trees = json.loads(body["model"]["definition"])
    assert [tree.get("split") for tree in trees] == ["bm25", "clicks", None]
    assert trees[2] == {"nodeid": 0, "leaf": 0.25}
    guard, inner = trees[1], trees[1]["children"][0]
    assert guard["split_condition"] == float(np.finfo(np.float32).max)
    assert inner["split_condition"] == float(np.nextafter(np.float32(0.5), np.float32(1)))  # x < this is x ≤ 0.5
    assert [child["leaf"] for child in inner["children"]] == [0.0, 3.0]
    assert any("3 thresholds of RankBoost are 2 splits in 2 trees" in note for note in export.notes)
    assert any("must have all 2 features" in note for note in export.notes)
    assert any("down to -0.75" in note and "--shift 1.1 or more" in note for note in export.notes)
    enough = tr.export.write(model, tmp_path / "es.json", "elasticsearch", shift=1.1)
    assert not any("negative" in note for note in enough.notes)
    assert tr.export.verify(model, tmp_path / "es.json", np.zeros((1, 4))).shift == pytest.approx(1.1)


def test_trees_of_xgboost_are_understood(tmp_path):
    leaf = [{"nodeid": 1, "leaf": 1.0}, {"nodeid": 2, "leaf": 2.0}]
    split = {"nodeid": 0, "depth": 0, "split": "b", "split_condition": 0.5, "yes": 1, "no": 2, "missing": 1}
    for extra, scores in (
        ({}, [1.0, 2.0, 1.0]),
        ({"missing_as_zero": True, "objective": "rank:ndcg"}, [1.0, 2.0, 1.0]),
    ):
        definition = {"splits": [{**split, "children": leaf}], **extra} if extra else [{**split, "children": leaf}]
        body = {"name": "m", "model": {"type": "model/xgboost+json", "definition": definition}}
        (tmp_path / "file").write_text(json.dumps({"model": body}))
        _, replica = tr.export.read(tmp_path / "file")
        assert replica.names == ("b",)
        assert replica.score_rows(np.array([[0.4], [0.5], [np.nan]])).tolist() == scores


def test_solr_body(tmp_path):
    model = boosted([(3, 0.5, 1.5), (0, 2.0, 1.0)], (0.0, 0.0, 0.0, 9.0))
    tr.export.write(model, tmp_path / "s.json", "solr", store="films", name="m", version="1")
    body = json.loads((tmp_path / "s.json").read_text())
    assert body["class"] == "org.apache.solr.ltr.model.MultipleAdditiveTreesModel"
    assert body["features"] == [{"name": "bm25"}, {"name": "clicks"}]
    root = body["params"]["trees"][1]["root"]
    assert root["feature"] == "clicks"
    assert float(root["threshold"]) == pytest.approx(0.5 - 1e-6, abs=1e-7)
    assert (root["left"], root["right"]) == ({"value": "0.0"}, {"value": "1.5"})
    stored = json.loads((tmp_path / "s.json.features.json").read_text())
    assert [(f["name"], f["params"]["defaultValue"]) for f in stored] == [("bm25", 0.0), ("clicks", 9.0)]
    notes = tr.export.write(boosted([(0, 1e-9 + 3e-14, 1.0)]), tmp_path / "s.json", "solr").notes
    assert any("too few digits for 1 of them: they are off by up to" in note for note in notes)


def test_vespa_profile(tmp_path):
    model = boosted([(0, 0.5, 1.5), (0, 2.0, 1.0), (3, -1.0, 2.0)], (0.0,) * 4)
    export = tr.export.write(
        model, tmp_path / "p", "vespa", name="m", version="1", expressions={"clicks": "attribute(seen)"}, phase="second"
    )
    text = (tmp_path / "p").read_text()
    assert "function f_clicks() { # " in text
    assert "f_age" not in text  # what is not used is not computed
    assert "if (f_bm25 < 0.5000000000000001, 0.0, 1.5)" in text  # the next number: 0.5 itself is not above 0.5
    assert text.count("{") == text.count("}")
    assert any("vespa.eval.use_fast_forest off" in note for note in export.notes)
    assert any("1 features are read as attribute(name)" in note for note in export.notes)


def test_json_goes_both_ways(tmp_path):
    model = boosted([(3, 0.5, 1.5), (0, 2.0, -1.0), (3, 0.1, 0.7), (3, 0.5, 0.2)], (0.0, 1.0, 2.0, 3.0))
    tr.export.write(model, tmp_path / "a.json", "json")
    again = tr.export.fold(tmp_path / "a.json")
    assert (again.names, again.source) == (NAMES, "RankBoost")
    assert again.rule.fill.tolist() == [0.0, 1.0, 2.0, 3.0]
    X = np.random.default_rng(0).choice([0.0, 0.1, 0.3, 0.5, 2.0, 3.0, np.nan], size=(50, 4))
    assert again.predict(X) == pytest.approx(model.predict(X), abs=1e-15)
    tr.export.write(again, tmp_path / "s.json", "solr")
    assert tr.export.verify(model, tmp_path / "s.json", X).agrees
    file = json.loads((tmp_path / "a.json").read_text())
    file["features"][0]["scores"] = [5.0, 4.0]  # a file of another hand need not begin at 0
    (tmp_path / "a.json").write_text(json.dumps(file))
    other = tr.export.fold(tmp_path / "a.json")
    assert other.predict(X) == pytest.approx(model.predict(X) + 5.0)
    assert tr.export.verify(other, tmp_path / "a.json", X).agrees


def test_onnx_is_one_tree_ensemble(tmp_path):
    onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
    pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    model = boosted([(3, 0.5, 1.5), (0, 2.0, -1.0)], (0.0,) * 4)
    for name in ("a", "b"):
        tr.export.write(model, tmp_path / name, "onnx", name="m", version="1")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    graph = onnx.load(tmp_path / "a")
    assert [node.op_type for node in graph.graph.node] == ["IsNaN", "Where", "TreeEnsembleRegressor"]
    assert {item.domain for item in graph.opset_import} == {"", "ai.onnx.ml"}
    target, replica = tr.export.read(tmp_path / "a")
    assert target == "onnx"
    X = np.array([[2.0, 0.0, 0.0, 0.5], [3.0, 0.0, 0.0, 0.6], [np.nan, 0.0, 0.0, np.nan]])
    assert replica.score_rows(X).tolist() == [0.0, 0.5, 0.0]


@pytest.mark.parametrize("to", SINGLE)
def test_numbers_beyond_single_precision_are_refused(tmp_path, to):
    if to == "onnx":
        pytest.importorskip("onnx", reason="the extra onnx is not installed")
    with pytest.raises(InputError, match="a threshold of 'age' does not fit into float32"):
        tr.export.write(boosted([(0, 1.0, 1.0), (1, 1e39, 1.0)]), tmp_path / "x", to)
    with pytest.raises(InputError, match="the weights do not fit into float32"):
        tr.export.write(boosted([(0, 1.0, 1e39)]), tmp_path / "x", to)


@pytest.mark.parametrize("to", tr.export.TARGETS)
def test_what_is_refused_in_one_line(tmp_path, to):
    empty = StumpFunction(1, np.array([], dtype=np.int64), np.array([]), np.array([]))
    with pytest.raises(InputError, match=r"RankBoost has learned no threshold.*nothing to export"):
        tr.export.write(stump_model(("a",), empty, source="RankBoost"), tmp_path / "x", to)
    model = boosted([(0, 1.0, 1.0)])
    with pytest.raises(InputError, match=r"thresholds need no scaling|has no use for normalizers"):
        tr.export.write(model, tmp_path / "x", to, normalizers=True)
    if to in ("elasticsearch", "opensearch", "solr"):
        with pytest.raises(InputError, match="cannot hold: rename it"):
            tr.export.write(boosted([(0, 1.0, 1.0)], names=("a\x07b",)), tmp_path / "x", to)
    assert not list(tmp_path.iterdir())


def test_the_version_changes_whenever_a_score_could(tmp_path):
    def name(model, **settings):
        return tr.export.write(model, tmp_path / "x", "solr", **settings).name

    models = [boosted([(0, 1.0, 1.0)]), boosted([(0, 1.0, 2.0)]), boosted([(0, 1.5, 1.0)]), boosted([(1, 1.0, 1.0)])]
    models += [boosted([(0, 1.0, 1.0)], offset=1.0), boosted([(0, 1.0, 1.0)], (0.0,) * 4)]
    assert len({*map(name, models), name(models[0], shift=1.0)}) == 7


TREE = '{"nodeid": 0, "depth": 0, "split": "a", "split_condition": 1, "yes": 1, "no": 2, "missing": 1, "children": %s}'
PAIR = '[{"nodeid": 1, "leaf": 1}, {"nodeid": 2, "leaf": 2}]'
FOREST = '{"model": {"name": "m", "model": {"type": "model/xgboost+json", "definition": %s}}}'
SOLR = '{"class": "org.apache.solr.ltr.model.MultipleAdditiveTreesModel", "name": "m", "features": [{"name": "a"}], %s}'
PROFILE = "rank-profile x {\n    first-phase {\n        expression {\n            %s\n        }\n    }\n}"
STUMPS = (
    '{"format": "toprank-stumps", "version": 1, "toprank": "", "source": "", "missing": "refuse", "offset": 0, '
    '"features": [{"name": "a", "thresholds": %s, "scores": %s}]}'
)


@pytest.mark.parametrize(
    "content",
    [
        FOREST % "[]",
        FOREST % "{}",
        FOREST % '"["',
        FOREST % f"[{TREE % '[]'}]",
        FOREST % f"[{TREE % PAIR}]".replace('"missing": 1', '"missing": 7'),
        FOREST % f"[{TREE % PAIR}]".replace('"yes": 1, "no": 2', '"yes": 2, "no": 1'),
        FOREST % f"[{TREE % PAIR}]".replace('"depth": 0, ', ""),
        FOREST % f"[{TREE % PAIR}]".replace('"leaf": 2', '"leaf": 1e99'),
        FOREST % ('{"objective": "reg:logistic", "splits": [%s]}' % (TREE % PAIR)),
        FOREST % ("[" + '{"nodeid": 0, "children": [' * 5000 + "]}" * 5000 + "]"),
        SOLR % '"params": {}',
        SOLR % '"params": {"trees": [{"weight": "x", "root": {"value": "1"}}]}',
        SOLR % '"params": {"trees": [{"weight": "1", "root": {"feature": "a", "threshold": "1"}}]}',
        SOLR % '"params": {"trees": [{"weight": "1", "root": {"value": "1", "left": {"value": "1"}}}]}',
        SOLR % ('"params": {"trees": [{"weight": "1", "root": {"feature": "z", "threshold": "1", '
                '"left": {"value": "1"}, "right": {"value": "1"}}}]}'),
        PROFILE % "if (f_a < 1.0, 0.0, 1.0)",
        PROFILE % "if (f_a < 1.0, 0.0",
        PROFILE % "if (f_a < 1.0, 0.0, 1.0) 3",
        PROFILE % "if (1.0, 0.0, 1.0)",
        PROFILE % "if (f_a < 1.0, 0.0, x)",
        PROFILE % ("if (f_a < 1.0, 0.0, " * 5000),
        STUMPS % ("[1]", "[1]"),
        STUMPS % ("[1, 1]", "[1, 2, 3]"),
        STUMPS % ("[2, 1]", "[1, 2, 3]"),
        STUMPS % ("[1]", '["a", 2]'),
        STUMPS.replace('"refuse"', '"fill"') % ("[1]", "[1, 2]"),
        STUMPS.replace('"version": 1', '"version": 2') % ("[1]", "[1, 2]"),
    ],
)  # fmt: skip
def test_files_that_are_not_exports(tmp_path, content):
    path = tmp_path / "file"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        tr.export.read(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
