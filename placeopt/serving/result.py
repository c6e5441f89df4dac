"""What a solve of a serving problem found."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any

from placeopt.errors import UsageError
from placeopt.serving.plan import ServingPlan
from placeopt.serving.plan_files import serving_plan_document
from placeopt.serving.problem import SECOND, TOKEN, Serving
from placeopt.serving.sites import Sites
from placeopt.serving.verification import ServingReport

if TYPE_CHECKING:
    from placeopt.views.plots.canvas import Picture


@dataclass
class ServingResult:
    """A verified plan, None if there is none, and an upper bound of the rate, in millionths of a token per second."""

    problem: Serving
    plan: ServingPlan | None
    report: ServingReport | None
    bound: int
    bound_source: str
    seconds: float
    sites: Sites
    history: list[tuple[float, int]] = field(default_factory=list)

    @property
    def rate(self) -> int:
        """The rate of the plan; 0 without one."""
        return 0 if self.report is None else self.report.rate

    @property
    def gap(self) -> float | None:
        """(bound - rate) / rate; None without a plan, unless the bound is 0."""
        if not self.rate:
            return 0.0 if not self.bound else None
        return (self.bound - self.rate) / self.rate

    def plot(self, path: str | PathLike[str] | None = None) -> Picture:
        """Draw the layers of the nodes; with a path, also write the picture, as PNG, SVG or PDF by its suffix.

        Raises
        ------
        UsageError
            If the result has no plan, the format is unknown, or the file cannot be written.
        MissingExtraError
            If matplotlib is not installed.
        """
        from placeopt.views.plots import drawn

        plan = self.plan
        if plan is None:
            raise UsageError("plot: the result has no plan")

        def draw() -> Picture:
            from placeopt.serving.pictures import draw_layers

            return draw_layers(self.problem, plan, bound=self.bound)

        return drawn(draw, path)

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON; rates in tokens per second."""
        return {
            "problem": self.problem.name,
            "tokens_per_second": self.rate / TOKEN if self.plan is not None else None,
            "bound": self.bound / TOKEN,
            "bound_source": self.bound_source,
            "gap": self.gap,
            "sites": self.sites.number,
            **self._requests(),
            "seconds": self.seconds,
            "plan": None if self.plan is None else serving_plan_document(self.problem, self.plan),
        }

    def _requests(self) -> dict[str, Any]:
        """The requests in flight, if nodes share them."""
        if self.plan is None or not self.plan.groups:
            return {}
        found: dict[str, Any] = {"requests": self.plan.requests, "seconds_per_token": self.plan.token_time / SECOND}
        if self.report is not None and self.report.first_token is not None:
            found["seconds_to_first_token"] = self.report.first_token / SECOND
        return found
