"""Policies and checkpoints of a trainer: writing both, and going on from a checkpoint.

`weights` describes the files and reads them. A checkpoint holds the state of a `Trainer`:

    weights.NAME            the current weights
    best.NAME               the weights with the best evaluation
    adam.QUANTITY.NAME      the state of Adam for a parameter: `step`, `exp_avg`, `exp_avg_sq`

A trainer that goes on from a checkpoint ends with bit for bit the weights of one that was not interrupted, on the same
machine and on a CPU. A GPU adds numbers in varying order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from placeopt.bridges.extras import require
from placeopt.errors import Issue, UsageError, listing
from placeopt.io.files import StrPath, write_whole, writing
from placeopt.learning.training.reinforce import Point, Progress, Trainer
from placeopt.learning.training.weights import (
    FORMAT,
    KEY,
    Features,
    Kind,
    Random,
    State,
    file_error,
    read_weights,
    shape_issues,
)
from placeopt.learning.training.weights import PACKAGED as PACKAGED
from placeopt.learning.training.weights import Header as Header
from placeopt.learning.training.weights import Policy as Policy
from placeopt.learning.training.weights import load_policy as load_policy
from placeopt.model.versions import version_of


class Source(NamedTuple):
    """Where a trainer's problems come from, and the command; as in `Header`."""

    data_set: str | None = None
    train: tuple[str, ...] = ()
    evaluation: tuple[str, ...] = ()
    digest: str = ""
    command: str = ""


class Checkpoint(NamedTuple):
    """The state of a trainer."""

    header: Header
    tensors: Mapping[str, Tensor]
    file: str

    def restore(self, trainer: Trainer) -> None:
        """Put a new trainer into the state of the checkpoint.

        Raises a DocumentError if the tensors do not fit the trainer's network, and a UsageError if the training has the
        fault `placeto-returns`, which carries steps from one episode to the next.
        """
        if "placeto-returns" in self.header.settings.faults:
            raise UsageError("training with the fault placeto-returns cannot be resumed; expected a new folder")
        network, state = trainer.network, self.header.state
        assert state is not None
        expected = network.state_dict()
        issues = [*self._issues("weights", expected), *self._issues("best", expected)]
        moments: dict[int, dict[str, Tensor]] = {}
        for place, (name, parameter) in enumerate(network.named_parameters()):
            kept = {key: found for key in _ADAM if (found := self.tensors.get(f"adam.{key}.{name}")) is not None}
            if kept:  # Adam has no state of a parameter without a gradient so far
                wanted = {f"adam.{key}.{name}": parameter.shape if key != "step" else () for key in _ADAM}
                issues += shape_issues(self.tensors, wanted)
                moments[place] = kept
        rng = np.random.default_rng()
        try:
            numbers = state.rng.model_dump()
            rng.bit_generator.state = {
                "bit_generator": "PCG64",
                "state": {"state": numbers.pop("state"), "inc": numbers.pop("inc")},
                **numbers,
            }
        except (ValueError, OverflowError, TypeError) as error:
            issues.append(Issue(f"is not the state of a random number generator: {error}", ("state", "rng")))
        if issues:
            raise file_error(self.file, issues)
        network.load_state_dict(self._part("weights"))
        optimiser = trainer.optimiser
        optimiser.load_state_dict({"state": moments, "param_groups": optimiser.state_dict()["param_groups"]})
        curve = [Point(episode, ratio) for episode, ratio in state.curve]
        trainer.progress = Progress(rng, self.header.episode, curve, list(state.returns), self._part("best"))

    def _issues(self, part: str, expected: Mapping[str, Tensor]) -> list[Issue]:
        return shape_issues(self.tensors, {f"{part}.{name}": each.shape for name, each in expected.items()})

    def _part(self, part: str) -> dict[str, Tensor]:
        return {
            name.removeprefix(f"{part}."): each for name, each in self.tensors.items() if name.startswith(f"{part}.")
        }


_ADAM = ("step", "exp_avg", "exp_avg_sq")


