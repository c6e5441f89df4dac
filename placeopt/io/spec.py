"""The spec: what a YAML or JSON problem document may say.

These models are the one source of the format: the JSON Schema that editors use and the reference
in the documentation are made from them. Short forms are widened on the way in (a bare number of
bytes becomes {resident: ...}, one producer becomes a list), so the compiler sees one form only.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from placeopt.io.scalars import (
    Bandwidth,
    EnergyPerByte,
    Memory,
    Name,
    NotNegative,
    Payload,
    Positive,
    Power,
    Speed,
    Time,
    UnitOf,
    Version,
    Weight,
    Whole,
    Work,
    name_text,
)
from placeopt.model import units
from placeopt.model.problem import Contention, MemoryModel, Metric
from placeopt.model.units import Quantity

ANY = "*"
"""The key under which a duration given without a device stands for all of them."""

MOST_DEVICES = 4096
"""Links are tables of devices by devices, of 134 MB each with this many."""

Count = Annotated[
    Whole, Field(ge=1, le=MOST_DEVICES), WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MOST_DEVICES})
]


def _widen(rule: Callable[[Any], Any], written: Any) -> BeforeValidator:
    """Widens a short form by `rule`; `written` is what a document may contain, for the JSON Schema."""
    return BeforeValidator(rule, json_schema_input_type=written)


def _is_name(value: Any) -> bool:
    return isinstance(value, str | float) or units.is_whole(value)


def _as_list(value: Any) -> Any:
    return [value] if _is_name(value) else value


def _under(key: str) -> Callable[[Any], Any]:
    """Widens a single value to a mapping with this key."""
    return lambda value: value if isinstance(value, dict | BaseModel) else {key: value}


def _as_after(value: Any) -> Any:
    names = _as_list(value)
    if isinstance(names, dict):
        return names
    if not isinstance(names, list | tuple):
        raise ValueError(f"expected the names of producers, got {units.shown(value)}")
    seen: dict[str, None] = {}
    for name in names:
        if not _is_name(name):
            raise ValueError(f"{units.shown(name)} is not a task; expected the names of producers")
        text = str(name_text(name))
        if text in seen:
            raise ValueError(f"{units.shown(text)} is listed twice")
        seen[text] = None
    return seen


def _as_objective(value: Any) -> Any:
    levels = list(value) if isinstance(value, list | tuple) else [value]
    for level in levels:
        if not isinstance(level, str | dict):
            raise ValueError(
                f"{units.shown(level)} is not an objective; expected a metric such as makespan, metrics with weights, "
                "or a list of these"
            )
    return [{level: 1} if isinstance(level, str) else level for level in levels]


def _as_mapping(value: Any) -> Any:
    return {} if value is None else value


def _as_placement(value: Any) -> Any:
    if value is not None and not isinstance(value, dict):
        raise ValueError(f"{units.shown(value)} is not a placement; expected devices by task, or {{file: plan.json}}")
    return _as_mapping(value)


Names = Annotated[list[Name], _widen(_as_list, Name | list[Name])]
SomeNames = Annotated[Names, Field(min_length=1)]
Durations = Annotated[dict[Name, Time], _widen(_under(ANY), Time | dict[str, Time])]
After = Annotated[dict[Name, Payload | None], _widen(_as_after, str | list[str] | dict[str, Payload | None])]
Placement = Annotated[dict[Name, Name], _widen(_as_placement, dict[Name, Name] | None)]
Level = dict[Metric, Weight]
ObjectiveSpec = Annotated[
    list[Level], _widen(_as_objective, Metric | Level | list[Metric | Level]), Field(min_length=1)
]


def _makespan() -> list[dict[Metric, Fraction]]:
    return [{"makespan": Fraction(1)}]


class _Model(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        coerce_numbers_to_str=True,
        use_attribute_docstrings=True,
        arbitrary_types_allowed=True,
    )


class MemorySpec(_Model):
    """Memory of a task, held on its own device."""

    resident: Memory | None = None
    """Held for the whole run: weights, parameters, state."""
    output: Memory | None = None
    """Held from the task's start until its last consumer has it; the task's `output` unless given here."""
    scratch: Memory | None = None
    """Held while the task runs: workspace."""


class MigrationSpec(_Model):
    """What moving a task to another device costs, for the objective `relocation`."""

    bytes: Payload | None = None
    """Data that moves there over the link from its current device; the task's `resident` memory unless given."""
    startup: Durations | None = None
    """Time to start up there: one for every device, or by device (names, keys or types); zero on devices not named.
    Types that no device here has are ignored: they may come."""


