"""Generate GiPH's case study: cooperative sensor fusion of connected vehicles and roadside units.

Y. Hu et al.: GiPH, MLSys 2023, arXiv:2305.14562, section 5.3, tables 1 and 2, and appendix B.4. The application traces
of the paper come from the simulator SUMO and a map of the centre of Tempe, Arizona, and are not in its repository. Here
a model of the traffic replaces them. A problem is the application graph of one connected vehicle at one moment.

From the paper: 36 intersections with a roadside unit (RSU, type C) and four cameras each; 40 edge devices at random
places (10 of type A, 10 of type B, 20 of type C); 3,980 vehicles that enter within an hour, one in ten connected;
snapshots every 10 s; a vehicle interacts with the RSUs within 400 m; bandwidth 60 exp(-d / 100) Mb/s over d metres;
the durations of table 1 and the data and start-up times of relocations of table 2.

Assumptions of placeopt:

- The intersections form a grid of 6 x 6 streets with blocks of 300 to 500 m. Streets end 200 m beyond the outer ones.
- A vehicle enters at a random end of a street, at a random time of the hour, and drives at its own constant speed of 10
  to 16 m/s. At an intersection it turns left or right with probability 0.2 each, until it leaves the area.
- Every intersection has a signal with a cycle of 60 s, half of it green for each street, at a random offset. Two
  vehicles of one lane cross at least 2 s apart. Vehicles wait at a random place 10 to 40 m before the intersection, and
  do not hinder each other elsewhere.
- The network of a problem has the computers within 400 m of the vehicle, 7 of the 77 on average. With all of them, the
  bandwidth between distant computers is 60 exp(-24) Mb/s, so that a random placement takes 10^9 times as long as a good
  one. The makespans of the paper are at most some hundred times the critical path (figure 9b).
- The four cameras of an intersection are one device at the intersection, which does not compute.
- A vehicle carries a computer of type A, the Jetson Nano of Andert and Shrivastava's model vehicles (ITSC 2022).
- The start-up times of type B, which table 2 lacks, are those of type A. Links have no latency.
- The paper does not list its payloads. The inputs of a task have as many bytes in total as the task moves in a
  relocation (table 2), in equal parts, as in problems/sensor-fusion.yaml.

The graph: the camera image and the LIDAR scan of the vehicle are processed by one detection each, which need a GPU, and
combined by the fusion of the vehicle. At each RSU within reach, the images of the four cameras are processed by a
detection each, and the RSU fusion combines them with the result of the vehicle. Fusions run on any computer. With three
RSUs, a graph has 32 tasks, of which 14 are captures of sensors, whose place is given.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import Generator

from placeopt.generate.arguments import Purpose, streams
from placeopt.generate.giph.cases import CaseSet, Documents, Sets
from placeopt.generate.networks import Document, combine

Point = tuple[float, float]
"""Metres to the east and to the north."""

DURATIONS: Mapping[str, Mapping[str, int]] = {
    "camera": {"A": 53, "B": 36, "C": 9},
    "lidar": {"A": 14, "B": 7, "C": 3},
    "cav_fusion": {"A": 35, "B": 35, "C": 11},
    "rsu_fusion": {"A": 250, "B": 250, "C": 28},
}
"""Table 1: mean running times in ms; A is a Jetson Nano, B a Jetson TX2, C an i7-7700K with a GTX 1080."""

PROCESSORS: Mapping[str, tuple[str, str]] = {"gpu": ("camera", "lidar"), "cpu": ("rsu_fusion", "cav_fusion")}
"""The tasks of each processor, the longer one first."""

RELOCATION: Mapping[str, tuple[int, str, str]] = {
    "camera": (11494, "4273.73 ms", "794.66 ms"),
    "lidar": (560, "60.98 ms", "9.26 ms"),
    "cav_fusion": (11796, "0.39 ms", "0.11 ms"),
    "rsu_fusion": (20907, "2.83 ms", "1.00 ms"),
}
"""Table 2: bytes to move, start-up time on type A, and on type C."""

STREETS = 6
REACH = 400.0
VEHICLES, HOUR, INTERVAL = 3980, 3600, 10
CONNECTED = VEHICLES // 10
EDGE_TYPES = "A" * 10 + "B" * 10 + "C" * 20
CASES = 460
"""Problems of the training set, and of the test set."""

VALIDATION, OTHER = 60, 1000
"""Problems of the validation set, and the difference of its seed."""

_BLOCKS, _END = (300, 500), 200.0
_SPEEDS, _TURN = (10.0, 16.0), 0.2
_CYCLE, _HEADWAY, _QUEUE = 60.0, 2.0, (10.0, 40.0)
_CAMERAS = 4


@dataclass(frozen=True, slots=True)
class Latency:
    """The latency model of appendix B.4 for one processor: a task takes C_i T_j + S_j ms on device type j."""

    work: Mapping[str, float]
    """C_i of each task. A unit takes 1 ms on type C, after the start-up."""
    unit: Mapping[str, float]
    startup: Mapping[str, float]
    """T_j and S_j in ms of each device type."""


def fitted(processor: str) -> Latency:
    """Fit the latency model to table 1 for the `gpu` or the `cpu`.

    The paper states a pair T, S for the CPU and for the GPU of each type, and two tasks run on each. The model then
    meets all means exactly: the residuals of a least-squares fit are zero. One degree of freedom remains besides the
    unit of work. Here the work is as large as possible, that is, until the start-up of some type is zero.
    """
    long, short = (DURATIONS[task] for task in PROCESSORS[processor])
    more = {kind: long[kind] - short[kind] for kind in long}
    base = min(short[kind] / more[kind] for kind in long) * more["C"]
    unit = {kind: more[kind] / more["C"] for kind in long}
    work = dict(zip(PROCESSORS[processor], (base + more["C"], base), strict=True))
    return Latency(work, unit, {kind: short[kind] - base * unit[kind] for kind in long})


@dataclass(slots=True)
class Drive:
    """The course of a vehicle: it is at points[k] at times[k], and moves uniformly in between."""

    times: list[float] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)

    def position(self, time: float) -> Point | None:
        """Return where the vehicle is, or None outside its drive."""
        k = bisect_right(self.times, time) - 1
        if k < 0 or k == len(self.times) - 1:
            return None
        share = (time - self.times[k]) / (self.times[k + 1] - self.times[k])
        (x, y), (u, v) = self.points[k : k + 2]
        return x + share * (u - x), y + share * (v - y)

    def wait(self, crossing: float, before: Point, lead: float) -> None:
        """Wait with an offset `before` the last point, `lead` seconds away from it, and reach it at `crossing`."""
        arrival, goal = self.times.pop(), self.points.pop()
        place = goal[0] + before[0], goal[1] + before[1]
        self.times += [arrival - lead, crossing - lead, crossing]
        self.points += [place, place, goal]


@dataclass(frozen=True, slots=True)
class Scene:
    """A connected vehicle at one moment: seconds, its number, its place, and the RSUs within reach."""

    time: int
    vehicle: int
    place: Point
    rsus: tuple[int, ...]


class Town:
    """The streets, the stationary devices and the traffic of an hour, for one seed.

    Attributes
    ----------
    rsus, edges
        Places of the RSUs, row by row from the south-west, and of the edge devices.
    drives
        The courses of the connected vehicles in order of entry.
    """

    def __init__(self, seed: int = 0) -> None:
        layout, entries, turns = streams(Purpose.TOWN, seed, 3)
        self._east, self._north = (
            [_END, *(_END + np.cumsum(layout.integers(*_BLOCKS, STREETS - 1, endpoint=True))).tolist()]
            for _ in range(2)
        )
        self.rsus: list[Point] = [(x, y) for y in self._north for x in self._east]
        width, height = self._east[-1] + _END, self._north[-1] + _END
        self.edges: list[Point] = [(x * width, y * height) for x, y in layout.random((len(EDGE_TYPES), 2)).tolist()]
        self._offsets = layout.uniform(0, _CYCLE, len(self.rsus)).tolist()
        self.drives = self._traffic(entries, turns)

    def scenes(self) -> list[Scene]:
        """Return all scenes of the connected vehicles within the hour, by vehicle and then by time.

        Only the first snapshot of a wait is a scene, because the others are equal to it.
        """
        found = []
        for vehicle, drive in enumerate(self.drives):
            first = math.ceil(drive.times[0] / INTERVAL) * INTERVAL
            last = None
            for time in range(first, min(int(drive.times[-1]), HOUR) + 1, INTERVAL):
                place = drive.position(time)
                if place is None or place == last:
                    continue
                last = place
                near = tuple(r for r, rsu in enumerate(self.rsus) if math.dist(place, rsu) <= REACH)
                if near:
                    found.append(Scene(time, vehicle, place, near))
        return found

    def _traffic(self, entries: Generator, turns: Generator) -> list[Drive]:
        """Simulate all vehicles from stop line to stop line, and return the drives of the connected ones."""
        begin = np.sort(entries.uniform(0, HOUR, VEHICLES)).tolist()
        ends = entries.integers(4 * STREETS, size=VEHICLES).tolist()
        speeds = entries.uniform(*_SPEEDS, VEHICLES).tolist()
        connected = set(entries.choice(VEHICLES, CONNECTED, replace=False).tolist())
        drives = [Drive() for _ in range(VEHICLES)]
        free: dict[tuple[int, int, int, int], float] = {}
        events: list[tuple[float, int, int, int, int, int]] = []

        def drive_to(vehicle: int, time: float, column: int, row: int, heading: tuple[int, int]) -> None:
            """Drive from the last point to an intersection, or to the end of the street beyond the grid."""
            drive, goal = drives[vehicle], self._place(column, row)
            arrival = time + math.dist(drive.points[-1], goal) / speeds[vehicle]
            drive.times.append(arrival)
            drive.points.append(goal)
            if 0 <= column < STREETS and 0 <= row < STREETS:
                heapq.heappush(events, (arrival, vehicle, column, row, *heading))

        for vehicle, (time, end) in enumerate(zip(begin, ends, strict=True)):
            side, street = divmod(end, STREETS)
            dx, dy = ((1, 0), (-1, 0), (0, 1), (0, -1))[side]
            column, row = (-1 if dx > 0 else STREETS, street) if dx else (street, -1 if dy > 0 else STREETS)
            drives[vehicle].times.append(time)
            drives[vehicle].points.append(self._place(column, row))
            drive_to(vehicle, time, column + dx, row + dy, (dx, dy))
        while events:
            arrival, vehicle, column, row, dx, dy = heapq.heappop(events)
            lane = column, row, dx, dy
            crossing = self._green(max(arrival, free.get(lane, 0.0)), column, row, dx != 0)
            free[lane] = crossing + _HEADWAY
            turn, gap = turns.random(), turns.uniform(*_QUEUE)
            if crossing > arrival:
                drives[vehicle].wait(crossing, (-gap * dx, -gap * dy), gap / speeds[vehicle])
            if turn < _TURN:
                dx, dy = -dy, dx
            elif turn < 2 * _TURN:
                dx, dy = dy, -dx
            drive_to(vehicle, crossing, column + dx, row + dy, (dx, dy))
        return [drive for vehicle, drive in enumerate(drives) if vehicle in connected]

    def _place(self, column: int, row: int) -> Point:
        """Return the place of an intersection, or of an end of a street next to the grid."""

        def along(places: list[float], k: int) -> float:
            return 0.0 if k < 0 else places[k] if k < STREETS else places[-1] + _END

        return along(self._east, column), along(self._north, row)

    def _green(self, time: float, column: int, row: int, eastwest: bool) -> float:
        """Return the first moment from `time` on at which the signal is green."""
        phase = (time - self._offsets[row * STREETS + column] - (_CYCLE / 2 if eastwest else 0)) % _CYCLE
        return time if phase < _CYCLE / 2 else time + _CYCLE - phase


def traffic_tasks(scene: Scene) -> Document:
    """Return the sections `operations` and `tasks` of a scene."""
    tasks: Document = {
        "frame": {"time": 0, "pin": "vehicle"},
        "scan": {"time": 0, "pin": "vehicle"},
        "camera": _task("camera", ["frame"]),
        "lidar": _task("lidar", ["scan"]),
        "cav_fusion": _task("cav_fusion", ["camera", "lidar"]),
    }
    for rsu in scene.rsus:
        detections = [f"camera{rsu}.{k}" for k in range(_CAMERAS)]
        for k, detection in enumerate(detections):
            tasks[f"view{rsu}.{k}"] = {"time": 0, "pin": f"cameras{rsu}"}
            tasks[detection] = _task("camera", [f"view{rsu}.{k}"])
        tasks[f"rsu_fusion{rsu}"] = _task("rsu_fusion", ["cav_fusion", *detections])
    times = {task: {kind: f"{time} ms" for kind, time in times.items()} for task, times in DURATIONS.items()}
    return {"operations": times, "tasks": tasks}


def traffic_network(town: Town, scene: Scene, *, everywhere: bool = False) -> Document:
    """Return the sections `devices` and `links` of a scene: the vehicle, the cameras, RSUs and edge devices.

    They are within reach of the vehicle or, with `everywhere`, all 36 RSUs and 40 edge devices.
    """
    places = {"vehicle": scene.place} | {f"cameras{rsu}": town.rsus[rsu] for rsu in scene.rsus}
    devices: Document = {name: {"type": "sensor"} if name != "vehicle" else _computer("A") for name in places}
    computers = [(f"rsu{rsu}", place, "C") for rsu, place in enumerate(town.rsus)]
    computers += [(f"edge{edge}", place, EDGE_TYPES[edge]) for edge, place in enumerate(town.edges)]
    for name, place, kind in computers:
        if everywhere or math.dist(scene.place, place) <= REACH:
            places[name], devices[name] = place, _computer(kind)
    names = list(devices)
    overrides = [
        {"between": [one, other], "bandwidth": _bandwidth(math.dist(places[one], places[other]))}
        for k, one in enumerate(names)
        for other in names[k + 1 :]
    ]
    return {"devices": devices, "links": {"overrides": overrides}}


def traffic_sets(seed: int = 0) -> Sets:
    """Return the training set and the test set, of CASES problems each, and a validation set of VALIDATION problems.

    Training has vehicles that enter in the first half of the hour, the test set those of the second half, so that no
    vehicle is in both. The problems are drawn from all scenes of these vehicles and sorted by time. The validation set
    has scenes of another hour of traffic.
    """
    town, other = Town(seed), Town(seed + OTHER)
    late = [drive.times[0] >= HOUR / 2 for drive in town.drives]
    halves: tuple[list[Scene], list[Scene]] = [], []
    for scene in town.scenes():
        halves[late[scene.vehicle]].append(scene)
    first, second, third = streams(Purpose.TRAFFIC, seed, 3)
    return Sets(
        _case_set("traffic-train", town, _drawn(halves[0], CASES, first)),
        _case_set("traffic-validation", other, _drawn(list(other.scenes()), VALIDATION, third)),
        _case_set("traffic-test", town, _drawn(halves[1], CASES, second)),
    )


def _drawn(scenes: list[Scene], count: int, drawn: Generator) -> list[Scene]:
    chosen = drawn.choice(len(scenes), count, replace=False)
    return sorted((scenes[k] for k in chosen.tolist()), key=lambda scene: (scene.time, scene.vehicle))


def _case_set(name: str, town: Town, scenes: list[Scene]) -> CaseSet:
    networks = Documents(traffic_network, ((town, scene) for scene in scenes))
    matches = tuple((k, k) for k in range(len(scenes)))
    return CaseSet(name, Documents(traffic_tasks, zip(scenes)), networks, _problem, matches)


def _problem(name: str, graph: Document, network: Document) -> Document:
    rsus = sum(device.startswith("cameras") for device in network["devices"])
    return combine(
        graph,
        network,
        name=name,
        description=f"Cooperative sensor fusion of a connected vehicle and {rsus} roadside units.",
        source="Generated as in GiPH (Hu et al. 2023, MLSys), section 5.3, with a model of the traffic.",
        resolution="1 us",
    )


def _task(kind: str, producers: list[str]) -> dict[str, Any]:
    amount, on_a, on_c = RELOCATION[kind]
    task: dict[str, Any] = {"op": kind}
    if kind in PROCESSORS["gpu"]:
        task["requires"] = ["gpu"]
    return task | {
        "after": dict.fromkeys(producers, amount // len(producers)),
        "migration": {"bytes": amount, "startup": {"A": on_a, "B": on_a, "C": on_c}},
    }


def _computer(kind: str) -> dict[str, Any]:
    return {"type": kind, "features": ["gpu"]}


def _bandwidth(distance: float) -> str:
    """Return 60 exp(-d / 100) Mb/s with ten significant digits."""
    rate = 60 * math.exp(-distance / 100)
    return f"{rate:.{9 - math.floor(math.log10(rate))}f} Mb/s"
