from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import toprank as tr

from .calling import fail, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    home = tmp_path_factory.mktemp("clicks")
    data = tr.datasets.make_graded(n_queries=40, n_docs=12, n_features=5, random_state=0)
    names = np.array([f"d{i}" for i in range(data.n_docs)])
    frame = pd.DataFrame(data.X, columns=list("vwxyz"))
    frame.insert(0, "query", [f"q{q}" for q in data.qid])
    frame.insert(1, "doc_id", names)
    frame["label"] = data.y
    frame.to_parquet(home / "features.parquet")
    log = tr.datasets.simulate_clicks(data, [data.X[:, 0], data.X[:, 1]], sessions=20_000, cut=5)
    table = pd.DataFrame(
        {
            "session": log.session,
            "query": [f"q{q}" for q in log.query_ids[log.query]],
            "document": names[log.document],
            "position": log.position,
            "clicked": log.clicked,
        }
    )
    table.to_parquet(home / "log.parquet")
    return home


def test_from_a_log_to_a_ranker(capsys, folder, tmp_path):
    out = run(
        capsys,
        "clicks",
        folder / "log.parquet",
        "--features",
        folder / "features.parquet",
        "-o",
        tmp_path / "t.parquet",
        "--holdout",
        tmp_path / "h.parquet",
        "--save-propensities",
        tmp_path / "p.json",
    )
    assert "method smooth" in out
    assert "clicks weigh as much as" in out
    judged = tr.read_table(tmp_path / "t.parquet")
    assert judged.feature_names == tuple("vwxyz")  # grades are no feature
    assert judged.doc_weight.max() > 1
    assert set(judged.y.tolist()) == {0.0, 1.0}
    assert tr.read_table(tmp_path / "h.parquet").doc_weight.sum() < judged.doc_weight.sum()
    seen = tr.clicks.Propensities.load(tmp_path / "p.json")
    assert np.abs(seen.values - 1 / np.arange(1, 6)).max() < 0.15
    again = json.loads(
        run(
            capsys,
            "clicks",
            folder / "log.parquet",
            "--features",
            folder / "features.parquet",
            "-o",
            tmp_path / "u.parquet",
            "--propensities",
            tmp_path / "p.json",
            "--json",
        )
    )
    assert again["propensities"] == pytest.approx(seen.values.tolist())
    assert again["effective_clicks"] < again["clicks"]


def test_held_out_clicks_count_by_their_weights(capsys, folder, tmp_path):
    train, held = tmp_path / "t.parquet", tmp_path / "h.parquet"
    features = ("--features", folder / "features.parquet")
    run(capsys, "clicks", folder / "log.parquet", *features, "-o", train, "--holdout", held)
    run(capsys, "fit", train, "--ranker", "ListNet", "-o", tmp_path / "m.json")
    expected = tr.clicks.click_value(tr.load(tmp_path / "m.json"), tr.read_table(held))
    assert str(expected) in run(capsys, "evaluate", tmp_path / "m.json", held)
    told = json.loads(run(capsys, "evaluate", tmp_path / "m.json", held, "--json"))
    assert told["clicks"]["value"] == pytest.approx(expected.value)
    assert "clicks" not in json.loads(
        run(capsys, "evaluate", tmp_path / "m.json", folder / "features.parquet", "--json")
    )


def test_bad_input_is_one_line_and_writes_nothing(capsys, folder, tmp_path):
    target = tmp_path / "t.parquet"
    base = ("clicks", folder / "log.parquet", "--features", folder / "features.parquet", "-o", target)
    assert "no column 'rank' for the position" in fail(capsys, *base, "--column", "position=rank")
    assert "write ROLE=NAME" in fail(capsys, *base, "--column", "position")
    assert "clip must be" in fail(capsys, *base, "--clip", "7")
    assert "cut must be a whole number of at least 1" in fail(capsys, *base, "--cut", "0")
    assert "absent.json cannot be read" in fail(capsys, *base, "--propensities", tmp_path / "absent.json")
    assert "keep weights of documents" in fail(capsys, *base[:-1], tmp_path / "t.txt")
    assert "keep weights of documents" in fail(capsys, *base, "--holdout", tmp_path / "h.txt")
    assert "choose another name" in fail(capsys, *base, "--holdout", target)
    assert "choose another name" in fail(capsys, *base[:-1], folder / "log.parquet")
    assert not target.exists()  # a bad second name is told before the first file is written
    one = pd.read_parquet(folder / "log.parquet")
    one[one.position == 1].to_parquet(tmp_path / "one.parquet")
    message = fail(capsys, "clicks", tmp_path / "one.parquet", "--features", folder / "features.parquet", "-o", target)
    assert (
        "a position cannot be told from the documents" in message
        or "position 2" in message
        or "one position" in message
    )
    assert not target.exists()


def test_where_propensities_cannot_be_kept_nothing_is_written(capsys, folder, tmp_path):
    files = (folder / "log.parquet", "--features", folder / "features.parquet", "-o", tmp_path / "t.parquet")
    told = fail(capsys, "clicks", *files, "--save-propensities", tmp_path / "no folder" / "p.json")
    assert "p.json" in told
    assert not list(tmp_path.iterdir())
