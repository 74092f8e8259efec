"""What an engine makes of an exported file, by an oracle: rows in, scores out."""

import math

import toprank as tr
from tests.oracles import export as linear_oracle
from tests.oracles import export_trees as tree_oracle

RESTATED = tuple(to for to in tr.export.TARGETS if to not in ("onnx", "sql", "lucene-expression"))
"""Targets whose arithmetic is restated; the others are run, in tests of their own."""


def oracle_scores(oracle, to, path, names, rows):
    """Scores of the rows by the oracle's restatement of the target; RankLib text is one format for all models."""
    text, names = path.read_text(encoding="utf-8"), list(names)
    if to in ("elasticsearch", "opensearch"):
        return [oracle.plugin(text, names, row) for row in rows]
    if to == "solr":
        features = path.with_name(path.name + ".features.json").read_text(encoding="utf-8")
        return [oracle.solr(text, features, names, row) for row in rows]
    if to == "vespa":
        return [oracle.vespa(text, [f"attribute({name})" for name in names], row) for row in rows]
    if to == "ranklib":
        read = tree_oracle.ranklib if text.startswith("## LambdaMART") else linear_oracle.ranklib
        return [read(text, row) for row in rows]
    return [oracle.own_json(text, names, row) for row in rows]


def as_rows(X):
    """Rows as lists, None where a value is missing."""
    return [[None if math.isnan(x) else x for x in row] for row in X.tolist()]
