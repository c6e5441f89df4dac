"""Convert a pipeline to page data: the operations of three periods of its steady state, and the use of its stages."""

from __future__ import annotations

from typing import Any

import numpy as np

from placeopt.model.arrays import Int
from placeopt.model.period import sends
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule, edge_transfers
from placeopt.model.stage_use import idle_devices, launch_text, stage_names, stage_ranks, stage_uses, teams
from placeopt.model.stages import backward, rules
from placeopt.simulation.steady import KINDS, Occurrences
from placeopt.views.facts import task_traffic, team_text
from placeopt.views.page.packing import Packing
from placeopt.views.plots.palette import HUES, IDLE, LAUNCHED, RECEIVED, SENT, SYNCHRONISED, stage_colors, text_on, tint

_TASK, _LAUNCH, _SEND, _RECEIVE, _SYNCHRONISE = range(len(KINDS))
_TRACKS = (("",), (": sends", ": receives"), ("", ": transfers"), ("", ": sends", ": receives"))
"""What is added to the name of a device in the rows of its tracks, by overlap and full duplex."""


def pipeline_data(problem: Problem, schedule: Schedule, found: Occurrences, packing: Packing) -> dict[str, Any]:
    """Return the data of the charts; long arrays go into `packing`."""
    groups = teams(problem, schedule)
    devices = [d for team in groups for d in team] + idle_devices(problem, schedule)
    pipeline = rules(problem)
    modes = (2 * pipeline.overlap + pipeline.full_duplex).tolist()
    rows = [(d, track) for d in devices for track in range(len(_TRACKS[modes[d]]))]
    place, row = _rows(problem, found, rows)
    begin, until = found.window
    trained = bool(backward(problem).any())
    _items(problem, schedule, found, packing, place, row, len(rows))
    _edges(problem, schedule, found, packing, place)
    for name in ("transfer_from", "transfer_to", "transfer_start", "transfer_end", "memory_ticks", "memory_bytes",
                 "critical_kind", "critical_task", "critical_start", "critical_end"):  # fmt: skip
        packing.add(name, [])
    packing.add("memory_offset", [0] * (len(rows) + 1))
    colors, names = stage_colors(len(stage_names(problem, schedule))), stage_names(problem, schedule)
    shades = [shade for color in colors for shade in (color, tint(color))]
    kinds, rank = set(found.kind[place].tolist()), stage_ranks(problem, schedule)
    own = [
        {"label": name, "colors": [color, tint(color)][: 1 + trained]}
        for name, color in zip(names, colors, strict=True)
    ]
    if len(names) > len(HUES):
        own = [{"label": f"{names[0]} … {names[-1]}, colours repeat", "colors": list(colors[: len(HUES)])}]
    marks = (
        (_SEND, SENT, "sends"),
        (_RECEIVE, RECEIVED, "receives"),
        (_LAUNCH, LAUNCHED, launch_text(problem, schedule)),
        (_SYNCHRONISE, SYNCHRONISED, "synchronises replicas"),
    )
    note = f"{found.caption[0].upper()}{found.caption[1:]}. Numbers are those of runs."
    return {
        "resolution": float(problem.resolution),
        "makespan": until - begin,
        "period": found.period,
        "ports": False,
        "note": note + " Backward tasks are lighter." * trained,
        "memory_note": "does not vary over time in a pipeline; see the stages below",
        "names": [_name(problem, found, k) for k in place.tolist()],
        "legend": own + [{"label": label, "colors": [color]} for kind, color, label in marks if kind in kinds],
        "colors": [
            {"color": color, "text": text_on(color)} for color in (*shades, LAUNCHED, SENT, RECEIVED, SYNCHRONISED)
        ],
        "rows": [
            {"name": problem.device_names[d] + _TRACKS[modes[d]][track], "color": IDLE, "text": text_on(IDLE)}
            for d, track in rows
        ],
        "devices": [],
        "stages": [
            use.to_dict()
            | {"device": team_text(use.devices), "color": shades[2 * rank[schedule.device == team[0]].min()]}
            for team, use in zip(groups, stage_uses(problem, schedule), strict=True)
        ],
    }


