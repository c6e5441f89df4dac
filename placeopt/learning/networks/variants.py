"""GiPH, its variants and Placeto by name: a view and a network for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import torch
from torch import nn

from placeopt.errors import UsageError, suggestion
from placeopt.learning.graphs.gpnet import EDGE_DATA
from placeopt.learning.graphs.views import ExecutionView, GpNetView, Potential, TaskView, View
from placeopt.learning.networks.giph import Giph, GiphNoEdges, GiphPolicyOnly, GiphSteps, GraphSage
from placeopt.learning.networks.placeto import Placeto, PlacetoView

Fault = Literal["one-way", "frozen-masks", "no-task-mask", "zero-ends", "five-steps", "incoming-means"]
"""Faults of the released code of GiPH in views and networks, which `make_agent` can reproduce.

one-way          no backward pass: the second direction follows the edges too
frozen-masks     after |V| moves, the mask of allowed moves is not updated
no-task-mask     GiPH-task-EFT may choose the task that moved last
zero-ends        GiPH-k and Placeto set the messages to the wrong ends of the graph to zero
five-steps       GiPH-3 runs five steps
incoming-means   GiPH-NE, GiPH-NE-Pol and GraphSAGE-NE average the features of in-edges, not of out-edges
"""
FAULTS: tuple[Fault, ...] = get_args(Fault)


@dataclass(frozen=True, slots=True)
class Agent:
    """A network, and how it observes a search; the arguments of `make_agent` go into files of weights."""

    name: str
    network: nn.Module
    make_view: Callable[..., View]
    devices: int = 1
    potential: Potential = "paper"
    faults: frozenset[Fault] = frozenset()


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant: its view, and a function of (features of nodes, faults, devices) that creates its network."""

    summary: str
    view: type[View]
    network: Callable[[int, frozenset[Fault], int], nn.Module]


VARIANTS: Mapping[str, Variant] = {
    "giph": Variant(
        "message passing in both directions over the whole graph",
        GpNetView,
        lambda n, faults, _: Giph(n, EDGE_DATA, one_way="one-way" in faults),
    ),
    "giph-3": Variant(
        "three steps of message passing",
        GpNetView,
        lambda n, faults, _: GiphSteps(
            n, EDGE_DATA, steps=5 if "five-steps" in faults else 3, zero_ends="zero-ends" in faults
        ),
    ),
    "giph-5": Variant(
        "five steps of message passing",
        GpNetView,
        lambda n, faults, _: GiphSteps(n, EDGE_DATA, steps=5, zero_ends="zero-ends" in faults),
    ),
    "giph-ne": Variant(
        "no edge features in messages",
        GpNetView,
        lambda n, faults, _: GiphNoEdges(
            n, EDGE_DATA, incoming="incoming-means" in faults, one_way="one-way" in faults
        ),
    ),
    "giph-ne-pol": Variant(
        "no message passing",
        GpNetView,
        lambda n, faults, _: GiphPolicyOnly(n, EDGE_DATA, incoming="incoming-means" in faults),
    ),
    "graphsage-ne": Variant(
        "GraphSAGE along the edges",
        GpNetView,
        lambda n, faults, _: GraphSage(n, EDGE_DATA, incoming="incoming-means" in faults),
    ),
    "giph-task-eft": Variant(
        "chooses a task, which moves to the device with the earliest finish time",
        TaskView,
        lambda n, faults, _: Giph(n, EDGE_DATA, one_way="one-way" in faults),
    ),
    "giph-plus": Variant(
        "two more features: critical tasks, and ends by insertion (not in the paper)",
        ExecutionView,
        lambda n, faults, _: Giph(n, EDGE_DATA, one_way="one-way" in faults),
    ),
    "placeto": Variant(
        "places one task after the other (Addanki et al. 2019)",
        PlacetoView,
        lambda _, faults, devices: Placeto(devices, zero_ends="zero-ends" in faults),
    ),
}


def make_agent(
    name: str = "giph",
    *,
    devices: int = 1,
    potential: Potential = "paper",
    faults: frozenset[Fault] = frozenset(),
    seed: int | None = 0,
) -> Agent:
    """Create a variant with initial weights.

    Parameters
    ----------
    devices
        Number of devices; only Placeto depends on it.
    potential
        The start-time potential among the features.
    faults
        Faults of the released code to reproduce.
    seed
        Seed of the initial weights; None: not seeded, another fault of the released code.

    Raises
    ------
    UsageError
        If the name or a fault is unknown.
    """
    if name not in VARIANTS:
        raise UsageError(f"unknown variant {name}{suggestion(name, VARIANTS)}; expected one of {', '.join(VARIANTS)}")
    for fault in faults:
        if fault not in FAULTS:
            raise UsageError(f"unknown fault {fault}{suggestion(fault, FAULTS)}; expected one of {', '.join(FAULTS)}")
    variant = VARIANTS[name]
    nodes = 3 if potential == "none" else 4
    with torch.random.fork_rng(devices=[]):
        if seed is None:
            torch.seed()
        else:
            torch.manual_seed(seed)
        network = variant.network(nodes + variant.view.more, faults, devices)
    make_view = partial(
        variant.view,
        potential=potential,
        freeze_masks="frozen-masks" in faults,
        mask_tasks="no-task-mask" not in faults,
    )
    return Agent(name, network, make_view, devices, potential, faults)
