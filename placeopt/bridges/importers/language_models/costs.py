"""Costs of a transformer: work, memory traffic and memory of its layers for a phase of inference.

A token takes two FLOP for each parameter of a matrix (Kaplan et al., Scaling Laws for Neural Language Models, 2020,
arXiv:2001.08361, section 2.1). Attention to n tokens takes 2 n heads (key + value) FLOP more, where `key` and `value`
are elements of a head. Normalisations, activation functions and position encodings are not counted; they are less
than 1% of the work. Neither is the softmax, which is about 5% of the work of attention with heads of 128 elements.

Memory traffic is each weight once, the inputs and outputs of all matrices, and the KV cache, which decoding reads
completely (Pope et al., Efficiently Scaling Transformer Inference, MLSys 2023, arXiv:2211.05102, section 2). The cache
is resident memory. In a mixture of experts, a token uses `active` of `experts` experts, and a step
reads the weights of those that its tokens choose (`formulas.experts_read`).

With tensor parallelism, the k devices of a team divide the matrices of a task, and sum up its output: once after the
attention and once after the feed-forward network (Shoeybi et al., Megatron-LM, 2019, arXiv:1909.08053, section 3). The
tables of the vocabulary are divided by rows. The KV cache is divided by key-value heads: with more devices than these,
or with a compressed cache, devices hold copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from placeopt.bridges.costs.formulas import experts_read
from placeopt.bridges.importers.imported import Imported, ImportOptions
from placeopt.bridges.importers.language_models.transformer import Attention, Block, Transformer, Weight
from placeopt.bridges.importers.operator_graph import OperatorGraph
from placeopt.bridges.networks import device_count, network_of
from placeopt.bridges.operators import Operator, pipeline_rules
from placeopt.errors import UsageError, alternatives, counted
from placeopt.io.files import StrPath

LEVELS = ("layer", "part", "expert")
"""Granularities of the tasks that every format takes."""

PHASES = ("decode", "prefill")

CORE = 10
"""The stage of the attention itself, between the weights of its inputs and of its outputs."""


@dataclass(frozen=True, slots=True)
class Load:
    """What the model processes: a step of decoding with a full context, or a whole prompt."""

    phase: str
    batch: int
    """Sequences."""
    context: int
    """Tokens of each sequence: in the KV cache, the current one included, or in the prompt."""
    runs: int = 1
    """Runs under way in a pipeline, each with the KV cache of its sequences."""
    teams: tuple[int, ...] = ()
    """Sizes of the teams that may run a task; without any, single devices run all tasks."""

    @property
    def tokens(self) -> int:
        """Tokens that the step processes."""
        return self.batch if self.phase == "decode" else self.batch * self.context


def operators(model: Transformer, load: Load, level: str) -> list[Operator]:
    """Return the operators of a model at a level: `layer`, `part`, `expert` or `tensor`."""
    return _Chain(model, load, level).operators()


class _Chain:
    """The operators of one model in topological order."""

    def __init__(self, model: Transformer, load: Load, level: str) -> None:
        self._model = model
        self._load = load
        self._level = level
        self._hidden = model.hidden * load.tokens * model.activation
        self._found: list[Operator] = []
        self._last: list[str] = []
        self.caches: dict[str, tuple[int, int]] = {}  # bytes of a task's KV cache, and into how many parts it divides

    def operators(self) -> list[Operator]:
        self._embedding()
        for index, block in enumerate(self._model.blocks):
            if self._level == "layer":
                parts = [self._part(f"layers.{index}", "layer", (*block.attention, *block.ffn), block, attends=True)]
                if block.experts:
                    parts.append(self._experts("", block))
                self._append(_merged(parts))
            else:
                self._attention(index, block)
                self._ffn(index, block)
        self._head()
        for operator in self._found:
            operator.precision = self._model.precision
            if self._load.teams and not operator.guessed:
                operator.keys = {**operator.keys, "modes": self._modes(operator)}
        return self._found

    def _modes(self, operator: Operator) -> dict[str, Any]:
        """The ways to run a task on a device or a team."""
        cache, parts = self.caches.get(operator.name, (0, 1))
        sums: dict[str, Any] = {"all_reduce": [self._hidden] * 2 if operator.op == "layer" else self._hidden}
        if operator.op == "head":
            sums = {"all_gather": operator.output}
        modes: dict[str, Any] = {}
        for size in self._load.teams:
            copied = cache if size > parts else 0
            shards = operator.resident + operator.scratch - copied
            memory = {"resident": -(-copied // parts), "scratch": 0}
            modes[f"tp{size}"] = {"team": {"*": size}, "memory": memory, "shards": shards, **sums} if size > 1 else {}
        return modes

    def _append(self, operator: Operator) -> None:
        """Append an operator that follows the current ones."""
        operator.after = dict.fromkeys(self._last)
        self._found.append(operator)
        self._last = [operator.name]

    def _embedding(self) -> None:
        model = self._model
        table = model.embedding[0]
        rows = -(-table.size * self._load.tokens // max(model.vocabulary, 1))
        self._append(
            Operator(
                "embedding",
                "embedding",
                traffic=rows + self._hidden,
                output=self._hidden,
                resident=_size(model.embedding),
                keys=self._tie(),
            )
        )

    def _head(self) -> None:
        """The last normalisation and the output matrix; a prompt needs the output of its last token only."""
        model, tokens = self._model, self._load.batch
        if not model.head and not model.tied:
            return
        matrices = [weight for weight in model.head if weight.width]
        if model.tied:
            table = model.embedding[0]
            matrices.append(Weight("", table.elements, table.size, model.vocabulary))
        output = (matrices[-1].width if matrices else model.hidden) * tokens * model.activation
        self._append(
            Operator(
                "head",
                "head",
                flops=2 * tokens * sum(weight.elements for weight in matrices),
                traffic=_size(model.head)
                + (model.embedding[0].size if model.tied else 0)
                + sum(_activations(weight) for weight in matrices) * tokens * model.activation,
                output=output,
                resident=_size(model.head),
                keys=self._tie(),
            )
        )

    def _tie(self) -> dict[str, str]:
        return {"colocate": "tied embedding"} if self._model.tied else {}

    def _attention(self, index: int, block: Block) -> None:
        name = f"layers.{index}.attention"
        if self._level != "tensor":
            self._append(self._part(name, "attention", block.attention, block, attends=True))
            return
        before = [weight for weight in block.attention if weight.stage < CORE]
        self._stages(before, block)
        if block.shape is not None:
            core = self._part(name, "attention", (), block, attends=True)
            core.output = block.shape.heads * block.shape.value * self._load.tokens * self._model.activation
            self._append(core)
        self._stages(block.attention[len(before) :], block)

    def _ffn(self, index: int, block: Block) -> None:
        if self._level == "tensor":
            self._stages(sorted((*block.ffn, *block.experts), key=lambda weight: weight.stage), block)
            return
        if block.ffn or not block.experts:
            self._append(self._part(f"layers.{index}.ffn", "ffn", block.ffn, block))
        if not block.experts:
            return
        router = self._last
        name = f"layers.{index}.experts"
        whole = self._experts(name, block)
        if self._level == "part":
            self._append(whole)
            self._last = [*router, whole.name]
            return
        count = self._model.experts
        each = []
        for expert in range(count):
            one = Operator(
                f"{name}.{expert}",
                "expert",
                flops=whole.flops // count,
                traffic=-(-whole.traffic // count),
                output=-(-self._hidden * self._model.active // count),
                resident=-(-whole.resident // count),
                scratch=-(-whole.scratch // count),
                after=dict.fromkeys(router),
                guessed=whole.guessed,
            )
            each.append(one)
        self._found += each
        self._last = [*router, *(one.name for one in each)]

    def _part(self, name: str, op: str, weights: Sequence[Weight], block: Block, *, attends: bool = False) -> Operator:
        """An operator of dense weights, with the attention and its cache if `attends`."""
        tokens, activation = self._load.tokens, self._model.activation
        matrices = [weight for weight in weights if weight.width]
        operator = Operator(
            name,
            op,
            flops=0 if block.guessed else 2 * tokens * sum(weight.elements for weight in matrices),
            traffic=_size(weights) + sum(map(_activations, matrices)) * tokens * activation,
            output=self._hidden,
            resident=_size(weights),
            scratch=sum(weight.width for weight in matrices) * tokens * activation,
            guessed=block.guessed,
        )
        if attends and block.shape is not None:
            flops, traffic, cache = self._attended(block.shape)
            operator.flops += flops
            operator.traffic += traffic
            operator.resident += cache * self._load.runs
            shape = block.shape
            parts = 1 if shape.latent else max(shape.cached // max(shape.key + shape.value, 1), 1)
            self.caches[name] = cache * self._load.runs, parts
        return operator

    def _attended(self, shape: Attention) -> tuple[int, int, int]:
        """Work and traffic of attention to a context, and bytes of the cache of a run."""
        batch, context = self._load.batch, self._load.context
        span = context if shape.window is None else min(context, shape.window)
        cache = shape.cached * span * batch * self._model.activation
        key, value = shape.key, shape.value
        if self._load.phase == "decode":
            key, value = shape.latent or (key, value)
            return 2 * shape.heads * (key + value) * span * batch, cache, cache
        pairs = span * (span + 1) // 2 + (context - span) * span if self._model.causal else context * span
        moved = 2 * shape.cached * context * batch * self._model.activation  # written once and read once
        return 2 * shape.heads * (key + value) * pairs * batch, moved, cache if self._model.causal else 0

    def _experts(self, name: str, block: Block) -> Operator:
        """All routed experts of a block."""
        count, active = self._model.experts, self._model.active
        tokens, activation = self._load.tokens, self._model.activation
        elements = sum(weight.elements for weight in block.experts)
        size = _size(block.experts)
        touched = sum(_activations(weight, count) for weight in block.experts if weight.width)
        return Operator(
            name,
            "experts",
            flops=0 if block.guessed else 2 * tokens * elements * active // count,
            traffic=experts_read(size, count, active, tokens) + touched * tokens * active * activation,
            output=self._hidden,
            resident=size,
            scratch=sum(weight.width for weight in block.experts) * tokens * active * activation,
            guessed=block.guessed,
        )

    def _stages(self, weights: Iterable[Weight], block: Block) -> None:
        """Append an operator for each weight; those of a stage follow all of the previous stage."""
        for _, stage in groupby(weights, key=lambda weight: weight.stage):
            before, names = self._last, []
            for weight in stage:
                routed = weight in block.experts
                if routed:
                    one = self._experts(weight.name, Block((), (), (weight,), guessed=block.guessed))
                else:
                    one = self._part(weight.name, "", (weight,), block)
                one.scratch = 0
                one.op = "matrix" if weight.width else "vector"
                if weight.width:
                    uses = self._model.active if routed else 1
                    one.output = weight.width * self._load.tokens * uses * self._model.activation
                one.after = dict.fromkeys(before)
                self._found.append(one)
                names.append(one.name)
            self._last = names


def _merged(parts: Sequence[Operator]) -> Operator:
    """One operator for several that run one after another."""
    first = parts[0]
    for other in parts[1:]:
        first.flops += other.flops
        first.traffic += other.traffic
        first.resident += other.resident
        first.scratch = max(first.scratch, other.scratch)
    return first


def _size(weights: Iterable[Weight]) -> int:
    return sum(weight.size for weight in weights)


def _activations(weight: Weight, experts: int = 1) -> int:
    """Elements of the input and the output of a matrix for a token."""
    return weight.elements // max(experts, 1) // weight.width + weight.width


DEFAULT_CONTEXT = 4096
"""Tokens of the context without `--context`, if the model supports them."""

UNRESERVED = (
    "no memory is reserved for activations and the runtime, so that plans may use all memory of a device; state the "
    "key `reserve` of `serving`, such as reserve: 1 GiB"
)
"""A note on serving problems."""


def imported(
    model: Transformer, path: StrPath, format: str, options: ImportOptions, levels: tuple[str, ...] = LEVELS
) -> Imported:
    """Return the problem of a step of inference with a model.

    Raises a UsageError if an option does not fit the model, and a DocumentError if the costs are out of range.
    """
    level = options.level or LEVELS[0]
    if level not in levels:
        raise UsageError(f"--level {level} is not a level of this format{alternatives(level, levels)}")
    if level == "expert" and not model.experts:
        raise UsageError(
            "--level expert needs a mixture of experts, and the model has no experts; expected layer or part"
        )
    phase = options.phase or ("decode" if model.causal else "prefill")
    if phase not in PHASES:
        raise UsageError(f"--phase {phase} is not a phase{alternatives(phase, PHASES)}")
    if phase == "decode" and not model.causal:
        raise UsageError("--phase decode needs a model that generates text, and the model is an encoder; use prefill")
    longest = model.longest
    context = options.context or min(DEFAULT_CONTEXT, longest or DEFAULT_CONTEXT)
    notes = list(model.notes)
    if options.context is None:
        notes.append(f"the context is {context:,} tokens; --context states another")
    elif longest is not None and context > longest:
        notes.append(f"the context of {context:,} tokens is longer than the {longest:,} tokens that the model supports")
    network, about = network_of(options.network)
    if options.serve:
        document = _serving(model, f"{Path(path).name}, {format}", options, network, context)
        return Imported(document, (*notes, *about, UNRESERVED))
    runs = device_count(network) if options.pipelined and model.causal else 1
    if runs > 1:
        notes.append(
            f"the KV cache is that of {runs} runs with {counted(options.batch or 1, 'sequence')} each: one "
            "run for each device"
        )
    if options.pipelined and phase == "decode":
        notes.append("a result of the pipeline is the next token of the sequences of one run, not of all runs")
    if options.tensor_parallel:
        _check_teams(options, level, device_count(network))
        notes.append("the scratch of all layers of a device counts at the same time: modes need memory_model sum")
    load = Load(phase, options.batch or 1, context, runs, options.tensor_parallel)
    graph = OperatorGraph(
        options.name or model.name,
        f"{Path(path).name}, {format}",
        operators(model, load, level),
        f"{model.parameters:,} parameters; {phase} with batch {load.batch} and a context of {context:,} tokens",
    )
    rules = pipeline_rules() if options.pipelined else None
    return graph.imported(network, options.resolution, str(path), (*notes, *about), rules)


def _serving(
    model: Transformer, source: str, options: ImportOptions, network: Mapping[str, Any], context: int
) -> dict[str, Any]:
    """The document of a serving problem, with the costs of a step of decoding; options of tasks do not apply."""
    stated = {"--level": options.level, "--phase": options.phase, "--objective": options.objective}
    for option, given in {**stated, "--tensor-parallel": options.tensor_parallel}.items():
        if given:
            raise UsageError(f"--serve and {option} exclude each other: a serving problem has layers, not tasks")
    if not model.causal:
        raise UsageError("--serve needs a model that generates text, and the model is an encoder")
    chain = _Chain(model, Load("decode", 1, context), LEVELS[0])
    costs = []
    found = chain.operators()
    for operator in found:
        cache = chain.caches.get(operator.name, (0, 1))[0]
        costs.append(LayerCosts(operator.resident - cache, -(-cache // context), operator.flops))
    if found[-1].op != "head":
        costs.append(LayerCosts(0, 0, 0))
    keys = {"context": context} | ({} if options.batch is None else {"batch": options.batch})
    return {
        "name": options.name or model.name,
        "description": f"{model.parameters:,} parameters; decoding with a context of {context:,} tokens",
        "source": source,
    } | serving_document(model, costs, network, **keys)


def _check_teams(options: ImportOptions, level: str, devices: int) -> None:
    """Reject teams that the tasks or the network cannot have."""
    if level not in ("layer", "part"):
        raise UsageError(f"tensor parallelism divides layers or their parts; expected level layer or part, not {level}")
    largest = max(options.tensor_parallel)
    if largest > devices:
        raise UsageError(f"a team of {largest} is larger than the network, which has {counted(devices, 'device')}")


class LayerCosts(NamedTuple):
    """Bytes of the weights, bytes kept for a token, FLOP for a token, and bytes of tables of which it needs a row."""

    weights: int
    cache: int
    flops: int
    tables: int = 0

    def stated(self) -> dict[str, int]:
        """The keys of a layer in a file."""
        return {key: value for key, value in self._asdict().items() if value or key != "tables"}


def serving_document(
    model: Transformer, costs: Sequence[LayerCosts], network: Mapping[str, Any], **keys: Any
) -> dict[str, Any]:
    """The document of a serving problem on a network, with further `keys` of the section `serving`.

    `costs` are those of the embedding, the layers and the head. The first and the last layer include the outer ones.
    The last one has a copy of the table of the vocabulary if that is the output matrix, too.
    """
    before, *layers, after = costs
    table = model.embedding[0].size if model.tied and len(layers) > 1 else 0
    if not model.tied or len(layers) > 1:
        before = before._replace(weights=0, tables=before.weights)
    layers[0] = _sum(layers[0], before)
    layers[-1] = _sum(layers[-1], after._replace(weights=after.weights + table))
    alike = [(layer, len(list(group))) for layer, group in groupby(layers)]
    serving = {
        "layers": [{"count": count, **layer.stated()} for layer, count in alike],
        "activation": model.hidden * model.activation,
        "precision": model.precision,
        **keys,
    }
    return {"placeopt": 1, **network, "serving": serving}


def _sum(one: LayerCosts, other: LayerCosts) -> LayerCosts:
    return LayerCosts(*map(sum, zip(one, other, strict=True)))
