"""Results of GiPH's experiments: SLRs of policies, searches and heuristics, as arrays, tables and claims."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from giph_paper import plus_minus
from giph_runs import (
    FIFO,
    GRID,
    WITHOUT_GAPS,
    Store,
    Trained,
    constructed,
    episodes,
    longest_paths,
    on_grid,
    test_problems,
)  # fmt: skip
from rich.table import Table
from shown import show

from placeopt.learning.networks.variants import Agent
from placeopt.learning.training.weights import PACKAGED, load_policy
from placeopt.model.problem import Problem

HEURISTICS = ("heft", "peft", WITHOUT_GAPS, FIFO)
"""Constructive solvers."""
SEARCHES = ("random", "random-task-eft", "annealing")
"""Searches that are not learned."""
HEADLINE = ("giph", "giph-task-eft", "placeto")
"""Learned policies of figure 4."""
COMES = {f"{name}, packaged": name for name in PACKAGED}
"""The policies that come with placeopt: one training each, with a seed of the search in place of each training."""
VARIANTS = ("giph", "giph-3", "giph-5", "giph-ne", "giph-ne-pol", "graphsage-ne", "giph-task-eft")


class Results:
    """Results over a store of policies and episodes; `pictures` are those to write to the folder `images`."""

    def __init__(self, store: Store, cases: int, seeds: int, images: Path, pictures: Collection[str]) -> None:
        self.store, self.cases, self.seeds, self.images, self.pictures = store, cases, seeds, images, pictures

    def problems(self, data_set: str) -> Sequence[Problem]:
        """The test cases of a set."""
        return test_problems(data_set, self.cases)

    def slr(self, data_set: str, search: str, noise: float = 0.0, metric: str = "makespan", **rest: Any) -> np.ndarray:
        """(cases, grid) SLR, or value of the metric, of the best placement; learned policies: mean over trainings."""
        found: np.ndarray = self.slrs(data_set, search, noise, metric, **rest).mean(axis=0)
        return found

    def slrs(self, data_set: str, search: str, noise: float = 0.0, metric: str = "makespan", **rest: Any) -> np.ndarray:
        """(trainings, cases, grid) the same for each training, or for each seed of a search that is not learned."""
        problems = self.problems(data_set)
        if search in HEURISTICS:
            spans = self.store.result(
                lambda: constructed(problems, search), "constructed", data_set, self.cases, search
            )
            found = np.repeat((spans / longest_paths(problems))[:, None], len(GRID), axis=1)
            return np.repeat(found[None], self.seeds, axis=0)
        trained_on = {"giph-unseen": "giph-multiple"}.get(data_set, data_set)
        rows = []
        for seed in range(self.seeds):
            what = Trained(search, trained_on, seed=seed, noise=noise, objective=metric, **rest)

            def compute(what: Trained = what, seed: int = seed) -> np.ndarray:
                guided: str | Agent = search
                if search in COMES:
                    guided = load_policy(PACKAGED[COMES[search]]).agent
                elif search not in SEARCHES:
                    guided = self.store.agent(what)
                return on_grid(problems, episodes(problems, guided, noise=noise, seed=seed, metric=metric))

            name = search if search in (*SEARCHES, *COMES) else what.key
            key = ("episodes", data_set, self.cases, name, "noise", noise, "seed", seed, metric)
            rows.append(self.store.result(compute, *key))
        divisor = longest_paths(problems)[:, None] if metric == "makespan" else 1.0
        return np.array(rows) / divisor

    def drawn(self, data_set: str) -> np.ndarray:
        """(cases,) mean SLR of random placements, not of the best so far."""
        problems = self.problems(data_set)

        def compute() -> np.ndarray:
            return np.array([each.current[1:].mean() for each in episodes(problems, "random")])

        return self.store.result(compute, "drawn", data_set, self.cases) / longest_paths(problems)

    def table(self, title: str, found: Mapping[str, np.ndarray]) -> None:
        """Print SLRs (trainings, cases, grid) after some steps, and the range of the trainings at the end."""
        table = Table(title=title)
        table.add_column("search")
        for place in (0, 5, 10, 20):
            table.add_column(f"{GRID[place]:g} |V|", justify="right")
        table.add_column("trainings", justify="right")
        for name, rows in found.items():
            each = np.sort(rows[:, :, -1].mean(axis=1))
            spread = f"{each[0]:.3f} to {each[-1]:.3f}" if each[-1] > each[0] else ""
            table.add_row(name, *(plus_minus(rows[:, :, place]) for place in (0, 5, 10, 20)), spread)
        show(table)

    def draw(self, kind: str, *what: Any) -> None:
        """Write a figure, if wanted."""
        name = f"giph-learned-{kind}-{'-'.join(map(str, what[:-1]))}.png"
        if name in self.pictures:
            from giph_learned_figures import draw_convergence, draw_steps

            draw: Callable[..., Any] = {"steps": draw_steps, "convergence": draw_convergence}[kind]
            draw(*what).write(self.images / name)
