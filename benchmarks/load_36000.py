"""Measure the time to read, validate and compile a problem of 36,000 tasks.

    python benchmarks/load_36000.py

The instance (seed 0) has 36,000 tasks with flops and bytes, each with an output and resident memory. Every task
except the first has 1 to 3 producers (2 on average) among the previous 100 tasks. Every third task belongs to one of
1,200 colocation groups. The network has 40 GPUs and 20 CPUs. The instance is written as JSON and as YAML into a
temporary folder. Times are medians of 5 runs in seconds, with the file in the cache of the operating system:

    parse           text to plain data
    parse + check   text to a validated spec
    compile         validated spec to a problem
    load            the complete `placeopt.load`
    parser alone    json.loads; PyYAML's C parser (events only), and PyYAML's C loader for comparison
"""

from __future__ import annotations

import gc
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from rich.console import Console
from rich.table import Table

from placeopt.io.compiler import compile_document, load
from placeopt.io.document import collection_paused, read_document
from placeopt.io.formats.documents import to_json, to_yaml
from placeopt.io.spec import Spec
from placeopt.io.validation import validate

TASKS, DEVICES, REACH, GROUPS = 36_000, 60, 100, 1_200
RUNS = 5
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def document() -> dict[str, Any]:
    """The instance."""
    random_of = np.random.default_rng(0)
    flops = random_of.integers(10**6, 10**10, TASKS).tolist()
    traffic = random_of.integers(10**4, 10**8, TASKS).tolist()
    output = random_of.integers(10**3, 10**7, TASKS).tolist()
    resident = random_of.integers(10**3, 10**7, TASKS).tolist()
    tasks: dict[str, dict[str, Any]] = {}
    for k in range(TASKS):
        task = {"flops": flops[k], "bytes": traffic[k], "output": output[k], "memory": resident[k]}
        if k:
            producers = random_of.integers(max(0, k - REACH), k, random_of.integers(1, 4))
            task["after"] = [f"block{p // 30}/op{p}" for p in sorted(set(producers.tolist()))]
        if k % 3 == 0:
            task["colocate"] = f"group{k * GROUPS // TASKS}"
        tasks[f"block{k // 30}/op{k}"] = task
    return {
        "placeopt": 1,
        "name": "load-36000",
        "resolution": "1 us",
        "devices": {
            "gpu": {"type": "gpu", "count": 40, "memory": "80 GiB", "speed": "14 TFLOP/s",
                    "memory_bandwidth": "900 GB/s", "overhead": "5 us"},
            "cpu": {"type": "cpu", "count": 20, "memory": "256 GiB", "speed": "1 TFLOP/s",
                    "memory_bandwidth": "100 GB/s"},
        },
        "links": {
            "default": {"bandwidth": "12 GB/s", "latency": "10 us"},
            "overrides": [{"between": ["gpu", "gpu"], "bandwidth": "300 GB/s", "latency": "2 us"}],
        },
        "tasks": tasks,
    }  # fmt: skip


def seconds(run: Callable[..., object], *args: object) -> float:
    """Median seconds of RUNS calls, each after a garbage collection."""
    times = []
    for _ in range(RUNS):
        gc.collect()
        with collection_paused():
            begin = time.perf_counter()
            run(*args)
            times.append(time.perf_counter() - begin)
    return statistics.median(times)


def yaml_events(text: str) -> int:
    """The number of events that PyYAML's C parser produces for a text."""
    return sum(1 for _ in yaml.parse(text, Loader=LOADER))


def row(path: Path) -> list[str]:
    """The row of the table for a file."""
    text = path.read_text(encoding="utf-8")
    plain = read_document(path)
    parse, check, whole = seconds(read_document, path), seconds(validate, plain, Spec), seconds(load, path)
    times = [parse, parse + check, seconds(compile_document, plain) - check, whole]
    if path.suffix == ".json":
        alone = f"{seconds(json.loads, text):.2f}"
    else:
        alone = f"{seconds(yaml_events, text):.2f}, loader {seconds(partial(yaml.load, Loader=LOADER), text):.2f}"
    return [path.suffix[1:].upper(), f"{len(text) / 1e6:.1f}", *(f"{value:.2f}" for value in times), alone]


def main() -> None:
    """Print the table."""
    table = Table(title=f"load, {TASKS:,} tasks on {DEVICES} devices, median seconds of {RUNS} runs")
    for column in ("", "MB", "parse", "parse + check", "compile", "load", "parser alone"):
        table.add_column(column, justify="right")
    data = document()
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("problem.json", to_json(data)), ("problem.yaml", to_yaml(data))):
            path = Path(folder) / name
            path.write_text(text, encoding="utf-8")
            assert load(path).n_devices == DEVICES
            table.add_row(*row(path))
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
