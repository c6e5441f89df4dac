"""Models of stages: none, a line of positions, or numbered stages of devices with several or unlimited ones.

Line. Every device has one stage in each direction, and slots are classes of devices at positions. Forward edges (g, h)
lead to no earlier position p,

    sum_(a at most at p) x[g, a] >= sum_(a at most at p) x[h, a],

and the order of the backward stages follows from that of the forward stages (`contracted`). Used positions come last.
Without teams, and if all units have forward tasks, the position then states the runs that `1f1b` keeps.

Numbered. Stages s = 0.. of devices with limited or costly stages alternate with gaps, in which tasks run on other
devices: these may have a stage for each task.

    sum_k e[i, k] = 1                                      e binary: task i is in gap or stage k; gaps are even
    sum_(k <= q) e[i, k] >= sum_(k <= q) e[j, k]           for each edge (i, j) and each q
    sum_v h[s, v] <= 1                                     h binary: stage s is one of device and direction v
    sum_s h[s, v] <= segments of the device
    h[s, v] >= e[i, s] + x[g(i), d] - 1                    for the direction of i
    sum_s e[i, s] = sum_d x[g(i), d]                       over the devices d with limited or costly stages

Runs kept under `1f1b`, with f the devices of a forward stage, counted from the last one: k runs suffice for a slot if
the devices of this and of later forward stages are at most k times those of its team. A binary column states that
they do not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from placeopt.model.arrays import Bool, Int
from placeopt.model.pipeline import UNBOUNDED
from placeopt.model.stages import backward

from ..._runs.linear import Linear, total
from .model import Kept, Model, chosen
from .system import Condition


class StageRows(ABC):
    """The rows of stages; sets the launching time of the model."""

    def __init__(self, model: Model) -> None:
        self.model, self.data, self.system = model, model.data, model.system
        self.behind = backward(self.data.problem)

    def kept(self) -> list[list[Kept]]:
        """Return the runs that each slot may have to keep."""
        runs = self.model.rules.runs_kept
        return [[Kept(runs)]] * len(self.model.slots) if runs else self.counted()

    @abstractmethod
    def counted(self) -> list[list[Kept]]:
        """Return the runs that each slot may have to keep under `1f1b`."""

    @abstractmethod
    def numbers(self, values: list[int], home: list[int], leads: Int) -> Int:
        """Return the number of the stage of each task; `home` (u,) is the slot of each unit, `leads` its device."""

    def _choices(self, a: int, most: int, later: list[tuple[Linear, tuple[Condition, ...]]]) -> list[Kept]:
        """Return the runs that a slot keeps; `later` holds devices of its and later stages, and when they count."""
        found = [Kept(1)]
        if not self.model.overflows(a):
            return found
        for runs in range(2, most + 1):
            more = self.system.binary()
            for devices, when in later:
                self.system.at_least((runs - 1) * self.model.size(a), devices, (*when, (more, 0)))
            found.append(Kept(runs, ((more, 1),)))
        return found


class Free(StageRows):
    """Stages do not matter."""

    def counted(self) -> list[list[Kept]]:
        """Return nothing: `1f1b` needs stages."""
        raise AssertionError

    def numbers(self, values: list[int], home: list[int], leads: Int) -> Int:  # noqa: ARG002 - as in other models
        """Return a number for each device and direction."""
        device = leads[np.array(home)[self.data.unit]]
        return np.asarray(device + self.data.problem.n_devices * self.behind)


class Line(StageRows):
    """Stages in a line, each at a position."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        data, system = self.data, self.system
        self.at = [[a for a, slot in enumerate(data.slots) if slot.position == p] for p in range(data.positions)]
        used = [total(model.used(a) for a in here) for here in self.at]
        for p, here in enumerate(self.at):
            if len(here) > 1:
                system.at_least(1, used[p])
            if p:
                system.at_least(used[p], used[p - 1])
        source, target = data.problem.edge_source, data.problem.edge_target
        ahead = ~self.behind[source] & ~self.behind[target]
        ends = np.stack((data.unit[source[ahead]], data.unit[target[ahead]]), axis=1)
        for g, h in np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0).tolist():
            before: list[Linear] = []
            for here in self.at[:-1]:
                before += [model.on(g, a) - model.on(h, a) for a in here]
                system.at_least(total(before), 0)
        for a, slot in enumerate(data.slots):
            launch = int(model.rules.launch[slot.device]) // data.time
            if launch:
                model.launching[a] = launch * total((self._some(a, data.ahead), self._some(a, data.behind)))

    def _some(self, a: int, having: Bool) -> Linear:
        """Return whether a slot has one of some units."""
        if having.all():
            return self.model.used(a)
        return self.system.any_of(self.model.on(g, a) for g in np.flatnonzero(having).tolist())

    def counted(self) -> list[list[Kept]]:
        """Return the runs that each slot may have to keep under `1f1b`."""
        data, model, every = self.data, self.model, bool(self.data.ahead.all())
        if every and max(data.team) == 1:
            return [[Kept(data.positions - slot.position)] for slot in data.slots]
        sizes = [model.size(a) if every else self._forward_size(a) for a in range(len(data.slots))]
        later = [total(sizes[a] for here in self.at[p:] for a in here) for p in range(data.positions)]
        m = data.problem.n_devices
        return [self._choices(a, m, [(later[slot.position], ())]) for a, slot in enumerate(data.slots)]

    def _forward_size(self, a: int) -> Linear:
        """Return the devices of the slot's team, 0 if it may have no forward tasks."""
        size = self.system.column(0, max(self.model.teams[a]), implied=True)
        some = self.system.binary()
        for g in np.flatnonzero(self.data.ahead).tolist():
            self.system.at_least(some, self.model.on(g, a))
        self.system.at_least(size, self.model.size(a), ((some, 1),))
        return size

    def numbers(self, values: list[int], home: list[int], leads: Int) -> Int:  # noqa: ARG002 - as in other models
        """Return positions; backward stages follow the forward stages, mostly in the opposite order."""
        positions = self.data.positions
        position = np.array([self.data.slots[a].position for a in home])[self.data.unit]
        behind = 2 * positions - 1 - position if self.data.opposite else positions + position
        return np.where(self.behind, behind, position).astype(np.int64)


