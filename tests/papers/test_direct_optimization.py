from __future__ import annotations

import inspect
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import toprank as tr
from toprank import _checkpoint
from toprank.papers import direct_optimization as paper
from toprank.papers import experiments
from toprank.papers.direct_optimization import methods


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A data folder with two small folds under the name and in the layout of LETOR 2.0's OHSUMED."""
    root = tmp_path_factory.mktemp("letor")
    for fold in (1, 2):
        place = root / "ohsumed-letor2" / f"Fold{fold}"
        place.mkdir(parents=True)
        for part, name in enumerate(("trainingset", "validationset", "testset")):
            data = tr.datasets.make_graded(
                n_queries=8, n_docs=(6, 10), n_features=4, n_grades=3, random_state=10 * fold + part
            )
            tr.write_letor(data, place / f"{name}.txt")
    return root


@pytest.fixture(scope="module")
def pieces(tmp_path_factory):
    return tmp_path_factory.mktemp("pieces")


@pytest.fixture(autouse=True)
def short_grids(monkeypatch):
    for name, grid in {"C_MAP": (1.0, 100.0), "C_PERMU": (1.0,), "C_SVM": (0.01,), "C_PAIRS": (1e-3,)}.items():
        monkeypatch.setattr(methods, name, grid)
    monkeypatch.setattr(methods, "ROUNDS", {"PermuRank": 3, "RankBoost": 50, "AdaRank": 5, "perceptron": 2})


def test_table_2_has_the_literal_methods_and_ours_and_names_what_is_absent(home, pieces):
    table = paper.table2(data=home, checkpoint=pieces)
    assert [row[0] for row in table.table.rows] == [*methods.LITERAL, *methods.OURS]
    assert table.table.columns == ["method", "OHSUMED", "published", "difference"]
    assert sum(note.startswith("Left out: TD200") for note in table.notes) == 2
    absent = [found for found in table.claims if "not to be had" in found.why]
    assert [found.verdict for found in absent] == ["cannot be decided here"] * 2
    # The mean of fold means, of scores that the pieces hold.
    means = []
    for fold in (1, 2):
        part = methods.OHSUMED.fold(home / "ohsumed-letor2", fold)
        rankers = methods.LITERAL["RankSVM (hinge, pairs equal)"](methods.OHSUMED.measure("map"))
        scores = experiments.learn("RankSVM", rankers, methods.OHSUMED.measure("map"), part)
        means.append(tr.measure("map:letor3").mean(scores, part.test.y, part.test.ptr))
    assert table.data["OHSUMED"]["RankSVM (hinge, pairs equal)"] == pytest.approx(np.mean(means))


def test_ranks_stand_in_brackets_as_the_paper_prints_them(home, pieces):
    rows = paper.table2(data=home, checkpoint=pieces).table.rows
    printed = [row[2] for row in rows[:5]]
    assert printed == ["0.4456 (2)", "0.4419 (4)", "0.4495 (1)", "0.4469 (3)", "0.4403 (5)"]
    assert sorted(row[1][-2] for row in rows[:5]) == list("12345")
    printed = [row[2] for row in paper.table3(data=home, checkpoint=pieces).table.rows[:5]]
    assert printed == ["0.4669 (4)", "0.4803 (1)", "0.4764 (2)", "0.4649 (5)", "0.4726 (3)"]


def test_finished_pieces_are_not_computed_again(home, pieces, monkeypatch):
    paper.table2(data=home, checkpoint=pieces)
    monkeypatch.setattr(experiments, "Search", lambda *_: pytest.fail("fitted again"))
    for make in (paper.table3, paper.fig8, paper.fig14, paper.fig15, paper.fig16, paper.ttests):
        assert make(data=home, checkpoint=pieces).table is not None


