"""Recompute the objective from the definitions of the metrics, without code that solvers use."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from placeopt.model.problem import PARTS, UNLIMITED, Metric
from placeopt.verifier.pipeline import PipelineView, needed_memory
from placeopt.verifier.view import View, moved_edges, per_device, scaled_up, total


def makespan_of(view: View) -> int:
    """Ticks until the last task ends; 0 without tasks."""
    return int(view.end.max()) if len(view.end) else 0


def _total_cost(view: View) -> int:
    """Ticks of all tasks and all transfers; a transfer that serves several consumers counts once."""
    return total(view.duration) + total(view.ticks[moved_edges(view)])


def _max_load(view: View) -> int:
    """Computing ticks of the busiest device."""
    return max(per_device(view, view.duration), default=0)


def _communication(view: View) -> int:
    """Bytes that move between devices."""
    return total(view.problem.payload[moved_edges(view)])


def _energy(view: View) -> int:
    """Nanojoules of computing and transfers, each task and each transfer rounded up."""
    problem, device, moved = view.problem, view.device, moved_edges(view)
    link = device[problem.edge_source[moved]], device[problem.edge_target[moved]]
    computing = scaled_up(view.duration, problem.power_num[device], problem.power_den[device])
    moving = scaled_up(problem.payload[moved], problem.byte_energy_num[link], problem.byte_energy_den[link])
    return total(computing) + total(moving)


def _memory_balance(view: View) -> int:
    """Largest used fraction of a stated capacity, in ppm, rounded up; a capacity of 0 counts as one byte."""
    pairs = zip(needed_memory(view), view.problem.capacity.tolist(), strict=True)
    shares = [-(-used * PARTS // max(capacity, 1)) for (used, _), capacity in pairs if capacity != UNLIMITED]
    return max(shares, default=0)


def _relocation(view: View) -> int:
    """Ticks to move every task from its current device to its new one and start it there, one after another."""
    return sum(ticks[d] for ticks, d in zip(view.problem.relocation.tolist(), view.device.tolist(), strict=True))


def _tardiness(view: View) -> int:
    """Weighted ticks by which tasks with a due date end after it."""
    rows = zip(view.end.tolist(), view.problem.due.tolist(), view.problem.due_weight.tolist(), strict=True)
    return sum(weight * max(end - due, 0) for end, due, weight in rows if due != UNLIMITED)


def _price(view: View) -> int:
    """Billionths of all tasks on their devices."""
    return sum(price[d] for price, d in zip(view.problem.price.tolist(), view.device.tolist(), strict=True))


def _devices(view: View) -> int:
    """Devices that run a task, even one that takes no time."""
    return len(set(view.device.tolist()))


def _period(view: View) -> int:
    """Ticks between two results, if runs follow each other without end."""
    return PipelineView(view).period


METRICS: dict[Metric, Callable[[View], int]] = {
    "makespan": makespan_of,
    "total_cost": _total_cost,
    "max_load": _max_load,
    "communication": _communication,
    "energy": _energy,
    "memory_balance": _memory_balance,
    "relocation": _relocation,
    "tardiness": _tardiness,
    "price": _price,
    "devices": _devices,
    "period": _period,
}


def objective_of(view: View) -> tuple[int | Fraction, ...]:
    """The weighted sum of metrics on each level; an integral value is an int."""
    levels: list[int | Fraction] = []
    for terms in view.problem.objective.levels:
        value = sum((Fraction(term.weight) * METRICS[term.metric](view) for term in terms), Fraction(0))
        levels.append(int(value) if value.denominator == 1 else value)
    return tuple(levels)
