"""Attacks on the service: it refuses them with one clear line and goes on."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psutil
import pytest
from service import HEFT_10, PROBLEMS, Client, running

from placeopt.cli.service import queue, routes, server, specs
from placeopt.cli.service.cards import Event, problem_card, solver_cards
from placeopt.cli.service.limits import Limits
from placeopt.cli.service.specs import compiled, read_problem
from placeopt.errors import SpecError
from placeopt.io.spec import json_schema

SMALL = Limits(body=20_000, tasks=50, devices=8, seconds=5, memory=2**30, jobs=1, queue=3, kept=2, connections=60)
ALIASES = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
LONG = "solver=local-search&time_limit=5"


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with running(SMALL) as found:
        yield found


@pytest.fixture(autouse=True)
def _still_serves(client: Client) -> Iterator[None]:
    yield
    assert client.ask("/api/check", HEFT_10).data["issues"] == []


def raw(client: Client, *parts: bytes, pause: float = 0.0) -> bytes:
    """Send parts of a request, with a pause after each, and return what comes back until the end."""
    answer = b""
    with socket.create_connection(client.place, timeout=30) as sock:
        try:
            for part in parts:
                sock.sendall(part)
                time.sleep(pause)
            while more := sock.recv(2**16):
                answer += more
        except ConnectionError:
            pass
        return answer


class TestBodies:
    def test_too_large(self, client: Client) -> None:
        answer = client.ask("/api/check", "#" * 20_001)
        assert answer.status == 413
        assert answer.error == "the body is too large; this service takes at most 19.53 KiB"

    def test_too_large_without_a_stated_length(self, client: Client) -> None:
        head = b"POST /api/jobs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        chunk = b"4000\r\n" + b"#" * 0x4000 + b"\r\n"
        assert raw(client, head, chunk, chunk).startswith(b"HTTP/1.1 413")

    def test_too_many_tasks_and_devices(self, client: Client) -> None:
        tasks = "".join(f"  t{k}: {{time: 1}}\n" for k in range(51))
        answer = client.ask("/api/jobs", f"placeopt: 1\ndevices: {{a: {{}}}}\ntasks:\n{tasks}")
        assert "line 4: tasks: 51 tasks; this service takes at most 50" in answer.error
        answer = client.ask("/api/jobs", "{placeopt: 1, devices: {a: {count: 9}}, tasks: {x: {time: 1}}}")
        assert "devices: 9 devices; this service takes at most 8" in answer.error

    def test_too_many_teams(self, client: Client) -> None:
        spec = (
            "{placeopt: 1, devices: {a: {count: 4, type: g}, b: {type: g}},"
            " tasks: {x: {modes: {m: {time: 1, team: {%s}}}}}}"
        )
        assert client.ask("/api/check", spec % "a: 4, b: 1").data["issues"] == []  # one team
        for team in ("a: 2", "g: 2"):
            assert "teams and modes; this service takes at most 8" in client.ask("/api/jobs", spec % team).error

    def test_too_many_modes_of_operations_and_with_outputs(self, client: Client) -> None:
        spec = "{placeopt: 1, devices: {a: {count: 2}}, modes: {%s}, tasks: {x: {op: o, time: 1}, y: {op: p, time: 1}}}"
        modes = "o: {m: {output: %d}, n: {output: 2}}, p: {m: {output: 1}, n: {output: 2}}"
        assert client.ask("/api/check", spec % (modes % 1)).data["issues"] == []  # the same kinds for both
        assert "up to 8 teams and modes" in client.ask("/api/jobs", spec % (modes % 3)).error

    @pytest.mark.parametrize(
        ("spec", "message"),
        [
            (ALIASES, "alias"),
            ("[" * 5000, "nested too deeply"),
            ('{"a":' * 3000 + "1" + "}" * 3000, "nested too deeply"),
            (
                '{"placeopt": 1, "devices": {"a": {}}, "tasks": {}, "x-a": ' + "[" * 200 + "]" * 200 + "}",
                "nested too deeply",
            ),
            ("a: !!python/object/apply:os.system [id]", "tag"),
            ("placeopt: 1\x00", "character"),
            (b"\xff\xfe" * 100, "not UTF-8"),
            ("", "the document is empty"),
            ("- 1", "expected a mapping"),
            ("{placeopt: 1, devices: {a: {}}, tasks: {x: {time: " + "9" * 5000 + "}}}", "time"),
            ("{placeopt: 1, devices: {a: {}}, tasks: {x: {time: 1e999999999 s}}}", "time"),
            ("{placeopt: 1, devices: {a: {}}, resolution: 1e-300 s, tasks: {x: {time: 1 s}}}", "tick length"),
        ],
        ids=[
            "aliases",
            "yaml",
            "json",
            "sections",
            "tag",
            "control",
            "binary",
            "empty",
            "list",
            "digits",
            "exponent",
            "ticks",
        ],
    )
    def test_hostile_texts(self, client: Client, spec: str | bytes, message: str) -> None:
        begun = time.monotonic()
        answer = client.ask("/api/jobs", spec)
        assert answer.status == 422
        assert answer.error.startswith("the spec has ")
        assert any(message in issue["message"] for issue in client.ask("/api/check", spec).data["issues"])
        assert time.monotonic() - begun < 20, "a hang, not a measurement"

    @pytest.mark.skipif(os.name == "nt", reason="Windows has no fork")
    def test_specs_that_take_long_to_compile(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(specs, "COMPILING", 1.0)
        groups = f"&groups [{', '.join(f'g{k}' for k in range(200))}]"
        tasks = ", ".join(f"t{k}: {{time: 1, separate: {'*groups' if k else groups}}}" for k in range(300))
        spec = f"{{placeopt: 1, devices: {{a: {{count: 400}}}}, tasks: {{{tasks}}}}}"
        with pytest.raises(SpecError, match="takes more than 1 s or too much memory to compile"):
            compiled(spec.encode(), Limits())

    @pytest.mark.skipif(os.name == "nt", reason="Windows has no fork")
    def test_specs_that_are_compiled_in_a_process(self, monkeypatch: pytest.MonkeyPatch) -> None:
        spec = HEFT_10.encode() + b"# &\n"
        assert compiled(spec, SMALL).fingerprint() == read_problem(spec, SMALL).fingerprint()
        with pytest.raises(SpecError, match="10 tasks; this service takes at most 5"):
            compiled(spec, Limits(tasks=5))
        if sys.platform == "linux":  # elsewhere, systems do not keep the limit
            wide = b"{placeopt: 1, devices: {a: {count: 400}}, tasks: {x: {time: 1}}} # &"
            with pytest.raises(SpecError, match="memory"):
                compiled(wide, Limits(memory=2**20))
        monkeypatch.setattr(specs, "_answer", os.abort)
        with pytest.raises(SpecError, match="takes more than 10 s or too much memory to compile"):
            compiled(spec, SMALL)

    def test_names_are_never_markup(self, client: Client) -> None:
        evil = "</script><script>alert(1)</script>"
        spec = json.dumps({"placeopt": 1, "name": evil, "devices": {evil: {}}, "tasks": {evil: {"time": 1}}})
        page = client.ask(f"/api/jobs/{client.solve(spec)['id']}/report")
        assert b"<script>alert" not in page.body
        assert "nosniff" in page.headers["x-content-type-options"]
        assert "sandbox" in page.headers["content-security-policy"]


class TestFiles:
    SECRET = "graphs/inception-v3.json"
    PLACES = ("graph: {file: %s}", "placement: {file: %s}", "current: {placement: {file: %s}}")
    NAMES = ("/etc/passwd", "file:///etc/passwd", "../problems/graphs/inception-v3.json", SECRET, "/dev/zero", "-")

    def test_no_key_of_a_spec_opens_a_file(self, client: Client) -> None:
        assert (PROBLEMS / self.SECRET).is_file()
        for place in self.PLACES:
            for name in self.NAMES:
                spec = "{placeopt: 1, devices: {a: {}}, tasks: {x: {time: 1}}, " + place % json.dumps(name) + "}"
                answer = client.ask("/api/jobs", spec)
                assert answer.status == 422
                assert "is not opened: the caller allows no files" in answer.error
        for wrong in ("{placeopt: 1, devices: !include /etc/passwd}", "%INCLUDE /etc/passwd\n---\n{placeopt: 1}"):
            assert client.ask("/api/jobs", wrong).status == 422

    def test_there_are_no_other_keys_with_files(self) -> None:
        """Every key that says `file` is one of those above: a new one must be added there."""
        schema = json_schema()
        kinds = {"Spec": schema, **schema["$defs"]}
        found = {
            f"{kind}.{key}"
            for kind, definition in kinds.items()
            for key, stated in definition.get("properties", {}).items()
            if "file" in f"{key} {stated.get('description')}".lower()
        }
        assert "DeviceSpec" in kinds
        about = {"Spec.graph", "GraphSpec.file", "Spec.placement", "CurrentSpec.placement"}
        # Texts that say "the order of the file" and the like.
        assert found - about <= {"ModeSpec.team"}
        assert about <= found

    def test_nothing_is_opened_while_a_hostile_spec_is_read(self) -> None:
        text = f"""
