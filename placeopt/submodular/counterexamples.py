"""Counterexamples to what a function claims: what they are, counting them, and making them small."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from placeopt.model.arrays import Float
from placeopt.submodular.functions import AnySetFunction
from placeopt.submodular.independence import grown

Sequence = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Counterexample:
    """What violates a property; plain data, in the order in which the sets were put together.

    Attributes
    ----------
    before, after
        S and T; for monotonicity both are S, and for the order they are the same set twice.
    element
        e; None for the order.
    gain_before, gain_after
        The gains of e at S and at T; for monotonicity twice the same; for the order the two values.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    element: int | None
    gain_before: float
    gain_after: float


Judge = Callable[[Sequence, Sequence, int | None], Counterexample | None]


@dataclass(slots=True)
class Tally:
    """Cases of one property, and the worst violation so far."""

    cases: int = 0
    violations: int = 0
    excess: float = 0.0
    worst: Counterexample | None = None

    def see(self, excess: Float, case: Callable[..., Counterexample]) -> None:
        """Count cases, violated where the excess is more than 0; NaN is no case. `case` names one by its place."""
        self.cases += int(np.count_nonzero(~np.isnan(excess)))
        over = np.nan_to_num(excess, nan=0.0) > 0
        if not over.any():
            return
        self.violations += int(np.count_nonzero(over))
        place = np.unravel_index(int(np.nanargmax(excess)), excess.shape)
        if excess[place] > self.excess:
            self.excess, self.worst = float(excess[place]), case(*(int(i) for i in place))

    def smallest(self, judge: Judge, should_stop: Callable[[], bool]) -> Counterexample | None:
        """The worst violation, made smaller until told to stop."""
        worst = self.worst
        if worst is None or should_stop():
            return worst
        return smaller(worst.before, worst.after, worst.element, judge, should_stop)


class Judges:
    """Whether a case is a counterexample."""

    def __init__(self, function: AnySetFunction, tolerance: float) -> None:
        self.function, self.tolerance = function, tolerance

    def slack(self, value: float, gains: Float) -> float:
        """What a violation among these must exceed."""
        return self.tolerance * max(abs(value), float(np.nanmax(np.abs(gains), initial=0.0)))

    def returns_fail(self, before: Sequence, after: Sequence, element: int | None) -> Counterexample | None:
        assert element is not None
        state = grown(self.function, after)
        at = np.array([element])
        early = float(self.function.gains(grown(self.function, before), at)[0])
        late = float(self.function.gains(state, at)[0])
        if late - early > self.slack(self.function.value(state), np.array([early, late])):
            return Counterexample(before, after, element, early, late)
        return None

    def sign_fails(self, before: Sequence, after: Sequence, element: int | None) -> Counterexample | None:
        assert element is not None
        state = grown(self.function, before)
        gain = float(self.function.gains(state, np.array([element]))[0])
        if -gain > self.slack(self.function.value(state), np.array([gain])):
            return Counterexample(before, after, element, gain, gain)
        return None

    def order_matters(self, before: Sequence, after: Sequence, element: int | None) -> Counterexample | None:
        one, other = (self.function.value(grown(self.function, sequence)) for sequence in (before, after))
        if abs(one - other) > self.slack(one, np.array([other])):
            return Counterexample(before, after, element, one, other)
        return None


def smaller(
    before: Sequence,
    after: Sequence,
    element: int | None,
    judge: Judge,
    should_stop: Callable[[], bool] = lambda: False,
) -> Counterexample | None:
    """A counterexample of which no element can be dropped, unless told to stop; large parts are tried first."""
    best = judge(before, after, element)
    size = len(after)
    while best is not None and size >= 1 and not should_stop():
        at, dropped = 0, False
        while at < len(best.after) and not should_stop():
            gone = set(best.after[at : at + size])
            less = [tuple(i for i in one if i not in gone) for one in (best.before, best.after)]
            found = judge(less[0], less[1], element)
            if found is None:
                at += size
            else:
                best, dropped = found, True
        # Once more with single elements, until none can be spared.
        size = size // 2 if size > 1 or not dropped else 1
    return best
