"""Registry of the formats of other tools that `placeopt import` reads: models, then workflows, then graphs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields

from placeopt.bridges.importers import onnx_model, torch_export, wfformat
from placeopt.bridges.importers.graphs import dnn_partitioning, dot, fjsp, graphml, json_graph, psplib, stg
from placeopt.bridges.importers.imported import Imported, ImportOptions, Sample
from placeopt.bridges.importers.language_models import gguf, hf_config
from placeopt.errors import DocumentError, Issue, UsageError, alternatives, listing
from placeopt.io.document import collection_paused
from placeopt.io.files import StrPath, checked_path, descriptor


@dataclass(frozen=True, slots=True)
class Importer:
    """An importer of one format.

    `recognises` is whether a file looks like this format; it loads no library. `read` converts the file and raises a
    DocumentError that lists every issue.
    """

    description: str
    recognises: Callable[[Sample], bool]
    read: Callable[[StrPath, ImportOptions], Imported]
    takes: frozenset[str] = frozenset()
    """The options that `read` takes in addition to `name` and `resolution`."""


IMPORTERS: dict[str, Importer] = {
    gguf.NAME: Importer(
        "language models of llama.cpp, .gguf (extra gguf)",
        gguf.recognises,
        gguf.read,
        frozenset({"network", "batch", "level", "context", "phase", "objective", "tensor_parallel", "serve"}),
    ),
    hf_config.NAME: Importer(
        "language models of Hugging Face, config.json",
        hf_config.recognises,
        hf_config.read,
        frozenset(
            {"network", "batch", "level", "precision", "context", "phase", "objective", "tensor_parallel", "serve"}
        ),
    ),
    onnx_model.NAME: Importer(
        "ONNX models, .onnx (extra onnx)",
        onnx_model.recognises,
        onnx_model.read,
        frozenset({"network", "batch", "dims", "precision", "objective", "target", "addresses"}),
    ),
    torch_export.NAME: Importer(
        "PyTorch models, saved by torch.export.save, .pt2 (extra torch)",
        torch_export.recognises,
        torch_export.read,
        frozenset({"network", "batch", "dims", "level", "precision", "objective", "target", "addresses"}),
    ),
    wfformat.NAME: Importer(
        "scientific workflows in WfFormat 1.5 and 1.6 (WfCommons), JSON",
        wfformat.recognises,
        wfformat.read,
        frozenset({"network", "plan"}),
    ),
    dnn_partitioning.NAME: Importer(
        "layer graphs of Tarnawski et al. 2020, JSON",
        dnn_partitioning.recognises,
        dnn_partitioning.read,
        frozenset({"objective"}),
    ),
    psplib.NAME: Importer(
        "projects of PSPLIB with limited resources, .sm, .mm, and in Patterson's format, .rcp",
        psplib.recognises,
        psplib.read,
    ),
    fjsp.NAME: Importer("flexible job shops, .fjs (Brandimarte 1993)", fjsp.recognises, fjsp.read),
    stg.NAME: Importer(
        "task graphs of the Standard Task Graph Set (Tobita and Kasahara 2002)",
        stg.recognises,
        stg.read,
        frozenset({"network"}),
    ),
    dot.NAME: Importer("graphs in DOT, the language of Graphviz", dot.recognises, dot.read, frozenset({"network"})),
    graphml.NAME: Importer("graphs in GraphML", graphml.recognises, graphml.read, frozenset({"network"})),
    json_graph.NAME: Importer(
        "graphs in JSON: JSON Graph Format, and node-link data of NetworkX",
        json_graph.recognises,
        json_graph.read,
        frozenset({"network"}),
    ),
}

OPTIONS = {
    "network": "--devices",
    "batch": "--batch",
    "dims": "--dim",
    "level": "--level",
    "precision": "--precision",
    "context": "--context",
    "phase": "--phase",
    "tensor_parallel": "--tensor-parallel",
    "objective": "--objective",
    "serve": "--serve",
    "target": "--for",
    "addresses": "--addresses",
    "plan": "--plan-out",
}
"""The option of the command line for each field of ImportOptions that depends on the format."""


def import_file(path: StrPath, format: str | None = None, options: ImportOptions | None = None) -> Imported:
    """Read a file in the format of another tool; the format is recognised unless given.

    Raises
    ------
    UsageError
        If the format is unknown or does not take an option, or the file matches no format or several.
    DocumentError
        If the file cannot be read or is not valid; lists every issue with its position.
    MissingExtraError
        If the format needs a library that is not installed.
    """
    path, options = checked_path(path), options or ImportOptions()
    if format is None:
        format = _recognised(path)
    elif format not in IMPORTERS:
        raise UsageError(f"unknown format {format}{alternatives(format, IMPORTERS)}")
    importer = IMPORTERS[format]
    for each in fields(options):
        given = getattr(options, each.name)
        if given not in (None, {}, ()) and each.name not in {"name", "resolution", *importer.takes}:
            users = [name for name, other in IMPORTERS.items() if each.name in other.takes]
            hint = f"; formats with it are {listing(users, 20)}" if users else ""
            raise UsageError(f"the format {format} takes no {OPTIONS[each.name]}{hint}")
    with collection_paused():
        return importer.read(path, options)


_OWN = re.compile(rb'(?:\s|#[^\n]*\n)*(?:placeopt(?:_plan)?:|\{\s*"placeopt(?:_plan)?"\s*:)')
"""The first key of problem and plan files, in YAML or JSON."""

_ELSEWHERE = {
    ".py": "it is a program; po.from_torch and po.from_dask import models and graphs in Python",
    ".pt": "PyTorch models are imported from files that torch.export.save wrote",
    ".pth": "PyTorch models are imported from files that torch.export.save wrote",
    ".safetensors": "it has weights without a graph; import the config.json of the model",
}
"""Where the model of a file without a known format is found, by the ending of the name."""


def recognised(path: StrPath) -> str | None:
    """Return the format that a file looks like; None if it looks like none or several, or cannot be read twice."""
    if descriptor(path) is not None:
        return None
    sample = Sample(path)
    try:
        found = [name for name, importer in IMPORTERS.items() if importer.recognises(sample)]
        return found[0] if len(found) == 1 and not _OWN.match(sample.start) else None
    except DocumentError:
        return None


def _recognised(path: StrPath) -> str:
    if descriptor(path) is not None:
        raise UsageError(f"{path} can be read only once; state --format, one of {listing(list(IMPORTERS), 20)}")
    sample = Sample(path)
    found = [name for name, importer in IMPORTERS.items() if importer.recognises(sample)]
    if not found and not sample.start:
        raise DocumentError([Issue("the file is empty", (), str(path))])
    if not found and _OWN.match(sample.start):
        raise UsageError(f"{path} is a file of placeopt already; expected a file of another tool")
    if not found and sample.suffix in _ELSEWHERE:
        raise UsageError(f"{path} cannot be imported: {_ELSEWHERE[sample.suffix]}")
    if len(found) != 1:
        what = f"like {' and '.join(found)}" if found else "like no known format"
        raise UsageError(f"{path} looks {what}; state --format, one of {listing(list(IMPORTERS), 20)}")
    return found[0]
