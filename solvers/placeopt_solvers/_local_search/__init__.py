"""The core of every search: incremental evaluation of an order and a placement.

A state is a topological order of the tasks and a device for each group. Its schedule starts every task, in that order,
as soon as its device, its release and its data allow. Under ports, the transfers to a task are booked at its turn. The
order may be that of the starts, so every schedule without unnecessary waiting can be reached.

    instance    the problem's arrays for kernels, and the weights of the objective
    state       order, placement, times, and sums that are updated incrementally
    decoding    times from the first position that a change affects
    moving      changes of the placement and the order, and how to reverse them
    proposals   the moves of a search
    walk        moves accepted at falling temperatures
    tabu        rounds of tabu search
    search      walkers on several threads, each with one cooling after the other
    strategies  the coolings of annealing and of iterated local search, and their tuning

Kernels read and write NamedTuples of arrays that are allocated once. Compiled and plain code give the same results.
"""

import numpy as np

from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, Transfers, edge_transfers, port_times, sequence

from .decoding import decode
from .instance import Instance, make_instance
from .moving import recompute
from .proposals import MODULUS
from .state import BEGUN, HELD, LONGEST, SEED, STEP, State

__all__ = ["Instance", "State", "current_schedule", "load", "make_instance", "make_state"]


def make_state(instance: Instance, problem: Problem, seed: int) -> State:
    """Return an empty state; `load` fills it."""
    n, m = problem.duration.shape
    g, e = problem.n_groups, problem.n_edges
    shift = max(2 * m - 1, 15).bit_length()
    count = -(-n >> shift)
    size = {"home": g, "best_home": g, "delay": e, "moved": LONGEST, "origin": LONGEST, "stamp": max(n, m, g)}
    size |= {"load": m, "room": m, "free": m}
    size |= {"arrive": e if instance.port else 0, "number": BEGUN + 1}
    shared = bool(instance.port and problem.shared.any())
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(State._fields, (n,)) | {name: (k,) for name, k in size.items()}
    shapes |= dict.fromkeys(("owner", "written", "sent"), (n, m) if shared else (0, 0))
    shapes |= dict.fromkeys(("freed", "time", "code"), (n,) if instance.peak else (0,))
    shapes |= {"level": (3, m) if instance.peak else (0, 0)}
    shapes |= dict.fromkeys(("marks", "old_marks"), (count + 1, 3 * m + 1))
    shapes |= dict.fromkeys(("latest", "late", "old_latest", "old_late"), (count,))
    arrays = {name: np.zeros(shape, dtype=np.int64) for name, shape in shapes.items()}
    arrays["send"], arrays["receive"] = port_times(problem)
    arrays["number"][STEP] = shift
    arrays["number"][SEED] = seed % (MODULUS - 1) + 1
    arrays["written"][...] = -1
    return State(**arrays | {"cost": np.array([0.0] * HELD + [np.inf])})


def load(problem: Problem, state: State, schedule: Schedule) -> None:
    """Give the state the placement of a schedule, and its order by starts."""
    state.order[:] = sequence(problem, schedule)
    state.home[problem.group] = schedule.device


def current_schedule(problem: Problem, instance: Instance, state: State) -> Schedule:
    """Return the schedule of a state, with recomputed times."""
    steps = problem.n_tasks + problem.n_edges
    recompute.select(steps)(instance, state)
    decode.select(steps)(instance, state, 0, np.inf)
    if not instance.timed:  # the state has no times
        timed = instance._replace(timed=True)
        decode.select(steps)(timed, state, 0, np.inf)
    transfers = None
    if instance.port:
        edges = np.flatnonzero(edge_transfers(problem, state.device) == np.arange(problem.n_edges))
        at = instance.slot[edges]
        transfers = Transfers(edges, state.arrive[at] - state.delay[at])
    return Schedule(state.device, state.end - state.ticks, transfers)
