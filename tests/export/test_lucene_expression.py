"""Expressions of Lucene: compiled, and documents sorted by them, by Lucene itself where it is installed."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import toprank as tr
from tests.export.models import linear_model, prepared_model, stump_model, tree_model
from tests.oracles import export_sql as oracle
from tests.oracles import export_trees as tree_oracle
from toprank.errors import InputError
from toprank.model.functions import StumpFunction, TreeFunction

JARS = [
    jar
    for pattern in ("lucene-core*.jar", "lucene-expressions*.jar", "antlr4-runtime.jar", "asm*.jar")
    for jar in sorted(Path("/usr/share/java").glob(pattern))
]
HAS_LUCENE = any("expressions" in jar.name for jar in JARS) and shutil.which("javac") is not None
NAMES = ("bm25", "user.age", "click_rate")
needs_lucene = pytest.mark.skipif(not HAS_LUCENE, reason="Lucene (Debian's liblucene8-java) or a JDK is not installed")


def in_lucene(folder, expression, X):
    """Scores in the order of the rows, and the order that Lucene sorts them in."""
    lines = ["\t".join(NAMES), *("\t".join("" if v != v else repr(v) for v in row) for row in X.tolist())]
    (folder / "rows.tsv").write_text("\n".join(lines) + "\n")
    (folder / "expression.txt").write_text(expression)
    program = Path(__file__).parent / "java" / "Score.java"
    options = ["-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", ":".join(map(str, JARS))]
    command = ["java", *options, program, folder / "expression.txt", folder / "rows.tsv"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-800:]
    found = [line.split("\t") for line in done.stdout.splitlines()]
    order = [int(document) for document, _ in found]
    scores = {int(document): float(score) for document, score in found}
    return [scores[i] for i in range(len(X))], order


def expression_of(model, folder, **settings):
    tr.export.write(model, folder / "e.txt", "lucene-expression", form="expression", **settings)
    return (folder / "e.txt").read_text()


def rows_of(X):
    return [[None if v != v else v for v in row] for row in X.tolist()]


def models():
    forest = [(0, 0.5, True, (1, -2.0, False, -1.0, 0.3), (2, 1.0, True, 0.7, 1.1)), (2, -0.5, True, 4.0, 5.0), 0.25]
    stumps = [(0, 0.1, 1.0), (0, 0.7, -0.25), (2, -1.0, 2.0)]
    columns = (np.array(column) for column in zip(*stumps, strict=True))
    fill = (0.0, 2.5, -1.0)
    return {
        "linear": (
            linear_model(NAMES, np.array([0.1, -2e-7, 1 / 3]), 0.3, np.array(fill)),
            lambda row: oracle.linear(
                [0.1, -2e-7, 1 / 3], 0.3, [f if v is None else v for v, f in zip(row, fill, strict=True)]
            ),
        ),
        "trees": (
            tree_model(NAMES, TreeFunction.build(3, forest)),
            lambda row: oracle.halves([tree_oracle.nested(tree, row) for tree in forest]),
        ),
        "steps": (
            stump_model(NAMES, StumpFunction(3, *columns), np.array(fill)),
            lambda row: tree_oracle.score(stumps, row, fill),
        ),
        "log": (
            prepared_model(linear_model(NAMES, np.array([1.0, 2.0, -3.0])), ("log",), np.zeros(3)),
            lambda row: sum(w * v for w, v in zip(
                (1.0, 2.0, -3.0), oracle.prepared(("log",), [[0.0 if v is None else v for v in row]])[0], strict=True
            )),
        ),
    }  # fmt: skip


def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) * (1.0, 10.0, 2.0)
    X[rng.random(X.shape) < 0.2] = np.nan
    X[0] = (0.5, -2.0, 1.0)  # on thresholds
    return X


@needs_lucene
@pytest.mark.parametrize("kind", models())
def test_lucene_scores_and_sorts_as_the_model(tmp_path, kind):
    model, score = models()[kind]
    X = table()
    got, order = in_lucene(tmp_path, expression_of(model, tmp_path, shift=0.0), X)
    expected = [score(row) for row in rows_of(X)]
    if kind in ("linear", "trees"):
        assert got == expected
    assert got == pytest.approx(expected, abs=1e-12)
    assert got == pytest.approx(model.predict(X).tolist(), abs=1e-12)
    assert order == sorted(range(len(X)), key=lambda i: (-got[i], i))


@pytest.mark.parametrize("kind", models())
@pytest.mark.parametrize("form", ["select", "expression"])
def test_the_restated_expression_is_verified(tmp_path, kind, form):
    model, score = models()[kind]
    X = table()
    export = tr.export.write(model, tmp_path / "m.json", "lucene-expression", form=form, shift=0.0)
    check = tr.export.verify(model, tmp_path / "m.json", X, to="lucene-expression")
    assert check.agrees
    assert "restated for and run by SQLite" in check.engine
    _, replica = tr.export.read(tmp_path / "m.json", "lucene-expression")
    columns = [NAMES.index(name) for name in replica.names]
    expected = np.array([score(row) for row in rows_of(X)]).astype(np.float32)
    assert replica.score_rows(X[:, columns]) == pytest.approx(expected.astype(float), rel=1e-7, abs=1e-12)
    assert any("sort by _script" in note for note in export.notes)
    text = (tmp_path / "m.json").read_text()
    (tmp_path / "m.json").write_text(text.replace("'bm25'", "'click_rate'"))
    assert not tr.export.verify(model, tmp_path / "m.json", X, to="lucene-expression").agrees


def test_the_body_is_a_script_score_search(tmp_path):
    export = tr.export.write(linear_model(NAMES[:2], np.array([1.0, -0.5])), tmp_path / "m.json", "lucene-expression")
    body = json.loads((tmp_path / "m.json").read_text())
    script = body["query"]["script_score"]["script"]
    assert script == {"lang": "expression", "source": "(1.0e0 * doc['bm25'].value + -0.5e0 * doc['user.age'].value)"}
    assert any("script_score refuses negative scores" in note for note in export.notes)
    lifted = tr.export.write(models()["trees"][0], tmp_path / "m.json", "lucene-expression")
    assert not any("negative" in note for note in lifted.notes)
    assert tr.export.read(tmp_path / "m.json")[1].score_rows(table()).min() >= 0


def test_what_is_refused_in_one_line(tmp_path):
    with pytest.raises(InputError, match="cannot hold"):
        tr.export.write(linear_model(("a'b",), np.ones(1)), tmp_path / "x", "lucene-expression")
    with pytest.raises(InputError, match="not a view"):
        tr.export.write(linear_model(("a",), np.ones(1)), tmp_path / "x", "lucene-expression", form="view")
    prepared = prepared_model(linear_model(("a",), np.ones(1)), ("minmax",))
    with pytest.raises(InputError, match="lucene-expression cannot compute features scaled"):
        tr.export.write(prepared, tmp_path / "x", "lucene-expression")
    large = linear_model(tuple(f"feature_{j}" for j in range(3000)), np.ones(3000))
    notes = tr.export.write(large, tmp_path / "x", "lucene-expression").notes
    assert any("script.max_size_in_bytes" in note for note in notes)
    for content in (
        '{"query": {"script_score": {"script": {"lang": "expression", "source": "(1"}}}}',
        '{"lang": "expression"}',
    ):
        (tmp_path / "x").write_text(content)
        with pytest.raises(InputError, match="not an expression as toprank writes it"):
            tr.export.read(tmp_path / "x")
