"""`toprank doctor`: what is installed here, where compiled code is kept, and whether learning works."""

from __future__ import annotations

import os
import platform
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from .._tables import Table
from .._version import __version__
from ._common import answer
from ._options import JSON, command

CORE = ("numpy", "scipy", "scikit-learn", "numba", "narwhals", "click", "rich", "msgspec")
EXTRAS = {
    "parquet": ("pyarrow",),
    "excel": ("openpyxl",),
    "trees": ("lightgbm", "xgboost"),
    "onnx": ("onnx", "onnxruntime"),
    "sql": ("duckdb",),
    "plot": ("matplotlib",),
    "serve": ("starlette", "uvicorn", "prometheus_client"),
    "dask": ("distributed", "pyarrow"),
    "torch": ("torch",),
}
"""The modules that each extra brings."""


@command()
def doctor(as_json: bool = JSON) -> None:
    """Show versions, extras, threads and the folder of compiled code, and try whether learning works.

    The last line says whether a ranker learned what it should; exit code 1 if it did not.

    Example: toprank doctor
    """
    rows = [("toprank", __version__), ("python", f"{platform.python_version()} on {platform.platform()}")]
    rows += [(name, _version(name)) for name in CORE]
    extras = {name: _missing(modules) for name, modules in EXTRAS.items()}
    rows += [
        (f"extra {name}", "installed" if not missing else f"missing: {missing}") for name, missing in extras.items()
    ]
    rows += [("processors", str(os.cpu_count())), ("compiled code", _folder())]
    learned, said = self_test()
    values: dict[str, Any] = {"facts": dict(rows), "learning_works": learned}
    answer(as_json, values, Table(("what", "here"), rows), said)
    if not learned:
        sys.exit(1)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _missing(modules: tuple[str, ...]) -> str:
    return ", ".join(module for module in modules if find_spec(module) is None)


def _folder() -> str:
    """Return where numba keeps compiled code, or why it keeps none."""
    from ..core import sorting

    stats = getattr(sorting.sort_down, "stats", None)
    if stats is None:
        return "compiling is switched off (NUMBA_DISABLE_JIT)"
    return str(stats.cache_path or "not kept: NUMBA_CACHE_DIR must name a folder that can be written to")


def self_test() -> tuple[bool, str]:
    """Learn from generated queries, and compare the measure with that of a random order; return what came of it."""
    import numpy as np

    import toprank as tr

    start = time.perf_counter()
    data = tr.datasets.make_graded(n_queries=40, random_state=0)
    ranker = tr.ListNet().fit_queries(data[:20])
    test = data[20:]
    learned = tr.evaluate(ranker, test, ["ndcg@10"]).mean["ndcg@10"]
    random = tr.evaluate(np.zeros(test.n_docs), test, ["ndcg@10"]).mean["ndcg@10"]
    took = time.perf_counter() - start
    better = learned > random + 0.1
    words = "learning works" if better else "learning does NOT work"
    return better, f"{words}: ndcg@10 {learned:.4f} on new queries, {random:.4f} in random order; {took:.1f} s"
