"""What the demo learned, kept between calls, so that a second question need not wait for the learning."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from .._version import __version__
from ..errors import InputError
from ..rankers.base import Ranker
from ..rankers.persistence import load

if TYPE_CHECKING:
    from .job import Library


def recall(library: Library) -> Ranker | None:
    """Return what was learned from just these documents by this version of the demo, None where nothing was."""
    try:
        return load(_place(library))
    except (InputError, OSError):  # nothing there, or nothing that can be read: learn
        return None


def remember(library: Library, ranker: Ranker) -> None:
    """Keep a ranker for `recall`; where the folder cannot be written, nothing is kept."""
    place = _place(library)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        ranker.save(place)
    except (InputError, OSError):
        return


def _place(library: Library) -> Path:
    """Return the file for these documents and this code, in the user's cache folder."""
    made_of = sha256(__version__.encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        made_of.update(source.read_bytes())
    for document in library.collection.documents:
        made_of.update(repr(document).encode())
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "toprank" / "demo" / f"{made_of.hexdigest()[:32]}.json"
