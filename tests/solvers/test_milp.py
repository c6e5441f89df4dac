"""The mixed-integer program: brute force, cp-sat, hints, rounding, bounds, refusals, limits, progress."""

from __future__ import annotations

import json
import math
import os
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brute_force import optimum, small_problem
from placeopt_solvers._runs.exact_run import TooLargeError
from placeopt_solvers._runs.linear import Linear, total
from placeopt_solvers._runs.validity import valid
from placeopt_solvers.exact._milp import run as milp_run
from placeopt_solvers.exact._milp.linear import Program
from placeopt_solvers.exact._milp.model import GAP, Model, model_size, rounded
from placeopt_solvers.exact._milp.run import proved
from placeopt_solvers.exact._milp.settings import MilpSettings
from placeopt_solvers.exact._milp.timing import successors, times_of
from placeopt_solvers.exact.milp import Milp

import placeopt as po
from placeopt.bounding.engines.mathopt import Engine, Outcome, mathopt_model, run_glop
from placeopt.engine import StoppedError
from placeopt.errors import InternalError
from placeopt.model.building import build_problem
from placeopt.model.memory import used_memory
from placeopt.model.problem import UNLIMITED, Contention, MemoryModel, Objective, Problem, Term
from placeopt.model.schedule import Schedule, arrivals, durations
from placeopt.protocol import Answer, Options, Progress, Termination
from placeopt.verifier import verify

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("PLACEOPT_DATA", ROOT.parent / "shared" / "data"))
ENGINES: tuple[Engine, ...] = ("highs", "scip")


def solve(problem: Problem, *, seed: int = 0, time_limit: float | None = 60, **settings: Any) -> Answer:
    """The answer of milp without the pipeline and without a start."""
    options = Options(time_limit=time_limit, seed=seed, workers=1)
    return Milp().solve(problem, options, MilpSettings(**{"hint": False, **settings}))


def layered(n: int, m: int, seed: int, **rest: Any) -> Problem:
    rng = np.random.default_rng(seed)
    edges = [(a, b) for b in range(n) for a in range(max(0, b - 8), b) if rng.random() < 0.25]
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        duration=rng.integers(1, 20, (n, m)),
        edges=edges,
        payload=rng.integers(0, 20, len(edges)),
        byte_ticks_num=np.ones((m, m), dtype=np.int64),
        **rest,
    )


def model_of(problem: Problem, incumbent: int | Fraction | None = None, *, symmetry: bool = True) -> Model:
    allowed = problem.group_feasible()
    return Model(problem, allowed, times_of(problem, allowed, successors(problem), incumbent), symmetry, lambda: False)


# The optimum


def check_optimum(problem: Problem, answer: Answer) -> None:
    best = optimum(problem)
    if best is None:
        assert answer.termination is Termination.INFEASIBLE
        return
    assert answer.termination is Termination.OPTIMAL, answer.message
    assert answer.bound == best[0][0]
    assert answer.schedule is not None
    report = verify(problem, answer.schedule)
    assert report.feasible
    assert report.objective == best[0]


@pytest.mark.parametrize("seed", range(100))
def test_agrees_with_brute_force(seed: int) -> None:
    """Every constraint of the spec; benchmarks/agreement.py runs a thousand."""
    problem = small_problem(np.random.default_rng(7000 + seed), times=seed % 3 > 0)
    check_optimum(problem, solve(problem, seed=seed, engine=ENGINES[seed % 2]))


@pytest.mark.parametrize("seed", range(40))
def test_memory_and_ports_that_decide(seed: int) -> None:
    """The makespan where the devices have a byte less than the best schedule needs, and ports are narrow."""
    rng = np.random.default_rng(7500 + seed)
    problem = small_problem(rng, Objective())
    while problem.n_tasks != 4 or problem.n_devices < 2 or problem.n_edges < 3:
        problem = small_problem(rng, Objective())
    contention: Contention = "port" if seed % 3 else "none"
    unlimited = np.full(problem.n_devices, UNLIMITED)
    problem = replace(problem, contention=contention, memory_model="peak", capacity=unlimited)
    best = optimum(problem)
    if best is not None:
        room = max(int(used_memory(problem, best[1]).max()) - 1, 0)
        problem = replace(problem, capacity=np.full(problem.n_devices, room))
    check_optimum(problem, solve(problem, seed=seed, engine=ENGINES[seed % 2]))


