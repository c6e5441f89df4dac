"""The linear program of Small Communication Times: solution, settled optimum, rounding, bounds."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from brute_force import optimum, small_problem

from placeopt import engine
from placeopt.bounding.quick import bounds as quick_bounds
from placeopt.bounding.quick import narrowed_classes
from placeopt.bounding.sct import favourites, solution
from placeopt.bounding.sct.bound import certain, sct_bound
from placeopt.bounding.sct.core import Core, core_of, heads, merged, reduced, tails
from placeopt.bounding.sct.favourites import favourites_of, rounded
from placeopt.bounding.sct.game import (
    IN,
    OUT,
    Game,
    GameState,
    flow_bound,
    game_of,
    initial_state,
    longest,
    shares_of,
    sides_of,
)
from placeopt.bounding.sct.program import SctProgram, program_of
from placeopt.bounding.sct.ratios import ratios_of
from placeopt.bounding.sct.solution import Solution, integral_solution, solution_of
from placeopt.generate.layered_graphs import layered_problem
from placeopt.model.building import build_problem
from placeopt.model.problem import UNLIMITED, Objective, Problem, Term
from placeopt.proving.portfolio import bounds


def program(
    length: list[int], edges: dict[tuple[int, int], int], *, fixed: dict[tuple[int, int], int] | None = None
) -> SctProgram:
    """Tasks in a topological order, and transfers by their ends."""
    pairs = sorted(edges)
    n, e = len(length), len(pairs)
    rival = np.ones(e, dtype=np.bool_)
    return SctProgram(
        parts=1,
        order=np.arange(n),
        length=np.array(length, dtype=np.int64),
        release=np.zeros(n, dtype=np.int64),
        tail=np.zeros(n, dtype=np.int64),
        source=np.array([i for i, _ in pairs], dtype=np.int64),
        target=np.array([j for _, j in pairs], dtype=np.int64),
        fixed=np.array([(fixed or {}).get(pair, 0) for pair in pairs], dtype=np.int64),
        hidden=np.array([edges[pair] for pair in pairs], dtype=np.int64),
        out_rival=rival,
        in_rival=rival,
    )


def random_program(rng: np.random.Generator, n: int, share: float = 0.3) -> SctProgram:
    edges = {(i, j): int(rng.integers(0, 12)) for i in range(n) for j in range(i + 1, n) if rng.random() < share}
    found = program(rng.integers(0, 10, n).tolist(), edges)
    if rng.random() < 0.5:
        return found
    return replace(
        found,
        release=np.where(rng.random(n) < 0.3, rng.integers(0, 30, n), 0),
        tail=np.where(rng.random(n) < 0.3, rng.integers(0, 30, n), 0),
        fixed=np.where(rng.random(len(edges)) < 0.2, 5, 0),
        out_rival=rng.random(len(edges)) < 0.8,
        in_rival=rng.random(len(edges)) < 0.8,
    )


def longest_path(given: SctProgram, y: np.ndarray) -> float:
    """w of a point, computed directly."""
    start = given.release.astype(float)
    w = 0.0
    for i in given.order.tolist():
        end = start[i] + given.length[i]
        w = max(w, end + given.tail[i])
        for e in np.flatnonzero(given.source == i).tolist():
            free = not (given.out_rival[e] or given.in_rival[e])
            wait = 0.0 if free else given.hidden[e] * (1 - y[e])
            start[given.target[e]] = max(start[given.target[e]], end + given.fixed[e] + wait)
    return w


def reference(given: SctProgram) -> float:
    """The optimum of the paper's equations by another engine."""
    from ortools.linear_solver import pywraplp

    solver = pywraplp.Solver.CreateSolver("GLOP")
    n, e = len(given.length), len(given.source)
    s = [solver.NumVar(float(given.release[i]), solver.infinity(), "") for i in range(n)]
    x = [solver.NumVar(0, 1, "") for _ in range(e)]
    w = solver.NumVar(0, solver.infinity(), "")
    for i in range(n):
        solver.Add(s[i] + int(given.length[i]) + int(given.tail[i]) <= w)
        for end, rival in ((given.source, given.out_rival), (given.target, given.in_rival)):
            mine = np.flatnonzero((end == i) & rival).tolist()
            if mine:
                solver.Add(sum(x[k] for k in mine) >= len(mine) - 1)
    for k in range(e):
        i, j = int(given.source[k]), int(given.target[k])
        solver.Add(s[j] >= s[i] + int(given.length[i]) + int(given.fixed[k]) + int(given.hidden[k]) * x[k])
    solver.Minimize(w)
    assert solver.Solve() == pywraplp.Solver.OPTIMAL
    return float(w.solution_value())


