"""Pictures, traces and pages of pipelines: what they show of the steady state."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from pipelines import random_case, training_pipeline, training_schedule

import placeopt as po
from placeopt.simulation.pipelines import operations, periodic_schedule
from placeopt.simulation.steady import steady_periods
from placeopt.views.facts import aligned, pipeline_facts, pipeline_text, stage_grid, team_text
from placeopt.views.page import plan_page, schedule_data
from placeopt.views.page.packing import Packing
from placeopt.views.plots import draw_schedule
from placeopt.views.plots.palette import stage_colors, tint
from placeopt.views.traces import STEADY, trace_text

pytest.importorskip("matplotlib", reason="pictures are not tested: pip install 'placeopt[plots]'")

from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex

from placeopt.views.plots import canvas, pipelines
from placeopt.views.plots.canvas import Picture


@pytest.fixture(autouse=True)
def _coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canvas, "DPI", 40)


@pytest.fixture
def plain() -> tuple[po.Problem, po.Schedule]:
    problem = training_pipeline()
    return problem, training_schedule(problem)


@pytest.fixture
def replicated() -> tuple[po.Problem, po.Schedule]:
    problem = training_pipeline(replicas=2, recompute=True, launch="10us", overlap=True)
    return problem, training_schedule(problem, replicas=True, recompute=True)


def words(picture: Picture) -> list[str]:
    """The texts in the axes."""
    return [text.get_text() for text in picture.axes[0].texts]


def legend(picture: Picture) -> list[str]:
    return [text.get_text() for each in picture.legends for text in each.get_texts()]


def names(labels: Sequence[Any]) -> list[str]:
    return [label.get_text() for label in labels]


class TestTable:
    def test_by_hand(self, plain: tuple[po.Problem, po.Schedule]) -> None:
        grid = stage_grid(*plain)
        assert "\n".join(aligned([grid.headers, *grid.rows], grid.left)) == (
            "stage  device      tasks  computing  sent  received    idle             memory  kept\n"
            "1      gpu0            4      18 ms  1 ms      1 ms    0.0%  15.26 MiB (25.0%)     2\n"
            "2      gpu1            2       9 ms  1 ms      1 ms   45.0%   4.768 MiB (7.8%)     1\n"
            "-      gpu2 + cpu      0          -     -         -  100.0%                  -     -"
        )

    def test_columns_of_replicas(self, replicated: tuple[po.Problem, po.Schedule]) -> None:
        grid = stage_grid(*replicated)
        assert grid.headers[4:9] == ("launch", "recomputing", "sent", "received", "syncing")
        assert grid.rows[0][:6] == ("1", "gpu0 + gpu2", "4", "18 ms", "20 us", "6 ms")

    def test_facts(self, plain: tuple[po.Problem, po.Schedule]) -> None:
        assert pipeline_facts(*plain) == [
            ("latency", "40 ms", "from the start of a run to its result, 2 periods"),
            ("throughput", "50", "results per second"),
            ("idle", "61.25%", "of the time of 4 devices"),
        ]

    def test_rules_in_words(self) -> None:
        problem = training_pipeline(replicas=2, recompute=True, overlap=True)
        assert pipeline_text(problem) == (
            "contiguous stages, computing overlaps transfers, recomputation, up to 2 replicas, outputs kept as for 1f1b"
        )

    def test_long_teams_are_short(self) -> None:
        assert team_text(["a", "b"]) == "a + b"
        assert team_text(list("abcdef")) == "a … f (6)"


class TestGantt:
    def test_rows_follow_the_stages(self, plain: tuple[po.Problem, po.Schedule]) -> None:
        axes = draw_schedule(*plain).axes[0]
        assert names(axes.get_yticklabels()) == ["1: gpu0", "2: gpu1", "gpu2", "cpu"]
        idle = names(axes.child_axes[0].get_yticklabels())
        assert idle == ["none", "9 ms (45.0%)", "20 ms (100.0%)", "20 ms (100.0%)"]

    def test_periods_are_marked(self, plain: tuple[po.Problem, po.Schedule]) -> None:
        axes = draw_schedule(*plain).axes[0]
        assert axes.get_xlim() == (0.0, 60.0)
        assert [line.get_xdata()[0] for line in axes.lines] == [0.0, 20.0, 40.0, 60.0]

    def test_caption(self, plain: tuple[po.Problem, po.Schedule]) -> None:
        texts = names(draw_schedule(*plain, bound=19_000).texts)
        assert texts[1:] == [
            "period 20 ms · lower bound 19 ms · latency 40 ms (2 periods)",
            "steady state: 3 periods from the 2nd on; the runs that fill the pipeline before are not shown; "
            "numbers are those of runs",
        ]

    def test_stages_have_colours(self, plain: tuple[po.Problem, po.Schedule]) -> None:
        picture = draw_schedule(*plain)
        (bars,) = [each for each in picture.axes[0].collections if isinstance(each, PolyCollection)]
        colors = {to_hex(color) for color in bars.get_facecolor()}
        assert {shade for color in stage_colors(2) for shade in (color, tint(color))} < colors
        assert legend(picture) == ["stage 1", "stage 2", "lighter: backward", "sends", "receives", "period"]

    def test_runs_and_idle_time_are_named(self, plain: tuple[po.Problem, po.Schedule]) -> None:
        shown = words(draw_schedule(*plain))
        runs = {text.removeprefix("run ").partition(":")[0] for text in shown if not text.endswith("ms")}
        assert runs == {"1", "2", "3", "4"}
        assert [text for text in shown if text.endswith("ms")] == ["9 ms"] * 2

    def test_replicas_take_turns(self, replicated: tuple[po.Problem, po.Schedule]) -> None:
        picture = draw_schedule(*replicated)
        assert names(picture.axes[0].get_yticklabels()) == ["1: gpu0", "1: gpu2", "2: gpu1", "cpu"]
        assert {"launches, computes again", "synchronises replicas"} <= set(legend(picture))

    def test_many_operations_are_merged(
        self, plain: tuple[po.Problem, po.Schedule], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def count() -> int:
            bars = [each for each in draw_schedule(*plain).axes[0].collections if isinstance(each, PolyCollection)]
            return len(bars[0].get_paths())

        whole = count()
        monkeypatch.setattr(pipelines, "DETAILED", 10)
        assert 6 <= count() < whole

    def test_a_plan_without_transfers_is_drawn_as_one_run(self, plain: tuple[po.Problem, po.Schedule]) -> None:
        problem, schedule = plain
        picture = draw_schedule(problem, po.Schedule(schedule.device, schedule.start))
        assert "makespan" in names(picture.texts)[1]

    @pytest.mark.parametrize("seed", range(12))
    def test_random_pipelines_are_drawn(self, seed: int) -> None:
        problem, device, stages = random_case(seed)
        schedule = periodic_schedule(problem, device, stages)
        for kind in ("gantt", "memory", "graph"):
            draw_schedule(problem, schedule, kind)


class TestMemory:
    def test_three_parts(self, plain: tuple[po.Problem, po.Schedule]) -> None:
        picture = draw_schedule(*plain, "memory")
        axes = picture.axes[0]
        widths = [[round(bar.get_width() * 2**20) for bar in bars] for bars in axes.containers]
        assert widths == [[4_000_000, 2_000_000, 0, 0], [6_000_000, 3_000_000, 0, 0], [6_000_000, 0, 0, 0]]
        assert legend(picture) == ["resident", "outputs and scratch of one run", "kept for other runs", "capacity"]
        assert names(axes.child_axes[0].get_yticklabels())[0] == "15.26 MiB of 61.04 MiB (25.0%)"


class TestTrace:
    @pytest.mark.parametrize("seed", range(30))
    def test_all_runs_until_the_steady_state(self, seed: int) -> None:
        problem, device, stages = random_case(seed)
        schedule = periodic_schedule(problem, device, stages)
        trace = json.loads(trace_text(problem, schedule))
        steady = steady_periods(problem, schedule)
        if steady is None:
            return
        runs = trace["otherData"]["runs"]
        assert runs == steady + STEADY
        slices = [each for each in trace["traceEvents"] if each["ph"] == "X"]
        own = [each for each in slices if each["cat"] != "period"]
        assert len(own) == runs * len(operations(problem, device, stages).device)
        assert [each["name"] for each in slices if each["cat"] == "period"][steady:] == [
            f"period {k + 1}, steady" for k in range(steady, runs)
        ]
        by_thread: dict[int, list[tuple[float, float]]] = {}
        for each in own:
            by_thread.setdefault(each["tid"], []).append((each["ts"], each["ts"] + each["dur"]))
        labels = {
            each["tid"]: each["args"]["name"]
            for each in trace["traceEvents"]
            if each["ph"] == "M" and each["name"] == "thread_name"
        }
        assert not any("overlapping" in label for label in labels.values() if "without load" not in label)
        for times in by_thread.values():
            assert all(a[1] <= b[0] + 1e-9 for a, b in pairwise(sorted(times)))

    def test_arrows_lead_from_a_producer_to_its_consumer(self, plain: tuple[po.Problem, po.Schedule]) -> None:
        events = json.loads(trace_text(*plain))["traceEvents"]
        begins = [each for each in events if each["ph"] == "s"]
        ends = {each["id"]: each for each in events if each["ph"] == "f"}
        assert len(begins) == len(ends)
        assert all(each["ts"] <= ends[each["id"]]["ts"] for each in begins)
        assert {each["name"] for each in events if each["ph"] == "X"} >= {"a", "send b", "receive b for c", "c.b"}

    def test_large_traces_have_fewer_runs(
        self, plain: tuple[po.Problem, po.Schedule], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("placeopt.views.traces.MOST_SLICES", 6)
        other = json.loads(trace_text(*plain))["otherData"]
        assert (other["runs"], other["steady_state"]) == (1, "after the runs shown here")


class TestPage:
    def test_data(self, replicated: tuple[po.Problem, po.Schedule]) -> None:
        problem, schedule = replicated
        packing = Packing()
        data = schedule_data(problem, schedule, packing)
        assert [row["name"] for row in data["rows"]] == [
            "gpu0", "gpu0: transfers", "gpu2", "gpu2: transfers", "gpu1", "gpu1: transfers", "cpu", "cpu: transfers",
        ]  # fmt: skip
        assert data["makespan"] == 3 * data["period"]
        assert [stage["device"] for stage in data["stages"]] == ["gpu0 + gpu2", "gpu1"]
        assert data["note"].startswith("Steady state: 3 periods from the ")
        assert packing.table["color"]["length"] == packing.table["start"]["length"] == len(data["names"])
        assert packing.table["offset"]["length"] == len(data["rows"]) + 1

    @pytest.mark.parametrize("seed", range(20))
    def test_random_pipelines_have_pages(self, seed: int) -> None:
        problem, device, stages = random_case(seed)
        schedule = periodic_schedule(problem, device, stages)
        page = plan_page(problem, schedule, po.verify(problem, schedule))
        assert "</html>" in page

    def test_results_have_the_table_everywhere(self) -> None:
        problem = training_pipeline()
        result = po.solve(problem, "ideals", workers=1)
        assert "received" in str(result)
        assert "received" in result._repr_html_()
        found = result.to_dict()["pipeline"]
        assert found["period"] == result.objective
        assert found["latency"] == result.makespan
        assert np.isclose(found["throughput"], 1e6 / found["period"])
        assert [stage["stages"] for stage in found["stages"]] == [[k + 1] for k in range(len(found["stages"]))]
