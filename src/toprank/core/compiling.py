"""How numba is kept from doing the same work again: most of the time of a first start is its own.

Nothing here changes what kernels compute, and nothing but the numbers of functions stays changed in numba once a kernel
is compiled.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from numba.core.bytecode import FunctionIdentity
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.targetconfig import ConfigStack
from numba.core.typed_passes import NopythonRewrites
from numba.core.types import functions
from numba.core.untyped_passes import InlineClosureLikes

_Functions: Any = functions.BaseFunction
_plain = _Functions.get_call_type
_AnyCompiler: Any = Compiler
_plain_start = _AnyCompiler.__init__


def number_apart() -> None:
    """Begin to number functions where no other process does.

    numba calls a helper by its name, the types of its arguments and this number, and of equal names in kernels that are
    loaded from disk the first one serves all. Where every process began at 1, a sort of numbers was taken for one of
    places: RankBoost learned nonsense after AdaRank had been loaded.
    """
    FunctionIdentity._unique_ids = count(int.from_bytes(os.urandom(7), "big"))


number_apart()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=number_apart)


@contextmanager
def compiling(cache: Any) -> Iterator[None]:
    """Compile meanwhile without looks for garbage, an eighth of the time, and with types found once, a tenth.

    Whatever `KernelCompiler` does not compile is a helper of the kernel: its machine code would be a fifth of the time.
    """
    with global_compiler_lock:
        outermost = _Functions.get_call_type is _plain  # one kernel may call another
        collecting = outermost and gc.isenabled()
        if outermost:
            gc.disable()
            _Functions.get_call_type = _remembering()
            _AnyCompiler.__init__ = _start_inner
        try:
            yield
        finally:
            cache.release()
            if outermost:
                _Functions.get_call_type = _plain
                _AnyCompiler.__init__ = _plain_start
            if collecting:
                gc.enable()


def _remembering() -> Any:
    """Return numba's way to type a call, which tries every known form of a function at each place, with a memory."""
    known: dict[Any, Any] = {}

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        flags = ConfigStack.top_or_none()  # which arithmetic is allowed; kept below, so that its id stays its own
        key = self, context, tuple(args), tuple(kws.items()), id(flags)
        if key not in known:
            known[key] = _plain(self, context, args, kws), flags
        return known[key][0]

    return get_call_type


class _Kernel(JITCodeLibrary):  # type: ignore[misc]
    """Code that is optimised once, with all that goes into it: numba would look at each function by itself before."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout


class _GoesIntoOthers(_Kernel):
    """Code that is optimised inside the kernels that it goes into, and never runs by itself."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Say that there is nothing to run."""
        return 0

    @property
    def codegen(self) -> Any:
        """What numba tells the environment of code that runs."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Nothing runs here."""


class InnerCompiler(Compiler):  # type: ignore[misc]
    """Compiles a helper of kernels, and spares what no kernel of ours has: closures, sums of whole arrays."""

    def __init__(self, typing: Any, target: Any, library: Any, *others: Any) -> None:
        _start_inner(self, typing, target, library, *others)

    def define_pipelines(self) -> list[Any]:
        """Return numba's list of passes without two of them, a fifteenth of the time of compiling."""
        pipelines: list[Any] = super().define_pipelines()
        for pipeline in pipelines:
            pipeline.passes = [
                each for each in pipeline.passes if each[0] not in (InlineClosureLikes, NopythonRewrites)
            ]
        return pipelines


class KernelCompiler(InnerCompiler):
    """Compiles a kernel into machine code."""

    def __init__(self, typing: Any, target: Any, library: Any, *others: Any) -> None:
        _plain_start(self, typing, target, library, *others)
        self.state.library = _Kernel(self.state.targetctx.codegen(), "kernel")
        self.state.library.enable_object_caching()


def _start_inner(self: Any, typing: Any, target: Any, library: Any, *others: Any) -> None:
    """Begin to compile a helper of a kernel, ours or numba's own, whose machine code is left to the kernel."""
    _plain_start(self, typing, target, library, *others)
    self.state.library = _GoesIntoOthers(self.state.targetctx.codegen(), "inner")
