"""Counterexamples in the placement models: the command, its output, and the claims of the models."""

from __future__ import annotations

import contextlib
import io
import json
import re
import signal
from dataclasses import replace
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from brute_force import small_problem
from commandline import run
from rich.console import Console

import placeopt as po
from placeopt.cli.commands.submodular import default_longest, default_samples
from placeopt.cli.terminal.submodular import Findings, print_findings
from placeopt.model.building import build_problem
from placeopt.model.problem import Problem
from placeopt.submodular import Check, Checks, Counterexample, check_submodular
from placeopt.submodular.independence import state_of
from placeopt.submodular.placement import Form, PlacementModel, PlacementSettings

ROOT = Path(__file__).parents[2]
FIVE = ROOT / "problems" / "five-node.yaml"
FIGURES = re.compile(r"(diminishing returns|monotone|independent of order) +(yes|no) +([\d,]+) +([\d,]+) +(yes|no)")


def figures(text: str) -> dict[str, tuple[bool, int, int, bool]]:
    """For each property: whether claimed, cases, violations, all cases."""
    return {
        name: (claimed == "yes", int(cases.replace(",", "")), int(violations.replace(",", "")), complete == "yes")
        for name, claimed, cases, violations, complete in FIGURES.findall(text)
    }


def model_of(problem: Problem, form: Form = "inside", **settings: object) -> PlacementModel:
    return PlacementModel(problem, form, PlacementSettings.model_validate(settings))


def printed(findings: Findings, width: int) -> str:
    out = io.StringIO()
    print_findings(Console(file=out, width=width, force_terminal=True, color_system=None, highlight=False), findings)
    return out.getvalue()


