"""The page of a judge: people, machine and both side by side, the agreement matrix, and whom the machine favours."""

from __future__ import annotations

import os
from html import escape
from string import Template

from .._files import replacing
from .._html import clip, element, typeset
from .._tables import Table, signed
from .._version import __version__
from ..judging import tables
from ..judging.report import JudgeReport
from ..statistics.comparison import interval_text
from .page import asset
from .sections import _axis, _table
from .svg import extent

LONGEST_NAME = 40


def write_page(report: JudgeReport, path: str | os.PathLike[str]) -> None:
    """Write the page, whole or not at all: one file without scripts that needs no network.

    >>> import tempfile, pathlib, toprank as tr
    >>> page = pathlib.Path(tempfile.mkdtemp()) / "judge.html"
    >>> write_page(tr.judge({"q": {"a": 1, "b": 0}}, {"q": {"a": 1, "b": 1}}, judge_name="robot"), page)
    >>> "robot gives the grade of people to 50%" in page.read_text(encoding="utf-8")
    True
    """
    with replacing(path) as draft:
        draft.write_bytes(render(report).encode("utf-8", "replace"))


def render(report: JudgeReport) -> str:
    """Return the page."""
    title = f"{report.judge} as a judge"
    subtitle = f"{report.n_people:,} queries judged by people, {report.n_machine:,} more by {report.judge}"
    first, *others = (typeset(escape(sentence)) for sentence in report.notes[::-1])
    said = element("p", first, class_="lead") + "".join(element("p", one) for one in others)
    head = element(
        "header",
        element("h1", escape(title)),
        element("p", escape(subtitle), class_="note"),
        element("div", said, class_="headline"),
    )
    body = [_section("systems", _heading(report), _systems(report)), _section("favour", "Favourites", _favour(report))]
    body.append(_section("agreement", "Agreement on documents", _agreement(report)))
    if report.suggestions:
        body.append(_section("further", "Further queries", _whole(tables.further_queries(report))))
    if report.gains:
        body.append(_section("gains", "Differences to the baseline", _whole(tables.over_baseline(report))))
    body.append(_section("apart", "Where to look", "".join(map(_whole, tables.apart(report)))))
    style = asset("page.css") + asset("exhibits.css") + asset("judging.css")
    parts = {"title": escape(title), "head": head, "main": "".join(body), "version": escape(__version__)}
    return Template(asset("exhibits.html")).substitute(parts, style=style)


def _section(name: str, title: str, body: str) -> str:
    return element("section", element("h2", escape(title)), body, id=name) if body else ""


def _heading(report: JudgeReport) -> str:
    return "" if report.measured is None else f"{report.measured.measure} by people, by {report.judge} and by both"


def _systems(report: JudgeReport) -> str:
    """Draw each system in three rows: people with their interval, the machine's mean, and what both bound."""
    if report.measured is None:
        return ""
    rows, ends = [], []
    for b, c in zip(report.biases, report.certificates, strict=True):
        shown = c.assumptions_hold
        people = (c.people.lower, b.people, c.people.upper) if shown else (b.people,) * 3
        both = (c.lower, c.mean, c.upper) if shown and c.with_machine else None
        rows.append((b, people, both))
        ends.append([*people, b.machine, *(both or ())])
    low, high = extent(ends)
    any_both = any(both is not None for _, _, both in rows)
    drawn = []
    for b, people, both in sorted(rows, key=lambda row: -row[0].people):
        marks = _line("people", people, low, high) + _dot("machine", b.machine, low, high)
        marks += "" if both is None else _line("both", both, low, high)
        told = "–" if both is None else interval_text((both[0], both[2]))
        name = escape(clip(b.system, LONGEST_NAME))
        machine, bias = f"{b.machine:.4f}", signed(b.bias)
        alone = interval_text((people[0], people[2]))
        drawn.append(
            [name, element("div", marks), f"{b.people:.4f}", alone, machine, bias, *([told] if any_both else [])]
        )
    heads = {"system": "", _axis(f"{low:.3f}", f"{high:.3f}"): "range", "people": "n", "people alone": "n quiet"}
    heads |= {escape(report.judge): "n", "bias": "n"} | ({"both": "n"} if any_both else {})
    judge = escape(report.judge)
    key = element(
        "p", *(_key(kind, text) for kind, text in (("people", "people"), ("machine", judge), ("both", "both")))
    )
    notes = "".join(element("p", typeset(escape(note)), class_="note") for note in tables.systems(report).notes)
    return key + _table(heads, drawn, class_="measure judges") + notes


