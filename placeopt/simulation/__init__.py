"""Execute a placement: simulation, re-timing, and runs under noise.

The execution model is the problem's own. A device runs one task at a time without preemption, and computation overlaps
communication. With `contention: none`, a transfer starts when its producer ends. With `contention: port`, a device
sends one transfer at a time and receives one at a time; with `half_duplex`, it sends or receives one at a time.
Transfers are booked when their producer ends, in the order of their edges, at the first tick at which both ports have
served all earlier bookings. A transfer of zero ticks is booked like any other, so it never lies inside another transfer
on a port.

A task becomes ready when its last input has arrived, and no earlier than its release time. With memory tiers, it also
waits until its device has swapped. With setup times, a device that chose its next task is set up for it from the end of
the task before. Modules of `placeopt.model` define these rules (`placeopt.model.rules`). Deadlines have no effect; the
verifier checks them.

The discipline decides which task a free device starts:

    fifo       the task that became ready first; ties by index
    priority   the ready task of highest priority; ties by index
    order      the next task of a given sequence, even if the device must wait for it

At one tick, tasks end first, then tasks become ready, each by index, and then the device starts its next task; under
`priority`, devices choose after all events of the tick. A task of zero ticks ends at its start. FIFO is the simulator
of GiPH (Hu et al. 2023, MLSys, doi:10.48550/arXiv.2305.14562, appendix B.5), with integer ticks, makespans from tick 0,
ports and release times.
"""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, check_schedule
from placeopt.simulation.noise import MOST_RUNS, NoisyRuns, simulate_noisy
from placeopt.simulation.pipelines import PipelineRuns, repeated, run_pipeline
from placeopt.simulation.run import Discipline, Evaluator, Run, checked_placement, make_evaluator, prepared_run

__all__ = [
    "MOST_RUNS",
    "Discipline",
    "Evaluator",
    "NoisyRuns",
    "PipelineRuns",
    "make_evaluator",
    "retime",
    "run_pipeline",
    "simulate",
    "simulate_noisy",
]


def simulate(
    problem: Problem,
    device: Schedule | Sequence[int] | Int,
    *,
    discipline: Discipline | None = None,
    priority: ArrayLike | None = None,
    order: ArrayLike | None = None,
) -> Schedule:
    """The schedule of a placement under a discipline, including its transfers with port contention.

    Parameters
    ----------
    device
        (n,) device of each task; or a schedule, whose placement is executed.
    discipline
        By default "order" for a schedule, and "fifo" for devices, which state no order.
    priority
        (n,) numbers for discipline "priority"; the highest goes first. By default, the earliest start of the schedule.
    order
        (n,) numbers for discipline "order": every device runs its tasks by increasing number. Ties are broken as in
        `Problem.order`, a producer before its consumers. By default, devices and ports follow the order of the
        schedule, as in `retime`.

    Raises
    ------
    UsageError
        If an array has the wrong length, a device does not exist or may not run its task, the discipline's numbers are
        missing or invalid, the order contradicts the precedence, or the schedule is that of a pipeline, which
        `run_pipeline` executes. Memory, colocation and separation are not checked.
    """
    run = prepared_run("simulate", problem, device, discipline, priority, order)
    run.execute()
    return run.schedule()


def retime(problem: Problem, schedule: Schedule) -> Schedule:
    """The earliest schedule with the same placement and sequences; never later than a valid input.

    Every device runs its tasks in the order of their starts, each no earlier than its release time and the end of
    swapping. All starts are as early as the sequences allow, so deadlines are met if possible. Each port serves its
    transfers in the order of the starts in `schedule.transfers`, or, without those, in the order of booking. Ties: zero
    ticks first, then in `Problem.order` (a transfer as its producer), then by edge.

    Starts only define an order and may be invalid: a task or transfer that starts before one it depends on comes right
    after that one. Tasks and transfers of zero ticks that end up at one tick are sorted in the order of ties, which may
    allow earlier starts for others. This is repeated until nothing changes, so re-timing is idempotent. O((n + e) log(n
    + e)) per round.

    Raises
    ------
    UsageError
        If an array has the wrong length, a device does not exist or may not run its task, or a transfer names an edge
        that does not exist.
    """
    check_schedule("retime", problem, schedule)
    if problem.pipeline is not None:
        return repeated(problem, schedule)
    return Run(problem, checked_placement(problem, schedule.device)).retimed(schedule)
