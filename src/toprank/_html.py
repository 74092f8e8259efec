"""HTML by hand: elements whose attributes are escaped, and the one picture that notebooks and the page share."""

from __future__ import annotations

import math
import re
from html import escape


def element(tag: str, *children: str, **attributes: str | int | bool | None) -> str:
    """Return one element; children are HTML already, attributes are text and are escaped (None or False: left out).

    A trailing underscore spares Python's keywords, other underscores become hyphens.

    >>> element("p", escape("a < b"), class_="note", aria_label='"', hidden=True, title=None)
    '<p class="note" aria-label="&quot;" hidden>a &lt; b</p>'
    """
    shown = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    parts = [
        f" {name}" if value is True else f' {name}="{escape(str(value), quote=True)}"'
        for name, value in shown.items()
        if value is not None and value is not False
    ]
    return f"<{tag}{''.join(parts)}>{''.join(children)}</{tag}>"


def typeset(text: str) -> str:
    """Return a sentence with its numbers written as the page writes them all: − for minus, 1,000 for 1000.

    >>> typeset("loss on 2679 queries: -0.5 (e-mail, run-2, seed=1234) above 1.5e-07")
    'loss on 2,679 queries: −0.5 (e-mail, run-2, seed=1234) above 1.5e−07'
    """
    text = re.sub(r"(?<![\w.)])-(?=\d)|(?<=\de)-(?=\d)", "−", text)
    return re.sub(r"(?<![\w.,=−-])\d{4,}(?=[ ,;]|$)", lambda found: f"{int(found[0]):,}", text)


def clip(text: str, longest: int) -> str:
    """Return the text on one line, its middle left out where it is longer than `longest`.

    >>> clip("a long name", 7)
    'a l…ame'
    """
    flat = " ".join(text.split())
    half = (longest - 1) // 2
    return flat if len(flat) <= longest else f"{flat[: longest - 1 - half]}…{flat[len(flat) - half :]}"


def bound_bar(observed: float, bound: float) -> str:
    """Return a bar as long as the observed value with a tick at the bound; empty where one of them has no place.

    Colours are inherited: the page names its own by variables, a notebook's text colour serves otherwise.

    >>> "left:50.0%" in bound_bar(4.0, 2.0), bound_bar(1.0, math.inf)
    (True, '')
    """
    low, high = min(0.0, observed, bound), max(0.0, observed, bound)
    if not math.isfinite(high - low) or high == low:
        return ""

    def place(value: float) -> float:
        return 100 * (value - low) / (high - low)

    start, width = min(place(0), place(observed)), abs(place(observed) - place(0))
    track = "position:relative;height:.7em;margin:.35em 0;max-width:40em;background:var(--track,rgba(128,128,128,.25))"
    fill = f"position:absolute;top:0;bottom:0;left:{start:.1f}%;width:{width:.1f}%;background:var(--mark,#3b7dd8)"
    at = min(place(bound), 99.7)  # a tick at the very end stays inside
    tick = f"position:absolute;top:-.25em;bottom:-.25em;left:{at:.1f}%;width:2px;background:currentColor"
    label = f"observed {observed:.6g}, bound {bound:.6g}"
    return element(
        "div", element("div", style=fill), element("div", style=tick), style=track, role="img", aria_label=label
    )
