"""The command line: each command reads its arguments, calls one function and prints the result.

Libraries load inside the commands, so that `toprank --help` answers at once.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from ._version import __version__
from .errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .data.dataset import QueryDataset
    from .rankers.base import Ranker

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
_label = click.option("--label", default="label", show_default=True, help="Column with the grade, in a table.")
_qid = click.option("--qid", default="query", show_default=True, help="Column with the query id, in a table.")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
_convention = click.option(
    "--convention", default=None, help="Whose conventions to follow; `toprank measures` lists them."
)


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line: exit code 2 and one clear line on bad input, never a traceback."""
    try:
        sys.exit(cli.main(args=args, prog_name="toprank", standalone_mode=False) or 0)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        sys.exit(0)
    except click.ClickException as error:
        _fail(error.format_message())
    except (InputError, MissingExtraError) as error:
        _fail(str(error))
    except BrokenPipeError:  # `toprank rank … | head` is not an error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (KeyboardInterrupt, click.Abort):
        click.echo("toprank: interrupted", err=True)
        sys.exit(130)


def _fail(message: str) -> None:
    click.echo(f"toprank: error: {' '.join(message.split())}", err=True)
    sys.exit(2)


@click.group(context_settings=_CONTEXT)
@click.version_option(__version__, prog_name="toprank")
def cli() -> None:
    """Learning to rank that optimises the measure you are judged by."""


@cli.command()
@click.option("--html", default="report.html", show_default=True, help="Where to write the page.")
@click.option("--queries", default=400, show_default=True, type=click.IntRange(4), help="How many queries to generate.")
@click.option("--seed", default=0, show_default=True, help="Same seed, same numbers.")
@_json
def demo(html: str, queries: int, seed: int, as_json: bool) -> None:
    """Train and evaluate a ranker on a generated set and write a report page.

    Example: toprank demo --html report.html
    """
    from . import demo as job

    with _busy("generating, training, evaluating"):
        result = job.run(n_queries=queries, random_state=seed)
        job.write_page(result, html)
    if as_json:
        means = {name: dict(report.mean) for name, report in result.reports.items()}
        _print_json({"means": means, "comparison": result.comparison.to_dict(), "html": html})
        return
    click.echo(f"{result.train.n_queries} queries to learn from, {result.test.n_queries} to be judged on\n")
    _print(result.comparison)
    click.echo(f"\nwrote {html}")


@cli.command()
@click.argument("data")
@_label
@_qid
@_json
def info(data: str, label: str, qid: str, as_json: bool) -> None:
    """Say what is in a file of judged queries.

    DATA is LETOR text (plain, .gz, .bz2, .xz, .zst, or - for standard input), Parquet, CSV, or a mapped folder.

    Example: toprank info train.txt
    """
    import dataclasses

    summary = _read(data, label, qid).info()
    if as_json:
        _print_json(dataclasses.asdict(summary))
    else:
        click.echo(str(summary))


@cli.command()
@click.argument("source")
@click.argument("target")
@click.option(
    "--dtype", type=click.Choice(["float32", "float64"]), default="float32", show_default=True, help="Values of text."
)
@_label
@_qid
@_json
def convert(source: str, target: str, dtype: str, label: str, qid: str, as_json: bool) -> None:
    """Turn a file of judged queries into another format.

    TARGET is LETOR text (also .gz, .bz2, .xz, .zst, or - for standard output), .parquet, or a folder (a name that ends
    in /) of arrays that open without being read: LETOR text is streamed into it, whatever its size.

    Examples: toprank convert train.txt train.parquet; toprank convert big.txt.gz big/
    """
    from .data import files

    with _busy(f"converting {source}"):
        files.convert(source, target, label=label, qid=qid, dtype=dtype)
    if as_json and target != "-":
        _print_json({"source": source, "target": target})
    elif target != "-":
        click.echo(f"wrote {target}")


