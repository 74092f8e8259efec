"""To and from search engines: `features`, `read-logs`, `export`, and `verify-export`, the proof that ranks stay."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import click

from .._files import open_stream
from ..errors import InputError
from ._common import answer, busy, check_outputs, read_for, show, write_text
from ._options import COLUMNS, JSON, command, option
from ._options import MISSING as DATA_MISSING

FEATURES = option(
    "Names of the features in the engine: a,b,c or a file with one name a line (or a JSON list).", metavar="NAMES"
)
MISSING = option(
    "Trees of other packages: missing cells are 0 (zero), or there are none (error); median and indicator are learned "
    "in fit.  [default: as the splits say]",
    metavar="RULE",
)


@command()
def export(
    model: str,
    target: str = option(
        "elasticsearch, opensearch, solr, vespa, onnx, ranklib, sql, lucene-expression or json.",
        "--to",
        required=True,
        metavar="TARGET",
    ),
    output: str = option("Where to write; - for standard output.", "-o", "--output", required=True),
    features: str | None = FEATURES,
    name: str | None = option("Name of the model.  [default: the ranker's]"),
    version: str | None = option("Stands behind the name, since engines do not overwrite models.  [default: a hash]"),
    feature_set: str | None = option("Feature set of the model (Elasticsearch, OpenSearch)."),
    store: str | None = option("Feature store (Elasticsearch, OpenSearch, Solr)."),
    missing: Literal["error", "zero", "median", "indicator"] | None = MISSING,
    shift: float | None = option("Add this to every score; 0 keeps scores as they are."),
    shift_from: str | None = option("Add what lifts every score on DATA above 0.", metavar="DATA"),
    normalizers: bool = option("Write a pipeline's scalers as the engine's normalisers."),
    mapping: tuple[str, ...] = option(
        "Vespa: the rank feature behind a name; repeatable.  [default: attribute(NAME)]",
        "--map",
        metavar="NAME=EXPRESSION",
    ),
    phase: Literal["first", "second"] = option("Vespa: the phase that computes the score.", default="first"),
    dialect: str | None = option(
        "SQL: duckdb, sqlite, postgres, clickhouse, bigquery, snowflake, mysql or spark.  [default: duckdb]"
    ),
    form: str | None = option("SQL: select, view or expression; Lucene: select or expression.  [default: select]"),
    table: str | None = option("SQL: the table with a column for each feature.  [default: documents]"),
    qid: str = option("Column with the query id, in the table of SQL and in DATA.", default="query"),
    doc_id: str | None = option(
        "Column with the document id.  [default: id in the table of SQL; doc_id, if there, in DATA]"
    ),
    columns: dict[str, Any] = COLUMNS,
    as_json: bool = JSON,
) -> None:
    """Write a saved model for a search engine or a database: any linear ranker, RankBoost, or boosted trees.

    MODEL is a model file, a pipeline written with toprank.export.write(pipeline, FILE, "json"), or what LightGBM
    (text), XGBoost (JSON, UBJSON) or CatBoost (JSON) saved.

    \b
    Examples: toprank export model.json --to elasticsearch --feature-set movies -o es.json
              toprank export model.json --to vespa --map 'title=bm25(title)' -o rank.profile
              toprank export lightgbm.txt --to solr -o solr.json
              toprank export model.json --to sql --dialect sqlite --table docs -o - | sqlite3 docs.db
    """
    from .. import export as job
    from ..export import writing
    from ..export.targets import Settings

    if shift is not None and shift_from is not None:
        raise InputError("--shift and --shift-from say the same thing twice: give one of them")
    check_outputs([output], [model, shift_from, features])
    names = None if features is None else _names(features)
    known = job.fold(model, missing=missing)
    if shift_from is not None:
        shift = job.shift_for(known, read_for(known, shift_from, {**columns, "qid": qid, "doc_id": doc_id}))
    given: dict[str, Any] = {"dialect": dialect, "form": form, "table": table, "doc_id": doc_id}
    if target == "sql":
        given["qid"] = qid
    settings = Settings(name, version, store, feature_set, shift, normalizers, _expressions(mapping), phase)
    settings = replace(settings, **{key: value for key, value in given.items() if value is not None})
    done, artifact = writing.render(known, target, features=names, settings=settings)
    if output == "-":
        if as_json:
            raise InputError("--json and -o - would mix on standard output: write the model to a file")
        with open_stream(output) as out:
            out.write(artifact.content)
        show(str(done), err=True)
        return
    done = writing.save(done, artifact, output)
    answer(as_json, done.to_dict(), str(done))


@command()
def verify_export(
    model: str,
    file: str,
    data: str,
    target: str | None = option("The target of FILE.  [default: as FILE looks]", "--to", metavar="TARGET"),
    top: int = option("How many documents at the top to compare.", default=10, type=click.IntRange(1)),
    gaps: Literal["split", "right", "zero"] | None = option(
        "Elasticsearch, OpenSearch: what your version of the plugin does in trees with a feature that does not match: "
        "follow `missing`, go right, or take 0 (before 2024).  [default: split]"
    ),
    features: str | None = FEATURES,
    missing: Literal["error", "zero", "median", "indicator"] | None = MISSING,
    columns: dict[str, Any] = COLUMNS,
    as_json: bool = JSON,
) -> int:
    """Check that an exported model ranks DATA as the saved model does.

    FILE is read back and scored with the engine's own arithmetic and missing-value rule (ONNX: by onnxruntime). Exit
    code 1 if the rankings differ by more than rounding explains, or if rounding ties too many documents.

    Example: toprank verify-export model.json es.json test.txt
    """
    from .. import export as job

    known, names = job.fold(model, missing=missing), None if features is None else _names(features)
    named = known if names is None or known.inputs.names is not None else job.fold(known, names)
    queries = read_for(named, data, columns)
    with busy("scoring"):
        result = job.verify(known, file, queries, to=target, top=top, features=names, gaps=gaps)
    answer(as_json, result.to_dict(), str(result))
    return 0 if result.agrees else 1


@command()
def features(
    table: str,
    engine: Literal["elasticsearch", "opensearch", "solr"] = option(
        "The engine that computes the features.", "--for", required=True
    ),
    feature_set: str = option("Name of the feature set (Solr: store).", default="features"),
    store: str | None = option("Feature store.  [default: the engine's own]"),
    output: str | None = option(
        "Write all as JSON: requests, and the search that logs.  [default: print]", "-o", "--output"
    ),
    as_json: bool = JSON,
) -> None:
    """Write what defines features in a search engine, and the search that logs them.

    TABLE is CSV with the columns name, kind and field. Kinds: match (score of the words in a text field), phrase (of
    the words as a phrase), field (the number in a field), first_pass (the score of the search itself, in Solr).

    \b
    Example: toprank features features.csv --for elasticsearch --feature-set movies
    """
    from .. import interop

    check_outputs([output], [table])
    made = interop.feature_set(interop.read_features(table), engine, name=feature_set, store=store)
    if output is not None:
        write_text(output, json.dumps(made.to_dict(), indent=2, ensure_ascii=False) + "\n")
    else:
        answer(as_json, made.to_dict(), str(made))


@command()
def read_logs(
    answers: str,
    qrels: str | None = option("TREC judgements; what they do not name has grade 0."),
    missing: Literal["error", "zero", "median", "indicator"] = DATA_MISSING,
    id_field: str = option("Solr's field of document ids.", default="id"),
    output: str = option(
        "Where to write the data set: .parquet, a folder/, or LETOR text.", "-o", "--output", required=True
    ),
    as_json: bool = JSON,
) -> None:
    """Read features that a search engine logged into a data set.

    ANSWERS has one JSON object per line: {"query": ID, "answer": what Elasticsearch, OpenSearch or Solr answered}. A
    feature that does not match is a missing cell.

    \b
    Example: toprank read-logs answers.jsonl --qrels judgements.txt --missing zero -o train.parquet
    """
    from ..data.files import write
    from ..interop import read_ltr_logs
    from ..model.missing import fill_missing

    check_outputs([output], [answers, qrels])
    with busy(f"reading {answers}"):
        kept: Literal["error", "keep"] = "error" if missing == "error" else "keep"
        data = fill_missing(read_ltr_logs(answers, qrels, missing=kept, id_field=id_field), missing)
    write(data, output)
    counts = {"queries": data.n_queries, "documents": data.n_docs, "features": list(data.feature_names or ())}
    answer(as_json, {"file": output, **counts}, f"wrote {output}: {data}")


def _names(text: str) -> list[str]:
    """Return names from a file, a JSON list in a file, or a,b,c."""
    source = Path(text)
    try:
        is_file = source.is_file()
    except OSError:  # a list of names too long for a path
        is_file = False
    if not is_file:
        return [name.strip() for name in text.split(",")]
    try:
        content = source.read_text(encoding="utf-8")
        if content.lstrip().startswith("["):
            return [str(name) for name in json.loads(content)]
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"{source}: not a list of names: {error}") from None
    return [line.strip() for line in content.splitlines() if line.strip()]


def _expressions(mapping: tuple[str, ...]) -> dict[str, str]:
    pairs = [text.partition("=") for text in mapping]
    for name, sign, expression in pairs:
        if not (name and sign and expression):
            raise InputError(f"--map {name}{sign}{expression}: write NAME=EXPRESSION")
    return {name: expression for name, _, expression in pairs}
