"""Kernels of the simulation: event heaps, ports, device queues.

They use arrays that the caller allocates once (`Work`) and may reuse, so a search can run many simulations inside its
own compiled loop. Any integer ticks are valid if the makespan fits into 64 bits: heaps compare (tick, code) in two
arrays without packing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from placeopt.kernels import kernel
from placeopt.model.arrays import Bool, Int
from placeopt.model.memory import tier_arrays
from placeopt.model.problem import Problem, transfer_ticks
from placeopt.model.schedule import port_times
from placeopt.model.tiers import TierArrays, swap_time

FIFO, PRIORITY, ORDER = 0, 1, 2


class Graph(NamedTuple):
    """The graph and release times of a problem, independent of the placement. Fields as in `Problem`."""

    edge_source: Int
    edge_target: Int
    shared: Bool
    out_start: Int
    in_start: Int
    in_edge: Int
    release: Int


class Instance(NamedTuple):
    """The data of a problem that a simulation needs, as one argument of a compiled loop."""

    graph: Graph
    tiers: TierArrays
    duration: Int
    payload: Int
    latency: Int
    byte_ticks_num: Int
    byte_ticks_den: Int
    port: bool


class Work(NamedTuple):
    """Arrays of one simulation: inputs, outputs and scratch space."""

    # In: (n,) ticks of each task on its device, (e,) ticks of each edge's transfer
    task_ticks: Int
    edge_ticks: Int
    # In: (n,) tick before which the task cannot start: its release, and the end of its device's swapping
    earliest: Int
    # In, unless FIFO: (n,) under PRIORITY, the device's ready task with the smallest rank goes first; under ORDER, the
    # position 0, 1, ... of the task on its device
    rank: Int
    start: Int  # Out: (n,) ticks; -1 for a task that never starts (a deadlock)
    moves: Int  # Out, with ports: (e,) start tick of the edge's transfer; -1 for edges without a separate transfer
    # (n,) number of missing inputs; tick of the latest input so far, or the release time if later
    waiting: Int
    ready: Int
    # (n,) the heap of future events
    time: Int
    code: Int
    # (n,) the ready tasks of each device, in the device's segment: a heap by `key` under PRIORITY, otherwise in the
    # order in which they start
    key: Int
    queued: Int
    # (m,) tasks queued, tasks started (always 0 under PRIORITY, where a task leaves its heap)
    length: Int
    begun: Int
    free: Int  # (m,) tick at which the device is free; with events, 1 while it is busy
    # (m,) ticks at which the ports are free: the same array if a device has one port for both, see `port_times`
    send: Int
    receive: Int
    # (m,) the last producer that sent its shared output to the device, and the arrival
    sent_by: Int
    sent_at: Int
    segment: Int  # (m + 1,) start of each device's segment, and the end of the last


def make_instance(problem: Problem) -> Instance:
    """The problem for `fifo_makespan`."""
    graph = Graph._make(getattr(problem, name) for name in Graph._fields)
    arrays = (getattr(problem, name) for name in Instance._fields[2:-1])
    return Instance._make((graph, tier_arrays(problem), *arrays, problem.contention != "none"))


def make_work(problem: Problem) -> Work:
    """Work arrays of the right sizes, for one simulation at a time."""
    n, m, e = problem.n_tasks, problem.n_devices, problem.n_edges
    size = dict.fromkeys(Work._fields[Work._fields.index("length") :], m)
    size |= {"edge_ticks": e, "moves": e, "segment": m + 1}
    work = Work(**{name: np.zeros(size.get(name, n), dtype=np.int64) for name in Work._fields})
    send, receive = port_times(problem)
    return work._replace(send=send, receive=receive)


@kernel(allocates=False)
def push(time: Int, code: Int, size: int, tick: int, item: int) -> None:
    """Add (tick, item) to a binary min-heap of `size` entries."""
    hole = size
    while hole > 0:
        parent = (hole - 1) >> 1
        if time[parent] < tick or (time[parent] == tick and code[parent] < item):
            break
        time[hole] = time[parent]
        code[hole] = code[parent]
        hole = parent
    time[hole] = tick
    code[hole] = item


@kernel(push, allocates=False)
def pop(time: Int, code: Int, size: int) -> None:
    """Remove the minimum; `size` entries remain.

    The hole sinks to a leaf, then the last entry rises from there (Wegener's bottom-up heap): one comparison per level,
    and the last entry rarely rises far.
    """
    tick, item = time[size], code[size]
    hole, child = 0, 1
    while child < size:
        other = child + 1
        if other < size and (time[other] < time[child] or (time[other] == time[child] and code[other] < code[child])):
            child = other
        time[hole] = time[child]
        code[hole] = code[child]
        hole = child
        child = 2 * hole + 1
    push(time, code, hole, tick, item)


@kernel(swap_time, allocates=False)
def delay_starts(instance: Instance, device: Int, work: Work) -> None:
    """Delay `work.earliest` until each device has swapped; overwrites `work.free`. O(n + m k) for k tiers."""
    tiers, swap = instance.tiers, work.free
    for d in range(len(swap)):
        swap[d] = 0
    for i in range(len(device)):
        swap[device[i]] += tiers.memory[i]
    for d in range(len(swap)):
        swap[d] = swap_time(tiers, d, swap[d])
    for i in range(len(device)):
        work.earliest[i] = max(work.earliest[i], swap[device[i]])


@kernel(transfer_ticks, delay_starts, allocates=False)
def fill_ticks(instance: Instance, device: Int, work: Work) -> None:
    """Fill `work.task_ticks`, `work.edge_ticks` and `work.earliest` for a placement. O(n + e)."""
    graph, edge_ticks = instance.graph, work.edge_ticks
    for i in range(len(device)):
        source = device[i]
        work.task_ticks[i] = instance.duration[i, source]
        work.earliest[i] = graph.release[i]
        for k in range(graph.out_start[i], graph.out_start[i + 1]):
            target = device[graph.edge_target[k]]
            if target == source:
                edge_ticks[k] = 0
            else:
                edge_ticks[k] = transfer_ticks(
                    instance.payload[k],
                    instance.latency[source, target],
                    instance.byte_ticks_num[source, target],
                    instance.byte_ticks_den[source, target],
                )
    if len(instance.tiers.memory) > 0:
        delay_starts(instance, device, work)


@kernel(push, pop, allocates=False)
def run_fifo(graph: Graph, device: Int, work: Work) -> int:
    """Makespan in ticks, first in first out, with transfers that never wait; fills `work.start`.

    Tasks start on every device in the order in which they become ready. One heap over all tasks by (ready tick, index)
    therefore replaces queues and events: what a task makes ready is ready no earlier than the task itself. O(n log n +
    e).
    """
    edge_target, task_ticks, edge_ticks = graph.edge_target, work.task_ticks, work.edge_ticks
    waiting, ready, free, start = work.waiting, work.ready, work.free, work.start
    time, code = work.time, work.code
    n = len(device)
    size = 0
    for d in range(len(free)):
        free[d] = 0
    for i in range(n):
        ready[i] = work.earliest[i]
        waiting[i] = graph.in_start[i + 1] - graph.in_start[i]
        if waiting[i] == 0:
            push(time, code, size, ready[i], i)
            size += 1
    span = 0
    while size > 0:
        i = code[0]
        size -= 1
        pop(time, code, size)
        d = device[i]
        start[i] = max(ready[i], free[d])
        end = start[i] + task_ticks[i]
        free[d] = end
        span = max(span, end)
        for k in range(graph.out_start[i], graph.out_start[i + 1]):
            j = edge_target[k]
            ready[j] = max(ready[j], end + edge_ticks[k])
            waiting[j] -= 1
            if waiting[j] == 0:
                push(time, code, size, ready[j], j)
                size += 1
    return span


@kernel(push, pop, allocates=False)
def run_events(graph: Graph, device: Int, discipline: int, port: bool, work: Work) -> int:
    """Makespan in ticks, event by event; fills `work.start` and, with ports, `work.moves`.

    Event i < n is the end of task i, event n + i the tick at which it becomes ready (last input, or
    `work.earliest`). At one tick, ends come first, then ready tasks, each by index. O((n + e) log n + n m).
    """
    edge_ticks, moves, waiting, ready = work.edge_ticks, work.moves, work.waiting, work.ready
    time, code, key, queued = work.time, work.code, work.key, work.queued
    segment, length, begun, busy = work.segment, work.length, work.begun, work.free
    send, receive, sent_by, sent_at = work.send, work.receive, work.sent_by, work.sent_at
    n, m = len(device), len(length)
    for d in range(m):
        length[d], begun[d], busy[d], send[d], receive[d], sent_by[d] = 0, 0, 0, 0, 0, -1
    events = 0
    for i in range(n):
        length[device[i]] += 1
        work.start[i], queued[i], ready[i] = -1, -1, work.earliest[i]
        waiting[i] = graph.in_start[i + 1] - graph.in_start[i]
        if waiting[i] == 0:
            push(time, code, events, ready[i], n + i)
            events += 1
    segment[0] = 0
    for d in range(m):
        segment[d + 1] = segment[d] + length[d]
        length[d] = 0
    for k in range(len(moves)):
        moves[k] = -1
    tick = 0
    while events > 0:
        tick, event = time[0], code[0]
        events -= 1
        pop(time, code, events)
        if event < n:
            d = device[event]
            busy[d] = 0
            for k in range(graph.out_start[event], graph.out_start[event + 1]):
                j = graph.edge_target[k]
                target = device[j]
                if target == d:
                    arrival = tick
                elif not port:
                    arrival = tick + edge_ticks[k]
                elif graph.shared[k] and sent_by[target] == event:
                    arrival = sent_at[target]
                else:
                    moves[k] = max(tick, send[d], receive[target])
                    arrival = moves[k] + edge_ticks[k]
                    send[d] = arrival
                    receive[target] = arrival
                    if graph.shared[k]:
                        sent_by[target] = event
                        sent_at[target] = arrival
                ready[j] = max(ready[j], arrival)
                waiting[j] -= 1
                if waiting[j] == 0:
                    push(time, code, events, ready[j], n + j)
                    events += 1
        else:
            i = event - n
            d = device[i]
            if discipline == PRIORITY:
                push(key[segment[d] :], queued[segment[d] :], length[d], work.rank[i], i)
            elif discipline == ORDER:
                queued[segment[d] + work.rank[i]] = i
            else:
                queued[segment[d] + length[d]] = i
            length[d] += 1
        first, last = d, d + 1
        if discipline == PRIORITY:  # choose after all events of the tick
            first, last = 0, (m if events == 0 or time[0] > tick else 0)
        for d in range(first, last):
            place = segment[d] if discipline == PRIORITY else segment[d] + begun[d]
            if busy[d] != 0 or length[d] == begun[d] or queued[place] < 0:
                continue
            i = queued[place]
            if discipline == PRIORITY:
                length[d] -= 1
                pop(key[segment[d] :], queued[segment[d] :], length[d])
            else:
                begun[d] += 1
            busy[d] = 1
            work.start[i] = tick
            push(time, code, events, tick + work.task_ticks[i], i)
            events += 1
    return tick


@kernel(allocates=False)
def repair_keys(
    graph: Graph, topological: Int, representative: Int, task_start: Int, task_end: Int, move_start: Int, move_end: Int
) -> None:
    """Raise the keys (start, end) in place so that none is below a predecessor's. O(n + e).

    Predecessors of a task are its producers and their transfers to it; the predecessor of a transfer is its producer.
    Valid schedules do not change: what ends by tick t has a key of at most (t, t).
    """
    for i in topological:
        for k in range(graph.out_start[i], graph.out_start[i + 1]):
            start, end = task_start[i], task_end[i]
            move = representative[k]
            if move >= 0:
                if move_start[move] < start or (move_start[move] == start and move_end[move] < end):
                    move_start[move], move_end[move] = start, end
                start, end = move_start[move], move_end[move]
            j = graph.edge_target[k]
            if task_start[j] < start or (task_start[j] == start and task_end[j] < end):
                task_start[j], task_end[j] = start, end


@kernel(allocates=False)
def replay(graph: Graph, nodes: Int, representative: Int, device: Int, work: Work) -> None:
    """Start every node as early as its release and predecessors allow; fills `work.start` and `work.moves`. O(n + e).

    Node i < n is task i, node n + k the transfer of edge k. `nodes` lists each after its predecessors; devices and
    ports serve them in that order. `representative` is -1 for edges whose data uses no port.
    """
    start, moves, task_ticks, edge_ticks = work.start, work.moves, work.task_ticks, work.edge_ticks
    free, send, receive, edge_source = work.free, work.send, work.receive, graph.edge_source
    n = len(device)
    for d in range(len(free)):
        free[d], send[d], receive[d] = 0, 0, 0
    for k in range(len(moves)):
        moves[k] = -1
    for node in nodes:
        if node < n:
            d = device[node]
            tick = max(free[d], work.earliest[node])
            for position in range(graph.in_start[node], graph.in_start[node + 1]):
                k = graph.in_edge[position]
                move = representative[k]
                if move >= 0:
                    tick = max(tick, moves[move] + edge_ticks[move])
                else:
                    tick = max(tick, start[edge_source[k]] + task_ticks[edge_source[k]] + edge_ticks[k])
            start[node] = tick
            free[d] = tick + task_ticks[node]
        else:
            k = node - n
            source, target = device[edge_source[k]], device[graph.edge_target[k]]
            tick = max(start[edge_source[k]] + task_ticks[edge_source[k]], send[source], receive[target])
            moves[k] = tick
            send[source] = tick + edge_ticks[k]
            receive[target] = tick + edge_ticks[k]


@kernel(fill_ticks, run_fifo, run_events, allocates=False)
def fifo_makespan(instance: Instance, device: Int, work: Work) -> int:
    """Makespan in ticks of a placement, first in first out, under the problem's own contention.

    For search loops: no allocation, no checks. `device` (n,) int64 must hold feasible devices.
    """
    fill_ticks(instance, device, work)
    if instance.port:
        return run_events(instance.graph, device, FIFO, True, work)
    return run_fifo(instance.graph, device, work)
