"""Measure memory allocation: MiniMalloc's instances, small problems against all orders, changed plans, growth.

    python benchmarks/allocation.py [minimalloc] [agreement] [mutants] [plans] [growth] [--limit 8] [--number 5000]
    python benchmarks/allocation.py minimalloc --minimalloc PATH
    python benchmarks/allocation.py arenas --wheels FOLDER

All parts but arenas run unless some are named.

    minimalloc  the files in minimalloc/ of the folder that PLACEOPT_DATA names (M. D. Moffitt, ASPLOS 2023), in
                1,048,576 bytes as a whole command, and their least height; with the path of a MiniMalloc
                program, also the CPU seconds of both until the buffers fit
    agreement   random problems with up to 7 buffers against all orders (tests/support/brute_force_allocation.py):
                height, bound, and whether they fit into the least height and into one byte less
    mutants     four times as many plans with one change: the verifier must find exactly the overlaps that a comparison
                of all pairs finds
    plans       four times as many plans of problems with addresses, with changed offsets: the verifier must find the
                faults that all pairs of buffers have; where outputs may share bytes, it must accept no plan in which a
                simulation of the bytes reads wrong ones
    arenas      ONNX models against ONNX Runtime's planned arena (benchmarks/arenas.py)
    growth      1,000 to 10,000 buffers: training and inference of networks, and a mixture of short and long lifetimes
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))

import placeopt as po
from placeopt.model.schedule import BUFFERS
from tests.support.brute_force_allocation import least_height, random_buffers
from tests.support.sharing import corrupted, sharing_problem
from tests.verifier.test_address_rule import expected_faults, random_plan

CONSOLE = Console(width=140)
CAPACITY = 1_048_576
SIZES = (1_000, 3_000, 10_000)


def minimalloc(limit: float, program: Path | None) -> bool:
    """MiniMalloc's instances; whether all fit."""
    files = sorted(Path(os.environ.get("PLACEOPT_DATA", ""), "minimalloc").glob("*.csv"))
    if not files:
        CONSOLE.print("minimalloc: PLACEOPT_DATA does not name a folder with minimalloc/*.csv; nothing to measure")
        return True
    table = Table(title=f"{CAPACITY:,} bytes; least height in {limit:g} s")
    headers = ["instance", "buffers", "live", "fits", "command s", "least height", "bound", "gap", "s"]
    for header in headers if program is None else [*headers, "fits: CPU s", "MiniMalloc"]:
        table.add_column(header, justify="right")
    sound = True
    for path in files:
        begun = time.perf_counter()
        command = [sys.executable, "-m", "placeopt", "allocate", str(path), "--capacity", str(CAPACITY)]
        code = subprocess.run(command, capture_output=True, check=False).returncode
        seconds = time.perf_counter() - begun
        found = po.allocate(po.load_buffers(path), time_limit=limit)
        sound &= code == 0
        beside = () if program is None else (fitted(found.problem), fitted_by(program, path, found.problem))
        table.add_row(
            path.name.split(".")[0], str(len(found.problem)), f"{found.live:,}", "yes" if code == 0 else "no",
            f"{seconds:.2f}", f"{found.height:,}", f"{found.bound:,}", f"{found.gap:.2%}", f"{found.seconds:.2f}",
            *beside,
        )  # fmt: skip
    CONSOLE.print(table)
    return sound


def fitted(problem: po.Buffers) -> str:
    """CPU seconds of all threads until the buffers fit."""
    begun = time.process_time()
    fits = po.allocate(problem, capacity=CAPACITY, time_limit=600).fits
    return f"{time.process_time() - begun:.2f}" if fits else "none"


def fitted_by(program: Path, path: Path, problem: po.Buffers) -> str:
    """CPU seconds of a MiniMalloc program until the buffers fit; its offsets are verified."""
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder, "offsets.csv")
        command = [str(program), f"--capacity={CAPACITY}", f"--input={path}", f"--output={written}", "--timeout=600s"]
        begun = os.times().children_user
        code = subprocess.run(command, capture_output=True, check=False).returncode
        seconds = os.times().children_user - begun
        if code:
            return "none"
        with written.open(newline="") as file:
            offset = {row["id"]: int(row["offset"]) for row in csv.DictReader(file)}
    report = po.verify_allocation(problem, [offset[name] for name in problem.names], capacity=CAPACITY)
    return f"{seconds:.2f}" if report.feasible else "wrong"


