"""Counterexamples: known ones are found and reduced, and valid claims are not refuted."""

from __future__ import annotations

from dataclasses import asdict
from itertools import combinations

import numpy as np
import pytest
from set_families import ConcaveOverModular, PiecewiseLinear, WeightedCoverage
from small_sets import Cut, Strict, random_family, random_function, subsets, value_of

from placeopt.model.arrays import Float, Int
from placeopt.submodular import (
    Check,
    Counterexample,
    FacilityLocation,
    Intersection,
    Knapsacks,
    Partition,
    Uniform,
    check_submodular,
)
from placeopt.submodular.checks import reduced
from placeopt.submodular.functions import AnySetFunction
from placeopt.submodular.independence import is_independent, state_of


class Pairs:
    """The number of elements plus a bonus for each of certain sets that is complete: supermodular in these."""

    path_free = monotone = True
    submodular = False

    def __init__(self, size: int, bonus: dict[tuple[int, ...], float]) -> None:
        self.size, self._bonus = size, bonus

    def start(self) -> list[int]:
        return []

    def copy(self, state: list[int]) -> list[int]:
        return list(state)

    def value(self, state: list[int]) -> float:
        return len(state) + sum(worth for group, worth in self._bonus.items() if set(group) <= set(state))

    def gains(self, state: list[int], elements: Int) -> Float:
        return np.array([self.value([*state, i]) - self.value(state) for i in elements.tolist()])

    def add(self, state: list[int], element: int) -> None:
        state.append(element)


class Early(Pairs):
    """Elements count 1/position, so the order matters; gains decrease along each sequence."""

    path_free = False
    submodular = True

    def value(self, state: list[int]) -> float:
        return sum((1 + i % 3) / (1 + place) for place, i in enumerate(state))


def kinds(function: AnySetFunction, **settings: object) -> tuple[Check, Check, Check]:
    found = check_submodular(function, **settings)  # type: ignore[arg-type]
    return found.submodular, found.monotone, found.path_free


@pytest.mark.parametrize("size", [5, 9, 30])
class TestEachMethod:
    """All sequences, all sets, samples."""

    def test_no_counterexample_to_true_claims(self, size: int) -> None:
        rng = np.random.default_rng(size)
        for kind in range(7):
            for family in (None, random_family(rng, size, 3)):
                found = check_submodular(random_function(rng, size, kind), 40, independence=family)
                for check in (found.submodular, found.monotone, found.path_free):
                    assert (check.violations, check.worst) == (0, None)
                    assert check.claimed
                    assert check.cases > 0 or family is not None
                assert found.claims_hold
                assert found.submodular.proved == found.monotone.proved == (size < 30)
                assert found.path_free.proved == (size == 5)

    def test_calls_respect_the_protocol(self, size: int) -> None:
        rng = np.random.default_rng(size)
        for kind in range(6):
            check_submodular(
                Strict(Cut(rng.random((size, size)))), 20, independence=Strict(random_family(rng, size, kind))
            )

    def test_cut_is_not_monotone(self, size: int) -> None:
        returns, signs, orders = kinds(Cut(np.ones((size, size)) - np.eye(size)), samples=50)
        assert (returns.refuted, signs.refuted, orders.refuted) == (False, True, False)
        assert signs.worst is not None
        # Complete graph: one more element decreases the value if and only if half of them are chosen.
        half = (size + 1) // 2
        assert len(signs.worst.before) == half
        assert signs.worst.gain_before == size - 1 - 2 * half < 0
        assert signs.worst.before == signs.worst.after

    def test_bonus_for_a_pair_is_not_submodular(self, size: int) -> None:
        function = Pairs(size, {(1, 3): 2.0, (0, 2, 4): 0.5})
        returns, signs, orders = kinds(function, samples=300)
        assert (returns.refuted, signs.refuted, orders.refuted) == (True, False, False)
        assert returns.worst is not None
        worst = asdict(returns.worst)
        assert worst["before"] == ()
        assert sorted((*worst["after"], worst["element"])) == [1, 3]
        assert (worst["gain_before"], worst["gain_after"]) == (1.0, 3.0)
        assert not returns.claimed
        assert check_submodular(function, 300).claims_hold

    def test_order_dependence_is_found(self, size: int) -> None:
        function = Early(size, {})
        returns, signs, orders = kinds(function, samples=100)
        assert (returns.refuted, signs.refuted, orders.refuted) == (False, False, True)
        assert orders.worst is not None
        assert len(orders.worst.before) == 2
        assert sorted(orders.worst.before) == sorted(orders.worst.after)
        assert orders.worst.gain_before == value_of(function, orders.worst.before)
        assert orders.worst.gain_after == value_of(function, orders.worst.after)
        assert orders.worst.element is None


