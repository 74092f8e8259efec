"""What the commands share: options, reading, and printing."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..data.dataset import QueryDataset
    from ..data.validation import Missing
    from ..export.scorers import Scorer
    from ..rankers.base import Ranker

label_option = click.option("--label", default="label", show_default=True, help="Column with the grade, in a table.")
qid_option = click.option("--qid", default="query", show_default=True, help="Column with the query id, in a table.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
convention_option = click.option(
    "--convention", default=None, help="Whose conventions to follow; `toprank measures` lists them."
)


def read(path: str, label: str, qid: str, missing: Missing = "error") -> QueryDataset:
    from ..data.files import read

    with busy(f"reading {path}"):
        return read(path, label=label, qid=qid, missing=missing)


def load(path: str) -> Ranker:
    from ..rankers.persistence import load

    return load(path)


def load_scorer(path: str) -> tuple[Ranker | Scorer, Missing]:
    """Return what a file can score with, a saved ranker or a folded pipeline, and its policy for missing values."""
    from ..export.folding import load_model
    from ..rankers.base import Ranker

    model = load_model(path)
    return model, model.missing if isinstance(model, Ranker) else "error"


def make_ranker(name: str, measure: str | None, params: tuple[str, ...]) -> Ranker:
    from .. import rankers as package
    from .._suggest import did_you_mean

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
    ranker: Ranker = kind(**given)
    return ranker


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Show that work is going on, on a terminal only."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{what} …"):
        yield


def show(value: Any) -> None:
    """Print with colour on a terminal and as plain text elsewhere."""
    if sys.stdout.isatty():
        from rich.console import Console

        Console().print(value)
    else:
        click.echo(str(value))


def print_json(value: Any) -> None:
    click.echo(json.dumps(jsonable(value), indent=1, ensure_ascii=False))


def jsonable(value: Any) -> Any:
    """Return numbers and containers as JSON has them; anything else as its text, what is not finite as null."""
    from .._checkpoint import plain

    return json.loads(json.dumps(plain(value), default=str))


def write_text(path: str, text: str) -> None:
    from .._files import replacing

    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")