import sys
from placeopt.cli.service.limits import Limits
from placeopt.cli.service.specs import read_problem
read_problem(open({str(PROBLEMS / "heft-10.yaml")!r}, "rb").read(), Limits())
opened = []
sys.addaudithook(lambda event, arguments: opened.append(str(arguments[0])) if event == "open" else None)
for name in {self.NAMES!r}:
    for place in {self.PLACES!r}:
        devices = "devices: {{a: {{like: " + name + "}}}}"
        spec = "{{placeopt: 1, " + devices + ", tasks: {{x: {{time: 1}}}}, " + place % name + "}}"
        try:
            read_problem(spec.encode(), Limits())
        except Exception as error:
            assert type(error).__name__ == "SpecError", error
        else:
            raise AssertionError(spec)
print([path for path in opened if not path.endswith((".py", ".pyc")) and "catalogue" not in path])
"""
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout == "[]\n"

    def test_settings_take_no_text(self) -> None:
        """The setting `weights` of giph is the name of a file."""
        cards = solver_cards()
        assert "weights" not in {each.name for each in cards["giph"].settings}
        texts = [each for card in cards.values() for each in card.settings if "str" in each.type]
        assert texts == []

    def test_settings_that_are_files_are_refused(self, client: Client) -> None:
        for query in (
            "solver=giph&weights=/etc/passwd",
            "solver=heft&initial=/etc/passwd",
            "dask=tcp://10.0.0.1:1",
            "gap_limit=x",
        ):
            answer = client.ask(f"/api/jobs?{query}", HEFT_10)
            assert answer.status == 422
            assert "unknown parameter" in answer.error

    def test_paths_outside_the_page(self, client: Client) -> None:
        for path in (
            "/../pyproject.toml",
            "/%2e%2e/server.py",
            "/server.py",
            "/codemirror.txt%00",
            "/api/examples/..%2Fplans",
        ):
            assert client.ask(path).status == 404


class TestStrangers:
    def test_tokens(self) -> None:
        with running(SMALL, token="right") as client:
            assert client.ask("/").status == 200
            for header in (
                {},
                {"Authorization": "Bearer wrong"},
                {"Authorization": "Bearer right2"},
                {"Authorization": "Basic right"},
            ):
                for path in ("/api/solvers", "/api/jobs/x", "/api/openapi.json", "/api/nothing"):
                    answer = client.ask(path, **header)
                    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
                    assert "the token is missing or wrong" in answer.error
            assert client.ask("/api/solvers", Authorization="Bearer right").status == 200
            assert client.ask("/api/solvers", Authorization="bearer right", Host="other.example").status == 200

    def test_pages_of_other_hosts(self, client: Client) -> None:
        for origin in ("https://evil.example", "null", "http://localhost:1"):
            answer = client.ask("/api/jobs", HEFT_10, Origin=origin)
            assert answer.status == 403
            assert "expected the page of this service" in answer.error
        assert client.ask("/api/check", HEFT_10, Origin=client.url).status == 200

    def test_names_that_lead_here(self, client: Client) -> None:
        assert "expected localhost" in client.ask("/", Host="evil.example").error
        for name in ("localhost:1", "127.0.0.1", "[::1]:80"):
            assert client.ask("/", Host=name).status == 200


class TestQueue:
    def test_it_is_full(self, client: Client) -> None:
        jobs = [client.submit(query=LONG)]
        client.wait_until(jobs[0]["id"], "running")
        jobs += [client.submit(query=LONG) for _ in range(3)]
        assert [job["position"] for job in jobs[1:]] == [0, 1, 2]
        answer = client.ask("/api/jobs", HEFT_10)
        assert (answer.status, answer.headers["retry-after"]) == (503, "5")
        assert answer.error == "the queue is full: 3 jobs wait already; expected another try in some seconds"
        for job in reversed(jobs):
            client.ask(f"/api/jobs/{job['id']}", method="DELETE")
        assert client.wait_until(jobs[0]["id"], "ended")["termination"] == "interrupted"
        found = [client.ask(f"/api/jobs/{job['id']}") for job in jobs[1:]]
        assert {answer.data["state"] for answer in found if answer.status == 200} <= {"cancelled"}

    def test_old_jobs_are_dropped(self, client: Client) -> None:
        ids = [client.solve()["id"] for _ in range(4)]
        assert [client.ask(f"/api/jobs/{id}").status for id in ids] == [404, 200, 200, 200]

    def test_large_problems_do_not_fill_the_memory(self) -> None:
        spec = "{placeopt: 1, devices: {a: {count: 400}}, tasks: {x: {time: 1}}}"  # 6.4 MB each
        with running(Limits(jobs=1, room=20_000_000)) as client:
            ids = [client.solve(spec)["id"] for _ in range(5)]
            assert [client.ask(f"/api/jobs/{id}").status for id in ids] == [404, 404, 200, 200, 200]
            client.wait_until(client.submit(query="solver=local-search&time_limit=60")["id"], "running")
            for _ in range(3):
                client.submit(spec)
            answer = client.ask("/api/jobs", spec)
            assert answer.status == 503
            assert answer.error.startswith("the queue is full: the problems of other jobs take its memory")

    def test_a_job_that_does_not_stop(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(queue, "LATE", -4.5)  # seconds after its limit
        job = client.solve(query=LONG)
        assert (job["state"], job["termination"]) == ("ended", "interrupted")

    def test_too_many_connections(self, client: Client) -> None:
        open_ones = [socket.create_connection(client.place) for _ in range(70)]
        try:
            assert client.ask("/api/limits").status == 503
        finally:
            for each in open_ones:
                each.close()
        while client.ask("/api/limits").status == 503:
            time.sleep(0.05)


def workers() -> list[psutil.Process]:
    """The processes of jobs of this program: children of the one that forks them."""
    children = psutil.Process().children(recursive=True)
    return [child for child in children if "forkserver" in " ".join(child.parent().cmdline())]


class TestProcesses:
    @pytest.mark.skipif(os.name == "nt", reason="Windows has no fork")
    def test_a_killed_worker_ends_only_its_job(self, client: Client) -> None:
        job = client.submit(query=LONG)
        other = client.submit()
        client.wait_until(job["id"], "running")
        while client.ask(f"/api/jobs/{job['id']}").data["objective"] is None:
            time.sleep(0.01)
        for worker in workers():
            worker.kill()
        failed = client.wait_until(job["id"], "failed")
        assert failed["error"] == "the process of the job died of SIGKILL (out of memory?)"
        assert client.ask(f"/api/jobs/{job['id']}/charts").data["schedule"], "its last schedule is still there"
        assert failed["error"] in client.ask(f"/api/jobs/{job['id']}/result").error
        assert client.wait_until(other["id"], "ended")["feasible"]

    @pytest.mark.skipif(os.name == "nt", reason="Windows has no fork")
    def test_a_killed_template_is_started_again(self, client: Client) -> None:
        job = client.submit(query="solver=local-search&time_limit=1")
        client.wait_until(job["id"], "running")
        while client.ask(f"/api/jobs/{job['id']}").data["objective"] is None:
            time.sleep(0.01)
        workers()[0].parent().kill()
        assert client.wait_until(job["id"], "ended")["feasible"], "its process goes on"
        assert client.solve()["feasible"]

    def test_a_job_that_needs_too_much_memory(self) -> None:
        with running(Limits(jobs=1, memory=2**20)) as client:
            job = client.solve(query=LONG)
            assert job["state"] == "failed"
            assert job["error"] == "the process of the job needed more than 1 MiB of main memory and was killed"
            assert client.ask("/api/check", HEFT_10).status == 200

    def test_a_bug_is_one_line(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*_: object) -> None:
            raise ZeroDivisionError("a secret")

        monkeypatch.setattr(routes, "compiled", broken)
        answer = client.ask("/api/check", HEFT_10)
        assert (answer.status, answer.error) == (500, "internal error, a bug of placeopt: ZeroDivisionError")


class TestSlowClients:
    def test_headers(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(server, "HEADERS", 0.3)
        assert raw(client) == b"", "it says nothing"
        assert raw(client, *[b"GET / HTTP/1.1\r\n", *[b"X-Slow: 1\r\n"] * 10], pause=0.1) == b""
        asked = b"GET /api/limits HTTP/1.1\r\nHost: localhost\r\n\r\n"
        assert raw(client, asked, b"GET / HTTP", pause=0.1).count(b"HTTP/1.1 200") == 1, "a second request is slow"

    def test_bodies(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(routes, "ARRIVAL", 0.3)
        head = b"POST /api/check HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 100\r\n\r\n"
        assert raw(client, head, b"#", b"#", pause=0.1).startswith(b"HTTP/1.1 408")

    def test_a_body_that_breaks_off(self, client: Client) -> None:
        with socket.create_connection(client.place) as sock:
            sock.sendall(b"POST /api/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nplace")

    def test_readers(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(server, "READING", 0.3)
        with socket.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.settimeout(30)
            sock.connect(client.place)
            for _ in range(40):  # 16 MB of answers, which it does not read
                try:
                    sock.sendall(b"GET /codemirror.js HTTP/1.1\r\nHost: localhost\r\n\r\n")
                except ConnectionError:
                    break
            time.sleep(1)
            received = 0
            with suppress(ConnectionError):
                while part := sock.recv(2**16):
                    received += len(part)
        assert received < 40 * len(client.ask("/codemirror.js").body), "it is cut off"

    def test_many_watch_and_some_leave(self, client: Client) -> None:
        id = client.submit(query="solver=local-search&time_limit=1")["id"]
        for _ in range(20):
            with socket.create_connection(client.place) as sock:
                sock.sendall(f"GET /api/jobs/{id}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        with ThreadPoolExecutor(20) as pool:
            found = list(pool.map(lambda _: client.events(id), range(20)))
        assert all(events == found[0] for events in found)
        assert found[0][-1][0] == "finished"

    def test_a_quiet_stream_says_that_it_is_alive(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(routes, "PULSE", 0.2)
        blocking = client.submit(query="solver=local-search&time_limit=1")["id"]
        id = client.submit()["id"]
        assert client.ask(f"/api/jobs/{id}/events").body.startswith(b": alive\n\n")
        assert client.wait_until(blocking, "ended")


def test_reading_is_bounded_without_a_server() -> None:
    with pytest.raises(SpecError, match="tasks; this service takes at most 2"):
        read_problem(HEFT_10.encode(), Limits(tasks=2))


def test_an_event_wakes_all_who_wait() -> None:
    async def watch() -> list[int]:
        problem = read_problem(HEFT_10.encode(), Limits())
        entry = queue.Entry("id", problem, problem_card(problem), "heft", 1.0, 0, {})

        async def count() -> int:
            return len([event async for event in entry.stream(every=60) if event is not None])

        waiting = [asyncio.create_task(count()) for _ in range(3)]
        await asyncio.sleep(0)
        entry.say("started", Event(elapsed=0, objective=None, bound=None))
        await asyncio.sleep(0)
        entry.state = "ended"
        entry.say("finished", Event(elapsed=0, objective=None, bound=None))
        return list(await asyncio.gather(*waiting))

    assert asyncio.run(watch()) == [2, 2, 2]
