"""Something moves from the first moment of every command until it prints, and the time left is believable."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
import time

import pytest

import toprank as tr
from toprank import _progress
from toprank._progress import Pace, busy, steps, track
from toprank.cli import cli, main
from toprank.contests import search
from toprank.data import files
from toprank.data.trec import run_of
from toprank.model import Model
from toprank.rankers.base import Ranker
from toprank.report import page


class Paper(io.BytesIO):
    """A standard output that notes whether a display stood on the terminal when something was written."""

    def __init__(self) -> None:
        super().__init__()
        self.disturbed: list[bool] = []

    def write(self, content) -> int:
        self.disturbed.append(bool(_progress._open))
        return super().write(content)

    def writelines(self, lines) -> None:
        for line in lines:
            self.write(line)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("moving")
    data = tr.datasets.make_graded(n_queries=30, n_docs=6, n_features=4, random_state=0)
    tr.write_letor(data, folder / "data.txt")
    ranker = tr.ListNet().fit_queries(data)
    ranker.save(folder / "model.json")
    for name, scores in (("a", ranker.predict(data)), ("b", data.feature(0))):
        tr.write_run(run_of(data, scores), folder / f"{name}.run")
    judged = run_of(data, data.in_caller_order(data.y))
    tr.write_qrels(tr.Qrels(judged.qid, judged.doc_ids, judged.scores.astype(int)), folder / "qrels.txt")
    tr.export.write(ranker, folder / "solr.json", "solr")
    return folder


# What takes long on large data, by the module or class that commands reach it through.
WORK = [
    (files, "read"),
    (files, "convert"),
    (Ranker, "fit_queries"),
    (Ranker, "predict_grouped"),
    (Model, "predict_grouped"),
    (search.Search, "run"),
    (page, "write_report"),
]
COMMANDS = {
    "info": ("info", "data.txt"),
    "convert": ("convert", "data.txt", "-"),
    "fit": ("fit", "data.txt", "-o", "new.json"),
    "fit to standard output": ("fit", "data.txt", "-o", "-"),
    "evaluate": ("evaluate", "model.json", "data.txt"),
    "evaluate runs": ("evaluate", "--trec", "a.run", "qrels.txt"),
    "rank": ("rank", "model.json", "data.txt"),
    "rank as a run": ("rank", "model.json", "data.txt", "--trec"),
    "compare": ("compare", "data.txt", "data.txt", "--rankers", "ListNet,RankSVM", "--budget", "0", "--html", "p.html"),
    "compare runs": ("compare", "--trec", "a.run", "b.run", "--qrels", "qrels.txt", "--html", "q.html"),
    "plan": ("plan", "a.run", "b.run", "qrels.txt"),
    "certify": ("certify", "model.json", "data.txt"),
    "advise": ("advise", "data.txt", "--radius", "1"),
    "export": ("export", "model.json", "--to", "json", "-o", "-"),
    "verify": ("verify-export", "model.json", "solr.json", "data.txt"),
    "demo": ("demo", "--generated", "--queries", "20", "--html", "r.html"),
    "reproduce": ("reproduce",),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_display_stands_while_a_command_works_and_never_while_it_prints(name, home, monkeypatch, tmp_path):
    monkeypatch.chdir(home)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    moving: list[tuple[str, bool]] = []

    def watched(where, what):
        real = getattr(where, what)

        def called(*args, **options):
            moving.append((what, bool(_progress._open)))
            return real(*args, **options)

        monkeypatch.setattr(where, what, called)

    for where, what in WORK:
        watched(where, what)
    paper, terminal = Paper(), io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", io.TextIOWrapper(paper, write_through=True))
        patched.setattr(sys, "stderr", terminal)
        with pytest.raises(SystemExit) as exit_:
            main(list(COMMANDS[name]))
    assert exit_.value.code == 0
    assert f"toprank {COMMANDS[name][0]}" in terminal.getvalue(), "the display opens before anything is done"
    assert all(shown for _, shown in moving), moving
    assert paper.disturbed
    assert not any(paper.disturbed)
    assert not _progress._open


def test_every_command_moves():
    """A command added tomorrow is wrapped as well; a group has commands of its own."""
    for command in cli.commands.values():
        assert hasattr(command, "commands") or hasattr(command.callback, "__wrapped__"), command.name


CODE = """
import json, sys
from importlib.abc import MetaPathFinder
from toprank import _progress
sys.stderr.isatty = lambda: True
class Watch(MetaPathFinder):
    met = {}
    def find_spec(self, name, path, target=None):
        if name in ("sklearn", "numba", "numpy", "scipy", "pandas"):
            Watch.met.setdefault(name, bool(_progress._open))
