"""What the paper's figures claim, asserted on quick versions of them."""

from __future__ import annotations

import numpy as np
import pytest

import toprank as tr
from toprank.papers import online_perceptrons as paper

TWO, THREE, LISTNET = paper.NAMES.values()


@pytest.fixture(scope="module")
def fig1():
    return paper.fig1(quick=True)


@pytest.mark.parametrize("random_state", [0, 1, 2])
def test_fig1_the_perceptrons_stop_making_mistakes_and_listnet_is_lower_at_the_end(random_state, fig1):
    exhibit = fig1 if random_state == 0 else paper.fig1(quick=True, random_state=random_state)
    rounds = exhibit.data["rounds"]
    for name in (TWO, THREE):
        assert exhibit.data["last_mistake"][name] < rounds / 2
        assert exhibit.data["at_T"][name] > exhibit.data["at_T"][LISTNET]
        assert exhibit.data["at_T"][name] == pytest.approx(1, abs=1e-3)
    assert exhibit.data["last_mistake"][LISTNET] > rounds / 2


def test_fig1_losses_stay_below_their_bounds(fig1):
    for name in (TWO, THREE):
        curve = np.asarray(fig1.data["curves"][name])
        losses = (1 - curve) * np.asarray(fig1.data["round"])
        assert (losses <= fig1.data["bounds"][name]).all()


@pytest.mark.filterwarnings("ignore:all 5 step sizes reach")  # eight lists are too few to tell them apart
@pytest.mark.parametrize("number", [2, 3])
def test_figs_2_and_3_run_on_any_stream(number, tmp_path):
    data = tr.datasets.make_graded(n_queries=40, n_docs=(3, 8), n_features=6, random_state=0)
    tr.write_letor(data, tmp_path / "stream.txt")
    (tmp_path / "mslr" / "Fold1").mkdir(parents=True)
    tr.write_letor(data, tmp_path / "mslr" / "Fold1" / "train.txt")
    (tmp_path / "yahoo").mkdir()
    tr.write_letor(data, tmp_path / "yahoo" / "set1.train.txt")
    make = paper.FIGURES[f"fig{number}"]
    exhibits = [make(source) for source in (tmp_path / "stream.txt", str(tmp_path / "mslr"), tmp_path / "yahoo")]
    for exhibit in exhibits:
        assert [row[2:] for row in exhibit.table.rows] == [row[2:] for row in exhibits[0].table.rows]
        assert set(exhibit.data["curves"]) == {TWO, THREE, LISTNET}
    rest = data[8:]
    expected = rest.informative
    if number == 2:
        relevant = [(rest.y[a:b] > 0) for a, b in zip(rest.ptr[:-1], rest.ptr[1:], strict=True)]
        expected = np.array([bool(r.any() and not r.all()) for r in relevant])
    assert len(exhibits[0].data["curves"][TWO]) == expected.sum()
    with pytest.raises(tr.InputError, match="too short"):
        make(data[:1])


def test_algorithm_2_depends_on_eta_and_algorithm_3_does_not():
    values = paper.eta_dependence(quick=True).data["values"]
    assert len(set(values[THREE])) == 1
    assert len(set(values[TWO])) > 1


def test_losses_against_the_adversary_lie_between_the_bounds():
    exhibit = paper.upper_and_lower(quick=True)
    for _, _, forced, two, three, most_three, most_two in exhibit.data["rows"]:
        assert forced <= two <= most_two
        assert forced <= three <= most_three


def test_a_kernel_and_its_maps_beat_the_line():
    rows = paper.kernel_or_map(quick=True).data["rows"]
    line = rows[0][2]
    assert all(value > line for _, _, value, _ in rows[1:])


@pytest.mark.parametrize("name", list(paper.FIGURES))
def test_every_exhibit_saves_data_table_and_figure(name, tmp_path, fig1):
    exhibit = fig1 if name == "fig1" else paper.FIGURES[name](quick=True)
    assert exhibit.name == name
    written = exhibit.save(tmp_path)
    assert [file.suffix for file in written] == [".json", ".md", ".png"]
    assert all(file.stat().st_size > 0 for file in written)
