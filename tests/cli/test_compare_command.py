"""`toprank compare` as a stranger meets it."""

import json
import os
import signal
import subprocess
import sys
import time
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

import toprank as tr
from toprank.contests import search
from toprank.solvers import deadline

from . import calling


def call(capsys, *args):
    return calling.call(capsys, "compare", *args)


def fail(capsys, *args):
    return calling.fail(capsys, "compare", *args)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    home = tmp_path_factory.mktemp("compare")
    data = tr.datasets.make_graded(n_queries=60, n_docs=(4, 9), n_features=5, random_state=0)
    for name, part in (("train", data[:30]), ("vali", data[30:40]), ("test", data[40:])):
        tr.write_letor(part, home / f"{name}.txt")
    for number, cut in enumerate((10, 20), 1):
        fold = home / "folds" / f"Fold{number}"
        fold.mkdir(parents=True)
        for name, part in (("train", data[cut : cut + 20]), ("vali", data[40:]), ("test", data[cut - 10 : cut])):
            tr.write_letor(part, fold / f"{name}.txt")
    return home


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "toprank" / "compare"


def test_two_files(capsys, folder, cache):
    code, out, err = call(capsys, folder / "train.txt", folder / "test.txt", "--rankers", "RankSVM,AdaRank")
    assert code == 0
    assert "toprank:" not in err  # the data report, and no note
    assert "test.txt: means over 20 test queries, convention standard" in out
    assert "8 of the 30 training queries were held out" in out
    for name in ("RankSVM", "AdaRank", "best feature", "order as given"):
        assert name in out
    assert list(cache.iterdir()) == []  # a run that is done leaves nothing behind


def test_the_command_is_the_function(capsys, folder):
    args = ("--valid", folder / "vali.txt", "--rankers", "RankSVM", "--rankers", "AdaRank", "--measure", "map")
    more = ("--measures", "mrr,p@3", "--convention", "letor3", "--seed", 4, "--resamples", 300, "--json")
    code, out, _ = call(capsys, folder / "train.txt", folder / "test.txt", *args, *more, "--baseline", "best feature")
    assert code == 0
    told = json.loads(out)
    train, valid, test = (tr.read_letor(folder / f"{name}.txt") for name in ("train", "vali", "test"))
    by_hand = tr.contest(
        train,
        test,
        valid,
        ["RankSVM", "AdaRank"],
        "map",
        ["mrr", "p@3"],
        convention="letor3",
        random_state=4,
        n_resamples=300,
        baseline="best feature",
    ).to_dict()
    for entrant, expected in zip(told["entrants"], by_hand["entrants"], strict=True):
        for key in ("name", "mean", "params", "valid", "tried", "certificates"):
            assert entrant[key] == json.loads(json.dumps(expected[key]))
    assert told["comparison"] == json.loads(json.dumps(by_hand["comparison"]))
    assert told["measure"] == "map"


def test_same_seed_same_numbers_on_a_slow_machine(capsys, folder, monkeypatch):
    """Every look at a clock costs an hour, and what is printed stays the same but for the seconds."""
    command = (folder / "train.txt", folder / "test.txt", "--rankers", "RankSVM,AdaRank,ListNet", "--json")

    def printed():
        code, out, _ = call(capsys, *command)
        assert code == 0
        found = json.loads(out)
        for entrant in found["entrants"]:
            del entrant["seconds"], entrant["seconds_searched"], entrant["seconds_processor"]
        return found

    quick = printed()
    clock = count(0.0, 3600.0)
    now = SimpleNamespace(**dict.fromkeys(("perf_counter", "process_time", "monotonic"), lambda: next(clock)))
    for module in (search, deadline):
        monkeypatch.setattr(module, "time", now)
    assert printed() == quick
    assert all(entrant["tried"] == entrant["planned"] for entrant in quick["entrants"])


