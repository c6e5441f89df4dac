"""Signals that end a command: results are kept, the exit code names the signal, no process remains."""

from __future__ import annotations

import functools
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import pytest
from commandline import Outcome, run

from placeopt.bounding.engines import signals
from placeopt.cli import interruption
from placeopt.model.problem import Problem
from placeopt.orchestration.result import Result
from placeopt.protocol import Answer, Info, Options, Settings, Termination, registry
from placeopt.simulation import simulate
from placeopt.studies.pareto import search

HEFT_10 = Path(__file__).parents[2] / "problems" / "heft-10.yaml"
PLACEOPT = [sys.executable, "-m", "placeopt"]
KNOWN = "note: best known: 73 s (73 ticks), proved optimal\n"
CODES = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]


def send(number: int = signal.SIGTERM) -> None:
    """Send this process a signal; its main thread handles it, whichever thread sends it."""
    os.kill(os.getpid(), number)


class Patient:
    """Holds a schedule and does what `Patient.during` does, which gets `should_stop`."""

    name = "patient"
    info = Info("waits", "none", "-", anytime=True, warm_start=True, combined=True, metrics=("makespan", "relocation"))
    settings_type = Settings
    during: ClassVar[Callable[[Callable[[], bool]], None]]

    def solve(self, problem: Problem, options: Options, settings: Settings) -> Answer:  # noqa: ARG002
        found = simulate(problem, [0] * problem.n_tasks) if options.initial is None else options.initial
        Patient.during(options.should_stop)
        return Answer(Termination.INTERRUPTED if options.should_stop() else Termination.COMPLETED, found)


