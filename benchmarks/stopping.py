"""Measure what solvers do after their time limit, and after SIGTERM.

    python benchmarks/stopping.py limits [SOLVER ...] [--limits 0.1 1 5]
    python benchmarks/stopping.py signals [SOLVER ...]

The instances are problems/inception.yaml, problems/llama-8b.yaml, and `layered_problem` with seed 0: 3,000 tasks on 8
devices, 20,000 on 8, and 20,000 on 8 in 3 layers. A solver runs on those that it supports, with the seed 0.

`limits` runs `placeopt.solve` in a process for each solver and instance. It lists the runs that use CPU seconds after
the limit, of all threads and processes; those of verification and bounds are apart. `signals` sends SIGTERM to
`placeopt solve FILE --out PLAN` half a second after the solve began. It lists the seconds until the process is gone,
and whether it wrote a plan.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import placeopt as po
from placeopt.generate.layered_graphs import layered_problem
from placeopt.model.building import with_changes
from placeopt.model.problem import Problem
from placeopt.protocol import unsupported
from placeopt.protocol.registry import find_solver, solver_names

ROOT = Path(__file__).parents[1]
AFTER = 0.5
"""Seconds from the start of a solve to SIGTERM."""
LONGEST = 60.0
"""Seconds after a limit or a signal after which a run is killed."""
CHECKED = 0.1
"""CPU seconds after the limit from which a run is listed."""


def load(name: str) -> Problem:
    """Return an instance by its name."""
    if name in ("inception", "llama-8b"):
        return po.load(ROOT / "problems" / f"{name}.yaml")
    tasks, _, layers = name.partition("/")
    return layered_problem(int(tasks), 8, **({"layers": int(layers)} if layers else {}))


NAMES = ("inception", "llama-8b", "3000", "20000", "20000/3")


def used() -> float:
    """CPU seconds of this process and of those that it started."""
    import psutil

    own = psutil.Process()
    times = [own.cpu_times(), *(child.cpu_times() for child in own.children(recursive=True))]
    ended = own.cpu_times()
    return sum(each.user + each.system for each in times) + ended.children_user + ended.children_system


def child(solver: str, name: str, limits: list[float]) -> None:
    """Solve an instance within each limit; print a JSON line for each: CPU seconds of the solver and of checks."""
    from placeopt.orchestration import pipeline

    problem = load(name)
    first = layered_problem(12, 2)
    if problem.pipeline is not None:
        first = with_changes(first, objective=po.Objective(((po.Term("period"),),)))
    po.solve(first, solver, time_limit=0.2)  # imports
    checks: list[float] = []
    finish = pipeline._finished

    def finished(*arguments: Any) -> Any:
        checks.append(used())
        return finish(*arguments)

    pipeline._finished = finished  # type: ignore[assignment]
    for limit in limits:
        at: list[float] = []
        timer = threading.Timer(limit, lambda at=at: at.append(used()))  # type: ignore[misc]
        checks.clear()
        begin = time.perf_counter()
        timer.start()
        result = po.solve(problem, solver, time_limit=limit)
        seconds = time.perf_counter() - begin
        timer.cancel()
        end = used()
        late = max(checks[0] - at[0], 0.0) if at else 0.0
        line = {
            "limit": limit,
            "seconds": seconds,
            "over": bool(at),
            "late": late,
            "checks": end - max([checks[0], *at]),
        }
        print(json.dumps({**line, "termination": result.termination.value}), flush=True)


def runs(solvers: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the solvers with the instances that they support."""
    for name in NAMES:
        problem = load(name)
        for solver in solvers:
            if unsupported(find_solver(solver).info, problem) is None:
                yield solver, name


