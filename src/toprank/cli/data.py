"""`toprank info` and `toprank convert`: what is in a file, and the same in another format."""

from __future__ import annotations

from typing import Any, Literal

from ._common import answer, busy, check_outputs, print_json, read, show
from ._options import COLUMNS, JSON, command, option


@command()
def info(data: str, columns: dict[str, Any] = COLUMNS, as_json: bool = JSON) -> None:
    """Say what is in a file of judged queries.

    DATA is LETOR text (plain, .gz, .bz2, .xz, .zst, or - for standard input), Parquet, CSV, or a mapped folder.

    Example: toprank info train.txt
    """
    import dataclasses

    summary = read(data, columns).info()
    answer(as_json, dataclasses.asdict(summary), str(summary))


@command()
def convert(
    source: str,
    target: str,
    dtype: Literal["float32", "float64"] = option("Type of the values that are read from text.", default="float32"),
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

    check_outputs([target], [source])
    with busy(f"converting {source}"):
        files.convert(source, target, **columns, dtype=dtype)
    if as_json and not is_standard_output(target):
        print_json({"source": source, "target": target})
    else:
        show(f"wrote {target}", err=is_standard_output(target))
