"""Penalties and signs of rankers: what they promise of weights and curves, what they refuse, what a file keeps."""

import json
import warnings

import numpy as np
import pytest

import toprank as tr
from tests.cli.calling import fail, run
from toprank.errors import InputError

NAMES = ("bm25", "price", "age", "clicks")
KINDS = [tr.ListNet, tr.ListMLE, tr.RankCosine, tr.LinearRanker]


def queries(n_queries=60, seed=0, names=NAMES):
    """Two features that count, one of them against a document, and two of noise, in other units."""
    made = tr.datasets.make_graded(n_queries=n_queries, n_features=4, random_state=seed)
    rng = np.random.default_rng(seed)
    wanted = made.X[:, 0] - 0.5 * made.X[:, 1] + 0.3 * rng.normal(size=made.n_docs)
    y = np.digitize(wanted, np.quantile(wanted, [0.5, 0.8]))
    X = made.X * [1.0, 20.0, 3.0, 0.1]
    return tr.QueryDataset.from_arrays(X, y, made.qid, feature_names=names)


@pytest.fixture(scope="module")
def data():
    return queries()


@pytest.mark.parametrize("kind", KINDS)
class TestEveryKind:
    def test_l1_leaves_features_out(self, kind, data):
        alphas = {tr.ListMLE: 0.5, tr.RankCosine: 0.02}
        ranker = kind(penalty=tr.L1(alphas.get(kind, 0.05))).fit_queries(data)
        assert ranker.solution_.converged
        assert set(ranker.features_) == {"bm25", "price"}
        assert np.array_equal(ranker.coef_ == 0, [False, False, True, True])
        noise = data.with_X(data.X * [1, 1, 0, -3], NAMES)
        assert ranker.predict(noise).tobytes() == ranker.predict(data).tobytes()

    def test_signs_hold_exactly_where_the_data_say_otherwise(self, kind, data):
        assert kind().fit_queries(data).coef_[0] > 0 > kind().fit_queries(data).coef_[1]
        ranker = kind(signs={"bm25": "-", "price": "+", "age": "+"}).fit_queries(data)
        assert ranker.coef_[0] == ranker.coef_[1] == 0
        assert ranker.coef_[2] >= 0
        both = kind(signs={"bm25": "-"}, penalty=tr.L1(1e-3)).fit_queries(data)
        assert both.coef_[0] == 0 > both.coef_[1]

    def test_files_keep_penalty_and_signs(self, kind, data, tmp_path):
        ranker = kind(signs={"bm25": "+"}, penalty=[tr.L1(0.02), tr.L1(0.05)]).fit_queries(data[:40], data[40:])
        ranker.save(tmp_path / "model.json")
        again = tr.load(tmp_path / "model.json")
        assert again.get_params() == ranker.get_params()
        assert again.predict(data).tobytes() == ranker.predict(data).tobytes()
        again.save(tmp_path / "again.json")
        assert (tmp_path / "again.json").read_bytes() == (tmp_path / "model.json").read_bytes()

    def test_penalty_l2_is_alpha(self, kind, data):
        one, other = (kind(**given).fit_queries(data) for given in ({"alpha": 0.2}, {"penalty": "L2:0.2"}))
        assert one.coef_.tobytes() == other.coef_.tobytes()


def test_numbers_name_features_that_have_no_names(data, tmp_path):
    plain = tr.QueryDataset.from_arrays(data.X, data.y, data.qid)
    found = [tr.ListNet(signs=signs).fit_queries(plain) for signs in ({1: "-"}, {"1": "-"}, {"f1": "-"})]
    assert len({ranker.coef_.tobytes() for ranker in found}) == 1
    assert found[0].coef_[0] == 0
    found[0].save(tmp_path / "model.json")
    assert tr.load(tmp_path / "model.json").signs == {1: "-"}


def test_the_validation_set_chooses_along_a_path(data):
    penalties = [tr.L1(alpha) for alpha in (1e-3, 0.1, 1e-2, 3.0)]
    ranker = tr.ListNet(penalty=penalties).fit_queries(data[:40], data[40:])
    assert ranker.trace_["C"].tolist() == [1 / 3.0, 10.0, 100.0, 1000.0]
    alone = {}
    for penalty in penalties:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the strongest penalty leaves nothing
            fitted = tr.ListNet(penalty=penalty).fit_queries(data[:40])
        alone[penalty] = tr.evaluate(fitted, data[40:], ["ndcg@10"]).mean["ndcg@10"]
    assert ranker.penalty_.alpha < 3.0
    assert alone[ranker.penalty_] == pytest.approx(max(alone.values()), abs=1e-3)
    assert max(ranker.trace_["valid"]) == pytest.approx(max(alone.values()), abs=1e-3)