class TestCases:
    def test_false_claim_is_reported(self) -> None:
        function = Pairs(8, {(1, 3): 2.0})
        function.submodular = True
        assert not check_submodular(function).claims_hold

    def test_counterexamples_are_minimal(self) -> None:
        # The bonus requires three elements, so T cannot lose any.
        for size in (6, 8, 20):
            returns, *_ = kinds(Pairs(size, {(2, 4, 5): 1.0}), samples=1000)
            worst = returns.worst
            assert worst is not None
            assert worst.element is not None
            assert sorted((*worst.after, worst.element)) == [2, 4, 5]
            assert set(worst.before) < set(worst.after)

    def test_reduction_retries_elements(self) -> None:
        # 2 is needed as long as 3 is present, and 4 always.
        def judge(before: tuple[int, ...], after: tuple[int, ...], element: int | None) -> Counterexample | None:
            fails = 4 in after and (2 in after or 3 not in after)
            return Counterexample(before, after, element, 0.0, 1.0) if fails else None

        assert reduced((2,), (2, 3, 4), 5, judge) == Counterexample((), (4,), 5, 0.0, 1.0)
        assert reduced((2,), (2, 3), 5, judge) is None

    def test_only_independent_sets_are_compared(self) -> None:
        # 1 and 3 exclude each other, so the bonus never occurs.
        family = Intersection(Partition([0, 1, 2, 1, 3, 4, 5, 6]), Knapsacks([0] * 8, [1] * 8, 6))
        returns, *_ = kinds(Pairs(8, {(1, 3): 2.0}), independence=family)
        assert returns.proved
        assert not kinds(Pairs(8, {(1, 2): 2.0}), independence=family)[0].proved
        for size in (8, 30):
            function = Pairs(size, {(i, i + 1): 2.0 for i in range(0, size, 2)})
            family = Partition(np.arange(size) // 2)
            assert not kinds(function, samples=100, independence=family)[0].refuted

    def test_number_of_cases_of_small_ground_sets(self) -> None:
        # Each sequence with each proper prefix and each element outside it.
        returns, signs, orders = kinds(WeightedCoverage([[0], [1], [2], [3]]))
        sequences = [1, 4, 12, 24, 24]
        assert signs.cases == sum(count * (4 - k) for k, count in enumerate(sequences))
        assert returns.cases == sum(count * (4 - k) * k for k, count in enumerate(sequences))
        assert orders.cases == sum(sequences) - 2**4
        # Eight elements: pairs S, S + x with an e outside.
        returns, signs, _ = kinds(WeightedCoverage([[i] for i in range(8)]))
        assert signs.cases == 8 * 2**7
        assert returns.cases == 8 * 7 * 2**6

    def test_enumeration_agrees_with_the_definition(self) -> None:
        rng = np.random.default_rng(5)
        found = []
        for _ in range(16):
            groups = [tuple(group) for k in (2, 3) for group in combinations(range(7), k)]
            bonus = {groups[i]: float(rng.choice([-0.3, 0.2, -0.1])) for i in rng.choice(len(groups), 3, replace=False)}
            function = Pairs(7, bonus)
            expected = all(
                value_of(function, (*s, e)) - value_of(function, s) + 1e-9
                >= value_of(function, (*s, x, e)) - value_of(function, (*s, x))
                for s in subsets(7)
                for x in range(7)
                for e in range(7)
                if x != e and not {x, e} & set(s)
            )
            assert kinds(function)[0].proved == expected
            found.append(expected)
        assert 0 < sum(found) < 16

    def test_violations_within_the_tolerance_are_ignored(self) -> None:
        slightly = Pairs(8, {(0, 1): 1e-12})
        assert not kinds(slightly)[0].refuted
        assert kinds(slightly, tolerance=0.0)[0].refuted
        assert kinds(Pairs(8, {(0, 1): 1e-6}))[0].refuted

    def test_convex_shape_is_found_in_large_sets(self) -> None:
        function = ConcaveOverModular(np.arange(400) % 5, np.ones(400), PiecewiseLinear([0, 20], [1, 2]))
        returns, signs, orders = kinds(function, samples=20)
        assert (returns.refuted, signs.refuted, orders.refuted) == (True, False, False)
        assert returns.worst is not None
        # A gain of 2 requires a load of 20 of T, and of at most 19 of S.
        assert len(returns.worst.after) == 20
        assert returns.worst.gain_after == 2

    def test_same_seed_same_result(self) -> None:
        function = Pairs(30, {(0, 1): 1.0, (2, 3): 1.0})
        assert check_submodular(function, 50, seed=3) == check_submodular(function, 50, seed=3)
        assert check_submodular(function, 50, seed=3) != check_submodular(function, 50, seed=4)

    def test_no_cases(self) -> None:
        for function, family in (
            (WeightedCoverage([]), None),
            (WeightedCoverage([[0]]), Uniform(1, 0)),
            (FacilityLocation(np.ones((20, 2))), Uniform(20, 0)),
        ):
            found = check_submodular(function, independence=family)
            assert found.claims_hold
            assert found.submodular.cases == 0

    def test_counterexamples_are_independent(self) -> None:
        rng = np.random.default_rng(6)
        for trial in range(12):
            family = random_family(rng, 15, trial)
            function = Pairs(15, {(i, i + 1): 1.0 for i in range(14)})
            worst = kinds(function, samples=60, independence=family)[0].worst
            if worst is not None:
                assert is_independent(family, [*worst.after, worst.element])
                gain = function.gains(state_of(function, worst.after), np.array([worst.element]))[0]
                assert gain == worst.gain_after

    def test_invalid_arguments(self) -> None:
        function = WeightedCoverage([[0]])
        with pytest.raises(ValueError, match=r"samples 0: expected 1 or more"):
            check_submodular(function, 0)
        with pytest.raises(ValueError, match=r"tolerance -1: expected 0 or more"):
            check_submodular(function, tolerance=-1)
        with pytest.raises(ValueError, match="the function has 1 elements and the independence 2"):
            check_submodular(function, independence=Uniform(2, 1))