class TestCommand:
    def test_counterexample_is_printed_with_names(self) -> None:
        done = run("check-submodular", FIVE, "--set", "cap=100", "--samples", 60)
        assert done.code == 1
        assert not done.err
        found = figures(done.out)
        assert list(found) == ["diminishing returns", "monotone", "independent of order"]
        assert found["diminishing returns"][2] > 0
        assert found["independent of order"][2] > 0
        assert found["monotone"][2] == 0
        assert not any(claimed or complete for claimed, _, _, complete in found.values())
        assert re.search(
            r"returns grow: placing n3 on core\d gains 1.411 as the first placement, 1.995 after n4 on", done.out
        )
        assert "the order matters: f is" in done.out
        assert "greedy has no guarantee" in done.out
        assert "submodular-g with cap = 100: 60 random sequences of up to 5 placements, seed 0" in done.out

    def test_improved_model_is_not_monotone(self) -> None:
        done = run("check-submodular", FIVE, "--model", "submodular-gi", "--set", "cap=100", "--samples", 60)
        assert done.code == 1
        assert re.search(r"not monotone: placing n\d on \w+ after n\d on \w+, n\d on \w+ loses 2\.2", done.out)

    def test_no_counterexample_for_the_submodular_case(self) -> None:
        for model in ("submodular-g", "submodular-gi"):
            done = run(
                "check-submodular", FIVE, "--model", model, "--set", "parallelism=false", "--set", "load=false",
                "--samples", 100,
            )  # fmt: skip
            assert done.code == 0
            assert all(claimed and violations == 0 for claimed, _, violations, _ in figures(done.out).values())
            assert "is not a proof" in done.out
            assert "no guarantee" not in done.out

    def test_small_problem_is_enumerated(self, tmp_path: Path) -> None:
        path = tmp_path / "two.json"
        path.write_text(
            json.dumps({
                "placeopt": 1,
                "devices": {"a": {"type": "cpu"}, "b": {"type": "cpu"}},
                "tasks": {"x": {"time": "2 s"}, "y": {"time": "3 s", "after": "x"}},
            })
        )  # fmt: skip
        done = run("check-submodular", path, "--set", "parallelism=false", "--set", "load=false")
        assert done.code == 0, done.err
        # 1 + 4 + 8 sequences; gains of 4 pairs at the start, of 2 after each first; 4 sets in two orders.
        assert figures(done.out) == {
            "diminishing returns": (True, 8, 0, True),
            "monotone": (True, 12, 0, True),
            "independent of order": (True, 4, 0, True),
        }
        assert "all sequences of placements" in done.out
        assert "all three properties on this problem" in done.out
        assert run("check-submodular", path).code == 1  # with load, the order matters

    def test_json_has_names_and_equal_numbers(self) -> None:
        arguments = ("check-submodular", FIVE, "-m", "submodular-gi", "--set", "cap=100", "--samples", 100, "--seed", 3)
        done, text = run(*arguments, "--json"), run(*arguments)
        assert done.code == text.code == 1
        data = json.loads(done.out)
        assert list(data) == [
            "problem", "fingerprint", "model", "settings", "seed", "samples", "longest", "exhaustive", "stopped",
            "counterexample_found", "claims_hold", "properties",
        ]  # fmt: skip
        assert (data["problem"], data["model"], data["seed"], data["samples"]) == ("five-node", "submodular-gi", 3, 100)
        assert data["settings"]["cap"] == "100"
        assert data["settings"]["memory"] == "step"
        assert data["counterexample_found"]
        assert data["claims_hold"]
        assert not data["stopped"]
        assert not data["exhaustive"]
        keys = {"diminishing_returns": "gain", "monotone": "gain", "independent_of_order": "value"}
        assert list(data["properties"]) == list(keys)
        shown = figures(text.out)
        for (key, number), name in zip(keys.items(), shown, strict=True):
            found = data["properties"][key]
            assert (found["claimed"], found["cases"], found["violations"], found["exhaustive"]) == shown[name]
            assert not found["proved"]
            example = found["counterexample"]
            assert set(example) == {"before", "after", "element", f"{number}_before", f"{number}_after"}
            pairs = [*example["before"], *example["after"], *([example["element"]] if example["element"] else [])]
            for pair in pairs:
                assert pair["task"] in ("n1", "n2", "n3", "n4", "n5")
                assert pair["device"] in ("core0", "core1", "gpu")
            assert (example["element"] is None) == (number == "value")

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--set", "paralelism=no"], 'check-submodular has no setting "paralelism"; did you mean parallelism?'),
            (["--set", "knee=7"], "check-submodular: setting knee = 7: input should be less than 1"),
            (["--set", "cap=soon"], 'setting cap: "soon" is not a time'),
            (["--set", "tiers=5 GiB at noon"], 'setting tiers, "5 GiB at noon": "noon" is not a bandwidth'),
            (["--set", "load"], "expected key=value"),
            (["--model", "submodular-q"], 'unknown model "submodular-q"; did you mean submodular-g'),
            (["--model", "heft"], 'unknown model "heft"; expected submodular-g, submodular-gi'),
            (["--samples", "0"], "--samples is 0; expected 1 or more"),
            (["--longest", "-3"], "--longest is -3; expected 1 or more"),
            (["--seed", "-1"], "--seed is -1; expected a whole number"),
        ],
    )
    def test_wrong_usage(self, arguments: list[str], message: str) -> None:
        done = run("check-submodular", FIVE, *arguments)
        assert done.code == 2
        assert message in done.err
        assert not done.out

    def test_interrupt_keeps_findings(self, monkeypatch: pytest.MonkeyPatch) -> None:
        original, added = PlacementModel.add, 0

        def add(self: PlacementModel, state: object, element: int) -> None:
            nonlocal added
            added += 1
            if added == 100:
                signal.raise_signal(signal.SIGINT)
            original(self, state, element)  # type: ignore[arg-type]

        monkeypatch.setattr(PlacementModel, "add", add)
        done = run("check-submodular", FIVE, "--samples", 10**12)
        assert done.code == 130
        assert "stopping" in done.err
        assert "stopped early" in done.out
        assert 0 < figures(done.out)["monotone"][1] < 10**5

    def test_interrupt_ends_the_enumeration(self, monkeypatch: pytest.MonkeyPatch) -> None:
        original, copied = PlacementModel.copy, 0

        def copy(self: PlacementModel, state: object) -> object:
            nonlocal copied
            copied += 1
            if copied == 50:
                signal.raise_signal(signal.SIGINT)
            return original(self, state)  # type: ignore[arg-type]

        monkeypatch.setattr(PlacementModel, "copy", copy)
        done = run("check-submodular", FIVE, "--exhaustive", "--json")
        data = json.loads(done.out)
        assert done.code == 130
        assert data["stopped"]
        assert not data["exhaustive"]

    def test_large_problems_have_fewer_and_shorter_sequences(self) -> None:
        small = po.load(FIVE)
        assert (default_longest(small), default_samples(small, 256)) == (256, 1000)
        large = replace(small, task_names=("t",) * 36_000)
        assert large.n_tasks == 36_000
        longest = default_longest(large)
        assert 10 < longest < 1000
        assert 10 < default_samples(large, longest) < 100
        assert default_samples(large, 36_000) == 10


