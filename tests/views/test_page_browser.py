"""Reports in a real browser: they load without errors; sorting, zooming and hovering work."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import NoBrowserError, chromium
from pages import HOSTILE, comparison, record, striped
from pipelines import training_pipeline, training_schedule

import placeopt as po
from placeopt.studies.comparison.result import Comparison
from placeopt.views.page import comparison_page, plan_page, result_page

PROBLEMS = Path(__file__).parents[2] / "problems"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    try:
        with chromium() as found:
            yield found
    except NoBrowserError as error:
        pytest.skip(f"reports are NOT tested in a browser: {error}")


@dataclass
class Opened:
    """A page that has loaded, and everything that it complained of or asked for."""

    tab: Any
    complaints: list[str]
    requests: list[str]

    def view(self) -> tuple[float, float]:
        """The stretch of time that is visible, in ticks."""
        found = self.tab.evaluate("[report.view.from, report.view.to]")
        return found[0], found[1]

    def settle(self) -> None:
        """Wait until what was asked for is drawn."""
        self.tab.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def place(self, row: int, tick: float) -> tuple[float, float]:
        """Where a moment of a device is in the window."""
        self.tab.evaluate(
            "(row) => scrollTo(0, scrollY + document.getElementById('gantt').getBoundingClientRect().top"
            " + report.gantt.middleOf(row) - innerHeight / 2)",
            row,
        )
        box = self.tab.locator("#gantt").bounding_box()
        x, y = self.tab.evaluate(f"[report.gantt.xOf({tick}), report.gantt.middleOf({row})]")
        return box["x"] + x, box["y"] + y

    def hover(self, row: int, tick: float) -> str:
        """What the tooltip says there; empty if there is none."""
        self.tab.mouse.move(*self.place(row, tick))
        self.settle()
        return self.tab.locator("#tip").inner_text() if self.tab.locator("#tip").is_visible() else ""

    def column(self, table: str, title: str) -> list[str]:
        """The texts of a column, from top to bottom."""
        headers = self.tab.locator(f"{table} th").all_inner_texts()
        place = headers.index(title) + 1
        return list(self.tab.locator(f"{table} tbody td:nth-child({place})").all_inner_texts())


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    tabs = []

    def load(page: str, **options: Any) -> Opened:
        file = tmp_path / f"page{len(tabs)}.html"
        file.write_text(page, encoding="utf-8")
        tab = browser.new_page(**{"viewport": {"width": 1280, "height": 900}, **options})
        tabs.append(tab)
        found = Opened(tab, [], [])
        tab.on("console", lambda message: found.complaints.append(f"{message.type}: {message.text}"))
        tab.on("pageerror", lambda error: found.complaints.append(str(error)))
        tab.on("request", lambda request: found.requests.append(request.url))
        tab.goto(file.as_uri())
        tab.wait_for_selector("html[data-ready]")
        assert found.complaints == []
        assert [url for url in found.requests if not url.startswith("data:")] == [file.as_uri()]
        return found

    yield load
    for tab in tabs:
        tab.close()


def striped_page(tasks: int = 40, devices: int = 4) -> str:
    problem, schedule = striped(tasks, devices)
    return plan_page(problem, schedule, po.verify(problem, schedule))


def test_every_kind_of_page_loads_without_a_complaint(opened: Callable[..., Opened]) -> None:
    found = po.solve(po.load(PROBLEMS / "inception.yaml"), "heft")
    assert opened(result_page(found)).tab.title() == "inception"
    ports = po.solve(replace(po.load(PROBLEMS / "sensor-fusion.yaml"), contention="port"), "heft")
    opened(result_page(ports))
    exact = po.solve(po.load(PROBLEMS / "five-node.yaml"), "cp-sat", time_limit=5, workers=1)
    assert opened(result_page(exact)).tab.locator("#convergence").is_visible()
    opened(comparison_page(comparison()))
    opened(comparison_page(Comparison((record("p", "alpha", None),), expected=3)))
    nothing = po.build_problem(task_names=(), device_names=("x",), duration=np.zeros((0, 1)))
    empty = po.Schedule(np.zeros(0), np.zeros(0))
    opened(plan_page(nothing, empty, po.verify(nothing, empty)))
    instant, schedule = striped(4, 2)
    instant = replace(instant, duration=np.zeros((4, 2), dtype=np.int64))
    opened(plan_page(instant, po.Schedule(schedule.device, np.zeros(4)), po.verify(instant, schedule)))


def test_a_pipeline_shows_its_steady_state_and_its_stages(opened: Callable[..., Opened]) -> None:
    problem = training_pipeline(replicas=2, recompute=True, overlap=True)
    schedule = training_schedule(problem, replicas=True, recompute=True)
    page = opened(plan_page(problem, schedule, po.verify(problem, schedule)))
    assert page.tab.inner_text("#schedule-note").startswith("Steady state: 3 periods from the ")
    assert page.column("#device-table", "device") == ["gpu0 + gpu2", "gpu1"]
    assert page.column("#device-table", "idle")[0] == "-"
    assert page.tab.locator("#show-critical").is_hidden()
    begin, end = page.tab.evaluate("[report.schedule.start[0], report.schedule.end[0]]")
    assert page.hover(0, (begin + end) / 2).startswith(page.tab.evaluate("report.schedule.names[0]"))


def test_a_rejected_plan_shows_its_violations(opened: Callable[..., Opened]) -> None:
    problem, schedule = striped(6, 2)
    wrong = po.Schedule(schedule.device, np.zeros(6))
    report = po.verify(problem, wrong)
    page = opened(plan_page(problem, wrong, report))
    assert "infeasible" in page.tab.inner_text("#status")
    assert page.tab.locator("#violations li").count() == len(report.violations)
    assert "task" in page.hover(0, 5)  # one of several overlapping tasks is shown


def test_sorting_sorts(opened: Callable[..., Opened]) -> None:
    page = opened(comparison_page(comparison()))
    assert page.column("#solver-table", "solver") == list(comparison().ranking)
    assert page.column("#problem-table", "best found") == ["20 ms", "12 ms"]
    assert page.column("#problem-table", "found by") == ["beta", "alpha"]
    assert page.column("#problem-table", "gap") == ["50.00%", "16.67%"]
    table = "#run-table"
    page.tab.click(f"{table} th:has-text('objective') button")
    assert page.column(table, "objective") == ["12 ms", "12 ms", "20 ms", "30 ms", "100 ms", "-"]
    assert page.column(table, "solver") == ["alpha", "gamma", "beta", "alpha", "beta", "gamma"]
    page.tab.click(f"{table} th:has-text('objective') button")
    assert page.column(table, "objective") == ["100 ms", "30 ms", "20 ms", "12 ms", "12 ms", "-"]  # missing stays last
    assert page.tab.locator(f"{table} th[aria-sort=descending]").all_inner_texts() == ["objective"]
    page.tab.focus(f"{table} th:has-text('solver') button")
    page.tab.keyboard.press("Enter")
    assert page.column(table, "solver") == ["alpha", "alpha", "beta", "beta", "gamma", "gamma"]
    page.tab.fill("#filter", "KILLED")
    assert page.tab.locator(f"{table} tbody tr:visible").count() == 1
    assert page.tab.inner_text("#filtered") == "1 of 6 runs"


def test_buttons_wheel_and_keys_zoom(opened: Callable[..., Opened]) -> None:
    page = opened(striped_page())
    whole = page.view()
    page.tab.click("#zoom-in")
    low, high = page.view()
    assert high - low == pytest.approx((whole[1] - whole[0]) / 2)
    page.tab.click("#zoom-out")
    assert page.view() == pytest.approx(whole)
    # Without focus the wheel belongs to the page; with Ctrl it always zooms; so it does once the chart was clicked.
    x, y = page.place(1, 30)
    page.tab.mouse.move(x, y)
    page.tab.mouse.wheel(0, -100)
    page.settle()
    assert page.view() == pytest.approx(whole)
    page.tab.keyboard.down("Control")
    page.tab.mouse.wheel(0, -100)
    page.tab.keyboard.up("Control")
    page.tab.wait_for_function(f"report.view.to - report.view.from < {whole[1] - whole[0] - 1}")
    page.tab.keyboard.press("0")
    page.tab.click("#zoom-all")
    x, y = page.place(1, 30)
    page.tab.mouse.click(x, y)
    page.tab.mouse.wheel(0, -300)
    page.tab.wait_for_function(f"report.view.to - report.view.from < {(whole[1] - whole[0]) * 0.6}")
    assert page.tab.evaluate("report.gantt.xOf(30)") == pytest.approx(
        x - page.tab.locator("#gantt").bounding_box()["x"], abs=1
    )  # what is under the pointer stays there
    page.tab.keyboard.press("0")
    page.settle()
    assert page.view() == pytest.approx(whole)
    page.tab.keyboard.press("+")
    page.tab.keyboard.press("ArrowRight")
    page.settle()
    low, high = page.view()
    assert low == pytest.approx(whole[0] + (whole[1] - whole[0]) * 0.35)
    for _ in range(60):
        page.tab.keyboard.press("+")
    low, high = page.view()
    assert 0 < high - low < 5
    assert page.tab.evaluate("report.view.frames") > 5


def test_dragging_pans_and_stays_within_the_schedule(opened: Callable[..., Opened]) -> None:
    page = opened(striped_page())
    page.tab.evaluate("report.view.show(20, 60)")
    page.settle()
    x, y = page.place(0, 40)
    page.tab.mouse.move(x, y)
    page.tab.mouse.down()
    page.tab.mouse.move(x - 50, y, steps=4)
    page.tab.mouse.up()
    page.settle()
    low, high = page.view()
    assert high - low == pytest.approx(40)
    assert 20 < low < 25
    page.tab.evaluate("report.view.show(1000, 1040)")
    assert page.view()[1] <= 40 // 4 * 11 * 1.02
    assert page.tab.inner_text("#details") == ""  # a drag selects nothing


def test_hovering_shows_the_right_task(opened: Callable[..., Opened]) -> None:
    page = opened(striped_page())
    for row, number in ((0, 0), (1, 3), (3, 9)):
        told = page.hover(row, number * 11 + 5)
        assert told.split("\n")[0] == f"task {number * 4 + row}"
        assert f"device {row}" in told
        begin = f"{number * 11} ns" if number else "0 s"
        assert f"{begin} \u2013 {number * 11 + 10} ns" in told
        assert "10 ns (10 ticks)" in told
    task = 3 + 4 * 9
    assert f"{task % 7 * 1000 / 1024:.4g} KiB" in page.hover(3, 9 * 11 + 5)
    pixel = 1 / page.tab.evaluate("report.gantt.xOf(1) - report.gantt.xOf(0)")  # in ticks
    assert page.hover(0, -2 * pixel).startswith("task 0\n")  # close to it is enough
    assert page.hover(0, -6 * pixel) == ""
    page.tab.mouse.move(5, 5)
    page.settle()
    assert not page.tab.locator("#tip").is_visible()
    page.tab.mouse.click(*page.place(2, 16))
    assert page.tab.inner_text("#details").startswith("task 6\n")


def test_36000_tasks_are_found_at_every_zoom(opened: Callable[..., Opened]) -> None:
    page = opened(striped_page(36_000, 60))
    assert page.tab.evaluate("report.schedule.names.length") == 36_000
    for row, number in ((0, 0), (30, 311), (59, 599)):
        page.tab.evaluate(f"report.view.show({number * 11 - 40}, {number * 11 + 60})")
        page.settle()
        assert page.hover(row, number * 11 + 5).split("\n")[0] == f"task {number * 60 + row}"
    page.tab.evaluate("report.view.all()")
    page.settle()
    told = page.hover(30, 3426).split("\n")[0]  # tasks are narrower than two pixels: any within three will do
    number = (int(told.removeprefix("task ")) - 30) / 60
    assert number == int(number)
    assert abs(number * 11 - 3426) < 40
    # All sixty rows hold colour, though no task is drawn by itself.
    spread = """Array.from({length: 60}, (_, row) => {
        const canvas = document.getElementById("gantt");
        const y = report.gantt.middleOf(row) * canvas.width / canvas.clientWidth;
        const [red, green, blue] = canvas.getContext("2d").getImageData(canvas.width * 0.6, y, 1, 1).data;
        return Math.max(red, green, blue) - Math.min(red, green, blue);
    })"""
    assert min(page.tab.evaluate(spread)) > 20


def test_the_keyboard_goes_from_task_to_task(opened: Callable[..., Opened]) -> None:
    page = opened(striped_page())
    page.tab.focus("#gantt")
    seen = []
    for key in ("n", "n", "ArrowDown", "p", "ArrowUp", "Escape"):
        page.tab.keyboard.press(key)
        seen.append(page.tab.inner_text("#details").split("\n")[0])
    assert seen == ["task 0", "task 4", "task 5", "task 1", "task 0", ""]


def test_find_goes_to_the_task(opened: Callable[..., Opened]) -> None:
    page = opened(striped_page(400, 4))
    page.tab.evaluate("report.view.show(0, 50)")
    page.tab.fill("#find", "task 39")
    assert page.tab.inner_text("#found") == "11 found; Enter selects the next"
    page.tab.press("#find", "Enter")
    assert page.tab.inner_text("#details").startswith("task 39\n")
    page.tab.press("#find", "Enter")
    assert page.tab.inner_text("#found") == "2 of 11"
    assert page.tab.inner_text("#details").startswith("task 390\n")
    low, high = page.view()
    assert low < 97 * 11 < high


def pixels(page: Opened, canvas: str = "gantt") -> str:
    page.settle()
    return str(page.tab.evaluate(f"document.getElementById('{canvas}').toDataURL()"))


def test_the_critical_path_is_marked(opened: Callable[..., Opened]) -> None:
    page = opened(result_page(po.solve(po.load(PROBLEMS / "inception.yaml"), "heft")))
    plain = pixels(page)
    page.tab.click("#show-critical")
    assert page.tab.get_attribute("#show-critical", "aria-pressed") == "true"
    assert pixels(page) != plain
    page.tab.focus("#gantt")
    page.tab.keyboard.press("c")
    assert page.tab.get_attribute("#show-critical", "aria-pressed") == "false"
    assert pixels(page) == plain


def test_memory_follows_the_view_and_tells_amounts(opened: Callable[..., Opened]) -> None:
    page = opened(striped_page())
    before = pixels(page, "memory")
    page.tab.click("#zoom-in")
    assert pixels(page, "memory") != before
    page.tab.locator("#memory").scroll_into_view_if_needed()
    box = page.tab.locator("#memory").bounding_box()
    page.tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + 40)
    page.settle()
    told = page.tab.inner_text("#tip")
    assert told.startswith("device 0\n")
    assert "live" in told
    assert "953.7 MiB" in told


def test_memory_is_drawn_as_high_as_it_is(opened: Callable[..., Opened]) -> None:
    problem = po.build_problem(
        task_names=("all", "half"), device_names=("x",), duration=np.full((2, 1), 10), scratch=np.array([1000, 500])
    )
    schedule = po.Schedule(np.array([0, 0]), np.array([0, 20]))
    page = opened(plan_page(problem, schedule, po.verify(problem, schedule)))
    height = """(tick) => {
        const canvas = document.getElementById("memory");
        const x = report.gantt.xOf(tick) * canvas.width / canvas.clientWidth;
        const pixels = canvas.getContext("2d").getImageData(x, 0, 1, canvas.height).data;
        let found = 0;
        for (let k = 0; k < pixels.length; k += 4) found += pixels[k + 2] - pixels[k] > 60; // blue
        return found;
    }"""
    full, nothing, half = (page.tab.evaluate(height, tick) for tick in (5, 15, 25))
    assert full > 20
    assert nothing == 0
    assert half == pytest.approx(full / 2, abs=1)


def test_addresses_tell_which_buffer_lies_there(opened: Callable[..., Opened]) -> None:
    problem = po.load(PROBLEMS / "microcontroller.yaml")
    schedule = po.read_plan(PROBLEMS / "plans" / "microcontroller.json", problem).schedule
    page = opened(plan_page(problem, schedule, po.verify(problem, schedule)))
    assert schedule.offsets is not None
    task = problem.task_names.index("conv9")
    low, tick = int(schedule.offsets.output[task]), int(schedule.start[task]) + 10
    page.tab.locator("#addresses").scroll_into_view_if_needed()
    box = page.tab.locator("#addresses").bounding_box()
    floor, room = 24 + 220 - 3, 220 - 6  # of the only row
    y = floor - room * (low + 5000) / (1.05 * 256 * 1024)
    page.tab.mouse.move(box["x"] + page.tab.evaluate(f"report.gantt.xOf({tick})"), box["y"] + y)
    page.settle()
    tip = page.tab.inner_text("#tip")
    assert tip.startswith("conv9\n")
    assert f"{low:,} \N{EN DASH} {low + 73728:,}" in tip
    page = opened(striped_page())
    assert not page.tab.locator("#address-part").is_visible()


def shown(name: str) -> str:
    """A name in a tooltip: nothing that controls, spaces as the browser joins them, the beginning of a long one."""
    kept = "".join(
        "\ufffd" if unicodedata.category(c) in ("Cc", "Zl", "Zp", "Cs") or c == "\u202e" else c for c in name[:300]
    )
    return " ".join(kept.split())


def test_hostile_names_are_text(opened: Callable[..., Opened]) -> None:
    names = tuple(f"{name} {place}" for place, name in enumerate(HOSTILE))
    problem, schedule = striped(len(names), 2, names)
    problem = replace(problem, name=HOSTILE[1], device_names=(HOSTILE[0], HOSTILE[12]))
    page = opened(plan_page(problem, schedule, po.verify(problem, schedule)))
    assert page.tab.inner_text("h1") == HOSTILE[1]
    for task, name in enumerate(names):
        told = page.hover(task % 2, task // 2 * 11 + 5)
        assert told.startswith(shown(name))
    longest = page.hover(0, 12 // 2 * 11 + 5)
    assert longest.startswith("x" * 100)
    assert len(longest) < 1000
    assert page.tab.evaluate("window.hacked") is None
    assert page.tab.locator("img").count() == 0
    assert page.tab.locator("script").count() == 3
    page.tab.fill("#find", "onerror='window")
    assert page.tab.inner_text("#found").startswith("1 found")
    runs = Comparison(tuple(record(name, name, 10 + k) for k, name in enumerate(HOSTILE)), expected=len(HOSTILE))
    page = opened(comparison_page(runs))
    assert page.tab.evaluate("window.hacked") is None
    assert page.column("#run-table", "solver")[0] == HOSTILE[0]
    assert page.complaints == []


def test_dark_and_light_and_paper(opened: Callable[..., Opened]) -> None:
    html = striped_page()
    light, dark = opened(html, color_scheme="light"), opened(html, color_scheme="dark")
    color = "getComputedStyle(document.body).backgroundColor"
    assert light.tab.evaluate(color) == "rgb(255, 255, 255)"
    assert dark.tab.evaluate(color) == "rgb(20, 23, 26)"
    assert pixels(light) != pixels(dark)
    light.tab.emulate_media(color_scheme="dark")
    light.settle()
    assert pixels(light) == pixels(dark)
    dark.tab.emulate_media(color_scheme="dark", media="print")
    dark.tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert dark.tab.evaluate(color) == "rgb(255, 255, 255)"
    assert dark.tab.pdf().startswith(b"%PDF")


def test_a_narrow_window_needs_no_scrolling_to_the_side(opened: Callable[..., Opened]) -> None:
    found = po.solve(po.load(PROBLEMS / "inception.yaml"), "heft")
    for html in (result_page(found), comparison_page(comparison())):
        page = opened(html, viewport={"width": 360, "height": 700})
        assert page.tab.evaluate("document.documentElement.scrollWidth") <= 360
        page.tab.set_viewport_size({"width": 1000, "height": 700})
        page.settle()
        for canvas in page.tab.locator(".chart canvas:visible").all():
            assert canvas.evaluate("(c) => Math.abs(c.width / devicePixelRatio - c.clientWidth)") <= 1


def test_a_comparison_shows_the_convergence_of_each_problem(opened: Callable[..., Opened]) -> None:
    page = opened(comparison_page(comparison()))
    assert page.column("#solver-table", "solver") == ["alpha", "gamma", "beta"]  # by their mean ratio
    before = pixels(page, "convergence-chart")
    page.tab.select_option("#convergence-choice select", label="p2")
    assert pixels(page, "convergence-chart") != before
    assert "alpha" in page.tab.inner_text("#convergence-legend")
    page.tab.locator("#profile-chart").hover()
    page.settle()
    assert "%" in page.tab.inner_text("#tip")


def test_a_comparison_with_certificates_has_a_column_for_them(opened: Callable[..., Opened]) -> None:
    run = record("p", "alpha", 30)
    runs = [replace(run, solver=name, result={**(run.result or {}), "certificate": made}) for name, made in PROOFS]
    page = opened(comparison_page(Comparison((*runs, record("p", "delta", None)))))
    found = dict(zip(page.column("#run-table", "solver"), page.column("#run-table", "proof"), strict=True))
    assert found == {"alpha": "checked", "beta": "trusted", "gamma": "none", "delta": "-"}
    page = opened(comparison_page(comparison()))
    assert "proof" not in page.tab.inner_text("#run-table")


PROOFS = (("alpha", {"complete": True}), ("beta", {"complete": False}), ("gamma", None))
