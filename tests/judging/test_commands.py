"""The commands about judges: what they print is what Python says, and bad input is one line."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import toprank as tr
from tests.cli.calling import call


@pytest.fixture
def folder(tmp_path):
    """Queries with features, the grades of people on some and of a machine on all, in every format."""
    made = tr.datasets.make_graded(n_queries=330, random_state=0)
    train, test = made[:100], made[100:]
    rng = np.random.default_rng(0)
    wrong = rng.random(test.n_docs) < 0.1
    machine = np.where(wrong, np.maximum(test.y - 1, 0), test.y)
    chosen = np.sort(rng.permutation(test.n_queries)[:60])
    rows = np.isin(test.query_of_rows, chosen)
    names = [f"f{i}" for i in range(test.n_features)]
    lines = [",".join(["query", "human", "robot", *names])]
    for i in range(test.n_docs):
        grade = f"{test.y[i]:g}" if rows[i] else ""
        features = [repr(float(x)) for x in test.X[i]]
        lines.append(",".join([f"q{test.query_of_rows[i]}", grade, f"{machine[i]:g}", *features]))
    (tmp_path / "test.csv").write_text("\n".join(lines) + "\n")
    learned = [",".join(["query", "human", "robot", *names])]
    for i in range(train.n_docs):
        features = [repr(float(x)) for x in train.X[i]]
        learned.append(",".join([f"t{train.query_of_rows[i]}", "0", f"{train.y[i]:g}", *features]))
    (tmp_path / "train.csv").write_text("\n".join(learned) + "\n")
    tr.ListNet().fit_queries(train).save(tmp_path / "model.json")
    tr.ListNet().fit_queries(replace(train, feature_names=tuple(names))).save(tmp_path / "named.json")
    tr.write_letor(test[chosen], tmp_path / "people.txt")
    tr.write_letor(tr.QueryDataset(test.X, machine, test.ptr, test.query_ids), tmp_path / "robot.txt")
    qid = np.array([f"q{q}" for q in test.query_of_rows])
    docs = np.arange(test.n_docs).astype(str)
    tr.write_qrels(tr.Qrels(qid[rows], docs[rows], test.y[rows].astype(int)), tmp_path / "human.qrels")
    tr.write_qrels(tr.Qrels(qid, docs, machine.astype(int)), tmp_path / "robot.qrels")
    for name, noise in (("mine", 0.5), ("theirs", 2.0)):
        scores = test.y + noise * rng.normal(size=test.n_docs)
        tr.write_run(tr.Run(qid, docs, scores), tmp_path / f"{name}.run")
    return tmp_path


def test_judge_prints_what_python_says(folder, capsys, tmp_path):
    files = [folder / "human.qrels", folder / "robot.qrels", folder / "mine.run", folder / "theirs.run"]
    runs = {name: tr.read_run(folder / f"{name}.run") for name in ("mine", "theirs")}
    wanted = tr.judge(*map(tr.read_qrels, files[:2]), runs, judge_name="robot", baseline="theirs")
    page = tmp_path / "judge.html"
    code, out, err = call(capsys, "judge", *files, "--baseline", "theirs", "--html", page)
    assert code == 0, err
    for text in wanted.notes:
        assert text in out
    text = page.read_text(encoding="utf-8")
    assert "robot as a judge" in text
    assert text.count('class="both"') == 4  # a line and a dot for both runs
    code, out, _ = call(capsys, "judge", *files, "--baseline", "theirs", "--json")
    values = json.loads(out)
    assert values["agreement"]["kappa"] == wanted.agreement.kappa
    assert values["certificates"]["mine"]["lower"] == wanted.certificates[0].lower
    assert values["gains"]["mine"]["with_machine"] is False
    code, out, _ = call(capsys, "judge", *files, "--baseline", "theirs", "--json", "--bounds-from", "both")
    assert json.loads(out)["gains"]["mine"]["with_machine"] is True


def test_compare_of_runs_adds_what_the_machine_says(folder, capsys):
    runs = [folder / "mine.run", folder / "theirs.run"]
    given = ["--trec", *runs, "--qrels", folder / "human.qrels", "--judge", folder / "robot.qrels"]
    code, out, err = call(capsys, "compare", *given, "--baseline", "theirs")
    assert code == 0, err
    assert "on these 230 queries, as people would grade them: better than theirs" in out
    code, out, _ = call(capsys, "compare", *given, "--baseline", "theirs", "--json")
    assert json.loads(out)["judge"]["queries"] == {"people": 60, "machine_alone": 170}
    code, _, err = call(capsys, "compare", folder / "train.csv", folder / "test.csv", "--judge", folder / "robot.qrels")
    assert code == 2
    assert "--judge and --answered-only are about TREC runs" in err


def test_certify_takes_a_file_or_a_column_of_the_machine(folder, capsys):
    code, out, err = call(
        capsys, "certify", folder / "model.json", folder / "people.txt", "--judge", folder / "robot.txt", "--json"
    )
    assert code == 0, err
    by_file = json.loads(out)["certificates"][0]
    labels = ["--label", "human", "--judge-label", "robot"]
    code, out, err = call(capsys, "certify", folder / "named.json", folder / "test.csv", *labels, "--json")
    assert code == 0, err
    by_column = json.loads(out)["certificates"][0]
    assert by_file["lower"] == pytest.approx(by_column["lower"], abs=1e-9)
    assert (by_file["n_queries"], by_file["n_machine"], by_file["with_machine"]) == (60, 170, True)
    assert by_file["lower"] <= by_file["mean"] <= by_file["upper"]
    code, out, err = call(capsys, "certify", folder / "named.json", folder / "test.csv", *labels, "--baseline", "f0")
    assert code == 0, err
    assert "from 60 queries judged by people and 170 by robot; people alone: ≥" in out
    assert "that of f0" in out or "than f0" in out
    assert "on trust: people's 60 queries are a random sample of all 230" in out


def test_rankers_are_chosen_by_the_machine_and_judged_by_people(folder, capsys):
    test = folder / "judged.csv"
    lines = (folder / "test.csv").read_text().splitlines()
    test.write_text("\n".join(line for line in lines if line.split(",")[1] != "") + "\n")
    given = ["--label", "human", "--judge-label", "robot", "--rankers", "ListNet", "--budget", "0", "--json"]
    code, out, err = call(capsys, "compare", folder / "train.csv", test, *given)
    assert code == 0, err
    found = json.loads(out)
    # People's grades of the training queries are all 0 here: only the machine's can have taught it anything.
    means = found["comparison"]["means"]["ndcg@10"]
    assert means["ListNet"] > means["order as given"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["certify", "model.json", "people.txt", "--judge-label", "robot"], "names a column of a table"),
        (["certify", "model.json", "--judge", "robot.txt"], "--judge and --judge-label need DATA"),
        (["certify", "model.json", "people.txt", "--target", "new"], "--target goes with --judge"),
        (["certify", "model.json", "robot.txt", "--judge", "people.txt"], "people judged 170 queries that the machine"),
        (
            ["compare", "--trec", "mine.run", "theirs.run", "--qrels", "human.qrels", "--judge-label", "x"],
            "about learning",
        ),
        (["judge", "human.qrels", "robot.qrels", "mine.run", "--measure", "dcg@10"], "values must lie in"),
        (["judge", "robot.qrels", "human.qrels", "mine.run"], "people judged 170 queries that the machine did not"),
    ],
)
def test_bad_input_is_one_line(folder, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(folder)
    code, _, err = call(capsys, *arguments)
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1
