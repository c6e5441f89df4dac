"""The placement models of Carbonari et al. 2017: appendix 6.1, partial topologies, lazy and standard greedy."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brute_force import small_problem
from placeopt_solvers._constructive.construction import Build, Construction, construct_by_sum
from placeopt_solvers.submodular._submodular import SubmodularSettings, trials

import placeopt as po
from placeopt import engine
from placeopt.errors import UsageError
from placeopt.generate.layered_graphs import layered_problem
from placeopt.model.arrays import Int
from placeopt.model.building import build_problem
from placeopt.model.memory import used_memory
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.protocol import Answer, Options, Termination
from placeopt.protocol.registry import find_solver
from placeopt.submodular import greedy
from placeopt.submodular.placement import Form, PlacementModel, PlacementSettings
from placeopt.submodular.placement.model import PlacementState
from placeopt.submodular.placement.settings import parse_tiers
from placeopt.verifier import verify

BITS = 60
"""Bits per word of the bit sets of dependencies."""

PROBLEMS = Path(__file__).parents[2] / "problems"
FORMS: tuple[Form, ...] = ("inside", "outside")

# Appendix 6.1: round, chosen task and device, value. The paper truncates each g(...) to three decimals and adds them.
ROUNDS = (
    (1, "n3", "core0", 1.410),
    (2, "n4", "gpu", 3.399),
    (3, "n1", "core1", 4.799),
    (4, "n5", "core0", 5.371),
    (5, "n2", "core1", 5.935),
)


def five_node() -> Problem:
    return po.load(PROBLEMS / "five-node.yaml")


def graph(n: int, edges: Sequence[tuple[int, int]], m: int = 3, **rest: Any) -> Problem:
    values: dict[str, Any] = {"duration": np.ones((n, m), dtype=np.int64)}
    names = [f"t{i}" for i in range(n)], [f"d{i}" for i in range(m)]
    return build_problem(task_names=names[0], device_names=names[1], edges=list(edges), **(values | rest))


def random_edges(rng: np.random.Generator, n: int) -> list[tuple[int, int]]:
    density = rng.choice([0.05, 0.15, 0.3, 0.5])
    name = rng.permutation(n).tolist()
    return [(name[a], name[b]) for a in range(n) for b in range(a + 1, n) if rng.random() < density]


def cut(x: float) -> float:
    return math.floor(1000 * x + 1e-9) / 1000


def test_rounds_of_the_appendix() -> None:
    problem = five_node()
    model = PlacementModel(problem, "inside", PlacementSettings(cap="100 s"))
    placed = model.place_all()
    state = model.start()
    for (number, task, device, value), u, i in zip(ROUNDS, placed.task.tolist(), placed.device.tolist(), strict=True):
        model.add(state, u * problem.n_devices + i)
        chosen = problem.task_names[u], problem.device_names[i]
        assert chosen == (task, device), f"round {number}: {chosen} instead of {task} on {device}"
        shown = sum(cut(math.sqrt(benefit)) for benefit in state.benefit.tolist())
        assert shown == pytest.approx(value, abs=1e-9), f"round {number}"
        assert placed.values[number - 1] == model.value(state) == pytest.approx(value, abs=3e-3), f"round {number}"


@pytest.mark.parametrize(
    ("before", "pair", "value"),
    [
        ([], ("n1", "core0"), 1.400),  # rejected candidates in the tables of rounds 1 to 5
        ([], ("n2", "gpu"), 1.396),
        ([], ("n5", "gpu"), 1.389),
        ([("n3", "core0")], ("n1", "core0"), 1.984),
        ([("n3", "core0")], ("n4", "core0"), 1.984),
        ([("n3", "core0")], ("n4", "core1"), 3.389),
        ([("n3", "core0")], ("n1", "gpu"), 2.817),
        ([("n3", "core0")], ("n5", "gpu"), 2.799),
        ([("n3", "core0"), ("n4", "gpu")], ("n1", "core0"), 3.973),
        ([("n3", "core0"), ("n4", "gpu")], ("n2", "core1"), 4.791),
        ([("n3", "core0"), ("n4", "gpu")], ("n2", "gpu"), 3.836),
        ([("n3", "core0"), ("n4", "gpu"), ("n1", "core1")], ("n2", "core0"), 5.368),
        ([("n3", "core0"), ("n4", "gpu"), ("n1", "core1"), ("n5", "core0")], ("n2", "gpu"), 5.808),
    ],
)
def test_tables_of_the_appendix(before: list[tuple[str, str]], pair: tuple[str, str], value: float) -> None:
    problem = five_node()
    model = PlacementModel(problem, "inside", PlacementSettings(cap="100 s"))

    def element(task: str, device: str) -> int:
        return problem.task_names.index(task) * problem.n_devices + problem.device_names.index(device)

    state = model.start()
    for each in before:
        model.add(state, element(*each))
    gain = model.gains(state, np.array([element(*pair)]))[0]
    model.add(state, element(*pair))
    assert sum(cut(math.sqrt(benefit)) for benefit in state.benefit.tolist()) == pytest.approx(value, abs=1e-9)
    assert gain == pytest.approx(value - sum(row[3] for row in ROUNDS[len(before) - 1 : len(before)]), abs=4e-3)


def test_placement_and_job_completion_time_of_the_appendix() -> None:
    result = po.solve(five_node(), "submodular-g", cap="100 s")
    assert result.schedule is not None
    places = [result.problem.device_names[i] for i in result.schedule.device]
    assert places == ["core1", "core1", "core0", "gpu", "core0"]  # nodes 1 to 5
    assert result.stats["carbonari_jct"] == 17
    assert result.feasible


def test_parallel_task_on_another_device_doubles_the_benefit() -> None:
    # Section 2.2: with nodes 1 and 3 on devices 1 and 2, pf of node 4 is 2, 1 and 2.
    problem = five_node()
    model = PlacementModel(problem, "inside", PlacementSettings(cap="100 s"))
    state = model.start()
    for task, device in ((0, 0), (2, 1)):
        model.add(state, task * 3 + device)
    parallel = state.parallel[:, 3]
    assert (1 + parallel.sum() - parallel).tolist() == [2, 1, 2]


def test_outside_value_is_the_sum_times_the_last_factor() -> None:
    placed = PlacementModel(five_node(), "outside", PlacementSettings(cap="100 s")).place_all()
    roots = math.sqrt(2 - 0.01), math.sqrt(2 - 0.02), math.sqrt(2 - 0.04)
    wanted = [roots[0], (roots[0] + roots[1]) * 2, sum(roots)]
    assert placed.values[:3].tolist() == pytest.approx(wanted)


def parallel_by_definition(problem: Problem, device: Int) -> Int:
    """(m, n) by definition: parallel tasks of each unplaced task, from the dependencies in the topology with it."""
    n = problem.n_tasks
    producers = [problem.edge_source[problem.in_edge[problem.in_start[i] : problem.in_start[i + 1]]] for i in range(n)]
    parallel = np.zeros((problem.n_devices, n), dtype=np.int64)
    placed = set(np.flatnonzero(device >= 0).tolist())
    for u in set(range(n)) - placed:
        there = placed | {u}
        depends: dict[int, set[int]] = {}
        for w in problem.order.tolist():
            depends[w] = set().union(*({q} if q in there else depends[q] for q in producers[w].tolist()))
        for p in placed:
            if depends[p] == depends[u]:
                parallel[device[p], u] += 1
    return parallel


@pytest.mark.parametrize("seed", range(40))
def test_parallel_tasks_are_those_with_equal_dependencies(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 15))
    problem = graph(n, random_edges(rng, n))
    state = PlacementModel(problem, "inside").start()
    for v in rng.permutation(n).tolist():
        state.place(v, int(rng.integers(problem.n_devices)))
        left = state.device < 0
        wanted = parallel_by_definition(problem, state.device)
        assert (state.parallel[:, left] == wanted[:, left]).all()


def test_more_dependencies_than_bits_in_a_word() -> None:
    # k parallel producers; two consumers of all of them, and one of all but the last.
    k = 2 * BITS + 5
    edges = [(p, k + c) for p in range(k) for c in range(3) if not (c == 2 and p == k - 1)]
    problem = graph(k + 3, edges)
    state = PlacementModel(problem, "inside").start()
    for p in range(k):
        state.place(p, p % 3)
    state.place(k, 0)
    assert state.parallel[:, k + 1].tolist() == [1, 0, 0]
    assert state.parallel[:, k + 2].tolist() == [0, 0, 0]


def settings_of(rng: np.random.Generator) -> PlacementSettings:
    def flag(chance: float) -> bool:
        return bool(rng.random() < chance)

    return PlacementSettings(
        cap=str(rng.choice(["total", "1", "7", "40", "1000"])),
        parallelism=flag(0.8),
        load=flag(0.7),
        curve=str(rng.choice(["sqrt", "log", "2 to 3, 0.5 to 9, 0", "log; d0: 1 to 4, 0.1"])),
        memory=("step", "linear", "unlimited")[int(rng.integers(3))],
        knee=float(rng.choice([0.0, 0.5, 0.8])),
        memory_balance=float(rng.choice([0.0, 0.0, 0.5, 1.0])),
        tiers=str(rng.choice(["", "", "3; 4 at 0.5 B/s; 9 at 0.1 B/s"])),
        communication=flag(0.5),
    )


@pytest.mark.parametrize("seed", range(120))
def test_lazy_equals_standard(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem, settings = small_problem(rng), settings_of(rng)
    if seed % 2:
        n = int(rng.integers(8, 40))
        problem = graph(
            n,
            random_edges(rng, n),
            4,
            duration=rng.integers(0, int(rng.choice([2, 5, 30])), (n, 4)),
            resident=rng.integers(0, 6, n),
            capacity=np.full(4, int(rng.choice([n, 2 * n, UNLIMITED]))),
            latency=rng.integers(0, 3, (4, 4)) * (1 - np.eye(4, dtype=np.int64)),
            group=np.where(rng.random(n) < 0.2, 0, np.arange(n) + 1),
        )
    for form in FORMS:
        model = PlacementModel(problem, form, settings)
        lazy, standard = model.place_all(), model.place_all(lazy=False)
        assert lazy.task.tolist() == standard.task.tolist()
        assert lazy.device.tolist() == standard.device.tolist()
        assert lazy.values.tolist() == standard.values.tolist()
        assert (lazy.home.tolist(), lazy.room.tolist()) == (standard.home.tolist(), standard.room.tolist())
        assert lazy.evaluations <= standard.evaluations


@pytest.mark.parametrize("seed", range(40))
def test_library_greedy_gives_the_same_placement(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem, settings = small_problem(rng), settings_of(rng)
    for form in FORMS:
        model = PlacementModel(problem, form, settings)
        placed = model.place_all()
        found = greedy(model, model.independence(), fill=True)
        # The library compares gains, the model scores. Outside, they differ by a constant, hence by rounding.
        if form == "inside":
            assert found.elements.tolist() == (placed.task * problem.n_devices + placed.device).tolist()
        assert found.value == pytest.approx(placed.values[-1] if len(placed.values) else 0.0, rel=1e-9)


def solved(problem: Problem, name: str, **settings: Any) -> Answer:
    solver = find_solver(name)
    return solver.solve(problem, Options(), solver.settings_type(**settings))


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("name", ["submodular-g", "submodular-gi"])
def test_memory_limits_hold(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(4, 20)), 3
    sizes = rng.integers(1, 9, n)
    problem = graph(
        n,
        random_edges(rng, n),
        m,
        duration=rng.integers(1, 9, (n, m)),
        resident=sizes,
        capacity=np.full(m, int(sizes.sum() * 1.15) // m + 4),
        byte_ticks_num=rng.integers(0, 3, (m, m)),
    )
    for settings in ({}, {"communication": True}, {"memory": "linear"}):
        answer = solved(problem, name, **settings)
        assert answer.schedule is not None, answer.message
        assert not verify(problem, answer.schedule).violations


def test_unlimited_memory_is_reported() -> None:
    problem = graph(4, [], 2, resident=np.full(4, 10), capacity=np.array([15, 100]))
    answer = solved(problem, "submodular-g", memory="unlimited")
    assert answer.schedule is not None
    assert used_memory(problem, answer.schedule).tolist() == [20, 20]
    assert answer.message == "memory = unlimited: d0 by 5 B over capacity"
    solver = find_solver("submodular-g")
    strict = solver.solve(problem, Options(strict=True), solver.settings_type(memory="unlimited"))
    assert strict.termination == Termination.FAILED
    assert "d0 by 5 B" in strict.message


def test_full_device_has_no_gain() -> None:
    problem = graph(3, [], 2, resident=np.full(3, 10), capacity=np.array([15, 100]))
    model = PlacementModel(problem, "inside", PlacementSettings(memory="step"))
    state = model.start()
    first = model.gains(state, np.array([0, 1]))
    assert first[0] == first[1] > 0
    model.add(state, 0)
    assert model.gains(state, np.array([2]))[0] == 0
    assert model.independence().open(state, np.array([2, 3])).tolist() == [False, True]


def test_gains_decrease_from_the_knee() -> None:
    problem = graph(3, [], 2, resident=np.array([50, 25, 25]), capacity=np.array([100, UNLIMITED]))
    model = PlacementModel(problem, "inside", PlacementSettings(memory="linear", knee=0.5))
    free = PlacementModel(problem, "inside", PlacementSettings(memory="unlimited"))
    state, other = model.start(), free.start()
    elements = np.array([0, 2, 4])
    assert model.gains(state, elements)[0] == free.gains(other, elements)[0]  # not more than half full
    model.add(state, 0)
    free.add(other, 0)
    assert model.gains(state, np.array([2]))[0] == pytest.approx(free.gains(other, np.array([2]))[0] / 2)
    model.add(state, 2)
    free.add(other, 2)
    assert model.gains(state, np.array([4]))[0] == 0.0


def test_memory_balance_prefers_the_larger_memory() -> None:
    problem = graph(1, [], 2, resident=np.array([10]), capacity=np.array([20, 100]))
    plain = PlacementModel(problem, "inside", PlacementSettings())
    assert plain.place_all().device.tolist() == [0]
    balanced = PlacementModel(problem, "inside", PlacementSettings(memory_balance=0.5))
    assert balanced.place_all().device.tolist() == [1]
    gains, whole = (model.gains(model.start(), np.array([0, 1])) for model in (balanced, plain))
    assert (gains / whole).tolist() == pytest.approx([1 - 0.5 * 10 / 20, 1 - 0.5 * 10 / 100])


def test_tiers_add_swapping_time() -> None:
    problem = graph(1, [], 2, resident=np.array([10]), duration=np.array([[5, 6]]), capacity=np.array([20, 20]))
    problem = replace(problem, resolution=type(problem.resolution)(1))  # a tick is a second
    model = PlacementModel(problem, "inside", PlacementSettings(cap="100", tiers="4; 2 at 1 B/s; 100 at 0.5 B/s"))
    gain = model.gains(model.start(), np.array([0]))[0]
    assert gain == pytest.approx(math.sqrt(2 - (5 + 2 * 1 + 4 * 2) / 100))


def test_each_device_has_its_function() -> None:
    problem = graph(2, [], 4, duration=np.full((2, 4), 10), device_types=["cpu", "cpu", "gpu", "tpu"])
    curve = "log; gpu: 2 to 1.5, 0.5; cpu: sqrt; d1: 1 to 1, 0"
    model = PlacementModel(problem, "inside", PlacementSettings(cap="100", curve=curve))
    gains = model.gains(model.start(), np.arange(4))  # the benefit is 1.9
    assert gains == pytest.approx([math.sqrt(1.9), 1.0, 2 * 1.5 + 0.5 * 0.4, math.log(2.9)])
    assert model.place_all().device.tolist() == [2, 0]  # a second task gains 0.9 on d2
    flat = PlacementModel(problem, "inside", PlacementSettings(cap="100", curve="1 to 1, 0"))
    assert flat.gains(state_after(flat, [0]), np.array([4])) == pytest.approx([0])


def state_after(model: PlacementModel, elements: Sequence[int]) -> PlacementState:
    state = model.start()
    for element in elements:
        model.add(state, element)
    return state


@pytest.mark.parametrize(
    ("curve", "message"),
    [
        ("cube", '"cube" is not a function; expected sqrt, log or such as 2 to 10, 0.5'),
        ("1 to 2", "is not a function"),
        ("1, 0", "is not a function"),
        ("nan", "is not a function"),
        ("1 to 2, 2", "slopes of at least 0 that do not increase"),
        ("1 to 2, -1", "slopes of at least 0 that do not increase"),
        ("3 to 2, 2 to 2, 1", "increasing ends above 0"),
        ("dx: log", '"dx" is not a device or a type; expected d0, d1, d2'),
        ("d0: log; d0: sqrt", 'two functions for "d0"; expected one'),
        ("log; sqrt", "two functions for all devices; expected one"),
    ],
)
def test_invalid_functions(curve: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        PlacementModel(graph(1, []), "inside", PlacementSettings(curve=curve))


def test_tiers_as_shares_and_bytes() -> None:
    problem = graph(1, [], 2, capacity=np.array([100, 1000]))
    problem = replace(problem, resolution=type(problem.resolution)(1))
    end, ticks = parse_tiers(problem, "25%; 50% at 2 B/s; 10 B at 1 B/s")
    assert end.tolist() == [[25, 75, UNLIMITED], [250, 750, UNLIMITED]]
    assert ticks.tolist() == [[0, 0.5, 1]] * 2


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"tiers": "x"}, 'setting tiers, "x": "x" is not an amount of memory'),
        ({"tiers": "1 GiB; 2 GiB at 3 GiB"}, 'setting tiers, "2 GiB at 3 GiB": "3 GiB" is an amount'),
        ({"tiers": "50%"}, '"50%" is a share of the memory of d0, which is unlimited; expected bytes'),
        ({"tiers": "1 GiB; 1 GiB at 0 B/s"}, "too slow for swapping"),
        ({"cap": "soon"}, 'setting cap: "soon" is not a time; expected a time, such as 5 ms, or "total"'),
        ({"cap": "0 s"}, "setting cap: 0 s is not a valid time capacity"),
    ],
)
def test_invalid_settings(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as error:
        PlacementModel(graph(1, []), "inside", PlacementSettings(**setting))
    assert message in str(error.value)


def test_communication_prefers_the_device_of_the_producer() -> None:
    # t1 reads 40 bytes from t0 on d0; d1 and d2 are as fast as d0.
    links: dict[str, Any] = {"byte_ticks_num": np.ones((3, 3), dtype=np.int64)}
    problem = graph(2, [(0, 1)], payload=np.array([40]), duration=np.full((2, 3), 10), **links)
    separate = PlacementModel(problem, "inside", PlacementSettings(cap="100")).place_all()
    assert separate.device.tolist() == [0, 1]
    together = PlacementModel(problem, "inside", PlacementSettings(cap="20", communication=True)).place_all()
    assert together.device.tolist() == [0, 0]


def test_transfers_through_unplaced_tasks() -> None:
    # t0 -> t1 -> t2: the input of t2 is assumed on the device of t0 until t1 is placed on another one.
    links: dict[str, Any] = {"byte_ticks_num": np.ones((3, 3), dtype=np.int64)}
    problem = graph(3, [(0, 1), (1, 2)], payload=np.array([7, 5]), **links)
    model = PlacementModel(problem, "inside", PlacementSettings(communication=True))
    state = model.start()
    model.add(state, 0 * 3 + 0)
    assert state.fetched.T.tolist()[1:] == [[0, 7, 7], [0, 5, 5]]
    model.add(state, 1 * 3 + 2)
    assert state.fetched.T.tolist()[2] == [5, 5, 0]
    model = PlacementModel(problem, "inside", PlacementSettings(communication=True))
    state = model.start()
    model.add(state, 2 * 3 + 1)
    assert state.fetched.T.tolist()[:2] == [[7, 0, 7], [5, 0, 5]]


def test_search_of_time_capacities() -> None:
    problem = graph(4, [], 2, duration=np.array([[64, 100]] * 4))

    def caps(**settings: Any) -> list[tuple[str, bool]]:
        return [(trial.cap, trial.load) for trial in trials(problem, SubmodularSettings(**settings))]

    assert caps() == [("total", True)]
    assert caps(cap="5 s", communication=True) == [("5 s", True)]
    assert [cap for cap, _ in caps(communication=True, load=False)[::2]] == [
        cap for cap, _ in caps(cap="search", load=False)
    ]
    ways = [(each.load, each.communication) for each in trials(problem, SubmodularSettings(communication=True))]
    assert ways[:4] == [(True, True), (False, True), (True, False), (True, True)]
    halved = ["400", "256", "128", "64", "32", "16", "8", "4"]
    assert caps(cap="search") == [(cap, load) for cap in halved for load in (True, False)]


@pytest.mark.parametrize("maximiser", ["standard", "stochastic", "local-search", "continuous"])
def test_other_maximisers_place_all_tasks(maximiser: str) -> None:
    problem = five_node()
    plain = {"parallelism": False, "load": False, "memory": "unlimited"}
    answer = solved(problem, "submodular-g", maximiser=maximiser, **plain)
    assert answer.schedule is not None
    assert not verify(problem, answer.schedule).violations
    lazy = solved(problem, "submodular-g", **plain)
    if maximiser == "standard":
        assert lazy.schedule is not None
        assert answer.schedule.device.tolist() == lazy.schedule.device.tolist()
    if maximiser == "local-search":
        assert answer.stats["value"] >= lazy.stats["value"] - 1e-12
    assert lazy.stats["guarantee"].startswith("1/2 of the best")


@pytest.mark.parametrize("name", ["submodular-g", "submodular-gi"])
def test_time_limit(name: str) -> None:
    problem = layered_problem(2_000, 8, ccr=1.0)
    solver = find_solver(name)
    answer = solver.solve(problem, Options(time_limit=1e-9), solver.settings_type())
    assert answer.termination == Termination.TIME_LIMIT
    assert answer.schedule is None
    asked = []

    def should_stop() -> bool:
        asked.append(True)
        return len(asked) > 5

    answer = solver.solve(problem, Options(should_stop=should_stop), solver.settings_type(cap="search"))
    assert len(asked) <= 7
    assert answer.termination == (Termination.INTERRUPTED if answer.schedule is None else Termination.COMPLETED)


def test_a_stop_while_times_are_assigned_keeps_earlier_schedules(monkeypatch: pytest.MonkeyPatch) -> None:
    solver = find_solver("submodular-g")
    settings = solver.settings_type(cap="search")  # type: ignore[call-arg]
    made: list[Construction] = []

    def stopped_later(problem: Problem, build: Build) -> Construction:
        if made:
            raise engine.StoppedError
        made.append(construct_by_sum(problem, build))
        return made[0]

    monkeypatch.setattr("placeopt_solvers.submodular._submodular.construct_by_sum", stopped_later)
    answer = solver.solve(five_node(), Options(), settings)
    assert answer.schedule is not None
    assert verify(five_node(), answer.schedule).feasible


def test_continuous_greedy_requires_a_submodular_function() -> None:
    with pytest.raises(UsageError, match="parallelism=false, load=false and memory=unlimited"):
        solved(five_node(), "submodular-g", maximiser="continuous")


def test_transfers_of_all_tasks_of_a_group_count() -> None:
    # t0 -> t1, t0 -> t2, t3 -> t4; t1, t2 and t3 are one group without edges between them.
    links: dict[str, Any] = {"byte_ticks_num": np.ones((3, 3), dtype=np.int64)}
    edges = [(0, 1), (0, 2), (1, 3), (3, 4)]
    problem = graph(5, edges, payload=np.array([7, 5, 100, 3]), group=np.array([0, 1, 1, 1, 2]), **links)
    model = PlacementModel(problem, "inside", PlacementSettings(communication=True))
    state = model.start()
    model.add(state, 0 * 3 + 0)
    assert state.fetched[:, 1].tolist() == [0, 12, 12]
    model.add(state, 1 * 3 + 2)  # this places t3 on d2, so t4 reads from there
    assert state.fetched[:, 2].tolist() == [3, 3, 0]
    given = PlacementModel(problem, "inside", PlacementSettings(communication=True), home=np.array([-1, 2, -1]))
    assert given.start().fetched[:, [0, 2]].T.tolist() == [[12, 12, 0], [3, 3, 0]]
