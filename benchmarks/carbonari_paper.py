"""What Carbonari, Kodirov and Golub 2017 report, the costs inferred from it, and how our results are judged.

A JCT is the same within 1 %, a change within 1 percentage point (CPU time: 5). Where the published JCT is our makespan
instead of the JCT by equation 4, the reason of the verdict says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from claims import Claim, Verdict, holds

# Tables 1 to 3: JCT, and the changes of JCT, memory and CPU time against Heuristic-G in per cent.
PAPER: dict[tuple[str, str], dict[str, tuple[int, float, float, float]]] = {
    ("small", "VGG-19"): {
        "heuristic-g": (51362816, 0, 0, 0),
        "submodular-g": (72795648, 41, 0.99, 84),
        "submodular-gi": (72795648, 41, 0.56, 64),
    },
    ("small", "ResNet-50"): {
        "heuristic-g": (60986968, 0, 0, 0),
        "submodular-g": (81836592, 34, 2.73, 10383),
        "submodular-gi": (83125360, 36, 2.96, 10408),
    },
    ("small", "Inception-v3"): {
        "heuristic-g": (49299104, 0, 0, 0),
        "submodular-g": (78681008, 60, 5, 38698),
        "submodular-gi": (78802576, 60, 2.77, 38274),
    },
    ("medium", "VGG-19"): {
        "heuristic-g": (51362816, 0, 0, 0),
        "submodular-g": (54197760, 5.52, -2.40, 1658),
        "submodular-gi": (54197760, 5.52, -2.17, 1643),
    },
    ("medium", "ResNet-50"): {
        "heuristic-g": (60986968, 0, 0, 0),
        "submodular-g": (77032600, 26, 3.25, 307872),
        "submodular-gi": (78322968, 28, 2.24, 301400),
    },
    ("medium", "Inception-v3"): {
        "heuristic-g": (33821568, 0, 0, 0),
        "submodular-g": (74251264, 119, 5, 976838),
        "submodular-gi": (73765376, 118, 5, 971220),
    },
    ("large", "VGG-19"): {
        "heuristic-g": (51362816, 0, 0, 0),
        "submodular-g": (51696640, 0.65, 0.87, 2599),
        "submodular-gi": (51696640, 0.65, 0.53, 2578),
    },
    ("large", "ResNet-50"): {
        "heuristic-g": (60986968, 0, 0, 0),
        "submodular-g": (79055192, 29, 5.31, 386137),
        "submodular-gi": (78237720, 21, 2.34, 393176),
    },
    ("large", "Inception-v3"): {
        "heuristic-g": (33821568, 0, 0, 0),
        "submodular-g": (71365584, 111, 1.69, 1088094),
        "submodular-gi": (71849152, 112, 1.93, 1098507),
    },
}

INFERRED: dict[str, tuple[int, int]] = {
    "conv2d": (4, 2), "max_pool": (6, 5), "avg_pool": (6, 5), "concat": (5, 7), "flatten": (7, 6), "dense": (8, 4),
    "batch_norm": (2, 1), "relu": (2, 1), "add": (4, 2), "pad": (0, 0), "classifier": (8, 4),
}  # fmt: skip
"""Ticks for each element read, on a core and on a GPU.

