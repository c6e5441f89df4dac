"""FLOP of operators as functions of sizes; a multiplication and an addition are two FLOP."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

Entry = TypeVar("Entry")

EXP = 22
LOG = 30
TANH = 21
SIGMOID = 27
POW = EXP + LOG + 1
"""x^y = exp(y log x)."""


def alike(names: str, entry: Entry) -> dict[str, Entry]:
    """Return the same entry for each of several operators."""
    return dict.fromkeys(names.split(), entry)


ELEMENTWISE: Mapping[str, int] = {
    **alike("abs add and bitwise cast ceil compare div floor mul neg not reciprocal relu round sign sqrt sub where", 1),
    **alike("acos asin atan cos erf exp sin", EXP),
    **alike("acosh asinh atanh", LOG + 4),
    **alike("celu gelu selu", EXP + 4),
    **alike("clip leaky_relu prelu", 2),
    **alike("cosh elu sinh", EXP + 3),
    "gelu_tanh": TANH + 8,
    "hardsigmoid": 4,
    "hardswish": 5,
    "log": LOG,
    "mish": EXP + LOG + TANH + 2,
    **alike("mod shrink softsign", 3),
    "pow": POW,
    "sigmoid": SIGMOID,
    "softplus": EXP + LOG + 1,
    "swish": SIGMOID + 2,
    "tan": EXP + 1,
    "tanh": TANH,
}
"""FLOP for each element of the result.

- The operations of IEEE 754 (addition, division, square root, minimum, comparison, rounding) and logic are one FLOP.
- exp, log, tanh and sigmoid are the arithmetic instructions of their vectorised float32 versions in Eigen 3.4
  (Eigen/src/Core/functors/UnaryFunctors.h), a fused multiply-add being two: exp has 8 fused, 4 multiplications and
  2 additions; log 8, 6 and 8; tanh 9 fused, 2 multiplications and a division; sigmoid 15 additions, 11 multiplications
  and a division.
- Eigen does not count erf and the circular functions. They are polynomials of about the length of exp.
- The others are sums of these, from their definitions.

Such operators are bound by memory on common devices, so that their durations hardly depend on these numbers.
"""


def matmul(rows: int, inner: int, columns: int) -> int:
    """The product of a rows x inner matrix and an inner x columns matrix."""
    return 2 * rows * inner * columns


def convolution(batch: int, out_channels: int, outputs: int, in_channels: int, kernel: int) -> int:
    """A convolution, without bias.

    Parameters
    ----------
    outputs
        Number of output positions: the product of the spatial sizes.
    in_channels
        Input channels of a group.
    kernel
        Number of kernel positions: the product of its sizes.
    """
    return 2 * batch * out_channels * outputs * in_channels * kernel


def transposed_convolution(batch: int, in_channels: int, inputs: int, out_channels: int, kernel: int) -> int:
    """A transposed convolution, without bias: each input position is multiplied by the whole kernel.

    Parameters
    ----------
    inputs
        Number of input positions.
    out_channels
        Output channels of a group.
    """
    return 2 * batch * in_channels * inputs * out_channels * kernel


def attention(batch: int, heads: int, queries: int, keys: int, head_size: int, value_size: int | None = None) -> int:
    """Scaled dot-product attention: scores, their softmax, and weighted values.

    Masks are not exploited: a causal mask halves the work only in kernels that skip masked blocks.
    """
    value_size = head_size if value_size is None else value_size
    scores = batch * heads * queries * keys
    return 2 * scores * (head_size + value_size) + scores + softmax_of(scores)


def softmax_of(elements: int) -> int:
    """A softmax: maximum, difference, exponential, sum, and quotient."""
    return elements * (EXP + 4)


def log_softmax_of(elements: int) -> int:
    """The logarithm of a softmax: maximum, difference, exponential, sum, and difference."""
    return elements * (EXP + 4)


def layer_norm(elements: int, *, affine: bool = True) -> int:
    """A normalisation by mean and variance: sum; difference, square, sum; quotient; scale and offset."""
    return elements * (5 + 2 * affine)


def rms_norm(elements: int) -> int:
    """A normalisation by the root mean square: square, sum; quotient; scale."""
    return 4 * elements


def batch_norm(elements: int) -> int:
    """A batch normalisation at inference, in which scale and offset of a channel are combined."""
    return 2 * elements


def local_response_norm(elements: int, size: int) -> int:
    """A normalisation across `size` channels: squares, their sum, scale and offset, a power, and a quotient."""
    return elements * (1 + size + 2 + POW + 1)


def recurrent(steps: int, batch: int, inputs: int, hidden: int, gates: int, directions: int = 1) -> int:
    """An LSTM (4 gates), a GRU (3) or an RNN (1): products with inputs and states, bias, activations, and updates.

    One gate has a tanh, the others have a sigmoid. A GRU resets its state h with a product, and updates it to
    h + z (h' - h).
    """
    products = matmul(1, inputs, gates * hidden) + matmul(1, hidden, gates * hidden)
    activations = (gates - 1) * SIGMOID + TANH
    updates = {4: TANH + 4, 3: 4, 1: 0}[gates]
    return steps * batch * directions * (products + hidden * (2 * gates + activations + updates))


def pooling(outputs: int, kernel: int) -> int:
    """A maximum or a mean over `kernel` positions for each output."""
    return outputs * kernel


def interpolation(outputs: int, points: int) -> int:
    """A weighted sum of `points` inputs for each output; none for a single point, which is copied."""
    return 2 * outputs * points if points > 1 else 0


def fourier(length: int, transforms: int) -> int:
    """Fast Fourier transforms: 5 n log2 n, the usual count for the radix-2 algorithm of Cooley and Tukey (1965)."""
    return transforms * 5 * length * max(math.ceil(math.log2(length)), 1) if length > 1 else 0


def selection(elements: int, count: int) -> int:
    """The `count` largest of the elements, by a heap: a comparison for each level and element."""
    return elements * max(math.ceil(math.log2(count)), 1) if count > 0 else 0


def contraction(operands: Sequence[Mapping[str, int]], kept: Collection[str]) -> int:
    """An Einstein summation, pair by pair from the left.

    Parameters
    ----------
    operands
        The size of each index of each operand; an index of size 1 is broadcast.
    kept
        Indices of the result.
    """
    if len(operands) == 1:
        return _product(operands[0]) if set(operands[0]) - set(kept) else 0
    flops = 0
    left = dict(operands[0])
    for place, right in enumerate(operands[1:], start=2):
        both = left | {index: max(size, left.get(index, 1)) for index, size in right.items()}
        later = {index for operand in operands[place:] for index in operand} | set(kept)
        summed = any(index not in later for index in both)
        flops += _product(both) * (2 if summed else 1)
        left = {index: size for index, size in both.items() if index in later}
    return flops


def experts_read(weights: int, experts: int, active: int, tokens: int) -> int:
    """Expected bytes that a step reads of the weights of a mixture of experts, whose size is `weights` bytes.

    Each token uses `active` of the experts. If tokens choose them uniformly and independently, t tokens use the
    fraction 1 - (1 - active / experts)^t of them.
    """
    if tokens == 1:
        return -(-weights * active // experts)
    return round(weights * (1 - (1 - active / experts) ** tokens))


def _product(sizes: Mapping[str, int]) -> int:
    return math.prod(sizes.values())
