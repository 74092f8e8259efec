"""Models put into a running engine: here a stand-in for the plugins; a real Solr is in tests/engines."""

from typing import NamedTuple

import numpy as np
import pytest

import toprank as tr
from tests.cli.calling import call
from tests.export.models import linear_model
from tests.search_engine import search_engine
from toprank.errors import InputError
from toprank.export.pushing import push
from toprank.export.targets import Settings
from toprank.interop import EngineClient, credentials

NAMES = ("title_bm25", "body_bm25", "age_days", "click_rate")
LINES = ("name,kind,field", "title_bm25,match,title", "body_bm25,match,body", "age_days,field,age_days")
TABLE = "\n".join([*LINES, "click_rate,field,click_rate", ""])


@pytest.fixture
def engine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "features.csv").write_text(TABLE)
    for name in ("KEY", "USER", "PASSWORD"):
        monkeypatch.delenv(f"TOPRANK_ENGINE_{name}", raising=False)
    with search_engine() as (server, address):
        server.address = address
        yield server


def saved(tmp_path, weights=(0.5, 0.25, 0.001, 3.0)):
    """A file of a linear ranker with these weights."""
    tr.export.write(linear_model(NAMES, np.array(weights), fill=np.zeros(4)), tmp_path / "model.json", "json")
    return "model.json"


class Done(NamedTuple):
    """What a command printed, on both streams."""

    exit_code: int
    output: str


@pytest.fixture
def command(capsys):
    """Run a command, whatever comes of it."""

    def run(*args):
        code, out, err = call(capsys, *args)
        return Done(code, out + err)

    return run


@pytest.fixture
def pushed(command):
    """Push a file into an engine as one model of one feature set."""

    def run(engine, *more, file="model.json"):
        where = ["--url", engine.address, "--feature-set", "products", "--table", "features.csv"]
        return command("push", file, "--to", "elasticsearch", *where, "--name", "products", "--version", "1", *more)

    return run


def changes(engine):
    return [entry for entry in engine.log if entry[0] != "GET" and not entry[1].endswith("_search")]


def test_a_model_is_uploaded_compared_and_the_second_time_left_alone(engine, tmp_path, pushed):
    saved(tmp_path)
    first = pushed(engine, "--index", "products", "--words", "garden lamp tea", "--words", "oak")
    assert first.exit_code == 0, first.output
    assert "created the feature set products with 4 features" in first.output
    assert "uploaded the model products_1" in first.output
    assert "the live scores of 100 documents are the file's" in first.output
    assert '"model": "products_1"' in first.output
    done = changes(engine)
    again = pushed(engine, "--index", "products", "--words", "oak")
    assert again.exit_code == 0
    assert "is there already, and is this one" in again.output
    assert changes(engine) == done


def test_a_dry_run_changes_nothing(engine, tmp_path, pushed):
    saved(tmp_path)
    done = pushed(engine, "--dry-run", "--index", "products", "--words", "oak")
    assert done.exit_code == 0, done.output
    assert "would create the feature set products" in done.output
    assert "would upload the model products_1" in done.output
    assert "not verified" in done.output
    assert not changes(engine)


def test_live_scores_that_differ_are_told(engine, tmp_path, pushed):
    saved(tmp_path)
    engine.wrong = True
    done = pushed(engine, "--index", "products", "--words", "oak")
    assert done.exit_code == 1
    assert "THE LIVE SCORES DIFFER: 50 of 50 documents" in done.output


def test_what_the_engine_has_otherwise_is_refused(engine, tmp_path, pushed):
    saved(tmp_path)
    assert pushed(engine).exit_code == 0
    saved(tmp_path, (0.5, 0.25, 0.001, 4.0))
    done = pushed(engine)
    assert done.exit_code == 2
    assert "another model by the name 'products_1'" in done.output
    (tmp_path / "features.csv").write_text(TABLE.replace("match,body", "phrase,body"))
    done = pushed(engine)
    assert done.exit_code == 2
    assert "the feature 'body_bm25' of 'products' is another in the engine" in done.output
    other = linear_model((*NAMES, "pagerank"), np.ones(5), fill=np.zeros(5))
    tr.export.write(other, tmp_path / "wide.json", "json")
    done = pushed(engine, file="wide.json")
    assert "has no feature 'pagerank', which the model needs" in done.output