def two_transfers(homes: list[int], **rest: Any) -> Problem:
    """a sends to c and b to d, 4 ticks each way; every task takes a tick on its one device."""
    allowed = np.array(homes)[:, None] == np.arange(3)
    return build_problem(
        task_names=list("abcd"),
        device_names=list("xyz"),
        duration=np.ones((4, 3), dtype=np.int64),
        edges=[(0, 2), (1, 3)],
        latency=np.full((3, 3), 4),
        feasible=allowed,
        **{"contention": "port", **rest},
    )


def test_a_device_sends_one_transfer_at_a_time() -> None:
    """1 + 4 + 4 + 1: the second transfer waits for the first; without ports 2 + 4 + 1."""
    assert solve(two_transfers([0, 0, 1, 2])).bound == 10
    assert solve(two_transfers([0, 0, 1, 2], contention="none")).bound == 7


def test_a_device_receives_one_transfer_at_a_time() -> None:
    """1 + 4 + 4 + 1 again; without ports both arrive at 5."""
    assert solve(two_transfers([0, 1, 2, 2])).bound == 10
    assert solve(two_transfers([0, 1, 2, 2], contention="none")).bound == 7


def test_a_transfer_waits_for_its_producer() -> None:
    """a ends at 3, so the transfer of b goes first; unless c must end by 8, and then d ends at 12."""
    for deadline, least in ((10, 10), (8, 12)):
        due = np.array([UNLIMITED, UNLIMITED, deadline, UNLIMITED])
        assert solve(two_transfers([0, 0, 1, 2], release=np.array([2, 0, 0, 0]), deadline=due)).bound == least
    due[2] = 7
    late = two_transfers([0, 0, 1, 2], release=np.array([2, 0, 0, 0]), deadline=due)
    assert solve(late).termination is Termination.INFEASIBLE


def test_a_shared_output_sent_twice_does_not_order_what_its_consumers_send() -> None:
    """b has a's output at 3 and sends at 4; a's other transfer may go before or after that."""
    problem = build_problem(
        task_names=list("abc"),
        device_names=list("xyz"),
        duration=np.array([[1, 9, 9], [9, 1, 9], [9, 9, 1]]),
        edges=[(0, 1), (0, 2), (1, 2)],
        payload=[2, 2, 5],
        shared=[True, True, False],
        byte_ticks_num=np.ones((3, 3), dtype=np.int64),
        contention="port",
    )
    check_optimum(problem, solve(problem))


@pytest.mark.parametrize("contention", ["none", "port"])
def test_an_output_is_held_until_its_transfer_arrives(contention: Contention) -> None:
    """a's 3 bytes are on their way until tick 5, so b with its own 3 starts then: 5 + 1."""
    problem = build_problem(
        task_names=list("abc"),
        device_names=list("xy"),
        duration=np.ones((3, 2), dtype=np.int64),
        edges=[(0, 2)],
        payload=[1],
        latency=np.full((2, 2), 3),
        byte_ticks_num=np.ones((2, 2), dtype=np.int64),
        output=np.array([3, 3, 0]),
        capacity=np.array([5, 5]),
        feasible=np.array([[1, 0], [1, 0], [0, 1]], dtype=np.bool_),
        contention=contention,
        memory_model="peak",
    )
    late = replace(problem, release=np.array([0, 1, 0]), deadline=np.array([1, UNLIMITED, UNLIMITED]))
    check_optimum(late, solve(late))
    assert solve(late).bound == 6
    assert solve(replace(late, deadline=np.array([1, 5, UNLIMITED]))).termination is Termination.INFEASIBLE


@pytest.mark.parametrize(("deadline", "least"), [(10, 10), (9, 13)])
def test_an_output_is_held_while_its_transfer_waits(deadline: int, least: int) -> None:
    """b's transfer goes first, 1 to 5, as d must end by 7; a releases 3 bytes at 9. Then e fits, or before a."""
    problem = build_problem(
        task_names=list("abcde"),
        device_names=list("xy"),
        duration=np.ones((5, 2), dtype=np.int64),
        edges=[(0, 2), (1, 3)],
        latency=np.full((2, 2), 4),
        output=np.array([3, 0, 0, 0, 3]),
        capacity=np.array([5, 5]),
        feasible=np.array([[1, 0], [1, 0], [0, 1], [0, 1], [1, 0]], dtype=np.bool_),
        release=np.array([0, 0, 0, 0, 6]),
        deadline=np.array([UNLIMITED, UNLIMITED, UNLIMITED, 7, deadline]),
        contention="port",
        memory_model="peak",
    )
    assert solve(problem).bound == least


