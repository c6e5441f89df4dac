"""Re-placement: moves, their cost, and that the result is never worse than keeping every task that can stay."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from brute_force import optimum, small_problem
from commandline import run

import placeopt as po
from placeopt.errors import DocumentError
from placeopt.io.spec import Spec
from placeopt.model.building import with_changes
from placeopt.model.objective import METRICS, evaluate
from placeopt.model.problem import UNLIMITED, Objective, Problem, Term
from placeopt.studies.replacement import Replacement
from placeopt.verifier import verify

PROBLEM: dict[str, Any] = {
    "placeopt": 1,
    "resolution": "1 ms",
    "operations": {"work": {"fast": "2 ms", "slow": "6 ms"}},
    "devices": {"a": {"type": "fast"}, "b": {"type": "fast"}, "c": {"type": "slow"}},
    "links": {"default": {"bandwidth": "1 MB/s", "latency": "1 ms"}},
    "tasks": {
        "s": {"op": "work", "migration": {"bytes": "3 kB", "startup": {"fast": "10 ms", "slow": "30 ms"}}},
        "t": {"op": "work", "after": {"s": "1 kB"}, "migration": "5 kB"},
        "u": {"op": "work", "after": {"s": "1 kB"}, "memory": "7 kB"},
    },
}
"""On a: s, t, u in 6 ms; t on a and u on b: 2 + 2 + 2 ms."""

AT_HOME = {"s": "a", "t": "a", "u": "a"}
SLOWER = {"devices": {"a": {"type": "slow"}, "b": {"type": "fast"}, "c": {"type": "slow"}}}


def moves(found: Replacement) -> list[tuple[str, str | None, str, int, int, str]]:
    return [(m.task, m.source, m.target, m.bytes, m.ticks, m.why) for m in found.moves]


class TestWhatMoves:
    def test_nothing_where_nothing_changed(self) -> None:
        found = po.replace(PROBLEM, AT_HOME, {"devices": PROBLEM["devices"]})
        assert found.moves == ()
        assert (found.result.values, found.relocation, found.saved, found.pays_after) == ((6,), 0, 0, 0)
        assert found.stay.forced == ()
        assert (found.gone, found.new) == ((), ())

    def test_a_slow_device_is_left_once_that_pays(self) -> None:
        # All on a, now slow: 18 ms. All on b: 6 ms, but moving takes (1 + 3 + 10) + (1 + 5) + (1 + 7) = 28 ms.
        once = po.replace(PROBLEM, AT_HOME, SLOWER)
        assert once.result.termination is po.Termination.OPTIMAL
        assert once.stay.values == (18,)
        # u alone on b: s ends at 6, its data is there at 8, u at 10; t on a ends at 12: 12 + 8 ms. t alone: 12 + 6.
        assert (once.result.values, once.moves) == ((18,), ())
        often = po.replace(PROBLEM, AT_HOME, SLOWER, runs=7)
        assert often.result.values == (6 + Fraction(28, 7),)
        assert moves(often) == [
            ("s", "a", "b", 3000, 14, "chosen"), ("t", "a", "b", 5000, 6, "chosen"), ("u", "a", "b", 7000, 8, "chosen")
        ]  # fmt: skip
        assert (often.relocation, often.saved, often.pays_after) == (28, 8, 3)  # 28 ms pay after 3 runs of 12 ms less
        assert often.problem.runs_before_next_change == 7
        assert str(often.problem.objective) == "makespan + relocation / 7"

    def test_tasks_of_devices_that_are_gone_start_up_elsewhere(self) -> None:
        found = po.replace(PROBLEM, {"s": "c", "t": "a", "u": "b"}, {"devices": {"a": {"type": "fast"}}})
        assert (found.gone, found.new) == (("b", "c"), ())
        assert moves(found) == [("s", "c", "a", 0, 10, "gone"), ("u", "b", "a", 0, 0, "gone")]
        assert found.result.values == (6 + 10,)
        assert [found.problem.task_names[i] for i in found.stay.forced] == ["s", "u"]
        assert found.saved == 0

    def test_new_tasks_and_those_that_may_not_stay(self) -> None:
        barred = {**PROBLEM, "tasks": {**PROBLEM["tasks"], "t": {**PROBLEM["tasks"]["t"], "requires": "big"}}}
        barred["devices"] = {"a": {"type": "fast", "features": "big"}, "b": {"type": "fast"}}
        now = {"devices": {"a": {"type": "fast"}, "d": {"type": "fast", "features": "big"}}, "links": {}}
        found = po.replace(barred, {"s": "a", "t": "a"}, now)
        assert moves(found) == [("t", "a", "d", 5000, 0, "barred"), ("u", None, found.moves[1].target, 0, 0, "new")]
        assert found.new == ("d",)
        assert found.result.makespan == 4
        assert found.before == {"s": "a", "t": "a"}

    def test_a_group_goes_where_the_one_goes_that_cannot_stay(self) -> None:
        tasks = {**PROBLEM["tasks"]}
        for name in ("s", "t"):
            tasks[name] = {**tasks[name], "colocate": "g"}
        tasks["t"] = {**tasks["t"], "devices": ["a", "b"]}
        grouped = {**PROBLEM, "tasks": tasks}
        now = {"devices": {"a": {"type": "fast"}, "c": {"type": "slow"}}}
        found = po.replace(grouped, {"s": "b", "t": "b", "u": "a"}, now)
        assert [(m.task, m.source, m.target, m.why) for m in found.moves] == [
            ("s", "b", "a", "gone"), ("t", "b", "a", "gone")
        ]  # fmt: skip

    def test_what_moves_for_nothing_stays(self) -> None:
        free = {**PROBLEM, "tasks": {name: {"op": "work"} for name in "stu"}}
        found = po.replace(free, {"s": "b", "t": "a", "u": "b"}, {"devices": PROBLEM["devices"]})
        assert found.moves == ()
        assert found.result.values == (4,)

    def test_an_order_that_is_better_than_hefts_is_kept(self) -> None:
        problem = po.compile(PROBLEM)
        plan = po.solve(problem, "cp-sat").schedule
        assert plan is not None
        found = po.replace(problem, plan, problem)
        assert found.result.values == evaluate(problem, plan)


class TestNeverWorse:
    def test_than_staying_whatever_the_solver(self) -> None:
        # All on one device, which is best for `single`, means to move; with few runs that is worse than to stay.
        where = {"s": "a", "t": "a", "u": "b"}
        now = {"devices": {"a": {"type": "slow"}, "b": {"type": "fast"}, "c": {"type": "slow"}}}
        found = po.replace(PROBLEM, where, now, solver="single")
        assert found.result.values == found.stay.values
        assert found.result.message == "single found nothing better than moving only the tasks that cannot stay"
        assert found.moves == ()
        assert found.result.feasible
        assert verify(found.problem, found.result.schedule, found.result.values).feasible  # type: ignore[arg-type]

    def test_and_optimal_by_brute_force(self) -> None:
        """Devices get slower, larger, smaller and better connected; the old plan is any feasible one."""
        moved = stayed = apart = 0
        for seed in range(60):
            rng = np.random.default_rng(7000 + seed)
            old = small_problem(rng, Objective())
            plan = optimum(old)
            if plan is None or old.n_tasks > 4 or (old.contention != "none" and old.n_tasks > 3):
                continue
            new = changed(rng, old)
            runs = Fraction(int(rng.integers(1, 4)))
            found = po.replace(old, plan[1], new, runs=runs, workers=1, time_limit=60)
            assert found.problem.objective.levels == ((Term("makespan"), Term("relocation", 1 / runs)),)
            best = optimum(found.problem)
            if best is None:
                assert found.result.termination is po.Termination.INFEASIBLE
                assert found.moves == ()
                continue
            assert found.result.values == best[0]
            assert found.result.schedule is not None
            assert found.relocation == METRICS["relocation"](found.problem, found.result.schedule)
            assert {m.task for m in found.moves} == {
                name
                for name, before, d in zip(
                    old.task_names, plan[1].device.tolist(), found.result.schedule.device.tolist(), strict=True
                )
                if new.device_names[d] != old.device_names[before]
            }
            if found.stay.values is not None:
                assert found.result.values <= found.stay.values
                assert found.saved == found.stay.values[0] - found.result.values[0]
                assert verify(found.problem, found.stay.schedule, found.stay.values).feasible  # type: ignore[arg-type]
                apart += found.result.values < found.stay.values
            moved += bool(found.moves)
            stayed += not found.moves
        assert min(moved, stayed, apart) > 2, (moved, stayed, apart)


def changed(rng: np.random.Generator, problem: Problem) -> Problem:
    """The problem on other devices, one of which may be gone."""
    m = problem.n_devices
    kept = np.flatnonzero(rng.random(m) < 0.8) if m > 1 else np.arange(m)
    kept = kept if len(kept) else np.array([0])
    factor = rng.choice([1, 1, 2, 5], len(kept))
    room = problem.capacity[kept]
    between = np.ix_(kept, kept)
    links = ("latency", "byte_ticks_num", "byte_ticks_den", "byte_energy_num", "byte_energy_den")
    return with_changes(
        problem,
        device_names=[problem.device_names[d] for d in kept.tolist()],
        device_types=[problem.device_types[d] for d in kept.tolist()],
        duration=problem.duration[:, kept] * factor,
        feasible=problem.feasible[:, kept],
        price=problem.price[:, kept],
        relocation=None,
        capacity=np.where(room == UNLIMITED, UNLIMITED, room + rng.integers(-3, 4, len(kept))),
        power_num=problem.power_num[kept],
        power_den=problem.power_den[kept],
        **{name: getattr(problem, name)[between] for name in links},
    )


class TestObjective:
    def test_relocation_weighs_what_the_time_weighs(self) -> None:
        weighted = {**PROBLEM, "objective": [{"makespan": 3}, "total_cost"]}
        found = po.replace(weighted, AT_HOME, SLOWER, runs=7)
        assert found.problem.objective.levels[0] == (Term("makespan", Fraction(3)), Term("relocation", Fraction(3, 7)))
        assert found.problem.objective.levels[1] == (Term("total_cost"),)

    def test_one_that_has_relocation_stays_and_so_do_its_runs(self) -> None:
        stated = {
            **PROBLEM,
            "objective": {"makespan": 1, "relocation": 2},
            "current": {"placement": {"s": "c"}, "runs_before_next_change": 4, "migration": {"startup": "1 ms"}},
        }
        found = po.replace(stated, AT_HOME, SLOWER)
        assert found.problem.objective.levels == ((Term("makespan"), Term("relocation", Fraction(1, 2))),)
        assert found.problem.relocation[1].tolist() == [0, 1 + 5 + 1, 1 + 5 + 1]
        assert found.before == AT_HOME

    def test_bytes_and_ticks_do_not_add_up(self) -> None:
        with pytest.raises(po.UsageError, match="relocation is a time, but communication is not"):
            po.replace({**PROBLEM, "objective": "communication"}, AT_HOME, SLOWER)
        mixed = {**PROBLEM, "objective": {"communication": 1, "relocation": 1}, "current": {}}
        assert po.replace(mixed, AT_HOME, SLOWER).result.values == (0,)


class TestWhatIsGiven:
    def test_a_spec_a_document_and_a_file_are_one(self, tmp_path: Path) -> None:
        (tmp_path / "p.json").write_text(json.dumps(PROBLEM), encoding="utf-8")
        (tmp_path / "new.json").write_text(json.dumps(SLOWER), encoding="utf-8")
        given = (
            po.replace(PROBLEM, AT_HOME, SLOWER),
            po.replace(Spec.model_validate(PROBLEM), AT_HOME, SLOWER),
            po.replace(tmp_path / "p.json", AT_HOME, str(tmp_path / "new.json")),
        )
        assert len({found.problem.fingerprint() for found in given}) == 1

    def test_sections_of_the_old_document_are_kept(self) -> None:
        found = po.replace({**PROBLEM, "source": "a model", "x-torch": {"level": "op"}}, AT_HOME, SLOWER)
        assert found.problem.provenance == {"source": "a model", "x-torch": {"level": "op"}}

    def test_operations_and_links_of_the_network_come_first(self) -> None:
        now = {
            "operations": {"work": {"tiny": "1 ms"}},
            "devices": {"d": {"type": "tiny"}, "e": {"type": "tiny"}},
            "links": {"default": {"latency": "5 ms"}},
        }
        problem = po.replace(PROBLEM, AT_HOME, now).problem
        assert problem.duration.tolist() == [[1, 1]] * 3
        assert problem.latency.tolist() == [[0, 5], [5, 0]]
        assert problem.byte_ticks_num.tolist() == [[0, 0], [0, 0]]

    def test_shared_links_that_carry_nothing_any_more_are_left_out(self) -> None:
        shared = {"root": {"uplink_of": ["a", "b"]}, "bus": {"between": ["b", "c"]}}
        document = PROBLEM | {"links": {**PROBLEM["links"], "shared": shared}}
        found = po.replace(document, AT_HOME, {"devices": {name: PROBLEM["devices"][name] for name in "ac"}})
        assert found.problem.shared_links is not None
        assert found.problem.shared_links.links() == {"root": po.SharedLink([0])}
        assert po.replace(document, AT_HOME, {"devices": {"a": {"type": "fast"}}}).problem.shared_links is None

    def test_what_is_said_of_devices_that_are_gone_counts_for_nothing(self) -> None:
        tasks = {
            "s": {"time": {"a": "2 ms", "c": "3 ms"}, "migration": {"startup": {"a": "1 ms", "slow": "2 ms"}}},
            "t": {"time": "2 ms", "devices": ["a", "c"]},
        }
        links = {"overrides": [{"between": ["a", "c"], "latency": "5 ms"}]}
        found = po.replace(
            {**PROBLEM, "tasks": tasks, "links": links}, {"s": "a"}, {"devices": {"c": {"type": "slow"}, "b": None}}
        )
        assert found.result.placement == {"s": "c", "t": "c"}
        tasks["t"]["devices"] = ["a"]
        with pytest.raises(po.SpecError, match=r"tasks\.t\.devices: no device satisfies its devices"):
            po.replace({**PROBLEM, "tasks": tasks}, {"s": "a"}, {"devices": {"c": {"type": "slow"}}})
        tasks["t"]["devices"] = ["A"]
        with pytest.raises(po.SpecError, match='unknown device "A"'):
            po.replace({**PROBLEM, "tasks": tasks}, {"s": "a"}, SLOWER)

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("devices: {}", ["1:10: devices: expected at least 1 entry"]),
            ("links: {}", ["1:1: devices is missing"]),
            ("devices: {a: {typ: fast}}\nspeed: 3", [
                "1:15: devices.a.typ: unknown key; did you mean type?",
                "2:1: speed: unknown key; known are description, devices, links, name, operations, placeopt, source",
            ]),
            ("devices: {a: {type: fast, speed: 3 MB}, b: {type: fast}}", ["1:34: devices.a.speed: \"3 MB\" is"]),
            ("devices: {a: {type: fast}}\nlinks: {default: {latency: 3 MB}}", ["2:28: links.default.latency: \"3 M"]),
            ("devices: {a: {type: fast}}\nlinks: {overrides: [{between: [a, z], latency: 1 s}]}", [
                "2:35: links.overrides[0].between[1]: unknown device \"z\""
            ]),
            ("devices: {a: {type: fast}}\noperations: {work: {fast: 1 MB}}", ["2:27: operations.work.fast: \"1 MB\""]),
            ("devices: {a: {type: odd}}", [
                "tasks.s: no device can run it: operation \"work\" has durations for fast, slow, and its devices are a",
                "tasks.t: no device", "tasks.u: no device",
            ]),
        ],
    )  # fmt: skip
    def test_mistakes_in_the_network_have_their_place_there(self, tmp_path: Path, text: str, said: list[str]) -> None:
        path = tmp_path / "new.yaml"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(DocumentError) as caught:
            po.replace(PROBLEM, AT_HOME, path)
        found = [str(issue) for issue in caught.value.issues]
        assert len(found) == len(said)
        for issue, start in zip(found, said, strict=True):
            assert issue.removeprefix(f"{path}:").lstrip().startswith(start), issue

    def test_arguments_that_make_no_sense(self) -> None:
        problem = po.compile(PROBLEM)
        plan = po.solve(problem, "heft").schedule
        assert plan is not None
        other = po.compile({**PROBLEM, "tasks": {"s": {"op": "work"}}})
        cases: list[tuple[Any, Any, Any, dict[str, Any], str]] = [
            (PROBLEM, AT_HOME, problem, {}, "a compiled problem has no durations on other devices"),
            (problem, AT_HOME, SLOWER, {}, "a compiled problem has no durations on other devices"),
            (problem, AT_HOME, other, {}, "the changed problem has different tasks"),
            (PROBLEM, {"x": "a"}, SLOWER, {}, 'the problem has no task "x"'),
            (PROBLEM, {"s": "x"}, SLOWER, {}, 'the problem has no device "x"'),
            (other, plan, other, {}, "the schedule does not fit this problem"),
            (PROBLEM, AT_HOME, SLOWER, {"runs": 0}, "runs is 0.0; expected a finite number that is positive"),
            (PROBLEM, AT_HOME, SLOWER, {"runs": 1e-300}, "runs is 1e-300; expected at least 1e-06"),
            (PROBLEM, AT_HOME, SLOWER, {"solver": "cpsat"}, "cp-sat"),
        ]
        for given, where, devices, options, said in cases:
            with pytest.raises(po.UsageError, match=said):
                po.replace(given, where, devices, **options)
        with pytest.raises(po.UnsupportedError, match="heft does not support the combined objective"):
            po.replace(PROBLEM, AT_HOME, SLOWER, solver="heft")


class TestCommand:
    def files(self, folder: Path) -> tuple[Path, Path, Path]:
        problem, plan, new = folder / "p.json", folder / "plan.json", folder / "new.yaml"
        problem.write_text(json.dumps({**PROBLEM, "name": "small"}), encoding="utf-8")
        tasks = {name: {"device": d, "start": 2 * k} for k, (name, d) in enumerate(AT_HOME.items())}
        plan.write_text(json.dumps({"placeopt_plan": 1, "tasks": tasks}), encoding="utf-8")
        new.write_text("devices: {a: {type: slow}, b: {type: fast}, d: {type: slow}}\n", encoding="utf-8")
        return problem, plan, new

    def test_it_tells_what_moves_and_what_for(self, tmp_path: Path) -> None:
        problem, plan, new = self.files(tmp_path)
        for devices, message in (
            (problem, "this looks like a problem or graph file, expected a file with devices"),
            (plan, "placeopt is missing: this looks like a plan file, expected a network file"),
            ("xeon-cor:2", 'no file and no device of the catalogue has the name "xeon-cor"; did you mean xeon-core?'),
        ):
            wrong = run("replace", problem, plan, "--devices", devices)
            assert (wrong.code, message in wrong.err) == (2, True)
        done = run("replace", problem, plan, "--devices", new, "--runs", 7)
        assert (done.code, done.err) == (0, "")
        lines = [line.rstrip() for line in done.out.split("\n")]
        assert lines[1:3] == ["gone: c", "new: d"]
        assert any(line.endswith("makespan + relocation / 7 = 10 ms (10 ticks)") for line in lines)
        assert lines[-8:] == [
            "task  from  to       data  takes",
            "s     a     b    2.93 KiB  14 ms",
            "t     a     b   4.883 KiB   6 ms",
            "u     a     b   6.836 KiB   8 ms",
            "3 tasks to move: 28 ms of relocation, 4 ms for each of 7 runs",
            "a run takes 6 ms, compared with 18 ms when leaving every task on its device",
            "saved: 44.44% of the objective; the moves pay off after 3 runs",
            "",
        ]
        once = run("replace", problem, plan, "-d", new)
        assert once.out.rstrip().split("\n")[-2:] == [
            "no task moves", "a run takes 18 ms, compared with 18 ms when leaving every task on its device"
        ]  # fmt: skip
        new.write_text("devices: {b: {type: fast}}\n", encoding="utf-8")
        lost = run("replace", problem, plan, "-d", new)
        assert "s a b 0 B 10 ms its device is gone" in " ".join(lost.out.split())
        assert "a run takes 6 ms, compared with 6 ms when moving only the 3 tasks that cannot stay" in lost.out
        assert "loading the data of 3 tasks whose device is gone is not counted; `startup` can" in lost.out
        assert "loading" not in done.out

    def test_what_it_writes_verifies(self, tmp_path: Path) -> None:
        problem, plan, new = self.files(tmp_path)
        moved, after = tmp_path / "moved.json", tmp_path / "after.yaml"
        done = run(
            "replace", problem, plan, "-d", new, "--runs", 7, "-o", moved, "--out-problem", after, "--json", "-t", "20s"
        )
        assert done.code == 0
        data = json.loads(done.out)
        assert data["moves"][0] == {"task": "s", "from": "a", "to": "b", "bytes": 3000, "ticks": 14, "why": "chosen"}
        assert data["stay"] == {
            "feasible": True, "reason": "", "forced": [], "objective": 18, "objective_levels": [18], "makespan": 18,
        }  # fmt: skip
        keys = ("objective", "relocation", "runs_before_next_change", "saved", "pays_after")
        assert [data[key] for key in keys] == [10, 28, 7, 8, 3]
        assert (data["devices_gone"], data["devices_new"]) == (["c"], ["d"])
        checked = run("verify", after, moved)
        assert checked.code == 0, checked.out
        assert po.load(after).fingerprint() == data["fingerprint"]

    def test_staying_may_be_out_of_the_question(self, tmp_path: Path) -> None:
        problem, plan, new = self.files(tmp_path)
        new.write_text("devices: {a: {type: slow, memory: 6 kB}, b: {type: fast}}\n", encoding="utf-8")
        done = run("replace", problem, plan, "-d", new)
        assert done.code == 0
        assert "u     a     b   6.836 KiB   8 ms" in done.out
        assert "leaving every task on its device is not known to be feasible: task u needs 6.836 KiB" in done.out

    def test_usage(self, tmp_path: Path) -> None:
        problem, plan, new = self.files(tmp_path)
        cases: list[tuple[list[object], str]] = [
            (["--runs", 0], "--runs is 0.0; expected a finite number that is positive"),
            (["--solver", "heft"], "heft does not support the combined objective makespan + relocation"),
            (["--set", "nothing=1"], 'auto has no setting "nothing"'),
            (["--out", plan], "which is read; expected another file"),
            (["--out-problem", new], "which is read; expected another file"),
            (["--out", tmp_path / "no" / "plan.json"], "there is no folder"),
            (["--time-limit", "3 kB"], "--time-limit"),
        ]
        for arguments, said in cases:
            done = run("replace", problem, plan, "-d", new, *arguments)
            assert (done.code, done.out) == (2, "")
            assert said in done.err
            assert "Traceback" not in done.err
        new.write_text("devices: {a: {type: odd}}\n", encoding="utf-8")
        wrong = run("replace", problem, plan, "-d", new)
        assert wrong.code == 2
        assert "3 problems found" in wrong.err
        assert run("replace", problem, tmp_path / "none.json", "-d", new).code == 2
