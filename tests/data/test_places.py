"""What is wrong in a file is told with the file and the line, and with what to do about it."""

from __future__ import annotations

import csv
import gzip
import sys
from pathlib import Path

import numpy as np
import pytest

import toprank as tr
from tests.cli.calling import call, fail, run
from toprank.errors import InputError

CSV = "query,label,x\n"


@pytest.mark.parametrize("arrow", [True, False])
@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.csv", CSV + "1,0,1\n1,-1,2\n", "the negative grade -1 in line 3 of {file}"),
        ("a.csv", CSV + "1,0,1\n2,1,3\n1,-1,2\n", "the negative grade -1 in line 4 of {file}"),
        ("a.csv", CSV + "1,0,1\n1,2000,2\n", "the grade 2000 in line 3 of {file}"),
        ("a.csv", CSV + "1,0,1\n1,1,1e200\n", "1e+200 in column 0 ('x'), line 3 of {file}"),
        ("a.csv", CSV + "2,0,1\n1,0,1\n2,1,1e200\n", "1e+200 in column 0 ('x'), line 4 of {file}"),
        ("a.txt", "0 qid:1 1:1\n# a comment\n\n-1 qid:1 1:2\n", "the negative grade -1 in line 4 of {file}"),
        ("a.txt.gz", "0 qid:1 1:1\n\n-1 qid:1 1:2\n", "the negative grade -1 in line 3 of {file}"),
        ("a.csv", CSV + "1,0,1\n1,1\n", "{file}:3: expected 3 columns, got 2"),
        ("a.csv", CSV + "1,0,1\n1,1,2,3\n", "{file}:3: expected 3 columns, got 4"),
        ("a.csv", "query,label,x,x\n1,0,1,2\n1,1,2,3\n", "{file}:1: two columns are called 'x'"),
        ("a.csv", CSV + "1,good,1\n1,bad,2\n", "{file}: column 'label' must hold numbers, it holds 'good' in line 2"),
        ("a.csv", "query;label;x\n1;0;1,5\n1;1;2,5\n", "{file}: column 'x' holds '1,5' in line 2: a decimal comma"),
        ("a.csv", "query;label;x\n1;0,5;1\n1;1,5;2\n", "{file}: column 'label' holds '0,5' in line 2: a decimal comma"),
        ("a.csv", CSV.replace("x", "x,when") + "1,0,1,2024-01-01\n1,1,2,2024-02-01\n", "{file}: column 'when' holds"),
        ("a.json", "{}", "{file}: toprank reads LETOR text, .csv, .tsv, .parquet and .xlsx"),
        ("a.feather", "ARROW1", "{file}: toprank reads LETOR text, .csv, .tsv, .parquet and .xlsx"),
        ("a.foo", "hello, world\n", "a.foo:1:1: expected a label, which is a number (.foo is read as LETOR text"),
    ],
)
def test_fit_names_file_and_line(tmp_path, capsys, monkeypatch, name, text, says, arrow):
    if not arrow:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    code, out, err = call(capsys, "fit", path, "-o", tmp_path / "m.json")
    assert (code, out) == (2, "")
    assert says.format(file=path) in err.splitlines()[-1]
    assert not (tmp_path / "m.json").exists()


