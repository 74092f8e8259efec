from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import toprank as tr
from toprank._tables import Table
from toprank.cli import cli
from toprank.papers import reproduce
from toprank.papers.exhibits import JUDGES, VERDICTS, Claim, Exhibit, Panel, judge, panels
from toprank.papers.page import render


def test_papers_share_a_folder_without_overwriting_each_other(tmp_path):
    for paper, figure in (("direct-optimization", "fig1"), ("precision-at-top", "counterexample")):
        ((_, files),) = reproduce.reproduce(paper, figure, out=tmp_path)
        assert {file.parent for file in files} == {tmp_path / paper}
    names = [set(reproduce.figures(paper)) for paper in reproduce.papers()]
    assert any(a & b for i, a in enumerate(names) for b in names[:i])  # why each paper needs a folder of its own


def test_unknown_names_are_answered_with_known_ones(tmp_path):
    with pytest.raises(tr.InputError, match="did you mean 'direct-optimization'"):
        list(reproduce.reproduce("direct-optimisation", out=tmp_path))
    with pytest.raises(tr.InputError, match=r"has no exhibit 'tabel2' \(did you mean 'table2'"):
        list(reproduce.reproduce("direct-optimization", "tabel2", out=tmp_path))
    with pytest.raises(tr.InputError, match="makes its own data"):
        list(reproduce.reproduce("direct-optimization", "fig1", out=tmp_path, data="somewhere"))


def test_an_option_that_no_exhibit_takes_is_refused(tmp_path):
    with pytest.raises(tr.InputError, match="direct-optimization fig1 does not take --seeds"):
        list(reproduce.reproduce("direct-optimization", "fig1", out=tmp_path, seeds=3))
    with pytest.raises(tr.InputError, match="counterexample does not take --seeds; fig2, fig3, theorems, covertype do"):
        list(reproduce.reproduce("precision-at-top", "counterexample", out=tmp_path, seeds=3))
    with pytest.raises(tr.InputError, match="no exhibit of clicks takes --max-rows"):
        list(reproduce.reproduce("clicks", out=tmp_path, max_rows=3))


@pytest.mark.parametrize(
    "given", [("online-perceptrons", "fig1", "--passes", 0), ("precision-at-top", "fig2", "--seeds", 0)]
)
def test_a_number_below_1_is_refused_in_one_line(given, tmp_path):
    found = run(*given, "--out", tmp_path)
    assert isinstance(found.exception, tr.InputError)
    assert given[2][2:] in str(found.exception)
    with pytest.raises(tr.InputError, match="does not take --trees"):  # where 0 means something, it is let through
        list(reproduce.reproduce("direct-optimization", "fig1", out=tmp_path, trees=0))


def test_a_verdict_is_that_of_the_comparison():
    @judge
    def all_three():
        yield from (("", holds, "") for holds in (np.True_, np.False_, None))

    @judge
    def below():
        yield "A.", True, "From -0.50 to 1.5e-3, b^(-1), LETOR-2 at -3."

    del JUDGES[-2:]
    assert [found.verdict for found in all_three()] == list(VERDICTS)
    assert below()[0].why == "From −0.50 to 1.5e-3, b^(−1), LETOR-2 at −3."


def test_a_figure_is_saved_in_four_forms_and_the_same_bytes_twice(tmp_path):
    def draw(figure):
        figure.subplots().plot([0, 1], [1, 0])

    exhibit = Exhibit(
        "one",
        "One",
        {"x": np.arange(2)},
        Table(("a",), [(1.0,)]),
        ("A note.",),
        draw,
        (Claim("C.", "replicates", "W."),),
    )
    first, second = (exhibit.save(tmp_path / place) for place in ("first", "second"))
    assert [file.suffix for file in first] == [".json", ".md", ".png", ".svg"]
    assert [a.read_bytes() for a in first] == [b.read_bytes() for b in second]
    assert json.loads(first[0].read_text())["claims"] == [
        {"text": "C.", "verdict": "replicates", "why": "W.", "own": False}
    ]
    assert "- Replicates: C. W." in first[1].read_text()


def test_a_panel_shows_all_of_its_curves_on_every_kind_of_axis():
    from matplotlib.figure import Figure

    x, y = np.geomspace(1, 1e4, 20), np.geomspace(1e-3, 1e6, 20)
    for log in ("", "x", "y", "xy"):
        figure = Figure()
        panels(Panel({"a": y, "b": (x[:3], y[:3], np.full(3, 1e-4))}, x, "x", "y", "t", log), Panel({"a": y}, x))(
            figure
        )
        (left, right), (bottom, top) = figure.axes[0].get_xlim(), figure.axes[0].get_ylim()
        assert left <= 1 < 1e4 <= right
        assert bottom <= 1e-3 < 1e6 <= top
        if "y" in log:
            assert 0 < bottom < top < 1e9  # not a line at the very top
        assert figure.axes[0].get_yscale() == ("log" if "y" in log else "linear")


