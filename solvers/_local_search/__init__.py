"""The core of every search: schedules as an order and a placement, changed a little and timed again from there.

A state is a topological order of the tasks and a device for each group. Its schedule starts every task, in that order,
as soon as its device, its release and its data allow; under ports the transfers that a task waits for are booked when
its turn comes. The order may be that of the starts, so no schedule is out of reach that wastes no time.

    case        what stands still: the problem's arrays as kernels take them, and the weights of the objective
    state       what a search changes: order, placement, times, and sums over them kept up to date
    conversion  from a schedule to a state and back
    decoding    times from the first position that a change touches, given up once they are too late
    moving      a group to another device with all sums, a task to another place in the order; and back
    proposals   the moves of a search
    walk        moves tried and accepted at falling temperatures
    tabu        the best of some moves made each round, and not taken back for a while

Kernels read and write NamedTuples of arrays; all they need is allocated once. Compiled and plain code do the same.
"""

from .case import Case, make_case
from .conversion import current_schedule, load, make_state
from .state import State

__all__ = ["Case", "State", "current_schedule", "load", "make_case", "make_state"]
