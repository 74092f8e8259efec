"""Every measure and every convention as tables, for the command line and the documentation."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import cleandoc

from .._tables import Table
from .base import _BY_NAME, Measure, rule_text, rules_text
from .presets import CONVENTIONS, Value


def kinds() -> list[type[Measure]]:
    """Return every measure class once, by name."""
    return sorted(set(_BY_NAME.values()), key=lambda kind: kind.short_name)


def catalog() -> list[Table]:
    """Return the measures with their formulas, and what each convention does differently from `standard`.

    >>> measures, conventions = catalog()
    >>> {"auc", "ndcg", "wta"} <= {name for name, *_ in measures.rows}
    True
    >>> next(row[1] for row in conventions.rows if row[0] == "ranx")
    'gain=linear, ties=input · auc: ties=average · bpref: unopposed=skip · err: gain=exp2 · rbp: graded=true'
    """
    formulas = {kind: cleandoc(kind.__doc__ or "").split("\n")[0] for kind in kinds()}
    measures = [
        [kind.short_name, ", ".join(kind.aliases), "@k" if kind.cuts else "", formula]
        for kind, formula in formulas.items()
    ]
    conventions = [[name, _differences(name)] for name in CONVENTIONS]
    return [
        Table(("measure", "also", "cut-off", "formula"), measures, title="Measures"),
        Table(("convention", "differs from standard in"), conventions, title="Conventions"),
    ]


def _differences(convention: str) -> str:
    """Return the rules of a convention that `standard` has not: those for all measures, then those for one."""
    general = _text(CONVENTIONS[convention].get("*", {}), CONVENTIONS["standard"]["*"])
    parts = [", ".join(f"{rule}={value}" for rule, value in general.items())]
    for kind in kinds():
        standard, own = rules_text(kind()), rules_text(kind(convention=convention))
        special = [f"{rule}={value}" for rule, value in own.items() if value != general.get(rule, standard[rule])]
        parts += [f"{kind.short_name}: {', '.join(special)}"] if special else []
    return " · ".join(filter(None, parts))


def _text(rules: Mapping[str, Value], standard: Mapping[str, Value]) -> dict[str, str]:
    """Return the rules that differ, as text."""
    return {name: rule_text(value) for name, value in rules.items() if value != standard[name]}
