"""`toprank certify`: what new queries will see of a saved model, and what is proved about it, as sentences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..errors import InputError
from ._common import answer, busy, load_model, read, read_filled, read_for, report
from ._options import COLUMNS, CONVENTION, JSON, MISSING, command, option
from .judging import TARGET, judge_name

if TYPE_CHECKING:
    from ..certificates.base import Assumption, Certificate
    from ..data.dataset import QueryDataset
    from ..model import Model

_BAR = 30
_MARKS = {True: "✓", False: "✗", None: "?"}
_SHOWN = ("holds", "violated", "no verdict")


@command()
def certify(
    model: str,
    data: str | None,
    scores: bool = option("MODEL is a file of scores of DATA: one number a line, or a table with a column `score`."),
    trec: bool = option("MODEL is a TREC run, and DATA its judgements (qrels)."),
    measure: str | None = option("The measure of anybody's model, scores or run.  [default: ndcg@10]"),
    convention: str | None = CONVENTION,
    confidence: float = option("Probability with which bounds on new queries hold.", default=0.95),
    baseline: tuple[str, ...] = option(
        "Compare with a feature (its name, or its number from 1) or a model file; with --trec, with another run."
    ),
    delta: float | None = option("Probability with which a theorem's bound may fail.  [default: 1 − confidence]"),
    comparator: str | None = option("A saved linear model to state the bounds of online learning for."),
    margin: float | None = option("Without DATA: the margin that is assumed of the stream."),
    judge: str | None = option(
        "Queries graded by a machine, those of DATA and more; DATA is then graded by people.", metavar="FILE"
    ),
    judge_label: str | None = option(
        "Column of DATA with a machine's grades; people's (--label) are empty where they did not grade.", metavar="COL"
    ),
    target: Literal["these", "new"] | None = TARGET,
    every: bool = option("Print every certificate in full, also those that say nothing.", "--all"),
    columns: dict[str, Any] = COLUMNS,
    as_json: bool = JSON,
) -> None:
    """Say how good a saved model will be on new queries, and what theorems prove about it.

    The first sentence is about new queries: it needs judged queries that took no part in learning. The others are the
    papers' theorems with bound and observed value; those about online learning need the stream that the model learned
    from. Without DATA a stream is certified from the totals in the model file. Conditions that could be checked are
    marked checked or not met, the others are taken on trust.

    MODEL may be of any origin: trees that LightGBM or XGBoost saved, with --scores what another program wrote, with
    --trec a run. Nothing tells what these learned from, so that DATA took no part is taken on trust.

    With --judge or --judge-label the sentence is from two judges: few queries that people graded and more that a
    machine did, of which those of people are a random sample. It holds whatever the machine says.

    Examples: toprank certify model.json test.txt --baseline bm25; toprank certify --scores mine.csv test.csv;
    toprank certify --trec mine.run qrels.txt --measure map --baseline bm25.run;
    toprank certify model.json human.txt --judge gpt4.txt;
    toprank certify model.json test.csv --label human --judge-label gpt4
    """
    if scores and trec:
        raise InputError("--scores and --trec differ in what MODEL is: give one of them")
    if scores or trec or not _is_ours(model):
        if delta is not None or comparator is not None or margin is not None:
            raise InputError("--delta, --comparator and --margin are about rankers of toprank: leave them out")
        if judge is not None or judge_label is not None or target is not None:
            raise InputError("--judge, --judge-label and --target are for a MODEL that toprank saved: leave them out")
        kind: Literal["scores", "run", "model"] = "scores" if scores else "run" if trec else "model"
        found, about = _anybody(kind, model, data, measure, convention, confidence, baseline, columns, as_json)
        _print(found, about, every, as_json)
        return
    if measure is not None or convention is not None:
        raise InputError("a ranker of toprank is certified by its own measure: leave --measure and --convention out")
    from ..rankers.certifying import certify as prove
    from ..rankers.persistence import load

    ranker = load(model)
    if judge is not None or judge_label is not None:
        if data is None or comparator or margin or delta:
            raise InputError(
                "--judge and --judge-label need DATA, and --comparator, --margin and --delta are not theirs"
            )
        _certify_with_judge(ranker, data, judge, judge_label, baseline, confidence, target or "these", columns, as_json)
        return
    if target is not None:
        raise InputError("--target goes with --judge or --judge-label: without them bounds are on new queries")
    queries = None if data is None else read_for(ranker.model_, data, columns)
    if (queries is None and (baseline or comparator)) or (queries is not None and margin):
        raise InputError("--baseline and --comparator need DATA, --margin is for a stream without it")
    rivals = {} if queries is None else {name: _baseline(name, queries) for name in baseline}
    about = None if queries is None or data is None else report(queries, data, as_json)
    u: Any = margin if comparator is None else load(comparator).function_
    with busy("certifying"):
        found = prove(ranker, queries, u, confidence=confidence, baseline=rivals, delta=delta)
    _print(found, about, every, as_json)


def _is_ours(model: str) -> bool:
    """Say whether a file is a ranker of ours; standard input and what is not there are left to who reads them."""
    from .._files import read_whole
    from ..rankers.persistence import is_model_file

    if model == "-" or not Path(model).is_file():
        return True
    return is_model_file(read_whole(model)[0]) or not looks_like_a_model(model)


def looks_like_a_model(path: str) -> bool:
    """Say whether a file is one of ours in another form, or trees of another package."""
    from .._files import read_whole
    from ..interop.tree_files import looks_like_trees

    content, _ = read_whole(path)
    return looks_like_trees(content) or b'"toprank-' in content[:200]


def _anybody(
    kind: Literal["scores", "run", "model"],
    model: str,
    data: str | None,
    measure: str | None,
    convention: str | None,
    confidence: float,
    baseline: tuple[str, ...],
    columns: dict[str, Any],
    as_json: bool,
) -> tuple[list[Certificate], Any]:
    """Certify what was not saved by toprank, and report on the data where they are a data set."""
    from ..rankers.certifying import certify as prove

    if data is None:
        raise InputError("give DATA: " + ("judgements, for a run" if kind == "run" else "the judged queries"))
    if kind == "run":
        from ..data.trec import read_qrels, read_run

        rivals: dict[str, Any] = {name: read_run(name) for name in baseline}
        judged: Any = read_qrels(data)
        one: Any = read_run(model)
        about = None
    elif kind == "scores":
        from ..data.scores import read_scores
        from ..statistics.evaluation import grouped_scores

        judged = read(data, columns, "keep")
        one = read_scores(model)
        grouped_scores(one, judged)  # whether they belong together is told before the data are looked at
    else:
        one = load_model(model)
        judged = read_for(one, data, columns)
    if kind != "run":
        about = report(judged, data, as_json)
        rivals = {name: _baseline(name, judged) for name in baseline}
    with busy("certifying"):
        found = prove(one, judged, measure=measure, convention=convention, confidence=confidence, baseline=rivals)
    return found, about


def _print(found: list[Certificate], about: Any, every: bool, as_json: bool) -> None:
    from ..certificates.performance import PerformanceCertificate

    rest = [c for c in found if not isinstance(c, PerformanceCertificate)]
    shown = rest if every else [c for c in rest if c.verdict in _SHOWN]
    blocks = [headline([c for c in found if isinstance(c, PerformanceCertificate)])]
    blocks += [paragraph(c) for c in shown] if every else _without_series(shown)
    if len(shown) < len(rest):
        counted = Counter(c.verdict for c in rest if c.verdict not in _SHOWN)
        hidden = ", ".join(f"{n} {_HIDDEN[verdict]}" for verdict, n in counted.items())
        blocks.append(f"Not shown: {hidden} (--all prints them, --json has every number).")
    values = {"data": about, "certificates": [certificate.to_dict() for certificate in found]}
    answer(as_json, values, "\n\n".join(blocks))


def _certify_with_judge(
    ranker: Any,
    data: str,
    judge: str | None,
    judge_label: str | None,
    baseline: tuple[str, ...],
    confidence: float,
    target: str,
    columns: dict[str, Any],
    as_json: bool,
) -> None:
    """Print what follows from people's grades of some queries and a machine's of more."""
    from ..judging.models import certify_with_judge

    people, machine = _two_judges(ranker.model_, data, judge, judge_label, columns)
    rivals = {name: _rival(name, machine) for name in baseline}
    with busy("certifying"):
        found = certify_with_judge(
            ranker,
            people,
            machine,
            judge_name=judge_label or judge_name(judge or ""),
            baseline=rivals,
            confidence=confidence,
            target=target,
        )
    answer(as_json, {"certificates": [certificate.to_dict() for certificate in found]}, headline(found))


def _two_judges(
    model: Model, data: str, judge: str | None, judge_label: str | None, columns: dict[str, Any]
) -> tuple[QueryDataset, QueryDataset]:
    """Return the queries with people's grades, and all with the machine's."""
    if judge is not None:
        if judge_label is not None:
            raise InputError("--judge names a file and --judge-label a column: give one of them")
        return read_for(model, data, columns), read_for(model, judge, columns)
    from ..data.files import is_table, read
    from ..judging.models import people_and_machine

    if not is_table(data):
        raise InputError(f"--judge-label names a column of a table, and {data} is none: give --judge FILE")
    label = columns["label"]
    by_machine = {**columns, "label": judge_label, "exclude": [*columns["exclude"], label]}
    machine = read_for(model, data, by_machine)
    # Cells of a grade may not be empty, those of a feature may: so people's grades are read as one.
    graded = read(data, **{**by_machine, "features": [label], "exclude": []}, missing="keep")
    import numpy as np

    return people_and_machine(machine, np.asarray(graded.X[:, 0], dtype=np.float64)), machine


def _rival(name: str, data: QueryDataset) -> Any:
    """Return a feature as a function of a data set, or a model from the file of that name."""
    names = data.feature_names or ()
    if name in names or (name.isdecimal() and 1 <= int(name) <= data.n_features):
        return lambda queries: queries.feature(name if name in names else int(name) - 1)
    return _baseline(name, data)


_HIDDEN = {"vacuous": "that say nothing here", "does not apply": "that do not apply to these data"}


@command()
def advise(
    data: str,
    radius: float = option("B: the rankers keep ‖w‖ ≤ B (their parameter `radius`).", required=True),
    transforms: tuple[str, ...] = option("linear(a, b), exponential(a) or sigmoid(a); all if none.", "--transform"),
    algorithms: tuple[str, ...] = option("ListMLE, ListNet, ListNet top-one, RankCosine.", "--algorithm"),
    delta: float = option("Probability with which a bound may fail.", default=0.05),
    missing: Literal["error", "zero", "median", "indicator"] = MISSING,
    columns: dict[str, Any] = COLUMNS,
    as_json: bool = JSON,
) -> None:
    """Rank listwise losses by how far their training loss can be from that on new queries.

    The gaps are what `toprank certify` would add to the loss of a ranker with that radius. They compare guarantees, not
    accuracy.

    Example: toprank advise train.txt --radius 0.1
    """
    from ..certificates.advice import advise as rank
    from ..certificates.generalization import ALGORITHMS

    queries = read_filled(data, columns, missing)
    chosen: Any = algorithms or ALGORITHMS
    advice = rank(queries, radius, transforms=transforms or None, algorithms=chosen, delta=delta)
    answer(as_json, advice.to_dict(), str(advice))


def headline(certificates: list[Any]) -> str:
    """Return the certificates about new queries as one sentence, and what it rests on."""
    first, *others = certificates
    parts = [first.meaning, *(c.meaning.partition(": ")[2] or c.meaning for c in others if c.assumptions_hold)]
    lines = ["; ".join(parts) + "."]
    assumptions = dict.fromkeys(a for c in certificates for a in c.assumptions)
    return "\n".join([*lines, *(_state(a) for a in assumptions)])


def paragraph(certificate: Certificate) -> str:
    """Return a certificate as a sentence, its arithmetic, a bar of observed against bound, and its assumptions."""
    lines = [f"{certificate.reference}: {certificate.verdict}. {certificate.meaning}".rstrip()]
    lines += [f"  {certificate.statement}"]
    lines += [f"  {certificate.arithmetic}"] if certificate.arithmetic else []
    lines += [f"  observed {certificate.observed:.6g}, bound {certificate.value:.6g}{_bar(certificate)}"]
    lines += [_state(a) for a in certificate.assumptions]
    return "\n".join(lines)


def _state(assumption: Assumption) -> str:
    return f"  {_MARKS[assumption.verified]} {assumption.state}: {assumption.sentence}"


def _bar(certificate: Certificate) -> str:
    """Draw how much of the bound is used up, where both are amounts and the bound says something."""
    inside = 0 <= certificate.observed <= certificate.value < math.inf
    if certificate.sense != "<=" or certificate.vacuous or not inside or certificate.value == 0:
        return ""
    share = certificate.observed / certificate.value
    full = round(share * _BAR)
    return f"  [{'█' * full}{'·' * (_BAR - full)}] {share:.1%} of it"


def _without_series(certificates: Iterable[Certificate]) -> Iterable[str]:
    """Replace a theorem applied round after round by its first and last round and a count."""
    for _, group in groupby(certificates, key=lambda c: (c.reference, c.sense)):
        run = list(group)
        if len(run) <= 3:
            yield from map(paragraph, run)
            continue
        held = sum(c.verdict == "holds" for c in run)
        yield paragraph(run[0])
        yield f"… {len(run) - 2} more like it (--all prints them): {held} of {len(run)} hold"
        yield paragraph(run[-1])


def _baseline(name: str, data: QueryDataset) -> Any:
    """Return scores of the feature with that name or number, or a model from the file of that name."""
    names = data.feature_names or ()
    if name in names or (name.isdecimal() and 1 <= int(name) <= data.n_features):
        return data.feature(name if name in names else int(name) - 1)
    if Path(name).is_file():
        return load_model(name)
    raise InputError(f"--baseline {name}: neither a feature of the data (a name, or 1 to {data.n_features}) nor a file")
