"""The live page in a real browser: clicks change the ranking, the curve moves; keyboard, narrow, dark, keys."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.report.browser import Browser, Page
from tests.serve.starting import Running, model, running
from toprank._keys import new_key
from toprank.data.documents import DocumentList
from toprank.demo.clicking import LibrarySearch, first_ranker
from toprank.serve.learning import Learner

PATIENCE = 60.0
QUERY = "write rows to a file"


def opened(browser: Browser, server: Running, **kind: Any) -> Page:
    page = Page(browser, **kind)
    page._call("Page.navigate", url=server.url + "/")
    until(lambda: page.run("location.protocol") == "http:" and page.run("document.readyState") == "complete")
    return page


def until(done: Callable[[], Any]) -> Any:
    end = time.monotonic() + PATIENCE
    while not (found := done()):
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.03)
    return found


def text(page: Page, name: str) -> str:
    return str(page.run(f"document.getElementById('{name}').textContent"))


def results(page: Page) -> list[str]:
    return list(page.run("[...document.querySelectorAll('#found button')].map((b) => b.firstChild.textContent)"))


def order_of(server: Running) -> list[str]:
    """The ranking without sampling."""
    documents, X = server.app.demo.candidates(QUERY)
    return [documents[row].id for row in server.service.rank(DocumentList([], X))[2]]


def lead_of(server: Running, name: str) -> float:
    """By how much a document scores above the mean."""
    documents, X = server.app.demo.candidates(QUERY)
    scores = server.service.rank(DocumentList([], X))[1]
    return float(scores[[document.id for document in documents].index(name)] - scores.mean())


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    demo = LibrarySearch(["csv", "json", "shutil"])
    with running(tmp_path_factory.mktemp("page"), Learner.of(first_ranker()).model_text(), demo=demo) as server:
        yield server


def test_a_click_changes_the_ranking_and_the_page_shows_it(browser: Browser, searched: Running, tmp_path: Path) -> None:
    page = opened(browser, searched)
    until(lambda: "learns from clicks" in text(page, "about"))
    before = text(page, "weights")
    page.run("document.getElementById('query').focus()")
    page.run(f"document.getElementById('query').value = '{QUERY}'")
    page.enter()  # by keyboard alone
    until(lambda: len(results(page)) == 10)
    wanted, before_clicks = results(page)[4], order_of(searched)
    first, clicks = lead_of(searched, wanted), 0
    for _ in range(200):
        found = results(page)
        if wanted not in found:  # sampled away this time
            page.run("document.getElementById('found').replaceChildren()")
            page.click("#ask button")
            until(lambda: len(results(page)) == 10)
            continue
        told, place = text(page, "told"), found.index(wanted)
        if clicks % 2 == 0:
            page.click(f"#found li:nth-child({place + 1}) button")
        else:
            page.run(f"document.querySelectorAll('#found button')[{place}].focus()")
            page.enter()
        until(lambda told=told: "learned from your click" in text(page, "told") and text(page, "told") != told)
        clicks += 1
        if clicks == 6:
            break
    assert clicks == 6
    assert lead_of(searched, wanted) > first
    assert order_of(searched) != before_clicks
    version = searched.service.served.version
    assert version >= 6
    until(lambda: f"version {version}" in text(page, "about"))
    until(lambda: page.run("document.querySelectorAll('#curve polyline').length") == 3)
    assert text(page, "weights") != before
    assert page.run("document.querySelectorAll('#last .pair ol').length") == 12
    points = page.run("document.querySelector('#curve .mean').getAttribute('points')")
    page.click("#found li:last-child button")
    until(lambda: page.run("document.querySelector('#curve .mean').getAttribute('points')") != points)
    page.run("document.getElementById('query').value = 'zzzzqqq'")
    page.click("#ask button")
    until(lambda: "ask in other words" in text(page, "told"))
    page.screenshot(tmp_path / "page.png", whole=True)  # to be looked at
    assert {url.partition("/v1")[0].partition("/demo")[0].rstrip("/") for url in page.requests()} == {searched.url}
    # The browser notes the refused search; nothing else is wrong, and the content policy stopped nothing.
    assert [one for one in page.complaints() if "422" not in one] == []
    page.close()


def test_it_fits_a_narrow_and_a_dark_screen(browser: Browser, searched: Running) -> None:
    page = opened(browser, searched, width=390, height=800, dark=True)
    until(lambda: "version" in text(page, "about"))
    assert page.run("document.documentElement.scrollWidth") <= 390
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(17, 21, 27)"
    for _ in range(2):
        page.key("Tab")
    assert page.run("document.activeElement.closest('form').id") == "ask"
    page.close()


def test_without_a_demo_there_is_no_search(browser: Browser, server: Running) -> None:
    page = opened(browser, server)
    until(lambda: "learns from labels" in text(page, "about"))
    assert page.run("document.getElementById('search').hidden")
    for i in range(3):
        server.learn(f"page{i}", i)
    version = server.service.served.version
    until(lambda: f"version {version}" in text(page, "about"))
    assert "events" in text(page, "mean")
    page.close()


def test_a_key_opens_the_page(browser: Browser, tmp_path: Path) -> None:
    key = new_key(tmp_path / "keys.toml", "ops", ("admin",))
    with running(tmp_path, model(), keys=tmp_path / "keys.toml") as server:
        page = opened(browser, server)
        until(lambda: not page.run("document.getElementById('door').hidden"))
        assert "a key is needed" in text(page, "about")
        page.run(f"document.getElementById('key').value = '{key}'")
        page.click("#door button")
        until(lambda: "learns from labels" in text(page, "about"))
        assert page.run("document.getElementById('door').hidden")
        page.close()
