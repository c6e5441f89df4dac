"""Costs of the operators of PyTorch: FLOP, memory traffic, and which results are views.

Each operator is executed once on the meta device, which computes shapes but no values. PyTorch's own counter
(`torch.utils.flop_counter`) observes this and counts products, convolutions and attention. Other operators that this
module names have the formulas of `formulas`. All other operators of `aten` and `prims` copy and rearrange data: their
FLOP are 0. Operators of other libraries that the counter does not count are guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode, flop_registry, sdpa_backward_flop_count, sdpa_flop_count

from placeopt.bridges.costs import Cost, formulas
from placeopt.bridges.costs.formulas import ELEMENTWISE

_SAME = {
    "abs", "add", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "celu", "cos", "cosh", "div", "elu", "erf",
    "exp", "floor", "leaky_relu", "log", "mish", "mul", "neg", "pow", "prelu", "reciprocal", "relu", "round", "selu",
    "sigmoid", "sign", "sin", "sinh", "softplus", "sqrt", "sub", "tan", "tanh", "where",
}  # fmt: skip
"""Elementwise operators with the same name in `formulas`."""

_ELEMENTS: Mapping[str, int] = {name: ELEMENTWISE[name] for name in _SAME} | {
    "addcdiv": 3,
    "addcmul": 3,
    "atan2": ELEMENTWISE["atan"] + ELEMENTWISE["div"],
    "bernoulli": 1,
    "bitwise_and": 1,
    "bitwise_not": 1,
    "bitwise_or": 1,
    "bitwise_xor": 1,
    "clamp": ELEMENTWISE["clip"],
    "clamp_max": 1,
    "clamp_min": 1,
    "dropout": 2,
    "eq": 1,
    "erfc": ELEMENTWISE["erf"] + 1,
    "exp2": ELEMENTWISE["exp"],
    "expm1": ELEMENTWISE["exp"] + 1,
    "floor_divide": 2,
    "fmod": ELEMENTWISE["mod"],
    "ge": 1,
    "gelu": ELEMENTWISE["gelu"],
    "gelu_backward": ELEMENTWISE["gelu"] + ELEMENTWISE["exp"] + 4,
    "glu": ELEMENTWISE["sigmoid"] + 1,
    "gt": 1,
    "hardsigmoid": ELEMENTWISE["hardsigmoid"],
    "hardswish": ELEMENTWISE["hardswish"],
    "hardtanh": ELEMENTWISE["clip"],
    "isnan": 1,
    "le": 1,
    "lerp": 3,
    "log10": ELEMENTWISE["log"] + 1,
    "log1p": ELEMENTWISE["log"] + 1,
    "log2": ELEMENTWISE["log"] + 1,
    "log_sigmoid": ELEMENTWISE["softplus"] + 1,
    "logical_and": 1,
    "logical_not": 1,
    "logical_or": 1,
    "lt": 1,
    "masked_fill": 1,
    "maximum": 1,
    "minimum": 1,
    "native_dropout": 2,
    "native_dropout_backward": 2,
    "ne": 1,
    "relu6": ELEMENTWISE["clip"],
    "remainder": ELEMENTWISE["mod"],
    "rsqrt": ELEMENTWISE["sqrt"] + ELEMENTWISE["reciprocal"],
    "rsub": 1,
    "sigmoid_backward": 3,
    "silu": ELEMENTWISE["swish"],
    "silu_backward": ELEMENTWISE["swish"] + 4,
    "square": 1,
    "tanh_backward": 3,
    "threshold": 1,
    "threshold_backward": 1,
    "tril": 1,
    "triu": 1,
    "true_divide": 1,
}
"""FLOP for each element of the first result."""

_REDUCTIONS: Mapping[str, int] = {
    "all": 1, "amax": 1, "amin": 1, "any": 1, "argmax": 1, "argmin": 1, "cumprod": 1, "cumsum": 1, "logsumexp": 25,
    "max": 1, "mean": 1, "min": 1, "norm": 2, "prod": 1, "std": 4, "sum": 1, "var": 4, "var_mean": 4,
    "linalg_vector_norm": 2,
    # Averages and maxima over windows read each element about once; see _POOLS for windows that overlap.
    "adaptive_avg_pool1d": 1, "adaptive_avg_pool2d": 1, "adaptive_avg_pool3d": 1, "_adaptive_avg_pool2d": 1,
    "adaptive_max_pool1d": 1, "adaptive_max_pool2d": 1, "adaptive_max_pool3d": 1,
    "avg_pool2d_backward": 1, "max_pool2d_with_indices_backward": 1, "_adaptive_avg_pool2d_backward": 1,
    "embedding_dense_backward": 1, "embedding_bag": 1, "nll_loss_forward": 1, "nll_loss_backward": 1,
    "mse_loss": 3, "mse_loss_backward": 3, "l1_loss": 3, "cross_entropy_loss": formulas.log_softmax_of(1) + 1,
    "binary_cross_entropy": 2 * ELEMENTWISE["log"] + 4,
    "binary_cross_entropy_with_logits": ELEMENTWISE["exp"] + ELEMENTWISE["log"] + 5,
}  # fmt: skip
"""FLOP for each element of the first argument."""

_NORMS: Mapping[str, Callable[[int], int]] = {
    "_log_softmax": formulas.log_softmax_of,
    "_log_softmax_backward_data": lambda n: n * (ELEMENTWISE["exp"] + 3),
    "_softmax": formulas.softmax_of,
    "_softmax_backward_data": lambda n: 4 * n,
    "_native_batch_norm_legit": lambda n: 9 * n,
    "_native_batch_norm_legit_no_training": formulas.batch_norm,
    "batch_norm": formulas.batch_norm,
    "group_norm": formulas.layer_norm,
    "instance_norm": formulas.layer_norm,
    "layer_norm": formulas.layer_norm,
    "log_softmax": formulas.log_softmax_of,
    "native_batch_norm": lambda n: 9 * n,
    "native_batch_norm_backward": lambda n: 11 * n,
    "native_group_norm": formulas.layer_norm,
    "native_group_norm_backward": lambda n: 14 * n,
    "native_layer_norm": formulas.layer_norm,
    "native_layer_norm_backward": lambda n: 14 * n,
    "_fused_rms_norm": formulas.rms_norm,
    "_fused_rms_norm_backward": lambda n: 10 * n,
    "rms_norm": formulas.rms_norm,
    "softmax": formulas.softmax_of,
}
"""FLOP of operators on the elements of the first argument. Backward formulas count the terms of the derivative."""

_POOLS = {"avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool1d", "max_pool2d", "max_pool3d", "max_pool2d_with_indices"}

_READS_ROWS = {"embedding", "gather", "index", "index_select", "take", "take_along_dim"}
"""Operators that read only selected rows of their first argument: as many bytes as they write."""

_WRITES_ROWS = {
    "index_add", "index_copy", "index_fill", "index_put", "masked_scatter", "scatter", "scatter_add", "scatter_reduce",
}  # fmt: skip
"""Operators that, in place, read and write only selected rows of their first argument."""

_OVERWRITES = {"bernoulli", "copy", "exponential", "fill", "normal", "random", "uniform", "zero"}
"""Operators that, in place, do not read their first argument."""

_RESHAPES = {"as_strided", "detach", "requires_grad", "squeeze", "swapaxes", "swapdims", "t", "transpose", "unsqueeze"}
"""Operators that, in place, change no element."""

_PRECISIONS = {
    torch.float64: "fp64",
    torch.float32: "fp32",
    torch.bfloat16: "bf16",
    torch.float16: "fp16",
    torch.float8_e4m3fn: "fp8",
    torch.float8_e5m2: "fp8",
    torch.int8: "int8",
    torch.uint8: "int8",
}

_FAILURES = (RuntimeError, TypeError, ValueError, IndexError, AssertionError, AttributeError, KeyError)
"""What an operator raises that the meta device cannot execute."""


def _attention(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    return int(sdpa_flop_count(query, key, value))


def _attention_backward(gradient: Any, query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    return int(sdpa_backward_flop_count(gradient, query, key, value))


_OWN_COUNTS = {
    packet: count
    for packet, count in (
        (torch.ops.aten._scaled_dot_product_flash_attention_for_cpu, _attention),
        (torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward, _attention_backward),
    )
    if packet not in flop_registry
}
"""The kernels of attention on a CPU. PyTorch's registry has those of GPUs only. They take shapes."""


