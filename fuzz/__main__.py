"""`python -m fuzz READER [--seconds N] [--runs N] [--seed N]`: coverage-guided fuzzing of one reader with atheris."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path

# Kernels that read text run as plain Python: their branches count as coverage, and an index out of bounds is an
# IndexError. Whatever else learns or scores picks functions by the types of their arguments, which only compiled code
# can (`make fuzz`: with bounds checked).
if {"letor", "table", "trec"} & set(sys.argv):
    os.environ["NUMBA_DISABLE_JIT"] = "1"

import atheris

MODULES = {
    "letor": ("toprank.data._letor_chunk", "toprank.data._letor_sink"),
    "trec": ("toprank.data.trec",),
    "model": ("toprank.rankers.persistence", "toprank.measures", "toprank.surrogates"),
    "table": ("toprank.data.tables",),
    "folder": ("toprank.data.mapped", "toprank.data.csr"),
    "export": ("toprank.export",),
}
"""What to measure the coverage of: loaded before anything else does it."""

CORPUS = Path(__file__).parent / "corpus"


def main() -> None:
    """Run until the time or the runs are used up; a broken promise ends the run and leaves `fuzz/found/READER-…`."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("reader", choices=sorted(path.name for path in CORPUS.iterdir()))
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--runs", type=int, default=-1)
    parser.add_argument("--seed", type=int, default=0, help="0 draws one")
    parser.add_argument("--found", type=Path, default=CORPUS.parent / "found", help="where broken promises are left")
    parser.add_argument("--grown", type=Path, default=CORPUS.parent / "grown", help="where inputs of interest are kept")
    chosen = parser.parse_args()

    with atheris.instrument_imports(include=["toprank.data", "toprank.rankers", "toprank.measures", "toprank.export"]):
        import tracemalloc

        for module in MODULES[chosen.reader]:
            importlib.import_module(module)

        from .mutators import MUTATORS
        from .readers import PROMISES

    promise, mutate = PROMISES[chosen.reader], MUTATORS[chosen.reader]
    found, grown = chosen.found, chosen.grown / chosen.reader
    for folder in (found, grown):
        folder.mkdir(parents=True, exist_ok=True)

    def custom(data: bytes, max_size: int, seed: int) -> bytes:
        import random

        rng = random.Random(seed)
        if rng.random() < 0.2:
            return atheris.Mutate(data, max_size)
        for _ in range(rng.choice((1, 1, 2, 4))):
            data = mutate(data, rng)
        return data[:max_size]

    def one(data: bytes) -> None:
        promise.check(data)

    for path in sorted((CORPUS / chosen.reader).iterdir()):
        promise.check(path.read_bytes())  # what the first use imports and allocates is not the input's doing
    tracemalloc.start()
    options = [
        f"-max_total_time={chosen.seconds}",
        f"-runs={chosen.runs}",
        f"-seed={chosen.seed}",
        f"-timeout={int(promise.seconds) * 12}",  # the first uses compile kernels; `promise` looks at the seconds
        "-rss_limit_mb=4096",
        "-max_len=8192",
        f"-artifact_prefix={found}/{chosen.reader}-",
        "-print_final_stats=1",
    ]
    atheris.Setup([sys.argv[0], *options, str(grown), str(CORPUS / chosen.reader)], one, custom_mutator=custom)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
