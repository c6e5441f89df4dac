"""Independence families: axioms by brute force, claims, weight bounds, invalid arguments."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from small_sets import random_family, subsets

from placeopt.submodular import Independence, Intersection, Knapsack, Knapsacks, Partition, Uniform
from placeopt.submodular.independence import AnyIndependence, heaviest, is_independent, state_of, weight_bound_of

SIZE = 7


def independent_sets(family: AnyIndependence) -> set[frozenset[int]]:
    return {frozenset(one) for one in subsets(family.size) if is_independent(family, one)}


def families(kinds: range, trials: int = 4) -> list[AnyIndependence]:
    rng = np.random.default_rng(3)
    return [random_family(rng, SIZE, kind) for _ in range(trials) for kind in kinds]


@pytest.mark.parametrize("family", families(range(6)), ids=lambda family: type(family).__name__)
class TestAxioms:
    def test_subsets_of_independent_sets_are_independent(self, family: AnyIndependence) -> None:
        known = independent_sets(family)
        assert frozenset() in known
        assert all(one - {i} in known for one in known for i in one)
        assert isinstance(family, Independence)

    def test_matroids_satisfy_the_exchange_axiom(self, family: AnyIndependence) -> None:
        known = independent_sets(family)
        exchange = all(
            any(small | {i} in known for i in large - small)
            for large in known
            for small in known
            if len(large) > len(small)
        )
        assert exchange or not family.matroid
        assert family.matroid == (family.matroids == 1)

    def test_independence_does_not_depend_on_order(self, family: AnyIndependence) -> None:
        for one in subsets(family.size):
            if len(one) == 3:
                assert len({is_independent(family, order) for order in permutations(one)}) == 1

    def test_batches_agree_with_single_elements(self, family: AnyIndependence) -> None:
        for one in independent_sets(family):
            state = state_of(family, sorted(one))
            outside = np.delete(np.arange(SIZE), sorted(one))
            single = [bool(family.open(state, np.array([i]))[0]) for i in outside]
            assert family.open(state, outside).tolist() == single
            assert family.open(family.copy(state), outside).tolist() == single

    def test_copies_are_independent(self, family: AnyIndependence) -> None:
        state = family.start()
        before = family.open(state, np.arange(SIZE)).tolist()
        if any(before):
            family.add(family.copy(state), before.index(True))
        assert family.open(state, np.arange(SIZE)).tolist() == before

    def test_weight_bound_is_valid_and_tight_for_matroids(self, family: AnyIndependence) -> None:
        rng = np.random.default_rng(8)
        known = independent_sets(family)
        for _ in range(5):
            weight = rng.integers(0, 5, SIZE).astype(float) if rng.random() < 0.5 else rng.random(SIZE)
            best = max(sum(weight[i] for i in one) for one in known)
            weight_bound = weight_bound_of(family, weight)
            assert weight_bound is not None
            assert weight_bound >= best - 1e-12
            chosen = heaviest(family, weight)
            assert frozenset(chosen.tolist()) in known
            assert not family.open(state_of(family, chosen), np.delete(np.arange(SIZE), chosen)).any()
            if family.matroid:
                assert weight_bound == pytest.approx(best)
                assert weight[chosen].sum() == pytest.approx(best)


class TestClaims:
    def test_number_of_matroids(self) -> None:
        part = np.array([0, 0, 1])
        one, two = Partition(part), Uniform(3, 2)
        both = Intersection(one, two)
        assert (both.matroid, both.matroids) == (False, 2)
        assert (Intersection(both, one).matroid, Intersection(both, one).matroids) == (False, 3)
        assert (Intersection(one).matroid, Intersection(one).matroids) == (True, 1)
        assert (Knapsack([1, 2, 3], 4).matroid, Knapsack([1, 2, 3], 4).matroids) == (False, None)
        assert Intersection(one, Knapsack([1, 2, 3], 4)).matroids is None

    def test_knapsack_is_not_a_matroid(self) -> None:
        known = independent_sets(Knapsack([1, 1, 2], 2))
        assert {frozenset({0, 1}), frozenset({2})} <= known
        assert not known & {frozenset({0, 2}), frozenset({1, 2})}

    def test_knapsacks_compare_integers_exactly(self) -> None:
        # 2^53 + 1 is not a double.
        family = Knapsacks([0, 0, 1], np.array([2**53, 1, 5]), np.array([2**53, 5]))
        assert not is_independent(family, (0, 1))
        assert is_independent(family, (0, 2))
        unlimited = np.iinfo(np.int64).max
        assert is_independent(Knapsack(np.array([unlimited - 1, 1, 0]), unlimited), (0, 1, 2))
        assert not is_independent(Knapsack(np.array([unlimited, 1, 0]), unlimited), (0, 1))

    def test_weightless_elements_fit_a_full_part(self) -> None:
        assert is_independent(Knapsack([3, 0], 3), (0, 1))
        assert weight_bound_of(Knapsack([3, 0, 4], 3), np.array([1.0, 2.0, 9.0])) == 3.0

    def test_weight_bound_of_a_knapsack_is_the_fractional_optimum(self) -> None:
        # Ratios 3, 2, 1: the first element and half of the second.
        assert weight_bound_of(Knapsack([2, 2, 2], 3), np.array([6.0, 4.0, 2.0])) == pytest.approx(8.0)

    def test_weight_bound_of_an_intersection_is_the_least_of_its_members(self) -> None:
        weight = np.array([3.0, 2.0, 1.0])
        assert weight_bound_of(Intersection(Uniform(3, 2), Partition([0, 0, 1]), Knapsack([1, 1, 1], 3)), weight) == 4.0
        assert weight_bound_of(Intersection(Uniform(3, 1), Partition([0, 0, 1])), weight) == 3.0

    def test_empty_ground_set(self) -> None:
        for family in (Uniform(0, 3), Partition([]), Knapsack([], 1)):
            assert family.size == 0
            assert len(heaviest(family, np.empty(0))) == 0
            assert weight_bound_of(family, np.empty(0)) == 0

    def test_third_party_families_without_weight_bound(self) -> None:
        class Stranger(Knapsack):
            weight_bound = None

        class Matroid(Uniform):
            weight_bound = None

        weight = np.array([1.0, 4.0, 2.0])
        assert weight_bound_of(Matroid(3, 2), weight) == 6.0
        assert weight_bound_of(Stranger([1, 1, 1], 2), weight) is None
        assert weight_bound_of(Intersection(Matroid(3, 2), Stranger([1, 1, 1], 2)), weight) == 6.0


class TestInvalidArguments:
    def test_messages_state_the_invalid_value(self) -> None:
        with pytest.raises(ValueError, match=r"capacity -1: expected 0 or more"):
            Uniform(3, -1)
        with pytest.raises(ValueError, match=r"size -2: expected 0 or more"):
            Uniform(-2, 1)
        with pytest.raises(ValueError, match=r"part -1: expected 0 or more"):
            Partition([0, -1])
        with pytest.raises(ValueError, match=r"1 capacities for 3 parts"):
            Partition([0, 2], [1])
        with pytest.raises(ValueError, match=r"weight -3: expected 0 or more"):
            Knapsack([1, -3], 2)
        with pytest.raises(ValueError, match=r"weight \(3,\)"):
            Knapsacks([0, 0], [1, 2, 3], 4)
        with pytest.raises(ValueError, match=r"families over \[2, 3\] elements"):
            Intersection(Uniform(2, 1), Uniform(3, 1))
        with pytest.raises(ValueError, match="an intersection of no families"):
            Intersection()
