"""The report: one self-contained HTML file that needs no network and no chart library."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from html import escape

from .._files import replacing
from .._version import __version__
from ..comparison import Comparison
from ..data.dataset import QueryDataset
from ..evaluation import Report
from . import svg

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2330; --paper: #ffffff; --rule: #d8dde6; --mark: #1f5fbf; --down: #b3541e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ef; --paper: #14181f; --rule: #38404d; --mark: #7fb0ff; --down: #f0a070; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 52rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.7rem; margin: 0; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--rule); } caption { text-align: left; }
svg { width: 100%; height: auto; font: 13px system-ui, sans-serif; } svg text { fill: var(--ink); }
.interval, .curve { stroke: var(--mark); stroke-width: 2; fill: none; } .dot, .up { fill: var(--mark); }
.down { fill: var(--down); } .axis { stroke: var(--rule); } pre { white-space: pre-wrap; } .note { opacity: .8; }
"""


def write_report(
    path: str | os.PathLike[str],
    *,
    title: str,
    data: QueryDataset,
    reports: Mapping[str, Report],
    comparison: Comparison,
    weights: Mapping[str, float] | None = None,
    trace: Sequence[float] | None = None,
) -> None:
    """Write measures with intervals, the comparison, feature weights and the training curve; whole or not at all."""
    with replacing(path) as draft:
        draft.write_text(_page(title, data, reports, comparison, weights, trace), encoding="utf-8")


def _page(
    title: str,
    data: QueryDataset,
    reports: Mapping[str, Report],
    comparison: Comparison,
    weights: Mapping[str, float] | None,
    trace: Sequence[float] | None,
) -> str:
    first = next(iter(reports.values()))
    sections = []
    for measure in first.mean:
        rows = {name: (report.mean[measure], *comparison.interval(name, measure)) for name, report in reports.items()}
        sections += [f"<h2>{escape(measure)}</h2>", svg.intervals(rows, f"{measure}: means with intervals")]
    sections += ["<h2>Which differences are real</h2>", f'<div class="wide">{comparison._repr_html_()}</div>']
    if weights is not None:
        largest = sorted(weights.items(), key=lambda item: -abs(item[1]))[:25]
        sections += ["<h2>Feature weights</h2>", svg.bars(dict(largest), "feature weights, largest first")]
    if trace is not None and len(trace):
        sections += ["<h2>Training</h2>", svg.line(list(trace), "objective by iteration", "iteration")]
    sections += ["<h2>Data</h2>", f"<pre>{escape(str(data.info()))}</pre>"]
    counts = ", ".join(f"{key.replace('_', ' ')}: {value}" for key, value in first.counts.items())
    lead = f"Convention: <b>{escape(first.convention)}</b>. {escape(counts)}."
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
            f'<h1>{escape(title)}</h1><p class="note">{lead}</p>',
            *sections,
            f'<p class="note">Made by toprank {__version__}.</p></body></html>',
            "",
        ]
    )
