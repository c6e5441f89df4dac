"""ONNX models without their weights: live nodes as tasks, sizes of tensors, and the constants that each node reads.

`read_model` returns an `OnnxModel`. Its names of tasks hold for imported problems, exported segments and profiles.
`inlined` inlines the functions of a model, so that a runtime executes the nodes that `read_model` lists.
"""

from placeopt.bridges.onnx_models.loading import inlined, load_proto
from placeopt.bridges.onnx_models.reading import read_model
from placeopt.bridges.onnx_models.view import Body, LiveNode, OnnxModel, Tensor, operator_name

__all__ = ["Body", "LiveNode", "OnnxModel", "Tensor", "inlined", "load_proto", "operator_name", "read_model"]