def test_features_are_pulled_twice_the_same(engine, tmp_path, pushed, command):
    saved(tmp_path)
    assert pushed(engine).exit_code == 0
    rows = [(q, d, g) for q, docs in list(engine.judged.items())[:8] for d, g in docs.items()]
    (tmp_path / "qrels.txt").write_text("".join(f"{q} 0 {d} {g}\n" for q, d, g in rows))
    names = {q: words for words, q in engine.query.items()}
    (tmp_path / "queries.tsv").write_text("".join(f"{q}\t{names[q]}\n" for q in dict.fromkeys(q for q, _, _ in rows)))
    pull = ["pull-features", "queries.tsv", "--qrels", "qrels.txt", "--from", "elasticsearch", "--url"]
    more = ["--index", "products", "--feature-set", "products", "--missing", "zero"]
    for name in ("a.parquet", "b.parquet"):
        done = command(*pull, engine.address, *more, "-o", name)
        assert done.exit_code == 0, done.output
    first, second = tr.read("a.parquet"), tr.read("b.parquet")
    assert first.X.tolist() == second.X.tolist()
    assert first.n_queries == 8
    for row, query, document, grade in zip(first.X, first.qid, first.doc_ids, first.y, strict=True):
        assert grade == engine.judged[str(query)][document]
        found = engine.values(names[str(query)], document)
        assert row.tolist() == pytest.approx([found.get(name, 0.0) for name in first.feature_names])


def test_keys_come_from_the_environment_and_are_never_shown(engine, tmp_path, pushed, monkeypatch):
    saved(tmp_path)
    monkeypatch.setenv("TOPRANK_ENGINE_KEY", "sEcReT")
    done = pushed(engine)
    assert set(engine.headers) == {"ApiKey sEcReT"}
    assert "sEcReT" not in done.output
    assert "sEcReT" not in repr(EngineClient(engine.address, credentials()))
    saved(tmp_path, (1.0, 1.0, 1.0, 1.0))
    assert "sEcReT" not in pushed(engine).output
    monkeypatch.setenv("TOPRANK_ENGINE_USER", "me")
    assert "both set" in pushed(engine).output
    monkeypatch.delenv("TOPRANK_ENGINE_KEY")
    monkeypatch.setenv("TOPRANK_ENGINE_PASSWORD", "pw")
    pushed(engine)
    assert engine.headers[-1] == "Basic bWU6cHc="


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ftp://localhost", "begins with http"),
        ("localhost:9200", "begins with http"),
        ("http://me:pw@localhost:9200", "keep keys out of the address"),
        ("http://127.0.0.1:9", "no answer"),
    ],
)
def test_addresses_that_do_not_answer_are_one_line(engine, tmp_path, pushed, url, problem):
    saved(tmp_path)
    engine.address = url
    done = pushed(engine)
    assert done.exit_code == 2
    assert problem in done.output
    assert done.output.count("\n") == 1
    assert "pw" not in done.output


def test_an_engine_without_the_plugin_says_so_in_one_line(engine):
    model = linear_model(NAMES, np.ones(4), fill=np.zeros(4))
    with pytest.raises(InputError, match=r"say what is in it \(--table TABLE\)"):
        push(model, EngineClient(engine.address), "opensearch", settings=Settings(feature_set="products"))
    with pytest.raises(InputError, match=r"POST nowhere at 127\.0\.0\.1.*refused it"):
        EngineClient(engine.address).must("POST", "nowhere", {})
