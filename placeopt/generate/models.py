"""Generate graphs and documents of models by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from placeopt.errors import UsageError, alternatives, listing, suggestion
from placeopt.generate.convnets import (
    ConvnetOptions,
    HolographyOptions,
    InceptionOptions,
    inception_v3,
    resnet50,
    tensor_holography,
    vgg19,
)
from placeopt.generate.layers import Graph, ModelOptions, add_training, tasks
from placeopt.generate.recurrent import LstmOptions, lstm_nmt
from placeopt.generate.tensorflow.documents import tensorflow_tasks
from placeopt.generate.transformer import TransformerOptions, transformer
from placeopt.model.units import shown


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model that can be generated."""

    name: str
    description: str
    source: str
    """Citation of the architecture."""
    options: type[ModelOptions]
    """Class of its options, each with a type, a default and a description."""
    build: Callable[[Any], Graph]
    """Function that builds the forward graph for valid options."""


MODELS: dict[str, ModelSpec] = {
    model.name: model
    for model in (
        ModelSpec(
            "vgg19",
            "VGG-19, an image classifier: a chain of 24 layers.",
            "Simonyan, Zisserman, ICLR 2015, arXiv:1409.1556",
            ConvnetOptions,
            vgg19,
        ),
        ModelSpec(
            "resnet50",
            "ResNet-50, an image classifier: 176 layers, residual connections.",
            "He, Zhang, Ren, Sun, CVPR 2016, doi:10.1109/CVPR.2016.90",
            ConvnetOptions,
            resnet50,
        ),
        ModelSpec(
            "inception_v3",
            "Inception-v3, an image classifier: 311 layers, up to six in parallel.",
            "Szegedy, Vanhoucke, Ioffe, Shlens, Wojna, CVPR 2016, doi:10.1109/CVPR.2016.308",
            InceptionOptions,
            inception_v3,
        ),
        ModelSpec(
            "transformer",
            "The encoder-decoder Transformer, a translator.",
            "Vaswani et al., NeurIPS 2017, arXiv:1706.03762",
            TransformerOptions,
            transformer,
        ),
        ModelSpec(
            "lstm_nmt",
            "A translator of LSTM layers with attention, unrolled in time.",
            "Sutskever, Vinyals, Le, NeurIPS 2014, arXiv:1409.3215; Luong, Pham, Manning, EMNLP 2015, "
            "doi:10.18653/v1/D15-1166",
            LstmOptions,
            lstm_nmt,
        ),
        ModelSpec(
            "tensor_holography",
            "Tensor Holography, holograms from images with depth: 30 convolutions.",
            "Shi, Li, Kim, Kellnhofer, Matusik, Nature 591, 2021, doi:10.1038/s41586-020-03152-0",
            HolographyOptions,
            tensor_holography,
        ),
    )
}
"""All models by name, in the order of listings."""


TENSORFLOW = "operations of TensorFlow 1.12 (Abadi et al., OSDI 2016)"
"""Added to the source of a graph of TensorFlow."""


def model_graph(name: str, **options: Any) -> Graph:
    """Generate the kernels of a model, with backward operators in training.

    Raises a UsageError if the model or an option is unknown, or a value is not valid.
    """
    checked = _options(name, options)
    graph = MODELS[name].build(checked)
    if checked.training:
        add_training(graph)
    return graph


def _options(name: str, options: dict[str, Any]) -> ModelOptions:
    if name not in MODELS:
        raise UsageError(f"unknown model {name}{alternatives(name, MODELS)}")
    model = MODELS[name]
    try:
        return model.options(**options)
    except ValidationError as error:
        raise UsageError("\n".join(_message(model, detail) for detail in error.errors())) from None


def model_document(name: str, **options: Any) -> dict[str, Any]:
    """Generate a model as a spec without devices, for `graph: {file: ...}`; see `model_graph` for the errors.

    A problem with the objective `period` needs `pipeline_sections` too.
    """
    checked = _options(name, options)
    model, chosen = MODELS[name], checked.model_dump(exclude_unset=True)
    values = ", ".join(f"{option}={shown(value)}" for option, value in chosen.items())
    described = f"{model.description} Options: {values}." if values else model.description
    if checked.objective == "period" and checked.training:
        described += (
            " The resident memory contains the gradients and the state of the optimiser "
            f"({checked.optimiser}), which updates the weights after several runs."
        )
    return {
        "placeopt": 1,
        "name": name,
        "description": described,
        "source": model.source if checked.style == "kernels" else f"{model.source}; {TENSORFLOW}",
        "tasks": tasks(model_graph(name, **options)) if checked.style == "kernels" else tensorflow_tasks(name, checked),
    }


def pipeline_sections(*, training: bool = False) -> dict[str, Any]:
    """Return the objective and the rules of a problem whose model was generated with the objective `period`."""
    rules = {"stages": "contiguous", "in_flight": "1f1b" if training else "inference"}
    return {"objective": "period", "pipeline": rules}


def _message(model: ModelSpec, detail: Any) -> str:
    option = ".".join(map(str, detail["loc"]))
    if detail["type"] == "extra_forbidden":
        known = list(model.options.model_fields)
        return f"{model.name} has no option {option}; it has {listing(known, limit=20)}{suggestion(option, known)}"
    if not option:
        return f"{model.name}: {detail['ctx']['error']}"
    reason = detail["msg"][0].lower() + detail["msg"][1:]
    return f"{model.name}: option {option}: {shown(detail['input'])}: {reason}"
