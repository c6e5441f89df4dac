"""Hot loops written once: run in plain Python for little work, compiled by Numba for much.

A kernel is a plain function over arrays, numbers and NamedTuples of these. `Kernel.select(work)` returns the function
itself or a `Choice`, which runs the compiled function as soon as it is loaded. Both compute the same; tests compare
them.

Compiling takes seconds, so it never happens in the process that solves: `placeopt.kernels.compilation` starts processes
that fill Numba's cache on disk, and plain Python runs meanwhile.

    structs       arguments of compiled kernels, and the types of a call
    lowering      how Numba reads a struct
    compilation   the queue of kernels to load or compile, and the processes that compile
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import cache, partial
from pathlib import Path
from types import FunctionType
from typing import Any, Generic, ParamSpec, TypeVar, cast

from placeopt.kernels.compilation import WaitingStoppedError as WaitingStoppedError
from placeopt.kernels.compilation import obtained, temporary_cache
from placeopt.kernels.structs import Signature, Struct, packed, unpacked

# When kernels are loaded and compiled; benchmarks/first_use.py measures the effect.
COMPILE_ABOVE = 400_000
"""Elementary steps (edges and (task, device) pairs visited) that take as long in plain Python, about 0.4 us each, as
importing Numba and loading a compiled kernel from disk, 0.2 s."""

LOAD_ABOVE = 150_000
"""The same if Numba is already imported."""

CALL_ABOVE = 250
"""The same if the kernel is loaded: packing the arguments takes as long as these steps."""

STEP = 6e-7
"""Approximate seconds of a step in plain Python."""

BRIEF = 0.3
"""Calls in an `impatient` block that take at most these seconds in plain Python do not wait for a kernel."""

COMPILING = 1.0, 3e-4
"""Approximate seconds to start a compiling process, and per byte of code of a kernel and its helpers."""

LEAN = {"_nrt": False}
"""Numba options of kernels that allocate nothing: no reference counting (undocumented)."""

INLINE = {"forceinline": True}
"""Numba options of helpers that are always inlined."""

P = ParamSpec("P")
R = TypeVar("R")
_lock = threading.RLock()


def _renew_lock() -> None:
    """Replace the lock after a fork: if another thread held it, it would stay locked."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)
_recorder: list[tuple[Kernel[Any, Any], Signature]] | None = None


@contextmanager
def recorded() -> Iterator[list[tuple[Kernel[Any, Any], Signature]]]:
    """List all kernel calls in the block with their signatures, and run them in plain Python.

    There is one recording at a time, of all threads.
    """
    global _recorder
    calls: list[tuple[Kernel[Any, Any], Signature]] = []
    _recorder = calls
    try:
        yield calls
    finally:
        _recorder = None


