"""`placeopt bounds`: how good a schedule could be at best."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

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
from placeopt.cli.watching import watched

if TYPE_CHECKING:
    from placeopt.bounding.quick import Bound

DEFAULT_LIMIT = "30s"


def bounds(
    problem: ProblemFile,
    time_limit: Annotated[
        str,
        typer.Option(
            "--time-limit",
            "-t",
            metavar="TIME",
            help="For the relaxations, such as 30s or 5min; `none` for as long as they help.",
        ),
    ] = DEFAULT_LIMIT,
    workers: Annotated[int | None, typer.Option("--workers", "-w", help="Threads; all cores unless given.")] = None,
    as_json: AsJson = False,
) -> None:
    """Prove lower bounds of the objective: no schedule is better than the best of them."""
    from rich.text import Text

    from placeopt.bounding.portfolio import bounds as prove
    from placeopt.bounding.quick import prove_infeasible
    from placeopt.cli.terminal.bounding import bounds_data, bounds_table
    from placeopt.cli.terminal.console import print_problem
    from placeopt.io.compiler import load
    from placeopt.model.arrays import LONGEST
    from placeopt.solver import Clock, Progress
    from placeopt.solving.result import number

    limit = None if time_limit == "none" else seconds(time_limit, "--time-limit")
    options = checked_options(time_limit=limit, workers=workers)
    compiled = load(problem)
    data: dict[str, Any] = {
        "problem": compiled.name,
        "fingerprint": compiled.fingerprint(),
        "objective": str(compiled.objective),
        "resolution": float(compiled.resolution),
    }
    if not as_json:
        print_problem(stdout_console(), compiled)
    proof = prove_infeasible(compiled)
    if proof is not None:
        if as_json:
            print_json(data | {"infeasible": proof.reason, "bound": None, "bounds": []})
        else:
            console = stdout_console()
            console.print(Text.assemble(("infeasible", "red"), f": {proof.reason}"), soft_wrap=not console.is_terminal)
        raise typer.Exit(1)
    clock, proved = Clock(limit), [Fraction(0)]

    def tell_of(bound: Bound, tell: Callable[[Progress], None]) -> None:
        proved.append(max(proved[-1], Fraction(bound.value)))
        tell(Progress(clock.elapsed, bound=proved[-1]))

    with on_interrupt() as stop:
        found = watched(
            lambda tell: prove(
                compiled, time_limit=options.time_limit or LONGEST, workers=options.workers, should_stop=stop.is_set,
                on_bound=lambda bound: tell_of(bound, tell),
            ),
            compiled, stderr_console(), limit,
        )  # fmt: skip
        if as_json:
            print_json(data | {"infeasible": None, "bound": number(found[0].value), "bounds": bounds_data(found)})
        else:
            stdout_console().print(bounds_table(compiled, bounds_data(found)))
        if not any(bound.name.startswith("relaxation") for bound in found) and not stop.is_set():
            note = (
                "note: no relaxation-lp or relaxation-mip: the problem is too large for them, or --time-limit too short"
            )
            stderr_console().print(note, soft_wrap=True)
    raise typer.Exit(stop.code if stop.is_set() else 0)
