"""The site, made by Sphinx: Markdown pages, one page per public class, one for all commands; nothing is fetched.

Pages of the reference are written from `__all__` before anything is read, so there is no list to forget.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import click

import toprank
from toprank.cli import cli

project, author, copyright = "toprank", "the authors of toprank", "the authors of toprank"
version = release = toprank.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme, html_title = "furo", "toprank"
html_static_path = html_css_files = ["site.css"]
html_theme_options = {"light_css_variables": {"color-brand-primary": "#0b5cad", "color-brand-content": "#0b5cad"}}
html_copy_source = html_show_sphinx = False
myst_heading_anchors = 3
default_role = "code"
autodoc_typehints = "none"  # the tables have them
autodoc_member_order = "bysource"
add_module_names = False

GROUPS = {
    "Rankers": ("toprank.rankers", "toprank.penalties"),
    "Data": ("toprank.data", "toprank.interop"),
    "Measuring and comparing": (
        *(
            "toprank.statistics.evaluation",
            "toprank.statistics.trec_evaluation",
            "toprank.statistics.comparison",
            "toprank.contests",
        ),
        *("toprank.measures", "toprank.statistics.fusion", "toprank.statistics.power", "toprank.report"),
    ),
    "Certificates": ("toprank.certificates", "toprank.judging"),
    "Errors": ("toprank.errors",),
}
"""Names of `toprank` itself by where they come from; what remains are modules, each a group of its own."""
UNDERLINE = "\n" + "=" * 60


def things(module: Any, names: Iterator[str] | list[str]) -> list[tuple[str, Any]]:
    """Return what can be called of a module."""
    found = [(name, getattr(module, name)) for name in names if not name.startswith("_")]
    return [(name, thing) for name, thing in found if callable(thing) and getattr(thing, "__doc__", None)]


def groups() -> Iterator[tuple[str, str, str, list[tuple[str, Any]]]]:
    """Yield title, module, words and contents of each group of the reference."""
    own = things(toprank, toprank.__all__)
    shown = {id(thing) for _, thing in own}
    for title, homes in GROUPS.items():
        yield title, "toprank", "", [(n, t) for n, t in own if getattr(t, "__module__", "").startswith(homes)]
    for name in toprank.__all__:
        module = getattr(toprank, name)
        if inspect.ismodule(module):
            names = getattr(module, "__all__", None) or sorted(
                n for n, t in vars(module).items() if getattr(t, "__module__", "") == module.__name__
            )
            words = (inspect.getdoc(module) or "").split("\n\n")[0]
            others = [(n, t) for n, t in things(module, names) if id(t) not in shown]  # a page for each, and no more
            yield f"toprank.{name}", f"toprank.{name}", words, others


def reference(app: Any) -> None:
    """Write the pages of the reference: one per group, one per class, and the help of every command."""
    folder = Path(app.srcdir) / "reference"
    folder.mkdir(exist_ok=True)
    pages = {"commands.md": commands()}
    index = [
        f"API{UNDERLINE}\n\nNames of ``import toprank as tr``. Every example is run by the tests.\n\n.. toctree::\n"
    ]
    for title, module, words, found in groups():
        kinds = [(name, thing) for name, thing in found if inspect.isclass(thing)]
        stem = re.sub(r"\W+", "-", title.lower())
        lines = [title + UNDERLINE, rst(words), ".. currentmodule:: toprank\n"]
        lines += [f".. autofunction:: {module}.{name}\n" for name, thing in found if not inspect.isclass(thing)]
        lines += [".. toctree::\n   :titlesonly:\n", *(f"   {module}.{name}" for name, _ in kinds)]
        pages[f"{stem}.rst"] = "\n".join(lines) + "\n"
        index.append(f"   {stem}")
        for name, _ in kinds:
            full = f"{module}.{name}"
            pages[f"{full}.rst"] = f"{name}{UNDERLINE}\n\n.. autoclass:: {full}\n   :members:\n   :show-inheritance:\n"
    pages["index.rst"] = "\n".join(index) + "\n"
    for old in folder.iterdir():
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        if not (folder / name).exists() or (folder / name).read_text("utf-8") != text:
            (folder / name).write_text(text, encoding="utf-8")


def commands() -> str:
    """Return the help of every command, as wide as a terminal."""
    parts = ["# Command line", "Every command prints this with `--help`.", _help("toprank", cli)]
    parts += [f"## toprank {name}\n\n{_help(f'toprank {name}', one)}" for name, one in sorted(cli.commands.items())]
    return "\n\n".join(parts) + "\n"


def _help(name: str, command: click.Command) -> str:
    return f"```text\n{command.get_help(click.Context(command, info_name=name, terminal_width=80))}\n```"


def rst(text: str) -> str:
    """Return prose of a docstring as reStructuredText: code between backquotes stays code, signs stay signs."""
    pieces = re.split(r"`([^`]*)`", text)
    plain = [re.sub(r"([\\*|])|_(?!\w)", lambda m: "\\" + m[0], piece) for piece in pieces[::2]]
    code = [f"``{piece}``" for piece in pieces[1::2]]
    joined = "".join(part for pair in zip(plain, [*code, ""], strict=True) for part in pair)
    return re.sub(r"(?<=\w``)(?=\w)", r"\\ ", joined)


def docstring(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Turn a docstring into reStructuredText, and end that of a class with the table of its parameters."""
    has_table = what == "class" and not issubclass(thing, (Enum, BaseException))
    told = []
    for block in re.split(r"\n\s*\n", "\n".join(lines)):
        if (section := SECTION.match(block)) is None:
            told.append(block if block.lstrip().startswith((">>>", "..")) else rst(block))
        elif not (has_table and section[1] == "Parameters"):
            entries = [(", ".join(f"``{name}``" for name in names), rst(text)) for names, text in section_of(block)]
            told.append("\n".join([f"**{section[1]}**", "", *(f"* {names}: {text}" for names, text in entries)]))
    lines[:] = "\n\n".join(told).splitlines()
    if has_table:
        lines += ["", *parameters(thing)]


