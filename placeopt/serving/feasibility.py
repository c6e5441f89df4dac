"""Why a problem has no plan, as far as memory, numbers of layers and shortest times show."""

from __future__ import annotations

from math import prod

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.units import two_sizes
from placeopt.serving.prefill import least_prompt_time
from placeopt.serving.problem import SECOND, Serving
from placeopt.serving.request_bounds import TimeBounds

MOST_NUMBERS = 20_000
"""Most numbers of nodes by kind for which the layers are counted that they hold in their order."""


def shortage(problem: Serving) -> str | None:
    """State a layer that no node holds, or that the nodes together do not hold all layers; None if neither is known."""
    return _large_layer(problem) or _little_memory(problem) or _few_layers(problem)


def why_none(problem: Serving, bound: int) -> str:
    """Why a problem has no plan, or that none was found if the bound of its rate is not 0."""
    lacking = shortage(problem)
    if lacking is not None:
        return f"no plan exists: {lacking}"
    if bound:
        return "no plan was found"
    if problem.steps is None:
        return "no plan exists"
    prompts, shortest = problem.prompts, TimeBounds(problem).shortest() / SECOND
    if problem.steps.token_time is not None and shortest * SECOND > problem.steps.token_time:
        return f"no plan exists: a token needs at least {shortest * 1e3:,.3g} ms"
    if prompts is not None and prompts.limit is not None:
        shortest += least_prompt_time(problem, prompts) / SECOND
        return f"no plan exists: the first token needs at least {shortest:,.3g} s"
    return "no plan exists"


def _large_layer(problem: Serving) -> str | None:
    """The first layer that no node holds."""
    held = (_further(problem)[problem.counts > 0, :-1] > np.arange(problem.layers)).any(axis=0)
    if held.all():
        return None
    layer = int(np.argmin(held))
    name = f"layer {layer - problem.prefill_layers * (layer >= problem.prefill_layers)}"
    memory, nodes = problem.memory, _nodes(problem)
    if memory is None or None in nodes or memory.layers[layer] <= max(each or 0 for each in nodes):
        return f"no node holds {name}"
    need, room = two_sizes(memory.layers[layer], max(each or 0 for each in nodes))
    return f"{name} needs {need} for its weights and one request, and the largest node has {room}{_left(problem)}"


def _little_memory(problem: Serving) -> str | None:
    """The memory of all layers, each on one node, if the nodes have less."""
    memory, nodes = problem.memory, _nodes(problem)
    if memory is None or None in nodes or sum(memory.layers) <= sum(each or 0 for each in nodes):
        return None
    need, room = two_sizes(sum(memory.layers), sum(each or 0 for each in nodes))
    twice = ", for prefill and again for decoding," if problem.prefill_layers else ""
    return f"the layers{twice} need {need} for their weights and one request, and all nodes have {room}{_left(problem)}"


def _nodes(problem: Serving) -> list[int | None]:
    """Bytes of each node, None where they are not known."""
    return [] if problem.memory is None else [problem.memory.nodes[kind] for kind in problem.kind.tolist()]


def _left(problem: Serving) -> str:
    return " that are not reserved" if problem.memory is not None and problem.memory.reserved else ""


def _few_layers(problem: Serving) -> str | None:
    """How many layers the nodes hold, if these are not all."""
    most = int(((problem.rate > 0).any(axis=1).sum(axis=1) * problem.counts).sum())
    twice = " for prefill and decoding" if problem.prefill_layers else ""
    if most < problem.layers:
        return f"the nodes hold at most {most:,} of {problem.layers:,} layers{twice}"
    if problem.alike or prod((problem.counts + 1).tolist()) > MOST_NUMBERS:
        return None
    first = _first_layers(problem)
    if first == problem.layers:
        return None
    return f"the nodes, in any order, hold at most the first {first:,} of {problem.layers:,} layers{twice}"


def _first_layers(problem: Serving) -> int:
    """The most first layers that the nodes hold, by dynamic programming over numbers of nodes of each kind."""
    further = _further(problem).tolist()
    held: dict[tuple[int, ...], int] = {}
    for numbers in np.ndindex(*(problem.counts + 1).tolist()):
        held[numbers] = max(
            (
                further[kind][held[(*numbers[:kind], number - 1, *numbers[kind + 1 :])]]
                for kind, number in enumerate(numbers)
                if number
            ),
            default=0,
        )
    return max(held.values())


def _further(problem: Serving) -> Int:
    """(t, L + 1) for each kind and number of first layers that are held: how many are held with one node more.

    Its interval may begin earlier, because measured rates may leave out intervals.
    """
    first = np.arange(problem.layers + 1)
    sizes = np.broadcast_to((problem.rate > 0).sum(axis=2), (len(problem.rate), problem.layers))
    ends = np.maximum.accumulate(np.minimum(first[:-1] + sizes, problem.layers), axis=1)
    last = np.full((len(ends), 1), problem.layers)
    further: Int = np.maximum(np.concatenate([ends, last], axis=1), first)
    return further