sys.meta_path.insert(0, Watch())
from toprank.cli import cli
cli.main(args=sys.argv[1:], standalone_mode=False)
print(json.dumps(Watch.met))
"""


@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_what_takes_long_to_load_is_loaded_behind_a_display(command, home, tmp_path):
    options = ["data.txt", "-o", str(tmp_path / "m.json")] if command == "fit" else ["model.json", "data.txt"]
    done = subprocess.run([sys.executable, "-c", CODE, command, *options], cwd=home, capture_output=True, check=True)
    met = json.loads(done.stdout.splitlines()[-1])
    assert {"numpy", "numba"} <= set(met)
    assert all(met.values()), met


def test_the_display_moves_by_itself(monkeypatch):
    """Two different frames come although nobody says anything meanwhile."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal, monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", terminal)
        patched.setenv("TERM", "xterm")
        frames: set[bytes] = set()
        with busy("thinking"):
            for _ in range(200):
                frames |= {part for part in os.read(ours, 4096).split(b"\r") if b"thinking" in part}
                if len(frames) > 2:
                    break
                time.sleep(0.05)
    os.close(ours)
    assert len(frames) > 2


def test_one_display_at_a_time(monkeypatch):
    events = []

    class Display:
        def __init__(self, name):
            self.name = name

        def start(self):
            events.append(f"+{self.name}")

        def stop(self):
            events.append(f"-{self.name}")

    with _progress._on_screen(Display("outer")):
        with _progress._on_screen(Display("inner")), _progress.aside():
            events.append("note")
        _progress.silence()
        events.append("result")
    assert " ".join(events) == "+outer -outer +inner -inner -outer note +inner -inner +outer -outer result -outer"


def test_results_printed_one_by_one_have_a_display_between_them(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)

    def made():
        for number in range(3):
            assert _progress._open, "it stands while a result is made"
            yield number

    _progress.silence()
    for _ in _progress.each_busy(made(), "computing"):
        assert not _progress._open
    assert not _progress._open


# Steps in the order in which a contest makes them, and how long each takes by its kind.
COSTS = {"ListNet": 2.0, "RankSVM": 1.0, "RankBoost": 40.0, "SlamPerceptron": 0.5}
COUNTS = {"ListNet": 9, "RankSVM": 12, "RankBoost": 3, "SlamPerceptron": 12}
ORDER = [name for level in range(12) for name in COUNTS if level < COUNTS[name]]


@pytest.mark.parametrize("resumed", [0, 14])
def test_the_time_left_is_believable_at_half_time(resumed):
    """In a simulated clock; also where the first steps are remembered from an interrupted run and take no time."""
    pace, clock = Pace(dict(COUNTS)), 0.0
    spent = [0.0 if number < resumed else COSTS[name] for number, name in enumerate(ORDER)]
    total, told = sum(spent), []
    for name, seconds in zip(ORDER, spent, strict=True):
        clock += seconds
        pace.step(name, COSTS[name])
        told.append((clock, pace.left()))
    half = min(told, key=lambda pair: abs(pair[0] - total / 2))
    assert half[1] == pytest.approx(total - half[0], rel=0.1)
    # The mean over all steps so far, whatever their kind, is what nobody would believe.
    made = next(n for n, (at, _) in enumerate(told, 1) if at == half[0])
    assert abs(half[0] / made * (len(ORDER) - made) - (total - half[0])) > 0.3 * (total - half[0])
    assert told[-1][1] == 0


def test_time_left_ends_with_the_budget_and_runs_down_within_a_step():
    pace = Pace({"fit": 10}, most=30.0)
    assert pace.left() is None
    pace.step("fit", 10.0)
    assert pace.left() == 20.0
    assert pace.left(running=4.0) == 16.0
    pace.step("fit", 30.0)
    assert pace.left() == 0.0
    unlimited = Pace({"fit": 3})
    unlimited.step("fit", 10.0)
    assert [unlimited.left(running) for running in (0.0, 4.0, 10.0, 60.0)] == [20.0, 16.0, 10.0, 10.0]
    unlimited.step("fit", None)
    assert unlimited.left() == 10.0


def test_the_bar_shows_that_time(capfd, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    clock = [100.0]
    monkeypatch.setattr("toprank._progress.time.monotonic", lambda: clock[0])
    with steps({"fit": 4}, show=True) as tell:
        tell("ListNet")
        clock[0] += 70.0
        tell("ListNet", "fit", 70.0)
        tell("ListNet", "fit", 70.0)
    assert "2:20 left" in capfd.readouterr().err
    for _ in track("abcd", "epochs", show=True):
        clock[0] += 30.0
        if clock[0] > 280:
            break
    assert "epochs" in capfd.readouterr().err
