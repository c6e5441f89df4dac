"""Compute the tables of a comparison as plain data for terminals, plots and pages."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Self, TypeVar, get_args

from placeopt.studies.comparison.ledger import examine_ledger
from placeopt.studies.comparison.records import Record
from placeopt.studies.comparison.verdicts import FAILED, Standing, Value, Verdict, feasible_levels, feasible_value

T = TypeVar("T")

Certified = Literal["none", "trusted", "checked"]

WEAKEST: tuple[Certified, ...] = get_args(Certified)
"""How a bound is certified, the weakest first."""

_ROW = (
    "termination", "feasible", "objective_name", "objective", "objective_levels", "resolution", "bound", "repeatable",
)  # fmt: skip
"""Fields of a result in the row of a run."""


def solver_label(record: Record) -> str:
    """Return the solver with its given settings: "celeritas:range=100"."""
    settings = ",".join(f"{key}={value}" for key, value in sorted(record.settings.items()))
    return f"{record.solver}:{settings}" if settings else record.solver


@dataclass(frozen=True, slots=True)
class Entry:
    """One solver on one problem, over all seeds."""

    problem: str
    solver: str
    """`solver_label`, with settings."""
    verdict: Verdict
    message: str
    """feasible if any run is feasible, else the verdict of the first run; the reason, or why some runs failed."""
    runs: int
    feasible: int
    """Number of runs, and number of runs with a feasible schedule."""
    objective: Value | None
    """Lower median of the feasible runs, so a value that some run has; None without a feasible run."""
    levels: tuple[Value, ...] | None
    """The objective of that run, one value per level."""
    spread: float | None
    """(largest - smallest) / median of the feasible runs; None for fewer than two."""
    gap: float | None
    ratio: float | None
    """Gap of the median to the best bound of the problem, and its ratio to the best value of any run."""
    latency: int | None
    """Ticks of the latency of that run, for a pipeline."""
    slr: float | None
    seconds: float | None
    """Lower median of the feasible runs; lower median of all runs with a run time."""
    peak_memory: int | None
    """Bytes on the fullest device, the maximum of the feasible runs."""
    process_memory: int | None
    """Bytes of main memory that the process of a run held at most, the maximum of all runs that report it."""
    certificate: Certified | None
    """`certificate_of` of the runs, the weakest one; None if no run proved anything."""


@dataclass(frozen=True)
class Runs:
    """The records of many runs, ordered by problem, solver and seed.

    `expected` is the planned number of runs; with fewer records, the comparison was stopped. `notes` lists the lines of
    the ledger that are left out, with reasons, and states that the cluster was lost. `best_known` is that of problem
    files, by fingerprint.
    """

    records: tuple[Record, ...]
    expected: int = field(default=0, compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)
    best_known: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, compare=False)

    @classmethod
    def read(cls, ledger: str | os.PathLike[str]) -> Self:
        """Read a ledger; problems and solvers keep the order of the comparison, and the last of repeated runs counts.

        If several comparisons wrote the ledger, ties between their orders are broken by the order of lines.

        Raises
        ------
        UsageError
            If the file cannot be read or is not a ledger.
        """
        contents = examine_ledger(ledger)
        last = {(record.file, record.problem, record.key): record for record in contents.records}
        records = tuple(last.values())
        problems = _ordered(((record.problem, record.fingerprint), record.place[0]) for record in records)
        solvers = _ordered((solver_label(record), record.place[1]) for record in records)

        def place(record: Record) -> tuple[int, int, int, float, int]:
            limit = math.inf if record.time_limit is None else record.time_limit
            return (
                problems[record.problem, record.fingerprint], solvers[solver_label(record)], record.seed, limit,
                record.threads,
            )  # fmt: skip

        return cls(tuple(sorted(records, key=place)), expected=len(records), notes=contents.notes)

    @cached_property
    def by_problem(self) -> dict[str, tuple[Record, ...]]:
        """The records of each problem by its label: the name, with the fingerprint if two problems share a name."""
        prints: dict[str, dict[str, list[Record]]] = {}
        for record in self.records:
            prints.setdefault(record.problem or "problem", {}).setdefault(record.fingerprint, []).append(record)
        order = dict.fromkeys((record.problem or "problem", record.fingerprint) for record in self.records)
        return {
            name if len(prints[name]) == 1 else f"{name} ({print_})": tuple(prints[name][print_])
            for name, print_ in order
        }

    @cached_property
    def standings(self) -> dict[str, Standing]:
        """Best value and best bound of each problem, by its label."""
        return {label: Standing.of(records) for label, records in self.by_problem.items()}

    def no_schedule(self, label: str) -> str:
        """Describe a problem without a feasible schedule: whether a run proved that none exists."""
        proved = any(entry.verdict == "no solution" for entry in self.entries[label])
        return "proved to have no schedule" if proved else "no feasible schedule"

    @cached_property
    def solvers(self) -> tuple[str, ...]:
        """Labels of the solvers, in order."""
        return tuple(dict.fromkeys(map(solver_label, self.records)))

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict per run: objective values in the metric's unit, times in seconds, memory in bytes."""
        rows = []
        for label, records in self.by_problem.items():
            standing = self.standings[label]
            for record in records:
                verdict, message = standing.judge(record)
                value, result = feasible_value(record), record.result or {}
                rows.append({
                    "problem": label,
                    "file": record.file,
                    "fingerprint": record.fingerprint,
                    "solver": solver_label(record),
                    "seed": record.seed,
                    "time_limit": record.time_limit,
                    "threads": record.threads,
                    "verdict": verdict,
                    "message": message or record.message,
                    **{key: result.get(key) for key in _ROW},
                    "best_bound": standing.bound,
                    "best_bound_source": standing.bound_source,
                    "best_found": standing.best,
                    "best_levels": None if standing.levels is None else list(standing.levels),
                    "gap": standing.gap(value),
                    "ratio": standing.ratio(value),
                    "latency": latency_of(record),
                    "slr": record.slr,
                    "seconds": _seconds(record),
                    "wall": record.wall,
                    "peak_memory": record.peak_memory,
                    "process_memory": result.get("process_memory"),
                    "certificate": certificate_of(record),
                })  # fmt: skip
        return rows

    @cached_property
    def entries(self) -> dict[str, tuple[Entry, ...]]:
        """The entries of each problem by its label: one per solver, over all seeds."""
        found = {}
        for label, records in self.by_problem.items():
            runs: dict[str, list[Record]] = {}
            for record in records:
                runs.setdefault(solver_label(record), []).append(record)
            found[label] = tuple(_entry(label, solver, mine, self.standings[label]) for solver, mine in runs.items())
        return found

    def steady(self) -> tuple[str, ...]:
        """Return the solvers that solved at least half of the solved problems; means are compared among these."""
        solved, able = self._solved(), sum(standing.best is not None for standing in self.standings.values())
        return tuple(solver for solver in self.solvers if solved[solver] and 2 * len(solved[solver]) >= able)

    def common(self) -> tuple[str, ...]:
        """Return the problems that every `steady` solver solved; means are over these problems."""
        solved, steady = self._solved(), self.steady()
        return tuple(label for label in self.entries if steady and all(label in solved[solver] for solver in steady))

    def _solved(self) -> dict[str, dict[str, Entry]]:
        """Return the entries with a schedule, by solver and problem."""
        found: dict[str, dict[str, Entry]] = {solver: {} for solver in self.solvers}
        for label, entries in self.entries.items():
            for entry in entries:
                if entry.objective is not None:
                    found[entry.solver][label] = entry
        return found

    def summary(self) -> list[dict[str, Any]]:
        """Return one dict per solver over all problems, in the order of `ranking`.

        problems, solved   number of problems; number of those with a feasible schedule
        ratio              geometric mean of objective / best found over the `common` problems, if all are solved
        ratio_solved       the same over the problems that this solver solved; not comparable between solvers
        gap                mean gap to the best bounds over the `common` problems, if all are solved
        wins               number of problems on which no other solver has a better (median) objective
        infeasible, failed, refused   number of problems without a feasible schedule, by reason
        seconds            median over all problems, without refused ones

        Ratios and gaps are of the first level of the objective, wins of all levels.
        """
        common, solved = self.common(), self._solved()
        least = {
            label: min((entry.levels for entry in entries if entry.levels is not None), default=None)
            for label, entries in self.entries.items()
        }
        rows = []
        for solver in self.solvers:
            mine = [entry for entries in self.entries.values() for entry in entries if entry.solver == solver]
            shared = [solved[solver][label] for label in common if label in solved[solver]]
            shared = shared if len(shared) == len(common) else []
            gaps = [entry.gap for entry in shared if entry.gap is not None]
            rows.append({
                "solver": solver,
                "problems": len(mine),
                "solved": len(solved[solver]),
                "ratio": _mean_ratio(shared),
                "ratio_solved": _mean_ratio(solved[solver].values()),
                "gap": statistics.fmean(gaps) if gaps else None,
                "wins": sum(entry.levels is not None and entry.levels == least[entry.problem] for entry in mine),
                "infeasible": sum(entry.verdict == "infeasible" for entry in mine),
                "failed": sum(entry.verdict in FAILED for entry in mine),
                "refused": sum(entry.verdict == "refused" for entry in mine),
                "seconds": _median(entry.seconds for entry in mine),
            })  # fmt: skip
        return sorted(rows, key=_rank)

    @cached_property
    def ranking(self) -> tuple[str, ...]:
        """The solvers, best first: by ratio, number of solved problems, and wins, then in the given order.

        Solvers without a ratio, which did not solve all `common` problems, come last: by number of solved problems,
        then by `ratio_solved`.
        """
        return tuple(row["solver"] for row in self.summary())

    def profile(self) -> dict[str, list[tuple[float, float]]]:
        """Return the share of problems that each solver solves within a ratio tau to the best, as steps (tau, share).

        E. D. Dolan, J. J. Moré: Benchmarking optimization software with performance profiles. Mathematical Programming
        91 (2002), doi:10.1007/s101070100263; section 2, with the (median) objective as t. Problems that no solver
        solved do not count. Solvers are in the order of `ranking`.
        """
        known = [label for label, standing in self.standings.items() if standing.best is not None]
        steps: dict[str, list[tuple[float, float]]] = {}
        solved = self._solved()
        for solver in self.ranking:
            ratios = sorted(entry.ratio for entry in solved[solver].values() if entry.ratio is not None)
            steps[solver] = [
                (ratio, (place + 1) / len(known))
                for place, ratio in enumerate(ratios)
                if place + 1 == len(ratios) or ratios[place + 1] > ratio
            ]
        return steps

    def to_dict(self) -> dict[str, Any]:
        """Return all tables as plain data, ready for JSON."""
        return {
            "problems": [
                {
                    "problem": label,
                    "file": records[0].file,
                    "fingerprint": records[0].fingerprint,
                    "best_found": self.standings[label].best,
                    "best_levels": None if (best := self.standings[label].levels) is None else list(best),
                    "best_solver": self.standings[label].best_solver,
                    "best_bound": self.standings[label].bound,
                    "best_bound_source": self.standings[label].bound_source,
                }
                for label, records in self.by_problem.items()
            ],
            "runs": self.rows(),
            "common": list(self.common()),
            "summary": self.summary(),
            "profile": {solver: [list(step) for step in steps] for solver, steps in self.profile().items()},
            "expected": self.expected,
            "notes": list(self.notes),
        }


