"""Make changed problems: more or faster devices, more memory, faster links.

    devices      k more devices of a type (`placeopt.studies.sensitivity.devices`)
    speed        all durations on a type divided by f
    memory       the stated capacities of all devices, or of a type, times f; of the first memory tier
    bandwidth    the bandwidth of a link class times f (`link_classes`)
    latency      the latency of all links, or of a class, times q <= 1
    resources    the capacity of a renewable resource times f, and one unit more at least (see `model.resources`)
    budgets      the capacity of a budget likewise
    network      all links without latency and with infinite bandwidth: the limit of any faster network

A task that alone exceeds the present capacity on a device stays excluded from it, as in the compiled problem.

Power per tick, energy per byte, ports, groups, separations, release times, deadlines and relocation stay as they are.

Every change is a relaxation: a feasible schedule stays feasible with the same starts, and none of its metrics grows.
With shorter durations and transfers, every interval on a device, on a port and in memory becomes a part of the former
one; a new device may stay idle, which costs nothing. So a lower bound of the changed problem is also a lower bound of
the unchanged one.

Rounding is that of the compiler: times up to whole ticks, capacities down to whole bytes. For whole f,
ceil(ceil(x) / f) is ceil(x / f), so a time divided by a whole number equals the time in the compiled changed document.
Bandwidths are exact ratios. A note reports rounding that changes a time by more than `placeopt.model.problem.COARSE`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np

from placeopt.errors import UsageError, listing, suggestion, visible
from placeopt.model import ranges
from placeopt.model.arrays import Bool, Int
from placeopt.model.building import by_first_appearance, with_changes
from placeopt.model.modes import homes, memory_budget, modes_by_device, own_devices
from placeopt.model.problem import COARSE, UNLIMITED, Problem, ratio_ceil
from placeopt.model.resource_use import device_resources
from placeopt.model.resources import CORES
from placeopt.model.tiers import build_tiers
from placeopt.model.units import exact, is_real, size_text, time_text
from placeopt.studies.sensitivity.devices import more_devices

Kind = Literal["devices", "speed", "memory", "resources", "budgets", "bandwidth", "latency", "network"]
KINDS: tuple[Kind, ...] = get_args(Kind)
OF_TYPES: tuple[Kind, ...] = ("devices", "speed", "memory")
"""Kinds that change devices of a type."""
OF_RESOURCES: tuple[Kind, ...] = ("resources", "budgets")
"""Kinds that change a resource; the others change links."""
AS_A_WHOLE: tuple[Kind, ...] = ("memory", "latency", "network")
"""Kinds that change all devices or links at once unless a target is given."""

LARGEST = 10**6
"""The largest factor, and the largest denominator of one."""
MOST_DEVICES = 1000


@dataclass(frozen=True, slots=True)
class Amounts:
    """Number of added devices, and factors: at most 1 for latency, at least 1 for all others."""

    devices: int = 1
    speed: Fraction = Fraction(2)
    memory: Fraction = Fraction(6, 5)
    bandwidth: Fraction = Fraction(2)
    latency: Fraction = Fraction(1, 2)
    resource: Fraction = Fraction(11, 10)


def make_amounts(
    *,
    more_devices: int = 1,
    speed_factor: float = 2,
    memory_factor: float = 1.2,
    bandwidth_factor: float = 2,
    latency_factor: float = 0.5,
    resource_factor: float = 1.1,
    option: Callable[[str], str] = str,
) -> Amounts:
    """Check amounts and return them; `option` maps the name of an argument to its name in messages.

    Raises a UsageError if an amount is out of range, or would make the problem harder.
    """
    if isinstance(more_devices, bool) or not isinstance(more_devices, int) or not 1 <= more_devices <= MOST_DEVICES:
        name = option("more_devices")
        raise UsageError(f"{name} is {more_devices}; expected a whole number from 1 to {MOST_DEVICES:,}")

    def factor(argument: str, value: float, least: int, most: int) -> Fraction:
        if not is_real(value) or not least <= value <= most:
            raise UsageError(f"{option(argument)} is {value!r}; expected a number from {least} to {most:,}")
        return exact(value).limit_denominator(LARGEST)

    return Amounts(
        more_devices,
        factor("speed_factor", speed_factor, 1, LARGEST),
        factor("memory_factor", memory_factor, 1, LARGEST),
        factor("bandwidth_factor", bandwidth_factor, 1, LARGEST),
        factor("latency_factor", latency_factor, 0, 1),
        factor("resource_factor", resource_factor, 1, LARGEST),
    )


@dataclass(frozen=True, slots=True)
class Change:
    """A change, and the changed problem, in which devices keep their indices and new devices come last."""

    kind: Kind
    target: str  # the device type, link class or resource; "" for all devices or links
    text: str  # the change in words: "one more gpu"
    problem: Problem
    notes: tuple[str, ...] = ()  # assumptions and rounding

    @property
    def name(self) -> str:
        """The change in the form of an option: "devices:gpu"."""
        return f"{self.kind}:{self.target}" if self.target else self.kind


@dataclass(frozen=True, slots=True)
class _Made:
    """A change in words, the arguments of `with_changes` for it, and notes."""

    text: str
    arrays: dict[str, Any]
    notes: tuple[str, ...] = ()


def make_changes(
    problem: Problem, wanted: Sequence[str] | None = None, amounts: Amounts | None = None
) -> tuple[tuple[Change, ...], tuple[str, ...]]:
    """Return the changed problems, kinds in the order of KINDS, and notes on changes without effect.

    The `wanted` ones are kinds ("bandwidth"), or a kind and its target ("bandwidth:gpu <-> cpu"); None for all kinds.
    Raises a UsageError if there is no such kind, device type or link class.
    """
    amounts = amounts or Amounts()
    own = own_devices(problem)
    types: dict[str, Int] = {
        name: np.array([d for d in own if problem.device_types[d] == name], dtype=np.int64)
        for name in dict.fromkeys(problem.device_types)
    }
    hidden = device_resources(problem)
    classes = {each.name: each for each in link_classes(problem)}
    resources = () if problem.resources is None else problem.resources.names
    changes: list[Change] = []
    notes: list[str] = []
    for kind, chosen in _wanted(wanted).items():
        known: Sequence[str] = list(types if kind in OF_TYPES else classes)
        if kind in OF_RESOURCES:
            known = [name for r, name in enumerate(resources) if _is_of(problem, r, kind) and r not in hidden]
        for target in _targets(kind, chosen, known, classes):
            if kind in OF_RESOURCES:
                made: _Made | None = _resource(problem, resources.index(target), amounts.resource)
            else:
                made = _make(problem, kind, types.get(target), classes.get(target), target, amounts)
            try:
                changed = None if made is None else with_changes(problem, **made.arrays)
            except UsageError as error:  # shorter tasks may make a change of families faster by way of another one
                notes.append(f"{kind}{f' of {visible(target)}' if target else ''}: {error}")
                continue
            if made is None or changed is None or changed.fingerprint() == problem.fingerprint():
                moded = kind == "devices" and _has_modes(problem, types[target])
                why = "devices that run tasks in modes are not supported" if moded else _IDLE[kind]
                notes.append(f"{kind}{f' of {visible(target)}' if target else ''}: {why}")
                continue
            name = f"{problem.name}, {made.text}" if problem.name else made.text
            changes.append(Change(kind, target, made.text, with_changes(changed, name=name), made.notes))
        if kind == "bandwidth" and not any(change.kind == kind for change in changes) and chosen is None:
            notes.append(f"{kind}: {_IDLE[kind]}")
    return tuple(changes), tuple(notes)


_IDLE: dict[Kind, str] = {
    "devices": "no task may run on every device of the type",
    "speed": "no task takes less time, in whole ticks",
    "memory": "no device has a memory limit to raise",
    "resources": "no task uses it",
    "budgets": "no task uses it",
    "bandwidth": "no link has a limited bandwidth",
    "latency": "no latency becomes shorter, in whole ticks",
    "network": "transfers take no time already",
}
"""Why a change has no effect."""


def _wanted(names: Sequence[str] | None) -> dict[Kind, list[str] | None]:
    """Return the given targets of each kind, in the order of KINDS; None for a kind as a whole."""
    if not isinstance(names, Iterable | None):
        raise UsageError(f"changes is {names!r}; expected kinds of changes: {listing(KINDS)}")
    found: dict[Kind, list[str] | None] = {}
    for name in KINDS if names is None else [names] if isinstance(names, str) else names:
        kind, colon, target = str(name).partition(":")
        if kind not in KINDS:
            raise UsageError(f'no change "{visible(kind)}"; expected {listing(KINDS)}{suggestion(kind, KINDS)}')
        if colon and kind == "network":
            raise UsageError(f'"{visible(str(name))}": network changes all links; expected no link class')
        targets = found.setdefault(kind, [] if colon else None)
        if targets is not None and colon:
            targets.append(target)
        else:
            found[kind] = None
    return {kind: found[kind] for kind in KINDS if kind in found}


_WORDS: dict[Kind, str] = {"resources": "renewable resource", "budgets": "budget"}


def _targets(
    kind: Kind, chosen: list[str] | None, known: Sequence[str], classes: dict[str, LinkClass]
) -> Sequence[str]:
    """Return the names of the device types or link classes to change in turn; "" for all at once."""
    if chosen is None and kind in AS_A_WHOLE:
        return [""]
    if chosen is None:
        return [name for name in known if kind != "bandwidth" or classes[name].num]
    what = "device type" if kind in OF_TYPES else _WORDS.get(kind, "link class")
    for name in chosen:
        if name not in known:
            expected = f"; expected {listing(known)}" if known else "; the problem has none"
            hint = suggestion(name, known) or expected
            raise UsageError(f'{kind}: no {what} "{visible(name)}"{hint}')
    return [name for name in known if name in chosen]


def _make(
    problem: Problem, kind: Kind, members: Int | None, links: LinkClass | None, target: str, amounts: Amounts
) -> _Made | None:
    """Return one change; None if it is not possible."""
    if kind == "devices" and members is not None:
        return _devices(problem, members, target, amounts.devices)
    if kind == "speed" and members is not None:
        return _speed(problem, members, target, amounts.speed)
    if kind == "memory":
        return _memory(problem, np.arange(problem.n_devices) if members is None else members, target, amounts.memory)
    if kind == "bandwidth" and links is not None:
        return _bandwidth(problem, links, amounts.bandwidth)
    if kind == "latency":
        return _latency(problem, links, amounts.latency)
    return _network(problem)


def _devices(problem: Problem, members: Int, target: str, count: int) -> _Made | None:
    if _has_modes(problem, members):
        return None
    arrays, notes = more_devices(problem, members, count)
    if not arrays["feasible"][:, -1].any():
        return None
    return _Made(f"{'one' if count == 1 else count} more {visible(target)}", arrays, notes)


def _speed(problem: Problem, members: Int, target: str, factor: Fraction) -> _Made:
    teams = problem.members or tuple((d,) for d in range(problem.n_devices))
    every, inside = set(members.tolist()), [not set(members.tolist()).isdisjoint(team) for team in teams]
    mixed = [d for d, team in enumerate(teams) if inside[d] and not every.issuperset(team)]
    faster = np.array([d for d, team in enumerate(teams) if every.issuperset(team)], dtype=np.int64)
    duration = problem.duration.copy()
    duration[:, faster] = ratio_ceil(duration[:, faster], factor.denominator, factor.numerator)
    notes = _coarse(problem, problem.duration[:, faster], duration[:, faster], 1 / factor)
    if any(len(teams[d]) > 1 for d in faster.tolist()):
        notes += ("what teams exchange takes less time, too",)
    if mixed:
        notes += ("teams with devices of other types are as fast as before",)
    return _Made(f"{visible(target)} {_times(factor)} as fast", {"duration": duration}, notes)


def _memory(problem: Problem, members: Int, target: str, factor: Fraction) -> _Made:
    capacity = problem.capacity.copy() if problem.tiers is None else problem.tiers.end[:, 0].copy()
    for d in members.tolist():
        if capacity[d] != UNLIMITED:
            capacity[d] = min(math.floor(int(capacity[d]) * factor), UNLIMITED - 1)
    arrays: dict[str, Any] = {"capacity": capacity}
    budgets = [r for d in members.tolist() if (r := memory_budget(problem, d)) is not None]
    notes: tuple[str, ...] = ()
    if budgets and problem.resources is not None:
        room = problem.resources.capacity.copy()
        for r in budgets:
            room[r] = min(math.floor(int(room[r]) * factor), ranges.LARGEST)
        arrays["resources"] = problem.resources.changed(capacity=room)
        notes = ("modes that need more memory than a device has now stay excluded",)
    if problem.tiers is not None:  # the first tier changes
        tiers = build_tiers(capacity, [problem.tiers.further(d) for d in range(problem.n_devices)])
        arrays |= {"capacity": tiers.capacity, "tiers": tiers}
    more = f"{float(100 * (factor - 1)):.4g}% more" if factor < 2 else f"{_times(factor)} the"
    return _Made(f"{more} memory{f' of {visible(target)}' if target else ''}", arrays, notes)


def _has_modes(problem: Problem, devices: Int) -> bool:
    """Whether some of the devices run tasks in modes or teams."""
    return any(len(modes) > 0 for d, modes in modes_by_device(problem).items() if d in devices)


def _is_of(problem: Problem, r: int, kind: Kind) -> bool:
    return problem.resources is not None and bool(problem.resources.renewable[r]) == (kind == "resources")


def _resource(problem: Problem, r: int, factor: Fraction) -> _Made:
    """Raise a capacity by a factor, up to the next whole amount if all amounts are whole, and by one unit at least."""
    resources = problem.resources
    assert resources is not None
    capacity = resources.capacity.copy()
    before = int(capacity[r])
    capacity[r] = min(max(math.ceil(before * factor), before + (factor > 1)), ranges.LARGEST)
    more, name = resources.stated(r, int(capacity[r]) - before), visible(resources.names[r])
    text = f"{100 * (int(capacity[r]) / before - 1):.4g}% more {name}" if before else f"{more:.10g} more {name}"
    if name.startswith(CORES):
        text = f"{'one more core' if more == 1 else f'{more} more cores'} of {name.removeprefix(CORES)}"
    elif more == 1:
        text = f"one more {name}"
    arrays = {} if not resources.amounts(r).any() else {"resources": resources.changed(capacity=capacity)}
    return _Made(text, arrays)


def _bandwidth(problem: Problem, links: LinkClass, factor: Fraction) -> _Made:
    num, den = problem.byte_ticks_num.copy(), problem.byte_ticks_den.copy()
    before = problem.byte_ticks_num, problem.byte_ticks_den
    for a, b in np.unique([each[links.member] for each in before], axis=1).T.tolist():
        if a:  # modes with smaller outputs have other rates on the links of a class
            rate, same = representable(Fraction(a, b) / factor), links.member & (before[0] == a) & (before[1] == b)
            num[same], den[same] = rate.numerator, rate.denominator
    arrays = {"byte_ticks_num": num, "byte_ticks_den": den}
    return _Made(f"{_times(factor)} the bandwidth of {links.name}", arrays, _as_before(problem))


def _latency(problem: Problem, links: LinkClass | None, factor: Fraction) -> _Made:
    member = ~np.eye(problem.n_devices, dtype=np.bool_) if links is None else links.member
    latency = problem.latency.copy()
    latency[member] = ratio_ceil(latency[member], factor.numerator, factor.denominator)
    much = {Fraction(0): "no", Fraction(1, 2): "half the"}.get(factor, f"{float(factor):g} times the")
    notes = (*_coarse(problem, problem.latency[member], latency[member], factor), *_as_before(problem))
    return _Made(f"{much} latency{'' if links is None else f' of {links.name}'}", {"latency": latency}, notes)


def _network(problem: Problem) -> _Made:
    within = np.eye(problem.n_devices, dtype=np.bool_)
    arrays = {name: np.where(within, getattr(problem, name), 0) for name in ("latency", "byte_ticks_num")}
    return _Made("transfers take no time", arrays, _as_before(problem))


def representable(rate: Fraction) -> Fraction:
    """Return the rate, or the next smaller one found whose numerator times denominator is below 2^62."""
    if rate.numerator * rate.denominator < 2**62:
        return rate
    parts = min(max(math.isqrt(math.floor(2**61 / rate)), 1), 2**61)
    return Fraction(math.floor(rate * parts), parts)


def _times(factor: Fraction) -> str:
    return "twice" if factor == 2 else f"{float(factor):g} times"


def _coarse(problem: Problem, before: Int, after: Int, factor: Fraction) -> tuple[str, ...]:
    """Return a note if rounding `before` times the factor up to `after` changes a time much."""
    unrounded = before * float(factor)
    some = unrounded > 0
    share = float(np.max((after - unrounded)[some] / unrounded[some], initial=0.0))
    if share <= COARSE:
        return ()
    tick = time_text(1, problem.resolution)
    return (f"times are rounded up to the {tick} tick, by up to {share:,.0%}; a finer resolution avoids it",)


def _as_before(problem: Problem) -> tuple[str, ...]:
    """Return notes on times that count: a compiled problem has their ticks, but not the bytes that move."""
    counts = "relocation" in problem.objective.metrics and bool(problem.relocation.any())
    notes = ("relocation takes as long as before",) if counts else ()
    teams = any(len(team) > 1 for team in problem.members or ())
    return (*notes, "what teams exchange takes as long as before") if teams else notes


_NAMED = 2
"""Pairs of ends in the name of a class; further pairs are counted."""


@dataclass(frozen=True, slots=True)
class LinkClass:
    """Links of equal latency and bandwidth.

    The name is "gpu <-> cpu" for all links between two device types, "all links" if the problem has no others. It
    contains names of devices if the class has only some of the links between two types.
    """

    name: str
    member: Bool  # (m, m) whether the link from the row's device to the column's is one of them
    num: int  # num ticks move den bytes, in lowest terms; 0 for an infinite bandwidth
    den: int
    latency: int  # ticks


def link_classes(problem: Problem) -> tuple[LinkClass, ...]:
    """Return the link classes of a problem, in order of first appearance; no two have the same name."""
    own, home = own_devices(problem), homes(problem)
    stated = np.isin(np.arange(problem.n_devices), own)
    ends = np.argwhere(np.outer(stated, stated) & ~np.eye(problem.n_devices, dtype=np.bool_))
    if not len(ends):
        return ()
    source, target = ends.T
    num, den = problem.byte_ticks_num[source, target], problem.byte_ticks_den[source, target]
    common = np.gcd(num, den)
    keys = np.column_stack((problem.latency[source, target], num // common, den // common))
    label = by_first_appearance(np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1))
    found = []
    for number in range(int(label.max()) + 1):
        chosen = label == number
        member = np.zeros((problem.n_devices, problem.n_devices), dtype=np.bool_)
        member[source[chosen], target[chosen]] = True
        latency, ticks, size = keys[np.flatnonzero(chosen)[0]].tolist()
        name = "all links" if chosen.all() else _name(problem, member, own)
        found.append(LinkClass(name, member[np.ix_(home, home)], ticks, size, latency))
    return tuple(_with_distinct_names(problem, found))


def _name(problem: Problem, member: Bool, own: list[int]) -> str:
    """Return the pairs of types between which all links are of the class, then the other pairs of devices."""
    kinds = list(dict.fromkeys(problem.device_types))
    kind = np.array([kinds.index(name) for name in problem.device_types])
    size = np.bincount(kind[own], minlength=len(kinds))
    every = np.outer(size, size) - np.diag(size)
    inside = np.zeros_like(every)
    np.add.at(inside, (kind[np.nonzero(member)[0]], kind[np.nonzero(member)[1]]), 1)
    whole = (inside == every) & (every > 0)
    rest = member & ~whole[kind][:, kind]
    # A type with one device is that device.
    labels = [name if size[k] > 1 else problem.device_names[int(np.argmax(kind == k))] for k, name in enumerate(kinds)]
    pairs = [*_pairs(whole, labels), *_pairs(rest, problem.device_names)]
    shown = ", ".join(pairs[:_NAMED])
    return shown if len(pairs) <= _NAMED else f"{shown} and {len(pairs) - _NAMED} more"


def _pairs(related: Bool, names: tuple[str, ...] | list[str]) -> list[str]:
    """Return the pairs of ends in a relation as texts, with one text for both directions."""
    texts = []
    for a, b in np.argwhere(related).tolist():
        both = bool(related[b, a])
        if both and b < a:
            continue
        texts.append(f"{visible(names[a], 40)} {'<->' if both else '->'} {visible(names[b], 40)}")
    return texts


def _with_distinct_names(problem: Problem, classes: list[LinkClass]) -> list[LinkClass]:
    """Add bandwidth and latency, and a number if necessary, to names that several classes share."""
    names = [each.name for each in classes]
    for place, each in enumerate(classes):
        if names.count(each.name) > 1:
            rate = f"{size_text(int(each.den / (each.num * float(problem.resolution))))}/s" if each.num else "unlimited"
            classes[place] = replace(each, name=f"{each.name} ({rate}, {time_text(each.latency, problem.resolution)})")
    names = [each.name for each in classes]
    return [
        each
        if names.count(each.name) == 1
        else replace(each, name=f"{each.name} #{names[:place].count(each.name) + 1}")
        for place, each in enumerate(classes)
    ]
