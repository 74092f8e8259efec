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
from typing import TYPE_CHECKING, Any

import click

from .._files import read_whole
from .._keys import SCOPES, new_key, read_keys, revoke_key
from ..errors import InputError, needed
from ._common import answer, busy, check_outputs, print_json
from ._options import JSON, command, option, split_names

if TYPE_CHECKING:
    from ..serve.app import App
    from ..serve.guard import Keys
    from ..serve.learning import Learner
    from ..serve.running import Server

RATE = click.FloatRange(0, min_open=True)


class _WithKeys(click.Command):
    """`serve keys …` is a group of its own behind a command that takes a model."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args[:1] == ["keys"]:
            keys.main(args[1:], prog_name=f"{ctx.command_path} keys", standalone_mode=False)
            ctx.exit()
        return super().parse_args(ctx, args)


@command(cls=_WithKeys)
def serve(
    model: str | None,
    store: str | None = option("File that keeps events and the state; it is made with MODEL if it does not exist."),
    host: str = option("Address to listen on; one that other machines reach needs --keys.", default="127.0.0.1"),
    port: int = option("Port to listen on; 0 takes a free one.", default=8080, type=click.IntRange(0, 65535)),
    keys_file: str | None = option("File with the keys; without it, only this machine is served.", "--keys"),
    clicks: bool = option("Let any linear MODEL learn from clicks: go on from its weights with PDGD."),
    keep: str | None = option("Forget events older than this, as in 30d or 12h.  [default: never]", metavar="TIME"),
    wait: str = option("How long rankings wait for feedback.", default="30m", metavar="TIME"),
    wait_mb: int = option("Most memory that waiting rankings take, in MB.", default=256, type=click.IntRange(1)),
    rate: float = option("Most requests per second and key.", default=10_000, type=RATE),
    request_mb: float = option("Most that the events of one request may store, in MB.", default=256, type=RATE),
    key_mb: float = option(
        "Most that the events of one key may store in a day, in MB.", "--key-mb-per-day", default=20_000, type=RATE
    ),
    log: str = option("File for a JSON line per request; - is standard error, `none` nowhere.", default="-"),
    follow: str | None = option("Be a replica of this server: rank with its model, and do not learn.", metavar="URL"),
    stale: str = option(
        "A replica is not ready when the other server has not answered for so long.", default="30s", metavar="TIME"
    ),
    verify: str | None = option(
        "Do not serve: load the state of a store, learn all its events again, and compare the results to the bit.",
        metavar="DB",
    ),
    restore: str | None = option(
        "Do not serve: put a copy of this backup into the place of --store, which is kept under another name.",
        metavar="BACKUP",
    ),
    rollback: int | None = option(
        "Do not serve: make this version of --store the newest one, as the server's :rollback does.",
        metavar="N",
        type=click.IntRange(0),
    ),
    demo: bool = option("Serve a search of the standard library that learns from your clicks."),
    as_json: bool = JSON,
) -> None:
    """Rank over HTTP with a saved model and learn from feedback, which is saved before it is answered.

    SlamPerceptron, MinimaxPerceptron and OnlineListNet learn from labels, PDGD from clicks; others only rank. The store
    is one SQLite file. `toprank serve keys new NAME --keys keys.toml` makes a key; a replica's key for the other server
    is read from TOPRANK_KEY.

    \b
    Examples: toprank serve model.json --store rank.db
              toprank serve --demo
              toprank serve --verify rank.db
              toprank serve --rollback 1200 --store rank.db
              toprank serve --restore rank-1200-17.db --store rank.db
    """
    _needs_extra()
    if verify is not None:
        _verify(verify, as_json)
        return
    if rollback is not None:
        _roll_back(rollback, store, as_json)
        return
    if restore is not None:
        _restore(restore, store, as_json)
        return
    if sum((follow is not None, demo, model is not None)) > 1 or (follow is not None and store is not None):
        raise InputError("give one of MODEL, --demo and --follow; a replica has no --store")
    if follow is None and not demo and store is None:
        raise InputError("--store says where to keep what is learned, as in --store rank.db (or try --demo)")
    check_outputs([store, None if log in ("-", "none") else log], [model])
    seconds, waiting = None if keep is None else _seconds(keep, "--keep"), _seconds(wait, "--wait")
    from ..serve.app import App
    from ..serve.background_log import BackgroundLog, warnings_to
    from ..serve.following import Follower
    from ..serve.guard import Keys, Limits
    from ..serve.learning import Learner
    from ..serve.quota import StorageLimits
    from ..serve.service import Service
    from ..serve.store import Store

    allowed = Keys(keys_file, rate)
    with listen(host, port, allowed) as bound:
        searched = None
        if follow is not None:
            follower = Follower(follow, os.environ.get("TOPRANK_KEY"), _seconds(stale, "--stale"))
            service = Service(follower, most=wait_mb * 1e6, seconds=waiting)
        else:
            learner = None
            if demo:
                from ..demo.clicking import LibrarySearch, first_ranker

                with busy("reading the standard library"):
                    searched = LibrarySearch()
                store = store or str(Path(tempfile.mkdtemp(prefix="toprank-")) / "demo.db")
                if not Path(store).exists():
                    learner = Learner.of(first_ranker())
            elif model is not None:
                learner = _learner(model, clicks)
            allowed_bytes = StorageLimits(request_mb * 1e6, key_mb * 1e6)
            service = Service(Store(store or "", learner), seconds, allowed_bytes, most=wait_mb * 1e6, seconds=waiting)
        errors = BackgroundLog(_standard_error())
        lines = None if log == "none" else errors if log == "-" else BackgroundLog(_open_log(log))
        app = App(service, allowed, Limits(rate=rate), lines, searched)
        server = stoppable(app)
        address, number = bound.getsockname()[:2]
        url = f"http://{f'[{address}]' if ':' in address else address}:{number}"
        served = service.served
        name = type(served.ranker).__name__
        if as_json:
            print_json({"url": url, "ranker": name, "version": served.version, "learns": served.ranker.learns_from})
        else:
            who = "this machine only, no keys" if allowed.open else f"keys of {keys_file}"
            click.echo(f"serving {name}, version {served.version}, on {url} ({who})")
        with warnings_to(errors):
            run(server, app, bound)
        for one in filter(None, (errors, lines)):
            one.close()


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


def stoppable(app: App) -> Server:
    """Return the server of an app, which a signal stops from now on: before it runs, and while it does."""
    from ..serve.running import Server

    server = Server(app)

    def stop(*_: Any) -> None:
        server.should_exit = True

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)  # uvicorn raises a signal again when it is done, and there is more to do
    return server


def run(server: Server, app: App, bound: socket.socket) -> None:
    """Serve until a signal comes; then answer what was begun, and close the store."""
    try:
        server.run(sockets=[bound])
    finally:
        app.service.stop()


def _needs_extra() -> None:
    for package in ("starlette", "uvicorn", "prometheus_client"):
        needed(package, "serving")


def _verify(path: str, as_json: bool) -> None:
    from ..serve import history
    from ..serve.store import Store

    with closing(Store(path)) as opened:
        oldest, newest = opened.oldest_and_newest
        events, difference, left_behind = history.verify(opened)
    result = difference or "snapshots and state are equal to the bit"
    if left_behind and difference is None:
        numbers = ", ".join(map(str, left_behind[:5])) + (", …" if len(left_behind) > 5 else "")
        result += f" (events that cannot be learned again, before a rollback: {numbers})"
    replayed = "1 event" if events == 1 else f"{events:,} events"
    counts = {"events": events, "oldest": oldest, "version": newest, "left_behind": left_behind}
    answer(
        as_json,
        {**counts, "equal": difference is None, "difference": difference},
        f"{replayed} replayed from version {oldest:,} to {newest:,}: {result}",
    )
    if difference is not None:
        raise SystemExit(1)


def _roll_back(version: int, path: str | None, as_json: bool) -> None:
    from ..serve import history
    from ..serve.store import Store

    if path is None:
        raise InputError("--rollback needs --store: the store to go back in, which no server may be using")
    with closing(Store(path)) as opened:
        opened.check()
        new = history.roll_back(opened, version).version
    answer(as_json, {"version": new, "same_as": version}, f"version {new} of {path} is the model of version {version}")


def _restore(backup: str, path: str | None, as_json: bool) -> None:
    from ..serve.restoring import restore

    if path is None:
        raise InputError("--restore needs --store: the store whose place the backup takes")
    version, aside = restore(Path(backup), Path(path))
    kept = "" if aside is None else f"; what was there is {aside} now"
    facts = {"version": version, "store": path, "replaced": None if aside is None else str(aside)}
    answer(as_json, facts, f"{path} is a copy of {backup}, at version {version}{kept}")


def _learner(path: str, clicks: bool) -> Learner:
    from ..rankers.pdgd import PDGD
    from ..rankers.persistence import parse
    from ..serve.learning import Learner

    text, name = read_whole(path)
    ranker = parse(text, name)
    return Learner.of(PDGD().start_at(ranker) if clicks else ranker)


def _open_log(where: str) -> int:
    """Return the number of the file that request lines go to."""
    try:
        return os.open(where, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o666)
    except OSError as error:
        raise InputError(f"the log {where} cannot be written: {error.strerror}") from None


def _standard_error() -> int:
    try:
        return sys.stderr.fileno()
    except (OSError, ValueError):  # it is no file, as in a notebook
        return 2


def _seconds(text: str, option: str) -> float:
    """Return a time like 30d, 12h, 5m or 10s in seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text)
    if found is None or float(found[1]) == 0:
        raise InputError(f"{option} takes a time like 30d, 12h, 5m or 10s, got {text!r}")
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[found[2]]


