"""Looking for counterexamples to what a function claims.

    diminishing returns   f(S + e) - f(S) >= f(T + e) - f(T) for S in T, e not in T
    monotonicity          f(S + e) - f(S) >= 0
    order                 f of a set is the same in whatever order it was put together

Random sequences are grown, as long as they stay independent, and the gains of some elements are asked for at some of
their prefixes S, ..., T. T continues the sequence S, which is what a function on sequences needs; of a set function all
pairs of sets are found so. The order is looked at by putting the longest T together in another order. Small ground sets
are gone through completely: all sequences of up to 6 elements, and all sets of up to 12 if the function claims to be
one on sets; all sequences of larger ones if asked for. No counterexample among samples proves nothing; one found is
certain, up to the tolerance.

The worst counterexample is made smaller: elements of S and T are dropped as long as what is left still is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from placeopt.model.arrays import Float
from placeopt.submodular.counterexamples import Counterexample, Judge, Judges, Sequence, Tally
from placeopt.submodular.functions import AnySetFunction
from placeopt.submodular.independence import AnyIndependence, grown, in_order
from placeopt.submodular.matroids import Uniform

ALL_SEQUENCES = 6
"""Ground sets up to that size have all their sequences looked at: 1957."""
ALL_SETS = 12
"""Ground sets up to that size have all their sets looked at: 4096."""
PREFIXES = 12
"""Prefixes of a random sequence at which gains are asked for."""
ELEMENTS = 32
"""Elements whose gains are asked for along a random sequence."""


@dataclass(frozen=True, slots=True)
class Check:
    """What was found out about one property.

    Attributes
    ----------
    claimed
        Whether the function claims it.
    cases, violations
        How many comparisons were made, and how many of them failed by more than the tolerance.
    worst
        The one that failed by most, made smaller; None if none failed.
    exhaustive
        Whether these were all cases there are.
    """

    claimed: bool
    cases: int
    violations: int
    worst: Counterexample | None
    exhaustive: bool

    @property
    def refuted(self) -> bool:
        """Whether the function does not have the property."""
        return self.violations > 0

    @property
    def proved(self) -> bool:
        """Whether it has it, as all cases were looked at."""
        return self.exhaustive and self.violations == 0


@dataclass(frozen=True, slots=True)
class Checks:
    """What was found out about a function; `samples` is how many random sequences were grown for it."""

    submodular: Check
    monotone: Check
    path_free: Check
    samples: int

    @property
    def refuted(self) -> bool:
        """Whether there is a counterexample to anything, claimed or not."""
        return any(check.refuted for check in (self.submodular, self.monotone, self.path_free))

    @property
    def honest(self) -> bool:
        """Whether nothing that the function claims was refuted."""
        return not any(check.claimed and check.refuted for check in (self.submodular, self.monotone, self.path_free))


def check_submodular(
    function: AnySetFunction,
    samples: int = 1000,
    seed: int = 0,
    independence: AnyIndependence | None = None,
    tolerance: float = 1e-9,
    longest: int | None = None,
    exhaustive: bool = False,
    should_stop: Callable[[], bool] = lambda: False,
) -> Checks:
    """Counterexamples to diminishing returns, monotonicity and freedom of order.

    Parameters
    ----------
    function
        What to look at, whatever it claims.
    samples
        How many random sequences to grow; each gives up to some 2,000 comparisons.
    seed
        Of the sequences.
    independence
        Only sets that are independent are looked at, T + e among them; None for all sets.
    tolerance
        A violation is larger than that part of the values and gains concerned.
    longest
        Elements that a random sequence has at most, for functions whose `add` takes long; None for as many as there
        can be.
    exhaustive
        Go through all independent sequences however many there are, instead of `samples` of them.
    should_stop
        Asked before every sequence, and before a counterexample is made smaller still; once true, what was found until
        then is returned.

    Raises
    ------
    ValueError
        If samples or longest are fewer than 1, the tolerance is negative, or the ground sets differ in size.
    """
    if samples < 1:
        raise ValueError(f"samples {samples}: expected 1 or more")
    if longest is not None and longest < 1:
        raise ValueError(f"longest {longest}: expected 1 or more")
    if tolerance < 0:
        raise ValueError(f"tolerance {tolerance}: expected 0 or more")
    family = Uniform(function.size, function.size) if independence is None else independence
    if family.size != function.size:
        raise ValueError(
            f"the function has {function.size} elements and the independence {family.size}: expected as many"
        )
    search = _Search(function, family, tolerance, longest, should_stop)
    sequences = exhaustive or function.size <= ALL_SEQUENCES
    sets = not sequences and function.path_free and function.size <= ALL_SETS
    if sequences:
        sequences = search.all_sequences()
    elif sets:
        search.all_sets()
        search.sequences(samples, np.random.default_rng(seed), gains=False)
    else:
        search.sequences(samples, np.random.default_rng(seed), gains=True)
    judges = search.judges

    def check(claimed: bool, tally: Tally, judge: Judge, exhaustive: bool) -> Check:
        return Check(claimed, tally.cases, tally.violations, tally.smallest(judge, should_stop), exhaustive)

    return Checks(
        check(function.submodular, search.returns, judges.returns_fail, sequences or sets),
        check(function.monotone, search.signs, judges.sign_fails, sequences or sets),
        check(function.path_free, search.orders, judges.order_matters, sequences),
        search.samples,
    )


class _Search:
    def __init__(
        self,
        function: AnySetFunction,
        family: AnyIndependence,
        tolerance: float,
        longest: int | None,
        should_stop: Callable[[], bool],
    ) -> None:
        self.function, self.family, self.judges = function, family, Judges(function, tolerance)
        self.longest, self.should_stop, self.samples = longest, should_stop, 0
        self.slack = self.judges.slack
        self.returns, self.signs, self.orders = Tally(), Tally(), Tally()

    def all_sequences(self) -> bool:
        """Compare every sequence with every one that it continues, and with the first that has its elements.

        Whether it came to the end.
        """
        first: dict[Sequence, tuple[Sequence, float]] = {}
        above: list[tuple[Sequence, Float]] = []
        for sequence, value, gains in self.descent(ordered=False):
            if self.should_stop():
                return False
            del above[len(sequence) :]
            slack = self.slack(value, gains)
            self.signs.see(-gains - slack, lambda e, s=sequence, g=gains: _gain(s, s, e, g[e], g[e]))
            for before, earlier in above:
                self.returns.see(
                    gains - earlier - self.slack(value, earlier),
                    lambda e, s=before, t=sequence, g=earlier, h=gains: _gain(s, t, e, g[e], h[e]),
                )
            above.append((sequence, gains))
            other, known = first.setdefault(tuple(sorted(sequence)), (sequence, value))
            if other != sequence:
                excess = np.array([abs(value - known) - self.slack(value, np.array([known]))])
                self.orders.see(excess, lambda _, s=other, t=sequence, f=known, g=value: _gain(s, t, None, f, g))
        return True

    def all_sets(self) -> None:
        """Compare every set with every one that lacks one of its elements: from these, all others follow."""
        n = self.function.size
        table = np.full((2**n, n), np.nan)
        slack = np.zeros((2**n, 1))
        for sequence, value, gains in self.descent(ordered=True):
            key = sum(1 << i for i in sequence)
            table[key], slack[key] = gains, self.slack(value, gains)
        self.signs.see(
            -table - slack,
            lambda s, e: _gain(_members(s), _members(s), e, float(table[s, e]), float(table[s, e])),
        )
        for i in range(n):
            larger = np.flatnonzero(np.arange(2**n) >> i & 1)
            smaller = larger ^ (1 << i)
            excess = table[larger] - table[smaller] - np.maximum(slack[larger], slack[smaller])
            self.returns.see(
                excess,
                lambda row, e, s=smaller, t=larger: _gain(
                    _members(int(s[row])), _members(int(t[row])), e, table[s[row], e], table[t[row], e]
                ),
            )

    def descent(self, *, ordered: bool) -> Iterator[tuple[Sequence, float, Float]]:
        """Every independent sequence (only the rising ones, if `ordered`) before those that continue it.

        With its value and the gains (n,) of all elements, NaN where one is closed or in it.
        """
        n = self.function.size
        stack: list[tuple[Sequence, Any, Any]] = [((), self.function.start(), self.family.start())]
        while stack:
            sequence, state, independent = stack.pop()
            outside = np.delete(np.arange(n), sequence)
            free = outside[self.family.open(independent, outside)]
            gains = np.full(n, np.nan)
            gains[free] = self.function.gains(state, free)
            yield sequence, self.function.value(state), gains
            for element in free[::-1].tolist():
                if not (ordered and sequence and element < sequence[-1]):
                    longer, wider = self.function.copy(state), self.family.copy(independent)
                    self.function.add(longer, element)
                    self.family.add(wider, element)
                    stack.append(((*sequence, element), longer, wider))

    def sequences(self, samples: int, rng: np.random.Generator, *, gains: bool) -> None:
        """Compare prefixes of random sequences (if `gains`), and each sequence with another order of it."""
        n = self.function.size
        limit = n if self.longest is None else self.longest
        # Gains are asked for beside the sequence: one element at least must be left.
        most = min(len(in_order(self.family, np.arange(n), limit + gains)) - gains, limit)
        least = 0 if gains else 1
        for _ in range(samples if most >= least else 0):
            if self.should_stop():
                break
            length = int(rng.integers(least, most + 1))
            sequence = tuple(in_order(self.family, rng.permutation(n), length).tolist())
            self.samples += 1
            value = self.along(sequence, rng) if gains else self.function.value(grown(self.function, sequence))
            if len(sequence) > 1:
                other = tuple(rng.permutation(sequence).tolist())
                found = self.function.value(grown(self.function, other))
                excess = np.array([abs(found - value) - self.slack(value, np.array([found]))])
                self.orders.see(excess, lambda _, s=sequence, t=other, f=value, g=found: _gain(s, t, None, f, g))

    def along(self, sequence: Sequence, rng: np.random.Generator) -> float:
        """Compare the prefixes of a sequence; its value."""
        outside = np.delete(np.arange(self.function.size), sequence)
        free = outside[self.family.open(grown(self.family, sequence), outside)]
        elements = np.sort(rng.choice(free, min(len(free), ELEMENTS), replace=False))
        inner = rng.permutation(len(sequence))[: PREFIXES - 1].tolist()
        lengths = sorted({*inner, len(sequence)})
        rows = []
        state = self.function.start()
        for length, element in enumerate((*sequence, -1)):
            if length in lengths:
                rows.append(self.function.gains(state, elements))
            if element >= 0:
                self.function.add(state, element)
        value = self.function.value(state)
        table = np.array(rows)
        slack = self.slack(value, table)
        prefixes = [sequence[:length] for length in lengths]

        def case(i: int, j: int, e: int) -> Counterexample:
            return _gain(prefixes[i], prefixes[j], int(elements[e]), table[i, e], table[j, e])

        self.signs.see(-table - slack, lambda i, e: case(i, i, e))
        excess = table[None, :] - table[:, None] - slack
        excess[np.tril_indices(len(lengths))] = np.nan
        self.returns.see(excess, case)
        return value


def _gain(before: Sequence, after: Sequence, element: int | None, early: float, late: float) -> Counterexample:
    return Counterexample(before, after, element, float(early), float(late))


def _members(key: int) -> Sequence:
    return tuple(i for i in range(key.bit_length()) if key >> i & 1)
