"""Solve a series of blocks: solve those on a shortest path, until it cannot become shorter."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from itertools import islice

import numpy as np

from placeopt import engine
from placeopt.bounding.quick import Bound
from placeopt.bounding.relaxation import relaxed_bounds
from placeopt.model.arrays import Bool
from placeopt.model.objective import simplified
from placeopt.model.problem import Problem
from placeopt.protocol import Answer, BlockBound, Blocks, Clock, Options, Progress, Termination
from placeopt.protocol.pool import Pool
from placeopt.protocol.remote import Solve, submitted

from .._runs.exact_run import ExactSettings, bounded_devices
from .._runs.solve_run import Incumbent, SolveRun
from .._runs.time_scaling import makespan_weight
from .._runs.validity import valid_forms
from .._starts.warm_start import best_start, improved_start
from .arcs import NEVER, Arc, Arcs, BlockProblem, Box, EqualByProblem, Known, inflated
from .cuts import Series, series_of
from .joining import joined
from .labels import Memory, Path, distances, fitting, shortest_path
from .prices import Charges, PricedPath, Prices

FIRST, GROWTH, LONGEST = 3.0, 3.0, 86_400.0
"""Planned seconds of the first attempt to solve a block problem, the factor for each further one, and the most seconds:
only a solver that cannot continue, for example because a model is too large, needs that many attempts."""

LEAST, LARGEST, SHARE = 24, 120, 0.8
"""Fewest tasks of a problem, and most tasks of a block and their share of all, with which the decomposition pays."""

QUICK, EARLY = 2e-3, 0.1
"""Seconds to bound an arc, and the largest share of the time limit for that."""

PATIENCE, GAIN, CLOSE = 0.1, 0.95, 0.03
"""Share of the time limit after which a run that had its share of the time ends unless the gap becomes smaller, by
this factor; a run with a gap below the last number continues."""

FEWEST = 4
"""Threads below which a block problem has only one, whose attempts end by their work instead of the clock."""

LANES, POLL = 1000, 0.1
"""Maximum number of attempts in a pool at the same time, and seconds between two checks whether to stop."""

STARVED = 1.01
"""Least ratio of the bounds that prices and no prices may prove, with which prices pay."""

RELAXING, SEARCHING = 1.0, 0.15
"""Seconds for the bounds of a priced block problem, and planned seconds of a search, before it is solved exactly."""

FLAT = 1e-3
"""Least gain of other prices, as a share of the bound, while prices are searched with schedules only."""

MOVES = (0.01, 5e-3, 1e-4)
"""Least gain of other prices, as a share of the bound: before the blocks with free ends had an attempt, before the path
is solved, and after that."""

WIDTH = 24
"""Partial paths of the search for a schedule that fits into memory. It runs after 1, 2, 4, 8, ... rounds and at the
end; in other rounds only the shortest path is tried."""


def series_run(run: SolveRun, solve: Solve, share: float, planned: float | None = None) -> SeriesRun | None:
    """Return a run of the blocks of a run's problem, if it is a series of blocks that pays; both share their incumbent.

    Parameters
    ----------
    solve
        An exact solver for block problems; with a pool, one that can be pickled.
    share
        Share of the remaining time after which the run ends if neither bound nor schedule has improved for a while.
    planned
        Time limit of the run in seconds if the other run has none; None for no limit.
    """
    problem = run.problem
    if makespan_weight(problem.objective) is None or problem.n_tasks < LEAST or problem.rules:
        return None
    try:
        with engine.stopping(run.stopped):
            series = series_of(problem)
    except engine.StoppedError:
        return None
    if series is None or max(len(block.inner) for block in series.blocks) > min(LARGEST, SHARE * problem.n_tasks):
        return None
    remaining = planned if run.clock.remaining is None else run.clock.remaining
    classes = int(problem.device_class.max()) + 1
    if remaining is not None and len(series.blocks) * classes**2 * QUICK > EARLY * remaining:
        return None
    options = replace(run.options, time_limit=remaining)
    return SeriesRun(problem, options, series, solve, run.best, share)


def solved_as_blocks(
    run: SolveRun, solve: Callable[..., Answer], settings: ExactSettings, share: float
) -> Termination | None:
    """Have an exact solver solve its problem as a series of blocks, if it is one; return how to end, None to continue.

    `solve` gets a problem, options and `settings`; see `series_run`.
    """
    if not settings.series:
        return None
    alone = settings.model_copy(update={"series": False})
    blocks = series_run(run, partial(solve, settings=alone), share)
    if blocks is None:
        return None
    answer = blocks.answer()
    run.stats.update(answer.stats)
    run.varies_by = run.varies_by or answer.varies_by
    if answer.termination is Termination.INFEASIBLE:
        return Termination.INFEASIBLE
    return run.first_level_reached(run.best.bound) or run.stop_reason()


class SeriesRun(SolveRun):
    """One solve of a problem that is a series of blocks. The makespan alone is the objective, with any weight.

    `solve` is an exact solver for block problems. `best` may be the incumbent of a run that has other members, which
    get the time after `share` of the limit unless this run still improves.

    With a pool, its slots solve the block problems, one each. Further slots solve problems that are not on the
    shortest path now, but may be on the next one. A lost block problem is solved on this machine.
    """

    def __init__(
        self,
        problem: Problem,
        options: Options,
        series: Series,
        solve: Solve,
        best: Incumbent | None = None,
        share: float = 1.0,
    ) -> None:
        super().__init__(problem, options)
        self.best = self.best if best is None else best
        weight = makespan_weight(problem.objective)
        assert weight is not None
        self.weight = weight
        if options.workers > 1:
            self.varies_by = "threads"
        self.series, self.solve = series, solve
        self.bounded = binding_devices(problem)
        self.memory = Memory(problem, self.bounded)
        self.blocks: list[Arcs] = []
        self.known: EqualByProblem = {}
        self.prices: Prices | None = None
        self.attempts, self.rounds, self.finished = 0, 0, False
        self.share, self.improved, self.gap = share, 0.0, math.inf
        self.patience = PATIENCE * (options.time_limit or math.inf)
        self.sent: dict[int, Future[None]] = {}  # attempts in a pool by the identity of the block problem
        self.local = threading.Semaphore(options.workers)  # limits attempts on this machine
        self.over = threading.Event()

    def resumed(self, limit: float | None) -> Answer:
        """Continue for at most `limit` seconds, as long as the gap becomes smaller."""
        self.clock, self.share, self.improved, self.gap = Clock(limit), 0.0, 0.0, math.inf
        return self.answer()

    def answer(self) -> Answer:
        """Return the best schedule and bound, and why the run ended."""
        self.over.clear()
        self.sent.clear()
        with ThreadPoolExecutor(LANES, thread_name_prefix="blocks") as self.lanes:  # each waits for an attempt
            try:
                why = self._run()
            finally:
                self.over.set()
        for future in self.sent.values():
            future.result()  # raises the error of an attempt that ended last
        self.finished = why is not Termination.TIME_LIMIT
        self.stats = {
            "blocks": len(self.blocks),
            "block problems": sum(len(equal.problems) for equal in self.known.values()),
            "attempts": self.attempts,
        }
        return replace(self.ended(why), blocks=self.proved())

    def proved(self) -> Blocks:
        """Return the bounds of blocks without prices and limits of memory, where they are better than quick ones."""
        bounds = tuple(
            BlockBound(k, *arc.devices, arc.whole.problem, None if arc.length >= NEVER else arc.length)
            for k, arcs in enumerate(self.blocks)
            for arc in arcs.arcs
            if arc.whole is not None and arc.length > arc.lower
        )
        inner = tuple(tuple(block.inner.tolist()) for block in self.series.blocks)
        return Blocks(tuple(self.series.cuts), inner, bounds)

    def _run(self) -> Termination:
        if not self.problem.group_feasible().any(axis=1).all():
            return Termination.INFEASIBLE
        for block in self.series.blocks[len(self.blocks) :]:
            if self.stopped():
                return self.stop_reason() or Termination.TIME_LIMIT
            self.blocks.append(Arcs(self.problem, block, self.bounded))
        if self.bounded.any():
            ended = self._price()
            if ended is not None:
                return ended
        while True:
            known = self._known()
            path = shortest_path(self.blocks, self.memory, known)
            if path is None:  # no schedule is shorter than the known one
                return self._raised(known) or Termination.INFEASIBLE
            ended = self._raised(path.length) or self.stop_reason()
            if ended is not None:
                if ended is Termination.TIME_LIMIT:
                    self._join(path, WIDTH)
                return ended
            unsolved = {k: step.box for k, step in enumerate(path.steps) if not step.box.solved}
            unbuilt = {k: box for k, box in unsolved.items() if box.problem is None}
            for k, box in unbuilt.items():
                self.blocks[k].build(box, self.known)
            if unbuilt:
                continue  # their quick bounds may change the path
            if unsolved and all(box.problem and box.problem.seconds > LONGEST for box in unsolved.values()):
                self._join(path, WIDTH)
                return self._raised(path.length) or Termination.COMPLETED
            if unsolved:
                self._solve(self._needed(unsolved.items()), unsolved)
            elif sum(step.box.length for step in path.steps) > path.length:
                continue  # attempts in a pool have raised bounds since the search for the path
            elif not self._refine(path):
                self._join(path, WIDTH)
                return self._raised(path.length) or Termination.COMPLETED
            self.rounds += 1
            self._join(path, WIDTH if self.rounds & (self.rounds - 1) == 0 else 1)

    def _price(self) -> Termination | None:
        """Prove bounds with prices of memory if they pay; return how the run ends, None to continue with boxes."""
        if self.prices is None:
            self.prices = Prices(self.problem, self.bounded, self.blocks, self.known)
            if self.prices.none:
                self._construct(self.prices)
        prices = self.prices
        if not prices.none:
            return None
        at, value = prices.best()
        if value <= STARVED * prices.value(prices.none):
            return None
        at = self._searched(at)
        while at != prices.none:
            path = prices.path(at)
            if path is None:
                return Termination.INFEASIBLE
            ended = self._raised(path.bound) or self.stop_reason()
            if ended is not None:
                if ended is Termination.TIME_LIMIT:
                    self._fit(WIDTH)
                return ended
            unsettled = {k: arc for k, arc in enumerate(path.arcs) if not prices.settled(k, arc, at)}
            wanted = {k: prices.unsolved(k, arc, at) for k, arc in unsettled.items()}
            unbuilt = [k for k, arc in wanted.items() if at not in arc.priced]
            for k in unbuilt:
                prices.build(k, wanted[k], at)
            if unbuilt:
                continue  # their quick bounds may change the path
            if unsettled and all(arc.priced[at].seconds > LONGEST for arc in wanted.values()):
                return None
            if unsettled:
                self._solve(self._needed_at(at, path, wanted))
                for arcs in self.blocks:
                    arcs.spread(self.known)
                self.rounds += 1
                if self.rounds & (self.rounds - 1) == 0:
                    self._fit(WIDTH)
            best, value = prices.best()
            # Bounds with free ends hold for all arcs, so they come first.
            first = any(arc is self.blocks[k].free and arc.priced[at].attempts < 2 for k, arc in wanted.items())
            if value - prices.value(at) > MOVES[0 if first else 1 if unsettled else 2] * value:
                at = best
            elif not unsettled:
                self._fit(WIDTH)
                break
        return None

    def _construct(self, prices: Prices) -> None:
        """Construct known schedules of all arcs without prices and with high ones."""
        high = tuple(round(prices.largest * 2**prices.shift) for _ in prices.none)
        for k, arcs in enumerate(self.blocks):
            for arc in arcs.arcs:
                if self.stopped():
                    return
                if arc.lower < NEVER and not arc.exact and not arcs.whole(arc, self.known).equal.known:
                    for at in (prices.none, high):
                        self._list_schedule(prices, k, arc, at)

    def _searched(self, at: Charges) -> Charges:
        """Return prices that are best with schedules of the blocks with free ends, found by searches with prices."""
        assert self.prices is not None
        prices = self.prices
        seen: set[Charges] = set()
        while at not in {*seen, prices.none} and not self.stopped():
            seen.add(at)
            free = [prices.build(k, arcs.free, at) for k, arcs in enumerate(self.blocks) if not arcs.free.exact]
            with ThreadPoolExecutor(self.options.workers, thread_name_prefix="blocks") as pool:
                list(pool.map(self._improve, {id(found): found for found in free}.values()))
            for arcs in self.blocks:
                arcs.spread(self.known)
            best, value = prices.best()
            if value - prices.value(at) <= FLAT * value:
                break
            at = best
        return at

    def _list_schedule(self, prices: Prices, k: int, arc: Arc, at: Charges) -> None:
        """Construct a known schedule of an arc of block k for some prices."""
        assert arc.whole is not None
        whole, charge = arc.whole.problem, prices.charge(self.blocks[k], at)
        start = best_start(inflated(whole, charge) if any(at) else whole, None, heuristics=True)
        if start is not None:
            for form in valid_forms(whole, start):
                arc.whole.offer(form)

    def _needed_at(self, at: Charges, path: PricedPath, arcs: dict[int, Arc]) -> list[tuple[BlockProblem, int]]:
        """Return priced block problems by block, each once, and the bound with which the path cannot prove more."""
        assert self.prices is not None
        before, after = self.prices.distances(at)
        known = self._known()
        needed: dict[int, tuple[BlockProblem, int]] = {}
        for k, arc in arcs.items():
            found, on = arc.priced[at], path.arcs[k]
            enough = known + self.prices.memory_ticks(at) - before[k][on.start] - after[k + 1][on.end]
            needed[id(found)] = found, max(enough, needed.get(id(found), (found, 0))[1])
        return list(needed.values())

    def stop_reason(self) -> Termination | None:
        """Return why to stop now; None to continue."""
        now, limit = self.clock.elapsed, self.clock.limit
        if self.best.values is not None and self.best.bound is not None:
            gap = float(self.best.values[0] - self.best.bound)
            if gap < GAIN * self.gap:
                self.gap, self.improved = gap, now
        idle = limit is not None and now > self.share * limit and now - self.improved > self.patience
        if idle and (self.best.values is None or self.gap > CLOSE * float(self.best.values[0])):
            self.varies_by = self.varies_by or "clock"
            return Termination.TIME_LIMIT
        return super().stop_reason()

    def _known(self) -> int:
        """Return the makespan of the incumbent; NEVER without one."""
        return NEVER if self.best.values is None else int(self.best.values[0] / self.weight)

    def _raised(self, bound: int) -> Termination | None:
        """Keep a bound of the makespan; return how to end if it reaches the incumbent."""
        if self.best.schedule is None:
            return None  # bounds of an infeasible problem mean nothing
        self.best.raise_bound(simplified(bound * self.weight), "series")
        return self.first_level_reached(self.best.bound)

    def _refine(self, path: Path) -> bool:
        """Divide boxes on a solved path whose schedules exceed the memory of a device; return whether there is one.

        The devices of small classes keep their identity along the path; one of a large class is new when the path comes
        to it.
        """
        memory, stays, divided = self.memory, 0, False
        names = list(range(memory.columns))  # of the device in each column
        placed: dict[int, list[tuple[Arcs, Box, int]]] = {}
        for arcs, step in zip(self.blocks, path.steps, strict=True):
            box = step.box
            names = [names[column] for column in memory.order(step.swapped)[:-1]]
            for d, column in memory.roles(box).items():
                # The last end of a change of devices in a large class begins a new stay.
                late = column == memory.columns and d == box.devices[1] and not box.same
                name = memory.columns + stays + late if column == memory.columns else names[column]
                placed.setdefault(name, []).append((arcs, box, d))
                if sum(each.held(other, on) for each, other, on in placed[name]) > self.problem.capacity[d]:
                    divided |= self._split(placed.pop(name))
            stays += not box.same
            names = [names[column] for column in memory.order(memory.turned(box))[:-1]]
        return divided

    @staticmethod
    def _split(placed: list[tuple[Arcs, Box, int]]) -> bool:
        """Divide the box whose known schedule has most bytes above its least; return whether there is one."""
        able = [(arcs.held(box, d) - box.low.get(d, 0), -k) for k, (arcs, box, d) in enumerate(placed)]
        if max(able)[0] <= 0:
            return False
        arcs, box, d = placed[-max(able)[1]]
        arcs.split(box, d)
        return True

    def _solve(self, needed: list[tuple[BlockProblem, int]], boxes: dict[int, Box] | None = None) -> None:
        """Solve block problems on a path, those with the least effort so far; `boxes` are those on it by block."""
        if self.options.pool is not None and self.options.pool.slots():
            self._solve_in(self.options.pool, needed, boxes)
            return
        least = min((found.seconds, found.attempts) for found, _ in needed)
        chosen = [each for each in needed if (each[0].seconds, each[0].attempts) == least]
        if len(chosen) < self.options.workers and boxes is not None:
            others = self._others({id(found) for found, _ in needed}, least[0])
            chosen += self._needed(islice(others, self.options.workers - len(chosen)))
        lanes = min(self.options.workers, len(chosen))
        workers = self.options.workers // lanes
        workers = workers if workers >= FEWEST else 1
        if lanes == 1:
            for found, enough in chosen:
                self._attempt(found, enough, workers)
            return
        with ThreadPoolExecutor(lanes, thread_name_prefix="blocks") as pool:
            list(pool.map(lambda each: self._attempt(each[0], each[1], workers), chosen))

    def _needed(self, boxes: Iterable[tuple[int, Box]]) -> list[tuple[BlockProblem, int]]:
        """Return the block problems of boxes, each once, and the bound with which it cannot lie on a better path."""
        before, after = distances(self.blocks)
        known = self._known()
        needed: dict[int, tuple[BlockProblem, int]] = {}
        for k, box in boxes:
            found = box.problem
            assert found is not None
            enough = known - before[k][box.start] - after[k + 1][box.end]
            needed[id(found)] = found, max(enough, needed.get(id(found), (found, 0))[1])
        return list(needed.values())

    def _solve_in(self, pool: Pool, needed: list[tuple[BlockProblem, int]], boxes: dict[int, Box] | None) -> None:
        """Solve the block problems of a path in a pool, and others in the further slots; wait until one attempt ends.

        The attempts that have not ended continue.
        """
        self.varies_by = "clock"
        slots = pool.slots()
        wanted = [each for each in needed if id(each[0]) not in self.sent]
        room = slots - len(self.sent) - len(wanted)
        if room > 0 and boxes is not None:
            chosen = {id(box.problem) for box in boxes.values()} | self.sent.keys()
            most = max(box.problem.seconds for box in boxes.values() if box.problem is not None)
            wanted += self._needed(islice(self._others(chosen, most), room))
        workers = min(pool.threads, max(slots // max(len(self.sent) + len(wanted), 1), 1))
        for found, enough in wanted:
            self.sent[id(found)] = self.lanes.submit(self._attempt, found, enough, workers, pool)
        while not wait(self.sent.values(), POLL, FIRST_COMPLETED).done and not self.stopped():
            pass
        for key, future in list(self.sent.items()):
            if future.done():
                del self.sent[key]
                future.result()

    def _others(self, chosen: set[int], most: float) -> Iterator[tuple[int, Box]]:
        """Yield boxes that are not solved after at most this effort, those on the shortest paths first.

        Boxes whose block problems are already chosen, by their identity, are omitted.
        """
        before, after = distances(self.blocks)
        known = self._known()
        through = [
            (before[k][box.start] + box.length + after[k + 1][box.end], k, i)
            for k, arcs in enumerate(self.blocks)
            for i, box in enumerate(arcs.boxes)
            if not box.solved and box.start in before[k] and box.end in after[k + 1]
        ]
        for ticks, k, i in sorted(through):
            box = self.blocks[k].boxes[i]
            if ticks >= known:
                return
            if box.problem is None:
                self.blocks[k].build(box, self.known)
            assert box.problem is not None
            if not box.solved and box.problem.seconds <= most and id(box.problem) not in chosen:
                chosen.add(id(box.problem))
                yield k, box

    def _attempt(self, found: BlockProblem, enough: int, workers: int, pool: Pool | None = None) -> None:
        """Solve one block problem until its bound reaches `enough`, with which it cannot lie on a better path."""
        found.attempts += 1
        if found.priced and found.attempts == 1:
            self._approach(found, enough)
            return
        if not found.priced:
            found.equal.share(found)
            if found.solved or found.lower >= enough:
                return
        seconds = FIRST if found.seconds == 0 else found.seconds * GROWTH

        def stopped() -> bool:
            return self.over.is_set() or self.options.should_stop() or found.lower >= enough

        def hear(progress: Progress) -> None:
            # Bounds of an infeasible problem mean nothing.
            if progress.bound is not None and progress.objective is not None:
                found.lower = max(found.lower, int(progress.bound))

        def options(workers: int, planned: bool) -> Options:
            remaining = self.clock.remaining
            return Options(
                # A planned attempt ends by its work, not by the clock.
                time_limit=remaining if planned else seconds if remaining is None else min(seconds, remaining),
                nominal_limit=seconds,
                seed=self.options.seed,
                workers=workers,
                initial=found.schedule,
                on_progress=hear,
                should_stop=stopped,
            )

        if self.stopped():
            return
        answer = None
        if pool is not None:
            sent = submitted(pool, self.solve, found.problem, options(workers, planned=False))
            answer = pool.result(sent, lambda: stopped() or self.clock.over)
        if answer is None:
            with self.local:
                if self.stopped() or self.over.is_set() or (pool is not None and not pool.slots()):
                    return
                workers = workers if pool is None else 1
                answer = self.solve(found.problem, options(workers, planned=workers == 1))
        found.seconds = seconds
        self.attempts += 1
        if not stopped():  # no schedule of a problem that is left because of its bound is used
            self.varies_by = self.varies_by or answer.varies_by
        if answer.termination is Termination.INFEASIBLE:
            found.lower = NEVER
        elif answer.bound is not None:
            found.lower = max(found.lower, int(answer.bound))
        if answer.schedule is not None:
            for form in valid_forms(found.problem, answer.schedule):
                found.offer(form)

    def _approach(self, found: BlockProblem, enough: int) -> None:
        """Bound a priced block problem by its relaxations, and improve its schedule by a search.

        Many prices are tried, and both are within a percent of the optimum of most blocks.
        """

        def stopped() -> bool:
            return self.over.is_set() or self.stopped() or found.lower >= min(enough, found.upper)

        def hear(bound: Bound) -> None:
            found.lower = max(found.lower, math.ceil(bound.value))

        self._improve(found)
        with self.local:
            if not stopped():
                remaining = self.clock.remaining
                clock = Clock(RELAXING if remaining is None else min(RELAXING, remaining))
                known = None if found.schedule is None else found.upper
                relaxed_bounds(found.problem, time_limit=clock.limit, known=known, on_bound=hear, should_stop=stopped)
                self.varies_by = self.varies_by or ("clock" if clock.over else "")
        self.attempts += 1

    def _improve(self, found: BlockProblem) -> None:
        """Improve the schedule of a block problem by a search, unless that was done before."""
        if found.improved or found.solved or self.stopped():
            return
        with self.local:
            if found.schedule is None:
                start = best_start(found.problem, None, heuristics=True)
                if start is not None:
                    found.offer(start)
            if found.schedule is not None:
                better = improved_start(found.problem, found.schedule, SEARCHING, self.options.seed, self.stopped)
                if better is not None:
                    found.offer(better)
        found.improved = True

    def _join(self, path: Path, width: int) -> None:
        """Join known schedules, and keep the result if it is feasible and better."""
        guide = [(step.box.arc, _shortest(step.box)) for step in path.steps]
        self._keep_joined(guide, width if any(self.bounded) else 1)

    def _fit(self, width: int) -> None:
        """Join known schedules on a shortest path that fits into memory, and keep the result if it is better."""
        guide = fitting(self.blocks, self.memory, self._known())
        if guide is not None:
            self._keep_joined(guide, width)

    def _keep_joined(self, guide: Sequence[tuple[Arc, Known | None]], width: int) -> None:
        """Join known schedules along a guide, and keep the result if it is feasible and better."""
        schedule = joined(self.problem, self.series, self.blocks, self.bounded, guide, width, self._known())
        if schedule is not None:
            for form in valid_forms(self.problem, schedule):
                self.best.offer(form, "series")
                return


def _shortest(box: Box) -> Known | None:
    """Return the known schedule of a box, or another one that dominates it; None without one."""
    if box.exact or box.problem is None or box.problem.schedule is None:
        return next(iter(box.arc.known), None)
    assert box.arc.equal is not None
    held = {d: int(box.arc.equal.memory[box.problem.schedule.device == d].sum()) for d in box.high}
    return next((k for k in box.arc.known if all(k.held[d] <= most for d, most in held.items())), None)


def binding_devices(problem: Problem) -> Bool:
    """Return which devices (m,) the tasks that they may run can overfill, under the `sum` memory model."""
    found = np.zeros(problem.n_devices, dtype=np.bool_)
    if problem.memory_model == "sum":
        found[bounded_devices(problem)] = True
    return found
