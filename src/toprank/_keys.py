"""A file of keys: names, hashes and what each key is for. A command writes it, a server reads it."""

from __future__ import annotations

import hashlib
import re
import secrets
from pathlib import Path
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta, Struct

from ._files import locked, replacing
from .errors import InputError

Scope = Literal["rank", "learn", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)


class Key(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The SHA-256 of a key, what it is for, and its own requests per second."""

    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    scopes: tuple[Scope, ...]
    rate: Annotated[float, Meta(gt=0)] | None = None


def read_keys(path: Path) -> dict[str, Key]:
    """Return the keys of a TOML file by their names."""
    try:
        return msgspec.toml.decode(path.read_bytes(), type=dict[str, Key])
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        what = f"a section has sha256, scopes (of {', '.join(SCOPES)}) and at most a rate"
        raise InputError(f"{path} is no file of keys, where {what}: {error}") from None


def write_keys(path: Path, keys: dict[str, Key]) -> None:
    """Write keys, readable by their owner alone; numbers, texts and lists look in TOML as they do in JSON."""
    lines = []
    for name, key in keys.items():
        fields = msgspec.to_builtins(key)
        lines += [f"[{name}]", *(f"{field} = {msgspec.json.encode(value).decode()}" for field, value in fields.items())]
    with replacing(path) as draft:
        draft.write_text("\n".join(lines) + "\n", encoding="utf-8")
    path.chmod(0o600)


def new_key(path: Path, name: str, scopes: tuple[Scope, ...], rate: float | None = None) -> str:
    """Add a key and return it; only its hash is kept. Commands that change the file wait for each other."""
    if not re.fullmatch("[A-Za-z0-9_-]{1,64}", name):
        raise InputError(f"a key's name has letters, digits, - and _ only, got {name!r}")
    key = f"toprank_{secrets.token_urlsafe(32)}"
    with locked(path):
        keys = read_keys(path) if path.exists() else {}
        if name in keys:
            raise InputError(f"there is a key {name!r} already: revoke it first, or take another name")
        write_keys(path, keys | {name: Key(hashlib.sha256(key.encode()).hexdigest(), scopes, rate)})
    return key


def revoke_key(path: Path, name: str) -> None:
    """Take a key back."""
    if not path.exists():
        raise InputError(f"{path}: there is no such file")
    with locked(path):
        keys = read_keys(path)
        if keys.pop(name, None) is None:
            raise InputError(f"{path} has no key {name!r}")
        write_keys(path, keys)
