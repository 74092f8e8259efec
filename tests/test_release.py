"""What surrounds the package: workflows that cannot run here, the citation, the wheel and the source distribution."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import toprank

ROOT = Path(__file__).parent.parent
SCHEMAS = {
    "vendor.github-workflows": sorted(ROOT.glob(".github/workflows/*.yml")),
    "custom.github-workflows-require-timeout": sorted(ROOT.glob(".github/workflows/*.yml")),
    "vendor.dependabot": [ROOT / ".github/dependabot.yml"],
    "vendor.github-issue-forms": [ROOT / f".github/ISSUE_TEMPLATE/{name}.yml" for name in ("bug", "idea")],
    "vendor.github-issue-config": [ROOT / ".github/ISSUE_TEMPLATE/config.yml"],
    "vendor.citation-file-format": [ROOT / "CITATION.cff"],
}


def check(schema: str, files: list[Path]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_for_the_forge_fit_their_schemas(schema: str) -> None:
    assert SCHEMAS[schema]
    done = check(schema, SCHEMAS[schema])
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_workflow_with_a_mistake_does_not_fit(tmp_path: Path) -> None:
    wrong = (ROOT / ".github/workflows/tests.yml").read_text().replace("runs-on:", "run-on:")
    (tmp_path / "wrong.yml").write_text(wrong)
    assert check("vendor.github-workflows", [tmp_path / "wrong.yml"]).returncode == 1


def test_workflows_call_targets_that_the_makefile_has() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    called = {
        name
        for workflow in ROOT.glob(".github/workflows/*.yml")
        for name in re.findall(r"\bmake ([a-z-]+)", workflow.read_text())
    }
    assert called
    assert called <= targets


def build(kind: str, out: Path) -> Path:
    command = [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = out.iterdir()
    return made


def test_the_wheel_is_pure_small_and_whole(tmp_path: Path) -> None:
    wheel = build("wheel", tmp_path)
    assert wheel.name == f"toprank-{toprank.__version__}-py3-none-any.whl"
    assert wheel.stat().st_size < 2_000_000
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("toprank/")}
    sources = subprocess.run(
        ["git", "ls-files", "src/toprank"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert packed == {name.removeprefix("src/") for name in sources}


def test_the_source_distribution_has_what_a_wheel_is_built_from(tmp_path: Path) -> None:
    sdist = build("sdist", tmp_path)
    with tarfile.open(sdist) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "CITATION.cff", "src/toprank/__init__.py"} <= names


@pytest.mark.slow
def test_the_wheel_runs_where_nothing_else_is_installed(tmp_path: Path) -> None:
    wheel = build("wheel", tmp_path / "dist")
    home = tmp_path / "empty"
    subprocess.run([sys.executable, "-m", "venv", home], check=True)
    subprocess.run([home / "bin" / "python", "-m", "pip", "install", "--quiet", wheel], check=True)
    done = subprocess.run([home / "bin" / "toprank", "demo"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "BM25" in done.stdout
