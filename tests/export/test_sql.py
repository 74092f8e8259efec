"""SQL that databases run: SQLite, DuckDB, PostgreSQL and MariaDB servers against oracles; sqlglot parses the rest."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import toprank as tr
from tests.export.databases import MARIADB, POSTGRES, DuckDB, Sqlite, mariadb, postgres
from tests.export.models import linear_model, prepared_model, stump_model, tree_model
from tests.interop.test_tree_files import boosted as train_trees
from tests.interop.test_tree_files import table as judged
from tests.oracles import export_sql as oracle
from tests.oracles import export_trees as tree_oracle
from toprank.errors import InputError
from toprank.export.sql import DIALECTS, exact_in_sqlite
from toprank.model.functions import StumpFunction, TreeFunction

ODD = ('a "b"; DROP TABLE x; --', "order", "Größe'", "back\\slash", "per cent %s {x} $1")
FLOAT32 = {"sqlite": "REAL", "duckdb": "FLOAT", "postgres": "float4", "mysql": "FLOAT"}
RUN = [
    "sqlite",
    "duckdb",
    pytest.param("postgres", marks=pytest.mark.skipif(POSTGRES is None, reason="no PostgreSQL server is installed")),
    pytest.param("mysql", marks=pytest.mark.skipif(MARIADB is None, reason="no MariaDB server is installed")),
]


@pytest.fixture(scope="module")
def databases():
    none = pytest.MonkeyPatch.context
    with postgres() if POSTGRES else none() as server, mariadb() if MARIADB else none() as other:
        yield {"sqlite": Sqlite, "duckdb": DuckDB, "postgres": lambda: server, "mysql": lambda: other}


@pytest.fixture(params=RUN)
def database(request, databases):
    if request.param == "duckdb":
        pytest.importorskip("duckdb", reason="duckdb is not installed")
    found = databases[request.param]()
    found.name = request.param
    yield found
    for table in ("documents", "second", "y"):
        found.drop(table)


def filled(database, names, X, query, table="documents", **rest):
    columns = {"query": query, "id": np.arange(len(X)), **{name: X[:, j] for j, name in enumerate(names)}}
    database.fill(table, columns, **rest)


def statement(path):
    return path.read_text(encoding="utf-8").rstrip().rstrip(";")


def answers(database, path):
    """Scores and ranks by document."""
    rows = sorted(database.rows(statement(path)), key=lambda row: row[1])
    return [row[2] for row in rows], [int(row[3]) for row in rows]


def gappy(rows=40, width=5, seed=0, gaps=0.2, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, width)) * 10.0 ** rng.integers(-3, 9, width)
    X[rng.random(X.shape) < gaps] = np.nan
    X[3] = X[4]  # documents of equal score
    return X.astype(dtype), np.repeat(np.arange(rows // 8), 8)


def as_rows(X, fill=None):
    return [[(fill if v != v else v) for v in row] for row in X.tolist()]


def by_query(query, values):
    return [values[first : first + 8] for first in range(0, len(values), 8)]


def all_ranks(query, scores):
    return [rank for part in by_query(query, scores) for rank in oracle.ranks(part)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("fill", [None, 0.0, 2.5])
def test_linear_scores_to_the_last_bit_and_ranks(database, tmp_path, fill, dtype):
    X, query = gappy(dtype=dtype)
    weights = [0.1, -2e-7, 1 / 3, 0.0, 4e9]
    model = linear_model(ODD, np.array(weights), 0.3, None if fill is None else np.full(5, fill), "ListNet")
    kind = {"kind": FLOAT32[database.name]} if dtype == np.float32 else {}
    filled(database, ODD, X, query, **kind)
    tr.export.write(model, tmp_path / "rank.sql", "sql", dialect=database.name)
    scores, ranks = answers(database, tmp_path / "rank.sql")
    expected = [oracle.linear(weights, 0.3, row) for row in as_rows(X, fill)]
    assert scores == expected
    assert ranks == all_ranks(query, expected)
    assert sum(score is None for score in scores) == (0 if fill is not None else sum(
        any(v is None for v, w in zip(row, weights, strict=True) if w) for row in as_rows(X)
    ))  # fmt: skip


def test_steps_of_rankboost(database, tmp_path):
    X, query = gappy(width=2)
    X[:, 1] = np.round(X[:, 1])
    stumps = [(0, t, w) for t, w in zip(np.nanquantile(X[:, 0], [0.2, 0.5, 0.7]), (1.0, -0.25, 2.0), strict=True)]
    stumps += [(1, float(np.nanmedian(X[:, 1])), 0.3), (1, 1e300, 5.0)]
    feature, threshold, weight = (np.array(column) for column in zip(*stumps, strict=True))
    model = stump_model(
        ("a", "b"), StumpFunction(2, feature, threshold, weight), np.array([0.0, 7.0]), "RankBoost", 0.5
    )
    filled(database, ("a", "b"), X, query)
    tr.export.write(model, tmp_path / "rank.sql", "sql", dialect=database.name)
    text = (tmp_path / "rank.sql").read_text()
    assert text.count("CASE") == 5  # one chain for each feature, never a sum of thresholds
    scores, ranks = answers(database, tmp_path / "rank.sql")
    expected = [tree_oracle.score(stumps, row, [0.0, 7.0]) + 0.5 for row in as_rows(X)]
    assert scores == pytest.approx(expected, abs=1e-15)
    assert ranks == all_ranks(query, scores)


FOREST = [
    (0, 9.0, True, (1, -0.5, False, -1.0, 0.3), (2, 1e7, True, 0.7, 1.1)),
    (2, 0.0, False, 4.0, 5.0),
]
STUMPS = [(0, 9.0, 1.0), (0, 80.0, -0.25), (1, -0.5, 2.0), (2, 3.5e-3, 0.5)]


def text_table():
    """Numbers that sort otherwise as text: 10 before 9, -3 behind -20, 1e-05 behind 1, and missing cells."""
    rng = np.random.default_rng(3)
    X = np.column_stack(
        [
            rng.choice([1.0, 9.5, 10.0, 85.0, 700.0, np.nan], size=48),
            rng.choice([-20.0, -3.0, -0.25, 0.0, 2.0, np.nan], size=48),
            rng.choice([1e-05, 0.002, 3.0, 4e10, 12345678.0, np.nan], size=48),
        ]
    )
    return X, np.repeat(np.arange(6), 8)


def text_models():
    feature, threshold, weight = (np.array(column) for column in zip(*STUMPS, strict=True))
    linear = linear_model(("a", "b", "c"), np.array([0.5, -2.0, 1e-3]), 0.0, np.array([1.0, 0.0, -5.0]))
    stumps = StumpFunction(3, feature, threshold, weight)
    return {
        "linear": linear,
        "trees": tree_model(("a", "b", "c"), TreeFunction.build(3, FOREST)),
        "stumps": stump_model(("a", "b", "c"), stumps, np.array([0.0, 7.0, 0.0]), "RankBoost"),
        "prepared": prepared_model(linear_model(("a", "b", "c"), np.ones(3)), ("minmax",), np.array([0.0, 1.0, -2.0])),
    }


@pytest.mark.parametrize("kind", ["linear", "trees", "stumps", "prepared"])
def test_columns_of_text_are_compared_as_numbers(database, tmp_path, kind):
    X, query = text_table()
    model = text_models()[kind]
    columns = {"query": query, "id": np.arange(len(X)), **{name: X[:, j] for j, name in enumerate("abc")}}
    database.fill_text("documents", columns)
    tr.export.write(model, tmp_path / "rank.sql", "sql", dialect=database.name)
    scores, ranks = answers(database, tmp_path / "rank.sql")
    rows = as_rows(X)
    if kind == "linear":
        filled_in = [[f if v is None else v for v, f in zip(row, (1.0, 0.0, -5.0), strict=True)] for row in rows]
        expected = [oracle.linear([0.5, -2.0, 1e-3], 0.0, row) for row in filled_in]
    elif kind == "trees":
        expected = [oracle.halves([tree_oracle.nested(tree, row) for tree in FOREST]) for row in rows]
    elif kind == "stumps":
        expected = [tree_oracle.score(STUMPS, row, [0.0, 7.0, 0.0]) for row in rows]
    else:
        filled_in = [[f if v is None else v for v, f in zip(row, (0.0, 1.0, -2.0), strict=True)] for row in rows]
        ready = [row for part in by_query(query, filled_in) for row in oracle.prepared(("minmax",), part)]
        expected = [math.fsum(row) for row in ready]
    assert scores == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert ranks == all_ranks(query, scores)


@pytest.mark.parametrize("kind", ["trees", "stumps", "prepared"])
@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "mysql"])
def test_sql_that_compares_text_is_found(tmp_path, dialect, kind):
    X, query = text_table()
    model = text_models()[kind]
    tr.export.write(model, tmp_path / "rank.sql", "sql", dialect=dialect)
    check = tr.export.verify(model, tmp_path / "rank.sql", X, qid=query)
    assert check.agrees
    assert "columns of text" in " ".join(check.notes)
    before = (tmp_path / "rank.sql").read_text()
    bare = before
    for name in "abc":
        bare = bare.replace(DIALECTS[dialect].column(name), DIALECTS[dialect].identifier(name))
    assert bare != before
    (tmp_path / "rank.sql").write_text(bare)
    check = tr.export.verify(model, tmp_path / "rank.sql", X, qid=query)
    assert not check.agrees
    assert "columns of text" in " ".join(check.notes)


def test_trees_with_sides_for_missing_values(database, tmp_path):
    X, query = gappy(width=3)
    mid = [float(v) for v in np.nanmedian(X, axis=0)]
    forest = [
        (0, mid[0], True, (1, mid[1], False, -1.0, 0.3), (2, mid[2], True, 0.7, 1.1)),
        (2, 0.0, False, 4.0, 5.0),
        0.25,
    ]
    model = tree_model(("a", "b", "c"), TreeFunction.build(3, forest))
    filled(database, ("a", "b", "c"), X, query)
    for form in ("select", "expression"):
        tr.export.write(model, tmp_path / "rank.sql", "sql", dialect=database.name, form=form)
        expected = [oracle.halves([tree_oracle.nested(tree, row) for tree in forest]) for row in as_rows(X)]
        if form == "select":
            scores, ranks = answers(database, tmp_path / "rank.sql")
            assert ranks == all_ranks(query, expected)
        else:
            rows = database.rows(f"SELECT id, {statement(tmp_path / 'rank.sql')} FROM documents ORDER BY id")
            scores = [row[1] for row in rows]
        assert scores == expected


@pytest.mark.parametrize("package", ["lightgbm", "xgboost"])
def test_models_of_the_packages(database, tmp_path, package):
    X, y, lengths = judged(0.2)
    booster = train_trees(package, X, y, lengths)
    names = tr.export.fold(booster).names
    filled(database, names, X, np.repeat(np.arange(20), 20))
    tr.export.write(booster, tmp_path / "rank.sql", "sql", dialect=database.name)
    scores, _ = answers(database, tmp_path / "rank.sql")
    assert scores == pytest.approx(tr.export.fold(booster).predict(X).tolist(), abs=1e-12)


@pytest.mark.parametrize("steps", [("log",), ("minmax",), ("standard",), ("log", "standard"), ("minmax", "log")])
def test_prepared_features(database, tmp_path, steps):
    X, query = gappy(width=3)
    X[query == 1, 0] = 1e8 + np.arange(8) / 4  # large, and close together
    X[query == 2, 1] = 0.1  # constant in one query
    model = prepared_model(
        linear_model(("a", "b", "c"), np.array([1.5, -2.0, 0.5]), 0.25), steps, np.array([0.0, 1.0, -2.0])
    )
    filled(database, ("a", "b", "c"), X, query)
    tr.export.write(model, tmp_path / "rank.sql", "sql", dialect=database.name)
    scores, ranks = answers(database, tmp_path / "rank.sql")
    rows = [[f if v is None else v for v, f in zip(row, (0.0, 1.0, -2.0), strict=True)] for row in as_rows(X)]
    ready = [row for part in by_query(query, rows) for row in oracle.prepared(steps, part)]
    expected = [math.fsum([1.5 * a, -2.0 * b, 0.5 * c, 0.25]) for a, b, c in ready]
    assert scores == pytest.approx(expected, rel=1e-7, abs=1e-7)
    assert model.predict(X, qid=query) == pytest.approx(expected, rel=1e-7, abs=1e-7)
    assert ranks == all_ranks(query, scores)
    if database.name not in ("postgres", "mysql"):
        check = tr.export.verify(model, tmp_path / "rank.sql", X, qid=query)
        assert check.agrees
        assert check.engine.startswith("run by")
        assert check.largest_difference <= check.allowed < 1e-4
    if steps == ("log",):
        tr.export.write(model, tmp_path / "e.sql", "sql", dialect=database.name, form="expression")
        again = database.rows(f"SELECT id, {statement(tmp_path / 'e.sql')} FROM documents ORDER BY id")
        assert [row[1] for row in again] == scores
    elif "log" not in steps:
        with pytest.raises(InputError, match="no expression of one row"):
            tr.export.write(model, tmp_path / "x.sql", "sql", dialect=database.name, form="expression")


def test_a_pipeline_goes_whole(tmp_path):
    data = tr.datasets.make_graded(n_queries=20, n_features=3, random_state=0)
    steps = (tr.SignedLog(missing="zero"), StandardScaler(), tr.ListNet())
    pipe = make_pipeline(*steps).fit(data.X, data.y, listnet__qid=data.qid)
    folded = tr.export.fold(pipe)
    assert folded.predict(data.X) == pytest.approx(pipe.predict(data.X))
    for to in ("sql", "json"):
        tr.export.write(pipe, tmp_path / "file", to, **({"dialect": "sqlite"} if to == "sql" else {}))
        assert tr.export.verify(pipe, tmp_path / "file", data).agrees
    again = tr.export.fold(tmp_path / "file")
    assert again.predict(data) == pytest.approx(folded.predict(data), abs=1e-15)
    wrong = prepared_model(folded, ("minmax",), folded.rule.fill)
    assert not tr.export.verify(wrong, tmp_path / "file", data.X, qid=data.qid).agrees
    for to in ("elasticsearch", "solr", "ranklib"):
        with pytest.raises(InputError, match="cannot compute the signed logarithm"):
            tr.export.write(pipe, tmp_path / "x", to)
        with pytest.raises(InputError, match="documents one by one"):
            tr.export.check_preparation(to, ["query"])
    tr.export.check_preparation("sql", ["log", "query", "standard"])
    with pytest.raises(InputError, match="prepare"):
        tr.export.check_preparation("sql", ["root"])


@pytest.mark.parametrize("steps", [("log",), ("log", "log")])
def test_vespa_takes_logarithms_too(tmp_path, steps):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) * (1e4, 1.0)
    X[rng.random(X.shape) < 0.2] = np.nan
    fill = np.array([0.0, -2.0])
    feature, threshold = np.array([0, 1, 0]), np.array([1.0, -0.3, -1.5])
    inner = [linear_model(("a", "b c"), np.array([1e-9, -2.0]), 0.5)]
    inner.append(
        stump_model(("a", "b c"), StumpFunction(2, feature, threshold, np.array([1.0, 0.3, -2.0])), source="RankBoost")
    )
    for model in (prepared_model(each, steps, fill) for each in inner):
        tr.export.write(model, tmp_path / "m.profile", "vespa", expressions={"b c": "bm25(b)"})
        text = (tmp_path / "m.profile").read_text()
        assert text.startswith("rank-profile ")
        assert "expression: if (f_a < 0, -log(1 - f_a), log(1 + f_a))" in text
        check = tr.export.verify(model, tmp_path / "m.profile", X)
        assert check.agrees
        rows = [[f if v is None else v for v, f in zip(row, fill.tolist(), strict=True)] for row in as_rows(X)]
        expected = replace(model, inputs=replace(model.inputs, steps=())).predict(
            np.array([oracle.prepared(steps, [row])[0] for row in rows])
        )
        assert tr.export.read(tmp_path / "m.profile")[1].score_rows(X) == pytest.approx(expected, abs=1e-9)
        (tmp_path / "m.profile").write_text(text.replace("log(1 + f_a)", "log(2 + f_a)"))
        with pytest.raises(InputError, match="is not a logarithm as it is written here"):
            tr.export.read(tmp_path / "m.profile")


def test_onnx_takes_logarithms_of_linear_models(tmp_path):
    pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    pytest.importorskip("onnx", reason="the extra onnx is not installed")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) * (1e4, 1e-3)
    X[rng.random(X.shape) < 0.2] = np.nan
    model = prepared_model(linear_model(("a", "b"), np.array([0.5, -200.0]), 0.5), ("log",), np.array([0.0, -2.0]))
    tr.export.write(model, tmp_path / "m.onnx", "onnx")
    check = tr.export.verify(model, tmp_path / "m.onnx", X)
    assert check.agrees
    assert check.largest_difference <= check.allowed < 1e-2
    plain = prepared_model(
        linear_model(("a", "b"), np.array([0.5, -200.0]), 0.5), ("log", "log"), np.array([0.0, -2.0])
    )
    assert not tr.export.verify(plain, tmp_path / "m.onnx", X).agrees
    steps = stump_model(("a",), StumpFunction(1, np.array([0]), np.array([1.0]), np.array([1.0])), source="RankBoost")
    with pytest.raises(InputError, match="can move a value across a threshold of RankBoost"):
        tr.export.write(prepared_model(steps, ("log",), np.zeros(1)), tmp_path / "x", "onnx")


def test_two_thousand_features(database, tmp_path):
    rng = np.random.default_rng(0)
    names = tuple(f"f{j}" for j in range(2000))
    model = linear_model(names, rng.normal(size=2000), 1.0, np.zeros(2000))
    X = np.round(rng.normal(size=(8, 2000)), 3)
    X[rng.random(X.shape) < 0.1] = np.nan
    kind = (
        {"kind": FLOAT32[database.name]} if database.name in ("postgres", "mysql") else {}
    )  # 1,000 float8 fill a page
    if kind:
        X = X.astype(np.float32).astype(float)
    tr.export.write(model, tmp_path / "e.sql", "sql", dialect=database.name, form="expression")
    filled(database, names[:1000], X[:, :1000], np.zeros(8, dtype=int), **kind)
    columns = {"id": np.arange(8), **{name: X[:, 1000 + j] for j, name in enumerate(names[1000:])}}
    database.fill("second", columns, **kind)
    rows = database.rows(
        f"SELECT id, {statement(tmp_path / 'e.sql')} FROM documents JOIN second USING (id) ORDER BY id"
    )
    expected = [oracle.linear(model.weights.tolist(), 1.0, row) for row in as_rows(X, 0.0)]
    assert [row[1] for row in rows] == expected


def test_a_view(database, tmp_path):
    X, query = gappy()
    names = tuple("abcde")
    model = linear_model(names, np.arange(1.0, 6.0), fill=np.zeros(5))
    filled(database, names, X, query)
    tr.export.write(model, tmp_path / "v.sql", "sql", dialect=database.name, form="view", name="y", version="")
    database.rows(statement(tmp_path / "v.sql"))
    first = database.rows("SELECT query, id, score FROM y WHERE rank = 1 ORDER BY query")
    expected = [oracle.linear(range(1, 6), 0.0, row) for row in as_rows(X, 0.0)]
    best = [max(range(8), key=lambda i: expected[8 * q + i]) + 8 * q for q in range(5)]
    assert [int(row[1]) for row in first] == best
    assert [row[2] for row in first] == [expected[i] for i in best]
    if database.name != "duckdb":
        database.rows("DROP VIEW y")
    else:
        database.connection.execute("DROP VIEW y")
    database.drop = lambda table, drop=database.drop: None if table == "y" else drop(table)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("form", ["select", "view", "expression"])
def test_every_dialect_parses_and_verifies(tmp_path, dialect, form):
    if dialect == "duckdb":
        pytest.importorskip("duckdb", reason="duckdb is not installed")
    sqlglot = pytest.importorskip("sqlglot", reason="sqlglot is not installed")
    names = ("a", "Order", "c d", "e%") if dialect == "bigquery" else ("a", ODD[0], ODD[3], "`e`")
    forest = [(0, 0.5, True, -1.0, (3, 2.0, False, 1.0, 3.0)), (1, 1e-9, False, 0.0, 1e22)]
    linear = linear_model(names, np.array([0.1, 0.0, -1e-9, 3e22]), fill=np.array([0.0, 1.0, 2.5, -1.0]))
    models = [linear, tree_model(names, TreeFunction.build(4, forest))]
    if form != "expression":
        models += [
            prepared_model(replace_fill(linear), ("log", step), linear.rule.fill) for step in ("minmax", "standard")
        ]
    X = np.random.default_rng(0).choice([0.0, 0.5, 3.0, np.nan, 1e-9, 7.0], size=(60, 4))
    for model in models:
        tr.export.write(model, tmp_path / "m.sql", "sql", dialect=dialect, form=form)
        text = (tmp_path / "m.sql").read_text()
        parsed = sqlglot.parse(text if form != "expression" else f"SELECT {text}", dialect=dialect)
        assert len([tree for tree in parsed if tree is not None]) == 1
        found = {column.name for column in parsed[0].find_all(sqlglot.exp.Column)}
        assert set(json.loads(text.splitlines()[1].partition(": ")[2])["features"]) <= found
        check = tr.export.verify(model, tmp_path / "m.sql", X, qid=np.repeat(np.arange(6), 10))
        assert check.agrees, str(check)
        wanted = {"sqlite": "run by SQLite", "duckdb": "run by DuckDB"}
        assert check.engine.startswith(wanted.get(dialect, f"{dialect} restated for and run by SQLite"))
        assert check.target == "sql"


def replace_fill(linear):
    return linear_model(linear.names, linear.weights)


@pytest.mark.parametrize("dialect", [name for name in DIALECTS if name != "duckdb"])
def test_a_changed_number_is_found(tmp_path, dialect):
    model = linear_model(("a", "b"), np.array([0.25, -1.5]))
    X = np.random.default_rng(0).normal(size=(50, 2))
    tr.export.write(model, tmp_path / "m.sql", "sql", dialect=dialect)
    text = (tmp_path / "m.sql").read_text()
    assert tr.export.verify(model, tmp_path / "m.sql", X).agrees
    (tmp_path / "m.sql").write_text(text.replace("0.25e0", "0.75e0"))
    assert not tr.export.verify(model, tmp_path / "m.sql", X).agrees
    (tmp_path / "m.sql").write_text(text.replace("FROM", "FORM"))
    with pytest.raises(InputError, match=r"m\.sql.*SQLite cannot run it"):
        tr.export.verify(model, tmp_path / "m.sql", X)


@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "bigquery"])
def test_a_table_in_a_schema_is_verified_by_its_name(tmp_path, dialect):
    model = linear_model(("a", "b"), np.array([0.25, -1.5]))
    tr.export.write(model, tmp_path / "m.sql", "sql", dialect=dialect, table="shop.public.docs")
    quote = "`" if dialect == "bigquery" else '"'
    assert f"FROM {quote}shop{quote}.{quote}public{quote}.{quote}docs{quote}" in (tmp_path / "m.sql").read_text()
    assert tr.export.verify(model, tmp_path / "m.sql", np.random.default_rng(0).normal(size=(20, 2))).agrees


def test_numbers_that_sqlite_reads_otherwise_are_quotients():
    import sqlite3

    rng = np.random.default_rng(1)
    connection = sqlite3.connect(":memory:")
    values = rng.normal(size=4000) * 10.0 ** rng.integers(-15, 15, 4000)
    for value in values.tolist():
        text = repr(value) if "e" in repr(value) else f"{value!r}e0"
        assert connection.execute(f"SELECT {exact_in_sqlite(value, text)}").fetchone()[0] == value


def test_what_is_refused_in_one_line(tmp_path):
    model = linear_model(("a", "b"), np.ones(2))
    refused = [
        ({"dialect": "oracle"}, "dialect must be one of"),
        ({"form": "table"}, "form must be one of"),
        ({"qid": "id"}, "'id' is asked for twice"),
        ({"doc_id": "B"}, "'b' is asked for twice"),
        ({"qid": "score"}, "'score' is what the SQL computes"),
        ({"doc_id": "Rank"}, "'Rank' is what the SQL computes"),
        ({"table": "a\x00b"}, "cannot hold"),
        ({"features": ["a", "A"]}, "upper and lower case"),
        ({"features": ["a", "b`"], "dialect": "bigquery"}, "cannot hold"),
        ({"features": ["a", "b" * 64], "dialect": "postgres"}, "63 bytes"),
        ({"normalizers": True}, "no use for normalizers"),
    ]
    for settings, words in refused:
        with pytest.raises(InputError, match=words):
            tr.export.write(model, tmp_path / "x.sql", "sql", **settings)
    with pytest.raises(InputError, match="solr has no use for dialect"):
        tr.export.write(model, tmp_path / "x.sql", "solr", dialect="sqlite")
    with pytest.raises(InputError, match="unknown setting 'dialekt'"):
        tr.export.write(model, tmp_path / "x.sql", "sql", dialekt="sqlite")
    assert not list(tmp_path.iterdir())
    for content in ("-- x\n-- toprank-sql: {\nSELECT 1", "-- x\n-- toprank-sql: {}\nSELECT 1"):
        (tmp_path / "x.sql").write_text(content)
        with pytest.raises(InputError, match=r"x\.sql is not SQL as toprank writes it"):
            tr.export.read(tmp_path / "x.sql")
