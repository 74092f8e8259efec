"""Quick versions of the figures; verdicts follow the numbers."""

from __future__ import annotations

import numpy as np
import pytest

import toprank as tr
from toprank.papers import online_perceptrons as paper
from toprank.papers.online_perceptrons import separable
from toprank.papers.online_perceptrons.streams import THREE, TWO, etas, held

YES = "replicates"
QUICK = {"fig1": {"passes": 10}, "regret": {"passes": 3}, "eta_dependence": {"points": 3}}
QUICK |= {"upper_and_lower": {"margins": (0.25, 0.18)}, "kernel_or_map": {"lists": 60, "sizes": (50,)}}


@pytest.fixture(scope="module")
def exhibits():
    given = {"data": tr.datasets.make_graded(n_queries=60, n_docs=(3, 8), n_features=6, random_state=0)}
    return {name: make(**QUICK.get(name, given)) for name, make in paper.FIGURES.items()}


def test_the_hard_stream_is_separable_with_the_same_margin_and_costs_more(exhibits):
    easy, hard = separable.streams(100, 0.02, 0).values()
    assert hard[1] == pytest.approx(easy[1], rel=1e-6)
    assert (hard[0].X ** 2).sum() > 10 * (easy[0].X ** 2).sum()
    lost = {row[:2]: row[6] for row in exhibits["fig1"].table.rows}
    assert lost["hard", TWO] > lost["as the paper's", TWO]


def test_step_sizes_are_in_units_of_the_features():
    data = tr.datasets.make_graded(n_queries=10, random_state=0)
    small, large = (etas(tr.SlamPerceptron, d) for d in (data, data.with_X(data.X * 1e8)))
    assert np.allclose(np.array(small) / np.array(large), 1e16)
    assert etas(tr.SlamPerceptron, data, "running") == etas(tr.SlamPerceptron, data.with_X(data.X * 1e8), "running")


@pytest.mark.parametrize("number", [2, 3])
def test_figs_2_and_3_run_on_any_stream(number, tmp_path):
    data = tr.datasets.make_graded(n_queries=40, n_docs=(3, 8), n_features=6, random_state=0)
    tr.write_letor(data, tmp_path / "stream.txt")
    (tmp_path / "mslr" / "Fold1").mkdir(parents=True)
    tr.write_letor(data, tmp_path / "mslr" / "Fold1" / "train.txt")
    (tmp_path / "yahoo").mkdir()
    tr.write_letor(data, tmp_path / "yahoo" / "set1.train.txt")
    (tmp_path / "yandex").mkdir()
    lines = (tmp_path / "stream.txt").read_text().splitlines()
    moved = [
        f"{first} {rest.split('#')[0].strip()} # {qid[4:]}" for first, qid, rest in (x.split(" ", 2) for x in lines)
    ]
    (tmp_path / "yandex" / "imat2009_learning.txt").write_text("\n".join(moved) + "\n")
    make = paper.FIGURES[f"fig{number}"]
    places = (tmp_path / "stream.txt", str(tmp_path / "mslr"), tmp_path / "yahoo", tmp_path / "yandex")
    exhibits = [make(source) for source in places]
    for exhibit in exhibits:
        assert [row[1:] for row in exhibit.table.rows] == [row[1:] for row in exhibits[0].table.rows]
    rest = data[8:]
    expected = rest.informative
    if number == 2:
        relevant = [(rest.y[a:b] > 0) for a, b in zip(rest.ptr[:-1], rest.ptr[1:], strict=True)]
        expected = np.array([bool(r.any() and not r.all()) for r in relevant])
    assert len(exhibits[0].data["curves"]["stream.txt"][TWO]) == expected.sum()
    with pytest.raises(tr.InputError, match="too short"):
        make(data[:1])


def test_collections_at_hand_are_found_and_the_others_undecided(tmp_path, monkeypatch):
    data = tr.datasets.make_graded(n_queries=40, n_docs=(3, 8), n_features=6, random_state=0)
    (tmp_path / "yahoo").mkdir()
    tr.write_letor(data, tmp_path / "yahoo" / "set1.train.txt")
    monkeypatch.setenv("TOPRANK_DATA", str(tmp_path))
    exhibit = paper.fig3()
    assert {row[0] for row in exhibit.table.rows} == {"yahoo-set1"}
    absent = [c for c in exhibit.claims if "not to be had here" in c.why]
    assert [c.verdict for c in absent] == 4 * ["cannot be decided here"]


def test_algorithm_2_depends_on_eta_and_algorithm_3_does_not(exhibits):
    values = exhibits["eta_dependence"].data["values"]
    assert len(set(values[THREE])) == 1
    assert len(set(values[TWO])) > 1


def test_mistakes_against_the_adversary_meet_their_bound(exhibits):
    exhibit = exhibits["upper_and_lower"]
    for _, gamma, rounds, mistakes, most, forced, two, three, most_two in exhibit.data["rows"]:
        assert mistakes == rounds  # every round is a mistake: the adversary sees to it
        assert mistakes <= most == pytest.approx(4 / gamma**2)
        assert forced <= min(two, three)
        assert two <= most_two
    assert {c.verdict for c in exhibit.claims} == {YES}


def test_a_kernel_and_its_maps_beat_the_line(exhibits):
    rows = exhibits["kernel_or_map"].data["rows"]
    line = rows[0][2]
    assert all(row[2] > line for row in rows[1:])
    assert "kept in 4 of 4 runs" in exhibits["kernel_or_map"].notes[1]
    broken = [(*row[:5], "3 (violated)") if row[5] else row for row in rows]
    assert "kept in 0 of 4 runs" in held(broken)


def test_every_exhibit_saves_data_table_and_figure(exhibits, tmp_path):
    for name, exhibit in exhibits.items():
        assert exhibit.name == name
        written = exhibit.save(tmp_path)
        assert [file.suffix for file in written] == [".json", ".md", ".png", ".svg"]
        assert all(file.stat().st_size > 0 for file in written)


def test_a_folder_of_collections_is_as_good_as_the_variable_and_a_wrong_one_an_error(tmp_path, monkeypatch):
    monkeypatch.delenv("TOPRANK_DATA", raising=False)
    data = tr.datasets.make_graded(n_queries=40, n_docs=(3, 8), n_features=6, random_state=0)
    with pytest.raises(tr.InputError, match="holds no stream: looked for"):
        paper.fig3(str(tmp_path))
    (tmp_path / "mslr-msn1-5k").mkdir()
    tr.write_letor(data, tmp_path / "mslr-msn1-5k" / "msn1.fold1.train.5k.txt")
    (tmp_path / "yandex").mkdir()
    tr.write_letor(data, tmp_path / "yandex" / "imat2009_learning.txt")
    assert {row[0] for row in paper.fig3(str(tmp_path)).table.rows} == {"mslr-msn1-5k", "yandex"}
    # The whole takes the place of its head.
    (tmp_path / "MSLR-WEB10K" / "Fold1").mkdir(parents=True)
    tr.write_letor(data, tmp_path / "MSLR-WEB10K" / "Fold1" / "train.txt")
    assert {row[0] for row in paper.fig3(tmp_path).table.rows} == {"mslr-web10k", "yandex"}
