"""Serving problems in the commands solve, verify, simulate, export, whatif and replace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from placeopt.cli.arguments import share_text
from placeopt.cli.files import save_plots, unsaved, written
from placeopt.cli.interruption import on_interrupt
from placeopt.cli.output import print_json, print_notes, stdout_console
from placeopt.errors import SpecError, UsageError

if TYPE_CHECKING:
    from placeopt.io.document import Document
    from placeopt.serving.result import ReplicatedResult, ServingResult


def refuse(given: Mapping[str, object]) -> None:
    """Refuse options that do not apply to serving problems."""
    for option, value in given.items():
        if value:
            raise UsageError(f"{option} does not apply to serving problems")


def import_notes(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Why an imported serving problem cannot be solved as it is."""
    from placeopt.serving.feasibility import shortage
    from placeopt.serving.files import load_serving

    try:
        lacking = shortage(load_serving(document))
    except SpecError as error:
        return tuple(f"solve needs a change: {issue}" for issue in error.issues)
    if lacking is None:
        return ()
    helps = "more or larger devices, or weights in fewer bits (such as `--precision int8` with a config.json), help"
    return (f"no plan exists: {lacking}; {helps}",)


def solve_serving_file(
    document: Document,
    *,
    limit: float,
    gap: float | None,
    require_gap: float | None,
    seed: int,
    workers: int | None,
    out: Path | None,
    pictures: Sequence[tuple[str, Path]],
    as_json: bool,
) -> None:
    """Solve a serving problem, print the result, and write the plan."""
    from placeopt.cli.terminal.console import facts_table, print_grid
    from placeopt.serving.cheapest import cheapest_serving
    from placeopt.serving.files import load_serving
    from placeopt.serving.plan_files import replicas_document, write_replicas
    from placeopt.serving.replicas import replicated_serving
    from placeopt.serving.solving import DEFAULT_GAP, solve_serving
    from placeopt.serving.views import plan_grid, price_facts, problem_line, result_facts

    problem = load_serving(document)
    console = stdout_console()
    if not as_json:
        console.print(problem_line(problem), markup=False)
    print_notes(*problem.notes)
    gap = DEFAULT_GAP if gap is None else gap
    cheapest = None
    result: ServingResult | ReplicatedResult
    with on_interrupt() as stop:
        if problem.demand is not None:
            cheapest = cheapest_serving(problem, time_limit=limit, seed=seed, workers=workers, should_stop=stop.is_set)
            result = cheapest.result
        else:
            search = replicated_serving if problem.replicas > 1 else solve_serving
            result = search(
                problem, time_limit=limit, gap_limit=gap, seed=seed, workers=workers, should_stop=stop.is_set
            )
    problem, found = result.problem, result.replicas  # the cheapest nodes are some of all
    lacking = None if found else "no plan was found"
    why = unsaved(out, lacking, lambda path: write_replicas(path, problem, found))
    if as_json:
        extra = {} if cheapest is None else cheapest.to_dict()
        print_json({**result.to_dict(), **extra})
    else:
        console.print(facts_table(result_facts(result) + price_facts(problem, found, cheapest)))
        if found:
            print_grid(console, plan_grid(problem, found))
    if why is not None:
        print_notes(why)
        if found and not as_json:
            print_json(replicas_document(problem, found))
    if require_gap is not None and found and (result.gap is None or result.gap > require_gap):
        proved = "none is proved" if result.gap is None else f"it is {share_text(result.gap)}"
        print_notes(f"the gap is not at most {share_text(require_gap)}: {proved}")
    drawn = True
    if found:
        drawn = save_plots(pictures, lambda _: result.plot())
    if stop.is_set():
        raise typer.Exit(stop.code)
    missed = (
        not found
        or (cheapest is not None and cheapest.price is None)
        or (require_gap is not None and (result.gap is None or result.gap > require_gap))
    )
    raise typer.Exit(2 if why is not None or not drawn else 1 if missed else 0)


def verify_serving_file(document: Document, plan: Path, as_json: bool) -> None:
    """Check the plan of a serving problem."""
    from placeopt.cli.terminal.console import print_grid
    from placeopt.serving.files import load_serving
    from placeopt.serving.plan_files import read_replicas
    from placeopt.serving.verification import verify_replicas
    from placeopt.serving.views import plan_grid, problem_line, report_line

    problem = load_serving(document)
    read = read_replicas(plan, problem)
    report = verify_replicas(problem, read)
    if as_json:
        print_json(report.to_dict())
    else:
        console = stdout_console()
        console.print(problem_line(problem), markup=False)
        console.print(report_line(report, read), markup=False)
        for rule, message in report.violations[:10]:
            console.print(f"  {rule}: {message}", markup=False)
        if len(report.violations) > 10:
            console.print(f"  and {len(report.violations) - 10:,} more; --json lists all of them")
        if report.feasible:
            print_grid(console, plan_grid(problem, read))
    raise typer.Exit(0 if report.feasible else 1)


