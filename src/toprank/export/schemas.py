"""The published JSON schemas of our files."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any, Literal


def schema(kind: Literal["linear", "stumps", "trees", "additive", "model"]) -> dict[str, Any]:
    """Return the JSON Schema of a file: "model" is what `Ranker.save` writes, the others what export to json writes.

    >>> schema("linear")["title"]
    'toprank-linear'
    """
    text = (resources.files(__package__) / "published" / f"{kind}-1.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content
