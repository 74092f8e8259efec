"""Certificates from two judges: what people's grades would say, from few judgements of theirs and many of a machine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .._typing import ArrayLike, Floats
from ..data.validation import check_count, check_fraction
from ..errors import InputError
from .base import Assumption
from .judged import MACHINE_FOR_NEW, JudgedInterval, enough_people, is_enough, judged_difference, judged_interval
from .judged import sample_p_value as p_of_random_sample
from .performance import Interval, PerformanceCertificate

SAMPLE_LEVEL = 0.01
"""Judged queries on which the machine's values differ from those of the others at this level are no random sample."""
_NOTHING = Interval(0.0, math.nan, 1.0)


@dataclass(frozen=True)
class JudgedCertificate(PerformanceCertificate):
    """What people's grades would say of a measure: between `lower` and `upper`, with probability `confidence`.

    The probability is over which queries people judged. `people` is what their judgements alone say, with the same
    confidence, and `approximate` the interval of the normal law, which promises nothing.
    """

    people: Interval = _NOTHING
    approximate: Interval = _NOTHING
    n_machine: int = 0
    """Queries that the machine alone judged."""
    judge: str = "the machine"
    with_machine: bool = False
    """Whether the machine takes part; the number of queries that people judged decides it."""
    _silence: ClassVar[str] = "nothing can be said from these judgements"

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain values for JSON."""
        intervals = {name: dict(getattr(self, name)._asdict()) for name in ("people", "approximate")}
        own = {name: getattr(self, name) for name in ("n_machine", "judge", "with_machine")}
        return super().to_dict() | intervals | own


class Rival(NamedTuple):
    """Another system: its name, and its values as those of the first."""

    name: str
    human: ArrayLike
    judge: ArrayLike
    judge_elsewhere: ArrayLike


def judged_performance(
    human: ArrayLike,
    judge: ArrayLike,
    judge_elsewhere: ArrayLike,
    measure: str,
    *,
    judge_name: str = "the machine",
    against: Rival | None = None,
    confidence: float = 0.95,
    claims: int = 1,
    target: str = "these",
    with_machine: bool | None = None,
    sample: Assumption | None = None,
    known: Sequence[Assumption] = (),
) -> JudgedCertificate:
    """Certify the mean of a measure by people's grades from few judgements of theirs and many of a machine.

    With another system in `against`, the mean difference is certified.
    Where the machine's values on the queries that people judged differ from those on the others (`random_sample`),
    these are no random sample, and nothing is certified.

    Parameters
    ----------
    human : the measure on each query that people judged, by their grades, in [0, 1].
    judge : the measure on the same queries by the machine's grades.
    judge_elsewhere : the measure on all other queries by the machine's grades.
    measure : its name.
    judge_name : what the machine is called in sentences.
    against : another system: its name, and the same three.
    confidence : how often all certificates that are made together hold, at least.
    claims : how many certificates are made from these queries.
    target : "these" queries, those of people and the others together, or "new" ones like all of these.
    with_machine : whether the machine takes part, said before the values are seen; None goes by the number of queries.
    sample : what is known of how queries were chosen; None asks the values.
    known : further conditions, such as that both judged the same documents.

    >>> rng = np.random.default_rng(0)
    >>> f = rng.beta(6, 4, size=477)
    >>> h = np.clip(f - 0.1 + rng.normal(scale=0.03, size=477), 0, 1)
    >>> certificate = judged_performance(h[:53], f[:53], f[53:], "ndcg@10", judge_name="gpt4")
    >>> print(certificate.meaning)
    on these 477 queries, as people would grade them: ndcg@10 ≥ 0.4... with 95% confidence, from 53 queries judged by
    people and 424 by gpt4; people alone: ≥ 0.4... (estimate 0.4...)
    >>> certificate.verdict, bool(certificate.lower > certificate.people.lower)
    ('holds', True)
    """
    check_count(claims=claims)
    check_fraction(confidence=confidence)
    h, f, others = (np.asarray(values, dtype=np.float64) for values in (human, judge, judge_elsewhere))
    for values in (h, f, others, *(() if against is None else map(np.asarray, against[1:]))):
        if np.isnan(values).any():
            raise InputError(
                f"{measure} has no value on {int(np.isnan(values).sum())} of the queries: take a convention that "
                "counts every query, such as standard or trec_eval"
            )
    sampled = random_sample(f, others, judge_name) if sample is None else sample
    n, m = len(h), len(others)
    assumptions = [sampled, *known]
    if target == "new":
        assumptions.append(Assumption(f"all {n + m:,} queries are an independent sample of those to come"))
    assumptions.append(Assumption(f"{judge_name} graded all {n + m:,} queries in the same way"))
    level = 1 - (1 - confidence) / claims
    found = JudgedInterval(-1.0, math.nan, 1.0, _NOTHING, _NOTHING, n, m, False, level)
    if all(assumption.verified is not False for assumption in assumptions):
        if against is None:
            found = judged_interval(h, f, others, level, target=target, with_machine=with_machine)
        else:
            pairs = zip((h, f, others), against[1:], strict=True)
            own, beside, elsewhere = pairs
            found = judged_difference(own, beside, elsewhere, level, target=target, with_machine=with_machine)
    name = None if against is None else against.name
    return _certificate(found, measure, name, judge_name, confidence, target, tuple(assumptions))


def random_sample(judge: Floats, judge_elsewhere: Floats, judge_name: str = "the machine") -> Assumption:
    """Say whether the machine's values speak against people's queries being a random sample; not met where they do.

    A permutation test at 1%. It can refuse a sample, and never show that one is random: that stays on trust.

    >>> print(random_sample(np.full(20, 0.9), np.full(30, 0.1), "gpt4"))
    people's 20 queries are a random sample of all 50 (not met: gpt4's means are 0.9000 on them and 0.1000 on the
    others, p = 0.0001)
    """
    text = f"people's {len(judge):,} queries are a random sample of all {len(judge) + len(judge_elsewhere):,}"
    if not len(judge_elsewhere):
        return Assumption(text, True, "they are all")
    p = p_of_random_sample(judge, judge_elsewhere)
    means = f"{np.mean(judge):.4f} on them and {np.mean(judge_elsewhere):.4f} on the others"
    return Assumption(text, False if p < SAMPLE_LEVEL else None, f"{judge_name}'s means are {means}, p = {p:.4f}")


def _certificate(
    found: JudgedInterval,
    measure: str,
    rival: str | None,
    judge: str,
    confidence: float,
    target: str,
    assumptions: tuple[Assumption, ...],
) -> JudgedCertificate:
    lower, mean, upper, n, m = found.lower, found.mean, found.upper, found.n_people, found.n_machine
    worse = rival is not None and upper < 0
    bound, alone = (upper, found.people.upper) if worse else (lower, found.people.lower)
    return JudgedCertificate(
        statement=f"mean {measure}{'' if rival is None else f' − that of {rival}'} by people's grades "
        f"{'≤ upper' if worse else '≥ lower'} bound by betting",
        value=bound,
        observed=mean if mean == mean else bound,
        reference="betting with a second judge" if found.with_machine else "betting",
        assumptions=assumptions,
        sense="<=" if worse else ">=",
        vacuous_from=0.0,
        meaning=_sentence(found, measure, rival, judge, confidence, target, bound, alone),
        terms={"judged by people": n, "judged by the machine alone": m, "mean": mean, "lower": lower, "upper": upper},
        arithmetic=f"{lower:.4f} ≤ mean by people's grades ≤ {upper:.4f}",
        lower=lower,
        mean=mean,
        upper=upper,
        confidence=confidence,
        n_queries=n,
        people=found.people,
        approximate=found.approximate,
        n_machine=m,
        judge=judge,
        with_machine=found.with_machine,
    )


def _sentence(
    found: JudgedInterval,
    measure: str,
    rival: str | None,
    judge: str,
    confidence: float,
    target: str,
    bound: float,
    alone: float,
) -> str:
    n, m, difference = found.n_people, found.n_machine, rival is not None
    of = f"new queries like these {n + m:,}" if target == "new" else f"these {n + m:,} queries"
    sure = f"with {100 * confidence:g}% confidence"
    source = f"from {n:,} queries judged by people"
    if m == 0 and target == "these" and not difference:
        return f"on these {n:,} queries, all judged by people: {measure} {found.mean:.4f}"
    if found.with_machine:
        source += f" and {m:,} by {judge}"
    elif m and not is_enough(n, m, target, difference=difference):
        source += f" ({judge} takes part from {enough_people(target, difference=difference)} such queries on"
        source += f", and {MACHINE_FOR_NEW:,} of its own)" if target == "new" else ")"
    elif m:
        source += f" (and none by {judge}, as was asked for)"
    if not difference:
        said, sign, estimate = f"{measure} ≥ {bound:.4f}", "≥ ", f"{found.mean:.4f}"
    elif found.lower <= 0 <= found.upper:
        said = f"{measure} − that of {rival} is in [{found.lower:+.4f}, {found.upper:+.4f}]"
        interval = f"[{found.people.lower:+.4f}, {found.people.upper:+.4f}]"
        either = f"; people alone: {interval}" if found.with_machine else ""
        return f"on {of}, as people would grade them: {said} {sure}: either may be better, {source}{either}"
    else:
        said = f"{'worse' if bound < 0 else 'better'} than {rival} by at least {abs(bound):.4f} {measure}"
        sign, estimate, alone = "at least ", f"{found.mean:+.4f}", -alone if bound < 0 else alone
    shown = f"{alone:+.4f}" if difference else f"{alone:.4f}"
    beside = f"; people alone: {sign}{shown}" if found.with_machine else ""
    return f"on {of}, as people would grade them: {said} {sure}, {source}{beside} (estimate {estimate})"
