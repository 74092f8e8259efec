"""The engines, started for a test on loopback, with bounded memory and time, and stopped behind it."""

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

import pytest

from tests.engines.fetching import files, pinned

HERE = Path(__file__).parent
JAVA = shutil.which("java")
MEMORY = ("-Xms64m", "-Xmx512m")
START_SECONDS = 120
REQUEST_SECONDS = 60
LIGHT = ("-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:+UseSerialGC")


def need(engine):
    """Skip, visibly, where an engine is not to be had."""
    if JAVA is None or shutil.which("javac") is None:
        pytest.skip(f"{engine} needs a JDK")
    if files(engine) is None:
        pytest.skip(f"{engine} is not in the cache: `make engines` fetches it")


def classpath(engine):
    return os.pathsep.join(str(path) for path in files(engine))


def run_java(engine, program, *arguments):
    """Run a program of tests/engines/java over the files of an engine."""
    command = [JAVA, *LIGHT, *MEMORY, "-cp", classpath(engine), HERE / "java" / program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]


class Server:
    """An engine that answers at an address."""

    def __init__(self, address):
        self.address = address

    def ask(self, method, path, body=None, kind="application/json"):
        """Status and answer; text that is not JSON is returned as it is."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.address}/{path}", data, {"Content-Type": kind}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as answer:
                status, content = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, content = error.code, error.read()
        with contextlib.suppress(ValueError):
            return status, json.loads(content)
        return status, content.decode(errors="replace")

    def must(self, method, path, body=None, kind="application/json"):
        """The answer; anything but success fails the test."""
        status, answer = self.ask(method, path, body, kind)
        assert status < 300, f"{method} {path}: {status} {str(answer)[:600]}"
        return answer


def _wait(process, log, port):
    """Return the port once the engine says it; fail with the end of its log where it does not."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        found = port()
        if found is not None:
            return found
        time.sleep(0.1)
    raise AssertionError(f"the engine did not start: {log.read_text(errors='replace')[-3000:]}")


def _stop(process):
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(20)


@contextlib.contextmanager
def solr():
    """A Solr node with the core `products`: text fields title and body, every other field a float."""
    need("solr")
    folder = Path(tempfile.mkdtemp(prefix="toprank-solr"))
    log = folder / "log"
    try:
        shutil.copytree(HERE / "solr", folder / "home")
        command = [JAVA, *LIGHT, *MEMORY, "-cp", classpath("solr"), HERE / "java" / "SolrNode.java", folder / "home"]
        with log.open("w") as out:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=out, cwd=folder)
        try:

            def port():
                said = [line for line in log.read_text(errors="replace").splitlines() if line.startswith("port ")]
                return int(said[0].split()[1]) if said else None

            yield Server(f"http://127.0.0.1:{_wait(process, log, port)}/solr")
        finally:
            process.stdin.close()
            _stop(process)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


DESCRIPTOR = """description=Lucene expressions
version={version}
name=lang-expression
classname=org.opensearch.script.expression.ExpressionPlugin
java.version=11
opensearch.version={version}
has.native.controller=false
"""
POLICY = """grant {
  permission java.lang.RuntimePermission "createClassLoader";
  permission java.lang.RuntimePermission "getClassLoader";
  permission org.opensearch.script.ClassPermission "<<STANDARD>>";
  permission org.opensearch.script.ClassPermission "org.apache.lucene.*";
};
"""
SETTINGS = """discovery.type: single-node
network.host: 127.0.0.1
http.port: 0
transport.port: 0
node.portsfile: true
cluster.routing.allocation.disk.threshold_enabled: false
"""


@contextlib.contextmanager
def opensearch():
    """The minimal server of OpenSearch with the language of Lucene expressions, on a port of its own."""
    need("opensearch")
    folder = Path(tempfile.mkdtemp(prefix="toprank-opensearch"))
    (archive,) = (path for path in files("opensearch") if path.suffix == ".zip")
    version = archive.stem.removeprefix("opensearch-")
    try:
        with zipfile.ZipFile(archive) as content:
            content.extractall(folder)
        home = folder / archive.stem
        module = home / "modules" / "lang-expression"
        module.mkdir()
        for jar in (path for path in files("opensearch") if path.suffix == ".jar"):
            shutil.copy(jar, module)
        (module / "plugin-descriptor.properties").write_text(DESCRIPTOR.format(version=version))
        (module / "plugin-security.policy").write_text(POLICY)
        (home / "config" / "opensearch.yml").write_text(SETTINGS)
        (home / "tmp").mkdir()
        (home / "bin" / "opensearch").chmod(0o755)
        user = {}
        if os.getuid() == 0:  # it refuses to run as root
            user = {"user": "nobody"}
            for path in (folder, *folder.rglob("*")):
                shutil.chown(path, "nobody")
        java_home = Path(JAVA).resolve().parent.parent
        environment = {
            "PATH": os.environ["PATH"],
            "OPENSEARCH_JAVA_HOME": str(java_home),
            "OPENSEARCH_JAVA_OPTS": " ".join(("-Xms512m", "-Xmx512m", "-XX:TieredStopAtLevel=1")),
            "OPENSEARCH_TMPDIR": str(home / "tmp"),
        }
        log = folder / "log"
        with log.open("w") as out:
            process = subprocess.Popen(
                [home / "bin" / "opensearch"],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=home, env=environment, **user,
            )  # fmt: skip
        try:
            ports = home / "logs" / "http.ports"

            def port():
                lines = ports.read_text().split() if ports.is_file() else []
                return next((int(line.rpartition(":")[2]) for line in lines if line.startswith("127.")), None)

            yield Server(f"http://127.0.0.1:{_wait(process, log, port)}")
        finally:
            _stop(process)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


ENGINES = tuple(pinned())
