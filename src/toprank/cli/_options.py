"""Commands made of functions: a parameter is an option or an argument, said once with its type, default and help."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin

import click


class _Described(NamedTuple):
    kind: type[click.Parameter]
    flags: tuple[str, ...]
    attributes: dict[str, Any]


def option(text: str, *flags: str, **attributes: Any) -> Any:
    """Describe an option, as the default of its parameter; `flags` where it is not called as the parameter is.

    The annotation says what it takes: a bool is a flag, a tuple is repeatable, a Literal is a choice.
    """
    return _Described(click.Option, flags, {"help": text, **attributes})


def argument(**attributes: Any) -> Any:
    """Describe an argument of which there is more to say than its type; a parameter without a default is one too."""
    return _Described(click.Argument, (), attributes)


COLUMNS: Any = {
    "label": option("Column with the grade, in a table.", default="label"),
    "qid": option("Column with the query id, in a table.", default="query"),
    "doc_id": option("Column with the document id, in a table.  [default: doc_id, if there]"),
    "doc_weight": option("Column with the weight of a document.  [default: doc_weight or weight, if there]"),
    "features": option("Columns that are features, in a table.  [default: all others]", metavar="COL,COL"),
    "exclude": option("Columns that are not features, in a table.", metavar="COL,COL", default=""),
    "sep": option("What stands between the cells of a text table (tab for a tab).  [default: as in its first line]"),
}
"""The options that say what the columns of a table are: a command gets them as one parameter, for `read`.

A command with an option of its own by one of these names does not get that one."""

JSON = option("Print JSON for machines.", "--json")
CONVENTION = option(
    "Whose rules the measures follow; `toprank measures` lists them.  [default: standard; trec_eval for TREC runs]"
)
MEASURES = option("A measure; repeatable, or with commas. [default: ndcg@10, map]", "--measure")
PREPARE = option(
    "Prepare features: log (signed logarithm), query (to 0 … 1 within each query), standard (to mean 0 and deviation 1 "
    "within each query); several are separated by commas and done in this order.",
    metavar="STEPS",
    default="",
)
MISSING = option(
    "What becomes of missing cells: error refuses them, zero takes 0, median the median of the column, indicator the "
    "median and one more column that says where cells were missing.",
    default="error",
)
FIT_MISSING = option(
    "What becomes of missing cells, in learning and wherever the model scores: error refuses them, zero takes 0, "
    "median the median of the column, indicator the median and one more column that says where.  [default: error]"
)
FOR = option("Refuse, before training, what this target of `export` cannot compute.", "--for", metavar="TARGET")


def command(
    name: str | None = None, *, cls: type[click.Command] = click.Command
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a command of a function, of that name or the function's own."""

    def made(function: Callable[..., Any]) -> click.Command:
        own = inspect.signature(function, eval_str=True).parameters
        columns = {key: each for key, each in COLUMNS.items() if key not in own}
        params: list[click.Parameter] = []
        for each in own.values():
            if each.default is COLUMNS:
                params += [_parameter(key, str, described) for key, described in columns.items()]
            else:
                params.append(_parameter(each.name, each.annotation, each.default))

        @wraps(function)
        def called(**given: Any) -> Any:
            if "columns" in own:
                given["columns"] = _read_columns({key: given.pop(key) for key in columns})
            return function(**given)

        text = inspect.cleandoc(function.__doc__ or "")
        return cls(name or function.__name__.replace("_", "-"), callback=called, params=params, help=text)

    return made


def _parameter(name: str, kind: Any, described: Any) -> click.Parameter:
    optional = NoneType in get_args(kind)
    if optional:
        (kind,) = (each for each in get_args(kind) if each is not NoneType)
    if not isinstance(described, _Described):
        described = argument(required=not optional)
    repeated = get_origin(kind) is tuple
    kind = get_args(kind)[0] if repeated else kind
    attributes: dict[str, Any] = {"type": click.Choice(get_args(kind)) if get_origin(kind) is Literal else kind}
    if described.kind is click.Argument:
        return click.Argument([name], **attributes | ({"nargs": -1} if repeated else {}) | described.attributes)
    shown = described.attributes.get("default") not in (None, "")
    attributes |= {"multiple": repeated, "show_default": shown}
    # Said of an option that is no flag, is_flag=False would make click take "-1" for the next option.
    attributes |= {"is_flag": True} if kind is bool else {}
    flags = described.flags or (f"--{name.replace('_', '-')}",)
    return click.Option([*flags, name], **attributes | described.attributes)


def _read_columns(columns: dict[str, Any]) -> dict[str, Any]:
    """Return the columns as `read` takes them."""
    for name in ("exclude", "features"):
        if columns.get(name) is not None:
            columns[name] = split_names(columns[name])
    return {**columns, "sep": "\t" if columns["sep"] in ("tab", "\\t") else columns["sep"]}


def split_names(*texts: str) -> list[str]:
    """Return the names that commas separate in these texts."""
    return [name for text in texts for part in text.split(",") if (name := part.strip())]
