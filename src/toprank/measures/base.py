"""What a measure is: a frozen value that prints, parses back, and scores every query."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, replace
from enum import IntEnum
from functools import cache, wraps
from inspect import signature
from math import nan
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_type_hints

import numpy as np

from .._suggest import did_you_mean
from .._typing import AnyArray, ArrayLike, Floats, Ints
from ..data import validation
from ..errors import InputError
from .order import Ties
from .presets import CONVENTIONS, UNWEIGHTED_BLANKS, Blank, fixes_cutoff, rule

if TYPE_CHECKING:
    from ._rank_kernels import RankedLists

BLANK_VALUE = {Blank.ZERO: 0.0, Blank.ONE: 1.0, Blank.SKIP: nan}
"""The value of a query with nothing to find."""

_BY_NAME: dict[str, type[Measure]] = {}

BY_CONVENTION: Any = None
"""Default of a field that follows the measure's convention unless it is given."""


@dataclass(frozen=True, kw_only=True)
class Measure(ABC):
    """A ranking measure with all its rules; `k` cuts the list off, `convention` says whose rules hold.

    Rules that are not given are the convention's (`presets.CONVENTIONS`). `str` gives a text that `measure` reads back.

    >>> from toprank.measures import NDCG, Gain
    >>> print(NDCG() @ 10, NDCG(k=5, convention="letor4"), NDCG(gain=Gain.LINEAR))
    ndcg@10 ndcg@5:letor4 ndcg:gain=linear

    A class with `short_name` and `per_query` is a measure like any other: its name parses as soon as it is defined.

    >>> import numpy as np
    >>> class Top(Measure):
    ...     short_name = "top"
    ...     cuts = False
    ...
    ...     def per_query(self, scores, y, ptr):
    ...         return np.array([y[a:b][scores[a:b].argmax()] for a, b in zip(ptr[:-1], ptr[1:])])
    >>> measure("top").mean([1.0, 2.0], [0, 3], [0, 2])
    3.0
    >>> Top.forget()
    """

    k: int | None = None
    convention: str = "standard"

    short_name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    cuts: ClassVar[bool] = True
    """Whether a cut-off makes sense."""
    by_share: ClassVar[type[Measure] | None] = None
    """The measure that a cut-off by a share ("p@25%") makes of this one."""
    tie_rules: ClassVar[tuple[Ties, ...]] = ()
    """The rules for documents that score the same, among which `ties` chooses; none where it has no such field."""
    for_runs: ClassVar[bool] = True
    """Whether it is defined where judged documents may be missing from the list."""
    reads_unjudged: ClassVar[bool] = False
    """Whether it tells documents that were not judged (a grade below 0) from irrelevant ones."""

    @property
    def bounded(self) -> bool:
        """Whether all values lie in [0, 1]; a `ClassVar` where no rule decides it."""
        return False

    @property
    def best_is_one(self) -> bool:
        """Whether the best order of a list has the value 1, wherever there is anything to find."""
        return False

    @property
    def tells_apart(self) -> Literal["places", "relevant", "top", "first"]:
        """What of an order decides the value: the grade at each place ("places"), which places are relevant, how many
        of the first k are ("top"), or which is the first that is ("first")."""
        return "places"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = cls.__dict__.get("per_query")
        if own is not None and "doc_ids" not in signature(own).parameters:
            cls.per_query = _with_checks(own)  # type: ignore[method-assign]
        if "short_name" not in cls.__dict__:
            return
        for name in (cls.short_name, *cls.aliases):
            known = _BY_NAME.get(name)
            if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
                raise InputError(f"there is a measure named {name!r} already: give {cls.__name__} another short_name")
        for name in (cls.short_name, *cls.aliases):
            _BY_NAME[name] = cls

    @classmethod
    def forget(cls) -> None:
        """Remove a measure of your own, so that its names are free again."""
        for name in (cls.short_name, *cls.aliases):
            _BY_NAME.pop(name, None)

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
            object.__setattr__(self, name, _checked(kind, name, self._rule(name) if given is BY_CONVENTION else given))
        ties = getattr(self, "ties", None)
        if ties is not None and ties not in self.tie_rules:
            allowed = ", ".join(t.name for t in self.tie_rules)
            raise InputError(f"{self.short_name} cannot rank ties by {ties.name}: use one of {allowed}")

    def _rule(self, name: str) -> Any:
        """Return what a rule is unless it is given: the field's own default, or what the convention says."""
        own = next(f.default for f in fields(self) if f.name == name)
        if own is MISSING:
            raise InputError(f"{self.short_name} needs {name}=")
        return rule(self.convention, self.short_name, name) if own is BY_CONVENTION else own

    @abstractmethod
    def per_query(self, scores: ArrayLike, y: ArrayLike, ptr: ArrayLike, *, doc_ids: ArrayLike | None = None) -> Floats:
        """Return the value of each query: query q owns documents ptr[q] to ptr[q+1].

        `doc_ids` settle ties under `Ties.ID` and are not read otherwise. A measure of your own may leave them out; it
        gets arrays that have been checked, and what it returns is checked.
        """

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
            if getattr(self, name) != self._rule(name):
                parts.append(f"{name}={value}")
        return ":".join(parts)

    def mean(
        self, scores: ArrayLike, y: ArrayLike, ptr: ArrayLike, weight: ArrayLike | None = None, *, doc_ids: Any = None
    ) -> float:
        """Return the mean over queries, weighted by `weight` where given."""
        values = self.per_query(scores, y, ptr, doc_ids=doc_ids)
        if weight is None or not self.adds_blanks_unweighted:
            return mean_value(values, weight)
        found = np.concatenate(([0], np.cumsum(np.asarray(y) > 0)))
        bounds = np.asarray(ptr)
        return mean_value(values, weight, unweighted=found[bounds[1:]] == found[bounds[:-1]])

    @property
    def adds_blanks_unweighted(self) -> bool:
        """Whether a weighted mean adds the value of a query without relevant documents as if it weighed 1."""
        return self.short_name in UNWEIGHTED_BLANKS.get(self.convention, ())


