"""Problems with outputs that may share bytes, an exact search on one device, and a simulation of the bytes.

Nothing here is shared with the solvers: a choice of bases is tried for each task, and the rule is stated again.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from typing import Any

import placeopt as po
from placeopt.model.layout import build_layout
from tests.support.orders import schedules


def sharing_problem(seed: int, most: int = 5, devices: int = 1, tight: bool = True) -> po.Problem:
    """A few tasks, of which some may overwrite an input or view one; some devices have reserved bytes."""
    rng = random.Random(seed)
    n, step = rng.randint(3, most), rng.choice([1, 1, 4])
    edges = [(i, j) for j in range(n) for i in range(j) if rng.random() < 0.5]
    output = [step * rng.randint(1, 6) for _ in range(n)]
    shares: list[tuple[int, int, int, bool]] = []
    for j in range(n):
        bases = [i for i, k in edges if k == j and output[i] >= output[j]]
        rng.shuffle(bases)
        if bases and rng.random() < 0.4:
            base = bases.pop()
            shares.append((j, base, step * rng.randint(0, (output[base] - output[j]) // step), True))
        shares += [(j, base, 0, False) for base in bases if rng.random() < 0.7]
    top = sum(output)
    reserved = [[(2, 5), (8, 9)] if not shares or rng.random() < 0.2 else [] for _ in range(devices)]
    least = max(output) + 9
    capacity = [rng.randint(least, max(least, top // 2 if tight else top)) for _ in range(devices)]
    return po.build_problem(
        task_names=[f"t{i}" for i in range(n)], device_names=[f"d{d}" for d in range(devices)],
        duration=[[rng.choice([0, 1, 2, 3]) for _ in range(devices)] for _ in range(n)], edges=edges,
        latency=[[int(a != b) for a in range(devices)] for b in range(devices)],
        scratch=[rng.choice([0, 0, rng.randint(1, 4)]) for _ in range(n)],
        resident=[rng.choice([0, 0, 0, rng.randint(1, 3)]) for _ in range(n)], memory_model="peak", alignment=step,
        layout=build_layout(output, shares, reserved), capacity=capacity,
    )  # fmt: skip


def storages(problem: po.Problem, schedule: po.Schedule) -> Iterator[list[tuple[int, int, int]]]:
    """For each choice of bases that the rule allows on one device, the buffers of outputs: begin, end, size."""
    n, layout = problem.n_tasks, problem.layout
    assert layout is not None
    sizes = layout.output.tolist()
    edges = list(zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True))
    start = schedule.start.tolist()
    end = [start[i] + int(problem.duration[i, 0]) for i in range(n)]

    def needed(i: int, without: int = -1) -> int:
        return max([end[i], *(end[k] for s, k in edges if s == i and k != without)])

    life = [(start[i], needed(i)) for i in range(n)]
    ways: list[list[Any]] = [[None] for _ in range(n)]
    for task, base, _, view in layout.rows():
        if life[task][0] < life[task][1] and life[base][1] > start[task]:
            ways[task].append((base, view))
    for choice in product(*ways):

        def line(i: int, choice: Any = choice) -> list[int]:
            return [i] if choice[i] is None else [i, *line(choice[i][0])]

        lines = [line(i) for i in range(n)]
        wrong = any(
            choice[j] is not None and not choice[j][1] and lines[i][-1] == lines[j][-1] and j not in lines[i]
            and needed(i, j) > start[j]
            for i in range(n) for j in range(n) if i != j
        )  # fmt: skip
        if not wrong:
            sets: dict[int, list[int]] = {}
            for i in range(n):
                sets.setdefault(lines[i][-1], []).append(i)
            yield [(start[r], max(life[i][1] for i in each), sizes[r]) for r, each in sets.items()]


def has_plan(problem: po.Problem) -> bool:
    """Whether some order and some choice of bases has offsets, on one device."""
    assert problem.layout is not None
    fixed = problem.layout.reserved(0)
    for schedule in schedules(problem):
        n, start = problem.n_tasks, schedule.start.tolist()
        last = max(1, *(start[i] + int(problem.duration[i, 0]) for i in range(n)))
        others = [(0, last, int(problem.resident[i])) for i in range(n)]
        others += [(start[i], start[i] + int(problem.duration[i, 0]), int(problem.scratch[i])) for i in range(n)]
        for outputs in storages(problem, schedule):
            rows = [row for row in [*outputs, *others] if row[1] > row[0] and row[2]]
            step = [problem.alignment or 1] * len(rows) + [1] * len(fixed)
            given = [None] * len(rows) + [begin for begin, _ in fixed]
            rows += [(0, last, end - begin) for begin, end in fixed]
            lower, upper, size = ([row[k] for row in rows] for k in range(3))
            found = po.allocate(
                lower=lower, upper=upper, size=size, alignment=step, fixed=given, capacity=int(problem.capacity[0]),
                workers=1,
            )  # fmt: skip
            assert found.fits is not None
            if found.fits:
                return True
    return False


def corrupted(problem: po.Problem, schedule: po.Schedule) -> list[str]:
    """Reads of wrong bytes, found by a simulation of what each byte of each device holds at each tick.

    A task writes its buffers at its start, a view that lies in its base writes nothing, and an output that overwrites
    may destroy what the task itself reads. Everything else that is read must be as it was written.
    """
    assert problem.layout is not None
    assert schedule.offsets is not None
    n, sizes = problem.n_tasks, problem.layout.output.tolist()
    device, start, low = schedule.device.tolist(), schedule.start.tolist(), schedule.offsets.output.tolist()
    end = [start[i] + int(problem.duration[i, device[i]]) for i in range(n)]
    edges = list(zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True))
    held: list[dict[int, object]] = [{} for _ in range(problem.n_devices)]
    content: list[list[object]] = [[] for _ in range(n)]
    faults = []
    freed = [max([end[i], *(end[k] for s, k in edges if s == i)]) for i in range(n)]
    for i in range(n):
        at = int(schedule.offsets.resident[i])
        held[device[i]].update((at + b, (i, "resident", b)) for b in range(int(problem.resident[i])))
    rank = {int(i): k for k, i in enumerate(problem.order.tolist())}
    bases = {(j, i): (at, view) for j, i, at, view in problem.layout.rows()}
    for tick in range(max(end) + 3):
        for j in sorted((j for j in range(n) if start[j] == tick), key=rank.__getitem__):
            memory = held[device[j]]
            views = [
                i for i in range(n)
                if (j, i) in bases and bases[j, i][1] and device[i] == device[j] and low[j] == low[i] + bases[j, i][0]
            ]  # fmt: skip
            if (
                views
                and [memory.get(low[j] + b) for b in range(sizes[j])]
                == content[views[0]][bases[j, views[0]][0] : bases[j, views[0]][0] + sizes[j]]
            ):
                content[j] = content[views[0]][bases[j, views[0]][0] : bases[j, views[0]][0] + sizes[j]]
            else:
                content[j] = [(j, b) for b in range(sizes[j])]
            if freed[j] > start[j]:
                memory.update((low[j] + b, each) for b, each in enumerate(content[j]))
            if problem.scratch[j] and end[j] > start[j]:
                at = int(schedule.offsets.scratch[j])
                memory.update((at + b, (j, "scratch", b)) for b in range(int(problem.scratch[j])))
        for i, k in edges:
            away = device[i] != device[k]
            until = end[i] + int(problem.latency[device[i], device[k]]) if away else end[k]
            begin = end[i] if away else start[k]
            own = any(
                (k, other) in bases and not bases[k, other][1] and low[k] < low[i] + sizes[i]
                and low[i] < low[k] + sizes[k]
                for other in range(n)
            )  # fmt: skip
            if begin <= tick < until and (away or not own):
                memory = held[device[i]]
                if [memory.get(low[i] + b) for b in range(sizes[i])] != content[i]:
                    faults.append(f"at {tick}, {k} does not read the output of {i}")
    return faults + [
        f"the resident bytes of {i} are overwritten"
        for i in range(n)
        for b in range(int(problem.resident[i]))
        if held[device[i]].get(int(schedule.offsets.resident[i]) + b) != (i, "resident", b)
    ]
