"""placeopt train: the files, resumption, interruption, and what is refused."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from commandline import Outcome, run
from rich.console import Console

from placeopt.cli.progress import training_bar, training_text
from placeopt.errors import UsageError

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'placeopt[torch]'")
pytest.importorskip("safetensors", reason="safetensors is not installed: pip install 'placeopt[torch]'")

import numpy as np  # noqa: E402

from placeopt.learning.training.checkpoints import load_checkpoint  # noqa: E402
from placeopt.learning.training.folder import Recipe, Training, recipe_of, resumed_recipe  # noqa: E402
from placeopt.learning.training.reinforce import Point, Progress, Trainer  # noqa: E402
from placeopt.learning.training.settings import Settings  # noqa: E402
from placeopt.learning.training.weights import load_policy  # noqa: E402

PROBLEMS = Path(__file__).parents[2] / "problems"
HEFT_10 = PROBLEMS / "heft-10.yaml"
QUICK = ("--every", 2, "--steps", 0.5, "--cases", 1)


def train(out: Path, *arguments: object, problem: object = HEFT_10) -> Outcome:
    return run("train", problem, "--out", out, *QUICK, *arguments)


def resume(out: Path, *arguments: object) -> Outcome:
    return run("train", "--out", out, "--resume", *arguments)


def weights(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The best weights, and all tensors of the checkpoint."""
    checkpoint = load_checkpoint(folder / "checkpoint.safetensors")
    best = load_policy(folder / "policy.safetensors").agent.network.state_dict()
    return best, dict(checkpoint.tensors)


def same(one: Path, other: Path) -> bool:
    return all(
        a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)
        for a, b in zip(weights(one), weights(other), strict=True)
    )


