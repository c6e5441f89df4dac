"""Export the devices of tensors to llama.cpp.

`--override-tensor` (`-ot`) takes comma-separated rules `PATTERN=BUFFER TYPE`. A pattern is a regular expression
(ECMAScript) that is searched in the names of tensors; the first rule that matches applies. Here, each tensor matches
exactly one rule.

`-ot` moves weights only. The KV cache of a layer is on the device that `-ngl` and `-ts` give to the layer: the last
`-ngl` of all layers and the output are on the GPUs, in the order of the GPUs, as many on each as `-ts` states
(`load_tensors` in src/llama-model.cpp). `--device` states another order of the GPUs, which `-ts` follows
(docs/multi-gpu.md). These options are chosen so that as many layers as possible have their cache where the plan has
their attention.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from placeopt.bridges import hardware
from placeopt.bridges.exporters.exported import Exported, ExportRequest, stage_notes
from placeopt.bridges.exporters.layers import WHOLE, LayerPlan, layer_plan
from placeopt.bridges.importers.language_models.gguf_files import EMBEDDING, EXPERTS, FFN, ROPE, place_of, read_gguf
from placeopt.errors import InternalError, UsageError, counted, listing
from placeopt.model.memory import used_memory
from placeopt.model.problem import UNLIMITED
from placeopt.model.units import size_text

NAME = "llama.cpp"
CPU = "CPU"
BACKENDS = {
    **dict.fromkeys(hardware.CPU, CPU),
    **dict.fromkeys((*hardware.GPU, *hardware.NVIDIA), "CUDA"),
    **dict.fromkeys(hardware.AMD, "ROCm"),
    **dict.fromkeys((*hardware.APPLE, "metal", "mtl"), "MTL"),
    "cann": "CANN",
    "musa": "MUSA",
    "opencl": "OpenCL",
    "sycl": "SYCL",
    "vulkan": "Vulkan",
}
"""Names of buffer types, without number, by a word in the type or name of a device. Others are CUDA devices."""
_PARTS = ("attention", "ffn", "experts")
_SUFFIXES = {
    ("attention",): f"(?!{FFN})",
    ("ffn",): f"(?!{EXPERTS}){FFN}",
    ("experts",): EXPERTS,
    ("attention", "ffn"): f"(?!{EXPERTS})",
    ("attention", "experts"): f"({EXPERTS}|(?!{FFN}))",
    ("ffn", "experts"): FFN,
    _PARTS: "",
}
"""Patterns of the tensors of some parts of a layer, after its number."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of `--override-tensor`."""

    pattern: str
    buffer: str

    def __str__(self) -> str:
        return f"{self.pattern}={self.buffer}"


def export(request: ExportRequest) -> Exported:
    """Return the arguments in one line; with a model, check the rules against each tensor of the file.

    Raises a UsageError if the tasks are not layers of a language model, or the model is not that of the problem.
    """
    plan = layer_plan(request, NAME)
    buffers = buffer_types(hardware.devices_of(request.problem))
    rules = override_rules(plan, buffers)
    notes = []
    if request.model is not None:
        notes.append(_checked(request, plan, buffers, rules))
    gpus = [buffer for buffer in buffers if buffer != CPU]
    wanted = [buffers[_attention(layer)] for layer in plan.layers]
    last = buffers[plan.embedding if plan.head is None else plan.head]
    order, counts = _layer_counts([*wanted, last], gpus)
    given = [buffer for buffer, count in zip([CPU, *order], counts, strict=True) for _ in range(count)]
    arguments = ["-ngl", str(sum(counts[1:]))]
    if order != gpus:
        arguments += ["--device", ",".join(order)]
    if len(gpus) > 1 and any(counts[1:]):
        arguments += ["--split-mode", "layer", "-ts", ",".join(map(str, counts[1:]))]
    whole = all(len({buffers[device] for device in layer.values()}) == 1 for layer in plan.layers)
    if whole and given == [*wanted, last] and buffers[plan.embedding] == CPU and plan.head is not None:
        notes.append(f"each device has consecutive layers: {shlex.join(arguments)} alone gives the same placement")
    moved = [f"layers.{index}" for index, buffer in enumerate(wanted) if given[index] != buffer]
    if moved:
        notes.append(
            f"-ot moves no KV cache: that of {listing(moved, 4)} is not on the device of its attention, since -ngl "
            f"and -ts give consecutive layers to each device{_more_caches(request, buffers, wanted, given)}"
        )
    if buffers[plan.embedding] != CPU:
        name = request.problem.device_names[plan.embedding]
        notes.append(
            f"the embedding is on {name}; llama.cpp keeps it on the CPU by default, and some GPU back ends cannot read "
            "rows of quantised types; `placement: {embedding: cpu}` in the problem fixes it"
        )
    cpus = [name for name, buffer in zip(request.problem.device_names, buffers, strict=True) if buffer == CPU]
    if len(cpus) > 1:
        notes.append(f"llama.cpp has one CPU device, which stands for {listing(cpus)}")
    notes += stage_notes(request.problem, request.schedule, "llama.cpp")
    arguments += ["-ot", ",".join(map(str, rules))]
    return Exported(shlex.join(arguments) + "\n", tuple(notes))


