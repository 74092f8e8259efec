"""One door to every paper's exhibits, for the command line."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .._suggest import did_you_mean
from ..errors import InputError
from .base import Exhibit


def papers() -> list[str]:
    """Return the names of the papers, as the command line spells them."""
    package = importlib.import_module(__package__)
    modules = (module.name for module in pkgutil.iter_modules(package.__path__))
    return sorted(name.replace("_", "-") for name in modules if name[0] != "_" and name not in ("base", "reproduce"))


def _figures(paper: str) -> dict[str, Callable[..., Exhibit]]:
    if paper not in papers():
        raise InputError(f"unknown paper {paper!r}{did_you_mean(paper, papers())}; known: {', '.join(papers())}")
    module = importlib.import_module(f"{__package__}.{paper.replace('-', '_')}")
    figures: dict[str, Callable[..., Exhibit]] = module.FIGURES
    return figures


def figures(paper: str) -> dict[str, str]:
    """Return the exhibits of a paper with one line each on what they show."""
    return {name: (inspect.getdoc(make) or "").splitlines()[0] for name, make in _figures(paper).items()}


def reproduce(
    paper: str, figure: str | None = None, *, out: str | Path, data: str | None = None
) -> Iterator[tuple[Exhibit, list[Path]]]:
    """Compute one exhibit of a paper (or all of them), save each as it is ready, and yield it with its files.

    The files stand in OUT/PAPER: several papers have a fig1.
    """
    makers = _figures(paper)
    if figure is not None and figure not in makers:
        raise InputError(f"{paper} has no exhibit {figure!r}{did_you_mean(figure, makers)}; known: {', '.join(makers)}")
    home = Path(out) / paper
    for name in makers if figure is None else [figure]:
        make = makers[name]
        takes = inspect.signature(make).parameters
        if data is not None and "data" not in takes:
            raise InputError(f"{paper} {name} makes its own data: leave --data out")
        given: dict[str, Any] = {} if data is None else {"data": data}
        if "checkpoint" in takes:
            given["checkpoint"] = home / ".pieces"
        exhibit = make(**given)
        yield exhibit, exhibit.save(home)
