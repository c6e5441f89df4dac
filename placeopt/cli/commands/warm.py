"""placeopt warm: compile kernels in advance."""

from __future__ import annotations

from typing import Annotated

import typer

from placeopt.cli.interruption import on_interrupt
from placeopt.cli.options import AsJson
from placeopt.cli.output import print_json, stderr_console, stdout_console


def warm(
    solvers: Annotated[
        list[str] | None,
        typer.Argument(metavar="SOLVER", help="Compile only the kernels of these solvers; by default all."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compile kernels into Numba's cache, for container images, clusters and CI; cached kernels are kept."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from placeopt.solving.warming import warm as warm_kernels

    console = stderr_console()
    columns = [TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()]
    with on_interrupt() as stop:
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task("searching for kernels", total=None)

            def show(done: int, count: int) -> None:
                bar.update(task, description=f"{done} of {count} kernels", completed=done, total=count)

            found = warm_kernels(solvers or None, on_progress=show, should_stop=stop.is_set)
        if as_json:
            print_json({"kernels": found.kernels, "failed": found.failed, "seconds": found.seconds})
        else:
            stdout_console().print(f"{found.kernels} kernels are compiled ({found.seconds:.1f} s)")
            for name, why in found.failed.items():
                console.print(f"{name} is not compiled: {why}", markup=False, soft_wrap=True)
    raise typer.Exit(stop.code if stop.is_set() else 1 if found.failed else 0)
