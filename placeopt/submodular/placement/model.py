"""The placement models of Carbonari, Kodirov and Golub as functions for the maximisers.

A. Carbonari, N. Kodirov, M. Golub: TensorFlow job placement optimization as a submodular function maximization, 2017.
The ground set contains the pairs (j, i), task j on device i, as elements j m + i. The matroid is the partition by
tasks. `benefits` states the equations. `PlacementModel` provides the function to the maximisers and checks of
`placeopt.submodular`, and has its own greedy algorithm (`rounds`).

Departures from the paper where it is silent or contradicts itself:

1. Tasks are parallel if their dependencies are equal (two empty sets are), as in the text and the example of appendix
   6.1; the formula of PC_j states D_S[j] /= D_S[j'].
2. pf is one more than the number of parallel tasks on other devices, as in the example; section 2.2 states "= |P|".
3. b_ij is fixed when j is placed, as in the example. So f is a function of sequences, not of sets.
4. Equation 5 has the sign of equation 3; its b_ij = 2 - (c_ij - placed_i) / cap would favour loaded devices.
5. i_cap, "an arbitrarily large number", is by default the least one that admits all tasks on any device, as the proof
   requires. If c_ij + placed_i exceeds a smaller one, pf is 1, and g is the identity below zero.
6. The g per device of section 5 is a factor for the memory filled. For the form `outside`, in which F · pf counts, a
   device without enough memory is excluded instead of having no gain.
7. For transfers, an output counts once for each consumer, and the "largest" input is that with the most bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np

from placeopt.kernels import runs_compiled
from placeopt.model.arrays import Bool, Float, Int
from placeopt.model.problem import UNLIMITED, Problem, group_memory, group_separation
from placeopt.submodular.placement import benefits
from placeopt.submodular.placement.benefits import Model, PlacementState
from placeopt.submodular.placement.rounds import make_queue, make_record, place_all
from placeopt.submodular.placement.settings import PlacementSettings, parse_curves, parse_tiers, time_capacity
from placeopt.submodular.placement.topology import make_graph, make_topology

Form = Literal["inside", "outside"]
"""Position of the parallelism factor: inside the sum of benefits (section 2.2), or outside (section 2.3)."""

STEPS = 100_000_000
"""Elementary steps of compiled code between two calls of `should_stop`; plain Python calls it after each round."""

FULLNESS = {"unlimited": benefits.UNLIMITED_MEMORY, "step": benefits.STEP, "linear": benefits.LINEAR}


@dataclass(frozen=True, slots=True)
class Placed:
    """The result of greedy, with k placed tasks."""

    task: Int  # (k,) task placed in each round
    device: Int  # (k,) its device
    values: Float  # (k,) f after the round
    home: Int  # (g,) device of each group, -1 if not placed
    room: Int  # (m,) free bytes on each device
    stuck: int | None  # a task that fits on no device; None if all tasks are placed or greedy was stopped
    stopped: bool  # whether greedy was stopped before all tasks were placed
    evaluations: int  # number of pairs evaluated


class PlacementModel:
    """The function of a problem, a `SetFunction` over the pairs (task, device).

    Parameters
    ----------
    problem
        The problem. The first task placed of a colocation group places the group.
    form
        Position of the parallelism factor.
    settings
        See `PlacementSettings`.
    home
        (g,) devices of groups that are placed already, whose memory is reserved; -1 for the others.
    feasible
        (g, m) devices that each group may use; None: those of the problem.

    Raises
    ------
    UsageError
        If `cap`, `tiers` or `curve` is not valid.
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
        tiered = self.model.tier_end.shape[1] > 0
        modular = not settings.load and not settings.parallelism and not settings.communication and not tiered
        late = bool((self.model.cost[np.isfinite(self.model.cost)] > 2 * self.model.cap.max()).any())
        roomy = settings.memory == "step" and int(self.model.memory.sum()) <= int(problem.capacity.min())
        self.path_free = self.monotone = self.submodular = (
            modular and not late and (roomy or settings.memory == "unlimited") and not settings.memory_balance
        )

    def start(self) -> PlacementState:
        n, m, g = self.problem.n_tasks, self.problem.n_devices, self.problem.n_groups
        used = np.zeros(m, dtype=np.int64)
        given = self._home >= 0
        np.add.at(used, self._home[given], self.model.memory[given])
        state = PlacementState(
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
            locate_group = benefits.locate_group.select(len(np.flatnonzero(given)) * m * 100, chunked=True)
            for k in np.flatnonzero(given).tolist():
                locate_group(self.model, state, k, int(self._home[k]))
        return state

    def copy(self, state: PlacementState) -> PlacementState:
        return cast(PlacementState, _copied(state))

    def value(self, state: PlacementState) -> float:
        return benefits.value_of(self.model, state)

    def gains(self, state: PlacementState, elements: Int) -> Float:
        out = np.empty(len(elements))
        benefits.gains.select(8 * len(elements), chunked=True)(self.model, state, elements, out)
        return out

    def add(self, state: PlacementState, element: int) -> None:
        place_task = benefits.place_task.select(self.problem.n_tasks + self.problem.n_edges, chunked=True)
        place_task(self.model, state, *divmod(int(element), self.problem.n_devices))

    def independence(self) -> Allowed:
        """The placements that the problem and the settings allow."""
        return Allowed(self)

    def place_all(self, *, lazy: bool = True, should_stop: Callable[[], bool] = lambda: False) -> Placed:
        """Place all tasks by greedy on all pairs; lazy evaluation gives the same result in less time (see `rounds`).

        `should_stop` is called several times per second.
        """
        n = self.problem.n_tasks
        state, record = self.start(), make_record(n)
        queue = make_queue(self.model, state, self.problem.device_class)
        # Elementary steps: all pairs in each round, and the dependents of each task.
        work = 4 * n * n * self.problem.n_devices + n * (n + self.problem.n_edges)
        run = place_all.select(work, chunked=True)
        step = max(1, int(STEPS * n / work)) if n else 1
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


class Allowed:
    """The placements that a model allows, as an `Independence` over its pairs.

    It is a partition matroid with one device per task, in which pairs that are not feasible are in no set. It is not a
    matroid if memory is limited, tasks share a colocation group, or tasks must be separated.
    """

    def __init__(self, of: PlacementModel) -> None:
        problem = of.problem
        self._of = of
        self.size, self.start, self.copy = of.size, of.start, of.copy
        limited = of.model.fullness != benefits.UNLIMITED_MEMORY and bool((problem.capacity < UNLIMITED).any())
        self.matroid = not limited and problem.n_groups == problem.n_tasks and not len(problem.separation)
        self.matroids = 1 if self.matroid else None

    def open(self, state: PlacementState, elements: Int) -> Bool:
        out = np.empty(len(elements), dtype=np.bool_)
        benefits.mark_allowed.select(8 * len(elements), chunked=True)(self._of.model, state, elements, out)
        return out

    def add(self, state: PlacementState, element: int) -> None:
        benefits.occupy(self._of.model, state, *divmod(int(element), self._of.problem.n_devices))


def _model(problem: Problem, form: Form, settings: PlacementSettings, feasible: Bool | None) -> Model:
    allowed = (problem.group_feasible() if feasible is None else feasible)[problem.group]
    cost = np.where(allowed, problem.duration, math.inf).T.copy()
    apart_start, apart = group_separation(problem)
    tier_end, tier_ticks = parse_tiers(problem, settings.tiers)
    curve, piece_end, piece_slope = parse_curves(problem, settings.curve)
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
        curve=curve,
        piece_end=piece_end,
        piece_slope=piece_slope,
        fullness=FULLNESS[settings.memory],
        knee=settings.knee,
        balance=settings.memory_balance,
    )


def _copied(arrays: Any) -> Any:
    """A deep copy of a named tuple of arrays and of such tuples."""
    return type(arrays)(*(_copied(array) if isinstance(array, tuple) else array.copy() for array in arrays))


def _largest(end: Int, payload: Int, n: int) -> Int:
    """(n,) the edge with the largest payload that ends at each task, the first of equal ones; -1 if it has none."""
    largest = np.full(n, -1, dtype=np.int64)
    falling = np.lexsort((np.arange(len(end)), -payload, end))
    first = np.flatnonzero(np.diff(end[falling], prepend=-1))
    largest[end[falling[first]]] = falling[first]
    return largest
