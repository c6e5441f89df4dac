"""Commands on pipelines: periods, latencies and stages."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from commandline import run

import placeopt as po

ROOT = Path(__file__).parents[2]
FOUR = ROOT / "problems" / "four-stages.yaml"
PLAN = ROOT / "problems" / "plans" / "four-stages.json"
SMALL = """
placeopt: 1
name: small
objective: period
units: {time: ms, memory: MB, bandwidth: GB/s}
devices:
  gpu: {count: 2, memory: 64}
links: {default: {bandwidth: 1}}
pipeline: {stages: contiguous}
tasks:
  a: {time: 2, memory: 2, output: 1}
  b: {time: 4, memory: 2, output: 1, after: a}
  c: {time: 3, memory: 2, output: 1, after: b}
"""


@pytest.fixture
def small(tmp_path: Path) -> tuple[Path, Path]:
    """A pipeline, and a plan of it: a and b on gpu0, c on gpu1, period 7 ms."""
    file, plan = tmp_path / "small.yaml", tmp_path / "plan.json"
    file.write_text(SMALL)
    assert run("solve", file, "--solver", "brute-force", "--out", plan).code == 0
    return file, plan


def test_solve_prints_the_stages(small: tuple[Path, Path]) -> None:
    done = run("solve", small[0], "--solver", "brute-force")
    assert done.code == 0
    lines = [line.rstrip() for line in done.out.splitlines()]
    place = next(k for k, line in enumerate(lines) if line.startswith("stage"))
    assert lines[place : place + 4] == [
        "stage  device  tasks  computing  sent  received   idle            memory",
        "1      gpu0        2       6 ms  1 ms         -   0.0%  5.722 MiB (9.4%)",
        "2      gpu1        1       3 ms     -      1 ms  42.9%  2.861 MiB (4.7%)",
        "feasible: the verifier found no violation",
    ]
    assert "latency" in done.out
    assert "results per second" in done.out
    assert "->" not in done.out


def test_the_documentation_shows_the_output_of_verify() -> None:
    done = run("verify", FOUR, PLAN)
    page = (ROOT / "docs" / "pipelines.md").read_text()
    shown = re.search(r"```text\n(feasible: period.*?)```", page, re.DOTALL)
    assert shown is not None
    assert [line.rstrip() for line in done.out.splitlines()[1:]] == shown[1].splitlines()


def test_verify_states_the_stages_as_json(small: tuple[Path, Path]) -> None:
    found = json.loads(run("verify", *small, "--json").out)["pipeline"]
    assert (found["period"], found["throughput"]) == (7_000_000, pytest.approx(1000 / 7))
    assert [stage["devices"] for stage in found["stages"]] == [["gpu0"], ["gpu1"]]


def test_simulate_executes_runs(small: tuple[Path, Path]) -> None:
    found = json.loads(run("simulate", *small, "--runs", "20", "--json").out)
    assert found["plan_period"] == found["period"] == 7_000_000
    assert found["latency"] <= found["plan_latency"]
    text = run("simulate", *small).out
    assert "executed, period" in text
    assert "mean of 100 runs" in text


@pytest.mark.parametrize("option", [("--noise", "0.1"), ("--discipline", "fifo"), ("--out", "x.json")])
def test_simulate_rejects_options_for_single_runs(small: tuple[Path, Path], option: tuple[str, str]) -> None:
    done = run("simulate", *small, *option)
    assert done.code == 2
    assert f"{option[0]} does not apply to pipelines" in done.err


def test_inspect_states_the_rules() -> None:
    done = run("inspect", FOUR)
    assert "contiguous stages, outputs kept as for 1f1b" in done.out
    assert "contention" not in done.out
    assert json.loads(run("inspect", FOUR, "--json").out)["pipeline"].startswith("contiguous stages")


def test_explain_states_the_period(small: tuple[Path, Path]) -> None:
    assert "with a period of" in run("explain", small[0]).out


def test_compare_states_the_latency_instead_of_the_slr(small: tuple[Path, Path], tmp_path: Path) -> None:
    ledger = tmp_path / "runs.jsonl"
    done = run("compare", small[0], "--solvers", "ideals,brute-force", "--out", ledger, "--workers", "1")
    assert done.code == 0
    assert re.search(r"solver +period +gap +ratio +latency +time", done.out)
    assert "SLR" not in done.out
    rows = po.Comparison.read(ledger).rows()
    assert all(row["latency"] >= row["objective"] for row in rows)
    assert all(row["slr"] is None for row in rows)


def test_whatif_compares_periods(small: tuple[Path, Path]) -> None:
    done = run("whatif", small[0], "--solver", "brute-force", "--change", "devices", "--change", "network", "--json")
    assert done.code == 0
    found = {row["name"]: row for row in json.loads(done.out)["changes"]}
    assert found["devices:gpu"]["objective"] == 6_000_000  # b alone with both transfers
    assert found["network"]["objective"] == 6_000_000  # a and b
    assert found["devices:gpu"]["gain"] == pytest.approx(1 / 7)


def test_whatif_keeps_replicas(tmp_path: Path) -> None:
    file = tmp_path / "replicas.yaml"
    file.write_text(SMALL.replace("contiguous}", "contiguous, replicas: 3}"))
    done = run(
        "whatif", file, "--solver", "cp-sat", "--workers", "1", "--change", "devices", "--change", "memory", "--json"
    )
    assert done.code == 0, done.err
    rows = json.loads(done.out)
    assert rows["base"]["objective"] >= rows["changes"][0]["objective"]


def test_replace_compares_periods(small: tuple[Path, Path], tmp_path: Path) -> None:
    devices = tmp_path / "devices.yaml"
    devices.write_text("devices: {gpu: {count: 3, memory: 64}}\nlinks: {default: {bandwidth: 1 GB/s}}\n")
    done = run("replace", *small, "--devices", devices, "--solver", "brute-force", "--runs", "1000")
    assert done.code == 0, done.err
    assert "a period takes 6 ms, compared with 7 ms when leaving every task on its device" in done.out


def test_export_writes_reports_and_traces(small: tuple[Path, Path], tmp_path: Path) -> None:
    trace, report = tmp_path / "trace.json", tmp_path / "report.html"
    assert run("export", *small, "--trace", trace, "--report", report).code == 0
    assert json.loads(trace.read_text())["otherData"]["period_ticks"] == 7_000_000
    assert "Steady state" in report.read_text()


@pytest.mark.parametrize("kind", ["gantt", "memory", "graph"])
def test_plot_draws_all_kinds(small: tuple[Path, Path], tmp_path: Path, kind: str) -> None:
    pytest.importorskip("matplotlib", reason="pictures are not tested: pip install 'placeopt[plots]'")
    picture = tmp_path / "plot.svg"
    assert run("plot", *small, "--kind", kind, "--out", picture).code == 0
    assert picture.stat().st_size > 2000
