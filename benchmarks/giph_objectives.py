"""Run GiPH's experiments with other objectives than the makespan (Hu et al. 2023, figures 11 and 16).

    python benchmarks/giph_objectives.py [--parts cost energy relocation] [--cases 100] [--searches NAME ...] [--seed 0]
                                         [--train VARIANT ...] [--episodes 200]

Searches are the policies of `placeopt.policies`, `random` (random placements), `rnn-placer`, and files that `placeopt
train` writes. With --train, the variants of GiPH are trained for each experiment, on its training set with its
objective. Each search makes 2 |V| steps from the same random placement and minimises the objective of the experiment.
`heft` minimises the makespan and shows what that costs. Intervals are 95 % confidence intervals; differences are paired
by problem.

cost         Appendix B.8, figure 16: the sum of all durations and transfer times, on the test set giph-multiple.
energy       Section 6, figure 11, right: the energy on test cases of the case study. The paper states no power. Here,
             a device draws the power of its data sheet while it computes: 10 W (A, Jetson Nano), 15 W (B, Jetson TX2)
             and 271 W (C, i7-7700K with GTX 1080: 91 W and 180 W). Two radios together draw 2 W during a transfer, an
             assumption, so that a byte costs more over a slower link.
relocation   Section 5.3, figure 11, left: a vehicle moves on for 10 s, so that bandwidths change, and devices and RSUs
             come within reach or leave it. The current placement is that of HEFT before the change. Searches start from
             it, with new tasks on random devices, and minimise makespan + relocation / frequency. The paper's frequency
             has no unit; here it is the number of runs until the next change. The costs in the table are those of moved
             tasks; the objective also contains the start-up of new tasks.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from claims import Claim, Verdict
from giph_sets import interval
from rich.table import Table
from shown import show, show_claims

import placeopt as po
from placeopt import Objective, Term
from placeopt.errors import UsageError, suggestion
from placeopt.generate.giph.cases import CaseSet
from placeopt.generate.giph.sets import SETS
from placeopt.generate.giph.traffic import HOUR, INTERVAL, Scene, Town, traffic_network, traffic_tasks
from placeopt.generate.networks import combine
from placeopt.model.metrics import shape
from placeopt.model.problem import Problem
from placeopt.policies import POLICIES, Episode, Simulator, random_placement, run_episode, sample_placements

SEARCHES = ("random", "random-task-eft", "random-task-greedy", "annealing")
POWER = {"A": 10, "B": 15, "C": 91 + 180}
"""Watts of a computing device of each type."""
RADIO = 2.0
"""Watts of sender and receiver during a transfer."""
TRAINING = 200
"""Number of problems to train on."""
FREQUENCIES = (1, 10, 100, 1000, 10_000)
DEPTHS = (0, 12, 18, 26, 34, 100)
"""Borders of the intervals of depth."""

MAKESPAN = Objective(((Term("makespan"),),))
COST = Objective(((Term("total_cost"),),))
ENERGY = Objective(((Term("energy"),),))


Search = Callable[..., Episode]
"""A function of a problem, a placement, and the keywords of `run_episode`."""


def search(name: str) -> Search:
    """A search by name."""
    if name.endswith(".safetensors"):
        from placeopt.learning.training.weights import load_policy

        return learned(load_policy(name).agent)
    if name == "random":
        return sample_placements
    if name == "rnn-placer":
        from rnn_placer import place_by_rnn

        return place_by_rnn
    if name not in POLICIES:
        known = ("random", "rnn-placer", *POLICIES)
        raise UsageError(f"unknown search {name}{suggestion(name, known)}; expected one of {', '.join(known)}")
    return lambda problem, device, **rest: run_episode(problem, POLICIES[name](), device, **rest)


def learned(agent: Any) -> Search:
    """The search of a trained agent."""
    from placeopt.learning.search import LearnedPolicy

    policy = LearnedPolicy(agent.name, agent.network, agent.make_view)
    return lambda problem, device, **rest: run_episode(problem, policy, device, **rest)


def trained(
    variant: str, problems: Sequence[Problem], objective: Objective, episodes: int, peers: int, seed: int
) -> Search:
    """The search of a variant of GiPH, by default with the parameters of the paper, trained on problems."""
    from placeopt.learning.networks.variants import make_agent
    from placeopt.learning.training.reinforce import Settings, Trainer

    agent = make_agent(variant, devices=problems[0].n_devices, seed=seed)
    settings = Settings(episodes=episodes, batch=peers, peers=peers, seed=seed)
    trainer = Trainer(agent, problems, problems, settings, objective=objective)
    start = time.process_time()
    best = trainer.run().best_point
    assert best is not None
    agent.network.load_state_dict(trainer.progress.best)
    first = trainer.progress.curve[0].ratio
    show(
        f"{variant}, {objective}: {episodes} episodes in {time.process_time() - start:.0f} s; best value / first value "
        f"{first:.3f} without training, {best.ratio:.3f} after {best.episode} episodes",
    )
    return learned(agent)


class Plan(NamedTuple):
    """What to run."""

    cases: int
    names: Sequence[str]
    variants: Sequence[str]
    episodes: int
    peers: int
    seed: int

    def searches(self, problems: Callable[[], Sequence[Problem]], objective: Objective) -> dict[str, Search]:
        """All searches; variants are trained on the problems."""
        found = {name: search(name) for name in self.names}
        if self.variants:
            training = problems()
            for variant in self.variants:
                found[variant] = trained(variant, training, objective, self.episodes, self.peers, self.seed)
        return found


def values(problem: Problem, device: Any, objectives: Sequence[Objective]) -> list[float]:
    """The values of a placement, executed in first-in-first-out order."""
    rng = np.random.default_rng(0)
    return [float(Simulator(problem, 0.0, rng, each).expected(device)) for each in objectives]


def spread(items: Sequence[Any], count: int) -> list[Any]:
    """`count` items at equal distances."""
    return [items[k] for k in np.linspace(0, len(items) - 1, min(count, len(items))).round().astype(int).tolist()]


def run_placements(
    problems: Sequence[Problem], objective: Objective, searches: Mapping[str, Search], seed: int
) -> Mapping[str, np.ndarray]:
    """For each search and heft, the objective and the makespan (problems, 2) of the best placement of each problem."""
    found: dict[str, list[list[float]]] = {name: [] for name in (*searches, "heft")}
    for index, problem in enumerate(problems):
        start = random_placement(problem, np.random.default_rng([seed, index]))
        for name, run in searches.items():
            episode = run(problem, start, steps=2 * problem.n_tasks, seed=seed + index, objective=objective)
            found[name].append(values(problem, episode.device, (objective, MAKESPAN)))
        found["heft"].append(values(problem, po.solve(problem, "heft").schedule.device, (objective, MAKESPAN)))
    return {name: np.array(rows) for name, rows in found.items()}


def print_placements(title: str, unit: float, unit_name: str, found: Mapping[str, np.ndarray]) -> None:
    """Print the table of an objective."""
    heft, random = found["heft"], found.get("random")
    table = Table(title=f"{title}: {len(heft)} problems")
    for header in (
        "search",
        unit_name,
        "total",
        "to random",
        "to heft",
        "better/equal/worse than heft",
        "makespan to heft",
    ):
        table.add_column(header, justify="left" if header == "search" else "right", no_wrap=True)
    for name, rows in found.items():
        mean, half = interval(rows[:, 0] / unit)
        shares = [100 * np.mean(sign(rows[:, 0], heft[:, 0])) for sign in (np.less, np.equal, np.greater)]
        table.add_row(
            name,
            f"{mean:.4g} ± {half:.2g}",
            f"{rows[:, 0].sum() / unit:.5g}",
            "" if random is None or name == "random" else percent(rows[:, 0] / random[:, 0]),
            "" if name == "heft" else percent(rows[:, 0] / heft[:, 0]),
            "" if name == "heft" else " / ".join(f"{share:.0f}" for share in shares) + " %",
            "" if name == "heft" else percent(rows[:, 1] / heft[:, 1]),
        )
    show(table)


def percent(ratio: np.ndarray) -> str:
    """The mean change that ratios state, with its confidence interval."""
    mean, half = interval(100 * (ratio - 1))
    return f"{mean:+.1f} ± {half:.1f} %"


def print_statements(rows: Sequence[tuple[str, np.ndarray]]) -> None:
    """Print statements of the paper with the differences that should be negative if they hold here."""
    claims = []
    for statement, difference in rows:
        mean, half = interval(100 * difference)
        verdict: Verdict = "open" if abs(mean) <= half else "same" if mean < 0 else "reversed"
        claims.append(Claim(statement, "yes", f"{mean:+.1f} ± {half:.1f} %", verdict))
    show_claims("relative differences", claims)


def run_cost(plan: Plan) -> None:
    """Print total costs: the paper's figure 16."""
    sets = SETS["giph-multiple"]()
    problems = case_problems(sets[-1], plan.cases)
    searches = plan.searches(lambda: case_problems(sets[0], TRAINING), COST)
    found = run_placements(problems, COST, searches, plan.seed)
    print_placements("Total cost (figure 16)", float(1 / problems[0].resolution), "seconds", found)
    depth = np.array([shape(problem).depth for problem in problems])
    table = Table(title="Total cost by depth of the graph, mean in seconds")
    table.add_column("search")
    bins = [(depth > low) & (depth <= high) for low, high in pairwise(DEPTHS)]
    kept = [k for k, members in enumerate(bins) if members.any()]
    for k in kept:
        table.add_column(f"{DEPTHS[k] + 1} to {DEPTHS[k + 1]} ({bins[k].sum()})", justify="right")
    for name, rows in found.items():
        table.add_row(name, *(f"{rows[bins[k], 0].mean() * float(problems[0].resolution):.4g}" for k in kept))
    show(table)
    print_statements(comparisons("the total cost", found))


