"""The optimum of small problem documents with modes by trying everything, and random ones; plain Python.

It reads the document only, and shares no code with the compiler. Every mode of every task is tried on every device and
team. The tasks, and under contention the transfers, are then inserted in every order, each as early as it fits. That
finds an optimum of the makespan: a schedule in which no operation can start earlier is built in the order of starts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Way:
    """A mode of a task on a device or team; `place` is the device of the compiled problem, with its own transfers."""

    mode: dict[str, Any]
    team: tuple[str, ...]
    place: tuple[Any, ...]

    @property
    def ticks(self) -> int:
        return max(int(self.mode["time"][d]) for d in self.team)


def modes_of(document: dict[str, Any], task: dict[str, Any]) -> dict[str | None, dict[str, Any]]:
    """The modes of a task, with what they inherit; a task without modes has one without a name."""
    own = {key: value for key, value in task.items() if key not in ("modes", "op", "after")}
    if "time" not in own and task.get("op") in document.get("operations", {}):
        own["time"] = document["operations"][task["op"]]
    stated = task.get("modes") or document.get("modes", {}).get(task.get("op")) or {None: {}}
    return {
        name: {**own, **mode, "uses": {**own.get("uses", {}), **mode.get("uses", {})}} for name, mode in stated.items()
    }


def ways_of(document: dict[str, Any], task: dict[str, Any]) -> list[Way]:
    """All ways to run a task."""
    modes, devices = modes_of(document, task), list(document["devices"])
    largest = max(mode.get("output", 0) for mode in modes.values())
    found = []
    for name, mode in modes.items():
        able, team = [d for d in devices if d in mode["time"]], mode.get("team")
        teams: list[tuple[str, ...]] = [(d,) for d in able]
        if isinstance(team, list):
            teams = [tuple(sorted(team, key=devices.index))]
        elif team is not None:
            teams = list(itertools.combinations(able, team["*"]))
        share = Fraction(mode.get("output", 0), largest) if largest else Fraction(1)
        found += [Way(mode, each, (each, name, share if name is not None else 1)) for each in teams]
    return found


def rate(document: dict[str, Any], a: str, b: str) -> dict[str, int]:
    """Latency, bandwidth and energy (nJ/B) of a link."""
    found = dict(document["links"]["default"])
    for link in document["links"].get("overrides", ()):
        if {a, b} == set(link["between"]):
            found |= {key: value for key, value in link.items() if key != "between"}
    found["energy"] = int(str(found.get("energy", "0 nJ/B")).split()[0])
    return found


class Choice:
    """A way for each task: what it uses, and its operations, which are the tasks and then the transfers."""

    def __init__(self, document: dict[str, Any], ways: list[Way]) -> None:
        self.document, self.ways, self.swap = document, ways, dict[str, int]()
        names = list(document["tasks"])
        self.labels = [set(task.get("separate", ())) for task in document["tasks"].values()]
        self.ticks, self.uses, self.before = [way.ticks for way in ways], [], [list[int]() for _ in ways]
        for way in ways:
            used = {r: n for r, n in way.mode["uses"].items() if n and r in document.get("resources", {})}
            for d in way.team:
                used[d] = way.mode.get("cores", 1) if "cores" in document["devices"][d] else 1
            self.uses.append(used)
        self.energy = sum(way.ticks * sum(document["devices"][d].get("power", 0) for d in way.team) for way in ways)
        contention = document.get("contention", "none")
        shared = document["links"].get("shared", {})
        media = {name: link["between"] for name, link in shared.items() if "between" in link}
        groups = {name: link["uplink_of"] for name, link in shared.items() if name not in media}
        half = {name for name, link in document["links"].get("shared", {}).items() if link.get("duplex") == "half"}
        if contention != "none":
            groups |= {f"port {d}": [d] for d in document["devices"]}
            half |= set(groups) - set(document["links"].get("shared", {})) if contention == "half_duplex" else set()
        carried: dict[tuple[Any, ...], int] = {}
        for v, (name, task) in enumerate(document["tasks"].items()):
            for producer, payload in (task.get("after") or {}).items():
                u = names.index(producer)
                a, b = ways[u].team[0], ways[v].team[0]
                key = (u, ways[v].place) if payload is None else (u, name)
                if a == b:
                    self.before[v].append(u)
                elif key in carried:
                    self.before[v].append(carried[key])
                else:
                    link, size = rate(document, a, b), ways[u].mode.get("output", 0) if payload is None else payload
                    self.before[v].append(len(self.ticks))
                    carried[key] = len(self.ticks)
                    self.ticks.append(link["latency"] - (-size // link["bandwidth"]))
                    self.energy += size * link["energy"]
                    crossed = {each: a in group for each, group in groups.items() if (a in group) != (b in group)}
                    over = [each if each in half else f"{each} {('in', 'out')[out]}" for each, out in crossed.items()]
                    over += [each for each, group in media.items() if a in group and b in group]
                    self.uses.append(dict.fromkeys(over, 1))
                    self.before.append([u])

    def possible(self) -> bool:
        """Whether memory and budgets suffice, and each task alone does not exceed a capacity."""
        for d, device in self.document["devices"].items():
            used = sum(way.mode.get("memory", 0) + way.mode.get("output", 0) for way in self.ways if d in way.team)
            room = device.get("memory", used) + sum(tier["memory"] for tier in device.get("tiers", ()))
            self.swap[d] = 0
            for tier in device.get("tiers", ()):  # one at most
                self.swap[d] = -(-max(used - device["memory"], 0) // tier["bandwidth"])
            if used > room:
                return False
        for i, j in itertools.combinations(range(len(self.ways)), 2):
            if set(self.ways[i].team) & set(self.ways[j].team) and self.labels[i] & self.labels[j]:
                return False
        for budget, most in self.document.get("budgets", {}).items():
            if sum(way.mode["uses"].get(budget, 0) for way in self.ways) > most:
                return False
        return all(amount <= self.capacity(r) for used in self.uses[: len(self.ways)] for r, amount in used.items())

    def capacity(self, r: str) -> int:
        """The units of a renewable resource, a device, or what carries transfers."""
        if r in self.document["devices"]:
            return int(self.document["devices"][r].get("cores", 1))
        return int(self.document.get("resources", {}).get(r, 1))

    def makespan(self, best: int | None) -> int | None:
        """The least makespan below `best`; None if there is none."""
        changing: dict[tuple[str, ...], list[int]] = {way.team: [] for way in self.ways}
        for j, way in enumerate(self.ways):  # by device with setups, its tasks
            if "setup" in self.document["devices"][way.team[0]]:
                changing[way.team].append(j)
        family = [task.get("family") for task in self.document["tasks"].values()]
        most = {r: self.capacity(r) for used in self.uses for r in used}
        end: list[int | None] = [None] * len(self.ticks)
        busy: list[tuple[int, int, int]] = []  # begin, end, operation

        def setup(before: int | None, k: int) -> int:
            """Ticks of the setup before task k; without a task before it, the first one."""
            times = self.document["devices"][self.ways[k].team[0]].get("setup", {})
            return 0 if before is not None and family[before] == family[k] else int(times.get(family[k], 0))

        def fits(k: int, begin: int) -> bool:
            until, tasks = begin + self.ticks[k], len(self.ways)
            for r, own in self.uses[k].items():
                there = [(start, stop, self.uses[j][r]) for start, stop, j in busy if r in self.uses[j]]
                there = [each for each in there if begin < each[1] and each[0] < until]
                if any(
                    own + sum(amount for start, stop, amount in there if start <= at < stop) > most[r]
                    for at in {begin, *(start for start, _, _ in there if begin < start)}
                ) or (there and most[r] == 1):
                    return False
            same = [each for each in busy if k < tasks and each[2] in changing[self.ways[k].team]]
            return not any(begin < stop + setup(j, k) and start < until + setup(k, j) for start, stop, j in same)

        def append() -> None:
            nonlocal best
            open_ = [k for k, each in enumerate(end) if each is None]
            if not open_:
                best = max((each or 0 for each in end), default=0)
                return
            for k in open_:
                if any(end[j] is None for j in self.before[k]):
                    continue
                ready = max([end[j] or 0 for j in self.before[k]], default=0)
                if k < len(self.ways):  # the first setup may run while the device swaps
                    ready = max(ready, setup(None, k), *(self.swap[d] for d in self.ways[k].team))
                later = {stop + gap for _, stop, _ in busy for gap in range(4 if any(changing.values()) else 1)}
                begins = [ready, *sorted(tick for tick in later if tick > ready)]
                begin = next(tick for tick in begins if fits(k, tick))
                if best is not None and begin + self.ticks[k] >= best:
                    continue
                end[k] = begin + self.ticks[k]
                busy.append((begin, begin + self.ticks[k], k))
                append()
                busy.pop()
                end[k] = None

        before = best
        append()
        return best if best != before else None


def choices(document: dict[str, Any]) -> Iterator[Choice]:
    """Every way of every task."""
    for ways in itertools.product(*(ways_of(document, task) for task in document["tasks"].values())):
        yield Choice(document, list(ways))


def best_value(document: dict[str, Any]) -> int | None:
    """The least value of the objective: makespan, total_cost or energy; None if nothing is feasible."""
    metric, best = document.get("objective", "makespan"), None
    for choice in choices(document):
        if not choice.possible():
            continue
        if metric == "makespan":
            found = choice.makespan(best)
        else:
            found = sum(choice.ticks) if metric == "total_cost" else choice.energy
        if found is not None and (best is None or found < best):
            best = found
    return best


def random_document(rng: np.random.Generator) -> dict[str, Any]:
    """Up to four tasks with modes, also those of operations, teams, outputs by mode, cores, setups, tiers and ports."""
    ports = str(rng.choice(["none", "port", "half_duplex", "uplink"], p=[0.6, 0.15, 0.1, 0.15]))
    n, m = int(rng.integers(1, 4 if ports != "none" else 5)), int(rng.integers(2, 4))
    devices: dict[str, Any] = {
        f"d{d}": {"memory": int(rng.integers(6, 25)), "power": int(rng.integers(0, 4))} for d in range(m)
    }
    for device in devices.values():
        if rng.random() < 0.2:
            device["cores"] = int(rng.integers(1, 4))
    names = list(devices)
    if rng.random() < 0.25:  # a device that modes do not use
        names, families = names[:-1], ["x", "y"]
        devices[f"d{m - 1}"] = {"memory": 20, "setup": {name: int(rng.integers(0, 4)) for name in families}}
        if rng.random() < 0.5:
            tier = {"memory": 16, "bandwidth": int(rng.integers(1, 4))}
            devices[f"d{m - 1}"] |= {"memory": int(rng.integers(0, 8)), "tiers": [tier]}

    def times() -> dict[str, int]:
        return {d: int(rng.integers(1, 8)) for d in names if rng.random() < 0.8} or {names[0]: 2}

    def uses() -> dict[str, int]:
        return {"b": int(rng.integers(0, 3)), "r": int(rng.integers(0, 3))}

    def modes() -> dict[str, Any]:
        found: dict[str, Any] = {}
        for k in range(int(rng.integers(1, 3 if n > 2 else 4))):
            mode: dict[str, Any] = {"time": times()} if k == 0 or rng.random() < 0.6 else {}
            mode |= {"uses": uses()} if rng.random() < 0.6 else {}
            mode |= {"memory": int(rng.integers(0, 4))} if rng.random() < 0.5 else {}
            mode |= {"output": int(rng.integers(0, 7))} if rng.random() < 0.5 else {}
            mode |= {"cores": int(rng.integers(1, 3))} if any("cores" in devices[d] for d in names) else {}
            able = list(mode.get("time", names))
            if rng.random() < 0.3 and len(able) > 1 and "time" in mode:
                mode["team"] = {"*": 2} if rng.random() < 0.5 else able[:2]
            found[f"m{k}"] = mode
        return found

    document: dict[str, Any] = {"placeopt": 1, "devices": devices}
    document["operations"] = {"p": times()}
    document["modes"] = {op: modes() for op in ("p", "q")}
    tasks: dict[str, Any] = {}
    for i in range(n):
        task: dict[str, Any] = {"output": int(rng.integers(0, 7)), "memory": int(rng.integers(0, 4)), "uses": uses()}
        kind = rng.random()
        if kind < 0.25:
            task["op"] = "p"
        elif kind < 0.5:
            task |= {"op": "q", "time": times()}
        elif kind < 0.8:
            task |= {"time": times(), "modes": modes()}
        else:
            task["time"] = times() | ({f"d{m - 1}": 3} if rng.random() < 0.8 else {})
        if len(names) < m and not task.keys() & {"op", "modes"} and rng.random() < 0.7:
            task |= {"time": {f"d{m - 1}": int(rng.integers(1, 6))}, "family": str(rng.choice(["x", "y"]))}
        tasks[f"t{i}"] = task
        outputs = {j: {mode.get("output", 0) for mode in modes_of(document, tasks[f"t{j}"]).values()} for j in range(i)}
        task["after"] = {
            f"t{j}": int(rng.integers(0, 7)) if len(outputs[j]) == 1 and rng.random() < 0.3 else None
            for j in range(i)
            if rng.random() < (0.5 if ports == "none" else 0.8)
        }
    link: dict[str, Any] = {"latency": int(rng.integers(0, 3)), "bandwidth": int(rng.integers(1, 3))}
    document["links"] = {"default": {**link, "energy": f"{rng.integers(0, 3)} nJ/B"}}
    if m > 2 and rng.random() < 0.5:
        document["links"]["overrides"] = [{"between": ["d0", "d2"], "bandwidth": 3, "latency": 0}]
    if ports == "uplink":
        group = [f"d{d}" for d in range(m) if rng.random() < 0.5][: m - 1] or ["d0"]
        document["links"]["shared"] = {"s": {"uplink_of": group, "duplex": str(rng.choice(["full", "half"]))}}
    elif ports != "none":
        document["contention"] = ports
    document["budgets"] = {"b": int(rng.integers(n, 2 * n + 1))}
    document["resources"] = {"r": int(rng.integers(2, 4))}
    document["objective"] = str(rng.choice(["makespan", "total_cost", "energy"], p=[0.7, 0.15, 0.15]))
    document["tasks"] = tasks
    document["modes"] = {
        op: of for op, of in document["modes"].items() if any(task.get("op") == op for task in tasks.values())
    }
    if not any("family" in task for task in tasks.values()):
        for device in devices.values():
            device.pop("setup", None)
    return document


def with_setups(document: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """The document with setup times also of devices that tasks use in modes, but not in teams."""
    families = ["x", "y", "z"]
    chosen = [name for name in document["devices"] if rng.random() < 0.7] or ["d0"]
    for name in chosen:
        device = document["devices"][name]
        device["setup"] = {family: int(rng.integers(0, 4)) for family in families}
        device.pop("cores", None)
    for task in document["tasks"].values():
        if rng.random() < 0.8:
            task["family"] = str(rng.choice(families[:2]))
        for mode in [*task.get("modes", {}).values(), *document["modes"].get(task.get("op"), {}).values()]:
            mode.pop("team", None)
            if not any("cores" in device for device in document["devices"].values()):
                mode.pop("cores", None)
    known = {task.get("family") for task in document["tasks"].values()}
    for device in document["devices"].values():
        if "setup" in device:
            device["setup"] = {family: time for family, time in device["setup"].items() if family in known}
    return document


def with_separations(document: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """The document with tasks that must not share a device."""
    for task in document["tasks"].values():
        if labels := [label for label in ("s", "t") if rng.random() < 0.5]:
            task["separate"] = labels
    return document


def with_media(document: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """The document with a link that carries one transfer between some devices at a time."""
    names = list(document["devices"])
    group = [name for name in names if rng.random() < 0.7]
    shared = document["links"].setdefault("shared", {})
    shared["bus"] = {"between": group if len(group) > 1 else names[:2]}
    return document
