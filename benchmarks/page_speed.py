"""Measure the report page and the trace of 36,000 tasks on 60 devices: time to write, to open and to zoom.

    python benchmarks/page_speed.py

The instances are the one of load_36000.py, placed by heft, and `layered_problem` of the same size with seed 0 and CCR
1, where every device is busy. The browser is a headless Chromium with a window of 1280 by 900 pixels. The table lists
median and maximum of 40 zooms by a factor of 2, in and out, at times spread over the schedule:

    frame       time of the scripts to draw all charts
    painted     time from the zoom to the end of the following animation frame: two screen frames (at least 33 ms)
                and the time of the browser to paint
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))

from browser import chromium
from load_36000 import document

import placeopt as po
from placeopt.generate.layered_graphs import layered_problem
from placeopt.views.page import result_page
from placeopt.views.traces import trace_text

RUNS = 5
ZOOMS = """async () => {
  const frame = () => new Promise(requestAnimationFrame);
  const found = [];
  for (let k = 0; k < 40; k += 1) {
    const { view } = report;
    if (k % 8 === 0) view.all();
    await frame(); await frame();
    const begun = performance.now();
    view.zoom(k % 8 < 6 ? 0.5 : 2, view.from + (view.to - view.from) * ((k * 7) % 10) / 10);
    await frame(); await frame();
    found.push([view.frame, performance.now() - begun]);
  }
  return found;
}"""


def seconds(make: Callable[[], Any]) -> float:
    """Median seconds of RUNS calls."""
    times = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        make()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def main() -> None:
    """Measure and print the table."""
    table = Table(title="36,000 tasks on 60 devices")
    for header in ("instance", "write trace", "write page", "page size", "open", "frame, ms", "painted, ms"):
        table.add_column(header, justify="right")
    problems = {"load-36000": po.compile(document()), "layered": layered_problem(36_000, 60, ccr=1.0)}
    with chromium() as browser, tempfile.TemporaryDirectory() as folder:
        for name, problem in problems.items():
            result = po.solve(problem, "heft")
            schedule = result.schedule
            assert schedule is not None
            file = Path(folder) / f"{name}.html"
            file.write_text(result_page(result))
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            begun = time.perf_counter()
            page.goto(file.as_uri())
            page.wait_for_selector("html[data-ready]")
            opened = time.perf_counter() - begun
            frames, painted = zip(*page.evaluate(ZOOMS), strict=True)
            page.close()
            table.add_row(
                name,
                f"{seconds(lambda p=problem, s=schedule: trace_text(p, s)):.2f} s",
                f"{seconds(lambda r=result: result_page(r)):.2f} s",
                f"{file.stat().st_size / 1e6:.1f} MB",
                f"{opened:.2f} s",
                f"{statistics.median(frames):.0f}, {max(frames):.0f}",
                f"{statistics.median(painted):.0f}, {max(painted):.0f}",
            )
    Console().print(table)


if __name__ == "__main__":
    main()
