"""Bounds that hold for a changed problem: against the optimum of both, and which changes leave no bound."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from brute_force import optimum, small_problem

import placeopt as po
from placeopt.bounding.quick.earlier import HARDER, MEMORY, earlier_bound
from placeopt.model.building import with_changes
from placeopt.model.problem import UNLIMITED, Problem

MAKESPAN = po.Objective(((po.Term("makespan"),),))


def changed(problem: Problem, rng: np.random.Generator) -> Problem | None:
    """The problem with one to three kinds of amounts changed, mostly to harder ones; None if they contradict."""
    names = [name for name in HARDER if name not in ("due", "due_weight")]
    given: dict[str, Any] = {}
    for name in rng.choice(names, int(rng.integers(1, 4)), replace=False):
        old = getattr(problem, name)
        if name == "feasible":
            given[name] = old & (rng.random(old.shape) < 0.8)
            continue
        step = rng.integers(1, 4, old.shape) * np.where(rng.random(old.shape) < 0.85, HARDER[name], -HARDER[name])
        new = np.where((rng.random(old.shape) < 0.4) & (old < UNLIMITED), np.maximum(old + step, 0), old)
        given[name] = np.where(np.eye(len(new), dtype=bool), 0, new) if name == "latency" else new
    feasible = given.get("feasible", problem.feasible)
    given |= {name: np.where(feasible, given.get(name, getattr(problem, name)), 0) for name in ("duration", "price")}
    try:
        return with_changes(problem, **given)
    except po.UsageError:  # another payload of an output for each consumer
        return None


@pytest.mark.parametrize("part", range(4))
def test_no_bound_exceeds_the_optimum(part: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(part * 200, part * 200 + 200):
        rng = np.random.default_rng(seed)
        problem = small_problem(rng, MAKESPAN if seed % 2 else None)
        new, best = changed(problem, rng), optimum(problem)
        if new is None or best is None or (bound := earlier_bound(problem, best[0][0], "load", new)) is None:
            continue
        least = optimum(new)
        if least is not None:
            assert bound.value <= least[0][0], f"seed {seed}"
            kind = "became faster" if "became faster" in bound.explanation else "harder"
            counts.update([kind, f"{kind}, tight"] if bound.value == least[0][0] else [kind])
    assert min(counts["harder, tight"], counts["became faster"]) >= 2


def problem_of(**changes: Any) -> Problem:
    spec: dict[str, Any] = {
        "resolution": "1 s", "devices": {"a": {"memory": 9}, "b": {"memory": 9}},
        "links": {"default": {"bandwidth": "1 B/s", "latency": "1 s"}},
        "tasks": {"x": {"time": 3, "output": 2}, "y": {"time": {"a": 4, "b": 6}, "after": "x", "memory": 3}},
        **changes,
    }  # fmt: skip
    return po.compile({"placeopt": 1, "units": {"time": "s", "memory": "B"}, **spec})


class TestWhichBoundsFollow:
    def test_harder_amounts_keep_the_bound(self) -> None:
        old = problem_of()
        for name in ("release", "payload", "latency", "duration", "resident"):
            amount = getattr(old, name)
            more = np.where(amount > 0, amount + 1, amount) if amount.any() else amount + 1
            assert earlier_bound(old, 7, "load", with_changes(old, **{name: more})).value == 7, name  # type: ignore[union-attr]
        less = with_changes(old, capacity=old.capacity - 1, feasible=np.array([[True, True], [True, False]]),
                            duration=np.array([[3, 3], [4, 0]]))  # fmt: skip
        assert earlier_bound(old, 7, "load", less) is not None

    def test_faster_tasks_lower_it_by_what_they_gain(self) -> None:
        old = problem_of()
        bound = earlier_bound(old, 7, "load", with_changes(old, duration=np.array([[3, 2], [2, 3]])))
        assert bound is not None
        assert bound.value == 7 - 1 - 3
        assert "less 4 ticks" in bound.explanation

    @pytest.mark.parametrize("name", ["release", "payload", "latency", "resident", "output", "scratch"])
    def test_easier_amounts_leave_none(self, name: str) -> None:
        old = problem_of()
        amount = getattr(old, name)
        more = np.where(np.eye(2, dtype=bool), 0, amount + 1) if amount.ndim == 2 else amount + 1
        assert earlier_bound(with_changes(old, **{name: more}), 7, "load", old) is None

    def test_faster_links_leave_none(self) -> None:
        old = problem_of()
        faster = problem_of(links={"default": {"bandwidth": "2 B/s", "latency": "1 s"}})
        assert earlier_bound(old, 7, "load", faster) is None
        assert earlier_bound(faster, 7, "load", old) is not None

    @pytest.mark.parametrize(
        "changes",
        [
            {"contention": "port"},
            {"resolution": "500 ms"},
            {"objective": "max_load"},
            {"memory_model": "peak"},
            {"devices": {"a": {}, "b": {}, "c": {}}},
            {"devices": {"a": {"memory": 9, "unavailable": [{"from": 1, "to": 2}]}, "b": {"memory": 9}}},
        ],
        ids=str,
    )
    def test_other_rules_leave_none(self, changes: dict[str, Any]) -> None:
        old, new = problem_of(), problem_of(**changes)
        assert earlier_bound(old, 7, "load", new) is None
        assert earlier_bound(new, 7, "load", old) is None

    @pytest.mark.parametrize("changes", [{"contention": "port"}, {"objective": "max_load"}], ids=str)
    def test_faster_tasks_under_rules_leave_none(self, changes: dict[str, Any]) -> None:
        old = problem_of(**changes)
        assert earlier_bound(old, 7, "load", with_changes(old, duration=old.duration - 1)) is None
        assert earlier_bound(old, 7, "load", with_changes(old, duration=old.duration + 1)) is not None

    def test_a_deadline_leaves_none_for_faster_tasks(self) -> None:
        old = problem_of()
        late = with_changes(old, deadline=np.array([9, 9]))
        assert earlier_bound(old, 7, "load", late) is not None
        assert earlier_bound(old, 7, "load", with_changes(late, duration=late.duration - 1)) is None

    def test_memory_must_stay_where_it_has_tiers(self) -> None:
        tiers = {"memory": 4, "tiers": [{"memory": 9, "bandwidth": "1 B/s"}]}
        old = problem_of(devices={"a": tiers, "b": tiers})
        assert set(MEMORY) < set(HARDER)
        assert earlier_bound(old, 7, "load", with_changes(old, resident=old.resident + 1)) is None
        assert earlier_bound(old, 7, "load", with_changes(old, release=old.release + 1)) is not None


def late(result: po.Result) -> po.Schedule:
    """Both tasks of `problem_of` on b."""
    assert result.schedule is not None
    return replace(result.schedule, device=np.array([1, 1]), start=np.array([0, 3]))


class TestSolvingAgain:
    def test_no_solver_runs_if_the_bound_is_met(self) -> None:
        first = po.solve(problem_of(), "cp-sat", workers=1)
        slower = with_changes(first.problem, duration=first.problem.duration + np.array([[0, 0], [0, 5]]))
        again = po.solve(slower, "cp-sat", initial=first, workers=1)
        assert (again.termination, again.values) == (first.termination, first.values)
        assert "cp-sat was not needed: the bound of the problem before it was changed proves" in again.message
        assert not again.stats
        same = po.solve(first.problem, "annealing", initial=first, workers=1)
        assert same.bound_source == first.bound_source
        assert "the bound of an earlier result proves that its schedule is good enough" in same.message

    def test_names_of_bounds_do_not_grow(self) -> None:
        old = problem_of()
        first = earlier_bound(old, 7, "load", with_changes(old, release=old.release + 1))
        assert first is not None
        assert first.name == "load before the change"
        again = earlier_bound(old, 7, first.name, with_changes(old, release=old.release + 2))
        assert again is not None
        assert again.name == first.name
        same = earlier_bound(old, 7, "load", problem_of())
        assert same is not None
        assert same.name == "load"

    def test_a_gap_limit_is_enough(self) -> None:
        first = po.solve(problem_of(), "cp-sat", workers=1)
        faster = with_changes(first.problem, duration=np.array([[3, 3], [3, 6]]))
        assert first.values == (7,)
        again = po.solve(faster, "annealing", initial=replace(first, schedule=late(first)), gap_limit=0.5, workers=1)
        assert again.values == (9,)
        assert again.message.startswith("annealing was not needed: the bound of the problem before it was changed")

    def test_it_counts_beside_other_bounds(self) -> None:
        first = po.solve(problem_of(), "cp-sat", workers=1)
        slower = with_changes(first.problem, duration=first.problem.duration + 1)
        again = po.solve(slower, "heft", initial=first)
        assert again.bound is not None
        assert first.bound is not None
        assert again.bound >= first.bound

    def test_other_tasks_are_an_error(self) -> None:
        first = po.solve(problem_of(), "heft")
        with pytest.raises(po.UsageError, match="the initial schedule does not fit the problem"):
            po.solve(problem_of(tasks={"x": {"time": 1}}), "annealing", initial=first, time_limit=0.1)
