"""Files in an S3 store on this machine, and the same by HTTP: workers read them in ranges, as users of Dask know it."""

import logging
import os

import pytest

import toprank as tr
from toprank.dask import reading

from ..cli.calling import fail, run
from .conftest import judged
from .test_reading import fit, same

pytestmark = pytest.mark.usefixtures("short_runs")


class Requests(logging.Handler):
    """What the server was asked for, with the status of its answer."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def emit(self, record):
        self.seen.append(record.getMessage())


@pytest.fixture(scope="module")
def store():
    """The address of a store, and what is asked of it."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    pytest.importorskip("s3fs")
    log, requests = logging.getLogger("werkzeug"), Requests()
    log.setLevel(logging.INFO)
    log.addHandler(requests)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}", requests.seen
    server.stop()
    log.removeHandler(requests)


@pytest.fixture(scope="module")
def options(store):
    return {"key": "me", "secret": "mine", "endpoint_url": store[0]}


@pytest.fixture(scope="module")
def whole(options, tmp_path_factory):
    """A data set that lies in the bucket `judged`, as three files that cut queries and as text."""
    import pyarrow.parquet as pq
    import s3fs

    folder, data = tmp_path_factory.mktemp("files"), judged(60, feature_names=[f"x{j}" for j in range(6)])
    table = pq.read_table(tr.write_parquet(data, folder / "whole.parquet"))
    for i, (a, b) in enumerate(((0, 205), (205, 401), (401, len(table)))):
        pq.write_table(table.slice(a, b - a), folder / f"part{i}.parquet", row_group_size=50)
    tr.write_letor(data, folder / "all.txt")
    fs = s3fs.S3FileSystem(**options)
    fs.mkdir("judged", acl="public-read")
    for file in folder.iterdir():
        fs.put(str(file), f"judged/{file.name}", ACL="public-read")
    return tr.read_table(str(folder / "whole.parquet"))  # ids are text, as every reader gives them


def test_files_in_a_bucket(client, store, options, whole, monkeypatch):
    monkeypatch.setattr(reading, "RANGE_BYTES", 4000)
    del store[1][:]
    same(whole, tr.dask.read_table("s3://judged/part*.parquet", client, storage_options=options, parts=3))
    text = tr.dask.read_letor("s3://judged/all.txt", client, storage_options=options, parts=3)
    assert fit(text) == fit(whole)
    assert sum(" 206 " in request for request in store[1]) > 10  # by ranges, not whole


def test_the_same_by_http(client, store, whole, monkeypatch):
    monkeypatch.setattr(reading, "RANGE_BYTES", 4000)
    at = f"{store[0]}/judged"
    same(whole, tr.dask.read_table([f"{at}/part{i}.parquet" for i in range(3)], client, parts=3))
    assert fit(tr.dask.read_letor(f"{at}/all.txt", client, parts=3)) == fit(whole)
    with pytest.raises(tr.InputError, match=r"part7.parquet.* cannot be read"):
        tr.dask.read_table(f"{at}/part7.parquet", client)


@pytest.mark.parametrize("by", ["s3", "http"])
def test_an_object_that_was_written_again_is_refused(client, store, options, whole, tmp_path, by):
    import s3fs

    fs = s3fs.S3FileSystem(**options)
    for i, data in enumerate((whole, whole.with_X(whole.X[:, ::-1].copy()))):
        tr.write_letor(data, tmp_path / f"{i}.txt")
    fs.put(str(tmp_path / "0.txt"), f"judged/{by}.txt", ACL="public-read")
    given = {"storage_options": options} if by == "s3" else {}
    far = tr.dask.read_letor(f"s3://judged/{by}.txt" if by == "s3" else f"{store[0]}/judged/{by}.txt", client, **given)
    fit(far)
    fs.put(str(tmp_path / "1.txt"), f"judged/{by}.txt", ACL="public-read")
    far.X.reload(1)
    with pytest.raises(tr.InputError, match=rf"{by}.txt changed after it was scanned \((ETag|Last-?Modified|size) was"):
        fit(far)


@pytest.mark.parametrize(
    ("path", "changed", "message"),
    [
        ("s3://judged/none*.parquet", {}, "no file is named s3://judged/none"),
        ("s3://judged/part7.parquet", {}, "part7.parquet cannot be read: there is no such file"),
        ("s3://nobody/*.parquet", {}, r"s3://nobody/\*.parquet"),
        ("s3://judged/all.txt", {}, "all.txt cannot be read: Parquet magic bytes"),
        ("s3://judged/*.parquet", {"endpoint_url": "http://127.0.0.1:1"}, r"s3://judged/.* cannot be read: .*connect"),
        ("s3://judged/*.parquet", {"key": None, "secret": None}, r"s3://judged/.* cannot be read: .*credentials"),
    ],
)
def test_what_cannot_be_read_is_one_line(client, options, whole, path, changed, message, monkeypatch):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    given = {**options, **changed, "config_kwargs": {"retries": {"max_attempts": 0}}}
    with pytest.raises(tr.InputError, match=message) as refused:
        tr.dask.read_table(path, client, storage_options=given)
    assert len(str(refused.value).splitlines()) == 1


def test_the_command_line_finds_keys_where_others_do(store, whole, tmp_path, capsys, monkeypatch):
    for name, value in (("ENDPOINT_URL", store[0]), ("ACCESS_KEY_ID", "me"), ("SECRET_ACCESS_KEY", "mine")):
        monkeypatch.setenv(f"AWS_{name}", value)
    tr.write_parquet(whole, tmp_path / "whole.parquet")
    far, here = (str(tmp_path / name) for name in ("far.json", "here.json"))
    run(capsys, "fit", "s3://judged/part*.parquet", "--dask", "local:1", "-o", far)
    run(capsys, "fit", str(tmp_path / "whole.parquet"), "-o", here)
    with open(far) as one, open(here) as other:
        assert one.read() == other.read()
    told = fail(capsys, "fit", "s3://judged/none*.parquet", "--dask", "local:1", "-o", far)
    assert "no file is named s3://judged/none*.parquet" in told
