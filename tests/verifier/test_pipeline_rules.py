"""Periods, memory and the rules of pipelines, computed by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import placeopt as po
from placeopt.model.schedule import Schedule, Stages, Transfers
from placeopt.simulation.pipelines import periodic_schedule
from placeopt.verifier import Rule, Violation

PERIOD = po.Objective(((po.Term("period"),),))


def loop(**rules: Any) -> po.Problem:
    """Tasks a (4 ticks), b (6) and c (2): a sends 3 bytes to b, b sends 5 to c, in a tick each. y equals z."""
    return po.build_problem(
        task_names=["a", "b", "c"],
        device_names=["x", "y", "z"],
        duration=[[4, 6, 6], [6, 6, 6], [2, 2, 2]],
        edges=[(0, 1), (1, 2)],
        payload=[3, 5],
        byte_ticks_num=np.ones((3, 3), dtype=int),
        output=[3, 5, 0],
        objective=PERIOD,
        pipeline=rules,
    )


def training(**rules: Any) -> po.Problem:
    """Forward tasks f (3 ticks) and g (4), and their backward tasks gb (4) and fb (3).

    The weights of f take 100 bytes, its output 10; those of g 200 and 20. Ten bytes move in a tick.
    """
    return po.build_problem(
        task_names=["f", "g", "gb", "fb"],
        device_names=["x", "y"],
        duration=[[3, 3], [4, 4], [4, 4], [3, 3]],
        edges=[(0, 1), (1, 2), (2, 3)],
        payload=[10, 20, 10],
        byte_ticks_num=np.ones((2, 2), dtype=int),
        byte_ticks_den=10 * np.ones((2, 2), dtype=int),
        resident=[100, 200, 0, 0],
        output=[10, 20, 0, 0],
        forward=[0, 1, 1, 0],
        group=[0, 1, 1, 0],
        objective=PERIOD,
        pipeline={"segments": 1, "gradient": [100, 200, 0, 0], **rules},
    )


def value(problem: po.Problem, device: list[int], stages: Stages | None = None) -> int:
    report = po.verify(problem, periodic_schedule(problem, device, stages))
    assert report.feasible, report.violations
    assert report.objective is not None
    return int(report.objective[0])


def stages_of(number: list[int], leader: list[int], again: list[int] | None = None) -> Stages:
    return Stages(np.array(number), np.array(leader), np.array(again or [0] * len(leader)), np.zeros(len(leader)))


class TestLoads:
    """x computes 4 + 2, sends 3 and receives 5 ticks; y computes 6, receives 3 and sends 5."""

    @pytest.mark.parametrize(
        ("rules", "expected"),
        [
            ({}, 6 + 3 + 5),
            ({"full_duplex": [True] * 3}, 6 + 5),
            ({"overlap": [True] * 3}, 3 + 5),
            ({"overlap": [True] * 3, "full_duplex": [True] * 3}, 6),
            ({"free_transfers": [True] * 3}, 6),
            ({"free_transfers": [False, True, True]}, 6 + 3 + 5),
            ({"overlap": [True, False, False]}, 6 + 3 + 5),
        ],
    )
    def test_a_path_that_returns(self, rules: dict[str, Any], expected: int) -> None:
        assert value(loop(**rules), [0, 1, 0]) == expected

    def test_two_segments_cost_two_launches(self) -> None:
        """x has the stages of a and of c: 7 ticks each to launch."""
        assert value(loop(segments=2, launch=[7, 7, 7]), [0, 1, 0]) == 6 + 3 + 5 + 2 * 7

    def test_one_output_to_two_devices(self) -> None:
        """a sends 3 bytes to b on y and to c on z: twice, or once with multicast."""
        fork = po.build_problem(
            task_names=["a", "b", "c"], device_names=["x", "y", "z"], duration=[[4] * 3, [1] * 3, [1] * 3],
            edges=[(0, 1), (0, 2)], payload=[3, 3], shared=[True, True], byte_ticks_num=np.ones((3, 3), dtype=int),
            objective=PERIOD, pipeline={},
        )  # fmt: skip
        assert value(fork, [0, 1, 2]) == 4 + 3 + 3
        once = po.build_problem(
            task_names=["a", "b", "c"], device_names=["x", "y", "z"], duration=[[4] * 3, [1] * 3, [1] * 3],
            edges=[(0, 1), (0, 2)], payload=[3, 3], shared=[True, True], byte_ticks_num=np.ones((3, 3), dtype=int),
            objective=PERIOD, pipeline={"multicast": True},
        )  # fmt: skip
        assert value(once, [0, 1, 2]) == 4 + 3

    def test_replicas_divide_the_load(self) -> None:
        """y and z run b and c in turn: 6 + 2 + 3 received, halved and rounded up, 6; x: 4 + 3."""
        problem = loop(segments=1, replicas=2)
        assert value(problem, [0, 1, 1]) == 11
        assert value(problem, [0, 1, 1], stages_of([0, 1, 1], [0, 1, 1])) == 7

    def test_replicas_synchronise_gradients(self) -> None:
        """Both devices run everything: 14 ticks, and 2 (2 - 1) / 2 of 300 bytes of weights, 30 ticks; halved."""
        problem = training(replicas=2)
        assert value(problem, [0, 0, 0, 0]) == 14
        assert value(problem, [0, 0, 0, 0], stages_of([0, 0, 1, 1], [0, 0])) == (14 + 30) // 2

    def test_what_is_computed_again_takes_its_time_again(self) -> None:
        """y computes g, gb and g again, 12 ticks, and receives and sends 10 bytes, 1 tick each."""
        problem = training(recompute=True)
        assert value(problem, [0, 1, 1, 0]) == 4 + 4 + 1 + 1
        assert value(problem, [0, 1, 1, 0], stages_of([0, 1, 2, 3], [0, 1], [0, 1])) == 4 + 4 + 4 + 1 + 1


class TestMemory:
    """One run holds 110 bytes on x and 220 on y: the weights and outputs of f and of g."""

    @pytest.mark.parametrize(
        ("rules", "again", "expected"),
        [
            ({}, [0, 0], [110, 220]),
            ({"in_flight": "inference"}, [0, 0], [120, 240]),
            ({"in_flight": "gpipe", "microbatches": 5}, [0, 0], [150, 300]),
            ({"in_flight": "1f1b"}, [0, 0], [120, 220]),  # two stages: the first keeps two runs, the last one
            # y keeps the 10 bytes that g receives in each run, and the outputs of g for the run under way.
            ({"in_flight": "gpipe", "microbatches": 5, "recompute": True}, [0, 1], [150, 270]),
        ],
    )
    def test_of_two_stages(self, rules: dict[str, Any], again: list[int], expected: list[int]) -> None:
        problem = training(**rules)
        stages = stages_of([0, 1, 2, 3], [0, 1], again)
        for d, needed in enumerate(expected):
            for short in (0, 1):
                capacity = [10**6, 10**6]
                capacity[d] = needed - short
                limited = replace(problem, capacity=np.array(capacity))
                violations = po.verify(limited, periodic_schedule(limited, [0, 1, 1, 0], stages)).violations
                assert [(each.rule, each.device, each.amount) for each in violations] == [(Rule.MEMORY, d, 1)][:short]


def broken(problem: po.Problem, schedule: Schedule) -> list[Violation]:
    return list(po.verify(problem, schedule).violations)


class TestStages:
    def test_a_path_that_leaves_and_returns(self) -> None:
        problem = loop(segments=1)
        stages = stages_of([0, 1, 2], [0, 1, 2])
        found = broken(problem, periodic_schedule(loop(segments=2), [0, 1, 0], stages))
        assert [each.message for each in found if each.rule is Rule.STAGE] == ["x has 2 stages, and may have 1"]

    def test_numbers_against_the_data(self) -> None:
        problem = loop(segments=1)
        schedule = periodic_schedule(problem, [0, 1, 1])
        assert schedule.stages is not None
        turned = replace(schedule, stages=replace(schedule.stages, number=np.array([1, 0, 0])))
        assert "leads from stage 1 to 0; expected no lower number" in broken(problem, turned)[0].message

    def test_one_number_on_two_devices(self) -> None:
        problem = loop(segments=1)
        schedule = periodic_schedule(problem, [0, 1, 1])
        assert schedule.stages is not None
        mixed = replace(schedule, stages=replace(schedule.stages, number=np.array([0, 0, 0])))
        assert "are both in stage 0; expected one device and direction" in broken(problem, mixed)[0].message

    def test_no_numbers(self) -> None:
        problem = loop(segments=1)
        bare = replace(periodic_schedule(problem, [0, 1, 1]), stages=None)
        assert "does not number its stages" in broken(problem, bare)[0].message

    def test_stages_without_a_pipeline(self) -> None:
        schedule = periodic_schedule(loop(segments=1), [0, 0, 0])
        makespan = po.build_problem(
            task_names=["a", "b", "c"], device_names=["x", "y", "z"], duration=[[4, 6, 6], [6] * 3, [2] * 3],
            edges=[(0, 1), (1, 2)],
        )  # fmt: skip
        found = broken(makespan, Schedule(schedule.device, schedule.start, None, schedule.stages))
        assert [each.rule for each in found] == [Rule.STAGE]
        assert "is not a pipeline" in found[0].message

    @pytest.mark.parametrize(
        ("leader", "replicas", "message"),
        [
            ([0, 1, 1], 1, "2 devices run the tasks of y; the pipeline allows 1"),
            ([0, 1, 0], 3, "z is a replica of x, from which it differs; expected devices of one class"),
            ([0, 2, 2], 3, "y is a replica of z and has tasks of its own; expected none"),
            ([0, 2, 1], 3, "which is a replica itself"),
        ],
    )
    def test_teams(self, leader: list[int], replicas: int, message: str) -> None:
        problem = loop(segments=1, replicas=replicas)
        schedule = periodic_schedule(problem, [0, 1, 1])
        assert schedule.stages is not None
        changed = replace(schedule, stages=replace(schedule.stages, leader=np.array(leader)))
        assert any(message in each.message for each in broken(problem, changed) if each.rule is Rule.STAGE)

    @pytest.mark.parametrize("differs", ["budget", "price"])
    def test_teams_of_devices_that_differ_in_what_tasks_use_or_cost(self, differs: str) -> None:
        document: dict[str, Any] = {
            "placeopt": 1, "objective": "period", "pipeline": {"replicas": 2}, "budgets": {"error": 1},
            "devices": {"x": {}, "y": {}}, "tasks": {"a": {"time": 4}},
        }  # fmt: skip
        document["tasks"]["a"] |= {"uses": {"error": {"y": 1}}} if differs == "budget" else {"price": {"y": 1}}
        problem = po.compile(document)
        schedule = periodic_schedule(problem, [0])
        stages = stages_of([0], [0, 0])
        found = broken(problem, replace(schedule, stages=stages))
        assert [each.message for each in found if "from which it differs" in each.message]

    def test_recomputation_that_is_not_allowed(self) -> None:
        problem = training()
        schedule = periodic_schedule(problem, [0, 1, 1, 0])
        assert schedule.stages is not None
        again = replace(schedule, stages=replace(schedule.stages, recompute=np.array([0, 1])))
        found = [each.message for each in broken(problem, again) if each.rule is Rule.STAGE]
        assert found == ["y computes outputs again; the pipeline does not allow it"]

    def test_one_number_on_two_devices_of_a_pipeline_without_limits(self) -> None:
        """Numbers of free stages mean nothing: each device counts the time to compute outputs again."""
        problem = training(segments=None, recompute=True)
        schedule = periodic_schedule(problem, [0, 1, 1, 0], stages_of([0, 1, 2, 3], [0, 1], [1, 1]))
        assert broken(problem, schedule) == []
        assert schedule.stages is not None
        merged = replace(schedule, stages=replace(schedule.stages, number=np.array([0, 1, 2, 2])))
        assert broken(problem, merged) == []
        again = periodic_schedule(problem, merged.device, merged.stages)
        assert broken(problem, again) == []
        assert po.evaluate(problem, again) == po.evaluate(problem, schedule)
        early = replace(merged, start=np.maximum(merged.start - 1, 0))
        assert {each.rule for each in broken(problem, early)} >= {Rule.PERIOD}

    def test_one_number_on_two_devices_with_free_stages(self) -> None:
        problem = loop(segments=None)
        mixed = replace(periodic_schedule(problem, [0, 1, 1]), stages=stages_of([0, 0, 0], [0, 1, 2]))
        assert broken(problem, mixed) == []

    def test_no_tasks_need_no_numbers(self) -> None:
        """A plan file of such a problem states no stages."""
        problem = po.build_problem(
            task_names=[], device_names=["x"], duration=np.zeros((0, 1), dtype=int), objective=PERIOD,
            pipeline={"segments": 1},
        )  # fmt: skip
        none = np.zeros(0, dtype=int)
        assert broken(problem, Schedule(none, none, Transfers(none, none, none))) == []

    def test_unsound_arrays(self) -> None:
        problem = loop(segments=1)
        schedule = periodic_schedule(problem, [0, 1, 1])
        assert schedule.stages is not None
        wrong = replace(schedule, stages=replace(schedule.stages, leader=np.array([0, 1, 7])))
        assert any("arrays of stages are not sound" in each.message for each in broken(problem, wrong))


class TestPeriods:
    """a on x sends to b on y: 4 ticks, 3 ticks, then 6 + 2 ticks on y, whose period is 3 + 8 = 11."""

    def schedule(self, start: list[int], received: int, sent: int) -> Schedule:
        return Schedule(
            np.array([0, 1, 1]), np.array(start), Transfers(np.array([0]), np.array([received]), np.array([sent]))
        )

    def test_a_schedule_without_gaps(self) -> None:
        assert broken(loop(), self.schedule([0, 7, 13], 4, 4)) == []

    def test_runs_meet_on_a_device(self) -> None:
        """c ends at 16; with 11 ticks between runs, y receives for the next run from tick 15."""
        found = broken(loop(), self.schedule([0, 7, 14], 4, 4))
        assert [(each.rule, each.device, each.amount) for each in found] == [(Rule.PERIOD, 1, 1)]

    def test_data_leaves_before_its_producer_ends(self) -> None:
        found = broken(loop(), self.schedule([0, 7, 13], 4, 3))
        assert any("is sent at tick 3, before its producer ends at tick 4" in each.message for each in found)

    def test_data_arrives_before_it_has_left(self) -> None:
        found = broken(loop(), self.schedule([0, 7, 13], 4, 5))
        assert any("has arrived at tick 7, before it has left at tick 8" in each.message for each in found)

    def test_data_may_wait_in_memory(self) -> None:
        """y receives 5 ticks after x begins to send."""
        assert broken(loop(), self.schedule([0, 12, 18], 9, 4)) == []

    def test_the_synchronisation_follows_the_tasks(self) -> None:
        problem = training(replicas=2)
        schedule = periodic_schedule(problem, [0, 0, 0, 0], stages_of([0, 0, 1, 1], [0, 0]))
        assert schedule.stages is not None
        early = replace(schedule, stages=replace(schedule.stages, synchronise=schedule.stages.synchronise - 1))
        assert any(
            "synchronises at tick 13, before its tasks end at tick 14" in each.message
            for each in broken(problem, early)
        )

    def test_a_claimed_period_is_compared(self) -> None:
        problem = loop()
        report = po.verify(problem, self.schedule([0, 7, 13], 4, 4), claim=(10,))
        assert [each.rule for each in report.violations] == [Rule.OBJECTIVE]
