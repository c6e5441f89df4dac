"""The operations of many runs of a pipeline, and those of its steady state."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from pipelines import PERIOD, random_case

import placeopt as po
from placeopt.model.period import loads
from placeopt.simulation.pipelines import operations, periodic_schedule
from placeopt.simulation.steady import KINDS, Occurrences, ordinal, runs_of, steady_periods, steady_state


def busy(found: Occurrences, device: int, track: int) -> list[tuple[int, int]]:
    """The intervals in which a track of a device is busy, within the window, sorted."""
    begin, until = found.window
    chosen = (found.device == device) & (found.tracks == track).any(axis=1) & (found.end > found.start)
    pairs = zip(found.start[chosen].tolist(), found.end[chosen].tolist(), strict=True)
    return sorted((max(a, begin), min(b, until)) for a, b in pairs if a < until and b > begin)


@pytest.mark.parametrize("seed", range(80))
class TestRandomPipelines:
    def test_no_track_does_two_things_at_a_time(self, seed: int) -> None:
        problem, device, stages = random_case(seed)
        found = steady_state(problem, periodic_schedule(problem, device, stages))
        if found is None:
            assert int(loads(problem, device, stages).periods.max(initial=0)) == 0
            return
        for d in range(problem.n_devices):
            for track in range(3):
                times = busy(found, d, track)
                assert all(a[1] <= b[0] for a, b in pairwise(times)), (d, track)

    def test_each_operation_begins_once_in_each_period(self, seed: int) -> None:
        problem, device, stages = random_case(seed)
        found = steady_state(problem, periodic_schedule(problem, device, stages))
        if found is None:
            return
        begin, until = found.window
        inside = (found.start >= begin) & (found.start < until)
        own = np.where(found.edge >= 0, found.edge, found.task)
        own = np.where(own < 0, stages.leader[found.device], own)
        _, counts = np.unique((1000 * found.kind + own)[inside], return_counts=True)
        assert set(counts.tolist()) <= {found.periods}
        assert counts.sum() == found.periods * len(operations(problem, device, stages).device)

    def test_a_window_of_all_devices_of_a_team_holds_the_load(self, seed: int) -> None:
        """What is busy in as many periods as a team has devices is what one run takes of each of them."""
        problem, device, stages = random_case(seed)
        load = loads(problem, device, stages)
        cycle = int(np.lcm.reduce(np.maximum(load.team, 1)))
        found = steady_state(problem, periodic_schedule(problem, device, stages), cycle)
        if found is None:
            return
        computing = load.computing + load.launching + load.recomputing
        for d in range(problem.n_devices):
            leader = int(stages.leader[d])
            tasks = (found.device == d) & (found.kind <= KINDS.index("launch"))
            begin, until = found.window
            ticks = np.minimum(found.end, until) - np.maximum(found.start, begin)
            assert np.maximum(ticks[tasks], 0).sum() * load.team[leader] == cycle * computing[leader]

    def test_the_runs_are_complete(self, seed: int) -> None:
        problem, device, stages = random_case(seed)
        schedule = periodic_schedule(problem, device, stages)
        found = runs_of(problem, schedule, 5)
        if found is None:
            return
        assert np.bincount(found.run).tolist() == [len(operations(problem, device, stages).device)] * 5
        first = (found.run == 0) & (found.kind == 0)
        by_task = np.argsort(found.task[first])
        assert found.start[first][by_task].tolist() == schedule.start.tolist()
        leader = stages.leader[found.device]
        team = np.bincount(stages.leader, minlength=problem.n_devices)[leader]
        members = [np.flatnonzero(stages.leader == d).tolist() for d in range(problem.n_devices)]
        turns = [members[d][run % size] for d, run, size in zip(leader, found.run, team, strict=True)]
        assert turns == found.device.tolist()


def test_by_hand() -> None:
    """Two devices with 3 and 2 ticks and a transfer of 1: the second device works one period later."""
    problem = po.build_problem(
        task_names=["a", "b"], device_names=["x", "y"], duration=[[3, 3], [2, 2]], edges=[(0, 1)], payload=[1],
        byte_ticks_num=[[1, 1], [1, 1]], objective=PERIOD, pipeline={},
    )  # fmt: skip
    schedule = po.retime(problem, po.Schedule([0, 1], [0, 0]))
    assert steady_periods(problem, schedule) == 1
    found = steady_state(problem, schedule, 1)
    assert found is not None
    assert (found.period, found.window) == (4, (4, 8))
    shown = [
        (KINDS[kind], device, run, start, end)
        for kind, device, run, start, end in zip(
            found.kind.tolist(), found.device.tolist(), found.run.tolist(), found.start.tolist(), found.end.tolist(),
            strict=True,
        )
    ]  # fmt: skip
    assert shown == [("task", 0, 1, 4, 7), ("task", 1, 0, 4, 6), ("send", 0, 1, 7, 8), ("receive", 1, 1, 7, 8)]
    assert found.caption == (
        "steady state: 1 period from the 2nd on; the runs that fill the pipeline before are not shown"
    )


def test_nothing_to_show_without_transfers_or_time() -> None:
    problem = po.build_problem(
        task_names=["a", "b"], device_names=["x", "y"], duration=[[3, 3], [2, 2]], edges=[(0, 1)], payload=[1],
        byte_ticks_num=[[1, 1], [1, 1]], objective=PERIOD, pipeline={},
    )  # fmt: skip
    assert steady_state(problem, po.Schedule([0, 1], [0, 4])) is None
    assert runs_of(problem, po.Schedule([0, 1], [0, 4]), 3) is None
    idle = po.build_problem(task_names=["a"], device_names=["x"], duration=[[0]], objective=PERIOD, pipeline={})
    assert steady_periods(idle, po.retime(idle, po.Schedule([0], [0]))) is None


def test_ordinals() -> None:
    assert [ordinal(k) for k in (1, 2, 3, 4, 11, 12, 13, 21, 102, 111)] == [
        "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "111th",
    ]  # fmt: skip