def _key(kind: str, text: str) -> str:
    return element("span", class_=f"sign {kind}", aria_hidden="true") + text


def _place(value: float, low: float, high: float) -> float:
    return 100 * (value - low) / (high - low or 1.0)


def _line(kind: str, ends: tuple[float, ...], low: float, high: float) -> str:
    left, right = _place(ends[0], low, high), _place(ends[2], low, high)
    line = element("i", class_=kind, style=f"left:{left:.1f}%;right:calc(100% - {right:.1f}%)")
    return line + _dot(kind, ends[1], low, high)


def _dot(kind: str, value: float, low: float, high: float) -> str:
    return element("b", class_=kind, style=f"left:{_place(value, low, high):.1f}%")


def _favour(report: JudgeReport) -> str:
    """Draw how much kinder the machine is to each system than to the average one, and list the pairs that are shown."""
    if len(report.biases) < 2:
        return ""
    mean = sum(b.bias for b in report.biases) / len(report.biases)
    beyond = {b.system: b.bias - mean for b in report.biases}
    widest = max(map(abs, beyond.values())) or 1.0
    shown = [f for f in report.favours if f.shown]
    rows = []
    for name, value in sorted(beyond.items(), key=lambda item: -item[1]):
        size = 50 * abs(value) / widest
        left = 50 if value >= 0 else 50 - size
        bar = element("i", class_="up" if value >= 0 else "down", style=f"left:{left:.1f}%;width:{size:.1f}%")
        over = sum(name in (f.a, f.b) and (f.favour > 0) == (name == f.a) for f in shown)
        under = sum(name in (f.a, f.b) and (f.favour > 0) != (name == f.a) for f in shown)
        drawn = element("div", bar, class_="diverging")
        rows.append([escape(clip(name, LONGEST_NAME)), drawn, signed(value), str(over), str(under)])
    heads = {"system": "", "kinder to it than to the average system": "picture", "by": "n"}
    heads |= {"shown over": "n", "shown under": "n"}
    note = "Shown over, under: of how many other systems it is shown that the machine favours this one, or them."
    return _table(heads, rows, class_="bars") + element("p", note, class_="note") + _whole(tables.favourites(report))


def _agreement(report: JudgeReport) -> str:
    """Draw the confusion matrix, each cell as dark as its share of the row."""
    a = report.agreement
    names = [str(g) for g in a.grades.tolist()]
    heads = [element("th", f"{escape(report.judge)} {name}", scope="col") for name in names]
    body = []
    for i, name in enumerate(names):
        total = int(a.confusion[i].sum())
        cells = []
        for j, count in enumerate(a.confusion[i].tolist()):
            share = count / total if total else 0.0
            text = f"{count:,}" + element("small", f"{share:.0%}")
            cells.append(element("td", text, style=f"--share:{0.6 * share:.3f}", class_="equal" if i == j else None))
        body.append(element("tr", element("th", f"people {name}", scope="row"), *cells))
    table = element(
        "table", element("thead", element("tr", element("td", ""), *heads)), element("tbody", *body), class_="confusion"
    )
    notes = "".join(element("p", typeset(escape(note)), class_="note") for note in tables.confusion(report).notes)
    return element("div", table, class_="scroll") + notes


def _whole(table: Table) -> str:
    return element("div", table.html(), class_="scroll")
