from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from toprank.errors import InputError
from toprank.papers import precision_at_top as paper
from toprank.papers import reproduce
from toprank.papers.precision_at_top import figures, methods, theory
from toprank.papers.precision_at_top.methods import PAPER, SGD_AVG, Method
from toprank.papers.precision_at_top.tasks import TASKS

YES, NO = "replicates", "does not replicate"


@pytest.fixture
def folder(tmp_path):
    """A data folder that holds IJCNN alone: 900 rows in LIBSVM text, 12% positive."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(900) < 0.12, 1, -1)
    X = rng.normal(size=(900, 22)) + 0.8 * (y[:, None] == 1)
    lines = [
        f"{label:+d} " + " ".join(f"{j + 1}:{v:.5f}" for j, v in enumerate(x)) for label, x in zip(y, X, strict=True)
    ]
    home = tmp_path / "ijcnn1"
    home.mkdir()
    (home / "ijcnn1.trn").write_text("\n".join(lines[:300]) + "\n")
    (home / "ijcnn1.t").write_text("\n".join(lines[300:]) + "\n")
    return str(tmp_path)


def test_the_counterexample_is_saved_by_the_command(tmp_path):
    ((exhibit, files),) = reproduce.reproduce("precision-at-top", "counterexample", out=tmp_path)
    assert sorted(file.suffix for file in files) == [".json", ".md", ".png", ".svg"]
    stored = json.loads((tmp_path / "precision-at-top" / "counterexample.json").read_text())["data"]
    X, wrong, right = (np.array(stored[name]) for name in ("X", "struct", "right"))
    assert (X @ wrong)[3] > (X @ wrong)[:3].max()
    assert (X @ right)[:3].min() - (X @ right)[3] >= 1
    assert "negatives in the top 1" in str(exhibit)
    assert set(reproduce.figures("precision-at-top")) == {
        "fig1",
        "fig2",
        "fig3",
        "theorems",
        "covertype",
        "counterexample",
    }
    assert "precision-at-top" in reproduce.papers()
    assert not any(name.startswith(("-", "_")) for name in reproduce.papers())


@pytest.fixture
def few_trees(monkeypatch):
    """LightGBM with three trees: what is tested is that it takes part."""
    lightgbm = pytest.importorskip("lightgbm")
    small = Method(lambda *_: lightgbm.LGBMClassifier(n_estimators=3, verbose=-1, n_jobs=1))
    kept = methods.baselines()
    monkeypatch.setattr(figures, "baselines", lambda: {**kept, "LightGBM": small})


@pytest.mark.usefixtures("few_trees")
def test_figure_2_goes_on_where_it_was_and_names_what_is_absent(folder, tmp_path, monkeypatch):
    options = {"checkpoint": tmp_path / "pieces", "passes": 2}
    first = paper.fig2(folder, tasks=["ijcnn", "letter"], seeds=1, **options)
    assert first.notes[-1] == "Left out: Letter, A, put letter.scale, letter.scale.t in letter/."
    fresh = []
    dealt = figures.Lab._split
    monkeypatch.setattr(figures.Lab, "_split", lambda own, task, seed: (fresh.append(seed), dealt(own, task, seed))[1])
    again = paper.fig2(folder, tasks=["ijcnn", "letter"], seeds=1, **options)
    assert fresh == []
    assert again.data == first.data
    second = paper.fig2(folder, tasks=["ijcnn"], seeds=2, **options)
    assert set(fresh) == {1}
    curves = second.data["curves"]["ijcnn"]
    assert {*PAPER, "logistic regression", "LinearSVC", "SGDClassifier"} <= set(curves)
    assert all(len(curves[name]) == 2 for name in curves)
    assert len(curves[SGD_AVG][0]["precision"]) == 2
    assert curves[SGD_AVG][0]["precision"][-1] > 0.3
    assert {path.name for path in second.save(tmp_path / "out")} == {"fig2.json", "fig2.md", "fig2.png", "fig2.svg"}


def test_precision_at_all_positives_is_not_that_of_the_first_row():
    scores, y = np.array([3.0, 2.0, 1.0, 0.0]), np.array([0.0, 1.0, 1.0, 0.0])
    assert methods.Trial(kappa=1.0).precision(scores, y) == 0.5  # one positive among the first two
    assert methods.Trial(kappa=0.5).precision(scores, y) == 0.0


def test_too_few_rows_are_named(folder):
    with pytest.raises(InputError, match="2 rows of IJCNN to learn from are too few: take more than 3"):
        paper.fig2(folder, tasks=["ijcnn"], max_rows=3)


def test_figure_3_sweeps_kappa_and_the_batch_length(folder, tmp_path):
    exhibit = paper.fig3(folder, tasks=["ijcnn"], seeds=2, passes=1, kappas=(0.25, 1.0), lengths=(100, 300))
    assert {len(runs) for runs in exhibit.data["by_kappa"]["ijcnn"].values()} == {2}
    assert "SVMPerf" not in exhibit.data["by_length"]["ijcnn"]
    assert "Lengths 100 to 300" in exhibit.claims[1].why
    assert set(exhibit.data["by_kappa"]["ijcnn"]) == set(PAPER)
    assert (tmp_path / "fig3.png") in exhibit.save(tmp_path)


def test_the_hierarchy_holds_and_would_be_seen_to_fail(monkeypatch):
    assert {found.verdict for found in paper.fig1(lists=200).claims} == {YES}
    monkeypatch.setattr(theory, "PrecAvg", theory.PrecStruct)
    assert NO in {found.verdict for found in paper.fig1(lists=200).claims}


def test_the_theorems_have_rates_and_no_verdict_where_no_constant_is_named():
    told = paper.theorems(seeds=1).claims
    assert [found.verdict for found in told[:4]] == [YES] * 4
    assert told[-1].verdict == "cannot be decided here"


def test_a_folder_without_data_is_named(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="holds none of ijcnn"):
        paper.fig2(str(tmp_path), tasks=["ijcnn"])
    with pytest.raises(InputError, match="unknown task 'iris'"):
        paper.fig2(str(tmp_path), tasks=["iris"])
    monkeypatch.delenv("TOPRANK_DATA", raising=False)
    with pytest.raises(InputError, match="TOPRANK_DATA"):
        paper.fig2()


def test_a_collection_in_two_plain_tables_is_read(tmp_path):
    home = Path(tmp_path, "kddcup2008")
    home.mkdir()
    (home / "Info.txt").write_text("-1 7 7\n1 8 8\n-1 9 9\n")
    (home / "Features.txt").write_text("0.5 1\n0.25 2\n0.125 3\n")
    X, y = TASKS["kdd-cup-2008"].read(Path(tmp_path))
    assert X.tolist() == [[0.5, 1.0], [0.25, 2.0], [0.125, 3.0]]
    assert y.tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if task.files[0] != "Info.txt"])
def test_every_collection_is_read_in_its_published_layout(name, tmp_path):
    task = TASKS[name]
    (tmp_path / task.folder).mkdir()
    positive = 1 if task.positive is None else int(task.positive)
    for file in task.files:
        if task.label is not None:
            lines = [f"Elevation,Slope,{task.label}", f"2500,3,{positive}", f"2600,7,{positive % 7 + 1}"]
        else:
            lines = [f"{positive} 1:0.5 2:-1", f"{'-1' if task.positive is None else positive + 1} 2:0.25"]
        (tmp_path / task.folder / file).write_text("\n".join(lines) + "\n")
    X, y = task.read(tmp_path)
    assert y.tolist() == [1.0, 0.0] * len(task.files)
    assert X.shape == (2 * len(task.files), 2)
    assert X.dtype == np.float32
