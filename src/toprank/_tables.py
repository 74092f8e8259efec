"""One table, many ways to show it: plain text, Markdown, LaTeX, HTML and a terminal.

Reports, comparisons and papers build a `Table` of values; how a number is rounded and how a character is escaped is
decided here and nowhere else.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from numbers import Integral, Real
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.text import Text

Cell: TypeAlias = str | int | float | None
"""Text is shown as it is, a float is rounded to `Table.digits` (a million and more: to four digits), None is empty."""

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
        return "\n".join(line for line, _ in self.fitted(sys.maxsize))

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

    def fitted(self, width: int) -> list[tuple[str, str]]:
        """Return lines of text for a terminal, each with its style: no line is wider unless a single word is.

        Columns of text are wrapped between words first. What is still too wide is shown in several parts, each of
        which begins with the first column again.

        >>> wide = Table(("who", "first"), [("ListNet", "0.5123 [0.4, 0.6]"), ("BM25", "0.4")])
        >>> for line, _ in wide.fitted(20):
        ...     print(line)
        who      first
        -------  -----------
        ListNet  0.5123
                 [0.4, 0.6]
        BM25     0.4
        """
        lines = [] if self.title is None else [(line, "italic") for line in wrap(self.title, width)]
        for number, part in enumerate(self._parts(width)):
            lines += [("", "")] if number else []
            lines += part._lines(part._narrowed(width))
        return lines + [(line, "dim") for note in self.notes for line in wrap(note, width)]

    def _parts(self, width: int) -> Iterator[Table]:
        """Yield tables of some columns each, that fit where columns of text are as narrow as their words let them."""
        least = [max(map(_longest_word, column)) for column in zip(self.columns, *self.cells(), strict=True)]
        taken, used = [0], least[0]
        for column in range(1, len(self.columns)):
            if len(taken) > 1 and used + 2 + least[column] > width:
                yield self._of(taken)
                taken, used = [0], least[0]
            taken.append(column)
            used += 2 + least[column]
        yield self._of(taken)

    def _of(self, columns: list[int]) -> Table:
        kept = {(r, columns.index(c)) for r, c in self.bold if c in columns}
        rows = [[row[c] for c in columns] for row in self.rows]
        return Table([self.columns[c] for c in columns], rows, bold=kept, digits=self.digits)

    def _narrowed(self, width: int) -> list[int]:
        """Return the width of each column: the widest give way first, down to their longest word."""
        columns = list(zip(self.columns, *self.cells(), strict=True))
        wide, least = [max(map(len, column)) for column in columns], [max(map(_longest_word, c)) for c in columns]
        while sum(wide) + 2 * (len(wide) - 1) > width:
            can = [c for c in range(len(wide)) if wide[c] > least[c]]
            if not can:
                break
            wide[max(can, key=lambda c: wide[c])] -= 1
        return wide

    def _lines(self, widths: list[int]) -> Iterator[tuple[str, str]]:
        right = self._flush_right
        for r, row in enumerate([self.columns, ["-" * w for w in widths], *self.cells()], start=-2):
            folded = [wrap(cell, w) for cell, w in zip(row, widths, strict=True)]
            style = "bold" if r == -2 or (r, 0) in self.bold else ""
            for level in range(max(map(len, folded))):
                cells = [cell[level] if level < len(cell) else "" for cell in folded]
                parts = zip(cells, widths, right, strict=True)
                yield "  ".join(c.rjust(w) if f else c.ljust(w) for c, w, f in parts).rstrip(), style

    def __str__(self) -> str:
        return self.plain()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        from rich.text import Text

        for line, style in self.fitted(options.max_width):
            yield Text(line, style=style, no_wrap=True, overflow="ignore")

    def _repr_html_(self) -> str:
        return self.html()


class Shown:
    """What is shown as tables, with notes below them, wherever it is printed; a class says `table` or `tables`."""

    notes: Sequence[str] = ()

    def table(self) -> Table:
        """Return the first table."""
        return self.tables()[0]

    def tables(self) -> tuple[Table, ...]:
        """Return everything that is shown."""
        return (self.table(),)

    def to_markdown(self) -> str:
        """Return tables and notes in Markdown."""
        return "\n\n".join([*(table.markdown() for table in self.tables()), *(f"- {note}" for note in self.notes)])

    def to_latex(self) -> str:
        """Return the tables in LaTeX (with the booktabs package)."""
        return "\n\n".join(table.latex() for table in self.tables())

    def __str__(self) -> str:
        return "\n\n".join([*(table.plain() for table in self.tables()), "\n".join(self.notes)]).rstrip()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table | Text]:
        from rich.text import Text

        for number, table in enumerate(self.tables()):
            if number:
                yield Text("")
            yield table
        if self.notes:
            yield Text("\n" + "\n".join(self.notes))

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return "\n".join([*(table.html() for table in self.tables()), *([f"<ul>{notes}</ul>"] if notes else [])])


def wrap(text: str, width: int) -> list[str]:
    """Return the text in lines that end between words; a word that is wider stays whole.

    >>> wrap("settings were chosen", 12), wrap("", 5)
    (['settings', 'were chosen'], [''])
    """
    if len(text) <= width:
        return [text]
    return textwrap.wrap(text, max(width, 1), break_long_words=False, break_on_hyphens=False) or [""]


def _longest_word(text: str) -> int:
    return max(map(len, text.split()), default=0)


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
        if cell != cell:
            return "–"  # a number that there is none of, such as the spread of one run
        # Of a long number the size is read, not the digits.
        return f"{cell:.{digits}f}" if abs(cell) < 1e6 else f"{cell:.4g}"
    return " ".join(str(cell).split("\n"))


def _markdown(text: str) -> str:
    return text.translate(_MARKDOWN).replace("](", "]\\(")


def _latex(text: str) -> str:
    return text.translate(_LATEX)
