"""The command line as a stranger meets it: in a process of its own where exit codes and streams matter."""

import gzip
import json
import re
import subprocess
import sys

import numpy as np
import pytest

import toprank as tr
from toprank.cli import cli

from .calling import call, fail, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    home = tmp_path_factory.mktemp("cli")
    data = tr.datasets.make_graded(n_queries=40, n_docs=(3, 12), n_features=5, random_state=0)
    ids = np.array([f"d{i}" for i in range(data.n_docs)])
    data = tr.QueryDataset.from_arrays(data.X, data.y, data.qid, doc_ids=ids)
    tr.write_letor(data[:20], home / "train.txt")
    tr.write_letor(data[20:30], home / "valid.txt")
    tr.write_letor(data[30:], home / "test.txt")
    tr.ListNet().fit_queries(tr.read_letor(home / "train.txt")).save(home / "model.json")
    return home


def test_fit_evaluate_rank(capsys, folder, tmp_path):
    model = tmp_path / "model.json"
    out = run(
        capsys,
        "fit",
        folder / "train.txt",
        "--valid",
        folder / "valid.txt",
        "--measure",
        "map",
        "-p",
        "alpha=0.1",
        "-o",
        model,
    )
    assert re.search(r"train: map 0\.\d{4}\nvalid: map 0\.\d{4}\nwrote ", out)
    ranker = tr.load(model)
    assert (ranker.measure, ranker.alpha) == ("map", 0.1)
    test = tr.read_letor(folder / "test.txt")
    for convention in ("standard", "letor4"):
        printed = json.loads(
            run(
                capsys,
                "evaluate",
                model,
                folder / "test.txt",
                "--measure",
                "ndcg@3,map",
                "--convention",
                convention,
                "--json",
            )
        )
        direct = tr.evaluate(ranker, test, ["ndcg@3", "map"], convention=convention)
        assert printed["mean"] == direct.mean
        assert printed["convention"] == convention
    lines = run(capsys, "rank", model, folder / "test.txt").splitlines()
    assert len(lines) == test.n_docs
    scores = ranker.predict(test)
    for line in lines:
        query, document, place, score = line.split("\t")
        row = test.doc_ids.tolist().index(document)
        assert test.qid[row] == query
        assert float(score) == scores[row]
        assert int(place) == ranker.rank(test)[row]


def test_a_trec_run_evaluates_like_the_model(capsys, folder, tmp_path):
    run(capsys, "rank", folder / "model.json", folder / "test.txt", "--trec", "-o", tmp_path / "run.txt")
    test = tr.read_letor(folder / "test.txt")
    rows = zip(test.qid.tolist(), test.doc_ids.tolist(), test.y.tolist(), strict=True)
    (tmp_path / "qrels.txt").write_text("".join(f"{q} 0 {d} {int(g)}\n" for q, d, g in rows))
    by_run = run(
        capsys, "evaluate", "--trec", tmp_path / "run.txt", tmp_path / "qrels.txt", "--measure", "map", "--json"
    )
    by_model = run(
        capsys,
        "evaluate",
        folder / "model.json",
        folder / "test.txt",
        "--measure",
        "map",
        "--convention",
        "trec_eval",
        "--json",
    )
    assert json.loads(by_run)["mean"]["map"] == pytest.approx(json.loads(by_model)["mean"]["map"], abs=1e-12)


def test_per_query_has_one_line_for_each(capsys, folder):
    out = run(capsys, "evaluate", folder / "model.json", folder / "test.txt", "--per-query")
    assert len(out.splitlines()) == 10 + 3


def test_info_and_convert_keep_the_data(capsys, folder, tmp_path):
    for target in ("a.parquet", "a.txt.gz", "a/"):
        run(capsys, "convert", folder / "test.txt", f"{tmp_path}/{target}", "--dtype", "float64")
        before = json.loads(run(capsys, "info", folder / "test.txt", "--json"))
        after = json.loads(run(capsys, "info", f"{tmp_path}/{target}", "--json"))
        assert after.pop("unevenness") == pytest.approx(before.pop("unevenness"), rel=1e-6)  # of float32 and of float64
        assert after | {"storage": "", "bytes": 0} == before | {"storage": "", "bytes": 0}
    assert gzip.decompress((tmp_path / "a.txt.gz").read_bytes()) == (folder / "test.txt").read_bytes()
    told = json.loads(run(capsys, "convert", folder / "test.txt", tmp_path / "b.txt", "--json"))
    assert told["target"] == str(tmp_path / "b.txt")
    assert "queries          10" in run(capsys, "info", folder / "test.txt")


def test_standard_streams(folder):
    text = (folder / "test.txt").read_bytes()
    command = [sys.executable, "-m", "toprank", "convert", "-", "-", "--dtype", "float64"]
    done = subprocess.run(command, input=text, capture_output=True, check=True)
    assert done.stdout == text


