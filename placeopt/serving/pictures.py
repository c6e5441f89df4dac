"""Draw a plan: each node as a bar over its layers, as high as its rate, on top of other nodes with these layers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from placeopt.model.arrays import Float
from placeopt.serving.in_flight import able_rates
from placeopt.serving.plan import Replicas, total_rate
from placeopt.serving.problem import TOKEN, Serving, tokens_text
from placeopt.views.plots import palette
from placeopt.views.plots.canvas import Picture, fill, line_legend, line_sample, new_picture, patch_sample, styled
from placeopt.views.plots.names import short

NAMED = 60
"""Bars up to this number carry the name of their node."""


@styled()
def draw_layers(problem: Serving, replicas: Replicas, *, bound: int | None = None) -> Picture:
    """Draw the layers of the nodes, what they can pass, the rate of all replicas, and a bound of the rate."""
    numbers, begins, ends, rates = (np.concatenate(each) for each in zip(
        *((nodes, plan.begin, plan.end, able_rates(problem.part(nodes), plan)) for nodes, plan in replicas), strict=True
    ))  # fmt: skip
    used, total = np.flatnonzero(ends > begins).tolist(), total_rate(replicas)
    if len(replicas) == 1:
        used.sort(key=lambda i: (begins[i], ends[i], i))
    notes = [f"{tokens_text(total)} on {len(used)} of {problem.n_nodes} nodes"]
    if len(replicas) > 1:
        notes[0] += f" in {len(replicas)} replicas"
    if bound is not None:
        notes.append(f"no plan passes more than {tokens_text(bound)}")
    picture = new_picture(4.2, problem.name or "serving", "; ".join(notes))
    axes = picture.subplots()
    colors = palette.device_colors(problem.kind_names)
    height = np.zeros(problem.layers)
    boxes, shades = [], []
    for i in used:
        begin, end, n, rate = int(begins[i]), int(ends[i]), int(numbers[i]), rates[i] / TOKEN
        parts = _level_parts(height, begin, end)
        for first, last, low in parts:
            boxes.append(np.array([(first, low), (last, low), (last, low + rate), (first, low + rate)]))
            shades.append(colors[int(problem.kind[n])])
        first, last, low = max(parts, key=lambda part: part[1] - part[0])
        if len(used) <= NAMED and last - first > 1:
            axes.text(
                (first + last) / 2, low + rate / 2, short(problem.node_names[n], 12), ha="center", va="center",
                fontsize=6, clip_on=True, rotation=90 if last - first < problem.layers / 12 else 0,
            )  # fmt: skip
        height[begin:end] += rate
    fill(axes, boxes, shades, linewidths=0.6, edgecolors=palette.PAPER, alpha=0.75)
    axes.axhline(total / TOKEN, color=palette.INK, linewidth=1.4)
    entries: list[tuple[Any, str]] = [
        (patch_sample(colors[kind], alpha=0.75), name)
        for kind, name in enumerate(problem.kind_names)
        if (problem.kind[numbers[used]] == kind).any()
    ]
    entries.append((line_sample(palette.INK), "tokens of the plan"))
    if bound is not None:
        axes.axhline(bound / TOKEN, color=palette.LIMIT, linewidth=1.2, linestyle=(0, (5, 2)))
        entries.append((line_sample(palette.LIMIT, dashes=(5, 2)), "bound"))
    half = problem.prefill_layers
    if half:
        axes.axvline(half, color=palette.INK, linewidth=0.8)
        axes.xaxis.set_major_formatter(lambda layer, _: f"{layer - half * (layer >= half):g}")
    axes.set_xlim(0, problem.layers)
    axes.set_ylim(0, 1.05 * max(float(height.max(initial=0)), (bound or total) / TOKEN, 1e-6))
    axes.set_xlabel("layer of prefill, and then of decoding" if half else "layer")
    axes.set_ylabel("tokens/s")
    line_legend(picture, entries)
    return picture


def _level_parts(height: Float, begin: int, end: int) -> list[tuple[int, int, float]]:
    """The parts of an interval with the same height: their first layer, their end, and the height."""
    borders = [begin, *(layer for layer in range(begin + 1, end) if height[layer] != height[layer - 1]), end]
    return [(first, last, float(height[first])) for first, last in pairwise(borders)]
