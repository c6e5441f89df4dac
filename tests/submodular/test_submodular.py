"""Set functions and maximisers: brute force, comparisons with each other, and guarantees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import e

import numpy as np
import pytest
from set_families import ConcaveOverModular, Laminar, WeightedCoverage
from small_sets import Cut, Strict, optimum, random_family, random_function, subsets, value_of

from placeopt.model.arrays import Float, Int
from placeopt.submodular import (
    FacilityLocation,
    Intersection,
    Knapsack,
    Knapsacks,
    Maximised,
    Partition,
    Refreshing,
    SetFunction,
    Uniform,
    continuous_greedy,
    greedy,
    lazy_greedy,
    local_search,
    potential_search,
    stochastic_greedy,
    swap_rounding,
)
from placeopt.submodular.continuous import greedy_mixture
from placeopt.submodular.functions import AnySetFunction
from placeopt.submodular.independence import AnyIndependence, is_independent, state_of
from placeopt.submodular.lazy import BatchQueue

SIZE = 7
MAXIMISERS: dict[str, Callable[[AnySetFunction, AnyIndependence], Maximised]] = {
    "greedy": greedy,
    "lazy": lazy_greedy,
    "local": local_search,
    "potential": potential_search,
    "potential, sampled": lambda f, family: potential_search(f, family, samples=4, rounds=20),
    "continuous": lambda f, family: continuous_greedy(f, family, steps=5, samples=8, roundings=2),
    "stochastic": stochastic_greedy,
}
FOR_MATROIDS = ("potential", "potential, sampled", "continuous")


@dataclass
class _Drawn:
    base: object
    extra: Float


class Attracted:
    """A submodular function plus a bonus for some pairs: not submodular, but it reports which gains increase."""

    submodular = False
    path_free = True

    def __init__(self, base: AnySetFunction, bonus: Float) -> None:
        self.size, self.monotone = base.size, base.monotone
        self._base, self._bonus = base, bonus

    def start(self) -> _Drawn:
        return _Drawn(self._base.start(), np.zeros(self.size))

    def copy(self, state: _Drawn) -> _Drawn:
        return _Drawn(self._base.copy(state.base), state.extra.copy())

    def value(self, state: _Drawn) -> float:
        return self._base.value(state.base)

    def gains(self, state: _Drawn, elements: Int) -> Float:
        return self._base.gains(state.base, elements) + state.extra[elements]

    def add(self, state: _Drawn, element: int) -> None:
        self._base.add(state.base, element)
        state.extra += self._bonus[element]

    def raised(self, state: _Drawn, element: int) -> Int:  # noqa: ARG002
        return np.flatnonzero(self._bonus[element])


class Rounded:
    """A modular function whose gains are differences of large sums and therefore change by rounding."""

    submodular = monotone = path_free = True

    def __init__(self, weight: Float) -> None:
        self.size, self._weight = len(weight), weight

    def start(self) -> list[float]:
        return [1000.0]

    def copy(self, state: list[float]) -> list[float]:
        return list(state)

    def value(self, state: list[float]) -> float:
        return state[0]

    def gains(self, state: list[float], elements: Int) -> Float:
        return (state[0] + self._weight[elements]) - state[0]

    def add(self, state: list[float], element: int) -> None:
        state[0] += self._weight[element]


def same(one: Maximised, other: Maximised) -> None:
    assert one.elements.tolist() == other.elements.tolist()
    assert one.gains.tolist() == other.gains.tolist()
    assert one.values.tolist() == other.values.tolist()
    assert (one.value, one.bound, one.guarantee) == (other.value, other.bound, other.guarantee)


def trap(copies: int) -> tuple[WeightedCoverage, Partition]:
    """Greedy reaches 1.01 of 2.01 per copy: it covers by the first element the item that the third one also covers."""
    covers = [[2 * i + item for item in items] for i in range(copies) for items in ([0], [1], [0])]
    worth = [1.01, 1.0] * copies
    part = [number for i in range(copies) for number in (2 * i, 2 * i, 2 * i + 1)]
    return WeightedCoverage(covers, worth), Partition(part)


class TestFunctions:
    @pytest.mark.parametrize("kind", range(7))
    def test_gains_are_differences_of_values_in_every_batch(self, kind: int) -> None:
        rng = np.random.default_rng(kind)
        for _ in range(10):
            function = random_function(rng, 9, kind)
            assert isinstance(function, SetFunction)
            state = function.start()
            assert function.value(state) == 0
            for element in rng.permutation(9)[:5].tolist():
                outside = np.flatnonzero(rng.random(9) < 0.6)
                gains = function.gains(state, outside)
                assert gains.tolist() == [function.gains(state, outside[i : i + 1])[0] for i in range(len(outside))]
                before = function.value(state)
                gain = function.gains(state, np.array([element]))[0]
                kept = function.copy(state)
                function.add(state, element)
                assert function.value(state) - before == pytest.approx(gain, abs=1e-12)
                assert function.value(kept) == before
                function.gains(state, np.empty(0, dtype=np.int64))

    def test_values_by_hand(self) -> None:
        assert value_of(FacilityLocation([[3.0, 0.0], [1.0, 5.0]]), (0, 1)) == 8

    def test_messages_state_the_invalid_value(self) -> None:
        with pytest.raises(ValueError, match=r"benefit -2.0: expected finite numbers of 0 or more"):
            FacilityLocation([[1.0, -2.0]])
        with pytest.raises(ValueError, match="benefit nan: expected finite numbers"):
            FacilityLocation([[float("nan")]])
        with pytest.raises(ValueError, match=r"benefit \(1,\): expected \(elements, clients\)"):
            FacilityLocation([1.0])  # type: ignore[list-item]


class TestAgainstBruteForce:
    @pytest.mark.parametrize("name", MAXIMISERS)
    def test_guarantees_hold_and_bounds_are_valid(self, name: str) -> None:
        rng = np.random.default_rng(12)
        proved = 0
        for trial in range(84):
            function, family = random_function(rng, SIZE, trial), random_family(rng, SIZE, trial // 7)
            if name in FOR_MATROIDS and not family.matroid:
                continue
            found = MAXIMISERS[name](function, family)
            best = optimum(function, family)
            assert is_independent(family, found.elements.tolist())
            assert found.value == pytest.approx(value_of(function, tuple(found.elements.tolist())))
            assert found.bound is not None
            assert found.bound >= best - 1e-9
            assert found.value <= best + 1e-9
            assert found.ratio is not None
            assert best * found.ratio <= found.value + 1e-9
            if found.guarantee.ratio is not None and not found.guarantee.expected:
                proved += 1
                assert found.value >= found.guarantee.ratio * best - 1e-9
        assert proved > 20 or name == "stochastic"

    @pytest.mark.parametrize("name", MAXIMISERS)
    def test_calls_respect_the_protocol(self, name: str) -> None:
        rng = np.random.default_rng(13)
        for trial in range(42):
            function, family = random_function(rng, SIZE, trial), random_family(rng, SIZE, trial // 7)
            if name not in FOR_MATROIDS or family.matroid:
                MAXIMISERS[name](Strict(function), Strict(family))

    def test_guarantee_of_each_maximiser_and_constraint(self) -> None:
        function = WeightedCoverage([[0], [1], [0, 1], [2]])
        one, two = Partition([0, 0, 1, 1]), Partition([0, 1, 1, 0])
        knapsack = Knapsack([1, 1, 1, 1], 2)
        assert greedy(function, Uniform(4, 2)).guarantee.ratio == pytest.approx(1 - 1 / e)
        assert greedy(function, one).guarantee.ratio == 1 / 2
        assert greedy(function, Laminar(4, [[0, 1]], [1])).guarantee.ratio == 1 / 2
        assert greedy(function, Intersection(one, two)).guarantee.ratio == 1 / 3
        assert "a knapsack is not a matroid" in greedy(function, Intersection(one, knapsack)).guarantee.text
        assert local_search(function, one).guarantee.ratio == 1 / 2
        # Bases of two elements have few subsets: exact, 1 / (e / (e - 1) + 0.01).
        assert potential_search(function, one).guarantee.ratio == pytest.approx(1 / (e / (e - 1) + 0.01))
        assert continuous_greedy(function, one).guarantee.ratio == 1 / 2
        # T = 4, r = 2, n = 4: α = sqrt(ln(6400) / 8000) = 0.0331, (1 - 1.25^-4) (1 - 4 α).
        surely = continuous_greedy(function, one, steps=4, samples=4000, roundings=1).guarantee
        assert (surely.expected, surely.failure) == (True, 0.01)
        assert surely.ratio == pytest.approx(0.5904 * (1 - 4 * 0.0331), abs=1e-4)
        stochastic = stochastic_greedy(function, Uniform(4, 2), epsilon=0.1).guarantee
        assert stochastic.expected
        assert stochastic.ratio == pytest.approx(1 - 1 / e - 0.1)
        assert "number of elements only" in stochastic_greedy(function, one).guarantee.text

    def test_no_guarantee_without_claims(self) -> None:
        cut = Cut(np.ones((3, 3)) - np.eye(3))
        found = greedy(cut, Uniform(3, 3))
        assert found.guarantee.ratio is None
        assert found.guarantee.void == ("the function is not claimed to be monotone",)
        assert (found.bound, found.ratio) == (None, None)
        attracted = Attracted(WeightedCoverage([[0], [1]]), np.zeros((2, 2)))
        assert greedy(attracted, Uniform(2, 1)).guarantee.void == ("the function is not claimed to be submodular",)

    def test_bound_by_hand(self) -> None:
        # First gains 3, 2, 2: at most 5. Gains after the first element 2, 0: at most 3 + 2.
        found = greedy(WeightedCoverage([[0, 1, 2], [3, 4], [0, 1]]), Uniform(3, 2))
        assert (found.elements.tolist(), found.value, found.bound, found.ratio) == ([0, 1], 5.0, 5.0, 1.0)
        assert greedy(WeightedCoverage([[0]]), Uniform(1, 1), certify=False).bound is None


class TestGreedy:
    def test_ties_go_to_the_least_index(self) -> None:
        assert greedy(WeightedCoverage([[0], [1], [2]]), Uniform(3, 2)).elements.tolist() == [0, 1]

    def test_stops_without_positive_gain_unless_fill(self) -> None:
        function, family = WeightedCoverage([[0], [0], [0]]), Uniform(3, 2)
        for maximiser in (greedy, lazy_greedy, stochastic_greedy, local_search):
            assert len(maximiser(function, family).elements) == 1
            assert len(maximiser(function, family, fill=True).elements) == 2

    def test_values_and_gains_of_each_round(self) -> None:
        found = greedy(ConcaveOverModular([0, 0, 1], [9.0, 16.0, 4.0]), Uniform(3, 3))
        assert found.elements.tolist() == [1, 2, 0]
        assert found.values.tolist() == [4, 6, 7]
        assert found.gains.tolist() == [4, 2, 1]
        assert found.evaluations == 3 + 2 + 1

    def test_ground_sets_of_different_size_are_rejected(self) -> None:
        with pytest.raises(ValueError, match="the function has 1 elements and the independence 2"):
            greedy(WeightedCoverage([[0]]), Uniform(2, 1))

    def test_nan_gain_is_rejected(self) -> None:
        class Broken(WeightedCoverage):
            def gains(self, state: object, elements: Int) -> Float:  # noqa: ARG002
                return np.where(elements == 1, np.nan, 1.0)

        for maximiser in (greedy, lazy_greedy, stochastic_greedy):
            with pytest.raises(ValueError, match=r"the gain of element 1 over \[\] is NaN"):
                maximiser(Broken([[0], [1]]), Uniform(2, 2), certify=False)

    def test_empty_ground_set_and_empty_family(self) -> None:
        for maximiser in MAXIMISERS.values():
            found = maximiser(WeightedCoverage([]), Uniform(0, 0))
            assert (found.elements.tolist(), found.value) == ([], 0.0)
            found = maximiser(WeightedCoverage([[0], [1]]), Uniform(2, 0))
            assert (found.elements.tolist(), found.value, found.bound) == ([], 0.0, 0.0)


class TestLazyGreedy:
    def test_equals_greedy(self) -> None:
        rng = np.random.default_rng(1)
        for trial in range(420):
            size = int(rng.integers(1, 40))
            function, family = random_function(rng, size, trial), random_family(rng, size, trial // 7)
            same(greedy(function, family, fill=trial % 2 > 0), lazy_greedy(function, family, fill=trial % 2 > 0))

    def test_equals_greedy_if_the_function_reports_increased_gains(self) -> None:
        rng = np.random.default_rng(2)
        risen = 0
        for trial in range(200):
            size = int(rng.integers(2, 30))
            bonus = np.where(rng.random((size, size)) < 0.2, rng.integers(0, 3, (size, size)), 0).astype(float)
            function = Attracted(random_function(rng, size, trial), bonus)
            assert isinstance(function, Refreshing)
            family = random_family(rng, size, trial // 7)
            one, other = greedy(function, family, fill=True), lazy_greedy(function, family, fill=True)
            same(one, other)
            risen += bool((np.diff(one.gains) > 0).any())
        assert risen > 50

    def test_equals_greedy_if_gains_increase_by_rounding(self) -> None:
        rng = np.random.default_rng(4)
        risen = 0
        for _ in range(50):
            weight = 50 + rng.integers(0, 4, 60) * 4e-14
            function = Rounded(weight)
            one = greedy(function, Uniform(60, 40))
            same(one, lazy_greedy(function, Uniform(60, 40)))
            risen += bool((np.diff(one.gains) > 0).any())
        assert risen > 10

    def test_evaluates_fewer_gains(self) -> None:
        rng = np.random.default_rng(3)
        functions: list[AnySetFunction] = [
            ConcaveOverModular(rng.integers(0, 4, 300), rng.random(300)),
            WeightedCoverage([rng.integers(0, 200, 9) for _ in range(300)]),
            FacilityLocation(rng.random((300, 40))),
        ]
        for function in functions:
            family = Uniform(300, 60)
            assert lazy_greedy(function, family).evaluations < greedy(function, family).evaluations / 3

    def test_function_without_bounds_is_rejected(self) -> None:
        class Plain(Attracted):
            raised = None

        with pytest.raises(ValueError, match=r"Plain is not claimed to be submodular and has no method .*; use greedy"):
            lazy_greedy(Plain(WeightedCoverage([[0]]), np.zeros((1, 1))), Uniform(1, 1))

    def test_gain_that_contradicts_the_claim_is_an_error(self) -> None:
        class Liar(Attracted):
            submodular = True
            raised = None

        bonus = np.zeros((3, 3))
        bonus[0, 1] = 5.0
        liar = Liar(WeightedCoverage([[0, 1, 2], [3, 4], [5]]), bonus)
        with pytest.raises(
            ValueError, match=r"the gain of element 1 increased from 2.0 to 7.0 by round 1: a claim of Liar is false"
        ):
            lazy_greedy(liar, Uniform(3, 3))


class TestBatchQueue:
    def test_agrees_with_a_plain_list(self) -> None:
        rng = np.random.default_rng(6)
        queue, known = BatchQueue(40), {}
        for _ in range(400):
            if rng.random() < 0.6:
                elements = rng.permutation(40)[: rng.integers(1, 8)]
                bounds = rng.integers(0, 6, len(elements)).astype(float)
                queue.push(elements, bounds)
                known.update(zip(elements.tolist(), bounds.tolist(), strict=True))
            else:
                count, floor = int(rng.integers(1, 6)), float(rng.integers(0, 6))
                popped, bounds = queue.pop(count, floor)
                assert [known.pop(i) for i in popped.tolist()] == bounds.tolist()
                left = [bound for bound in known.values() if bound >= floor]
                assert len(popped) or not left
                assert bounds.min(initial=np.inf) >= max(left, default=floor)


class TestStochasticGreedy:
    def test_mean_satisfies_the_guarantee(self) -> None:
        rng = np.random.default_rng(7)
        for kind in range(7):
            function, family = random_function(rng, 12, kind), Uniform(12, 4)
            values = [stochastic_greedy(function, family, epsilon=0.3, seed=seed).value for seed in range(30)]
            assert np.mean(values) >= (1 - 1 / e - 0.3) * optimum(function, family)

    def test_complete_samples_give_greedy(self) -> None:
        rng = np.random.default_rng(8)
        for trial in range(42):
            function, family = random_function(rng, 15, trial), random_family(rng, 15, trial // 7)
            everything = stochastic_greedy(function, family, epsilon=1e-9, fill=True)
            assert everything.elements.tolist() == greedy(function, family, fill=True).elements.tolist()

    def test_same_seed_same_result(self) -> None:
        function, family = random_function(np.random.default_rng(9), 60, 5), Uniform(60, 12)
        runs = [stochastic_greedy(function, family, seed=seed) for seed in (1, 1, 2)]
        same(runs[0], runs[1])
        assert runs[0].elements.tolist() != runs[2].elements.tolist()
        assert runs[0].evaluations < greedy(function, family).evaluations / 2

    def test_samples_contain_open_elements_only(self) -> None:
        # 10 of 200 elements are chosen, from samples of (200/10) ln(1/0.9), so 3.
        function, family = FacilityLocation(np.random.default_rng(1).random((200, 5))), Partition(np.arange(200) // 20)
        for seed in range(10):
            found = stochastic_greedy(function, family, epsilon=0.9, seed=seed, fill=True)
            assert len(found.elements) == 10
            assert 30 <= found.evaluations <= 10 * 4

    def test_epsilon_out_of_range(self) -> None:
        with pytest.raises(ValueError, match=r"epsilon 1: expected more than 0 and less than 1"):
            stochastic_greedy(WeightedCoverage([[0]]), Uniform(1, 1), epsilon=1)


class TestLocalSearch:
    def test_at_least_greedy_and_no_exchange_improves(self) -> None:
        rng = np.random.default_rng(10)
        better = 0
        for trial in range(210):
            function, family = random_function(rng, SIZE, trial), random_family(rng, SIZE, trial // 7)
            one, found = greedy(function, family), local_search(function, family, epsilon=0.01)
            assert found.value >= one.value - 1e-12
            better += found.value > one.value + 1e-9
            chosen = set(found.elements.tolist())
            enough = found.value * (1 + 0.01 / max(len(chosen), 1)) + 1e-12
            for out in chosen:
                for one_in in set(range(SIZE)) - chosen:
                    swapped = tuple(chosen - {out} | {one_in})
                    assert not is_independent(family, swapped) or value_of(function, swapped) <= enough
        assert better > 5

    def test_removes_elements_that_decrease_the_value(self) -> None:
        rng = np.random.default_rng(11)
        removed = 0
        for _ in range(60):
            weight = np.triu(rng.random((6, 6)) * (rng.random((6, 6)) < 0.6), 1)
            cut = Cut(weight + weight.T)
            one, found = greedy(cut, Uniform(6, 6)), local_search(cut, Uniform(6, 6))
            assert found.value >= one.value
            removed += not set(one.elements.tolist()) <= set(found.elements.tolist())
        assert removed > 0

    def test_order_dependent_functions_are_rejected(self) -> None:
        function = WeightedCoverage([[0]])
        function.path_free = False
        for search in (local_search, potential_search, continuous_greedy):
            with pytest.raises(ValueError, match="the value depends on the order of the elements"):
                search(function, Uniform(1, 1))

    def test_invalid_parameters(self) -> None:
        function, family = WeightedCoverage([[0]]), Uniform(1, 1)
        with pytest.raises(ValueError, match=r"epsilon 0: expected more than 0"):
            local_search(function, family, epsilon=0)
        with pytest.raises(ValueError, match=r"epsilon 0.1, samples 0, rounds 1: expected > 0, >= 1, >= 0"):
            potential_search(function, family, epsilon=0.1, samples=0, rounds=1)
        with pytest.raises(ValueError, match=r"steps 0: expected 1 or more"):
            continuous_greedy(function, family, steps=0)
        with pytest.raises(ValueError, match=r"roundings 0: expected 1 or more"):
            continuous_greedy(function, family, roundings=0)
        for search in (potential_search, continuous_greedy):
            with pytest.raises(ValueError, match="Knapsack is not claimed to be a matroid; use greedy or local_search"):
                search(function, Knapsack([1], 1))


class TestBetterThanGreedy:
    def test_others_exceed_greedy_on_its_worst_case(self) -> None:
        function, family = trap(3)
        best = 3 * 2.01
        assert greedy(function, family).value == pytest.approx(3 * 1.01)
        assert potential_search(function, family).value == pytest.approx(best)
        assert continuous_greedy(function, family).value >= (1 - 1 / e) * best

    def test_mean_of_roundings_satisfies_the_guarantee(self) -> None:
        function, family = trap(3)
        mixture = greedy_mixture(function, family, steps=20, samples=30, seed=1)
        values = [value_of(function, tuple(mixture.rounded(family, seed).tolist())) for seed in range(40)]
        assert np.mean(values) >= 0.62 * 3 * 2.01

    def test_potential_search_by_sampling(self) -> None:
        function, family = trap(5)
        found = potential_search(function, family, samples=64)
        assert found.value == pytest.approx(5 * 2.01)
        assert found.guarantee.ratio == 1 / 2  # with so few samples, nothing more is proved

    def test_unfinished_search_has_the_guarantee_of_greedy(self) -> None:
        function, family = trap(3)
        assert potential_search(function, family, rounds=0).guarantee.ratio == 1 / 2
        assert potential_search(function, family, rounds=0).value == pytest.approx(3 * 1.01)


class TestRounding:
    @pytest.mark.parametrize("kind", range(3))
    def test_rounding_keeps_bases_and_marginal_probabilities(self, kind: int) -> None:
        rng = np.random.default_rng(kind)
        family: AnyIndependence = [
            Uniform(6, 3),
            Partition([0, 0, 0, 1, 1, 1], [1, 2]),
            Laminar(6, [[0, 1, 2, 3], [0, 3]], [2, 1]),
        ][kind]
        function = random_function(rng, 6, 4)
        rank = max(len(one) for one in subsets(6) if is_independent(family, one))
        bases = [np.array(one) for one in subsets(6) if len(one) == rank and is_independent(family, one)]
        bases = [bases[i] for i in rng.choice(len(bases), 4, replace=False)]
        weights = rng.dirichlet(np.ones(4))
        point = np.zeros(6)
        for base, weight in zip(bases, weights, strict=True):
            point[base] += weight
        drawn = [swap_rounding(bases, weights.tolist(), family, seed) for seed in range(2000)]
        assert all(len(base) == rank and is_independent(family, base.tolist()) for base in drawn)
        share = np.bincount(np.concatenate(drawn), minlength=6) / 2000
        assert np.abs(share - point).max() < 5 * 0.5 / 2000**0.5
        extension = sum(
            value_of(function, one) * np.prod([point[i] if i in one else 1 - point[i] for i in range(6)])
            for one in subsets(6)
        )
        values = [value_of(function, tuple(base.tolist())) for base in drawn]
        assert np.mean(values) >= extension - 4 * np.std(values) / 2000**0.5

    def test_point_is_the_share_of_bases(self) -> None:
        function, family = trap(2)
        mixture = greedy_mixture(function, family, steps=4, samples=5)
        assert len(mixture.bases) == 4
        assert all(is_independent(family, base.tolist()) for base in mixture.bases)
        assert mixture.point.tolist() == (np.bincount(np.concatenate(mixture.bases), minlength=6) / 4).tolist()

    def test_invalid_arguments(self) -> None:
        family = Uniform(4, 2)
        with pytest.raises(ValueError, match="0 bases, 0 weights"):
            swap_rounding([], [], family)
        with pytest.raises(ValueError, match=r"weight 0: expected more than 0"):
            swap_rounding([np.array([0])], [0], family)
        with pytest.raises(ValueError, match=r"bases of \[1, 2\] elements"):
            swap_rounding([np.array([0]), np.array([1, 2])], [1, 1], family)
        knapsack = Knapsacks([0, 0, 0, 0], [1, 3, 2, 2], 4)
        with pytest.raises(ValueError, match="element 0 cannot be exchanged"):
            swap_rounding([np.array([0, 1]), np.array([2, 3])], [1, 1], knapsack)


class TestThirdParties:
    def test_third_party_function_and_family(self) -> None:
        class Matching:
            """Edges of a path, no two of them adjacent."""

            matroid, matroids, size = False, 2, 6

            def start(self) -> list[int]:
                return []

            def copy(self, state: list[int]) -> list[int]:
                return list(state)

            def open(self, state: list[int], elements: Int) -> np.ndarray:
                return np.array([all(abs(i - j) > 1 for j in state) for i in elements.tolist()], dtype=np.bool_)

            def add(self, state: list[int], element: int) -> None:
                state.append(element)

        cut = Cut(np.ones((6, 6)) - np.eye(6))
        family = Matching()
        same(greedy(cut, family), lazy_greedy(cut, family))
        assert greedy(cut, family).elements.tolist() == [0, 2, 4]
        coverage = WeightedCoverage([[0], [0, 1], [1], [2], [2, 3], [3]])
        found = greedy(coverage, family)
        # The family has no weight bound, so there is a guarantee but no bound.
        assert (found.guarantee.ratio, found.bound) == (1 / 3, None)
        assert found.value >= optimum(coverage, family) / 3
        assert found.value == value_of(coverage, tuple(state_of(family, found.elements.tolist())))
