"""Re-placement: an existing plan on a changed network, moved at least cost.

Devices are lost, come, become slower; tasks stay where they are unless moving them pays: the objective counts what
moving costs, divided by the runs until the next change (`placeopt.model.relocation`). The answer is never worse than
leaving in place what can stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace as with_
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from placeopt.errors import InternalError
from placeopt.io.document import Files
from placeopt.model.objective import METRICS, simplified
from placeopt.model.problem import Problem
from placeopt.model.relocation import GONE
from placeopt.model.schedule import Schedule
from placeopt.solver import Termination
from placeopt.solver.registry import find_solver
from placeopt.solving.pipeline import solve
from placeopt.solving.result import Result, number, with_schedule
from placeopt.studies.replacement.network import Changed, Source, changed_problem
from placeopt.studies.replacement.staying import Stay, staying

__all__ = ["Move", "Replacement", "Stay", "changed_problem", "replace", "replaced"]

Why = Literal["new", "gone", "barred", "chosen"]


@dataclass(frozen=True, slots=True)
class Move:
    """A task that does not stay.

    Attributes
    ----------
    task, source, target
        Its name, and those of the devices; no source for a new task.
    bytes
        What moves over the link: nothing where there is no device to move it from.
    ticks
        What that takes, and starting up.
    why
        new: it is on no device. gone: its device is. barred: that may not run it, or one of its group, any more.
        chosen: it pays.
    """

    task: str
    source: str | None
    target: str
    bytes: int
    ticks: int
    why: Why


@dataclass(frozen=True, slots=True)
class Replacement:
    """A plan on a changed network.

    Attributes
    ----------
    problem
        The tasks on the devices that there are now, with relocation as part of the objective.
    result
        The verified result.
    before
        The device of each task before, by their names, as far as it had one.
    gone, new
        Devices that were there before, and those that were not.
    moves
        The tasks that do not stay, in the problem's order; none without a schedule.
    stay
        What it costs to move only what has to.
    """

    problem: Problem
    result: Result
    before: Mapping[str, str]
    gone: tuple[str, ...]
    new: tuple[str, ...]
    moves: tuple[Move, ...]
    stay: Stay

    @property
    def relocation(self) -> int | None:
        """Ticks that all moves take, one after the other; None without a schedule."""
        return None if self.result.schedule is None else sum(move.ticks for move in self.moves)

    @property
    def saved(self) -> Fraction | int | None:
        """By how much the objective's first level is less than that of staying; None where either is unknown."""
        ours, theirs = self.result.objective, self.stay.values
        return None if ours is None or theirs is None or not self.result.feasible else theirs[0] - ours

    @property
    def pays_after(self) -> int | None:
        """After how many runs the moves that are chosen have paid for themselves by a shorter makespan; None where
        they do not, or nothing is known of staying."""
        if self.stay.schedule is None or self.stay.makespan is None or self.result.makespan is None:
            return None
        shorter = self.stay.makespan - self.result.makespan
        dearer = (self.relocation or 0) - METRICS["relocation"](self.problem, self.stay.schedule)
        if dearer <= 0:
            return 0 if shorter >= 0 else None
        return -(-dearer // shorter) if shorter > 0 else None

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data, ready for JSON, and what moves."""
        stay = self.stay
        return self.result.to_dict() | {
            "runs_before_next_change": number(simplified(self.problem.runs_before_next_change)),
            "relocation": self.relocation,
            "devices_gone": list(self.gone),
            "devices_new": list(self.new),
            "moves": [
                {"task": m.task, "from": m.source, "to": m.target, "bytes": m.bytes, "ticks": m.ticks, "why": m.why}
                for m in self.moves
            ],
            "stay": {
                "feasible": stay.schedule is not None,
                "reason": stay.reason,
                "forced": [self.problem.task_names[i] for i in stay.forced],
                "objective": None if stay.values is None else number(stay.values[0]),
                "objective_levels": None if stay.values is None else [number(value) for value in stay.values],
                "makespan": stay.makespan,
            },
            "saved": number(self.saved),
            "pays_after": self.pays_after,
        }


def replace(
    problem: Source | Problem,
    plan: str | Path | Schedule | Mapping[str, str],
    devices: str | Path | Mapping[str, Any] | Problem,
    *,
    solver: str = "auto",
    runs: float | Fraction | None = None,
    files: Files | None = None,
    **options: Any,
) -> Replacement:
    """The plan moved to a changed network, at least cost.

    Parameters
    ----------
    problem
        What the plan was made for: a file, a document or a Spec; a compiled Problem only with another one for
        `devices`, since it no longer knows how long tasks take elsewhere.
    plan
        A plan file, a schedule, or the names of devices by task; tasks that the last leaves out are new.
    devices
        The devices that there are now, with their `links` and `operations` where these change: a file or a document.
        Devices of the same name are the same device. Or a Problem with the same tasks; then what moves with a task is
        its resident memory.
    solver
        Any that supports the problem's objective with relocation in it. Those that can start from staying.
    runs
        How many runs the new placement serves; as the problem says, or one.
    files
        Which files the problem's document may name, as in `placeopt.load`. By default "any" if it is a file, "none"
        if it was made in code.
    **options
        Of `placeopt.solve`: time_limit, gap_limit, seed, workers, passes, bound_time, on_progress, should_stop, and
        settings of the solver.

    Raises
    ------
    SpecError
        If a document is wrong, or a task has no device on the changed network; lists every issue.
    PlanError
        If the plan file is wrong.
    UsageError
        If an argument makes no sense.
    UnsupportedError
        If the solver does not support the objective.
    """
    find_solver(solver)
    return replaced(changed_problem(problem, plan, devices, runs, files), solver, **options)


def replaced(changed: Changed, solver: str, **options: Any) -> Replacement:
    """The answer to a changed problem."""
    problem = changed.problem
    stay = staying(problem, changed.current, changed.start)
    initial = stay.schedule if find_solver(solver).info.warm_start else None
    result = _never_worse(solve(problem, solver, initial=initial, **options), stay)
    return Replacement(
        problem=problem,
        result=result,
        before=changed.where,
        gone=tuple(name for name in changed.before if name not in problem.device_names),
        new=tuple(name for name in problem.device_names if name not in changed.before),
        moves=_moves(changed, stay, result.schedule),
        stay=stay,
    )


def _never_worse(result: Result, stay: Stay) -> Result:
    """The result, with the schedule that stays where the solver has no better one."""
    if stay.schedule is None or stay.values is None:
        return result
    if result.feasible and result.values is not None and result.values < stay.values:
        return result
    alike = bool(result.feasible) and result.values == stay.values
    if not alike and result.termination in (Termination.OPTIMAL, Termination.INFEASIBLE):
        claim = f"{result.solver} says that the changed problem is {result.termination.value}"
        raise InternalError(f"{claim}, and leaving the tasks where they are is feasible and better")
    told = "" if alike else f"{result.solver} found nothing better than to move only what has to"
    message = "; ".join(part for part in (result.message, told) if part)
    return with_schedule(with_(result, message=message), stay.schedule, stay.values, stay.makespan)


def _moves(changed: Changed, stay: Stay, schedule: Schedule | None) -> tuple[Move, ...]:
    problem, where, forced = changed.problem, changed.where, frozenset(stay.forced)
    found = []
    for i, d in enumerate([] if schedule is None else schedule.device.tolist()):
        source = int(changed.current[i])
        if source == d:
            continue
        name = problem.task_names[i]
        why: Why = "chosen"
        if source == GONE:
            why = "gone" if name in where else "new"
        elif i in forced:
            why = "barred"
        moved = 0 if source == GONE else int(changed.moved[i])
        found.append(Move(name, where.get(name), problem.device_names[d], moved, int(problem.relocation[i, d]), why))
    return tuple(found)