def test_a_closed_pipe_is_not_an_error(folder):
    command = (
        f"{sys.executable} -m toprank rank {folder}/model.json {folder}/test.txt | head -1; echo ${{PIPESTATUS[0]}}"
    )
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "0"


def test_demo_learns_something(capsys, tmp_path):
    page = tmp_path / "report.html"
    out = json.loads(run(capsys, "demo", "--generated", "--queries", "60", "--html", page, "--json"))
    means = {name: values["ndcg@10"] for name, values in out["means"].items()}
    assert max(means, key=means.get) == "ListNet"
    html = page.read_text()
    assert html.startswith("<!doctype html>")
    assert "://" not in html, "the page must not point anywhere"
    plain = run(capsys, "demo", "--generated", "--queries", "60", "--html", page)
    assert "ListNet" in plain
    assert f"wrote {page}" in plain


def test_lists(capsys):
    names = {row["ranker"] for row in json.loads(run(capsys, "rankers", "--json"))}
    assert names == set(tr.rankers.__all__)
    assert all(name in run(capsys, "rankers") for name in names)
    assert "letor4" in run(capsys, "measures")
    assert json.loads(run(capsys, "measures", "--json"))


@pytest.mark.parametrize("command", sorted(cli.commands))
def test_help_has_an_example(capsys, command):
    out = run(capsys, command, "--help")
    assert "\nExamples:\n  toprank " in out


