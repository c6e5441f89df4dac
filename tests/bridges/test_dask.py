"""Dask graphs in and plans out: what a graph becomes, and plans that run on real clusters of named workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import placeopt as po
from placeopt.simulation import simulate

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'placeopt[dask]'")
dask = pytest.importorskip("dask")

from dask import delayed  # noqa: E402
from dask.highlevelgraph import HighLevelGraph  # noqa: E402

Functions = Mapping[str, Callable[[Mapping[str, Any]], Any]]


def cluster(*names: str, threads: int = 1) -> Any:
    """Workers with these names in threads of this process."""
    scheduler = {"dashboard": False, "dashboard_address": ":0", "protocol": "inproc://"}
    worker = {"cls": distributed.Worker, "options": {"nthreads": threads, "dashboard_address": ":0"}}
    return distributed.SpecCluster(
        workers=dict.fromkeys(names, worker),
        scheduler={"cls": distributed.Scheduler, "options": scheduler},
        silence_logs=50,
    )


@pytest.fixture
def client() -> Iterator[Any]:
    """A client of the workers cpu and gpu."""
    with cluster("cpu", "gpu", threads=2) as found, distributed.Client(found) as connected:
        yield connected


def problem(tasks: dict[str, Any], **more: Any) -> po.Problem:
    return po.compile({"placeopt": 1, "resolution": "1 us", "devices": {"cpu": {}, "gpu": {}}, "tasks": tasks, **more})


DIAMOND = {
    "a": {"time": "20 ms"},
    "b": {"time": "20 ms", "after": ["a"]},
    "c": {"time": "20 ms", "after": ["a"], "pin": "gpu"},
    "d": {"time": "20 ms", "after": ["b", "c"], "pin": "cpu"},
}


def placed(found: po.Problem, devices: str) -> po.Schedule:
    """The schedule of a placement, one digit for each task."""
    return simulate(found, np.array([int(digit) for digit in devices]))


def forgotten(client: Any) -> bool:
    """Whether the client holds no results; it gives them up in its own thread."""
    end = time.monotonic() + 20
    while client.futures and time.monotonic() < end:
        time.sleep(0.01)
    return not client.futures


def type_name(value: object) -> str:
    return type(value).__name__


def where(inputs: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The worker that runs this, and what it was given."""
    return str(distributed.get_worker().name), dict(inputs)


CALLS: list[str] = []


def noted(_: Mapping[str, Any]) -> None:
    """Note the worker that runs this."""
    time.sleep(0.3)
    CALLS.append(str(distributed.get_worker().name))


def run_in_python(found: po.Problem, functions: Functions) -> dict[str, Any]:
    """All results, computed task by task."""
    results: dict[str, Any] = {}
    names = found.task_names
    for i in found.order.tolist():
        given = {names[a]: results[names[a]] for a in found.edge_source[found.edge_target == i].tolist()}
        results[names[i]] = functions[names[i]](given)
    return results


