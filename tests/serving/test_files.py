"""Files of serving problems and plans, the verifier, and the commands."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import placeopt as po
from placeopt.io.document import Document
from placeopt.io.formats.documents import MODELINE
from placeopt.io.spec import json_schema
from placeopt.serving.files import ServingFile, load_changed
from placeopt.serving.plan import COORDINATOR
from placeopt.serving.problem import SECOND, TOKEN, UNLIMITED
from placeopt.serving.rates import Hardware, LayerCosts, Requests, Step, interval_steps, prompt_times
from placeopt.serving.sites import find_sites
from tests.support.commandline import run
from tests.support.random_serving import random_serving

ROOT = Path(__file__).parents[2]

DOCUMENT: dict[str, Any] = {
    "placeopt": 1,
    "name": "two-kinds",
    "devices": {"fast": {"count": 2}, "slow": {}},
    "links": {"default": {"bandwidth": "1 GB/s"}},
    "serving": {"layers": 4, "activation": "16 KiB", "rates": {"fast": [100, 60, 30], "slow": {1: 50, 2: 20}}},
}


def written(tmp_path: Path, document: object = DOCUMENT) -> Path:
    path = tmp_path / "serving.json"
    path.write_text(json.dumps(document))
    return path


def test_the_page_lists_the_options_that_apply(tmp_path: Path) -> None:
    """Every other option of `solve` with a value is refused."""
    page = (ROOT / "docs" / "serving.md").read_text()
    listed = set(re.findall(r"`(--[a-z-]+)", page.partition("| `solve` | `--time-limit`")[2].partition("\n")[0]))
    listed.add("--time-limit")
    texts = {"--solver": "heft", "--certificate": "c.json", "--report": "r.html", "--trace": "t.json", "--tasks": None}
    for option, text in texts.items():
        assert option not in listed
        given = [option] if text is None else [option, tmp_path / text if "." in text else text]
        assert f"{option} does not apply to serving problems" in run("solve", written(tmp_path), *given).err
    values = {"--time-limit": "1s", "--gap": "1", "--require-gap": "1", "--seed": "1", "--workers": "1"}
    files = {"--out": tmp_path / "plan.json", "--plot": tmp_path / "layers.svg"}
    assert listed == {*values, *files, "--json"}
    options = [each for pair in {**values, **files}.items() for each in pair]
    assert run("solve", written(tmp_path), *options, "--json").code == 0


def test_measured_rates_and_links() -> None:
    problem = po.load_serving(DOCUMENT)
    assert problem.node_names == ("fast0", "fast1", "slow")
    assert problem.kind_names == ("fast", "slow")
    assert problem.rate[:, 0].tolist() == [[100 * TOKEN, 60 * TOKEN, 30 * TOKEN], [50 * TOKEN, 20 * TOKEN, 0]]
    assert problem.link[0, 1] == TOKEN * 10**9 // 16384
    assert problem.entry[0] == UNLIMITED


def test_measured_rates_with_missing_numbers() -> None:
    """A device that passes 20 tokens/s with four layers passes as many with two or three of them."""
    serving = DOCUMENT["serving"] | {"rates": {"fast": {2: 100, 4: 20}, "slow": [10, 30]}}
    problem = po.load_serving({**DOCUMENT, "serving": serving})
    assert (problem.rate[:, 0] // TOKEN).tolist() == [[100, 100, 20, 20], [10, 10, 0, 0]]
    assert problem.notes == ("rates of slow: more tokens/s with 2 layers than with 1; counted as no more",)
    alone = {**DOCUMENT, "devices": {"fast": {}}, "serving": serving | {"rates": {"fast": {4: 20}}}}
    assert po.solve_serving(po.load_serving(alone), time_limit=5).rate == 20 * TOKEN


def test_a_key_of_rates_for_devices_of_several_prices() -> None:
    """Each price makes a kind with another name, and a device without a price does not count as free."""
    devices: dict[str, dict[str, Any]] = {name: {"type": "gpu", "price": k} for k, name in enumerate("abc")}
    document = {**DOCUMENT, "devices": devices, "serving": DOCUMENT["serving"] | {"rates": {"gpu": [9, 8, 7, 6]}}}
    problem = po.load_serving(document)
    assert problem.price is not None
    assert problem.price.tolist() == [0, 10**6, 2 * 10**6]
    assert problem.kind_names == ("gpu at 0", "gpu at 1", "gpu at 2")
    changes = [gain.change for gain in po.whatif_serving(problem, time_limit=0.3, workers=1)]
    assert sum(change.endswith("less") for change in changes) == 3
    for name in "ac":
        lacking = {**document, "devices": devices | {name: {"type": "gpu"}}}
        with pytest.raises(po.SpecError, match=f"devices.{name}: lacks a price; expected one, as other devices have"):
            po.load_serving(lacking)


def test_computed_rates_follow_the_roofline() -> None:
    """Of 100 bytes, two layers of 20 leave room for 6 requests: reading takes 1 s, the work 6 * 2 / 6 = 2 s."""
    layers = [LayerCosts(20, 1, 1)] * 3
    hardware = Hardware(100, Fraction(6), Fraction(100), Fraction(0))
    table = interval_steps(layers, hardware, Requests(5))
    # Times are rounded up to picoseconds, and rates down.
    assert table[0].tolist() == [[6 * TOKEN - 1, 3 * TOKEN - 1, 2 * TOKEN]]
    assert Step(*table[:, 0, 1].tolist()) == Step(3 * TOKEN - 1, 6, SECOND * 2 // 5, SECOND // 10, 0, -(-SECOND // 3))
    assert interval_steps(layers, hardware, Requests(5, batch=1))[0, 0, 1] == TOKEN * 2
    slow = replace(hardware, overhead=Fraction(1))
    assert interval_steps(layers, slow, Requests(5))[0, 0, 1] == 6 * TOKEN // 4 - 1
    unlike = interval_steps([LayerCosts(90, 1, 1), *layers[1:]], hardware, Requests(5))
    assert unlike.shape == (6, 3, 3)
    assert unlike[0, 0].tolist() == [2 * TOKEN, 0, 0]


def test_tables_take_memory_and_no_time() -> None:
    """Of 100 bytes, 20 of weights and 30 of a table leave room for 10 requests of 5 bytes; the table is not read."""
    hardware = Hardware(100, Fraction(1000), Fraction(100), Fraction(0))
    with_table, without = (
        Step(*interval_steps([LayerCosts(20, 1, 1, tables)], hardware, Requests(5))[:, 0, 0].tolist())
        for tables in (30, 0)
    )
    assert (with_table.room, without.room) == (10, 16)
    assert with_table[2:] == without[2:]
    assert not prompt_times([LayerCosts(20, 1, 1, 90)], hardware, Requests(5, prompt=3)).any()


def test_a_device_without_layers_is_noted() -> None:
    serving = {"layers": 1, "activation": "8 KiB", "weights": "20 GB", "cache": "4 KiB", "flops": "10 GFLOP"}
    devices = {"big": {"like": "a100-40gb"}, "small": {"like": "t4", "memory": "4 GB"}}
    problem = po.load_serving({"placeopt": 1, "devices": devices, "serving": serving})
    assert problem.notes == ("small holds no layer and one request next to it",)


def test_gpus_that_share_layers() -> None:
    """Two GPUs have twice the memory and speed. Of the two all-reduces of a layer, each has two steps of 0.25 s, and
    0.5 s for a token of 10 bytes."""
    layers = [LayerCosts(20, 1, 1)] * 3
    hardware = Hardware(100, Fraction(6), Fraction(100), Fraction(1)).shared(2, 10, Fraction(10), Fraction(1, 4))
    assert hardware == Hardware(200, Fraction(12), Fraction(200), Fraction(2), Fraction(2))
    step = Step(*interval_steps(layers, hardware, Requests(5))[:, 0, 1].tolist())
    assert step.room == 16
    assert step[2:] == (SECOND * 42 // 10, SECOND * 405 // 100, 4 * SECOND, 4 * SECOND + -(-SECOND // 6))
    assert prompt_times(layers, hardware, Requests(5, prompt=3))[0, 1] == 2 * (2 + 3 * 2) * SECOND + SECOND // 2


def test_devices_of_several_gpus() -> None:
    serving = {
        "layers": 4, "activation": "8 KiB", "weights": "10 GB", "cache": "4 KiB", "flops": "10 GFLOP",
        "tensor_parallel": {
            "big": {"degree": 4, "bandwidth": "300 GB/s"}, "gpu": {"degree": 2, "bandwidth": "30 GB/s"},
        },
    }  # fmt: skip
    devices = {
        "big": {"like": "l4", "count": 2, "type": "gpu", "price": 1},
        "small": {"like": "l4", "type": "gpu", "price": 1},
        "cpu": {"like": "l4", "price": 1},
    }  # fmt: skip
    document = {"placeopt": 1, "devices": devices, "serving": serving}
    problem = po.load_serving(document)
    assert problem.kind_names == ("big x4", "small x2", "cpu")
    assert problem.degree == (4, 2, 1)
    assert problem.price is not None
    assert problem.price.tolist() == [4 * 10**6, 2 * 10**6, 10**6]
    assert [int(np.flatnonzero(row[0])[-1]) + 1 for row in problem.rate] == [4, 4, 2]
    assert problem.with_merged_kinds().degree == (4, 2, 1)
    named = {"big1": {"like": "l4", "price": 1}, "cpu": devices["cpu"]}
    kept = load_changed(Document(document), Document({"devices": named}))
    assert kept.kind_names == ("big1 x4", "cpu")  # nodes keep their name, and are the same
    fewer = {key: each for key, each in devices.items() if key != "big"}
    assert load_changed(Document(document), Document({"devices": fewer})).kind_names == ("small x2", "cpu")
    with pytest.raises(po.SpecError, match=r"tensor_parallel\.big: big0 has measured rates"):
        po.load_serving({**document, "serving": {**serving, "rates": {"big": [9]}}})
    wrong = {"tpu": {"degree": 1, "bandwidth": "1 GB/s"}}
    with pytest.raises(po.SpecError, match="degree: 1 is too small; expected at least 2"):
        po.load_serving({**document, "serving": {**serving, "tensor_parallel": wrong}})
    wrong["tpu"]["degree"] = 2
    with pytest.raises(po.SpecError, match='unknown device "tpu"'):
        po.load_serving({**document, "serving": {**serving, "tensor_parallel": wrong}})
    part = {"small": {"degree": 2, "bandwidth": "30 GB/s"}}
    with pytest.raises(po.SpecError, match=r"the largest device has 48 GiB"):
        po.load_serving({**document, "serving": {**serving, "weights": "1 TB", "tensor_parallel": part}})
    slow = {"gpu": {"degree": 2, "bandwidth": "30 GB/s", "latency": "1 h"}}
    alone = {**document, "devices": {"small": devices["small"]}, "serving": {**serving, "tensor_parallel": slow}}
    with pytest.raises(po.SpecError, match=r"no device can hold a layer: a step for one request.*more than 1,125 s"):
        po.load_serving(alone)


def test_prompts() -> None:
    """Steps as above: with two layers, 6 requests take 2 s, and one takes 0.45 s (40 and 10 bytes at 100 bytes/s)."""
    layers = [LayerCosts(20, 1, 1)] * 3
    hardware = Hardware(100, Fraction(6), Fraction(100), Fraction(0))
    # A prompt of 3 tokens takes 3 * 2 / 6 = 1 s, half of it for each of 2 tokens: 6 requests take 2 + 6 / 2 = 5 s.
    assert interval_steps(layers, hardware, Requests(5, prompt=3))[0, 0, 1] == TOKEN * 6 // 5 - 1


def test_prompts_pass_links() -> None:
    serving = {
        "layers": 4, "activation": "8 KiB", "weights": "1 GiB", "cache": "4 KiB", "flops": "1 GFLOP", "context": 600,
    }  # fmt: skip
    links = {"default": {"bandwidth": "1 Gbps"}}
    document = {"placeopt": 1, "devices": {"gpu": {"like": "l4", "count": 2}}, "links": links}
    plain, prompted = (po.load_serving({**document, "serving": {**serving, **keys}}) for keys in ({}, {"prompt": 400}))
    assert prompted.link[0, 1] == pytest.approx(plain.link[0, 1] / 3, rel=1e-6)
    assert prompted.rate_of(0, 0, 2) < plain.rate_of(0, 0, 2)
    assert plain.steps is not None
    assert po.load_serving(DOCUMENT).steps is None


def test_catalogue_devices_and_unlike_layers() -> None:
    serving = {
        "layers": [{"count": 1, "weights": "2 GiB"}, {"count": 3}], "activation": "8 KiB", "weights": "1 GiB",
        "cache": "4 KiB", "flops": "1 GFLOP", "context": 512,
    }  # fmt: skip
    problem = po.load_serving({"placeopt": 1, "devices": {"gpu": {"like": "l4", "count": 2}}, "serving": serving})
    assert not problem.alike
    assert problem.layers == 4
    assert problem.rate_of(0, 0, 4) > 0
    assert problem.rate[0, 0].tolist() != problem.rate[0, 1].tolist()


def test_stored_problems_name_their_schema() -> None:
    """Made by `placeopt schema --serving > problems/serving/serving.schema.json`."""
    folder = ROOT / "problems" / "serving"
    schema = json_schema(ServingFile)
    assert (folder / "serving.schema.json").read_text(encoding="utf-8") == json.dumps(schema, indent=1) + "\n"
    assert schema["required"] == ["placeopt", "devices", "serving"]
    problems = list(folder.glob("*.yaml"))
    assert problems
    for path in problems:
        assert path.read_text(encoding="utf-8").startswith(MODELINE.format(schema="serving.schema.json"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rates": {"fast": [100], "slo": [1]}}, 'unknown device "slo"; did you mean slow?'),
        ({"rates": {"fast": [1, 1, 1, 1, 1]}}, "a rate for 5 layers; there are 4"),
        ({"rates": {}}, "lacks memory, speed; expected that, or its tokens per second in rates"),
        ({"layers": 0}, "layers"),
        ({"layers": [{"count": 900}, {"count": 900}]}, "1,800 layers in all; expected at most 1,000"),
        ({"activation": None}, "activation"),
        ({"rates": {"fast": [2e12], "slow": [1]}}, "more than 10^9 tokens/s"),
        ({"rates": {"fast": [0], "slow": [0]}}, "no device can hold a layer: all rates are 0"),
        ({"requests": 3}, "measured rates say nothing of requests; expected a device with computed ones"),
        ({"time_per_token": "1 ms"}, "measured rates say nothing of requests"),
        ({"rate": {}}, "did you mean rates?"),
        *(({key: 10**400}, f"serving.{key}: ") for key in ("context", "prompt", "batch", "requests")),
        ({"prompt": 1024}, "1,024; expected fewer tokens than context, 1,024: the others are the answer"),
    ],
)
def test_errors_say_where_and_what(change: dict[str, object], message: str) -> None:
    with pytest.raises(po.SpecError) as caught:
        po.load_serving({**DOCUMENT, "serving": {**DOCUMENT["serving"], **change}})
    assert message in str(caught.value)


def test_other_functions_name_what_reads_the_file() -> None:
    with pytest.raises(po.SpecError, match="this is a serving problem"):
        po.compile(DOCUMENT)


def test_plan_files_keep_every_rate(tmp_path: Path) -> None:
    for seed in range(20):
        problem = random_serving(seed)
        result = po.solve_serving(problem, time_limit=0.3, workers=1)
        if result.plan is None:
            continue
        path = tmp_path / "plan.json"
        po.write_serving_plan(path, problem, result.plan)
        read = po.read_serving_plan(path, problem)
        assert po.verify_serving(problem, read) == po.verify_serving(problem, result.plan)


def test_a_plan_of_another_problem(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(
        json.dumps({"placeopt_plan": 1, "problem": "home", "nodes": {"mac": {"layers": [0, 1], "from": {}}}})
    )
    with pytest.raises(po.PlanError, match='the plan is of the problem "home", and this one is "two-kinds"') as caught:
        po.read_serving_plan(plan, po.load_serving(DOCUMENT))
    assert len(str(caught.value).splitlines()) == 2


def test_a_plan_of_another_kind(tmp_path: Path) -> None:
    """One line, and not one for each key that the other kind does not have."""
    tasks = po.compile({"placeopt": 1, "devices": {"a": {}}, "tasks": {"x": {"time": 1}}})
    nodes = po.load_serving(DOCUMENT)
    path = tmp_path / "plan.json"
    po.write_plan(path, po.solve(tasks, "heft"))
    with pytest.raises(po.PlanError, match=r"tasks: this is a plan of tasks; expected a plan of a serving problem$"):
        po.read_serving_plan(path, nodes)
    plan = po.solve_serving(nodes, time_limit=0.3, workers=1).plan
    assert plan is not None
    po.write_serving_plan(path, nodes, plan)
    with pytest.raises(po.PlanError, match=r"per_second: this is a plan of a serving problem; expected .* of tasks$"):
        po.read_plan(path, tasks)


def test_unknown_nodes_of_a_plan(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text('{"placeopt_plan": 1, "nodes": {"fats0": {"layers": [0, 1], "from": {"fast1": 3}}}}')
    with pytest.raises(po.PlanError, match="did you mean fast0"):
        po.read_serving_plan(path, po.load_serving(DOCUMENT))


def test_the_verifier_finds_every_broken_rule() -> None:
    """Each rule is broken in random plans, and named; a plan with less flow is not the largest."""
    broken: dict[str, int] = {}
    for seed in range(150):
        problem = random_serving(seed)
        plan = po.solve_serving(problem, time_limit=0.2, workers=1).plan
        if plan is None or not len(plan.flow):
            continue
        rng = np.random.default_rng(seed)
        k, n = int(rng.integers(len(plan.flow))), int(rng.integers(problem.n_nodes))
        flow = plan.flow.copy()
        flow[k] += 1 + int(rng.integers(TOKEN))
        end = plan.end.copy()
        end[n] += 1
        edges = plan.edges.copy()
        edges[k] = edges[k][::-1]
        less = replace(plan, flow=plan.flow - plan.flow % 2)
        for changed in (replace(plan, flow=flow), replace(plan, end=end), replace(plan, edges=edges), less):
            report = po.verify_serving(problem, changed)
            same = report.rate == plan.rate and report.feasible
            assert not report.feasible or same or not report.largest or changed.end is end
            for rule, _ in report.violations:
                broken[rule] = broken.get(rule, 0) + 1
    assert set(broken) == {"interval", "edge", "link", "node", "balance"}
    assert min(broken.values()) >= 3


def test_a_smaller_flow_is_not_the_largest() -> None:
    problem = po.load_serving(DOCUMENT)
    plan = po.solve_serving(problem, time_limit=2).plan
    assert plan is not None
    none = replace(plan, edges=plan.edges[:0], flow=plan.flow[:0])
    report = po.verify_serving(problem, none)
    assert (report.feasible, report.largest, report.rate) == (True, False, 0)
    assert COORDINATOR == -1


def test_commands(tmp_path: Path) -> None:
    path, plan = written(tmp_path), tmp_path / "plan.json"
    solved = run("solve", str(path), "--out", str(plan), "--time-limit", "2s")
    assert solved.code == 0
    assert "rate   60.00 tokens/s" in solved.out
    assert "0 to 1" in solved.out
    verified = run("verify", str(path), str(plan))
    assert verified.code == 0
    assert "feasible: 60.00 tokens/s; no flow is larger with these layers" in verified.out
    stated = json.loads(run("solve", str(path), "--json", "--time-limit", "2s").out)
    assert stated["tokens_per_second"] == 60
    assert json.loads(run("verify", str(path), str(plan), "--json").out)["feasible"]


@pytest.mark.parametrize("name", ["llama-70b-24", "llama-70b-three-sites"])
def test_stored_problems(name: str, tmp_path: Path) -> None:
    path = ROOT / "problems" / "serving" / f"{name}.yaml"
    problem = po.load_serving(path)
    assert (problem.name, problem.n_nodes, problem.layers) == (name, 24, 80)
    assert find_sites(problem).number == (1 if name == "llama-70b-24" else 3)
    picture = tmp_path / "layers.png"
    assert run("solve", path, "--time-limit", "0.3s", "--plot", picture).code == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_stored_plan_is_verified() -> None:
    folder = ROOT / "problems" / "serving"
    problem = po.load_serving(folder / "llama-70b-24.yaml")
    report = po.verify_serving(problem, po.read_serving_plan(folder / "plans" / "llama-70b-24.json", problem))
    assert report.feasible
    assert report.rate > 2_100 * TOKEN


def test_options_that_do_not_apply(tmp_path: Path) -> None:
    refused = run("solve", str(written(tmp_path)), "--solver", "heft")
    assert refused.code == 2
    assert "--solver does not apply to serving problems" in refused.err
    assert run("solve", written(tmp_path), "--plot", "memory:a.png").code == 2
    assert run("solve", written(tmp_path), "--time-limit", "none").code == 2
    with pytest.raises(po.UsageError, match="time_limit"):
        po.solve_serving(po.load_serving(DOCUMENT), time_limit=-1)