Migration = Annotated[MigrationSpec, _widen(_under("bytes"), Payload | MigrationSpec)]


class TaskSpec(_Model):
    """A task (an operator): how long it takes, what it needs, where it may run."""

    op: Name | None = None
    """The operation, looked up in `operations` for the duration; a mere label if `time` or `flops` is given."""
    time: Durations | None = None
    """Duration: one for every device, or by device (names, keys or types). Devices not named cannot run the task."""
    flops: Work | None = None
    """Work, divided by the device's `speed`."""
    bytes: Payload | None = None
    """Memory traffic, divided by the device's `memory_bandwidth`; the larger of the two quotients counts (roofline)."""
    output: Payload | None = None
    """Data produced: the payload of every out-edge without one of its own, and memory until it is consumed."""
    memory: Annotated[MemorySpec, _widen(_under("resident"), Memory | MemorySpec)] | None = None
    """Memory needed; a bare amount is `resident`."""
    after: After = Field(default_factory=dict)
    """Producers whose data the task needs: a name, a list, or names with the payload of that edge alone."""
    migration: Migration | None = None
    """What moving it costs; a bare amount is `bytes`. Each of `bytes` and `startup` that is left out is that of
    `current.migration`."""
    backward_of: Name | None = None
    """The forward task whose gradient this one computes: passes that place the two together look at it."""
    release: Time | None = None
    """Time before which the task may not start, rounded up to a tick; 0 unless given."""
    deadline: Time | None = None
    """Time by which the task must have ended, rounded down to a tick: a hard constraint, not a due date."""
    devices: SomeNames | None = None
    """Devices (names, keys or types) that may run the task."""
    requires: Names = Field(default_factory=list)
    """Hardware features that the device must have."""
    pin: Name | None = None
    """The one device that must run the task."""
    colocate: Names = Field(default_factory=list)
    """Labels of colocation groups: all tasks with the label share a device."""
    separate: Names = Field(default_factory=list)
    """Labels of separation groups: all tasks with the label are on pairwise different devices."""


class DeviceSpec(_Model):
    """A device, or `count` equal ones."""

    type: Name | None = None
    """What kind of device it is, for durations, placement constraints and links; its own name unless given."""
    count: Count | None = None
    """How many: with a count of 2, `core` stands for core0 and core1."""
    memory: Memory | None = None
    """Capacity; unlimited unless given."""
    speed: Speed | None = None
    """Work per time that tasks given by `flops` achieve."""
    memory_bandwidth: Bandwidth | None = None
    """Memory traffic per time that tasks given by `bytes` achieve."""
    overhead: Time | None = None
    """Added to the duration of every task given by `flops` or `bytes`: a kernel launch, say."""
    features: Names = Field(default_factory=list)
    """Hardware features, matched with the `requires` of tasks."""
    power: Power | None = None
    """Power while computing, for the objective `energy`."""


class LinkSpec(_Model):
    """What moving data costs between two different devices: latency + payload / bandwidth."""

    bandwidth: Bandwidth | None = None
    """Infinite unless given."""
    latency: Time | None = None
    """Zero unless given."""
    energy: EnergyPerByte | None = None
    """Energy per byte moved, for the objective `energy`."""


