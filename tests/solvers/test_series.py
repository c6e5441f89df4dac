"""Series decomposition: cuts, and bounds and schedules from blocks, against brute force and CP-SAT on the whole."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest
from brute_force import optimum, small_problem
from placeopt_solvers._runs.solve_run import Incumbent
from placeopt_solvers._runs.validity import valid
from placeopt_solvers._series import cuts as cutting
from placeopt_solvers._series import run as running
from placeopt_solvers._series.arcs import NEVER, Arcs, BlockProblem, EqualArcs, inflated
from placeopt_solvers._series.cuts import series_of
from placeopt_solvers._series.prices import Charges, Prices
from placeopt_solvers._series.run import SeriesRun, binding_devices
from placeopt_solvers.exact.brute_force import BruteForce
from placeopt_solvers.exact.cp_sat import CpSat, CpSatSettings
from placeopt_solvers.exact.milp import Milp
from placeopt_solvers.exact.series import Series, SeriesSettings

from placeopt.model.building import build_problem
from placeopt.model.objective import evaluate
from placeopt.model.problem import UNLIMITED, Objective, Problem, Term
from placeopt.model.schedule import Schedule
from placeopt.passes import EXACT_PASSES, apply_passes
from placeopt.passes.rebuilding import rebuilt
from placeopt.protocol import Answer, Clock, Options, Settings, Termination


def by_cp_sat(problem: Problem, options: Options) -> Answer:
    """Solve a problem by CP-SAT as a whole."""
    return CpSat().solve(problem, options, CpSatSettings(series=False))


def by_brute_force(problem: Problem, options: Options) -> Answer:
    """Solve a problem by trying everything."""
    return BruteForce().solve(problem, options, Settings())


def check(problem: Problem, best: int | None, start: Schedule | None) -> Answer | None:
    """Solve by blocks, and compare bound, schedule and claims with the optimum; `start` is an optimal schedule."""
    series = series_of(problem)
    if series is None:
        return None
    covered = sorted([*series.loose.tolist(), *series.cuts, *(int(i) for b in series.blocks for i in b.inner)])
    assert covered == list(range(problem.n_tasks))
    options = Options(time_limit=60)
    run = SeriesRun(problem, options, series, by_cp_sat)
    if start is not None:  # a bound counts only with a schedule
        run.best = Incumbent(problem, options, Clock(60))
        run.best.values, run.best.schedule = (10**9,), start
    answer = run.answer()
    if best is None:
        assert answer.schedule is None or not valid(problem, answer.schedule)
        return answer
    assert answer.termination is not Termination.INFEASIBLE
    assert answer.bound is None or answer.bound <= best
    if answer.schedule is not None and run.best.found_by == "series":
        assert valid(problem, answer.schedule)
        assert evaluate(problem, answer.schedule)[0] >= best
    if answer.termination is Termination.OPTIMAL:
        assert answer.bound == best
    return answer


@pytest.mark.parametrize("seed", range(400))
def test_small_problems_with_all_constraints(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(17_000 + seed)
    if seed % 2:  # weaker cuts everywhere
        monkeypatch.setattr(cutting, "LARGE", 0)
        monkeypatch.setattr(cutting, "COSTLY", 1e9)
    problem = small_problem(rng, Objective(), times=seed % 3 == 0)
    best = optimum(problem)
    check(problem, *((None, None) if best is None else (int(best[0][0]), best[1])))


def cut_rich(rng: np.random.Generator, *, memory: bool) -> Problem:
    """A series of forks and joins of one to four branches with one or two tasks, on up to four devices."""
    edges: list[tuple[int, int]] = []
    n, m = 1, int(rng.integers(2, 5))
    for _ in range(int(rng.integers(2, 5))):
        first = n - 1
        ends = []
        for _ in range(int(rng.integers(1, 5))):
            at = first
            for _ in range(int(rng.integers(1, 3))):
                edges.append((at, n))
                at, n = n, n + 1
            ends.append(at)
        edges += [(each, n) for each in ends]
        n += 1
        if rng.random() < 0.2:
            edges.append((first, n - 1))
    label = rng.integers(0, int(rng.integers(1, m + 1)), m)
    resident = rng.integers(0, 9, n)
    total = int(resident.sum())
    room = np.full(m, total // m + 9) + rng.integers(0, total, m)[label] // 3
    contention = "port" if rng.random() < 0.3 else "none"
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        duration=rng.integers(1, 9, (n, m))[:, label],
        edges=edges,
        payload=rng.integers(0, 12, len(edges)),
        shared=None,
        resident=resident,
        capacity=room if memory else None,
        byte_ticks_num=np.ones((m, m), dtype=np.int64),
        byte_ticks_den=np.ones((m, m), dtype=np.int64),
        contention=contention,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("seed", range(25))
def test_without_memory_the_shortest_path_is_the_optimum(seed: int) -> None:
    problem = cut_rich(np.random.default_rng(seed), memory=False)
    whole = by_cp_sat(problem, Options(time_limit=60))
    assert whole.termination is Termination.OPTIMAL
    answer = check(problem, int(whole.bound or 0), start=None)
    assert answer is not None
    assert answer.termination is Termination.OPTIMAL
    assert answer.bound == whole.bound


@pytest.mark.parametrize("seed", range(12))
def test_memory_that_spans_blocks(seed: int) -> None:
    problem = cut_rich(np.random.default_rng(900 + seed), memory=True)
    whole = by_cp_sat(problem, Options(time_limit=60))
    assert whole.termination in (Termination.OPTIMAL, Termination.INFEASIBLE)
    check(problem, None if whole.schedule is None else int(whole.bound or 0), whole.schedule)


def starved(rng: np.random.Generator, problem: Problem) -> Problem:
    """The problem with memory on its first device class for a part of the tasks only, and slower other devices."""
    best = problem.device_class == problem.device_class[0]
    room = max(int(problem.memory.max()), int(problem.memory.sum() * rng.uniform(0.2, 0.9)) // int(best.sum()))
    duration = problem.duration * np.where(best, 1, int(rng.integers(1, 8)))
    return rebuilt(problem, capacity=np.where(best, room, 10**6), duration=duration)[0]


def priced(problem: Problem) -> tuple[Prices, list[Arcs]] | None:
    """The blocks of a problem and prices for them; None without prices."""
    series = series_of(problem)
    assert series is not None
    bounded = binding_devices(problem)
    blocks = [Arcs(problem, block, bounded) for block in series.blocks]
    prices = Prices(problem, bounded, blocks, {})
    return (prices, blocks) if prices.none else None


@pytest.mark.parametrize("seed", range(12))
def test_prices_on_small_problems(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "STARVED", 0.0)
    monkeypatch.setattr(running, "SEARCHING", 0.01)
    monkeypatch.setattr(SeriesRun, "_refine", lambda *_: False)  # prices only
    rng = np.random.default_rng(3_000 + seed)
    problem = cut_rich(rng, memory=True)
    if seed % 3:
        problem = starved(rng, problem)
    whole = by_cp_sat(problem, Options(time_limit=60))
    best = None if whole.termination is Termination.INFEASIBLE else int(whole.bound or 0)
    check(problem, best, whole.schedule if seed % 2 else None)


@pytest.mark.parametrize("seed", range(3))
def test_all_prices_prove_bounds(seed: int) -> None:
    rng = np.random.default_rng(7_000 + seed)
    problem = starved(rng, cut_rich(rng, memory=True))
    whole = by_cp_sat(problem, Options(time_limit=60))
    made = priced(problem)
    if made is None or whole.bound is None:
        return  # the best class holds all tasks, or the problem is infeasible
    (prices, blocks), best = made, whole.bound
    tried: list[Charges] = []
    for rate in sorted(rng.uniform(0, 3, 2).tolist()):
        at = tuple(round(rate * 2**prices.shift) for _ in prices.none)
        tried.append(at)
        path = prices.path(at)  # by quick bounds, and by those of other prices
        assert path is None or path.bound <= best
        for k, arcs in enumerate(blocks):
            for arc in [arc for arc in (*arcs.arcs, arcs.free) if not arc.exact and arc.lower < 10**9]:
                found = prices.build(k, arc, at)
                answer = by_cp_sat(found.problem, Options(time_limit=60))
                if answer.schedule is None:
                    continue
                value = evaluate(found.problem, answer.schedule)[0]
                assert answer.termination is Termination.OPTIMAL
                assert found.lower <= value
                assert prices.bound(k, arc, at) <= value + problem.n_tasks  # charges are rounded
                charge = prices.charge(arcs, at)
                assert arc.whole is not None
                longer = by_cp_sat(inflated(arc.whole.problem, charge), Options(time_limit=60))
                assert longer.bound is not None
                assert longer.bound <= value
                found.lower = int(value)
                found.offer(answer.schedule)
        path = prices.path(at)
        assert path is None or path.bound <= best
    between = tuple((a + b) // 2 for a, b in zip(tried[0], tried[1], strict=True))
    for at in (between, tuple(2 * p for p in tried[-1]), prices.none):
        path = prices.path(at)
        assert path is None or path.bound <= best


def test_prices_where_half_of_a_network_must_leave_its_best_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SeriesRun, "_refine", lambda *_: False)  # prices only
    rng = np.random.default_rng(1)
    edges: list[tuple[int, int]] = []
    for block in range(7):
        first = 5 * block
        edges += [(first, first + k) for k in (1, 2, 3, 4)] + [(first + k, first + 5) for k in (1, 2, 3, 4)]
    n = 36
    work, resident = rng.integers(20, 60, n), rng.integers(50, 200, n)
    problem = build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=["gpu", "cpu0", "cpu1"],
        duration=np.column_stack((work, 8 * work, 8 * work)),
        edges=edges,
        payload=rng.integers(1, 9, len(edges)),
        resident=resident,
        capacity=np.array([int(resident.sum()) // 2, 10**6, 10**6]),
        byte_ticks_num=np.ones((3, 3), dtype=np.int64),
        byte_ticks_den=np.ones((3, 3), dtype=np.int64),
    )
    series = series_of(problem)
    assert series is not None
    answer = SeriesRun(problem, Options(time_limit=60), series, by_cp_sat).answer()
    assert answer.schedule is not None
    assert valid(problem, answer.schedule)
    assert answer.bound is not None
    value = evaluate(problem, answer.schedule)[0]
    assert 0.97 * float(value) <= answer.bound <= value


@pytest.mark.parametrize("seed", range(200))
def test_cuts_of_random_graphs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 14))
    share = rng.choice([0.15, 0.3, 0.5])
    edges = [(i, j) for i in range(n) for j in range(i + 1, n) if j == i + 1 or rng.random() < share]
    edges = [edge for edge in edges if rng.random() < rng.choice([0.7, 0.9, 1.0])]
    names = rng.permutation(n)
    problem = build_problem(
        task_names=[str(i) for i in range(n)],
        device_names=["a", "b"],
        duration=np.ones((n, 2), dtype=np.int64),
        edges=[(int(names[i]), int(names[j])) for i, j in edges],
    )
    graph = nx.DiGraph(list(zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True)))
    graph.add_nodes_from(range(n))
    expected = []
    for v in problem.order.tolist():
        before, after = nx.ancestors(graph, v), nx.descendants(graph, v)
        bypassed = any(a in before and b in after for a, b in graph.edges)
        if len(before) + len(after) == n - 1 and not bypassed:
            expected.append(v)
    found = series_of(problem)
    assert expected == ([] if found is None else found.cuts)
    for block in () if found is None else found.blocks:
        for i in block.inner.tolist():
            assert block.first < 0 or i in nx.descendants(graph, block.first)
            assert block.last < 0 or i in nx.ancestors(graph, block.last)


def with_weights(rng: np.random.Generator, *, blocks: int = 6) -> Problem:
    """Layers of eight tasks, each with a weight as a separate task that takes no time, and a mask for all layers."""
    edges: list[tuple[int, int]] = []
    n, last = 1, 0  # task 0 is the mask
    least = [0]
    for _ in range(blocks):
        first = last
        inner = []
        for _ in range(8):
            weight, task = n, n + 1
            n += 2
            least += [0, 5]
            edges += [(weight, task), (first, task)] if first else [(weight, task)]
            inner.append(task)
        edges.append((0, inner[0]))
        last, n = n, n + 1
        least.append(3)
        edges += [(task, last) for task in inner]
    duration = np.array(least)[:, None] + np.where(np.array(least) > 0, rng.integers(0, 4, n), 0)[:, None]
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=["a", "b"],
        duration=np.repeat(duration, 2, axis=1),
        edges=edges,
        payload=np.ones(len(edges), dtype=np.int64),
        byte_ticks_num=np.ones((2, 2), dtype=np.int64),
        byte_ticks_den=np.ones((2, 2), dtype=np.int64),
    )


def test_weights_and_masks_hide_no_cuts() -> None:
    problem = apply_passes(with_weights(np.random.default_rng(3)), EXACT_PASSES).problem
    series = series_of(problem)
    assert series is not None
    assert len(series.cuts) >= 5
    assert max(len(block.inner) for block in series.blocks) <= 20
    answer = SeriesRun(problem, Options(time_limit=60), series, by_cp_sat).answer()
    assert answer.termination is Termination.OPTIMAL
    assert answer.schedule is not None
    assert valid(problem, answer.schedule)


def test_one_block_at_a_time_or_two_give_the_same_optimum() -> None:
    problem = cut_rich(np.random.default_rng(5), memory=False)
    series = series_of(problem)
    assert series is not None
    found = [SeriesRun(problem, Options(time_limit=60, workers=w), series, by_cp_sat).answer() for w in (1, 1, 2)]
    assert len({each.bound for each in found}) == 1
    assert found[0].schedule is not None
    assert found[1].schedule is not None
    assert np.array_equal(found[0].schedule.device, found[1].schedule.device)
    assert np.array_equal(found[0].schedule.start, found[1].schedule.start)


def test_times_with_a_common_divisor() -> None:
    problem = apply_passes(with_weights(np.random.default_rng(3)), EXACT_PASSES).problem
    slow = replace(problem, duration=10 * problem.duration, byte_ticks_num=10 * problem.byte_ticks_num)
    found = [CpSat().solve(each, Options(time_limit=60), CpSatSettings()) for each in (problem, slow)]
    assert [each.termination for each in found] == [Termination.OPTIMAL] * 2
    assert found[1].bound == 10 * found[0].bound  # type: ignore[operator]
    assert [each.bound_source for each in found] == ["series"] * 2
    assert found[0].stats["blocks"] == found[1].stats["blocks"]


@pytest.mark.parametrize("seed", range(20))
def test_weights_of_the_makespan(seed: int) -> None:
    problem = cut_rich(np.random.default_rng(70 + seed), memory=seed % 2 == 0)
    whole = by_cp_sat(problem, Options(time_limit=60))
    heavy = replace(problem, objective=Objective(((Term("makespan", Fraction(2, 3)),),)))
    series = series_of(heavy)
    assert series is not None
    run = SeriesRun(heavy, Options(time_limit=60), series, by_cp_sat)
    answer = run.answer()
    if whole.termination is not Termination.INFEASIBLE and answer.bound is not None:
        assert answer.bound <= Fraction(2, 3) * whole.bound  # type: ignore[operator]
        assert answer.schedule is not None
        assert evaluate(heavy, answer.schedule)[0] >= Fraction(2, 3) * whole.bound  # type: ignore[operator]
    if not run.bounded.any():
        assert answer.termination is Termination.OPTIMAL


@pytest.mark.parametrize("constraint", ["group", "separation", "deadline", "peak"])
def test_constraints_of_two_cuts_without_tasks_between(constraint: str) -> None:
    arguments: dict[str, Any] = {
        "group": {"group": np.array([0, 1, 1, 2, 3])},
        "separation": {"separation": [(2, 3)]},
        "deadline": {"deadline": np.array([2, *[UNLIMITED] * 4])},
        "peak": {"memory_model": "peak", "resident": [0, 2, 2, 0, 0], "capacity": [3, 3]},
    }[constraint]
    problem = build_problem(
        task_names=[f"t{i}" for i in range(5)],
        device_names=["a", "b"],
        duration=[[2, 1], [2, 9], [9, 2], [9, 2], [4, 4]] if constraint == "group" else [[3, 2], *[[2, 9]] * 4],
        edges=[(i, i + 1) for i in range(4)],
        payload=[3] * 4,
        byte_ticks_num=np.ones((2, 2), dtype=np.int64),
        byte_ticks_den=np.ones((2, 2), dtype=np.int64),
        **arguments,
    )
    best = optimum(problem)
    assert best is not None
    answer = check(problem, int(best[0][0]), start=False)
    assert answer is not None
    assert answer.termination is Termination.OPTIMAL


def test_a_solver_of_blocks_that_cannot_continue() -> None:
    problem = cut_rich(np.random.default_rng(5), memory=False)
    series = series_of(problem)
    assert series is not None
    for workers in (1, 2):
        run = SeriesRun(problem, Options(workers=workers), series, lambda *_: Answer(Termination.FAILED))
        assert run.answer().termination is Termination.COMPLETED


def test_a_run_varies_as_the_solves_of_its_blocks() -> None:
    problem = cut_rich(np.random.default_rng(5), memory=False)
    series = series_of(problem)
    assert series is not None

    def varying(problem: Problem, options: Options) -> Answer:
        return replace(by_cp_sat(problem, options), varies_by="clock")

    for workers, solve, why in ((1, by_cp_sat, ""), (1, varying, "clock"), (2, by_cp_sat, "threads")):
        assert SeriesRun(problem, Options(workers=workers), series, solve).answer().varies_by == why


@pytest.mark.parametrize("solver", [CpSat(), Milp()], ids=lambda solver: str(solver.name))
def test_exact_solvers_vary_as_their_blocks(solver: CpSat | Milp, monkeypatch: pytest.MonkeyPatch) -> None:
    def solved(run: SeriesRun) -> Answer:
        run.best.raise_bound(run.best.values[0], "series")  # type: ignore[index]
        return Answer(Termination.OPTIMAL, stats={"blocks": 7}, varies_by="clock")

    monkeypatch.setattr(SeriesRun, "answer", solved)
    problem = apply_passes(with_weights(np.random.default_rng(3)), EXACT_PASSES).problem
    answer = solver.solve(problem, Options(time_limit=60), solver.settings_type())
    assert (answer.termination, answer.stats["blocks"], answer.varies_by) == (Termination.OPTIMAL, 7, "clock")


def test_the_solver_varies_as_its_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    def gap(_: SeriesRun) -> Answer:
        return Answer(Termination.COMPLETED, varies_by="threads")

    monkeypatch.setattr(SeriesRun, "answer", gap)
    problem = cut_rich(np.random.default_rng(5), memory=False)
    answer = Series().solve(problem, Options(time_limit=60), SeriesSettings(blocks="cp-sat"))
    assert (answer.termination, answer.varies_by) == (Termination.OPTIMAL, "threads")


def test_memory_is_compared_in_integers() -> None:
    problem = build_problem(
        task_names=["a", "b"],
        device_names=["d"],
        duration=[[1], [1]],
        edges=[(0, 1)],
        resident=[2**53, 1],
        capacity=[2**53],
    )
    assert binding_devices(problem).tolist() == [True]
    assert binding_devices(replace(problem, memory_model="peak")).tolist() == [False]


def test_a_block_has_a_schedule_before_its_length() -> None:
    class Watched(BlockProblem):
        def __setattr__(self, name: str, value: object) -> None:
            assert name != "upper" or value == NEVER or self.schedule is not None
            super().__setattr__(name, value)

    problem = cut_rich(np.random.default_rng(5), memory=False)
    schedule = by_cp_sat(problem, Options(time_limit=60)).schedule
    assert schedule is not None
    block = Watched(problem, 0, EqualArcs(problem.memory, np.zeros(problem.n_devices, dtype=np.bool_)))
    block.offer(schedule)
    assert block.upper == evaluate(problem, schedule)[0]


def test_an_impossible_block_is_proof_of_infeasibility() -> None:
    problem = cut_rich(np.random.default_rng(8), memory=False)
    feasible = problem.feasible.copy()
    feasible[problem.order[4]] = False
    broken = replace(problem, feasible=feasible, duration=np.where(feasible, problem.duration, 0))
    series = series_of(broken)
    assert series is not None
    answer = SeriesRun(broken, Options(time_limit=60), series, by_cp_sat).answer()
    assert answer.termination is Termination.INFEASIBLE


@pytest.mark.parametrize("seed", range(12))
def test_block_problems_share_bounds_and_schedules_where_memory_is_scarcer(seed: int) -> None:
    rng = np.random.default_rng(500 + seed)
    whole = cut_rich(rng, memory=True)
    equal = EqualArcs(whole.memory, binding_devices(whole))
    scarcer = [whole.capacity - rng.integers(0, 9, whole.n_devices) for _ in range(4)]
    problems = [whole, *(rebuilt(whole, capacity=each)[0] for each in scarcer)]
    best: list[int | None] = []
    for problem in problems:
        found, answer = equal.problem(problem), by_cp_sat(problem, Options(time_limit=60))
        equal.share(found)
        best.append(None if answer.bound is None or answer.schedule is None else int(answer.bound))
        if answer.schedule is None or best[-1] is None:
            assert answer.termination is Termination.INFEASIBLE
            assert found.schedule is None
            continue
        assert found.lower <= best[-1] <= found.upper
        assert found.schedule is None or valid(problem, found.schedule)
        larger = [
            value
            for other, value in zip(problems, best[:-1], strict=False)
            if (other.capacity >= problem.capacity).all() and value is not None
        ]
        assert found.lower >= max(larger, default=0)
        found.lower = best[-1]
        found.offer(answer.schedule)
