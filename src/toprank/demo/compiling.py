"""Compile the kernels of some learners in a second process, while the first one reads and indexes the library.

On a machine where nothing is compiled yet that is most of the demo's time, and one process compiles one kernel at a
time. What the second process compiles reaches the first through numba's cache on disk; if it is late or fails, the
first one compiles for itself, and the numbers are the same.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def compiling_beside() -> Iterator[None]:
    """Keep a second process at work on the learners that come last in the demo."""
    if not sys.executable:
        yield
        return
    quiet = subprocess.DEVNULL
    beside = subprocess.Popen([sys.executable, "-m", __name__], stdin=quiet, stdout=quiet, stderr=quiet)
    try:
        yield
    finally:
        beside.terminate()
        beside.wait()


def main() -> None:
    """Fit the last learners of the demo on a handful of generated lists."""
    from ..data.synthetic import make_graded
    from .features import FEATURES
    from .job import contestants

    train, valid = (make_graded(n_queries=8, n_docs=12, n_features=len(FEATURES), random_state=seed) for seed in (0, 1))
    for candidate in reversed(contestants()[-3:]):
        candidate.rankers[0].fit_queries(train, valid=valid).certify(train)


if __name__ == "__main__":
    main()
