"""Pages and tables of solvers, made from the registry: nothing about a solver is written twice but when to take it."""

from __future__ import annotations

import inspect
import re
import sys
from importlib.metadata import entry_points
from textwrap import dedent
from typing import Any

from placeopt_solvers._constructive.construction import Constructive

from placeopt.cli.terminal.catalog import FAMILIES, setting_cards
from placeopt.solver.registry import GROUP, find_solver

WHEN = {
    "annealing": "full memory decides, up to some thousand tasks, and there is time",
    "auto": "always, unless you know better: it tries what the others do and keeps the best",
    "bil": "chains on unlike devices; else to compare",
    "brute-force": "up to six tasks or so: to check others",
    "celeritas": "transfers cost more than work, and little memory on each device",
    "cp-sat": "up to some hundred tasks, or to improve a heuristic's schedule",
    "cpop": "one device is the fastest for most of the critical path",
    "dsc": "dear transfers, and many devices that are alike",
    "duplex": "the better of min-min and max-min, for the time of both",
    "etf": "many tasks ready at once",
    "fcp": "very large graphs with many tasks ready at once",
    "flb": "as etf, in a fraction of its time on many devices",
    "gdl": "unlike devices, graphs that are not wide",
    "hbmct": "layered graphs on unlike devices, not too wide",
    "heft": "a first answer, at any size",
    "heuristic-g": "a baseline: what submodular placement is compared with",
    "lc": "to compare: clusters by longest paths",
    "lns": "some hundred to many thousand tasks, and time: makespans shorter than any heuristic's",
    "local-search": "as annealing; often as good in less time",
    "lookahead-heft": "small graphs: heft that looks one step further",
    "m-etf": "little memory on each device",
    "m-sct": "little memory on each device, transfers no longer than tasks",
    "m-topo": "a baseline: device after device, each up to an equal share of the memory",
    "max-min": "few long tasks among many short ones",
    "mct": "a baseline: each task where it ends first",
    "met": "a baseline: each task where it runs fastest, whatever waits there",
    "metis": "to compare with a graph partitioner",
    "milp": "up to about ten tasks: to check cp-sat, to learn from",
    "min-min": "many independent tasks ready at once",
    "olb": "a baseline: each task on whatever device is free first",
    "order-place": "a baseline: what celeritas is compared with",
    "peft": "a first answer that looks ahead, in two or three times heft's time",
    "random": "to compare: what any search has to beat",
    "random-task-eft": "to compare: the baseline of GiPH's search policies",
    "sct-lp": "to know Baechi's linear programme, rho and the bound of a problem",
    "simple-placer": "a baseline: everything on the first device",
    "single": "a baseline: everything on the one best device",
    "submodular-g": "to compare with; better with communication=true",
    "submodular-gi": "to compare with; better with communication=true",
    "sufferage": "tasks that lose much on any but their best device",
    "tabu": "to compare with annealing and local-search",
    "topo-fill": "a baseline: device after device, each until it is full",
    "wba": "there is time for many randomised schedules: the best of them",
}
"""When to take which; one entry for each of our solvers."""

LONGEST = 80
"""Characters of a guarantee in a table."""


def our_solvers() -> list[str]:
    """The names of the solvers that come with placeopt, sorted."""
    points = entry_points(group=GROUP)
    return sorted(point.name for point in points if point.value.startswith("placeopt_solvers."))


def families() -> dict[str, list[str]]:
    """Our solvers by family, families in the order of `placeopt solvers`."""
    found: dict[str, list[str]] = {}
    for name in our_solvers():
        found.setdefault(find_solver(name).info.family, []).append(name)
    places = {family: place for place, family in enumerate(FAMILIES)}
    return dict(sorted(found.items(), key=lambda entry: (places.get(entry[0], len(places)), entry[0])))


def module_of(name: str) -> Any:
    """The module of a solver."""
    return sys.modules[type(find_solver(name)).__module__]


def source_path(name: str) -> str:
    """Where the source of a solver stands in the repository."""
    return f"solvers/{module_of(name).__name__.rpartition('.')[2]}.py"