class TestReport:
    @pytest.fixture
    def problem(self) -> Problem:
        n = 12
        return build_problem(
            task_names=[f"block{i}/convolution/of-a-long-name" for i in range(n)], device_names=("core[0]", "gpu0"),
            duration=np.ones((n, 2), dtype=np.int64), edges=[(i, i + 1) for i in range(n - 1)], payload=[1] * (n - 1),
        )  # fmt: skip

    def findings(self, problem: Problem, *, claimed: bool = False, stopped: bool = False) -> Findings:
        fine = Check(claimed, 10, 0, None, False)
        long = tuple(range(0, 22, 2))
        grow = Check(claimed, 10, 2, Counterexample((0,), long, 23, 1.25, 1.25000001), False)
        order = Check(False, 10, 1, Counterexample(long, long[::-1], None, 3.0, 2.0), False)
        return Findings(
            problem, "submodular-g", PlacementSettings(load=False), Checks(grow, fine, order, 7), 256, 0, stopped
        )

    @pytest.mark.parametrize("width", [80, 140])
    def test_lines_fit_and_long_sets_are_shortened(self, problem: Problem, width: int) -> None:
        text = printed(self.findings(problem), width)
        assert max(map(len, text.split("\n"))) <= width
        words = " ".join(text.split())
        assert "once block1/convolution/of-a-long-name on core[0], " in words
        assert "block4/convolution/of-a-long-name on core[0], 5 more, block10/convolution/of-a-long-name on" in words
        assert "gains 1.25000000 after" in words
        assert ", 1.25000001 once" in words
        assert "f is 3.000 after" in words
        assert "but 2.000 after" in words
        assert "load = false: 7 random sequences of up to 12 placements" in words
        assert "bug" not in words
        assert "stopped" not in words

    def test_refuted_claim_is_reported_as_a_bug(self, problem: Problem) -> None:
        text = " ".join(printed(self.findings(problem, claimed=True, stopped=True), 140).split())
        assert (
            "a bug in placeopt: the model claims a property that was refuted: diminishing returns; please report it"
            in text
        )
        assert "stopped early" in text

    def test_command_detects_a_false_claim(self, monkeypatch: pytest.MonkeyPatch) -> None:
        original = PlacementModel.__init__

        def lying(self: PlacementModel, *args: object) -> None:
            original(self, *args)  # type: ignore[arg-type]
            self.submodular = self.path_free = True

        monkeypatch.setattr(PlacementModel, "__init__", lying)
        done = run("check-submodular", FIVE, "--samples", 50)
        assert done.code == 1
        assert "diminishing returns, independent of order; please report it" in done.out


