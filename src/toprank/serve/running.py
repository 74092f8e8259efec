"""The process around the app."""

from __future__ import annotations

from asyncio import wrap_future
from typing import Any

import uvicorn

from .app import App
from .guard import guarded


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
