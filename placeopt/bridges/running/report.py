"""The report of a run: differences of outputs, predicted and measured times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from placeopt.bridges.profiling import TransferModel
from placeopt.bridges.running.prediction import Fit, Prediction
from placeopt.bridges.running.tensors import Difference
from placeopt.model.arrays import Float, Int, freeze
from placeopt.views.traces import Span


@dataclass(frozen=True, slots=True, eq=False)
class RunReport:
    """The result of a run: r runs of a plan with s segments. Times are in seconds, arrays are read-only.

    Attributes
    ----------
    problem
        Name of the problem.
    device_names
        The devices of the problem.
    segment_device
        (s,) device of each segment; segments are in topological order.
    segment_tasks
        The names of the tasks of each segment.
    predicted
        Prediction of the problem.
    fitted
        Prediction with measured durations and links; None without `fit`.
    fit
        The measurements behind `fitted`; None without `fit`.
    start, end
        (r, s) measured start and end of each segment, from the start of the run.
    one_device
        (r,) measured time of the unsplit model in one worker, on the first device that may run it.
    elsewhere
        (r,) its measured time on each other kind of device of the problem, by a device of PyTorch.
    one_session, session_threads
        (r,) its measured time with one thread for each core that the plan uses, and their number; None if that is the
        number of threads of each worker.
    results
        (r + 1,) when results of a full pipeline are complete; None for other problems.
    differences
        Differences of the outputs from those of the unsplit model.
    tolerance
        The largest relative difference that counts as equal.
    cores
        Cores of each worker by device name; empty where processes cannot be pinned.
    places
        Where each worker runs its segments, by device name: a device of PyTorch.
    stand_ins
        Devices of the plan that are not CPUs, which a CPU core replaces: predictions of the problem are not
        comparable with their measured times.
    notes
        What limits the comparison: one sentence each.
    """

    problem: str
    device_names: tuple[str, ...]
    segment_device: Int
    segment_tasks: tuple[tuple[str, ...], ...]
    predicted: Prediction
    fitted: Prediction | None
    fit: Fit | None
    start: Float
    end: Float
    one_device: Float
    elsewhere: dict[str, Float]
    one_session: Float | None
    session_threads: int
    results: Float | None
    differences: tuple[Difference, ...]
    tolerance: float
    cores: dict[str, tuple[int, ...]]
    places: dict[str, str]
    stand_ins: tuple[str, ...]
    notes: tuple[str, ...]

    def __post_init__(self) -> None:
        freeze(self.start, self.end, self.one_device, self.one_session, self.results, *self.elsewhere.values())

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.start)

    @property
    def measured(self) -> Float:
        """(s,) median duration of each segment."""
        return np.asarray(np.median(self.end - self.start, axis=0), dtype=np.float64)

    @property
    def makespan(self) -> float:
        """Median over the runs of the end of the last segment."""
        return float(np.median(self.end.max(axis=1)))

    @property
    def period(self) -> float | None:
        """Mean time between two results of a full pipeline; None for other problems."""
        return None if self.results is None else float(self.results[-1] - self.results[0]) / (len(self.results) - 1)

    @property
    def alternatives(self) -> dict[str, float]:
        """Time for a result of each way to run the model: the plan, and the unsplit model."""
        found = {
            "the plan": self.makespan if self.period is None else self.period,
            "the unsplit model": float(np.median(self.one_device)),
        }
        found |= {f"the unsplit model on {place}": float(np.median(each)) for place, each in self.elsewhere.items()}
        if self.one_session is not None:
            found[f"the unsplit model with {self.session_threads} threads"] = float(np.median(self.one_session))
        return found

    @property
    def typical_run(self) -> int:
        """The run whose makespan is the median, or the next shorter one."""
        order = np.argsort(self.end.max(axis=1), kind="stable")
        return int(order[(self.runs - 1) // 2])

    @property
    def largest_difference(self) -> float:
        """The largest relative difference of an output."""
        return max((each.relative for each in self.differences), default=0.0)

    @property
    def equal(self) -> bool:
        """Whether all outputs equal those of the unsplit model, up to `tolerance`."""
        return self.largest_difference <= self.tolerance

    def spans(self) -> dict[str, dict[str, list[Span]]]:
        """The segments of the predictions and of the run with the median time, for `placeopt.views.traces`."""
        typical = self.typical_run
        tracks = {"predicted": (self.predicted.start, self.predicted.start + self.predicted.busy)}
        if self.fitted is not None:
            tracks["fitted"] = (self.fitted.start, self.fitted.start + self.fitted.busy)
        tracks["measured"] = (self.start[typical], self.end[typical])
        found: dict[str, dict[str, list[Span]]] = {}
        for title, (start, end) in tracks.items():
            threads = found.setdefault(title, {})
            for k, tasks in enumerate(self.segment_tasks):
                own = threads.setdefault(self.device_names[int(self.segment_device[k])], [])
                name = tasks[0] if len(tasks) == 1 else f"{tasks[0]} .. {tasks[-1]}"
                args = {"segment": k, "tasks": len(tasks), "measured_us": float(self.measured[k]) * 1e6}
                own.append(Span(name, float(start[k]), float(end[k]), args))
        return found

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data, for JSON."""
        return {
            "problem": self.problem,
            "runs": self.runs,
            "equal": self.equal,
            "tolerance": self.tolerance,
            "outputs": [
                {"name": each.output, "absolute": _finite(each.absolute), "relative": _finite(each.relative)}
                for each in self.differences
            ],
            "makespan": {
                "measured": self.makespan,
                "predicted": self.predicted.makespan,
                "fitted": None if self.fitted is None else self.fitted.makespan,
                "plan": self.predicted.tasks,
                "fitted_plan": None if self.fitted is None else self.fitted.tasks,
            },
            "one_device": {
                "measured": float(np.median(self.one_device)),
                "predicted": self.predicted.one_device,
                "fitted": None if self.fitted is None else self.fitted.one_device,
            },
            "elsewhere": {place: float(np.median(each)) for place, each in self.elsewhere.items()},
            "one_session": None
            if self.one_session is None
            else {"threads": self.session_threads, "measured": float(np.median(self.one_session))},
            "period": None
            if self.period is None
            else {
                "measured": self.period,
                "predicted": self.predicted.period,
                "fitted": None if self.fitted is None else self.fitted.period,
            },
            "fit": None if self.fit is None else _fit_data(self.fit),
            "segments": [
                {
                    "device": self.device_names[int(self.segment_device[k])],
                    "tasks": list(tasks),
                    "predicted": float(self.predicted.busy[k]),
                    "fitted": None if self.fitted is None else float(self.fitted.busy[k]),
                    "measured": float(self.measured[k]),
                    "start": self.start[:, k].tolist(),
                    "end": self.end[:, k].tolist(),
                }
                for k, tasks in enumerate(self.segment_tasks)
            ],
            "cores": {name: list(cores) for name, cores in self.cores.items()},
            "places": self.places,
            "stand_ins": list(self.stand_ins),
            "notes": list(self.notes),
        }


def _finite(amount: float) -> float | None:
    """JSON has no infinity."""
    return amount if np.isfinite(amount) else None


def _fit_data(fit: Fit) -> dict[str, Any]:
    costs = fit.costs
    return {
        "measured_tasks": fit.measured_tasks,
        "tasks": fit.problem.n_tasks,
        "overhead": costs.mean_segment,
        "pause": costs.pause,
        "slowdown": list(fit.slowdown),
        "transfer": None if fit.problem.n_devices == 1 else _line(costs.transfer),
        "sending": None if fit.problem.n_devices == 1 else _line(costs.sending),
    }


def _line(model: TransferModel) -> dict[str, Any]:
    return {"latency": model.latency, "seconds_per_byte": model.seconds_per_byte, "residual": model.residual}
