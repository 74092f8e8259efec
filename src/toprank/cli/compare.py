"""`toprank compare`: which ranker is best on these data, and is that shown."""

from __future__ import annotations

import hashlib
import os
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from ..errors import InputError
from ._common import as_wide, check_outputs, check_prepared, check_writable, print_json, report, show
from ._options import COLUMNS, CONVENTION, FOR, JSON, MISSING, PREPARE, argument, command, option, split_names
from .judging import judged, read_runs

if TYPE_CHECKING:
    from ..contests.base import Contest
    from ..contests.parts import Parts, ReadWhenNeeded
    from ..data.dataset import QueryDataset
    from ..data.splits import Fold
    from ..judging.report import JudgeReport


@command()
def compare(
    files: tuple[str, ...] = argument(metavar="[TRAIN TEST]"),
    valid: str | None = option("Queries by which settings are chosen. [default: a quarter of TRAIN, held out]"),
    trec: bool = option("The files are TREC runs, two or more: compare them as they are."),
    qrels: str | None = option("With --trec: the judgements.", metavar="FILE"),
    judge: str | None = option(
        "With --trec: judgements by a machine of the same queries and of others; --qrels are those of people. `toprank "
        "judge` says more, and writes a page.",
        metavar="FILE",
    ),
    judge_label: str | None = option(
        "Column with a machine's grades, in a table: rankers learn and are chosen by it, and are judged by --label.",
        metavar="COL",
    ),
    answered_only: bool = option("With --trec: only queries that every run answers. [default: others count 0]"),
    folds: str | None = option("Instead of TRAIN and TEST: a folder with Fold1, Fold2, … as in LETOR.", metavar="DIR"),
    rankers: tuple[str, ...] = option(
        "Names of `toprank rankers`, LightGBM, XGBoost, CatBoost, or `all` of ours; repeatable, or with commas. "
        "[default: a few of different kinds]",
        metavar="NAMES",
    ),
    entrants: tuple[str, ...] = option(
        "One more contestant: an estimator that Python can import (package.module:object; a class or a function that "
        "makes one is called), a model file, a TREC run (.run, .trec) or a file of scores of TEST; repeatable.",
        "--with",
        metavar="[NAME=]OBJECT",
    ),
    measure: str = option("The measure by which settings are chosen.", default="ndcg@10"),
    measures: tuple[str, ...] = option("Further measures to report; repeatable, or with commas. [default: map]"),
    convention: str | None = CONVENTION,
    budget: int | None = option(
        "Settings of each ranker that are tried beyond its defaults; 0 tries only the defaults. [default: all]",
        metavar="SETTINGS",
    ),
    seconds: float | None = option(
        "After so many processor seconds of learning no further settings are tried, and a fit that takes longer than "
        "its share is stopped: numbers then depend on the machine. [default: no limit]",
        metavar="S",
    ),
    seed: int = option("Same seed, same numbers, on any machine unless --seconds is given.", default=0),
    significance: Literal["permutation", "t", "wilcoxon"] = option(
        "The paired test over queries.", "--test", default="permutation"
    ),
    baseline: str | None = option("Compare the others with this one alone. [default: every pair]", metavar="NAME"),
    margin: float | None = option(
        "Also test who is at most M worse, and who is equivalent within M (e.g. 0.01).", metavar="M"
    ),
    refit: bool = option("Let the winners learn once more, from training and validation queries."),
    fusion: tuple[str, ...] = option(
        "Combine all that was learned, as further baselines: rrf, combsum, combmnz; repeatable, or with commas.",
        metavar="METHODS",
    ),
    repeats: int = option(
        "Learn from N resamples of the training queries, with two seeds each: this says which learner is better, and "
        "how much of a difference comes from the training sample, the seed and the queries.",
        default=0,
        metavar="N",
    ),
    resamples: int | None = option(
        "Number of bootstrap draws, and of sign flips in the permutation test. "
        "[default: 10,000; as many flips as the comparisons need]",
        type=click.IntRange(min=1),
        metavar="N",
    ),
    missing: Literal["error", "zero", "median", "indicator"] = MISSING,
    prepare: str = PREPARE,
    target: str | None = FOR,
    html: str | None = option("Write a report page.", metavar="FILE"),
    output: str | None = option("Write the chosen models into this folder.", "-o", "--output", metavar="DIR"),
    state: str | None = option(
        "Keep finished settings here, for other runs too. [default: a cache folder, emptied when the run is done]",
        metavar="DIR",
    ),
    columns: dict[str, Any] = COLUMNS,
    as_json: bool = JSON,
) -> None:
    """Let rankers compete: settings chosen on validation queries, judged on test queries, differences tested.

    The best single feature and the order as given take part too, and with --with anybody's estimators and scores. With
    --prepare, the validation queries also choose whether features are prepared. An interrupted run goes on where it
    was when the same command is given again. With --trec, runs of any systems are compared instead.

    Examples: toprank compare train.txt test.txt --html report.html;
    toprank compare --folds OHSUMED --rankers ListNet,RankSVM,LightGBM --measure map --convention letor3;
    toprank compare --trec bm25.run mine.run --qrels qrels.txt --html report.html
    """
    check_writable(html)
    check_outputs([html, output, state], [*files, valid, qrels])
    check_prepared(prepare, target)
    if trec:
        learning = {"valid": valid, "folds": folds, "rankers": rankers, "output": output, "state": state}
        learning["with"] = entrants
        _refuse_with_trec(**learning, refit=refit, repeats=repeats, prepare=prepare, judge_label=judge_label)
        result = _runs(
            files,
            qrels,
            measures=[measure, *(m for m in split_names(*measures) or ["map"] if m != measure)],
            convention=convention or "trec_eval",
            complete=not answered_only,
            fusion=split_names(*fusion),
            test=significance,
            baseline=baseline,
            margin=margin,
            n_resamples=resamples,
            random_state=seed,
        )
        beside = None if judge is None or qrels is None else _judged(files, qrels, judge, measure, convention, baseline)
        _write_page(result, html, baseline)
        _print(result, html, [], as_json, judged=beside)
        return
    if qrels is not None or answered_only or judge is not None:
        raise InputError("--qrels, --judge and --answered-only are about TREC runs: give --trec too")
    if len(files) > 2:
        raise InputError(f"compare takes TRAIN and TEST, got {len(files)} files; runs are compared with --trec")
    train, test = (*files, None, None)[:2]
    from ..data.files import read

    reports = _Reports(as_json)
    if folds is not None and missing != "error":
        raise InputError("--folds reads LETOR text, in which every cell has a number: leave --missing out")
    from ..contests.settings import CATBOOST, DEFAULT_RANKERS, ENGINES

    taking_part = _taking_part(_names(rankers), entrants) or DEFAULT_RANKERS
    # Trees and estimators of others have their own way with missing cells; who has none is left out, which is told.
    keeps = missing != "error" or entrants or not {"BoostedTrees", *ENGINES, CATBOOST}.isdisjoint(taking_part)
    kept_cells: Literal["error", "keep"] = "keep" if keeps else "error"
    learned = partial(read, **_learned_by(judge_label, columns, folds), missing=kept_cells)
    tested = partial(read, **_left_out(judge_label, columns), missing=kept_cells)
    parts, title = _folds(train, test, valid, folds, (learned, tested), reports)
    if output is not None and Path(output).exists() and not Path(output).is_dir():
        raise InputError(f"{output} is a file: name a folder for the models")
    from ..contests.contest import contest

    kept = Path(state) if state is not None else _cache_of(train, test, valid, folds)
    try:
        result = contest(
            parts,
            rankers=taking_part,
            measure=measure,
            measures=split_names(*measures) or ["map"],
            convention=convention or "standard",
            budget=budget,
            seconds=seconds,
            random_state=seed,
            missing=missing,
            prepare=prepare,
            comparison=significance,
            baseline=baseline,
            margin=margin,
            refit=refit,
            repeats=repeats,
            fusion=split_names(*fusion),  # type: ignore[arg-type]
            n_resamples=resamples,
            state=kept,
            title=title,
        )
        _write_page(result, html, baseline)
    except KeyboardInterrupt:
        show(f"toprank: interrupted; {_how_to_go_on(kept)}", err=True)
        raise click.exceptions.Exit(130) from None
    models = [] if output is None else _save_models(result, Path(output))
    if kept is not None and state is None:
        shutil.rmtree(kept, ignore_errors=True)
    _print(result, html, models, as_json, reports.found)


