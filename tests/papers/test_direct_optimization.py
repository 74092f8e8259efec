from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

import toprank as tr
from toprank.papers import _direct_choices as designs
from toprank.papers import _direct_folds as folds
from toprank.papers import direct_optimization as paper


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
    for module in (folds, designs):
        grids = {"SVMmap": (1.0, 100.0), "PermuRank": (1.0, 10.0), "RankSVM": (0.01, 1.0)}
        monkeypatch.setattr(module, "GRIDS", grids)
        monkeypatch.setattr(module, "ROUNDS", {"PermuRank": 3, "RankBoost": 50, "perceptron": 2})


def test_table_2_leaves_absent_collections_out_and_says_so(home, pieces):
    table = paper.table2(data=home, checkpoint=pieces)
    assert [row[0] for row in table.table.rows] == list(folds.METHODS)
    assert table.table.columns == ["method", "OHSUMED", "published", "difference"]
    assert any("TD2003, TD2004" in note for note in table.notes)
    assert any("WSJ, AP" in note for note in table.notes)
    # The mean of fold means, of scores that the pieces hold.
    stored = [json.loads(file.read_text()) for file in pieces.glob("*.json")]
    assert len(stored) == 2 * len(folds.METHODS)
    means = []
    for piece in stored:
        if piece["key"]["method"] == "RankSVM":
            test = tr.read_letor(home / "ohsumed-letor2" / f"Fold{piece['key']['fold']}" / "testset.txt")
            means.append(tr.measure("map:letor3").mean(piece["result"]["scores"], test.y, test.ptr))
    assert table.data["OHSUMED"]["RankSVM"] == pytest.approx(np.mean(means))


def test_finished_pieces_are_not_computed_again(home, pieces, monkeypatch):
    paper.table2(data=home, checkpoint=pieces)
    monkeypatch.setattr(folds, "learn", lambda *_: pytest.fail("fitted again"))
    for make in (paper.table3, paper.table4, paper.fig8, paper.fig14, paper.fig15, paper.fig16, paper.ttests):
        exhibit = make(data=home, checkpoint=pieces)
        assert exhibit.table is not None


def test_absent_collections_have_an_exhibit_that_says_so(home, pieces):
    for make in (paper.fig9, paper.fig10, paper.fig12, paper.fig13):
        exhibit = make(data=home, checkpoint=pieces)
        assert "not among the data" in exhibit.notes[0]
        assert exhibit.table is None
    assert "never published" in paper.fig12(data=home).notes[1]


def test_folds_of_ones_own_take_the_place_of_collections_that_were_never_published(home, tmp_path):
    (tmp_path / "wsj").symlink_to(home / "ohsumed-letor2")
    exhibit = paper.fig12(data=tmp_path)
    assert [row[0] for row in exhibit.table.rows] == list(folds.METHODS)
    assert "2 folds" in exhibit.notes[0]


def test_every_exhibit_can_be_saved(home, pieces, tmp_path):
    for name, make in paper.FIGURES.items():
        if name in ("comparison", "switch", "fig3", "fig4", "choices"):
            continue
        takes = make.__kwdefaults__ or {}
        given = {key: value for key, value in (("data", home), ("checkpoint", pieces)) if key in takes}
        assert make(**given).save(tmp_path)


def test_the_wider_comparison_has_every_method_and_its_difference(home, pieces):
    found = paper.comparison(data=home, checkpoint=pieces)
    methods = [row[1] for row in found.table.rows]
    assert methods == [*folds.METHODS, *folds.MORE, folds.FUSION]
    cell = found.data["ohsumed-letor2"]["RankSVM"]
    assert cell["difference"][0] == pytest.approx(cell["means"][0] - 0.4469)
    assert sum("Left out" in note for note in found.notes) == 2


def test_the_switch_from_type_one_to_type_two_is_shown(home, pieces):
    found = paper.switch(data=home, checkpoint=pieces)
    assert len(found.table.rows) == 3
    assert any("PermuRank − PermuRank from AdaRank" in note for note in found.notes)


def test_designs_are_compared_with_every_default_among_them(home, pieces):
    found = paper.choices(data=home, checkpoint=pieces)
    assert set(found.data["chosen"]) == set(designs.FAMILIES)
    for method, variants in found.data["found"].items():
        assert designs.DEFAULTS[method] in variants
        assert all(len(sets["ohsumed-letor2"]) == 2 for sets in variants.values())
    assert sum("Left out" in note for note in found.notes) == 2


def test_designs_do_not_depend_on_the_test_parts(home, tmp_path, monkeypatch):
    monkeypatch.setattr(designs, "FAMILIES", {"RankBoost": designs.FAMILIES["RankBoost"]})
    shutil.copytree(home / "ohsumed-letor2", tmp_path / "ohsumed-letor2")
    for fold in (1, 2):
        place = tmp_path / "ohsumed-letor2" / f"Fold{fold}"
        shutil.copy(place / "trainingset.txt", place / "testset.txt")
    assert paper.choices(data=tmp_path).data == paper.choices(data=home).data


def test_a_lucky_option_is_worth_less_on_queries_that_did_not_pick_it():
    options = np.random.default_rng(0).random((300, 40))  # nothing to learn: every option is worth one half
    own, other = designs.picked(options)
    assert own == options.mean(axis=1).max() > 0.6
    assert other == pytest.approx(0.5, abs=0.03)


def test_error_rates_are_those_of_the_pairs(home, pieces):
    rates = paper.fig14(data=home, checkpoint=pieces).data["AdaRank"]
    results = folds.run(folds.OHSUMED, folds.METHODS, home, pieces)
    wrong = total = 0.0
    for test, fit in zip(results.tests, results.runs["AdaRank"], strict=True):
        s = np.array(fit["scores"])
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


def test_the_simulation_has_its_minimum_near_a_quarter_circle():
    found = paper.fig3(angles=8).data
    for name in ("type_two", "type_two_graded"):
        assert found["theta"][int(np.argmin(found[name]))] == pytest.approx(np.pi / 4)
    assert (found["type_one"] >= 1 - found["E"] - 1e-12).all()
    assert (found["type_two"] >= 1 - found["E"] - 1e-12).all()
    at = int(np.argmin(np.abs(found["theta"] - np.pi / 4)))
    assert found["type_two_graded"][at] < found["type_one"][at]


def test_fusion_is_the_sum_of_reciprocal_ranks():
    data = tr.QueryDataset.from_arrays(np.zeros((3, 1)), [0, 1, 2])
    fused = folds.fuse([[3.0, 2.0, 1.0], [1.0, 3.0, 2.0]], data)
    assert fused == pytest.approx([1 / 61 + 1 / 63, 1 / 62 + 1 / 61, 1 / 63 + 1 / 62])