def table(prefix: str) -> str:
    """All our solvers, family by family; `prefix` leads from the page to the root of the repository."""
    lines = ["| solver | guarantee | complexity | when to take it |", "|---|---|---|---|"]
    for family, names in families().items():
        lines.append(f"| **{family}** | | | |")
        for name in names:
            info = find_solver(name).info
            link = f"[`{name}`]({prefix}{source_path(name)})"
            lines.append(f"| {link} | {cell(shortened(info.guarantee))} | {cell(info.complexity)} | {WHEN[name]} |")
    return "\n".join(lines)


def shortened(guarantee: str) -> str:
    """A guarantee without its conditions, where it has many; an ellipsis stands for them."""
    if len(guarantee) <= LONGEST:
        return guarantee
    first = re.split(r": |, (?!and )| without release", guarantee)[0]
    return f"{first}, ..."


def index_page() -> str:
    """The table of all solvers."""
    return f"""# Solvers

n tasks, e edges, m devices. Ratios hold under conditions, which the solver's own page tells; an ellipsis stands for
them here. Whatever the solver, the gap of every result is certified ([bounds](../docs/bounds.md)) and the schedule
verified ([how](../docs/verification.md)). [Heuristics](../docs/heuristics.md) says more about which to take, and how
fast they are.

{table("../")}
"""


def solver_page(name: str) -> str:
    """Everything about one solver."""
    solver = find_solver(name)
    info = solver.info
    combined = ", sums and lists of them" if info.combined else ""
    facts = [
        ("guarantee", info.guarantee),
        ("complexity", info.complexity),
        ("when to take it", WHEN[name]),
        ("objectives", ", ".join(info.metrics) + combined),
        ("contention", ", ".join(info.contentions)),
        ("memory models", ", ".join(info.memory_models)),
        ("stops", "once it is proved, or at the time limit" if info.anytime else "when it is done"),
        ("makes use of a start", "yes, `--initial`" if info.warm_start else "no"),
    ]
    parts = [
        f"# {name}\n\n{sentence(text(info.summary))}",
        "\n".join([f"| | {name} |", "|---|---|", *(f"| {label} | {cell(value)} |" for label, value in facts)]),
        "n tasks, e edges, m devices.",
        f"    placeopt solve PROBLEM --solver {name}\n\nSource: [`{source_path(name)}`](../{source_path(name)}?source)",
        "## What it does, and where it departs from its paper\n\n" + prose(inspect.getdoc(module_of(name)) or ""),
    ]
    if isinstance(solver, Constructive):
        parts.append("## Common to all constructive heuristics\n\n" + prose(inspect.getdoc(Constructive) or ""))
    settings = setting_cards(solver.settings_type)
    if settings:
        rows = "\n".join(
            f"| `{each['name']}` | `{shown(each['default'])}` | {setting_text(each)} |" for each in settings
        )
        parts.append(
            "## Settings\n\n`--set name=value` on the command line, a keyword argument of `placeopt.solve` in "
            f"Python.\n\n| setting | default | meaning |\n|---|---|---|\n{rows}"
        )
    if info.citation:
        parts.append(f"## Citation\n\n```bibtex\n{info.citation}\n```")
    return "\n\n".join(parts) + "\n"


def setting_text(setting: dict[str, Any]) -> str:
    """What a setting means, and what it may be."""
    choices = ", ".join(f"`{choice}`" for choice in setting["choices"])
    described = " ".join(setting["description"].split())
    return f"{cell(described)}{f' One of {choices}.' if choices else ''}"


def shown(value: Any) -> str:
    """A default as a command line would have it."""
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def prose(docstring: str) -> str:
    """A docstring as Markdown: what looks like HTML is none."""
    lines = dedent(docstring).splitlines()
    return "\n".join(line if line.startswith("    ") else text(line) for line in lines)


def text(line: str) -> str:
    """A line whose signs mean themselves, but for those of Markdown's code and emphasis."""
    pieces = re.split(r"(`[^`]*`)", line)
    return "".join(piece if piece.startswith("`") else piece.replace("<", "&lt;") for piece in pieces)


def cell(value: str) -> str:
    """A text for a cell of a table."""
    return text(value).replace("|", "\\|")


def sentence(value: str) -> str:
    """A summary as a sentence."""
    return f"{value[0].upper()}{value[1:]}."
