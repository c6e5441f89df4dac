"""Generate the pages and tables of solvers from the registry. Only `WHEN` is written by hand."""

from __future__ import annotations

import inspect
import re
import sys
from importlib.metadata import entry_points
from textwrap import dedent
from typing import Any

from placeopt.registry import GROUP, find_solver
from placeopt.report.catalog import FAMILIES, setting_cards

WHEN = {
    "annealing": "memory is scarce, up to a few thousand tasks, with time for a search",
    "auto": "the default choice: runs several of the other solvers and returns the best schedule",
    "bil": "chains on heterogeneous devices; otherwise for comparison",
    "brute-force": "up to about six tasks, to check other solvers",
    "celeritas": "transfers cost more than computation, and devices have little memory",
    "cp-sat": "up to a few hundred tasks, or to improve the schedule of a heuristic",
    "cpop": "one device is the fastest for most of the critical path",
    "dsc": "expensive transfers, and many identical devices",
    "duplex": "the better of min-min and max-min, in the time of both",
    "etf": "many tasks are ready at the same time",
    "fcp": "very large graphs with many tasks ready at the same time",
    "flb": "like etf, in a fraction of its time on many devices",
    "gdl": "heterogeneous devices, and graphs that are not wide",
    "hbmct": "layered graphs on heterogeneous devices, not too wide",
    "heft": "a first schedule, at any size",
    "heuristic-g": "a baseline for submodular placement",
    "lc": "for comparison: clusters from longest paths",
    "lns": "some hundred to many thousand tasks, with time for a search: shorter makespans than any heuristic",
    "local-search": "like annealing; often as good in less time",
    "lookahead-heft": "small graphs: HEFT with one step of lookahead",
    "m-etf": "devices have little memory",
    "m-sct": "devices have little memory, and transfers are at most as long as tasks",
    "m-topo": "a baseline: fills the devices one after another, each with an equal share of the memory",
    "max-min": "few long tasks among many short ones",
    "mct": "a baseline: each task on the device where it ends first",
    "met": "a baseline: each task on its fastest device, regardless of load",
    "metis": "for comparison with a graph partitioner",
    "milp": "up to about ten tasks: to check cp-sat, and to study the formulation",
    "min-min": "many independent tasks are ready at the same time",
    "olb": "a baseline: each task on the device that is free first",
    "order-place": "a baseline for celeritas",
    "peft": "a first schedule with lookahead, in two or three times the time of heft",
    "random": "a baseline that every search should beat",
    "random-task-eft": "for comparison: the baseline of GiPH's search policies",
    "sct-lp": "to compute Baechi's linear programme, rho and the bound of a problem",
    "simple-placer": "a baseline: all tasks on the first device",
    "single": "a baseline: all tasks on the best single device",
    "submodular-g": "for comparison; better with communication=true",
    "submodular-gi": "for comparison; better with communication=true",
    "sufferage": "tasks that run much slower on any device other than their best",
    "tabu": "for comparison with annealing and local-search",
    "topo-fill": "a baseline: fills the devices one after another",
    "wba": "there is time for many randomised schedules: returns the best of them",
}
"""When to use each solver; one entry for each solver of placeopt."""

LONGEST = 80
"""Maximum number of characters of a guarantee in a table."""


def our_solvers() -> list[str]:
    """The names of the solvers of placeopt, sorted."""
    points = entry_points(group=GROUP)
    return sorted(point.name for point in points if point.value.startswith("placeopt_solvers."))


def families() -> dict[str, list[str]]:
    """The solvers of placeopt by family, with families in the order of `placeopt solvers`."""
    found: dict[str, list[str]] = {}
    for name in our_solvers():
        found.setdefault(find_solver(name).info.family, []).append(name)
    places = {family: place for place, family in enumerate(FAMILIES)}
    return dict(sorted(found.items(), key=lambda entry: (places.get(entry[0], len(places)), entry[0])))


def module_of(name: str) -> Any:
    """The module of a solver."""
    return sys.modules[type(find_solver(name)).__module__]


def source_path(name: str) -> str:
    """The path of the source of a solver in the repository."""
    return f"solvers/{module_of(name).__name__.rpartition('.')[2]}.py"