class Compiled(Measure):
    """A measure that reads grades by rank, in a kernel: what the library's own are."""

    tie_rules: ClassVar[tuple[Ties, ...]] = (Ties.INPUT, Ties.ID, Ties.WORST, Ties.BEST, Ties.AVERAGE)
    ties: Ties

    @property
    def depth(self) -> int | None:
        """How many ranks it reads; None for all."""
        return self.k

    @abstractmethod
    def values_of(self, lists: RankedLists) -> Any:
        """Return the value of each list, given its grades by rank under the tie rule."""

    def check(self, y: Floats, ptr: Ints, lowest: float, highest: float) -> None:
        """Refuse grades that the measure cannot take, knowing the lowest and the highest."""

    def per_query(self, scores: ArrayLike, y: ArrayLike, ptr: ArrayLike, *, doc_ids: ArrayLike | None = None) -> Floats:
        """Return the value of each query."""
        from .plan import Plan

        values: Floats = Plan.of((self,)).run(scores, y, ptr, doc_ids)[0]
        return values


def _with_checks(own: Callable[..., Any]) -> Callable[..., Floats]:
    """Return a `per_query` of three arrays that can be called like any other; what goes in and out is checked."""

    @wraps(own)
    def per_query(
        self: Measure, scores: ArrayLike, y: ArrayLike, ptr: ArrayLike, *, doc_ids: ArrayLike | None = None
    ) -> Floats:
        s = validation.as_scores(scores)
        bounds = validation.as_ptr(ptr, len(s))
        values = np.asarray(own(self, s, validation.as_labels(y, len(s)), bounds), dtype=np.float64)
        if values.shape != (len(bounds) - 1,):
            got = f"shape {values.shape} for {len(bounds) - 1} queries"
            raise InputError(f"{self.short_name}: per_query returned {got}, and must return one value for each")
        return values

    return per_query


def mean_value(values: Floats, weight: ArrayLike | None = None, unweighted: AnyArray | None = None) -> float:
    """Return Σ_q w_q v_q / Σ_q w_q over the queries that count (not NaN); NaN where none does.

    `unweighted` queries add v_q instead of w_q v_q (`UNWEIGHTED_BLANKS`).
    """
    weights = validation.as_query_weight(weight, len(values))
    counted = ~np.isnan(values)
    if weights is None:
        return float(values[counted].mean()) if counted.any() else nan
    factors = weights if unweighted is None else np.where(unweighted, 1.0, weights)
    total = float(weights[counted].sum())
    return float((values[counted] * factors[counted]).sum()) / total if total > 0 else nan


