"""Run every benchmark (or the ones named), print one table, and write it as JSON.

    python -m benchmarks [reader evaluation start …] [--json bench.json]

Absolute figures move with the machine; the ratios are what counts: how many times better ours is than the named peer,
and how many passes over X (`X @ w`, one BLAS thread) a job takes.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import platform
import sys
from pathlib import Path

from toprank._tables import Table

from . import Row

FIELDS = ("job", "ours", "peer", "ratio", "passes over X", "note")


def modules() -> list[str]:
    """Every module of this folder that has a `run()` is a benchmark: there is no list to forget."""
    found = sorted(module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    return [name for name in found if name != "__main__" and "def run(" in _source(name)]


def _source(name: str) -> str:
    return (Path(__file__).parent / f"{name}.py").read_text(encoding="utf-8")


def show(rows: list[Row]) -> str:
    return Table(FIELDS, [_cells(**row) for row in rows]).plain()


def _cells(job, ours, unit, peer, theirs, ratio, passes, note) -> tuple[object, ...]:
    def number(value: float | None, digits: str) -> str:
        return "" if value is None else format(value, digits)

    def amount(value: float) -> str:
        return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"

    beside = "" if peer is None else f"{peer}: {amount(theirs)}"
    return job, f"{amount(ours)} {unit}", beside, number(ratio, ".1f"), number(passes, ",.2f"), note


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"which of: {', '.join(modules())}")
    parser.add_argument("--json", help="where to write the figures")
    args = parser.parse_args()
    unknown = set(args.names) - set(modules())
    if unknown:
        parser.error(f"unknown benchmark: {', '.join(sorted(unknown))}")
    results: dict[str, list[Row]] = {}
    for name in args.names or modules():
        print(f"{name} …", file=sys.stderr, flush=True)
        results[name] = importlib.import_module(f"benchmarks.{name}").run()
    print(show([row for rows in results.values() for row in rows]))
    if args.json:
        machine = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
        Path(args.json).write_text(json.dumps({"machine": machine, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