def measure_limits(solvers: list[str], limits: list[float]) -> None:
    """Print the runs that use more than CHECKED seconds after their limit."""
    table = Table(title=f"runs that use {CHECKED} CPU seconds or more after their limit")
    for header in ("solver", "instance", "limit", "seconds", "late, CPU s", "checks, CPU s", "termination"):
        table.add_column(header, justify="left" if header in ("solver", "instance", "termination") else "right")
    count = over = 0
    worst = 0.0
    for solver, name in runs(solvers):
        command = [sys.executable, __file__, "child", solver, name, *map(str, limits)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=sum(limits) + len(limits) * LONGEST, check=False
            )
        except subprocess.TimeoutExpired:
            table.add_row(solver, name, "", "killed", "", "", "")
            continue
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        if len(lines) < len(limits):
            table.add_row(solver, name, "", "failed", "", "", done.stderr.strip().splitlines()[-1][:60])
        for line in lines:
            count, over = count + 1, over + line["over"]
            worst = max(worst, line["late"])
            if line["late"] + (line["checks"] if line["over"] else 0.0) >= CHECKED:
                numbers = (f"{line[key]:.2f}" for key in ("limit", "seconds", "late", "checks"))
                table.add_row(solver, name, *numbers, line["termination"])
    console = Console(width=120)
    console.print(table)
    console.print(
        f"{count} runs, {over} of them longer than their limit; the most CPU time of a solver after it is {worst:.2f} s"
    )


def measure_signals(solvers: list[str]) -> None:
    """Print how long each command lives after SIGTERM, and whether it wrote its plan."""
    table = Table(title=f"SIGTERM {AFTER} s after the solve began")
    for header in ("solver", "instance", "seconds until it is gone", "exit code", "plan"):
        table.add_column(header, justify="right" if header.startswith(("seconds", "exit")) else "left")
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for name in NAMES:
            path = ROOT / "problems" / f"{name}.yaml"
            if not path.exists():
                path = Path(folder) / f"{name.replace('/', '-')}.json"
                po.write_problem(load(name), path)
            files[name] = path
        for solver, name in runs(solvers):
            plan = Path(folder) / "plan.yaml"
            plan.unlink(missing_ok=True)
            command = ["solve", str(files[name]), "--solver", solver, "--out", str(plan)]
            table.add_row(solver, name, *signalled([*command, "--time-limit", f"{LONGEST:g}"], plan))
    Console(width=120).print(table)


def signalled(arguments: list[str], plan: Path) -> tuple[str, str, str]:
    """Run a command of placeopt, and return what came of SIGTERM."""
    started = "import placeopt.orchestration.pipeline as p, sys\nrun = p._run\n"
    started += "def wrapped(*a):\n    print('begun', file=sys.stderr, flush=True)\n    return run(*a)\n"
    started += "p._run = wrapped\nimport placeopt.cli\nsys.argv = ['placeopt', *sys.argv[1:]]\nplaceopt.cli.main()\n"
    process = subprocess.Popen(
        [sys.executable, "-c", started, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    said: list[str] = []
    while not said or (said[-1] and "begun" not in said[-1]):
        said.append(process.stderr.readline())
    if not said[-1]:
        raise SystemExit("".join(said))  # the solve never began
    threading.Thread(target=process.stderr.read, daemon=True).start()
    try:
        process.wait(AFTER)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)
        begin = time.perf_counter()
        try:
            process.wait(LONGEST)
        except subprocess.TimeoutExpired:
            process.kill()
            return "killed", "", ""
        seconds = f"{time.perf_counter() - begin:.2f}"
        return seconds, str(process.returncode), "yes" if plan.exists() else "no"
    return "ended before", str(process.returncode), "yes" if plan.exists() else "no"


def main() -> None:
    """Run one of both measurements, or a child of the first."""
    if sys.argv[1:2] == ["child"]:
        child(sys.argv[2], sys.argv[3], [float(each) for each in sys.argv[4:]])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("limits", "signals"))
    parser.add_argument("solvers", nargs="*", help="all by default")
    parser.add_argument("--limits", nargs="+", type=float, default=[0.1, 1.0, 5.0], help="in seconds")
    asked = parser.parse_args()
    solvers = asked.solvers or list(solver_names())
    if asked.what == "limits":
        measure_limits(solvers, asked.limits)
    else:
        measure_signals(solvers)


if __name__ == "__main__":
    main()