class Kernel(Generic[P, R]):
    """A plain function and its compiled version; see `kernel` for the arguments."""

    def __init__(
        self,
        function: Callable[P, R],
        calls: tuple[Callable[..., Any] | Kernel[..., Any], ...],
        options: dict[str, bool],
    ) -> None:
        self.plain = function
        self._calls = calls
        self._options = options
        self._twins: dict[bool, Any] = {}
        self._entries: dict[Signature, Callable[..., R]] = {}
        self._steps = 0.0
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__module__ = function.__module__

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the plain function."""
        return self.plain(*args, **kwargs)

    def select(self, work: float, *, chunked: bool = False, optional: bool = False) -> Callable[P, R]:
        """The plain function for little work, else a `Choice`.

        A kernel is loaded once its steps in plain Python have taken as long as loading takes.

        Parameters
        ----------
        work
            Elementary steps of all following calls.
        chunked
            Whether the work is done in many short calls, which never wait. A single call waits if compiling takes less
            time than plain Python.
        optional
            Whether the call may be skipped: it can be stopped in a `hurried` block.
        """
        if _recorder is not None:
            return cast(Callable[P, R], partial(self._record, _recorder))
        self._steps += work
        price = COMPILE_ABOVE if "numba" not in sys.modules else LOAD_ABOVE
        if work <= CALL_ABOVE or (not self._entries and self._steps <= price):
            return self.plain
        return cast(Callable[P, R], Choice(self, None if chunked else work * STEP, optional=optional))

    def compiled(self) -> Callable[P, R]:
        """The compiled function, compiled in this process at the first call with arguments of new types."""

        def run(*arguments: Any) -> R:
            signature, ready = packed(arguments)
            return (self._entries.get(signature) or self.load(signature))(*ready)

        return cast(Callable[P, R], run)

    def loaded(self, signature: Signature) -> Callable[..., R] | None:
        """The compiled function for packed arguments of these types, if it is loaded."""
        return self._entries.get(signature)

    def load(self, signature: Signature) -> Callable[..., R]:
        """The compiled function for packed arguments of these types, from the cache or compiled now."""
        from placeopt.kernels.lowering import numba_types

        with _lock:
            if signature not in self._entries:
                self._entries[signature] = self._twin(entry=True).compile(numba_types(signature))
        return self._entries[signature]

    def on_disk(self, signature: Signature) -> bool:
        """Whether the compiled function is in Numba's cache; False if unknown."""
        from placeopt.kernels.lowering import numba_types

        with _lock:
            twin = self._twin(entry=True)
        try:  # undocumented
            key = twin._cache._index_key(numba_types(signature), twin.targetctx.codegen())
            return key in twin._cache._cache_file._load_index()
        except AttributeError:
            return False

    def forget_disk(self) -> bool:
        """Empty Numba's cache of this kernel; return whether it succeeded."""
        with _lock:
            twin = self._twin(entry=True)
        try:  # undocumented
            twin._cache._cache_file.flush()
        except (AttributeError, OSError):
            return False
        return True

    def compile_seconds(self) -> float:
        """Approximate seconds to compile."""
        start, each = COMPILING
        return start + each * sum(len(_function(part).__code__.co_code) for part in self._parts())

    def _parts(self) -> set[Kernel[Any, Any] | Callable[..., Any]]:
        """The kernel and all functions that it calls."""
        found: set[Kernel[Any, Any] | Callable[..., Any]] = {self}
        for call in self._calls:
            found |= call._parts() if isinstance(call, Kernel) else {call}
        return found

    def fingerprint(self) -> str:
        """A short hash of the code and compiler options of the kernel and all functions that it calls."""
        digest = hashlib.sha256(_code(self.plain) + repr(sorted(self._options.items())).encode())
        digest.update(_lowering().encode())
        for call in self._calls:
            digest.update(call.fingerprint().encode() if isinstance(call, Kernel) else _code(call))
        return digest.hexdigest()[:8]

    def _record(self, calls: list[tuple[Kernel[Any, Any], Signature]], *arguments: Any) -> R:
        calls.append((self, packed(arguments)[0]))
        return cast(Callable[..., R], self.plain)(*unpacked(arguments))

    def _twin(self, *, entry: bool) -> Any:
        """The function under Numba's decorator; an `entry` can be called from Python."""
        with _lock:
            if entry not in self._twins:
                self._twins[entry] = self._decorated(entry)
            return self._twins[entry]

    def _decorated(self, entry: bool) -> Any:
        from numba import njit

        plain = self.plain
        assert isinstance(plain, FunctionType)
        # Compiled code can only call compiled code: this copy of the function refers to compiled helpers.
        helpers = {
            call.__name__: call._twin(entry=False) if isinstance(call, Kernel) else _once(njit(nogil=True)(call))
            for call in self._calls
        }
        twin = FunctionType(plain.__code__, {**plain.__globals__, **helpers}, plain.__name__, plain.__defaults__)
        # Numba's cache checks only the function's own file. The hash in the name also covers helpers in other files.
        name = f"{plain.__qualname__}_{self.fingerprint()}{'' if entry else '_inner'}"
        twin.__module__, twin.__qualname__ = plain.__module__, name
        wrappers = {"no_cfunc_wrapper": True, "no_cpython_wrapper": not entry}
        options: dict[str, Any] = {"nogil": True, **_supported(self._options | wrappers)}
        try:  # only entries are cached: they contain the code of their helpers
            decorated = njit(cache=entry, **options)(twin)
        except RuntimeError:  # no writable folder for the cache
            with temporary_cache():
                decorated = njit(cache=entry, **options)(twin)
        return _once(decorated)


_stop: ContextVar[Callable[[], bool] | None] = ContextVar("_stop", default=None)
_hurry: ContextVar[Callable[[], bool] | None] = ContextVar("_hurry", default=None)


