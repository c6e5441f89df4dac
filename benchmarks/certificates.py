"""Check certificates of random problems against brute force, change them, and state those of the examples.

    python benchmarks/certificates.py agreement [--number 20000] [--seed 0]
    python benchmarks/certificates.py mutants [--number 100000] [--seed 0]
    python benchmarks/certificates.py problems [--limit 10] [--recheck 60] [FILE ...]

`agreement`: problems of one to five tasks (tests/support/certificate_cases.py), with all constraints and metrics; each
has a certificate of its best quick bound, and one of its optimum. Wrong is a certificate that the checker refuses, that
states another bound, or a claim without trust above the optimum. As many problems with tight constraints have a
certificate that no schedule is feasible. Wrong is one that the checker refuses, or that needs no trust although there
is a schedule. A tenth as many are pipelines with contiguous stages.

`mutants`: certificates with one to three changes (numbers, prices, sets, names, decisions, whole claims). Wrong is one
without trust that the checker accepts for more than the optimum, and an exception other than a refusal. As many
certificates of infeasibility are changed, and state the problem with one or two looser constraints. Wrong is one
without trust that the checker accepts although that problem has a schedule.

`problems`: each file is solved by `auto` for `--limit` seconds. The table has the size of the certificate, the time
to find and to check it, how many of its claims are trusted, the most tasks of one of these, and how many of them
another engine confirms within `--recheck` seconds.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import placeopt as po

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from brute_force import optimum
from certificate_cases import accepted, infeasibility_proof, mutated, period_proof, proofs, relaxed

ROOT = Path(__file__).parents[1]


def agreement(number: int, seed: int) -> int:
    """Certificates of random problems, with and without schedules; return how many are wrong."""
    return _bounds_agree(number, seed) + _refusals_agree(number, seed) + _periods_agree(number // 10, seed)


def _bounds_agree(number: int, seed: int) -> int:
    counts, wrong, at = Counter[str](), 0, seed
    while counts["problems"] < number:
        for place, (problem, best, value, made) in enumerate(proofs(at)):
            counts["problems"] += place == 0
            checked = accepted(problem, json.loads(json.dumps(made)))
            what = "the quick bound" if place == 0 else "the optimum"
            counts[f"{what}: {'all computed' if checked and checked.complete else 'trusted'}"] += 1
            if checked is None or checked.bound != value or checked.bound > best:
                wrong += 1
                print(f"seed {at}: {value} of {best}, checked {checked}")
        at += 1
    return _stated("bounds", seed, at, wrong, counts)


def _refusals_agree(number: int, seed: int) -> int:
    counts, wrong = Counter[str](), 0
    for at in range(seed, seed + number):
        problem, feasible, made = infeasibility_proof(at)
        checked = accepted(problem, json.loads(json.dumps(made)))
        complete = checked is not None and checked.complete
        counts[f"{'a' if feasible else 'no'} schedule: {'all computed' if complete else 'trusted'}"] += 1
        if checked is None or not checked.infeasible or (feasible and complete):
            wrong += 1
            print(f"seed {at}: {'a' if feasible else 'no'} schedule, checked {checked}: {json.dumps(made)}")
    return _stated("infeasibility", seed, seed + number, wrong, counts)


def _periods_agree(number: int, seed: int) -> int:
    counts, wrong = Counter[str](), 0
    for at in range(seed, seed + number):
        found = period_proof(at)
        if found is not None:
            problem, best, made = found
            checked = accepted(problem, json.loads(json.dumps(made)))
            counts["all computed" if checked and checked.complete else "trusted"] += 1
            if checked is None or checked.bound != best:
                wrong += 1
                print(f"seed {at}: {best}, checked {checked}")
    return _stated("periods", seed, seed + number, wrong, counts)


def _stated(what: str, seed: int, end: int, wrong: int, counts: Counter[str]) -> int:
    each = "; ".join(f"{key} {n:,}" for key, n in sorted(counts.items()))
    print(f"{what}, seeds {seed} to {end - 1}: {wrong} wrong; {each}")
    return wrong


def mutants(number: int, seed: int) -> int:
    """Changed certificates of problems with and without schedules; return how many are wrong."""
    wrong = _changed("bounds", lambda at: ((each[0], each[1], each[3]) for each in proofs(at)), number, seed)
    periods = _changed("periods", lambda at: filter(None, [period_proof(at)]), number // 10, seed)
    return wrong + _changed_refusals(number, seed) + periods


def _changed(what: str, cases: Callable[[int], Iterable[tuple[po.Problem, Any, Any]]], number: int, seed: int) -> int:
    """Change certificates of cases: problems with their optima and proofs."""
    counts, wrong, at = Counter[str](), 0, seed
    while counts["changed"] < number:
        rng = random.Random(at)
        for problem, best, made in cases(at):
            for _ in range(20):
                changed = mutated(made, problem, rng)
                counts["changed"] += 1
                checked = accepted(problem, changed)
                counts["refused" if checked is None else "accepted" if checked.complete else "trusted"] += 1
                if checked is not None and checked.complete and checked.bound > best:
                    wrong += 1
                    print(f"seed {at}: {checked.bound} of {best}: {json.dumps(changed)}")
        at += 1
    return _stated(what, seed, at, wrong, counts)


def _changed_refusals(number: int, seed: int) -> int:
    counts, wrong, at = Counter[str](), 0, seed
    while counts["changed"] < number:
        rng = random.Random(at)
        problem, _, made = infeasibility_proof(at)
        for k in range(20):  # some keep all claims
            looser, changed = relaxed(problem, mutated(made, problem, rng) if k % 4 else made, rng)
            counts["changed"] += 1
            checked = accepted(looser, changed)
            counts["refused" if checked is None else "accepted" if checked.complete else "trusted"] += 1
            if checked is not None and checked.complete and checked.infeasible and optimum(looser) is not None:
                wrong += 1
                print(f"seed {at}: a schedule: {json.dumps(changed)}")
        at += 1
    return _stated("infeasibility", seed, at, wrong, counts)


def problems(files: list[Path], limit: float, recheck: float | None) -> int:
    """The certificates of problem files, as a table."""
    table = Table("problem", "bound", "proved by", "bytes", "found", "checked", "trusted", "confirmed")
    for column in (table.columns[1], *table.columns[3:]):
        column.justify = "right"
    for column in table.columns:
        column.no_wrap = True
    for path in files or sorted((ROOT / "problems").glob("*.yaml")):
        problem = po.load(path)
        result = po.solve(problem, "auto", time_limit=limit)
        begun = time.perf_counter()
        made = result.certificate()
        found = time.perf_counter()
        checked = po.check_certificate(problem, made)
        times = [f"{seconds:.1f} s" for seconds in (found - begun, time.perf_counter() - found)]
        largest = max((each.tasks for each in checked.trusted), default=0)
        trusted = f"{len(checked.trusted)} of {checked.claims}" + (f", <= {largest}" if largest else "")
        sure = "-"
        if recheck is not None and checked.trusted:
            again = po.check_certificate(problem, made, recheck=recheck)
            sure = str(sum(each.confirmed is not None for each in again.trusted))
        numbers = [str(result.bound), str(result.bound_source), f"{len(json.dumps(made)):,}"]
        table.add_row(path.stem, *numbers, *times, trusted, sure)
    Console(width=120).print(table)
    return 0


def main() -> None:
    """Run a part."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("part", choices=("agreement", "mutants", "problems"))
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--number", type=int, help="problems, or changed certificates")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=10.0, help="seconds")
    parser.add_argument("--recheck", type=float, help="seconds for a second engine")
    asked = parser.parse_args()
    if asked.part == "problems":
        sys.exit(problems(asked.files, asked.limit, asked.recheck))
    run, number = {"agreement": (agreement, 20_000), "mutants": (mutants, 100_000)}[asked.part]
    sys.exit(run(asked.number or number, asked.seed) > 0)


if __name__ == "__main__":
    main()
