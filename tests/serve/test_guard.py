"""No one gets in, and no one holds the door: keys, limits, and clients that dawdle, lie or never read."""

from __future__ import annotations

import hashlib
import io
import json
import os
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.serve.starting import Running, event, items, model, running
from toprank._keys import new_key, read_keys, write_keys
from toprank.cli.serve import listen
from toprank.errors import InputError
from toprank.serve.guard import Keys, Limits

QUICK = Limits(head_seconds=0.4, body_seconds=0.4, stuck_seconds=0.4, concurrent=4, connections=30, rate=100_000.0)


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("quick"), model(), limits=QUICK) as started:
        yield started


def rest(line: socket.socket) -> bytes:
    """What comes until the other side closes; it must, within seconds."""
    line.settimeout(20)
    parts = []
    with suppress(ConnectionResetError):
        while part := line.recv(65536):
            parts.append(part)
    return b"".join(parts)


HEAD = b"POST /v1/rank HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (b"", b"408"),  # silence
        (b"POST /v1/ra", b"408"),  # half a line
        (HEAD, b"408"),  # half a head
        (HEAD + b"content-length: 100\r\n\r\n{", b"408"),  # half a body
        (HEAD + b"transfer-encoding: chunked\r\n\r\n5\r\n{", b"408"),
        (HEAD + b"content-length: 10000000\r\n\r\n", b"413"),
        (HEAD + b"content-length: -5\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n" + b"x: " + b"y" * 100_000, b"431"),
        (b"GET /" + b"a" * 100_000, b"431"),
        (b"\x16\x03\x01 not http", b"400"),
    ],
)
def test_who_dawdles_is_shown_out(quick: Running, sent: bytes, answer: bytes) -> None:
    with socket.create_connection(quick.address) as line:
        line.sendall(sent)
        assert rest(line).split(b" ")[1] == answer
    assert quick.get("/healthz")["status"] == "ok"


def test_half_a_head_after_an_answer_is_not_waited_for_either(quick: Running) -> None:
    with socket.create_connection(quick.address) as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        assert line.recv(65536).startswith(b"HTTP/1.1 200")
        line.sendall(b"GET /healthz HT")
        assert b"408" in rest(line)


def test_a_drop_at_a_time_does_not_buy_more_time(quick: Running) -> None:
    began = time.monotonic()
    with socket.create_connection(quick.address) as line:
        try:
            for letter in HEAD * 20:
                line.sendall(bytes([letter]))
                time.sleep(0.02)
        except (BrokenPipeError, ConnectionResetError):
            pass
        else:
            pytest.fail("the drops were all taken")
    assert time.monotonic() - began < 20


def test_ten_megabytes_are_refused_and_nothing_is_kept(quick: Running) -> None:
    def send() -> Iterator[bytes]:
        for _ in range(100):
            yield b" " * 100_000

    head = {"content-type": "application/json"}
    for content in (b" " * 10_000_000, send()):
        with suppress(
            httpx.WriteError, httpx.ReadError, httpx.RemoteProtocolError
        ):  # closed while it was still sending
            assert httpx.post(f"{quick.url}/v1/rank", content=content, headers=head).status_code == 413
    assert quick.get("/healthz")["status"] == "ok"


def test_idle_connections_do_not_lock_others_out(quick: Running) -> None:
    lines = [socket.create_connection(quick.address) for _ in range(QUICK.connections + 10)]
    answers = [rest(line)[:12] for line in lines]
    for line in lines:
        line.close()
    assert set(answers) <= {b"HTTP/1.1 408", b"HTTP/1.1 503", b""}
    assert b"HTTP/1.1 408" in answers
    assert httpx.get(f"{quick.url}/healthz").status_code == 200


def test_too_many_at_once_are_asked_to_come_again(quick: Running) -> None:
    body = HEAD + b"content-length: 100\r\n\r\n{"
    for _ in range(20):  # on a busy machine the others may be gone again before the question comes
        lines = [socket.create_connection(quick.address) for _ in range(QUICK.concurrent)]
        for line in lines:
            line.sendall(body)
        time.sleep(0.05)
        answer = httpx.get(f"{quick.url}/openapi.json")
        for line in lines:
            assert b" 408 " in rest(line)
            line.close()
        if answer.status_code != 200:
            break
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert httpx.get(f"{quick.url}/healthz").status_code == 200


def test_who_never_reads_is_let_go(quick: Running) -> None:
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.connect(quick.address)
    ask = b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
    end = time.monotonic() + 20
    with line:
        line.setblocking(False)
        while time.monotonic() < end:
            try:
                line.send(ask)
            except BlockingIOError:
                pass
            except (BrokenPipeError, ConnectionResetError):
                return
            time.sleep(0.003)
    pytest.fail("it was never let go")


