"""One table, many ways to show it: plain text, Markdown, LaTeX, HTML and a terminal.

Reports, comparisons and papers build a `Table` of values; how a number is rounded and how a character is escaped is
decided here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from html import escape
from numbers import Integral, Real
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rich.table import Table as RichTable

Cell: TypeAlias = str | int | float | None
"""Text is shown as it is, a float is rounded to `Table.digits`, None is an empty cell."""

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "$": r"\$",
        "&": r"\&",
        "#": r"\#",
        "%": r"\%",
        "_": r"\_",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "≤": r"$\leq$",
        "≥": r"$\geq$",
        "±": r"$\pm$",
        "×": r"$\times$",
        "−": "$-$",
        "–": "--",
        "…": r"\ldots{}",
    }
)
_MARKDOWN = str.maketrans({c: f"\\{c}" for c in "\\`*_<|~"})


@dataclass(frozen=True)
class Table:
    """Rows of cells under named columns; a column of numbers is set flush right.

    >>> table = Table(("measure", "mean"), [("ndcg@10", 0.51234), ("map", 0.4)], title="Test", notes=("106 queries",))
    >>> print(table)
    Test
    measure    mean
    -------  ------
    ndcg@10  0.5123
    map      0.4000
    106 queries
    >>> print(table.markdown())
    **Test**
    <BLANKLINE>
    | measure | mean |
    | :--- | ---: |
    | ndcg@10 | 0.5123 |
    | map | 0.4000 |
    <BLANKLINE>
    106 queries
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    title: str | None = None
    notes: Sequence[str] = ()
    bold: Collection[tuple[int, int]] = ()
    """(row, column) of the cells to stress; plain text has no way to show it."""
    digits: int = 4

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise ValueError(f"row {number} has {len(row)} cells for {len(self.columns)} columns")

    def cells(self) -> list[list[str]]:
        """Return every cell as the text that is shown."""
        return [[_text(cell, self.digits) for cell in row] for row in self.rows]

    def _marked(self, escape: Callable[[str], str], bold: str) -> list[list[str]]:
        """Return the cells escaped, the stressed ones wrapped in `bold`."""
        return [
            [bold % escape(cell) if cell and (r, c) in self.bold else escape(cell) for c, cell in enumerate(row)]
            for r, row in enumerate(self.cells())
        ]

    @property
    def _flush_right(self) -> list[bool]:
        columns = zip(*self.rows, strict=True) if self.rows else [()] * len(self.columns)
        return [all(cell is None or isinstance(cell, Real) for cell in column) for column in columns]

    def plain(self) -> str:
        """Return aligned text without any mark-up."""
        shown, right = self.cells(), self._flush_right
        widths = [max(map(len, column)) for column in zip(self.columns, *shown, strict=True)]

        def line(cells: Sequence[str]) -> str:
            parts = zip(cells, widths, right, strict=True)
            return "  ".join(cell.rjust(w) if r else cell.ljust(w) for cell, w, r in parts).rstrip()

        head = [] if self.title is None else [self.title]
        body = [line(self.columns), line(["-" * w for w in widths]), *map(line, shown)]
        return "\n".join([*head, *body, *self.notes])

    def markdown(self) -> str:
        """Return a GitHub-flavoured Markdown table."""
        names = [_markdown(name) for name in self.columns]
        rules = ["---:" if right else ":---" for right in self._flush_right]
        lines = [f"| {' | '.join(row)} |" for row in [names, rules, *self._marked(_markdown, "**%s**")]]
        head = [] if self.title is None else [f"**{_markdown(self.title)}**", ""]
        foot = [line for note in self.notes for line in ("", _markdown(note))]
        return "\n".join([*head, *lines, *foot])

    def latex(self) -> str:
        r"""Return a `tabular` with the rules of the booktabs package; with a title, inside a `table`.

        >>> print(Table(["a_b"], [["50 %"]], bold={(0, 0)}).latex())
        \begin{tabular}{l}
        \toprule
        a\_b \\
        \midrule
        \textbf{50 \%} \\
        \bottomrule
        \end{tabular}
        """
        rows = [[_latex(name) for name in self.columns], *self._marked(_latex, r"\textbf{%s}")]
        head, *body = (" & ".join(row) + r" \\" for row in rows)
        shape = "".join("r" if right else "l" for right in self._flush_right)
        lines = [
            rf"\begin{{tabular}}{{{shape}}}",
            r"\toprule",
            head,
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
        ]
        lines += [rf"\par\footnotesize {_latex(note)}" for note in self.notes]
        if self.title is not None:
            lines = [r"\begin{table}", r"\centering", rf"\caption{{{_latex(self.title)}}}", *lines, r"\end{table}"]
        return "\n".join(lines)

    def html(self) -> str:
        """Return a self-contained HTML table.

        >>> print(Table(["p"], [[0.5]]).html())
        <table class="toprank" style="font-variant-numeric:tabular-nums">
        <thead><tr><th style="text-align:right">p</th></tr></thead>
        <tbody>
        <tr><td style="text-align:right">0.5000</td></tr>
        </tbody>
        </table>
        """
        sides = ["right" if right else "left" for right in self._flush_right]

        def row(cells: Sequence[str], tag: str) -> str:
            parts = zip(cells, sides, strict=True)
            return "".join(f'<{tag} style="text-align:{side}">{cell}</{tag}>' for cell, side in parts)

        caption = [] if self.title is None else [f"<caption>{escape(self.title)}</caption>"]
        head = f"<thead><tr>{row([escape(name) for name in self.columns], 'th')}</tr></thead>"
        body = [f"<tr>{row(cells, 'td')}</tr>" for cells in self._marked(escape, "<b>%s</b>")]
        notes = [f'<p style="opacity:.8">{escape(note)}</p>' for note in self.notes]
        start = '<table class="toprank" style="font-variant-numeric:tabular-nums">'
        return "\n".join([start, *caption, head, "<tbody>", *body, "</tbody>", "</table>", *notes])

    def rich(self) -> RichTable:
        """Return what a rich console prints."""
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(
            title=None if self.title is None else Text(self.title),
            caption=Text("\n".join(self.notes)) if self.notes else None,
            caption_justify="left",
        )
        for name, right in zip(self.columns, self._flush_right, strict=True):
            table.add_column(Text(name), justify="right" if right else "left")
        for r, row in enumerate(self.cells()):
            table.add_row(*(Text(cell, style="bold" if (r, c) in self.bold else "") for c, cell in enumerate(row)))
        return table

    def __str__(self) -> str:
        return self.plain()

    def __rich__(self) -> RichTable:
        return self.rich()

    def _repr_html_(self) -> str:
        return self.html()


def signed(value: float, digits: int = 4) -> str:
    """Return a number with its sign, as every table and the page write it; what rounds to 0 has none.

    >>> signed(-0.25), signed(0.25, 2), signed(-1e-9)
    ('−0.2500', '+0.25', '0.0000')
    """
    text = f"{value:+.{digits}f}"
    return text.replace("-", "−") if float(text) else text[1:]


def _text(cell: Cell, digits: int) -> str:
    if cell is None:
        return ""
    if isinstance(cell, Real) and not isinstance(cell, Integral):
        return f"{cell:.{digits}f}"
    return " ".join(str(cell).split("\n"))


def _markdown(text: str) -> str:
    return text.translate(_MARKDOWN).replace("](", "]\\(")


def _latex(text: str) -> str:
    return text.translate(_LATEX)
