"""The service: solves over HTTP, events, results, its API document, and the command that runs it."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from commandline import run
from service import HEFT_10, PROBLEMS, Client, running

import placeopt as po
from placeopt.cli.service import examples
from placeopt.cli.service.limits import Limits
from placeopt.cli.service.routes import PATHS, REFUSALS

WRONG = HEFT_10.replace("resolution", "resolutoin", 1)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with running(Limits(jobs=2)) as found:
        yield found


class TestJobs:
    def test_a_solve(self, client: Client, tmp_path: Path) -> None:
        job = client.submit(query="solver=cp-sat&time_limit=20&seed=3")
        assert (job["solver"], job["time_limit"], job["seed"]) == ("cp-sat", 20, 3)
        events = client.events(job["id"])
        assert [name for name, _ in events][0 :: len(events) - 1] == ["started", "finished"]
        assert {name for name, _ in events[1:-1]} == {"incumbent", "bound"}
        incumbents = [data["objective"] for name, data in events if name == "incumbent"]
        assert incumbents == sorted(set(incumbents), reverse=True)
        ended = events[-1][1]
        assert ended == client.ask(f"/api/jobs/{job['id']}").data
        assert (ended["state"], ended["termination"], ended["feasible"]) == ("ended", "optimal", True)
        assert (ended["objective"], ended["bound"], ended["gap"]) == (73, 73, 0)

        problem = po.load(PROBLEMS / "heft-10.yaml")
        plan = tmp_path / "plan.json"
        plan.write_bytes(client.ask(f"/api/jobs/{job['id']}/plan").body)
        schedule = po.read_plan(plan, problem).schedule
        assert po.verify(problem, schedule).feasible
        assert po.measure(problem, schedule).makespan == 73
        result = client.ask(f"/api/jobs/{job['id']}/result").data
        assert (result["objective"], result["fingerprint"]) == (73, problem.fingerprint())
        report = client.ask(f"/api/jobs/{job['id']}/report")
        assert report.headers["content-type"].startswith("text/html")
        assert b"connect-src" not in report.body
        assert b"default-src 'none'" in report.body
        charts = client.ask(f"/api/jobs/{job['id']}/charts").data
        assert charts["schedule"]["makespan"] == 73
        assert charts["convergence"]

    def test_events_from_a_number_on(self, client: Client) -> None:
        id = client.solve()["id"]
        everything = client.events(id)
        assert client.events(id, Last_Event_ID="0") == everything[1:]
        assert client.events(id, Last_Event_ID="x" * 100) == everything

    def test_json_and_yaml_are_the_same_problem(self, client: Client) -> None:
        text = json.dumps(yaml.safe_load(HEFT_10))
        found = [client.ask(f"/api/jobs/{client.solve(each)['id']}/result").data for each in (text, HEFT_10)]
        assert found[0]["fingerprint"] == found[1]["fingerprint"]
        assert found[0]["placement"] == found[1]["placement"]

    def test_a_running_job_is_cancelled_and_keeps_its_schedule(self, client: Client) -> None:
        id = client.submit(query="solver=local-search&time_limit=60")["id"]
        client.wait_until(id, "running")
        while client.ask(f"/api/jobs/{id}").data["objective"] is None:
            pass
        drawn = client.ask(f"/api/jobs/{id}/charts").data
        assert drawn["summary"]["status"]["kind"] == "good"
        assert "running; it has no result" in client.ask(f"/api/jobs/{id}/result").error
        assert client.ask(f"/api/jobs/{id}", method="DELETE").status == 202
        ended = client.wait_until(id, "ended")
        assert (ended["termination"], ended["feasible"]) == ("interrupted", True)
        assert ended["objective"] <= drawn["schedule"]["makespan"]
        assert client.ask(f"/api/jobs/{id}", method="DELETE").data == ended

    def test_settings_of_a_solver(self, client: Client) -> None:
        assert client.solve(query="solver=celeritas&order=m-topo&gap=0.5")["feasible"]
        for query, text in {
            "solver=heft&range=3": "unknown parameter range of heft; expected none",
            "solver=celeritas&order=up": "order",
            "solver=hft": 'unknown solver "hft"; did you mean heft?',
            "time_limit=1000": "time_limit is 1000; expected more than 0 and at most 60 seconds",
            "time_limit=nan": "time_limit is nan; expected",
            "seed=1.5": "seed is 1.5; expected a whole number",
            "gap=2": "gap is 2.0; expected a share between 0 and 1",
            "seed=1&seed=2": "seed is stated twice",
        }.items():
            answer = client.ask(f"/api/jobs?{query}", HEFT_10)
            assert answer.status == 422
            assert text in answer.error

    def test_a_problem_that_the_solver_does_not_support(self, client: Client) -> None:
        answer = client.ask("/api/jobs?solver=dpl", HEFT_10)
        assert answer.status == 422
        assert "dpl does not support" in answer.error

    def test_a_problem_with_addresses(self, client: Client) -> None:
        job = client.solve((PROBLEMS / "microcontroller.yaml").read_text(), "solver=cp-sat")
        assert (job["state"], job["objective"]) == ("ended", job["bound"])

    def test_an_infeasible_problem(self, client: Client) -> None:
        spec = "{placeopt: 1, devices: {a: {}}, tasks: {x: {time: 1 s}, y: {time: 1 s}}, limits: {makespan: 1.5 s}}"
        job = client.solve(spec, "solver=cp-sat")
        assert (job["state"], job["termination"], job["feasible"]) == ("ended", "infeasible", None)
        assert "no schedule" in client.ask(f"/api/jobs/{job['id']}/plan").error
        assert client.ask(f"/api/jobs/{job['id']}/charts").data["schedule"] is None

    def test_unknown_jobs_and_paths(self, client: Client) -> None:
        assert client.ask("/api/jobs/none").status == 404
        assert "job none does not exist" in client.ask("/api/jobs/none/plan").error
        assert "there is no /nothing" in client.ask("/nothing").error
        answer = client.ask("/api/jobs", method="PUT")
        assert (answer.status, answer.headers["allow"]) == (405, "POST")


class TestCheck:
    def test_a_valid_spec(self, client: Client) -> None:
        found = client.ask("/api/check", HEFT_10).data
        assert found["issues"] == []
        assert (found["problem"]["tasks"], found["problem"]["devices"]) == (10, 3)
        assert {"heft", "cp-sat"} <= set(found["solvers"])
        assert "dpl" not in found["solvers"]

    def test_errors_have_lines(self, client: Client) -> None:
        found = client.ask("/api/check", WRONG).data
        (issue,) = found["issues"]
        line = next(k for k, text in enumerate(WRONG.splitlines(), 1) if "resolutoin" in text)
        assert (issue["line"], issue["path"]) == (line, "resolutoin")
        assert "did you mean resolution?" in issue["message"]
        assert found["problem"] is None
        answer = client.ask("/api/jobs", WRONG)
        assert answer.status == 422
        assert answer.data["issues"] == [issue]
        assert answer.error == f"the spec has 1 error; line {line}: {issue['path']}: {issue['message']}"

    def test_every_example_is_valid_and_solved(self, client: Client) -> None:
        listed = client.ask("/api/examples").data
        assert [each["name"] for each in listed] == list(examples.NAMES)
        assert all(each["description"] for each in listed)
        for name in examples.NAMES:
            text = client.ask(f"/api/examples/{name}").body.decode()
            assert text == (PROBLEMS / f"{name}.yaml").read_text(encoding="utf-8")
            assert any(client.solve(text, query)["feasible"] for query in ("", "solver=auto&time_limit=5")), name
        assert "example heft does not exist" in client.ask("/api/examples/heft").error


class TestDocument:
    def test_it_lists_all_paths_and_its_references_exist(self, client: Client) -> None:
        document = client.ask("/api/openapi.json").data
        paths = {(method, path) for path, item in document["paths"].items() for method in item}
        assert paths == {(each.method.lower(), each.path) for each in PATHS}
        for reference in re.findall(r'"#/([\w/]+)"', json.dumps(document)):
            place = document
            for part in reference.split("/"):
                place = place[part]
        operations = [each for item in document["paths"].values() for each in item.values()]
        assert all(set(map(str, REFUSALS)) < set(each["responses"]) for each in operations)
        assert len({each["operationId"] for each in operations}) == len(PATHS)

    def test_answers_are_as_it_says(self, client: Client) -> None:
        document = client.ask("/api/openapi.json").data
        schemas = document["components"]["schemas"]
        job = client.solve()
        assert set(job) == set(schemas["JobCard"]["properties"]) == set(schemas["JobCard"]["required"])
        assert set(client.ask("/nothing").data) == set(schemas["Fault"]["properties"])
        solvers = client.ask("/api/solvers").data
        assert all(set(each) == set(schemas["SolverCard"]["properties"]) for each in solvers)
        assert {each["name"] for each in solvers} <= set(po.solvers())
        assert client.ask("/api/schema").data == json.loads((PROBLEMS / "placeopt.schema.json").read_text())
        assert client.ask("/api/limits").data["tasks"] == Limits().tasks


def test_200_clients_at_once(client: Client) -> None:
    with ThreadPoolExecutor(200) as pool:
        jobs = list(pool.map(lambda _: client.solve(), range(200)))
    assert {job["objective"] for job in jobs} == {80}
    assert len({job["id"] for job in jobs}) == 200


class TestCommand:
    def test_it_serves_until_a_signal(self) -> None:
        command = [sys.executable, "-m", "placeopt", "serve", "--port", "0", "--host", "0.0.0.0", "--jobs", "1"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            address = re.fullmatch(r"placeopt serves (http://0\.0\.0\.0:\d+)\n", process.stdout.readline())
            assert address is not None
            client = Client(address[1].replace("0.0.0.0", "127.0.0.1"))
            assert client.solve()["objective"] == 80
            client.submit(query="solver=local-search&time_limit=60")
            process.send_signal(signal.SIGTERM)
            out, errors = process.communicate(timeout=60)
        assert out == ""
        assert "without --token, everyone who reaches 0.0.0.0 can use this service" in errors
        assert "Traceback" not in errors
        assert process.returncode == 143

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--port", "70000"], "--port is 70000; expected a number from 0 to 65535"),
            (["--token", "two words"], "--token must be ASCII text without spaces"),
            (["--jobs", "0"], "--jobs is 0; expected a whole number from 1"),
            (["--max-memory", "0"], '--max-memory: "0" is less than a byte'),
            (["--max-seconds", "0"], '--max-seconds: "0" is zero'),
        ],
    )
    def test_wrong_options(self, options: list[str], message: str) -> None:
        done = run("serve", *options)
        assert (done.code, done.out) == (2, "")
        assert message in done.err

    def test_an_address_that_is_not_free_or_not_of_this_machine(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            done = run("serve", "--port", taken.getsockname()[1])
        assert done.code == 2
        assert done.err.startswith("placeopt: cannot listen at 127.0.0.1, port ")
        done = run("serve", "--host", "203.0.113.7")  # reserved for documentation (RFC 5737)
        assert done.code == 2
        assert done.err.startswith("placeopt: cannot listen at 203.0.113.7, port 8080: ")

    def test_without_the_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "uvicorn", None)
        done = run("serve")
        assert done.code == 2
        assert done.err == "placeopt: the service and its page need uvicorn: pip install 'placeopt[serve]'\n"
