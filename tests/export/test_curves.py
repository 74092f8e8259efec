"""Copies, ramps and steps in engines: the same scores, or a refusal in one line; a file with other knots disagrees."""

import json
import re
import warnings

import numpy as np
import pytest

import toprank as tr
from tests.test_seams import queries
from toprank.export.own_json import decode

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


@pytest.mark.parametrize("missing", ["error", "zero"])
@pytest.mark.parametrize("prepare", CHAINS)
def test_json_has_them_and_comes_back_with_the_same_bits(prepare, missing, tmp_path):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    ranker, test = fitted(prepare, missing), queries(missing != "error", seed=5)
    tr.export.write(ranker, tmp_path / "score.json", "json")
    check = tr.export.verify(ranker, tmp_path / "score.json", test)
    assert check.agrees, str(check)
    content = (tmp_path / "score.json").read_bytes()
    assert np.array_equal(decode(content, "score.json").scores(test), ranker.model_.scores(test))
    jsonschema.Draft202012Validator(tr.export.schema("additive")).validate(json.loads(content))
    ranker.save(tmp_path / "model.json")
    model = json.loads((tmp_path / "model.json").read_text())
    jsonschema.Draft202012Validator(tr.export.schema("model")).validate(model)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda c: c["curves"][0].update(feature=9), "which is not there"),
        (lambda c: c["curves"][0].update(view="standard"), "which is not there"),
        (lambda c: c["curves"].append(c["curves"][0]), "two curves are of one feature"),
        (lambda c: c["curves"][0]["scales"].pop(), "as many scales and weights as knots"),
        (lambda c: c["curves"][0]["knots"].reverse(), "rising order"),
        (lambda c: c.update(knots="none"), "there are some"),
        (lambda c: c["curves"][0]["scales"].__setitem__(0, 0.0), "scales above 0"),
    ],
)
def test_a_spoilt_json_file_is_one_line(change, why, tmp_path):
    tr.export.write(fitted("+rank,ramps:4"), tmp_path / "score.json", "json")
    content = json.loads((tmp_path / "score.json").read_text())
    change(content)
    with pytest.raises(tr.InputError, match=why) as refused:
        decode(json.dumps(content).encode(), "score.json")
    assert "\n" not in str(refused.value)


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
