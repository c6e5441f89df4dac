"""Parameters of training. No PyTorch, as files of weights contain them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from placeopt.errors import UsageError, suggestion

Fault = Literal["undiscounted", "late-baseline", "repeated-cases", "placeto-returns"]
"""Faults of the released code of GiPH in training, which `Trainer` can reproduce.

undiscounted      the factor gamma^t of the gradient is absent
late-baseline     the baseline b_t contains r_t
repeated-cases    every evaluation resets the random numbers, so that the same problems follow each other again
placeto-returns   Placeto's returns are accumulated in the wrong direction, and rewards leak into the next episode
"""
FAULTS: tuple[Fault, ...] = get_args(Fault)

MOST_SEED = 2**63 - 1
"""Largest seed that PyTorch accepts."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Parameters of training. The defaults are those of the paper."""

    episodes: int = 200
    """Number of episodes."""
    steps: float = 2.0
    """Moves of an episode for each task."""
    batch: int = 1
    """Episodes for each update of the weights."""
    peers: int = 1
    """Episodes of an update that share a problem and a first placement; divides `batch`. 1: the paper's baseline."""
    gamma: float = 0.97
    """Discount factor."""
    rate: float = 0.01
    """Learning rate of Adam."""
    noise: float = 0.0
    """Noise of durations and transfer times."""
    every: int = 5
    """Episodes between two evaluations."""
    cases: int = 20
    """Problems of an evaluation."""
    seed: int = 0
    """Seed of all random numbers."""
    faults: frozenset[Fault] = frozenset()
    """Faults of the released code to reproduce."""

    def __post_init__(self) -> None:
        for name, least in (("episodes", 0), ("batch", 1), ("peers", 1), ("every", 1), ("cases", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise UsageError(f"{name}: {getattr(self, name)} is too small; expected at least {least}")
        if self.seed > MOST_SEED:
            raise UsageError(f"seed: {self.seed} is too large; expected at most {MOST_SEED}")
        for name, most in (("gamma", 1.0), ("rate", 1e3), ("steps", 1e6)):
            if not 0 < getattr(self, name) <= most:
                raise UsageError(
                    f"{name}: {getattr(self, name)} is out of range; expected more than 0, at most {most:g}"
                )
        if not 0 <= self.noise < 1:
            raise UsageError(f"noise: {self.noise} is out of range; expected a share from 0 to less than 1")
        if self.batch % self.peers:
            raise UsageError(f"batch: {self.batch} is not a multiple of peers, {self.peers}")
        for fault in self.faults:
            if fault not in FAULTS:
                known = ", ".join(FAULTS)
                raise UsageError(f"unknown fault {fault}{suggestion(fault, FAULTS)}; expected one of {known}")
