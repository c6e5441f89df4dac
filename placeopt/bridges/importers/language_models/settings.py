"""Options of language models with their defaults, and the problem document of a transformer."""

from __future__ import annotations

from pathlib import Path

from placeopt.bridges.documents import pipeline_rules
from placeopt.bridges.importers.imported import Imported, ImportOptions
from placeopt.bridges.importers.language_models.costs import LEVELS, PHASES, Load, operators
from placeopt.bridges.importers.language_models.transformer import Transformer
from placeopt.bridges.importers.operator_graph import OperatorGraph
from placeopt.bridges.networks import device_count, network_of
from placeopt.errors import UsageError, alternatives, counted
from placeopt.io.files import StrPath

DEFAULT_CONTEXT = 4096
"""Tokens of the context without `--context`, if the model supports them."""


def imported(
    model: Transformer, path: StrPath, format: str, options: ImportOptions, levels: tuple[str, ...] = LEVELS
) -> Imported:
    """Return the problem of a step of inference with a model.

    Raises
    ------
    UsageError
        If an option does not fit the model.
    DocumentError
        If the costs are out of range.
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
    runs = device_count(network) if options.pipelined and model.causal else 1
    if runs > 1:
        notes.append(
            f"the KV cache is that of {runs} runs with {counted(options.batch or 1, 'sequence')} each: one "
            "run for each device"
        )
    load = Load(phase, options.batch or 1, context, runs)
    graph = OperatorGraph(
        options.name or model.name,
        f"{Path(path).name}, {format}",
        operators(model, load, level),
        f"{model.parameters:,} parameters; {phase} with batch {load.batch} and a context of {context:,} tokens",
    )
    rules = pipeline_rules() if options.pipelined else None
    return graph.imported(network, options.resolution, str(path), (*notes, *about), rules)