def test_the_second_level_keeps_the_first() -> None:
    """d0 is faster and needs more energy: least makespan first, then the least energy with it."""
    levels = tuple((Term(metric),) for metric in ("makespan", "energy"))
    problem = build_problem(
        task_names=["a", "b"],
        device_names=["x", "y"],
        duration=np.array([[2, 6], [2, 3]]),
        power_num=np.array([9, 1]),
        objective=Objective(levels),
    )
    answer = solve(problem)
    assert answer.termination is Termination.OPTIMAL
    assert answer.schedule is not None
    assert verify(problem, answer.schedule).objective == (3, 21)


@pytest.mark.parametrize("contention", ["none", "port"])
@pytest.mark.parametrize("memory_model", ["sum", "peak"])
@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_cp_sat(seed: int, memory_model: MemoryModel, contention: Contention) -> None:
    """On problems too large for brute force, and without symmetry breaking on half of them."""
    rng = np.random.default_rng(seed)
    memory = {"resident": rng.integers(0, 5, 6), "output": rng.integers(0, 5, 6), "scratch": rng.integers(0, 5, 6)}
    models: dict[str, Any] = {"memory_model": memory_model, "contention": contention, "capacity": np.full(2, 18)}
    problem = layered(6, 2, seed, **memory, **models, release=rng.integers(0, 9, 6))
    if seed % 2:
        column = np.repeat(problem.duration[:, :1], 2, axis=1)
        problem = replace(problem, duration=column, device_class=np.zeros(2, dtype=np.int64))
    ours = solve(problem, symmetry=seed < 2)
    theirs = po.solve(problem, "cp-sat", workers=1, time_limit=60)
    assert ours.termination is theirs.termination
    assert ours.termination in (Termination.OPTIMAL, Termination.INFEASIBLE)
    assert ours.bound == theirs.objective


@pytest.mark.skipif(not (DATA / "optimal" / "p2-p4.jsonl").exists(), reason=f"no graphs with proven optima in {DATA}")
@pytest.mark.parametrize("engine", ENGINES)
def test_published_optima_of_up_to_seven_tasks_are_proved(engine: Engine) -> None:
    graphs = [json.loads(line) for line in (DATA / "optimal" / "p2-p4.jsonl").read_text().splitlines()]
    small = [graph for graph in graphs if len(graph["weights"]) <= 7]
    assert small
    for graph in small:
        n, m = len(graph["weights"]), graph["processors"]
        problem = build_problem(
            task_names=[f"t{i}" for i in range(n)],
            device_names=[f"p{d}" for d in range(m)],
            duration=np.repeat(np.array(graph["weights"])[:, None], m, axis=1),
            edges=[(a, b) for a, b, _ in graph["edges"]],
            payload=[c for _, _, c in graph["edges"]],
            byte_ticks_num=np.ones((m, m), dtype=np.int64),
        )
        result = po.solve(problem, "milp", workers=1, time_limit=60, engine=engine)
        assert (result.termination, result.objective) == (Termination.OPTIMAL, graph["optimum"]), graph["name"]


def test_tasks_without_duration_that_start_together_all_hold_their_outputs() -> None:
    """Three of them at one tick, each with 2 bytes until a consumer has run: 6 bytes at once, on any device."""
    problem = build_problem(
        task_names=list("abcd"),
        device_names=["x"],
        duration=np.array([[0], [0], [0], [5]]),
        edges=[(0, 3), (1, 3), (2, 3)],
        output=np.array([2, 2, 2, 0]),
        capacity=np.array([6]),
        memory_model="peak",
    )
    assert solve(problem).bound == 5
    assert solve(replace(problem, capacity=np.array([5]))).termination is Termination.INFEASIBLE


def test_without_a_device_nothing_runs() -> None:
    problem = build_problem(task_names=["a"], device_names=[], duration=np.empty((1, 0), dtype=np.int64))
    assert solve(problem).termination is Termination.INFEASIBLE


def test_deadlines_that_leave_no_window_are_infeasible() -> None:
    late = layered(4, 2, 0, release=np.full(4, 10), deadline=np.array([UNLIMITED, 10, UNLIMITED, UNLIMITED]))
    assert solve(late).termination is Termination.INFEASIBLE


