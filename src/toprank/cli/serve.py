"""`toprank serve`: rank, learn from feedback, lose nothing."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Any

import click

from .._files import read_whole
from ..errors import InputError, MissingExtraError
from ._common import busy, json_option, print_json


class _WithKeys(click.Command):
    """`serve keys …` is a group of its own behind a command that takes a model."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args[:1] == ["keys"]:
            keys.main(args[1:], prog_name=f"{ctx.command_path} keys", standalone_mode=False)
            ctx.exit()
        return super().parse_args(ctx, args)


@click.command(cls=_WithKeys)
@click.argument("model", required=False)
@click.option("--store", help="Where events and the state are kept; it is made with MODEL where it is not there.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; others need --keys.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0 takes a free one.")
@click.option("--keys", "keys_file", help="File with the keys; without it, only this machine is served.")
@click.option(
    "--clicks", is_flag=True, help="Let any linear MODEL learn from clicks: go on from its weights with PDGD."
)
@click.option("--keep", metavar="TIME", help="Forget events older than this, as in 30d or 12h.  [default: never]")
@click.option("--wait", metavar="TIME", default="30m", show_default=True, help="How long rankings wait for feedback.")
@click.option("--wait-mb", type=click.IntRange(1), default=256, show_default=True, help="Most memory that they take.")
@click.option(
    "--rate", type=click.FloatRange(0, min_open=True), default=10_000, show_default=True, help="Requests/s per key."
)
@click.option("--log", default="-", show_default=True, help="Where a JSON line per request goes; `none` for nowhere.")
@click.option("--follow", metavar="URL", help="Be a replica of this server: rank with its model, and do not learn.")
@click.option(
    "--verify", metavar="DB", help="Replay a store and compare it with its state to the bit, instead of serving."
)
@click.option("--demo", is_flag=True, help="Serve a search of the standard library that learns from your clicks.")
@json_option
def serve(
    model: str | None,
    store: str | None,
    host: str,
    port: int,
    keys_file: str | None,
    clicks: bool,
    keep: str | None,
    wait: str,
    wait_mb: int,
    rate: float,
    log: str,
    follow: str | None,
    verify: str | None,
    demo: bool,
    as_json: bool,
) -> None:
    """Rank by HTTP with a saved model, and learn from feedback: answered when it is on disk, never learned twice.

    SlamPerceptron, MinimaxPerceptron and OnlineListNet learn from labels, PDGD from clicks; others only rank. The store
    is one SQLite file. `toprank serve keys new NAME --keys keys.toml` makes a key; a replica's key for the other server
    is read from TOPRANK_KEY.

    \b
    Examples: toprank serve model.json --store rank.db
              toprank serve --demo
              toprank serve --verify rank.db
    """
    _needs_extra()
    if verify is not None:
        _verify(verify, as_json)
        return
    if sum((follow is not None, demo, model is not None)) > 1 or (follow is not None and store is not None):
        raise InputError("give one of MODEL, --demo and --follow; a replica has no --store")
    if follow is None and not demo and store is None:
        raise InputError("--store says where to keep what is learned, as in --store rank.db (or try --demo)")
    seconds, waiting = None if keep is None else _seconds(keep, "--keep"), _seconds(wait, "--wait")
    from ..serve import running
    from ..serve.app import App
    from ..serve.guard import Keys, Limits
    from ..serve.service import Service

    allowed = Keys(keys_file, rate)
    with running.listen(host, port, allowed) as bound:
        searched = None
        if follow is not None:
            follower = running.Follower(follow, os.environ.get("TOPRANK_KEY"))
            found = follower.fetch()
            assert found is not None
            service = Service(None, found.learner, nbytes=wait_mb * 1e6, seconds=waiting)
            service.served = found
            follower.follow(service)
        else:
            if demo:
                from ..serve.searching import Demo

                with busy("reading the standard library"):
                    searched = Demo()
                store = store or str(Path(tempfile.mkdtemp(prefix="toprank-")) / "demo.db")
                text = None if Path(store).exists() else searched.learner().model_text()
            else:
                text = None if model is None else _model_text(model, clicks)
            service = Service(
                running.open_store(store or "", text, model or "the model"), nbytes=wait_mb * 1e6, seconds=waiting
            )
            service.keep = seconds
        app = App(service, allowed, Limits(rate=rate), running.log_to(log), searched)
        address, number = bound.getsockname()[:2]
        url = f"http://{f'[{address}]' if ':' in address else address}:{number}"
        served = service.served
        name = type(served.learner.ranker).__name__
        if as_json:
            print_json({"url": url, "ranker": name, "version": served.version, "learns": served.learner.learns})
        else:
            who = "this machine only, no keys" if allowed.open else f"keys of {keys_file}"
            click.echo(f"serving {name}, version {served.version}, on {url} ({who})")
        running.run(app, bound)


