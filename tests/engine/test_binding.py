"""Wrong arguments of the engine: a clear error that names the argument, never a crash."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from constrained_problems import constrained
from pipelines import PERIOD, unlike_pipeline
from placeopt_solvers._constructive.groups import Groups, grouped, without_memory
from placeopt_solvers._constructive.live_memory import own_tasks
from placeopt_solvers._local_search.instance import make_instance
from placeopt_solvers.pipelines._chains.chain import Chain, chain_of, path_of
from placeopt_solvers.pipelines._search.division import Line, Positions, lines
from placeopt_solvers.pipelines._search.units import finest_units
from placeopt_solvers.pipelines._shared.contraction import contracted
from placeopt_solvers.pipelines._shared.ideals import costs_of, sets_of

import placeopt as po
from placeopt import engine
from placeopt.bounding.sct.core import core_of
from placeopt.bounding.sct.game import game_of, initial_state, sides_of
from placeopt.bounding.sct.program import program_of
from placeopt.learning.graphs.gpnet import GpNet
from placeopt.model.arrays import Int
from placeopt.model.native import native
from placeopt.model.problem import Problem
from placeopt.serving.problem import build_serving

CORE = Path(engine.__file__).parent
OF_PROBLEM = (
    "duration", "release", "capacity", "edge_source", "edge_target", "payload", "shared", "group", "out_start",
    "in_start", "in_edge", "order", "latency", "byte_ticks_num", "byte_ticks_den",
)  # fmt: skip
OF_GROUPS = ("memory", "feasible", "apart_start", "apart", "home", "room")
OF_LIVE = ("row", "first", "last", "output", "scratch", "peak")
INDICES = ("edge_source", "edge_target", "group", "in_edge", "order", "apart", "home", "first", "last")


def wrong_arrays(right: np.ndarray) -> list[Any]:
    """Arrays and other values that are not what is expected."""
    wider = np.zeros((*right.shape, 2), dtype=right.dtype)
    flags = right.dtype == np.bool_
    found = [
        right.tolist(),
        "12",
        3,
        right.astype(np.float32 if flags else np.int32),
        right.astype(object),
        right[None],
        right.dtype.type(0),
        wider[..., 0],  # strides
        np.broadcast_to(right.dtype.type(0), (2**40,)),
        right.astype(np.complex128),
        np.zeros(right.shape, dtype="datetime64[s]"),
    ]
    if len(right) > 1:
        found.append(right[::-1])
    if not flags:
        found.append(right.astype(right.dtype.newbyteorder()))
        found.append(np.frombuffer(bytes(right.nbytes + 1), np.uint8)[1:].view(right.dtype).reshape(right.shape))
    return found


def wrong_entries(name: str, right: np.ndarray) -> list[np.ndarray]:
    """Arrays of the right type and shape with entries that are not valid."""
    found = []
    for value in (-2, -(2**63), *((2**63 - 1, len(right) + 99) if name in INDICES else ())):
        changed = right.copy()
        changed.flat[right.size // 2] = value
        found.append(changed)
    return found


class Changed:
    """An object with one attribute replaced."""

    def __init__(self, of: object, **changes: object) -> None:
        self.of, self.changes = of, changes

    def __getattr__(self, name: str) -> object:
        return self.changes[name] if name in self.changes else getattr(self.of, name)


def peaked() -> tuple[Problem, Groups]:
    """A problem and its groups by live memory."""
    problem = constrained(3, memory_model="peak", contention="port")
    return problem, replace(grouped(problem), live=own_tasks(problem).live(problem.n_groups, problem.order))


@pytest.mark.parametrize("name", OF_PROBLEM)
def test_arrays_of_a_problem(name: str) -> None:
    problem = constrained(2)
    right = getattr(problem, name)
    for wrong in wrong_arrays(right):
        with pytest.raises(po.UsageError, match=r"\w+: .*expected"):
            engine.Problem(Changed(problem, **{name: wrong}))
    if right.dtype == np.bool_:
        with pytest.raises(po.UsageError, match="entry 0 is neither False nor True"):
            engine.Problem(Changed(problem, **{name: np.full(right.shape, 2, dtype=np.uint8).view(np.bool_)}))
        return
    for wrong in wrong_entries(name, right):
        with pytest.raises(po.UsageError, match=r": entry \d+ is -?\d+; expected"):
            engine.Problem(Changed(problem, **{name: wrong}))


@pytest.mark.parametrize("name", [*OF_GROUPS, *OF_LIVE])
def test_arrays_of_groups(name: str) -> None:
    problem, groups = peaked()

    def changed(wrong: object) -> engine.Timeline:
        if name in OF_GROUPS:
            return engine.Timeline(native(problem), Changed(groups, **{name: wrong}))
        return engine.Timeline(native(problem), Changed(groups, live=Changed(groups.live, **{name: wrong})))

    right = getattr(groups if name in OF_GROUPS else groups.live, name)
    for wrong in wrong_arrays(right):
        with pytest.raises(po.UsageError, match=r"[\w.]+: .*expected"):
            changed(wrong)
    if right.dtype != np.bool_ and name != "room":  # groups may overfill a device
        for wrong in wrong_entries(name, right):
            with pytest.raises(po.UsageError, match=r"[\w.]+: entry \d+ is -?\d+; expected"):
                changed(wrong)


@pytest.mark.parametrize("leaves", [0, -8, 3, 2**61, 2**62])
def test_leaves_of_live_memory(leaves: int) -> None:
    problem, groups = peaked()
    with pytest.raises(po.UsageError, match=f"leaves: {leaves}; expected a power of two"):
        engine.Timeline(native(problem), Changed(groups, live=Changed(groups.live, leaves=leaves)))


def test_read_only_arrays_are_accepted() -> None:
    problem = constrained(2)
    assert all(not getattr(problem, name).flags.writeable for name in ("duration", "order"))
    line = engine.Timeline(native(problem), grouped(problem))
    assert engine.list_tasks(line, problem.order, 0, engine.Stop()) in range(-1, 24)
    with pytest.raises(ValueError, match="read-only"):
        line.start[0] = 1


def test_sequences() -> None:
    problem = constrained(2)
    calls = {
        "insert_tasks": lambda line, tasks: engine.insert_tasks(
            line, tasks, np.zeros(24, np.int64), np.zeros((1, 3), np.int64), engine.Stop()
        ),
        "list_tasks": lambda line, tasks: engine.list_tasks(line, tasks, 0, engine.Stop()),
        "fill_devices": lambda line, tasks: engine.fill_devices(
            line, tasks, np.zeros(problem.n_groups, np.int64), np.zeros(3, np.int64), engine.Stop()
        ),
        "look_ahead": lambda line, tasks: engine.look_ahead(line, tasks, engine.Stop()),
    }
    for call in calls.values():
        for wrong in (problem.order[::-1].copy(), problem.order.repeat(2), problem.order + 1, problem.order - 1):
            with pytest.raises(po.UsageError, match=r"sequence: entry \d+ is -?\d+; expected"):
                call(engine.Timeline(native(problem), grouped(problem)), wrong)
        for wrong in wrong_arrays(problem.order):
            with pytest.raises(po.UsageError, match=r"sequence: .*expected"):
                call(engine.Timeline(native(problem), grouped(problem)), wrong)


def test_other_arguments() -> None:
    problem, stop = constrained(2), engine.Stop()
    line = engine.Timeline(native(problem), grouped(problem))
    zeros = np.zeros(24, np.int64)
    with pytest.raises(po.UsageError, match="row: entry 0 is 1; expected at least 0 and at most 0"):
        engine.insert_tasks(line, problem.order, zeros + 1, np.zeros((1, 3), np.int64), stop)
    with pytest.raises(po.UsageError, match="ticks: entry 0 is -1; expected"):
        engine.insert_tasks(line, problem.order, zeros, np.full((1, 3), -1), stop)
    with pytest.raises(po.UsageError, match="ticks: an array of shape"):
        engine.insert_tasks(line, problem.order, zeros, np.zeros((1, 4), np.int64), stop)
    wrong_bounds = {(0, 24): "batch 0 has task", (): "no entry", (0, 30): "24", (3, 24): "0", (0, 9, 4, 24): "at least"}
    for bounds, text in wrong_bounds.items():
        with pytest.raises(po.UsageError, match=f"bounds: .*{text}"):
            engine.balance_batches(line, problem.order, np.array(bounds, dtype=np.int64), stop)
    recording = engine.Timeline(native(problem), grouped(problem), record=True)
    with pytest.raises(po.UsageError, match="timeline: records placements"):
        engine.balance_batches(recording, problem.order, np.arange(25), stop)
    with pytest.raises(po.UsageError, match="measure: 4; expected 0 to 3"):
        engine.list_tasks(line, problem.order, 4, stop)
    with pytest.raises(po.UsageError, match="first: 24; expected a task"):
        engine.longest_path(native(problem), 24, np.zeros(problem.n_edges))
    with pytest.raises(po.UsageError, match="preference: expected each task once"):
        engine.highest_first(native(problem), zeros)
    with pytest.raises(po.UsageError, match="transfer: entry 0 is -1"):
        engine.optimistic_costs(native(problem), problem.feasible, np.full(problem.n_edges, -1), stop)
    with pytest.raises(po.UsageError, match="contention: duplex; expected none, port or half_duplex"):
        engine.Problem(Changed(problem, contention="duplex"))
    none, flow = np.zeros(2, np.int64), np.array([1.0, np.nan])
    with pytest.raises(po.UsageError, match="flow: entry 1 is nan; expected at least 0"):
        engine.split_flow(np.array([0, 2, 2]), none + 1, flow, 1)
    with pytest.raises(po.UsageError, match="target: entry 0 is 0; expected a task after 0"):
        engine.split_flow(np.array([0, 2, 2]), none, flow, 1)
    with pytest.raises(po.UsageError, match=r"whole: 9007199254740993; expected 0 to 2\^53"):
        engine.split_flow(np.array([0, 2, 2]), none + 1, flow, 2**53 + 1)
    with pytest.raises(po.UsageError, match="board: expected a tuple of 9 arrays"):
        engine.play_rounds((), (), 1, 1, stop)
    for wrong in (None, 3, "heft", problem):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            engine.list_tasks(wrong, problem.order, 0, stop)  # type: ignore[arg-type]
        with pytest.raises((RuntimeError, TypeError), match=r"cast|incompatible"):
            engine.Timeline(wrong, grouped(problem))  # type: ignore[arg-type]


def layers() -> Problem:
    """A chain of three layers for two classes of one device."""
    return po.build_problem(
        task_names="abc", device_names="de", duration=[[2, 1], [3, 3], [4, 4]], edges=[(0, 1), (1, 2)],
        payload=[1, 1], byte_ticks_num=[[1] * 2] * 2, objective=PERIOD, pipeline={"segments": 1, "replicas": 2},
    )  # fmt: skip


def chain_of_layers() -> Chain:
    problem = layers()
    nodes = contracted(problem)
    order = path_of(problem, nodes)
    assert order is not None
    return chain_of(problem, nodes, order)


def calls() -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Functions of the engine with right arguments by name; those that take a timeline get a new one."""
    problem, stop = constrained(2), engine.Stop()
    n, m, e, g = problem.n_tasks, problem.n_devices, problem.n_edges, problem.n_groups
    live, groups = peaked()
    zeros, edges, own = np.zeros(n, np.int64), np.zeros(e, np.int64), np.arange(g)
    flags, ticks, order = np.zeros(n, np.bool_), np.zeros((n, m), np.int64), np.arange(n)
    unions = engine.Unions(problem.group_feasible(), np.zeros(g, np.int64), problem.capacity, own[:0], own[:0])
    instance = make_instance(problem)
    sequence, home = sequence_and_home(problem)
    passes = np.zeros((n, m), np.int64)
    simulation = engine.Simulation(native(problem), problem.memory)
    sampler = engine.Sampler(native(problem), grouped(problem), problem.deadline, problem.memory, 0)
    divider, in_turn = engine.ChainDivider(chain_of_layers(), False), finest_units(layers(), None)
    divider.begin(9, np.zeros(2, np.int64), stop)
    net = GpNet(problem, problem.feasible.argmax(axis=1))
    free = replace(problem, contention="none", tiers=None)

    def line(of: Problem = problem, insertion: bool = False) -> engine.Timeline:
        return engine.Timeline(native(of), grouped(of), insertion)

    def peak() -> engine.Timeline:
        return engine.Timeline(native(live), groups)

    given = native(problem)
    links = problem.latency, problem.byte_ticks_num, problem.byte_ticks_den, np.ones((m, m), np.bool_)
    both = np.zeros(e, np.bool_)
    game = game_of(core_of(program_of(problem))[0])
    state, side = initial_state(game), sides_of(game.core)[0]
    pipeline = unlike_pipeline(128)  # all its arrays have entries
    nodes = contracted(pipeline)
    costs, sets = costs_of(pipeline, nodes), sets_of(nodes, 1000, lambda: False)
    assert sets is not None
    units = finest_units(pipeline, nodes)
    places = {"place": np.zeros(len(units.fixed), np.int64)}
    places |= {name: np.arange(pipeline.n_devices) for name in ("home", "leader")}
    places["again"] = np.zeros(pipeline.n_devices, np.int64)
    serving = build_serving(layers=2, node_names=list("abcd"), kind=[0, 1, 1, 0], rate=[[[9, 4]], [[7, 3]]])
    return {
        "place_pairs": (
            lambda **a: engine.place_pairs(line(), *a.values(), False, False, stop),
            {"sequence": order, "work": ticks},
        ),
        "place_favourites": (
            lambda **a: engine.place_favourites(line(), *a.values(), True, False, stop),
            {"sequence": order, "work": ticks, "parent": zeros - 1},
        ),
        "place_by_clock": (
            lambda **a: engine.place_by_clock(line(), *a.values(), False, stop),
            {"sequence": order, "child": zeros - 1},
        ),
        "place_by_level": (
            lambda **a: engine.place_by_level(line(), *a.values(), stop),
            {"median": zeros, "level": zeros, "heaviest": zeros - 1},
        ),
        "place_on_two": (
            lambda **a: engine.place_on_two(line(), *a.values(), stop),
            {"sequence": problem.order, "detour": ticks},
        ),
        "place_by_type": (
            lambda **a: engine.place_by_type(line(), *a.values(), stop),
            {"sequence": order, "detour": ticks},
        ),
        "divide_sets": (lambda **a: engine.divide_sets(Changed(sets, **a), costs, 2**62, stop), arrays_of(sets)),
        "costs of divide_sets": (
            lambda **a: engine.divide_sets(sets, Changed(costs, **a), 2**62, stop),
            arrays_of(costs),
        ),
        "StageSearch": (lambda **a: engine.StageSearch(units, *a.values(), 0, 4, 1, stop), places),
        "units of StageSearch": (
            lambda **a: engine.StageSearch(Changed(units, **a), *places.values(), 0, 4, 1, stop),
            arrays_of(units),
        ),
        "arrange_stages": (
            lambda **a: engine.arrange_stages(serving, *a.values(), 1, 9, 0, stop),
            {"site": np.zeros(4, np.int64), "begin": np.arange(4) // 2, "end": np.arange(4) // 2 + 1},
        ),
        "serving of arrange_stages": (
            lambda **a: engine.arrange_stages(Changed(serving, **a), *np.zeros((3, 4), np.int64), 1, 9, 0, stop),
            {
                name: getattr(serving, name)
                for name in ("kind", "rate", "link", "prefill_link", "entry", "prefill_entry", "exit")
            },
        ),
        "draw_pairs": (lambda **a: engine.draw_pairs(line(), *a.values(), 0.5, stop), {"chance": np.zeros(n)}),
        "adjust_in_order": (
            lambda **a: engine.adjust_in_order(line(), *a.values(), True, stop),
            {"sequence": problem.order},
        ),
        "fill_in_order": (
            lambda **a: engine.fill_in_order(line(), *a.values(), True, stop),
            {"sequence": problem.order},
        ),
        "pack_groups": (
            lambda **a: engine.pack_groups(peak(), *a.values(), True, stop),
            {"fixed": groups.home, "turn": np.arange(len(groups.home))},
        ),
        "append_with_waits": (
            lambda **a: engine.append_with_waits(
                engine.Timeline(given, without_memory(problem), False), *a.values(), stop
            ),
            {"output": zeros, "scratch": zeros, "room": problem.capacity, "device": zeros, "sequence": problem.order},
        ),
        "dominant_sequence_clusters": (
            lambda **a: engine.dominant_sequence_clusters(given, *a.values(), stop),
            {"work": zeros, "transfer": edges, "blevel": zeros},
        ),
        "linear_clusters": (
            lambda **a: engine.linear_clusters(given, *a.values(), stop),
            {"work": zeros, "transfer": edges},
        ),
        "map_clusters": (
            lambda **a: engine.map_clusters(line(), *a.values(), False, stop),
            {
                "members": own,
                "start": np.arange(g + 1),
                "cluster": own,
                "turn": own,
                "work": np.zeros((g, m), np.int64),
            },
        ),
        "keep_parts": (
            lambda **a: engine.keep_parts(line(), *a.values(), stop),
            {
                "sequence": own,
                "wanted": own * 0,
                "start": 2 * np.minimum(np.arange(g + 1), 1),
                "neighbours": own[:2],
                "weight": own[:2],
                "work": np.zeros((g, m), np.int64),
            },
        ),
        "greedy_matching": (
            lambda **a: engine.greedy_matching(*a.values(), n),
            {"source": problem.edge_source, "target": problem.edge_target},
        ),
        "Passes": (
            lambda **a: engine.Passes(native(free), grouped(free), *a.values(), 9, 1),
            {"head": passes, "behind": passes, "device": zeros, "tail": zeros},
        ),
        "earliest_starts": (
            lambda **a: engine.earliest_starts(given, *a.values()),
            {"sequence": problem.order, "device": zeros},
        ),
        "tails": (lambda **a: engine.tails(given, *a.values()), {"sequence": problem.order, "device": zeros}),
        "latest_starts": (
            lambda **a: engine.latest_starts(given, *a.values()),
            {"sequence": problem.order, "device": zeros, "deadline": zeros},
        ),
        "topological_order": (
            lambda **a: engine.topological_order(*a.values()),
            {"start": problem.out_start, "target": problem.edge_target},
        ),
        "siblings": (
            lambda **a: engine.siblings(*a.values()),
            {"start": problem.out_start, "target": problem.edge_target},
        ),
        "last_ready_first": (lambda **a: engine.last_ready_first(given, *a.values()), {"preference": order}),
        "raise_paths": (
            lambda order, start, target, work, transfer, before: engine.raise_paths(
                order, start, target, work, transfer, before
            ),
            {
                "order": problem.order,
                "start": problem.out_start,
                "target": problem.edge_target,
                "work": zeros,
                "transfer": edges,
                "before": zeros,
            },
        ),
        "components": (
            lambda **a: engine.components(*a.values(), n),
            {"left": problem.edge_source, "right": problem.edge_target},
        ),
        "latest_ends": (lambda **a: engine.latest_ends(given, *a.values()), {"least": zeros, "end": zeros}),
        "not_implied": (
            lambda **a: engine.not_implied(given, *a.values(), True, 9, stop),
            {"level": zeros, "required": edges, "covers": edges, "removable": both},
        ),
        "join_producers": (
            lambda **a: engine.join_producers(given, *a.values()),
            {"candidate": flags, "free": flags, "least": zeros, "release": zeros, "deadline": zeros, "sharing": flags},
        ),
        "join_consumers": (
            lambda **a: engine.join_consumers(given, *a.values()),
            {"candidate": flags, "free": flags, "least": zeros, "release": zeros, "deadline": zeros},
        ),
        "join_neighbours": (
            lambda **a: engine.join_neighbours(given, *a.values(), True),
            {"candidate": flags, "least": zeros, "deadline": zeros, "allowed": problem.group_feasible()},
        ),
        "Unions": (
            lambda **a: engine.Unions(*a.values()),
            {
                "feasible": problem.group_feasible(),
                "memory": np.zeros(g, np.int64),
                "capacity": problem.capacity,
                "left": own,
                "right": own,
            },
        ),
        "unite": (lambda **a: unions.unite(*a.values()), {"left": own, "right": own}),
        "unite_clusters": (
            lambda **a: unions.unite_clusters(*a.values()),
            {"order": order, "group": problem.group, "first": flags},
        ),
        "least_cuts": (
            lambda **a: engine.least_cuts(*a.values(), stop),
            {
                "start": 2 * np.minimum(np.arange(n + 1), 1),
                "source": own[:2],
                "weight": own[:2],
                "low": np.arange(n + 1),
            },
        ),
        "edges of heads": (
            lambda **a: engine.earliest_heads(
                tuple(a.values()),
                links,
                (
                    problem.capacity,
                    problem.duration,
                    problem.duration,
                    np.ones((n, m), np.bool_),
                    problem.group,
                    np.zeros(g, np.int64),
                    problem.payload,
                    both,
                    both,
                ),
                9,
                9,
                np.zeros(n, np.int64),
                stop,
            ),
            {
                "order": problem.order,
                "start": problem.in_start,
                "producer": problem.edge_source,
            },
        ),
        "best_window": (
            lambda **a: engine.best_window(*a.values(), 1),
            {"by_tail": order, "rank": order, "head": zeros, "tail": zeros, "weight": zeros},
        ),
        "best_spread": (
            lambda **a: engine.best_spread(*a.values(), 0, 1),
            {"order": order, "near": zeros, "duration": zeros, "far": zeros},
        ),
        "Chronological": (
            lambda **a: engine.Chronological(2, *a.values(), 9).search(9, 99, stop),
            {"duration": zeros, "start": problem.out_start, "target": problem.edge_target, "transfer": edges},
        ),
        "Propagation": (
            lambda **a: engine.Propagation(given, *a.values()).refutes(9, 1, 99, 99, 99, stop),
            {
                "head": ticks,
                "tail": ticks,
                "duration": ticks,
                "move": np.zeros((e, m, m), np.int64),
                "capacity": problem.capacity,
                "memory": zeros,
                "separation": order.reshape(-1, 2),
            },
        ),
        "simulate": (lambda **a: simulation.makespan(*a.values(), stop), {"device": problem.feasible.argmax(axis=1)}),
        "set_ticks": (lambda **a: simulation.set_ticks(*a.values()), {"task_ticks": zeros, "edge_ticks": edges}),
        "set_rank": (lambda **a: simulation.set_rank(*a.values()), {"rank": zeros}),
        "replay": (
            lambda **a: simulation.replay(*a.values(), stop),
            {"nodes": problem.order, "representative": edges - 1},
        ),
        "raise_keys": (
            lambda **a: engine.raise_keys(given, *a.values()),
            {
                "representative": edges - 1,
                "task_start": zeros,
                "task_end": zeros,
                "move_start": edges,
                "move_end": edges,
            },
        ),
        "critical_path": (
            lambda **a: engine.critical_path(given, *a.values()),
            {"start": zeros, "end": zeros, "edge_ticks": edges, "before": zeros - 1},
        ),
        "execute_runs": (
            lambda **a: engine.execute_runs(*a.values(), False, 3, 2, stop),
            {
                "sequence": order,
                "lap": zeros,
                "ticks": zeros,
                "device": zeros,
                "tracks": np.zeros((n, 2), np.int64),
                "in_start": np.minimum(np.arange(n + 1), 2),
                "before": order[:2],
                "lag": order[:2],
                "member_start": np.arange(m + 1),
                "member": np.arange(m),
            },
        ),
        "Sampler": (
            lambda **a: engine.Sampler(given, grouped(problem), *a.values(), 0),
            {"deadline": problem.deadline, "memory": problem.memory},
        ),
        "start_from": (
            lambda **a: sampler.start_from(*a.values(), 3, stop),
            {"home": home, "room": problem.capacity},
        ),
        "GpNet": (
            lambda **a: engine.GpNet(given, *a.values()),
            {"first": net.first, "device": net.device, "block": net.block, "pivot": net.pivot.copy()},
        ),
        "insertion": (
            lambda **a: engine.GpNet(given, net.first, net.device, net.block, net.pivot).insertion(*a.values(), stop),
            {
                "potential": np.zeros(net.n_nodes),
                "start": zeros,
                "end": zeros,
                "head": np.zeros(m, np.int64),
                "following": zeros,
            },
        ),
        "pass_messages": (
            lambda node, node_bounds, edge, edge_bounds, sender, receiver, data, message, update, start: (
                engine.pass_messages(
                    node,
                    node_bounds,
                    edge,
                    edge_bounds,
                    sender,
                    receiver,
                    data,
                    (message, np.zeros(3), update, np.zeros(2)),
                    start,
                )
            ),
            {
                "node": order,
                "node_bounds": n * np.minimum(np.arange(3), 1),
                "edge": np.arange(e),
                "edge_bounds": e * np.minimum(np.arange(3), 1),
                "sender": problem.edge_source,
                "receiver": problem.edge_target,
                "data": np.zeros((e, 1)),
                "message": np.zeros((3, 3)),
                "update": np.zeros((2, 3)),
                "start": np.zeros((n, 2)),
            },
        ),
        "begin": (lambda **a: divider.begin(9, *a.values(), stop), {"price": np.zeros(2, np.int64)}),
        "rooms": (lambda **a: divider.rooms(*a.values(), stop), {"weight": np.arange(4)}),
        "divide_order": (
            lambda device, then, used, **a: engine.divide_order(
                in_turn, Line(device, then, used), Positions(**a), 99, stop
            ),
            {
                **next(iter(lines(layers())))[0]._asdict(),
                "order": np.arange(3),
                "rank": np.arange(3),
                "part": np.arange(3),
                "cut": np.arange(4),
            },
        ),
        "load a window": (
            lambda **a: engine.WindowMoves(instance, 0).load(*a.values()),
            {"order": sequence, "device": zeros},
        ),
        "reserve devices": (
            lambda **a: engine.WindowMoves(instance, 0).reserve(0, *a.values()),
            {"free": np.zeros(problem.n_devices, dtype=np.int64)},
        ),
        "load critical paths": (
            lambda **a: engine.CriticalPaths(instance, 0).load(*a.values()),
            {"order": sequence, "device": zeros},
        ),
        "edge_paths": (
            lambda **a: engine.edge_paths(*a.values(), n),
            {"source": problem.edge_source, "target": problem.edge_target, "ticks": np.zeros(e)},
        ),
        "choose_rivals": (
            lambda **a: engine.choose_rivals(*a.values()),
            {"start": problem.out_start, "edge": np.arange(e), "ticks": edges, "delay": edges},
        ),
        "raise_favourites": (
            lambda **a: engine.raise_favourites(*a.values()),
            {
                "order": np.arange(e),
                "source": problem.edge_source,
                "target": problem.edge_target,
                "out_rival": both,
                "in_rival": both,
                "room": np.ones(n),
                "space": np.ones(n),
                "y": np.zeros(e),
            },
        ),
        "board of a game": (
            lambda **a: engine.play_rounds(tuple(a.values()), state, 1, 2, stop),
            game.board._asdict(),
        ),
        "state of a game": (
            lambda **a: engine.play_rounds(game.board, tuple(a.values()), 1, 2, stop),
            state._asdict(),
        ),
        "split_flow": (
            lambda **a: engine.split_flow(*a.values(), 1 << 52),
            {"start": game.board.start, "target": game.board.target, "flow": state.choice},
        ),
        "fill_shares": (
            lambda **a: engine.fill_shares(*a.values(), stop),
            {
                "start": side.start,
                "target": side.target,
                "length": side.length,
                "fixed": side.fixed,
                "hidden": side.hidden,
                "weight": side.weight,
                "rival": side.rival,
                "limit": np.ones(len(side.edge)),
            },
        ),
        "grow_trees": (
            lambda **a: engine.grow_trees(*a.values(), 3, 9, stop),
            {
                "start": np.minimum(np.arange(g + 1), 2),
                "neighbour": own[1::-1].copy(),
                "pair": own[:2] * 0,
                "ends": np.zeros(2),
                "appeal": np.zeros(2),
                "outside": np.zeros(g),
                "memory": own * 2,
            },
        ),
        "hold_most": (
            lambda **a: engine.hold_most(*a.values(), 9, 2, stop),
            {
                "order": own.copy(),
                "amount": own.copy(),
                "worth": own.copy(),
                "excluded": np.zeros(g, dtype=np.bool_),
                "producer": own[:2] * 0,
                "start": own[:3].copy(),
                "consumer": own[1:3].copy(),
                "ticks": own[1:3].copy(),
                "gain": own[1:3].copy(),
                "copies": own[1:3].copy(),
            },
        ),
        "shortest_detours": (
            lambda **a: engine.shortest_detours(*a.values(), 9, stop),
            {
                "start": np.minimum(np.arange(g + 1), 2),
                "neighbour": own[1::-1].copy(),
                "pair": own[:2] * 0,
                "low": own[:2],
                "high": own[:2],
                "moved": np.ones(2),
                "pairs": own[:2],
                "limit": np.ones(2),
            },
        ),
        "load": (lambda **a: engine.LocalSearch(instance, 0).load(*a.values()), {"order": sequence, "home": home}),
        "walk": (
            lambda **a: engine.LocalSearch(instance, 0).walk(*a.values(), 0, 0, 0, 0.0, 0.0, 0.0, stop),
            {"shares": np.array([10, 20, 30, 40, 50, 100])},
        ),
    }


def arrays_of(struct: Any) -> dict[str, np.ndarray]:
    """The arrays of a NamedTuple by name."""
    return {name: value for name, value in struct._asdict().items() if isinstance(value, np.ndarray)}


def sequence_and_home(problem: Problem) -> tuple[Int, Int]:
    """A topological order, and homes that feasibility allows."""
    return problem.order, problem.group_feasible().argmax(axis=1)


RANGED = (
    "sequence", "parent", "child", "heaviest", "turn", "device", "members", "wanted", "source", "target",
    "order", "preference", "left", "right", "by_tail", "rank", "edge", "producer", "home", "shares", "start", "work",
    "detour", "group", "low", "move", "separation", "nodes", "representative", "before", "sender", "receiver",
    "node", "head", "following",
    "detour", "group", "low", "in_lane", "neighbour", "pair", "high", "pairs",
    "detour", "group", "low", "node", "result", "incident", "consumer", "entering", "apart",
    "detour", "group", "low", "node", "result", "incident", "consumer", "entering", "apart", "place", "leader", "again",
    "before", "after", "touched", "price", "cut", "part", "then", "used",
)  # fmt: skip


UNRANGED = {
    ("raise_paths", "work"), ("raise_paths", "before"), ("best_window", "head"), ("set_rank", "rank"),
    ("critical_path", "start"), ("insertion", "start"),
}  # fmt: skip
"""Ticks, which may have any value."""


@pytest.mark.parametrize("name", list(calls()))
def test_arguments_of_functions(name: str) -> None:
    call, given = calls()[name]
    call(**given)
    for argument, right in given.items():
        for wrong in wrong_arrays(right):
            with pytest.raises(po.UsageError, match=rf"{argument}: .*expected"):
                call(**given | {argument: wrong})
        ranged = argument in RANGED and (name, argument) not in UNRANGED
        if ranged and right.size and right.dtype == np.int64:
            for value in (-(2**63), -7):
                changed = right.copy()
                changed.flat[right.size // 2] = value
                with pytest.raises(po.UsageError, match=rf"{argument}: entry \d+ is"):
                    call(**given | {argument: changed})


@pytest.mark.parametrize(
    "name",
    [
        "group",
        "member_start",
        "member",
        "source",
        "target",
        "slot",
        "in_start",
        "out_start",
        "apart",
        "kind",
        "duration",
    ],
)
def test_arrays_of_a_local_search(name: str) -> None:
    instance = make_instance(constrained(2))
    right = getattr(instance, name)
    for wrong in wrong_arrays(right):
        with pytest.raises(po.UsageError, match=rf"{name}: .*expected"):
            engine.LocalSearch(instance._replace(**{name: wrong}), 0)
    for value in (-2, -(2**63), *(() if name == "duration" else (2**63 - 1,))):
        changed = right.copy()
        changed.flat[right.size // 2] = value
        with pytest.raises(po.UsageError, match=rf"{name}: entry \d+ is"):
            engine.LocalSearch(instance._replace(**{name: changed}), 0)


OF_CHAIN = (
    "computing", "again", "fixed", "kept", "source", "gradient", "ahead", "behind", "nearest", "down", "up",
    "entering_down", "entering_up", "reach", "link", "binding", "capacity", "size", "mode", "free", "launch",
    "ring_latency", "ring_num", "ring_den",
)  # fmt: skip


@pytest.mark.parametrize("name", OF_CHAIN)
def test_arrays_of_a_chain(name: str) -> None:
    chain = chain_of_layers()
    right = getattr(chain, name)
    for wrong in wrong_arrays(right):
        with pytest.raises(po.UsageError, match=r"\w+: .*expected"):
            engine.ChainDivider(chain._replace(**{name: wrong}), True)
    if right.dtype == np.bool_:
        return
    for value in (-2, -(2**63), *((2**63 - 1,) if name in ("nearest", "reach", "link", "mode") else ())):
        changed = right.copy()
        changed.flat[right.size // 2] = value
        with pytest.raises(po.UsageError, match=rf"{name}: entry \d+ is"):
            engine.ChainDivider(chain._replace(**{name: changed}), True)


def test_divisions_of_a_chain() -> None:
    divider, stop = engine.ChainDivider(chain_of_layers(), False), engine.Stop()
    ones = np.ones(2, dtype=np.int64)
    with pytest.raises(po.UsageError, match="no search has begun"):
        divider.table(stop)
    assert divider.begin(6, ones, stop)
    assert divider.used().sum() == 2
    for stages, complete in (divider.beam(4, stop), divider.table(stop)):
        assert complete
        assert stages[:, :2].tolist() == [[0, 2], [2, 3]]
    with pytest.raises(po.UsageError, match="width: 0; expected"):
        divider.beam(0, stop)
    for wrong in ((2, 1, 1, 0, 1, 0, 0), (0, 3, 1, 0, 1, 0, 0), (0, 1, 0, 0, 1, 0, 0), (0, 1, 1, 1, 1, 0, 0)):
        with pytest.raises(po.UsageError, match=r"\w+: \d; expected"):
            divider.least_load(*wrong)
    stop = engine.Stop(seconds=0)
    with pytest.raises(engine.StoppedError, match="stopped"):
        sum(divider.begin(period, ones, stop) for period in range(10_000))


def test_arrays_outlive_their_owner() -> None:
    problem = constrained(2)
    starts = engine.Timeline(native(problem), grouped(problem)).start
    table = engine.longest_paths(native(problem), np.ones(24), np.ones(problem.n_edges), backwards=True)
    del problem
    assert starts.sum() == 0
    assert table.max() > 0


def test_every_array_is_covered() -> None:
    """A new array of a problem that the engine reads belongs in OF_PROBLEM."""
    source = (CORE / "native" / "bindings.hpp").read_text()
    names = {field.name for field in fields(Problem) if f'"{field.name}"' in source}
    of_groups = {"feasible", "output", "scratch"}
    assert names - of_groups == {
        *OF_PROBLEM,
        "tiers",
        "unavailable",
        "setups",
        "resources",
        "contention",
        "shared_links",
    }


def test_the_stub_is_up_to_date(tmp_path: Path) -> None:
    stub = tmp_path / "_core.pyi"
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "placeopt.engine._core", "-o", str(stub)]
    subprocess.run(command, check=True)
    assert stub.read_text() == (CORE / "_core.pyi").read_text(), (
        "run `python -m nanobind.stubgen -m placeopt.engine._core -o placeopt/engine/_core.pyi`"
    )