def test_other_rows_are_other_pieces(home, tmp_path):
    """Fold 1 with its rows reversed must not be answered with what was stored for fold 1."""
    for name in ("one", "other"):
        for part in ("trainingset", "validationset", "testset"):
            lines = (home / "ohsumed-letor2" / "Fold1" / f"{part}.txt").read_text().splitlines()
            place = tmp_path / name / "ohsumed-letor2" / "Fold1"
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{part}.txt").write_text("\n".join(lines if name == "one" else lines[::-1]) + "\n")
    few = {"SVMmap": methods.LITERAL["SVMmap"]}
    for name in ("one", "other"):
        experiments.run([methods.OHSUMED], few, tmp_path / name, tmp_path / "pieces")
    stored = [json.loads(file.read_text())["key"] for file in (tmp_path / "pieces").glob("*.json")]
    assert len({key["data"] for key in stored}) == len(stored) == 2
    changed = {"SVMmap": lambda m: [tr.SVMMap(m, C=3.0)]}
    experiments.run([methods.OHSUMED], changed, tmp_path / "one", tmp_path / "pieces")
    assert len(list((tmp_path / "pieces").glob("*.json"))) == 3


def test_other_code_makes_other_pieces(tmp_path, monkeypatch):
    """A piece of code that was edited since does not come back, nor that of another version; the page is apart."""
    made = []

    def compute():
        made.append(1)
        return len(made)

    pieces = _checkpoint.Checkpoint(tmp_path)
    assert [_checkpoint.piece(pieces, compute, fold=1) for _ in range(2)] == [1, 1]
    assert _checkpoint.piece(pieces, compute, fold=2) == 2
    package = tmp_path / "toprank"
    monkeypatch.setattr(_checkpoint, "__file__", str(package / "_checkpoint.py"))
    edits = [("solvers/bundle.py", 3), ("solvers/bundle.py", 4), ("measures/dcg.py", 5), ("papers/clicks.py", 6)]
    edits += [(f"{apart}/page.py" if "." not in apart else apart, 6) for apart in _checkpoint.NOT_IN_EXPERIMENTS]
    for place, number in edits:
        (package / place).parent.mkdir(parents=True, exist_ok=True)
        with (package / place).open("a") as file:
            file.write("edited = 1\n")
        _checkpoint.source_digest.cache_clear()
        assert [_checkpoint.piece(pieces, compute, fold=1) for _ in range(2)] == [number, number], place
    monkeypatch.setattr(_checkpoint, "__version__", "0")
    assert _checkpoint.piece(pieces, compute, fold=1) == 7
    _checkpoint.source_digest.cache_clear()


def test_what_is_apart_is_used_by_no_experiment():
    """No module of a paper, and none that it imports, stands in a folder whose edits leave pieces as they are."""
    names = [path.removesuffix(".py").replace("/", ".") for path in _checkpoint.NOT_IN_EXPERIMENTS]
    code = """
import importlib, pkgutil, sys
import toprank.papers
for found in pkgutil.walk_packages(toprank.papers.__path__, "toprank.papers."):
    if found.name not in ("toprank.papers.page", "toprank.papers.reproduce"):
        importlib.import_module(found.name)
print(*sys.modules)
"""
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "toprank.papers.direct_optimization.tables" in loaded
    for name in names:
        assert not any(module == f"toprank.{name}" or module.startswith(f"toprank.{name}.") for module in loaded), name


def test_absent_collections_have_an_exhibit_that_says_so(home, pieces):
    for make in (paper.fig9, paper.fig10, paper.fig12, paper.fig13):
        exhibit = make(data=home, checkpoint=pieces)
        assert exhibit.notes[-1] == "Nothing was computed."
        assert exhibit.table is None
    assert "never published" in paper.fig12(data=home).notes[0]


def test_folds_of_ones_own_take_the_place_of_collections_that_were_never_published(home, tmp_path):
    (tmp_path / "wsj").symlink_to(home / "ohsumed-letor2")
    exhibit = paper.fig12(data=tmp_path)
    assert [row[0] for row in exhibit.table.rows] == [*methods.LITERAL, *methods.OURS]
    assert "2 folds" in exhibit.notes[0]


