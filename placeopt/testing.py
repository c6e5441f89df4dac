"""Conformance suite for solvers, including those of third parties.

    import pytest
    from placeopt.testing import CASES, check_solver

    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
    def test_my_solver(case):
        check_solver("my-solver", case)

A solver may refuse a case whose objective, contention or memory model it does not declare. For all other cases it must
return verified schedules, valid bounds, and the same answer for the same seed, without an exception. Schedules of a
solver that is not exact may miss deadlines but must satisfy every other rule: the option `strict` disables best effort.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from placeopt.errors import UsageError
from placeopt.model.building import build_problem
from placeopt.model.objective import Value
from placeopt.model.problem import UNLIMITED, Objective, Problem, Term
from placeopt.model.resources import build_resources
from placeopt.model.setups import build_setups
from placeopt.model.shared_links import SharedLink, build_shared_links
from placeopt.model.tiers import build_tiers
from placeopt.model.unavailability import build_unavailability
from placeopt.orchestration.pipeline import solve
from placeopt.orchestration.result import Result
from placeopt.protocol import Info, Solver, Termination, unsupported
from placeopt.protocol.registry import find_solver


@dataclass(frozen=True, slots=True)
class Case:
    """A tiny problem with a known answer."""

    name: str
    build: Callable[[], Problem]
    optimum: Value | None
    """The optimum of the objective's first level; None if no schedule exists."""
    reason: str
    """Derivation of the optimum."""


def check_solver(solver: str | Solver, case: Case, *, time_limit: float = 20.0, **settings: Any) -> Result | None:
    """Run a solver on a case and assert all promises of the protocol; None if the solver rightly refuses it.

    Raises
    ------
    AssertionError
        If a promise is broken; the message names it.
    UsageError
        If `case` is not a case.
    """
    if not isinstance(case, Case):
        raise UsageError(f"check_solver takes a Case, one of placeopt.testing.CASES, got {type(case).__name__}")
    problem = case.build()
    found = find_solver(solver)
    name, info = found.name, found.info
    if unsupported(info, problem) is not None:
        return None
    run = partial(solve, problem, found, seed=7, workers=1, strict=True, **settings)
    first = run(time_limit=time_limit)
    _check_answer(name, case, first, info, finished=info.exact)
    again = run(time_limit=time_limit)
    if Termination.TIME_LIMIT not in (first.termination, again.termination):
        one, other = first.schedule, again.schedule
        same = one is other is None or (
            one is not None
            and other is not None
            and np.array_equal(one.device, other.device)
            and np.array_equal(one.start, other.start)
        )
        assert same, f"{name}, {case.name}: the same seed gave a different schedule"
    for limited in (run(time_limit=1e-6), run(time_limit=time_limit, should_stop=lambda: True)):
        _check_answer(name, case, limited, info, finished=False)
    if first.schedule is not None:
        warm = run(time_limit=time_limit, initial=first.schedule)
        _check_answer(name, case, warm, info, finished=info.exact)
    return first


def _check_answer(name: str, case: Case, result: Result, info: Info, *, finished: bool) -> None:
    """Assert the promises on an answer; `finished` is true for an exact solver without a time limit or stop."""
    exact = info.exact
    where = f"{name}, {case.name} ({case.reason})"
    if result.schedule is not None:
        broken = [found.message for found in result.violations if exact or found.rule != "deadline"]
        assert not broken, f"{where}: the verifier found {broken}"
        assert result.feasible or result.violations, f"{where}: a schedule that could not be verified"
    if info.clusters:
        _check_clusters(where, result)
    if result.feasible and result.objective is not None:
        assert case.optimum is not None, f"{where}: a feasible schedule for an infeasible problem"
        assert result.objective >= case.optimum, (
            f"{where}: {result.objective} is better than the optimum {case.optimum}"
        )
    if result.bound is not None and case.optimum is not None:
        assert result.bound <= case.optimum, f"{where}: the bound {result.bound} is above the optimum {case.optimum}"
    if result.termination is Termination.OPTIMAL:
        assert result.objective == case.optimum, (
            f"{where}: {result.objective} is claimed optimal, but the optimum is {case.optimum}"
        )
    if result.termination is Termination.INFEASIBLE:
        assert case.optimum is None, f"{where}: claimed infeasible, but the optimum is {case.optimum}"
    if result.termination is Termination.FAILED:
        assert result.schedule is None, f"{where}: failed, but returned a schedule"
        assert result.message, f"{where}: failed without a message"
    if finished:
        wanted = Termination.INFEASIBLE if case.optimum is None else Termination.OPTIMAL
        assert result.termination is wanted, f"{where}: {result.termination}, expected {wanted}"


