"""Random pipelines for tests."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import placeopt as po
from placeopt.model.pipeline import UNBOUNDED
from placeopt.model.schedule import Stages
from placeopt.model.stages import rules, trivial_stages
from placeopt.simulation.pipelines import periodic_schedule, stage_numbers

PERIOD = po.Objective(((po.Term("period"),),))


def random_pipeline(seed: int, *, contiguous: bool | None = None) -> po.Problem:
    """A tiny pipeline with any rules; in training, backward edges are the forward edges, reversed."""
    draw = random.Random(seed)
    n, m = draw.randint(1, 6), draw.randint(1, 4)
    training = draw.random() < 0.4
    ahead = (n + 1) // 2 if training else n
    edges = [(i, j) for i in range(ahead) for j in range(i + 1, ahead) if draw.random() < 0.4]
    forward = list(range(ahead)) + list(range(n - ahead))
    if training:
        edges += [(j + ahead, i + ahead) for i, j in edges if j + ahead < n]
        edges += [(i - ahead, i) for i in range(ahead, n) if draw.random() < 0.7]
    one = draw.random() < 0.5 if contiguous is None else contiguous
    rules: dict[str, Any] = {
        "overlap": [draw.random() < 0.4] * m,
        "full_duplex": draw.random() < 0.4,
        "free_transfers": [draw.random() < 0.15 for _ in range(m)],
        "segments": 1 if one else draw.choice([None, 2]),
        "launch": draw.choice([0, 0, 3]),
        "gradient": [draw.choice([0, 3, 8]) for _ in range(n)],
        "multicast": draw.random() < 0.6,
        "replicas": draw.choice([1, 1, 2, 3]),
        "in_flight": draw.choice(["none", "inference", "gpipe", *(["1f1b"] if one else [])]),
        "microbatches": draw.randint(1, 4),
        "recompute": draw.random() < 0.3,
    }
    kinds = [draw.randrange(2) for _ in range(m)]
    base = [[draw.randint(0, 6) for _ in range(2)] for _ in range(n)]
    unequal = draw.random() < 0.4
    output = [draw.randint(0, 5) for _ in range(n)]
    shared = [draw.random() < 0.5 for _ in range(n)]
    uniform = draw.random() < 0.7
    return po.build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        duration=[[row[kind * unequal] for kind in kinds] for row in base],
        edges=edges,
        payload=[output[a] if shared[a] else draw.randint(0, 5) for a, _ in edges],
        shared=[shared[a] for a, _ in edges],
        latency=[[0 if uniform or a == b else draw.randint(0, 2) for b in range(m)] for a in range(m)],
        byte_ticks_num=[[1] * m] * m,
        resident=[draw.randint(0, 4) for _ in range(n)],
        output=output,
        capacity=[draw.choice([10**6, draw.randint(5, 40)])] * m,
        forward=forward,
        group=forward if training and rules["segments"] is not None else None,
        objective=PERIOD,
        pipeline=rules,
    )


def unlike_pipeline(seed: int) -> po.Problem:
    """A tiny pipeline whose devices have different rules, with infeasible pairs, separations and unlike links."""
    draw = random.Random(seed)
    n, m = draw.randint(1, 7), draw.randint(1, 4)
    ahead = (n + 1) // 2 if draw.random() < 0.5 else n
    edges = [(i, j) for i in range(ahead) for j in range(i + 1, ahead) if draw.random() < 0.4]
    forward = list(range(ahead)) + list(range(n - ahead))
    turned = draw.random() < 0.7
    edges += [(j + ahead, i + ahead) if turned else (i + ahead, j + ahead) for i, j in edges if j + ahead < n]
    edges += [(i - ahead, i) for i in range(ahead, n) if draw.random() < 0.7]
    kinds = [draw.randrange(2) for _ in range(m)]
    one = draw.random() < 0.4
    each: list[dict[str, Any]] = [
        {
            "overlap": draw.random() < 0.3,
            "full_duplex": draw.random() < 0.3,
            "free_transfers": draw.random() < 0.15,
            "segments": 1 if one else draw.choice([UNBOUNDED, 1, 2]),
            "launch": draw.choice([0, 0, 2]),
            "speed": draw.randint(1, 3),
            "capacity": draw.choice([10**6, draw.randint(8, 40)]),
        }
        for _ in range(2)
    ]
    rules: dict[str, Any] = {
        key: [each[kind][key] for kind in kinds]
        for key in ("overlap", "full_duplex", "free_transfers", "segments", "launch")
    }
    rules |= {
        "gradient": [draw.choice([0, 2, 5]) for _ in range(n)],
        "multicast": draw.random() < 0.5,
        "replicas": draw.choice([1, 2, 3, 4]),
        "in_flight": draw.choice(["none", "inference", "gpipe", *(["1f1b", "1f1b"] if one else [])]),
        "microbatches": draw.randint(1, 4),
        "recompute": draw.random() < 0.5,
    }
    base = [draw.randint(0, 6) for _ in range(n)]
    output = [draw.randint(0, 5) for _ in range(n)]
    shared = [draw.random() < 0.5 for _ in range(n)]
    latency = [[draw.randint(0, 2) for _ in range(2)] for _ in range(2)]
    rate = [[draw.randint(1, 2) for _ in range(2)] for _ in range(2)]
    together = ahead < n and draw.random() < 0.7
    apart = [(i, j) for i in range(n) for j in range(i + 1, n) if draw.random() < 0.03 and forward[i] != forward[j]]
    return po.build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(m)],
        duration=[[ticks * each[kind]["speed"] for kind in kinds] for ticks in base],
        feasible=[
            [allowed[kind] for kind in kinds]
            for allowed in ([draw.random() < 0.95, draw.random() < 0.95] for _ in range(n))
        ],
        edges=edges,
        payload=[output[a] if shared[a] else draw.randint(0, 5) for a, _ in edges],
        shared=[shared[a] for a, _ in edges],
        latency=[[0 if a == b else latency[kinds[a]][kinds[b]] for b in range(m)] for a in range(m)],
        byte_ticks_num=[[rate[kinds[a]][kinds[b]] for b in range(m)] for a in range(m)],
        byte_ticks_den=[[2] * m] * m,
        resident=[draw.randint(0, 4) for _ in range(n)],
        output=output,
        scratch=[draw.randint(0, 2) for _ in range(n)],
        capacity=[each[kind]["capacity"] for kind in kinds],
        forward=forward,
        group=forward if together else None,
        separation=apart,
        objective=PERIOD,
        pipeline=rules,
    )


def random_case(seed: int) -> tuple[po.Problem, np.ndarray, Stages]:
    """A pipeline, a placement that may overfill memory, and stages with replicas."""
    problem, draw = random_pipeline(seed), random.Random(seed)
    m, home = problem.n_devices, {}
    device = np.array([home.setdefault(g, draw.randrange(m)) for g in problem.group.tolist()], dtype=np.int64)
    leader = np.arange(m)
    used = sorted(set(device.tolist()))
    for d in set(range(m)) - set(used):
        alike = [
            other
            for other in used
            if problem.device_class[d] == problem.device_class[other]
            and (leader == other).sum() < rules(problem).replicas
        ]
        if alike:
            leader[d] = draw.choice(alike)
    trivial, number = trivial_stages(problem, device), stage_numbers(problem, device)
    again = np.array([int(rules(problem).recompute and draw.random() < 0.5) for _ in range(m)])
    return problem, device, Stages(trivial.number if number is None else number, leader, again, np.zeros(m))


def training_pipeline(**rules: Any) -> po.Problem:
    """Three layers with backward tasks on four devices of two types; times in ms."""
    layers = {"a": 2, "b": 4, "c": 3}
    tasks: dict[str, dict[str, Any]] = {}
    last: list[str] = []
    for name, time in layers.items():
        tasks[name] = {"time": time, "output": "1 MB", "memory": {"resident": "2 MB", "output": "3 MB"}, "after": last}
        tasks[name]["gradient"] = "1 MB"
        last = [name]
    for name, time in reversed(list(layers.items())):
        after = list(dict.fromkeys([*last, name]))
        more = {"output": "1 MB", "memory": {"output": 0}, "after": after, "backward_of": name}
        tasks[f"{name}.b"] = {"time": 2 * time, **more}
        last = [f"{name}.b"]
    return po.compile({
        "placeopt": 1, "name": "training", "objective": "period", "units": {"time": "ms"}, "resolution": "1us",
        "devices": {"gpu": {"count": 3, "memory": "64 MB"}, "cpu": {"memory": "1 GB"}},
        "links": {"default": {"bandwidth": "1 GB/s"}},
        "pipeline": {"stages": "contiguous", "in_flight": "1f1b", **rules},
        "tasks": tasks,
    })  # fmt: skip


def training_schedule(problem: po.Problem, *, replicas: bool = False, recompute: bool = False) -> po.Schedule:
    """a and b on gpu0, with a replica on gpu2 if asked for; c on gpu1; cpu has no tasks."""
    device = np.array([0, 0, 1, 1, 0, 0])
    leader = np.array([0, 1, 0 if replicas else 2, 3])
    again = np.array([int(recompute), 0, 0, 0])
    number = np.array([0, 0, 1, 2, 3, 3])
    return periodic_schedule(problem, device, Stages(number, leader, again, np.zeros(4, dtype=np.int64)))


def teams_document(seed: int) -> dict[str, Any]:
    """A random pipeline of up to four tasks on two or three devices, with modes and teams."""
    rng = np.random.default_rng(seed)

    def drawn(most: int) -> int:
        return int(rng.integers(0, most))

    names = [f"d{k}" for k in range(2 + drawn(2))]
    tasks: dict[str, Any] = {}
    for i in range(1 + drawn(4)):
        task: dict[str, Any] = {"output": drawn(5), "after": [f"t{k}" for k in range(i) if rng.random() < 0.6]}
        if rng.random() < 0.7:
            modes: dict[str, Any] = {"one": {"time": drawn(9), "memory": drawn(5)}}
            if rng.random() < 0.8:
                team = names[:2] if rng.random() < 0.3 else {"d": 2}
                modes["pair"] = {"team": team, "time": drawn(6), "memory": drawn(3)}
            if rng.random() < 0.3:
                modes["small"] = {"time": drawn(12), "memory": drawn(3), "uses": {"error": drawn(3)}}
            task["modes"] = modes
        else:
            task |= {"time": drawn(9), "memory": drawn(5)}
        tasks[f"t{i}"] = task
    kept = [{}, {"in_flight": "inference"}, {"in_flight": "gpipe", "microbatches": 3}][seed // 3 % 3]
    stages = {"stages": "contiguous"} if rng.random() < 0.5 else {}
    overlap = [{}, {"overlap": True}, {"overlap": True, "duplex": "full"}][seed % 3]
    return {
        "placeopt": 1,
        "resolution": "1 ms",
        "units": {"time": "ms", "memory": "B", "bandwidth": "kB/s"},
        "objective": "period",
        "devices": {"d": {"count": len(names), "memory": (20 if kept else 8) + drawn(12)}},
        "links": {"default": {"bandwidth": 1, "latency": drawn(2)}},
        "budgets": {"error": drawn(5)},
        "pipeline": {**stages, **overlap, **kept, "launch": drawn(2)},
        "tasks": {name: task if task["after"] else {**task, "after": []} for name, task in tasks.items()},
    }