def check(given: SctProgram, found: Solution) -> None:
    """Check that the point is feasible, and its value and bound."""
    assert ((found.y >= 0) & (found.y <= 1)).all()
    for end, rival in ((given.source, given.out_rival), (given.target, given.in_rival)):
        used = np.bincount(end, weights=found.y * rival, minlength=len(given.length))
        assert used.max(initial=0) <= 1 + 1e-9
    assert longest_path(given, found.y) == pytest.approx(found.value, rel=1e-9)
    assert found.bound <= Fraction(found.value) * (1 + Fraction(1, 10**9))


def every_matching(given: SctProgram) -> int:
    """The least w over all whole y."""
    best = None
    for y in product((0, 1), repeat=len(given.source)):
        chosen = np.array(y)
        sums = [np.bincount(end, weights=chosen, minlength=1).max() for end in (given.source, given.target)]
        if max(sums) <= 1:
            w = longest_path(given, chosen)
            best = w if best is None else min(best, w)
    assert best is not None
    return int(best)


def test_a_fork_shares_its_favourite() -> None:
    # Both children wait for half of their transfers: 4 + 6/2 + 5. The second is longer by one if it is not a favourite.
    found = solution_of(program([4, 5, 5], {(0, 1): 6, (0, 2): 6}))
    assert found.value == pytest.approx(12)
    assert found.bound == 12
    assert found.y == pytest.approx([0.5, 0.5])


def test_a_chain_hides_all() -> None:
    found = solution_of(program([4, 5, 6], {(0, 1): 100, (1, 2): 100}))
    assert (found.value, found.bound, found.method) == (15, 15, "reductions")
    assert found.y.tolist() == [1, 1]


def test_nothing_at_all() -> None:
    found = solution_of(program([], {}))
    assert (found.value, found.bound, found.gap) == (0, 0, 0)
    assert solution_of(program([0, 0], {(0, 1): 0})).value == 0


@pytest.mark.parametrize("seed", range(40))
def test_the_optimum_is_that_of_the_equations(seed: int) -> None:
    given = random_program(np.random.default_rng(seed), 12)
    found = solution_of(given)
    check(given, found)
    assert found.value == pytest.approx(reference(given), rel=1e-6)
    assert float(found.bound) == pytest.approx(found.value, rel=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_the_game_comes_as_close_as_it_says(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solution, "SMALL", 0)
    monkeypatch.setattr(solution, "LARGE", 0)
    given = random_program(np.random.default_rng(seed), 16)
    found = solution_of(given, tolerance=1e-3, rounds=2000)
    check(given, found)
    best = reference(given)
    assert found.gap <= 1e-3
    assert float(found.bound) <= best * (1 + 1e-9)
    assert best <= found.value * (1 + 1e-9)


def test_play_stops_when_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solution, "SMALL", 0)
    given = random_program(np.random.default_rng(3), 20)
    found = solution_of(given, tolerance=0.0, rounds=150)
    assert found.rounds == 150
    check(given, found)
    stopped = solution_of(given, tolerance=0.0, should_stop=lambda: True)
    assert stopped.rounds == 0
    check(given, stopped)


def test_a_slow_game_is_left_to_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solution, "SMALL", 0)
    monkeypatch.setattr(solution, "SLOW", 100)
    given = random_program(np.random.default_rng(3), 20)
    found = solution_of(given, tolerance=1e-9)
    assert found.rounds == 100
    assert found.gap < 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_reductions_leave_the_optimum(seed: int) -> None:
    given = random_program(np.random.default_rng(100 + seed), 14)
    best = reference(given)
    core, _ = core_of(given)
    for bound in (0.0, best * 0.9, best):
        left, became = reduced(core, bound)
        assert left.n_edges <= core.n_edges
        assert len(became) == core.n_edges
        if left.n_edges:
            assert (left.source < left.target).all()
            most = longest(left, np.ones(left.n_edges))
            assert most <= best * (1 + 1e-9)


