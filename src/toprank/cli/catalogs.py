"""`toprank measures` and `toprank rankers`: what there is to choose from."""

from __future__ import annotations

from typing import Any

from ._common import print_json, show
from ._options import JSON, command


@command()
def measures(as_json: bool = JSON) -> None:
    """List the measures and the conventions they can follow.

    Example: toprank measures
    """
    from ..measures import catalog

    tables = catalog()
    if as_json:
        print_json([{"columns": list(t.columns), "rows": [list(row) for row in t.rows]} for t in tables])
    else:
        for number, table in enumerate(tables):
            if number:
                show("")
            show(table)


@command()
def rankers(as_json: bool = JSON) -> None:
    """List the rankers and their hyper-parameters.

    Example: toprank rankers
    """
    import inspect

    from .. import rankers as package

    rows: list[dict[str, Any]] = []
    for name in package.__all__:
        kind = getattr(package, name)
        params = {p.name: p.default for p in inspect.signature(kind).parameters.values()}
        rows.append({"ranker": name, "summary": (inspect.getdoc(kind) or "").splitlines()[0], "params": params})
    if as_json:
        print_json(rows)
        return
    for row in rows:
        show(f"{row['ranker']}  {row['summary']}")
        show("    " + ", ".join(f"{key}={value!r}" for key, value in row["params"].items()))