def _needs_extra() -> None:
    for package in ("starlette", "uvicorn", "prometheus_client"):
        try:
            __import__(package)
        except ImportError:
            raise MissingExtraError(package, extra="serve", purpose="serving") from None


def _verify(path: str, as_json: bool) -> None:
    from ..serve.store import Store

    opened = Store(path)
    try:
        verdict = opened.verify()
    finally:
        opened.close()
    if as_json:
        equal = {"equal": verdict.difference is None, "difference": verdict.difference}
        print_json({"events": verdict.events, "oldest": verdict.oldest, "version": verdict.version, **equal})
    else:
        click.echo(str(verdict))
    if verdict.difference is not None:
        raise SystemExit(1)


def _model_text(path: str, clicks: bool) -> bytes:
    from ..rankers.persistence import parse
    from ..serve.learning import Learner, for_clicks

    text, name = read_whole(path)
    return Learner.text_of(for_clicks(parse(text, name))) if clicks else text


def _seconds(text: str, option: str) -> float:
    """Return a time like 30d, 12h, 5m or 10s in seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text)
    if found is None or float(found[1]) == 0:
        raise InputError(f"{option} takes a time like 30d, 12h, 5m or 10s, got {text!r}")
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[found[2]]


keys_option = click.option("--keys", "file", default="keys.toml", show_default=True, help="The file with the keys.")


@click.group()
def keys() -> None:
    """Make, list and revoke keys; only their hashes are kept.

    Example: toprank serve keys new shop --scopes rank,learn
    """


@keys.command("new")
@click.argument("name")
@click.option("--scopes", default="rank", show_default=True, help="Of rank, learn, admin, separated by commas.")
@click.option("--rate", type=click.FloatRange(0, min_open=True), help="Requests/s, where it differs from the server's.")
@keys_option
@json_option
def new(name: str, scopes: str, rate: float | None, file: str, as_json: bool) -> None:
    """Make a key and print it once.

    Example: toprank serve keys new shop --scopes rank,learn
    """
    _needs_extra()
    from ..serve.guard import SCOPES, new_key

    wanted: Any = tuple(scope.strip() for scope in scopes.split(",") if scope.strip())
    if not wanted or not set(wanted) <= set(SCOPES):
        raise InputError(f"--scopes takes {', '.join(SCOPES)}, separated by commas, got {scopes!r}")
    key = new_key(Path(file), name, wanted, rate)
    print_json({"name": name, "scopes": list(wanted), "key": key}) if as_json else click.echo(key)


@keys.command("list")
@keys_option
@json_option
def list_keys(file: str, as_json: bool) -> None:
    """List the names of the keys and what they are for.

    Example: toprank serve keys list --json
    """
    _needs_extra()
    from ..serve.guard import read_keys

    found = read_keys(Path(file))
    if as_json:
        print_json([{"name": key.name, "scopes": list(key.scopes), "rate": key.rate} for key in found])
    else:
        click.echo("\n".join(f"{key.name}  {', '.join(key.scopes)}" for key in found))


@keys.command("revoke")
@click.argument("name")
@keys_option
@json_option
def revoke(name: str, file: str, as_json: bool) -> None:
    """Take a key back; a running server notices within a second.

    Example: toprank serve keys revoke shop
    """
    _needs_extra()
    from ..serve.guard import read_keys, write_keys

    before = read_keys(Path(file))
    kept = [key for key in before if key.name != name]
    if len(kept) == len(before):
        raise InputError(f"{file} has no key {name!r}")
    write_keys(Path(file), kept)
    print_json({"revoked": name}) if as_json else click.echo(f"revoked {name}")
