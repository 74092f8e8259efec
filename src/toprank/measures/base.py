"""What a measure is: a frozen value that prints, parses back, and scores every query."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from functools import cache
from math import nan
from typing import Any, ClassVar, Self, get_type_hints

import numpy as np

from .._suggest import did_you_mean
from .._typing import ArrayLike, Floats
from ..data import validation
from ..errors import InputError
from .order import Ties
from .plan import Plan, Row
from .presets import CONVENTIONS, Blank, fixes_cutoff, rule

BLANK = {Blank.ZERO: 0.0, Blank.ONE: 1.0, Blank.SKIP: nan}
"""The value of a query with nothing to find."""

_NAMED: dict[str, type[Measure]] = {}


BY_CONVENTION: Any = None
"""Default of a field that follows the measure's convention unless it is given."""


@dataclass(frozen=True, kw_only=True)
class Measure(ABC):
    """A ranking measure with all its rules; `k` cuts the list off, `convention` says whose rules hold.

    Rules that are not given are the convention's (`presets.CONVENTIONS`). `str` gives a text that `measure` reads back.

    >>> from toprank.measures import NDCG, Gain
    >>> print(NDCG() @ 10, NDCG(k=5, convention="letor4"), NDCG(gain=Gain.LINEAR))
    ndcg@10 ndcg@5:letor4 ndcg:gain=linear
    """

    k: int | None = None
    convention: str = "standard"

    short_name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    cuts: ClassVar[bool] = True
    """Whether a cut-off makes sense."""
    tie_rules: ClassVar[tuple[Ties, ...]] = (Ties.INPUT, Ties.ID, Ties.WORST, Ties.BEST, Ties.AVERAGE)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in (cls.short_name, *cls.aliases):
            _NAMED[name] = cls

    def __post_init__(self) -> None:
        if self.k is not None:
            validation.check_count(k=self.k)
            object.__setattr__(self, "k", int(self.k))
            if not self.cuts:
                raise InputError(f"{self.short_name} has no cut-off: drop @{self.k}")
        validation.check_choice(tuple(CONVENTIONS), convention=self.convention)
        if self.k is not None and fixes_cutoff(self.convention, self.short_name):
            raise InputError(f"{self.short_name} under {self.convention} reads the whole list: drop @{self.k}")
        for name, kind in _rules(type(self)).items():
            given = getattr(self, name)
            value = rule(self.convention, self.short_name, name) if given is BY_CONVENTION else given
            object.__setattr__(self, name, _checked(kind, name, value))
        ties = getattr(self, "ties", Ties.INPUT)
        if ties not in self.tie_rules:
            allowed = ", ".join(t.name for t in self.tie_rules)
            raise InputError(f"{self.short_name} cannot rank ties by {ties.name}: use one of {allowed}")

    @abstractmethod
    def row(self) -> Row:
        """Return the codes by which the compiled pass computes this measure."""

    def __matmul__(self, k: int) -> Self:
        """Cut the list off: `NDCG() @ 10`."""
        return replace(self, k=k)

    @property
    def name(self) -> str:
        """Short name with the cut-off, without the rules."""
        return self.short_name if self.k is None else f"{self.short_name}@{self.k}"

    def __str__(self) -> str:
        parts = [self.name] if self.convention == "standard" else [self.name, self.convention]
        for name, value in rules_text(self).items():
            if getattr(self, name) != rule(self.convention, self.short_name, name):
                parts.append(f"{name}={value}")
        return ":".join(parts)

    def per_query(self, scores: ArrayLike, y: ArrayLike, ptr: ArrayLike, *, doc_ids: ArrayLike | None = None) -> Floats:
        """Return the value of each query: query q owns documents ptr[q] to ptr[q+1].

        `doc_ids` settle ties under `Ties.ID` and are not read otherwise.
        """
        values: Floats = Plan.of((self,)).run(scores, y, ptr, doc_ids)[0]
        return values

    def mean(
        self,
        scores: ArrayLike,
        y: ArrayLike,
        ptr: ArrayLike,
        weight: ArrayLike | None = None,
        *,
        doc_ids: ArrayLike | None = None,
    ) -> float:
        """Return the mean over queries, weighted by `weight` where given."""
        return mean_value(self.per_query(scores, y, ptr, doc_ids=doc_ids), weight)


