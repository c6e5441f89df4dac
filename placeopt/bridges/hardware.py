"""Names of devices in runtimes: stated by the caller, or found by words in the types and names of devices."""

from __future__ import annotations

import re
from collections.abc import Mapping

from placeopt.errors import UsageError, alternatives, visible
from placeopt.model.problem import Problem

CPU = ("cpu", "core", "epyc", "raspberry", "xeon")
NVIDIA = (
    "cuda", "jetson", "nvidia", "rtx", "a10", "a100", "b200", "h100", "h200", "l4", "l40s", "t4", "v100",
)  # fmt: skip
AMD = ("amd", "rocm", "mi100", "mi210", "mi250", "mi250x", "mi300", "mi300a", "mi300x")
APPLE = ("apple", "m1", "m2", "m3", "m4")
GPU = ("gpu",)
NPU = ("npu", "qnn")
"""Words for hardware, such as those in the names of the catalogue."""


def by_word(table: Mapping[str, str], kind: str, name: str) -> str | None:
    """Return the entry for a word in the type of a device, or else in its name: `gpu` in `gpu0`, `a100` in `a100-40gb`.

    Words of letters also match at the beginning or the end of a longer one: `gpu` in `igpu`. The longest word counts.
    """
    for text in (kind, name):
        for word in re.findall("[a-z0-9]+", text.lower()):
            found = [key for key in table if key == word or (key.isalpha() and _is_end(key, word))]
            if found:
                return table[max(found, key=len)]
    return None


def _is_end(key: str, word: str) -> bool:
    return word.startswith(key) or word.rstrip("0123456789").endswith(key)


def is_cpu(kind: str, name: str) -> bool:
    """Whether a device is a CPU, by its type and its name."""
    return by_word(_CPU_OR_NOT, kind, name) == "cpu"


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


def stated_name(name: str, kind: str, stated: Mapping[str, str]) -> str | None:
    """Return what is stated for a device, or else for its type."""
    return stated.get(name, stated.get(kind))
