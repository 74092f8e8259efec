"""The page that shows the stream while it is learned from."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct

from .._version import __version__
from ..report.svg import curves
from .service import Service, Shown

WEIGHTS = 16
"""Weights shown, the largest first."""
TOP = 5
"""Documents shown of a ranking before and after."""


class Search(Struct, forbid_unknown_fields=True):
    """What to search for; `explore` samples the ranking."""

    query: Annotated[str, Meta(min_length=1, max_length=500)]
    explore: bool = True


def payload(service: Service) -> dict[str, Any]:
    """Return what the page shows now."""
    served = service.served
    learner = served.learner
    lower, mean, upper = learner.progress.interval()
    coef, start = learner.coef, service.first.coef
    weights: list[tuple[str, float, float]] = []
    if coef is not None and start is not None:
        largest = np.argsort(-abs(coef), kind="stable")[:WEIGHTS].tolist()
        weights = [(learner.columns.labels[j], float(coef[j]), float(coef[j] - start[j])) for j in largest]
    drawn = ""
    if service.curve:
        _, means, lows, highs = zip(*service.curve, strict=True)
        label = f"mean {learner.measure} by event, from {means[0]:.3f} to {means[-1]:.3f}"
        drawn = curves({"mean": means, "band low": lows, "band high": highs}, label, (0.0, 1.0))
    judged = learner.progress.n
    return {
        "version": served.version, "frozen": served.frozen, "ranker": type(learner.ranker).__name__,
        "learns": learner.learns, "measure": learner.measure, "judged": judged, "mistakes": learner.short,
        "mean": mean if judged else None, "lower": lower, "upper": upper, "curve": drawn, "weights": weights,
        "last": [_last(one) for one in list(service.last)],
    }  # fmt: skip


def _last(one: Shown) -> dict[str, Any]:
    """The best documents of an event before and after it was learned from."""
    event = one.event
    tops = []
    for learner in (one.before, one.after):
        order = np.argsort(-learner.ranker.model_.scores(event.X), kind="stable")[:TOP]
        tops.append([event.ids[row] for row in order.tolist()])
    return {"seq": one.seq, "event": event.event_id, "measure": one.measure, "before": tops[0], "after": tops[1]}


@cache
def page(demo: bool) -> tuple[str, str]:
    """Return the page and its content policy: nothing is fetched but from here, and no other script runs."""
    here, report = files("toprank.serve"), files("toprank.report")
    script = here.joinpath("assets", "live.js").read_text("utf-8")
    style = report.joinpath("assets", "page.css").read_text("utf-8")
    style += here.joinpath("assets", "live.css").read_text("utf-8")
    text = Template(here.joinpath("assets", "live.html").read_text("utf-8")).substitute(
        style=style, script=script, version=escape(__version__), hidden="" if demo else " hidden"
    )
    scripts, styles = (base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (script, style))
    policy = f"default-src 'none'; script-src 'sha256-{scripts}'; style-src 'sha256-{styles}'; connect-src 'self'"
    return text, f"{policy}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
