"""The few drawings a report needs, as inline SVG: no library, no script, sharp at any size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape


def _svg(width: int, height: int, parts: Sequence[str], label: str) -> str:
    head = f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label, quote=True)}">'
    return "\n".join([head, *parts, "</svg>"])


def intervals(rows: Mapping[str, tuple[float, float, float]], label: str) -> str:
    """Draw one dot with its interval per row; values are (mean, low, high).

    >>> intervals({"a": (0.5, 0.4, 0.6)}, "NDCG").count("<circle")
    1
    """
    left, width, step = 150, 640, 30
    low = min(value[1] for value in rows.values())
    high = max(value[2] for value in rows.values())
    pad = 0.05 * (high - low) or 0.05
    low, high = low - pad, high + pad

    def x(value: float) -> float:
        return left + (value - low) / (high - low) * (width - left - 70)

    parts = []
    for i, (name, (mean, a, b)) in enumerate(rows.items()):
        y = 20 + i * step
        tip = f"<title>{escape(name)}: {mean:.4f} ({a:.4f} to {b:.4f})</title>"
        parts += [
            f'<text x="{left - 10}" y="{y + 4}" text-anchor="end">{escape(name)}</text>',
            f'<g>{tip}<line class="interval" x1="{x(a):.1f}" x2="{x(b):.1f}" y1="{y}" y2="{y}"/>'
            f'<circle class="dot" cx="{x(mean):.1f}" cy="{y}" r="5"/></g>',
            f'<text x="{width - 60}" y="{y + 4}">{mean:.4f}</text>',
        ]
    return _svg(width, 20 + step * len(rows), parts, label)


def bars(values: Mapping[str, float], label: str) -> str:
    """Draw signed horizontal bars, one per name.

    >>> bars({"up": 1.0, "down": -2.0}, "weights").count("<rect")
    2
    """
    left, width, step = 150, 640, 22
    largest = max((abs(value) for value in values.values()), default=0.0) or 1.0
    half = (width - left - 80) / 2
    middle = left + half
    parts = [f'<line class="axis" x1="{middle}" x2="{middle}" y1="4" y2="{8 + step * len(values)}"/>']
    for i, (name, value) in enumerate(values.items()):
        y, length = 6 + i * step, abs(value) / largest * half
        x = middle if value >= 0 else middle - length
        parts += [
            f'<text x="{left - 10}" y="{y + 13}" text-anchor="end">{escape(name)}</text>',
            f'<rect class="{"up" if value >= 0 else "down"}" x="{x:.1f}" y="{y}" width="{length:.1f}" height="14"/>',
            f'<text x="{width - 70}" y="{y + 13}">{value:+.3g}</text>',
        ]
    return _svg(width, 12 + step * len(values), parts, label)


def line(values: Sequence[float], label: str, x_label: str) -> str:
    """Draw one curve over 1, 2, … with its first and last value written out.

    >>> "polyline" in line([3.0, 2.0, 1.5], "objective", "iteration")
    True
    """
    width, height, left, right, top, bottom = 640, 220, 70, 60, 14, 36
    low, high = min(values), max(values)
    span = (high - low) or 1.0

    def x(i: int) -> float:
        return left + i / max(1, len(values) - 1) * (width - left - right)

    def y(value: float) -> float:
        return top + (high - value) / span * (height - top - bottom)

    points = " ".join(f"{x(i):.1f},{y(value):.1f}" for i, value in enumerate(values))
    base = height - bottom
    parts = [
        f'<line class="axis" x1="{left}" x2="{width - right}" y1="{base}" y2="{base}"/>',
        f'<line class="axis" x1="{left}" x2="{left}" y1="{top}" y2="{base}"/>',
        f'<polyline class="curve" points="{points}"/>',
        f'<text x="{left - 8}" y="{y(values[0]) + 4:.1f}" text-anchor="end">{values[0]:.4g}</text>',
        f'<text x="{width - right + 6}" y="{y(values[-1]) + 4:.1f}">{values[-1]:.4g}</text>',
        f'<text x="{left}" y="{height - 16}" text-anchor="middle">1</text>',
        f'<text x="{width - right}" y="{height - 16}" text-anchor="middle">{len(values)}</text>',
        f'<text x="{(left + width - right) / 2}" y="{height - 4}" text-anchor="middle">{escape(x_label)}</text>',
    ]
    return _svg(width, height, parts, label)
