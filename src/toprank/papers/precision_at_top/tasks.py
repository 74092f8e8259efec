"""The data of the precision-at-the-top experiments: published files in, seeded 70/30 splits out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..._typing import AnyArray, Floats, Matrix
from ...data.csr import dense
from ...data.letor import read_letor
from ...data.splits import SUFFIXES
from ...data.tables import read_table
from ...errors import InputError


@dataclass(frozen=True)
class Task:
    """A binary task: where its files stand below the data folder, and which label is positive (None: the +1)."""

    title: str
    folder: str
    files: tuple[str, ...]
    positive: float | None = None
    label: str | None = None
    """Label column, where the files are tables."""
    scale: bool = False
    """Whether features come raw and are brought to [0, 1]; the others are published scaled, and stay so."""

    def paths(self, root: Path) -> list[Path] | None:
        """Return the files, as they are or compressed; None where one is missing."""
        found = [
            next((p for s in SUFFIXES if (p := root / self.folder / f"{f}{s}").is_file()), None) for f in self.files
        ]
        return None if None in found else [path for path in found if path is not None]

    def read(self, root: Path) -> tuple[AnyArray, Floats]:
        """Return float32 features and labels 0/1 of all files together."""
        paths = self.paths(root)
        if paths is None:
            raise InputError(f"{self.title} is not in {root}: put {', '.join(self.files)} in {root / self.folder}")
        if self.files == ("Info.txt", "Features.txt"):
            X, y = np.loadtxt(paths[1], dtype=np.float32, ndmin=2), np.loadtxt(paths[0], usecols=0, ndmin=1)
            return np.ascontiguousarray(X), (y > 0).astype(np.float64)
        if self.label is not None:
            parts = [read_table(path, label=self.label, qid=None) for path in paths]
        else:
            width = max(read_letor(path, zero_based=False).n_features for path in paths)
            parts = [read_letor(path, zero_based=False, n_features=width) for path in paths]
        X = np.vstack([_narrow(part.X) for part in parts])
        y = np.concatenate([part.y for part in parts])
        return X, (y > 0 if self.positive is None else y == self.positive).astype(np.float64)


def _covertype(positive: int) -> Task:
    return Task(f"Covertype, class {positive}", "covtype", ("covtype.csv",), positive, "Cover_Type", scale=True)


COVERTYPE = {f"covtype-{c}": _covertype(c) for c in range(1, 8)}
"""The paper does not say which of the seven classes is the positive one."""
TASKS = {
    "covtype-4": _covertype(4),
    "covtype-1": _covertype(1),
    "ijcnn": Task("IJCNN", "ijcnn1", ("ijcnn1.trn", "ijcnn1.t")),
    "adult": Task("Adult", "a9a", ("a9a", "a9a.t")),
    "letter": Task("Letter, A", "letter", ("letter.scale", "letter.scale.t"), 1),
    "cod-rna": Task("Cod-RNA", "cod-rna", ("cod-rna", "cod-rna.t"), scale=True),
    "kdd-cup-2008": Task("KDD Cup 2008", "kddcup2008", ("Info.txt", "Features.txt"), scale=True),
    "ppi": Task("PPI", "ppi", ("ppi",), scale=True),
}
"""The paper's seven data sets; of Covertype a rare class and a common one (`covertype` has all seven)."""


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test rows of one seed."""

    X: AnyArray
    y: Floats
    X_test: AnyArray
    y_test: Floats

    def scaled(self) -> Split:
        """Bring every feature to [0, 1] over the training rows."""
        low, high = self.X.min(axis=0), self.X.max(axis=0)
        width = np.where(high > low, high - low, 1).astype(self.X.dtype)
        return Split((self.X - low) / width, self.y, (self.X_test - low) / width, self.y_test)


def split(X: AnyArray, y: Floats, seed: int, share: float = 0.7, max_rows: int | None = None) -> Split:
    """Deal the rows out at random: `share` of them (of at most `max_rows`) for training."""
    order = np.random.default_rng(seed).permutation(len(y))[:max_rows]
    train, test = order[: int(share * len(order))], order[int(share * len(order)) :]
    return Split(X[train], y[train], X[test], y[test])


def _narrow(X: Matrix) -> AnyArray:
    return np.asarray(dense(X), dtype=np.float32)
