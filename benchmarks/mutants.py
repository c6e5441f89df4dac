"""Break rules of random schedules, and compare the verifier with the naive checker of its tests.

    python benchmarks/mutants.py [--each 1000] [--seed 0]

The problems, their feasible schedules, and the mutants are those of tests/verifier/test_verifier.py: each mutant has
one thing changed, in every way in which a solver is likely to be wrong. The naive checker counts all rules tick by tick
in dictionaries. For each mutant, both must name the same broken rules and the same values of the objective. Mutants
with other addresses are those of tests/verifier/test_address_rule.py, which looks at all pairs of buffers. The run ends
once each rule was broken `--each` times. Each difference is printed, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from itertools import count, product
from pathlib import Path
from typing import get_args

from rich.console import Console
from rich.table import Table

from placeopt.model.problem import Contention
from placeopt.verifier import Rule, verify

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "verifier"))
from test_address_rule import check_addresses, moved, random_plan
from test_verifier import ADDRESSED, PIPELINES, Naive, mutants, random_case

KINDS = list(product(get_args(Contention), ("sum", "peak")))
RULES = set(Rule) - {Rule.OBJECTIVE} - PIPELINES - ADDRESSED
"""The rules of one run but that of addresses; that of the objective is about what a plan claims."""


def main() -> None:
    """Break rules until each was broken often enough, and print the counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--each", type=int, default=1000, help="how often each rule is broken")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    seen: Counter[Rule] = Counter()
    verdicts: Counter[str] = Counter()
    wrong = 0
    for case in count(asked.seed):
        contention, memory_model = KINDS[case % len(KINDS)]
        rng = random.Random(case)
        problem, plan = random_case(rng, contention, memory_model)
        for mutant in mutants(rng, problem, plan):
            report, naive = verify(problem, mutant), Naive(problem, mutant)
            found = {violation.rule for violation in report.violations}
            if found != naive.broken or report.objective != naive.objective():
                wrong += 1
                print(f"case {case}: the verifier finds {sorted(found)}, expected {sorted(naive.broken)}", flush=True)
            seen.update(naive.broken)
            verdicts["feasible" if report.feasible else "infeasible"] += 1
        if case % 100 == 0 and min(seen[rule] for rule in RULES) >= asked.each:
            break
    for case in count(asked.seed):
        rng = random.Random(case)
        problem, plan = random_plan(rng)
        for _ in range(40):
            try:
                broken = check_addresses(problem, moved(rng, problem, plan))
            except AssertionError:
                wrong += 1
                print(f"case {case} of addresses: the verifier and a look at all pairs of buffers differ", flush=True)
                continue
            seen[Rule.ADDRESS] += broken
            verdicts["infeasible" if broken else "feasible"] += 1
        if seen[Rule.ADDRESS] >= asked.each:
            break
    table = Table(title=f"mutants from seed {asked.seed}")
    for header in ("rule", "broken"):
        table.add_column(header, justify="left" if header == "rule" else "right")
    for rule in sorted(RULES | ADDRESSED):
        table.add_row(rule, f"{seen[rule]:,}")
    Console().print(table)
    print(f"{verdicts.total():,} mutants, {verdicts['feasible']:,} of them feasible; {wrong} differences")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