KEYS = option("The file with the keys.", "--keys", default="keys.toml")


@command()
def new(
    name: str,
    scopes: str = option("Of rank, learn, admin, separated by commas.", default="rank"),
    rate: float | None = option("Most requests per second.  [default: the server's]", type=RATE),
    file: str = KEYS,
    as_json: bool = JSON,
) -> None:
    """Make a key and print it once.

    Example: toprank serve keys new shop --scopes rank,learn
    """
    wanted: Any = tuple(split_names(scopes))
    if not wanted or not set(wanted) <= set(SCOPES):
        raise InputError(f"--scopes takes {', '.join(SCOPES)}, separated by commas, got {scopes!r}")
    key = new_key(Path(file), name, wanted, rate)
    answer(as_json, {"name": name, "scopes": list(wanted), "key": key}, key)


@command("list")
def list_keys(file: str = KEYS, as_json: bool = JSON) -> None:
    """List the names of the keys and what they are for.

    Example: toprank serve keys list --json
    """
    found = read_keys(Path(file))
    rows = [{"name": name, "scopes": list(key.scopes), "rate": key.rate} for name, key in found.items()]
    answer(as_json, rows, "\n".join(f"{name}  {', '.join(key.scopes)}" for name, key in found.items()))


@command()
def revoke(name: str, file: str = KEYS, as_json: bool = JSON) -> None:
    """Take a key back; a running server notices with the next request.

    Example: toprank serve keys revoke shop
    """
    revoke_key(Path(file), name)
    answer(as_json, {"revoked": name}, f"revoked {name}")


@click.group(commands=[new, list_keys, revoke])
def keys() -> None:
    """Make, list and revoke keys; only their hashes are kept.

    Example: toprank serve keys new shop --scopes rank,learn
    """
