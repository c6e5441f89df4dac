"""Search for counterexamples to the claims of a function.

    diminishing returns   f(S + e) - f(S) >= f(T + e) - f(T) for S ⊆ T and e not in T
    monotonicity          f(S + e) - f(S) >= 0
    order                 f does not depend on the order in which the elements of S were added

Method. Random independent sequences are grown, and the gains of some elements are computed at some prefixes S, ..., T.
Each T continues the sequence S, as a function of sequences requires; for set functions, all pairs S ⊆ T occur this way.
For the order, the longest T is built a second time in another order. Small ground sets are enumerated: all sequences
of up to 6 elements, and all sets of up to 12 elements if the function claims to be path free. `exhaustive` enumerates
all sequences of larger ones. A counterexample is certain up to the tolerance. Samples without one prove nothing.

The worst counterexample is reduced: elements of S and T are removed as long as the rest is still a counterexample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from placeopt.model.arrays import Float
from placeopt.submodular.functions import AnySetFunction
from placeopt.submodular.independence import AnyIndependence, Uniform, maximal_subset, state_of
from placeopt.submodular.results import check_sizes

ALL_SEQUENCES = 6
"""Largest ground set of which all sequences are enumerated: 1957."""
ALL_SETS = 12
"""Largest ground set of which all sets are enumerated: 4096."""
PREFIXES = 12
"""Maximum number of prefixes of a random sequence at which gains are computed."""
ELEMENTS = 32
"""Maximum number of elements whose gains are computed along a random sequence."""

Elements = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A violation of a property; sets are listed in the order in which their elements were added."""

    before: Elements
    after: Elements
    """S and T. For monotonicity, both are S; for the order, both are the same set."""
    element: int | None
    """e; None for the order."""
    gain_before: float
    gain_after: float
    """The gains of e at S and at T. For monotonicity, both are equal; for the order, these are the two values."""


Recheck = Callable[[Elements, Elements, int | None], Counterexample | None]
"""Recomputes a case (before, after, element) and returns it if it is a counterexample."""


@dataclass(frozen=True, slots=True)
class Check:
    """Findings on one property."""

    claimed: bool
    """Whether the function claims it."""
    cases: int
    violations: int
    """Number of comparisons, and of those that failed by more than the tolerance."""
    worst: Counterexample | None
    """The largest violation, reduced; None if there is none."""
    exhaustive: bool
    """Whether all cases were compared."""

    @property
    def refuted(self) -> bool:
        """Whether the function does not have the property."""
        return self.violations > 0

    @property
    def proved(self) -> bool:
        """Whether the function has the property, because all cases were compared."""
        return self.exhaustive and self.violations == 0


@dataclass(frozen=True, slots=True)
class Checks:
    """Findings on the three properties of a function; `samples` is the number of random sequences grown."""

    submodular: Check
    monotone: Check
    path_free: Check
    samples: int

    @property
    def refuted(self) -> bool:
        """Whether there is a counterexample to any property, claimed or not."""
        return any(check.refuted for check in (self.submodular, self.monotone, self.path_free))

    @property
    def claims_hold(self) -> bool:
        """Whether no claim of the function is refuted."""
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
    """Search for counterexamples to diminishing returns, monotonicity, and independence of order.

    Parameters
    ----------
    function
        The function to check, regardless of its claims.
    samples
        Number of random sequences; each yields at most about 2,000 comparisons.
    seed
        Seed of the sequences.
    independence
        Only independent sets are compared, including T + e; None: all sets.
    tolerance
        Violations up to this share of the values and gains concerned are ignored.
    longest
        Maximum length of a random sequence, for functions with a slow `add`; None: no limit.
    exhaustive
        Enumerate all independent sequences, regardless of their number, instead of `samples` random ones.
    should_stop
        Called before each sequence and each reduction of a counterexample. If true, the findings so far are returned.

    Raises
    ------
    ValueError
        If samples or longest is less than 1, the tolerance is negative, or the ground sets differ in size.
    """
    for name, number in (("samples", samples), ("longest", longest)):
        if number is not None and number < 1:
            raise ValueError(f"{name} {number}: expected 1 or more")
    if tolerance < 0:
        raise ValueError(f"tolerance {tolerance}: expected 0 or more")
    family = Uniform(function.size, function.size) if independence is None else independence
    check_sizes(function, family)
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

    def check(claimed: bool, tally: _Tally, recheck: Recheck, exhaustive: bool) -> Check:
        worst = tally.worst
        if worst is not None and not should_stop():
            worst = reduced(worst.before, worst.after, worst.element, recheck, should_stop)
        return Check(claimed, tally.cases, tally.violations, worst, exhaustive)

    return Checks(
        check(function.submodular, search.returns, search.recheck_returns, sequences or sets),
        check(function.monotone, search.signs, search.recheck_sign, sequences or sets),
        check(function.path_free, search.orders, search.recheck_order, sequences),
        search.samples,
    )


