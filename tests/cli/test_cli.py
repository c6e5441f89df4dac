"""The command line: output, streams and exit codes."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint, PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
from commandline import run
from rich.console import Console
from rich.table import Table

from placeopt.cli.terminal.console import folded, spaced
from placeopt.model.problem import Problem
from placeopt.model.versions import version_of
from placeopt.protocol import Answer, Info, Options, Settings, Termination, registry

PROBLEMS = Path(__file__).parents[2] / "problems"
HEFT_10 = PROBLEMS / "heft-10.yaml"

SOLVE_KEYS = {
    "problem", "fingerprint", "solver", "settings", "seed", "termination", "feasible", "violations", "objective",
    "bound", "gap", "bound_source", "resolution", "makespan", "wall_time", "process_memory", "devices", "placement",
    "start", "versions",
}  # fmt: skip


def write(folder: Path, text: str, name: str = "problem.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.fixture
def infeasible(tmp_path: Path) -> Path:
    """Three tasks of 2 bytes on two devices of 3: the total fits, the pieces do not."""
    tasks = "".join(f"  t{i}: {{time: 1, memory: 2}}\n" for i in range(3))
    return write(tmp_path, f"placeopt: 1\ndevices: {{a: {{count: 2, memory: 3}}}}\ntasks:\n{tasks}", "full.yaml")


class TestSolve:
    def test_prints_problem_result_devices_and_verdict(self) -> None:
        done = run("solve", HEFT_10, "--solver", "heft")
        assert done.code == 0
        assert done.err == "note: best known: 73 s (73 ticks), proved optimal\n"
        first, *rest = done.out.splitlines()
        assert first == "heft-10: 10 tasks, 15 edges, 3 devices, CCR 1.81, memory 0 B of unlimited"
        text = "\n".join(rest)
        assert "makespan = 80 s (80 ticks)" in text
        assert "feasible: the verifier found no violation" in text
        assert all(name in text for name in ("p1", "p2", "p3", "busy", "of capacity"))

    def test_a_note_names_the_next_command(self, tmp_path: Path) -> None:
        assert (
            run("solve", HEFT_10).err.splitlines()[-1]
            == "note: --solver auto searches for better schedules and bounds than heft"
        )
        tight = run("solve", PROBLEMS / "inception-tight.yaml", "--solver", "single")
        assert tight.err.endswith("\nnote: --solver auto searches for a schedule that keeps all rules\n")
        alone = tmp_path / "on the way.yaml"
        alone.write_text("placeopt: 1\ndevices: {a: {}}\ntasks: {x: {time: 1}}\n")
        assert run("solve", alone).err == ""  # optimal
        alone.write_text(
            "placeopt: 1\ndevices: {a: {}}\ntasks: {x: {time: 3}, y: {time: 3, deadline: 5, after: [x]}}\n"
        )
        assert f"`placeopt explain '{alone}'` shows which lines conflict" in run("solve", alone, "-s", "auto").err
        alone.write_text(
            "placeopt: 1\ndevices: {a: {memory: 9}}\ntasks: {x: {time: 3, memory: 3}}\nlimits: {memory_balance: 0.2}\n"
        )
        refused = "explain does not support a limit of memory_balance, which depends on the memory of devices"
        assert run("solve", alone, "-s", "cp-sat").err == f"note: {refused}\n"

    def test_a_pass_without_anything_to_do_is_reported(self) -> None:
        done = run("solve", HEFT_10, "--solver", "heft", "--pass", "forward", "--pass", "celeritas-fusion:range=1")
        assert done.code == 0
        assert "note: nothing to do for the passes forward, celeritas-fusion:range=1" in " ".join(done.err.split())

    def test_json_has_every_documented_key(self) -> None:
        done = run("solve", HEFT_10, "--json", "--seed", 3)
        result = json.loads(done.out)
        assert set(result) >= SOLVE_KEYS
        assert result["objective"] == result["makespan"] == 80
        assert result["seed"] == 3
        assert result["termination"] == "completed"
        assert result["feasible"] is True
        assert result["resolution"] == 1.0
        assert set(result["wall_time"]) == {"load", "build", "solve", "verify", "bound"}
        assert all(seconds >= 0 for seconds in result["wall_time"].values())
        assert set(result["placement"]) == set(result["start"]) == {f"n{i}" for i in range(1, 11)}
        assert sum(device["tasks"] for device in result["devices"]) == 10

    def test_cp_sat_proves_the_optimum(self) -> None:
        result = json.loads(run("solve", HEFT_10, "--solver", "cp-sat", "--json").out)
        assert (result["objective"], result["bound"], result["gap"]) == (73, 73, 0)
        assert result["termination"] == "optimal"

    def test_plan_is_written_and_verified_also_after_an_edit(self, tmp_path: Path) -> None:
        plan = tmp_path / "plan.json"
        assert run("solve", HEFT_10, "--out", plan).code == 0
        checked = run("verify", HEFT_10, plan)
        assert checked.code == 0
        assert "feasible: makespan = 80 s (80 ticks)" in checked.out
        document = json.loads(plan.read_text())
        document["tasks"]["n10"]["start"] -= 1
        plan.write_text(json.dumps(document))
        broken = run("verify", HEFT_10, plan, "--json")
        assert broken.code == 1
        report = json.loads(broken.out)
        assert report["feasible"] is False
        assert {found["rule"] for found in report["violations"]} == {"precedence", "objective"}

    def test_an_initial_plan_is_taken(self, tmp_path: Path) -> None:
        plan = tmp_path / "plan.json"
        run("solve", HEFT_10, "--out", plan)
        done = run("solve", HEFT_10, "-s", "cp-sat", "--initial", plan, "--json")
        assert json.loads(done.out)["objective"] == 73

    def test_an_initial_solver_is_run_first(self) -> None:
        done = run("solve", HEFT_10, "-s", "cp-sat", "--initial", "cpop", "--json")
        assert json.loads(done.out)["objective"] == 73

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
    def test_a_full_disk_loses_nothing(self) -> None:
        done = run("solve", HEFT_10, "--out", "/dev/full")
        assert done.code == 2
        assert "cannot write /dev/full: No space left on device; the plan is printed instead" in done.err
        printed = done.out[done.out.index("{\n") :]
        assert len(json.loads(printed)["tasks"]) == 10

    def test_a_required_gap(self) -> None:
        assert run("solve", HEFT_10, "-s", "cp-sat", "--require-gap", "0").code == 0
        assert run("solve", HEFT_10, "--require-gap", "50%").code == 0
        missed = run("solve", HEFT_10, "--require-gap", "0.01")
        assert missed.code == 1
        assert "the gap is not at most 1.00%: it is 21.25%" in missed.err
        assert "the gap is not at most 0.0001%: it is" in run("solve", HEFT_10, "--require-gap", "0.000001").err

    @pytest.mark.parametrize("solver", ["heft", "single", "cp-sat"])
    def test_no_schedule_is_an_answer(self, infeasible: Path, solver: str) -> None:
        done = run("solve", infeasible, "-s", solver)
        assert done.code == 1
        assert "infeasible: no schedule exists" in done.out
        assert run("solve", infeasible, "-s", solver, "--out", "plan.json").code == 1

    def test_the_default_limit_is_only_for_solvers_that_need_one(self) -> None:
        assert run("solve", HEFT_10, "-s", "cp-sat", "--time-limit", "none").code == 0


class Slow:
    """A solver that never finds anything in time."""

    name = "slow"
    info = Info("never done", "none", "-", anytime=True)
    settings_type = Settings

    def solve(self, problem: Problem, options: Options, settings: Settings) -> Answer:  # noqa: ARG002
        return Answer(Termination.TIME_LIMIT)


def test_time_limit_without_a_schedule_exits_with_3(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("slow", f"{__name__}:Slow", registry.GROUP)
    monkeypatch.setattr(registry, "_entry_points", lambda: {"slow": point})
    done = run("solve", HEFT_10, "-s", "slow")
    assert done.code == 3
    assert "time limit reached" in done.out
    assert "no schedule" in done.out
    assert "stopped after the default limit of 60 s" in done.err


def test_columns_are_two_spaces_apart_where_they_fit() -> None:
    lines = {}
    for width in (20, 9):
        table = Table(box=None, pad_edge=False)
        for header in ("one", "other"):
            table.add_column(header, no_wrap=True)
        console = Console(file=io.StringIO(), width=width)
        console.print(spaced(console, table))
        lines[width] = console.file.getvalue().rstrip()  # type: ignore[attr-defined]
    assert lines == {20: "one  other", 9: "one other"}


def test_the_problem_line_is_broken_after_commas() -> None:
    line = "inception: 235 tasks, 301 edges, 4 devices, CCR 0.123, memory 7.53 GiB of 48 GiB"
    assert folded(line, 80) == line
    assert folded(line, 79) == "inception: 235 tasks, 301 edges, 4 devices, CCR 0.123,\nmemory 7.53 GiB of 48 GiB"
    assert folded(line, 30).splitlines()[0] == "inception: 235 tasks,"
    assert all(len(part) <= 30 for part in folded(line, 30).splitlines())
    assert folded("a name without one " * 9, 40) == "a name without one " * 9


class TestMistakes:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["solve", "missing.yaml"], "missing.yaml: no such file"),
            (["solve", PROBLEMS], f"{PROBLEMS}: is a folder, expected a file"),
            (["solve", sys.executable], "is not UTF-8 text"),
            (["solve", HEFT_10, "-s", "hfet"], 'unknown solver "hfet"; did you mean heft?'),
            (["solve", HEFT_10, "-t", "5 MB"], '--time-limit: "5 MB" is an amount of memory; expected a time'),
            (["solve", HEFT_10, "-t", "0"], '--time-limit: "0" is zero'),
            (["solve", HEFT_10, "-t", "-3s"], '--time-limit: "-3s" is negative'),
            (["solve", HEFT_10, "--gap", "-1"], "--gap is -1; expected a share between 0 and 1, such as 0.05 or 5%"),
            (["solve", HEFT_10, "--gap", "5"], "--gap is 5; expected a share between 0 and 1"),
            (["whatif", HEFT_10, "--gap", "5 %%"], "--gap is 5 %%; expected a share"),
            (["solve", HEFT_10, "--require-gap", "5"], "--require-gap is 5; expected a share between 0 and 1"),
            (["solve", HEFT_10, "--require-gap", "101%"], "--require-gap is 101%; expected a share"),
            (["solve", HEFT_10, "--gap", "nan"], "--gap is nan"),
            (["solve", HEFT_10, "--require-gap", "-1"], "--require-gap is -1; expected"),
            (["solve", HEFT_10, "--seed", "-1"], "--seed is -1; expected a whole number from 0"),
            (["solve", HEFT_10, "--workers", "0"], "--workers is 0; expected a whole number from 1 to 1000"),
            (["solve", HEFT_10, "--set", "x"], '--set "x": expected key=value'),
            (["solve", HEFT_10, "--set", "x=1"], 'heft has no setting "x"'),
            (["solve", HEFT_10, "--set", "x=1", "--set", "x=2"], "x is set twice"),
            (["solve", HEFT_10, "--initial", HEFT_10], "placeopt_plan is missing"),
            (["solve", HEFT_10, "--initial", "hefft"], "no such file, and no solver of that name; did you mean heft"),
            (["verify", HEFT_10, "missing.json"], "missing.json: no such file"),
            (["simulate", HEFT_10, "missing.json"], "missing.json: no such file"),
            (["solvers", "nope"], 'unknown solver "nope"'),
            (["generate", "model", "resnet5"], "did you mean resnet50?"),
            (["generate", "model", "vgg19", "--set", "batch=0"], "vgg19: option batch"),
            (["generate", "model", "vgg19", "--network", "smal"], "did you mean small?"),
            (["generate", "model", "vgg19", "--set-network", "gpus=2"], "--set-network needs --network"),
            (["generate", "random", "--set", "alpha=0"], "alpha: 0 is not valid"),
            (["generate", "layered", "--set", "nope=1"], "layered has no option nope"),
            (["generate", "devices", "small", "--set", "gpus=[1"], "is not valid YAML"),
            (["generate", "devices", "small", "-o", "missing/x.yaml"], "cannot write missing/x.yaml"),
            (["generate", "layered", "--set", "devices=4097"], "devices: 4097 is too many; expected at most 4096"),
            (["generate", "random", "--set", "devices=4097"], "devices: 4097 is too many; expected at most 4096"),
            (["generate", "devices", "small", "--set", "gpus=4095"], "devices: 4097 is too many; expected at most"),
            (["solve", "https://example.org/p.yaml"], "https://example.org/p.yaml is an address on a network"),
            (["solve", HEFT_10, "-o", "s3://a/plan"], "s3://a/plan is an address on a network; expected a file"),
            (["compare", HEFT_10, "http://a/b"], "http://a/b is an address on a network"),
            (["compare", HEFT_10, "--seeds", "0"], "--seeds is 0; expected a whole number from 1"),
            (["solve", ""], "the name of a file is empty"),
            (["solve", HEFT_10, "--out", ""], "the name of a file is empty"),
            (["solve", HEFT_10, "--out", "-"], "- is not the name of a file; expected a file to write"),
            (["generate", "layered", "-o", "-"], "- is not the name of a file"),
            (["solve", HEFT_10, "--plot", "gantt:-"], "- is not the name of a file"),
            (["explain", HEFT_10, "--workers", "0"], "--workers is 0; expected a whole number from 1"),
        ],
        ids=lambda value: " ".join(map(str, value))[-40:] if isinstance(value, list) else "",
    )
    def test_are_told_in_a_line_and_exit_with_2(self, arguments: list[str], message: str) -> None:
        done = run(*arguments)
        assert done.code == 2
        assert message in done.err
        assert "Traceback" not in done.err
        assert done.out == ""

    def test_usage_errors_exit_with_2(self) -> None:
        assert run("slove").code == 2
        assert run("solve").code == 2
        assert run("solve", HEFT_10, "--nope").code == 2
        assert run("solve", HEFT_10, "--seed", "x").code == 2

    def test_a_missing_file_is_a_plain_error(self, tmp_path: Path) -> None:
        missing = tmp_path / "none.yaml"
        for arguments in (("inspect", missing), ("compare", missing), ("solve", missing, "--json")):
            done = run(*arguments)
            assert (done.code, done.err) == (2, f"placeopt: {missing}: no such file\n")

    @pytest.mark.parametrize(
        ("words", "found", "other"),
        [
            ("solve p.yaml --solver he", {"heft", "heuristic-g"}, "milp"),
            ("whatif p.yaml -s heft", {"heft"}, "milp"),
            ("pareto p.yaml --metrics makespan,e", {"makespan,energy"}, "price"),
            ("compare p.yaml --solvers heft,pe", {"heft,peft"}, "peft"),
            ("export p.yaml q.json --to onnx", {"onnxruntime", "onnxruntime-session"}, "dot"),
            ("import m.onnx --devices t4:2,xeon-c", {"t4:2,xeon-core"}, "xeon-core"),
            ("replace p.yaml q.json -d other", {"other.yaml"}, "other.txt"),
        ],
    )
    def test_a_shell_completes_values(
        self, words: str, found: set[str], other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("other.yaml", "other.txt"):
            write(tmp_path, "", name)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("_PLACEOPT_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", f"placeopt {words}")
        monkeypatch.setenv("COMP_CWORD", str(len(words.split())))
        names = run().out.split()
        assert found <= set(names)
        assert other not in names

    def test_all_issues_of_a_spec_are_counted(self, tmp_path: Path) -> None:
        path = write(tmp_path, "placeopt: 1\ndevices: {a: {memori: 1}}\ntasks: {x: {time: 1 B}}\n")
        done = run("inspect", path)
        assert done.code == 2
        assert done.err.splitlines() == [
            f"{path}:2:15: devices.a.memori: unknown key; did you mean memory?",
            f'{path}:3:19: tasks.x.time: "1 B" is an amount of memory; expected a time, such as 5 ms',
            "placeopt: 2 problems found",
        ]

    @pytest.mark.parametrize(
        ("name", "content", "format"),
        [
            ("x.gguf", b"GGUF\x03\0\0\0" + bytes(16), "gguf"),
            ("p.dot", b"digraph { a -> b }", "dot"),
            ("config.json", b'{"model_type": "llama", "hidden_size": 64}', "hf-config"),
            ("g.json", b'{"graph": {"nodes": {"a": {}}, "edges": []}}', "json-graph"),
            ("m.onnx", b"\x08\x0a\x3a\x05\x0a\x03\x0a\x01\xff\x42\x04\x0a\x00\x10\x15", "onnx"),
        ],
    )
    def test_a_file_to_import_is_not_a_problem_file(
        self, tmp_path: Path, name: str, content: bytes, format: str
    ) -> None:
        path = tmp_path / name
        path.write_bytes(content)
        for command in ("solve", "inspect"):
            done = run(command, path)
            assert done.code == 2
            hint = f"placeopt: {path} looks like {format}; `placeopt import {path} --out problem.yaml` reads it"
            assert done.err.splitlines()[-1] == hint
        assert "looks like" not in run("import", path).err
        assert "looks like" not in run("verify", HEFT_10, path).err

    def test_a_plan_of_another_problem(self, tmp_path: Path) -> None:
        plan = tmp_path / "plan.json"
        run("solve", HEFT_10, "-o", plan)
        done = run("verify", PROBLEMS / "five-node.yaml", plan)
        assert done.code == 2
        assert 'the problem has no device "p1"' in done.err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
def test_a_full_disk_behind_stdout_is_reported() -> None:
    command = f"{sys.executable} -m placeopt solve {HEFT_10} --json > /dev/full"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "cannot write the output: No space left on device" in done.stderr


def test_a_checkout_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """cli.py runs it: no metadata says which version it is, and pyproject.toml says which solvers there are."""

    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("placeopt.model.versions.version", missing)
    version_of.cache_clear()
    try:
        assert run("--version").out == "placeopt, a checkout that is not installed\n"
    finally:
        version_of.cache_clear()
    monkeypatch.setattr(registry, "distribution", missing)
    monkeypatch.setattr(registry, "entry_points", lambda group: [])  # noqa: ARG005
    registry._entry_points.cache_clear()
    try:
        assert {"cp-sat", "heft", "milp", "single"} <= set(registry.solver_names())
    finally:
        registry._entry_points.cache_clear()


def test_a_closed_stdout_is_reported() -> None:
    command = f"{sys.executable} -m placeopt solve {HEFT_10} --json >&-"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "placeopt: standard output is closed; results cannot be printed\n"


def test_notes_with_a_closed_stderr(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    run("solve", HEFT_10, "-o", plan)
    command = f"{sys.executable} -m placeopt solve {HEFT_10} --initial {plan} 2>&-"  # tells that heft ignores the plan
    done = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0
    assert "the verifier found no violation" in done.stdout


def test_names_that_look_like_markup(tmp_path: Path) -> None:
    problem = write(tmp_path, 'placeopt: 1\ndevices: {"[/x]": {type: "[red]"}}\ntasks: {"[/y]": {time: 1}}\n')
    assert "[/x]" in run("solve", problem).out
    assert "[red]" in run("inspect", problem).out


def test_a_solver_that_starts_from_scratch_says_so(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    run("solve", HEFT_10, "-o", plan)
    assert "heft starts from scratch" in run("solve", HEFT_10, "--initial", plan).out
    assert run("solve", HEFT_10, "-s", "cp-sat", "--initial", plan).err == ""


class TestSimulate:
    @pytest.fixture
    def plan(self, tmp_path: Path) -> Path:
        path = tmp_path / "plan.json"
        run("solve", HEFT_10, "-o", path)
        return path

    def test_the_order_of_the_plan_is_the_default(self, tmp_path: Path) -> None:
        plan = tmp_path / "plan.json"
        problem = PROBLEMS / "inception.yaml"
        run("solve", problem, "--solver", "m-sct", "-o", plan)
        found = json.loads(run("simulate", problem, plan, "--json").out)
        assert (found["discipline"], found["makespan"]) == ("order", found["plan_makespan"])
        fifo = json.loads(run("simulate", problem, plan, "--discipline", "fifo", "--json").out)
        assert fifo["makespan"] > found["makespan"]
        assert re.search(r"^in plan order +4\.4566 ms", run("simulate", problem, plan).out, re.MULTILINE)

    def test_noise_is_seeded(self, plan: Path) -> None:
        arguments = ["simulate", HEFT_10, plan, "--noise", "0.2", "--runs", "50", "--json"]
        first, second = run(*arguments, "--seed", 1), run(*arguments, "--seed", 1)
        assert json.loads(first.out) == json.loads(second.out)
        other = json.loads(run(*arguments, "--seed", 2).out)
        assert other["mean"] != json.loads(first.out)["mean"]
        assert other["quantiles"]["0.05"] <= other["quantiles"]["0.5"] <= other["quantiles"]["0.95"]

    def test_people_get_a_table(self, plan: Path) -> None:
        done = run("simulate", HEFT_10, plan, "--noise", "10%")
        assert "with noise of 10%, 100 runs, seed 0:" in done.out
        assert "with noise of 10%, 1 run, seed 0:" in run("simulate", HEFT_10, plan, "--noise", "10%", "--runs", 1).out

    def test_missed_deadlines_are_stated(self, tmp_path: Path) -> None:
        """b follows a; with noise, it is late in about half of the runs."""
        problem, plan = tmp_path / "p.yaml", tmp_path / "plan.json"
        problem.write_text(
            "{placeopt: 1, devices: {cpu: {}}, tasks: {a: {time: 9 ms}, b: {time: 9 ms, deadline: 18 ms}}}"
        )
        on = {"device": "cpu", "start": 0}
        plan.write_text(json.dumps({"placeopt_plan": 1, "tasks": {"a": on, "b": on | {"start": 9_000_000}}}))
        done = run("simulate", problem, plan, "--noise", "0.5", "--runs", "200")
        share = re.search(r"^  (\d+) of 200 runs miss a deadline$", done.out, re.MULTILINE)
        assert share is not None
        assert 50 < int(share[1]) < 150
        assert "late:" not in done.out
        problem.write_text(problem.read_text().replace("18 ms", "15 ms").replace("a: {", "a: {release: 1 ms, "))
        done = run("simulate", problem, plan)
        assert "late: b ends 4 ms after its deadline at 15 ms" in done.out
        found = json.loads(run("simulate", problem, plan, "--json").out)["late"]
        assert found == [{"task": "b", "end": 19 * 10**6, "deadline": 15 * 10**6, "ticks": 4 * 10**6}]

    @pytest.mark.parametrize("command", ["simulate", "verify", "plot"])
    def test_a_plan_of_another_version_is_noted(self, plan: Path, tmp_path: Path, command: str) -> None:
        changed = tmp_path / "changed.yaml"
        changed.write_text(HEFT_10.read_text().replace("p1: 14", "p1: 15", 1))
        more = ["--out", tmp_path / "plan.png"] if command == "plot" else []
        assert "plan.json was made for another version of this problem (" in run(command, changed, plan, *more).err
        assert "was made for" not in run(command, HEFT_10, plan, *more).err

    def test_many_ticks_are_written_out(self, tmp_path: Path) -> None:
        problem, plan = tmp_path / "long.yaml", tmp_path / "plan.json"
        problem.write_text("{placeopt: 1, devices: {cpu: {}}, tasks: {a: {time: 66749133 ns}}}")
        run("solve", problem, "-o", plan)
        assert "(66,749,133 ticks)" in run("simulate", problem, plan).out

    @pytest.mark.parametrize(
        ("option", "message"),
        [
            (["--discipline", "fife"], "fifo"),
            (["--noise", "1"], "--noise is 1.0; expected a share from 0"),
            (["--noise", "0.1", "--runs", "0"], "--runs is 0; expected a whole number from 1 to 10,000,000"),
            (["--runs", "99999999999"], "--runs is 99999999999; expected a whole number from 1 to 10,000,000"),
        ],
    )
    def test_mistakes(self, plan: Path, option: list[str], message: str) -> None:
        done = run("simulate", HEFT_10, plan, *option)
        assert done.code == 2
        assert message in done.err

    def test_out_writes_a_plan_that_verifies(self, plan: Path, tmp_path: Path) -> None:
        executed = tmp_path / "executed.json"
        assert run("simulate", HEFT_10, plan, "--out", executed).code == 0
        assert run("verify", HEFT_10, executed).code == 0


class TestBestKnown:
    def test_solve_and_compare_show_it(self, tmp_path: Path) -> None:
        path = tmp_path / "p.yaml"
        path.write_text(HEFT_10.read_text().replace("objective: 73, bound: 73", "objective: 90, bound: 81"))
        shown = "90 s (90 ticks), with the bound 81 s (81 ticks); the schedule found here contradicts its bound"
        done = run("solve", path)
        assert f"note: best known: {shown}" in done.err
        assert json.loads(run("solve", path, "--json").out)["best_known"] == {"objective": 90, "bound": 81}
        assert "best known" not in run("solve", HEFT_10, "--solver", "cp-sat").err  # equal, and proved optimal
        assert "note: best known: 73 s (73 ticks), proved optimal\n" in run("solve", HEFT_10).err
        assert "best known: 73 s, proved optimal" in run("compare", HEFT_10, "--solvers", "heft").out


class TestStatedObjective:
    def test_a_wrong_one_is_not_an_infeasible_schedule(self, tmp_path: Path) -> None:
        plan, proof = tmp_path / "plan.json", tmp_path / "proof.json"
        run("solve", HEFT_10, "--out", plan, "--certificate", proof)
        document = json.loads(plan.read_text())
        plan.write_text(json.dumps({**document, "objective": [79]}))
        done = run("verify", HEFT_10, plan, "--certificate", proof)
        assert done.code == 1
        assert "feasible: makespan = 80 s (80 ticks)\n" in done.out
        assert "the plan states a wrong objective: level 1 of the objective (makespan) is 80; the claim" in done.out
        assert "infeasible" not in done.out
        assert "gap: 21.25%" in done.out
        assert "correct or delete its `objective`" in done.err
        data = json.loads(run("verify", HEFT_10, plan, "--json").out)
        assert (data["feasible"], data["objective_as_stated"]) == (True, False)
        assert [found["rule"] for found in data["violations"]] == ["objective"]
        del document["objective"]
        plan.write_text(json.dumps(document))
        assert run("verify", HEFT_10, plan).code == 0


class TestBounds:
    def test_why_there_is_no_relaxation(self, tmp_path: Path) -> None:
        path = tmp_path / "p.yaml"
        path.write_text("placeopt: 1\ndevices: {cpu: {parallel: true}}\ntasks: {a: {time: 1}, b: {time: 2}}\n")
        done = run("bounds", path, "--time-limit", "2s")
        assert done.code == 0
        assert "note: no relaxation-lp or relaxation-mip: they do not support the makespan of devices" in done.err
        assert "too large" not in done.err


class TestInspect:
    def test_json(self) -> None:
        data = json.loads(run("inspect", PROBLEMS / "five-node.yaml", "--json").out)
        assert (data["tasks"], data["edges"], data["devices"]) == (5, 5, 3)
        assert (data["depth"], data["width"]) == (4, 2)
        assert [group["devices"] for group in data["device_classes"]] == [["core0", "core1"], ["gpu"]]
        assert data["infeasible"] is None
        assert max(bound["value"] for bound in data["bounds"]) == data["bounds"][0]["value"] > 0

    def test_release_times_and_deadlines(self, tmp_path: Path) -> None:
        path = tmp_path / "p.yaml"
        head = "placeopt: 1\nresolution: 1 us\ndevices: {cpu: }\ntasks:\n  a: {time: 1}\n"
        keys = ("release_times", "latest_release", "deadlines", "earliest_deadline")
        for tasks, counts, line in (
            ("", (0, 0, 0, None), None),
            ("  b: {time: 1, release: 0, deadline: 5 ms}\n", (0, 0, 1, 5000), "times 1 deadline (earliest 5 ms)"),
            (
                "  b: {time: 1, release: 2 ms, deadline: 1 s}\n  c: {time: 1, release: 7, deadline: 4 ms}\n",
                (2, 2000, 2, 4000),
                "times 2 release times (latest 2 ms), 2 deadlines (earliest 4 ms)",
            ),
        ):
            path.write_text(head + tasks, encoding="utf-8")
            data = json.loads(run("inspect", path, "--json").out)
            assert tuple(data[key] for key in keys) == counts
            told = [" ".join(row.split()) for row in run("inspect", path).out.splitlines() if row.startswith("times")]
            assert told == ([] if line is None else [line])

    def test_people(self, infeasible: Path) -> None:
        assert "lower bounds" in run("inspect", HEFT_10).out
        assert "infeasible:" in run("inspect", infeasible).out


def test_helps_have_no_brackets_which_rich_takes_for_markup() -> None:
    from typer.main import get_command

    from placeopt.cli.app import app

    def helps(command: Any) -> Iterator[str]:
        yield command.help or ""
        for each in command.params:
            yield getattr(each, "help", None) or ""
        for each in getattr(command, "commands", {}).values():
            yield from helps(each)

    assert not [text for text in helps(get_command(app)) if re.search(r"\[[a-z]", text)]


class TestCatalog:
    def test_solvers(self) -> None:
        assert [card["name"] for card in json.loads(run("solvers", "--json").out)] == registry.solver_names()
        assert "heft" in run("solvers").out
        card = json.loads(run("solvers", "cp-sat", "--json").out)
        assert all(setting["description"] for setting in card["settings"])
        assert all(setting["name"] in run("solvers", "cp-sat").out for setting in card["settings"])

    def test_a_solver_that_cannot_be_loaded_is_a_note(self, monkeypatch: pytest.MonkeyPatch) -> None:
        points = {"heft": registry._entry_points()["heft"], "odd": EntryPoint("odd", "fractions:Odd", registry.GROUP)}
        monkeypatch.setattr(registry, "_entry_points", lambda: points)
        done = run("solvers")
        assert (done.code, "heft" in done.out, "odd" in done.out) == (0, True, False)
        assert done.err == (
            "note: solver \"odd\" (fractions:Odd) cannot be loaded: module 'fractions' has no attribute 'Odd'\n"
        )
        assert [card["name"] for card in json.loads(run("solvers", "--json").out)] == ["heft"]
        assert run("solvers", "odd").code == 2

    @pytest.mark.parametrize(
        "name",
        [
            "m-topo",
            "m-etf",
            "m-sct",
            "sct-lp",
            "celeritas",
            "celeritas-tuned",
            "order-place",
            "heuristic-g",
            "submodular-g",
            "submodular-gi",
            "giph",
            "random-task-eft",
            "random",
        ],
    )
    def test_departures_of_the_solvers_of_the_four_papers(self, name: str) -> None:
        departures = json.loads(run("solvers", name, "--json").out)["departures"]
        assert departures
        assert all(text.endswith((".", ".)")) and len(text) > 30 for text in departures)
        shown = " ".join(run("solvers", name).out.partition("\ndepartures from the paper\n")[2].split())
        assert shown == " ".join(f"- {text}" for text in departures)

    def test_rules_that_a_solver_refuses(self) -> None:
        assert "other rules   none; refuses problems with memory tiers, " in run("solvers", "sct-lp").out

    def test_cite(self) -> None:
        assert "doi     = {10.1109/71.993206}" in run("solvers", "heft", "--cite").out
        assert run("solvers", "single", "--cite").out == "single implements no paper\n"

    def test_schema(self) -> None:
        assert json.loads(run("schema").out)["title"] == "placeopt problem"
        assert json.loads(run("schema", "--serving").out)["title"] == "placeopt serving problem"

    def test_version(self) -> None:
        assert run("--version").out.startswith("placeopt 0.")


class TestGenerate:
    @pytest.mark.parametrize("suffix", ["yaml", "json"])
    def test_a_whole_problem_that_solves(self, tmp_path: Path, suffix: str) -> None:
        path = tmp_path / f"problem.{suffix}"
        assert run("generate", "model", "vgg19", "--network", "small", "--set", "batch=2", "-o", path).code == 0
        assert run("solve", path).code == 0

    def test_stdout_is_yaml_that_solves(self, tmp_path: Path) -> None:
        path = write(tmp_path, run("generate", "random", "--set", "tasks=12").out)
        assert run("solve", path).code == 0

    def test_lists(self) -> None:
        assert "inception_v3" in run("generate", "model").out
        assert "v100x4" in run("generate", "devices").out
        assert "batch = 1" in run("generate", "model", "resnet50", "--options").out
        assert "connection" in run("generate", "random", "--options").out
        assert "tightness" in run("generate", "layered", "--options").out
        assert "gpus" in run("generate", "devices", "small", "--options").out

    @pytest.mark.parametrize("name", ["random", "layered", "irregular", "fork", "giph"])
    def test_options_are_listed_once_and_explained(self, name: str) -> None:
        lines = run("generate", name, "--options").out.splitlines()
        options = [line.split(" = ")[0] for line in lines if not line.startswith(" ")]
        assert len(options) == len(set(options))
        assert {"seed", "devices", "v" if name == "giph" else "tasks"} <= set(options)
        assert lines[-1].startswith("    ")
        assert all(" = " in line or line.startswith("    ") for line in lines)
        assert not [line for line in lines if "None" in line or "True" in line]
        assert max(map(len, lines)) <= 140

    @pytest.mark.parametrize("name", ["random", "layered", "irregular", "fork", "giph"])
    def test_a_seed_selects_the_problem(self, name: str) -> None:
        third = run("generate", name, "--seed", "3").out
        assert third == run("generate", name, "--set", "seed=3").out
        assert third != run("generate", name).out == run("generate", name, "--seed", "0").out

    def test_many_problems(self, tmp_path: Path) -> None:
        arguments = ["random", "--set", "tasks=5", "--set", "network_seed=1"]
        done = run("generate", *arguments, "--seed", "9", "--count", "3", "--out", tmp_path / "a-{seed}.json")
        assert done.out == f"3 problems: {tmp_path}/a-9.json to {tmp_path}/a-11.json\n"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a-10.json", "a-11.json", "a-9.json"]
        run("generate", *arguments, "--seed", "10", "--out", tmp_path / "b-{seed}.json")
        assert (tmp_path / "b-10.json").read_text() == (tmp_path / "a-10.json").read_text()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["random", "--set", "task=20"], "random has no option task; did you mean tasks?"),
            (["layered", "--set", "task=20"], "layered has no option task; did you mean tasks?"),
            (["giph", "--set", "sed=20"], "giph has no option sed; did you mean seed?"),
            (
                ["fork", "--seed", "1", "--set", "seed=2"],
                "--seed and --set seed=2 both state seed; expected one of them",
            ),
            (["fork", "--seed", "-1"], "seed: -1 is not valid; expected a whole number of at least 0"),
            (["fork", "--count", "0"], "--count is 0; expected a whole number of at least 1"),
            (
                ["fork", "--count", "2"],
                "--count 2 writes a file for each seed; expected {seed} in --out: 'graph-{seed}",
            ),
            (
                ["fork", "--count", "2", "-o", "x.json"],
                "--count 2 writes a file for each seed; expected {seed} in --out",
            ),
            (["fork", "--count", "2", "-o", "no/{seed}.json"], "cannot write no/0.json: there is no folder no"),
        ],
    )
    def test_mistakes(self, arguments: list[str], message: str) -> None:
        done = run("generate", *arguments)
        assert (done.code, done.out) == (2, "")
        assert message in done.err


def test_many_issues_are_counted_and_json_lists_all_of_them(tmp_path: Path) -> None:
    tasks = "".join(f"  t{i}: {{time: 1 B}}\n" for i in range(120))
    path = write(tmp_path, f"placeopt: 1\ndevices: {{a: {{}}}}\ntasks:\n{tasks}")
    short = run("inspect", path).err.splitlines()
    assert len(short) == 101
    assert short[-1] == "placeopt: 120 problems found, of which 20 are not listed; --json lists all of them"
    full = run("inspect", path, "--json")
    assert (full.code, len(full.err.splitlines())) == (2, 121)
    assert full.err.endswith("placeopt: 120 problems found\n")
    graph = tmp_path / "graph.stg"
    graph.write_text("120\n" + "x y z\n" * 120)
    last = run("import", graph, "--format", "stg").err.splitlines()[-1]  # a command without --json
    assert re.fullmatch(r"placeopt: \d+ problems found, of which \d+ are not listed", last)