def impatient(should_stop: Callable[[], bool]) -> AbstractContextManager[None]:
    """In the block, calls wait for their kernels if plain Python would take long, since it cannot be stopped.

    A waiting call raises WaitingStoppedError once `should_stop` is true.
    """
    return _during(_stop, should_stop)


def hurried(should_stop: Callable[[], bool]) -> AbstractContextManager[None]:
    """Like `impatient`, but only for `optional` calls."""
    return _during(_hurry, should_stop)


@contextmanager
def _during(variable: ContextVar[Callable[[], bool] | None], value: Callable[[], bool]) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


class Choice(Generic[P, R]):
    """Runs the compiled function of a kernel once it is loaded, and the plain function until then.

    `seconds` is the duration of all calls in plain Python, None for many short calls. `compiled` is whether the last
    call ran the compiled function.
    """

    def __init__(self, kernel: Kernel[P, R], seconds: float | None, *, optional: bool = False) -> None:
        self._kernel, self._seconds, self._optional = kernel, seconds, optional
        self.compiled = False

    def __call__(self, *arguments: Any) -> R:
        """Run the kernel."""
        signature, ready = packed(arguments)
        entry = self._kernel.loaded(signature)
        if entry is None:
            seconds, stop = self._seconds or 0.0, _stop.get()
            if stop is None and self._optional:
                stop = _hurry.get()
            wait = seconds > (self._kernel.compile_seconds() if stop is None else BRIEF)
            entry = obtained(self._kernel, signature, wait=wait, should_stop=stop)
        self.compiled = entry is not None
        if entry is None:
            return cast(Callable[..., R], self._kernel.plain)(*unpacked(arguments))
        return cast(R, entry(*ready))


def prepared(function: Callable[..., Any], value: Any) -> Any:
    """Pack a NamedTuple once for many calls of a function from `Kernel.select`.

    Packing takes about a microsecond per array. The arrays' entries may change between calls, but not the arrays.
    """
    return Struct(value) if isinstance(function, Choice) else value


def runs_compiled(function: Callable[..., Any]) -> bool:
    """Whether the last call of a function from `Kernel.select` ran compiled code."""
    return isinstance(function, Choice) and function.compiled


def _function(part: Kernel[Any, Any] | Callable[..., Any]) -> FunctionType:
    return cast(FunctionType, part.plain if isinstance(part, Kernel) else part)


def _code(function: Callable[..., Any]) -> bytes:
    code = _function(function).__code__
    return code.co_code + repr((code.co_consts, code.co_names)).encode()


@cache
def _lowering() -> str:
    """A hash of lowering.py, on which all compiled kernels depend."""
    return hashlib.sha256(Path(__file__).with_name("lowering.py").read_bytes()).hexdigest()


def _once(compiled: Any) -> Any:
    """Make Numba treat constant arguments of a compiled function as ordinary numbers.

    For f(-1), or f(i) with i = -1 before a loop, Numba compiles f, and all functions that f calls, once for the literal
    and again for numbers. This takes twice as long, or three times with two such arguments. (Replaces an undocumented
    method.)
    """
    from numba.core.types import unliteral  # type: ignore[attr-defined,unused-ignore]

    known = getattr(compiled, "get_call_template", None)
    if known is not None:
        plain: Callable[[Any], Any] = unliteral
        compiled.get_call_template = lambda args, kws: known(
            tuple(map(plain, args)), {name: plain(kind) for name, kind in kws.items()}
        )
    return compiled


def _supported(options: dict[str, bool]) -> dict[str, bool]:
    """The options that this version of Numba supports."""
    from numba.core.options import DefaultOptions

    return {name: value for name, value in options.items() if hasattr(DefaultOptions, name)}


def kernel(
    *calls: Callable[..., Any] | Kernel[..., Any], allocates: bool = True, inline: bool = False
) -> Callable[[Callable[P, R]], Kernel[P, R]]:
    """Decorator for a kernel.

    Parameters
    ----------
    *calls
        The functions that it calls: kernels, or plain functions that call no other functions of placeopt.
    allocates
        False for a kernel that neither creates nor returns an array, and calls only such kernels: it is compiled
        without reference counting.
    inline
        Whether the compiled kernel is always inlined. Short helpers of the hottest loops make list scheduling up to a
        third faster. Long helpers, or those with many callers, only make compiling several times slower.
    """
    return lambda function: Kernel(function, calls, ({} if allocates else LEAN) | (INLINE if inline else {}))
