"""placeopt explain: why a problem is infeasible, line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.interruption import on_interrupt
from placeopt.cli.options import (
    AsJson,
    ProblemFile,
    checked_options,
    print_json,
    seconds,
    stderr_console,
    stdout_console,
)

if TYPE_CHECKING:
    from rich.console import Console

_CODES = {"feasible": 0, "infeasible": 1, "undecided": 3}


def explain(
    problem: ProblemFile,
    time_limit: Annotated[
        str,
        typer.Option("--time-limit", "-t", metavar="TIME", help="Stop after this time; the set found so far stands."),
    ] = "60s",
    solver: Annotated[str, typer.Option("--solver", "-s", help="The exact solver to ask.")] = "cp-sat",
    seed: Annotated[int, typer.Option("--seed", help="Same seed with one worker, same answer.")] = 0,
    workers: Annotated[int | None, typer.Option("--workers", "-w", help="Threads; all cores by default.")] = None,
    as_json: AsJson = False,
) -> None:
    """Name the lines of an infeasible problem that cannot hold together, and what would mend each."""
    from placeopt.cli.terminal.console import print_problem
    from placeopt.cli.terminal.explanation import print_explanation
    from placeopt.studies.explanation import explain as explain_problem

    limit = seconds(time_limit, "--time-limit") or 0.0
    checked_options(time_limit=limit, seed=seed, workers=workers)
    with on_interrupt() as stop:
        with _stages(stderr_console()) as tell:
            found = explain_problem(
                problem, time_limit=limit, solver=solver, seed=seed, workers=workers,
                on_progress=tell, should_stop=stop.is_set,
            )  # fmt: skip
        if as_json:
            print_json(found.to_dict())
        else:
            print_problem(stdout_console(), found.problem)
            print_explanation(stdout_console(), found)
    raise typer.Exit(stop.code if stop.is_set() else _CODES[found.status])


@contextmanager
def _stages(console: Console) -> Iterator[Callable[[str], None]]:
    """A line with what is being done on a terminal; nothing elsewhere."""
    if not console.is_terminal:
        yield lambda _line: None
        return
    with console.status("reading", spinner="line") as status:
        yield status.update