def test_equal_branches_become_one() -> None:
    """64 equal heads between a fork and a join: one head, of which each favourite is shared by 64."""
    heads_, n = 64, 64 * 2 + 2
    edges = {(0, 1 + h): 7 for h in range(heads_)}
    edges |= {(1 + h, 65 + h): 3 for h in range(heads_)}
    edges |= {(65 + h, n - 1): 7 for h in range(heads_)}
    given = program([2] + [5] * (n - 2) + [2], edges)
    core, _ = core_of(given)
    left, became = merged(core)
    assert left.n_tasks == 6  # with the first and the last
    assert sorted(left.out_weight.tolist()) == [1, 1, 1, 1, 64]
    assert sorted(left.in_weight.tolist()) == [1, 1, 1, 1, 64]
    assert len(became) == core.n_edges
    found = solution_of(given)
    check(given, found)
    # Every transfer at the fork and at the join is hidden by 1/64: 2 + 5 + 5 + 2 + 14 * 63/64.
    assert found.value == pytest.approx(14 + 14 * 63 / 64)
    assert found.value == pytest.approx(reference(given))


def test_tasks_that_only_seem_equal_stay_apart() -> None:
    """Two rings of the same degrees and path lengths, of 4 and of 6: refinement cannot distinguish them."""
    given = program(
        [1] * 10,
        {(0, 5): 2, (0, 6): 2, (1, 6): 2, (1, 5): 2, (2, 7): 2, (2, 8): 2, (3, 8): 2, (3, 9): 2, (4, 9): 2, (4, 7): 2},
    )
    found = solution_of(given)
    check(given, found)
    assert found.value == pytest.approx(reference(given))
    assert found.value == pytest.approx(3)


