"""What the loops of constructive heuristics ask and do: arrivals, room, gaps, booking.

    note_arrivals    when all data of a task is there, for each device
    arrival_on       the same for one device
    may_take         whether a device may and can take a group that is not placed yet
    open_to          whether it may and can take a task, whose group may have its home already
    earliest         the earliest start on a device, in a gap between tasks (insertion) or after the last
    occupy           put a task there; the first task of a group decides for the whole group
    append           put a task after all others of a device, for heuristics that look for no gaps

Under port contention transfers take their turn too: when a task is placed, its missing inputs are booked in the order
of their producers' ends, each once both ports have served all that was booked before (as O. Beaumont,
V. Boudet and Y. Robert schedule it: A realistic model and an efficient heuristic for scheduling with heterogeneous
processors, IPDPS 2002, doi:10.1109/IPDPS.2002.1015663; no gaps between transfers are looked for). So a finished
timeline is a valid schedule under either contention.
"""

from __future__ import annotations

from placeopt.kernels import kernel
from placeopt.model.arrays import Int
from placeopt.model.problem import transfer_ticks

from .timeline import AT_END, Case, Timeline


@kernel(allocates=False)
def swap_inputs(case: Case, a: int, b: int) -> None:
    """Swap two in-edges of a task in the order in which ports serve them."""
    case.in_source[a], case.in_source[b] = case.in_source[b], case.in_source[a]
    case.in_payload[a], case.in_payload[b] = case.in_payload[b], case.in_payload[a]
    case.in_edge[a], case.in_edge[b] = case.in_edge[b], case.in_edge[a]
    case.in_shared[a], case.in_shared[b] = case.in_shared[b], case.in_shared[a]


@kernel(allocates=False)
def served_later(case: Case, line: Timeline, a: int, b: int) -> bool:
    """Whether ports serve in-edge a after in-edge b: its producer ends later, or as late and the edge comes later."""
    first, second = line.end[case.in_source[a]], line.end[case.in_source[b]]
    return bool(first > second or (first == second and case.in_edge[a] > case.in_edge[b]))