def test_dates_are_told_what_to_become(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("query,label,x,when\n1,0,1,2024-01-01\n1,1,2,2024-02-01\n")
    with pytest.raises(InputError, match=r"'when' holds dates, .*: exclude it, or turn it into a number"):
        tr.read_table(path)
    assert tr.read_table(path, exclude=["when"]).feature_names == ("x",)


def test_rows_of_parquet_and_frames_are_named(tmp_path):
    data = tr.QueryDataset.from_arrays(np.ones((2, 1)), [0, -1], ["a", "a"])
    tr.write_parquet(data, tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"the negative grade -1 in row 2 of .*a\.parquet"):
        tr.ListNet().fit_queries(tr.read_table(tmp_path / "a.parquet"))
    with pytest.raises(InputError, match=r"the negative grade -1 in row 1:"):
        tr.ListNet().fit_queries(data)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("q,a,1,0,1\nq,b,0,1,1\n", "line 3 of {file} has position 0"),
        ("q,a,1,0,1\nq,b,2,5,1\n", "line 3 of {file} has clicked = 5"),
        ("q,a,1,0,1\nq,,2,1,1\n", "{file}: column 'document' is empty in line 3"),
        ("q,a,1,0,1\nq,b,1,1,1\n", "lines 2 and 3 of {file} are one session and both have position 1"),
        ("q,a,1,0,1\nr,b,2,1,1\n", "line 3 of {file} has another query than its session"),
    ],
)
def test_click_logs_name_file_and_line(tmp_path, capsys, rows, says):
    path = tmp_path / "log.csv"
    path.write_text("query,document,position,clicked,session\n" + rows)
    (tmp_path / "f.csv").write_text("query,doc_id,x\nq,a,1\nq,b,2\n")
    error = fail(capsys, "clicks", path, "--features", tmp_path / "f.csv", "-o", tmp_path / "o.parquet")
    assert says.format(file=path) in error


def test_a_tab_in_an_id_is_refused_where_tabs_part_columns(tmp_path, capsys):
    path = tmp_path / "a.csv"
    with path.open("w") as file:
        csv.writer(file).writerows([["query", "label", "doc_id", "x"], ["q", 0, "a\tb", 1], ["q", 1, "c", 2]])
    run(capsys, "fit", path, "-o", tmp_path / "m.json")
    assert r"'a\tb' holds a tab, and tabs part the columns of the output: use --json" in fail(
        capsys, "rank", tmp_path / "m.json", path
    )
    assert '"a\\tb"' in run(capsys, "rank", tmp_path / "m.json", path, "--json")


def test_a_lazy_frame_is_read_as_a_table_and_refused_as_rows():
    polars = pytest.importorskip("polars")
    lazy = polars.DataFrame({"query": [1, 1], "label": [0, 1], "x": [1.0, 2.0]}).lazy()
    assert tr.read_table(lazy).X.tolist() == [[1.0], [2.0]]
    for call_ in (
        lambda: tr.QueryDataset.from_arrays(lazy.select("x"), [0, 1]),
        lambda: tr.ListNet().fit(lazy.select("x"), [0, 1]),
        lambda: tr.ListNet().fit_queries(tr.read_table(lazy)).predict(lazy.select("x")),
    ):
        with pytest.raises(InputError, match=r"a LazyFrame holds no rows yet: call \.collect\(\)"):
            call_()


def test_a_spreadsheet_is_read_with_ids_as_written(tmp_path):
    openpyxl = pytest.importorskip("openpyxl", reason="the extra excel is not installed")
    book = openpyxl.Workbook()
    for row in (["query", "doc_id", "label", "x"], ["007", 12, 1, 0.5], [7, "d", 0, None], ["007", 13.0, 0, 2]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    data = tr.read(tmp_path / "a.xlsx", missing="zero")
    assert data.query_ids.tolist() == ["007", "7"]
    assert data.doc_ids.tolist() == ["12", "13", "d"]
    assert data.X.tolist() == [[0.5], [2.0], [0.0]]
    with pytest.raises(InputError, match=r"a\.xlsx: column 'x' is empty in row 3"):
        tr.read(tmp_path / "a.xlsx")
    (tmp_path / "b.xlsx").write_bytes(b"PK")
    with pytest.raises(InputError, match=r"b\.xlsx: not a readable Excel file"):
        tr.read(tmp_path / "b.xlsx")


def test_a_spreadsheet_without_the_extra_says_which(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    Path(tmp_path, "a.xlsx").write_bytes(b"PK")
    with pytest.raises(tr.errors.MissingExtraError, match=r"reading Excel files needs openpyxl"):
        tr.read(tmp_path / "a.xlsx")
