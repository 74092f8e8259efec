"""The parts of the page that need no script: every function returns HTML."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from .._html import bound_bar, clip, element, typeset
from .._tables import Table, signed
from ..certificates.base import Certificate
from ..certificates.performance import PerformanceCertificate
from ..contests.tables import gain, promised
from ..statistics.comparison import interval_text
from . import svg
from .view import ContestView

MEASURED = ("valid", "train")
"""Curves of a measure: they share one frame and, over all entrants, one scale."""


def measures(view: ContestView) -> str:
    """Return one table per measure: a dot with its interval for every system, best first."""
    return "".join(_measure(view, i, measure) for i, measure in enumerate(view.measures))


def _measure(view: ContestView, index: int, measure: str) -> str:
    comparison = view.contest.comparison
    ends = [comparison.interval(name, measure) for name in view.names]
    means = view.means(measure)
    low, high = svg.extent([*ends, means.tolist()])
    rows = []
    for i in view.best_first(measure):
        a, b = ends[i]
        drawn = _interval(a, means[i], b, low, high)
        rows.append([_name(view, i), drawn, f"{means[i]:.4f}", f"[{a:.4f}, {b:.4f}]", _versus(view, measure, i)])
    level = f"{1 - comparison.alpha:.0%} interval"
    heads = {"system": "", _axis(f"{low:.3f}", f"{high:.3f}"): "range", "mean": "n", level: "n quiet"}
    caption = element("caption", measure_name(measure))
    return _table({**heads, "to the baseline": "n"}, rows, caption, class_="measure", data_measure=index)


def _interval(a: float, mean: float, b: float, low: float = 0.0, high: float = 1.0) -> str:
    """Draw the interval from a to b as a line and the mean as a dot, on a scale from low to high."""
    shares = [(value - low) / (high - low or 1.0) if math.isfinite(value) else 0.0 for value in (a, mean, b)]
    left, dot, right = (f"{100 * share:.1f}%" for share in shares)
    line = element("i", style=f"left:{left};right:calc(100% - {right})")
    return element("div", line, element("b", style=f"left:{dot}"))


def _axis(low: str, high: str) -> str:
    """Return the ends of a scale, over what is drawn on it."""
    return element("div", element("span", low), element("span", high), class_="axis")


def _table(
    heads: Mapping[str, str], rows: Sequence[Sequence[str]], caption: str = "", class_: str | None = None, **about: Any
) -> str:
    """Return a table that scrolls where it is too wide; `heads` are its columns with their classes.

    A row begins with its own head. What a column "range" draws stands beside it in numbers, so it is not read out.
    """

    def cell(tag: str, text: str, kind: str, scope: str | None = None) -> str:
        if kind == "range":
            return element(tag, text, class_=kind, aria_hidden="true")
        return element(tag, text, scope=scope, class_=kind or None)

    first, *kinds = heads.values()
    head = element("tr", *(cell("th", text, kind, "col") for text, kind in heads.items()))
    body = [
        element("tr", cell("th", name, first, "row"), *map(cell, ["td"] * len(cells), cells, kinds))
        for name, *cells in rows
    ]
    table = element("table", caption, element("thead", head), element("tbody", "\n".join(body)), class_=class_)
    return element("div", table, class_="scroll", **about)


def _versus(view: ContestView, measure: str, system: int) -> str:
    if system == view.baseline:
        return "baseline"
    found = view.difference(measure, system, view.baseline)
    if found is None:
        return "not tested"
    mark = ("▲" if found.direction > 0 else "▼") if found.shown else "≈"
    words = {"▲": "shown to be better", "▼": "shown to be worse", "≈": "not shown"}[mark]
    sign = element("span", mark, class_={"▲": "up", "▼": "down"}.get(mark, "quiet"), title=words)
    return f"{signed(found.difference)} {sign}{element('span', words, class_='aside')}"


def tested(view: ContestView) -> str:
    """Return how differences were tested, and the differences to the baseline for readers without scripts."""
    comparison = view.contest.comparison
    _, table = comparison.tables()
    words = f"{table.title}. {' '.join(table.notes)}"
    chosen = [
        (row, d)
        for row, d in zip(table.rows, comparison.differences, strict=True)
        if d.measure == view.measures[0] and view.names[view.baseline] in (d.a, d.b)
    ]
    short = Table(
        table.columns, [row for row, _ in chosen], bold={(r, 8) for r, (_, d) in enumerate(chosen) if d.shown}
    )
    return element("p", escape(words), class_="note") + element(
        "noscript", element("div", short.html(), class_="scroll")
    )


def repeated(view: ContestView) -> str:
    """Return what learning again and again says of the learners, where that was asked for."""
    repeats = view.contest.repeats
    return "" if repeats is None else element("div", repeats.table().html(), class_="scroll")


def learning(view: ContestView) -> str:
    """Return small pictures of how each entrant learned; nothing where no entrant has a curve."""
    measured, others = [], []
    entrants = [(i, e.curves) for i, e in enumerate(view.contest.entrants)]
    limits = svg.extent([c[name] for _, c in entrants for name in MEASURED if name in c])
    for i, found in entrants:
        pair = {name: found[name] for name in MEASURED if name in found and len(found[name])}
        if pair:
            measured.append(_curve(view, i, pair, limits))
        for name, values in found.items():
            if name not in MEASURED and len(values):
                others.append(_curve(view, i, {name: values}, None))
    parts = []
    if measured:
        key = '<span class="key valid"></span> validation queries <span class="key train"></span> training queries'
        scale = f"all from {limits[0]:.3f} to {limits[1]:.3f}"
        parts.append(element("p", f"{key}; {scale}", class_="note") + element("div", *measured, class_="grid"))
    if others:
        many = f"{len(others)} curve{'s' if len(others) > 1 else ''}"
        title = element("summary", f"What was optimised: {many}, each on its own scale")
        parts.append(element("details", title, element("div", *others, class_="grid"), open=not measured))
    return "".join(parts)


def _curve(view: ContestView, i: int, series: Mapping[str, Sequence[float]], limits: tuple[float, float] | None) -> str:
    ends = "; ".join(f"{clip(name, 24)} {v[0]:.4g} → {v[-1]:.4g}" for name, v in series.items())
    steps = max(len(values) for values in series.values())
    text = typeset(f"{ends} in {steps} step{'s' if steps > 1 else ''}")
    named = {name if name in MEASURED else "other": values for name, values in series.items()}
    low, high = svg.extent(series.values()) if limits is None else limits
    picture = svg.curves(named, f"{view.labels[i]}: {text}", (low, high))
    axes = "".join(
        element("span", label, class_=place)
        for place, label in (
            ("high", typeset(f"{high:.4g}")),
            ("low", typeset(f"{low:.4g}")),
            ("last", f"{steps:,}"),
        )
    )
    plot = element("div", picture, element("div", axes, class_="axes", aria_hidden="true"), class_="plot")
    return element("figure", element("figcaption", _name(view, i)), plot, element("p", escape(text)))


def promises(view: ContestView) -> str:
    """Return a table of what new queries will see of each system, on one scale; nothing where nothing is certified."""
    found = [(i, promised(view.contest.entrants[i])) for i in view.best_first(view.measures[0])]
    known = [(i, c) for i, c in found if c is not None]
    if not known:
        return ""
    gains = any(gain(view.contest.entrants[i]) is not None for i, _ in known)
    heads = {"system": "", _axis("0", "1"): "range", "at least": "n", "at most": "n quiet"}
    heads |= {"gain over the baseline": "n"} if gains else {}
    rows = []
    for i, c in known:
        rows.append([_name(view, i), _interval(c.lower, c.mean, c.upper), f"{c.lower:.4f}", f"{c.upper:.4f}"])
        if gains:
            over = gain(view.contest.entrants[i])
            rows[-1].append("–" if over is None else interval_text((over.lower, over.upper), sign=True))
    first = known[0][1]
    assumed = "; ".join(escape(str(assumption)) for assumption in first.assumptions)
    words = (
        f"Bounds on the expected {measure_name(view.measures[0])} of a new query, all of this table together with "
        f"{100 * first.confidence:g}% confidence, whatever the distribution of queries (by betting; differences cost "
        f"more than means). Assumed: {assumed}."
    )
    return _table(heads, rows, class_="measure promises") + element("p", words, class_="note")


def certificates(view: ContestView) -> str:
    """Return each certificate as a sentence, a bar of bound against observed, and its assumptions.

    What says nothing here or does not apply is folded away.
    """
    parts = []
    for i, entrant in enumerate(view.contest.entrants):
        found = [c for c in entrant.certificates if not isinstance(c, PerformanceCertificate)]
        vacuous = [c for c in found if c.verdict in ("vacuous", "does not apply")]
        others = [c for c in found if c not in vacuous]
        # A booster has one per round: the first two and the last are drawn, those between can be unfolded.
        drawn, between = [*others[:2], *others[2:][-1:]], others[2:-1]
        folded = [(f"{len(between)} more", between), (f"{len(vacuous)} that say nothing or do not apply here", vacuous)]
        more = (_folded(title, some) for title, some in folded if some)
        parts += [element("h3", _name(view, i)), *map(_certificate, drawn), *more] if found else []
    return "".join(parts)


def _folded(title: str, certificates: list[Certificate]) -> str:
    items = (element("li", typeset(escape(str(certificate)))) for certificate in certificates)
    return element("details", element("summary", title), element("ul", *items))


def _certificate(certificate: Certificate) -> str:
    marks = {"checked": "✓", "not met": "✗", "on trust": "○"}
    assumed = []
    for assumption in certificate.assumptions:
        state = assumption.state
        label = element("span", f"{marks[state]} {state}", class_=f"state {state.replace(' ', '-')}")
        assumed.append(element("li", label, " ", typeset(escape(assumption.sentence))))
    sign = "≤" if certificate.sense == "<=" else "≥"
    share = (
        f", {certificate.observed / certificate.value:.1%} of the bound"
        if sign == "≤" and not certificate.vacuous and certificate.value > 0 and certificate.observed >= 0
        else ""
    )
    numbers = f"observed {certificate.observed:.6g} {sign} bound {certificate.value:.6g}{share}"
    if not certificate.holds():
        numbers = f"observed {certificate.observed:.6g}, bound {certificate.value:.6g}"
    sentence = typeset(escape(f"{certificate.statement} ({certificate.reference}): {numbers}. "))
    verdict = element("b", escape(certificate.verdict[0].upper() + certificate.verdict[1:]) + ".")
    bar = bound_bar(certificate.observed, certificate.value) + _scale(certificate.observed, certificate.value)
    return element(
        "div", element("p", sentence, verdict), bar, element("ul", *assumed, class_="assumed"), class_="certificate"
    )


def _scale(observed: float, bound: float) -> str:
    """Return the ends of a bar's scale in numbers, and what bar and tick are."""
    low, high = min(0.0, observed, bound), max(0.0, observed, bound)
    if not math.isfinite(high - low) or high == low:
        return ""
    ends = [element("span", typeset(f"{end:.4g}")) for end in (low, high)]
    return element("div", ends[0], element("span", "bar: observed, line: bound"), ends[1], class_="scale")