def agreement(number: int, seed: int) -> bool:
    """Random problems against all orders; whether nothing was wrong."""
    counts: Counter[str] = Counter()
    for k in range(seed, seed + number):
        problem = random_buffers(k)
        best = least_height(problem)
        found = po.allocate(problem, time_limit=5, workers=1)
        fits = [po.allocate(problem, capacity=best - less, time_limit=5, workers=1).fits for less in (0, 1)]
        right = (found.height, found.bound, fits) == (best, best, [True, False])
        counts["wrong"] += not right
        counts[f"bound by {found.bound_source}"] += 1
        if not right:
            CONSOLE.print(f"seed {k}: height {found.height}, bound {found.bound}, optimum {best}, fits {fits}")
    CONSOLE.print(f"agreement: {number} problems from seed {seed}: {counts['wrong']} wrong; {dict(counts)}")
    return not counts["wrong"]


def mutants(number: int, seed: int) -> bool:
    """Changed plans; whether the verifier found exactly the overlaps."""
    made = overlapping = wrong = 0
    k = seed
    while made < number:
        k += 1
        problem, rng = random_buffers(k, 14), random.Random(k)
        found = po.allocate(problem, time_limit=0.2, workers=1)
        if found.offset is None or len(problem) < 2:
            continue
        for _ in range(4):
            offset = found.offset.tolist()
            changed = rng.randrange(len(problem))
            step = rng.choice([1, int(problem.size[changed]), max(found.height or 1, 1) // 2 + 1])
            offset[changed] = max(offset[changed] + rng.choice([-step, step]), 0)
            pairs = sum(overlap(problem, offset, a, b) for a in range(len(problem)) for b in range(a))
            rules = [rule for rule, _ in po.verify_allocation(problem, offset).violations]
            made += 1
            overlapping += pairs > 0
            wrong += rules.count("overlap") != pairs
    CONSOLE.print(f"mutants: {made} plans, {overlapping} with overlaps; {wrong} wrong")
    return not wrong


def plans(number: int, seed: int) -> bool:
    """Plans with changed offsets; whether the verifier found all faults and accepted no plan that reads wrong bytes."""
    counts: Counter[str] = Counter()
    k = seed
    while counts["plans"] < number:
        k += 1
        rng = random.Random(k)
        problem, good = random_plan(rng)
        for _ in range(20):
            mutant = replace(good, offsets=changed(problem, good, rng))
            wrong, shared, late = expected_faults(problem, mutant)
            found = po.verify(problem, mutant).violations
            overlaps = [violation.amount for violation in found if "overlap" in violation.message]
            right = len(found) - len(overlaps) == wrong and set(overlaps) <= shared and len(overlaps) >= late
            counts["plans"] += 1
            counts["with faults"] += bool(found)
            counts["wrong"] += not (right and bool(found) == bool(wrong or shared))
        problem = sharing_problem(k, most=6, devices=2, tight=False)
        schedule = po.solve(problem, "heft", workers=1, time_limit=5).schedule
        for _ in range(20 if schedule is not None and schedule.offsets is not None else 0):
            assert schedule is not None
            mutant = replace(schedule, offsets=changed(problem, schedule, rng))
            accepted, corrupt = po.verify(problem, mutant).feasible, bool(corrupted(problem, mutant))
            counts["plans"] += 1
            counts["sharing, accepted"] += accepted
            counts["sharing, wrong bytes"] += corrupt
            counts["wrong"] += accepted and corrupt
    CONSOLE.print(f"plans: {dict(counts)}")
    return not counts["wrong"]


def changed(problem: po.Problem, schedule: po.Schedule, rng: random.Random) -> po.Offsets:
    """The offsets of a plan with up to three changes; some put an output where it may share bytes."""
    assert schedule.offsets is not None
    arrays = {kind: getattr(schedule.offsets, kind).copy() for kind in BUFFERS}
    step, rows = problem.alignment or 1, [] if problem.layout is None else problem.layout.rows()
    for _ in range(rng.choice([1, 1, 2, 3])):
        kind, i = rng.choice([*BUFFERS, "output"]), rng.randrange(problem.n_tasks)
        low = -problem.n_tasks if problem.layout is None else -int(arrays[kind][i]) // step
        arrays[kind][i] += max(rng.choice([-1, 1, -7, 3, rng.randint(-60, 60)]), low) * (1 if not rows else step)
        if rows and rng.random() < 0.5:
            task, base, at, _ = rng.choice(rows)
            arrays["output"][task] = arrays["output"][base] + at
    return po.Offsets(**arrays)


def overlap(problem: po.Buffers, offset: list[int], a: int, b: int) -> bool:
    """Whether two buffers overlap in time and memory."""
    together = problem.lower[a] < problem.upper[b] and problem.lower[b] < problem.upper[a]
    return (
        bool(together) and offset[a] < offset[b] + int(problem.size[b]) and offset[b] < offset[a] + int(problem.size[a])
    )


def training(number: int, seed: int) -> po.Buffers:
    """Activations that live until their gradients, and temporaries."""
    rng, layers = random.Random(seed), number // 4
    rows = []
    for k in range(layers):
        size, back = 256 * rng.randint(16, 16_384), 4 * layers - 2 * k
        rows += [(2 * k, back, size), (2 * k, 2 * k + rng.randint(1, 3), rng.choice([size, 256]))]
        rows += [(back - 1, back + rng.randint(1, 3), size), (back - 1, back, rng.choice([size, 1024]))]
    return built(rows)


def inference(number: int, seed: int) -> po.Buffers:
    """Activations that live for a few operators, some for longer."""
    rng = random.Random(seed)
    lives = [rng.randint(2, 4) if rng.random() < 0.85 else rng.randint(4, 60) for _ in range(number)]
    return built([(k, k + lives[k], 64 * int(2 ** rng.uniform(4, 14)) + 64) for k in range(number)])


def mixture(number: int, seed: int) -> po.Buffers:
    """70% short, 25% longer, 5% up to half of the time."""
    rng = random.Random(seed)
    rows = []
    for _ in range(number):
        begin, kind = rng.randrange(10 * number), rng.random()
        life = (
            rng.randint(1, 60)
            if kind < 0.7
            else rng.randint(60, 1000)
            if kind < 0.95
            else rng.randint(1000, 5 * number)
        )
        rows.append((begin, begin + life, 64 * int(2 ** rng.uniform(2, 16)) + 64))
    return built(rows)


def built(rows: list[tuple[int, int, int]]) -> po.Buffers:
    """Buffers of (lower, upper, size)."""
    lower, upper, size = zip(*rows, strict=True)
    return po.build_buffers(lower=lower, upper=upper, size=size)


def growth(limit: float, seed: int) -> None:
    """Larger problems."""
    table = Table(title=f"{limit:g} s")
    for header in ("buffers", "lifetimes", "height", "bound", "gap", "s"):
        table.add_column(header, justify="right")
    for number in SIZES:
        for make in (training, inference, mixture):
            problem, begun = make(number, seed), time.perf_counter()
            found = po.allocate(problem, time_limit=limit)
            table.add_row(
                f"{number:,}", make.__name__, f"{found.height:,}", f"{found.bound:,}", f"{found.gap:.3%}",
                f"{time.perf_counter() - begun:.1f}",
            )  # fmt: skip
    CONSOLE.print(table)


def main() -> None:
    """Run the parts."""
    names = ["minimalloc", "agreement", "mutants", "plans", "growth"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*names, "arenas", []], default=[])
    parser.add_argument("--limit", type=float, default=8.0, help="seconds for each instance")
    parser.add_argument("--number", type=int, default=5_000, help="random problems; four times as many changed plans")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minimalloc", type=Path, help="a MiniMalloc program to compare with")
    parser.add_argument("--wheels", type=Path, help="folder of wheels, for arenas")
    asked = parser.parse_args()
    if ("arenas" in asked.parts) != (asked.wheels is not None):
        parser.error("arenas needs --wheels, and only arenas has it")
    parts = asked.parts or names
    sound = True
    if "minimalloc" in parts:
        sound &= minimalloc(asked.limit, asked.minimalloc)
    if "agreement" in parts:
        sound &= agreement(asked.number, asked.seed)
    if "mutants" in parts:
        sound &= mutants(4 * asked.number, asked.seed)
    if "plans" in parts:
        sound &= plans(4 * asked.number, asked.seed)
    if "growth" in parts:
        growth(asked.limit, asked.seed)
    if "arenas" in parts:
        from benchmarks.arenas import arenas  # needs onnxruntime

        arenas(asked.wheels, asked.limit)
    sys.exit(0 if sound else 1)


if __name__ == "__main__":
    main()
