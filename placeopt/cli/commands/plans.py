"""placeopt verify and simulate: check a plan and execute it under the execution model of its problem."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from placeopt.cli.arguments import checked_options
from placeopt.cli.files import check_targets
from placeopt.cli.options import AsJson, Out, PlanPath, ProblemFile
from placeopt.cli.output import note_violations, print_json, print_notes, stdout_console
from placeopt.errors import UsageError, unwritable


def verify(problem: ProblemFile, plan: PlanPath, as_json: AsJson = False) -> None:
    """Check a plan against its problem: list every violated rule, and check the stated objective."""
    from placeopt.io.compiler import load
    from placeopt.io.plan import read_plan
    from placeopt.solving.result import number
    from placeopt.verifier import verify as check

    compiled = load(problem)
    read = read_plan(plan, compiled)
    fingerprint = compiled.fingerprint()
    same = read.fingerprint in (None, fingerprint)
    report = check(compiled, read.schedule, read.claim)
    if as_json:
        print_json({
            "problem": compiled.name,
            "fingerprint": fingerprint,
            "made_for_this_problem": same,
            "feasible": report.feasible,
            "objective": None if report.objective is None else [number(value) for value in report.objective],
            "makespan": report.makespan,
            "violations": [
                {"rule": found.rule.value, "message": found.message, "amount": found.amount}
                for found in report.violations
            ],
        })  # fmt: skip
    else:
        from placeopt.cli.terminal.console import print_problem, print_verdict
        from placeopt.views.facts import value_text

        console = stdout_console()
        print_problem(console, compiled)
        if not same:
            print_notes(
                f"the plan was made for another version of this problem ({read.fingerprint}; this one is {fingerprint})"
            )
        if report.feasible:
            assert report.objective is not None
            value = value_text(report.objective[0], compiled, compiled.objective.single)
            console.print(f"[green]feasible[/green]: {compiled.objective} = {value}")
        else:
            print_verdict(console, False, report.violations)
    raise typer.Exit(0 if report.feasible else 1)


def simulate(
    problem: ProblemFile,
    plan: PlanPath,
    discipline: Annotated[
        str,
        typer.Option(
            "--discipline",
            help="Order of tasks on a device: fifo (first ready first), priority (of the ready tasks, the one with the "
            "earliest start in the plan) or order (always the order of the plan).",
        ),
    ] = "fifo",
    noise: Annotated[float, typer.Option("--noise", help="Vary times by up to this share: 0.2 for +-20 %.")] = 0.0,
    runs: Annotated[int, typer.Option("--runs", help="Number of runs with noise.")] = 100,
    seed: Annotated[int, typer.Option("--seed", help="Random seed of the noise.")] = 0,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Execute the placement of a plan under the problem's execution model, with or without noise."""
    from placeopt.io.compiler import load
    from placeopt.io.plan import plan_document, read_plan, write_plan
    from placeopt.model.schedule import makespan
    from placeopt.model.units import time_text
    from placeopt.simulation import MOST_RUNS, Discipline
    from placeopt.simulation import simulate as run
    from placeopt.simulation import simulate_noisy as run_noisy
    from placeopt.verifier import verify as check

    if not 0 <= noise < 1:
        raise UsageError(f"--noise is {noise}; expected a share from 0 to less than 1")
    if not 1 <= runs <= MOST_RUNS:
        raise UsageError(f"--runs is {runs}; expected a whole number from 1 to {MOST_RUNS:,}")
    checked_options(seed=seed)
    check_targets(("--out", out))
    compiled = load(problem)
    schedule = read_plan(plan, compiled).schedule
    chosen: Discipline = discipline  # type: ignore[assignment]  # checked by simulate
    keys: dict[str, Any] = {"discipline": chosen}
    if discipline == "priority":
        keys["priority"] = -schedule.start
    elif discipline == "order":
        keys["order"] = schedule.start
    executed = run(compiled, schedule.device, **keys)
    note_violations(check(compiled, schedule).violations, "; only its placement is executed here")
    data: dict[str, Any] = {
        "problem": compiled.name,
        "discipline": discipline,
        "resolution": float(compiled.resolution),
        "plan_makespan": makespan(compiled, schedule),
        "makespan": makespan(compiled, executed),
    }
    if noise:
        sample = run_noisy(compiled, schedule.device, noise=noise, runs=runs, seed=seed, **keys)
        data |= {
            "noise": noise, "runs": runs, "seed": seed, "mean": sample.mean, "deviation": sample.deviation,
            "quantiles": {str(q): sample.quantile(q) for q in (0.05, 0.25, 0.5, 0.75, 0.95)},
        }  # fmt: skip
    if out is not None:  # before printing, which may fail
        try:
            write_plan(out, plan_document(compiled, executed))
        except OSError as error:
            raise UsageError(unwritable(out, error)) from None
    if as_json:
        print_json(data)
    else:
        console = stdout_console()

        def line(label: str, ticks: float) -> None:
            exact = f"{ticks:,.6g}" if ticks < 100_000 else f"{ticks:,.0f}"  # never as 6.6e+07
            console.print(f"{label:<14}{time_text(ticks, compiled.resolution):>12}  ({exact} ticks)")

        line("plan", data["plan_makespan"])
        line(discipline, data["makespan"])
        if noise:
            console.print(f"with noise of {noise:.0%}, {runs} runs, seed {seed}:")
            line("  mean", data["mean"])
            for q, value in data["quantiles"].items():
                line(f"  {float(q):.0%} quantile", value)