def test_folds_models_and_state(capsys, folder, tmp_path):
    args = ("--folds", folder / "folds", "--rankers", "RankSVM,LightGBM", "--budget", 0)
    code, out, err = call(capsys, *args, "-o", tmp_path / "models", "--state", tmp_path / "state")
    assert code == 0
    assert "means over 20 test queries of 2 folds" in out
    assert "not saved" not in err
    names = [f"{who}-fold{n}.json" for who in ("LightGBM", "RankSVM") for n in (1, 2)]
    assert sorted(p.name for p in (tmp_path / "models").iterdir()) == names
    trees = tr.load(tmp_path / "models" / "LightGBM-fold2.json")
    assert trees.predict(tr.read_fold(folder / "folds", 2).test).shape == (
        tr.read_fold(folder / "folds", 2).test.n_docs,
    )
    model = tr.load(tmp_path / "models" / "RankSVM-fold1.json")
    assert model.predict(tr.read_fold(folder / "folds", 1).test).shape == (
        tr.read_fold(folder / "folds", 1).test.n_docs,
    )
    assert len(list((tmp_path / "state").iterdir())) == 4  # a folder that was named is kept
    again = call(capsys, *args, "--state", tmp_path / "state")[1]
    assert again == out.partition("\n\nwrote ")[0] + "\n"


def test_html(capsys, folder, tmp_path):
    page = tmp_path / "report.html"
    code, out, _ = call(
        capsys, folder / "train.txt", folder / "test.txt", "--rankers", "RankSVM", "--budget", 0, "--html", page
    )
    assert code == 0
    assert f"wrote {page}" in out
    assert out.splitlines()[0].endswith("; search cut short: 1 of 8 settings tried")
    assert "<b>The search was cut short: </b>1 of 8 settings tried." in page.read_text()
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "RankSVM" in text
    assert "order as given" in text


def test_tables_with_empty_cells(capsys, tmp_path):
    rng = np.random.default_rng(0)
    for name in ("train", "test"):
        rows = [f"{q},{rng.integers(0, 3)},{rng.random():.3f},{rng.random():.3f}" for q in range(12) for _ in range(5)]
        rows[3] = rows[3].rsplit(",", 1)[0] + ","
        (tmp_path / f"{name}.csv").write_text("\n".join(["topic,grade,bm25,age", *rows]) + "\n")
    files = (tmp_path / "train.csv", tmp_path / "test.csv", "--label", "grade", "--qid", "topic")
    assert "column 'age' is empty in line 5:" in fail(capsys, *files)
    code, out, _ = call(capsys, *files, "--missing", "zero", "--rankers", "RankSVM", "--budget", 0, "--json")
    assert code == 0
    told = json.loads(out)
    assert any("12 query ids of the test part occur" in note for note in told["notes"])
    feature = next(e for e in told["entrants"] if e["name"] == "best feature")
    assert feature["params"][0]["feature"] in ("bm25", "age")


def test_missing_cells_are_left_to_trees(capsys, tmp_path):
    pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    for name in ("train", "test"):
        rows = [f"{q},{rng.integers(0, 3)},{rng.random():.3f},{rng.random():.3f}" for q in range(12) for _ in range(5)]
        rows[3] = rows[3].rsplit(",", 1)[0] + ","
        (tmp_path / f"{name}.csv").write_text("\n".join(["query,label,bm25,age", *rows]) + "\n")
    files = (tmp_path / "train.csv", tmp_path / "test.csv", "--rankers", "LightGBM,RankSVM", "--budget", 0)
    code, out, err = call(capsys, *files, "-o", tmp_path / "models")
    assert code == 0
    assert "RankSVM was left out: X has NaN in" in err
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["LightGBM.json"]
    assert tr.load(tmp_path / "models" / "LightGBM.json").inputs_.missing.native
    assert "LightGBM" in out


MODULE = """
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

ridge = make_pipeline(StandardScaler(), Ridge(alpha=2.0))
number = 3

def made():
    return Ridge(alpha=3.0)

def wants(alpha):
    return Ridge(alpha=alpha)
"""


