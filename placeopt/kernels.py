"""Hot loops written once: plain Python for small work, compiled by Numba for large.

A kernel is a plain function over arrays and numbers. `Kernel.select(work)` returns the function
itself, or the same function compiled. Importing Numba costs 0.15 s and the first call of a
process 0.2 s from its cache, so work that ordinary Python finishes sooner never pays for it.
The plain function is also the oracle that tests compare the compiled one with.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any, Generic, ParamSpec, TypeVar, cast

# Elementary steps (edges and (task, device) pairs visited) up to which plain Python is faster than
# loading compiled code: about 0.4 us a step against 0.4 s for import and cache.
COMPILE_ABOVE = 400_000

LEAN = {"_nrt": False, "forceinline": True}
"""Options of Numba for kernels that allocate nothing: no references counted (not documented), inlined where called."""

P = ParamSpec("P")
R = TypeVar("R")
_lock = threading.RLock()
_watchers: list[Callable[[bool], None]] = []


def watch_compiling(tell: Callable[[bool], None]) -> None:
    """Have `tell(True)` called whenever machine code is about to be made in this process, `tell(False)` once it is.

    Code that comes from the cache is not made. Numba is not loaded for it; what is compiled before the first kernel of
    the process is not told.
    """
    _watchers.append(tell)


@cache
def _listen() -> None:
    """Tell the watchers of every compilation from now on, and of those that it asks for itself as a part of it."""
    from numba.core import event

    depth = 0

    def tell(step: int) -> None:
        nonlocal depth  # of compilations in each other: Numba has one lock for all of them
        before, depth = depth, depth + step
        if 0 in (before, depth):
            for watcher in _watchers:
                watcher(depth > 0)

    class Listener(event.Listener):  # type: ignore[misc,unused-ignore]
        def on_start(self, event: Any) -> None:  # noqa: ARG002
            tell(1)

        def on_end(self, event: Any) -> None:  # noqa: ARG002
            tell(-1)

    event.register("numba:compile", Listener())  # type: ignore[no-untyped-call,unused-ignore]


class Kernel(Generic[P, R]):
    """A plain function and, once asked for, its compiled twin; see `kernel` for the arguments."""

    def __init__(
        self,
        function: Callable[P, R],
        calls: tuple[Callable[..., Any] | Kernel[..., Any], ...],
        options: dict[str, bool],
    ) -> None:
        self.plain = function
        self._calls = calls
        self._options = options
        self._compiled: dict[bool, Callable[P, R]] = {}
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the plain function."""
        return self.plain(*args, **kwargs)

    def select(self, work: float) -> Callable[P, R]:
        """The plain function when `work` (elementary steps) is small, else the compiled one."""
        return self.compiled() if work > COMPILE_ABOVE else self.plain

    def compiled(self) -> Callable[P, R]:
        """The function compiled by Numba; machine code is cached on disk where that is possible."""
        return self._twin(callable_from_python=True)

    def _twin(self, *, callable_from_python: bool) -> Callable[P, R]:
        if callable_from_python not in self._compiled:
            with _lock:
                if callable_from_python not in self._compiled:
                    self._compiled[callable_from_python] = self._compile(callable_from_python)
        return self._compiled[callable_from_python]

    def fingerprint(self) -> str:
        """A short hash of the function's code, how it is compiled, and the same of all it calls."""
        digest = hashlib.sha256(_code(self.plain) + repr(sorted(self._options.items())).encode())
        for call in self._calls:
            digest.update(call.fingerprint().encode() if isinstance(call, Kernel) else _code(call))
        return digest.hexdigest()[:8]

    def _compile(self, callable_from_python: bool) -> Callable[P, R]:
        from numba import njit

        _listen()
        plain = self.plain
        assert isinstance(plain, FunctionType)
        # Compiled code can only call compiled code: give a copy of the function the compiled twins
        # of the helpers it names.
        helpers = {
            call.__name__: call._twin(callable_from_python=False)
            if isinstance(call, Kernel)
            else _once(njit(nogil=True)(call))
            for call in self._calls
        }
        twin = FunctionType(plain.__code__, {**plain.__globals__, **helpers}, plain.__name__, plain.__defaults__)
        # Numba's cache looks at the function's own file alone: with the helpers' code in its name, a
        # change of theirs in another file is noticed too.
        name = f"{plain.__qualname__}_{self.fingerprint()}{'' if callable_from_python else '_inner'}"
        twin.__module__, twin.__qualname__ = plain.__module__, name
        # What takes tuples of arrays apart on the way from Python takes longer to compile than the loop itself: only
        # kernels that are called from there have it.
        wrappers = {"no_cfunc_wrapper": True, "no_cpython_wrapper": not callable_from_python}
        options: dict[str, Any] = {"nogil": True, **_known(self._options | wrappers)}
        try:
            compiled = njit(cache=True, **options)(twin)
        except RuntimeError:  # no writable place for the cache: compile anew in each process
            compiled = njit(**options)(twin)
        return cast(Callable[P, R], _once(compiled))


def _code(function: Callable[..., Any]) -> bytes:
    code = cast(FunctionType, function).__code__
    return code.co_code + repr((code.co_consts, code.co_names)).encode()


def _once(compiled: Any) -> Any:
    """Have a compiled function take a constant for what it is, a number.

    Where Numba meets f(-1), or f(i) with i = -1 before a loop, it compiles f for "the number -1" and again for numbers,
    and all that f calls: twice the time, thrice with two such arguments. (What is replaced is not documented.)
    """
    from numba.core.types import unliteral

    known = getattr(compiled, "get_call_template", None)
    if known is not None:
        plain: Callable[[Any], Any] = unliteral
        compiled.get_call_template = lambda args, kws: known(
            tuple(map(plain, args)), {name: plain(kind) for name, kind in kws.items()}
        )
    return compiled


def _known(options: dict[str, bool]) -> dict[str, bool]:
    """Those that Numba knows."""
    from numba.core.options import DefaultOptions

    return {name: value for name, value in options.items() if hasattr(DefaultOptions, name)}


def kernel(
    *calls: Callable[..., Any] | Kernel[..., Any], allocates: bool = True
) -> Callable[[Callable[P, R]], Kernel[P, R]]:
    """Decorator for a kernel.

    Parameters
    ----------
    *calls
        The functions that it calls by name: kernels, or plain functions that call nothing of ours.
    allocates
        False for a kernel that makes no array and returns none, and calls only such: it is compiled without counting
        references to the arrays that it takes, and inlined. A helper that takes tuples of twenty arrays and runs for
        every task spends most of its time on these otherwise: list scheduling takes a third of the time without.
    """
    return lambda function: Kernel(function, calls, {} if allocates else LEAN)
