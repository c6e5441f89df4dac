"""The core of every search: incremental values equal recomputed ones, and the plain oracles agree."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from brute_force import METRICS, small_problem
from placeopt_solvers._local_search import Instance, State, current_schedule, load, make_instance, make_state
from placeopt_solvers._local_search.decoding import decode, look_ahead, rewind
from placeopt_solvers._local_search.instance import OVERFULL
from placeopt_solvers._local_search.moving import accept, recompute
from placeopt_solvers._local_search.proposals import EXCHANGE, KINDS, MOVE, SHIFT, SWAP, find_critical, propose, undo
from placeopt_solvers._local_search.state import (
    COST,
    CRITICAL,
    FIXED,
    GUIDE,
    HELD,
    KNOWN,
    LAST,
    MOVED,
    PENALTY,
    PUT,
    TIMED,
)
from placeopt_solvers._local_search.walk import walk

from placeopt.model.building import build_problem, with_changes
from placeopt.model.memory import peak_memory, sum_memory
from placeopt.model.objective import evaluate
from placeopt.model.problem import Objective, Problem, Term
from placeopt.model.schedule import makespan
from placeopt.model.tiers import build_tiers
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
        **rest,
    )


def placed(problem: Problem, seed: int) -> tuple[Instance, State]:
    """A state with a random placement that respects feasibility, groups and separation."""
    rng = np.random.default_rng(seed)
    allowed = problem.group_feasible()
    while True:
        home = np.array([rng.choice(np.flatnonzero(row)) for row in allowed])
        device = home[problem.group]
        if (device[problem.separation[:, 0]] != device[problem.separation[:, 1]]).all():
            break
    instance = make_instance(problem)
    state = make_state(instance, problem, seed)
    load(problem, state, simulate(problem, device))
    recompute(instance, state)
    state.cost[COST] = decode(instance, state, 0, math.inf)
    return instance, state


def snapshot(state: State) -> list[Any]:
    names = ("order", "position", "home", "device", "ticks", "delay", "load", "room")
    return [getattr(state, name).tolist() for name in names]


def anew(problem: Problem, instance: Instance, state: State) -> float:
    """The cost of a state, computed from its order and homes alone."""
    other = make_state(instance, problem, 0)
    other.order[:], other.home[:] = state.order, state.home
    recompute(instance, other)
    return float(decode(instance, other, 0, math.inf))


def tiered(problem: Problem) -> Problem:
    """The problem with memory for an eighth of the bytes on each device, as much in a second tier, more in a third."""
    size = int(problem.memory.sum()) // 8
    tiers = build_tiers([size] * problem.n_devices, [[(size, 1, 3), (8 * size, 2, 1)]] * problem.n_devices)
    return with_changes(problem, capacity=tiers.capacity, tiers=tiers)


OBJECTIVES = (
    Objective(),
    Objective(((Term("total_cost"), Term("makespan")),)),
    Objective(((Term("communication"), Term("energy")),)),
    Objective(((Term("max_load"), Term("memory_balance"), Term("makespan")),)),
)


@pytest.mark.parametrize("contention", ["none", "port"])
@pytest.mark.parametrize("memory_model", ["sum", "peak"])
@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
def test_costs_after_moves_and_undone_moves_equal_recomputed_ones(
    contention: str, memory_model: str, objective: Objective
) -> None:
    problem = constrained(1, contention=contention, memory_model=memory_model, objective=objective)
    instance, state = placed(problem, 5)
    rng = np.random.default_rng(7)
    changed = early = 0
    for step in range(150):
        if step % 5 == 0 and instance.timed:
            look_ahead(instance, state)
        before, fixed, cost = snapshot(state), state.cost[FIXED], state.cost[COST]
        first = propose(instance, state, step % KINDS)
        if first >= problem.n_tasks:
            assert snapshot(state) == before
            continue
        early += state.number[KNOWN] <= state.number[LAST] + 1
        limit = cost * float(rng.choice([0.9, 1.0, 1.1])) if step % 4 else math.inf
        value = decode(instance, state, first, limit)
        fresh = anew(problem, instance, state)
        if value > limit:
            # Rejected: it is not better than the limit, and undoing it restores the state.
            assert fresh > limit or math.isclose(fresh, value)
            undo(instance, state)
            state.cost[FIXED] = fixed
            assert snapshot(state) == before
        else:
            assert math.isclose(value, fresh, rel_tol=1e-12)
            state.cost[COST] = value
            accept(state)
            changed += 1
    assert changed > 30
    assert early > 30 or not instance.timed


@pytest.mark.parametrize("kind", range(KINDS))
@pytest.mark.parametrize("rest", ["", "deadlines", "tiers"])
def test_times_join_again_behind_a_change(kind: int, rest: str) -> None:
    """On a long order most changes affect few tasks, and the cost is still right; likewise with memory tiers."""
    deadline = {"deadline": np.full(240, 500)} if rest == "deadlines" else {}
    problem = constrained(9, n=240, m=3, tight=2.0, **deadline)
    problem = tiered(problem) if rest == "tiers" else problem
    instance, state = placed(problem, 5)
    rng = np.random.default_rng(kind)
    joined = given_up = 0
    for step in range(120):
        if step % 7 == 0:
            look_ahead(instance, state)
        times = state.end.tolist()
        first = propose(instance, state, kind)
        if first >= problem.n_tasks:
            continue
        limit = state.cost[COST] + float(rng.choice([-1.0, 0.0, 30.0, 200.0]))
        fixed = state.cost[FIXED]
        value = decode(instance, state, first, limit)
        fresh = anew(problem, instance, state)
        if value > limit:
            assert fresh > limit
            given_up += 1
        else:
            assert math.isclose(value, fresh, rel_tol=1e-12)
            joined += state.number[TIMED] < problem.n_tasks
        if value > limit or step % 3 == 0:  # undone although it was accepted, as in tabu search
            if value <= limit:
                rewind(instance, state, first)
            undo(instance, state)
            state.cost[FIXED] = fixed
            assert state.end.tolist() == times
        else:
            state.cost[COST] = value
            accept(state)
    assert given_up > 10
    if rest == "tiers":  # another placement delays whole devices
        assert joined > 5 or kind != SHIFT
    else:
        assert joined > (5 if kind in (SHIFT, MOVE, SWAP) else 0)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("contention", ["none", "port", "half_duplex"])
def test_the_plain_oracles_agree_with_every_metric(seed: int, contention: str) -> None:
    metric = METRICS[seed % len(METRICS)]
    problem = constrained(seed, contention=contention, tight=2.0, objective=Objective(((Term(metric),),)))
    problem = tiered(problem) if seed % 2 else problem
    instance, state = placed(problem, seed)
    for step in range(40):
        first = propose(instance, state, step % KINDS)
        if first < problem.n_tasks:
            state.cost[COST] = decode(instance, state, first, math.inf)
    worth = state.cost[COST] - state.cost[GUIDE] - state.cost[PENALTY]
    schedule = current_schedule(problem, instance, state)
    report = verify(problem, schedule)
    assert report.violations == ()
    (value,) = evaluate(problem, schedule)
    assert math.isclose(worth, float(value), rel_tol=1e-12, abs_tol=1.0 if metric == "memory_balance" else 1e-6)
    again = retime(problem, schedule)
    assert makespan(problem, again) <= makespan(problem, schedule)
    if contention == "none":
        assert again.start.tolist() == schedule.start.tolist()


@pytest.mark.parametrize("contention", ["none", "port"])
@pytest.mark.parametrize("memory_model", ["sum", "peak"])
def test_the_penalty_is_the_memory_above_the_capacity(contention: str, memory_model: str) -> None:
    seen = 0
    for seed in range(12):
        problem = constrained(seed, contention=contention, memory_model=memory_model, tight=0.1 + 0.12 * (seed % 6))
        instance, state = placed(problem, seed)
        instance.weight[OVERFULL] = 3.0
        decode(instance, state, 0, math.inf)
        schedule = current_schedule(problem, instance, state)
        used = (peak_memory if memory_model == "peak" else lambda p, s: sum_memory(p, s.device))(problem, schedule)
        missing = np.maximum(used - problem.capacity, 0).sum()
        assert state.cost[PENALTY] == 3.0 * missing
        seen += missing > 0
    assert 0 < seen < 12


def test_lateness_is_a_penalty() -> None:
    problem = constrained(2, tight=2.0, deadline=np.full(30, 40))
    instance, state = placed(problem, 3)
    schedule = current_schedule(problem, instance, state)
    end = schedule.start + problem.duration[np.arange(30), schedule.device]
    assert state.cost[PENALTY] == np.maximum(end - 40, 0).sum() > 0


def test_separated_groups_exchange_their_devices() -> None:
    """With two devices, neither of two separated groups can move alone."""
    problem = build_problem(
        task_names=["a", "b"],
        device_names=["x", "y"],
        duration=np.array([[3, 1], [1, 3]]),
        separation=[(0, 1)],
    )
    instance, state = placed(problem, 0)
    state.home[:] = [0, 1]
    recompute(instance, state)
    assert propose(instance, state, MOVE) == 2
    assert propose(instance, state, SWAP) == 0
    assert state.home.tolist() == [1, 0]


@pytest.mark.parametrize("kind", [MOVE, SWAP, EXCHANGE])
def test_moves_keep_feasibility_groups_and_separation(kind: int) -> None:
    problem = constrained(4)
    instance, state = placed(problem, 1)
    moved = 0
    for _ in range(200):
        moved += propose(instance, state, kind) < problem.n_tasks
        device = state.device
        assert problem.feasible[np.arange(30), device].all()
        assert len({int(device[i]) for i in (3, 9, 17)}) == 1
        assert (device[problem.separation[:, 0]] != device[problem.separation[:, 1]]).all()
    assert moved > 20


def test_shifts_keep_the_order_topological() -> None:
    problem = constrained(5)
    instance, state = placed(problem, 1)
    orders = set()
    for _ in range(100):
        propose(instance, state, SHIFT)
        orders.add(tuple(state.order.tolist()))
        assert sorted(state.order.tolist()) == list(range(30))
        assert (state.position[problem.edge_source] < state.position[problem.edge_target]).all()
        assert (state.order[state.position] == np.arange(30)).all()
    assert len(orders) > 50
    assert state.number[MOVED] == 0
    assert state.number[PUT] >= -1


@pytest.mark.parametrize("contention", ["none", "port"])
def test_critical_tasks_lead_from_the_end_to_the_beginning(contention: str) -> None:
    problem = constrained(6, contention=contention)
    instance, state = placed(problem, 2)
    find_critical(instance, state)
    chain = state.critical[: state.number[CRITICAL]].tolist()
    end, ticks = state.end, state.ticks
    assert end[chain[0]] == end.max()
    for after, before in pairwise(chain):
        assert end[before] <= end[after] - ticks[after]
    first = chain[-1]
    assert end[first] - ticks[first] in (0, problem.release[first]) or contention == "port"


@pytest.mark.parametrize("contention", ["none", "port"])
def test_ticks_after_a_task_are_the_rest_of_the_longest_path(contention: str) -> None:
    """Without ports the value is exact; with ports it is a lower bound."""
    problem = constrained(8, contention=contention, tight=2.0)
    instance, state = placed(problem, 4)
    look_ahead(instance, state)
    follows = state.end + state.after
    assert follows.max() <= state.end.max()
    if contention == "none":
        find_critical(instance, state)
        chain = state.critical[: state.number[CRITICAL]]
        assert (follows[chain] == state.end.max()).all()


def test_compiled_walks_are_the_same() -> None:
    problem = constrained(7, memory_model="peak", contention="port", objective=OBJECTIVES[1], tight=0.2)
    found = []
    for run in (walk.plain, walk.compiled()):
        instance, state = placed(problem, 1)
        instance.weight[OVERFULL] = 0.5
        shares = np.array([30, 40, 62, 76, 92, 100])
        run(instance, state, shares, 0, 300, 300, 20.0, 1.0, -math.inf)
        run(instance, state, shares, 0, 20, 20, math.inf, math.inf, -math.inf)
        run(instance, state, shares, 0, 200, 200, 0.0, 0.0, -math.inf)
        found.append((*snapshot(state), state.cost.tolist(), state.number.tolist(), state.best_order.tolist()))
    assert found[0] == found[1]
    assert found[0][-3][HELD] < math.inf


@pytest.mark.parametrize("seed", range(30))
def test_small_problems_with_every_constraint_are_judged_as_by_the_verifier(seed: int) -> None:
    problem = small_problem(np.random.default_rng(9000 + seed), OBJECTIVES[seed % len(OBJECTIVES)])
    if not problem.group_feasible().any(axis=1).all() or len(problem.separation):
        return
    instance, state = placed(problem, seed)
    for step in range(30):
        propose(instance, state, step % KINDS)
    state.cost[COST] = anew(problem, instance, state)
    schedule = current_schedule(problem, instance, state)
    decode(instance, state, 0, math.inf)
    broken = {each.rule for each in verify(problem, schedule).violations}
    assert broken <= {"memory", "deadline"}
    assert bool(broken) == (state.cost[PENALTY] > 0)
