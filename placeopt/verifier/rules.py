"""The rules, one function each; `placeopt.verifier` defines them in a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np

from placeopt.model.arrays import Bool
from placeopt.model.problem import UNLIMITED, Problem
from placeopt.model.schedule import Schedule, Transfers
from placeopt.verifier.addresses import address
from placeopt.verifier.objective import METRICS
from placeopt.verifier.pipeline import needed_memory
from placeopt.verifier.pipeline_rules import repetition, stage
from placeopt.verifier.report import Rule, Violation
from placeopt.verifier.view import View, books_transfers, overlaps, resource_uses, swap_ticks, well_formed


def malformed(problem: Problem, schedule: Schedule) -> Iterator[Violation]:
    """placement: devices and starts are arrays with one entry per task (otherwise nothing else is checked)."""
    for name, array in (("device", schedule.device), ("start", schedule.start)):
        if array.shape != (problem.n_tasks,):
            expected = f"expected ({problem.n_tasks},), one entry per task"
            yield Violation(Rule.PLACEMENT, f"the schedule's {name} array has shape {array.shape}; {expected}")


def _placement(view: View) -> Iterator[Violation]:
    """placement: 0 <= device < m for every task."""
    m = view.problem.n_devices
    expected = f"expected 0 to {m - 1}" if m else "the problem has no devices"
    for task in np.flatnonzero(~view.placed).tolist():
        message = f"{view.task(task)} has device {view.schedule.device[task]}; {expected}"
        yield Violation(Rule.PLACEMENT, message, task=task)


def _feasibility(view: View) -> Iterator[Violation]:
    """feasibility: the task may run on its device."""
    for task in np.flatnonzero(view.placed & ~view.runs).tolist():
        message = f"{view.task(task)} may not run on {view.on(task)}"
        yield Violation(Rule.FEASIBILITY, message, task=task, device=int(view.device[task]))


def _start(view: View) -> Iterator[Violation]:
    """start: start >= 0."""
    for task in np.flatnonzero(view.placed & (view.start < 0)).tolist():
        start = int(view.start[task])
        message = f"{view.task(task)} starts at tick {start}, before tick 0"
        yield Violation(Rule.START, message, task=task, device=int(view.device[task]), amount=-start)


def _release(view: View) -> Iterator[Violation]:
    """release: start >= release, for tasks with a release time after tick 0 (`start` covers the others)."""
    release = view.problem.release
    early = view.placed & (release > 0) & (view.start < release)
    for task in np.flatnonzero(early).tolist():
        start, earliest = int(view.start[task]), int(release[task])
        message = (
            f"{view.task(task)} starts at tick {start}, before its release time, tick {earliest}: "
            f"{_ticks(earliest - start)} too early"
        )
        yield Violation(Rule.RELEASE, message, task=task, device=int(view.device[task]), amount=earliest - start)


def _swap(view: View) -> Iterator[Violation]:
    """swap: start >= swap time of the device: sum over its tiers beyond the first of ceil(bytes * num / den).

    The bytes are those of all its tasks; they fill the tiers in order.
    """
    for device, swapped in enumerate(swap_ticks(view)):
        early = view.placed & (view.device == device) & (view.start < swapped) if swapped else np.zeros(0)
        for task in np.flatnonzero(early).tolist():
            start = int(view.start[task])
            message = (
                f"{view.task(task)} starts at tick {start} on {view.on(task)}, which swaps until tick {swapped}: "
                f"{_ticks(swapped - start)} too early"
            )
            yield Violation(Rule.SWAP, message, task=task, device=device, amount=swapped - start)


def _unavailable(view: View) -> Iterator[Violation]:
    """unavailable: no task overlaps a window in which its device is unavailable, as `overlap` defines it.

    Reported for each task with the first such window; the amount is the number of ticks until it ends.
    """
    windows = view.problem.unavailable
    for device in range(0 if windows is None else view.problem.n_devices):
        assert windows is not None
        where = slice(windows.row[device], windows.row[device + 1])
        closed = list(zip(windows.begin[where].tolist(), windows.end[where].tolist(), strict=True))
        for task in np.flatnonzero(view.placed & (view.device == device)).tolist() if closed else ():
            start, end = int(view.start[task]), int(view.end[task])
            found = next(((begin, until) for begin, until in closed if start < until and begin < end), None)
            if found is not None:
                message = (
                    f"{view.task(task)} runs from tick {start} to {end} on {view.on(task)}, which is unavailable "
                    f"from tick {found[0]} to {found[1]}: {_ticks(found[1] - start)} too early"
                )
                yield Violation(Rule.UNAVAILABLE, message, task=task, device=device, amount=found[1] - start)


def _resource(view: View) -> Iterator[Violation]:
    """resource: the tasks that run at a tick, start <= tick < end, use no more than the capacity.

    Reported for each task at whose start they use more; the amount is in units of the resource.
    """
    resources = view.problem.resources
    for r in () if resources is None else np.flatnonzero(resources.renewable).tolist():
        assert resources is not None
        used, capacity = resource_uses(view, r), int(resources.capacity[r])
        tasks = [task for task in used if view.start[task] < view.end[task]]
        sides = ((0, view.end), (1, view.start))
        events = sorted((int(when[task]), side, task) for task in tasks for side, when in sides)
        running, reported = 0, dict[int, tuple[int, int]]()
        for tick, begins, task in events:
            running += used[task] if begins else -used[task]
            if begins and running > capacity:
                reported[tick] = task, running  # the last start of a tick has seen all that begin then
        for tick, (task, needed) in reported.items():
            message = (
                f"at tick {tick}, when {view.task(task)} starts, tasks use {resources.text(r, needed)} of "
                f"{resources.names[r]}, which has {resources.text(r, capacity)}"
            )
            over = needed - capacity
            yield Violation(Rule.RESOURCE, message, task=task, device=int(view.device[task]), amount=over)


def _budget(view: View) -> Iterator[Violation]:
    """budget: the tasks of a schedule use no more than the capacity in all; the amount is in units of the budget."""
    resources = view.problem.resources
    for r in () if resources is None else np.flatnonzero(~resources.renewable).tolist():
        assert resources is not None
        used, capacity = sum(resource_uses(view, r).values()), int(resources.capacity[r])
        if used > capacity:
            message = (
                f"tasks use {resources.text(r, used)} of {resources.names[r]} in all, which has "
                f"{resources.text(r, capacity)}"
            )
            yield Violation(Rule.BUDGET, message, amount=used - capacity)


def _deadline(view: View) -> Iterator[Violation]:
    """deadline: end <= deadline, for tasks with a deadline."""
    deadline = view.problem.deadline
    late = view.placed & (deadline != UNLIMITED) & (view.end > deadline)
    for task in np.flatnonzero(late).tolist():
        end, latest = int(view.end[task]), int(deadline[task])
        message = (
            f"{view.task(task)} ends at tick {end}, after its deadline, tick {latest}: {_ticks(end - latest)} too late"
        )
        yield Violation(Rule.DEADLINE, message, task=task, device=int(view.device[task]), amount=end - latest)


def _overlap(view: View) -> Iterator[Violation]:
    """overlap: of two tasks on a device that is not parallel, one ends before the other starts.

    Reported for each task that starts while an earlier one runs, with the one that ends last; the amount is the number
    of ticks by which the task starts too early.
    """
    resources = view.problem.resources
    tasks = np.flatnonzero(view.placed)
    if resources is not None:
        tasks = tasks[~resources.parallel[view.device[tasks]]]
    for late, busy in overlaps(view.device[tasks], view.start[tasks], view.end[tasks]):
        task, other = int(tasks[late]), int(tasks[busy])
        start, free = int(view.start[task]), int(view.end[other])
        message = (
            f"{view.task(task)} starts at tick {start} on {view.on(task)}, where {view.task(other)} runs until "
            f"tick {free}: {_ticks(free - start)} too early"
        )
        device = int(view.device[task])
        yield Violation(Rule.OVERLAP, message, task=task, other_task=other, device=device, amount=free - start)


def _setup(view: View) -> Iterator[Violation]:
    """setup: from the end of the task before it on the device to the start of a task, there is time for the setup.

    It depends on their families; before the first task, on the family that the device is set up for at tick 0. Tasks of
    no duration do not count. Reported for each task that starts too early, with the task before it.
    """
    setups = view.problem.setups
    if setups is None:
        return
    before: dict[int, int] = {}
    for task in sorted(np.flatnonzero(view.runs & (view.duration > 0)).tolist(), key=lambda i: (view.start[i], i)):
        device = int(view.device[task])
        station = int(setups.station[device])
        last = before.get(station)
        table = setups.ticks[setups.kind[device]]
        ticks = int(table[setups.initial[device] if last is None else setups.family[last], setups.family[task]])
        start, end = int(view.start[task]), 0 if last is None else int(view.end[last])
        if ticks and start < end + ticks:
            since = "tick 0" if last is None else f"the end of {view.task(last)} at tick {end}"
            message = (
                f"{view.task(task)} starts at tick {start} on {view.on(task)}, which needs {_ticks(ticks)} for its "
                f"setup after {since}: {_ticks(end + ticks - start)} too early"
            )
            amount = end + ticks - start
            yield Violation(Rule.SETUP, message, task=task, other_task=last, device=device, amount=amount)
        before[station] = task


def _precedence(view: View) -> Iterator[Violation]:
    """precedence: for each edge, the consumer starts no earlier than the data arrives.

    On one device the data arrives when the producer ends. Between devices it arrives latency + ceil(payload * num /
    den) ticks after the transfer starts: at the producer's end without contention, otherwise as in the table of
    transfers.
    """
    late = view.known & (view.start[view.problem.edge_target] < view.arrival)
    for edge in np.flatnonzero(late).tolist():
        other, task = view.ends(edge)
        start, arrival = int(view.start[task]), int(view.arrival[edge])
        event = f"its producer {view.task(other)} ends at tick {arrival}"
        if view.moves[edge]:
            sent = f"sent from {view.on(other)} at tick {view.sent[edge]}"
            event = f"the data of {view.task(other)}, {sent}, arrives at tick {arrival}"
        device, early = int(view.device[task]), arrival - start
        message = (
            f"{view.task(task)} starts at tick {start} on {view.on(task)}, where {event}: {_ticks(early)} too early"
        )
        yield Violation(Rule.PRECEDENCE, message, task=task, other_task=other, device=device, edge=edge, amount=early)


def _transfer(view: View) -> Iterator[Violation]:
    """transfer: with contention, shared links or a pipeline, the table has one row for each required transfer.

    It has no other row. A row names the edge that moves, the lowest one if a transfer serves several, and starts no
    earlier than the producer ends. Otherwise, there is no table.
    """
    problem, table = view.problem, view.schedule.transfers
    needed = view.carrier == np.arange(problem.n_edges)
    if not books_transfers(problem):
        if table is not None:
            yield Violation(Rule.TRANSFER, "the schedule has a table of transfers, but the problem has no contention")
    elif table is None:
        count = int(needed.sum())
        rows = "1 row" if count == 1 else f"{count} rows"
        what = "shared links require" if problem.contention == "none" else "port contention requires"
        what = what if problem.pipeline is None else "a pipeline requires"
        message = f"the schedule has no table of transfers; {what} one with {rows}"
        yield Violation(Rule.TRANSFER, message)
    elif not well_formed(table):
        shapes = f"{table.edge.shape} for edge and {table.start.shape} for start"
        message = f"the table of transfers has shapes {shapes}; expected two arrays of equal length"
        yield Violation(Rule.TRANSFER, message)
    else:
        yield from _missing_and_early_transfers(view, needed)
        yield from _needless_transfers(view, table, needed)


def _missing_and_early_transfers(view: View, needed: Bool) -> Iterator[Violation]:
    for edge in np.flatnonzero(needed & ~view.booked).tolist():
        source, target = view.ends(edge)
        message = f"{view.edge(edge)} needs a transfer from {view.on(source)} to {view.on(target)} and has none"
        yield Violation(Rule.TRANSFER, message, task=source, other_task=target, edge=edge)
    for edge in np.flatnonzero(view.booked & (view.sent < view.end[view.problem.edge_source])).tolist():
        source, target = view.ends(edge)
        sent, end = int(view.sent[edge]), int(view.end[source])
        message = (
            f"the transfer of {view.edge(edge)} starts at tick {sent}, before its producer ends at tick {end}: "
            f"{_ticks(end - sent)} too early"
        )
        yield Violation(Rule.TRANSFER, message, task=source, other_task=target, edge=edge, amount=end - sent)


def _needless_transfers(view: View, table: Transfers, needed: Bool) -> Iterator[Violation]:
    edges, counts = np.unique(table.edge, return_counts=True)
    for edge, rows in zip(edges.tolist(), counts.tolist(), strict=True):
        if not 0 <= edge < view.problem.n_edges:
            message = f"a transfer names edge {edge}; the problem has {view.problem.n_edges} edges"
            yield Violation(Rule.TRANSFER, message, edge=edge)
            continue
        source, target = view.ends(edge)
        if not view.known[edge] or (needed[edge] and rows == 1):
            continue
        if needed[edge]:
            message = f"{view.edge(edge)} has {rows} transfers; expected 1"
        elif view.moves[edge]:
            carrier = view.edge(int(view.carrier[edge]))
            message = f"{view.edge(edge)} is served by the transfer of {carrier} and also has a separate one"
        else:
            message = f"{view.edge(edge)} stays on {view.on(source)} but has a transfer"
        yield Violation(Rule.TRANSFER, message, task=source, other_task=target, edge=edge)


def _port(view: View) -> Iterator[Violation]:
    """port: of two transfers that a device sends, one ends before the other starts; likewise for two that it receives.

    Under `half_duplex`, likewise for one that it sends and one that it receives.

    Reported for each transfer that starts while an earlier one occupies the port, with the one that ends last; the
    amount is the number of ticks by which the transfer starts too early.
    """
    if view.problem.contention == "none":
        return  # no ports; in a pipeline (period), a device may be busy with other operations too
    booked = np.flatnonzero(view.booked)
    sending, receiving = view.device[view.problem.edge_source[booked]], view.device[view.problem.edge_target[booked]]
    ports = [(booked, sending), (booked, receiving)]
    if view.problem.contention == "half_duplex":
        ports = [(np.concatenate((booked, booked)), np.concatenate((sending, receiving)))]
    for edges, port in ports:
        sent, arrival = view.sent[edges], view.arrival[edges]
        for late, busy in overlaps(port, sent, arrival):
            edge, other, device = int(edges[late]), int(edges[busy]), int(port[late])
            start, free = int(sent[late]), int(arrival[busy])
            verb = "sends" if device == view.device[view.problem.edge_source[other]] else "receives"
            message = (
                f"the transfer of {view.edge(edge)} starts at tick {start}, but {view.problem.device_names[device]} "
                f"{verb} the transfer of {view.edge(other)} until tick {free}: {_ticks(free - start)} too early"
            )
            task, sender, early = view.ends(edge)[0], view.ends(other)[0], free - start
            yield Violation(Rule.PORT, message, task=task, other_task=sender, device=device, edge=edge, amount=early)


def _link(view: View) -> Iterator[Violation]:
    """link: of two transfers over a shared link, one ends before the other starts.

    A medium carries the transfers within its group, but not between modes of one device. An uplink carries those
    between a device in its group and one outside: with full duplex, the rule applies to transfers in the same
    direction. Reported as by `port`.
    """
    links, edges = view.problem.shared_links, np.flatnonzero(view.booked)
    sender, receiver = (view.device[end[edges]] for end in (view.problem.edge_source, view.problem.edge_target))
    for k, name in enumerate(() if links is None else links.names):
        assert links is not None
        leaves, stays = links.member[k, sender], links.member[k, receiver]
        over = leaves != stays
        if links.medium[k]:
            over = leaves & stays & (links.home[sender] != links.home[receiver])
        direction = np.zeros(int(over.sum()), dtype=np.int64) if links.half[k] else leaves[over].astype(np.int64)
        mine = edges[over]
        for late, busy in overlaps(direction, view.sent[mine], view.arrival[mine]):
            edge, other = int(mine[late]), int(mine[busy])
            start, free = int(view.sent[edge]), int(view.arrival[other])
            message = (
                f"the transfer of {view.edge(edge)} starts at tick {start}, but {name} carries the transfer of "
                f"{view.edge(other)} until tick {free}: {_ticks(free - start)} too early"
            )
            task, sent_by, early = view.ends(edge)[0], view.ends(other)[0], free - start
            yield Violation(Rule.LINK, message, task=task, other_task=sent_by, edge=edge, amount=early)


def _memory(view: View) -> Iterator[Violation]:
    """memory: a device with a capacity needs no more than that.

    Under `sum` a device needs the resident, output and scratch bytes of all its tasks. Under `peak` it needs the
    maximum over ticks of the live bytes: `resident` always, `scratch` in [start, end), `output` in [start, freed). Here
    freed is the latest of the task's own end, the ends of its consumers on the device, and the arrivals at other
    devices.
    """
    for device, (used, tick) in enumerate(needed_memory(view)):
        name, capacity = view.problem.device_names[device], int(view.problem.capacity[device])
        if capacity != UNLIMITED and used > capacity:
            when = f" at tick {tick}" if view.problem.memory_model == "peak" else ""
            message = f"{name} needs {used} bytes{when} but has {capacity}: {used - capacity} too many"
            yield Violation(Rule.MEMORY, message, device=device, amount=used - capacity)


def _colocation(view: View) -> Iterator[Violation]:
    """colocation: every task is on the device of its group's first task."""
    tasks = np.flatnonzero(view.placed)
    _, first, member = np.unique(view.problem.group[tasks], return_index=True, return_inverse=True)
    leader = tasks[first][member]
    for position in np.flatnonzero(view.device[tasks] != view.device[leader]).tolist():
        task, other = int(tasks[position]), int(leader[position])
        message = (
            f"{view.task(task)} is on {view.on(task)}; it must share a device with {view.task(other)}, "
            f"which is on {view.on(other)}"
        )
        yield Violation(Rule.COLOCATION, message, task=task, other_task=other, device=int(view.device[task]))


