"""What is wrong with data is said: in Python as a warning or a refusal, on the command line in the data report."""

from __future__ import annotations

import io
import json
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array

import toprank as tr
from tests.cli.calling import call, fail, run
from toprank.data.trec import run_of
from toprank.errors import InputError


def judged(seed: int = 0, n_queries: int = 30):
    return tr.datasets.make_graded(n_queries=n_queries, n_docs=(6, 9), n_features=3, n_grades=3, random_state=seed)


def write_csv(path, data, *, lowest=0, **more):
    """A table of a data set with features a, b, c and further columns, one value per row each."""
    names = ["query", "label", "a", "b", "c", *more]
    lines = [",".join(names)]
    for i in range(data.n_docs):
        cells = [
            f"q{data.qid[i]}",
            int(data.y[i]) + lowest,
            *data.X[i].tolist(),
            *(column[i] for column in more.values()),
        ]
        lines.append(",".join(map(str, cells)))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def silent():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class TestGradesWithoutZero:
    """Grades 1 to 5 make every document relevant: MAP is 1 for any order."""

    def test_evaluate_says_so(self):
        data = judged()
        with pytest.warns(UserWarning, match=r"no document has grade 0: the lowest grade is 1, .* subtract 1"):
            report = tr.evaluate(data.X[:, 0], y=data.y + 1, qid=data.qid, measures="map")
        assert report.mean["map"] == 1

    def test_fit_says_so(self):
        data = judged()
        with pytest.warns(UserWarning, match="no document has grade 0"):
            ranker = tr.ListNet().fit(data.X, data.y + 1, qid=data.qid)
        assert ranker.coef_.any()  # it is told, and learned all the same
        assert ranker.n_queries_in_ == data.n_queries

    def test_other_data_are_not_blamed(self):
        data = judged()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert data.y.min() == 0
            assert 0 < tr.evaluate(data.X[:, 0], data).mean["ndcg@10"] < 1
            assert tr.ListNet().fit_queries(data).coef_.any()
            one_grade = tr.evaluate([2.0, 1.0], y=[1, 1])  # nothing is said about the scale
            fractions = tr.evaluate([2.0, 1.0], y=[0.25, 1.5])  # no grades that anybody counts from 1
        assert one_grade.mean["ndcg@10"] == 1
        assert fractions.mean["ndcg@10"] < 1

    def test_the_command_line_says_so(self, tmp_path, capsys):
        path = write_csv(tmp_path / "a.csv", judged(), lowest=1)
        out = run(capsys, "info", path)
        assert "no document has grade 0" in " ".join(out.split())
        code, _, err = call(capsys, "fit", path, "-o", tmp_path / "m.json")
        assert code == 0
        assert "no document has grade 0" in " ".join(err.split())
        found = json.loads(run(capsys, "info", path, "--json"))
        assert found["lowest_grade"] == 1


class TestNoQid:
    def test_text_without_queries_is_told(self, tmp_path, capsys):
        text = "".join(f"{i % 2} 1:{i}\n" for i in range(30))
        (tmp_path / "a.txt").write_text(text)
        with pytest.warns(UserWarning, match=r"a\.txt has no qid: its 30 lines are one query"):
            data = tr.read_letor(tmp_path / "a.txt")
        assert data.n_queries == 1
        with pytest.warns(UserWarning, match="has no qid"):
            streamed = tr.stream_letor(io.BytesIO(text.encode()), tmp_path / "folder")
        assert streamed.n_queries == 1
        assert np.array_equal(streamed.X, data.X)
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            code, _, err = call(capsys, "info", tmp_path / "a.txt")
        assert code == 0
        assert "a.txt has no qid" in err

    def test_one_list_on_purpose(self, tmp_path):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = [
                tr.read_letor(io.BytesIO(b"1 1:1\n0 1:2\n"), one_list=True),
                tr.stream_letor(io.BytesIO(b"1 1:1\n0 1:2\n"), tmp_path / "folder", one_list=True),
                tr.read_letor(io.BytesIO(b"1 qid:1 1:1\n0 qid:1 1:2\n")),
            ]
        assert [(data.n_queries, data.X.tolist()) for data in found] == [(1, [[1.0], [2.0]])] * 3


