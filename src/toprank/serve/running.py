"""The process around the app, and what keeps a replica at the version of another server."""

from __future__ import annotations

import urllib.request
from asyncio import wrap_future
from contextlib import suppress
from threading import Thread
from typing import Any
from urllib.error import HTTPError, URLError

import uvicorn

from ..errors import InputError
from ..rankers.persistence import parse
from .app import App
from .guard import guarded
from .learning import Learner
from .service import Service


class Server(uvicorn.Server):  # type: ignore[misc]
    """uvicorn around the app, with deadlines; it finishes what was begun before it stops."""

    def __init__(self, app: App) -> None:
        config = uvicorn.Config(
            app, http=guarded(app.limits), ws="none", lifespan="off", log_config=None, access_log=False,
            server_header=False, timeout_keep_alive=75, timeout_graceful_shutdown=10, timeout_notify=30,
            callback_notify=self._tidy,
        )  # fmt: skip
        super().__init__(config)
        self._service = app.service

    async def _tidy(self) -> None:
        if self._service.keep is not None:
            await wrap_future(self._service.submit(self._service.forget))

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Let live pages go, then stop as uvicorn does."""
        self._service.stopping.set()
        super().handle_exit(sig, frame)


class Follower:
    """Keeps a replica at the version of another server: asks for it every second."""

    def __init__(self, url: str, key: str | None) -> None:
        self._url, self._tag = url.rstrip("/"), ""
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        if not self._url.startswith(("http://", "https://")):
            raise InputError(f"--follow takes an address like http://127.0.0.1:8080, got {url!r}")

    def fetch(self) -> Learner | None:
        """Return the other server's model, None where it is the one that was fetched last."""
        headers = self._headers | {"if-none-match": self._tag}
        request = urllib.request.Request(f"{self._url}/v1/model?file=1", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                self._tag, text = answer.headers["etag"], answer.read()
        except HTTPError as error:
            if error.code == 304:
                return None
            raise InputError(f"{self._url} answers {error.code} {error.reason}") from None
        except (URLError, OSError) as error:
            raise InputError(f"{self._url} does not answer: {getattr(error, 'reason', error)}") from None
        return Learner.of(parse(text, self._url), int(self._tag.strip('"')))

    def follow(self, service: Service) -> None:
        """Fetch for ever, in a thread of its own; while the other server is away, the last version is served."""

        def work() -> None:
            while not service.stopping.wait(1.0):
                with suppress(InputError):
                    service.served = self.fetch() or service.served

        Thread(target=work, name="follower", daemon=True).start()
