"""Boosted trees in every target: against an oracle of each engine, missing values, and the packages' own files."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import toprank as tr
from tests.export.engines import RESTATED, as_rows, oracle_scores
from tests.export.models import linear_model, tree_model
from tests.export.test_boosted import targets
from tests.interop.test_tree_files import boosted, raw, table
from tests.oracles import export_trees as oracle
from toprank.errors import InputError
from toprank.export.model_trees import single_below
from toprank.model.functions import TreeFunction

NAMES = ("bm25", "age", "clicks")
grid = st.sampled_from([-2.0, -0.1, 0.0, 1e-7, 0.1, 0.25, 1.0, 1.0 + 2**-24, 3.0, 1e6])
leaves = st.floats(-3, 3).map(lambda value: round(value, 3))
trees = st.recursive(
    leaves,
    lambda inner: st.tuples(st.integers(0, 2), grid, st.booleans(), inner, inner),
    max_leaves=6,
)
tables = st.lists(st.lists(st.one_of(grid, st.just(math.nan)), min_size=3, max_size=3), min_size=1, max_size=6)


def seen_by(replica, X):
    columns = list(range(3)) if replica.names is None else [NAMES.index(name) for name in replica.names]
    return np.ascontiguousarray(X[:, columns[: replica.n_features]])


@pytest.mark.parametrize("to", targets())
@given(
    forest=st.lists(trees, min_size=1, max_size=4),
    X=tables,
    fill=st.sampled_from([None, (0.0,) * 3]),
    shift=st.booleans(),
)
def test_the_engine_scores_as_the_model(tmp_path_factory, to, forest, X, fill, shift):
    assume(any(isinstance(tree, tuple) for tree in forest))
    path = tmp_path_factory.getbasetemp() / f"trees-{to}"
    model, X = tree_model(NAMES, TreeFunction.build(3, forest), None if fill is None else np.array(fill)), np.array(X)
    rows = as_rows(X)
    filled = [[0.0 if value is None and fill is not None else value for value in row] for row in rows]
    truth = np.array([sum(oracle.nested(tree, row) for tree in forest) for row in filled])
    assert model.predict(X).tolist() == pytest.approx(truth.tolist(), abs=1e-12)
    added = 2.5 if shift else 0.0
    try:
        tr.export.write(model, path, to, shift=added)
    except InputError as error:  # no one value goes all the ways that missing ones go
        refused = str(error)
    else:
        refused = ""
    if refused:
        assert to in ("solr", "ranklib")
        assert fill is None
        assert "--missing zero" in refused
        return
    _, replica = tr.export.read(path)
    seen = seen_by(replica, X)
    got = replica.score_rows(seen)
    if to != "onnx":
        assert got.tolist() == oracle_scores(oracle, to, path, NAMES, rows)
    exact = np.array_equal(X.astype(np.float32), X, equal_nan=True)
    if exact:
        assert np.abs(got - truth - added).max() <= 1e-5
    assert (np.abs(got - truth - added) <= replica.rounding(seen) + 1e-12).all()


@pytest.mark.parametrize("to", targets())
@pytest.mark.parametrize("package", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_models_of_the_packages_travel(tmp_path, to, package, gaps):
    X, y, lengths = table(gaps)
    booster = boosted(package, X, y, lengths)
    qid = np.repeat(np.arange(len(lengths)), lengths)
    missing = None
    try:
        export = tr.export.write(booster, tmp_path / "file", to)
    except InputError:
        missing, X = "error", np.nan_to_num(X)
        export = tr.export.write(booster, tmp_path / "file", to, missing=missing)
    assert missing is None or to in ("solr", "ranklib")
    check = tr.export.verify(booster, tmp_path / "file", X, qid=qid, to=to, missing=missing)
    assert check.agrees
    assert (check.tau, check.worst_overlap) == (pytest.approx(1.0, abs=1e-9), 1.0)
    assert check.largest_difference - abs(check.shift) * 1e-6 <= 1e-5
    assert any(export.missing in note for note in export.notes)
    if package == "xgboost" and to in ("elasticsearch", "solr", "onnx", "ranklib"):
        assert any("as the engine does" in note for note in export.notes)
        assert "moves no value across a threshold" in str(check)


def test_the_scores_are_those_of_the_package(tmp_path):
    for package in ("lightgbm", "xgboost"):
        X, y, lengths = table(0.2)
        booster = boosted(package, X, y, lengths)
        tr.export.write(booster, tmp_path / "file", "elasticsearch", shift=0.0)
        _, replica = tr.export.read(tmp_path / "file")
        names = tr.export.fold(booster).names
        seen = np.ascontiguousarray(X[:, [names.index(name) for name in replica.names]])
        assert replica.score_rows(seen) == pytest.approx(raw(package, booster, X), abs=1e-6)


@pytest.mark.parametrize("to", RESTATED)
def test_a_wrong_threshold_leaf_or_side_is_found(tmp_path, to):
    X, y, lengths = table(0.2)
    qid = np.repeat(np.arange(len(lengths)), lengths)
    right = tr.export.fold(boosted("lightgbm", X, y, lengths), missing="zero")
    X = np.nan_to_num(X)
    value, leaf = right.function.value, right.function.feature < 0
    for moved in (np.where(leaf, -value, value), np.where(leaf, value, value + 0.4)):
        wrong = replace(right.function, value=moved)
        tr.export.write(tree_model(right.names, wrong, right.rule.fill), tmp_path / "file", to)
        assert not tr.export.verify(right, tmp_path / "file", X, qid=qid, to=to).agrees


def test_versions_of_the_plugin_differ_in_missing_values(tmp_path):
    model = tree_model(("a",), TreeFunction.build(1, [(0, 1.0, True, 0.0, 1.0), (0, -1.0, True, 0.0, 4.0)]))
    tr.export.write(model, tmp_path / "m.json", "opensearch", shift=0.0)
    gap = np.array([[np.nan], [0.0], [2.0]])
    for gaps, scores in {None: [0.0, 4.0, 5.0], "right": [5.0, 4.0, 5.0], "zero": [4.0, 4.0, 5.0]}.items():
        assert tr.export.read(tmp_path / "m.json", gaps=gaps)[1].score_rows(gap).tolist() == scores
        version = gaps or "missing"
        text = (tmp_path / "m.json").read_text()
        assert [oracle.plugin(text, ["a"], row, version) for row in as_rows(gap)] == scores
        check = tr.export.verify(model, tmp_path / "m.json", gap, gaps=gaps)
        assert check.agrees is (gaps is None)
    tr.export.write(model, tmp_path / "m.json", "vespa")
    with pytest.raises(InputError, match="gaps is for elasticsearch"):
        tr.export.verify(model, tmp_path / "m.json", gap, gaps="zero")


def test_one_value_that_goes_every_way_stands_in(tmp_path):
    one = tree_model(("a",), TreeFunction.build(1, [(0, 1.0, False, 0.0, 1.0), (0, 3.0, True, 0.0, 4.0)]))
    tr.export.write(one, tmp_path / "s.json", "solr")
    (feature,) = json.loads((tmp_path / "s.json.features.json").read_text())
    assert 1.0 < feature["params"]["defaultValue"] <= 3.0
    assert tr.export.verify(one, tmp_path / "s.json", np.array([[np.nan], [0.0], [2.0], [4.0]])).agrees
    none = tree_model(("a",), TreeFunction.build(1, [(0, 3.0, False, 0.0, 1.0), (0, 1.0, True, 0.0, 4.0)]))
    for to in ("solr", "ranklib"):
        with pytest.raises(InputError, match=r"splits of 'a' send missing values.*--missing zero"):
            tr.export.write(none, tmp_path / "x", to)
        assert tr.export.write(none, tmp_path / "x", to, missing="error").files


def test_a_threshold_between_numbers_and_gaps(tmp_path):
    every = float(np.finfo(np.float64).max)
    model = tree_model(("a",), TreeFunction.build(1, [(0, every, False, 0.0, 1.0)]))
    X = np.array([[1e30], [np.nan], [0.0]])
    for to in ("elasticsearch", "vespa", "json"):
        tr.export.write(model, tmp_path / "f", to)
        assert tr.export.read(tmp_path / "f")[1].score_rows(X).tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("to", ["onnx", "ranklib", "solr"])
def test_a_constant_counts_once_towards_what_single_precision_holds(tmp_path, to):
    large = tree_model(("a",), TreeFunction.build(1, [(0, 0.5, False, 0.0, 1.0)]), np.zeros(1), offset=2e38)
    tr.export.write(large, tmp_path / "x", to)
    with pytest.raises(InputError, match="weights do not fit into float32"):
        tr.export.write(large, tmp_path / "y", to, shift=2e38)


def test_json_goes_both_ways(tmp_path):
    schema = pytest.importorskip("jsonschema").Draft202012Validator(tr.export.schema("trees"))
    X, y, lengths = table(0.2)
    for missing in (None, "zero", "error"):
        model = tr.export.fold(boosted("lightgbm", X, y, lengths), missing=missing)
        tr.export.write(model, tmp_path / "a.json", "json")
        schema.validate(json.loads((tmp_path / "a.json").read_text()))
        again = tr.export.fold(tmp_path / "a.json")
        rows = np.nan_to_num(X) if missing == "error" else X
        assert again.predict(rows).tolist() == model.predict(rows).tolist()
        assert (again.names, again.rule.words, again.source) == (model.names, model.rule.words, "LightGBM")
    broken = json.loads((tmp_path / "a.json").read_text())
    broken["nodes"][0]["low"] = 0
    (tmp_path / "a.json").write_text(json.dumps(broken))
    with pytest.raises(InputError, match=r"a\.json.*behind"):
        tr.export.fold(tmp_path / "a.json")


def test_what_is_refused_in_one_line(tmp_path):
    with pytest.raises(InputError, match="has a rule for missing values already"):
        tr.export.fold(linear_model(("a",), np.ones(1)), missing="zero")
    deep = 1.0
    for _ in range(500):
        deep = (0, 1.0, False, 0.0, deep)
    with pytest.raises(InputError, match="500 splits deep"):
        tr.export.write(tree_model(("a",), TreeFunction.build(1, [deep])), tmp_path / "x", "vespa")
    with pytest.raises(InputError, match="a threshold of 'a' does not fit into float32"):
        tr.export.write(tree_model(("a",), TreeFunction.build(1, [(0, 1e39, False, 0.0, 1.0)])), tmp_path / "x", "solr")
    assert single_below(1e30) <= 1e30
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    "content",
    [
        "## LambdaMART\n",
        "## LambdaMART\n<ensemble></ensemble>",
        "## LambdaMART\n<ensemble><tree><split><output>1</output></split></tree></ensemble>",
        '## LambdaMART\n<ensemble><tree weight="1"><split><feature>1</feature></split></tree></ensemble>',
        '## LambdaMART\n<ensemble><tree weight="1"><split><output>x</output></split></tree></ensemble>',
    ],
)
def test_files_that_are_no_ensembles(tmp_path, content):
    (tmp_path / "file").write_text(content)
    with pytest.raises(InputError, match="file"):
        tr.export.read(tmp_path / "file")
