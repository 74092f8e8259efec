"""The tasks of the precision-at-the-top experiments: published files in, seeded 70/30 splits out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from ..._typing import AnyArray, Floats
from ...contests.search import fingerprint
from ...data.csr import dense
from ...data.dataset import QueryDataset
from ...data.letor import read_letor
from ...data.splits import SUFFIXES, stacked
from ...data.tables import read_table
from ...errors import InputError


@dataclass(frozen=True)
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

    def paths(self, root: Path) -> list[Path]:
        """Return the files, as they are or compressed; nothing where one is missing."""
        places = [[root / self.folder / f"{name}{suffix}" for suffix in SUFFIXES] for name in self.files]
        found = [next(filter(Path.is_file, each), None) for each in places]
        return [path for path in found if path is not None] if all(found) else []

    def read(self, root: Path) -> tuple[AnyArray, Floats]:
        """Return float32 features and labels 0/1 of all files together."""
        paths = self.paths(root)
        if not paths:
            raise InputError(f"{self.title} is not in {root}: put {', '.join(self.files)} in {root / self.folder}")
        if self.files == ("Info.txt", "Features.txt"):
            X, y = np.loadtxt(paths[1], dtype=np.float32, ndmin=2), np.loadtxt(paths[0], usecols=0, ndmin=1)
        else:
            rows = stacked([self._part(path) for path in paths])
            X, y = np.asarray(dense(rows.X), dtype=np.float32), rows.y
        return X, (y > 0 if self.positive is None else y == self.positive).astype(np.float64)

    def _part(self, path: Path) -> QueryDataset:
        if self.label:
            return read_table(path, label=self.label, qid=None)
        return read_letor(path, zero_based=False, one_list=True)


COVERTYPE = {
    f"covtype-{c}": Task(f"Covertype, class {c}", "covtype", ("covtype.csv",), c, "Cover_Type", scale=True)
    for c in range(1, 8)
}
"""The paper does not say which of the seven classes is the positive one."""
TASKS = {
    "covtype-4": COVERTYPE["covtype-4"],
    "covtype-1": COVERTYPE["covtype-1"],
    "ijcnn": Task("IJCNN", "ijcnn1", ("ijcnn1.trn", "ijcnn1.t")),
    "adult": Task("Adult", "a9a", ("a9a", "a9a.t")),
    "letter": Task("Letter, A", "letter", ("letter.scale", "letter.scale.t"), 1),
    "cod-rna": Task("Cod-RNA", "cod-rna", ("cod-rna", "cod-rna.t"), scale=True),
    "kdd-cup-2008": Task("KDD Cup 2008", "kddcup2008", ("Info.txt", "Features.txt"), scale=True),
    "ppi": Task("PPI", "ppi", ("ppi",), scale=True),
}
"""The paper's seven data sets; of Covertype a rare class and a common one (`covertype` has all seven)."""
KNOWN = {**TASKS, **COVERTYPE}


@lru_cache(maxsize=1)
def rows_of(task: Task, root: Path) -> tuple[AnyArray, Floats]:
    """Return all rows of a task, kept for the next call."""
    return task.read(root)


@lru_cache(maxsize=1)
def split_of(task: Task, root: Path, seed: int, max_rows: int | None) -> Split:
    """Return the split of one seed, kept for the next call."""
    parts = split(*rows_of(task, root), seed, max_rows=max_rows)
    if len(np.unique(parts.y)) < 2 or not parts.y_test.any():
        raise InputError(f"{len(parts.y)} rows of {task.title} to learn from are too few: take more than {max_rows}")
    return parts.scaled() if task.scale else parts


@lru_cache(maxsize=32)
def digest_of(task: Task, root: Path) -> str:
    """Return a digest of a task's rows."""
    return fingerprint(QueryDataset.from_arrays(*rows_of(task, root)))