def case_problems(cases: CaseSet, count: int, change: Callable[[Any], Any] = dict) -> list[Problem]:
    """`count` problems of a set, with a change of their documents."""
    return [po.compile(change(cases.document(*pair))) for pair in spread(cases.pairs(), count)]


def comparisons(what: str, found: Mapping[str, np.ndarray]) -> list[tuple[str, np.ndarray]]:
    """The statement that GiPH's placements have less of something than those of random sampling and of HEFT."""
    return [
        (f"{what} is below that of {other}: {name}", found[name][:, 0] / found[other][:, 0] - 1)
        for name in found
        for other in ("random", "heft")
        if name not in ("random", "heft") and other in found
    ]


def with_energy(document: dict[str, Any]) -> dict[str, Any]:
    """A problem document of the case study, with the power of devices and the energy of links."""
    devices = {
        name: device | ({"power": f"{POWER[device['type']]} W"} if device["type"] in POWER else {})
        for name, device in document["devices"].items()
    }
    overrides = [link | {"energy": byte_energy(link["bandwidth"])} for link in document["links"]["overrides"]]
    return document | {"devices": devices, "links": {"overrides": overrides}}


def byte_energy(bandwidth: str) -> str:
    """The energy of a byte over a link: RADIO times the time that it takes."""
    rate, unit = bandwidth.split()
    assert unit == "Mb/s"
    return f"{RADIO * 8e3 / float(rate):.0f} nJ/B"


