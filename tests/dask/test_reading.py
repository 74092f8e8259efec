"""Files read by workers: the data set, and the bits, that one machine reads."""

import gzip
import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import toprank as tr
from toprank.dask import reading

from .conftest import judged

pytestmark = pytest.mark.usefixtures("short_runs")

FIT = {"max_iter": 4}


def fit(data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is stopped early
        return tr.ListNet(**FIT).fit_queries(data).coef_.tobytes()


def written(folder, table, cuts, **options):
    for i, (a, b) in enumerate(zip((0, *cuts), (*cuts, len(table)), strict=True)):
        pq.write_table(table.slice(a, b - a), folder / f"part{i}.parquet", **options)
    return str(folder / "*.parquet")


@pytest.fixture
def table(tmp_path):
    data = judged(60, doc_ids=None, feature_names=[f"x{j}" for j in range(6)])
    path = tr.write_parquet(replace(data, query_weight=np.linspace(0.5, 1, 60)), tmp_path / "whole.parquet")
    read = pq.read_table(path)
    path.unlink()
    return read


def same(here, there):
    for name in ("y", "ptr", "query_ids", "query_weight", "doc_weight", "doc_ids"):
        one, other = getattr(here, name), getattr(there, name)
        assert (one is None) == (other is None), name
        assert one is None or (one.dtype == other.dtype and one.tolist() == other.tolist()), name
    assert (here.feature_names, here.X.shape, here.X.dtype) == (there.feature_names, there.X.shape, there.X.dtype)
    assert fit(here) == fit(there)


def test_parquet_by_row_groups_with_queries_over_three_files(client, tmp_path, table):
    whole = tr.read_table(table, query_weight="query_weight")
    longest = int(whole.lengths.argmax())
    a = int(whole.ptr[longest])
    cuts = (100, a + 2, a + 4, 500)  # the longest query is in three files
    path = written(tmp_path, table, cuts, row_group_size=37)
    for named in (path, f"file://{path}"):
        same(whole, tr.dask.read_table(named, client, parts=7))


def test_columns_are_chosen_as_on_one_machine(client, tmp_path):
    data = judged(30)
    columns = {"q": np.char.add("q", data.qid.astype(str)), "grade": data.y, "a": data.X[:, 0], "b": data.X[:, 1]}
    frame = pa.table({**columns, "c": data.y.astype(int), "who": data.qid.astype(str)})
    options = {"label": "grade", "qid": "q", "doc_id": "who"}
    path = written(tmp_path, frame, (50,))
    same(tr.read_table(frame, **options), tr.dask.read_table(path, client, **options))
    options |= {"features": ["b", "a"]}
    same(tr.read_table(frame, **options), tr.dask.read_table(sorted(map(str, tmp_path.iterdir())), client, **options))
    with pytest.raises(tr.InputError, match=r"column 'who' of .*part0.parquet is string, not a number"):
        tr.dask.read_table(path, client, "grade", "q")
    with pytest.raises(tr.InputError, match=r"part0.parquet: the table has no column 'label'"):
        tr.dask.read_table(path, client)


def without(table, name):
    return table.drop_columns([name])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda t: t.slice(0, 0), "part1.parquet holds no rows"),
        (lambda t: without(t, "x3"), "part1.parquet has no column 'x3', which .*part0.parquet has"),
        (lambda t: t.append_column("new", t["x3"]), "part0.parquet has no column 'new', which .*part1.parquet has"),
        (lambda t: without(t, "label"), "part1.parquet: the table has no column 'label'"),
        (
            lambda t: without(t, "x5").append_column("x5", t["x5"].cast("double")),
            "column 'x5' is float in .*part0.parquet and double in .*part1.parquet",
        ),
        (
            lambda t: without(t, "x5").append_column("x5", pa.array([None] * len(t), "float")),
            "part1.parquet, counting rows from 0: column 'x5' is empty in row 0",
        ),
    ],
)
def test_a_file_that_is_not_like_the_others(client, tmp_path, table, spoil, message):
    path = written(tmp_path, table, (200, 400))
    pq.write_table(spoil(pq.read_table(tmp_path / "part1.parquet")), tmp_path / "part1.parquet")
    with pytest.raises(tr.InputError, match=message):
        tr.ListNet(**FIT).fit_queries(tr.dask.read_table(path, client, parts=3))


