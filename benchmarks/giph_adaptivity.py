"""GiPH's adaptivity experiment (Hu et al. 2023, section 5.1, Figure 6): a network that changes under an application.

    python benchmarks/giph_adaptivity.py [--graphs 12] [--networks 5] [--changes 20] [--auto SECONDS] [--images FOLDER]

A network of 20 devices loses two devices, two more, gets two, and two more, again and again: 16 to 20 are left. What it
gets is slower: half the speed and bandwidth, twice the delay on average. Some device supports every kind of hardware at
any time. Graphs and networks: see `giph_sets.py`, released sizes; the paper has 20 graphs on one network.

After each change every search has 2 |V| steps. A policy goes on from its own placement before the change, the tasks of
lost devices put on random others; `random` draws placements beside that one; `heft` and `peft` begin from scratch. With
--auto the solver `auto` starts from its own placement too and has so many seconds. (The released code lets every search
begin at a random placement after each change, and gives new devices speeds like those of the old ones.)

What adapting costs: `moved` is the share of tasks that a search takes from a device that is still there, and
`relocation` what that takes as the metric of that name counts it (GiPH, section 5.3), as a multiple of the new
makespan, if each task has as many bytes to migrate as an edge carries, MIGRATION, and no start-up time. Means over all
changes.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from giph_sets import DEVICES, FIRST_SEED, GRAPH, HARDWARE, NETWORK, SHAPES, TASKS, graph_size, interval
from rich.console import Console
from rich.table import Table

import placeopt as po
from placeopt.generate.networks import combine
from placeopt.generate.random_graphs import random_network, random_tasks
from placeopt.model.metrics import critical_path
from placeopt.model.objective import GONE, relocation_ticks
from placeopt.model.problem import Problem
from placeopt.policies import POLICIES, random_placement, run_episode, sample_placements

SLOWER: dict[str, Any] = NETWORK | {"speed": 2.5, "bandwidth": 50.0, "delay": 20.0}
CYCLE = (-2, -2, 2, 2)
"""Devices that go and come."""
MIGRATION = 100_000
"""Bytes."""
SEARCHES = ("random", "random-task-eft", "annealing-2", "annealing")
HEURISTICS = ("heft", "peft")


class Network:
    """A network that changes: of 20 places some are empty, and some hold a device that came later."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        self.drawn = [random_network(DEVICES, hardware=HARDWARE, seed=seed, **NETWORK)]
        self.came = dict.fromkeys(range(DEVICES), 0)
        """The network that the device at each place is from."""

    @property
    def slow(self) -> int:
        """Devices that came later."""
        return sum(came > 0 for came in self.came.values())

    def change(self, count: int) -> None:
        """Lose devices at random, or fill empty places with slower ones."""
        if count > 0:
            empty = [place for place in range(DEVICES) if place not in self.came]
            seed = self.seed + 10_000 * len(self.drawn)
            self.drawn.append(random_network(DEVICES, hardware=HARDWARE, seed=seed, **SLOWER))
            for place in self.rng.choice(empty, count, replace=False).tolist():
                self.came[place] = len(self.drawn) - 1
            return
        while True:
            lost = set(self.rng.choice(sorted(self.came), -count, replace=False).tolist())
            left = {place: came for place, came in self.came.items() if place not in lost}
            if len({kind for place in left for kind in self._device(place).get("features", ())}) == HARDWARE:
                self.came = left
                return

    def document(self) -> dict[str, Any]:
        """The sections `devices` and `links`; a link is from the network of the later of its two devices."""
        overrides = []
        for number, network in enumerate(self.drawn):
            for link in network["links"]["overrides"]:
                ends = [int(name[1:]) for name in link["between"]]
                if all(end in self.came for end in ends) and max(self.came[end] for end in ends) == number:
                    overrides.append(link)
        devices = {f"d{place}": self._device(place) for place in sorted(self.came)}
        return {"devices": devices, "links": {"overrides": overrides}}

    def _device(self, place: int) -> dict[str, Any]:
        device: dict[str, Any] = self.drawn[self.came[place]]["devices"][f"d{place}"]
        return device


def history(seed: int, changes: int) -> tuple[list[dict[str, Any]], list[int], list[int]]:
    """The networks one after another, how many devices each has, and how many of them are slower ones."""
    network = Network(seed)
    documents, devices, slow = [network.document()], [DEVICES], [0]
    for change in range(changes):
        network.change(CYCLE[change % len(CYCLE)])
        documents.append(network.document())
        devices.append(len(network.came))
        slow.append(network.slow)
    return documents, devices, slow


def graph(index: int) -> dict[str, Any]:
    """The section `tasks` of a graph of the released sizes."""
    shapes = [(v, *shape) for v, shape in product(TASKS["released"], SHAPES)]
    v, alpha, connection = shapes[index % len(shapes)]
    seed = FIRST_SEED + index
    tasks, alpha = graph_size(v, alpha, seed)
    return random_tasks(tasks, alpha=alpha, connection=connection, hardware=HARDWARE, seed=seed, **GRAPH)


