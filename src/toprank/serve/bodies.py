"""What clients send and get back: types that decode the bodies, and of which the OpenAPI description is made."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from ..data.documents import Documents, Features, Grade, Id, PathError

EVENTS = 1_000
"""Most events of one request."""

Positive = Annotated[int, Meta(ge=1)]


class BodyError(PathError):
    """A request that cannot be answered; `headers` go with the refusal."""

    def __init__(self, message: str, at: str | None = None, status: int = 422, **headers: str) -> None:
        super().__init__(message, at)
        self.status, self.headers = status, headers


class RefusedEvent(Exception):  # noqa: N818 - it says which one, and `error` what is wrong with it
    """An event of a request that cannot be learned: its place in the request, and why."""

    def __init__(self, place: int, error: BodyError) -> None:
        super().__init__(str(error))
        self.place, self.error = place, error


def require(fulfilled: object, message: str, at: str | None = None, status: int = 422, **headers: str) -> None:
    """Refuse a request unless this is fulfilled."""
    if not fulfilled:
        raise BodyError(message, at, status, **headers)


class Rank(Documents, kw_only=True):
    """What to rank; `explore` samples the ranking, so that clicks on it can be learned from."""

    top: Positive | None = None
    explain: bool = False
    explore: bool = False


class Feedback(Documents, kw_only=True):
    """What came of a ranking: grades (0 for documents without one), or clicks on a ranking that was sampled.

    Where the documents are sent again, `explore` says that `shown` is a page that was sampled.
    """

    event_id: Id
    ranking_id: Id | None = None
    labels: dict[str, Grade] | None = None
    clicks: list[Id] | None = None
    shown: list[Id] | None = None
    explore: bool = False


Events = Feedback | list[Feedback]


class Candidate(Struct):
    """A document of a rerank request; what else it holds is ignored."""

    features: Features


class Rerank(Struct):
    """The shape of Cohere's rerank; documents are objects with features."""

    documents: Annotated[list[Candidate | str], Meta(min_length=1, max_length=1000)]
    query: str = ""
    model: str = ""
    top_n: Positive | None = None


class Search(Struct, forbid_unknown_fields=True):
    """What to search the demo's library for; `explore` samples the ranking."""

    query: Annotated[str, Meta(min_length=1, max_length=500)]
    explore: bool = True


class Rollback(Struct, forbid_unknown_fields=True):
    """The version to go back to."""

    version: Annotated[int, Meta(ge=0)]


class Freeze(Struct, forbid_unknown_fields=True):
    """Whether learning stops."""

    frozen: bool = True


class Export(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What `toprank export` takes: the target, and a name and version for the model."""

    to: str
    name: str | None = None
    version: str | None = None
    feature_set: str | None = None
    store: str | None = None
    dialect: str | None = None
    table: str | None = None


class Ranked(Struct):
    """A document in its place."""

    id: str
    rank: int
    score: float
    contributions: dict[str, float] | UnsetType = UNSET
    summary: str | UnsetType = UNSET


class Ranking(Struct):
    """Documents, best first, and the version of the model that ranked them."""

    ranking_id: str
    version: int
    items: list[Ranked]


class Learned(Struct):
    """What became of an event; `measure` is that of the ranking before the step, null where there is none."""

    status: Literal["learned", "duplicate"]
    seq: int
    version: int
    measure: float | None = None


class Result(Struct):
    """A document by its index in the request."""

    index: int
    relevance_score: float


class Reranked(Struct):
    """Results, best first."""

    id: str
    results: list[Result]
    meta: dict[str, int]


class Problem(Struct, omit_defaults=True):
    """What is wrong, in one line, and where in the body."""

    error: str
    request_id: str = ""
    at: str | None = None


class Model(Struct):
    """The model as it is now."""

    version: int
    ranker: str
    learns: Literal["labels", "clicks", "nothing"]
    measure: str
    frozen: bool
    oldest_version: int
    n_features: int
    weights: dict[str, float] | None
    totals: dict[str, float]
    age_seconds: float | None
    """Of a replica: seconds since the other server last answered."""
