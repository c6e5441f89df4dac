"""Settings of passes: parsing, checks, reports, and listings."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint
from typing import Any, ClassVar

import numpy as np
import pytest
from commandline import run
from pydantic import Field

import placeopt as po
from placeopt.model.building import build_problem
from placeopt.model.problem import Problem
from placeopt.passes import Reduction, apply_passes, catalog, find_pass, pass_settings, pass_text
from placeopt.passes.rebuilding import rebuilt
from placeopt.protocol import Settings


class Fewer(Settings):
    """A third party's pass with settings."""

    name: ClassVar[str] = "fewer"
    exact: ClassVar[bool] = False
    summary: ClassVar[str] = "leaves out devices"
    gives_up: ClassVar[str] = "the devices that it leaves out"
    citation: ClassVar[str] = "@misc{nobody}"

    keep: int = Field(default=2, ge=1)
    """How many devices stay."""
    at_least: float = 0.5
    """Which share of them stays at least."""

    def apply(self, problem: Problem) -> Reduction | None:
        stay = max(self.keep, int(problem.n_devices * self.at_least))
        if stay >= problem.n_devices:
            return None
        reduced, _ = rebuilt(problem, devices=np.arange(stay))
        return Reduction(reduced, lambda schedule: schedule, lambda _: None, "some left out")


class Plain:
    """A pass without settings or a `gives_up` line."""

    name: ClassVar[str] = "plain"
    exact: ClassVar[bool] = False
    summary: ClassVar[str] = "does nothing"
    citation: ClassVar[str] = ""

    def apply(self, problem: Problem) -> Reduction | None:  # noqa: ARG002
        return None


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint(each.name, f"{__name__}:{each.__name__}", catalog.GROUP) for each in (Fewer, Plain)]
    monkeypatch.setattr(catalog, "entry_points", lambda group: points if group == catalog.GROUP else [])


def problem(devices: int = 4) -> Problem:
    return build_problem(
        task_names=["a", "b"], device_names=[f"d{d}" for d in range(devices)], duration=np.ones((2, devices))
    )


class TestFinding:
    def test_defaults_and_given_values(self) -> None:
        assert find_pass("fewer") == Fewer()
        assert find_pass("fewer:keep=3") == Fewer(keep=3)
        assert find_pass("fewer: keep = 1, at-least = 0.25") == Fewer(keep=1, at_least=0.25)
        assert find_pass(Fewer(keep=1)) == Fewer(keep=1)
        assert find_pass("plain").name == "plain"

    def test_a_pass_as_text_is_found_again(self) -> None:
        assert pass_text(Fewer()) == "fewer"
        assert pass_text(Fewer(keep=1, at_least=0.25)) == "fewer:keep=1,at_least=0.25"
        assert find_pass(pass_text(Fewer(keep=1, at_least=0.25))) == Fewer(keep=1, at_least=0.25)
        assert (pass_text(Plain()), pass_settings(Plain())) == ("plain", {})
        assert pass_settings(Fewer()) == {"keep": 2, "at_least": 0.5}

    @pytest.mark.parametrize(
        ("wanted", "message"),
        [
            ("fewer:kep=1", 'pass fewer has no setting "kep"; did you mean keep'),
            ("fewer:colour=1", 'pass fewer has no setting "colour"; it has keep, at_least'),
            ("fewer:keep=0", "pass fewer: setting keep = 0: input should be greater than or equal to 1"),
            ("fewer:keep=x", "pass fewer: setting keep = x: input should be a valid integer"),
            ("fewer:keep", 'pass "fewer:keep": "keep" is not a setting; expected NAME:KEY=VALUE,KEY=VALUE'),
            ("fewer:", 'pass "fewer:": "" is not a setting; expected NAME:KEY=VALUE'),
            ("fewer:keep=1,keep=2", "keep is set twice"),
            ("plain:keep=1", 'pass "plain:keep=1": plain has no settings'),
            ("relays:keep=1", "relays has no settings"),
            ("fewr:keep=1", 'unknown pass "fewr"; did you mean fewer'),
            (3, "3 is not a pass; expected a name"),
            (Plain, "Plain'> is not a pass; expected a name"),
        ],
    )
    def test_mistakes(self, wanted: Any, message: str) -> None:
        with pytest.raises(po.UsageError, match=message):
            find_pass(wanted)


class TestSolving:
    def test_what_was_applied_is_told_with_its_settings(self) -> None:
        result = po.solve(problem(), "heft", passes=["fewer:keep=1,at_least=0", Fewer(keep=1, at_least=0.2), "plain"])
        assert result.passes is not None
        assert result.passes.names == ("fewer:keep=1,at_least=0.0",)
        assert result.passes.after.devices == 1
        data = result.to_dict()["passes"]
        assert data["names"] == ["fewer:keep=1,at_least=0.0"]
        assert data["settings"] == {"fewer:keep=1,at_least=0.0": {"keep": 1, "at_least": 0.0}}
        json.dumps(data)

    def test_the_same_pass_twice_with_other_settings(self) -> None:
        chain = apply_passes(problem(), [Fewer(keep=3), Fewer(keep=1)])
        assert chain.names == ("fewer:keep=3", "fewer:keep=1")
        assert chain.inexact == chain.names

    def test_wrong_settings_are_told_before_anything_runs(self) -> None:
        with pytest.raises(po.UsageError, match="did you mean keep"):
            po.solve(problem(), "heft", passes=["fewer:kep=1"])
        with pytest.raises(po.UsageError, match="7 is not a pass"):
            po.solve(problem(), "heft", passes=[7])  # type: ignore[list-item]


class TestCommandLine:
    def test_list(self) -> None:
        text = run("passes").out
        assert "may lose" in text
        assert "relays" in text
        card = json.loads(run("passes", "--json").out)[-2]
        assert (card["name"], card["gives_up"], card["exact"]) == ("fewer", "the devices that it leaves out", False)
        assert [setting["name"] for setting in card["settings"]] == ["keep", "at_least"]

    def test_one(self) -> None:
        text = " ".join(run("passes", "fewer").out.split())
        assert "--pass fewer:key=value" in text
        assert "keep How many devices stay. Default: 2." in text
        assert "@misc{nobody}" in text
        assert json.loads(run("passes", "plain", "--json").out)["gives_up"] == "perhaps the optimum"
        assert "keeps the optimum" in run("passes", "relays").out

    def test_citations(self) -> None:
        assert run("passes", "fewer", "--cite").out == "@misc{nobody}\n"
        assert run("passes", "plain", "--cite").out == "plain implements no paper\n"
        assert "@misc{nobody}" in run("passes", "--cite").out

    def test_unknown(self) -> None:
        done = run("passes", "relys")
        assert (done.code, done.out) == (2, "")
        assert "did you mean relays" in done.err

    def test_solve(self, tmp_path: Any) -> None:
        path = tmp_path / "two.yaml"
        path.write_text("placeopt: 1\ndevices: {d: {count: 4}}\ntasks: {a: {time: 3}, b: {time: 2}}\n")
        done = run("solve", path, "--pass", "fewer:keep=1,at_least=0", "--json")
        data = json.loads(done.out)
        assert data["makespan"] == 5
        assert data["passes"]["settings"] == {"fewer:keep=1,at_least=0.0": {"keep": 1, "at_least": 0.0}}
        done = run("solve", path, "--pass", "fewer:keep=none")
        assert (done.code, done.out) == (2, "")
        assert "pass fewer: setting keep = none: input should be a valid integer" in done.err
