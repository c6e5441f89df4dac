"""Solvers of somebody else's that crash, hang and lie, as an installed package would bring them."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.protocol import Answer, Info, Options, Progress, Settings, Termination
from placeopt.simulation import retime

NAMES = {
    "rogue-bound": "Bound",
    "rogue-claims": "Claims",
    "rogue-daemon": "Daemon",
    "rogue-exit": "Exit",
    "rogue-forger": "Forger",
    "rogue-hang": "Hang",
    "rogue-memory": "Memory",
    "rogue-meddler": "Meddler",
    "rogue-missing": "nowhere_to_be_found:Solver",
    "rogue-noise": "Noise",
    "rogue-odd": "Odd",
    "rogue-orphans": "Orphans",
    "rogue-overfull": "Overfull",
    "rogue-picky": "Picky",
    "rogue-random": "Random",
    "rogue-segfault": "Segfault",
    "rogue-slow": "Slow",
    "rogue-stats": "Stats",
    "rogue-stop": "Stop",
}


def install(folder: Path) -> None:
    """Make the solvers known to every Python that has the folder, and that of this file, on its path."""
    info = folder / "rogues-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rogues\nVersion: 1.0\n")
    lines = [f"{name} = {value if ':' in value else f'{__name__}:{value}'}" for name, value in NAMES.items()]
    (info / "entry_points.txt").write_text("[placeopt.solvers]\n" + "\n".join(lines) + "\n")


def on_one_device(problem: Problem, device: int = 0) -> Schedule:
    placed = np.full(problem.n_tasks, device)
    length = np.where(problem.feasible, problem.duration, 0)[:, device]
    start = np.zeros(problem.n_tasks, np.int64)
    start[problem.order] = np.cumsum(length[problem.order]) - length[problem.order]
    return retime(problem, Schedule(placed, start))


class Rogue:
    name: ClassVar[str] = "rogue"
    info: ClassVar[Info] = Info("up to no good", "none", "O(1)")
    settings_type: ClassVar[type[Settings]] = Settings


class Exit(Rogue):
    name: ClassVar[str] = "rogue-exit"

    def solve(self, problem: Problem, options: Options, settings: Any) -> Answer:  # noqa: ARG002
        print("about to leave", file=sys.stderr, flush=True)
        os._exit(7)


class Segfault(Rogue):
    name: ClassVar[str] = "rogue-segfault"

    def solve(self, problem: Problem, options: Options, settings: Any) -> Answer:  # noqa: ARG002
        ctypes.string_at(0)
        raise AssertionError("unreachable")


class Memory(Rogue):
    name: ClassVar[str] = "rogue-memory"

    def solve(self, problem: Problem, options: Options, settings: Any) -> Answer:  # noqa: ARG002
        raise MemoryError


class Odd(Rogue):
    """Raises what is no Exception and has no text."""

    name: ClassVar[str] = "rogue-odd"

    def solve(self, problem: Problem, options: Options, settings: Any) -> Answer:  # noqa: ARG002
        class SilentError(BaseException):
            def __str__(self) -> str:
                raise RuntimeError("no text")

        raise SilentError


class Stats(Rogue):
    """Has statistics that cannot even be printed."""

    name: ClassVar[str] = "rogue-stats"

    def solve(self, problem: Problem, options: Options, settings: Any) -> Answer:  # noqa: ARG002
        around: dict[str, Any] = {}
        around["again"] = around
        return Answer(Termination.COMPLETED, on_one_device(problem, 1), stats=around)


class Meddler(Rogue):
    """Makes all tasks take no time."""

    name: ClassVar[str] = "rogue-meddler"

    def solve(self, problem: Problem, options: Options, settings: Any) -> Answer:  # noqa: ARG002
        object.__setattr__(problem, "duration", np.zeros_like(problem.duration))
        return Answer(Termination.COMPLETED, on_one_device(problem, 1))


class Forger(Rogue):
    """Writes into whatever is open what looks like an outcome, and no end of a line."""

    name: ClassVar[str] = "rogue-forger"

    def solve(self, problem: Problem, options: Options, settings: Any) -> Answer:  # noqa: ARG002
        forged = (
            {"progress": 5}, {"progress": ["a", 1, {}]}, {"outcome": 5}, {"outcome": {"status": "fine"}},
            {"outcome": {"status": "done", "message": "", "result": {"feasible": True}}},
            {"outcome": {"message": 7}}, {"outcome": {"status": "done", "slr": "1"}}, [[]], float("nan"),
        )  # fmt: skip
        text = "".join(f"{json.dumps(line)}\n" for line in forged) + "[" * 20_000 + '\n{"outcome": {"st'
        for descriptor in range(1, 10):
            with contextlib.suppress(OSError):
                os.write(descriptor, text.encode())
        return Answer(Termination.COMPLETED, on_one_device(problem, 1), message="lone \udc80")


class Daemon(Rogue):
    """Dies, but not the process that it started in a session and an environment of its own."""

    name: ClassVar[str] = "rogue-daemon"

    def solve(self, problem: Problem, options: Options, settings: Any) -> Answer:  # noqa: ARG002
        note("daemon", subprocess.Popen(["/bin/sleep", "600"], start_new_session=True, env={}).pid)
        os._exit(3)


class Orphans(Rogue):
    """Leaves processes behind that end at once, and tells how many of them nobody has buried half a second later."""

    name: ClassVar[str] = "rogue-orphans"

    def solve(self, problem: Problem, options: Options, settings: Any) -> Answer:  # noqa: ARG002
        script = "for k in 1 2 3 4 5; do (sleep 0.1 & echo $!); done"
        left = [int(pid) for pid in subprocess.run(["sh", "-c", script], capture_output=True, text=True).stdout.split()]
        time.sleep(0.5)
        unburied = sum(Path(f"/proc/{pid}").exists() for pid in left)
        return Answer(
            Termination.COMPLETED, on_one_device(problem, 1), message=f"{len(left)} left, {unburied} unburied"
        )


class Stop(Rogue):
    """Closes its stdin and stops: no thread of it runs any more."""

    name: ClassVar[str] = "rogue-stop"

    def solve(self, problem: Problem, options: Options, settings: Any) -> Answer:  # noqa: ARG002
        os.close(0)
        note("stop", os.getpid())
        os.kill(os.getpid(), signal.SIGSTOP)
        raise AssertionError("unreachable")


class Hang(Rogue):
    """Never ends, nor does the process that it starts in a session of its own."""

    name: ClassVar[str] = "rogue-hang"

    def solve(self, problem: Problem, options: Options, settings: Any) -> Answer:  # noqa: ARG002
        sleeper = subprocess.Popen(["sleep", "600"], start_new_session=True)
        note("hang", sleeper.pid)
        if options.on_progress is not None:
            options.on_progress(Progress(0.25, 1000, 1))
            options.on_progress(Progress(0.5, 1000, 1))  # nothing new
        while True:
            pass


class Slow(Rogue):
    """Takes its second."""

    name: ClassVar[str] = "rogue-slow"

    def solve(self, problem: Problem, options: Options, settings: Any) -> Answer:  # noqa: ARG002
        note("slow", os.getpid())
        time.sleep(1.0)
        return Answer(Termination.COMPLETED, on_one_device(problem))


class Overfull(Rogue):
    """Everything on the first device, whatever its memory."""

    name: ClassVar[str] = "rogue-overfull"

    def solve(self, problem: Problem, options: Options, settings: Any) -> Answer:  # noqa: ARG002
        return Answer(Termination.COMPLETED, on_one_device(problem))


class Claims(Rogue):
    """Claims to have proved a bound that its own schedule disproves."""

    name: ClassVar[str] = "rogue-claims"

    def solve(self, problem: Problem, options: Options, settings: Any) -> Answer:  # noqa: ARG002
        return Answer(Termination.COMPLETED, on_one_device(problem, 1), bound=10**9)


class Bound(Rogue):
    """Claims that its schedule is optimal: nothing in it says otherwise, but a heuristic's does."""

    name: ClassVar[str] = "rogue-bound"

    def solve(self, problem: Problem, options: Options, settings: Any) -> Answer:  # noqa: ARG002
        schedule = on_one_device(problem, 1)
        ticks = schedule.start + problem.duration[:, 1]
        return Answer(Termination.OPTIMAL, schedule, bound=int(ticks.max()))


