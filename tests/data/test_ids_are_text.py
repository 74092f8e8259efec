"""Query and document ids that are read from files and tables are text, as written, through every reader."""

from __future__ import annotations

import io
import json
from decimal import Decimal

import numpy as np
import pytest

import toprank as tr
from toprank.data._columns import open_columns
from toprank.data.ids import id_text
from toprank.data.trec import qrels_of, run_of
from toprank.errors import MissingExtraError

AS_WRITTEN = ["007", "7", "00123", "1.10", "1.1", "9223372036854775808", "9223372036854775809", "1e3", "NA"]
"""Ids that a guess at numbers would run together, or print otherwise."""


def csv_rows(sep=","):
    rows = [sep.join(("query", "doc_id", "label", "x"))]
    for number, query in enumerate(AS_WRITTEN):
        rows += [sep.join((query, document, str(number % 2), "0.5")) for document in AS_WRITTEN]
    return "\n".join(rows) + "\n"


def letor_rows():
    return "".join(f"1 qid:{q} 1:0.5 #docid = {d}\n" for q in AS_WRITTEN for d in AS_WRITTEN)


def columns():
    n = len(AS_WRITTEN)
    return {
        "query": np.repeat(AS_WRITTEN, n),
        "doc_id": np.tile(AS_WRITTEN, n),
        "label": np.tile([0, 1, 0, 1, 0, 1, 0, 1, 0], n),
        "x": np.arange(n * n) / 7,
    }


def read_csv_file(folder):
    (folder / "a.csv").write_text(csv_rows())
    return tr.read_table(folder / "a.csv")


def read_csv_without_arrow(folder, monkeypatch):
    import toprank.data._columns as module

    def absent(name, purpose):
        raise MissingExtraError(name, extra="parquet", purpose=purpose)

    monkeypatch.setattr(module, "needed", absent)
    return read_csv_file(folder)


def read_tsv(folder):
    (folder / "a.tsv").write_text(csv_rows("\t"))
    return tr.read(folder / "a.tsv")


def read_other_names(folder):
    text = csv_rows().replace("query,doc_id", "search,sku", 1)
    (folder / "b.csv").write_text(text)
    return tr.read_table(folder / "b.csv", qid="search", doc_id="sku")


def read_letor(folder):
    (folder / "a.txt").write_text(letor_rows())
    return tr.read_letor(folder / "a.txt")


def read_streamed(folder):
    return tr.stream_letor(io.BytesIO(letor_rows().encode()), folder / "streamed")


def read_parquet(folder):
    pq, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    pq.write_table(pa.table(columns()), folder / "a.parquet")
    return tr.read_table(folder / "a.parquet")


def read_own_parquet(folder):
    return tr.read_table(tr.write_parquet(read_csv_file(folder), folder / "own.parquet"))


def read_mapped(folder):
    return tr.open_queries(tr.save_queries(read_csv_file(folder), folder / "mapped"))


def read_frame(kind):
    def read(folder):
        return tr.read_table(pytest.importorskip(kind).DataFrame(columns()))

    return read


def read_arrow(folder):
    return tr.read_table(pytest.importorskip("pyarrow").table(columns()))


READERS = {
    "csv": read_csv_file,
    "tsv": read_tsv,
    "other names": read_other_names,
    "letor": read_letor,
    "streamed letor": read_streamed,
    "parquet": read_parquet,
    "own parquet": read_own_parquet,
    "mapped": read_mapped,
    "pandas": read_frame("pandas"),
    "polars": read_frame("polars"),
    "arrow": read_arrow,
}


@pytest.mark.parametrize("reader", READERS)
def test_ids_are_as_written(reader, tmp_path):
    data = READERS[reader](tmp_path)
    assert data.query_ids.tolist() == AS_WRITTEN
    assert data.doc_ids.tolist() == AS_WRITTEN * len(AS_WRITTEN)


def test_ids_are_as_written_without_arrow(tmp_path, monkeypatch):
    data = read_csv_without_arrow(tmp_path, monkeypatch)
    assert data.query_ids.tolist() == AS_WRITTEN
    assert data.doc_ids.tolist() == AS_WRITTEN * len(AS_WRITTEN)


