"""Forward and backward passes over a part of a schedule: list scheduling that knows what follows each task.

A forward pass places the tasks again, in the order of their starts, each on the device with the least sum of its end
and of the ticks that follow it there, which are those of the last schedule. A backward pass does the same from the end:
it runs on the reversed graph, and what follows a task there are the ticks before it. Each pass uses the schedule of the
pass before, so a chain of passes settles on a schedule in which most tasks have the device that suits both sides.

Passes in both directions are the iterative technique of K. Y. Li, R. J. Willis (EJOR 56, 1992,
doi:10.1016/0377-2217(92)90320-9) and the forward-backward improvement of P. Tormos, A. Lova (Annals of Operations
Research 102, 2001, doi:10.1023/A:1010997814183) for project scheduling. Departures: tasks choose devices as well as
times, by the ticks that follow; a pass may add noise to durations; devices with which a task meets an `aim` count as
equal, and it takes the one on which it ends first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from placeopt import engine
from placeopt.model.arrays import Int
from placeopt.model.native import native

from ..._constructive.groups import Groups, grouped, with_homes
from .subproblem import Subproblem


@dataclass(frozen=True, slots=True, eq=False)
class Arrangement:
    """A solution of a subproblem in its own ticks: devices (k,), starts (k,), and the makespan."""

    device: Int
    start: Int
    value: int


class Passes:
    """Passes over one subproblem, each with the schedule of the pass before as its knowledge of what follows.

    Memory (under `peak` as in the subproblem), colocation, separation and feasible devices are respected; ports and
    deadlines are ignored. The loop is the engine's `passes.cpp`.

    Parameters
    ----------
    device, tail
        (k,) the devices of a schedule, and the ticks from the start of each task to the end.
    """

    def __init__(self, sub: Subproblem, device: Int, tail: Int, seed: int) -> None:
        self.span = sub.span
        self._passes = engine.Passes(
            native(sub.problem), _groups(sub), sub.head, sub.tail, device, tail, sub.span, seed % (2**31 - 2) + 1
        )

    @property
    def best(self) -> Arrangement | None:
        """The best arrangement so far, if it is shorter than the schedule at the start."""
        found = self._passes
        return Arrangement(found.device, found.start, found.span) if found.span < self.span else None

    def run(self, passes: int, noise: int, aim: int, stop: engine.Stop) -> None:
        """Make passes in alternating directions.

        Parameters
        ----------
        noise
            Random ticks are added to each duration when devices are compared, up to this many thousandths of it.
        aim
            Devices with which a task keeps a makespan of this many thousandths of the best one count as equal.
        """
        self._passes.run(passes, noise, aim, stop)


def _groups(sub: Subproblem) -> Groups:
    """Return the groups of a subproblem; those with a single allowed device have their home there."""
    groups = grouped(sub.problem)
    feasible = groups.feasible & sub.allowed
    home = np.where((feasible.sum(axis=1) == 1) & (groups.home < 0), feasible.argmax(axis=1), groups.home)
    return with_homes(replace(groups, feasible=feasible), home)
