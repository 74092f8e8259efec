"""To and from search engines: `features`, `read-logs`, `export`, and `verify-export`, the proof that ranks stay."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import click

from .._files import open_stream
from ..errors import InputError
from ._common import as_wide, busy, json_option, print_json, read, show, table_options, write_text

engine_table_options = partial(table_options, but="features")

features_option = click.option(
    "--features",
    metavar="NAMES",
    help="Names of the features in the engine: a,b,c or a file with one name a line (or a JSON list).",
)


missing_option = click.option(
    "--missing",
    type=click.Choice(["zero", "refuse"]),
    help="Trees of other packages: missing values are 0, or there are none.  [default: as the splits say]",
)


@click.command("export")
@click.argument("model")
@click.option(
    "--to",
    "target",
    required=True,
    metavar="TARGET",
    help="elasticsearch, opensearch, solr, vespa, onnx, ranklib, sql, lucene-expression or json.",
)
@click.option("-o", "--output", required=True, help="Where to write; - for standard output.")
@features_option
@click.option("--name", help="Name of the model.  [default: the ranker's]")
@click.option("--version", help="Goes behind the name: engines do not overwrite models.  [default: a hash]")
@click.option("--feature-set", help="Feature set of the model (Elasticsearch, OpenSearch).")
@click.option("--store", help="Feature store (Elasticsearch, OpenSearch, Solr).")
@missing_option
@click.option("--shift", type=float, help="Add this to every score; 0 keeps scores as they are.")
@click.option("--shift-from", metavar="DATA", help="Add what lifts every score on DATA above 0.")
@click.option("--normalizers", is_flag=True, help="Write a pipeline's scalers as the engine's normalisers.")
@click.option(
    "--map",
    "mapping",
    multiple=True,
    metavar="NAME=EXPRESSION",
    help="Vespa: the rank feature behind a name; repeatable.  [default: attribute(NAME)]",
)
@click.option("--phase", type=click.Choice(["first", "second"]), default="first", show_default=True, help="Vespa.")
@click.option(
    "--dialect", help="SQL: duckdb, sqlite, postgres, clickhouse, bigquery, snowflake or spark.  [default: duckdb]"
)
@click.option("--form", help="SQL: select, view or expression; Lucene: select or expression.  [default: select]")
@click.option("--table", help="SQL: the table with a column for each feature.  [default: documents]")
@engine_table_options
@json_option
def export(
    model: str,
    target: str,
    output: str,
    features: str | None,
    name: str | None,
    version: str | None,
    feature_set: str | None,
    store: str | None,
    missing: Literal["zero", "refuse"] | None,
    shift: float | None,
    shift_from: str | None,
    normalizers: bool,
    mapping: tuple[str, ...],
    phase: Literal["first", "second"],
    dialect: str | None,
    form: str | None,
    table: str | None,
    columns: dict[str, Any],
    as_json: bool,
) -> None:
    """Write a saved model for a search engine or a database: any linear ranker, RankBoost, or boosted trees.

    MODEL is a model file, a pipeline saved with toprank.export.fold(pipeline).save(FILE), or a model that LightGBM
    (text) or XGBoost (JSON, UBJSON) saved.

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
    names = None if features is None else _names(features)
    scorer = job.fold(model, names, missing=missing)
    if shift_from is not None:
        shift = job.shift_for(scorer, read(shift_from, columns))
    given = {"dialect": dialect, "form": form, "table": table, "doc_id": columns["doc_id"]}
    if target == "sql":
        given["qid"] = columns["qid"]
    settings = Settings(name, version, store, feature_set, shift, normalizers, _expressions(mapping), phase)
    settings = replace(settings, **{key: value for key, value in given.items() if value is not None})
    done, artifact = writing.render(scorer, target, settings=settings)
    if output == "-":
        if as_json:
            raise InputError("--json and -o - would mix on standard output: write the model to a file")
        with open_stream(output) as out:
            out.write(artifact.content)
        show(str(done), err=True)
        return
    done = writing.save(done, artifact, output)
    if as_json:
        print_json(done.to_dict())
    else:
        show(str(done))


