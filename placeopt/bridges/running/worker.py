"""The process of one device: runs its segments as soon as their inputs are available.

It reads its configuration and commands from the standard input, one JSON object a line, and answers on the standard
output. A runtime loads and runs the segments: ONNX Runtime, or PyTorch in `torch_worker.py`. Links of the runtime carry
tensors directly to other workers.

    configuration   runtime, index, path, cores, own_cores, threads, optimization, profile, folder, inputs, peers,
                    segments
    {"run": at, "order": [[run, segment], ...]}
                    execute segments; the first one starts at `at`, in nanoseconds of `time.perf_counter_ns`, which all
                    processes of a machine share. Answer: {"times": [[start, end] of each]}
    {"save": {}}    write the outputs of the last run to files. Answer: {"files": {tensor: file}}
    {"profile": {}} end the profiles of all segments. Answer: {"files": [name of each]}

An error is answered with {"error": text, "lost": whether another worker has ended, "segment": number or null}. The
process ends when its standard input ends, so it does not outlive the process that started it. The script imports only
NumPy and the runtime, so that it starts fast.
"""

from __future__ import annotations

import io
import json
import os
import queue
import select
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

LENGTHS = struct.Struct("!QQQ")
"""The run, and the bytes of the header and of the data."""

LEVELS = {
    "none": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
"""Graph optimizations by the name of their level."""

SPIN = 0.05
"""Seconds for which a process with separate cores reads its sockets again and again before it sleeps."""


class LostPeerError(Exception):
    """A tensor cannot arrive, because the process that sends it has ended."""


Message = tuple[int, str, Any]
"""The run, the name and the value of a tensor."""


class Link(Protocol):
    """A connection to another worker. Its methods raise an OSError or a RuntimeError if the worker has ended."""

    def pack(self, run: int, name: str, value: Any) -> list[Any]:
        """Return the parts of the message of a tensor."""

    def offer(self, parts: list[Any]) -> list[Any]:
        """Send what the connection takes at once; return the rest."""

    def send(self, parts: list[Any]) -> None:
        """Send all parts."""

    def receive(self) -> Message:
        """Wait for the next tensor."""


class Runtime(Protocol):
    """What loads and runs segments."""

    def __init__(self, config: Mapping[str, Any]) -> None: ...

    def read(self, file: Path) -> Any:
        """Read an input of the model."""

    def load(self, file: str) -> None:
        """Load the next segment."""

    def links(self) -> Mapping[int, Link]:
        """Connect to other workers; return their links by number."""

    def own(self, value: Any) -> Any:
        """Return a tensor that later segments do not change."""

    def compute(self, number: int, values: Mapping[str, Any]) -> Iterable[Any]:
        """Run a segment and return its outputs."""

    def array(self, value: Any) -> Any:
        """Return an output as an array."""

    def end_profiles(self) -> list[str]:
        """End the profiles and return their files."""


class Tensors:
    """The tensors of runs under way: inputs of the model, received tensors and results of this device."""

    def __init__(self) -> None:
        self._values: dict[tuple[int, str], Any] = {}
        self._arrived = threading.Condition()
        self._lost: str | None = None

    def put(self, run: int, name: str, value: Any) -> None:
        """Add a tensor."""
        with self._arrived:
            self._values[run, name] = value
            self._arrived.notify_all()

    def fail(self, reason: str) -> None:
        """Make `take` raise an error, because a tensor can no longer arrive."""
        with self._arrived:
            self._lost = reason
            self._arrived.notify_all()

    def waits(self, run: int, names: list[str]) -> bool:
        """Whether tensors of a run have not arrived, but can."""
        return self._lost is None and not all((run, name) in self._values for name in names)

    def take(self, run: int, names: list[str]) -> dict[str, Any]:
        """Wait for tensors of a run and return them."""
        with self._arrived:
            self._arrived.wait_for(lambda: not self.waits(run, names))
            missing = [name for name in names if (run, name) not in self._values]
            if missing:
                raise LostPeerError(f"tensor {missing[0]} did not arrive: {self._lost}")
            return {name: self._values[run, name] for name in names}

    def drop(self, run: int, name: str) -> None:
        """Free a tensor."""
        with self._arrived:
            self._values.pop((run, name), None)


class SocketLink:
    """A connected socket. A tensor travels as its run, two lengths, a header in JSON, and its bytes."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._incoming = self._messages()
        self._headers: dict[tuple[Any, ...], bytes] = {}
        self._known: dict[bytes, dict[str, Any]] = {}

    def fileno(self) -> int:
        """The descriptor of the socket, for `select`."""
        return self._link.fileno()

    def pack(self, run: int, name: str, value: Any) -> list[Any]:
        """Return lengths with header, and the bytes of a tensor; strings travel as JSON."""
        import numpy as np

        array = np.asarray(value)
        strings = array.dtype.kind in "OU"
        if strings:
            data = memoryview(json.dumps(array.reshape(-1).tolist()).encode())
        else:
            data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        key = name, array.shape, array.dtype
        header = self._headers.get(key)
        if header is None:
            kind = "" if strings else array.dtype.str
            header = json.dumps({"tensor": name, "shape": array.shape, "dtype": kind}).encode()
            self._headers[key] = header
        return [memoryview(LENGTHS.pack(run, len(header), len(data)) + header), data]

    def offer(self, parts: list[Any]) -> list[Any]:
        """Send what fits into the buffer of the socket; return the rest."""
        try:
            sent = self._link.sendmsg(parts, [], socket.MSG_DONTWAIT)
        except BlockingIOError:
            return parts
        rest = []
        for part in parts:
            if sent < len(part):
                rest.append(part[sent:])
            sent = max(0, sent - len(part))
        return rest

    def send(self, parts: list[Any]) -> None:
        """Send all parts."""
        for part in parts:
            self._link.sendall(part)

    def poll(self) -> Message | None:
        """Read what has arrived; return the next tensor, or None if it has not arrived completely."""
        return next(self._incoming)

    def receive(self) -> Message:
        """Wait for the next tensor."""
        while (message := self.poll()) is None:
            select.select([self], [], [])
        return message

    def _messages(self) -> Iterator[Message | None]:
        """Yield the tensors of the stream, and None whenever more has to arrive."""
        import numpy as np

        while True:
            lengths = bytearray(LENGTHS.size)
            yield from self._fill(lengths)
            run, text, size = LENGTHS.unpack(lengths)
            content = bytearray(text)
            yield from self._fill(content)
            written = bytes(content)
            header = self._known.get(written)
            if header is None:
                header = self._known[written] = json.loads(written)
            # `empty` does not touch the memory that the data fill.
            data = np.empty(size, dtype=np.uint8)
            yield from self._fill(data.data)
            kind = header["dtype"]
            array = data.view(kind) if kind else np.array(json.loads(data.tobytes()), dtype=object)
            yield run, header["tensor"], array.reshape(header["shape"])

    def _fill(self, into: Any) -> Iterator[None]:
        """Fill a buffer from the stream; yield while more has to arrive."""
        view = memoryview(into)
        while len(view):
            try:
                count = self._link.recv_into(view, 0, socket.MSG_DONTWAIT)
            except BlockingIOError:
                yield
                continue
            if not count:
                raise ConnectionResetError("the stream has ended")
            view = view[count:]


def write_array(path: Path, value: Any) -> None:
    """Write an array to a file; strings get a fixed width."""
    import numpy as np

    array, content = np.asarray(value), io.BytesIO()  # to a file, NumPy reports a full disk without the reason
    np.save(content, array.astype(str) if array.dtype.kind == "O" else array, allow_pickle=False)
    path.write_bytes(content.getbuffer())


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


class OnnxRuntime:
    """Segments are ONNX models; sockets carry tensors."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        import onnxruntime

        self._config = config
        self._sessions: list[Any] = []
        self._options = options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = config["threads"]
        options.inter_op_num_threads = 1
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, LEVELS[config["optimization"]])
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.enable_profiling = config["profile"]

    def read(self, file: Path) -> Any:
        """Read an input of the model."""
        return read_array(file)

    def load(self, file: str) -> None:
        """Make the session of the next segment."""
        import onnxruntime

        folder = Path(self._config["folder"])
        self._options.profile_file_prefix = str(folder / f"profile-{os.getpid()}-{len(self._sessions)}")
        path = str(folder / file)
        self._sessions.append(onnxruntime.InferenceSession(path, self._options, providers=["CPUExecutionProvider"]))

    def links(self) -> dict[int, Link]:
        """Return a link for each inherited socket."""
        peers = self._config["peers"]
        return {int(peer): SocketLink(socket.socket(fileno=number)) for peer, number in peers.items()}

    def own(self, value: Any) -> Any:
        """Return the tensor: no operator changes its inputs."""
        return value

    def compute(self, number: int, values: Mapping[str, Any]) -> Iterable[Any]:
        """Run the session of a segment."""
        outputs: list[Any] = self._sessions[number].run(self._config["segments"][number]["outputs"], dict(values))
        return outputs

    def array(self, value: Any) -> Any:
        """Return an output, which is an array."""
        return value

    def end_profiles(self) -> list[str]:
        """End the profiles of all sessions and return their files."""
        return [str(session.end_profiling()) for session in self._sessions]