def settings(view: ContestView) -> str:
    """Return the chosen hyper-parameters, the search for them, training time and tied queries of every entrant."""
    heads = {"system": "", "chosen settings": "wrap", "training": "n", "ties matter in": "n"}
    searched = any(entrant.planned for entrant in view.contest.entrants)
    if searched:
        heads |= {"validation": "n", "settings tried": "n", "search": "n"}
    rows = []
    for i in view.best_first(view.measures[0]):
        entrant = view.contest.entrants[i]
        chosen = _params(entrant.params) if entrant.rankers else "learns nothing"
        cells = [f"{entrant.seconds:.2f} s" if entrant.rankers else "–", f"{entrant.report.counts['tied_queries']:,}"]
        if searched:
            tried = (
                [f"{entrant.tried} of {entrant.planned}", f"{entrant.searched:.1f} s"] if entrant.planned else ["–"] * 2
            )
            cells += [f"{sum(entrant.valid) / len(entrant.valid):.4f}" if entrant.valid else "–", *tried]
        rows.append([_name(view, i), chosen, *cells])
    return _table(heads, rows) + element("p", _ties(view, searched=searched), class_="note")


def _ties(view: ContestView, *, searched: bool) -> str:
    """Explain tied queries, and say what the order of the file would have given where it differs."""
    measure = view.measures[0]
    differing = []
    for i in view.best_first(measure):
        report = view.contest.entrants[i].report
        given = report.mean_in_file_order[measure]
        if f"{given:.4f}" != f"{report.mean[measure]:.4f}":
            differing.append(f"{_name(view, i)} {given:.4f} for {report.mean[measure]:.4f}")
    text = "Ties matter in a query where documents with equal scores, in another order, would give another value. "
    text += "Under convention standard such documents count by the mean over their orders"
    text += f"; in the order of the file it would have been: {', '.join(differing)}." if differing else "."
    return text + (" The validation value is the largest of all that were tried, and flatters." if searched else "")


