"""Parameters of large neighbourhood search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Tuning:
    """Parameters; `benchmarks/gaps.py --solver lns` measures their effect."""

    share: float = 0.85  # of the time limit for which one worker plans work; it ends by its work, not by the clock
    start: float = 0.8  # seconds of it before the search: loading OR-Tools
    reading: float = 2e-5  # seconds of it before the search per task and edge: heuristics
    least: float = 0.3  # least share of the time limit for the search
    limit: float = 0.04  # deterministic time for a neighbourhood
    growth: float = 1 / 25  # its relative increase per failure since the last gain
    longest: float = 6.0  # its largest factor
    per_work: float = 8.0  # seconds of a unit of deterministic time
    per_variable: float = 1.5e-4  # seconds of a variable of a model
    per_step: float = 1e-6  # seconds of a task or edge decoded
    per_trial: float = 0.012  # seconds of any trial
    larger: float = 1.05  # factor of the size of a kind after a repeated failure that was solved to the end
    smaller: float = 0.95  # factor of the size of a kind after a neighbourhood that was not solved to the end
    memory: float = 0.9  # weight of a kind's former rate at each trial
    exploration: float = 0.4  # share of neighbourhoods whose kind is drawn at random
    fewest: int = 6  # least number of free tasks
    first_size: Mapping[str, int] = field(default_factory=lambda: {"time": 25, "devices": 30, "critical": 20})
    span: int = 240  # largest number of tasks in a neighbourhood, fixed ones included: the size of the model
    drawn: int = 3  # neighbourhoods drawn, of which one is tried
    idle: int = 3  # identical idle devices in a subproblem at most: each needs a literal per task


TUNING = Tuning()
