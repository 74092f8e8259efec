"""The score in the language of lucene-expressions: `script_score` of Elasticsearch and OpenSearch without a plugin.

An expression computes in float64 over `doc['field'].value`; a field without a value is 0 there, and `.empty` says so.
`script_score` rounds the score to float32 and refuses one below 0. Sums are balanced, as in SQL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec
import numpy as np

from .._typing import Floats, Ints
from ..errors import InputError
from ..model import Model
from . import model_trees
from .model_trees import ModelSplit, Tree
from .replicas import Replica, unit_roundoff
from .sql import DIALECTS, Terms, balanced
from .sql_engines import SqlReplica, run_sqlite, sqlite_engine
from .targets import Artifact, Settings, Target, check_names, listing, model_name, to_json

LONGEST = 65_535
"""Bytes of a script that the engines take by default; Java takes a method of about as many."""
_FIELD = re.compile(r"doc\['([^'\\]+)'\]\.(value|empty)")
_TOKEN = re.compile(r"\(|\)|\?|:|\|\||[^()?:|]+")


class _Script(msgspec.Struct, forbid_unknown_fields=True):
    lang: str
    source: str


class _ScriptScore(msgspec.Struct):
    script: _Script


class _Query(msgspec.Struct, forbid_unknown_fields=True):
    script_score: _ScriptScore


class _Body(msgspec.Struct):
    query: _Query


class LuceneExpression(Target):
    """Expressions of Lucene, alone or as a search with `script_score`."""

    name = "lucene-expression"
    settings = frozenset({"shift", "form"})
    prepares = frozenset({"log", "ramps", "steps"})
    marks = re.compile(rb'"lang"\s*:\s*"expression"')
    """The language of the script; an expression alone cannot be told from other text."""
    file = "an expression as toprank writes it"

    def encode(self, model: Model, settings: Settings) -> Artifact:
        """Return a search whose scores are the model's, or the expression alone."""
        if settings.form == "view":
            raise InputError("lucene-expression is a search (--form select) or an expression, not a view")
        if model.rule.native and model.inputs.steps:
            raise InputError(
                "lucene-expression cannot tell a missing value from 0 once its logarithm is taken, and the splits of "
                f'{model.source} do: fit with missing="zero" or "median", or without prepare, which trees do not need'
            )
        check_names(model.names, self.name, bad="'\\")
        name = model_name(model, settings)
        writer = _Writer(model, self.name)
        shift, shift_notes = writer.shift(settings)
        source = writer.source(shift)
        notes = [
            f"every feature is a numeric field of its name ({listing([model.names[j] for j in writer.used])})",
            "script_score rounds the score to float32; a sort by _script with the same source keeps float64",
            f"{model.rule.words}"
            + ("" if model.rule.fill is not None or model.rule.native else ", but a field without a value is 0"),
            *([model_trees.used_note(model, writer.roots)] if writer.roots else []),
            *shift_notes,
        ]
        if len(source.encode()) > LONGEST:
            notes.append(
                f"the script has {len(source.encode()):,} bytes: raise script.max_size_in_bytes (65,535), and take a "
                "smaller model where Java finds the method too large"
            )
        script = {"lang": "expression", "source": source}
        body = {"query": {"script_score": {"query": {"match": {"FIELD": "WORDS"}}, "script": script}}}
        content = (source + "\n").encode() if settings.form == "expression" else to_json(body)
        return Artifact(content, name, tuple(notes))

    def decode(self, content: bytes, path: str, companions: Mapping[str, bytes]) -> Replica:
        """Return the expression, restated for SQLite."""
        text = content.decode().strip()
        if text.startswith("{"):
            text = msgspec.json.decode(content, type=_Body).query.script_score.script.source
        names = tuple(dict.fromkeys(name for name, _ in _FIELD.findall(text)))
        statement = f"SELECT id, {_in_sqlite(text)} AS score FROM documents"
        rule = "float64, the score rounded to float32; a field without a value is 0, or as .empty says"
        return ScriptReplica(
            names,
            statement,
            "documents",
            ("query", "id"),
            run_sqlite,
            path,
            rule,
            f"restated for and {sqlite_engine()}",
        )


