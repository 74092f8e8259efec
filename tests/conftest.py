"""Test set-up: a compilation cache keyed by the kernels' sources.

A cached kernel does not notice that a helper in another file changed, so every version of the kernels gets a cache of its own.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

ROOT = Path(__file__).parent.parent


def _source_hash() -> str:
    digest = hashlib.sha256()
    for path in sorted((ROOT / "src").rglob("*_kernels.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".cache" / "numba" / _source_hash()))
