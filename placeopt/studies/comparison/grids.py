"""Format comparisons as in papers: a table per problem, summary tables, and reasons for failed runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from placeopt.errors import listing, visible
from placeopt.model.notebook import framed, note
from placeopt.model.objective import METRICS
from placeopt.model.units import size_text
from placeopt.studies.comparison.tables import Entry, Runs
from placeopt.studies.comparison.verdicts import Standing, Value
from placeopt.views.facts import Grid, amount_text, best_known_text, first_level

TAUS = (1.0, 1.01, 1.05, 1.1, 1.25, 1.5, 2.0, 4.0)
"""Ratios at which the performance profile is shown."""

LONGEST = 240
"""Maximum number of characters of a reason; CSV and JSON have the full text."""

PROBLEMS = 4
"""Maximum number of problems that the line about the means names; JSON has all of them."""

SOLVERS = 50
"""Maximum number of solvers that a line names."""


def grids(comparison: Runs, *, summary: bool = False) -> list[Grid]:
    """Return one table per problem and, for several problems, the means and the performance profile.

    With `summary`, return the means only.
    """
    if summary:
        return [_summary_grid(comparison)] if comparison.records else []
    found = [_problem_grid(comparison, label) for label in comparison.by_problem]
    if len(found) > 1:
        found += [_summary_grid(comparison), _profile_grid(comparison)]
    return found


def as_text(comparison: Runs) -> str:
    """Return all tables of a comparison as plain text."""
    return "\n\n".join(
        "\n".join([grid.title, *grid.lines(), *(f"  {each}" for each in grid.notes)]) for grid in grids(comparison)
    )


def as_html(comparison: Runs) -> str:
    """Return all tables of a comparison as HTML for notebooks."""
    return "".join(framed(grid.title, grid.html(), *map(note, grid.notes)) for grid in grids(comparison))


def _problem_grid(comparison: Runs, label: str) -> Grid:
    entries, standing = comparison.entries[label], comparison.standings[label]
    results = [record.result for record in comparison.by_problem[label] if record.result is not None]
    name = first_level(results[0]["objective_name"]) if results else "objective"
    metric = name if name in METRICS else None
    resolution = Fraction(results[0]["resolution"]) if results else Fraction(0)

    later = results[0]["objective_name"].split(", then ")[1:] if results else []  # levels after the first

    def amount(value: Value | None, metric: str | None = metric) -> str:
        return "-" if value is None else amount_text(value, metric, resolution, ticks=False)

    def others(levels: Sequence[Value] | None) -> list[str]:
        values = levels[1:] if levels else [None] * len(later)
        return [amount(value, each if each in METRICS else None) for each, value in zip(later, values, strict=False)]

    place = {entry.solver: number for number, entry in enumerate(entries)}
    tried = sorted(
        (entry for entry in entries if entry.verdict != "refused"),
        key=lambda entry: (entry.levels is None, entry.levels or (), place[entry.solver]),
    )
    pipeline = metric == "period"
    spread = any(entry.spread is not None for entry in tried)
    stored = any(entry.peak_memory for entry in tried)
    certified = any(entry.certificate in ("trusted", "checked") for entry in tried)
    rows = tuple(
        (
            visible(entry.solver, 40),
            amount(entry.objective),
            *others(entry.levels),
            *([_percent(entry.spread)] if spread else []),
            _percent(entry.gap),
            _ratio(entry.ratio),
            amount(entry.latency) if pipeline else _ratio(entry.slr),
            _time(entry.seconds),
            _size(entry.process_memory),
            *([_size(entry.peak_memory)] if stored else []),
            *([entry.certificate or "-"] if certified else []),
            entry.verdict if entry.feasible in (0, entry.runs) else f"{entry.feasible} of {entry.runs}",
        )
        for entry in tried
    )
    left = ("solver", visible(name, 24), *(visible(each, 24) for each in later), *(["spread"] if spread else []))
    headers = (
        *left,
        "gap",
        "ratio",
        "latency" if pipeline else "SLR",
        "time",
        "RAM",
        *(["dev mem"] if stored else []),
        *(["proof"] if certified else []),
        "verdict",
    )
    title = _title(label, standing, amount, others(standing.levels), comparison.no_schedule(label))
    notes = (f"gap and ratio are of the first level, {visible(name)}",) if later else ()
    stated = comparison.best_known.get(comparison.by_problem[label][0].fingerprint)
    if (known := best_known_text(stated, standing.best, standing.bound, amount)) is not None:
        notes = (f"best known: {known}", *notes)
    words = tuple(range(len(headers) - 1 - certified, len(headers)))
    return Grid(headers, rows, words=words, title=title, notes=(*notes, *_reasons(entries)))


def _title(
    label: str, standing: Standing, amount: Callable[[Value | None], str], later: Sequence[str], nothing: str
) -> str:
    """Describe the best schedule and bound of a problem; `nothing` is used without a schedule."""
    best = ", then ".join([amount(standing.best), *later])
    known = [nothing if standing.best is None else f"best {best} ({standing.best_solver})"]
    if standing.bound is not None:
        known.append(f"bound {amount(standing.bound)} ({standing.bound_source})")
    gap = standing.gap(standing.best)
    if gap is not None:
        proved = "proved optimal" if standing.optimal else "first level proved optimal" if gap <= 0 else ""
        known.append(proved or f"gap {_percent(gap)}")
    return f"{visible(label)}: {', '.join(known)}"


def _reasons(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Describe failed or refuted runs: one line for each verdict and reason."""
    found: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        if entry.message:
            # Infeasible schedules are grouped by the rule that they break, since the places differ.
            reason = entry.message.partition(":")[0] if entry.verdict == "infeasible" else _reason(entry)
            found.setdefault((entry.verdict, reason), []).append(entry)
    lines = []
    for (verdict, reason), same in found.items():
        names = listing([entry.solver for entry in same], SOLVERS)
        if verdict == "infeasible":
            example = f" (of {same[0].solver})" if len(same) > 1 else ""
            reason = f"{_reason(same[0])}{example}"
        lines.append(f"{'' if verdict == 'feasible' else f'{verdict}: '}{names}: {visible(reason, LONGEST)}")
    return tuple(lines)


