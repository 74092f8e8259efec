"""`toprank fit`, `evaluate` and `rank`: what a ranker is for."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any, Literal

from ..errors import InputError
from ._cluster import on_cluster, progress
from ._common import (
    answer,
    as_wide,
    busy,
    check_outputs,
    check_prepared,
    check_writable,
    load_model,
    make_ranker,
    print_json,
    read,
    read_for,
    report,
    show,
    write_text,
)
from ._options import COLUMNS, CONVENTION, FIT_MISSING, FOR, JSON, MEASURES, PREPARE, command, option, split_names


@command()
def fit(
    train: str,
    valid: str | None = option("Judged queries that decide which state of learning is kept."),
    name: str = option("The ranker; `toprank rankers` lists them.", "--ranker", default="ListNet"),
    measure: str | None = option("The measure to optimise, or to choose by, e.g. ndcg@10."),
    params: tuple[str, ...] = option("A hyper-parameter; repeatable.", "-p", "--param", metavar="NAME=VALUE"),
    missing: Literal["error", "zero", "median", "indicator"] | None = FIT_MISSING,
    prepare: str = PREPARE,
    target: str | None = FOR,
    output: str = option("Where to write the model (JSON).", "-o", "--output", required=True),
    dask: str | None = option(
        "Learn on a Dask cluster: the address of its scheduler (tcp://…), or local:2 for two processes here. The "
        "files, 'train/*.parquet' or LETOR text, are read by the workers.",
        metavar="ADDRESS",
    ),
    columns: dict[str, Any] = COLUMNS,
    as_json: bool = JSON,
) -> None:
    """Learn a ranker from judged queries and save it.

    Missing cells are refused unless --missing says what stands in for them; the model file remembers that, with what
    was learned for it, and how features are prepared.

    Example: toprank fit train.txt --valid vali.txt --ranker ListNet --measure ndcg@10 -p alpha=0.01 -o model.json
    """
    ranker = make_ranker(name, measure, params, missing)
    if prepare:
        ranker.set_params(prepare=prepare)
    check_prepared(ranker.prepare, target)
    from .._files import is_standard_output
    from ..clicks.evaluation import CLICK_VALUE, click_value
    from ..measures import measure as parse
    from ..rankers.checking import check_parameters
    from ..statistics.evaluation import evaluate

    if as_json and is_standard_output(output):
        raise InputError("--json and -o - would mix on standard output: write the model to a file")
    check_outputs([output], [train, valid])
    check_writable(output)
    check_parameters(ranker)
    if dask is not None:
        ranker.check_cluster()
    means: dict[str, dict[str, float]] = {}
    with nullcontext(read) if dask is None else on_cluster(dask) as reads:
        kept: Any = "error" if ranker.missing == "error" else "keep" if dask is None else ranker.missing
        data = reads(train, columns, kept)
        reports = {"train": report(data, train, as_json)}
        held_out = None
        if valid is not None:
            chosen = columns if data.feature_names is None else {**columns, "features": list(data.feature_names)}
            held_out = as_wide(reads(valid, chosen, kept), valid, data.n_features)
            reports["valid"] = report(held_out, valid, as_json)
        with busy(f"fitting {name}") if dask is None else progress(name):
            ranker.fit_queries(data, valid=held_out)
            ranker.save(output)
        for part, queries in {"train": data, "valid": held_out}.items():
            if queries is not None:
                means[part] = dict(evaluate(ranker, queries, [ranker.measure]).mean)
                if part == "valid" and queries.doc_weight is not None:
                    cut = parse(ranker.measure).k
                    means[part] = {CLICK_VALUE: click_value(ranker, queries, cut, resamples=0).value}
    if as_json:
        print_json({"model": output, "ranker": name, "means": means, "data": reports})
        return
    for part, values in means.items():
        shown = ", ".join(f"{key} {value:.4f}" for key, value in values.items())
        show(f"{part}: {shown}", err=is_standard_output(output))
    show(f"wrote {output}", err=is_standard_output(output))


@command()
def evaluate(
    model: str,
    data: str,
    measures: tuple[str, ...] = MEASURES,
    convention: str | None = CONVENTION,
    per_query: bool = option("Print one line per query."),
    trec: bool = option("MODEL is a TREC run and DATA are TREC qrels."),
    answered_only: bool = option("Leave out judged queries that a TREC run does not answer. [default: they count 0]"),
    columns: dict[str, Any] = COLUMNS,
    as_json: bool = JSON,
) -> None:
    """Measure a saved model on judged queries, or a TREC run against qrels.

    Examples: toprank evaluate model.json test.txt --measure ndcg@10,map --convention letor4;
    toprank evaluate --trec run.txt qrels.txt
    """
    names = split_names(*measures) or ["ndcg@10", "map"]
    clicked = None
    if trec:
        from ..data.trec import read_qrels, read_run
        from ..statistics.trec_evaluation import evaluate_run

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
        from ..statistics.evaluation import evaluate as measure_all

        scorer = load_model(model)
        judged = read_for(scorer, data, columns)
        report = measure_all(scorer, judged, names, convention=convention or "standard")
        if judged.doc_weight is not None:
            from ..clicks import click_value

            clicked = click_value(scorer, judged)
    values, notes = report.to_dict(per_query=per_query), []
    if clicked is not None:
        values["clicks"] = vars(clicked)
        notes.append(f"measures take each clicked document for relevant; by its weight: {clicked}")
    answer(as_json, values, report.per_query_table() if per_query else report, *notes)


@command()
def rank(
    model: str,
    data: str,
    trec: bool = option("Write a TREC run."),
    output: str = option(
        "Where to write; standard output by default.", "-o", "--output", default="-", show_default=False
    ),
    columns: dict[str, Any] = COLUMNS,
    as_json: bool = JSON,
) -> None:
    """Order the documents of each query by a saved model.

    Prints query, document, rank and score, separated by tabs, best first. Neither a table nor LETOR text
    (`qid:1 1:0.5 …`) needs grades.

    Examples: toprank rank model.json test.txt; toprank rank model.json test.txt --trec -o run.txt
    """
    from ..data import trec as trec_files

    check_outputs([output], [model, data])
    scorer = load_model(model)
    queries = read_for(scorer, data, columns, graded=False)
    scores = scorer.predict(queries)
    run = trec_files.run_of(queries, scores)
    if trec:
        trec_files.write_run(run, output, tag=scorer.source)
        return
    rows = zip(run.qid.tolist(), run.doc_ids.tolist(), run.rank.tolist(), run.scores.tolist(), strict=True)
    broken = [one for one in (*run.qid.tolist(), *run.doc_ids.tolist()) if not as_json and set(one) & set("\t\r\n")]
    if broken:
        raise InputError(f"the id {broken[0]!r} holds a tab, and tabs part the columns of the output: use --json")
    if as_json:
        text = json.dumps([dict(zip(("query", "document", "rank", "score"), row, strict=True)) for row in rows])
    else:
        text = "\n".join(f"{query}\t{document}\t{place}\t{score!r}" for query, document, place, score in rows)
    write_text(output, text + "\n")
