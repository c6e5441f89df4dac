"""A solver in a package of its own: built, installed away from placeopt, found by its entry point, and used.

The package in tests/third_party is the example of docs/new-solver.md.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "tests" / "third_party" / "placeopt-random-search"
PROBLEM = ROOT / "problems" / "five-node.yaml"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the package is installed into."""
    folder = tmp_path_factory.mktemp("third-party")
    # From a copy: building leaves files beside the sources.
    source = shutil.copytree(PACKAGE, folder / "source", ignore=shutil.ignore_patterns("__pycache__", "build"))
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
    command += ["--disable-pip-version-check", "--target", str(folder / "site"), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


def python(installed: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Another Python that has the package on its path, far away from this checkout's tests."""
    environment = os.environ | {"PYTHONPATH": str(installed), "COLUMNS": "140"}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=installed)


def test_it_is_found_and_solves(installed: Path) -> None:
    options = ("--solver", "random-search", "--set", "samples=200", "--seed", 1, "--json")
    done = python(installed, "-m", "placeopt", "solve", PROBLEM, *options)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["solver"], result["feasible"], result["termination"]) == ("random-search", True, "completed")
    assert result["settings"] == {"samples": 200}
    assert result["stats"] == {"samples": 200}
    assert result["bound"] <= result["objective"] < 19  # everything on one core


def test_it_is_listed_with_what_it_says_of_itself(installed: Path) -> None:
    done = python(installed, "-m", "placeopt", "solvers", "random-search")
    assert done.returncode == 0, done.stderr
    for text in (
        "the best of many random placements",
        "O(n log n + e) for each placement",
        "samples",
        "Default: 1000.",
    ):
        assert text in done.stdout


def test_settings_that_make_no_sense_are_refused(installed: Path) -> None:
    done = python(installed, "-m", "placeopt", "solve", PROBLEM, "--solver", "random-search", "--set", "samples=0")
    assert done.returncode == 2
    assert "samples" in done.stderr
    assert "Traceback" not in done.stderr


def test_its_own_tests_pass(installed: Path) -> None:
    done = python(installed, "-m", "pytest", "-q", "-p", "no:cacheprovider", PACKAGE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_it_is_not_here_unless_it_is_installed() -> None:
    from placeopt import solvers

    assert "random-search" not in solvers()
