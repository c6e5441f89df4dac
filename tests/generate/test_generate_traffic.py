"""GiPH's case study: the latency model, the traffic, and the problems of scenes."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

import placeopt as po
from placeopt.generate.giph.sets import SETS
from placeopt.generate.giph.traffic import (
    CASES,
    CONNECTED,
    DURATIONS,
    EDGE_TYPES,
    PROCESSORS,
    REACH,
    Scene,
    Town,
    fitted,
    traffic_network,
    traffic_tasks,
)


@pytest.fixture(scope="module")
def town() -> Town:
    return Town()


@pytest.mark.parametrize("processor", PROCESSORS)
def test_the_latency_model_meets_all_means_of_table_1(processor: str) -> None:
    model = fitted(processor)
    for task in PROCESSORS[processor]:
        for kind, mean in DURATIONS[task].items():
            assert model.work[task] * model.unit[kind] + model.startup[kind] == pytest.approx(mean, abs=1e-9)
    assert min(model.startup.values()) == pytest.approx(0, abs=1e-9)
    assert model.unit["C"] == 1


def test_devices_are_those_of_the_paper(town: Town) -> None:
    scene = Scene(0, 0, town.rsus[0], (0,))
    document = traffic_network(town, scene, everywhere=True)
    kinds = [device["type"] for device in document["devices"].values()]
    assert (kinds.count("C"), kinds.count("A"), kinds.count("B")) == (36 + 20, 10 + 1, 10)
    assert len(document["links"]["overrides"]) == 78 * 77 // 2


def test_bandwidth_falls_with_the_distance(town: Town) -> None:
    scene = Scene(0, 0, town.rsus[7], (7,))
    document = traffic_network(town, scene)
    bandwidth = {tuple(link["between"]): link["bandwidth"] for link in document["links"]["overrides"]}
    assert bandwidth["vehicle", "cameras7"] == "60.00000000 Mb/s"
    for (one, other), stated in bandwidth.items():
        if one == "vehicle" and other.startswith("rsu"):
            distance = math.dist(town.rsus[7], town.rsus[int(other.removeprefix("rsu"))])
            assert distance <= REACH
            assert float(stated.removesuffix(" Mb/s")) == pytest.approx(60 * math.exp(-distance / 100), rel=1e-9)


def test_vehicles_drive_along_streets_at_city_speed_and_wait_at_intersections(town: Town) -> None:
    assert len(town.drives) == CONNECTED == 398
    east, north = {x for x, _ in town.rsus}, {y for _, y in town.rsus}
    waits = 0
    for drive in town.drives:
        assert 0 <= drive.times[0] <= 3600
        speeds = set()
        for (start, end), (one, other) in zip(pairwise(drive.times), pairwise(drive.points), strict=True):
            assert end > start
            assert (one[0] == other[0] and one[0] in east) or (one[1] == other[1] and one[1] in north)
            if one == other:
                waits += 1
                assert end - start < 180
            else:
                speeds.add(round(math.dist(one, other) / (end - start), 5))
        assert len(speeds) == 1
        assert 10 <= speeds.pop() <= 16
    assert 0.2 < waits / sum(len(drive.times) for drive in town.drives) < 0.3


def test_vehicles_of_a_lane_cross_one_after_another_on_green(town: Town) -> None:
    crossings: dict[tuple[object, ...], list[float]] = {}
    for drive in town.drives:
        for k in range(1, len(drive.times) - 1):
            if drive.points[k] == drive.points[k - 1]:
                wait, here = drive.points[k], drive.points[k + 1]
                assert 10 <= math.dist(wait, here) <= 40
                lane = (here, wait[0] < here[0], wait[0] > here[0], wait[1] < here[1])
                crossings.setdefault(lane, []).append(drive.times[k + 1])
    gaps = [later - sooner for times in crossings.values() for sooner, later in pairwise(sorted(times))]
    assert len(gaps) > 500
    assert min(gaps) > 2 - 1e-9


def test_position_between_two_moments(town: Town) -> None:
    drive = town.drives[0]
    begin, end = drive.times[:2]
    middle = drive.position((begin + end) / 2)
    assert middle is not None
    assert math.dist(middle, drive.points[0]) == pytest.approx(math.dist(middle, drive.points[1]))
    assert drive.position(begin - 1) is None
    assert drive.position(drive.times[-1]) is None


def test_scenes_are_ten_seconds_apart_and_list_the_rsus_within_reach(town: Town) -> None:
    scenes = town.scenes()
    assert len(scenes) > 5000
    assert all(scene.time % 10 == 0 for scene in scenes)
    near = [len(scene.rsus) for scene in scenes]
    assert 2 < sum(near) / len(near) < 3.5  # figure 8b: "a CAV between three intersections"
    for scene in scenes[::500]:
        distances = [math.dist(scene.place, rsu) for rsu in town.rsus]
        assert scene.rsus == tuple(k for k, distance in enumerate(distances) if distance <= REACH)


def test_graph_of_a_vehicle_near_two_rsus() -> None:
    document = traffic_tasks(Scene(0, 0, (0.0, 0.0), (3, 8)))
    tasks = document["tasks"]
    assert len(tasks) == 5 + 2 * 9
    assert tasks["rsu_fusion8"]["after"] == dict.fromkeys(
        ["cav_fusion", "camera8.0", "camera8.1", "camera8.2", "camera8.3"], 20907 // 5
    )
    assert tasks["view3.2"] == {"time": 0, "pin": "cameras3"}
    assert tasks["camera3.2"]["requires"] == ["gpu"]
    assert "requires" not in tasks["cav_fusion"]
    assert tasks["lidar"]["migration"] == {
        "bytes": 560, "startup": {"A": "60.98 ms", "B": "60.98 ms", "C": "9.26 ms"}
    }  # fmt: skip


def test_sets_are_of_equal_size_and_of_different_vehicles(town: Town) -> None:
    train, _, test = SETS["traffic"]()
    assert len(train.pairs()) == len(test.pairs()) == CASES == 460
    document = test.document(*test.pairs()[100])
    problem = po.compile(document)
    assert problem.duration.max() == 250_000
    moved = po.compile(document | {"current": {"placement": {"camera": "vehicle"}}})
    onto_c = problem.device_types.index("C")
    assert moved.relocation[problem.task_names.index("camera"), onto_c] > 794_660  # start-up and transfer in us
    pinned = [name for name, task in test.graphs[100]["tasks"].items() if "pin" in task]
    assert problem.feasible.sum(axis=1).tolist().count(1) >= len(pinned)
    # No scene is in both sets, or twice in one.
    links = [str(network["links"]) for cases in (train, test) for network in cases.networks]
    assert len(set(links)) == len(links)
    assert [str(network) for network in SETS["traffic"]().test.networks[:3]] == [str(n) for n in test.networks[:3]]
    assert len(EDGE_TYPES) == len(town.edges) == 40
