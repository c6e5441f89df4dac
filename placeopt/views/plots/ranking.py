"""Which solvers of a performance profile, the best first, a picture tells apart, and up to which ratio it goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

NAMED = 14
"""Solvers up to which each has a colour in a picture; of more, the `LEADING` first have one, the others are grey."""
LEADING = 10
WORST = 100.0
"""Ratios up to which a picture of a profile goes."""

Steps = Sequence[tuple[float, float]]


def worst_shown(profile: Mapping[str, Steps]) -> float:
    """The largest ratio that a profile shows."""
    return min(max((ratio for steps in profile.values() for ratio, _ in steps), default=1.0) * 1.02, WORST) or 1.0


def leaders(profile: Mapping[str, Steps]) -> tuple[str, ...]:
    """The solvers to be told apart in a picture, in the order of the profile."""
    found = tuple(profile)
    return found if len(found) <= NAMED else found[:LEADING]
