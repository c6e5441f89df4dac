"""From a schedule to a state and back."""

from __future__ import annotations

import numpy as np

from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, Transfers, edge_transfers, sequence

from .case import Case
from .decoding import decode
from .moving import settle
from .proposals import MODULUS
from .state import ACCEPTED, HELD, LONGEST, SEED, STEP, State


def make_state(case: Case, problem: Problem, seed: int) -> State:
    """Room for a search; `load_schedule` fills it."""
    n, m = problem.duration.shape
    g, e = problem.n_groups, problem.n_edges
    shift = max(2 * m - 1, 15).bit_length()
    count = -(-n >> shift)
    size = {"home": g, "best_home": g, "delay": e, "moved": LONGEST, "origin": LONGEST, "stamp": max(n, m, g)}
    size |= {"load": m, "room": m, "free": m, "send": m, "receive": m}
    size |= {"arrive": e if case.port else 0, "number": ACCEPTED + 1}
    shared = bool(case.port and problem.shared.any())
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(State._fields, (n,)) | {name: (k,) for name, k in size.items()}
    shapes |= dict.fromkeys(("owner", "written", "sent"), (n, m) if shared else (0, 0))
    shapes |= dict.fromkeys(("freed", "time", "code"), (n,) if case.peak else (0,))
    shapes |= {"level": (3, m) if case.peak else (0, 0)}
    shapes |= dict.fromkeys(("marks", "old_marks"), (count + 1, 3 * m + 1))
    shapes |= dict.fromkeys(("latest", "late", "old_latest", "old_late"), (count,))
    arrays = {name: np.zeros(shape, dtype=np.int64) for name, shape in shapes.items()}
    arrays["number"][STEP] = shift
    arrays["number"][SEED] = seed % (MODULUS - 1) + 1
    arrays["written"][...] = -1
    return State(**arrays | {"cost": np.array([0.0] * HELD + [np.inf])})


def load(problem: Problem, state: State, schedule: Schedule) -> None:
    """Give the state the schedule's placement and, as far as its times tell, its order."""
    state.order[:] = sequence(problem, schedule)
    state.home[problem.group] = schedule.device


def current_schedule(problem: Problem, case: Case, state: State) -> Schedule:
    """The schedule of a state, timed anew."""
    steps = problem.n_tasks + problem.n_edges
    settle.select(steps)(case, state)
    decode.select(steps)(case, state, 0, np.inf)
    if not case.timed:  # nothing asks for times, so there are none
        timed = case._replace(timed=True)
        decode.select(steps)(timed, state, 0, np.inf)
    transfers = None
    if case.port:
        edges = np.flatnonzero(edge_transfers(problem, state.device) == np.arange(problem.n_edges))
        at = case.slot[edges]
        transfers = Transfers(edges, state.arrive[at] - state.delay[at])
    return Schedule(state.device, state.end - state.ticks, transfers)
