"""Relocation costs: ticks to move each task from its current device to another and to start it there.

Y. Hu, C. Zhang, E. Andert, H. Singh, A. Shrivastava, J. Laudon, Y. Zhou, B. Iannucci, C. Joe-Wong: GiPH: Generalizable
placement learning for adaptive heterogeneous computing, MLSys 2023, arXiv:2305.14562, section 5.3: "The relocation cost
is defined to be the sum of the data migration time and startup time", divided "by the frequency of pipeline runs", as a
"single relocation may benefit future runs of the application".

    relocation[i, d] = 0                                       if task i is on device d now
                     = transfer(bytes_i, c, d) + startup[i, d]   if it is on device c now
                     = startup[i, d]                           if it is new, or its device is gone

Choices where the paper leaves one:

- A migration takes as long as a transfer of these bytes on the current network, latency included; 0 without bytes.
- Relocation times are added up, as if tasks moved one after the other.
- As in the paper, the static data of a task (table 2) is not counted: loading it is part of the start-up.
- A task whose device is gone starts up like a new one.
- The paper divides by a frequency without a unit. Here it is the number of runs until the next change.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.problem import Objective, Term, transfer_ticks

GONE = -1
"""Stands for the device of a task that is new, or whose device is gone."""


def relocation_ticks(
    current: Int, moved: Int, startup: Int, latency: Int, byte_ticks_num: Int, byte_ticks_den: Int
) -> Int:
    """(n, m) ticks to relocate each task to each device.

    Parameters
    ----------
    current
        (n,) the device of each task, or GONE.
    moved
        (n,) bytes that move with each task.
    startup
        (n, m) ticks to start it up on each device.
    latency, byte_ticks_num, byte_ticks_den
        (m, m), the links as in `Problem`.
    """
    ticks = np.array(startup, dtype=np.int64)
    here = np.flatnonzero(current != GONE)
    moving = here[moved[here] > 0]
    source = current[moving]
    ticks[moving] += transfer_ticks(
        moved[moving, None], latency[source], byte_ticks_num[source], byte_ticks_den[source]
    )
    ticks[here, current[here]] = 0
    return ticks


def shared_out(objective: Objective, runs: Fraction) -> Objective:
    """The objective with the weight of relocation divided by the number of runs that a placement serves."""
    return Objective(
        tuple(
            tuple(Term(t.metric, t.weight / runs) if t.metric == "relocation" else t for t in level)
            for level in objective.levels
        )
    )
