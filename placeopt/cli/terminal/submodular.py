"""What a check of a placement model found, as data and for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from placeopt.errors import visible
from placeopt.model.problem import Problem
from placeopt.solver import Settings
from placeopt.submodular import Check, Checks, Counterexample

_SHOWN = 6
"""Placements of a set that are named; the others are counted."""

_RETURNS, _MONOTONE, _ORDER = "diminishing returns", "monotone", "independent of order"
_REFUTED = {_RETURNS: "returns grow", _MONOTONE: "not monotone", _ORDER: "the order matters"}


@dataclass(frozen=True, slots=True)
class Findings:
    """What was checked how, what came of it, and whether it was stopped before the end."""

    problem: Problem
    model: str
    settings: Settings
    checks: Checks
    longest: int
    seed: int
    stopped: bool = False

    @property
    def named(self) -> tuple[tuple[str, Check], ...]:
        """Each property by the name that people read."""
        checks = self.checks
        return (_RETURNS, checks.submodular), (_MONOTONE, checks.monotone), (_ORDER, checks.path_free)

    @property
    def exhaustive(self) -> bool:
        """Whether all cases of all properties were gone through."""
        return all(check.exhaustive for _, check in self.named)


def findings_data(findings: Findings) -> dict[str, Any]:
    """Findings as plain data."""
    problem, checks = findings.problem, findings.checks
    return {
        "problem": problem.name,
        "fingerprint": problem.fingerprint(),
        "model": findings.model,
        "settings": findings.settings.model_dump(mode="json"),
        "seed": findings.seed,
        "samples": checks.samples,
        "longest": findings.longest,
        "exhaustive": findings.exhaustive,
        "stopped": findings.stopped,
        "counterexample_found": checks.refuted,
        "claims_hold": checks.honest,
        "properties": {
            "diminishing_returns": _check_data(problem, checks.submodular, "gain"),
            "monotone": _check_data(problem, checks.monotone, "gain"),
            "independent_of_order": _check_data(problem, checks.path_free, "value"),
        },
    }


def _check_data(problem: Problem, check: Check, number: str) -> dict[str, Any]:
    worst = check.worst
    return {
        "claimed": check.claimed,
        "cases": check.cases,
        "violations": check.violations,
        "exhaustive": check.exhaustive,
        "proved": check.proved,
        "counterexample": None
        if worst is None
        else {
            "before": [_pair_data(problem, pair) for pair in worst.before],
            "after": [_pair_data(problem, pair) for pair in worst.after],
            "element": None if worst.element is None else _pair_data(problem, worst.element),
            f"{number}_before": worst.gain_before,
            f"{number}_after": worst.gain_after,
        },
    }


def _pair_data(problem: Problem, pair: int) -> dict[str, str]:
    task, device = divmod(pair, problem.n_devices)
    return {"task": problem.task_names[task], "device": problem.device_names[device]}


def print_findings(console: Console, findings: Findings) -> None:
    """What was looked at, a table of the properties, the worst counterexample to each, and the verdict."""
    checks = findings.checks
    _print_wrapped(console, Text(_looked_at(findings)))
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    for header in ("property", "claimed", "cases", "violations", "all cases"):
        table.add_column(header, justify="left" if header == "property" else "right", no_wrap=True)
    for name, check in findings.named:
        violations = Text(f"{check.violations:,}", style="red" if check.refuted else "")
        table.add_row(name, _yes(check.claimed), f"{check.cases:,}", violations, _yes(check.exhaustive))
    console.print(table)
    for name, check in findings.named:
        if check.worst is not None:
            _print_wrapped(console, Text.assemble((_REFUTED[name], "red"), f": {_words(findings, name)}"))
    if findings.stopped:
        _print_wrapped(console, Text("stopped early: there may be more counterexamples, and smaller ones"))
    wrong = [name for name, check in findings.named if check.claimed and check.refuted]
    if wrong:
        _print_wrapped(
            console,
            Text.assemble(
                ("a bug in placeopt", "red"),
                f": the model claims what was refuted, {_and(wrong)}; please report it",
            ),
        )
    _print_wrapped(console, Text(_verdict(checks, findings.exhaustive)))


def _looked_at(findings: Findings) -> str:
    changed = ", ".join(
        f"{name} = {_plain(value)}" for name, value in findings.settings.model_dump(exclude_unset=True).items()
    )
    checks = findings.checks
    if findings.exhaustive:
        drawn = "all sequences of placements"
    elif not checks.samples:
        drawn = "some sequences of placements"
    else:
        most = min(findings.longest, findings.problem.n_tasks)
        drawn = (
            f"{_count(checks.samples, 'random sequence')} of up to {_count(most, 'placement')}, seed {findings.seed}"
        )
    return f"{findings.model}{f' with {changed}' if changed else ''}: {drawn}"


def _verdict(checks: Checks, exhaustive: bool) -> str:
    if checks.submodular.refuted:
        return "greedy has no guarantee for this model: the theorems ask for diminishing returns"
    if checks.refuted:
        return "greedy has no guarantee for this model: the theorems ask for all three properties"
    if exhaustive:
        return "no counterexample: the function has all three properties on this problem, up to rounding"
    if all(check.claimed for check in (checks.submodular, checks.monotone, checks.path_free)):
        return "no counterexample among the samples, which proves nothing; that the claims hold is shown on paper"
    return "no counterexample among the samples; that proves nothing"


def _words(findings: Findings, name: str) -> str:
    """A counterexample as a sentence."""
    worst = dict(findings.named)[name].worst
    assert worst is not None
    problem = findings.problem
    if name == _ORDER:
        one, other = _apart(worst.gain_before, worst.gain_after)
        return f"f is {one} after {_set(problem, worst.before)}, but {other} after {_set(problem, worst.after)}"
    assert worst.element is not None
    placing = f"placing {_pair(problem, worst.element)}"
    if name == _MONOTONE:
        return f"{placing}{_standing(problem, worst.before)} loses {_apart(-worst.gain_before, 0.0)[0]}"
    early, late = _apart(worst.gain_before, worst.gain_after)
    return f"{placing} gains {early}{_standing(problem, worst.before)}, {late} {_later(problem, worst)}"


def _standing(problem: Problem, placed: Sequence[int]) -> str:
    return f" after {_set(problem, placed)}" if placed else " where nothing stands"


def _later(problem: Problem, worst: Counterexample) -> str:
    if not worst.before:
        return f"after {_set(problem, worst.after)}"
    more = [pair for pair in worst.after if pair not in set(worst.before)]
    return f"once {_set(problem, more)} {'is' if len(more) == 1 else 'are'} placed too"


def _set(problem: Problem, pairs: Sequence[int]) -> str:
    """Placements in their order; of a long list the first ones and the last, and how many stand between."""
    texts = [_pair(problem, pair) for pair in pairs]
    if len(texts) > _SHOWN:
        texts = [*texts[: _SHOWN - 2], f"{len(texts) - _SHOWN + 1:,} more", texts[-1]]
    return ", ".join(texts)


def _pair(problem: Problem, pair: int) -> str:
    task, device = divmod(pair, problem.n_devices)
    return f"{visible(problem.task_names[task], 40)} on {visible(problem.device_names[device], 40)}"


def _apart(one: float, other: float) -> tuple[str, str]:
    """Two numbers with three decimals, or as many as it takes to tell them apart."""
    for digits in range(3, 16):
        texts = f"{one:.{digits}f}", f"{other:.{digits}f}"
        if float(texts[0]) != float(texts[1]):
            return texts
    return repr(one), repr(other)


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else visible(str(value))


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _yes(said: bool) -> str:
    return "yes" if said else "no"


def _print_wrapped(console: Console, text: Text) -> None:
    """Between words on a terminal, in one line elsewhere."""
    console.print(text, soft_wrap=not console.is_terminal)
