"""What a notebook shows: parsed again, every name as text, nothing but tables, lists and one bar."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import toprank as tr
from tests.report.contests import NASTY, held
from toprank.certificates.base import Assumption, Certificate

PLAIN = {"table", "caption", "thead", "tbody", "tr", "th", "td", "b", "p", "ul", "li", "div"}


class Reader(HTMLParser):
    """Checks that elements are closed in order and collects the cells and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []
        self.text = ""
        self.styles: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in PLAIN
        self.open.append(tag)
        self.styles += [value or "" for name, value in attrs if name == "style"]
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if "td" in self.open or "th" in self.open:
            self.cells[-1] += data


def read(value: object) -> Reader:
    found = Reader(value._repr_html_())  # type: ignore[attr-defined]
    # Colours are inherited, so that the same cell reads well on a light and on a dark page.
    assert not any(style.startswith("color:") or ";color:" in style for style in found.styles)
    return found


@pytest.fixture(scope="module")
def reports() -> dict[str, tr.Report]:
    data = tr.datasets.make_graded(n_queries=30, n_features=2, random_state=0)
    return {
        NASTY: tr.evaluate(data.y, data, ["ndcg@10", "map"]),
        "zero": tr.evaluate(0 * data.y, data, ["ndcg@10", "map"]),
    }


def test_report(reports: dict[str, tr.Report]) -> None:
    report = reports["zero"]
    found = read(report)
    assert found.cells == ["measure", "mean", *(t for m, v in report.mean.items() for t in (m, f"{v:.4f}"))]
    assert report.summary() in found.text


def test_comparison(reports: dict[str, tr.Report]) -> None:
    comparison = tr.compare(reports)
    found = read(comparison)
    assert found.cells[:3] == ["measure", NASTY, "zero"]
    assert f"{NASTY} − zero" in found.cells
    assert "Means over 30 queries, convention standard" in found.text
    assert "Holm" in found.text


def test_certificate() -> None:
    trusted = Assumption("the stream is what it seems")
    certificate = Certificate(f"a < b {NASTY}", 40.0, 12.0, "Corollary 7", (Assumption("x", True), trusted))
    found = read(certificate)
    assert f"a < b {NASTY}: observed 12, bound 40 (Corollary 7); holds." in found.text
    assert "x (checked)" in found.text
    assert "the stream is what it seems (on trust)" in found.text
    assert any("width:30.0%" in style for style in found.styles)
    unbounded = read(Certificate("a ≤ b", np.inf, 1.0, "Theorem 1"))
    assert unbounded.styles == []


def test_data_set(tmp_path: Path) -> None:
    data = tr.QueryDataset.from_arrays([[1.0], [0.0], [3.0]], [0, 1, 0], qid=[7, 7, 8])
    for value in (data, data.info()):
        cells = read(value).cells
        assert cells[cells.index("queries") + 1] == "2"
        assert cells[cells.index("documents") + 1 :][:2] == ["3", "(1 to 2 per query, median 1.5)"]
        assert cells[cells.index("grades") + 1] == "0: 2, 1: 1"
    tr.save_queries(data, tmp_path / "on <disk>")
    mapped = read(tr.open_queries(tmp_path / "on <disk>"))
    assert mapped.cells[mapped.cells.index("documents") + 1] == "3"
    assert mapped.cells[-1] == str(tmp_path / "on <disk>")


def test_contest() -> None:
    contest = held(("ListNet",), n_queries=20)
    found = read(contest)
    assert f"Settings were chosen by hand. {NASTY}" in found.text
    assert f"{contest.comparison.means['map']['ListNet']:.4f}" in found.text
