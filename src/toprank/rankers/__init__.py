"""Estimators with a scikit-learn face; each loads on first use, so that a model file can be scored without them."""

from .._lazy import attach as _attach

_load, __all__ = _attach(__name__, __file__)


def __getattr__(name: str) -> object:
    value = globals()[name] = _load(name)
    return value


def __dir__() -> list[str]:
    return [*__all__]
