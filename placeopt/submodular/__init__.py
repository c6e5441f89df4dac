"""Maximising submodular functions under matroids, and what is proved of it.

functions      what a set function is to the maximisers
families       concave over modular, coverage, facility location, sums
independence   what an independence oracle is to them, and intersections
matroids       uniform, partition, laminar
knapsacks      one, or one for each part
standard       `greedy`
lazy           `lazy_greedy`: the same set with fewer evaluations
stochastic     `stochastic_greedy`: on random samples
exchanges      `local_search`
potential      `potential_search`: local search by another function than the one to maximise
continuous     `continuous_greedy`, and `rounding` of what it finds
guarantees     what is proved of which maximiser, and what voids it
results        what they return, with a bound of the best there is
checks         `check_submodular`: counterexamples to what a function claims
placement      the models of Carbonari, Kodirov and Golub 2017
"""

from __future__ import annotations

from placeopt.submodular.checks import Check, Checks, check_submodular
from placeopt.submodular.continuous import continuous_greedy
from placeopt.submodular.counterexamples import Counterexample
from placeopt.submodular.exchanges import local_search
from placeopt.submodular.families import ConcaveOverModular, FacilityLocation, PiecewiseLinear, Sum, WeightedCoverage
from placeopt.submodular.functions import Local, Refreshing, SetFunction
from placeopt.submodular.guarantees import Guarantee
from placeopt.submodular.independence import Independence, Intersection
from placeopt.submodular.knapsacks import Knapsack, Knapsacks
from placeopt.submodular.lazy import lazy_greedy
from placeopt.submodular.matroids import Laminar, Partition, Uniform
from placeopt.submodular.potential import potential_search
from placeopt.submodular.results import Maximised
from placeopt.submodular.rounding import swap_rounding
from placeopt.submodular.standard import greedy
from placeopt.submodular.stochastic import stochastic_greedy

__all__ = [
    "Check",
    "Checks",
    "ConcaveOverModular",
    "Counterexample",
    "FacilityLocation",
    "Guarantee",
    "Independence",
    "Intersection",
    "Knapsack",
    "Knapsacks",
    "Laminar",
    "Local",
    "Maximised",
    "Partition",
    "PiecewiseLinear",
    "Refreshing",
    "SetFunction",
    "Sum",
    "Uniform",
    "WeightedCoverage",
    "check_submodular",
    "continuous_greedy",
    "greedy",
    "lazy_greedy",
    "local_search",
    "potential_search",
    "stochastic_greedy",
    "swap_rounding",
]
