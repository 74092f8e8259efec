"""What rankers use of scikit-learn's BaseEstimator, typed: the package itself carries no types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:

    class BaseEstimator:
        """Parameters by name, printing, cloning."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Return the parameters by name."""

        def set_params(self, **params: Any) -> Self:
            """Set parameters by name."""

        @classmethod
        def _get_param_names(cls) -> list[str]: ...

        def __sklearn_tags__(self) -> Any: ...

else:
    from sklearn.base import BaseEstimator

__all__ = ["BaseEstimator"]