def _check_clusters(where: str, result: Result) -> None:
    """Assert that the clusters are a partition of the tasks, that none is split, and that none splits a group."""
    clusters, schedule, problem = result.clusters, result.schedule, result.problem
    assert (clusters is None) == (schedule is None), f"{where}: clusters without a schedule, or a schedule without them"
    if clusters is None or schedule is None:
        return
    assert clusters.shape == (problem.n_tasks,), f"{where}: clusters of {len(clusters)} tasks of {problem.n_tasks}"
    numbers = np.arange(clusters.max(initial=-1) + 1)
    assert np.array_equal(np.unique(clusters), numbers), f"{where}: clusters are not numbered 0, 1, ..."
    for what, whole, parts in (
        ("a cluster is on several devices", clusters, schedule.device),
        ("a colocation group is in several clusters", problem.group, clusters),
    ):
        pairs = np.unique(np.stack((whole, parts)), axis=1)
        assert len(np.unique(pairs[0])) == pairs.shape[1], f"{where}: {what}"


def _problem(durations: list[list[int]], edges: list[tuple[int, int]] | None = None, **rest: Any) -> Problem:
    """Return a problem of tasks t0, t1, ... and devices d0, d1, ...; by default one tick moves one byte.

    `objective` may list metrics, one per level.
    """
    if isinstance(rest.get("objective"), list):
        rest["objective"] = Objective(tuple((Term(metric),) for metric in rest["objective"]))
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
    """Return the graph t0 -> t1, t2 -> t3 on two devices: durations 2, payloads 1."""
    edges = [(0, 1), (0, 2), (1, 3), (2, 3)]
    return _problem([[2, 2]] * 4, edges, payload=[1, 1, 1, 1], **rest)


def _fork(**rest: Any) -> Problem:
    """Return the graph t0 -> t1, t2 on three devices: duration 1 on its own device, else 9; payloads 3."""
    return _problem([[1, 9, 9], [9, 1, 9], [9, 9, 1]], [(0, 1), (0, 2)], payload=[3, 3], **rest)


def _exchange(**rest: Any) -> Problem:
    """Return the graph t0 -> t2, t1 -> t3: t0 and t3 have duration 1 on d0, t1 and t2 on d1, else 9; payloads 3."""
    return _problem([[1, 9], [9, 1], [9, 1], [1, 9]], [(0, 2), (1, 3)], payload=[3, 3], **rest)


