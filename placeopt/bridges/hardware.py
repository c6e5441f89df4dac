"""Names of devices in runtimes: stated by the caller, or found by the catalogue and by words in types and names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from placeopt.errors import UsageError, alternatives, visible
from placeopt.model.problem import CATALOGUE, Problem

CPU = ("cpu", "core", "epyc", "raspberry", "xeon")
NVIDIA = (
    "cuda", "jetson", "nvidia", "rtx", "a10", "a100", "b200", "h100", "h200", "l4", "l40s", "t4", "v100",
)  # fmt: skip
AMD = ("amd", "rocm", "mi100", "mi210", "mi250", "mi250x", "mi300", "mi300a", "mi300x")
APPLE = ("apple", "m1", "m2", "m3", "m4")
GPU = ("gpu",)
NPU = ("npu", "qnn")
"""Words for hardware, such as those in the names of the catalogue."""


class Device(NamedTuple):
    """What identifies the hardware of a device."""

    name: str
    type: str
    like: str | None = None
    """The device of the catalogue; None if the problem states none."""


def devices_of(problem: Problem) -> list[Device]:
    """Return the devices of a problem in order."""
    found = problem.provenance.get(CATALOGUE)
    likes = {key: str(like) for key, like in found.items()} if isinstance(found, Mapping) else {}
    pairs = zip(problem.device_names, problem.device_types, strict=True)
    return [Device(name, kind, likes.get(name)) for name, kind in pairs]


def by_word(table: Mapping[str, str], device: Device) -> str | None:
    """Return the entry for a word in the type of a device, or else in its name: `gpu` in `gpu0`, `a100` in `a100-40gb`.

    Words of letters also match at the beginning or the end of a longer one: `gpu` in `igpu`. The longest word counts.
    A device of the catalogue is the hardware that its entry names. Its type and name then count for words that mean no
    hardware, such as `tensorrt`, and where the entry has no word of the table.
    """
    own = (device.type, device.name)
    if device.like is None:
        return _entry(table, own)
    software = {word: entry for word, entry in table.items() if word not in _CPU_OR_NOT}
    contrary = "" if is_cpu(Device(device.like, device.like)) else "cpu"
    possible = {word: entry for word, entry in table.items() if _CPU_OR_NOT.get(word) != contrary}
    return _entry(software, own) or _entry(possible, (device.like, *own))


def _entry(table: Mapping[str, str], texts: Iterable[str]) -> str | None:
    """Return the entry for a word in the first text that has one."""
    for text in texts:
        for word in re.findall("[a-z0-9]+", text.lower()):
            found = [key for key in table if key == word or (key.isalpha() and _is_end(key, word))]
            if found:
                return table[max(found, key=len)]
    return None


def _is_end(key: str, word: str) -> bool:
    return word.startswith(key) or word.rstrip("0123456789").endswith(key)


def is_cpu(device: Device) -> bool:
    """Whether a device is a CPU."""
    return by_word(_CPU_OR_NOT, device) == "cpu"


_CPU_OR_NOT = dict.fromkeys(CPU, "cpu") | dict.fromkeys((*NVIDIA, *AMD, *APPLE, *GPU, *NPU), "")


def check_stated(
    problem: Problem, stated: Mapping[str, str], form: re.Pattern[str], expected: str, option: str = "--provider"
) -> None:
    """Reject names that an option states for devices that do not exist, and names without the form of a runtime's."""
    known = list(dict.fromkeys((*problem.device_names, *problem.device_types)))
    for key, name in stated.items():
        if key not in known:
            raise UsageError(
                f"{option} {visible(key)}: the problem has no such device or type{alternatives(key, known)}"
            )
        if not form.fullmatch(str(name)):
            raise UsageError(f"{option} {visible(key)}={visible(str(name))}: expected {expected}")


def stated_name(device: Device, stated: Mapping[str, str]) -> str | None:
    """Return what is stated for a device, or else for its type."""
    return stated.get(device.name, stated.get(device.type))