def _name(problem: Problem, found: Occurrences, k: int) -> str:
    kind, task, edge = int(found.kind[k]), int(found.task[k]), int(found.edge[k])
    name = "" if task < 0 else problem.task_names[task]
    what = (name, "launch", f"send {name}", f"receive {name}", "synchronise replicas")[kind]
    to = f" for {problem.task_names[int(problem.edge_target[edge])]}" if kind == _RECEIVE else ""
    return f"{int(found.run[k]) + 1}: {what}{to}"


def _rows(problem: Problem, found: Occurrences, rows: list[tuple[int, int]]) -> tuple[Int, Int]:
    """Return the operations to draw, and the row of each, sorted by row and start: twice if it takes two tracks."""
    begin, until = found.window
    row_of = np.full((problem.n_devices, 3), -1, dtype=np.int64)
    for number, (d, track) in enumerate(rows):
        row_of[d, track] = number
    inside = np.flatnonzero((found.start < until) & (found.end > begin) & (found.end > found.start))
    both = [inside[found.tracks[inside, side] >= 0] for side in (0, 1)]
    place = np.concatenate(both)
    row = np.concatenate([row_of[found.device[own], found.tracks[own, side]] for side, own in enumerate(both)])
    order = np.lexsort((place, found.start[place], row))
    return place[order], row[order]


def _items(
    problem: Problem, schedule: Schedule, found: Occurrences, packing: Packing, place: Int, row: Int, count: int
) -> None:
    """Pack times, colours and bytes of all operations in the order of `place`."""
    begin, until = found.window
    task, kind = found.task[place], found.kind[place]
    of_task = 2 * stage_ranks(problem, schedule) + backward(problem)
    stages = 2 * len(stage_names(problem, schedule))
    packing.add("color", np.where(kind == _TASK, of_task[task], stages + kind - _LAUNCH))
    packing.add("run", np.where(kind == _TASK, found.run[place] + 1, 0))
    packing.add("start", np.maximum(found.start[place], begin) - begin)
    packing.add("end", np.minimum(found.end[place], until) - begin)
    sent, received = task_traffic(problem, schedule.device)
    for name, amounts in (
        ("resident", problem.resident), ("output", problem.output), ("scratch", problem.scratch), ("sent", sent),
        ("received", received),
    ):  # fmt: skip
        packing.add(name, np.where(kind == _TASK, amounts[task], 0))
    packing.add("offset", np.searchsorted(row, np.arange(count + 1)).astype(np.int64))


def _edges(problem: Problem, schedule: Schedule, found: Occurrences, packing: Packing, place: Int) -> None:
    """Pack the dependencies between operations of the window: within a device, and by sends and receives."""
    item: dict[tuple[int, int, int], int] = {}
    own = np.where(found.edge[place] >= 0, found.edge[place], found.task[place])
    keys = zip(found.kind[place].tolist(), found.run[place].tolist(), own.tolist(), strict=True)
    for k, key in enumerate(keys):
        item.setdefault(key, k)
    edges, _, sent = sends(problem, schedule.device)
    columns = zip(
        problem.edge_source.tolist(), problem.edge_target.tolist(), edge_transfers(problem, schedule.device).tolist(),
        sent.tolist(), strict=True,
    )  # fmt: skip
    pairs: dict[tuple[tuple[int, int], tuple[int, int]], None] = {}
    for source, target, carrier, way in columns:
        if carrier < 0:
            pairs[(_TASK, source), (_TASK, target)] = None
        else:
            send, receive = (_SEND, int(edges[way])), (_RECEIVE, carrier)
            pairs |= dict.fromkeys((((_TASK, source), send), (send, receive), (receive, (_TASK, target))))
    runs = sorted(set(found.run.tolist()))
    ends = [(item.get((a, run, i)), item.get((b, run, j))) for ((a, i), (b, j)) in pairs for run in runs]
    known = [(a, b) for a, b in ends if a is not None and b is not None]
    packing.add("edge_source", [a for a, _ in known])
    packing.add("edge_target", [b for _, b in known])
