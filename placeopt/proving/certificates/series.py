"""Write a bound by blocks between tasks that cut the graph as a claim."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.protocol import BlockBound, Blocks, Clock, Options, unsupported
from placeopt.protocol.registry import find_solver, solver_names
from placeopt.proving.certificates.chains import pairs_claim
from placeopt.proving.certificates.leaves import Claim, best_claim, relying
from placeopt.proving.certificates.refutation import due_claim, refutation_claim
from placeopt.verifier.certificates import check_claim
from placeopt.verifier.certificates.blocks import BlockPath, affordable
from placeopt.verifier.certificates.model import Model, model_of
from placeopt.verifier.certificates.refutation import PARTS
from placeopt.verifier.certificates.said import Said

SERIES, SHARE = "series", 0.5
"""The solver of blocks, and its share of the time."""

CASES = 300, 20_000
"""Cases of the trees of blocks, in rounds."""


def series_claim(
    problem: Problem,
    ticks: int,
    model: Model,
    schedule: Schedule | None,
    clock: Clock,
    should_stop: Callable[[], bool],
) -> Claim | None:
    """A claim that the makespan is at least these ticks; None if no blocks prove that within the time limit.

    Blocks without the constraints that span them prove less than the bound if memory is scarce. Addresses are left out:
    schedules of blocks have none.
    """
    problem = replace(problem, alignment=None, layout=None)
    schedule = None if schedule is None else replace(schedule, offsets=None)
    if SERIES not in solver_names() or unsupported(find_solver(SERIES).info, problem) is not None:
        return None
    solver = find_solver(SERIES)
    seconds = None if clock.remaining is None else SHARE * clock.remaining
    options = Options(time_limit=seconds, initial=schedule, should_stop=should_stop)
    blocks = solver.solve(problem, options, solver.settings_type(whole=False)).blocks  # type: ignore[call-arg]
    if blocks is None or not blocks.cuts or not affordable(model, len(blocks.cuts) + 1):
        return None
    stated = _stated(problem, blocks)
    path = BlockPath(Said(model, stated, "proof", check_claim))
    found = {path.key(*_ends(each)): each for each in blocks.bounds}
    values = {key: ticks if each.ticks is None else min(each.ticks, ticks) for key, each in found.items()}
    if path.shortest(values) < ticks:
        return None
    # The largest blocks first: what relies on an engine should be about few tasks.
    for key in sorted(values, key=lambda key: -found[key].problem.n_tasks):
        del values[key]
        missing = ticks - path.shortest(values)
        if missing > 0:
            values[key] = path.default(*key) + missing
    order = sorted(values, key=lambda key: found[key].problem.n_tasks)
    proofs = _Proofs([(found[key].problem, values[key]) for key in order], clock, should_stop).found()
    arcs = []
    for key, proof in zip(order, proofs, strict=True):
        if proof is None:
            proof = relying(path.block(*_ends(found[key])), "makespan", values[key], "CP-SAT")
        arcs.append(_arc(problem, blocks, found[key], proof))
    return {**stated, "arcs": sorted(arcs, key=lambda arc: arc["block"]), "value": ticks}


def _stated(problem: Problem, blocks: Blocks) -> Claim:
    """The claim without its arcs."""
    names = problem.task_names
    inner = [[names[i] for i in tasks] for tasks in blocks.inner]
    return {"claim": "series", "cuts": [names[i] for i in blocks.cuts], "blocks": inner}


def _arc(problem: Problem, blocks: Blocks, bound: BlockBound, proof: Claim) -> Claim:
    """A claim about an arc; its proof names tasks by their numbers in the block."""
    start, end = (None if d is None else problem.device_names[d] for d in _ends(bound)[1:])
    ends = blocks.cuts[max(bound.block - 1, 0) : bound.block + 1]
    names = [problem.task_names[i] for i in sorted({*blocks.inner[bound.block], *ends})]
    proof = _renamed(proof, names)
    return {"block": bound.block, "start": start, "end": end, "proof": proof}


def _ends(bound: BlockBound) -> tuple[int, int | None, int | None]:
    """A block, and the devices of its cuts; None for a missing cut."""
    start, end = (None if d < 0 else d for d in (bound.start, bound.end))
    return bound.block, start, end


class _Proofs:
    """Proofs of bounds of blocks; equal blocks have equal ones.

    Small trees of all blocks come before large ones of some.
    """

    def __init__(self, wanted: list[tuple[Problem, int]], clock: Clock, should_stop: Callable[[], bool]) -> None:
        self.wanted, self.clock, self.should_stop = wanted, clock, should_stop
        self.keys = [(block.fingerprint(), ticks) for block, ticks in wanted]
        self.known: dict[tuple[str, int], Claim] = {}
        self.models: dict[tuple[str, int], Model] = {}

    def found(self) -> list[Claim | None]:
        """A proof of each bound: a quick bound or a tree of cases; None if the engine alone proved it."""
        for most in (0, *CASES):
            missing = {key: each for key, each in zip(self.keys, self.wanted, strict=True) if key not in self.known}
            for left, (key, (block, ticks)) in zip(range(len(missing), 0, -1), missing.items(), strict=True):
                if key not in self.models:
                    self.models[key] = model_of(block)
                claim = self._tree(self.models[key], block, ticks, most, left)
                if claim is not None:
                    self.known[key] = {**claim, "value": ticks}
        return [self.known.get(key) for key in self.keys]

    def _tree(self, model: Model, block: Problem, ticks: int, most: int, left: int) -> Claim | None:
        """A quick bound, or a tree of cases within an equal share of the time for those that are left."""
        remaining, names = self.clock.remaining, [str(i) for i in range(model.n)]
        clock = Clock(None if remaining is None else remaining / left)

        def over() -> bool:
            return clock.over or self.should_stop()

        claim = pairs_claim(block, ticks, model, over) if most == CASES[0] else None
        claim = claim or (refutation_claim(model, names, ticks, over, most) if most else None)
        claim = claim or (None if most else best_claim(block, "makespan", model, ticks))
        return claim or (None if most else due_claim(model, block, ticks))


def _renamed(proof: Claim, names: Sequence[str]) -> Claim:
    """A claim, or a tree of cases, with the names of tasks instead of their numbers."""
    renamed: Claim = {}
    for key, value in proof.items():
        if key in ("tasks", *PARTS) and isinstance(value, list):
            renamed[key] = [
                each if at and key in ("class", "ends") else names[int(each)] for at, each in enumerate(value)
            ]
        else:
            renamed[key] = _renamed(value, names) if isinstance(value, dict) else value
    return renamed