def table(prefix: str) -> str:
    """The table of all solvers by family; `prefix` is the path from the page to the root of the repository."""
    lines = ["| solver | guarantee | complexity | when to use it |", "|---|---|---|---|"]
    for family, names in families().items():
        lines.append(f"| **{family}** | | | |")
        for name in names:
            info = find_solver(name).info
            link = f"[`{name}`]({prefix}{source_path(name)})"
            lines.append(f"| {link} | {cell(shortened(info.guarantee))} | {cell(info.complexity)} | {WHEN[name]} |")
    return "\n".join(lines)


def shortened(guarantee: str) -> str:
    """A guarantee; the conditions of a long one are replaced by an ellipsis."""
    if len(guarantee) <= LONGEST:
        return guarantee
    first = re.split(r": |, (?!and )| without release", guarantee)[0]
    return f"{first}, ..."


def index_page() -> str:
    """The page with the table of all solvers."""
    return f"""# Solvers

This page lists all solvers of placeopt with their guarantee, complexity and typical use. n is the number of tasks, e of
edges, m of devices. Approximation ratios hold under conditions that the page of the solver states; the table replaces
them by an ellipsis. For every solver, the gap of the result is certified ([bounds](../docs/bounds.md)) and the schedule
is verified ([verification](../docs/verification.md)). [Heuristics](../docs/heuristics.md) explains how to select a
heuristic, and how fast each one is.

{table("../")}
"""


def solver_page(name: str) -> str:
    """The page of one solver."""
    solver = find_solver(name)
    info = solver.info
    combined = ", sums and lists of them" if info.combined else ""
    facts = [
        ("guarantee", info.guarantee),
        ("complexity", info.complexity),
        ("when to use it", WHEN[name]),
        ("objectives", ", ".join(info.metrics) + combined),
        ("contention", ", ".join(info.contentions)),
        ("memory models", ", ".join(info.memory_models)),
        ("stops", "at proved optimality or at the time limit" if info.anytime else "when it is done"),
        ("warm start", "yes, `--initial`" if info.warm_start else "no"),
    ]
    parts = [
        f"# {name}\n\n{sentence(text(info.summary))}",
        "\n".join([f"| | {name} |", "|---|---|", *(f"| {label} | {cell(value)} |" for label, value in facts)]),
        "n is the number of tasks, e of edges, m of devices.",
        f"    placeopt solve PROBLEM --solver {name}\n\nSource: [`{source_path(name)}`](../{source_path(name)}?source)",
        "## Algorithm and departures from the paper\n\n" + prose(inspect.getdoc(module_of(name)) or ""),
    ]
    settings = setting_cards(solver.settings_type)
    if settings:
        rows = "\n".join(
            f"| `{each['name']}` | `{shown(each['default'])}` | {setting_text(each)} |" for each in settings
        )
        parts.append(
            "## Settings\n\nUse `--set name=value` on the command line, or a keyword argument of `placeopt.solve` in "
            f"Python.\n\n| setting | default | meaning |\n|---|---|---|\n{rows}"
        )
    if info.citation:
        parts.append(f"## Citation\n\n```bibtex\n{info.citation}\n```")
    return "\n\n".join(parts) + "\n"


def setting_text(setting: dict[str, Any]) -> str:
    """The description of a setting and its valid choices."""
    choices = ", ".join(f"`{choice}`" for choice in setting["choices"])
    described = " ".join(setting["description"].split())
    return f"{cell(described)}{f' One of {choices}.' if choices else ''}"


def shown(value: Any) -> str:
    """A default value as written on the command line."""
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def prose(docstring: str) -> str:
    """A docstring as Markdown, with `<` escaped outside code."""
    lines = dedent(docstring).splitlines()
    return "\n".join(line if line.startswith("    ") else text(line) for line in lines)


def text(line: str) -> str:
    """A line with `<` escaped outside code; Markdown in it still applies."""
    pieces = re.split(r"(`[^`]*`)", line)
    return "".join(piece if piece.startswith("`") else piece.replace("<", "&lt;") for piece in pieces)


def cell(value: str) -> str:
    """A text as the cell of a Markdown table."""
    return text(value).replace("|", "\\|")


def sentence(value: str) -> str:
    """A summary as a sentence."""
    return f"{value[0].upper()}{value[1:]}."
