"""What somebody would write who has models already: one script, with scikit-learn's routing off and on."""

import json

import numpy as np
import pytest
import sklearn
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import toprank as tr
from toprank.cli import main
from toprank.rankers.persistence import parse_model

lgb, cat = pytest.importorskip("lightgbm"), pytest.importorskip("catboost")


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Three tables with names, ids of documents and empty cells."""
    home = tmp_path_factory.mktemp("shop")
    data = tr.datasets.make_graded(n_queries=90, n_docs=(5, 12), n_features=4, n_grades=3, random_state=0)
    rng, ids = np.random.default_rng(0), np.repeat(data.query_ids, data.lengths)
    X = np.where(rng.random(data.X.shape) < 0.08, np.nan, data.X)
    lines = [
        f"q{q},{grade:g},d{i}," + ",".join("" if np.isnan(x) else repr(x) for x in row.tolist())
        for i, (q, grade, row) in enumerate(zip(ids, data.y, X, strict=True))
    ]
    for name, (a, b) in {"train": (0, 50), "valid": (50, 65), "test": (65, 90)}.items():
        rows = lines[data.ptr[a] : data.ptr[b]]
        (home / f"{name}.csv").write_text("\n".join(["query,label,doc_id,bm25,price,clicks,age", *rows]) + "\n")
    return home


def lightgbm_ranker():
    return lgb.LGBMRanker(n_estimators=60, n_jobs=1, verbosity=-1, deterministic=True, force_row_wise=True)


def script(home):
    """Return the contest, the test part and its certificates."""
    train, valid, test = (tr.read(home / f"{part}.csv", missing="keep") for part in ("train", "valid", "test"))
    mine = make_pipeline(SimpleImputer(), StandardScaler(), Ridge())
    own = HistGradientBoostingRegressor(max_iter=20, random_state=0).fit(train.X, train.y)
    rankers = {
        "mine": mine,
        "lgbm": lightgbm_ranker(),
        "cat": cat.CatBoostRanker(iterations=30, thread_count=1, allow_writing_files=False, random_seed=0),
        "in production": own,
        "trees": tr.BoostedTrees("ndcg@10", loss="ListNet", rounds=60, prepare="query"),
        "listnet": tr.ListNet(missing="median"),
    }
    grids = {"mine": {"ridge__alpha": [0.1, 10.0]}, "lgbm": {"num_leaves": [7, 15]}, "cat": {"depth": [3, 4]}}
    grids |= {"trees": {"leaves": [7, 15]}, "listnet": {"alpha": [1e-2, 1e-1]}}
    contest = tr.contest(train, test, valid, rankers, grids=grids, n_resamples=200)
    return contest, test, tr.certify(own, test, baseline={"lgbm": contest.entrant("lgbm").rankers[0]})


@pytest.fixture(scope="module", params=[False, True], ids=["routing off", "routing on"])
def held(request, tables):
    with sklearn.config_context(enable_metadata_routing=request.param):
        return script(tables)


def test_everybody_takes_part_with_as_many_settings(held):
    contest, _, _ = held
    assert contest.warnings == ()
    assert {e.name: (e.tried, e.planned) for e in contest.entrants if e.tried} == dict.fromkeys(
        ("mine", "lgbm", "cat", "trees", "listnet"), (3, 3)
    )
    assert not any(note.startswith("Not everybody") for note in contest.notes)


def test_the_numbers_are_those_of_each_library(held, tables):
    contest, test, _ = held
    train = tr.read(tables / "train.csv", missing="keep")
    alpha = contest.entrant("mine").rankers[0][-1].alpha
    alone = make_pipeline(SimpleImputer(), StandardScaler(), Ridge(alpha=alpha)).fit(train.X, train.y).predict(test.X)
    np.testing.assert_allclose(contest.entrant("mine").scores, alone, rtol=1e-9)
    kept = contest.entrant("lgbm").rankers[0]
    again = lightgbm_ranker().set_params(n_estimators=kept.best_iteration_, num_leaves=kept.num_leaves)
    again.fit(train.X, train.y, group=train.lengths)
    np.testing.assert_array_equal(contest.entrant("lgbm").scores, again.predict(test.X))
    for name in ("mine", "lgbm", "cat", "trees"):
        model = contest.entrant(name).rankers[0]
        reached = tr.evaluate(model, test, ["ndcg@10"]).mean["ndcg@10"]
        assert contest.entrant(name).report.mean["ndcg@10"] == pytest.approx(reached, abs=1e-12)


def test_certificates_say_what_is_known(held):
    contest, test, certificates = held
    first, gain = certificates
    assert first.mean == pytest.approx(contest.entrant("in production").report.mean["ndcg@10"], abs=1e-12)
    assert first.assumptions[1].state == "on trust"
    assert gain.statement.startswith("expected ndcg@10 − that of lgbm")
    assert first.redo(test).lower == first.lower
    assert contest.entrant("lgbm").certificates[0].assumptions[1].state == "checked"


def test_winners_are_kept_served_and_exported(held, tmp_path):
    contest, test, _ = held
    with pytest.warns(UserWarning, match="was not saved: "):
        files = contest.save(tmp_path)
    trees = contest.entrant("trees")
    served = parse_model((tmp_path / "trees.json").read_bytes(), "trees.json")  # what the server scores with
    np.testing.assert_array_equal(served.scores(test), trees.scores)
    assert {name.rpartition(".")[2] for name in files} == {"json", "txt"}
    again = tr.export.fold(tmp_path / "lgbm.txt")
    np.testing.assert_allclose(again.scores(test), contest.entrant("lgbm").scores, rtol=0, atol=1e-12)
    tr.write_report(contest, tmp_path / "page.html")
    assert "in production" in (tmp_path / "page.html").read_text()


def test_routing_changes_nothing(tables):
    with sklearn.config_context(enable_metadata_routing=True):
        on = script(tables)[0]
    off = script(tables)[0]
    for entrant in on.entrants:
        np.testing.assert_array_equal(off.entrant(entrant.name).scores, entrant.scores)


def test_a_column_of_text_is_refused_by_name(tables, tmp_path, capsys):
    lines = (tables / "train.csv").read_text().splitlines()
    brands = ["brand", *(("acme", "zeta", "nova")[i % 3] for i in range(len(lines) - 1))]
    (tmp_path / "text.csv").write_text("\n".join(f"{a},{b}" for a, b in zip(lines, brands, strict=True)) + "\n")
    words = r"column 'brand' .* holds text, 3 different values \('acme', 'zeta', 'nova'\): encode them as numbers"
    with pytest.raises(tr.InputError, match=words):
        tr.read(tmp_path / "text.csv", missing="keep")
    pd = pytest.importorskip("pandas")
    frame = pd.read_csv(tmp_path / "text.csv")
    words = r"column 1 \('brand'\) holds text, 3 different values"
    with pytest.raises(tr.InputError, match=words):
        tr.BoostedTrees().fit(frame[["bm25", "brand"]], frame["label"], qid=frame["query"])
    many = pd.DataFrame({"id": [f"word{i}" for i in range(60)]})
    with pytest.raises(tr.InputError, match=r"60 different values .* too many for a column each"):
        tr.BoostedTrees().fit(many, np.arange(60) % 2)


def test_the_same_on_the_command_line(held, tables, capsys):
    args = ["compare", str(tables / "train.csv"), str(tables / "test.csv"), "--valid", str(tables / "valid.csv")]
    args += ["--with", f"mine={__name__}:lightgbm_ranker", "--rankers", "BoostedTrees", "--budget", "0", "--json"]
    with pytest.raises(SystemExit) as ended:
        main(args)
    assert ended.value.code == 0
    means = {e["name"]: e["mean"]["ndcg@10"] for e in json.loads(capsys.readouterr().out)["entrants"]}
    train, valid, test = (tr.read(tables / f"{part}.csv", missing="keep") for part in ("train", "valid", "test"))
    alone = tr.contest(train, test, valid, {"mine": lightgbm_ranker()}, n_resamples=50).entrant("mine")
    assert means["mine"] == pytest.approx(alone.report.mean["ndcg@10"], abs=1e-12)
    assert "BoostedTrees" in means
