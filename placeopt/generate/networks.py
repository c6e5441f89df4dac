"""Generate device networks as the `devices` and `links` of a spec, and combine them with task graphs.

Every network is a function with options; `network_document` calls one by name. Quantities are texts as in a spec
("16 GiB", "12 GB/s"). None omits a property: memory is then unlimited, and energy zero. Speeds and bandwidths are
data-sheet peaks unless a docstring states "effective"; pass measured numbers of your hardware if you have them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from placeopt.errors import UsageError, listing, suggestion
from placeopt.generate.arguments import called, device_count, whole
from placeopt.model import units

Document = dict[str, Any]

_HEAD = ("placeopt", "name", "description", "source", "best_known", "resolution", "units")
_BODY = ("operations", "devices", "links", "graph", "tasks")

_DEVICE_KEYS = ("memory", "speed", "memory_bandwidth", "overhead", "power")
_PROPERTIES = {
    "memory": units.MEMORY,
    "speed": units.SPEED,
    "memory_bandwidth": units.BANDWIDTH,
    "overhead": units.TIME,
    "power": units.POWER,
    "bandwidth": units.BANDWIDTH,
    "latency": units.TIME,
}


def network_document(name: str, **options: Any) -> Document:
    """Generate the sections `devices` and `links` of a network in `NETWORKS`.

    Raises
    ------
    UsageError
        If the network or an option is unknown, or a value is not valid.
    """
    network = NETWORKS.get(name)
    if network is None:
        hint = suggestion(name, NETWORKS)
        raise UsageError(f'network: "{name}" is unknown; expected one of {listing(list(NETWORKS))}{hint}')
    return called(network, f"network {name}", options)


def combine(tasks_document: Mapping[str, Any], network: Mapping[str, Any], **header: Any) -> Document:
    """Combine a document with tasks and one with devices into a spec; `header` adds or replaces sections.

    Raises
    ------
    UsageError
        If tasks or devices are missing, or a section differs between the documents and is not in `header`.
    """
    for section, document in (("tasks", tasks_document), ("devices", network)):
        if section not in document and not (section == "tasks" and "graph" in document):
            found = listing(list(document))
            raise UsageError(f"{section}: the document has no such section; it has {found}; expected {section}")
    for section in tasks_document:
        if section in network and section not in header and network[section] != tasks_document[section]:
            raise UsageError(
                f"{section}: {units.shown(tasks_document[section])} with the tasks and "
                f"{units.shown(network[section])} with the devices; expected the same, or {section} as a header"
            )
    merged = {"placeopt": 1} | dict(network) | dict(tasks_document) | header
    others = [section for section in merged if section not in _HEAD + _BODY]
    return {section: merged[section] for section in [*_HEAD, *others, *_BODY] if section in merged}


def cores_and_gpus(
    *,
    cores: int = 2,
    gpus: int = 1,
    cpu_memory: str | None = "16 GiB",
    gpu_memory: str | None = "16 GiB",
    cpu_speed: str = "50 GFLOP/s",
    gpu_speed: str = "9.3 TFLOP/s",
    cpu_memory_bandwidth: str = "10 GB/s",
    gpu_memory_bandwidth: str = "732 GB/s",
    cpu_overhead: str = "1 us",
    gpu_overhead: str = "10 us",
    cpu_power: str | None = "10 W",
    gpu_power: str | None = "250 W",
    cpu_bandwidth: str = "10 GB/s",
    cpu_latency: str = "1 us",
    bandwidth: str = "12 GB/s",
    latency: str = "10 us",
) -> Document:
    """CPU cores, each a device, and GPUs: the physical networks of Carbonari et al. 2017, section 4.

    `small` has 2 cores and 1 GPU, `medium` 20 and 10, `large` 40 and 20. For the small one the text states "three total
    nodes which consists of two CPU cores and two GPU"; tables 1 and 5 and the figure in the appendix show one GPU. The
    paper uses a synthetic table of times and names no hardware; these are parts of the same year:

    - GPU: NVIDIA Tesla P100 for PCIe (data sheet 2016): 9.3 TFLOP/s fp32, 16 GB HBM2 at 732 GB/s, 250 W.
    - Core: one of the 14 of an Intel Xeon E5-2690 v4 (135 W): 32 fp32 FLOP per cycle at 2.6 GHz are 83 GFLOP/s at peak,
      assumed 50 effective; about 10 GB/s of memory bandwidth for a single core.
    - Links: PCIe 3.0 x16, 15.75 GB/s raw and about 12 effective, to and from GPUs; shared memory between cores.
    - Overhead: about 10 us to launch a kernel from a framework, 1 us to call a function.

    Parameters
    ----------
    cores, gpus
        Number of CPU cores, and of GPUs.
    cpu_memory, gpu_memory
        Memory of each core, and of each GPU.
    cpu_speed, gpu_speed
        Speed of each core, and of each GPU.
    cpu_memory_bandwidth, gpu_memory_bandwidth
        Memory bandwidth of each core, and of each GPU.
    cpu_overhead, gpu_overhead
        Time added to each task on a core, and on a GPU.
    cpu_power, gpu_power
        Power of each core, and of each GPU.
    cpu_bandwidth, cpu_latency
        Links between cores.
    bandwidth, latency
        All other links.
    """
    devices: Document = {}
    if whole("cores", cores, 0):
        devices["core"] = _device(
            "cpu", cores, ("cpu",), cpu_memory, cpu_speed, cpu_memory_bandwidth, cpu_overhead, cpu_power
        )
    if whole("gpus", gpus, 0):
        devices["gpu"] = _device(
            "gpu", gpus, ("gpu",), gpu_memory, gpu_speed, gpu_memory_bandwidth, gpu_overhead, gpu_power
        )
    if not devices:
        raise UsageError("cores, gpus: both are 0; expected at least one device")
    links = {"default": _link(bandwidth, latency)}
    return _network(devices, links, [{"between": ["cpu", "cpu"], **_link(cpu_bandwidth, cpu_latency)}] if cores else [])


def v100x4(
    *,
    gpus: int = 4,
    host: bool = False,
    gpu_memory: str | None = "32 GiB",
    gpu_speed: str = "14 TFLOP/s",
    gpu_memory_bandwidth: str = "900 GB/s",
    gpu_overhead: str = "5 us",
    gpu_power: str | None = "250 W",
    host_memory: str | None = "256 GiB",
    host_speed: str = "2 TFLOP/s",
    host_memory_bandwidth: str = "200 GB/s",
    host_overhead: str = "1 us",
    host_power: str | None = "250 W",
    bandwidth: str = "12 GB/s",
    latency: str = "10 us",
) -> Document:
    """Four NVIDIA V100 on a PCIe bus: the testbed of Celeritas (Xu et al. 2022, section 6.2.1).

    `host` adds the server's two Xeon Gold 5220 as one device, as TensorFlow sees them.

    - GPU: V100 for PCIe (data sheet): 14 TFLOP/s fp32 (15.7 with SXM2), 900 GB/s HBM2, 250 W; 32 GB each as in the
      paper; about 5 us to launch a kernel.
    - Host: per socket 18 cores, 32 fp32 FLOP per cycle at 2.2 GHz, six channels of DDR4-2666 and 125 W; for both
      2.5 TFLOP/s and 256 GB/s at peak, assumed 2 TFLOP/s and 200 GB/s effective. Its memory is an assumption.
    - Links: PCIe 3.0 x16, 15.75 GB/s raw, about 12 effective.

    Parameters
    ----------
    gpus
        Number of GPUs.
    host
        Whether the processors of the server are a device too.
    gpu_memory, gpu_speed, gpu_memory_bandwidth, gpu_overhead, gpu_power
        A GPU: memory, speed, memory bandwidth, time added to each task, power.
    host_memory, host_speed, host_memory_bandwidth, host_overhead, host_power
        The same of the host.
    bandwidth, latency
        All links.
    """
    devices = {}
    if host:
        devices["host"] = _device(
            "cpu", None, ("cpu",), host_memory, host_speed, host_memory_bandwidth, host_overhead, host_power
        )
    devices["gpu"] = _device(
        "gpu", whole("gpus", gpus, 1), ("gpu",), gpu_memory, gpu_speed, gpu_memory_bandwidth, gpu_overhead, gpu_power
    )
    return _network(devices, {"default": _link(bandwidth, latency)})


def edge(
    *,
    nano: int = 2,
    tx2: int = 2,
    desktop: int = 2,
    distance: float = 50.0,
    bandwidth: str | None = None,
    latency: str = "0 ms",
) -> Document:
    """Edge computers on a radio link: the device types A, B and C of GiPH (Hu et al. 2023, section 5.3).

    All devices are `distance` metres apart, which decides the bandwidth (see `wireless`) unless `bandwidth` is given.
    The paper states no delay of the radio link.

    - A, `nano`: Jetson Nano, 236 GFLOP/s fp32 (half its 472 at fp16), 4 GB at 25.6 GB/s, 10 W.
    - B, `tx2`: Jetson TX2, 665 GFLOP/s fp32 (half its 1.33 T at fp16), 8 GB at 59.7 GB/s, 15 W.
    - C, `desktop`: Core i7-7700K (91 W) with GTX 1080 (180 W): 8.9 TFLOP/s, 8 GB at 320 GB/s.

    Devices are named nano-0, tx2-0, desktop-0, ... The numbers are data-sheet peaks; the measured times of the paper
    are in problems/sensor-fusion.yaml.

    Parameters
    ----------
    nano, tx2, desktop
        Number of devices of each type.
    distance
        Distance between any two devices in metres, which decides the bandwidth.
    bandwidth, latency
        All links. Without a bandwidth, the distance decides it.
    """
    parts = {
        "nano-": ("A", nano, "4 GiB", "236 GFLOP/s", "25.6 GB/s", "20 us", "10 W"),
        "tx2-": ("B", tx2, "8 GiB", "665 GFLOP/s", "59.7 GB/s", "20 us", "15 W"),
        "desktop-": ("C", desktop, "8 GiB", "8.9 TFLOP/s", "320 GB/s", "5 us", "271 W"),
    }
    devices = {
        name: _device(type, count, ("cpu", "gpu"), *quantities)
        for name, (type, count, *quantities) in parts.items()
        if whole(name[:-1], count, 0)
    }
    if not devices:
        raise UsageError("nano, tx2, desktop: all are 0; expected at least one device")
    return _network(devices, {"default": _link(bandwidth or wireless(distance), latency)})


def wireless(distance: float) -> str:
    """Return the bandwidth of a radio link over `distance` metres: 60 exp(-d / 100) Mb/s, GiPH 2023, appendix B.4."""
    if not 0 <= distance <= 2000:
        raise UsageError(f"distance: {distance} is out of range; expected metres from 0 to 2000")
    return f"{60 * math.exp(-distance / 100):.4g} Mb/s"


def custom(
    *,
    devices: int = 4,
    type: str = "gpu",
    memory: str | None = None,
    speed: str = "10 TFLOP/s",
    memory_bandwidth: str | None = None,
    overhead: str | None = None,
    power: str | None = None,
    features: Sequence[str] = (),
    bandwidth: str = "12 GB/s",
    latency: str = "10 us",
) -> Document:
    """Identical devices with identical links; the defaults represent no particular hardware.

    Parameters
    ----------
    devices
        Number of devices.
    type
        Type of the devices, from which their names are made.
    memory, speed, memory_bandwidth, overhead, power
        Memory, speed and memory bandwidth of a device, time added to each task, power.
    features
        Hardware features of the devices, as a list.
    bandwidth, latency
        All links.
    """
    count = whole("devices", devices, 1)
    device = _device(type, count, features, memory, speed, memory_bandwidth, overhead, power)
    return _network({type: device}, {"default": _link(bandwidth, latency)})


NETWORKS: dict[str, Callable[..., Document]] = {
    "small": partial(cores_and_gpus, cores=2, gpus=1),
    "medium": partial(cores_and_gpus, cores=20, gpus=10),
    "large": partial(cores_and_gpus, cores=40, gpus=20),
    "v100x4": v100x4,
    "edge": edge,
    "custom": custom,
}
"""Networks by name; their options are keyword arguments."""


def _device(type: str, count: int | None, features: Sequence[str], *quantities: str | None) -> Document:
    """Return a device; its quantities are memory, speed, memory bandwidth, overhead and power."""
    stated = dict(zip(_DEVICE_KEYS, quantities, strict=True))
    device: Document = {"type": type} | ({} if count is None else {"count": count}) | _checked(stated)
    return device | ({"features": list(features)} if features else {})


def _link(bandwidth: str, latency: str) -> Document:
    return _checked({"bandwidth": bandwidth, "latency": latency})


def _checked(quantities: Mapping[str, str | None]) -> Document:
    for name, value in quantities.items():
        if value is not None:
            try:
                quantity = units.parse(value, _PROPERTIES[name])
            except units.QuantityError as error:
                raise UsageError(f"{name}: {error}") from None
            if name in ("speed", "bandwidth", "memory_bandwidth") and quantity.value == 0:
                raise UsageError(f"{name}: {units.shown(value)} is zero; expected {_PROPERTIES[name].article}")
    return {name: value for name, value in quantities.items() if value is not None}


def _network(devices: Document, links: Document, overrides: Sequence[Document] = ()) -> Document:
    device_count(sum(device.get("count", 1) for device in devices.values()))
    return {"devices": devices, "links": links | ({"overrides": list(overrides)} if overrides else {})}