class LinkOverride(LinkSpec):
    """Other values for some links. Later overrides win; what one leaves out stays as it was."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["between"], "not": {"anyOf": [{"required": ["from"]}, {"required": ["to"]}]}},
                {"required": ["from", "to"], "not": {"required": ["between"]}},
            ]
        }
    )

    between: Annotated[list[Name], Field(min_length=2, max_length=2)] | None = None
    """Two devices (names, keys or types): the links between them, both ways."""
    source: SomeNames | None = Field(default=None, alias="from")
    """Sending devices (names, keys or types), for one way only, together with `to`."""
    target: SomeNames | None = Field(default=None, alias="to")
    """Receiving devices (names, keys or types)."""


class LinksSpec(_Model):
    """Links between devices; every pair is connected."""

    default: Annotated[LinkSpec, _widen(_as_mapping, LinkSpec | None)] = Field(default_factory=LinkSpec)
    """All links, unless overridden."""
    overrides: list[LinkOverride] = Field(default_factory=list)
    """Exceptions, applied in order."""


class UnitsSpec(_Model):
    """Units of bare numbers. Without one they are ticks, bytes, bytes per tick, FLOP, FLOP per tick."""

    time: Annotated[Fraction, UnitOf(units.TIME)] | None = None
    memory: Annotated[Fraction, UnitOf(units.MEMORY)] | None = None
    """Of memory and of payloads."""
    bandwidth: Annotated[Fraction, UnitOf(units.BANDWIDTH)] | None = None
    work: Annotated[Fraction, UnitOf(units.WORK)] | None = None
    speed: Annotated[Fraction, UnitOf(units.SPEED)] | None = None


class BestKnown(_Model):
    """The best objective value and the best lower bound that anybody reported, in ticks."""

    objective: NotNegative
    """Value of a schedule that exists."""
    bound: NotNegative | None = None
    """Proven lower bound; equal to `objective` when that is optimal."""

    @model_validator(mode="after")
    def _in_order(self) -> BestKnown:
        if self.bound is not None and self.bound > self.objective:
            raise ValueError(f"the bound {self.bound:g} is above the objective {self.objective:g}")
        return self


class CurrentSpec(_Model):
    """Where the tasks are now, and what moving them costs, for the objective `relocation`."""

    placement: Placement = Field(default_factory=dict)
    """The device of each task: a name by task, or `{file: plan.json}`. Tasks without one are new, or their device is
    gone, like those that a plan has on devices that are not here: they start up without data that moves."""
    runs_before_next_change: Positive = Fraction(1)
    """How many runs the new placement serves: relocation counts for one part in so many."""
    migration: Migration | None = None
    """What moving a task costs; a bare amount is `bytes`. `bytes` holds for the tasks that state none, and so does
    `startup`."""


Devices = Annotated[dict[Name, Annotated[DeviceSpec, _widen(_as_mapping, DeviceSpec | None)]], Field(min_length=1)]
Tasks = dict[Name, Annotated[TaskSpec, _widen(_as_mapping, TaskSpec | None)]]


class GraphFile(_Model):
    """A file that a spec's `graph` names: tasks, and nothing about devices."""

    placeopt: Version = 1
    name: str = ""
    description: str = ""
    source: str = ""
    operations: dict[Name, Durations] = Field(default_factory=dict)
    tasks: Tasks


class NetworkFile(_Model):
    """A file with the devices that take the place of a problem's own. Bare numbers mean what they mean there."""

    placeopt: Version = 1
    name: str = ""
    description: str = ""
    source: str = ""
    operations: dict[Name, Durations] = Field(default_factory=dict)
    """Durations of operations on these devices; those of the problem count where it has none."""
    devices: Devices
    """All devices that there are now."""
    links: LinksSpec | None = None
    """The links between them; the problem's own unless given."""


class GraphSpec(_Model):
    """Where the tasks of a large graph are."""

    file: Name
    """A JSON or YAML file with `tasks` (and `operations`), relative to the spec."""


class Spec(_Model):
    """A placement problem."""

    model_config = ConfigDict(title="placeopt problem", json_schema_extra={"patternProperties": {"^x-": {}}})

    placeopt: Version
    """Version of the format."""
    name: str = ""
    """Short name, for tables."""
    description: str = ""
    """What the problem is."""
    source: str = ""
    """Where its numbers come from."""
    best_known: BestKnown | None = None
    """The best result known."""
    resolution: Time = Quantity(Fraction(1, 10**9), bare=False)
    """Length of a tick, the unit of all times inside; 1 ns unless given."""
    units: UnitsSpec = Field(default_factory=UnitsSpec)
    """Units of bare numbers."""
    operations: dict[Name, Durations] = Field(default_factory=dict)
    """Durations by operation and device (names, keys or types). Types that no device here has are ignored."""
    devices: Devices
    """The devices."""
    links: LinksSpec = Field(default_factory=LinksSpec)
    """The links between devices; free unless given."""
    graph: GraphSpec | None = None
    """A file with more tasks."""
    tasks: Tasks = Field(default_factory=dict)
    """The tasks."""
    placement: Placement = Field(default_factory=dict)
    """Where some tasks must stand: a device's name by task, or `{file: plan.json}`, where a plan has them."""
    current: Annotated[CurrentSpec | None, _widen(_as_mapping, CurrentSpec | None)] = None
    """Where the tasks are now, and what moving them costs."""
    objective: ObjectiveSpec = Field(default_factory=_makespan)
    """What to minimise: a metric, a weighted sum, or a list in lexicographic order."""
    contention: Contention = "none"
    """`none`: transfers never wait. `port`: a device sends one and receives one at a time."""
    memory_model: MemoryModel = "sum"
    """`sum`: everything a device ever holds, added up. `peak`: what is live at one time."""


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a problem document."""
    schema = Spec.model_json_schema(mode="validation", by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
