"""Contestants of your own on the command line: an object that Python can import, a model, a run or a file of scores."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

from ..errors import InputError

TAKES = "[NAME=]package.module:object, or [NAME=] a model file, a TREC run or a file of scores"


def entrant(text: str) -> tuple[str, Any]:
    """Return the name and the contestant that `--with` describes."""
    name, sign, rest = text.partition("=")
    if not sign or Path(text).is_file():
        name, rest = "", text
    if Path(rest).is_file():
        return name or Path(rest).name.removesuffix(".gz").rsplit(".", 1)[0], from_file(rest)
    module, sign, path = rest.partition(":")
    if not (sign and module and path):
        raise InputError(f"--with {text}: there is no such file, and an object is written package.module:object")
    return name or path.rpartition(".")[2], _imported(text, module, path)


def from_file(path: str) -> Any:
    """Return a model, a run, or one score per row of the test file."""
    if Path(path).name.removesuffix(".gz").endswith((".run", ".trec")):
        from ..data.trec import read_run

        return read_run(path)
    if Path(path).suffix in (".json", ".ubj") or _begins(path, b"tree\n"):
        from ._common import load_model

        return load_model(path)
    from ..data.scores import read_scores

    return read_scores(path)


def _begins(path: str, start: bytes) -> bool:
    with open(path, "rb") as file:
        return file.read(len(start)) == start


def _imported(text: str, module: str, path: str) -> Any:
    """Import an object; what can be called and is no estimator (a class, a function) is called to make one."""
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
    except ImportError as error:
        raise InputError(f"--with {text}: cannot import {module}: {error}") from None
    for part in path.split("."):
        if not hasattr(found, part):
            raise InputError(f"--with {text}: {getattr(found, '__name__', found)} has no {part!r}")
        found = getattr(found, part)
    if isinstance(found, type) or not (hasattr(found, "predict") or hasattr(found, "fit")):
        if not callable(found):
            raise InputError(f"--with {text}: it is a {type(found).__name__}, and not an estimator")
        try:
            found = found()
        except TypeError as error:
            raise InputError(f"--with {text}: it could not be made without arguments: {error}") from None
    return found