class Numbered(StageRows):
    """Stages and gaps that alternate; slots are devices."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        data, system, rules, problem = self.data, self.system, model.rules, model.data.problem
        m = problem.n_devices
        tasks = [np.flatnonzero(self.behind == side) for side in (False, True)]
        limited = (rules.segments != UNBOUNDED) | (rules.launch > 0)
        self.limited = limited
        self.limit = {
            (d, side): min(int(rules.segments[d]), int(problem.feasible[tasks[side], d].sum()))
            for d in np.flatnonzero(limited).tolist()
            for side in (0, 1)
        }
        stages = min(sum(self.limit.values()), int(problem.feasible[:, limited].any(axis=1).sum()))
        self.of = [{v: system.binary() for v, most in self.limit.items() if most} for _ in range(stages)]
        for s, row in enumerate(self.of):
            system.at_least(1, total(row.values()))
            if s:
                system.at_least(total(self.of[s - 1].values()), total(row.values()))
        for v, most in self.limit.items():
            if most:
                system.at_least(most, total(row[v] for row in self.of))
        self.place: list[dict[int, Linear]] = []
        for i in range(problem.n_tasks):
            self.place.append(self._placed(i, stages))
        for i, j in zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True):
            before: list[Linear] = []
            for k in range(2 * stages):
                before += [self.place[i].get(k, Linear()) - self.place[j].get(k, Linear())]
                if k in self.place[i] or k in self.place[j]:
                    system.at_least(total(before), 0)
        for d in range(m):
            launch = int(rules.launch[d]) // data.time
            if launch:
                model.launching[d] = launch * total(row[v] for row in self.of for v in row if v[0] == d)

    def _placed(self, i: int, stages: int) -> dict[int, Linear]:
        """Return e[i, k] by k."""
        model, system, g = self.model, self.system, int(self.data.unit[i])
        side = int(self.behind[i])
        able = list(model.x[g])
        free = [d for d in able if not self.limited[d]]
        bound = [d for d in able if self.limited[d]]
        place = {k: system.binary() for k in range(2 * stages + 1) if (bound if k % 2 else free)}
        system.equal(total(place.values()), 1)
        system.equal(total(place[k] for k in place if k % 2), total(model.x[g][d] for d in bound))
        for s in range(stages):
            if bound:
                for d in bound:
                    system.at_least(self.of[s][d, side], place[2 * s + 1] + model.x[g][d] - 1)
                system.at_least(total(self.of[s][d, side] for d in bound), place[2 * s + 1])
        return place

    def counted(self) -> list[list[Kept]]:
        """Return the runs that each slot may have to keep under `1f1b`."""
        m, model, system = self.data.problem.n_devices, self.model, self.system
        sizes = []
        for row in self.of:
            forward = {d: column for (d, side), column in row.items() if not side}
            if max(self.data.team) == 1:
                sizes.append(total(forward.values()))
                continue
            size = system.column(0, max(self.data.team), implied=True)
            for d, column in forward.items():
                system.at_least(size, model.size(d), ((column, 1),))
            sizes.append(size)
        later = [total(sizes[s:]) for s in range(len(sizes))]
        return [
            self._choices(d, m, [(later[s], ((row[d, 0], 1),)) for s, row in enumerate(self.of) if (d, 0) in row])
            for d in range(m)
        ]

    def numbers(self, values: list[int], home: list[int], leads: Int) -> Int:  # noqa: ARG002 - as in other models
        """Return numbers of stages, those of gaps between those of limited stages."""
        problem = self.data.problem
        where = [next(k for k, column in row.items() if chosen(values, column)) for row in self.place]
        kind = [(home[g], side) for g, side in zip(self.data.unit.tolist(), self.behind.tolist(), strict=True)]
        rank = {i: r for r, i in enumerate(problem.order.tolist())}
        number = np.zeros(problem.n_tasks, dtype=np.int64)
        stage, last = -1, None
        for i in sorted(range(problem.n_tasks), key=lambda i: (where[i], rank[i])):
            if (where[i], kind[i]) != last:
                stage, last = stage + 1, (where[i], kind[i])
            number[i] = stage
        return number


def stage_rows(model: Model) -> StageRows:
    """Add the rows of stages of a problem's kind."""
    if model.data.line:
        return Line(model)
    return Numbered(model) if model.rules.numbered else Free(model)
