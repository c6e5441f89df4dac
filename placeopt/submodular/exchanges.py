"""Local search: one element in, at most one out, while f grows.

M. Fisher, G. Nemhauser, L. Wolsey: An analysis of approximations for maximizing submodular set functions II, 1978,
doi:10.1007/BFb0121195 (interchange heuristic). It starts from what `greedy` returns, so that the guarantee of greedy
holds whatever comes after. In a matroid of rank r a set S that no exchange improves by more than ε f(S) / r is good by
itself: there is a bijection o -> s(o) from the best set to S whose exchanges all are independent, and by submodularity

    f(OPT) - 2 f(S) <= sum over o of f(S - s(o) + o) - f(S) <= ε f(S),

hence f(S) >= f(OPT) / (2 + ε): no better than greedy in the worst case (for that see
`placeopt.submodular.potential`), but often better in practice. For several matroids J. Lee, M. Sviridenko and J.
Vondrák (Mathematics of Operations Research 35, 2010) prove 1/(k + ε) for larger exchanges; these are not done here,
nothing beyond greedy's ratio is proved of single ones, and nothing at all with knapsacks.

Every step raises f by a factor of 1 + ε/r at least: O(r/ε) steps from greedy. A step costs O(r) sets that are put
together anew, O(r^2) additions and O(n r) gains: for small problems.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placeopt.submodular.functions import AnySetFunction
from placeopt.submodular.guarantees import Guarantee, greedy_guarantee
from placeopt.submodular.independence import AnyIndependence, grown
from placeopt.submodular.results import Growth, Maximised
from placeopt.submodular.standard import greedy


def local_search(
    function: AnySetFunction,
    independence: AnyIndependence,
    *,
    epsilon: float = 0.01,
    fill: bool = False,
    certify: bool = True,
) -> Maximised:
    """A set that no addition, no exchange and (unless f is monotone or asked to fill) no removal improves by much.

    Parameters
    ----------
    epsilon
        A move must raise f by more than epsilon f(S) / r, where r elements are chosen.
    function, independence, fill, certify
        As for `greedy`, which it starts from.

    Raises
    ------
    ValueError
        If the value depends on the order of the elements, epsilon is not positive, or as `greedy` does.
    """
    if not function.path_free:
        raise ValueError("the value depends on the order of the elements: exchanges mean nothing; use greedy")
    if not epsilon > 0:
        raise ValueError(f"epsilon {epsilon}: expected more than 0")
    start = greedy(function, independence, fill=fill, certify=certify)
    search = _Search(function, independence, start.elements.tolist(), epsilon)
    moves = [search.add, search.exchange, *([] if function.monotone or fill else [search.remove])]
    while any(move(fill) for move in moves):
        pass
    growth = Growth(function, independence, certify=certify)
    growth.extend(search.chosen)
    return growth.outcome(_guarantee(function, independence), start.bound, start.evaluations + search.evaluations)


class _Search:
    """The set so far; each move either improves it and says True, or leaves it."""

    def __init__(
        self, function: AnySetFunction, independence: AnyIndependence, chosen: list[int], epsilon: float
    ) -> None:
        self.function, self.independence, self.chosen, self.epsilon = function, independence, chosen, epsilon
        self.value = function.value(grown(function, chosen))
        self.evaluations = 0

    def add(self, fill: bool) -> bool:
        element, value = self.best(self.chosen, self.chosen)
        if element is None or not (fill or value > self.enough()):
            return False
        self.chosen, self.value = [*self.chosen, element], value
        return True

    def exchange(self, fill: bool) -> bool:  # noqa: ARG002 - moves are called alike
        for i in range(len(self.chosen)):
            rest = self.chosen[:i] + self.chosen[i + 1 :]
            element, value = self.best(rest, self.chosen)
            if element is not None and value > self.enough():
                self.chosen, self.value = [*rest, element], value
                return True
        return False

    def remove(self, fill: bool) -> bool:  # noqa: ARG002
        for i in range(len(self.chosen)):
            rest = self.chosen[:i] + self.chosen[i + 1 :]
            value = self.function.value(grown(self.function, rest))
            if value > self.enough():
                self.chosen, self.value = rest, value
                return True
        return False

    def enough(self) -> float:
        return self.value + self.epsilon * abs(self.value) / max(len(self.chosen), 1)

    def best(self, rest: list[int], without: list[int]) -> tuple[int | None, float]:
        """The element that raises f(rest) most, of those open to it that are not in `without`, and f with it."""
        outside = np.delete(np.arange(self.function.size), without)
        outside = outside[self.independence.open(grown(self.independence, rest), outside)]
        if len(outside) == 0:
            return None, self.value
        state = grown(self.function, rest)
        gains = self.function.gains(state, outside)
        self.evaluations += len(outside)
        i = int(np.argmax(gains))
        return int(outside[i]), self.function.value(state) + float(gains[i])


def _guarantee(function: AnySetFunction, independence: AnyIndependence) -> Guarantee:
    known = greedy_guarantee(function, independence)
    return known if known.void else replace(known, text=f"{known.text}; that of greedy, from which the search starts")
