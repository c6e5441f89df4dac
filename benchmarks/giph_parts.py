"""The figures and tables of GiPH's paper: `papers/giph.py` says what each is."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import giph_adaptivity
import giph_objectives
import numpy as np
from claims import Claim, Verdict
from giph_paper import (
    CONVERGING,
    TABLE_6,
    TABLE_7,
    below,
    below_random,
    faster,
    near,
    plus_minus,
    timed_cells,
    wins,
    yes,
)  # fmt: skip
from giph_results import HEADLINE, SEARCHES, VARIANTS, Results
from giph_runs import FIFO, GRID, WITHOUT_GAPS, Trained, episodes, first_placements, longest_paths, timed_training
from giph_sets import denominator
from rich.table import Table
from rnn_placer import place_by_rnn
from shown import show, show_claims

import placeopt as po
from placeopt.generate.random_graphs import random_document
from placeopt.learning.networks.variants import Agent, make_agent
from placeopt.learning.search import Search, guide
from placeopt.learning.training.weights import PACKAGED, load_policy
from placeopt.model.metrics import shape
from placeopt.model.problem import Problem

PLUS = "giph-plus, packaged"
RNN_CASES, RNN_PLACEMENTS = 30, 400
DEPTHS = (0, 12, 18, 26, 34, 100)
TIMED = 12
"""Problems, and episodes of a training, of table 7."""


class PaperParts(Results):
    """The paper's figures and tables."""

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
                show(table)
                if potential == "paper":
                    show_claims(f"figure 14, {data_set}", [_converging(name, curves[name]) for name in CONVERGING])
                else:
                    show_claims(
                        "figure 15", [_converging(name, curves[name], name != "giph-ne-pol") for name in curves]
                    )
                self.draw("convergence", data_set, potential, curves)

    def steps(self) -> None:
        """Figure 4, unseen networks."""
        self._steps(0.0, "giph-unseen")

    def steps_multiple(self) -> None:
        """Figure 4, the networks of the training."""
        self._steps(0.0, "giph-multiple")

    def steps_single(self) -> None:
        """Figure 4, one network."""
        self._steps(0.0, "giph-single")

    def noisy(self) -> None:
        """Figure 4 with noise."""
        self._steps(0.2, "giph-unseen", "giph-multiple", "giph-single")

    def _steps(self, noise: float, *data_sets: str) -> None:
        for data_set in data_sets:
            names = (*SEARCHES, *HEADLINE, PLUS)
            each = {name: self.slrs(data_set, name, noise) for name in names}
            each["heft"] = self.slrs(data_set, "heft")
            self.table(f"{data_set}, noise {noise:g}: SLR after steps for each task; {self.cases} cases", each)
            found = {name: rows.mean(axis=0) for name, rows in each.items()}
            last = {name: rows[:, :, -1] for name, rows in each.items()}
            drawn = self.drawn(data_set)
            giph = last["giph"]
            claims = [
                below_random(giph, drawn),
                below("GiPH below random placements, best so far", giph - last["random"]),
                below("GiPH below random-task-eft", giph - last["random-task-eft"]),
                below("GiPH below GiPH-task-EFT", giph - last["giph-task-eft"]),
                below("GiPH below Placeto", giph - last["placeto"]),
                below("GiPH-task-EFT below random-task-eft", last["giph-task-eft"] - last["random-task-eft"]),
                near("GiPH comparable with HEFT", giph, last["heft"]),
            ]
            if data_set != "giph-single":
                claims.append(below("Placeto above random placements, mean", drawn - last["placeto"]))
                claims.append(below("Placeto above random placements, best so far", last["random"] - last["placeto"]))
            if noise:
                worse = {name: last[name] - self.slrs(data_set, name)[:, :, -1] for name in ("giph", "placeto")}
                text = "noise makes Placeto worse than it makes GiPH"
                claims.append(below(text, worse["giph"] - worse["placeto"]))
            rivals = ("random-task-eft", "giph-task-eft", "placeto")
            claims += [faster(rival, each["giph"], last[rival], GRID) for rival in rivals]
            show_claims(f"figure 4, {data_set}, noise {noise:g}", claims)
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
        names = ("random", "random-task-eft", *HEADLINE, "heft")
        last = {name: self.slr("giph-unseen", name)[:, -1] for name in names}
        for name in names:
            table.add_row(name, *(f"{last[name][each].mean():.2f} ({last[name][each].std():.2f})" for each in bins))
        show(table)
        shorter = longest_paths(problems) / np.array([denominator(problem, "shortest") for problem in problems])
        growth = {
            path: ", ".join(f"{name} {np.corrcoef(depths, last[name] * factor)[0, 1]:+.2f}" for name in names)
            for path, factor in (("longest", 1.0), ("shortest", shorter))
        }
        rivals = [name for name in names if name not in ("giph", "heft")]
        first = sum(all(last["giph"][each].mean() < last[name][each].mean() for name in rivals) for each in bins)
        each = [self.slrs("giph-unseen", name)[:, :, -1] for name in ("giph", "heft")]
        show_claims(
            "figure 5",
            [
                *(
                    yes(f"the SLR of all methods grows with depth (divisor: {path} path)", " -" not in text, text)
                    for path, text in growth.items()
                ),
                yes("GiPH is the best search in most cases", 2 * first > len(bins), f"{first} of {len(bins)} depths"),
                near(
                    "GiPH comparable with HEFT",
                    *(self.slrs("giph-unseen", name)[:, :, -1] for name in ("giph", "heft")),
                ),
            ],
        )

    def table6(self) -> None:
        """Table 6."""
        found = {name: self.slrs("giph-sizes", name)[:, :, -1] for name in (*VARIANTS, "heft", WITHOUT_GAPS, FIFO)}
        claims = [wins(left, right, found[left] - found[right]) for left, right in TABLE_6]
        claims += [wins("giph", other, found["giph"] - found[other]) for other in (WITHOUT_GAPS, FIFO)]
        count = f"{self.cases} cases, {self.seeds} trainings of each"
        show_claims(f"table 6, giph-sizes: per cent of cases better / equal / worse; {count}", claims)
        self.table("giph-sizes: SLR after steps for each task", {name: self.slrs("giph-sizes", name) for name in found})

    def table7(self) -> None:
        """Table 7 and figure 17."""
        sizes = np.array([problem.n_tasks for problem in self.problems("giph-multiple")[:TIMED]])
        table = Table(title="CPU seconds of one core, one search at a time")
        for header in ("variant", "training, paper", "ours", "running, paper", "ours", "ours by |V|"):
            table.add_column(header, justify="right")
        found = {}
        for name, (train, run) in TABLE_7.items():
            key = ("seconds", "giph-multiple", TIMED, name)
            training = self.store.result(partial(timed_training, name), *key, "training")
            running = self.store.result(partial(self._timed, name), *key)
            found[name] = float(training.mean()), float(running.mean())
            slope = np.polyfit(sizes, 1e3 * running, 1)[0]
            table.add_row(
                name, f"{train:.3f}", f"{found[name][0]:.4f}", f"{run:.3f}", f"{found[name][1]:.4f}",
                f"{slope:+.3f} ms/task",
            )  # fmt: skip
        show_claims("table 7: seconds for each sample, and their ratio to those of GiPH", timed_cells(found))
        show(table)
        show(f"The weights are the initial ones. Training: {TIMED} episodes without evaluations.")
        whole = self.store.seconds(Trained("giph", "giph-multiple"))["seconds"]
        show(f"200 episodes of giph on giph-multiple with all evaluations: {whole:.0f} CPU seconds")
        for name in PACKAGED:
            each = self.store.result(partial(_timed_packaged, name), "seconds", "40 x 20", name)
            show(f"{name}: {1e3 * float(each.mean()):.2f} ms a step on 40 tasks x 20 devices")

    def _timed(self, variant: str) -> np.ndarray:
        """(TIMED,) CPU seconds of a step on each of the first problems."""
        problems = self.problems("giph-multiple")[:TIMED]
        starts = first_placements(problems)
        agent = make_agent(variant, devices=problems[0].n_devices)
        _seconds_of_step(problems[0], starts[0], agent)  # loads the network
        return np.array([_seconds_of_step(*each, agent) for each in zip(problems, starts, strict=True)])

    def learning(self) -> None:
        """Figure 7."""
        self._set("enas", "figure 7, left", (*SEARCHES, *HEADLINE, PLUS, "heft"))
        problems = self.problems("enas")
        single = np.array([min(_on_one(problem)) for problem in problems]) / longest_paths(problems)
        show(f"enas: all tasks on the best single device: SLR {plus_minus(single)}")
        every = self.store.result(lambda: self._moves(problems[:20]), "moves", "enas", 20)
        counts = every[every > 0].astype(int)
        spreads = [each.var() / each.mean() for each in (row[row >= 0] for row in every)]
        values, number = np.unique(counts, return_counts=True)
        pairs = ", ".join(f"{v}: {100 * n / len(counts):.0f} %" for v, n in zip(values, number, strict=True))
        spread = float(np.mean(spreads))
        show_claims(
            "figure 7, right",
            [yes("some tasks move more often", spread > 1.5, f"variance / mean {spread:.1f}; 1 if tasks are drawn")],
        )
        show(f"moves of a task, of the tasks that moved: {pairs}")

    def _moves(self, problems: Sequence[Problem]) -> np.ndarray:
        """(problems, tasks) how often GiPH moves each task; -1: a problem has fewer tasks."""
        found = np.full((len(problems), max(problem.n_tasks for problem in problems)), -1)
        agent = self.store.agent(Trained("giph", "enas"))
        for row, problem, episode in zip(found, problems, episodes(problems, agent), strict=True):
            row[: problem.n_tasks] = np.bincount([step.task for step in episode.history], minlength=problem.n_tasks)
        return found

    def traffic(self) -> None:
        """Figure 9."""
        names = (*SEARCHES, "giph", "giph-task-eft", PLUS, "heft")
        self._set("traffic", "figure 9, left", names)
        table = Table(title="traffic: distribution of the last SLR over cases (figure 9, right)")
        shares = (10, 25, 50, 75, 90, 99)
        for header in ("search", "mean", *(f"{each} %" for each in shares)):
            table.add_column(header, justify="left" if header == "search" else "right")
        for name in names:
            last = self.slr("traffic", name)[:, -1]
            table.add_row(name, f"{last.mean():.3f}", *(f"{each:.3f}" for each in np.percentile(last, shares)))
        show(table)

    def _set(self, data_set: str, figure: str, names: Sequence[str]) -> None:
        each = {name: self.slrs(data_set, name) for name in names}
        cases = each["giph"].shape[1]
        self.table(f"{data_set}: SLR after steps for each task; {cases} cases", each)
        found = {name: rows.mean(axis=0) for name, rows in each.items()}
        last = {name: rows[:, :, -1] for name, rows in each.items()}
        rivals = [name for name in names if name not in ("giph", "annealing", PLUS, "heft")]
        claims = [below(f"GiPH below {name}", last["giph"] - last[name]) for name in rivals]
        if data_set == "traffic":
            claims.append(below("GiPH below heft", last["giph"] - last["heft"]))
        show_claims(figure, claims)
        self.draw("steps", data_set, 0.0, found)

    def changes(self) -> None:
        """Figure 6: searches go on from their own placements, or from random ones as in the released code."""
        trained_on = {"giph": "giph-sizes", "giph-task-eft": "giph-sizes", "placeto": "giph-multiple"}
        policies = [
            f"{name}{giph_adaptivity.TRAINING}{seed}={self.store.policy(Trained(name, data_set, seed=seed))}"
            for seed in range(self.seeds)
            for name, data_set in trained_on.items()
        ]
        images = ["--images", str(self.images)] if self.pictures else []
        rest = ["--graphs", "5", "--networks", "2", "--policies", *policies, "giph-plus"]
        giph_adaptivity.main(["--rnn", *images, *rest])
        giph_adaptivity.main(["--restart", *rest])

    def relocation_and_energy(self) -> None:
        """Figure 11."""
        giph_objectives.main(["--parts", "relocation", "energy", "--train", "giph"])

    def total_cost(self) -> None:
        """Figure 16, also after a training with a less noisy gradient."""
        giph_objectives.main(["--parts", "cost", "--train", "giph"])
        giph_objectives.main(["--parts", "cost", "--train", "giph", "giph-plus", "--episodes", "800", "--peers", "8"])

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
        show(table)


