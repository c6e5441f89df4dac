"""Describe problems for `placeopt inspect`, and lower bounds for `placeopt bounds` too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from placeopt.bounding.quick import Bound, bounds, prove_infeasible
from placeopt.cli.terminal.console import facts_table, new_table, print_problem
from placeopt.errors import counted, listing, visible
from placeopt.model.metrics import ccr, shape
from placeopt.model.modes import memory_capacity, modes_by_device, own_classes, tasks_by_device
from placeopt.model.objective import simplified
from placeopt.model.problem import UNLIMITED, Problem, document_facts
from placeopt.model.resource_use import SHOWN, amount_text, device_resources
from placeopt.model.units import size_text, time_text
from placeopt.orchestration.result import number
from placeopt.passes import EXACT_PASSES, apply_passes
from placeopt.views.facts import change_text, pipeline_text, unit_metric, value_text


def inspection(problem: Problem) -> dict[str, Any]:
    """Return sizes, shape, memory, device classes, the effect of exact passes, and bounds as plain data."""
    form, links = shape(problem), problem.shared_links
    proof = prove_infeasible(problem)
    stated = problem.deadline != UNLIMITED
    chain = apply_passes(problem, EXACT_PASSES)
    able, modes = tasks_by_device(problem), modes_by_device(problem)
    steps = [{"pass": step.name, "explanation": step.reduction.explanation} for step in chain.steps]
    return {
        "problem": problem.name,
        "description": problem.description,
        "fingerprint": problem.fingerprint(),
        "resolution": float(problem.resolution),
        "rounding": None if problem.rounding is None else problem.rounding.to_dict(),
        "efficiency": [found.to_dict() for found in problem.efficiency],
        "notes": list(problem.notes),
        "objective": str(problem.objective),
        "contention": problem.contention,
        "shared_links": [] if links is None else links.texts(problem.device_names),
        "memory_model": problem.memory_model,
        "pipeline": None if problem.pipeline is None else pipeline_text(problem),
        "tasks": problem.n_tasks,
        "edges": problem.n_edges,
        "devices": len(able),
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
                "capacity": memory_capacity(problem, members[0]),
                "tiers": [] if problem.tiers is None else problem.tiers.sizes(members[0]),
                "unavailable": [] if problem.unavailable is None else problem.unavailable.of(members[0]),
                "setup": {} if problem.setups is None else problem.setups.changes(members[0]),
                **_running(problem, members[0]),
                "feasible_tasks": int(able[members[0]].sum()),
                "modes": modes[members[0]],
            }
            for members in own_classes(problem)
        ],
        "resources": _resources(problem),
        "exact_passes": chain.applied.to_dict() | {"steps": steps},
        "infeasible": None if proof is None else proof.reason,
        "bounds": [] if proof is not None else bounds_data(bounds(problem)),
    }


def _running(problem: Problem, d: int) -> dict[str, Any]:
    """Return whether a device runs several tasks at once, and its cores."""
    resources = problem.resources
    r = None if resources is None else resources.cores_of(problem.device_names[d])
    return {
        "parallel": bool(problem.parallel[d]),
        "cores": None if resources is None or r is None else resources.stated(r, int(resources.capacity[r])),
    }


def _resources(problem: Problem) -> list[dict[str, Any]]:
    """Return each resource: its capacity, what one task uses at most, and what all tasks use at least and at most."""
    resources, found, hidden = problem.resources, [], device_resources(problem)
    for r, name in enumerate(() if resources is None else resources.names):
        if resources is None or r in hidden:
            continue
        amounts = resources.amounts(r)
        most = amounts.max(axis=1, initial=0)
        figures = {
            "capacity": resources.capacity[r],
            "largest_task": most.max(initial=0),
            "least": np.where(problem.feasible, amounts, most[:, None]).min(axis=1).sum(),
            "most": most.sum(),
        }
        found.append({
            "name": name,
            "renewable": bool(resources.renewable[r]),
            "memory": resources.is_memory(r),
            "tasks": int((most > 0).sum()),
            **{key: resources.stated(r, int(amount)) for key, amount in figures.items()},
        })  # fmt: skip
    return found


def _resource_text(found: dict[str, Any]) -> str:
    """Describe a resource in one line."""
    keys = ("capacity", "largest_task", "least", "most")
    capacity, largest, least, most = (amount_text(found[key], memory=found["memory"]) for key in keys)
    users = counted(found["tasks"], "task")
    if found["renewable"]:
        return f"{capacity} at one time; {users} use{'s' * (found['tasks'] == 1)} it, up to {largest} each"
    total = least if least == most else f"{least} to {most}"
    return f"{capacity} in all; {users} use{'s' * (found['tasks'] == 1)} {total}"


def print_inspection(console: Console, problem: Problem, found: dict[str, Any]) -> None:
    """Print the result of `inspection`."""
    print_problem(console, problem)
    if found["description"]:
        console.print(Text(visible(found["description"], 1000)))
    facts = [("objective", found["objective"])]
    if found["pipeline"] is None:
        facts += [("contention", found["contention"]), ("memory model", found["memory_model"])]
    else:
        facts.append(("pipeline", found["pipeline"]))
    for k, each in enumerate(found["shared_links"][:SHOWN]):
        facts.append(("" if k else "shared links", each))
    if len(found["shared_links"]) > SHOWN:
        facts.append(("", f"{counted(len(found['shared_links']) - SHOWN, 'other shared link')}; --json lists all"))
    facts += document_facts(problem)
    facts.append(("shape", f"depth {found['depth']:,}, width {found['width']:,}"))
    facts.append(
        ("groups", f"{found['groups']:,} after colocation, {counted(found['separated_pairs'], 'separated pair')}")
    )
    if found["release_times"] or found["deadlines"]:
        facts.append(("times", _times(problem, found)))
    for device in found["device_classes"]:
        if device["unavailable"]:
            windows = [[time_text(tick, problem.resolution) for tick in window] for window in device["unavailable"]]
            when = listing([f"{begin} to {end}" for begin, end in windows], 4)
            facts.append(("unavailable", f"{listing(device['devices'], 3)}: {when}"))
        if device["setup"]:
            most = {name: max(by.values()) if isinstance(by, dict) else by for name, by in device["setup"].items()}
            times = listing(
                [f"{visible(name, 40)} {time_text(ticks, problem.resolution)}" for name, ticks in most.items()], 4
            )
            facts.append(("setup times", f"{listing(device['devices'], 3)}: at most {times}"))
    for k, each in enumerate(found["resources"][:SHOWN]):
        facts.append(("" if k else "resources", f"{visible(each['name'], 40)}: {_resource_text(each)}"))
    if len(found["resources"]) > SHOWN:
        facts.append(("", f"{counted(len(found['resources']) - SHOWN, 'other resource')}; --json lists all"))
    if found["tasks_with_relocation"]:
        moving, runs = counted(found["tasks_with_relocation"], "task"), counted(found["runs_before_next_change"], "run")
        facts.append(("relocation", f"{moving} may move at a cost, shared by {runs}"))
    memory = {key: size_text(amount) for key, amount in found["memory"].items()}
    amounts = ", ".join(f"{key} {memory[key]}" for key in ("resident", "output", "scratch"))
    facts.append(("memory", f"{amounts}; largest task {memory['largest_task']}"))
    console.print(facts_table(facts))
    console.print("\n[bold]device classes[/bold] (interchangeable devices)")
    headers: tuple[str, ...] = ("devices", "type", "capacity each", "may run")
    if any(group["parallel"] for group in found["device_classes"]):
        headers += ("runs at once",)
    if any(group["modes"] for group in found["device_classes"]):
        headers += ("modes",)
    table = new_table(*headers, wrap=headers, indent=2)
    for group in found["device_classes"]:
        names = group["devices"]
        label = names[0] if len(names) == 1 else f"{names[0]} .. {names[-1]} ({len(names)})"
        sizes = group["tiers"] or [group["capacity"]]
        capacity = " + ".join("unlimited" if size is None else size_text(size) for size in sizes)
        may_run = f"{group['feasible_tasks']:,} of {problem.n_tasks:,} tasks"
        at_once = "several tasks" if group["parallel"] else "one task"
        if group["cores"] is not None:
            at_once = counted(group["cores"], "core")
        cells = {
            "devices": visible(label),
            "type": visible(group["type"], 20),
            "capacity each": capacity,
            "may run": may_run,
            "runs at once": at_once,
            "modes": listing(group["modes"], 6) if group["modes"] else "",
        }
        table.add_row(*(Text(cells[header]) for header in headers))
    console.print(table)
    _print_exact_passes(console, found["exact_passes"])
    if found["infeasible"] is not None:
        console.print(Text.assemble("\n", ("infeasible", "red"), f": {found['infeasible']}"))
        return
    console.print("\n[bold]lower bounds[/bold]")
    console.print(bounds_table(problem, found["bounds"]))


def _print_exact_passes(console: Console, found: dict[str, Any]) -> None:
    """Print the effect of the exact passes, step by step."""
    console.print("\n[bold]exact passes[/bold] (used by exact solvers)")
    if not found["steps"]:
        console.print("  nothing to remove")
        return
    table = new_table("pass", "effect", wrap=["effect"], indent=2)
    table.show_header = False
    for step in found["steps"]:
        table.add_row(step["pass"], Text(step["explanation"]))
    table.add_row("together", Text(change_text(found["before"], found["after"])))
    console.print(table)


def _times(problem: Problem, found: dict[str, Any]) -> str:
    """Describe release times and deadlines: their numbers, the latest and the earliest."""
    parts = []
    if found["release_times"]:
        latest = time_text(found["latest_release"], problem.resolution)
        parts.append(f"{counted(found['release_times'], 'release time')} (latest {latest})")
    if found["deadlines"]:
        earliest = time_text(found["earliest_deadline"], problem.resolution)
        parts.append(f"{counted(found['deadlines'], 'deadline')} (earliest {earliest})")
    return ", ".join(parts)


def bounds_data(found: Sequence[Bound]) -> list[dict[str, Any]]:
    """Return bounds as plain data."""
    return [
        {
            "name": bound.name,
            "value": number(bound.value),
            "seconds": round(bound.seconds, 6),
            "explanation": bound.explanation,
        }
        for bound in found
    ]


def bounds_table(problem: Problem, found: Sequence[dict[str, Any]]) -> Table:
    """Return a table of bounds from `bounds_data`."""
    table = new_table(
        "bound", "value", "time", "why no schedule is better", wrap=["why no schedule is better"], indent=2
    )
    for bound in found:
        value = value_text(bound["value"], problem, unit_metric(problem.objective), ticks=False)
        table.add_row(bound["name"], value, f"{bound['seconds']:.3f} s", Text(bound["explanation"]))
    return table
