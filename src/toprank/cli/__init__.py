"""The command line: each command reads its arguments, calls one function and prints the result.

One module per group of commands. Libraries load inside the commands, so that `toprank --help` answers at once.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

import click

from .._progress import busy
from .._tables import wrap
from .._version import __version__
from ..errors import InputError, MissingExtraError, WorkersLost
from . import (
    catalogs,
    certify,
    clicks,
    compare,
    data,
    demo,
    doctor,
    engines,
    export,
    fuse,
    judging,
    models,
    plan,
    reproduce,
    serve,
)


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line: exit code 2 and one clear line on bad input, never a traceback."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            sys.exit(cli.main(args=args, prog_name="toprank", standalone_mode=False) or 0)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        sys.exit(0)
    except click.ClickException as error:
        _fail(error.format_message())
    except (InputError, MissingExtraError, WorkersLost) as error:
        _fail(str(error))
    except BrokenPipeError:  # `toprank rank … | head` is not an error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (KeyboardInterrupt, click.Abort):
        click.echo("toprank: interrupted", err=True)
        sys.exit(130)


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    click.echo(f"toprank: warning: {' '.join(str(message).split())}", err=True)


def _fail(message: str) -> None:
    click.echo(f"toprank: error: {' '.join(message.split())}", err=True)
    sys.exit(2)


class _Group(click.Group):
    """Lists the commands by what they are for, each with the whole first sentence of its help."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        longest = max(map(len, self.commands))
        for job, commands in JOBS.items():
            with formatter.section(job):
                rows = [(str(command.name).ljust(longest), _sentence(command)) for command in commands]
                formatter.write_dl(rows)


def _sentence(command: click.Command) -> str:
    text = " ".join((command.help or "").partition("\n\n")[0].split())
    return text[:1].upper() + text[1:]


def _help(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the paragraphs of a command's help, and its examples one by one, folded between words."""
    for paragraph in (command.help or "").replace("\b\n", "").split("\n\n"):
        text = " ".join(paragraph.split())
        if not text.startswith("Example"):
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(text)
            continue
        formatter.write_paragraph()
        formatter.write("Examples:\n")
        for example in re.split(r"(?:;\s|\s)(?=toprank )", text.partition(":")[2].strip()):
            folded = wrap(example, formatter.width - 4)
            formatter.write("  " + " \\\n      ".join(folded) + "\n")


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="toprank")
def cli() -> None:
    """Learning to rank that optimises the measure you are judged by."""


def _moving(name: str, command: Callable[..., Any]) -> Callable[..., Any]:
    """Show that work is going on from the first moment, before anything is loaded; what is printed ends it."""

    @wraps(command)
    def called(*args: Any, **options: Any) -> Any:
        with busy(name):
            return command(*args, **options)

    return called


JOBS: dict[str, tuple[click.Command, ...]] = {
    "Look and prepare": (demo.demo, data.info, data.convert, catalogs.rankers, catalogs.measures, doctor.doctor),
    "Learn and rank": (models.fit, models.rank, clicks.clicks),
    "Judge and compare": (
        *(models.evaluate, compare.compare, plan.plan, judging.judge, fuse.fuse),
        *(certify.certify, certify.advise),
    ),
    "Deploy": (export.export, export.verify_export, engines.push, serve.serve),
    "Features of search engines": (export.features, export.read_logs, engines.pull_features),
    "Papers": (reproduce.reproduce,),
}
"""The commands by what they are for, in the order of a user's life."""

for command in (one for commands in JOBS.values() for one in commands):
    command.format_help_text = partial(_help, command)  # type: ignore[method-assign]
    if command.callback is not None and not isinstance(command, click.Group):
        command.callback = _moving(f"toprank {command.name}", command.callback)
    cli.add_command(command)
