"""Plots: their data, their files, and errors."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commandline import run
from hypothesis import given
from hypothesis import strategies as st

import placeopt as po
from placeopt.errors import MissingExtraError, UsageError
from placeopt.model.critical_path import critical_path
from placeopt.model.schedule import transfer_times
from placeopt.views.plots import draw_schedule
from placeopt.views.plots.names import distinct, short
from placeopt.views.plots.timelines import busy_shares, highest, mean_active, path_line, slices, step_area

pytest.importorskip("matplotlib", reason="pictures are not tested: pip install 'placeopt[plots]'")

from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.colors import to_hex

from placeopt.views.plots import canvas, gantt, graph, layouts
from placeopt.views.plots.canvas import STYLE, Picture
from placeopt.views.plots.convergence import Course, bounds, draw_convergence, incumbents, value_unit
from placeopt.views.plots.memory import usages
from placeopt.views.plots.palette import HUES, device_colors
from placeopt.views.plots.profiles import LEADING, NAMED, Outcome, draw_gaps, draw_profile, leaders

PROBLEMS = Path(__file__).parents[2] / "problems"


@pytest.fixture(autouse=True)
def _coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few dots to an inch: what is drawn is the same, and sooner."""
    monkeypatch.setattr(canvas, "DPI", 40)


