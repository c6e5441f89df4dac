"""Compile the native engine when hatchling builds a wheel or an editable install.

hatchling collects the Python files and writes the metadata. This hook runs CMake through scikit-build-core and adds the
extension module: to the wheel, or for `pip install -e .` to the source tree, which is then on the path as it is.

Without a C++ compiler, the hook asks for the package `ziglang`, which contains one, and builds with it.
"""

from __future__ import annotations

import compileall
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from scikit_build_core.hatch.plugin import ScikitBuildHook

COMPILERS = ("c++", "g++", "clang++", "cl")
STUDIO = ("Microsoft Visual Studio", "Installer", "vswhere.exe")


class EngineHook(ScikitBuildHook):
    """Builds `placeopt.engine._core`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.config.pop("path", None)  # the rest are settings of scikit-build-core

    def dependencies(self) -> list[str]:
        """Return what the build needs in addition to `build-system.requires`."""
        needed = [] if self.target_name != "wheel" or has_compiler() else ["ziglang>=0.13"]
        return [*super().dependencies(), *needed]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and place the extension module."""
        with nullcontext() if has_compiler() else zig_compiler():
            super().initialize("standard", build_data)
        if version == "editable":
            files = build_data["force_include"]
            for folder, target in list(files.items()):
                shutil.copytree(folder, Path(self.root, target), dirs_exist_ok=True)
                del files[folder]
            # pip compiles the bytecode of what it copies, not of a source tree: otherwise the first command would.
            for folder in ("placeopt", "solvers"):
                compileall.compile_dir(Path(self.root, folder), quiet=2)


def get_build_hook() -> type[BuildHookInterface]:
    """Return the hook; hatchling calls this."""
    return EngineHook


def has_compiler() -> bool:
    """Return whether there is a C++ compiler that CMake finds by itself."""
    if os.environ.get("CXX") or any(map(shutil.which, COMPILERS)):
        return True
    return Path(os.environ.get("PROGRAMFILES(X86)", "C:/Program Files (x86)"), *STUDIO).exists()


@contextmanager
def zig_compiler() -> Iterator[None]:
    """Let CMake use the compiler of the package `ziglang`.

    CMake expects a program for each tool. `ziglang` is a module with a command for each; small scripts call these.
    """
    with tempfile.TemporaryDirectory() as folder:
        tools = {name: _script(Path(folder), name) for name in ("c++", "ar", "ranlib")}
        before = os.environ.copy()
        defined = {"CMAKE_AR": "ar", "CMAKE_CXX_COMPILER_AR": "ar", "CMAKE_RANLIB": "ranlib"}
        defined["CMAKE_CXX_COMPILER_RANLIB"] = "ranlib"
        arguments = [f"-D{name}={tools[tool]}" for name, tool in defined.items()]
        os.environ["CXX"] = tools["c++"]
        os.environ["CMAKE_ARGS"] = " ".join([os.environ.get("CMAKE_ARGS", ""), *arguments, "-GNinja"])
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def _script(folder: Path, name: str) -> str:
    """Write a script that runs a command of `ziglang`; return its path."""
    if os.name == "nt":
        path = folder / f"zig-{name}.cmd"
        path.write_text(f'@"{sys.executable}" -m ziglang {name} %*\n')
    else:
        path = folder / f"zig-{name}"
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ziglang {name} "$@"\n')
        path.chmod(0o755)
    return path.as_posix()
