"""Search a chain of decisions as a claim: of each decision, one part is closed at once, and the other one goes on.

Decisions are about ends of tasks, or about edges. If all tasks before v take too long, v does not end before a tick,
and what follows it starts later; likewise backwards. The bound `intervals` raises heads and tails in this way
(`placeopt.proving.intervals`). If the ends of an edge leave too little time on one device, or on two, the converse
holds: the bound `destructive` probes edges in this way (`placeopt.bounding.destructive`).

Here, quick proofs of infeasibility and the rules of `destructive` find the decisions. The checker closes each part
again before the claim is written.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from placeopt import engine
from placeopt.bounding.destructive import LIMITS, propagation
from placeopt.bounding.quick import narrowed_classes, prove_infeasible
from placeopt.bounding.quick.classes import classes_of, least
from placeopt.bounding.quick.deadlines import narrowed
from placeopt.bounding.quick.paths import windows
from placeopt.model.arrays import Bool, Int
from placeopt.model.problem import Problem
from placeopt.proving.certificates.leaves import Claim, infeasible_claim
from placeopt.proving.certificates.refutation import LimitError, refutation_claim
from placeopt.verifier.certificates import refutation
from placeopt.verifier.certificates.model import Model, within
from placeopt.verifier.certificates.refutation import PARTS, ClosedError, decided, spending

COUNT, TURNS = 16, 2
"""Tasks about whose ends decisions are tried, and how often."""

FINE = 256
"""Ticks are tried up to this part of those between the ends that are known."""

CASES, SMALL, BALANCE = 200, 60, 16
"""Cases of decisions about edges, and of a tree for one that the checker leaves open, at most.

