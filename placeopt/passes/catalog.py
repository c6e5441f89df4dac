"""Find passes by name: the built-in ones and those of the entry point group `placeopt.passes`.

A package adds a pass with

    [project.entry-points."placeopt.passes"]
    my-pass = "my_package.my_module:MyPass"

Settings of a pass follow its name: `my-pass:range=100,memory=0.5`.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

from placeopt.errors import InternalError, UsageError, listing, suggestion
from placeopt.passes.baechi import Coplace, Forward, Fuse
from placeopt.passes.celeritas_fusion import CeleritasFusion
from placeopt.passes.contract_groups import ContractGroups
from placeopt.passes.devices import ForcedDevices, IdleDevices
from placeopt.passes.dominated_edges import DominatedEdges
from placeopt.passes.giph_groups import GiphGroups
from placeopt.passes.protocol import Pass
from placeopt.passes.zero_time import Relays, ZeroTime
from placeopt.protocol import Settings, checked_settings

GROUP = "placeopt.passes"

PASSES: dict[str, Pass] = {
    each.name: each
    for each in (
        ForcedDevices(),
        IdleDevices(),
        Relays(),
        ZeroTime(),
        DominatedEdges(),
        ContractGroups(),
        Forward(),
        Coplace(),
        Fuse(),
        CeleritasFusion(),
        GiphGroups(),
    )
}
"""The built-in passes, in the recommended order."""

EXACT_PASSES: tuple[str, ...] = tuple(name for name, each in PASSES.items() if each.exact)
"""The passes that exact solvers use by default."""


def pass_names() -> list[str]:
    """The names of all installed passes: the built-in ones in the recommended order, then the others, sorted."""
    others = sorted({point.name for point in entry_points(group=GROUP)} - set(PASSES))
    return [*PASSES, *others]


def find_pass(wanted: str | Pass) -> Pass:
    """The pass for `NAME` or `NAME:KEY=VALUE,KEY=VALUE`; a pass object is returned unchanged.

    Raises
    ------
    UsageError
        If the pass is unknown or cannot be imported, or a setting is unknown or invalid.
    """
    if not isinstance(wanted, str):
        if isinstance(wanted, type) or not isinstance(wanted, Pass):
            raise UsageError(f"{wanted!r} is not a pass; expected a name, or an object with name and apply")
        return wanted
    name, colon, given = wanted.partition(":")
    found = _named(name.strip())
    if not colon:
        return found
    if not isinstance(found, Settings):
        raise UsageError(f'pass "{wanted}": {found.name} has no settings')
    chosen = checked_settings(f"pass {found.name}", type(found), _assignments(wanted, given))
    assert isinstance(chosen, Pass)
    return chosen


def pass_settings(each: Pass) -> dict[str, Any]:
    """All settings of a pass by name; empty if the pass has none."""
    return each.model_dump(mode="json") if isinstance(each, Settings) else {}


def pass_text(each: Pass) -> str:
    """The pass as `find_pass` accepts it: its name, and the settings that differ from their defaults."""
    if not isinstance(each, Settings):
        return each.name
    changed = each.model_dump(mode="json", exclude_defaults=True)
    return f"{each.name}:{','.join(f'{key}={value}' for key, value in changed.items())}" if changed else each.name


def _assignments(wanted: str, given: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for pair in given.split(","):
        key, equals, value = (part.strip() for part in pair.partition("="))
        key = key.replace("-", "_")
        if not (key and equals and value):
            raise UsageError(f'pass "{wanted}": "{pair}" is not a setting; expected NAME:KEY=VALUE,KEY=VALUE')
        if key in values:
            raise UsageError(f'pass "{wanted}": {key} is set twice')
        values[key] = value
    return values


def _named(name: str) -> Pass:
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
