"""Setup times: a worked example, solvers against the oracle, the engine against plain loops, and the verifier."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from brute_force import optimum, small_problem, with_resources, with_setups, with_shared_links, with_windows
from constrained_problems import constrained
from placeopt_solvers._constructive.groups import grouped
from placeopt_solvers._runs.validity import valid

import placeopt as po
from placeopt import engine
from placeopt.model.building import with_changes
from placeopt.model.critical_path import critical_path
from placeopt.model.native import native
from placeopt.model.problem import Objective, Problem
from placeopt.model.setups import LARGEST_TABLE
from placeopt.passes.rebuilding import rebuilt
from placeopt.protocol import Options, Termination, unsupported
from placeopt.protocol.registry import find_solver
from placeopt.simulation import retime, simulate
from placeopt.studies.sensitivity.changes import make_changes
from placeopt.verifier import Rule, verify
from placeopt.views.plots.gantt import draw_gantt

SPEC: dict[str, Any] = {
    "placeopt": 1,
    "resolution": "1 s",
    "devices": {"gpu": {"setup": {"llm": 4, "vision": {"llm": 1, "*": 2}}}, "cpu": {}},
    "tasks": {
        "a": {"time": {"gpu": 2, "cpu": 20}, "family": "llm"},
        "b": {"time": {"gpu": 3, "cpu": 20}, "family": "vision"},
        "c": {"time": {"gpu": 2, "cpu": 20}, "family": "llm", "after": "a"},
        "d": {"time": 0, "after": "b"},
    },
}
"""The optimum is 12: on the gpu a from 4, c from 6, b from 9 to 12; with b first 2 + 3 + 4 + 4."""

SOLVERS = ("brute-force", "cp-sat", "milp", "auto", "annealing", "tabu", "local-search")


def changed(**devices: Any) -> dict[str, Any]:
    return {**SPEC, "devices": {name: {**SPEC["devices"][name], **keys} for name, keys in devices.items()}}


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_optimum_of_the_example(solver: str) -> None:
    result = po.solve(po.compile(SPEC), solver, workers=1, time_limit=2)
    assert (result.feasible, result.makespan) == (True, 12)


def test_heuristics_set_up_between_neighbours() -> None:
    """HEFT takes a, b and c in this order, by their upward ranks: 4 + 2, 1 + 3, 4 + 2."""
    result = po.solve(po.compile(SPEC), "heft")
    assert result.schedule is not None
    assert result.schedule.start.tolist() == [4, 7, 14, 10]


def test_the_family_at_the_start() -> None:
    """With the vision model loaded, b runs from 0 to 3 and the llm follows: 3 + 4 + 4."""
    assert po.solve(po.compile(changed(gpu={"initial_family": "vision"}, cpu={})), "cp-sat").makespan == 11
    free = {"setup": {"llm": {"vision": 4}, "vision": {"llm": 1}}}
    assert po.solve(po.compile(changed(gpu=free, cpu={})), "cp-sat").makespan == 8  # no setup at tick 0


def test_the_verifier_names_both_tasks_the_device_and_the_missing_time() -> None:
    problem = po.compile(SPEC)
    report = verify(problem, po.Schedule(np.zeros(4, dtype=np.int64), np.array([3, 8, 5, 11])))
    assert [str(violation) for violation in report.violations] == [
        "setup: a starts at tick 3 on gpu, which needs 4 ticks for its setup after tick 0: 1 tick too early",
    ]
    report = verify(problem, po.Schedule(np.zeros(4, dtype=np.int64), np.array([4, 6, 9, 9])))
    assert [str(violation) for violation in report.violations] == [
        "setup: b starts at tick 6 on gpu, which needs 1 tick for its setup after the end of a at tick 6: "
        "1 tick too early",
        "setup: c starts at tick 9 on gpu, which needs 4 ticks for its setup after the end of b at tick 9: "
        "4 ticks too early",
    ]
    assert [(v.task, v.other_task, v.device, v.amount) for v in report.violations] == [(1, 0, 0, 1), (2, 1, 0, 4)]


def test_the_critical_path_waits_for_setups() -> None:
    problem = po.compile(SPEC)
    path = critical_path(problem, po.Schedule(np.zeros(4, dtype=np.int64), np.array([4, 9, 6, 12])))
    assert [(step.kind, step.task, step.start, step.end, step.cause) for step in path] == [
        ("wait", 0, 0, 4, "start"),
        ("task", 0, 4, 6, "setup"),
        ("task", 2, 6, 8, "data"),
        ("wait", 1, 8, 9, "device"),
        ("task", 1, 9, 12, "setup"),
        ("task", 3, 12, 12, "data"),
    ] or path[-1].task == 1


def test_a_document_and_a_smaller_problem_keep_them() -> None:
    problem = po.compile(SPEC)
    document = problem.to_document()
    assert document["devices"]["gpu"]["setup"] == {"llm": 4, "vision": {"llm": 1, "*": 2}}
    assert [task.get("family") for task in document["tasks"].values()] == ["llm", "vision", "llm", None]
    for seed in range(40):
        rng = np.random.default_rng(seed)
        case = with_setups(constrained(seed), rng)
        again = po.compile(case.to_document())
        assert (again.setups, again.fingerprint()) == (case.setups, case.fingerprint())
        tasks, devices = np.array([0, 2, 5]), np.array([0, 2])
        assert rebuilt(case)[0].setups == case.setups
        smaller = None if case.setups is None else case.setups.part(tasks, devices)
        for d, kept in enumerate(devices.tolist()) if case.setups is not None and smaller is not None else ():
            for i, j in ((0, 1), (1, 2), (2, 0)):
                assert smaller.between(d, i, j) == case.setups.between(kept, tasks[i], tasks[j])
                assert smaller.first(d, i) == case.setups.first(kept, tasks[i])


def test_devices_with_other_setups_are_not_alike() -> None:
    setups = po.build_setups(["x"], [{"x": 1}, {"x": 1}, {"x": 2}, {"x": 1}], [None, None, None, "x"])
    problem = po.build_problem(task_names="a", device_names="pqrs", duration=[[1, 1, 1, 1]], setups=setups)
    assert problem.device_class.tolist() == [0, 0, 1, 2]
    assert problem.rules == ("setups",)
    assert po.build_setups(["x", None], [{"x": 0, "y": 3}, {}]) is None  # no task of y


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"family": ["*"], "changes": [{}]}, r'a family is named "\*", which stands for all others'),
        ({"family": ["x"], "changes": [{"x": -1}]}, r"changes\[0\]\['x'\]\[0\] is -1; expected 0 or more"),
        (
            {"family": ["x"], "changes": [{"x": {"*": 0.5}}]},
            r"changes\[0\]\['x'\]\[0\] is 0.5; expected a whole number",
        ),
        (
            {"family": ["x"], "changes": [{"x": 1}], "initial": []},
            r"initial: 0 families; expected 1, one for each device",
        ),
        (
            {"family": [str(k) for k in range(LARGEST_TABLE // 2**12)], "changes": [{"1": k} for k in range(3)]},
            r"setup times of 4096 families: the tables exceed 16777216 entries",
        ),
    ],
)
def test_wrong_setups(arguments: Any, message: str) -> None:
    with pytest.raises(po.UsageError, match=message):
        po.build_setups(**arguments)


def test_setups_that_contradict_a_problem() -> None:
    def built(**rest: Any) -> Problem:
        given = {"task_names": "abc", "device_names": "pq", "duration": [[1, 1], [1, 1], [1, 1]]}
        return po.build_problem(**{**given, **rest})  # type: ignore[arg-type]

    setups = po.build_setups(["x", "y", None], [{"x": 5, "y": 5}, {}])
    with pytest.raises(po.UsageError, match="setups is a int; expected Setups, as build_setups makes them"):
        built(setups=3)
    with pytest.raises(po.UsageError, match="setups: they are for 1 tasks and 1 devices; expected 3 and 2"):
        built(setups=po.build_setups(["x"], [{"x": 1}]))
    with pytest.raises(po.UsageError, match="setups: the objective period contains period; expected one without it"):
        built(setups=setups, objective=Objective(((po.Term("period"),),)))
    shared = po.build_resources(3, 2, parallel=[True, False])
    with pytest.raises(po.UsageError, match="setups: p runs several tasks at once; expected devices that run one"):
        built(setups=setups, resources=shared)
    assert built(setups=setups, resources=po.build_resources(3, 2, parallel=[False, True])).setups == setups


def test_modes_have_the_setups_of_their_device_which_runs_one_task_at_a_time() -> None:
    given: dict[str, Any] = {
        "task_names": "abc", "device_names": ["gpu0", "gpu0: x"], "duration": [[10, 0], [0, 1], [0, 1]],
        "feasible": [[1, 0], [0, 1], [0, 1]],
    }  # fmt: skip
    used, table = {i: {"gpu0": 1} for i in range(3)}, {"b": 10}
    one, two = (po.build_resources(3, 2, renewable={"gpu0": room}, uses=used) for room in (1, 2))
    setups, unlike = (po.build_setups(list("aab"), [table, mode]) for mode in (table, {}))
    with pytest.raises(po.UsageError, match="setups of gpu0: x differ from those of gpu0, of which it is a mode"):
        po.build_problem(**given, setups=unlike, resources=one)
    with pytest.raises(po.UsageError, match="setups: gpu0 runs several tasks at once; expected devices that run one"):
        po.build_problem(**given, setups=setups, resources=two)
    assert po.solve(po.build_problem(**given, setups=setups, resources=one), "cp-sat").objective == 22


def test_a_change_must_not_be_faster_by_way_of_another_task() -> None:
    """Without "*", the task without a family would make the change from x to y free."""
    named = po.build_setups(["x", "y", None], [{"x": {"y": 5}, "y": {"x": 5}}])
    given = {"task_names": "abc", "device_names": "p", "setups": named}
    message = "setups of p: a change from x to y takes 5 ticks, by way of tasks without a family 2 ticks; expected"
    with pytest.raises(po.UsageError, match=message):
        po.build_problem(**given, duration=[[1], [1], [2]])  # type: ignore[arg-type]
    po.build_problem(**given, duration=[[1], [1], [5]])  # type: ignore[arg-type]
    po.build_problem(**given, duration=[[1], [1], [0]])  # type: ignore[arg-type]
    po.build_problem(**given, duration=[[1], [1], [1]], feasible=[[True], [True], [False]])  # type: ignore[arg-type]
    late = po.build_setups(["x", "y"], [{"x": 1, "y": {"x": 1, "*": 9}}])
    with pytest.raises(po.UsageError, match="from the state at tick 0 to y takes 9 ticks, by way of x 5 ticks"):
        po.build_problem(task_names="ab", device_names="p", setups=late, duration=[[3], [3]])


def drawn(seed: int) -> Problem:
    """A small problem with setup times and, in turn, resources, windows, shared links and every objective."""
    rng = np.random.default_rng([91, seed])
    problem = small_problem(rng, None if seed % 3 == 0 else Objective(), times=bool(seed % 2))
    if problem.n_tasks and seed % 5 == 0:
        problem = with_resources(problem, rng)
    if seed % 7 == 0:
        problem = with_windows(problem, rng)
    if seed % 11 == 0:
        problem = with_shared_links(problem, rng)
    return with_setups(problem, rng)


@pytest.mark.parametrize("name", ["cp-sat", "milp", "brute-force"])
def test_they_prove_what_the_oracle_finds(name: str) -> None:
    solver, tighter, proved = find_solver(name), 0, 0
    for seed in range(120):
        case = drawn(seed)
        if unsupported(solver.info, case) is not None:
            continue
        best = optimum(case)
        answer = solver.solve(case, Options(seed=seed), solver.settings_type())
        if best is None:
            assert answer.termination is Termination.INFEASIBLE, seed
            continue
        assert answer.termination is Termination.OPTIMAL, seed
        assert answer.schedule is not None
        report = verify(case, answer.schedule)
        assert report.feasible, (seed, report.violations)
        assert (report.objective, answer.bound) == (best[0], best[0][0]), seed
        free = optimum(with_changes(case, setups=None))
        tighter += free is not None and free[0] < best[0]
        proved += 1
    assert proved >= 30
    assert tighter >= 8


def test_no_bound_exceeds_the_optimum() -> None:
    for seed in range(0, 60, 2):
        case = drawn(seed)
        best = optimum(case)
        if best is not None:
            found = po.bounds(case, time_limit=0.5, workers=1)
            assert all(bound.value <= best[0][0] for bound in found), seed


def test_all_solvers_support_setups_or_name_those_that_do() -> None:
    case = with_setups(constrained(3), np.random.default_rng(4))
    refused = []
    for name in po.solvers():
        info = find_solver(name).info
        if "period" in info.metrics and "makespan" not in info.metrics:
            continue
        if unsupported(info, case) is not None:
            with pytest.raises(po.UnsupportedError, match=r"does not support setup times; .*cp-sat"):
                po.solve(case, name)
            refused.append(name)
            continue
        tried = po.compile(SPEC) if info.exact or name == "single" else case
        result = po.solve(tried, name, workers=1, seed=1, strict=False, time_limit=1 if info.anytime else None)
        assert result.schedule is not None, name
        report = verify(tried, result.schedule)
        assert {violation.rule for violation in report.violations} <= {Rule.MEMORY, Rule.SEPARATION}, name
    assert refused == ["forward-backward", "giph", "lns", "memetic", "multilevel", "sct-lp", "series", "windows"]


def apart(problem: Problem, line: engine.Timeline, i: int, d: int, tick: int) -> bool:
    """Whether task i may run on device d from a tick on, between the tasks of a timeline and outside of windows."""
    setups, ticks = problem.setups, int(problem.duration[i, d])
    windows = [] if problem.unavailable is None else problem.unavailable.of(d)
    if setups is None or any(tick < end and begin < tick + ticks for begin, end in windows):
        return False
    if ticks and tick < setups.first(d, i):
        return False
    for j in np.flatnonzero(line.device == d).tolist():
        begin, end = int(line.start[j]), int(line.end[j])
        there, back = (setups.between(d, j, i), setups.between(d, i, j)) if ticks and end > begin else (0, 0)
        if end + there > tick and tick + ticks + back > begin:
            return False
    return True


@pytest.mark.parametrize("insertion", [True, False])
@pytest.mark.parametrize("seed", range(25))
def test_the_timeline_finds_the_first_gap_and_takes_placements_back(seed: int, insertion: bool) -> None:
    rng = np.random.default_rng(seed)
    problem = with_setups(constrained(seed), rng)
    problem = with_windows(problem, rng) if seed % 3 == 0 else problem
    if problem.setups is None or not problem.setups.used().all():
        pytest.skip("a device without setups: a task of no duration is not placed in any gap there")
    line = engine.Timeline(native(problem), grouped(problem), insertion=insertion, record=True)
    order, at, known, inserted = problem.order.tolist(), 0, [list[Any]()], 0
    for _ in range(120):
        able = [] if at == len(order) else [d for d in range(problem.n_devices) if line.can_run(order[at], d)]
        if not able or rng.random() < 0.25:
            at = int(rng.integers(0, at + 1))
            line.resume(at)
            continue
        i, d = order[at], int(rng.choice(able))
        ready = int(problem.release[i])
        for edge in problem.in_edge[problem.in_start[i] : problem.in_start[i + 1]].tolist():
            u = int(problem.edge_source[edge])
            ready = max(ready, int(line.end[u] + problem.transfer(problem.payload[edge], line.device[u], d)))
        last = int(line.free[d])
        first = ready if insertion else max(ready, last)
        expected = next(tick for tick in range(first, 10**6) if apart(problem, line, i, d, tick))
        inserted += expected < last
        assert line.place(i, d) == expected
        at += 1
        known[at:] = [[line.start.tolist(), line.device.tolist()]]
    assert inserted > 0 or not insertion


@pytest.mark.parametrize("seed", range(30))
def test_simulations_and_retiming_set_up_as_early_as_possible(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = with_setups(constrained(seed), rng)
    if problem.setups is None:
        pytest.skip("no setups")
    device = np.array([rng.choice(np.flatnonzero(row)) for row in problem.feasible])
    place = rng.random(problem.n_tasks) / 9
    place[problem.order] += np.arange(problem.n_tasks)
    done = simulate(problem, device, discipline="order", order=place)
    start, last = np.zeros(problem.n_tasks, dtype=np.int64), dict[int, int]()
    free = [0] * problem.n_devices
    for i in np.argsort(place).tolist():
        d = int(device[i])
        ticks, begin = int(problem.duration[i, d]), max(int(problem.release[i]), free[d])
        for edge in problem.in_edge[problem.in_start[i] : problem.in_start[i + 1]].tolist():
            u = int(problem.edge_source[edge])
            arrival = start[u] + problem.duration[u, device[u]] + problem.transfer(problem.payload[edge], device[u], d)
            begin = max(begin, int(arrival))
        if ticks:
            before = last.get(d)
            since = 0 if before is None else int(start[before] + problem.duration[before, d])
            setup = problem.setups.first(d, i) if before is None else problem.setups.between(d, before, i)
            begin = max(begin, since + int(setup))
            last[d] = i
        start[i], free[d] = begin, begin + ticks
    assert done.start.tolist() == start.tolist()
    again = retime(problem, done)
    assert (again.start <= done.start).all()
    assert np.array_equal(retime(problem, again).start, again.start)
    for discipline in ("fifo", "priority"):
        numbers = {"priority": rng.random(problem.n_tasks)} if discipline == "priority" else {}
        found = simulate(problem, device, discipline=discipline, **numbers)  # type: ignore[arg-type]
        assert Rule.SETUP not in {violation.rule for violation in verify(problem, found).violations}
        later = po.Schedule(device, found.start + np.arange(problem.n_tasks)[problem.order.argsort()] * 3)
        assert (retime(problem, found).start <= found.start).all()
        assert retime(problem, later).start.shape == found.start.shape


def test_valid_schedules_agree_with_the_verifier() -> None:
    verdicts = {True: 0, False: 0}
    for seed in range(80):
        case = drawn(seed)
        found = (
            po.solve(case, "heft", strict=False).schedule
            if unsupported(find_solver("heft").info, case) is None
            else None
        )
        if found is None or found.transfers is not None:
            continue
        for i in range(case.n_tasks):
            start = found.start.copy()
            start[i] -= 1
            moved = po.Schedule(found.device, start)
            rules = {violation.rule for violation in verify(case, moved).violations}
            assert valid(case, moved) == (not rules)
            verdicts[rules == {Rule.SETUP}] += 1
    assert verdicts[True] >= 15


def test_a_further_device_has_the_setups_of_its_type() -> None:
    (grown,), _ = make_changes(po.compile(SPEC), ["devices:gpu"])
    setups = grown.problem.setups
    assert setups is not None
    assert [setups.changes(d) for d in range(3)] == [setups.changes(0), {}, setups.changes(0)]
    assert po.solve(grown.problem, "cp-sat").makespan == 8


def test_explain_repairs_deadlines_that_setups_break() -> None:
    """a ends at 5 at the earliest, and b then at 7; with b first, a ends at 8."""
    tasks = {"a": {"time": 1, "family": "llm", "deadline": 5}, "b": {"time": 1, "family": "vision", "deadline": 6}}
    found = po.explain({**SPEC, "devices": {"gpu": SPEC["devices"]["gpu"]}, "tasks": tasks}, time_limit=10)
    repairs = [member.repair.text for member in found.members if member.repair is not None]
    assert [text.split(",")[0] for text in repairs] == ["with the deadline 8 s", "with the deadline 7 s"]


def test_charts_hatch_setups() -> None:
    problem = po.compile(SPEC)
    schedule = po.solve(problem, "cp-sat", workers=1).schedule
    assert schedule is not None
    entries = [text.get_text() for legend in draw_gantt(problem, schedule).legends for text in legend.get_texts()]
    assert "setup" in entries
