"""Every rule that a schedule breaks: the only part of placeopt that may say "feasible".

    placement      every task has a device that exists (and the arrays have one entry per task)
    feasibility    the task may run on its device
    start          no task starts before tick 0
    release        no task starts before its release time
    deadline       every task that states a deadline has ended by then
    overlap        a device runs one task at a time, without preemption
    precedence     a task starts when the data of all its producers is on its device, or later
    transfer       port contention: each needed transfer stands in the table once, its producer has ended
    port           port contention: a device sends one transfer at a time and receives one at a time
    memory         no device needs more than its capacity, under the problem's memory model
    colocation     the tasks of a group share a device
    separation     the tasks of a separated pair do not
    objective      the claimed objective is the one the schedule has

Nothing here is shared with solvers, retiming, simulation or the definitions they use: only the
data classes of `placeopt.model.problem` and `placeopt.model.schedule` are imported, of a problem only its primary
arrays are read (no CSR, no order, no device classes), and every time, transfer and amount is worked
out anew, in Python integers where 64 bits might not do.

Two intervals [s, e) and [s', e') **overlap** unless e <= s' or e' <= s: one must have ended when the
other starts. So an interval of no length may stand where another starts or ends and where others of
no length stand, never strictly inside one: what runs is not interrupted, not even for an instant.
This is the no-overlap of CP-SAT and holds for tasks on a device and for transfers on a port alike.

After a violation the other rules go on with what is left. A task without a valid device is left out
of all rules but placement. A task on a device that may not run it counts as taking no time. A
transfer that is missing in the table counts as starting when its producer ends, the earliest that
any table could mend it to; of several rows for one transfer the first counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, check_types
from placeopt.verifier.objective import makespan_of, objective_of
from placeopt.verifier.report import Report, Rule, Violation
from placeopt.verifier.rules import RULES, claim_broken, malformed
from placeopt.verifier.view import view_of

__all__ = ["Report", "Rule", "Violation", "verify"]


def verify(problem: Problem, schedule: Schedule, claim: Sequence[int | Fraction] | None = None) -> Report:
    """Everything wrong with a schedule, and its objective recomputed.

    `claim` is the objective that someone says the schedule has, one number a level; one that differs
    is a violation. It is not looked at where the objective cannot be recomputed, for then the
    schedule is not feasible anyway. Takes O((n + e) log(n + e)) time and reports O(n + e)
    violations: of the tasks that a task overlaps, only the one that ends last is named.
    """
    check_types("verify", problem, schedule)
    broken = list(malformed(problem, schedule))
    if broken:
        return Report(tuple(broken), None, None)
    view = view_of(problem, schedule)
    violations = [violation for rule in RULES for violation in sorted(rule(view), key=_place)]
    if not view.runs.all():
        return Report(tuple(violations), None, None)
    objective = objective_of(view)
    if claim is not None:
        violations.extend(claim_broken(problem, objective, claim))
    return Report(tuple(violations), objective, makespan_of(view))


def _place(violation: Violation) -> tuple[int, ...]:
    """Sort key: task, device, edge; what has none comes first."""
    indices = (violation.task, violation.device, violation.edge)
    return tuple(-1 if index is None else index for index in indices)
