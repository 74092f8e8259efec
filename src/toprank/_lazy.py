"""Public names that load on first use, so that `import toprank` stays light.

The stub `__init__.pyi` is the one list of public names: type checkers read it, and so does this module. Each of its
lines is `from .module import Name as Name` (or `from . import module as module`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path


def attach(package: str, init_file: str) -> tuple[Callable[[str], object], list[str]]:
    """Return `__getattr__` and `__all__` of a package from the stub beside its `__init__.py`."""
    home: dict[str, str] = {}
    for line in Path(init_file).with_suffix(".pyi").read_text(encoding="utf-8").splitlines():
        if line.startswith("from "):
            module, _, names = line.removeprefix("from ").partition(" import ")
            for name in names.split(","):
                home[name.partition(" as ")[0].strip()] = module

    def load(name: str) -> object:
        module = home.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if module == ".":
            return importlib.import_module(f".{name}", package)
        return getattr(importlib.import_module(module, package), name)

    return load, sorted(home)
