"""SQL: the score as one expression where the features are, and the rank in each query.

Per dialect only names, numbers and gaps differ. Numbers have an exponent, since 0.3 is a DECIMAL in many dialects, or
are cast from text. Sums are balanced, since SQLite and DuckDB refuse expressions nested deeper than 1,000. Columns are
cast to float64 first: a column may hold text, as SQLite's `.import` makes them, which would be compared letter by
letter. NaN, which sorts above all numbers in some dialects, becomes NULL before the missing-value policy decides, and
so does an empty text where a cast would make it 0. Prepared features are stages of WITH: a window function per query
cannot look into another one.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import get_args

import numpy as np

from .._version import __version__
from ..data.validation import check_choice
from ..errors import InputError
from ..model import LinearFunction, Model
from .curves import curves_of
from .model_trees import ModelSplit, Tree, forest_of, used_features, used_note
from .replicas import Replica
from .sql_engines import SqlReplica, run_duckdb, runner_of
from .targets import Artifact, Form, Settings, Target, check_names, model_name

HEAD = "-- toprank-sql: "
_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?e[-+]?[0-9]+"
_LARGE = 1_000_000


@dataclass(frozen=True)
class Dialect:
    """How one kind of SQL writes names, numbers and a column as a float64 number or NULL; `{}` is what is written."""

    name: str
    value: str
    quote: str = '"'
    escapes: tuple[tuple[str, str], ...] = (('"', '""'),)
    number: str = "{}"
    unfit: str = ""
    """Characters that a column cannot have in its name."""
    longest: int = 10_000
    """Bytes of a name that count."""

    def identifier(self, name: str) -> str:
        """Return a quoted name."""
        check_names([name], f"sql for {self.name}", bad=self.unfit)
        if len(name.encode()) > self.longest:
            raise InputError(f"the name {name!r} is longer than the {self.longest} bytes that {self.name} looks at")
        for character, escape in self.escapes:
            name = name.replace(character, escape)
        return f"{self.quote}{name}{self.quote}"

    def literal(self, value: float) -> str:
        """Return a number that the dialect reads as the same float64 number."""
        text = repr(value) if "e" in repr(value) else f"{value!r}e0"
        return exact_in_sqlite(value, text) if self.name == "sqlite" else self.number.format(text)

    def column(self, name: str) -> str:
        """Return a column as a float64 number, NULL where it is NaN."""
        return self.value.replace("{}", self.identifier(name))

    def in_sqlite(self, text: str) -> str:
        """Return SQL of this dialect, as it is written here, for SQLite."""
        quoted = rf"{self.quote}(?:[^{self.quote}\\]|\\.|{self.quote}{self.quote})+{self.quote}"
        number, value = re.escape(self.number), re.escape(self.value)
        text = re.sub(number.replace(r"\{\}", f"({_NUMBER})"), r"\1", text)
        once = value.replace(r"\{\}", f"({quoted})", 1)
        text = re.sub(once.replace(r"\{\}", r"\1"), DIALECTS["sqlite"].value.replace("{}", r"\1"), text)
        return re.sub(quoted, lambda found: self._renamed(found[0][1:-1]), text)

    def _renamed(self, name: str) -> str:
        for character, escape in reversed(self.escapes):
            name = name.replace(escape, character)
        return '"' + name.replace('"', '""') + '"'


_BACKTICK = {"quote": "`", "escapes": (("`", "``"),)}
_CLICKHOUSE = "CAST({} AS Nullable(Float64))"
DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect("duckdb", "NULLIF(CAST({} AS DOUBLE), CAST('NaN' AS DOUBLE))"),
        Dialect("sqlite", "CAST(NULLIF(NULLIF({}, ''), 'NaN') AS REAL)"),
        Dialect("postgres", "NULLIF({}::float8, 'NaN'::float8)", number="'{}'::float8", longest=63),
        Dialect(
            "clickhouse",
            f"CASE WHEN isNaN({_CLICKHOUSE}) THEN NULL ELSE {_CLICKHOUSE} END",
            escapes=(("\\", "\\\\"), ('"', '\\"')),
        ),
        Dialect(
            "bigquery",
            "IF(IS_NAN(CAST({} AS FLOAT64)), NULL, CAST({} AS FLOAT64))",
            quote="`",
            escapes=(),
            unfit='!"$()*,./;?@[\\]^`{}~',
        ),
        Dialect("snowflake", "NULLIF({}::float, 'NaN'::float)", number="'{}'::float"),
        # NULLIF would compare the number 0 with '' as numbers, which are equal.
        Dialect(
            "mysql",
            "CAST(IF(CAST({} AS CHAR) IN ('', 'NaN'), NULL, {}) AS DOUBLE)",
            longest=64,
            **_BACKTICK,  # type: ignore[arg-type]
        ),
        Dialect("spark", "NULLIF(CAST({} AS DOUBLE), CAST('NaN' AS DOUBLE))", number="{}D", **_BACKTICK),  # type: ignore[arg-type]
    )
}


@cache
def _sqlite() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", check_same_thread=False)


def exact_in_sqlite(value: float, text: str) -> str:
    """Return the text, or a quotient of whole numbers where SQLite, which rounds its own way, reads another number."""
    if _sqlite().execute(f"SELECT {text}").fetchone()[0] == value:
        return text
    numerator, denominator = value.as_integer_ratio()
    quotient = f"({numerator}e0 / {denominator}e0)"
    return quotient if _sqlite().execute(f"SELECT {quotient}").fetchone()[0] == value else text


class Sql(Target):
    """SQL of several dialects, as a SELECT, a view or an expression."""

    name = "sql"
    settings = frozenset({"dialect", "form", "table", "qid", "doc_id", "shift"})
    prepares = frozenset({"log", "query", "standard", "+rank", "+minmax", "+standard", "ramps", "steps"})
    marks = re.compile(rb"\A.*\n" + HEAD.encode())
    file = "SQL as toprank writes it"

    def encode(self, model: Model, settings: Settings) -> Artifact:
        """Return the SQL."""
        check_choice(tuple(DIALECTS), dialect=settings.dialect)
        check_choice(get_args(Form), form=settings.form)
        writer = _Writer(model, DIALECTS[settings.dialect], settings)
        name = model_name(model, settings)
        about = {
            "dialect": settings.dialect,
            "form": settings.form,
            "features": [model.names[j] for j in writer.used],
            "table": settings.table,
            "qid": settings.qid,
            "id": settings.doc_id,
        }
        lines = [
            f"-- {name}, written by toprank {__version__} from {model.source}. In the model, {model.rule.words}.",
            f"{HEAD}{json.dumps(about)}",
            writer.statement(name),
        ]
        text = "\n".join(lines) + ("\n" if settings.form == "expression" else ";\n")
        return Artifact(text.encode(), name, tuple(writer.notes(len(text))))

    def decode(self, content: bytes, path: str, companions: Mapping[str, bytes]) -> Replica:
        """Return the SQL as an engine runs it: its own where it can be had in Python, else SQLite in its place."""
        _, line, body = content.decode().split("\n", 2)
        about = json.loads(line.removeprefix(HEAD))
        dialect = DIALECTS[about["dialect"]]
        names = tuple(map(str, about["features"]))
        if about["form"] != "expression" and not re.match(r"WITH |CREATE VIEW ", body):
            raise ValueError("it begins with neither WITH nor CREATE VIEW")
        body = body.partition("\n")[2] if body.startswith("CREATE VIEW ") else body
        table, qid, doc_id = (str(about[key]) for key in ("table", "qid", "id"))
        whole = ".".join(map(dialect.identifier, table.split(".")))
        table = table.split(".")[-1]  # a schema is not at hand
        if about["form"] == "expression":
            body = f"SELECT {dialect.identifier(doc_id)}, {body} AS score FROM {dialect.identifier(table)}"
        else:
            body = body.replace(f"FROM {whole}\n", f"FROM {dialect.identifier(table)}\n")
        runner, how = runner_of(dialect.name)
        run = body if runner is run_duckdb else dialect.in_sqlite(body)
        return SqlReplica(names, run.rstrip().rstrip(";"), table, (qid, doc_id), runner, path, engine=how)


class Terms:
    """A model as terms of a sum: the features that count, its preparations, its curves or trees where it has any."""

    larger, above = "", ""
    """How max(x, t) and [x > t] are written."""

    def __init__(self, model: Model, who: str) -> None:
        self.model = model
        self.steps = tuple(word for step in model.inputs.steps if not step.widens for word in step.words)
        """What is put in the place of features; copies and knots behind it are `curves`."""
        self.curves = curves_of(model, who) if model.inputs.widens else []
        self.roots: list[Tree] = []
        if model.inputs.widens:
            self.used = sorted({curve.feature for curve in self.curves})
        elif isinstance(self.model.function, LinearFunction):
            self.used = np.flatnonzero(self.model.weights).tolist()
        else:
            self.roots = forest_of(self.model)
            self.used = used_features(self.roots)

    def total(
        self, literal: Callable[[float], str], value: Callable[[int], str], tree: Callable[[Tree], str], shift: float
    ) -> list[str]:
        """Return the terms as text: weight times value or a tree each, and a constant where there is one."""
        if self.model.inputs.widens:
            shapes = (literal, self.larger, self.above)
            terms = [term for c in self.curves for term in c.terms(self.view(value(c.feature), c.view), *shapes)]
        elif isinstance(self.model.function, LinearFunction):
            terms = [f"{literal(float(self.model.weights[j]))} * {value(j)}" for j in self.used]
        else:
            terms = [tree(root) for root in self.roots]
        constant = self.model.offset + shift
        return [*terms, literal(constant)] if constant or not terms else terms

    def view(self, value: str, view: str) -> str:
        """Return a view of a feature; its own is the feature."""
        return f"{view}_{value}" if view else value


class _Writer(Terms):
    """One model in one dialect."""

    def __init__(self, model: Model, dialect: Dialect, settings: Settings) -> None:
        super().__init__(model, "sql")
        self.dialect, self.settings = dialect, settings
        self.above = f"CASE WHEN {{x}} > {{t}} THEN {dialect.literal(1.0)} ELSE {dialect.literal(0.0)} END"
        self.larger = "CASE WHEN {x} > {t} THEN {x} ELSE {t} END"
        self.per_query = model.inputs.needs_queries
        keys = (settings.qid, settings.doc_id)
        clash = next((key for key in keys if key.lower() in ("score", "rank")), None)
        if clash is not None:
            raise InputError(f"the column {clash!r} is what the SQL computes: rename the column of ids or queries")
        columns = [name.lower() for name in (*keys, *(model.names[j] for j in self.used))]
        twice = next((name for i, name in enumerate(columns[:2]) if name in columns[i + 1 :]), None)
        if twice is not None:
            raise InputError(
                f"the column {twice!r} is asked for twice: queries (--qid), ids (--doc-id) and features need their own"
            )
        if len({name.lower() for name in model.names}) < len(model.names):
            raise InputError("two features differ only in upper and lower case, which SQL cannot tell: rename one")

    def statement(self, name: str) -> str:
        """Return the expression, or WITH stages and a SELECT, or that as a view."""
        if self.settings.form == "expression":
            if self.per_query:
                raise InputError(
                    "features prepared per query are no expression of one row: write a select or a view (--form)"
                )
            return self._score([self._prepared_inline(j) for j in self.used])
        q, d = (self.dialect.identifier(key) for key in (self.settings.qid, self.settings.doc_id))
        keys = f"{q}, {d}"
        table = ".".join(map(self.dialect.identifier, self.settings.table.split(".")))
        stages = [{self._alias(0, j): self._value(j) for j in self.used}]
        for form in (form for step in self.steps for form in _STAGES[step]):
            before, number = list(stages[-1]), len(stages)
            stages.append(
                {self._alias(number, j): self._stage(form, x, q) for j, x in zip(self.used, before, strict=True)}
            )
        own = dict(zip(self.used, stages[-1], strict=True))
        stages += self._views(own, q)
        parts, source = [], table
        for number, columns in enumerate(stages):
            named = [f"{column} AS {alias}" for alias, column in columns.items()]
            parts.append(f"toprank_{number} AS (\n  SELECT {', '.join([keys, *named])}\n  FROM {source}\n)")
            source = f"toprank_{number}"
        score = self._score(list(own.values()))
        parts.append(f"toprank_scored AS (\n  SELECT {keys}, {score} AS score\n  FROM {source}\n)")
        order = f"PARTITION BY {q} ORDER BY score IS NULL, score DESC, {d}"
        select = f"SELECT {keys}, score, ROW_NUMBER() OVER ({order}) AS {self._rank}\nFROM toprank_scored"
        body = f"WITH {', '.join(parts)}\n{select}"
        if self.settings.form == "view":
            return f"CREATE VIEW {self.dialect.identifier(name)} AS\n{body}"
        return f"{body}\nORDER BY {q}, {self._rank}"

    @property
    def _rank(self) -> str:
        return self.dialect.identifier("rank")  # a word of the language in some dialects

    def _stage(self, form: str, x: str, q: str) -> str:
        over = f"OVER (PARTITION BY {q})"
        windows = {"low": f"MIN({x})", "high": f"MAX({x})", "mean": f"AVG({x})", "square": f"AVG({x} * {x})"}
        windows |= {"count": "COUNT(*)"}
        places = {"up": f"RANK() OVER (PARTITION BY {q} ORDER BY {x})"}
        places["down"] = f"RANK() OVER (PARTITION BY {q} ORDER BY {x} DESC)"
        numbers = {
            "one": self.dialect.literal(1.0),
            "zero": self.dialect.literal(0.0),
            "two": self.dialect.literal(2.0),
        }
        return form.format(x=x, **numbers, **places, **{name: f"{window} {over}" for name, window in windows.items()})

    def _alias(self, stage: int, feature: int) -> str:
        return f"x{stage}_{feature + 1}"

    def _value(self, feature: int) -> str:
        """Return a feature with its gaps filled; those of trees are the splits' business."""
        column, fill = self.dialect.column(self.model.names[feature]), self.model.rule.fill_value(feature)
        if fill is None or (self.roots and not self.steps):
            return column
        return f"COALESCE({column}, {self.dialect.literal(fill)})"

    def _views(self, own: Mapping[int, str], q: str) -> list[dict[str, str]]:
        """Return stages that put the views of features beside them: one, or two where some are standardised."""
        wanted = [(curve.feature, curve.view) for curve in self.curves if curve.view]
        if not wanted:
            return []
        kept = {name: name for name in own.values()}
        first = {f"{view}_{own[j]}": self._stage(_VIEWS[view], own[j], q) for j, view in wanted}
        stages = [kept | first]
        if any(view == "standard" for _, view in wanted):
            last = {name: self._stage(_STAGES["standard"][1], name, q) for name in first if name.startswith("standard")}
            stages.append({name: last.get(name, name) for name in stages[0]})
        return stages

    def _prepared_inline(self, feature: int) -> str:
        value = self._value(feature)
        for step in self.steps:
            value = self._stage(_STAGES[step][0], value, "")
        return f"({value})" if self.steps else value

    def _score(self, values: Sequence[str]) -> str:
        column = dict(zip(self.used, values, strict=True))
        tree = partial(self._case, column=column)
        return balanced(self.total(self.dialect.literal, column.__getitem__, tree, self.settings.shift or 0.0))

    def _case(self, node: Tree, column: Mapping[int, str]) -> str:
        """Return a tree as nested CASEs; a comparison with NULL is not true, so ELSE is where missing values go."""
        if not isinstance(node, ModelSplit):
            return self.dialect.literal(node)
        low, high = self._case(node.low, column), self._case(node.high, column)
        sign, first, second = (">", high, low) if node.missing_low else ("<=", low, high)
        test = f"{column[node.feature]} {sign} {self.dialect.literal(node.threshold)}"
        return f"CASE WHEN {test} THEN {first} ELSE {second} END"

    def notes(self, size: int) -> list[str]:
        """Say what to know."""
        keys = f"{self.settings.qid!r} and {self.settings.doc_id!r}"
        table = f"the table {self.settings.table!r}"
        needs = "" if self.settings.form == "expression" else f", {keys}"
        notes = [f"{table} has a column for each of the {len(self.used)} features that count, by their names{needs}"]
        if self.roots:
            notes.append(used_note(self.model, self.roots))
        settled = self.model.rule.fill is not None or self.model.rule.native
        how = "NULL and NaN are such values" if settled else self._refused()
        notes.append(f"{self.model.rule.words}: {how}")
        if self.dialect.name in ("postgres", "snowflake"):
            notes.append("names are quoted, so a table made without quotes has to be asked for in the case it keeps")
        if any(step != "query" for step in self.steps) and self.dialect.name == "sqlite":
            notes.append("it needs SQLite's mathematical functions (LN, SQRT), which most builds have")
        if size > _LARGE and self.dialect.name == "bigquery":
            notes.append(f"the text has {size / _LARGE:.1f} MB, and BigQuery takes 1 MB: take a smaller model")
        return notes

    def _refused(self) -> str:
        return "NULL and NaN give no score, and stand last" if not self.roots else "make sure that there are none"


