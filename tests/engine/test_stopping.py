"""Loops of the engine end when they are to stop, and run without Python's lock."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from placeopt_solvers._constructive.groups import grouped
from placeopt_solvers._constructive.sequences import heft

import placeopt as po
from placeopt import engine
from placeopt.generate.layered_graphs import layered_problem
from placeopt.model.native import native
from placeopt.model.problem import Problem


@pytest.fixture(scope="module")
def problem() -> Problem:
    """Lookahead HEFT takes several seconds on it."""
    return layered_problem(30_000, 32, layers=3, in_degree=(20, 30))


def look_ahead(problem: Problem, stop: engine.Stop) -> int:
    return engine.look_ahead(engine.Timeline(native(problem), grouped(problem)), problem.order, stop)


def test_a_limit_ends_a_loop(problem: Problem) -> None:
    with pytest.raises(engine.StoppedError, match="stopped before the result was complete"):
        look_ahead(problem, engine.Stop(seconds=0.01))


def test_should_stop_ends_a_loop(problem: Problem) -> None:
    calls = iter([False, False, True])
    with pytest.raises(engine.StoppedError, match="stopped"):
        look_ahead(problem, engine.Stop(lambda: next(calls)))
    assert next(calls, None) is None


def test_an_exception_of_should_stop_reaches_the_caller(problem: Problem) -> None:
    def fails() -> bool:
        raise LookupError("no clock")

    with pytest.raises(LookupError, match="no clock"):
        look_ahead(problem, engine.Stop(fails))


def test_other_threads_run_meanwhile(problem: Problem) -> None:
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(look_ahead, problem, engine.Stop(stop.is_set))
        time.sleep(0.05)  # without its lock, this thread would wait for the loop
        assert not running.done()
        stop.set()
        with pytest.raises(engine.StoppedError, match="stopped"):
            running.result()


def test_a_heuristic_that_is_stopped(problem: Problem) -> None:
    calls = iter([False] * 20)
    for limits, termination in (
        ({"time_limit": 0.3}, po.Termination.TIME_LIMIT),
        ({"should_stop": lambda: next(calls, True)}, po.Termination.INTERRUPTED),
    ):
        result = po.solve(problem, "lookahead-heft", passes=(), **limits)
        assert result.termination is termination
        assert result.schedule is None
        assert result.message == "stopped before all tasks were placed"
        assert result.varies_by == "clock"


def test_a_signal_ends_a_loop() -> None:
    program = (
        "from placeopt.generate.layered_graphs import layered_problem\n"
        "from placeopt_solvers.list_scheduling.lookahead_heft import LookaheadHeft\n"
        "from placeopt.protocol import Options, Settings\n"
        "problem = layered_problem(30_000, 32, layers=3, in_degree=(20, 30))\n"
        "print('ready', flush=True)\n"
        "while True: LookaheadHeft().solve(problem, Options(), Settings())\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.readline()
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        assert b"KeyboardInterrupt" in child.stderr.read()


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="needs POSIX signals")
def test_threads_share_a_problem() -> None:
    case = layered_problem(2000, 4)
    alone = heft(case).schedule
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: heft(case).schedule, range(16)))
    assert alone is not None
    assert all(each is not None and np.array_equal(each.start, alone.start) for each in found)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes(method: str) -> None:
    program = (
        "import multiprocessing, sys\n"
        "from placeopt.generate.layered_graphs import layered_problem\n"
        "from placeopt_solvers._constructive.sequences import heft\n"
        "def length(_):\n"
        "    return int(heft(layered_problem(500, 4)).schedule.start.max())\n"
        "if __name__ == '__main__':\n"
        "    here = length(0)\n"
        f"    with multiprocessing.get_context({method!r}).Pool(2) as pool:\n"
        "        assert pool.map(length, range(4)) == [here] * 4\n"
        "    print('equal')\n"
    )
    if method == "fork" and sys.platform in ("win32", "darwin"):
        pytest.skip("fork is unsafe on macOS and absent on Windows")
    done = subprocess.run(
        [sys.executable, "-c", f"import runpy, tempfile, pathlib\np = pathlib.Path(tempfile.mkdtemp(), 'main.py')\n"
         f"p.write_text({program!r})\nimport subprocess, sys\n"
         "sys.exit(subprocess.run([sys.executable, p]).returncode)"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == "equal", done.stderr
