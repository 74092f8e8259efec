"""What the commands share: reading and printing."""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._files import is_standard_output
from .._progress import aside, silence
from .._progress import busy as busy
from .._tables import wrap
from ..errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..data.dataset import QueryDataset
    from ..data.validation import Missing
    from ..model import Model
    from ..model.missing import Missing as Rule
    from ..rankers.base import Ranker


def check_outputs(outputs: Sequence[str | None], inputs: Sequence[str | None]) -> None:
    """Refuse to write what is also read, or to write two things to one place, before anything is read or learned."""
    taken = {_place(path): "reads" for path in inputs if path not in (None, "-")}
    for path in outputs:
        if path is None or is_standard_output(path):
            continue
        if _place(path) in taken:
            raise InputError(f"{path} is also what this command {taken[_place(path)]}: choose another name to write to")
        taken[_place(path)] = "writes"


def _place(path: str | None) -> object:
    """Return what two names of one file share, links among them; a file that is not there has its full name."""
    try:
        found = os.stat(path or "")
        return found.st_dev, found.st_ino
    except (OSError, ValueError):
        return os.path.realpath(path or "")


def check_writable(path: str | None) -> None:
    """Refuse a place that cannot be written to before the work is done, not after."""
    if path is None or is_standard_output(path):
        return
    target = Path(path)
    if target.is_dir():
        raise InputError(f"{target} is a folder: name a file to write")
    if not target.parent.is_dir() or not os.access(target.parent, os.W_OK):
        raise InputError(f"cannot write {target}: no folder {target.parent} to write to")


def check_prepared(prepare: str | Sequence[str], target: str | None) -> None:
    """Refuse unknown preparations, and those that the target cannot compute, before anything is read or trained."""
    from ..data.preparation import words_of

    steps = words_of(prepare)
    if target is not None:
        from ..export import check_preparation

        check_preparation(target, steps)


def read(path: str, columns: dict[str, Any], missing: Missing = "error") -> QueryDataset:
    from ..data.files import read

    with busy(f"reading {path}"):
        return read(path, **columns, missing=missing)


def read_filled(path: str, columns: dict[str, Any], missing: Rule) -> QueryDataset:
    """Return the queries of a file with its missing cells filled in by a rule, whose values are those of the file."""
    from ..model.missing import fill_missing

    return fill_missing(read(path, columns, "error" if missing == "error" else "keep"), missing)


def report(data: QueryDataset, path: str, as_json: bool) -> dict[str, Any] | None:
    """Return the data report as plain values, and show it beside the results: on standard error, before they are there.

    What lies on a cluster is not looked at: there is no report of it.
    """
    from dataclasses import asdict

    from ..data.remote import RemoteMatrix

    if isinstance(data.X, RemoteMatrix):
        return None
    with busy(f"looking at {path}"):
        found = data.info()
    if not as_json:
        show(found.report(path), err=True)
        warnings.filterwarnings("ignore", "no document has grade 0")  # the report says it
    return asdict(found)


def as_wide(data: QueryDataset, path: str, n_features: int) -> QueryDataset:
    """Return the data with as many features as a model has: what a text file does not mention is 0, which is told."""
    from ..data.remote import RemoteMatrix
    from ..data.splits import widen

    numbered = data.feature_names is None and not isinstance(data.X, RemoteMatrix)
    if not numbered or data.n_features >= n_features:
        return data  # who compares the features says what is wrong
    note = f"{path} mentions {data.n_features} of {n_features} features; the others count as 0"
    show(f"toprank: note: {note}", err=True)
    return widen(data, n_features)


def _known_columns(path: str, columns: dict[str, Any], names: Sequence[str] | None, graded: bool) -> dict[str, Any]:
    """Return the columns of a table that a model scores: its own features, and grades only where they are wanted."""
    from ..data._columns import column_names
    from ..data.files import is_table

    if columns.get("features") is None and names is not None:
        columns = {**columns, "features": list(names)}
    if graded or path == "-" or not is_table(path):
        return columns if graded else {**columns, "label": None}
    unread = [columns["label"]] if columns["label"] in column_names(path) else []
    return {**columns, "label": None, "exclude": [*columns["exclude"], *unread]}


