"""Experiments that are not in GiPH's paper: `papers/giph.py` says what each is."""

from __future__ import annotations

from typing import Any

import numpy as np
from giph_paper import below, near, plus_minus
from giph_results import COMES, Results
from giph_runs import GRID, WITHOUT_GAPS, Trained, episodes, longest_paths, on_grid, test_pairs
from rich.table import Table
from shown import show, show_claims

import placeopt as po
from placeopt.generate.giph.sets import SETS

FAULTS: dict[str, tuple[str, ...]] = {
    "giph": ("one-way", "frozen-masks", "undiscounted", "late-baseline", "repeated-cases"),
    "giph-3": ("zero-ends", "five-steps"),
    "giph-ne": ("incoming-means", "one-way"),
    "giph-task-eft": ("no-task-mask", "one-way"),
    "placeto": ("zero-ends", "placeto-returns"),
}
"""Faults of the released code that concern each variant."""
PEERS: dict[str, Any] = {"episodes": 1600, "batch": 16, "peers": 8}
"""Training whose gradient is less noisy: 16 episodes for each update, 8 of them from one placement."""
ORDER = {
    "giph-multiple": ("giph", "giph-ne", "giph-ne-pol", "giph-task-eft", "placeto"),
    "traffic": ("giph", "giph-task-eft"),
}
"""Sets and variants that are trained again with PEERS."""

SOLVERS: dict[str, dict[str, Any]] = {
    "annealing": {},
    "giph, giph-plus": {},
    "lns": {},
    "auto": {},
}
"""Solvers and their settings; the name of the weights follows a comma."""
LIMITS, SECONDS_CASES = (1.0, 5.0), 20


PATIENCE = (2, 4, 6, 10)
"""Places of `GRID`: steps without a better placement after which a search ends."""


def stops(rows: np.ndarray, patience: int) -> np.ndarray:
    """(trainings, cases) the place on the grid where a search ends, from values (trainings, cases, grid)."""
    still = rows[:, :, patience:] >= rows[:, :, :-patience]
    return np.where(still.any(axis=2), still.argmax(axis=2) + patience, rows.shape[2] - 1)