NUMBERS = {
    "int64": np.array([7, -3, 12]),
    "uint64": np.array([7, 2**64 - 1, 12], dtype=np.uint64),
    "int8": np.array([7, -3, 12], dtype=np.int8),
    "whole floats": np.array([7.0, -3.0, 12.0]),
}


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "parquet", "mapped", "letor"])
@pytest.mark.parametrize("numbers", NUMBERS)
def test_numbers_become_their_text(kind, numbers, tmp_path):
    ids = NUMBERS[numbers]
    expected = [str(int(one)) for one in ids]
    table = {"query": ids, "doc_id": ids, "label": [0, 1, 2], "x": [0.5, 1.5, 2.5]}
    arrays = tr.QueryDataset.from_arrays(np.ones((3, 1)), [0, 1, 2], ids, doc_ids=ids)
    if kind in ("pandas", "polars"):
        data = tr.read_table(pytest.importorskip(kind).DataFrame(table))
    elif kind == "pyarrow":
        data = tr.read_table(pytest.importorskip("pyarrow").table(table))
    elif kind == "parquet":
        data = tr.read_table(tr.write_parquet(arrays, tmp_path / "a.parquet"))
    elif kind == "mapped":
        data = tr.open_queries(tr.save_queries(arrays, tmp_path / "folder"))
    else:
        tr.write_letor(arrays, tmp_path / "a.txt")
        data = tr.read_letor(tmp_path / "a.txt")
    assert data.query_ids.tolist() == expected
    assert data.doc_ids.tolist() == expected


def test_a_folder_of_numbers_from_before_is_read_as_text(tmp_path):
    arrays = tr.QueryDataset.from_arrays(np.ones((2, 1)), [0, 1], [7, 8], doc_ids=["a", "b"])
    tr.save_queries(arrays, tmp_path / "folder")
    np.save(tmp_path / "folder" / "query_ids.npy", np.array([7, 8]))
    np.save(tmp_path / "folder" / "doc_ids.npy", np.array([70, 80]))
    data = tr.open_queries(tmp_path / "folder")
    assert (data.query_ids.tolist(), data.doc_ids.tolist()) == (["7", "8"], ["70", "80"])


def test_arrays_of_the_caller_stay_what_they_are():
    data = tr.QueryDataset.from_arrays(np.ones((3, 1)), [0, 1, 2], np.array([2, 1, 2]))
    assert data.query_ids.tolist() == [2, 1]
    report = tr.evaluate(np.arange(3.0), y=[0, 1, 2], qid=np.array([2, 1, 2]))
    assert report.query_ids.tolist() == [2, 1]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([Decimal("1.10"), Decimal("1.1")], ["1.10", "1.1"]),
        ([1.5, 2.0], ["1.5", "2"]),
        ([7, "7", b"7", 7.0], ["7", "7", "7", "7"]),
        (np.array(["2024-01-31", "2024-02-01"], dtype="M8[ns]"), ["2024-01-31", "2024-02-01"]),
        (np.array(["2024-01-31T10:30"], dtype="M8[ns]"), ["2024-01-31T10:30"]),
        (np.array([True, False]), ["True", "False"]),
        (np.array([1e300]), ["1e+300"]),
        (np.array([], dtype=np.int64), []),
    ],
)
def test_the_text_of_other_values(values, text):
    if not isinstance(values, np.ndarray) and not all(isinstance(one, float) for one in values):
        given = np.empty(len(values), dtype=object)
        given[:] = values
        values = given
    assert id_text(np.asarray(values)).tolist() == text


def log_rows():
    lines = ["query,document,position,clicked,session"]
    session = 0
    for query in AS_WRITTEN:
        for shift in (0, 1):
            for place, document in enumerate(AS_WRITTEN):
                position = (place + shift) % len(AS_WRITTEN) + 1
                lines.append(f"{query},{document},{position},{int(place == 2)},{session:05d}")
            session += 1
    return "\n".join(lines) + "\n"


def test_ids_of_click_logs_are_as_written(tmp_path):
    (tmp_path / "log.csv").write_text(log_rows())
    log = tr.clicks.ClickLog.from_table(tmp_path / "log.csv")
    assert sorted(log.query_ids.tolist()) == sorted(AS_WRITTEN)
    assert sorted(log.doc_ids.tolist()) == sorted(AS_WRITTEN)
    features = read_csv_file(tmp_path)
    found = log.to_queries(features, tr.clicks.Propensities.known([1.0] * len(AS_WRITTEN)))
    assert found.query_ids.tolist() == AS_WRITTEN
    assert [found[q].doc_ids[found[q].y > 0].tolist() for q in range(len(found))] == [["00123"]] * len(AS_WRITTEN)


