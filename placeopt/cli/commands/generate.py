"""placeopt generate: operator graphs of models, random graphs, device networks, and sets of problems."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from placeopt.cli.arguments import assignments
from placeopt.cli.files import check_targets, new_folder, write_document
from placeopt.cli.options import DocumentFile, Sets, output_option
from placeopt.cli.output import stderr_console, stdout_console
from placeopt.cli.progress import status_line
from placeopt.errors import UsageError
from placeopt.io.files import write_whole

app = typer.Typer(help="Generate operator graphs of models, random graphs, and device networks.", no_args_is_help=True)

Network = Annotated[
    str | None, Option("--network", "-n", help="Add the devices and links of this network, to get a complete problem.")
]
NetworkSets = Annotated[
    list[str] | None, Option("--set-network", metavar="KEY=VALUE", help="A setting of the network.")
]
Options = Annotated[bool, Option("--options", help="List the settings for --set and exit.")]
Seed = Annotated[int | None, Option("--seed", help="Random seed, by default 0: the same seed gives the same file.")]
Count = Annotated[
    int, Option("--count", help="Number of problems, with this seed and the next ones; --out needs {seed}.")
]
PatternFile = Annotated[
    Path | None,
    output_option(
        "--out", "-o", help="Write to this file: JSON if it ends in .json, else YAML. {seed} in the name is the seed."
    ),
]
SEED = "{seed}"


@app.command()
def model(
    name: Annotated[str | None, Argument(metavar="NAME", help="The model; without it, list all models.")] = None,
    sets: Sets = None,
    training: Annotated[
        bool, Option("--training", help="Add the loss and the backward tasks; the same as --set training=true.")
    ] = False,
    objective: Annotated[
        str | None, Option(help="`period`: the throughput of a pipeline of runs, instead of the `makespan` of one run.")
    ] = None,
    network: Network = None,
    network_sets: NetworkSets = None,
    options: Options = False,
    out: DocumentFile = None,
) -> None:
    """Generate the operator graph of a model with computed FLOPs, bytes, activations and weights."""
    from placeopt.generate.models import MODELS, model_document, pipeline_sections

    if name is None:
        for known in MODELS.values():
            typer.echo(f"{known.name:<17} {known.description}")
        return
    chosen = name.replace("-", "_")
    if options and chosen in MODELS:
        fields = MODELS[chosen].options.model_fields.items()
        _print_options(
            (f"{name} = {_default_text(field.default)}", " ".join((field.description or "").split()))
            for name, field in fields
        )
        return
    check_targets(("--out", out))
    chosen_options: dict[str, Any] = dict(assignments(sets))
    for key, value in (("training", training or None), ("objective", objective)):
        if value is not None and key in chosen_options:
            raise UsageError(f"--{key} and --set {key}={chosen_options[key]} both state {key}; expected one of them")
        if value is not None:
            chosen_options[key] = value
    document = model_document(chosen, **chosen_options)
    pipelined = chosen_options.get("objective") == "period"
    sections = pipeline_sections(training=MODELS[chosen].options(**chosen_options).training) if pipelined else {}
    write_document(_placed(document, network, network_sets, sections), out)


@app.command()
def random(
    sets: Sets = None, seed: Seed = None, count: Count = 1, options: Options = False, out: PatternFile = None
) -> None:
    """Generate a random task graph and device network with the parameters of GiPH (Hu et al. 2023, appendix B.2)."""
    from placeopt.generate.random_graphs import random_document, random_network, random_tasks

    _write_random(random_document, [random_document, random_tasks, random_network], options, sets, seed, count, out)


@app.command()
def layered(
    sets: Sets = None, seed: Seed = None, count: Count = 1, options: Options = False, out: PatternFile = None
) -> None:
    """Generate a random layered graph with devices."""
    from placeopt.generate.layered_graphs import layered as generate
    from placeopt.generate.layered_graphs import layered_document

    _write_random(layered_document, [generate], options, sets, seed, count, out)


@app.command()
def irregular(
    sets: Sets = None, seed: Seed = None, count: Count = 1, options: Options = False, out: PatternFile = None
) -> None:
    """Generate an irregular layered graph: work and data over three decades, layers of random width."""
    from placeopt.generate.irregular_graphs import irregular as generate
    from placeopt.generate.irregular_graphs import irregular_document

    _write_random(irregular_document, [generate], options, sets, seed, count, out)


@app.command()
def fork(
    sets: Sets = None, seed: Seed = None, count: Count = 1, options: Options = False, out: PatternFile = None
) -> None:
    """Generate a random fork, join, fork-join or tree with transfers on identical devices."""
    from placeopt.generate.forks import fork as generate
    from placeopt.generate.forks import fork_document

    _write_random(fork_document, [generate], options, sets, seed, count, out)


@app.command()
def giph(
    sets: Sets = None, seed: Seed = None, count: Count = 1, options: Options = False, out: PatternFile = None
) -> None:
    """Generate a random task graph and device network as the released code of GiPH (Hu et al. 2023), bit for bit."""
    from placeopt.generate.giph.released import released_document, released_graph, released_network

    _write_random(
        released_document, [released_document, released_graph, released_network], options, sets, seed, count, out
    )


@app.command()
def cases(
    name: Annotated[str | None, Argument(metavar="NAME", help="The set; without it, list all sets.")] = None,
    split: Annotated[str, Option(metavar="train|validation|test", help="The part of the set.")] = ("test"),
    index: Annotated[
        int | None, Option("--index", "-i", help="Print this problem of the set, or write it to --out.")
    ] = None,
    folder: Annotated[
        Path | None,
        output_option("--folder", metavar="FOLDER", help="Write the problems to this new folder, as JSON files."),
    ] = None,
    sample: Annotated[int | None, Option(help="With --folder: draw this number of problems; by default, all.")] = None,
    seed: Annotated[int, Option(help="Seed of --sample.")] = 0,
    out: DocumentFile = None,
) -> None:
    """Generate problems of the training and test sets of GiPH's experiments."""
    from placeopt.generate.giph.sets import DESCRIPTIONS, SETS, case_document, case_set, sampled
    from placeopt.io.formats.documents import document_text

    if name is None:
        for known, make in SETS.items():
            sizes = " + ".join(f"{len(each.pairs()):,}" for each in make())
            typer.echo(f"{known:<14} {sizes:>15}  {DESCRIPTIONS[known]}")
        return
    if (index is None) == (folder is None):
        found = "neither is given" if index is None else "both are given"
        raise UsageError(f"--index and --folder: {found}; expected one of them")
    for option, given, needed, there in (("--out", out, "--index", index), ("--sample", sample, "--folder", folder)):
        if given is not None and there is None:
            raise UsageError(f"{option} needs {needed}")
    if index is not None:
        check_targets(("--out", out))
        write_document(case_document(name, split, index), out)
        return
    assert folder is not None
    chosen = case_set(name, split)
    pairs = chosen.pairs() if sample is None else sampled(chosen, sample, seed)
    with new_folder(folder) as made, status_line(stderr_console(), "generating") as show:
        for count, pair in enumerate(pairs, start=1):
            document = chosen.document(*pair)
            path = made / f"{document['name']}.json"
            write_whole(path, document_text(document, path))
            if show:
                show(f"generating {count:,} of {len(pairs):,}")
    typer.echo(f"{len(pairs):,} problems of {chosen.name} in {folder}")


