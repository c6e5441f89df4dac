"""The compiled problem: layers, nodes with their rates, links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from placeopt.errors import UsageError
from placeopt.model.arrays import Int, checked_whole, whole_numbers

TOKEN = 10**6
"""Rates are whole numbers of millionths of a token per second."""

UNLIMITED = 2**50
"""The rate of a link that never limits, and the largest rate of a node: about 10^9 tokens/s."""


LARGEST = 2**62
"""A rate of all nodes together that is never reached, and a time."""

LONGEST = UNLIMITED
"""The longest time of a step, a prompt or a period in ps, about 19 minutes."""

SECOND = 10**12
"""Times of steps are whole picoseconds."""

TABLES = ("room", "reading", "token", "overhead", "work")
"""Tables of `Steps` by kind."""


def tokens_text(rate: int) -> str:
    """A rate in tokens per second."""
    tokens = rate / TOKEN
    return f"{tokens:,.2f} tokens/s" if tokens < 10_000 else f"{tokens:,.0f} tokens/s"


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Times of the steps of nodes that serve several requests at a time.

    A step makes one token for each of b requests, in max(`reading` + b `token`, `overhead` + b `work`) picoseconds.
    """

    room: Int
    """(t, L or 1, K) requests whose tokens fit next to the weights, by kind, first layer and number of layers."""
    reading: Int
    token: Int
    overhead: Int
    work: Int
    """(t, L or 1, K) picoseconds; `overhead` is never more than `reading`."""
    delay: Int
    """(v, v) latency from one node to another, in picoseconds. Tokens also take the time of the rate of the link."""
    entry_delay: Int
    exit_delay: Int
    """(v,) latency from and to the coordinator."""
    token_time: int | None = None
    """The longest time between two tokens of a request; None without a limit."""
    requests: int | None = None
    batch: int | None = None
    """The most requests in flight, and in a step; None without a limit."""

    def part(self, nodes: Int) -> Steps:
        """The steps of some of the nodes."""
        return replace(
            self, delay=self.delay[np.ix_(nodes, nodes)], entry_delay=self.entry_delay[nodes],
            exit_delay=self.exit_delay[nodes],
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Prompts:
    """What prompts of requests take, and what passes between nodes if prefill is separate from decoding."""

    tokens: int
    answer: int
    """Tokens of a prompt, and of its answer."""
    time: Int
    """(t, L or 1, K) picoseconds of one prompt on a node, by kind, first layer and number of layers."""
    limit: int | None = None
    """The longest time to the first token, in picoseconds; None without a limit."""
    separate: bool = False
    """Whether the first half of the layers of the problem is for prefill, and the second one for decoding."""
    cache: Int | None = None
    """(L,) bytes of the KV cache of a prompt by layer, which go from prefill to decoding; None if this is left out."""
    transfer: Int | None = None
    """(v, v) bytes per second from one node to another; UNLIMITED without a limit."""

    def part(self, nodes: Int) -> Prompts:
        """The prompts for some of the nodes."""
        return self if self.transfer is None else replace(self, transfer=self.transfer[np.ix_(nodes, nodes)])

    def share(self, rates: Int) -> Int:
        """Rates of links in tokens of answers, of which each stands for its part of a prompt, rounded down."""
        different, place = np.unique(rates, return_inverse=True)
        passed = [
            rate if rate >= UNLIMITED else min(rate * self.answer // self.tokens, UNLIMITED)
            for rate in different.tolist()
        ]
        return np.array(passed, dtype=np.int64)[place].reshape(rates.shape)


@dataclass(frozen=True, slots=True, eq=False)
class MemoryNeeds:
    """Bytes that layers need at least, and bytes of nodes."""

    layers: tuple[int, ...]
    """Bytes of the weights, the tables and the tokens of one request of each layer."""
    nodes: tuple[int | None, ...]
    """Bytes of a node of each kind, without what is reserved; None where rates are measured."""
    reserved: bool = False
    """Whether some memory of nodes is reserved."""


@dataclass(frozen=True, eq=False)
class Serving:
    """Layers to divide among nodes.

    Attributes
    ----------
    layers
        Number of layers L.
    node_names, kind_names
        Names of the v nodes and of the t kinds.
    kind
        (v,) kind of each node. Nodes of a kind have the same rates.
    rate
        (t, L or 1, K) rates: `rate[t, s, k - 1]` is what a node of kind t passes that holds k layers from layer s on,
        0 if it cannot hold them. The second axis has one entry where all layers are alike. Never larger for more
        layers.
    link
        (v, v) rates of links; UNLIMITED without a limit.
    entry, exit
        (v,) rates of the links from and to the coordinator, which sends every token to its first node and receives it
        from its last.
    partial
        Whether a node may pass only some of its layers for a token, from any of them to its last.
    runs
        Numbers of successive layers that are alike, such as (1, 30, 1).
    price
        (t,) price of an hour of a node of each kind, in millionths; None without prices.
    steps
        Times of steps, if the nodes share the requests in flight; None if `rate` is all that limits a node.
    demand
        The rate for which the cheapest nodes are to be found; None if the largest rate is wanted.
    prompts
        What prompts take; None if they are left out. With separate prefill, there are twice as many layers as in the
        model: a request passes all of them for its prompt, and then all of them again for each token of its answer. A
        node holds layers of one half. `rate` and `link` remain tokens of answers.
    replicas
        The most complete copies of the model, each with its own nodes and groups of requests.
    degree
        (t,) number of GPUs that share each layer in a node of each kind.
    context
        Tokens of a request that are kept; None if rates are measured and the problem does not state it.
    memory
        Memory of layers and nodes, which explains why no plan exists; None if it is unknown.
    """

    layers: int
    node_names: tuple[str, ...]
    kind_names: tuple[str, ...]
    kind: Int
    rate: Int
    link: Int
    entry: Int
    exit: Int
    partial: bool = True
    runs: tuple[int, ...] = ()
    steps: Steps | None = None
    price: Int | None = None
    demand: int | None = None
    prompts: Prompts | None = None
    replicas: int = 1
    degree: tuple[int, ...] = ()
    context: int | None = None
    memory: MemoryNeeds | None = None
    name: str = ""
    description: str = ""
    notes: tuple[str, ...] = ()

    @property
    def prefill_layers(self) -> int:
        """The number of layers for prefill alone, which are the first ones."""
        return self.layers // 2 if self.prompts is not None and self.prompts.separate else 0

    @cached_property
    def prefill_link(self) -> Int:
        """(v, v) rates of links between nodes for prefill."""
        return self.prompts.share(self.link) if self.prompts is not None and self.prefill_layers else self.link

    @cached_property
    def prefill_entry(self) -> Int:
        """(v,) rates of links from the coordinator to nodes for prefill."""
        return self.prompts.share(self.entry) if self.prompts is not None and self.prefill_layers else self.entry

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.node_names)

    @property
    def alike(self) -> bool:
        """Whether all layers are alike."""
        return len(self.rate[0]) == 1

    @property
    def most(self) -> int:
        """The most layers that any node can hold."""
        return len(self.rate[0, 0])

    def rate_of(self, kind: int, begin: int, end: int) -> int:
        """What a node of a kind passes that holds the layers from `begin` to before `end`; 0 if it cannot."""
        count = end - begin
        if not 0 < count <= self.most or begin < 0 or end > self.layers:
            return 0
        return int(self.rate[kind, 0 if self.alike else begin, count - 1])

    @cached_property
    def counts(self) -> Int:
        """(t,) number of nodes of each kind."""
        return np.bincount(self.kind, minlength=len(self.kind_names)).astype(np.int64)

    def part(self, nodes: Int | Sequence[int]) -> Serving:
        """The problem of one replica with some of the nodes, stated by their numbers."""
        nodes = np.asarray(nodes, dtype=np.int64)
        return replace(
            self, replicas=1, node_names=tuple(self.node_names[n] for n in nodes.tolist()), kind=self.kind[nodes],
            link=self.link[np.ix_(nodes, nodes)], entry=self.entry[nodes], exit=self.exit[nodes],
            steps=None if self.steps is None else self.steps.part(nodes),
            prompts=None if self.prompts is None else self.prompts.part(nodes),
        )  # fmt: skip

    def without_requests(self, rate: Int | None = None) -> Serving:
        """The problem, with other rates if they are stated, in which nothing but rates of nodes and links limits."""
        prompts = None
        if self.prompts is not None and self.prompts.separate:
            prompts = replace(self.prompts, limit=None, cache=None)
        return replace(self, rate=self.rate if rate is None else rate, steps=None, prompts=prompts)

    def with_merged_kinds(self) -> Serving:
        """The same problem, in which nodes with the same rates and steps have the same kind; it has no prices, and its
        memory is unknown."""
        tables = [self.rate]
        if self.steps is not None:
            tables += [getattr(self.steps, name) for name in TABLES]
        if self.prompts is not None:
            tables.append(self.prompts.time)
        rows = [b"".join(table[kind].tobytes() for table in tables) for kind in range(len(self.kind_names))]
        firsts = [kind for kind, row in enumerate(rows) if rows.index(row) == kind]
        steps = self.steps
        if steps is not None:
            steps = replace(steps, **{name: getattr(steps, name)[firsts] for name in TABLES})
        number = np.array([firsts.index(rows.index(row)) for row in rows], dtype=np.int64)
        return replace(
            self, kind_names=tuple(self.kind_names[kind] for kind in firsts), kind=number[self.kind],
            degree=tuple(self.degree[kind] for kind in firsts), rate=self.rate[firsts], steps=steps, price=None,
            memory=None,
            prompts=None if self.prompts is None else replace(self.prompts, time=self.prompts.time[firsts]),
        )  # fmt: skip

    def __repr__(self) -> str:
        name = f" {self.name}" if self.name else ""
        return f"<Serving{name}: {self.layers} layers, {self.n_nodes} nodes of {len(self.kind_names)} kinds>"


def build_serving(
    *,
    layers: int,
    node_names: list[str],
    kind: object,
    rate: object,
    kind_names: list[str] | None = None,
    link: object = None,
    entry: object = None,
    exit: object = None,
    partial: bool = True,
    runs: Sequence[int] | None = None,
    steps: Steps | None = None,
    price: object = None,
    demand: int | None = None,
    prompts: Prompts | None = None,
    replicas: int = 1,
    degree: Sequence[int] | None = None,
    context: int | None = None,
    memory: MemoryNeeds | None = None,
    name: str = "",
    description: str = "",
    notes: tuple[str, ...] = (),
) -> Serving:
    """Build a problem from arrays; see `Serving`. A rate that grows with the number of layers is cut to the one before.

    Raises
    ------
    UsageError
        If an array has a wrong shape or value.
    """
    if isinstance(layers, bool) or not isinstance(layers, int) or not 1 <= layers <= 10_000:
        raise UsageError(f"layers is {layers!r}; expected a whole number from 1 to 10000")
    v = len(node_names)
    if not v or len(set(node_names)) != v:
        raise UsageError("node_names: expected at least one name, and no name twice")
    rates = whole_numbers("rate", rate, None, "kinds x layers x counts", most=UNLIMITED)
    if rates.ndim != 3 or rates.shape[1] not in (1, layers) or not 1 <= rates.shape[2] <= layers:
        raise UsageError(f"rate has the shape {rates.shape}; expected (kinds, 1 or {layers}, 1 to {layers})")
    kinds = [f"kind{k}" for k in range(len(rates))] if kind_names is None else kind_names
    if len(kinds) != len(rates):
        raise UsageError(f"kind_names has {len(kinds)} names; expected {len(rates)}")
    falling = np.minimum.accumulate(rates, axis=2)
    if rates.shape[1] > 1:
        beyond = np.arange(layers)[:, None] + np.arange(1, rates.shape[2] + 1)[None, :] > layers
        falling = np.where(beyond[None], 0, falling)
    links = whole_numbers("link", link, (v, v), "nodes x nodes", default=UNLIMITED, most=UNLIMITED)
    ends = [
        whole_numbers(what, given, (v,), "nodes", default=UNLIMITED, most=UNLIMITED)
        for what, given in (("entry", entry), ("exit", exit))
    ]
    if steps is not None and (steps.overhead > steps.reading).any():
        raise UsageError("steps.overhead is more than steps.reading; expected at most the same")
    runs = ([layers] if rates.shape[1] == 1 else [1] * layers) if runs is None else runs
    if sum(runs) != layers or min(runs) < 1:
        raise UsageError(f"runs is {list(runs)}; expected numbers of layers that add up to {layers}")
    prices = None if price is None else whole_numbers("price", price, (len(rates),), "kinds", most=UNLIMITED)
    return Serving(
        layers=layers, node_names=tuple(node_names), kind_names=tuple(kinds),
        kind=whole_numbers("kind", kind, (v,), "nodes", most=len(rates) - 1), rate=falling, link=links,
        entry=ends[0], exit=ends[1], partial=bool(partial), runs=tuple(runs),
        steps=steps, price=prices, demand=demand, prompts=prompts,
        replicas=checked_whole("replicas", replicas, 1, v), degree=tuple(degree or [1] * len(rates)),
        context=context, memory=memory, name=name, description=description, notes=notes,
    )  # fmt: skip


def check_serving(caller: str, problem: object) -> None:
    """Reject anything but a `Serving`."""
    if not isinstance(problem, Serving):
        kind = type(problem).__name__
        raise UsageError(f"{caller} takes a Serving, got {kind}; placeopt.load_serving makes one from a file or a dict")
