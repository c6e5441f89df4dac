"""Import Dask graphs: a collection becomes a problem, and functions that compute its value as planned.

Every key of the graph becomes a task. Keys that only name other keys (aliases) are resolved. Results are outputs, which
stay in the memory of their worker until the last consumer ends.

Dask graphs state neither times nor sizes. They come from the caller, by task or by prefix (`sum` for the key
`("sum-5a1f", 0)`), else from past runs on the scheduler of a client: the average time of the prefix, and the size of
the result or the average size of the prefix. What is still unknown takes 0.5 s and 1 KiB, as Dask assumes. Dask forgets
the sizes of results that are released, so the first import with a client makes its scheduler record them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

from placeopt.bridges.extras import require
from placeopt.bridges.importers.imported import Imported
from placeopt.bridges.importers.task_graph import Place, Task, TaskGraph, seconds_text, slowest_speed
from placeopt.bridges.networks import network_of
from placeopt.errors import Issue, UsageError, counted, listing, suggestion
from placeopt.io.files import StrPath
from placeopt.model import units
from placeopt.model.units import Dimension, QuantityError, shown

if TYPE_CHECKING:
    from distributed import Client

UNKNOWN_SECONDS = Fraction(1, 2)
UNKNOWN_BYTES = 1024
"""The assumptions of Dask: `unknown-task-duration` and `default-data-size` in its configuration."""
WORKERS = 4
"""Number of workers without devices and without a client."""
BANDWIDTH = "100 MB/s"
"""The assumption of Dask for transfers between workers: `bandwidth` in its configuration."""
RESOLUTION = "1 us"
_RECORDER = "placeopt-sizes"
"""The name of the scheduler's plugin that records sizes."""

Amounts = float | str | Mapping[str, float | str]
"""An amount for all tasks, or by the name or the prefix of tasks."""


@dataclass(frozen=True, slots=True)
class NodeFunction:
    """A node of a Dask graph as a function of the results of its producers."""

    node: Any
    names: Mapping[Hashable, str]
    """The task of each key that the node reads."""

    def __call__(self, inputs: Mapping[str, Any]) -> Any:
        """Compute the node; `inputs` are the results of its producers by name."""
        return self.node({key: inputs[name] for key, name in self.names.items()})


@dataclass(frozen=True, slots=True, repr=False)
class DaskImport(Imported):
    """The result of `from_dask`: the problem document, and functions that compute the collection."""

    functions: Mapping[str, Callable[[Mapping[str, Any]], Any]] = field(default_factory=dict, repr=False)
    """The function of each task, for `run_on_dask`."""
    outputs: tuple[str, ...] = ()
    """The tasks whose results make up the value of the collection; without a collection, those without consumers."""
    finish: Callable[[Mapping[str, Any]], Any] = field(default=dict, repr=False)

    def value(self, results: Mapping[str, Any]) -> Any:
        """Return the value of the collection, as its `compute()`, from the results of `outputs`.

        For a graph without a collection, return the results by name.
        """
        return self.finish(results)


