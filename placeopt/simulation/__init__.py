"""What happens when a placement is executed: simulation, re-timing, and runs under noise.

Everything follows the problem's own execution model: one task at a time on a device, no
preemption, computation overlaps communication. With `contention: none` a transfer starts when its
producer ends. With `contention: port` a device sends one transfer at a time and receives one at a
time: transfers are booked when their producer ends, in the order of their edges, each at the
first tick at which both ports have served everything booked before. A transfer of zero ticks takes
its turn like any other, so that it never stands inside another's time on a port.

A task becomes ready when its last input has arrived, but not before its release time. Deadlines are not looked at: they
only tell whether what happened is allowed, which the verifier says.

Three disciplines decide which task a free device starts:

    fifo       the one that became ready first; ties by index
    priority   the ready one of highest priority; ties by index
    order      the next one of a given sequence, even if it must be waited for

At one tick, tasks end first, then tasks become ready, each by index, and a device takes its next;
under `priority` devices choose once all that is known. A task of zero ticks ends at its start.
FIFO is the simulator of GiPH (Hu et al. 2023, MLSys, doi:10.48550/arXiv.2305.14562, appendix B.5);
ticks are integers here, the makespan counts from tick 0, and ports and release times are added.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from placeopt.errors import UsageError
from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, check_schedule
from placeopt.simulation.evaluator import Evaluator, make_evaluator
from placeopt.simulation.loops import Case, Work, fifo_makespan, make_case, make_work
from placeopt.simulation.noise import MOST_RUNS, NoisyRuns, simulate_noisy
from placeopt.simulation.run import Discipline, Run, checked_placement

__all__ = [
    "MOST_RUNS",
    "Case",
    "Discipline",
    "Evaluator",
    "NoisyRuns",
    "Work",
    "fifo_makespan",
    "make_case",
    "make_evaluator",
    "make_work",
    "retime",
    "simulate",
    "simulate_noisy",
]


def simulate(
    problem: Problem,
    device: Sequence[int] | Int,
    *,
    discipline: Discipline = "fifo",
    priority: ArrayLike | None = None,
    order: ArrayLike | None = None,
) -> Schedule:
    """The schedule that a placement gives under a discipline, with its transfers where ports contend.

    Parameters
    ----------
    device
        (n,) device of each task.
    priority
        (n,) numbers for discipline "priority", the highest goes first.
    order
        (n,) numbers for discipline "order", such as the starts of a schedule: every device runs its
        tasks from the smallest to the largest. Ties fall as in `Problem.order`, a producer before
        its consumers.

    Raises
    ------
    UsageError
        If an array has the wrong length, a device does not exist or may not run its task, the
        discipline's numbers are missing or not numbers, or the order contradicts the precedence.
        Memory, colocation and separation are not looked at.
    """
    run = Run(problem, checked_placement(problem, device))
    run.prepare(discipline, priority, order, 1)
    run.execute()
    return run.schedule()


def retime(problem: Problem, schedule: Schedule) -> Schedule:
    """The earliest schedule with the same placement and sequences: never later than a valid one.

    Every device runs its tasks in the order of their starts, each no earlier than its release time. As every
    start is as early as the sequences allow, a deadline is kept where they can keep it, and else ignored.
    With ports, each serves its transfers in the order of the starts in `schedule.transfers`; without
    those, in the order in which they are booked. Ties: what takes zero ticks first, then as the tasks (a
    transfer as its producer) stand in `Problem.order`, then by edge.

    The starts only serve as an order and need not be valid: a task or transfer that is given an
    earlier start than one it depends on comes right after that one. Tasks and transfers of zero
    ticks that end up at one tick are put into the order of the ties, which may free others: that is
    repeated until nothing moves, so that re-timing twice changes nothing. O((n + e) log(n + e)) a
    round.

    Raises
    ------
    UsageError
        If an array has the wrong length, a device does not exist or may not run its task, or a
        transfer names an edge that does not exist.
    """
    check_schedule("retime", problem, schedule)
    run = Run(problem, checked_placement(problem, schedule.device))
    if schedule.transfers is not None:
        edges = schedule.transfers.edge
        if edges.shape != schedule.transfers.start.shape:
            raise UsageError(f"transfers: {edges.size} edges and {schedule.transfers.start.size} starts")
        if len(outside := edges[(edges < 0) | (edges >= problem.n_edges)]):
            raise UsageError(f"transfers: no edge {outside[0]}; expected an index from 0 to {problem.n_edges - 1}")
    given = not run.port or schedule.transfers is not None
    current = run.replayed(schedule) if given else run.booked_in_sequence(schedule)
    while run.zero_ticks:
        earlier = run.replayed(current)
        if np.array_equal(earlier.start, current.start):
            return earlier
        current = earlier
    return current
