"""`toprank info` and `toprank convert`: what is in a file, and the same in another format."""

from __future__ import annotations

from typing import Any

import click

from ._common import busy, json_option, print_json, read, show, table_options


@click.command()
@click.argument("data")
@table_options
@json_option
def info(data: str, columns: dict[str, Any], as_json: bool) -> None:
    """Say what is in a file of judged queries.

    DATA is LETOR text (plain, .gz, .bz2, .xz, .zst, or - for standard input), Parquet, CSV, or a mapped folder.

    Example: toprank info train.txt
    """
    import dataclasses

    summary = read(data, columns).info()
    if as_json:
        print_json(dataclasses.asdict(summary))
    else:
        show(str(summary))


@click.command()
@click.argument("source")
@click.argument("target")
@click.option(
    "--dtype", type=click.Choice(["float32", "float64"]), default="float32", show_default=True, help="Values of text."
)
@table_options
@json_option
def convert(source: str, target: str, dtype: str, columns: dict[str, Any], as_json: bool) -> None:
    """Turn a file of judged queries into another format.

    TARGET is LETOR text (also .gz, .bz2, .xz, .zst, or - for standard output), .parquet, or a folder (a name that ends
    in /) of arrays that open without being read: LETOR text is streamed into it, whatever its size.

    Examples: toprank convert train.txt train.parquet; toprank convert big.txt.gz big/
    """
    from .._files import is_standard_output
    from ..data import files

    with busy(f"converting {source}"):
        files.convert(source, target, **columns, dtype=dtype)
    if as_json and not is_standard_output(target):
        print_json({"source": source, "target": target})
    else:
        show(f"wrote {target}", err=is_standard_output(target))