def layered(layers: int, width: int, devices: int, **more: Any) -> po.Problem:
    """A layered random graph."""
    random = np.random.default_rng(1)
    n = layers * width
    target = np.repeat(np.arange(width, n), 2)
    source = (target // width - 1) * width + random.integers(0, width, len(target))
    edges = np.unique(np.stack([source, target], axis=1), axis=0)
    return po.build_problem(
        name="layered",
        task_names=[f"task{i}" for i in range(n)],
        device_names=[f"gpu{i}" for i in range(devices)],
        device_types=["gpu"] * devices,
        duration=np.repeat(random.integers(1000, 9000, n)[:, None], devices, axis=1),
        edges=edges,
        payload=random.integers(1, 2000, len(edges)),
        byte_ticks_num=np.ones((devices, devices), dtype=np.int64),
        resident=random.integers(1, 2000, n),
        output=random.integers(1, 2000, n),
        **more,
    )


def two_devices(**more: Any) -> tuple[po.Problem, po.Schedule]:
    """a in [0, 4) on d0, b in [6, 8) on d1 after a transfer in [4, 6), c in [4, 5) on d0."""
    problem = po.build_problem(
        task_names=["a", "b", "c"],
        device_names=["d0", "d1"],
        duration=np.array([[4, 4], [2, 2], [1, 1]]),
        edges=[(0, 1), (0, 2)],
        payload=[2, 2],
        byte_ticks_num=np.ones((2, 2), dtype=np.int64),
        resident=np.array([10, 5, 0]),
        output=np.array([3, 0, 0]),
        scratch=np.array([0, 7, 2]),
        **more,
    )
    return problem, po.Schedule([0, 1, 0], [0, 6, 4])


class TestNumbers:
    def test_transfers_have_their_times(self) -> None:
        problem, schedule = two_devices()
        edges, sent, arrived = transfer_times(problem, schedule)
        assert (edges.tolist(), sent.tolist(), arrived.tolist()) == ([0], [4], [6])

    def test_transfers_through_ports_start_when_booked(self) -> None:
        problem, schedule = two_devices(contention="port")
        booked = po.Schedule(schedule.device, [0, 9, 4], po.Transfers([0], [7]))
        assert [values.tolist() for values in transfer_times(problem, booked)] == [[0], [7], [9]]

    def test_busy_shares_by_hand(self) -> None:
        problem, schedule = two_devices()
        bars = np.arange(3), schedule.device
        assert busy_shares(problem, schedule, *bars, slices(8, 4)).tolist() == [[1, 1, 0.5, 0], [0, 0, 0, 1]]
        assert busy_shares(problem, schedule, *bars, slices(8, 1)).tolist() == [[5 / 8], [2 / 8]]

    @given(seed=st.integers(0, 10**6))
    def test_shares_add_up_to_the_work(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        start = random.integers(0, 50, 20)
        end = start + random.integers(0, 20, 20)
        edges = slices(70, int(random.integers(1, 30)))
        mean = mean_active(start, end, edges)
        assert float((mean * np.diff(edges)).sum()) == pytest.approx(int((end - start).sum()))
        inside = [
            np.maximum(np.minimum(end, edges[i + 1]) - np.maximum(start, edges[i]), 0).sum()
            for i in range(len(edges) - 1)
        ]
        assert mean * np.diff(edges) == pytest.approx(np.array(inside))

    @given(seed=st.integers(0, 10**6))
    def test_no_peak_of_a_level_is_lost(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        ticks = np.unique(random.integers(0, 40, 12))
        level = random.integers(0, 9, len(ticks))
        edges = slices(40, int(random.integers(1, 60)))
        at = np.zeros(4000, dtype=np.int64)  # a hundred moments a tick
        for tick, value in zip(ticks, level, strict=True):
            at[tick * 100 :] = value
        moments = np.arange(4000) / 100
        expected = [
            max([at[(moments >= low) & (moments < high)].max(initial=0), at[int(low * 100)]])
            for low, high in pairwise(edges)
        ]
        assert highest(ticks, level, edges).tolist() == expected

    def test_memory_under_both_models(self) -> None:
        problem, schedule = two_devices(capacity=np.array([20, 100]), memory_model="peak")
        first, second = usages(problem, schedule, [0, 1], slices(8, 8))
        assert first.live.tolist() == [13, 13, 13, 13, 15, 13, 10, 10]  # the output stays until it has arrived
        assert second.live.tolist() == [5, 5, 5, 5, 5, 5, 12, 12]
        assert (first.charged, first.capacity, first.share) == (15, 20, 0.75)
        problem, _ = two_devices(capacity=np.array([20, 2**63 - 1]))
        first, second = usages(problem, schedule, [0, 1], slices(8, 8))
        assert (first.charged, second.charged, second.capacity, second.share) == (15, 12, None, None)

    def test_the_area_under_steps(self) -> None:
        corners = step_area(np.array([0.0, 1, 2, 3, 4]), np.array([2.0, 2, 5, 1]), 1.0)
        assert corners.tolist() == [[0, 2], [2, 2], [2, 5], [3, 5], [3, 1], [4, 1], [4, 1], [0, 1]]

    def test_the_path_runs_from_row_to_row(self) -> None:
        problem, schedule = two_devices()
        assert path_line(problem, critical_path(problem, schedule)) == [
            ("task", 0, 4, 0, 0),
            ("transfer", 4, 6, 0, 1),
            ("task", 6, 8, 1, 1),
        ]

    def test_edges_on_the_critical_path(self) -> None:
        problem, schedule = two_devices()
        assert graph.critical_edges(problem, critical_path(problem, schedule)).tolist() == [True, False]

    def test_devices_without_tasks_have_rows_where_they_are_few(self) -> None:
        problem, schedule = two_devices()
        everything = po.Schedule([0, 0, 0], [0, 4, 6])
        assert gantt.shown_devices(problem, everything.device) == [0, 1]
        many = layered(2, 3, 30)
        assert gantt.shown_devices(many, np.array([7, 9, 7, 7, 29, 7])) == [7, 9, 29]
        assert gantt.shown_devices(problem, schedule.device) == [0, 1]

    def test_names_are_cut_where_they_do_not_differ(self) -> None:
        assert short("abcdefghij", 10) == "abcdefghij"
        assert short("abcdefghijk", 7) == "abcd…jk"
        assert short("a\nb", 9) == "a\\nb"
        assert distinct(["conv1", "conv2"], 10) == ["conv1", "conv2"]
        long = [f"model/encoder/layer_{i}/attention/query" for i in range(3)]
        assert distinct(long, 12) == ["…0…", "…1…", "…2…"]
        assert distinct(["same name that is long"] * 2, 10) == [short("same name that is long", 10)] * 2
        assert distinct([], 5) == []

    def test_incumbents_and_bounds_never_get_worse(self) -> None:
        course = Course(
            "p", "s", ((0.1, 9.0, None), (0.2, 9.0, 3.0), (0.4, 7.0, 2.0), (1.0, None, 5.0), (2.0, 7.0, 5.0))
        )
        assert incumbents(course) == ([0.1, 0.4, 2.0], [9.0, 7.0, 7.0])
        assert bounds(course) == ([0.2, 1.0, 2.0], [3.0, 5.0, 5.0])
        assert incumbents(Course("p", "s", ((0.1, None, None),))) == ([], [])

    def test_axes_have_units(self) -> None:
        assert value_unit("makespan", 3.8e6, 1e-9) == ("makespan (ms)", pytest.approx(1e-6))
        assert value_unit("makespan", 73, 1.0) == ("makespan (s)", 1.0)
        assert value_unit("communication", 5 * 2**20, 1e-9) == ("communication (MiB)", 2**-20)
        assert value_unit("energy", 1e9, 1e-9) == ("energy (J)", 1e-9)
        assert value_unit("makespan + 2 energy", 5, 1e-9) == ("makespan + 2 energy", 1.0)

    def test_a_profile_says_where_it_is_cut(self) -> None:
        for worst, cut in [(90.0, False), (150.0, True)]:
            picture = draw_profile({"heft": [(1.0, 0.5), (worst, 1.0)]}, problems=2)
            told = " ".join(text.get_text() for text in picture.texts)
            assert ("ratios beyond 100 are not shown" in told) == cut

    def test_leaders_are_the_first(self) -> None:
        few = {f"s{i:02}": [(1.0 + i, 1.0)] for i in range(NAMED)}
        assert leaders(few) == tuple(few)
        many = few | {"z": [(1.0, 1.0)]}
        assert leaders(many) == tuple(f"s{i:02}" for i in range(LEADING))


class TestLayouts:
    @pytest.mark.skipif(layouts.shutil.which("dot") is None, reason="dot is not installed: apt-get install graphviz")
    def test_dot_places_tasks_and_bends_edges(self) -> None:
        problem = layered(5, 3, 2)
        placed = layouts.dot_layout(problem)
        assert placed is not None
        assert placed.curves is not None
        assert len(placed.curves) == problem.n_edges
        self.check(problem, placed)

    def test_ours_places_producers_left_of_consumers(self) -> None:
        problem = layered(9, 7, 2)
        placed = layouts.layered_layout(problem)
        assert placed.curves is None
        self.check(problem, placed)

    def check(self, problem: po.Problem, placed: layouts.Layout) -> None:
        assert (placed.x[problem.edge_source] < placed.x[problem.edge_target]).all()
        for column in np.unique(placed.x):
            places = np.sort(placed.y[placed.x == column])
            assert (np.diff(places) > 0.99).all()
        assert placed.x.max() <= placed.width
        assert placed.y.max() <= placed.height

    def test_ours_is_taken_without_dot(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(layouts.shutil, "which", lambda _: None)
        assert layouts.layout(layered(3, 2, 2)).curves is None

    @pytest.mark.parametrize("program", ["echo nonsense", "exit 1", "sleep 5"])
    def test_a_dot_that_fails_is_no_obstacle(
        self, program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fake = tmp_path / "dot"
        fake.write_text(f"#!/bin/sh\n{program}\n")
        fake.chmod(0o755)
        monkeypatch.setattr(layouts.shutil, "which", lambda _: str(fake))
        monkeypatch.setattr(layouts, "DOT_SECONDS", 0.2)
        assert layouts.layout(layered(3, 2, 2)).curves is None

    def test_no_tasks(self) -> None:
        empty = po.build_problem(task_names=[], device_names=["d"], duration=np.zeros((0, 1)))
        assert len(layouts.layout(empty).x) == 0


def collections(picture: Picture, kind: type) -> list[Any]:
    return [artist for axes in picture.axes for artist in axes.collections if isinstance(artist, kind)]


class TestColours:
    def test_a_device_has_the_same_colour_in_every_picture(self) -> None:
        problem, schedule = two_devices()
        wanted = [device_colors(problem.device_types)[d] for d in schedule.device.tolist()]
        (bars,) = collections(draw_schedule(problem, schedule, "gantt"), PolyCollection)
        assert [to_hex(color) for color in bars.get_facecolor()] == wanted
        (points,) = [
            found
            for found in collections(draw_schedule(problem, schedule, "graph"), PathCollection)
            if len(found.get_offsets()) == 3
        ]
        assert [to_hex(color) for color in points.get_facecolor()] == wanted
        memory = draw_schedule(problem, schedule, "memory")
        areas = [to_hex(found.get_facecolor()[0]) for found in collections(memory, PolyCollection)]
        assert areas == [HUES[0], HUES[0], HUES[1], HUES[1]]  # charged and live

    def test_also_where_rows_show_shares(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(gantt, "DETAILED", 2)
        problem, schedule = two_devices()
        rows, _ = collections(draw_schedule(problem, schedule, "gantt"), PolyCollection)
        assert [to_hex(color) for color in rows.get_facecolor()] == list(HUES[:2])


class TestDrawing:
    def test_bars_stand_where_tasks_run(self) -> None:
        problem, schedule = two_devices()
        picture = draw_schedule(problem, schedule, "gantt", bound=7.0)
        (bars,) = collections(picture, PolyCollection)
        spans = [(box.vertices[:, 0].min(), box.vertices[:, 0].max()) for box in bars.get_paths()]
        assert np.array(spans) == pytest.approx(np.array([(0, 4), (6, 8), (4, 5)]))
        assert picture.axes[0].get_xlabel() == "time (ns)"
        assert "lower bound 7 ns" in [text.get_text() for text in picture.legends[0].get_texts()]
        assert {"a", "b"} <= {text.get_text() for text in picture.axes[0].texts}

    def test_many_tasks_become_shares_and_many_transfers_a_count(self) -> None:
        problem = layered(30, 100, 60)
        schedule = po.simulate(problem, np.random.default_rng(0).integers(0, 60, problem.n_tasks))
        picture = draw_schedule(problem, schedule, "gantt")
        rows, flows = collections(picture, PolyCollection)
        assert (len(rows.get_paths()), len(flows.get_paths())) == (60, 1)
        assert len(picture.axes) == 2
        assert not picture.axes[0].texts
        lines = [len(found.get_segments()) for found in collections(picture, LineCollection)]
        assert max(lines) == 1  # the critical path
        nodes = draw_schedule(problem, schedule, "graph")
        assert not nodes.axes[0].texts
        assert all(points.get_rasterized() for points in collections(nodes, PathCollection))

    def test_the_graph_alone(self) -> None:
        problem, _ = two_devices()
        picture = draw_schedule(problem, None, "graph")
        assert {text.get_text() for text in picture.axes[0].texts} == {"a", "b", "c"}

    @pytest.mark.parametrize("kind", ["gantt", "memory", "graph"])
    def test_odd_schedules_are_drawn(self, kind: str) -> None:
        empty = po.build_problem(task_names=[], device_names=["d"], duration=np.zeros((0, 1)))
        no_time = po.build_problem(task_names=["a"], device_names=["d"], duration=np.zeros((1, 1)))
        dollars = po.build_problem(
            name="_$x$ \\frac",
            task_names=["_$a$" * 15, "$b", "卷积"],
            device_names=["_$d_0$", "设备" * 20],
            duration=np.ones((3, 2)),
            edges=[(0, 1)],
        )
        broken, _ = two_devices(capacity=np.array([1, 1]))
        for problem, schedule in (
            (empty, po.Schedule(np.empty(0), np.empty(0))),
            (no_time, po.Schedule([0], [0])),
            (dollars, po.Schedule([0, 1, 1], [0, 3, 0])),
            (broken, po.Schedule([0, 0, 1], [2, 0, 1])),
        ):
            assert draw_schedule(problem, schedule, kind)._repr_png_().startswith(b"\x89PNG")

    def test_memory_with_offsets_is_a_map(self) -> None:
        problem = po.load(PROBLEMS / "microcontroller.yaml")
        schedule = po.read_plan(PROBLEMS / "plans" / "microcontroller.json", problem).schedule
        picture = draw_schedule(problem, schedule, "memory")
        assert picture._repr_png_().startswith(b"\x89PNG")
        (drawn,) = collections(picture, PolyCollection)
        buffers = po.plan_buffers(problem, schedule, 0)
        areas = [np.ptp(path.vertices, axis=0).prod() for path in drawn.get_paths()]
        lengths = (buffers.upper - buffers.lower) * float(problem.resolution) * 1e3
        assert sorted(areas) == pytest.approx(sorted(lengths * buffers.size / 1024))
        none = po.build_problem(
            task_names=[], device_names=["d"], duration=np.zeros((0, 1)), memory_model="peak", alignment=1
        )
        offsets = po.Offsets(np.empty(0), np.empty(0), np.empty(0))
        empty = po.Schedule(np.empty(0), np.empty(0), offsets=offsets)
        assert draw_schedule(none, empty, "memory")._repr_png_().startswith(b"\x89PNG")

    def test_runs_are_drawn_also_where_nothing_is_known(self) -> None:
        searched = Course("p", "cp-sat", ((0.01, 9.0, None), (3.0, 7.0, 5.0), (9.0, 7.0, 7.0)))
        single = Course("p", "heft", ((0.02, 8.0, None),))
        panels = draw_convergence([searched, single, Course("q", "heft", ((0.0, 0.0, None),))])
        assert [axes.get_title(loc="left") for axes in panels.axes] == ["p", "q"]
        for picture in (
            panels,
            draw_convergence([]),
            draw_convergence([Course("p", "cp-sat", ((1.0, None, None),))]),
            draw_profile({}, problems=0),
            draw_profile({"a": []}, problems=0),
            draw_gaps([]),
            draw_gaps([Outcome("a", 0.0, None)]),
            draw_gaps([Outcome("a", 0.0, 0.0)]),
        ):
            assert picture._repr_png_().startswith(b"\x89PNG")

    def test_courses_of_one_colour_differ_in_their_dashes(self) -> None:
        courses = [Course("p", f"s{i}", ((0.1, 20.0 + i, 5.0), (1.0, 9.0, 5.0), (2.0, 9.0, 6.0))) for i in range(14)]
        picture = draw_convergence(courses)
        # In the panel, a line and a bound of each; the bounds of two solvers of one colour look the same.
        for lines, looks in ((picture.axes[0].lines, 14 + 7), (picture.legends[0].get_lines(), 14 + 1)):
            drawn = [line for line in lines if line.get_linestyle() != "None"]
            found = {(line.get_color(), line.get_linestyle(), str(line._dash_pattern)) for line in drawn}  # type: ignore[attr-defined]
            assert len(found) == looks

    def test_a_profile_has_a_line_for_each_solver(self) -> None:
        profile = {f"s{i:02}": [(1.0 + i / 10, 1.0)] for i in range(20)}
        picture = draw_profile(profile, problems=1)
        assert len(picture.axes[0].lines) == 20
        texts = [text.get_text() for text in picture.legends[0].get_texts()]
        assert texts == [*(f"s{i:02}" for i in range(10)), "10 others"]

    def test_gaps_tell_how_many_are_missing(self) -> None:
        picture = draw_gaps([Outcome("a", 1.0, 0.1), Outcome("a", 1.0, None), Outcome("b", 2.0, None)])
        assert any("2 of 3 are missing" in text.get_text() for text in picture.texts)


class TestFiles:
    @pytest.mark.parametrize("kind", ["gantt", "memory", "graph"])
    def test_each_format_is_what_it_says(self, kind: str, tmp_path: Path) -> None:
        problem, schedule = two_devices()
        picture = draw_schedule(problem, schedule, kind)
        for suffix in ("png", "SVG", "pdf"):
            picture.write(tmp_path / f"x.{suffix}")
        assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
        assert (tmp_path / "x.png").read_bytes().endswith(b"IEND\xaeB`\x82")
        assert ElementTree.parse(tmp_path / "x.SVG").getroot().tag.endswith("svg")
        assert (tmp_path / "x.pdf").read_bytes().startswith(b"%PDF-")
        assert (tmp_path / "x.pdf").read_bytes().rstrip().endswith(b"%%EOF")

    def test_the_same_picture_is_the_same_file(self, tmp_path: Path) -> None:
        problem, schedule = two_devices()
        for suffix in ("png", "svg", "pdf"):
            for name in ("one", "two"):
                draw_schedule(problem, schedule, "gantt").write(tmp_path / f"{name}.{suffix}")
            assert (tmp_path / f"one.{suffix}").read_bytes() == (tmp_path / f"two.{suffix}").read_bytes()

    def test_results_draw_themselves(self, tmp_path: Path) -> None:
        result = po.solve(po.load(PROBLEMS / "heft-10.yaml"), "cp-sat", time_limit=20, workers=1)
        for kind in ("gantt", "memory", "graph", "convergence"):
            picture = result.plot(kind, tmp_path / f"{kind}.png")
            assert (tmp_path / f"{kind}.png").stat().st_size > 1500
            assert picture.texts[0].get_text() == "heft-10, by cp-sat"
        assert result.plot(title="mine").texts[0].get_text() == "mine"

    def test_what_breaks_rules_is_called_infeasible(self) -> None:
        problem = po.build_problem(
            task_names=["a"],
            device_names=["d"],
            duration=np.ones((1, 1)),
            resident=np.array([9]),
            capacity=np.array([9]),
        )
        result = po.solve(problem, "heft")
        broken = replace(result, problem=replace(problem, capacity=np.array([1])), feasible=False)
        assert broken.plot("memory").texts[0].get_text() == "problem, by heft (infeasible)"
        assert "above the capacity" in [text.get_text() for text in broken.plot("memory").legends[0].get_texts()]

    def test_errors_say_what_to_do(self, tmp_path: Path) -> None:
        problem, schedule = two_devices()
        result = po.solve(problem, "heft")
        with pytest.raises(UsageError, match=r'cannot draw x\.gif: its name ends in "\.gif"; expected one of \.png'):
            result.plot("gantt", "x.gif")
        with pytest.raises(UsageError, match="cannot draw x: its name has no suffix"):
            result.plot("gantt", "x")
        with pytest.raises(UsageError, match=r'unknown plot "gant"; .*did you mean gantt\?'):
            result.plot("gant")
        with pytest.raises(
            UsageError, match="memory needs a schedule and there is none; graph can be drawn without one"
        ):
            draw_schedule(problem, None, "memory")
        with pytest.raises(UsageError, match=r"cannot write .*x\.png: No such file or directory"):
            draw_schedule(problem, schedule).write(tmp_path / "nowhere" / "x.png")
        (tmp_path / "x.png").mkdir()
        with pytest.raises(UsageError, match=r"cannot write .*x\.png: Is a directory"):
            draw_schedule(problem, schedule).write(tmp_path / "x.png")

    def test_without_matplotlib_it_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        with pytest.raises(MissingExtraError, match=r"pip install 'placeopt\[plots\]'"):
            po.solve(two_devices()[0], "heft").plot()


class TestManners:
    def test_nothing_of_the_callers_changes(self) -> None:
        program = """
import sys
import matplotlib
matplotlib.rcParams["font.size"] = 31.0
settings = [name for name in matplotlib.rcParams if name != "backend"]  # asking for that one loads pyplot
before = [matplotlib.rcParams[name] for name in settings]
import numpy as np, placeopt as po
problem = po.build_problem(task_names=["a"], device_names=["d"], duration=np.ones((1, 1)))
result = po.solve(problem, "heft")
for kind in ("gantt", "memory", "graph", "convergence"):
    result.plot(kind)._repr_png_()
assert [matplotlib.rcParams[name] for name in settings] == before
assert "matplotlib.pyplot" not in sys.modules
"""
        subprocess.run([sys.executable, "-c", program], check=True)

    def test_no_picture_knows_pyplot(self) -> None:
        for path in (Path(po.__file__).parent / "views" / "plots").glob("*.py"):
            assert not re.search(r"^\s*(import|from) .*pyplot", path.read_text(), re.MULTILINE)

    def test_our_settings_exist(self) -> None:
        import matplotlib

        assert set(STYLE) <= set(matplotlib.rcParams)


class TestCommandLine:
    @pytest.mark.parametrize(("kind", "suffix"), [("gantt", "svg"), ("memory", "pdf"), ("graph", "png"), (None, "png")])
    def test_plot_a_plan(self, kind: str | None, suffix: str, tmp_path: Path) -> None:
        out = tmp_path / f"x.{suffix}"
        chosen: Sequence[str] = () if kind is None else ("--kind", kind)
        done = run("plot", PROBLEMS / "heft-10.yaml", PROBLEMS / "plans" / "heft-10.json", *chosen, "--out", out)
        assert (done.code, done.out, done.err) == (0, "", "")
        assert out.stat().st_size > 1500

    def test_plot_a_problem_alone(self, tmp_path: Path) -> None:
        assert run("plot", PROBLEMS / "heft-10.yaml", "-o", tmp_path / "x.png").code == 0
        done = run("plot", PROBLEMS / "heft-10.yaml", "--kind", "memory", "-o", tmp_path / "x.png")
        assert done.code == 2
        assert "--kind memory needs a plan: placeopt plot" in done.err

    def test_a_plan_that_breaks_rules_is_drawn_and_reported(self, tmp_path: Path) -> None:
        text = (PROBLEMS / "plans" / "heft-10.json").read_text()
        (tmp_path / "plan.json").write_text(re.sub(r'"start": \d+', '"start": 0', text))
        done = run("plot", PROBLEMS / "heft-10.yaml", tmp_path / "plan.json", "-o", tmp_path / "x.png")
        assert done.code == 0
        assert re.search(r"note: the plan breaks \d+ rules", done.err)

    def test_plot_results(self, tmp_path: Path) -> None:
        po.compare(
            [PROBLEMS / "heft-10.yaml", PROBLEMS / "five-node.yaml"], ["heft", "m-topo"], ledger=tmp_path / "r.jsonl"
        )
        for kind in ("profile", "gap", "convergence"):
            done = run("plot", tmp_path / "r.jsonl", "--kind", kind, "-o", tmp_path / f"{kind}.png", "--solver", "heft")
            assert (done.code, done.out, done.err) == (0, "", "")
            assert (tmp_path / f"{kind}.png").stat().st_size > 1500
        done = run("plot", tmp_path / "r.jsonl", "-o", tmp_path / "x.png", "--problem", "heft10")
        assert done.code == 2
        assert 'no problem "heft10" in these results; did you mean heft-10?' in done.err

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("p.yaml", "-o", "x.gif"), "expected one of .png, .svg, .pdf"),
            (("p.yaml", "-o", "x.png", "--kind", "gnatt"), "did you mean gantt?"),
            (("p.yaml", "-o", "x.png", "--kind", "profile"), "holds a problem; --kind profile draws results"),
            (("r.jsonl", "-o", "x.png", "--kind", "gantt"), "holds runs; --kind gantt draws a plan (PROBLEM PLAN)"),
            (("r.jsonl", "plan.json", "-o", "x.png"), "expected no PLAN with it"),
            (("p.yaml", "-o", "x.png", "--solver", "heft"), "--problem and --solver select from results"),
            (("r.jsonl", "-o", "x.png"), "cannot read r.jsonl"),
        ],
    )
    def test_mistakes_are_reported(self, arguments: tuple[str, ...], message: str) -> None:
        done = run("plot", *arguments)
        assert done.code == 2
        assert message in done.err

    def test_solve_draws_what_it_found(self, tmp_path: Path) -> None:
        pictures = [tmp_path / "g.png", tmp_path / "m.svg", tmp_path / "c.pdf"]
        names = [pictures[0], f"memory:{pictures[1]}", f"convergence:{pictures[2]}"]
        done = run("solve", PROBLEMS / "heft-10.yaml", *(part for name in names for part in ("--plot", name)))
        assert done.code == 0
        assert all(path.stat().st_size > 1500 for path in pictures)

    @pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc on this system")
    def test_solve_prints_the_result_where_a_picture_cannot_be_written(self) -> None:
        done = run("solve", PROBLEMS / "heft-10.yaml", "--plot", "/proc/self/x.png")
        assert done.code == 2
        assert "cannot write" in done.err
        assert ("read-only" in done.err) != ("makespan = 80 s" in done.out)  # the superuser may write anywhere

    def test_solve_reports_a_missing_folder_before_it_solves(self, tmp_path: Path) -> None:
        done = run("solve", PROBLEMS / "heft-10.yaml", "--plot", tmp_path / "no" / "x.png")
        assert done.code == 2
        assert done.out == ""
        assert "there is no folder" in done.err

    @pytest.mark.parametrize(
        ("wanted", "message"),
        [("x.txt", 'ends in ".txt"'), ("memry:x.png", "did you mean memory?"), ("profile:x.png", "unknown plot")],
    )
    def test_solve_refuses_before_it_solves(self, wanted: str, message: str) -> None:
        done = run("solve", "does-not-exist.yaml", "--plot", wanted)
        assert done.code == 2
        assert message in done.err

    def test_compare_draws_too(self, tmp_path: Path) -> None:
        done = run(
            "compare", PROBLEMS / "five-node.yaml", "--solvers", "heft,met", "--plot", tmp_path / "p.png",
            "--plot", f"gap:{tmp_path / 'g.svg'}",
        )  # fmt: skip
        assert done.code == 0
        assert (tmp_path / "p.png").stat().st_size > 1500
        assert (tmp_path / "g.svg").stat().st_size > 1500
