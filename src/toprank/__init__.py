"""Learning to rank that optimises the measure you are judged by, and certifies it.

Public names are listed in `__init__.pyi` and load on first use.
"""

from ._lazy import attach as _attach
from ._version import __version__ as __version__

_load, __all__ = _attach(__name__, __file__)


def __getattr__(name: str) -> object:
    value = globals()[name] = _load(name)
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
