"""A model that learns from one event after the other, each time becoming another one: what is served never changes."""

from __future__ import annotations

import copy
import hashlib
from dataclasses import dataclass, replace
from typing import Literal

import msgspec
import numpy as np

from .._typing import AnyArray, Floats
from ..certificates.performance import RunningMean
from ..data.dataset import QueryDataset
from ..data.documents import Columns, DocumentList
from ..data.sketch import Sketch
from ..errors import InputError
from ..model.functions import LinearFunction
from ..rankers.base import Ranker
from ..rankers.online import OnlineRanker
from ..rankers.pdgd import PDGD
from ..rankers.persistence import ModelFile, content_of, parse
from .bodies import Feedback, require

NOBODY = "nobody"
"""Who sends an event where there are no keys."""
NO_PROGRESS = "[0,0.0,0.0,0]"
"""What `Learner.progress_text` writes before the first event."""


@dataclass(frozen=True, eq=False)
class Event:
    """One list with what came of it: a grade per document, or, where rows were shown, a flag for each click on them."""

    event_id: str
    """The name of the key that sent it, a slash, and the id that was given: keys share no ids."""
    docs: DocumentList
    y: Floats

    @property
    def kind(self) -> Literal["labels", "clicks"]:
        """What it tells."""
        return "labels" if self.docs.shown is None else "clicks"

    @classmethod
    def of(cls, body: Feedback, docs: DocumentList, key: str = NOBODY) -> Event:
        """Return the event that a body tells of documents, sent by a key."""
        name = f"{key}/{body.event_id}"
        one = (body.labels is None) != (body.clicks is None)
        require(one, "give labels (grades), or clicks on a sampled ranking: one of them", "$")
        if body.labels is not None:
            unknown = body.labels.keys() - docs.ids
            require(not unknown, "no such document in this ranking", f"$.labels.{min(unknown, default='')}")
            y = np.array([body.labels.get(name, 0.0) for name in docs.ids])
            return cls(name, replace(docs, shown=None), y)
        sampled = docs.shown is not None or (body.explore and body.shown is not None)
        why = (
            'clicks are no grades: rank with "explore": true, and give the ranking_id of that sampled ranking; or, '
            'where its documents are sent again, what it showed as shown, and "explore": true'
        )
        require(sampled, why, "$.clicks")
        shown = (docs.shown or []) if body.shown is None else _places(body.shown, docs.ids, "$.shown")
        flags = np.zeros(len(shown))
        flags[_places(body.clicks or [], [docs.ids[row] for row in shown], "$.clicks")] = 1
        return cls(name, replace(docs, shown=shown), flags)

    @property
    def given_id(self) -> str:
        """The id that was given."""
        return self.event_id.partition("/")[2]

    def content(self, of_list: bytes) -> bytes:
        """Return what tells the event from others with its id; `of_list` is the `content_of_list` of its documents."""
        return hashlib.blake2b(of_list + self.kind.encode() + self.pack(), digest_size=16).digest()

    def pack(self) -> bytes:
        """Return what the event tells of its list, as bytes for the store."""
        return msgspec.msgpack.encode((self.y.tobytes(), np.array(self.docs.shown or [], dtype=np.int64).tobytes()))

    @classmethod
    def unpack(cls, event_id: str, kind: str, body: bytes, docs: DocumentList | None) -> Event:
        """Return the event that `pack` wrote; without a list, one of the first layout, which wrote both together."""
        if docs is None:
            dtype, width, X, y, shown, ids = msgspec.msgpack.decode(body)
            docs = DocumentList(ids, np.frombuffer(X, dtype=dtype).reshape(-1, width).copy())
        else:
            y, shown = msgspec.msgpack.decode(body)
        places = np.frombuffer(shown, dtype=np.int64).tolist() if kind == "clicks" else None
        return cls(event_id, replace(docs, shown=places), np.frombuffer(y).copy())


def pack_list(docs: DocumentList) -> bytes:
    """Return documents as bytes for the store."""
    return msgspec.msgpack.encode((docs.X.dtype.str, docs.X.shape[1], docs.X.tobytes(), docs.ids))


def unpack_list(body: bytes) -> DocumentList:
    """Return what `pack_list` wrote."""
    dtype, width, X, ids = msgspec.msgpack.decode(body)
    return DocumentList(ids, np.frombuffer(X, dtype=dtype).reshape(-1, width).copy())


def stored_size(docs: DocumentList) -> int:
    """Return how many bytes `pack_list` makes of documents, but for a few."""
    return int(docs.X.nbytes) + sum(len(name.encode()) + 2 for name in docs.ids)


def content_of_list(docs: DocumentList) -> bytes:
    """Return what tells documents from others, whether their features were sent as text or as float32."""
    with np.errstate(over="ignore"):
        return list_digest(replace(docs, X=docs.X.astype(np.float32, copy=False)))


def list_digest(docs: DocumentList) -> bytes:
    """Return what tells documents from all others: ids, types and every bit of the features."""
    found = hashlib.blake2b(digest_size=32)
    found.update(msgspec.msgpack.encode((docs.X.dtype.str, docs.X.shape, docs.ids)))
    found.update(np.ascontiguousarray(docs.X).data)
    return found.digest()


