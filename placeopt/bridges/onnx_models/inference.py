"""Sizes of all tensors: shape inference node by node, with the values of small constants."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from placeopt.bridges.onnx_models.control import Argument, inputs_of_bodies, is_known, open_outputs, outputs_of_bodies
from placeopt.bridges.onnx_models.loading import SMALL, bodies, is_small, read_by
from placeopt.bridges.onnx_models.operator_shapes import own_types
from placeopt.bridges.onnx_models.scopes import Scope, contradiction, unsafe
from placeopt.bridges.onnx_models.sizes import shape_of, shapes, tensor_type, with_stated_sizes
from placeopt.bridges.onnx_models.view import Body, Tensor, Values, attribute, operator_name
from placeopt.errors import DocumentError, Issue, visible

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TypeProto, ValueInfoProto
    from onnx.defs import OpSchema

_EVALUATED = frozenset(
    """
    Abs Add And Cast CastLike Ceil Concat Constant ConstantOfShape Div Equal Expand Floor Gather GatherElements
    GatherND Greater GreaterOrEqual Identity Less LessOrEqual Max Min Mod Mul Neg Not Or Pow Range ReduceMax ReduceMin
    ReduceProd ReduceSum Reshape Round ScatterElements ScatterND Shape Sign Size Slice Split Sqrt Squeeze Sub Tile
    Transpose Unsqueeze Where Xor
    """.split()  # noqa: SIM905
)
"""Operators of the standard domain that compute shapes. Their small results are computed by onnx's reference."""

