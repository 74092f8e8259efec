"""LETOR text to arrays, and back: MB/s against scikit-learn, XGBoost and a dataframe, and the peak of memory.

The file has the shape of MSLR-WEB (136 features, five grades, 120 documents per query) and is made here from a seed.
Every reader parses the same bytes, warm in the page cache; the best of several runs counts.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import toprank as tr

from . import Row, row

ROWS, FEATURES = 150_000, 136

# MSLR-WEB describes each document by 25 groups of features, each for five streams (body, anchor, title, url, all),
# and by 11 features of its own. A stream that a document lacks gives 0, or what the query gives all such documents.
PRESENT = (0.9, 0.15, 0.7, 0.35, 0.9)
GROUPS = "crlqtttmmsssssdddddbvdnnn"

PEAK = """
import sys, toprank as tr
def peak():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) << 10
tr.read_letor(sys.argv[1], threads=2)
before = peak()
data = tr.read_letor(sys.argv[2], threads=2)
print((peak() - before) / sum(array.nbytes for array in (data.X, data.y, data.ptr, data.query_ids)))
"""


def make(rows: int = ROWS, seed: int = 0) -> tr.QueryDataset:
    """Features of the kinds, the sizes and the number of digits that MSLR-WEB has."""
    rng = np.random.default_rng(seed)
    query = np.arange(rows) // 120
    has = rng.random((rows, 5)) < PRESENT
    groups = [column(kind, stream, has[:, stream], query, rng) for kind in GROUPS for stream in range(5)]
    own = [
        np.floor(10 ** rng.uniform(0, size, rows)) * (rng.random(rows) < 0.8)
        for size in (1, 2, 4, 2, 4, 4.8, 2, 2, 1, 3, 2)
    ]
    return tr.QueryDataset.from_arrays(np.column_stack(groups + own), rng.integers(0, 5, rows), query + 1)


def column(kind: str, stream: int, has: np.ndarray, query: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    n, of_query = len(query), np.round(rng.uniform(5, 25, query[-1] + 1), 6)[query]
    size = 10 if stream in (0, 4) else 1.5  # body and the whole document are long, the other streams short
    return {
        "c": lambda: has * (1.0 + rng.integers(0, 3, n)),  # terms covered, and their ratio
        "r": lambda: has * np.round(rng.integers(1, 4, n) / 3, 6),
        "l": lambda: has * np.floor(rng.gamma(2, 20 * size, n)),  # length of the stream
        "q": lambda: of_query,  # inverse document frequency
        "t": lambda: has * np.floor(1 + rng.exponential(size, n)),  # term frequencies: sum, least, most
        "m": lambda: has * np.round(np.floor(1 + rng.exponential(3 * size, n)) / 3, 6),  # and their mean, variance
        "s": lambda: has * np.round(rng.beta(1, 5 * size, n), 6),  # the same by length
        "d": lambda: has * np.round(rng.gamma(2, 2 * size, n), 6),  # by inverse document frequency; BM25
        "b": lambda: has * 1.0,
        "v": lambda: has * np.round(1 - 0.2 * rng.random(n) ** 2, 6),  # cosine
        "n": lambda: -np.where(has, np.round(rng.gamma(20, 0.5, n), 6), of_query),  # language models
    }[kind]()


def best(job: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return min(times)


def read_xgboost(file: Path) -> None:
    import xgboost

    with warnings.catch_warnings(), xgboost.config_context(verbosity=0):
        warnings.simplefilter("ignore")  # its text reader is to go one day; it still is the fastest peer
        xgboost.DMatrix(f"{file}?format=libsvm", nthread=2)


def read_sklearn(file: Path) -> None:
    from sklearn.datasets import load_svmlight_file

    load_svmlight_file(str(file), query_id=True, dtype=np.float32)


def read_polars(file: Path) -> None:
    """Only for lines that write every feature in order: a table of words, each cut behind its colon."""
    import polars as pl

    columns = ["y", "qid", *(str(j) for j in range(1, FEATURES + 1))]
    table = pl.read_csv(file, separator=" ", has_header=False, new_columns=columns, infer_schema=False)
    table.select(
        pl.col("y").cast(pl.Float64),
        pl.col("qid").str.slice(4).cast(pl.Int64),
        *(pl.col(name).str.slice(len(name) + 1).cast(pl.Float32) for name in columns[2:]),
    ).to_numpy()


def peak_ratio(small: Path, large: Path) -> float:
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(small), str(large)], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder))


def measure(folder: Path) -> list[Row]:
    data = make()
    file, small = folder / "mslr.txt", folder / "small.txt"
    wrote = best(lambda: tr.write_letor(data, file), 3)
    tr.write_letor(data[:20], small)
    mega = os.path.getsize(file) / 1e6
    tr.read_letor(small)  # compiled from here on
    ours = {n: mega / best(lambda n=n: tr.read_letor(file, threads=n), 7) for n in (1, 2)}
    peers = {
        "xgboost, two threads": mega / best(lambda: read_xgboost(file), 3),
        "scikit-learn": mega / best(lambda: read_sklearn(file), 1),
        "polars, words cut at the colon": mega / best(lambda: read_polars(file), 3),
    }
    rows: list[Row] = [
        row(f"read {mega:.0f} MB of LETOR text, {n} thread{'s' * (n > 1)}", ours[n], "MB/s", peer=name, theirs=speed)
        for n in (2, 1)
        for name, speed in peers.items()
    ]
    theirs = mega / write_sklearn(data, folder / "sklearn.txt")
    rows.append(row("write LETOR text", mega / wrote, "MB/s", peer="scikit-learn, a fifth of the rows", theirs=theirs))
    if Path("/proc/self/status").exists():
        packed = folder / "mslr.txt.gz"
        packed.write_bytes(gzip.compress(file.read_bytes(), 1))
        for source, name in ((file, "plain"), (packed, "gzip")):
            note = "peak over the size of the arrays; 1.3 is the limit"
            rows.append(row(f"peak memory of reading, {name}", peak_ratio(small, source), "x arrays", note=note))
    return rows


def write_sklearn(data: tr.QueryDataset, file: Path) -> float:
    """Seconds for all rows, from a fifth of them."""
    from sklearn.datasets import dump_svmlight_file

    part = data[: data.n_queries // 5]
    seconds = best(lambda: dump_svmlight_file(part.X, part.y, str(file), query_id=part.qid), 1)
    return seconds * data.n_docs / part.n_docs


if __name__ == "__main__":
    from benchmarks.__main__ import show

    print(show(run()))
