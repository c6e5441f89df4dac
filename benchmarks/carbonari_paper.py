"""What Carbonari, Kodirov and Golub 2017 report, the costs inferred from it, and how our results are judged.

A JCT is the same within 1 %, a change within 1 percentage point (CPU time: 5). Where the published JCT is our makespan
instead of the JCT by equation 4, the reason of the verdict says so.
"""

from __future__ import annotations

from claims import Verdict

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
    "placement": "with no table of costs does the algorithm of the paper have its three JCTs (carbonari_costs)",
    "costs": "costs on a core are not published for most of the tasks",
    "graph": "the JCT of no algorithm is explained for this graph",
    "shortcuts": "the published JCT is the longest path; on one GPU, both branches of a shortcut wait for each other",
}


def change_verdict(ours: float, paper: float, within: float) -> Verdict:
    """The verdict of a change relative to heuristic-g, both in per cent."""
    if abs(ours - paper) <= within:
        return "same"
    return "direction" if ours * paper > 0 else "reversed"


def jct_verdict(model: str, solver: str, jct: float, makespan: float, paper: float) -> tuple[Verdict, str]:
    """The verdict of an absolute JCT, and the reason."""
    if abs(jct - paper) <= 0.01 * paper:
        return "same", ""
    if abs(makespan - paper) <= 0.01 * paper:
        return "same", "as the makespan"
    if model == "VGG-19" or solver == "heuristic-g":
        reason = {"VGG-19": "placement", "ResNet-50": "shortcuts", "Inception-v3": "graph"}[model]
    else:
        reason = "graph" if model == "Inception-v3" else "costs"
    return "not comparable", REASONS[reason]
