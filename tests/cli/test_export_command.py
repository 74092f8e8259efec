"""`toprank export` and `verify-export` as a stranger meets them."""

import json
import shutil
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

import toprank as tr
from tests.export.models import linear_model
from toprank.model import Inputs, LinearFunction

from .calling import call, fail, run


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    data = tr.datasets.make_graded(n_queries=12, n_docs=(3, 12), n_features=3, random_state=0)
    tr.write_letor(data, folder / "test.txt")
    ranker = tr.ListNet()
    ranker.function_, ranker.inputs_ = LinearFunction(np.array([0.5, -1.0, 0.25])), Inputs(3)
    ranker.n_features_in_, ranker.n_queries_in_, ranker.learned_from_ = 3, 12, None
    ranker.save(folder / "model.json")
    return folder


@pytest.mark.parametrize("to", tr.export.TARGETS)
def test_export_and_verify(capsys, home, tmp_path, to):
    if to == "onnx":
        pytest.importorskip("onnx", reason="the extra onnx is not installed")
        pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    if to == "sql":
        pytest.importorskip("duckdb", reason="the extra sql is not installed")
    file = tmp_path / "out"
    out = run(capsys, "export", home / "model.json", "--to", to, "-o", file)
    assert out.startswith(f"wrote {file}")
    assert "missing values are refused" in out
    out = run(capsys, "verify-export", home / "model.json", file, home / "test.txt")
    for words in ("largest score difference", "Kendall's tau", "top 10 overlap", "the rankings agree"):
        assert words in out
    told = json.loads(run(capsys, "verify-export", home / "model.json", file, home / "test.txt", "--json", "--top", 3))
    assert told["agrees"] is True
    assert told["top"] == 3
    assert told["n_queries"] == 12


def test_machine_output(capsys, home, tmp_path):
    told = json.loads(
        run(
            capsys,
            "export",
            home / "model.json",
            "--to",
            "solr",
            "-o",
            tmp_path / "s.json",
            "--json",
            "--store",
            "films",
        )
    )
    assert told["target"] == "solr"
    assert told["files"] == [str(tmp_path / "s.json"), str(tmp_path / "s.json.features.json")]
    assert json.loads((tmp_path / "s.json").read_text())["store"] == "films"
    assert told["missing"] == "missing values are refused"


