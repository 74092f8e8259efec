"""One door to every paper's exhibits, for the command line."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .._suggest import did_you_mean
from .._tables import Table
from ..data.validation import check_count
from ..errors import InputError
from .exhibits import VERDICTS, Exhibit

_NO_PAPERS = ("exhibits", "experiments", "page", "reproduce")


def papers() -> list[str]:
    """Return the names of the papers, as the command line spells them."""
    package = importlib.import_module(__package__)
    modules = (module.name for module in pkgutil.iter_modules(package.__path__))
    return sorted(name.replace("_", "-") for name in modules if name not in _NO_PAPERS)


def makers(paper: str) -> dict[str, Callable[..., Exhibit]]:
    """Return the exhibits of a paper: what makes each of them."""
    if paper not in papers():
        raise InputError(f"unknown paper {paper!r}{did_you_mean(paper, papers())}; known: {', '.join(papers())}")
    module = importlib.import_module(f"{__package__}.{paper.replace('-', '_')}")
    found: dict[str, Callable[..., Exhibit]] = module.FIGURES
    return found


def figures(paper: str) -> dict[str, str]:
    """Return the exhibits of a paper with one line each on what they show."""
    return {name: (inspect.getdoc(make) or "").splitlines()[0] for name, make in makers(paper).items()}


def reproduce(
    paper: str, figure: str | None = None, *, out: str | Path, **options: Any
) -> Iterator[tuple[Exhibit, list[Path]]]:
    """Compute one exhibit of a paper (or all of them), save each as it is ready, and yield it with its files.

    The files stand in OUT/PAPER: several papers have a fig1. `options` (data, seeds, …; None: not given) go to the
    exhibits that take them; one that none of the exhibits takes is an error.
    """
    found = makers(paper)
    if figure is not None and figure not in found:
        raise InputError(f"{paper} has no exhibit {figure!r}{did_you_mean(figure, found)}; known: {', '.join(found)}")
    wanted = [figure] if figure else list(found)
    given = {name: value for name, value in options.items() if value is not None}
    check_count(**{name: given[name] for name in ("seeds", "passes", "max_rows") if name in given})
    takes = {name: inspect.signature(make).parameters for name, make in found.items()}
    for option in given:
        if not any(option in takes[name] for name in wanted):
            raise InputError(_refused(option, paper, figure, [name for name in found if option in takes[name]]))
    home = Path(out) / paper
    for name in wanted:
        chosen = {option: value for option, value in given.items() if option in takes[name]}
        kept = {"checkpoint": home / ".pieces"} if "checkpoint" in takes[name] else {}
        exhibit = found[name](**chosen, **kept)
        yield exhibit, exhibit.save(home, chosen)


def _refused(option: str, paper: str, figure: str | None, takers: list[str]) -> str:
    flag = f"--{option.replace('_', '-')}"
    if option == "data" and figure is not None:
        return f"{paper} {figure} makes its own data: leave --data out"
    who = f"{paper} {figure} does not take" if figure else f"no exhibit of {paper} takes"
    return f"{who} {flag}" + (f"; {', '.join(takers)} {'do' if len(takers) > 1 else 'does'}" if takers else "")


SHOWN = (
    "A difference decides where its 95% interval leaves 0 out, or the number that the sentence names. Where it does "
    'not, the sentence cannot be decided here: "not shown" says so, with the difference that these runs or queries '
    "would have shown in four of five cases (80% power)."
)


def replication(folder: str | Path) -> str:
    """Return every claim with its verdict as Markdown, from the exhibits that were saved in a folder."""
    rows: list[tuple[str, str, str, str, str]] = []
    own: list[tuple[str, str, str, str, str]] = []
    missing: list[str] = []
    unusual: list[str] = []
    for paper in papers():
        for name, make in makers(paper).items():
            file = Path(folder) / paper / f"{name}.json"
            if not file.is_file():
                missing.append(f"{paper} {name}")
                continue
            stored = json.loads(file.read_text(encoding="utf-8"))
            usual = inspect.signature(make).parameters
            given = {key: value for key, value in stored["options"].items() if value != usual[key].default}
            if given:
                told = ", ".join(f"--{key.replace('_', '-')} {value}" for key, value in given.items())
                unusual.append(f"{paper} {name} ({told})")
            for claim in stored["claims"]:
                row = (paper, name, claim["text"], claim["verdict"], claim["why"])
                (own if claim.get("own") else rows).append(row)
    if not (rows or own):
        raise InputError(f"{folder} holds no exhibits: run `toprank reproduce PAPER --out {folder}` first")
    counts = ", ".join(f"{sum(row[3] == verdict for row in rows)} × {verdict}" for verdict in VERDICTS)
    parts = [
        "# What replicates",
        "Every claim of the papers that an exhibit tests, with a verdict computed from the numbers. Written by "
        "`toprank reproduce --claims docs/replication.md --out FOLDER` from the exhibits in that folder, not by hand.",
        f"{len(rows)} claims: {counts}.",
        SHOWN,
        Table(("paper", "exhibit", "claim", "verdict", "numbers"), rows).markdown(),
    ]
    if own:
        parts += [
            "## Not the papers' sentences",
            "Experiments of our own, streams and readings that the papers do not have. They are not counted above.",
            Table(("exhibits", "exhibit", "sentence", "verdict", "numbers"), own).markdown(),
        ]
    if unusual:
        parts.append(f"With other options than the usual ones: {'; '.join(unusual)}.")
    if missing:
        parts.append(f"Not run: {', '.join(missing)}.")
    return "\n\n".join(parts) + "\n"
