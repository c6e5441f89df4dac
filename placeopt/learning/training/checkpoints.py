"""Policies and checkpoints: weights in files of the format safetensors, with all parameters in the header.

The format (https://huggingface.co/docs/safetensors) holds named tensors and texts; reading it executes no code. The
text `placeopt` is the `Header` as JSON.

A policy holds the weights of a network under their names. A checkpoint holds the state of a `Trainer`:

    weights.NAME            the current weights
    best.NAME               the weights with the best evaluation
    adam.QUANTITY.NAME      the state of Adam for a parameter: `step`, `exp_avg`, `exp_avg_sq`

A trainer that goes on from a checkpoint ends with bit for bit the weights of one that was not interrupted, on the same
machine and on a CPU. A GPU adds numbers in varying order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor

from placeopt.bridges.extras import require
from placeopt.errors import DocumentError, Issue, UsageError, counted, listing, unwritable
from placeopt.io.files import StrPath, UnreadableError, read_file, write_whole
from placeopt.learning.graphs.views import Potential
from placeopt.learning.networks.variants import Agent, Fault, make_agent
from placeopt.learning.training.reinforce import Point, Progress, Settings, Trainer

FORMAT = 1
"""Version of the header that this version of placeopt writes."""

KEY = "placeopt"
"""Name of the header among the texts of the file."""

PACKAGED = {name: Path(__file__).parents[1] / "weights" / f"{name}.safetensors" for name in ("giph-plus", "giph")}
"""The policies that come with placeopt, the default one first."""

MOST_DEVICES = 100_000
"""Largest number of devices of a network that is read, so that a wrong header takes no memory."""

Kind = Literal["policy", "checkpoint"]
Finite = Annotated[float, Field(allow_inf_nan=False)]


class Features(BaseModel):
    """Numbers of features that the network receives of each node and of each edge."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    nodes: int
    edges: int


class Random(BaseModel):
    """The state of NumPy's generator PCG64."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    state: int
    inc: int
    has_uint32: int
    uinteger: int


class State(BaseModel):
    """The part of a checkpoint that is not a tensor."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    curve: tuple[tuple[int, Finite], ...] = Field(min_length=1)
    returns: tuple[Finite, ...]
    rng: Random


class Header(BaseModel):
    """Everything needed to use weights, and to train them again.

    Attributes
    ----------
    format, kind
        Version of the header, and what the file holds.
    placeopt, torch
        Versions of the libraries that wrote the file.
    variant, potential, faults, devices
        Arguments of `make_agent`.
    features
        Numbers of features; a different number does not fit the weights.
    settings
        Parameters of training, with the seed.
    objective
        What the searches minimise.
    data_set, train, evaluation
        The data set, the problem files to train on, and those to evaluate on.
    digest
        Hash of the problems in files; empty without.
    episode
        Number of episodes after which the network had the weights.
    ratio
        Their evaluation (`placeopt.learning.training.reinforce.Point`); None if they were not evaluated.
    command
        The command that trains them.
    state
        The rest of a checkpoint.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: int
    kind: Kind
    placeopt: str
    torch: str
    variant: str
    potential: Potential
    faults: frozenset[Fault]
    devices: int = Field(ge=1, le=MOST_DEVICES)
    features: Features
    settings: Settings
    objective: str
    data_set: str | None
    train: tuple[str, ...]
    evaluation: tuple[str, ...]
    digest: str
    episode: int = Field(ge=0)
    ratio: Finite | None
    command: str
    state: State | None = None


class Source(NamedTuple):
    """Where a trainer's problems come from, and the command; as in `Header`."""

    data_set: str | None = None
    train: tuple[str, ...] = ()
    evaluation: tuple[str, ...] = ()
    digest: str = ""
    command: str = ""


class Policy(NamedTuple):
    """A network with trained weights, and how they were made."""

    agent: Agent
    header: Header


