"""Encode arrays of integers for the page."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np

from placeopt.model.arrays import Int

_KINDS = (("u1", 0, 2**8 - 1), ("u2", 0, 2**16 - 1), ("i4", -(2**31), 2**31 - 1))
_ALIGNED = 8


class Packing:
    """Encodes integer arrays as text: little-endian, in the narrowest of four types, deflated, in base64."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self.table: dict[str, dict[str, Any]] = {}
        """The kind (u1, u2, i4, f8), offset in bytes, and length of each array."""

    def add(self, name: str, numbers: Int | list[int]) -> None:
        """Add an array of integers; those beyond 2**53 are rounded to a float64."""
        array = np.asarray(numbers, dtype=np.int64)
        low, high = (int(array.min()), int(array.max())) if len(array) else (0, 0)
        kind = next((kind for kind, least, most in _KINDS if least <= low and high <= most), "f8")
        data = array.astype(f"<{kind}").tobytes()
        self.table[name] = {"kind": kind, "offset": self._size, "length": len(array)}
        data += bytes(-len(data) % _ALIGNED)  # typed arrays start at multiples of their width
        self._parts.append(data)
        self._size += len(data)

    def text(self) -> str:
        """Return all arrays in base64."""
        return base64.b64encode(zlib.compress(b"".join(self._parts), 6)).decode("ascii")