def _params(params: Sequence[Mapping[str, Any]]) -> str:
    texts = [", ".join(f"{k}={v!r}" for k, v in one.items()) or "defaults" for one in params]
    if not texts:
        return "defaults"
    if len(set(texts)) == 1:
        return escape(clip(texts[0], 300)) + (f" (in all {len(texts)} folds)" if len(texts) > 1 else "")
    return "<br>".join(escape(clip(f"fold {i + 1}: {text}", 300)) for i, text in enumerate(texts))


def facts(view: ContestView) -> str:
    """Return the data, the conventions and the notes."""
    report = view.contest.entrants[0].report
    counts, measures = report.counts, ", ".join(measure_name(str(m)) for m in report.measures)
    sentences = [
        f"Convention <b>{escape(report.convention)}</b>; measures {measures}.",
        f"A document is relevant above grade {view.relevant_above:g}.",
        f"{counts['queries']:,} queries, {counts['blank_queries']:,} without relevant documents, "
        f"{counts['short_queries']:,} shorter than the largest cut-off"
        + ("" if report.query_weight is None else "; means are weighted by query")
        + ".",
        *([escape(fewer)] if (fewer := view.contest.comparison.counts_fewer(counts["queries"])) else []),
        *map(escape, view.contest.notes),
    ]
    data = view.contest.data
    words = element("ul", *(element("li", sentence) for sentence in sentences))
    if data is None:
        return words
    rows = [
        element("th", escape(name), scope="row") + element("td", typeset(escape(f"{value} {note}")))
        for name, value, note in data.info().rows()
    ]
    table = element("table", element("tbody", *(element("tr", row) for row in rows)))
    return element("div", table, class_="scroll") + words


def _name(view: ContestView, system: int) -> str:
    """Return the name of a system; where there is little room it breaks between its words."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[_./])(?=\w)", "<wbr>", escape(view.labels[system]))


def measure_name(text: str) -> str:
    """Return the name of a measure, set apart from other words."""
    return element("span", escape(text), class_="measure-name")