def run_energy(plan: Plan) -> None:
    """Print energies: the paper's figure 11, right."""
    sets = SETS["traffic"]()
    problems = case_problems(sets[-1], plan.cases, with_energy)
    searches = plan.searches(lambda: case_problems(sets[0], TRAINING, with_energy), ENERGY)
    found = run_placements(problems, ENERGY, searches, plan.seed)
    print_placements("Energy (figure 11, right)", 1e9, "joules", found)
    print_statements(comparisons("the energy", found))


@cache
def town() -> Town:
    """The town of the test set."""
    return Town()


def changes(count: int, late: bool) -> list[tuple[Scene, Scene]]:
    """Scenes of a vehicle that follow each other, of vehicles that enter in the first or the second half of the hour.

    The problems to train policies on have the former, and the test set has the latter.
    """
    scenes = [scene for scene in town().scenes() if (town().drives[scene.vehicle].times[0] >= HOUR / 2) == late]
    pairs = [
        (old, new)
        for old, new in pairwise(scenes)
        if old.vehicle == new.vehicle and new.time - old.time == INTERVAL and old.place != new.place
    ]
    return spread(pairs, count)


def scene_problem(scene: Scene, current: Mapping[str, str] | None = None) -> Problem:
    """The problem of a scene, with the current devices of tasks."""
    document = combine(traffic_tasks(scene), traffic_network(town(), scene), name="scene", resolution="1 us")
    if current is not None:
        names = document["tasks"].keys(), document["devices"].keys()
        kept = {task: device for task, device in current.items() if task in names[0] and device in names[1]}
        document |= {"current": {"placement": kept}}
    return po.compile(document)


