"""Relocation: where tasks are now, what moving them costs, and that everything which rebuilds problems keeps it."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brute_force import optimum, small_problem
from commandline import run
from texts import compiled, edited

import placeopt as po
from placeopt.bounding.quick import best_bound, prove_infeasible
from placeopt.io.compiler import load
from placeopt.io.formats.graphs import from_networkx, to_networkx
from placeopt.model.building import build_problem, with_changes
from placeopt.model.documents import problem_document
from placeopt.model.objective import GONE, METRICS, evaluate, relocation_ticks, shared_out
from placeopt.model.problem import Objective, Problem, Term
from placeopt.model.schedule import Schedule
from placeopt.passes import EXACT_PASSES, apply_passes
from placeopt.verifier import verify

TEXT = """\
placeopt: 1
resolution: 1 ms
devices:
  slow: {count: 2, type: A}
  fast: {type: C}
links: {default: {bandwidth: 1 MB/s, latency: 3 ms}}
current:
  placement: {camera: slow0, lidar: fast}
tasks:
  camera: {time: 9 ms, migration: {bytes: 11494 B, startup: {A: 4273.73 ms, C: 794.66 ms}}}
  lidar: {time: 3 ms, migration: {bytes: 560 B, startup: {A: 60.98 ms, C: 9.26 ms}}}
  fuse: {time: 11 ms, after: [camera, lidar], migration: {bytes: 11796 B, startup: {A: 0.39 ms, C: 0.11 ms}}}
