"""Ordinary tables on the command line."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys

import pandas as pd
import pytest

import toprank as tr
from toprank import InputError

from .calling import fail, run

ROWS = "query;label;doc_id;title;bm25;age\na;1;x1;red;2.5;10\na;0;x2;blue;0.5;30\nb;0;x3;tea;1.5;20\nb;2;x4;cup;9.5;2\n"


@pytest.fixture
def home(tmp_path):
    (tmp_path / "t.csv").write_text(ROWS)
    (tmp_path / "t.tsv").write_text(ROWS.replace(";", "\t"))
    (tmp_path / "plain.csv").write_text("query,bm25,age,doc_id\na,1.0,3,x1\na,2.0,1,x2\n")
    (tmp_path / "gap.csv").write_text("query,label,bm25\na,1,2.5\na,0,\n")
    return tmp_path


def test_text_columns_are_named_and_left_out_on_request(capsys, home):
    message = fail(capsys, "info", home / "t.csv")
    assert "column 'title' (String) cannot be a feature" in message
    assert "exclude=" not in message
    for file in ("t.csv", "t.tsv"):
        about = json.loads(run(capsys, "info", home / file, "--exclude", "title", "--json"))
        assert (about["n_features"], about["n_docs"]) == (2, 4)
    about = json.loads(run(capsys, "info", home / "t.csv", "--features", "age", "--json"))
    assert about["n_features"] == 1


def test_a_model_takes_its_own_columns_from_a_wider_table_and_ranks_without_grades(capsys, home, tmp_path):
    model = tmp_path / "m.json"
    run(capsys, "fit", home / "t.csv", "--exclude", "title", "-o", model)
    assert "ndcg@10" in run(capsys, "evaluate", model, home / "t.csv")
    lines = run(capsys, "rank", model, home / "plain.csv").splitlines()
    assert sorted(line.split("\t")[1] for line in lines) == ["x1", "x2"]  # ids are kept
    scores = tr.load(model).predict(tr.read_table(home / "plain.csv", label=None))
    assert [float(line.split("\t")[3]) for line in lines] == sorted(scores, reverse=True)
    graded = run(capsys, "rank", model, home / "t.csv").splitlines()
    assert len(graded) == 4


def test_a_bad_cell_is_named_by_file_and_line(capsys, home):
    message = fail(capsys, "convert", home / "gap.csv", home / "gap.txt")
    assert "gap.csv: column 'bm25' is empty in line 3:" in message
    assert not (home / "gap.txt").exists()
    frame = pd.read_csv(home / "gap.csv")
    with pytest.raises(InputError, match="is empty in row 1:"):
        tr.read_table(frame)


def test_standard_input_may_be_a_table(home):
    command = [sys.executable, "-m", "toprank", "info", "-", "--sep", ";", "--exclude", "title", "--json"]
    done = subprocess.run(command, input=ROWS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["n_docs"] == 4
    broken = subprocess.run(command, input="query;label;x\na;1;\n", capture_output=True, text=True, check=False)
    assert broken.returncode == 2
    assert "no column 'title'" in broken.stderr


def asked(*command, text):
    command = [sys.executable, "-m", "toprank", *map(str, command)]
    return subprocess.run(command, input=text, capture_output=True, check=False)


def test_standard_input_is_ranked_without_grades(capsys, home, tmp_path):
    """Tables and LETOR text, with or without grades: the same lines as from a file."""
    run(capsys, "fit", home / "t.csv", "--exclude", "title", "-o", tmp_path / "m.json")
    data = tr.datasets.make_graded(n_queries=5, n_docs=6, n_features=4, random_state=0)
    tr.ListNet().fit_queries(data).save(tmp_path / "letor.json")
    tr.write_letor(data, home / "graded.txt")
    text = (home / "graded.txt").read_bytes()
    bare = b"".join(line.partition(b" ")[2].rstrip() + b" #a, b; c\n" for line in text.splitlines())
    (home / "bare.txt").write_bytes(bare)
    files = {"plain.csv": "m", "t.csv": "m", "t.tsv": "m", "bare.txt": "letor", "graded.txt": "letor"}
    for file, model in files.items():
        done = asked("rank", tmp_path / f"{model}.json", "-", text=(home / file).read_bytes())
        assert done.stdout.decode() == run(capsys, "rank", tmp_path / f"{model}.json", home / file), done.stderr
    wide = asked("evaluate", tmp_path / "m.json", "-", text=(home / "t.csv").read_bytes())
    assert wide.stdout.decode() == run(capsys, "evaluate", tmp_path / "m.json", home / "t.csv")
    assert b"expected a label" in asked("evaluate", tmp_path / "letor.json", "-", text=bare).stderr


def test_grades_are_no_feature_where_nothing_is_graded():
    data = tr.read_table(_csv("query,label,x\na,1,2.0\na,0,1.0\n"), label=None)
    assert data.feature_names == ("x",)
    assert data.y.tolist() == [0, 0]
    assert tr.read_table(_csv("query,label\na,1\na,0\n"), label=None, features=["label"]).feature_names == ("label",)


def test_one_cell_of_text_among_numbers_is_named(capsys, home):
    (home / "bad.csv").write_text("query,label,x,y\na,1,2.5,1\na,0,,2\na,0,oops,3\na,1,7,4\n")
    message = fail(capsys, "info", home / "bad.csv")
    assert f"{home / 'bad.csv'}: column 'x' holds 'oops' in line 4: not a number" in message
    (home / "bad.csv").write_text("query,label,x\na,1,2.5\na,none,1\na,0,1\n")
    assert "bad.csv: column 'label' holds 'none' in line 3: not a number" in fail(capsys, "info", home / "bad.csv")


def test_errors_of_tables_name_the_file(capsys, home):
    for options in ((), ("--exclude", "titel"), ("--features", "age", "--qid", "q")):
        assert str(home / "t.csv") in fail(capsys, "info", home / "t.csv", *options)
    (home / "none.csv").write_text("query,label,x\n")
    assert f"{home / 'none.csv'}: the table is empty" in fail(capsys, "info", home / "none.csv")


def test_a_separator_is_one_character(capsys, home):
    assert "sep must be one character" in fail(capsys, "info", home / "t.csv", "--sep", ";;")
    about = json.loads(run(capsys, "info", home / "t.tsv", "--sep", "tab", "--exclude", "title", "--json"))
    assert about["n_features"] == 2


def test_a_document_id_column_is_taken_as_such():
    data = tr.read_table(_csv("query,label,doc_id,x\na,1,7,2.0\na,0,8,1.0\n"))
    assert data.feature_names == ("x",)
    assert data.doc_ids.tolist() == ["7", "8"]


def _csv(text):
    return pd.read_csv(io.StringIO(text))


def test_a_column_of_weights_is_taken_as_such_and_weight_aloud(tmp_path):
    """`weight` may as well be a feature (of a parcel, say): a line says that it was not read as one."""
    rows = ["a,1,1,0.5", "a,0,3,0.1", "b,1,2,0.7", "b,0,1,0.2"]
    for name in ("doc_weight", "weight"):
        (tmp_path / f"{name}.csv").write_text("\n".join([f"query,label,{name},x", *rows]) + "\n")
    cases = (
        *(("doc_weight", (), 1), ("weight", ("--doc-weight", "weight"), 1), ("weight", (), 1)),
        *(("weight", ("--features", "x,weight"), 2), ("weight", ("--exclude", "weight"), 1)),
    )
    for name, options, features in cases:
        command = [sys.executable, "-m", "toprank", "info", "--json", str(tmp_path / f"{name}.csv"), *options]
        told = subprocess.run(command, capture_output=True, text=True, check=True)
        assert json.loads(told.stdout)["n_features"] == features
        assert ("warning: column 'weight' is read as the weights" in told.stderr) == (name == "weight" and not options)
        assert "Warning:" not in told.stderr  # one line, no place in our source
    assert told.stderr == ""


def test_a_weight_column_is_warned_of_in_python_and_not_for_files_of_ours(tmp_path):
    frame = _csv("query,label,weight,x\na,1,3,2.0\na,0,1,1.0\n")
    with pytest.warns(UserWarning, match="column 'weight' is read as the weights of the documents"):
        read = tr.read_table(frame)
    assert read.doc_weight.tolist() == [3, 1]
    assert tr.read_table(frame, features=["weight", "x"]).doc_weight is None
    assert tr.read_table(frame, query_weight=None, exclude=["weight"]).doc_weight is None
    ours = tr.read_table(frame, features=["weight", "x"])
    assert tr.read_table(tr.write_parquet(ours, tmp_path / "d.parquet")).feature_names == ("weight", "x")


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_letor_text_without_grades_is_ranked_as_with_them(capsys, tmp_path, suffix):
    data = tr.datasets.make_graded(n_queries=300, n_docs=30, n_features=4, random_state=0)
    tr.ListNet().fit_queries(data).save(tmp_path / "m.json")
    graded, bare = tmp_path / "graded.txt", tmp_path / f"bare.txt{suffix}"
    tr.write_letor(data, graded)
    lines = graded.read_bytes().splitlines(keepends=True)
    text = b"".join(line.partition(b" ")[2] for line in lines)
    bare.write_bytes(gzip.compress(text) if suffix else text)
    assert run(capsys, "rank", tmp_path / "m.json", bare) == run(capsys, "rank", tmp_path / "m.json", graded)
    assert "expected a label" in fail(capsys, "evaluate", tmp_path / "m.json", bare)
    bare = tmp_path / "bad.txt"
    bare.write_bytes(b"qid:1 1:0.5\nqid:1 1=3\n")
    assert f"{bare}:2:7: expected feature:value" in fail(capsys, "rank", tmp_path / "m.json", bare)
