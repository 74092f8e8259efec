"""What a paper module returns: exhibits (figures and tables) that hold their data and can draw and save themselves."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .._files import replacing
from .._tables import Table
from ..errors import InputError, MissingExtraError


@dataclass(frozen=True)
class Exhibit:
    """A figure or table of a paper, recomputed: its data, a table to read, notes, and how to draw it.

    `draw` gets an empty matplotlib `Figure` and fills it; None where a table says it all.
    """

    name: str
    title: str
    data: Mapping[str, Any]
    table: Table | None = None
    notes: tuple[str, ...] = ()
    draw: Callable[[Any], None] | None = field(default=None, repr=False)

    def figure(self) -> Any:
        """Return a matplotlib figure (the `plot` extra)."""
        if self.draw is None:
            raise InputError(f"{self.name} is a table, there is nothing to draw: print(exhibit.table.plain())")
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise MissingExtraError("matplotlib", extra="plot", purpose="drawing a figure") from None
        canvas = Figure(figsize=(7.0, 4.5), layout="constrained")
        self.draw(canvas)
        return canvas

    def save(self, folder: str | Path) -> list[Path]:
        """Write NAME.json (data), NAME.md (table and notes) and NAME.png (figure) and return their paths."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        written = []
        with replacing(target / f"{self.name}.json") as draft:
            content = {"name": self.name, "title": self.title, "notes": self.notes, "data": plain(self.data)}
            draft.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        written.append(target / f"{self.name}.json")
        parts = [f"# {self.title}", *([self.table.markdown()] if self.table else []), *self.notes]
        with replacing(target / f"{self.name}.md") as draft:
            draft.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
        written.append(target / f"{self.name}.md")
        if self.draw is not None:
            with replacing(target / f"{self.name}.png") as draft:
                self.figure().savefig(draft, dpi=150, format="png")
            written.append(target / f"{self.name}.png")
        return written

    def __str__(self) -> str:
        return "\n\n".join([self.title, *([self.table.plain()] if self.table else []), *self.notes])


def plain(value: Any) -> Any:
    """Return arrays, numbers and nested containers as JSON can hold them; a number that is not finite becomes None."""
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


@dataclass(frozen=True)
class Checkpoint:
    """Finished pieces of a long experiment, one small JSON file each, so that an interrupted run goes on where it was.

    >>> import tempfile
    >>> cells = Checkpoint(Path(tempfile.mkdtemp()))
    >>> cells.get({"fold": 1}, lambda: {"map": 0.5}), cells.get({"fold": 1}, lambda: {"map": 0.0})
    ({'map': 0.5}, {'map': 0.5})
    """

    folder: Path | None
    """Where the pieces are kept; None keeps nothing."""

    def get(self, key: Mapping[str, Any], compute: Callable[[], Any]) -> Any:
        """Return the stored result for `key` (all that the result depends on, as JSON), or compute and store it."""
        if self.folder is None:
            return plain(compute())
        text = json.dumps(key, sort_keys=True)
        file = self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"
        if file.exists():
            try:
                stored = json.loads(file.read_text(encoding="utf-8"))
                if stored["key"] == json.loads(text):
                    return stored["result"]
            except (json.JSONDecodeError, KeyError, TypeError):
                pass  # a damaged piece is computed again
        result = plain(compute())
        self.folder.mkdir(parents=True, exist_ok=True)
        with replacing(file) as draft:
            draft.write_text(json.dumps({"key": json.loads(text), "result": result}), encoding="utf-8")
        return result