def certificate_of(record: Record) -> Certified | None:
    """Return how the bound of a run, or its proof that no schedule exists, is certified; None if it proved neither.

    checked   the checker recomputed all claims of the certificate
    trusted   some claims rely on an engine
    none      there is no certificate
    """
    result = record.result
    if result is None or (result["bound"] is None and result["termination"] != "infeasible"):
        return None
    certificate = result.get("certificate")
    return "none" if certificate is None else "checked" if certificate["complete"] else "trusted"


def latency_of(record: Record) -> int | None:
    """Return the ticks from the start of a run of a pipeline to its result; None for other problems."""
    pipeline = (record.result or {}).get("pipeline")
    return pipeline.get("latency") if isinstance(pipeline, Mapping) else None


def _ordered(places: Iterable[tuple[T, int]]) -> dict[T, int]:
    """Return the rank of each item by its smallest place; ties keep the order of appearance."""
    least: dict[T, int] = {}
    for thing, place in places:
        least[thing] = min(place, least.get(thing, place))
    return {thing: rank for rank, thing in enumerate(sorted(least, key=least.__getitem__))}


def _rank(row: Mapping[str, Any]) -> tuple[float, int, float]:
    """Return the sort key of a row of the summary; see `Comparison.ranking`."""
    ratio, own = row["ratio"], row["ratio_solved"]
    if ratio is not None:
        return ratio, -row["solved"], -row["wins"]
    return math.inf, -row["solved"], math.inf if own is None else own