def rules_text(measure: Measure) -> dict[str, str]:
    """Return every rule of a measure as the text that `measure` reads."""
    return {name: rule_text(getattr(measure, name)) for name in _rules(type(measure))}


def measure(text: str | Measure, *, convention: str = "standard") -> Measure:
    """Read a measure: a name, an optional cut-off, then rules after colons; a `Measure` is returned as it is.

    `convention` is whose rules to follow; one in the text goes before it.

    >>> measure("ndcg@10")
    NDCG(k=10, convention='standard', gain=<Gain.EXP2: 0>, discount=<Discount.LOG2: 0>, ties=<Ties.AVERAGE: 3>, \
short=<Short.PAD: 0>, blank=<Blank.ZERO: 0>)
    >>> str(measure("MAP", convention="mslr")), str(measure("rbp:p=0.5")), str(measure("p@5:xgboost"))
    ('map:mslr', 'rbp:p=0.5', 'p@5:xgboost')
    >>> [str(measure(text)) for text in ("nDCG@10", "ndcg_cut_10", "P_10", "recip_rank", "R@100", "Rprec", "prec@0.25")]
    ['ndcg@10', 'ndcg@10', 'p@10', 'mrr', 'recall@100', 'rprec', 'p@25%']
    >>> measure("ndgc@10")
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: unknown measure 'ndgc' (did you mean 'ndcg'?): there are auc, ...
    """
    if isinstance(text, Measure):
        return text
    head, *rules = (part.strip() for part in str(text).strip().split(":"))
    kind, cut = _named(head)
    given: dict[str, Any] = {"convention": convention}
    if cut is not None and kind.by_share is not None and ("%" in cut or "." in cut):
        kind = kind.by_share
        share = _number(float, cut.removesuffix("%"), f"the cut-off of {head!r}")
        given["share"] = share / 100 if cut.endswith("%") else share
    elif cut is not None:
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


def _named(head: str) -> tuple[type[Measure], str | None]:
    """Return the class and the cut-off of a name, as people type it: "ndcg@10", "nDCG@10", "ndcg_cut_10", "P.10"."""
    name, at, cut = (part.strip() for part in head.partition("@"))
    as_trec = re.fullmatch(r"(.+?)[_.](\d+)", name)
    if not at and name.lower() not in _BY_NAME and as_trec is not None:
        (name, cut), at = as_trec.groups(), "@"
    kind = _BY_NAME.get(name.lower())
    if kind is None:
        known = sorted({kind.short_name for kind in _BY_NAME.values()})
        close = did_you_mean(name, _BY_NAME, cutoff=0.75)
        raise InputError(f"unknown measure {name!r}{close}: there are {', '.join(known)}")
    return kind, cut if at else None


@cache
def _rules(kind: type[Measure]) -> dict[str, type[Any]]:
    """Return the fields that a convention decides, with their types."""
    hints = get_type_hints(kind)
    return {f.name: hints[f.name] for f in fields(kind) if f.name not in ("k", "convention", "share")}


def _checked(kind: type[Any], name: str, value: Any) -> Any:
    """Return a rule as its type; codes from a model file come as numbers."""
    if kind is float:
        validation.check_finite(**{name: value})
        return float(value)
    if not (kind is bool or (isinstance(kind, type) and issubclass(kind, IntEnum))):
        return value
    validation.check_choice((False, True) if kind is bool else tuple(kind.__members__.values()), **{name: value})
    return kind(value)


def _read(kind: type[Any], name: str, text: str) -> Any:
    if kind in (int, float):
        return _number(kind, text, name)
    if kind is str:
        return text
    choices = {"false": False, "true": True} if kind is bool else {member.name.lower(): member for member in kind}
    validation.check_choice(tuple(choices), **{name: text.lower()})
    return choices[text.lower()]


def _number(kind: type[int] | type[float], text: str, what: str) -> int | float:
    try:
        return kind(text)
    except ValueError:
        raise InputError(f"{what} must be a number, got {text!r}") from None


def rule_text(value: Any) -> str:
    """Return the value of a rule as `measure` reads it."""
    if isinstance(value, IntEnum):
        return value.name.lower()
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, float):
        return str(value)
    return f"{value:g}" if float(f"{value:g}") == value else repr(value)
