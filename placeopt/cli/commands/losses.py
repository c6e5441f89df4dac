"""placeopt losses: separate what the clusters of a solver cost from what their placement costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from placeopt.cli.arguments import checked_options, limit_seconds, solver_settings
from placeopt.cli.interruption import on_interrupt
from placeopt.cli.options import AsJson, ProblemFile, Seed, Sets, Workers, limit_option, solver_option
from placeopt.cli.output import print_json, stderr_console, stdout_console
from placeopt.cli.progress import stages, watched

if TYPE_CHECKING:
    from placeopt.protocol import Progress
    from placeopt.studies.losses import Losses


def losses(
    problem: ProblemFile,
    solver: Annotated[str, solver_option("A solver that places clusters, or any solver with --pass.")] = "celeritas",
    passes: Annotated[
        list[str] | None,
        Option(
            "--pass",
            metavar="NAME[:KEY=VALUE,...]",
            help="Apply this pass, which joins tasks, before solving; may be repeated. `placeopt passes` lists passes.",
        ),
    ] = None,
    time_limit: Annotated[
        str, limit_option("Time for the solver, and for each of the three optima, such as 30s or 5min, or `none`.")
    ] = "60s",
    prover: Annotated[str, Option(help="The solver that closes in on the three optima; it should be exact.")] = "auto",
    seed: Seed = 0,
    workers: Workers = None,
    sets: Sets = None,
    as_json: AsJson = False,
) -> None:
    """Separate what a solver's clusters cost from what their placement costs, at least and at most."""
    from placeopt.io.compiler import load
    from placeopt.passes import find_pass
    from placeopt.protocol.registry import find_solver
    from placeopt.studies.losses import SOLVES, check_clusters
    from placeopt.studies.losses import losses as separate

    settings = solver_settings(solver, sets)
    limit = limit_seconds(time_limit)
    find_solver(prover)
    for name in passes or ():
        find_pass(name)
    check_clusters(solver, passes)
    checked_options(time_limit=limit, seed=seed, workers=workers)
    compiled = load(problem)

    def work(report: Callable[[Progress], None]) -> Losses:
        return separate(
            compiled, solver, time_limit=limit, prover=prover, passes=passes, seed=seed, workers=workers,
            on_stage=stages(report), should_stop=stop.is_set, **settings,
        )  # fmt: skip

    with on_interrupt() as stop:
        found = watched(work, compiled, stderr_console(), None if limit is None else limit * SOLVES)
        if as_json:
            print_json(found.to_dict())
        else:
            from placeopt.cli.terminal.studies import print_findings

            print_findings(stdout_console(), found)
    if stop.is_set():
        raise typer.Exit(stop.code)
    if not found.chain:
        raise typer.Exit(3 if found.found.termination.value == "time_limit" else 1)
    raise typer.Exit(0)
