"""Repeated random placements, each optionally followed by moves: a search in counted steps that keeps the best.

Groups are placed as a whole. If few rules bind, placements are uniform among the feasible ones: all groups are drawn,
each from its own devices, and draws that overfill a device (memory counted as under the memory model `sum`, which is
cautious under `peak`) or break separation are rejected. If that seldom succeeds, placements are those of a random walk
from a packing. Its changes keep all rules, and each is as likely as its inverse. Then consecutive placements resemble
each other, and placements that no such changes connect are not reached.

The schedule of a placement is first in first out (`placeopt.simulation`). The best one has the least lateness, then the
best objective.

n tasks, m devices, g groups.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from placeopt.kernels import kernel, runs_compiled
from placeopt.model.arrays import Int
from placeopt.model.objective import Value, evaluate
from placeopt.model.problem import Problem, transfer_ticks
from placeopt.model.schedule import Schedule, lateness
from placeopt.simulation import Instance, Work, fifo_makespan, make_instance, make_work, simulate
from placeopt.solver import Answer, Clock, Options, Termination

from .._constructive.construction import Construction, as_answer, no_room
from .._constructive.groups import grouped, packings
from .._runs.solve_run import Incumbent
from .._runs.validity import valid

STEPS_A_SECOND = 12_000_000  # tasks and edges that one core simulates in a second or less
PYTHON_STEPS = 10_000  # additional steps per placement if the objective is not the makespan alone
ENOUGH = 20  # placements tried per existing one, at most: any given one is then found with probability 1 - e^-20
CHUNK = 200_000  # steps between two checks of the clock: some hundredths of a second
SLOWER = 50  # factor by which plain Python is slower, at most
FIRST = 10  # placements drawn to test whether most of them break a rule
TRIES = 100  # placements drawn without regard to memory and separation before the random walk is used
MIXING = 4  # changes per group between two placements of the random walk
MODULUS = 2**31 - 1  # of the random numbers

NO_PACKING = (
    "found no placement that fits into memory and keeps separated tasks apart; the solver cp-sat can decide whether "
    "there is one"
)

SEED, LEFT, LATE, SPAN, KNOWN = range(5)
"""Indices of `State.numbers`."""


def sampled(problem: Problem, options: Options, placements: int | None, moves: int) -> Answer:
    """Return the best of a number of random placements and of the placements after each of `moves` moves from them.

    `placements` None: a number computed from the time limit, a second without one. It is the same on all machines; the
    clock only stops machines that are much slower than most. It is at most ENOUGH times the number of placements that
    exist. `Options.initial` is the first placement if it keeps all rules. FAILED if no placement is found.
    """
    if problem.n_tasks == 0:
        return Answer(Termination.COMPLETED, Schedule(np.empty(0, np.int64), np.empty(0, np.int64)))
    search = Sampler(problem, options, moves)
    initial = options.initial
    if initial is not None and valid(problem, initial):
        search.take(initial)
    reason = search.begin()
    if reason is not None and search.best is None:
        return Answer(Termination.FAILED, message=reason)
    termination = Termination.COMPLETED if reason is not None else search.run(placements)
    answer = as_answer(problem, Construction(search.best))
    return Answer(termination, answer.schedule, message=answer.message, stats={"placements": search.looked})


class Sampler:
    """A search: the arrays of the kernels, and the best schedule so far."""

    def __init__(self, problem: Problem, options: Options, moves: int = 0) -> None:
        self.problem, self.options, self.moves = problem, options, moves
        self.clock = Clock(options.time_limit)
        self.incumbent = Incumbent(problem, options, self.clock)
        self.best: Schedule | None = None
        self.badness: tuple[int, tuple[Value, ...]] | None = None
        self.seen: tuple[int, int] | None = None
        self.looked = 0
        groups = self.groups = grouped(problem)
        self.case, self.work = make_instance(problem), make_work(problem)
        options_of, option = np.nonzero(groups.feasible)
        self.rules = Rules(
            problem.group,
            problem.deadline,
            np.searchsorted(options_of, np.arange(problem.n_groups + 1)).astype(np.int64),
            option.astype(np.int64),
            groups.memory,
            groups.apart_start,
            groups.apart,
            problem.capacity,
        )
        n, g = problem.n_tasks, problem.n_groups
        sizes = {"home": g, "trial": g, "room": problem.n_devices, "device": n, "best": n, "numbers": 5}
        self.state = State(**{name: np.zeros(size, dtype=np.int64) for name, size in sizes.items()})
        self.state.numbers[SEED] = 1 + options.seed % (MODULUS - 1)
        self.tries = TRIES
        self.simple = problem.objective.single == "makespan"
        self.each = n + problem.n_edges + problem.n_devices

    def begin(self) -> str | None:
        """Find a first placement of the groups; return the reason if there is none, else None."""
        if self.groups.stuck is not None:
            return no_room(self.problem, self.groups, self.groups.stuck, self.groups.home, self.groups.room)
        for _ in range(2):
            draw(self.state.numbers, 2)  # small seeds give small first numbers
        if not draw_home(self.rules, self.state, FIRST):
            packed = next(packings(self.problem, self.groups), None)
            if packed is None:
                return NO_PACKING
            self.state.home[:] = packed
            self.tries = 0
        if self.best is not None:
            self._start_from(self.best)
        return None

    def drawn(self) -> Int:
        """Draw a placement (n,) that keeps all rules, after `begin`."""
        if not draw_home(self.rules, self.state, self.tries):
            mix_home(self.rules, self.state, MIXING * len(self.state.home))
        return self.state.home[self.problem.group]

    def _start_from(self, schedule: Schedule) -> None:
        """Start the first moves from a schedule's placement if it fits under the memory model `sum`."""
        state, home, room = self.state, self.state.home.copy(), self.problem.capacity.copy()
        home[self.problem.group] = schedule.device
        np.subtract.at(room, home, self.groups.memory)
        if (room < 0).any():
            return
        state.home[:], state.room[:], state.device[:] = home, room, schedule.device
        state.numbers[LEFT] = self.moves
        fifo_makespan.select(self.each)(self.case, state.device, self.work)

    def count(self, placements: int | None) -> int:
        """Return the number of placements to try, moves included."""
        if placements is not None:
            return placements * (1 + self.moves)
        limit = self.options.planned_seconds
        seconds = 1.0 if limit is None else limit
        count = int(seconds * STEPS_A_SECOND / (self.each if self.simple else self.each + PYTHON_STEPS))
        there_are = math.prod(np.diff(self.rules.option_start).tolist())
        return int(max(min(count, ENOUGH * there_are * (1 + self.moves)), 1 + self.moves))

    def run(self, placements: int | None) -> Termination:
        """Try placements, and return why the search stopped."""
        count = self.count(placements)
        look = sample.select(self.each * count, chunked=True)
        chunk = max(CHUNK // self.each, 1) if self.simple else 1
        while count > 0:
            size = min(chunk if runs_compiled(look) else max(chunk // SLOWER, 1), count)
            look(self.case, self.rules, self.state, self.work, size, self.moves, self.tries)
            count -= size
            self.looked += size
            self._take_found()
            if self.options.should_stop():
                return Termination.INTERRUPTED
            if self.clock.over and count > 0:
                return Termination.TIME_LIMIT
        return Termination.COMPLETED

    def _take_found(self) -> None:
        """Take the best placement of the kernel if it is new."""
        state = self.state
        if state.numbers[KNOWN] == 0:  # no new placement
            return
        found = int(state.numbers[LATE]), int(state.numbers[SPAN])
        if not self.simple:
            state.numbers[KNOWN] = 0
        elif found == self.seen:
            return
        self.seen = found
        self.take(simulate(self.problem, state.best))

    def take(self, schedule: Schedule) -> None:
        """Keep a schedule if it is better than the best so far; it may only break deadlines."""
        badness = lateness(self.problem, schedule), evaluate(self.problem, schedule)
        if self.badness is None or badness < self.badness:
            self.best, self.badness = schedule, badness
            if valid(self.problem, schedule):
                self.incumbent.offer(schedule)


class Rules(NamedTuple):
    """The rules for placements of the groups."""

    group: Int
    deadline: Int
    """(n,) as in `Problem`."""
    option_start: Int
    option: Int
    """The devices of each group as CSR."""
    memory: Int
    apart_start: Int
    apart: Int
    """Bytes and separation of groups as in `placeopt_solvers._constructive.groups.Groups`."""
    capacity: Int
    """(m,) bytes."""


class State(NamedTuple):
    """The state of a search, changed in place."""

    home: Int
    trial: Int
    """(g,) the device of each group in a placement that keeps all rules, and in one that is being drawn."""
    room: Int
    """(m,) bytes left by `home`."""
    device: Int
    best: Int
    """(n,) the device of each task, in the current and in the best placement."""
    numbers: Int
    """(5,) by SEED, LEFT, ...: the state of the random numbers; moves left before the next draw; lateness and makespan
    of the best placement in ticks; 1 once there is one."""


@kernel(allocates=False)
def copy(source: Int, target: Int) -> None:
    """Copy an array: Numba needs half a second to compile a slice assignment."""
    for at in range(len(source)):
        target[at] = source[at]


@kernel(allocates=False)
def draw(numbers: Int, below: int) -> int:
    """Return a pseudo-random number in 0..below - 1, below < 2^31: the upper digits of Park and Miller's generator."""
    numbers[SEED] = numbers[SEED] * 48271 % MODULUS
    return int(numbers[SEED] * below // MODULUS)


@kernel(allocates=False)
def must_avoid(rules: Rules, home: Int, k: int, d: int, upto: int) -> bool:
    """Return whether a group below `upto` that must be apart from group k is on device d."""
    for at in range(rules.apart_start[k], rules.apart_start[k + 1]):
        if rules.apart[at] < upto and home[rules.apart[at]] == d:
            return True
    return False


@kernel(copy, draw, must_avoid, allocates=False)
def draw_home(rules: Rules, state: State, tries: int) -> bool:
    """Draw each group's device from its own until a placement keeps memory and separation; return whether one did.

    The result is uniform among the placements that keep them. Fills `home` and `room`.
    """
    g = len(rules.memory)
    for _ in range(tries):
        copy(rules.capacity, state.room)
        fine = True
        for k in range(g):
            first = rules.option_start[k]
            d = rules.option[first + draw(state.numbers, rules.option_start[k + 1] - first)]
            state.trial[k] = d
            state.room[d] -= rules.memory[k]
            if state.room[d] < 0 or must_avoid(rules, state.trial, k, d, k):
                fine = False
                break
        if fine:
            copy(state.trial, state.home)
            return True
    copy(rules.capacity, state.room)
    for k in range(g):
        state.room[state.home[k]] -= rules.memory[k]
    return False


@kernel(allocates=False)
def allowed(rules: Rules, k: int, d: int) -> bool:
    """Return whether group k may be on device d."""
    at = rules.option_start[k]
    while at < rules.option_start[k + 1] and rules.option[at] != d:
        at += 1
    return bool(at < rules.option_start[k + 1])


@kernel(draw, must_avoid, allowed, allocates=False)
def mix_home(rules: Rules, state: State, changes: int) -> None:
    """Change `home` at random: a group moves, or two groups exchange their devices, if all rules are kept.

    Each change is as likely as its inverse. In the long run all reachable placements are therefore equally likely
    (N. Metropolis et al. 1953, doi:10.1063/1.1699114).
    """
    home, room, memory = state.home, state.room, rules.memory
    g = len(memory)
    for _ in range(changes):
        k = draw(state.numbers, g)
        a = home[k]
        if draw(state.numbers, 2) == 0:
            first = rules.option_start[k]
            d = rules.option[first + draw(state.numbers, rules.option_start[k + 1] - first)]
            if d != a and room[d] >= memory[k] and not must_avoid(rules, home, k, d, g):
                home[k] = d
                room[a] += memory[k]
                room[d] -= memory[k]
        else:
            h = draw(state.numbers, g)
            b = home[h]
            gain = memory[k] - memory[h]
            if a == b or room[b] < gain or room[a] < -gain or not allowed(rules, k, b) or not allowed(rules, h, a):
                continue
            home[k], home[h] = b, a
            if must_avoid(rules, home, k, b, g) or must_avoid(rules, home, h, a, g):
                home[k], home[h] = a, b
                continue
            room[a] += gain
            room[b] -= gain


@kernel(transfer_ticks, allocates=False)
def finish(case: Instance, rules: Rules, device: Int, work: Work, i: int, d: int) -> int:
    """Return the tick at which task i would end on device d if it started with its last input.

    `work` holds the times of the placement `device` (n,). Members of the task's group move with it.
    """
    graph = case.graph
    ready: int = graph.release[i]
    for position in range(graph.in_start[i], graph.in_start[i + 1]):
        k = graph.in_edge[position]
        u = graph.edge_source[k]
        arrival = work.start[u] + work.task_ticks[u]
        if device[u] != d and rules.group[u] != rules.group[i]:
            arrival += transfer_ticks(
                case.payload[k],
                case.latency[device[u], d],
                case.byte_ticks_num[device[u], d],
                case.byte_ticks_den[device[u], d],
            )
        ready = max(ready, arrival)
    return ready + int(case.duration[i, d])


@kernel(draw, must_avoid, finish, allocates=False)
def relocate(case: Instance, rules: Rules, state: State, work: Work) -> bool:
    """Move a random task, with its group, to the device where it ends first; return whether the device changes."""
    i = draw(state.numbers, len(state.device))
    k, a = rules.group[i], state.device[i]
    chosen, least = a, finish(case, rules, state.device, work, i, a)
    for at in range(rules.option_start[k], rules.option_start[k + 1]):
        d = rules.option[at]
        if d == a or state.room[d] < rules.memory[k]:
            continue
        if must_avoid(rules, state.home, k, d, len(state.home)):
            continue
        end = finish(case, rules, state.device, work, i, d)
        if end < least or (end == least and d < chosen):
            chosen, least = d, end
    if chosen == a:
        return False
    state.home[k] = chosen
    state.room[a] += rules.memory[k]
    state.room[chosen] -= rules.memory[k]
    for j in range(len(state.device)):
        state.device[j] = state.home[rules.group[j]]
    return True


@kernel(copy, draw_home, mix_home, relocate, fifo_makespan, allocates=False)
def sample(case: Instance, rules: Rules, state: State, work: Work, count: int, steps: int, tries: int) -> None:
    """Try `count` placements and keep the best: by lateness, then by makespan, first in first out.

    Each drawn placement is followed by `steps` moves; a call continues where the last one ended. With `tries` = 0
    placements come from changes of `home` only.
    """
    n, numbers = len(state.device), state.numbers
    for _ in range(count):
        if numbers[LEFT] == 0:
            numbers[LEFT] = steps
            if not draw_home(rules, state, tries):
                mix_home(rules, state, MIXING * len(state.home))
            for i in range(n):
                state.device[i] = state.home[rules.group[i]]
        else:
            numbers[LEFT] -= 1
            if not relocate(case, rules, state, work):
                continue
        span = fifo_makespan(case, state.device, work)
        late = 0
        for i in range(n):
            late = max(late, work.start[i] + work.task_ticks[i] - rules.deadline[i])
        if numbers[KNOWN] == 0 or late < numbers[LATE] or (late == numbers[LATE] and span < numbers[SPAN]):
            numbers[LATE], numbers[SPAN], numbers[KNOWN] = late, span, 1
            copy(state.device, state.best)