def _places(ids: list[str], among: list[str], at: str) -> list[int]:
    place = {name: i for i, name in enumerate(among)}
    for i, name in enumerate(ids):
        require(name in place, f"no document {name!r} was shown", f"{at}[{i}]")
    require(len(set(ids)) == len(ids), "an id comes twice", at)
    return [place[name] for name in ids]


@dataclass(frozen=True, eq=False)
class Learner:
    """A version of a ranker, and what its stream showed so far: a mean, and how often the order fell short."""

    ranker: Ranker
    columns: Columns
    version: int
    progress: RunningMean
    mistakes: int
    """Events whose ranking was not the best possible."""

    @classmethod
    def of(cls, ranker: Ranker, version: int = 0, progress: str = NO_PROGRESS) -> Learner:
        """Return the learner of a ranker that is its own, and of what `progress_text` wrote."""
        inputs = ranker.inputs_
        vars(ranker).pop("feature_names_in_", None)  # columns are compared here, not again at every step
        ranker.inputs_ = replace(inputs, names=None)
        names = None if inputs.names is None else list(inputs.names)
        columns = Columns(inputs.n_features, names, allows_missing=inputs.missing.kind != "error")
        try:
            n, total, spread, mistakes = msgspec.json.decode(progress, type=tuple[int, float, float, int])
        except msgspec.DecodeError as error:
            raise InputError(f"what the stream showed so far is damaged: {error}") from None
        return cls(ranker, columns, version, RunningMean(n, total, spread), mistakes)

    @classmethod
    def load(cls, version: int, model: str, progress: str, file: str) -> Learner:
        """Return the learner that was written as `model_text` and `progress_text`; `file` names it in a refusal."""
        return cls.of(parse(model.encode(), file), version, progress)

    def progress_text(self) -> str:
        """Return what the stream showed, as text."""
        seen = self.progress
        return msgspec.json.encode((seen.n, seen.total, seen.spread, self.mistakes)).decode()

    def model_text(self) -> bytes:
        """Return the model file, on one line."""
        return msgspec.json.encode(content_of(self.ranker, self.columns.names))

    def is_same_model(self, other: Learner) -> bool:
        """Say whether this toprank writes the same files of both models.

        Marks of the rows learned from are compared where both are complete: older versions did not note rows.
        """
        files = [msgspec.json.decode(learner.model_text(), type=ModelFile) for learner in (self, other)]
        if not all((learner.ranker.learned_from_ or Sketch.unknown()).complete for learner in (self, other)):
            files = [msgspec.structs.replace(file, learned_from=None) for file in files]
        return bool(files[0] == files[1])

    @property
    def measure(self) -> str:
        """What a ranking is judged by before it is learned from."""
        return (
            "reciprocal place of the first click" if self.ranker.learns_from == "clicks" else str(self.ranker.measure)
        )

    @property
    def coef(self) -> Floats | None:
        """The weights of a linear model."""
        function = self.ranker.function_
        return function.coef if isinstance(function, LinearFunction) else None

    @property
    def weight_labels(self) -> list[str]:
        """What each weight of a linear model belongs to: a feature, or where it is missing."""
        return [*replace(self.ranker.inputs_, names=tuple(self.columns.labels)).output_labels]

    @property
    def part_labels(self) -> list[str]:
        """What each contribution belongs to: a feature with its copies and curves, or where it is missing."""
        return [*replace(self.ranker.inputs_, names=tuple(self.columns.labels)).filled_labels]

    def scores(self, X: AnyArray) -> Floats:
        """Return one score per row of a list, whose columns `columns` has put in the model's order."""
        return self.ranker.model_.scores(self.as_list(X))

    def as_list(self, X: AnyArray) -> QueryDataset:
        """Return rows as a data set of one list without grades."""
        gaps = self.columns.allows_missing and bool(np.isnan(X).any())
        ptr = np.array([0, len(X)])
        return QueryDataset(X, np.zeros(len(X)), ptr, np.zeros(1, dtype=np.int64), has_missing=gaps)

    def check(self, kind: str) -> None:
        """Refuse feedback of a kind that this ranker cannot learn from."""
        name, who = type(self.ranker).__name__, "SlamPerceptron, MinimaxPerceptron and OnlineListNet learn from labels"
        why = f"{name} learns from {self.ranker.learns_from}, not from {kind}; {who}, PDGD learns from clicks"
        require(kind == self.ranker.learns_from, why, status=409)

    def after(self, event: Event) -> tuple[Learner, float | None]:
        """Return the learner that has learned from one more event, and the measure of its ranking before the step."""
        self.check(event.kind)
        ranker, value, best, progress = copy.copy(self.ranker), None, True, self.progress
        if isinstance(ranker, OnlineRanker):
            ranker.partial_fit(event.docs.X, event.y)
            if len(ranker.trace_["measure"]):
                value, best = float(ranker.trace_["measure"][-1]), not ranker.trace_["mistake"][-1]
        elif isinstance(ranker, PDGD):
            ranker.partial_fit_clicks(event.docs.X, np.array(event.docs.shown, dtype=np.int64), event.y)
            if event.y.any():
                value = 1.0 / (1 + int(event.y.argmax()))
                best = value == 1.0
        if value is not None and 0 <= value <= 1 + 1e-9:  # of others there is no band
            progress = progress.after(min(value, 1.0))
        return Learner(ranker, self.columns, self.version + 1, progress, self.mistakes + (not best)), value
