"""Models stated in Python: every key, the same document again, and errors at the line of the caller."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args, get_type_hints, is_typeddict

import numpy as np
import pytest
from documents import examples
from pydantic import BaseModel

import placeopt as po
from placeopt.io import spec
from placeopt.io.document import read_document
from placeopt.io.scalars import Text
from placeopt.io.spec import Spec
from placeopt.protocol.registry import find_solver

ROOT = Path(__file__).parents[2]
PROBLEMS = sorted((ROOT / "problems").glob("*.yaml"))
sys.path.insert(0, str(ROOT / "docs" / "_pages"))

from model_keys import PAGE, class_name, models, text  # noqa: E402


def video() -> tuple[po.Model, dict[str, Any]]:
    """A model with its parts by name."""
    m = po.Model("video", resolution="1 us", links={"default": {"bandwidth": "1 GB/s"}})
    cpu = m.add_device("cpu", count=2)
    gpu = m.add_device("gpu", memory="16 GiB")
    frame = m.add_task("frame", time={cpu: "4 ms"}, output="3 MB")
    detect = m.add_task("detect", time={cpu: "90 ms", gpu: "6 ms"}, memory="2 GiB", after=frame)
    return m, {"cpu": cpu, "gpu": gpu, "frame": frame, "detect": detect}


def everything() -> po.Model:
    """A model that states every key of the spec; no such problem could be compiled."""
    m = po.Model(
        "all", description="each key", source="a test", resolution="1 us", precision="fp16", contention="none",
        memory_model="sum", addresses={"alignment": "16 B"}, consolidate="1%",
        best_known={"objective": 9, "bound": 8}, graph={"file": "graph.json"},
        units={"time": "ms", "memory": "MiB", "bandwidth": "GB/s", "work": "GFLOP", "speed": "TFLOP/s"},
        links={"default": {"like": "nvlink-4", "bandwidth": "1 GB/s", "latency": "1 us", "energy": "60 pJ/B"}},
        pipeline={
            "overlap": True, "duplex": "full", "transfers": "free", "stages": "free", "segments": 2, "launch": "1 us",
            "machines": [0], "multicast": True, "replicas": 2, "in_flight": "gpipe", "microbatches": 4,
            "recompute": True,
        },
        limits={
            "makespan": "1 s", "total_cost": "9 s", "max_load": "1 s", "communication": "1 GB", "energy": 5,
            "memory_balance": 0.5, "relocation": "1 s", "tardiness": "1 s", "price": 3, "devices": 2,
        },
        **{"x-note": {"kept": [1, 2]}},
    )  # fmt: skip
    cpu = m.add_device("cpu", count=2, cores=8, parallel=False)
    gpu = m.add_device(
        "gpu", like="h100-sxm", type="big", memory="16 GiB", tiers=[{"memory": "64 GiB", "bandwidth": "3 GB/s"}],
        unavailable=[{"from": "1 s", "to": "2 s"}], reserved=[{"from": 0, "to": "1 KiB"}],
        setup={"llm": {"vision": "1 s", "*": "2 s"}}, initial_family="llm",
        speed={"fp16": "300 TFLOP/s"}, memory_bandwidth="1 TB/s", efficiency={"compute": 0.5, "memory": 0.8},
        overhead="10 us", features=["fp16"], power="250 W", price=2.5,
        pipeline={
            "overlap": True, "duplex": "half", "transfers": "counted", "stages": "contiguous", "segments": 1,
            "launch": "1 us", "machines": [1],
        },
    )  # fmt: skip
    m.add_link(cpu, gpu, like="pcie-5-x16", bandwidth="12 GB/s", latency="10 us", energy="60 pJ/B")
    m.add_link(gpu, cpu.members[0], one_way=True, latency="5 us")
    m.add_shared_link("root", uplink_of=[gpu], duplex="half")
    m.add_shared_link("radio", between=[cpu, "gpu"])
    power, error = m.add_resource("power", 400), m.add_budget("error", 0.1)
    m.add_pool("board", memory="6 GiB", devices=[cpu, gpu])
    resize = m.add_operation("resize", {cpu: "3 ms", gpu: "800 us"})
    read = m.add_task("read", op=resize, output="3 MB")
    work = m.add_task(
        "work", time={cpu: "4 ms", gpu: "2 ms"}, flops="2 GFLOP", bytes="8 MB", precision="fp32", output="1 MB",
        memory={"resident": "1 MB", "output": 0, "scratch": "2 MB"}, migration={"bytes": 0, "startup": {gpu: "1 s"}},
        in_place=[read], view={"of": read, "at": "1 kB"},
        backward_of=read, gradient="1 MB", release="1 ms", deadline="1 s", due={"by": "1 s", "weight": 2}, price=3,
        devices=[cpu, gpu], requires="fp16", pin=gpu, uses={power: {gpu: 300}, error: 0.01}, cores=2, family="llm",
    )  # fmt: skip
    m.add_edge(read, work, payload="50 kB")
    m.add_mode(
        work, "split", time="1 ms", flops="2 GFLOP", bytes="8 MB", precision="int8", devices=gpu, memory="1 MB",
        output=0, shards="4 MB", uses={power: 100}, cores=1, team={cpu: 2}, all_reduce="1 MB",
        all_gather=["1 MB", "2 MB"],
    )  # fmt: skip
    m.set(modes={resize: {"fast": {"time": "1 ms"}}})
    m.colocate("one", read, work)
    m.separate("two", work)
    m.set(placement={read: cpu.members[1]})
    m.set(current={"placement": {work: gpu}, "runs_before_next_change": 600, "migration": "20 kB"})
    m.minimize({"makespan": 1, "energy": 0.001}, "communication")
    return m


def stated(model: type[BaseModel], value: Any) -> Iterator[tuple[str, str]]:
    """Each model with a key that a document states, at any depth."""
    keys = {field.alias or name: name for name, field in model.model_fields.items()}
    hints = get_type_hints(model, include_extras=True)
    for key in value.keys() & keys.keys():
        yield model.__name__, key
        for inner in inner_models(hints[keys[key]]):
            yield from inside(inner, value[key])


def inside(model: type[BaseModel], value: Any) -> Iterator[tuple[str, str]]:
    known = {field.alias or name for name, field in model.model_fields.items()}
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict) and each and each.keys() <= known:
            yield from stated(model, each)
        elif isinstance(each, dict):
            for entry in each.values():
                yield from inside(model, entry)


def inner_models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from inner_models(part)


class TestKeys:
    def test_the_types_are_generated_from_the_spec(self) -> None:
        assert PAGE.read_text(encoding="utf-8") == text(), "run python docs/_pages/model_keys.py"

    def test_every_key_can_be_stated(self) -> None:
        document = everything().to_document()
        found = set(stated(Spec, document))
        known = {(each.__name__, field.alias or key) for each in models() for key, field in each.model_fields.items()}
        assert known - found == set(), "state these keys in `everything`"
        assert document["x-note"] == {"kept": [1, 2]}

    def test_methods_and_nested_keys_have_the_types_of_every_model(self) -> None:
        seen: set[str] = set()

        def visit(hint: Any) -> None:
            if is_typeddict(hint) and hint.__name__ not in seen:
                seen.add(hint.__name__)
                for inner in get_type_hints(hint).values():
                    visit(inner)
            for inner in get_args(hint):
                visit(inner)

        for name in ("__init__", "add_device", "add_link", "add_task", "add_mode", "add_pool", "add_shared_link"):
            for hint in get_type_hints(getattr(po.Model, name)).values():
                visit(hint)
        assert seen == {class_name(each) for each in models()}

    def test_only_labels_and_features_are_names_without_a_kind(self) -> None:
        """A new key that names a part should say of which kind, so that the object of the part is accepted there."""
        hints = get_type_hints(spec.TaskSpec, include_extras=True)
        kinds = {key: {mark.kind for mark in marks(hint)} for key, hint in hints.items()}
        assert {key for key, found in kinds.items() if None in found} == {
            "requires", "family", "modes", "colocate", "separate",
        }  # fmt: skip
        assert kinds["uses"] == {"resource", "device"}


def marks(hint: Any) -> Iterator[Text]:
    for inner in get_args(hint):
        if isinstance(inner, Text):
            yield inner
        yield from marks(inner)


def restated(document: dict[str, Any]) -> po.Model:
    """The model of a document, made by a call for each device, link, operation, resource, task, mode and edge."""
    links = dict(document.get("links", {}))
    called = ("devices", "operations", "resources", "budgets", "pools", "tasks", "links")
    overrides, shared = links.pop("overrides", ()), links.pop("shared", {})
    m = po.Model(**{key: value for key, value in document.items() if key not in called})
    if links:
        m.set(links=links)  # type: ignore[arg-type]
    for name, keys in document["devices"].items():
        m.add_device(name, **(keys or {}))
    for link in overrides:
        keys = {key: value for key, value in link.items() if key not in ("between", "from", "to")}
        first, second = link["between"] if "between" in link else (link["from"], link["to"])
        m.add_link(first, second, one_way="from" in link, **keys)
    for name, keys in shared.items():
        m.add_shared_link(name, **keys)
    for key, add in (("operations", m.add_operation), ("resources", m.add_resource), ("budgets", m.add_budget)):
        for name, value in document.get(key, {}).items():
            add(name, value)
    for name, keys in document.get("pools", {}).items():
        m.add_pool(name, **keys)
    for name, stated in document.get("tasks", {}).items():
        edges = stated["after"] if isinstance(stated.get("after"), dict) else {}
        apart = {"modes", *(["after"] if edges else [])}
        task = m.add_task(name, **{key: value for key, value in stated.items() if key not in apart})
        for producer, payload in edges.items():
            m.add_edge(producer, task, payload)
        for mode, entry in stated.get("modes", {}).items():
            m.add_mode(task, mode, **(entry or {}))
    return m


@pytest.mark.parametrize("path", PROBLEMS, ids=lambda path: path.stem)
class TestDocuments:
    def test_a_document_becomes_a_model_and_the_same_document(self, path: Path) -> None:
        document = read_document(path).data
        again = po.Model.from_document(document).to_document()
        assert again == document
        assert list(again) == sorted(document, key=[*Spec.model_fields, *document].index)

    def test_calls_state_the_same_document(self, path: Path) -> None:
        document = read_document(path).data
        again = restated(document).to_document()
        for entry in document.get("tasks", {}).values():
            for mode in [name for name, keys in entry.get("modes", {}).items() if keys is None]:
                entry["modes"][mode] = {}
        assert again == document

    def test_the_compiled_problem_is_the_same(self, path: Path) -> None:
        problem = po.load(path)
        model = po.Model.from_document(read_document(path).data, folder=path.parent)
        assert model.problem().fingerprint() == problem.fingerprint()

    def test_a_problem_becomes_a_model(self, path: Path) -> None:
        problem = po.load(path)
        assert po.Model.from_problem(problem).problem().fingerprint() == problem.fingerprint()


class TestParts:
    def test_they_show_what_is_stated(self) -> None:
        m, parts = video()
        assert repr(m) == "<Model video: 2 tasks, 1 edge, 3 devices>"
        assert repr(po.Model()) == "<Model: 0 tasks, 0 edges, 0 devices>"
        assert repr(parts["frame"]) == "<Task frame: {time: {cpu: 4 ms}, output: 3 MB}>"
        m.add_mode(parts["frame"], "low", time="1 ms")
        m.add_edge("detect", parts["frame"])
        assert "modes: {low: {time: 1 ms}}, after: {detect: null}" in repr(parts["frame"])
        assert repr(m.add_resource("power", 400)) == "<Resource power: 400>"
        assert repr(m.add_operation("sort", "3 ms")) == "<Operation sort: 3 ms>"
        assert len(repr(m.add_task("long", requires=[f"feature{k}" for k in range(100)]))) < 250

    def test_a_device_with_a_count_has_members(self) -> None:
        m, parts = video()
        assert [each.name for each in parts["cpu"].members] == ["cpu0", "cpu1"]
        assert parts["gpu"].members == (parts["gpu"],)
        frame = m.add_task("second", time="1 ms", pin=parts["cpu"].members[1])
        assert m.solve("heft").placement[frame.name] == "cpu1"  # type: ignore[index]

    def test_values_are_copied(self) -> None:
        m, parts = video()
        times = {parts["cpu"]: "5 ms"}
        task = m.add_task("copy", time=times)
        times[parts["gpu"]] = "1 ms"
        document = m.to_document()
        document["tasks"]["copy"]["time"]["gpu"] = "1 ms"
        assert task.entry == {"time": {"cpu": "5 ms"}} == m.to_document()["tasks"]["copy"]

    def test_edges_and_groups_extend_short_forms(self) -> None:
        m, parts = video()
        both = m.add_task("both", time="1 ms", after=["frame", parts["detect"]], colocate="one")
        last = m.add_task("last", time="1 ms", colocate=["two"])
        m.add_edge(both, last)
        m.colocate("one", both, last)
        m.separate("three", both, "frame")
        more = m.add_task("more", time="1 ms", after="frame")
        m.add_edge(last, more, "1 kB")
        tasks = m.to_document()["tasks"]
        assert tasks["both"] == {
            "time": "1 ms", "after": ["frame", "detect"], "colocate": ["one"], "separate": ["three"],
        }  # fmt: skip
        assert tasks["last"] == {"time": "1 ms", "colocate": ["two", "one"], "after": {"both": None}}
        assert tasks["more"]["after"] == {"frame": None, "last": "1 kB"}

    def test_parts_may_have_the_names_of_keys(self) -> None:
        m = po.Model.from_document({"devices": {"overrides": None, "links": None}, "tasks": {"after": None}})
        m.add_task("modes", time="1 ns", after="after")
        m.update(m.add_device("tasks"), memory="1 GiB")
        m.add_edge("modes", m.add_task("last", time="1 ns"))
        m.add_link("overrides", "links", latency="3 ns")
        m.add_mode("after", "colocate", time="2 ns")
        m.add_edge("after", "last")
        assert m.problem().n_edges == 3
        assert m.to_document()["tasks"]["last"]["after"] == {"modes": None, "after": None}


class TestCompiling:
    def test_a_model_is_compiled_once_for_each_state(self) -> None:
        m, parts = video()
        first = m.problem()
        assert m.problem() is first
        m.add_edge(m.add_task("late", time={parts["gpu"]: "1 ms"}), "detect")
        assert m.problem().task_names == ("frame", "detect", "late")
        assert m.solve("cp-sat", time_limit=10).makespan == 13_000  # 3 MB take 3 ms: 4 + 3 + 6 ms

    def test_an_objective_is_stated(self) -> None:
        m, _ = video()
        m.minimize("communication", {"makespan": 1, "max_load": Fraction(1, 2)})
        assert [[term.metric for term in level] for level in m.problem().objective.levels] == [
            ["communication"], ["makespan", "max_load"],
        ]  # fmt: skip
        m.minimize("max_load")
        assert list(m.problem().objective.metrics) == ["max_load"]

    def test_solve_takes_what_the_function_takes(self) -> None:
        m, _ = video()
        seen: list[po.Progress] = []
        result = m.solve("cp-sat", seed=3, workers=1, on_progress=seen.append)
        assert (result.solver, result.feasible, bool(seen)) == ("cp-sat", True, True)
        assert "time_limit" in (po.Model.solve.__doc__ or "")

    def test_written_files_are_the_same_problem(self, tmp_path: Path) -> None:
        m, _ = video()
        m.add_task("exact", time=np.float64(2.5), output=np.int64(3), memory=Decimal("2e3"), price=Fraction(1, 4))
        m.set(units={"time": "ms"})
        for name in ("video.yaml", "video.json"):
            m.write(tmp_path / name)
            assert po.load(tmp_path / name).fingerprint() == m.problem().fingerprint()
        assert "memory: 16 GiB" in (tmp_path / "video.yaml").read_text()

    def test_a_fraction_without_a_decimal_is_not_written(self, tmp_path: Path) -> None:
        m, _ = video()
        m.minimize({"makespan": Fraction(1, 3)})
        with pytest.raises(po.UsageError, match="1/3 cannot be written exactly; expected a decimal number"):
            m.write(tmp_path / "video.yaml")
        assert not list(tmp_path.iterdir())

    def test_files_are_named_only_if_the_caller_allows(self) -> None:
        path = ROOT / "problems" / "inception.yaml"
        document = read_document(path).data
        with pytest.raises(po.SpecError, match="the caller allows no files"):
            po.Model.from_document(document).problem()
        assert po.Model.from_document(document, folder=path.parent).problem().name == "inception"


def independent() -> tuple[po.Model, dict[str, Any]]:
    """Twelve tasks of different lengths on two unlike devices, which heuristics do not solve to optimality."""
    m = po.Model("service", resolution="1 ms")
    cpu, gpu = m.add_device("cpu"), m.add_device("gpu")
    tasks = [m.add_task(f"t{k}", time={cpu: f"{20 + 7 * k} ms", gpu: f"{9 + 5 * k % 11} ms"}) for k in range(12)]
    return m, {"cpu": cpu, "gpu": gpu, "tasks": tasks}


class TestUpdates:
    def test_keys_are_replaced_and_others_kept(self) -> None:
        m, parts = video()
        first = m.problem()
        m.update(parts["detect"], time={parts["gpu"]: "7 ms"}, pin=None)
        m.update(parts["gpu"], memory="8 GiB")
        assert repr(parts["gpu"]) == "<Device gpu: {memory: 8 GiB}>"
        assert parts["detect"].entry == {"time": {"gpu": "7 ms"}, "memory": "2 GiB", "after": "frame", "pin": None}
        changed = m.problem()
        assert changed is not first
        assert (changed.duration[1, 2], changed.capacity[2]) == (7000, 8 * 2**30)

    def test_payloads_are_replaced(self) -> None:
        m, parts = video()
        m.update_edge(parts["frame"], "detect", "5 MB")
        assert m.to_document()["tasks"]["detect"]["after"] == {"frame": "5 MB"}
        m.update_edge(parts["frame"], "detect", None)
        assert m.problem().payload.tolist() == [3_000_000]

    def test_the_next_solve_starts_from_the_last_schedule(self) -> None:
        m, parts = independent()
        given: list[po.Schedule | None] = []

        class Recorded(type(find_solver("local-search"))):  # type: ignore[misc]
            def solve(self, problem: po.Problem, options: po.Options, settings: Any) -> po.Answer:
                given.append(options.initial)
                return super().solve(problem, options, settings)

        solver, limits = Recorded(), {"time_limit": 0.2, "workers": 1}
        first = m.solve(solver, **limits)
        m.solve(solver, **limits)  # nothing has changed: the same run again
        m.update(parts["tasks"][0], time={parts["cpu"]: "3 ms", parts["gpu"]: "8 ms"})
        second = m.solve(solver, **limits)
        m.update(parts["tasks"][0], time={parts["cpu"]: "4 ms"})
        m.solve(solver, initial=None, **limits)
        m.add_task("more", time="1 ms")
        m.solve(solver, **limits)
        assert [each is None for each in given] == [True, True, False, True, True]
        assert first.schedule is not None
        assert given[2] is not None
        assert given[2].device.tolist() == first.schedule.device.tolist()
        assert second.values is not None
        assert second.values <= po.evaluate(second.problem, po.retime(second.problem, first.schedule))

    def test_a_solver_without_warm_starts_says_nothing(self) -> None:
        m, parts = independent()
        m.solve("local-search", time_limit=0.1)
        m.update(parts["tasks"][0], pin=parts["cpu"])
        assert "no effect" not in m.solve("heft").message
        m.update(parts["tasks"][0], pin=parts["gpu"])
        assert m.solve().feasible
        with pytest.raises(po.UsageError, match='unknown solver "hft"; did you mean heft'):
            m.solve("hft")

    def test_transfers_of_other_edges_are_not_used(self) -> None:
        m, parts = video()
        m.set(contention="port")
        slow = m.add_task("slow", time={parts["cpu"]: "20 ms"}, output="9 MB")
        m.add_edge(slow, m.add_task("end", time={parts["gpu"]: "1 ms"}))
        first = m.solve("cp-sat", workers=1)
        assert first.schedule is not None
        assert first.schedule.transfers is not None
        m.add_edge("frame", slow)
        second = m.solve("cp-sat", workers=1)
        assert second.feasible
        assert second.gap == 0

    def test_only_parts_are_updated(self) -> None:
        m, parts = video()
        with pytest.raises(po.UsageError, match=r"Model\.update takes the object of a task or a device, got str"):
            m.update("detect", time=3)  # type: ignore[call-overload]
        with pytest.raises(po.SpecError, match=r'devices: unknown device "cpu0"; did you mean cpu\?'):
            m.update(parts["cpu"].members[0], memory="1 GiB")
        with pytest.raises(po.SpecError, match=r'tasks\.detect\.pin: "frame" is a task; expected a device'):
            m.update(parts["detect"], pin=parts["frame"])

    def test_parts_are_found_by_name(self) -> None:
        m = po.Model.from_problem(video()[0].problem())
        m.update(m.task("detect"), time={m.device("gpu"): 7})
        m.update(m.device("cpu0"), memory="1 GiB")
        assert repr(m.device("cpu1")) == "<Device cpu1: {type: cpu}>"
        assert (m.problem().duration[1].tolist(), m.problem().capacity[0]) == ([0, 0, 7], 2**30)
        with pytest.raises(
            po.SpecError, match=r'test_modelling.py:\d+: tasks: unknown task "detct"; did you mean detect'
        ):
            m.task("detct")
        with pytest.raises(po.SpecError, match=r'test_modelling.py:\d+: devices: unknown device "x"; add it first'):
            m.device("x")

    def test_issues_have_the_line_of_the_update(self) -> None:
        m, parts = video()
        line = sys._getframe().f_lineno + 1
        m.update(parts["detect"], deadline="1 ms")
        with pytest.raises(po.SpecError, match="cannot be met") as caught:
            m.problem()
        assert [issue.line for issue in caught.value.issues] == [line]


def calls(m: po.Model, parts: dict[str, Any]) -> dict[str, Callable[[], object]]:
    """Wrong calls, by what the message says after the place."""
    gpu, cpu, frame, detect = (parts[name] for name in ("gpu", "cpu", "frame", "detect"))
    other = po.Model().add_device("other")
    add: Any = m.add_task
    return {
        'tasks.t.time.gpu: "12 MB" is an amount of memory; expected a time, such as 5 ms': lambda: add(
            "t", time={gpu: "12 MB"}
        ),
        "tasks.t.tme: unknown key; did you mean time?": lambda: add("t", tme="3 ms"),
        "tasks.t.memory.residnt: unknown key; did you mean resident?": lambda: add("t", memory={"residnt": 3}),
        'tasks.t.pin: "frame" is a task; expected a device': lambda: add("t", pin=frame),
        'tasks.t.time: "frame" is a task; expected a device': lambda: add("t", time={frame: 3}),
        'tasks.t.after: "gpu" is a device; expected a task': lambda: add("t", after=["frame", gpu]),
        'tasks.t.uses: "gpu" is a device; expected a resource': lambda: add("t", uses={gpu: 3}),
        'tasks.t.op: "gpu" is a device; expected an operation': lambda: add("t", op=gpu),
        'tasks.t.requires[0]: "gpu" is a device; expected a name as text': lambda: add("t", requires=[gpu]),
        'tasks.t: device "other" is a part of another model; expected one of this model': lambda: add("t", pin=other),
        'tasks.t: "gpu" is stated twice, as an object and as text': lambda: add("t", time={gpu: 1, "gpu": 2}),
        'tasks.frame.after: unknown edge from "detect"; add it first': lambda: m.update_edge(detect, frame, 3),
        'devices.big.speed.fp17: "fp17" is unknown; expected fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8 or int4; '
        "did you mean fp16?": lambda: m.add_device("big", speed={"fp17": 3}),  # type: ignore[dict-item]
        "tasks.t: a set has no order; expected a list": lambda: add("t", devices={"gpu", "cpu"}),
        'tasks."": a name needs at least one character': lambda: add(""),
        "a list is not a name; expected text": lambda: add(["t"]),
        "tasks: expected a name, got null": lambda: add(None),
        'tasks.gpu: "gpu" is a device; expected a task': lambda: m.add_edge(frame, gpu),
        "tasks.frame: is stated already, at HERE; expected it once": lambda: add("frame"),
        "tasks.detect.after.frame: is stated already, at HERE; expected it once": lambda: m.add_edge(frame, detect),
        'tasks: unknown task "detct"; did you mean detect?': lambda: m.add_edge(frame, "detct"),
        'tasks: unknown task "zzz"; add it first': lambda: m.colocate("one", frame, "zzz"),
        'tasks.frame.after.detect: "3 ms" is a time; expected an amount of data, such as 512 KiB': lambda: m.add_edge(
            detect, frame, "3 ms"
        ),
        "tasks.frame.modes.low.tim: unknown key; did you mean time?": lambda: m.add_mode(frame, "low", tim=3),  # type: ignore[call-arg]
        'links.overrides[1].between[0]: "frame" is a task; expected a device': lambda: m.add_link(frame, gpu),
        'links.overrides[1].latency: "3 MB" is an amount of memory; expected a time, such as 5 ms': lambda: m.add_link(
            cpu, gpu, latency="3 MB"
        ),
        "devices.big.count: 0 is too small; expected at least 1": lambda: m.add_device("big", count=0),
        'resources.r: "x" is not an amount; expected a number that is not negative': lambda: m.add_resource("r", "x"),  # type: ignore[arg-type]
        "pools.p: devices is missing": lambda: m.add_pool("p", memory="3 GiB"),  # type: ignore[call-arg]
        "contentoin: unknown key; did you mean contention?": lambda: m.set(contentoin="port"),  # type: ignore[call-arg]
        "tasks: has parts that were added at HERE; set it before them": lambda: m.set(tasks={}),
        "objective: expected at least 1 entry": lambda: m.minimize(),
        "objective.makespan: -1 is not a weight; expected a number that is not negative": lambda: m.minimize(
            {"makespan": -1}
        ),
        'resolution: "3 MB" is an amount of memory; expected a time, such as 5 ms': lambda: po.Model(resolution="3 MB"),
    }


class TestErrors:
    @pytest.mark.parametrize("message", calls(*video()))
    def test_a_wrong_part_is_an_error_at_the_line_of_its_call(self, message: str) -> None:
        m, parts = video()
        m.add_link(parts["cpu"], parts["gpu"], latency="1 us")
        before = m.problem().fingerprint()
        call = calls(m, parts)[message]
        with pytest.raises(po.SpecError) as caught:
            call()
        (issue,) = caught.value.issues
        assert issue.file == __file__
        assert re.sub(rf"{re.escape(__file__)}:\d+", "HERE", str(caught.value)) == f"HERE: {message}"
        assert m.problem().fingerprint() == before
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__ or caught.value.__context__ is None

    def test_the_line_is_that_of_the_call(self) -> None:
        m = po.Model()
        with pytest.raises(po.SpecError, match="time: -1 is negative") as caught:
            m.add_task(
                "t",
                time=-1,
            )
        (issue,) = caught.value.issues
        line = caught.tb.tb_lineno
        assert issue.line == line

    def test_all_issues_of_a_call_are_listed(self) -> None:
        with pytest.raises(po.SpecError) as caught:
            po.Model().add_task("t", time="3 MB", memory="3 ms", pin=[])  # type: ignore[arg-type]
        assert [issue.path for issue in caught.value.issues] == [
            ("tasks", "t", key) for key in ("time", "memory", "pin")
        ]

    def test_issues_of_the_whole_have_the_lines_that_stated_the_parts(self) -> None:
        m, parts = video()
        lines = [sys._getframe().f_lineno + k for k in range(1, 5)]
        m.add_task("unknown", time={"gpuu": "3 ms"})
        m.add_task("many", time="1 ms", pin=parts["cpu"])
        m.add_edge(parts["detect"], parts["frame"])
        m.add_task("nobody", time="1 ms", after="noone")
        with pytest.raises(po.SpecError) as caught:
            m.solve("heft")
        found = {(issue.path[1], issue.line): issue.message for issue in caught.value.issues}
        assert {issue.file for issue in caught.value.issues} == {__file__}
        assert found == {
            ("unknown", lines[0]): 'unknown device "gpuu"; did you mean gpu?',
            ("many", lines[1]): '"cpu" refers to 2 devices (cpu0, cpu1); pin to one of them, or use devices',
            ("frame", lines[2]): "these tasks form a cycle: frame -> detect -> frame",
            ("nobody", lines[3]): 'unknown task "noone"; known are frame, detect, unknown, many, nobody',
        }

    def test_issues_with_groups_have_the_line_of_the_group(self) -> None:
        m, parts = video()
        m.update(parts["detect"], pin=parts["gpu"])
        line = sys._getframe().f_lineno + 1
        m.colocate("both", parts["frame"], "detect")
        with pytest.raises(po.SpecError, match="no device can run every task of its colocation group") as caught:
            m.problem()
        assert [issue.line for issue in caught.value.issues] == [line]

    def test_what_is_missing_is_an_error_at_the_line_that_compiles(self) -> None:
        with pytest.raises(po.SpecError, match=rf"{re.escape(__file__)}:\d+: devices is missing"):
            po.Model().problem()

    def test_only_problems_and_documents_become_models(self) -> None:
        with pytest.raises(po.UsageError, match=r"Model\.from_problem takes a Problem, got str"):
            po.Model.from_problem("video.yaml")  # type: ignore[arg-type]
        with pytest.raises(po.UsageError, match=r"Model\.from_document takes a mapping, got str"):
            po.Model.from_document("video.yaml")  # type: ignore[arg-type]


class TestPyJobShop:
    """The last section of docs/model.md: each problem in the code of PyJobShop, then in that of placeopt."""

    FIRST, OPTIMA = "import pyjobshop", [10, 6, 13]

    def solved(self, names: dict[str, Any], key: str, *, of_pyjobshop: bool) -> list[float]:
        """The objectives of the results of a name, after each of the section's examples."""
        page = ROOT / "docs" / "model.md"
        found = examples(page)
        first = next(k for k, each in enumerate(found) if self.FIRST in each.text)
        objectives = []
        for each in found[first:]:
            if of_pyjobshop or each.reason is None:
                exec(compile("\n" * each.line + each.text, str(page), "exec"), names)
            if key in names:
                result = names.pop(key)
                assert result.objective == (result.lower_bound if of_pyjobshop else result.bound)
                objectives.append(result.objective)
        return objectives

    def test_the_page_states_the_optima(self) -> None:
        text = (ROOT / "docs" / "model.md").read_text(encoding="utf-8")
        assert [int(found) for found in re.findall(r"optimum is (\d+)", text)] == self.OPTIMA
        assert self.solved({"po": po}, "ours", of_pyjobshop=False) == self.OPTIMA

    def test_pyjobshop_finds_the_same(self) -> None:
        pytest.importorskip("pyjobshop", reason="PyJobShop is not installed: pip install pyjobshop")
        assert self.solved({"po": po}, "theirs", of_pyjobshop=True) == self.OPTIMA