def test_numbers_of_click_logs_join_numbers_of_tables():
    pandas = pytest.importorskip("pandas")
    log = tr.clicks.ClickLog.from_table(
        pandas.DataFrame({"query": [7.0, 7.0], "document": [70, 80], "position": [1, 2], "clicked": [0, 1]})
    )
    assert log.query_ids.tolist() == ["7"]
    features = tr.QueryDataset.from_arrays(np.eye(2), [0, 0], [7, 7], doc_ids=[70, 80])
    found = log.to_queries(features, tr.clicks.Propensities.known([1.0, 0.5]))
    assert found.y.tolist() == [0, 1]


def test_ids_of_user_behavior_insights_are_as_written():
    pa = pytest.importorskip("pyarrow")
    queries = pa.table({"query_id": [1, 2], "user_query": ["007", "7"], "query_response_hit_ids": [["1", "01"]] * 2})
    events = pa.table({"action_name": ["click"], "query_id": [2], "object_id": ["01"]})
    log = tr.clicks.ClickLog.from_ubi(queries, events)
    assert log.query_ids.tolist() == ["007", "7"]
    assert log.doc_ids[log.document[log.clicked]].tolist() == ["01"]


def test_runs_and_judgements_keep_ids_as_written():
    lines = [(q, d) for q in AS_WRITTEN for d in AS_WRITTEN]
    run = tr.read_run(io.BytesIO("".join(f"{q} Q0 {d} 1 0.5 t\n" for q, d in lines).encode()))
    judged = tr.read_qrels(io.BytesIO("".join(f"{q} 0 {d} 1\n" for q, d in lines).encode()))
    for table in (run, judged):
        assert list(zip(table.qid.tolist(), table.doc_ids.tolist(), strict=True)) == lines
    assert tr.evaluate_run(run, judged, "map").query_ids.tolist() == AS_WRITTEN


@pytest.mark.parametrize("ids", ["int64", "whole floats", "text"])
def test_old_judgements_with_numbers_fit_tables_with_numbers(ids):
    given = np.array(["7", "-3", "12"]) if ids == "text" else NUMBERS[ids]
    data = tr.QueryDataset.from_arrays(np.ones((3, 1)), [1, 1, 1], given, doc_ids=given)
    run = run_of(data, [1.0, 2.0, 3.0])
    judged = tr.read_qrels(io.BytesIO(b"7 0 7 1\n-3 0 -3 1\n12 0 12 1\n"))
    assert tr.evaluate_run(run, judged, "map").mean == {"map": 1.0}
    assert qrels_of(data).qid.tolist() == ["7", "-3", "12"]


def test_reports_of_arrays_and_of_tables_can_be_paired():
    frame = pytest.importorskip("pandas").DataFrame({"query": [7, 7, 8, 8], "label": [0, 1, 1, 0], "x": [1, 2, 3, 4.0]})
    one = tr.evaluate(frame["x"].to_numpy(), y=frame["label"], qid=frame["query"], measures="map")
    other = tr.evaluate(-frame["x"].to_numpy(), tr.read_table(frame), measures="map")
    assert other.query_ids.tolist() == ["7", "8"]
    assert tr.compare({"one": one, "other": other}).systems == ("one", "other")


def test_logged_answers_of_engines_keep_ids_as_written(tmp_path):
    hit = {"_id": "1.10", "fields": {"_ltrlog": [{"log": [{"name": "x", "value": 0.5}]}]}}
    answer = json.dumps({"hits": {"hits": [hit]}}).replace('"1.10"', "1.10")
    lines = "".join(f'{{"query": {query}, "answer": {answer}}}\n' for query in ('"007"', "7", "1.10", "1.1"))
    (tmp_path / "log.jsonl").write_text(lines)
    data = tr.interop.read_ltr_logs(tmp_path / "log.jsonl", {"1.10": {"1.10": 2}})
    assert data.query_ids.tolist() == ["007", "7", "1.10", "1.1"]
    assert data.doc_ids.tolist() == ["1.10"] * 4
    assert data.y.tolist() == [0, 0, 2, 0]


def test_a_feature_stays_a_number_where_it_is_called_like_an_id(tmp_path):
    (tmp_path / "a.csv").write_text("query,label,doc_id,x\n1,0,3,0.5\n1,1,4,1.5\n")
    data = tr.read_table(tmp_path / "a.csv", features=["doc_id", "x"])
    assert data.X.tolist() == [[3, 0.5], [4, 1.5]]
    table, *_ = open_columns(tmp_path / "a.csv")
    assert table["doc_id"].numeric
