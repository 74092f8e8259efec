"""Nearest names, for messages."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return " (did you mean …?)" where a known name is close, else nothing.

    >>> did_you_mean("ListNte", ["ListNet", "AdaRank"])
    " (did you mean 'ListNet'?)"
    >>> did_you_mean("zzz", ["ListNet"])
    ''
    """
    names = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(name.lower(), names, n=1, cutoff=cutoff)
    return f" (did you mean {names[close[0]]!r}?)" if close else ""
