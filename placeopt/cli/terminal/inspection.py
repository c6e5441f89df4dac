"""What `placeopt inspect` tells of a problem."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from placeopt.bounding.quick import bounds, prove_infeasible
from placeopt.cli.terminal.bounding import bounds_data, bounds_table
from placeopt.cli.terminal.console import print_problem
from placeopt.cli.terminal.passes import exact_passes, print_exact_passes
from placeopt.errors import counted, visible
from placeopt.model.metrics import ccr, shape
from placeopt.model.objective import simplified
from placeopt.model.problem import UNLIMITED, Problem, rounding_text
from placeopt.model.units import size_text, time_text
from placeopt.solving.result import number


def inspection(problem: Problem) -> dict[str, Any]:
    """Sizes, shape, memory, device classes, what exact passes remove, and bounds, as plain data."""
    form = shape(problem)
    proof = prove_infeasible(problem)
    stated = problem.deadline != UNLIMITED
    classes: dict[int, list[int]] = {}
    for device, label in enumerate(problem.device_class.tolist()):
        classes.setdefault(label, []).append(device)
    return {
        "problem": problem.name,
        "description": problem.description,
        "fingerprint": problem.fingerprint(),
        "resolution": float(problem.resolution),
        "rounding": None if problem.rounding is None else problem.rounding.to_dict(),
        "objective": str(problem.objective),
        "contention": problem.contention,
        "memory_model": problem.memory_model,
        "tasks": problem.n_tasks,
        "edges": problem.n_edges,
        "devices": problem.n_devices,
        "groups": problem.n_groups,
        "separated_pairs": len(problem.separation),
        "release_times": int((problem.release > 0).sum()),
        "latest_release": int(problem.release.max(initial=0)),
        "deadlines": int(stated.sum()),
        "earliest_deadline": int(problem.deadline[stated].min()) if stated.any() else None,
        "tasks_with_relocation": int(problem.relocation.any(axis=1).sum()),
        "runs_before_next_change": number(simplified(problem.runs_before_next_change)),
        "depth": form.depth,
        "width": form.width,
        "ccr": ccr(problem),
        "memory": {
            "resident": int(problem.resident.sum()),
            "output": int(problem.output.sum()),
            "scratch": int(problem.scratch.sum()),
            "largest_task": int(problem.memory.max(initial=0)),
        },
        "device_classes": [
            {
                "devices": [problem.device_names[d] for d in members],
                "type": problem.device_types[members[0]],
                "capacity": None if problem.capacity[members[0]] == UNLIMITED else int(problem.capacity[members[0]]),
                "feasible_tasks": int(problem.feasible[:, members[0]].sum()),
            }
            for members in classes.values()
        ],
        "exact_passes": exact_passes(problem),
        "infeasible": None if proof is None else proof.reason,
        "bounds": [] if proof is not None else bounds_data(bounds(problem)),
    }


def print_inspection(console: Console, problem: Problem, found: dict[str, Any]) -> None:
    """The same for people."""
    print_problem(console, problem)
    if found["description"]:
        console.print(Text(visible(found["description"], 1000)))
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold")
    facts.add_column(overflow="fold")
    facts.add_row("objective", found["objective"])
    facts.add_row("contention", found["contention"])
    facts.add_row("memory model", found["memory_model"])
    rounded = rounding_text(problem)
    if rounded is not None:
        facts.add_row("rounding", Text(rounded))
    facts.add_row("shape", f"depth {found['depth']:,}, width {found['width']:,}")
    facts.add_row("groups", f"{found['groups']:,} after colocation, {found['separated_pairs']:,} separated pairs")
    if found["release_times"] or found["deadlines"]:
        facts.add_row("times", _times(problem, found))
    if found["tasks_with_relocation"]:
        moving, runs = counted(found["tasks_with_relocation"], "task"), counted(found["runs_before_next_change"], "run")
        facts.add_row("relocation", f"{moving} may move at a cost, which serves {runs}")
    memory = {key: size_text(amount) for key, amount in found["memory"].items()}
    facts.add_row(
        "memory",
        f"resident {memory['resident']}, output {memory['output']}, scratch {memory['scratch']}; "
        f"largest task {memory['largest_task']}",
    )
    console.print(facts)
    console.print("\n[bold]device classes[/bold] (interchangeable devices)")
    table = Table(box=None, padding=(0, 2, 0, 2), header_style="bold")
    for header in ("devices", "type", "capacity each", "may run"):
        table.add_column(header, overflow="fold")
    for group in found["device_classes"]:
        names = group["devices"]
        label = names[0] if len(names) == 1 else f"{names[0]} .. {names[-1]} ({len(names)})"
        capacity = "unlimited" if group["capacity"] is None else size_text(group["capacity"])
        may_run = f"{group['feasible_tasks']:,} of {problem.n_tasks:,} tasks"
        table.add_row(Text(visible(label)), Text(visible(group["type"], 20)), capacity, may_run)
    console.print(table)
    print_exact_passes(console, found["exact_passes"])
    if found["infeasible"] is not None:
        console.print(Text.assemble("\n", ("infeasible", "red"), f": {found['infeasible']}"))
        return
    console.print("\n[bold]lower bounds[/bold]")
    console.print(bounds_table(problem, found["bounds"]))


def _times(problem: Problem, found: dict[str, Any]) -> str:
    """How many tasks have a release time, how many a deadline, and which bind the most."""

    def count(number: int, noun: str, which: str, ticks: int) -> str:
        return f"{number:,} {noun}{'' if number == 1 else 's'} ({which} {time_text(ticks, problem.resolution)})"

    parts = []
    if found["release_times"]:
        parts.append(count(found["release_times"], "release time", "the latest", found["latest_release"]))
    if found["deadlines"]:
        parts.append(count(found["deadlines"], "deadline", "the earliest", found["earliest_deadline"]))
    return ", ".join(parts)
