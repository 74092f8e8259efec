"""A headless Chromium on the other end of a pipe: the few calls of its DevTools protocol that the tests need."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 30.0
# Moves the pipes to where the browser looks for them, then becomes the browser. Copies above them first: either end
# may already sit where the other belongs.
WIRE = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def found() -> str | None:
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """Commands go out on file descriptor 3, answers and events come back on 4, each ended by a zero byte."""

    def __init__(self, program: str, folder: Path) -> None:
        commands, self._out = os.pipe()
        self._in, answers = os.pipe()
        quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        quiet += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
        quiet += ["--remote-debugging-pipe", f"--user-data-dir={folder}"]
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", WIRE, str(commands), str(answers), program, *quiet, "about:blank"],
            pass_fds=(commands, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        os.set_blocking(self._in, False)
        self._held, self._number = b"", 0

    def call(self, method: str, session: str | None = None, /, **params: Any) -> tuple[dict[str, Any], list[Any]]:
        """Send one command; return its result and the events that came before it."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        os.write(self._out, json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        events = []
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"], events
            events.append(answer)

    def _receive(self) -> Any:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._held:
            if time.monotonic() > end or self._process.poll() is not None:
                raise TimeoutError("the browser does not answer")
            try:
                self._held += os.read(self._in, 1 << 20)
            except BlockingIOError:
                time.sleep(0.002)
        message, _, self._held = self._held.partition(b"\0")
        return json.loads(message)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._out)
        os.close(self._in)


class Page:
    """One tab: what it complained of and asked for, what its scripts say, keys and clicks."""

    def __init__(
        self, browser: Browser, width: int = 1200, height: int = 1000, *, dark: bool = False, scripts: bool = True
    ) -> None:
        self._browser = browser
        self._target = browser.call("Target.createTarget", url="about:blank")[0]["targetId"]
        self._session = browser.call("Target.attachToTarget", targetId=self._target, flatten=True)[0]["sessionId"]
        self._events: list[Any] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")
        self._call("Emulation.setScriptExecutionDisabled", value=not scripts)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])
        self._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        result, events = self._browser.call(method, self._session, **params)
        self._events += events
        return result

    def open(self, path: Path) -> Page:
        self._call("Page.navigate", url=path.as_uri())
        end = time.monotonic() + PATIENCE
        while self.run("document.readyState") != "complete" or self.run("location.protocol") != "file:":
            assert time.monotonic() < end, "the page does not load"
            time.sleep(0.01)
        return self

    def run(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def key(self, name: str, text: str = "") -> None:
        codes = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowDown": 40, "ArrowRight": 39, "ArrowLeft": 37, "End": 35}
        what = {"key": name, "code": name, "windowsVirtualKeyCode": codes[name]}
        self._call("Input.dispatchKeyEvent", type="keyDown", **what, **({"text": text} if text else {}))
        self._call("Input.dispatchKeyEvent", type="keyUp", **what)

    def enter(self) -> None:
        self.key("Enter", "\r")

    def click(self, selector: str) -> None:
        """Click with the mouse in the middle of an element."""
        where = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'center', behavior: 'instant'}); const r = e.getBoundingClientRect();"
            " return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", type=kind, x=where[0], y=where[1], button="left", clickCount=1)

    def complaints(self) -> list[str]:
        """Return console errors and warnings, exceptions and whatever else the browser logged."""
        self.run("0")
        return [
            json.dumps(event["params"])
            for event in self._events
            if event.get("method") in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        ]

    def requests(self) -> list[str]:
        """Return the addresses that were asked for."""
        return [e["params"]["request"]["url"] for e in self._events if e.get("method") == "Network.requestWillBeSent"]

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        shot = self._call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        self._browser.call("Target.closeTarget", targetId=self._target)


@contextmanager
def started() -> Iterator[Browser]:
    program = found()
    assert program is not None
    # The browser may still write while it ends, so the folder is removed without insisting.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(program, Path(folder))
        try:
            yield browser
        finally:
            browser.close()
