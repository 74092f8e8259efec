"""Every measure and every convention as tables, for the command line and the documentation."""

from __future__ import annotations

from inspect import cleandoc

from .._tables import Table
from .base import _NAMED, Measure, rules_text
from .presets import CONVENTIONS


def kinds() -> list[type[Measure]]:
    """Return every measure class once, by name."""
    return sorted(set(_NAMED.values()), key=lambda kind: kind.short_name)


def catalog() -> list[Table]:
    """Return the measures with their formulas, and what each convention does differently from `standard`.

    >>> measures, conventions = catalog()
    >>> [name for name, *_ in measures.rows]
    ['auc', 'dcg', 'err', 'map', 'meanndcg', 'mrr', 'ndcg', 'p', 'rbp', 'recall', 'wta']
    >>> [row for row in conventions.rows if row[0] == "ranx"]
    [['ranx', 'dcg: gain=linear · meanndcg: gain=linear · ndcg: gain=linear · rbp: graded=true']]
    """
    measures = [
        [
            kind.short_name,
            ", ".join(kind.aliases),
            "@k" if kind.cuts else "",
            cleandoc(kind.__doc__ or "").split("\n")[0],
        ]
        for kind in kinds()
    ]
    conventions = [
        [name, " · ".join(filter(None, (_differences(kind, name) for kind in kinds())))] for name in CONVENTIONS
    ]
    return [
        Table(("measure", "also", "cut-off", "formula"), measures, title="Measures"),
        Table(("convention", "differs from standard in"), conventions, title="Conventions"),
    ]


def _differences(kind: type[Measure], convention: str) -> str:
    standard, own = rules_text(kind()), rules_text(kind(convention=convention))
    changed = [f"{rule}={value}" for rule, value in own.items() if value != standard[rule]]
    return f"{kind.short_name}: {', '.join(changed)}" if changed else ""
