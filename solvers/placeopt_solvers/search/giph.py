"""giph: a search whose moves a trained policy chooses.

Y. Hu, C. Zhang, E. Andert, H. Singh, A. Shrivastava, J. Laudon, Y. Zhou, B. Iannucci, C. Joe-Wong: GiPH: Generalizable
placement learning for adaptive heterogeneous computing, MLSys 2023, arXiv:2305.14562. A graph neural network scores all
moves of one task to one device, and a move is drawn by softmax. The new placement is simulated, first in first out, and
kept whether it is better or not; the best one of all is the answer. After `steps` moves (the paper's 2 |V|), the search
starts again. `placeopt train` trains policies; see `placeopt.learning`.

Departures from the paper, and choices:

- The paper's searches start at a random placement and do not start again. Here, every second search starts at the best
  placement so far.
- Networks of other variants run several searches in lockstep: PyTorch evaluates a batch of small graphs in little more
  time than one.
- The paper's searches make all moves; its section 6 leaves other stopping criteria open. With the setting `patience`, a
  search ends after this many moves in a row without a better placement.
- The default policy `giph-plus` has two more features, from the execution, and was trained with a baseline of episodes
  that start from the same placement. With the setting `weights=giph`, the policy is that of the paper.
- The policy was trained on makespans. Other objectives, deadlines and memory decide which placement is the best, not
  which moves are likely.
- A task's colocation group moves with it. Devices without room for the group, or with a task that must be separate, are
  masked. Random placements: see `placeopt_solvers.baselines._sampling`.
- The FIFO schedule may miss deadlines; the placement with the least lateness is the best.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field

from placeopt import engine
from placeopt.bounding.quick import best_bound
from placeopt.errors import DocumentError, Issue, suggestion
from placeopt.model.arrays import Int
from placeopt.model.graph import path_lengths
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.protocol import PLACED, Answer, Info, Options, Settings, Termination
from placeopt.protocol.citations import bibtex
from placeopt.simulation import simulate

from .._constructive.construction import Construction, as_answer
from .._runs.solve_run import gap_reached, nothing_to_place
from .._runs.validity import valid
from ..baselines._sampling import Sampler

if TYPE_CHECKING:
    from placeopt.learning.search import Search
    from placeopt.learning.training.weights import Policy

DEFAULT = 10.0
"""Planned seconds without a time limit and without a number of restarts."""

SHARE = 0.8
"""Share of the time limit for which moves are planned."""

LARGEST = 20_000_000
"""Largest number of edges of the gpNets of all searches: some gigabytes."""


class GiphSettings(Settings):
    """Settings of giph."""

    weights: str = "giph-plus"
    """giph-plus or giph, which come with placeopt, or a file that `placeopt train` wrote, of any variant. Variants
    other than giph, giph-plus and giph-task-eft need placeopt[torch]."""
    steps: int | None = Field(default=None, ge=1)
    """Moves after each starting placement; by default two for each task."""
    patience: int | None = Field(default=None, ge=1)
    """Moves in a row without a better placement after which a search ends; by default, it makes all its moves."""
    restarts: int | None = Field(default=None, ge=1)
    """Number of starting placements; by default as many as fit into the time limit, or into ten seconds without one."""
    searches: int | None = Field(default=None, ge=1, le=1024)
    """Number of searches in lockstep; by default one for weights that do not need placeopt[torch]. For others it is at
    most 16, and less for large graphs and short time limits."""


class Giph:
    """A search from random placements, or from the initial one, guided by a policy."""

    name: ClassVar[str] = "giph"
    info: ClassVar[Info] = Info(
        summary="moves chosen by a trained graph neural network (GiPH, Hu et al. 2023)",
        family="search",
        guarantee="none",
        complexity="O(m e) per move, as many moves as time allows",
        citation=bibtex("hu2023giph"),
        anytime=True,
        warm_start=True,
        metrics=tuple(metric for metric in PLACED if metric != "price"),
        combined=True,
    )
    settings_type: ClassVar[type[GiphSettings]] = GiphSettings

    def solve(self, problem: Problem, options: Options, settings: GiphSettings) -> Answer:
        """Return the best schedule, or FAILED if no placement fits into memory.

        Raises
        ------
        MissingExtraError
            If the weights need PyTorch, which is not installed.
        DocumentError
            If the weights cannot be read.
        UsageError
            If the weights do not fit the problem: those of Placeto need a given number of devices.
        """
        sampler = Sampler(problem, options)  # its clock starts
        policy = _policy(settings.weights, problem)
        if problem.n_tasks == 0:
            return nothing_to_place(problem)
        initial = options.initial
        if initial is not None and valid(problem, initial):
            sampler.take(initial)
        reason = sampler.begin()
        if reason is not None and sampler.best is None:
            return Answer(Termination.FAILED, message=reason)
        run = _Run(problem, options, settings, policy, sampler)
        termination = Termination.COMPLETED if reason is not None else run.run()
        answer = as_answer(problem, Construction(sampler.best))
        return Answer(
            termination,
            answer.schedule,
            run.bound,
            "; ".join(filter(None, (answer.message, run.note))),
            {"moves": run.moves, "starts": run.started},
        )


def _policy(weights: str, problem: Problem) -> Policy:
    from placeopt.learning.graphs.placeto import check_devices
    from placeopt.learning.training.weights import PACKAGED, load_policy

    if weights not in PACKAGED and not os.path.exists(weights) and (meant := suggestion(weights, PACKAGED)):
        raise DocumentError([Issue(f"no such file{meant}", file=weights)])
    policy = load_policy(PACKAGED.get(weights, weights), compiled=True)
    if policy.agent.name == "placeto":
        check_devices(policy.agent.devices, problem.n_devices)
    return policy


class _Run:
    """The searches of one solve."""

    def __init__(
        self, problem: Problem, options: Options, settings: GiphSettings, policy: Policy, sampler: Sampler
    ) -> None:
        from placeopt.learning.search import compilable

        self.problem, self.options, self.sampler, self.network = problem, options, sampler, policy.agent.network
        self.steps = 2 * problem.n_tasks if settings.steps is None else settings.steps
        self.left, self.patience = settings.restarts, settings.patience
        self.bound = best_bound(problem).value
        self.moves = self.started = 0
        self.note = ""
        self.cost = Cost(problem, compiled=compilable(self.network))
        limit = options.planned_seconds
        self.seconds = DEFAULT if limit is None else SHARE * limit
        self.width = settings.searches or self.cost.searches(self.steps, self.seconds)
        self.rng = np.random.default_rng(options.seed)
        self.simple = problem.objective.single == "makespan" and bool((problem.deadline == UNLIMITED).all())
        self.make_view = policy.agent.make_view

    def run(self) -> Termination:
        """Search until a limit; return why it stopped."""
        try:
            with engine.stopping(lambda: self._stop() is not None):
                return self._searched()
        except engine.StoppedError:
            return self._stop() or Termination.TIME_LIMIT

    def _searched(self) -> Termination:
        from placeopt.learning.graphs.traits import fitted_traits
        from placeopt.learning.search import Search, step
        from placeopt.policies.state import Space

        problem, sampler = self.problem, self.sampler
        if self.width * self.cost.edges > LARGEST:
            sampler.take(simulate(problem, self._start()))
            edges = f"{self.width * self.cost.edges:,}"
            self.note = f"made no move: the graphs of all moves have {edges} edges, more than {LARGEST:,}"
            return Termination.COMPLETED
        make_view = partial(self.make_view, space=Space(problem), traits=fitted_traits(problem))
        planned = max(int(self.seconds / self.cost(self.width)), 1)
        while self.left is None or self.left > 0:
            count = self.width if self.left is None else min(self.width, self.left)
            searches: list[Search] = []
            while len(searches) < count:
                seed = int(self.rng.integers(2**31))
                start = self._start()
                searches.append(Search(problem, start, make_view, steps=self.steps, seed=seed, patience=self.patience))
                self.started += 1
                self._look(searches[-1])
                if (why := self._stop()) is not None:
                    return why
            while searches := [search for search in searches if search.active]:
                runs = [search.run for search in searches]
                step(searches, self.network)
                self.moves += len(searches)
                planned -= 1
                for search, before in zip(searches, runs, strict=True):
                    if search.run is not before:
                        self._look(search)
                if (why := self._stop()) is not None:
                    return why
                if planned <= 0 and self.left is None:
                    return Termination.COMPLETED
            self.left = None if self.left is None else self.left - count
        return Termination.COMPLETED

    def _start(self) -> Int:
        """Return where the next search starts: one after the other at a random placement and at the best one so far."""
        problem, best = self.problem, self.sampler.best
        # The first search starts at the initial schedule.
        if best is not None and (self.started % 2 or self.started == 0):
            room = problem.capacity.copy()
            np.subtract.at(room, best.device, problem.memory)
            if (room >= 0).all():  # an initial schedule may need the memory model `peak`
                return best.device
        return self.sampler.drawn()

    def _look(self, search: Search) -> None:
        """Offer the current placement of a search."""
        badness = self.sampler.badness
        if self.simple and badness is not None and search.run.makespan >= badness[1][0]:
            return
        self.sampler.take(simulate(self.problem, search.view.device))

    def _stop(self) -> Termination | None:
        """Return why to stop now; None to go on."""
        values = self.sampler.incumbent.values
        if values is not None and len(values) == 1:
            reached = gap_reached(values[0], self.bound, self.options.gap_limit)
            if reached is not None:
                return reached
        if self.options.should_stop():
            return Termination.INTERRUPTED
        return Termination.TIME_LIMIT if self.sampler.clock.over else None


class Cost:
    """A model of the seconds that the searches of a problem take, measured on one core.

    Attributes
    ----------
    edges
        Number of edges of a gpNet.
    """

    def __init__(self, problem: Problem, *, compiled: bool) -> None:
        """Measure the problem; `compiled` is whether lockstep gains nothing (`placeopt.learning.search.compilable`)."""
        options = problem.feasible.sum(axis=1)
        self.edges = int((options[problem.edge_source] + options[problem.edge_target]).sum())
        ones = np.ones(problem.n_tasks, dtype=np.int64)
        depth = path_lengths(problem.order, problem.out_start, problem.edge_target, ones)
        self._most = 1 if compiled else 16
        self._fixed = 0.0 if compiled else 1.7e-4 * (1 + int(depth.max(initial=0)))
        self._each = 2e-4 + 2.5e-7 * self.edges

    def __call__(self, searches: int) -> float:
        """Return the seconds of one move in each of some searches."""
        return self._fixed + searches * self._each

    def searches(self, steps: int, seconds: float) -> int:
        """Return a number of searches in lockstep that fit into the processor's cache and end within the time."""
        count = self._most
        while count > 1 and (count * self.edges > 100_000 or steps * self(count) > seconds):
            count //= 2
        return count
