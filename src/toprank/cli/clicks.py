"""`toprank clicks`: from a click log to queries that every ranker can learn from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ..errors import InputError
from ._common import answer, busy, check_outputs
from ._options import JSON, MISSING, command, option

if TYPE_CHECKING:
    from ..clicks import ClickLog, Propensities
    from ..data.dataset import QueryDataset
    from ..model.missing import Missing as Rule


@command()
def clicks(
    log: str,
    features: str = option("Table with a query, a doc_id and the features of each document.", required=True),
    output: str = option(
        "Where to write the weighted queries (.parquet, or a folder/).", "-o", "--output", required=True
    ),
    method: Literal["smooth", "harvest", "em", "trust"] = option("How propensities are estimated.", default="smooth"),
    known: str | None = option(
        "Use these propensities (JSON) instead of estimating.", "--propensities", metavar="FILE"
    ),
    keep: str | None = option("Write the propensities (JSON).", "--save-propensities", metavar="FILE"),
    cut: int | None = option("Leave out the positions after this one."),
    clip: float = option("Smallest propensity that a click is divided by.", default=0.1),
    events: str | None = option("LOG has User Behavior Insights' queries, and this table its events.", metavar="TABLE"),
    named: tuple[str, ...] = option("Name a column of LOG, e.g. position=rank.", "--column", metavar="ROLE=NAME"),
    holdout: str | None = option("Keep a third of the sessions apart, to choose settings by.", metavar="FILE"),
    missing: Literal["error", "zero", "median", "indicator"] = MISSING,
    drop_unknown: bool = option("Drop clicks on documents without features."),
    as_json: bool = JSON,
) -> None:
    """Estimate how likely each position is seen, weigh clicks by it, and write queries to learn from.

    LOG is a table with one row per document shown: query, document, position (from 1), clicked, and where known
    session and ranker. Estimates need documents that were shown at several positions: logs of two rankers, or of one
    that changed.

    Example: toprank clicks log.parquet --features features.parquet -o train.parquet
    """
    from ..clicks import Propensities
    from ..data.files import write
    from ..data.validation import check_count

    check_outputs([output, holdout, keep], [log, features, events, known])
    for path in filter(None, (output, holdout)):
        if not path.endswith(("/", ".parquet", ".pq")):
            raise InputError(f"{path}: .parquet files and folders (a name that ends in /) keep weights of documents")
    with busy(f"reading {log}"):
        shown = _read_log(log, events, named)
        table = _read_features(features, missing)
    if cut is not None:
        check_count(cut=cut)
        shown = shown.take(shown.position <= cut)
    learn, chosen_by = shown.split(2 / 3) if holdout is not None else (shown, None)
    with busy("estimating propensities"):
        seen = Propensities.load(known) if known is not None else Propensities.estimate(learn, method)
    unknown: Literal["drop", "error"] = "drop" if drop_unknown else "error"
    # Everything that may be refused comes before the first file is written.
    judged = learn.to_queries(table, seen, clip, unknown)
    held_out = None if chosen_by is None else chosen_by.to_queries(table, seen, clip, unknown)
    with busy(f"writing {output}"):
        if keep is not None:
            seen.save(keep)
        write(judged, output)
        if held_out is not None and holdout is not None:
            write(held_out, holdout)
    _report(learn, seen, clip, judged, output, as_json)


def _read_log(log: str, events: str | None, columns: tuple[str, ...]) -> ClickLog:
    from ..clicks import ClickLog

    if events is not None:
        return ClickLog.from_ubi(log, events)
    named = {}
    for text in columns:
        role, sign, name = text.partition("=")
        if not sign or not name:
            raise InputError(f"--column {text}: write ROLE=NAME, e.g. position=rank")
        named[role] = name
    return ClickLog.from_table(log, **named)


def _read_features(path: str, missing: Rule) -> QueryDataset:
    """Read the features, missing ones filled in; grades are not read, and are no feature either."""
    from ..data._columns import column_names
    from ..data.tables import read_table
    from ..model.missing import fill_missing

    kept: Literal["error", "keep"] = "error" if missing == "error" else "keep"
    label = "label" if "label" in column_names(path) else None
    return fill_missing(read_table(path, label=label, doc_id="doc_id", missing=kept), missing)


def _report(learn: ClickLog, seen: Propensities, clip: float, judged: QueryDataset, output: str, as_json: bool) -> None:
    steady = learn.effective_sample_size(seen, clip)
    total = int(learn.clicked.sum())
    values = {
        "impressions": learn.n_impressions,
        "clicks": total,
        "effective_clicks": steady,
        "queries": judged.n_queries,
        "propensities": seen.values,
        "lower": seen.lower,
        "upper": seen.upper,
        "method": seen.method,
        "output": output,
    }
    weighed = f"{total:,} clicks weigh as much as {steady:,.0f} of equal weight (clipped at {clip:g})"
    wrote = f"wrote {output}: {judged.n_queries:,} queries with clicks, {judged.n_docs:,} documents"
    answer(as_json, values, str(learn), str(seen), weighed, wrote)
