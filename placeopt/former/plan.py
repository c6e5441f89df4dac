"""Former name of `placeopt.io.plan`."""

from placeopt.io.plan import *  # noqa: F403
