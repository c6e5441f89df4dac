"""A second engine decides what certificates trust."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from brute_force import optimum
from certificate_cases import drawn_problem

import placeopt as po
from placeopt.model.problem import Problem
from placeopt.orchestration.rechecking import block_problem, claimed
from placeopt.proving.certificates.leaves import relying
from placeopt.verifier.certificates import Leaf, Trusted
from placeopt.verifier.certificates.devices import Devices
from placeopt.verifier.certificates.model import block_of, model_of, timely

ROOT = Path(__file__).parents[2]
INDEPENDENT: dict[str, Any] = {f"t{k}": {"time": 4 + k % 3} for k in range(12)}
"""More tasks than the checker decides by itself."""


def problem_of(tasks: dict[str, Any], **rest: Any) -> Problem:
    document = {"placeopt": 1, "devices": {"d": {"count": 2}}, "links": {"default": {"latency": 2}}, "tasks": tasks}
    return po.compile({**document, **rest})


def relying_on(engine: str, problem: Problem, value: int) -> dict[str, Any]:
    """A certificate that relies on an engine."""
    metric = str(problem.objective)
    claim = relying(model_of(problem), metric, value, engine)
    return {
        "placeopt_certificate": 1, "problem": problem.fingerprint(), "objective": metric, "bound": value,
        "proof": {"claim": "terms", "terms": [claim]},
    }  # fmt: skip


@pytest.mark.parametrize(("engine", "second"), [("CP-SAT", "milp"), ("HiGHS", "cp-sat")])
def test_a_second_engine_confirms_a_right_claim_and_refutes_a_wrong_one(engine: str, second: str) -> None:
    made = problem_of(INDEPENDENT, devices={"d": {"count": 2, "memory": 6}}, objective="total_cost")
    best = int(po.solve(made, "cp-sat").objective or 0)
    checked = po.check_certificate(made, relying_on(engine, made, best))
    assert not checked.rechecked
    checked = po.check_certificate(made, relying_on(engine, made, best), recheck=30)
    assert [each.confirmed for each in checked.trusted] == [second]
    assert not checked.complete
    assert str(checked).endswith(f"; 1 confirmed by {second}, 0 undecided")
    with pytest.raises(
        po.CertificateError, match=f"{engine} claims at least {best + 1}, but {second} finds a schedule"
    ):
        po.check_certificate(made, relying_on(engine, made, best + 1), recheck=30)


def test_a_makespan_is_decided_with_deadlines() -> None:
    made = problem_of({f"t{k}": {"time": 5, "after": [f"t{k - 1}"] if k else []} for k in range(11)})
    checked = po.check_certificate(made, relying_on("x", made, 55), recheck=30)
    assert [each.confirmed for each in checked.trusted] == ["cp-sat"]
    with pytest.raises(
        po.CertificateError, match=r"terms\[0\]: other: x claims at least 56, but cp-sat finds a schedule with"
    ):
        po.check_certificate(made, relying_on("x", made, 56), recheck=30)


def test_a_sum_of_metrics_is_decided_by_its_optimum() -> None:
    made = problem_of(INDEPENDENT, objective={"makespan": 1, "total_cost": 0.25})
    best = Fraction(po.solve(made, "cp-sat", time_limit=20).objective or 0)
    for more, right in ((0, True), (Fraction(1, 4), False)):
        claim = relying(model_of(made), str(made.objective), best + more, "HiGHS")
        facts = {"placeopt_certificate": 1, "problem": made.fingerprint(), "objective": str(made.objective)}
        document = {**facts, "bound": claim["value"], "proof": claim}
        if right:
            checked = po.check_certificate(made, document, recheck=30)
            assert [each.confirmed for each in checked.trusted] == ["cp-sat"]
        else:
            with pytest.raises(po.CertificateError, match="but cp-sat finds a schedule with"):
                po.check_certificate(made, document, recheck=30)


def test_without_time_nothing_is_decided() -> None:
    made = problem_of(INDEPENDENT)
    checked = po.check_certificate(made, relying_on("CP-SAT", made, 30), recheck=30, should_stop=lambda: True)
    assert [each.confirmed for each in checked.trusted] == [None]
    assert str(checked).endswith("; 0 confirmed by a second engine, 1 undecided")
    with pytest.raises(po.UsageError, match="recheck"):
        po.check_certificate(made, relying_on("CP-SAT", made, 30), recheck=0)


def test_claims_of_infeasibility_are_decided_as_stated() -> None:
    tasks = {name: {**task, "deadline": 30} for name, task in INDEPENDENT.items()}
    for room, right in ((30, False), (29, True)):
        made = problem_of({name: {**task, "deadline": room} for name, task in tasks.items()})
        model, end = timely(made)
        document = {
            "placeopt_certificate": 1, "problem": made.fingerprint(), "objective": "makespan", "bound": "infeasible",
            "proof": relying(model, "makespan", end + 1, "CP-SAT"),
        }  # fmt: skip
        if right:
            checked = po.check_certificate(made, document, recheck=60)
            assert checked.infeasible
            assert [each.confirmed for each in checked.trusted] == ["milp"]
        else:
            with pytest.raises(po.CertificateError, match="but milp finds a schedule"):
                po.check_certificate(made, document, recheck=60)


def test_blocks_are_the_problems_that_the_solver_of_blocks_solves() -> None:
    from placeopt.protocol import Options
    from placeopt.protocol.registry import find_solver

    made = po.load(ROOT / "problems" / "inception.yaml")
    solver = find_solver("series")
    blocks = solver.solve(made, Options(time_limit=5), solver.settings_type(whole=False)).blocks  # type: ignore[call-arg]
    assert blocks is not None
    assert blocks.bounds
    for each in blocks.bounds[:20]:
        first = blocks.cuts[each.block - 1] if each.block else None
        last = blocks.cuts[each.block] if each.block < len(blocks.cuts) else None
        ends = [None if task is None else (task, d) for task, d in ((first, each.start), (last, each.end))]
        model = block_of(made, Devices(made, [cut[1] for cut in ends if cut]), blocks.inner[each.block], *ends)
        ours = block_problem(made, model, deadlines=True)
        assert ours.fingerprint() == each.problem.fingerprint()


@pytest.mark.parametrize("seed", range(40))
def test_a_stated_problem_has_a_schedule_exactly_below_the_optimum(seed: int) -> None:
    problem = drawn_problem(seed)
    found = optimum(problem)
    metric = problem.objective.single
    if found is None or problem.n_tasks == 0 or metric is None or problem.pipeline is not None:
        return
    best = int(found[0][0])
    for value in (best, best + 1):
        leaf = Leaf(Trusted("x", problem.n_tasks, value, "", ""), metric, model_of(problem))
        stated = claimed(problem, leaf, infeasible=False)
        below = None if value == 0 else optimum(stated)
        assert (below is not None) == (value > best)