def _refuse_with_trec(**options: object) -> None:
    for name, value in options.items():
        if value:
            raise InputError(f"--{name} is about learning, and with --trec nothing is learned: leave it out")


def _runs(files: tuple[str, ...], qrels: str | None, **options: Any) -> Contest:
    from ..contests.from_reports import of_runs
    from ..data.trec import read_qrels

    if len(files) < 2 or qrels is None:
        raise InputError("compare --trec needs two runs or more, and --qrels FILE")
    return of_runs(read_runs(files), read_qrels(qrels), title=Path(qrels).name, **options)


def _judged(
    files: tuple[str, ...], qrels: str, judge: str, measure: str, convention: str | None, baseline: str | None
) -> JudgeReport:
    options: dict[str, Any] = {"convention": convention or "trec_eval", "name": None, "baseline": baseline}
    return judged(qrels, judge, files, measure, **options)


def _write_page(result: Contest, html: str | None, baseline: str | None) -> None:
    if html is not None:
        from ..report.page import write_report

        write_report(result, html, baseline=baseline)


class _Reports:
    """The data reports of a comparison, each shown and kept when its file is read for the first time."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self.found: dict[str, Any] = {}

    def add(self, part: str, data: QueryDataset, path: str) -> None:
        """Report on a part."""
        if part not in self.found:
            self.found[part] = report(data, path, self._as_json)


def _print(
    result: Contest,
    html: str | None,
    models: list[str],
    as_json: bool,
    data: Any = None,
    judged: JudgeReport | None = None,
) -> None:
    for warning in result.warnings:
        show(f"toprank: note: {warning}", err=True)
    if as_json:
        beside = {} if judged is None else {"judge": judged.to_dict()}
        print_json({**result.to_dict(), "html": html, "models": models, **({"data": data} if data else {}), **beside})
        return
    show(result)
    if judged is not None:
        from ..judging import tables

        show("")
        show(tables.systems(judged))
        show("\n".join(("", *tables.sentences(judged), *tables.gains(judged))))
    written = [*([] if html is None else [html]), *models]
    if written:
        show(f"\nwrote {', '.join(written)}")


def _names(texts: tuple[str, ...]) -> list[str]:
    from .. import rankers as package

    given = split_names(*texts)
    return list(dict.fromkeys(name for text in given for name in (package.__all__ if text == "all" else [text])))


def _taking_part(names: list[str], entrants: tuple[str, ...]) -> dict[str, Any]:
    """Return who takes part by name: rankers that were named, and contestants of the caller's own."""
    from ._entrants import entrant

    found: dict[str, Any] = {name: name for name in names}
    for text in entrants:
        name, one = entrant(text)
        if name in found:
            raise InputError(f"two contestants are called {name!r}: name one of them, --with OTHER={text}")
        found[name] = one
    return found


