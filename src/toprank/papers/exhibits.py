"""What a paper's module returns: exhibits that hold their numbers, the paper's claims about them, and how to draw."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeAlias, get_args

from .._checkpoint import Checkpoint as Checkpoint
from .._checkpoint import plain as plain
from .._drawing import Panel as Panel
from .._drawing import empty_figure
from .._drawing import panels as panels
from .._files import replacing
from .._tables import Table
from ..errors import InputError
from ..statistics._intervals import interval as interval

Verdict = Literal["replicates", "does not replicate", "cannot be decided here"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, or one of our own, what these numbers say about it, and the numbers."""

    text: str
    verdict: Verdict
    why: str
    own: bool = False
    """Whether the statement is not the paper's: it stands apart and is not counted in what replicates."""

    def __str__(self) -> str:
        return f"{self.verdict.capitalize()}: {self.text} {self.why}"


class Own(str):
    """A sentence that is not the paper's: an experiment of our own, or a reading that the paper does not have.

    >>> @judge
    ... def compared(a, b):
    ...     yield Own("On our stream A is above B."), a > b, f"{a:.3f} against {b:.3f}."
    >>> [claim.own for claim in compared(0.3, 0.4)]
    [True]
    """


Said: TypeAlias = Iterator[tuple[str, bool | None, str]]
"""The paper's sentences, each with a comparison of numbers (None where these cannot decide) and the numbers."""
MINUS = re.compile(r"(?<![\w.])-(?=\d)")
"""The hyphen that stands for a minus before a number: printed numbers get a true one."""
P = ParamSpec("P")
JUDGES: list[Callable[..., Said]] = []
"""All judges of the papers that were imported: tests hold each of their sentences against numbers that refute it."""


def judge(say: Callable[P, Said]) -> Callable[P, tuple[Claim, ...]]:
    """Make a generator of sentences one of claims with verdicts.

    >>> @judge
    ... def compared(a, b):
    ...     yield "A is above B.", a > b, f"{a:.3f} against {b:.3f}."
    >>> print(*compared(0.3, 0.4))
    Does not replicate: A is above B. 0.300 against 0.400.
    """
    JUDGES.append(say)

    @wraps(say)
    def judged(*args: P.args, **kwargs: P.kwargs) -> tuple[Claim, ...]:
        found = ((text, holds, MINUS.sub("−", why)) for text, holds, why in say(*args, **kwargs))
        return tuple(
            Claim(str(text), VERDICTS[2 if holds is None else not holds], why, isinstance(text, Own))
            for text, holds, why in found
        )

    return judged


@dataclass(frozen=True)
class Exhibit:
    """A figure or table of a paper, recomputed: its data, a table to read, notes, the claims, and how to draw it.

    `draw` gets an empty matplotlib `Figure` and fills it; None where a table says it all.
    """

    name: str
    title: str
    data: Mapping[str, Any]
    table: Table | None = None
    notes: tuple[str, ...] = ()
    draw: Callable[[Any], None] | None = field(default=None, repr=False)
    claims: tuple[Claim, ...] = ()

    def figure(self) -> Any:
        """Return a matplotlib figure (the `plot` extra)."""
        if self.draw is None:
            raise InputError(f"{self.name} is a table, there is nothing to draw: print(exhibit.table.plain())")
        canvas = empty_figure()
        self.draw(canvas)
        return canvas

    def picture(self, kind: Literal["png", "svg"]) -> bytes:
        """Return the figure as a file; the same figure gives the same bytes."""
        import matplotlib as mpl

        held = io.BytesIO()
        with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": self.name}):
            about = {"Date": None} if kind == "svg" else None
            self.figure().savefig(held, format=kind, dpi=150, metadata=about)
        return held.getvalue()

    def save(self, folder: str | Path, options: Mapping[str, Any] | None = None) -> list[Path]:
        """Write NAME.json (data), NAME.md (table, claims, notes), NAME.png and NAME.svg, and return their paths.

        `options` are those that the exhibit was made with, where they are not the usual ones.
        """
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        content = {"name": self.name, "title": self.title, "notes": self.notes, "data": plain(self.data)}
        content |= {"claims": [vars(found) for found in self.claims], "options": plain(options or {})}
        text = self._text(f"# {self.title}", self.table.markdown() if self.table else "") + "\n"
        stored = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        bodies = {"json": stored.encode("utf-8"), "md": text.encode("utf-8")}
        if self.draw is not None:
            bodies |= {"png": self.picture("png"), "svg": self.picture("svg")}
        for kind, body in bodies.items():
            with replacing(target / f"{self.name}.{kind}") as draft:
                draft.write_bytes(body)
        return [target / f"{self.name}.{kind}" for kind in bodies]

    def _text(self, title: str, table: str) -> str:
        claims = "\n".join(f"- {found}" for found in self.claims)
        return "\n\n".join(part for part in (title, table, claims, *self.notes) if part)

    def __str__(self) -> str:
        return self._text(self.title, self.table.plain() if self.table else "")


Maker: TypeAlias = Callable[..., Exhibit]


def by_name(*makers: Maker, sep: str = "_") -> dict[str, Maker]:
    """Return the exhibits of a paper in the order of its list, `sep` between the words of a name."""
    return {make.__name__.replace("_", sep): make for make in makers}
