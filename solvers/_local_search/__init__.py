"""The core of every search: incremental evaluation of an order and a placement.

A state is a topological order of the tasks and a device for each group. Its schedule starts every task, in that order,
as soon as its device, its release and its data allow. Under ports, the transfers to a task are booked at its turn. The
order may be that of the starts, so every schedule without unnecessary waiting can be reached.

    instance    the problem's arrays for kernels, and the weights of the objective
    state       order, placement, times, and sums that are updated incrementally
    conversion  from a schedule to a state and back
    decoding    times from the first position that a change affects
    moving      changes of the placement and the order, and how to reverse them
    proposals   the moves of a search
    walk        moves accepted at falling temperatures
    tabu        rounds of tabu search
    search      walkers on several threads, each with one cooling after the other
    strategies  the coolings of annealing and of iterated local search, and their tuning

Kernels read and write NamedTuples of arrays that are allocated once. Compiled and plain code give the same results.
"""

from .conversion import current_schedule, load, make_state
from .instance import Instance, make_instance
from .state import State

__all__ = ["Instance", "State", "current_schedule", "load", "make_instance", "make_state"]
