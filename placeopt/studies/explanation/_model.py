"""Model all constraints of a system in CP-SAT, each with an enforcement literal, for first cores and smallest amounts.

x[i, d] is true if task i is on device d, one of those with a duration for it. Each constraint c has a literal a_c:

- a restriction: a_c implies not x[i, d] on the devices that it excludes;
- the capacity of devices: a_c implies that the sum of need[i] x[i, d] and the largest extra[i] x[i, d] are together at
  most the capacity, on each of them;
- the capacity of a budget likewise, and that of a renewable resource for each task alone;
- a task i in a colocation label L: a_c and x[i, d] imply y[L, d], where exactly one y[L, d] is true;
- a task i in a separation label L: a_c and x[i, d] imply w[i, L, d], at most one of which is true for each d, and for
  all modes and teams of a device together;
- with times (`timed`): starts, ends, no overlap on a device unless it is parallel, the use of resources at one time,
  end[i] + transfer <= start[j] for each edge, and a_c implies the deadline, the release time, or that a window in which
  devices are unavailable counts as a task.

need[i] is the memory that task i holds permanently: all its memory under `sum`, `resident` under `peak`. extra[i] is
what it holds in addition while it runs: nothing under `sum`, its output and scratch under `peak`. Contention, setup
times, swapping, limits of metrics and other live memory over time are not modelled, nor are the stages of pipelines
and the outputs that they keep. With any of them, the model is a relaxation, so that a core of the model is still a core
of the problem.

CP-SAT returns a core for assumptions only with one worker and without presolve (google/or-tools#3102, #5141). Its
presolve is also unreliable for large numbers (see `placeopt.bounding.engines.cp_sat`), so presolve is off here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from placeopt.bounding.engines import cp_sat
from placeopt.model.arrays import Int
from placeopt.studies.explanation.constraints import CAPACITIES, RESTRICTIONS, Constraint, System

LITERALS = 400_000
"""Maximum number of placement literals and transfer rows of a model; building these takes a few seconds in Python."""

LONGEST = 2**55
"""Maximum horizon, above which CP-SAT's arithmetic could overflow."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """CP-SAT's answer: a placement (n,) with starts (n,) if timed, or a core of the constraints; None if unknown."""

    device: Int | None = None
    start: Int | None = None
    core: tuple[int, ...] | None = None


class Model:
    """The model of a system; see the module docstring."""

    def __init__(self, system: System, *, timed: bool, should_stop: Callable[[], bool]) -> None:
        self.system, self.timed, self._should_stop = system, timed, should_stop
        self.cp = cp_model.CpModel()
        problem = system.problem
        self.literals = [self.cp.new_bool_var("") for _ in system.constraints]
        self.x: list[dict[int, Any]] = []
        for row in system.runnable:
            literals = {d: self.cp.new_bool_var("") for d in np.flatnonzero(row).tolist()}
            self.cp.add_exactly_one(literals.values())
            self.x.append(literals)
        self._need = (problem.memory if problem.memory_model == "sum" else problem.resident).tolist()
        extra = problem.output + problem.scratch
        self._extra = (np.zeros_like(extra) if problem.memory_model == "sum" else extra).tolist()
        self._rooms: dict[int, tuple[Any, int]] = {}  # by constraint, its capacity and the size of a unit of it
        crowds: dict[tuple[str, str], list[tuple[int, Constraint]]] = {}
        for number, constraint in enumerate(system.constraints):
            if constraint.kind in CAPACITIES:
                self._capacity(number, constraint)
            elif constraint.kind in RESTRICTIONS:
                assert constraint.task is not None
                assert constraint.allowed is not None
                for d, literal in self.x[constraint.task].items():
                    if not constraint.allowed[d]:
                        self.cp.add_implication(self.literals[number], ~literal)
            elif constraint.kind in ("colocate", "separate"):
                crowds.setdefault((constraint.kind, constraint.label), []).append((number, constraint))
        for (kind, _), members in crowds.items():
            (self._together if kind == "colocate" else self._apart)(members)
        self.starts: list[Any] = []
        self.ends: list[Any] = []
        if timed:
            self._times()

    @staticmethod
    def fits(system: System, *, timed: bool) -> bool:
        """Return whether a model is within LITERALS and LONGEST."""
        problem = system.problem
        size = int(system.runnable.sum())
        if timed:
            if problem.pipeline is not None:  # it limits no times
                return False
            size += problem.n_edges * problem.n_devices**2
            if _horizon(system) > LONGEST:
                return False
        return size <= LITERALS

    def core(self, active: Collection[int], seconds: float) -> Found:
        """Return a placement that satisfies the `active` constraints, or a core of them."""
        self.cp.clear_assumptions()
        self.cp.add_assumptions([self.literals[number] for number in sorted(active)])
        outcome = self._solved(self.cp, seconds)
        solver = outcome.solver
        if outcome.solved:
            start = np.array([solver.value(start) for start in self.starts], dtype=np.int64) if self.timed else None
            return Found(self._placement(solver), start)
        if outcome.status == "INFEASIBLE":
            number_of = {literal.index: number for number, literal in enumerate(self.literals)}
            found = {number_of.get(index, -1) for index in solver.sufficient_assumptions_for_infeasibility()}
            return Found(core=tuple(sorted(found & set(active))))
        return Found()

    def least(self, number: int, active: Collection[int], seconds: float) -> tuple[int | None, Int | None]:
        """Return the smallest amount (bytes, ticks) or latest release time of a constraint that satisfies the others.

        Unless the model is exact, this is a bound: no better amount suffices. None if unknown. Then the best placement
        found (n,), or None.
        """
        constraint = self.system.constraints[number]
        self.cp.clear_assumptions()
        wanted = {self.literals[other].index for other in active if other != number}
        copy = self.cp.clone()
        for literal in self.literals:
            at = copy.get_bool_var_from_proto_index(literal.index)
            copy.add(at == int(literal.index in wanted))
        unit = 1
        if constraint.kind in CAPACITIES:
            room, unit = self._rooms[number]
            target, sign = copy.get_int_var_from_proto_index(room.index), 1
        else:
            assert constraint.task is not None
            late = constraint.kind == "deadline"
            own = (self.ends if late else self.starts)[constraint.task]
            target, sign = copy.get_int_var_from_proto_index(own.index), 1 if late else -1
        copy.minimize(sign * target)
        outcome = self._solved(copy, seconds)
        if not outcome.solved:
            return None, None
        placed = self._placement(outcome.solver)
        if outcome.bound is None:
            return None, placed
        bound = outcome.bound * sign  # what is proved, regardless of the best solution
        more = self.system.beyond(constraint) if constraint.kind == "memory" else 0
        return bound * unit - more, placed

    def _placement(self, solver: cp_model.CpSolver) -> Int:
        places = [next(d for d, literal in row.items() if solver.boolean_value(literal)) for row in self.x]
        return np.array(places, dtype=np.int64)

    def _solved(self, model: cp_model.CpModel, seconds: float) -> cp_sat.Outcome:
        return cp_sat.run(model, largest=None, seconds=seconds, seed=0, workers=1, should_stop=self._should_stop)

    def _capacity(self, number: int, constraint: Constraint) -> None:
        """Add a variable for a capacity, at most the stated one if the constraint is enforced."""
        resources, ticks = self.system.resources, self.system.ticks
        assert constraint.amount is not None
        devices = self.system.limited(constraint) if constraint.kind == "memory" else []
        need, extra = (self._need, self._extra) if devices else ([], [])
        amounts = {r: resources.amounts(r) for r in constraint.resources} if resources is not None else {}
        parts = [np.array(need + extra, dtype=np.int64), *(each.ravel() for each in amounts.values())]
        unit = max(1, int(np.gcd.reduce(np.concatenate(parts), initial=0)))
        largest = max(extra, default=0) // unit
        sums = [sum(need), *(int(each.max(axis=1, initial=0).sum()) for each in amounts.values())]
        total = max(sums) // unit + largest
        room = self.cp.new_int_var(0, total, "")
        self._rooms[number] = room, unit
        most = constraint.amount + (self.system.beyond(constraint) if devices else 0)
        self.cp.add(room <= min(total, most // unit)).only_enforce_if(self.literals[number])
        for d in devices:
            used = [(row[d], size // unit) for row, size in zip(self.x, need, strict=True) if d in row]
            running: Any = 0
            if largest:
                running = self.cp.new_int_var(0, largest, "")
                for i, row in enumerate(self.x):
                    if extra[i] and d in row and ticks[i, d]:  # others hold nothing for any time
                        self.cp.add(running >= extra[i] // unit).only_enforce_if(row[d])
            self.cp.add(sum(literal * size for literal, size in used if size) + running <= room)
        for r, each in amounts.items():
            assert resources is not None
            units = (each // unit).tolist()
            used = [(literal, units[i][d]) for i, row in enumerate(self.x) for d, literal in row.items() if units[i][d]]
            if not resources.renewable[r]:
                self.cp.add(sum(literal * size for literal, size in used) <= room)
                continue
            for i, row in enumerate(self.x):
                for d, literal in row.items():
                    if ticks[i, d]:  # others use nothing
                        self.cp.add(room >= units[i][d]).only_enforce_if(literal)

    def _together(self, members: Sequence[tuple[int, Constraint]]) -> None:
        where = [self.cp.new_bool_var("") for _ in range(self.system.problem.n_devices)]
        self.cp.add_exactly_one(where)
        for number, constraint in members:
            assert constraint.task is not None
            for d, literal in self.x[constraint.task].items():
                self.cp.add_bool_or(~self.literals[number], ~literal, where[d])

    def _apart(self, members: Sequence[tuple[int, Constraint]]) -> None:
        taken: list[list[Any]] = [[] for _ in range(self.system.problem.n_devices)]
        for number, constraint in members:
            assert constraint.task is not None
            for d, literal in self.x[constraint.task].items():
                there = self.cp.new_bool_var("")
                self.cp.add_bool_or(~self.literals[number], ~literal, there)
                for each in self.system.members[d]:
                    taken[each].append(there)
        for rivals in taken:
            self.cp.add_at_most_one(rivals)

    def _times(self) -> None:
        system, problem, cp = self.system, self.system.problem, self.cp
        horizon = _horizon(system)
        intervals: list[dict[int, Any]] = [{} for _ in range(problem.n_devices)]
        windows: list[dict[str, list[Any]]] = [{} for _ in range(problem.n_devices)]  # those of one key do not overlap
        for i, row in enumerate(self.x):
            start, end = cp.new_int_var(0, horizon, ""), cp.new_int_var(0, horizon, "")
            ticks = system.ticks[i].tolist()
            cp.add(end == start + sum(literal * ticks[d] for d, literal in row.items()))
            self.starts.append(start)
            self.ends.append(end)
            for d, literal in row.items():
                if ticks[d]:  # tasks of zero duration overlap nothing
                    intervals[d][i] = cp.new_optional_fixed_size_interval_var(start, ticks[d], literal, "")
        for number, constraint in enumerate(system.constraints):
            if constraint.window is not None:
                begin, until = constraint.window
                closed = cp.new_optional_fixed_size_interval_var(begin, until - begin, self.literals[number], "")
                for d in system.inside(constraint):
                    windows[d].setdefault(constraint.label, []).append(closed)
        resources = system.resources
        for d, group in enumerate(intervals):
            alone = [[each] for each in group.values()] if problem.parallel[d] else [list(group.values())]
            for shut in windows[d].values() or ([],):
                for part in alone:
                    cp.add_no_overlap([*part, *shut])
        rooms = [(r, *of) for number, of in self._rooms.items() for r in system.constraints[number].resources]
        for r, room, unit in (*rooms, *((r, None, 1) for r in system.occupied)):
            assert resources is not None
            if resources.renewable[r]:
                amounts = (resources.amounts(r) // unit).tolist()
                used = [(i, d) for d, group in enumerate(intervals) for i in group if amounts[i][d]]
                demands = [amounts[i][d] for i, d in used]
                most = int(resources.capacity[r]) if room is None else room
                cp.add_cumulative([intervals[d][i] for i, d in used], demands, most)
        everywhere = np.arange(problem.n_devices)
        columns = problem.edge_source.tolist(), problem.edge_target.tolist(), problem.payload.tolist()
        for i, j, payload in zip(*columns, strict=True):
            cp.add(self.starts[j] >= self.ends[i])
            transfer = problem.transfer(payload, everywhere[:, None], everywhere[None, :]).tolist()
            for a, here in self.x[i].items():
                for b, there in self.x[j].items():
                    if transfer[a][b]:
                        cp.add(self.starts[j] >= self.ends[i] + transfer[a][b]).only_enforce_if(here, there)
        for number, constraint in enumerate(system.constraints):
            if constraint.kind in ("deadline", "release"):
                task, amount = constraint.task, constraint.amount
                assert task is not None
                assert amount is not None
                rule = self.ends[task] <= amount if constraint.kind == "deadline" else self.starts[task] >= amount
                cp.add(rule).only_enforce_if(self.literals[number])


def _horizon(system: System) -> int:
    """Return a horizon in ticks: all tasks and transfers in sequence after the last release time and the last window.

    It is valid because a later start never helps to satisfy a constraint.
    """
    problem = system.problem
    everywhere = np.arange(problem.n_devices)
    slowest = 0
    for payload, edges in zip(*(part.tolist() for part in np.unique(problem.payload, return_counts=True)), strict=True):
        slowest += edges * int(problem.transfer(payload, everywhere[:, None], everywhere[None, :]).max(initial=0))
    return problem.latest_opening + int(system.ticks.max(axis=1, initial=0).sum()) + slowest
