"""The placement models of Carbonari, Kodirov and Golub as functions for the maximisers.

A. Carbonari, N. Kodirov, M. Golub: TensorFlow job placement optimization as a submodular function maximization, 2017.
The ground set contains the pairs (j, i), task j on device i, as elements j m + i. The matroid is the partition by
tasks. `PlacementModel` provides the function to the maximisers and checks of `placeopt.submodular`, and has its own
greedy algorithm. `engine/native/placement.cpp` has the equations and this algorithm, `topology.cpp` the parallel tasks.

Extensions of section 5: `fetched` is the time of transfers from and to tasks on other devices, `swapped` the time for
swapping to slower memory tiers, both in ticks. The gain of F is multiplied by a factor for the fill level of the
memory, which is 0 if the task does not fit. Unplaced tasks need an assumed device for transfers: a producer is assumed
on the device of its group, or else where its largest input comes from, recursively, and a consumer where its largest
output goes. Placing a task places its group, so the transfers of the complete group count.

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
from typing import Literal, NamedTuple

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Bool, Float, Int
from placeopt.model.native import native
from placeopt.model.problem import UNLIMITED, Problem, group_memory, group_separation
from placeopt.submodular.placement.settings import PlacementSettings, parse_curves, parse_tiers, time_capacity

Form = Literal["inside", "outside"]
"""Position of the parallelism factor: inside the sum of benefits (section 2.2), or outside (section 2.3)."""

FULLNESS = {"unlimited": 0, "step": 1, "linear": 2}
"""Effect of memory on gains: none; 0 if the task does not fit; linear decrease from the knee to 0 at capacity."""

PlacementState = engine.Placement


class Model(NamedTuple):
    """A problem and its settings as arrays: n tasks, e edges, g groups, m devices, k tiers, p pieces."""

    cost: Float  # (m, n) duration of each task on each device in ticks, infinite if not feasible
    cap: Float  # (m,) time capacity i_cap in ticks
    memory: Int  # (g,) bytes of each group
    member_start: Int  # (g + 1,) tasks of each group, as CSR
    member: Int  # (n,)
    apart_start: Int  # (g + 1,) groups to separate each group from, as CSR
    apart: Int
    tier_end: Int  # (m, k) end of each memory tier in bytes
    tier_ticks: Float  # (m, k) ticks for swapping one byte in each tier
    largest_input: Int  # (n,) the edge with each task's largest input, -1 if it has none
    largest_output: Int  # (n,) the place of each task's largest output among the in-edges, -1 if it has none
    key: Int  # (n,) random numbers: sets of tasks are compared by a hash
    inside: bool  # whether pf is inside the sum
    parallelism: bool  # whether pf counts
    load: bool  # whether placed_i counts
    communication: bool  # whether transfers count
    curve: Int  # (m,) the concave function g of each device: SQRT, LOG or LINEAR_PIECES
    piece_end: Float  # (m, p) where each linear piece of g ends, infinite for the last one
    piece_slope: Float  # (m, p) its slope
    fullness: int  # see `FULLNESS`
    knee: float  # fill level from which linear gains decrease
    balance: float  # share of the gain that a full device loses in addition


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
        self._rules = engine.PlacementRules(native(problem), self.model)
        tiered = self.model.tier_end.shape[1] > 0
        modular = not settings.load and not settings.parallelism and not settings.communication and not tiered
        late = bool((self.model.cost[np.isfinite(self.model.cost)] > 2 * self.model.cap.max()).any())
        roomy = settings.memory == "step" and int(self.model.memory.sum()) <= int(problem.capacity.min())
        self.path_free = self.monotone = self.submodular = (
            modular and not late and (roomy or settings.memory == "unlimited") and not settings.memory_balance
        )

    def start(self) -> PlacementState:
        return engine.Placement(self._rules, self._home)

    def copy(self, state: PlacementState) -> PlacementState:
        return state.copy()

    def value(self, state: PlacementState) -> float:
        return state.value

    def gains(self, state: PlacementState, elements: Int) -> Float:
        return state.gains(elements)

    def add(self, state: PlacementState, element: int) -> None:
        state.place(*divmod(int(element), self.problem.n_devices))

    def independence(self) -> Allowed:
        """The placements that the problem and the settings allow."""
        return Allowed(self)

    def place_all(self, *, lazy: bool = True, should_stop: Callable[[], bool] | None = None) -> Placed:
        """Place all tasks by greedy on all pairs; lazy evaluation gives the same result in less time."""
        state, stop = self.start(), engine.current_stop() if should_stop is None else engine.Stop(should_stop)
        task, device, values, evaluations, stopped = state.place_all(self._kinds(), lazy, stop)
        left = np.flatnonzero(state.device[self.problem.order] < 0)
        return Placed(
            task=task,
            device=device,
            values=values,
            home=state.home.copy(),
            room=self.problem.capacity - state.used,
            stuck=int(self.problem.order[left[0]]) if len(left) and not stopped else None,
            stopped=stopped,
            evaluations=evaluations,
        )

    def _kinds(self) -> Int:
        """(m,) device class, feasible tasks and g: empty devices of one kind are equivalent."""
        model = self.model
        alike = (self.problem.device_class, np.isfinite(model.cost), model.curve, model.piece_end, model.piece_slope)
        kind = np.unique(np.column_stack(alike), axis=0, return_inverse=True)[1]
        return kind.reshape(self.problem.n_devices).astype(np.int64)


class Allowed:
    """The placements that a model allows, as an `Independence` over its pairs.

    It is a partition matroid with one device per task, in which pairs that are not feasible are in no set. It is not a
    matroid if memory is limited, tasks share a colocation group, or tasks must be separated.
    """

    def __init__(self, of: PlacementModel) -> None:
        problem = of.problem
        self._of = of
        self.size, self.start, self.copy = of.size, of.start, of.copy
        limited = of.model.fullness != FULLNESS["unlimited"] and bool((problem.capacity < UNLIMITED).any())
        self.matroid = not limited and problem.n_groups == problem.n_tasks and not len(problem.separation)
        self.matroids = 1 if self.matroid else None

    def open(self, state: PlacementState, elements: Int) -> Bool:
        return state.open(elements)

    def add(self, state: PlacementState, element: int) -> None:
        state.occupy(*divmod(int(element), self._of.problem.n_devices))


def _model(problem: Problem, form: Form, settings: PlacementSettings, feasible: Bool | None) -> Model:
    allowed = (problem.group_feasible() if feasible is None else feasible)[problem.group]
    cost = np.where(allowed, problem.duration, math.inf).T.copy()
    apart_start, apart = group_separation(problem)
    tier_end, tier_ticks = parse_tiers(problem, settings.tiers)
    curve, piece_end, piece_slope = parse_curves(problem, settings.curve)
    return Model(
        cost=cost,
        cap=np.full(problem.n_devices, time_capacity(problem, settings.cap)),
        memory=group_memory(problem),
        member_start=np.searchsorted(np.sort(problem.group), np.arange(problem.n_groups + 1)).astype(np.int64),
        member=np.argsort(problem.group, kind="stable"),
        apart_start=apart_start,
        apart=apart,
        tier_end=tier_end,
        tier_ticks=tier_ticks,
        largest_input=_largest(problem.edge_target, problem.payload, problem.n_tasks),
        largest_output=_largest(
            problem.edge_source[problem.in_edge], problem.payload[problem.in_edge], problem.n_tasks
        ),
        key=np.random.default_rng(0).integers(1, 2**62, size=problem.n_tasks, dtype=np.int64),
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


def _largest(end: Int, payload: Int, n: int) -> Int:
    """(n,) the edge with the largest payload that ends at each task, the first of equal ones; -1 if it has none."""
    largest = np.full(n, -1, dtype=np.int64)
    falling = np.lexsort((np.arange(len(end)), -payload, end))
    first = np.flatnonzero(np.diff(end[falling], prepend=-1))
    largest[end[falling[first]]] = falling[first]
    return largest
