"""What a pass is: the protocol that ours and third parties' implement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """What a pass made of a problem, and the way between the two.

    Attributes
    ----------
    problem
        The smaller or easier problem.
    restore
        Maps a schedule of `problem` to one of the original. Every task of it is on a device that may run it; times
        may break rules, and then those of the result do.
    project
        Maps a schedule of the original to one of `problem`, to start from; None where it has no counterpart there.
    explanation
        What changed, in a clause for people.
    """

    problem: Problem
    restore: Callable[[Schedule], Schedule]
    project: Callable[[Schedule], Schedule | None]
    explanation: str

    def __repr__(self) -> str:
        return f"<Reduction to {self.problem!r}: {self.explanation}>"


@runtime_checkable
class Pass(Protocol):
    """A rewrite of problems; register its class under the entry point group `placeopt.passes`.

    Two more things a class may have, and need not: `gives_up`, a line on what is lost where it is not exact; and
    settings, by being a `placeopt.solver.Settings`, whose fields they are.

    Attributes
    ----------
    name
        As users give it: `--pass NAME`.
    exact
        Whether it keeps the optimum: same feasibility, same best value, and restored schedules keep their objective.
        Exact passes are repeated as long as that is worth it, others run once.
    summary
        One line.
    citation
        BibTeX of the paper it implements, empty for folklore.
    """

    name: ClassVar[str]
    exact: ClassVar[bool]
    summary: ClassVar[str]
    citation: ClassVar[str]

    def apply(self, problem: Problem) -> Reduction | None:
        """The reduction, or None where the pass has nothing to do."""
        ...