class TestFiveNode:
    """The example of the paper; i_cap = 100 as in appendix 6.1. Pairs: task * 3 + device."""

    def gain(self, model: PlacementModel, before: list[int], element: int) -> float:
        return float(model.gains(state_of(model, before), np.array([element]))[0])

    def test_gain_of_node_4_increases_after_node_3(self) -> None:
        n3_core1, n4_gpu, n5_gpu = 2 * 3 + 1, 3 * 3 + 2, 4 * 3 + 2
        inside, outside = model_of(po.load(FIVE), cap="100"), model_of(po.load(FIVE), "outside", cap="100")
        # Round 1: f(E_34) = 1.407; round 2: f_3 = sqrt(3.96) = 1.989 (truncated) with E_13.
        assert self.gain(inside, [], n4_gpu) == pytest.approx(sqrt(1.98), rel=1e-12)
        assert self.gain(inside, [n3_core1], n4_gpu) == pytest.approx(sqrt(3.96), rel=1e-12)
        assert self.gain(outside, [], n4_gpu) == pytest.approx(sqrt(1.98), rel=1e-12)
        both = 2 * (sqrt(1.99) + sqrt(1.98))
        assert self.gain(outside, [n3_core1], n4_gpu) == pytest.approx(both - sqrt(1.99), rel=1e-12)
        assert self.gain(outside, [n4_gpu, n3_core1], n5_gpu) == pytest.approx(-2.2526, abs=1e-4)

    def test_load_above_twice_the_capacity(self) -> None:
        problem = po.load(FIVE)
        late = model_of(problem, cap="4", parallelism=False)
        n2, n3, n5 = 3 * 1 + 1, 3 * 2 + 1, 3 * 4 + 1
        assert self.gain(late, [n5], n2) == pytest.approx(-0.866, abs=5e-4)
        assert self.gain(late, [n5, n3], n2) == pytest.approx(-0.618, abs=5e-4)
        assert self.gain(model_of(problem, cap="2"), [3 * 2], 3 * 3) == pytest.approx(-0.225, abs=5e-4)

    def test_value_depends_on_the_order_with_load(self) -> None:
        model = model_of(po.load(FIVE), cap="100", parallelism=False)
        assert model.value(state_of(model, [2, 8])) == pytest.approx(sqrt(1.98 + 1.95), rel=1e-12)
        assert model.value(state_of(model, [8, 2])) == pytest.approx(sqrt(1.97 + 1.95), rel=1e-12)


def drawn(rng: np.random.Generator, problem: Problem) -> dict[str, object]:
    rate = f"{max(1, int(1 / problem.resolution))} B/s"
    return {
        "parallelism": bool(rng.random() < 0.3),
        "load": bool(rng.random() < 0.3),
        "communication": bool(rng.random() < 0.2),
        "memory": str(rng.choice(["unlimited", "step", "linear"], p=[0.5, 0.35, 0.15])),
        "memory_balance": float(rng.choice([0, 0, 0, 0.5])),
        "curve": str(rng.choice(["sqrt", "log", "2 to 3, 0.5 to 4, 0"])),
        "cap": str(rng.choice(["total", "3", "9"])),
        "tiers": str(rng.choice(["", "", f"5 B; 1 TiB at {rate}", f"5 B at {rate}; 1 TiB"])),
    }


