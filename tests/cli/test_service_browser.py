"""The page of the service in a real browser: editing, errors, completion, solving, comparing, by keyboard alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from browser import NoBrowserError, chromium
from service import HEFT_10, Client, running

from placeopt.cli.service.limits import Limits

SHORT = """placeopt: 1
devices:
  cpu: {}
  gpu: {}
tasks:
  read: {time: 1}
  write:
    time: 2
    after: read
"""


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with running(Limits(jobs=2)) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    try:
        with chromium() as found:
            yield found
    except NoBrowserError as error:
        pytest.skip(f"the page of the service is NOT tested in a browser: {error}")


@dataclass
class Opened:
    """The page, and everything that it complained of or asked for."""

    tab: Any
    url: str
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def write(self, text: str) -> None:
        """Replace the text of the editor and put the cursor at its end."""
        self.tab.evaluate("(text) => page.setText(text)", text)
        self.tab.locator(".cm-content").press("Control+End")

    @property
    def text(self) -> str:
        found: str = self.tab.evaluate("page.editor.state.doc.toString()")
        return found

    def verdict(self, part: str) -> None:
        """Wait for a part of the line below the editor."""
        self.tab.locator("#verdict", has_text=part).wait_for(timeout=20_000)

    def rows(self) -> list[list[str]]:
        """The table of runs."""
        rows = self.tab.locator("#runs tbody tr")
        return [rows.nth(k).locator("td").all_inner_texts() for k in range(rows.count())]

    def ended(self, runs: int) -> list[list[str]]:
        """Wait until all runs have ended and their schedule is drawn."""
        self.tab.wait_for_function(
            "(runs) => page.runs().length === runs && page.runs().every(({ card }) => card.state === 'ended')"
            " && !document.getElementById('files').hidden && globalThis.report?.gantt",
            arg=runs, timeout=30_000,
        )  # fmt: skip
        return self.rows()

    def completions(self) -> list[str]:
        self.tab.keyboard.press("Control+Space")
        self.tab.locator(".cm-tooltip-autocomplete li").first.wait_for()
        return list(self.tab.locator(".cm-tooltip-autocomplete .cm-completionLabel").all_inner_texts())


@pytest.fixture
def opened(browser: Any, client: Client) -> Iterator[Callable[..., Opened]]:
    tabs: list[Opened] = []

    def load(address: str = client.url, **options: Any) -> Opened:
        tab = browser.new_page(**{"viewport": {"width": 1280, "height": 900}, **options})
        found = Opened(tab, address)
        tabs.append(found)
        tab.on("console", lambda message: found.complaints.append(f"{message.type}: {message.text}"))
        tab.on("pageerror", lambda error: found.complaints.append(str(error)))
        tab.on("request", lambda request: found.requests.append(request.url))
        tab.goto(address)
        tab.wait_for_selector("html[data-ready]")
        return found

    yield load
    for each in tabs:
        assert [url for url in each.requests if not url.startswith((each.url, "data:", "blob:"))] == []
        assert [text for text in each.complaints if "the server responded with a status of 4" not in text] == []
        each.tab.close()


def test_an_example_is_solved_and_shown(opened: Callable[..., Opened]) -> None:
    page = opened()
    assert page.text == HEFT_10
    page.verdict("heft-10: 10 tasks, 15 edges, 3 devices")
    page.tab.select_option("#solver", "cp-sat")
    page.tab.click("#solve")
    assert page.ended(1)[0][:5] == ["cp-sat", "73 s", "73 s", "0.00%", page.rows()[0][4]]
    assert page.rows()[0][5] == "optimal"
    assert page.tab.evaluate("report.schedule.makespan") == 73
    assert page.tab.locator("#convergence").is_visible()
    assert "feasible" in page.tab.locator("#status").inner_text()
    with page.tab.expect_download() as download:
        page.tab.click("#files >> text=plan")
    assert download.value.suggested_filename == "heft-10-cp-sat-plan.json"
    assert '"placeopt_plan":1' in download.value.path().read_text()
    assert page.tab.evaluate("document.scrollingElement.scrollWidth") == 1280


def test_the_schedule_is_drawn_while_the_solver_runs(opened: Callable[..., Opened]) -> None:
    page = opened()
    page.tab.select_option("#solver", "local-search")
    page.tab.fill("#seconds", "30")
    page.tab.click("#solve")
    page.tab.wait_for_function("() => globalThis.report?.gantt && page.runs()[0].card.state === 'running'")
    assert page.tab.locator("#files").is_hidden()
    page.tab.evaluate("report.view.zoom(0.5)")
    span = page.tab.evaluate("report.view.to - report.view.from")
    page.tab.click("#stop")
    assert page.ended(1)[0][5] == "interrupted"
    assert page.tab.evaluate("report.view.to - report.view.from") == pytest.approx(span, rel=0.2), "it keeps its zoom"
    assert page.tab.locator("#stop").is_disabled()


def test_two_solvers_are_compared(opened: Callable[..., Opened]) -> None:
    page = opened()
    page.tab.select_option("#solver", "heft")
    page.tab.select_option("#second", "cp-sat")
    page.tab.click("#solve")
    rows = page.ended(2)
    assert [(row[0], row[1]) for row in rows] == [("heft", "80 s"), ("cp-sat", "73 s")]
    legend = page.tab.locator("#convergence-legend li").all_inner_texts()
    assert {"heft: best schedule", "cp-sat: best schedule", "cp-sat: bound"} <= set(legend)
    assert page.tab.evaluate("report.schedule.makespan") == 80
    page.tab.click("#runs button >> text=cp-sat")
    page.tab.wait_for_function("() => report.schedule.makespan === 73")


def test_errors_stand_at_their_lines(opened: Callable[..., Opened]) -> None:
    page = opened()
    page.write(SHORT)
    page.verdict("2 tasks, 1 edge, 2 devices")
    page.tab.keyboard.type("  last: {time: 1, aftr: read}")
    page.verdict("1 error: line 10 tasks.last.aftr: unknown key; did you mean after?")
    page.tab.locator(".cm-lintRange-error", has_text="aftr").wait_for()
    assert page.tab.locator(".cm-lint-marker-error").count() == 1
    page.tab.click("#solve")
    page.tab.locator("#trouble", has_text="the spec has 1 error; line 10: tasks.last.aftr").wait_for()
    page.tab.locator("#verdict button").press("Enter")
    assert page.tab.evaluate("page.editor.hasFocus")
    assert page.tab.evaluate("page.editor.state.selection.main.head") == page.text.index("aftr")
    page.write("placeopt: 1\ngraph: {file: /etc/passwd}\ndevices: {a: {}}\n")
    page.verdict("is not opened: the caller allows no files")


CURSORS = {
    "": ("devices", "tasks", "objective"),
    "placeopt: 1\nobjective: ": ("makespan", "energy"),
    "placeopt: 1\ncontention: h": ("half_duplex",),
    "placeopt: 1\nde": ("devices", "description"),
    f"{SHORT}    ": ("pin", "memory", "deadline"),
    f"{SHORT}  third: {{time: 1, ": ("pin", "after"),
    f"{SHORT}  third: {{time: {{": ("cpu", "gpu"),
    f"{SHORT}  third: {{time: 1, after: [read, ": ("read", "write"),
    f"{SHORT}    pin: ": ("cpu", "gpu"),
    f"{SHORT}    memory:\n      ": ("resident", "scratch"),
    f"{SHORT}links:\n  overrides:\n    - ": ("between", "bandwidth"),
    f"{SHORT}links:\n  overrides:\n    - between: [cpu, gpu]\n      ": ("latency", "bandwidth"),
    f"{SHORT}  # a comment: {{\n  third:\n    time:\n      ": ("cpu", "gpu"),
    '{"placeopt": 1, "devices": {"a": {"me': ("memory",),
}


def test_completion_knows_the_place(opened: Callable[..., Opened]) -> None:
    page = opened()
    for text, expected in CURSORS.items():
        page.write(text)
        found = page.completions()
        assert set(expected) <= set(found), (text, found)
        page.tab.keyboard.press("Escape")
    page.write(SHORT + "    dead")
    page.completions()
    page.tab.wait_for_timeout(100)  # the editor ignores an Enter that follows at once
    page.tab.keyboard.press("Enter")
    assert page.text == SHORT + "    deadline: "


def test_by_keyboard_alone(opened: Callable[..., Opened]) -> None:
    page = opened()
    focused = "document.activeElement.id || document.activeElement.className"
    reached = []
    for _ in range(12):
        page.tab.keyboard.press("Tab")
        reached.append(page.tab.evaluate(focused))
        if reached[-1] == "solve":
            break
    assert reached[-7:] == ["example", "cm-content", "solver", "second", "seconds", "seed", "solve"]
    for _ in range(5):
        page.tab.keyboard.press("Shift+Tab")
    page.tab.keyboard.press("Control+Home")
    page.tab.keyboard.type("# by keyboard\n")
    page.tab.keyboard.press("Control+Enter")
    page.ended(1)
    names = [page.tab.evaluate(focused)]
    while names[-1] != "gantt" and len(names) < 30:
        page.tab.keyboard.press("Tab")
        names.append(page.tab.evaluate(focused))
    assert names[-1] == "gantt", names
    page.tab.keyboard.press("n")
    page.tab.wait_for_function("() => report.gantt.state.selected >= 0")
    assert page.tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_a_narrow_window_in_both_themes(opened: Callable[..., Opened]) -> None:
    page = opened(viewport={"width": 400, "height": 800})
    page.tab.select_option("#example", "sensor-fusion")
    page.verdict("sensor-fusion: 15 tasks")
    page.tab.select_option("#solver", "heft")
    page.tab.select_option("#second", "m-sct")
    page.tab.click("#solve")
    page.ended(2)
    assert page.tab.evaluate("document.scrollingElement.scrollWidth") == 400
    cut = "(each) => each.offsetParent && !each.closest('.table') && each.getBoundingClientRect().right > 400"
    assert page.tab.evaluate(f"[...document.querySelectorAll('button, select, input')].filter({cut}).length") == 0
    contrast = """() => {
          const shade = (text) => text.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255)
            .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
            .reduce((sum, part, k) => sum + part * [0.2126, 0.7152, 0.0722][k], 0);
          const paper = shade(getComputedStyle(document.querySelector("#editor")).backgroundColor);
          return [".tok-propertyName", ".tok-comment", ".cm-lineNumbers .cm-gutterElement"].map((selector) => {
            const ink = shade(getComputedStyle(document.querySelector(selector)).color);
            return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
          });
        }"""
    for scheme in ("light", "dark"):
        page.tab.emulate_media(color_scheme=scheme)
        found = page.tab.evaluate(contrast)
        assert min(found) >= 4.5, (scheme, found)


def test_a_token_is_asked_for_and_a_failing_job_is_explained(opened: Callable[..., Opened]) -> None:
    with running(Limits(jobs=1, memory=2**20), token="secret") as client:
        page = opened(client.url)
        assert page.tab.locator("#login").is_visible()
        page.tab.locator("#token").press_sequentially("wrong")
        page.tab.keyboard.press("Enter")
        page.tab.locator("#trouble", has_text="the token is missing or wrong").wait_for()
        page.tab.fill("#token", "secret")
        page.tab.keyboard.press("Enter")
        page.verdict("heft-10: 10 tasks")
        assert page.tab.locator("#login").is_hidden()
        page.tab.select_option("#solver", "local-search")
        page.tab.click("#solve")
        page.tab.locator("#trouble", has_text="local-search: the process of the job needed more than 1 MiB").wait_for()
        assert page.rows()[0][5] == "failed"
        page.tab.close()
