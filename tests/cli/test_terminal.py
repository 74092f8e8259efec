"""What a terminal of 80 or of 200 columns shows: every word whole, no line wider than the terminal."""

import re
import sys
from contextlib import suppress

import pytest

import toprank as tr
from toprank._tables import Table
from toprank.cli import cli, main
from toprank.data.trec import run_of

WIDTHS = (80, 200)
NAMES = ["bm25_of_title", "bm25_of_body", "age_in_days", "share_of_clicks", "number_of_words_in_the_title"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("terminal")
    data = tr.datasets.make_graded(n_queries=40, n_docs=8, n_features=5, random_state=0)
    data = data.with_X(data.X, NAMES)
    for name, part in (("train", data[:25]), ("test", data[25:])):
        tr.write_parquet(part, folder / f"{name}.parquet")
    ranker = tr.ListNet().fit_queries(data[:25])
    ranker.save(folder / "model.json")
    for name, scores in (("mine", ranker.predict(data)), ("a-run-with-a-long-name", data.feature(0))):
        tr.write_run(run_of(data, scores), folder / f"{name}.run")
    judged = run_of(data, data.in_caller_order(data.y))
    tr.write_qrels(tr.Qrels(judged.qid, judged.doc_ids, judged.scores.astype(int)), folder / "qrels.txt")
    (folder / "features.csv").write_text("name,kind,field\n" + "".join(f"{name},field,{name}\n" for name in NAMES))
    return folder


def on_terminal(capsys, monkeypatch, width, *args):
    """Return what a command prints on a terminal of that width, without colours."""
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    with monkeypatch.context() as patched:
        patched.setattr(type(sys.stdout), "isatty", lambda self: self is sys.stdout, raising=False)
        with suppress(SystemExit):
            main([str(arg) for arg in args])
    return re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", capsys.readouterr().out)


def assert_whole(shown, piped, width):
    """Every word stands in what a pipe would get; lines are as narrow as the terminal unless one word is not."""
    known = {part for word in piped.split() for part in (word, *re.split(r"(?<=-)", word))}
    for line in shown.splitlines():
        assert len(line) <= width or len(line.split()) == 1, line
        for word in line.split():
            assert word in known or set(word) <= set("-\\.0123456789"), (word, line)  # seconds differ from run to run
    assert "…" not in set(shown) - set(piped)


COMMANDS = {
    "info": ("info", "train.parquet"),
    "evaluate": ("evaluate", "model.json", "test.parquet", "--measure", "ndcg@10,map,mrr,p@5"),
    "per-query": ("evaluate", "model.json", "test.parquet", "--per-query", "--measure", "ndcg@10,map,mrr,p@5,recall@5"),
    "compare": ("compare", "train.parquet", "test.parquet", "--rankers", "ListNet,OnlineListNet", "--budget", 0,
                "--resamples", 200, "--measures", "map,mrr,p@5"),
    "runs": ("compare", "--trec", "mine.run", "a-run-with-a-long-name.run", "--qrels", "qrels.txt", "--resamples", 200),
    "plan": ("plan", "mine.run", "a-run-with-a-long-name.run", "qrels.txt"),
    "certify": ("certify", "model.json", "test.parquet", "--baseline", "bm25_of_title", "--all"),
    "rank": ("rank", "model.json", "test.parquet"),
    "export": ("export", "model.json", "--to", "solr", "-o", "solr.json"),
    "verify": ("verify-export", "model.json", "solr.json", "test.parquet"),
    "fit": ("fit", "train.parquet", "--ranker", "RankSVM", "-o", "fitted.json"),
    "advise": ("advise", "train.parquet", "--radius", "1"),
    "features": ("features", "features.csv", "--for", "elasticsearch"),
    "measures": ("measures",),
    "rankers": ("rankers",),
    "reproduce": ("reproduce", "online-perceptrons", "list"),
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_no_word_is_cut(capsys, monkeypatch, home, name, tmp_path):
    monkeypatch.chdir(home)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with suppress(SystemExit):
        main([str(arg) for arg in COMMANDS[name]])
    piped = capsys.readouterr().out
    assert piped.strip()
    for width in WIDTHS:
        shown = on_terminal(capsys, monkeypatch, width, *COMMANDS[name])
        assert_whole(shown, piped, width)
        lost = set(piped.split()) - {part for word in shown.split() for part in (word, *re.split(r"(?<=-)", word))}
        assert not [word for word in lost if not set(word) <= set("-.0123456789")]


@pytest.mark.parametrize("name", ["", *cli.commands])
def test_help_is_whole(capsys, monkeypatch, name):
    command = (name, "--help") if name else ("--help",)
    wide = on_terminal(capsys, monkeypatch, 1000, *command)
    for width in WIDTHS:
        shown = on_terminal(capsys, monkeypatch, width, *command)
        assert_whole(shown, wide, min(width, 110))
        assert "..." not in re.sub(r"(\]|\b[A-Z]+)\.\.\.", "", shown)  # of arguments that may be repeated
    if name:
        assert "\nExamples:\n  toprank " in wide


def test_tables_too_wide_come_in_parts_that_lose_nothing():
    columns = ("who", *(f"column number {n}" for n in range(12)))
    rows = [(f"system-{r}", *(f"{r}.{n} [{r}, {n}]" for n in range(12))) for r in range(3)]
    table = Table(
        columns, rows, title="A title that is long enough to need two lines on a terminal so narrow", notes=["n " * 60]
    )
    for width in (30, 50, 80, 300):
        lines = [line for line, _ in table.fitted(width)]
        assert max(map(len, lines)) <= width
        found = " ".join(lines).split()
        for row in rows:
            assert found.count(row[0]) >= 1
            for cell in row:
                assert all(word in found for word in cell.split())
    assert sum(line.startswith("who") for line, _ in table.fitted(40)) > 1
    assert sum(line.startswith("who") for line, _ in table.fitted(400)) == 1


def test_a_number_that_there_is_none_of_is_a_dash():
    table = Table(["runs", "mean", "±"], [[1, 0.5, float("nan")]])
    assert "nan" not in table.plain() + table.markdown() + table.latex()
    assert table.plain().split()[-1] == "–"