class TestClaims:
    """The claims of the models hold: small problems are enumerated, others sampled."""

    def test_claims_hold_for_random_settings(self) -> None:
        rng = np.random.default_rng(0)
        claimed, refuted = 0, 0
        for _ in range(60):
            problem = small_problem(rng)
            settings = drawn(rng, problem)
            form: Form = "inside" if rng.random() < 0.5 else "outside"
            model = model_of(problem, form, **settings)
            found = check_submodular(model, 15, independence=model.independence())
            assert found.claims_hold, (form, settings, found)
            claimed += model.submodular
            refuted += found.refuted
        assert claimed > 2
        assert refuted > 20

    @pytest.mark.parametrize("form", ["inside", "outside"])
    def test_claims_are_made_if_proved(self, form: Form) -> None:
        problem = po.load(FIVE)
        modular = {"parallelism": False, "load": False}
        for settings in ({}, {"memory": "unlimited"}, {"cap": "4"}, {"curve": "log"}, {"curve": "gpu: 1 to 2, 0"}):
            model = model_of(problem, form, **modular, **settings)
            assert model.submodular
            assert model.monotone
            assert model.path_free
        for settings in (
            {"parallelism": True}, {"load": True}, {"communication": True}, {"memory": "linear"}, {"cap": "3"},
            {"memory_balance": 0.5}, {"tiers": "5 B; 1 TiB at 1 B/s"},
        ):  # fmt: skip
            assert not model_of(problem, form, **{**modular, **settings}).submodular
        tight = replace(problem, resident=np.ones(5, dtype=np.int64), capacity=np.array([5, 4, 5]))
        assert not model_of(tight, form, **modular).path_free
        assert model_of(replace(tight, capacity=np.array([5, 5, 5])), form, **modular).path_free

    def test_gains_decrease_along_sequences_without_parallelism(self) -> None:
        """Regardless of load, memory and balance, as long as no device has more than twice its time capacity."""
        rng = np.random.default_rng(1)
        disordered = 0
        for _ in range(40):
            problem = small_problem(rng)
            settings = drawn(rng, problem) | {"parallelism": False, "communication": False, "tiers": "", "cap": "total"}
            model = model_of(problem, "inside" if rng.random() < 0.5 else "outside", **settings)
            found = check_submodular(model, 15, independence=model.independence())
            assert not found.submodular.refuted
            assert not found.monotone.refuted
            disordered += found.path_free.refuted
        assert disordered > 5

    def test_placements_on_the_same_device_never_increase_a_gain(self) -> None:
        """The case of the proof in the paper, with parallelism; the gap is in the other case."""
        rng = np.random.default_rng(2)
        raised = {True: 0, False: 0}
        for _ in range(60):
            problem = small_problem(rng)
            model = model_of(problem, memory="unlimited")
            allowed, m = model.independence(), problem.n_devices
            for _ in range(5):
                state, independent = model.start(), allowed.start()
                for element in rng.permutation(model.size).tolist():
                    if not allowed.open(independent, np.array([element]))[0]:
                        continue
                    allowed.add(independent, element)
                    others = np.array(
                        [e for e in range(model.size) if allowed.open(independent, np.array([e]))[0]], int
                    )
                    before = model.gains(state, others)
                    model.add(state, element)
                    after = model.gains(state, others)
                    for one, grew in zip(others.tolist(), after > before + 1e-9, strict=True):
                        raised[one % m == element % m] += bool(grew)
        assert raised[True] == 0
        assert raised[False] > 20


class TestStopping:
    def test_length_of_sequences_is_limited(self) -> None:
        model = model_of(po.load(FIVE))
        found = check_submodular(model, 50, independence=model.independence(), longest=1)
        assert found.samples == 50
        assert found.path_free.cases == 0
        assert found.submodular.cases > 0
        with pytest.raises(ValueError, match="longest 0: expected 1 or more"):
            check_submodular(model, longest=0)

    def test_stops_before_the_next_sequence(self) -> None:
        model = model_of(po.load(FIVE))
        asked = iter([False, False, False])
        found = check_submodular(model, 50, independence=model.independence(), should_stop=lambda: next(asked, True))
        assert found.samples == 3

    def test_exhaustive_enumerates_all_sequences(self) -> None:
        problem = replace(po.load(FIVE))
        model = PlacementModel(problem, "inside", PlacementSettings(), feasible=np.eye(5, 3, dtype=np.bool_))
        found = check_submodular(model, independence=model.independence(), exhaustive=True)
        assert found.monotone.exhaustive
        assert found.path_free.exhaustive
        assert found.samples == 0
        assert found.monotone.cases == 15  # three tasks on one device: 3 + 3 * 2 + 6 * 1 gains


class TestDocumentation:
    @pytest.fixture
    def section(self) -> str:
        text = (ROOT / "docs" / "submodular.md").read_text()
        (found,) = re.findall(r"## Is the paper's function submodular\?\n(.*?)\n## ", text, re.DOTALL)
        return str(found)

    def test_example_prints_the_documented_output(self, section: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(ROOT)
        (example,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(example, {})
        said = [re.split(r"[:;]", line.split("# ")[1])[0].strip() for line in example.split("\n") if "print(" in line]
        assert out.getvalue().strip().split("\n") == said

    def test_documented_figures_are_correct(self, section: str) -> None:
        for figure in (
            sqrt(1.98), sqrt(3.96), 2 * (sqrt(1.99) + sqrt(1.98)) - sqrt(1.99),
        ):  # fmt: skip
            assert f"{figure:.4f}" in section
