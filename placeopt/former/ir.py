"""Former name of `placeopt.model.problem`."""

from placeopt.model.arrays import *  # noqa: F403
from placeopt.model.building import *  # noqa: F403
from placeopt.model.problem import *  # noqa: F403
