"""The core of every search: incremental values equal recomputed ones, and the plain oracles agree."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from brute_force import small_problem, with_setups
from link_lanes import linked
from placeopt_solvers._local_search.instance import Instance, make_instance
from placeopt_solvers._local_search.search import timed_schedule
from placeopt_solvers._local_search.strategies import annealer

from placeopt import engine
from placeopt.model.arrays import Int
from placeopt.model.building import build_problem, with_changes
from placeopt.model.memory import peak_memory, sum_memory
from placeopt.model.objective import evaluate
from placeopt.model.problem import Objective, Problem, Term
from placeopt.model.resources import build_resources
from placeopt.model.schedule import makespan, sequence
from placeopt.model.tiers import build_tiers
from placeopt.protocol import PLACED
from placeopt.simulation import retime, simulate
from placeopt.verifier import verify


def constrained(seed: int, n: int = 30, m: int = 4, tight: float = 0.6, **rest: Any) -> Problem:
    """A random graph with memory, groups, separation, forbidden devices, release times and different links."""
    rng = np.random.default_rng(seed)
    edges = [(a, b) for b in range(n) for a in range(max(0, b - 6), b) if rng.random() < 0.3]
    shared = np.array([a % 3 == 0 for a, _ in edges], dtype=bool)
    sizes = rng.integers(0, 20, n)
    payload = [int(sizes[a]) if a % 3 == 0 else int(rng.integers(0, 20)) for a, _ in edges]
    resident, output, scratch = (rng.integers(1, 10, n) for _ in range(3))
    feasible = rng.random((n, m)) < 0.9
    feasible[:, 0] = True
    feasible[[3, 9, 17]] = True
    group = np.arange(n)
    group[[3, 9, 17]] = 3
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        duration=rng.integers(0, 20, (n, m)),
        edges=edges,
        payload=payload,
        shared=shared,
        latency=rng.integers(0, 5, (m, m)),
        byte_ticks_num=rng.integers(1, 3, (m, m)),
        byte_ticks_den=rng.integers(1, 3, (m, m)),
        power_num=rng.integers(0, 5, m),
        byte_energy_num=rng.integers(0, 5, (m, m)),
        feasible=feasible,
        resident=resident,
        output=output,
        scratch=scratch,
        capacity=np.full(m, int((resident + output + scratch).sum() * tight)),
        release=np.where(rng.random(n) < 0.3, rng.integers(0, 60, n), 0),
        group=group,
        separation=[(1, 2), (5, 20)],
        **linked(seed, m, rest),
    )


MOVE, SWAP, SHIFT, _, _, EXCHANGE = range(6)
KINDS = 6
NEVER = engine.Stop()


def placed(problem: Problem, seed: int) -> tuple[Instance, engine.LocalSearch]:
    """A state with a random placement that respects feasibility, groups and separation."""
    rng = np.random.default_rng(seed)
    allowed = problem.group_feasible()
    while True:
        home = np.array([rng.choice(np.flatnonzero(row)) for row in allowed])
        device = home[problem.group]
        if (device[problem.separation[:, 0]] != device[problem.separation[:, 1]]).all():
            break
    instance = make_instance(problem)
    state = engine.LocalSearch(instance, seed)
    state.load(sequence(problem, simulate(problem, device)), home)
    return instance, state


def snapshot(state: engine.LocalSearch) -> list[Any]:
    names = ("order", "home", "device", "ticks", "delay", "sums")
    return [getattr(state, name).tolist() for name in names]


def anew(instance: Instance, state: engine.LocalSearch) -> float:
    """The cost of a state, computed from its order and homes alone."""
    other = engine.LocalSearch(instance, 0)
    other.load(state.order, state.home)
    return other.cost


def tiered(problem: Problem) -> Problem:
    """The problem with memory for an eighth of the bytes on each device, as much in a second tier, more in a third."""
    size = int(problem.memory.sum()) // 8
    tiers = build_tiers([size] * problem.n_devices, [[(size, 1, 3), (8 * size, 2, 1)]] * problem.n_devices)
    return with_changes(problem, capacity=tiers.capacity, tiers=tiers)


def sharing(problem: Problem, seed: int, share: float = 0.5) -> Problem:
    """The problem with two renewable resources, one for one task at a time, two budgets and a parallel device."""
    rng = np.random.default_rng(seed)
    n, m = problem.n_tasks, problem.n_devices
    uses: dict[int, Any] = {}
    for i in np.flatnonzero(rng.random(n) < share).tolist():
        drawn = {
            "license": rng.integers(0, 2, m).tolist(),
            "power": rng.integers(1, 50, m).tolist(),
            "error": rng.integers(0, 3, m).tolist(),
            "money": (rng.integers(0, 9, m) / 4).tolist(),
        }
        uses[i] = {name: amounts for name, amounts in drawn.items() if rng.random() < 0.8}
    resources = build_resources(
        n,
        m,
        renewable={"license": 1, "power": 90},
        budgets={"error": n * share * 0.7, "money": n * share * 0.8},
        uses=uses,
        parallel=np.arange(m) == 1,
        feasible=problem.feasible,
    )
    return with_changes(problem, resources=resources)


OBJECTIVES = (
    Objective(),
    Objective(((Term("total_cost"), Term("makespan")),)),
    Objective(((Term("communication"), Term("energy")),)),
    Objective(((Term("max_load"), Term("memory_balance"), Term("makespan")),)),
)


@pytest.mark.parametrize("contention", ["none", "port", "links"])
@pytest.mark.parametrize("memory_model", ["sum", "peak"])
@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
@pytest.mark.parametrize("shared", [False, True], ids=["", "resources and setups"])
def test_costs_after_moves_and_undone_moves_equal_recomputed_ones(
    contention: str, memory_model: str, objective: Objective, shared: bool
) -> None:
    problem = constrained(1, contention=contention, memory_model=memory_model, objective=objective)
    problem = with_setups(sharing(problem, 3), np.random.default_rng(3)) if shared else problem
    instance, state = placed(problem, 5)
    rng = np.random.default_rng(7)
    changed = early = 0
    for step in range(150):
        if step % 5 == 0 and instance.timed:
            state.look_ahead()
        before, cost = snapshot(state), state.cost
        first = state.propose(step % KINDS)
        if first >= problem.n_tasks:
            assert snapshot(state) == before
            continue
        known, last, _, _ = state.counts
        early += known <= last + 1
        limit = cost * float(rng.choice([0.9, 1.0, 1.1])) if step % 4 else math.inf
        value = state.evaluate(first, limit)
        fresh = anew(instance, state)
        if value > limit:
            # Rejected: it is not better than the limit, and undoing it restores the state.
            assert fresh > limit or math.isclose(fresh, value)
            state.undo()
            assert snapshot(state) == before
        else:
            assert math.isclose(value, fresh, rel_tol=1e-12)
            state.accept(value)
            changed += 1
    assert changed > 30
    assert early > 30 or not instance.timed


@pytest.mark.parametrize("kind", range(KINDS))
@pytest.mark.parametrize("rest", ["", "deadlines", "tiers", "resources", "setups"])
def test_times_join_again_behind_a_change(kind: int, rest: str) -> None:
    """On a long order most changes affect few tasks, and the cost is still right; likewise with memory tiers."""
    deadline = {"deadline": np.full(240, 500)} if rest == "deadlines" else {}
    problem = constrained(9, n=240, m=3, tight=2.0, **deadline)
    changes: dict[str, Callable[[Problem], Problem]] = {
        "tiers": tiered,
        "resources": lambda each: sharing(each, 2, 0.1),
        "setups": lambda each: with_setups(each, np.random.default_rng(2)),
    }
    problem = changes.get(rest, lambda each: each)(problem)
    instance, state = placed(problem, 5)
    rng = np.random.default_rng(kind)
    joined = given_up = 0
    for step in range(120):
        if step % 7 == 0:
            state.look_ahead()
        times = state.end.tolist()
        first = state.propose(kind)
        if first >= problem.n_tasks:
            continue
        limit = state.cost + float(rng.choice([-1.0, 0.0, 30.0, 200.0]))
        value = state.evaluate(first, limit)
        fresh = anew(instance, state)
        if value > limit:
            assert fresh > limit
            given_up += 1
        else:
            assert math.isclose(value, fresh, rel_tol=1e-12)
            joined += state.counts[2] < problem.n_tasks
        if value > limit or step % 3 == 0:  # undone although it was accepted, as in tabu search
            if value <= limit:
                state.rewind(first)
            state.undo()
            assert state.end.tolist() == times
        else:
            state.accept(value)
    assert given_up > 10
    if rest == "resources":
        assert joined > 5 or kind not in (SHIFT, MOVE, SWAP)
    elif rest == "tiers":  # another placement delays whole devices
        assert joined > 5 or kind != SHIFT
    else:
        least = 1 if rest == "setups" else 5
        assert joined > (least if kind in (SHIFT, MOVE, SWAP) else 0)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("contention", ["none", "port", "half_duplex", "links"])
def test_the_plain_oracles_agree_with_every_metric(seed: int, contention: str) -> None:
    metric = PLACED[seed % len(PLACED)]
    problem = constrained(seed, contention=contention, tight=2.0, objective=Objective(((Term(metric),),)))
    problem = tiered(problem) if seed % 2 else problem
    problem = sharing(problem, seed, 0.8) if seed % 3 == 0 else problem
    problem = with_setups(problem, np.random.default_rng(seed)) if seed % 4 > 1 else problem
    instance, state = placed(problem, seed)
    for step in range(40):
        first = state.propose(step % KINDS)
        if first < problem.n_tasks:
            state.accept(state.evaluate(first, math.inf))
    worth = state.cost - state.guide - state.penalty
    schedule = timed_schedule(problem, instance, state)
    report = verify(problem, schedule)
    assert {each.rule for each in report.violations} <= {"budget"}
    assert bool(report.violations) == (state.penalty > 0)
    (value,) = evaluate(problem, schedule)
    assert math.isclose(worth, float(value), rel_tol=1e-12, abs_tol=1.0 if metric == "memory_balance" else 1e-6)
    again = retime(problem, schedule)
    assert makespan(problem, again) <= makespan(problem, schedule)
    if contention == "none" and problem.resources is None:
        assert again.start.tolist() == schedule.start.tolist()


@pytest.mark.parametrize("contention", ["none", "port"])
@pytest.mark.parametrize("memory_model", ["sum", "peak"])
@pytest.mark.parametrize("shared", [False, True], ids=["", "resources"])
def test_the_penalty_is_the_memory_above_the_capacity(contention: str, memory_model: str, shared: bool) -> None:
    seen = 0
    for seed in range(12):
        problem = constrained(seed, contention=contention, memory_model=memory_model, tight=0.1 + 0.12 * (seed % 6))
        problem = sharing(problem, seed, 0.9) if shared else problem
        instance, state = placed(problem, seed)
        state.set_penalties(1.0, 3.0)
        penalty = state.penalty
        schedule = timed_schedule(problem, instance, state)
        used = (peak_memory if memory_model == "peak" else lambda p, s: sum_memory(p, s.device))(problem, schedule)
        missing = np.maximum(used - problem.capacity, 0).sum()
        assert math.isclose(penalty, 3.0 * (missing + overspent(instance, problem, state.device)), rel_tol=1e-12)
        seen += missing > 0
    assert 0 < seen < 12


def overspent(instance: Instance, problem: Problem, device: Int) -> float:
    """The bytes that what exceeds the budgets counts as."""
    resources, total = problem.resources, 0.0
    for b, r in enumerate([] if resources is None else resources.budgets.tolist()):
        assert resources is not None
        used = int(resources.amounts(r)[np.arange(problem.n_tasks), device].sum())
        total += instance.budget_bytes[b] * max(used - int(resources.capacity[r]), 0)
    return total


def test_the_penalty_for_budgets_grows_with_what_exceeds_them() -> None:
    seen = 0
    for seed in range(12):
        problem = sharing(constrained(seed, tight=2.0), seed, 0.2 + 0.06 * seed)
        instance, state = placed(problem, seed)
        state.set_penalties(1.0, 3.0)
        missing = overspent(instance, problem, state.device)
        assert math.isclose(state.penalty, 3.0 * missing, rel_tol=1e-12)
        seen += missing > 0
    assert 0 < seen < 12


def test_lateness_is_a_penalty() -> None:
    problem = constrained(2, tight=2.0, deadline=np.full(30, 40))
    instance, state = placed(problem, 3)
    penalty = state.penalty
    schedule = timed_schedule(problem, instance, state)
    end = schedule.start + problem.duration[np.arange(30), schedule.device]
    assert penalty == np.maximum(end - 40, 0).sum() > 0


def test_separated_groups_exchange_their_devices() -> None:
    """With two devices, neither of two separated groups can move alone."""
    problem = build_problem(
        task_names=["a", "b"],
        device_names=["x", "y"],
        duration=np.array([[3, 1], [1, 3]]),
        separation=[(0, 1)],
    )
    _, state = placed(problem, 0)
    state.load(np.array([0, 1]), np.array([0, 1]))
    assert state.propose(MOVE) == 2
    assert state.propose(SWAP) == 0
    assert state.home.tolist() == [1, 0]


@pytest.mark.parametrize("kind", [MOVE, SWAP, EXCHANGE])
def test_moves_keep_feasibility_groups_and_separation(kind: int) -> None:
    problem = constrained(4)
    _, state = placed(problem, 1)
    moved = 0
    for _ in range(200):
        moved += state.propose(kind) < problem.n_tasks
        device = state.device
        assert problem.feasible[np.arange(30), device].all()
        assert len({int(device[i]) for i in (3, 9, 17)}) == 1
        assert (device[problem.separation[:, 0]] != device[problem.separation[:, 1]]).all()
    assert moved > 20


def test_shifts_keep_the_order_topological() -> None:
    problem = constrained(5)
    _, state = placed(problem, 1)
    orders = set()
    for _ in range(100):
        state.propose(SHIFT)
        orders.add(tuple(state.order.tolist()))
        assert sorted(state.order.tolist()) == list(range(30))
        position = state.sums[:30]
        assert (position[problem.edge_source] < position[problem.edge_target]).all()
        assert (state.order[position] == np.arange(30)).all()
    assert len(orders) > 50
    assert state.counts[3] == 0


@pytest.mark.parametrize("contention", ["none", "port", "links"])
def test_critical_tasks_lead_from_the_end_to_the_beginning(contention: str) -> None:
    problem = constrained(6, contention=contention)
    _, state = placed(problem, 2)
    chain = state.find_critical().tolist()
    end, ticks = state.end, state.ticks
    assert end[chain[0]] == end.max()
    for after, before in pairwise(chain):
        assert end[before] <= end[after] - ticks[after]
    first = chain[-1]
    assert end[first] - ticks[first] in (0, problem.release[first]) or contention != "none"


@pytest.mark.parametrize("contention", ["none", "port", "links"])
def test_ticks_after_a_task_are_the_rest_of_the_longest_path(contention: str) -> None:
    """Without ports the value is exact; with ports it is a lower bound."""
    problem = constrained(8, contention=contention, tight=2.0)
    _, state = placed(problem, 4)
    follows = state.end + state.look_ahead()
    assert follows.max() <= state.end.max()
    if contention == "none":
        chain = state.find_critical()
        assert (follows[chain] == state.end.max()).all()


def test_walks_and_tabu_rounds_keep_the_cost_of_their_state() -> None:
    problem = constrained(7, memory_model="peak", contention="port", objective=OBJECTIVES[1], tight=0.2)
    instance, state = placed(problem, 1)
    shares = np.array([30, 40, 62, 76, 92, 100])
    for hot, cold, moves in ((20.0, 1.0, 300), (math.inf, math.inf, 20), (0.0, 0.0, 200)):
        assert 0 < state.walk(shares, 0, moves, moves, hot, cold, -math.inf, NEVER) <= moves
        assert math.isclose(state.cost, anew(instance, state), rel_tol=1e-12)
    held = state.held
    assert state.tabu(shares, 0, 20, 10, 3, -math.inf, NEVER) <= 200
    assert math.isclose(state.cost, anew(instance, state), rel_tol=1e-12)
    assert state.held <= held < math.inf


def test_a_walk_that_is_cut_into_parts_does_the_same() -> None:
    problem = constrained(3)
    states = []
    for cuts in ((0, 400), (0, 1, 130, 131, 400)):
        _, state = placed(problem, 5)
        for begin, end in pairwise(cuts):
            state.walk(np.array([30, 40, 62, 76, 92, 100]), begin, end, 400, 5.0, 0.1, -math.inf, NEVER)
        states.append((state.order.tolist(), state.home.tolist(), state.cost))
    assert states[0] == states[1]


def test_a_walk_ends_when_it_is_stopped() -> None:
    problem = constrained(3, n=200)
    state = annealer(problem, simulate(problem, problem.feasible.argmax(axis=1)), 0, 0).state
    evaluated = state.walk(
        np.array([30, 40, 62, 76, 92, 100]), 0, 10**9, 10**9, 5.0, 0.1, -math.inf, engine.Stop(seconds=0.01)
    )
    assert evaluated < 10**8


@pytest.mark.parametrize("seed", range(30))
def test_small_problems_with_every_constraint_are_judged_as_by_the_verifier(seed: int) -> None:
    problem = small_problem(np.random.default_rng(9000 + seed), OBJECTIVES[seed % len(OBJECTIVES)])
    if not problem.group_feasible().any(axis=1).all() or len(problem.separation):
        return
    instance, state = placed(problem, seed)
    for step in range(30):
        state.propose(step % KINDS)
    state.load(state.order, state.home)
    penalty = state.penalty
    schedule = timed_schedule(problem, instance, state)
    broken = {each.rule for each in verify(problem, schedule).violations}
    assert broken <= {"memory", "deadline"}
    assert bool(broken) == (penalty > 0)