class Noise(Rogue):
    """Prints, leaves a thread behind, and has statistics that no JSON holds."""

    name: ClassVar[str] = "rogue-noise"

    def solve(self, problem: Problem, options: Options, settings: Any) -> Answer:  # noqa: ARG002
        print('{"outcome": {"status": "done"}}', flush=True)
        os.write(1, b"more of it\n" * 20_000)
        threading.Thread(target=time.sleep, args=(600,)).start()
        stats = {"nan": float("nan"), "array": np.arange(3), "set": {1}, 3: np.float64(0.5)}
        return Answer(Termination.COMPLETED, on_one_device(problem, 1), stats=stats)


class Picky(Rogue):
    """Supports an objective that no problem here has."""

    name: ClassVar[str] = "rogue-picky"
    info: ClassVar[Info] = Info("up to nothing", "none", "O(1)", metrics=("energy",))

    def solve(self, problem: Problem, options: Options, settings: Any) -> Answer:  # noqa: ARG002
        raise AssertionError("it is never asked")


class Random(Rogue):
    """A random placement."""

    name: ClassVar[str] = "rogue-random"

    def solve(self, problem: Problem, options: Options, settings: Any) -> Answer:  # noqa: ARG002
        chance = random.Random(options.seed)
        placed = np.array([chance.choice(np.flatnonzero(row).tolist()) for row in problem.feasible])
        serial = on_one_device(problem).start * 100
        return Answer(Termination.COMPLETED, retime(problem, Schedule(placed, serial)))


def note(name: str, pid: int) -> None:
    """Write down a process, where the test asks for it."""
    folder = os.environ.get("ROGUE_NOTES")
    if folder:
        Path(folder, f"{name}-{pid}").touch()


def noted(folder: Path, name: str) -> list[int]:
    """The processes written down."""
    return [int(path.name.rpartition("-")[2]) for path in folder.glob(f"{name}-*")]


def alive(pid: int) -> bool:
    """Whether the process runs: a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"
