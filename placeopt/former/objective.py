"""Former name of `placeopt.model.objective`."""

from placeopt.model.objective import *  # noqa: F403
