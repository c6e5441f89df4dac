"""Problems with addresses: a solver's schedule, offsets for it, and other schedules if there are none."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import placeopt as po
from placeopt.orchestration import addresses
from placeopt.orchestration.addresses import _Cuts
from tests.support.commandline import run
from tests.support.orders import has_plan, random_problem, tight_problem

FILE = """\
placeopt: 1
name: sram
resolution: 1 us
memory_model: peak
addresses: {alignment: 8 B}
devices: {mcu: {memory: 104 B}}
tasks:
  a: {time: 1 ms, memory: {output: 60, scratch: 10}}
  b: {time: 1 ms, after: a, memory: {output: 30, resident: 5}}
  c: {time: 1 ms, after: b, memory: {output: 40}}
"""


@pytest.mark.parametrize("solver", ["heft", "cp-sat"])
def test_results_agree_with_all_orders(solver: str) -> None:
    seen = Counter[tuple[bool, str]]()
    for seed in range(40):
        problem = random_problem(seed, most=5)
        exists, result = has_plan(problem), po.solve(problem, solver, workers=1)
        seen[exists, result.termination.value] += 1
        if result.feasible:
            assert result.schedule is not None
            assert exists
            assert po.verify(problem, result.schedule, result.values).feasible
            assert result.bound is not None
            assert result.objective is not None
            assert result.bound <= result.objective
            (device,) = result.devices
            assert device.height is not None
            assert device.capacity is not None
            assert device.memory <= device.height <= device.capacity
        else:
            assert result.schedule is None
            assert not (exists and result.termination is po.Termination.INFEASIBLE)
    plans = sum(number for (_, ended), number in seen.items() if ended in ("optimal", "completed"))
    assert plans >= 0.9 * sum(number for (exists, _), number in seen.items() if exists)
    assert min(plans, 40 - plans) > 5


def test_a_second_schedule_keeps_the_bound_of_the_first() -> None:
    """HEFT's first schedule fits the memory by the count of bytes; its buffers have no offsets."""
    problem = tight_problem(5)
    counted = po.solve(replace(problem, alignment=None), "heft")
    assert counted.feasible
    assert counted.schedule is not None
    assert [each.fits for each in po.allocate_plan(problem, counted.schedule).values()] == [False]
    result = po.solve(problem, "heft", workers=1)
    assert result.feasible
    assert result.bound == problem.duration.sum() == result.objective
    assert result.termination is po.Termination.OPTIMAL
    assert result.progress == ()
    assert result.message == "offsets were found for schedule 2, with less memory counted"


def test_two_devices_and_an_unlimited_one() -> None:
    problem = po.build_problem(
        task_names="abcd", device_names="xy", duration=[[2, 3], [3, 2], [2, 2], [1, 4]], edges=[(0, 2), (1, 2), (2, 3)],
        payload=[4, 4, 4], byte_ticks_num=np.ones((2, 2), dtype=int), output=[7, 9, 3, 4], scratch=[5, 0, 3, 1],
        resident=[1, 2, 3, 4], capacity=[30, 2**63 - 1], memory_model="peak", alignment=4,
    )  # fmt: skip
    for solver in ("heft", "auto", "cp-sat"):
        result = po.solve(problem, solver, time_limit=5)
        assert result.feasible, result
        assert result.schedule is not None
        assert result.schedule.offsets is not None
        assert "<Offsets: resident [" in repr(result.schedule.offsets)
    again = po.solve(problem, "annealing", time_limit=2, initial=result.schedule)
    assert again.feasible
    assert po.solve(problem, "cp-sat", initial="heft", time_limit=5).objective == result.objective


def test_limits_stop_it(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(4)
    result = po.solve(problem, "heft")
    assert "no offsets were found for" in result.message
    assert result.message == (
        "no offsets were found for 6 schedules; the first needs at least 33 B of mcu, which has 26 B; it is not proved "
        "that there are none"
    )
    assert (result.schedule, result.feasible, result.values, result.devices) == (None, None, None, ())
    stopped = po.solve(problem, "heft", should_stop=lambda: True)
    assert stopped.termination is po.Termination.INTERRUPTED
    monkeypatch.setattr(addresses, "TRIES", 1)
    assert "no offsets were found for 1 schedule; the first needs" in po.solve(problem, "heft").message
    with pytest.raises(po.UsageError, match="time_limit is 0"):
        po.solve(problem, "heft", time_limit=0)
    with pytest.raises(po.UsageError, match="should_stop is 3; expected a function"):
        po.solve(problem, "heft", should_stop=3)  # type: ignore[arg-type]


def test_cuts_double_and_are_halved() -> None:
    class Lacking:
        capacity, live, bound = 100, 90, 103

    lacking: Any = {0: Lacking()}
    cuts = _Cuts(np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64))
    tried = []
    for deepens in (True, True, False, False, True):
        assert cuts.deepen(lacking, np.array([90, 50])) if deepens else cuts.relax()
        tried.append(cuts.tried.tolist())
    assert tried == [[13, 0], [26, 0], [19, 0], [16, 0], [17, 0]]
    assert not cuts.relax()