def _folds(
    train: str | None,
    test: str | None,
    valid: str | None,
    folds: str | None,
    readers: tuple[Any, Any],
    reports: _Reports,
) -> tuple[ReadWhenNeeded, str]:
    """Return what to read when its turn comes, and a title; a file that is not there is told at once.

    The first reader is for what is learned from and chosen by, the second for the test queries.
    """
    from ..contests.parts import ReadWhenNeeded
    from ..data.splits import PART_FILES, find_part, fold_numbers

    if folds is not None:
        if train is not None or valid is not None:
            raise InputError("--folds brings its own parts: leave TRAIN, TEST and --valid out")
        numbers = fold_numbers(folds)
        for number in numbers:
            for part in PART_FILES:
                find_part(Path(folds), number, part)
        each = tuple(partial(_fold, folds, n, reports) for n in numbers)
        return ReadWhenNeeded(each), Path(folds).resolve().name
    if train is None or test is None:
        raise InputError("compare needs TRAIN and TEST, or --folds DIR; see toprank compare --help")
    for path in (train, test, valid):
        if path not in (None, "-") and not Path(str(path)).exists():
            raise InputError(f"{path}: No such file or directory")
    return ReadWhenNeeded((partial(_parts, train, test, valid, readers, reports),)), Path(test).name


