"""Compile addresses: the alignment, outputs that may share bytes, and reserved regions of devices."""

from __future__ import annotations

from collections.abc import Iterator

from placeopt.io.compiler.issues import Issues
from placeopt.io.compiler.scales import Scales
from placeopt.io.compiler.tasks import Parts
from placeopt.io.spec import Spec
from placeopt.io.syntax import Path
from placeopt.model.arrays import Int
from placeopt.model.layout import Layout, build_layout
from placeopt.model.problem import LARGEST_ALIGNMENT
from placeopt.model.units import shown, size_text


def stated_alignment(spec: Spec, scales: Scales, issues: Issues) -> int | None:
    """Return the alignment of addresses in bytes; None if the problem asks for no addresses."""
    if spec.addresses is None:
        return None
    path = ("addresses", "alignment")
    alignment = scales.size(spec.addresses.alignment, path)
    if not 1 <= alignment <= LARGEST_ALIGNMENT:
        issues.add(f"{issues.written(path)} is not an alignment; expected 1 B to 1 GiB", path)
    if any("period" in level for level in spec.objective):
        issues.add("addresses are not supported with the objective period", ("addresses",), at_key=True)
    elif spec.memory_model != "peak":
        message = f"addresses need lifetimes; expected memory_model: peak, not {spec.memory_model}"
        issues.add(message, ("addresses",), at_key=True)
    return alignment


def memory_layout(parts: Parts, output: Int, capacity: Int, alignment: int | None) -> Layout | None:
    """Return what outputs (n,) of tasks may share, and what is reserved of devices (m,); None without such keys."""
    shares = list(_shares(parts, output, alignment or 1))
    stated = [key for key, device in parts.spec.devices.items() if device.reserved]
    if stated and parts.spec.addresses is None:
        parts.issues.add(_NEED, ("devices", stated[0], "reserved"), at_key=True)
    if not shares and not stated:
        return None
    room = {device.pool: int(capacity[d]) for d, device in enumerate(parts.index.devices)}
    regions = {key: list(_regions(parts, key, room.get(key, 0))) for key in stated}
    reserved = [regions.get(device.pool, []) for device in parts.index.devices]
    return None if len(parts.issues) else build_layout(output, shares, reserved)


_NEED = "needs offsets of buffers; expected addresses: {} in the problem"


def _shares(parts: Parts, output: Int, alignment: int) -> Iterator[tuple[int, int, int, bool]]:
    """Return the rows of a layout: task, base, first byte, view."""
    issues, tasks = parts.issues, parts.tasks
    for row, name, task in tasks.stating("in_place", "view"):
        named: list[tuple[str, int, Path]]
        named = [(base, 0, ("tasks", name, "in_place", k)) for k, base in enumerate(task.in_place)]
        if task.view is not None:
            at = parts.scales.size(task.view.at, ("tasks", name, "view", "at"))
            named.append((task.view.of, at, ("tasks", name, "view", "of")))
        if named and parts.spec.addresses is None:
            issues.add(_NEED, named[0][2][:3], at_key=True)
        seen = set[str]()
        for base, at, path in named:
            if base not in tasks:
                if not parts.gaps.tasks:
                    issues.unknown("task", base, list(tasks), path)
            elif base not in task.after:
                issues.add(f"{shown(base)} is not a producer of the task; expected one of `after`", path)
            elif base in seen:
                issues.add(f"{shown(base)} is named before; expected either in_place or view", path)
            elif parts.scales.sound and at % max(alignment, 1):
                stated = issues.written(("tasks", name, "view", "at"))
                message = f"{stated} is not a multiple of the alignment, {size_text(alignment)}"
                issues.add(message, ("tasks", name, "view", "at"))
            elif parts.scales.sound and at + output[row] > output[tasks.number[base]]:
                first = f" from byte {at:,} on" if at else ""
                sizes = size_text(int(output[row])), size_text(int(output[tasks.number[base]]))
                issues.add(f"the output of {sizes[0]} does not fit into the {sizes[1]} of {shown(base)}{first}", path)
            else:
                yield row, tasks.number[base], at, path[2] == "view"
            seen.add(base)


def _regions(parts: Parts, key: str, room: int) -> Iterator[tuple[int, int]]:
    """Return the reserved regions of the devices of a key, which have `room` bytes."""
    issues = parts.issues
    for k, region in enumerate(parts.spec.devices[key].reserved):
        path = ("devices", key, "reserved", k)
        begin, end = parts.scales.size(region.begin, (*path, "from")), parts.scales.size(region.end, (*path, "to"))
        if parts.scales.sound and end <= begin:
            stated = issues.written((*path, "to")), issues.written((*path, "from"))
            issues.add(f"{stated[0]} is not after {stated[1]}; expected a later byte", (*path, "to"))
        elif parts.scales.sound and end > room:
            message = f"{issues.written((*path, 'to'))} is above the memory of the device, {size_text(room)}"
            issues.add(message, (*path, "to"))
        else:
            yield begin, end
