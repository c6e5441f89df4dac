"""Hot loops written once: plain Python for small amounts of work, compiled by Numba for large ones.

A kernel is a plain function over arrays, numbers and NamedTuples of these. `Kernel.select(work)` returns the function
itself or a `Choice`, which runs the compiled function as soon as that is loaded. Tests compare the compiled function
with the plain one.

Compiling takes seconds, so it never happens in the process that solves: `placeopt.kernels.compilation` starts processes
that fill Numba's cache on disk, and plain Python runs meanwhile. Both compute the same.

    structs       arguments of compiled kernels, and the types of a call
    lowering      how Numba reads a struct
    compilation   the queue of kernels to load or compile, and the processes that compile
    worker        the code of such a process
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from pathlib import Path
from types import FunctionType
from typing import Any, Generic, ParamSpec, TypeVar, cast

from placeopt.kernels.compilation import WaitingStoppedError as WaitingStoppedError
from placeopt.kernels.compilation import obtained, temporary_cache
from placeopt.kernels.structs import Signature, Struct, packed, unpacked

COMPILE_ABOVE = 400_000
"""Elementary steps (edges and (task, device) pairs visited) that take as long in plain Python as importing Numba and
loading a compiled kernel from disk: about 0.4 us a step against 0.2 s."""

LOAD_ABOVE = 150_000
"""The same once Numba is imported."""

CALL_ABOVE = 250
"""The same once the kernel is loaded: laying out the arguments takes as long as these steps."""

STEP = 6e-7
"""Seconds of a step in plain Python, about."""

BRIEF = 0.3
"""Seconds of plain Python up to which a call that may be stopped does not wait for a kernel."""

COMPILING = 1.0, 3e-4
"""Seconds to start a process that compiles, and for each byte of a kernel's code and its helpers', about."""

LEAN = {"_nrt": False}
"""Options of Numba for kernels that allocate nothing: references are not counted (not documented)."""

INLINE = {"forceinline": True}
"""Options of Numba for helpers that are inlined wherever they are called."""

P = ParamSpec("P")
R = TypeVar("R")
_lock = threading.RLock()


def _renew_lock() -> None:
    """A lock that another thread held at a fork stays locked in the child."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)
_recorder: list[tuple[Kernel[Any, Any], Signature]] | None = None


@contextmanager
def recorded() -> Iterator[list[tuple[Kernel[Any, Any], Signature]]]:
    """Every kernel that is selected inside, with the signatures of its calls; all of them run in plain Python.

    One recording at a time, of all threads.
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

        A kernel is loaded once its steps in plain Python have taken as long as loading it does.

        Parameters
        ----------
        work
            Elementary steps of all calls to come.
        chunked
            Whether they are many short calls. Such a call never waits, and later ones run the compiled kernel. A
            single call that does all the work waits if compiling takes less time than plain Python.
        optional
            Whether the caller can do without the call: inside `hurried` it raises `WaitingStoppedError` instead of
            waiting.
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
        """The compiled function for packed arguments of these types, if it is in this process."""
        return self._entries.get(signature)

    def load(self, signature: Signature) -> Callable[..., R]:
        """The compiled function for packed arguments of these types, from the disk or compiled now."""
        from placeopt.kernels.lowering import numba_types

        with _lock:
            if signature not in self._entries:
                self._entries[signature] = self._twin(entry=True).compile(numba_types(signature))
        return self._entries[signature]

    def on_disk(self, signature: Signature) -> bool:
        """Whether the compiled function is in Numba's cache; False if Numba does not say."""
        from placeopt.kernels.lowering import numba_types

        with _lock:
            twin = self._twin(entry=True)
        try:  # none of this is documented
            key = twin._cache._index_key(numba_types(signature), twin.targetctx.codegen())
            return key in twin._cache._cache_file._load_index()
        except AttributeError:
            return False

    def forget_disk(self) -> bool:
        """Empty Numba's cache of this kernel; whether that could be done."""
        with _lock:
            twin = self._twin(entry=True)
        try:  # not documented
            twin._cache._cache_file.flush()
        except (AttributeError, OSError):
            return False
        return True

    def compile_seconds(self) -> float:
        """How long it takes to compile, about."""
        start, each = COMPILING
        return start + each * sum(len(_function(part).__code__.co_code) for part in self._parts())

    def _parts(self) -> set[Kernel[Any, Any] | Callable[..., Any]]:
        """The kernel and all that it calls."""
        found: set[Kernel[Any, Any] | Callable[..., Any]] = {self}
        for call in self._calls:
            found |= call._parts() if isinstance(call, Kernel) else {call}
        return found

    def fingerprint(self) -> str:
        """A short hash of the function's code, how it is compiled, and the same of all it calls."""
        digest = hashlib.sha256(_code(self.plain) + repr(sorted(self._options.items())).encode())
        digest.update(_lowering().encode())
        for call in self._calls:
            digest.update(call.fingerprint().encode() if isinstance(call, Kernel) else _code(call))
        return digest.hexdigest()[:8]

    def _record(self, calls: list[tuple[Kernel[Any, Any], Signature]], *arguments: Any) -> R:
        calls.append((self, packed(arguments)[0]))
        return cast(Callable[..., R], self.plain)(*unpacked(arguments))

    def _twin(self, *, entry: bool) -> Any:
        """The function with its helpers under Numba's decorator; as an `entry`, it can be called from Python."""
        with _lock:
            if entry not in self._twins:
                self._twins[entry] = self._decorated(entry)
            return self._twins[entry]

    def _decorated(self, entry: bool) -> Any:
        from numba import njit

        plain = self.plain
        assert isinstance(plain, FunctionType)
        # Compiled code can only call compiled code: in this copy of the function, the names of helpers stand for
        # their compiled versions.
        helpers = {
            call.__name__: call._twin(entry=False) if isinstance(call, Kernel) else _once(njit(nogil=True)(call))
            for call in self._calls
        }
        twin = FunctionType(plain.__code__, {**plain.__globals__, **helpers}, plain.__name__, plain.__defaults__)
        # Numba's cache only checks the function's own file. The name holds a hash of the helpers' code, so that it also
        # notices a change of a helper in another file.
        name = f"{plain.__qualname__}_{self.fingerprint()}{'' if entry else '_inner'}"
        twin.__module__, twin.__qualname__ = plain.__module__, name
        wrappers = {"no_cfunc_wrapper": True, "no_cpython_wrapper": not entry}
        options: dict[str, Any] = {"nogil": True, **_supported(self._options | wrappers)}
        try:  # helpers are in the machine code of the kernels that call them
            decorated = njit(cache=entry, **options)(twin)
        except RuntimeError:  # no writable place for the cache
            with temporary_cache():
                decorated = njit(cache=entry, **options)(twin)
        return _once(decorated)


