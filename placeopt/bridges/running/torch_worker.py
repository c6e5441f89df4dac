"""PyTorch as the runtime of a worker: segments are fx graphs, and gloo carries tensors between processes.

The unsplit model is the exported program itself. Processes connect through the loopback interface; a `FileStore` in the
folder of the run is their rendezvous. A worker of a GPU keeps tensors on it, and copies those that it sends to the host
memory. A segment ends when the GPU has executed its work.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.fx import GraphModule, Interpreter, Node
from torch.fx.graph import CodeGen
from torch.utils import _pytree as pytree

DTYPES = sorted({each for each in vars(torch).values() if isinstance(each, torch.dtype)}, key=str)
SCALARS = (bool, int, float)
_DIMS = 64
"""Most dimensions of a tensor."""
_HEADER = 4 + _DIMS
"""Run, tensor, type, number of dimensions, sizes. A number of dimensions below 0 means a Python scalar."""
_PATIENCE = 60.0
"""Seconds that gloo waits beyond the time limit of the parent, which ends the process."""


class GlooLink:
    """The messages to and from another process: a header of known size, and the bytes of a tensor."""

    def __init__(self, peer: int, names: list[str], place: torch.device) -> None:
        self._peer, self._names, self._place = peer, names, place
        self._stream: torch.cuda.Stream | None = None

    def pack(self, run: int, name: str, value: Any) -> list[torch.Tensor]:
        """Return the header and the bytes of a tensor or a Python scalar."""
        scalar = type(value) in SCALARS
        tensor = torch.tensor(value) if scalar else value
        dims = -1 - SCALARS.index(type(value)) if scalar else tensor.dim()
        header = torch.zeros(_HEADER, dtype=torch.int64)
        header[:4] = torch.tensor([run, self._names.index(name), DTYPES.index(tensor.dtype), dims])
        header[4 : 4 + tensor.dim()] = torch.tensor(tensor.shape, dtype=torch.int64)
        return [header, _bytes(tensor.cpu())] if tensor.numel() else [header]

    def offer(self, parts: list[torch.Tensor]) -> list[torch.Tensor]:
        """Return all parts: gloo waits for each."""
        return parts

    def send(self, parts: list[torch.Tensor]) -> None:
        """Send all parts."""
        for part in parts:
            dist.send(part, self._peer)

    def receive(self) -> tuple[int, str, Any]:
        """Return the run, the name and the value of the next tensor."""
        header = torch.empty(_HEADER, dtype=torch.int64)
        dist.recv(header, self._peer)
        run, name, dtype, dims, *sizes = header.tolist()
        tensor = torch.empty(sizes[: max(dims, 0)], dtype=DTYPES[dtype])
        if tensor.numel():
            dist.recv(_bytes(tensor), self._peer)
        if dims < 0:
            return run, self._names[name], SCALARS[-1 - dims](tensor.item())
        if self._place.type != "cuda":
            return run, self._names[name], tensor.to(self._place)
        if self._stream is None:
            self._stream = torch.cuda.Stream(self._place)
        with torch.cuda.stream(self._stream):  # does not wait for the segment that runs
            moved = tensor.to(self._place)
        self._stream.synchronize()
        return run, self._names[name], moved


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).view(torch.uint8)


def _finish(place: torch.device) -> None:
    """Wait for the work of a device."""
    if place.type == "cuda":
        torch.cuda.synchronize(place)


class Torch:
    """Segments are fx graphs; gloo carries tensors."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        torch.set_grad_enabled(False)
        torch.set_num_threads(config["threads"])
        torch.set_num_interop_threads(1)
        self._config = config
        self._folder, place = Path(config["folder"]), torch.device(config["place"])
        self._place = torch.device(place.type) if place.type == "cpu" else place  # no file is read to cpu:0
        self._devices: dict[str, dict[int, tuple[GraphModule, dict[Node, str]]]] = {}
        self._changes = False
        self._segments: list[Callable[..., Iterable[Any]]] = []
        self._seconds: list[dict[str, list[float]]] = []
        self._events: list[tuple[list[float], torch.cuda.Event, torch.cuda.Event]] = []
        """Of the nodes of a run on a GPU: their times, and the events before and after them."""
        if self._place.type == "cuda":
            torch.cuda.set_device(self._place)
            torch.backends.cudnn.allow_tf32 = False  # as for products: outputs are compared with those of the CPU

    def read(self, file: Path) -> Any:
        """Read an input of the model."""
        return torch.load(file, map_location=self._place)

    def load(self, file: str) -> None:
        """Load the next segment: one of a device, `copy`, or a whole program of torch.export."""
        if file == "copy":
            self._segments.append(lambda x: [x.clone()])
            return
        from placeopt.bridges.exporters.fx_parts import move_graph
        from placeopt.bridges.running.torch_files import changes, read_segments

        if Path(file).is_absolute():
            program = torch.export.load(file)
            self._changes = changes(program)
            module, spec = program.module(), program.call_spec.in_spec
            assert isinstance(module, GraphModule)
            assert spec is not None
            move_graph(module, self._place)

            def whole(*values: Any) -> Any:
                args, kwargs = pytree.tree_unflatten(list(values), spec)
                return module(*args, **kwargs)

            if self._profiles:
                module.graph.set_codegen(CodeGen())  # the interpreter takes inputs without their structure
                whole = self._timed(module, {node: node.name for node in module.graph.nodes})
            self._segments.append(lambda *values: pytree.tree_leaves(whole(*values)))
            return
        device, _, name = file.partition("/")
        if device not in self._devices:
            self._devices[device], changed = read_segments(self._folder / device, self._place)
            self._changes |= changed
        graph, names = self._devices[device][int(name.rpartition("-")[2])]
        (returned,) = graph.graph.output_node().args
        part = self._timed(graph, names) if self._profiles else graph
        several = returned is None or isinstance(returned, (tuple, list))
        self._segments.append((lambda *values: part(*values) or ()) if several else lambda *values: [part(*values)])

    @property
    def _profiles(self) -> bool:
        return bool(self._config["profile"])

    def _timed(self, graph: GraphModule, names: Mapping[Node, str]) -> Callable[..., Any]:
        """Return a function that runs a graph node by node and notes the times of its nodes."""
        seconds: dict[str, list[float]] = {}
        self._seconds.append(seconds)

        interpreter = Interpreter(graph)
        plain = interpreter.run_node

        def run_node(node: Node) -> Any:
            if node not in names:
                return plain(node)
            found = seconds.setdefault(names[node], [])
            if self._place.type == "cuda":
                before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                before.record()
                value = plain(node)
                after.record()
                self._events.append((found, before, after))
                return value
            start = time.perf_counter()
            value = plain(node)
            found.append(time.perf_counter() - start)
            return value

        interpreter.run_node = run_node
        timed: Callable[..., Any] = interpreter.run
        return timed

    def links(self) -> dict[int, GlooLink]:
        """Join the group of processes; return a link to each connected one."""
        peers = [int(peer) for peer in self._config["peers"]]
        if self._config["workers"] > 1:
            loopback = next((name for _, name in socket.if_nameindex() if name.startswith("lo")), None)
            if loopback is not None:
                os.environ["GLOO_SOCKET_IFNAME"] = loopback
            limit = timedelta(seconds=self._config["timeout"] + _PATIENCE)
            dist.init_process_group(
                "gloo",
                store=dist.FileStore(str(self._folder / self._config["rendezvous"]), self._config["workers"]),
                rank=self._config["index"],
                world_size=self._config["workers"],
                timeout=limit,
            )
        return {peer: GlooLink(peer, self._config["tensors"], self._place) for peer in peers}

    def own(self, value: Any) -> Any:
        """Return a tensor in its own memory, which no operator in place of another segment changes."""
        if not isinstance(value, torch.Tensor):
            return value
        if value.layout != torch.strided or value.is_quantized:
            raise TypeError(f"processes cannot exchange a tensor with layout {value.layout} and type {value.dtype}")
        plain = value.detach().resolve_conj().resolve_neg().contiguous()
        return plain.clone() if self._changes and plain.data_ptr() == value.data_ptr() else plain

    def compute(self, number: int, values: Mapping[str, Any]) -> Iterable[Any]:
        """Run a segment, to the end of its work on a GPU."""
        found = list(self._segments[number](*values.values()))
        _finish(self._place)
        for seconds, before, after in self._events:
            seconds.append(before.elapsed_time(after) / 1000)
        self._events.clear()
        return found

    def array(self, value: Any) -> Any:
        """Return an output as an array; NumPy lacks bfloat16 and formats with 8 bits, which become float32."""
        if not isinstance(value, torch.Tensor):
            return value
        value = value.detach().resolve_conj().resolve_neg()
        short = value.dtype.is_floating_point and value.dtype not in (torch.float16, torch.float32, torch.float64)
        return (value.float() if short else value).cpu().numpy()

    def end_profiles(self) -> list[str]:
        """Write the times of the nodes of each segment; return the files."""
        files = []
        for number, seconds in enumerate(self._seconds):
            files.append(str(self._folder / f"profile-{os.getpid()}-{number}.json"))
            Path(files[-1]).write_text(json.dumps(seconds), encoding="utf-8")
        return files
