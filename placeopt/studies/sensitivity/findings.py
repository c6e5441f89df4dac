"""Compare the schedules and lower bounds of changed problems with those of the unchanged problem."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from os import PathLike
from typing import TYPE_CHECKING, Any

from placeopt.errors import counted, listing, visible
from placeopt.model.objective import Value
from placeopt.model.problem import Problem
from placeopt.orchestration.result import Result, number
from placeopt.protocol import Termination
from placeopt.studies.sensitivity.changes import Change
from placeopt.views.facts import Grid, percent, value_text
from placeopt.views.findings import Findings

if TYPE_CHECKING:
    import pandas as pd

    from placeopt.views.plots.canvas import Picture

LEGEND = (
    "gain: improvement of the schedule found, as a share of the objective as it is",
    "at least: the part of the gain that is proved to come from the change",
    "at most: proved limit of the gain of any schedule",
)
"""The columns of gains."""

AS_IT_IS = "as it is"


@dataclass(frozen=True, slots=True)
class Variant:
    """A changed problem, with its verified result and that of the unchanged problem, `base`.

    Gains are shares of the objective's first level of the unchanged problem; None if a value that they need is unknown.
    """

    change: Change
    result: Result
    base: Result

    @property
    def gain(self) -> float | None:
        """Gain of the schedule found over the schedule of the unchanged problem; at least 0."""
        return _share(self.base, value_of(self.base), value_of(self.result))

    @property
    def gain_at_least(self) -> float | None:
        """Gain of the schedule found over any schedule of the unchanged problem, proved by that problem's bound."""
        share = _share(self.base, self.base.bound, value_of(self.result))
        return None if share is None else max(share, 0.0)

    @property
    def gain_at_most(self) -> float | None:
        """Largest possible gain of a schedule of the changed problem, proved by its lower bound."""
        return _share(self.base, value_of(self.base), self.result.bound)

    @property
    def feasible(self) -> bool | None:
        """Whether the changed problem has a schedule: False if it is proved infeasible, None if unknown."""
        return feasibility(self.result)