def buffer_types(devices: Sequence[hardware.Device]) -> list[str]:
    """Return the buffer type of each device: `CPU`, or the name of a back end with a number, such as `CUDA0`."""
    counts: dict[str, int] = {}
    found = []
    for device in devices:
        backend = hardware.by_word(BACKENDS, device) or "CUDA"
        if backend == CPU:
            found.append(CPU)
            continue
        found.append(f"{backend}{counts.setdefault(backend, 0)}")
        counts[backend] += 1
    return found


def override_rules(plan: LayerPlan, buffers: Sequence[str]) -> list[Rule]:
    """Return one rule for each buffer type with tensors, in the order of the devices."""
    patterns: dict[str, list[str]] = {buffer: [] for buffer in buffers}
    patterns[buffers[plan.embedding]].append(EMBEDDING)
    if plan.head is not None:
        patterns[buffers[plan.head]].append(f"(?!blk|{ROPE}|{EMBEDDING})")
    rope = [device for name, device in plan.others.items() if name.startswith(ROPE)]
    patterns[buffers[rope[0] if rope else _attention(plan.layers[0])]].append(ROPE)
    for buffer, found in patterns.items():
        layers: dict[str, list[int]] = {}
        for index, layer in enumerate(plan.layers):
            suffix = _suffix(layer, [part for part, device in layer.items() if buffers[device] == buffer])
            if suffix is not None:
                layers.setdefault(suffix, []).append(index)
        for suffix, numbers in layers.items():
            found.append(rf"blk\.{_grouped(number_options(numbers))}\.{suffix}")
    return [Rule(f"^{_grouped(found)}", buffer) for buffer, found in patterns.items() if found]


def _suffix(layer: dict[str, int], parts: list[str]) -> str | None:
    """The pattern of the tensors of some parts of a layer, after its number; None without parts."""
    if not parts:
        return None
    if len(parts) == len(layer) or WHOLE in parts:
        return ""
    if not any(part.startswith("blk.") for part in layer):
        present = tuple(part for part in _PARTS if part in parts)
        if "experts" not in layer:  # a dense layer has two parts
            return FFN if present == ("ffn",) else f"(?!{FFN})"
        return _SUFFIXES[present]
    rests = [re.escape(part.split(".", 2)[2]) for part in parts if part.startswith("blk.")]
    return f"{_grouped(rests)}$" if rests else None


def _grouped(patterns: Sequence[str]) -> str:
    """One pattern for several, with parentheses if they are needed."""
    return patterns[0] if len(patterns) == 1 else f"({'|'.join(patterns)})"


def _attention(layer: dict[str, int]) -> int:
    """The device of the attention of a layer, and so of its KV cache."""
    return layer.get("attention", next(iter(layer.values())))


def _more_caches(request: ExportRequest, buffers: Sequence[str], wanted: Sequence[str], given: Sequence[str]) -> str:
    """State which devices of limited memory hold more KV caches than in the plan, and how much memory is left there."""
    problem = request.problem
    left = problem.capacity - used_memory(problem, request.schedule)
    stated = []
    for buffer, name, capacity, room in zip(
        buffers, problem.device_names, problem.capacity, left.tolist(), strict=True
    ):
        more = given[: len(wanted)].count(buffer) - wanted.count(buffer)
        if more > 0 and capacity != UNLIMITED:
            stated.append(
                f"{name} holds {counted(more, 'cache')} more than in the plan, which leaves {size_text(room)}"
            )
    return f"; {listing(stated)}: more may exceed its memory" if stated else ""


def _layer_counts(wanted: Sequence[str], gpus: Sequence[str]) -> tuple[list[str], list[int]]:
    """Return the order of the GPUs, and how many consecutive layers the CPU and each GPU get.

    The GPUs are in the given order, or in that of the mean of their layers if more layers are then as wanted.
    """
    mean = [float(np.mean([k for k, buffer in enumerate(wanted) if buffer == gpu] or [len(wanted)])) for gpu in gpus]
    orders = [list(gpus), [gpu for _, gpu in sorted(zip(mean, gpus, strict=True), key=lambda each: each[0])]]
    found = [_counts_in_order(wanted, order) for order in orders]
    best = int(found[1][0] > found[0][0])
    return orders[best], found[best][1]


