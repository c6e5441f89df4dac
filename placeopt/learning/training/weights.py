"""Files of weights: their header, and how they are read. Policies of GiPH's own network need no PyTorch.

The files have the format safetensors (`tensors`), which holds named tensors and texts; reading it executes no code. The
text `placeopt` is the `Header` as JSON. A policy holds the weights of a network under their names. What a checkpoint
holds is in `checkpoints`, which writes both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from placeopt.errors import DocumentError, Issue, UsageError, counted, listing, visible
from placeopt.io.files import StrPath, UnreadableError, read_file
from placeopt.learning.graphs.views import Potential
from placeopt.learning.networks.compiled import layer_shapes
from placeopt.learning.networks.variants import VARIANTS, Agent, Fault, make_agent, runs_compiled, view_maker
from placeopt.learning.training.settings import Settings

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
Arrays = dict[str, NDArray[np.float32]]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Features(_Part):
    """Numbers of features that the network receives of each node and of each edge."""

    nodes: int
    edges: int


class Random(_Part):
    """The state of NumPy's generator PCG64."""

    state: int
    inc: int
    has_uint32: int
    uinteger: int


class State(_Part):
    """The part of a checkpoint that is not a tensor."""

    curve: tuple[tuple[int, Finite], ...] = Field(min_length=1)
    returns: tuple[Finite, ...]
    rng: Random


class Header(_Part):
    """Everything needed to use weights, and to train them again."""

    format: int
    kind: Kind
    """Version of the header, and what the file holds."""
    placeopt: str
    torch: str
    """Versions of the libraries that wrote the file."""
    variant: str
    potential: Potential
    faults: frozenset[Fault]
    devices: int = Field(ge=1, le=MOST_DEVICES)
    """Arguments of `make_agent`."""
    features: Features
    """Numbers of features; a different number does not fit the weights."""
    settings: Settings
    """Parameters of training, with the seed."""
    objective: str
    """What the searches minimise."""
    data_set: str | None
    train: tuple[str, ...]
    evaluation: tuple[str, ...]
    """The data set, the problem files to train on, and those to evaluate on."""
    digest: str
    """Hash of the problems in files; empty without."""
    episode: int = Field(ge=0)
    """Number of episodes after which the network had the weights."""
    ratio: Finite | None
    """Their evaluation (`placeopt.learning.training.reinforce.Point`); None if they were not evaluated."""
    command: str
    """The command that trains them."""
    state: State | None = None
    """The rest of a checkpoint."""


class Policy(NamedTuple):
    """A network with trained weights, and how they were made."""

    agent: Agent
    header: Header


def load_policy(path: StrPath, agent: Agent | None = None, *, compiled: bool = False) -> Policy:
    """Read the weights of a policy.

    Parameters
    ----------
    agent
        Where the weights belong if the variant is not one of placeopt's; by default, the header decides.
    compiled
        Whether the policy is for searches only: GiPH's own network then runs compiled and needs no PyTorch. Networks of
        other variants are in PyTorch nevertheless.

    Raises
    ------
    DocumentError
        If the file is not a complete policy of this version of placeopt or an earlier one; lists every issue.
    MissingExtraError
        If the policy needs PyTorch, which is not installed.
    """
    header, arrays = read_weights(path, "policy")
    if agent is None and compiled and runs_compiled(header.variant, header.faults):
        name, potential, faults = header.variant, header.potential, header.faults
        _check(path, name, arrays, layer_shapes(VARIANTS[name].nodes(potential)))
        view = view_maker(name, potential, faults)
        return Policy(Agent(name, arrays, view, header.devices, potential, faults), header)
    agent = agent or _initial(path, header)
    network = agent.module
    _check(path, agent.name, arrays, {name: each.shape for name, each in network.state_dict().items()})
    import torch

    network.load_state_dict({name: torch.from_numpy(each) for name, each in arrays.items()})
    return Policy(agent, header)


def _check(path: StrPath, agent: str, arrays: Arrays, expected: Mapping[str, Iterable[int]]) -> None:
    """Raise a DocumentError if the tensors of a file are not the weights of an agent's network."""
    issues = shape_issues(arrays, expected)
    if unknown := [name for name in arrays if name not in expected]:
        issues.append(Issue(f"has {counted(len(unknown), 'tensor')} that {agent} lacks: {listing(unknown)}"))
    if issues:
        raise file_error(path, issues)


def _initial(path: StrPath, header: Header) -> Agent:
    """The agent of a header, with initial weights."""
    try:
        return make_agent(header.variant, devices=header.devices, potential=header.potential, faults=header.faults)
    except UsageError as error:
        raise file_error(path, [Issue(str(error), ("variant",))]) from None


def read_weights(path: StrPath, kind: Kind) -> tuple[Header, Arrays]:
    """Read the header and the tensors of a file.

    Raises a DocumentError if the file is not complete, or not one of this kind that this version of placeopt or an
    earlier one wrote.
    """
    try:
        content = read_tensors(read_file(path))
    except UnreadableError as error:
        raise file_error(path, [Issue(str(error))]) from None
    except InvalidTensorsError as error:
        raise file_error(path, [Issue(f"is not a complete file of the format safetensors: {error}")]) from None
    if KEY not in content.texts:
        raise file_error(path, [Issue("was not written by placeopt; expected a file that `placeopt train` wrote")])
    header = _checked_header(path, content.texts[KEY])
    if header.kind != kind:
        other = {"policy": "policy.safetensors", "checkpoint": "checkpoint.safetensors"}[kind]
        message = f"holds a {header.kind}; expected a {kind}, which `placeopt train` writes as {other}"
        raise file_error(path, [Issue(message)])
    if content.others:
        kinds, names = sorted(set(content.others.values())), list(content.others)
        raise file_error(
            path, [Issue(f"has values of the type {listing(kinds)} in {listing(names)}; expected {SINGLE}")]
        )
    if infinite := [name for name, each in content.arrays.items() if not np.isfinite(each).all()]:
        raise file_error(path, [Issue(f"has weights that are not finite: {listing(infinite)}; train them again")])
    return header, content.arrays