def save_policy(path: StrPath, trainer: Trainer, source: Source | None = None) -> Header:
    """Write the best weights of a trainer, and return their header; the file is replaced as a whole or not at all.

    Raises
    ------
    UsageError
        If weights are not finite or not of the type float32, or the file cannot be written.
    MissingExtraError
        If safetensors is not installed.
    """
    best = trainer.progress.best_point
    if best is None:
        raise UsageError("the trainer has no weights yet; expected one that has run")
    header = _header("policy", trainer, source or Source(), best)
    _write(path, header, trainer.progress.best)
    return header


def save_checkpoint(path: StrPath, trainer: Trainer, source: Source | None = None) -> Header:
    """Write the state of a trainer; see `save_policy`."""
    progress, network, moments = trainer.progress, trainer.network, trainer.optimiser.state_dict()["state"]
    if not progress.curve:
        raise UsageError("the trainer has no state yet; expected one that has run")
    tensors = {f"weights.{name}": each for name, each in network.state_dict().items()}
    tensors |= {f"best.{name}": each for name, each in progress.best.items()}
    for place, (name, _) in enumerate(network.named_parameters()):
        tensors |= {f"adam.{key}.{name}": moments[place][key] for key in _ADAM if place in moments}
    generator: Any = progress.rng.bit_generator.state
    state = State(
        curve=tuple((point.episode, point.ratio) for point in progress.curve),
        returns=tuple(progress.returns),
        rng=Random(**generator["state"], has_uint32=generator["has_uint32"], uinteger=generator["uinteger"]),
    )
    header = _header("checkpoint", trainer, source or Source(), Point(progress.episode, float("nan")), state)
    _write(path, header, tensors)
    return header


def load_checkpoint(path: StrPath) -> Checkpoint:
    """Read a checkpoint; `Checkpoint.restore` checks its tensors.

    Raises a DocumentError if the file is not a complete checkpoint of this version of placeopt or an earlier one.
    """
    header, arrays = read_weights(path, "checkpoint")
    if header.state is None:
        raise file_error(path, [Issue("is missing; expected the state of a training", ("state",))])
    issues, episodes = [], [episode for episode, _ in header.state.curve]
    if episodes != sorted(set(episodes)) or episodes[0] < 0 or episodes[-1] > header.episode:
        issues.append(Issue(f"its episodes do not rise within 0 to {header.episode:,}", ("state", "curve")))
    if len(header.state.returns) != header.episode:
        issues.append(
            Issue(f"has {len(header.state.returns):,} values; expected {header.episode:,}", ("state", "returns"))
        )
    if issues:
        raise file_error(path, issues)
    return Checkpoint(header, {name: torch.from_numpy(each) for name, each in arrays.items()}, str(path))


def _header(kind: Kind, trainer: Trainer, source: Source, point: Point, state: State | None = None) -> Header:
    agent = trainer.agent
    nodes, edges = trainer.features
    return Header(
        format=FORMAT,
        kind=kind,
        placeopt=version_of() or "unknown",
        torch=str(torch.__version__),
        variant=agent.name,
        potential=agent.potential,
        faults=agent.faults,
        devices=agent.devices,
        features=Features(nodes=nodes, edges=edges),
        settings=trainer.settings,
        objective="makespan" if trainer.objective is None else str(trainer.objective),
        **source._asdict(),
        episode=point.episode,
        ratio=None if np.isnan(point.ratio) else point.ratio,
        state=state,
    )


def _write(path: StrPath, header: Header, tensors: Mapping[str, Tensor]) -> None:
    require("safetensors", "torch", "weights of learned policies")
    from safetensors.torch import save

    if wrong := [name for name, each in tensors.items() if each.dtype != torch.float32]:
        raise UsageError(f"{path}: not written: expected values of the type torch.float32 in {listing(wrong)}")
    if wrong := [name for name, each in tensors.items() if not bool(torch.isfinite(each).all())]:
        raise UsageError(f"{path}: not written: values are not finite in {listing(wrong)}; train with a smaller rate")
    # Sets in order, and one text only: the same content gives the same bytes.
    text = json.dumps(header.model_dump(), default=sorted, allow_nan=False)
    data = save({name: each.detach().cpu().contiguous() for name, each in tensors.items()}, {KEY: text})
    with writing(path):
        write_whole(path, data)
