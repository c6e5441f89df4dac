"""The buffers of plans, and offsets for them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import placeopt as po
from placeopt.model.memory import peak_memory
from tests.support.commandline import run

ROOT = Path(__file__).parents[2]
FILE = """
placeopt: 1
name: sram
resolution: 1 us
memory_model: peak
devices: {mcu: {memory: 100 B}}
tasks:
  a: {time: 1 ms, memory: {output: 60, scratch: 10}}
  b: {time: 1 ms, after: a, memory: {output: 30, resident: 5}}
  c: {time: 1 ms, after: b, memory: {output: 40}}
"""


@pytest.fixture
def problem(tmp_path: Path) -> po.Problem:
    path = tmp_path / "sram.yaml"
    path.write_text(FILE)
    return po.load(path)


def solved(problem: po.Problem) -> po.Schedule:
    schedule = po.solve(problem, solver="heft").schedule
    assert schedule is not None
    return schedule


def test_lifetimes_of_a_chain(problem: po.Problem) -> None:
    """b's resident bytes are live all the time, scratch while a runs, outputs until their consumer ends."""
    schedule = solved(problem)
    found = po.plan_buffers(problem, schedule, 0)
    rows = zip(found.names, found.lower.tolist(), found.upper.tolist(), found.size.tolist(), strict=True)
    assert {name: row for name, *row in rows} == {
        "b:resident": [0, 3000, 5], "a:scratch": [0, 1000, 10], "a:output": [0, 2000, 60], "b:output": [1000, 3000, 30],
        "c:output": [2000, 3000, 40],
    }  # fmt: skip
    (placed,) = po.allocate_plan(problem, schedule).values()
    assert placed.fits
    assert placed.live == 95
    (aligned,) = po.allocate_plan(problem, schedule, alignment=64).values()
    assert aligned.fits is False  # 5, 60 and 30 bytes at multiples of 64 end at 128 + 5 at least
    with pytest.raises(po.UsageError, match="device is 1; expected a number from 0 to 0"):
        po.plan_buffers(problem, schedule, 1)


@pytest.mark.parametrize("seed", range(20))
def test_the_live_sum_is_the_peak(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    tasks = {
        f"t{k}": {
            "time": f"{rng.integers(0, 5)} ms",
            "after": [f"t{j}" for j in range(k) if rng.random() < 0.3],
            "memory": {what: int(rng.integers(0, 50)) for what in ("output", "scratch", "resident")},
        }
        for k in range(n)
    }
    problem = po.compile({
        "placeopt": 1, "resolution": "1 ms", "memory_model": "peak", "devices": {"d": {"count": 2, "memory": 10**6}},
        "links": {"default": {"bandwidth": "1 kB/s"}}, "tasks": tasks,
    })  # fmt: skip
    schedule = solved(problem)
    peak = peak_memory(problem, schedule).tolist()
    for device, found in po.allocate_plan(problem, schedule, time_limit=2).items():
        assert found.live == peak[device]
        assert found.fits


def test_a_plan_without_buffers(tmp_path: Path) -> None:
    problem, plan = tmp_path / "p.yaml", tmp_path / "plan.json"
    problem.write_text("{placeopt: 1, devices: {a: {}}, tasks: {x: {time: 1}}}")
    run("solve", problem, "--out", plan)
    done = run("allocate", problem, "--plan", plan)
    assert (done.code, "at least" in done.out) == (0, False)
    assert "the plan has no buffers" in done.err


def test_command(tmp_path: Path) -> None:
    (tmp_path / "sram.yaml").write_text(FILE)
    plan, out = tmp_path / "plan.json", tmp_path / "addresses.json"
    assert run("solve", tmp_path / "sram.yaml", "--solver", "heft", "--out", plan).code == 0
    placed = run("allocate", tmp_path / "sram.yaml", "--plan", plan, "--out", out)
    assert placed.code == 0
    assert "mcu" in placed.out
    assert len(json.loads(out.read_text())["devices"]["mcu"]["offsets"]) == 5
    missed = run("allocate", tmp_path / "sram.yaml", "--plan", plan, "--alignment", 64)
    assert missed.code == 1
    assert "missing at least 33 B on mcu" in " ".join(missed.out.split())
    wrong = run("allocate", tmp_path / "sram.yaml", "--plan", plan, "--alignment", 0)
    assert wrong.code == 2
    assert "--alignment is 0; expected a whole number from 1 to 2,147,483,648" in wrong.err
    refused = run("allocate", tmp_path / "sram.yaml", "--plan", plan, "--capacity", "9")
    assert "--capacity does not apply to plans" in refused.err
    assert "expected --plan FILE" in run("allocate", tmp_path / "sram.yaml").err
    block = ROOT / "problems" / "allocation" / "block.csv"
    assert "--alignment applies to plans" in run("allocate", block, "--alignment", 8).err
    stored = run("allocate", ROOT / "problems" / "gnmt.yaml", "--plan", ROOT / "problems" / "plans" / "gnmt.json")
    assert stored.code == 0
