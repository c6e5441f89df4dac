"""A problem as HTML for notebooks."""

from __future__ import annotations

from placeopt.errors import counted
from placeopt.model.modes import memory_capacity, own_classes, tasks_by_device
from placeopt.model.notebook import facts_table, framed, grid_table, note
from placeopt.model.problem import Problem, document_facts, sizes
from placeopt.model.units import size_text, time_text

DEVICE_ROWS = 20
"""Maximum number of rows of the table of device classes in a notebook."""


def problem_html(problem: Problem) -> str:
    """The problem as HTML: its sizes and settings, and a table of its device classes."""
    facts = [
        ("size", sizes(problem)),
        ("objective", str(problem.objective)),
        ("contention", problem.contention),
        ("memory model", problem.memory_model),
        ("a tick", time_text(1, problem.resolution)),
        *document_facts(problem),
        ("memory of the tasks", size_text(int(problem.memory.sum()))),
    ]
    if problem.shared_links is not None:
        facts.append(("shared links", "; ".join(problem.shared_links.texts(problem.device_names)[:DEVICE_ROWS])))
    if problem.n_groups < problem.n_tasks:
        facts.append(("colocation", counted(problem.n_groups, "group")))
    classes, able = own_classes(problem), tasks_by_device(problem)
    rows = []
    for members in classes[:DEVICE_ROWS]:
        first = members[0]
        label = problem.device_names[first]
        if len(members) > 1:
            label = f"{label} .. {problem.device_names[members[-1]]} ({len(members):,})"
        tiers = [memory_capacity(problem, first)] if problem.tiers is None else problem.tiers.sizes(first)
        memory = " + ".join("unlimited" if size is None else size_text(size) for size in tiers)
        rows.append((label, problem.device_types[first], memory, f"{int(able[first].sum()):,}"))
    parts = [facts_table(facts), grid_table(("devices", "type", "memory of each", "tasks that may run"), rows, left=2)]
    if len(classes) > DEVICE_ROWS:
        more = len(classes) - DEVICE_ROWS
        parts.append(note(f"and {more:,} other device class{'' if more == 1 else 'es'}"))
    if problem.description:
        parts.insert(0, note(problem.description))
    return framed(problem.name or "problem", *parts)
