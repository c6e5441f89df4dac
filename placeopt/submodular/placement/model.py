"""Placement as the maximisation of a submodular function: the models of Carbonari, Kodirov and Golub, and beyond.

A. Carbonari, N. Kodirov, M. Golub: TensorFlow job placement optimization as a submodular function maximization, 2017.
The ground set holds the pairs (j, i), task j on device i, as elements j m + i; the matroid is the partition by tasks.
The function is that of `benefits`, where the equations stand. `PlacementModel` gives it to the maximisers and checks of
`placeopt.submodular`, and places all tasks by its own greedy (`rounds`), which knows what a placement changes.

Departures from the paper, each where it is silent, or at odds with itself:

1. PC_j, the candidates for being parallel to j, are written as those with D_S[j] /= D_S[j']. The text ("two nodes have
   the same dependency") and the example of appendix 6.1 ask for equal sets, so equal it is; two empty sets are equal.
2. pf is one more than the number of parallel tasks on other devices: section 2.2 says "= |P|", and 0 for the first
   task; its own example (pf = 2 with one parallel task elsewhere), appendix 6.1 and the proof (pf >= 1) ask for one
   more.
3. b_ij stays what it was when j was placed, as in the example's rounds. So f depends on the order in which tasks are
   placed: it is a function of sequences, not of sets.
4. Equation 5's b_ij = 2 - (c_ij - placed_i) / cap, in which a device grows more attractive with its load, is read
   with a plus, as in equation 3.
5. i_cap is "an arbitrarily large number"; "total" is the least with which all tasks fit on any one device, as the
   proof's c_ij + placed_i <= i_cap demands: the sum over tasks of the longest duration on any device. Where a smaller
   one is exceeded, pf is 1, and g goes on below zero as the identity.
6. Section 5's g for each device is a factor of what a task adds to F, by the share of the memory that it would fill. As
   F times pf counts outside, a full device is ruled out there rather than without gain.
7. Where communication counts, an output that several consumers share counts once for each, and the "largest" input is
   the one with the most bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
from pydantic import Field

from placeopt.errors import UsageError
from placeopt.kernels import runs_compiled
from placeopt.model.arrays import Bool, Float, Int
from placeopt.model.problem import UNLIMITED, Problem, group_memory, group_separation
from placeopt.model.units import TIME, QuantityError, parse, time_text
from placeopt.solver import Settings
from placeopt.submodular.placement import benefits
from placeopt.submodular.placement.benefits import Model, Standing
from placeopt.submodular.placement.rounds import make_queue, make_record, place_all
from placeopt.submodular.placement.tiers import parse_tiers
from placeopt.submodular.placement.topology import make_graph, make_topology

Form = Literal["inside", "outside"]
"""Where the parallelism factor stands: inside the sum of benefits (section 2.2), or outside (section 2.3)."""

STEPS = 100_000_000
"""Elementary steps of compiled code after which greedy asks whether to stop; plain Python asks after each round."""

FULLNESS = {"unlimited": benefits.UNLIMITED_MEMORY, "step": benefits.STEP, "linear": benefits.LINEAR}
CURVES = {"sqrt": benefits.SQRT, "log": benefits.LOG}


class PlacementSettings(Settings):
    """What belongs to the function."""

    cap: str = "total"
    """The time capacity i_cap of each device, such as "100 s" (bare numbers are ticks), or "total": the sum of all
    tasks' longest durations."""

    parallelism: bool = True
    """Whether the parallelism factor counts."""

    load: bool = True
    """Whether what stands on a device already counts against it (placed_i)."""

    curve: Literal["sqrt", "log"] = "sqrt"
    """The concave function g: sqrt(x) as in the paper, or log(1 + x)."""

    memory: Literal["step", "linear", "unlimited"] = "step"
    """Section 5, a g for each device: "a step function, which remains constant until device has available memory", so
    that a full device has no marginal gain; "linear": gains fall from the knee on to none at capacity; "unlimited": the
    paper's first assumption, with which devices may be overfilled."""

    knee: float = Field(default=0.8, ge=0, lt=1)
    """The share of its memory that a device may fill before gains fall, for memory = linear."""

    memory_balance: float = Field(default=0.0, ge=0, le=1)
    """Section 5: "the cost of memory can grow as more nodes are assigned to the device": the share of its gain that a
    task loses on a full device; half as much on a half full one."""

    tiers: str = ""
    """Section 5, "the servers with different RAM, SSD and HDD capacities": the tiers of each device's memory and the
    rate at which what lies there is swapped, such as "16 GiB; 64 GiB at 3 GB/s; 1 TiB at 200 MB/s", or in shares of
    its memory: "25%; 75% at 3 GB/s". The time it takes counts against the device when tasks are placed; schedules know
    no swapping."""

    communication: bool = False
    """Section 5: transmission cost "decreases the benefit of placing a node on a device other than its predecessor":
    transfers from placed producers and to placed consumers count against a device, also those through tasks that are
    not placed yet."""