def _learned_by(judge_label: str | None, columns: dict[str, Any], folds: str | None) -> dict[str, Any]:
    """Return the columns of what is learned from: where there is a machine's grade, people's are left out."""
    if judge_label is None:
        return columns
    if folds is not None:
        raise InputError("--folds reads LETOR text, which has one grade: leave --judge-label out")
    return {**columns, "label": judge_label, "exclude": [*columns["exclude"], columns["label"]]}


def _left_out(judge_label: str | None, columns: dict[str, Any]) -> dict[str, Any]:
    return columns if judge_label is None else {**columns, "exclude": [*columns["exclude"], judge_label]}


def _fold(folder: str, number: int, reports: _Reports) -> Fold:
    from ..data.splits import read_fold

    fold = read_fold(folder, number)
    reports.add(f"fold {number}", fold.train, f"{folder}, training part of fold {number}")
    return fold


def _parts(train: str, test: str, valid: str | None, readers: tuple[Any, Any], reports: _Reports) -> Parts:
    from ..contests.parts import Parts

    of_learning, of_test = readers
    learned = of_learning(train)
    tested = _as_wide(of_test(test), test, learned, train)
    chosen = None if valid is None else _as_wide(of_learning(valid), valid, learned, train)
    named = {"train": (learned, train), "test": (tested, test)}
    if valid is not None and chosen is not None:
        named["valid"] = (chosen, valid)
    for part, (data, path) in named.items():
        reports.add(part, data, path)
    return Parts(learned, tested, chosen)


def _as_wide(data: QueryDataset, path: str, train: QueryDataset, train_path: str) -> QueryDataset:
    """Return the data with as many features as the training part: what a text file does not mention is 0."""
    if data.n_features > train.n_features or (data.n_features < train.n_features and data.feature_names is not None):
        raise InputError(
            f"{path} has {data.n_features} features and {train_path} has {train.n_features}: do they belong together?"
        )
    return as_wide(data, path, train.n_features)


def _cache_of(*inputs: str | None) -> Path | None:
    """Return where results on these files are kept until the run is done; None where there is no such place."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    names = "\n".join("" if name is None else str(Path(name).resolve()) for name in inputs)
    folder = root / "toprank" / "compare" / hashlib.sha256(names.encode()).hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


def _how_to_go_on(kept: Path | None) -> str:
    if kept is None:
        return "nothing could be kept: name a folder with --state to be able to go on next time"
    done = len(list(kept.glob("[!.]*.json")))
    if not done:
        return "no setting was finished yet"
    return f"{done} settings are finished and kept in {kept}: give the same command again to go on"


def _save_models(result: Contest, folder: Path) -> list[str]:
    from ..contests.saving import save_winners

    written, left = save_winners(result, folder)
    for reason in left:
        show(f"toprank: note: {reason}", err=True)
    return written
