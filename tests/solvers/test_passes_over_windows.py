"""Windows of a schedule, passes over them and levels of coarser graphs: exact, valid, never longer, repeatable."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from constrained_problems import constrained, ignored, never, started
from placeopt_solvers._runs.validity import valid
from placeopt_solvers.search._intervals import multilevel, sweep
from placeopt_solvers.search._intervals.multilevel import Multilevel, coarser
from placeopt_solvers.search._intervals.passes import Passes
from placeopt_solvers.search._intervals.state import State
from placeopt_solvers.search._intervals.subproblem import Neighbourhood, changed, subproblem_of
from placeopt_solvers.search._intervals.sweep import Sweep

import placeopt as po
from placeopt import engine
from placeopt.generate.irregular_graphs import irregular_problem
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, makespan

MODELS = {
    "sum": {},
    "peak": {"memory_model": "peak"},
    "ports": {"contention": "port"},
    "half_duplex": {"contention": "half_duplex", "memory_model": "peak"},
}


def passes_over(problem: Problem, area: Neighbourhood, seed: int = 1, span: int | None = None) -> tuple[State, Passes]:
    state = State(problem, started(problem))
    sub = subproblem_of(state, area)
    tail = state.tail[sub.tasks] - sub.rest
    return state, Passes(sub if span is None else replace(sub, span=span), state.device[sub.tasks], tail, seed)


def window(first: int, last: int) -> Neighbourhood:
    return Neighbourhood(first, last, np.ones(last - first, dtype=np.bool_))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of a few tasks, and graphs coarsened to a few tasks."""
    monkeypatch.setattr(sweep, "LEAST", 7)
    monkeypatch.setattr(sweep, "DEPTHS", (2, 3))
    monkeypatch.setattr(multilevel, "COARSEST", 8)


@pytest.mark.parametrize(("first", "last"), [(0, 24), (0, 10), (7, 18), (15, 24)])
def test_the_makespan_that_a_pass_promises_is_kept(first: int, last: int) -> None:
    """A full evaluation of the whole schedule confirms the makespan of each pass over a window."""
    area, checked = window(first, last), 0
    for seed in range(8):
        problem = constrained(seed)
        state, passes = passes_over(problem, area, span=10**9)  # any first arrangement is better
        sub = subproblem_of(state, area)
        for _ in range(6):
            passes.run(1, 300, 0, engine.Stop())
            found = passes.best
            if found is None:
                continue
            own = np.arange(len(found.device))
            end = found.start + sub.problem.duration[own, found.device]
            assert int((end + sub.tail[own, found.device]).max()) == found.value
            assert (found.start >= sub.head[own, found.device]).all()
            after = changed(state, sub, area, found.device, found.start)
            assert valid(problem, after), seed
            assert makespan(problem, after) <= max(sub.origin + found.value + sub.rest, state.span)
            checked += 1
    assert checked > 8


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("search", [Sweep, Multilevel])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_schedules_stay_valid_and_get_shorter(search: type[Sweep] | type[Multilevel], model: dict[str, str]) -> None:
    shorter = 0
    for seed in range(4):
        problem = replace(constrained(seed), **model)
        start = started(problem)
        heard: list[Schedule] = []
        found = search(problem, start, seed, never, heard.append)
        found.run(0.05, 0)
        assert found.tried > 0
        spans = [makespan(problem, start)]
        for schedule in heard:
            report = po.verify(problem, schedule)
            assert report.feasible, report
            spans.append(makespan(problem, schedule))
        assert spans == sorted(spans, reverse=True)
        assert found.span == spans[-1]
        shorter += spans[-1] < spans[0]
    assert shorter > 0


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("solver", ["forward-backward", "multilevel"])
def test_the_same_seed_gives_the_same_schedule(solver: str) -> None:
    problem = irregular_problem(60, 4, seed=2, ccr=5.0)
    first, second = (po.solve(problem, solver, workers=1, seed=3, time_limit=0.6) for _ in range(2))
    assert first.objective < po.solve(problem, "heft").objective
    if first.repeatable and second.repeatable:
        assert first.schedule == second.schedule or np.array_equal(first.schedule.start, second.schedule.start)


@pytest.mark.usefixtures("small")
def test_windows_of_two_lanes_are_taken_together() -> None:
    problem = irregular_problem(120, 4, seed=1)
    found = Sweep(problem, started(problem), 0, never, ignored, workers=2)
    begun = found.span
    found.run(0.5, 0)
    assert found.span < begun
    assert valid(problem, found.state.schedule)


@pytest.mark.parametrize("seed", range(4))
def test_coarser_graphs_keep_rules_and_restore_schedules(seed: int) -> None:
    problem = constrained(seed)
    level = coarser(problem, None, 1e9)
    assert level is not None
    assert level.problem.n_tasks < 0.9 * problem.n_tasks
    assert level.label is not None
    sizes = np.bincount(level.label)
    assert sizes.max() == 2
    schedule = po.solve(level.problem, "heft").schedule
    if schedule is not None:
        assert po.verify(problem, level.restore(schedule)).feasible
    placed = started(problem)
    kept = coarser(problem, placed.device, 1e9)
    if kept is not None:
        projected = kept.project(placed)
        assert projected is not None
        assert np.array_equal(kept.restore(projected).device, placed.device)


def test_a_bound_or_a_stop_ends_the_search() -> None:
    problem = irregular_problem(40, 3)
    start = started(problem)
    for stopped, bound in ((lambda: True, 0), (never, makespan(problem, start))):
        for search in (Sweep, Multilevel):
            found = search(problem, start, 0, stopped, ignored)
            found.run(60.0, bound)
            assert found.tried == 0
