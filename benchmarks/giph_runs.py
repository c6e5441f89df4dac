"""Trained policies and searches of GiPH's experiments, kept in a folder so that the benchmark can be resumed.

Every policy is trained on the training part of a set with the parameters of the paper. Every result is an array with
one row for each test case; arrays are kept as files named by what they depend on, so a run goes on where it stopped.
Delete the folder to start again.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import placeopt as po
from placeopt.generate.giph.sets import SETS
from placeopt.learning.networks.variants import Agent, make_agent
from placeopt.learning.search import Search, guide
from placeopt.learning.training.cases import Cases
from placeopt.learning.training.folder import CHECKPOINT, POLICY, Recipe, Training
from placeopt.learning.training.reinforce import Progress, Settings, Trainer
from placeopt.learning.training.weights import load_policy
from placeopt.model.levels import bottom_levels, falling
from placeopt.model.metrics import critical_path
from placeopt.model.problem import Objective, Problem, Term
from placeopt.model.schedule import makespan
from placeopt.policies import POLICIES, Episode, random_placement, run_episode, sample_placements

GRID = np.linspace(0, 2, 21)
"""Steps per task at which curves are kept."""

WITHOUT_GAPS = "heft, no gaps"
"""HEFT as in the released code."""

FIFO = "heft, first in first out"
"""HEFT's placement, executed first in, first out as the placements of searches are."""

START = 20
"""Seed of first placements, as in the released code."""


@dataclass(frozen=True, slots=True)
class Trained:
    """What a policy is trained on, and how."""

    variant: str
    data_set: str
    seed: int = 0
    noise: float = 0.0
    objective: str = "makespan"
    potential: str = "paper"
    faults: tuple[str, ...] = ()
    batch: int = 1
    peers: int = 1
    episodes: int = 200

    @property
    def key(self) -> str:
        """A short name of the folder."""
        default = Trained(self.variant, self.data_set)
        changed = [name for name in self.__slots__ if getattr(self, name) != getattr(default, name)]
        parts = [self.variant, self.data_set]
        for name in changed:
            value = getattr(self, name)
            parts.append(name + ("+".join(value) if isinstance(value, tuple) else str(value)))
        return "-".join(parts)


class Store:
    """Policies and results in a folder, each with the version of the code that made it.

    `used` collects the versions of what is read.
    """

    def __init__(self, folder: Path, report: Callable[[str], None], version: str, used: set[str]) -> None:
        self.folder, self.report, self.version, self.used = folder, report, version, used
        (folder / "policies").mkdir(parents=True, exist_ok=True)
        (folder / "results").mkdir(exist_ok=True)

    def recipe(self, what: Trained) -> Recipe:
        """The recipe of a policy."""
        settings = Settings(
            episodes=what.episodes, batch=what.batch, peers=what.peers, noise=what.noise, seed=what.seed
        )
        return Recipe(
            data_set=what.data_set, variant=what.variant, potential=what.potential, faults=what.faults,
            objective=what.objective, settings=settings,
        )  # fmt: skip

    def agent(self, what: Trained) -> Agent:
        """A trained policy; trains it if the folder has none."""
        return load_policy(self.policy(what)).agent

    def policy(self, what: Trained) -> Path:
        """The file of a trained policy; trains it if the folder has none."""
        folder = self.folder / "policies" / what.key
        done = folder / "seconds.json"
        if not done.exists():
            self.report(f"training {what.key}")
            resume = (folder / CHECKPOINT).exists()
            start = time.process_time()
            training = Training(folder, self.recipe(what), resume=resume)
            training.run()
            steps = sum(2 * problem.n_tasks for problem in _drawn(training.trainer))
            spent = {"seconds": time.process_time() - start, "steps": steps, "resumed": resume, "code": self.version}
            done.write_text(json.dumps(spent))
        self.used.add(json.loads(done.read_text())["code"])
        return folder / POLICY

    def seconds(self, what: Trained) -> dict[str, Any]:
        """CPU seconds of a training with its evaluations, and the number of its steps."""
        self.agent(what)
        found: dict[str, Any] = json.loads((self.folder / "policies" / what.key / "seconds.json").read_text())
        return found

    def curve(self, what: Trained) -> list[tuple[int, float]]:
        """(episode, ratio) of the learning curve."""
        self.agent(what)
        lines = (self.folder / "policies" / what.key / "curve.csv").read_text().splitlines()[1:]
        return [(int(line.split(",")[0]), float(line.split(",")[1])) for line in lines]

    def result(self, compute: Callable[[], np.ndarray], *key: object) -> np.ndarray:
        """A result; computes it if the folder has none."""
        text = " ".join(map(str, key))
        name = hashlib.sha256(text.encode()).hexdigest()[:16]
        path = self.folder / "results" / f"{name}.npz"
        if not path.exists():
            self.report(text)
            values = compute()
            with (self.folder / "results" / f"{name}.part").open("wb") as file:
                np.savez_compressed(file, values=values, key=np.array(text), code=np.array(self.version))
            (self.folder / "results" / f"{name}.part").rename(path)
        kept = np.load(path)
        self.used.add(str(kept["code"]))
        return np.asarray(kept["values"])


