"""A running search engine: `push` puts a model into it, `pull-features` asks it for features."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from ..errors import InputError
from ._common import answer, busy, check_outputs
from ._options import JSON, command, option

ENGINE = option("The engine.", "--to", required=True)
URL = option("Where the engine answers; for Solr with the core, http://localhost:8983/solr/products.", "--url",
             required=True, metavar="URL")  # fmt: skip
STORE = option("Feature store.  [default: the engine's own]")
ID_FIELD = option("Solr's field of document ids.", default="id")


@command()
def push(
    model: str,
    engine: Literal["elasticsearch", "opensearch", "solr"] = ENGINE,
    url: str = URL,
    feature_set: str = option("The feature set (Solr: store) that the model belongs to.", default="features"),
    store: str | None = STORE,
    table: str | None = option("What the feature set is made of, as `features` takes it: CSV with name, kind, field."),
    name: str | None = option("Name of the model.  [default: the ranker's]"),
    version: str | None = option("Stands behind the name, since engines do not overwrite models.  [default: a hash]"),
    shift: float | None = option("Add this to every score."),
    index: str | None = option("Elasticsearch, OpenSearch: the index whose live scores are compared."),
    words: tuple[str, ...] = option("Words of a search whose live scores are compared; repeatable."),
    id_field: str = ID_FIELD,
    dry_run: bool = option("Look, and send nothing that changes anything."),
    as_json: bool = JSON,
) -> int:
    """Put a saved model into a running engine, with its feature set, and compare its live scores with the file's.

    What is there already and the same is left as it is. A key comes from the environment: TOPRANK_ENGINE_KEY, or
    TOPRANK_ENGINE_USER and TOPRANK_ENGINE_PASSWORD. Exit code 1 if a live score is not the file's.

    \b
    Examples: toprank push model.json --to solr --url http://localhost:8983/solr/products --words "garden lamp"
              toprank push model.json --to opensearch --url http://localhost:9200 --table features.csv --dry-run
    """
    from .. import interop
    from ..export.pushing import push as pushed
    from ..export.targets import Settings

    if engine == "solr" and store is not None:
        raise InputError("Solr's feature set is its store: give --feature-set alone")
    client = interop.EngineClient(url, interop.credentials())
    home = {"store": feature_set} if engine == "solr" else {"store": store, "feature_set": feature_set}
    settings = Settings(name=name, version=version, shift=shift, **home)
    made_of = None if table is None else interop.read_features(table)
    with busy("asking the engine"):
        done = pushed(
            model, client, engine, settings=settings, features=made_of, index=index, words=words,
            id_field=id_field, dry_run=dry_run,
        )  # fmt: skip
    answer(as_json, done.to_dict(), str(done))
    return 1 if done.different else 0


@command()
def pull_features(
    queries: str,
    qrels: str = option("TREC judgements: which documents, and their grades.", required=True),
    engine: Literal["elasticsearch", "opensearch", "solr"] = option("The engine.", "--from", required=True),
    url: str = URL,
    index: str = option("Elasticsearch, OpenSearch: the index.", default=""),
    feature_set: str = option("Name of the feature set (Solr: store).", default="features"),
    store: str | None = STORE,
    missing: Literal["error", "zero"] = option("What to do with a feature that does not match.", default="error"),
    id_field: str = ID_FIELD,
    output: str = option(
        "Where to write the data set: .parquet, a folder/, or LETOR text.", "-o", "--output", required=True
    ),
    as_json: bool = JSON,
) -> None:
    """Ask a running engine for the features of judged documents, and write them as a data set.

    QUERIES has a line for each query: its id, a tab, its words. Nothing is changed in the engine; a key comes from the
    environment as in `push`.

    \b
    Example: toprank pull-features queries.tsv --qrels qrels.txt --from opensearch --url http://localhost:9200 \
        --index products --feature-set products -o train.parquet
    """
    from .. import interop
    from ..data.files import write

    check_outputs([output], [queries, qrels])
    if engine != "solr" and not index:
        raise InputError("name the index: --index NAME")
    client = interop.EngineClient(url, interop.credentials())
    with busy("asking the engine"):
        data = interop.pull_features(
            client, engine, "" if engine == "solr" else index, _queries(queries), qrels,
            feature_set=feature_set, store=store, id_field=id_field, missing=missing,
        )  # fmt: skip
    write(data, output)
    counts = {"queries": data.n_queries, "documents": data.n_docs, "features": list(data.feature_names or ())}
    answer(as_json, {"file": output, **counts}, f"wrote {output}: {data}")


def _queries(path: str) -> dict[str, str]:
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text: {error}") from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        query, tab, words = line.partition("\t")
        if not (query.strip() and tab and words.strip()):
            raise InputError(f"{path}, line {number}: write the query's id, a tab and its words")
        if query.strip() in found:
            raise InputError(f"{path}, line {number}: the query {query.strip()} is there twice")
        found[query.strip()] = words.strip()
    if not found:
        raise InputError(f"{path} has no query")
    return found