@dataclass(frozen=True, slots=True)
class Placed:
    """What greedy placed.

    Attributes
    ----------
    task, device, values
        (k,) the pair chosen in each round, and the value of the function after it.
    home
        (g,) device of each group, -1 for those not placed.
    room
        (m,) bytes left.
    stuck
        A task that no device could take, None if all are placed or it was stopped before.
    stopped
        Whether it was stopped before all tasks were placed.
    evaluations
        Pairs looked at.
    """

    task: Int
    device: Int
    values: Float
    home: Int
    room: Int
    stuck: int | None
    stopped: bool
    evaluations: int


class PlacementModel:
    """The function of a problem; a `SetFunction` for the maximisers, with pairs (task, device) as its ground set.

    Parameters
    ----------
    problem
        The problem; groups are placed as a whole, by their first task.
    form
        Where the parallelism factor stands.
    settings
        See `PlacementSettings`.
    home
        (g,) devices that groups have already, -1 for the others; their memory is reserved.
    feasible
        (g, m) devices that each group may use; those of the problem if None.

    Raises
    ------
    UsageError
        For a `cap` or `tiers` that mean nothing.
    """

    def __init__(
        self,
        problem: Problem,
        form: Form,
        settings: PlacementSettings | None = None,
        home: Int | None = None,
        feasible: Bool | None = None,
    ) -> None:
        settings = PlacementSettings() if settings is None else settings
        self.problem = problem
        self.size = problem.n_tasks * problem.n_devices
        self._home = np.full(problem.n_groups, -1, dtype=np.int64) if home is None else home
        self.model = _model(problem, form, settings, feasible)
        modular = not settings.load and not settings.parallelism and not settings.communication and not settings.tiers
        late = bool((self.model.cost[np.isfinite(self.model.cost)] > 2 * self.model.cap.max()).any())
        roomy = settings.memory == "step" and int(self.model.memory.sum()) <= int(problem.capacity.min())
        self.path_free = self.monotone = self.submodular = (
            modular and not late and (roomy or settings.memory == "unlimited") and not settings.memory_balance
        )

    def start(self) -> Standing:
        """Nothing placed."""
        n, m, g = self.problem.n_tasks, self.problem.n_devices, self.problem.n_groups
        used = np.zeros(m, dtype=np.int64)
        given = self._home >= 0
        np.add.at(used, self._home[given], self.model.memory[given])
        state = Standing(
            topology=make_topology(self.model.graph, m),
            home=self._home.copy(),
            benefit=np.zeros(m),
            placed=np.zeros(m),
            held=np.zeros(m, dtype=np.int64),
            used=used,
            value=np.zeros(3),
            fetched=np.zeros((m, g), dtype=np.int64),
            origin=np.full(n, -1, dtype=np.int64),
            target=np.full(n, -1, dtype=np.int64),
            changed=np.zeros(g, dtype=np.int64),
            n_changed=np.zeros(1, dtype=np.int64),
            stamp=np.zeros(g, dtype=np.bool_),
            stack=np.zeros(n, dtype=np.int64),
        )
        if self.model.communication and given.any():
            settle = benefits.settle.select(len(np.flatnonzero(given)) * m * 100, chunked=True)
            for k in np.flatnonzero(given).tolist():
                settle(self.model, state, k, int(self._home[k]))
        return state

    def copy(self, state: Standing) -> Standing:
        """A standing that may go on by itself."""
        return cast(Standing, _copied(state))

    def value(self, state: Standing) -> float:
        """The paper's f."""
        return benefits.value_of(self.model, state)

    def gains(self, state: Standing, elements: Int) -> Float:
        """(k,) growth of f by each pair."""
        out = np.empty(len(elements))
        benefits.gains.select(8 * len(elements), chunked=True)(self.model, state, elements, out)
        return out

    def add(self, state: Standing, element: int) -> None:
        """Place a task."""
        put = benefits.put.select(self.problem.n_tasks + self.problem.n_edges, chunked=True)
        put(self.model, state, *divmod(int(element), self.problem.n_devices))

    def independence(self) -> Allowed:
        """What may be placed beside what."""
        return Allowed(self)

    def place_all(self, *, lazy: bool = True, should_stop: Callable[[], bool] = lambda: False) -> Placed:
        """Standard greedy on all pairs; lazily it finds the same in less time (see `rounds`).

        `should_stop` is asked now and then, several times a second.
        """
        n = self.problem.n_tasks
        state, record = self.start(), make_record(n)
        queue = make_queue(self.model, state, self.problem.device_class)
        run = place_all.select(self._work, chunked=True)
        step = max(1, int(STEPS * n / self._work)) if n else 1
        placed, last = 0, 0
        while placed == last < n and not should_stop():
            last = min(last + (step if runs_compiled(run) else 1), n)
            placed = run(self.model, state, queue, record, lazy, placed, last)
        left = np.flatnonzero(state.topology.device[self.problem.order] < 0)
        stopped = placed == last < n
        return Placed(
            task=record.task[:placed],
            device=record.device[:placed],
            values=record.value[:placed],
            home=state.home,
            room=self.problem.capacity - state.used,
            stuck=int(self.problem.order[left[0]]) if len(left) and not stopped else None,
            stopped=stopped,
            evaluations=int(record.evaluations[0]),
        )

    @property
    def _work(self) -> int:
        """Elementary steps of greedy: every pair in every round, and who sees whom."""
        n = self.problem.n_tasks
        return 4 * n * n * self.problem.n_devices + n * (n + self.problem.n_edges)


