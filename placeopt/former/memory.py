"""Former name of `placeopt.model.memory`."""

from placeopt.model.memory import *  # noqa: F403
