"""What-if: changed problems, what they gain at least and at most, and how the findings are shown."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brute_force import optimum, small_problem
from commandline import run

import placeopt as po
from placeopt.errors import InternalError
from placeopt.model.building import with_changes
from placeopt.model.problem import UNLIMITED, Objective, Problem, Term
from placeopt.studies.sensitivity.changes import (
    KINDS,
    Amounts,
    Change,
    link_classes,
    make_amounts,
    make_changes,
    representable,
)
from placeopt.studies.sensitivity.findings import Variant, WhatIf, gain_texts, percent
from placeopt.studies.sensitivity.sharing import carried, share
from placeopt.verifier import verify

HEFT_10 = Path(__file__).parents[2] / "problems" / "heft-10.yaml"

DOCUMENT: dict[str, Any] = {
    "placeopt": 1,
    "name": "rack",
    "resolution": "1 us",
    "operations": {"work": {"cpu": "9.5 us", "gpu": "3.7 us"}, "rest": {"cpu": "5 us", "gpu": "0 us"}},
    "devices": {
        "core": {"type": "cpu", "memory": "1001 B"},
        "host": {"type": "cpu"},
        "gpu": {"count": 2, "memory": "7 B"},
    },
    "links": {
        "default": {"bandwidth": "3 MB/s", "latency": "5 us"},
        "overrides": [{"between": ["gpu", "gpu"], "bandwidth": "9 MB/s", "latency": "1.5 us"}],
    },
    "tasks": {
        "a": {"op": "work", "memory": "3 B", "output": "20 B"},
        "b": {"op": "work", "memory": "3 B", "after": "a", "output": "2 B"},
        "c": {"op": "work", "memory": "3 B", "after": "a", "output": "4 B", "pin": "gpu0"},
        "d": {"op": "rest", "memory": "1 B", "after": ["b", "c"], "separate": "x"},
    },
}


def document(**changed: Any) -> dict[str, Any]:
    """The document with some of its sections replaced."""
    return deepcopy(DOCUMENT) | changed


def changed(problem: Problem, name: str, amounts: Amounts | None = None) -> Change:
    (found,), _ = make_changes(problem, [name], amounts)
    return found


def of_compiled(name: str, amounts: Amounts | None = None) -> Problem:
    return changed(po.compile(document()), name, amounts).problem


class TestChangedDocuments:
    """Each change gives the problem that a changed document compiles to."""

    def test_one_more_device(self) -> None:
        devices = DOCUMENT["devices"] | {"gpu": {"count": 3, "memory": "7 B"}}
        assert of_compiled("devices:gpu").fingerprint() == po.compile(document(devices=devices)).fingerprint()

    def test_a_further_device_shares_the_links_of_its_type(self) -> None:
        links = DOCUMENT["links"] | {"shared": {"root": {"uplink_of": "gpu"}}}
        devices = DOCUMENT["devices"] | {"gpu": {"count": 3, "memory": "7 B"}}
        found = changed(po.compile(document(links=links)), "devices:gpu")
        assert found.problem.fingerprint() == po.compile(document(links=links, devices=devices)).fingerprint()
        assert "the shared links of gpu0 carry the transfers of further ones, too" in found.notes

    def test_a_further_device_has_cores_of_its_own_and_shares_the_rest(self) -> None:
        resources = {"resources": {"power": 9}, "budgets": {"error": 0.5}}
        host = {"type": "host", "cores": 4}
        tasks = {"a": {"time": 3, "cores": 2, "uses": {"power": {"host": 3}, "error": {"host": 0.2}}}}
        before = document(devices={"host0": host, "host1": host}, tasks=tasks, links={}, **resources)
        after = document(devices={f"host{k}": host for k in range(4)}, tasks=tasks, links={}, **resources)
        found = changed(po.compile(before), "devices:host", Amounts(devices=2)).problem
        expected = po.compile(after).resources
        assert found.resources is not None
        assert expected is not None
        for r, name in enumerate(expected.names):  # the order of resources differs
            place = found.resources.names.index(name)
            assert found.resources.capacity[place] == expected.capacity[r]
            assert found.resources.amounts(place).tolist() == expected.amounts(r).tolist()
        assert sorted(found.resources.names) == sorted(expected.names)
        assert found.resources.parallel.all()

    def test_capacities_of_resources(self) -> None:
        resources = {"resources": {"license": 1, "power": 300}, "budgets": {"error": 0.1}}
        devices = {"host": {"cores": 20}, "gpu": {}}
        uses = {"license": 1, "power": 30, "error": {"gpu": 0.05}}
        before = document(devices=devices, tasks={"a": {"time": 3, "uses": uses}}, links={}, **resources)
        found, notes = make_changes(po.compile(before), ["resources", "budgets"])
        assert [each.text for each in found] == [
            "one more license", "10% more power", "2 more cores of host", "50% more error",
        ]  # fmt: skip
        resources["resources"] = {"license": 1, "power": 330}
        assert notes == ()
        after = po.compile(document(devices=devices, tasks={"a": {"time": 3, "uses": uses}}, links={}, **resources))
        assert found[1].name == "resources:power"
        assert found[1].problem.fingerprint() == after.fingerprint()
        with pytest.raises(po.UsageError, match=r'resources: no renewable resource "licens"; did you mean license\?'):
            make_changes(po.compile(before), ["resources:licens"])
        with pytest.raises(po.UsageError, match='budgets: no budget "x"; the problem has none'):
            make_changes(po.compile(document()), ["budgets:x"])
        with pytest.raises(po.UsageError, match=r"resource_factor is 0\.9; expected a number from 1"):
            make_amounts(resource_factor=0.9)

    def test_two_more_devices(self) -> None:
        devices = DOCUMENT["devices"] | {"gpu": {"count": 4, "memory": "7 B"}}
        found = of_compiled("devices:gpu", Amounts(devices=2))
        assert found.device_names == ("core", "host", "gpu0", "gpu1", "gpu2", "gpu3")
        assert found.fingerprint() == po.compile(document(devices=devices)).fingerprint()

    def test_the_second_device_of_a_type_where_links_are_alike(self) -> None:
        links = {"default": DOCUMENT["links"]["default"]}
        devices = {"cpu": {"count": 2, "memory": "1 kB"}, "gpu": {"memory": "7 B"}}
        tasks = {name: {"op": "work"} for name in "ab"}
        one = po.compile(document(links=links, devices=devices, tasks=tasks))
        two = po.compile(document(links=links, devices=devices | {"gpu": {"count": 2, "memory": "7 B"}}, tasks=tasks))
        found = changed(one, "devices:gpu")
        assert found.problem.device_names == ("cpu0", "cpu1", "gpu", "gpu1")
        assert with_changes(found.problem, device_names=two.device_names).fingerprint() == two.fingerprint()

    @pytest.mark.parametrize(
        ("factor", "times"), [(2, ("4.75 us", "1.85 us", "2.5 us")), (4, ("2.375 us", "0.925 us", "1.25 us"))]
    )
    def test_a_faster_type(self, factor: int, times: tuple[str, ...]) -> None:
        faster = {"work": {"cpu": "9.5 us", "gpu": times[1]}, "rest": {"cpu": "5 us", "gpu": "0 us"}}
        compiled = po.compile(document(operations=faster))
        assert of_compiled("speed:gpu", Amounts(speed=Fraction(factor))).fingerprint() == compiled.fingerprint()
        faster = {"work": {"cpu": times[0], "gpu": "3.7 us"}, "rest": {"cpu": times[2], "gpu": "0 us"}}
        compiled = po.compile(document(operations=faster))
        assert of_compiled("speed:cpu", Amounts(speed=Fraction(factor))).fingerprint() == compiled.fingerprint()

    def test_more_memory_leaves_unlimited_devices_alone(self) -> None:
        devices = {
            "core": {"type": "cpu", "memory": "1201 B"}, "host": {"type": "cpu"}, "gpu": {"count": 2, "memory": "8 B"}
        }  # fmt: skip
        found = of_compiled("memory")
        assert found.fingerprint() == po.compile(document(devices=devices)).fingerprint()
        assert found.capacity.tolist() == [1201, UNLIMITED, 8, 8]
        assert of_compiled("memory:gpu").capacity.tolist() == [1001, UNLIMITED, 8, 8]

    def test_twice_the_bandwidth_of_a_link_class(self) -> None:
        default, override = DOCUMENT["links"]["default"], DOCUMENT["links"]["overrides"][0]
        links = {"default": default, "overrides": [override | {"bandwidth": "18 MB/s"}]}
        compiled = po.compile(document(links=links))
        assert of_compiled("bandwidth:gpu <-> gpu").fingerprint() == compiled.fingerprint()
        links = {"default": default | {"bandwidth": "4.5 MB/s"}, "overrides": [override]}
        compiled = po.compile(document(links=links))
        found = of_compiled("bandwidth:cpu <-> cpu, cpu <-> gpu", Amounts(bandwidth=Fraction(3, 2)))
        assert found.fingerprint() == compiled.fingerprint()

    def test_half_the_latency(self) -> None:
        default, override = DOCUMENT["links"]["default"], DOCUMENT["links"]["overrides"][0]
        links = {
            "default": default | {"latency": "2.5 us"}, "overrides": [override | {"latency": "0.75 us"}],
        }  # fmt: skip
        assert of_compiled("latency").fingerprint() == po.compile(document(links=links)).fingerprint()

    def test_no_link_takes_time(self) -> None:
        problem = po.compile(document())
        found = changed(problem, "network").problem
        assert not found.transfer(10**12, *np.indices((4, 4))).any()
        links = {"latency", "byte_ticks_num", "byte_ticks_den"}
        assert (
            with_changes(found, **{name: getattr(problem, name) for name in links}).fingerprint()
            == problem.fingerprint()
        )


class TestNewDevices:
    def test_a_task_pinned_to_one_of_several_stays_there(self) -> None:
        found = of_compiled("devices:gpu")
        assert found.feasible[:, -1].tolist() == [True, True, False, True]

    def test_the_largest_class_of_a_type_is_the_model(self) -> None:
        devices = {"a": {"type": "x", "memory": "1 B"}, "b": {"type": "x", "count": 2, "memory": "9 B"}}
        problem = po.compile({"placeopt": 1, "devices": devices, "tasks": {"t": {"time": 4}}})
        found = changed(problem, "devices:x").problem
        assert (found.device_names, found.capacity.tolist()) == (("a", "b0", "b1", "b3"), [1, 9, 9, 9])
        assert found.device_class.tolist() == [0, 1, 1, 1]

    def test_the_link_to_the_only_device_is_as_slow_as_its_slowest(self) -> None:
        links = [
            {"between": ["x", "y"], "bandwidth": "1 MB/s", "latency": "1 us"},
            {"between": ["x", "z"], "bandwidth": "2 MB/s", "latency": "7 us"},
        ]
        problem = po.compile({
            "placeopt": 1, "resolution": "1 us", "devices": {"x": None, "y": None, "z": None},
            "links": {"overrides": links}, "tasks": {"t": {"time": 4}},
        })  # fmt: skip
        found = changed(problem, "devices:x")
        assert found.notes == ("the link to x is as slow as the slowest of x",)
        assert found.problem.transfer(10, 0, 3) == found.problem.transfer(10, 3, 0) == 17
        assert [int(found.problem.transfer(10, 3, d)) for d in (1, 2)] == [11, 12]

    def test_alone(self) -> None:
        problem = po.compile({"placeopt": 1, "devices": {"x": None}, "tasks": {"t": {"time": 4}, "u": {"time": 4}}})
        found = changed(problem, "devices")
        assert found.notes == ("the problem has no links, so the one to x is free",)
        assert found.problem.device_names == ("x", "x1")

    def test_relocation_to_it_costs_what_the_dearest_does(self) -> None:
        problem = po.compile(document())
        ticks = np.array([[0, 5, 7, 9], [4, 0, 8, 0], [0, 0, 3, 0], [1, 2, 3, 4]])
        found = changed(with_changes(problem, relocation=ticks), "devices:cpu")
        assert found.problem.relocation[:, -1].tolist() == [5, 4, 0, 2]
        assert found.notes == ()
        ticks[0, 1], moving = 0, Objective(((Term("relocation"),),))
        found = changed(with_changes(problem, relocation=ticks, objective=moving), "devices:cpu")
        assert found.problem.relocation[:, -1].tolist() == [9, 4, 0, 2]
        assert found.notes == ("a task that relocates to the type for free pays the price of its dearest device",)

    def test_names_do_not_collide(self) -> None:
        devices = {"a57": None, "a57-1": None, "p1": {"type": "p"}, "p3": {"type": "p"}}
        problem = po.compile({"placeopt": 1, "devices": devices, "tasks": {"t": {"time": 4}}})
        made, _ = make_changes(problem, ["devices:a57", "devices:p"], Amounts(devices=2))
        assert [change.problem.device_names[4:] for change in made] == [("a57-2", "a57-3"), ("p2", "p4")]


class TestLinkClasses:
    def test_names(self) -> None:
        devices = {"cpu": {"count": 2}, "gpu": {"count": 3}, "io": None}
        links = {
            "default": {"bandwidth": "1 GB/s"},
            "overrides": [
                {"between": ["gpu0", "gpu1"], "bandwidth": "9 GB/s"},
                {"from": "cpu", "to": "io", "bandwidth": "2 GB/s"},
                {"between": ["cpu", "cpu"], "latency": "1 ms"},
            ],
        }
        problem = po.compile({"placeopt": 1, "devices": devices, "links": links, "tasks": {"t": {"time": 1}}})
        names = [each.name for each in link_classes(problem)]
        assert names == ["cpu <-> cpu", "cpu <-> gpu, gpu <-> io and 3 more", "cpu -> io", "gpu0 <-> gpu1"]
        member = sum(each.member.astype(int) for each in link_classes(problem))
        assert np.array_equal(member, ~np.eye(6, dtype=bool))

    def test_one_class(self) -> None:
        assert [each.name for each in link_classes(po.load(HEFT_10))] == ["all links"]

    def test_equal_names_are_told_apart(self) -> None:
        rng = np.random.default_rng(1)
        latency = rng.integers(1, 3, (12, 12))
        names = [f"d{d}" for d in range(12)]
        duration = np.ones((1, 12), dtype=np.int64)
        problem = po.build_problem(task_names=["t"], device_names=names, duration=duration, latency=latency)
        found = [each.name for each in link_classes(problem)]
        assert len(set(found)) == len(found) == 2


class TestWhichChanges:
    def test_all_kinds_unless_asked(self) -> None:
        made, notes = make_changes(po.compile(document()))
        assert [change.text for change in made] == [
            "one more cpu", "one more gpu", "cpu twice as fast", "gpu twice as fast", "20% more memory",
            "twice the bandwidth of cpu <-> cpu, cpu <-> gpu", "twice the bandwidth of gpu <-> gpu", "half the latency",
            "transfers take no time",
        ]  # fmt: skip
        assert notes == ()
        assert [change.name for change in made][-3:] == ["bandwidth:gpu <-> gpu", "latency", "network"]
        again, _ = make_changes(po.compile(document()), [change.name for change in reversed(made)])
        assert [change.problem.fingerprint() for change in again] == [change.problem.fingerprint() for change in made]

    def test_a_kind_as_a_whole_includes_its_parts(self) -> None:
        made, _ = make_changes(po.compile(document()), ["speed:gpu", "speed", "devices:gpu", "devices:gpu"])
        assert [change.name for change in made] == ["devices:gpu", "speed:cpu", "speed:gpu"]

    def test_setup_times_that_faster_tasks_would_make_shorter_by_way_of_another_are_a_note(self) -> None:
        setup = {"g": {"f": 1}, "h": {"f": 5, "g": 1}}
        tasks = {name: {"time": 4, "family": name} for name in "fgh"}
        problem = po.compile({"placeopt": 1, "devices": {"d": {"setup": setup}}, "tasks": tasks})
        changes, notes = make_changes(problem, ["devices", "speed"])
        assert [change.kind for change in changes] == ["devices"]
        assert len(notes) == 1
        assert notes[0].startswith("speed of d: setups of d: a change from f to h takes 5 ticks, by way of g 4 ticks")

    def test_those_that_change_nothing_are_notes(self) -> None:
        tasks = {"a": {"op": "work", "pin": "gpu0"}}
        problem = po.compile(document(links={}, devices={"gpu": {"count": 2}, "tpu": None}, tasks=tasks))
        made, notes = make_changes(problem)
        assert [change.name for change in made] == ["speed:gpu"]
        assert notes == (
            "devices of gpu: no task may run on every device of the type",
            "devices of tpu: no task may run on every device of the type",
            "speed of tpu: no task takes less time, in whole ticks",
            "memory: no device has a memory limit to raise",
            "bandwidth: no link has a limited bandwidth",
            "latency: no latency becomes shorter, in whole ticks",
            "network: transfers take no time already",
        )

    def test_words_for_other_amounts(self) -> None:
        amounts = make_amounts(more_devices=3, speed_factor=1.5, memory_factor=4, bandwidth_factor=10, latency_factor=0)
        made, _ = make_changes(
            po.compile(document()), ["devices:gpu", "speed:gpu", "memory", "latency:gpu <-> gpu"], amounts
        )
        assert [change.text for change in made] == [
            "3 more gpu", "gpu 1.5 times as fast", "4 times the memory", "no latency of gpu <-> gpu"
        ]  # fmt: skip
        assert make_amounts(memory_factor=1.2) == Amounts()
        made, _ = make_changes(po.compile(document()), "latency", make_amounts(latency_factor=0.3))
        assert made[0].text == "0.3 times the latency"
        assert made[0].problem.latency[0, 1:].tolist() == [2, 2, 2]

    def test_coarse_rounding_is_stated(self) -> None:
        (change,), _ = make_changes(po.compile(document(resolution="3 us")), ["speed:gpu"])
        assert (
            change.notes == ("times are rounded up to the 3 us tick, by up to 0%; a finer resolution avoids it",)
            or change.notes == ()
        )
        (change,), _ = make_changes(po.load(HEFT_10), ["speed"])
        assert change.notes == ("times are rounded up to the 1 s tick, by up to 20%; a finer resolution avoids it",)

    def test_relocation_is_not_recomputed_and_that_is_stated(self) -> None:
        problem = po.compile(document())
        moving = with_changes(problem, relocation=problem.duration, objective=Objective(((Term("relocation"),),)))
        notes = {change.kind: change.notes for change in make_changes(moving)[0]}
        stated = {kind for kind, texts in notes.items() if "relocation takes as long as before" in texts}
        assert stated == {"bandwidth", "latency", "network"}

    @pytest.mark.parametrize(
        ("wanted", "message"),
        [
            (
                "device",
                'no change "device"; expected devices, speed, memory, resources, budgets, bandwidth, latency, network',
            ),
            ("devices:gpuu", 'devices: no device type "gpuu"; did you mean gpu\\?'),
            ("speed:cpu0", 'speed: no device type "cpu0"; did you mean cpu\\?'),
            ("memory:", 'memory: no device type ""; expected cpu, gpu'),
            ("latency:gpu", 'latency: no link class "gpu"; expected cpu <-> cpu, cpu <-> gpu, gpu <-> gpu'),
            ("network:gpu", '"network:gpu": network changes all links; expected no link class'),
        ],
    )
    def test_changes_that_do_not_exist(self, wanted: str, message: str) -> None:
        with pytest.raises(po.UsageError, match=f"^{message}"):
            po.whatif(po.compile(document()), [wanted])

    @pytest.mark.parametrize(
        ("amount", "message"),
        [
            ({"more_devices": 0}, "more_devices is 0; expected a whole number from 1 to 1,000"),
            ({"more_devices": 1.5}, "more_devices is 1.5; expected a whole number"),
            ({"speed_factor": 0.5}, "speed_factor is 0.5; expected a number from 1 to 1,000,000"),
            ({"memory_factor": float("inf")}, "memory_factor is inf; expected a number from 1 to"),
            ({"bandwidth_factor": "2"}, "bandwidth_factor is '2'; expected a number from 1"),
            ({"latency_factor": True}, "latency_factor is True; expected a number from 0 to 1"),
            ({"latency_factor": 2}, "latency_factor is 2; expected a number from 0 to 1"),
        ],
    )
    def test_amounts_that_make_no_sense(self, amount: dict[str, Any], message: str) -> None:
        with pytest.raises(po.UsageError, match=f"^{message}"):
            po.whatif(po.compile(document()), **amount)

    def test_a_document_is_not_a_problem(self) -> None:
        with pytest.raises(
            po.UsageError, match=r"^whatif takes a Problem, got dict; placeopt.compile makes one from a document$"
        ):
            po.whatif(document())  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        "rate", [Fraction(2**40, 3**13), Fraction(1, 2**62 + 1), Fraction(2**63 - 1, 2), Fraction(1, 2**130)]
    )
    def test_rates_are_never_rounded_up(self, rate: Fraction) -> None:
        found = representable(rate)
        assert found <= rate
        assert found.numerator * found.denominator < 2**62
        assert found == rate or rate - found <= max(rate / 2**20, Fraction(1, 2**60))


def tiny(seed: int, objective: Objective | None = None) -> Problem:
    """A random problem whose changed problems `optimum` can solve too."""
    rng = np.random.default_rng(seed)
    while True:
        problem = small_problem(rng, objective, times=bool(rng.random() < 0.3))
        if problem.n_tasks <= 4 and problem.n_devices <= 2:
            return problem


class TestRelaxations:
    @pytest.mark.parametrize("seed", range(25))
    def test_bound_optimum_and_schedule_of_every_change(self, seed: int) -> None:
        problem = tiny(seed)
        found = po.whatif(problem, solver="cp-sat", workers=1, time_limit=None)
        best = optimum(problem)
        assert found.base.values == (None if best is None else best[0])
        for variant in found.variants:
            result, exact = variant.result, optimum(variant.change.problem)
            if exact is None:
                assert best is None
                assert variant.feasible is False
                continue
            value, _ = exact
            assert best is None or value <= best[0], variant.change.text
            assert result.bound is not None
            assert result.bound <= value[0]
            assert result.feasible
            assert result.values == value
            assert verify(variant.change.problem, result.schedule, result.values).feasible  # type: ignore[arg-type]

    @pytest.mark.parametrize("seed", range(20))
    def test_no_change_makes_the_bound_or_the_schedule_worse(self, seed: int) -> None:
        problem = small_problem(np.random.default_rng(seed), Objective())
        found = po.whatif(problem, solver="heft")
        base = found.base
        for variant in found.variants:
            result = variant.result
            if base.feasible:
                assert result.feasible
                assert result.values is not None
                assert result.values <= base.values  # type: ignore[operator]
            if result.feasible:
                assert result.schedule is not None
                assert verify(result.problem, result.schedule, result.values).feasible
            if variant.feasible is False:
                assert base.termination is po.Termination.INFEASIBLE
            elif base.termination is not po.Termination.INFEASIBLE:
                assert result.bound is not None
                assert base.bound is not None
                assert result.bound <= base.bound
                assert base.objective is None or not base.feasible or base.bound <= base.objective
            if variant.gain is not None:
                assert variant.gain_at_least is not None
                assert variant.gain_at_most is not None
                assert 0 <= variant.gain_at_least <= variant.gain <= variant.gain_at_most <= 1
        network = [variant.result for variant in found.variants if variant.change.kind == "network"]
        for variant in found.variants:
            if network and variant.change.kind in ("bandwidth", "latency") and network[0].feasible:
                assert network[0].bound <= variant.result.bound  # type: ignore[operator]

    @pytest.mark.parametrize("contention", ["none", "port"])
    @pytest.mark.parametrize("memory_model", ["sum", "peak"])
    def test_a_schedule_stays_feasible_and_becomes_no_worse(self, contention: Any, memory_model: Any) -> None:
        count = 0
        for seed in range(20):
            problem = replace(
                small_problem(np.random.default_rng(seed)), contention=contention, memory_model=memory_model
            )
            result = po.solve(problem, "cp-sat", workers=1)
            if result.schedule is None or not result.feasible:
                continue
            for change in make_changes(problem)[0]:
                found = carried(change.problem, result.schedule)
                assert found is not None, change.text
                values = verify(change.problem, found).objective
                assert values is not None
                assert values <= result.values  # type: ignore[operator]
                count += 1
        assert count > 66


class TestSharing:
    @pytest.fixture
    def base(self) -> po.Result:
        return po.solve(po.load(HEFT_10), "single")

    @pytest.fixture
    def faster(self) -> Change:
        return changed(po.load(HEFT_10), "bandwidth:all links")

    def test_a_schedule_found_for_a_change_serves_the_problem_as_it_is(self, base: po.Result, faster: Change) -> None:
        found = po.solve(faster.problem, "heft")
        shared, (result,) = share(base, [faster], [found])
        assert base.objective is not None
        assert shared.objective is not None
        assert shared.objective < base.objective
        assert shared.schedule is not None
        assert verify(shared.problem, shared.schedule, shared.values).feasible
        assert sum(use.tasks for use in shared.devices) == 10
        assert result.objective == found.objective
        assert Variant(faster, result, shared).gain == pytest.approx(
            float(1 - Fraction(result.objective, shared.objective))
        )  # type: ignore[arg-type]

    def test_a_schedule_on_a_new_device_serves_nothing_else(self, base: po.Result) -> None:
        new = changed(po.load(HEFT_10), "devices")
        alone = po.Schedule(np.full(10, 3), po.simulate(new.problem, np.full(10, 3)).start)
        found = replace(po.solve(new.problem, "single"), schedule=alone)
        shared, _ = share(base, [new], [found])
        assert shared is base

    def test_the_bound_of_a_change_bounds_the_problem_as_it_is(self, base: po.Result, faster: Change) -> None:
        found = po.solve(faster.problem, "cp-sat", workers=1)
        shared, (result,) = share(replace(base, bound=50), [faster], [found])
        assert (shared.bound, shared.bound_source) == (62, "cp-sat (twice the bandwidth of all links)")
        assert result is found

    def test_a_bound_of_the_network_bounds_its_parts_and_never_the_other_way_round(self, faster: Change) -> None:
        limit = changed(po.load(HEFT_10), "network")
        base = po.solve(po.load(HEFT_10), "cp-sat", workers=1)
        weak, strong = (
            replace(po.solve(faster.problem, "single"), bound=40),
            po.solve(limit.problem, "cp-sat", workers=1),
        )
        shared, (part, whole) = share(base, [faster, limit], [weak, strong])
        assert (shared.bound, part.bound, whole.bound) == (73, 48, 48)
        assert part.bound_source == "cp-sat (transfers take no time)"

    def test_contradictions_are_errors(self, base: po.Result, faster: Change) -> None:
        found = po.solve(faster.problem, "heft")
        optimal = replace(base, termination=po.Termination.OPTIMAL)
        with pytest.raises(InternalError, match=r"^single claims that heft-10 is optimal, but a schedule of a similar"):
            share(optimal, [faster], [found])
        wrong = replace(found, bound=1000, bound_source="wishing")
        with pytest.raises(
            InternalError, match=r"^wishing proves a bound of 1000 for twice the bandwidth of all links, b"
        ):
            share(po.solve(po.load(HEFT_10), "cp-sat", workers=1), [faster], [wrong])
        none = replace(
            found, termination=po.Termination.INFEASIBLE, schedule=None, feasible=None, values=None, bound=None
        )
        with pytest.raises(
            InternalError, match=r"^heft claims that heft-10, twice the bandwidth of all links is infeasible"
        ):
            share(base, [faster], [none])


def cramped() -> Problem:
    """No task fits into any device, and 20% more memory does not help."""
    return with_changes(po.compile(document()), capacity=np.full(4, 5), resident=np.full(4, 6))


class TestInfeasible:
    def test_which_change_makes_it_feasible(self) -> None:
        problem = cramped()
        found = po.whatif(problem, solver="heft")
        assert found.base.termination is po.Termination.INFEASIBLE
        verdicts = {variant.change.kind: variant.feasible for variant in found.variants}
        assert verdicts["memory"] is False  # 6 B, and outputs need room too
        assert found.conclusion == "the problem is infeasible; no change makes it feasible"
        found = po.whatif(problem, solver="heft", memory_factor=10)
        assert found.conclusion == "the problem is infeasible; feasible with: 10 times the memory"
        (memory,) = [variant for variant in found.variants if variant.feasible]
        assert (memory.gain, memory.gain_at_least, memory.gain_at_most) == (None, None, None)
        assert memory.result.objective is not None

    def test_a_change_that_is_infeasible_too_proves_it(self) -> None:
        problem = cramped()
        change = changed(problem, "latency")
        unknown = replace(po.solve(problem, "heft"), termination=po.Termination.TIME_LIMIT)
        base, _ = share(unknown, [change], [po.solve(change.problem, "heft")])
        assert (base.termination, base.message) == (
            po.Termination.INFEASIBLE,
            "infeasible even with this change: half the latency",
        )


@pytest.fixture(scope="module")
def found() -> WhatIf:
    """The findings for heft-10, all proved."""
    return po.whatif(po.load(HEFT_10), solver="cp-sat", workers=1, time_limit=None)


class TestFindings:
    def test_gains(self, found: WhatIf) -> None:
        assert (found.base.objective, found.base.bound) == (73, 73)
        rows = {row["name"]: row for row in found.rows()}
        assert {name: row["objective"] for name, row in rows.items()} == {
            "devices:processor": 73, "speed:processor": 47, "bandwidth:all links": 62, "network": 48
        }  # fmt: skip
        assert rows["network"]["gain"] == rows["network"]["gain_at_most"] == (73 - 48) / 73
        assert found.conclusion == "a faster network gains at most 34.25%; processor twice as fast gains 35.62%"

    def test_weak_bounds(self) -> None:
        weak = po.whatif(po.load(HEFT_10), ["speed", "network"], solver="heft")
        speed, network = weak.variants
        assert weak.base.objective == 80
        assert speed.gain_at_least is not None
        assert speed.gain is not None
        assert speed.gain_at_most is not None
        assert speed.gain_at_least < speed.gain < speed.gain_at_most
        assert network.gain_at_most == pytest.approx(float((80 - Fraction(network.result.bound or 0)) / 80))
        gain, least, most = gain_texts(speed)
        assert float(least[:-1]) <= float(gain[:-1]) <= float(most[:-1])

    def test_nothing_gains(self) -> None:
        tasks = {"a": {"time": {"x": 3}}}
        problem = po.compile({"placeopt": 1, "devices": {"x": None}, "tasks": tasks})
        found = po.whatif(problem, ["devices"], solver="heft")
        assert found.conclusion == "no change was found to gain anything, and none gains more than 0.00%"

    def test_texts(self, found: WhatIf) -> None:
        assert repr(found) == f"<WhatIf of 4 changes of heft-10: {found.conclusion}>"
        lines = str(found).splitlines()
        assert lines[1].split("  ")[0] == "change"
        assert lines[2].split() == ["as", "it", "is", "73", "s", "73", "s", "0.00%"]
        assert lines[4].split()[-3:] == ["35.62%", "35.62%", "35.62%"]
        assert lines[-1] == found.conclusion
        assert "<table>" in found._repr_html_()

    def test_data(self, found: WhatIf) -> None:
        data = json.loads(json.dumps(found.to_dict()))
        assert data["base"]["objective"] == 73
        assert [row["kind"] for row in data["changes"]] == ["devices", "speed", "bandwidth", "network"]
        assert data["notes"] == list(found.notes)
        assert data["left_out"] == []

    def test_frame(self, found: WhatIf) -> None:
        pytest.importorskip("pandas", reason="pandas is not installed: pip install 'placeopt[frames]'")
        frame = found.to_frame()
        assert frame["objective"].tolist() == [73, 47, 62, 48]
        assert list(frame.columns) == list(found.rows()[0])

    def test_picture(self, found: WhatIf, tmp_path: Path) -> None:
        pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'placeopt[plots]'")
        picture = found.plot(tmp_path / "gains.svg", title="mine")
        assert (tmp_path / "gains.svg").stat().st_size > 1000
        (axes,) = picture.axes
        labels = [text.get_text() for text in axes.get_yticklabels()]
        assert labels[-1] == "as it is"
        assert labels[0] == "transfers take no time"
        ends = sorted({round(bar.get_x(), 6) for bar in axes.patches if bar.get_width() > 0})  # type: ignore[attr-defined]
        assert ends == [47.0, 48.0, 62.0]
        with pytest.raises(po.UsageError, match=r'^cannot draw gains.txt: its name ends in ".txt"; expected one of'):
            found.plot("gains.txt")

    def test_a_picture_without_a_schedule(self) -> None:
        pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'placeopt[plots]'")
        (axes,) = po.whatif(cramped(), ["devices:gpu"], solver="heft").plot().axes
        assert [text.get_text() for text in axes.get_yticklabels()] == ["one more gpu", "as it is"]
        assert "infeasible" in [text.get_text() for text in axes.texts]

    def test_shares_are_rounded_to_what_is_proved(self) -> None:
        assert (percent(0.123456), percent(0.123456, up=True)) == ("12.34%", "12.35%")
        assert (percent(0.3), percent(0.3, up=True)) == ("30.00%", "30.00%")

    def test_stopping_reports_what_is_done(self) -> None:
        seen: list[tuple[int, int, str]] = []
        found = po.whatif(
            po.load(HEFT_10), solver="heft", should_stop=lambda: len(seen) > 2,
            on_change=lambda *stage: seen.append(stage),
        )  # fmt: skip
        assert seen == [
            (0, 5, "the problem as it is"), (1, 5, "one more processor"), (2, 5, "processor twice as fast")
        ]  # fmt: skip
        assert [change.name for change in found.left_out] == ["bandwidth:all links", "network"]
        assert found.remarks()[-1] == "not examined: twice the bandwidth of all links, transfers take no time"
        assert found.to_dict()["left_out"] == ["bandwidth:all links", "network"]

    def test_the_first_level_of_several_decides(self) -> None:
        levels = Objective(((Term("energy"),), (Term("makespan"),)))
        problem = with_changes(po.compile(document()), objective=levels, power_num=np.array([5, 5, 9, 9]))
        found = po.whatif(problem, ["speed:gpu"], solver="cp-sat", workers=1)
        (row,) = found.rows()
        exact = optimum(found.variants[0].change.problem)
        assert exact is not None
        assert row["objective"] == exact[0][0]
        assert found.grids()[0].headers[1] == "energy"


class TestCommand:
    def test_a_table(self) -> None:
        done = run("whatif", HEFT_10, "--solver", "cp-sat", "--workers", 1)
        assert done.code == 0
        lines = done.out.splitlines()
        assert lines[1].split("  ")[0] == "change"
        assert lines[-1] == "a faster network gains at most 34.25%; processor twice as fast gains 35.62%"
        assert "note: memory: no device has a memory limit to raise" in lines

    def test_json_of_some_changes(self) -> None:
        done = run(
            "whatif", HEFT_10, "-c", "speed:processor", "-c", "bandwidth", "--speed-factor", 4, "--bandwidth-factor",
            1.5, "-s", "heft", "--json",
        )  # fmt: skip
        assert done.code == 0
        data = json.loads(done.out)
        assert [row["change"] for row in data["changes"]] == [
            "processor 4 times as fast", "1.5 times the bandwidth of all links"
        ]  # fmt: skip

    def test_a_picture(self, tmp_path: Path) -> None:
        pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'placeopt[plots]'")
        done = run("whatif", HEFT_10, "-c", "network", "-s", "heft", "--plot", tmp_path / "gains.png")
        assert done.code == 0
        assert (tmp_path / "gains.png").read_bytes().startswith(b"\x89PNG")

    def test_a_note_where_it_may_take_long(self) -> None:
        done = run("whatif", HEFT_10, "-c", "network", "-s", "heft", "--time-limit", "200s")
        assert done.code == 0
        assert "note: 2 solves, at most 400 s in total; --change selects fewer" in done.err
        assert "note" not in run("whatif", HEFT_10, "-c", "network", "-s", "heft").err

    def test_infeasible(self, tmp_path: Path) -> None:
        path = tmp_path / "tight.json"
        tasks = {name: {"time": 1, "memory": {"resident": "6 B"}} for name in "abc"}
        path.write_text(json.dumps({"placeopt": 1, "devices": {"x": {"count": 2, "memory": "10 B"}}, "tasks": tasks}))
        done = run("whatif", path, "-s", "heft")
        assert done.code == 1
        assert done.out.splitlines()[-1] == "the problem is infeasible; feasible with: one more x, 20% more memory"

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (
                ["--change", "speeed"],
                'no change "speeed"; expected devices, speed, memory, resources, budgets, bandwidth, latency, network;',
            ),
            (["--change", "devices:p1"], 'devices: no device type "p1"; expected processor'),
            (["--memory-factor", 0.5], "--memory-factor is 0.5; expected a number from 1 to 1,000,000"),
            (["--more-devices", 0], "--more-devices is 0; expected a whole number from 1 to 1,000"),
            (["--solver", "hefd"], 'unknown solver "hefd"'),
            (["--seed", -1], "--seed is -1; expected a whole number from 0"),
            (["--plot", "gains.txt"], 'cannot draw gains.txt: its name ends in ".txt"'),
        ],
    )
    def test_errors(self, arguments: list[object], message: str) -> None:
        done = run("whatif", HEFT_10, *arguments)
        assert (done.code, done.out) == (2, "")
        assert message in done.err


def test_every_kind_has_a_change() -> None:
    shared = {**document(), "resources": {"r": 1}, "budgets": {"b": 1}}
    next(iter(shared["tasks"].values()))["uses"] = {"r": 1, "b": 1}
    assert {change.kind for change in make_changes(po.compile(shared))[0]} == set(KINDS)


def test_modes_are_those_of_their_devices() -> None:
    """Rows and notes name devices of the document: neither modes nor the resources that they occupy."""
    modes = {"fp16": {}, "small": {"memory": 2, "output": 10}, "split": {"team": {"gpu": 2}, "all_reduce": 8}}
    task = {"time": {"gpu": 8, "cpu": 20}, "memory": 6, "output": 20, "modes": modes, "devices": "gpu"}
    tasks = {"load": {"time": {"cpu": 4}, "output": 8}, "a": task | {"after": "load"}, "b": task | {"after": "a"}}
    devices = {"cpu": {}, "gpu": {"count": 2, "memory": 40}}
    links = {"default": {"bandwidth": "1 MB/s", "latency": 4}}
    problem = po.compile(
        {"placeopt": 1, "resolution": "1 us", "devices": devices, "links": links, "tasks": tasks, "resources": {"r": 2}}
    )
    changes, notes = make_changes(problem)
    assert [change.text for change in changes] == [
        "one more cpu", "cpu twice as fast", "gpu twice as fast", "20% more memory",
        "twice the bandwidth of all links", "half the latency", "transfers take no time",
    ]  # fmt: skip
    assert notes == (
        "devices of gpu: devices that run tasks in modes are not supported",
        "resources of r: no task uses it",
    )
    by_name = {change.name: change for change in changes}
    room = by_name["memory"].problem.resources
    assert room is not None
    assert [int(room.capacity[r]) for r in room.budgets] == [48, 48]
    faster = by_name["bandwidth:all links"].problem
    cpu, small, plain = (problem.device_names.index(name) for name in ("cpu", "gpu0: small", "gpu1: fp16"))
    for source, before, after in ((plain, 20, 10), (small, 10, 5)):  # the output of the mode is half as large
        for changed, ticks in ((problem, before), (faster, after)):
            assert int(changed.transfer(20, source, cpu)) == 4 + ticks
    assert [int(faster.transfer(20, *pair)) for pair in ((1, plain - 1), (plain - 1, plain))] == [0, 14]
    assert by_name["speed:gpu"].notes == ("what teams exchange takes less time, too",)
    assert by_name["network"].notes == ("what teams exchange takes as long as before",)
    with pytest.raises(po.UsageError, match="no renewable resource"):
        make_changes(problem, ["resources:gpu0"])
    with pytest.raises(po.UsageError, match="no budget"):
        make_changes(problem, ["budgets:memory of gpu0"])


def test_a_team_with_devices_of_other_types_is_as_fast_as_before() -> None:
    task = {"time": 8, "modes": {"both": {"team": {"cpu": 1, "gpu": 1}}, "one": {"time": 10}}}
    problem = po.compile({"placeopt": 1, "devices": {"cpu": {}, "gpu": {}}, "tasks": {"a": task}})
    (change,), _ = make_changes(problem, ["speed:gpu"])
    ticks = {name: int(change.problem.duration[0, d]) for d, name in enumerate(problem.device_names) if ":" in name}
    assert ticks == {"cpu+gpu: both": 8, "cpu: one": 10, "gpu: one": 5}
    assert change.notes == ("teams with devices of other types are as fast as before",)
