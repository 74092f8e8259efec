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