_STAGES = {
    "log": ("CASE WHEN {x} < {zero} THEN -LN({one} - {x}) ELSE LN({one} + {x}) END",),
    "query": ("CASE WHEN {high} > {low} THEN ({x} - {low}) / ({high} - {low}) ELSE {x} - {x} END",),
    "standard": (
        "{x} - CASE WHEN {high} > {low} THEN {mean} ELSE {low} END",
        "CASE WHEN {square} > {zero} THEN {x} / SQRT({square}) ELSE {x} END",
    ),
}
"""Each preparation as stages over the columns before it."""

_VIEWS = {
    "rank": "CASE WHEN {high} > {low} AND {x} IS NOT NULL "
    "THEN ({up} - {down} + {count} - {one}) / ({two} * ({count} - {one})) ELSE {x} - {x} END",
    "minmax": _STAGES["query"][0],
    "standard": _STAGES["standard"][0],
}
"""Views of a feature beside it: among n documents the places from either end, u and d, give (u − d + n − 1)/(2(n − 1)).
"""


def balanced(terms: Sequence[str], plus: str = "\n + ") -> str:
    """Return the sum of the terms, halved until one is left.

    >>> balanced(["a", "b", "c"], " + ")
    '(a + (b + c))'
    """
    if len(terms) == 1:
        return terms[0]
    middle = len(terms) // 2
    return f"({balanced(terms[:middle], plus)}{plus}{balanced(terms[middle:], plus)})"
