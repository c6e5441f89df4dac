"""Solvers of somebody else's that crash, hang and lie, as an installed package would bring them."""

from __future__ import annotations

import ctypes
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from placeopt.ir import Problem
from placeopt.schedule import Schedule
from placeopt.simulation import retime
from placeopt.solver import Answer, Info, Options, Progress, Settings, Termination

NAMES = {
    "rogue-bound": "Bound",
    "rogue-claims": "Claims",
    "rogue-exit": "Exit",
    "rogue-hang": "Hang",
    "rogue-memory": "Memory",
    "rogue-missing": "nowhere_to_be_found:Solver",
    "rogue-noise": "Noise",
    "rogue-overfull": "Overfull",
    "rogue-picky": "Picky",
    "rogue-random": "Random",
    "rogue-segfault": "Segfault",
    "rogue-slow": "Slow",
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
    """Claims that its schedule is optimal: nothing in it says otherwise, but another solver's does."""

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