class Checkpoint(NamedTuple):
    """The state of a trainer."""

    header: Header
    tensors: Mapping[str, Tensor]
    file: str

    def restore(self, trainer: Trainer) -> None:
        """Put a new trainer into the state of the checkpoint.

        Raises
        ------
        DocumentError
            If the tensors do not fit the trainer's network.
        UsageError
            If the training has the fault `placeto-returns`, which carries steps from one episode to the next.
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
                issues += _shape_issues(self.tensors, wanted)
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
            raise _error(self.file, issues)
        network.load_state_dict(self._part("weights"))
        optimiser = trainer.optimiser
        optimiser.load_state_dict({"state": moments, "param_groups": optimiser.state_dict()["param_groups"]})
        curve = [Point(episode, ratio) for episode, ratio in state.curve]
        trainer.progress = Progress(rng, self.header.episode, curve, list(state.returns), self._part("best"))

    def _issues(self, part: str, expected: Mapping[str, Tensor]) -> list[Issue]:
        return _shape_issues(self.tensors, {f"{part}.{name}": each.shape for name, each in expected.items()})

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
        If weights are not finite, or the file cannot be written.
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


def load_policy(path: StrPath, agent: Agent | None = None) -> Policy:
    """Read the weights of a policy.

    Parameters
    ----------
    agent
        Where the weights belong if the variant is not one of placeopt's; by default, the header decides.

    Raises
    ------
    DocumentError
        If the file is not a complete policy of this version of placeopt or an earlier one; lists every issue.
    MissingExtraError
        If safetensors is not installed.
    """
    header, tensors = _read(path, "policy")
    if agent is None:
        try:
            agent = make_agent(header.variant, devices=header.devices, potential=header.potential, faults=header.faults)
        except UsageError as error:
            raise _error(str(path), [Issue(str(error), ("variant",))]) from None
    expected = {name: each.shape for name, each in agent.network.state_dict().items()}
    issues = _shape_issues(tensors, expected)
    if unknown := [name for name in tensors if name not in expected]:
        issues.append(Issue(f"has {counted(len(unknown), 'tensor')} that {agent.name} lacks: {listing(unknown)}"))
    if issues:
        raise _error(str(path), issues)
    agent.network.load_state_dict(tensors)
    return Policy(agent, header)


def load_checkpoint(path: StrPath) -> Checkpoint:
    """Read a checkpoint; `Checkpoint.restore` checks its tensors. Raises as `load_policy`."""
    header, tensors = _read(path, "checkpoint")
    if header.state is None:
        raise _error(str(path), [Issue("is missing; expected the state of a training", ("state",))])
    return Checkpoint(header, tensors, str(path))


def _header(kind: Kind, trainer: Trainer, source: Source, point: Point, state: State | None = None) -> Header:
    agent = trainer.agent
    nodes, edges = trainer.features
    return Header(
        format=FORMAT,
        kind=kind,
        placeopt=own_version(),
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


def own_version() -> str:
    """Return the version of placeopt; "unknown" if it is not installed."""
    try:
        return version("placeopt")
    except PackageNotFoundError:
        return "unknown"


def _write(path: StrPath, header: Header, tensors: Mapping[str, Tensor]) -> None:
    require("safetensors", "torch", "weights of learned policies")
    from safetensors.torch import save

    if wrong := _not_finite(tensors):
        raise UsageError(f"{path}: not written: values are not finite in {listing(wrong)}; train with a smaller rate")
    # Sets in order, and one text only: the same content gives the same bytes.
    text = json.dumps(header.model_dump(), default=sorted, allow_nan=False)
    data = save({name: each.detach().cpu().contiguous() for name, each in tensors.items()}, {KEY: text})
    try:
        write_whole(path, data)
    except OSError as error:
        raise UsageError(unwritable(path, error)) from None


def _read(path: StrPath, kind: Kind) -> tuple[Header, dict[str, Tensor]]:
    """Read and check the header and the tensors of a file."""
    require("safetensors", "torch", "weights of learned policies")
    from safetensors import SafetensorError
    from safetensors.torch import load

    file = str(path)
    try:
        data = read_file(path)
    except UnreadableError as error:
        raise _error(file, [Issue(str(error))]) from None
    try:
        tensors: dict[str, Tensor] = load(data)
        texts = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")]).get("__metadata__") or {}
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise _error(file, [Issue(f"is not a complete file of the format safetensors: {error}")]) from None
    if KEY not in texts:
        raise _error(file, [Issue("was not written by placeopt; expected a file that `placeopt train` wrote")])
    header = _checked_header(file, texts[KEY])
    if header.kind != kind:
        other = {"policy": "policy.safetensors", "checkpoint": "checkpoint.safetensors"}[kind]
        raise _error(
            file, [Issue(f"holds a {header.kind}; expected a {kind}, which `placeopt train` writes as {other}")]
        )
    if wrong := _not_finite(tensors):
        raise _error(file, [Issue(f"has weights that are not finite: {listing(wrong)}; train them again")])
    return header, tensors


def _checked_header(file: str, text: str) -> Header:
    try:
        stated = json.loads(text)
        found = stated.get("format") if isinstance(stated, dict) else None
    except (ValueError, RecursionError) as error:
        raise _error(file, [Issue(f"its header is not valid JSON: {error}")]) from None
    if isinstance(found, int) and found > FORMAT:
        message = (
            f"was written by a newer version of placeopt (format {found}, expected at most {FORMAT}): update placeopt"
        )
        raise _error(file, [Issue(message)])
    try:
        return Header.model_validate_json(text)
    except ValidationError as error:
        issues = [
            Issue(f"{_shortened(detail['input'])}: {detail['msg'].lower()}", ("header", *detail["loc"]))
            for detail in error.errors(include_url=False)
        ]
        raise _error(file, issues) from None
    except UsageError as error:  # from Settings
        raise _error(file, [Issue(str(error), ("header", "settings"))]) from None


def _shortened(value: object, most: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _shape_issues(tensors: Mapping[str, Tensor], expected: Mapping[str, Iterable[int]]) -> list[Issue]:
    """Return an issue for each tensor that is missing, or has another shape or type."""

    def found() -> Iterator[Issue]:
        for name, shape in expected.items():
            if name not in tensors:
                yield Issue(f"the tensor {name} is missing")
            elif tuple(tensors[name].shape) != tuple(shape):
                yield Issue(f"the tensor {name} has shape {tuple(tensors[name].shape)}; expected {tuple(shape)}")
            elif tensors[name].dtype != torch.float32:
                yield Issue(f"the tensor {name} holds {tensors[name].dtype}; expected torch.float32")

    return list(found())


def _not_finite(tensors: Mapping[str, Tensor]) -> list[str]:
    single = {name: each for name, each in tensors.items() if each.dtype == torch.float32}  # others are wrong anyway
    return [name for name, each in single.items() if not bool(torch.isfinite(each).all())]


def _error(file: str, issues: Iterable[Issue]) -> DocumentError:
    return DocumentError([Issue(issue.message, issue.path, file) for issue in issues])


__all__ = [
    "Checkpoint",
    "Header",
    "Policy",
    "Source",
    "load_checkpoint",
    "load_policy",
    "save_checkpoint",
    "save_policy",
]