@kernel(swap_inputs, served_later, allocates=False)
def in_order_of_ends(case: Case, line: Timeline, i: int) -> None:
    """Sort the in-edges of task i by the ends of their producers, then by edge: the order in which ports serve them.

    In place and in O(k log k) for k of them (J. W. J. Williams: Algorithm 232, heapsort, 1964); O(k) once sorted.
    """
    low = case.in_start[i]
    count = case.in_start[i + 1] - low
    position = 1
    while position < count and not served_later(case, line, low + position - 1, low + position):
        position += 1
    if position >= count:
        return
    # A heap with the last to be served on top is built from the middle down, then taken apart from the end.
    for step in range(count // 2 + count - 1):
        root = max(count // 2 - 1 - step, 0)
        size = count
        if step >= count // 2:
            size = count - 1 - (step - count // 2)
            swap_inputs(case, low, low + size)
        while 2 * root + 1 < size:
            child = 2 * root + 1
            if child + 1 < size and served_later(case, line, low + child + 1, low + child):
                child += 1
            if not served_later(case, line, low + child, low + root):
                break
            swap_inputs(case, low + root, low + child)
            root = child


@kernel(transfer_ticks, allocates=False)
def through_ports(case: Case, line: Timeline, i: int, d: int, book: bool) -> int:
    """The tick from which task i can start on device d when its inputs take their turn; `book` reserves the ports."""
    ready: int = case.release[i]
    free = line.receive[d]
    for k in range(case.in_start[i], case.in_start[i + 1]):
        u = case.in_source[k]
        a = line.device[u]
        there = line.end[u]
        if a != d:
            if case.in_shared[k] and line.sent[u, d] >= 0:
                there = line.sent[u, d]
            else:
                c = case.kind[a, d]
                # A second transfer from the same device waits at the receiving port already.
                begin = max(there, line.send[a], free)
                ticks = transfer_ticks(case.in_payload[k], case.latency[a, c], case.num[a, c], case.den[a, c])
                there = free = begin + ticks
                if book:
                    line.send[a] = line.receive[d] = free
                    line.moves[case.in_edge[k]] = begin
                    if case.in_shared[k]:
                        line.sent[u, d] = free
        if there > ready:
            ready = there
    return ready


@kernel(transfer_ticks, in_order_of_ends, through_ports, allocates=False, inline=True)
def note_arrivals(case: Case, line: Timeline, i: int) -> None:
    """Fill `line.ready` with the tick from which task i can start on each device, for all its producers are placed."""
    ready, arrival = line.ready, line.arrival
    m = len(ready)
    if case.port:
        in_order_of_ends(case, line, i)
        for d in range(m):
            ready[d] = through_ports(case, line, i, d, False)
        return
    for d in range(m):
        ready[d] = case.release[i]
    for k in range(case.in_start[i], case.in_start[i + 1]):
        u = case.in_source[k]
        payload = case.in_payload[k]
        a = line.device[u]
        end = line.end[u]
        arrival[0] = end
        for c in range(1, case.kinds[a]):
            arrival[c] = end + transfer_ticks(payload, case.latency[a, c], case.num[a, c], case.den[a, c])
        if case.kinds[a] == 2:
            # All links from there are alike: a loop without look-ups, which compiles to one over vectors.
            own, there = ready[a], arrival[1]
            for b in range(m):
                ready[b] = max(ready[b], there)
            ready[a] = max(own, end)
            continue
        for b in range(m):
            there = arrival[case.kind[a, b]]
            if there > ready[b]:
                ready[b] = there


@kernel(transfer_ticks, in_order_of_ends, through_ports, allocates=False, inline=True)
def arrival_on(case: Case, line: Timeline, i: int, d: int) -> int:
    """The tick from which task i can start on device d, for all its producers are placed."""
    if case.port:
        in_order_of_ends(case, line, i)
        return through_ports(case, line, i, d, False)
    ready: int = case.release[i]
    for k in range(case.in_start[i], case.in_start[i + 1]):
        u = case.in_source[k]
        a = line.device[u]
        there = line.end[u]
        if a != d:
            c = case.kind[a, d]
            there += transfer_ticks(case.in_payload[k], case.latency[a, c], case.num[a, c], case.den[a, c])
        if there > ready:
            ready = there
    return ready


@kernel(allocates=False, inline=True)
def stays_apart(case: Case, line: Timeline, g: int, d: int) -> bool:
    """Whether no group that must be apart from group g is on device d."""
    for k in range(case.apart_start[g], case.apart_start[g + 1]):  # noqa: SIM110 - Numba has no all() of a generator
        if line.home[case.apart[k]] == d:
            return False
    return True


@kernel(stays_apart, allocates=False, inline=True)
def may_take(case: Case, line: Timeline, g: int, d: int) -> bool:
    """Whether group g, not placed yet, may and can go to device d."""
    return bool(case.feasible[g, d]) and case.memory[g] <= line.room[d] and stays_apart(case, line, g, d)


@kernel(may_take, allocates=False, inline=True)
def open_to(case: Case, line: Timeline, i: int, d: int) -> bool:
    """Whether task i, not placed yet, may and can go to device d: its group's home, if it has one."""
    home = line.home[case.group[i]]
    return bool(home == d) if home >= 0 else may_take(case, line, case.group[i], d)


@kernel(allocates=False, inline=True)
def first_gap(gap_start: Int, gap_end: Int, count: int, ready: int, duration: int) -> int:
    """Index of the first of a device's gaps that has room for the duration at or after `ready`."""
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
def earliest(case: Case, line: Timeline, i: int, d: int, ready: int) -> tuple[int, int]:
    """The earliest start of task i on device d from `ready` on, and the gap that it lies in, for `occupy`."""
    ticks = case.duration[i, d]
    if ticks == 0:
        # What takes no time may also start where two tasks touch; only right after a producer is that looked for.
        if ready == 0:
            return ready, AT_END
        for k in range(case.in_start[i], case.in_start[i + 1]):
            u = case.in_source[k]
            if line.device[u] == d and line.end[u] == ready:
                return ready, AT_END
    gap = line.gaps[d] - 1
    if ticks <= line.longest[d]:
        gap = first_gap(line.gap_start[d], line.gap_end[d], line.gaps[d], ready, ticks)
    return max(ready, line.gap_start[d, gap]), gap


@kernel(in_order_of_ends, through_ports, allocates=False, inline=True)
def settle(case: Case, line: Timeline, i: int, d: int, start: int) -> None:
    """Put task i on device d from `start` on: its group goes there too, and with ports its inputs are sent."""
    g = case.group[i]
    if line.home[g] < 0:
        line.home[g] = d
        line.room[d] -= case.memory[g]
    if case.port:
        in_order_of_ends(case, line, i)
        through_ports(case, line, i, d, True)
    line.device[i], line.start[i] = d, start
    line.end[i] = start + case.duration[i, d]


@kernel(settle, allocates=False, inline=True)
def occupy(case: Case, line: Timeline, i: int, d: int, start: int, gap: int) -> None:
    """Put task i on device d from `start` on, inside the gap that `earliest` told; its group goes there too."""
    settle(case, line, i, d, start)
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


@kernel(settle, allocates=False, inline=True)
def append(case: Case, line: Timeline, i: int, d: int, start: int) -> None:
    """Put task i on device d from `start` on, after all that runs there; for heuristics that look for no gaps."""
    settle(case, line, i, d, start)
    line.free[d] = line.end[i]