class TestColumnsThatAreNoFeatures:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"features": ["a", "label"]}, "column 'label' is the grade, and cannot be a feature"),
            ({"features": ["a", "query"]}, "column 'query' is the query id, and cannot be a feature"),
            ({"features": ["a", "sku"], "doc_id": "sku"}, "column 'sku' is the document id, and cannot be a feature"),
        ],
    )
    def test_a_label_or_an_id_is_refused(self, tmp_path, options, message):
        data = judged()
        path = write_csv(tmp_path / "a.csv", data, sku=np.arange(data.n_docs))
        with pytest.raises(InputError, match=message):
            tr.read_table(path, **options)

    def test_on_the_command_line(self, tmp_path, capsys):
        path = write_csv(tmp_path / "a.csv", judged())
        assert "'label' is the grade" in fail(capsys, "fit", path, "--features", "a,label", "-o", tmp_path / "m.json")

    @pytest.mark.parametrize("name", ["query_id", "qid", "id", "document_id", "QID"])
    def test_an_id_beside_the_query_is_left_out_and_said(self, tmp_path, capsys, name):
        data = judged()
        path = write_csv(tmp_path / "a.csv", data, **{name: np.arange(data.n_docs)})
        assert tr.read_table(path).feature_names == ("a", "b", "c")
        assert tr.read_table(path, features=["a", name]).feature_names == ("a", name)
        assert f"{name} (an id" in run(capsys, "info", path)
        found = json.loads(run(capsys, "info", path, "--json"))
        assert found["feature_names"] == ["a", "b", "c"]
        assert list(found["left_out"]) == [name]

    def test_only_ids_are_left(self, tmp_path):
        (tmp_path / "a.csv").write_text("query,label,id\n1,0,5\n1,1,6\n")
        with pytest.raises(InputError, match=r"no feature column is left.*'id' looks like an id: name it"):
            tr.read_table(tmp_path / "a.csv")


class TestDuplicates:
    def with_duplicates(self, tmp_path):
        data = judged()
        ids = [f"d{i}" for i in range(data.n_docs)]
        ids[1] = ids[0]
        ids[-1] = ids[-2]
        return write_csv(tmp_path / "a.csv", data, doc_id=ids)

    def test_documents_are_counted_and_said(self, tmp_path, capsys):
        path = self.with_duplicates(tmp_path)
        found = json.loads(run(capsys, "info", path, "--json"))
        assert found["duplicate_rows"] == 2
        assert "2 rows repeat a document of their query" in " ".join(run(capsys, "info", path).split())
        _, _, err = call(capsys, "fit", path, "-o", tmp_path / "m.json")
        assert "2 rows repeat a document of their query" in " ".join(err.split())

    def test_a_run_of_them_is_refused_where_it_is_written(self, tmp_path, capsys):
        path = self.with_duplicates(tmp_path)
        call(capsys, "fit", path, "-o", tmp_path / "m.json")
        error = fail(capsys, "rank", tmp_path / "m.json", path, "--trec", "-o", tmp_path / "run.txt")
        assert "document d0 stands twice under query q0: a run holds each document of a query once" in error
        assert not (tmp_path / "run.txt").exists()

    def test_write_run_refuses_them(self, tmp_path):
        data = tr.QueryDataset.from_arrays(np.ones((2, 1)), [0, 1], ["q", "q"], doc_ids=["d", "d"])
        with pytest.raises(InputError, match="document d stands twice under query q"):
            tr.write_run(run_of(data, [1.0, 2.0]), tmp_path / "run.txt")

    @pytest.mark.parametrize("kind", [np.asarray, csr_array])
    def test_rows_without_ids_are_compared_by_their_features(self, kind):
        X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [-0.0, 2.0]])
        y, qid = [1, 0, 1, 0, 1, 0], list("aaaabb")
        info = tr.QueryDataset.from_arrays(kind(X), y, qid).info()
        assert info.duplicate_rows == 1  # row 2 repeats row 0; row 3 has another grade, row 4 another query

    def test_equal_rows_with_ids_of_their_own_are_no_duplicates(self):
        info = tr.QueryDataset.from_arrays(np.ones((3, 1)), [0, 1, 1], list("aaa"), doc_ids=list("xyz")).info()
        assert info.duplicate_rows == 0
        unnamed = tr.QueryDataset.from_arrays(np.ones((3, 1)), [0, 1, 1], list("aaa"), doc_ids=["x", "", ""]).info()
        assert unnamed.duplicate_rows == 0


class TestArgumentsInTheWrongOrder:
    def test_ids_for_grades_are_refused(self):
        data = judged()
        number = np.searchsorted(data.query_ids, data.qid) + 1
        with pytest.raises(InputError, match=r"y looks like query ids and qid like grades: .*fit\(X, y, qid\)"):
            tr.ListNet().fit(data.X, number, data.y)
        with pytest.raises(InputError, match="y looks like query ids"):
            tr.QueryDataset.from_arrays(data.X, number, data.y)

    def test_few_queries_are_a_warning(self):
        data = judged(n_queries=5)
        with pytest.warns(UserWarning, match="y looks like query ids and qid like grades"):
            made = tr.QueryDataset.from_arrays(data.X, np.repeat(np.arange(5), data.lengths), data.y)
        assert made.query_ids.tolist() == list(dict.fromkeys(data.y.tolist()))  # taken as given

    def test_the_right_order_is_silent(self):
        data = judged()
        mixed = np.random.default_rng(0).permutation(data.n_docs)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tr.QueryDataset.from_arrays(data.X, data.y, data.qid)
            tr.QueryDataset.from_arrays(data.X[mixed], data.y[mixed], data.qid[mixed])
            tr.QueryDataset.from_arrays(np.eye(30), np.arange(30), np.repeat([0, 1, 2], 10))
            tr.QueryDataset.from_arrays(np.eye(12), [0, 1, 2] * 4, np.repeat([0, 1, 2], 4))