@cli.command()
@click.argument("train")
@click.option("--valid", help="Judged queries to choose the best iterate on.")
@click.option("--ranker", "name", default="ListNet", show_default=True, help="`toprank rankers` lists them.")
@click.option("--measure", help="The measure to optimise or to watch, e.g. ndcg@10.")
@click.option("-p", "--param", "params", multiple=True, metavar="NAME=VALUE", help="A hyper-parameter; repeatable.")
@click.option("-o", "--output", required=True, help="Where to write the model (JSON).")
@_label
@_qid
@_json
def fit(
    train: str,
    valid: str | None,
    name: str,
    measure: str | None,
    params: tuple[str, ...],
    output: str,
    label: str,
    qid: str,
    as_json: bool,
) -> None:
    """Learn a ranker from judged queries and save it.

    Example: toprank fit train.txt --valid vali.txt --ranker ListNet --measure ndcg@10 -p alpha=0.01 -o model.json
    """
    ranker = _make_ranker(name, measure, params)
    data = _read(train, label, qid)
    held_out = None if valid is None else _read(valid, label, qid)
    with _busy(f"fitting {name}"):
        ranker.fit_queries(data, valid=held_out)
        ranker.save(output)
    from .evaluation import evaluate

    parts = {"train": data} | ({} if held_out is None else {"valid": held_out})
    means = {part: dict(evaluate(ranker, queries, [ranker.measure]).mean) for part, queries in parts.items()}
    if as_json:
        _print_json({"model": output, "ranker": name, "means": means})
        return
    for part, values in means.items():
        click.echo(f"{part}: " + ", ".join(f"{key} {value:.4f}" for key, value in values.items()))
    click.echo(f"wrote {output}")


@cli.command()
@click.argument("model")
@click.argument("data")
@click.option(
    "--measure", "measures", multiple=True, help="Repeatable, or separated by commas. [default: ndcg@10, map]"
)
@_convention
@click.option("--per-query", is_flag=True, help="One line per query.")
@click.option("--trec", is_flag=True, help="MODEL is a TREC run and DATA are TREC qrels.")
@_label
@_qid
@_json
def evaluate(
    model: str,
    data: str,
    measures: tuple[str, ...],
    convention: str | None,
    per_query: bool,
    trec: bool,
    label: str,
    qid: str,
    as_json: bool,
) -> None:
    """Measure a saved model on judged queries, or a TREC run against qrels.

    Examples: toprank evaluate model.json test.txt --measure ndcg@10,map --convention letor4;
    toprank evaluate --trec run.txt qrels.txt
    """
    names = [name.strip() for group in measures for name in group.split(",")] or ["ndcg@10", "map"]
    if trec:
        from .data.trec import read_qrels, read_run
        from .trec_evaluation import evaluate_run

        report = evaluate_run(read_run(model), read_qrels(data), names, convention=convention or "trec_eval")
    else:
        from .evaluation import evaluate as measure_all

        ranker = _load(model)
        report = measure_all(ranker, _read(data, label, qid), names, convention=convention or "standard")
    if as_json:
        _print_json(report.to_dict(per_query=per_query))
    elif per_query:
        click.echo(report.per_query_table().plain())
    else:
        _print(report)


@cli.command()
@click.argument("model")
@click.argument("data")
@click.option("--trec", is_flag=True, help="Write a TREC run.")
@click.option("-o", "--output", default="-", help="Where to write; standard output by default.")
@_label
@_qid
@_json
def rank(model: str, data: str, trec: bool, output: str, label: str, qid: str, as_json: bool) -> None:
    """Order the documents of each query by a saved model.

    Prints query, document, rank and score, separated by tabs, best first.

    Examples: toprank rank model.json test.txt; toprank rank model.json test.txt --trec -o run.txt
    """
    from .data import trec as trec_files

    queries = _read(data, label, qid)
    ranker = _load(model)
    scores = ranker.predict(queries)
    run = trec_files.run_of(queries, scores)
    if trec:
        trec_files.write_run(run, output, tag=type(ranker).__name__)
        return
    rows = zip(run.qid.tolist(), run.doc_ids.tolist(), run.rank.tolist(), run.scores.tolist(), strict=True)
    if as_json:
        text = json.dumps([dict(zip(("query", "document", "rank", "score"), row, strict=True)) for row in rows])
    else:
        text = "\n".join(f"{query}\t{document}\t{place}\t{score!r}" for query, document, place, score in rows)
    _write_text(output, text + "\n")


@cli.command()
@click.argument("model")
@click.argument("data")
@_label
@_qid
@_json
def certify(model: str, data: str, label: str, qid: str, as_json: bool) -> None:
    """Print what is proved about a saved model on judged queries: each theorem with its bound and the observed value.

    Example: toprank certify model.json train.txt
    """
    from .rankers.certifying import certify as prove

    ranker = _load(model)
    certificates = prove(ranker, _read(data, label, qid))
    if as_json:
        _print_json([certificate.to_dict() for certificate in certificates])
    elif certificates:
        click.echo("\n".join(f"- {certificate}" for certificate in certificates))
    else:
        click.echo(f"no theorem here applies to a saved {type(ranker).__name__}")


