"""Where placed data meets each kind of model, preparation and rule for missing cells: the same bits, or one line."""

import warnings

import numpy as np
import pytest

import toprank as tr

from ..cli.calling import fail, run
from ..test_seams import SEAMS, fitted, queries


@pytest.fixture(scope="module")
def placed(client):
    return [tr.dask.place(queries(False, seed=seed), client, parts=3) for seed in (0, 5)]


def refusal(call):
    try:
        call()
    except tr.InputError as told:
        return str(told)
    return None


@pytest.mark.parametrize("seam", SEAMS, ids=lambda seam: "-".join(part or "plain" for part in seam))
def test_models_score_and_rankers_learn_there_as_here(seam, placed):
    there, ranker, test = placed, fitted(*seam), queries(False, seed=5)
    scores = ranker.predict(test)
    assert np.array_equal(ranker.predict(there[1]), scores)
    assert tr.evaluate(ranker, there[1]).mean == tr.evaluate(scores, test).mean
    here, far = (type(ranker)(**ranker.get_params(deep=False)) for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here.fit_queries(queries(False))
        refused = refusal(lambda: far.fit_queries(there[0]))
    if refused is not None:
        assert "\n" not in refused
        assert "one memory" in refused
        return
    assert np.array_equal(far.predict(test), here.predict(test))
    assert (far.learned_from_.marks == here.learned_from_.marks).all()


def test_some_cells_learn_there(placed):
    """The test above would pass if everything were refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = tr.ListNet(max_iter=5, missing="zero").fit_queries(placed[0])
        here = tr.ListNet(max_iter=5, missing="zero").fit_queries(queries(False))
    assert np.array_equal(found.coef_, here.coef_)


def test_missing_cells_are_not_placed(client):
    with pytest.raises(tr.InputError, match="has missing cells") as told:
        tr.dask.place(queries(True), client)
    assert "\n" not in str(told.value)
    with pytest.raises(tr.InputError, match="missing must be one of 'error', 'zero'"):
        tr.dask.read_table("none.parquet", client, missing="keep")


def test_what_was_filled_on_workers_was_learned_from(client, tmp_path, capsys):
    """Marks of rows are those of rows as they came, also where a worker filled their missing cells while reading."""
    tr.write_parquet(queries(True, n_queries=60), tmp_path / "train.parquet")
    address, file = client.scheduler_info()["address"], tmp_path / "train.parquet"
    run(capsys, "fit", file, "--missing", "zero", "--dask", address, "-o", tmp_path / "far.json")
    run(capsys, "fit", file, "--missing", "zero", "-o", tmp_path / "here.json")
    assert (tmp_path / "far.json").read_text() == (tmp_path / "here.json").read_text()


@pytest.mark.parametrize("missing", ["median", "indicator"])
def test_rules_that_are_learned_are_refused_before_anybody_reads(capsys, tmp_path, missing):
    told = fail(
        capsys, "fit", "none.parquet", "--dask", "tcp://127.0.0.1:1", "--missing", missing, "-o", tmp_path / "m.json"
    )
    assert f'missing="{missing}" is learned from all rows in one memory' in told
    assert "--missing zero" in told
    assert "without --dask" in told


def test_a_text_table_is_told_what_it_must_become(client, tmp_path, capsys):
    (tmp_path / "train.csv").write_text("query,label,a\nq,1,2\nq,0,1\n")
    address = client.scheduler_info()["address"]
    told = fail(capsys, "fit", tmp_path / "train.csv", "--dask", address, "-o", tmp_path / "m.json")
    assert "train.csv: a cluster reads Parquet and LETOR text" in told
    assert "toprank convert" in told
