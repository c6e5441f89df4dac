"""Small ONNX models for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper
from onnx.helper import make_node as node

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"

__all__ = ["LIGHT", "constant", "light", "model", "node", "weight"]

Shape = Sequence[int | str | None]


def light(name: str) -> Path:
    """A light model of the onnx package."""
    return LIGHT / f"light_{name}.onnx"


def weight(name: str, *shape: int, element: int = TensorProto.FLOAT) -> TensorProto:
    """An initializer of zeros."""
    return helper.make_tensor(name, element, shape, bytes(_bytes(element, shape)), raw=True)


def _bytes(element: int, shape: Sequence[int]) -> int:
    return int(np.prod(shape, dtype=np.int64)) * helper.tensor_dtype_to_np_dtype(element).itemsize


def constant(name: str, values: Any, dtype: Any = np.int64) -> TensorProto:
    """An initializer with these values."""
    return numpy_helper.from_array(np.array(values, dtype=dtype), name)


def model(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Shape],
    outputs: Mapping[str, Shape | None] | Sequence[str],
    weights: Sequence[TensorProto] = (),
    *,
    opset: int = 17,
    ir: int = 8,
    element: int = TensorProto.FLOAT,
    domains: Mapping[str, int] | None = None,
    elements: Mapping[str, int] | None = None,
    functions: Sequence[onnx.FunctionProto] = (),
    name: str = "small",
) -> onnx.ModelProto:
    """A model; the shapes of the outputs may be left out."""
    elements = elements or {}
    results = outputs if isinstance(outputs, Mapping) else dict.fromkeys(outputs)
    made = helper.make_graph(
        list(nodes),
        name,
        [helper.make_tensor_value_info(key, elements.get(key, element), shape) for key, shape in inputs.items()],
        [helper.make_tensor_value_info(key, elements.get(key, element), shape) for key, shape in results.items()],
        list(weights),
    )
    imports = [helper.make_opsetid("", opset)] if opset else []
    imports += [helper.make_opsetid(domain, version) for domain, version in (domains or {}).items()]
    return helper.make_model(made, opset_imports=imports, ir_version=ir, functions=list(functions))
