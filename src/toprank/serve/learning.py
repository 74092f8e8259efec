"""A model that learns from one event after the other, each time becoming another one: what is served never changes."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import msgspec
import numpy as np

from .._typing import AnyArray, Floats
from ..certificates.performance import RunningMean
from ..errors import InputError
from ..rankers.base import Ranker
from ..rankers.models import LinearModel
from ..rankers.online import OnlineRanker
from ..rankers.pdgd import PDGD
from ..rankers.persistence import content_of, parse
from .bodies import BodyError, Columns, Feedback, Lists, rows_of

Learns = Literal["labels", "clicks", "nothing"]


@dataclass(frozen=True, eq=False)
class Event:
    """One list with what came of it: a grade per document, or the rows that were shown with a flag for each click."""

    event_id: str
    kind: Literal["labels", "clicks"]
    X: AnyArray
    y: Floats
    ids: list[str]
    shown: AnyArray | None = None

    @classmethod
    def of(cls, body: Feedback, lists: Lists, at: str = "$") -> Event:
        """Return the event that a body tells of `lists`."""
        if (body.labels is None) == (body.clicks is None):
            raise BodyError("give labels (grades), or clicks on a sampled ranking: one of them", at)
        if body.labels is not None:
            unknown = body.labels.keys() - lists.ids
            if unknown:
                raise BodyError("no such document in this ranking", f"{at}.labels.{min(unknown)}")
            y = np.array([body.labels.get(name, 0.0) for name in lists.ids])
            return cls(body.event_id, "labels", lists.X, y, lists.ids)
        if lists.shown is None:
            raise BodyError(
                "clicks are no grades: they can be learned from only on a ranking that was sampled, so rank with "
                '"explore": true and give its ranking_id',
                f"{at}.clicks",
            )
        shown = list(lists.shown) if body.shown is None else rows_of(body.shown, lists, f"{at}.shown")
        clicked = rows_of(body.clicks or [], lists, f"{at}.clicks")
        for i, row in enumerate(clicked):
            if row not in shown:
                raise BodyError(f"{lists.ids[row]!r} was clicked but not shown", f"{at}.clicks[{i}]")
        flags = np.array([row in clicked for row in shown], dtype=np.float64)
        return cls(body.event_id, "clicks", lists.X, flags, lists.ids, np.array(shown, dtype=np.int64))

    def pack(self) -> bytes:
        """Return the event as bytes for the store."""
        shown = b"" if self.shown is None else self.shown.tobytes()
        return msgspec.msgpack.encode(
            (self.X.dtype.str, self.X.shape[1], self.X.tobytes(), self.y.tobytes(), shown, self.ids)
        )

    @classmethod
    def unpack(cls, event_id: str, kind: Any, body: bytes) -> Event:
        """Return the event that `pack` wrote."""
        dtype, width, X, y, shown, ids = msgspec.msgpack.decode(body)
        rows = np.frombuffer(X, dtype=dtype).reshape(-1, width).copy()
        places = np.frombuffer(shown, dtype=np.int64) if kind == "clicks" else None
        return cls(event_id, kind, rows, np.frombuffer(y).copy(), ids, places)


@dataclass(frozen=True, eq=False)
class Learner:
    """A ranker, and what its stream showed so far: a mean in three numbers, and how often the order fell short."""

    ranker: Ranker
    columns: Columns
    progress: RunningMean = field(default_factory=RunningMean)
    short: int = 0
    """Events whose ranking was not the best possible."""

    @classmethod
    def read(cls, model: bytes, name: str, progress: str = "[0,0.0,0.0,0]") -> Learner:
        """Return the learner of a model file's text and of what `progress_text` wrote."""
        ranker = parse(model, name)
        names = vars(ranker).pop("feature_names_in_", None)  # columns are checked here, not again at every step
        columns = Columns(ranker.n_features_in_, None if names is None else [str(name) for name in names])
        return cls(ranker, columns, cls.progress_of(progress), int(msgspec.json.decode(progress)[3]))

    @staticmethod
    def progress_of(text: str) -> RunningMean:
        """Return the mean that `progress_text` wrote."""
        return RunningMean(*msgspec.json.decode(text)[:3])

    @property
    def learns(self) -> Learns:
        """What feedback the ranker can learn from."""
        kind = self.ranker
        return "labels" if isinstance(kind, OnlineRanker) else "clicks" if isinstance(kind, PDGD) else "nothing"

    @property
    def measure(self) -> str:
        """What a ranking is judged by before it is learned from."""
        return "reciprocal place of the first click" if self.learns == "clicks" else str(self.ranker.measure)

    @property
    def coef(self) -> Floats | None:
        """The weights of a linear model."""
        model = self.ranker.model_
        return model.coef if isinstance(model, LinearModel) else None

    def model_text(self) -> bytes:
        """Return the model file, on one line."""
        return self.text_of(self.ranker, self.columns.names)

    @staticmethod
    def text_of(ranker: Ranker, names: list[str] | None = None) -> bytes:
        """Return the model file of a ranker, on one line."""
        return msgspec.json.encode(content_of(ranker, names))

    def progress_text(self) -> str:
        """Return what the stream showed, as text."""
        seen = self.progress
        return msgspec.json.encode((seen.n, seen.total, seen.spread, self.short)).decode()

    def check(self, kind: str) -> None:
        """Refuse feedback of a kind that this ranker cannot learn from."""
        if kind == self.learns:
            return
        name = type(self.ranker).__name__
        what = {
            "nothing": "does not learn from feedback",
            "labels": "learns from labels",
            "clicks": "learns from clicks",
        }
        raise BodyError(
            f"{name} {what[self.learns]}, not from {kind}; SlamPerceptron, MinimaxPerceptron and OnlineListNet learn "
            "from labels, PDGD learns from clicks",
            status=409,
        )

    def after(self, event: Event) -> tuple[Learner, float | None]:
        """Return the learner that has learned from one more event, and the measure of its ranking before the step."""
        self.check(event.kind)
        ranker = copy.copy(self.ranker)
        if isinstance(ranker, OnlineRanker):
            ranker.partial_fit(event.X, event.y)
            judged = ranker.trace_["measure"]
            value = float(judged[-1]) if len(judged) else None
            best = value is None or not ranker.trace_["mistake"][-1]
        elif isinstance(ranker, PDGD):
            ranker.partial_fit_clicks(event.X, event.shown if event.shown is not None else [], event.y)
            clicked = np.flatnonzero(event.y)
            value = 1.0 / (1 + int(clicked[0])) if len(clicked) else None
            best = value in (None, 1.0)
        bounded = value is not None and 0 <= value <= 1 + 1e-9
        progress = self.progress.after(min(value, 1.0)) if bounded and value is not None else self.progress
        return replace(self, ranker=ranker, progress=progress, short=self.short + (not best)), value


def for_clicks(ranker: Ranker, eta: float | str = 0.1, cut: int = 10) -> PDGD:
    """Return a learner from clicks that starts at the weights of any linear ranker."""
    model = ranker.model_
    if not isinstance(model, LinearModel):
        raise InputError(f"{type(ranker).__name__} is not linear: clicks are learned by linear models")
    clicking = PDGD(ranker.measure, eta=eta, cut=cut)
    clicking.model_, clicking.n_features_in_, clicking.n_queries_in_ = model, model.n_features, ranker.n_queries_in_
    clicking.learned_from_, clicking.counts_ = ranker.learned_from_, {"sampled": 0, "pages": 0, "pairs": 0}
    if (names := vars(ranker).get("feature_names_in_")) is not None:
        clicking.feature_names_in_ = names
    clicking._check_state()
    return clicking