@cli.command()
@_json
def measures(as_json: bool) -> None:
    """List the measures and the conventions they can follow.

    Example: toprank measures
    """
    from .measures import catalog

    tables = catalog()
    if as_json:
        _print_json([{"columns": list(t.columns), "rows": [list(row) for row in t.rows]} for t in tables])
    else:
        click.echo("\n\n".join(table.plain() for table in tables))


@cli.command()
@_json
def rankers(as_json: bool) -> None:
    """List the rankers and their hyper-parameters.

    Example: toprank rankers
    """
    import inspect

    from . import rankers as package

    rows: list[dict[str, Any]] = []
    for name in package.__all__:
        kind = getattr(package, name)
        params = {p.name: p.default for p in inspect.signature(kind).parameters.values()}
        rows.append({"ranker": name, "summary": (inspect.getdoc(kind) or "").splitlines()[0], "params": params})
    if as_json:
        _print_json(rows)
        return
    for row in rows:
        click.echo(click.style(row["ranker"], bold=True) + f"  {row['summary']}")
        click.echo("    " + ", ".join(f"{key}={value!r}" for key, value in row["params"].items()))


@cli.command()
@click.argument("paper")
@click.argument("figure", required=False)
@click.option("--out", default="exhibits", show_default=True, help="Folder for the data, tables and figures.")
@click.option("--data", help="A file, folder or data set name, for figures that run on your own stream.")
@_json
def reproduce(paper: str, figure: str | None, out: str, data: str | None, as_json: bool) -> None:
    """Recompute a paper's figures and tables; an interrupted run goes on where it was.

    Without FIGURE, all of them. `toprank reproduce PAPER list` names them.

    Example: toprank reproduce online-perceptrons fig1 --out exhibits
    """
    from .papers import reproduce as job

    if figure == "list":
        names = job.figures(paper)
        click.echo(json.dumps(list(names)) if as_json else "\n".join(f"{k:<20} {v}" for k, v in names.items()))
        return
    for exhibit, files in job.reproduce(paper, figure, out=out, data=data):
        if as_json:
            _print_json({"name": exhibit.name, "files": [str(file) for file in files], "notes": list(exhibit.notes)})
        else:
            click.echo(f"{exhibit}\n\nwrote {', '.join(map(str, files))}\n")


def _read(path: str, label: str, qid: str) -> QueryDataset:
    from .data.files import read

    with _busy(f"reading {path}"):
        return read(path, label=label, qid=qid)


def _load(path: str) -> Ranker:
    from .rankers.persistence import load

    return load(path)


def _make_ranker(name: str, measure: str | None, params: tuple[str, ...]) -> Ranker:
    from . import rankers as package
    from ._suggest import did_you_mean

    if name not in package.__all__:
        raise InputError(f"unknown ranker {name!r}{did_you_mean(name, package.__all__)}; `toprank rankers` lists them")
    kind = getattr(package, name)
    known = kind().get_params(deep=False)
    given: dict[str, Any] = {} if measure is None else {"measure": measure}
    for text in params:
        key, sign, value = text.partition("=")
        if not sign or key not in known:
            raise InputError(f"-p {text}: {name} takes {', '.join(f'{k}=…' for k in known)}{did_you_mean(key, known)}")
        try:
            given[key] = json.loads(value)
        except json.JSONDecodeError:
            given[key] = value  # not a number, true, false or null: text
    if measure is not None:
        from .measures import measure as parse

        parse(measure)  # a bad name is told before any file is read
    ranker: Ranker = kind(**given)
    return ranker


@contextmanager
def _busy(what: str) -> Iterator[None]:
    """Show that work is going on, on a terminal only."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{what} …"):
        yield


def _print(value: Any) -> None:
    """Print with colour on a terminal and as plain text elsewhere."""
    if sys.stdout.isatty():
        from rich.console import Console

        Console().print(value)
    else:
        click.echo(str(value))


def _print_json(value: Any) -> None:
    click.echo(json.dumps(_jsonable(value), indent=1, ensure_ascii=False))


def _jsonable(value: Any) -> Any:
    """Return numbers and containers as JSON has them; anything else as its text, what is not finite as null."""
    from .papers.base import plain

    return json.loads(json.dumps(plain(value), default=str))


def _write_text(path: str, text: str) -> None:
    if path == "-":
        click.echo(text, nl=False)
        return
    from ._files import replacing

    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")
