"""The server under load from the same machine: requests and durable events per second, and how long the slowest took.

    python -m benchmarks serve                    requests/s beside a starlette echo, river and Vowpal Wabbit
    python -m benchmarks.serve --soak 600         ten minutes of both at a steady rate: memory and the slowest answers
    python -m benchmarks.serve --events 1000000   so many events, fifty a request: memory, then a replay of all of them

Load comes from sockets that send prepared bytes and count answers, so that little of the two cores goes to the client.
Server and load share them: figures of a machine that does other work mean little, the ratios a little more.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import numpy as np

from . import Row, row

DOCUMENTS, FEATURES = 100, 136
LINES = 16

ECHO = """
import sys, socket, uvicorn, msgspec
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
async def echo(request):
    body = msgspec.msgpack.decode(await request.body())
    return Response(msgspec.msgpack.encode({"n": len(body)}), media_type="application/msgpack")
bound = socket.create_server(("127.0.0.1", 0), backlog=2048)
print(bound.getsockname()[1], flush=True)
app = Starlette(routes=[Route("/", echo, methods=["POST"])])
uvicorn.Server(uvicorn.Config(app, access_log=False, log_config=None)).run(sockets=[bound])
"""

RIVER = """
import sys, socket, uvicorn, msgspec, numpy as np
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from river import linear_model, optim
model = linear_model.LinearRegression(optim.SGD(0.01))
names = [str(j) for j in range(FEATURES)]
async def learn(request):
    body = msgspec.msgpack.decode(await request.body())
    X = np.frombuffer(body["features_f32"], dtype=np.float32).reshape(len(body["ids"]), -1).tolist()
    for name, x in zip(body["ids"], X):
        model.learn_one(dict(zip(names, x)), float(body["labels"].get(name, 0)))
    return Response(b"ok")
