"""Generate the pages of the solvers and the table of docs/solvers.md from the registry; only `WHEN` is written here.

python docs/_pages/solver_pages.py      # writes the table into docs/solvers.md; a test compares both
"""

from __future__ import annotations

import inspect
import re
import sys
from importlib.metadata import entry_points
from pathlib import Path
from textwrap import dedent
from typing import Any

from placeopt_solvers._constructive.construction import Constructive

from placeopt.cli.terminal.catalog import FAMILIES, setting_cards
from placeopt.protocol import RULES
from placeopt.protocol.registry import GROUP, find_solver

WHEN = {
    "annealing": "a few thousand tasks at most, time to search, and memory that is nearly full",
    "auto": "the first choice, given seconds or minutes: combines heuristics, CP-SAT, searches and bounds",
    "bil": "chains of tasks on unrelated devices; comparisons",
    "brute-force": "up to about six tasks, makespan, relocation or period, `sum` memory; checks of other solvers",
    "celeritas": "transfers that cost more than the work, and little memory per device",
    "celeritas-tuned": "the same, given seconds: the order, cluster sizes and placer that suit the graph",
    "chains": "pipelines of layers that form a chain, thousands of them, with replicas",
    "cp-sat": "up to a few hundred tasks; improving a heuristic's schedule",
    "cpop": "one device is the fastest for most of the critical path",
    "dpl": "pipelines of any size: a first division into stages, in seconds",
    "dsc": "expensive transfers, and many identical devices",
    "duplex": "the better of min-min and max-min, in the time of both",
    "etf": "many tasks ready at once",
    "fcp": "very large graphs with many tasks ready at once",
    "flb": "the same as etf, in a fraction of its time on many devices",
    "forward-backward": "the same with ports or live memory; the largest gain in the first seconds",
    "gdl": "unrelated devices, and graphs that are not wide",
    "giph": "comparisons with learned search, and problems like those that its policy was trained on",
    "hbmct": "layered graphs that are not too wide, on unrelated devices",
    "heft": "a first schedule, for graphs of any size",
    "heuristic-g": "the baseline of submodular placement",
    "ideals": "pipelines with contiguous stages: the proved optimum of graphs with up to a few thousand tasks",
    "lc": "comparisons: clusters along longest paths",
    "lns": "a few hundred to many thousand tasks, and time to search: shorter makespans than any heuristic's",
    "local-search": "the same as annealing; often as good in less time",
    "lookahead-heft": "small graphs: heft with one step of lookahead",
    "m-etf": "little memory per device",
    "m-sct": "little memory per device, and transfers no longer than tasks",
    "m-topo": "a baseline: fills one device after another, each up to an equal share of the memory",
    "max-min": "few long tasks among many short ones",
    "mct": "a baseline: each task on the device where it ends first",
    "memetic": "shops, and networks of up to a few thousand tasks without contention: the shortest schedules",
    "met": "a baseline: each task on its fastest device, even if others wait there",
    "metis": "comparisons with a graph partitioner",
    "milp": "up to about ten tasks: checks of cp-sat, and teaching",
    "min-min": "many independent tasks ready at once",
    "multilevel": "large graphs with expensive transfers",
    "olb": "a baseline: each task on the device that is free first",
    "order-place": "the baseline of celeritas",
    "peft": "a first schedule with lookahead, in two or three times heft's time",
    "random": "a baseline for searches",
    "random-task-eft": "the baseline of GiPH's search policies",
    "sct-lp": "Baechi's linear program: favourite children, rho and a bound",
    "series": "networks: series of small blocks between tasks that cut the graph, at any size",
    "simple-placer": "a baseline: all tasks on the first device",
    "single": "a baseline: all tasks on the best single device",
    "stage-search": "pipelines of any size, with time to search: free stages, tight memory, replicas",
    "submodular-g": "comparisons; better with communication=true",
    "submodular-gi": "comparisons; better with communication=true",
    "sufferage": "tasks that are much slower on all but their best device",
    "tabu": "comparisons with annealing and local-search",
    "topo-fill": "a baseline: fills one device after another",
    "wba": "many randomised schedules, of which it returns the best",
    "windows": "thousands to hundreds of thousands of tasks without port contention: the shortest schedules",
}
"""Use of each solver that comes with placeopt."""

PAGE = Path(__file__).parents[1] / "solvers.md"
MARK = "<!-- table of solvers, made by docs/_pages/solver_pages.py -->"
LONGEST = 80
"""Maximum length of a guarantee in a table, in characters."""


def our_solvers() -> list[str]:
    """Return the names of the solvers that come with placeopt, sorted."""
    points = entry_points(group=GROUP)
    return sorted(point.name for point in points if point.value.startswith("placeopt_solvers."))


