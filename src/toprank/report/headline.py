"""What a page says first: is there a gain over the baseline, what may be promised, and who cannot be told apart."""

from __future__ import annotations

from html import escape

from .._html import element, typeset
from .._tables import signed
from ..contests.tables import gain, promised
from ..statistics.comparison import Difference, interval_text
from .sections import measure_name
from .view import ContestView

CLOSE = 4
"""Names listed of those that cannot be told from the best."""


def headline(view: ContestView) -> str:
    """Return the verdict in the order in which it matters to a decision."""
    best, base = view.best, view.baseline
    lead, *gain = _gain(view, best, base)
    parts = [lead, _cut_short(view), *gain, *_promise(view, best), _told_apart(view, best)]
    return element("p", parts[0], class_="lead") + "".join(element("p", part) for part in parts[1:] if part)


def _gain(view: ContestView, best: int, base: int) -> list[str]:
    measure, words = view.measures[0], view.contest.comparison.correction
    mean = view.means(measure)
    name, rival = (escape(view.labels[i]) for i in (best, base))
    if best == base:
        return [
            f"Nothing beats {name}",
            f"The baseline has the highest mean {measure_name(measure)}, {mean[best]:.4f}.",
        ]
    found = view.difference(measure, best, base)
    if found is None:
        return [
            f"{name} has the highest mean",
            f"{measure_name(measure)} {mean[best]:.4f}; it was not tested against {rival}, the baseline.",
        ]
    ahead = [i for i in range(len(mean)) if (d := view.difference(measure, i, base)) and d.shown and d.direction > 0]
    won = found.shown and found.direction > 0
    lead = f"{name} is better than {rival}" if won else f"No gain of {name} over {rival} is shown"
    share = f" ({typeset(f'{found.difference / mean[base]:+.1%}')})" if mean[base] > 0 else ""
    text = f"{measure_name(measure)} {mean[best]:.4f} against {mean[base]:.4f} of the baseline: {_gap(found)}{share}, "
    text += words if won else f"not {words}"
    others = len(mean) - 1
    many = f" {len(ahead)} of {others} systems are shown to be better than the baseline." if others > 1 else ""
    return [lead, f"{text}.{many}"]


def _cut_short(view: ContestView) -> str:
    """Say that the search did not try all that was planned: who is best may depend on it."""
    found = view.contest.cut_short
    return element("b", "The search was cut short: ") + escape(found) + "." if found else ""


def _promise(view: ContestView, best: int) -> list[str]:
    entrant = view.contest.entrants[best]
    found = [c for c in (promised(entrant), gain(entrant)) if c is not None]
    if not found:
        return []
    first, *more = (typeset(escape(c.meaning)) for c in found)
    text = "; ".join([first, *(one.partition(": ")[2] for one in more)])
    return [element("b", "Certified: ") + text + ", if the judged queries are an independent sample of those to come."]


def _told_apart(view: ContestView, best: int) -> str:
    measure, words = view.measures[0], view.contest.comparison.correction
    pairs = [(i, view.difference(measure, best, i)) for i in view.best_first(measure) if i != best]
    tested = [(i, found) for i, found in pairs if found is not None]
    close = [escape(view.labels[i]) for i, found in tested if not found.shown]
    name = escape(view.labels[best])
    if not tested or (len(tested) == 1 and tested[0][0] == view.baseline):
        return ""
    if not close:
        others = f"each of the {len(tested)} others" if len(tested) > 1 else escape(view.labels[tested[0][0]])
        return f"{name} is shown to be better than {others}."
    more = f" and {len(close) - CLOSE} more" if len(close) > CLOSE else ""
    return f"Not told apart from {name} ({words.removeprefix('shown ')}): {', '.join(close[:CLOSE])}{more}."


def _gap(found: Difference) -> str:
    p = "p &lt; 0.0001" if found.p_holm < 5e-5 else f"p = {found.p_holm:.4f}"
    how = f" (at {100 * found.level:.4g}%{', by betting' if found.by_betting else ''})"
    return f"<b>{signed(found.difference)}</b> {interval_text(found.interval, sign=True)}{how}, {p}"