def _separation(view: View) -> Iterator[Violation]:
    """separation: the two tasks of each pair are on different devices."""
    first, second = view.problem.separation.T
    together = view.placed[first] & view.placed[second] & (view.device[first] == view.device[second])
    for task, other in view.problem.separation[together].tolist():
        message = (
            f"{view.task(task)} and {view.task(other)} are both on {view.on(task)}; they must be on different devices"
        )
        yield Violation(Rule.SEPARATION, message, task=task, other_task=other, device=int(view.device[task]))


def claim_broken(
    problem: Problem, objective: Sequence[int | Fraction], claim: Sequence[int | Fraction]
) -> Iterator[Violation]:
    """objective: the claim equals the recomputed value on every level."""
    if len(claim) != len(objective):
        expected = f"{len(objective)}, one number for each level of the objective ({problem.objective})"
        message = f"the claim has length {len(claim)}; expected {expected}"
        yield Violation(Rule.OBJECTIVE, message)
        return
    for level, (said, value) in enumerate(zip(claim, objective, strict=True), start=1):
        if said != value:
            off = value - said
            message = f"level {level} of the objective ({problem.objective}) is {value}; the claim states {said}"
            yield Violation(Rule.OBJECTIVE, message, amount=abs(int(off)) if off % 1 == 0 else None)


RULES: tuple[Callable[[View], Iterator[Violation]], ...] = (
    _placement,
    _feasibility,
    _start,
    _release,
    _swap,
    _unavailable,
    _resource,
    _budget,
    _deadline,
    _overlap,
    _setup,
    _precedence,
    _transfer,
    _port,
    _link,
    _memory,
    address,
    _colocation,
    _separation,
    stage,
    repetition,
)


def limits_broken(view: View) -> Iterator[Violation]:
    """limit: no metric exceeds its limit; the amount is in the unit of the metric."""
    for metric, most in view.problem.limits:
        value = METRICS[metric](view)
        if value > most:
            yield Violation(Rule.LIMIT, f"{metric} is {value}, above its limit of {most}", amount=value - most)


def _ticks(amount: int) -> str:
    return "1 tick" if amount == 1 else f"{amount} ticks"