def test_standard_output_is_the_file_alone(home):
    command = [sys.executable, "-m", "toprank", "export", str(home / "model.json"), "--to", "elasticsearch", "-o", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["model"]["model"]["type"] == "model/linear"
    assert "_createmodel" in done.stderr


def test_disagreement_is_exit_code_1(capsys, home, tmp_path):
    run(capsys, "export", home / "model.json", "--to", "json", "-o", tmp_path / "m.json")
    text = (tmp_path / "m.json").read_text().replace('"weight": -1.0', '"weight": 1.0')
    (tmp_path / "m.json").write_text(text)
    code, out, err = call(capsys, "verify-export", home / "model.json", tmp_path / "m.json", home / "test.txt")
    assert (code, err) == (1, "")
    assert "THE RANKINGS DISAGREE" in out


def test_names_come_from_a_list_or_a_file(capsys, home, tmp_path):
    (tmp_path / "names.txt").write_text("bm25\nage\n\nclicks\n")
    (tmp_path / "names.json").write_text('["bm25", "age", "clicks"]')
    for names in ("bm25,age, clicks", tmp_path / "names.txt", tmp_path / "names.json"):
        run(capsys, "export", home / "model.json", "--to", "solr", "-o", tmp_path / "m.json", "--features", names)
        body = json.loads((tmp_path / "m.json").read_text())
        assert body["params"]["weights"] == {"bm25": 0.5, "age": -1.0, "clicks": 0.25}
        assert "agree" in run(
            capsys, "verify-export", home / "model.json", tmp_path / "m.json", home / "test.txt", "--features", names
        )
    (tmp_path / "names.json").write_text("[")
    export = ("export", home / "model.json", "--to", "solr", "-o", tmp_path / "x", "--features")
    assert "not a list of names" in fail(capsys, *export, tmp_path / "names.json")
    assert "2 names are given for the 3 features" in fail(capsys, *export, "a,b")
    assert "the name 'a' is given twice" in fail(capsys, *export, "a,b,a")
    assert "cannot hold: rename it with --features" in fail(capsys, *export, "a,b,c=d")


def test_shift_from_data_makes_scores_positive(capsys, home, tmp_path):
    out = run(
        capsys, "export", home / "model.json", "--to", "opensearch", "-o", tmp_path / "m.json",
        "--shift-from", home / "test.txt", "--name", "mine", "--version", "3", "--feature-set", "films",
    )  # fmt: skip
    assert "_featureset/films/" in out
    assert "mine_3" in out
    assert "negative" not in out
    _, replica = tr.export.read(tmp_path / "m.json")
    assert replica.score_rows(tr.read_letor(home / "test.txt").X.astype(np.float64)).min() > 0
    assert "agree" in run(capsys, "verify-export", home / "model.json", tmp_path / "m.json", home / "test.txt")
    both = ("--shift", "1", "--shift-from", home / "test.txt")
    assert "give one of them" in fail(
        capsys, "export", home / "model.json", "--to", "solr", "-o", tmp_path / "x", *both
    )


def test_vespa_options(capsys, home, tmp_path):
    run(
        capsys, "export", home / "model.json", "--to", "vespa", "-o", tmp_path / "p", "--phase", "second",
        "--map", "f1=bm25(title)", "--map", "f2=if(a == 1, 2, 3)",
    )  # fmt: skip
    text = (tmp_path / "p").read_text()
    assert "expression: bm25(title)" in text
    assert "expression: if(a == 1, 2, 3)" in text
    assert "second-phase" in text
    wrong = ("export", home / "model.json", "--to", "vespa", "-o", tmp_path / "x", "--map")
    assert "write NAME=EXPRESSION" in fail(capsys, *wrong, "f1")
    assert "no feature 'f9'" in fail(capsys, *wrong, "f9=now")


@pytest.mark.filterwarnings("default:features are matched by position")
def test_a_folded_pipeline_from_a_file(capsys, home, tmp_path):
    center, scale = np.ones(3), np.full(3, 2.0)
    model = linear_model(("a", "b", "c"), np.array([0.5, -1.0, 0.25]), 0.25, center=center, scale=scale)
    tr.export.write(model, tmp_path / "pipe.json", "json")
    run(capsys, "export", tmp_path / "pipe.json", "--to", "elasticsearch", "-o", tmp_path / "es", "--normalizers")
    assert "standard_deviation" in (tmp_path / "es").read_text()
    assert "agree" in run(capsys, "verify-export", tmp_path / "pipe.json", tmp_path / "es", home / "test.txt")


def test_one_clear_line_on_bad_input(capsys, home, tmp_path):
    model, out = home / "model.json", tmp_path / "x"
    assert "did you mean 'solr'" in fail(capsys, "export", model, "--to", "sol", "-o", out)
    assert "nope.json" in fail(capsys, "export", tmp_path / "nope.json", "--to", "solr", "-o", out)
    assert "would mix on standard output" in fail(capsys, "export", model, "--to", "solr", "-o", "-", "--json")
    assert "solr has no use for expressions" in fail(
        capsys, "export", model, "--to", "solr", "-o", out, "--map", "f1=bm25(x)"
    )
    assert "cannot write" in fail(capsys, "export", model, "--to", "solr", "-o", tmp_path / "no" / "x")
    assert "say which with --to" in fail(capsys, "verify-export", model, home / "test.txt", home / "test.txt")
    assert not out.exists()
    (tmp_path / "boost.json").write_text("{}")
    assert "boost.json" in fail(capsys, "export", tmp_path / "boost.json", "--to", "solr", "-o", out)


def test_sql_goes_through_a_pipe_into_sqlite(capsys, home, tmp_path):
    data = tr.read_letor(home / "test.txt")
    connection = sqlite3.connect(tmp_path / "docs.db")
    connection.execute("CREATE TABLE docs (query, id, bm25, age, clicks)")
    rows = zip(data.qid.tolist(), range(data.n_docs), *data.X.astype(float).T.tolist(), strict=True)
    connection.executemany("INSERT INTO docs VALUES (?, ?, ?, ?, ?)", rows)
    connection.commit()
    options = ("--to", "sql", "--dialect", "sqlite", "--table", "docs", "--features", "bm25,age,clicks")
    command = [sys.executable, "-m", "toprank", "export", str(home / "model.json"), *options, "-o", "-"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if shutil.which("sqlite3") is None:
        pytest.skip("the program sqlite3 is not installed")
    done = subprocess.run(
        ["sqlite3", "-list", tmp_path / "docs.db"], input=text, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    found = [line.split("|") for line in done.stdout.splitlines()]
    places = tr.load(home / "model.json").rank(data)
    assert {int(row[1]): int(row[3]) for row in found} == dict(enumerate(places.tolist()))
    file = tmp_path / "rank.sql"
    for form in ("select", "view", "expression"):
        run(capsys, "export", home / "model.json", *options[:-2], "--form", form, "-o", file)
        out = run(capsys, "verify-export", home / "model.json", file, home / "test.txt")
        assert "sql run by SQLite" in out
        assert "the rankings agree" in out
    wrong = ("export", home / "model.json", "--to", "sql", "-o", tmp_path / "x")
    assert "dialect must be one of" in fail(capsys, *wrong, "--dialect", "oracle")
    assert "form must be one of" in fail(capsys, *wrong, "--form", "table")


def test_sql_on_standard_output_is_read_by_duckdb(home):
    duckdb = pytest.importorskip("duckdb", reason="the extra sql is not installed")
    data = tr.read_letor(home / "test.txt")
    options = ("--to", "sql", "--dialect", "duckdb", "--table", "docs", "--features", "bm25,age,clicks")
    command = [sys.executable, "-m", "toprank", "export", str(home / "model.json"), *options, "-o", "-"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    connection = duckdb.connect()
    connection.execute("CREATE TABLE docs (query BIGINT, id BIGINT, bm25 DOUBLE, age DOUBLE, clicks DOUBLE)")
    rows = zip(data.qid.tolist(), range(data.n_docs), *data.X.astype(float).T.tolist(), strict=True)
    connection.executemany("INSERT INTO docs VALUES (?, ?, ?, ?, ?)", list(rows))
    found = connection.execute(text).fetchall()
    places = tr.load(home / "model.json").rank(data)
    assert {int(row[1]): int(row[3]) for row in found} == dict(enumerate(places.tolist()))


@pytest.mark.parametrize("package", ["lightgbm", "xgboost"])
def test_a_file_of_another_package_is_a_model(capsys, home, tmp_path, package):
    module = pytest.importorskip(package)
    data = tr.read_letor(home / "test.txt")
    if package == "lightgbm":
        model, train = (
            tmp_path / "trees.txt",
            module.Dataset(data.X, data.y, group=data.lengths, params={"verbosity": -1}),
        )
        options = {"objective": "lambdarank", "verbosity": -1, "min_data_in_leaf": 2}
        module.train(options, train, 5).save_model(model)
    else:
        model, train = tmp_path / "trees.json", module.DMatrix(data.X, data.y)
        train.set_group(data.lengths)
        module.train({"objective": "rank:ndcg", "verbosity": 0}, train, 5).save_model(model)
    for to in ("elasticsearch", "solr", "vespa", "ranklib", "json"):
        run(capsys, "export", model, "--to", to, "-o", tmp_path / "out", "--missing", "error")
        out = run(capsys, "verify-export", model, tmp_path / "out", home / "test.txt", "--to", to, "--missing", "error")
        assert "the rankings agree" in out
    assert "ndcg@10" in run(capsys, "evaluate", model, home / "test.txt", "--measure", "ndcg@10")
    saved = ("export", home / "model.json", "--to", "json", "-o", tmp_path / "x", "--missing", "zero")
    assert "has a rule for missing values already" in fail(capsys, *saved)
