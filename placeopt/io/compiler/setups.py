"""Setup times: the families of tasks, and how long devices take to change to them."""

from __future__ import annotations

from placeopt.io.compiler.tasks import Parts
from placeopt.io.spec import ANY
from placeopt.model.arrays import Bool, Int
from placeopt.model.setups import LARGEST_TABLE, Setups, build_setups, detour
from placeopt.model.units import time_text


def setup_times(parts: Parts, duration: Int, feasible: Bool) -> Setups | None:
    """Return the setup times of tasks with `duration` (n, m) where `feasible` (n, m); None if there are none."""
    spec, issues, index = parts.spec, parts.issues, parts.index
    families: list[str | None] = [None] * len(parts.tasks)
    named = {name: row for row, name, task in parts.tasks.stating("family") if task.family is not None}
    for name, row in named.items():
        families[row] = parts.tasks[name].family
    stated = {key: device.setup for key, device in spec.devices.items() if device.setup}
    known = sorted({to for setup in stated.values() for to in setup} - {ANY})
    every = any(ANY in setup for setup in stated.values()) or index.replaced or parts.gaps.devices
    for name in () if every else named:
        path = ("tasks", name, "family")
        if not stated:
            issues.add("no device states setup, the times to change to the families of tasks", path)
        elif parts.tasks[name].family not in known:
            issues.unknown("family", str(parts.tasks[name].family), known, path)
    known = sorted({*known, *(family for family in families if family is not None)})
    for key, device in spec.devices.items():
        before = [(("devices", key, "setup", to, family), family) for to, by in device.setup.items() for family in by]
        before += [(("devices", key, "initial_family"), device.initial_family)] if device.initial_family else []
        for path, family in before:
            if family not in known and (family != ANY or path[-1] == "initial_family") and not index.replaced:
                issues.unknown("family", family, known, path, at_key=len(path) > 3)
        if device.setup and (device.parallel or device.cores is not None):
            message = "setup is not supported on devices that run several tasks at once"
            issues.add(message, ("devices", key, "setup"), at_key=True)
        if device.setup and any("period" in level for level in spec.objective):
            issues.add("setup is not supported with the objective period", ("devices", key, "setup"), at_key=True)
    if not stated or len(issues):
        return None
    if len(stated) * (len(known) + 1) ** 2 > LARGEST_TABLE:
        issues.add(f"{len(known)} families are too many for {len(stated)} devices with setup times", ("devices",))
        return None
    ticks = {
        key: {
            to: {family: parts.scales.ticks(time, ("devices", key, "setup", to, family)) for family, time in by.items()}
            for to, by in setup.items()
        }
        for key, setup in stated.items()
    }
    ticks = {key: {to: of.get(to, of.get(ANY, {})) for to in known} for key, of in ticks.items()}
    changes = [ticks.get(device.pool, {}) for device in index.devices]
    found = build_setups(families, changes, [device.spec.initial_family for device in index.devices])
    if found is not None and not len(issues) and (slow := detour(found, duration, feasible)) is not None:
        times = (time_text(each, parts.scales.resolution) for each in (slow.ticks, slow.faster))
        path = ("devices", index.devices[slow.device].pool, "setup")
        issues.add(slow.text.format(*times), path, at_key=True)
    return found
