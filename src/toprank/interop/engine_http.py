"""Requests to a search engine: JSON over HTTP with the standard library, keys from the environment, one-line errors.

A key is read from TOPRANK_ENGINE_KEY (sent as `ApiKey`), or a name and a password from TOPRANK_ENGINE_USER and
TOPRANK_ENGINE_PASSWORD. They are in no message and in nothing that is printed; addresses that hold them are
refused, and redirects, which would carry them elsewhere, are not followed.
"""

from __future__ import annotations

import base64
import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.parse import urlencode, urlsplit

from ..errors import InputError

TIMEOUT = 30.0
"""Seconds that an engine has for one answer."""
LARGEST_ANSWER = 256 * 2**20
NOT_FOUND = 404


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Follow none."""


def credentials(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the value of the header Authorization, or None.

    >>> credentials({"TOPRANK_ENGINE_KEY": "abc"})
    'ApiKey abc'
    """
    key, user = environment.get("TOPRANK_ENGINE_KEY"), environment.get("TOPRANK_ENGINE_USER")
    password = environment.get("TOPRANK_ENGINE_PASSWORD")
    if key and user:
        raise InputError("TOPRANK_ENGINE_KEY and TOPRANK_ENGINE_USER are both set: unset one of them")
    if key:
        header = f"ApiKey {key}"
    elif user:
        header = "Basic " + base64.b64encode(f"{user}:{password or ''}".encode()).decode()
    else:
        return None
    if not header.isascii() or not header.isprintable():
        raise InputError("the key in the environment has signs that no header can hold")
    return header


@dataclass(frozen=True)
class EngineClient:
    """Asks an engine at an address; what goes wrong is one line that names method, path and the engine's reason."""

    url: str
    authorization: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError("the address of an engine begins with http:// or https://, and names a host")
        if parts.username is not None or parts.password is not None or parts.query:
            raise InputError(
                "keep keys out of the address: set TOPRANK_ENGINE_KEY, or TOPRANK_ENGINE_USER and "
                "TOPRANK_ENGINE_PASSWORD"
            )

    def ask(
        self, method: str, path: str, body: Any = None, parameters: Mapping[str, Any] | None = None
    ) -> dict[str, Any] | None:
        """Return the answer; None where the engine does not know the path."""
        address = f"{self.url.rstrip('/')}/{path.lstrip('/')}"
        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept": "application/json"} | ({} if data is None else {"Content-Type": "application/json"})
        if parameters and data is None and method == "POST":  # long queries do not fit into an address
            data, headers = urlencode(parameters).encode(), {"Content-Type": "application/x-www-form-urlencoded"}
        elif parameters:
            address += f"?{urlencode(parameters)}"
        if self.authorization is not None:
            headers["Authorization"] = self.authorization
        request = urllib.request.Request(address, data, headers, method=method)
        where = f"{method} {path} at {urlsplit(self.url).netloc}"
        try:
            with urllib.request.build_opener(_NoRedirects).open(request, timeout=TIMEOUT) as answer:
                content = answer.read(LARGEST_ANSWER + 1)
        except urllib.error.HTTPError as error:
            with error:
                if error.code == NOT_FOUND:
                    return None
                reason = _reason(error.read(1 << 16))
            raise InputError(f"{where}: the engine refused it ({error.code}): {reason}") from None
        except (OSError, HTTPException, ValueError) as error:
            raise InputError(f"{where}: no answer: {getattr(error, 'reason', None) or error}") from None
        if len(content) > LARGEST_ANSWER:
            raise InputError(f"{where}: the answer has more than {LARGEST_ANSWER >> 20} MB: ask for fewer documents")
        try:
            found = json.loads(content or b"{}")
        except (ValueError, RecursionError):
            raise InputError(f"{where}: the answer is not JSON: is this the engine's address?") from None
        if not isinstance(found, dict):
            raise InputError(f"{where}: the answer is not an object: is this the engine's address?")
        return found

    def must(
        self, method: str, path: str, body: Any = None, parameters: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the answer; a path that the engine does not know is an error too."""
        found = self.ask(method, path, body, parameters)
        if found is None:
            raise InputError(f"{method} {path} at {urlsplit(self.url).netloc}: the engine does not know this")
        return found


def _reason(content: bytes) -> str:
    """Return why an engine refused, from the layouts of Elasticsearch, OpenSearch and Solr."""
    try:
        error = json.loads(content)["error"]
        reason = error if isinstance(error, str) else error.get("reason") or error.get("msg")
        causes = error.get("root_cause") if isinstance(error, dict) else None
        reason = reason or (causes or [{}])[0].get("reason")
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        reason = None
    return " ".join(str(reason or content[:200].decode(errors="replace") or "no reason given").split())[:500]
