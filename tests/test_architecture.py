"""Who may import whom, what loads when, and what is in the wheel."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import entry_points
from pathlib import Path
from typing import TypeGuard

import pytest
from hatchling.builders.wheel import WheelBuilder

from placeopt.cli.service.examples import NAMES

ROOT = Path(__file__).parents[1]
CORE = ROOT / "placeopt"
SOLVERS = ROOT / "solvers" / "placeopt_solvers"

PAGE = ROOT / "docs" / "architecture.md"
MOST = {CORE: 25, SOLVERS: 16}
"""Entries that a newcomer sees at most in each top folder."""

HEAVY = (
    "accelerate", "dask", "distributed", "gguf", "matplotlib", "networkx", "onnx", "onnxruntime", "openvino",
    "ortools", "pandas", "pydot", "safetensors", "scipy", "starlette", "torch", "transformers", "uvicorn",
)  # fmt: skip

ASSETS = (".html", ".css", ".js", ".txt")
"""Files of pages that are not modules."""


def table() -> dict[str, frozenset[str]]:
    """The components of docs/architecture.md in order, each with the components that it may import."""
    line = re.compile(r"\| `([\w/]+)` \| [^|]+ \|([^|]*)\|")
    found = [match.groups() for text in PAGE.read_text().splitlines() if (match := line.fullmatch(text))]
    return {room: frozenset(re.findall(r"`([\w/]+)`", allowed)) for room, allowed in found}


ROOMS = table()


def modules(folder: Path) -> list[Path]:
    """The modules of a package; the sources of the native engine contain a script that only the build runs."""
    return sorted(path for path in folder.rglob("*.py") if path.parent != CORE / "engine" / "native")


def home(path: Path) -> str:
    """The dotted name of a module of this project."""
    top, name = (CORE, "placeopt") if path.is_relative_to(CORE) else (SOLVERS, "placeopt_solvers")
    parts = path.relative_to(top).with_suffix("").parts
    return ".".join((name, *(parts[:-1] if parts[-1] == "__init__" else parts)))


MODULES = {home(path): path for path in (*modules(CORE), *modules(SOLVERS))}


@cache
def imports(path: Path) -> frozenset[str]:
    """Modules of this project that a file or its stub imports: anywhere in it, relative or not."""
    found: set[str] = set()
    stub = path.with_suffix(".pyi")
    for node in ast.walk(ast.parse((stub if stub.exists() else path).read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = home(path).split(".") + ["__init__"] * (path.name == "__init__.py")
            base = ".".join([*(parts[: -node.level] if node.level else ()), *([node.module] if node.module else ())])
            found.update(f"{base}.{alias.name}" if f"{base}.{alias.name}" in MODULES else base for alias in node.names)
    return frozenset(found & MODULES.keys()) - {home(path)}


def room(module: str) -> str:
    """The component of a module: the longest matching row of the table."""
    place = "/".join(module.split(".")).removeprefix("placeopt/").replace("placeopt_solvers", "solvers", 1)
    place = "__init__" if place == "placeopt" else place
    return max((name for name in ROOMS if f"{place}/".startswith(f"{name}/")), key=len)


def test_every_module_has_a_room_and_every_room_a_module() -> None:
    assert {room(module) for module in MODULES} == set(ROOMS)


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_imports_exactly_what_the_table_says(name: str) -> None:
    used = {
        room(imported)
        for module, path in MODULES.items()
        if room(module) == name
        for imported in imports(path)
        if room(imported) != name
    }
    assert used == ROOMS[name]


def test_rooms_import_only_rooms_above_them() -> None:
    order = list(ROOMS)
    for name, allowed in ROOMS.items():
        assert all(order.index(other) < order.index(name) for other in allowed), name


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = {module: imports(path) for module, path in MODULES.items()}
    tuple(TopologicalSorter(graph).static_order())  # raises CycleError, which names the circle


@pytest.mark.parametrize("folder", MOST, ids=lambda folder: folder.name)
def test_a_newcomer_sees_few_entries(folder: Path) -> None:
    entries = {path.stem for path in folder.iterdir() if path.name != "__pycache__"}  # a module and its stub are one
    assert len(entries) <= MOST[folder], sorted(entries)


def test_every_folder_says_what_happens_in_it() -> None:
    folders = {path.parent for path in MODULES.values()}
    silent = [folder for folder in folders if not ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))]
    assert not silent


def test_the_core_imports_no_solver_and_no_solver_another() -> None:
    public = {point.value.partition(":")[0] for point in entry_points(group="placeopt.solvers")}
    for module, path in MODULES.items():
        for imported in imports(path):
            assert imported not in public, f"{module} imports the solver {imported}"
            assert module.startswith("placeopt_solvers") or not imported.startswith("placeopt_solvers"), module


def reached(module: str) -> set[str]:
    """The modules of this project that a module imports, directly and by way of others."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        for imported in imports(MODULES[waiting.pop()]) - found:
            found.add(imported)
            waiting.append(imported)
    return found


