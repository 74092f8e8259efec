"""The reference pages as Markdown: commands from `--help`, the API from signatures and docstrings."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

GROUPS = {
    "Data": ("data", "interop"),
    "Measuring and comparing": (
        "measures",
        "evaluation",
        "trec_evaluation",
        "comparison",
        "contests",
        "fusion",
        "power",
        "report",
    ),
    "Rankers": ("rankers",),
    "Certificates": ("certificates",),
    "Errors": ("errors",),
}
MODULES = ("surrogates", "measures", "clicks", "datasets", "export", "interop", "papers")


def commands() -> str:
    """Return the help of every command."""
    import click

    from toprank.cli import cli

    parts = [
        "# Command line",
        "Every command prints this with `--help`.",
        _help(click.Context(cli, info_name="toprank")),
    ]
    for name, command in sorted(cli.commands.items()):
        context = click.Context(command, info_name=f"toprank {name}", max_content_width=100, terminal_width=100)
        parts += [f"## toprank {name}", _help(context)]
    return "\n\n".join(parts) + "\n"


def _help(context: Any) -> str:
    return f"```console\n{context.command.get_help(context)}\n```"


def api() -> str:
    """Return what the docstrings say, grouped by what the names are for."""
    import toprank as tr

    parts = [
        "# API",
        "Names of `import toprank as tr`, with what their docstrings say. Every example is run by the tests.",
    ]
    things = {name: getattr(tr, name) for name in tr.__all__ if name != "__version__"}
    for group, packages in GROUPS.items():
        parts.append(f"## {group}")
        for name, thing in things.items():
            home = getattr(thing, "__module__", "")
            if any(home.startswith(f"toprank.{package}") for package in packages):
                parts += _entry("tr", name, thing)
    for module in MODULES:
        thing = things[module]
        parts += [f"## tr.{module}", _prose(inspect.getdoc(thing) or "")]
        for name in getattr(thing, "__all__", None) or _public(thing):
            parts += _entry(f"tr.{module}", name, getattr(thing, name))
    return "\n\n".join(parts) + "\n"


def _public(module: Any) -> list[str]:
    """Return the functions and classes that a module without `__all__` means to give away."""
    return sorted(
        name
        for name, thing in vars(module).items()
        if not name.startswith("_") and getattr(thing, "__doc__", None) and callable(thing)
        and getattr(thing, "__module__", "").startswith("toprank")
    )  # fmt: skip


def _entry(owner: str, name: str, thing: Any) -> Iterator[str]:
    if not callable(thing) and not inspect.ismodule(thing):
        yield f"### {owner}.{name}"
        yield f"`{thing!r}`"
        return
    yield f"### {owner}.{name}"
    if callable(thing):
        yield f"```python\n{_signature(name, thing)}\n```"
    yield _prose(inspect.getdoc(thing) or "")
    if inspect.isclass(thing):
        methods = [f"- `{_signature(m, f, 10_000)}`: {_first_line(f)}" for m, f in _methods(thing)]
        if methods:
            yield "\n".join(methods)


def _methods(kind: type) -> Iterator[tuple[str, Any]]:
    for name in sorted(vars(kind)):
        member = inspect.getattr_static(kind, name)
        function = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        if not name.startswith("_") and inspect.isfunction(function) and function.__doc__:
            yield name, function


def _first_line(thing: Any) -> str:
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def _signature(name: str, thing: Any, width: int = 80) -> str:
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    plain = [
        p.replace(annotation=inspect.Parameter.empty)
        for p in signature.parameters.values()
        if p.name not in ("self", "cls")
    ]
    text = f"{name}{signature.replace(parameters=plain, return_annotation=inspect.Signature.empty)}"
    if len(text) <= width:
        return text
    inside = ", ".join(str(p) for p in plain)
    return f"{name}(\n" + textwrap.fill(inside, width, initial_indent="    ", subsequent_indent="    ") + "\n)"


def _prose(doc: str) -> str:
    """Return a docstring as Markdown: its examples as code, its signs as they are."""
    parts = []
    for block in re.split(r"\n\s*\n", doc):
        if block.lstrip().startswith(">>>"):
            parts.append(f"```pycon\n{textwrap.dedent(block)}\n```")
        else:
            parts.append(_plain(block))
    return "\n\n".join(parts)


def _plain(text: str) -> str:
    """Leave code between backquotes alone, and keep Markdown from reading formulas as its own signs."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(piece if piece.startswith("`") else re.sub(r"([*_\[\]<>|\\])", r"\\\1", piece) for piece in pieces)