class TestImport:
    def test_a_graph_of_tuples(self) -> None:
        found = po.from_dask(
            {"x": 1, "y": 2, ("z", 0): (add, "x", "y"), ("z", 1): (sum, [("z", 0), "y"]), "all": ("z", 1)},
            durations={"z": "3 ms", "('z', 0)": 0.25},
            sizes={"z": "4 KiB", "x": 7},
        )
        assert found.document["tasks"] == {
            "x": {"time": "0 s", "op": "x", "output": 7},
            "y": {"time": "0 s", "op": "y", "output": 1024},
            "('z', 0)": {"time": "0.25 s", "op": "z", "output": 4096, "after": ["x", "y"]},
            "('z', 1)": {"time": "0.003 s", "op": "z", "output": 4096, "after": ["y", "('z', 0)"]},
        }
        assert found.outputs == ("('z', 1)",)
        results = run_in_python(po.compile(found.document), found.functions)
        assert found.value({name: results[name] for name in found.outputs}) == {"('z', 1)": 5}
        assert found.notes == (
            "durations: unknown for 2 tasks; taken as 0.5 s each, as Dask assumes",
            "sizes: unknown for 1 task; taken as 1024 B each, as Dask assumes",
            "the problem has 4 workers, joined by 100 MB/s; state devices, or a client",
        )

    def test_the_forms_of_a_graph_are_one(self) -> None:
        from dask._task_spec import Alias, DataNode, Task, TaskRef

        legacy = {"x": 1, "y": (add, "x", "x"), "z": "y"}
        new = {"x": DataNode("x", 1), "y": Task("y", add, TaskRef("x"), TaskRef("x")), "z": Alias("z", "y")}
        layered = HighLevelGraph.from_collections("all", legacy)
        documents = [po.from_dask(graph, durations=1, sizes=1).document for graph in (legacy, new, layered)]
        assert documents[0] == documents[1] == documents[2]

    @pytest.mark.parametrize("optimize", [True, False])
    @pytest.mark.parametrize("kind", ["array", "bag", "delayed", "list"])
    def test_collections_have_the_value_of_compute(self, kind: str, optimize: bool) -> None:
        import dask.array
        import dask.bag

        ones = dask.array.ones((20, 20), chunks=(10, 10))
        collections: dict[str, Any] = {
            "array": ones + ones.T,
            "bag": dask.bag.from_sequence(range(10), npartitions=3).map(lambda value: value + 1),
            "delayed": delayed(sum)([delayed(add)(k, 1) for k in range(4)]),
            "list": delayed([delayed(add)(1, 2), 7]),
        }
        found = po.from_dask(collections[kind], optimize=optimize)
        results = run_in_python(po.compile(found.document), found.functions)
        value = found.value({name: results[name] for name in found.outputs})
        expected = collections[kind].compute()
        assert np.array_equal(value, expected) if kind == "array" else value == expected

    def test_devices(self) -> None:
        graph = {"x": (sum, [1, 2]), "y": (sum, ["x"])}
        network = {"devices": {"slow": {"speed": "1 GFLOP/s"}, "fast": {"speed": "2 GFLOP/s"}}}
        found = po.from_dask(graph, devices=network, durations="3 s", name="n", resolution="1 ms")
        compiled = po.compile(found.document)
        assert (compiled.name, compiled.duration.tolist()) == ("n", [[3000, 1500]] * 2)
        assert any("slowest device" in note for note in found.notes)

    def test_every_seed_of_hashes_gives_the_same_document(self) -> None:
        code = (
            "import json, dask.array as da, placeopt as po\n"
            "x = da.ones((40, 40), chunks=10)\n"
            "graph = {f'k{i}': (sum, [f'k{j}' for j in range(i) if i % (j + 2) == 0]) for i in range(30)}\n"
            "print(json.dumps([po.from_dask(g).document for g in ((x + x.T).sum(), graph)]))"
        )
        seen = {
            subprocess.run(
                [sys.executable, "-c", code],
                env={**os.environ, "PYTHONHASHSEED": seed},
                capture_output=True,
                check=True,
            ).stdout
            for seed in ("1", "2")
        }
        assert len(seen) == 1
        assert len(json.loads(seen.pop())[1]["tasks"]) == 30

    @pytest.mark.parametrize(
        ("graph", "options", "said"),
        [
            (3, {}, "from_dask takes a Dask collection or graph, got int"),
            (
                {"x": (sum, ["y"]), "y": (sum, ["z"]), "z": (sum, ["x"])},
                {},
                r"these tasks form a cycle: x -> z -> y -> x",
            ),
            ({"x": "y", "y": "x"}, {}, "the aliases .* form a cycle"),
            ({("a", 1): 1, "('a', 1)": 2}, {}, r"two keys of the graph are called \"\('a', 1\)\""),
            ({"x": 1}, {"durations": {"xx": 3}}, 'durations: no task and no prefix is called "xx"; did you mean x'),
            ({"x": 1}, {"client": 3}, "from_dask takes a synchronous Client of distributed, got int"),
            ({"x": 1}, {"durations": -1}, "durations: -1 is negative"),
            ({"x": 1}, {"sizes": {"x": "3 s"}}, r"sizes\['x'\]: \"3 s\" is a time"),
        ],
    )
    def test_mistakes(self, graph: Any, options: dict[str, Any], said: str) -> None:
        with pytest.raises((po.UsageError, po.DocumentError), match=said):
            po.from_dask(graph, **options)

    def test_a_key_outside_of_the_graph(self) -> None:
        from dask._task_spec import Task, TaskRef

        with pytest.raises(po.UsageError, match='"x" reads "gone", which is not in the graph; expected a collection'):
            po.from_dask({"x": Task("x", sum, TaskRef("gone"))})

    def test_past_runs(self, client: Any) -> None:
        def slow(*_: Any) -> bytes:
            time.sleep(0.02)
            return bytes(5000)

        graph = {f"slow-{k}": (slow,) for k in range(3)}
        kept = [client.submit(slow, k, key=f"slow-{k}") for k in range(2)]
        distributed.wait(kept)
        found = po.from_dask(graph, client=client)
        compiled = po.compile(found.document)
        assert compiled.device_names == ("cpu", "gpu")
        assert found.notes == ()
        assert (compiled.duration >= 20_000).all()
        sizes = [task["output"] for task in found.document["tasks"].values()]
        assert min(sizes) >= 5000
        assert len(set(sizes)) == 1  # of the results, and their average for the third


