"""Placement as a function to maximise: the models of Carbonari, Kodirov and Golub 2017, and their extensions.

model       `PlacementModel` and its settings; departures from the paper
benefits    what placing a task is worth: the equations
topology    which placed tasks run parallel to which others
rounds      greedy on all pairs of tasks and devices, lazily
tiers       RAM, SSD, HDD as text
"""

from __future__ import annotations

from placeopt.submodular.placement.model import Form, Placed, PlacementModel, PlacementSettings, time_capacity

__all__ = ["Form", "Placed", "PlacementModel", "PlacementSettings", "time_capacity"]
