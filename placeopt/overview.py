"""What Python and a notebook show of a problem."""

from __future__ import annotations

from placeopt.errors import visible
from placeopt.ir import COARSE, UNLIMITED, Problem
from placeopt.markup import facts_table, framed, grid_table, note
from placeopt.units import size_text, time_text

KINDS = 20
"""Lines of the table of devices."""


def counted(number: int, noun: str) -> str:
    """1 task, 1,200 tasks."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def sizes(problem: Problem) -> str:
    """The numbers of tasks, edges and devices."""
    counts = (problem.n_tasks, "task"), (problem.n_edges, "edge"), (problem.n_devices, "device")
    return ", ".join(counted(number, noun) for number, noun in counts)


def rounding_text(problem: Problem) -> str | None:
    """How much rounding to ticks changes the times of the document at most; None where that is little."""
    rounding = problem.rounding
    if rounding is None or rounding.share <= COARSE:
        return None
    share = f"{rounding.share:,.0%}" if rounding.share < 1e4 else "more than 1,000,000%"
    tick = time_text(1, problem.resolution)
    return f"times are rounded to the {tick} tick, by up to {share} ({rounding.where}); a finer resolution avoids it"


def problem_text(problem: Problem) -> str:
    """The problem as `repr` shows it."""
    name = f"{visible(problem.name)}: " if problem.name else ""
    return f"<Problem {name}{sizes(problem)}>"


def problem_html(problem: Problem) -> str:
    """The problem as a notebook shows it: sizes, what is minimised, and a line for each kind of device."""
    facts = [
        ("size", sizes(problem)),
        ("objective", str(problem.objective)),
        ("contention", problem.contention),
        ("memory model", problem.memory_model),
        ("a tick", time_text(1, problem.resolution)),
        *(("rounding", text) for text in [rounding_text(problem)] if text is not None),
        ("memory of the tasks", size_text(int(problem.memory.sum()))),
    ]
    if problem.n_groups < problem.n_tasks:
        facts.append(("colocation", counted(problem.n_groups, "group")))
    kinds = device_kinds(problem)
    rows = []
    for members in kinds[:KINDS]:
        first = members[0]
        names = problem.device_names[first]
        if len(members) > 1:
            names = f"{names} .. {problem.device_names[members[-1]]} ({len(members):,})"
        capacity = int(problem.capacity[first])
        memory = "unlimited" if capacity == UNLIMITED else size_text(capacity)
        rows.append((names, problem.device_types[first], memory, f"{int(problem.feasible[:, first].sum()):,}"))
    parts = [facts_table(facts), grid_table(("devices", "type", "memory of each", "tasks that may run"), rows, left=2)]
    if len(kinds) > KINDS:
        parts.append(note(f"and {counted(len(kinds) - KINDS, 'other kind')} of device"))
    if problem.description:
        parts.insert(0, note(problem.description))
    return framed(problem.name or "problem", *parts)


def device_kinds(problem: Problem) -> list[list[int]]:
    """The devices, those together that are interchangeable, in order of first appearance."""
    kinds: dict[int, list[int]] = {}
    for device, label in enumerate(problem.device_class.tolist()):
        kinds.setdefault(label, []).append(device)
    return list(kinds.values())
