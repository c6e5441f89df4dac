"""`placeopt explain`: the lines that conflict, that each of them is needed, and their fixes."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brute_force import optimum
from commandline import run
from rich.console import Console

import placeopt as po
from placeopt.cli.interruption import Stop
from placeopt.cli.terminal.studies import print_explanation
from placeopt.errors import InternalError, SpecError, UnsupportedError, UsageError
from placeopt.io.compiler import begin_compilation
from placeopt.io.document import Document, read_document
from placeopt.model.modes import place_text
from placeopt.studies.explanation import Explanation, Member, explain
from placeopt.studies.explanation._model import Found, Model
from placeopt.studies.explanation.constraints import System
from placeopt.studies.explanation.oracle import Oracle, Verdict, repaired
from placeopt.verifier import verify

ROOT = Path(__file__).parents[2]
PROBLEMS = sorted((ROOT / "problems").glob("*.yaml"))

HEAD = """\
placeopt: 1
resolution: 1 ms
devices:
  cpu: {count: 2, memory: 8 GiB}
  gpu: {memory: 4 GiB, features: [fp16]}
links: {default: {latency: 2 ms}}
"""
TIMES = "time: {cpu: 4 ms, gpu: 1 ms}"


def explained(folder: Path, tasks: str, head: str = HEAD, **options: Any) -> Explanation:
    path = folder / "p.yaml"
    path.write_text(f"{head}tasks:\n{tasks}")
    return explain(path, **{"time_limit": 30, "workers": 1, **options})


def places(explanation: Explanation) -> list[str]:
    """`line: path` of every member."""
    assert explanation.status == "infeasible"
    assert explanation.minimal
    assert all(member.needed for member in explanation.members)
    return [f"{member.place.line}: {member.to_dict()['path']}" for member in explanation.members]


def repairs(explanation: Explanation) -> list[str]:
    return [member.repair.text for member in explanation.members if member.repair is not None]


class TestLines:
    """Each kind of constraint; HEAD has six lines and `tasks:` is on the seventh."""

    def test_memory(self, tmp_path: Path) -> None:
        found = explained(
            tmp_path,
            "  a: {time: {gpu: 1 ms}, memory: 3 GiB}\n  b: {time: {gpu: 1 ms}, memory: 1500 MiB}\n"
            "  c: {time: 1 ms, memory: 1 GiB}\n",
        )
        assert places(found) == ["5: devices.gpu.memory"]
        assert repairs(found) == ["with 4.465 GiB (4,794,089,472 B), 476 MiB more (the minimum)"]
        assert found.members[0].repair.amount == 3 * 2**30 + 1500 * 2**20
        assert found.members[0].text == "gpu has 4 GiB of memory"
        assert "need 4.465 GiB of memory together" in found.reason

    def test_a_pool_is_one_line(self, tmp_path: Path) -> None:
        tasks = "".join(f"  t{i}: {{time: {{cpu: 1 ms}}, memory: 3 GiB}}\n" for i in range(5))
        found = explained(tmp_path, tasks)
        assert places(found) == ["4: devices.cpu.memory"]
        assert found.members[0].repair.amount == 9 * 2**30  # three of them on one of the two
        assert found.members[0].text == "cpu0, cpu1 have 8 GiB of memory each"

    def test_pin(self, tmp_path: Path) -> None:
        found = explained(
            tmp_path, f"  a: {{{TIMES}, memory: 3 GiB, pin: gpu}}\n  b: {{{TIMES}, memory: 2 GiB, pin: gpu}}\n"
        )
        assert places(found) == ["5: devices.gpu.memory", "8: tasks.a.pin", "9: tasks.b.pin"]
        assert repairs(found)[1:] == ["if the task is on one of cpu0, cpu1"] * 2
        assert found.members[1].text == "task a is pinned to gpu"
        assert [found.members[k].repair.devices for k in (1, 2)] == [("cpu0", "cpu1")] * 2

    def test_devices_and_features(self, tmp_path: Path) -> None:
        found = explained(
            tmp_path,
            f"  a: {{{TIMES}, memory: 3 GiB, devices: gpu}}\n  b: {{{TIMES}, memory: 2 GiB, requires: [fp16]}}\n",
        )
        assert places(found) == ["5: devices.gpu.memory", "8: tasks.a.devices", "9: tasks.b.requires[0]"]
        assert repairs(found)[1:] == [
            "if the task may also run on one of cpu0, cpu1",
            "if the task does not require fp16 and may also run on one of cpu0, cpu1",
        ]

    def test_placement(self, tmp_path: Path) -> None:
        head = HEAD + "placement:\n  a: gpu\n  b: gpu\n"
        found = explained(tmp_path, f"  a: {{{TIMES}, memory: 3 GiB}}\n  b: {{{TIMES}, memory: 2 GiB}}\n", head)
        assert places(found) == ["5: devices.gpu.memory", "8: placement.a", "9: placement.b"]
        assert repairs(found)[1:] == ["if the task is on one of cpu0, cpu1"] * 2

    def test_placement_in_a_plan(self, tmp_path: Path) -> None:
        plan = {"placeopt_plan": 1, "tasks": {name: {"device": "gpu", "start": 0} for name in "ab"}}
        (tmp_path / "plan.json").write_text(json.dumps(plan, indent=1))
        head = HEAD + "placement: {file: plan.json}\n"
        found = explained(tmp_path, f"  a: {{{TIMES}, memory: 3 GiB}}\n  b: {{{TIMES}, memory: 2 GiB}}\n", head)
        files = [(Path(str(member.place.file)).name, member.place.line) for member in found.members]
        assert files == [("p.yaml", 5), ("plan.json", 5), ("plan.json", 9)]

    def test_tasks_in_a_graph_file(self, tmp_path: Path) -> None:
        times = {"cpu": "4 ms", "gpu": "1 ms"}
        graph = {"tasks": {name: {"time": times, "memory": "3 GiB", "pin": "gpu"} for name in "ab"}}
        (tmp_path / "graph.json").write_text(json.dumps(graph, indent=1))
        path = tmp_path / "p.yaml"
        path.write_text(HEAD + "graph: {file: graph.json}\n")
        found = explain(path, time_limit=30)
        files = [(Path(str(member.place.file)).name, member.place.line) for member in found.members]
        assert files == [("graph.json", 9), ("graph.json", 17), ("p.yaml", 5)]

    def test_colocation_names_the_memberships_that_matter(self, tmp_path: Path) -> None:
        found = explained(
            tmp_path,
            f"  a: {{{TIMES}, memory: 1 GiB, pin: gpu, colocate: x}}\n  b: {{{TIMES}, memory: 2 GiB, colocate: x}}\n"
            f"  c: {{{TIMES}, memory: 1 GiB, requires: fp16, colocate: [y, z]}}\n"
            f"  d: {{{TIMES}, memory: 1 GiB, colocate: y}}\n  e: {{{TIMES}, colocate: [z, y]}}\n",
        )
        # The labels bring b and d to where a and c must be; e takes no memory.
        assert places(found) == [
            "5: devices.gpu.memory", "8: tasks.a.pin", "8: tasks.a.colocate", "9: tasks.b.colocate",
            "10: tasks.c.requires", "10: tasks.c.colocate[0]", "11: tasks.d.colocate",
        ]  # fmt: skip
        assert found.members[6].text == "task d shares a device with c, e (label y)"
        assert found.members[6].repair.text.startswith("without label y, task d can be on cpu")

    def test_separation(self, tmp_path: Path) -> None:
        found = explained(
            tmp_path,
            f"  a: {{{TIMES}, devices: cpu, separate: s}}\n  b: {{{TIMES}, devices: cpu, separate: s}}\n"
            f"  c: {{{TIMES}, devices: cpu, separate: s}}\n  d: {{{TIMES}, separate: s2}}\n"
            f"  e: {{{TIMES}, separate: s2}}\n",
        )
        assert places(found) == [
            "8: tasks.a.devices", "8: tasks.a.separate", "9: tasks.b.devices", "9: tasks.b.separate",
            "10: tasks.c.devices", "10: tasks.c.separate",
        ]  # fmt: skip
        assert set(repairs(found)[::2]) == {"if the task may also run on gpu"}
        assert repairs(found)[1].startswith("without label s, task a can be on cpu")

    def test_deadline_and_release(self, tmp_path: Path) -> None:
        found = explained(
            tmp_path,
            f"  a: {{{TIMES}, release: 5 ms}}\n  b: {{{TIMES}, after: a}}\n"
            f"  c: {{{TIMES}, after: b, deadline: 7 ms}}\n  d: {{{TIMES}, deadline: 9 ms}}\n",
        )
        assert places(found) == ["8: tasks.a.release", "10: tasks.c.deadline"]
        assert repairs(found) == [
            "with the release time 4 ms, 1 ms earlier (the minimum)",
            "with the deadline 8 ms, 1 ms later (the minimum)",
        ]
        assert [member.repair.amount for member in found.members] == [4, 8]
        assert found.members[0].text == "task a may not start before 5 ms"

    def test_deadlines_that_compete_for_a_device(self, tmp_path: Path) -> None:
        tasks = "".join(f"  t{i}: {{time: {{gpu: 3 ms}}, deadline: {4 + i} ms}}\n" for i in range(3))
        found = explained(tmp_path, tasks + "  u: {time: {gpu: 3 ms}, deadline: 40 ms}\n")
        assert places(found) == ["8: tasks.t0.deadline", "9: tasks.t1.deadline"]
        # With the other one and t2 in time, three tasks in a row, it is ready after 9 ms.
        assert [member.repair.amount for member in found.members] == [9, 9]
        assert all(member.repair.whole for member in found.members)

    def test_ports_to_blame(self, tmp_path: Path) -> None:
        """One sender, two transfers of 2 ms at a time: without ports both would be there in time."""
        head = HEAD + "contention: port\n"
        tasks = (
            "  a: {time: {gpu: 1 ms}, pin: gpu}\n  b: {time: {cpu: 1 ms}, after: a, separate: s, deadline: 4 ms}\n"
            "  c: {time: {cpu: 1 ms}, after: a, separate: s, deadline: 4 ms}\n"
        )
        found = explained(tmp_path, tasks, head)
        # On one CPU they would share a transfer, and not the CPU: that they are apart does not matter.
        assert places(found) == ["10: tasks.b.deadline", "11: tasks.c.deadline"]
        assert explained(tmp_path, tasks, HEAD).status == "feasible"

    def test_peak_memory_to_blame(self, tmp_path: Path) -> None:
        """Two tasks that would fit one after the other, were there the time."""
        head = HEAD + "memory_model: peak\n"
        task = "{time: {gpu: 3 ms}, memory: {scratch: 3 GiB}}"
        later = "{time: {gpu: 1 ms}, after: [a, b], memory: {scratch: 2 GiB}}"
        hold = "{time: {gpu: 3 ms}, memory: {output: 3 GiB}}"
        assert explained(tmp_path, f"  a: {task}\n  b: {task}\n  c: {later}\n", head).status == "feasible"
        found = explained(tmp_path, f"  a: {hold}\n  b: {task}\n  c: {later}\n", head)
        assert places(found) == ["5: devices.gpu.memory"]
        assert found.members[0].repair.amount == 5 * 2**30  # b first, then a, whose output c still holds

    def test_a_budget_and_a_pool(self, tmp_path: Path) -> None:
        head = (
            "placeopt: 1\nresolution: 1 ms\nbudgets: {error: 0.1}\ndevices: {cpu: {}, npu: {count: 2}}\n"
            "pools: {board: {memory: 3 GiB, devices: npu}}\n"
        )
        task = "{time: {cpu: 9 ms, npu: 2 ms}, memory: 1 GiB, uses: {error: {npu: 0.03}}, deadline: 8 ms}"
        found = explained(tmp_path, "".join(f"  t{i}: {task}\n" for i in range(4)), head)
        assert [place for place in places(found) if "deadline" not in place] == ["3: budgets.error"]
        assert found.members[0].text == "error has 0.1 in all"
        assert repairs(found)[0] == "with 0.12 of error, 0.02 more (the minimum)"
        assert found.members[0].to_dict()["repair"]["amount"] == 0.12
        assert not found.members[0].repair.whole  # the pool conflicts as well
        found = explained(tmp_path, "".join(f"  t{i}: {task}\n" for i in range(4)), head.replace("0.1}", "0.2}"))
        assert found.members[0].text == "npu share 3 GiB of memory"
        assert places(found)[0] == "5: pools.board.memory"
        assert repairs(found)[0] == "with 4 GiB, 1 GiB more (the minimum)"

    def test_cores_and_a_licence(self, tmp_path: Path) -> None:
        head = "placeopt: 1\nresolution: 1 ms\nresources: {license: 1}\ndevices: {ws: {count: 2, cores: 4}}\n"
        tasks = "".join(f"  t{i}: {{time: 5 ms, cores: 3, deadline: 9 ms}}\n" for i in range(3))
        found = explained(tmp_path, tasks, head)
        assert places(found)[0] == "4: devices.ws.cores"
        assert found.members[0].text == "ws0, ws1 have 4 cores each"
        assert repairs(found)[0] == "with 6 cores, 2 more (the minimum)"
        tasks = "".join(f"  t{i}: {{time: 5 ms, uses: {{license: 1}}, deadline: 9 ms}}\n" for i in range(2))
        found = explained(tmp_path, tasks, head)
        assert places(found)[0] == "3: resources.license"
        assert found.members[0].text == "license has 1 at one time"
        assert repairs(found)[0] == "with 2 of license, 1 more (the minimum)"

    def test_limits_of_metrics(self, tmp_path: Path) -> None:
        head = (
            "placeopt: 1\nresolution: 1 ms\ndevices: {gpu: {power: 300 W}, cpu: {power: 60 W}}\n"
            "limits: {energy: 5.4, makespan: 45 ms}\n"
        )
        tasks = "  a: {time: {gpu: 10 ms, cpu: 50 ms}}\n  b: {time: {gpu: 10 ms, cpu: 40 ms}, after: a}\n"
        found = explained(tmp_path, tasks, head)
        assert places(found) == ["4: limits.energy", "4: limits.makespan"]
        assert [member.text for member in found.members] == ["energy is at most 5.4 J", "makespan is at most 45 ms"]
        assert repairs(found) == [
            "with the limit 6 J, 0.6 J more (the minimum)", "with the limit 50 ms, 5 ms more (the minimum)",
        ]  # fmt: skip

    def test_of_a_document_made_in_code(self) -> None:
        found = explain({
            "placeopt": 1, "devices": {"d": {"memory": 3}, "e": {"memory": 3}},
            "tasks": {"a": {"time": 1, "memory": 2, "pin": "d"}, "b": {"time": 1, "memory": 2, "pin": "d"}},
        })  # fmt: skip
        assert [str(member.place) for member in found.members] == ["devices.d.memory", "tasks.a.pin", "tasks.b.pin"]
        assert found.members[0].place.line is None


class TestAnswers:
    def test_feasible(self, tmp_path: Path) -> None:
        found = explained(tmp_path, f"  a: {{{TIMES}}}\n  b: {{{TIMES}, after: a, deadline: 2 ms}}\n")
        assert (found.status, found.members, found.minimal) == ("feasible", (), None)
        assert found.schedule is not None
        assert verify(found.problem, found.schedule).feasible

    def test_setup_times_with_a_detour_on_devices_that_tasks_exclude(self, tmp_path: Path) -> None:
        head = "placeopt: 1\nresolution: 1 ms\ndevices: {d: {setup: {x: {y: 0 ms, '*': 50 ms}, y: 1 ms}}, e: {}}\n"
        tasks = "  a: {time: 10 ms, family: x, pin: d}\n  b: {time: 1 ms, family: y, devices: e}\n"
        with pytest.raises(UnsupportedError, match="explain tries all devices for each task: setups of d: a change"):
            explained(tmp_path, tasks, head)

    def test_undecided(self, tmp_path: Path) -> None:
        found = explained(tmp_path, f"  a: {{{TIMES}}}\n", time_limit=1e-9)
        assert (found.status, found.members, found.schedule) == ("undecided", (), None)

    def test_what_is_known_when_it_is_stopped(self, tmp_path: Path) -> None:
        told: list[str] = []
        found = explained(
            tmp_path,
            "".join(f"  t{i}: {{{TIMES}, memory: 2 GiB, pin: gpu}}\n" for i in range(4)),
            on_progress=told.append,
            should_stop=lambda: len(told) > 1,
        )
        assert found.status == "infeasible"
        assert found.minimal is False
        assert len(found.members) >= 4
        assert not any(member.needed or member.repair for member in found.members)
        assert [text.split(";")[0] for text in told[:2]] == [
            "searching for a schedule, or a proof that none exists",
            "infeasible",
        ]

    def test_no_mend_is_claimed_that_leaves_another_contradiction(self, tmp_path: Path) -> None:
        found = explained(
            tmp_path,
            f"  a: {{{TIMES}, memory: 3 GiB, pin: gpu}}\n  b: {{{TIMES}, memory: 2 GiB, pin: gpu}}\n"
            f"  c: {{{TIMES}, deadline: 5 ms}}\n  d: {{{TIMES}, after: c, pin: cpu0, deadline: 6 ms}}\n"
            f"  e: {{{TIMES}, after: d, deadline: 6 ms, pin: cpu1}}\n",
        )
        assert found.members
        assert all(member.repair is not None and not member.repair.whole for member in found.members)

    def test_a_question_without_time_leaves_the_best_placement_of_the_model(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real, many = Oracle.decide, 12

        def hurried(self: Oracle, active: Sequence[int], changed: Any = None, **options: Any) -> Verdict:
            return Verdict(None) if changed else real(self, active, changed, **options)

        monkeypatch.setattr(Oracle, "decide", hurried)
        tasks = "".join(
            f"  t{i}: {{time: {{a: 1, b: 9}}, memory: {{resident: 10 MiB, scratch: 1 MiB}}}}\n" for i in range(many)
        )
        head = "placeopt: 1\nmemory_model: peak\ndevices: {a: {memory: 62 MiB}, b: {memory: 60 MiB}}\n"
        found = explained(tmp_path, tasks, head)
        # Six tasks fit on a and five on b; one more task is the least step of each.
        assert [text.split(",")[0] for text in repairs(found)] == ["with 71 MiB", "with 61 MiB"]

    def test_a_model_that_is_wrong_is_an_internal_error(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        real = Model.core

        def lying(self: Model, active: Sequence[int], seconds: float) -> Found:
            found = real(self, active, seconds)
            return Found(core=found.core[:1]) if found.core else found

        monkeypatch.setattr(Model, "core", lying)
        with pytest.raises(InternalError, match=r"claims that constraints are infeasible .* but the verifier accepts"):
            explained(tmp_path, "".join(f"  t{i}: {{{TIMES}, memory: 3 GiB, pin: gpu}}\n" for i in range(2)))

    def test_arguments(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="time_limit is 0; expected a finite number that is positive"):
            explained(tmp_path, f"  a: {{{TIMES}}}\n", time_limit=0)
        with pytest.raises(UsageError, match="time_limit is None"):
            explained(tmp_path, f"  a: {{{TIMES}}}\n", time_limit=None)
        with pytest.raises(UsageError, match='unknown solver "cpsat"; did you mean cp-sat'):
            explained(tmp_path, f"  a: {{{TIMES}}}\n", solver="cpsat")
        with pytest.raises(UsageError, match="expected the path of a problem file or its document, got int"):
            explain(3)  # type: ignore[arg-type]

    def test_rates_that_are_missing_elsewhere_are_no_mistake(self, tmp_path: Path) -> None:
        """Without its `devices` the task could still not run where there is no speed."""
        head = (
            "placeopt: 1\ndevices: {fast: {speed: 1 GFLOP/s, memory: 3}, odd: {memory: 9}, slow: {speed: 1 kFLOP/s}}\n"
        )
        tasks = "  a: {flops: 1 MFLOP, memory: 2, devices: fast}\n  b: {flops: 1 MFLOP, memory: 2, devices: fast}\n"
        found = explained(tmp_path, tasks, head)
        assert places(found) == ["2: devices.fast.memory", "4: tasks.a.devices", "5: tasks.b.devices"]
        assert found.members[1].repair.devices == ("slow",)


class TestRepair:
    def test_groups_move_to_where_there_is_room(self) -> None:
        problem = po.build_problem(
            task_names=list("abcd"), device_names=["p", "q", "r"], duration=np.ones((4, 3), dtype=np.int64),
            feasible=np.array([[1, 1, 0], [1, 1, 0], [1, 1, 1], [0, 1, 1]], dtype=np.bool_),
            resident=np.array([2, 2, 3, 1]), capacity=np.array([4, 3, 9]), group=np.array([0, 0, 1, 2]),
        )  # fmt: skip
        before = po.Schedule(np.zeros(4, dtype=np.int64), np.array([3, 2, 1, 0]))
        after = repaired(problem, before)
        assert after is not None
        assert verify(problem, after).feasible
        # d may not stay; of the others c alone fits elsewhere.
        assert after.device.tolist() == [0, 0, 2, 2]
        assert after.start.tolist() == [1, 0, 1, 0]

    def test_no_room(self) -> None:
        problem = po.build_problem(
            task_names=list("ab"), device_names=["p", "q"], duration=np.ones((2, 2), dtype=np.int64),
            resident=np.array([2, 2]), capacity=np.array([2, 1]),
        )  # fmt: skip
        assert repaired(problem, po.Schedule(np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64))) is None

    def test_a_large_set_takes_a_small_step_from_witness_to_witness(self, tmp_path: Path) -> None:
        """All but one of 40 pins can hold: HEFT finds no room for the one, the schedule of the one before does."""
        tasks = "".join(f"  t{i}: {{{TIMES}, memory: 105 MiB, pin: gpu}}\n" for i in range(40))
        found = explained(tmp_path, tasks)
        assert [place.split(": ")[1] for place in places(found)] == ["devices.gpu.memory"] + [
            f"tasks.t{i}.pin" for i in range(40)
        ]


@pytest.mark.parametrize("path", PROBLEMS, ids=lambda path: path.stem)
def test_all_constraints_make_the_problem_again(path: Path) -> None:
    system = System(begin_compilation(read_document(path)))
    assert_same(system)
    assert not system.constraints or all(c.place.line for c in system.constraints)


def assert_same(system: System) -> None:
    again = system.relaxed(range(len(system.constraints)))
    for field in ("duration", "feasible", "capacity", "release", "deadline", "group", "separation", "device_class"):
        assert np.array_equal(getattr(again, field), getattr(system.stated, field)), field


def random_document(rng: random.Random) -> dict[str, Any]:
    """A small problem with many constraints."""
    chance = rng.random
    cpus = rng.choice([1, 2])
    devices: dict[str, Any] = {"cpu": {"count": cpus}, "gpu": {"features": ["f"]}}
    for device in devices.values():
        if chance() < 0.8:
            device["memory"] = rng.randint(3, 8)
    names = [*(f"cpu{k}" for k in range(cpus)), "gpu"]
    port, peak = chance() < 0.2, chance() < 0.2
    tasks: dict[str, Any] = {}
    for i in range(rng.randint(2, 4 if port or peak else 5)):
        times = [{"cpu": rng.randint(0, 4), "gpu": rng.randint(0, 3)}, rng.randint(0, 3)]
        task: dict[str, Any] = {"time": rng.choice(times), "output": rng.randint(0, 2)}
        task["memory"] = {"resident": rng.randint(0, 3), "scratch": rng.choice([0, 0, 1])}
        if chance() < 0.4:
            task["memory"]["output"] = 0
        task["after"] = [f"t{j}" for j in range(i) if chance() < 0.4]
        if chance() < 0.15:
            task["pin"] = rng.choice(names)
        if chance() < 0.2:
            task["devices"] = rng.choice([["cpu"], ["gpu"], ["cpu0", "gpu"]])
        if chance() < 0.1:
            task["requires"] = ["f"]
        if chance() < 0.3:
            task["colocate"] = rng.sample(["x", "y"], rng.choice([1, 1, 2]))
        if chance() < 0.35:
            task["separate"] = ["s"]
        if chance() < 0.35:
            task["deadline"] = rng.randint(4, 9)
        if chance() < 0.25:
            task["release"] = rng.randint(1, 4)
        tasks[f"t{i}"] = task
    document = {
        "placeopt": 1, "resolution": "1 s", "devices": devices, "tasks": tasks,
        "links": {"default": {"bandwidth": rng.choice([1, 2]), "latency": rng.randint(0, 2)}},
        "memory_model": "peak" if peak else "sum", "contention": "port" if port else "none",
    }  # fmt: skip
    if chance() < 0.2:
        document["placement"] = {rng.choice(list(tasks)): rng.choice(names)}
    return document


def with_shares(document: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """The document with resources, budgets, cores and shared memory."""
    tasks, devices = document["tasks"], document["devices"]
    document |= {"memory_model": "sum", "contention": "none"}
    document.pop("placement", None)
    for key in ("pin", "devices", "requires", "colocate", "separate", "release", "after"):
        for task in tasks.values():
            task.pop(key, None)
    for section, name, most in (("resources", "r", 2), ("budgets", "b", 5)):
        if rng.random() < 0.7:
            document[section] = {name: rng.randint(2, most)}
            for task in tasks.values():
                if rng.random() < 0.9:
                    amounts = [rng.randint(1, 2), {"cpu": rng.randint(0, 2), "gpu": rng.randint(0, 2)}]
                    task.setdefault("uses", {})[name] = rng.choice(amounts)
    if rng.random() < 0.6:
        devices["gpu"]["cores"] = devices["cpu"]["cores"] = 2
        for task in tasks.values():
            task["cores"] = rng.randint(1, 2)
    if rng.random() < 0.3:
        document["pools"] = {"p": {"memory": rng.randint(3, 7), "devices": rng.choice([["cpu"], "*", ["cpu0", "gpu"]])}}
        for device in devices.values():
            device.pop("memory", None)
    for task in tasks.values():
        task["deadline"] = rng.randint(3, 7)
    return document


def feasible(system: System, active: Sequence[int], number: int | None = None, value: Any = None) -> bool:
    changed = {} if number is None else {number: value}
    return optimum(system.relaxed(active, changed)) is not None


class TestBruteForce:
    """Random problems against enumeration: the verdict, a minimal set, and the least repairs."""

    def test_random_problems(self) -> None:
        rng = random.Random(7)
        kinds: set[str] = set()
        verdicts = {"feasible": 0, "infeasible": 0}
        while verdicts["infeasible"] < 15:
            document = random_document(rng)
            found = self.explained(document)
            if found is None:
                continue
            verdicts[found.status] += 1
            if found.status == "infeasible":
                kinds.update(member.kind for member in found.members)
        assert verdicts["feasible"] > 5
        assert len(kinds) >= 7

    def test_random_problems_with_resources(self) -> None:
        rng = random.Random(11)
        kinds: set[str] = set()
        infeasible = 0
        while infeasible < 20:
            document = with_shares(random_document(rng), rng)
            found = self.explained(document)
            if found is not None and found.status == "infeasible":
                infeasible += 1
                kinds.update(member.kind for member in found.members)
        assert len(kinds & {"resource", "cores", "budget", "pool"}) >= 3

    def test_random_problems_with_memory_tiers(self) -> None:
        rng = random.Random(17)
        lines = 0
        while lines < 15:
            document = random_document(rng) | {"memory_model": "sum", "contention": "none"}
            for device in document["devices"].values():
                device["memory"] = rng.randint(1, 4)
                device["tiers"] = [{"memory": rng.randint(1, 4), "bandwidth": 1}] if rng.random() < 0.8 else []
            found = self.explained(document)
            if found is not None and found.status == "infeasible":
                lines += any(member.text.endswith(", and memory tiers after it") for member in found.members)

    def test_random_problems_with_limits(self) -> None:
        rng = random.Random(13)
        kinds: set[str] = set()
        infeasible = 0
        while infeasible < 15:
            document = random_document(rng) | {"memory_model": "sum", "contention": "none"}
            document["limits"] = {
                metric: rng.randint(0, most)
                for metric, most in (("makespan", 9), ("total_cost", 12), ("communication", 3), ("devices", 2))
                if rng.random() < 0.5
            }
            found = self.explained(document)
            if found is not None and found.status == "infeasible":
                infeasible += 1
                kinds.update(member.place.path[1] for member in found.members if member.kind == "limit")
        assert kinds == {"makespan", "total_cost", "communication", "devices"}

    def explained(self, document: dict[str, Any]) -> Explanation | None:
        """Explain a problem and check the answer; None if the compiler sees a contradiction."""
        try:
            system = System(begin_compilation(Document(document)))
        except SpecError:
            return None
        assert_same(system)
        found = explain(document, time_limit=60, workers=1)
        assert found.status == ("feasible" if feasible(system, range(len(system.constraints))) else "infeasible")
        if found.status == "infeasible":
            self.check(system, found)
        return found

    @staticmethod
    def check(system: System, found: Explanation) -> None:
        everything = range(len(system.constraints))
        numbers = [number_of(system, member) for member in found.members]
        assert found.minimal
        assert not feasible(system, numbers)
        for number, member in zip(numbers, found.members, strict=True):
            assert feasible(system, [other for other in numbers if other != number])
            constraint, change = system.constraints[number], member.repair
            assert change is not None
            assert change.whole == feasible(system, [other for other in everything if other != number])
            base = everything if change.whole else numbers
            assert verify(system.relaxed([k for k in base if k != number]), change.schedule).feasible
            if change.amount is not None:
                assert verify(system.relaxed(base, {number: change.amount}), change.schedule).feasible
                less = change.amount + (1 if constraint.kind == "release" else -1)
                assert change.least
                assert feasible(system, base, number, change.amount)
                assert not feasible(system, base, number, less)
            elif constraint.allowed is not None:
                assert constraint.task is not None
                alone = np.eye(system.problem.n_devices, dtype=np.bool_)
                others = system.runnable[constraint.task] & ~constraint.allowed
                assert change.least
                assert change.devices == tuple(
                    place_text(system.problem, d)
                    for d in np.flatnonzero(others).tolist()
                    if feasible(system, base, number, alone[d])
                )


def number_of(system: System, member: Member) -> int:
    (number,) = (
        k
        for k, c in enumerate(system.constraints)
        if (c.kind, c.place, c.text) == (member.kind, member.place, member.text)
    )
    return number


class TestCommand:
    TASKS = f"tasks:\n  a: {{{TIMES}, memory: 3 GiB, pin: gpu}}\n  b: {{{TIMES}, memory: 2 GiB, pin: gpu}}\n"

    def test_a_readable_block(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        Path("p.yaml").write_text(HEAD + self.TASKS)
        outcome = run("explain", "p.yaml")
        assert (outcome.code, outcome.err) == (1, "")
        assert outcome.out == (
            "problem: 2 tasks, 0 edges, 3 devices, CCR 0, memory 5 GiB of 20 GiB\n"
            "infeasible: these 3 lines conflict; without any one of them, the others can be satisfied\n\n"
            "  p.yaml:5:17: devices.gpu.memory\n"
            "      gpu has 4 GiB of memory\n"
            "      fix: with 5 GiB, 1 GiB more (the minimum)\n\n"
            "  p.yaml:8:57: tasks.a.pin\n"
            "      task a is pinned to gpu\n"
            "      fix: if the task is on one of cpu0, cpu1\n\n"
            "  p.yaml:9:57: tasks.b.pin\n"
            "      task b is pinned to gpu\n"
            "      fix: if the task is on one of cpu0, cpu1\n\n"
            "why: the 2 tasks that only fit on gpu need 5 GiB of memory together, more than the 4 GiB available\n"
            "proof: infeasibility checked: 1 claim, all by computing\n"
            "Each fix alone makes the problem feasible; solving confirmed it.\n"
        )

    def test_fixes_that_may_leave_a_conflict_say_so(self, tmp_path: Path) -> None:
        path, out = tmp_path / "p.yaml", StringIO()
        path.write_text(HEAD + self.TASKS)
        found = explain(path, time_limit=30)
        first, *others = found.members
        assert first.repair is not None
        first = replace(first, repair=replace(first.repair, whole=None))
        print_explanation(Console(file=out, width=200), replace(found, members=(first, *others)))
        text = (
            "1 GiB more (the minimum); whether the file contains another conflict was not decided within the time limit"
        )
        assert text in out.getvalue()
        assert "Each fix alone resolves this conflict; solving confirmed it." in out.getvalue()

    def test_it_fits_80_columns(self, tmp_path: Path) -> None:
        path = tmp_path / "p.yaml"
        path.write_text(HEAD + self.TASKS)
        out = StringIO()
        print_explanation(Console(file=out, width=80), explain(path, time_limit=30))
        lines = [line for line in out.getvalue().splitlines() if str(path) not in line]
        assert max(map(len, lines)) <= 80

    def test_json(self, tmp_path: Path) -> None:
        path = tmp_path / "p.yaml"
        path.write_text(HEAD + self.TASKS)
        outcome = run("explain", path, "--json", "--time-limit", "30s", "--workers", "1", "--seed", "3")
        assert (outcome.code, outcome.err) == (1, "")
        data = json.loads(outcome.out)
        assert set(data) == {
            "problem", "fingerprint", "status", "minimal", "reason", "members", "bound", "certificate", "resolution",
            "wall_time",
        }  # fmt: skip
        assert data["fingerprint"] == po.load(path).fingerprint()
        assert [member["path"] for member in data["members"]] == ["devices.gpu.memory", "tasks.a.pin", "tasks.b.pin"]
        assert data["members"][0] == {
            "kind": "memory", "path": "devices.gpu.memory", "file": str(path), "line": 5, "column": 17,
            "text": "gpu has 4 GiB of memory", "needed": True,
            "repair": {
                "text": "with 5 GiB, 1 GiB more (the minimum)", "amount": 5 * 2**30, "least": True,
                "devices": [], "whole": True, "detail": "",
            },
        }  # fmt: skip

    def test_interrupted(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "p.yaml"
        path.write_text(HEAD + self.TASKS)
        stop = Stop()
        stop.code = 130
        stop.set()
        monkeypatch.setattr("placeopt.cli.commands.problems.on_interrupt", lambda: contextlib.nullcontext(stop))
        outcome = run("explain", path)
        assert outcome.code == 130
        assert "undecided" in outcome.out

    def test_exit_codes(self, tmp_path: Path) -> None:
        path = tmp_path / "p.yaml"
        path.write_text(HEAD + f"tasks: {{a: {{{TIMES}}}}}\n")
        outcome = run("explain", path)
        assert (outcome.code, outcome.err) == (0, "")
        assert "feasible: the verifier accepts a schedule that ends at 1 ms" in outcome.out
        outcome = run("explain", path, "-t", "1ns")
        assert outcome.code == 3
        assert "undecided: neither a schedule nor a proof of infeasibility was found in this time" in outcome.out
        assert run("explain", path, "-t", "soon").code == 2
        assert run("explain", tmp_path / "none.yaml").code == 2
        path.write_text(HEAD + f"tasks: {{a: {{{TIMES}, pin: cpu}}}}\n")
        outcome = run("explain", path)
        assert (outcome.code, outcome.out) == (2, "")
        assert "tasks.a.pin" in outcome.err
