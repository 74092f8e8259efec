"""One option --missing, with one meaning, on every command that reads data."""

import json

import pytest

import toprank as tr
from tests.cli.calling import fail, run

ROWS = "query,label,bm25,age\n" + "".join(
    f"q{q},{d % 2},{d * 1.5 + q},{'' if d == 2 else 10 * d + q}\n" for q in range(8) for d in range(4)
)


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "train.csv"
    file.write_text(ROWS)
    return file


@pytest.mark.parametrize("missing", ["zero", "median", "indicator"])
def test_fit_takes_the_rule_as_an_option_or_a_parameter(capsys, tmp_path, table, missing):
    for name, way in {"a": ("--missing", missing), "b": ("-p", f"missing={missing}")}.items():
        run(capsys, "fit", table, *way, "-o", tmp_path / name)
    models = [tr.load(tmp_path / name) for name in "ab"]
    assert [model.missing for model in models] == [missing, missing]
    assert models[0].coef_.tolist() == models[1].coef_.tolist()
    run(capsys, "evaluate", tmp_path / "a", table)  # the model's own rule: nothing is asked
    run(capsys, "certify", tmp_path / "a", table)


def test_fit_refuses_two_rules(capsys, tmp_path, table):
    told = fail(capsys, "fit", table, "--missing", "zero", "-p", "missing=median", "-o", tmp_path / "m")
    assert "--missing zero and -p missing=median" in told


def test_refusals_name_file_line_column_and_option(capsys, tmp_path, table):
    for command in (("fit", table, "-o", tmp_path / "m"), ("convert", table, tmp_path / "x.txt")):
        told = fail(capsys, *command)
        for part in (str(table), "line 4", "'age'", "--missing zero"):
            assert part in told


def test_a_model_that_refuses_missing_cells_names_the_line(capsys, tmp_path, table):
    whole = tmp_path / "whole.csv"
    whole.write_text(ROWS.replace(",\n", ",5\n"))
    run(capsys, "fit", whole, "-o", tmp_path / "m.json")
    told = fail(capsys, "evaluate", tmp_path / "m.json", table)
    for part in (str(table), "line 4", "'age'", "fit with", "--missing"):
        assert part in told


def test_info_reports_missing_cells_and_never_refuses(capsys, table):
    values = json.loads(run(capsys, "info", table, "--json"))
    assert values["missing_cells"] == {"age": 8}
    assert values["constant_columns"] == []
    for missing in ("error", "zero", "median", "indicator"):
        assert "missing cells" in run(capsys, "info", table, "--missing", missing)


def test_convert_fills(capsys, tmp_path, table):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    found = {}
    for missing in ("zero", "median", "indicator"):
        run(capsys, "convert", table, tmp_path / "x.parquet", "--missing", missing)
        found[missing] = tr.read_table(tmp_path / "x.parquet")
    assert found["zero"].X[2].tolist() == [3.0, 0.0]
    assert found["median"].X[2].tolist() == [3.0, 13.5]
    assert found["indicator"].feature_names == ("bm25", "age", "age is missing")
    assert found["indicator"].X[2].tolist() == [3.0, 13.5, 1.0]
    run(capsys, "convert", table, tmp_path / "x.txt", "--missing", "median")
    assert tr.read_letor(tmp_path / "x.txt").X[2].tolist() == [3.0, 13.5]


@pytest.mark.parametrize("missing", ["zero", "median", "indicator"])
def test_compare_and_advise(capsys, table, missing):
    out = run(capsys, "compare", table, table, "--missing", missing, "--rankers", "ListNet", "--budget", 0, "--json")
    assert json.loads(out)
    run(capsys, "advise", table, "--radius", 1, "--missing", missing)


@pytest.mark.parametrize("missing", ["zero", "median"])
def test_the_elasticsearch_command_of_the_readme_takes_empty_cells(capsys, tmp_path, table, missing):
    model, es = tmp_path / "model.json", tmp_path / "es.json"
    run(capsys, "fit", table, "--missing", missing, "-o", model)
    run(capsys, "export", model, "--to", "elasticsearch", "--shift-from", table, "-o", es)


def test_trees_of_others_take_the_same_words(capsys, tmp_path, table):
    model = tmp_path / "model.json"
    run(capsys, "fit", table, "--missing", "zero", "-o", model)
    told = fail(capsys, "export", model, "--to", "json", "-o", tmp_path / "x", "--missing", "median")
    assert "learned in fit" in told


def test_folds_of_letor_text_take_no_rule_for_missing_cells(capsys, tmp_path):
    assert "--folds reads LETOR text" in fail(capsys, "compare", "--folds", tmp_path, "--missing", "zero")


def answers(tmp_path):
    def hit(doc, **values):
        log = [{"name": name, **({} if value is None else {"value": value})} for name, value in values.items()]
        return {"_id": doc, "fields": {"_ltrlog": [{"log": log}]}}

    hits = [hit("a", bm25=2.0, age=1.0), hit("b", bm25=4.0, age=None), hit("c", bm25=6.0, age=5.0)]
    file = tmp_path / "answers.jsonl"
    file.write_text(json.dumps({"query": "q", "answer": {"hits": {"hits": hits}}}) + "\n")
    return file


@pytest.mark.parametrize(
    ("missing", "row"), [("zero", [4.0, 0.0]), ("median", [4.0, 3.0]), ("indicator", [4.0, 3.0, 1.0])]
)
def test_read_logs_fills(capsys, tmp_path, missing, row):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    out = tmp_path / "out.parquet"
    run(capsys, "read-logs", answers(tmp_path), "--missing", missing, "-o", out)
    found = tr.read_table(out)
    assert found.X[1].tolist() == row
    assert found.feature_names == ("bm25", "age", "age is missing")[: len(row)]


def test_read_logs_refuses_with_the_option(capsys, tmp_path):
    told = fail(capsys, "read-logs", answers(tmp_path), "-o", tmp_path / "out.txt")
    assert "feature 'age' does not match document b of query q" in told
    assert "--missing zero" in told
    kept = tr.read_ltr_logs(answers(tmp_path), {"q": {"a": 1}}, missing="keep")
    assert kept.has_missing
    assert tr.ListNet(missing="median").fit_queries(kept).inputs_.missing.fill.tolist() == [4.0, 3.0]


@pytest.mark.parametrize("missing", ["zero", "median", "indicator"])
def test_clicks_fill_features(capsys, tmp_path, missing):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    log, features, out = tmp_path / "log.csv", tmp_path / "features.csv", tmp_path / "out.parquet"
    shown = [("q1", "a", 1, 1), ("q1", "b", 2, 0), ("q1", "b", 1, 1), ("q1", "a", 2, 1)] * 5
    log.write_text("query,document,position,clicked\n" + "".join(",".join(map(str, row)) + "\n" for row in shown))
    features.write_text("query,doc_id,bm25,age\nq1,a,1.0,7\nq1,b,2.0,\n")
    told = fail(capsys, "clicks", log, "--features", features, "-o", out)
    for part in (str(features), "line 3", "'age'", "--missing zero"):
        assert part in told
    run(capsys, "clicks", log, "--features", features, "--missing", missing, "-o", out)
    found = tr.read_table(out)
    wanted = {"zero": [2.0, 0.0], "median": [2.0, 7.0], "indicator": [2.0, 7.0, 1.0]}[missing]
    assert found.X[found.doc_ids.tolist().index("b")].tolist() == wanted
