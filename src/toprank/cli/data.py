"""`toprank info` and `toprank convert`: what is in a file, and the same in another format."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

from ._common import answer, busy, check_outputs, print_json, read, show
from ._options import COLUMNS, JSON, MISSING, command, option


@command()
def info(
    data: str,
    missing: Literal["error", "zero", "median", "indicator"] = MISSING,
    columns: dict[str, Any] = COLUMNS,
    as_json: bool = JSON,
) -> None:
    """Say what is in a file of judged queries.

    DATA is LETOR text (plain, .gz, .bz2, .xz, .zst, or - for standard input), Parquet, CSV, or a mapped folder.

    Missing cells are counted column by column, and never refused here; the other lines are about the cells that are
    there, or with --missing zero, median or indicator about the filled table.

    Example: toprank info train.txt
    """
    import dataclasses

    from ..model.missing import fill_missing

    found = read(data, columns, "keep")
    summary = (found if missing == "error" else fill_missing(found, missing)).info()
    answer(as_json, dataclasses.asdict(summary), str(summary))


@command()
def convert(
    source: str,
    target: str,
    dtype: Literal["float32", "float64"] = option("Type of the values that are read from text.", default="float32"),
    missing: Literal["error", "zero", "median", "indicator"] = MISSING,
    columns: dict[str, Any] = COLUMNS,
    as_json: bool = JSON,
) -> None:
    """Turn a file of judged queries into another format.

    TARGET is LETOR text (also .gz, .bz2, .xz, .zst, or - for standard output), .parquet, or a folder (a name that ends
    in /) of arrays that open without being read: LETOR text is streamed into it, whatever its size.

    Examples: toprank convert train.txt train.parquet; toprank convert big.txt.gz big/
    """
    from .._files import is_standard_output
    from ..data import files
    from ..model.missing import fill_missing

    check_outputs([target], [source])
    with busy(f"converting {source}"):
        kept: Any = "error" if missing == "error" else "keep"
        fill = partial(fill_missing, missing=missing)
        files.convert(source, target, **columns, dtype=dtype, missing=kept, change=fill)
    if as_json and not is_standard_output(target):
        print_json({"source": source, "target": target})
    else:
        show(f"wrote {target}", err=is_standard_output(target))