bound = socket.create_server(("127.0.0.1", 0), backlog=2048)
print(bound.getsockname()[1], flush=True)
app = Starlette(routes=[Route("/", learn, methods=["POST"])])
uvicorn.Server(uvicorn.Config(app, access_log=False, log_config=None)).run(sockets=[bound])
""".replace("FEATURES", str(FEATURES))


VW = """
import sys, vowpalwabbit
options = ["--daemon", "--foreground", "--port", "0", "--port_file", sys.argv[1], "--num_children", "1", "--quiet"]
vowpalwabbit.Workspace(arg_list=options).run_parser()
"""


class Load(asyncio.Protocol):
    """One line that sends the next request when the last one is answered."""

    def __init__(self, next_request, done: asyncio.Future, gap: float = 0.0) -> None:
        self._next, self._done, self._gap = next_request, done, gap
        self.took: list[float] = []
        self.bad = 0
        self._held = b""

    def connection_made(self, transport) -> None:
        self._transport = transport
        self._send()

    def _send(self) -> None:
        request = self._next()
        if request is None:
            self._transport.close()
            if not self._done.done():
                self._done.set_result(None)
            return
        self._began = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._held += data
        head, sign, rest = self._held.partition(b"\r\n\r\n")
        if not sign:
            return
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        if len(rest) < length:
            return
        self._held = rest[length:]
        self.took.append(time.perf_counter() - self._began)
        self.bad += not head.startswith(b"HTTP/1.1 200")
        if self._gap:
            asyncio.get_running_loop().call_later(self._gap, self._send)
        else:
            self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(exc or ConnectionError("closed"))


def http(path: str, body: bytes, kind: str = "application/msgpack") -> bytes:
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def drive(port: int, make, seconds: float, lines: int = LINES, gap: float = 0.0) -> tuple[float, np.ndarray, int]:
    """Return answers per second, the seconds that each took, and how many were no success."""
    loop, end = asyncio.get_running_loop(), time.perf_counter() + seconds
    waits, loads = [], []
    began = time.perf_counter()
    for _ in range(lines):
        done = loop.create_future()
        load = Load(lambda: make() if time.perf_counter() < end else None, done, gap)
        await loop.create_connection(lambda load=load: load, "127.0.0.1", port)
        waits.append(done)
        loads.append(load)
    await asyncio.gather(*waits)
    took = np.concatenate([load.took for load in loads])
    return len(took) / (time.perf_counter() - began), took, sum(load.bad for load in loads)


def drive_now(*args, **named) -> tuple[float, np.ndarray, int]:
    try:
        import uvloop

        return uvloop.run(drive(*args, **named))
    except ImportError:
        return asyncio.run(drive(*args, **named))


class Serving:
    """`toprank serve` in a process of its own, with a model of so many features."""

    def __init__(self, features: int, ranker: str = "OnlineListNet") -> None:
        import toprank as tr

        self.folder = tempfile.TemporaryDirectory()
        model = Path(self.folder.name, "model.json")
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(40, features)), rng.integers(0, 3, 40)
        getattr(tr, ranker)(eta="adaptive:0.1").fit(X, y, qid=np.repeat(np.arange(4), 10)).save(model)
        self.store = Path(self.folder.name, "rank.db")
        command = [sys.executable, "-m", "toprank", "serve", str(model), "--store", str(self.store)]
        began = time.perf_counter()
        self.process = subprocess.Popen(
            [*command, "--port", "0", "--json", "--log", "none", "--rate", "1e9", "--wait-mb", "64"],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        text = ""
        while not text.endswith("}\n"):
            text += self.process.stdout.readline()
        self.started = time.perf_counter() - began
        self.port = int(json.loads(text)["url"].rpartition(":")[2])
        import urllib.error
        import urllib.request

        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz")
                break
            except urllib.error.HTTPError:
                time.sleep(0.05)
        self.ready = time.perf_counter() - began

    def memory(self) -> float:
        """Megabytes resident."""
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def __enter__(self) -> Serving:
        return self

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.folder.cleanup()


def plain(source: str) -> tuple[subprocess.Popen, int]:
    process = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True)
    return process, int(process.stdout.readline())


def vowpal_wabbit(seconds: float) -> float | None:
    """Return lists per second that Vowpal Wabbit's daemon learns: a line of text per document, answered one by one.

    The package from PyPI has no command that runs the daemon to its end, but its parser does (`run_parser`).
    """
    if __import__("importlib.util").util.find_spec("vowpalwabbit") is None:
        return None
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(DOCUMENTS, FEATURES)), rng.integers(0, 3, DOCUMENTS)
    text = "".join(
        f"{g} | " + " ".join(f"{j}:{v:.7g}" for j, v in enumerate(x)) + "\n" for g, x in zip(y, X, strict=True)
    )
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder, "port")
        process = subprocess.Popen([sys.executable, "-c", VW, str(told)], stderr=subprocess.DEVNULL)
        try:
            while not (told.exists() and told.read_text().strip()):
                time.sleep(0.05)
            with socket.create_connection(("127.0.0.1", int(told.read_text())), timeout=30) as line:
                count, began = 0, time.perf_counter()
                while time.perf_counter() - began < seconds:
                    line.sendall(text.encode())
                    answers = 0
                    while answers < DOCUMENTS:
                        answers += line.recv(65536).count(b"\n")
                    count += 1
                return count / (time.perf_counter() - began)
        finally:
            process.terminate()
            process.wait()


def requests(documents: int = DOCUMENTS, features: int = FEATURES):
    """Return makers of rank requests and of feedback, each event with an id of its own."""
    rng = np.random.default_rng(0)
    ids = [f"d{i}" for i in range(documents)]
    binary = rng.normal(size=(documents, features)).astype(np.float32).tobytes()
    rank = http("/v1/rank", msgspec.msgpack.encode({"ids": ids, "features_f32": binary}))
    labels = {name: int(grade) for name, grade in zip(ids, rng.integers(0, 3, documents), strict=True)}
    counter = iter(range(10**12))

    def feedback(path: str = "/v1/feedback") -> bytes:
        body = {"event_id": f"e{next(counter)}", "ids": ids, "features_f32": binary, "labels": labels}
        return http(path, msgspec.msgpack.encode(body))

    return (lambda: rank), feedback, binary, ids


def told(took: np.ndarray) -> str:
    p50, p99 = np.quantile(took, [0.5, 0.99]) * 1000
    return f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, {LINES} lines"


def run(seconds: float = 3.0) -> list[Row]:
    rank, feedback, binary, ids = requests()
    rows = []
    process, port = plain(ECHO)
    try:
        echo, _, _ = drive_now(port, lambda: http("/", msgspec.msgpack.encode({"ids": ids, "f": binary})), seconds)
    finally:
        process.terminate()
        process.wait()
    river = None
    if __import__("importlib.util").util.find_spec("river"):
        process, port = plain(RIVER)
        try:
            river, _, _ = drive_now(port, lambda: feedback("/"), seconds)
        finally:
            process.terminate()
            process.wait()
    with Serving(FEATURES) as server:
        note = f"listens after {server.started:.1f} s, ready after {server.ready:.1f} s; "
        rate, took, bad = drive_now(server.port, rank, seconds)
        assert bad == 0
        name, note = f"rank {DOCUMENTS} × {FEATURES}, msgpack", note + told(took)
        rows.append(row(name, rate, "requests/s", peer="starlette echo", theirs=echo, note=note))
        rate, took, bad = drive_now(server.port, feedback, seconds)
        assert bad == 0
        peer = {} if river is None else {"peer": "river, in memory only", "theirs": river}
        name, note = f"learn {DOCUMENTS} × {FEATURES}, durable", f"54 KB each, {told(took)}"
        rows.append(row(name, rate, "events/s", note=note, **peer))
        if (theirs := vowpal_wabbit(seconds)) is not None:
            rate, took, bad = drive_now(server.port, feedback, seconds, 1)
            name, note = f"learn {DOCUMENTS} × {FEATURES}, one line, durable", "VW: another loss, text, in memory only"
            rows.append(row(name, rate, "events/s", peer="Vowpal Wabbit's daemon", theirs=theirs, note=note))
    _, small, _, _ = requests(10, 20)
    with Serving(20) as server:
        rate, took, bad = drive_now(server.port, small, seconds)
        assert bad == 0
        rows.append(row("learn 10 × 20, durable", rate, "events/s", note=f"0.8 KB each, {told(took)}"))
        before = server.memory()
        drive_now(server.port, small, 2 * seconds)
        rows.append(row("memory after twice as many events", server.memory(), "MB", peer="before", theirs=before))
    return rows


def soak(seconds: float) -> None:
    """Both kinds of requests at a steady rate; print memory and the slowest answers every tenth of the time."""
    rank, feedback, _, _ = requests(20, 50)
    turn = iter(range(10**12))
    with Serving(50) as server:
        for part in range(10):
            rate, took, bad = drive_now(
                server.port, lambda: rank() if next(turn) % 2 else feedback(), seconds / 10, 8, 0.02
            )
            size = sum(file.stat().st_size for file in server.store.parent.glob("rank.db*")) / 1e6
            p50, p99, most = np.quantile(took, [0.5, 0.99, 1.0]) * 1000
            print(
                f"{(part + 1) * seconds / 10:6.0f} s  {rate:6.0f} requests/s  {bad} refused  p50 {p50:.1f} ms  "
                f"p99 {p99:.1f} ms  longest {most:.0f} ms  memory {server.memory():.0f} MB  store {size:.0f} MB",
                flush=True,
            )


def many(events: int, batch: int = 50) -> None:
    """Learn from so many events of 10 × 20, fifty a request; print memory every tenth, then replay all of them."""
    rng, ids, width = np.random.default_rng(0), [f"d{i}" for i in range(10)], 20
    binary = [rng.normal(size=(10, width)).astype(np.float32).tobytes() for _ in range(97)]
    labels = [dict(zip(ids, map(int, rng.integers(0, 3, 10)), strict=True)) for _ in range(89)]

    def request(first: int | None) -> bytes | None:
        if first is None:
            return None
        numbers = range(first, min(first + batch, events))
        made = (
            {"event_id": f"e{i}", "ids": ids, "features_f32": binary[i % 97], "labels": labels[i % 89]} for i in numbers
        )
        return http("/v1/feedback", msgspec.msgpack.encode([*made]))

    with Serving(width) as server:
        began = time.perf_counter()
        for part in range(10):
            stop = (part + 1) * events // 10
            firsts = iter(range(part * events // 10, stop, batch))
            _, took, bad = drive_now(server.port, lambda firsts=firsts: request(next(firsts, None)), 1e9, 4)
            size = sum(file.stat().st_size for file in server.store.parent.glob("rank.db*")) / 1e6
            rate, slow = stop / (time.perf_counter() - began), np.quantile(took, 0.99) * 1000
            print(
                f"{stop:9,} events  {rate:6,.0f}/s  {bad} requests refused  p99 {slow:.0f} ms a request  "
                f"memory {server.memory():.1f} MB  store {size:,.0f} MB",
                flush=True,
            )
        server.stop()
        command = [sys.executable, "-m", "toprank", "serve", "--verify", str(server.store)]
        print(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serve", description=(__doc__ or "").splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--soak", type=float, metavar="SECONDS")
    what.add_argument("--events", type=int, metavar="N")
    given = parser.parse_args()
    many(given.events) if given.soak is None else soak(given.soak)
