"""A replica: a server that ranks with the model of another one, which it asks for every second."""

from __future__ import annotations

import http.client
import re
import time
import urllib.request
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError

from ..errors import InputError
from ..rankers.persistence import parse
from .learning import Learner

if TYPE_CHECKING:
    from .service import Service

STALE_SECONDS = 30.0
"""A replica whose other server has not answered for so long is not ready."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the key would go along, to whoever is named there."""

    def redirect_request(self, *args: Any, **named: Any) -> None:
        return None


class Follower:
    """Fetches the model of another server, and knows when it last succeeded.

    Parameters
    ----------
    url : str
        Address of the other server.
    key : str or None
        A key of it with the scope admin.
    stale : float
        After so many seconds without an answer that can be used, the replica is not ready.
    """

    def __init__(self, url: str, key: str | None, stale: float = STALE_SECONDS) -> None:
        self.url, self.stale, self.problem, self._tag = url.rstrip("/"), stale, "", ""
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        self._open, self._answered = urllib.request.build_opener(_NoRedirects).open, time.monotonic()
        if not self.url.startswith(("http://", "https://")):
            raise InputError(f"--follow takes an address like http://127.0.0.1:8080, got {url!r}")

    @property
    def age(self) -> float:
        """Seconds since the other server last said which model it serves."""
        return time.monotonic() - self._answered

    @property
    def store_id(self) -> str:
        """The store of the other server."""
        return self._tag.strip('"').rpartition("-")[0]

    def fetch(self) -> Learner | None:
        """Return the other server's model, None where it is the one that was fetched last."""
        request = urllib.request.Request(
            f"{self.url}/v1/model?file=1", headers=self._headers | {"if-none-match": self._tag}
        )
        try:
            with self._open(request, timeout=10) as answer:
                tag, text = answer.headers["etag"] or "", answer.read()
        except HTTPError as error:
            error.close()
            if error.code == 304:
                self._answered = time.monotonic()
                return None
            where = f" and names another address ({error.headers['location']})" if error.headers["location"] else ""
            raise InputError(f"{self.url} answers {error.code} {error.reason}{where}") from None
        except OSError as error:
            raise InputError(f"{self.url} does not answer: {getattr(error, 'reason', error)}") from None
        except http.client.HTTPException as error:
            raise InputError(f"{self.url} sent half an answer, or none in HTTP: {error!r}") from None
        named = re.fullmatch(r'"[0-9a-z]+-(\d{1,18})"', tag)
        if named is None:
            raise InputError(f"{self.url} is no toprank server: its ETag {tag!r} names no store and version")
        found = Learner.of(parse(text, self.url), int(named[1]))
        self._tag, self._answered = tag, time.monotonic()
        return found

    def follow(self, service: Service) -> None:
        """Fetch for ever, in a thread of its own; whatever goes wrong, the last version is served meanwhile."""

        def work() -> None:
            while not service.stopping.wait(1.0):
                try:
                    service.served = self.fetch() or service.served
                    self.problem = ""
                except Exception as error:  # tried again in a second; `age` and `problem` tell of it
                    self.problem = str(error) or type(error).__name__

        Thread(target=work, name="follower", daemon=True).start()