def test_a_flood_of_requests_on_one_line_is_cut_off(quick: Running) -> None:
    with socket.create_connection(quick.address) as line:
        with suppress(ConnectionError):
            line.sendall(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n" * 50_000)
        assert rest(line).count(b"HTTP/1.1") < 20_000
    assert quick.get("/healthz")["status"] == "ok"


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    path = tmp_path / "keys.toml"
    made = {name: new_key(path, name, (name,)) for name in ("rank", "learn", "admin")}
    made["slow"] = new_key(path, "slow", ("rank",), rate=2.0)
    return path, made


def test_each_key_opens_its_own_doors(tmp_path: Path, keys: tuple[Path, dict[str, str]]) -> None:
    path, made = keys
    assert path.stat().st_mode & 0o777 == 0o600
    assert not any(key in path.read_text() for key in made.values())
    assert hashlib.sha256(made["rank"].encode()).hexdigest() in path.read_text()
    log = io.StringIO()
    with running(tmp_path, model(), keys=path, log=log) as server:
        doors = {"rank": ("/v1/rank", {"items": items()}), "learn": ("/v1/feedback", event("a"))}
        doors["admin"] = ("/v1/model:freeze", {"frozen": False})
        for name, key in made.items():
            for door, (address, body) in doors.items():
                status = 200 if door == name or (name, door) == ("slow", "rank") else 403
                server.post(address, body, status, authorization=f"Bearer {key}")
        for wrong in ("", "Bearer", "Bearer x", f"Bearer {made['rank']}x", f"Basic {made['rank']}", "Bearer \xe9"):
            answer = server.client.get("/v1/model", headers=[(b"authorization", wrong.encode("latin-1"))])
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        for address in ("/healthz", "/readyz", "/", "/openapi.json"):
            assert server.client.get(address).status_code == 200
        assert server.client.get("/metrics").status_code == 401
        slow = {"authorization": f"Bearer {made['slow']}"}
        told = [server.client.post("/v1/rank", json={"items": items()}, headers=slow) for _ in range(4)]
        assert 429 in {answer.status_code for answer in told}
        assert next(answer for answer in told if answer.status_code == 429).headers["retry-after"] == "1"
        server.post(
            "/v1/rank", {"items": items()}, authorization=f"Bearer {made['rank']}"
        )  # others are not slowed down
        write_keys(path, {name: key for name, key in read_keys(path).items() if name != "rank"})
        server.post("/v1/rank", {"items": items()}, 401, authorization=f"Bearer {made['rank']}")
        path.write_text("broken [")
        server.get("/v1/model", 401, authorization=f"Bearer {made['admin']}")
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    assert {line["key"] for line in lines} >= {"rank", "learn", "admin", None}
    assert not any(key in log.getvalue() for key in made.values())
    assert "bm25" not in log.getvalue()  # no features


def test_without_keys_only_this_machine_is_served(tmp_path: Path, server: Running) -> None:
    with pytest.raises(InputError, match="there are no keys: make one"):
        listen("0.0.0.0", 0, Keys(None))
    for host, status in (
        ("localhost", 200),
        ("127.0.0.1:80", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example", 403),
    ):
        assert server.client.get("/v1/model", headers={"host": host}).status_code == status
    # A page of another site may send what needs no asking first: plain text, and a form.
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        answer = server.client.post("/v1/rank", content=b"{}", headers={"content-type": kind})
        assert answer.status_code == 415
    server.post("/v1/rank", {"items": items()}, 403, origin="http://evil.example")
    server.post("/v1/rank", {"items": items()}, origin=server.url, host=server.url.removeprefix("http://"))


def test_answers_give_nothing_of_the_inside_away(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(f"secret in {os.getcwd()}")

    monkeypatch.setattr(server.service, "rank", broken)
    told = server.post("/v1/rank", {"items": items()}, 500, x_request_id="my-own.id")
    assert told == {"error": "something went wrong inside: see the log by the request id", "request_id": "my-own.id"}
    monkeypatch.undo()
    answer = server.client.get("/v1/model/versions/99", headers={"x-request-id": "bad id"})
    assert answer.status_code == 404
    assert answer.headers["x-request-id"] != "bad id"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert "server" not in answer.headers
    assert server.get(f"/v1/model/versions/{'9' * 5000}", 404)["error"].endswith("Not Found")
    assert server.get("/nope", 404)["error"] == "GET /nope: Not Found"
    assert server.post("/healthz", {}, 405)["error"].startswith("POST /healthz")
    assert "store" not in json.dumps(server.get("/v1/model"))


def test_bad_key_files_are_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    for text in (
        "x",
        "[a]\nsha256 = 'short'\nscopes = ['rank']",
        f"[a]\nsha256 = '{'0' * 64}'\nscopes = ['all']",
        "a = 1",
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=r"keys\.toml"):
            Keys(path)
    with pytest.raises(InputError, match="No such file"):
        Keys(tmp_path / "none.toml")
    path.unlink()
    new_key(path, "a", ("rank",))
    with pytest.raises(InputError, match="there is a key 'a' already"):
        new_key(path, "a", ("rank",))
    with pytest.raises(InputError, match="letters, digits"):
        new_key(path, "a]\n[b", ("rank",))


def test_buckets_fill_again_and_do_not_mind_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    keys = Keys(None, rate=2.0)
    keys.admit(None, "rank")
    keys.admit(None, "rank")
    with pytest.raises(InputError, match="too many requests"):
        keys.admit(None, "rank")
    now[0] += 0.5
    keys.admit(None, "rank")


def test_many_clients_with_broken_lines_leave_the_server_well(quick: Running) -> None:
    def rude(i: int) -> None:
        with socket.create_connection(quick.address) as line:
            line.sendall((HEAD + b"content-length: 50\r\n\r\n{}")[: 10 + i * 7])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(rude, range(24)))
    end = time.monotonic() + 20
    while httpx.get(f"{quick.url}/readyz").status_code != 200:
        assert time.monotonic() < end
    assert len(quick.post("/v1/rank", {"items": items()})["items"]) == 5


@pytest.mark.parametrize("word", ["Bearer", "bearer", "BEARER", "bEaReR"])
@pytest.mark.parametrize("space", [" ", "  "])
def test_the_word_before_a_key_has_any_case(
    tmp_path: Path, keys: tuple[Path, dict[str, str]], word: str, space: str
) -> None:
    path, made = keys
    allowed = Keys(path)
    assert allowed.admit(f"{word}{space}{made['rank']}", "rank") == "rank"
    for wrong in (f"Basic {made['rank']}", f"{word}{made['rank']}", f"{word} {word} {made['rank']}", word):
        with pytest.raises(InputError, match="a key is needed"):
            allowed.admit(wrong, "rank")
