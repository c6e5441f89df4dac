"""Measurements read, fitted, written as a profile and put into problems."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commandline import run
from hypothesis import given, settings
from hypothesis import strategies as st

import placeopt as po
from placeopt.bridges.profiling import (
    Line,
    Measurements,
    TransferTimes,
    apply_profile,
    fit_profile,
    fit_transfers,
    profile_document,
    read_measurements,
    read_profile,
    read_transfers,
)
from placeopt.bridges.profiling.estimates import bandwidth_text
from placeopt.bridges.profiling.fragments import self_contained, whole_bytes
from placeopt.errors import DocumentError, SpecError, UsageError
from placeopt.io.document import read_document
from placeopt.model.problem import transfer_ticks
from placeopt.model.units import seconds_text

ROOT = Path(__file__).parents[2]
HEADER = "operator,batch,milliseconds,bytes"


def csv(folder: Path, *lines: str, name: str = "m.csv") -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def made(rows: list[tuple[str, int, float, float]], file: str = "") -> Measurements:
    """Measurements of (operator, batch, seconds, bytes)."""
    series = tuple(dict.fromkeys((name, None) for name, *_ in rows))
    member = np.array([series.index((name, None)) for name, *_ in rows])
    columns = [np.array(column) for column in list(zip(*rows, strict=True))[1:]]
    return Measurements(series, member, *columns, file=file)


class TestReading:
    def test_columns_in_any_order_with_spaces_marks_and_empty_lines(self, tmp_path: Path) -> None:
        path = tmp_path / "m.csv"
        text = '\n bytes ,batch,note,operator,microseconds\n\n12, 8 ,x,"a, b",134\n,,,,\n1e3,16,,c,2.5\n'
        path.write_text("\ufeff" + text, encoding="utf-8")
        found = read_measurements(path)
        assert found.series == (("a, b", None), ("c", None))
        assert found.batch.tolist() == [8, 16]
        assert found.bytes.tolist() == [12, 1000]
        assert found.seconds.tolist() == [134e-6, 2.5e-6]
        assert found.output_bytes is None
        assert found.ignored == ("note",)
        assert not found.seconds.flags.writeable

    def test_every_mistake_comes_with_its_line_and_column(self, tmp_path: Path) -> None:
        path = csv(
            tmp_path, HEADER, "a,eight,1,2", ",8,-1,2", "a,8,1", '"a', 'b",0,nan,1_0', "a,2.5,inf,x",
            "a,8,1,2,3", "a,8,1e-40,1e19",
        )  # fmt: skip
        with pytest.raises(DocumentError, match=r"m\.csv:2: column batch") as caught:
            read_measurements(path)
        whole, amount = "expected a batch size: a whole number of at least 1", "expected a number of bytes"
        found = [str(issue).removeprefix(str(path)) for issue in caught.value.issues]
        expected = [
            f':2: column batch: "eight"; {whole}',
            ':3: column operator: ""; expected a name',
            ':3: column milliseconds: "-1"; expected a number of milliseconds',
            ":4: has 3 cells; expected 4, as the first line",
            f':5: column batch: "0"; {whole}',
            ':5: column milliseconds: "nan"; expected a number of milliseconds',
            f':5: column bytes: "1_0"; {amount}',
            f':7: column batch: "2.5"; {whole}',
            ':7: column milliseconds: "inf"; expected a number of milliseconds',
            f':7: column bytes: "x"; {amount}',
            ":8: has 5 cells; expected 4, as the first line",
            ':9: column milliseconds: "1e-40"; expected a number of milliseconds',
            f':9: column bytes: "1e19"; {amount}',
        ]
        assert [text[: len(start)] for text, start in zip(found, expected, strict=True)] == expected

    @pytest.mark.parametrize(
        ("lines", "message"),
        [
            (["operator,batches,bytes"], r"m.csv:1: column batch: is missing; did you mean batches\?"),
            (["operator,batch,bytes"], "column of time: is missing; expected one of seconds, milliseconds, micro"),
            (["operator,batch,bytes,seconds,milliseconds"], "columns of time: seconds and milliseconds are both there"),
            ([HEADER + ",bytes"], "m.csv:1: column bytes: comes 2 times; expected once"),
            ([HEADER.replace(",", ";")], "m.csv:1: cells are separated by semicolons; expected commas"),
            ([HEADER.replace(",", "\t")], "m.csv:1: cells are separated by tabs; expected commas"),
            ([HEADER], "m.csv: has no measurements; expected lines below"),
            ([""], "m.csv: is empty; expected a line with the names of columns: operator, batch, seconds"),
            ([HEADER, 'a,8,1,"2'], "m.csv:2: is not valid CSV: unexpected end of data"),
            ([HEADER, 'a,8,1,"2"3'], "m.csv:2: is not valid CSV: "),
        ],
    )
    def test_what_is_wrong_with_a_whole_file(self, tmp_path: Path, lines: list[str], message: str) -> None:
        with pytest.raises(DocumentError, match=message):
            read_measurements(csv(tmp_path, *lines))

    def test_what_is_no_readable_text(self, tmp_path: Path) -> None:
        (tmp_path / "m.csv").write_bytes(b"operator\xff")
        with pytest.raises(DocumentError, match=r"m.csv: is not UTF-8 text \(byte 8 is 0xff\)"):
            read_measurements(tmp_path / "m.csv")
        with pytest.raises(DocumentError, match=r"no\.csv: no such file"):
            read_transfers(tmp_path / "no.csv")
        with pytest.raises(DocumentError, match="is a folder, expected a file"):
            read_transfers(tmp_path)


class TestFit:
    def test_points_on_a_line_give_it_back(self) -> None:
        rows = [("a", batch, 0.001 * batch + 0.25, 4096 * batch + 10**9) for batch in (8, 16, 24, 48)]
        (found,) = fit_profile(made(rows), 512).estimates
        assert found.batches == (8, 16, 24, 48)
        assert found.memory.slope == pytest.approx(4096, rel=1e-12)
        assert found.memory.intercept == pytest.approx(10**9, rel=1e-12)
        assert found.memory.residual == pytest.approx(0, abs=1e-12)
        assert whole_bytes(found.estimated.bytes) == 512 * 4096 + 10**9
        assert seconds_text(found.estimated.seconds, 9) == "762 ms"
        assert found.best is found.estimated
        assert found.output is None

    def test_a_fit_worked_by_hand(self) -> None:
        # Averages of a: (1, 3), (2, 4), (3, 8): means 2 and 5; slope (1 x 2 + 1 x 3) / 2 = 2.5, intercept 0; at 4: 10.
        # Deviations: 0.5 / 3, 1 / 4, 0.5 / 8. Plain points instead of averages would have given another slope.
        rows = [("a", 1, 1.0, 2.0), ("b", 1, 1.0, 7.0), ("a", 3, 1.0, 8.0), ("a", 2, 1.0, 4.0), ("a", 1, 1.0, 4.0)]
        profile = fit_profile(made(rows), 4)
        a, b = profile.estimates
        assert a.memory == Line(2.5, 0.0, 0.25)
        assert a.estimated.bytes == 10
        assert b.memory == Line(0.0, 7.0, 0.0)
        assert profile.constant == (b,)
        assert profile.time is None
        assert profile.memory is None

    @settings(deadline=None, max_examples=60)
    @given(st.dictionaries(st.integers(1, 64), st.integers(0, 10**9).map(lambda n: n / 997), min_size=1, max_size=12))
    def test_the_line_is_that_of_numpy(self, points: dict[int, float]) -> None:
        (found,) = fit_profile(made([("a", x, 1.0, y) for x, y in points.items()]), 1000).estimates
        if len(points) > 1:
            x, y = np.array(list(points.items())).T
            slope, intercept = np.polyfit(x, y, 1)
            assert found.memory.slope == pytest.approx(slope, rel=1e-6, abs=1e-6)
            assert found.memory.intercept == pytest.approx(intercept, rel=1e-6, abs=1e-4)
        assert found.estimated.bytes >= 0

    def test_no_estimate_is_negative_and_falling_ones_are_told(self) -> None:
        rows = [("a", 8, 3.0, 100.0), ("a", 16, 2.0, 60.0), ("b", 8, 1.0, 0.0), ("b", 9, 2.0, 8.0)]
        profile = fit_profile(made(rows), 64)
        a, b = profile.estimates
        assert a.memory.slope == -5
        assert (a.estimated.bytes, a.estimated.seconds) == (0, 0)
        assert profile.falling == (a,)
        assert b.memory.residual == 0
        below = fit_profile(made(rows[2:]), 1)
        assert below.estimates[0].estimated.bytes == 0

    def test_a_measured_zero_that_is_not_met_has_no_relative_residual(self) -> None:
        rows = [("a", 1, 1.0, 0.0), ("a", 2, 1.0, 9.0), ("a", 3, 1.0, 9.0)]
        assert fit_profile(made(rows), 4).estimates[0].memory.residual is None

    def test_warming_up_is_left_out(self) -> None:
        rows = [("a", 8, seconds, 1.0) for seconds in (99.0, 98.0, 3.0, 5.0)]
        assert fit_profile(made(rows), 8, discard=2).estimates[0].estimated.seconds == 4
        with pytest.raises(UsageError, match="discard: 4 leaves nothing of a at 8; expected less than the 4 meas"):
            fit_profile(made(rows), 8, discard=4)
        with pytest.raises(UsageError, match="discard: -1 is not valid"):
            fit_profile(made(rows), 8, discard=-1)
        with pytest.raises(UsageError, match="batch: 0 is not a batch size"):
            fit_profile(made(rows), 0)

    def test_what_was_measured_at_the_target_is_compared_and_planned_with(self) -> None:
        # Estimates at 8: a 8 s and 80 bytes, b 8 s and 80 bytes. Relative deviations by |d_e - d_a| / d_a.
        rows = [(name, batch, float(batch), 10.0 * batch) for name in "ab" for batch in (1, 2)]
        rows += [("a", 8, 10.0, 80.0), ("b", 8, 4.0, 160.0)]
        profile = fit_profile(made(rows), 8)
        a, b = profile.estimates
        assert a.batches == (1, 2)
        assert (a.best.seconds, a.estimated.seconds) == (10, pytest.approx(8))
        assert b.best.bytes == 160
        assert profile.time is not None
        assert profile.time.mean == pytest.approx((0.2 + 1.0) / 2)
        assert profile.time.most == pytest.approx(1.0)
        assert profile.time.total == pytest.approx(2 / 14)
        assert profile.memory is not None
        assert profile.memory.mean == pytest.approx((0 + 0.5) / 2)
        assert (profile.memory.compared, profile.memory.left_out) == (2, 0)

    def test_measured_at_the_target_alone_is_taken_as_it_is(self) -> None:
        profile = fit_profile(made([("a", 8, 10.0, 80.0)]), 8)
        assert profile.estimates[0].best.bytes == 80
        assert profile.constant == ()
        assert profile.memory is None

    def test_another_file_is_compared_only(self) -> None:
        ours = made([(name, batch, float(batch), 0.0) for name in "abc" for batch in (1, 2)], "ours.csv")
        theirs = made([("a", 8, 10.0, 0.0), ("b", 8, 8.0, 5.0), ("x", 8, 1.0, 1.0), ("c", 4, 1.0, 1.0)], "theirs.csv")
        profile = fit_profile(ours, 8, against=theirs)
        assert profile.unmatched == 1
        assert [e.measured for e in profile.estimates] == [None] * 3
        assert profile.time is not None
        assert profile.time.compared == 2
        assert profile.time.mean == pytest.approx(0.1)
        assert profile.memory is not None
        assert profile.memory.total == 1
        with pytest.raises(UsageError, match=r"theirs\.csv: has batch sizes 4, 8; expected measurements of these"):
            fit_profile(ours, 16, against=theirs)
        with pytest.raises(UsageError, match=r"theirs\.csv: has none of the operators of ours\.csv; expected"):
            fit_profile(ours, 8, against=made([("x", 8, 1.0, 1.0)], "theirs.csv"))

    def test_nine_of_ten(self) -> None:
        rows = [(f"o{k}", batch, 1.0, 100.0) for k in range(20) for batch in (1, 2)]
        theirs = made([(f"o{k}", 4, 1.0, 100.0 / (1 + k)) for k in range(20)])
        profile = fit_profile(made(rows), 4, against=theirs)
        assert profile.memory is not None
        assert profile.memory.within_90 == pytest.approx(17)  # the 18th of the deviations 0, 1, ..., 19
        assert profile.memory.most == pytest.approx(19)
        assert profile.memory.mean == pytest.approx(9.5)

    def test_what_was_measured_as_zero_is_left_out_and_counted(self) -> None:
        rows = [(name, batch, 1.0, 7.0) for name in "ab" for batch in (1, 2)]
        profile = fit_profile(made(rows), 4, against=made([("a", 4, 1.0, 0.0), ("b", 4, 1.0, 7.0)]))
        assert profile.memory is not None
        assert (profile.memory.compared, profile.memory.left_out, profile.memory.mean) == (1, 1, 0)


class TestTransfers:
    def test_baechis_line_is_found(self) -> None:
        # The default of --comm_cost_coeffs in Baechi's code, https://github.com/beomyeol/baechi: 0.0001754 us per
        # byte and 134 us, fitted to transfers of 2^0 to 2^29 bytes.
        data = 2.0 ** np.arange(30)
        model = fit_transfers(TransferTimes(data, (0.0001754 * data + 134) / 1e6))
        assert model.seconds_per_byte == pytest.approx(0.0001754e-6, rel=1e-12)
        assert model.latency == pytest.approx(134e-6, rel=1e-9)
        assert model.residual == pytest.approx(0, abs=1e-9)
        assert model.link() == {"bandwidth": "5.70125428 GB/s", "latency": "134 us"}
        spec = {
            "placeopt": 1, "devices": {"gpu": {"count": 2}}, "links": {"default": model.link()},
            "tasks": {"a": {"time": 0, "output": 10**9}, "b": {"time": 0, "after": "a"}},
        }  # fmt: skip
        problem = po.compile(spec)
        tables = problem.latency, problem.byte_ticks_num, problem.byte_ticks_den
        ticks = transfer_ticks(10**9, *(int(table[0, 1]) for table in tables))
        assert ticks == pytest.approx(175_534_000, abs=200)  # nine digits of a bandwidth
        assert model.seconds(10**9) == pytest.approx(0.175534, rel=1e-12)

    def test_no_constant_is_negative(self) -> None:
        # Through the origin: k = sum(d t) / sum(d^2) = (1 x 1 + 2 x 4) / 5.
        bent = fit_transfers(TransferTimes(np.array([1.0, 2.0]), np.array([1.0, 4.0])))
        assert (bent.seconds_per_byte, bent.latency) == (9 / 5, 0)
        assert "negative latency" in bent.bent
        flat = fit_transfers(TransferTimes(np.array([1.0, 2.0]), np.array([4.0, 2.0])))
        assert (flat.bandwidth, flat.latency, flat.link()) == (None, 3, {"latency": "3 s"})
        assert "fall" in flat.bent

    def test_a_line_through_the_origin_has_no_latency(self) -> None:
        data = np.array([3.0, 7e8, 1e9])
        assert fit_transfers(TransferTimes(data, data * 1e-10)).link() == {"bandwidth": "10 GB/s", "latency": "0 s"}

    def test_one_amount_shows_nothing(self) -> None:
        with pytest.raises(UsageError, match=r"t\.csv: all transfers move the same amount; expected several"):
            fit_transfers(TransferTimes(np.array([5.0, 5.0]), np.array([1.0, 2.0]), "t.csv"))


def test_numerals() -> None:
    assert [seconds_text(t, 9) for t in (0, 2, 0.0125, 3e-6, 5.2e-9, 1e-12)] == [
        "0 s", "2 s", "12.5 ms", "3 us", "5.2 ns", "0.001 ns",
    ]  # fmt: skip
    assert [bandwidth_text(b) for b in (3e12, 5.7e9, 2.5e4, 0.5)] == ["3000 GB/s", "5.7 GB/s", "25 kB/s", "0.5 B/s"]
    assert [whole_bytes(b) for b in (0.0, 7.00000000000001, 7.1, 55050240.00000001, 1e18)] == [
        0, 7, 8, 55050240, 10**18,
    ]  # fmt: skip


def estimate_document(*lines: str, folder: Path, batch: int = 4) -> dict[str, Any]:
    return profile_document(fit_profile(read_measurements(csv(folder, *lines)), batch))


class TestProfiles:
    def test_a_task_each_with_the_output_inside_its_memory(self, tmp_path: Path) -> None:
        lines = ["operator,batch,milliseconds,bytes,output_bytes", "a,1,1,100,30", "a,2,2,150,60", "b,1,1,5,9"]
        tasks = estimate_document(*lines, folder=tmp_path)["tasks"]
        assert tasks["a"] == {"time": "4 ms", "output": "120 B", "memory": {"resident": "130 B"}}
        assert tasks["b"] == {"time": "1 ms", "output": "9 B", "memory": {"resident": "0 B"}}
        without = estimate_document(HEADER, "a,1,1,100", folder=tmp_path)["tasks"]
        assert without["a"] == {"time": "1 ms", "memory": {"resident": "100 B", "output": "0 B"}}

    def test_durations_by_device_and_the_most_memory(self, tmp_path: Path) -> None:
        lines = [HEADER + ",device", "a,1,1,100,gpu", "a,1,9,120,cpu", "a,2,2,100,gpu"]
        tasks = estimate_document(*lines, folder=tmp_path)["tasks"]
        assert tasks["a"] == {"time": {"gpu": "4 ms", "cpu": "9 ms"}, "memory": {"resident": "120 B", "output": "0 B"}}
        with pytest.raises(DocumentError, match=r'm\.csv:2: column device: ""; expected a device'):
            estimate_document(HEADER + ",device", "a,1,1,100,", folder=tmp_path)

    def test_a_profile_file_is_checked(self, tmp_path: Path) -> None:
        path = csv(tmp_path, "placeopt: 1", "tasks: {a: {tme: 3 ms}}", name="p.yaml")
        with pytest.raises(SpecError, match=r"p.yaml:2:13: tasks.a.tme: unknown key; did you mean time\?"):
            read_profile(path)
        path = csv(tmp_path, "placeopt: 1", "devices: {cpu: {}}", "tasks: {a: {time: 3 ms}}", name="q.yaml")
        with pytest.raises(
            SpecError, match=r"q\.yaml:2:1: devices: this looks like a problem file, expected a profile"
        ):
            read_profile(path)


PROFILE = {
    "placeopt": 1,
    "links": {"default": {"bandwidth": "5 GB/s", "latency": "7 us"}},
    "tasks": {"a": {"time": "4 ms", "memory": {"resident": "9 B"}}, "mul": {"time": {"gpu": "1 ms"}}, "odd": {}},
}


class TestApply:
    def test_by_name_before_op_and_the_rest_left(self) -> None:
        problem = {
            "placeopt": 1, "operations": {"mul": {"cpu": "8 ms", "gpu": "2 ms"}},
            "devices": {"cpu": {}, "gpu": {}}, "links": {"default": {"latency": "1 us", "energy": "60 pJ/B"}},
            "tasks": {
                "a": {"op": "mul", "flops": "1 GFLOP", "memory": "3 B", "output": "5 B"},
                "b": {"op": "mul", "after": "a"},
                "c": {"flops": 5, "op": "mul", "deadline": "1 s", "after": {"b": "3 B"}},
                "d": {"time": {"gpu": "9 ms", "gpu0": "3 ms"}, "op": "mul"}, "e": {"time": 5},
                "f": {"time": "6 ms", "op": "mul"},
            },
        }  # fmt: skip
        applied = apply_profile(problem, PROFILE)
        tasks = applied.document["tasks"]
        assert tasks["a"] == {"op": "mul", "time": "4 ms", "memory": {"resident": "9 B"}, "output": "5 B"}
        assert tasks["b"] == {"op": "mul", "time": {"cpu": "8 ms", "gpu": "1 ms"}, "after": "a"}
        assert tasks["c"] == {"op": "mul", "time": {"gpu": "1 ms"}, "deadline": "1 s", "after": {"b": "3 B"}}
        assert tasks["d"]["time"] == {"gpu": "1 ms", "gpu0": "3 ms"}
        assert tasks["e"] == {"time": 5}
        assert tasks["f"]["time"] == {"*": "6 ms", "gpu": "1 ms"}
        assert (applied.by_name, applied.by_op) == (1, 4)
        assert (applied.left, applied.unused, applied.restricted) == (("e",), ("odd",), ("c",))
        assert applied.document["links"] == {"default": {"latency": "7 us", "energy": "60 pJ/B", "bandwidth": "5 GB/s"}}
        assert list(problem["tasks"]["a"]) == ["op", "flops", "memory", "output"], "the problem given is as it was"

    def test_memory_alone_leaves_durations(self) -> None:
        problem = {"placeopt": 1, "tasks": {"a": {"flops": 5, "memory": "1 B"}}}
        applied = apply_profile(problem, {"tasks": {"a": {"memory": {"resident": "2 B"}}}})
        assert applied.document["tasks"] == {"a": {"flops": 5, "memory": {"resident": "2 B"}}}

    def test_links_alone(self) -> None:
        applied = apply_profile({"tasks": {"a": {"time": 1}}}, {"links": PROFILE["links"]})
        assert applied.document["links"]["default"]["latency"] == "7 us"
        assert applied.left == ("a",)

    def test_nothing_in_common_is_an_error(self) -> None:
        with pytest.raises(UsageError, match="the profile has operators a, mul, odd, and no task has"):
            apply_profile({"tasks": {"x": {"time": 1}}}, PROFILE)
        with pytest.raises(UsageError, match="the problem has no tasks"):
            apply_profile({"placeopt": 1}, PROFILE)

    def test_graph_files_are_read_in_and_plans_found_again(self, tmp_path: Path) -> None:
        (tmp_path / "graphs").mkdir()
        (tmp_path / "new").mkdir()
        csv(tmp_path / "graphs", "placeopt: 1", "operations: {mul: 3 ms}", "tasks: {a: {op: mul}}", name="g.yaml")
        path = csv(
            tmp_path, "placeopt: 1", "devices: {gpu: }", "graph: {file: graphs/g.yaml}",
            "tasks: {b: {time: 1, after: a}}", "placement: {file: plan.json}", name="p.yaml",
        )  # fmt: skip
        found = self_contained(path, tmp_path / "new" / "out.yaml")
        assert found["tasks"] == {"a": {"op": "mul"}, "b": {"time": 1, "after": "a"}}
        assert found["operations"] == {"mul": "3 ms"}
        assert found["placement"] == {"file": "../plan.json"}
        assert "graph" not in found
        assert self_contained(tmp_path / "graphs" / "g.yaml")["tasks"] == {"a": {"op": "mul"}}
        with pytest.raises(SpecError, match=r"p\.yaml: no such file"):
            self_contained(tmp_path / "new" / "p.yaml")
        with pytest.raises(SpecError, match=r"bad\.yaml:1:27: tasks\.a\.tim: unknown key"):
            self_contained(csv(tmp_path, "{placeopt: 1, tasks: {a: {tim: 1}}}", name="bad.yaml"))


class TestCommand:
    def test_files_in_the_wrong_place(self, tmp_path: Path) -> None:
        problem, profile = tmp_path / "p.yaml", tmp_path / "m.yaml"
        problem.write_text("placeopt: 1\ndevices: {a: {}}\ntasks: {x: {time: 1 s}}\n")
        profile.write_text("placeopt: 1\nlinks: {default: {latency: 1 us}}\ntasks: {x: {time: 2 s}}\n")
        for command in ("apply", "efficiency"):
            done = run("profile", command, problem, profile)
            assert (done.code, done.out) == (2, "")
            assert "devices: this looks like a problem file, expected a profile" in done.err
        table = csv(tmp_path, HEADER, "a,1,2.5,100", "a,2,3.5,200")
        done = run("profile", "fit", table, "--batch", 4, "--transfers", table)
        assert done.code == 2
        assert "m.csv:1: column operator: this looks like a file of measurements, expected transfers" in done.err

    def blocks(self) -> list[str]:
        return re.findall(r"```\w+\n(.*?)```", (ROOT / "docs" / "profile.md").read_text(), re.DOTALL)

    def test_the_example_of_the_documentation(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        measured, transfers, printed, profile, problem, applied = self.blocks()[-7:-1]
        monkeypatch.chdir(tmp_path)
        for name, text in (("measurements.csv", measured), ("transfers.csv", transfers), ("problem.yaml", problem)):
            Path(name).write_text(text)
        options = ["--batch", 512, "--transfers", "transfers.csv", "--out", "profile.yaml"]
        done = run("profile", "fit", "measurements.csv", *options)
        assert (done.code, done.err) == (0, "")
        assert [line.rstrip() for line in done.out.splitlines()] == printed.splitlines()
        assert max(map(len, printed.splitlines())) <= 80
        assert Path("profile.yaml").read_text() == profile
        done = run("profile", "apply", "profile.yaml", "problem.yaml", "--out", "problem-512.yaml")
        assert done.code == 0
        assert done.err == "4 tasks: 2 measured by name, 2 by op, 0 unchanged\n"
        assert Path("problem-512.yaml").read_text() == applied
        result = po.solve(po.load("problem-512.yaml"), "heft")
        assert result.feasible

    def test_json_has_all_numbers(self, tmp_path: Path) -> None:
        path = csv(tmp_path, HEADER + ",odd", "a,1,1,100,", "a,2,2,150,", "a,4,5,200,")
        transfers = csv(tmp_path, "bytes,nanoseconds", "0,5", "10,5", name="t.csv")
        done = run("profile", "fit", path, "-b", 4, "--transfers", transfers, "--json")
        data = json.loads(done.out)
        assert data["profile"]["operators"][0]["estimated"]["bytes"] == pytest.approx(250)
        assert data["profile"]["operators"][0]["measured"]["bytes"] == 200
        assert data["profile"]["deviations"]["memory"]["mean"] == pytest.approx(0.25)
        assert data["profile"]["total"]["best"] == {"seconds": 0.005, "bytes": 200}
        assert data["transfers"]["bandwidth"] is None
        assert data["transfers"]["link"] == {"latency": "5 ns"}
        assert "unknown columns are ignored: odd" in done.err

    def test_doubtful_estimates_are_noted_and_many_counted(self, tmp_path: Path) -> None:
        lines = [f"op{k},{batch},{9 - batch},{batch * (99 - k)}" for k in range(25) for batch in (1, 2)]
        done = run("profile", "fit", csv(tmp_path, HEADER, *lines, "once,1,1,1"), "-b", 4)
        assert "and 6 with less memory; --json lists all of them" in done.out
        assert "note: 1 operator: measured at only one batch size, assumed to be constant: once" in done.err
        assert "note: 25 operators: memory or time decreases with the batch size, which is doubtful: op0" in done.err

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ([], "nothing to fit; expected a file of measurements, or --transfers"),
            (["{m}"], "--batch is missing; expected the batch size to estimate for"),
            (["--transfers", "{t}", "-b", 3], "--batch, --at, --device and --against need a file of measurements"),
            (["{m}", "-b", 3, "--out", "{m}"], "which is read; expected another file"),
            (["{m}", "-b", 0], "--batch is 0; expected a whole number from 1"),
            (["{t}", "-b", 3], "t.csv:1: column operator: is missing; the file has bytes, seconds"),
        ],
    )
    def test_wrong_usage(self, tmp_path: Path, arguments: list[Any], message: str) -> None:
        files = {
            "m": csv(tmp_path, HEADER, "a,1,1,100"),
            "t": csv(tmp_path, "bytes,seconds", "1,1", "2,2", name="t.csv"),
        }
        done = run("profile", "fit", *(str(argument).format(**files) for argument in arguments))
        assert done.code == 2
        assert message in done.err
        assert read_document(files["m"]).data is not None

    def test_apply_prints_what_it_made(self, tmp_path: Path) -> None:
        profile = csv(tmp_path, "placeopt: 1", "tasks: {a: {time: 3 ms}, z: {time: {gpu: 1 ms}}}", name="p.yaml")
        problem = csv(tmp_path, "placeopt: 1", "tasks: {a: {flops: 1}, b: {flops: 1}, z: {flops: 1}}", name="g.yaml")
        done = run("profile", "apply", profile, problem)
        assert "  a: {time: 3 ms}\n" in done.out
        assert "3 tasks: 2 measured by name, 0 by op, 1 unchanged" in done.err
        assert "stated by flops or bytes before, these tasks now run only where they were measured: z" in done.err
