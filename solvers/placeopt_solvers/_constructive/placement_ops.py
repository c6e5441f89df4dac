"""Timeline operations shared by constructive heuristics: ready times, candidate devices, gaps, placing tasks.

    compute_ready_times   the tick from which a task can start, for each device
    ready_time            the same for one device
    has_room              whether a device has the memory for a group without a home
    can_host              whether a device can take a group without a home
    can_run               whether a device can take a task: if its group has a home, only that
    contends              the same, and with `closing` whether the task would find the device full and close it
    earliest_start        the earliest start on a device, in a gap between tasks (insertion) or after the last task
    slot                  the earliest start on a device, in a gap or not by the setting `insertion`
    occupy                place a task in a gap; the first task of a group decides the home of the group
    place                 place a task on a device at its `slot`
    append                place a task after all others of a device, for heuristics that never use gaps

Under port contention transfers are booked when their consumer is placed: its missing inputs in the order in which
their producers end, each after all transfers booked before at both ports (O. Beaumont, V. Boudet, Y. Robert: A
realistic model and an efficient heuristic for scheduling with heterogeneous processors, IPDPS 2002,
doi:10.1109/IPDPS.2002.1015663). Gaps between transfers are not used. A finished timeline is therefore a valid schedule
with or without contention.
"""

from __future__ import annotations

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import transfer_ticks
from placeopt.model.tiers import swap_time

from .heaps import pop, push
from .profiles import count_group, holds
from .timeline import NO_GAP, Instance, Timeline


@kernel(transfer_ticks, allocates=False, inline=True)
def link_ticks(instance: Instance, payload: int, a: int, c: int) -> int:
    """Return the ticks that a payload takes over a link of kind c from device a."""
    ticks: int = transfer_ticks(payload, instance.latency[a, c], instance.num[a, c], instance.den[a, c])
    return ticks


@kernel(swap_time, allocates=False)
def opens(instance: Instance, line: Timeline, i: int, d: int) -> int:
    """Return the tick from which task i can start on device d regardless of its inputs, with memory tiers.

    The device swaps first. If the bytes of a group without a home take more swap time than the device waits anyway,
    they delay its first task, and with it the tasks placed so far: the new task starts after these, as much later.
    """
    ready: int = instance.release[i]
    used = instance.capacity[d] - line.room[d]
    swapped = swap_time(instance.tiers, d, used)
    g = instance.group[i]
    if line.home[g] < 0:
        before = swapped
        swapped = swap_time(instance.tiers, d, used + instance.memory[g])
        delay = max(swapped, line.first[d]) - max(before, line.first[d])
        if delay > 0:
            ready = max(ready, line.free[d] + delay)
    return max(ready, swapped)


@kernel(push, pop, allocates=False)
def sort_inputs(instance: Instance, line: Timeline, i: int) -> None:
    """Sort the in-edges of task i in `line.inputs` by the ends of their producers, then by edge.

    O(k log k) for k in-edges, O(k) if they are sorted already.
    """
    low, high = instance.in_start[i], instance.in_start[i + 1]
    position = low + 1
    while position < high:
        first, second = line.inputs[position - 1], line.inputs[position]
        before, after = line.end[instance.in_source[first]], line.end[instance.in_source[second]]
        if before > after or (before == after and first > second):
            break
        position += 1
    if position < high:
        for k in range(low, high):
            push(line.heap, 0, line.end[instance.in_source[k]], k)
        for place in range(low, high):
            line.inputs[place] = line.heap.item[0, 0]
            pop(line.heap, 0)


@kernel(link_ticks, opens, allocates=False)
def through_ports(instance: Instance, line: Timeline, i: int, d: int, book: bool) -> int:
    """Return the tick from which task i can start on device d under port contention; `book` reserves the ports."""
    ready: int = instance.release[i]
    if len(instance.tiers.memory) > 0:
        ready = opens(instance, line, i, d)
    free = line.receive[d]
    for position in range(instance.in_start[i], instance.in_start[i + 1]):
        k = line.inputs[position]
        u = instance.in_source[k]
        a = line.device[u]
        there = line.end[u]
        if a != d:
            if instance.in_shared[k] and line.sent[u, d] >= 0:
                there = line.sent[u, d]
            else:
                # A second transfer from the same device waits for the receiving port in any case.
                begin = max(there, line.send[a], free)
                there = free = begin + link_ticks(instance, instance.in_payload[k], a, instance.kind[a, d])
                if book:
                    line.send[a] = line.receive[d] = free
                    line.moves[instance.in_edge[k]] = begin
                    if instance.in_shared[k]:
                        line.sent[u, d] = free
        if there > ready:
            ready = there
    return ready


