"""Functions stay short enough to be read: at most 80 lines and 12 parameters."""

from __future__ import annotations

import ast
from pathlib import Path

import toprank

PACKAGE = Path(toprank.__file__).parent
LINES, PARAMETERS = 80, 12
EXCEPTIONS = {
    "contests/contest.py: contest": "a public call, whose keywords its users write out",
    "dask/reading.py: read_table": "it takes what `tr.read_table` takes",
}
"""What may be longer. A command of `cli` has a parameter for each of its options, so `cli` is left out."""


def too_large() -> set[str]:
    found = set()
    for file in PACKAGE.rglob("*.py"):
        name = file.relative_to(PACKAGE).as_posix()
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not name.startswith("cli/"):
                names = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                parameters = len(names) - (names[:1] in (["self"], ["cls"]))
                if parameters > PARAMETERS or node.end_lineno - node.lineno + 1 > LINES:
                    found.add(f"{name}: {node.name}")
    return found


def test_no_function_is_too_large_and_no_exception_is_out_of_date():
    assert too_large() == set(EXCEPTIONS)


def test_nothing_private_of_numba_is_used():
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [each.name for each in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                assert not name.startswith(("numba.core", "numba.np", "numba.cpython", "llvmlite")), f"{file}: {name}"
