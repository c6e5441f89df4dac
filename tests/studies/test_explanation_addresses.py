"""`placeopt explain` with addresses: against a model of pairs that shares nothing with it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

import placeopt as po
from placeopt.model.buffers import memory_heights
from placeopt.model.building import with_changes
from placeopt.studies.explanation import explain
from tests.support.commandline import run
from tests.support.exact_addresses import least_makespan, small_problem
from tests.support.sharing import has_plan, sharing_problem

FILE = """
placeopt: 1
resolution: 1 ms
memory_model: peak
addresses: {alignment: 64 B}
devices: {mcu: {memory: 100 B}}
tasks:
  a: {time: 1 ms, memory: {output: 60, scratch: 10}}
  b: {time: 1 ms, after: a, memory: {output: 30, resident: 5}}
  c: {time: 1 ms, after: b, memory: {output: 40}}
"""


def test_buffers_missing_bytes_and_what_alignment_costs(tmp_path: Path) -> None:
    """At 1 ms, 60, 30 and 5 bytes are live. At multiples of 64, the last one begins at 128."""
    path = tmp_path / "sram.yaml"
    path.write_text(FILE)
    done = run("explain", path)
    assert done.code == 1
    text = " ".join(done.out.split())
    assert "offsets of buffers are multiples of 64 B fix: with the alignment 8 B" in text
    assert "mcu has 100 B of memory fix: with 133 B, 33 B more (the minimum)" in text
    assert "holds up to 95 B in 3 buffers at 1 ms: a:output 60 B, b:output 30 B, b:resident 5 B" in text
    assert "without alignment, this schedule fits in 95 B" in text
    path.write_text(FILE.replace("100 B", "133 B"))
    assert run("explain", path).code == 0


def test_a_conflict_of_counted_bytes_is_stated_without_addresses(tmp_path: Path) -> None:
    path = tmp_path / "sram.yaml"
    path.write_text(FILE.replace("100 B", "94 B"))
    found = explain(path, workers=1)
    assert [member.kind for member in found.members] == ["memory"]
    (repair,) = [member.repair for member in found.members]
    assert repair is not None
    assert repair.amount == 133


def test_verdicts_and_repairs_are_those_of_a_model_of_pairs() -> None:
    seen = Counter[str]()
    for seed in range(60):
        problem = small_problem(seed)
        exists = least_makespan(problem) is not None
        try:
            found = explain(problem.to_document(), workers=1)
        except po.SpecError:  # a task needs more than any device has
            assert not exists
            continue
        assert found.status == ("feasible" if exists else "infeasible"), seed
        seen[found.status] += 1
        for member in found.members:
            repair, label = member.repair, member.place.path[1:2]
            assert repair is not None
            assert repair.least
            assert repair.whole
            assert po.verify(with_changes(problem, **changed(problem, member.kind, label, repair.amount)),
                             repair.schedule).feasible  # fmt: skip
            seen[member.kind] += 1
            if member.kind == "memory":
                d = problem.device_names.index(str(label[0]))
                heights = memory_heights(problem, repair.schedule)
                assert heights is not None
                assert heights[d] <= repair.amount
                assert (
                    least_makespan(with_changes(problem, **changed(problem, "memory", label, repair.amount - 1)))
                    is None
                )
            elif repair.amount is not None:
                assert problem.alignment is not None
                assert problem.alignment % repair.amount == 0
    assert min(seen.values()) > 0
    assert seen["memory"] > 1


def test_sharing_and_reserved_bytes_against_all_orders() -> None:
    seen = Counter[str]()
    for seed in range(40):
        problem = sharing_problem(seed, most=4)
        found, exists = explain(problem.to_document(), workers=1), has_plan(problem)
        assert found.status == ("feasible" if exists else "infeasible"), seed
        seen[found.status] += 1
        for member in found.members:
            if member.kind == "memory":
                assert member.repair is not None
                amount = member.repair.amount
                assert amount is not None
                assert has_plan(with_changes(problem, capacity=[amount]))
                assert not has_plan(with_changes(problem, capacity=[amount - 1]))
    assert min(seen.values()) > 10


def changed(problem: po.Problem, kind: str, label: tuple[object, ...], amount: float | None) -> dict[str, object]:
    """What a repair changes, as arguments of `build_problem`."""
    if kind == "addresses":
        return {"alignment": amount}
    capacity = problem.capacity.copy()
    capacity[np.array(problem.device_names) == str(label[0])] = amount
    return {"capacity": capacity}
