"""Costs of the operators of PyTorch: FLOP, memory traffic, and which results are views.

Each operator is executed once on the meta device, which computes shapes but no values. PyTorch's own counter
(`torch.utils.flop_counter`) observes this and counts products, convolutions and attention; `_OWN_COUNTS` corrects and
completes it. Other operators that this module names have the formulas of `formulas`, or only move data. All other
operators are guessed: only their traffic counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils.flop_counter import FlopCounterMode, flop_registry, sdpa_backward_flop_count, sdpa_flop_count

from placeopt.bridges.costs import Cost, formulas
from placeopt.bridges.costs.formulas import ELEMENTWISE, alike

_SAME = {
    "abs", "add", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "celu", "cos", "cosh", "div", "elu", "erf",
    "exp", "floor", "leaky_relu", "log", "mish", "mul", "neg", "pow", "prelu", "reciprocal", "relu", "round", "selu",
    "sigmoid", "sign", "sin", "sinh", "softplus", "sqrt", "sub", "tan", "tanh", "where",
}  # fmt: skip
"""Elementwise operators with the same name in `formulas`."""

_ELEMENTS: Mapping[str, int] = {name: ELEMENTWISE[name] for name in _SAME} | {
    **alike(
        "__and__ __or__ __xor__ bernoulli bitwise_and bitwise_left_shift bitwise_not bitwise_or "
        "bitwise_right_shift bitwise_xor clamp_max clamp_min diff eq fmax fmin frac ge gt isfinite isinf "
        "isnan le logical_and logical_not logical_or logical_xor lt masked_fill maximum minimum ne rsub "
        "square threshold threshold_backward tril triu true_divide trunc",
        1,
    ),
    **alike("addcdiv addcmul lerp nan_to_num sigmoid_backward tanh_backward", 3),
    "atan2": ELEMENTWISE["atan"] + ELEMENTWISE["div"],
    **alike("clamp hardtanh relu6", ELEMENTWISE["clip"]),
    **alike("dropout floor_divide native_dropout native_dropout_backward", 2),
    "erfc": ELEMENTWISE["erf"] + 1,
    "exp2": ELEMENTWISE["exp"],
    "expm1": ELEMENTWISE["exp"] + 1,
    **alike("fmod remainder", ELEMENTWISE["mod"]),
    "gelu": ELEMENTWISE["gelu"],
    "gelu_backward": ELEMENTWISE["gelu"] + ELEMENTWISE["exp"] + 4,
    "glu": ELEMENTWISE["sigmoid"] + 1,
    "hardsigmoid": ELEMENTWISE["hardsigmoid"],
    "hardswish": ELEMENTWISE["hardswish"],
    **alike("log10 log1p log2", ELEMENTWISE["log"] + 1),
    "log_sigmoid": ELEMENTWISE["softplus"] + 1,
    "rsqrt": ELEMENTWISE["sqrt"] + ELEMENTWISE["reciprocal"],
    "silu": ELEMENTWISE["swish"],
    "silu_backward": ELEMENTWISE["swish"] + 4,
    # Interpolations: a product and a sum for each point.
    "upsample_linear1d": 4,
    "upsample_bilinear2d": 8,
    "upsample_bicubic2d": 32,
    "upsample_trilinear3d": 16,
}
"""FLOP for each element of the first result."""

_DERIVATIVE = 3
"""FLOP of the backward pass of an elementwise operator beyond those of the operator itself."""

_REDUCTIONS: Mapping[str, int] = {
    "all": 1, "amax": 1, "amin": 1, "aminmax": 2, "any": 1, "argmax": 1, "argmin": 1, "count_nonzero": 1, "cumprod": 1,
    "cumsum": 1, "logsumexp": 25, "max": 1, "mean": 1, "min": 1, "norm": 2, "prod": 1, "std": 4, "std_mean": 4,
    "sum": 1, "var": 4, "var_mean": 4, "linalg_vector_norm": 2,
    # Averages and maxima over windows read each element about once; see _POOLS for windows that overlap.
    "adaptive_avg_pool1d": 1, "adaptive_avg_pool2d": 1, "adaptive_avg_pool3d": 1, "_adaptive_avg_pool2d": 1,
    "adaptive_max_pool1d": 1, "adaptive_max_pool2d": 1, "adaptive_max_pool3d": 1,
    "avg_pool2d_backward": 1, "max_pool2d_with_indices_backward": 1, "_adaptive_avg_pool2d_backward": 1,
    "embedding_dense_backward": 1, "embedding_bag": 1, "nll_loss": 1, "nll_loss_forward": 1, "nll_loss_backward": 1,
    "nll_loss2d_forward": 1, "nll_loss2d_backward": 1, "mse_loss": 3, "mse_loss_backward": 3, "l1_loss": 3,
    "huber_loss": 5, "huber_loss_backward": 5, "smooth_l1_loss": 5, "smooth_l1_loss_backward": 5,
    "cross_entropy_loss": formulas.log_softmax_of(1) + 1, "convolution_backward": 1,  # of the bias alone
    "binary_cross_entropy": 2 * ELEMENTWISE["log"] + 4,
    "binary_cross_entropy_with_logits": ELEMENTWISE["exp"] + ELEMENTWISE["log"] + 5,
}  # fmt: skip
"""FLOP for each element of the first argument."""

_NORMS: Mapping[str, Callable[[int], int]] = {
    **alike("_log_softmax log_softmax", formulas.log_softmax_of),
    "_log_softmax_backward_data": lambda n: n * (ELEMENTWISE["exp"] + 3),
    **alike("_softmax softmax", formulas.softmax_of),
    "_softmax_backward_data": lambda n: 4 * n,
    "_native_batch_norm_legit": formulas.layer_norm,  # in training, with mean and variance of the batch
    **alike("_native_batch_norm_legit_no_training batch_norm", formulas.batch_norm),
    **alike(
        "group_norm instance_norm layer_norm native_batch_norm native_group_norm native_layer_norm", formulas.layer_norm
    ),
    "native_batch_norm_backward": lambda n: 11 * n,
    **alike("native_group_norm_backward native_layer_norm_backward", lambda n: 14 * n),
    **alike("_fused_rms_norm rms_norm", formulas.rms_norm),
    "_fused_rms_norm_backward": lambda n: 10 * n,
}
"""FLOP of operators on the elements of the first argument. Backward formulas count the terms of the derivative."""

_POOLS = {"avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool1d", "max_pool2d", "max_pool3d", "max_pool2d_with_indices"}

_MOVES = frozenset(
    """
    alias arange as_strided as_strided_scatter broadcast_to cat channel_shuffle chunk clone col2im complex concat
    concatenate constant_pad_nd contiguous convert_element_type copy detach diag diag_embed diagonal
    diagonal_scatter dstack embedding empty empty_like empty_permuted empty_strided expand expand_as exponential eye
    fill flatten flip fliplr flipud full full_like gather hstack im2col imag index index_add index_copy index_fill
    index_put index_select lift lift_fresh lift_fresh_copy linspace masked_scatter masked_select meshgrid movedim
    narrow new_empty new_empty_strided new_full new_ones new_zeros nonzero normal one_hot ones ones_like pad permute
    pixel_shuffle pixel_unshuffle rand rand_like randint randint_like randn randn_like random randperm real
    reflection_pad1d reflection_pad2d reflection_pad3d repeat repeat_interleave replication_pad1d replication_pad2d
    replication_pad3d reshape reshape_as resolve_conj resolve_neg roll rot90 scalar_tensor scatter scatter_add
    scatter_reduce select select_scatter slice slice_scatter split split_with_sizes squeeze stack swapaxes swapdims
    t take take_along_dim tensor_split tile to transpose tril_indices triu_indices type_as unbind unflatten unfold
    uniform unsafe_chunk unsafe_split unsqueeze upsample_nearest1d upsample_nearest2d upsample_nearest3d view
    view_as view_as_complex view_as_real vstack zero zeros zeros_like _conj _local_scalar_dense _pad_circular
    _to_copy _unsafe_index _unsafe_index_put _unsafe_view _upsample_nearest_exact1d _upsample_nearest_exact2d
    _upsample_nearest_exact3d
    """.split()  # noqa: SIM905
)
"""Operators that create, copy or rearrange data, or add values; also their variants `_copy` and `_backward`."""

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


_META_KEYS = ("Meta", "CompositeImplicitAutograd", "CompositeExplicitAutograd")
"""Keys of the dispatcher under which an operator is stated that can be executed on the meta device."""


def _convolution_backward(gradient: Any, data: Any, weight: Any, *rest: Any, **_: Any) -> int:
    """The gradients of the input and of the weight take the work of the convolution each, also with groups.

    PyTorch's counter counts the gradient of a grouped weight as that of a dense one.
    """
    transposed, mask = rest[4], rest[7]
    positions = math.prod((data if transposed else gradient)[2:])
    return int(2 * data[0] * math.prod(weight) * positions * (bool(mask[0]) + bool(mask[1])))


def _product(left: Any, right: Any, *_: Any, **__: Any) -> int:
    """Each row of the left matrices is multiplied by one right matrix, or by its share of the columns."""
    columns = int(right[-1]) if len(right) >= len(left) else int(right[-1]) // int(left[0])
    return int(2 * math.prod(left) * columns)


def _vector_product(left: Any, *_: Any, **__: Any) -> int:
    return int(2 * math.prod(left))


def _added_vector_product(_: Any, matrix: Any, *__: Any, **___: Any) -> int:
    return int(2 * math.prod(matrix))


_CORRECTED = {torch.ops.aten.convolution_backward: _convolution_backward}
_MISSING = {
    torch.ops.aten._grouped_mm: _product,
    torch.ops.aten._int_mm: _product,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _attention,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: _attention_backward,
    torch.ops.aten.addmv: _added_vector_product,
    torch.ops.aten.dot: _vector_product,
    torch.ops.aten.mv: _vector_product,
}
_OWN_COUNTS = _CORRECTED | {packet: count for packet, count in _MISSING.items() if packet not in flop_registry}
"""Counts that replace those of PyTorch's registry, and of operators that it lacks: for example, its kernels of
attention are those of GPUs only. The functions take shapes.
"""


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
    if not _is_operator(target, makes_tensors=not given):
        return None
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
    flops = counted or _by_formula(target, name, args, kwargs, given, results)
    return Cost(flops or 0, _traffic(name, given, results, in_place), guessed=flops is None)


def _is_operator(target: Any, *, makes_tensors: bool) -> bool:
    """Whether a function of a graph, which a saved program may state at will, is an operator that is safe to execute.

    Operators of TorchScript, such as `aten::save`, are not in PyTorch's dispatcher. An operator without tensors as
    arguments must have a kernel for the meta device: `aten::from_file` creates a file.
    """
    if not isinstance(target, OpOverload):
        return False
    try:
        return torch._C._dispatch_has_kernel(target.name()) and (
            not makes_tensors
            or any(torch._C._dispatch_has_kernel_for_dispatch_key(target.name(), key) for key in _META_KEYS)
        )
    except RuntimeError:  # the dispatcher has no such operator
        return False


def mutates(target: Any) -> bool:
    """Whether an operator overwrites an argument; operators in place that change only shapes do not."""
    schema = getattr(target, "_schema", None)
    return schema is not None and bool(schema.is_mutable) and base_name(target) not in _RESHAPES


def is_elementwise(target: Any) -> bool:
    """Whether each element of the result depends on one element of each argument of its shape."""
    name = base_name(target)
    known = name in _ELEMENTS or name.removesuffix("_backward") in _ELEMENTS
    return known and getattr(target, "namespace", "") == "aten" and not name.startswith("upsample")


def _by_formula(
    target: Any,
    name: str,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    given: list[torch.Tensor],
    results: list[torch.Tensor],
) -> int | None:
    """FLOP by formula; 0 for operators that only move data, None without a rule."""
    if getattr(target, "namespace", "aten") not in ("aten", "prims", "_operator"):
        return None
    made = results[0].numel() if results else 0
    if name in _ELEMENTS:
        return _ELEMENTS[name] * made
    if name.removesuffix("_backward") in _ELEMENTS:
        return (_ELEMENTS[name.removesuffix("_backward")] + _DERIVATIVE) * made
    read = given[0].numel() if given else 0
    if name in _REDUCTIONS:
        return _REDUCTIONS[name] * read
    if name in _NORMS:
        return _NORMS[name](read)
    if name in _POOLS:
        window = args[1] if len(args) > 1 else kwargs["kernel_size"]
        sizes = list(window) if isinstance(window, Sequence) else [window]
        spatial = int(name[name.index("pool") + 4])
        return formulas.pooling(made, math.prod(sizes) ** (spatial if len(sizes) == 1 else 1))
    if name == "topk":
        return formulas.selection(read, args[1] if len(args) > 1 else kwargs["k"])
    if name in ("argsort", "sort"):
        return formulas.selection(read, read)
    return 0 if name.removesuffix("_copy").removesuffix("_backward") in _MOVES else None


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