@click.command("verify-export")
@click.argument("model")
@click.argument("file")
@click.argument("data")
@click.option("--to", "target", metavar="TARGET", help="What FILE was exported to.  [default: seen from FILE]")
@click.option(
    "--top", default=10, show_default=True, type=click.IntRange(1), help="How many first documents to compare."
)
@click.option(
    "--gaps",
    type=click.Choice(["split", "right", "zero"]),
    help="Elasticsearch, OpenSearch: what your version of the plugin does in trees with a feature that does not match: "
    "follow `missing`, go right, or take 0 (before 2024).  [default: split]",
)
@features_option
@missing_option
@engine_table_options
@json_option
def verify_export(
    model: str,
    file: str,
    data: str,
    target: str | None,
    top: int,
    gaps: Literal["split", "right", "zero"] | None,
    features: str | None,
    missing: Literal["zero", "refuse"] | None,
    columns: dict[str, Any],
    as_json: bool,
) -> int:
    """Check that an exported model ranks DATA as the saved model does.

    FILE is read back and scored with the engine's own arithmetic and missing-value rule (ONNX: by onnxruntime). Exit
    code 1 if the rankings differ by more than rounding explains, or rounding leaves too little of them.

    Example: toprank verify-export model.json es.json test.txt
    """
    from .. import export as job

    scorer = job.fold(model, None if features is None else _names(features), missing=missing)
    counts_as_zero = scorer.fill is not None and not scorer.fill.any()
    queries = as_wide(read(data, columns, "zero" if counts_as_zero else "error"), data, len(scorer.names))
    with busy("scoring"):
        result = job.verify(scorer, file, queries, to=target, top=top, gaps=gaps)
    if as_json:
        print_json(result.to_dict())
    else:
        show(str(result))
    return 0 if result.agrees else 1


@click.command()
@click.argument("table")
@click.option(
    "--for",
    "engine",
    required=True,
    type=click.Choice(["elasticsearch", "opensearch", "solr"]),
    help="The engine that computes the features.",
)
@click.option("--feature-set", default="features", show_default=True, help="Name of the feature set (Solr: store).")
@click.option("--store", help="Feature store.  [default: the engine's own]")
@click.option("-o", "--output", help="Write all as JSON: requests, and the search that logs.  [default: print]")
@json_option
def features(table: str, engine: str, feature_set: str, store: str | None, output: str | None, as_json: bool) -> None:
    """Write what defines features in a search engine, and the search that logs them.

    TABLE is CSV with the columns name, kind and field. Kinds: match (score of the words in a text field), phrase (of
    the words as a phrase), field (the number in a field).

    \b
    Example: toprank features features.csv --for elasticsearch --feature-set movies
    """
    from .. import interop

    made = interop.feature_set(interop.read_features(table), engine, name=feature_set, store=store)  # type: ignore[arg-type]
    if output is not None:
        write_text(output, json.dumps(made.to_dict(), indent=2, ensure_ascii=False) + "\n")
    elif as_json:
        print_json(made.to_dict())
    else:
        show(str(made))


@click.command("read-logs")
@click.argument("answers")
@click.option("--qrels", help="TREC judgements; what they do not name has grade 0.")
@click.option("--missing", type=click.Choice(["error", "zero"]), default="error", show_default=True,
              help="What a feature that does not match is.")  # fmt: skip
@click.option("--id-field", default="id", show_default=True, help="Solr's field of document ids.")
@click.option("-o", "--output", required=True, help="Where to write the data set: .parquet, a folder/, or LETOR text.")
@json_option
def read_logs(
    answers: str, qrels: str | None, missing: Literal["error", "zero"], id_field: str, output: str, as_json: bool
) -> None:
    """Read features that a search engine logged into a data set.

    ANSWERS has one JSON object per line: {"query": ID, "answer": what Elasticsearch, OpenSearch or Solr answered}.

    \b
    Example: toprank read-logs answers.jsonl --qrels judgements.txt --missing zero -o train.parquet
    """
    from ..data.files import write
    from ..interop import read_ltr_logs

    with busy(f"reading {answers}"):
        data = read_ltr_logs(answers, qrels, missing=missing, id_field=id_field)
    write(data, output)
    if as_json:
        counts = {"queries": data.n_queries, "documents": data.n_docs, "features": list(data.feature_names or ())}
        print_json({"file": output, **counts})
    else:
        show(f"wrote {output}: {data}")


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