def test_td2003_is_that_of_letor_2(home, tmp_path):
    """LETOR 3.0 has other features under the same name: its folder is not taken for the paper's."""
    (tmp_path / "td2003").symlink_to(home / "ohsumed-letor2")
    assert paper.fig9(data=tmp_path).table is None
    (tmp_path / "td2003-letor2").symlink_to(home / "ohsumed-letor2")
    assert paper.fig9(data=tmp_path).table is not None


def test_every_exhibit_can_be_saved(home, pieces, tmp_path):
    for name, make in paper.FIGURES.items():
        if name in ("comparison", "switch", "fig3", "fig4", "table4"):
            continue
        takes = inspect.signature(make).parameters
        given = {key: value for key, value in (("data", home), ("checkpoint", pieces)) if key in takes}
        assert make(**given).save(tmp_path)


def test_the_wider_comparison_has_every_method_and_its_difference(home, pieces):
    found = paper.comparison(data=home, checkpoint=pieces)
    assert [row[1] for row in found.table.rows] == [*methods.ALL, *methods.MORE]
    cell = found.data["ohsumed-letor2"]["RankSVM (hinge, pairs equal)"]
    assert cell["difference"][0] == pytest.approx(cell["means"][0] - 0.4469)
    assert sum("Left out" in note for note in found.notes) == 2


def test_the_switch_from_type_one_to_type_two_is_shown(home, pieces):
    found = paper.switch(data=home, checkpoint=pieces)
    assert len(found.table.rows) == 3
    assert any("PermuRank − PermuRank from AdaRank" in note for note in found.notes)


def test_error_rates_are_those_of_the_pairs(home, pieces):
    rates = paper.fig14(data=home, checkpoint=pieces).data[methods.ADARANK]
    (found,) = experiments.run([methods.OHSUMED], {methods.ADARANK: methods.LITERAL[methods.ADARANK]}, home, pieces)
    wrong = total = 0.0
    for test, s in zip(found.tests, found.scores[methods.ADARANK], strict=True):
        for a, b in zip(test.ptr[:-1], test.ptr[1:], strict=True):
            for i in range(a, b):
                for j in range(a, b):
                    if test.y[i] == 2 and test.y[j] == 0:
                        total += 1
                        wrong += (s[i] < s[j]) + 0.5 * (s[i] == s[j])
    assert rates["d-n"] == pytest.approx(wrong / total)


def test_the_curves_are_bounds():
    one, two = paper.fig1().data["curves"], paper.fig2().data["curves"]
    for name in ("exponential", "logistic"):
        assert (one[name] >= one["basic loss 1 − E"]).all()
    assert (one["exponential"] <= one["logistic"] + 1e-12).all()
    for name, curve in two.items():
        assert (curve >= two["0-1"]).all(), name
    assert {found.verdict for found in paper.fig5(lists=20).claims} == {"replicates"}


def test_the_simulation_has_its_minimum_near_a_quarter_circle():
    exhibit = paper.fig3(angles=8, draws=2)
    found = exhibit.data
    for name in ("type_two", "type_two_graded"):
        assert found["theta"][int(np.argmin(found[name]))] == pytest.approx(np.pi / 4)
    assert (found["type_one"] >= 1 - found["E"] - 1e-12).all()
    assert (found["type_two"] >= 1 - found["E"] - 1e-12).all()
    at = int(np.argmin(np.abs(found["theta"] - np.pi / 4)))
    assert found["type_two_graded"][at] < found["type_one"][at]
    assert [c.verdict for c in exhibit.claims] == ["replicates", "replicates", "does not replicate"]
    assert found["type_two"][at] > found["type_one"][at]  # why the second does not


def test_raw_features_are_normalised_per_query(home):
    letor = replace(methods.OHSUMED, normalize=True)
    fold = letor.fold(home / "ohsumed-letor2", 1)
    assert fold.train.X.min() >= 0
    assert fold.train.X.max() <= 1
