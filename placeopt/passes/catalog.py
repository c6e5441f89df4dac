"""Finds passes by name: ours, and third parties' by the entry point group `placeopt.passes`.

A package adds a pass with

    [project.entry-points."placeopt.passes"]
    my-pass = "my_package.my_module:MyPass"
"""

from __future__ import annotations

from importlib.metadata import entry_points

from placeopt.errors import InternalError, UsageError, listing, suggestion
from placeopt.passes.contract_groups import ContractGroups
from placeopt.passes.dominated_edges import DominatedEdges
from placeopt.passes.forced_devices import ForcedDevices
from placeopt.passes.idle_devices import IdleDevices
from placeopt.passes.protocol import Pass
from placeopt.passes.relays import Relays
from placeopt.passes.zero_time import ZeroTime

GROUP = "placeopt.passes"

PASSES: dict[str, Pass] = {
    each.name: each
    for each in (ForcedDevices(), IdleDevices(), Relays(), ZeroTime(), DominatedEdges(), ContractGroups())
}
"""Our passes, in the order in which they are best applied."""

EXACT_PASSES: tuple[str, ...] = tuple(name for name, each in PASSES.items() if each.exact)
"""What exact solvers run behind unless told otherwise."""


def pass_names() -> list[str]:
    """The names of all installed passes: ours in the order in which they are best applied, then the others,
    sorted."""
    others = sorted({point.name for point in entry_points(group=GROUP)} - set(PASSES))
    return [*PASSES, *others]


def find_pass(name: str) -> Pass:
    """The pass of that name.

    Raises
    ------
    UsageError
        If there is none, or the package that offers it cannot be imported.
    """
    if name in PASSES:
        return PASSES[name]
    point = next((point for point in entry_points(group=GROUP) if point.name == name), None)
    if point is None:
        near = suggestion(name, pass_names()) or f"; known are {listing(pass_names(), 40)}"
        raise UsageError(f'unknown pass "{name}"{near}')
    try:
        found = point.load()()
    except (ImportError, AttributeError) as error:
        raise UsageError(f'pass "{name}" ({point.value}) cannot be loaded: {error}') from error
    if not isinstance(found, Pass):
        raise InternalError(f'pass "{name}" ({point.value}) does not implement placeopt.passes.Pass')
    return found
