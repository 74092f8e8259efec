"""The page in a real browser, without a network: it loads, sorts, opens queries, by mouse and by keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import toprank as tr
from tests.report.browser import Browser, Page
from tests.report.contests import NASTY
from toprank.contests.base import Contest
from toprank.report.page import write_report


@pytest.fixture
def small(browser: Browser, small_page: Path) -> Iterator[Page]:
    page = Page(browser).open(small_page)
    yield page
    assert page.complaints() == []
    assert page.requests() == [small_page.as_uri()]
    page.close()


@pytest.fixture
def large(browser: Browser, large_page: Path) -> Iterator[Page]:
    page = Page(browser).open(large_page)
    yield page
    assert page.complaints() == []
    assert page.requests() == [large_page.as_uri()]
    page.close()


def column(page: Page, place: int) -> list[str]:
    return page.run(f"[...document.querySelectorAll('#list tbody tr')].map((row) => row.cells[{place}].textContent)")


def choose(page: Page, select: str, value: int) -> None:
    found = f"const s = document.getElementById('{select}')"
    page.run(f"(() => {{ {found}; s.value = {value}; s.dispatchEvent(new Event('change')); }})()")


def focused(page: Page, what: str = "id") -> Any:
    return page.run(f"document.activeElement.{what}")


def show_all(page: Page) -> None:
    while not page.run("document.getElementById('more').hidden"):
        page.run("document.getElementById('more').click()")


def number(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))


def test_it_loads_and_draws_everything(small: Page) -> None:
    assert small.run("document.documentElement.classList.contains('script')")
    assert small.run("document.querySelectorAll('[data-measure]:not([hidden])').length") == 1
    assert small.run("document.querySelectorAll('#matrix tbody button').length") == 12
    assert small.run("document.querySelectorAll('#chart path').length") == 4
    assert small.run("document.querySelectorAll('#coefficients tbody tr').length") == 8
    assert small.run("document.querySelectorAll('#learning figure').length") == 6
    assert small.run("document.querySelectorAll('img').length") == 0
    show_all(small)
    assert f"q3 {NASTY}" in column(small, 0)


def test_the_other_measure(small: Page) -> None:
    choose(small, "measure", 1)
    assert small.run("document.querySelector('[data-measure]:not([hidden]) caption').textContent") == "map"
    assert " on map: " in small.run("document.getElementById('tally').textContent")
    assert " on map: " in small.run("document.getElementById('pair').textContent")


@pytest.mark.parametrize("place", range(1, 6))
def test_sorting_by_a_number(small: Page, place: int) -> None:
    header = f"#list th:nth-child({place + 1})"
    show_all(small)
    if place == 5:
        assert small.run(f"document.querySelector('{header}').ariaSort") == "descending"
    else:
        small.click(f"{header} button")
    shown = [number(text) for text in column(small, place)]
    assert shown == sorted(shown, reverse=True)
    assert len(set(shown)) > 3
    assert small.run("document.querySelectorAll('[aria-sort]').length") == 1
    small.run(f"document.querySelector('{header} button').focus()")
    small.enter()
    assert small.run(f"document.querySelector('{header}').ariaSort") == "ascending"
    assert focused(small, "dataset.key") == ["docs", "relevant", "a", "b", "difference"][place - 1]
    turned = [number(text) for text in column(small, place)]
    assert turned == sorted(turned)


def test_sorting_by_name_counts_like_people(small: Page) -> None:
    small.click("#list th:first-child button")
    assert column(small, 0)[:3] == ["q0", "q1", "q2"]


def test_finding_a_query(small: Page) -> None:
    small.run(
        "(() => { const f = document.getElementById('find'); f.value = 'Q5'; f.dispatchEvent(new Event('input')); })()"
    )
    assert sorted(column(small, 0)) == sorted(["q5", *(f"q{i}" for i in range(50, 60))])


def test_a_query_by_mouse(small: Page, small_contest: Contest) -> None:
    query = small.run("document.querySelector('#list .open').dataset.query")
    small.click("#list tbody tr:first-child .open")
    assert small.run("document.getElementById('view').open")
    data = small_contest.data
    rows = slice(*data.ptr[int(query) : int(query) + 2])
    names = small.run("[...document.querySelectorAll('.ranking')].map((r) => r.getAttribute('aria-label'))")
    assert names == ["Ranking by ListNet", "Ranking by order as given"]
    for i, name in enumerate(["ListNet", "order as given"]):
        scores = small_contest.entrant(name).scores[rows]
        order = np.argsort(-scores, kind="stable")[:10]

        def texts(kind: str, i: int = i) -> list[str]:
            return small.run(
                f"[...document.querySelectorAll('.ranking')[{i}].querySelectorAll('.{kind}')].map((e) => e.textContent)"
            )

        assert texts("doc") == data.doc_ids[rows][order].tolist()
        assert texts("grade") == [f"{grade:g}" for grade in data.y[rows][order]]
        assert texts("score") == [f"{scores[d]:.4g}".replace("-", "−") for d in order]
    small.click(".ranking button.row")
    assert small.run("document.querySelector('.ranking button.row').ariaExpanded") == "true"
    parts = small.run("[...document.querySelectorAll('.ranking dl:not([hidden]) dd')].map((e) => e.textContent)")
    top = float(small.run("document.querySelector('.ranking .score').textContent").replace("−", "-"))
    assert sum(map(number, parts)) == pytest.approx(top, abs=0.05)
    small.click("#close")
    assert not small.run("document.getElementById('view').open")
    assert focused(small, "dataset.query") == query


def test_a_query_by_keyboard(small: Page) -> None:
    choose(small, "baseline", 2)
    small.run("document.querySelector('#list .open').focus()")
    query = focused(small, "dataset.query")
    small.enter()
    assert small.run("document.getElementById('view').open")
    assert focused(small) == "close"
    title = small.run("document.getElementById('view-title').textContent")
    small.key("ArrowRight")
    assert small.run("document.getElementById('view-title').textContent") != title
    small.key("ArrowLeft")
    assert small.run("document.getElementById('view-title').textContent") == title
    assert small.run("document.querySelectorAll('.why tbody tr').length") == 9
    small.key("Tab")
    assert focused(small, "className") == "row"
    small.enter()
    assert focused(small, "ariaExpanded") == "true"
    small.key("Escape")
    assert not small.run("document.getElementById('view').open")
    assert focused(small, "dataset.query") == query


def test_the_chart_by_keyboard(large: Page) -> None:
    large.run("document.getElementById('chart').focus()")
    assert "1 of 1,000: query " in large.run("document.getElementById('pointed').textContent")
    large.key("End")
    assert large.run("document.getElementById('chart').ariaValueNow") == "1000"
    large.key("ArrowLeft")
    assert "999 of 1,000" in large.run("document.getElementById('chart').ariaValueText")
    large.key("End")
    large.enter()
    opened = large.run("document.getElementById('view').open")
    assert opened == ("rankings" in large.run("document.getElementById('chart').ariaValueText"))


def test_the_matrix_by_keyboard(small: Page) -> None:
    small.run("document.querySelector('#matrix [tabindex=\"0\"]').focus()")
    first = small.run("document.getElementById('pair').textContent")
    small.key("ArrowRight")
    second = small.run("document.getElementById('pair').textContent")
    assert first != second
    assert small.run("document.querySelectorAll('#matrix [tabindex=\"0\"]').length") == 1
    small.key("ArrowDown")
    label = focused(small, "ariaLabel")
    small.enter()
    a, b = small.run(
        "['challenger', 'baseline'].map((id) => document.getElementById(id).selectedOptions[0].textContent)"
    )
    assert label.startswith(f"{a} − {b} on ndcg@10: ")


def test_every_control_can_be_reached_and_seen(small: Page) -> None:
    reached: list[str] = []
    while "weighed" not in reached:
        small.key("Tab")
        assert len(reached) < 80
        reached.append(focused(small) or focused(small, "className") or focused(small, "dataset.key"))
        assert small.run("getComputedStyle(document.activeElement).outlineStyle") != "none"
    wanted = {
        "skip",
        "theme",
        "measure",
        "challenger",
        "baseline",
        "chart",
        "find",
        "only",
        "open",
        "difference",
        "more",
    }
    assert wanted <= set(reached)


def test_names_break_between_their_words_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    data = tr.datasets.make_graded(n_queries=20, random_state=0)
    names = ("KernelSlamPerceptron", "MinimaxPerceptron", "bm25_of_title_and_body", "RankSVM")
    reports = {
        name: tr.evaluate(data.in_caller_order(data.y) + rng.normal(size=data.n_docs), data, ["map"]) for name in names
    }
    tr.write_report(reports, tmp_path / "page.html")
    page = Page(browser, 390, 844).open(tmp_path / "page.html")
    lines = page.run("""[...document.querySelectorAll('.measure tbody th')].map((e) => {
        const range = document.createRange(), found = [];
        for (const node of e.childNodes) {
            range.selectNodeContents(node);
            if (node.nodeType === Node.TEXT_NODE) found.push(range.getClientRects().length);
        }
        return [e.textContent, found];
    })""")
    assert {name for name, _ in lines} >= set(names)
    for name, parts in lines:
        assert set(parts) == {1}, f"{name} breaks inside a word"
    page.close()


@pytest.mark.parametrize("which", ["small", "large"])
def test_a_phone_needs_no_sideways_scrolling(browser: Browser, which: str, request: pytest.FixtureRequest) -> None:
    page = Page(browser, 390, 844).open(request.getfixturevalue(f"{which}_page"))
    assert page.run("document.documentElement.scrollWidth") == 390
    page.click("#list .open")
    page.click(".ranking button.row")
    assert page.run("(() => { const v = document.getElementById('view'); return v.scrollWidth <= v.clientWidth; })()")
    assert page.run("document.getElementById('view').getBoundingClientRect().width") <= 390
    left, right = page.run("[...document.querySelectorAll('.ranking')].map((r) => r.getBoundingClientRect().left)")
    assert right > left + 100, "side by side even here"
    page.close()


def test_light_and_dark(browser: Browser, small_page: Path) -> None:
    def paper(page: Page) -> str:
        return page.run("getComputedStyle(document.body).backgroundColor")

    colours = []
    for dark in (False, True):
        page = Page(browser, dark=dark).open(small_page)
        colours.append(paper(page))
        page.click("#theme")
        colours.append(paper(page))
        page.close()
    light, light_turned, dark_, dark_turned = colours
    assert light == dark_turned == "rgb(255, 255, 255)"
    assert dark_ == light_turned == "rgb(17, 21, 27)"


def test_without_scripts_the_tables_are_there(browser: Browser, small_page: Path) -> None:
    page = Page(browser, scripts=False).open(small_page)
    text = page.run("document.body.innerText")
    assert page.run("[...document.querySelectorAll('[data-measure]')].every((p) => p.offsetHeight > 0)")
    assert page.run("document.getElementById('toolbar').offsetHeight") == 0
    assert "This part needs scripts." in text
    assert "ListNet − order as given" in text or "order as given − ListNet" in text
    page.close()


@pytest.mark.parametrize(("measure", "a", "b"), [(0, 1, 0), (1, 7, 13), (2, 19, 4), (3, 2, 3)])
def test_every_number_shown_is_the_exact_one(large: Page, large_contest: Contest, measure: int, a: int, b: int) -> None:
    choose(large, "measure", measure)
    choose(large, "baseline", b)
    choose(large, "challenger", a)
    show_all(large)
    name = large_contest.comparison.measures[measure]
    x, y = (large_contest.entrants[i].report.per_query[name] for i in (a, b))
    by_id = {str(q): (u, v) for q, u, v in zip(large_contest.data.query_ids, x.tolist(), y.tolist(), strict=True)}
    rows = large.run(
        "[...document.querySelectorAll('#list tbody tr')].map((row) => [...row.cells].map((c) => c.textContent))"
    )
    assert len(rows) == 1000
    for query, _, _, shown_a, shown_b, shown_gap in rows:
        u, v = by_id[query]
        gap = 0.0 if abs(u - v) <= 1e-12 else u - v
        want = f"{gap:+.4f}".replace("-", "−") if abs(gap) >= 5e-5 else "0.0000"  # what rounds to 0 has no sign
        assert (shown_a, shown_b, shown_gap) == (f"{u:.4f}", f"{v:.4f}", want)
    gaps = [by_id[row[0]][0] - by_id[row[0]][1] for row in rows]
    assert all(left >= right - 1e-6 for left, right in pairwise(gaps))
    found = large_contest.comparison.difference(name, *(large_contest.entrants[i].name for i in sorted((a, b))))
    wins, losses = (found.wins, found.losses) if a < b else (found.losses, found.wins)
    tally = large.run("document.getElementById('tally').textContent")
    assert f"▲ {wins} wins, {found.ties} tie" in tally
    assert f"▼ {losses} losses" in tally


def test_a_link_to_a_query_and_back(browser: Browser, small: Page, small_page: Path) -> None:
    """An address names the query, the measure and the pair; Back closes what was opened, and Close goes back."""
    choose(small, "measure", 1)
    choose(small, "baseline", 2)
    small.click("#list tbody tr:nth-child(2) .open")
    title = small.run("document.getElementById('view-title').textContent")
    link = small.run("location.hash")
    assert link.startswith("#query=")
    small.run("new Promise((done) => { addEventListener('hashchange', done, {once: true}); history.back(); })")
    assert not small.run("document.getElementById('view').open")
    assert small.run("location.hash") == ""
    other = Page(browser).open(small_page)
    other.run(f"location.hash = {link!r}")
    other.run("new Promise((done) => setTimeout(done, 50))")
    assert other.run("document.getElementById('view').open")
    assert other.run("document.getElementById('view-title').textContent") == title
    assert other.run("[document.getElementById('measure').value, document.getElementById('baseline').value]") == [
        "1",
        "2",
    ]
    other.run("location.hash = '#query=nobody'")
    other.run("new Promise((done) => setTimeout(done, 50))")
    assert not other.run("document.getElementById('view').open")
    assert other.complaints() == []
    other.close()


def test_a_page_of_reports_alone(browser: Browser, small_contest: Contest, tmp_path: Path) -> None:
    """Values per query without documents: the list is there, rankings are not, and nothing complains."""
    path = tmp_path / "reports.html"
    write_report({entrant.name: entrant.report for entrant in small_contest.entrants}, path, title="Mine")
    page = Page(browser).open(path)
    assert page.complaints() == []
    assert page.run("document.querySelector('h1').textContent") == "Mine"
    heads = page.run("[...document.querySelectorAll('#list thead button span:first-child')].map((e) => e.textContent)")
    assert (heads[0], heads[-1], len(heads)) == ("query", "difference", 4)
    assert page.run("document.querySelectorAll('#list .open').length") == 0
    assert page.run("document.querySelectorAll('#list tbody tr').length") == 25
    page.close()


def test_pairs_that_were_not_tested_say_so(browser: Browser, small_contest: Contest, tmp_path: Path) -> None:
    """Against one baseline alone, the other cells of the matrix hold a dot and tell why."""
    reports = {entrant.name: entrant.report for entrant in small_contest.entrants}
    path = tmp_path / "baseline.html"
    write_report(tr.compare(reports, baseline=next(iter(reports))), path)
    page = Page(browser).open(path)
    cells = page.run("[...document.querySelectorAll('#matrix button')].map((e) => [e.textContent, e.title])")
    untested = [title for text, title in cells if text == "·"]
    assert untested
    assert all("were not tested against each other" in title for title in untested)
    assert not [text for text, _ in cells if not text.strip()]
    page.close()
