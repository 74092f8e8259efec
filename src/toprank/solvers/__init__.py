"""How an objective is minimised; each solver is a value with its own settings.

>>> import toprank as tr
>>> tr.ListNet(solver=tr.solvers.MiniBatch(epochs=5, eta=0.05)).solver
MiniBatch(epochs=5, batch_size=16, eta=0.05, radius=None, average=True, random_state=0, watch=None, verbose=False)

Public names are listed in `__init__.pyi` and load on first use.
"""

from .._lazy import attach as _attach

_load, __all__ = _attach(__name__, __file__)


def __getattr__(name: str) -> object:
    value = globals()[name] = _load(name)
    return value


def __dir__() -> list[str]:
    return list(__all__)
