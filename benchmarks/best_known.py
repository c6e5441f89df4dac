"""Improve the best known solutions of the problems in problems/.

    python benchmarks/best_known.py [SECONDS] [NAME...]

Runs cp-sat on every problem, or on the named ones, for SECONDS (60 s by default) with the plan in problems/plans as
warm start, and prints objective, bound and gap. A better plan replaces the old one. A better objective or bound is
written to the `best_known` line of the problem file. tests/test_problems.py verifies both.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

import placeopt as po
from placeopt.io.compiler import read_spec
from placeopt.io.plan import plan_document

FOLDER = Path(__file__).parents[1] / "problems"
LINE = re.compile(r"^best_known: \{objective: [\d.]+, bound: [\d.]+\}", re.MULTILINE)


def improve(path: Path, seconds: float) -> tuple[int, int]:
    """The best known objective and bound after a run of cp-sat."""
    problem = po.load(path)
    known = read_spec(path).best_known
    plan = FOLDER / "plans" / f"{path.stem}.json"
    initial = po.read_plan(plan, problem).schedule if plan.exists() else None
    result = po.solve(problem, "cp-sat", time_limit=seconds, initial=initial)
    assert result.feasible
    assert result.schedule is not None
    objective, bound = int(result.objective or 0), int(result.bound or 0)
    if known is None or objective < known.objective or not plan.exists():
        po.write_plan(plan, plan_document(problem, result.schedule, solver="cp-sat", objective=result.values))
    if known is not None:
        objective, bound = min(objective, int(known.objective)), max(bound, int(known.bound or 0))
    line = f"best_known: {{objective: {objective}, bound: {bound}}}"
    text = path.read_text(encoding="utf-8")
    if LINE.search(text):
        path.write_text(LINE.sub(line, text), encoding="utf-8")
    else:
        print(f"{path.name}: add to the header: {line}")
    return objective, bound


def main() -> None:
    """Improve the solutions and print the table."""
    arguments = sys.argv[1:]
    seconds = float(arguments.pop(0)) if arguments and arguments[0].replace(".", "", 1).isdigit() else 60.0
    paths = [FOLDER / f"{name}.yaml" for name in arguments] or sorted(FOLDER.glob("*.yaml"))
    table = Table(title=f"best known solutions, cp-sat for {seconds:g} s each")
    for header in ("problem", "objective", "bound", "gap"):
        table.add_column(header, justify="left" if header == "problem" else "right")
    for path in paths:
        objective, bound = improve(path, seconds)
        table.add_row(path.stem, f"{objective:,}", f"{bound:,}", f"{(objective - bound) / max(objective, 1):.1%}")
    Console().print(table)


if __name__ == "__main__":
    main()
