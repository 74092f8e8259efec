"""Copies, ramps and steps in engines: the same scores, or a refusal in one line; a file with other knots disagrees."""

import re
import warnings

import numpy as np
import pytest

import toprank as tr
from tests.test_seams import queries

CHAINS = ["+rank,+minmax,ramps:4", "steps:4", "log,+standard,ramps:3", "+rank", "ramps:4"]


def fitted(prepare, missing="error"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tr.ListNet(prepare=prepare, missing=missing, max_iter=30).fit_queries(queries(missing != "error"))


@pytest.mark.parametrize("missing", ["error", "median"])
@pytest.mark.parametrize("prepare", CHAINS)
@pytest.mark.parametrize("dialect", ["duckdb", "sqlite", "postgres"])
def test_sql_computes_them(prepare, missing, dialect, tmp_path):
    if dialect == "duckdb":
        pytest.importorskip("duckdb", reason="duckdb is not installed")
    ranker, test = fitted(prepare, missing), queries(missing != "error", seed=5)
    tr.export.write(ranker, tmp_path / "score.sql", "sql", dialect=dialect)
    check = tr.export.verify(ranker, tmp_path / "score.sql", test)
    assert check.agrees, str(check)
    assert check.largest_difference < 1e-9


@pytest.mark.parametrize(("to", "form"), [("sql", "expression"), ("lucene-expression", "select")])
@pytest.mark.parametrize("prepare", ["ramps:4", "steps:4", "log,ramps:3"])
def test_curves_of_single_documents_are_an_expression(prepare, to, form, tmp_path):
    ranker = fitted(prepare)
    tr.export.write(ranker, tmp_path / "score", to, form=form)
    check = tr.export.verify(ranker, tmp_path / "score", queries(False, seed=5), to=to)
    assert check.agrees, str(check)


def test_other_knots_are_found_out(tmp_path):
    ranker = fitted("steps:4")
    tr.export.write(ranker, tmp_path / "score.sql", "sql")
    text = (tmp_path / "score.sql").read_text()
    changed = re.sub(r"> (-?[0-9.]+e-?[0-9]+) THEN", "> 1e3 THEN", text)
    assert changed != text
    (tmp_path / "score.sql").write_text(changed)
    assert not tr.export.verify(ranker, tmp_path / "score.sql", queries(False, seed=5)).agrees


def test_knots_change_the_name_of_a_model(tmp_path):
    names = set()
    for seed in (0, 1):
        ranker = tr.ListNet(prepare="ramps:3").fit_queries(queries(False, seed=seed))
        function = type(ranker.function_)(np.ones(ranker.inputs_.n_outputs))
        ranker.function_ = function
        names.add(tr.export.write(ranker, tmp_path / "score.sql", "sql").name)
    assert len(names) == 2


def test_what_cannot_be_written_is_one_line(tmp_path):
    stumps = tr.RankBoost(rounds=3, prepare="ramps:3").fit_queries(queries(False))
    for ranker, to, why in (
        (stumps, "sql", "for linear models, and RankBoost is none"),
        (fitted("+rank"), "solr", "cannot compute ranks of a feature within a query: take sql"),
        (fitted("ramps:3"), "elasticsearch", "cannot compute curves of a feature: take sql or lucene-expression"),
    ):
        with pytest.raises(tr.InputError, match=why) as refused:
            tr.export.write(ranker, tmp_path / "file", to)
        assert "\n" not in str(refused.value)