def simulate_serving_file(document: Document, plan: Path, as_json: bool) -> None:
    """Print the steady state of a plan."""
    from placeopt.serving.files import load_serving
    from placeopt.serving.plan_files import read_replicas
    from placeopt.serving.steady_state import simulate_replicas
    from placeopt.serving.views import problem_line, state_line

    problem = load_serving(document)
    read = read_replicas(plan, problem)
    found = simulate_replicas(problem, read)
    if as_json:
        rate = sum(each.rate for each in found) / 10**6
        most = max(each.waiting for each in found)
        print_json({"problem": problem.name, "tokens_per_second": rate, "most_waiting": most})
    else:
        stdout_console().print(problem_line(problem), markup=False)
        stdout_console().print(state_line(found, read), markup=False)
    raise typer.Exit(0)


def export_serving_file(document: Document, plan: Path, to: str | None, out: Path | None) -> None:
    """Write a plan for a runtime."""
    from placeopt.io.files import write_whole
    from placeopt.serving.exporting import export_replicas
    from placeopt.serving.files import load_serving
    from placeopt.serving.plan_files import read_replicas
    from placeopt.serving.verification import verify_replicas

    if to is None:
        raise UsageError("nothing to export: expected --to FORMAT")
    problem = load_serving(document)
    read = read_replicas(plan, problem)
    print_notes(*(f"broken rule: {message}" for _, message in verify_replicas(problem, read).violations[:3]))
    text = export_replicas(problem, read, to)
    if out is None:
        typer.echo(text, nl=False)
    raise typer.Exit(0 if written(out, lambda path: write_whole(path, text)) else 2)


def whatif_serving_file(
    document: Document, *, limit: float, gap: float | None, seed: int, workers: int | None, as_json: bool
) -> None:
    """Print what changes of a cluster gain."""
    from placeopt.cli.terminal.console import print_grid
    from placeopt.serving.changes import whatif_serving
    from placeopt.serving.files import load_serving
    from placeopt.serving.solving import DEFAULT_GAP
    from placeopt.serving.views import gains_grid, problem_line

    problem = load_serving(document)
    print_notes(*problem.notes)
    gap = DEFAULT_GAP if gap is None else gap
    with on_interrupt() as stop:
        found = whatif_serving(
            problem, time_limit=limit, gap_limit=gap, seed=seed, workers=workers, should_stop=stop.is_set
        )
    print_notes(*([found[0].result.message] if found[0].result.message else []))
    if as_json:
        print_json([
            {"change": each.change, "gain_at_least": each.least, "gain_at_most": each.most, **each.result.to_dict()}
            for each in found
        ])  # fmt: skip
    else:
        stdout_console().print(problem_line(problem), markup=False)
        print_grid(stdout_console(), gains_grid(found))
    raise typer.Exit(stop.code if stop.is_set() else 0)


def replace_serving_file(
    document: Document, plan: Path, devices: str, *, limit: float, seed: int, workers: int | None, out: Path | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Print plans for changed devices, and write the one with the largest rate."""
    from placeopt.cli.arguments import input_path
    from placeopt.cli.terminal.console import print_grid
    from placeopt.io.compiler import document_of
    from placeopt.serving.changes import replace_serving
    from placeopt.serving.files import load_changed, load_serving
    from placeopt.serving.plan_files import read_replicas, read_serving_plan, replicas_document, write_replicas
    from placeopt.serving.views import problem_line, replaced_grid

    before = load_serving(document)
    problem = load_changed(document, document_of(input_path(devices)))
    print_notes(*problem.notes)
    known = read_replicas(plan, before) if before.replicas > 1 else read_serving_plan(plan, before)
    with on_interrupt() as stop:
        found, result = replace_serving(
            problem, before, known, time_limit=limit, seed=seed, workers=workers, should_stop=stop.is_set
        )
    done = not found or written(out, lambda path: write_replicas(path, problem, found[-1].replicas))
    if as_json:
        plans = [{"layers_loaded": each.loaded, **replicas_document(problem, each.replicas)} for each in found]
        print_json({"bound": result.to_dict()["bound"], "plans": plans})
    else:
        stdout_console().print(problem_line(problem), markup=False)
        if found:
            print_grid(stdout_console(), replaced_grid(known, found, result))
        else:
            stdout_console().print(result.message, markup=False)
    raise typer.Exit(stop.code if stop.is_set() else 1 if not found else 0 if done else 2)