@pytest.mark.parametrize("second", [10**3, 10**9, 2**40])
def test_the_length_of_a_tick_makes_no_difference(second: int) -> None:
    """All times are counted in their greatest common divisor."""
    plain = layered(5, 2, 3)
    problem = replace(plain, duration=plain.duration * second, byte_ticks_num=plain.byte_ticks_num * second)
    least, fine = solve(plain).bound, solve(problem)
    assert least is not None
    assert (fine.termination, fine.bound) == (Termination.OPTIMAL, least * second)


# The model


def holds(program: Program, values: list[float]) -> bool:
    """Whether every row holds, in exact arithmetic."""
    exact = [Fraction(value) for value in values]
    for row in program.rows:
        left = sum(a * exact[c] for c, a in zip(row.columns.tolist(), row.coefficients.tolist(), strict=True))
        if left < row.low or (row.equation and left > row.low):
            return False
    return True


@pytest.mark.parametrize("seed", range(60))
def test_the_best_schedule_is_a_solution_with_its_value(seed: int) -> None:
    """Each column has a value in any schedule, so horizon, windows, big M and symmetry cut no optimum off."""
    problem = small_problem(np.random.default_rng(8000 + seed), times=seed % 2 > 0)
    best = optimum(problem)
    if best is None:
        return
    values, schedule = best
    model = model_of(problem, values[0])
    hint = model.hint(schedule)
    assert hint is not None
    assert holds(model.program, hint)
    assert [level.value(Fraction(level.expression.at(hint))) for level in model.levels] == list(values)
    again = model.schedule(hint)
    assert valid(problem, again)
    assert verify(problem, again).objective == values


@pytest.mark.parametrize("seed", range(30))
def test_the_windows_hold_the_best_schedule(seed: int) -> None:
    problem = small_problem(np.random.default_rng(9000 + seed), times=True)
    best = optimum(problem)
    if best is None:
        return
    times = times_of(problem, problem.group_feasible(), successors(problem), None)
    schedule = best[1]
    end = schedule.start + durations(problem, schedule.device)
    assert (np.array(times.earliest) * times.unit <= schedule.start).all()
    if "makespan" in problem.objective.metrics:
        assert end.max() <= times.horizon * times.unit
        assert (end <= np.array(times.latest) * times.unit).all()
        assert arrivals(problem, schedule).max(initial=0) <= times.horizon * times.unit


def test_expressions_add_up() -> None:
    a, b = Linear({0: 2}), Linear({1: 3}, 4)
    both = 5 - 2 * (a + b - 1)
    assert (dict(both.terms), both.constant) == ({0: -4, 1: -6}, -1)
    assert both.at([1.0, 0.5]) == -8.0
    assert dict(total((a, -1 * a, 7)).terms) == {}


def test_building_stops_when_the_time_is_up() -> None:
    problem = layered(30, 3, 0)
    allowed = problem.group_feasible()
    with pytest.raises(StoppedError):
        Model(problem, allowed, times_of(problem, allowed, successors(problem), None), True, lambda: True)


@pytest.mark.parametrize("seed", range(10))
def test_rounding_keeps_every_difference(seed: int) -> None:
    """Differences that hold up to 1e-6 hold exactly afterwards, and numbers that are whole up to that do not change."""
    rng = np.random.default_rng(seed)
    whole = rng.integers(0, 50, 30)
    parts = np.append(rng.random(7), 0.5)
    exact = whole + np.where(rng.random(30) < 0.5, 0, parts[rng.integers(0, 8, 30)])
    noisy = exact + rng.uniform(-1e-6, 1e-6, 30)
    found = np.array(rounded(noisy.tolist()))
    gap = np.floor(exact[:, None] - exact[None, :] + 1e-9)
    assert (found[:, None] - found[None, :] >= gap).all()
    assert (np.abs(found - exact) < 1).all()
    assert (found[exact == whole] == whole[exact == whole]).all()
    assert GAP > 2e-6


def test_rounding_goes_down_where_it_can() -> None:
    assert rounded([0.0, 2.4, 2.6, 4.9999999]) == [0, 2, 2, 5]
    assert rounded([0.0, 0.9995, 2.4]) == [0, 1, 2]


# Bounds


def test_multipliers_of_the_wrong_sign_prove_nothing() -> None:
    """x <= 4, the least x is 0: -1 times the row would give 4."""
    program = Program(lambda: False)
    x = program.column(0, 10, lambda _: 0)
    program.at_least(4, x)
    for expression, multiplier, bound in ((x, -1.0, 0), (-1 * x, 1.0, -4), (-1 * x, math.nan, -10)):
        program.set_objective(expression)
        assert program.safe_dual_bound([multiplier]) == bound


