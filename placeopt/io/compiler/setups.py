"""Setup times: the families of tasks, and how long devices take to change to them."""

from __future__ import annotations

from collections.abc import Sequence

from placeopt.io.compiler.tasks import Parts
from placeopt.io.spec import ANY
from placeopt.io.syntax import Path
from placeopt.model.arrays import Bool, Int
from placeopt.model.setups import LARGEST_TABLE, Setups, build_setups, detour
from placeopt.model.units import time_text


def setup_times(parts: Parts, members: Sequence[tuple[int, ...]], duration: Int, feasible: Bool) -> Setups | None:
    """Return the setup times of tasks with `duration` (n, m) where `feasible` (n, m); None if there are none.

    `members` are the devices of the file that each device occupies.
    """
    spec, issues, index = parts.spec, parts.issues, parts.index
    family = {name: task.family for _, name, task in parts.tasks.stating("family") if task.family is not None}
    stated = {key: device.setup for key, device in spec.devices.items() if device.setup}
    changes = {each for setup in stated.values() for to, by in setup.items() for each in (to, *by)} - {ANY}
    every = any(ANY in setup for setup in stated.values()) or index.replaced or parts.gaps.devices
    for name, each in family.items() if not every else ():
        if not stated:
            message = "no device states setup, the times to change to the families of tasks"
            issues.add(message, ("tasks", name, "family"))
        elif each not in changes:
            issues.unknown("family", each, sorted(changes), ("tasks", name, "family"))
    known = sorted({*family.values(), *(to for setup in stated.values() for to in setup)} - {ANY})
    for key, device in spec.devices.items():
        path: Path = ("devices", key, "setup")
        before = [((*path, to, each), each) for to, by in device.setup.items() for each in by if each != ANY]
        before += [(("devices", key, "initial_family"), each) for each in [device.initial_family] if each is not None]
        for place, each in before if not index.replaced else ():
            if each not in known:
                issues.unknown("family", each, known, place, at_key=len(place) > 3)
        if device.setup and (device.parallel or device.cores is not None):
            issues.add("setup is not supported on devices that run several tasks at once", path, at_key=True)
        if device.setup and any("period" in level for level in spec.objective):
            issues.add("setup is not supported with the objective period", path, at_key=True)
    if not stated or len(issues):
        return None
    if len(stated) * (len(known) + 1) ** 2 > LARGEST_TABLE:
        issues.add(f"{len(known)} families are too many for {len(stated)} devices with setup times", ("devices",))
        return None
    ticks = {
        key: {
            to: {each: parts.scales.ticks(time, ("devices", key, "setup", to, each)) for each, time in by.items()}
            for to, by in setup.items()
        }
        for key, setup in stated.items()
    }
    ticks = {key: {to: of.get(to, of.get(ANY, {})) for to in known} for key, of in ticks.items()}
    found = build_setups(
        [family.get(name) for name in parts.tasks],
        [ticks.get(device.pool, {}) for device in index.devices],
        [device.spec.initial_family for device in index.devices],
    )
    found = None if found is None else found.joined(tuple(members))
    if found is not None and not len(issues) and (slow := detour(found, duration, feasible)) is not None:
        times = (time_text(each, parts.scales.resolution) for each in (slow.ticks, slow.faster))
        issues.add(slow.text.format(*times), ("devices", index.devices[slow.device].pool, "setup"), at_key=True)
    return found
