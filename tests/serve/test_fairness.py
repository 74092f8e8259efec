"""Nobody starves the others: neither one key, nor connections without a key, nor a log that nobody reads."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.serve.starting import Running, items, model, running
from toprank._keys import new_key
from toprank.serve.guard import Limits

SLOW = Limits(body_seconds=15.0, head_seconds=15.0, concurrent=8, concurrent_per_key=4, connections=12)


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    path = tmp_path / "keys.toml"
    return path, {name: new_key(path, name, ("rank", "admin")) for name in ("greedy", "other")}


@contextmanager
def half_bodies(server: Running, n: int, key: str = "") -> Iterator[None]:
    """Hold requests whose body does not come."""
    head = "POST /v1/rank HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 100\r\n"
    with ExitStack() as stack:
        for _ in range(n):
            line = stack.enter_context(socket.create_connection(server.address))
            line.sendall(f"{head}authorization: Bearer {key}\r\n\r\n{{".encode())
        yield


def until(done: Callable[[], Any]) -> Any:
    end = time.monotonic() + 10
    while not (found := done()):
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)
    return found


def test_one_key_does_not_starve_another(tmp_path: Path, keys: tuple[Path, dict[str, str]]) -> None:
    path, made = keys
    with (
        running(tmp_path, model(), keys=path, limits=SLOW) as server,
        half_bodies(server, SLOW.concurrent - 1, made["greedy"]),
    ):

        def rank(name: str) -> httpx.Response:
            return httpx.post(
                f"{server.url}/v1/rank", json={"items": items()}, headers={"authorization": f"Bearer {made[name]}"}
            )

        refused = until(lambda: (found := rank("greedy")).status_code == 503 and found)
        assert refused.headers["retry-after"] == "1"
        assert refused.json()["error"] == "the key 'greedy' has 4 requests under way, which is the most: try again"
        assert rank("other").status_code == 200


def test_health_and_metrics_are_answered_when_all_places_are_taken(tmp_path: Path) -> None:
    with running(tmp_path, model(), limits=SLOW) as server, half_bodies(server, SLOW.concurrent):
        full = until(
            lambda: (found := httpx.post(f"{server.url}/v1/rank", json={"items": items()})).status_code == 503 and found
        )
        assert "too many requests at once" in full.json()["error"]
        for path in ("/healthz", "/readyz", "/metrics"):
            assert httpx.get(server.url + path).status_code == 200


def test_connections_without_a_key_make_room_for_new_ones(tmp_path: Path, keys: tuple[Path, dict[str, str]]) -> None:
    path, made = keys
    with running(tmp_path, model(), keys=path, limits=SLOW) as server, ExitStack() as stack:
        head = {"authorization": f"Bearer {made['other']}"}
        early = stack.enter_context(httpx.Client(base_url=server.url, headers=head))
        assert early.get("/v1/model").status_code == 200
        silent = [stack.enter_context(socket.create_connection(server.address)) for _ in range(5 * SLOW.connections)]
        assert httpx.get(f"{server.url}/healthz").status_code == 200
        assert httpx.get(f"{server.url}/v1/model", headers=head).status_code == 200
        pool = early._transport._pool  # type: ignore[attr-defined]
        kept = pool.connections[0]
        assert early.get("/v1/model").status_code == 200
        assert pool.connections == [kept]  # who has shown a key is not sent away for others
        silent[0].settimeout(5)
        assert silent[0].recv(100) == b""  # the oldest went first
        silent[-1].settimeout(0.1)
        with pytest.raises(TimeoutError):
            silent[-1].recv(100)


def test_connections_with_keys_are_counted_too(tmp_path: Path, keys: tuple[Path, dict[str, str]]) -> None:
    path, made = keys
    with running(tmp_path, model(), keys=path, limits=SLOW) as server, ExitStack() as stack:
        head = {"authorization": f"Bearer {made['other']}"}
        for _ in range(SLOW.connections):
            client = stack.enter_context(httpx.Client(base_url=server.url, headers=head))
            assert client.get("/v1/model").status_code == 200
        assert httpx.get(f"{server.url}/healthz").status_code == 200  # an idle one of the key went


@contextmanager
def command(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A server as a command, whose standard error nobody reads."""
    (folder / "model.json").write_bytes(model())
    called = [sys.executable, "-m", "toprank", "serve", folder / "model.json", "--store", folder / "rank.db"]
    with subprocess.Popen(
        [*called, "--port", "0", "--json", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as started:
        try:
            assert started.stdout is not None
            url = json.loads(b"".join(iter(started.stdout.readline, b"}\n")) + b"}")["url"]
            with httpx.Client(base_url=url) as client:
                until(lambda: client.get("/healthz").status_code == 200)
            yield started, url
        finally:
            started.kill()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="signals and pipes of POSIX")
def test_a_log_that_nobody_reads_does_not_hang_the_server(tmp_path: Path) -> None:
    with command(tmp_path) as (started, url), httpx.Client(base_url=url, timeout=20) as client:
        for _ in range(1500):  # a pipe holds the lines of some 500
            assert client.get("/healthz").status_code == 200
        host, port = url.removeprefix("http://").split(":")
        for _ in range(1500):  # what the HTTP library itself complains of goes there too
            with socket.create_connection((host, int(port)), timeout=20) as line:
                line.sendall(b"\x16\x03\x01 not http\r\n\r\n")
                assert line.recv(100).startswith(b"HTTP/1.1 400")
        assert b"toprank_dropped_log_lines" in client.get("/metrics").content
        client.close()
        started.send_signal(signal.SIGTERM)
        assert started.wait(30) == 0
        assert started.stderr is not None
        lines = started.stderr.read().splitlines()
    assert json.loads(lines[0])["path"] == "/healthz"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="signals and pipes of POSIX")
def test_a_log_that_is_read_is_whole(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with command(tmp_path, "--log", str(log)) as (started, url), httpx.Client(base_url=url, timeout=20) as client:
        for i in range(200):
            client.get("/healthz", headers={"x-request-id": f"r{i}"})
        client.close()
        started.send_signal(signal.SIGTERM)
        assert started.wait(30) == 0
    names = [json.loads(line)["request"] for line in log.read_text().splitlines()]
    assert [name for name in names if name.startswith("r")] == [f"r{i}" for i in range(200)]
