"""Compute positions of the tasks of a graph, producers left of consumers: by Graphviz's `dot` or a built-in layout.

Both follow K. Sugiyama, S. Tagawa, M. Toda: Methods for visual understanding of hierarchical system structures, IEEE
Transactions on Systems, Man and Cybernetics 11(2):109-125, 1981, doi:10.1109/TSMC.1981.4308636: layers by the longest
path, orders within layers by barycentres. `dot` (E. Gansner, E. Koutsofios, S. North, K.-P. Vo: A technique for drawing
directed graphs, IEEE Transactions on Software Engineering 19(3):214-230, 1993, doi:10.1109/32.221135) also bends long
edges around tasks, but is too slow for thousands of tasks.

The built-in layout departs from Sugiyama's: long edges have no position in the layers that they cross, and the position
of a task within its layer is a compromise between those of its neighbours and a distance of one to adjacent tasks.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass

import numpy as np

from placeopt.model.arrays import LARGEST, Float, Int, by_index
from placeopt.model.graph import path_lengths
from placeopt.model.problem import Problem

DOT_TASKS = 1000
"""Maximum number of tasks for `dot`."""
DOT_SECONDS = 20.0
"""Time limit of `dot`, after which the built-in layout is used."""
_SWEEPS = 12


@dataclass(frozen=True, slots=True)
class Layout:
    """Positions of tasks and edges."""

    x: Float
    y: Float
    """(n,) positions of the tasks; 1 is about the distance of two neighbours."""
    curves: tuple[Float, ...] | None
    """For each edge the (3 k + 1, 2) control points of a cubic spline; None for straight lines."""
    width: float
    height: float
    """Size of the layout."""


def layout(problem: Problem) -> Layout:
    """Return the layout of `dot` for up to `DOT_TASKS` tasks, if it is available; else the built-in layout."""
    found = dot_layout(problem) if 0 < problem.n_tasks <= DOT_TASKS else None
    return layered_layout(problem) if found is None else found


def dot_layout(problem: Problem) -> Layout | None:
    """Return the layout of `dot`; None if `dot` is not installed, fails, or exceeds its time limit."""
    program = shutil.which("dot")
    if program is None:
        return None
    lines = ["digraph {", "rankdir=LR; nodesep=0.6; ranksep=0.6;", "node [shape=circle, width=0.4, fixedsize=true];"]
    lines += [f"{task};" for task in range(problem.n_tasks)]
    lines += [f"{a} -> {b};" for a, b in zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True)]
    try:
        done = subprocess.run(
            [program, "-Tplain"],
            input="\n".join([*lines, "}"]), capture_output=True, text=True, timeout=DOT_SECONDS, check=True,
        )  # fmt: skip
        return _read_plain(done.stdout, problem)
    except (OSError, subprocess.SubprocessError, ValueError, LookupError):
        return None  # the built-in layout replaces it


def _read_plain(text: str, problem: Problem) -> Layout:
    """Parse `dot -Tplain`: lines `node name x y ...` and `edge tail head n x1 y1 ... xn yn ...`, in inches."""
    places = np.zeros((problem.n_tasks, 2))
    curves: dict[tuple[int, int], list[Float]] = {}
    width = height = 0.0
    for line in text.splitlines():
        word, *rest = line.split()
        if word == "graph":
            width, height = float(rest[1]), float(rest[2])
        elif word == "node":
            places[int(rest[0])] = float(rest[1]), float(rest[2])
        elif word == "edge":
            count = int(rest[2])
            points = np.array(rest[3 : 3 + 2 * count], dtype=np.float64).reshape(count, 2)
            curves.setdefault((int(rest[0]), int(rest[1])), []).append(points)
    ends = zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True)
    return Layout(places[:, 0], places[:, 1], tuple(curves[pair].pop() for pair in ends), width, height)


def layered_layout(problem: Problem) -> Layout:
    """Return the built-in layout; O(sweeps (n log n + e))."""
    n = problem.n_tasks
    layer = path_lengths(problem.order, problem.out_start, problem.edge_target, np.ones(n, dtype=np.int64))
    layer = _pulled(problem, layer)
    source, target = problem.edge_source, problem.edge_target
    place = _spread(layer, np.arange(n, dtype=np.float64))
    for sweep in range(_SWEEPS):
        towards, of = (target, source) if sweep % 2 == 0 else (source, target)
        desired = _means(place, towards, of)
        place = _spread(layer, desired)
    for _ in range(_SWEEPS):
        desired = (_means(place, target, source) + _means(place, source, target)) / 2
        place = _spread(layer, desired, keep=True)
    if n:
        place = place - place.min()
    return Layout(
        layer.astype(np.float64), place, None, float(layer.max(initial=0)) + 1, float(place.max(initial=0)) + 1
    )


def _pulled(problem: Problem, layer: Int) -> Int:
    """Move tasks without producers to the layer before their first consumer, which shortens edges."""
    first = by_index(np.minimum, problem.edge_source, layer[problem.edge_target], problem.n_tasks, LARGEST)
    free = (np.diff(problem.in_start) == 0) & (np.diff(problem.out_start) > 0)
    return np.where(free, first - 1, layer)


def _means(place: Float, towards: Int, of: Int) -> Float:
    """Return (n,) the mean position of each task's neighbours, or its own position without neighbours.

    `towards` and `of` are the two ends of each edge; tasks of `towards` get the mean over `of`.
    """
    total, count = np.zeros(len(place)), np.zeros(len(place))
    np.add.at(total, towards, place[of])
    np.add.at(count, towards, 1.0)
    return np.where(count > 0, total / np.maximum(count, 1.0), place)


def _spread(layer: Int, desired: Float, *, keep: bool = False) -> Float:
    """Return positions (n,) in the order of the desired positions within each layer, at least 1 apart.

    Each layer is centred on 0, or with `keep` placed near the desired positions.
    """
    order = np.lexsort((np.arange(len(layer)), desired, layer))
    count = np.bincount(layer, minlength=1) if len(layer) else np.zeros(1, dtype=np.int64)
    rank = np.arange(len(layer)) - np.repeat(np.cumsum(count) - count, count)
    place = np.empty(len(layer))
    if not keep:
        place[order] = rank - (np.repeat(count, count) - 1) / 2
        return place
    # The mean of one pass from each side: at least 1 apart and close to the desired positions.
    free = desired[order] - rank
    bounds = np.cumsum(count)[:-1]
    parts = np.split(free, bounds)
    eased = [
        (np.maximum.accumulate(part) + np.minimum.accumulate(part[::-1])[::-1]) / 2 if len(part) else part
        for part in parts
    ]
    place[order] = np.concatenate(eased) + rank
    return place
