"""A comparison on a real Dask cluster whose worker is killed: no run is lost, and the killed run is repeated."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rogues
from commandline import run
from dask_processes import dask_processes

import placeopt as po
from placeopt.errors import UsageError
from placeopt.model.versions import version_of
from placeopt.protocol import cluster as cluster_module
from placeopt.protocol import registry
from placeopt.studies.comparison import execution, matrix
from placeopt.studies.comparison.ledger import read_ledger

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'placeopt[dask]'")

# Warnings of Dask itself.
pytestmark = pytest.mark.filterwarnings("ignore")

FIVE = Path(__file__).parents[2] / "problems" / "five-node.yaml"


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The rogues are installed, for the cluster's workers too, and write down their processes here."""
    folder = tmp_path / "notes"
    folder.mkdir()
    monkeypatch.setenv("ROGUE_NOTES", str(folder))
    site = tmp_path / "site"
    site.mkdir()
    rogues.install(site)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("PYTHONPATH", f"{site}{os.pathsep}{Path(__file__).parents[1] / 'support'}")
    registry._entry_points.cache_clear()
    return folder


@pytest.fixture
def cluster(notes: Path) -> Iterator[Any]:  # noqa: ARG001
    """Two workers, a run each at a time."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50, processes=True
    ) as found:
        yield found
    registry._entry_points.cache_clear()


@pytest.mark.parametrize("fate", ["scheduler killed", "scheduler stopped", "worker killed"])
def test_a_lost_cluster_ends_the_comparison(
    fate: str, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.jsonl"
    with dask_processes() as found:

        def lose() -> None:
            while not (rogues.noted(notes, "hang") and b"heft" in out.read_bytes()):  # its record has arrived
                time.sleep(0.05)
            process, number = getattr(found, fate.split()[0]), signal.SIGKILL if "killed" in fate else signal.SIGSTOP
            process.send_signal(number)
            monkeypatch.setattr(cluster_module, "PATIENCE", 3.0)  # not before: a scheduler that imports is silent, too

        threading.Thread(target=lose, daemon=True).start()
        solvers = ["heft", "rogue-hang", "m-etf"]
        lost = po.compare([FIVE], solvers, time_limit=None, dask=found.address, connect_limit=2, ledger=out)
    assert ([record.solver for record in lost.records], lost.expected) == (["heft"], 3)
    why = "it has had no worker for" if fate == "worker killed" else "its scheduler has not answered for"
    assert lost.notes[0].startswith(f"the cluster at {found.address} is lost: {why}")
    assert [record.solver for record in read_ledger(out)] == ["heft"]
    done = run("compare", FIVE, "--solvers", "heft,m-etf", "--time-limit", "none", "--out", out, "--resume")
    assert (done.code, len(read_ledger(out))) == (0, 2)


def test_another_version_loses_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "version_of", lambda: "0.0")
    (row,) = po.compare([FIVE], "heft").rows()
    assert row["verdict"] == "lost"
    assert f"VersionError: placeopt {version_of()} on the worker, 0.0 here" in row["message"]


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_worker_is_killed_half_way(
    cluster: Any, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "LARGE", 0)  # the problem is sent once
    out = tmp_path / "out.jsonl"
    killed: list[int] = []

    def kill_one() -> None:
        end = time.monotonic() + 60
        while not rogues.noted(notes, "slow") and time.monotonic() < end:
            time.sleep(0.05)
        (run_, *_) = rogues.noted(notes, "slow")
        worker = parent(parent(run_))  # its supervisor is between them
        killed.extend((worker, run_))
        os.kill(worker, signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    comparison = po.compare(
        [FIVE], "heft,m-etf,rogue-slow,rogue-exit", seeds=2, time_limit=20, dask=cluster.scheduler_address, ledger=out
    )
    killer.join()
    worker, victim = killed
    assert not rogues.alive(worker)
    assert not rogues.alive(victim)
    assert len(rogues.noted(notes, "slow")) > 2  # two runs, and one more for that of the dead worker
    assert [(row["solver"], row["seed"], row["verdict"]) for row in comparison.rows()] == [
        (solver, seed, verdict)
        for solver, verdict in (
            ("heft", "feasible"), ("m-etf", "feasible"), ("rogue-slow", "feasible"), ("rogue-exit", "crashed"),
        )
        for seed in (0, 1)
    ]  # fmt: skip
    assert len(read_ledger(out)) == 8

    monkeypatch.setattr(execution, "LARGE", 10**9)  # with each run
    done = run("compare", FIVE, "--solvers", "heft,m-etf", "--time-limit", 20, "--dask", cluster.scheduler_address)
    assert done.code == 0
    assert done.out.startswith("five-node: best 14 s (heft)")


def test_stopped_the_runs_on_the_cluster_are_killed(cluster: Any, notes: Path) -> None:
    stopped = po.compare(
        [FIVE], "rogue-hang", time_limit=None, dask=cluster.scheduler_address,
        should_stop=lambda: bool(rogues.noted(notes, "hang")),
    )  # fmt: skip
    assert (len(stopped.records), stopped.expected) == (0, 1)
    (sleeper,) = rogues.noted(notes, "hang")
    assert not rogues.alive(sleeper)


@pytest.mark.parametrize("address", ["no-port", "http://127.0.0.1:8786"])
def test_what_is_no_address_keeps_no_process_from_ending(address: str) -> None:
    code = f"import placeopt as po; po.compare([{str(FIVE)!r}], 'heft', dask={address!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert f"--dask {address}: no scheduler answers" in done.stderr


def test_no_address_and_no_dask(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="--dask"):
        po.compare([FIVE], "heft", dask="nonsense://")
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(po.MissingExtraError, match=r"needs Dask: pip install 'placeopt\[dask\]'"):
        po.compare([FIVE], "heft", dask="tcp://127.0.0.1:1")