def from_dask(
    graph: Any,
    *,
    devices: Mapping[str, Any] | StrPath | None = None,
    durations: Amounts | None = None,
    sizes: Amounts | None = None,
    client: Client | None = None,
    optimize: bool = True,
    name: str = "dask",
    resolution: str = RESOLUTION,
) -> DaskImport:
    """Convert a Dask collection or graph to a problem document.

    Parameters
    ----------
    graph
        A collection (array, bag, dataframe, delayed value), a HighLevelGraph, or a mapping from keys to tasks, in the
        form of Dask 2024.12 and later or in the older form of tuples.
    devices
        A mapping with `devices` and perhaps `links`, or the path of a network file. Default: the workers of `client`
        with their memory limits, joined by the bandwidth that the scheduler has measured; without a client, four
        workers and 100 MB/s. To run the plan, name the devices like the workers.
    durations
        Seconds, or texts such as `3 ms`: one for all tasks, or by task or by prefix.
    sizes
        Bytes of results, or texts such as `4 MiB`, in the same form.
    client
        A client of a scheduler with past runs of these tasks, or of tasks with the same prefixes.
    optimize
        Whether Dask optimises the graph of a collection, as in `compute`.

    Raises
    ------
    UsageError
        If `graph` is not a Dask graph, refers to keys that it does not contain, or an amount is not valid.
    DocumentError
        If the network file is not valid, or the tasks form a cycle.
    MissingExtraError
        If Dask is not installed.
    """
    require("dask", "dask", "Dask graphs")
    nodes, keys, finish = _materialized(graph, optimize)
    targets = _targets(nodes)
    ordered = _ordered({key: node for key, node in nodes.items() if targets[key] == key}, targets)
    names = _names(ordered)
    prefixes = {names[key]: _prefix(key) for key in ordered}
    past = _Past.of(client)
    notes: list[str] = []
    seconds = _amounts("durations", durations, units.TIME, prefixes, past.seconds, {}, UNKNOWN_SECONDS, notes)
    known = {names[key]: size for key, size in past.sizes.items() if key in names}
    amounts = _amounts("sizes", sizes, units.PAYLOAD, prefixes, past.bytes, known, Fraction(UNKNOWN_BYTES), notes)
    tasks: dict[str, Task] = {}
    functions: dict[str, NodeFunction] = {}
    rank = {key: k for k, key in enumerate(ordered)}
    for key, node in ordered.items():
        task = names[key]
        read = sorted(node.dependencies, key=lambda each: rank[targets[each]])
        after: dict[str, int | None] = {names[targets[each]]: None for each in read}
        data = {"op": prefixes[task], "output": math.ceil(amounts[task])}
        tasks[task] = Task(Fraction(0) if _is_data(node) else seconds[task], None, after, data)
        functions[task] = NodeFunction(node, {each: names[targets[each]] for each in read})
    network, more = _network(devices, past)
    notes += more
    if slowest_speed(network) is not None:
        notes.append("times hold for the slowest device; faster ones need less time in proportion to their speed")
    made = TaskGraph(name, "a Dask graph", tasks, memory_model="peak").imported(network, resolution, _issue, notes)
    consumed = {producer for task in tasks.values() for producer in task.after}
    by_key = {key: names[target] for key, target in targets.items()}
    results = [by_key[key] for key in keys] if keys else [task for task in tasks if task not in consumed]

    def value(results: Mapping[str, Any]) -> Any:
        return dict(results) if finish is None else finish({key: results[by_key[key]] for key in keys})

    outputs = tuple(dict.fromkeys(results))
    return DaskImport(made.document, made.notes, functions=functions, outputs=outputs, finish=value)


def _materialized(
    graph: Any, optimize: bool
) -> tuple[dict[Hashable, Any], list[Hashable], Callable[[Mapping[Hashable, Any]], Any] | None]:
    """The nodes of a graph by key; for a collection also its keys, and a function of their results."""
    import dask
    from dask._task_spec import convert_legacy_graph
    from dask.core import flatten

    keys: list[Hashable] = []
    finish = None
    if dask.is_dask_collection(graph) and not isinstance(graph, Mapping):
        if optimize:  # dask.optimize leaves expressions of dataframes that have no tasks yet
            graph = graph.optimize() if hasattr(type(graph), "optimize") else dask.optimize(graph)[0]
        nested = graph.__dask_keys__()
        keys = list(flatten(nested))
        function, extra = graph.__dask_postcompute__()

        def finish(results: Mapping[Hashable, Any]) -> Any:
            return function(_nested(nested, results), *extra)

        graph = graph.__dask_graph__()
    if not isinstance(graph, Mapping):
        raise UsageError(f"from_dask takes a Dask collection or graph, got {type(graph).__name__}")
    raw = dict(graph.to_dict() if hasattr(graph, "to_dict") else graph)
    nodes: dict[Hashable, Any] = convert_legacy_graph(raw)
    if missing := [key for key in raw if key not in nodes]:
        raise UsageError(f"the key {shown(str(missing[0]))} of the graph is an alias of itself")
    unknown = {each: key for key, node in nodes.items() for each in node.dependencies if each not in nodes}
    if unknown:
        key, reader = min(unknown.items(), key=lambda pair: (str(pair[0]), str(pair[1])))
        raise UsageError(
            f"{shown(str(reader))} reads {shown(str(key))}, which is not in the graph; expected a collection that is "
            "not persisted, or a graph with all its keys"
        )
    return nodes, keys, finish


