"""A log that a thread writes: whoever does not read it, or a full disk, holds up no request."""

from __future__ import annotations

import logging
import os
import queue
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

LINES = 10_000
"""Most lines that wait to be written; more are dropped and counted."""
FLUSH_SECONDS = 2.0
"""How long the end of the process waits for what is not written yet."""


class BackgroundLog:
    """Writes text to an open file, in a thread of its own.

    Parameters
    ----------
    file : int
        The number of an open file. It is written without Python's buffers: a thread that hangs in one of them would
        hold up the end of the process too.
    """

    def __init__(self, file: int) -> None:
        self._file, self.dropped = file, 0
        self._lines: queue.Queue[bytes] = queue.Queue(LINES)
        Thread(target=self._work, name="log", daemon=True).start()

    def write(self, text: str) -> None:
        """Hand over text; where too much waits already, drop it."""
        try:
            self._lines.put_nowait(text.encode())
        except queue.Full:
            self.dropped += 1

    def flush(self) -> None:
        """Do nothing: what was handed over is written soon. `logging` asks for it after each line."""

    def close(self) -> None:
        """Wait for what was handed over, but not for ever."""
        end = time.monotonic() + FLUSH_SECONDS
        while self._lines.unfinished_tasks and time.monotonic() < end:
            time.sleep(0.01)

    def _work(self) -> None:
        while True:
            rest = self._lines.get()
            try:
                while rest:
                    rest = rest[os.write(self._file, rest) :]
            except OSError:  # a closed pipe, a full disk
                self.dropped += 1
            self._lines.task_done()


@contextmanager
def warnings_to(log: BackgroundLog) -> Iterator[None]:
    """Let what packages log as warnings and errors go to a log, instead of straight to standard error."""
    handler = logging.StreamHandler(log)
    handler.setLevel(logging.WARNING)
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
