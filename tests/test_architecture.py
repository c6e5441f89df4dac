"""Who may import whom, what loads when, and what is in the wheel."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CORE = ROOT / "placeopt"
SOLVERS = ROOT / "solvers"

# Each layer may import itself and the layers above it in this list; every module stands in exactly one.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "inputs", "kernels", "cycles", "labels", "papers", "signals", "engines", "files"),
    ("markup",),
    ("units", "ir", "overview"),
    ("graph", "groups", "levels", "orders", "relocation"),
    ("schedule",),
    ("memory", "criticality"),
    ("objective",),
    ("simulation", "verifier", "lowerbounds", "metrics", "pictures", "traces"),
    ("solver",),
    ("registry", "result", "wording", "frames", "passes", "policies", "relaxation", "sct", "search", "submodular"),
    ("heuristics",),
    ("bounding",),
    ("companion",),
    ("syntax", "document", "scalars", "spec", "validation"),
    ("compiler", "plan"),
    ("generate", "formats", "profiling"),
    ("pipeline", "claims", "arguments", "warming"),
    ("explanation", "comparison", "replacement"),
    ("testing", "page", "report"),
    ("cli", "__init__", "__main__"),
)
RANK = {module: rank for rank, layer in enumerate(LAYERS) for module in layer}
HEAVY = ("ortools", "numba", "scipy", "networkx", "pandas", "matplotlib")

ASSETS = (".html", ".css", ".js")
"""What the page is made of beside its modules."""


def modules(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def imports(path: Path) -> set[str]:
    """Dotted names of all modules that a file imports, anywhere in it but under TYPE_CHECKING."""
    found: set[str] = set()
    tree = ast.parse(path.read_text())
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = ".".join(filter(None, (*package(path, node.level), node.module)))
            found.add(module)
            found.update(f"{module}.{alias.name}" for alias in node.names)
    return found


def package(path: Path, level: int) -> tuple[str, ...]:
    """The package that a relative import with so many dots starts from; nothing for an absolute one."""
    if level == 0:
        return ()
    folder = path.parents[level - 1]
    home, name = (CORE, "placeopt") if folder.is_relative_to(CORE) else (SOLVERS, "placeopt_solvers")
    return (name, *folder.relative_to(home).parts)


def part(path: Path) -> str:
    """The layer's name of a core module: compiler for placeopt/io/compiler/links.py."""
    return path.relative_to(CORE).parts[0].removesuffix(".py")


def test_every_module_has_a_layer() -> None:
    assert {part(path) for path in modules(CORE)} == set(RANK)


@pytest.mark.parametrize("path", modules(CORE), ids=lambda path: str(path.relative_to(ROOT)))
def test_core_imports_only_downwards_and_no_solver(path: Path) -> None:
    own = RANK[part(path)]
    for name in imports(path):
        pieces = name.split(".")
        assert pieces[0] not in ("placeopt_solvers", "solvers"), f"{path.name} imports {name}"
        if pieces[0] == "placeopt" and len(pieces) > 1 and pieces[1] in RANK:
            assert RANK[pieces[1]] <= own, f"{path.name} imports {name}, which stands above it"


@pytest.mark.parametrize("path", modules(SOLVERS), ids=lambda path: path.name)
def test_solvers_import_the_core_and_private_siblings_only(path: Path) -> None:
    forbidden = {"verifier", "pipeline", "spec", "compiler", "cli", "report", "registry", "document", "plan", "testing"}
    for name in imports(path):
        pieces = name.split(".")
        if pieces[0] == "placeopt" and len(pieces) > 1:
            assert pieces[1] not in forbidden, f"{path.name} imports {name}"
        if pieces[0] == "placeopt_solvers" and len(pieces) > 1:
            assert pieces[1].startswith("_"), f"{path.name} imports the public sibling {name}"


def test_one_function_runs_cp_sat() -> None:
    """So that all that keeps CP-SAT right stands in one place."""

    def makes_a_solver(path: Path) -> bool:
        calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        return any(ast.unparse(call).split(".")[-1] == "CpSolver" for call in calls)

    users = [path for path in (*modules(CORE), *modules(SOLVERS)) if makes_a_solver(path)]
    assert users == [CORE / "engines" / "cp_sat.py"]


def loaded_after(statement: str) -> set[str]:
    program = f"import sys\n{statement}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split("\n"))


def test_importing_placeopt_loads_no_solver_and_nothing_heavy() -> None:
    loaded = loaded_after("import placeopt")
    assert not [name for name in loaded if name.split(".")[0] in (*HEAVY, "placeopt_solvers", "numpy", "pydantic")]


def test_help_loads_nothing_heavy() -> None:
    statement = (
        "import contextlib, io\nfrom placeopt.cli import main\nsys.argv = ['placeopt', '--help']\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()): main()"
    )
    loaded = loaded_after(statement)
    assert not [name for name in loaded if name.split(".")[0] in (*HEAVY, "placeopt_solvers", "numpy", "pydantic")]


def test_a_small_problem_needs_no_compiled_code() -> None:
    statement = f"import placeopt as po\npo.solve(po.load({str(ROOT / 'problems' / 'heft-10.yaml')!r}), 'heft')"
    loaded = loaded_after(statement)
    assert not [name for name in loaded if name.split(".")[0] in HEAVY]


def test_public_names_agree_with_what_type_checkers_see() -> None:
    import placeopt

    tree = ast.parse((CORE / "__init__.py").read_text())
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.asname for node in guarded.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == set(placeopt.__all__)
    for name in placeopt.__all__:
        assert getattr(placeopt, name) is not None


def test_the_wheel_holds_exactly_the_tree(tmp_path: Path) -> None:
    # Built from a copy: setuptools leaves a build folder whose stale files would come along the next time.
    source = tmp_path / "source"
    for folder in ("placeopt", "solvers"):
        shutil.copytree(ROOT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(source)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    tree = {f"placeopt/{path.relative_to(CORE)}" for path in modules(CORE)}
    tree |= {f"placeopt_solvers/{path.relative_to(SOLVERS)}" for path in modules(SOLVERS)}
    tree |= {f"placeopt/views/page/{path.name}" for path in (CORE / "page").iterdir() if path.suffix in ASSETS}
    assert names == tree | {"placeopt/py.typed", "placeopt_solvers/py.typed"}