def _entry(label: str, solver: str, records: Sequence[Record], standing: Standing) -> Entry:
    verdicts = [standing.judge(record) for record in records]
    # A claim that another run disproves does not invalidate a schedule that the verifier accepts.
    good = sorted(
        ((levels, record) for record in records if (levels := feasible_levels(record)) is not None),
        key=lambda pair: (pair[0], pair[1].seed),
    )
    verdict, message = verdicts[0]
    wrong = [(found, why) for found, why in verdicts if found != "feasible"]
    if good:
        verdict, message = "feasible", ""
        if wrong:
            found, why = wrong[0]
            verdict = found if found == "refuted" else "feasible"
            message = f"{len(wrong)} of {len(records)} runs {found}: {why}" if len(records) > 1 else why
    levels = good[(len(good) - 1) // 2][0] if good else None
    value = levels[0] if levels else None
    values = [each[0] for each, _ in good]
    certificates = [word for record in records if (word := certificate_of(record)) is not None]
    spread = (max(values) - min(values)) / value if len(values) > 1 and value else None
    if len(values) > 1 and value == 0:
        spread = 0.0 if max(values) == 0 else None
    return Entry(
        problem=label,
        solver=solver,
        verdict=verdict,
        message=message,
        runs=len(records),
        feasible=len(good),
        objective=value,
        levels=levels,
        spread=spread,
        gap=standing.gap(value),
        ratio=standing.ratio(value),
        latency=latency_of(good[(len(good) - 1) // 2][1]) if good else None,
        slr=_median(record.slr for _, record in good),
        seconds=_median(map(_seconds, records)),
        peak_memory=max((record.peak_memory for _, record in good if record.peak_memory is not None), default=None),
        process_memory=max((used for record in records if (used := _process_memory(record)) is not None), default=None),
        certificate=min(certificates, key=WEAKEST.index, default=None),
    )


def _process_memory(record: Record) -> int | None:
    """Return the bytes that the process of a run held at most; lines of older versions have none."""
    used: int | None = (record.result or {}).get("process_memory")
    return used


def _seconds(record: Record) -> float | None:
    """Return the run time of the solver, or of the process if it was killed or died."""
    if record.status == "refused" or record.status == "lost":
        return None
    solving: Mapping[str, Any] = (record.result or {}).get("wall_time", {})
    seconds = solving.get("solve")
    return record.wall if seconds is None else float(seconds)


def _median(values: Iterable[float | None]) -> float | None:
    """Return the lower median of the known values."""
    known = [value for value in values if value is not None]
    return statistics.median_low(known) if known else None


def _mean_ratio(entries: Iterable[Entry]) -> float | None:
    """Return the geometric mean of the ratios; entries without one (best value 0, not reached) are left out."""
    ratios = [entry.ratio for entry in entries if entry.ratio]
    return statistics.geometric_mean(ratios) if ratios else None
