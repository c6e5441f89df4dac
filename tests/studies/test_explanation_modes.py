"""`placeopt explain` with modes and teams: lines of the file, and conflicts against enumeration."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brute_force import optimum
from brute_force_modes import random_document, with_separations, with_setups
from rich.console import Console

import placeopt as po
from placeopt.cli.terminal.studies import print_explanation
from placeopt.errors import SpecError, UnsupportedError
from placeopt.io.compiler import begin_compilation
from placeopt.io.document import Document
from placeopt.studies.explanation import Explanation, explain
from placeopt.studies.explanation.constraints import Constraint, System
from tests.studies import test_explanation as lines

HEAD = """\
placeopt: 1
resolution: 1 ms
devices:
  gpu: {count: 2, memory: 8 GiB, speed: 1 TFLOP/s}
  npu: {speed: 500 GFLOP/s}
"""
WORK = "flops: 10 GFLOP, memory: 6 GiB"


def explained(folder: Path, tasks: str, sections: str = "") -> Explanation:
    return lines.explained(folder, tasks, HEAD + sections, time_limit=30)


def fixes(found: Explanation) -> dict[str, tuple[str, str]]:
    """The text and the fix of each line, by its path."""
    assert found.status == "infeasible"
    assert found.minimal
    return {
        member.to_dict()["path"]: (member.text, "" if member.repair is None else member.repair.text)
        for member in found.members
    }


class TestLines:
    def test_a_budget_and_the_memory_of_modes(self, tmp_path: Path) -> None:
        modes = "{fp16: {}, int4: {memory: 2 GiB, uses: {error: 0.03}}}"
        tasks = "".join(f"  t{i}: {{{WORK}, devices: gpu, modes: {modes}}}\n" for i in range(3))
        found = explained(tmp_path, tasks, "budgets: {error: 0.02}\n")
        assert list(fixes(found).items())[:2] == [
            ("devices.gpu.memory", ("gpu0, gpu1 have 8 GiB of memory each", "with 12 GiB, 4 GiB more (the minimum)")),
            ("budgets.error", ("error has 0.02 in all", "with 0.03 of error, 0.01 more (the minimum)")),
        ]
        assert fixes(found)["tasks.t2.devices"] == (
            "task t2 may only run on gpu", "if the task may also run on npu in mode fp16"
        )  # fmt: skip

    def test_a_mode_a_team_and_a_window(self, tmp_path: Path) -> None:
        head = HEAD.replace("npu: {", "npu: {unavailable: [{from: 0 ms, to: 30 ms}], ")
        tasks = (
            "  layer:\n    flops: 10 GFLOP\n    deadline: 33 ms\n    modes:\n      fp16: {devices: npu}\n"
            "      split: {team: {npu: 1, gpu: 2}}\n      pair: {time: 40 ms, team: {gpu: 2}}\n"
        )
        found = fixes(lines.explained(tmp_path, tasks, head))
        assert found == {
            "devices.npu.unavailable": ("npu is unavailable from 0 s to 30 ms", "if available then"),
            "tasks.layer.modes.fp16.devices": (
                "task layer in mode fp16 may only run on npu",
                "if the task may also run on one of gpu0 in mode fp16, gpu1 in mode fp16",
            ),
            "tasks.layer.modes.split.team": (
                "task layer in mode split needs a team (npu, 2 of gpu)",
                "if the task may also run on one of gpu0 in mode split without a team, gpu1 in mode split without a "
                "team",
            ),
            "tasks.layer.deadline": (
                "task layer must end by 33 ms", "with the deadline 34 ms, 1 ms later (the minimum)"
            ),
        }  # fmt: skip

    def test_a_resource_and_modes_of_an_operation(self, tmp_path: Path) -> None:
        sections = (
            "resources: {power: 300}\nmodes:\n  matmul:\n    fast: {pin: gpu0, uses: {power: 200}}\n"
            "    slow: {time: 30 ms, uses: {power: 100}}\n"
        ).replace("pin: gpu0", "devices: gpu")
        tasks = "".join(f"  {name}: {{op: matmul, flops: 10 GFLOP, deadline: 12 ms}}\n" for name in "ab")
        found = fixes(explained(tmp_path, tasks, sections))
        assert found == {
            "resources.power": ("power has 300 at one time", "with 400 of power, 100 more (the minimum)"),
            "tasks.a.deadline": ("task a must end by 12 ms", "with the deadline 20 ms, 8 ms later (the minimum)"),
            "tasks.b.deadline": ("task b must end by 12 ms", "with the deadline 20 ms, 8 ms later (the minimum)"),
        }

    def test_a_fixed_device_and_what_a_mode_requires(self, tmp_path: Path) -> None:
        modes = "modes: {fp8: {}, fp16: {memory: 7 GiB}}"
        tasks = f"  a: {{{WORK}, requires: fast, {modes}}}\n  b: {{{WORK}, {modes}}}\n"
        head = HEAD.replace("count: 2", "features: [fast]") + "placement: {b: gpu}\n"
        found = fixes(lines.explained(tmp_path, tasks, head))
        assert found == {
            "devices.gpu.memory": ("gpu has 8 GiB of memory", "with 12 GiB, 4 GiB more (the minimum)"),
            "placement.b": ("task b is fixed on gpu", "if the task is on one of npu in mode fp8, npu in mode fp16"),
            "tasks.a.requires": (
                "task a requires fast",
                "if the task does not require fast and may also run on one of npu in mode fp8, npu in mode fp16",
            ),
        }

    def test_a_feasible_file_has_a_schedule_of_its_own_devices(self, tmp_path: Path) -> None:
        tasks = f"  a: {{{WORK}, modes: {{x: {{devices: npu}}, y: {{team: {{gpu: 2}}, time: 50 ms}}}}}}\n"
        found = explained(tmp_path, tasks)
        assert found.status == "feasible"
        assert found.schedule is not None
        assert po.verify(found.problem, found.schedule).feasible
        assert found.problem.fingerprint() == po.load(tmp_path / "p.yaml").fingerprint()

    def test_a_pipeline(self, tmp_path: Path) -> None:
        tasks = "".join(f"  t{i}: {{{WORK}, devices: gpu, modes: {{x: {{}}, y: {{memory: 5 GiB}}}}}}\n" for i in "012")
        found = fixes(explained(tmp_path, tasks, "objective: period\n"))
        assert found["devices.gpu.memory"][1] == "with 10 GiB, 2 GiB more (the minimum)"
        assert set(found) == {"devices.gpu.memory", *(f"tasks.t{i}.devices" for i in "012")}

    def test_devices_that_no_mode_may_use_need_no_figures(self, tmp_path: Path) -> None:
        head = HEAD.replace("npu: {speed: 500 GFLOP/s}", "npu: {}\n  old: {speed: 1 FLOP/s}")
        tasks = f"  a: {{{WORK}, deadline: 11 ms, modes: {{x: {{devices: gpu}}}}}}\n"
        found = lines.explained(tmp_path, tasks.replace("}}}", "}, y: {time: 12 ms}}}"), head)
        assert found.status == "feasible"
        tasks = "".join(tasks.replace("a:", f"{name}:") for name in "abc")
        assert fixes(lines.explained(tmp_path, tasks, head))["devices.gpu.memory"][1].startswith("with 12 GiB")

    def test_too_many_devices_in_all_modes(self, tmp_path: Path) -> None:
        modes = "modes: {" + ", ".join(f"m{k}: {{devices: gpu0}}" for k in range(600)) + "}"
        with pytest.raises(UnsupportedError, match="explain tries all devices in all modes, here more than"):
            lines.explained(tmp_path, f"  a: {{{WORK}, {modes}}}\n", HEAD.replace("count: 2", "count: 20"))

    def test_it_fits_80_columns(self, tmp_path: Path) -> None:
        tasks = f"  layer: {{{WORK}, modes: {{fp16: {{team: {{gpu: 2}}}}, int4: {{devices: gpu, memory: 9 GiB}}}}}}\n"
        found, out = explained(tmp_path, f"{tasks}  b: {{{WORK}, pin: gpu0}}\n  c: {{{WORK}, pin: gpu1}}\n"), StringIO()
        print_explanation(Console(file=out, width=80), found)
        assert max(len(line) for line in out.getvalue().splitlines() if str(tmp_path) not in line) <= 80
        assert "gpu0: " not in out.getvalue()


def tightened(rng: np.random.Generator) -> dict[str, Any]:
    """A small problem with modes, with restrictions of modes and times, that is often infeasible."""
    document = random_document(rng)
    tasks, devices = document["tasks"], document["devices"]
    names = list(devices)
    document.pop("objective")
    for device in devices.values():
        device.pop("tiers", None)
        device["memory"] = int(rng.integers(4, 14))
        if rng.random() < 0.25:
            begin = int(rng.integers(0, 4))
            device["unavailable"] = [{"from": begin, "to": begin + int(rng.integers(1, 6))}]
    stated = [mode for modes in document["modes"].values() for mode in modes.values()]
    stated += [mode for task in tasks.values() for mode in task.get("modes", {}).values()]
    for each in [*stated, *tasks.values()]:
        if rng.random() < 0.25 and not isinstance(each.get("team"), list):
            each["devices"] = sorted({str(rng.choice(names)) for _ in range(2)})
    for task in tasks.values():
        if rng.random() < 0.6:
            task["deadline"] = int(rng.integers(3, 16))
        if rng.random() < 0.2:
            task["release"] = int(rng.integers(1, 4))
    if rng.random() < 0.2:
        document["placement"] = {str(rng.choice(list(tasks))): str(rng.choice(names))}
    document["budgets"] = {"b": int(rng.integers(0, 2 * len(tasks)))}
    if rng.random() < 0.2:
        document["limits"] = {"total_cost": int(rng.integers(2, 16))}
    change = rng.random()
    return with_separations(document, rng) if change < 0.3 else with_setups(document, rng) if change < 0.5 else document


def without(document: dict[str, Any], constraint: Constraint) -> dict[str, Any] | None:
    """The document without the line of a constraint; None if other lines need it."""
    path = constraint.place.path
    if constraint.kind == "team" or path[0] == "modes":
        return None
    if "modes" in path and path[-1] in document["tasks"][path[1]]:  # the mode inherits that of the task
        return None
    found = deepcopy(document)
    *above, key = path
    section: Any = found
    for each in above:
        section = section[each]
    if path[0] in ("budgets", "resources") or key == "cores":
        section[key] = 99
    else:
        del section[key]
    return found


def brute(document: dict[str, Any]) -> bool:
    """Whether a document has a schedule, by enumeration."""
    try:
        return optimum(po.compile(document)) is not None
    except SpecError:
        return False


def test_random_problems_against_enumeration() -> None:
    rng, kinds, verdicts = np.random.default_rng(3), Counter[str](), Counter[str]()
    while verdicts["infeasible"] < 25:
        document = tightened(rng)
        try:
            system = System(begin_compilation(Document(document)))
        except (SpecError, UnsupportedError):  # a contradiction that the compiler sees; setup times in teams
            continue
        if system.runnable.sum(axis=1).prod() > 2000:  # too many for enumeration
            continue
        everything = range(len(system.constraints))
        found = explain(document, time_limit=60, workers=1)
        verdicts[found.status] += 1
        assert found.status == ("feasible" if brute(document) else "infeasible")
        assert lines.feasible(system, everything) == (found.status == "feasible")
        if found.status == "feasible":
            assert found.schedule is not None
            assert po.verify(found.problem, found.schedule).feasible
            continue
        lines.TestBruteForce.check(system, found)
        kinds.update(member.kind for member in found.members)
        for number, constraint in enumerate(system.constraints):
            changed = without(document, constraint)
            if changed is not None:
                rest = [other for other in everything if other != number]
                assert lines.feasible(system, rest) == brute(changed), constraint.text
    assert verdicts["feasible"] > 5
    assert len(kinds) >= 7, kinds
