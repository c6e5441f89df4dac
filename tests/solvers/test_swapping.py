"""Memory tiers in solvers: exact ones against each other, heuristics against the optimum, passes and starts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from placeopt_solvers._runs.time_scaling import coarsened
from placeopt_solvers._runs.validity import valid
from placeopt_solvers.exact._cp_sat.identical_devices import pools
from placeopt_solvers.exact._forks.shape import fork_of

import placeopt as po
from placeopt.model.building import with_changes
from placeopt.model.memory import swap_times
from placeopt.model.problem import UNLIMITED, Contention
from placeopt.submodular.placement.settings import parse_tiers


def random_problem(seed: int, contention: Contention = "none") -> po.Problem:
    """A few tasks on devices with up to three tiers of a few bytes, rounded in every way."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(3, 6 if contention == "none" else 5)), int(rng.integers(2, 4))
    edges = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.3]
    further = []
    for count in rng.integers(0, 4, m).tolist():
        rates = sorted(rng.integers(1, 5, (count, 2)).tolist(), key=lambda rate: rate[0] / rate[1])
        further.append([(int(rng.integers(1, 6)), num, den) for num, den in rates])
        if count and rng.random() < 0.5:
            further[-1][-1] = (UNLIMITED, *further[-1][-1][1:])
    rest: dict[str, Any] = {}
    if seed % 3 == 0:
        rest["deadline"] = rng.integers(12, 60, n)
    if seed % 3 == 1:
        rest |= {"release": rng.integers(0, 9, n), "group": rng.integers(0, n, n)}
    return po.build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        duration=rng.integers(0, 9, (n, m)),
        edges=edges,
        payload=rng.integers(0, 6, len(edges)),
        latency=rng.integers(0, 4, (m, m)),
        byte_ticks_num=rng.integers(0, 2, (m, m)),
        resident=rng.integers(0, 6, n),
        scratch=2 * rng.integers(0, 2, n),
        tiers=po.build_tiers(rng.integers(2, 8, m), further),
        contention=contention,
        **rest,
    )


SEEDS = (0, 1, 2, 3, 4, 5, 8, 11)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("contention", ["none", "port"])
def test_the_exact_solvers_agree(seed: int, contention: Contention) -> None:
    problem = random_problem(seed, contention)
    oracle = po.solve(problem, "brute-force", passes=[])
    for passes in (None, []):
        found = po.solve(problem, "cp-sat", workers=1, passes=passes)
        assert (found.termination, found.objective) == (oracle.termination, oracle.objective)
        assert found.schedule is None or found.feasible
        assert found.bound is None or found.bound == oracle.objective
    assert oracle.objective is None or all(each.value <= oracle.objective for each in po.bounds(problem))


def test_the_cases_have_swapping_and_infeasible_ones() -> None:
    found = [po.solve(random_problem(seed), "brute-force", passes=[]) for seed in SEEDS]
    swaps = [max(use.swap for use in each.devices) for each in found if each.schedule is not None]
    assert len(swaps) < len(found)
    assert sum(swap > 0 for swap in swaps) > 2


@pytest.mark.parametrize("solver", ["heft", "etf", "min-min", "m-sct", "local-search", "tabu"])
def test_heuristics_are_never_better_than_the_optimum(solver: str) -> None:
    settings = {"rounds": 200} if solver in ("local-search", "tabu") else {}
    for seed in (2, 5, 8):
        problem = random_problem(seed)
        found = po.solve(problem, solver, workers=1, **settings)
        least = po.solve(problem, "cp-sat", workers=1).objective
        assert found.feasible
        assert found.objective is not None
        assert least is not None
        assert found.objective >= least


def chain(n: int, ram: int) -> po.Problem:
    """A chain of tasks of a byte and a tick on two alike devices; a byte beyond the first tier takes 5 ticks."""
    return po.build_problem(
        task_names=[f"t{i}" for i in range(n)], device_names=["a", "b"], duration=np.ones((n, 2)), resident=np.ones(n),
        edges=[(i, i + 1) for i in range(n - 1)], tiers=po.build_tiers([ram, ram], [[(UNLIMITED, 5, 1)]] * 2),
    )  # fmt: skip


@pytest.mark.parametrize("solver", ["heft", "etf", "m-etf", "peft", "submodular-g"])
def test_heuristics_use_the_first_tier_of_all_devices_before_they_swap(solver: str) -> None:
    found = po.solve(chain(8, 4), solver)
    assert (found.objective, [use.swap for use in found.devices]) == (8, [0, 0])


def test_the_bound_from_swap_times() -> None:
    # 8 of 12 bytes are in the first tiers; of the other 4 each device takes 2 or more, for 10 ticks, before a task.
    found = {bound.name: bound for bound in po.bounds(chain(12, 4))}
    assert found["swapping"].value == 11
    assert found["swapping"].explanation.startswith("all bytes fit only if some device swaps for at least 10 ns")
    assert "swapping" not in {bound.name for bound in po.bounds(with_changes(chain(12, 4), tiers=None))}
    assert "swapping" not in {bound.name for bound in po.bounds(chain(8, 4))}
    # Both devices have a byte; the third byte takes 5 ticks, and at least t2 with 5 ticks comes after them.
    uneven = with_changes(chain(3, 1), duration=[[7, 7], [6, 6], [5, 5]])
    assert {bound.name: bound.value for bound in po.bounds(uneven)}["swapping"] == 5 + 5


def test_a_device_swaps_while_it_waits_for_data() -> None:
    # Links cost nothing: b swaps 1 byte while a runs 5 tasks.
    assert po.solve(chain(11, 5), "cp-sat", workers=1).objective == 11


def test_passes_and_scaling_leave_swap_times_alone() -> None:
    problem = random_problem(2)
    assert coarsened(problem).unit == 1
    plain = with_changes(chain(2, 1), edges=[], payload=[], shared=[], duration=[[3, 3], [3, 3]])
    assert pools(plain, True).problem is plain
    assert fork_of(plain) is None
    # A task of no duration and no bytes still waits until its device has swapped.
    waiting = with_changes(chain(2, 1), duration=[[0, 0], [3, 3]], resident=[0, 2], group=[0, 0])
    for passes in (None, []):
        found = po.solve(waiting, "cp-sat", workers=1, passes=passes)
        assert (found.feasible, found.objective) == (True, 8)


def test_a_schedule_that_does_not_wait_is_not_valid() -> None:
    problem = chain(3, 1)
    assert swap_times(problem, np.zeros(3, dtype=np.int64)).tolist() == [10, 0]
    assert valid(problem, po.Schedule([0, 0, 0], [10, 11, 12]))
    assert not valid(problem, po.Schedule([0, 0, 0], [9, 11, 12]))


def test_the_submodular_model_has_the_tiers_of_the_problem_by_default() -> None:
    end, ticks = parse_tiers(chain(3, 1), "")
    assert (end.tolist(), ticks.tolist()) == ([[1, UNLIMITED]] * 2, [[0.0, 5.0]] * 2)
    end, _ = parse_tiers(chain(3, 1), "2 B; 4 B at 1 B/s")
    assert end.tolist() == [[2, UNLIMITED]] * 2
