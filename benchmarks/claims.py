"""Claims and cells of a paper next to our results, each with a verdict."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from rich.markup import escape
from rich.table import Table

Verdict = Literal["same", "direction", "in part", "open", "differs", "reversed", "not comparable"]

MEANING: dict[Verdict, str] = {
    "same": "our value is that of the paper within the stated tolerance or our 95 % interval, or the order is the same",
    "direction": "our value differs from the paper's, but the effect has the same sign",
    "in part": "a claim about several graphs or trainings holds for some of them",
    "open": "no difference can be stated: our two values are equal, or the interval of their difference contains 0",
    "differs": "our value is not that of the paper within the stated tolerance, and has no sign to compare",
    "reversed": "our results contradict the paper",
    "not comparable": "with the reason",
}
"""The verdicts of all papers."""

SAME, EQUAL = 0.10, 0.001
"""Two ratios are the same within 10 %; a ratio is 1 within 0.1 %."""


class Claim(NamedTuple):
    """A claim or a cell of a paper, our result, the verdict, and the reason for it if it is not obvious."""

    text: str
    paper: str
    ours: str
    verdict: Verdict
    reason: str = ""

    @property
    def judged(self) -> str:
        """The verdict with its reason."""
        return f"{self.verdict}: {self.reason}" if self.reason else self.verdict


def claims_table(title: str, claims: Iterable[Claim]) -> Table:
    """A table of claims."""
    table = Table(title=title)
    for header in ("claim of the paper", "paper", "ours", "verdict"):
        table.add_column(header)
    for claim in claims:
        table.add_row(*map(escape, (claim.text, claim.paper, claim.ours, claim.judged)))
    return table


def ratio_verdict(paper: float, ours: float, equal: float = EQUAL) -> Verdict:
    """The verdict on two ratios; a ratio is 1 if it differs from it by at most `equal`."""
    if sign(paper) == sign(ours, equal):
        return "same" if abs(paper / ours - 1) <= SAME else "direction"
    return "reversed" if sign(ours, equal) else "open"


def sign(ratio: float, equal: float = EQUAL) -> int:
    """1 above 1, -1 below 1, 0 for about 1."""
    return 0 if abs(ratio - 1) <= equal else 1 if ratio > 1 else -1


def holds(text: str, paper: str, found: Iterable[tuple[str, bool]]) -> Claim:
    """A claim about several cases, each with a name and whether the claim holds."""
    each = list(found)
    true = [name for name, held in each if held]
    verdict: Verdict = "same" if len(true) == len(each) else "in part" if true else "reversed"
    return Claim(text, paper, f"{len(true)} of {len(each)}: {'; '.join(true) or 'none'}", verdict)
