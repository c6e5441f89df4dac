"""Group the nodes of an acyclic graph by a key, such as their module, so that the groups form no cycle.

Contracting all nodes of a key can make a cycle: a residual block whose module adds before and after a submodule both
feeds the submodule and reads from it. Therefore a key may have several groups. The nodes come in a topological order:

1. A run of consecutive nodes with one key is a group. Runs in a topological order form no cycle.
2. In order, each group joins the last earlier group of its key, unless a path between them visits a third group.

The second step keeps an order of the groups in which every edge leads forward. It moves as few groups as possible, like
the incremental topological order of Pearce and Kelly, Journal of Experimental Algorithmics 11 (2007), Article 1.7,
DOI 10.1145/1187436.1210590.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence


def convex_groups(keys: Sequence[Hashable], predecessors: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return groups of nodes with equal keys whose contracted graph is acyclic, in a topological order of this graph.

    Parameters
    ----------
    keys
        The key of each node. The nodes are in a topological order.
    predecessors
        The predecessors of each node, all of them earlier.

    Returns
    -------
    The nodes of each group in ascending order. Takes O(n + e), and time for all groups between two compared ones.
    """
    group, members = _runs(keys)
    count = len(members)
    successors: list[dict[int, None]] = [{} for _ in range(count)]
    sources: list[dict[int, None]] = [{} for _ in range(count)]
    for node, earlier in enumerate(predecessors):
        for other in earlier:
            if group[other] != group[node]:
                successors[group[other]][group[node]] = None
                sources[group[node]][group[other]] = None
    order = list(range(count))
    place = list(range(count))
    last: dict[Hashable, int] = {}
    for k in range(count):
        key = keys[members[k][0]]
        into = last.get(key)
        if into is None or not _join(into, k, order, place, successors, sources):
            last[key] = k
            continue
        members[into] += members[k]
        members[k] = []
    return [sorted(members[k]) for k in order if members[k]]


def _runs(keys: Sequence[Hashable]) -> tuple[list[int], list[list[int]]]:
    """The run of each node, and the nodes of each run."""
    group: list[int] = []
    members: list[list[int]] = []
    for node, key in enumerate(keys):
        if not node or key != keys[node - 1]:
            members.append([])
        members[-1].append(node)
        group.append(len(members) - 1)
    return group, members


def _join(
    into: int,
    group: int,
    order: list[int],
    place: list[int],
    successors: list[dict[int, None]],
    sources: list[dict[int, None]],
) -> bool:
    """Contract `group` into the earlier group `into`; False, and no change, if that made a cycle."""
    first, end = place[into], place[group]
    reached = {into}
    for k in order[first + 1 : end]:
        if any(other in reached for other in sources[k]):
            reached.add(k)
    reached.discard(into)
    if any(other in reached for other in sources[group]):
        return False
    window = order[first + 1 : end]
    moved = [k for k in window if k not in reached] + [into, group] + [k for k in window if k in reached]
    for k, other in enumerate(moved, first):
        order[k] = other
        place[other] = k
    for other in sources[group]:
        del successors[other][group]
        if other != into:
            successors[other][into] = None
            sources[into][other] = None
    for other in successors[group]:
        del sources[other][group]
        sources[other][into] = None
        successors[into][other] = None
    sources[group] = {}
    successors[group] = {}
    return True
