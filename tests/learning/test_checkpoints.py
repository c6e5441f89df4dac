"""Policies and checkpoints: what is written is read, resumption changes nothing, broken files have clear messages."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from learned_problems import random_problem

from placeopt.errors import DocumentError, UsageError
from placeopt.model.problem import Objective, Term

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'placeopt[torch]'")
pytest.importorskip("safetensors", reason="safetensors is not installed: pip install 'placeopt[torch]'")

from safetensors.torch import load, save  # noqa: E402

from placeopt.learning.networks.variants import make_agent  # noqa: E402
from placeopt.learning.search import LearnedPolicy  # noqa: E402
from placeopt.learning.training.checkpoints import (  # noqa: E402
    Source,
    load_checkpoint,
    save_checkpoint,
    save_policy,
)
from placeopt.learning.training.reinforce import Settings, Trainer  # noqa: E402
from placeopt.learning.training.weights import FORMAT, KEY, PACKAGED, load_policy  # noqa: E402
from placeopt.policies import random_placement, run_episode  # noqa: E402

PROBLEMS = [random_problem(seed, tasks=6, devices=4) for seed in range(3)]
SETTINGS = Settings(episodes=7, every=3, cases=2, steps=1.0)


def make_trainer(name: str = "giph", settings: Settings = SETTINGS, **rest: Any) -> Trainer:
    objective = rest.pop("objective", None)
    devices = 4 if name == "placeto" else 1
    return Trainer(make_agent(name, devices=devices, **rest), PROBLEMS, PROBLEMS, settings, objective=objective)


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.fixture(scope="module")
def trained() -> Trainer:
    trainer = make_trainer()
    trainer.run()
    return trainer


@pytest.fixture
def policy(trained: Trainer, tmp_path: Path) -> Path:
    save_policy(tmp_path / "policy", trained)
    return tmp_path / "policy"


@pytest.fixture
def checkpoint(trained: Trainer, tmp_path: Path) -> Path:
    save_checkpoint(tmp_path / "checkpoint", trained)
    return tmp_path / "checkpoint"


class TestPolicies:
    def test_a_policy_holds_the_best_weights_and_all_parameters(self, tmp_path: Path) -> None:
        settings = replace(SETTINGS, seed=3, gamma=0.9, faults=frozenset({"undiscounted", "late-baseline"}))
        cost = Objective(((Term("total_cost"),),))
        trainer = make_trainer("giph-3", settings, potential="none", faults=frozenset({"five-steps"}), objective=cost)
        trainer.run()
        source = Source(None, ("a.yaml", "b"), ("c.yaml",), "0123", "placeopt train a.yaml")
        written = save_policy(tmp_path / "policy", trainer, source)
        agent, header = load_policy(tmp_path / "policy")
        assert header == written
        assert same(agent.network.state_dict(), trainer.progress.best)
        best = trainer.progress.best_point
        assert best is not None
        assert (header.episode, header.ratio) == (best.episode, best.ratio)
        assert (header.settings, header.objective) == (settings, "total_cost")
        assert (agent.name, agent.potential, agent.faults) == ("giph-3", "none", frozenset({"five-steps"}))
        assert (header.features.nodes, header.features.edges) == (3, 4)
        assert header.model_dump(include=set(Source._fields)) == source._asdict()
        assert (header.format, header.torch) == (FORMAT, torch.__version__)

    def test_the_number_of_devices_of_placeto_is_kept(self, tmp_path: Path) -> None:
        trainer = make_trainer("placeto", replace(SETTINGS, episodes=1))
        trainer.run()
        save_policy(tmp_path / "policy", trainer)
        agent, header = load_policy(tmp_path / "policy")
        assert (header.devices, agent.devices) == (4, 4)
        assert same(agent.network.state_dict(), trainer.progress.best)

    def test_the_same_weights_give_the_same_bytes(self, trained: Trainer, policy: Path, tmp_path: Path) -> None:
        save_policy(tmp_path / "again", trained)
        assert (tmp_path / "again").read_bytes() == policy.read_bytes()
        trainer = make_trainer(
            settings=replace(SETTINGS, episodes=0, faults=frozenset({"undiscounted", "late-baseline"}))
        )
        trainer.run()
        save_policy(tmp_path / "faults", trainer)
        text = header_of(tmp_path / "faults")
        assert text["settings"]["faults"] == ["late-baseline", "undiscounted"]  # regardless of hashes of texts

    def test_weights_fit_a_network_of_the_caller(self, policy: Path) -> None:
        mine = replace(make_agent("giph", seed=5), name="mine")
        agent, _ = load_policy(policy, mine)
        assert agent is mine
        assert same(mine.network.state_dict(), load_policy(policy).agent.network.state_dict())

    def test_a_network_with_values_of_another_type_is_not_written(self, tmp_path: Path) -> None:
        trainer = make_trainer(settings=replace(SETTINGS, episodes=0))
        trainer.run()
        trainer.progress.best["score.0.bias"] = trainer.progress.best["score.0.bias"].double()
        with pytest.raises(UsageError, match=r"expected values of the type torch\.float32 in score\.0\.bias"):
            save_policy(tmp_path / "policy", trainer)

    @pytest.mark.parametrize(
        ("name", "compiled"), [("giph", True), ("giph-task-eft", True), ("giph-plus", True), ("giph-3", False)]
    )
    def test_a_compiled_policy_makes_the_same_moves(self, name: str, compiled: bool, tmp_path: Path) -> None:
        trainer = make_trainer(name, replace(SETTINGS, episodes=2))
        trainer.run()
        save_policy(tmp_path / "policy", trainer)
        found = []
        for only_searches in (False, True):
            agent, header = load_policy(tmp_path / "policy", compiled=only_searches)
            assert (agent.name, header.variant) == (name, name)
            assert isinstance(agent.network, dict) == (only_searches and compiled)
            policy = LearnedPolicy(name, agent.network, agent.make_view)
            start = random_placement(PROBLEMS[0], np.random.default_rng(0))
            found.append(run_episode(PROBLEMS[0], policy, start, steps=12, seed=2).history)
        assert found[0] == found[1]

    def test_faults_of_the_network_have_no_compiled_version(self, tmp_path: Path) -> None:
        trainer = make_trainer(settings=replace(SETTINGS, episodes=0), faults=frozenset({"one-way"}))
        trainer.run()
        save_policy(tmp_path / "policy", trainer)
        assert load_policy(tmp_path / "policy", compiled=True).agent.module.one_way

    def test_a_compiled_policy_cannot_be_trained(self) -> None:
        agent = load_policy(PACKAGED["giph"], compiled=True).agent
        with pytest.raises(UsageError, match="the agent giph has a compiled network, for searches only"):
            Trainer(agent, PROBLEMS, PROBLEMS, SETTINGS)

    def test_a_trainer_that_has_not_run_has_no_weights(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="has no weights yet"):
            save_policy(tmp_path / "policy", make_trainer())
        with pytest.raises(UsageError, match="has no state yet"):
            save_checkpoint(tmp_path / "checkpoint", make_trainer())

    def test_weights_that_are_not_finite_are_not_written(self, tmp_path: Path) -> None:
        trainer = make_trainer(settings=replace(SETTINGS, episodes=0))
        trainer.run()
        trainer.progress.best["score.0.bias"][2] = float("nan")
        with pytest.raises(
            UsageError, match=r"not written: values are not finite in score\.0\.bias; train with a smaller rate"
        ):
            save_policy(tmp_path / "policy", trainer)
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize(
        ("name", "data_set", "most"), [("giph", "giph-multiple", 1.4), ("giph-plus", "giph-sizes", 1.22)]
    )
    def test_the_policies_of_the_package(self, name: str, data_set: str, most: float) -> None:
        agent, header = load_policy(PACKAGED[name])
        assert agent.name == name
        assert header.command.startswith(f"placeopt train --data-set {data_set}")
        assert header.ratio is not None
        assert header.ratio < most
        assert PACKAGED[name].stat().st_size < 2**20


class TestWriting:
    @pytest.mark.parametrize("write", [save_policy, save_checkpoint])
    def test_a_full_disk_leaves_the_old_file(
        self, write: Callable[..., Any], trained: Trainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "file"
        write(path, trained)
        before = path.read_bytes()

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "replace", full)
        with pytest.raises(UsageError, match=r"cannot write .*file: No space left on device"):
            write(path, trained, Source(command="another"))
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]


class TestResuming:
    @pytest.mark.parametrize(
        ("name", "settings"),
        [
            ("giph", SETTINGS),
            ("giph-task-eft", replace(SETTINGS, batch=4, peers=2, noise=0.2)),
            ("placeto", SETTINGS),
            ("giph", replace(SETTINGS, faults=frozenset({"repeated-cases"}))),
        ],
        ids=["giph", "batches-and-noise", "placeto", "repeated-cases"],
    )
    def test_an_interrupted_training_ends_with_the_same_weights(
        self, name: str, settings: Settings, tmp_path: Path
    ) -> None:
        whole = make_trainer(name, settings)
        whole.run()
        first = make_trainer(name, settings)
        first.run(lambda progress: progress.episode >= 4)  # between two evaluations
        assert first.progress.episode == 4
        save_checkpoint(tmp_path / "checkpoint", first)
        second = make_trainer(name, settings)
        load_checkpoint(tmp_path / "checkpoint").restore(second)
        assert second.progress.episode == first.progress.episode
        second.run()
        assert same(second.network.state_dict(), whole.network.state_dict())
        assert same(second.progress.best, whole.progress.best)
        assert second.progress.curve == whole.progress.curve
        assert second.progress.returns == whole.progress.returns

    def test_a_complete_training_goes_on_with_more_episodes(self, checkpoint: Path, trained: Trainer) -> None:
        settings = replace(SETTINGS, episodes=9)
        more = make_trainer(settings=settings)
        load_checkpoint(checkpoint).restore(more)
        more.run()
        whole = make_trainer(settings=settings)
        whole.run()
        assert same(more.network.state_dict(), whole.network.state_dict())
        assert trained.progress.curve == more.progress.curve[: len(trained.progress.curve)]

    def test_returns_that_leak_cannot_be_resumed(self, tmp_path: Path) -> None:
        settings = replace(SETTINGS, episodes=1, faults=frozenset({"placeto-returns"}))
        trainer = make_trainer("placeto", settings)
        trainer.run()
        save_checkpoint(tmp_path / "checkpoint", trainer)
        with pytest.raises(UsageError, match="with the fault placeto-returns cannot be resumed"):
            load_checkpoint(tmp_path / "checkpoint").restore(make_trainer("placeto", settings))

    def test_a_checkpoint_of_another_network_changes_nothing(self, checkpoint: Path) -> None:
        trainer = make_trainer("giph-ne-pol")
        before = {name: each.clone() for name, each in trainer.network.state_dict().items()}
        with pytest.raises(
            DocumentError, match=r"checkpoint: the tensor weights\.score\.0\.weight has shape \(16, 10\)"
        ):
            load_checkpoint(checkpoint).restore(trainer)
        assert same(before, trainer.network.state_dict())


def test_diverging_weights_end_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = make_trainer()

    def diverge() -> None:
        with torch.no_grad():
            trainer.network.score[0].bias[0] = float("inf")

    monkeypatch.setattr(trainer.optimiser, "step", diverge)
    with pytest.raises(
        UsageError,
        match=r"diverged after 1 episode: weights or gradients are not finite; train with a rate below 0\.01",
    ):
        trainer.run()


def header_of(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    texts = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
    found: dict[str, Any] = json.loads(texts[KEY])
    return found


def rewrite(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> None:
    """Change the header and the tensors of a file; a text that `change` returns replaces the header."""
    header, tensors = header_of(path), load(path.read_bytes())
    text = change(header, tensors)
    path.write_bytes(save(tensors, {KEY: text if isinstance(text, str) else json.dumps(header)}))


def put(key: str, value: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    """A change of the header; `key` may lead into a section."""

    def change(header: dict[str, Any], _: dict[str, Any]) -> None:
        *sections, last = key.split(".")
        for section in sections:
            header = header[section]
        header[last] = value

    return change


def tensor(name: str, make: Callable[[Any], Any]) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    """A change of a tensor; None removes it."""

    def change(_: dict[str, Any], tensors: dict[str, Any]) -> None:
        tensors[name] = make(tensors.pop(name, None))
        if tensors[name] is None:
            del tensors[name]

    return change


BIAS = "score.0.bias"
BROKEN = {
    "newer": (put("format", FORMAT + 1), rf"newer version of placeopt \(format {FORMAT + 1}, .* {FORMAT}\): update"),
    "other-kind": (put("kind", "checkpoint"), r"holds a checkpoint; expected a policy, .* as policy\.safetensors"),
    "no-kind": (put("kind", "recipe"), r"header\.kind: 'recipe': input should be 'policy' or 'checkpoint'"),
    "unknown-variant": (put("variant", "gihp"), r"variant: unknown variant gihp; did you mean giph\?"),
    "other-variant": (put("variant", "giph-ne"), r"along\.message\.weight has shape \(9, 9\); expected \(5, 5\)"),
    "unknown-fault": (put("faults", ["none"]), r"header\.faults\[0\]: 'none'"),
    "wrong-setting": (put("settings.rate", -1), r"header\.settings: rate: -1\.0 is out of range"),
    "setting-of-another-type": (put("settings.seed", "a" * 90), r"settings\.seed: 'aaa.*\.\.\.: input"),
    "too-many-devices": (put("devices", 10**12), r"header\.devices: 1000000000000: input should be less than or equal"),
    "unknown-key": (put("colour", "blue"), r"header\.colour: 'blue': extra inputs are not permitted"),
    "not-a-number": (put("ratio", float("nan")), r"header\.ratio|header is not valid|invalid JSON"),
    "no-object": (lambda *_: "[1]", r"header: \[1\]"),
    "not-json": (lambda *_: "{", "its header is not valid JSON"),
    "deep-json": (lambda *_: "[" * 100_000, "its header is not valid JSON"),
    "missing-tensor": (tensor(BIAS, lambda _: None), f"the tensor {BIAS} is missing"),
    "unknown-tensor": (tensor("extra", lambda _: torch.ones(1)), "has 1 tensor that giph lacks: extra"),
    "wrong-shape": (tensor(BIAS, lambda each: each[1:]), rf"the tensor {BIAS} has shape \(15,\); expected \(16,\)"),
    "wrong-type": (tensor(BIAS, lambda each: each.double()), f"has values of the type F64 in {BIAS}; expected F32"),
    "eight-bits": (tensor(BIAS, lambda each: each.to(torch.float8_e4m3fn)), "has values of the type F8_E4M3 in "),
    "nan": (tensor(BIAS, lambda each: each * float("nan")), f"weights that are not finite: {BIAS}; train them again"),
    "infinite": (tensor(BIAS, lambda each: each + float("inf")), "has weights that are not finite"),
}  # fmt: skip


class TestBrokenFiles:
    @pytest.mark.parametrize("case", BROKEN)
    def test_a_wrong_policy(self, policy: Path, case: str) -> None:
        change, message = BROKEN[case]
        rewrite(policy, change)
        with pytest.raises(DocumentError, match=message) as error:
            load_policy(policy)
        if case != "unknown-variant":  # PyTorch's network states what is expected, or `layer_shapes`
            with pytest.raises(DocumentError, match=message):
                load_policy(policy, compiled=case != "other-variant")
        assert {issue.file for issue in error.value.issues} == {str(policy)}

    def test_every_wrong_tensor_is_listed(self, policy: Path) -> None:
        def change(_: dict[str, Any], tensors: dict[str, Any]) -> None:
            del tensors["score.0.bias"], tensors["score.2.bias"]
            tensors["transform.0.weight"] = torch.ones(2)

        rewrite(policy, change)
        with pytest.raises(DocumentError, match="is missing") as error:
            load_policy(policy)
        assert len(error.value.issues) == 3

    @pytest.mark.parametrize("size", [0, 7, 8, 100, 1500, -1])
    def test_a_file_that_is_cut_off(self, policy: Path, size: int) -> None:
        policy.write_bytes(policy.read_bytes()[:size])
        with pytest.raises(DocumentError, match="is not a complete file of the format safetensors"):
            load_policy(policy)

    def test_random_changes_never_raise_anything_else(self, policy: Path) -> None:
        data, rng = policy.read_bytes(), np.random.default_rng(0)
        for _ in range(300):
            broken = bytearray(data)
            for at in rng.integers(0, 2500, 3):
                broken[at] = rng.integers(256)
            policy.write_bytes(broken)
            with contextlib.suppress(DocumentError):
                load_policy(policy)

    def test_files_of_other_programs(self, tmp_path: Path) -> None:
        path = tmp_path / "weights"
        path.write_bytes(save({"a": torch.ones(1)}))
        with pytest.raises(
            DocumentError, match="was not written by placeopt; expected a file that `placeopt train` wrote"
        ):
            load_policy(path)
        for header in (b'{"__metadata__":null}', b"{}"):
            path.write_bytes(len(header).to_bytes(8, "little") + header)
            with pytest.raises(DocumentError, match="was not written by placeopt"):
                load_policy(path)
        path.write_text("placeopt: 1\n")
        with pytest.raises(DocumentError, match="is not a complete file of the format safetensors"):
            load_policy(path)

    def test_files_that_cannot_be_read(self, tmp_path: Path) -> None:
        with pytest.raises(DocumentError, match="nothing: no such file"):
            load_policy(tmp_path / "nothing")
        with pytest.raises(DocumentError, match="is a folder, expected a file"):
            load_checkpoint(tmp_path)

    def test_a_policy_is_no_checkpoint(self, policy: Path) -> None:
        with pytest.raises(
            DocumentError, match=r"holds a policy; expected a checkpoint, .* as checkpoint\.safetensors"
        ):
            load_checkpoint(policy)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (put("state", None), "state: is missing; expected the state of a training"),
            (put("state.curve", []), r"header\.state\.curve: \[\]: tuple should have at least 1 item"),
            (put("state.curve", [[10**30, 1.0]]), "state.curve: its episodes do not rise within 0 to "),
            (put("state.curve", [[1, 1.0], [0, 1.0]]), "state.curve: its episodes do not rise within 0 to "),
            (put("state.returns", []), "state.returns: has 0 values; expected "),
            (put("state.rng.state", -1), "state.rng: is not the state of a random number generator"),
            (put("state.rng.inc", 2**140), "state.rng: is not the state of a random number generator"),
            (tensor("best.score.0.bias", lambda _: None), r"the tensor best\.score\.0\.bias is missing"),
            (tensor("adam.step.score.0.bias", lambda _: None), r"the tensor adam\.step\.score\.0\.bias is missing"),
            (tensor("adam.exp_avg.score.0.bias", lambda each: each[:3]), r"exp_avg\.score\.0\.bias has shape \(3,\)"),
        ],
    )  # fmt: skip
    def test_a_wrong_checkpoint(self, checkpoint: Path, change: Callable[..., Any], message: str) -> None:
        rewrite(checkpoint, change)
        with pytest.raises(DocumentError, match=message):
            load_checkpoint(checkpoint).restore(make_trainer())
