"""Grouping of nodes by a key without cycles between the groups."""

from __future__ import annotations

from graphlib import TopologicalSorter

from hypothesis import given
from hypothesis import strategies as st

from placeopt.bridges.pytorch.kernels import convex_groups


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[int], list[list[int]]]:
    n = draw(st.integers(0, 14))
    keys = [draw(st.integers(0, 4)) for _ in range(n)]
    predecessors = [sorted(draw(st.sets(st.integers(0, node - 1), max_size=3))) if node else [] for node in range(n)]
    return keys, predecessors


@given(graphs())
def test_groups_partition_the_nodes_by_key_and_form_no_cycle(graph: tuple[list[int], list[list[int]]]) -> None:
    keys, predecessors = graph
    groups = convex_groups(keys, predecessors)
    assert sorted(node for group in groups for node in group) == list(range(len(keys)))
    home = {node: k for k, group in enumerate(groups) for node in group}
    assert all(len({keys[node] for node in group}) == 1 for group in groups)
    for node, earlier in enumerate(predecessors):
        assert all(home[other] <= home[node] for other in earlier)


def joinable(groups: list[list[int]], predecessors: list[list[int]], one: int, two: int) -> bool:
    """Whether two groups can be contracted without a cycle, by sorting the contracted graph."""
    home = {node: k for k, group in enumerate(groups) for node in group}
    home |= dict.fromkeys(groups[two], one)
    graph: dict[int, set[int]] = {}
    for node, earlier in enumerate(predecessors):
        graph.setdefault(home[node], set()).update(home[other] for other in earlier if home[other] != home[node])
    try:
        tuple(TopologicalSorter(graph).static_order())
    except ValueError:
        return False
    return True


@given(graphs())
def test_a_group_is_separate_only_where_a_cycle_requires_it(graph: tuple[list[int], list[list[int]]]) -> None:
    keys, predecessors = graph
    groups = convex_groups(keys, predecessors)
    runs = convex_groups(list(range(len(keys))), predecessors)
    assert len(runs) == len(keys)  # distinct keys stay apart
    if len(set(keys)) <= 1:
        assert len(groups) == len(set(keys))
    elif len(groups) == 2:  # two groups of one key would have been joined
        assert keys[groups[0][0]] != keys[groups[1][0]] or not joinable(groups, predecessors, 0, 1)


def test_a_residual_module_around_a_submodule_has_two_groups() -> None:
    # add -> linear (submodule) -> add, and a parallel branch
    keys = ["block", "block.mlp", "block", "block.mlp"]
    assert convex_groups(keys, [[], [0], [0, 1], [0]]) == [[0], [1, 3], [2]]


def test_a_group_joins_one_that_only_a_direct_edge_separates() -> None:
    keys = ["a", "b", "a"]
    assert convex_groups(keys, [[], [], [0, 1]]) == [[1], [0, 2]]
    assert convex_groups(keys, [[], [0], [0]]) == [[0, 2], [1]]
    assert convex_groups(keys, [[], [0], [1]]) == [[0], [1], [2]]
