"""Former name of `placeopt.model.metrics`."""

from placeopt.model.metrics import *  # noqa: F403
