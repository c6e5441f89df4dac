"""Maximise submodular functions under matroids and knapsacks, with guarantees and checks of their conditions.

functions      set functions: the interface, and facility location
independence   independent sets: the interface, matroids, knapsacks, intersections
standard       `greedy`, and `stochastic_greedy` on random samples
lazy           `lazy_greedy`: the same result with fewer evaluations
exchanges      `local_search`, and `potential_search`, which compares a potential instead of f
continuous     `continuous_greedy` and `swap_rounding`
results        the result, its upper bound and worst-case guarantee; the growing set that the maximisers share
checks         `check_submodular`: counterexamples to the claims of a function
placement      the placement models of Carbonari, Kodirov and Golub 2017
"""

from __future__ import annotations

from placeopt.submodular.checks import Check, Checks, Counterexample, check_submodular
from placeopt.submodular.continuous import continuous_greedy, swap_rounding
from placeopt.submodular.exchanges import local_search, potential_search
from placeopt.submodular.functions import (
    FacilityLocation,
    Refreshing,
    SetFunction,
)
from placeopt.submodular.independence import (
    Independence,
    Intersection,
    Knapsack,
    Knapsacks,
    Partition,
    Uniform,
)
from placeopt.submodular.lazy import lazy_greedy
from placeopt.submodular.results import Guarantee, Maximised
from placeopt.submodular.standard import greedy, stochastic_greedy

__all__ = [
    "Check",
    "Checks",
    "Counterexample",
    "FacilityLocation",
    "Guarantee",
    "Independence",
    "Intersection",
    "Knapsack",
    "Knapsacks",
    "Maximised",
    "Partition",
    "Refreshing",
    "SetFunction",
    "Uniform",
    "check_submodular",
    "continuous_greedy",
    "greedy",
    "lazy_greedy",
    "local_search",
    "potential_search",
    "stochastic_greedy",
    "swap_rounding",
]