RANDOM = frozenset(
    {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial"}
)
"""Operators whose outputs differ from run to run, so that they are never folded."""

_LARGEST = 2**62
"""Largest size that is stored."""

_SHAPE_ONLY = frozenset({"Shape", "Size"})
"""Operators whose result depends only on the shape of the input."""


class Inference:
    """Infers the types of all tensors of a model whose inputs have known sizes."""

    def __init__(self, proto: ModelProto, opsets: Mapping[str, int], labels: Sequence[str], file: str | None) -> None:
        self._graph = proto.graph
        self._opsets = opsets
        self._imports = list(proto.opset_import)
        self._ir_version = proto.ir_version
        self._labels = labels
        self._file = file
        self._schemas: dict[tuple[str, str], OpSchema | None] = {}
        self._defaults: dict[tuple[str, str], list[AttributeProto]] = {}
        self._issues: list[Issue] = []
        self._unfit: list[Issue] = []
        """The issues about shapes and types that do not fit an operator."""
        self._scope = Scope()
        self.notes: list[str] = []
        """Statements of the model that do not hold, and are ignored as ONNX Runtime does."""
        self.bodies: dict[int, dict[str, Body]] = {}
        """Bodies of control flow by index of the node and attribute."""

    @property
    def values(self) -> dict[str, Values]:
        """Values of small tensors that do not depend on the values of the inputs."""
        return dict(self._scope.values)

    def tensors(self) -> dict[str, Tensor]:
        """All tensors of the graph."""
        return self._scope.tensors()

    def run(
        self,
        inputs: Iterable[ValueInfoProto],
        order: Iterable[int],
        reads: Sequence[Sequence[str]],
        changed: Mapping[str, tuple[int, int]],
    ) -> None:
        """Infer the types of all nodes in topological order.

        Parameters
        ----------
        reads
            The tensors that each node reads, also in bodies.
        changed
            The old and new sizes of dimensions of the inputs that the model fixes. With such, the sizes that the model
            states for other tensors do not hold.

        Raises
        ------
        DocumentError
            If shapes or types do not fit an operator; lists every node.
        """
        graph, scope = self._graph, self._scope
        stated = {} if changed else _stated(graph)
        for value in inputs:
            scope.types[value.name] = value.type
            self._complete_input(value.name, scope)
        self._add_constants(graph, scope)
        for index in order:
            found = self._node(graph.node[index], reads[index], scope, stated, ("nodes", self._labels[index]))
            if found:
                self.bodies[index] = found
        if changed:
            self._check_outputs(changed)
        if self._issues:
            raise DocumentError(self._issues)

    def _check_outputs(self, changed: Mapping[str, tuple[int, int]]) -> None:
        """Report that the model fixes a size that was changed: if shapes do not fit, or an output keeps its batch."""
        batches = dict(sizes for place, sizes in changed.items() if place.endswith("[0]"))
        for value in self._graph.output:
            before, after = shape_of(value.type), shape_of(self._scope.types[value.name])
            if before is None or after is None or len(before) < 2 or len(after) != len(before):
                continue
            if before[0] in batches and after[0] == before[0]:
                self._add(f"the first dimension of the output remains {after[0]}", ("output", value.name))
        names = ", ".join(f"{place} from {old} to {new}" for place, (old, new) in changed.items())
        if self._issues:
            first = self._issues[0]
            hint = f"the model does not allow another size of {names}; export it with a symbolic dimension"
            self._issues[0] = Issue(f"{first.message} ({hint})", first.path, first.file)

    @staticmethod
    def _complete_input(name: str, scope: Scope) -> None:
        """Mark an input whose size is not stated, such as a sequence."""
        if shape_of(scope.types[name]) is None:
            scope.assumed[name] = None

    def _add_constants(self, graph: GraphProto, scope: Scope) -> list[str]:
        """Add the initializers of a graph, and return their names."""
        from onnx import numpy_helper

        names = []
        for tensor in graph.initializer:
            names.append(tensor.name)
            scope.types[tensor.name] = tensor_type(tensor.data_type, tensor.dims)
            if any(length < 0 for length in tensor.dims):
                self._add(f"the initializer has the negative size {min(tensor.dims)}", ("initializer", tensor.name))
            elif is_small(tensor):
                try:
                    scope.values[tensor.name] = numpy_helper.to_array(tensor)
                except (ValueError, TypeError, KeyError, AttributeError, RuntimeError) as error:
                    self._add(f"the values do not fit the type and shape: {error}", ("initializer", tensor.name))
                else:
                    scope.data[tensor.name] = tensor
        for sparse in graph.sparse_initializer:
            names.append(sparse.values.name)
            scope.types[sparse.values.name] = tensor_type(sparse.values.data_type, sparse.dims)
        return names

    def _node(
        self,
        node: NodeProto,
        names: Sequence[str],
        scope: Scope,
        stated: Mapping[str, TypeProto],
        place: tuple[str, str],
    ) -> dict[str, Body]:
        """Add the types and values of the outputs of a node; return the bodies of control flow."""
        missing = [name for name in names if name not in scope.types]
        if missing:  # in a body; those of the graph are checked before
            self._add(f"reads {visible(missing[0])}, which no node before it writes", place)
        found: dict[str, Body] = {}
        kinds: dict[str, TypeProto] = {}
        if not missing:
            found, kinds = self._control(node, scope, place)
            kinds = kinds or self._inferred(node, names, scope, place)
        certain = not any(name in scope.assumed for name in (*names, *node.output))
        for name in filter(None, node.output):
            self._write(node, name, kinds.get(name), stated.get(name), scope, certain=certain)
        if kinds:
            self._evaluate(node, scope)
        return found

    def _inferred(
        self, node: NodeProto, names: Sequence[str], scope: Scope, place: tuple[str, str]
    ) -> dict[str, TypeProto]:
        """Types of the outputs as onnx infers them; empty without a schema or after an assumption that does not fit."""
        from onnx import shape_inference
        from onnx.checker import ValidationError
        from onnx.defs import SchemaError
        from onnx.shape_inference import InferenceError

        problem = unsafe(node, scope)
        if problem is not None:
            self._add_unfit(f"{node.op_type}: {problem}", place)
            return {}
        schema = self._schema(node)
        if schema is None:
            return own_types(node, scope.types, self._opsets.get("", 1))
        found: dict[str, TypeProto]
        try:
            found = shape_inference.infer_node_outputs(
                schema,
                self._with_defaults(node, schema),
                {name: scope.types[name] for name in names},
                {name: scope.data[name] for name in names if name in scope.data},
                None,
                self._imports,
                self._ir_version,
            )
        except (InferenceError, ValidationError, SchemaError, MemoryError, RuntimeError, ValueError) as error:
            if not any(name in scope.assumed for name in names):
                text = str(error).strip().removeprefix("[ShapeInferenceError] ")
                self._add_unfit(f"{operator_name(node)}: {visible(text, 400)}", place)
            return {}
        if node.domain == "ai.onnx.ml":
            found |= own_types(node, scope.types)
        elif not schema.has_type_and_shape_inference_function:
            found |= own_types(node, scope.types, schema.since_version)
        problem = contradiction(node, found, scope)
        if problem is not None:
            self._add_unfit(f"{node.op_type}: {problem}", place)
            return {}
        return found

    def _schema(self, node: NodeProto) -> OpSchema | None:
        from onnx import defs

        domain = "" if node.domain == "ai.onnx" else node.domain
        key = (node.op_type, domain)
        if key not in self._schemas:
            version = self._opsets.get(domain)
            try:
                self._schemas[key] = None if version is None else defs.get_schema(node.op_type, version, domain)
            except defs.SchemaError:
                self._schemas[key] = None
        return self._schemas[key]

    def _with_defaults(self, node: NodeProto, schema: OpSchema) -> NodeProto:
        """The node with all attributes that have a default: without them, onnx infers two sides of an STFT, not one."""
        from onnx import NodeProto

        key = (node.op_type, node.domain)
        if key not in self._defaults:
            values = [each.default_value for each in schema.attributes.values()]
            self._defaults[key] = [value for value in values if value.name]
        stated = {each.name for each in node.attribute}
        missing = [value for value in self._defaults[key] if value.name not in stated]
        if not missing:
            return node
        found = NodeProto()
        found.CopyFrom(node)
        found.attribute.extend(missing)
        return found

    def _write(
        self,
        node: NodeProto,
        name: str,
        kind: TypeProto | None,
        stated: TypeProto | None,
        scope: Scope,
        *,
        certain: bool,
    ) -> None:
        """Set the type of an output: as inferred, as the model states it, or as assumed.

        If the inferred type depends on an assumption, it is not `certain`, and the stated one holds.
        """
        if stated is not None and shape_of(stated) is not None and (not certain or kind is None):
            scope.assumed.pop(name, None)
            scope.types[name] = stated
            return
        if kind is None or not any(shapes(kind)):
            kind = stated if stated is not None and stated.WhichOneof("value") else kind
        elif stated is not None and certain:
            self._merge(name, kind, stated)
        if kind is None or shape_of(kind) is None:
            scope.assumed[name] = None
            kind = self._assumed(node, name, kind, scope)
        elif not certain:
            scope.assumed[name] = None
        scope.types[name] = kind

    def _merge(self, name: str, kind: TypeProto, stated: TypeProto) -> None:
        """Add the sizes that only the model states to an inferred type."""
        for shape, other in zip(shapes(kind), shapes(stated), strict=False):
            lengths = [dim.dim_value if dim.HasField("dim_value") else None for dim in shape.dim]
            others = [dim.dim_value if dim.HasField("dim_value") else None for dim in other.dim]
            if len(lengths) != len(others) or any(
                a is not None and b is not None and a != b for a, b in zip(lengths, others, strict=True)
            ):
                self.notes.append(
                    f"{visible(name)} has the shape {_shown(lengths)}; the model states {_shown(others)}, which is "
                    "ignored"
                )
                continue
            for dim, length in zip(shape.dim, others, strict=True):
                if not dim.HasField("dim_value") and length is not None:
                    dim.dim_value = length

    @staticmethod
    def _assumed(node: NodeProto, name: str, kind: TypeProto | None, scope: Scope) -> TypeProto:
        """A type of known size in place of one that inference leaves open.

        A result whose number of elements depends on data has the most elements that it can have. Another open
        dimension is 1, and a tensor of unknown rank is like the first input.
        """
        from onnx import TypeProto

        read = [scope.tensor(other) for other in node.input if other and other in scope.types]
        if kind is not None and kind.WhichOneof("value") in ("sequence_type", "map_type", "optional_type"):
            scope.sequences[name] = sum(tensor.bytes for tensor in read)
            return kind
        like = next((tensor for tensor in read if tensor.shape is not None), None)
        shape = () if like is None or like.shape is None else like.shape
        if kind is None or kind.WhichOneof("value") is None:
            return tensor_type(1, ()) if like is None else scope.types[like.name]
        if not kind.tensor_type.HasField("shape"):
            return tensor_type(kind.tensor_type.elem_type, shape)
        found = TypeProto()
        found.CopyFrom(kind)
        longest = _LONGEST.get(node.op_type, lambda _node, _shape, _values: 1)(node, shape, scope.values)
        for dim in found.tensor_type.shape.dim:
            if not dim.HasField("dim_value"):
                dim.dim_value = min(longest, _LARGEST)
        return found

    def _evaluate(self, node: NodeProto, scope: Scope) -> None:
        """Compute the values of small outputs that do not depend on the values of the inputs of the model."""
        if node.op_type not in _EVALUATED or node.domain not in ("", "ai.onnx"):
            return
        if node.op_type in _SHAPE_ONLY:
            self._measure(node, scope)
            return
        inputs = [name for name in node.input if name]
        if not all(name in scope.values for name in inputs):
            return
        for name in filter(None, node.output):
            tensor = scope.tensor(name)
            if tensor.shape is None or tensor.elements > SMALL or name in scope.assumed:
                return
        self._compute(node, {name: scope.values[name] for name in inputs}, scope)

    @staticmethod
    def _measure(node: NodeProto, scope: Scope) -> None:
        """Store the result of a Shape or a Size."""
        from onnx import numpy_helper

        source = node.input[0]
        shape = scope.tensor(source).shape
        if shape is None or source in scope.assumed:
            return
        if node.op_type == "Size":
            if math.prod(shape) > _LARGEST:
                return
            value = np.array(math.prod(shape), dtype=np.int64)
        else:
            value = np.array(shape[attribute(node, "start", 0) : attribute(node, "end", len(shape))], dtype=np.int64)
        scope.values[node.output[0]] = value
        scope.data[node.output[0]] = numpy_helper.from_array(value, node.output[0])

    def _compute(self, node: NodeProto, inputs: dict[str, Values], scope: Scope) -> None:
        """Store the results of a node with known inputs."""
        from onnx import numpy_helper
        from onnx.reference import ReferenceEvaluator

        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                results = ReferenceEvaluator(_alone(node), opsets={"": self._opsets.get("", 1)}).run(None, inputs)
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
            return  # not supported by the reference; the values remain unknown
        for name, value in zip(filter(None, node.output), results, strict=False):
            if isinstance(value, np.ndarray | np.generic):
                scope.values[name] = np.asarray(value)
                scope.data[name] = numpy_helper.from_array(np.asarray(value), name)

    def _control(
        self, node: NodeProto, scope: Scope, place: tuple[str, str]
    ) -> tuple[dict[str, Body], dict[str, TypeProto]]:
        """Bodies of control flow, and the types of the outputs that follow from them."""
        graphs = dict(bodies(node))
        if not graphs:
            return {}, {}
        schema = self._schema(node)
        if schema is None or not is_known(node, schema.since_version):
            return {key: self._body(graph, (), scope, None, place)[0] for key, graph in graphs.items()}, {}
        try:
            arguments, repeats = inputs_of_bodies(node, scope.types, scope.values)
        except ValueError as error:
            self._add(f"{node.op_type}: {error}", place)
            return {}, {}
        if node.op_type == "If" and (taken := scope.values.get(node.input[0])) is not None and taken.size == 1:
            key = "then_branch" if taken.reshape(-1)[0] else "else_branch"
            graphs = {key: graphs[key]} if key in graphs else graphs
        found, results = {}, []
        unfit: dict[str, list[Issue]] = {}
        for key, graph in graphs.items():
            before = len(self._issues)
            body, types = self._body(graph, arguments, scope, repeats, place)
            new = self._issues[before:]
            if node.op_type == "If" and len(graphs) > 1 and new and all(issue in self._unfit for issue in new):
                unfit[key] = new
                del self._issues[before:]
                continue
            found[key] = body
            results.append(types)
        if not found:
            self._issues += [issue for new in unfit.values() for issue in new]
            return {}, {}
        self.notes += [
            f"{visible(node.name or place[1])}: {key} cannot run with these sizes and is left out: {new[0].message}"
            for key, new in unfit.items()
        ]
        outputs = outputs_of_bodies(node, results, repeats)
        written = [
            [found[key].tensors[value.name] for value in graph.output if value.name in found[key].tensors]
            for key, graph in graphs.items()
            if key in found
        ]
        scope.assumed.update(dict.fromkeys(open_outputs(node, written, repeats)))
        return found, dict(zip(node.output, outputs, strict=False))

    def _body(
        self,
        graph: GraphProto,
        arguments: Sequence[Argument],
        scope: Scope,
        repeats: int | None,
        place: tuple[str, str],
    ) -> tuple[Body, list[TypeProto]]:
        """A body with these arguments, and the types of its outputs."""
        inner = scope.child()
        for position, value in enumerate(graph.input):
            source, kind = arguments[position] if position < len(arguments) else ("", None)
            inner.types[value.name] = value.type if kind is None else kind
            if source in scope.assumed and kind is not None:
                inner.types[value.name] = with_stated_sizes(kind, value.type)
                inner.assumed[value.name] = None
            self._complete_input(value.name, inner)
        constants = set(self._add_constants(graph, inner))
        stated = _stated(graph)
        nodes: list[NodeProto] = []
        nested: dict[int, dict[str, Body]] = {}
        for node in graph.node:
            names = list(dict.fromkeys(read_by(node)))
            found = self._node(node, names, inner, stated, place)
            if all(name in constants for name in names) and node.op_type not in RANDOM:
                constants.update(filter(None, node.output))
                continue
            if found:
                nested[len(nodes)] = found
            nodes.append(node)
        written = []
        for value in graph.output:
            if value.name in inner.types:
                written.append(inner.types[value.name])
            else:
                self._add(f"no node of its body writes {visible(value.name)}", place)
        return (
            Body(tuple(nodes), inner.tensors(), dict(inner.values), frozenset(constants), nested, repeats),
            written,
        )

    def _add_unfit(self, message: str, path: tuple[str | int, ...]) -> None:
        self._add(message, path)
        self._unfit.append(self._issues[-1])

    def _add(self, message: str, path: tuple[str | int, ...]) -> None:
        self._issues.append(Issue(message, path, self._file))


def _alone(node: NodeProto) -> GraphProto:
    """A graph of a node: for a node without a graph, onnx's reference takes its own latest version of the operator."""
    from onnx import GraphProto, ValueInfoProto

    return GraphProto(
        name="node",
        node=[node],
        input=[ValueInfoProto(name=name) for name in dict.fromkeys(node.input) if name],
        output=[ValueInfoProto(name=name) for name in node.output if name],
    )


def _stated(graph: GraphProto) -> dict[str, TypeProto]:
    """Types that the model states for tensors."""
    return {value.name: value.type for value in (*graph.output, *graph.value_info)}


def _shown(lengths: Sequence[int | None]) -> str:
    return f"[{', '.join('?' if length is None else str(length) for length in lengths)}]"


def _most_elements(_node: NodeProto, shape: tuple[int, ...], _values: Mapping[str, Values]) -> int:
    """Maximum number of elements that NonZero finds."""
    return math.prod(shape)


def _most_along(node: NodeProto, shape: tuple[int, ...], _values: Mapping[str, Values]) -> int:
    """Maximum number of slices that Unique or Compress selects."""
    axis = attribute(node, "axis", None)
    return math.prod(shape) if axis is None or not -len(shape) <= axis < len(shape) else shape[axis]


def _most_boxes(node: NodeProto, shape: tuple[int, ...], values: Mapping[str, Values]) -> int:
    """Maximum number of boxes that NonMaxSuppression selects from boxes of the shape [batch, boxes, 4], for one
    class."""
    limit = values.get(node.input[2]) if len(node.input) > 2 else None
    if len(shape) != 3:
        return 1
    most = shape[1] if limit is None or limit.size != 1 else min(shape[1], max(int(limit.reshape(-1)[0]), 0))
    return shape[0] * most


_LONGEST = {
    "NonZero": _most_elements,
    "Unique": _most_along,
    "Compress": _most_along,
    "NonMaxSuppression": _most_boxes,
}
"""Maximum number of elements of the open dimension of a result, from the node, the shape of the first input, and known
values."""
