"""Collections are found under their published names, and what is missing is said with its remedy."""

from __future__ import annotations

import bz2
import os
from pathlib import Path

import numpy as np
import pytest

from toprank import datasets
from toprank.data.catalog import CATALOG, find, load
from toprank.errors import InputError

REAL = os.environ.get("TOPRANK_DATA")


def real(folder: str) -> None:
    if not REAL or not Path(REAL, folder).is_dir():
        pytest.skip(f"needs the files of {folder} below TOPRANK_DATA")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOPRANK_DATA", str(tmp_path))
    return tmp_path


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("name", "folder"), [("mslr-web10k", "MSLR-WEB10K"), ("mq2007", "MQ2007"), ("TD2003", "td2003")]
)
def test_folds_under_published_names(root: Path, name: str, folder: str) -> None:
    for fold in range(1, 6):
        for part in ("train", "vali", "test"):
            put(
                root / folder / f"Fold{fold}" / f"{part}.txt",
                f"2 qid:{fold} 1:0.5 3:{fold} #docid = x\n0 qid:{fold} 2:1\n",
            )
    for part in ("train", "valid", "vali", "validation", "test"):
        data = load(name, fold=4, part=part)
        assert data.n_features == find(name).n_features
        assert data.y.tolist() == [2, 0]
        row = data.X[[0]].toarray()[0] if data.is_sparse else data.X[0]
        assert row[:3].tolist() == [0.5, 0, 4]
    with pytest.raises(InputError, match="has folds 1 to 5, got fold=6"):
        load(name, fold=6)
    (root / folder / "Fold2" / "test.txt").unlink()
    with pytest.raises(InputError, match=r"Fold2 has no test part: looked for test.txt, testset.txt"):
        load(name, fold=2, part="test")


def test_yahoo_layout(root: Path) -> None:
    for part in ("train", "valid", "test"):
        put(root / "ltrc_yahoo" / f"set2.{part}.txt", "4 qid:1 1:0.5 700:1\n0 qid:1 2:1\n")
    data = datasets.load("yahoo-set2", part="valid")
    assert (data.n_features, data.y.max()) == (700, 4)
    with pytest.raises(InputError, match=r"has no train part: looked for set1.train.txt \(plain, .gz"):
        datasets.load("yahoo-set1")
    with pytest.raises(InputError, match="yahoo-set2 has no folds: leave fold out, got fold=2"):
        datasets.load("yahoo-set2", fold=2)


def test_binary_sets_become_grades(root: Path) -> None:
    (root / "a9a").mkdir()
    (root / "a9a" / "a9a.bz2").write_bytes(bz2.compress(b"-1 3:1 11:1\n+1 5:1 123:1\n"))
    data = load("a9a")
    assert (data.n_queries, data.n_features) == (1, 123)
    assert data.y.tolist() == [0, 1]


def test_one_class_against_the_rest(root: Path) -> None:
    columns = [f"x{j}" for j in range(54)]
    rows = "\n".join(",".join([str(i + j) for j in range(54)] + [str(i)]) for i in (1, 4, 7))
    put(root / "covtype" / "covtype.csv", ",".join([*columns, "Cover_Type"]) + "\n" + rows + "\n")
    assert load("covtype").y.tolist() == [1, 4, 7]
    data = load("covtype", positive=4)
    assert data.y.tolist() == [0, 1, 0]
    assert (data.n_features, data.n_queries) == (54, 1)
    assert data.feature_names == tuple(columns)
    with pytest.raises(InputError, match="covtype has no part 'test': its parts are train"):
        load("covtype", part="test")


def test_an_absent_set_says_where_to_put_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError) as caught:
        load("mslr-web30k", fold=3)
    assert str(caught.value) == (
        f"mslr-web30k is not in {root} (TOPRANK_DATA): put its files at {root / 'mslr-web30k' / 'Fold3'}"
    )
    monkeypatch.delenv("TOPRANK_DATA")
    with pytest.raises(InputError, match="set the environment variable TOPRANK_DATA to the folder that holds a9a/a9a"):
        load("a9a")


def test_unknown_names_get_the_nearest_and_the_list() -> None:
    with pytest.raises(InputError) as caught:
        load("mslr-web1k")
    assert "did you mean 'mslr-web10k'?" in str(caught.value)
    assert all(name in str(caught.value) for name in CATALOG)
    with pytest.raises(InputError, match="did you mean 'yahoo-set"):
        load("yahoo")


@pytest.mark.parametrize("name", CATALOG)
def test_entries_are_whole(name: str) -> None:
    entry = CATALOG[name]
    assert find(name) is entry
    assert entry.n_features > 0
    assert "train" in entry.parts
    assert entry.about
    names = [known for other in CATALOG.values() for known in (other.name,)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("name", "part", "n_docs", "n_queries", "n_features"),
    [
        ("mslr-msn1-5k", "train", 5000, 43, 136),
        ("mslr-msn1-5k", "test", 5000, 43, 136),
        ("a9a", "train", 32_561, 1, 123),
        ("a9a", "test", 16_281, 1, 123),
        ("ijcnn1", "train", 49_990, 1, 22),
        ("ijcnn1", "test", 91_701, 1, 22),
    ],
)
def test_real_sets(name: str, part: str, n_docs: int, n_queries: int, n_features: int) -> None:
    real(name)
    data = load(name, part=part)
    assert (data.n_docs, data.n_queries, data.n_features) == (n_docs, n_queries, n_features)
    if n_queries == 1:
        assert set(np.unique(data.y)) == {0, 1}


@pytest.mark.parametrize(
    ("name", "n_docs", "n_queries", "n_features", "grades"),
    [
        ("ohsumed-letor2", 16_140, 106, 25, [11_303, 2_585, 2_252]),
        ("ohsumed-letor3", 16_140, 106, 45, [11_303, 2_585, 2_252]),
        ("mq2008-letor4", 15_211, 784, 46, [12_279, 2_001, 931]),
    ],
)
def test_real_folds_rotate_the_whole_set(
    name: str, n_docs: int, n_queries: int, n_features: int, grades: list[int]
) -> None:
    real(name)
    for fold in (1, 5):
        parts = [load(name, fold, part) for part in ("train", "valid", "test")]
        assert sum(part.n_docs for part in parts) == n_docs
        assert len(set().union(*(part.query_ids.tolist() for part in parts))) == n_queries
        assert {part.n_features for part in parts} == {n_features}
        assert np.bincount(np.concatenate([part.y for part in parts]).astype(int)).tolist() == grades
