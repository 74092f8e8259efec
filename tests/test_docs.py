"""The code in the README and the docs runs, and prints what the page says it prints; the site builds, links and all."""

import importlib
import inspect
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest
import sklearn

import toprank as tr
from tests.search_engine import judgements, search_engine
from toprank.cli import main

ROOT = Path(__file__).parent.parent
NEEDS_DATA = {"judges"}
"""Pages whose example is on data that are not part of toprank: they run where TOPRANK_DATA says where these are."""
WITHOUT_PYTHON = {
    *("glossary", "faq", "from-logs", "from-solr-logs", "compare", "design", "changelog", "replication", "errata")
}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path) -> list[tuple[str, str]]:
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^```([\w{}-]*)[^\n]*\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def assert_same(printed: list[str], wanted: list[str]) -> None:
    """The same words; numbers within 2%, since another processor may add in another order."""
    assert len(printed) == len(wanted)
    for mine, theirs in zip(printed, wanted, strict=True):
        if re.search(r"\d", theirs) and re.sub(r"[\d.]+", "#", mine) == re.sub(r"[\d.]+", "#", theirs):
            numbers = [[float(n.rstrip(".")) for n in re.findall(r"\d[\d.]*", word)] for word in (mine, theirs)]
            assert numbers[0] == pytest.approx(numbers[1], rel=0.02), (mine, theirs)
        else:
            assert mine == theirs


SHELL = shutil.which("bash") and shutil.which("curl") and shutil.which("jq")


def in_shell(text: str) -> str:
    """Run a block of bash and return what it prints; `toprank` itself runs in this process."""
    printed = ""
    for part in _statements(text):
        if not part.startswith("toprank "):
            printed += _bash(part)
            continue
        command, sign, rest = re.match(r"toprank (.*?)(?:\s([>|])(.*))?$", part).groups()
        out = io.StringIO()
        with redirect_stdout(out), pytest.raises(SystemExit) as ended:
            main(shlex.split(command))
        assert ended.value.code == 0, command
        printed += _bash(f"cat {sign}{rest}" if sign else "cat", out.getvalue())
    return printed


def _statements(text: str) -> list[str]:
    """Each call of toprank by itself, on one line, and what stands between them."""
    found: list[str] = []
    for line in text.replace("\\\n", " ").splitlines():
        if not found or line.startswith("toprank ") or found[-1].startswith("toprank "):
            found.append(line)
        else:
            found[-1] += f"\n{line}"
    return found


def _bash(text: str, given: str = "") -> str:
    command = ["bash", "-euo", "pipefail", "-c", text]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (text, done.stderr)
    return done.stdout


def run_page(page: Path, languages: set[str]) -> int:
    """Run the blocks of a page in their order; what they print stands in the block behind. Return how many did."""
    namespace: dict[str, object] = {}
    found, checked = blocks(page), 0
    for (kind, text), (next_kind, wanted) in zip(found, [*found, ("", "")][1:], strict=True):
        if kind not in languages:
            continue
        printed = io.StringIO()
        if kind == "bash":
            printed.write(in_shell(text))
        else:
            with redirect_stdout(printed):
                exec(text, namespace)
        if next_kind == "text":
            assert_same(printed.getvalue().split(), wanted.split())
            checked += 1
        elif kind == "python":
            assert printed.getvalue() == "", "what an example prints is shown"
    return checked


@pytest.mark.filterwarnings("ignore:unsafe cast")  # ranx, while it compiles
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run_and_print_what_they_say(page, tmp_path, monkeypatch):
    if page.stem in NEEDS_DATA and not os.environ.get("TOPRANK_DATA"):
        pytest.skip("its example needs the folder TOPRANK_DATA")
    monkeypatch.chdir(tmp_path)  # pages may write files
    with sklearn.config_context():
        checked = run_page(page, {"python"})
    assert checked >= 1 or page.stem in WITHOUT_PYTHON


@pytest.mark.skipif(not SHELL, reason="bash, curl and jq are not all here")
def test_the_way_from_logs_to_a_ranker_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    names, judged = judgements()
    Path("queries.tsv").write_text("".join(f"{q}\t{words}\n" for q, words in names.items()))
    Path("qrels.txt").write_text("".join(f"{q} 0 {d} {g}\n" for q, docs in judged.items() for d, g in docs.items()))
    with search_engine() as (engine, address):
        monkeypatch.setenv("ES", address)
        assert run_page(ROOT / "docs" / "from-logs.md", {"bash"}) >= 3
    assert engine.log.count(("POST", "/products/_search")) == len(names) + 1
    assert "products_1" in engine.models
    # The features that came back are those that were asked for, by id, and what the engine scores is what we rank by.
    data = tr.read_ltr_logs("test.jsonl", "qrels.txt", missing="zero")
    found = engine.values(names[str(data.qid[0])], data.doc_ids[0])
    assert data.X[0].tolist() == [found.get(name, 0.0) for name in data.feature_names]
    ours = tr.load("models/ListNet.json").predict(data)
    theirs = [
        sum(w * row[data.feature_names.index(n)] for n, w in engine.models["products_1"].items()) for row in data.X
    ]
    np.testing.assert_allclose(ours - ours[0], np.array(theirs) - theirs[0], atol=1e-5)
    # A request that the plugin does not describe is refused, so this page cannot pass by luck.
    with search_engine() as (_, address):
        monkeypatch.setenv("ES", address)
        with pytest.raises(AssertionError):
            in_shell('curl -sf -X PUT "$ES/_learning_to_rank"')


COMMANDS = sorted(
    {c for page in PAGES for c in re.findall(r"^\$ toprank ([\w-]+)", page.read_text("utf-8"), re.MULTILINE)}
)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shown_exists(command):
    from toprank.cli import cli

    assert command in cli.commands


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The pages by name, built in a copy: a warning, such as a link that leads nowhere, stops the build."""
    pytest.importorskip("sphinx")
    home = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", home / "docs", ignore=shutil.ignore_patterns("reference"))
    for name in ("COMPARE.md", "DESIGN.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, home)
    done = build(home)
    assert done.returncode == 0, done.stderr
    return {p.relative_to(home / "out").as_posix(): p for p in (home / "out").rglob("*") if p.is_file()}


def build(home: Path) -> "subprocess.CompletedProcess[str]":
    where = {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "docs", "out"]
    return subprocess.run(command, cwd=home, env={**os.environ, **where}, capture_output=True, text=True, check=False)


def test_site_has_every_page_and_fetches_nothing(site):
    for page in PAGES[1:]:
        assert f"{page.stem}.html" in site
    for name, path in site.items():
        if name.endswith(".html"):
            tags = re.findall(r"<(?:link|script|img|iframe|source)\b[^>]*", path.read_text("utf-8"))
            loaded = [
                m for tag in tags if 'rel="canonical"' not in tag for m in re.findall(r'(?:href|src)="([^"]*)"', tag)
            ]
            assert not [address for address in loaded if re.match(r"(https?:)?//", address)], name
        elif name.endswith((".css", ".js")):
            text = path.read_text("utf-8")
            assert not re.search(r"@import|url\(['\"]?(https?:)?//", text), name
            assert not re.search(r"(?:fetch|importScripts|\.src ?=)\(? ?['\"]https?://", text), name


def test_site_can_be_searched_without_a_server(site):
    assert "search.html" in site
    index = site["searchindex.js"].read_text("utf-8")
    for word in ("from-logs", "reference/toprank.ListNet", "glossary"):
        assert word in index


def test_reference_has_every_command_and_a_page_per_class(site):
    import toprank as tr
    from toprank.cli import cli

    shown = site["reference/commands.html"].read_text("utf-8")
    for name in cli.commands:
        assert f'id="toprank-{name}"' in shown
    everything = "".join(p.read_text("utf-8") for name, p in site.items() if name.startswith("reference/"))
    for name in set(tr.__all__) - {"__version__"}:
        thing = getattr(tr, name)
        if inspect.isclass(thing):
            assert f"reference/toprank.{name}.html" in site
        elif inspect.isfunction(thing):
            assert f'id="toprank.{name}"' in everything, name


@pytest.mark.parametrize("package", ["rankers", "surrogates"])
def test_every_parameter_is_in_a_table_with_its_meaning(site, package):
    module = importlib.import_module(f"toprank.{package}")
    for name in module.__all__:
        kind = getattr(module, name)
        if not inspect.isclass(kind) or inspect.isabstract(kind):
            continue
        home = "toprank" if package == "rankers" else f"toprank.{package}"
        page = site[f"reference/{home}.{name}.html"]
        rows = re.findall(r"<tr class=\"row-[^>]*>(.*?)</tr>", page.read_text("utf-8"), flags=re.DOTALL)
        cells = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, flags=re.DOTALL) for row in rows]
        told = {
            re.sub(r"<[^>]*>", "", row[0]).strip(): re.sub(r"<[^>]*>", "", row[3]).strip()
            for row in cells
            if len(row) == 4
        }
        for parameter in inspect.signature(kind).parameters:
            assert told.get(parameter), (name, parameter)


@pytest.mark.parametrize("link", ["gone.md", "index.md#gone", "#gone"])
def test_a_broken_link_stops_the_build(tmp_path, link):
    pytest.importorskip("sphinx")
    (tmp_path / "docs").mkdir()
    settings = [line for line in (ROOT / "docs" / "conf.py").read_text("utf-8").splitlines() if "myst_heading" in line]
    (tmp_path / "docs" / "conf.py").write_text("\n".join(['extensions = ["myst_parser"]', *settings]))
    for bad in ("", f" [bad]({link})"):
        (tmp_path / "docs" / "index.md").write_text(f"# Home\n\n## Install it\n\n[fine](index.md#install-it){bad}\n")
        done = build(tmp_path)
        assert (done.returncode != 0) == bool(bad), done.stderr


def test_examples_fit_their_column():
    """A line of code of ours that is wider than the page's column is cut or scrolls; output may be wider."""
    for page in PAGES[1:]:
        for kind, text in blocks(page):
            if kind in ("python", "bash", "console"):
                assert max(map(len, text.splitlines()), default=0) <= 120, page.name


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