CASES: tuple[Case, ...] = (
    Case("no tasks", lambda: _problem([], devices=2), 0, "nothing to do"),
    Case("one task", lambda: _problem([[5, 3]]), 3, "the faster device"),
    Case("one device", lambda: _problem([[2], [3], [4]], [(0, 2)]), 9, "all tasks in sequence"),
    Case("all ties", lambda: _problem([[2, 2]] * 6), 6, "three tasks on each device"),
    Case("zero durations", lambda: _problem([[0, 0]] * 4, [(0, 1), (1, 2)]), 0, "nothing takes time"),
    Case("zero duration between", lambda: _problem([[3], [0], [3]], [(0, 1), (1, 2)]), 6, "t1 fits between t0 and t2"),
    Case(
        "gap that fits exactly",
        lambda: _problem([[2, 9], [9, 4], [2, 9], [6, 9]], [(0, 1), (1, 2)], payload=[1, 1]),
        10,
        "t0 0-2, t1 3-7, t2 8-10 and t3 in the gap 2-8 of d0",
    ),
    Case(
        "memory exactly full",
        lambda: _problem([[1, 1]] * 4, resident=[3, 2, 1, 4], capacity=[5, 5]),
        2,
        "3 + 2 and 1 + 4 fill both devices exactly",
    ),
    Case(
        "memory forces a transfer",
        lambda: _problem([[2, 2], [2, 2]], [(0, 1)], payload=[7], resident=[3, 3], capacity=[5, 5]),
        11,
        "2 + 7 + 2: the tasks do not fit on one device",
    ),
    Case(
        "infeasible by memory",
        lambda: _problem([[1, 1]] * 3, resident=[2, 2, 2], capacity=[3, 3]),
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
    Case("colocation", lambda: _diamond(group=[0, 1, 2, 0]), 8, "the ends share a device"),
    Case("separation", lambda: _diamond(separation=[(1, 2)]), 7, "as in the diamond, where they are apart anyway"),
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
        "heterogeneous links",
        lambda: _problem([[1, 9, 9], [9, 1, 1]], [(0, 1)], payload=[1], latency=[[0, 8, 3], [8, 0, 0], [3, 0, 0]]),
        6,
        "1 + 3 + 1 + 1 by the faster link to d2",
    ),
    Case(
        "port contention", lambda: _fork(contention="port"), 8, "the second transfer waits for the first: 1 + 3 + 3 + 1"
    ),
    Case("no contention", _fork, 5, "both transfers at once: 1 + 3 + 1"),
    Case(
        "one port for both directions",
        lambda: _exchange(contention="half_duplex"),
        8,
        "one transfer after the other: 1 + 3 + 3 + 1",
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
        lambda: _problem([[2, 2]] * 2, scratch=[4, 4], capacity=[4, 0], memory_model="peak"),
        4,
        "one after the other, each with the whole scratch memory",
    ),
    Case(
        "unavailable devices",
        lambda: _problem(
            [[3, 4], [2, 2], [2, 9]],
            [(0, 1)],
            unavailable=build_unavailability([[(2, 5), (8, 9)], [(0, 1), (6, 20)]]),
        ),
        7,
        "t0 1-5 on d1, t2 0-2 and t1 5-7 on d0; t0 on d0 would not end before 8, nor t1 before 11",
    ),
    Case(
        "setup times",
        lambda: _problem(
            [[2, 9], [3, 9], [2, 9]],
            setups=build_setups(["x", "y", "x"], [{"x": 4, "y": {"x": 1, "*": 2}}, {}]),
        ),
        9,
        "t0 4-6 and t2 6-8 on d0, where t1 would end at 12; t1 0-9 on d1",
    ),
    Case(
        "shared uplink",
        lambda: _fork(shared_links=build_shared_links(3, {"uplink": SharedLink([0])})),
        8,
        "the second transfer waits for the first: 1 + 3 + 3 + 1",
    ),
    Case(
        "shared medium",
        lambda: _exchange(shared_links=build_shared_links(2, {"radio": SharedLink([0, 1], medium=True)})),
        8,
        "one transfer after the other: 1 + 3 + 3 + 1",
    ),
    Case(
        "renewable resource",
        lambda: _problem(
            [[3, 3], [3, 3], [1, 1]],
            resources=build_resources(3, 2, renewable={"license": 1}, uses={0: {"license": 1}, 1: {"license": 1}}),
        ),
        6,
        "t0 0-3 and t1 3-6, with the license, on any devices",
    ),
    Case(
        "budget",
        lambda: _problem(
            [[1, 4]] * 3,
            resources=build_resources(3, 2, budgets={"cost": 0.2}, uses={i: {"cost": [0.1, 0]} for i in range(3)}),
        ),
        4,
        "the budget allows two tasks on d0, the third takes 4 on d1",
    ),
    Case(
        "parallel device",
        lambda: _problem(
            [[2], [2], [3]],
            resources=build_resources(
                3,
                1,
                renewable={"cores": 3},
                uses={i: {"cores": each} for i, each in enumerate((2, 1, 2))},
                parallel=[1],
            ),
        ),
        5,
        "t0 0-2 and t1 0-2 with three cores, then t2 2-5",
    ),
    Case(
        "memory tiers",
        lambda: _problem(
            [[2, 9], [3, 9], [9, 4]],
            [(0, 1)],
            resident=[3, 4, 4],
            tiers=build_tiers([4, 4], [[(2, 1, 2), (20, 3, 1)], [(20, 9, 1)]]),
        ),
        9,
        "t0 and t1 on d0: 7 bytes, of which it swaps 2 in 1 tick and 1 in 3, then 2 + 3",
    ),
    Case("sum memory", lambda: _problem([[2, 2]] * 2, scratch=[4, 4], capacity=[4, 0]), None, "8 bytes, capacity 4"),
    Case("total cost", lambda: _diamond(separation=[(1, 2)], objective=["total_cost"]), 10, "8 of work, 2 moves"),
    Case("max load", lambda: _problem([[3, 3], [3, 3], [2, 2]], objective=["max_load"]), 5, "3 and 3 + 2"),
    Case("communication", lambda: _diamond(separation=[(0, 3)], objective=["communication"]), 2, "two payloads to t3"),
    Case("energy", lambda: _problem([[4, 1]], power_num=[1, 9], objective=["energy"]), 4, "4 x 1 against 1 x 9"),
    Case(
        "memory balance",
        lambda: _problem([[1, 1]] * 2, resident=[3, 1], capacity=[10, 4], objective=["memory_balance"]),
        300_000,
        "3 of 10 bytes and 1 of 4",
    ),
    Case(
        "relocation",
        lambda: _problem([[1, 1]] * 2, relocation=[[0, 9], [4, 1]], objective=["relocation"]),
        1,
        "t0 stays on d0, t1 starts up on d1",
    ),
    Case(
        "tardiness",
        lambda: _problem([[3], [2]], due=[5, 2], due_weight=[1, 4], objective=["tardiness"]),
        0,
        "t1 first: it ends at 2, t0 at 5",
    ),
    Case("price", lambda: _problem([[1, 9]] * 2, price=[[5, 1], [2, 3]], objective=["price"]), 3, "1 on d1, 2 on d0"),
    Case(
        "devices",
        lambda: _problem([[1, 1]] * 3, resident=[2, 2, 2], capacity=[4, 9], objective=["devices"]),
        1,
        "all 6 bytes fit on d1",
    ),
    Case(
        "makespan and relocation",
        lambda: _problem(
            [[6, 6]] * 2,
            relocation=[[0, 4], [0, 4]],
            objective=Objective(((Term("makespan"), Term("relocation", Fraction(1, 2))),)),
        ),
        8,
        "one task leaves d0 at a cost of 4 / 2 ticks, which saves 6 of 12",
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
    Case("lexicographic", lambda: _diamond(objective=["communication", "makespan"]), 0, "one device moves nothing"),
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
        "release time of a task of zero duration",
        lambda: _problem([[3], [0]], release=[0, 5]),
        5,
        "a task of zero duration also waits for its release",
    ),
    Case(
        "release times under contention",
        lambda: _fork(release=[0, 9, 0], contention="port", feasible=np.eye(3, dtype=np.bool_)),
        10,
        "t1 waits for its release at 9, and its data is not delayed",
    ),
    Case(
        "release times and peak memory",
        lambda: _problem(
            [[2], [2], [1]],
            [(0, 1)],
            output=[3, 0, 0],
            scratch=[0, 0, 3],
            release=[0, 5, 3],
            capacity=[5],
            memory_model="peak",
        ),
        8,
        "t0's output stays live until t1 ends: t2 runs 7-8 after both, or 3-4 before t0",
    ),
    Case(
        "deadline just met",
        lambda: _problem([[3, 9], [2, 9], [4, 9]], [(0, 1), (1, 2)], deadline=[3, 5, 9]),
        9,
        "each task ends exactly at its deadline",
    ),
    Case(
        "deadline against the longest path first",
        lambda: _problem([[2], [3], [4]], [(1, 2)], deadline=[2, UNLIMITED, UNLIMITED]),
        9,
        "t0 runs first, although t1 has the longer path",
    ),
    Case(
        "deadline with idle time before it",
        lambda: _problem([[5], [2]], release=[0, 1], deadline=[UNLIMITED, 3]),
        8,
        "d0 waits for t1, which ends at 3, before it starts t0",
    ),
    Case(
        "deadline and energy",
        lambda: _problem([[4, 6], [4, 6]], deadline=[UNLIMITED, 6], objective=["energy"], power_num=[1, 1]),
        8,
        "both on d0 with 4 nJ each, t1 first; d1 would also meet the deadline",
    ),
    Case(
        "deadline that costs a transfer",
        lambda: _diamond(deadline=[UNLIMITED] * 3 + [7], objective=["communication"]),
        2,
        "one device needs 8 ticks: t1 or t2 runs on the other one, with one payload each way",
    ),
    Case(
        "deadline under contention",
        lambda: _fork(deadline=[UNLIMITED] * 2 + [5], contention="port", feasible=np.eye(3, dtype=np.bool_)),
        8,
        "t2's data is sent first, and t1's data waits",
    ),
    Case(
        "infeasible by a deadline",
        lambda: _problem([[3, 4], [2, 4]], [(0, 1)], payload=[1], deadline=[UNLIMITED, 4]),
        None,
        "t0 and t1 need at least 5 ticks",
    ),
    Case(
        "infeasible by deadlines together",
        lambda: _problem([[3, 3], [3, 3], [2, 2]], deadline=[4, 4, 4]),
        None,
        "8 ticks of work in 8 ticks of capacity, but two of the three tasks share a device",
    ),
)
"""Every case, smallest first."""
