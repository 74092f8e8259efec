"""The code in the README and the docs runs, and prints what the page says it prints; the site builds, links and all."""

import importlib.util
import io
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest
import sklearn

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path) -> list[tuple[str, str]]:
    return re.findall(r"```(\w*)\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def assert_same(printed: list[str], wanted: list[str]) -> None:
    """The same words; numbers within 2%, since another processor may add in another order."""
    assert len(printed) == len(wanted)
    for mine, theirs in zip(printed, wanted, strict=True):
        if re.search(r"\d", theirs) and re.sub(r"[\d.]+", "#", mine) == re.sub(r"[\d.]+", "#", theirs):
            numbers = [[float(n.rstrip(".")) for n in re.findall(r"\d[\d.]*", word)] for word in (mine, theirs)]
            assert numbers[0] == pytest.approx(numbers[1], rel=0.02), (mine, theirs)
        else:
            assert mine == theirs


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run_and_print_what_they_say(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # pages may write files
    namespace: dict[str, object] = {}
    found, checked = blocks(page), 0
    with sklearn.config_context():
        for (kind, text), (next_kind, wanted) in zip(found, [*found[1:], ("", "")], strict=True):
            if kind == "python":
                printed = io.StringIO()
                with redirect_stdout(printed):
                    exec(text, namespace)
                if next_kind == "text":
                    assert_same(printed.getvalue().split(), wanted.split())
                    checked += 1
                else:
                    assert printed.getvalue() == "", "what an example prints is shown"
    assert checked >= 1


COMMANDS = sorted(
    {c for page in PAGES for c in re.findall(r"^\$ toprank ([\w-]+)", page.read_text("utf-8"), re.MULTILINE)}
)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shown_exists(command):
    from toprank.cli import cli

    assert command in cli.commands


@pytest.fixture(scope="module")
def builder():
    pytest.importorskip("markdown_it")
    spec = importlib.util.spec_from_file_location("toprank_docs_build", ROOT / "docs" / "build.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(builder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    builder.build(folder)
    return {path.name: path.read_text("utf-8") for path in folder.iterdir()}


def test_site_has_every_page_and_fetches_nothing(site):
    for page in PAGES[1:]:
        assert f"{page.stem}.html" in site
    for name, text in site.items():
        loaded = re.findall(r"<(?:link|script|img|iframe)[^>]*(?:href|src)=\"([^\"]*)\"", text)
        assert set(loaded) <= {"data:,", "style.css"}, name
        assert not re.search(r"@import|url\(", text) or not name.endswith(".css")


def test_every_page_leads_to_every_other(site):
    pages = {name for name in site if name.endswith(".html")}
    for name in pages:
        assert pages <= set(re.findall(r'href="([\w-]+\.html)"', site[name])), name


def test_reference_lists_every_command_and_every_public_name(site):
    import toprank as tr
    from toprank.cli import cli

    for name in cli.commands:
        assert f'id="toprank-{name}"' in site["commands.html"]
    modules = {"surrogates", "measures", "datasets", "export", "interop", "papers", "__version__"}
    for name in set(tr.__all__) - modules:
        assert f'id="tr{name.lower()}"' in site["api.html"], name


@pytest.mark.parametrize("link", ["gone.md", "index.md#gone", "#gone", "img/gone.png"])
def test_a_broken_link_stops_the_build(builder, link):
    pages = {name: builder.render(name, f"# {name}\n\n## Install\n") for name in ("index", "other")}
    pages["other"] = builder.render("other", f"# Other\n\n[fine](index.md#install) [bad]({link})\n")
    with pytest.raises(builder.BrokenLinkError, match="which is not there"):
        builder.check_links(pages)


def test_links_that_lead_somewhere_do_not(builder):
    pages = {name: builder.render(name, f"# {name}\n\n## Install it\n") for name in ("index", "compare")}
    pages["x"] = builder.render(
        "x", "# X\n\n[a](index.md#install-it) [b](../COMPARE.md) [c](#x) [d](https://example.org)\n"
    )
    builder.check_links(pages)


COMPARE = (ROOT / "COMPARE.md").read_text("utf-8")
SOURCES = {
    int(number): " ".join(text.split())
    for number, text in re.findall(r"^(\d+)\. (.*?)(?=^\d+\. |^$)", COMPARE, flags=re.MULTILINE | re.DOTALL)
}


def _cells() -> list[tuple[str, str, str]]:
    """The cells of the feature tables: tool, column, text."""
    found = []
    for section in ("Learning", "Measuring", "Using"):
        table = re.search(rf"^## {section}\n\n((?:\|.*\n)+)", COMPARE, flags=re.MULTILINE)
        head, _, *rows = [[cell.strip() for cell in line.strip("|\n ").split("|")] for line in table[1].splitlines()]
        head = head if head[0] == "" else ["", *head]
        for tool, *cells in rows:
            assert len(cells) == len(head) - 1, tool
            found += [(tool, column, cell) for column, cell in zip(head[1:], cells, strict=True)]
    return found


def test_every_cell_of_the_comparison_has_a_source():
    cells, used = _cells(), set()
    tools = {"toprank", "RankLib", "LightGBM", "XGBoost", "CatBoost", "allRank", "rax", "ranx", "SVMrank", "river"}
    assert {tool for tool, _, _ in cells} == tools
    for tool, column, cell in cells:
        numbers = {int(n) for n in re.findall(r"\[(\d+)\]", cell)}
        assert numbers or (cell == "not checked" and tool != "toprank"), (tool, column, cell)
        assert numbers <= set(SOURCES), (tool, column, cell)
        if tool == "toprank":
            assert all("tests/" in SOURCES[number] for number in numbers), (column, cell)
        used |= numbers
    assert used == set(SOURCES)  # no source that nothing rests on


@pytest.mark.parametrize("test", sorted(set(re.findall(r"tests/[\w/]+\.py(?:::\w+)?", COMPARE))))
def test_every_test_that_is_named_exists(test):
    path, _, name = test.partition("::")
    assert re.search(rf"def {name}\b", (ROOT / path).read_text("utf-8"))


def test_what_is_said_of_our_release_is_true():
    from toprank import __version__

    assert ".dev" in __version__, "a release is out: say so in COMPARE.md"
    assert "Apache License" in (ROOT / "LICENSE").read_text("utf-8")
