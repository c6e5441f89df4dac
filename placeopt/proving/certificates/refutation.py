"""Search a tree of cases that refutes all schedules below a makespan, as a claim.

The cases and the decisions that divide them are those of the checker (`placeopt.verifier.certificates.refutation`), so
a tree that is found here is one that it accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from placeopt.proving.certificates.leaves import Claim
from placeopt.verifier.certificates.model import Model
from placeopt.verifier.certificates.refutation import Case, ClosedError

MOST = 10_000
"""Cases of a tree at most, unless stated otherwise."""


class LimitError(Exception):
    """The tree has too many cases, or the time is over, or a case is a schedule of the model."""


def refutation_claim(
    model: Model, names: Sequence[str], ticks: int, should_stop: Callable[[], bool], most: int = MOST
) -> Claim | None:
    """A claim that the makespan is at least `ticks`; None if none is found. `names` are those of the model's tasks."""
    left = most

    def proof(make: Callable[[], Case]) -> Claim | None:
        """The proof of a case; None if narrowing closes it."""
        nonlocal left
        left -= 1
        try:
            case = make()
        except ClosedError:
            return None
        if left < 2 or should_stop():
            raise LimitError
        decision = case.undecided()
        if decision is None:
            raise LimitError
        i, j = decision.about
        other = case.model.problem.device_names[case.model.devices.leader[j]] if decision.kind == "class" else names[j]
        return {decision.kind: [names[i], other], **{part: proof(made) for part, made in decision.parts}}

    try:
        return {"claim": "refutation", "value": ticks, "proof": proof(lambda: Case(model, ticks - 1))}
    except (LimitError, RecursionError):
        return None