def humps():
    """Grades that rise with x up to the middle and fall then."""
    made = tr.datasets.make_graded(n_queries=60, n_features=2, random_state=0)
    grades = (np.abs(made.X[:, 0] - 0.5) < 0.7).astype(int) + (np.abs(made.X[:, 0] - 0.5) < 1.2)
    return tr.QueryDataset.from_arrays(made.X, grades, made.qid)


@pytest.mark.parametrize("prepare", ["ramps:6", "steps:6", "+rank,+minmax,ramps:4", "log,+standard,steps:4"])
@pytest.mark.parametrize("sign", ["+", "-"])
def test_a_curve_with_a_sign_never_turns(prepare, sign):
    data = humps()
    free, signed = (tr.ListNet(prepare=prepare, signs=signs).fit_queries(data) for signs in (None, {1: sign}))
    assert signed.solution_.converged
    for query in (0, 3, 7):  # one document moves along x, the others of its list stay
        rows = data.X[data.ptr[query] : data.ptr[query + 1]]
        rising = {id(free): [], id(signed): []}
        for x in np.linspace(-3, 3, 61):
            moved = rows.copy()
            moved[0, 0] = x
            for ranker in (free, signed):
                rising[id(ranker)].append(ranker.predict(moved, qid=np.zeros(len(rows)))[0])
        steps = {key: np.diff(values) * (1 if sign == "+" else -1) for key, values in rising.items()}
        assert steps[id(free)].min() < -1e-3
        assert steps[id(signed)].min() > -1e-12
        assert steps[id(signed)].max() > 1e-3
    assert signed.solution_.value > free.solution_.value
    if "ramps" not in prepare:
        weights = signed.coef_[signed.inputs_.origins == 0]
        assert ((weights >= 0) if sign == "+" else (weights <= 0)).all()


def test_an_additive_ranker_keeps_its_signs_while_it_chooses(tmp_path):
    data = humps()
    free, signed = (tr.AdditiveRanker(signs=signs).fit_queries(data) for signs in (None, {1: "+"}))
    grid = np.column_stack([np.linspace(-3, 3, 61), np.zeros(61)])
    columns = signed.inputs_.prepared(tr.QueryDataset.from_arrays(grid, np.zeros(61), np.zeros(61))).X
    assert np.diff(columns @ signed.coef_).min() > -1e-12
    assert np.diff(free.predict(grid, qid=np.arange(61))).min() < -1e-3
    signed.save(tmp_path / "model.json")
    assert tr.load(tmp_path / "model.json").signs == {1: "+"}
    with pytest.raises(InputError, match="signs names 'price', and features have the numbers 1 to 2"):
        tr.AdditiveRanker(signs={"price": "+"}).fit_queries(data)


