"""Ctrl-C in a Python program: a search returns its incumbent; a second one, or one elsewhere, raises."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import placeopt as po
from placeopt.orchestration import keyboard
from placeopt.protocol import Answer, Info, Options, Settings, Termination
from placeopt.simulation import simulate

HEFT_10 = po.load(Path(__file__).parents[2] / "problems" / "heft-10.yaml")


class Interrupted:
    """Finds a schedule, and gets Ctrl-C as often as stated before it asks whether to stop."""

    name = "interrupted"
    settings_type = Settings

    def __init__(self, times: int = 1, *, anytime: bool = True) -> None:
        self.times = times
        self.info = Info("is interrupted", "none", "-", anytime=anytime)

    def solve(self, problem: Any, options: Options, settings: Settings) -> Answer:  # noqa: ARG002
        for _ in range(self.times):
            signal.raise_signal(signal.SIGINT)
        stopped = options.should_stop()
        return Answer(
            Termination.INTERRUPTED if stopped else Termination.COMPLETED, simulate(problem, [0] * problem.n_tasks)
        )


@pytest.fixture(autouse=True)
def _python_handles_it(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(keyboard, "_latest", float("-inf"))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def test_a_search_returns_its_incumbent() -> None:
    result = po.solve(HEFT_10, Interrupted())
    assert (result.termination, result.feasible) == (Termination.INTERRUPTED, True)


def test_a_heuristic_before_a_consolidation_returns_its_schedule() -> None:
    spread = po.Schedule(np.arange(HEFT_10.n_tasks) % 3, np.arange(HEFT_10.n_tasks))

    class Spread(Interrupted):
        def solve(self, problem: Any, options: Options, settings: Settings) -> Answer:
            super().solve(problem, options, settings)
            return Answer(Termination.COMPLETED, spread)

    result = po.solve(HEFT_10, Spread(anytime=False), consolidate=1)
    assert (result.termination, result.feasible) == (Termination.COMPLETED, True)
    assert result.consolidation is not None
    assert result.consolidation.stopped
    assert result.varies_by == "clock"


@pytest.mark.parametrize(
    ("solver", "should_stop"),
    [(Interrupted(2), None), (Interrupted(anytime=False), None), (Interrupted(), lambda: False)],
    ids=["twice", "no search", "should_stop"],
)
def test_it_raises_otherwise(solver: Interrupted, should_stop: Callable[[], bool] | None) -> None:
    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        po.solve(HEFT_10, solver, should_stop=should_stop)


def test_a_loop_of_searches_can_be_ended() -> None:
    po.solve(HEFT_10, Interrupted())
    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        po.solve(HEFT_10, Interrupted())


def test_a_handler_of_the_program_stays() -> None:
    received: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _frame: received.append(number))
    try:
        assert po.solve(HEFT_10, Interrupted()).termination is Termination.COMPLETED
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    assert received == [signal.SIGINT]
