"""Workflows in WfFormat: machines, files and run times, computed by hand; what is missing; mistakes."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commandline import run

import placeopt as po
from placeopt.bridges.importers.imported import Imported, ImportOptions
from placeopt.bridges.importers.registry import import_file
from placeopt.errors import DocumentError, UsageError
from placeopt.io.compiler import compile_spec
from placeopt.model.problem import UNLIMITED, Problem


def task(number: str, parents: str = "", children: str = "", reads: str = "", writes: str = "") -> dict[str, Any]:
    names = {"parents": parents, "children": children, "inputFiles": reads, "outputFiles": writes}
    return {"name": f"do-{number}", "id": number, **{key: text.split() for key, text in names.items()}}


def ran(number: str, seconds: float, machine: str | None = None, **more: Any) -> dict[str, Any]:
    return {"id": number, "runtimeInSeconds": seconds, **({} if machine is None else {"machines": [machine]}), **more}


TASKS = [
    task("A", children="B C", reads="in", writes="c1 c2"),
    task("B", parents="A", children="D", reads="c1", writes="r"),
    task("C", parents="A", children="D", reads="c1 c2", writes="s"),
    task("D", parents="B C", reads="r s"),
]
SIZES = {"in": 7, "c1": 1000, "c2": 2000, "r": 500, "s": 600}
FILES = [{"id": name, "sizeInBytes": size} for name, size in SIZES.items()]
RUNS = [ran("A", 1.5, "n1"), ran("B", 2, "n2"), ran("C", 3.25, "n1", memoryInBytes=4096), ran("D", 0.000001, "n2")]
MACHINES = [
    {"nodeName": "n1", "memoryInBytes": 8192, "cpu": {"coreCount": 2, "speedInMHz": 2400}},
    {"nodeName": "n2", "cpu": {"speedInMHz": 3000}},
]


def workflow(**changes: Any) -> dict[str, Any]:
    parts = {"tasks": TASKS, "files": FILES, "runs": RUNS, "machines": MACHINES, **changes}
    execution = {"makespanInSeconds": 9, "executedAt": "2026", "tasks": parts["runs"], "machines": parts["machines"]}
    found = {
        "name": "small",
        "schemaVersion": "1.5",
        "workflow": {
            "specification": {"tasks": parts["tasks"], "files": parts["files"]},
            "execution": {key: value for key, value in execution.items() if value is not None},
        },
    }
    return copy.deepcopy(found)


def imported(folder: Path, data: Any, **options: Any) -> Imported:
    path = folder / "w.json"
    path.write_text(json.dumps(data, indent=1))
    return import_file(path, None, ImportOptions(**options))


def problem(folder: Path, data: Any, **options: Any) -> Problem:
    return compile_spec(imported(folder, data, **options).document)


def complaints(folder: Path, data: Any) -> list[str]:
    with pytest.raises(DocumentError, match=r"w\.json") as caught:
        imported(folder, data)
    return [str(issue).split(": ", 1)[1] for issue in caught.value.issues]


def edges(found: Problem) -> dict[str, tuple[int, bool]]:
    names = found.task_names
    rows = zip(found.edge_source, found.edge_target, found.payload.tolist(), found.shared.tolist(), strict=True)
    return {names[a] + names[b]: (payload, shared) for a, b, payload, shared in rows}


class TestModel:
    def test_machines_and_run_times(self, tmp_path: Path) -> None:
        found = problem(tmp_path, workflow())
        assert (found.name, found.task_names) == ("small", ("A", "B", "C", "D"))
        assert found.device_names == ("n1", "n2")
        assert found.capacity.tolist() == [8192, UNLIMITED]
        assert found.resources is not None
        assert (found.resources.names, found.resources.capacity.tolist()) == (("cores of n1",), [2])
        assert found.resources.parallel.tolist() == [True, False]
        # A ran for 1.5 s at 2.4 GHz, B for 2 s at 3 GHz. A tick is a microsecond.
        assert found.duration.tolist() == [
            [1_500_000, 1_200_000],
            [2_500_000, 2_000_000],
            [3_250_000, 2_600_000],
            [2, 1],
        ]
        assert found.memory_model == "peak"
        assert (found.scratch.tolist(), found.output.tolist()) == ([0, 0, 4096, 0], [0] * 4)

    def test_files_are_payloads(self, tmp_path: Path) -> None:
        found = problem(tmp_path, workflow())
        # B and C read different files of A; the only consumer of B and of C reads all of theirs.
        assert edges(found) == {"AB": (1000, False), "AC": (3000, False), "BD": (500, True), "CD": (600, True)}
        # 3000 bytes at 125 MB/s take 24 us between machines.
        assert [int(found.transfer(3000, a, b)) for a, b in ((0, 1), (1, 0))] == [24, 24]

    def test_cores_of_tasks(self, tmp_path: Path) -> None:
        def cores(runs: list[dict[str, Any]], **more: Any) -> tuple[list[int | None], tuple[str, ...]]:
            found = imported(tmp_path, workflow(runs=runs, **more))
            return [entry.get("cores") for entry in found.document["tasks"].values()], found.notes

        runs = [
            ran("A", 1, "n1", coreCount=2),
            ran("B", 1, "n1", coreCount=1, avgCPU=190),  # the stated number counts
            ran("C", 1, "n1", avgCPU=190),
            ran("D", 1, "n1", avgCPU=102.5),
        ]
        stated, notes = cores(runs)
        assert stated == [2, None, 2, None]
        assert "1 task without coreCount; the number of cores is its avgCPU / 100, rounded" in notes
        stated, notes = cores([ran("A", 1, "n1", coreCount=3), ran("B", 1, "n2", coreCount=1.5), *RUNS[2:]])
        assert stated == [2, 2, None, None]
        assert "1 task that used more cores than its machine has; counted as all of its cores" in notes
        stated, notes = cores(runs, machines=[{"nodeName": "n1"}])
        assert stated == [None] * 4
        assert "2 tasks that used more than one core (up to 2); each has a device without cores for itself" in notes

    def test_cores_of_stated_devices(self, tmp_path: Path) -> None:
        data = workflow(runs=[ran("A", 1, "n1", coreCount=8), *RUNS[1:]])
        found = imported(tmp_path, data, network={"devices": {"a": {"cores": 16}}})
        assert found.document["tasks"]["A"]["cores"] == 8
        with pytest.raises(DocumentError, match="task A: the task uses at least 8, and cores of a has 4"):
            imported(tmp_path, data, network={"devices": {"a": {"cores": 4}}})

    def test_a_file_that_all_consumers_read_moves_once_to_a_device(self, tmp_path: Path) -> None:
        tasks = [task("A", writes="c1"), task("B", "A", reads="c1"), task("C", "A", reads="c1")]
        found = problem(tmp_path, workflow(tasks=tasks, runs=RUNS[:3]))
        assert edges(found) == {"AB": (1000, True), "AC": (1000, True)}

    def test_notes(self, tmp_path: Path) -> None:
        assert imported(tmp_path, workflow()).notes == (
            "1 input file written by no task (7 B); reading them costs nothing",
            "run times are scaled by the CPU speeds of the machines; a cycle counts as one FLOP",
            "the file states no bandwidth; machines are joined by 125 MB/s",
            "the recorded run took 9 s",
        )
        given = imported(tmp_path, workflow(), network={"devices": {"a": {"count": 2}}})
        assert given.notes[1:-1] == ("run times are scaled by CPU speeds to those of the slowest machine in the file",)
        one = imported(tmp_path, workflow(machines=MACHINES[:1]), network={"devices": {"a": {"count": 2}}})
        assert not [note for note in one.notes if "CPU speeds" in note]

    def test_machines_of_one_speed_and_one_core(self, tmp_path: Path) -> None:
        machines = [{"nodeName": f"n{k}"} for k in (1, 2)]
        document = imported(tmp_path, workflow(machines=machines)).document
        assert document["devices"] == {"n1": {}, "n2": {}}
        assert document["links"] == {"default": {"bandwidth": "125 MB/s"}}
        assert document["tasks"]["A"]["time"] == "1.5 s"

    def test_without_machines_and_with_devices(self, tmp_path: Path) -> None:
        found = imported(tmp_path, workflow(machines=None))
        assert "the file states no machines; the problem has 4 identical ones, joined by 125 MB/s" in found.notes
        assert compile_spec(found.document).duration[0].tolist() == [1_500_000] * 4
        other = {"devices": {"slow": {"speed": "1 GFLOP/s"}, "fast": {"speed": "4 GFLOP/s"}}}
        duration = problem(tmp_path, workflow(), network=other, resolution="1 ms", name="x").duration
        # On the slowest device as on the slowest machine: 2 s at 3 GHz are 2.5 s at 2.4 GHz.
        assert duration.tolist() == [[1500, 375], [2500, 625], [3250, 813], [1, 1]]

    def test_version_1_6(self, tmp_path: Path) -> None:
        data = {**workflow(), "schemaVersion": "1.6"}
        assert problem(tmp_path, data).fingerprint() == problem(tmp_path, workflow()).fingerprint()


class TestMissingParts:
    def test_zeros_are_noted(self, tmp_path: Path) -> None:
        files = [*FILES[:-2], {"id": "r", "sizeInBytes": 0}]
        runs = [ran("A", 0), ran("B", 2, coreCount=4, machine="n2"), {"id": "C"}]
        notes = imported(tmp_path, workflow(files=files, runs=runs)).notes
        for expected in (
            "1 file without a size; counted as 0 bytes",
            "1 file of size 0",
            "2 tasks without a run time; counted as 0 s",
            "1 task with a run time of 0 s",
            "1 task that used more cores than its machine has; counted as all of its cores",
            "2 runs without one known machine; taken to be measured on the slowest",
        ):
            assert expected in notes

    def test_no_execution_at_all(self, tmp_path: Path) -> None:
        data = workflow()
        del data["workflow"]["execution"]
        found = imported(tmp_path, data)
        assert "4 tasks without a run time; counted as 0 s" in found.notes
        assert not compile_spec(found.document).duration.any()

    def test_edges_on_one_side_or_in_files_only(self, tmp_path: Path) -> None:
        tasks = [task("A", children="B", writes="c1"), task("B", writes="r"), task("C", reads="c1 r")]
        found = imported(tmp_path, workflow(tasks=tasks, runs=RUNS[:3]))
        assert edges(compile_spec(found.document)) == {"AB": (0, False), "AC": (1000, False), "BC": (500, True)}
        assert "1 edge stated by the producer only" in found.notes
        assert "2 edges stated by files only" in found.notes

    def test_a_file_with_several_writers(self, tmp_path: Path) -> None:
        tasks = [task("A", writes="c1"), task("B", writes="c1"), task("C", "B", reads="c1"), task("D", reads="c1")]
        found = imported(tmp_path, workflow(tasks=tasks))
        assert edges(compile_spec(found.document)) == {"BC": (1000, True)}
        assert any("1 input file written by several tasks" in note for note in found.notes)

    def test_a_task_that_reads_its_own_file(self, tmp_path: Path) -> None:
        found = problem(tmp_path, workflow(tasks=[task("A", reads="c1", writes="c1")], runs=[]))
        assert found.n_edges == 0


class TestMistakes:
    @pytest.mark.parametrize("version", ["1.4", "2.0", None, 1.5])
    def test_other_versions(self, tmp_path: Path, version: Any) -> None:
        (found,) = complaints(tmp_path, {"name": "x", "schemaVersion": version, "workflow": {"tasks": []}})
        assert "expected 1.5 or 1.6" in found
        assert (json.dumps(version) in found) == (version is not None)

    def test_all_at_once(self, tmp_path: Path) -> None:
        tasks = [*TASKS, task("A"), {"parents": ["zz", 3]}, 5]
        data = workflow(
            tasks=tasks,
            files=[{"id": "c1", "sizeInBytes": -1}, {"id": "c2", "sizeInBytes": "x"}],
            runs=[ran("A", -1), ran("Q", 1), ran("A", 1), ran("B", float("nan"))],
            machines=[{"nodeName": "n1", "cpu": {"coreCount": 1.5}}, {"nodeName": "n1"}],
        )
        at = "workflow.specification"
        assert complaints(tmp_path, data) == [
            f'{at}.tasks[4].id: task "A" is stated twice',
            f"{at}.tasks[5]: id is missing; expected a name",
            f"{at}.tasks[5].parents[1]: expected a name, got 3",
            f"{at}.tasks[6]: expected an object, got 5",
            f"{at}.tasks[6]: id is missing; expected a name",
            f"{at}.files[0].sizeInBytes: -1 is not a number of bytes; expected a number that is not negative",
            f'{at}.files[1].sizeInBytes: "x" is not a number of bytes; expected a number that is not negative',
            "workflow.execution.tasks[0].runtimeInSeconds: -1 is not a run time; expected a number that is not "
            "negative",
            'workflow.execution.tasks[1].id: no task of the specification has the id "Q"',
            'workflow.execution.tasks[2].id: the run of task "A" is stated twice',
            "workflow.execution.tasks[3].runtimeInSeconds: nan is not a run time; expected a number that is not "
            "negative",
            "workflow.execution.machines[0].cpu.coreCount: 1.5 is not a whole number of cores",
            'workflow.execution.machines[1].nodeName: machine "n1" is stated twice',
        ]

    def test_unknown_tasks_and_cycles(self, tmp_path: Path) -> None:
        tasks = [task("A", parents="zz", children="yy")]
        assert complaints(tmp_path, workflow(tasks=tasks, runs=[])) == [
            'workflow.specification.tasks[0].parents[0]: no task has the id "zz"',
            'workflow.specification.tasks[0].children[0]: no task has the id "yy"',
        ]
        tasks = [task("A", parents="B"), task("B", parents="A")]
        (found,) = complaints(tmp_path, workflow(tasks=tasks, runs=[]))
        assert found == "workflow.specification.tasks[0].parents[0]: task A: these tasks form a cycle: A -> B -> A"


@pytest.mark.parametrize("recipe", ["MontageRecipe", "BlastRecipe", "EpigenomicsRecipe"])
def test_workflows_of_wfcommons(recipe: str, tmp_path: Path) -> None:
    wfcommons = pytest.importorskip("wfcommons", reason="WfCommons is not installed: pip install wfcommons")
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002 - the generator of wfcommons
    generated = wfcommons.WorkflowGenerator(getattr(wfcommons, recipe).from_num_tasks(150)).build_workflow()
    path = tmp_path / "w.json"
    generated.write_json(path)
    found = compile_spec(import_file(path).document)
    written = json.loads(path.read_text())["workflow"]
    assert sorted(found.task_names) == sorted(generated.tasks)
    names = found.task_names
    ours = {(names[a], names[b]) for a, b in zip(found.edge_source, found.edge_target, strict=True)}
    assert ours >= set(generated.edges)
    seconds = {run["id"]: run["runtimeInSeconds"] for run in written["execution"]["tasks"]}
    assert found.duration[:, 0].tolist() == [round(seconds[name] * 10**6) for name in names]


def at(second: float) -> dict[str, str]:
    return {"executedAt": f"2026-03-01T10:00:{second:09.6f}+00:00"}


def recorded(*starts: float | None, **changes: Any) -> dict[str, Any]:
    """The workflow with the starts of its runs in seconds."""
    runs = [run | (at(start) if start is not None else {}) for run, start in zip(RUNS, starts, strict=True)]
    return workflow(**{"runs": runs, **changes})


class TestRecordedRun:
    """A runs on n1 until 1.5 s, B on n2 for 2 s, C on n1 for 3.25 s, D on n2."""

    def plan(self, folder: Path, data: Any) -> tuple[dict[str, tuple[str, int]], str]:
        found = imported(folder, data, plan=True)
        assert found.plan is not None
        compiled = compile_spec(found.document)
        (folder / "plan.json").write_text(json.dumps(found.plan))
        read = po.read_plan(folder / "plan.json", compiled)
        assert not po.verify(compiled, read.schedule).violations
        rows = {name: (row["device"], row["start"]) for name, row in found.plan["tasks"].items()}
        return rows, "\n".join(found.notes)

    def test_starts_that_fit_are_kept(self, tmp_path: Path) -> None:
        rows, notes = self.plan(tmp_path, recorded(10, 11.6, 11.5, 14.9))
        assert rows == {
            "A": ("n1", 0),
            "B": ("n2", 1_600_000),
            "C": ("n1", 1_500_000),
            "D": ("n2", 4_900_000),
        }
        assert "simulated" not in notes
        assert notes.endswith("the plan of the recorded run takes 4.9 s")

    def test_tasks_run_at_once_on_the_cores_of_a_machine(self, tmp_path: Path) -> None:
        apart = [task("A", reads="in"), task("B"), task("C"), task("D")]
        rows, notes = self.plan(tmp_path, recorded(10, 10, 10.5, 13, tasks=apart))
        assert (rows["A"], rows["C"]) == (("n1", 0), ("n1", 500_000))
        assert "simulated" not in notes

    def test_a_task_waits_for_its_cores(self, tmp_path: Path) -> None:
        apart = [task("A", reads="in"), task("B"), task("C"), task("D")]
        runs = [RUNS[0], RUNS[1], RUNS[2] | {"coreCount": 2}, RUNS[3]]
        runs = [run | at(start) for run, start in zip(runs, (10, 10, 10.5, 13), strict=True)]
        rows, notes = self.plan(tmp_path, workflow(tasks=apart, runs=runs))
        assert (rows["A"], rows["C"]) == (("n1", 0), ("n1", 1_500_000))
        assert "tasks use 3 of cores of n1, which has 2" in notes

    def test_starts_that_break_the_problem_keep_their_order(self, tmp_path: Path) -> None:
        rows, notes = self.plan(tmp_path, recorded(10, 11, 11.5, 14.9))  # B starts before A ends
        assert rows["B"] == ("n2", 1_500_008)  # 1 kB at 125 MB/s
        assert rows["D"][1] == 4_750_005  # 600 B: 4.8 us
        assert "the recorded starts break 1 rule of the problem" in notes
        assert "the plan has the recorded order with simulated times" in notes

    def test_tasks_without_start_or_machine(self, tmp_path: Path) -> None:
        rows, notes = self.plan(tmp_path, recorded(10, None, None, None, runs=[ran("A", 1.5, "n1") | at(10), RUNS[1]]))
        devices = {name: device for name, (device, _) in rows.items()}
        assert devices == {"A": "n1", "B": "n2", "C": "n1", "D": "n1"}
        assert "2 tasks without one known machine; the plan runs them on n1" in notes
        assert "3 tasks without a recorded start, placed after their producers" in notes
        assert "not all starts are recorded; the plan has the recorded order with simulated times" in notes

    def test_times_without_a_zone_are_in_utc(self, tmp_path: Path) -> None:
        data = recorded(10, 11.6, 11.5, 14.9)
        runs = data["workflow"]["execution"]["tasks"]
        runs[0]["executedAt"] = "2026-03-01T10:00:10"
        runs[1]["executedAt"] = "2026-03-01T12:00:11.6+02:00"
        assert self.plan(tmp_path, data)[0]["B"] == ("n2", 1_600_000)

    def test_a_file_without_machines_has_no_plan(self, tmp_path: Path) -> None:
        for data in (workflow(machines=None), workflow(runs=[ran("A", 1)])):
            with pytest.raises(DocumentError, match="no task records a machine of the file, so the run is not a plan"):
                imported(tmp_path, data, plan=True)
        with pytest.raises(UsageError, match="--plan-out needs the machines on which the tasks ran"):
            imported(tmp_path, workflow(), plan=True, network="xeon-core:2")

    def test_a_task_that_its_machine_cannot_hold(self, tmp_path: Path) -> None:
        heavy = [*RUNS[:2], ran("C", 3.25, "n1", memoryInBytes=9000), RUNS[3]]
        with pytest.raises(UsageError, match=r"the recorded run is not a plan of this problem: n1 needs 9000 bytes"):
            imported(tmp_path, workflow(runs=heavy), plan=True)

    def test_the_command_writes_the_plan(self, tmp_path: Path) -> None:
        (tmp_path / "w.json").write_text(json.dumps(recorded(10, 11.6, 11.5, 14.9)))
        problem, plan = str(tmp_path / "w.yaml"), str(tmp_path / "plan.json")
        run("import", str(tmp_path / "w.json"), "--out", problem, "--plan-out", plan)
        assert run("verify", problem, plan).code == 0
        (tmp_path / "g.dot").write_text("digraph { a -> b }")
        refused = run("import", str(tmp_path / "g.dot"), "--plan-out", plan)
        assert refused.code == 2
        assert "takes no --plan-out; formats with it are wfformat" in refused.err
