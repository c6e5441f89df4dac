"""Detect the devices of this machine: processor cores, measured with NumPy, and GPUs that nvidia-smi reports."""

from __future__ import annotations

import csv
import os
import platform
import re
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil
from numpy.typing import DTypeLike

from placeopt.errors import counted, visible
from placeopt.io.catalogue import UsualLinks, catalogue_devices, device_info, link_info, link_names, plain
from placeopt.model.units import size_text

QUERY = ("name", "memory.total", "pcie.link.gen.max", "pcie.link.width.max")
"""Fields of `nvidia-smi --query-gpu`."""

TIMEOUT = 30.0
"""Seconds within which nvidia-smi must answer."""

RUNS = 5
"""Number of measurements, after one to warm up; the median counts."""

ORDERS, LEAST = (512, 1024, 2048, 4096, 8192), 0.03
"""Rows and columns of matrices: the first whose product takes at least LEAST seconds counts."""

TRAFFIC = 2**29
"""Bytes that all cores together read and write in a measurement of the bandwidth, much more than caches hold."""

BUSY = 0.5
"""Load of other programs for each core at which measurements are too low."""

RESERVED = 0.1
"""Largest part of the memory in the catalogue that a driver reserves."""

DRIVER_NAMES = {"h10080gbhbm3": "h100-sxm", "a10080gbpcie": "a100-80gb-pcie"}
"""Devices of the catalogue whose names in the driver differ from their titles."""

HOST_LINK, CORE_LINK = "pcie-3-x16", "shared-memory"
"""The link of a GPU whose link is unknown, and the link between cores."""


class Rates(NamedTuple):
    """What all cores together reach."""

    fp32: float
    """FLOP per second."""
    fp64: float
    memory: float
    """Bytes per second, reads and writes."""


class Gpu(NamedTuple):
    """A GPU as nvidia-smi reports it."""

    name: str
    memory: int
    """MiB."""
    link: str | None
    """Its link to the host in the catalogue, None if unknown."""


