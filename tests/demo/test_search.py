"""Index, features and judged queries, on a handful of documents."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import toprank as tr
from tests.oracles import bm25 as oracle
from toprank.demo.collect import Document
from toprank.demo.features import FEATURES, Candidates, Extractor
from toprank.demo.index import FIELDS, K1, B, Index, fields_of
from toprank.demo.judged import N_PARTS, Query, grades_of, judge, parts_of, queries_of
from toprank.demo.words import words

NOUNS = ("file", "row", "tree", "header", "socket", "queue")
text = st.lists(st.sampled_from([*NOUNS, "read", "write", "a", "the"]), max_size=6).map(" ".join)
documents = st.lists(
    st.builds(
        Document,
        module=st.sampled_from(["csv", "os.path", "xml.dom"]),
        path=st.sampled_from(["read_file", "Tree.row", "QueueWriter", "header"]),
        kind=st.sampled_from(["function", "class", "method"]),
        arguments=st.lists(st.sampled_from(NOUNS), max_size=2).map(tuple),
        text=text,
        summary=text,
    ),
    min_size=1,
    max_size=6,
)


def make(module: str, path: str, kind: str = "function", text: str = "", summary: str = "") -> Document:
    return Document(module, path, kind, (), text, summary)


@given(documents, text)
def test_bm25_is_the_formula(docs, query):
    index = Index.of(docs)
    fields = [fields_of(document) for document in docs]
    everywhere = [[word for field in FIELDS for word in one[field]] for one in fields]
    asked = index.queries([query])
    for field in (*FIELDS, "all"):
        chosen = everywhere if field == "all" else [one[field] for one in fields]
        ours = (asked @ index.bm25[field].T).toarray()[0]
        theirs = oracle.bm25(words(query), chosen, everywhere, K1, B)
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
        if field == "all":
            pairs = Candidates.of(index, asked, 3)
            np.testing.assert_allclose(pairs.bm25, sorted(theirs, reverse=True)[: len(pairs.bm25)], rtol=1e-12)
            assert set(pairs.document.tolist()) <= {i for i, score in enumerate(theirs) if score > 0}


def test_candidates_are_the_best_and_equals_keep_their_order():
    docs = [make("m", name) for name in ("tree", "row", "tree", "row", "tree", "file")]
    index = Index.of(docs)
    pairs = Candidates.of(index, index.queries(["tree row", "zebra", "file"]), 4)
    everywhere = [["m", document.path] for document in docs]
    expected = oracle.best(oracle.bm25(["tree", "row"], everywhere, everywhere, K1, B), 4)
    assert pairs.query.tolist() == [0, 0, 0, 0, 2]
    assert pairs.document.tolist() == [*expected, 5]


def test_the_first_sentence_is_not_indexed():
    docs = [
        make("zoo", "feed", summary="Feed the platypus daily.", text="Bring fish."),
        make("zoo", "sell", text="A ticket for the penguin house."),
    ]
    index = Index.of(docs)
    assert "platypu" not in index.vocabulary
    assert "platypus" not in index.vocabulary
    assert index.queries(["platypus daily"]).nnz == 0
    pairs = Candidates.of(index, index.queries(["Feed the platypus daily."]), 10)
    X = Extractor(index).features(["Feed the platypus daily."], index.queries(["Feed the platypus daily."]), pairs)
    without = make("zoo", "feed", summary="Something else.", text="Bring fish.")
    other = Index.of([without, docs[1]])
    asked = other.queries(["Feed the platypus daily."])
    again = Candidates.of(other, asked, 10)
    np.testing.assert_array_equal(
        Extractor(other).features(["Feed the platypus daily."], asked, again), X, "a summary changes no feature"
    )


def test_features_by_hand():
    docs = [
        make("os", "remove_tree", text="Also called from zoo."),
        make("os", "rename", text="remove nothing"),
        make("xml.dom", "Tree.walk", kind="method"),
    ]
    index = Index.of(docs)
    query = "Remove a tree"
    asked = index.queries([query])
    pairs = Candidates.of(index, asked, 10)
    rows = dict(zip(pairs.document.tolist(), Extractor(index).features([query], asked, pairs), strict=True))
    column = {name: place for place, name in enumerate(FEATURES)}
    idf = {word: index.idf[index.vocabulary[word]] for word in ("remove", "tree")}
    assert rows[0][column["query words found"]] == pytest.approx(1)
    assert rows[2][column["query words found"]] == pytest.approx(idf["tree"] / sum(idf.values()))
    assert rows[0][column["name words asked for"]] == pytest.approx(1)
    assert rows[1][column["name words asked for"]] == 0
    # ^re ren ena nam ame against ^re rem emo mov ove …: one of five
    assert rows[1][column["name letters asked for"]] == pytest.approx(1 / 5)
    assert [rows[d][column["first word in the name"]] for d in (0, 1, 2)] == [1, 0, 0]
    best_kin = {d: rows[d][column["BM25 of the best kin"]] for d in rows}
    assert best_kin == {0: rows[1][column["BM25"]], 1: rows[0][column["BM25"]], 2: 0}
    assert [rows[d][column["is a method"]] for d in (0, 1, 2)] == [0, 0, 1]
    assert [rows[d][column["module depth"]] for d in (0, 1, 2)] == [0, 0, 1]
    assert all(((row >= 0) & (row <= 1)).all() for row in rows.values())


def test_grades():
    docs = [
        make("os", "walk", summary="Walk a tree now."),
        make("os", "stat"),
        make("os", "Entry", "class"),
        make("os", "Entry.name", "method"),
        make("xml", "walk"),
    ]
    pairs = Candidates(np.array([0] * 5 + [1] * 5), np.array([0, 1, 2, 3, 4] * 2), np.ones(10))
    queries = [Query("", (0,), "os"), Query("", (3,), "os")]
    assert grades_of(queries, docs, pairs).tolist() == [2, 1, 0, 0, 0, 0, 0, 1, 2, 0]


def test_queries_are_long_enough_and_of_one_package():
    docs = [
        make("a", "f", summary="Return the name."),
        make("b", "f", summary="Return the name."),
        make("a", "g", summary="Close the old file."),
        make("a.inner", "g", summary="Close the old file."),
        make("a", "h", summary="Too short."),
        make("a", "i"),
    ]
    assert queries_of(docs) == ([Query("Close the old file.", (2, 3), "a")], 1)


@given(st.lists(st.sampled_from("abcdefghij"), min_size=1, max_size=60))
def test_packages_are_dealt_evenly(packages):
    queries = [Query("", (), package) for package in packages]
    part = parts_of(queries)
    assert set(part) == set(packages)
    filled = np.bincount([part[package] for package in packages], minlength=N_PARTS)
    largest = max(packages.count(package) for package in packages)
    assert filled.max() - filled.min() <= largest
    assert parts_of(queries[::-1]) == part, "the order of the queries decides nothing"


def library(n_packages: int) -> list[Document]:
    docs = []
    for package in range(n_packages):
        for number, noun in enumerate(NOUNS):
            name = f"p{package}"
            docs.append(
                make(name, f"{noun}_{number}", text=f"The {noun} of {name}.", summary=f"Take {noun} in {name}.")
            )
    return docs


def test_parts_share_no_package_and_no_query():
    docs = library(7)
    judged = judge(Index.of(docs), k=5)
    owner = {document.summary: document.package for document in docs}
    seen = [{owner[query] for query in part.query_ids} for part in (judged.train, judged.valid, judged.test)]
    assert all(seen)
    assert not seen[0] & seen[1]
    assert not seen[0] & seen[2]
    assert not seen[1] & seen[2]
    assert sum(part.n_queries for part in (judged.train, judged.valid, judged.test)) == len(docs)
    assert judged.test.lengths.max() == 5
    assert judged.test.feature_names == FEATURES
    truth = {document.summary: document.id for document in docs}
    hits = [truth[one.query_ids[0]] in one.doc_ids for one in judged.test]
    assert judged.recall == np.mean(hits)
    for one in judged.test:
        assert set(one.doc_ids[one.y == 2]) <= {truth[one.query_ids[0]]}


def test_too_few_packages():
    with pytest.raises(tr.InputError, match=r"3 packages cannot fill 5 parts"):
        judge(Index.of(library(3)))