class Device:
    """The segments of a device and its connections."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._folder = Path(config["folder"])
        self._segments: list[dict[str, Any]] = config["segments"]
        self._inputs: dict[str, Any] = {}
        self._results: dict[str, Any] = {}
        self._tensors = Tensors()
        self._outgoing: queue.Queue[tuple[int, list[Any]]] = queue.Queue()
        self._links: Mapping[int, Link] = {}
        self._sockets: dict[int, SocketLink] = {}
        self.running: int | None = None
        """The segment that is being loaded or run."""

    def load(self) -> None:
        """Read the inputs, load each segment, and connect to the other workers."""
        self._runtime = _runtime(self._config)
        self._inputs = {name: self._runtime.read(self._folder / file) for name, file in self._config["inputs"].items()}
        for number, segment in enumerate(self._segments):
            self.running = number
            self._runtime.load(segment["file"])
        self.running = None
        self._links = self._runtime.links()
        for peer, link in self._links.items():
            if isinstance(link, SocketLink):
                self._sockets[peer] = link
            else:
                threading.Thread(target=self._receive, args=(peer, link), daemon=True).start()
        if self._links:
            threading.Thread(target=self._transmit, daemon=True).start()

    def _receive(self, peer: int, link: Link) -> None:
        try:
            while True:
                self._tensors.put(*link.receive())
        except (OSError, RuntimeError) as error:
            self._fail(peer, error)

    def _poll(self, run: int, names: list[str]) -> None:
        """Read from the sockets until the tensors have arrived.

        A core of its own has nothing else to do: to read again and again saves the time of waking up.
        """
        blocks = time.perf_counter() + (SPIN if self._config["own_cores"] else 0)
        while self._tensors.waits(run, names) and self._sockets:
            for peer, link in list(self._sockets.items()):
                try:
                    while (message := link.poll()) is not None:
                        self._tensors.put(*message)
                except OSError as error:
                    self._fail(peer, error)
            if time.perf_counter() > blocks and self._tensors.waits(run, names):
                select.select(list(self._sockets.values()), [], [])

    def _send(self, peer: int, run: int, name: str, value: Any) -> None:
        """Send a tensor, as far as possible at once."""
        link = self._links[peer]
        parts = link.pack(run, name, self._runtime.own(value))
        if not self._outgoing.unfinished_tasks:
            try:
                parts = link.offer(parts)
            except OSError as error:
                self._fail(peer, error)
                return
        if parts:
            self._outgoing.put((peer, parts))

    def _transmit(self) -> None:
        while True:
            peer, parts = self._outgoing.get()
            try:
                self._links[peer].send(parts)
            except (OSError, RuntimeError) as error:
                self._fail(peer, error)
            finally:
                self._outgoing.task_done()

    def _fail(self, peer: int, error: Exception) -> None:
        """Make tensors that can no longer arrive an error; the parent reports that the other process has ended."""
        self._tensors.fail(f"worker {peer} has ended: {error}")

    def run(self, at: int, order: list[list[int]]) -> list[list[int]]:
        """Execute segments of runs in an order; return start and end of each in nanoseconds."""
        self._results = {}
        uses = Counter(name for segment in self._segments for name in segment["inputs"])
        left: dict[int, Counter[str]] = {}
        last = max((run for run, _ in order), default=0)
        times = []
        time.sleep(max(0.0, (at - time.perf_counter_ns()) / 1e9))
        for run, number in order:
            self.running, segment = number, self._segments[number]
            if run not in left:
                left[run] = uses.copy()
                for name, value in self._inputs.items():
                    self._tensors.put(run, name, self._runtime.own(value))
            self._poll(run, segment["inputs"])
            feed = self._tensors.take(run, segment["inputs"])
            start = time.perf_counter_ns()
            values = self._runtime.compute(number, feed)
            end = time.perf_counter_ns()
            times.append([start, end])
            for name, value in zip(segment["outputs"], values, strict=True):
                for peer in segment["send"].get(name, ()):
                    self._send(peer, run, name, value)
                if name in uses:
                    self._tensors.put(run, name, value)
                if name in segment["results"] and run == last:
                    self._results[name] = value
            for name in segment["inputs"]:
                left[run][name] -= 1
                if not left[run][name]:
                    self._tensors.drop(run, name)
        self.running = None
        self._outgoing.join()
        return times

    def save(self) -> dict[str, str]:
        """Write the outputs of the last run; return the file of each tensor."""
        files: dict[str, str] = {}
        results = (part for name, value in self._results.items() for part in arrays_of(name, value))
        for number, (name, value) in enumerate(results):
            files[name] = f"output-{os.getpid()}-{number}.npy"
            write_array(self._folder / files[name], self._runtime.array(value))
        return files

    def end_profiles(self) -> list[str]:
        """End the profiles of all segments and return their files."""
        return self._runtime.end_profiles()


def _runtime(config: Mapping[str, Any]) -> Runtime:
    if config["runtime"] == "torch":
        from placeopt.bridges.running.torch_worker import Torch

        return Torch(config)
    return OnnxRuntime(config)


def main() -> None:
    """Serve commands until the input ends."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # libraries may print to the standard output

    def send(message: dict[str, Any]) -> None:
        channel.write(json.dumps(message) + "\n")
        channel.flush()

    config = json.loads(sys.stdin.readline())
    sys.path[:] = json.loads(sys.argv[1])
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
                send({"times": device.run(command["run"], command["order"])})
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
