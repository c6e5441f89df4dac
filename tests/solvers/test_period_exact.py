"""cp-sat and milp on pipelines: they agree with brute force, and prove what they claim."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from pipelines import random_pipeline, unlike_pipeline
from placeopt_solvers._runs.linear import Linear
from placeopt_solvers.exact.cp_sat import CpSat, CpSatSettings
from placeopt_solvers.pipelines._exact.data import data_of
from placeopt_solvers.pipelines._exact.engines import program_of
from placeopt_solvers.pipelines._exact.model import Model
from placeopt_solvers.pipelines._exact.stages import Free, Line, Numbered, stage_rows
from placeopt_solvers.pipelines._exact.system import System
from placeopt_solvers.pipelines._shared.assessment import accepted, assessed, numberings, teams
from placeopt_solvers.pipelines._shared.contraction import contracted
from placeopt_solvers.pipelines._shared.enumeration import best_pipeline, placements, recomputed

import placeopt as po
from placeopt.model.building import with_changes
from placeopt.model.schedule import Schedule, Stages
from placeopt.model.stages import rules, trivial_stages
from placeopt.protocol import Options, Termination

CASES = [*(random_pipeline(seed) for seed in range(40)), *(unlike_pipeline(seed) for seed in range(60))]
RARE = [random_pipeline(81), *(unlike_pipeline(seed) for seed in (152, 324, 556, 576))]
"""Cases that found faults: rows without columns, and periods of teams that are not whole before they are rounded up."""


def least_period(problem: po.Problem) -> int | None:
    return best_pipeline(problem, lambda: None, lambda *_: None)


def check(problem: po.Problem, solver: str, **settings: object) -> None:
    least = least_period(problem)
    result = po.solve(problem, solver, workers=1, **settings)
    assert result.termination == ("infeasible" if least is None else "optimal")
    assert result.values == (None if least is None else (least,))
    assert result.bound == least
    assert least is None or result.feasible


@pytest.mark.parametrize("case", range(len(CASES)))
def test_cp_sat_equals_brute_force(case: int) -> None:
    check(CASES[case], "cp-sat")


@pytest.mark.parametrize("case", range(0, len(CASES), 3))
def test_milp_equals_brute_force(case: int) -> None:
    check(CASES[case], "milp")


def test_scip_runs_where_highs_fails() -> None:
    check(random_pipeline(463), "milp", hint=False)


def test_highs_finds_an_optimum_that_its_presolve_cut_off() -> None:
    check(unlike_pipeline(243), "milp", hint=False)


@pytest.mark.parametrize("case", range(len(RARE)))
@pytest.mark.parametrize("solver", ["cp-sat", "milp"])
def test_rare_cases(case: int, solver: str) -> None:
    check(RARE[case], solver)


@pytest.mark.parametrize("case", range(0, len(CASES), 9))
def test_without_starts_and_symmetry(case: int) -> None:
    check(CASES[case], "cp-sat", hint=False, symmetry=False)


def test_scip_agrees() -> None:
    check(CASES[8], "milp", engine="scip")


def every_period(problem: po.Problem) -> Iterator[int]:
    """The periods of all combinations, none left out."""
    nothing = np.zeros(problem.n_devices, dtype=np.int64)
    for device in placements(problem):
        numbered = rules(problem).numbered
        numbers = numberings(problem, device) if numbered else [trivial_stages(problem, device).number]
        for number, leader, again in product(
            list(numbers), list(teams(problem, device)), list(recomputed(problem, device))
        ):
            value = assessed(problem, device, Stages(number, leader, again, nothing))
            if value is not None:
                yield value


@pytest.mark.parametrize("seed", range(0, 200, 8))
def test_brute_force_leaves_out_only_what_is_not_better(seed: int) -> None:
    problem = random_pipeline(seed)
    if problem.n_tasks < 6 or problem.n_devices < 4:
        assert least_period(problem) == min(every_period(problem), default=None)


def test_each_model_of_stages_occurs() -> None:
    found = set()
    for problem in CASES:
        model = Model(data_of(problem, contracted(problem)), System(lambda: False, 10**6), symmetry=True)
        found.add(type(stage_rows(model)))
    assert found == {Free, Line, Numbered}


class TestStarts:
    @pytest.mark.parametrize("solver", ["cp-sat", "milp"])
    def test_it_improves_a_given_schedule(self, solver: str) -> None:
        problem = random_pipeline(0, contiguous=True)
        least = least_period(problem)
        start = po.solve(problem, "brute-force").schedule
        result = po.solve(problem, solver, initial=start, hint=False)
        assert result.values == (least,)

    def test_wrong_ones_are_discarded(self) -> None:
        problem = next(p for p in CASES if p.n_devices > 1 and p.n_tasks > 1 and rules(p).contiguous)
        good = po.solve(problem, "brute-force").schedule
        assert good is not None
        assert good.stages is not None
        assert accepted(problem, good) is not None
        own = good.stages
        for stages in (
            Stages(own.number[::-1] * 0 - 1, own.leader + problem.n_devices, own.recompute, own.synchronise),
            Stages(own.number[:-1], own.leader, own.recompute, own.synchronise),
            Stages(own.number, np.roll(np.arange(problem.n_devices), 1), own.recompute, own.synchronise),
        ):
            assert accepted(problem, Schedule(good.device, good.start, good.transfers, stages)) is None
        outside = Schedule(good.device + problem.n_devices, good.start)
        assert accepted(problem, outside) is None


class TestLimits:
    @pytest.mark.parametrize("solver", ["cp-sat", "milp"])
    def test_too_large_models_are_refused(self, solver: str) -> None:
        problem = next(p for p in CASES if p.n_tasks == 6 and least_period(p))
        result = po.solve(problem, solver, max_size=3, hint=False)
        assert result.termination == "failed"
        assert "max_size" in result.message

    def test_an_interrupted_run_returns_its_start(self) -> None:
        problem = next(p for p in CASES if p.n_tasks == 6 and least_period(p))
        answer = CpSat().solve(problem, Options(should_stop=lambda: True), CpSatSettings())
        assert answer.termination is Termination.INTERRUPTED

    def test_the_relaxation_bounds_the_period(self) -> None:
        bounds = []
        for problem in CASES[:20]:
            least = least_period(problem)
            result = po.solve(problem, "milp", relaxation=True)
            if least is not None:
                assert result.bound is not None
                assert result.bound <= least
                bounds.append(result.bound == least)
        assert any(bounds)

    def test_large_memory_is_rounded_in_programs(self) -> None:
        system = System(lambda: False, 100)
        one, other = system.binary(), system.binary()
        system.at_least(3 * 10**9 + 1, (2 * 10**9) * one + (10**9 + 1) * other)
        row = program_of(system, one).rows[0]
        assert max(abs(row.coefficients).tolist()) <= 10**8
        assert row.coefficients.sum() >= row.low  # both at once, which the row allows

    @pytest.mark.parametrize("solver", ["cp-sat", "milp"])
    def test_large_numbers(self, solver: str) -> None:
        problem = random_pipeline(33)
        least = least_period(problem)
        scaled = with_changes(
            problem,
            resident=problem.resident * 10**9, output=problem.output * 10**9, payload=problem.payload * 10**9,
            capacity=problem.capacity * 10**9, byte_ticks_den=problem.byte_ticks_den * 10**9,
        )  # fmt: skip
        assert po.solve(scaled, solver).values == (None if least is None else (least,))


class TestObjectives:
    @pytest.mark.parametrize("solver", ["cp-sat", "milp"])
    def test_the_first_level_is_proved(self, solver: str) -> None:
        problem = with_changes(
            random_pipeline(0), objective=po.Objective(((po.Term("period"),), (po.Term("makespan"),)))
        )
        result = po.solve(problem, solver)
        assert result.values is not None
        assert result.values[0] == result.bound == least_period(problem)

    def test_a_weighted_sum_has_a_bound(self) -> None:
        sums = po.Objective(((po.Term("period", 2), po.Term("makespan")),))
        for seed in range(6):
            problem = with_changes(random_pipeline(seed), objective=sums)
            result = po.solve(problem, "cp-sat")
            if result.values is not None:
                assert result.bound is not None
                assert result.bound <= result.values[0]


def test_rows_without_columns() -> None:
    system = System(lambda: False, 10)
    system.equal(0, Linear())
    system.at_least(1, 0)
    assert not system.rows
    system.at_least(0, 1)
    assert len(system.rows) == 1