def test_a_problem_without_memory_for_its_bytes_is_infeasible() -> None:
    problem = po.compile({
        "placeopt": 1, "memory_model": "peak", "addresses": {}, "devices": {"mcu": {"memory": 100}},
        "tasks": {"a": {"time": 1, "memory": 60}, "b": {"time": 1, "memory": 60}},
    })  # fmt: skip
    assert problem.alignment == 1
    assert po.solve(problem, "heft").termination is po.Termination.INFEASIBLE
    empty = po.build_problem(
        task_names=[], device_names="d", duration=np.zeros((0, 1), int), memory_model="peak", alignment=1
    )
    assert po.solve(empty, "heft").feasible


class TestCommands:
    def test_a_plan_is_written_read_and_verified(self, tmp_path: Path) -> None:
        (tmp_path / "sram.yaml").write_text(FILE)
        plan = tmp_path / "plan.json"
        solved = run("solve", tmp_path / "sram.yaml", "--out", plan)
        assert solved.code == 0
        assert "95 B, height 101 B" in solved.out
        tasks = json.loads(plan.read_text())["tasks"]
        assert tasks["b"].keys() == {"device", "start", "offset"}
        assert tasks["b"]["offset"].keys() == {"resident", "output"}
        assert run("verify", tmp_path / "sram.yaml", plan).code == 0
        again = po.read_plan(plan, po.load(tmp_path / "sram.yaml"))
        assert po.plan_document(po.load(tmp_path / "sram.yaml"), again.schedule)["tasks"] == tasks
        devices = json.loads(run("solve", tmp_path / "sram.yaml", "--json").out)["devices"]
        assert devices[0]["height"] <= 104
        assert run("solve", tmp_path / "sram.yaml", "--solver", "annealing", "--initial", plan).code == 0
        executed = tmp_path / "executed.json"
        assert run("simulate", tmp_path / "sram.yaml", plan, "--out", executed).code == 0
        assert run("verify", tmp_path / "sram.yaml", executed).code == 0
        assert run("whatif", tmp_path / "sram.yaml", "--time-limit", "4").code == 0

    def test_a_plan_without_bytes_needs_no_offsets(self, tmp_path: Path) -> None:
        problem, plan = tmp_path / "sram.yaml", tmp_path / "plan.json"
        for tasks in ("{a: {time: 1 ms}}", "{}"):
            problem.write_text(FILE[: FILE.index("tasks:")] + f"tasks: {tasks}\n")
            assert run("solve", problem, "--out", plan).code == 0
            assert "offset" not in plan.read_text()
            assert run("verify", problem, plan).code == 0

    def test_a_wrong_plan_breaks_the_rule(self, tmp_path: Path) -> None:
        (tmp_path / "sram.yaml").write_text(FILE)
        plan = tmp_path / "plan.json"
        run("solve", tmp_path / "sram.yaml", "--out", plan)
        written = json.loads(plan.read_text())
        for task in written["tasks"].values():
            del task["offset"]
        plan.write_text(json.dumps(written))
        missing = run("verify", tmp_path / "sram.yaml", plan)
        assert missing.code == 1
        assert "address: the schedule has no offsets; the problem asks for those of all buffers" in missing.out
        written["tasks"]["a"]["offset"] = {"output": 0, "scratch": "top"}
        plan.write_text(json.dumps(written, indent=1))
        wrong = run("verify", tmp_path / "sram.yaml", plan)
        assert wrong.code == 2
        assert (
            wrong.err
            == f'{plan}:15:16: tasks.a.offset.scratch: expected a whole number, got "top"\nplaceopt: 1 problem found\n'
        )
        written["tasks"]["a"]["offset"] = {"output": 0}
        plan.write_text(json.dumps(written, indent=1))
        wrong = run("verify", tmp_path / "sram.yaml", plan)
        assert "tasks.a.offset: the scratch of the task, 10 B, has no offset, which other buffers have" in wrong.err
        assert "tasks.b: the resident of the task, 5 B, has no offset, which other buffers have" in wrong.err

    def test_too_little_memory_for_offsets(self, tmp_path: Path) -> None:
        (tmp_path / "sram.yaml").write_text(FILE.replace("104 B", "98 B"))
        refused = run("solve", tmp_path / "sram.yaml", "--solver", "heft", "--out", tmp_path / "plan.json")
        assert refused.code == 1
        text = " ".join(refused.out.split())
        assert "no offsets were found for 5 schedules; the first needs at least 100 B of mcu, which has 98 B;" in text
        assert "--solver cp-sat" in refused.err
        proved = run("solve", tmp_path / "sram.yaml", "--solver", "cp-sat")
        assert proved.code == 1
        assert "infeasible" in proved.out
        assert "placeopt explain" in proved.err
        explained = run("explain", tmp_path / "sram.yaml")
        assert explained.code == 1
        assert "mcu has 98 B of memory" in explained.out