def test_a_warm_start_begins_where_it_was(data):
    ranker = tr.ListNet(signs={"age": "+"}, warm_start=True).fit_queries(data)
    first = ranker.n_iter_
    assert ranker.fit_queries(data).n_iter_ < first


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"signs": {"bm52": "+"}},
            r"signs names 'bm52' \(did you mean 'bm25'\?\), and the 4 features have other names",
        ),
        ({"signs": {2: "+"}}, "signs names 2, and the 4 features have other names"),
        ({"signs": {"bm25": "up"}}, "signs must be '\\+' .* got 'up' for 'bm25'"),
        ({"signs": {"bm25": []}}, r"signs must be '\+' .* got \[\] for 'bm25'"),
        ({"signs": "bm25:+"}, "signs must be a dictionary"),
        ({"signs": {"bm25": "+"}, "solver": "minibatch"}, "solver='minibatch' knows no signs: take solver='lbfgs'"),
        ({"penalty": "L1:1", "solver": tr.solvers.MiniBatch()}, "knows no L1 penalty: take solver='lbfgs'"),
        ({"penalty": tr.L1(0.1), "alpha": 0.1}, "alpha is short for penalty=toprank.L2"),
        ({"penalty": 0.1}, "penalty must be toprank.L1"),
        ({"penalty": tr.L1(0.1), "radius": 1.0}, "an L1 penalty and radius=1 do not go together"),
        ({"signs": {"bm25": "+"}, "transform": "linear"}, "signs and a linear transform .* do not go together"),
        ({"signs": {"bm25": "+"}, "patience": 3}, "patience does nothing with signs"),
        ({"signs": {"bm25": "+"}, "penalty": tr.L1(0.1), "prepare": "ramps:3"}, "together do not take ramps"),
        ({"penalty": [tr.L1(0.1), tr.L1(0.2)]}, "several penalties need a validation set"),
        ({"penalty": tr.L1(0.1, units=(1.0,))}, "L1 has 1 units, and there are 4 columns"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(given, told, data):
    ranker = tr.ListNet(**given)
    with pytest.raises(InputError, match=told) as raised:
        ranker.fit_queries(data)
    assert "\n" not in str(raised.value)
    assert "function_" not in vars(ranker)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"surrogate": "PairwiseHinge"}, "no solver knows signs with PairwiseHinge, which has corners"),
        ({"solver": "newton"}, "solver='newton' knows no signs"),
        ({"solver": "bundle"}, "solver='bundle' knows no signs"),
    ],
)
def test_a_linear_ranker_says_what_cannot_be(given, told, data):
    with pytest.raises(InputError, match=told):
        tr.LinearRanker(signs={"bm25": "+"}, **given).fit_queries(data)


def test_a_stream_knows_neither(data):
    for given, told in (({"signs": {"bm25": "+"}}, "signs"), ({"penalty": tr.L1(0.1)}, "L1 penalty")):
        with pytest.raises(InputError, match=f"partial_fit knows no {told}: use fit"):
            tr.LinearRanker(**given).partial_fit_queries(data)


def test_contradicting_signs_and_numbers_out_of_range(data):
    plain = tr.QueryDataset.from_arrays(data.X, data.y, data.qid)
    with pytest.raises(InputError, match=r"signs contradict each other: feature 'f2' has both '\+' and '-'"):
        tr.ListNet(signs={2: "+", "f2": "-"}).fit_queries(plain)
    for number in (0, 5, -1, True, 1.0):
        with pytest.raises(InputError, match="features have the numbers 1 to 4"):
            tr.ListNet(signs={number: "+"}).fit_queries(plain)


def test_files_with_other_things_in_their_place_are_refused(data, tmp_path):
    tr.ListNet(signs={1: "+"}, penalty=tr.L1(0.1)).fit(data.X, data.y, data.qid).save(tmp_path / "model.json")
    text = (tmp_path / "model.json").read_text()
    for key, value, told in (
        ("signs", 3, "signs must be"),
        ("signs", {"$pairs": [["a"]]}, "signs is not a list of pairs"),
        ("signs", {"$pairs": [[[], "+"]]}, "signs is not a list of pairs"),
        ("penalty", {"a": 1}, "penalty must be"),
        ("penalty", {"$value": "L1", "fields": {"alpha": -1.0}}, "alpha must be a number not below 0"),
        ("penalty", {"$value": "L1", "fields": {"alpha": 1.0, "units": 3}}, "penalty is not a L1"),
    ):
        content = json.loads(text)
        content["params"][key] = value
        (tmp_path / "wrong.json").write_text(json.dumps(content))
        with pytest.raises(InputError, match=told):
            tr.load(tmp_path / "wrong.json")


def test_the_command_line_takes_both(data, tmp_path, capsys):
    file, model = tmp_path / "train.parquet", tmp_path / "model.json"
    tr.write_parquet(data, file)
    signs = 'signs={"price": "-", "bm25": "+"}'
    run(capsys, "fit", file, "-p", "penalty=L1:0.05", "-p", signs, "-o", model)
    ranker = tr.load(model)
    assert ranker.penalty == "L1:0.05"
    assert ranker.signs == {"price": "-", "bm25": "+"}
    assert ranker.features_ == ("bm25", "price")
    for wrong, told in (("penalty=L5:0.05", "penalty must be toprank.L1"), ("signs=price:-", "signs must be a dict")):
        assert told in fail(capsys, "fit", file, "-p", wrong, "-o", tmp_path / "other.json")
    assert not (tmp_path / "other.json").exists()
