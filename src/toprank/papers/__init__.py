"""The papers' figures and tables, recomputed: one package each, loaded on first use."""

from __future__ import annotations

import importlib


def __getattr__(name: str) -> object:
    from .reproduce import papers

    if name.replace("_", "-") in papers():
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
