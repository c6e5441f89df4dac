"""placeopt verify and simulate: check a plan and execute it under the execution model of its problem."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.text import Text
from typer import Option

from placeopt.cli.arguments import checked_options, seconds
from placeopt.cli.commands.serving import refuse, simulate_serving_file, verify_serving_file
from placeopt.cli.files import check_targets
from placeopt.cli.options import (
    AsJson,
    OptionalPlan,
    Out,
    PlanPath,
    ProblemFile,
    Tasks,
    input_option,
    share_option,
    time_option,
)
from placeopt.cli.output import note_violations, noted_plan, print_json, print_notes, stdout_console
from placeopt.errors import CertificateError, UsageError, counted, visible
from placeopt.io.files import writing

if TYPE_CHECKING:
    from placeopt.model.problem import Problem
    from placeopt.model.schedule import Schedule
    from placeopt.verifier import Report


def verify(
    problem: ProblemFile,
    plan: OptionalPlan = None,
    certificate: Annotated[
        Path | None,
        input_option(
            "--certificate",
            metavar="FILE.json",
            help="Check this proof of a lower bound, or that no schedule exists; with a plan, state the gap.",
        ),
    ] = None,
    recheck: Annotated[
        str | None,
        time_option("--recheck", help="Let a second engine decide, within this time, what the proof trusts."),
    ] = None,
    tasks: Tasks = False,
    as_json: AsJson = False,
) -> None:
    """Check a plan against its problem: list every violated rule, and check the stated objective.

    With `--certificate`, check a proof, with or without a plan.
    """
    from placeopt.io.compiler import compile_document, document_of
    from placeopt.io.document import is_serving
    from placeopt.model.problem import Objective
    from placeopt.orchestration.result import number, pipeline_data
    from placeopt.verifier import Rule
    from placeopt.verifier import verify as check

    if plan is None and (certificate is None or tasks):
        or_else = "" if tasks else ", or --certificate FILE"
        raise UsageError(f"verify{' --tasks' if tasks else ''} needs a PLAN, as `solve --out` writes it{or_else}")
    if recheck is not None and certificate is None:
        raise UsageError("verify --recheck needs --certificate FILE")
    deciding = seconds(recheck, "--recheck")
    document = document_of(problem)
    if is_serving(document):
        refuse({"--tasks": tasks, "--certificate": certificate})
        assert plan is not None
        verify_serving_file(document, plan, as_json)
    compiled = compile_document(document)
    if plan is None:
        assert certificate is not None
        _verify_certificate(compiled, certificate, deciding, as_json)
    read = noted_plan(plan, compiled)
    fingerprint = compiled.fingerprint()
    report = check(compiled, read.schedule, read.claim)
    wrong = [found for found in report.violations if found.rule is Rule.OBJECTIVE]  # says nothing about the schedule
    report = replace(report, violations=tuple(found for found in report.violations if found not in wrong))
    stated, lines, proved = ({}, [], True) if certificate is None else _proved(compiled, report, certificate, deciding)
    if as_json:
        print_json({
            "problem": compiled.name,
            "fingerprint": fingerprint,
            "made_for_this_problem": read.fingerprint in (None, fingerprint),
            "feasible": report.feasible,
            "objective_as_stated": None if read.claim is None or report.objective is None else not wrong,
            "objective": None if report.objective is None else [number(value) for value in report.objective],
            "makespan": report.makespan,
            "pipeline": pipeline_data(compiled, read.schedule) if report.objective is not None else None,
            "violations": [
                {"rule": found.rule.value, "message": found.message, "amount": found.amount}
                for found in (*report.violations, *wrong)
            ],
            **stated,
        })  # fmt: skip
    else:
        from placeopt.cli.terminal.console import facts_table, print_grid, print_problem, print_tasks, print_verdict
        from placeopt.views.facts import pipeline_facts, stage_grid, unit_metric, value_text

        console = stdout_console()
        print_problem(console, compiled)
        if report.feasible:
            assert report.objective is not None
            value = ", then ".join(
                value_text(each, compiled, unit_metric(Objective((level,))))
                for each, level in zip(report.objective, compiled.objective.levels, strict=True)
            )
            console.print(f"[green]feasible[/green]: {compiled.objective} = {value}", soft_wrap=True)
            if compiled.pipeline is not None:
                facts = pipeline_facts(compiled, read.schedule)
                console.print(facts_table((label, f"{amount} {note}") for label, amount, note in facts))
                print_grid(console, stage_grid(compiled, read.schedule))
        else:
            print_verdict(console, False, report.violations)
        for found in wrong:
            console.print(
                Text.assemble(("the plan states a wrong objective", "red"), f": {found.message}"), soft_wrap=True
            )
        for line in lines:
            console.print(Text(line), soft_wrap=True)
        if tasks:
            print_tasks(console, compiled, read.schedule)
        if wrong:
            print_notes(f"after editing a plan, correct or delete its `objective`: {visible(str(plan))}")
    raise typer.Exit(0 if report.feasible and proved and not wrong else 1)


def _verify_certificate(problem: Problem, path: Path, recheck: float | None, as_json: bool) -> NoReturn:
    """Check a certificate without a plan."""
    from placeopt.cli.terminal.console import print_problem

    stated, lines, proved = _proved(problem, None, path, recheck)
    if as_json:
        print_json({"problem": problem.name, "fingerprint": problem.fingerprint(), **stated})
    else:
        console = stdout_console()
        print_problem(console, problem)
        for line in lines:
            console.print(Text(line), soft_wrap=True)
    raise typer.Exit(0 if proved else 1)


def _proved(
    problem: Problem, report: Report | None, path: Path, recheck: float | None
) -> tuple[dict[str, Any], list[str], bool]:
    """What a certificate proves, and about a plan if there is one: data, lines, and whether it is accepted."""
    from placeopt.orchestration.rechecking import check_certificate
    from placeopt.orchestration.result import relative_gap

    try:
        proof = check_certificate(problem, path, recheck=recheck)
        value = report.objective[0] if report is not None and report.feasible and report.objective else None
        if value is not None and (proof.bound is None or value < proof.bound):
            raise CertificateError(
                f"its {proof.what} is wrong, since the plan is feasible, and its objective is {value}; {proof.grounds}"
            )
    except CertificateError as error:
        return {"certificate": {"refused": str(error)}}, [f"certificate refused: {error}"], False
    reasons = dict.fromkeys((each.engine, each.reason) for each in proof.trusted if each.reason)
    lines, gap = [f"certificate: {proof}", *(f"trusted: {engine}: {reason}" for engine, reason in reasons)], None
    optimal = None
    if value is not None:
        gap = relative_gap(value, proof.bound)
        several = len(problem.objective.levels) > 1
        better = "a smaller first level" if several else "better"
        sure = "" if gap else f": no plan {'has' if several else 'is'} {better}"
        sure += ", if the trusted claims are right" if sure and not proof.complete else ""
        optimal = not gap and proof.complete and not several
        lines.append(f"gap{' of the first level' * several}: {gap:.2%}{sure}")
    return {"certificate": proof.to_dict(), "gap": gap, "optimal": optimal}, lines, True


def simulate(
    problem: ProblemFile,
    plan: PlanPath,
    discipline: Annotated[
        str,
        Option(
            help="Order of tasks and transfers: order (that of the plan), priority (of the ready tasks, the one with "
            "the earliest start in the plan) or fifo (first ready first)."
        ),
    ] = "order",
    noise: Annotated[float, share_option("--noise", "Vary times by up to this share: 0.2 or 20%.")] = 0.0,
    runs: Annotated[int, Option(help="Number of runs with noise, or of a pipeline.")] = 100,
    seed: Annotated[int, Option(help="Random seed of the noise.")] = 0,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Execute a plan under the execution model of its problem, with or without noise."""
    import numpy as np

    from placeopt.io.compiler import compile_document, document_of
    from placeopt.io.document import is_serving
    from placeopt.io.plan import plan_document, write_plan
    from placeopt.model.problem import UNLIMITED
    from placeopt.model.schedule import durations, makespan
    from placeopt.model.units import time_text
    from placeopt.simulation import MOST_RUNS, Discipline
    from placeopt.simulation import simulate as run
    from placeopt.simulation import simulate_noisy as run_noisy
    from placeopt.verifier import verify as check
    from placeopt.views.facts import SHOWN

    if not 0 <= noise < 1:
        raise UsageError(f"--noise is {noise}; expected a share from 0 to less than 1")
    if not 1 <= runs <= MOST_RUNS:
        raise UsageError(f"--runs is {runs}; expected a whole number from 1 to {MOST_RUNS:,}")
    checked_options(seed=seed)
    check_targets(("--out", out))
    document = document_of(problem)
    if is_serving(document):
        refuse({
            "--noise": noise, "--out": out, "--discipline": discipline != "order", "--runs": runs != 100, "--seed": seed
        })  # fmt: skip
        simulate_serving_file(document, plan, as_json)
    compiled = compile_document(document)
    schedule = noted_plan(plan, compiled).schedule
    if compiled.pipeline is not None:
        for option, given in (("--noise", noise), ("--out", out), ("--discipline", discipline != "order")):
            if given:
                raise UsageError(f"{option} does not apply to pipelines; runs follow each other as the plan states")
        _simulate_runs(compiled, schedule, runs, as_json)
        return
    chosen: Discipline = discipline  # type: ignore[assignment]  # checked by simulate
    executed = run(compiled, schedule, discipline=chosen)
    kept = "placement and order are" if chosen == "order" else "placement is"
    note_violations(check(compiled, schedule).violations, f"; only its {kept} executed here")
    ends, dated = executed.start + durations(compiled, executed.device), compiled.deadline != UNLIMITED
    data: dict[str, Any] = {
        "problem": compiled.name,
        "discipline": discipline,
        "resolution": float(compiled.resolution),
        "plan_makespan": makespan(compiled, schedule),
        "makespan": makespan(compiled, executed),
        "late": [
            {
                "task": compiled.task_names[task],
                "end": int(ends[task]),
                "deadline": int(compiled.deadline[task]),
                "ticks": int(ends[task] - compiled.deadline[task]),
            }
            for task in np.flatnonzero(dated & (ends > compiled.deadline)).tolist()
        ],
    }
    if noise:
        sample = run_noisy(compiled, schedule, noise=noise, runs=runs, seed=seed, discipline=chosen)
        data |= {
            "noise": noise, "runs": runs, "seed": seed, "mean": sample.mean, "deviation": sample.deviation,
            "late_runs": sample.late,
            "quantiles": {str(q): sample.quantile(q) for q in (0.05, 0.25, 0.5, 0.75, 0.95)},
        }  # fmt: skip
    if out is not None:  # before printing, which may fail
        with writing(out):
            write_plan(out, plan_document(compiled, replace(executed, offsets=schedule.offsets)))
    if as_json:
        print_json(data)
    else:
        console = stdout_console()

        def line(label: str, ticks: float) -> None:
            exact = f"{ticks:,.6g}" if ticks < 100_000 else f"{ticks:,.0f}"  # never as 6.6e+07
            console.print(f"{label:<14}{time_text(ticks, compiled.resolution):>12}  ({exact} ticks)")

        line("plan", data["plan_makespan"])
        line("in plan order" if chosen == "order" else chosen, data["makespan"])
        for found in data["late"][:SHOWN]:
            by, due = (time_text(found[key], compiled.resolution) for key in ("ticks", "deadline"))
            console.print(f"late: {visible(found['task'])} ends {by} after its deadline at {due}", markup=False)
        if len(data["late"]) > SHOWN:
            console.print(f"late: {counted(len(data['late']) - SHOWN, 'more task')}; --json lists all")
        if noise:
            console.print(f"with noise of {noise:.0%}, {counted(runs, 'run')}, seed {seed}:")
            line("  mean", data["mean"])
            for q, value in data["quantiles"].items():
                line(f"  {float(q):.0%} quantile", value)
            if dated.any():
                console.print(f"  {sample.late:,} of {counted(runs, 'run')} miss a deadline")