def changed(old: Scene, new: Scene) -> tuple[Problem, dict[str, str]]:
    """The problem after a change, and the current device of each task by name."""
    before = scene_problem(old)
    planned = po.solve(before, "heft").schedule.device.tolist()
    current = {task: before.device_names[d] for task, d in zip(before.task_names, planned, strict=True)}
    return scene_problem(new, current), current


def run_relocation(plan: Plan, frequencies: Sequence[int]) -> None:
    """Print relocation costs by frequency: the paper's figure 11, left."""
    rows: dict[tuple[str, int], list[tuple[float, ...]]] = {}
    objectives = {each: Objective(((Term("makespan"), Term("relocation", Fraction(1, each))),)) for each in frequencies}
    training = cache(lambda: [changed(*pair)[0] for pair in changes(TRAINING, late=False)])
    searches = {each: plan.searches(training, objective) for each, objective in objectives.items()}
    names = list(searches[frequencies[0]])
    for index, pair in enumerate(changes(plan.cases, late=True)):
        problem, current = changed(*pair)
        kept = np.array([current.get(task) in problem.device_names for task in problem.task_names])
        start = random_placement(problem, np.random.default_rng([plan.seed, index])).copy()
        for task in np.flatnonzero(kept).tolist():
            start[task] = problem.device_names.index(current[problem.task_names[task]])
        for frequency, objective in objectives.items():
            options = {"steps": 2 * problem.n_tasks, "seed": plan.seed + index, "objective": objective}
            placements = {name: run(problem, start, **options).device for name, run in searches[frequency].items()}
            placements["heft"] = po.solve(problem, "heft").schedule.device
            for name, device in placements.items():
                total, makespan = values(problem, device, (objective, MAKESPAN))
                moved = kept & (device != start)
                cost = problem.relocation[np.flatnonzero(moved), device[moved]].sum()
                rows.setdefault((name, frequency), []).append((cost, moved.sum(), makespan, total))
    table = Table(title=f"Relocation (figure 11, left): {len(next(iter(rows.values())))} changes; means")
    for header in ("search", "frequency", "relocation, ms", "tasks moved", "makespan, ms", "makespan + relocation / f"):
        table.add_column(header, justify="left" if header == "search" else "right", no_wrap=True)
    for (name, frequency), found in rows.items():
        numbers = np.array(found) / [1e3, 1, 1e3, 1e3]
        cells = (f"{mean:.4g} ± {half:.2g}" for mean, half in zip(*interval(numbers), strict=True))
        table.add_row(name, f"{frequency:,}", *cells)
    show(table)
    low, high = min(frequencies), max(frequencies)
    print_statements(
        [
            (
                f"relocation at frequency {low:,} is below that at {high:,}: {name}",
                relative(np.array(rows[name, low])[:, 0], np.array(rows[name, high])[:, 0]),
            )
            for name in names
        ]
    )


def relative(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Differences, as shares of the mean of `other`, which may be 0 for single problems."""
    return (one - other) / max(other.mean(), 1.0)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", default=["cost", "energy", "relocation"],
                        choices=("cost", "energy", "relocation"))  # fmt: skip
    parser.add_argument("--cases", type=int, default=100, help="number of problems of each part")
    parser.add_argument("--searches", nargs="+", default=SEARCHES)
    parser.add_argument("--train", nargs="+", default=(), metavar="VARIANT", help="variants of GiPH, such as giph")
    parser.add_argument("--episodes", type=int, default=200, help="episodes of a training")
    parser.add_argument("--peers", type=int, default=1, help="episodes of an update, which start from one placement")
    parser.add_argument("--frequencies", nargs="+", type=int, default=FREQUENCIES)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first placements and of the searches")
    arguments = parser.parse_args(words)
    plan = Plan(
        arguments.cases, arguments.searches, arguments.train, arguments.episodes, arguments.peers, arguments.seed
    )
    if "cost" in arguments.parts:
        run_cost(plan)
    if "energy" in arguments.parts:
        run_energy(plan)
    if "relocation" in arguments.parts:
        run_relocation(plan, arguments.frequencies)


if __name__ == "__main__":
    main()
