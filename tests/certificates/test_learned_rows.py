"""Which rows a ranker learned from: what is recognised, what is said of it, and what is never said."""

import json

import numpy as np
import pytest
from scipy import sparse

import toprank as tr
from toprank.data.sketch import SIZE, Sketch, row_marks


def noise(n_queries, seed, n_docs=8):
    rng = np.random.default_rng(seed)
    n = n_queries * n_docs
    return tr.QueryDataset.from_arrays(
        rng.random((n, 6)), rng.integers(0, 3, n), [f"{seed}-{i // n_docs}" for i in range(n)]
    )


def taken(data, rows, qid=None):
    """Return some rows of a data set, in any order."""
    return tr.QueryDataset.from_arrays(data.X[rows], data.y[rows], data.qid[rows] if qid is None else qid)


TRAIN, NEW = noise(60, 1), noise(60, 2)
RANKER = tr.ListNet().fit_queries(TRAIN)


def said(ranker, data):
    """Return the first certificate, and what it says of taking part in learning."""
    first = tr.certify(ranker, data)[0]
    return first, next(a for a in first.assumptions if "learn" in a.text)


OTHER_FORMS = {
    "as it was": TRAIN,
    "reversed": taken(TRAIN, np.arange(TRAIN.n_docs)[::-1]),
    "shuffled": taken(TRAIN, np.random.default_rng(0).permutation(TRAIN.n_docs)),
    "one document per list dropped": taken(TRAIN, np.flatnonzero(np.arange(TRAIN.n_docs) % 8 > 0)),
    "lists merged by two": taken(TRAIN, np.arange(TRAIN.n_docs), np.arange(TRAIN.n_docs) // 16),
    "single precision": tr.QueryDataset.from_arrays(TRAIN.X.astype(np.float32), TRAIN.y, TRAIN.qid),
    "sparse": tr.QueryDataset.from_arrays(sparse.csr_matrix(TRAIN.X), TRAIN.y, TRAIN.qid),
}


@pytest.mark.parametrize("form", OTHER_FORMS)
def test_what_was_learned_from_is_refused_in_any_form(form):
    first, learned = said(RANKER, OTHER_FORMS[form])
    assert first.verdict == "does not apply"
    assert learned.verified is False
    n = OTHER_FORMS[form].n_docs
    assert learned.found.startswith(f"{n:,} of the {n:,} rows that could be compared were learned from (queries ")


def test_a_few_learned_queries_among_new_ones_are_named():
    X, y = np.vstack([NEW.X, TRAIN.X[80:96]]), np.concatenate([NEW.y, TRAIN.y[80:96]])
    first, learned = said(RANKER, tr.QueryDataset.from_arrays(X, y, [*NEW.qid, *TRAIN.qid[80:96]]))
    assert first.verdict == "does not apply"
    assert learned.found == "16 of the 496 rows that could be compared were learned from (queries 1-10, 1-11)"


def test_new_queries_are_checked_and_changed_features_are_trusted():
    first, learned = said(RANKER, NEW)
    assert first.verdict == "holds"
    assert (learned.text, learned.verified) == ("all 480 different rows were compared, none was learned from", True)
    changed = tr.QueryDataset.from_arrays(TRAIN.X + 1e-5, TRAIN.y, TRAIN.qid)
    trusted = [a.text for a in tr.certify(RANKER, changed)[0].assumptions if a.verified is None]
    assert "their features have not been changed since learning: changed rows are not recognised" in trusted


def test_a_sample_of_marks_says_how_much_overlap_it_would_have_seen():
    many = noise(1500, 3, n_docs=10)
    ranker = tr.SlamPerceptron("ndcg@10", epochs=1, random_state=0).fit_queries(many)
    assert len(ranker.learned_from_.marks) == SIZE
    assert len(ranker.learned_from_.text()) <= 33_000
    learned = said(ranker, noise(100, 4, n_docs=10))[1]
    found = ranker.learned_from_.compare(noise(100, 4, n_docs=10))
    assert 100 < found.compared < 350  # a fifth of 1,000
    assert (1 - found.detectable) ** found.compared == pytest.approx(0.01)
    percent = f"{100 * found.detectable:.2g}%"
    assert learned.verified is True
    assert learned.text == (
        f"of 1,000 different rows {found.compared} could be compared, none was learned from: more than {percent} "
        "overlap would have been seen with 99% probability"
    )
    assert said(ranker, many[:30])[0].verdict == "does not apply"


def test_after_many_queries_learned_ones_never_pass_as_checked():
    """Of 50 sets of learned queries none may be called checked: each is refused, or said to be on trust."""
    seen = Sketch.of()
    rng = np.random.default_rng(5)
    X = rng.random((30_000 * 4, 3))
    seen = seen.with_lists(X, np.arange(0, len(X) + 1, 4))
    refused = 0
    for i in range(50):
        rows = slice(i * 2000, i * 2000 + 240)
        data = tr.QueryDataset.from_arrays(X[rows], np.arange(240) % 3, np.arange(240) // 4)
        found = seen.compare(data)
        assert found.matched == found.compared
        refused += found.matched > found.explained
    assert refused >= 48  # 240 rows of 120,000, 3,072 of them kept: none is among them with probability e^-6


def test_where_nothing_can_be_compared_it_is_trust():
    zeros = tr.QueryDataset.from_arrays(np.zeros((6, 6)), [0, 1, 2, 0, 1, 2], [1, 1, 1, 2, 2, 2])
    alone = tr.QueryDataset.from_arrays(TRAIN.X[:6], [0, 1, 2, 0, 1, 2], np.arange(6))
    for data in (zeros, alone):
        _, learned = said(RANKER, data)
        assert learned.verified is None
        assert learned.text == "they took no part in learning: none of their rows could be compared"


@pytest.mark.parametrize("prepare", ["query", "log,query"])
def test_rows_are_compared_before_they_are_prepared(prepare):
    """Prepared within its query, a list of two documents has rows of 0 and 1, and one of one has zeros."""
    rng = np.random.default_rng(0)

    def short(seed, n=80):
        values = np.random.default_rng(seed).random((2 * n, 2))
        return tr.QueryDataset.from_arrays(values, rng.integers(0, 2, 2 * n), np.repeat(np.arange(n), 2))

    ranker = tr.ListNet(prepare=prepare).fit_queries(short(1))
    assert said(ranker, short(2))[1].verified is True
    assert said(ranker, short(1))[1].verified is False


def test_equal_rows_in_different_queries_are_no_evidence():
    """With three features of 0 to 4 every new row was seen before; with five some were, by chance."""
    rng = np.random.default_rng(0)
    for width in (3, 5):
        X = rng.integers(0, 5, (4000, width)).astype(float)
        data = tr.QueryDataset.from_arrays(X, rng.integers(0, 2, 4000), np.repeat(np.arange(400), 10))
        ranker = tr.ListNet().fit_queries(data[:300])
        first, learned = said(ranker, data[300:])
        assert first.verdict == "holds"
        assert learned.verified is None  # rows did match
    assert said(ranker, data[:100])[0].verdict == "does not apply"


def test_copies_of_a_query_in_learning_are_still_recognised():
    tenfold = tr.QueryDataset.from_arrays(
        np.tile(TRAIN.X[:160], (10, 1)), np.tile(TRAIN.y[:160], 10), np.arange(1600) // 8
    )
    assert said(tr.ListNet().fit_queries(tenfold), TRAIN[:20])[0].verdict == "does not apply"


def test_every_way_of_learning_notes_its_rows():
    part = [TRAIN[:20], TRAIN[20:40], TRAIN[40:]]
    whole = Sketch.of(TRAIN).marks.tolist()
    warm = tr.RankSVM(warm_start=True).fit_queries(part[0]).fit_queries(TRAIN[20:])
    assert warm.learned_from_.marks.tolist() == whole
    for ranker in (tr.OnlineListNet(), tr.LinearRanker(), tr.KernelSlamPerceptron("map"), tr.ListNet(prepare="query")):
        if hasattr(ranker, "partial_fit"):
            for one in (*part, part[0]):
                ranker.partial_fit_queries(one)
        else:
            ranker.fit_queries(part[0], valid=TRAIN[20:])
        assert ranker.learned_from_.marks.tolist() == whole
    online = tr.SlamPerceptron("ndcg@10")
    for query in TRAIN:
        online.partial_fit(query.X, query.y)
    assert online.learned_from_.marks.tolist() == whole
    clicks = tr.PDGD(prepare="query", random_state=0)
    for query in TRAIN:
        clicks.partial_fit_clicks(query.X, [2, 1, 0], [0, 1, 0])
    assert clicks.learned_from_.marks.tolist() == whole
    two = tr.PerceptronAtK(k=1)
    for query in TRAIN:
        two.partial_fit(query.X, (query.y > 1).astype(int), classes=[0, 1])
    assert two.learned_from_.marks.tolist() == whole


def test_marks_do_not_depend_on_the_order_or_the_blocks_in_which_rows_come():
    many = noise(1000, 6)
    whole = Sketch.of(many).marks.tolist()
    assert len(whole) == SIZE
    assert Sketch.of(many[700:], many[:700]).marks.tolist() == whole
    assert Sketch.of(*(many[i : i + 10] for i in range(990, -1, -10))).marks.tolist() == whole


def test_marks_are_of_values_and_not_of_their_type():
    X = np.array([[0.0, 0.5, 1e-300], [1.0, 0.0, 2.0**130], [0.0, -0.0, 0.0], [0.1, 0.0, 0.0]])
    ptr = np.array([0, 4])
    marks = row_marks(X, ptr)
    assert marks.tolist() == row_marks(sparse.csr_matrix(X), ptr).tolist()
    assert marks[2] == 0
    assert len(set(marks.tolist())) == 4
    other = row_marks(np.array([[0.0, 0.5, 1e-299], [1.0, 0.0, 2.0**131], [0.0, 0.0, 5e-324], [0.1, 0.0, 0.0]]), ptr)
    assert (marks >> np.uint64(16))[:3].tolist() != (other >> np.uint64(16))[:3].tolist()
    single = row_marks(X[[0, 3]].astype(np.float32), np.array([0, 2]))
    assert single[1] >> np.uint64(16) == marks[3] >> np.uint64(16)


def test_a_model_file_of_an_older_version_loads_and_says_what_it_cannot_compare(tmp_path):
    file = tmp_path / "model.json"
    tr.SlamPerceptron("ndcg@10", random_state=0).fit_queries(TRAIN).save(file)
    content = json.loads(file.read_text())
    content["learned_from"] = "8jOC8wgHGgA5OqIHAGgdAA=="  # marks of lists, as there were before
    file.write_text(json.dumps(content))
    old = tr.load(file)
    for data in (TRAIN, NEW):
        learned = said(old, data)[1]
        assert (learned.verified, learned.text) == (None, "they took no part in learning: the model file does not say")
    old.partial_fit(NEW[0].X, NEW[0].y)
    old.save(file)
    again = tr.load(file)
    assert said(again, NEW)[1].verified is False  # what came since is known
    assert said(again, TRAIN)[1].verified is None


def test_damaged_marks_are_refused(tmp_path):
    RANKER.save(tmp_path / "model.json")
    content = json.loads((tmp_path / "model.json").read_text())
    for text in ("rows:!", "columns:AAAA", content["learned_from"] + "AAAA"):
        (tmp_path / "model.json").write_text(json.dumps(content | {"learned_from": text}))
        with pytest.raises(tr.InputError, match="marks of the rows learned from are damaged"):
            tr.load(tmp_path / "model.json")
