"""The rules of allocations. Nothing here is shared with what finds them.

| rule | content |
|---|---|
| `offset` | an offset is not negative |
| `alignment` | an offset is a multiple of the buffer's alignment |
| `fixed` | a given offset is kept |
| `overlap` | buffers that are live at the same time do not overlap in memory |
| `capacity` | no buffer ends above the capacity |
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from placeopt.allocation.problem import Buffers
from placeopt.model.arrays import whole_numbers


@dataclass(frozen=True, slots=True)
class AllocationReport:
    """What the verifier found: the height in bytes, and broken rules as (rule, message)."""

    height: int
    violations: tuple[tuple[str, str], ...]

    @property
    def feasible(self) -> bool:
        """Whether no rule is broken."""
        return not self.violations

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON."""
        broken = [{"rule": rule, "message": message} for rule, message in self.violations]
        return {"feasible": self.feasible, "height": self.height, "violations": broken}


def verify_allocation(problem: Buffers, offset: object, *, capacity: int | None = None) -> AllocationReport:
    """Check every rule, in Python integers; `offset` holds (n,) bytes.

    Raises
    ------
    UsageError
        If the offsets are not whole numbers, or not one for each buffer.
    """
    at = whole_numbers("offset", offset, (len(problem),), "buffers", least=None).tolist()
    size = problem.size.tolist()
    violations: list[tuple[str, str]] = []
    for k, (low, bytes_, step) in enumerate(zip(at, size, problem.alignment.tolist(), strict=True)):
        name, given = problem.names[k], problem.fixed[k]
        if low < 0:
            violations.append(("offset", f"{name} lies at {low}"))
        if low % step:
            violations.append(("alignment", f"{name} lies at {low}, which is not a multiple of {step}"))
        if given is not None and given != low:
            violations.append(("fixed", f"{name} lies at {low}; its given offset is {given}"))
        if capacity is not None and low + bytes_ > capacity:
            violations.append(("capacity", f"{name} ends at {low + bytes_}, above the capacity {capacity}"))
    for a, b in _overlaps(problem.lower.tolist(), problem.upper.tolist(), at, size):
        both = f"[{at[a]}, {at[a] + size[a]}) and [{at[b]}, {at[b] + size[b]})"
        violations.append(("overlap", f"{problem.names[a]} and {problem.names[b]} are live together at {both}"))
    height = max((low + bytes_ for low, bytes_ in zip(at, size, strict=True)), default=0)
    return AllocationReport(height, tuple(violations))


def _overlaps(lower: list[int], upper: list[int], at: list[int], size: list[int]) -> Iterator[tuple[int, int]]:
    """Pairs that overlap in time and memory, by a sweep over time. At each time, ends come before begins."""
    events = sorted([(t, 0, k) for k, t in enumerate(upper)] + [(t, 1, k) for k, t in enumerate(lower)])
    live: list[tuple[int, int]] = []  # offsets and buffers
    apart = True
    for _, begins, k in events:
        if not begins:
            del live[bisect_left(live, (at[k], k))]
            continue
        if apart:  # then only neighbours can overlap
            place = bisect_left(live, (at[k], k))
            near = [other for _, other in live[max(place - 1, 0) : place + 1]]
            apart = all(at[other] + size[other] <= at[k] or at[k] + size[k] <= at[other] for other in near)
        if not apart:
            for low, other in live:
                if low < at[k] + size[k] and at[k] < low + size[other]:
                    yield min(k, other), max(k, other)
        insort(live, (at[k], k))
