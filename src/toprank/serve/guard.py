"""Who may do what, how much, and for how long: keys, rates, limits, and deadlines for slow clients."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import math
import os
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from starlette.requests import Request
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from .._keys import Key, Scope, read_keys
from ..errors import InputError
from .bodies import BodyError, require
from .learning import NOBODY
from .quota import Allowance


@dataclass(frozen=True)
class Limits:
    """What one client, and all of them together, may ask for."""

    body: int = 2_000_000
    concurrent: int = 256
    """Requests under way at once; those for health and metrics are not counted."""
    concurrent_per_key: int = 64
    """Those of one key, where there are keys, and those that need none."""
    connections: int = 2_000
    pipelined: int = 16
    head: int = 65_536
    head_seconds: float = 10.0
    body_seconds: float = 20.0
    stuck_seconds: float = 30.0
    """How long a client may leave an answer unread."""
    rate: float = 10_000.0
    """Requests per second and key."""


class Keys:
    """The keys of a TOML file, read again when the file changes; without a file everything is allowed."""

    def __init__(self, path: str | os.PathLike[str] | None, rate: float = Limits.rate) -> None:
        self._path, self._rate = None if path is None else Path(path), rate
        self.open, self._requests = path is None, Allowance()
        if self._path is not None:
            read_keys(self._path)

    def admit(self, header: str | None, scope: Scope) -> str:
        """Return the name of the key that a request carries; refuse it without one, or too soon after others."""
        name, rate = NOBODY, self._rate
        if self._path is not None:
            key_text = re.sub("^bearer ", "", header or "", flags=re.IGNORECASE).strip()
            digest = hashlib.sha256(key_text.encode()).hexdigest()
            # All are compared, each in constant time: how long it takes tells nothing of which one is near.
            found = [(n, key) for n, key in _keys_now(self._path).items() if hmac.compare_digest(key.sha256, digest)]
            require(found, "a key is needed: Authorization: Bearer KEY", status=401, **{"www-authenticate": "Bearer"})
            name, key = found[0]
            require(scope in key.scopes, f"the key {name!r} is not for this: it needs the scope {scope!r}", status=403)
            rate = key.rate or rate
        # A key has at most a second's worth of requests left.
        wait = self._requests.wait(name, 1.0, rate=rate, most=max(rate, 1.0))
        require(wait == 0, "too many requests: wait a little", status=429)
        self._requests.take(name, 1.0)
        return name


def _keys_now(path: Path) -> dict[str, Key]:
    try:
        stat = path.stat()
        return _keys_of(path, stat.st_mtime_ns, stat.st_ino)
    except (OSError, InputError):
        return {}  # a file that cannot be read lets nobody in


@lru_cache(8)
def _keys_of(path: Path, changed: int, node: int) -> dict[str, Key]:
    return read_keys(path)


async def read_body(request: Request, headers: dict[str, str], limits: Limits) -> bytes:
    """Return the body; refuse one that is too long or too slow."""
    require("content-encoding" not in headers, "send the body as it is, without a content encoding", status=415)
    length, most, body = headers.get("content-length", "0"), f"a body has at most {limits.body:,} bytes", bytearray()
    require(length.isdecimal() and int(length) <= limits.body, most, status=413)
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for part in request.stream():
                body += part
                require(len(body) <= limits.body, most, status=413)
    except TimeoutError:
        raise BodyError(f"the body did not come within {limits.body_seconds:g} s", status=408) from None
    return bytes(body)


def check_origin(headers: dict[str, str], keys: Keys) -> None:
    """Refuse what a web page of another site could send; without keys, answer only this machine by its own names."""
    host, origin = headers.get("host", ""), headers.get("origin")
    ours = origin is None or origin.partition("://")[2] == host
    require(ours, "requests from pages of other sites are refused", status=403)
    local = not keys.open or re.sub(r":\d+$", "", host) in ("localhost", "127.0.0.1", "[::1]")
    require(local, "without keys, only localhost, 127.0.0.1 and [::1] are answered", status=403)


CONNECTION = "toprank.connection"
"""Where the scope of a request has its connection."""


class Connection:
    """A connection of a client, and the key that it has shown so far."""

    key: str | None = None


def _make_room(connections: dict[Connection, Any]) -> bool:
    """Close a connection for a new one: the oldest that has shown no key, else an idle one of the key with most.

    Return whether there was one.
    """
    chosen = next((one for one in connections if one.key is None), None)
    if chosen is None:
        greediest = Counter(one.key for one in connections).most_common(1)[0][0]
        own = (one for one, protocol in connections.items() if one.key == greediest and protocol.is_idle)
        chosen = next(own, None)
    if chosen is None:
        return False
    connections.pop(chosen).transport.abort()
    return True


def guarded(limits: Limits) -> type:
    """Return uvicorn's protocol with deadlines: without them, half a head, silence, and never reading last for ever."""

    connections: dict[Connection, Any] = {}

    class Protocol(AutoHTTPProtocol):  # type: ignore[misc]
        app: Any

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._head, self._since, self._unread = 0, self.loop.time(), (0, self.loop.time())
            self._own = Connection()
            app = self.app

            async def with_connection(scope: Any, receive: Any, send: Any) -> None:
                await app(scope | {CONNECTION: self._own}, receive, send)

            self.app = with_connection
            if len(connections) >= limits.connections and not _make_room(connections):
                self._refuse(b"503 Service Unavailable")
            connections[self._own] = self
            self._check_deadlines()

        def connection_lost(self, exc: Exception | None) -> None:
            connections.pop(self._own, None)
            self._timer.cancel()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._head, self._since = 0, math.inf
            else:  # a head is awaited: the clock runs from its beginning on
                self._head, self._since = self._head + len(data), min(self._since, self.loop.time())
            if len(getattr(self, "pipeline", ())) > limits.pipelined:  # uvicorn would queue them without end
                self.transport.abort()
            elif self._head > limits.head:
                self._refuse(b"431 Request Header Fields Too Large")

        def _check_deadlines(self) -> None:
            """Drop clients that take too long to send a head, or have read nothing of an answer for a while."""
            now, unread = self.loop.time(), self.transport.get_write_buffer_size()
            if unread != self._unread[0]:
                self._unread = (unread, now)
            if now - self._since > limits.head_seconds:
                self._refuse(b"408 Request Timeout")
            if unread and now - self._unread[1] > limits.stuck_seconds / 2:
                self.transport.abort()
            self._timer = self.loop.call_later(
                min(limits.head_seconds, limits.stuck_seconds) / 8, self._check_deadlines
            )

        @property
        def is_idle(self) -> bool:
            """Whether no request is under way."""
            return self.cycle is None or bool(self.cycle.response_complete)

        def _refuse(self, status: bytes) -> None:
            if not self.transport.is_closing():
                self.transport.write(b"HTTP/1.1 " + status + b"\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
                self.transport.close()

    return Protocol
