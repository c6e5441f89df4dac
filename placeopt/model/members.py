"""Members of modes and teams: find the devices of the compiled problem that stand for others.

`placeopt.io.compiler.modes` makes a device of each device or team in each mode: "gpu0: int4", "gpu0+gpu1: split". Each
occupies its members: its tasks use a resource with the name of the member, or the cores of the member.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from placeopt.model.arrays import Bool
from placeopt.model.resources import CORES, Resources

Members = tuple[tuple[int, ...], ...]
"""The devices that each device occupies: (d,) for device d itself."""


def members_by_resource(names: Sequence[str], feasible: Bool, resources: Resources) -> Members | None:
    """Return the members of m devices by their names and by what tasks use on them; None if no device is a mode.

    The uses distinguish modes from devices with similar names. For a mode that can run no task, its name decides.
    """
    place = {name: d for d, name in enumerate(names)}
    candidates = {d: teams for d, name in enumerate(names) if (teams := list(_teams(name, place)))}
    if not candidates:
        return None
    able: Bool = np.asarray(feasible.any(axis=0))
    occupies = np.zeros((len(names), len(names)), dtype=np.bool_)
    for r in np.flatnonzero(resources.renewable).tolist():
        name = resources.names[r].removeprefix(CORES)
        e = place.get(name, place.get(name.rstrip("'")))
        if e is not None:
            occupies[:, e] |= ((resources.amounts(r) > 0) | ~feasible).all(axis=0)
    found = {
        d: team
        for d, teams in candidates.items()
        if (team := next((team for team in teams if occupies[d, list(team)].all()), None)) is not None
    }
    if not any(able[d] for d in found):
        return None
    found |= {d: teams[0] for d, teams in candidates.items() if not able[d]}
    return tuple(found.get(d, (d,)) for d in range(len(names)))


def _teams(name: str, place: Mapping[str, int]) -> Iterator[tuple[int, ...]]:
    """Yield the devices or teams of which a device may be a mode: those named before a colon."""
    for at in (k for k in range(len(name)) if name.startswith(": ", k)):
        team = name[:at]
        if team in place:
            yield (place[team],)
        elif "+" in team and all(each in place for each in team.split("+")):
            yield tuple(place[each] for each in team.split("+"))
