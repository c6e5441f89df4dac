"""Generate GiPH's deep learning graphs: recurrent cells of ENAS, unrolled in time.

Y. Hu et al.: GiPH, MLSys 2023, arXiv:2305.14562, section 5.2 and appendix B.3: 10 recurrent cell designs of ENAS for
language models on the Penn Treebank, 30 graphs of each with 20 to 30 steps and a batch of 80 to 150, hence 300 graphs
of 200 to 300 operators, and one simulated network of 8 devices. The graphs are not in GiPH's repository.

The cells: H. Pham, M. Guan, B. Zoph, Q. Le, J. Dean: Efficient neural architecture search via parameter sharing, ICML
2018, arXiv:1802.03268, sections 2.1 and 3.1, and https://github.com/melodyguan/enas (src/ptb). A cell has 12 nodes.
Node 1 reads the input and the last output; every other node reads an earlier node. A node is a highway layer with one
of four activations: s = p + sigmoid(p V) (f(p W) - p). The output is the mean of the nodes that no node reads. The
width is 748, as in the released script for the best cell, which gives 22 million weights (24 in the paper). The
vocabulary has 10,000 words, and the embedding is also the matrix of the output layer.

Choices and departures:

- Cells are drawn uniformly from the search space of ENAS instead of by a trained controller.
- The paper's 200 to 300 operators in 20 to 30 steps are 10 per step, but a cell has 12 nodes and a mean. A node whose
  only reader reads it alone is therefore fused with this reader. Cells are drawn until 8 operators remain besides the
  mean. With the output layer (softmax and loss included), a step has 10 operators. The best cell of ENAS has 11. The
  embedding of all steps is one operator, as in the code of ENAS, and the loss is another, so that a graph has 202 to
  302 operators.
- ENAS computes the output layer for all steps at once. After the merging, such a graph would be nearly a chain, and one
  device would be best.
- The graphs are for inference. All devices have all weights, because the simulator of the paper has no memory: tasks
  have neither colocation groups nor memory.
- The network is one of `released` without hardware types: 8 devices with 5 TFLOP/s, 1.25 GB/s (an Ethernet of 10 Gb/s)
  and 50 us on average. After the merging, all transfers take 0.7 to 0.8 times as long as all tasks. The memory
  bandwidth is proportional to the speed, as on a P100 (732 GB/s for 9.3 TFLOP/s).

Before the placement, the experiment merges each graph into 40 groups by the pass `giph-groups`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.random import Generator

from placeopt.generate.arguments import Purpose, streams, whole
from placeopt.generate.giph.cases import CaseSet, Documents, Sets
from placeopt.generate.giph.released import released_network
from placeopt.generate.layers import ELEMENTWISE, Graph, ModelOptions, Tensor, Weights, tasks
from placeopt.generate.networks import Document, combine

CELLS, GRAPHS = 10, 30
STEPS, BATCH = (20, 30), (80, 150)
NODES, OPERATORS = 12, 10
WIDTH, VOCABULARY = 748, 10_000
ACTIVATIONS: Mapping[str, int] = {
    name: 0 if name == "identity" else ELEMENTWISE[name][0] for name in ("tanh", "relu", "identity", "sigmoid")
}
"""FLOP per element of each activation of ENAS."""

_HIGHWAY = ELEMENTWISE["sigmoid"][0] + 3
"""FLOP per element of a highway layer besides its activation: the gate, a difference, a product and a sum."""


_LOSS = ELEMENTWISE["softmax"][0] + 2
"""FLOP per score of an output layer: the softmax and the cross-entropy."""


_GIGABYTES, _MICROSECONDS = 1.25, 50
"""Means of the links: bandwidth in GB/s and latency; the released means are 100 and 10."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A recurrent cell: the node that each node reads (None for the first), and their activations.

    Nodes are in topological order, from 0.
    """

    reads: tuple[int | None, ...]
    activations: tuple[str, ...]

    def loose_ends(self) -> list[int]:
        """Return the nodes that no node reads."""
        return [node for node in range(len(self.reads)) if node not in self.reads]

    def operators(self) -> list[list[int]]:
        """Return the nodes of each operator except the mean: chains of nodes with a single reader."""
        chains: dict[int, list[int]] = {}
        for node, read in enumerate(self.reads):
            if read is not None and self.reads.count(read) == 1:
                chains[node] = chains.pop(read)
                chains[node].append(node)
            else:
                chains[node] = [node]
        return sorted(chains.values())


def drawn_cell(rng: Generator) -> Cell:
    """Draw a cell of NODES nodes whose step has OPERATORS operators, the mean and the output layer included."""
    while True:
        reads = (None, *(int(rng.integers(node)) for node in range(1, NODES)))
        names = tuple(list(ACTIVATIONS)[k] for k in rng.integers(len(ACTIVATIONS), size=NODES))
        cell = Cell(reads, names)
        if len(cell.operators()) + 2 == OPERATORS:
            return cell


def cell_tasks(cell: Cell, steps: int, batch: int) -> Document:
    """Return the section `tasks` of a language model with this cell, unrolled."""
    graph = Graph(ModelOptions(batch=whole("batch", batch, 1)))
    embedding = Weights("embedding", VOCABULARY * WIDTH)
    words = graph.embedding("embedding", (batch, whole("steps", steps, 1)), WIDTH, embedding, scaled=False)
    last = Tensor(None, (batch, WIDTH))
    losses = []
    for step in range(1, steps + 1):
        last = _add_step(graph, cell, f"step{step}", Tensor(words.task, last.shape), last)
        scores = batch * VOCABULARY
        costs: dict[str, Any] = {"macs": scores * WIDTH, "flops": _LOSS * scores, "weights": embedding}
        losses.append(graph.add(f"step{step}/output", "output", (batch,), (last,), **costs))
    graph.add("loss", "mean", (1,), losses, flops=batch * steps)
    found = tasks(graph)
    for task in found.values():
        task.pop("memory", None)
        task.pop("colocate", None)
    return {"tasks": found}


def enas_network(seed: int = 0, *, devices: int = 8) -> Document:
    """Return the sections `devices` and `links` of the simulated network."""
    network = released_network(seed, devices=devices, types=1, support=1.0)
    found: Document = {
        f"d{index}": {
            "type": "device",
            "speed": f"{speed:.9f} TFLOP/s",
            "memory_bandwidth": f"{speed * 732 / 9.3:.6f} GB/s",
        }
        for index, speed in enumerate(network.speed.tolist())
    }
    delay, inverse = network.delay.tolist(), network.inverse_bandwidth.tolist()
    overrides = [
        {
            "between": [f"d{a}", f"d{b}"],
            "bandwidth": f"{_GIGABYTES / 100 / inverse[a][b]:.9f} GB/s",
            "latency": f"{_MICROSECONDS / 10 * delay[a][b]:.3f} us",
        }
        for a in range(devices)
        for b in range(a + 1, devices)
    ]
    return {"devices": found, "links": {"overrides": overrides}}


def enas_sets(seed: int = 0) -> Sets:
    """Return the training set and the test set, half of the graphs of each cell each, and one more for validation."""
    cells, sizes, others = streams(Purpose.ENAS, seed, 3)
    designs: list[Cell] = []
    while len(designs) < CELLS:
        cell = drawn_cell(cells)
        if cell not in designs:
            designs.append(cell)

    def drawn(cell: Cell, rng: Generator) -> tuple[Cell, int, int]:
        steps, batch = (int(rng.integers(*bounds, endpoint=True)) for bounds in (STEPS, BATCH))
        return cell, steps, batch

    train, validation, test = [], [], []
    for cell in designs:
        graphs = [drawn(cell, sizes) for _ in range(GRAPHS)]
        train += graphs[: GRAPHS // 2]
        test += graphs[GRAPHS // 2 :]
        validation.append(drawn(cell, others))
    network = Documents(enas_network, [(seed,)])
    return Sets(
        *(
            CaseSet(f"enas-{name}", Documents(cell_tasks, part), network, _problem, passes=("giph-groups",))
            for name, part in zip(Sets._fields, (train, validation, test), strict=True)
        )
    )


def _add_step(graph: Graph, cell: Cell, name: str, word: Tensor, last: Tensor) -> Tensor:
    """Add a time step of the cell; return its output."""
    batch = graph.options.batch
    made: dict[int, Tensor] = {}
    for chain in cell.operators():
        read = cell.reads[chain[0]]
        inputs = (word, last) if read is None else (made[read],)
        # The first node multiplies the input and the last output by a matrix each.
        matrices = 2 * len(chain) + (2 if read is None else 0)
        flops = sum(_HIGHWAY + ACTIVATIONS[cell.activations[node]] for node in chain)
        made[chain[-1]] = graph.add(
            f"{name}/node{'-'.join(str(node + 1) for node in chain)}",
            "highway",
            (batch, WIDTH),
            inputs,
            macs=matrices * batch * WIDTH * WIDTH,
            flops=flops * batch * WIDTH,
            weights=Weights(f"node{chain[0] + 1}", matrices * WIDTH * WIDTH),
        )
    ends = [made[node] for node in cell.loose_ends()]
    return graph.add(f"{name}/mean", "mean", (batch, WIDTH), ends, flops=len(ends) * batch * WIDTH)


def _problem(name: str, graph: Document, network: Document) -> Document:
    return combine(
        graph,
        network,
        name=name,
        description="A language model with a recurrent cell of ENAS, unrolled in time.",
        source="Generated as in GiPH (Hu et al. 2023, MLSys), section 5.2 and appendix B.3.",
    )