@app.command()
def devices(
    name: Annotated[str | None, Argument(metavar="NAME", help="The network; without it, list all networks.")] = None,
    sets: Sets = None,
    options: Options = False,
    out: DocumentFile = None,
) -> None:
    """Generate the devices and links of a network, to which tasks can be added."""
    from placeopt.generate.networks import NETWORKS, network_document

    if name is None:
        for known in NETWORKS:
            typer.echo(known)
        return
    if options and name in NETWORKS:
        _list_options(NETWORKS[name])
        return
    check_targets(("--out", out))
    write_document(network_document(name, **_values(sets)), out)


def _placed(
    document: dict[str, Any], network: str | None, sets: list[str] | None, sections: dict[str, Any]
) -> dict[str, Any]:
    """Return a problem with the network and further sections, or the tasks alone without a network."""
    from placeopt.generate.networks import combine, network_document

    if network is None:
        if sets:
            raise UsageError("--set-network needs --network")
        return document
    return combine(document, network_document(network, **_values(sets)), **sections)


def _write_random(
    make: Callable[..., dict[str, Any]],
    documented: Sequence[Callable[..., Any]],
    options: bool,
    sets: list[str] | None,
    seed: int | None,
    count: int,
    out: Path | None,
) -> None:
    """Write the problems of consecutive seeds; with `options`, print the parameters of `documented` instead."""
    from placeopt.generate.arguments import whole

    if options:
        _list_options(*documented)
        return
    values = _values(sets)
    if seed is not None and "seed" in values:
        raise UsageError(f"--seed and --set seed={values['seed']} both state seed; expected one of them")
    if count < 1:
        raise UsageError(f"--count is {count}; expected a whole number of at least 1")
    if count > 1 and SEED not in str(out):
        raise UsageError(f"--count {count} writes a file for each seed; expected {SEED} in --out: 'graph-{SEED}.json'")
    first = whole("seed", values.pop("seed", seed or 0), 0)
    seeds = range(first, first + count) if count > 1 else [first]
    paths = [None if out is None else Path(str(out).replace(SEED, str(each))) for each in seeds]
    check_targets(*(("--out", path) for path in paths))
    for each, path in zip(seeds, paths, strict=True):
        write_document(make(**values, seed=each), path)
    if count > 1:
        typer.echo(f"{count:,} problems: {paths[0]} to {paths[-1]}")


def _list_options(*functions: Callable[..., Any]) -> None:
    """Print each parameter of the functions once, with its default and its description."""
    import inspect

    from placeopt.generate.arguments import parameter_notes

    rows: dict[str, tuple[str, str]] = {}
    for function in functions:
        notes = parameter_notes(function)
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
                rows.setdefault(name, (f"{name} = {_default_text(parameter.default)}", notes.get(name, "")))
    _print_options(rows.values())


def _default_text(value: object) -> str:
    """Return a default as --set takes it."""
    import json

    return value if isinstance(value, str) else json.dumps(value)


def _print_options(rows: Iterable[tuple[str, str]]) -> None:
    """Print options with their defaults, each group of options with one description."""
    import re
    import textwrap
    from itertools import groupby

    width = stdout_console().width
    for note, group in groupby(rows, lambda row: row[1]):
        for text, _ in group:
            typer.echo(text)
        note = re.sub(r"\bNone\b", "null", note)  # as --set takes it
        typer.echo(textwrap.indent(textwrap.fill(note, width - 4, break_on_hyphens=False), "    "))


def _values(sets: list[str] | None) -> dict[str, Any]:
    """Parse settings as YAML: 3, 0.5, true, [1, 2], text."""
    from placeopt.io.document import parse_document

    return {key: parse_document(text).data for key, text in assignments(sets).items()}
