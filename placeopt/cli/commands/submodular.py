"""placeopt check-submodular: search counterexamples to the properties that greedy placement requires."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from placeopt.cli.arguments import assignments, checked_options
from placeopt.cli.interruption import on_interrupt
from placeopt.cli.options import AsJson, ProblemFile, Sets
from placeopt.cli.output import print_json, stderr_console, stdout_console
from placeopt.cli.progress import status_line
from placeopt.errors import UsageError, listing, suggestion

if TYPE_CHECKING:
    from rich.console import Console

    from placeopt.model.problem import Problem
    from placeopt.submodular.placement import Form

FORMS: dict[str, Form] = {"submodular-g": "inside", "submodular-gi": "outside"}

SAMPLES = 1000
"""Default number of sequences, unless the problem is large."""
LONGEST = 256
"""Default maximum length of a sequence in tasks, unless the problem is large."""
STEPS = 25 * 10**7
"""Budget of all sequences, in tasks and edges visited (about ten seconds), which limits their number."""
SEQUENCE_STEPS = 10**7
"""Budget of one sequence in the same unit, which limits its length."""
CALL = 2500
"""Overhead of a placement in the same unit: the call from Python."""


def check_submodular(
    problem: ProblemFile,
    model: Annotated[
        str, Option("--model", "-m", help="The function to check: submodular-g or submodular-gi.")
    ] = "submodular-g",
    sets: Sets = None,
    samples: Annotated[
        int | None,
        Option(
            metavar="N",
            help=f"Number of random sequences of placements; by default {SAMPLES:,}, fewer for large problems.",
        ),
    ] = None,
    longest: Annotated[
        int | None,
        Option(
            metavar="N", help=f"Maximum number of tasks in a sequence; by default {LONGEST}, fewer for large problems."
        ),
    ] = None,
    exhaustive: Annotated[
        bool,
        Option(
            "--exhaustive", help="Check all sequences instead: 40,696 for five tasks on three devices, in ten seconds."
        ),
    ] = False,
    seed: Annotated[int, Option(help="Random seed of the sequences.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Search for counterexamples to diminishing returns, monotonicity and independence of order in a placement model.

    The exit code is 1 if one is found. Samples without a counterexample are not a proof.
    """
    from placeopt.cli.terminal.console import print_problem
    from placeopt.cli.terminal.submodular import Findings, findings_data, print_findings
    from placeopt.io.compiler import load
    from placeopt.protocol import checked_settings
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
    """Return the maximum length of a sequence, so that it takes about a second; at least 10."""
    return max(10, min(LONGEST, SEQUENCE_STEPS // _steps(problem)))


def default_samples(problem: Problem, longest: int) -> int:
    """Return the number of sequences that fit the budget; at least 10."""
    each = min(problem.n_tasks, longest) * _steps(problem)
    return max(10, min(SAMPLES, STEPS // max(each, 1)))


def _steps(problem: Problem) -> int:
    """Return the cost of placing a task."""
    return CALL + problem.n_tasks + problem.n_edges


@contextmanager
def _counting(console: Console, wanted: int | None, stopped: Callable[[], bool]) -> Iterator[Callable[[], bool]]:
    """Yield `stopped`, which is called before every sequence; on a terminal its calls also show the progress."""
    calls = 0
    with status_line(console, "checking") as show:

        def count() -> bool:
            nonlocal calls
            calls += 1
            if show is not None and (wanted is None or calls <= wanted):
                show(f"sequence {calls:,}{'' if wanted is None else f' of {wanted:,}'}")
            elif show is not None:
                show("making counterexamples smaller")
            return stopped()

        yield count
