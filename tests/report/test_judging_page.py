"""The page of a judge: what it draws, that nothing is wider than a phone, and names that could be code."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import toprank as tr
from tests.report.browser import Browser, Page
from toprank.report.judging import render, write_page

NASTY = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def found() -> tr.JudgeReport:
    rng = np.random.default_rng(0)
    queries = {f"q{i}": {f"d{j}": int(rng.integers(4)) for j in range(6)} for i in range(90)}
    machine = {q: {d: min(3, g + int(rng.integers(2))) for d, g in docs.items()} for q, docs in queries.items()}
    people = {q: queries[q] for q in list(queries)[:60]}
    runs = {
        name: {q: {d: g + noise * rng.normal() for d, g in docs.items()} for q, docs in queries.items()}
        for name, noise in ((f"system {NASTY}", 0.3), ("second", 1.0), ("third", 2.0))
    }
    return tr.judge(people, machine, runs, "ndcg@3", judge_name="ro<b>ot", baseline="third")


def test_every_system_has_people_machine_and_both(found: tr.JudgeReport) -> None:
    page = render(found)
    assert NASTY not in page
    assert "ro<b>ot" not in page
    drawn = re.findall(r'<b class="(people|machine|both)" style="left:([\d.]+)%"', page)
    assert [kind for kind, _ in drawn] == ["people", "machine", "both"] * 3
    assert all(0 <= float(place) <= 100 for _, place in drawn)
    shares = [float(s) for s in re.findall(r"--share:([\d.]+)", page)]
    a = found.agreement
    wanted = 0.6 * a.confusion / a.confusion.sum(axis=1, keepdims=True)
    assert shares == pytest.approx(wanted.ravel().tolist(), abs=6e-4)
    assert page.count('class="equal"') == len(a.grades)
    for title in ("Favourites", "Agreement on documents", "Further queries", "Differences to the baseline"):
        assert title in page


def test_without_runs_there_is_agreement_alone() -> None:
    page = render(tr.judge({"q": {"a": 1, "b": 0}}, {"q": {"a": 1, "b": 1}}))
    assert "Agreement on documents" in page
    assert "Favourites" not in page


@pytest.mark.parametrize("width", [320, 375, 1200])
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_and_asks_for_nothing(
    browser: Browser, found: tr.JudgeReport, tmp_path: Path, width: int, dark: bool
) -> None:
    path = tmp_path / "judge.html"
    write_page(found, path)
    page = Page(browser, width, dark=dark).open(path)
    try:
        assert page.run("document.documentElement.scrollWidth") <= width
        assert page.complaints() == []
        assert page.requests() == [path.as_uri()]
        ground = page.run("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(255, 255, 255)") is not dark
        # A table may scroll in its own frame, but that of the systems fits where a tablet or more is there.
        if width == 1200:
            assert page.run("document.querySelector('.judges').scrollWidth <= document.body.clientWidth")
    finally:
        page.close()