@pytest.mark.parametrize("seed", range(25))
def test_whole_favourites_on_trees(seed: int) -> None:
    """CP-SAT equals all matchings; the relaxation is at most as large, and equal if its settled y is integral."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 10))
    parent = [int(rng.integers(0, j)) for j in range(1, n)]
    pairs = [(p, j) for j, p in enumerate(parent, 1)]
    if seed % 2:
        pairs = [(n - 1 - j, n - 1 - p) for p, j in pairs]
    given = program(rng.integers(1, 10, n).tolist(), {pair: int(rng.integers(0, 10)) for pair in pairs})
    whole = integral_solution(given)
    assert whole is not None
    check(given, whole)
    assert whole.value == whole.bound == every_matching(given)
    relaxed = solution_of(given)
    assert relaxed.value <= whole.value + 1e-6
    y = favourites_of(given, relaxed).y
    if np.abs(y - np.round(y)).max() < 1e-6:
        assert relaxed.value == pytest.approx(whole.value)


@pytest.mark.parametrize("seed", [11, 14, 29])
def test_large_numbers_have_the_same_whole_favourites(seed: int) -> None:
    """Presolve called one of these infeasible, and had wrong optima of the others."""
    small = random_program(np.random.default_rng(seed), 25)
    unit = 2**30
    times = {name: getattr(small, name) * unit for name in ("length", "release", "tail", "fixed", "hidden")}
    found, large = integral_solution(small), integral_solution(replace(small, **times))
    assert found is not None
    assert large is not None
    assert (large.value, large.bound) == (found.value * unit, found.bound * unit)
    assert large.bound == large.value


def test_whole_favourites_stop_when_told() -> None:
    rng = np.random.default_rng(0)
    given = program(
        rng.integers(1, 100, 150).tolist(),
        {(i, j): int(rng.integers(1, 100)) for i in range(150) for j in range(i + 1, min(i + 12, 150))},
    )
    asked: list[int] = []

    def should_stop() -> bool:
        asked.append(1)
        return len(asked) > 4

    found = integral_solution(given, should_stop=should_stop)
    assert len(asked) > 4
    assert found is None or found.bound < Fraction(found.value)


def test_some_relaxations_are_whole_and_some_are_not() -> None:
    """A fork with one long branch is whole: the long one is the favourite. Equal branches are not."""
    long = program([1, 9, 2], {(0, 1): 4, (0, 2): 4})
    assert solution_of(long).value == pytest.approx(every_matching(long)) == 10
    equal = program([1, 9, 9], {(0, 1): 4, (0, 2): 4})
    assert (solution_of(equal).value, every_matching(equal)) == (pytest.approx(12), 14)


@pytest.mark.parametrize("seed", range(10))
def test_the_settled_optimum_does_not_depend_on_the_way_to_it(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given = random_program(np.random.default_rng(200 + seed), 12)
    found = solution_of(given)
    mine = favourites_of(given, found)
    assert longest_path(given, mine.y) <= found.value * (1 + 1e-6)
    # Other y with the same w, from the game: the same favourites.
    monkeypatch.setattr(solution, "SMALL", 0)
    monkeypatch.setattr(solution, "SLOW", 300)
    other = favourites_of(given, solution_of(given, tolerance=1e-12))
    assert (mine.child == other.child).all()
    assert (mine.parent == other.parent).all()


@pytest.mark.parametrize("seed", range(10))
def test_what_is_settled_without_the_engine_is_feasible_and_as_good(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given = random_program(np.random.default_rng(300 + seed), 14)
    found = solution_of(given)
    best = favourites_of(given, found)
    monkeypatch.setattr(favourites, "SMALL", 0)
    near = favourites_of(given, found)
    check(given, replace(found, y=near.y, value=longest_path(given, near.y)))
    assert longest_path(given, near.y) <= found.value * (1 + 1e-9)
    hidden = given.hidden * (given.out_rival | given.in_rival)
    assert (near.y * hidden).sum() <= (best.y * hidden).sum() * (1 + 1e-2) + 1e-6


def test_favourites_are_pairs() -> None:
    given = random_program(np.random.default_rng(7), 30)
    found = favourites_of(given, solution_of(given))
    assert len(found.pairs) == (found.child >= 0).sum() == (found.parent >= 0).sum() > 0
    for i, j in found.pairs.tolist():
        assert found.child[i] == j
        assert found.parent[j] == i


def test_rounding_at_other_thresholds_is_repaired() -> None:
    given = program([1, 1, 1, 1], {(0, 2): 5, (0, 3): 5, (1, 3): 5})
    y = np.array([0.4, 0.6, 0.4])
    child, parent = rounded(given, y, 0.1)
    assert (child == -1).all()
    # At 0.7 all three are candidates: the largest y first, and what is left of room goes nowhere.
    child, parent = rounded(given, y, 0.7)
    assert child.tolist() == [3, -1, -1, -1]
    assert parent.tolist() == [-1, -1, -1, 0]
    child, _ = rounded(given, np.array([0.5, 0.5, 0.5]), 0.7)
    assert child.tolist() == [2, 3, -1, -1]
    assert rounded(given, np.array([0.0, 0.9, 0.0]), 0.1)[0].tolist() == [-1] * 4  # x = 0.1 is not below 0.1


# Problems


def uniform(
    n: int, m: int, edges: list[tuple[int, int]], duration: int | list[int], delay: int, **more: object
) -> Problem:
    """Equal devices, every transfer taking as long."""
    ticks = np.broadcast_to(np.asarray(duration).reshape(-1, 1), (n, m))
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        duration=ticks,
        edges=edges,
        latency=np.full((m, m), delay),
        **more,  # type: ignore[arg-type]
    )


def test_durations_and_transfers_are_means() -> None:
    problem = build_problem(
        task_names=["a", "b"],
        device_names=["x", "y", "z"],
        duration=np.array([[3, 4, 6], [5, 0, 8]]),
        feasible=np.array([[True, True, True], [True, False, True]]),
        edges=[(0, 1), (0, 1)],
        payload=[10, 1],
        latency=np.array([[0, 1, 2], [3, 0, 4], [5, 6, 0]]),
        byte_ticks_num=np.ones((3, 3), dtype=np.int64),
        release=np.array([0, 2]),
    )
    given = program_of(problem)
    assert given.parts == 1024
    assert (given.length / given.parts).tolist() == pytest.approx([13 / 3, 6.5], abs=1e-3)
    assert (given.hidden / given.parts).tolist() == pytest.approx([13.5])  # two edges: the longer, 10 + 21 / 6
    assert (given.release / given.parts).tolist() == [0, 2]
    assert program_of(uniform(2, 3, [(0, 1)], 5, 4)).parts == 1


def test_ratios_of_the_classics() -> None:
    """Hanen and Munier: for rho = 1 and many devices SCT is within 7/3, ETF within 3 (section 2.4 of Baechi)."""
    found = ratios_of(uniform(2, 1000, [(0, 1)], 5, 5))
    assert (found.rho, found.assumption) == (1, True)
    assert found.etf == 3 - Fraction(1, 1000)
    assert found.sct_infinite == Fraction(4, 3)
    assert found.sct == Fraction(7, 3) - Fraction(4, 3000)
    assert found.m_sct == found.sct  # no limit of memory
    half = ratios_of(uniform(2, 4, [(0, 1)], 10, 5))
    rho = Fraction(1, 2)
    assert half.sct == (4 + 3 * rho) / (2 + rho) - (2 + 2 * rho) / (4 * (2 + rho))


def test_ratios_at_other_thresholds() -> None:
    """An edge that is not a favourite has x >= t: at most (k + c) / (k + t c) times as long as in the program."""
    problem = uniform(2, 10, [(0, 1)], 5, 5)
    assert ratios_of(problem, 0.1).sct_infinite == Fraction(20, 11)
    assert ratios_of(problem, 0.9) == ratios_of(problem)


def test_ratio_of_m_sct_with_limited_memory() -> None:
    """Equation 4: K / (K - 1) + (1 - K / ((K - 1) m)) beta, here with K = 8 * 100 / 400 = 2 and beta = 4/3.

    If each device has room for all tasks, memory does not count, and the other ratios hold, too.
    """
    four = np.full(4, 100)
    found = ratios_of(uniform(4, 8, [(0, 1)], 5, 5, resident=four, capacity=np.full(8, 100)))
    assert found.m_sct == 2 + (1 - Fraction(2, 8)) * Fraction(4, 3)
    assert found.sct is None
    assert found.etf is None
    tight = uniform(4, 4, [(0, 1)], 5, 5, resident=four, capacity=np.full(4, 100))  # K = 1
    assert ratios_of(tight).m_sct is None
    enough = ratios_of(uniform(4, 8, [(0, 1)], 5, 5, resident=four, capacity=np.full(8, 400)))
    assert enough == ratios_of(uniform(4, 8, [(0, 1)], 5, 5))


@pytest.mark.parametrize(
    "more",
    [
        {"contention": "port"},
        {"group": np.array([0, 0])},
        {"separation": [(0, 1)]},
        {"release": np.array([0, 1])},
        {"feasible": np.array([[True, True], [True, False]])},
    ],
    ids=lambda more: next(iter(more)),
)
def test_no_ratios_outside_the_classical_model(more: dict[str, object]) -> None:
    found = ratios_of(uniform(2, 2, [(0, 1)], 5, 5, **more))
    assert found.assumption
    assert (found.etf, found.sct, found.m_sct) == (None, None, None)


def test_rho_of_tasks_without_time() -> None:
    assert ratios_of(uniform(2, 2, [(0, 1)], [0, 5], 5)).rho is None
    assert not ratios_of(uniform(2, 2, [(0, 1)], [0, 5], 5)).assumption
    assert ratios_of(uniform(2, 2, [(0, 1)], [0, 5], 0)).rho == 0
    long = ratios_of(uniform(2, 2, [(0, 1)], 4, 6))
    assert (long.rho, long.assumption, long.etf) == (Fraction(3, 2), False, None)


@pytest.mark.parametrize("part", range(10))
def test_the_bound_is_never_above_the_optimum(part: int) -> None:
    """With groups, separations, ports, memory, release times and deadlines; with and without the heads of tasks."""
    hiding = 0
    for seed in range(60 * part, 60 * part + 60):
        problem = small_problem(np.random.default_rng(seed), Objective(), times=seed % 2 == 1)
        best = optimum(problem)
        classes = narrowed_classes(problem)
        bound, found = sct_bound(classes)
        given = certain(classes)
        bare = solution_of(replace(given, release=problem.release, tail=np.zeros_like(given.tail)))
        hiding += bool((given.hidden > 0).any())
        if best is not None:
            assert bound <= best[0][0], seed
            assert math.ceil(bare.bound) <= best[0][0], seed
        assert float(found.bound) == pytest.approx(found.value, rel=1e-6)
    assert hiding > 5


def test_whole_transfers_would_be_no_bound() -> None:
    """Four short tasks after one: with long transfers, it is best to run them one after another on one device."""
    problem = uniform(5, 2, [(0, j) for j in range(1, 5)], 2, 20)
    best = optimum(problem)
    assert best is not None
    assert best[0][0] == 10
    assert solution_of(program_of(problem)).value > 10
    assert sct_bound(narrowed_classes(problem))[0] <= 10


def test_short_siblings_are_no_rivals() -> None:
    """A child that takes no time does not shorten what the two long ones may wait for."""
    problem = uniform(4, 3, [(0, 1), (0, 2), (0, 3)], [5, 20, 20, 0], 10)
    given = certain(narrowed_classes(problem))
    assert given.hidden.tolist() == [10, 10, 0]
    assert given.out_rival.tolist() == [True, True, False]


def test_separated_tasks_always_pay() -> None:
    problem = uniform(3, 3, [(0, 1), (0, 2)], 5, 10, separation=[(0, 1)])
    given = certain(narrowed_classes(problem))
    assert given.fixed.tolist() == [10, 0]
    assert given.hidden.tolist() == [0, 0]


def test_tasks_of_a_group_wait_for_each_other() -> None:
    """Both children share the device of their parent: one waits for the other, however long a transfer takes."""
    problem = uniform(3, 3, [(0, 1), (0, 2)], [5, 7, 9], 1, group=np.zeros(3, dtype=np.int64))
    given = certain(narrowed_classes(problem))
    assert given.hidden.tolist() == [9, 7]


def ternary(depth: int, duration: int, delay: int) -> Problem:
    """A tree that forks in three, and its mirror image."""
    edges, last, count = [], [0], 1
    for _ in range(depth):
        edges += [(i, count + 3 * k + c) for k, i in enumerate(last) for c in range(3)]
        last = list(range(count, count + 3 * len(last)))
        count += len(last)
    while len(last) > 1:
        after = list(range(count, count + len(last) // 3))
        edges += [(i, after[k // 3]) for k, i in enumerate(last)]
        last, count = after, count + len(after)
    return uniform(count, 3**depth, edges, duration, delay)


def test_forks_and_joins_together_beat_the_other_bounds() -> None:
    """At each of two forks and two joins two of three branches wait; the quick bounds account for one kind only."""
    problem = ternary(2, 10, 9)
    found = {bound.name: bound.value for bound in bounds(problem, time_limit=20)}
    quick = quick_bounds(problem)[0].value
    assert found["sct-lp"] == 5 * 10 + 4 * 6  # two thirds of 9 at each
    assert quick < found["sct-lp"]


def test_only_a_makespan_is_bounded() -> None:
    problem = uniform(3, 2, [(0, 1), (0, 2)], 5, 4)
    weighted = replace(problem, objective=Objective(((Term("makespan", Fraction(1, 2)),), (Term("total_cost"),))))
    named = {bound.name: bound.value for bound in bounds(weighted, time_limit=5)}
    assert named["sct-lp"] == Fraction(sct_bound(narrowed_classes(problem))[0], 2)
    mixed = replace(problem, objective=Objective(((Term("makespan"), Term("total_cost")),)))
    assert "sct-lp" not in {bound.name for bound in bounds(mixed, time_limit=5)}


def game_after(rounds: int, stop: engine.Stop) -> tuple[Core, Game, GameState, int]:
    """The core and the game of a layered graph after some rounds, and how many were played."""
    core, _ = merged(core_of(program_of(layered_problem(40, 3, ccr=1.0, seed=3)))[0])
    game = game_of(core)
    state, played = engine.play_rounds(game.board, initial_state(game), 1, rounds, stop)
    return core, game, GameState(*state), played


def test_averages_are_a_flow_and_shares() -> None:
    core, game, state, played = game_after(50, engine.Stop())
    assert played == 50
    source, target = core.source[game.edge], game.board.target
    leaving = np.bincount(source, weights=state.mean_flow, minlength=core.n_tasks)
    coming = np.bincount(target, weights=state.mean_flow, minlength=core.n_tasks)
    assert leaving[0] == pytest.approx(1)
    assert leaving[1:-1] == pytest.approx(coming[1:-1])
    for lane, end in ((OUT, source), (IN, target)):
        total = np.bincount(end[game.kind == lane], weights=state.mean_share[game.kind == lane])
        assert total[total > 0] == pytest.approx(1)
    assert flow_bound(game, state.mean_flow) <= Fraction(longest(core, np.zeros(core.n_edges)))


def test_parts_of_a_flow_are_whole() -> None:
    core, game, state, _ = game_after(50, engine.Stop())
    parts = engine.split_flow(game.board.start, game.board.target, state.mean_flow, 1 << 52)
    leaving, coming = (np.zeros(core.n_tasks, dtype=np.int64) for _ in range(2))
    np.add.at(leaving, core.source[game.edge], parts)
    np.add.at(coming, game.board.target, parts)
    assert parts.min() >= 0
    assert leaving[0] == coming[-1] == 1 << 52
    assert (leaving[1:-1] == coming[1:-1]).all()


@pytest.mark.parametrize("seconds", [0.0, 1e-4, 1e-3, 1e-2])
def test_averages_of_a_part_of_a_round_prove_bounds(seconds: float) -> None:
    core, game, state, played = game_after(10**9, engine.Stop(seconds=seconds))
    assert played < 10**9
    best = game_after(2000, engine.Stop())[2]
    assert flow_bound(game, state.mean_flow) <= flow_bound(game, best.mean_flow) * Fraction(1001, 1000)
    y_out, y_in = shares_of(game, state.mean_share)
    y = np.minimum(y_out, y_in)
    for end, weight, rival in (
        (core.source, core.out_weight, core.out_rival),
        (core.target, core.in_weight, core.in_rival),
    ):
        assert np.bincount(end, weights=y * weight * rival).max() <= 1 + 1e-9


def test_filled_shares_are_the_best_of_one_side() -> None:
    """The longest path for them is what the linear program has if only children are rivals."""
    given = random_program(np.random.default_rng(5), 20)
    core, _ = core_of(replace(given, in_rival=np.zeros_like(given.in_rival)))
    y, value = sides_of(core)[0].filled(np.ones(core.n_edges), engine.Stop())
    assert longest(core, y) == pytest.approx(value)
    assert value == pytest.approx(reference(replace(given, in_rival=np.zeros_like(given.in_rival))))


def test_filling_stops_when_told() -> None:
    star, _ = core_of(program([1] * 20_000, {(0, j): j for j in range(1, 20_000)}))
    side = sides_of(star)[0]
    with pytest.raises(engine.StoppedError, match="stopped"):
        side.filled(np.ones(star.n_edges), engine.Stop(seconds=0.0))


def test_paths_along_edges() -> None:
    core, _ = core_of(random_program(np.random.default_rng(2), 20))
    ticks = core.fixed + core.hidden
    before, after = heads(core, ticks), tails(core, ticks)
    assert before[-1] == after[0]
    arrived = before[core.source] + core.length[core.source] + ticks
    assert [max(arrived[core.target == i], default=0) for i in range(core.n_tasks)] == before.tolist()
    left = after[core.target] + core.length[core.target] + ticks
    assert [max(left[core.source == i], default=0) for i in range(core.n_tasks)] == after.tolist()


def test_times_up_to_the_largest() -> None:
    """Sums stay within 64 bits, and bounds are bounds."""
    problem = uniform(3, 2, [(0, 1), (1, 2)], UNLIMITED // 8, UNLIMITED // 8)
    bound, _ = sct_bound(narrowed_classes(problem))
    assert 0 < bound <= 3 * (UNLIMITED // 8)
    assert solution_of(program_of(problem)).value > 0