def _checked_header(path: StrPath, text: str) -> Header:
    try:
        stated = json.loads(text)
        found = stated.get("format") if isinstance(stated, dict) else None
    except (ValueError, RecursionError) as error:
        raise file_error(path, [Issue(f"its header is not valid JSON: {error}")]) from None
    if isinstance(found, int) and found > FORMAT:
        message = (
            f"was written by a newer version of placeopt (format {found}, expected at most {FORMAT}): update placeopt"
        )
        raise file_error(path, [Issue(message)])
    try:
        return Header.model_validate_json(text)
    except ValidationError as error:
        issues = [
            Issue(f"{_shortened(detail['input'])}: {detail['msg'].lower()}", ("header", *detail["loc"]))
            for detail in error.errors(include_url=False)
        ]
        raise file_error(path, issues) from None
    except UsageError as error:  # from Settings
        raise file_error(path, [Issue(str(error), ("header", "settings"))]) from None


def _shortened(value: object, most: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 3]}..."


def shape_issues(tensors: Mapping[str, Any], expected: Mapping[str, Iterable[int]]) -> list[Issue]:
    """Return an issue for each tensor, an array or one of PyTorch, that is missing or has another shape."""

    def found() -> Iterator[Issue]:
        for name, shape in expected.items():
            if name not in tensors:
                yield Issue(f"the tensor {name} is missing")
            elif tuple(tensors[name].shape) != tuple(shape):
                yield Issue(f"the tensor {name} has shape {tuple(tensors[name].shape)}; expected {tuple(shape)}")

    return list(found())


def file_error(path: StrPath, issues: Iterable[Issue]) -> DocumentError:
    """An error with these issues of a file."""
    return DocumentError([Issue(issue.message, issue.path, str(path)) for issue in issues])


SINGLE = "F32"
"""The type of 32-bit floats."""

METADATA = "__metadata__"


class InvalidTensorsError(Exception):
    """The content of a file is not complete, or does not have the format; the message gives the reason."""


class Content(NamedTuple):
    """The content of a file."""

    arrays: dict[str, NDArray[np.float32]]
    """The tensors of the type F32 by name."""
    others: dict[str, str]
    """The types of all other tensors, whose values are not read."""
    texts: dict[str, str]
    """The texts by name."""


def read_tensors(data: bytes) -> Content:
    """Read the content of a safetensors file without its library.

    The format (https://huggingface.co/docs/safetensors) is: the length of the header as 8 bytes, little-endian; the
    header, a JSON object; the values, row by row and little-endian. The header maps the name of each tensor to its
    type, its shape, and the place of its values, which cover the rest of the file without gaps. `__metadata__` maps
    names to texts.

    Raises an InvalidTensorsError if the content is cut off, or does not have the format.
    """
    start = 8 + int.from_bytes(data[:8], "little")
    if len(data) < 8 or start > len(data):
        raise InvalidTensorsError(f"it has {len(data):,} bytes, fewer than the length of the header that it states")
    try:
        header = json.loads(data[8:start].decode())
    except (ValueError, RecursionError) as error:
        raise InvalidTensorsError(f"its header is not valid JSON: {error}") from None
    if not isinstance(header, dict):
        raise InvalidTensorsError("its header is not a JSON object")
    texts = header.pop(METADATA, None) or {}
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise InvalidTensorsError(f"{METADATA} does not contain texts")
    entries = {name: _checked(name, stated) for name, stated in header.items()}
    covered = 0
    for begin, end in sorted(entry.place for entry in entries.values()):
        if begin != covered or end < begin:
            raise InvalidTensorsError(f"the values of its tensors have a gap or overlap at byte {start + covered:,}")
        covered = end
    if start + covered != len(data):
        raise InvalidTensorsError(f"its tensors have {covered:,} bytes, but {len(data) - start:,} follow the header")
    arrays = {name: _array(name, entry, data, start) for name, entry in entries.items() if entry.kind == SINGLE}
    return Content(arrays, {name: entry.kind for name, entry in entries.items() if entry.kind != SINGLE}, texts)


class _Entry(NamedTuple):
    kind: str
    shape: tuple[int, ...]
    place: tuple[int, int]  # bytes after the header


def _checked(name: str, stated: Any) -> _Entry:
    stated = stated if isinstance(stated, dict) else {}
    kind, shape, place = (stated.get(key) for key in ("dtype", "shape", "data_offsets"))
    if isinstance(kind, str) and _sizes(shape) and _sizes(place) and len(place) == 2:
        return _Entry(kind, tuple(shape), (place[0], place[1]))
    raise InvalidTensorsError(f"{visible(name)} does not have a dtype, a shape and two data_offsets")


def _sizes(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)


def _array(name: str, entry: _Entry, data: bytes, start: int) -> NDArray[np.float32]:
    begin, end = entry.place
    try:
        values = np.frombuffer(data[start + begin : start + end], "<f4").reshape(entry.shape)
    except (ValueError, OverflowError):
        raise InvalidTensorsError(f"the values of {visible(name)} do not fit its shape") from None
    return values.astype(np.float32)  # a copy that can be written, in the byte order of this machine