def detect_devices() -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the devices and links of this machine as a network document, and notes.

    Each processor core is a device with its share of the measured rates and of the main memory. A GPU of the catalogue
    has its figures; one that the catalogue lacks has its memory only.
    """
    cores = _cores()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0  # before the measurement adds its own
    rates = measure_rates(cores)
    share = psutil.virtual_memory().total // cores // 2**20
    devices: dict[str, Any] = {
        "cpu": {
            **({"count": cores} if cores > 1 else {}),
            "memory": f"{share} MiB",
            "speed": {"fp64": _rate(rates.fp64 / cores, "FLOP/s"), "fp32": _rate(rates.fp32 / cores, "FLOP/s")},
            "memory_bandwidth": _rate(rates.memory / cores, "B/s"),
        }
    }
    notes = [f"cpu: {counted(cores, 'core')} with {size_text(share * 2**20)} each, a share of the main memory"]
    if load > BUSY * cores:
        notes.append(f"other programs use the cores (load {load:.1f}), so the rates are too low; detect again later")
    hosts: dict[str, str] = {}
    peers: dict[str, str] = {}
    found, failure = query_gpus()
    notes += [failure] if failure else []
    kinds = dict.fromkeys(found)
    for place, gpu in enumerate(kinds):
        key = "gpu" if len(kinds) == 1 else f"gpu-{chr(ord('a') + place)}"
        like, count = known_device(gpu), found.count(gpu)
        figures = {"type": "gpu"} | ({} if like is None else {"like": like}) | ({} if count == 1 else {"count": count})
        devices[key] = {**figures, "memory": f"{gpu.memory} MiB"}
        usual = (catalogue_devices()[like].link if like is not None else None) or UsualLinks()
        hosts[key] = gpu.link or usual.host or HOST_LINK
        if count > 1:
            peers[key] = hosts[key] if usual.peer is None or usual.peer == usual.host else usual.peer
        what = "is not in the catalogue; state its speed and memory_bandwidth" if like is None else f"is {like}"
        notes.append(f"{key}: {visible(gpu.name)} {what}; its link to the host is {hosts[key]}")
    document: dict[str, Any] = {
        "placeopt": 1,
        "name": "this machine",
        "source": f"placeopt devices --detect: NumPy {np.__version__} on {_processor()}",
        "devices": devices,
        "links": _links(hosts, peers),
    }
    return document, tuple(notes)


def _links(hosts: Mapping[str, str], peers: Mapping[str, str]) -> dict[str, Any]:
    """Return the section `links`; two GPUs of different kinds have the slower one of their links to the host."""
    overrides = [{"between": ["cpu", key], "like": link} for key, link in hosts.items()]
    overrides += [{"between": [key, key], "like": link} for key, link in peers.items()]
    for a, b in combinations(hosts, 2):
        slower = min(hosts[a], hosts[b], key=lambda name: link_info(name).bandwidth)
        overrides.append({"between": [a, b], "like": slower})
    return {"default": {"like": CORE_LINK}} | ({"overrides": overrides} if overrides else {})


def query_gpus() -> tuple[list[Gpu], str | None]:
    """Return the GPUs that nvidia-smi reports, none where it is not installed, and a note if it fails."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return [], None
    arguments = [command, f"--query-gpu={','.join(QUERY)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=TIMEOUT)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [], f"nvidia-smi gives no answer: {visible(str(error))}"
    rows = [[cell.strip() for cell in row] for row in csv.reader(done.stdout.splitlines())]
    if done.returncode or not all(len(row) == len(QUERY) and row[1].isdigit() for row in rows):
        answer = visible(" ".join((done.stdout or done.stderr).split())) or f"exit code {done.returncode}"
        return [], f"nvidia-smi reports no GPU: {answer}"
    links = [f"pcie-{generation}-x{width}" for _, _, generation, width in rows]
    known = set(link_names())
    return [
        Gpu(row[0], int(row[1]), link if link in known else None) for row, link in zip(rows, links, strict=True)
    ], None


def known_device(gpu: Gpu) -> str | None:
    """Return the device of the catalogue with the name and about the memory of a GPU; None without one."""
    wanted = _model(gpu.name)
    for key, device in catalogue_devices().items():
        memory = device_info(key).memory
        names = (plain(key), _model(device.title.partition(",")[0]))
        if memory is not None and (wanted in names or DRIVER_NAMES.get(wanted) == key):
            return key if abs(gpu.memory * 2**20 / memory - 1) <= RESERVED else None
    return None


def _model(name: str) -> str:
    return re.sub("^(nvidia|tesla)+", "", plain(name))


def _cores() -> int:
    """Number of processor cores that this process may use."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(min(psutil.cpu_count(logical=False) or usable, usable), 1)


def _processor() -> str:
    """Name of the processor."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    match = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return visible(match[1] if match else platform.processor() or platform.machine())


def measure_rates(cores: int) -> Rates:
    """Measure what all cores reach: products of matrices through NumPy, and copies of arrays by a thread per core."""
    fp32, fp64 = _product_rate(np.float32), _product_rate(np.float64)
    words = max(TRAFFIC // cores // 16, 1)
    arrays = [(np.zeros(words), np.ones(words)) for _ in range(cores)]
    with ThreadPoolExecutor(cores) as pool:
        seconds = _median_seconds(lambda: list(pool.map(lambda pair: np.copyto(*pair), arrays)))
    return Rates(fp32, fp64, 16 * words * cores / seconds)


def _product_rate(dtype: DTypeLike) -> float:
    """FLOP per second of a product of two matrices."""
    rate = 0.0
    for order in ORDERS:
        a = np.random.default_rng(0).random((order, order)).astype(dtype)
        seconds = _median_seconds(partial(np.matmul, a, a.T.copy(), out=np.empty_like(a)))
        rate = 2 * order**3 / seconds
        if seconds >= LEAST:
            break
    return rate


def _median_seconds(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(RUNS + 1):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken[1:])


def _rate(rate: float, unit: str) -> str:
    """A rate with three digits, in units of 10^9."""
    return f"{float(f'{rate / 1e9:.3g}'):g} G{unit}"
