"""What every ranker scores here, kept or held against another run: another processor, or one that poses as another.

python -m benchmarks.bits here.npz
OPENBLAS_CORETYPE=Haswell python -m benchmarks.bits here.npz
NUMBA_CPU_NAME=x86-64 NUMBA_CPU_FEATURES= NUMBA_CACHE_DIR=/tmp/plain python -m benchmarks.bits here.npz
"""

import sys
import warnings
from pathlib import Path

import numpy as np

import toprank as tr
from toprank import rankers

warnings.simplefilter("ignore")
TWO_GRADES = {"PerceptronAtK", "SGDAtK", "OnePassMiniBatch", "SVMMap", "SVMPerf", "PermuRank"}


def main(file: Path) -> None:
    data = tr.datasets.make_graded(n_queries=40, n_features=19, random_state=0)
    binary = tr.QueryDataset.from_arrays(data.X, (data.y > 2).astype(int), data.qid)
    found = {}
    for name in rankers.__all__:
        lists = binary if name in TWO_GRADES else data
        found[name] = getattr(rankers, name)().fit_queries(lists).predict(lists)
    if not file.exists():
        np.savez(file, **found)
        return print(f"kept in {file}; run again, elsewhere, to compare")
    for name, before in np.load(file).items():
        gap = np.abs(found[name] - before).max() / np.abs(before).max()
        print(f"{name:<22} {'the same bits' if gap == 0 else f'{gap:.1e} of the largest score'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
