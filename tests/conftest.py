"""Test set-up: a compilation cache keyed by the kernels' sources, and how property tests draw.

A cached kernel does not notice that a helper in another file changed, so every version of the kernels gets a cache
of its own.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from hypothesis import settings

ROOT = Path(__file__).parent.parent


def _source_hash() -> str:
    digest = hashlib.sha256()
    for path in sorted((ROOT / "src").rglob("*_kernels.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


os.environ["XDG_CACHE_HOME"] = str(ROOT / ".cache")  # a test leaves nothing in anybody's home
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".cache" / "numba" / _source_hash()))

# The first example pays for compilation, so there is no deadline; the same examples on every run, so that a red test
# stays red until it is mended (`make nightly` draws new ones).
settings.register_profile("default", deadline=None, max_examples=60, derandomize=True)
settings.register_profile("nightly", deadline=None, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
