"""Former name of `placeopt.model.schedule`."""

from placeopt.model.schedule import *  # noqa: F403
