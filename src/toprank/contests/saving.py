"""What a contest learned, as files: each winner in the form that can be loaded, served and exported."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._files import replacing
from ..errors import InputError
from ..rankers.base import Ranker

if TYPE_CHECKING:
    from .base import Contest


def save_winners(contest: Contest, folder: str | os.PathLike[str]) -> tuple[list[str], list[str]]:
    """Write every winner into a folder; return the files, and for each that has no file the reason.

    A ranker of ours becomes a model file (`toprank.load`, `toprank serve`). LightGBM's, XGBoost's and CatBoost's
    estimators are written in formats of their own that `toprank export` reads too. A pipeline of scalers and
    a linear model becomes a toprank-linear file. Pickle is not written: what remains can be saved by its own library.
    """
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise InputError(f"{target} is a file: name a folder for the models")
    target.mkdir(parents=True, exist_ok=True)
    written, left = [], []
    for entrant in contest.entrants:
        for number, model in enumerate(entrant.rankers, 1):
            fold = f"-fold{number}" if len(entrant.rankers) > 1 else ""
            stem = re.sub(r"[^\w.+-]+", "-", entrant.name)
            try:
                written.append(str(save_model(model, target / f"{stem}{fold}")))
            except InputError as error:
                left.append(f"{entrant.name} was not saved: {error}")
                break
    return written, left


def save_model(model: Any, stem: Path) -> Path:
    """Write one model beside `stem`, with the ending of its format, and return the file."""
    if isinstance(model, Ranker):
        path = stem.with_name(f"{stem.name}.json")
        model.save(path)
        return path
    native = _native(model)
    if native is not None:
        ending, write = native
        path = stem.with_name(f"{stem.name}{ending}")
        with replacing(path) as draft:
            write(str(draft))
        return path
    from ..export import write

    path = stem.with_name(f"{stem.name}.json")
    try:
        write(model, path, "json")
    except InputError:
        raise InputError(
            f"{type(model).__name__} has no format but pickle, which runs code when it is read: it is in "
            "contest.entrant(...).rankers, and its own library can save it"
        ) from None
    return path


def _native(model: Any) -> tuple[str, Any] | None:
    """Return the ending and the writer of another library's own format; None where it has none."""
    package = type(model).__module__.partition(".")[0]
    if package == "lightgbm":
        booster = getattr(model, "booster_", model)
        return ".txt", booster.save_model
    if package == "xgboost":
        return ".ubj", lambda path: Path(path).write_bytes(_xgboost_bytes(model))
    if package == "catboost":
        return ".json", lambda path: model.save_model(path, format="json")
    return None


def _xgboost_bytes(model: Any) -> bytes:
    """Return XGBoost's file of the rounds that the estimator scores with."""
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    stops = hasattr(model, "get_params") and model.get_params().get("early_stopping_rounds")
    booster = booster[: model.best_iteration + 1] if stops else booster
    return bytes(booster.save_raw("ubj"))
