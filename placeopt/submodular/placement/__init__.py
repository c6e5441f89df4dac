"""The placement models of Carbonari, Kodirov and Golub 2017, and their extensions.

settings    the settings, and how their texts are read
model       `PlacementModel`; departures from the paper
benefits    the equations: the benefit of placing a task
topology    the numbers of parallel tasks
rounds      greedy on all pairs of tasks and devices, lazily
"""

from __future__ import annotations

from placeopt.submodular.placement.model import Form, Placed, PlacementModel
from placeopt.submodular.placement.settings import PlacementSettings, time_capacity

__all__ = ["Form", "Placed", "PlacementModel", "PlacementSettings", "time_capacity"]