An edge whose parts both change much divides best.
"""

BEFORE, LATER = PARTS["ends"]
TOGETHER, APART = PARTS["pair"]


@dataclass(frozen=True, slots=True)
class Step:
    """A decision about a task and a tick or another task, and its part that is closed."""

    kind: str
    i: int
    j: int
    closed: str

    @property
    def left(self) -> str:
        """The part that goes on."""
        return next(part for part in PARTS[self.kind] if part != self.closed)

    def part(self, problem: Problem, name: str) -> Problem:
        """A part of a problem, with at most the constraints of the part of the decision."""
        i, j = self.i, self.j
        if name == TOGETHER:
            group = np.where(problem.group == problem.group[j], problem.group[i], problem.group)
            return replace(problem, group=np.unique(group, return_inverse=True)[1])
        if name == APART:
            return replace(problem, separation=np.concatenate((problem.separation, [[i, j]])))
        if name == BEFORE:
            deadline = problem.deadline.copy()
            deadline[i] = min(int(deadline[i]), j - 1)
            return replace(problem, deadline=deadline)
        release, longest = problem.release.copy(), int(problem.duration[i][problem.feasible[i]].max(initial=0))
        release[i] = max(int(release[i]), j - longest)
        return replace(problem, release=release)


@dataclass(frozen=True, slots=True)
class Node:
    """Decisions of a case, one after the other; `last`, if there is one, divides it into two cases."""

    steps: list[Step]
    last: Step | None = None
    parts: dict[str, Node] = field(default_factory=dict)


def ends_claim(problem: Problem, ticks: int, model: Model, should_stop: Callable[[], bool]) -> Claim | None:
    """A claim that the makespan is at least these ticks, by decisions about ends of tasks; None if there is none.

    The makespan is the objective of the problem, which is that of the model.
    """
    if problem.n_tasks < 3 or problem.n_devices == 0 or ticks < 2:
        return None

    def refuted(part: Problem) -> bool:
        return should_stop() or prove_infeasible(part) is not None

    start = replace(problem, deadline=np.minimum(problem.deadline, ticks - 1))
    known, steps = start, list[Step]()
    for v in _crowded(problem) * TURNS:
        for part in PARTS["ends"]:
            step = _end(known, v, part, refuted)
            if should_stop():
                return None
            if step is not None:
                steps.append(step)
                known = step.part(known, step.left)
                if refuted(known):
                    return _written(Node(_needed(steps, start, refuted, should_stop)), start, ticks, model, should_stop)
    return None


def pairs_claim(problem: Problem, ticks: int, model: Model, should_stop: Callable[[], bool]) -> Claim | None:
    """The same by decisions about edges: whether their ends share a device. Some divide a case into two that go on.

    It states the names of the tasks of the model's problem.
    """
    if problem.n_devices < 2 or "parallel" in problem.rules or ticks < 1:
        return None
    search = _Pairs(problem, ticks, engine.Stop(should_stop, None))
    try:
        found = search.node(problem)
    except engine.StoppedError:
        return None
    return None if found is None else _written(found, None, ticks, model, should_stop)


class _Pairs:
    """Searches decisions about edges by the rules of the bound `destructive`."""

    def __init__(self, problem: Problem, ticks: int, stop: engine.Stop) -> None:
        self.ticks, self.stop, self.left = ticks, stop, CASES
        self.edges = list(zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True))

    def rules(self, case: Problem) -> tuple[bool, Int, Bool]:
        """Whether the rules refute a case; its windows and clusters, and whether each edge is decided (e,)."""
        classes = narrowed_classes(case)
        found = propagation(classes, windows(classes))
        done = found.refutes(self.ticks - 1, 0, *LIMITS, self.stop)
        same = found.cluster[case.edge_source] == found.cluster[case.edge_target]
        return done, np.concatenate((found.start.ravel(), found.latest.ravel(), found.cluster)), same | (found.cut == 1)

    def refuted(self, case: Problem) -> bool:
        """Whether the rules refute a case."""
        return self.rules(case)[0]

    def node(self, case: Problem) -> Node | None:
        """The decisions of a case; None if there are too many cases."""
        self.left -= 1
        start, steps = case, list[Step]()
        done, cells, known = self.rules(case)
        while not done:
            before, best = len(steps), (-1, 0)
            for e, (u, w) in enumerate(self.edges):
                if known[e]:
                    continue
                pair = [Step("pair", u, w, closed) for closed in PARTS["pair"]]
                tried = [self.rules(step.part(case, step.closed)) for step in pair]
                step = next((step for step, (closed, _, _) in zip(pair, tried, strict=True) if closed), None)
                if step is None:
                    few, many = sorted(int((each != cells).sum()) for _, each, _ in tried)
                    best = max(best, (BALANCE * few + many, e))
                    continue
                steps.append(step)
                case = step.part(case, step.left)
                done, cells, known = self.rules(case)
                if done:
                    break
            if len(steps) == before:
                return self.divided(case, steps, *self.edges[best[1]]) if best[0] >= 0 else None
        return Node(_needed(steps, start, self.refuted, lambda: False))

    def divided(self, case: Problem, steps: list[Step], u: int, w: int) -> Node | None:
        """A case whose decisions end with one that divides it into two cases."""
        last, parts = Step("pair", u, w, TOGETHER), dict[str, Node]()
        for name in PARTS["pair"]:
            part = self.node(last.part(case, name)) if self.left > 0 else None
            if part is None:
                return None
            parts[name] = part
        return Node(steps, last, parts)


def _crowded(problem: Problem) -> list[int]:
    """The tasks with the most work before and behind them, or the longest paths, best first."""
    classes = narrowed_classes(problem)
    found = windows(classes)
    near, far, work = (least(each, found.allowed) for each in (found.head, found.tail, classes.duration))
    inside = np.eye(problem.n_tasks, dtype=np.bool_)  # (n, n), whether the column's task is an ancestor of the row's
    for v in problem.order.tolist():
        inside[v] |= inside[problem.edge_source[problem.edge_target == v]].any(axis=0)
    before, behind = (np.asarray(each @ work.astype(np.float64)) / problem.n_devices for each in (inside, inside.T))
    through = np.maximum(before, near + work) + np.maximum(behind, far + work) - work
    chosen: list[int] = np.argsort(-through, kind="stable")[:COUNT].tolist()
    return chosen


def _end(problem: Problem, v: int, part: str, refuted: Callable[[Problem], bool]) -> Step | None:
    """The decision about the end of a task that leaves the least of the other part; None if none closes this one."""
    bounds = narrowed(classes_of(problem))
    if bounds is None or bounds.late is not None:
        return None
    found, ticks = bounds.found, bounds.classes.duration[v]
    first, last = (int(least(each, found.allowed)[v]) for each in (found.head + ticks, found.tail))
    first, last = first + 1, bounds.horizon - last
    coarse = max((last - first) // FINE, 1)
    tried = range(first, last + 1, coarse) if part == BEFORE else range(last, first - 1, -coarse)

    def opens(tick: int) -> bool:
        step = Step("ends", v, tick, part)
        return not refuted(step.part(problem, part))

    if not tried or opens(tried[0]):
        return None
    return Step("ends", v, tried[bisect_left(tried, True, key=opens) - 1], part)


def _needed(
    steps: list[Step], start: Problem, refuted: Callable[[Problem], bool], should_stop: Callable[[], bool]
) -> list[Step]:
    """The steps without those that the others do not need."""

    def holds(chain: list[Step]) -> bool:
        known = start
        for step in chain:
            if not refuted(step.part(known, step.closed)):
                return False
            known = step.part(known, step.left)
        return refuted(known)

    for step in steps[::-1]:
        fewer = [each for each in steps if each is not step]
        if should_stop():
            break
        steps = fewer if holds(fewer) else steps
    return steps


def _written(
    node: Node, known: Problem | None, ticks: int, model: Model, should_stop: Callable[[], bool]
) -> Claim | None:
    """The tree of these decisions; None if the checker does not close all parts.

    `known` is the problem for quick claims that close them; without it, they are closed by narrowing. The checker has
    fewer rules than `destructive`; what stays open gets a small tree.
    """
    end, spend, names = ticks - 1, spending(LimitError()), model.problem.task_names

    def tree(node: Node, case: Model, known: Problem | None, at: int) -> Claim | None:
        """The tree of a case from a step on; None if narrowing closes it. Raises LimitError if it stays open."""
        if at == len(node.steps) and node.last is None and known is not None:
            claim = infeasible_claim(known, case, ticks)
            if claim is not None:
                return claim
        try:
            case = refutation.narrowed(case, lambda _: end, spend)
        except ClosedError:
            return None
        step = node.steps[at] if at < len(node.steps) else node.last
        if step is None:
            claim = refutation_claim(case, names, ticks, should_stop, SMALL)
            if claim is None:
                raise LimitError
            small: Claim | None = claim["proof"]
            return small
        found: Claim = {step.kind: [names[step.i], step.j if step.kind == "ends" else names[step.j]]}
        for name, part in zip(PARTS[step.kind], decided(case, step.kind, step.i, step.j, end), strict=True):
            problem = known and step.part(known, name)
            if at == len(node.steps):
                found[name] = tree(node.parts[name], part, problem, 0)
            elif name == step.closed:
                found[name] = tree(Node([]), part, problem, 0)
            else:
                found[name] = tree(node, part, problem, at + 1)
        return found

    try:
        return {"claim": "refutation", "value": ticks, "proof": tree(node, within(model, end), known, 0)}
    except (LimitError, RecursionError):
        return None
