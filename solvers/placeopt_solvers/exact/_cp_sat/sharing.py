"""Model outputs that share the bytes of other outputs (`placeopt.model.layout`)."""

from __future__ import annotations

from collections.abc import Iterable

from placeopt.model.layout import Layout

from .base import Literal
from .memory import Memory
from .timing import Timing, Variable


class Sharing:
    """Which outputs share bytes, and until when these are needed.

    Variables: s[r], for row r of the layout, whether its task shares the bytes of its base; e[i], until when the bytes
    of output i are needed, also by outputs that share them. For each task j that may overwrite others, and each other
    task i of its set: whether both are in one storage, whether i derives from j, and when others than j need i no more.
    """

    def __init__(self, memory: Memory, timing: Timing, layout: Layout) -> None:
        self.memory, self.timing, self.layout = memory, timing, layout
        self.base, self.placement = memory.base, memory.placement
        cp = self.base.cp
        rows = [row for row in layout.rows() if layout.output[row[0]]]
        self.shares = [(cp.new_bool_var(""), row) for row in rows]
        self.own: dict[int, list[tuple[Literal, int, int, bool]]] = {}  # by task: literal, base, first byte, view
        for literal, (task, base, at, view) in self.shares:
            self.own.setdefault(task, []).append((literal, base, at, view))
            self.own.setdefault(base, [])
            self._together(literal, task, base)
        self.needed = {i: self._end(i) for i in self.own}
        for literal, (task, base, _, _) in self.shares:
            cp.add(self.needed[base] >= self.needed[task]).only_enforce_if(literal)
        for own in self.own.values():
            cp.add_at_most_one(each[0] for each in own)
        for members in layout.sets():
            self._overwrite([i for i in members if i in self.own])

    def alone(self, i: int, present: Literal) -> Literal:
        """Return the literal that an output is present and shares no bytes of others."""
        cp, own = self.base.cp, [each[0] for each in self.own[i]]
        if not own:
            return present
        found = cp.new_bool_var("")
        for literal in own:
            cp.add_implication(found, ~literal)
        cp.add_implication(found, present)
        cp.add_bool_or(~present, found, *own)
        return found

    def _together(self, literal: Literal, i: int, j: int) -> None:
        """Require that two tasks are on one device if a literal holds."""
        one, other = (self.placement.at[self.placement.group[k]] for k in (i, j))
        for d, x in one.items():
            self.base.cp.add_bool_or(~literal, ~x, *([other[d]] if d in other else []))

    def _end(self, i: int) -> Variable:
        """Add until when the bytes of an output are needed, at least by its own consumers."""
        end = self.base.integer(0, self.timing.horizon, lambda view: view.release[i])
        self.base.cp.add(end >= self._freed(i))
        return end

    def _freed(self, i: int) -> Variable:
        if i not in self.memory.freed:
            self.memory.freed[i] = self.memory.hold(i, self.timing)
        return self.memory.freed[i][0]

    def _overwrite(self, members: Iterable[int]) -> None:
        """Require that no task needs what another one overwrites."""
        cp, problem = self.base.cp, self.memory.problem
        rank = {int(i): place for place, i in enumerate(problem.order.tolist())}
        tasks = sorted(members, key=lambda i: rank[i])
        writers = {j: [each[0] for each in self.own[j] if not each[3]] for j in tasks}
        if not any(writers.values()):
            return
        derives: dict[int, dict[int, Literal]] = {}
        roots: dict[int, Variable] = {}
        for i in tasks:
            roots[i], alone = cp.new_int_var(0, problem.n_tasks, ""), self.alone(i, self.base.true)
            cp.add(roots[i] == i).only_enforce_if(alone)
            terms: dict[int, list[Literal]] = {}
            for literal, base, _, _ in self.own[i]:
                cp.add(roots[i] == roots[base]).only_enforce_if(literal)
                terms.setdefault(base, []).append(literal)
                for j, derived in derives[base].items():
                    terms.setdefault(j, []).append(self._both(literal, derived))
            derives[i] = {}
            for j, each in terms.items():
                if writers[j]:
                    derives[i][j] = cp.new_bool_var("")
                    cp.add(sum(each) == derives[i][j])
        for j in tasks:
            for i in tasks if writers[j] else ():
                if i != j:
                    same, less, more = (cp.new_bool_var("") for _ in range(3))
                    cp.add(roots[i] < roots[j]).only_enforce_if(less)
                    cp.add(roots[i] > roots[j]).only_enforce_if(more)
                    cp.add_bool_or(same, less, more)
                    apart = [~derives[i][j]] if j in derives[i] else []
                    consumer = j in problem.edge_target[problem.out_start[i] : problem.out_start[i + 1]]
                    freed = self.memory.hold(i, self.timing, without=j)[0] if consumer else self._freed(i)
                    for literal in writers[j]:
                        cp.add(freed <= self.timing.starts[j]).only_enforce_if(literal, same, *apart)

    def _both(self, one: Literal, other: Literal) -> Literal:
        cp, found = self.base.cp, self.base.cp.new_bool_var("")
        cp.add_implication(found, one)
        cp.add_implication(found, other)
        cp.add_bool_or(~one, ~other, found)
        return found