class TestContestantsOfYourOwn:
    @pytest.fixture
    def home(self, tmp_path, monkeypatch):
        data = tr.datasets.make_graded(n_queries=40, n_docs=(4, 9), n_features=3, random_state=0)
        tr.write_letor(data[:25], tmp_path / "train.txt")
        tr.write_letor(data[25:], tmp_path / "test.txt")
        (tmp_path / "mine_to_import.py").write_text(MODULE)
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(str(tmp_path))
        return tmp_path

    def test_objects_models_and_scores(self, capsys, home):
        train, test = (tr.read_letor(home / f"{part}.txt") for part in ("train", "test"))
        ranker = tr.ListNet().fit_queries(train)
        ranker.save(home / "own.json")
        (home / "theirs.txt").write_text("".join(f"{x}\n" for x in test.X[:, 1]))
        given = ("mine_to_import:ridge", "other=mine_to_import:made", "own.json", "scores=theirs.txt")
        args = [word for one in given for word in ("--with", one)]
        code, out, _ = call(capsys, "train.txt", "test.txt", "--rankers", "RankSVM", "--budget", 0, "--json", *args)
        assert code == 0
        means = {e["name"]: e["mean"]["ndcg@10"] for e in json.loads(out)["entrants"]}
        assert {"ridge", "other", "own", "scores", "RankSVM"} <= set(means)
        assert means["own"] == pytest.approx(tr.evaluate(ranker, test, ["ndcg@10"]).mean["ndcg@10"], abs=1e-12)
        expected = tr.evaluate(test.X[:, 1].copy(), test, ["ndcg@10"]).mean["ndcg@10"]
        assert means["scores"] == pytest.approx(expected, abs=1e-12)

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ("nothing.csv", "there is no such file, and an object is written package.module:object"),
            ("no_such_module:x", "cannot import no_such_module"),
            ("mine_to_import:absent", "mine_to_import has no 'absent'"),
            ("mine_to_import:number", "it is a int, and not an estimator"),
            ("mine_to_import:wants", "it could not be made without arguments"),
            ("RankSVM=mine_to_import:ridge", "two contestants are called 'RankSVM'"),
        ],
    )
    def test_refusals(self, capsys, home, given, words):
        assert words in fail(capsys, "train.txt", "test.txt", "--rankers", "RankSVM", "--with", given)


def test_a_text_file_that_does_not_mention_the_last_feature(capsys, folder, tmp_path):
    test = tr.read_letor(folder / "test.txt")
    tr.write_letor(test.with_X(test.X[:, :4]), tmp_path / "narrow.txt")
    args = ("--rankers", "RankSVM", "--budget", 0)
    code, _, err = call(capsys, folder / "train.txt", tmp_path / "narrow.txt", *args)
    assert code == 0
    assert "narrow.txt mentions 4 of 5 features; the others count as 0" in err
    assert "test.txt has 5 features" in fail(capsys, tmp_path / "narrow.txt", folder / "test.txt", *args)


def test_margin_refit_and_fusion(capsys, folder):
    args = (folder / "train.txt", folder / "test.txt", "--rankers", "RankSVM,AdaRank", "--budget", 0)
    told = json.loads(call(capsys, *args, "--margin", 0.3, "--refit", "--fusion", "rrf,combmnz", "--json")[1])
    names = {e["name"] for e in told["entrants"]}
    assert {"fusion by reciprocal rank", "fusion by CombMNZ"} < names
    assert told["comparison"]["margin"] == 0.3
    assert all(d["by_betting"] and d["p_no_worse"] is not None for d in told["comparison"]["differences"])
    assert not any(d["no_worse"][0] and d["p_no_worse"][0] > 0.05 for d in told["comparison"]["differences"])
    assert any("learned once more" in note for note in told["notes"])
    assert "fusion must be one of 'rrf', 'combsum', 'combmnz', got 'borda'" in fail(capsys, *args, "--fusion", "borda")
    assert "margin must be" in fail(capsys, *args, "--margin", 0)


