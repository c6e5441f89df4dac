"""Kernels: arguments as structs, the choice between plain and compiled code, processes that compile, and warming."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from placeopt.simulation.loops import run_fifo
from placeopt_solvers._local_search.windows import walk
from placeopt_solvers._starts.warm_start import best_start
from typer.testing import CliRunner

import placeopt as po
from placeopt import kernels
from placeopt.cli.app import app
from placeopt.generate.layered_graphs import layered_problem
from placeopt.kernels import Choice, Kernel, WaitingStoppedError, compilation, hurried, impatient, kernel, recorded
from placeopt.kernels.structs import Signature, Struct, packed
from placeopt.model.arrays import Bool, Float, Int
from placeopt.solver import Options
from placeopt.solving import warming

LOCAL = Path(__file__).parents[1]


class Inner(NamedTuple):
    flags: Bool
    weight: float


class Outer(NamedTuple):
    table: Int
    inner: Inner
    prices: Float
    count: int
    port: bool


@kernel(allocates=False)
def halved(inner: Inner, k: int) -> float:
    return inner.weight / 2 if inner.flags[k] else 0.0


@kernel(halved, allocates=False)
def mixed(outer: Outer, extra: Int, k: int) -> float:
    """Reads every kind of field, and writes to two arrays."""
    total = halved(outer.inner, k)
    for i in range(outer.table.shape[0]):
        for j in range(outer.table.shape[1]):
            total += outer.table[i, j] * outer.prices[j]
            outer.table[i, j] += outer.count
    for i in range(len(extra)):
        extra[i] += 1
        total += extra[i]
    return total if outer.port else -total


def outer() -> Outer:
    table = np.arange(6, dtype=np.int64).reshape(2, 3)
    return Outer(table, Inner(np.array([False, True]), 3.0), np.array([1.0, 0.5, 2.0]), 7, True)


class TestStructs:
    def test_compiled_code_reads_and_writes_what_plain_code_does(self) -> None:
        plain, compiled = outer(), outer()
        first, second = np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.int64)
        for k in (0, 1):
            assert mixed.plain(plain, first, k) == mixed.compiled()(compiled, second, k)
        plain, compiled = plain._replace(port=False), compiled._replace(port=False)
        assert mixed.plain(plain, first, 1) == mixed.compiled()(compiled, second, 1)
        assert plain.table.tolist() == compiled.table.tolist()
        assert first.tolist() == second.tolist()

    def test_read_only_and_strided_arrays(self) -> None:
        given = outer()
        given.prices.flags.writeable = False
        strided = np.zeros(6, dtype=np.int64)[::2]
        assert mixed.compiled()(given, strided, 1) == mixed.plain(outer(), np.zeros(3, dtype=np.int64), 1)
        assert strided.tolist() == [1, 1, 1]

    def test_signatures(self) -> None:
        signature, _ = packed((outer(), np.zeros(4)[::2], 3, 0.5, np.bool_(True)))
        assert signature[0] == (
            f"{__name__}:Outer",
            (
                ("table", ("l", 2, "C")),
                ("inner", (f"{__name__}:Inner", (("flags", ("?", 1, "C")), ("weight", "float64")))),
                ("prices", ("d", 1, "C")),
                ("count", "int64"),
                ("port", "bool"),
            ),
        )
        assert signature[1:] == (("d", 1, "A"), "int64", "float64", "bool")

    def test_fields_are_not_copied_silently(self) -> None:
        with pytest.raises(TypeError, match=r"Outer.table is not C-contiguous"):
            Struct(outer()._replace(table=np.zeros((3, 2), dtype=np.int64).T))
        with pytest.raises(TypeError, match=r"not list"):
            Struct(outer()._replace(table=[1, 2]))


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[compilation._Queue]:
    """A queue of jobs for one test, whose processes are not started."""
    queue = compilation._Queue()
    monkeypatch.setattr(compilation, "_queue", queue)
    yield queue
    queue.closed = True


def fresh(monkeypatch: pytest.MonkeyPatch, part: Kernel[Any, Any]) -> Kernel[Any, Any]:
    """The kernel as a process that has just started knows it."""
    monkeypatch.setattr(part, "_entries", {})
    monkeypatch.setattr(part, "_steps", 0.0)
    return part


class TestChoice:
    def test_little_work_is_done_in_plain_python(self, monkeypatch: pytest.MonkeyPatch) -> None:
        part = fresh(monkeypatch, mixed)
        assert part.select(100) is part.plain
        assert part.select(kernels.LOAD_ABOVE - 100) is part.plain

    def test_steps_add_up_until_loading_pays(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import numba  # noqa: F401

        part = fresh(monkeypatch, mixed)
        chosen = [part.select(kernels.LOAD_ABOVE // 3) is part.plain for _ in range(5)]
        assert chosen == [True, True, True, False, False]

    def test_what_is_loaded_is_used_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        part = fresh(monkeypatch, mixed)
        arguments = outer(), np.zeros(3, dtype=np.int64), 1
        part.compiled()(*arguments)
        run = part.select(kernels.CALL_ABOVE + 1)
        assert isinstance(run, Choice)
        assert run(*arguments) == mixed.plain(outer()._replace(table=arguments[0].table - 7), arguments[1] - 1, 1)
        assert run.compiled
        assert part.select(kernels.CALL_ABOVE) is part.plain

    def test_short_calls_never_wait(self, monkeypatch: pytest.MonkeyPatch, alone: compilation._Queue) -> None:
        part = fresh(monkeypatch, mixed)
        held = threading.Event()
        monkeypatch.setattr(Kernel, "on_disk", lambda *_: held.is_set())
        monkeypatch.setattr(alone, "_compiled", lambda _, worker: held.wait(10) and worker)
        run = part.select(1e12, chunked=True)
        assert isinstance(run, Choice)
        assert run(outer(), np.zeros(3, dtype=np.int64), 1) == mixed.plain(outer(), np.zeros(3, dtype=np.int64), 1)
        assert not run.compiled
        held.set()
        assert compilation.wait(60)
        run(outer(), np.zeros(3, dtype=np.int64), 1)
        assert run.compiled

    def test_waiting_ends_when_told_to(self, monkeypatch: pytest.MonkeyPatch, alone: compilation._Queue) -> None:
        part = fresh(monkeypatch, mixed)
        monkeypatch.setattr(Kernel, "on_disk", lambda *_: False)
        held = threading.Event()
        monkeypatch.setattr(alone, "_compiled", lambda _, worker: held.wait(10) and worker)
        with impatient(lambda: True), pytest.raises(WaitingStoppedError):
            part.select(1e12)(outer(), np.zeros(3, dtype=np.int64), 1)
        held.set()

    def test_a_kernel_that_cannot_be_compiled_runs_in_plain_python(
        self, monkeypatch: pytest.MonkeyPatch, alone: compilation._Queue
    ) -> None:
        part = fresh(monkeypatch, mixed)
        monkeypatch.setattr(Kernel, "on_disk", lambda *_: False)

        def refuse(*_: object) -> None:
            raise OSError("no more processes")

        monkeypatch.setattr(alone, "_compiled", refuse)
        run = part.select(1e12)  # would wait for it
        assert run(outer(), np.zeros(3, dtype=np.int64), 1) == mixed.plain(outer(), np.zeros(3, dtype=np.int64), 1)
        (job,) = alone.jobs.values()
        assert job.error == "OSError: no more processes"

    def test_a_cache_that_cannot_be_read(self, monkeypatch: pytest.MonkeyPatch, alone: compilation._Queue) -> None:
        part = fresh(monkeypatch, mixed)

        def broken(*_: object) -> bool:
            raise EOFError("ran out of input")

        monkeypatch.setattr(Kernel, "on_disk", broken)
        for chunked in (False, True):
            run = part.select(1e12, chunked=chunked)
            assert run(outer(), np.zeros(3, dtype=np.int64), 1) == mixed.plain(outer(), np.zeros(3, dtype=np.int64), 1)
            assert compilation.wait(10)
            (job,) = alone.jobs.values()
            assert job.error == "EOFError: ran out of input"
            alone.jobs.clear()

    def test_an_optional_call_does_not_wait_in_a_hurry(
        self, monkeypatch: pytest.MonkeyPatch, alone: compilation._Queue
    ) -> None:
        part = fresh(monkeypatch, mixed)
        monkeypatch.setattr(Kernel, "on_disk", lambda *_: False)
        held = threading.Event()
        monkeypatch.setattr(alone, "_compiled", lambda _, worker: held.wait(10) and worker)
        with hurried(lambda: True), pytest.raises(WaitingStoppedError):
            part.select(1e12, optional=True)(outer(), np.zeros(3, dtype=np.int64), 1)
        held.set()


class TestQueue:
    def jobs(self, count: int) -> list[compilation.Job]:
        """Jobs of one kernel, whose order nothing but their numbers decides."""
        return [compilation.Job(mixed, (f"signature {number}",)) for number in range(count)]

    def test_as_many_kernels_at_a_time_as_there_are_cores(self, monkeypatch: pytest.MonkeyPatch) -> None:
        queue = compilation._Queue()
        queue.most = 2
        both = threading.Barrier(2, timeout=10)
        monkeypatch.setattr(queue, "load", lambda _: False)
        monkeypatch.setattr(queue, "_compiled", lambda _, worker: (both.wait(), worker)[1])
        jobs = self.jobs(4)
        for job in jobs:  # the second comes while the first is being compiled
            queue.put(job)
        for job in jobs:
            assert job.done.wait(10)
            assert job.error == "it was compiled, and is not in Numba's cache"  # no broken barrier
        assert queue.lanes <= 2

    def test_a_job_that_comes_as_a_thread_gives_up_is_done(self, monkeypatch: pytest.MonkeyPatch) -> None:
        queue = compilation._Queue()
        queue.most = queue.lanes = 1
        (job,) = self.jobs(1)

        def timeout(_: float) -> bool:
            assert queue.idle == 1
            queue.put(job)
            return False

        monkeypatch.setattr(queue.changed, "wait", timeout)
        assert queue._next() is job
        assert (queue.lanes, queue.idle) == (1, 0)


class TestProcesses:
    @pytest.mark.parametrize("ending", ["nbi", "nbc"])
    def test_a_damaged_cache_is_compiled_anew(self, tmp_path: Path, ending: str) -> None:
        code = (
            "import numpy as np\n"
            "from placeopt.kernels import compilation\n"
            "from placeopt.model.tiers import TierArrays, swap_time\n"
            "ones = np.ones((1, 2), dtype=np.int64)\n"
            "arguments = TierArrays(ones[0], ones, ones, ones), 0, 5\n"
            "run = swap_time.select(1e9)\n"
            "run(*arguments)\n"
            "print(run.compiled, [job.error for job in compilation._queue.jobs.values()])\n"
        )
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        for damage in (False, True):
            for path in tmp_path.rglob(f"*.{ending}") if damage else ():
                path.write_bytes(path.read_bytes()[:70])
            done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
            assert (done.stdout.strip(), done.stderr) == ("True [None]", "")

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
    def test_a_fork_can_load_while_its_parent_loads(self) -> None:
        code = (
            "import os, threading\n"
            "from placeopt import kernels\n"
            "from placeopt.kernels import compilation\n"
            "held, leave = threading.Event(), threading.Event()\n"
            "def load():\n"
            "    with kernels._lock:\n"
            "        held.set()\n"
            "        leave.wait()\n"
            "threading.Thread(target=load).start()\n"
            "held.wait()\n"
            "child = os.fork()\n"
            "if not child:\n"
            "    os._exit(0 if kernels._lock.acquire(timeout=0.1) else 1)\n"
            "print(os.waitpid(child, 0)[1])\n"
            "leave.set()\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert (done.stdout.strip(), done.stderr) == ("0", "")

    def test_a_kernel_is_compiled_elsewhere_and_loaded_here(self, tmp_path: Path) -> None:
        code = (
            "import numpy as np, placeopt as po\n"
            "from placeopt.kernels import compilation\n"
            "from placeopt.model.tiers import TierArrays, swap_time\n"
            "ones = np.ones((1, 2), dtype=np.int64)\n"
            "arguments = TierArrays(ones[0], ones, ones, ones), 0, 5\n"
            "run = swap_time.select(1e9, chunked=True)\n"
            "run(*arguments)\n"
            "first = run.compiled\n"
            "assert compilation.wait(60)\n"
            "run(*arguments)\n"
            "print(first, run.compiled, compilation.seconds() > 0, compilation.pending())\n"
        )
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        for expected in ("False True True 0", "True True False 0"):  # the second process finds it on the disk
            done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
            assert (done.stdout.strip(), done.stderr) == (expected, "")

    def test_without_a_writable_cache(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import numba

        usual, folders = numba.njit, []

        def refusing(*arguments: Any, **options: Any) -> Any:
            if options.get("cache"):
                folders.append(numba.config.CACHE_DIR)
                if "placeopt-kernels-" not in folders[-1]:
                    raise RuntimeError("cannot cache function: no locator available")  # what Numba says
            return usual(*arguments, **options)

        monkeypatch.setattr(numba, "njit", refusing)
        monkeypatch.setattr(halved, "_twins", {})
        assert "placeopt-kernels-" in halved._twin(entry=True)._cache.cache_path
        assert len(folders) == 2
        assert folders[0] == numba.config.CACHE_DIR

    def test_a_worker_refuses_what_is_not_the_kernel(self, tmp_path: Path) -> None:
        requests = (
            '{"kernel": "placeopt.model.tiers:swap_time", "signature": "()", "fingerprint": "00000000"}\n'
            '{"kernel": "placeopt.model.tiers:np", "signature": "()", "fingerprint": "00000000"}\n'
            '{"kernel": "no.such.module:np", "signature": "()", "fingerprint": "00000000"}\n'
        )
        done = subprocess.run(
            [sys.executable, "-c", "from placeopt.kernels.compilation import serve; serve()"],
            input=requests, capture_output=True, text=True, cwd=tmp_path,
        )  # fmt: skip
        assert done.stdout.splitlines() == [
            '{"error": "placeopt.model.tiers:swap_time is not the requested kernel"}',
            '{"error": "placeopt.model.tiers:np is not the requested kernel"}',
            '{"error": "ModuleNotFoundError: No module named \'no\'"}',
        ]

    def test_nothing_is_compiled_for_small_problems(self) -> None:
        code = (
            "import sys, placeopt as po\n"
            "from placeopt.kernels import compilation\n"
            "po.solve(po.load(sys.argv[1]), 'heft')\n"
            "print('numba' in sys.modules, len(compilation._queue.jobs))\n"
        )
        problem = LOCAL.parent / "problems" / "heft-10.yaml"
        done = subprocess.run([sys.executable, "-c", code, str(problem)], capture_output=True, text=True)
        assert (done.stdout.strip(), done.stderr) == ("False 0", "")


class TestResults:
    def test_compiling_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        seconds = iter((10.0, 14.5))
        monkeypatch.setattr(compilation, "seconds", lambda: next(seconds))
        result = po.solve(layered_problem(5, 2), "heft")
        assert result.wall_time.compiling == 4.5
        assert result.to_dict()["wall_time"]["compiling"] == 4.5
        assert "plain Python ran while kernels were compiled" in result.summary()

    def test_what_varies_is_told(self) -> None:
        problem = layered_problem(40, 3, ccr=1.0)
        settled = po.solve(problem, "annealing", workers=1, rounds=200)
        assert (settled.repeatable, settled.varies_by, settled.to_dict()["repeatable"]) == (True, "", True)
        assert "repeatable" not in settled.summary()
        cut = po.solve(problem, "annealing", workers=1, rounds=10**9, time_limit=0.3)
        assert (cut.repeatable, cut.varies_by, cut.to_dict()["varies_by"]) == (False, "clock", "clock")
        assert "repeatable   no: the time limit ended the run" in cut.summary()
        raced = po.solve(problem, "annealing", workers=2, rounds=200)
        assert raced.varies_by == "threads"
        assert "with --workers 1, the same seed gives the same schedule" in raced.summary()

    def test_planned_work_does_not_depend_on_what_came_before(self) -> None:
        assert Options(time_limit=3.0).planned_seconds == 3.0
        assert Options(time_limit=2.9, nominal_limit=3.0).planned_seconds == 3.0
        assert Options().planned_seconds is None


class TestWarming:
    def test_covers_what_solvers_call(self) -> None:
        """Kernels that larger and other problems call have the signatures that warming knows."""
        names = ["heft", "peft", "etf", "m-sct", "celeritas", "flb", "dsc", "wba", "annealing", "tabu", "lns", "random"]
        names += ["submodular-g", "bil", "gdl", "hbmct", "lookahead-heft", "cpop", "lc"]
        known = set(warming.kernel_calls(names, around=False))
        large = layered_problem(40, 5, ccr=2.0, device_types=1)
        shared = po.compile(
            {
                "placeopt": 1,
                "devices": {"a": {"count": 2, "memory": 100}, "b": {"memory": 100}},
                "links": {"default": {"bandwidth": 1}},
                "tasks": {
                    f"t{i}": {
                        "time": 3, "memory": 2, "output": 4, "colocate": f"g{i // 2}",
                        "after": [f"t{i - 2}"] if i > 1 else [],
                    }
                    for i in range(12)
                },
            }
        )  # fmt: skip
        with recorded() as calls:
            for problem in (large, shared, replace(shared, contention="port")):
                for name in names:
                    warming._run(problem, name)
        assert {part.__name__ for part, _ in set(calls) - known} == set()

    def test_a_busy_machine_records_the_same(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def slowly(*arguments: Any) -> Any:
            time.sleep(3 * warming.WORK)
            return best_start(*arguments)

        monkeypatch.setattr("placeopt_solvers.search._intervals.anytime.best_start", slowly)
        calls = warming.kernel_calls(["windows"], around=False)
        assert "walk" in {part.__name__ for part, _ in calls}

    def test_recording_runs_plain_code(self) -> None:
        with recorded() as calls:
            run = mixed.select(1e12)
            assert run(outer(), np.zeros(3, dtype=np.int64), 1) == mixed.plain(outer(), np.zeros(3, dtype=np.int64), 1)
        assert [part for part, _ in calls] == [mixed]

    def test_looking_for_kernels_can_be_stopped(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ran: list[str] = []
        monkeypatch.setattr(warming, "_run", lambda _, name: ran.append(name))
        monkeypatch.setattr(warming, "_run_around", lambda _: None)
        warming.kernel_calls(["heft", "tabu", "lns"], should_stop=lambda: bool(ran))
        assert ran == ["heft"]

    def test_an_unknown_solver(self) -> None:
        with pytest.raises(po.UsageError, match=r'unknown solver "heff"; did you mean heft'):
            po.warm(["heff"])
        with pytest.raises(po.UsageError, match=r'unknown solver "heff"; did you mean heft'):
            po.warm("heff")

    def test_on_the_command_line(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[Any] = []

        def requested(part: Kernel[Any, Any], signature: Signature) -> compilation.Job:
            asked.append(part)
            job = compilation.Job(part, signature, error="no compiler" if part is run_fifo else None)
            job.done.set()
            return job

        monkeypatch.setattr(compilation, "requested", requested)
        monkeypatch.setattr(warming, "BOUNDING", 0.2)
        done = CliRunner().invoke(app, ["warm", "random"])
        assert done.exit_code == 1
        assert run_fifo in asked
        assert walk not in asked
        assert f"{len(asked) - 1} kernels are compiled" in done.stdout
        assert "run_fifo is not compiled: no compiler" in done.stderr
        monkeypatch.setattr(warming, "kernel_calls", lambda *_, **__: [])
        assert CliRunner().invoke(app, ["warm", "--json"]).exit_code == 0