def _nested(keys: Any, results: Mapping[Hashable, Any]) -> Any:
    """The results of nested lists of keys."""
    return [_nested(key, results) for key in keys] if isinstance(keys, list) else results[keys]


def _targets(nodes: Mapping[Hashable, Any]) -> dict[Hashable, Hashable]:
    """The key whose node computes the value of each key: another one for aliases."""
    from dask._task_spec import Alias

    targets: dict[Hashable, Hashable] = {}
    for key in nodes:
        chain = [key]
        while chain[-1] not in targets and isinstance(nodes[chain[-1]], Alias):
            chain.append(nodes[chain[-1]].target)
            if len(chain) > len(nodes):
                raise UsageError(f"the aliases {listing([str(each) for each in chain])} form a cycle")
        found = targets.get(chain[-1], chain[-1])
        targets.update(dict.fromkeys(chain, found))
    return targets


def _ordered(nodes: Mapping[Hashable, Any], targets: Mapping[Hashable, Hashable]) -> dict[Hashable, Any]:
    """The nodes in a topological order, by name where that is free; Dask's own order depends on hashes."""
    from dask.utils import natural_sort_key

    place = {key: k for k, key in enumerate(sorted(nodes, key=lambda key: natural_sort_key(str(key))))}
    producers = {
        key: sorted((targets[each] for each in nodes[key].dependencies), key=place.__getitem__) for key in place
    }
    try:
        return {key: nodes[key] for key in TopologicalSorter(producers).static_order()}
    except CycleError:  # the compiler of the document reports it
        return {key: nodes[key] for key in place}


def _names(keys: Mapping[Hashable, Any]) -> dict[Hashable, str]:
    names = {key: key if isinstance(key, str) else str(key) for key in keys}
    for name, count in Counter(names.values()).items():
        if count > 1:
            raise UsageError(f"two keys of the graph are called {shown(name)}")
    return names


def _prefix(key: Hashable) -> str:
    from dask.utils import key_split

    return str(key_split(key))


def _is_data(node: Any) -> bool:
    from dask._task_spec import DataNode

    return isinstance(node, DataNode)


def _issue(message: str, _place: Place) -> Issue:
    return Issue(message)


@dataclass(frozen=True, slots=True)
class _Past:
    """What a scheduler has measured."""

    workers: Sequence[tuple[str, int | None]] = ()
    """The name and the memory limit of each worker."""
    bandwidth: int | None = None
    seconds: Mapping[str, Fraction] = field(default_factory=dict)
    """Average times by prefix."""
    bytes: Mapping[str, Fraction] = field(default_factory=dict)
    """Average sizes by prefix."""
    sizes: Mapping[Hashable, int] = field(default_factory=dict)
    """Sizes by key."""

    @classmethod
    def of(cls, client: Client | None) -> _Past:
        """What the scheduler of a client has measured; nothing without a client."""
        if client is None:
            return cls()
        if getattr(client, "asynchronous", True):
            raise UsageError(f"from_dask takes a synchronous Client of distributed, got {type(client).__name__}")
        from dask.utils import natural_sort_key

        workers, bandwidth, seconds, sizes, averages = client.run_on_scheduler(measured_runs)
        return cls(
            sorted(workers, key=lambda worker: natural_sort_key(worker[0])),
            bandwidth,
            {prefix: Fraction(round(average * 10**9), 10**9) for prefix, average in seconds.items()},
            averages,
            sizes,
        )


