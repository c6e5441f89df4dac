"""Import GGUF files, the model files of llama.cpp: blocks, their parts, or tensors become tasks.

Blocks and their parts follow from the names of tensors (`blk.3.attn_q.weight`). The shape of the attention, the number
of active experts and sliding windows follow from metadata (`llama.attention.head_count_kv`), or, without the metadata,
from the shapes of tensors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from placeopt.bridges.importers.imported import Imported, ImportOptions, Sample
from placeopt.bridges.importers.language_models.costs import CORE, LEVELS, imported
from placeopt.bridges.importers.language_models.gguf_files import (
    BLOCK,
    MAGIC,
    GgufFile,
    Skipped,
    Tensor,
    place_of,
    read_gguf,
)
from placeopt.bridges.importers.language_models.transformer import Attention, Block, Transformer, Weight
from placeopt.errors import DocumentError, Issue, counted, listing
from placeopt.io.files import StrPath
from placeopt.model.units import shown

NAME = "gguf"
_RECURRENT = re.compile(r"ssm|time_mix|shortconv")
_STAGES = (
    (r"attn_norm", 0),
    (r"attn_(q|kv)_a(_mqa)?\.", 1),
    (r"attn_(q|kv)_a_norm", 2),
    (r"attn_[qkv]_norm", 4),
    (r"attn_(q|k|v|kv|qkv)\b|attn_(q|k|v|kv)_b\b", 3),
    (r"attn_(post_)?norm|post_attention_norm", CORE + 2),
    (r"attn_out", CORE + 1),
    (r"ffn_norm", 20),
    (r"ffn_gate_inp|exp_probs", 21),
    (r"ffn_down", 23),
    (r"ffn_post_norm|post_ffw|layer_output_norm", 24),
    (r"ffn|channel_mix", 22),
)
"""Patterns of tensors of a block with their stage: the first that matches the beginning of the name applies."""
_PERIODS = {"cohere2": 4, "exaone4": 4, "gemma2": 2, "gemma3": 6, "gemma3n": 5, "gpt-oss": 2}
"""Architectures whose blocks have a sliding window, except each n-th; as in llama.cpp."""


def recognises(sample: Sample) -> bool:
    """Whether a file looks like one of this format."""
    return sample.start.startswith(MAGIC)


def read(path: StrPath, options: ImportOptions) -> Imported:
    """Read a GGUF file as the problem of a step of inference.

    Raises a DocumentError if the file is not valid, or holds no language model, a UsageError if an option does not fit
    the model, and a MissingExtraError if the package `gguf` is not installed.
    """
    path = Path(path)
    model = _Reader(path, read_gguf(path)).transformer()
    return imported(model, path, "GGUF", options, (*LEVELS, "tensor"))


class _Reader:
    """Converts one model."""

    def __init__(self, path: Path, file: GgufFile) -> None:
        self._path = path
        self._metadata = file.metadata
        self._tensors = file.tensors
        self._architecture = str(file.metadata.get("general.architecture", "unknown"))
        self._notes: list[str] = []

    def transformer(self) -> Transformer:
        from gguf.constants import MODEL_ARCH_NAMES

        if any(tensor.name.startswith(("enc.blk.", "dec.blk.")) for tensor in self._tensors):
            raise self._wrong(f"the architecture {self._architecture} is an encoder-decoder, which is not supported")
        if self._architecture not in MODEL_ARCH_NAMES.values():
            self._notes.append(
                f"the architecture {self._architecture} is not known; costs follow from names and shapes of tensors"
            )
        found: dict[int, list[Tensor]] = {}
        outside: list[Tensor] = []
        for tensor in self._tensors:
            block, _ = place_of(tensor.name)
            (outside if block is None else found.setdefault(block, [])).append(tensor)
        if not outside or not any(tensor.name.startswith("blk.") for tensor in self._tensors):
            names = listing([tensor.name for tensor in self._tensors], 4)
            raise self._wrong(f"holds no language model; expected tensors token_embd.weight and blk.0.*, got {names}")
        count = self._whole("block_count") or max(found) + 1
        gone = next((index for index in range(count) if index not in found), None)
        if gone is not None or max(found) >= count:
            what = f"no tensors of blk.{gone}" if gone is not None else f"tensors of blk.{max(found)}"
            raise self._wrong(f"the model has {counted(count, 'block')}, but there are {what}")
        table = next((tensor for tensor in outside if tensor.name == "token_embd.weight"), None)
        if table is None or len(table.shape) != 2:
            raise self._wrong("the tensor token_embd.weight is missing or is not a matrix")
        hidden, vocabulary = table.shape
        inputs = [table, *(each for each in outside if each is not table and _part(each) == "embedding")]
        outputs = [each for each in outside if _part(each) == "head"]
        causal = self._metadata.get(f"{self._architecture}.attention.causal", True) is not False
        experts, active = self._experts(found)
        name = self._metadata.get("general.name")
        return Transformer(
            name if isinstance(name, str) and name.strip() else self._path.stem,
            hidden,
            vocabulary,
            tuple(_weight(tensor) for tensor in inputs),
            tuple(self._block(index, found[index], hidden, count) for index in range(count)),
            tuple(_weight(tensor) for tensor in outputs),
            experts,
            active,
            tied=causal and all(tensor.name != "output.weight" for tensor in outputs),
            causal=causal,
            longest=self._whole("context_length"),
            notes=tuple(dict.fromkeys(self._notes)),
        )

    def _experts(self, blocks: dict[int, list[Tensor]]) -> tuple[int, int]:
        """The numbers of all routed experts and of those that a token uses."""
        stacked = [t.shape[-1] for block in blocks.values() for t in block if "_exps.weight" in t.name]
        single = [t for block in blocks.values() for t in block if _part(t) == "experts" and "_exps." not in t.name]
        if not stacked and not single:
            return 0, 0
        experts, active = self._whole("expert_count"), self._whole("expert_used_count")
        if experts is None or active is None or active > experts:
            raise self._wrong(
                f"the model has experts, but the keys {self._architecture}.expert_count and .expert_used_count are "
                f"{shown(experts)} and {shown(active)}"
            )
        wrong = [size for size in stacked if size != experts]
        if wrong:
            raise self._wrong(f"{self._architecture}.expert_count is {experts}, but a tensor holds {wrong[0]} experts")
        return experts, active

    def _block(self, index: int, tensors: Sequence[Tensor], hidden: int, count: int) -> Block:
        names = [_base(tensor) for tensor in tensors]
        recurrent = any(_RECURRENT.match(name) for name in names)
        if recurrent:
            self._notes.append(
                "blocks with a recurrent state, such as Mamba, have no KV cache; their state is not counted"
            )
        if any(name.startswith("nextn.") for name in names):
            self._notes.append(f"blk.{index} predicts further tokens; it is counted as a block that each token runs")
        weights = sorted(map(_weight, tensors), key=lambda weight: weight.stage)
        parts: dict[str, list[Weight]] = {"attention": [], "ffn": [], "experts": []}
        for weight in weights:
            parts[place_of(weight.name)[1]].append(weight)
        attention, ffn, experts = map(tuple, parts.values())
        shape = self._attention(index, dict(zip(names, tensors, strict=True)), hidden, count, recurrent)
        return Block(attention, ffn, experts, shape, recurrent)

    def _attention(
        self, index: int, tensors: dict[str, Tensor], hidden: int, count: int, recurrent: bool
    ) -> Attention | None:
        known = {"attn_q.weight", "attn_q_b.weight"} | (set() if recurrent else {"attn_qkv.weight"})
        if not known & set(tensors):
            return None
        window = self._window(index, count)
        heads = self._whole("attention.head_count", index, count)
        if heads is None:
            return self._attention_of_tensors(tensors, window)
        if heads > hidden:
            raise self._wrong(f"{heads} heads are more than the {hidden} elements of a token")
        groups = self._whole("attention.head_count_kv", index, count) or heads
        key = self._whole("attention.key_length") or hidden // heads
        value = self._whole("attention.value_length") or hidden // heads
        latent_key, latent_value = self._whole("attention.key_length_mla"), self._whole("attention.value_length_mla")
        if latent_key and latent_value:  # a cache of one compressed key, which holds the value too
            return Attention(heads, latent_key, latent_value, key, window, (key, value))
        return Attention(heads, key, value, groups * (key + value), window)

    def _attention_of_tensors(self, tensors: dict[str, Tensor], window: int | None) -> Attention | None:
        """The shape of the attention from the sizes of its matrices, as one head."""
        self._notes.append("the shape of the attention follows from the tensors, since the metadata do not state it")
        widths = {name: tensor.shape[1] for name, tensor in tensors.items() if len(tensor.shape) == 2}
        output = tensors.get("attn_output.weight")
        if "attn_qkv.weight" in widths and output is not None:
            inner = output.shape[0]
            return Attention(1, inner, inner, max(widths["attn_qkv.weight"] - inner, 0), window)
        if not {"attn_q.weight", "attn_k.weight", "attn_v.weight"} <= set(widths):
            return None
        query, key, value = (widths[f"attn_{each}.weight"] for each in "qkv")
        return Attention(1, query, query if output is None else output.shape[0], key + value, window)

    def _window(self, index: int, count: int) -> int | None:
        window = self._whole("attention.sliding_window")
        if window is None:
            return None
        pattern = self._metadata.get(f"{self._architecture}.attention.sliding_window_pattern")
        if isinstance(pattern, list) and len(pattern) == count:
            return window if pattern[index] else None
        period = pattern if isinstance(pattern, int) and pattern > 0 else _PERIODS.get(self._architecture)
        if period is None:
            self._notes.append("the blocks with a sliding window are not known; all attend to the whole context")
            return None
        return window if index % period < period - 1 else None

    def _whole(self, key: str, index: int = 0, count: int = 0) -> int | None:
        """A positive whole number of the metadata, that of a block if there is one for each; None without it."""
        path = f"{self._architecture}.{key}"
        value: Any = self._metadata.get(path)
        if isinstance(value, list) and count and len(value) == count:
            value = value[index]
        if value is None or (value == 0 and not isinstance(value, bool)):
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**31:
            what = f"an array of {value.length:,} values" if isinstance(value, Skipped) else shown(value)
            raise DocumentError([Issue(f"{what} is not a positive whole number", (path,), str(self._path))])
        return value

    def _wrong(self, message: str) -> DocumentError:
        return DocumentError([Issue(message, (), str(self._path))])


def _base(tensor: Tensor) -> str:
    """The name of a tensor without its block."""
    match = re.fullmatch(BLOCK, tensor.name)
    return match[2] if match else tensor.name


def _part(tensor: Tensor) -> str:
    return place_of(tensor.name)[1]


@lru_cache(maxsize=4096)
def _stage(base: str) -> int:
    """The stage of a tensor by its name in the block; all blocks have the same names."""
    return next((stage for pattern, stage in _STAGES if re.match(pattern, base)), 3)


def _weight(tensor: Tensor) -> Weight:
    """The weight of a tensor; matrices of several heads count as one, those of experts as one of each expert."""
    width = 0
    if len(tensor.shape) > 1 and tensor.name.endswith(".weight"):
        width = tensor.shape[1]
        if _part(tensor) != "experts":
            for size in tensor.shape[2:]:
                width *= size
    return Weight(tensor.name, tensor.elements, tensor.size, width, _stage(_base(tensor)))
