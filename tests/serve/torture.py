"""Kill the server with -9 under load and count what was lost: python -m tests.serve.torture --kills 1000.

Everything is imported and compiled once; each server is a fork of that, so that a life takes a fraction of a second.
What is printed: acknowledged events, how many of them are lost, how many were learned twice, and what a replay of all
stored events says of the state.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import sqlite3
import sys
import tempfile
import threading
import time
from pathlib import Path

from tests.serve.starting import event, model, open_store
from toprank.serve import endpoints as endpoints  # before the forks: each of them would read it again
from toprank.serve import history
from toprank.serve.app import App
from toprank.serve.guard import Keys
from toprank.serve.running import Server
from toprank.serve.service import Service
from toprank.serve.store import Store

CLIENTS = 4


def serve(path: Path, bound: socket.socket, text: bytes) -> None:
    """Be a server until killed."""
    service = Service(open_store(path, text))
    Server(App(service, Keys(None))).run(sockets=[bound])


def request(address: tuple[str, int], body: bytes) -> bytes:
    head = "POST /v1/feedback HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    head += f"content-length: {len(body)}\r\n"
    with socket.create_connection(address, timeout=10) as line:
        line.sendall(head.encode() + b"connection: close\r\n\r\n" + body)
        parts = []
        while part := line.recv(65536):
            parts.append(part)
    return b"".join(parts)


def client(
    address: tuple[str, int], pool: list[dict], acknowledged: dict[str, int], stop: threading.Event, seed: int
) -> None:
    """Send events, some again, some several at once; note what was acknowledged, and nothing else."""
    rng = random.Random(seed)
    while not stop.is_set():
        names = [f"{rng.getrandbits(64):x}" for _ in range(rng.choice((1, 1, 5)))]
        if acknowledged and rng.random() < 0.3:
            names[0] = rng.choice(list(acknowledged))
        chosen = [pool[int(name, 16) % len(pool)] | {"event_id": name} for name in names]  # an id has one content
        try:
            head, _, body = request(address, json.dumps(chosen).encode()).partition(b"\r\n\r\n")
            if b" 200 " not in head.partition(b"\r\n")[0]:
                continue
            for one, told in zip(chosen, json.loads(body), strict=True):
                before = acknowledged.setdefault(one["event_id"], told["seq"])
                if before != told["seq"]:
                    raise AssertionError(f"{one['event_id']} was {before} and is {told['seq']}")
        except (OSError, ValueError):
            continue  # killed in between: not acknowledged


def run(kills: int, seed: int, folder: Path) -> dict[str, object]:
    rng, path, text = random.Random(seed), folder / "rank.db", model()
    # Compile before the first fork; a thread that compiles must not be forked away.
    warm = Service(open_store(folder / "warm.db", text))
    warm.ready.wait()
    warm.stop()
    pool = [event("", i) for i in range(50)]
    acknowledged: dict[str, int] = {}
    failures: list[BaseException] = []
    threading.excepthook = lambda args: failures.append(args.exc_value)  # type: ignore[assignment]
    began = time.monotonic()
    for life in range(kills):
        bound = socket.socket()
        bound.bind(("127.0.0.1", 0))
        bound.listen(128)
        child = os.fork()
        if child == 0:
            try:
                serve(path, bound, text)
            finally:
                os._exit(1)
        address = bound.getsockname()
        bound.close()
        stop, before = threading.Event(), len(acknowledged)
        clients = [
            threading.Thread(target=client, args=(address, pool, acknowledged, stop, seed + 1000 * life + i))
            for i in range(CLIENTS)
        ]
        for one in clients:
            one.start()
        end = time.monotonic() + 20
        while len(acknowledged) == before and time.monotonic() < end:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.15))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        stop.set()
        for one in clients:
            one.join()
        if failures:
            raise failures[0]
        if (life + 1) % 100 == 0:
            print(f"{life + 1} kills, {len(acknowledged):,} acknowledged", file=sys.stderr, flush=True)
    took = time.monotonic() - began
    store = Store(path)
    replayed, difference, _ = history.verify(store)
    store.close()
    with sqlite3.connect(path) as db:
        rows = db.execute("SELECT event_id, seq FROM events")
        stored = {name.removeprefix("nobody/"): seq for name, seq in rows}
        twice = db.execute("SELECT count(*) - count(DISTINCT event_id) FROM events").fetchone()[0]
    db.close()
    lost = sum(stored.get(name) != seq for name, seq in acknowledged.items())
    return {
        "kills": kills,
        "seconds": round(took, 1),
        "acknowledged": len(acknowledged),
        "stored": len(stored),
        "lost": lost,
        "learned_twice": twice,
        "replayed": replayed,
        "difference": difference,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.serve.torture", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = run(args.kills, args.seed, Path(folder))
    print(json.dumps(found, indent=1))
    sys.exit(not (found["difference"] is None and found["lost"] == found["learned_twice"] == 0))


if __name__ == "__main__":
    main()
