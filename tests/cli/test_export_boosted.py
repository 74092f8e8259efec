"""RankBoost from judged queries to every engine, on the command line."""

import json

import pytest

import toprank as tr

from .calling import call, fail, run


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("boosted")
    data = tr.datasets.make_graded(n_queries=30, n_docs=(3, 12), n_features=4, random_state=0)
    train, test = tr.query_train_test_split(data, test_size=0.4, random_state=0)
    tr.write_letor(train, folder / "train.txt")
    tr.write_letor(test, folder / "test.txt")
    return folder


@pytest.fixture
def model(capsys, home):
    path = home / "model.json"
    if not path.exists():
        run(capsys, "fit", home / "train.txt", "--ranker", "RankBoost", "-p", "rounds=20", "-o", path)
    return path


@pytest.mark.parametrize("to", tr.export.TARGETS)
def test_export_and_verify(capsys, home, model, tmp_path, to):
    if to == "onnx":
        pytest.importorskip("onnx", reason="the extra onnx is not installed")
        pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    if to == "sql":
        pytest.importorskip("duckdb", reason="the extra sql is not installed")
    file = tmp_path / "out"
    assert "missing values are refused" in run(capsys, "export", model, "--to", to, "-o", file)
    out = run(capsys, "verify-export", model, file, home / "test.txt")
    assert ("the engine's precision moves no value across a threshold" in out) == (
        to not in ("sql", "lucene-expression")
    )
    assert "the rankings agree" in out


def test_a_changed_leaf_is_exit_code_1(capsys, home, model, tmp_path):
    run(capsys, "export", model, "--to", "json", "-o", tmp_path / "m.json")
    file = json.loads((tmp_path / "m.json").read_text())
    feature = next(feature for feature in file["features"] if feature["thresholds"])
    feature["scores"].reverse()
    (tmp_path / "m.json").write_text(json.dumps(file))
    code, out, err = call(capsys, "verify-export", model, tmp_path / "m.json", home / "test.txt")
    assert (code, err) == (1, "")
    assert "THE RANKINGS DISAGREE" in out


def test_an_exchange_file_is_a_model_too(capsys, home, model, tmp_path):
    run(capsys, "export", model, "--to", "json", "-o", tmp_path / "m.json", "--features", "a,b,c,d")
    run(capsys, "export", tmp_path / "m.json", "--to", "solr", "-o", tmp_path / "s.json")
    names = {feature["name"] for feature in json.loads((tmp_path / "s.json").read_text())["features"]}
    assert names <= {"a", "b", "c", "d"}
    out = run(capsys, "verify-export", model, tmp_path / "s.json", home / "test.txt", "--features", "a,b,c,d")
    assert "the rankings agree" in out


def test_one_clear_line_on_what_does_not_fit(capsys, model, tmp_path):
    out = ("-o", tmp_path / "x")
    assert "need no scaling" in fail(capsys, "export", model, "--to", "solr", *out, "--normalizers")
    assert "no constant: leave shift out" in fail(capsys, "export", model, "--to", "ranklib", *out, "--shift", "1")
    assert "no use for store" in fail(capsys, "export", model, "--to", "onnx", *out, "--store", "films")
    assert not (tmp_path / "x").exists()