@kernel(link_ticks, opens, sort_inputs, through_ports, allocates=False, inline=True)
def compute_ready_times(instance: Instance, line: Timeline, i: int) -> None:
    """Fill `line.ready` with the tick from which task i can start on each device; its producers must be placed."""
    ready, arrival = line.ready, line.arrival
    m = len(ready)
    if instance.port:
        sort_inputs(instance, line, i)
        for d in range(m):
            ready[d] = through_ports(instance, line, i, d, False)
        return
    for d in range(m):
        ready[d] = instance.release[i]
    if len(instance.tiers.memory) > 0:
        for d in range(m):
            ready[d] = opens(instance, line, i, d)
    for k in range(instance.in_start[i], instance.in_start[i + 1]):
        u = instance.in_source[k]
        payload = instance.in_payload[k]
        a = line.device[u]
        end = line.end[u]
        arrival[0] = end
        for c in range(1, instance.kinds[a]):
            arrival[c] = end + link_ticks(instance, payload, a, c)
        if instance.kinds[a] == 2:
            # All links from this device are alike: without look-ups the loop compiles to vector instructions.
            own, there = ready[a], arrival[1]
            for b in range(m):
                ready[b] = max(ready[b], there)
            ready[a] = max(own, end)
            continue
        for b in range(m):
            there = arrival[instance.kind[a, b]]
            if there > ready[b]:
                ready[b] = there


@kernel(link_ticks, opens, sort_inputs, through_ports, allocates=False, inline=True)
def ready_time(instance: Instance, line: Timeline, i: int, d: int) -> int:
    """Return the tick from which task i can start on device d; its producers must be placed."""
    if instance.port:
        sort_inputs(instance, line, i)
        return through_ports(instance, line, i, d, False)
    ready: int = instance.release[i]
    if len(instance.tiers.memory) > 0:
        ready = opens(instance, line, i, d)
    for k in range(instance.in_start[i], instance.in_start[i + 1]):
        u = instance.in_source[k]
        a = line.device[u]
        there = line.end[u]
        if a != d:
            there += link_ticks(instance, instance.in_payload[k], a, instance.kind[a, d])
        if there > ready:
            ready = there
    return ready


@kernel(allocates=False, inline=True)
def stays_apart(instance: Instance, line: Timeline, g: int, d: int) -> bool:
    """Return whether device d holds no group that must be apart from group g."""
    for k in range(instance.apart_start[g], instance.apart_start[g + 1]):  # noqa: SIM110 - Numba has no all() of a generator
        if line.home[instance.apart[k]] == d:
            return False
    return True


@kernel(holds, allocates=False, inline=True)
def has_room(instance: Instance, line: Timeline, g: int, d: int) -> bool:
    """Return whether device d has the memory for group g, which has no home."""
    left = line.room[d] - instance.memory[g]
    return bool(left >= 0 and (not instance.live.on or holds(instance.live, line.trees[d], g, left)))


@kernel(has_room, stays_apart, allocates=False, inline=True)
def can_host(instance: Instance, line: Timeline, g: int, d: int) -> bool:
    """Return whether device d can take group g, which has no home."""
    return bool(instance.feasible[g, d]) and has_room(instance, line, g, d) and stays_apart(instance, line, g, d)


@kernel(can_host, allocates=False, inline=True)
def can_run(instance: Instance, line: Timeline, i: int, d: int) -> bool:
    """Return whether device d can take task i: if its group has a home, only that."""
    home = line.home[instance.group[i]]
    return bool(home == d) if home >= 0 else can_host(instance, line, instance.group[i], d)


@kernel(can_host, stays_apart, allocates=False, inline=True)
def contends(instance: Instance, line: Timeline, i: int, d: int) -> bool:
    """Return whether task i competes for device d: if it can run there, or with `closing`, if d has too little room.

    A task that is chosen for a device without room closes the device: only groups with a home there remain.
    """
    g = instance.group[i]
    home = line.home[g]
    if home >= 0:
        return bool(home == d)
    if instance.closing:
        return bool(instance.feasible[g, d]) and not line.closed[d] and stays_apart(instance, line, g, d)
    return can_host(instance, line, g, d)


@kernel(allocates=False, inline=True)
def first_gap(gap_start: Int, gap_end: Int, count: int, ready: int, duration: int) -> int:
    """Return the index of a device's first gap that fits the duration at or after `ready`."""
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        if gap_end[middle] >= ready + duration:
            high = middle
        else:
            low = middle + 1
    while max(gap_start[low], ready) + duration > gap_end[low]:
        low += 1
    return low


