import json
import math

import numpy as np
import pytest

from toprank.papers import listwise_generalization as paper
from toprank.papers.reproduce import figures


@pytest.fixture(scope="module")
def exhibits():
    return {name: make(quick=True) for name, make in paper.FIGURES.items()}


def test_every_exhibit_saves_its_data_table_and_figure(exhibits, tmp_path):
    pytest.importorskip("matplotlib")
    for name, exhibit in exhibits.items():
        files = {path.suffix for path in exhibit.save(tmp_path)}
        assert files == ({".json", ".md"} if exhibit.draw is None else {".json", ".md", ".png"})
        assert json.loads((tmp_path / f"{name}.json").read_text())["name"] == name
        assert exhibit.name == name


def test_every_exhibit_says_what_it_shows():
    assert all(text.endswith(".") for text in figures("listwise-generalization").values())


def test_table_1_prints_what_the_definitions_give(exhibits):
    data = exhibits["table-1"].data
    assert data["largest relative difference of C"] < 1e-12
    for check in data["checks"]:
        if check["transform"] == "sigmoid":
            assert check["printed"]["N"] > check["numeric N"]
            assert check["numeric N"] == pytest.approx(0.25, rel=1e-6)
        else:
            assert check["printed"]["N"] == pytest.approx(check["numeric N"], rel=1e-3)


def test_table_2_holds_on_every_point_and_its_ratio_is_corrected(exhibits):
    data = exhibits["table-2"].data
    assert len(data["rows"]) == 3
    assert all(n == agree > 0 for *_, n, agree in data["rows"])
    for u, ratio in data["ratio φE/φS"].items():
        assert ratio == pytest.approx(1 + math.exp(-u))


def test_table_3_holds_on_every_point_and_the_example_does_not(exhibits):
    data = exhibits["table-3"].data
    assert all(n == agree for _, n, _, agree in data["rows"])
    assert any(0 < above < n for _, n, above, _ in data["rows"])
    assert data["example"] == "φL ≺ φE ≺ φS"


def test_list_length_statements(exhibits):
    data = exhibits["list-length"].data
    assert data["below six"]["agree"] == data["below six"]["points"]
    for label, falls, rise, first in data["rows"]:
        assert (falls, rise) == ("yes", "yes"), label
        assert first <= 6
        curves = data["log C"][label]
        from_six = np.array(data["lengths"]) >= 6
        assert (np.array(curves["ListMLE"]) < np.array(curves["RankCosine"]))[from_six].all()


def test_rate_is_one_over_root_n(exhibits):
    sizes = exhibits["rate"].data["sizes"]
    for logs in exhibits["rate"].data["log bound"].values():
        slope = (logs[-1] - logs[0]) / math.log(sizes[-1] / sizes[0])
        assert slope == pytest.approx(-0.5, abs=0.01)


def test_measured_gaps_stay_below_their_bounds(exhibits, tmp_path):
    rows = exhibits["gap"].data["rows"]
    for *_, trained, largest, bound, tighter in rows:
        assert trained <= largest + 1e-12
        assert largest < tighter <= bound
    again = paper.gap(quick=True, checkpoint=tmp_path)
    resumed = paper.gap(quick=True, checkpoint=tmp_path)
    assert again.data["rows"] == resumed.data["rows"]
