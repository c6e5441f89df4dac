"""Solvers by their performance profiles: in the order in which pictures and pages give them colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log

NAMED = 14
"""Solvers up to which each has a colour in a picture; of more, the `LEADING` best have one, the others are grey."""
LEADING = 10
WORST = 100.0
"""Ratios up to which a picture of a profile goes."""

Steps = Sequence[tuple[float, float]]


def area(steps: Steps, worst: float) -> float:
    """Of the unit square under a profile, the part below its line, the ratio from 1 to `worst` on a log axis."""
    total, share, before = 0.0, 0.0, 1.0
    for ratio, reached in steps:
        if ratio > worst:
            break
        total += share * log(max(ratio, 1.0) / before)
        share, before = reached, max(ratio, 1.0)
    return (total + share * log(worst / before)) / log(worst) if worst > 1 else share


def worst_shown(profile: Mapping[str, Steps]) -> float:
    """The largest ratio that a profile shows."""
    return min(max((ratio for steps in profile.values() for ratio, _ in steps), default=1.0) * 1.02, WORST) or 1.0


def ranked(profile: Mapping[str, Steps]) -> tuple[str, ...]:
    """The solvers, those with the largest areas under their profiles first; ties in the given order."""
    worst = worst_shown(profile)
    return tuple(sorted(profile, key=lambda solver: -area(profile[solver], worst)))


def leaders(profile: Mapping[str, Steps]) -> tuple[str, ...]:
    """The solvers to be told apart in a picture, the best first."""
    found = ranked(profile)
    return found if len(found) <= NAMED else found[:LEADING]
