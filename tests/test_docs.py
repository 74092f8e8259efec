"""The code in the README and the docs runs, and prints what the page says it prints."""

import io
import re
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


@pytest.mark.parametrize("command", re.findall(r"^\$ toprank (\w+)", PAGES[0].read_text("utf-8"), flags=re.MULTILINE))
def test_every_command_shown_exists(command):
    from toprank.cli import cli

    assert command in cli.commands
