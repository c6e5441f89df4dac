"""The conformance suite: what every solver must do, ours or a third party's.

    import pytest
    from placeopt.testing import CASES, check_solver

    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
    def test_my_solver(case):
        check_solver("my-solver", case)

A solver may refuse a case whose objective, contention or memory model it does not declare. Of the rest it
must return verified schedules, bounds that hold, the same answer for the same seed, and no exception. The schedules
of a solver that is not exact may miss deadlines, and keep every other rule: it is run with the option `strict`, which
rules out best effort.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from placeopt.model.building import build_problem
from placeopt.model.objective import Value
from placeopt.model.problem import UNLIMITED, Objective, Problem, Term
from placeopt.solver import Solver, Termination, unsupported
from placeopt.solver.registry import find_solver
from placeopt.solving.pipeline import solve
from placeopt.solving.result import Result


@dataclass(frozen=True, slots=True)
class Case:
    """A tiny problem with its known answer.

    Attributes
    ----------
    optimum
        The best value of the objective's first level; None if no schedule exists.
    reason
        Why the optimum is what it is.
    """

    name: str
    build: Callable[[], Problem]
    optimum: Value | None
    reason: str


def check_solver(solver: str | Solver, case: Case, *, time_limit: float = 20.0, **settings: Any) -> Result | None:
    """Run a solver on a case and assert all that the protocol promises; None if the solver rightly refuses it.

    Raises
    ------
    AssertionError
        If a promise is broken; says which.
    """
    problem = case.build()
    found = find_solver(solver)
    name, info = found.name, found.info
    if unsupported(info, problem) is not None:
        return None
    first = solve(problem, found, time_limit=time_limit, seed=7, workers=1, strict=True, **settings)
    _check_answer(name, case, first, exact=info.exact, finished=info.exact)
    again = solve(problem, found, time_limit=time_limit, seed=7, workers=1, strict=True, **settings)
    if Termination.TIME_LIMIT not in (first.termination, again.termination):
        same = first.schedule is again.schedule is None or (
            first.schedule is not None
            and again.schedule is not None
            and np.array_equal(first.schedule.device, again.schedule.device)
            and np.array_equal(first.schedule.start, again.schedule.start)
        )
        assert same, f"{name}, {case.name}: the same seed gave another schedule"
    hurried = solve(problem, found, time_limit=1e-6, seed=7, workers=1, strict=True, **settings)
    _check_answer(name, case, hurried, exact=info.exact, finished=False)
    stopped = solve(
        problem, found, time_limit=time_limit, seed=7, workers=1, strict=True, should_stop=lambda: True, **settings
    )
    _check_answer(name, case, stopped, exact=info.exact, finished=False)
    if first.schedule is not None:
        warm = solve(
            problem, found, time_limit=time_limit, seed=7, workers=1, strict=True, initial=first.schedule, **settings
        )
        _check_answer(name, case, warm, exact=info.exact, finished=info.exact)
    return first


def _check_answer(name: str, case: Case, result: Result, *, exact: bool, finished: bool) -> None:
    """Assert what holds of every answer, and of one that an exact solver had the time to finish."""
    where = f"{name}, {case.name} ({case.reason})"
    if result.schedule is not None:
        broken = [found.message for found in result.violations if exact or found.rule != "deadline"]
        assert not broken, f"{where}: the verifier found {broken}"
        assert result.feasible or result.violations, f"{where}: a schedule that could not be judged"
    if result.feasible and result.objective is not None:
        assert case.optimum is not None, f"{where}: a schedule for an infeasible problem"
        assert result.objective >= case.optimum, (
            f"{where}: {result.objective} is better than the optimum {case.optimum}"
        )
    if result.bound is not None and case.optimum is not None:
        assert result.bound <= case.optimum, f"{where}: the bound {result.bound} is above the optimum {case.optimum}"
    if result.termination is Termination.OPTIMAL:
        assert result.objective == case.optimum, f"{where}: {result.objective} is claimed optimal, not {case.optimum}"
    if result.termination is Termination.INFEASIBLE:
        assert case.optimum is None, f"{where}: claimed infeasible, has a schedule with {case.optimum}"
    if result.termination is Termination.FAILED:
        assert result.schedule is None, f"{where}: failed, and yet a schedule"
        assert result.message, f"{where}: failed without saying why"
    if finished:
        wanted = Termination.INFEASIBLE if case.optimum is None else Termination.OPTIMAL
        assert result.termination is wanted, f"{where}: {result.termination}, expected {wanted}"


def _problem(durations: list[list[int]], edges: list[tuple[int, int]] | None = None, **rest: Any) -> Problem:
    """A problem of tasks t0, t1, ... and devices d0, d1, ...; one tick moves one byte unless `rest` says otherwise."""
    m = rest.pop("devices", len(durations[0]) if durations else 0)
    values: dict[str, Any] = {"byte_ticks_num": np.ones((m, m), dtype=np.int64)}
    return build_problem(
        name="conformance",
        task_names=[f"t{i}" for i in range(len(durations))],
        device_names=[f"d{d}" for d in range(m)],
        duration=np.array(durations, dtype=np.int64).reshape(len(durations), m),
        edges=edges or [],
        **values | rest,
    )


def _diamond(**rest: Any) -> Problem:
    """t0 -> t1, t2 -> t3 on two devices: 2 each, payloads of 1."""
    edges = [(0, 1), (0, 2), (1, 3), (2, 3)]
    return _problem([[2, 2]] * 4, edges, payload=[1, 1, 1, 1], **rest)


def _objective(*metrics: Any) -> Objective:
    return Objective(tuple((Term(metric),) for metric in metrics))


CASES: tuple[Case, ...] = (
    Case("no tasks", lambda: _problem([], devices=2), 0, "nothing to do"),
    Case("one task", lambda: _problem([[5, 3]]), 3, "the faster device"),
    Case("one device", lambda: _problem([[2], [3], [4]], [(0, 2)]), 9, "everything in sequence"),
    Case("all ties", lambda: _problem([[2, 2]] * 6), 6, "three tasks on each device"),
    Case("zero durations", lambda: _problem([[0, 0]] * 4, [(0, 1), (1, 2)]), 0, "nothing takes time"),
    Case(
        "zero duration between",
        lambda: _problem([[3], [0], [3]], [(0, 1), (1, 2)]),
        6,
        "an instantaneous task fits between two others",
    ),
    Case(
        "gap that fits exactly",
        lambda: _problem([[2, 9], [9, 4], [2, 9], [6, 9]], [(0, 1), (1, 2)], payload=[1, 1]),
        10,
        "t0 0-2, t1 3-7, t2 8-10 and t3 in the gap 2-8 of d0",
    ),
    Case(
        "memory exactly full",
        lambda: _problem([[1, 1]] * 4, resident=np.array([3, 2, 1, 4]), capacity=np.array([5, 5])),
        2,
        "3 + 2 and 1 + 4 fill both devices to the byte",
    ),
    Case(
        "memory forces a transfer",
        lambda: _problem([[2, 2], [2, 2]], [(0, 1)], payload=[7], resident=np.array([3, 3]), capacity=np.array([5, 5])),
        11,
        "2 + 7 + 2: the tasks do not fit together",
    ),
    Case(
        "infeasible by memory",
        lambda: _problem([[1, 1]] * 3, resident=np.array([2, 2, 2]), capacity=np.array([3, 3])),
        None,
        "three tasks of 2 bytes, two devices of 3",
    ),
    Case(
        "infeasible by separation",
        lambda: _problem([[1, 1]] * 3, separation=[(0, 1), (0, 2), (1, 2)]),
        None,
        "three tasks pairwise apart on two devices",
    ),
    Case("diamond", _diamond, 7, "t0 0-2, t1 2-4 on one device, t2 3-5, t3 5-7 on the other"),
    Case("colocation", lambda: _diamond(group=np.array([0, 1, 2, 0])), 8, "the ends share a device"),
    Case("separation", lambda: _diamond(separation=[(1, 2)]), 7, "as the diamond, where they are apart anyway"),
    Case(
        "forbidden device",
        lambda: _problem(
            [[1, 9], [0, 4], [1, 9]],
            [(0, 1), (1, 2)],
            payload=[2, 2],
            feasible=np.array([[1, 1], [0, 1], [1, 1]], dtype=np.bool_),
        ),
        10,
        "1 + 2 + 4 + 2 + 1: t1 must run on d1",
    ),
    Case(
        "unlike links",
        lambda: _problem(
            [[1, 9, 9], [9, 1, 1]], [(0, 1)], payload=[1], latency=np.array([[0, 8, 3], [8, 0, 0], [3, 0, 0]])
        ),
        6,
        "1 + 3 + 1 + 1 by the faster link to d2",
    ),
    Case(
        "port contention",
        lambda: _problem([[1, 9, 9], [9, 1, 9], [9, 9, 1]], [(0, 1), (0, 2)], payload=[3, 3], contention="port"),
        8,
        "the second transfer waits for the first: 1 + 3 + 3 + 1",
    ),
    Case(
        "no contention",
        lambda: _problem([[1, 9, 9], [9, 1, 9], [9, 9, 1]], [(0, 1), (0, 2)], payload=[3, 3]),
        5,
        "both transfers at once: 1 + 3 + 1",
    ),
    Case(
        "shared output under contention",
        lambda: _problem(
            [[1, 9], [9, 1], [9, 1]], [(0, 1), (0, 2)], payload=[3, 3], shared=[True, True], contention="port"
        ),
        6,
        "one transfer serves both consumers: 1 + 3 + 1 + 1",
    ),
    Case(
        "peak memory",
        lambda: _problem([[2, 2]] * 2, scratch=np.array([4, 4]), capacity=np.array([4, 0]), memory_model="peak"),
        4,
        "one after the other, each with all the scratch space",
    ),
    Case(
        "sum memory",
        lambda: _problem([[2, 2]] * 2, scratch=np.array([4, 4]), capacity=np.array([4, 0])),
        None,
        "8 bytes in sum, 4 there",
    ),
    Case(
        "total cost",
        lambda: _diamond(separation=[(1, 2)], objective=_objective("total_cost")),
        10,
        "8 of work, 2 moves",
    ),
    Case("max load", lambda: _problem([[3, 3], [3, 3], [2, 2]], objective=_objective("max_load")), 5, "3 and 3 + 2"),
    Case(
        "communication",
        lambda: _diamond(separation=[(0, 3)], objective=_objective("communication")),
        2,
        "t3 leaves alone: two payloads of 1",
    ),
    Case(
        "energy",
        lambda: _problem([[4, 1]], power_num=np.array([1, 9]), objective=_objective("energy")),
        4,
        "4 ticks at 1 against 1 tick at 9",
    ),
    Case(
        "memory balance",
        lambda: _problem(
            [[1, 1]] * 2, resident=np.array([3, 1]), capacity=np.array([10, 4]), objective=_objective("memory_balance")
        ),
        300_000,
        "3 of 10 bytes and 1 of 4",
    ),
    Case(
        "relocation",
        lambda: _problem([[1, 1]] * 2, relocation=np.array([[0, 9], [4, 1]]), objective=_objective("relocation")),
        1,
        "t0 stays on d0, t1 starts up on d1",
    ),
    Case(
        "makespan and relocation",
        lambda: _problem(
            [[6, 6]] * 2,
            relocation=np.array([[0, 4], [0, 4]]),
            objective=Objective(((Term("makespan"), Term("relocation", Fraction(1, 2))),)),
        ),
        8,
        "one task leaves d0 for 4 / 2 ticks, and 6 of 12 are saved",
    ),
    Case(
        "weighted sum",
        lambda: _diamond(
            separation=[(1, 2)],
            objective=Objective(((Term("makespan", Fraction(2)), Term("communication", Fraction(1, 2))),)),
        ),
        15,
        "2 x 7 + 2 / 2",
    ),
    Case(
        "lexicographic",
        lambda: _diamond(objective=_objective("communication", "makespan")),
        0,
        "one device moves nothing",
    ),
    Case(
        "release times",
        lambda: _problem([[2, 9], [3, 9], [1, 9]], [(0, 1)], release=[4, 0, 2]),
        9,
        "t2 2-3, t0 4-6 and t1 6-9: d0 waits for t0's release",
    ),
    Case(
        "release times in a gap",
        lambda: _problem([[4], [3], [2]], [(0, 1)], release=[0, 9, 4]),
        12,
        "t2 fits between t0 and the release of t1, which lasts until 12",
    ),
    Case(
        "release time of an instantaneous task",
        lambda: _problem([[3], [0]], release=[0, 5]),
        5,
        "what takes no time still waits for its release",
    ),
    Case(
        "release times under contention",
        lambda: _problem(
            [[1, 9, 9], [9, 1, 9], [9, 9, 1]],
            [(0, 1), (0, 2)],
            payload=[3, 3],
            release=[0, 9, 0],
            contention="port",
            feasible=np.eye(3, dtype=np.bool_),
        ),
        10,
        "t1 waits for its release at 9 and its data for nothing",
    ),
    Case(
        "release times and peak memory",
        lambda: _problem(
            [[2], [2], [1]],
            [(0, 1)],
            output=np.array([3, 0, 0]),
            scratch=np.array([0, 0, 3]),
            release=[0, 5, 3],
            capacity=np.array([5]),
            memory_model="peak",
        ),
        8,
        "t0's output stays until t1 has ended: t2 runs 7-8 after them, or 3-4 before t0",
    ),
    Case(
        "deadline just met",
        lambda: _problem([[3, 9], [2, 9], [4, 9]], [(0, 1), (1, 2)], deadline=[3, 5, 9]),
        9,
        "each ends at its deadline to the tick",
    ),
    Case(
        "deadline against the longest path first",
        lambda: _problem([[2], [3], [4]], [(1, 2)], deadline=[2, UNLIMITED, UNLIMITED]),
        9,
        "t0 goes first, though more follows t1",
    ),
    Case(
        "deadline with idle time before it",
        lambda: _problem([[5], [2]], release=[0, 1], deadline=[UNLIMITED, 3]),
        8,
        "d0 waits for t1, which is done by 3, before it starts t0",
    ),
    Case(
        "deadline and energy",
        lambda: _problem([[4, 6], [4, 6]], deadline=[UNLIMITED, 6], objective=_objective("energy"), power_num=[1, 1]),
        8,
        "both on d0 with 4 nJ each, t1 first, which d1 would end in time as well",
    ),
    Case(
        "deadline that costs a transfer",
        lambda: _diamond(deadline=[UNLIMITED] * 3 + [7], objective=_objective("communication")),
        2,
        "one device takes 8 ticks: t1 or t2 goes to the other, with a payload there and one back",
    ),
    Case(
        "deadline under contention",
        lambda: _problem(
            [[1, 9, 9], [9, 1, 9], [9, 9, 1]],
            [(0, 1), (0, 2)],
            payload=[3, 3],
            deadline=[UNLIMITED, UNLIMITED, 5],
            contention="port",
            feasible=np.eye(3, dtype=np.bool_),
        ),
        8,
        "t2's data goes first and t1's waits for it",
    ),
    Case(
        "infeasible by a deadline",
        lambda: _problem([[3, 4], [2, 4]], [(0, 1)], payload=[1], deadline=[UNLIMITED, 4]),
        None,
        "t0 and t1 take 5 ticks wherever they run",
    ),
    Case(
        "infeasible by deadlines together",
        lambda: _problem([[3, 3], [3, 3], [2, 2]], deadline=[4, 4, 4]),
        None,
        "8 ticks of work and as many to do it in, but two of the three tasks share a device",
    ),
)
"""Every case, smallest first."""
