"""The protocol of passes, built-in and third-party."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from placeopt.model.arrays import Int
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """The result of a pass: the reduced problem, the mappings between both problems, and what changed, as a clause.

    `restore` maps a schedule of `problem` to the original. The schedule must use feasible devices. If its times break
    rules, the times of the result may break rules too. `project` maps a schedule of the original to `problem`, as a
    warm start; it returns None if there is no counterpart. `leader` (n,) is, for each task of the original, the task of
    `problem` whose device `restore` gives it, -1 for none; None if both problems have the same tasks, or if unknown.
    `label` (n,) is the cluster that the task is part of; None unless the pass contracts clusters.
    """

    problem: Problem
    restore: Callable[[Schedule], Schedule]
    project: Callable[[Schedule], Schedule | None]
    explanation: str
    leader: Int | None = None
    label: Int | None = None

    def __repr__(self) -> str:
        return f"<Reduction to {self.problem!r}: {self.explanation}>"


@runtime_checkable
class Pass(Protocol):
    """A rewrite of problems; register its class under the entry point group `placeopt.passes`.

    A class may also define `gives_up`, a line on what an inexact pass loses. It may have settings: it then derives from
    `placeopt.protocol.Settings`, and its fields are the settings.

    Attributes
    ----------
    name
        The name in `--pass NAME`.
    exact
        Whether the pass keeps the optimum: same feasibility, same best value, and restored schedules keep their
        objective value. Exact passes are repeated while that is worthwhile; other passes run once.
    summary
        One line.
    citation
        BibTeX of the paper, empty for folklore.
    """

    name: ClassVar[str]
    exact: ClassVar[bool]
    summary: ClassVar[str]
    citation: ClassVar[str]

    def apply(self, problem: Problem) -> Reduction | None:
        """The reduction, or None if the pass changes nothing."""
        ...
