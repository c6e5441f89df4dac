"""The spec: the data model of YAML and JSON problem documents.

The models below define the format. The JSON Schema for editors and the reference in the documentation
are generated from them. Validation expands short forms (a bare number of bytes becomes {resident: ...},
a single producer becomes a list), so the compiler handles one form only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from placeopt.errors import counted, listing, visible
from placeopt.io.scalars import (
    Allowance,
    Bandwidth,
    DeviceName,
    EnergyPerByte,
    Memory,
    Name,
    Named,
    NotNegative,
    OperationName,
    Payload,
    Positive,
    Power,
    Price,
    ResourceName,
    Share,
    Speed,
    TaskName,
    Time,
    UnitOf,
    Use,
    Version,
    Weight,
    Whole,
    Work,
    name_text,
)
from placeopt.model import units
from placeopt.model.pipeline import InFlight
from placeopt.model.problem import Contention, MemoryModel, Metric
from placeopt.model.units import Quantity

ANY = "*"
"""Key of a duration that applies to all devices."""

MOST_DEVICES = 4096
"""Limit of the number of devices: links are stored as tables of devices by devices, with 134 MB each at this limit."""

NumberFormat = Literal["fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8", "int4"]
"""Format of the numbers of a computation."""
NUMBER_FORMATS: tuple[str, ...] = get_args(NumberFormat)

Count = Annotated[
    Whole, Field(ge=1, le=MOST_DEVICES), WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MOST_DEVICES})
]


def widen(rule: Callable[[Any], Any], written: Any) -> BeforeValidator:
    """A validator that expands short forms by `rule`; `written` is the type of valid input, for the JSON Schema."""
    return BeforeValidator(rule, json_schema_input_type=written)


def _is_name(value: Any) -> bool:
    return isinstance(value, str | float | Named) or units.is_whole(value)


def _as_list(value: Any) -> Any:
    return [value] if _is_name(value) else value


def _as_amounts(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _under(key: str) -> Callable[[Any], Any]:
    """Widens a single value to a mapping with this key."""
    return lambda value: value if isinstance(value, dict | BaseModel) else {key: value}


def _as_speeds(value: Any) -> Any:
    """A single speed holds for all number formats."""
    return value if isinstance(value, dict) else dict.fromkeys(NUMBER_FORMATS, value)


def _as_efficiency(value: Any) -> Any:
    """A single factor holds for the speed and the memory bandwidth."""
    return value if isinstance(value, dict | BaseModel) else {"compute": value, "memory": value}


def _as_after(value: Any) -> Any:
    if isinstance(value, dict):
        return value
    names = _as_list(value)
    if not isinstance(names, list | tuple):
        raise ValueError(f"expected the names of producers, got {units.shown(value)}")
    seen: dict[str, Any] = {}
    for name in names:
        if not _is_name(name):
            raise ValueError(f"{units.shown(name)} is not a task; expected the names of producers")
        text = str(name_text(name))
        if text in seen:
            raise ValueError(f"{units.shown(text)} is listed twice")
        seen[text] = name if isinstance(name, Named) else text
    return dict.fromkeys(seen.values())


def _as_objective(value: Any) -> Any:
    levels = list(value) if isinstance(value, list | tuple) else [value]
    for level in levels:
        if not isinstance(level, str | dict):
            raise ValueError(
                f"{units.shown(level)} is not an objective; expected a metric such as makespan, metrics with weights, "
                "or a list of these"
            )
    return [{level: 1} if isinstance(level, str) else level for level in levels]


def _as_team(value: Any) -> Any:
    if not isinstance(value, list | tuple):
        return value
    for name in value:
        if not _is_name(name):
            raise ValueError(f"{units.shown(name)} is not a device; expected the names of devices")
    repeated = next((name for name in value if value.count(name) > 1), None)
    if repeated is not None:
        raise ValueError(f"{units.shown(repeated)} is listed twice; state how many, such as {{gpu: 2}}")
    return dict.fromkeys(value, 1)


def _as_mapping(value: Any) -> Any:
    return {} if value is None else value


def _as_placement(value: Any) -> Any:
    if value is not None and not isinstance(value, dict):
        raise ValueError(f"{units.shown(value)} is not a placement; expected devices by task, or {{file: plan.json}}")
    return _as_mapping(value)


Names = Annotated[list[Name], widen(_as_list, Name | list[Name])]
TaskNames = Annotated[list[TaskName], widen(_as_list, TaskName | list[TaskName])]
DeviceNames = Annotated[list[DeviceName], widen(_as_list, DeviceName | list[DeviceName]), Field(min_length=1)]
Payloads = Annotated[list[Payload], widen(_as_amounts, Payload | list[Payload])]
Durations = Annotated[dict[DeviceName, Time], widen(_under(ANY), Time | dict[DeviceName, Time])]
Prices = Annotated[dict[DeviceName, Price], widen(_under(ANY), Price | dict[DeviceName, Price])]
Uses = dict[ResourceName, Annotated[dict[DeviceName, Use], widen(_under(ANY), Use | dict[DeviceName, Use])]]
FamilyTimes = Annotated[dict[Name, Time], widen(_under(ANY), Time | dict[Name, Time])]
Setup = Annotated[dict[Name, FamilyTimes], widen(_under(ANY), Time | dict[Name, Time | dict[Name, Time]])]
After = Annotated[
    dict[TaskName, Payload | None], widen(_as_after, TaskName | list[TaskName] | dict[TaskName, Payload | None])
]
Speeds = Annotated[dict[NumberFormat, Speed], widen(_as_speeds, Speed | dict[NumberFormat, Speed]), Field(min_length=1)]
Placement = Annotated[dict[TaskName, DeviceName], widen(_as_placement, dict[TaskName, DeviceName] | None)]
Level = dict[Metric, Weight]
ObjectiveSpec = Annotated[list[Level], widen(_as_objective, Metric | Level | list[Metric | Level]), Field(min_length=1)]


def _makespan() -> list[dict[Metric, Fraction]]:
    return [{"makespan": Fraction(1)}]


class Strict(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        coerce_numbers_to_str=True,
        arbitrary_types_allowed=True,
    )


class MemorySpec(Strict):
    """Memory of a task on its device."""

    resident: Memory | None = None
    """Allocated for the whole run: weights, parameters, state."""
    output: Memory | None = None
    """Allocated from the start of the task until no consumer needs it. Default: the `output` of the task."""
    scratch: Memory | None = None
    """Allocated while the task runs: workspace."""


class MigrationSpec(Strict):
    """Cost of moving a task to another device, for the objective `relocation`."""

    bytes: Payload | None = None
    """Data that is transferred from the current device. Default: the `resident` memory of the task."""
    startup: Durations | None = None
    """Start-up time on the new device: one time for all devices, or by device (names, keys or types), with zero for
    devices that are not named. Types without a device are ignored, because such devices may be added later."""


Migration = Annotated[MigrationSpec, widen(_under("bytes"), Payload | MigrationSpec)]


class ViewSpec(Strict):
    """Where an output lies in that of a producer."""

    of: TaskName
    """The producer."""
    at: Memory = 0
    """The first byte of its output that belongs to the view. Default: 0."""


class TaskSpec(Strict):
    """A task (an operator): its durations, its requirements, and its allowed devices."""

    op: OperationName | None = None
    """The operation, whose duration is stated in `operations`. With `time` or `flops`, it gives none."""
    time: Durations | None = None
    """Duration: one for all devices, or by device (names, keys or types). Devices that are not named cannot run the
    task."""
    flops: Work | None = None
    """Work. The duration is the work divided by the `speed` of the device."""
    bytes: Payload | None = None
    """Memory traffic, divided by the `memory_bandwidth` of the device. With `flops`, the duration is the larger of the
    two quotients (roofline)."""
    precision: NumberFormat | None = None
    """Number format of `flops`, which selects the `speed` of the device. Default: the `precision` of the problem."""
    output: Payload | None = None
    """Data that the task produces: the payload of every outgoing edge without its own payload, and memory until it is
    consumed."""
    memory: Annotated[MemorySpec, widen(_under("resident"), Memory | MemorySpec)] | None = None
    """Required memory; a bare amount is `resident`."""
    after: After = Field(default_factory=dict)
    """Producers of the input data: a name, a list of names, or a mapping from names to the payload of that edge."""
    migration: Migration | None = None
    """Cost of moving the task; a bare amount is `bytes`. `bytes` and `startup` default to those of
    `current.migration`."""
    in_place: TaskNames = Field(default_factory=list)
    """Producers whose outputs the task may overwrite with its own, from their first byte on, where no other task needs
    them any more. Needs `addresses`."""
    view: Annotated[ViewSpec, widen(_under("of"), TaskName | ViewSpec)] | None = None
    """The producer whose output contains that of the task, which needs no further bytes on the same device. Needs
    `addresses`."""
    backward_of: TaskName | None = None
    """The forward task whose gradient this task computes. Passes place both tasks together. In pipelines, backward
    tasks form separate stages; where the number of stages is limited, both tasks must share a device."""
    gradient: Payload | None = None
    """Data that replicas of the task in a pipeline synchronise in each run. Default: the `resident` memory of tasks
    that have a backward task, zero for others."""
    release: Time | None = None
    """Earliest start of the task, rounded up to a tick. Default: 0."""
    deadline: Time | None = None
    """Latest end of the task, rounded down to a tick. This is a hard constraint, not a due date."""
    due: Annotated[DueSpec, widen(_under("by"), Time | DueSpec)] | None = None
    """Due date, for the objective `tardiness`; a bare time is `by`."""
    price: Prices | None = None
    """Price of the task: one for all devices, or by device (names, keys or types). It is added to the price of the time
    on the device."""
    devices: DeviceNames | None = None
    """Devices (names, keys or types) that may run the task."""
    requires: Names = Field(default_factory=list)
    """Hardware features that the device must have."""
    pin: DeviceName | None = None
    """The device that must run the task."""
    uses: Uses = Field(default_factory=dict)
    """What the task uses of `resources` while it runs, and of `budgets`: one amount for all devices, or by device
    (names, keys or types), with zero for devices that are not named."""
    cores: Annotated[Whole, Field(ge=1)] | None = None
    """Number of cores that the task uses on devices with `cores`. Default: 1."""
    family: Name | None = None
    """Family of the task. Devices with `setup` need time to change to another family."""
    modes: dict[Name, Annotated[ModeSpec, widen(_as_mapping, ModeSpec | None)]] = Field(default_factory=dict)
    """Ways to run the task, of which the schedule chooses one. What a mode does not state is as for the task. Default:
    the `modes` of its operation."""
    colocate: Names = Field(default_factory=list)
    """Labels of colocation groups: all tasks with the same label run on the same device."""
    separate: Names = Field(default_factory=list)
    """Labels of separation groups: all tasks with the same label run on pairwise different devices."""

    # Files have a million tasks with 26 keys, of which they state three. A task stores what is stated, its class the
    # defaults: pydantic would store all of them in each task, which takes a fifth of the time from file to plan.

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        reference = handler(source)
        model: Any = handler.resolve_ref_schema(reference)
        fields = model["schema"]
        if fields["type"] == "model-fields":
            stated = {
                name: core_schema.typed_dict_field(field["schema"]["schema"], required=False)  # without the default
                for name, field in fields["fields"].items()
            }
            found = core_schema.typed_dict_schema(stated, extra_behavior="forbid")
            parts = core_schema.no_info_after_validator_function(lambda task: (task, None, set(task)), found)
            model["schema"] = core_schema.json_or_python_schema(fields, parts)  # `fields` describes the JSON Schema
        return reference


for _key, _field in TaskSpec.model_fields.items():
    setattr(TaskSpec, _key, _field.get_default(call_default_factory=True))


class ModeSpec(Strict):
    """A way to run a task: other values than those of the task itself."""

    time: Durations | None = None
    """Duration, as for tasks. It replaces the `time`, `op`, `flops` and `bytes` of the task."""
    flops: Work | None = None
    """Work, as for tasks. The members of a team share it in proportion to their rates."""
    bytes: Payload | None = None
    """Memory traffic, as for tasks; shared likewise."""
    precision: NumberFormat | None = None
    """Number format of `flops`."""
    devices: DeviceNames | None = None
    """Devices (names, keys or types) that may run the task in this mode."""
    output: Payload | None = None
    """Data that the task produces, as for tasks. Edges from the task need to carry its output then."""
    memory: Annotated[MemorySpec, widen(_under("resident"), Memory | MemorySpec)] | None = None
    """Required memory, for teams on each member."""
    shards: Memory | None = None
    """Further memory in all, such as weights, which the members of a team divide as they divide the work."""
    uses: Uses = Field(default_factory=dict)
    """What the task uses, in addition to the `uses` of the task and instead of equal names there; for teams in all."""
    cores: Annotated[Whole, Field(ge=1)] | None = None
    """Number of cores, for teams on each member."""
    team: Annotated[dict[DeviceName, Count], widen(_as_team, dict[DeviceName, Count] | list[DeviceName])] | None = None
    """Devices that run the task together from its start to its end: how many of each (names, keys or types), or a list
    of names. Inputs go to its first device, in the order of the file, and the output is there."""
    all_reduce: Payloads = Field(default_factory=list)
    """Data that the members of the team sum up, in a ring; added to the duration. A list for one after another."""
    all_gather: Payloads = Field(default_factory=list)
    """Data that the members of the team collect, in a ring; added to the duration. A list for one after another."""


class DueSpec(Strict):
    """A due date, for the objective `tardiness`."""

    by: Time
    """The time by which the task should end, rounded down to a tick."""
    weight: Annotated[Whole, Field(ge=0, le=2**60)] = 1
    """What a tick after it counts."""


class StageSpec(Strict):
    """How a device serves a pipeline."""

    overlap: bool | None = None
    """Whether the device computes while it sends and receives."""
    duplex: Literal["half", "full"] | None = None
    """`full`: the device sends while it receives."""
    transfers: Literal["counted", "free"] | None = None
    """`free`: transfers take none of the time of the device, such as those of a CPU whose memory the others read."""
    stages: Literal["free", "contiguous"] | None = None
    """`contiguous`: no path leaves the device and returns. The same as `segments: 1`."""
    segments: Annotated[Whole, Field(ge=1)] | None = None
    """Maximum number of stages of the device; in training, of forward and of backward stages."""
    launch: Time | None = None
    """Time to start each stage of the device, in each run."""
    machines: list[Annotated[Whole, Field(ge=0)]] | None = None
    """Numbers of machines that the device occupies, and that others may occupy, too. Modes and teams have theirs."""


class PipelineSpec(StageSpec):
    """How runs follow each other, for the objective `period`. Devices may state other values for themselves."""

    multicast: bool = False
    """Whether a device sends an output once, regardless of the number of devices that receive it."""
    replicas: Count = 1
    """Maximum number of devices of a class that run the same tasks, each for every second, third, ... run."""
    in_flight: InFlight = "none"
    """Outputs that a device keeps for the runs under way. `none`: those of one run. `inference`: those of two runs.
    `1f1b`: stage s of S keeps the outputs of forward tasks for S - s + 1 runs. `gpipe`: for all microbatches."""
    microbatches: Count = 1
    """Number of microbatches, for `in_flight: gpipe`."""
    recompute: bool = False
    """Whether a device may keep only the inputs of its forward tasks and compute their outputs again for the backward
    tasks."""


class EfficiencySpec(Strict):
    """Fractions of the rates of a device that tasks reach."""

    compute: Share | None = None
    """Factor of `speed`."""
    memory: Share | None = None
    """Factor of `memory_bandwidth`."""


Efficiency = Annotated[EfficiencySpec, widen(_as_efficiency, Share | EfficiencySpec)]


class TierSpec(Strict):
    """Slower memory of a device, which holds the bytes that do not fit into the memory before it."""

    memory: Memory | None = None
    """Capacity of the tier. Default: unlimited; allowed for the last tier only."""
    bandwidth: Bandwidth
    """Bandwidth with which the device moves the bytes of the tier, once in each run and before its first task."""


class WindowSpec(Strict):
    """A time in which a device runs no task."""

    begin: Time = Field(alias="from")
    """The tick from which the device runs no task, rounded down. A task that runs must end by then."""
    end: Time = Field(alias="to")
    """The tick from which it runs tasks again, rounded up."""


class RegionSpec(Strict):
    """Bytes of the memory of a device that no buffer may take."""

    begin: Memory = Field(alias="from")
    """The first byte."""
    end: Memory = Field(alias="to")
    """The first byte after them."""


def pool_names(pool: str, count: int) -> list[str]:
    """The names of the devices of a key with a count: core0, core1; t4-0, t4-1 after a digit."""
    stem = f"{pool}-" if pool[-1:].isdigit() else pool
    return [f"{stem}{k}" for k in range(count)]


class DeviceSpec(Strict):
    """A device, or `count` identical devices."""

    like: Name | None = None
    """A device of the catalogue, which provides `speed`, `memory`, `memory_bandwidth` and `power` where this entry does
    not state them."""
    type: Name | None = None
    """Type of the device, for use in durations, placement constraints and links. Default: the key of the device."""
    count: Count | None = None
    """Number of devices: with a count of 2, `core` defines core0 and core1, and `t4` defines t4-0 and t4-1."""
    memory: Memory | None = None
    """Memory capacity, of the first tier. Default: unlimited."""
    tiers: list[TierSpec] = Field(default_factory=list)
    """Slower memory after it, such as an SSD and a hard disk, the fastest first. What lies there costs swap time."""
    unavailable: list[WindowSpec] = Field(default_factory=list)
    """Times in which the device runs no task: `[{from: 10 s, to: 12 s}]`. Tasks are not interrupted: each ends before
    or starts after. Transfers go on."""
    reserved: list[RegionSpec] = Field(default_factory=list)
    """Bytes of the memory that no buffer may take: `[{from: 0, to: 4 KiB}]`. Needs `addresses`."""
    setup: Setup = Field(default_factory=dict)
    """Time to set up the device for a task of another family than the one before: one for all families, or by family
    of the task, and where it depends on it by family before: `{llm: 2 s, vision: {llm: 1 s, '*': 500 ms}}`."""
    initial_family: Name | None = None
    """The family that the device is set up for at the start. Default: none."""
    cores: Count | None = None
    """Number of cores. The device runs several tasks at once, each on as many cores as it states."""
    parallel: bool = False
    """Whether the device runs several tasks at once, as far as `resources` allow."""
    speed: Speeds | None = None
    """Work per time, for tasks with `flops`: one speed for all number formats, or by number format. Without a speed for
    the format of a task, the next wider format applies."""
    memory_bandwidth: Bandwidth | None = None
    """Memory traffic per time, for tasks with `bytes`."""
    efficiency: Efficiency | None = None
    """Fraction of `speed` and of `memory_bandwidth` that tasks reach: one factor for both, or by key. Default: 1 for
    rates that this entry states, the default of the catalogue for rates from there."""
    overhead: Time | None = None
    """Added to the duration of every task with `flops` or `bytes`, such as the time of a kernel launch."""
    features: Names = Field(default_factory=list)
    """Hardware features, which tasks may demand with `requires`."""
    power: Power | None = None
    """Power consumption while a task runs, for the objective `energy`."""
    price: Use | None = None
    """Price of an hour in which tasks run, for the objective `price`."""
    pipeline: StageSpec | None = None
    """How the device serves a pipeline, where that differs from the section `pipeline`."""


class LinkSpec(Strict):
    """Cost of a transfer between two different devices. Its duration is latency + payload / bandwidth."""

    like: Name | None = None
    """A link of the catalogue, which provides the values that this entry does not state."""
    bandwidth: Bandwidth | None = None
    """Bandwidth. Default: infinite."""
    latency: Time | None = None
    """Latency. Default: zero."""
    energy: EnergyPerByte | None = None
    """Energy per transferred byte, for the objective `energy`."""


class LinkOverride(LinkSpec):
    """Different values for some links. Later overrides take precedence. Omitted values remain unchanged."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["between"], "not": {"anyOf": [{"required": ["from"]}, {"required": ["to"]}]}},
                {"required": ["from", "to"], "not": {"required": ["between"]}},
            ]
        }
    )

    between: Annotated[list[DeviceName], Field(min_length=2, max_length=2)] | None = None
    """Two devices (names, keys or types): the links between them in both directions."""
    source: DeviceNames | None = Field(default=None, alias="from")
    """Sending devices (names, keys or types), for links in one direction; requires `to`."""
    target: DeviceNames | None = Field(default=None, alias="to")
    """Receiving devices (names, keys or types); requires `from`."""


