"""The verdicts of GiPH's experiment on changing networks, from SLRs that are known."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from giph_adaptivity import TRAINING, claims


def slrs(*changes: float) -> np.ndarray:
    """SLRs of three graphs on a network and after four changes of it."""
    return np.array([[1.0, *changes]] * 3) + np.arange(3)[:, None] / 1000


STEADY = slrs(1.3, 1.3, 1.3, 1.3)


def verdicts(count: int, **policies: np.ndarray) -> dict[str, str]:
    """The verdicts of figure 6 by claim, with equal trainings of each policy."""
    results = {"random": slrs(1.6, 1.6, 1.8, 1.8), "heft": STEADY}
    for name, rows in policies.items():
        results |= {f"{name.replace('_', '-')}{TRAINING}{k}": rows for k in range(count)}
    return {claim.text.partition(":")[0]: claim.judged for claim in claims(results)}


def test_figure_6_is_open_with_one_training() -> None:
    found = verdicts(1, giph=STEADY, giph_task_eft=slrs(1.3, 1.3, 1.5, 1.5))
    assert found.pop("random placements get worse as the network changes") == "same"
    assert set(found.values()) == {"open: one training"}


def test_a_search_fails_to_adapt_if_it_gets_worse_against_heft() -> None:
    for rows, verdict in ((slrs(1.3, 1.3, 1.5, 1.5), "same"), (STEADY, "open"), (slrs(1.4, 1.4, 1.3, 1.3), "reversed")):
        found = verdicts(2, giph=STEADY, giph_task_eft=rows)
        assert found["GiPH-task-EFT fails to adapt"] == verdict
        assert found["GiPH has almost the same SLR as HEFT"] == "same"