@pytest.mark.parametrize("seed", range(15))
def test_the_bound_of_the_relaxation_holds_for_any_duals(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = small_problem(rng, times=seed % 2 > 0)
    best = optimum(problem)
    if best is None:
        return
    model = model_of(problem)
    level, program = model.levels[0], model.program
    program.set_objective(level.expression)
    for spread in (0.0, 0.1, 10.0):
        duals = (spread * rng.standard_normal(len(program.rows))).tolist()
        assert level.value(program.safe_dual_bound(duals)) <= best[0][0]
    found = run_glop(mathopt_model(program, relaxed=True), seconds=60, should_stop=lambda: False)
    assert found.duals is not None
    assert found.bound is not None
    bound = program.safe_dual_bound(found.duals)
    assert level.value(bound) <= best[0][0]
    assert float(bound) == pytest.approx(found.bound, rel=1e-6, abs=1e-6)


def test_only_the_relaxation() -> None:
    problem = layered(9, 3, 1)
    result = po.solve(problem, "milp", relaxation=True)
    assert result.termination is Termination.COMPLETED
    assert result.feasible
    answer = solve(problem, relaxation=True)
    assert (answer.termination, answer.schedule) == (Termination.COMPLETED, None)
    assert answer.bound is not None
    assert answer.bound == math.ceil(answer.stats["lp_bound"])
    assert answer.bound <= solve(problem).bound  # type: ignore[operator]


@pytest.mark.parametrize("reported", [0.0, 7.0, 6.2, 6.9999999, 1e6 - 1e-6])
def test_a_reported_bound_is_rounded_up_but_never_over(reported: float) -> None:
    assert reported - 1 < proved(reported) <= math.ceil(reported)
    assert proved(7.0 - 1e-6) == 7


def test_a_bound_above_a_schedule_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = layered(6, 2, 0)
    monkeypatch.setattr(milp_run, "run_retried", lambda *_, **__: Outcome("optimal", bound=1e6))
    with pytest.raises(InternalError, match=r"highs proves 1000000 for level 1, where a schedule has \d+"):
        solve(problem, hint=True)


def test_infeasible_is_an_internal_error_where_there_is_a_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(milp_run, "run_retried", lambda *_, **__: Outcome("infeasible"))
    with pytest.raises(InternalError, match="scip finds no solution of level 1, although a schedule is known"):
        solve(layered(6, 2, 0), hint=True, engine="scip")


def test_an_engine_that_fails_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(milp_run, "run_retried", lambda *_, **__: Outcome("failed", message="numerical trouble"))
    problem = layered(6, 2, 0)
    for hint, termination in ((True, Termination.COMPLETED), (False, Termination.FAILED)):
        answer = solve(problem, hint=hint)
        assert answer.termination is termination
        assert answer.message == "highs ended without a proof: numerical trouble"


# Refusals


def test_a_program_too_large_is_refused_with_the_best_start() -> None:
    result = po.solve(layered(50, 3, 8), "milp", max_size=100)
    assert result.termination is Termination.COMPLETED
    assert result.feasible
    assert re.match(r"too large for a mixed-integer program: about [\d,]+ columns", result.message)


def test_the_size_is_about_right() -> None:
    for seed in range(4):
        contention: Contention = "port" if seed % 2 else "none"
        problem = layered(10, 3, seed, contention=contention, output=np.ones(10), memory_model="peak")
        problem = replace(problem, capacity=np.full(3, 8))
        model = model_of(problem)
        size = model.program.n_columns + len(model.program.rows)
        assert size / 2 <= model_size(problem, model.times.after) <= 2 * size


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"duration": np.full((6, 2), 10**9 + 7), "release": np.ones(6, dtype=np.int64)},
            r"schedules of up to [\d,]+ ticks, where",
        ),
        (
            {"resident": np.array([10**9 + k for k in (7, 9, 21, 33, 87, 93)]), "capacity": np.array([4 * 10**9] * 2)},
            r"numbers up to [\d,]+, where",
        ),
        (
            {"objective": Objective(((Term("makespan"), Term("communication", Fraction(1, 10**9))),))},
            r"an objective up to [\d,]+ of its steps",
        ),
    ],
)
def test_numbers_not_safe_in_floating_point_are_reported(change: dict[str, Any], message: str) -> None:
    answer = solve(replace(layered(6, 2, 0, separation=[(0, 1)]), **change))
    assert answer.termination is Termination.FAILED
    assert re.search(message, answer.message)


