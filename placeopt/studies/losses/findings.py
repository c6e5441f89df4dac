"""Losses between the problems of a chain, as intervals that are proved."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from placeopt.errors import counted, visible
from placeopt.model.objective import Value
from placeopt.model.problem import Problem
from placeopt.orchestration.result import Result, number
from placeopt.protocol import Termination
from placeopt.studies.losses.chain import Known, Rule
from placeopt.views.facts import Grid, value_text
from placeopt.views.findings import Findings

MEANING = {
    "fusion": "the clusters, however placed",
    "placement": "where and when their tasks run",
    "devices": "where they run",
    "order": "when they run",
    "total": "all of this",
}
"""What each loss is the price of."""

TEXTS: dict[Rule, str] = {"free": "any schedule", "clusters": "these clusters", "placement": "this placement"}
"""The problems of the chain in words."""


@dataclass(frozen=True, slots=True)
class Loss:
    """What a restriction costs, as a share of the optimum without it: at least and at most, both proved."""

    name: str
    """fusion, placement, devices, order or total."""
    at_least: Fraction
    """A proven lower limit."""
    at_most: Fraction | None
    """A proven upper limit; None if there is none, because the lower bound of the optimum is 0."""

    @property
    def proved(self) -> bool:
        """Whether the loss is known exactly."""
        return self.at_least == self.at_most

    @property
    def texts(self) -> tuple[str, str]:
        """Both ends in percent: rounded down and up, so that they stay true, or to the nearest if they are equal."""
        if self.at_most is None:
            return _percent(self.at_least, up=False), "-"
        if self.proved:
            return (f"{float(self.at_least):.2%}",) * 2
        return _percent(self.at_least, up=False), _percent(self.at_most, up=True)

    def __str__(self) -> str:
        least, most = self.texts
        if self.proved:
            return f"{least if self.at_least else 'nothing'} (proved)"
        if self.at_most is None:
            return f"at least {least}"
        return f"{least} to {most}" if self.at_least else f"at most {most}"


def loss(name: str, tight: tuple[Value, Value], loose: tuple[Value, Value]) -> Loss:
    """Return the loss from an optimum within `loose` to an optimum within `tight`, which is no better.

    Each is the lower bound of an optimum and a value that is reached. With a in [a-, a+] and b in [b-, b+], a >= b,

        max(0, a- / b+ - 1) <= a / b - 1 <= a+ / b- - 1.

    If b is 0, the loss is 0 where a is 0 too, and otherwise not a number; then 0 is the least.
    """
    (low, high), (below, above) = tight, loose
    least = max(Fraction(low) / Fraction(above) - 1, Fraction(0)) if above else Fraction(0)
    if high == below or high == 0:
        return Loss(name, Fraction(0), Fraction(0))
    return Loss(name, least, Fraction(high) / Fraction(below) - 1 if below else None)


@dataclass(frozen=True, slots=True)
class Losses(Findings):
    """The losses of a schedule of clusters; `placeopt.studies.losses` defines them.

    Attributes
    ----------
    found
        The result of the solver.
    prover
        The solver that worked on the problems of the chain.
    chain
        The problems, the least constrained first; empty if no feasible schedule was found.
    notes
        What limits the losses.
    """

    found: Result
    prover: str
    chain: tuple[Known, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def problem(self) -> Problem:
        """The problem."""
        return self.found.problem

    @property
    def clusters(self) -> int | None:
        """Number of clusters that the solver placed; None if no feasible schedule was found."""
        return self.chain[1].problem.n_groups if self.chain else None

    @property
    def losses(self) -> tuple[Loss, ...]:
        """All losses, in the order of MEANING; none if no feasible schedule was found."""
        if not self.chain:
            return ()
        free, clusters, placement = ((each.bound, each.objective) for each in self.chain)
        assert self.found.objective is not None
        found = self.found.objective, self.found.objective
        ends = {
            "fusion": (clusters, free),
            "placement": (found, clusters),
            "devices": (placement, clusters),
            "order": (found, placement),
            "total": (found, free),
        }
        return tuple(loss(name, *ends[name]) for name in MEANING)

    @property
    def fusion(self) -> Loss | None:
        """The loss from keeping clusters on one device; None if no feasible schedule was found."""
        return self._named("fusion")

    @property
    def placement(self) -> Loss | None:
        """The loss from the placement of the clusters and the order of the tasks."""
        return self._named("placement")

    @property
    def devices(self) -> Loss | None:
        """The part of `placement` from the devices of the clusters."""
        return self._named("devices")

    @property
    def order(self) -> Loss | None:
        """The part of `placement` from the order and the times of the tasks."""
        return self._named("order")

    @property
    def total(self) -> Loss | None:
        """The loss of the schedule found: fusion and placement together."""
        return self._named("total")

    def _named(self, name: str) -> Loss | None:
        return next((each for each in self.losses if each.name == name), None)

    @property
    def conclusion(self) -> str:
        """A sentence with the losses, or on why there are none."""
        found = self.found
        if self.chain:
            return f"fusion costs {self.fusion}, placement {self.placement}; in total {self.total}"
        if found.termination is Termination.INFEASIBLE:
            return f"the problem is infeasible: {found.message}"
        why = found.violations[0].message if found.violations else found.message
        return f"{found.solver} found no feasible schedule{': ' * bool(why)}{why}"

    def rows(self) -> list[dict[str, Any]]:
        """Return a dict for each loss; shares as floats, which are rounded."""
        return [
            {
                "loss": each.name,
                "meaning": MEANING[each.name],
                "at_least": float(each.at_least),
                "at_most": None if each.at_most is None else float(each.at_most),
                "proved": each.proved,
            }
            for each in self.losses
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the findings as plain data, ready for JSON."""
        return {
            "problem": self.problem.name,
            "fingerprint": self.found.fingerprint,
            "objective_name": str(self.problem.objective),
            "resolution": self.found.resolution,
            "solver": self.found.solver,
            "prover": self.prover,
            "clusters": self.clusters,
            "found": self.found.to_dict(plan=False),
            "chain": [
                {
                    "keeps": each.rule,
                    "objective": number(each.objective),
                    "bound": number(each.bound),
                    "bound_source": each.bound_source,
                    "optimal": each.optimal,
                    "fingerprint": each.problem.fingerprint(),
                }
                for each in self.chain
            ],
            "losses": self.rows(),
            "notes": list(self.notes),
            "conclusion": self.conclusion,
        }

    def grids(self) -> list[Grid]:
        """Return two tables, if a feasible schedule was found: it and what is known of each optimum, and the losses."""
        if not self.chain:
            return []
        problem, metric = self.problem, self.problem.objective.leading_metric

        def text(value: Value) -> str:
            return value_text(value, problem, metric, ticks=False)

        assert self.found.objective is not None
        clusters = counted(self.chain[1].problem.n_groups, "cluster")
        headers = ("schedule", visible(metric or "objective", 24), "lower bound", "proved by")
        known = [(f"found by {self.found.solver}", text(self.found.objective), "", "")]
        for each in reversed(self.chain):
            source = "optimal" if each.optimal else each.bound_source
            known.append((f"best of {TEXTS[each.rule]}", text(each.objective), text(each.bound), source))
        losses = []
        for found in self.losses:
            part = found.name in ("devices", "order")
            losses.append(("  " * part + found.name, *found.texts, MEANING[found.name]))
        title = f"{self.found.solver}: {counted(problem.n_tasks, 'task')} in {clusters}"
        return [
            Grid(headers, tuple(known), words=(3,), title=title),
            Grid(("loss", "at least", "at most", "the price of"), tuple(losses), words=(3,)),
        ]

    def remarks(self) -> list[str]:
        """Return what limits the losses."""
        return list(self.notes)

    def __repr__(self) -> str:
        return f"<Losses of {self.found.solver} on {visible(self.problem.name) or 'problem'}: {self.conclusion}>"


def _percent(share: Fraction, *, up: bool) -> str:
    """Return a share in percent, rounded to hundredths down or up."""
    hundredths = share * 10_000
    whole = -(-hundredths.numerator // hundredths.denominator) if up else hundredths.numerator // hundredths.denominator
    return f"{whole / 100:,.2f}%"