class TestRun:
    def test_each_task_runs_where_and_when_the_plan_says(self, client: Any) -> None:
        found = problem(DIAMOND)
        plan = placed(found, "0110")
        run = po.run_on_dask(client, found, plan, dict.fromkeys("abcd", where), gather=list("abcd"))
        a = ("cpu", {})
        b, c = ("gpu", {"a": a}), ("gpu", {"a": a})
        assert run.results == {"a": a, "b": b, "c": c, "d": ("cpu", {"b": b, "c": c})}
        assert run.schedule.device.tolist() == plan.device.tolist()
        assert run.report.feasible
        assert (run.schedule.start.min(), run.makespan) == (0, max(run.schedule.start + run.durations))
        assert run.fitted.duration[2, 1] == run.durations[2]
        assert run.predicted_makespan == 80_000  # b and c share the gpu
        assert forgotten(client)

    def test_tasks_of_a_device_do_not_overlap_on_a_worker_with_threads(self, client: Any) -> None:
        names = [f"t{k}" for k in range(6)]
        found = problem({name: {"time": f"{6 - k} ms"} for k, name in enumerate(names)})
        order = [3, 1, 5, 0, 2, 4]
        took = found.duration[:, 0]
        start = np.zeros(6, dtype=np.int64)
        for before, task in pairwise(order):
            start[task] = start[before] + took[before]
        run = po.run_on_dask(client, found, po.Schedule(np.zeros(6, dtype=np.int64), start), dict.fromkeys(names, nap))
        assert run.report.feasible  # no overlap
        assert np.argsort(run.schedule.start).tolist() == order
        assert (run.durations >= 5000).all()
        assert run.results == dict.fromkeys(names, 0)

    @pytest.mark.parametrize(("in_order", "first"), [(False, "b"), (True, "a")])
    def test_a_later_task_starts_while_inputs_are_missing(self, in_order: bool, first: str) -> None:
        """The plan has a before b, and a waits for a result of the other worker."""
        found = problem({"slow": {"time": "1 ms"}, "a": {"time": "1 ms", "after": ["slow"]}, "b": {"time": "1 ms"}})
        plan = po.Schedule(np.array([1, 0, 0]), np.array([0, 1000, 2000]))
        functions = {"slow": noted, "a": nap, "b": nap}
        with cluster("cpu", "gpu") as workers, distributed.Client(workers) as client:
            run = po.run_on_dask(client, found, plan, functions, in_order=in_order)
        start = dict(zip(found.task_names, run.schedule.start.tolist(), strict=True))
        assert min("ab", key=start.__getitem__) == first
        assert run.report.feasible

    def test_two_devices_may_share_a_worker(self, client: Any) -> None:
        found = problem({"a": {"time": "50 ms"}, "b": {"time": "50 ms"}})
        shared = {"cpu": "gpu", "gpu": "gpu"}
        run = po.run_on_dask(client, found, placed(found, "01"), dict.fromkeys("ab", meets), workers=shared)
        assert run.results == {"a": True, "b": True}

    def test_results_and_plans(self, client: Any, tmp_path: Path) -> None:
        found = problem(DIAMOND)
        result = po.solve(found, "heft")
        result.save(tmp_path / "plan.json")
        for plan in (result, po.read_plan(tmp_path / "plan.json", found)):
            run = po.run_on_dask(client, found, plan, dict.fromkeys("abcd", where))
            assert list(run.results) == ["d"]

    def test_dask_without_the_plan_uses_all_workers(self, client: Any) -> None:
        found = problem({"a": {"time": "50 ms"}, "b": {"time": "50 ms"}})
        plan = placed(found, "00")
        CALLS.clear()
        run = po.run_on_dask(client, found, plan, dict.fromkeys("ab", noted), compare=True)
        assert CALLS[:2] == ["cpu", "cpu"]
        assert sorted(CALLS[2:]) == ["cpu", "gpu"]
        assert run.unrestricted_makespan is not None
        for own, shown in (
            (run.makespan // 2, "Dask is 2.00 times as fast"),
            (run.makespan * 3, "the plan is 3.00 times as fast"),
        ):
            text = repr(replace(run, unrestricted_makespan=own))
            assert ", Dask's own schedule " in text
            assert shown in text
        assert forgotten(client)
        assert po.run_on_dask(client, found, plan, dict.fromkeys("ab", where)).unrestricted_makespan is None

    def test_a_collection_goes_in_and_comes_out(self, client: Any) -> None:
        import dask.array

        ones = dask.array.ones((40, 40), chunks=(20, 20))
        collection = (ones + ones.T).sum(axis=0)
        imported = po.from_dask(collection, client=client)
        found = po.compile(imported.document)
        result = po.solve(found, "heft")
        run = po.run_on_dask(client, found, result, imported.functions, gather=imported.outputs)
        assert np.array_equal(imported.value(run.results), collection.compute())
        assert run.report.feasible
        again = po.from_dask(collection, client=client)
        assert forgotten(client)
        assert again.notes == ()
        sums = [task["output"] for task in again.document["tasks"].values() if task["op"] == "sum-aggregate"]
        assert sums == [20 * 8, 20 * 8]  # of released results

    def test_dataframes(self) -> None:
        pandas = pytest.importorskip("pandas", reason="pandas is not installed: pip install 'placeopt[frames]'")
        frames = pytest.importorskip("dask.dataframe", reason="Dask's dataframes are not installed")
        rng = np.random.default_rng(0)
        whole = pandas.DataFrame({"k": rng.integers(0, 5, 60), "v": rng.standard_normal(60), "s": list("abc") * 20})
        frame = frames.from_pandas(whole, npartitions=3)
        means = frames.from_pandas(whole.groupby("k", as_index=False)[["v"]].mean(), npartitions=2)
        collections = {
            "sum": frame.v.sum(),
            "mean": frame.v.mean(),
            "shifted": frame.v + 1,
            "filtered": frame[frame.v > 0],
            "groupby": frame.groupby("k").v.mean(),
            "sort": frame.sort_values("v"),
            "merge": frame.merge(means, on="k"),
            "nunique": frame.s.nunique(),
            "value_counts": frame.s.value_counts(),
            "describe": frame.describe(),
            "head": frame.head(5, compute=False),
        }

        def rows(name: str, value: Any) -> Any:
            if not hasattr(value, "reset_index"):
                return value
            plain = value.reset_index(drop=name == "merge")  # the order of its rows is not fixed
            return sorted(repr(row.tolist()) for row in plain.to_numpy(dtype=object).reshape(len(plain), -1))

        for name, collection in collections.items():
            expected = rows(name, collection.compute(scheduler="sync"))
            for optimize in (True, False):
                found = po.from_dask(collection, optimize=optimize)
                results = run_in_python(po.compile(found.document), found.functions)
                assert rows(name, found.value(results)) == expected, name

    def test_the_comparison_of_times(self, client: Any) -> None:
        pytest.importorskip("pandas", reason="pandas is not installed: pip install 'placeopt[frames]'")
        found = problem({"a": {"time": "1 ms"}, "b": {"time": "1 ms", "after": {"a": 10}}}, name="two")
        run = po.run_on_dask(client, found, placed(found, "01"), {"a": nap, "b": nap})
        frame = run.to_frame()
        assert frame["task"].tolist() == ["a", "b"]
        assert frame["device"].tolist() == ["cpu", "gpu"]
        assert frame["predicted_end"].tolist() == [0.001, 0.002]
        assert (frame["start"] + frame["duration"]).tolist() == pytest.approx(frame["end"].tolist())
        assert (frame["received"] >= 0).all()
        assert run.received[0] == 0  # nothing to receive
        assert run.deviation is not None
        assert repr(run).startswith("<DaskRun of two: 2 tasks, measured makespan ")
        assert f", predicted 2 ms ({run.deviation:+z.1%})>" in repr(run)

    def test_no_tasks(self, client: Any) -> None:
        found = problem({})
        run = po.run_on_dask(client, found, placed(found, ""), {})
        assert (run.results, run.makespan, run.deviation) == ({}, 0, None)

    def test_late_tasks_are_reported(self, client: Any) -> None:
        found = problem({"a": {"time": "1 us", "deadline": "1 ms"}})
        run = po.run_on_dask(client, found, placed(found, "0"), {"a": nap})
        assert [violation.rule for violation in run.report.violations] == [po.Rule.DEADLINE]
        assert repr(run).endswith(", 1 violation>")


BARRIER = threading.Barrier(2, timeout=20)
"""Of two threads of a worker in this process."""


def meets(_inputs: Mapping[str, Any]) -> bool:
    return BARRIER.wait() >= 0


STARTED, GO = threading.Event(), threading.Event()


def waits(_inputs: Mapping[str, Any]) -> None:
    STARTED.set()
    GO.wait(20)


def nap(inputs: Mapping[str, Any]) -> int:
    time.sleep(0.005)
    return len(inputs)


class TestMistakes:
    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"client": None}, "takes a synchronous Client of distributed, got NoneType"),
            ({"plan": None}, "run_on_dask takes a Schedule, got NoneType"),
            ({"plan": po.Schedule([0] * 4, [0] * 4)}, "the plan is not feasible: .*overlap"),
            ({"functions": {"a": where, "c": where}}, "functions: 2 tasks without a function: b, d"),
            ({"gather": ["aa"]}, 'gather: no task is called "aa"; did you mean a'),
            ({"workers": {"cpu": "cpu"}}, r"no worker for the devices gpu \(not in workers\); workers are cpu, gpu"),
            ({"workers": {"cpu": "cpu", "gpu": "tpu"}}, r"no worker for the devices gpu \(tpu\); workers are cpu, gpu"),
        ],
    )
    def test_arguments(self, client: Any, change: dict[str, Any], said: str) -> None:
        found = problem(DIAMOND)
        given = {"client": client, "plan": placed(found, "0110"), "functions": dict.fromkeys("abcd", where), **change}
        with pytest.raises(po.UsageError, match=said):
            po.run_on_dask(given.pop("client"), found, given.pop("plan"), given.pop("functions"), **given)

    def test_a_device_without_a_worker(self, client: Any) -> None:
        found = po.compile({"placeopt": 1, "devices": {"tpu": {}}, "tasks": {"a": {"time": 1}}})
        with pytest.raises(po.UsageError, match="no worker for the devices tpu; workers are cpu, gpu"):
            po.run_on_dask(client, found, placed(found, "0"), {"a": where})

    def test_a_function_that_raises(self, client: Any) -> None:
        def fails(inputs: Mapping[str, Any]) -> None:
            raise KeyError(f"{len(inputs)} given")

        found = problem(DIAMOND)
        functions = {**dict.fromkeys("abcd", where), "b": fails}
        with pytest.raises(po.ExecutionError, match="task b failed on worker gpu: KeyError: '1 given'") as caught:
            po.run_on_dask(client, found, placed(found, "0110"), functions)
        assert isinstance(caught.value.__cause__, KeyError)
        assert forgotten(client)

    @pytest.mark.parametrize("error", [ValueError("x" * 20_000), SystemExit(3), KeyboardInterrupt()], ids=type_name)
    def test_exceptions_of_any_kind(self, client: Any, error: BaseException) -> None:
        def fails(_inputs: Mapping[str, Any]) -> None:
            raise error

        found = problem(DIAMOND)
        functions = {**dict.fromkeys("abcd", where), "a": fails}
        name = type(error).__name__
        with pytest.raises(po.ExecutionError, match=f"^task a failed on worker cpu: {name}: ") as caught:
            po.run_on_dask(client, found, placed(found, "0110"), functions)
        assert type(caught.value.__cause__) is type(error)

    def test_a_function_that_cannot_be_sent(self, client: Any) -> None:
        lock = threading.Lock()
        found = problem({"a": {"time": 1}})
        with pytest.raises(po.UsageError, match="functions: that of task a cannot be sent to a worker"):
            po.run_on_dask(client, found, placed(found, "0"), {"a": lambda _inputs: lock})

    def test_an_exception_that_cannot_be_sent(self, client: Any) -> None:
        class OddError(Exception):
            def __reduce__(self) -> str:
                raise TypeError("never")

        def fails(_inputs: Mapping[str, Any]) -> None:
            raise OddError("odd")

        found = problem({"a": {"time": 1}})
        with pytest.raises(po.ExecutionError, match="task a failed on worker cpu: OddError: odd"):
            po.run_on_dask(client, found, placed(found, "0"), {"a": fails})

    def test_a_cancelled_run(self, client: Any) -> None:
        def cancel() -> None:
            STARTED.wait(20)
            client.cancel([distributed.Future(key, client) for key in list(client.futures)], force=True)
            GO.set()

        found = problem(DIAMOND)
        other = threading.Thread(target=cancel)
        other.start()
        with pytest.raises(po.ExecutionError, match="the run was cancelled"):
            po.run_on_dask(client, found, placed(found, "0110"), dict.fromkeys("abcd", waits))
        other.join()


