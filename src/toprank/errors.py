"""What toprank says when the input is not what it should be: one line that names the place and the remedy."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._typing import Floats


class InputError(ValueError):
    """Something the caller gave cannot be used; the message says what, where, and what to do.

    It is one line of bounded length, though it may quote a file in which anything stands.

    >>> str(InputError("no column 'a\\nb'\\n"))
    "no column 'a b'"
    """

    def __init__(self, message: str) -> None:
        super().__init__(_shorten(" ".join(message.splitlines()), 1000))


class ParseError(InputError):
    """A text file has a bad line.

    >>> str(ParseError("expected feature:value", file="train.txt", line=3, column=12, text="1;0.5"))
    "train.txt:3:12: expected feature:value, found '1;0.5'"
    """

    def __init__(
        self,
        message: str,
        *,
        file: str,
        line: int | None = None,
        column: int | None = None,
        text: str | None = None,
    ) -> None:
        place = ":".join(str(part) for part in (file, line, column) if part is not None)
        found = "" if text is None else f", found {_shorten(text)!r}"
        super().__init__(f"{place}: {message}{found}")
        self.said, self.file, self.line, self.column, self.text = message, file, line, column, text

    def __reduce__(self) -> Any:
        same = partial(ParseError, file=self.file, line=self.line, column=self.column, text=self.text)
        return same, (self.said,)


@contextmanager
def naming(place: str, *others: type[Exception]) -> Iterator[None]:
    """Put a file, or another place, in front of what is wrong in it, unless the message names it already.

    Other kinds of errors say that the file cannot be read.

    >>> with naming("model.json"):
    ...     raise InputError("a weight is not a number")
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: model.json: a weight is not a number
    """
    try:
        yield
    except InputError as error:
        if isinstance(error, ParseError) or place in str(error):
            raise
        raise InputError(f"{place}: {error}") from None
    except others as error:
        raise InputError(f"{place} cannot be read: {' '.join(str(error).split()) or type(error).__name__}") from None


class NumbersOverflowError(InputError):
    """Learning ran out of the range of numbers: features or steps are too large."""


class WorkersLost(RuntimeError):  # noqa: N818 - what happened, as users of Dask call it
    """A cluster has no workers left, or they do nothing any more; `coef` are the weights so far, if there are any.

    >>> WorkersLost("no worker came back within 60 s").coef is None
    True
    """

    coef: Floats | None = None


class MissingExtraError(ImportError):
    """An optional dependency is not installed.

    >>> str(MissingExtraError("pyarrow", extra="parquet", purpose="reading Parquet"))
    "reading Parquet needs pyarrow: pip install pyarrow, or pip install '.[parquet]' in a clone of toprank"
    """

    def __init__(self, package: str, *, extra: str, purpose: str) -> None:
        remedy = f"pip install {package}, or pip install '.[{extra}]' in a clone of toprank"
        super().__init__(f"{purpose} needs {package}: {remedy}")
        self.package, self.extra = package, extra


_EXTRAS = {
    "pyarrow": "parquet", "onnx": "onnx", "onnxruntime": "onnx", "duckdb": "sql", "torch": "torch", "lightgbm": "trees",
    "xgboost": "trees", "catboost": "catboost", "matplotlib": "plot", "starlette": "serve", "uvicorn": "serve",
    "prometheus_client": "serve", "openpyxl": "excel",
}  # fmt: skip
"""The extra that brings a package."""


def needed(module: str, purpose: str) -> Any:
    """Import what an extra brings, or say how to install it.

    >>> needed("json", "nothing").__name__
    'json'
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        installed = "xgboost-cpu" if package == "xgboost" else package
        raise MissingExtraError(installed, extra=_EXTRAS[package], purpose=purpose) from None


def _shorten(text: str, limit: int = 40) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