objective: {makespan: 1, relocation: 1}
"""
"""Relocation of GiPH, section 5.3, table 2, on links of 1 MB/s: 11.494 ms and 0.56 ms of migration, rounded up."""

MOVING = Objective(((Term("makespan"), Term("relocation", Fraction(1, 3))),))


def moved(head: str, task: str = "", placement: str = "t: a") -> list[int]:
    """Relocation of a task on devices a, b and c, two of one type; a byte takes a tick, latencies are 10."""
    problem = compiled(
        f"placeopt: 1\ndevices: {{a: , b: {{type: x}}, c: {{type: x}}}}\n"
        f"links: {{default: {{bandwidth: 1, latency: 10}}}}\n"
        f"current: {{placement: {{{placement}}}{head}}}\ntasks: {{t: {{time: 1{task}}}}}\n"
    )
    assert problem.relocation.dtype == np.int64
    assert not problem.relocation.flags.writeable
    found: list[int] = problem.relocation[0].tolist()
    return found


class TestSpec:
    def test_table_2_of_giph(self) -> None:
        problem = compiled(TEXT)
        assert problem.relocation.tolist() == [
            [0, 15 + 4274, 15 + 795],  # camera: 12 ms of data after 3 ms of latency, and starting up
            [4 + 61, 4 + 61, 0],
            [1, 1, 1],  # fuse is new
        ]
        assert problem.objective.levels == ((Term("makespan"), Term("relocation")),)
        assert problem.runs_before_next_change == 1

    @pytest.mark.parametrize(
        ("head", "task", "placement", "expected"),
        [
            ("", "", "t: a", [0, 0, 0]),  # nothing to move, no transfer
            ("", ", memory: 7", "t: a", [0, 17, 17]),  # resident memory moves
            ("", ", memory: {output: 7, scratch: 9}", "t: a", [0, 0, 0]),
            (", migration: 5", ", memory: 7", "t: a", [0, 15, 15]),
            (", migration: 5", ", memory: 7, migration: 6", "t: a", [0, 16, 16]),
            (", migration: 5", ", migration: 0", "t: a", [0, 0, 0]),
            (", migration: {bytes: 5, startup: 2}", "", "t: c", [17, 17, 0]),
            (", migration: {bytes: 5, startup: {x: 2, c: 3}}", "", "t: a", [0, 17, 18]),  # a name goes before a type
            (", migration: {startup: {x: 2, '*': 9}}", "", "t: b", [9, 0, 2]),
            # A task's own startup is the whole of it: zero on the devices that it does not name.
            (", migration: {startup: {x: 2, '*': 9}}", ", migration: {startup: {a: 4}}", "t: b", [4, 0, 0]),
            (", migration: {bytes: 0, startup: 3}", ", migration: {startup: {a: 2}}", "t: a", [0, 0, 0]),
            (", migration: {bytes: 0, startup: 3}", ", migration: {startup: {a: 2, '*': 3}}", "t: b", [2, 0, 3]),
            # Each of the two keys by itself: own bytes with the section's startup, and the other way round.
            (", migration: {startup: {x: 2}}", ", migration: 1", "t: a", [0, 13, 13]),
            (", migration: {bytes: 5, startup: 9}", ", memory: 7, migration: {startup: 2}", "t: a", [0, 17, 17]),
            (", migration: {startup: {x: 2, y: 5}}", "", "t: a", [0, 2, 2]),  # devices of type y may come
            (", migration: {bytes: 5, startup: 2}", "", "", [2, 2, 2]),  # new: starts up
        ],
    )
    def test_what_counts(self, head: str, task: str, placement: str, expected: list[int]) -> None:
        assert moved(head, task, placement) == expected

    def test_without_the_section_migration_says_nothing(self) -> None:
        alone = edited(TEXT, ("current:\n  placement: {camera: slow0, lidar: fast}\n", ""), (", relocation: 1", ""))
        problem = compiled(alone)
        assert not problem.relocation.any()
        bare = edited(alone, ("migration: {bytes: 560 B, startup: {A: 60.98 ms, C: 9.26 ms}}", ""))
        assert problem.fingerprint() == compiled(bare).fingerprint()
        assert compiled(edited(TEXT, ("  placement: {camera: slow0, lidar: fast}\n", ""))).relocation.any()

    @pytest.mark.parametrize(("runs", "weight"), [("4", Fraction(1, 4)), ("0.5", Fraction(2)), ("3", Fraction(1, 3))])
    def test_runs_divide_the_weight(self, runs: str, weight: Fraction) -> None:
        stated = edited(TEXT, ("placement: {camera", f"runs_before_next_change: {runs}\n  placement: {{camera"))
        problem = compiled(stated)
        assert problem.objective.levels == ((Term("makespan"), Term("relocation", weight)),)
        assert problem.runs_before_next_change == 1 / weight
        schedule = Schedule(np.array([2, 2, 2]), np.array([0, 9, 12]))
        assert evaluate(problem, schedule) == (23 + weight * (810 + 1),)
        assert verify(problem, schedule, evaluate(problem, schedule)).feasible
        assert str(replace(problem, objective=MOVING).objective) == "makespan + relocation / 3"

    def test_a_plan_may_name_devices_that_are_gone(self, tmp_path: Path) -> None:
        tasks = {"camera": {"device": "slow0", "start": 0}, "lidar": {"device": "old", "start": 0}}
        (tmp_path / "plan.json").write_text(json.dumps({"placeopt_plan": 1, "tasks": tasks}), encoding="utf-8")
        text = edited(TEXT, ("{camera: slow0, lidar: fast}", "{file: plan.json}"))
        (tmp_path / "p.yaml").write_text(text, encoding="utf-8")
        assert load(tmp_path / "p.yaml").relocation.tolist() == [[0, 4289, 810], [61, 61, 10], [1, 1, 1]]
        tasks["radar"] = tasks.pop("lidar")
        (tmp_path / "plan.json").write_text(json.dumps({"placeopt_plan": 1, "tasks": tasks}), encoding="utf-8")
        with pytest.raises(po.SpecError, match=r'plan.json:1:\d+: tasks.radar: unknown task "radar"'):
            load(tmp_path / "p.yaml")


class TestProblem:
    def test_ticks_by_hand(self) -> None:
        links = np.array([[0, 5], [7, 0]]), np.array([[0, 1], [3, 0]]), np.array([[1, 2], [2, 1]])
        found = relocation_ticks(np.array([0, 1, GONE]), np.array([9, 9, 9]), np.full((3, 2), 100), *links)
        assert found.tolist() == [[0, 5 + 5 + 100], [7 + 14 + 100, 0], [100, 100]]

    def test_it_is_part_of_the_fingerprint_and_of_device_classes(self) -> None:
        def problem(relocation: Any, runs: Fraction | int = 1) -> Problem:
            return build_problem(
                task_names=["t"], device_names=["a", "b", "c"], duration=np.ones((1, 3)), relocation=relocation,
                runs_before_next_change=runs, feasible=np.array([[True, True, False]]),
            )  # fmt: skip

        found = [problem(None), problem([[0, 0, 5]]), problem([[0, 1, 0]]), problem([[0, 1, 0]], 2)]
        prints = [each.fingerprint() for each in found]
        assert prints[0] == prints[1]  # where a task may not run nothing counts
        assert len(set(prints)) == 3
        assert [each.device_class.tolist() for each in found[1:3]] == [[0, 0, 1], [0, 1, 2]]
        assert with_changes(found[2], relocation=None).fingerprint() == prints[0]
        with pytest.raises(po.UsageError, match="runs_before_next_change is 0; expected a positive number"):
            problem(None, 0)

    def test_amended_problems_are_those_that_were_built_so(self) -> None:
        for seed in range(20):
            problem = small_problem(np.random.default_rng(seed))
            assert with_changes(problem).fingerprint() == problem.fingerprint()

    def test_the_bound_is_the_cheapest_place_of_each_group(self) -> None:
        problem = build_problem(
            task_names=["r", "s", "t"], device_names=["a", "b"], duration=np.ones((3, 2)), group=np.array([0, 0, 1]),
            relocation=[[0, 9], [7, 0], [4, 3]], objective=Objective(((Term("relocation", Fraction(1, 2)),),)),
        )  # fmt: skip
        assert best_bound(problem).value == (7 + 3) / 2

    def test_heuristics_for_the_makespan_refuse(self) -> None:
        with pytest.raises(po.UnsupportedError, match=r"heft does not support .* makespan \+ relocation; .* cp-sat, "):
            po.solve(compiled(TEXT), "heft")


def test_inspect_tells_of_it(tmp_path: Path) -> None:
    stated = edited(TEXT, ("placement: {camera", "runs_before_next_change: 1200\n  placement: {camera"))
    (tmp_path / "p.yaml").write_text(stated, encoding="utf-8")
    data = json.loads(run("inspect", tmp_path / "p.yaml", "--json").out)
    assert (data["tasks_with_relocation"], data["runs_before_next_change"]) == (3, 1200)
    text = run("inspect", tmp_path / "p.yaml").out
    assert "3 tasks may move at a cost, shared by 1,200 runs" in text
    assert "makespan + relocation / 1200" in text


def test_formats_keep_it() -> None:
    kept = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        problem = small_problem(rng, MOVING if seed % 2 else None)
        edges = list(zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True))
        assert len(set(edges)) == len(edges)
        runs = Fraction(int(rng.integers(1, 5)))
        problem = with_changes(
            problem, runs_before_next_change=runs, objective=shared_out(Objective(((Term("relocation"),),)), runs)
        )
        if prove_infeasible(problem) is not None:  # a document with tasks without devices is an error
            continue
        for again in (po.compile(problem_document(problem)), from_networkx(to_networkx(problem))):
            assert again.relocation.tolist() == problem.relocation.tolist()
            assert again.objective == problem.objective
            assert again.runs_before_next_change == runs
        kept += bool(problem.relocation.any())
    assert kept > 10


@pytest.mark.parametrize("solver", ["cp-sat", "milp"])
def test_exact_solvers_find_what_the_oracle_finds(solver: str) -> None:
    proved = 0
    for seed in range(300, 312):
        problem = small_problem(np.random.default_rng(seed), MOVING)
        best = optimum(problem)
        if best is None or not problem.relocation.any():
            continue
        result = po.solve(problem, solver, workers=1, time_limit=60)
        assert (result.termination, result.values) == (po.Termination.OPTIMAL, best[0])
        assert result.bound == best[0][0]
        proved += 1
    assert proved >= 4


class TestPasses:
    def test_tasks_that_become_one_cost_what_they_cost_together(self) -> None:
        problem = build_problem(
            task_names=["r", "s", "t"], device_names=["a", "b"], duration=np.ones((3, 2)), edges=[(0, 1), (1, 2)],
            group=np.array([0, 0, 1]), relocation=[[0, 9], [7, 0], [4, 3]], objective=MOVING,
        )  # fmt: skip
        fused = apply_passes(problem, ["fuse"]).problem
        assert fused.relocation.tolist() == [[7, 9], [4, 3]]
        alone = with_changes(problem, objective=Objective(((Term("relocation"),),)))
        assert apply_passes(alone, ["contract-groups"]).problem.relocation.tolist() == [[7, 9], [4, 3]]

    def test_tasks_that_take_no_time_stay_where_they_are_or_leave_what_they_cost(self) -> None:
        def reduced(relocation: list[list[int]], group: list[int], **changes: Any) -> Problem:
            problem = build_problem(
                task_names=["z", "t"], device_names=["a", "b"], duration=[[0, 0], [2, 2]], edges=[(0, 1)],
                group=np.array(group), relocation=relocation, **{"objective": MOVING, **changes},
            )  # fmt: skip
            return apply_passes(problem, [name for name in EXACT_PASSES if name in ("relays", "zero-time")]).problem

        assert reduced([[3, 0], [0, 5]], [0, 0]).relocation.tolist() == [[3, 5]]
        assert reduced([[3, 0], [0, 5]], [0, 1]).relocation.tolist() == [[3, 0], [0, 5]]
        assert reduced([[0, 0], [0, 5]], [0, 1]).relocation.tolist() == [[0, 5]]
        assert reduced([[3, 0], [0, 5]], [0, 1], objective=Objective()).n_tasks == 1  # nobody counts it

    def test_followers_leave_their_relocation_to_whom_they_follow(self) -> None:
        problem = build_problem(
            task_names=["f", "b"], device_names=["a", "b"], duration=np.ones((2, 2)), edges=[(0, 1)],
            forward=np.array([0, 0]), relocation=[[0, 5], [7, 0]], objective=MOVING,
        )  # fmt: skip
        chain = apply_passes(problem, ["forward"])
        assert chain.problem.relocation.tolist() == [[7, 5]]
        restored = chain.restore(Schedule(np.array([1]), np.array([0])))
        assert METRICS["relocation"](problem, restored) == 5
