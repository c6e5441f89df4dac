"""What a solve of a serving problem found."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from placeopt.errors import UsageError
from placeopt.serving.feasibility import why_none
from placeopt.serving.plan import Replica, Replicas, ServingPlan, total_rate
from placeopt.serving.plan_files import replicas_document, serving_plan_document
from placeopt.serving.problem import SECOND, TOKEN, Serving, tokens_text
from placeopt.serving.sites import Sites
from placeopt.serving.verification import ServingReport

if TYPE_CHECKING:
    from placeopt.views.plots.canvas import Picture


class ServedResult:
    """What results with one plan and with replicas share."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def problem(self) -> Serving: ...
        @property
        def replicas(self) -> Replicas: ...
        @property
        def bound(self) -> int: ...

    def __repr__(self) -> str:
        found = tokens_text(self.rate) if self.replicas else self.message
        gap = "" if self.gap is None else f", gap {self.gap:.2%}"
        name = self.problem.name or "a serving problem"
        return f"<{type(self).__name__} of {name}: {found}, at most {tokens_text(self.bound)}{gap}>"

    @property
    def rate(self) -> int:
        """The rate of all replicas; 0 without a plan."""
        return total_rate(self.replicas)

    @property
    def gap(self) -> float | None:
        """(bound - rate) / rate; None without a plan, unless the bound is 0."""
        if not self.rate:
            return 0.0 if not self.bound else None
        return (self.bound - self.rate) / self.rate

    @property
    def message(self) -> str:
        """Why there is no plan; empty with one."""
        return "" if self.replicas else why_none(self.problem, self.bound)

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

        if not self.replicas:
            raise UsageError("plot: the result has no plan")

        def draw() -> Picture:
            from placeopt.serving.pictures import draw_layers

            return draw_layers(self.problem, self.replicas, bound=self.bound)

        return drawn(draw, path)


@dataclass(repr=False)
class ServingResult(ServedResult):
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
    def first_token(self) -> int | None:
        """Picoseconds to the first token; None without prompts or a plan."""
        return None if self.report is None else self.report.first_token

    @property
    def replicas(self) -> Replicas:
        """The plan of all nodes as the only replica; none without a plan."""
        return () if self.plan is None else (Replica(np.arange(self.problem.n_nodes), self.plan),)

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON; rates in tokens per second."""
        return {
            "problem": self.problem.name,
            "tokens_per_second": self.rate / TOKEN if self.plan is not None else None,
            "bound": self.bound / TOKEN,
            "bound_source": self.bound_source,
            "gap": self.gap,
            "message": self.message,
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
        if self.first_token is not None:
            found["seconds_to_first_token"] = self.first_token / SECOND
        return found


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ReplicatedResult(ServedResult):
    """Verified replicas, none if no plan was found, and an upper bound of their rate, in millionths of a token per
    second; `source` is what proves it: "prices" or "divisions" of the nodes."""

    problem: Serving
    replicas: Replicas
    bound: int
    source: str
    seconds: float
    first_token: int | None = None
    """Picoseconds to the first token in the slowest replica; None without prompts."""

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON; rates in tokens per second."""
        return {
            "problem": self.problem.name,
            "tokens_per_second": self.rate / TOKEN if self.replicas else None,
            "bound": self.bound / TOKEN,
            "bound_source": self.source,
            "gap": self.gap,
            "message": self.message,
            "requests": sum(each.plan.requests for each in self.replicas),
            "seconds_per_token": max((each.plan.token_time for each in self.replicas), default=0) / SECOND,
            **({} if self.first_token is None else {"seconds_to_first_token": self.first_token / SECOND}),
            "seconds": self.seconds,
            "plan": replicas_document(self.problem, self.replicas) if self.replicas else None,
        }
