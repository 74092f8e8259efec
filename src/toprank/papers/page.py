"""All exhibits of a paper on one self-contained page: claims with verdicts first, then pictures, tables and notes."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template

from .._files import replacing
from .._html import element
from .._version import __version__
from ..report.page import asset
from .exhibits import VERDICTS, Claim, Exhibit

_MARKS = dict(zip(VERDICTS, ("up", "down", "quiet"), strict=True))


def write_page(paper: str, exhibits: Sequence[Exhibit], path: str | Path) -> None:
    """Write the page, whole or not at all."""
    with replacing(path) as draft:
        draft.write_text(render(paper, exhibits), encoding="utf-8")


def render(paper: str, exhibits: Sequence[Exhibit]) -> str:
    """Return the page of a paper."""
    title = f"{paper.replace('-', ' ').capitalize()}: what replicates"
    claims = [found for exhibit in exhibits for found in exhibit.claims if not found.own]
    counts = ", ".join(f"{sum(c.verdict == v for c in claims)} × {v}" for v in VERDICTS)
    told = escape(f"Exhibits: {len(exhibits)}. Claims: {len(claims)}, of which {counts}.")
    head = element("header", element("h1", escape(title)), element("p", told, class_="note"))
    body = _all_claims(exhibits) + "".join(_section(exhibit) for exhibit in exhibits)
    parts = {"title": escape(title), "head": head, "main": body, "version": escape(__version__)}
    return Template(asset("exhibits.html")).substitute(parts, style=asset("page.css") + asset("exhibits.css"))


def _all_claims(exhibits: Sequence[Exhibit]) -> str:
    links = {e.name: element("a", escape(e.name), href=f"#{e.name}") for e in exhibits}
    found = ""
    for title, name, own in (("Claims", "claims", False), ("Not the paper's sentences", "own", True)):
        rows = [_claim(claim, links[e.name]) for e in exhibits for claim in e.claims if claim.own is own]
        listed = element("ul", *rows, class_="claims")
        found += element("section", element("h2", escape(title)), listed, id=name) if rows else ""
    return found


def _claim(found: Claim, link: str = "") -> str:
    mark = element("span", escape(found.verdict), class_=f"verdict {_MARKS[found.verdict]}")
    why = element("span", escape(found.why), class_="quiet")
    return element("li", mark, element("span", f"{escape(found.text)} {why} {link}"))


def _section(exhibit: Exhibit) -> str:
    parts = [element("h2", escape(exhibit.title))]
    if exhibit.draw is not None:
        held = base64.b64encode(exhibit.picture("svg")).decode("ascii")
        image = f'<img alt="{escape(exhibit.title, quote=True)}" src="data:image/svg+xml;base64,{held}">'
        parts.append(element("div", image, class_="scroll"))
    if exhibit.claims:
        parts.append(element("ul", *map(_claim, exhibit.claims), class_="claims"))
    if exhibit.table is not None:
        parts.append(element("div", exhibit.table.html(), class_="scroll"))
    parts += [element("p", escape(note), class_="note") for note in exhibit.notes]
    return element("section", *parts, id=exhibit.name, class_="exhibit") + "\n"