def test_a_point_alone_is_seen_and_marks_of_a_short_axis_do_not_overlap():
    from matplotlib.figure import Figure

    figure = Figure()
    panels(Panel({"one": ([125], [0.5], None), "two": ([125, 4000], [0.1, 0.2], [0.01, 0.01])}, log="x"))(figure)
    axis = figure.axes[0]
    assert axis.lines[0].get_marker() == "o"
    assert [label.get_text() for label in axis.get_xticklabels()] == ["125", "4000"]
    assert not axis.get_xticklabels(minor=True)


def test_the_page_has_claims_pictures_tables_and_fetches_nothing():
    exhibits = [
        Exhibit(
            "one",
            "One <b>",
            {},
            Table(("a",), [("<i>",)]),
            ("n",),
            lambda f: f.subplots(),
            (Claim("A <b>.", "does not replicate", "w"),),
        ),
        Exhibit("two", "Two", {}),
    ]
    page = render("some-paper", exhibits)
    assert "Exhibits: 2. Claims: 1, of which 0 × replicates, 1 × does not replicate" in page
    assert "data:image/svg+xml;base64," in page
    assert "<b>" not in page.replace("<body>", "")
    assert "http" not in page.replace("http-equiv", "")
    assert "default-src 'none'" in page


def test_the_table_of_claims_is_written_from_saved_exhibits_only(tmp_path):
    with pytest.raises(tr.InputError, match="holds no exhibits"):
        reproduce.replication(tmp_path)
    list(reproduce.reproduce("precision-at-top", "counterexample", out=tmp_path))
    text = reproduce.replication(tmp_path)
    assert "2 claims: 2 × replicates, 0 × does not replicate" in text
    assert "Not run: clicks corrected" in text
    list(reproduce.reproduce("precision-at-top", "theorems", out=tmp_path, seeds=1))
    assert "precision-at-top theorems (--seeds 1)" in reproduce.replication(tmp_path)
    stored = tmp_path / "precision-at-top" / "theorems.json"
    stored.write_text(stored.read_text().replace('"seeds": 1', '"seeds": 5'))  # as usual
    assert "--seeds" not in reproduce.replication(tmp_path)
    (tmp_path / "precision-at-top" / "theorems.json").unlink()
    stored = tmp_path / "precision-at-top" / "counterexample.json"
    stored.write_text(stored.read_text().replace('"replicates"', '"does not replicate"'))
    assert "2 claims: 0 × replicates, 2 × does not replicate" in reproduce.replication(tmp_path)


def test_own_sentences_are_not_counted(tmp_path):
    from toprank.papers.exhibits import Exhibit, Own, judge
    from toprank.papers.page import render

    @judge
    def said():
        yield "The paper's.", True, "1."
        yield Own("Ours."), False, "2."

    JUDGES.pop()
    exhibit = Exhibit("counterexample", "T", {}, claims=said())
    exhibit.save(tmp_path / "precision-at-top")
    text = reproduce.replication(tmp_path)
    assert "1 claims: 1 × replicates, 0 × does not replicate" in text
    first, second = text.split("## Not the papers' sentences")
    assert ("The paper's." in first, "Ours." in first, "Ours." in second) == (True, False, True)
    page = render("precision-at-top", [exhibit])
    assert "Claims: 1, of which 1 × replicates, 0 × does not replicate" in page
    assert page.index("Not the paper&#x27;s sentences") > page.index("The paper&#x27;s.")


def run(*args):
    return CliRunner().invoke(cli, ["reproduce", *map(str, args)])


def test_the_command_lists_papers_and_exhibits():
    found = run()
    assert found.exit_code == 0
    assert {"clicks", *reproduce.papers()} <= set(found.stdout.split())
    assert max(map(len, found.stdout.splitlines())) <= 80
    assert "fig2" in run("online-perceptrons", "--list").stdout
    assert set(json.loads(run("precision-at-top", "--list", "--json").stdout)) == set(
        reproduce.figures("precision-at-top")
    )


def test_the_command_writes_a_page_and_the_claims(tmp_path):
    found = run("precision-at-top", "counterexample", "--out", tmp_path, "--html")
    assert found.exit_code == 0
    assert (tmp_path / "precision-at-top.html").read_text().startswith("<!doctype html>")
    assert run("--out", tmp_path, "--claims", tmp_path / "replication.md").exit_code == 0
    assert "| precision-at-top |" in (tmp_path / "replication.md").read_text()


def test_a_wrong_folder_is_an_error_and_no_empty_table(tmp_path):
    for paper, figure in (
        *(("direct-optimization", name) for name in ("table2", "ttests", "fig8", "fig11", "fig14", "table4", "switch")),
        ("precision-at-top", "fig2"),
        ("listwise-generalization", "letor"),
    ):
        found = run(paper, figure, "--data", tmp_path, "--out", tmp_path)
        assert isinstance(found.exception, tr.InputError)
        assert "none of" in str(found.exception)
        found = run(paper, figure, "--data", tmp_path / "nowhere", "--out", tmp_path)
        assert "is not a folder" in str(found.exception)
