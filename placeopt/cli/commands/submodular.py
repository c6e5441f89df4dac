"""`placeopt check-submodular`: counterexamples to what makes greedy placement good."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from placeopt.cli.interruption import on_interrupt
from placeopt.cli.options import (
    AsJson,
    ProblemFile,
    Sets,
    assignments,
    checked_options,
    print_json,
    stderr_console,
    stdout_console,
)
from placeopt.errors import UsageError, listing, suggestion

if TYPE_CHECKING:
    from rich.console import Console

    from placeopt.model.problem import Problem
    from placeopt.submodular.placement import Form

FORMS: dict[str, Form] = {"submodular-g": "inside", "submodular-gi": "outside"}

SAMPLES = 1000
"""Sequences by default, of a problem that is not large."""
LONGEST = 256
"""Tasks that one sequence places at most by default, of a problem that is not large."""
STEPS = 25 * 10**7
"""Tasks and edges looked at while placing, about, above which fewer sequences are grown: some ten seconds."""
SEQUENCE_STEPS = 10**7
"""The same for one sequence, above which it is shorter."""
CALL = 2500
"""What a placement takes beside those that it looks at, in the same unit: the call from Python."""


def check_submodular(
    problem: ProblemFile,
    model: Annotated[
        str, typer.Option("--model", "-m", help="The function to check: submodular-g or submodular-gi.")
    ] = "submodular-g",
    sets: Sets = None,
    samples: Annotated[
        int | None,
        typer.Option(
            "--samples", metavar="N", help=f"Random sequences of placements; {SAMPLES:,}, fewer on large problems."
        ),
    ] = None,
    longest: Annotated[
        int | None,
        typer.Option(
            "--longest", metavar="N", help=f"Tasks that a sequence places at most; {LONGEST}, fewer on large problems."
        ),
    ] = None,
    exhaustive: Annotated[
        bool,
        typer.Option(
            "--exhaustive",
            help="All sequences of placements instead: 40,696 for five tasks on three devices, ten seconds.",
        ),
    ] = False,
    seed: Annotated[int, typer.Option("--seed", help="Same seed, same sequences.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Look for counterexamples to diminishing returns, monotonicity and freedom of order in a placement model.

    Exit code 1 if there is one. That there is none among samples proves nothing.
    """
    from placeopt.cli.terminal.console import print_problem
    from placeopt.cli.terminal.submodular import Findings, findings_data, print_findings
    from placeopt.io.compiler import load
    from placeopt.solver import checked_settings
    from placeopt.submodular import check_submodular as check
    from placeopt.submodular.placement import PlacementModel, PlacementSettings

    if model not in FORMS:
        raise UsageError(f'unknown model "{model}"{suggestion(model, FORMS) or f"; expected {listing(list(FORMS))}"}')
    settings = checked_settings("check-submodular", PlacementSettings, assignments(sets))
    checked_options(seed=seed)
    for option, number in (("--samples", samples), ("--longest", longest)):
        if number is not None and number < 1:
            raise UsageError(f"{option} is {number}; expected 1 or more")
    compiled = load(problem)
    function = PlacementModel(compiled, FORMS[model], settings)
    most = default_longest(compiled) if longest is None else longest
    wanted = default_samples(compiled, most) if samples is None else samples
    if not as_json:
        print_problem(stdout_console(), compiled)
    with on_interrupt() as stop:
        with _counting(stderr_console(), None if exhaustive else wanted, stop.is_set) as should_stop:
            checks = check(
                function, wanted, seed, independence=function.independence(), longest=most, exhaustive=exhaustive,
                should_stop=should_stop,
            )  # fmt: skip
        findings = Findings(compiled, model, settings, checks, most, seed, stop.is_set())
        if as_json:
            print_json(findings_data(findings))
        else:
            print_findings(stdout_console(), findings)
    raise typer.Exit(stop.code if stop.is_set() else 1 if checks.refuted else 0)


def default_longest(problem: Problem) -> int:
    """Tasks that a sequence may place, so that it takes a second at most; 10 at least."""
    return max(10, min(LONGEST, SEQUENCE_STEPS // _steps(problem)))


def default_samples(problem: Problem, longest: int) -> int:
    """Sequences that can be grown in reasonable time; 10 at least."""
    each = min(problem.n_tasks, longest) * _steps(problem)
    return max(10, min(SAMPLES, STEPS // max(each, 1)))


def _steps(problem: Problem) -> int:
    """What placing a task takes."""
    return CALL + problem.n_tasks + problem.n_edges


@contextmanager
def _counting(console: Console, wanted: int | None, stopped: Callable[[], bool]) -> Iterator[Callable[[], bool]]:
    """`stopped`, which is asked before every sequence, with a line of progress on a terminal."""
    if not console.is_terminal:
        yield stopped
        return
    asked = 0
    with console.status("checking", spinner="line") as status:

        def ask() -> bool:
            nonlocal asked
            asked += 1
            if wanted is None or asked <= wanted:
                status.update(f"sequence {asked:,}{'' if wanted is None else f' of {wanted:,}'}")
            else:
                status.update("making counterexamples smaller")
            return stopped()

        yield ask