def test_numbers_too_large_are_named() -> None:
    with pytest.raises(TooLargeError, match=r"schedules of up to [\d,]+ ticks, where 5,000,000 is safe"):
        model_of(replace(layered(4, 2, 0), duration=np.full((4, 2), 10**9 + 7)))


# Limits and progress


@pytest.mark.parametrize("engine", ENGINES)
def test_a_time_limit_returns_the_best_so_far_with_a_bound(engine: Engine) -> None:
    problem = layered(20, 4, 1)
    heuristic = po.solve(problem, "heft").objective
    result = po.solve(problem, "milp", time_limit=0.6, engine=engine)
    assert result.termination is Termination.TIME_LIMIT
    assert result.feasible
    assert result.objective is not None
    assert heuristic is not None
    assert result.bound is not None
    assert result.bound <= result.objective <= heuristic


@pytest.mark.parametrize("engine", ENGINES)
def test_a_stop_reaches_a_running_engine(engine: Engine) -> None:
    """Its own progress stops it: the first schedule that it finds."""
    seen: list[Progress] = []
    result = po.solve(
        layered(14, 3, 4),
        "milp",
        engine=engine,
        hint=False,
        on_progress=seen.append,
        should_stop=lambda: any(state.objective is not None for state in seen),
    )
    assert result.termination is Termination.INTERRUPTED
    assert result.feasible
    assert result.objective == seen[-1].objective


@pytest.mark.parametrize("engine", ENGINES)
def test_incumbents_and_bounds_are_streamed(engine: Engine) -> None:
    seen: list[Progress] = []
    problem = layered(*((13, 3, 4) if engine == "highs" else (10, 3, 4)))
    result = po.solve(problem, "milp", workers=1, hint=False, on_progress=seen.append, engine=engine)
    assert result.termination is Termination.OPTIMAL
    objectives = [state.objective for state in seen if state.objective is not None]
    bounds = [state.bound for state in seen if state.bound is not None]
    assert len(objectives) > 1
    assert len(bounds) > 1
    assert objectives == sorted(objectives, reverse=True)
    assert bounds == sorted(bounds)
    assert objectives[-1] == bounds[-1] == result.objective


@pytest.mark.parametrize("engine", ENGINES)
def test_a_gap_limit_stops_early(engine: Engine) -> None:
    problem = layered(12, 3, 3)
    answer = Milp().solve(problem, Options(time_limit=60, gap_limit=0.6, workers=1), MilpSettings(engine=engine))
    assert answer.schedule is not None
    values = verify(problem, answer.schedule).objective
    assert values is not None
    assert answer.bound is not None
    assert values[0] - answer.bound <= 0.6 * values[0]
    assert answer.termination is (Termination.OPTIMAL if values[0] == answer.bound else Termination.COMPLETED)


def test_an_initial_schedule_is_hinted_and_never_lost() -> None:
    problem = layered(8, 3, 6)
    best = po.solve(problem, "cp-sat", workers=1)
    again = po.solve(problem, "milp", time_limit=1e-3, initial=best.schedule, hint=False)
    assert again.objective == best.objective
    junk = Schedule(np.zeros(8, dtype=np.int64), np.zeros(8, dtype=np.int64))
    assert po.solve(problem, "milp", workers=1, initial=junk).objective == best.objective


@pytest.mark.parametrize("engine", ENGINES)
def test_the_same_seed_gives_the_same_schedule(engine: Engine) -> None:
    problem = layered(7, 3, 5)
    first, second = (solve(problem, seed=3, engine=engine) for _ in range(2))
    assert first.schedule is not None
    assert second.schedule is not None
    assert first.schedule.device.tolist() == second.schedule.device.tolist()
    assert first.schedule.start.tolist() == second.schedule.start.tolist()


def test_several_workers_find_the_same_optimum() -> None:
    problem = layered(7, 3, 7)
    results = [po.solve(problem, "milp", workers=workers) for workers in (1, 2)]
    assert results[0].termination is results[1].termination is Termination.OPTIMAL
    assert results[0].objective == results[1].objective


@pytest.mark.parametrize("engine", ENGINES)
def test_an_error_in_a_callback_ends_the_run_and_reaches_the_caller(engine: Engine) -> None:
    def fail(state: Progress) -> None:
        if state.objective is not None:
            raise RuntimeError("no more, please")

    with pytest.raises(RuntimeError, match="no more, please"):
        po.solve(layered(10, 3, 9), "milp", hint=False, on_progress=fail, engine=engine)