def carried(problem: Problem, before: list[str] | None, seed: int) -> np.ndarray:
    """(n,) the placement by names of devices, with random devices where there is none any more."""
    device = random_placement(problem, np.random.default_rng(seed)).copy()
    if before is not None:
        place = {name: index for index, name in enumerate(problem.device_names)}
        for task, name in enumerate(before):
            # A device that left and one that came later at its place are not to be confused: nobody is there then.
            if name in place and problem.feasible[task, place[name]]:
                device[task] = place[name]
    return device


def placed(problem: Problem, name: str, device: np.ndarray, seconds: float, seed: int) -> tuple[np.ndarray, int]:
    """A search's placement (n,) and its makespan."""
    if name == "random":
        found = sample_placements(problem, device, steps=2 * problem.n_tasks, seed=seed)
        return found.device, int(found.best[-1])
    if name in POLICIES:
        found = run_episode(problem, POLICIES[name](), device, steps=2 * problem.n_tasks, seed=seed)
        return found.device, int(found.best[-1])
    limited: dict[str, Any] = {}
    if name == "auto":
        limited = {"time_limit": seconds, "initial": po.simulate(problem, device), "workers": 1}
    result = po.solve(problem, name, seed=seed, **limited)
    assert result.schedule is not None
    assert result.makespan is not None
    return result.schedule.device, result.makespan


class Adaption:
    """What a search came to on all networks, one graph after another."""

    def __init__(self, name: str, seconds: float) -> None:
        self.name, self.seconds = name, seconds
        self.slr: list[list[float]] = []
        self.moved: list[float] = []
        self.relocation: list[float] = []

    def run(self, problems: Sequence[Problem], seed: int) -> None:
        """Place one graph on one network after another."""
        before: list[str] | None = None
        row = []
        for change, problem in enumerate(problems):
            start = carried(problem, before, seed + change)
            device, span = placed(problem, self.name, start, self.seconds, seed + change)
            row.append(span / critical_path(problem))
            if before is not None:
                self._tell(problem, before, device, span)
            before = [problem.device_names[d] for d in device]
        self.slr.append(row)

    def _tell(self, problem: Problem, before: Sequence[str], device: np.ndarray, span: int) -> None:
        place = {name: index for index, name in enumerate(problem.device_names)}
        current = np.array([place.get(name, GONE) for name in before])
        there = current != GONE
        self.moved.append(float((device != current)[there].mean()) if there.any() else math.nan)
        n, m = problem.duration.shape
        ticks = relocation_ticks(
            current,
            np.full(n, MIGRATION),
            np.zeros((n, m), dtype=np.int64),
            problem.latency,
            problem.byte_ticks_num,
            problem.byte_ticks_den,
        )
        self.relocation.append(float(ticks[np.arange(n), device].sum()) / span)


def main() -> None:
    """Run all, print the table, draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=12)
    parser.add_argument("--networks", type=int, default=5)
    parser.add_argument("--changes", type=int, default=20)
    parser.add_argument("--auto", type=float, metavar="SECONDS", help="run the solver auto too, so long for a change")
    parser.add_argument("--images", type=Path, metavar="FOLDER", help="where the figure goes; none without it")
    arguments = parser.parse_args()
    console = Console(width=130)
    names = [*SEARCHES, *HEURISTICS]
    if arguments.auto is not None and "auto" in po.solvers():
        names.append("auto")
    elif arguments.auto is not None:
        console.print("the solver auto is not installed: left out")
    searches = [Adaption(name, arguments.auto or 0.0) for name in names]
    slower = []
    for number in range(arguments.networks):
        documents, devices, slow = history(FIRST_SEED + number, arguments.changes)
        slower.append(slow)
        for index in range(arguments.graphs):
            tasks = graph(number * arguments.graphs + index)
            problems = [
                po.compile(combine(tasks, network, name="adapting", resolution="1 ms")) for network in documents
            ]
            for search in searches:
                search.run(problems, 1000 * index)
    results = {search.name: np.array(search.slr) for search in searches}
    marks = list(range(0, arguments.changes + 1, 5))
    title = f"SLR after changes of the network: {arguments.graphs} graphs on each of {arguments.networks} networks"
    table = Table(title=title)
    table.add_column("search", no_wrap=True)
    for mark in marks:
        table.add_column(f"{mark}: {devices[mark]} devices", justify="right")
    for header in ("after all", "less heft", "moved", "relocation"):
        table.add_column(header, justify="right", no_wrap=True)
    reference = results["heft"][:, 1:].mean(axis=1)
    for search in searches:
        rows = results[search.name]
        mean, half = interval(rows[:, 1:].mean(axis=1))
        gap, gap_half = interval(rows[:, 1:].mean(axis=1) - reference)
        table.add_row(
            search.name,
            *(f"{rows[:, mark].mean():.3f}" for mark in marks),
            f"{mean:.3f} ± {half:.3f}",
            "" if search.name == "heft" else f"{gap:+.3f} ± {gap_half:.3f}",
            f"{100 * np.nanmean(search.moved):.0f} %",
            f"{np.mean(search.relocation):.2f}",
        )
    console.print(table)
    if arguments.images is not None:
        from giph_figures import draw_changes

        draw_changes(results, devices, np.mean(slower, axis=0).tolist()).write(arguments.images / "giph-adaptivity.png")


if __name__ == "__main__":
    main()
