"""Starting and stopping: one process, one socket, one store."""

from __future__ import annotations

import ipaddress
import os
import signal
import socket
import sys
import urllib.request
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any, TextIO
from urllib.error import HTTPError, URLError

import uvicorn

from ..errors import InputError
from .app import App
from .guard import Keys, guarded
from .learning import Learner
from .service import Served, Service
from .store import Store, begun_with


def open_store(path: str | os.PathLike[str], model: bytes | None, name: str = "the model") -> Store:
    """Open a store, or begin one with the text of a model file."""
    if model is None and not Path(path).exists():
        raise InputError(f"{path}: there is no such store; give the MODEL to begin one with")
    learner = None if model is None else Learner.read(model, name)
    store = Store(path, create=learner is not None)
    try:
        if learner is not None and store.empty:
            store.start(learner)
        elif store.empty:
            raise InputError(f"{path} holds no model: give the MODEL to begin with")
        elif learner is not None:
            begun_with(learner.model_text(), store)
    except BaseException:
        store.close()
        raise
    return store


def listen(host: str, port: int, keys: Keys) -> socket.socket:
    """Return a socket that listens; without keys, on this machine only."""
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


class Server(uvicorn.Server):  # type: ignore[misc]
    """uvicorn around the app, with deadlines; it finishes what was begun before it stops."""

    def __init__(self, app: App) -> None:
        super().__init__(
            uvicorn.Config(
                app, http=guarded(app.limits), ws="none", lifespan="off", log_config=None, access_log=False,
                server_header=False, timeout_keep_alive=75, timeout_graceful_shutdown=10,
            )
        )  # fmt: skip
        self._service = app.service

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Let live pages go, then stop as uvicorn does."""
        self._service.stopping.set()
        super().handle_exit(sig, frame)


def run(app: App, bound: socket.socket) -> None:
    """Serve until a signal comes; then answer what was begun, and close the store."""
    app.service.start()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)  # uvicorn raises it again when it is done, and there is more to do
    try:
        Server(app).run(sockets=[bound])
    finally:
        app.service.stop()


class Follower:
    """Keeps a replica at the version of another server: asks for it every second."""

    def __init__(self, url: str, key: str | None) -> None:
        self._url, self._key, self._tag = url.rstrip("/"), key, ""
        if not self._url.startswith(("http://", "https://")):
            raise InputError(f"--follow takes an address like http://127.0.0.1:8080, got {url!r}")

    def fetch(self) -> Served | None:
        """Return the other server's model, None where it is the one that was fetched last."""
        headers = {"if-none-match": self._tag} | ({"authorization": f"Bearer {self._key}"} if self._key else {})
        request = urllib.request.Request(f"{self._url}/v1/model?file=1", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                tag, text = answer.headers["etag"], answer.read()
        except HTTPError as error:
            if error.code == 304:
                return None
            raise InputError(f"{self._url} answers {error.code} {error.reason}") from None
        except (URLError, OSError) as error:
            raise InputError(f"{self._url} does not answer: {getattr(error, 'reason', error)}") from None
        self._tag = tag
        return Served(int(tag.strip('"')), Learner.read(text, self._url))

    def follow(self, service: Service) -> None:
        """Fetch for ever, in a thread of its own; while the other server is away, the last version is served."""

        def work() -> None:
            while not service.stopping.wait(1.0):
                with suppress(InputError):
                    service.served = self.fetch() or service.served

        Thread(target=work, name="follower", daemon=True).start()


def log_to(where: str) -> TextIO | None:
    """Open where request lines go: `-` is standard error, `none` nowhere."""
    if where == "none":
        return None
    return sys.stderr if where == "-" else open(where, "a", buffering=1, encoding="utf-8")