def test_bounds_run_no_solver_and_solvers_that_prove_bounds_run_no_prover() -> None:
    """`bounding` lies below the solvers, and `proving` above those that it names.

    `series` may solve its blocks, which are smaller problems, by `auto`: the one solver that proves all bounds.
    """
    for module in MODULES:
        if module.startswith("placeopt.bounding"):
            assert not reached(module) & {"placeopt.protocol.registry", "placeopt.proving"}, module
    public = {point.name: point.value.partition(":")[0] for point in entry_points(group="placeopt.solvers")}
    proving = [path for module, path in MODULES.items() if module.startswith("placeopt.proving")]
    texts = {node.value for path in proving for node in ast.walk(ast.parse(path.read_text())) if is_text(node)}
    run = public.keys() & texts
    assert run >= {"cp-sat", "ideals", "series"}
    for name in run:
        assert not any(other.startswith("placeopt.proving") for other in reached(public[name])), name


def is_text(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_solvers_leave_files_pipeline_and_verifier_alone() -> None:
    left_alone = {"verifier", "io", "io/compiler", "orchestration", "cli", "testing", "views"}
    assert left_alone <= ROOMS.keys()
    for name in ROOMS:
        if name.startswith("solvers"):
            assert not ROOMS[name] & left_alone, name


def test_no_module_is_named_like_a_public_name() -> None:
    import placeopt

    assert not {path.stem for path in CORE.iterdir()} & set(placeopt.__all__)


def test_one_function_runs_cp_sat() -> None:
    """So that all that keeps CP-SAT right stands in one place."""

    def makes_a_solver(path: Path) -> bool:
        calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        return any(ast.unparse(call).split(".")[-1] == "CpSolver" for call in calls)

    users = [path for path in (*modules(CORE), *modules(SOLVERS)) if makes_a_solver(path)]
    assert users == [CORE / "bounding" / "engines" / "cp_sat.py"]


def test_the_entry_points_are_installed() -> None:
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    for group, points in stated.items():
        installed = {point.name: point.value for point in entry_points(group=group)}
        missing = {name for name, value in points.items() if installed.get(name) != value}
        assert not missing, f"run `pip install -e .` again: {group} is not installed as pyproject.toml states"


def loaded_after(statement: str) -> set[str]:
    program = f"import sys\n{statement}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split("\n"))


def test_importing_placeopt_loads_no_solver_and_nothing_heavy() -> None:
    loaded = loaded_after("import placeopt")
    assert not [name for name in loaded if name.split(".")[0] in (*HEAVY, "placeopt_solvers", "numpy", "pydantic")]


def test_help_loads_nothing_heavy() -> None:
    statement = (
        "import contextlib, io\nfrom placeopt.cli import run\nsys.argv = ['placeopt', '--help']\n"
        "with contextlib.redirect_stdout(io.StringIO()): run()"
    )
    loaded = loaded_after(statement)
    assert not [name for name in loaded if name.split(".")[0] in (*HEAVY, "placeopt_solvers", "numpy", "pydantic")]


def test_a_small_problem_needs_no_compiled_code() -> None:
    statement = f"import placeopt as po\npo.solve(po.load({str(ROOT / 'problems' / 'heft-10.yaml')!r}), 'heft')"
    loaded = loaded_after(statement)
    assert not [name for name in loaded if name.split(".")[0] in HEAVY]


def test_public_names_agree_with_what_type_checkers_see() -> None:
    import placeopt

    tree = ast.parse((CORE / "__init__.pyi").read_text())
    seen = {alias.asname for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == set(placeopt.__all__)
    for name in placeopt.__all__:
        assert getattr(placeopt, name) is not None


def test_the_wheel_holds_exactly_the_tree() -> None:
    """Besides the engine, which the build hook compiles."""
    names = {each.distribution_path for each in WheelBuilder(str(ROOT)).recurse_included_files()}
    tree = {f"placeopt/{path.relative_to(CORE)}" for path in modules(CORE)}
    tree |= {f"placeopt_solvers/{path.relative_to(SOLVERS)}" for path in modules(SOLVERS)}
    for folder in ("views/page", "cli/service/page"):
        tree |= {f"placeopt/{folder}/{path.name}" for path in (CORE / folder).iterdir() if path.suffix in ASSETS}
    tree |= {f"placeopt/cli/service/problems/{name}.yaml" for name in NAMES}
    tree |= {f"placeopt/io/catalogue/{path.name}" for path in (CORE / "io" / "catalogue").glob("*.yaml")}
    tree |= {f"placeopt/learning/weights/{path.name}" for path in (CORE / "learning" / "weights").iterdir()}
    tree |= {"placeopt/__init__.pyi", "placeopt/engine/_core.pyi", "placeopt/protocol/papers.bib"}
    tree |= {"placeopt/py.typed", "placeopt_solvers/py.typed"}
    assert names == tree