def _counts_in_order(wanted: Sequence[str], gpus: Sequence[str]) -> tuple[int, list[int]]:
    """Return how many consecutive layers the CPU and each GPU get, so that most layers are on the wanted device.

    The first result is twice the number of these layers. The last entry of `wanted` is the output. It counts half a
    layer, since it has no KV cache. llama.cpp puts it on a GPU if any layer is on one. A tie ends with more layers on
    GPUs. Dynamic programming over the layers, for each the last device in use.
    """
    order = [CPU, *gpus]
    best: list[tuple[int, int, tuple[int, ...]]] = [(0, 0, (0,) * len(order)) for _ in order]
    for index, buffer in enumerate(wanted):
        worth = 1 if index == len(wanted) - 1 else 2
        following = []
        for place, device in enumerate(order):
            score, offloaded, counts = max(best[: place + 1], key=lambda each: each[:2])
            grown = (*counts[:place], counts[place] + 1, *counts[place + 1 :])
            following.append((score + worth * (device == buffer), offloaded + (place > 0), grown))
        best = following
    score, _, counts = max(best, key=lambda each: each[:2])
    return score, list(counts)


def _checked(request: ExportRequest, plan: LayerPlan, buffers: Sequence[str], rules: Sequence[Rule]) -> str:
    """Check that each tensor of the model matches exactly one rule, that of its planned device; return a note."""
    assert request.model is not None
    compiled = [(re.compile(rule.pattern), rule.buffer) for rule in rules]
    tensors = read_gguf(request.model).tensors
    wrong = []
    blocks = set()
    for tensor in tensors:
        block, part = place_of(tensor.name)
        if block is not None:
            blocks.add(block)
        planned = _planned(plan, tensor.name, block, part)
        if planned is None:
            wrong.append(tensor.name)
            continue
        matches = [buffer for pattern, buffer in compiled if pattern.search(tensor.name)]
        if matches != [buffers[planned]]:
            raise InternalError(f"the tensor {tensor.name} of {buffers[planned]} matches rules of {listing(matches)}")
    if wrong or len(blocks) != len(plan.layers):
        what = f"no task has its tensors {listing(wrong, 4)}" if wrong else f"it has {counted(len(blocks), 'block')}"
        has = counted(len(plan.layers), "layer")
        raise UsageError(f"--to {NAME}: {request.model} is not the model of the problem, which has {has}: {what}")
    return f"each of the {counted(len(tensors), 'tensor')} of {request.model.name} matches exactly one rule"


def _planned(plan: LayerPlan, name: str, block: int | None, part: str) -> int | None:
    """The device of the task that has a tensor; None if there is no such task."""
    if name in plan.others:
        return plan.others[name]
    if block is None:
        return plan.embedding if part == "embedding" else plan.head
    if block >= len(plan.layers):
        return None
    layer = plan.layers[block]
    if name.startswith(ROPE):
        return _attention(layer)
    if any(key.startswith("blk.") for key in layer):
        return layer.get(name)
    return layer.get(WHOLE, layer.get(part))


def number_options(numbers: Iterable[int]) -> list[str]:
    r"""Return alternatives for the decimal texts of numbers, such as `\d` and `1[0-5]` for 0 to 15.

    They use only digits, classes, `\d`, groups, `|` and `?`, so that Python and ECMAScript read them alike.
    """
    texts = sorted({str(number) for number in numbers}, key=lambda text: (len(text), text))
    options: list[str] = []
    for length in sorted({len(text) for text in texts}):
        options += _options([text for text in texts if len(text) == length])
    return _with_optional_digit(options)


def _options(texts: list[str]) -> list[str]:
    """Alternatives for texts of one length: texts whose first digits have the same rests share a class."""
    rests: dict[str, list[str]] = {}
    for text in texts:
        rests.setdefault(text[0], []).append(text[1:])
    classes: dict[tuple[str, ...], str] = {}
    for digit, rest in rests.items():
        classes[tuple(rest)] = classes.get(tuple(rest), "") + digit
    return [_class(digits) + _tail(list(rest)) for rest, digits in classes.items()]


def _tail(rest: list[str]) -> str:
    if rest == [""]:
        return ""
    options = _options(rest)
    return options[0] if len(options) == 1 else f"({'|'.join(options)})"


def _class(digits: str) -> str:
    if len(digits) == 1:
        return digits
    if digits == "0123456789":
        return r"\d"
    consecutive = int(digits[-1]) - int(digits[0]) == len(digits) - 1
    return f"[{digits[0]}-{digits[-1]}]" if consecutive and len(digits) > 2 else f"[{digits}]"


def _with_optional_digit(options: list[str]) -> list[str]:
    r"""Join `\d` and `1\d` to `1?\d`."""
    kept: list[str] = []
    for option in options:
        end = option.index("]") + 1 if option.startswith("[") else 2 if option.startswith("\\") else 1
        rest = option[end:]
        if rest in kept:
            kept[kept.index(rest)] = f"{option[:end]}?{rest}"
        else:
            kept.append(option)
    return kept
