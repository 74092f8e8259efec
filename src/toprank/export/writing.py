"""Writing a model for an engine, and reading it back as the engine would run it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from .._files import read_whole, replacing
from .._suggest import did_you_mean
from ..data.preparation import words_of
from ..data.validation import check_choice
from ..errors import InputError
from ..model.missing import Missing
from .elasticsearch import LtrPlugin
from .folding import fold
from .lucene_expression import LuceneExpression
from .onnx_graph import Onnx
from .own_json import OwnJson
from .ranklib import RankLib
from .replicas import Replica
from .solr import Solr
from .sql import Sql
from .targets import Artifact, Settings, Target, round_up
from .vespa import Vespa

_TARGETS: tuple[Target, ...] = (
    LtrPlugin("elasticsearch", "Elasticsearch"),
    LtrPlugin("opensearch", "OpenSearch"),
    Solr(),
    Vespa(),
    Onnx(),
    RankLib(),
    Sql(),
    LuceneExpression(),
    OwnJson(),
)

TARGETS = tuple(target.name for target in _TARGETS)
"""Names of the engines and formats."""
SETTINGS = tuple(field.name for field in fields(Settings))


@dataclass(frozen=True)
class Export:
    """A model written for an engine: the files, and what to know about them. `str` is for reading."""

    target: str
    name: str
    files: tuple[Path, ...]
    missing: str
    notes: tuple[str, ...]
    rescore: Mapping[str, Any] | None
    """A search request that uses the model, where the engine takes one."""

    def to_dict(self) -> dict[str, Any]:
        """Return the export as plain values for JSON."""
        return {**vars(self), "files": [str(file) for file in self.files], "notes": list(self.notes)}

    def __str__(self) -> str:
        wrote = f"wrote {' and '.join(map(str, self.files))}: " if self.files else ""
        lines = [f"{wrote}{self.target} model {self.name}", *(f"- {note}" for note in self.notes)]
        if self.rescore is not None:
            lines += ["- in a search:", json.dumps(self.rescore, indent=2)]
        return "\n".join(lines)


def target_of(name: str) -> Target:
    """Return the target of a name."""
    for target in _TARGETS:
        if target.name == name:
            return target
    raise InputError(f"unknown target {name!r}{did_you_mean(name, TARGETS)}; there are {', '.join(TARGETS)}")


def render(
    model: Any,
    to: str,
    *,
    features: Sequence[str] | None = None,
    missing: Missing | None = None,
    settings: Settings | None = None,
) -> tuple[Export, Artifact]:
    """Return what `write` would write, without writing it."""
    target = target_of(to)
    model = fold(model, features, missing=missing)
    artifact = target.write(model, settings or Settings())
    return Export(target.name, artifact.name, (), model.rule.words, artifact.notes, artifact.rescore), artifact


def write(
    model: Any,
    path: str | os.PathLike[str],
    to: str,
    *,
    features: Sequence[str] | None = None,
    missing: Missing | None = None,
    **settings: Any,
) -> Export:
    """Write a model for an engine; every file appears whole or not at all.

    `model` and `missing` are what `fold` takes, `to` is one of `TARGETS`. `features` renames the features. The other
    settings, each for the targets that have a use for it: `name` and `version` make the model's name; `feature_set` and
    `store` say where it goes; `shift` is added to every score (`shift_for` finds one from data; without any, the
    plugins of Elasticsearch and OpenSearch get the one that keeps scores above 0, where it is known); `normalizers`
    writes a pipeline's scalers as the engine's normalisers; `expressions` and `phase` are for Vespa; `dialect`, `form`
    ("select", "view", "expression"), `table`, `qid` and `doc_id` are for SQL.

    >>> import tempfile, toprank as tr
    >>> ranker = tr.ListNet().fit([[1.0, 0.0], [0.0, 1.0]], [1, 0])
    >>> file = Path(tempfile.mkdtemp(), "model.json")
    >>> export = tr.export.write(ranker, file, "elasticsearch", features=["bm25", "age"], version="1")
    >>> export.name, export.missing
    ('listnet_1', 'missing values are refused')
    >>> tuple(json.loads(json.loads(file.read_text())["model"]["model"]["definition"]))
    ('bm25', 'age')
    """
    unknown = next((key for key in settings if key not in SETTINGS), None)
    if unknown is not None:
        raise InputError(
            f"unknown setting {unknown!r}{did_you_mean(unknown, SETTINGS)}; there are {', '.join(SETTINGS)}"
        )
    return save(*render(model, to, features=features, missing=missing, settings=Settings(**settings)), path)


def save(export: Export, artifact: Artifact, path: str | os.PathLike[str]) -> Export:
    """Write what was rendered, with the companions of the main file."""
    main = Path(path)
    files = {main: artifact.content} | {companion(main, suffix): text for suffix, text in artifact.companions.items()}
    with ExitStack() as stack:
        drafts = {stack.enter_context(replacing(file)): content for file, content in files.items()}
        for draft, content in drafts.items():
            draft.write_bytes(content)
    return replace(export, files=tuple(files))


def companion(path: Path, suffix: str) -> Path:
    """Return the file that goes with another, and with no other: model.json → model.json.features.json."""
    return path.with_name(path.name + suffix)


def read(
    path: str | os.PathLike[str], to: str | None = None, *, gaps: Literal["split", "right", "zero"] | None = None
) -> tuple[str, Replica]:
    """Return the target of an exported file (seen from the file where `to` is None) and the file as it runs there.

    `gaps` is what `verify` takes.
    """
    file = Path(path)
    content, _ = read_whole(file)
    if to is not None:
        target = target_of(to)
    else:
        found = [target for target in _TARGETS if target.marks.search(content)]
        if not found:
            raise InputError(f"{file} is not a file of {', '.join(TARGETS)}: say which with --to")
        target = found[0]
    if gaps is not None:
        check_choice(("split", "right", "zero"), gaps=gaps)
        if not isinstance(target, LtrPlugin):
            raise InputError(f"gaps is for elasticsearch and opensearch, not for {target.name}: leave it out")
        target = replace(target, gaps=gaps)
    others = {suffix: companion(file, suffix) for suffix in target.companions}
    texts = {suffix: other.read_bytes() for suffix, other in others.items() if other.is_file()}
    return target.name if to else target.family or target.name, target.read(content, str(file), texts)


def check_preparation(to: str, prepare: str | Sequence[str]) -> None:
    """Refuse, before anything is trained, preparations of features that a target cannot compute.

    `prepare` is what a ranker's parameter of that name takes: "log" (`SignedLog`), "query" and "standard"
    (`QueryNormalizer`).

    >>> check_preparation("sql", ["log", "query"])
    >>> check_preparation("solr", ["log"])
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: solr cannot compute the signed logarithm of a feature: let the engine ...
    """
    target_of(to).check_preparation(words_of(prepare))


def shift_for(model: Any, data: Any, features: Sequence[str] | None = None) -> float:
    """Return what to add so that no document of `data` scores below 0, with a tenth of the range of scores to spare.

    Documents that were not seen can score lower still. A model's own constant counts; 0 where nothing is needed.

    >>> from toprank.model import Model
    >>> shift_for(Model.linear(["age"], [-2.0]), [[0.0], [10.0]])
    22.0
    """
    scores = fold(model, features).predict(data)
    low, high = float(scores.min(initial=0.0)), float(scores.max(initial=0.0))
    return 0.0 if low >= 0 else round_up(-low + 0.1 * (high - low))