def mean_value(values: Floats, weight: ArrayLike | None = None) -> float:
    """Return Σ_q w_q v_q / Σ_q w_q over the queries that count (not NaN); NaN where none does."""
    weights = validation.as_query_weight(weight, len(values))
    counted = ~np.isnan(values)
    if not counted.all():
        values = values[counted]
        weights = None if weights is None else weights[counted]
    if weights is None:
        return float(values.mean()) if len(values) else nan
    total = float(weights.sum())
    return float((values * weights).sum()) / total if total > 0 else nan


def rules_text(measure: Measure) -> dict[str, str]:
    """Return every rule of a measure as the text that `measure` reads."""
    return {name: _text(getattr(measure, name)) for name in _rules(type(measure))}


def measure(text: str | Measure, *, convention: str = "standard") -> Measure:
    """Read a measure: a name, an optional cut-off, then rules after colons; a `Measure` is returned as it is.

    `convention` is whose rules to follow; one in the text goes before it.

    >>> measure("ndcg@10")
    NDCG(k=10, convention='standard', gain=<Gain.EXP2: 0>, discount=<Discount.LOG2: 0>, ties=<Ties.AVERAGE: 3>, \
short=<Short.PAD: 0>, blank=<Blank.ZERO: 0>)
    >>> str(measure("MAP", convention="mslr")), str(measure("rbp:p=0.5")), str(measure("p@5:xgboost"))
    ('map:mslr', 'rbp:p=0.5', 'p@5:xgboost')
    >>> measure("ndgc@10")
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: unknown measure 'ndgc' (did you mean 'ndcg'?): there are ap, auc, dcg, err, map, ...
    """
    if isinstance(text, Measure):
        return text
    head, *rules = (part.strip() for part in str(text).strip().split(":"))
    name, at, cut = head.partition("@")
    kind = _NAMED.get(name.strip().lower())
    if kind is None:
        known = sorted(_NAMED)
        raise InputError(f"unknown measure {name!r}{did_you_mean(name, known)}: there are {', '.join(known)}")
    given: dict[str, Any] = {"convention": convention}
    if at:
        given["k"] = _number(int, cut, f"the cut-off of {head!r}")
    for part in rules:
        key, equals, value = part.partition("=")
        if not equals:
            given["convention"] = key
        elif key in _rules(kind):
            given[key] = _read(_rules(kind)[key], key, value)
        else:
            raise InputError(f"{kind.short_name} has no rule {key!r}: it has {', '.join(_rules(kind))}")
    return kind(**given)


@cache
def _rules(kind: type[Measure]) -> dict[str, type[Any]]:
    """Return the fields that a convention decides, with their types."""
    hints = get_type_hints(kind)
    return {f.name: hints[f.name] for f in fields(kind) if f.name not in ("k", "convention")}


def _checked(kind: type[Any], name: str, value: Any) -> Any:
    """Return a rule as its type; codes from a model file come as numbers."""
    if kind is float:
        validation.check_finite(**{name: value})
        return float(value)
    validation.check_choice((False, True) if kind is bool else tuple(kind.__members__.values()), **{name: value})
    return kind(value)


def _read(kind: type[Any], name: str, text: str) -> Any:
    if kind is float:
        return _number(float, text, name)
    choices = {"false": False, "true": True} if kind is bool else {member.name.lower(): member for member in kind}
    validation.check_choice(tuple(choices), **{name: text.lower()})
    return choices[text.lower()]


def _number(kind: type[int] | type[float], text: str, what: str) -> int | float:
    try:
        return kind(text)
    except ValueError:
        raise InputError(f"{what} must be a number, got {text!r}") from None


def _text(value: Any) -> str:
    if isinstance(value, IntEnum):
        return value.name.lower()
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if float(f"{value:g}") == value else repr(value)
