"""The weights of the solver giph: those of another number of devices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs placeopt[torch]")
pytest.importorskip("safetensors", reason="needs placeopt[torch]")

from learned_problems import built

import placeopt as po
from placeopt.errors import UsageError
from placeopt.learning.networks.variants import make_agent
from placeopt.learning.training.checkpoints import save_policy
from placeopt.learning.training.reinforce import Settings, Trainer


def test_weights_of_placeto_are_checked_before_the_search(tmp_path: Path) -> None:
    problem = built(np.array([[1, 2], [3, 1]]), [(0, 1)], payload=[1])
    trainer = Trainer(make_agent("placeto", devices=2), [problem], [problem], Settings(episodes=0))
    trainer.run()
    save_policy(tmp_path / "placeto", trainer)
    weights = str(tmp_path / "placeto")
    assert po.solve(problem, "giph", weights=weights, restarts=1).schedule is not None
    other = built(np.array([[1, 2, 3], [3, 1, 2]]))
    with pytest.raises(UsageError, match="placeto was trained for 2 devices, but the problem has 3"):
        # The time limit is over before the first move.
        po.solve(other, "giph", weights=weights, time_limit=1e-9)
