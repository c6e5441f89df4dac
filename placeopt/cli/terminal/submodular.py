"""Format checks of placement models as data, and print them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from placeopt.cli.terminal.console import new_table, print_wrapped
from placeopt.errors import counted, visible
from placeopt.model.problem import Problem
from placeopt.protocol import Settings
from placeopt.submodular import Check, Checks, Counterexample

_SHOWN = 6
"""Maximum number of placements of a set that are named."""

_RETURNS, _MONOTONE, _ORDER = "diminishing returns", "monotone", "independent of order"
_REFUTED = {_RETURNS: "returns grow", _MONOTONE: "not monotone", _ORDER: "the order matters"}


@dataclass(frozen=True, slots=True)
class Findings:
    """The parameters and the results of a check, and whether it was stopped early."""

    problem: Problem
    model: str
    settings: Settings
    checks: Checks
    longest: int
    seed: int
    stopped: bool = False

    @property
    def named(self) -> tuple[tuple[str, Check], ...]:
        """Each property with its name."""
        checks = self.checks
        return (_RETURNS, checks.submodular), (_MONOTONE, checks.monotone), (_ORDER, checks.path_free)

    @property
    def exhaustive(self) -> bool:
        """Whether all cases of all properties were checked."""
        return all(check.exhaustive for _, check in self.named)


def findings_data(findings: Findings) -> dict[str, Any]:
    """Return findings as plain data."""
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
        "claims_hold": checks.claims_hold,
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
    """Print the parameters, a table of properties, the worst counterexample to each, and the verdict."""
    checks = findings.checks
    print_wrapped(console, _parameters(findings))
    table = new_table("property", "claimed", "cases", "violations", "all cases")
    for name, check in findings.named:
        violations = Text(f"{check.violations:,}", style="red" if check.refuted else "")
        table.add_row(name, _yes(check.claimed), f"{check.cases:,}", violations, _yes(check.exhaustive))
    console.print(table)
    for name, check in findings.named:
        if check.worst is not None:
            print_wrapped(console, Text.assemble((_REFUTED[name], "red"), f": {_counterexample_text(findings, name)}"))
    if findings.stopped:
        print_wrapped(console, "stopped early: there may be more and smaller counterexamples")
    wrong = [name for name, check in findings.named if check.claimed and check.refuted]
    if wrong:
        claims = f": the model claims a property that was refuted: {', '.join(wrong)}; please report it"
        print_wrapped(console, Text.assemble(("a bug in placeopt", "red"), claims))
    print_wrapped(console, _verdict(checks, findings.exhaustive))


def _parameters(findings: Findings) -> str:
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
            f"{counted(checks.samples, 'random sequence')} of up to {counted(most, 'placement')}, seed {findings.seed}"
        )
    return f"{findings.model}{f' with {changed}' if changed else ''}: {drawn}"


def _verdict(checks: Checks, exhaustive: bool) -> str:
    if checks.submodular.refuted:
        return "greedy has no guarantee for this model: the theorems require diminishing returns"
    if checks.refuted:
        return "greedy has no guarantee for this model: the theorems require all three properties"
    if exhaustive:
        return "no counterexample: the function has all three properties on this problem, up to rounding"
    if all(check.claimed for check in (checks.submodular, checks.monotone, checks.path_free)):
        return "no counterexample among the samples, which is not a proof; the model's claims are proved on paper"
    return "no counterexample among the samples, which is not a proof"


def _counterexample_text(findings: Findings, name: str) -> str:
    """Describe a counterexample in a sentence."""
    worst = dict(findings.named)[name].worst
    assert worst is not None
    problem = findings.problem
    if name == _ORDER:
        one, other = _apart(worst.gain_before, worst.gain_after)
        return f"f is {one} after {_set(problem, worst.before)}, but {other} after {_set(problem, worst.after)}"
    assert worst.element is not None
    placing = f"placing {_pair(problem, worst.element)}"
    if name == _MONOTONE:
        return f"{placing}{_after(problem, worst.before)} loses {_apart(-worst.gain_before, 0.0)[0]}"
    early, late = _apart(worst.gain_before, worst.gain_after)
    return f"{placing} gains {early}{_after(problem, worst.before)}, {late} {_later(problem, worst)}"


def _after(problem: Problem, placed: Sequence[int]) -> str:
    return f" after {_set(problem, placed)}" if placed else " as the first placement"


def _later(problem: Problem, worst: Counterexample) -> str:
    if not worst.before:
        return f"after {_set(problem, worst.after)}"
    more = [pair for pair in worst.after if pair not in set(worst.before)]
    return f"once {_set(problem, more)} {'is' if len(more) == 1 else 'are'} placed too"


def _set(problem: Problem, pairs: Sequence[int]) -> str:
    """List placements in order; a long list is shortened in the middle."""
    texts = [_pair(problem, pair) for pair in pairs]
    if len(texts) > _SHOWN:
        texts = [*texts[: _SHOWN - 2], f"{len(texts) - _SHOWN + 1:,} more", texts[-1]]
    return ", ".join(texts)


def _pair(problem: Problem, pair: int) -> str:
    task, device = divmod(pair, problem.n_devices)
    return f"{visible(problem.task_names[task], 40)} on {visible(problem.device_names[device], 40)}"


def _apart(one: float, other: float) -> tuple[str, str]:
    """Format two numbers with three decimals, or with more until the texts differ."""
    for digits in range(3, 16):
        texts = f"{one:.{digits}f}", f"{other:.{digits}f}"
        if float(texts[0]) != float(texts[1]):
            return texts
    return repr(one), repr(other)


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else visible(str(value))


def _yes(value: bool) -> str:
    return "yes" if value else "no"
