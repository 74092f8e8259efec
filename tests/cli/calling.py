"""Run a command as a shell would, inside this process."""

import pytest

from toprank.cli import main


def call(capsys, *args: object) -> tuple[int, str, str]:
    """Run a command and return its exit code and what it printed on both streams."""
    with pytest.raises(SystemExit) as exit_:
        main([str(arg) for arg in args])
    captured = capsys.readouterr()
    return exit_.value.code, captured.out, captured.err


def run(capsys, *args: object) -> str:
    """Run a command that must succeed and return what it printed."""
    code, out, err = call(capsys, *args)
    assert code == 0, err
    return out


def fail(capsys, *args: object) -> str:
    """Run a command that must fail and return its one line."""
    code, out, err = call(capsys, *args)
    assert (code, out) == (2, "")
    assert err.startswith("toprank: error: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err
