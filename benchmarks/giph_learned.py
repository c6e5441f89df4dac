"""Train GiPH, its variants and its rivals, and compare the paper's figures and tables with ours.

    python benchmarks/giph_learned.py FOLDER [PART ...] [--cases 150] [--seeds 3] [--images docs/images]

Y. Hu et al.: GiPH, MLSys 2023, arXiv:2305.14562. FOLDER keeps trained policies and results: a run that is stopped goes
on where it was, and parts may be run one by one. All parts take some hours on one core. Policies have the paper's
parameters (200 episodes, REINFORCE, Adam with rate 0.01, gamma 0.97); the weights are the best on the validation part
of the set, of --seeds trainings each. All searches of a case make 2 |V| steps from the same random placement. The SLR
is the makespan of the best placement, without noise, divided by the longest path of least durations. Intervals are
95 % confidence intervals over cases, after the mean over trainings; differences are paired by case.

convergence   figures 14 and 15: validation SLR against episodes, with and without the start-time potential
steps         figure 4: SLR against steps, on a single and on multiple networks, without noise and with 20 %; on unseen
              networks as the headline, on the released split for comparison
depth         figure 5: SLR against depth of the graph
table6        table 6: share of cases on which one policy is better than, equal to or worse than another
table7        table 7 and figure 17: seconds for each sample in training and in use
learning      figure 7: deep-learning graphs of 40 groups on 8 devices; how often tasks move
traffic       figure 9: the case study, sensor fusion of connected vehicles
rnn           the RNN placer of section 5, trained anew on each of RNN_CASES cases
noise         not in the paper: noise from 0 to 0.5
faults        not in the paper: what the faults of the released code change
packaged      the policies that come with placeopt, one training each, with --seeds seeds of the search
beyond        not in the paper: a shared baseline of episodes from one placement; features of the execution

Figures 11 and 16 are in `giph_objectives.py`, figure 6 in `giph_adaptivity.py`.

Each claim of the paper is marked: *same* if our 95 % interval agrees, *direction* if only the sign does, *reversed* if
the interval contradicts, *open* if it contains no difference.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from giph_runs import (
    GRID,
    WITHOUT_GAPS,
    Store,
    Trained,
    constructed,
    episodes,
    first_placements,
    longest_paths,
    on_grid,
    test_problems,
)  # fmt: skip
from giph_sets import interval
from rich.console import Console
from rich.table import Table

from placeopt.learning.networks.variants import Agent
from placeopt.learning.rnn_placer import place_by_rnn
from placeopt.learning.search import Search, guide
from placeopt.learning.training.checkpoints import PACKAGED, load_policy
from placeopt.model.metrics import shape
from placeopt.model.problem import Problem

console = Console(width=150)

HEURISTICS = ("heft", "peft", WITHOUT_GAPS)
"""Constructive solvers."""
SEARCHES = ("random", "random-task-eft", "annealing")
"""Searches that are not learned."""
HEADLINE = ("giph", "giph-task-eft", "placeto")
"""Learned policies of figure 4."""
VARIANTS = ("giph", "giph-3", "giph-5", "giph-ne", "giph-ne-pol", "graphsage-ne", "giph-task-eft")
FAULTS: dict[str, tuple[str, ...]] = {
    "giph": ("one-way", "frozen-masks", "undiscounted", "late-baseline", "repeated-cases"),
    "giph-3": ("zero-ends", "five-steps"),
    "giph-ne": ("incoming-means", "one-way"),
    "giph-task-eft": ("no-task-mask", "one-way"),
    "placeto": ("zero-ends", "placeto-returns"),
}
"""Faults of the released code that concern each variant."""
RNN_CASES, RNN_PLACEMENTS = 30, 400
DEPTHS = (0, 12, 18, 26, 34, 100)

TABLE_6: dict[tuple[str, str], tuple[float, float, float]] = {
    ("giph", "giph-3"): (53.0, 7.0, 40.0), ("giph", "giph-5"): (55.2, 6.4, 38.4),
    ("giph", "giph-ne"): (74.8, 2.4, 22.8), ("giph", "giph-ne-pol"): (60.6, 6.0, 33.4),
    ("giph", "giph-task-eft"): (82.2, 3.0, 14.8),
    ("giph", "heft"): (59.0, 5.2, 35.8), ("giph-3", "heft"): (51.4, 4.4, 44.2), ("giph-5", "heft"): (51.2, 3.0, 45.8),
    ("giph-ne", "heft"): (32.6, 2.2, 65.2), ("giph-ne-pol", "heft"): (44.6, 2.8, 52.6),
    ("giph-task-eft", "heft"): (29.2, 6.4, 64.4),
}  # fmt: skip
"""Better, equal and worse, in per cent of the cases."""

TABLE_7: dict[str, tuple[float, float]] = {
    "giph": (0.565, 0.340), "giph-3": (0.145, 0.114), "giph-5": (0.178, 0.132), "giph-ne": (0.360, 0.240),
    "giph-ne-pol": (0.027, 0.027), "graphsage-ne": (0.157, 0.138), "placeto": (0.255, 0.162),
}  # fmt: skip
"""Seconds for each sample: training, running."""


def verdict(difference: np.ndarray) -> str:
    """Whether the mean of paired differences (cases,) is negative, as the paper claims."""
    mean, half = interval(difference)
    if abs(mean) <= half:
        return "open"
    return "same" if mean < 0 else "reversed"


def plus_minus(values: np.ndarray, digits: int = 3) -> str:
    """The mean over cases and its interval."""
    mean, half = interval(values)
    return f"{mean:.{digits}f} ± {half:.{digits}f}"


class Evaluation:
    """The parts, over a store of policies and results."""

    def __init__(self, store: Store, cases: int, seeds: int, images: Path | None) -> None:
        self.store, self.cases, self.seeds, self.images = store, cases, seeds, images

    # The SLR of a search on the test cases of a set.

    def problems(self, data_set: str) -> Sequence[Problem]:
        """The test cases of a set."""
        return test_problems(data_set, self.cases)

    def slr(self, data_set: str, search: str, noise: float = 0.0, metric: str = "makespan", **rest: Any) -> np.ndarray:
        """(cases, grid) SLR, or value of the metric, of the best placement; learned policies: mean over trainings."""
        problems = self.problems(data_set)
        if search in HEURISTICS:
            found = self.store.result(
                lambda: constructed(problems, search), "constructed", data_set, self.cases, search
            )
            return np.repeat((found / longest_paths(problems))[:, None], len(GRID), axis=1)
        trained_on = {"giph-unseen": "giph-multiple"}.get(data_set, data_set)
        seeds = range(self.seeds)
        rows = []
        for seed in seeds:
            what = Trained(search, trained_on, seed=seed, noise=noise, objective=metric, **rest)

            def compute(what: Trained = what, seed: int = seed) -> np.ndarray:
                guided: str | Agent = search if search in SEARCHES else self.store.agent(what)
                return on_grid(problems, episodes(problems, guided, noise=noise, seed=seed, metric=metric))

            name = search if search in SEARCHES else what.key
            key = ("episodes", data_set, self.cases, name, "noise", noise, "seed", seed, metric)
            rows.append(self.store.result(compute, *key))
        mean = np.mean(rows, axis=0)
        return mean / longest_paths(problems)[:, None] if metric == "makespan" else mean

    def claims(self, title: str, rows: Iterable[tuple[str, np.ndarray]]) -> None:
        """Print claims of the paper: each is that a difference is negative."""
        table = Table(title=title)
        for header in ("claim of the paper", "difference", "verdict"):
            table.add_column(header)
        for claim, difference in rows:
            table.add_row(claim, plus_minus(difference), verdict(difference))
        console.print(table)

    # The parts.

    def convergence(self) -> None:
        """Figures 14 and 15."""
        for potential in ("paper", "none"):
            settings = ("giph-single", "giph-multiple", "giph-sizes") if potential == "paper" else ("giph-sizes",)
            for data_set in settings:
                variants = (*VARIANTS, "placeto") if data_set != "giph-sizes" else VARIANTS
                if potential == "none":
                    variants = ("giph", "giph-3", "giph-5", "giph-ne-pol")
                table = Table(
                    title=f"{data_set}, potential {potential}: SLR on 20 validation cases ({self.seeds} trainings)"
                )
                table.add_column("variant")
                curves = {}
                for variant in variants:
                    trained = [Trained(variant, data_set, seed=s, potential=potential) for s in range(self.seeds)]
                    curves[variant] = np.array([[ratio for _, ratio in self.store.curve(each)] for each in trained])
                shown = (0, 10, 20, 30, 40)
                for place in shown:
                    table.add_column(f"{5 * place} episodes", justify="right")
                table.add_column("last 10 points", justify="right")
                table.add_column("converges", justify="right")
                for variant, rows in curves.items():
                    cells = [f"{rows[:, place].mean():.3f}" for place in shown]
                    improved = [f"{row[0] - row[-10:].mean():+.2f}" for row in rows]
                    table.add_row(variant, *cells, f"{rows[:, -10:].mean():.3f}", " ".join(improved))
                console.print(table)
                self.draw("convergence", data_set, potential, curves)

    def steps(self) -> None:
        """Figure 4."""
        for data_set in ("giph-unseen", "giph-multiple", "giph-single"):
            for noise in (0.0, 0.2):
                names = (*SEARCHES, *HEADLINE)
                found = {name: self.slr(data_set, name, noise) for name in names} | {"heft": self.slr(data_set, "heft")}
                table = Table(title=f"{data_set}, noise {noise:g}: SLR after steps for each task; {self.cases} cases")
                table.add_column("search")
                for place in (0, 5, 10, 20):
                    table.add_column(f"{GRID[place]:g} |V|", justify="right")
                table.add_column("against random", justify="right")
                for name, rows in found.items():
                    cells = [plus_minus(rows[:, place]) for place in (0, 5, 10, 20)]
                    lower = 1 - rows[:, -1].mean() / found["random"][:, -1].mean()
                    table.add_row(name, *cells, f"{-100 * lower:+.1f} %")
                console.print(table)
                last = {name: rows[:, -1] for name, rows in found.items()}
                claims = [
                    ("GiPH below random placements", last["giph"] - last["random"]),
                    ("GiPH below random-task-eft", last["giph"] - last["random-task-eft"]),
                    ("GiPH below GiPH-task-EFT", last["giph"] - last["giph-task-eft"]),
                    ("GiPH below Placeto", last["giph"] - last["placeto"]),
                    ("GiPH-task-EFT below random-task-eft", last["giph-task-eft"] - last["random-task-eft"]),
                    ("GiPH at most 3 % above HEFT (comparable)", last["giph"] - 1.03 * last["heft"]),
                ]
                if data_set != "giph-single":
                    claims.append(("Placeto above random placements", last["random"] - last["placeto"]))
                self.claims(f"{data_set}, noise {noise:g}", claims)
                self.draw("steps", data_set, noise, found)

    def depth(self) -> None:
        """Figure 5."""
        problems = self.problems("giph-unseen")
        depths = np.array([shape(problem).depth for problem in problems])
        table = Table(title="giph-unseen: SLR by depth of the graph (mean, standard deviation)")
        table.add_column("search")
        bins = [(depths >= low) & (depths < high) for low, high in pairwise(DEPTHS)]
        bins = [each for each in bins if each.any()]
        for each in bins:
            table.add_column(f"{depths[each].min()}-{depths[each].max()} ({each.sum()})", justify="right")
        for name in ("random", "random-task-eft", *HEADLINE, "heft"):
            last = self.slr("giph-unseen", name)[:, -1]
            table.add_row(name, *(f"{last[each].mean():.2f} ({last[each].std():.2f})" for each in bins))
        console.print(table)

    def table6(self) -> None:
        """Table 6."""
        found = {name: self.slr("giph-sizes", name)[:, -1] for name in (*VARIANTS, "heft")}
        table = Table(
            title=f"giph-sizes: per cent of {self.cases} cases better / equal / worse ({self.seeds} trainings)"
        )
        for header in ("", "paper", "ours", "better: 95 % interval", "verdict"):
            table.add_column(header)
        for (left, right), paper in TABLE_6.items():
            difference = found[left] - found[right]
            better, worse = difference < -1e-9, difference > 1e-9
            share, half = interval(100.0 * better)
            ours = f"{share:.1f} / {100 * (~better & ~worse).mean():.1f} / {100 * worse.mean():.1f}"
            same = "same" if abs(share - paper[0]) <= half else "direction"
            same = same if (share > 100 * worse.mean()) == (paper[0] > paper[2]) else "reversed"
            table.add_row(
                f"{left} : {right}", " / ".join(f"{x:.1f}" for x in paper), ours,
                f"{share - half:.1f} to {share + half:.1f}", same,
            )  # fmt: skip
        console.print(table)

    def table7(self) -> None:
        """Table 7 and figure 17."""
        problems = self.problems("giph-multiple")[:12]
        starts = first_placements(problems)
        table = Table(title="seconds for each sample; ours: CPU seconds of one core, one search at a time")
        for header in ("variant", "training, paper", "ours", "running, paper", "ours", "ratio", "ours by |V|"):
            table.add_column(header, justify="right")
        for name, (train, run) in TABLE_7.items():
            spent = self.store.seconds(Trained(name, "giph-multiple"))
            agent = self.store.agent(Trained(name, "giph-multiple"))
            each = []
            for problem, device in zip(problems, starts, strict=True):
                search = Search(problem, device, agent.make_view, steps=2 * problem.n_tasks)
                start = time.process_time()
                guide([search], agent.network)
                each.append((problem.n_tasks, (time.process_time() - start) / (2 * problem.n_tasks)))
            mean = float(np.mean([seconds for _, seconds in each]))
            slope = np.polyfit([n for n, _ in each], [1e3 * seconds for _, seconds in each], 1)[0]
            table.add_row(
                name, f"{train:.3f}", f"{spent['seconds'] / spent['steps']:.4f}", f"{run:.3f}", f"{mean:.4f}",
                f"{run / mean:.0f}", f"{slope:+.3f} ms/task",
            )  # fmt: skip
        console.print(table)
        console.print("Our training seconds contain the 41 evaluations of 20 cases, the paper's do not.")

    def learning(self) -> None:
        """Figure 7."""
        self._set("enas", (*SEARCHES, *HEADLINE, "heft"))
        problems = self.problems("enas")
        agent = self.store.agent(Trained("giph", "enas"))
        counts: list[int] = []
        for episode in episodes(problems[:20], agent):
            moves = np.bincount([step.task for step in episode.history])
            counts += moves[moves > 0].tolist()
        values, number = np.unique(counts, return_counts=True)
        pairs = ", ".join(f"{v}: {100 * n / len(counts):.0f} %" for v, n in zip(values, number, strict=True))
        console.print(f"relocations of a task, of those that moved: {pairs} (figure 7b: some move more often)")

    def traffic(self) -> None:
        """Figure 9."""
        self._set("traffic", (*SEARCHES, "giph", "giph-task-eft", "heft"))

    def _set(self, data_set: str, names: Sequence[str]) -> None:
        found = {name: self.slr(data_set, name) for name in names}
        table = Table(title=f"{data_set}: SLR after steps for each task; {len(found['giph'])} cases")
        table.add_column("search")
        for place in (0, 5, 10, 20):
            table.add_column(f"{GRID[place]:g} |V|", justify="right")
        for name, rows in found.items():
            table.add_row(name, *(plus_minus(rows[:, place]) for place in (0, 5, 10, 20)))
        console.print(table)
        last = {name: rows[:, -1] for name, rows in found.items()}
        claims = [
            (f"GiPH below {name}", last["giph"] - last[name]) for name in names if name not in ("giph", "annealing")
        ]
        self.claims(data_set, claims)
        self.draw("steps", data_set, 0.0, found)

    def rnn(self) -> None:
        """The RNN placer, trained on each case separately."""
        problems = self.problems("giph-unseen")[:RNN_CASES]
        cases = len(problems)

        def compute() -> np.ndarray:
            found = []
            for index, (problem, device) in enumerate(zip(problems, first_placements(problems), strict=True)):
                episode = place_by_rnn(problem, device, steps=RNN_PLACEMENTS, seed=index)
                last = len(episode.expected) - 1
                found.append([episode.expected[min(2 * problem.n_tasks, last)], episode.expected[last], last])
            return np.array(found, dtype=float)

        values = self.store.result(compute, "rnn", "giph-unseen", cases, RNN_PLACEMENTS)
        lengths = longest_paths(problems)
        found = {f"rnn-placer, {values[:, 2].mean():.0f} placements": values[:, 1] / lengths}
        found["rnn-placer, 2 |V| placements"] = values[:, 0] / lengths
        found |= {name: self.slr("giph-unseen", name)[:cases, -1] for name in (*SEARCHES, *HEADLINE, "giph-ne", "heft")}
        table = Table(title=f"giph-unseen: SLR after 2 |V| steps; {cases} cases")
        table.add_column("search")
        table.add_column("SLR", justify="right")
        for name, row in sorted(found.items(), key=lambda item: float(item[1].mean())):
            table.add_row(name, plus_minus(row))
        console.print(table)

    def faults(self) -> None:
        """The faults of the released code, one by one and together."""
        table = Table(title=f"giph-multiple: SLR after 2 |V| steps; {self.cases} cases, {self.seeds} trainings")
        for header in ("variant", "fault of the released code", "SLR", "difference"):
            table.add_column(header, justify="left" if header[0] in "vf" else "right")
        for variant, faults in FAULTS.items():
            fixed = self.slr("giph-multiple", variant)[:, -1]
            table.add_row(variant, "", plus_minus(fixed), "")
            for names in (*((name,) for name in faults), faults) if len(faults) > 1 else (faults,):
                row = self.slr("giph-multiple", variant, faults=tuple(sorted(names)))[:, -1]
                table.add_row(variant, ", ".join(names), plus_minus(row), plus_minus(row - fixed))
        heft, without = (self.slr("giph-multiple", name)[:, -1] for name in ("heft", WITHOUT_GAPS))
        table.add_row("heft", "", plus_minus(heft), "")
        table.add_row("heft", "no gaps", plus_minus(without), plus_minus(without - heft))
        console.print(table)

    def noise(self) -> None:
        """Noise from 0 to 0.5."""
        table = Table(title=f"giph-unseen: SLR without noise of the best observed placement; {self.cases} cases")
        table.add_column("search")
        levels = (0.0, 0.1, 0.2, 0.3, 0.5)
        for level in levels:
            table.add_column(f"noise {level:g}", justify="right")
        for name in ("random", "random-task-eft", "annealing", "giph"):
            table.add_row(name, *(plus_minus(self.slr("giph-unseen", name, level)[:, -1]) for level in levels))
        console.print(table)

    def packaged(self) -> None:
        """The policies that come with placeopt."""
        problems = self.problems("giph-unseen")
        table = Table(title=f"giph-unseen: SLR after 2 |V| steps; {self.cases} cases, {self.seeds} seeds of the search")
        for header in ("policy", "SLR", "against annealing", "against heft"):
            table.add_column(header, justify="left" if header == "policy" else "right")
        annealing, heft = (self.slr("giph-unseen", name)[:, -1] for name in ("annealing", "heft"))
        for name, path in PACKAGED.items():
            agent = load_policy(path).agent
            rows = [on_grid(problems, episodes(problems, agent, seed=seed))[:, -1] for seed in range(self.seeds)]
            row = np.mean(rows, axis=0) / longest_paths(problems)
            table.add_row(name, plus_minus(row), plus_minus(row - annealing), plus_minus(row - heft))
        console.print(table)

    def beyond(self) -> None:
        """Training with peers, and features of the execution."""
        table = Table(title=f"giph-unseen: SLR after 2 |V| steps; {self.cases} cases, {self.seeds} trainings")
        table.add_column("policy")
        table.add_column("training")
        for header in ("SLR", "against annealing", "CPU seconds"):
            table.add_column(header, justify="right")
        annealing = self.slr("giph-unseen", "annealing")[:, -1]
        trainings: tuple[tuple[str, dict[str, Any]], ...] = (
            ("200 episodes, as in the paper", {}),
            ("1,600 episodes", {"episodes": 1600}),
            ("1,600 episodes, 16 for each update", {"episodes": 1600, "batch": 16}),
            ("1,600 episodes, 16 for each update, 8 peers", {"episodes": 1600, "batch": 16, "peers": 8}),
        )
        for variant in ("giph", "giph-plus"):
            for label, rest in trainings:
                trained = [Trained(variant, "giph-multiple", seed=s, **rest) for s in range(self.seeds)]
                seconds = np.mean([self.store.seconds(each)["seconds"] for each in trained])
                row = self.slr("giph-unseen", variant, **rest)[:, -1]
                table.add_row(variant, label, plus_minus(row), plus_minus(row - annealing), f"{seconds:.0f}")
        for name in ("annealing", "heft"):
            row = self.slr("giph-unseen", name)[:, -1]
            table.add_row(name, "", plus_minus(row), "" if name == "annealing" else plus_minus(row - annealing), "")
        console.print(table)

    def draw(self, kind: str, *what: Any) -> None:
        """Write a figure, if wanted."""
        if self.images is not None:
            from giph_learned_figures import draw_convergence, draw_steps

            draw: Callable[..., Any] = {"steps": draw_steps, "convergence": draw_convergence}[kind]
            draw(*what).write(self.images / f"learned-{kind}-{'-'.join(map(str, what[:-1]))}.png")


PARTS = (
    "convergence", "steps", "depth", "table6", "table7", "learning", "traffic", "rnn", "noise", "faults",
    "packaged", "beyond",
)  # fmt: skip


def main() -> None:
    """Run the parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="policies and results, created if absent")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--cases", type=int, default=150, help="test cases of each set")
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each policy")
    parser.add_argument("--images", type=Path, metavar="FOLDER", help="folder for the figures; no figures by default")
    arguments = parser.parse_args()
    unknown = [part for part in arguments.parts if part not in PARTS]
    if unknown:
        parser.error(f"unknown part {unknown[0]}; expected one of {', '.join(PARTS)}")
    store = Store(arguments.folder, lambda text: console.print(f"[dim]{text}[/]"))
    evaluation = Evaluation(store, arguments.cases, arguments.seeds, arguments.images)
    for part in arguments.parts or PARTS:
        getattr(evaluation, part)()


if __name__ == "__main__":
    main()