SECTION = re.compile(r"(Parameters|Attributes|Returns)\n-{3,}\n")


def section_of(block: str) -> Iterator[tuple[list[str], str]]:
    """Yield the names and the meaning of each entry of a section, `alpha, beta : what they are`."""
    for entry in re.split(r"\n(?=\S)", SECTION.sub("", block)):
        names, _, meaning = entry.partition(" : ")
        yield [name.strip() for name in names.split(",")], " ".join(meaning.split())


def parameter_section(kind: type) -> dict[str, str]:
    """Return what the `Parameters` section of a class says of each."""
    found = {}
    for block in re.split(r"\n\s*\n", inspect.getdoc(kind) or ""):
        if block.startswith("Parameters\n"):
            found |= {name: meaning for names, meaning in section_of(block) for name in names}
    return found


def meanings() -> dict[str, str]:
    """Return what parameters mean, from the table in the glossary."""
    text = (Path(__file__).parent / "glossary.md").read_text("utf-8")
    return dict(re.findall(r"^\| `([\w.]+)` \| (.*?) \|$", text, flags=re.MULTILINE))


def parameters(kind: type) -> list[str]:
    """Return the parameters of a class as a table: name, type, default, meaning."""
    known, own, rows = meanings(), parameter_section(kind), []
    for p in inspect.signature(kind).parameters.values():
        if p.name.startswith("_") or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        hint = p.annotation if isinstance(p.annotation, str) else getattr(p.annotation, "__name__", "")
        default = "required" if p.default is p.empty else f"``{p.default!r}``"
        if "<" in default:  # made anew for each
            default = ""
        meaning = own.get(p.name) or known.get(f"{kind.__name__}.{p.name}", known.get(p.name, ""))
        meaning = meaning or _attribute(kind, p.name)
        cells = [f"``{p.name}``", f"``{hint.split('.')[-1] if '[' not in hint else hint}``" if hint else "", default]
        rows.append([*cells, rst(meaning)])
    if not rows:
        return []
    head = [
        "",
        ".. list-table:: Parameters",
        "   :header-rows: 1",
        "   :class: parameters",
        "",
    ]
    body = [["name", "type", "default", "meaning"], *rows]
    return [*head, *(f"   {'* -' if i == 0 else '  -'} {cell}" for row in body for i, cell in enumerate(row)), ""]


def _attribute(kind: type, name: str) -> str:
    """Return the sentence that stands under a field in its class."""
    for owner in kind.__mro__[:-1]:
        try:
            source = inspect.getsource(owner)
        except (OSError, TypeError):
            continue
        found = re.search(rf'^    {name}: [^\n]*\n    """(.*?)"""', source, flags=re.MULTILINE | re.DOTALL)
        if found:
            return " ".join(found[1].split())
    return ""


def setup(app: Any) -> None:
    """Join in where Sphinx asks."""
    app.connect("builder-inited", reference)
    app.connect("autodoc-process-docstring", docstring)
