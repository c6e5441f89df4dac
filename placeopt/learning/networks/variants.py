"""GiPH, its variants and Placeto by name: a view and a network for each. Only networks in PyTorch need PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from placeopt.bridges.extras import require
from placeopt.errors import UsageError, suggestion
from placeopt.learning.graphs.gpnet import EDGE_DATA
from placeopt.learning.graphs.placeto import PlacetoView
from placeopt.learning.graphs.views import ExecutionView, GpNetView, Potential, TaskView, View
from placeopt.learning.networks.compiled import Layers

if TYPE_CHECKING:
    from torch import nn

Network: TypeAlias = "nn.Module | Layers"
"""A network in PyTorch, or the weights of GiPH's own network, which runs compiled and without PyTorch."""

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
    network: Network
    make_view: Callable[..., View]
    devices: int = 1
    potential: Potential = "paper"
    faults: frozenset[Fault] = frozenset()

    @property
    def module(self) -> nn.Module:
        """The network in PyTorch, which training needs; raises a UsageError if the network is compiled."""
        if isinstance(self.network, Mapping):
            raise UsageError(
                f"the agent {self.name} has a compiled network, for searches only; expected one that `make_agent`, or "
                "`load_policy` without `compiled`, returned"
            )
        return self.network


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant: its view, and whether its network is `networks.giph.Giph`, which has a compiled version."""

    summary: str
    view: type[View]
    compiled: bool = False

    def nodes(self, potential: Potential) -> int:
        """Number of features of a node."""
        return (3 if potential == "none" else 4) + self.view.more


VARIANTS: Mapping[str, Variant] = {
    "giph": Variant("message passing in both directions over the whole graph", GpNetView, compiled=True),
    "giph-3": Variant("three steps of message passing", GpNetView),
    "giph-5": Variant("five steps of message passing", GpNetView),
    "giph-ne": Variant("no edge features in messages", GpNetView),
    "giph-ne-pol": Variant("no message passing", GpNetView),
    "graphsage-ne": Variant("GraphSAGE along the edges", GpNetView),
    "giph-task-eft": Variant(
        "chooses a task, which moves to the device with the earliest finish time", TaskView, compiled=True
    ),
    "giph-plus": Variant(
        "two more features: critical tasks, and ends by insertion (not in the paper)", ExecutionView, compiled=True
    ),
    "placeto": Variant("places one task after the other (Addanki et al. 2019)", PlacetoView),
}


def make_agent(
    name: str = "giph",
    *,
    devices: int = 1,
    potential: Potential = "paper",
    faults: frozenset[Fault] = frozenset(),
    seed: int | None = 0,
) -> Agent:
    """Create a variant with initial weights, in PyTorch.

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
    MissingExtraError
        If PyTorch is not installed.
    """
    if name not in VARIANTS:
        raise UsageError(f"unknown variant {name}{suggestion(name, VARIANTS)}; expected one of {', '.join(VARIANTS)}")
    for fault in faults:
        if fault not in FAULTS:
            raise UsageError(f"unknown fault {fault}{suggestion(fault, FAULTS)}; expected one of {', '.join(FAULTS)}")
    require("torch", "torch", f"policies of the variant {name}")
    import torch

    with torch.random.fork_rng(devices=[]):
        if seed is None:
            torch.seed()
        else:
            torch.manual_seed(seed)
        network = _network(name, VARIANTS[name].nodes(potential), faults, devices)
    return Agent(name, network, view_maker(name, potential, faults), devices, potential, faults)


def runs_compiled(name: str, faults: frozenset[Fault]) -> bool:
    """Whether searches of a variant need no PyTorch, as its network has a compiled version (`CompiledGiph`)."""
    return name in VARIANTS and VARIANTS[name].compiled and "one-way" not in faults


def view_maker(name: str, potential: Potential, faults: frozenset[Fault]) -> Callable[..., View]:
    """What creates the views of a variant, from a problem and a placement."""
    return partial(
        VARIANTS[name].view,
        potential=potential,
        freeze_masks="frozen-masks" in faults,
        mask_tasks="no-task-mask" not in faults,
    )


def _network(name: str, nodes: int, faults: frozenset[Fault], devices: int) -> nn.Module:
    from placeopt.learning.networks.giph import Giph, GiphNoEdges, GiphPolicyOnly, GiphSteps, GraphSage
    from placeopt.learning.networks.placeto import Placeto

    one_way, incoming, zero_ends = (fault in faults for fault in ("one-way", "incoming-means", "zero-ends"))
    match name:
        case "giph-3":
            return GiphSteps(nodes, EDGE_DATA, steps=5 if "five-steps" in faults else 3, zero_ends=zero_ends)
        case "giph-5":
            return GiphSteps(nodes, EDGE_DATA, steps=5, zero_ends=zero_ends)
        case "giph-ne":
            return GiphNoEdges(nodes, EDGE_DATA, incoming=incoming, one_way=one_way)
        case "giph-ne-pol":
            return GiphPolicyOnly(nodes, EDGE_DATA, incoming=incoming)
        case "graphsage-ne":
            return GraphSage(nodes, EDGE_DATA, incoming=incoming)
        case "placeto":
            return Placeto(devices, zero_ends=zero_ends)
        case _:
            assert VARIANTS[name].compiled
            return Giph(nodes, EDGE_DATA, one_way=one_way)
