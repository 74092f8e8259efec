import json
import math
from importlib import import_module

import numpy as np
import pytest

from toprank.papers import listwise_generalization as paper
from toprank.papers.listwise_generalization import tables
from toprank.papers.reproduce import figures


@pytest.fixture(scope="module")
def exhibits():
    quick = {"table-2": {"points": 300}, "table-3": {"points": 500}, "gap": {"sizes": (20, 80), "repeats": 2}}
    quick["theorems"] = {"n": 8, "m": 4}
    return {name: make(**quick.get(name, {})) for name, make in paper.FIGURES.items() if name != "letor"}


def test_every_exhibit_saves_its_data_table_and_figure(exhibits, tmp_path):
    pytest.importorskip("matplotlib")
    for name, exhibit in exhibits.items():
        files = {path.suffix for path in exhibit.save(tmp_path)}
        assert files == ({".json", ".md"} if exhibit.draw is None else {".json", ".md", ".png", ".svg"})
        assert json.loads((tmp_path / f"{name}.json").read_text())["name"] == name
        assert exhibit.name == name


def test_every_exhibit_says_what_it_shows():
    assert all(text.endswith(".") for text in figures("listwise-generalization").values())


def test_table_1_prints_what_the_definitions_give(exhibits):
    data = exhibits["table-1"].data
    assert data["largest difference of C"] < 1e-12
    for check in data["checks"]:
        if check["transform"] == "sigmoid":
            assert check["printed"]["N"] > check["numeric N"]
            assert check["numeric N"] == pytest.approx(0.25, rel=1e-6)
        else:
            assert check["printed"]["N"] == pytest.approx(check["numeric N"], rel=1e-3)


def verdicts(exhibit):
    return [found.verdict for found in exhibit.claims]


YES, NO = "replicates", "does not replicate"


def test_table_1_claims_follow_the_formulas(exhibits, monkeypatch):
    assert verdicts(exhibits["table-1"]) == [YES, YES, YES, NO]
    right = tables._printed
    monkeypatch.setattr(tables, "_printed", lambda *given: {k: 1.01 * v for k, v in right(*given).items()})
    assert set(verdicts(tables.table_1())) == {NO}


def test_table_2_holds_on_every_point_and_its_ratio_is_corrected(exhibits):
    data = exhibits["table-2"].data
    assert len(data["rows"]) == 3
    assert all(n == agree > 0 for *_, n, agree, _ in data["rows"])
    for u, ratio in data["ratio φE/φS"].items():
        assert ratio == pytest.approx(1 + math.exp(-u))
    assert verdicts(exhibits["table-2"]) == [YES, NO, NO, YES]


def test_table_3_holds_on_every_point_its_rows_2_and_4_are_empty_and_the_example_is_wrong(exhibits):
    data = exhibits["table-3"].data
    assert all(n == agree for *_, n, agree, _ in data["rows"])
    assert [row[0] for row in data["rows"] if row[2] == 0] == ["φL ≻ φE", "φL ≻ φS"]
    assert data["example"] == ["φL ≺ φE ≺ φS", "φL ≺ φS ≺ φE"]
    assert verdicts(exhibits["table-3"]) == [YES, NO, NO, NO, YES]


def test_theorem_2_holds_and_would_be_seen_to_fail(exhibits, monkeypatch):
    assert set(verdicts(exhibits["theorems"])) == {YES}
    module = import_module(paper.theorems.__module__)
    monkeypatch.setattr(module.theory, "log_c", lambda *_: -10.0)
    assert verdicts(paper.theorems(n=6, m=3))[0] == NO


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
    for logs in exhibits["rate"].data["bound"].values():
        slope = (math.log(logs[-1]) - math.log(logs[0])) / math.log(sizes[-1] / sizes[0])
        assert slope == pytest.approx(-0.5, abs=0.01)


def test_measured_gaps_stay_below_their_bounds(exhibits, tmp_path):
    rows = exhibits["gap"].data["rows"]
    for *_, trained, largest, bound, tighter, each in rows:
        assert largest == pytest.approx(np.mean(each))
        assert trained <= largest + 1e-12
        assert largest < tighter <= bound
    again = paper.gap(sizes=(10, 20), repeats=2, checkpoint=tmp_path)
    resumed = paper.gap(sizes=(10, 20), repeats=2, checkpoint=tmp_path)
    assert again.data["rows"] == resumed.data["rows"]
