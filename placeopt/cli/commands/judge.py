"""placeopt verify, simulate and inspect: look at a plan, run it, look at a problem."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from placeopt.cli.options import (
    AsJson,
    Out,
    PlanPath,
    ProblemFile,
    checked_options,
    print_json,
    stderr_console,
    stdout_console,
)
from placeopt.cli.targets import check_targets
from placeopt.errors import UsageError

if TYPE_CHECKING:
    from placeopt.io.plan import Plan


def verify(problem: ProblemFile, plan: PlanPath, as_json: AsJson = False) -> None:
    """Check a plan against its problem: every violated rule, and whether its objective is what it claims."""
    from placeopt.io.compiler import load
    from placeopt.io.plan import read_plan
    from placeopt.solving.result import number
    from placeopt.verifier import verify as judge

    compiled = load(problem)
    read = read_plan(plan, compiled)
    other = _made_for_another(read, compiled.fingerprint())
    report = judge(compiled, read.schedule, read.claim)
    if as_json:
        print_json(
            {
                "problem": compiled.name,
                "fingerprint": compiled.fingerprint(),
                "made_for_this_problem": other is None,
                "feasible": report.feasible,
                "objective": None if report.objective is None else [number(value) for value in report.objective],
                "makespan": report.makespan,
                "violations": [
                    {"rule": found.rule.value, "message": found.message, "amount": found.amount}
                    for found in report.violations
                ],
            }
        )
    else:
        from placeopt.cli.terminal.console import print_problem, print_violations
        from placeopt.views.facts import value_text

        console = stdout_console()
        print_problem(console, compiled)
        if other is not None:
            stderr_console().print(other, soft_wrap=True)
        if report.feasible:
            assert report.objective is not None
            value = value_text(report.objective[0], compiled, compiled.objective.single)
            console.print(f"[green]feasible[/green]: {compiled.objective} = {value}")
        else:
            print_violations(console, report.violations)
    raise typer.Exit(0 if report.feasible else 1)


def _made_for_another(plan: Plan, fingerprint: str) -> str | None:
    if plan.fingerprint is None or plan.fingerprint == fingerprint:
        return None
    return (
        f"note: the plan was made for another version of this problem ({plan.fingerprint}, this one is {fingerprint})"
    )


def simulate(
    problem: ProblemFile,
    plan: PlanPath,
    discipline: Annotated[
        str, typer.Option("--discipline", help="fifo: as tasks become ready; priority or order: by the plan's starts.")
    ] = "fifo",
    noise: Annotated[float, typer.Option("--noise", help="Times vary by up to this share: 0.2 for +-20 %.")] = 0.0,
    runs: Annotated[int, typer.Option("--runs", help="How many runs under noise.")] = 100,
    seed: Annotated[int, typer.Option("--seed", help="Same seed, same runs.")] = 0,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Execute a plan's placement under the problem's execution model, with or without noise."""
    from placeopt.io.compiler import load
    from placeopt.io.plan import plan_document, read_plan, write_plan
    from placeopt.model.schedule import makespan
    from placeopt.model.units import time_text
    from placeopt.simulation import MOST_RUNS, Discipline
    from placeopt.simulation import simulate as run
    from placeopt.simulation import simulate_noisy as run_noisy
    from placeopt.verifier import verify as judge

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
    broken = len(judge(compiled, schedule).violations)
    if broken:
        rules = f"{broken} rule{'' if broken == 1 else 's'}"
        note = f"note: the plan itself breaks {rules} (verify tells them); only its placement is executed here"
        stderr_console().print(note, soft_wrap=True)
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
    if out is not None:  # before anything is printed: nothing can come between
        try:
            write_plan(out, plan_document(compiled, executed))
        except OSError as error:
            raise UsageError(f"cannot write {out}: {error.strerror or error}") from None
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


def inspect(problem: ProblemFile, as_json: AsJson = False) -> None:
    """Describe a problem: sizes, shape, memory, device classes, what exact passes remove, lower bounds."""
    from placeopt.cli.terminal.inspection import inspection, print_inspection
    from placeopt.io.compiler import load

    compiled = load(problem)
    found = inspection(compiled)
    if as_json:
        print_json(found)
    else:
        print_inspection(stdout_console(), compiled, found)