class Allowed:
    """The placements that a model allows, as an `Independence` over its pairs.

    Every task on one device: a partition matroid, in which a pair that is not feasible is in no set. Where memory is
    limited, tasks share a group or are to be kept apart, it is none.
    """

    def __init__(self, of: PlacementModel) -> None:
        problem = of.problem
        self._of = of
        self.size = of.size
        limited = of.model.fullness != benefits.UNLIMITED_MEMORY and bool((problem.capacity < UNLIMITED).any())
        self.matroid = not limited and problem.n_groups == problem.n_tasks and not len(problem.separation)
        self.matroids = 1 if self.matroid else None

    def start(self) -> Standing:
        """Nothing placed."""
        return self._of.start()

    def copy(self, state: Standing) -> Standing:
        """A standing that may go on by itself."""
        return self._of.copy(state)

    def open(self, state: Standing, elements: Int) -> Bool:
        """(k,) whether each pair may be added."""
        out = np.empty(len(elements), dtype=np.bool_)
        benefits.allowed.select(8 * len(elements), chunked=True)(self._of.model, state, elements, out)
        return out

    def add(self, state: Standing, element: int) -> None:
        """Place a task."""
        benefits.take(self._of.model, state, *divmod(int(element), self._of.problem.n_devices))


def _model(problem: Problem, form: Form, settings: PlacementSettings, feasible: Bool | None) -> Model:
    allowed = (problem.group_feasible() if feasible is None else feasible)[problem.group]
    cost = np.where(allowed, problem.duration, math.inf).T.copy()
    apart_start, apart = group_separation(problem)
    tier_end, tier_ticks = parse_tiers(problem, settings.tiers)
    in_payload = problem.payload[problem.in_edge]
    source = problem.edge_source[problem.in_edge]
    return Model(
        graph=make_graph(problem),
        cost=cost,
        cap=np.full(problem.n_devices, time_capacity(problem, settings.cap)),
        group=problem.group,
        memory=group_memory(problem),
        member_start=np.searchsorted(np.sort(problem.group), np.arange(problem.n_groups + 1)).astype(np.int64),
        member=np.argsort(problem.group, kind="stable"),
        apart_start=apart_start,
        apart=apart,
        capacity=problem.capacity,
        tier_end=tier_end,
        tier_ticks=tier_ticks,
        out_payload=problem.payload,
        in_payload=in_payload,
        largest_input=_largest(problem.edge_target, problem.payload, problem.n_tasks),
        largest_output=_largest(source, in_payload, problem.n_tasks),
        latency=problem.latency,
        num=problem.byte_ticks_num,
        den=problem.byte_ticks_den,
        inside=form == "inside",
        parallelism=settings.parallelism,
        load=settings.load,
        communication=settings.communication,
        curve=CURVES[settings.curve],
        fullness=FULLNESS[settings.memory],
        knee=settings.knee,
        balance=settings.memory_balance,
    )


def _copied(arrays: Any) -> Any:
    """A named tuple of arrays, or of such tuples, with arrays of its own."""
    return type(arrays)(*(_copied(array) if isinstance(array, tuple) else array.copy() for array in arrays))


def time_capacity(problem: Problem, text: str) -> float:
    """i_cap in ticks."""
    if text == "total":
        longest = np.where(problem.feasible, problem.duration, 0).max(axis=1, initial=0)
        return max(float(longest.sum()), 1.0)
    try:
        amount = parse(text, TIME)
    except QuantityError as error:
        raise UsageError(f'setting cap: {error}, or "total"') from None
    ticks = amount.value if amount.bare else amount.value / problem.resolution
    if ticks <= 0:
        raise UsageError(f"setting cap: {text} is no time that a device could have; expected more than zero")
    if not 1 <= ticks <= UNLIMITED:  # beyond, benefits are no numbers any more
        tick = time_text(1, problem.resolution)
        raise UsageError(f"setting cap: {text} is out of range; expected one tick ({tick}) to 2**63 - 1 of them")
    return float(ticks)


def _largest(end: Int, payload: Int, n: int) -> Int:
    """(n,) the edge with the largest payload of those that end at each task, the first of equals; -1 for none."""
    largest = np.full(n, -1, dtype=np.int64)
    falling = np.lexsort((np.arange(len(end)), -payload, end))
    first = np.flatnonzero(np.diff(end[falling], prepend=-1))
    largest[end[falling[first]]] = falling[first]
    return largest