def families() -> dict[str, list[str]]:
    """Return our solvers by family, in the order of `placeopt solvers`."""
    found: dict[str, list[str]] = {}
    for name in our_solvers():
        found.setdefault(find_solver(name).info.family, []).append(name)
    places = {family: place for place, family in enumerate(FAMILIES)}
    return dict(sorted(found.items(), key=lambda entry: (places.get(entry[0], len(places)), entry[0])))


def module_of(name: str) -> Any:
    """Return the module of a solver."""
    return sys.modules[type(find_solver(name)).__module__]


def use(name: str) -> str:
    """Return when to use a solver."""
    if name not in WHEN:
        raise SystemExit(f"WHEN in {Path(__file__).name} has no line for {name}: state when to use it")
    return WHEN[name]


def source_path(name: str) -> str:
    """Return the path of a solver's source in the repository."""
    return f"{module_of(name).__name__.replace('placeopt_solvers', 'solvers/placeopt_solvers').replace('.', '/')}.py"


def table(prefix: str) -> str:
    """Return the table of all our solvers; `prefix` is the path from the page to the root of the repository."""
    lines = ["| solver | guarantee | complexity | use |", "|---|---|---|---|"]
    for family, names in families().items():
        lines.append(f"| **{family}** | | | |")
        for name in names:
            info = find_solver(name).info
            link = f"[`{name}`]({prefix}{source_path(name)})"
            lines.append(f"| {link} | {cell(shortened(info.guarantee))} | {cell(info.complexity)} | {use(name)} |")
    return "\n".join(lines)


def shortened(guarantee: str) -> str:
    """Return a guarantee; if it is long, an ellipsis replaces its conditions."""
    if len(guarantee) <= LONGEST:
        return guarantee
    first = re.split(r": |, (?!and )| without release", guarantee)[0]
    return f"{first}, ..."


def write_table() -> None:
    """Replace the table in docs/solvers.md."""
    text = PAGE.read_text(encoding="utf-8")
    changed = re.sub(rf"(?<={re.escape(MARK)}\n\n).*?(?=\n\n)", lambda _: table("../"), text, count=1, flags=re.DOTALL)
    PAGE.write_text(changed, encoding="utf-8")


def solver_page(name: str) -> str:
    """Return the page of one solver."""
    solver = find_solver(name)
    info = solver.info
    combined = ", weighted sums and lexicographic lists" if info.combined else ""
    facts = [
        ("guarantee", info.guarantee),
        ("complexity", info.complexity),
        ("use", use(name)),
        ("objectives", ", ".join(info.metrics) + combined),
        ("contention", ", ".join(info.contentions)),
        ("memory models", ", ".join(info.memory_models)),
        ("also", ", ".join(RULES[rule] for rule in info.rules) or "none"),
        ("stops", "at a proved optimum or at the time limit" if info.anytime else "when it has finished"),
        ("warm start", "yes, `--initial`" if info.warm_start else "no"),
    ]
    parts = [
        f"# {name}\n\n{sentence(text(info.summary))}",
        "\n".join([f"| | {name} |", "|---|---|", *(f"| {label} | {cell(value)} |" for label, value in facts)]),
        "n is the number of tasks, e of edges, m of devices.",
        f"    placeopt solve PROBLEM --solver {name}\n\nSource: [`{source_path(name)}`](../{source_path(name)}?source)",
        "## Algorithm, and departures from the paper\n\n" + prose(inspect.getdoc(module_of(name)) or ""),
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
    """Describe a setting and its choices."""
    choices = ", ".join(f"`{choice}`" for choice in setting["choices"])
    described = " ".join(setting["description"].split())
    return f"{cell(described)}{f' One of {choices}.' if choices else ''}"


def shown(value: Any) -> str:
    """Return a default in the form of the command line."""
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def prose(docstring: str) -> str:
    """Return a docstring as Markdown, with the signs of HTML escaped."""
    lines = dedent(docstring).splitlines()
    return "\n".join(line if line.startswith("    ") else text(line) for line in lines)


def text(line: str) -> str:
    """Escape `<` outside of code; Markdown's code and emphasis keep their meaning."""
    pieces = re.split(r"(`[^`]*`)", line)
    return "".join(piece if piece.startswith("`") else piece.replace("<", "&lt;") for piece in pieces)


def cell(value: str) -> str:
    """Escape a text for a cell of a table."""
    return text(value).replace("|", "\\|")


def sentence(value: str) -> str:
    """Return a summary as a sentence."""
    return f"{value[0].upper()}{value[1:]}."


if __name__ == "__main__":
    write_table()
