"""`toprank fit`, `evaluate` and `rank`: what a ranker is for."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any

import click

from ..errors import InputError
from ._cluster import on_cluster, progress
from ._common import (
    as_wide,
    busy,
    check_prepared,
    convention_option,
    for_option,
    json_option,
    known_columns,
    listed,
    load_scorer,
    make_ranker,
    prepare_option,
    print_json,
    read,
    show,
    table_options,
    write_text,
)


@click.command()
@click.argument("train")
@click.option("--valid", help="Judged queries to choose the best iterate on.")
@click.option("--ranker", "name", default="ListNet", show_default=True, help="`toprank rankers` lists them.")
@click.option("--measure", help="The measure to optimise or to watch, e.g. ndcg@10.")
@click.option("-p", "--param", "params", multiple=True, metavar="NAME=VALUE", help="A hyper-parameter; repeatable.")
@prepare_option
@for_option
@click.option("-o", "--output", required=True, help="Where to write the model (JSON).")
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="Learn on a Dask cluster: the address of its scheduler (tcp://…), or local:2 for two processes here. The "
    "files, 'train/*.parquet' or LETOR text, are read by the workers.",
)
@table_options
@json_option
def fit(
    train: str,
    valid: str | None,
    name: str,
    measure: str | None,
    params: tuple[str, ...],
    prepare: str,
    target: str | None,
    output: str,
    dask: str | None,
    columns: dict[str, Any],
    as_json: bool,
) -> None:
    """Learn a ranker from judged queries and save it.

    Empty cells of a table are refused, or count as 0 with -p missing=zero; the model file remembers which, and how
    features are prepared.

    Example: toprank fit train.txt --valid vali.txt --ranker ListNet --measure ndcg@10 -p alpha=0.01 -o model.json
    """
    ranker = make_ranker(name, measure, params)
    if prepare:
        ranker.set_params(prepare=prepare)
    check_prepared(ranker.prepare, target)
    from .._files import is_standard_output
    from ..evaluation import evaluate

    if as_json and is_standard_output(output):
        raise InputError("--json and -o - would mix on standard output: write the model to a file")
    if dask is not None:
        ranker.check_cluster()
    means: dict[str, dict[str, float]] = {}
    with nullcontext(read) if dask is None else on_cluster(dask) as reads:
        data = reads(train, columns, ranker.missing)
        held_out = None
        if valid is not None:
            held_out = as_wide(reads(valid, columns, ranker.missing), valid, data.n_features)
        with busy(f"fitting {name}") if dask is None else progress(name):
            ranker.fit_queries(data, valid=held_out)
            ranker.save(output)
        for part, queries in {"train": data, "valid": held_out}.items():
            if queries is not None:
                means[part] = dict(evaluate(ranker, queries, [ranker.measure]).mean)
    if as_json:
        print_json({"model": output, "ranker": name, "means": means})
        return
    for part, values in means.items():
        told = ", ".join(f"{key} {value:.4f}" for key, value in values.items())
        show(f"{part}: {told}", err=is_standard_output(output))
    show(f"wrote {output}", err=is_standard_output(output))


@click.command()
@click.argument("model")
@click.argument("data")
@click.option(
    "--measure", "measures", multiple=True, help="Repeatable, or separated by commas. [default: ndcg@10, map]"
)
@convention_option
@click.option("--per-query", is_flag=True, help="One line per query.")
@click.option("--trec", is_flag=True, help="MODEL is a TREC run and DATA are TREC qrels.")
@click.option(
    "--answered-only",
    is_flag=True,
    help="Leave judged queries that a TREC run does not answer out. [default: they count 0]",
)
@table_options
@json_option
def evaluate(
    model: str,
    data: str,
    measures: tuple[str, ...],
    convention: str | None,
    per_query: bool,
    trec: bool,
    answered_only: bool,
    columns: dict[str, Any],
    as_json: bool,
) -> None:
    """Measure a saved model on judged queries, or a TREC run against qrels.

    Examples: toprank evaluate model.json test.txt --measure ndcg@10,map --convention letor4;
    toprank evaluate --trec run.txt qrels.txt
    """
    names = listed(*measures) or ["ndcg@10", "map"]
    if trec:
        from ..data.trec import read_qrels, read_run
        from ..trec_evaluation import evaluate_run

        report = evaluate_run(
            read_run(model),
            read_qrels(data),
            names,
            convention=convention or "trec_eval",
            complete=not answered_only,
        )
    else:
        if answered_only:
            raise InputError("--answered-only is about TREC runs: give --trec too")
        from ..evaluation import evaluate as measure_all

        scorer, missing, width = load_scorer(model)
        judged = as_wide(read(data, known_columns(data, columns, scorer), missing), data, width)
        report = measure_all(scorer, judged, names, convention=convention or "standard")
    if as_json:
        print_json(report.to_dict(per_query=per_query))
    elif per_query:
        show(report.per_query_table())
    else:
        show(report)


@click.command()
@click.argument("model")
@click.argument("data")
@click.option("--trec", is_flag=True, help="Write a TREC run.")
@click.option("-o", "--output", default="-", help="Where to write; standard output by default.")
@table_options
@json_option
def rank(model: str, data: str, trec: bool, output: str, columns: dict[str, Any], as_json: bool) -> None:
    """Order the documents of each query by a saved model.

    Prints query, document, rank and score, separated by tabs, best first. Neither a table nor LETOR text
    (`qid:1 1:0.5 …`) needs grades.

    Examples: toprank rank model.json test.txt; toprank rank model.json test.txt --trec -o run.txt
    """
    from ..data import trec as trec_files

    scorer, missing, width = load_scorer(model)
    queries = as_wide(read(data, known_columns(data, columns, scorer, graded=False), missing), data, width)
    scores = scorer.predict(queries)
    run = trec_files.run_of(queries, scores)
    if trec:
        trec_files.write_run(run, output, tag=getattr(scorer, "ranker", type(scorer).__name__))
        return
    rows = zip(run.qid.tolist(), run.doc_ids.tolist(), run.rank.tolist(), run.scores.tolist(), strict=True)
    if as_json:
        text = json.dumps([dict(zip(("query", "document", "rank", "score"), row, strict=True)) for row in rows])
    else:
        text = "\n".join(f"{query}\t{document}\t{place}\t{score!r}" for query, document, place, score in rows)
    write_text(output, text + "\n")