def wait_for(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.005)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts the solver into the registry; gives a function that says what it does: signals to send, and then to stop."""
    points = {**registry._entry_points(), "patient": EntryPoint("patient", f"{__name__}:Patient", registry.GROUP)}
    monkeypatch.setattr(registry, "_entry_points", lambda: points)

    def does(*numbers: int) -> None:
        def during(stopped: Callable[[], bool]) -> None:
            for number in numbers:
                send(number)
                wait_for(stopped)

        Patient.during = staticmethod(during)  # type: ignore[assignment]

    return does


def solve(*arguments: object) -> Outcome:
    return run("solve", HEFT_10, "-s", "patient", "-t", "none", *arguments)


def is_plan(path: Path, problem: Path = HEFT_10) -> bool:
    return run("verify", problem, path).code == 0


class TestWhileSolving:
    @pytest.mark.parametrize(("number", "code"), CODES)
    def test_a_signal_keeps_the_best_schedule(
        self, tmp_path: Path, patient: Callable[..., None], number: int, code: int
    ) -> None:
        patient(number)
        done = solve("--out", tmp_path / "plan.json")
        assert done.code == code
        assert "stopping" in done.err
        assert "interrupted" in done.out
        assert "feasible: the verifier found no violation" in done.out
        assert is_plan(tmp_path / "plan.json")

    def test_a_signal_that_is_sent_twice_at_once_is_one_request(
        self, tmp_path: Path, patient: Callable[..., None]
    ) -> None:
        """`timeout` signals its child, and then the process group in which the child is."""
        patient(signal.SIGTERM, signal.SIGTERM, signal.SIGHUP)
        assert solve("--out", tmp_path / "plan.json").code == 143
        assert is_plan(tmp_path / "plan.json")

    def test_a_second_signal_ends_the_process_at_once(
        self, monkeypatch: pytest.MonkeyPatch, patient: Callable[..., None]
    ) -> None:
        ended = threading.Event()

        def end(code: int) -> None:
            ended.set()
            raise SystemExit(code)

        def during(stopped: Callable[[], bool]) -> None:
            send(signal.SIGTERM)
            wait_for(stopped)
            send(signal.SIGHUP)
            ended.wait()  # and not for the solver

        patient()
        monkeypatch.setattr(Patient, "during", staticmethod(during))
        monkeypatch.setattr(interruption, "REPEAT", 0.0)
        monkeypatch.setattr(os, "_exit", end)
        done = solve()
        assert done.code == 129
        assert "makespan" not in done.out

    def test_nohup_is_respected(self, monkeypatch: pytest.MonkeyPatch, patient: Callable[..., None]) -> None:
        patient()
        monkeypatch.setattr(Patient, "during", staticmethod(lambda _stopped: send(signal.SIGHUP)))
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            done = solve()
        finally:
            signal.signal(signal.SIGHUP, before)
        assert (done.code, done.err) == (0, KNOWN)

    def test_replace_keeps_its_plan_too(self, tmp_path: Path, patient: Callable[..., None]) -> None:
        plan, new, changed = tmp_path / "plan.json", tmp_path / "new.json", tmp_path / "changed.yaml"
        patient()
        assert solve("--out", plan).code == 0
        devices = tmp_path / "devices.yaml"
        devices.write_text("devices: {p1: {}, p2: {}, p4: {type: p3}}\n")
        patient(signal.SIGTERM)
        done = run("replace", HEFT_10, plan, "-d", devices, "-s", "patient", "--out", new, "--out-problem", changed)
        assert done.code == 143
        assert "feasible" in done.out
        assert is_plan(new, changed)

    def test_what_if_reports_the_changes_that_are_done(self, patient: Callable[..., None]) -> None:
        patient(signal.SIGINT)
        done = run("whatif", HEFT_10, "-s", "patient", "-t", "none")
        assert done.code == 130
        assert "as it is" in done.out
        assert "note: not examined: one more processor, processor twice as fast, twice the bandwidth of" in done.out
        assert done.out.endswith("no change was examined\n")

    def test_pareto_prints_the_points_so_far(self, monkeypatch: pytest.MonkeyPatch) -> None:
        solves: list[Any] = []
        original = search.solve

        def solve(*arguments: Any, should_stop: Callable[[], bool], **options: Any) -> Result:
            if len(solves) == 4:  # both ends are known
                send(signal.SIGINT)
                wait_for(should_stop)
            solves.append(original(*arguments, should_stop=should_stop, **options))
            return solves[-1]  # type: ignore[no-any-return]

        monkeypatch.setattr(search, "solve", solve)
        done = run("pareto", HEFT_10, "--metrics", "makespan,total_cost", "-w", "1")
        assert done.code == 130
        assert len(solves) == 5
        assert "2 points, 2 of them proved to be Pareto-optimal" in done.out
        assert "Traceback" not in done.err


@pytest.mark.parametrize("place", ["placeopt.io.plan.write_plan", "placeopt.cli.terminal.console.print_result"])
def test_a_signal_while_the_result_is_saved_or_printed_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    signal_before(monkeypatch, place, signal.SIGTERM)
    done = run("solve", HEFT_10, "--out", tmp_path / "plan.json")
    assert done.code == 143
    assert "feasible: the verifier found no violation" in done.out
    assert is_plan(tmp_path / "plan.json")


def test_a_signal_while_a_report_is_written_keeps_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, report = tmp_path / "plan.json", tmp_path / "report.html"
    original = os.replace

    def replace(source: Path, target: Path) -> None:
        if target == report:
            signal.raise_signal(signal.SIGTERM)
        original(source, target)

    monkeypatch.setattr(os, "replace", replace)
    done = run("solve", HEFT_10, "--solver", "heft", "--out", plan, "--report", report)
    assert done.code == 143
    assert done.err == KNOWN + "placeopt: interrupted by SIGTERM\n"
    assert os.listdir(tmp_path) == ["plan.json"]  # and no half of a report
    assert is_plan(plan)


@pytest.mark.parametrize(("number", "code"), CODES)
@pytest.mark.parametrize(
    ("place", "arguments"),
    [
        ("placeopt.io.compiler.read_document", ["solve", HEFT_10]),
        ("placeopt.simulation.simulate_noisy", ["simulate", HEFT_10, "PLAN", "--noise", "0.1"]),
        ("placeopt.generate.layered_graphs.layered", ["generate", "layered", "--out", "OUT"]),
    ],
)
def test_where_there_is_nothing_to_keep_the_command_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, arguments: list[Any], number: int, code: int
) -> None:
    monkeypatch.chdir(tmp_path)
    run("solve", HEFT_10, "--out", "PLAN")
    signal_before(monkeypatch, place, number)
    done = run(*arguments)
    by = "" if number == signal.SIGINT else f" by {signal.Signals(number).name}"
    assert (done.code, done.out, done.err) == (code, "", f"placeopt: interrupted{by}\n")
    assert os.listdir(tmp_path) == ["PLAN"]


def signal_before(monkeypatch: pytest.MonkeyPatch, place: str, number: int) -> None:
    """Have a signal come whenever the function is called."""
    module, _, name = place.rpartition(".")
    original = getattr(sys.modules.get(module) or __import__(module, fromlist=[name]), name)

    @functools.wraps(original)
    def function(*arguments: Any, **options: Any) -> Any:
        signal.raise_signal(number)
        return original(*arguments, **options)

    monkeypatch.setattr(place, function)


class TestProcesses:
    """The command line in a separate process."""

    @pytest.fixture
    def problem(self, tmp_path: Path) -> Path:
        path = tmp_path / "problem.yaml"
        assert run("generate", "layered", "--set", "tasks=150", "--set", "ccr=1", "-o", path).code == 0
        return path

    def test_sigterm_saves_the_plan(self, tmp_path: Path, problem: Path) -> None:
        plan = tmp_path / "plan.json"
        with subprocess.Popen(
            [*PLACEOPT, "solve", problem, "-s", "cp-sat", "-t", "none", "-o", plan],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            assert process.stderr is not None
            assert "150 tasks" in process.stdout.readline()
            process.send_signal(signal.SIGTERM)
            out, err = process.stdout.read(), process.stderr.read()
        assert process.returncode == 143, err
        assert "feasible: the verifier found no violation" in out
        assert "Traceback" not in err
        assert is_plan(plan, problem)

    def test_a_terminal_that_is_closed_loses_no_plan(self, tmp_path: Path, problem: Path) -> None:
        """Every write to it fails afterwards: messages, progress and result."""
        plan = tmp_path / "plan.json"
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [*PLACEOPT, "solve", problem, "-s", "cp-sat", "-t", "none", "-o", plan],
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        seen = b""
        while b"150 tasks" not in seen:
            seen += os.read(ours, 1024)
        os.close(ours)
        process.send_signal(signal.SIGHUP)  # as the kernel does if this is its controlling terminal
        assert process.wait(60) == 129
        assert is_plan(plan, problem)

    def test_a_reader_that_goes_away_stops_nothing(self, tmp_path: Path) -> None:
        plan = tmp_path / "plan.json"
        ours, theirs = os.pipe()
        os.close(ours)
        done = subprocess.run(
            [*PLACEOPT, "solve", HEFT_10, "-s", "heft", "-o", plan], stdout=theirs, stderr=subprocess.PIPE, check=False
        )
        os.close(theirs)
        assert (done.returncode, done.stderr) == (141, KNOWN.encode())
        assert is_plan(plan)


class TestImports:
    """Signals while a solver is imported, which native modules turn into an ImportError, and other code drops."""

    @staticmethod
    def solve(folder: Path, module: str) -> subprocess.CompletedProcess[str]:
        """Run the command line with an installed solver `faulty` in a module with this text."""
        (folder / "faulty.py").write_text("import hashlib, os, signal, threading, time\n" + module)
        package = folder / "faulty-1.dist-info"
        package.mkdir()
        (package / "METADATA").write_text("Metadata-Version: 2.1\nName: faulty\nVersion: 1\n")
        (package / "entry_points.txt").write_text("[placeopt.solvers]\nfaulty = faulty:Solver\n")
        return subprocess.run(
            [*PLACEOPT, "solve", HEFT_10, "-s", "faulty"],
            env=os.environ | {"PYTHONPATH": str(folder)}, capture_output=True, text=True, check=False, timeout=30,
        )  # fmt: skip

    @pytest.mark.parametrize(("number", "code"), CODES)
    def test_a_signal_is_no_import_error(self, tmp_path: Path, number: int, code: int) -> None:
        done = self.solve(
            tmp_path,
            f"try:\n    signal.raise_signal({int(number)})\n"
            "except BaseException as error:\n    raise ImportError('initialization failed') from error\n",
        )
        by = "" if number == signal.SIGINT else f" by {signal.Signals(number).name}"
        assert (done.returncode, done.stdout, done.stderr) == (code, "", f"placeopt: interrupted{by}\n")

    def test_an_import_cannot_drop_a_signal(self, tmp_path: Path) -> None:
        done = self.solve(
            tmp_path, "try:\n    signal.raise_signal(signal.SIGINT)\nexcept BaseException:\n    print('goes on')\n"
        )
        assert (done.returncode, done.stdout) == (130, "")

    def test_ctrl_c_before_signals_are_handled_prints_no_traceback(self) -> None:
        program = (
            "import signal, sys\n"
            "from placeopt.cli import main\n"
            "class Finder:\n"
            "    def find_spec(self, name, *_):\n"
            "        if name == 'placeopt.cli.interruption':\n"
            "            signal.raise_signal(signal.SIGINT)\n"
            "sys.meta_path.insert(0, Finder())\n"
            "main()\n"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=30)
        assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")

    def test_nothing_is_imported_before_ctrl_c_prints_no_traceback(self) -> None:
        program = (
            "import os, sys\n"
            "before = set(sys.modules)\n"
            "from placeopt.cli import main\n"
            "print(*sorted(set(sys.modules) - before - {'__future__'}))\n"
        )
        done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, check=False,
            timeout=30, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
        assert (done.stdout, done.stderr) == ("gc placeopt placeopt.cli\n", "")

    def test_a_second_signal_ends_a_native_call(self, tmp_path: Path) -> None:
        """The call takes minutes and runs no handlers."""
        done = self.solve(
            tmp_path,
            "def send():\n"
            "    for _ in range(2):\n"
            f"        time.sleep({interruption.REPEAT + 0.1})\n"
            "        os.kill(os.getpid(), signal.SIGTERM)\n"
            "threading.Thread(target=send, daemon=True).start()\n"
            "hashlib.pbkdf2_hmac('sha256', b'', b'', 10**9)\n",
        )
        assert done.returncode == 143


def test_exit_functions_run_and_no_module_is_torn_down() -> None:
    program = (
        "import atexit, os, sys\n"
        "class Module:\n    def __del__(self, write=os.write): write(1, b'torn down')\n"
        "module = Module()\n"
        "atexit.register(print, 'exit function')\n"
        "from placeopt.cli import main\n"
        "sys.argv = ['placeopt', 'solvers', 'unknown']\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "exit function\n")
    assert 'unknown solver "unknown"' in done.stderr


class TestProcessesOfOurs:
    """Slurm and systemd signal all processes of a job, those of runs and of engines among them."""

    @pytest.mark.parametrize(
        ("code", "stopping", "expected"),
        [
            (-signal.SIGTERM, True, True),
            (-signal.SIGTERM, False, False),
            (-signal.SIGKILL, True, False),
            (0, True, False),
            (None, True, False),
        ],
    )
    def test_a_death_is_ours_if_we_are_asked_to_end(
        self, monkeypatch: pytest.MonkeyPatch, code: int | None, stopping: bool, expected: bool
    ) -> None:
        monkeypatch.setattr(signals, "PATIENCE", 0.0)
        assert signals.ended_with_us(code, lambda: stopping) is expected