def load_model(path: str) -> Model:
    """Return the model of a file: ours, an exported JSON file, or trees of LightGBM or XGBoost.

    A model file of ours takes neither scikit-learn nor the exports to be read.
    """
    from .._files import read_whole
    from ..rankers import persistence

    content, name = read_whole(path)
    if persistence.is_model_file(content):
        return persistence.parse_model(content, name)
    from ..export.folding import read_model

    return read_model(path, (content, name))


def read_for(model: Model, path: str, columns: dict[str, Any], *, graded: bool = True) -> QueryDataset:
    """Return the queries of a file with the columns that a model wants, missing cells kept for its own rule.

    The features of a table are matched by name, so that no other column needs to be excluded; grades are read only
    where they are wanted.
    """
    wanted = _known_columns(path, columns, model.inputs.names, graded)
    data = as_wide(read(path, wanted, "keep"), path, model.n_features)
    if data.has_missing and model.rule.kind == "error":
        model.rule.check_none_missing(data, data.feature_names)
    return data


def make_ranker(name: str, measure: str | None, params: tuple[str, ...], missing: Rule | None = None) -> Ranker:
    from .. import rankers as package
    from .._suggest import did_you_mean

    if name in ("LightGBM", "XGBoost"):
        raise InputError(
            f"{name} is another package: --ranker BoostedTrees -p engine={name.lower()} trains its trees, for its own "
            "loss or (-p loss=ListNet) one of ours"
        )
    if name not in package.__all__:
        raise InputError(f"unknown ranker {name!r}{did_you_mean(name, package.__all__)}; `toprank rankers` lists them")
    kind = getattr(package, name)
    known = kind().get_params(deep=False)
    given: dict[str, Any] = {} if measure is None else {"measure": measure}
    for text in params:
        key, sign, value = text.partition("=")
        if not sign or key not in known:
            raise InputError(f"-p {text}: {name} takes {', '.join(f'{k}=…' for k in known)}{did_you_mean(key, known)}")
        try:
            given[key] = json.loads(value)
        except json.JSONDecodeError:
            given[key] = value  # not a number, true, false or null: text
    if measure is not None:
        from ..measures import measure as parse

        parse(measure)  # a bad name is told before any file is read
    if missing is not None:
        if given.get("missing", missing) != missing:
            raise InputError(f"--missing {missing} and -p missing={given['missing']} differ: give one of them")
        given["missing"] = missing
    ranker: Ranker = kind(**given)
    return ranker


def show(value: Any, *, err: bool = False) -> None:
    """Print a result or a sentence: on a terminal as wide as that is, with no word cut; elsewhere as it is."""
    if not err:
        silence()
    with aside():
        _show(value, sys.stderr if err else sys.stdout)


def _show(value: Any, stream: Any) -> None:
    if not stream.isatty():
        click.echo(str(value), file=stream)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, highlight=False)
    if isinstance(value, str):
        for line in value.split("\n"):  # continued lines keep the indentation of the first
            indent = " " * (len(line) - len(line.lstrip()))
            folded = wrap(line.strip(), console.width - len(indent)) if len(line) > console.width else [line.strip()]
            for part in folded:
                console.print(Text(indent + part, no_wrap=True, overflow="ignore"))
    else:
        console.print(value)


def print_json(value: Any) -> None:
    text = json.dumps(jsonable(value), indent=1, ensure_ascii=False)
    silence()
    click.echo(text)


def answer(as_json: bool, values: Any, *shown: Any) -> None:
    """Print the answer of a command: plain values for machines, or tables and sentences, one below the other."""
    if as_json:
        print_json(values)
        return
    for each in shown:
        show(each)


def jsonable(value: Any) -> Any:
    """Return numbers and containers as JSON has them; anything else as its text, what is not finite as null."""
    from .._checkpoint import plain

    return json.loads(json.dumps(plain(value), default=str))


def write_text(path: str, text: str) -> None:
    from .._files import replacing

    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")
