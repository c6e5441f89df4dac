"""Show progress on a terminal while a command works."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.console import Console

    from placeopt.learning.training.reinforce import Progress as Training
    from placeopt.model.problem import Problem
    from placeopt.protocol import Progress

T = TypeVar("T")

_TICK = 0.1


def watched(
    work: Callable[[Callable[[Progress], None]], T], problem: Problem, console: Console, limit: float | None
) -> T:
    """Return the result of `work`, which runs in a thread while this one shows progress and handles signals."""
    latest: list[Progress] = []
    with ThreadPoolExecutor(1, thread_name_prefix="work") as executor:
        future: Future[T] = executor.submit(work, latest.append)
        with _display(console, limit, latest, problem) as show:
            while True:
                try:
                    return future.result(timeout=_TICK)
                except FutureTimeoutError:
                    show()


def stages(report: Callable[[Progress], None]) -> Callable[[int, int, str], None]:
    """Return a function that reports which of the solves of a study runs now."""
    from placeopt.protocol import Progress

    begun = time.monotonic()

    def stage(done: int, total: int, text: str) -> None:
        report(Progress(time.monotonic() - begun, message=f"{done + 1} of {total}: {text}"))

    return stage


@contextmanager
def status_line(console: Console, text: str) -> Iterator[Callable[[str], None] | None]:
    """Show a line of text on a terminal; yield a function that changes it, None elsewhere."""
    if not console.is_terminal:
        yield None
        return
    with console.status(text, spinner="line") as status:
        yield status.update


@contextmanager
def _display(
    console: Console, limit: float | None, latest: list[Progress], problem: Problem
) -> Iterator[Callable[[], None]]:
    """Show time, incumbent, bound and gap on a terminal; nothing elsewhere."""
    if not console.is_terminal:
        yield lambda: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = [TextColumn("{task.description}"), BarColumn(bar_width=16), TimeElapsedColumn()]
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("solving", total=limit)
        begun = time.monotonic()

        def show() -> None:
            bar.update(task, completed=time.monotonic() - begun, description=progress_text(latest, problem))

        yield show


def progress_text(latest: list[Progress], problem: Problem) -> str:
    """Describe the best value, bound and gap so far."""
    from placeopt.orchestration.result import relative_gap
    from placeopt.views.facts import unit_metric, value_text

    if not latest:
        return "solving"
    state = latest[-1]
    metric = unit_metric(problem.objective)
    parts = []
    if state.objective is not None:
        parts.append(f"best {value_text(state.objective, problem, metric, ticks=False)}")
    if state.bound is not None:
        parts.append(f"bound {value_text(state.bound, problem, metric, ticks=False)}")
    gap = relative_gap(state.objective, state.bound)
    if gap is not None:
        parts.append(f"gap {gap:.1%}")
    return ", ".join(parts) or state.message or "solving"


@contextmanager
def training_bar(console: Console, begun: int, total: int, *, hidden: bool) -> Iterator[Callable[[Training], None]]:
    """Show episodes, evaluation ratios and the remaining time of a training on a terminal; nothing elsewhere.

    Yields a function that takes the state of the training after each update.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(16), TimeElapsedColumn(), TextColumn("left"))
    silent = hidden or not console.is_terminal
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=silent) as bar:
        task = bar.add_task("first evaluation", total=total - begun)

        def show(state: Training) -> None:
            bar.update(task, completed=state.episode - begun, description=training_text(state, total))

        yield show


def training_text(state: Training, total: int) -> str:
    """Describe the state of a training."""
    best = state.best_point
    ratios = f", ratio {state.curve[-1].ratio:.4f}, best {best.ratio:.4f} at {best.episode:,}" if best else ""
    return f"episode {state.episode:,} of {total:,}{ratios}"
