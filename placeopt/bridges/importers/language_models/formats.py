"""Bytes of weights: the number format of a model, and its quantisation.

Work is in 8 bits if `--precision` or the method fp8 states it. Runtimes convert other quantised weights to the format
of the weights that are not quantised.

The matrices of attention, feed-forward networks and experts are quantised. Embeddings, routers, normalisations and the
output matrix are not. The method mxfp4 quantises routed experts only. Groups of `group_size` elements share a scale of
2 bytes (GPTQ and AWQ, with a zero point of the same bits as the weights). Groups of 64 elements share one of 4 bytes
(bitsandbytes, in 4 bits).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from placeopt.bridges.importers.imported import check_precision
from placeopt.bridges.importers.language_models.configuration import Configuration

SIZES: Mapping[str, Fraction] = {
    "fp32": Fraction(4),
    "fp16": Fraction(2),
    "bf16": Fraction(2),
    "fp8": Fraction(1),
    "int8": Fraction(1),
    "int4": Fraction(1, 2),
}
"""Bytes of an element of a weight by number format."""
_TORCH = {
    "float32": "fp32",
    "float": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
}


@dataclass(frozen=True, slots=True)
class Formats:
    """The number formats of a model."""

    precision: str
    """Of weights that are not quantised, such as `bf16`."""
    element: Fraction
    """Bytes of an element of the body, its share of the scales included."""
    work: str
    """Of the computation."""
    experts_only: bool = False
    """Whether only routed experts are quantised."""

    @property
    def activation(self) -> int:
        """Bytes of an element of an activation and of the KV cache."""
        return 4 if self.precision == "fp32" else 2

    def body(self, elements: int, *, routed: bool = False) -> int:
        """Bytes of a matrix of the body; `routed` is whether it belongs to routed experts."""
        return self.plain(elements) if self.experts_only and not routed else math.ceil(elements * self.element)

    def plain(self, elements: int) -> int:
        """Bytes of a weight that is not quantised."""
        return elements * self.activation


def weight_formats(config: Configuration, precision: str | None) -> tuple[Formats, list[str]]:
    """Return the formats of a configuration, or of `--precision`, and notes.

    Raises a UsageError if the precision is unknown.
    """
    if precision is not None:
        check_precision(precision, SIZES)
        plain = precision if SIZES[precision] >= 2 else "fp16"
        return Formats(plain, SIZES[precision], plain if precision == "int4" else precision), []
    notes: list[str] = []
    stated = config.text("dtype") or config.text("torch_dtype")
    plain = _TORCH.get(stated.removeprefix("torch."), "")
    if not plain:
        what = (
            f"the number format {stated!r} is not known" if stated else "the file states no number format (torch_dtype)"
        )
        notes.append(f"{what}; weights have 16 bits, --precision states another format")
        plain = "fp16"
    quantised = config.inside("quantization_config")
    wide = plain if SIZES[plain] >= 2 else "fp16"
    if quantised is None:
        return Formats(wide, SIZES[plain], plain), notes
    element = _quantised(quantised)
    if element is None:
        name = quantised.text("quant_method") or "without name"
        notes.append(f"the quantisation {name} states no number of bits; weights are counted in {plain}")
        element = SIZES[plain]
    method = quantised.text("quant_method")
    return Formats(wide, element, "fp8" if method == "fp8" else wide, method == "mxfp4"), notes


def _quantised(config: Configuration) -> Fraction | None:
    """Bytes of an element of a quantised matrix; None if the number of bits is not stated."""
    method = config.text("quant_method")
    if config.flag("load_in_4bit", False) or config.flag("_load_in_4bit", False):
        return Fraction(1, 2) + Fraction(4, 64)
    if config.flag("load_in_8bit", False) or config.flag("_load_in_8bit", False) or method == "fp8":
        return Fraction(1)
    if method == "mxfp4":  # 32 elements share a scale of 8 bits
        return Fraction(17, 32)
    weights = _weights_of_groups(config) or config
    bits = config.optional("bits") or config.optional("w_bit") or weights.optional("num_bits")
    if bits is None:
        return None
    # -1 stands for one group for each column, whose scales are too few to count.
    stated = weights.number("group_size")
    group = stated if stated is not None and stated > 0 else None
    return Fraction(bits, 8) + (Fraction(16 + bits, 8 * group) if group else 0)


def _weights_of_groups(config: Configuration) -> Configuration | None:
    """What compressed-tensors states about the weights of its first group of layers."""
    groups = config.inside("config_groups")
    if groups is None:
        return None
    for key in groups.keys():  # noqa: SIM118 (a method, not a mapping)
        group = groups.inside(key)
        weights = None if group is None else group.inside("weights")
        if weights is not None:
            return weights
    return None