_stop: ContextVar[Callable[[], bool] | None] = ContextVar("_stop", default=None)
_hurry: ContextVar[Callable[[], bool] | None] = ContextVar("_hurry", default=None)


@contextmanager
def impatient(should_stop: Callable[[], bool]) -> Iterator[None]:
    """Inside the block, a call waits for its kernel if plain Python, which cannot be stopped, would take long.

    Raises
    ------
    WaitingStoppedError
        Raised by a call that waits, once `should_stop` is true.
    """
    token = _stop.set(should_stop)
    try:
        yield
    finally:
        _stop.reset(token)


@contextmanager
def hurried(should_stop: Callable[[], bool]) -> Iterator[None]:
    """As `impatient`, for calls that are `optional` alone."""
    token = _hurry.set(should_stop)
    try:
        yield
    finally:
        _hurry.reset(token)


class Choice(Generic[P, R]):
    """Runs a kernel's compiled function once that is loaded, and its plain function until then.

    `seconds` is how long all calls take in plain Python, None for many short calls. `compiled` is whether the last call
    ran the compiled function.
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
    """A NamedTuple as an argument of many calls of what `Kernel.select` returned: laid out once where that pays.

    Laying out takes about a microsecond for each array. Arrays may change between calls, but not be exchanged.
    """
    return Struct(value) if isinstance(function, Choice) else value


def runs_compiled(function: Callable[..., Any]) -> bool:
    """Whether the last call of what `Kernel.select` returned ran compiled code."""
    return isinstance(function, Choice) and function.compiled


def _function(part: Kernel[Any, Any] | Callable[..., Any]) -> FunctionType:
    return cast(FunctionType, part.plain if isinstance(part, Kernel) else part)


def _code(function: Callable[..., Any]) -> bytes:
    code = _function(function).__code__
    return code.co_code + repr((code.co_consts, code.co_names)).encode()


@cache
def _lowering() -> str:
    """A hash of how structs are read: a change of it changes every kernel."""
    return hashlib.sha256(Path(__file__).with_name("lowering.py").read_bytes()).hexdigest()


def _once(compiled: Any) -> Any:
    """Have Numba treat constants in calls of a compiled function as ordinary numbers.

    For f(-1), or f(i) with i = -1 before a loop, Numba compiles f, and all that f calls, for the literal -1 and again
    for numbers. That doubles the time, and triples it with two such arguments. (The method replaced is not documented.)
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
    """The options that this version of Numba knows."""
    from numba.core.options import DefaultOptions

    return {name: value for name, value in options.items() if hasattr(DefaultOptions, name)}


def kernel(
    *calls: Callable[..., Any] | Kernel[..., Any], allocates: bool = True, inline: bool = False
) -> Callable[[Callable[P, R]], Kernel[P, R]]:
    """Decorator for a kernel.

    Parameters
    ----------
    *calls
        The functions that it calls by name: kernels, or plain functions that call nothing of ours.
    allocates
        False for a kernel that neither makes nor returns an array, and calls only such kernels: it is compiled without
        counting references to arrays.
    inline
        Whether the compiled kernel is inlined wherever a kernel calls it, however long it is. For short helpers of the
        hottest loops: list scheduling takes up to a third less time. Inlining what is long, or called from many
        places, makes compiling several times as slow and the kernel no faster.
    """
    return lambda function: Kernel(function, calls, ({} if allocates else LEAN) | (INLINE if inline else {}))
