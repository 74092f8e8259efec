"""Functions at an address, which compiled loops call without knowing them; those in plain Python are called back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np

from .._typing import Floats, Ints


@dataclass(frozen=True, eq=False)
class AtAddress:
    """A C function of lists, with its parameters; it belongs to this process and is not pickled."""

    function: Any
    """Its address, or what compiles it when `address` is asked for."""
    codes: Ints
    numbers: Floats
    raised: list[BaseException] = field(default_factory=list)
    """What a function in plain Python raised while compiled code called it."""
    owner: object = None
    """What must live as long as the address is used."""

    @cached_property
    def address(self) -> int:
        """Where the function is."""
        return self.function if isinstance(self.function, int) else int(self.function.address)

    @property
    def is_compiled(self) -> bool:
        """Whether the address was asked for."""
        return "address" in self.__dict__

    def check(self) -> None:
        """Raise what the function raised: compiled loops that call it cannot."""
        if self.raised:
            raise self.raised.pop()

    @classmethod
    def called_back(
        cls, kinds: str, ptr_at: int, out: tuple[int, ...], fn: Callable[[Floats, Floats, Ints], tuple[Any, ...]]
    ) -> Self:
        """Return a C function that calls fn(scores, y, ptr) and writes what it returns: values of lists, of documents.

        `kinds` are the arguments, letter by letter: floats, integers (both by pointer), a count. Scores and y come
        first, ptr at `ptr_at` with the number of lists behind it; the results go to the pointers at `out`.
        """
        import ctypes

        count = ctypes.c_int64
        letters: dict[str, Any] = {"f": ctypes.POINTER(ctypes.c_double), "i": ctypes.POINTER(count), "n": count}

        def call(*given: Any) -> int:
            lists = given[ptr_at + 1]
            ptr = np.ctypeslib.as_array(given[ptr_at], (lists + 1,)).copy()
            n = int(ptr[-1])
            s, y = (np.ctypeslib.as_array(part, (n,)).copy() if n else np.empty(0) for part in given[:2])
            try:
                for place, length, values in zip(out, (lists, n), fn(s, y, ptr), strict=False):
                    if length:
                        np.ctypeslib.as_array(given[place], (length,))[:] = values
            except BaseException as error:  # C cannot raise it
                raised.append(error)
                return 0
            return -1

        raised: list[BaseException] = []
        function: Any = ctypes.CFUNCTYPE(count, *(letters[kind] for kind in kinds))(call)
        address = ctypes.cast(function, ctypes.c_void_p).value
        return cls(int(address or 0), np.zeros(1, dtype=np.int64), np.zeros(1), raised, owner=function)
