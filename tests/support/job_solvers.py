"""A solver that states a schedule and then does what a test wants; another process can import it."""

from __future__ import annotations

import os
import time
from typing import Any, ClassVar, Literal

from placeopt.errors import PlaceoptError
from placeopt.model.objective import evaluate
from placeopt.model.problem import Problem
from placeopt.protocol import ALL_METRICS, Answer, Info, Options, Progress, Settings, Termination
from placeopt.simulation import simulate


class AwkwardError(PlaceoptError):
    """Cannot be unpickled."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


class Choice(Settings):
    then: Literal["wait", "end", "raise", "leave", "awkward", "exit", "hang", "print", "grow"] = "wait"
    """What it does after its first schedule."""


class Stating:
    name: ClassVar[str] = "stating"
    info: ClassVar[Info] = Info("for tests", "none", "-", anytime=True, warm_start=True, metrics=ALL_METRICS)
    settings_type: ClassVar[type[Choice]] = Choice

    def solve(self, problem: Problem, options: Options, settings: Choice) -> Answer:
        schedule = options.initial or simulate(problem, problem.feasible.argmax(axis=1))
        answer = Answer(Termination.COMPLETED, schedule)
        assert options.on_progress is not None
        options.on_progress(Progress(0.0, evaluate(problem, schedule)[0], schedule=schedule))
        options.on_progress(Progress(0.0, bound=1))
        return {"end": lambda: answer, "wait": lambda: self.wait(options, answer)}.get(
            settings.then, lambda: self.misbehave(settings.then, answer)
        )()

    def wait(self, options: Options, answer: Answer) -> Answer:
        while not options.should_stop():
            time.sleep(0.01)
        return Answer(Termination.INTERRUPTED, answer.schedule)

    def misbehave(self, how: str, answer: Answer) -> Any:
        if how == "print":
            print("a line of the solver", flush=True)
            os.write(1, b"another one\n")
            return answer
        if how == "raise":
            raise ValueError("nothing works")
        if how == "leave":
            raise SystemExit(3)
        if how == "awkward":
            raise AwkwardError(1, 2)
        if how == "grow":
            held = [bytes(range(256)) * 2**12]
            while len(held) < 2**11:  # 2 GiB
                held.append(bytes(held[-1][::-1]))
        time.sleep(0.3)  # its schedule is sent
        if how == "exit":
            os._exit(7)
        while True:
            time.sleep(1)