class TestFiles:
    def test_a_training_writes_its_files_and_the_solver_uses_them(self, tmp_path: Path) -> None:
        out = tmp_path / "run"
        done = train(out, "--episodes", 5, "--seed", 3)
        assert done.code == 0, done.err
        assert "giph, 5 episodes, on 1 problem" in done.out
        assert done.err == ""  # no progress in a pipe
        kept = {path.name for path in out.iterdir()}
        assert kept - {"curve.svg"} == {"policy.safetensors", "checkpoint.safetensors", "curve.csv"}
        header = load_policy(out / "policy.safetensors").header
        assert header.command == (
            f"placeopt train {HEFT_10} --episodes 5 --steps 0.5 --every 2 --cases 1 --seed 3 --out FOLDER"
        )
        assert (header.train, header.data_set, header.settings.seed) == ((str(HEFT_10),), None, 3)
        rows = list(csv.DictReader((out / "curve.csv").read_text().splitlines()))
        assert [int(row["episode"]) for row in rows] == [0, 2, 4, 5]
        assert min(float(row["ratio"]) for row in rows) == header.ratio
        assert [bool(row["mean_return"]) for row in rows] == [False, True, True, True]
        solved = run("solve", HEFT_10, "-s", "giph", "--set", f"weights={out / 'policy.safetensors'}", "-t", 1)
        assert solved.code == 0, solved.err

    def test_the_learning_curve_is_drawn(self, tmp_path: Path) -> None:
        pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'placeopt[plots]'")
        assert train(tmp_path / "run", "-n", 2).code == 0
        assert "<svg" in (tmp_path / "run" / "curve.svg").read_text()

    def test_without_matplotlib_a_note_says_so(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("placeopt.views.plots.targets.find_spec", lambda _: None)
        done = train(tmp_path / "run", "-n", 1)
        assert done.code == 0
        assert "no picture of the curve: it needs matplotlib: pip install 'placeopt[plots]'" in done.err
        assert not (tmp_path / "run" / "curve.svg").exists()

    def test_the_command_of_a_policy_trains_it_again(self, tmp_path: Path) -> None:
        options = "-n 4 -b 2 --variant giph-ne --fault incoming-means --fault undiscounted --potential none --noise 0.1"
        assert train(tmp_path / "one", *options.split(), "--objective", "total_cost", "--rate", 0.123456789).code == 0
        command = load_policy(tmp_path / "one" / "policy.safetensors").header.command
        again = run(*command.replace("FOLDER", str(tmp_path / "two")).split()[1:])
        assert again.code == 0, again.err
        assert same(tmp_path / "one", tmp_path / "two")

    def test_json_states_the_outcome(self, tmp_path: Path) -> None:
        done = train(tmp_path / "run", "-n", 2, "--json")
        data = json.loads(done.out)
        assert data["episodes"] == 2
        assert data["best"] in data["curve"]
        assert data["command"].startswith("placeopt train ")

    def test_folders_and_data_sets(self, tmp_path: Path) -> None:
        folder = tmp_path / "problems"
        folder.mkdir()
        for name in ("b.yaml", "a.yaml"):
            shutil.copy(HEFT_10, folder / name)
        (folder / "notes.txt").write_text("not a problem")
        done = train(tmp_path / "run", "-n", 1, "--evaluate-on", PROBLEMS / "peft-10.yaml", problem=folder)
        assert done.code == 0, done.err
        assert "on 2 problems" in done.out
        done = run("train", "-d", "giph-single", "-o", tmp_path / "set", *QUICK, "-n", 1)
        assert done.code == 0, done.err
        assert "on 300 problems" in done.out
        assert load_policy(tmp_path / "set" / "policy.safetensors").header.data_set == "giph-single"


class TestResuming:
    def test_a_longer_training_equals_one_without_a_break(self, tmp_path: Path) -> None:
        assert train(tmp_path / "run", "-n", 4).code == 0
        done = resume(tmp_path / "run", "--episodes", 6)
        assert done.code == 0, done.err
        assert "giph, 6 episodes, 4 of them before" in done.out
        assert train(tmp_path / "whole", "-n", 6).code == 0
        assert same(tmp_path / "run", tmp_path / "whole")

    def test_a_complete_training_stays_as_it_is(self, tmp_path: Path) -> None:
        assert train(tmp_path / "run", "-n", 2).code == 0
        before = (tmp_path / "run" / "checkpoint.safetensors").read_bytes()
        assert resume(tmp_path / "run").code == 0
        assert (tmp_path / "run" / "checkpoint.safetensors").read_bytes() == before

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (("--seed", 1), "with --seed 1 (the checkpoint has 0); expected the same options"),
            (("--rate", 0.1, "--variant", "giph-3"), "with --rate 0.1 (the checkpoint has 0.01), --variant giph-3"),
            (("--fault", "one-way"), "with --fault one-way (the checkpoint has none)"),
            (("--data-set", "giph-single"), "with --data-set giph-single (the checkpoint has none)"),
            (("--episodes", 1), "--episodes 1 is less than the 2 that"),
        ],
    )
    def test_other_options_are_refused(self, tmp_path: Path, options: tuple[object, ...], message: str) -> None:
        assert train(tmp_path / "run", "-n", 2).code == 0
        done = resume(tmp_path / "run", *options)
        assert done.code == 2
        assert message in done.err

    def test_the_same_options_are_accepted(self, tmp_path: Path) -> None:
        assert train(tmp_path / "run", "-n", 2, "--fault", "one-way").code == 0
        done = train(tmp_path / "run", "-n", 3, "--fault", "one-way", "--resume")
        assert done.code == 0, done.err

    def test_other_versions_are_noted(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert train(tmp_path / "run", "-n", 1).code == 0
        monkeypatch.setattr("placeopt.learning.training.folder.version_of", lambda: "9.9")
        done = resume(tmp_path / "run", "-n", 2)
        assert done.code == 0
        assert "note: the checkpoint was written with placeopt " in done.err
        assert "(now 9.9); the weights may differ from those without a break" in done.err

    def test_problems_that_have_changed_are_refused(self, tmp_path: Path) -> None:
        problem = tmp_path / "problem.yaml"
        shutil.copy(HEFT_10, problem)
        assert train(tmp_path / "run", "-n", 1, problem=problem).code == 0
        shutil.copy(PROBLEMS / "peft-10.yaml", problem)
        done = resume(tmp_path / "run", "-n", 2)
        assert done.code == 2
        assert "the problems have changed since" in done.err

    def test_an_existing_training_is_not_overwritten(self, tmp_path: Path) -> None:
        assert train(tmp_path / "run", "-n", 1).code == 0
        done = train(tmp_path / "run", "-n", 1)
        assert done.code == 2
        assert "run has a training; expected --resume to go on with it, or another folder" in done.err
        (tmp_path / "run" / "checkpoint.safetensors").unlink()
        assert "policy.safetensors exists and would be overwritten" in train(tmp_path / "run", "-n", 1).err

    def test_two_trainings_do_not_write_one_folder(self, tmp_path: Path) -> None:
        recipe = Recipe(problems=(str(HEFT_10),), settings=Settings(episodes=1, every=2, steps=0.5, cases=1))
        first, second = (Training(tmp_path / "run", recipe) for _ in range(2))
        inside: list[str] = []

        def report(_: Progress) -> bool:
            with pytest.raises(UsageError, match=r"another training is writing .*run; expected another folder"):
                second.run()
            inside.append("refused")
            return False

        first.run(report)
        assert inside == ["refused"]
        before = (tmp_path / "run" / "policy.safetensors").read_bytes()
        with pytest.raises(UsageError, match=r"another training has written .*; expected --resume"):
            second.run()
        assert (tmp_path / "run" / "policy.safetensors").read_bytes() == before
        first.run()  # its own files are no reason to stop

    def test_a_training_that_was_resumed_elsewhere_is_not_overwritten(self, tmp_path: Path) -> None:
        assert train(tmp_path / "run", "-n", 1).code == 0
        recipe = resumed_recipe(tmp_path / "run", {"episodes": 3})
        late = Training(tmp_path / "run", recipe, resume=True)
        assert resume(tmp_path / "run", "-n", 2).code == 0
        with pytest.raises(UsageError, match="another training has written"):
            late.run()
        assert load_checkpoint(tmp_path / "run" / "checkpoint.safetensors").header.episode == 2

    def test_there_must_be_a_checkpoint(self, tmp_path: Path) -> None:
        done = resume(tmp_path)
        assert done.code == 2
        assert "nothing to resume: " in done.err
        assert "checkpoint.safetensors does not exist; expected the folder of an earlier training" in done.err

    def test_a_broken_checkpoint_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "checkpoint.safetensors").write_bytes(b"\0" * 9)
        done = resume(tmp_path)
        assert done.code == 2
        assert "checkpoint.safetensors: is not a complete file of the format safetensors" in done.err


