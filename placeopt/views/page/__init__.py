"""Write reports as a single HTML file that needs neither network nor server.

The page combines a template (page.html, page.css), some small scripts, and the data:

    data      JSON in a script element that browsers do not run; every < is escaped, so no name can end the element
    arrays    all long arrays, concatenated, deflated and in base64 (`placeopt.views.page.packing`)
    policy    a content security policy with the hashes of style and script: nothing else runs, nothing is fetched

The scripts form one module because browsers do not load a second module from a local file. All texts of the data
become text nodes, so names are never markup. 36,000 tasks on 60 devices redraw in about ten milliseconds
(benchmarks/page_speed.py): rows are sorted, visible tasks are found by bisection, and tasks narrower than two pixels
are drawn together.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from html import escape
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

from placeopt.errors import UsageError, visible
from placeopt.io.files import StrPath, write_whole
from placeopt.model.problem import Problem
from placeopt.model.schedule import Schedule
from placeopt.solving.result import Result
from placeopt.verifier import Report
from placeopt.views.page.packing import Packing
from placeopt.views.page.schedules import schedule_data
from placeopt.views.page.summaries import convergence, plan_summary, result_summary
from placeopt.views.plots.palette import GRID, IDLE, INK, LIMIT, MUTED, PAPER

if TYPE_CHECKING:
    from placeopt.studies.comparison.result import Comparison

SCRIPTS = ("format", "elements", "arrays", "view", "gantt", "memory", "lines", "table", "main")
"""Scripts in the order of concatenation; the last one runs the page."""


def result_page(result: Result) -> str:
    """Return the page of a solve: summary, schedule, memory, devices, convergence."""
    packing = Packing()
    drawn = None
    if result.schedule is not None and result.values is not None:
        drawn = schedule_data(result.problem, result.schedule, packing)
    return _page(
        result.problem.name or "problem", packing, summary=result_summary(result), schedule=drawn,
        convergence=convergence(result),
    )  # fmt: skip


def plan_page(problem: Problem, schedule: Schedule, report: Report) -> str:
    """Return the page of a plan with the verifier's report; no charts if a task is on a device that may not run it."""
    packing = Packing()
    drawn = None if report.objective is None else schedule_data(problem, schedule, packing)
    return _page(problem.name or "problem", packing, summary=plan_summary(problem, schedule, report), schedule=drawn)


def comparison_page(comparison: Comparison) -> str:
    """Return the page of a comparison: solvers, performance profile, runs, convergence."""
    from placeopt.views.page.comparisons import comparison_convergence, comparison_data, comparison_summary

    return _page(
        "Comparison of solvers", Packing(), summary=comparison_summary(comparison),
        comparison=comparison_data(comparison), convergence=comparison_convergence(comparison),
    )  # fmt: skip


def write_page(path: StrPath, page: str) -> None:
    """Write a page; an existing file is replaced completely or not at all. Raises OSError if that fails."""
    write_whole(path, page)


def write_report(path: StrPath, subject: Result | Comparison) -> None:
    """Write the page of a result or of a comparison; an existing file is replaced completely or not at all.

    Raises
    ------
    UsageError
        If the subject is of another type.
    OSError
        If the file cannot be written.
    """
    from placeopt.studies.comparison.result import Comparison

    if not isinstance(subject, Result | Comparison):
        raise UsageError(f"write_report takes a Result or a Comparison, got {type(subject).__name__}")
    write_page(path, result_page(subject) if isinstance(subject, Result) else comparison_page(subject))


def _page(title: str, packing: Packing, **sections: Any) -> str:
    template, style, script = _template()
    data = {"schedule": None, "convergence": [], "comparison": None, **sections, "arrays": packing.table}
    # With < written as \u003c, no text can end the element or start a comment in it.
    text = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return template.substitute(
        title=escape(visible(title, 200)), made=escape(_made()), style=style, style_hash=_hash(style),
        script=script, script_hash=_hash(script), data=text, arrays=packing.text(),
    )  # fmt: skip


@cache
def _template() -> tuple[Template, str, str]:
    """Return the template of the page, its style and its script."""
    folder = files("placeopt.views.page")
    light = {"ink": INK, "muted": MUTED, "grid": GRID, "idle": IDLE, "paper": PAPER, "limit": LIMIT}
    variables = "\n  ".join(f"--{name}: {color};" for name, color in light.items())
    style = Template((folder / "page.css").read_text(encoding="utf-8")).substitute(light=variables)
    script = "\n".join((folder / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS)
    return Template((folder / "page.html").read_text(encoding="utf-8")), f"\n{style}", f"\n{script}"


def _hash(text: str) -> str:
    """Return the source expression of a content security policy that allows only this text."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"


def _made() -> str:
    try:
        return f"placeopt {version('placeopt')}"
    except PackageNotFoundError:
        return "placeopt"