def _drawn(trainer: Trainer) -> list[Problem]:
    """The problems of the training's episodes, to count their steps."""
    rng = np.random.default_rng([trainer.settings.seed, 0])
    problems = trainer.train_set
    found = []
    for _ in range(trainer.progress.episode // max(trainer.settings.peers, 1)):
        problem = problems[int(rng.integers(len(problems)))]
        random_placement(problem, rng)
        rng.integers(2**31)
        found.append(problem)
    return found


def timed_training(variant: str, count: int = 12) -> np.ndarray:
    """(count,) CPU seconds of a step in each episode of a training without evaluations, after a first episode."""
    cases = Cases(SETS["giph-multiple"]()[0])
    problems = [cases[index] for index in range(count)]
    agent = make_agent(variant, devices=problems[0].n_devices)
    trainer = Trainer(agent, problems, problems, Settings(episodes=count + 1, every=10**6, cases=1))
    times: list[float] = []

    def note(_: Progress) -> bool:
        times.append(time.process_time())
        return False

    trainer.run(note)
    steps = np.array([2 * problem.n_tasks for problem in _drawn(trainer)[1:]])
    found: np.ndarray = np.diff(times) / steps
    return found


@cache
def test_problems(data_set: str, count: int) -> tuple[Problem, ...]:
    """`count` test problems of a set, drawn without replacement by a fixed seed."""
    cases = Cases(SETS[data_set]().test)
    return tuple(cases[index] for index in _drawn_cases(len(cases), count))


def test_pairs(data_set: str, count: int) -> list[tuple[int, int]]:
    """The graph and the network of each of `test_problems`."""
    pairs = list(SETS[data_set]().test.pairs())
    return [pairs[index] for index in _drawn_cases(len(pairs), count)]


def _drawn_cases(cases: int, count: int) -> list[int]:
    chosen: list[int] = np.random.default_rng(START).permutation(cases)[:count].tolist()
    return chosen


def first_placements(problems: Sequence[Problem], seed: int = START) -> list[np.ndarray]:
    """The random placement from which all searches of a problem start."""
    rng = np.random.default_rng(seed)
    return [random_placement(problem, rng) for problem in problems]


def objective_of(metric: str) -> Objective | None:
    """The objective of episodes; None for the makespan."""
    return None if metric == "makespan" else Objective(((Term(metric),),))  # type: ignore[arg-type]


def episodes(
    problems: Sequence[Problem], search: str | Agent, *, noise: float = 0.0, seed: int = 0, metric: str = "makespan",
    starts: Sequence[np.ndarray] | None = None, repeats: int = 1,
) -> list[Episode]:  # fmt: skip
    """An episode of 2 |V| steps on each problem: of a learned policy, a policy by name, or random placements.

    Learned policies always observe single executions.
    """
    objective = objective_of(metric)
    starts = first_placements(problems) if starts is None else starts
    seeds = range(10_000 * seed, 10_000 * seed + len(problems))
    cases = list(zip(problems, starts, seeds, strict=True))
    if isinstance(search, Agent):
        searches = [
            Search(p, d, search.make_view, steps=2 * p.n_tasks, noise=noise, seed=s, objective=objective)
            for p, d, s in cases
        ]
        guide(searches, search.network)
        return [each.episode(search.name) for each in searches]
    rest: dict[str, Any] = {"noise": noise, "objective": objective, "repeats": repeats}
    if search == "random":
        return [sample_placements(p, d, steps=2 * p.n_tasks, seed=s, **rest) for p, d, s in cases]
    return [run_episode(p, POLICIES[search](), d, steps=2 * p.n_tasks, seed=s, **rest) for p, d, s in cases]


def on_grid(problems: Sequence[Problem], found: Sequence[Episode], which: str = "expected") -> np.ndarray:
    """(problems, grid) values at the steps of GRID."""
    return np.stack(
        [
            np.asarray(getattr(episode, which), dtype=float)[np.rint(GRID * problem.n_tasks).astype(int)]
            for problem, episode in zip(problems, found, strict=True)
        ]
    )


def longest_paths(problems: Sequence[Problem]) -> np.ndarray:
    """(problems,) the denominator of the SLR: the longest path of least durations."""
    return np.array([critical_path(problem) for problem in problems], dtype=float)


def heft_without_gaps(problem: Problem) -> int:
    """The makespan of HEFT if tasks go to the end of a device's sequence, never into a gap: as in the released code."""
    end = np.zeros(problem.n_tasks, dtype=np.int64)
    device, free = np.zeros(problem.n_tasks, dtype=np.int64), np.zeros(problem.n_devices, dtype=np.int64)
    for i in falling(bottom_levels(problem)).tolist():
        ready = np.full(problem.n_devices, problem.release[i])
        for k in problem.in_edge[problem.in_start[i] : problem.in_start[i + 1]].tolist():
            u = problem.edge_source[k]
            moving = problem.transfer(problem.payload[k], device[u], np.arange(problem.n_devices))
            ready = np.maximum(ready, end[u] + moving)
        finish = np.where(problem.feasible[i], np.maximum(ready, free) + problem.duration[i], np.iinfo(np.int64).max)
        device[i] = finish.argmin()
        end[i] = free[device[i]] = finish.min()
    return int(end.max(initial=0))


def constructed(problems: Sequence[Problem], solver: str) -> np.ndarray:
    """(problems,) makespans of a constructive solver."""
    if solver == WITHOUT_GAPS:
        return np.array([heft_without_gaps(problem) for problem in problems], dtype=float)
    if solver == FIFO:
        found = [po.simulate(problem, po.solve(problem, "heft").schedule.device) for problem in problems]
        return np.array([makespan(*each) for each in zip(problems, found, strict=True)], dtype=float)
    return np.array([po.solve(problem, solver).makespan for problem in problems], dtype=float)