class FurtherParts(Results):
    """What changes the results."""

    def noise(self) -> None:
        """Noise from 0 to 0.5."""
        table = Table(title=f"giph-unseen: SLR without noise of the best observed placement; {self.cases} cases")
        table.add_column("search")
        levels = (0.0, 0.1, 0.2, 0.3, 0.5)
        for level in levels:
            table.add_column(f"noise {level:g}", justify="right")
        for name in ("random", "random-task-eft", "annealing", "giph", "giph-plus, packaged"):
            table.add_row(name, *(plus_minus(self.slrs("giph-unseen", name, level)[:, :, -1]) for level in levels))
        show(table)

    def order(self) -> None:
        """Whether the order of the variants differs with a less noisy gradient."""
        for data_set, variants in ORDER.items():
            names = ("random", "random-task-eft", "heft")
            found = {name: self.slrs(data_set, name) for name in names}
            for variant in variants:
                found[variant] = self.slrs(data_set, variant)
                found[f"{variant}, 8 peers"] = self.slrs(data_set, variant, **PEERS)
            self.table(f"{data_set}: SLR after steps; 200 episodes, or 1,600 in 100 updates with peers", found)
            for suffix in ("", ", 8 peers"):
                best = found[f"giph{suffix}"][:, :, -1]
                claims = [
                    below(f"GiPH{suffix} below {variant}{suffix}", best - found[f"{variant}{suffix}"][:, :, -1])
                    for variant in variants[1:]
                ]
                claims.append(near(f"GiPH{suffix} comparable with HEFT", best, found["heft"][:, :, -1]))
                show_claims(f"{data_set}{suffix}", claims)

    def stopping(self) -> None:
        """Searches that end after some steps without a better placement (section 6 of the paper)."""
        table = Table(title=f"giph-unseen: SLR (steps for each task) by the stopping criterion; {self.cases} cases")
        table.add_column("search")
        table.add_column("2 |V| steps", justify="right")
        for patience in PATIENCE:
            table.add_column(f"{GRID[patience]:.1f} |V| without gain", justify="right")
        for name in ("random-task-eft", "annealing", "giph", "giph-task-eft"):
            rows = self.slrs("giph-unseen", name)
            cells = []
            for patience in PATIENCE:
                ends = stops(rows, patience)
                last = np.take_along_axis(rows, ends[:, :, None], axis=2)[:, :, 0]
                cells.append(f"{plus_minus(last)} ({GRID[ends].mean():.2f})")
            table.add_row(name, plus_minus(rows[:, :, -1]), *cells)
        show(table)

    def features(self) -> None:
        """Node features of GiPH."""
        table = Table(title=f"giph-sizes: SLR after 2 |V| steps; {self.cases} cases, {self.seeds} trainings")
        for header in ("variant", "features", "SLR", "difference"):
            table.add_column(header, justify="left" if header[0] in "vf" else "right")
        for variant in ("giph", "giph-3", "giph-5", "giph-ne-pol"):
            full = self.slrs("giph-sizes", variant)[:, :, -1]
            table.add_row(variant, "as in the paper", plus_minus(full), "")
            without = self.slrs("giph-sizes", variant, potential="none")[:, :, -1]
            table.add_row(
                variant, "no start-time potential", plus_minus(without), plus_minus(without - full, sign=True)
            )
            if variant == "giph":
                others = (
                    ("potential of the released code", "giph", "released"),
                    ("two more, of the execution", "giph-plus", "paper"),
                )
                for label, name, potential in others:
                    row = self.slrs("giph-sizes", name, potential=potential)[:, :, -1]
                    table.add_row(variant, label, plus_minus(row), plus_minus(row - full, sign=True))
        show(table)

    def faults(self) -> None:
        """The faults of the released code, one by one and together."""
        table = Table(title=f"giph-multiple: SLR after 2 |V| steps; {self.cases} cases, {self.seeds} trainings")
        for header in ("variant", "fault of the released code", "SLR", "difference"):
            table.add_column(header, justify="left" if header[0] in "vf" else "right")
        for variant, faults in FAULTS.items():
            fixed = self.slrs("giph-multiple", variant)[:, :, -1]
            table.add_row(variant, "", plus_minus(fixed), "")
            for names in (*((name,) for name in faults), faults) if len(faults) > 1 else (faults,):
                row = self.slrs("giph-multiple", variant, faults=tuple(sorted(names)))[:, :, -1]
                table.add_row(variant, ", ".join(names), plus_minus(row), plus_minus(row - fixed, sign=True))
        heft, without = (self.slr("giph-multiple", name)[:, -1] for name in ("heft", WITHOUT_GAPS))
        table.add_row("heft", "", plus_minus(heft), "")
        table.add_row("heft", "no gaps", plus_minus(without), plus_minus(without - heft))
        for which in ("expected", "best"):
            kind = "noise 0.2, " + ("without noise" if which == "expected" else "observed")
            once, thrice = (self.observed("giph-multiple", repeats, which) for repeats in (1, 3))
            table.add_row("random-task-eft", kind, plus_minus(once), "")
            table.add_row("random-task-eft", f"{kind}: mean of 3 runs", plus_minus(thrice), plus_minus(thrice - once))
        show(table)

    def observed(self, data_set: str, repeats: int, which: str) -> np.ndarray:
        """(cases,) last SLR of random-task-eft with noise 0.2 and a mean of several executions."""
        problems = self.problems(data_set)

        def compute() -> np.ndarray:
            found = episodes(problems, "random-task-eft", noise=0.2, repeats=repeats)
            return on_grid(problems, found, which)[:, -1]

        return self.store.result(compute, "repeats", data_set, self.cases, repeats, which) / longest_paths(problems)

    def packaged(self) -> None:
        """The policies that come with placeopt, on all sets."""
        table = Table(title=f"SLR after 2 |V| steps; {self.cases} cases, {self.seeds} seeds of the search")
        for header in ("set", "noise", "policy", "SLR", "against annealing", "at |V| / 2", "against heft"):
            table.add_column(header, justify="left" if header in ("set", "policy") else "right")
        noisy = [("giph-single", 0.2), ("giph-multiple", 0.2), ("giph-unseen", 0.2)]
        for data_set, noise in [*((name, 0.0) for name in SETS), *noisy]:
            annealing = self.slrs(data_set, "annealing", noise)
            heft = self.slrs(data_set, "heft")[:, :, -1]
            for name in (*COMES, "annealing"):
                rows = self.slrs(data_set, name, noise)
                cells = [plus_minus((rows - annealing)[:, :, place], sign=True) for place in (-1, 5)]
                cells = ["", ""] if name == "annealing" else cells
                last = rows[:, :, -1]
                table.add_row(
                    data_set, f"{noise:g}", name, plus_minus(last), *cells, plus_minus(last - heft, sign=True)
                )
        show(table)

    def beyond(self) -> None:
        """Training with peers, and features of the execution."""
        table = Table(title=f"giph-unseen: SLR after 2 |V| steps; {self.cases} cases, {self.seeds} trainings")
        table.add_column("policy")
        table.add_column("training")
        for header in ("validation", "SLR", "against annealing", "against heft", "CPU seconds"):
            table.add_column(header, justify="right")
        annealing, heft = (self.slrs("giph-unseen", name)[:, :, -1] for name in ("annealing", "heft"))
        trainings: tuple[tuple[str, str, dict[str, Any]], ...] = (
            ("giph", "200 episodes, as in the paper", {}),
            ("giph", "1,600 episodes", {"episodes": 1600}),
            ("giph", "1,600 episodes, 16 for each update", {"episodes": 1600, "batch": 16}),
            ("giph", "1,600 episodes, 16 for each update, 8 peers", PEERS),
            ("giph-plus", "200 episodes, as in the paper", {}),
            ("giph-plus", "1,600 episodes, 16 for each update, 8 peers", PEERS),
        )
        for variant, label, rest in trainings:
            trained = [Trained(variant, "giph-multiple", seed=s, **rest) for s in range(self.seeds)]
            seconds = np.mean([self.store.seconds(each)["seconds"] for each in trained])
            ratio = np.mean([min(ratio for _, ratio in self.store.curve(each)) for each in trained])
            row = self.slrs("giph-unseen", variant, **rest)[:, :, -1]
            table.add_row(
                variant, label, f"{ratio:.3f}", plus_minus(row), plus_minus(row - annealing, sign=True),
                plus_minus(row - heft, sign=True), f"{seconds:.0f}",
            )  # fmt: skip
        for name, row in (("annealing", annealing), ("heft", heft)):
            table.add_row(name, "", "", plus_minus(row))
        show(table)
        show("validation: the best SLR on 20 validation cases during the training, by which to choose")

    def seconds(self) -> None:
        """Solvers with equal time limits."""
        for solver, settings in SOLVERS.items():
            po.solve(self.problems("giph-unseen")[0], solver.partition(",")[0], time_limit=1.0, workers=1, **settings)
        for data_set in ("giph-unseen", "traffic"):
            problems = self.problems(data_set)[:SECONDS_CASES]
            lengths = longest_paths(problems)
            table = Table(title=f"{data_set}: SLR of solvers with one worker; {len(problems)} cases")
            table.add_column("solver")
            found: dict[tuple[str, float], np.ndarray] = {}
            for limit in LIMITS:
                table.add_column(f"{limit:g} s", justify="right")
                table.add_column("against annealing", justify="right")
                for solver, settings in SOLVERS.items():
                    found[solver, limit] = np.array(
                        [
                            po.solve(each, solver.partition(",")[0], time_limit=limit, workers=1, **settings).makespan
                            for each in problems
                        ]
                    )
            for solver in SOLVERS:
                cells = []
                for limit in LIMITS:
                    row, annealing = (found[name, limit] / lengths for name in (solver, "annealing"))
                    cells += [plus_minus(row), plus_minus(row - annealing, sign=True)]
                table.add_row(solver, *cells)
            show(table)

    def networks(self) -> None:
        """The main differences with intervals for new networks and trainings: networks, not problems, are drawn."""
        table = Table(title=f"differences of the SLR after 2 |V| steps, with networks as units; {self.cases} cases")
        for header in ("set", "noise", "difference", "problems", "networks"):
            table.add_column(header, justify="left" if header in ("set", "difference") else "right")
        rows: tuple[tuple[str, float, str, dict[str, Any], str, dict[str, Any]], ...] = (
            ("giph-multiple", 0.0, "giph", {}, "random-task-eft", {}),
            ("giph-unseen", 0.0, "giph", {}, "random-task-eft", {}),
            ("giph-multiple", 0.0, "giph", PEERS, "random-task-eft", {}),
            ("giph-multiple", 0.0, "giph", PEERS, "giph-task-eft", PEERS),
            ("giph-multiple", 0.0, "giph", PEERS, "heft", {}),
            ("giph-unseen", 0.0, "giph", PEERS, "heft", {}),
            ("giph-unseen", 0.0, "giph-plus, packaged", {}, "heft", {}),
            ("giph-unseen", 0.0, "giph-plus, packaged", {}, "annealing", {}),
            ("giph-unseen", 0.2, "giph-plus, packaged", {}, "annealing", {}),
            ("giph-unseen", 0.5, "giph-plus, packaged", {}, "annealing", {}),
        )
        for data_set, noise, one, training, other, its_training in rows:
            left = self.slrs(data_set, one, noise, **training)[:, :, -1]
            difference = left - self.slrs(data_set, other, noise, **its_training)[:, :, -1]
            network = np.array([pair[1] for pair in test_pairs(data_set, self.cases)])
            means = [difference[:, network == each].mean(axis=1) for each in np.unique(network)]
            peers = tuple(", 8 peers" if which else "" for which in (training, its_training))
            table.add_row(
                data_set, f"{noise:g}", f"{one}{peers[0]} - {other}{peers[1]}", plus_minus(difference, sign=True),
                plus_minus(np.array(means).T, sign=True),
            )  # fmt: skip
        show(table)