class SharedLinkSpec(Strict):
    """A link that several pairs of devices transfer over. It carries one transfer at a time."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["uplink_of"]}, {"required": ["between"]}]})

    uplink_of: DeviceNames | None = None
    """Devices (names, keys or types) whose transfers to and from all other devices use the link."""
    between: DeviceNames | None = None
    """Devices (names, keys or types) whose transfers to each other use the link."""
    duplex: Literal["full", "half"] | None = None
    """`full`: an uplink carries one transfer in each direction. `half`: it carries one in all. Default: full."""


class LinksSpec(Strict):
    """Links between devices. Every pair of devices is connected."""

    default: Annotated[LinkSpec, widen(_as_mapping, LinkSpec | None)] = Field(default_factory=LinkSpec)
    """Values for all links without an override."""
    overrides: list[LinkOverride] = Field(default_factory=list)
    """Values for some links, applied in order."""
    shared: dict[Name, SharedLinkSpec] = Field(default_factory=dict)
    """Links that several pairs of devices transfer over, such as a switch, a PCIe root or a radio."""


class UnitsSpec(Strict):
    """Units of bare numbers. Defaults: ticks, bytes, bytes per tick, FLOP, FLOP per tick."""

    time: Annotated[Fraction, UnitOf(units.TIME)] | None = None
    """Unit of times."""
    memory: Annotated[Fraction, UnitOf(units.MEMORY)] | None = None
    """Unit of memory and payloads."""
    bandwidth: Annotated[Fraction, UnitOf(units.BANDWIDTH)] | None = None
    """Unit of bandwidths."""
    work: Annotated[Fraction, UnitOf(units.WORK)] | None = None
    """Unit of work (`flops`)."""
    speed: Annotated[Fraction, UnitOf(units.SPEED)] | None = None
    """Unit of speeds."""


class BestKnown(Strict):
    """The best known objective value and the best known lower bound, in ticks."""

    objective: NotNegative
    """Objective value of the best known schedule."""
    bound: NotNegative | None = None
    """Proven lower bound; equal to `objective` if that is proved optimal."""

    @model_validator(mode="after")
    def _in_order(self) -> BestKnown:
        if self.bound is not None and self.bound > self.objective:
            raise ValueError(f"the bound {self.bound:g} is above the objective {self.objective:g}")
        return self


class CurrentSpec(Strict):
    """The current placement and the cost of moving tasks, for the objective `relocation`."""

    placement: Placement = Field(default_factory=dict)
    """Current device of each task: device names by task, or `{file: plan.json}`. A task without a device is new, or its
    device is gone; it starts up without a transfer of data. A device of the plan file that does not exist in this
    problem counts as gone."""
    runs_before_next_change: Positive = Fraction(1)
    """Number of runs until the next change of the placement. The cost of relocation is divided by this number."""
    migration: Migration | None = None
    """Default cost of moving a task; a bare amount is `bytes`. `bytes` and `startup` apply to tasks that do not state
    them."""


class PoolSpec(Strict):
    """Memory that several devices share."""

    memory: Memory
    """Capacity for the tasks on all of these devices."""
    devices: DeviceNames
    """The devices (names, keys or types)."""


Devices = Annotated[dict[DeviceName, Annotated[DeviceSpec, widen(_as_mapping, DeviceSpec | None)]], Field(min_length=1)]
Tasks = dict[TaskName, Annotated[TaskSpec, widen(_as_mapping, TaskSpec | None)]]


class Part(Strict):
    """What files with a part of a problem begin with."""

    placeopt: Version = 1
    name: str = ""
    description: str = ""
    source: str = ""


class GraphFile(Part):
    """A file that `graph` refers to: tasks without devices."""

    operations: dict[OperationName, Durations] = Field(default_factory=dict)
    tasks: Tasks


class NetworkFile(Part):
    """A file with devices that replace those of a problem. Bare numbers have the units of the problem."""

    operations: dict[OperationName, Durations] = Field(default_factory=dict)
    """Durations of operations on these devices. Default: those of the problem."""
    devices: Devices
    """All devices after the change."""
    links: LinksSpec | None = None
    """The links between the devices. Default: those of the problem."""


class LimitsSpec(Strict):
    """The largest value that metrics may have."""

    makespan: Time | None = None
    """Time until the last task ends."""
    total_cost: Time | None = None
    """Time of all tasks and transfers."""
    max_load: Time | None = None
    """Computing time of the busiest device."""
    communication: Payload | None = None
    """Data that moves between devices."""
    energy: Use | None = None
    """Energy in joules."""
    memory_balance: Allowance | None = None
    """Largest used share of a capacity."""
    relocation: Time | None = None
    """Time of moving tasks."""
    tardiness: Time | None = None
    """Weighted time by which tasks end after their due dates."""
    price: Use | None = None
    """Price of all tasks."""
    devices: Annotated[Whole, Field(ge=0)] | None = None
    """Number of devices that run a task."""


class AddressesSpec(Strict):
    """The addresses that a plan must state."""

    alignment: Memory = 1
    """Offsets are multiples of it. Default: 1 byte."""


class GraphSpec(Strict):
    """Reference to a file with the tasks of a large graph."""

    file: Name
    """Path of a JSON or YAML file with `tasks` (and `operations`), relative to the problem file."""


class Spec(Strict):
    """A placement problem."""

    model_config = ConfigDict(title="placeopt problem", json_schema_extra={"patternProperties": {"^x-": {}}})

    placeopt: Version
    """Version of the format."""
    name: str = ""
    """Short name, for use in tables."""
    description: str = ""
    """Description of the problem."""
    source: str = ""
    """Source of the data."""
    best_known: BestKnown | None = None
    """The best known result."""
    resolution: Time = Quantity(Fraction(1, 10**9), bare=False)
    """Length of a tick, the unit of all times in the compiled problem. Default: 1 ns."""
    units: UnitsSpec = Field(default_factory=UnitsSpec)
    """Units of bare numbers."""
    precision: NumberFormat = "fp32"
    """Number format of the `flops` of tasks that state no `precision`."""
    operations: dict[OperationName, Durations] = Field(default_factory=dict)
    """Durations by operation and device (names, keys or types). Types without a device are ignored."""
    modes: dict[OperationName, dict[Name, Annotated[ModeSpec, widen(_as_mapping, ModeSpec | None)]]] = Field(
        default_factory=dict
    )
    """Modes by operation, of all tasks with this `op` that state no modes themselves."""
    devices: Devices
    """The devices."""
    links: LinksSpec = Field(default_factory=LinksSpec)
    """The links between devices. Default: transfers are free."""
    resources: dict[ResourceName, Use] = Field(default_factory=dict)
    """Capacities of renewable resources, such as licences or power: what running tasks use of them at one time."""
    budgets: dict[ResourceName, Use] = Field(default_factory=dict)
    """Capacities of budgets, such as an error or a price: what all tasks use of them in all."""
    pools: dict[Name, PoolSpec] = Field(default_factory=dict)
    """Memory that several devices share, besides the `memory` of each."""
    graph: GraphSpec | None = None
    """A file with additional tasks."""
    tasks: Tasks = Field(default_factory=dict)
    """The tasks."""
    placement: Placement = Field(default_factory=dict)
    """Fixed devices of tasks: device names by task, or `{file: plan.json}` for the devices of a plan."""
    current: Annotated[CurrentSpec | None, widen(_as_mapping, CurrentSpec | None)] = None
    """The current placement and the cost of moving tasks."""
    objective: ObjectiveSpec = Field(default_factory=_makespan)
    """Objective to minimise: a metric, a weighted sum of metrics, or a list of these in lexicographic order."""
    limits: Annotated[LimitsSpec, widen(_as_mapping, LimitsSpec | None)] = Field(default_factory=LimitsSpec)
    """The largest value that metrics may have: hard constraints, regardless of the objective."""
    consolidate: Allowance = Fraction(0)
    """Share, such as 1%, by which a result may be worse than the solver's, for fewer devices, segments, transfers."""
    pipeline: Annotated[PipelineSpec | None, widen(_as_mapping, PipelineSpec | None)] = None
    """How runs follow each other, for the objective `period`."""
    contention: Contention = "none"
    """`none`: transfers never wait. `port`: a device sends at most one transfer and receives at most one at a time.
    `half_duplex`: a device sends or receives at most one transfer at a time."""
    memory_model: MemoryModel = "sum"
    """`sum`: adds up the memory of all tasks on a device. `peak`: adds up only memory in use at the same time."""
    addresses: Annotated[AddressesSpec | None, widen(_as_mapping, AddressesSpec | None)] = None
    """A plan states offsets of all buffers in the memory of their devices; needs `memory_model: peak`."""

    def __repr__(self) -> str:
        name = f" {visible(self.name)}" if self.name else ""
        return f"<Spec{name}: {counted(len(self.tasks), 'task')}, devices {listing(list(self.devices), 3)}>"

    def __str__(self) -> str:
        return repr(self)


