"""Examples of problems: files of problems/, which the package contains."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from placeopt.cli.service.cards import Example
from placeopt.io.document import parse_document

NAMES = (
    "heft-10", "five-node", "camera-box", "sensor-fusion", "edge-perception", "workstation", "pcie-roots",
    "llama-8b", "four-stages",
)  # fmt: skip
"""Problems that name no other files, the smallest ones first."""


def text(name: str) -> str | None:
    """Return the text of an example; None if there is none of this name."""
    return (_folder() / f"{name}.yaml").read_text(encoding="utf-8") if name in NAMES else None


@cache
def known() -> list[Example]:
    """Return the names and descriptions of all examples."""
    found = []
    for name in NAMES:
        data = parse_document(text(name) or "").data
        found.append(Example(name=name, description=" ".join(data.get("description", "").split())))
    return found


def _folder() -> Traversable:
    """The folder of the examples: in a wheel that of this package, in a checkout that of the problems."""
    packaged = files("placeopt.cli.service") / "problems"
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / "problems"