def _timed_packaged(name: str) -> np.ndarray:
    """(1,) CPU seconds of a step of a policy that comes with placeopt, if all tasks can run on all devices."""
    large = po.compile(random_document(40, 20, seed=1))
    agent = load_policy(PACKAGED[name]).agent
    return np.array([_seconds_of_step(large, first_placements([large])[0], agent, 400)])


def _seconds_of_step(problem: Problem, device: np.ndarray, agent: Agent, steps: int | None = None) -> float:
    steps = steps or 2 * problem.n_tasks
    search = Search(problem, device, agent.make_view, steps=steps)
    start = time.process_time()
    guide([search], agent.network)
    return (time.process_time() - start) / steps


def _on_one(problem: Problem) -> list[int]:
    """The makespan on each device that can run all tasks."""
    return problem.duration.sum(axis=0)[problem.feasible.all(axis=0)].tolist()


def _converging(name: str, curves: np.ndarray, expected: bool | None = None) -> Claim:
    """Whether training (trainings, points) lowers the SLR: the last ten points against the first."""
    expected = CONVERGING[name] if expected is None else expected
    gain = curves[:, :1].mean(axis=1) - curves[:, -10:].mean(axis=1)
    better = int((gain > 0.02 * curves[:, 0]).sum())
    paper = "converges" if expected else "does not converge"
    verdict: Verdict = (
        "same"
        if better == (len(curves) if expected else 0)
        else "reversed"
        if better in (0, len(curves))
        else "in part"
    )
    return Claim(
        name, paper, f"improves by 2 % in {better} of {len(curves)} trainings; mean {gain.mean():+.3f}", verdict
    )