@dataclass(slots=True)
class _Tally:
    """The cases of one property and the worst violation so far."""

    cases: int = 0
    violations: int = 0
    excess: float = 0.0
    worst: Counterexample | None = None

    def record(self, excess: Float, case: Callable[..., Counterexample]) -> None:
        """Count the cases of an array: violated if > 0, absent if NaN; `case` builds one from its indices."""
        self.cases += int(np.count_nonzero(~np.isnan(excess)))
        over = np.nan_to_num(excess, nan=0.0) > 0
        if not over.any():
            return
        self.violations += int(np.count_nonzero(over))
        place = np.unravel_index(int(np.nanargmax(excess)), excess.shape)
        if excess[place] > self.excess:
            self.excess, self.worst = float(excess[place]), case(*(int(i) for i in place))


@dataclass(slots=True)
class _Search:
    function: AnySetFunction
    family: AnyIndependence
    tolerance: float
    longest: int | None
    should_stop: Callable[[], bool]
    samples: int = 0
    returns: _Tally = field(default_factory=_Tally)
    signs: _Tally = field(default_factory=_Tally)
    orders: _Tally = field(default_factory=_Tally)

    def slack(self, value: float, gains: Float) -> float:
        """The threshold that a violation among these numbers must exceed."""
        return self.tolerance * max(abs(value), float(np.nanmax(np.abs(gains), initial=0.0)))

    def all_sequences(self) -> bool:
        """Compare each sequence with all its prefixes, and with the first sequence of the same elements.

        Returns whether the enumeration is complete.
        """
        first: dict[Elements, tuple[Elements, float]] = {}
        above: list[tuple[Elements, Float]] = []
        for sequence, value, gains in self.descent(ordered=False):
            if self.should_stop():
                return False
            del above[len(sequence) :]
            slack = self.slack(value, gains)
            self.signs.record(-gains - slack, lambda e, s=sequence, g=gains: _case(s, s, e, g[e], g[e]))
            for before, earlier in above:
                self.returns.record(
                    gains - earlier - self.slack(value, earlier),
                    lambda e, s=before, t=sequence, g=earlier, h=gains: _case(s, t, e, g[e], h[e]),
                )
            above.append((sequence, gains))
            other, known = first.setdefault(tuple(sorted(sequence)), (sequence, value))
            if other != sequence:
                self.record_order(other, sequence, known, value)
        return True

    def all_sets(self) -> None:
        """Compare each set with those that lack one of its elements; the other cases follow by transitivity."""
        n = self.function.size
        table = np.full((2**n, n), np.nan)
        slack = np.zeros((2**n, 1))
        for sequence, value, gains in self.descent(ordered=True):
            key = sum(1 << i for i in sequence)
            table[key], slack[key] = gains, self.slack(value, gains)
        self.signs.record(
            -table - slack,
            lambda s, e: _case(_members(s), _members(s), e, float(table[s, e]), float(table[s, e])),
        )
        for i in range(n):
            larger = np.flatnonzero(np.arange(2**n) >> i & 1)
            smaller = larger ^ (1 << i)
            self.returns.record(
                table[larger] - table[smaller] - np.maximum(slack[larger], slack[smaller]),
                lambda row, e, s=smaller, t=larger: _case(
                    _members(int(s[row])), _members(int(t[row])), e, table[s[row], e], table[t[row], e]
                ),
            )

    def descent(self, *, ordered: bool) -> Iterator[tuple[Elements, float, Float]]:
        """Enumerate the independent sequences (if `ordered`, the ascending ones), each before its continuations.

        Each comes with its value and the gains (n,) of all elements, NaN for those that cannot be added.
        """
        n = self.function.size
        stack: list[tuple[Elements, Any, Any]] = [((), self.function.start(), self.family.start())]
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
        """Compare the prefixes of random sequences (if `gains`), and each sequence with a permutation of it."""
        n = self.function.size
        limit = n if self.longest is None else self.longest
        # Gains require at least one open element outside the sequence.
        most = min(len(maximal_subset(self.family, np.arange(n), limit + gains)) - gains, limit)
        least = 0 if gains else 1
        for _ in range(samples if most >= least else 0):
            if self.should_stop():
                break
            length = int(rng.integers(least, most + 1))
            sequence = tuple(maximal_subset(self.family, rng.permutation(n), length).tolist())
            self.samples += 1
            value = self.along(sequence, rng) if gains else self.function.value(state_of(self.function, sequence))
            if len(sequence) > 1:
                other = tuple(rng.permutation(sequence).tolist())
                self.record_order(sequence, other, value, self.function.value(state_of(self.function, other)))

    def along(self, sequence: Elements, rng: np.random.Generator) -> float:
        """Compare the prefixes of a sequence, and return its value."""
        outside = np.delete(np.arange(self.function.size), sequence)
        free = outside[self.family.open(state_of(self.family, sequence), outside)]
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
            return _case(prefixes[i], prefixes[j], int(elements[e]), table[i, e], table[j, e])

        self.signs.record(-table - slack, lambda i, e: case(i, i, e))
        excess = table[None, :] - table[:, None] - slack
        excess[np.tril_indices(len(lengths))] = np.nan
        self.returns.record(excess, case)
        return value

    def record_order(self, one: Elements, other: Elements, value: float, other_value: float) -> None:
        """Compare the values of two orders of a set."""
        excess = abs(value - other_value) - self.slack(value, np.array([other_value]))
        self.orders.record(np.array([excess]), lambda _: _case(one, other, None, value, other_value))

    def recheck_returns(self, before: Elements, after: Elements, element: int | None) -> Counterexample | None:
        late, value = self._gain(after, element)
        early, _ = self._gain(before, element)
        if late - early > self.slack(value, np.array([early, late])):
            return Counterexample(before, after, element, early, late)
        return None

    def recheck_sign(self, before: Elements, after: Elements, element: int | None) -> Counterexample | None:
        gain, value = self._gain(before, element)
        return (
            Counterexample(before, after, element, gain, gain) if -gain > self.slack(value, np.array([gain])) else None
        )

    def recheck_order(self, before: Elements, after: Elements, element: int | None) -> Counterexample | None:
        one, other = (self.function.value(state_of(self.function, sequence)) for sequence in (before, after))
        if abs(one - other) > self.slack(one, np.array([other])):
            return Counterexample(before, after, element, one, other)
        return None

    def _gain(self, sequence: Elements, element: int | None) -> tuple[float, float]:
        """The gain of an element after a sequence, and the value of the sequence."""
        state = state_of(self.function, sequence)
        return float(self.function.gains(state, np.array([element]))[0]), self.function.value(state)


def reduced(
    before: Elements,
    after: Elements,
    element: int | None,
    recheck: Recheck,
    should_stop: Callable[[], bool] = lambda: False,
) -> Counterexample | None:
    """Remove elements from a counterexample until each is needed or `should_stop`; None if it is not one.

    Larger blocks of T are tried first: all of it, halves, quarters, down to single elements.
    """
    best = recheck(before, after, element)
    size = len(after)
    while best is not None and size >= 1 and not should_stop():
        at, dropped = 0, False
        while at < len(best.after) and not should_stop():
            gone = set(best.after[at : at + size])
            less = [tuple(i for i in one if i not in gone) for one in (best.before, best.after)]
            found = recheck(less[0], less[1], element)
            if found is None:
                at += size
            else:
                best, dropped = found, True
        # Single elements are tried again until none can be removed.
        size = size // 2 if size > 1 or not dropped else 1
    return best


def _case(before: Elements, after: Elements, element: int | None, early: float, late: float) -> Counterexample:
    return Counterexample(before, after, element, float(early), float(late))


def _members(key: int) -> Elements:
    return tuple(i for i in range(key.bit_length()) if key >> i & 1)
