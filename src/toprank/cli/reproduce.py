"""`toprank reproduce`: a paper, figure by figure."""

from __future__ import annotations

import json

import click

from ._common import json_option, print_json


@click.command()
@click.argument("paper")
@click.argument("figure", required=False)
@click.option(
    "--out",
    default="exhibits",
    show_default=True,
    help="Folder for the data, tables and figures; each paper gets a folder inside it.",
)
@click.option("--data", help="A file, folder or data set name, for figures that run on your own stream.")
@json_option
def reproduce(paper: str, figure: str | None, out: str, data: str | None, as_json: bool) -> None:
    """Recompute a paper's figures and tables; an interrupted run goes on where it was.

    Without FIGURE, all of them. `toprank reproduce PAPER list` names them.

    Example: toprank reproduce online-perceptrons fig1 --out exhibits
    """
    from ..papers import reproduce as job

    if figure == "list":
        names = job.figures(paper)
        click.echo(json.dumps(list(names)) if as_json else "\n".join(f"{k:<20} {v}" for k, v in names.items()))
        return
    for exhibit, files in job.reproduce(paper, figure, out=out, data=data):
        if as_json:
            print_json({"name": exhibit.name, "files": [str(file) for file in files], "notes": list(exhibit.notes)})
        else:
            click.echo(f"{exhibit}\n\nwrote {', '.join(map(str, files))}\n")
