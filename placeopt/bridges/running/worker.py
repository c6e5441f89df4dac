"""The process of one device: runs its segments with ONNX Runtime as soon as their inputs are available.

It reads its configuration and commands from the standard input, one JSON object a line, and answers on the standard
output. Sockets connect it directly to other workers. A tensor travels as two lengths, a header in JSON, and its bytes.

    configuration   path, cores, threads, optimization, profile, folder, inputs, peers, segments
    {"run": at}     run all segments; the first one starts at `at`, in nanoseconds of `time.perf_counter_ns`, which all
                    processes of a machine share. Answer: {"times": [[start, end] of each segment]}
    {"save": {}}    write the outputs of the last run to files. Answer: {"files": {tensor: file}}
    {"profile": {}} end the profiles of all sessions. Answer: {"files": [name of each segment]}

An error is answered with {"error": text, "lost": whether another worker has ended, "segment": number or null}. The
process ends when its standard input ends, so it does not outlive the process that started it. The script imports only
NumPy and ONNX Runtime, so that it starts fast.
"""

from __future__ import annotations

import json
import os
import queue
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

LENGTHS = struct.Struct("!QQ")
"""Bytes of the header and of the data."""

LEVELS = {
    "none": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
"""Graph optimizations by the name of their level."""

Send = Callable[[dict[str, Any]], None]


class LostPeerError(Exception):
    """A tensor cannot arrive, because the process that sends it has ended."""


class Tensors:
    """The tensors of a run: graph inputs, received tensors and results of this device."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._arrived = threading.Condition()
        self._lost: str | None = None

    def put(self, name: str, value: Any) -> None:
        """Add a tensor."""
        with self._arrived:
            self._values[name] = value
            self._arrived.notify_all()

    def fail(self, reason: str) -> None:
        """Make `take` raise an error, because a tensor can no longer arrive."""
        with self._arrived:
            self._lost = reason
            self._arrived.notify_all()

    def take(self, names: list[str]) -> dict[str, Any]:
        """Wait for tensors and return them."""
        with self._arrived:
            self._arrived.wait_for(lambda: self._lost is not None or all(name in self._values for name in names))
            missing = [name for name in names if name not in self._values]
            if missing:
                raise LostPeerError(f"tensor {missing[0]} did not arrive: {self._lost}")
            return {name: self._values[name] for name in names}

    def drop(self, name: str) -> None:
        """Free a tensor."""
        with self._arrived:
            self._values.pop(name, None)


def send_tensor(link: socket.socket, name: str, value: Any) -> None:
    """Send a tensor; strings travel as JSON."""
    import numpy as np

    array = np.ascontiguousarray(value).reshape(np.shape(value))
    header: dict[str, Any] = {"tensor": name, "shape": array.shape}
    if array.dtype.kind in "OU":
        data: Any = json.dumps(array.reshape(-1).tolist()).encode()
    else:
        header["dtype"] = array.dtype.str
        data = array.reshape(-1).view(np.uint8).data
    text = json.dumps(header).encode()
    link.sendall(LENGTHS.pack(len(text), len(data)) + text)
    link.sendall(data)


def receive_tensor(link: socket.socket) -> tuple[str, Any] | None:
    """Return the name and value of the next tensor; None at the end of the stream."""
    import numpy as np

    lengths = _read(link, bytearray(LENGTHS.size))
    if lengths is None:
        return None
    text, size = LENGTHS.unpack(lengths)
    header = _read(link, bytearray(text))
    if header is None:
        return None
    header = json.loads(header)
    # `empty` does not touch the memory that the data fill.
    data = np.empty(size, dtype=np.uint8)
    if size and _read(link, data.data) is None:
        return None
    if "dtype" not in header:
        return header["tensor"], np.array(json.loads(data.tobytes()), dtype=object).reshape(header["shape"])
    return header["tensor"], data.view(header["dtype"]).reshape(header["shape"])


def _read(link: socket.socket, into: Any) -> Any:
    """Fill a buffer and return it; None if the stream ends before that."""
    view = memoryview(into)
    while len(view):
        count = link.recv_into(view)
        if not count:
            return None
        view = view[count:]
    return into


def write_array(path: Path, value: Any) -> None:
    """Write an array to a file; strings get a fixed width."""
    import numpy as np

    array = np.asarray(value)
    np.save(path, array.astype(str) if array.dtype.kind == "O" else array, allow_pickle=False)


def arrays_of(name: str, value: Any) -> list[tuple[str, Any]]:
    """The arrays of an output: a sequence has one for each element, and a sequence of maps one for each key."""
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        return [(name, value)]
    if value and isinstance(value[0], dict):
        keys = dict.fromkeys(key for row in value for key in row)
        return [(f"{name}[{key}]", [row[key] for row in value if key in row]) for key in keys]
    return [part for place, each in enumerate(value) for part in arrays_of(f"{name}[{place}]", each)]


def read_array(path: Path) -> Any:
    """Read an array that `write_array` wrote."""
    import numpy as np

    array = np.load(path, allow_pickle=False)
    return array.astype(object) if array.dtype.kind == "U" else array


class Device:
    """The sessions of a device and its connections."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._folder = Path(config["folder"])
        self._segments: list[dict[str, Any]] = config["segments"]
        self._inputs: dict[str, Any] = {}
        self._results: dict[str, Any] = {}
        self._sessions: list[Any] = []
        self._tensors = Tensors()
        self._outgoing: queue.Queue[tuple[int, str, Any]] = queue.Queue()
        self._links: dict[int, socket.socket] = {}
        self.running: int | None = None
        """The segment that is being loaded or run."""

    def load(self) -> None:
        """Read the inputs, make a session for each segment, and connect to the other workers."""
        import onnxruntime

        config = self._config
        self._inputs = {name: read_array(self._folder / file) for name, file in config["inputs"].items()}
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = config["threads"]
        options.inter_op_num_threads = 1
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, LEVELS[config["optimization"]])
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        if config["profile"]:
            options.enable_profiling = True
        for number, segment in enumerate(self._segments):
            self.running = number
            options.profile_file_prefix = str(self._folder / f"profile-{os.getpid()}-{number}")
            path = str(self._folder / segment["file"])
            self._sessions.append(onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]))
        self.running = None
        self._links = {int(peer): socket.socket(fileno=number) for peer, number in config["peers"].items()}
        for peer, link in self._links.items():
            threading.Thread(target=self._receive, args=(peer, link), daemon=True).start()
        if self._links:
            threading.Thread(target=self._transmit, daemon=True).start()

    def _receive(self, peer: int, link: socket.socket) -> None:
        try:
            while (received := receive_tensor(link)) is not None:
                self._tensors.put(*received)
        except OSError:
            pass
        self._tensors.fail(f"worker {peer} has ended")

    def _transmit(self) -> None:
        while True:
            peer, name, value = self._outgoing.get()
            try:
                send_tensor(self._links[peer], name, value)
            except OSError as error:  # the other process has ended, which its parent reports
                self._tensors.fail(f"worker {peer} has ended: {error}")
            finally:
                self._outgoing.task_done()

    def run(self, at: int) -> list[list[int]]:
        """Run all segments once; return start and end of each in nanoseconds."""
        self._results = {}
        uses: dict[str, int] = {}
        for segment in self._segments:
            for name in segment["inputs"]:
                uses[name] = uses.get(name, 0) + 1
        for name, value in self._inputs.items():
            self._tensors.put(name, value)
        times = []
        time.sleep(max(0.0, (at - time.perf_counter_ns()) / 1e9))
        for number, (segment, session) in enumerate(zip(self._segments, self._sessions, strict=True)):
            self.running = number
            feed = self._tensors.take(segment["inputs"])
            start = time.perf_counter_ns()
            values = session.run(segment["outputs"], feed)
            end = time.perf_counter_ns()
            times.append([start, end])
            for name, value in zip(segment["outputs"], values, strict=True):
                for peer in segment["send"].get(name, ()):
                    self._outgoing.put((peer, name, value))
                if name in uses:
                    self._tensors.put(name, value)
                if name in segment["results"]:
                    self._results[name] = value
            for name in segment["inputs"]:
                uses[name] -= 1
                if not uses[name]:
                    self._tensors.drop(name)
        self.running = None
        self._outgoing.join()
        return times

    def save(self) -> dict[str, str]:
        """Write the outputs of the last run; return the file of each tensor."""
        files: dict[str, str] = {}
        results = (part for name, value in self._results.items() for part in arrays_of(name, value))
        for number, (name, value) in enumerate(results):
            files[name] = f"output-{os.getpid()}-{number}.npy"
            write_array(self._folder / files[name], value)
        return files

    def end_profiles(self) -> list[str]:
        """End the profiles of all sessions and return their files."""
        return [str(session.end_profiling()) for session in self._sessions]


def main() -> None:
    """Serve commands until the input ends."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # libraries may print to the standard output

    def send(message: dict[str, Any]) -> None:
        channel.write(json.dumps(message) + "\n")
        channel.flush()

    config = json.loads(sys.stdin.readline())
    sys.path[:] = config["path"]
    commands: queue.Queue[dict[str, Any]] = queue.Queue()

    def read() -> None:
        for line in sys.stdin:
            commands.put(json.loads(line))
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    if config["cores"]:
        os.sched_setaffinity(0, config["cores"])
    device = Device(config)
    try:
        device.load()
        send({"ready": True})
        while True:
            command = commands.get()
            if "run" in command:
                send({"times": device.run(command["run"])})
            elif "save" in command:
                send({"files": device.save()})
            else:
                send({"files": device.end_profiles()})
    except Exception as error:  # noqa: BLE001 - reported to the parent
        send({
            "error": str(error) or type(error).__name__,
            "lost": isinstance(error, LostPeerError),
            "segment": device.running,
        })  # fmt: skip
        threading.Event().wait()  # until the input ends


if __name__ == "__main__":
    main()
