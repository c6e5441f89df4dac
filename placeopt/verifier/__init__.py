"""Check every rule that a schedule must satisfy: the only part of placeopt that may say "feasible".

    placement      every task has a device that exists (and the arrays have one entry per task)
    feasibility    the task may run on its device
    start          no task starts before tick 0
    release        no task starts before its release time
    swap           no task starts before its device has swapped what lies beyond its first memory tier
    unavailable    no task runs while its device is unavailable
    resource       at no tick do running tasks use more of a renewable resource than its capacity
    budget         all tasks together use no more of a budget than its capacity
    deadline       every task with a deadline ends by then
    overlap        a device runs one task at a time, without preemption, unless it is parallel
    setup          a device is set up for a task between the task before it and its start
    precedence     a task starts after the data of all its producers is on its device
    transfer       contention: the table has each required transfer once, starting after its producer ends
    port           `port`: a device sends one transfer at a time and receives one at a time; `half_duplex`: one in all
    link           a shared link carries one transfer at a time; an uplink with full duplex one in each direction
    memory         no device needs more than its capacity, under the problem's memory model
    address        addresses: every buffer is aligned and within its device, apart from those live at the same time
    colocation     the tasks of a group share a device
    separation     the tasks of a separated pair do not
    stage          pipelines: stages, replicas and recomputation are as the pipeline allows
    period         pipelines: repeated every period, operations of different runs do not overlap
    limit          no metric exceeds its limit
    objective      the claimed objective is that of the schedule

The verifier shares no code with solvers, re-timing, simulation or the definitions that they use. It imports only the
data classes of `placeopt.model.problem` and `placeopt.model.schedule`, and the check of the arguments' types. It reads
only the primary arrays of a problem (no CSR, no order, no device classes) and recomputes every time, transfer and
amount, with Python integers where 64 bits might overflow.

Two intervals [s, e) and [s', e') **overlap** unless e <= s' or e' <= s: one must end before the other starts. An
interval of length zero may lie at the start or end of another one and at other intervals of length zero, but never
strictly inside one: nothing interrupts a running task, not even for an instant. This is the no-overlap constraint of
CP-SAT. It applies to tasks on a device and to transfers on a port or a shared
link.

After a violation the other rules are still checked. A task without a valid device is ignored by all rules except
placement. A task on a device that may not run it takes no time and uses no resource. A transfer missing from the table
starts when its producer ends, the earliest time that a corrected table could state. Of several rows for one transfer,
the first counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from numbers import Real

from placeopt.errors import UsageError
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, check_types
from placeopt.verifier.objective import makespan_of, objective_of
from placeopt.verifier.report import Report, Rule, Violation
from placeopt.verifier.rules import RULES, claim_broken, limits_broken, malformed
from placeopt.verifier.view import view_of

__all__ = ["Report", "Rule", "Violation", "verify"]


def verify(
    problem: Problem, schedule: Schedule, claim: Sequence[int | Fraction] | int | Fraction | None = None
) -> Report:
    """All violations of a schedule, and its objective, recomputed.

    `claim` is the stated objective, one number per level; a different value is a violation. It is ignored if the
    objective cannot be recomputed, since the schedule is then infeasible anyway. Takes O((n + e) log(n + e)) time and
    reports O(n + e) violations: of the tasks that a task overlaps, only the one that ends last is named.

    Raises
    ------
    UsageError
        If an argument is of another type.
    """
    check_types("verify", problem, schedule)
    said = [] if claim is None else list(claim) if isinstance(claim, Iterable) else [claim]
    if isinstance(claim, str) or not all(isinstance(number, Real) for number in said):
        raise UsageError(f"claim is {claim!r}; expected a number for each level of the objective")
    broken = list(malformed(problem, schedule))
    if broken:
        return Report(tuple(broken), None, None)
    view = view_of(problem, schedule)
    violations = [violation for rule in RULES for violation in sorted(rule(view), key=_place)]
    if not view.runs.all():
        return Report(tuple(violations), None, None)
    objective = objective_of(view)
    violations.extend(limits_broken(view))
    if claim is not None:
        violations.extend(claim_broken(problem, objective, said))
    return Report(tuple(violations), objective, makespan_of(view))


def _place(violation: Violation) -> tuple[int, ...]:
    """Sort key: task, device, edge; missing ones first."""
    return tuple(-1 if index is None else index for index in (violation.task, violation.device, violation.edge))