def _reason(entry: Entry) -> str:
    """Return the reason without the solver and the verdict, which the line already contains."""
    name = entry.solver.partition(":")[0]
    reason = entry.message.removeprefix(f"{name}: ").removeprefix(f"{name} ").removeprefix(f"{entry.verdict} ")
    if entry.verdict == "refused":
        # A refusal ends with a list of solvers that support the problem.
        reason = reason.partition("; solvers that support")[0]
    return reason


def _summary_grid(comparison: Runs) -> Grid:
    summary, common, problems = comparison.summary(), comparison.common(), len(comparison.by_problem)
    alone = len(common) < problems  # otherwise both means are over the same problems
    own = ("own",) if alone else ()
    headers = ("solver", "solved", "ratio", *own, "gap", "wins", "infeas.", "failed", "refused", "time")
    rows = tuple(
        (
            visible(row["solver"], 40),
            f"{row['solved']}/{row['problems']}",
            _ratio(row["ratio"]),
            *((_ratio(row["ratio_solved"]),) if alone else ()),
            _percent(row["gap"]),
            str(row["wins"]),
            str(row["infeasible"]),
            str(row["failed"]),
            str(row["refused"]),
            _time(row["seconds"]),
        )
        for row in summary
    )
    steady = comparison.steady()
    others = [row["solver"] for row in summary if row["solver"] not in steady]
    but = f" (except those that solved less than half: {listing(others)})" if others else ""
    whole = {1: "the problem", 2: "both problems"}.get(problems, f"all {problems} problems")
    over = f"the {len(common)} of {problems} problems that" if alone else f"{whole}, which"
    named = f": {listing(common, PROBLEMS)}" if alone else ""
    notes = [
        f"ratio (geometric mean of objective / best found) and gap (mean) are over {over} every solver "
        f"solved{but}{named}"
    ]
    if alone:
        notes.append("own: mean ratio over the problems that the solver itself solved; not comparable between solvers")
    return Grid(headers, rows, title=whole, notes=tuple(notes))


def _profile_grid(comparison: Runs) -> Grid:
    profile = comparison.profile()

    def share(solver: str, tau: float) -> float:
        return max((share for ratio, share in profile[solver] if ratio <= tau), default=0.0)

    rows = tuple((visible(solver, 40), *(f"{share(solver, tau):.0%}" for tau in TAUS)) for solver in profile)
    title = "performance profile: share of problems solved within this ratio to the best value found"
    return Grid(("solver", *(f"{tau:g}" for tau in TAUS)), rows, title=title)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.2%}" if share < 0.9995 else f"{share:.0%}"


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:,.3f}"


def _size(amount: int | None) -> str:
    return "-" if amount is None else size_text(amount)


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds * 1e3:.3g} ms" if seconds < 0.9995 else f"{seconds:.4g} s"