def test_no_arguments_is_help_and_version_is_told(capsys):
    assert "Learn and rank:" in run(capsys)
    assert tr.__version__ in run(capsys, "--version")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["info", "nothing.txt"], "nothing.txt"),
        (["info", "{home}"], "header.json"),
        (["fit", "{home}/train.txt", "--ranker", "ListNte", "-o", "x"], "did you mean 'ListNet'"),
        (["fit", "{home}/train.txt", "--measure", "ndgc@10", "-o", "x"], "unknown measure 'ndgc'"),
        (["fit", "{home}/train.txt", "-p", "alhpa=1", "-o", "x"], "did you mean 'alpha'"),
        (["fit", "{home}/train.txt", "-p", "alpha=much", "-o", "x"], "alpha must be a number"),
        (["fit", "{home}/train.txt", "-o", "{home}/no/such/folder/x"], "cannot write"),
        (["fit", "{home}/bad.txt", "-o", "x"], "bad.txt:2:9: "),
        (["evaluate", "{home}/train.txt", "{home}/test.txt"], "not a toprank model"),
        (["evaluate", "{home}/model.json", "{home}/wide.txt"], "6 features, but ListNet is expecting 5"),
        (["evaluate", "{home}/model.json", "{home}/test.txt", "--convention", "letor9"], "convention must be one of"),
        (["evaluate", "{home}/model.json"], "Missing argument 'DATA'"),
        (["rank", "{home}/model.json", "{home}/test.txt", "-o", "{home}"], "is a folder"),
        (["convert", "{home}/test.txt", "{home}/x.csv"], "tables are written as Parquet"),
        (["reproduce", "no-such-paper"], "unknown paper"),
        (["frobnicate"], "No such command 'frobnicate'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(capsys, folder, args, message):
    (folder / "bad.txt").write_text("1 qid:1 1:0.5\n0 qid:1 1;0.5\n")
    (folder / "wide.txt").write_text("1 qid:1 6:0.5\n0 qid:1 6:0.7\n")
    assert message in fail(capsys, *(arg.format(home=folder) for arg in args))
    assert not (folder / "x").exists()


def test_empty_cells_follow_the_policy_of_the_model(capsys, tmp_path):
    table, model = tmp_path / "train.csv", tmp_path / "model.json"
    table.write_text("query,label,a,b\n1,1,0.5,\n1,0,0.2,3\n2,1,1,2\n2,0,,4\n")
    assert "column 'a' is empty in line 5:" in fail(capsys, "fit", table, "-o", model)
    run(capsys, "fit", table, "-p", "missing=zero", "-o", model)
    filled = tr.read_table(table, missing="zero")
    expected = tr.evaluate(tr.load(model), filled, ["ndcg@10"]).mean["ndcg@10"]
    assert json.loads(run(capsys, "evaluate", model, table, "--json"))["mean"]["ndcg@10"] == expected
    assert len(run(capsys, "rank", model, table).splitlines()) == 4
    run(capsys, "certify", model, table)


@pytest.mark.parametrize("zeros", [0.0, 0.95], ids=["dense", "sparse"])
def test_a_text_file_with_fewer_columns_than_the_model_is_filled_with_zeros(capsys, folder, tmp_path, zeros):
    model, narrow, wide = tmp_path / "model.json", tmp_path / "narrow.txt", tmp_path / "wide.txt"
    rng = np.random.default_rng(0)
    judged = tr.read_letor(folder / "test.txt")
    X = judged.X * (rng.random(judged.X.shape) >= zeros)
    X[:, 3:] = 0.0
    tr.write_letor(judged.with_X(X[:, :3]), narrow)
    lines = [line.replace(" #", " 5:0 #") for line in narrow.read_text().splitlines()]
    wide.write_text("\n".join(lines) + "\n")
    told = "narrow.txt mentions 3 of 5 features; the others count as 0"

    def both(*args):
        outcomes = []
        for file in (narrow, wide):
            code, out, err = call(capsys, *(file if arg is None else arg for arg in args))
            assert code == 0, err
            assert (told in err) == (file is narrow)
            outcomes.append(out)
        return outcomes

    means = both("fit", folder / "train.txt", "--valid", None, "-o", model, "--json")
    assert means[0] == means[1]
    for command in (["evaluate", model, None], ["rank", model, None], ["certify", model, None]):
        first, second = both(*command)
        assert first.replace("narrow", "wide") == second
    run(capsys, "export", model, "--to", "json", "-o", tmp_path / "scorer.json")
    first, second = both("evaluate", tmp_path / "scorer.json", None)
    assert first == second
    tr.ListNet().fit_queries(tr.read_letor(narrow)).save(model)
    assert "5 features" in fail(capsys, "evaluate", model, wide)  # the other way round is refused


def test_a_folded_pipeline_scores_like_any_model(capsys, folder, tmp_path):
    linear = tmp_path / "linear.json"
    tr.export.write(folder / "model.json", linear, "json")
    test = folder / "test.txt"
    assert run(capsys, "rank", linear, test) == run(capsys, "rank", folder / "model.json", test)
    assert run(capsys, "evaluate", linear, test) == run(capsys, "evaluate", folder / "model.json", test)


@pytest.mark.parametrize("name", ["XGBoost", "LightGBM"])
def test_trees_of_others_are_pointed_to(capsys, folder, tmp_path, name):
    told = fail(capsys, "fit", folder / "train.txt", "--ranker", name, "-o", tmp_path / "model.json")
    assert f"--ranker BoostedTrees -p engine={name.lower()}" in told
    assert not list(tmp_path.iterdir())
    pytest.importorskip(name.lower())
    advice = ("--ranker", "BoostedTrees", "-p", f"engine={name.lower()}", "-p", "loss=ListNet", "-p", "rounds=3")
    out = run(capsys, "fit", folder / "train.txt", *advice, "-o", tmp_path / "model.json")
    assert "wrote" in out
    assert tr.load(tmp_path / "model.json").loss == "ListNet"


def test_an_output_that_is_an_input_is_refused_everywhere(capsys, tmp_path):
    """Whatever its name: a link to the file that is read is that file."""
    data = tr.datasets.make_graded(n_queries=6, n_docs=5, n_features=2, random_state=0)
    tr.write_letor(data, tmp_path / "a.txt")
    tr.write_letor(data, tmp_path / "b.txt")
    tr.ListNet().fit_queries(data).save(tmp_path / "m.json")
    (tmp_path / "link.txt").symlink_to(tmp_path / "a.txt")
    (tmp_path / "hard.txt").hardlink_to(tmp_path / "a.txt")
    (tmp_path / "f.csv").write_text("name,kind,field\na,field,a\n")
    (tmp_path / "log.jsonl").write_text("{}\n")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    one, two, model = tmp_path / "a.txt", tmp_path / "b.txt", tmp_path / "m.json"
    for command in (
        ("fit", one, "-o", one),
        ("fit", one, "-o", tmp_path / "link.txt"),
        ("fit", one, "-o", tmp_path / "hard.txt"),
        ("fit", one, "--valid", two, "-o", two),
        ("rank", model, one, "-o", one),
        ("rank", model, one, "--trec", "-o", model),
        ("convert", one, one),
        ("convert", one, f"{tmp_path}/../{tmp_path.name}/a.txt"),
        ("compare", one, two, "--html", two),
        ("compare", one, two, "--state", one),
        ("export", model, "--to", "json", "-o", model),
        ("export", model, "--to", "json", "--shift-from", one, "-o", one),
        ("features", tmp_path / "f.csv", "--for", "solr", "-o", tmp_path / "f.csv"),
        ("read-logs", tmp_path / "log.jsonl", "-o", tmp_path / "log.jsonl"),
        ("serve", model, "--store", model),
    ):
        assert "is also what this command reads" in fail(capsys, *command), command
    assert "is also what this command writes" in fail(capsys, "compare", one, two, "--html", "x", "-o", "x")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
