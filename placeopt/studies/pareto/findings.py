"""The Pareto front of two metrics: points with schedules and certified gaps, and what is proved to be impossible."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from os import PathLike
from typing import TYPE_CHECKING, Any

from placeopt.errors import counted, visible
from placeopt.io.plan import plan_document
from placeopt.model.problem import Metric, Problem
from placeopt.model.schedule import Schedule
from placeopt.protocol import Termination
from placeopt.studies.pareto.staircase import FAR, Pair, Staircase
from placeopt.views.facts import Grid, percent, value_text
from placeopt.views.findings import Findings

if TYPE_CHECKING:
    from placeopt.views.plots.canvas import Picture

LEGEND = "gap: no schedule that is as good in one metric is better in the other one by a larger share"
"""What the last column of the table is."""


@dataclass(frozen=True, slots=True)
class Point:
    """A point of the front: a verified schedule, its values, and what is proved of them."""

    schedule: Schedule
    values: Pair
    """Both metrics of the schedule, in their units."""
    bounds: Pair
    """For each metric, a proven lower bound for all schedules that are not worse in the other metric."""
    gaps: tuple[float, float]
    """(value - bound) / value of each metric."""

    @property
    def gap(self) -> float:
        """The larger gap: no schedule that is as good in one metric is better in the other by a larger share."""
        return max(self.gaps)

    @property
    def optimal(self) -> bool:
        """Whether the point is proved Pareto-optimal: no schedule weakly dominates it with other values."""
        return self.values == self.bounds


@dataclass(frozen=True, slots=True)
class Pareto(Findings):
    """The Pareto front of two metrics, complete or in part.

    Attributes
    ----------
    points
        By increasing first metric; none dominates another one.
    proved
        The part of the plane of both metrics that is proved to contain no schedule.
    termination
        "optimal": the front is complete. "completed": it has the points that were asked for.
    solves, seconds
        Number of solves, and the seconds of all of them.
    message
        Remarks of the solver, if it found no schedule.
    """

    problem: Problem
    metrics: tuple[Metric, Metric]
    solver: str
    seed: int
    points: tuple[Point, ...]
    proved: Staircase
    termination: Termination
    solves: int
    seconds: float
    message: str = ""

    @property
    def complete(self) -> bool:
        """Whether the front is complete: every schedule is weakly dominated by a point, and all points are optimal."""
        return self.termination is Termination.OPTIMAL

    @property
    def gap(self) -> float | None:
        """The share s for which every schedule has a point with (1 - s) p at most its value, in both metrics.

        It is 0 for a complete front, and None without a point. C. Papadimitriou, M. Yannakakis: On the approximability
        of trade-offs and optimal access of web sources, FOCS 2000, doi:10.1109/SFCS.2000.892068.
        """
        if not self.points:
            return None
        shares = (min(_excess(point.values, least) for point in self.points) for least in self.proved.lowest())
        return max(map(float, shares), default=0.0)

    @property
    def conclusion(self) -> str:
        """A sentence on the number of points, on what is proved, and on how complete the front is."""
        if self.termination is Termination.INFEASIBLE:
            return "the problem is infeasible: no schedule exists"
        if not self.points:
            limited = " within the time limit" * (self.termination is Termination.TIME_LIMIT)
            return f"no schedule was found{limited}{': ' * bool(self.message)}{self.message}"
        if self.complete:
            return f"the front is complete: {counted(len(self.points), 'point')}, proved to be Pareto-optimal"
        proved = sum(point.optimal for point in self.points)
        gap = percent(self.gap or 0.0, up=True)
        return (
            f"{counted(len(self.points), 'point')}, {proved} of them proved to be Pareto-optimal; for every schedule, "
            f"one of them is at most {gap} worse in both metrics"
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return a dict for each point: values and lower bounds in the units of the metrics, and gaps as shares."""
        found = []
        for point in self.points:
            row: dict[str, Any] = {}
            for metric, value, bound, gap in zip(self.metrics, point.values, point.bounds, point.gaps, strict=True):
                row |= {metric: value, f"{metric}_bound": bound, f"{metric}_gap": gap}
            found.append(row | {"gap": point.gap, "optimal": point.optimal})
        return found

    def to_dict(self, *, plan: bool = True) -> dict[str, Any]:
        """Return the front as plain data for JSON; `plan=False` omits the plans of the points.

        Each entry of "empty" states the largest values that no schedule has together; None stands for any value.
        """
        points = self.rows()
        if plan:
            for row, point in zip(points, self.points, strict=True):
                row["plan"] = plan_document(self.problem, point.schedule, solver=self.solver)
        return {
            "problem": self.problem.name,
            "fingerprint": self.problem.fingerprint(),
            "metrics": list(self.metrics),
            "resolution": float(self.problem.resolution),
            "solver": self.solver,
            "seed": self.seed,
            "termination": self.termination.value,
            "complete": self.complete,
            "gap": self.gap,
            "points": points,
            "empty": [
                {metric: None if value >= FAR else value for metric, value in zip(self.metrics, corner, strict=True)}
                for corner in self.proved.corners
            ],
            "solves": self.solves,
            "seconds": self.seconds,
            "message": self.message,
            "conclusion": self.conclusion,
        }

    def plot(self, path: str | PathLike[str] | None = None, *, title: str = "") -> Picture:
        """Draw the points, the front as a line of steps, and the region that is proved to contain no schedule.

        With a path, also write the picture there, as PNG, SVG or PDF by its suffix.

        Raises
        ------
        UsageError
            If the front has no points, the format is unknown, or the file cannot be written.
        MissingExtraError
            If matplotlib is not installed.
        """
        from placeopt.views.plots import drawn

        def draw() -> Picture:
            from placeopt.views.plots.findings import draw_front

            return draw_front(
                [(point.values, point.optimal) for point in self.points],
                self.proved.lowest(),
                metrics=self.metrics,
                resolution=float(self.problem.resolution),
                title=title or f"{self.problem.name or 'problem'}: {self.metrics[0]} and {self.metrics[1]}",
                note=self.conclusion,
            )

        return drawn(draw, path)

    def grids(self) -> list[Grid]:
        """Return the table of the points, if there are any; lower bounds are shown if some point is not proved."""
        if not self.points:
            return []
        bounded = not all(point.optimal for point in self.points)
        least = [min(point.values[axis] for point in self.points) for axis in (0, 1)]
        part = ("lower bound",) if bounded else ()
        headers = tuple(text for metric in self.metrics for text in (visible(metric), *part, "over least"))
        rows = []
        for point in self.points:
            cells: list[str] = []
            for axis, metric in enumerate(self.metrics):
                value = point.values[axis]
                cells.append(value_text(value, self.problem, metric, ticks=False))
                if bounded:
                    cells.append(value_text(point.bounds[axis], self.problem, metric, ticks=False))
                cells.append(f"+{(value - least[axis]) / least[axis]:.1%}" if least[axis] else "-")
            rows.append((*cells, "optimal" if point.optimal else percent(point.gap, up=True)))
        return [Grid((*headers, "gap"), tuple(rows), left=0, notes=(LEGEND,))]

    def __repr__(self) -> str:
        return f"<Pareto of {visible(self.problem.name) or 'problem'}: {self.conclusion}>"


def _excess(values: Pair, least: Pair) -> Fraction:
    """Return the larger share by which a pair of values is above a pair of lower bounds; at least 0."""
    shares = (Fraction(value - low, value) for value, low in zip(values, least, strict=True) if value > low)
    return max(shares, default=Fraction(0))
