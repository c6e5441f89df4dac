"""Former name of `placeopt.bridges.profiling`."""

from placeopt.bridges.profiling import *  # noqa: F403