class ScriptReplica(SqlReplica):
    """An expression whose value becomes a float32 score."""

    last = unit_roundoff(np.float32)

    def score_rows(self, X: Floats, query: Ints | None = None) -> Floats:
        """Return the scores as script_score has them."""
        with np.errstate(over="ignore", under="ignore"):
            return super().score_rows(X, query).astype(np.float32).astype(np.float64)

    def with_text_columns(self) -> None:
        """Return nothing: the fields of an expression are numbers."""


def _in_sqlite(text: str) -> str:
    """Return an expression as SQL: c ? a : b within brackets is a CASE."""
    out: list[str] = []
    opened: list[tuple[int, bool]] = []
    for token in _TOKEN.findall(text):
        if token == "(":
            opened.append((len(out), False))
            out.append("(")
        elif token == "?":
            place, _ = opened.pop()
            opened.append((place, True))
            out[place] = "(CASE WHEN "
            out.append(" THEN ")
        elif token == ")":
            out.append(" END)" if opened.pop()[1] else ")")
        else:
            out.append({":": " ELSE ", "||": " OR "}.get(token, token))
    if opened:
        raise ValueError("a bracket is not closed")
    names = {"value": 'COALESCE("{}", 0e0)', "empty": '("{}" IS NULL)'}
    return _FIELD.sub(lambda found: names[found[2]].format(found[1].replace('"', '""')), "".join(out))


class _Writer(Terms):
    larger, above = "({x} > {t} ? {x} : {t})", "({x} > {t} ? 1e0 : 0e0)"

    def shift(self, settings: Settings) -> tuple[float, list[str]]:
        """Return what is added to every score, and what to know of it."""
        if self.roots:
            return model_trees.shift_up(self.model, self.roots, settings)
        shift = settings.shift or 0.0
        shift_notes = [model_trees.shift_note(shift)] if shift else []
        if not settings.shift:
            columns = self.model.inputs.output_labels
            negative = [columns[j] for j in np.flatnonzero(self.model.weights < 0).tolist()]
            if negative or self.model.offset < 0:
                why = f"{listing(negative)} count against a document" if negative else "the constant is below 0"
                shift_notes.append(
                    f"{model_trees.negative_note(why, '--shift-from DATA')}; script_score refuses negative scores"
                )
        return shift, shift_notes

    def source(self, shift: float) -> str:
        """Return the expression."""
        return balanced(self.total(_number, self._value, self._choice, shift), " + ")

    def _value(self, feature: int) -> str:
        field, fill = f"doc['{self.model.names[feature]}']", self.model.rule.fill_value(feature)
        value = f"{field}.value"
        if fill and not (self.roots and not self.steps):
            value = f"({field}.empty ? {_number(fill)} : {value})"
        for _ in self.steps:
            value = f"({value} < 0e0 ? -ln(1e0 - {value}) : ln(1e0 + {value}))"
        return value

    def _choice(self, node: Tree) -> str:
        """Return a tree as choices; a missing value is 0, and where that goes the wrong way `.empty` decides."""
        if not isinstance(node, ModelSplit):
            return _number(node)
        low, high = self._choice(node.low), self._choice(node.high)
        sign, first, second = ("<=", low, high) if node.missing_low else (">", high, low)
        test = f"{self._value(node.feature)} {sign} {_number(node.threshold)}"
        if node.missing_low != (node.threshold >= 0) and not self.steps:
            test = f"doc['{self.model.names[node.feature]}'].empty || {test}"
        return f"({test} ? {first} : {second})"


def _number(value: float) -> str:
    return DIALECTS["duckdb"].literal(value)