Origin: table 4 of the paper for convolution, max pooling and concatenation. `carbonari_costs` solves for flatten and
dense (from the nine JCTs of VGG-19; the table with the smallest costs of four) and for the costs of batch_norm, relu,
add and avg_pool on a GPU (from the JCT of heuristic-g on ResNet-50, where the average pooling costs 5). Assumed: a core
takes twice as long as a GPU for batch_norm, relu and add, 6 instead of 5 for avg_pool, and a classifier is dense.
"""
INCEPTION = {"avg_pool": (1, 3)}
"""Table 4 has another cost for average pooling than ResNet-50 requires; Inception-v3 uses that of table 4."""

REASONS = {
    "VGG-19": "with no table of costs does the algorithm of the paper have its three JCTs (carbonari_costs)",
    "ResNet-50": "the published JCT is the longest path; on one GPU, both branches of a shortcut wait for each other",
    "Inception-v3": "neither the graph nor the inferred costs explain any JCT of this model",
}
"""Why a JCT that depends on no assumed cost differs."""
ASSUMED = "it depends on costs on a core, which are not published for most of the tasks"
MAKESPAN = "the published JCT is our makespan, the longest path, and not equation 4"


def change_verdict(ours: float, paper: float, within: float) -> Verdict:
    """The verdict of a change relative to heuristic-g, both in per cent."""
    if abs(ours - paper) <= within:
        return "same"
    return "direction" if ours * paper > 0 else "reversed"


def jct_verdict(model: str, solver: str, jct: float, makespan: float, paper: float) -> tuple[Verdict, str]:
    """The verdict of an absolute JCT, and the reason.

    The costs were inferred from all JCTs of VGG-19, and from those of heuristic-g on ResNet-50. Where such a JCT
    differs, the inference fails or the algorithm is another one, so that it counts.
    """
    if abs(jct - paper) <= 0.01 * paper:
        return "same", ""
    if model != "VGG-19" and solver != "heuristic-g":
        return "not comparable", ASSUMED
    return "differs", MAKESPAN if abs(makespan - paper) <= 0.01 * paper else REASONS[model]


def jct_change(network: str, model: str, solver: str, ours: float) -> Claim:
    """The cell of a change of JCT; a published change that the published JCTs contradict is compared in both forms."""
    jct, stated, *_ = PAPER[network, model][solver]
    derived = published_percent(network, model, solver)
    verdict = change_verdict(ours, stated, 1.0)
    reason = ""
    if abs(derived - stated) > 1:
        by_jct = change_verdict(ours, derived, 1.0)
        reason = f"the published {jct:,} is {derived:+.1f} %, not {stated:+g} %"
        reason += "" if by_jct == verdict else f"; compared with that: {by_jct}"
    return Claim(f"{model}, {solver}: JCT, change to heuristic-g", f"{stated:+g} %", f"{ours:+.1f} %", verdict, reason)


def published_percent(network: str, model: str, solver: str) -> float:
    """The change that follows from the published JCTs."""
    return percent(PAPER[network, model][solver][0], PAPER[network, model]["heuristic-g"][0])


def trend(what: str, paper: Sequence[float], ours: Sequence[float], flat: float) -> Claim:
    """The claim that changes, in per cent, rise and fall from network to network as in the paper.

    A step of at most `flat` percentage points neither rises nor falls.
    """
    steps = [[direction(b - a, flat) for a, b in pairwise(each)] for each in (paper, ours)]
    agreed = [one == other for one, other in zip(*steps, strict=True)]
    verdict: Verdict = "same" if all(agreed) else "in part" if any(agreed) else "reversed"
    return Claim(what, *(", ".join(map(signed, each)) for each in (paper, ours)), verdict)


def signed(change: float) -> str:
    """A change in per cent, with three digits or more."""
    return f"{change:+,.{2 if abs(change) < 10 else 1 if abs(change) < 100 else 0}f} %"


def direction(step: float, flat: float) -> int:
    """1 for a rise, -1 for a fall, 0 for neither."""
    return 0 if abs(step) <= flat else 1 if step > 0 else -1


def counted(text: str, paper: str, found: list[tuple[str, bool]]) -> Claim:
    """A claim about several cases, which names those for which it does not hold."""
    others = [name for name, held in found if not held]
    ours = f"{len(found) - len(others)} of {len(found)}" + (f"; not {'; '.join(others)}" if others else "")
    return holds(text, paper, found)._replace(ours=ours)


def percent(value: float, base: float) -> float:
    """The change relative to a base, in per cent."""
    return (value - base) / base * 100
