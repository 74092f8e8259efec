"""TREC files in and out: round trips, places of errors, and rows by score."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toprank.data.dataset import QueryDataset
from toprank.data.grouping import numbered
from toprank.data.trec import Qrels, Run, qrels_of, read_qrels, read_run, run_of, write_qrels, write_run
from toprank.errors import InputError, ParseError

words = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=1, max_size=6)
scores = st.floats(allow_nan=False)
tables = st.dictionaries(words, st.dictionaries(words, scores, min_size=1, max_size=5), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(tables)
def test_runs_come_back(tmp_path_factory, table: dict[str, dict[str, float]]) -> None:
    path = tmp_path_factory.mktemp("run") / "run.txt.gz"
    write_run(Run.of(table), path)
    back = read_run(path)
    rows = zip(back.qid.tolist(), back.doc_ids.tolist(), back.scores.tolist(), strict=True)
    assert {(q, d): s for q, d, s in rows} == {(q, d): s for q, docs in table.items() for d, s in docs.items()}
    for query in table:
        mine = back.scores[back.qid == query]
        assert (np.diff(mine) <= 0).all() or np.isnan(np.diff(mine)).any()
        assert back.rank[back.qid == query].tolist() == list(range(1, len(mine) + 1))


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(words, st.dictionaries(words, st.integers(-2, 4), min_size=1, max_size=5), max_size=4))
def test_judgements_come_back_in_order(tmp_path_factory, table: dict[str, dict[str, int]]) -> None:
    path = tmp_path_factory.mktemp("qrels") / "qrels.txt"
    write_qrels(Qrels.of(table), path)
    back = read_qrels(path)
    rows = list(zip(back.qid.tolist(), back.doc_ids.tolist(), back.grades.tolist(), strict=True))
    assert rows == [(q, d, g) for q, docs in table.items() for d, g in docs.items()]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), min_size=1, max_size=20))
def test_rank_counts_what_stands_before(rows: list[tuple[str, int]]) -> None:
    qid, values = np.array([q for q, _ in rows]), np.array([s for _, s in rows], dtype=float)
    run = Run(qid, np.arange(len(rows)).astype(str), values)
    expected = [
        1 + sum(q == query and (s > score or (s == score and j < i)) for j, (q, s) in enumerate(rows))
        for i, (query, score) in enumerate(rows)
    ]
    assert run.rank.tolist() == expected


def test_words_may_be_apart_by_tabs_and_lines_may_be_blank_or_end_the_windows_way(tmp_path: Path) -> None:
    text = b"\n q1\tQ0  d1 1\t2.5 tag \r\n\r\nq1 Q0 d2 2 -1e3 tag"
    for data in (text, gzip.compress(text)):
        (tmp_path / "run").write_bytes(data)
        run = read_run(tmp_path / "run")
        assert run.doc_ids.tolist() == ["d1", "d2"]
        assert run.scores.tolist() == [2.5, -1000]
    assert read_qrels(io.BytesIO(b"")).grades.tolist() == []
    assert read_run(io.BytesIO(b"\n\n")).scores.tolist() == []


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_run, "q Q0 d 1 2.5\n", "1:1: expected 6 words (query Q0 document rank score tag), got 5"),
        (read_run, "q Q0 d 1 2.5 t\n\nq Q0 e 1 2.5 t x\n", "3:1: expected 6 words"),
        # One word too few and one too many: the total is right, the lines are not.
        (read_run, "q Q0 d 1 2.5\nq Q0 e 1 2.5 t x\n", "1:1: expected 6 words"),
        (read_run, "q Q0 d 1 2.5 t\nq Q0 e 2  high t\n", "2:11: a score is a number, found 'high'"),
        (read_run, "q Q0 d 1 nan t\n", "1:10: a score is a number, found 'nan'"),
        (read_run, "q Q0 d 1 1 t\nr Q0 d 1 1 t\nq Q0 d 2 1 t\n", "3:6: this document stands twice under query q"),
        (read_qrels, "q 0 d\n", "1:1: expected 4 words (query iteration document grade), got 3"),
        (read_qrels, "q 0 d 1\n\nq 0 e 1.5\n", "3:7: a grade is a whole number, found '1.5'"),
        (read_qrels, "q 0 d 1\nq 0 d 1\n", "2:5: this document stands twice under query q"),
    ],
)
def test_bad_lines_are_named_by_place(tmp_path: Path, read, text: str, message: str) -> None:
    path = tmp_path / "file.txt"
    path.write_text(text)
    with pytest.raises(ParseError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}:{message}")


def test_ids_must_be_text(tmp_path: Path) -> None:
    with pytest.raises(ParseError, match="<stream>:1:5: ids are UTF-8 text"):
        read_qrels(io.BytesIO(b"q 0 \xff 1\n"))
    for bad in ("a b", "", " a", "a\n"):
        with pytest.raises(InputError, match="document ids in TREC files are single words"):
            write_run(Run.of({"q": {bad: 1.0}}), tmp_path / "run")
        with pytest.raises(InputError, match="query ids in TREC files are single words"):
            write_qrels(Qrels.of({bad: {"d": 1}}), tmp_path / "qrels")
        with pytest.raises(InputError, match="tag in TREC files are single words"):
            write_run(Run.of({"q": {"d": 1.0}}), tmp_path / "run", tag=bad)
    assert not list(tmp_path.iterdir())


def test_values_are_checked() -> None:
    with pytest.raises(InputError, match="scores has NaN in row 0"):
        Run.of({"q": {"d": float("nan")}})
    with pytest.raises(InputError, match=r"qrels hold whole grades: row 1 is 0.5"):
        qrels_of(QueryDataset.from_arrays(np.zeros((2, 1)), [0, 0.5]))
    with pytest.raises(InputError, match="one query, document and value per row, got 1, 1, 2"):
        Run(np.array(["q"]), np.array(["d"]), np.zeros(2))


def test_data_sets_become_runs_and_judgements() -> None:
    data = QueryDataset.from_arrays(np.zeros((4, 1)), [0, 1, 2, 0], [8, 7, 8, 8])
    run = run_of(data, [0.5, 1.5, 0.5, 3.0])
    assert run.qid.tolist() == ["8", "8", "8", "7"]
    assert run.doc_ids.tolist() == ["4", "1", "3", "2"]  # the caller's rows, ties in their order
    assert run.rank.tolist() == [1, 2, 3, 1]
    qrels = qrels_of(data)
    assert dict(zip(qrels.doc_ids.tolist(), qrels.grades.tolist(), strict=True)) == {"1": 0, "2": 1, "3": 2, "4": 0}
    named = QueryDataset.from_arrays(np.zeros((2, 1)), [0, 1], doc_ids=["x", "y"])
    assert run_of(named, [1, 2]).doc_ids.tolist() == ["y", "x"]
    assert numbered(named.doc_ids).tolist() == [0, 1]


def test_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    write_run(Run.of({"q": {"d": 0.1}}), "-", tag="me")
    write_qrels(Qrels.of({"q": {"d": 3}}), "-")
    assert capsys.readouterr().out == "q Q0 d 1 0.1 me\nq 0 d 3\n"