def test_a_query_that_comes_back_is_named_with_its_files(client, tmp_path, table):
    again = pa.concat_tables([table, table.slice(0, 3)])
    cuts = (200, len(table) - 20)
    with pytest.raises(tr.InputError, match=r"query '0' is in .*part0.parquet and comes back in .*part2.parquet"):
        tr.dask.read_table(written(tmp_path, again, cuts), client)
    with pytest.raises(tr.InputError, match=r"query '0' is in .*part0.parquet and comes back further down"):
        tr.dask.read_table(written(tmp_path, again.slice(0), ()), client)


def test_files_that_are_not_there_or_not_parquet(client, tmp_path):
    with pytest.raises(tr.InputError, match=r"no file is named .*\*\.parquet"):
        tr.dask.read_table(str(tmp_path / "*.parquet"), client)
    with pytest.raises(tr.InputError, match="there is no such file"):
        tr.dask.read_table(str(tmp_path / "a.parquet"), client)
    (tmp_path / "a.parquet").write_bytes(b"nothing")
    with pytest.raises(tr.InputError, match=r"a.parquet cannot be read: .*[Pp]arquet"):
        tr.dask.read_table(str(tmp_path / "a.parquet"), client)
    with pytest.raises(tr.InputError, match="cannot be read: Protocol not known: nowhere"):
        tr.dask.read_table("nowhere://a.parquet", client)


@pytest.mark.parametrize("dense", [None, False])
def test_letor_text_by_byte_ranges(client, tmp_path, monkeypatch, dense):
    monkeypatch.setattr(reading, "RANGE_BYTES", 1000)
    data = judged(50, doc_ids=None)
    tr.write_letor(data, tmp_path / "all.txt")
    lines = (tmp_path / "all.txt").read_bytes().splitlines(keepends=True)
    for i, (a, b) in enumerate([(0, 33), (33, 34), (34, 300)]):
        (tmp_path / f"train{i}.txt").write_bytes(b"".join(lines[a:b]))
    (tmp_path / "train3.txt.gz").write_bytes(gzip.compress(b"".join(lines[300:])))
    there = tr.dask.read_letor(str(tmp_path / "train*"), client, parts=5, dense=dense)
    assert len(there.X.specs) == 5
    same(tr.read_letor(tmp_path / "all.txt", dense=dense), there)


def test_letor_text_with_mixed_ids_and_bad_lines(client, tmp_path):
    (tmp_path / "a.txt").write_text("1 qid:1 1:2 2:0.5\n0 qid:1 2:1\n")
    (tmp_path / "b.txt").write_text("0 qid:x 3:1\n1 qid:x 1:3\n")
    far = tr.dask.read_letor([str(tmp_path / "a.txt"), str(tmp_path / "b.txt")], client)
    assert (far.query_ids.tolist(), far.X.shape) == (["1", "x"], (4, 3))
    for text, message in (
        ("1 qid:1 1=2\n", r"c\.txt:1:\d+: expected feature:value"),
        ("1 1:2\n", r"c\.txt: a line without qid:"),
        ("1 qid:1 0:2\n", "counting from 1"),
        ("", r"c\.txt is empty"),
        ("\n\n", r"c\.txt holds no rows"),
        ("1 qid:1 1:1\n1 qid:2 1:1\n0 qid:1 1:1\n", r"query '1' is in .*c\.txt and comes back further down"),
    ):
        (tmp_path / "c.txt").write_text(text)
        with pytest.raises(tr.InputError, match=message):
            tr.dask.read_letor(str(tmp_path / "c.txt"), client)
    tr.write_parquet(judged(3), tmp_path / "c.parquet")
    with pytest.raises(tr.InputError, match=r"c\.parquet is Parquet and not LETOR text: name such files"):
        tr.dask.read_letor(str(tmp_path / "c.*t"), client)


def test_a_file_that_changes_meanwhile(client, tmp_path, table):
    path = written(tmp_path, table, (200,))
    data = tr.dask.read_table(path, client, parts=2)
    tr.ListNet(max_iter=1)
    data.X.workers.drop(data.X.futures)
    pq.write_table(table.slice(0, 150), tmp_path / "part0.parquet")
    data.X.start()
    with pytest.raises(tr.InputError, match=r"part0.parquet changed after it was scanned"):
        tr.ListNet(**FIT).fit_queries(data)
