"""Who may do what, how much, and for how long: keys, rates, limits, and deadlines for clients that dawdle."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import re
import secrets
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from starlette.requests import Request

from .._files import replacing
from ..errors import InputError
from .bodies import BodyError

Scope = Literal["rank", "learn", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)


@dataclass(frozen=True)
class Limits:
    """What one client, and all of them together, may ask for."""

    body: int = 2_000_000
    concurrent: int = 256
    connections: int = 2_000
    pipelined: int = 16
    head: int = 65_536
    head_seconds: float = 10.0
    body_seconds: float = 20.0
    stuck_seconds: float = 30.0
    """How long a client may leave an answer unread."""
    rate: float = 10_000.0
    """Requests per second and key."""


@dataclass(frozen=True)
class Key:
    """A named key: its SHA-256 and what it is for."""

    name: str
    sha256: str
    scopes: tuple[Scope, ...]
    rate: float | None = None


class Keys:
    """The keys of a TOML file, read again when the file changes; without a file everything is allowed."""

    def __init__(self, path: str | os.PathLike[str] | None, rate: float = Limits.rate) -> None:
        self._path = None if path is None else Path(path)
        self._rate, self._looked, self._stamp = rate, 0.0, (0, 0)
        self._keys: list[Key] = []
        self._buckets: dict[str, tuple[float, float]] = {}
        if self._path is not None:
            self._keys = read_keys(self._path)
            self._stamp = self._now()

    @property
    def open(self) -> bool:
        """Whether no key is asked for."""
        return self._path is None

    def _now(self) -> tuple[int, int]:
        assert self._path is not None
        stat = self._path.stat()
        return stat.st_mtime_ns, stat.st_ino

    def _refresh(self) -> None:
        if self._path is None or time.monotonic() - self._looked < 1.0:
            return
        self._looked = time.monotonic()
        try:
            if (stamp := self._now()) != self._stamp:
                self._keys, self._stamp = read_keys(self._path), stamp
        except (OSError, InputError):
            self._keys = []  # a file that cannot be read lets nobody in

    def admit(self, header: str | None, scope: Scope) -> str:
        """Return the name of the key that a request carries; refuse it without one, or too soon after others."""
        self._refresh()
        if self.open:
            key = Key("nobody", "", SCOPES)
        else:
            given = (header or "").removeprefix("Bearer ").strip()
            digest = hashlib.sha256(given.encode()).hexdigest()
            # All are compared, each in constant time: how long it takes tells nothing of which one is near.
            matches = [key for key in self._keys if hmac.compare_digest(key.sha256, digest)]
            if not matches:
                raise BodyError("a key is needed: Authorization: Bearer KEY", status=401)
            key = matches[0]
            if scope not in key.scopes:
                raise BodyError(f"the key {key.name!r} is not for this: it needs the scope {scope!r}", status=403)
        self._spend(key)
        return key.name

    def _spend(self, key: Key) -> None:
        """Take one token from the key's bucket, which fills at its rate and holds a second's worth."""
        rate, now = key.rate or self._rate, time.monotonic()
        left, at = self._buckets.get(key.name, (rate, now))
        left = min(max(rate, 1.0), left + (now - at) * rate)
        self._buckets[key.name] = (left - 1 if left >= 1 else left, now)
        if left < 1:
            raise BodyError("too many requests: wait a little", status=429)


def read_keys(path: Path) -> list[Key]:
    """Return the keys of a file."""
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not TOML: {error}") from None
    found = []
    for name, entry in content.items():
        sound = isinstance(entry, dict) and bool(re.fullmatch("[0-9a-f]{64}", str(entry.get("sha256"))))
        sound = sound and isinstance(entry.get("scopes"), list) and set(entry["scopes"]) <= set(SCOPES)
        rate = entry.get("rate") if isinstance(entry, dict) else None
        if not sound or not (rate is None or (isinstance(rate, (int, float)) and rate > 0)):
            raise InputError(f"{path}: [{name}] must have sha256, scopes (of {', '.join(SCOPES)}) and at most a rate")
        found.append(Key(name, entry["sha256"], tuple(entry["scopes"]), rate))
    return found


def write_keys(path: Path, keys: list[Key]) -> None:
    """Write keys, readable by their owner alone."""
    parts = []
    for key in keys:
        scopes = ", ".join(f'"{scope}"' for scope in key.scopes)
        rate = "" if key.rate is None else f"rate = {key.rate:g}\n"
        parts.append(f'[{key.name}]\nsha256 = "{key.sha256}"\nscopes = [{scopes}]\n{rate}')
    with replacing(path) as draft:
        draft.write_text("\n".join(parts), encoding="utf-8")
    path.chmod(0o600)


def new_key(path: Path, name: str, scopes: tuple[Scope, ...], rate: float | None = None) -> str:
    """Add a key and return it; only its hash is kept."""
    keys = read_keys(path) if path.exists() else []
    if not re.fullmatch("[A-Za-z0-9_-]{1,64}", name):
        raise InputError(f"a key's name has letters, digits, - and _ only, got {name!r}")
    if any(key.name == name for key in keys):
        raise InputError(f"there is a key {name!r} already: revoke it first, or take another name")
    key = f"toprank_{secrets.token_urlsafe(32)}"
    write_keys(path, [*keys, Key(name, hashlib.sha256(key.encode()).hexdigest(), scopes, rate)])
    return key


async def read_body(request: Request, headers: dict[str, str], limits: Limits) -> bytes:
    """Return the body; refuse one that is too long or too slow."""
    if "content-encoding" in headers:
        raise BodyError("send the body as it is, without a content encoding", status=415)
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > limits.body:
        raise BodyError(f"a body has at most {limits.body:,} bytes", status=413)
    parts, size = [], 0
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for part in request.stream():
                parts.append(part)
                size += len(part)
                if size > limits.body:
                    raise BodyError(f"a body has at most {limits.body:,} bytes", status=413)
    except TimeoutError:
        raise BodyError(f"the body did not come within {limits.body_seconds:g} s", status=408) from None
    return b"".join(parts)


def check_origin(headers: dict[str, str], keys: Keys) -> None:
    """Refuse what a web page of somebody else could send: without keys, only this machine by its own names."""
    host, origin = headers.get("host", ""), headers.get("origin")
    if origin is not None and origin.partition("://")[2] != host:
        raise BodyError("requests from pages of other sites are refused", status=403)
    if keys.open and re.sub(r":\d+$", "", host) not in ("localhost", "127.0.0.1", "[::1]"):
        raise BodyError("without keys, only localhost, 127.0.0.1 and [::1] are answered", status=403)


def guarded(limits: Limits) -> type:
    """Return uvicorn's protocol with deadlines: without them, half a head, silence, and never reading last for ever."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    class Protocol(AutoHTTPProtocol):  # type: ignore[misc]
        _open = 0
        _timer: Any = None
        _stuck: Any = None
        _head = 0

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            Protocol._open += 1
            if Protocol._open > limits.connections:
                self._refuse(b"503 Service Unavailable")
            self._watch()
            self._sweep()

        def connection_lost(self, exc: Exception | None) -> None:
            Protocol._open -= 1
            for timer in (self._timer, self._stuck):
                if timer is not None:
                    timer.cancel()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._head += len(data)
            if len(getattr(self, "pipeline", ())) > limits.pipelined:  # uvicorn would queue them without end
                self.transport.abort()
            else:
                self._watch()

        def _watch(self) -> None:
            """Let the clock run while a head is awaited, from its beginning on."""
            if self.cycle is None or self.cycle.response_complete:
                if self._head > limits.head:
                    self._refuse(b"431 Request Header Fields Too Large")
                if self._timer is None:
                    self._timer = self.loop.call_later(limits.head_seconds, self._refuse, b"408 Request Timeout")
            elif self._timer is not None:
                self._timer.cancel()
                self._timer, self._head = None, 0
            else:
                self._head = 0

        def _refuse(self, status: bytes) -> None:
            if not self.transport.is_closing():
                self.transport.write(b"HTTP/1.1 " + status + b"\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
                self.transport.close()

        def _sweep(self, before: int = 0) -> None:
            """Drop a client who has read nothing of what was there at the last look, also when all is said and done."""
            unread = self.transport.get_write_buffer_size()
            if unread and unread == before:
                self.transport.abort()
            else:
                self._stuck = self.loop.call_later(limits.stuck_seconds / 2, self._sweep, unread)

    return Protocol
