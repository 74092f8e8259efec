"""`toprank measures` and `toprank rankers`: what there is to choose from."""

from __future__ import annotations

from ._common import answer
from ._options import JSON, command


@command()
def measures(as_json: bool = JSON) -> None:
    """List the measures and the conventions they can follow.

    Example: toprank measures
    """
    from ..measures import catalog

    measures, conventions = tables = catalog()
    values = [{"columns": list(table.columns), "rows": [list(row) for row in table.rows]} for table in tables]
    answer(as_json, values, measures, "", conventions)


@command()
def rankers(as_json: bool = JSON) -> None:
    """List the rankers and their hyper-parameters.

    Example: toprank rankers
    """
    import inspect

    from .. import rankers as package

    rows, lines = [], []
    for name in package.__all__:
        kind = getattr(package, name)
        params = {p.name: p.default for p in inspect.signature(kind).parameters.values()}
        summary = (inspect.getdoc(kind) or "").splitlines()[0]
        rows.append({"ranker": name, "summary": summary, "params": params})
        lines += [f"{name}  {summary}", "    " + ", ".join(f"{key}={value!r}" for key, value in params.items())]
    answer(as_json, rows, *lines)