def _simulate_runs(problem: Problem, schedule: Schedule, runs: int, as_json: bool) -> None:
    """Execute runs of a pipeline, each operation as early as its data and its device allow.

    Runs before and after those that count fill and drain the pipeline.
    """
    from placeopt.model.period import period
    from placeopt.model.schedule import makespan
    from placeopt.model.units import time_text
    from placeopt.simulation import run_pipeline
    from placeopt.simulation.steady import steady_periods
    from placeopt.verifier import verify as check

    violations = check(problem, schedule).violations
    cycle = run_pipeline(problem, schedule, 1).cycle
    around = -(-((steady_periods(problem, schedule) or 0) + 1) // cycle) * cycle
    counted = -(-runs // cycle) * cycle
    ends = run_pipeline(problem, schedule, counted + 2 * around + 1).ends
    note_violations(violations)
    mean = float(ends[around + counted] - ends[around]) / counted
    times: dict[str, float] = {
        "plan_period": period(problem, schedule), "period": mean,
        "plan_latency": makespan(problem, schedule), "latency": int(ends[0]),
    }  # fmt: skip
    if as_json:
        resolution = float(problem.resolution)
        print_json({"problem": problem.name, "resolution": resolution, "runs": counted, "before": around, **times})
        return
    console = stdout_console()
    mean_of = f"mean of {counted:,} runs after the first {around:,}"
    notes = ("from one result to the next", mean_of, "", "of the first run")
    for (name, ticks), note in zip(times.items(), notes, strict=True):
        exact = f"{ticks:,.6g}" if ticks < 100_000 else f"{ticks:,.0f}"
        label = name.replace("plan_", "plan, ") if name.startswith("plan") else f"executed, {name}"
        amount = time_text(ticks, problem.resolution)
        text = f"{label:<18}{amount:>12}  ({exact} ticks) {note}".rstrip()
        console.print(text, soft_wrap=not console.is_terminal)