def base_name(target: Any) -> str:
    """The name of an operator without library and overload, and without the mark of the variant in place: `relu`."""
    schema = getattr(target, "_schema", None)
    name = str(getattr(target, "__name__", target) if schema is None else schema.name).rpartition("::")[2]
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """All tensors in nested sequences and mappings, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from tensors_in(each)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for each in value:
            yield from tensors_in(each)


def tensor_bytes(tensor: torch.Tensor) -> int:
    """Bytes of the distinct elements of a tensor: an expanded dimension is stored once."""
    elements = 1
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        elements *= int(size) if stride or not size else 1
    return elements * int(tensor.element_size())


def precision_of(tensors: Sequence[torch.Tensor]) -> str | None:
    """The number format of a computation: of its first floating tensor, else of its first tensor; None if unknown."""
    floating = [tensor.dtype for tensor in tensors if tensor.dtype.is_floating_point]
    dtype = next(iter(floating or [tensor.dtype for tensor in tensors]), None)
    return None if dtype is None else _PRECISIONS.get(dtype)


class Meter:
    """Measures calls of operators on the meta device; equal calls are executed once."""

    def __init__(self) -> None:
        self._known: dict[Any, Cost | None] = {}

    def cost(self, target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Cost | None:
        """The cost of a call with tensors on the meta device; None if it cannot be executed there."""
        key = (target, _frozen(args), _frozen(kwargs))
        if key not in self._known:
            self._known[key] = _measured(target, args, kwargs)
        return self._known[key]


def _frozen(value: Any) -> Any:
    """A hashable value that is equal for equal calls."""
    if isinstance(value, torch.Tensor):
        return torch.Tensor, tuple(value.shape), value.stride(), value.dtype
    if isinstance(value, Mapping):
        return tuple((key, _frozen(each)) for key, each in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(_frozen(each) for each in value)
    return type(value), repr(value) if isinstance(value, float) else value


def _measured(target: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Cost | None:
    given = list(tensors_in((args, kwargs)))
    homes = [tensor.untyped_storage()._cdata for tensor in given]
    try:
        with torch.no_grad(), FlopCounterMode(display=False, custom_mapping=_OWN_COUNTS) as counter:
            result = target(*args, **kwargs)
    except _FAILURES:
        return None
    results = list(tensors_in(result))
    in_place = mutates(target)
    if results and not in_place:
        first = results[0].untyped_storage()._cdata
        if first in homes:
            return Cost(0, 0, view_of=homes.index(first))
    counted = int(counter.get_total_flops())
    name = base_name(target)
    known = getattr(target, "namespace", "aten") in ("aten", "prims", "_operator")
    flops = counted or _elementwise(name, args, given, results)
    return Cost(flops, _traffic(name, given, results, in_place), guessed=not (counted or known))


def mutates(target: Any) -> bool:
    """Whether an operator overwrites an argument; operators in place that change only shapes do not."""
    schema = getattr(target, "_schema", None)
    return schema is not None and bool(schema.is_mutable) and base_name(target) not in _RESHAPES


def _elementwise(name: str, args: tuple[Any, ...], given: list[torch.Tensor], results: list[torch.Tensor]) -> int:
    """FLOP by formula; 0 for operators that only move data."""
    made = results[0].numel() if results else 0
    if name in _ELEMENTS:
        return _ELEMENTS[name] * made
    read = given[0].numel() if given else 0
    if name in _REDUCTIONS:
        return _REDUCTIONS[name] * read
    if name in _NORMS:
        return _NORMS[name](read)
    if name in _POOLS:
        window = args[1] if isinstance(args[1], Sequence) else [args[1]]
        spatial = int(name[name.index("pool") + 4])
        kernel = 1
        for size in list(window) * (spatial if len(window) == 1 else 1):
            kernel *= int(size)
        return formulas.pooling(made, kernel)
    return 0


def _traffic(name: str, given: list[torch.Tensor], results: list[torch.Tensor], in_place: bool) -> int:
    read = [tensor_bytes(tensor) for tensor in given]
    written = sum(tensor_bytes(tensor) for tensor in results)
    if in_place and name in _WRITES_ROWS:
        return 2 * sum(read[1:])
    if in_place and name in _OVERWRITES:
        return sum(read[1:]) + written
    if read and name in _READS_ROWS:
        read[0] = min(read[0], written)
    return sum(read) + written
