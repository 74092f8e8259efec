"""The report: one self-contained HTML file that needs no network and no chart library.

The page's frame, style and scripts are the files in `assets`; this module puts them together with what `sections`
draws and `payload` packs.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping
from functools import cache
from html import escape
from importlib.resources import files
from string import Template

from .._files import replacing
from .._html import element
from .._version import __version__
from ..contests.base import Contest
from ..contests.from_reports import of_comparison
from ..statistics.comparison import Comparison, compare
from ..statistics.evaluation import Report
from . import sections
from .headline import headline
from .payload import Payload, embed
from .view import ContestView

LIMIT = 492_000
"""Bytes of a page; what does not fit is left out, and the page says what."""
LEAST = 40_000
"""Bytes left for numbers however much text there is."""
SCRIPTS = ("decode.js", "page.js", "query.js")


def write_report(
    what: Contest | Comparison | Mapping[str, Report],
    path: str | os.PathLike[str],
    *,
    baseline: str | None = None,
    title: str = "Comparison",
) -> None:
    """Write a contest, a comparison or anybody's reports by name as one page that works offline; whole or not at all.

    `baseline` is whom the others are held against: by default the comparison's baseline, else the first entrant that
    learned nothing; where nobody learned, the first that was given, or the second best where the first is the best.
    The first measure decides who is best. A page of reports or of a comparison has no rankings, as
    these know no documents; `title` is theirs, a contest brings its own.

    >>> import tempfile, pathlib, numpy as np, toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=20, n_features=3, random_state=0)
    >>> reports = {"grades": tr.evaluate(data.y, data), "nothing": tr.evaluate(np.zeros(data.n_docs), data)}
    >>> page = pathlib.Path(tempfile.mkdtemp()) / "report.html"
    >>> write_report(reports, page, baseline="nothing")
    >>> "grades is better than nothing" in page.read_text(encoding="utf-8")
    True
    """
    if isinstance(what, Comparison):
        what = of_comparison(what, title, baseline)
    elif not isinstance(what, Contest):
        what = of_comparison(compare(what), title, baseline)
    text = render(ContestView.of(what, baseline))
    with replacing(path) as draft:
        # Half a surrogate pair (an id read from a broken file) has no place in UTF-8.
        draft.write_bytes(text.encode("utf-8", "replace"))


def render(view: ContestView) -> str:
    """Return the page; the numbers get the room that the text leaves."""
    fixed = _page(view, None)
    return _page(view, embed(view, max(LEAST, LIMIT - len(fixed.encode("utf-8", "replace")) - 2_000)))


def _page(view: ContestView, payload: Payload | None) -> str:
    script = "(() => {\n'use strict';\n" + "\n".join(map(asset, SCRIPTS)) + "\n})();\n"
    comparison = view.contest.comparison
    systems = len(view.names)
    return Template(asset("page.html")).substitute(
        title=escape(view.contest.title),
        # Nothing may be fetched, and no script runs but this one, whatever a document's name may hold.
        policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest(script)}'",
        style=asset("page.css"),
        script=script,
        subtitle=escape(f"{systems} systems on {comparison.n_queries:,} queries, convention {comparison.convention}"),
        headline=headline(view),
        promises=_section("promises", "What new queries will see", sections.promises(view)),
        measures=sections.measures(view),
        tested=sections.tested(view),
        repeated=_section("learners", "Learners, not only these models", sections.repeated(view)),
        learning=_section("learning", "Learning curves", sections.learning(view)),
        certificates=_section("certificates", "What is proved", sections.certificates(view)),
        settings=sections.settings(view),
        facts=sections.facts(view),
        embedded="" if payload is None else _embedded(view, payload),
        version=escape(__version__),
        data="" if payload is None else payload.data,
        details="" if payload is None else payload.details,
    )


def _section(name: str, title: str, body: str) -> str:
    if not body:
        return ""
    return element("section", element("h2", title, id=f"{name}-title"), body, id=name, aria_labelledby=f"{name}-title")


def _embedded(view: ContestView, payload: Payload) -> str:
    """Say what the file holds and what it leaves out."""
    n = len(view.query_ids)
    measures = ", ".join(payload.measures)
    a, b = view.labels[view.challenger], view.labels[view.baseline]
    if len(payload.queries) == n:
        values = f"the values of {measures} on every query"
    else:
        some = f"{len(payload.queries):,} of {n:,} queries, evenly spaced by the difference between {a} and {b}"
        values = f"the values of {measures} on {some}"
    if view.contest.data is None:
        rankings = "no rankings: reports know no documents"
    elif len(payload.detailed) == len(payload.queries):
        rankings = "the top of every ranking for all of these"
    else:
        rankings = (
            f"the top of every ranking for {len(payload.detailed):,} queries, those on which {a} and {b} differ most "
            f"in {view.measures[0]}"
        )
    left = [m for m in view.measures if m not in payload.measures]
    missing = f" Left out to keep the file small: the values per query of {', '.join(left)}." if left else ""
    return element("p", escape(f"This file holds {values}, and {rankings}.{missing}"), class_="note", id="embedded")


@cache
def asset(name: str, package: str = "toprank.report") -> str:
    """Return a file of a page as text."""
    return files(package).joinpath("assets", name).read_text(encoding="utf-8")


def digest(script: str) -> str:
    """Return the hash by which a content policy lets a script or a style through."""
    return base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
