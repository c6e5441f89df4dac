"""Image models as graphs of TensorFlow 1.12."""

from __future__ import annotations

import math

from placeopt.generate import layers
from placeopt.generate.tensorflow.graph import Graph, Tensor
from placeopt.generate.tensorflow.lowering import Lowering
from placeopt.generate.tensorflow.operations import binary, placeholder, pointwise, reduce, strided_slice
from placeopt.generate.tensorflow.variables import Outputs


def classifier(graph: Graph, kernels: layers.Graph) -> Outputs:
    """Add an image classifier of slim; its loss is the cross-entropy of the main logits."""
    training = kernels.options.training
    lowering = Lowering(graph, training, slim=True)
    lowering.lower(kernels)
    results = (lowering.probabilities("predictions"),)
    return Outputs(results, lowering.loss("predictions") if training else None)


def holography(graph: Graph, kernels: layers.Graph) -> Outputs:
    """Add Tensor Holography.

    The last layer gives amplitudes and phases of three colours. The loss is that of the hologram (Shi et al. 2021,
    methods): the mean difference of the complex fields, after the mean difference of the phases is removed.
    """
    training = kernels.options.training
    lowering = Lowering(graph, training, slim=False)
    lowering.lower(kernels)
    *_, last = lowering.found.values()
    half = (last.shape[0], last.shape[1] // 2, *last.shape[2:])
    amplitude = binary("Mul", strided_slice(last, half, bounds=4), math.sqrt(0.5), name="mul")
    amplitude = binary("Add", amplitude, math.sqrt(0.5), name="output_field_amp")
    phase = binary("Mul", strided_slice(last, half, bounds=4), 0.5, name="mul")
    phase = binary("Add", phase, 0.5, name="output_field_phs")
    if not training:
        return Outputs((amplitude, phase))
    true_amplitude, true_phase = (placeholder(graph, half, (True,) * 4, "float", name) for name in ("amp", "phs"))
    angles = (_radians(true_phase), _radians(phase))
    # The released code states the difference twice.
    sine, cosine = (pointwise(op, pointwise("Sub", *angles, name="sub")) for op in ("Sin", "Cos"))
    angle = pointwise("Atan2", sine, cosine)
    angle = pointwise("Sub", angle, reduce("Mean", angle, (2, 3), keep=True), name="sub")
    real = pointwise("Mul", true_amplitude, pointwise("Cos", angle), name="mul")
    imaginary = pointwise("Mul", true_amplitude, pointwise("Sin", angle), name="mul")
    parts = (pointwise("Sub", real, amplitude, name="sub"), imaginary)
    means = [reduce("Mean", pointwise("Abs", part), None) for part in parts]
    return Outputs((amplitude, phase), pointwise("Add", *means, name="add"))


def _radians(phase: Tensor) -> Tensor:
    """Phases in [0, 1] as angles."""
    doubled = binary("Mul", binary("Sub", phase, 0.5, name="sub"), 2, name="mul")
    return binary("Mul", doubled, math.pi, name="mul")
