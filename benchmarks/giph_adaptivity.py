"""Run GiPH's adaptivity experiment (Hu et al. 2023, section 5.1, Figure 6): policies on a changing network.

    python benchmarks/giph_adaptivity.py [--graphs 12] [--networks 5] [--changes 20] [--auto SECONDS] [--images FOLDER]
    python benchmarks/giph_adaptivity.py --released cycle        # or single: the networks and graphs of the code
    python benchmarks/giph_adaptivity.py --policies giph=FILE giph-plus    # trained policies: files, or of the package
    python benchmarks/giph_adaptivity.py --rnn                   # the RNN placer, trained again after each change
    python benchmarks/giph_adaptivity.py --restart               # random placements after each change

A network of 20 devices loses two devices, loses two more, gains two, and gains two more, in a cycle, so that it has 16
to 20 devices. New devices are slower: on average half the speed, half the bandwidth and twice the delay. Each hardware
feature is always supported by some device. Graphs are drawn from the released test set, and networks from the released
generator; the paper uses 20 graphs on one network. With --released, networks and graphs are those of the released code
(`giph_changes.py` explains both versions).

After each change, every search has 2 |V| steps. A policy continues from its own placement before the change, with the
tasks of lost devices on random devices. `random` draws further placements in addition to this one. `heft` and `peft`
start from scratch, and so does the RNN placer, with RNN_PLACEMENTS placements. With --auto, the solver `auto` also
continues from its own placement and has SECONDS per change. With --restart, every search starts at a random placement
after each change, as in the released code. Policies NAME#1, NAME#2 are trainings of one policy.

`moved` is the share of tasks that a search moves from a device that still exists. `relocation` is the cost of these
moves as a multiple of the new makespan, in the metric of that name (GiPH, section 5.3). Each task has MIGRATION bytes
to move, as many as an edge carries, and no start-up time. Both are means over all changes.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from claims import Claim
from giph_changes import DEVICES, adaptivity_graphs, paper_changes, released_changes
from giph_paper import below, near
from giph_sets import interval
from rich.table import Table
from shown import show, show_claims

import placeopt as po
from placeopt.generate.giph.released import GIGA, DeviceNetwork, problem_document
from placeopt.generate.giph.sets import case_set
from placeopt.generate.networks import Document
from placeopt.model.metrics import critical_path
from placeopt.model.objective import GONE, relocation_ticks
from placeopt.model.problem import Problem
from placeopt.policies import POLICIES, Policy, random_placement, run_episode, sample_placements

FIRST_SEED = 1000
"""Seed of the first network."""
MIGRATION = 100 * GIGA
"""Bytes to move for each task."""
SEARCHES = ("random", "random-task-eft", "annealing-2", "annealing")
HEURISTICS = ("heft", "peft")
RNN_PLACEMENTS = 400
TRAINING = "#"
"""Between the name of a policy and that of its training."""
LEARNED: dict[str, Policy] = {}
"""Trained policies by name."""


def sequences(arguments: argparse.Namespace) -> Iterator[tuple[list[DeviceNetwork], list[int], Sequence[Document]]]:
    """Networks, the number of new devices in each, and the graphs to place on them, for each sequence."""
    if arguments.released is not None:
        networks = released_changes(arguments.released)
        new = [sum(network.speed[d] != networks[0].speed[d] for d in range(DEVICES) if network.hardware[d]) for
               network in networks]  # fmt: skip
        yield networks, new, adaptivity_graphs()
        return
    graphs = case_set("giph-unseen").graphs
    for number in range(arguments.networks):
        networks, new = paper_changes(FIRST_SEED + number, arguments.changes)
        # One graph of each shape, then the next one.
        places = [(10 * index + index // 12 + number) % len(graphs) for index in range(arguments.graphs)]
        yield networks, new, [graphs[place] for place in places]


def carried(problem: Problem, before: list[str] | None, seed: int) -> np.ndarray:
    """(n,) the placement `before`, by device names, on the new network; tasks of lost devices are on random devices."""
    device = random_placement(problem, np.random.default_rng(seed)).copy()
    if before is not None:
        place = {name: index for index, name in enumerate(problem.device_names)}
        for task, name in enumerate(before):
            # A new device has the name of a lost one, but a change never does both, so no task is there at that time.
            if name in place and problem.feasible[task, place[name]]:
                device[task] = place[name]
    return device


def placed(problem: Problem, name: str, device: np.ndarray, seconds: float, seed: int) -> tuple[np.ndarray, int]:
    """The placement (n,) of a search and its makespan."""
    if name == "random":
        found = sample_placements(problem, device, steps=2 * problem.n_tasks, seed=seed)
        return found.device, int(found.best[-1])
    if name == "rnn-placer":
        from rnn_placer import place_by_rnn

        found = place_by_rnn(problem, device, steps=RNN_PLACEMENTS, seed=seed)
        return found.device, int(found.best[-1])
    if name in POLICIES or name in LEARNED:
        policy = LEARNED[name] if name in LEARNED else POLICIES[name]()
        found = run_episode(problem, policy, device, steps=2 * problem.n_tasks, seed=seed)
        return found.device, int(found.best[-1])
    limited: dict[str, Any] = {}
    if name == "auto":
        limited = {"time_limit": seconds, "initial": po.simulate(problem, device), "workers": 1}
    result = po.solve(problem, name, seed=seed, **limited)
    assert result.schedule is not None
    assert result.makespan is not None
    return result.schedule.device, result.makespan


def learned(text: str) -> tuple[str, Policy]:
    """The name and the policy of NAME=FILE, of FILE, or of a policy that comes with placeopt."""
    from placeopt.learning.search import LearnedPolicy
    from placeopt.learning.training.weights import PACKAGED, load_policy

    name, _, file = text.rpartition("=")
    agent = load_policy(PACKAGED.get(file, Path(file))).agent
    name = name or (file if file in PACKAGED else Path(file).stem)
    return name, LearnedPolicy(name, agent.network, agent.make_view)


class Adaption:
    """The results of a search on all networks, for one graph after another."""

    def __init__(self, name: str, seconds: float, restart: bool) -> None:
        self.name, self.seconds, self.restart = name, seconds, restart
        self.slr: list[list[float]] = []
        self.moved: list[float] = []
        self.relocation: list[float] = []

    def run(self, problems: Sequence[Problem], seed: int) -> None:
        """Place one graph on a sequence of networks; for Placeto, these contain lost devices, which can run nothing."""
        before: list[str] | None = None
        row = []
        for change, problem in enumerate(problems):
            start = carried(problem, None if self.restart else before, seed + change)
            device, span = placed(problem, self.name, start, self.seconds, seed + change)
            row.append(span / critical_path(problem))
            if before is not None:
                self._add_moves(problem, before, device, span)
            before = [problem.device_names[d] for d in device]
        self.slr.append(row)

    def _add_moves(self, problem: Problem, before: Sequence[str], device: np.ndarray, span: int) -> None:
        able = problem.feasible.any(axis=0)
        place = {name: index for index, name in enumerate(problem.device_names) if able[index]}
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


def claims(results: Mapping[str, np.ndarray]) -> list[Claim]:
    """What the paper says of its searches, for those that ran; SLRs are means over all changes.

    With one training of a policy, the verdict on it is open: trainings differ more than searches do.
    """
    trainings: dict[str, list[np.ndarray]] = {}
    for name, each in results.items():
        trainings.setdefault(name.partition(TRAINING)[0], []).append(each[:, 1:])
    rows = {name: np.array(found) for name, found in trainings.items()}
    mean = {name: each.mean(axis=2) for name, each in rows.items()}
    growth = {name: _growth(each) for name, each in rows.items()}
    found = [below("random placements get worse as the network changes", -growth["random"])]
    of_trainings = []
    if "giph" in mean:
        of_trainings.append(near("GiPH has almost the same SLR as HEFT", mean["giph"], mean["heft"]))
        rivals = [name for name in ("random", "random-task-eft", "giph-task-eft", "placeto") if name in mean]
        of_trainings += [below(f"GiPH below {name}", mean["giph"] - mean[name]) for name in rivals]
    if "giph-task-eft" in mean:
        text = "GiPH-task-EFT fails to adapt: it gets worse against HEFT as the network changes"
        of_trainings.append(below(text, growth["heft"] - growth["giph-task-eft"]))
    if "placeto" in mean:
        of_trainings.append(below("Placeto above random placements", mean["random"] - mean["placeto"]))
    if "rnn-placer" in mean:
        found.append(
            below("the RNN placer, trained again, below random placements", mean["rnn-placer"] - mean["random"])
        )
        if "giph" in mean:
            of_trainings.append(near("the RNN placer comparable with GiPH", mean["rnn-placer"], mean["giph"]))
    if any(len(mean[name]) == 1 for name in ("giph", "giph-task-eft", "placeto") if name in mean):
        of_trainings = [each._replace(verdict="open", reason="one training") for each in of_trainings]
    return found + of_trainings


def _growth(rows: np.ndarray) -> np.ndarray:
    """(trainings, graphs) by how much the SLR of (trainings, graphs, changes) is higher in the second half."""
    half = rows.shape[2] // 2
    return rows[:, :, half:].mean(axis=2) - rows[:, :, :half].mean(axis=2)


def main(words: Sequence[str] | None = None) -> None:
    """Run the experiment, print the table and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=12)
    parser.add_argument("--networks", type=int, default=5)
    parser.add_argument("--changes", type=int, default=20)
    parser.add_argument("--released", choices=("cycle", "single"), help="the networks and graphs of the released code")
    parser.add_argument("--auto", type=float, metavar="SECONDS", help="run the solver auto with SECONDS per change")
    parser.add_argument("--policies", nargs="*", default=[], metavar="[NAME=]FILE", help="trained policies")
    parser.add_argument("--rnn", action="store_true", help="run the RNN placer")
    parser.add_argument("--restart", action="store_true", help="start at random placements after each change")
    parser.add_argument("--images", type=Path, metavar="FOLDER", help="folder for the figure; no figure by default")
    arguments = parser.parse_args(words)
    LEARNED.update(learned(text) for text in arguments.policies)
    names = [*SEARCHES, *LEARNED, *["rnn-placer"] * arguments.rnn, *HEURISTICS]
    if arguments.auto is not None and "auto" in po.solvers():
        names.append("auto")
    elif arguments.auto is not None:
        show("the solver auto is not installed and therefore skipped")
    searches = [Adaption(name, arguments.auto or 0.0, arguments.restart) for name in names]
    slower = []
    for networks, new, graphs in sequences(arguments):
        slower.append(new)
        documents = [network.document() for network in networks]
        with_lost = [network.document(idle=True) for network in networks]
        devices = [len(document["devices"]) for document in documents]
        for index, graph in enumerate(graphs):
            problems = [po.compile(problem_document("adapting", graph, document)) for document in documents]
            fixed = [po.compile(problem_document("adapting", graph, document)) for document in with_lost]
            for search in searches:
                search.run(fixed if search.name.startswith("placeto") else problems, 1000 * index)
    results = {search.name: np.array(search.slr) for search in searches}
    marks = list(range(0, len(devices), 5))
    starts = "from random placements" if arguments.restart else "from the placements before"
    title = f"SLR after changes of the network, {starts}: {len(graphs)} graphs on each of {len(slower)} networks"
    table = Table(title=title)
    table.add_column("search", no_wrap=True)
    for mark in marks:
        table.add_column(f"{mark}: {devices[mark]} devices", justify="right")
    for header in ("all changes", "vs. heft", "moved", "relocation"):
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
    show(table)
    show_claims(f"figure 6; searches start {starts}", claims(results))
    if arguments.images is not None:
        from giph_figures import draw_changes

        left_out = ("annealing-2", "peft") if LEARNED else ()
        shown = {name.removesuffix(f"{TRAINING}0"): rows for name, rows in results.items() if name not in left_out}
        shown = {name: rows for name, rows in shown.items() if TRAINING not in name}
        picture = draw_changes(shown, devices, np.mean(slower, axis=0).tolist())
        picture.write(arguments.images / f"{'giph-learned' if LEARNED else 'giph'}-adaptivity.png")


if __name__ == "__main__":
    main()
