"""Plans as DOT, the language of Graphviz: the task graph with devices as colours and transfers as dashed edges.

https://graphviz.org/doc/info/lang.html defines the language. Each task is a node with its name, so that other programs
find it, and `placeopt import` reads the graph again: `time` and `payload` are the attributes that the import knows.

In a quoted text, only `\\"` and a backslash before a line break are escape sequences. DOT cannot express a name with
an odd number of backslashes before a quote, a line break or its end: it gets one more. Labels interpret more escape
sequences and HTML entities.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

from placeopt.bridges.exporters.exported import Exported, ExportRequest
from placeopt.model.modes import homes
from placeopt.model.schedule import durations
from placeopt.model.units import size_text, time_text
from placeopt.views.plots import palette

NAME = "dot"
_FONT = "Helvetica, Arial, sans-serif"
_RUN = re.compile(r'(?<!\\)\\(?:\\\\)*(?="|\r?\n|\Z)')
"""An odd number of backslashes whose last one would escape what follows."""


def export(request: ExportRequest) -> Exported:
    """Return a plan as a directed graph; O(n + e)."""
    problem, schedule = request.problem, request.schedule
    colors = palette.problem_colors(problem)
    tick, home = float(problem.resolution), homes(problem)
    device, start = schedule.device.tolist(), schedule.start.tolist()
    ticks = durations(problem, schedule.device).tolist()
    lines = [
        f"digraph {_quoted(problem.name or 'plan')} {{",
        f"  graph [rankdir=TB, nodesep=0.25, ranksep=0.35, labelloc=t, fontname={_quoted(_FONT)}, fontsize=10, "
        f"label={_legend(request)}];",
        f"  node [shape=box, style=filled, fontname={_quoted(_FONT)}, fontsize=10, margin={_quoted('0.1,0.05')}];",
        f"  edge [fontname={_quoted(_FONT)}, fontsize=9, arrowsize=0.6];",
    ]
    for i, name in enumerate(problem.task_names):
        color = colors[device[i]]
        begin, end = (time_text(at, problem.resolution) for at in (start[i], start[i] + ticks[i]))
        attributes = {
            "label": _label(name, f"{begin} - {end}"),
            "fillcolor": _quoted(color),
            "fontcolor": _quoted(palette.text_on(color)),
            "device": _quoted(problem.device_names[device[i]]),
            "start": _quoted(f"{start[i] * tick:.12g} s"),
            "time": _quoted(f"{ticks[i] * tick:.12g} s"),
        }
        lines.append(f"  {_quoted(name)} {_listed(attributes)};")
    for source, target, payload in zip(
        problem.edge_source.tolist(), problem.edge_target.tolist(), problem.payload.tolist(), strict=True
    ):
        attributes = {"payload": _quoted(f"{payload} B")}
        if home[device[source]] == home[device[target]]:
            attributes["color"] = _quoted(palette.MUTED)
        else:
            attributes |= {"style": "dashed", "color": _quoted(palette.INK), "label": _label(size_text(payload))}
        ends = f"{_quoted(problem.task_names[source])} -> {_quoted(problem.task_names[target])}"
        lines.append(f"  {ends} {_listed(attributes)};")
    return Exported("\n".join([*lines, "}", ""]))


def _legend(request: ExportRequest) -> str:
    """An HTML-like label: the name of the problem, and a row for each device, or for each type of many devices."""
    problem = request.problem
    rows = [f'<tr><td colspan="2">{html.escape(_plain(problem.name))}</td></tr>'] if problem.name else []
    for swatch in palette.problem_legend(problem):
        cells = "".join(
            f'<td bgcolor="{color}" fixedsize="true" width="12" height="12"></td>' for color in swatch.colors
        )
        patches = f'<table border="0" cellspacing="0" cellborder="0"><tr>{cells}</tr></table>'
        rows.append(f'<tr><td>{patches}</td><td align="left">{html.escape(_plain(swatch.label))}</td></tr>')
    return f'<<table border="0" cellborder="0">{"".join(rows)}</table>>'


def _listed(attributes: Mapping[str, str]) -> str:
    return f"[{', '.join(f'{key}={value}' for key, value in attributes.items())}]"


def _label(*lines: str) -> str:
    """A quoted label of several lines."""
    return '"' + r"\n".join(_escaped(html.escape(_plain(line), quote=False)) for line in lines) + '"'


def _quoted(text: str) -> str:
    return '"' + _RUN.sub(r"\g<0>\\", text).replace('"', r"\"") + '"'


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"")


def _plain(text: str) -> str:
    """A text on one line; control characters are not valid in labels."""
    return "".join(c if c.isprintable() else " " for c in text)
