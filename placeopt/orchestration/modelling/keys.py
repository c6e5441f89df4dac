"""Types of the keys of each part of a problem. Generated from the spec by docs/_pages/model_keys.py."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, Required, TypedDict

import numpy as np

from placeopt.io.spec import NumberFormat
from placeopt.model.pipeline import InFlight
from placeopt.model.problem import Contention, MemoryModel, Metric
from placeopt.orchestration.modelling.parts import Device, Entries, Operation, Resource, Task

Number = float | Fraction | Decimal | np.integer[Any] | np.floating[Any]
Amount = str | Number
"""A number with its unit as text, or a number in the unit that `units` states."""


class MemoryKeys(TypedDict, total=False):
    """Memory of a task on its device."""

    resident: Amount | None
    output: Amount | None
    scratch: Amount | None


class MigrationKeys(TypedDict, total=False):
    """Cost of moving a task to another device, for the objective `relocation`."""

    bytes: Amount | None
    startup: Amount | Entries[Device | str, Amount] | None


class ViewKeys(TypedDict, total=False):
    """Where an output lies in that of a producer."""

    of: Required[Task | str]
    at: Amount


class TaskKeys(TypedDict, total=False):
    """A task (an operator): its durations, its requirements, and its allowed devices."""

    op: Operation | str | None
    time: Amount | Entries[Device | str, Amount] | None
    flops: Amount | None
    bytes: Amount | None
    precision: NumberFormat | None
    output: Amount | None
    memory: Amount | MemoryKeys | None
    after: Task | str | Entries[Task | str, Amount | None] | Sequence[Task | str]
    migration: Amount | MigrationKeys | None
    in_place: Task | str | Sequence[Task | str]
    view: Task | ViewKeys | str | None
    backward_of: Task | str | None
    gradient: Amount | None
    release: Amount | None
    deadline: Amount | None
    due: Amount | DueKeys | None
    price: Amount | Entries[Device | str, Amount] | None
    devices: Device | str | Sequence[Device | str] | None
    requires: str | Sequence[str]
    pin: Device | str | None
    uses: Entries[Resource | str, Number | Entries[Device | str, Number]]
    cores: int | None
    family: str | None
    modes: Entries[str, ModeKeys | None]
    colocate: str | Sequence[str]
    separate: str | Sequence[str]


class ModeKeys(TypedDict, total=False):
    """A way to run a task: other values than those of the task itself."""

    time: Amount | Entries[Device | str, Amount] | None
    flops: Amount | None
    bytes: Amount | None
    precision: NumberFormat | None
    devices: Device | str | Sequence[Device | str] | None
    output: Amount | None
    memory: Amount | MemoryKeys | None
    shards: Amount | None
    uses: Entries[Resource | str, Number | Entries[Device | str, Number]]
    cores: int | None
    team: Entries[Device | str, int] | Sequence[Device | str] | None
    all_reduce: Amount | Sequence[Amount]
    all_gather: Amount | Sequence[Amount]


class DueKeys(TypedDict, total=False):
    """A due date, for the objective `tardiness`."""

    by: Required[Amount]
    weight: int


class StageKeys(TypedDict, total=False):
    """How a device serves a pipeline."""

    overlap: bool | None
    duplex: Literal["full", "half"] | None
    transfers: Literal["counted", "free"] | None
    stages: Literal["contiguous", "free"] | None
    segments: int | None
    launch: Amount | None
    machines: Sequence[int] | None


class PipelineKeys(StageKeys, total=False):
    """How runs follow each other, for the objective `period`. Devices may state other values for themselves."""

    multicast: bool
    replicas: int
    in_flight: InFlight
    microbatches: int
    recompute: bool


class EfficiencyKeys(TypedDict, total=False):
    """Fractions of the rates of a device that tasks reach."""

    compute: Number | None
    memory: Number | None


class TierKeys(TypedDict, total=False):
    """Slower memory of a device, which holds the bytes that do not fit into the memory before it."""

    memory: Amount | None
    bandwidth: Required[Amount]


WindowKeys = TypedDict(
    "WindowKeys",
    {
        "from": "Required[Amount]",
        "to": "Required[Amount]",
    },
    total=False,
)
"""A time in which a device runs no task."""


RegionKeys = TypedDict(
    "RegionKeys",
    {
        "from": "Required[Amount]",
        "to": "Required[Amount]",
    },
    total=False,
)
"""Bytes of the memory of a device that no buffer may take."""


class DeviceKeys(TypedDict, total=False):
    """A device, or `count` identical devices."""

    like: str | None
    type: str | None
    count: int | None
    memory: Amount | None
    tiers: Sequence[TierKeys]
    unavailable: Sequence[WindowKeys]
    reserved: Sequence[RegionKeys]
    setup: Amount | Entries[str, Amount | Entries[str, Amount]]
    initial_family: str | None
    cores: int | None
    parallel: bool
    speed: Amount | Entries[NumberFormat, Amount] | None
    memory_bandwidth: Amount | None
    efficiency: EfficiencyKeys | Number | None
    overhead: Amount | None
    features: str | Sequence[str]
    power: Amount | None
    price: Number | None
    pipeline: StageKeys | None


class LinkKeys(TypedDict, total=False):
    """Cost of a transfer between two different devices. Its duration is latency + payload / bandwidth."""

    like: str | None
    bandwidth: Amount | None
    latency: Amount | None
    energy: Amount | None


LinkOverrideKeys = TypedDict(
    "LinkOverrideKeys",
    {
        "like": "str | None",
        "bandwidth": "Amount | None",
        "latency": "Amount | None",
        "energy": "Amount | None",
        "between": "Sequence[Device | str] | None",
        "from": "Device | str | Sequence[Device | str] | None",
        "to": "Device | str | Sequence[Device | str] | None",
    },
    total=False,
)
"""Different values for some links. Later overrides take precedence. Omitted values remain unchanged."""


class SharedLinkKeys(TypedDict, total=False):
    """A link that several pairs of devices transfer over. It carries one transfer at a time."""

    uplink_of: Device | str | Sequence[Device | str] | None
    between: Device | str | Sequence[Device | str] | None
    duplex: Literal["full", "half"] | None


class LinksKeys(TypedDict, total=False):
    """Links between devices. Every pair of devices is connected."""

    default: LinkKeys | None
    overrides: Sequence[LinkOverrideKeys]
    shared: Entries[str, SharedLinkKeys]


class UnitsKeys(TypedDict, total=False):
    """Units of bare numbers. Defaults: ticks, bytes, bytes per tick, FLOP, FLOP per tick."""

    time: str | None
    memory: str | None
    bandwidth: str | None
    work: str | None
    speed: str | None


class BestKnownKeys(TypedDict, total=False):
    """The best known objective value and the best known lower bound, in ticks."""

    objective: Required[Number]
    bound: Number | None


class CurrentKeys(TypedDict, total=False):
    """The current placement and the cost of moving tasks, for the objective `relocation`."""

    placement: Entries[Task | str, Device | str] | None
    runs_before_next_change: Number
    migration: Amount | MigrationKeys | None


class PoolKeys(TypedDict, total=False):
    """Memory that several devices share."""

    memory: Required[Amount]
    devices: Required[Device | str | Sequence[Device | str]]


class LimitsKeys(TypedDict, total=False):
    """The largest value that metrics may have."""

    makespan: Amount | None
    total_cost: Amount | None
    max_load: Amount | None
    communication: Amount | None
    energy: Number | None
    memory_balance: Amount | None
    relocation: Amount | None
    tardiness: Amount | None
    price: Number | None
    devices: int | None


class AddressesKeys(TypedDict, total=False):
    """The addresses that a plan must state."""

    alignment: Amount


class GraphKeys(TypedDict, total=False):
    """Reference to a file with the tasks of a large graph."""

    file: Required[str]


class ProblemKeys(TypedDict, total=False):
    """A placement problem."""

    placeopt: Literal[1]
    name: str
    description: str
    source: str
    best_known: BestKnownKeys | None
    resolution: Amount
    units: UnitsKeys
    precision: NumberFormat
    operations: Entries[Operation | str, Amount | Entries[Device | str, Amount]]
    modes: Entries[Operation | str, Entries[str, ModeKeys | None]]
    devices: Entries[Device | str, DeviceKeys | None]
    links: LinksKeys
    resources: Entries[Resource | str, Number]
    budgets: Entries[Resource | str, Number]
    pools: Entries[str, PoolKeys]
    graph: GraphKeys | None
    tasks: Entries[Task | str, TaskKeys | None]
    placement: Entries[Task | str, Device | str] | None
    current: CurrentKeys | None
    objective: Metric | Entries[Metric, Number] | Sequence[Metric | Entries[Metric, Number]]
    limits: LimitsKeys | None
    consolidate: Amount
    pipeline: PipelineKeys | None
    contention: Contention
    memory_model: MemoryModel
    addresses: AddressesKeys | None
