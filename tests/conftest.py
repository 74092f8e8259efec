"""Test set-up: a compilation cache inside the project, and how property tests draw."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from hypothesis import settings

ROOT = Path(__file__).parent.parent


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts a job in the background so; tests interrupt
    signal.signal(signal.SIGINT, signal.default_int_handler)
home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
os.environ.setdefault("TOPRANK_ENGINES", str(home / "toprank-engines"))  # where `make engines` puts what it fetches
os.environ["XDG_CACHE_HOME"] = str(ROOT / ".cache")  # a test leaves nothing in anybody's home
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".cache" / "numba"))

# The first example pays for compilation, so there is no deadline; the same examples on every run, so that a red test
# stays red until it is mended (`make nightly` draws new ones).
settings.register_profile("default", deadline=None, max_examples=60, derandomize=True)
settings.register_profile("nightly", deadline=None, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
