"""Queries in: data sets, readers, writers, splits, blocks and generators.

Public names are listed in `__init__.pyi` and load on first use.
"""

from .._lazy import attach as _attach

_load, __all__ = _attach(__name__, __file__)


def __getattr__(name: str) -> object:
    value = globals()[name] = _load(name)
    return value


def __dir__() -> list[str]:
    return list(__all__)