@dataclass(frozen=True, slots=True)
class WhatIf(Findings):
    """The gains of changes of a problem, at least and at most.

    Attributes
    ----------
    base
        The result of the unchanged problem.
    variants
        The changes that were examined, in order.
    left_out
        Changes that were not examined, because the caller stopped.
    notes
        Changes without effect, and why.
    """

    base: Result
    variants: tuple[Variant, ...]
    left_out: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def problem(self) -> Problem:
        """The unchanged problem."""
        return self.base.problem

    @property
    def conclusion(self) -> str:
        """A sentence on the gains of a faster network and the best change, or on how to make the problem feasible."""
        if not self.variants:
            return "no change was examined"
        if not self.base.feasible:
            return self._feasible_with()
        parts = []
        network = next((each for each in self.variants if each.change.kind == "network"), None)
        if network is not None and network.gain_at_most is not None:
            limit = f"at most {gain_texts(network)[2]}" if network.gain_at_most else "nothing"
            parts.append(f"a faster network gains {limit}")
        known = [each for each in self.variants if each is not network and each.gain is not None]
        best = max(known, key=lambda each: each.gain or 0.0, default=None)
        if best is not None and best.gain:
            gain, least, _ = gain_texts(best)
            proved = f" (at least {least} over an optimal schedule as it is)"
            parts.append(f"{best.change.text} gains {gain}" + proved * bool(best.gain_at_least and least != gain))
        elif known:
            most = max(each.gain_at_most or 0.0 for each in known)
            limit = f", and none gains more than {percent(most, up=True)}"
            parts.append(f"no {'other ' * bool(parts)}change was found to gain anything{limit}")
        return "; ".join(parts)

    def _feasible_with(self) -> str:
        """Return the conclusion if the problem has no schedule: the changes with which it has one."""
        infeasible = self.base.termination is Termination.INFEASIBLE
        changes = [each.change.text for each in self.variants if each.feasible]
        start = "the problem is infeasible" if infeasible else "no schedule of the problem was found"
        if changes:
            return f"{start}; feasible with: {listing(changes)}"
        proved = all(each.feasible is False for each in self.variants)
        found = "no change makes it feasible" if proved else "no schedule of a changed problem was found either"
        return f"{start}; {found}"

    def rows(self) -> list[dict[str, Any]]:
        """Return a dict for each change: values in units of the objective, gains as shares of the base's objective."""
        return [
            {
                "change": each.change.text,
                "name": each.change.name,
                "kind": each.change.kind,
                "target": each.change.target or None,
                "feasible": each.feasible,
                "objective": number(value_of(each.result)),
                "bound": number(each.result.bound),
                "gain": each.gain,
                "gain_at_least": each.gain_at_least,
                "gain_at_most": each.gain_at_most,
                "termination": each.result.termination.value,
                "bound_source": each.result.bound_source,
                "message": each.result.message,
                "notes": list(each.change.notes),
                "fingerprint": each.result.fingerprint,
                "seconds": each.result.wall_time.solve,
            }
            for each in self.variants
        ]

    def to_frame(self) -> pd.DataFrame:
        """Return the `rows` as a pandas data frame; absent values are `pandas.NA`, and notes are one text.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        from placeopt.views.frames import runs_frame

        return runs_frame([row | {"notes": "; ".join(row["notes"])} for row in self.rows()])

    def to_dict(self) -> dict[str, Any]:
        """Return the findings as plain data, ready for JSON."""
        return {
            "problem": self.problem.name,
            "fingerprint": self.base.fingerprint,
            "objective_name": str(self.problem.objective),
            "resolution": self.base.resolution,
            "solver": self.base.solver,
            "seed": self.base.seed,
            "base": self.base.to_dict(plan=False),
            "changes": self.rows(),
            "left_out": [change.name for change in self.left_out],
            "notes": list(self.notes),
            "conclusion": self.conclusion,
        }

    def plot(self, path: str | PathLike[str] | None = None, *, title: str = "") -> Picture:
        """Draw a bar for each change, from its bound to its schedule; notebooks show the picture.

        With a path, the picture is also written there, as PNG, SVG or PDF by its suffix.

        Raises
        ------
        UsageError
            If there is no such format, or the file cannot be written.
        MissingExtraError
            If matplotlib is not installed.
        """
        from placeopt.views.plots import drawn

        def draw() -> Picture:
            from placeopt.views.plots.findings import Bar, draw_gains

            def known(value: Value | None) -> float | None:
                return None if value is None else float(value)

            def bar(result: Result, text: str, change: str = "") -> Bar:
                return Bar(text, known(result.bound), known(value_of(result)), change)

            metric = self.problem.objective.leading_metric
            return draw_gains(
                bar(self.base, AS_IT_IS),
                [bar(each.result, each.change.text, _bar_text(each)) for each in self.variants],
                objective=str(self.problem.objective) if metric is None else metric,
                resolution=self.base.resolution,
                title=title or f"{self.problem.name or 'problem'}: what if",
                note=self.conclusion,
            )

        return drawn(draw, path)

    def grids(self) -> list[Grid]:
        """Return the table of the changes."""
        metric = self.problem.objective.leading_metric
        headers = ("change", visible(metric or "objective", 24), "lower bound", "gain", "at least", "at most")

        def amounts(result: Result) -> tuple[str, str]:
            value, bound = value_of(result), result.bound
            missing = "infeasible" if feasibility(result) is False else "none found"
            shown = missing if value is None else value_text(value, self.problem, metric, ticks=False)
            return shown, "-" if bound is None else value_text(bound, self.problem, metric, ticks=False)

        gap = self.base.gap
        rows: list[tuple[str, ...]] = [(AS_IT_IS, *amounts(self.base), "", "", _percent(gap, up=True))]
        rows += [(each.change.text, *amounts(each.result), *gain_texts(each)) for each in self.variants]
        return [Grid(headers, tuple(rows), words=(0,), notes=LEGEND)]

    def remarks(self) -> list[str]:
        """Return the notes to the table: assumptions, rounding, changes left out, messages of solvers."""
        base = self.base
        found = [f"{AS_IT_IS}: {base.message}"] if base.message and not base.feasible else []
        for each in self.variants:
            found += [f"{each.change.text}: {text}" for text in each.change.notes]
            if each.result.message and not each.result.feasible:
                found.append(f"{each.change.text}: {each.result.message}")
        found += self.notes
        if self.left_out:
            found.append(f"not examined: {listing([change.text for change in self.left_out])}")
        return found

    def __repr__(self) -> str:
        name = visible(self.problem.name) or "problem"
        return f"<WhatIf of {counted(len(self.variants), 'change')} of {name}: {self.conclusion}>"


def gain_texts(variant: Variant) -> tuple[str, str, str]:
    """Return the gain, rounded down, its minimum, rounded down, and its maximum, rounded up.

    A gain that equals its maximum is rounded to the nearest.
    """
    gain, least, most = variant.gain, variant.gain_at_least, variant.gain_at_most
    if gain is not None and gain == most:
        exact = f"{gain:.2%}"
        return exact, exact if least == gain else _percent(least), exact
    return _percent(gain), _percent(least), _percent(most, up=True)


def _percent(share: float | None, *, up: bool = False) -> str:
    return "-" if share is None else percent(share, up=up)


def _bar_text(variant: Variant) -> str:
    """Return the text next to a bar: the gain found, and the largest possible one."""
    gain, _, most = gain_texts(variant)
    if variant.gain is None:
        return "infeasible" if variant.feasible is False else ""
    return gain if most in ("-", gain) else f"{gain}, at most {most}"


def _share(base: Result, before: Value | None, after: Value | None) -> float | None:
    """Return (before - after) / the objective of the unchanged problem; 0 if that is 0."""
    whole = value_of(base)
    if whole is None or before is None or after is None:
        return None
    return float((before - after) / Fraction(whole)) if whole else 0.0


def value_of(result: Result) -> Value | None:
    """Return the objective of a feasible schedule; None without one."""
    return result.objective if result.feasible else None


def feasibility(result: Result) -> bool | None:
    """Return whether the problem has a schedule; None if unknown."""
    if result.feasible:
        return True
    return False if result.termination is Termination.INFEASIBLE else None
