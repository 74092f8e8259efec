"""Fetches the engines by their Maven coordinates, with pinned checksums, into a cache outside the tree.

`python -m tests.engines.fetching [ENGINE ...]` fetches what is not there yet; an engine that cannot be had is named,
and its tests are skipped. Nothing that is fetched is committed.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.sax.saxutils import escape

PINNED = Path(__file__).parent / "pinned.txt"
FETCH_SECONDS = 240
"""Longest time for the files of one engine."""


def cache():
    """The folder of the engines; tests/conftest.py sets TOPRANK_ENGINES before it moves XDG_CACHE_HOME."""
    given = os.environ.get("TOPRANK_ENGINES")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    return Path(given) if given else home / "toprank-engines"


def pinned(path=PINNED):
    """What each engine is made of: {engine: [(coordinates, checksum), ...]}."""
    found = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            engine, coordinates, checksum = line.split()
            found.setdefault(engine, []).append((coordinates, checksum))
    return found


def file_of(engine, coordinates):
    _, artifact, version, kind = coordinates.split(":")
    return cache() / engine / f"{artifact}-{version}.{kind}"


def files(engine):
    """The files of an engine; None where one is not there. A file with another checksum is not there."""
    found = [file_of(engine, coordinates) for coordinates, _ in pinned()[engine]]
    return found if all(path.is_file() for path in found) else None


def is_pinned(path, checksum):
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == checksum


def project(wanted):
    """A Maven project that copies artefacts and needs nothing else."""
    items = []
    for coordinates, _ in wanted:
        parts = zip(("groupId", "artifactId", "version", "type"), coordinates.split(":"), strict=True)
        items.append("".join(f"<{tag}>{escape(text)}</{tag}>" for tag, text in parts))
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>engines</groupId><artifactId>engines</artifactId>"
        "<version>1</version><packaging>pom</packaging><build><plugins><plugin>"
        "<artifactId>maven-dependency-plugin</artifactId><configuration><artifactItems>"
        + "".join(f"<artifactItem>{item}</artifactItem>" for item in items)
        + "</artifactItems></configuration></plugin></plugins></build></project>"
    )


def fetch(engine):
    """Fetch what is not there yet; return what went wrong, or None."""
    wanted = [(c, checksum) for c, checksum in pinned()[engine] if not is_pinned(file_of(engine, c), checksum)]
    if not wanted:
        return None
    if shutil.which("mvn") is None:
        return "there is no mvn"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "pom.xml").write_text(project(wanted))
        command = ["mvn", "-q", "-B", "-f", f"{folder}/pom.xml", "dependency:copy", f"-DoutputDirectory={folder}/got"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=FETCH_SECONDS)
        except subprocess.TimeoutExpired:
            return f"it took longer than {FETCH_SECONDS} s"
        if done.returncode:
            lines = [line for line in done.stdout.splitlines() if "ERROR" in line]
            return (lines or ["mvn failed"])[0][:300]
        for coordinates, checksum in wanted:
            target = file_of(engine, coordinates)
            got = Path(folder, "got", target.name)
            if not is_pinned(got, checksum):
                return f"{coordinates} does not have the pinned checksum"
            target.parent.mkdir(parents=True, exist_ok=True)
            draft = target.with_name(f".{target.name}.{os.getpid()}")
            shutil.copyfile(got, draft)
            draft.replace(target)
    return None


def main(names):
    lacking = 0
    for engine in names or pinned():
        problem = fetch(engine)
        lacking += problem is not None
        print(f"{engine}: {'in ' + str(cache() / engine) if problem is None else 'is not to be had here: ' + problem}")
    return lacking


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
