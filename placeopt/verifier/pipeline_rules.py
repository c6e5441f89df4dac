"""The rules of pipelines, one function each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from placeopt.verifier.pipeline import PipelineView, counts_stages, sound_stages
from placeopt.verifier.report import Rule, Violation
from placeopt.verifier.view import View, overlaps


def stage(view: View) -> Iterator[Violation]:
    """stage: stages, replicas and recomputation are as the pipeline allows.

    If stages are limited or counted, the tasks of a stage share a device and a direction, edges lead to no lower
    number, and a device has at most its number of segments in each direction. Otherwise, numbers of stages mean
    nothing. Replicas run no other tasks and equal their leader; there are at most as many as allowed. If devices with
    tasks share machines, those of one include those of the other.
    """
    pipeline, schedule = view.problem.pipeline, view.schedule
    if pipeline is None:
        if schedule.stages is not None:
            yield Violation(Rule.STAGE, "the schedule has stages, but the problem is not a pipeline")
        return
    if not view.runs.all():
        return
    yield from _machines(view)
    if schedule.stages is None:
        if counts_stages(pipeline) and view.problem.n_tasks:
            yield Violation(Rule.STAGE, "the schedule does not number its stages; the pipeline limits or counts them")
        return
    if sound_stages(view) is None:
        n, m = view.problem.n_tasks, view.problem.n_devices
        message = f"the arrays of stages are not sound; expected {n} numbers, and {m} leaders that exist"
        yield Violation(Rule.STAGE, message)
        return
    found = PipelineView(view)
    if counts_stages(pipeline):
        yield from _numbers(view, found)
        yield from _order(view, found)
    yield from _teams(view, found)
    if not pipeline.recompute:
        for d in np.flatnonzero(found.again).tolist():
            message = f"{view.problem.device_names[d]} computes outputs again; the pipeline does not allow it"
            yield Violation(Rule.STAGE, message, device=d)


def _machines(view: View) -> Iterator[Violation]:
    assert view.problem.pipeline is not None
    machines, first = view.problem.pipeline.machines, dict[int, int]()
    for i, d in enumerate(view.device.tolist() if machines is not None else []):
        first.setdefault(d, i)
    for (a, i), (b, j) in combinations(sorted(first.items()), 2):
        assert machines is not None
        one, other = set(machines[a]), set(machines[b])
        if one & other and not (one <= other or other <= one):
            names = view.problem.device_names
            message = (
                f"{names[a]} and {names[b]} have tasks, and neither includes all devices of the other; expected one of "
                "them without tasks"
            )
            yield Violation(Rule.STAGE, message, task=i, other_task=j, device=a)


def _numbers(view: View, found: PipelineView) -> Iterator[Violation]:
    assert found.number is not None
    first: dict[int, int] = {}
    for i, label in enumerate(found.number):
        other = first.setdefault(label, i)
        if found.device[i] != found.device[other] or found.backward[i] != found.backward[other]:
            message = (
                f"{view.task(i)} and {view.task(other)} are both in stage {label}; expected one device and direction"
            )
            yield Violation(Rule.STAGE, message, task=i, other_task=other, device=found.device[i])


def _order(view: View, found: PipelineView) -> Iterator[Violation]:
    assert found.number is not None
    number, names = found.number, view.problem.device_names
    labels: dict[tuple[int, bool], set[int]] = defaultdict(set)
    for i, label in enumerate(number):
        labels[found.device[i], found.backward[i]].add(label)
    for edge, (a, b) in enumerate(zip(found.source, found.target, strict=True)):
        if number[a] > number[b]:
            message = f"{view.edge(edge)} leads from stage {number[a]} to {number[b]}; expected no lower number"
            yield Violation(Rule.STAGE, message, task=a, other_task=b, edge=edge, amount=number[a] - number[b])
    for (d, backward), used in sorted(labels.items()):
        most = int(found.pipeline.segments[d])
        if len(used) > most:
            what = f"{len(used)} {'backward ' if backward else ''}stages"
            message = f"{names[d]} has {what}, and may have {most}"
            yield Violation(Rule.STAGE, message, device=d, amount=len(used) - most)


def _teams(view: View, found: PipelineView) -> Iterator[Violation]:
    names, leader = view.problem.device_names, found.leader
    busy = set(found.device)
    for d, other in enumerate(leader):
        if d == other:
            continue
        replica = f"{names[d]} is a replica of {names[other]}"
        if leader[other] != other:
            message = f"{replica}, which is a replica itself; expected the device whose tasks both run"
            yield Violation(Rule.STAGE, message, device=d)
        if d in busy:
            message = f"{replica} and has tasks of its own; expected none"
            yield Violation(Rule.STAGE, message, task=found.device.index(d), device=d)
        if not equal_devices(view, d, other):
            yield Violation(Rule.STAGE, f"{replica}, from which it differs; expected devices of one class", device=d)
    for d, size in sorted(found.team.items()):
        if size > found.pipeline.replicas:
            message = f"{size} devices run the tasks of {names[d]}; the pipeline allows {found.pipeline.replicas}"
            yield Violation(Rule.STAGE, message, device=d, amount=size - found.pipeline.replicas)


def equal_devices(view: View, a: int, b: int) -> bool:
    """Whether swapping two devices changes nothing."""
    problem, pipeline = view.problem, view.problem.pipeline
    assert pipeline is not None
    columns = [problem.duration, problem.feasible, problem.relocation, problem.price]
    columns += [] if problem.resources is None else [problem.resources.need]
    rows = (
        problem.capacity, problem.power_num, problem.power_den, pipeline.overlap, pipeline.full_duplex,
        pipeline.free_transfers, pipeline.segments, pipeline.launch,
    )  # fmt: skip
    if any((table[:, a] != table[:, b]).any() for table in columns) or any(row[a] != row[b] for row in rows):
        return False
    swapped = np.arange(problem.n_devices)
    swapped[[a, b]] = b, a
    links = (
        problem.latency, problem.byte_ticks_num, problem.byte_ticks_den,
        problem.byte_energy_num, problem.byte_energy_den,
    )  # fmt: skip
    apart = ~np.eye(problem.n_devices, dtype=np.bool_)
    return all((link == link[np.ix_(swapped, swapped)])[apart].all() for link in links)


def repetition(view: View) -> Iterator[Violation]:
    """period: repeated every period, no two operations take a track of a device at the same time.

    Data begins to leave when its producer ends, or later. It begins to arrive when it begins to leave or later, and has
    not arrived before it has left. Replicas are synchronised after the tasks of their device.
    """
    if view.problem.pipeline is None or not view.runs.all():
        return
    found = PipelineView(view)
    yield from _causes(view, found)
    rows: dict[tuple[int, str], list[int]] = defaultdict(list)
    for place, each in enumerate(found.operations):
        for machine in found.machines(each.device):
            for track in each.tracks:
                rows[machine, track].append(place)
    for places in (places for _, places in sorted(rows.items())):
        d = found.operations[places[0]].device
        length = max(found.team[d], 1) * found.period
        if length == 0:
            continue
        inside = [(found.operations[k].begin % length, found.operations[k].ticks, k) for k in places]
        # Once more, a round later: there an interval that reaches beyond the round meets those at its beginning.
        inside += [(begin + length, ticks, k) for begin, ticks, k in inside]
        begin = np.array([each[0] for each in inside], dtype=object)
        end = np.array([each[0] + each[1] for each in inside], dtype=object)
        named: set[tuple[int, int]] = set()
        for late, busy in overlaps(np.zeros(len(inside), dtype=np.int64), begin, end):
            one, other = (found.operations[inside[k][2]] for k in (late, busy))
            d = one.device
            if (inside[late][2], inside[busy][2]) in named:
                continue
            named.add((inside[late][2], inside[busy][2]))
            early = int(end[busy] - begin[late])
            message = (
                f"{one.name} starts at tick {one.begin} on {view.problem.device_names[d]}, which serves "
                f"{other.name} of another run, a multiple of {length} ticks apart, for {early} more ticks"
            )
            yield Violation(Rule.PERIOD, message, task=one.task, device=d, edge=one.edge, amount=early)


def _causes(view: View, found: PipelineView) -> Iterator[Violation]:
    for group in found.senders:
        begin, ticks = min(found.sent[edge] for edge in group), found.send_ticks(group)
        for edge in group:
            task, other = view.ends(edge)
            ended = int(view.end[task])
            if found.sent[edge] != begin:
                message = (
                    f"{view.edge(edge)} is sent at tick {found.sent[edge]}; expected {begin}: the output is sent once"
                )
                yield Violation(Rule.PERIOD, message, task=task, other_task=other, edge=edge)
            if begin < ended:
                message = f"{view.edge(edge)} is sent at tick {begin}, before its producer ends at tick {ended}"
                yield Violation(Rule.PERIOD, message, task=task, other_task=other, edge=edge, amount=ended - begin)
            arrival, left = found.received[edge] + int(view.ticks[edge]), begin + ticks
            if arrival < left:
                message = f"{view.edge(edge)} has arrived at tick {arrival}, before it has left at tick {left}"
                yield Violation(Rule.PERIOD, message, task=task, other_task=other, edge=edge, amount=left - arrival)
    for each in found.operations:
        if each.begin < 0 and each.task is not None and each.name != view.task(each.task):
            message = f"{each.name} starts at tick {each.begin}, before tick 0"
            yield Violation(Rule.PERIOD, message, task=each.task, device=each.device, amount=-each.begin)
    for d in found.synchronised():
        assert found.stages is not None
        begin = int(found.stages.synchronise[d])
        last = max(int(view.end[i]) for i, where in enumerate(found.device) if where == d)
        if begin < last:
            message = (
                f"{view.problem.device_names[d]} synchronises at tick {begin}, before its tasks end at tick {last}"
            )
            yield Violation(Rule.PERIOD, message, device=d, amount=last - begin)
