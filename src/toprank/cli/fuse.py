"""Several rankings as one: `fuse`, by rules that learn nothing or by a model of how much each run counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

from ..errors import InputError
from ._common import answer, busy, check_outputs
from ._options import JSON, command, option, split_names


@command()
def fuse(
    runs: tuple[str, ...],
    learn: bool = option("Learn how much each run counts from --qrels."),
    qrels: str | None = option("TREC judgements to learn from."),
    model: str | None = option("Write the learned fusion here; without --learn: fuse by this file."),
    method: Literal["rrf", "combsum", "combmnz"] = option("Without a model: how to fuse.", default="rrf"),
    ranker: str = option("With --learn: the ranker, with its default settings.  [default: ListNet, penalty chosen]",
                         metavar="NAME", default=""),
    features: str = option(
        "With --learn: what is known of a document in each run.", metavar="KIND,KIND",
        default="score,reciprocal_rank,presence",
    ),
    scale: Literal["standard", "minmax"] = option("With --learn: how scores are scaled.", default="standard"),
    measure: str = option("With --learn: what settings are chosen by, and fusions compared on.", default="ndcg@10"),
    folds: int = option("With --learn: queries are ranked by models that did not see their fold.", default=5,
                        type=click.IntRange(2)),
    seed: int = option("With --learn: of the folds.", default=0),
    engine: Literal["opensearch", "elasticsearch", "vespa", "sql"] | None = option(
        "Print the weights as this engine takes them (--features score --scale minmax, a linear ranker).", "--for"
    ),
    window: int = option("With --for: hits of each search to scale.", default=100, type=click.IntRange(1)),
    output: str | None = option("Write the fused run; - for standard output.", "-o", "--output"),
    as_json: bool = JSON,
) -> None:  # fmt: skip
    """Fuse TREC runs into one: by reciprocal rank, CombSUM or CombMNZ, or by a model that is learned from judgements.

    What --learn prints rests on queries that its models did not see, beside reciprocal rank fusion, CombSUM and the
    best single run; it says better only where that is shown. Runs are called by their files' names without the suffix.

    \b
    Examples: toprank fuse bm25.run dense.run -o fused.run
              toprank fuse --learn bm25.run dense.run --qrels qrels.txt --model fusion.json
              toprank fuse bm25.run dense.run --model fusion.json -o fused.run
    """
    from ..contests.fusion_engines import fusion_for
    from ..contests.learned_fusion import KINDS, learn_fusion, load_fusion
    from ..data.trec import read_qrels, read_run, write_run
    from ..statistics.fusion import fuse as fused

    check_outputs([output, model if learn else None], [*runs, qrels])
    named = _named(runs)
    if learn != (qrels is not None):
        raise InputError("--learn and --qrels go together: give both, or neither")
    if engine is not None and not learn and model is None:
        raise InputError("--for is about learned weights: give --learn, or --model FILE")
    if output == "-" and (as_json or engine is not None):
        raise InputError("--json, --for and -o - would mix on standard output: write the run to a file")
    given = {name: read_run(path) for name, path in named.items()}
    said: dict[str, Any] = {"runs": list(named)}
    text = ""
    if learn:
        assert qrels is not None
        unknown = next((kind for kind in split_names(features) if kind not in KINDS), None)
        if unknown is not None:
            raise InputError(f"--features {unknown}: there are {', '.join(KINDS)}")
        with busy("learning"):
            fusion = learn_fusion(
                given, read_qrels(qrels), rankers=_ranker(ranker), features=split_names(features),  # type: ignore[arg-type]
                scale=scale, measure=measure, folds=folds, random_state=seed,
            )  # fmt: skip
        if model is not None:
            fusion.save(model)
        text = str(fusion)
        said |= fusion.to_dict()
    elif model is not None:
        fusion = load_fusion(model)
    if output is not None:
        write_run(fusion.apply(given) if learn or model is not None else fused(list(given.values()), method), output)
        text = "\n".join(filter(None, (text, f"wrote {output}")))
    if engine is not None:
        said["weights_for"] = {"engine": engine, "text": fusion_for(fusion, engine, window=window)}
        text = "\n".join(filter(None, (text, said["weights_for"]["text"])))
    if output == "-":
        return
    if not text:
        raise InputError("nothing was asked for: name a file with -o, or learn with --learn")
    answer(as_json, said, text)


def _named(runs: tuple[str, ...]) -> dict[str, str]:
    if len(runs) < 2:
        raise InputError(f"fuse takes two runs or more, got {len(runs)}")
    stems = [Path(file).name.removesuffix(".gz").rsplit(".", 1)[0] for file in runs]
    names = list(runs) if len(set(stems)) < len(stems) else stems
    if len(set(names)) < len(names):
        raise InputError("a run is named twice: give each file once")
    return dict(zip(names, runs, strict=True))


def _ranker(name: str) -> Any:
    if not name:
        return None
    from .. import rankers

    if name not in rankers.__all__:
        raise InputError(f"unknown ranker {name!r}; `toprank rankers` lists them")
    return getattr(rankers, name)()
