"""`toprank serve`: rank, learn from feedback, lose nothing."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from .._files import read_whole
from .._keys import SCOPES, new_key, read_keys, write_keys
from ..errors import InputError, MissingExtraError
from ._common import busy, json_option, print_json

if TYPE_CHECKING:
    from ..serve.app import App
    from ..serve.guard import Keys
    from ..serve.learning import Learner


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
    from ..serve.app import App
    from ..serve.guard import Keys, Limits
    from ..serve.learning import Learner
    from ..serve.running import Follower
    from ..serve.service import Service
    from ..serve.store import Store

    allowed = Keys(keys_file, rate)
    with listen(host, port, allowed) as bound:
        searched = None
        if follow is not None:
            follower = Follower(follow, os.environ.get("TOPRANK_KEY"))
            found = follower.fetch()
            assert found is not None
            service = Service(found, most=wait_mb * 1e6, seconds=waiting)
            follower.follow(service)
        else:
            learner = None
            if demo:
                from ..demo.clicking import Clicking, beginner

                with busy("reading the standard library"):
                    searched = Clicking()
                store = store or str(Path(tempfile.mkdtemp(prefix="toprank-")) / "demo.db")
                if not Path(store).exists():
                    learner = Learner.of(beginner())
            elif model is not None:
                learner = _learner(model, clicks)
            service = Service(Store(store or "", learner), seconds, most=wait_mb * 1e6, seconds=waiting)
        app = App(service, allowed, Limits(rate=rate), _log_to(log), searched)
        address, number = bound.getsockname()[:2]
        url = f"http://{f'[{address}]' if ':' in address else address}:{number}"
        served = service.served
        name = type(served.ranker).__name__
        if as_json:
            print_json({"url": url, "ranker": name, "version": served.version, "learns": served.ranker.learns_from})
        else:
            who = "this machine only, no keys" if allowed.open else f"keys of {keys_file}"
            click.echo(f"serving {name}, version {served.version}, on {url} ({who})")
        run(app, bound)


def listen(host: str, port: int, keys: Keys) -> socket.socket:
    """Return a socket that listens; without keys, on this machine only."""
    import ipaddress

    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        if keys.open and not ipaddress.ip_address(found[4][0]).is_loopback:
            raise InputError(
                f"--host {host} is open to others, and there are no keys: make one (toprank serve keys new NAME --keys "
                "keys.toml) and give --keys, or listen on 127.0.0.1"
            )
        return socket.create_server(found[4][:2], family=found[0], backlog=2048)
    except OSError as error:
        raise InputError(f"{host}:{port} cannot be listened on: {error.strerror}") from None


def run(app: App, bound: socket.socket) -> None:
    """Serve until a signal comes; then answer what was begun, and close the store."""
    from ..serve.running import Server

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)  # uvicorn raises it again when it is done, and there is more to do
    try:
        Server(app).run(sockets=[bound])
    finally:
        app.service.stop()


def _needs_extra() -> None:
    for package in ("starlette", "uvicorn", "prometheus_client"):
        try:
            __import__(package)
        except ImportError:
            raise MissingExtraError(package, extra="serve", purpose="serving") from None


def _verify(path: str, as_json: bool) -> None:
    from ..serve.store import Store

    with closing(Store(path)) as opened:
        oldest, newest = opened.span
        events, difference = opened.verify()
    if as_json:
        equal = {"equal": difference is None, "difference": difference}
        print_json({"events": events, "oldest": oldest, "version": newest, **equal})
    else:
        told = difference or "snapshots and state are equal to the bit"
        click.echo(f"{events:,} events replayed from version {oldest:,} to {newest:,}: {told}")
    if difference is not None:
        raise SystemExit(1)


def _learner(path: str, clicks: bool) -> Learner:
    from ..rankers.pdgd import PDGD
    from ..rankers.persistence import parse
    from ..serve.learning import Learner

    text, name = read_whole(path)
    ranker = parse(text, name)
    return Learner.of(PDGD().start_at(ranker) if clicks else ranker)


def _log_to(where: str) -> TextIO | None:
    """Open where request lines go: `-` is standard error, `none` nowhere."""
    if where == "none":
        return None
    return sys.stderr if where == "-" else open(where, "a", buffering=1, encoding="utf-8")


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
    found = read_keys(Path(file))
    if as_json:
        print_json([{"name": name, "scopes": list(key.scopes), "rate": key.rate} for name, key in found.items()])
    else:
        click.echo("\n".join(f"{name}  {', '.join(key.scopes)}" for name, key in found.items()))


@keys.command("revoke")
@click.argument("name")
@keys_option
@json_option
def revoke(name: str, file: str, as_json: bool) -> None:
    """Take a key back; a running server notices with the next request.

    Example: toprank serve keys revoke shop
    """
    kept = read_keys(Path(file))
    if kept.pop(name, None) is None:
        raise InputError(f"{file} has no key {name!r}")
    write_keys(Path(file), kept)
    print_json({"revoked": name}) if as_json else click.echo(f"revoked {name}")
