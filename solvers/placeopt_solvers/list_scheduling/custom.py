"""A base class for list heuristics in Python: a subclass places the tasks in turn on a timeline of the engine."""

from __future__ import annotations

from typing import Any, ClassVar

from placeopt import engine
from placeopt.engine import Timeline, poll
from placeopt.model.native import native
from placeopt.model.problem import Problem

from .._constructive.construction import Build, Constructive, PartialSchedule
from .._constructive.groups import Groups

__all__ = ["ListHeuristic", "Timeline", "poll"]


class ListHeuristic(Constructive):
    """Base class: `place_tasks` fills a timeline; `Constructive` handles memory, groups, ports and dead ends."""

    insertion: ClassVar[bool] = True
    """Whether a task may start in a gap between other tasks of its device."""

    def place_tasks(self, line: Timeline, problem: Problem, settings: Any) -> int | None:
        """Place every task after its producers; return a task that no device can take, None if all are placed.

        A task can go to a device if `line.can_run(task, device)`; its group may have a home already. It would start at
        `line.earliest(task, device)`, and `line.place(task, device)` places it there. Call `poll` for each task, so
        that limits and Ctrl-C end the run. After a dead end it is called again, with homes for some groups.
        """
        raise NotImplementedError

    def builder(self, problem: Problem, settings: Any) -> Build:
        def build(groups: Groups) -> PartialSchedule:
            line = engine.Timeline(native(problem), groups, self.insertion)
            task = self.place_tasks(line, problem, settings)
            return PartialSchedule(line, None if task is None else int(problem.group[task]))

        return build