class TestInterruption:
    @pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
    def test_a_signal_drops_the_unfinished_episode_alone(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: int
    ) -> None:
        update = Trainer._update

        def interrupted(trainer: Trainer) -> None:
            if trainer.progress.episode == 2:
                os.kill(os.getpid(), number)
            update(trainer)

        with monkeypatch.context() as patched:
            patched.setattr(Trainer, "_update", interrupted)
            done = train(tmp_path / "a run", "-n", 6)
        assert done.code == code
        assert "stopping" in done.err
        assert f"stopped after 2 of 6 episodes; `placeopt train --out '{tmp_path / 'a run'}' --resume`" in done.err
        assert recipe_of(load_checkpoint(tmp_path / "a run" / "checkpoint.safetensors").header).settings.episodes == 6
        assert resume(tmp_path / "a run").code == 0
        assert train(tmp_path / "whole", "-n", 6).code == 0
        assert same(tmp_path / "a run", tmp_path / "whole")

    def test_a_signal_before_the_first_evaluation_writes_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        evaluate = Trainer._evaluate

        def interrupted(trainer: Trainer) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            evaluate(trainer)

        with monkeypatch.context() as patched:
            patched.setattr(Trainer, "_evaluate", interrupted)
            done = train(tmp_path / "run", "-n", 6)
        assert (done.code, done.out) == (130, "")
        assert "note: stopped before the first evaluation; nothing is written" in done.err
        assert list((tmp_path / "run").iterdir()) == []
        assert train(tmp_path / "run", "-n", 6).code == 0

    def test_a_full_disk_leaves_what_can_be_resumed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(path: Path, *_: object) -> None:
            raise UsageError(f"cannot write {path}: No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr("placeopt.learning.training.folder.save_policy", full)
            done = train(tmp_path / "run", "-n", 4)
        assert (done.code, "No space left on device" in done.err) == (2, True)
        assert resume(tmp_path / "run").code == 0
        assert train(tmp_path / "whole", "-n", 4).code == 0
        assert same(tmp_path / "run", tmp_path / "whole")

    def test_weights_that_diverge_leave_the_best_ones(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        steps = 0

        def diverge(optimiser: Any) -> None:
            nonlocal steps
            steps += 1
            if steps == 5:
                with torch.no_grad():
                    optimiser.param_groups[0]["params"][0][:] = float("nan")

        monkeypatch.setattr(torch.optim.Adam, "step", diverge)
        done = train(tmp_path / "run", "-n", 6)
        assert done.code == 2
        assert "training diverged after 5 episodes: weights or gradients are not finite" in done.err
        assert load_checkpoint(tmp_path / "run" / "checkpoint.safetensors").header.episode == 4


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (("--variant", "gihp"), "unknown variant gihp; did you mean giph?"),
            (("--objective", "period"), "unknown objective period; expected one of makespan, total_cost"),
            (("--fault", "one-wy"), "unknown fault one-wy; did you mean one-way?"),
            (("--potential", "papr"), "unknown potential papr; did you mean paper?"),
            (("--device", "gpu"), "unknown device gpu; expected one of auto, cpu, cuda"),
            (("--rate", 0), "rate: 0.0 is out of range; expected more than 0"),
            (("--rate", "nan"), "rate: nan is out of range"),
            (("--seed", 2**63), "seed: 9223372036854775808 is too large; expected at most"),
            (("--objective", "energy"), "objective: energy is 0 for the random first placements of the evaluation"),
            (("--batch", 3, "--peers", 2), "batch: 3 is not a multiple of peers, 2"),
            (("--data-set", "giph-single"), "expected either problem files or a data set to train on"),
            (("--evaluate-on", PROBLEMS / "nothing.yaml"), "nothing.yaml: no such file"),
        ],
    )
    def test_wrong_options(self, tmp_path: Path, options: tuple[object, ...], message: str) -> None:
        done = train(tmp_path / "run", *options)
        assert done.code == 2
        assert message in done.err
        assert not (tmp_path / "run").exists()

    @pytest.mark.parametrize(
        ("key", "value", "message"),
        [
            ("variant", "gihp", "header: unknown variant gihp; did you mean giph?"),
            ("objective", "period", "header: unknown objective period; expected one of"),
            ("train", [], "header: expected either problem files or a data set to train on"),
        ],
    )
    def test_a_checkpoint_with_other_values_is_named(
        self, tmp_path: Path, key: str, value: object, message: str
    ) -> None:
        assert train(tmp_path / "run", "-n", 2).code == 0
        path = tmp_path / "run" / "checkpoint.safetensors"
        data = path.read_bytes()
        size = int.from_bytes(data[:8], "little")
        whole = json.loads(data[8 : 8 + size])
        whole["__metadata__"]["placeopt"] = json.dumps({**json.loads(whole["__metadata__"]["placeopt"]), key: value})
        head = json.dumps(whole).encode()
        path.write_bytes(len(head).to_bytes(8, "little") + head + data[8 + size :])
        done = resume(tmp_path / "run")
        assert done.code == 2
        assert f"{path}: {message}" in done.err

    def test_an_unknown_data_set(self, tmp_path: Path) -> None:
        done = run("train", "-d", "giph-singel", "-o", tmp_path / "run")
        assert done.code == 2
        assert 'unknown data set "giph-singel"; did you mean giph-single?' in done.err

    def test_nothing_to_train_on(self, tmp_path: Path) -> None:
        assert "PROBLEM..., or --data-set NAME" in run("train", "-o", tmp_path / "run").err
        done = train(tmp_path / "run", problem=tmp_path)
        assert f"{tmp_path} has no problem files" in done.err

    def test_every_wrong_file_is_reported(self, tmp_path: Path) -> None:
        (tmp_path / "a.yaml").write_text("placeopt: 1\n")
        (tmp_path / "b.yaml").write_text("{")
        done = train(tmp_path / "run", PROBLEMS / "four-stages.yaml", problem=tmp_path)
        assert done.code == 2
        assert all(f"{name}" in done.err for name in ("a.yaml", "b.yaml"))
        assert "four-stages.yaml: pipeline: is a pipeline; a policy is trained on problems of one run" in done.err

    def test_placeto_needs_one_number_of_devices(self, tmp_path: Path) -> None:
        done = run("train", "-d", "giph-sizes", "--variant", "placeto", "-o", tmp_path / "run")
        assert done.code == 2
        assert "placeto needs problems with the same number of devices; these have 15 to 24" in done.err

    def test_the_folder_must_be_writable(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        assert "file: it is a file; expected a folder" in train(tmp_path / "file").err
        assert "is not a folder" in train(tmp_path / "no" / "run").err

    @pytest.mark.parametrize("library", ["torch", "safetensors"])
    def test_missing_libraries(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str) -> None:
        monkeypatch.setitem(sys.modules, library, None)
        done = train(tmp_path / "run")
        assert done.code == 2
        assert f"learned policies need {library}: pip install 'placeopt[torch]'" in done.err


def test_progress_is_shown_on_a_terminal() -> None:
    state = Progress(np.random.default_rng(0), 35, [Point(0, 1.5), Point(20, 1.25), Point(35, 1.3)])
    assert training_text(state, 1200) == "episode 35 of 1,200, ratio 1.3000, best 1.2500 at 20"
    for hidden in (False, True):
        text = StringIO()
        with training_bar(Console(file=text, force_terminal=True, width=120), 30, 1200, hidden=hidden) as show:
            show(state)
        assert ("episode 35 of 1,200" in text.getvalue()) != hidden