def test_left_out_on_standard_error(capsys, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)  # as where it is not installed
    code, out, err = call(
        capsys, folder / "train.txt", folder / "test.txt", "--rankers", "RankSVM,LightGBM", "--budget", 0
    )
    assert code == 0
    remedy = "pip install lightgbm, or pip install '.[trees]' in a clone of toprank"
    reason = f"LightGBM was left out: BoostedTrees needs lightgbm: {remedy}."
    assert err.endswith(f"toprank: note: {reason}\n")
    assert err.count("toprank:") == 1
    assert reason in out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "compare needs TRAIN and TEST, or --folds DIR"),
        (("{train}",), "compare needs TRAIN and TEST"),
        (("{train}", "{home}/none.txt"), "none.txt: No such file or directory"),
        (("{train}", "{test}", "--valid", "{home}/none.txt"), "none.txt: No such file"),
        (("{train}", "{test}", "--folds", "{home}/folds"), "--folds brings its own parts"),
        (("--folds", "{home}"), "holds no folder Fold1"),
        (("{train}", "{test}", "--rankers", "ListNte"), "did you mean 'ListNet'?"),
        (("{train}", "{test}", "--measure", "ndgc"), "unknown measure 'ndgc' (did you mean 'ndcg'?)"),
        (("{train}", "{test}", "--measures", "mpa"), "unknown measure 'mpa'"),
        (("{train}", "{test}", "--convention", "letor5"), "letor5"),
        (("{train}", "{test}", "--baseline", "BM25"), "baseline must be one of"),
        (("{train}", "{test}", "--budget", "-1"), "budget must be a whole number of at least 0"),
        (("{train}", "{test}", "--seconds", "0"), "seconds must be a number above 0"),
        (("{train}", "{test}", "--html", "{home}"), "is a folder: name a file to write"),
        (("{train}", "{test}", "--html", "{home}/none/report.html"), "cannot write"),
        (("{train}", "{test}", "-o", "{train}"), "is also what this command reads"),
        (("{train}", "{test}", "--state", "{train}", "--budget", "0"), "train.txt"),
        (("{train}", "{test}", "--test", "sign"), "'sign' is not one of"),
        (("{train}", "{test}", "--resamples", "0"), "0 is not in the range x>=1"),
    ],
)
def test_bad_input_is_one_line(capsys, folder, args, message):
    places = {"home": folder, "train": folder / "train.txt", "test": folder / "test.txt"}
    assert message in fail(capsys, *(arg.format(**places) for arg in args))


def test_control_c_and_going_on(folder, tmp_path, cache):
    """In a process of its own: a signal in mid-search, one line that says how to go on, and the same bits after it."""
    rankers = ["ListNet", "RankBoost", "OnlineListNet", "SlamPerceptron"]
    command = [sys.executable, "-m", "toprank", "compare", str(folder / "train.txt"), str(folder / "test.txt")]
    command += ["--rankers", ",".join(rankers), "--json"]
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    patience = time.monotonic() + 300
    while not list(cache.glob("*/[!.]*.json")) and process.poll() is None and time.monotonic() < patience:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    if process.returncode == 0:
        pytest.skip("the search was over before the signal came")
    assert (process.returncode, out) == (130, "")
    assert err.startswith("toprank: interrupted; ")
    assert "give the same command again to go on" in err
    assert err.count("\n") == 1
    again = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    whole = tr.contest(tr.read_letor(folder / "train.txt"), tr.read_letor(folder / "test.txt"), rankers=rankers)
    resumed, uninterrupted = (
        [{k: v for k, v in e.items() if "seconds" not in k} for e in told["entrants"]]
        for told in (json.loads(again.stdout), json.loads(json.dumps(whole.to_dict())))
    )
    assert resumed == uninterrupted
    assert list(cache.iterdir()) == []


def test_repeats_in_the_terminal_in_json_and_on_the_page(capsys, folder, tmp_path):
    args = (
        folder / "train.txt",
        folder / "test.txt",
        "--valid",
        folder / "vali.txt",
        "--rankers",
        "RankSVM,OnlineListNet",
    )
    code, out, err = call(capsys, *args, "--repeats", 2, "--html", tmp_path / "page.html")
    assert code == 0
    assert "toprank:" not in err  # the data report, and no note
    title = "Learners by ndcg@10: 2 resamples of the training queries, 2 seeds each"
    assert title in " ".join(out.split())
    page = (tmp_path / "page.html").read_text()
    assert title in page
    assert "Learners, not only these models" in page
    code, out, _ = call(capsys, *args, "--repeats", 2, "--json", "--html", tmp_path / "again.html")
    (row,) = json.loads(out)["repeats"]["rows"]
    assert code == 0
    assert {row["a"], row["b"]} == {"RankSVM", "OnlineListNet"}
    assert all(row[part] >= 0 for part in ("sample", "seed", "queries", "rest"))
    call(capsys, *args, "--html", tmp_path / "once.html")
    assert "Learners, not only these models" not in (tmp_path / "once.html").read_text()
    assert "repeats must be at least 2" in fail(capsys, *args, "--repeats", 1)
