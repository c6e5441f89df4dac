"""What the Trace Event Format asks of a trace, and what viewers ask beyond it; the sources stand in
placeopt.views.traces."""

from __future__ import annotations

import json
from collections import defaultdict
from decimal import Decimal
from typing import Any

METADATA = {"process_name": "name", "process_sort_index": "sort_index",
            "thread_name": "name", "thread_sort_index": "sort_index"}  # fmt: skip


def events_of(text: str) -> list[dict[str, Any]]:
    """The events of a trace, its numbers exact."""
    events = json.loads(text, parse_float=Decimal)["traceEvents"]
    assert isinstance(events, list)
    return events


def breaches(text: str) -> list[str]:
    """Everything about a trace that the format forbids; empty for a good one."""
    document = json.loads(text, parse_float=Decimal)
    found: list[str] = []
    if document.get("displayTimeUnit") not in ("ms", "ns"):
        found.append("displayTimeUnit is neither ms nor ns")
    for event in document["traceEvents"]:
        found.extend(f"{problem}: {event}" for problem in _keys(event))
    if found:
        return found
    return [*_names(document["traceEvents"]), *_order(document["traceEvents"]), *_flows(document["traceEvents"])]


def _keys(event: dict[str, Any]) -> list[str]:
    """Each event has the keys that its phase needs, of the right types, and no others."""
    needed: dict[str, dict[str, tuple[type, ...]]] = {
        "M": {"pid": (int,), "args": (dict,)},
        "X": {
            "cat": (str,),
            "pid": (int,),
            "tid": (int,),
            "ts": (int, Decimal),
            "dur": (int, Decimal),
            "args": (dict,),
        },
        "s": {"cat": (str,), "id": (int,), "pid": (int,), "tid": (int,), "ts": (int, Decimal)},
        "f": {"cat": (str,), "id": (int,), "pid": (int,), "tid": (int,), "ts": (int, Decimal), "bp": (str,)},
        "C": {"pid": (int,), "ts": (int, Decimal), "args": (dict,)},
    }
    if event.get("ph") not in needed:
        return ["unknown phase"]
    keys = {"ph": (str,), "name": (str,), **needed[event["ph"]]}
    found = [f"{key} is missing or of a wrong type" for key, kinds in keys.items() if type(event.get(key)) not in kinds]
    found += [f"needless key {key}" for key in event.keys() - keys.keys() - {"tid"}]
    if found:
        return found
    if event["pid"] < 1:
        found.append("process 0 is the kernel's")
    if Decimal(event.get("ts", 0)) * 1000 % 1 or Decimal(event.get("dur", 0)) * 1000 % 1:
        found.append("a time finer than a nanosecond")
    if event.get("dur", 0) < 0:
        found.append("negative duration")
    if event.get("bp", "e") != "e":
        found.append("bound to the next slice, not to the enclosing one")
    if event["ph"] == "M" and list(event["args"]) != [METADATA.get(event["name"])]:
        found.append("no such metadata")
    if event["ph"] == "C" and (not event["args"] or not all(type(n) in (int, Decimal) for n in event["args"].values())):
        found.append("a counter without numbers")
    return found


def _names(events: list[dict[str, Any]]) -> list[str]:
    """Every process and thread that has events is named and has a place of its own, told before its first event."""
    told: dict[str, dict[tuple[int, int | None], Any]] = defaultdict(dict)
    found = []
    for event in events:
        place = (event["pid"], None), (event["pid"], event.get("tid"))
        if event["ph"] == "M":
            if place[1] in told[event["name"]]:
                found.append(f"named twice: {event}")
            told[event["name"]][place[1]] = next(iter(event["args"].values()))
            continue
        if place[0] not in told["process_name"] or place[0] not in told["process_sort_index"]:
            found.append(f"a process without a name: {event}")
        if event["ph"] != "C" and (place[1] not in told["thread_name"] or place[1] not in told["thread_sort_index"]):
            found.append(f"a thread without a name: {event}")
    places = list(told["thread_sort_index"].values())
    return found if len(set(places)) == len(places) else [*found, "two threads at one place"]


def _order(events: list[dict[str, Any]]) -> list[str]:
    """Slices come by time, and those of a thread nest; ours even stand one after another. Counters come by time."""
    found, free, latest = [], {}, {}
    for event in events:
        if event["ph"] == "X":
            thread = event["pid"], event["tid"]
            if event["ts"] < free.get(thread, event["ts"]):
                found.append(f"overlaps the slice before: {event}")
            free[thread] = event["ts"] + event["dur"]
        if event["ph"] != "M":
            track = "slices" if event["ph"] != "C" else (event["pid"], event["name"])
            if event["ts"] < latest.get(track, event["ts"]):
                found.append(f"earlier than the event before: {event}")
            latest[track] = event["ts"]
    return found


def _flows(events: list[dict[str, Any]]) -> list[str]:
    """A flow starts once, then ends once, later or at the same time; each end is bound to the slice opened last."""
    found, opened, flows = [], {}, defaultdict(list)
    for event in events:
        thread = event["pid"], event.get("tid")
        if event["ph"] == "X":
            opened[thread] = event
        if event["ph"] in "sf":
            flows[event["cat"], event["name"], event["id"]].append(event["ph"])
            around = opened.get(thread)
            if around is None or not around["ts"] <= event["ts"] <= around["ts"] + around["dur"]:
                found.append(f"no slice around: {event}")
    return found + [f"flow {flow} has the phases {phases}" for flow, phases in flows.items() if phases != ["s", "f"]]
