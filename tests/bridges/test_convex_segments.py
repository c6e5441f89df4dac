"""Convex segments, against a brute-force check of cycles and paths."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placeopt as po
from placeopt.model.schedule import sequence
from placeopt.model.segments import Segments, cut_segments

WAYS: list[dict[str, bool]] = [{}, {"keep_order": True}, {"at_transfers": True}]


def graph(edges: list[tuple[int, int]], n: int, m: int = 2) -> po.Problem:
    return po.build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        duration=np.ones((n, m), dtype=np.int64),
        edges=edges,
    )


def quotient(problem: po.Problem, segments: Segments) -> nx.DiGraph:
    """The segments, with an edge between two segments wherever the tasks have one."""
    made = nx.DiGraph()
    made.add_nodes_from(range(len(segments)))
    for a, b in zip(problem.edge_source, problem.edge_target, strict=True):
        if segments.member[a] != segments.member[b]:
            made.add_edge(int(segments.member[a]), int(segments.member[b]))
    return made


@st.composite
def placed(draw: st.DrawFn) -> tuple[po.Problem, np.ndarray]:
    """A random graph whose tasks are not numbered in topological order, and a random placement."""
    n, m = draw(st.integers(0, 12)), draw(st.integers(1, 4))
    names = draw(st.permutations(range(n)))
    possible = [(names[a], names[b]) for a in range(n) for b in range(a + 1, n)]
    edges = draw(st.lists(st.sampled_from(possible), unique=True, max_size=30)) if possible else []
    device = draw(st.lists(st.integers(0, m - 1), min_size=n, max_size=n))
    return graph(edges, n, m), np.array(device, dtype=np.int64)


@settings(max_examples=300, deadline=None)
@given(placed(), st.sampled_from(WAYS), st.booleans())
def test_segments_are_convex_and_form_no_cycle(
    case: tuple[po.Problem, np.ndarray], way: dict[str, bool], valid: bool
) -> None:
    problem, device = case
    schedule = po.simulate(problem, device) if valid else po.Schedule(device, np.arange(len(device))[::-1] % 3)
    segments = cut_segments(problem, schedule, **way)
    assert sorted(segments.order.tolist()) == list(range(problem.n_tasks))
    parts = quotient(problem, segments)
    assert nx.is_directed_acyclic_graph(parts)
    assert all(a < b for a, b in parts.edges), "the order of the segments is topological"
    tasks = nx.DiGraph()
    tasks.add_nodes_from(range(problem.n_tasks))
    tasks.add_edges_from(zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True))
    for k in range(len(segments)):
        inside = segments.tasks(k).tolist()
        assert {int(segments.member[i]) for i in inside} == {k}
        assert {int(device[i]) for i in inside} == {int(segments.device[k])}
        place = {task: p for p, task in enumerate(inside)}
        assert all(place[a] < place[b] for a, b in tasks.subgraph(inside).edges)
        for a in inside:  # every path between two members stays inside
            for b in set(inside) & nx.descendants(tasks, a):
                between = nx.descendants(tasks, a) & nx.ancestors(tasks, b)
                assert between <= set(inside)


@settings(max_examples=200, deadline=None)
@given(placed(), st.sampled_from(WAYS[1:]))
def test_devices_run_their_tasks_in_the_order_of_the_schedule(
    case: tuple[po.Problem, np.ndarray], way: dict[str, bool]
) -> None:
    problem, device = case
    schedule = po.simulate(problem, device)
    segments = cut_segments(problem, schedule, **way)
    parts = quotient(problem, segments)
    for d in range(problem.n_devices):
        own = segments.on_device(d).tolist()
        run = [task for k in own for task in segments.tasks(k).tolist()]
        assert run == [task for task in sequence(problem, schedule).tolist() if device[task] == d]
        parts.add_edges_from(pairwise(own))
    assert nx.is_directed_acyclic_graph(parts), "no deadlock"


def test_a_chain_that_returns_to_a_device() -> None:
    problem = graph([(0, 1), (1, 2), (0, 2)], 3)
    segments = cut_segments(problem, po.simulate(problem, [0, 1, 0]))
    assert segments.member.tolist() == [0, 1, 2]
    assert segments.number.tolist() == [0, 1, 2]
    assert segments.device.tolist() == [0, 1, 0]


def test_the_order_of_a_device_can_need_more_segments() -> None:
    """a1 -> b1 and b2 -> a2, and device 1 runs b1 before b2: {a1, a2} and {b1, b2} would wait for each other."""
    problem = graph([(0, 2), (3, 1)], 4)  # a1, a2, b1, b2
    schedule = po.Schedule(np.array([0, 0, 1, 1]), np.array([0, 3, 1, 2]))
    assert po.verify(problem, schedule).feasible
    by_number = cut_segments(problem, schedule)
    assert [by_number.tasks(k).tolist() for k in range(4)] == [[0], [3], [1], [2]]
    in_order = cut_segments(problem, schedule, keep_order=True)
    assert [in_order.tasks(k).tolist() for k in range(3)] == [[0], [2, 3], [1]]


@settings(max_examples=200, deadline=None)
@given(placed())
def test_only_the_first_task_of_a_segment_receives_and_only_the_last_one_sends(
    case: tuple[po.Problem, np.ndarray],
) -> None:
    problem, device = case
    segments = cut_segments(problem, po.simulate(problem, device), at_transfers=True)
    first = {int(segments.tasks(k)[0]) for k in range(len(segments))}
    last = {int(segments.tasks(k)[-1]) for k in range(len(segments))}
    for a, b in zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True):
        if device[a] != device[b]:
            assert a in last
            assert b in first


def test_one_device_needs_one_segment() -> None:
    problem = graph([(0, 1), (1, 2), (3, 2)], 4)
    for way in WAYS:
        assert len(cut_segments(problem, po.simulate(problem, [1] * 4), **way)) == 1


def test_a_schedule_of_another_problem_is_an_error() -> None:
    problem = graph([(0, 1)], 2)
    with pytest.raises(po.UsageError, match="has shape \\(3,\\); expected one device for each of 2 tasks"):
        cut_segments(problem, po.Schedule(np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.int64)))