class TestColumnsOfNote:
    def table(self, tmp_path):
        rng = np.random.default_rng(0)
        data = judged(n_queries=60)
        rare = np.zeros(data.n_docs)
        rare[7] = 1
        columns = {
            "same": np.full(data.n_docs, 3),
            "rare": rare,
            "views": np.exp(4 * rng.standard_normal(data.n_docs)).round(6),
            "price": ["" if i % 10 == 0 else "1.5" if i % 2 else "2.5" for i in range(data.n_docs)],
        }
        return write_csv(tmp_path / "a.csv", data, **columns), data.n_docs

    def test_they_are_named(self, tmp_path, silent):
        path, n_docs = self.table(tmp_path)
        info = tr.read_table(path, missing="zero").info()
        assert info.constant_columns == ["same"]
        assert info.nearly_constant_columns == ["rare"]
        assert info.heavy_tailed_columns == ["views"]
        assert info.missing_cells == {"price": (n_docs + 9) // 10}

    def test_fit_begins_with_them(self, tmp_path, capsys):
        path, n_docs = self.table(tmp_path)
        options = ("-p", "missing=zero", "--prepare", "log", "--exclude", "a")
        code, _, err = call(capsys, "fit", path, *options, "-o", tmp_path / "m.json")
        assert code == 0
        words = " ".join(err.split())
        assert words.startswith(f"{path}: 60 queries, {n_docs:,} documents, 6 features")
        for part in (
            "b, c, same, rare, views, price",
            "a (excluded)",
            "constant: same",
            "nearly constant: rare",
            "heavy-tailed: views",
            f"missing cells: price {(n_docs + 9) // 10}",
        ):
            assert part in words, part
        found = json.loads(run(capsys, "fit", path, *options, "-o", tmp_path / "m.json", "--json"))
        assert found["data"]["train"]["heavy_tailed_columns"] == ["views"]
        assert found["data"]["train"]["left_out"] == {"a": "excluded"}

    def test_ordinary_columns_are_not_named(self):
        rng = np.random.default_rng(1)
        X = np.column_stack(
            [rng.standard_normal(5000), rng.random(5000), rng.exponential(size=5000), rng.integers(0, 2, 5000)]
        )
        info = tr.QueryDataset.from_arrays(X, rng.integers(0, 3, 5000), np.arange(5000) // 10).info()
        assert info.constant_columns == info.nearly_constant_columns == info.heavy_tailed_columns == []
        assert info.missing_cells == {}


def test_queries_of_one_document_and_without_relevant_ones_are_counted():
    data = tr.QueryDataset.from_arrays(np.eye(6), [1, 0, 0, 0, 2, 1], list("aabbcd"))
    info = data.info()
    assert (info.one_document_queries, info.blank_queries) == (2, 1)


def test_compare_and_certify_begin_with_the_report(tmp_path, capsys):
    for name, seed in (("train", 0), ("test", 1)):
        write_csv(tmp_path / f"{name}.csv", judged(seed, 40))
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    options = ("--rankers", "ListNet", "--budget", "0", "--state", tmp_path / "state")
    code, _, err = call(capsys, "compare", train, test, *options, "-o", tmp_path / "models")
    assert code == 0
    words = " ".join(err.split())
    assert words.startswith(f"{train}: 40 queries")
    assert f"{test}: 40 queries" in words
    assert "features: a, b, c" in words
    found = json.loads(run(capsys, "compare", train, test, *options, "--json"))
    assert found["data"]["train"]["n_queries"] == found["data"]["test"]["n_queries"] == 40
    code, out, err = call(capsys, "certify", tmp_path / "models" / "ListNet.json", test)
    assert code == 0
    assert " ".join(err.split()).startswith(f"{test}: 40 queries")
    assert "queries" in out.splitlines()[0]
    found = json.loads(run(capsys, "certify", tmp_path / "models" / "ListNet.json", test, "--json"))
    assert found["data"]["n_queries"] == 40
    assert found["certificates"]


def test_no_line_is_wider_than_a_terminal():
    X = np.random.default_rng(0).standard_normal((40, 60))
    names = [f"a_rather_long_name_of_a_feature_{j}" for j in range(60)]
    data = tr.QueryDataset.from_arrays(X, np.arange(40) % 4, np.arange(40) // 8, feature_names=names)
    for text in (str(data.info()), data.info().report("train.csv")):
        assert max(map(len, text.splitlines())) <= 80
    assert names[0] in str(data.info())
