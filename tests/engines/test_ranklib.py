"""RankLib itself scores what is exported for it."""

import numpy as np
import pytest

import toprank as tr
from tests.engines.cases import PLAIN, collection, learned, models, rows
from tests.engines.running import need, run_java


def line(row, *, whole=True):
    """A row of LETOR text without what is missing; the last feature is 0 then where the row has to be `whole`."""
    named = [f"{j}:{x!r}" for j, x in enumerate(row, start=1) if x == x]
    if whole and row[-1] != row[-1]:
        named.append(f"{len(row)}:0")
    return " ".join(["0", "qid:1", *named])


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """{case: (what was exported, the model, rows, RankLib's scores)}."""
    need("ranklib")
    folder = tmp_path_factory.mktemp("ranklib")
    train, test = collection()
    seen = test.X.astype(np.float32).astype(np.float64)
    cases = {name: (model, rows()) for name, model in models(PLAIN).items()}
    cases |= {name: (tr.export.fold(ranker), seen) for name, ranker in learned(train).items()}
    for number, (model, X) in enumerate(cases.values()):
        tr.export.write(model, folder / f"{number}.model", "ranklib")
        (folder / f"{number}.rows").write_text("".join(line(row) + "\n" for row in X.tolist()))
    run_java("ranklib", "RankLibScores.java", folder)
    got = {}
    for number, (name, (model, X)) in enumerate(cases.items()):
        scores = np.array([float(text) for text in (folder / f"{number}.scores").read_text().split()])
        got[name] = (folder / f"{number}.model", model, X, scores)
    return got


@pytest.mark.parametrize("name", ["linear", "offset", "scaled", "steps", "trees", "ListNet", "RankBoost"])
def test_ranklib_scores_as_verify_export_says(scored, name):
    file, model, X, scores = scored[name]
    _, replica = tr.export.read(file)
    seen = X[:, : replica.n_features]
    assert scores.tolist() == replica.score_rows(seen).tolist()
    # And as the model does, within the rounding that the verification allows.
    constant = model.offset if name == "steps" or name == "RankBoost" else 0.0
    assert (np.abs(scores + constant - model.predict(X)) <= replica.rounding(seen) + 1e-9).all()
    assert len(np.unique(scores)) > 3


def test_ranklib_stops_at_a_row_whose_last_features_are_absent(tmp_path):
    need("ranklib")
    export = tr.export.write(models(PLAIN)["linear"], tmp_path / "0.model", "ranklib")
    assert any("it stops at a row whose last features are absent" in note for note in export.notes)
    (tmp_path / "0.rows").write_text(line([1.0, 2.0, np.nan], whole=False) + "\n")
    with pytest.raises(AssertionError, match="unspecified feature, fid=3"):
        run_java("ranklib", "RankLibScores.java", tmp_path)
