"""What is fetched is what is pinned, or it is not there."""

import hashlib
import re

import pytest

from tests.engines import fetching

FAKE = """#!/bin/sh
for word in "$@"; do case $word in -DoutputDirectory=*) out="${{word#*=}}";; esac; done
mkdir -p "$out"
printf '%s' "{content}" > "$out/thing-1.jar"
exit {code}
"""


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """An engine of one file, and a Maven client that brings what a test says."""
    monkeypatch.setenv("TOPRANK_ENGINES", str(tmp_path / "cache"))
    checksum = hashlib.sha256(b"right").hexdigest()
    (tmp_path / "pinned.txt").write_text(f"# a comment\nthing a.b:thing:1:jar {checksum}\n")
    listed = fetching.pinned(tmp_path / "pinned.txt")
    monkeypatch.setattr(fetching, "pinned", lambda: listed)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")

    def brings(content, code=0):
        program = tmp_path / "bin" / "mvn"
        program.write_text(FAKE.format(content=content, code=code))
        program.chmod(0o755)

    return brings


def test_a_file_with_the_pinned_checksum_is_kept(machine):
    machine("right")
    assert fetching.files("thing") is None
    assert fetching.fetch("thing") is None
    (path,) = fetching.files("thing")
    assert path.read_bytes() == b"right"
    machine("never asked", code=1)
    assert fetching.fetch("thing") is None  # it is there


def test_a_file_with_another_checksum_is_refused(machine):
    machine("wrong")
    assert "does not have the pinned checksum" in fetching.fetch("thing")
    assert fetching.files("thing") is None
    machine("right")
    fetching.fetch("thing")
    (path,) = fetching.files("thing")
    path.write_bytes(b"changed")
    assert fetching.fetch("thing") is None
    assert path.read_bytes() == b"right"


def test_a_client_that_fails_is_named(machine):
    machine("right", code=1)
    assert "mvn failed" in fetching.fetch("thing")
    assert fetching.files("thing") is None


def test_the_list_names_coordinates_and_no_place():
    text = fetching.PINNED.read_text()
    assert "://" not in text
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"\w+ [\w.-]+:[\w.-]+:[\w.-]+:(jar|zip) [0-9a-f]{64}", line) for line in lines)
    assert len({line.split()[1] for line in lines if line.startswith("solr")}) == sum(
        line.startswith("solr") for line in lines
    )
