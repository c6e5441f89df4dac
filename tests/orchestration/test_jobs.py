"""Jobs in threads and in processes: reports, incumbents, cancelling, errors, crashes, asyncio."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from job_solvers import Stating
from rogues import alive

import placeopt as po
from placeopt.orchestration import jobs, keyboard
from placeopt.protocol.registry import find_solver

FILE = Path(__file__).parents[2] / "problems" / "heft-10.yaml"
HEFT_10 = po.load(FILE)

FORKED = pytest.param("forked", id="forked", marks=pytest.mark.skipif(os.name == "nt", reason="Windows has no fork"))
both = pytest.mark.parametrize("process", [pytest.param(False, id="thread"), pytest.param(True, id="process"), FORKED])


def begun(then: str = "wait", *, process: Any = False, **options: Any) -> po.Job:
    """A job of the test solver that has stated a schedule and a bound."""
    job = po.start(HEFT_10, Stating(), process=process, then=then, workers=1, **options)
    reports = iter(job)
    assert [next(reports).bound, next(reports).bound] == [None, 1]
    return job


@both
class TestJobs:
    def test_a_search_reports_and_ends(self, process: Any) -> None:
        job = po.start(HEFT_10, "local-search", process=process, workers=1, time_limit=0.2)
        reports = list(job)
        result = job.wait()
        assert result.problem is HEFT_10
        assert (job.done, job.objective, job.bound) == (True, result.objective, result.bound)
        assert min(each.objective for each in reports if each.objective is not None) == result.objective
        assert all(each.schedule is None for each in (*reports, *result.progress))
        assert list(job) == reports, "another loop gets all reports"
        schedule = job.incumbent()
        assert schedule is result.schedule
        assert schedule is not None
        assert po.verify(HEFT_10, schedule).feasible

    def test_it_agrees_with_solve(self, process: Any) -> None:
        result = po.start(HEFT_10, "heft", process=process).wait()
        assert result.placement == po.solve(HEFT_10, "heft").placement

    def test_the_incumbent_of_a_running_job(self, process: Any) -> None:
        job = begun(process=process)
        schedule = job.incumbent()
        assert schedule is not None
        assert po.verify(HEFT_10, schedule).feasible
        assert (job.done, job.objective, job.bound) == (False, po.evaluate(HEFT_10, schedule)[0], 1)
        assert job.incumbent() is schedule
        assert repr(job) == f"<Job of stating on heft-10: running, objective {job.objective}, bound 1>"
        with pytest.raises(TimeoutError, match=r"the job has not ended within 0\.01 s; expected a longer timeout, or"):
            job.wait(0.01)
        job.cancel()
        job.cancel()
        result = job.wait(60)
        assert (result.termination, result.feasible) == (po.Termination.INTERRUPTED, True)
        assert repr(job).startswith("<Job of stating on heft-10: ended, ")
        job.cancel()
        assert job.wait() is result

    def test_a_job_cancelled_at_once(self, process: Any) -> None:
        job = po.start(HEFT_10, Stating(), process=process)
        job.cancel()
        assert job.wait(60).termination is po.Termination.INTERRUPTED

    def test_an_error_of_the_solver(self, process: Any) -> None:
        job = begun("raise", process=process)
        assert len(list(job)) == 2, "a loop ends with the job"
        with pytest.raises(po.SolverError, match="stating: ValueError: nothing works"):
            job.wait(60)
        assert repr(job).startswith("<Job of stating on heft-10: failed, ")
        assert job.done

    def test_many_jobs_at_once(self, process: Any) -> None:
        some = [begun(process=process) for _ in range(3 if process else 50)]
        for job in some:
            job.cancel()
        assert {job.wait(60).termination for job in some} == {po.Termination.INTERRUPTED}

    def test_a_lossy_pass(self, process: Any) -> None:
        problem = po.load(FILE.with_name("inception.yaml"))
        job = po.start(problem, Stating(), process=process, passes=["celeritas-fusion"], workers=1)
        report = next(iter(job))
        schedule = job.incumbent()
        assert (report.objective, report.bound, job.bound) == (None, None, None)
        assert schedule is not None
        assert po.verify(problem, schedule).feasible
        job.cancel()
        assert job.wait(60).feasible

    def test_asyncio(self, process: Any) -> None:
        async def main() -> tuple[list[po.Progress], po.Result]:
            reports = []
            job = po.start(HEFT_10, Stating(), process=process, workers=1)
            async for report in job:
                reports.append(report)
                if report.bound is not None:
                    job.cancel()
            async for report in job:
                assert report in reports
            return reports, await job

        reports, result = asyncio.run(main())
        assert [each.bound for each in reports] == [None, 1]
        assert result.termination is po.Termination.INTERRUPTED

    def test_a_cancelled_await_cancels_the_job(self, process: Any) -> None:
        async def main() -> po.Job:
            job = begun(process=process)
            with pytest.raises(TimeoutError, match=r"^$"):
                async with asyncio.timeout(0.01):
                    await job
            return job

        assert asyncio.run(main()).wait(60).termination is po.Termination.INTERRUPTED

    def test_ctrl_c_returns_the_incumbent(self, process: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(keyboard, "_latest", float("-inf"))
        job = begun(process=process)
        timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        result = job.wait(60)
        timer.join()
        assert (result.termination, result.feasible) == (po.Termination.INTERRUPTED, True)

    def test_wrong_arguments(self, process: Any) -> None:
        for wrong, text in (
            ({"solver": "hft"}, 'unknown solver "hft"; did you mean heft'),
            ({"solver": "heft", "seeds": 3}, 'heft has no setting "seeds"; did you mean seed'),
            ({"time_limit": -1}, "time_limit is -1; expected a finite number that is positive"),
            ({"should_stop": bool}, r"start takes no should_stop; expected a loop over .* or job\.cancel\(\)"),
            ({"on_progress": None}, "start takes no on_progress; expected a loop over the reports of the job"),
        ):
            with pytest.raises(po.UsageError, match=text):
                po.start(HEFT_10, process=process, **wrong)  # type: ignore[arg-type]
        with pytest.raises(po.UsageError, match="solve takes a Problem, got str; placeopt"):
            po.start("problem.yaml", process=process)  # type: ignore[arg-type]

    def test_the_program_ends_while_a_job_runs(self, process: Any) -> None:
        text = (
            f"import placeopt as po\nproblem = po.load({str(FILE)!r})\n"
            f"job = po.start(problem, 'local-search', process={process!r}, workers=1)\n"
            "next(iter(job))\nprint('over')"
        )
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120, check=True)
        assert (done.stdout, done.stderr) == ("over\n", "")


def test_a_class_of_the_main_program_is_unknown_to_a_process() -> None:
    text = (
        f"import placeopt as po\nproblem = po.load({str(FILE)!r})\n"
        "class Mine:\n    name, info, settings_type = 'mine', po.solver_info('heft'), po.Settings\n"
        "    def solve(self, problem, options, settings): ...\n"
        "try:\n    po.start(problem, Mine(), process=True, workers=1).wait()\n"
        "except po.UsageError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.startswith("process=True: the process cannot load the arguments: Can't get attribute 'Mine'")


class TestThreads:
    def test_the_solver_runs_on_after_an_error_of_the_loop(self) -> None:
        job = begun()
        with pytest.raises(RuntimeError, match="of the caller"):  # noqa: PT012
            for _ in job:
                raise RuntimeError("of the caller")
        assert not job.done
        job.cancel()
        job.wait(60)

    def test_a_closed_loop_of_asyncio_does_not_end_the_job(self) -> None:
        loop = asyncio.new_event_loop()
        job = po.start(HEFT_10, Stating(), workers=1)
        reports = job.__aiter__()
        loop.run_until_complete(anext(reports))
        loop.close()
        job.cancel()
        assert job.wait(60).feasible

    def test_process_is_true_or_false(self) -> None:
        with pytest.raises(po.UsageError, match='process is 2; expected True, False or "forked"'):
            po.start(HEFT_10, process=2)  # type: ignore[arg-type]
        with pytest.raises(po.UsageError, match="timeout is -1; expected a finite number that is not negative"):
            po.start(HEFT_10, "heft").wait(-1)


class TestProcesses:
    def test_a_crash(self) -> None:
        job = begun("exit", process=True)
        with pytest.raises(po.ExecutionError, match=r"^the process of the job ended with exit code 7$"):
            job.wait(60)
        schedule = job.incumbent()
        assert schedule is not None
        assert po.verify(HEFT_10, schedule).feasible

    @pytest.mark.parametrize("process", [True, FORKED])
    def test_it_is_killed(self, process: Any) -> None:
        job = begun(process=process)
        assert isinstance(job, jobs.ProcessJob)
        os.kill(job._process.pid, signal.SIGKILL)
        with pytest.raises(po.ExecutionError, match=r"^the process of the job died of SIGKILL \(out of memory\?\)$"):
            job.wait(60)

    def test_a_solver_that_does_not_stop(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(jobs, "GRACE", 0.1)
        job = begun("hang", process=True)
        job.cancel()
        with pytest.raises(po.ExecutionError, match=r"died of SIGKILL after cancel\(\)$"):
            job.wait(60)

    def test_it_needs_too_much_memory(self) -> None:
        job = begun("grow", process=True, max_memory=2**29)
        with pytest.raises(po.ExecutionError, match=r"needed more than 512 MiB of main memory and was killed$"):
            job.wait(60)
        assert begun("print", process=True, max_memory=2**40).wait(60).feasible
        for wrong in ({"process": True, "max_memory": 0}, {"max_memory": 2**30}):
            with pytest.raises(po.UsageError, match=r"^max_memory is .*expected"):
                po.start(HEFT_10, **wrong)

    def test_an_exit_of_the_solver_ends_only_the_job(self) -> None:
        with pytest.raises(po.ExecutionError, match="the solver raised SystemExit: 3"):
            begun("leave", process=True).wait(60)

    def test_an_error_that_cannot_be_unpickled(self) -> None:
        with pytest.raises(po.ExecutionError, match="the solver raised AwkwardError: 1 and 2"):
            begun("awkward", process=True).wait(60)

    def test_output_of_the_solver(self, capfd: pytest.CaptureFixture[str]) -> None:
        assert begun("print", process=True).wait(60).feasible
        assert capfd.readouterr() == ("", "a line of the solver\nanother one\n")

    def test_where_the_error_was_raised(self) -> None:
        with pytest.raises(po.SolverError, match="nothing works") as caught:
            begun("raise", process=True).wait(60)
        assert "job_solvers.py" in caught.value.__notes__[0]

    def test_what_cannot_be_pickled(self) -> None:
        class Local(Stating):
            pass

        with pytest.raises(po.UsageError, match=r"process=True: the arguments cannot be pickled: .*Local"):
            po.start(HEFT_10, Local(), process=True)

    @pytest.mark.skipif(not Path("/proc").exists(), reason="reads /proc")
    def test_it_ends_with_the_program(self) -> None:
        text = (
            f"import os\nimport placeopt as po\njob = po.start(po.load({str(FILE)!r}), 'local-search', process=True)\n"
            "next(iter(job))\nprint(job._process.pid, flush=True)\nos._exit(0)"
        )
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120, check=True)
        end = time.monotonic() + 60
        while alive(int(done.stdout)):
            assert time.monotonic() < end
            time.sleep(0.05)


class TestModels:
    def test_the_next_solve_starts_from_the_incumbent(self) -> None:
        m = po.Model("small", resolution="1 us")
        cpu, gpu = m.add_device("cpu"), m.add_device("gpu")
        task = m.add_task("task", time={cpu: "4 ms", gpu: "9 ms"})
        job = m.start(Stating())
        next(iter(job))
        m.update(task, time={cpu: "5 ms", gpu: "1 ms"})
        second = m.start(Stating(), then="end").wait()
        assert (second.makespan, second.placement) == (5000, {"task": "cpu"}), "it does not choose the device itself"
        job.cancel()
        assert job.wait(60).makespan == 4000
        with pytest.raises(po.UsageError, match='unknown solver "hft"'):
            m.start("hft")


@pytest.mark.parametrize("solver", ["annealing", "auto", "cp-sat", "lns", "local-search", "milp", "tabu"])
def test_searches_state_the_schedules_that_they_report(solver: str) -> None:
    seen: list[po.Progress] = []
    found = find_solver(solver)
    options = po.Options(time_limit=1.0, on_progress=seen.append)
    found.solve(HEFT_10, options, found.settings_type())
    reports = [each for each in seen if each.objective is not None]
    assert reports
    for each in reports:
        assert each.schedule is not None
        assert po.evaluate(HEFT_10, each.schedule)[0] == each.objective


@pytest.mark.parametrize("process", [False, True])
def test_addresses(process: bool) -> None:
    problem = po.load(FILE.parent / "microcontroller.yaml")
    job = po.start(problem, "cp-sat", time_limit=30, process=process)
    assert all(report.objective is None and report.schedule is None for report in job)
    result = job.wait()
    assert result.termination is po.Termination.OPTIMAL
    assert result.schedule is not None
    assert result.schedule.offsets is not None
    assert job.incumbent() is result.schedule


def test_a_job_with_addresses_is_cancelled() -> None:
    job = po.start(po.load(FILE.parent / "microcontroller.yaml"), "annealing")
    assert job.incumbent() is None
    job.cancel()
    result = job.wait()  # on a busy machine, the search may end before the call
    assert result.termination is po.Termination.INTERRUPTED or (result.feasible and result.gap == 0)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no fork")
def test_a_template_that_loads_survives_ctrl_c() -> None:
    """A terminal sends the signal to all processes of the program; the template would end with a traceback."""
    text = """if True:
        import os, signal
        from multiprocessing import forkserver
        import placeopt as po
        from placeopt.orchestration import forking, jobs

        forking.start_template(jobs.serve)
        template = forkserver._forkserver._forkserver_pid
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.killpg(0, signal.SIGINT)
        problem = po.compile({"placeopt": 1, "devices": {"d": {}}, "tasks": {"a": {"time": 3}}})
        result = po.start(problem, "heft", process="forked").wait()
        print(result.makespan, forkserver._forkserver._forkserver_pid == template)
    """
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=120, check=True, start_new_session=True
    )
    assert (done.stdout, done.stderr) == ("3 True\n", "")
