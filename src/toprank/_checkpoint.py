"""Finished pieces of a long job, kept on disk so that an interrupted run goes on where it was."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ._files import replacing
from ._version import __version__


def plain(value: Any) -> Any:
    """Return arrays, numbers and nested containers as JSON can hold them; a number that is not finite becomes None.

    >>> plain({"a": np.array([1.0, np.nan]), 2: (np.int64(3),)})
    {'a': [1.0, None], '2': [3]}
    """
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


@dataclass(frozen=True)
class Checkpoint:
    """Finished pieces of a long experiment, one small JSON file each, so that an interrupted run goes on where it was.

    >>> import tempfile
    >>> cells = Checkpoint(Path(tempfile.mkdtemp()))
    >>> cells.get({"fold": 1}, lambda: {"map": 0.5}), cells.get({"fold": 1}, lambda: {"map": 0.0})
    ({'map': 0.5}, {'map': 0.5})
    """

    folder: Path | None
    """Where the pieces are kept; None keeps nothing."""

    def find(self, key: Mapping[str, Any]) -> Any:
        """Return the stored result for `key`, or None; a damaged piece counts as none."""
        if self.folder is None:
            return None
        text, file = self._place(key)
        try:
            stored = json.loads(file.read_text(encoding="utf-8"))
            return stored["result"] if stored["key"] == json.loads(text) else None
        except (FileNotFoundError, UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError):
            return None

    def get(self, key: Mapping[str, Any], compute: Callable[[], Any]) -> Any:
        """Return the stored result for `key` (all that the result depends on, as JSON), or compute and store it."""
        found = self.find(key)
        if found is not None:
            return found
        result = plain(compute())
        if self.folder is not None:
            text, file = self._place(key)
            self.folder.mkdir(parents=True, exist_ok=True)
            with replacing(file) as draft:
                draft.write_text(json.dumps({"key": json.loads(text), "result": result}), encoding="utf-8")
        return result

    def _place(self, key: Mapping[str, Any]) -> tuple[str, Path]:
        assert self.folder is not None
        text = json.dumps(key, sort_keys=True)
        return text, self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"


def piece(pieces: Checkpoint, compute: Callable[[], Any], **key: Any) -> Any:
    """Return a finished piece, or compute it: one of other data, settings, version or code does not count."""
    if pieces.folder is None:
        return pieces.get({}, compute)
    return pieces.get({**key, "version": __version__, "code": source_digest(Path(__file__).parent)}, compute)


NOT_IN_EXPERIMENTS = ("cli", "demo", "export", "report", "serve", "papers/page.py", "papers/reproduce.py")
"""What no experiment uses: an edit there leaves finished pieces as they are."""


@lru_cache(maxsize=1)
def source_digest(package: Path) -> str:
    """Return a digest of the source that experiments use: what an edited program computed does not come back."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        if not any(path.is_relative_to(package / apart) for apart in NOT_IN_EXPERIMENTS):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
