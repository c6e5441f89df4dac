"""Fork-join cuts: branches that stay on one device run one after the other.

**Definitions.** Let u be a fork and v a join. Let P be a path from u to v, S some other tasks between u and v, and F
a tree of pairs that connects the groups of u, P, S and v. Let m_i be the shortest duration of task i on a kind that
is not a pool, and X the sum over F of the pairs on different devices.

**Claim.**

    s[v] >= s[u] + (durations and transfers along P) + sum_{i in S} m_i (sum over k not a pool of y[i,k] - X)

**Proof.** In an integral point X is an integer. If X = 0, then u, P and S run on one device before v starts; unless it
is a pool, they run one after the other. If it is a pool, or X >= 1, the sum over S is not positive, and the rest is the
sum of the edge rows along P. ∎

P is the longest path in the given point; S grows along pairs on the same device.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from placeopt.bounding.engines.linear_program import Row, row
from placeopt.bounding.relaxation.model import GroupGraph, Relaxation, longest_paths
from placeopt.model.arrays import Float, Int

WIDEST = 200
"""Maximum number of tasks visited after a fork."""

SMALLEST = 1e-4
"""Least violation of a cut that is added, as a share of the objective."""


@dataclass(frozen=True, slots=True)
class Block:
    """A fork, a join, and the tasks between them in topological order."""

    fork: int
    join: int
    between: tuple[int, ...]


class ForkCuts:
    """Finds violated fork-join cuts."""

    def __init__(self, relaxation: Relaxation, network: GroupGraph) -> None:
        self.relaxation, self.network = relaxation, network
        self.problem = relaxation.problem
        kinds = relaxation.kinds
        self.serial = np.flatnonzero(~kinds.pool)
        open_ = kinds.allowed[self.problem.group][:, self.serial]
        ticks = np.where(open_, kinds.duration[:, self.serial], np.iinfo(np.int64).max)
        shortest = ticks.min(axis=1, initial=np.iinfo(np.int64).max)
        self.shortest = np.where(open_.any(axis=1), shortest, 0)
        self.blocks = (
            blocks(self.problem.out_start, self.problem.edge_target, self.problem.order) if relaxation.timed else []
        )

    def violated(self, x: Float) -> list[tuple[float, Row]]:
        """Violated cuts and their violation as a share of the objective."""
        relaxation, problem = self.relaxation, self.problem
        moved = np.maximum(relaxation.moved(x), 0.0)
        group = problem.group
        placed = x[relaxation.y][group]
        running = (placed * relaxation.kinds.duration).sum(axis=1)
        serial = self.shortest * placed[:, self.serial].sum(axis=1)
        transfer = relaxation.transfer_times(x)
        objective = max(float(x[relaxation.metric["makespan"]]), 1.0) if relaxation.timed else 1.0
        found = []
        for block in self.blocks:
            path, length = self._longest(block, running, transfer)
            have = float(x[relaxation.s[block.join]] - x[relaxation.s[block.fork]])
            members, tree, gain = self._grown(block, path, moved, serial)
            excess = (length + gain - have) / objective
            if gain > 0 and excess > SMALLEST:
                found.append((excess, self._row(block, path, members, tree)))
        return found

    def _longest(self, block: Block, running: Float, transfer: Float) -> tuple[list[int], float]:
        """The edges of the longest path from the fork to the join, and its length."""
        problem, edges, at = self.problem, [], block.join
        length, last = longest_paths(problem, (block.fork, *block.between), [block.fork], running, transfer)
        while at != block.fork:
            edges.append(last[at])
            at = int(problem.edge_source[last[at]])
        return edges[::-1], length[block.join]

    def _grown(self, block: Block, path: list[int], moved: Float, serial: Float) -> tuple[list[int], list[int], float]:
        """S, the pairs F, and the sum m (y - X) over S in the point, maximised greedily."""
        problem, network = self.problem, self.network
        group = problem.group
        on_path = {block.fork, block.join, *(int(problem.edge_target[e]) for e in path)}
        others: dict[int, list[int]] = {}
        for i in block.between:
            if i not in on_path:
                others.setdefault(int(group[i]), []).append(i)
        wanted = {int(group[i]) for i in on_path} | others.keys()
        tree = sorted({int(self.relaxation.pair[e]) for e in path} - {-1})
        connected = {int(group[block.fork])}
        for q in tree:
            connected |= {int(self.relaxation.low[q]), int(self.relaxation.high[q])}
        apart = float(moved[tree].sum())
        members: list[int] = []
        weight, ticks = 0.0, 0
        heap: list[tuple[float, int, int]] = []

        def add(g: int) -> None:
            nonlocal weight, ticks
            for i in others.get(g, ()):
                members.append(i)
                weight += float(serial[i])
                ticks += int(self.shortest[i])
            for position in range(int(network.start[g]), int(network.start[g + 1])):
                h = int(network.neighbour[position])
                if h in wanted and h not in connected:
                    heapq.heappush(heap, (float(moved[network.pair[position]]), h, int(network.pair[position])))

        for g in sorted(connected):
            add(g)
        best = max((0.0, 0, 0), (weight - ticks * apart, len(members), len(tree)))
        while heap and apart < 1:
            away, g, q = heapq.heappop(heap)
            if g in connected:
                continue
            connected.add(g)
            tree.append(q)
            apart += away
            add(g)
            best = max(best, (weight - ticks * apart, len(members), len(tree)))
        gain, size, pairs = best
        return members[:size], tree[:pairs], gain

    def _row(self, block: Block, path: list[int], members: list[int], tree: list[int]) -> Row:
        relaxation, problem = self.relaxation, self.problem
        columns: list[Int] = [relaxation.s[[block.join, block.fork]]]
        coefficients: list[Int] = [np.array([1, -1])]
        for e in path:
            i = int(problem.edge_source[e])
            columns.append(relaxation.y[problem.group[i]])
            coefficients.append(-relaxation.kinds.duration[i])
            if relaxation.pair[e] >= 0:
                columns.append(relaxation.w[relaxation.pair[e]])
                coefficients.append(-relaxation.ticks[e])
        for i in members:
            columns.append(relaxation.y[problem.group[i]][self.serial])
            coefficients.append(np.full(len(self.serial), -self.shortest[i]))
        apart = relaxation.w[tree].reshape(-1)
        columns.append(apart)
        coefficients.append(np.full(len(apart), self.shortest[members].sum()))
        return row(np.concatenate(columns), np.concatenate(coefficients), 0)


def blocks(out_start: Int, edge_target: Int, order: Int) -> list[Block]:
    """The blocks of a graph: for each fork, each join where more of its branches meet than at any earlier join."""
    rank = np.argsort(order)
    found = []
    for fork in np.flatnonzero(np.diff(out_start) > 1).tolist():
        branches = edge_target[out_start[fork] : out_start[fork + 1]].tolist()
        reached = dict.fromkeys(branches, 0)  # a bit for each branch that leads to the task
        for bit, j in enumerate(branches):
            reached[j] |= 1 << bit
        heap = [(int(rank[j]), j) for j in sorted(reached)]
        heapq.heapify(heap)
        seen: list[int] = []
        most = 1
        while heap and len(seen) < WIDEST:
            _, i = heapq.heappop(heap)
            meeting = reached[i].bit_count()
            if meeting > most:
                most = meeting
                found.append(Block(fork, i, _between(seen, i, out_start, edge_target)))
                if meeting == len(branches):
                    break
            seen.append(i)
            for j in edge_target[out_start[i] : out_start[i + 1]].tolist():
                if j not in reached:
                    reached[j] = 0
                    heapq.heappush(heap, (int(rank[j]), j))
                reached[j] |= reached[i]
    return found


def _between(seen: list[int], join: int, out_start: Int, edge_target: Int) -> tuple[int, ...]:
    """The visited tasks, in topological order, from which the join is reachable."""
    leading = {join}
    for i in reversed(seen):
        if not leading.isdisjoint(edge_target[out_start[i] : out_start[i + 1]].tolist()):
            leading.add(i)
    return tuple(i for i in seen if i in leading)