@kernel(first_gap, allocates=False, inline=True)
def earliest_start(instance: Instance, line: Timeline, i: int, d: int, ready: int) -> tuple[int, int]:
    """Return the earliest start of task i on device d at or after `ready`, and its gap for `occupy`."""
    ticks = instance.duration[i, d]
    if ticks == 0:
        # A task of no duration may start where two tasks touch; only the end of a producer is tried.
        if ready == 0:
            return ready, NO_GAP
        for k in range(instance.in_start[i], instance.in_start[i + 1]):
            u = instance.in_source[k]
            if line.device[u] == d and line.end[u] == ready:
                return ready, NO_GAP
    gap = line.gaps[d] - 1
    if ticks <= line.longest[d]:
        gap = first_gap(line.gap_start[d], line.gap_end[d], line.gaps[d], ready, ticks)
    return max(ready, line.gap_start[d, gap]), gap


@kernel(earliest_start, allocates=False, inline=True)
def slot(instance: Instance, line: Timeline, i: int, d: int, ready: int) -> tuple[int, int]:
    """Return the start of task i on device d at or after `ready`, and its gap for `occupy`.

    It is the earliest start with insertion; otherwise the start after all tasks of the device.
    """
    if instance.insertion:
        return earliest_start(instance, line, i, d, ready)
    return max(ready, line.free[d]), NO_GAP


@kernel(count_group, allocates=False, inline=True)
def assign_group(instance: Instance, line: Timeline, g: int, d: int) -> None:
    """Assign group g to device d and reserve its memory, unless it has a home."""
    if line.home[g] < 0:
        line.home[g] = d
        line.room[d] -= instance.memory[g]
        if instance.live.on:
            count_group(instance.live, line.trees[d], g, 1)


@kernel(count_group, allocates=False)
def release_group(instance: Instance, line: Timeline, g: int) -> None:
    """Take group g from its device, and free its memory."""
    d = line.home[g]
    line.home[g] = -1
    line.room[d] += instance.memory[g]
    if instance.live.on:
        count_group(instance.live, line.trees[d], g, -1)


@kernel(assign_group, sort_inputs, through_ports, allocates=False, inline=True)
def assign(instance: Instance, line: Timeline, i: int, d: int, start: int) -> None:
    """Assign task i to device d at `start`, and its group too; with ports, book its inputs."""
    assign_group(instance, line, instance.group[i], d)
    if instance.port:
        sort_inputs(instance, line, i)
        through_ports(instance, line, i, d, True)
    line.device[i], line.start[i] = d, start
    line.end[i] = start + instance.duration[i, d]
    line.first[d] = min(line.first[d], start)


@kernel(assign, allocates=False, inline=True)
def occupy(instance: Instance, line: Timeline, i: int, d: int, start: int, gap: int) -> None:
    """Place task i on device d at `start`, in the gap from `earliest_start`."""
    assign(instance, line, i, d, start)
    end = line.end[i]
    if end > line.free[d]:
        line.free[d] = end
    if gap < 0:
        return
    gap_start, gap_end = line.gap_start[d], line.gap_end[d]
    last = line.gaps[d] - 1
    before = start - gap_start[gap]
    after = gap_end[gap] - end
    if before > line.longest[d]:
        line.longest[d] = before
    if gap < last and after > line.longest[d]:
        line.longest[d] = after
    if before > 0 and after > 0:
        for k in range(last, gap - 1, -1):
            gap_start[k + 1] = gap_start[k]
            gap_end[k + 1] = gap_end[k]
        line.gaps[d] += 1
        gap_end[gap] = start
        gap_start[gap + 1] = end
    elif before > 0:
        gap_end[gap] = start
    elif after > 0:
        gap_start[gap] = end
    else:
        line.gaps[d] -= 1
        for k in range(gap, last):
            gap_start[k] = gap_start[k + 1]
            gap_end[k] = gap_end[k + 1]


@kernel(ready_time, slot, occupy, allocates=False, inline=True)
def place(instance: Instance, line: Timeline, i: int, d: int) -> None:
    """Place task i on device d as early as its data and the tasks there allow, see `slot`."""
    start, gap = slot(instance, line, i, d, ready_time(instance, line, i, d))
    occupy(instance, line, i, d, start, gap)


@kernel(assign, allocates=False, inline=True)
def append(instance: Instance, line: Timeline, i: int, d: int, start: int) -> None:
    """Place task i on device d at `start`, after all its tasks; for heuristics that never use gaps."""
    assign(instance, line, i, d, start)
    line.free[d] = line.end[i]