@pytest.fixture
def processes() -> Iterator[Any]:
    """A client of two workers, 0 and 1, in separate processes."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=2, processes=True, dashboard_address=":0", silence_logs=50
        ) as found,
        distributed.Client(found) as connected,
    ):
        yield connected


class Deadly:
    """A result whose transfer kills its worker."""

    def __reduce__(self) -> str:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError


class TestProcesses:
    pytestmark = pytest.mark.filterwarnings("ignore")  # of Dask, when a worker is killed

    def test_a_run_and_a_worker_that_dies(self, processes: Any, tmp_path: Path) -> None:
        devices = {"0": {}, "1": {}}
        tasks = {"a": {"time": 1}, "b": {"time": 1, "after": ["a"]}, "c": {"time": 1, "after": ["b"]}}
        found = po.compile({"placeopt": 1, "resolution": "1 us", "devices": devices, "tasks": tasks})
        plan = placed(found, "010")
        functions: dict[str, Any] = dict.fromkeys("abc", lambda inputs: (os.getpid(), *inputs.values()))
        run = po.run_on_dask(processes, found, plan, functions)
        ((last, (middle, (first,))),) = run.results.values()
        assert last == first != middle
        assert os.getpid() not in (first, middle)
        assert run.report.feasible

        started = tmp_path / "started"

        def hangs(_inputs: Mapping[str, Any]) -> None:
            started.write_text(str(os.getpid()))
            time.sleep(60)

        def kill() -> None:
            while not (started.exists() and started.read_text()):
                time.sleep(0.02)
            os.kill(int(started.read_text()), signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.raises(po.ExecutionError, match="1 worker lost during the run: 1"):
            po.run_on_dask(processes, found, plan, {**functions, "b": hangs})
        killer.join()

    def test_a_worker_that_dies_while_results_are_gathered(self, processes: Any) -> None:
        found = po.compile({"placeopt": 1, "devices": {"0": {}}, "tasks": {"a": {"time": 1}}})
        deadly = type("Deadly", (), {"__reduce__": Deadly.__reduce__})  # sent by value
        with pytest.raises(po.ExecutionError, match="1 worker lost during the run: 0"):
            po.run_on_dask(processes, found, placed(found, "0"), {"a": lambda _inputs: deadly()})


def test_without_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    found = problem(DIAMOND)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(po.MissingExtraError, match=r"Dask clusters need distributed: pip install 'placeopt\[dask\]'"):
        po.run_on_dask(None, found, placed(found, "0110"), {})
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(po.MissingExtraError, match=r"Dask graphs need dask: pip install 'placeopt\[dask\]'"):
        po.from_dask({"x": 1})