def measured_runs(
    dask_scheduler: Any,
) -> tuple[list[tuple[str, int | None]], int, dict[str, float], dict[Hashable, int], dict[str, Fraction]]:
    """Return workers, bandwidth, average seconds by prefix, and sizes by key and prefix; runs on the scheduler.

    The scheduler records sizes of results afterwards.
    """
    workers = [(str(worker.name), worker.memory_limit or None) for worker in dask_scheduler.workers.values()]
    seconds = {
        str(prefix.name): prefix.all_durations["compute"] / ran
        for prefix in dask_scheduler.task_prefixes.values()
        if (ran := prefix.state_counts["memory"])
    }
    sizes = {key: task.nbytes for key, task in dask_scheduler.tasks.items() if task.nbytes >= 0}
    recorded = dask_scheduler.plugins.get(_RECORDER)
    if recorded is None:
        recorded = _size_recorder(dask_scheduler)
        dask_scheduler.add_plugin(recorded, name=_RECORDER)
    averages = {prefix: Fraction(total, count) for prefix, (total, count) in recorded.seen.items()}
    return workers, int(dask_scheduler.bandwidth), seconds, sizes, averages


def _size_recorder(scheduler: Any) -> Any:
    """A plugin of the scheduler that adds up the sizes of results by prefix, those that it holds included."""
    from distributed.diagnostics.plugin import SchedulerPlugin

    class Recorder(SchedulerPlugin):  # type: ignore[misc]
        def __init__(self) -> None:
            self.seen: dict[str, tuple[int, int]] = {}
            for key in scheduler.tasks:
                self.add(key)

        def add(self, key: Hashable) -> None:
            """Count a result."""
            if (task := scheduler.tasks.get(key)) is not None and task.nbytes >= 0:
                total, count = self.seen.get(_prefix(key), (0, 0))
                self.seen[_prefix(key)] = total + task.nbytes, count + 1

        def transition(self, key: Hashable, _start: str, finish: str, *_: Any, **_more: Any) -> None:
            if finish == "memory":
                self.add(key)

    return Recorder()


def _amounts(
    what: str,
    given: Amounts | None,
    dimension: Dimension,
    prefixes: Mapping[str, str],
    by_prefix: Mapping[str, Fraction],
    by_task: Mapping[str, int],
    default: Fraction,
    notes: list[str],
) -> dict[str, Fraction]:
    """The amount of each task: as given, else as measured, else the default, which a note states."""
    stated = given if isinstance(given, Mapping) else {}
    everywhere = None if given is None or isinstance(given, Mapping) else _amount(what, given, dimension)
    known = {*prefixes, *prefixes.values()}
    for key in stated:
        if key not in known:
            raise UsageError(
                f"{what}: no task and no prefix is called {shown(str(key))}{suggestion(str(key), sorted(known))}"
            )
    amounts = {key: _amount(f"{what}[{key!r}]", value, dimension) for key, value in stated.items()}
    found: dict[str, Fraction] = {}
    unknown = 0
    for task, prefix in prefixes.items():
        choices = (amounts.get(task), amounts.get(prefix), everywhere, by_task.get(task), by_prefix.get(prefix))
        amount = next((choice for choice in choices if choice is not None), None)
        unknown += amount is None
        found[task] = default if amount is None else Fraction(amount)
    if unknown:
        text = seconds_text(default) if dimension is units.TIME else f"{default} B"
        notes.append(f"{what}: unknown for {counted(unknown, 'task')}; taken as {text} each, as Dask assumes")
    return found


def _amount(what: str, value: float | str, dimension: Dimension) -> Fraction:
    try:
        return units.parse(value, dimension).value
    except QuantityError as error:
        raise UsageError(f"{what}: {error}") from None


def _network(devices: Mapping[str, Any] | StrPath | None, past: _Past) -> tuple[dict[str, Any], tuple[str, ...]]:
    if devices is not None:
        return network_of(devices)
    if past.workers:
        named = {name: {} if limit is None else {"memory": limit} for name, limit in past.workers}
        return {"devices": named, "links": {"default": {"bandwidth": f"{past.bandwidth} B/s"}}}, ()
    return (
        {"devices": {"worker": {"count": WORKERS}}, "links": {"default": {"bandwidth": BANDWIDTH}}},
        (f"the problem has {WORKERS} workers, joined by {BANDWIDTH}; state devices, or a client",),
    )
