"""Build a `Problem` from arrays: check every argument and compute every derived array."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placeopt import engine
from placeopt.errors import UsageError, listing, visible
from placeopt.model.arrays import (
    Bool,
    Int,
    checked_share,
    checked_whole,
    choice,
    flags,
    freeze,
    names,
    task_pairs,
    whole_numbers,
)
from placeopt.model.graph import find_cycle
from placeopt.model.layout import Layout, checked_layout
from placeopt.model.members import members_by_resource
from placeopt.model.pipeline import Pipeline, build_pipeline
from placeopt.model.problem import (
    LARGEST_ALIGNMENT,
    NANO,
    RULES,
    UNLIMITED,
    Contention,
    Efficiency,
    MemoryModel,
    Metric,
    Objective,
    Problem,
    Rounding,
    Term,
)
from placeopt.model.resources import Resources, only_feasible
from placeopt.model.rules import check_rule
from placeopt.model.setups import Setups, check_setups
from placeopt.model.shared_links import SharedLinks
from placeopt.model.tiers import Tiers
from placeopt.model.unavailability import Unavailability
from placeopt.model.units import is_whole

_BLOCK = 2**18
"""Entries of a table that are compared at a time, about as many as fit into a cache."""


def build_problem(
    *,
    task_names: Sequence[str],
    device_names: Sequence[str],
    duration: ArrayLike,
    edges: ArrayLike = (),
    name: str = "",
    description: str = "",
    resolution: Fraction | int = Fraction(1, NANO),
    device_types: Sequence[str] | None = None,
    feasible: ArrayLike | None = None,
    resident: ArrayLike | None = None,
    output: ArrayLike | None = None,
    scratch: ArrayLike | None = None,
    release: ArrayLike | None = None,
    deadline: ArrayLike | None = None,
    capacity: ArrayLike | None = None,
    payload: ArrayLike | None = None,
    shared: ArrayLike | None = None,
    latency: ArrayLike | None = None,
    byte_ticks_num: ArrayLike | None = None,
    byte_ticks_den: ArrayLike | None = None,
    power_num: ArrayLike | None = None,
    power_den: ArrayLike | None = None,
    byte_energy_num: ArrayLike | None = None,
    byte_energy_den: ArrayLike | None = None,
    due: ArrayLike | None = None,
    due_weight: ArrayLike | None = None,
    price: ArrayLike | None = None,
    relocation: ArrayLike | None = None,
    runs_before_next_change: Fraction | int = 1,
    group: ArrayLike | None = None,
    separation: Iterable[tuple[int, int]] | Int = (),
    forward: ArrayLike | None = None,
    pipeline: Pipeline | Mapping[str, Any] | None = None,
    objective: Objective | None = None,
    contention: Contention = "none",
    memory_model: MemoryModel = "sum",
    alignment: int | None = None,
    layout: Layout | None = None,
    tiers: Tiers | None = None,
    unavailable: Unavailability | None = None,
    setups: Setups | None = None,
    shared_links: SharedLinks | None = None,
    resources: Resources | None = None,
    limits: Iterable[tuple[Metric, int]] = (),
    consolidate: Fraction | float = 0,
    rounding: Rounding | None = None,
    efficiency: tuple[Efficiency, ...] = (),
    notes: tuple[str, ...] = (),
    provenance: Mapping[str, Any] | None = None,
) -> Problem:
    """Build a Problem from its essential arrays; the derived ones are computed, all are read-only.

    Edges may be in any order; `payload` and `shared` follow that order. `group` holds arbitrary labels. Ratios are
    reduced to lowest terms. Omitted arguments mean zero, unlimited, feasible on every device, or free of charge.
    `alignment` asks for addresses of all buffers, and requires the memory model `peak`. `layout` is from
    `placeopt.model.layout.build_layout`; it contains the outputs. `pipeline` holds the arguments of `build_pipeline`,
    for the objective `period`. With `tiers`, from
    `placeopt.model.tiers.build_tiers`, the capacity is that of all tiers. `unavailable` is from
    `placeopt.model.unavailability.build_unavailability`, `setups` from `placeopt.model.setups.build_setups`,
    `shared_links` from
    `placeopt.model.shared_links.build_shared_links`, `resources` from `placeopt.model.resources.build_resources`.

    Raises
    ------
    UsageError
        If an array has the wrong shape, an entry is not a whole number or out of range (times, amounts and costs are at
        least 0, denominators at least 1, tasks are indices), a name repeats, the edges contain a cycle, a task is
        separated from itself, shared edges of one producer differ in payload, a forward task is itself a backward task,
        the number of runs before the next change is not positive, `consolidate` is not from 0 to 1, a pipeline has an
        objective without `period`, port contention, memory model `peak`, release times, deadlines, unavailable
        devices, setup times, shared links or resources, setup times do not keep the triangle inequality or are those
        of parallel devices, or memory tiers contradict the capacities, the memory model `peak` or the
        objective `period`.
    """
    choice("contention", contention, get_args(Contention))
    choice("memory_model", memory_model, get_args(MemoryModel))
    if alignment is not None and memory_model != "peak":
        raise UsageError(f"memory_model is {memory_model}; expected peak with alignment, which asks for addresses")
    if objective is not None and not isinstance(objective, Objective):
        raise UsageError(f"objective is a {type(objective).__name__}; expected an Objective")
    if not isinstance(resolution, int | Fraction) or resolution <= 0:
        raise UsageError(f"resolution is {resolution!r}; expected a positive number of seconds, an int or a Fraction")
    tasks, devices = names("task_names", task_names, unique=True), names("device_names", device_names, unique=True)
    n, m = len(tasks), len(devices)
    by_task, by_device, by_both = (n,), (m,), (n, m)
    pairs = task_pairs("edges", edges, n)
    e = len(pairs)
    by_source = np.lexsort((pairs[:, 1], pairs[:, 0]))
    source, target = pairs[by_source, 0], pairs[by_source, 1]
    edge_payload = whole_numbers("payload", payload, (e,), "edges", default=0)[by_source]
    edge_shared = flags("shared", shared, (e,), "edges", default=False)[by_source]
    allowed = flags("feasible", feasible, by_both, "tasks x devices", default=True)
    ticks = whole_numbers("duration", duration, by_both, "tasks x devices", where=allowed)
    check_rule("resources", resources, Resources, tasks=n, devices=m)
    if resources is not None:
        resources = only_feasible(resources, allowed)
        if not (fits := resources.fits(ticks)).all():
            allowed, ticks = allowed & fits, np.where(fits, ticks, 0)
            resources = only_feasible(resources, allowed)
    out_start = np.searchsorted(source, np.arange(n + 1)).astype(np.int64)
    in_edge = np.argsort(target, kind="stable").astype(np.int64)
    in_start = np.searchsorted(target[in_edge], np.arange(n + 1)).astype(np.int64)
    order = engine.topological_order(out_start, target)
    if len(order) < n:
        around = [tasks[i] for i in find_cycle(pairs, n)]
        raise UsageError(f"the edges contain a cycle: {listing(around, 8, ' -> ')} -> {visible(around[0])}")

    def link(what: str, values: ArrayLike | None, default: int, where: Bool | None = None) -> Int:
        return whole_numbers(what, values, (m, m), "devices x devices", default=default, least=default, where=where)

    def each_device(what: str, values: ArrayLike | None, default: int, least: int = 0) -> Int:
        return whole_numbers(what, values, by_device, "devices", default=default, least=least)

    def each_task(what: str, values: ArrayLike | None, default: int = 0, least: int | None = 0) -> Int:
        return whole_numbers(what, values, by_task, "tasks", default=default, least=least)

    link_arrays: dict[str, Any] = {
        "latency": link("latency", latency, 0, ~np.eye(m, dtype=np.bool_)),
        "byte_ticks_num": link("byte_ticks_num", byte_ticks_num, 0),
        "byte_ticks_den": link("byte_ticks_den", byte_ticks_den, 1),
        "byte_energy_num": link("byte_energy_num", byte_energy_num, 0),
        "byte_energy_den": link("byte_energy_den", byte_energy_den, 1),
    }
    powers = each_device("power_num", power_num, 0), each_device("power_den", power_den, 1, least=1)
    for what in ("byte_ticks", "byte_energy"):
        ratio = _lowest(what, link_arrays[f"{what}_num"], link_arrays[f"{what}_den"])
        for part, values, neutral in zip(("num", "den"), ratio, (0, 1), strict=True):
            np.fill_diagonal(values, neutral)
            link_arrays[f"{what}_{part}"] = values
    powers = _lowest("power", *powers)
    first_shared = np.flatnonzero(edge_shared)
    outputs = np.zeros(n, dtype=np.int64)
    outputs[source[first_shared]] = edge_payload[first_shared]
    unequal = first_shared[outputs[source[first_shared]] != edge_payload[first_shared]]
    if len(unequal):
        edge = int(unequal[0])
        raise UsageError(
            f"payload: shared edges of {visible(tasks[source[edge]])} have {edge_payload[edge]} and "
            f"{outputs[source[edge]]} bytes; expected the same: they carry one output"
        )
    if not runs_before_next_change > 0:
        raise UsageError(f"runs_before_next_change is {runs_before_next_change}; expected a positive number")
    forwards = np.arange(n)
    if forward is not None:
        forwards = whole_numbers("forward", forward, by_task, "tasks", most=n - 1)
        if (chained := np.flatnonzero(forwards[forwards] != forwards)).size:
            i, j = int(chained[0]), int(forwards[chained[0]])
            raise UsageError(
                f"forward[{i}] is {j}, which has the forward task {forwards[j]}; expected one that is its own"
            )
    apart = task_pairs("separation", separation, n)
    if (alone := np.flatnonzero(apart[:, 0] == apart[:, 1])).size:
        row = int(alone[0])
        raise UsageError(f"separation[{row}] separates {visible(tasks[apart[row, 0]])} from itself; expected two tasks")
    releases, deadlines = each_task("release", release), each_task("deadline", deadline, UNLIMITED, least=None)
    dues = each_task("due", due, UNLIMITED)
    goal = objective or Objective()
    if pipeline is not None and not isinstance(pipeline, Pipeline):
        pipeline = build_pipeline(n, m, **pipeline)
    if "period" in goal.metrics:
        pipeline = build_pipeline(n, m) if pipeline is None else pipeline
        check_rule("pipeline", pipeline, Pipeline, tasks=n, devices=m)
        _check_pipeline(contention, memory_model, releases, deadlines)
    elif pipeline is not None:
        raise UsageError(f"pipeline: the objective {goal} does not contain period; expected an objective with it")
    capacities = each_device("capacity", capacity, UNLIMITED)
    if tiers is not None:
        check_rule("tiers", tiers, Tiers, devices=m)
        capacities = _tier_capacities(tiers, None if capacity is None else capacities, devices, memory_model)
    check_rule("unavailable", unavailable, Unavailability, devices=m)
    layout = checked_layout(layout, source, target, capacities, tasks, alignment)
    check_rule("setups", setups, Setups, tasks=n, devices=m)
    check_rule("shared_links", shared_links, SharedLinks, devices=m)
    ruled = resources if setups is not None or shared_links is not None else None
    members = None if ruled is None else members_by_resource(devices, allowed, ruled)
    shared_links = None if shared_links is None else shared_links.joined(members)
    if setups is not None:
        setups = setups.joined(members)
        check_setups(setups, ticks, allowed, devices)
        for station in np.unique(setups.station[setups.used()]).tolist():
            modes = np.flatnonzero(setups.station == station)
            if resources is not None and not resources.exclusive(modes, allowed):
                name = visible(devices[station])
                raise UsageError(f"setups: {name} runs several tasks at once; expected devices that run one")
    most = _checked_limits(limits)
    timed = {"tiers": tiers, "unavailable": unavailable, "setups": setups, "shared_links": shared_links, "limits": most}
    for what, given in timed.items() if pipeline is not None else ():
        if given:
            raise UsageError(f"{what}: the objective {goal} contains period; expected one without it")
    tiers = tiers if tiers is not None and tiers.end.shape[1] > 1 else None
    if resources is not None and pipeline is not None and (resources.renewable.any() or resources.parallel.any()):
        raise UsageError(f"resources: the objective {goal} contains period; expected budgets only")
    moves = whole_numbers("relocation", relocation, by_both, "tasks x devices", default=0, where=allowed)
    prices = whole_numbers("price", price, by_both, "tasks x devices", default=0, where=allowed)
    tables = [ticks, allowed]
    tables += [table for table, given in ((moves, relocation), (prices, price)) if given is not None]
    tables += [] if resources is None else [resources.need]
    rules: dict[str, Any] = dict(
        zip(RULES, (pipeline, tiers, unavailable, setups, shared_links, resources, layout), strict=True)
    )
    columns = [
        (
            like,
            *map(int, (capacities[d], powers[0][d], powers[1][d])),
            *(rule.columns(d) for rule in rules.values() if rule is not None),
        )
        for d, like in enumerate(_equal_columns(m, tables))
    ]
    links = np.stack(list(link_arrays.values()), axis=-1)
    groups = np.arange(n) if group is None else whole_numbers("group", group, by_task, "tasks", least=None)
    problem = Problem(
        name=name,
        description=description,
        resolution=Fraction(resolution),
        task_names=tasks,
        device_names=devices,
        device_types=devices if device_types is None else names("device_types", device_types, count=m),
        duration=ticks,
        feasible=allowed,
        resident=each_task("resident", resident),
        output=each_task("output", output if layout is None else layout.counted),
        scratch=each_task("scratch", scratch),
        release=releases,
        deadline=deadlines,
        capacity=capacities,
        edge_source=source,
        edge_target=target,
        payload=edge_payload,
        shared=edge_shared,
        power_num=powers[0],
        power_den=powers[1],
        due=dues,
        due_weight=np.where(dues == UNLIMITED, 1, each_task("due_weight", due_weight, 1)),
        price=prices,
        relocation=moves,
        runs_before_next_change=Fraction(runs_before_next_change),
        group=by_first_appearance(groups),
        separation=np.unique(np.sort(apart, axis=1), axis=0),
        forward=forwards,
        objective=goal,
        contention=contention,
        memory_model=memory_model,
        alignment=None if alignment is None else checked_whole("alignment", alignment, 1, LARGEST_ALIGNMENT),
        limits=most,
        consolidate=checked_share("consolidate", consolidate),
        rounding=rounding,
        efficiency=efficiency,
        notes=notes,
        provenance=dict(provenance or {}),
        out_start=out_start,
        in_start=in_start,
        in_edge=in_edge,
        order=order,
        device_class=device_classes(columns, links),
        **link_arrays,
        **rules,
    )
    freeze(*(getattr(problem, field.name) for field in fields(problem)))
    return problem


def _checked_limits(limits: Iterable[tuple[Metric, int]]) -> tuple[tuple[Metric, int], ...]:
    """The limits of metrics, checked: known metrics of one run, each once, with whole numbers."""
    found: dict[Metric, int] = {}
    for metric, most in limits:
        choice("limits: the metric", metric, [known for known in get_args(Metric) if known != "period"])
        if metric in found or not is_whole(most) or most < 0:
            expected = "one limit" if metric in found else "a whole number that is not negative"
            raise UsageError(f"limits: {metric} has {most!r}; expected {expected}")
        found[metric] = int(most)
    return tuple(found.items())


def _check_pipeline(contention: str, memory_model: str, release: Int, deadline: Int) -> None:
    """Reject what contradicts a pipeline, which has separate rules for ports, memory and times."""
    if contention != "none":
        raise UsageError(f"contention is {contention}; expected none with period, which counts the ports itself")
    if memory_model != "sum":
        raise UsageError(f"memory_model is {memory_model}; expected sum with period")
    for name, wrong in (("release", release != 0), ("deadline", deadline != UNLIMITED)):
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            raise UsageError(f"{name}[{at}] is stated; expected no {name} times with period: runs follow each other")


def _tier_capacities(tiers: Tiers, stated: Int | None, devices: Sequence[str], memory_model: str) -> Int:
    """(m,) the capacity of all tiers of each device; rejects what contradicts memory tiers."""
    if stated is not None and (wrong := np.flatnonzero(tiers.capacity != stated)).size:
        d = int(wrong[0])
        total = f"that of all tiers of {visible(devices[d])}, {tiers.capacity[d]}"
        raise UsageError(f"capacity[{d}] is {stated[d]}; expected {total}")
    if memory_model != "sum":
        raise UsageError(f"memory_model is {memory_model}; expected sum with memory tiers")
    return tiers.capacity.copy()


def _lowest(what: str, num: Int, den: Int) -> tuple[Int, Int]:
    """New arrays of the ratios in lowest terms.

    Rejects a ratio whose numerator times denominator is not below 2^62; see `ratio_ceil`.
    """
    wrong = np.argwhere(num > (2**62 - 1) // den)
    if len(wrong):
        place = tuple(map(int, wrong[0]))
        at = ", ".join(map(str, place))
        raise UsageError(
            f"{what}_num[{at}] is {num[place]} and {what}_den[{at}] is {den[place]}; expected a product below 2^62: "
            "rounded to fewer digits"
        )
    num, den = num.copy(), den.copy()
    some = np.nonzero((num != 1) & (den != 1))  # few: np.gcd is slow
    common = np.gcd(num[some], den[some])
    num[some] //= common
    den[some] //= common
    return num, den


_DERIVED = {"edge_source", "edge_target", "out_start", "in_start", "in_edge", "order", "device_class"}


def with_changes(problem: Problem, **changes: Any) -> Problem:
    """The problem with some arguments of `build_problem` replaced; derived arrays are recomputed.

    An objective without `period` removes the pipeline.
    """
    if "objective" in changes and "period" not in changes["objective"].metrics:
        changes = {"pipeline": None, **changes}
    given = {field.name: getattr(problem, field.name) for field in fields(problem) if field.name not in _DERIVED}
    edges = np.column_stack((problem.edge_source, problem.edge_target))
    return build_problem(**{**given, "edges": edges, **changes})


def simplest(problem: Problem) -> Problem:
    """The problem with the simplest objective: the makespan, or the period of a pipeline."""
    metric: Metric = "makespan" if problem.pipeline is None else "period"
    return replace(problem, objective=Objective(((Term(metric),),)))


def by_first_appearance(labels: NDArray[np.integer]) -> Int:
    """The labels renumbered 0, 1, ... in order of first appearance."""
    if len(labels) == 0:
        return np.empty(0, dtype=np.int64)
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


def _equal_columns(m: int, tables: Sequence[NDArray[Any]]) -> list[int]:
    """For each of m devices, the first one with the same column in every table (n, m)."""
    like, itself = np.zeros(m, dtype=np.int64), np.arange(m)
    for table in tables:
        rows = max(_BLOCK // max(m, 1), 1)
        for begin in range(0, len(table), rows):
            if np.array_equal(like, itself):
                break
            part = table[begin : begin + rows]
            if not np.array_equal(part, np.take(part, like, axis=1)):
                seen: dict[tuple[int, bytes], int] = {}
                columns = enumerate(np.ascontiguousarray(part.T))
                like = np.array([seen.setdefault((int(like[d]), column.tobytes()), d) for d, column in columns])
    return [int(d) for d in like]


def device_classes(columns: Sequence[tuple[object, ...]], links: Int) -> Int:
    """(m,) device classes, numbered in order of first appearance.

    Two devices are in one class if swapping them changes nothing: equal columns, equal links to and from every third
    device, and equal links to each other. The relation is transitive: comparing with one member of a class is enough.
    """
    classes = np.empty(len(columns), dtype=np.int64)
    # Devices of one class have the same multiset of links, so that few pairs remain to be compared.
    mixed = (links * (2 * np.arange(links.shape[-1]) + 3) ** 13).sum(axis=-1)
    np.fill_diagonal(mixed, 0)
    sent, received = np.sort(mixed, axis=1), np.sort(mixed, axis=0)
    leaders: dict[object, list[int]] = {}
    count = 0
    for d, column in enumerate(columns):
        alike = leaders.setdefault((column, sent[d].tobytes(), received[:, d].tobytes()), [])
        leader = next((leader for leader in alike if _swappable(links, d, leader)), None)
        if leader is None:
            classes[d] = count
            count += 1
            alike.append(d)
        else:
            classes[d] = classes[leader]
    return classes


def _swappable(links: Int, a: int, b: int) -> bool:
    others = np.arange(len(links))
    others = others[(others != a) & (others != b)]
    return (
        np.array_equal(links[a, others], links[b, others])
        and np.array_equal(links[others, a], links[others, b])
        and np.array_equal(links[a, b], links[b, a])
    )
