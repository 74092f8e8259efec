"""Run every benchmark (or the ones named), print one table, and write it as JSON.

    python -m benchmarks [reader evaluation start …] [--json bench.json]

Absolute figures move with the machine; the ratios are what counts.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import platform
from pathlib import Path

from toprank._tables import Table

FIELDS = ("job", "ours", "peer", "ratio", "unit", "note")


def modules() -> list[str]:
    """Every module of this folder that has a `run()` is a benchmark: there is no list to forget."""
    found = sorted(module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    return [name for name in found if name != "__main__" and "def run(" in _source(name)]


def _source(name: str) -> str:
    return (Path(__file__).parent / f"{name}.py").read_text(encoding="utf-8")


def show(rows: list[dict[str, object]]) -> str:
    return Table(FIELDS, [[row.get(field) for field in FIELDS] for row in rows], digits=3).plain()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"which of: {', '.join(modules())}")
    parser.add_argument("--json", help="where to write the figures")
    args = parser.parse_args()
    unknown = set(args.names) - set(modules())
    if unknown:
        parser.error(f"unknown benchmark: {', '.join(sorted(unknown))}")
    results: dict[str, list[dict[str, object]]] = {}
    for name in args.names or modules():
        results[name] = importlib.import_module(f"benchmarks.{name}").run()
        print(f"\n{name}\n{show(results[name])}", flush=True)
    if args.json:
        machine = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
        Path(args.json).write_text(json.dumps({"machine": machine, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
