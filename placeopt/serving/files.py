"""Files of serving problems: `devices` and `links` as in every problem file, and `serving` instead of `tasks`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import ConfigDict, Field

from placeopt.errors import SpecError, counted, listing, visible
from placeopt.io.compiler import document_of
from placeopt.io.compiler.durations import used_format
from placeopt.io.compiler.figures import completed_devices, completed_links
from placeopt.io.compiler.issues import Issues
from placeopt.io.compiler.network import DeviceIndex, LinkArrays, link_arrays
from placeopt.io.compiler.scales import Scales
from placeopt.io.document import Document
from placeopt.io.files import StrPath
from placeopt.io.scalars import Bandwidth, Memory, Name, Payload, Time, Use, Version, Whole, Work
from placeopt.io.spec import Devices, DeviceSpec, LinksSpec, NumberFormat, Strict, UnitsSpec, widen
from placeopt.io.syntax import Path
from placeopt.io.validation import valid
from placeopt.model.arrays import Int
from placeopt.model.units import size_text
from placeopt.serving.problem import (
    LONGEST,
    SECOND,
    TOKEN,
    UNLIMITED,
    MemoryNeeds,
    Prompts,
    Serving,
    Steps,
    build_serving,
)
from placeopt.serving.rates import Hardware, LayerCosts, Requests, Step, interval_steps, prompt_times, with_phases

MOST_DEGREE = 1_024
"""Limit of the number of GPUs that share a layer."""

MOST_LAYERS = 1_000
"""Limit of the number of layers."""

TICKS = 10**9
"""Ticks of a second: times in files are whole nanoseconds."""

PER_TICK = SECOND // TICKS
"""Picoseconds of a tick."""

MOST_TOKENS = 2**60
"""Limit of the numbers of tokens and of requests."""

Count = Annotated[Whole, Field(ge=1, le=MOST_LAYERS)]
Several = Annotated[Whole, Field(ge=1, le=MOST_TOKENS)]


def _as_layers(value: Any) -> Any:
    return value if isinstance(value, list) else [{"count": value}]


def _as_rates(value: Any) -> Any:
    """A list holds for 1, 2, ... layers; keys of JSON are text."""
    if isinstance(value, list):
        return dict(enumerate(value, 1))
    if not isinstance(value, dict):
        return value
    return {
        int(key) if isinstance(key, str) and key.isascii() and key.isdigit() else key: x for key, x in value.items()
    }


class LayerSpec(Strict):
    """Layers that are alike. What is not stated is as for all layers."""

    count: Count = 1
    """Number of these layers."""
    weights: Memory | None = None
    """Bytes of the weights of a layer."""
    cache: Memory | None = None
    """Bytes that a layer keeps for each token of a request: its keys and values."""
    flops: Work | None = None
    """Work of a layer for a token."""
    tables: Memory = 0
    """Bytes of tables of which a token needs one row, such as embeddings: they take memory, and are not read."""


class CoordinatorSpec(Strict):
    """The node that receives requests; every token starts and ends there."""

    bandwidth: Bandwidth
    """Bandwidth from the coordinator to each node, and back."""
    token: Payload = 4
    """Bytes of a token. Default: 4."""
    latency: Time = 0
    """Time of a token from the coordinator to a node, and back. Default: 0."""


class SharingSpec(Strict):
    """GPUs of a machine that share each layer."""

    degree: Annotated[Whole, Field(ge=2, le=MOST_DEGREE)]
    """Number of GPUs in a device."""
    bandwidth: Bandwidth
    """Bandwidth between two of them, in each direction."""
    latency: Time = 0
    """Latency between two of them. Default: 0."""


class ServingSpec(Strict):
    """A model whose layers the devices hold, and the tokens that pass them."""

    layers: Annotated[list[LayerSpec], widen(_as_layers, Whole | list[LayerSpec]), Field(min_length=1)]
    """Number of layers, or a list of layers that differ."""
    activation: Payload
    """Bytes of a token between two layers."""
    rates: dict[Name, Annotated[dict[Count, Use], widen(_as_rates, dict[str, Use] | list[Use])]] = Field(
        default_factory=dict
    )
    """Measured tokens per second, by device (names, keys or types) and number of layers that it holds: a list for 1, 2,
    ... layers, or a mapping. A missing number counts as the next larger one; no device holds more layers than the
    largest."""
    weights: Memory | None = None
    """Bytes of the weights of each layer."""
    cache: Memory | None = None
    """Bytes that each layer keeps for each token of a request: its keys and values."""
    flops: Work | None = None
    """Work of each layer for a token."""
    context: Several = 1024
    """Tokens of a request that are kept: the prompt and the answer."""
    prompt: Annotated[Whole, Field(ge=0, le=MOST_TOKENS)] = 0
    """How many of these are the prompt, which devices process, too. Default: 0, decoding alone."""
    prefill: Literal["mixed", "separate"] = "mixed"
    """`separate`: a device either processes prompts or decodes, and the KV cache of a prompt goes from one to another.
    Default: mixed, each device does both."""
    time_to_first_token: Time | None = None
    """The longest time from the arrival of a request to its first token. Default: no limit."""
    batch: Several | None = None
    """Most requests for which a device computes a token at a time. Default: as many as its memory holds."""
    requests: Several | None = None
    """Most requests in flight: those that devices compute for, and those that are on their way between them. Default:
    as many as the memory of the devices holds."""
    replicas: Annotated[Whole, Field(ge=1)] = 1
    """Most complete copies of the model, each on its own devices, with its own `requests`. Default: 1."""
    time_per_token: Time | None = None
    """The longest time between two tokens of a request. Default: no limit."""
    reserve: Memory = 0
    """Memory of each device that is neither for weights nor for requests."""
    precision: NumberFormat = "fp16"
    """Number format of `flops`."""
    tensor_parallel: dict[Name, SharingSpec] = Field(default_factory=dict)
    """Devices (names, keys or types) that are several GPUs of a machine, which share each layer: `devices` states the
    figures and the price of one of them. Links join machines."""
    demand: Use | None = None
    """Tokens per second: the cheapest devices that pass them are wanted, by their `price`, and not the largest rate."""
    coordinator: CoordinatorSpec | None = None
    """Limits of the links to the coordinator. Default: none."""
    partial: bool = True
    """Whether a device may pass only the last of its layers for a token, such as runtimes that allow overlapping
    intervals."""


class ServingFile(Strict):
    """A serving problem."""

    model_config = ConfigDict(title="placeopt serving problem", json_schema_extra={"patternProperties": {"^x-": {}}})

    placeopt: Version
    name: str = ""
    description: str = ""
    source: str = ""
    units: UnitsSpec = Field(default_factory=UnitsSpec)
    devices: Devices
    links: LinksSpec = Field(default_factory=LinksSpec)
    serving: ServingSpec


def load_serving(source: StrPath | Mapping[str, Any] | Document) -> Serving:
    """Load a serving problem from a file, or from a document made in code.

    Raises
    ------
    SpecError
        If it is not valid; lists every issue.
    """
    document = source if isinstance(source, Document) else document_of(source)
    return _Compilation(valid(document, ServingFile), document).problem()


def load_changed(source: Document, network: Document) -> Serving:
    """The problem in a document, with the devices, and the links if there are any, of another one.

    Raises a SpecError if it is not valid; it lists every issue.
    """
    keys = network.data if isinstance(network.data, dict) else {}
    if not isinstance(keys.get("devices"), dict):
        raise SpecError([network.issue("expected a file with devices, and perhaps links", ())])
    before = valid(source, ServingFile)
    document = Document({**{key: value for key, value in source.data.items() if key not in keys}, **keys})
    file = valid(document, ServingFile)
    serving = file.serving
    if "serving" not in keys:
        former, now = _Compilation(before, source), _Compilation(file, document)
        kept = {}
        for name in ("rates", "tensor_parallel"):
            stated = getattr(serving, name)
            # What is stated of devices that are lost does not apply. Nodes of the same name keep what applied to them.
            kept[name] = {key: each for key, each in stated.items() if any(now.index.levels(key, None))}
            applied = {
                device.name: key for device, key in zip(former.index.devices, former.applying(name), strict=True) if key
            }
            for device in now.index.devices:
                keys_of = (device.name, device.pool, device.spec.type or device.pool)
                if device.name in applied and not any(key in kept[name] for key in keys_of):
                    kept[name][device.name] = stated[applied[device.name]]
        file = file.model_copy(update={"serving": serving.model_copy(update=kept)})
    return _Compilation(file, document).problem()


class _Kind(NamedTuple):
    """Whether rates of nodes are stated or computed, by which key of `rates` or for which key of `devices`, their
    price, and their key of `tensor_parallel`."""

    source: Literal["rates", "pool"]
    name: str
    price: Fraction | None
    sharing: str | None


class _Compilation:
    """Compiles one file."""

    def __init__(self, stated: ServingFile, document: Document) -> None:
        self.issues, self.notes = Issues(document), list[str]()
        self.stated, self.serving = stated, stated.serving
        self.scales = Scales(Fraction(1, TICKS), stated.units, self.issues)
        self.devices = completed_devices(stated.devices, self.issues)
        self.index = DeviceIndex(self.devices, self.issues)

    def problem(self) -> Serving:
        """The compiled problem; raises a SpecError that lists every issue."""
        serving, issues = self.serving, self.issues
        separate, limited = serving.prefill == "separate", serving.time_to_first_token is not None
        layers = sum(part.count for part in serving.layers)
        if layers > MOST_LAYERS:
            issues.add(f"{layers:,} layers in all; expected at most {MOST_LAYERS:,}", ("serving", "layers"))
            raise issues.error()
        if serving.prompt >= serving.context:
            what = f"expected fewer tokens than context, {serving.context:,}: the others are the answer"
            issues.add(f"{serving.prompt:,}; {what}", ("serving", "prompt"))
        for name, given in (("prefill", separate), ("time_to_first_token", limited)):
            if given and not serving.prompt:
                issues.add("there is no prompt; expected its tokens as prompt", ("serving", name), at_key=True)
            elif given and serving.rates:
                what = "measured rates say nothing of prompts; expected devices with computed ones alone"
                issues.add(what, ("serving", name), at_key=True)
        for name, given in (("rates", bool(serving.rates)), ("demand", serving.demand is not None)):
            if given and serving.replicas > 1:
                issues.add(f"expected 1 with {name}", ("serving", "replicas"))
        if separate and serving.replicas > 1:
            issues.add("expected 1 where prefill is separate", ("serving", "replicas"))
        if len(issues):
            raise issues.error()
        tables: dict[_Kind, int] = {}
        found: list[Int] = []  # entries of `Step`, and times of a prompt
        kind, measured = [], dict[str, str]()  # devices with both keys, by that of `tensor_parallel`
        for device, key, sharing in zip(
            self.index.devices, self.applying("rates"), self.applying("tensor_parallel"), strict=True
        ):
            same = _Kind("pool" if key is None else "rates", key or device.pool, device.spec.price, sharing)
            if key is not None and sharing is not None:
                measured.setdefault(sharing, device.name)
            elif same not in tables:
                tables[same] = len(found)
                found.append(
                    self._computed(device.pool, device.spec, sharing) if key is None else self._stated(key, layers)
                )
            kind.append(tables.get(same, 0))
        for sharing, name in measured.items():
            what = f"{name} has measured rates, which are those of all its GPUs; expected none, or no such key"
            issues.add(what, ("serving", "tensor_parallel", sharing), at_key=True)
        links = completed_links(self.stated.links, issues)
        arrays = link_arrays(links, self.index, self.scales, issues)
        if len(issues):
            raise issues.error()
        alike = all(table.shape[1] == 1 for table in found)
        runs = [layers] if alike else [part.count for part in serving.layers]
        if separate:
            found, alike = [with_phases(table, serving.context - serving.prompt) for table in found], False
            layers, runs = 2 * layers, 2 * runs
        activation = self._with_prompt(self.scales.size(serving.activation, ("serving", "activation")))
        link = _token_rates(arrays.byte_ticks_num, arrays.byte_ticks_den, activation)
        entry = self._coordinator()
        most = max(max(int(np.flatnonzero(table[0].any(axis=0)).max(initial=-1)) + 1 for table in found), 1)
        stacked = np.stack([
            table[:, :, :most] if alike or table.shape[1] > 1 else np.repeat(table[:, :, :most], layers, axis=1)
            for table in found
        ])  # fmt: skip
        if not any(table[0].any() for table in found):
            issues.add(f"no device can hold a layer: {self._why_not(tables)}", ("serving",), at_key=True)
        if len(issues):
            raise issues.error()
        for same, table in zip(tables, found, strict=True):
            if same.source == "pool" and not table[0].any():
                self.notes.append(f"{same.name} holds no layer and one request next to it")
        computed = any(same.source == "pool" for same in tables)
        steps = self._steps(stacked, arrays) if computed else None
        if not computed:
            self._check_measured(arrays)
        if len(issues):
            raise issues.error()
        prompts = self._prompts(stacked[:, -1], arrays) if serving.prompt and not serving.rates else None
        if len(issues):
            raise issues.error()
        return build_serving(
            layers=layers, node_names=[device.name for device in self.index.devices], kind=kind, rate=stacked[:, 0],
            kind_names=self._kind_names(tables), degree=list(map(self._degree, tables)),
            link=link, entry=entry, exit=entry,
            partial=serving.partial, runs=runs, steps=steps,
            price=self._prices(tables), demand=self._demand(), prompts=prompts,
            replicas=min(serving.replicas, len(self.index)),
            context=serving.context if computed or "context" in serving.model_fields_set else None,
            memory=self._memory(tables) if computed else None, name=self.stated.name,
            description=self.stated.description,
            notes=tuple(dict.fromkeys((*self.scales.notes, *self.notes))),
        )  # fmt: skip

    def _memory(self, kinds: Iterable[_Kind]) -> MemoryNeeds:
        """Bytes of the layers, and of nodes without what is reserved."""
        serving, costs = self.serving, self._layer_costs() or []
        kept = [serving.prompt, serving.context] if serving.prefill == "separate" else [serving.context]
        layers = [each.weights + each.tables + each.cache * tokens for tokens in kept for each in costs]
        reserve = self.scales.size(serving.reserve, ("serving", "reserve"))
        nodes = [
            None if same.source == "rates" else max(self._capacity(same) - reserve, 0) * self._degree(same)
            for same in kinds
        ]
        return MemoryNeeds(tuple(layers), tuple(nodes), reserve > 0)

    def _capacity(self, kind: _Kind) -> int:
        """Bytes of each GPU of a node with computed rates."""
        return self.scales.capacity(self.devices[kind.name].memory or 0, ("devices", kind.name))

    def _why_not(self, kinds: Iterable[_Kind]) -> str:
        """Why no device can hold a layer."""
        computed = [same for same in kinds if same.source == "pool"]
        if not computed:
            return "all rates are 0"
        costs = self._layer_costs() or []
        least = min(each.weights + each.tables + each.cache * self.serving.context for each in costs)
        largest = max(computed, key=lambda same: self._capacity(same) * self._degree(same))
        most, degree = self._capacity(largest) * self._degree(largest), self._degree(largest)
        reserved = self.scales.size(self.serving.reserve, ("serving", "reserve")) * degree
        if least <= most - reserved:
            return f"a step for one request, or its prompt, takes more than {LONGEST // SECOND:,} s"
        needs = f"its weights and one request need {size_text(least)}"
        return f"{needs}, and the largest device has {size_text(most)}, of which {size_text(reserved)} are reserved"

    def _steps(self, tables: Int, arrays: LinkArrays) -> Steps:
        """Steps of kinds with (t, 7, 1 or L, K) entries of `Step` and times of a prompt, and the delay of links."""
        serving, scales = self.serving, self.scales
        ends = np.zeros(len(self.index), dtype=np.int64)
        if (stated := serving.coordinator) is not None:
            ends += scales.ticks(stated.latency, ("serving", "coordinator", "latency"), counts=False) * PER_TICK
        limit = self._time_limit("time_per_token")
        room, reading, token, overhead, work = (tables[:, k] for k in range(1, 6))
        return Steps(
            room, reading, token, overhead, work, arrays.latency * PER_TICK, ends, ends, limit, serving.requests,
            serving.batch,
        )  # fmt: skip

    def _time_limit(self, key: str) -> int | None:
        """A limit of time in picoseconds; None if there is none."""
        stated = getattr(self.serving, key)
        if stated is None:
            return None
        limit = self.scales.ticks(stated, ("serving", key), counts=False) * PER_TICK
        if not limit:
            self.issues.add("expected more than 0", ("serving", key))
        return limit

    def _prompts(self, times: Int, arrays: LinkArrays) -> Prompts:
        """The prompts, with (t, 1 or L, K) times; if prefill is separate, also with what passes from there."""
        serving, limit = self.serving, self._time_limit("time_to_first_token")
        answer = serving.context - serving.prompt
        if serving.prefill == "mixed":
            return Prompts(serving.prompt, answer, times, limit)
        cache = [serving.prompt * each.cache for each in self._layer_costs() or []]
        # Millionths of tokens of a million bytes are bytes.
        transfer = _token_rates(arrays.byte_ticks_num, arrays.byte_ticks_den, TOKEN)
        times = times[:, : times.shape[1] // 2]
        return Prompts(serving.prompt, answer, times, limit, True, np.array(cache, dtype=np.int64), transfer)

    def _check_measured(self, arrays: LinkArrays) -> None:
        """Report keys that mean nothing without computed rates."""
        for key in ("requests", "time_per_token"):
            if getattr(self.serving, key) is not None:
                what = "measured rates say nothing of requests; expected a device with computed ones"
                self.issues.add(what, ("serving", key), at_key=True)
        if arrays.latency.any():
            self.notes.append("the latency of links is ignored: all rates are measured")

    def _demand(self) -> int | None:
        stated = self.serving.demand
        if stated is None:
            return None
        if not 0 < stated * TOKEN <= UNLIMITED:
            self.issues.add("expected more than 0, and at most 10^9 tokens/s", ("serving", "demand"))
        if all(device.spec.price is None for device in self.index.devices):
            self.issues.add("no device has a price; expected `price` of each", ("serving", "demand"), at_key=True)
        if len(self.issues):
            raise self.issues.error()
        return math.ceil(stated * TOKEN)

    def _degree(self, kind: _Kind) -> int:
        """Number of GPUs that share each layer in a node of a kind."""
        return 1 if kind.sharing is None else self.serving.tensor_parallel[kind.sharing].degree

    def _kind_names(self, kinds: Iterable[_Kind]) -> list[str]:
        """Names of kinds, with the price where a key of `rates` holds for devices of several prices."""
        found = {same: same.name if same.sharing is None else f"{same.name} x{self._degree(same)}" for same in kinds}
        names = list(found.values())
        return [
            name if names.count(name) == 1 else f"{name} at {float(same.price or 0):.10g}"
            for same, name in found.items()
        ]

    def _prices(self, tables: Iterable[_Kind]) -> list[int] | None:
        """The price of each kind; None if no device has one, and an issue if only some have one."""
        lacking = [name for name, device in self.devices.items() if device.price is None]
        if len(lacking) == len(self.devices):
            return None
        for name in lacking:
            self.issues.add("lacks a price; expected one, as other devices have one", ("devices", name), at_key=True)
        if lacking:
            raise self.issues.error()
        return [int((same.price or 0) * self._degree(same) * 10**6) for same in tables]

    def applying(self, name: str) -> list[str | None]:
        """The key of a mapping that applies to each device, the most specific one; None if there is none."""
        found: list[tuple[int, str | None]] = [(-1, None)] * len(self.index)
        for key in getattr(self.serving, name):
            for level, places in enumerate(self.index.levels(key, ("serving", name, key), at_key=True)):
                for d in places:
                    if level > found[d][0]:
                        found[d] = level, key
        return [key for _, key in found]

    def _stated(self, key: str, layers: int) -> Int:
        """(7, 1, layers) entries of `Step` with measured rates: requests need no memory, and steps no time."""
        table = np.zeros((len(Step._fields) + 1, 1, layers), dtype=np.int64)
        for count, rate in self.serving.rates[key].items():
            path: Path = ("serving", "rates", key, count)
            if count > layers:
                self.issues.add(f"a rate for {counted(count, 'layer')}; there are {layers}", ("serving", "rates", key))
            elif rate * TOKEN > UNLIMITED:
                self.issues.add(f"{self.issues.written(path)} is more than 10^9 tokens/s", path)
            else:
                table[:2, 0, count - 1] = int(rate * TOKEN), UNLIMITED
        stated, rates = self.serving.rates[key], table[0, 0]
        for count in range(layers - 1, 0, -1):
            if count not in stated:  # with fewer layers, a device passes at least as much
                table[:, 0, count - 1] = table[:, 0, count]
        grown = np.flatnonzero(rates[1:] > rates[:-1])
        if len(grown):
            what = f"more tokens/s with {grown[0] + 2} layers than with {grown[0] + 1}; counted as no more"
            self.notes.append(f"rates of {visible(key)}: {what}")
        return table

    def _computed(self, pool: str, device: DeviceSpec, sharing: str | None) -> Int:
        """(7, 1 or L, L) entries of `Step`, and times of a prompt, from the figures of a device, or of several of them
        as a key of `tensor_parallel` states."""
        serving, scales, place = self.serving, self.scales, ("devices", pool)
        costs = self._layer_costs()
        lacking = [
            what
            for what, given in (
                ("memory", device.memory), ("memory_bandwidth", device.memory_bandwidth), ("speed", device.speed)
            )
            if given is None and (what != "memory_bandwidth" or serving.weights is not None)
        ]  # fmt: skip
        form = None if device.speed is None else used_format(device.speed, serving.precision)
        if (lacking or form is None) and not self.issues.touch("devices", pool):
            what = listing(lacking) if lacking else f"a speed for {serving.precision} or a wider format"
            self.issues.add(f"lacks {what}; expected that, or its tokens per second in rates", place, at_key=True)
        if costs is None or lacking or form is None or device.speed is None:
            return np.zeros((len(Step._fields) + 1, 1, sum(part.count for part in serving.layers)), dtype=np.int64)
        assert device.memory is not None
        assert device.efficiency is not None
        num, den = scales.speed(device.speed[form], (*place, "speed", form))
        speed = Fraction(den * TICKS, max(num, 1)) * (device.efficiency.compute or 1)
        bandwidth = None
        if device.memory_bandwidth is not None:
            num, den = scales.bandwidth(device.memory_bandwidth, (*place, "memory_bandwidth"))
            bandwidth = Fraction(den * TICKS, max(num, 1)) * (device.efficiency.memory or 1)
        overhead = 0 if device.overhead is None else scales.ticks(device.overhead, (*place, "overhead"), counts=False)
        capacity = scales.capacity(device.memory, (*place, "memory"))
        reserve = scales.size(serving.reserve, ("serving", "reserve"))
        hardware = Hardware(max(capacity - reserve, 0), speed, bandwidth, Fraction(overhead, TICKS))
        if sharing is not None:
            hardware = self._shared(hardware, sharing)
        requests = Requests(serving.context, serving.prompt, serving.batch, serving.prefill == "separate")
        steps = interval_steps(costs, hardware, requests)
        times = prompt_times(costs, hardware, requests) if serving.prompt else np.zeros_like(steps[0])
        return np.concatenate([steps, times[None]])

    def _shared(self, hardware: Hardware, sharing: str) -> Hardware:
        """The GPUs together of a device with a key of `tensor_parallel`, each of which is stated."""
        stated, place = self.serving.tensor_parallel[sharing], ("serving", "tensor_parallel", sharing)
        num, den = self.scales.bandwidth(stated.bandwidth, (*place, "bandwidth"))
        latency = self.scales.ticks(stated.latency, (*place, "latency"), counts=False)
        activation = self.scales.size(self.serving.activation, ("serving", "activation"))
        return hardware.shared(stated.degree, activation, Fraction(den * TICKS, max(num, 1)), Fraction(latency, TICKS))

    def _with_prompt(self, size: int) -> int:
        """Bytes that pass for each token of an answer, where a token of the prompt or the answer takes `size`."""
        if self.serving.prefill == "separate":
            return size
        context = self.serving.context
        return -(-size * context // max(context - self.serving.prompt, 1))

    def _layer_costs(self) -> list[LayerCosts] | None:
        """Costs of each layer; None, with an issue, if some are missing."""
        serving, found = self.serving, []
        for k, part in enumerate(serving.layers):
            amounts = []
            for key in ("weights", "cache", "flops"):
                stated, own = getattr(part, key), ("serving", "layers", k, key)
                path: Path = own if stated is not None else ("serving", key)
                stated = getattr(serving, key) if stated is None else stated
                if stated is None:
                    what = "the rates of devices, or weights, cache and flops of layers"
                    self.issues.add(f"{key} is missing; expected {what}", ("serving",), at_key=True)
                    return None
                amounts.append(self._amount(key, stated, path))
            tables = self.scales.size(part.tables, ("serving", "layers", k, "tables"))
            found += [LayerCosts(amounts[0], amounts[1], amounts[2], tables)] * part.count
        return found

    def _amount(self, key: str, stated: Any, path: Path) -> int:
        """Bytes, or FLOP of `flops`."""
        return int(self.scales.works([stated], lambda _: path)[0]) if key == "flops" else self.scales.size(stated, path)

    def _coordinator(self) -> list[int] | None:
        """The rate of the link between the coordinator and each node."""
        stated = self.serving.coordinator
        if stated is None:
            return None
        num, den = self.scales.bandwidth(stated.bandwidth, ("serving", "coordinator", "bandwidth"))
        token = self._with_prompt(self.scales.size(stated.token, ("serving", "coordinator", "token")))
        rate = _token_rates(np.array([num]), np.array([den]), token)
        return [int(rate[0])] * len(self.index)


def _token_rates(num: Int, den: Int, size: int) -> Int:
    """Rates of links on which num ticks move den bytes, for tokens of `size` bytes, rounded down."""
    exact = {
        (n, d): UNLIMITED if not n * size else min(TOKEN * TICKS * d // (n * size), UNLIMITED)
        for n, d in set(zip(num.reshape(-1).tolist(), den.reshape(-1).tolist(), strict=True))
    }
    rates = [exact[pair] for pair in zip(num.reshape(-1).tolist(), den.reshape(-1).tolist(), strict=True)]
    return np.array(rates, dtype=np.int64).reshape(num.shape)