def json_schema(of: type[Strict] = Spec) -> dict[str, Any]:
    """The JSON Schema of a problem document, or of another one."""
    schema = of.model_json_schema(mode="validation", by_alias=True)
    kinds = {kind.__name__: kind for kind in _subclasses(Strict)}
    for name, definition in {of.__name__: schema, **schema.get("$defs", {})}.items():
        for key, meaning in _meanings(kinds[name]).items():
            stated = definition["properties"][key]
            definition["properties"][key] = dict(sorted({**stated, "description": meaning}.items()))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _subclasses(kind: type[Strict]) -> Iterator[type[Strict]]:
    for below in kind.__subclasses__():
        yield below
        yield from _subclasses(below)


def _meanings(kind: type[Strict]) -> dict[str, str]:
    """The docstrings of fields by key. Pydantic would read them at import, which takes a quarter of it."""
    import ast
    import inspect

    found: dict[str, str] = {}
    for each in reversed(kind.__mro__[: kind.__mro__.index(Strict)]):
        (stated,) = ast.parse(inspect.getsource(each)).body
        assert isinstance(stated, ast.ClassDef)
        for field, text in pairwise(stated.body):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                name = ast.unparse(field.target)
                found[kind.model_fields[name].alias or name] = inspect.cleandoc(str(text.value.value))
    return found
