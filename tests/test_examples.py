"""The gallery: every script runs and prints what its page shows, and what the page states of the output is true."""

from __future__ import annotations

import ast
import importlib
import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs" / "_pages"))

from example_pages import EXAMPLES, FOLDER, PICTURES, index, page, read_script, run_script  # noqa: E402
from links import is_relative, targets  # noqa: E402

pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'placeopt[plots]'")

Numbers = dict[str, list[float]]
"""All numbers of a line of output, by the words before the first of them."""


def numbers(output: str) -> Numbers:
    found: Numbers = {}
    for line in output.splitlines():
        digits = [float(number) for number in re.findall(r"(?<![\w.])\d+(?:\.\d+)?", line)]
        found[re.split(r"\s{2,}|(?<![\w.])\d|: ", line.strip())[0].strip()] = digits
    return found


def transformer(output: str) -> None:
    found = numbers(output)
    (heft, heft_gap), (better, gap) = found["heft"], found["annealing"]
    assert better < 0.6 * heft
    assert gap < 10 < heft_gap
    assert found["v100"][1] <= 10
    need, largest = map(float, re.findall(r"([\d.]+) GiB", output)[:2])
    assert need > largest


def edge_pipeline(output: str) -> None:
    first, *others = output.splitlines()
    assert first == "20 to 24 ms  infeasible"
    found = {line.split("  ")[1]: [float(n) for n in line.split("  ")[2].split()[:-1]] for line in others}
    assert list(found) == ["cpu + gpu + npu", "cpu + npu", "cpu + gpu + server", "cpu + server"]
    energies = [energy for values in found.values() for energy in values]
    assert energies == sorted(energies, reverse=True)
    assert found["cpu + server"][0] < 0.6 * found["cpu + npu"][-1]


def workflow(output: str) -> None:
    found = numbers(output)
    (met, met_moved, _), (heft, heft_moved, _), (better, moved, _) = (found[n] for n in ("met", "heft", "annealing"))
    assert better < heft < met
    assert met_moved < moved < heft_moved
    assert heft_moved > 4 * met_moved
    assert better < 0.75 * heft


def heuristic_gaps(output: str) -> None:
    found = {line.split()[0]: [float(n) for n in re.findall(r"([\d.]+)%", line)] for line in output.splitlines()[1:]}
    assert len(found) == 7
    for mean, worst, certified in found.values():
        assert 0 <= mean <= worst
        assert mean <= certified  # a bound is never above the optimum
    assert found["lookahead-heft"][0] < 0.6 * found["heft"][0]
    assert found["annealing"][0] == min(mean for mean, *_ in found.values())
    assert int(re.findall(r"annealing.*optimal +(\d+) of 12", output)[0]) > 6


def own_solver(output: str) -> None:
    assert "random-search is installed: True" in output
    assert int(re.findall(r"(\d+) cases of the conformance suite passed", output)[0]) > 30
    makespans = [float(value) for value in re.findall(r"samples +([\d.]+) s", output)]
    assert makespans == sorted(makespans, reverse=True)
    assert makespans[-1] > numbers(output)["heft"][0]


def embedding(output: str) -> None:
    assert output.splitlines() == [
        "stopped because: interrupted",
        "verified: True, at least a tenth shorter than HEFT: True",
        "reports arrive in order: True",
    ]


def lost_device(output: str) -> None:
    lines = re.findall(r"(\d+) frames: +([\d.]+) ms each, +([\d.]+) s to move (\d+) tasks, chosen: (\[.*\])", output)
    frames, makespans, costs, moves, chosen = zip(*lines, strict=True)
    assert frames == ("1", "100", "1000")
    assert sorted(makespans, key=float, reverse=True) == list(makespans)
    assert sorted(costs, key=float) == list(costs)
    assert moves == ("5", "5", "6")
    assert chosen[0] == chosen[1] == "[]" != chosen[2]
    assert 100 < numbers(output)["the last plan pays for itself after"][0] < 1000


def infeasible(output: str) -> None:
    assert output.startswith("cp-sat: infeasible\n")
    assert len(re.findall(r"^- ", output, flags=re.MULTILINE)) == 2
    least = int(re.findall(r"with the deadline (\d+) ms", output)[0])
    assert f"deadline {least - 1} ms: infeasible\ndeadline {least} ms: optimal" in output


def robustness(output: str) -> None:
    found = {line.split()[0]: [float(n) for n in re.findall(r"([\d.]+) s", line)] for line in output.splitlines()}
    heft, better = found["HEFT"], found["annealing"]
    assert better[0] < heft[0]  # planned
    assert better[1] > heft[1]  # mean
    assert better[2] > heft[2]  # 95% quantile
    assert better[0] < better[1] < better[2]


def what_if(output: str) -> None:
    gains = {name: float(gain) for name, gain in re.findall(r"(\S.*?)  +[\d.]+ ms  gain +([\d.]+)%", output)}
    most = [float(value) for value in re.findall(r"at most +([\d.]+)%", output)]
    assert all(gain <= limit for gain, limit in zip(gains.values(), most, strict=True))
    assert max(gains, key=lambda name: gains[name]) == "cpu twice as fast"
    assert gains["one more cpu"] == 0
    assert gains["one more gpu"] > 0.4 * gains["cpu twice as fast"]
    assert gains["transfers take no time"] <= most[-1] < 6


def language_model(output: str) -> None:
    rows = {row[0]: list(map(float, row[1:])) for row in re.findall(
        r"^(\S.*?)  +layers \[ *(\d+) +(\d+) +(\d+)\]  period +([\d.]+) ms +(\d+) tokens", output, flags=re.MULTILINE
    )}  # fmt: skip
    assert all(sum(row[:3]) == 32 for row in rows.values())
    equal, memory, best = (rows[name][3] for name in ("equal numbers", "by memory", "placeopt"))
    assert best < 0.5 * equal
    assert 2.9 * best < memory < 3.1 * best
    assert numbers(output)["proved"] == [best]


def four_stages(output: str) -> None:
    assert re.findall(r"^(a\d+)-", output, flags=re.MULTILINE) == ["a30", "a30", "a100", "a100"]
    period, bound, cost = (float(n) for n in re.findall(r"([\d.]+)(?: ms|%)", output.splitlines()[-1]))
    assert bound < period < 1.03 * bound
    assert cost == pytest.approx(100 * (period / bound - 1), abs=0.1)


def microcontroller(output: str) -> None:
    assert "heft:   False" in output
    assert "cp-sat: True optimal" in output
    height, capacity = re.findall(r"height ([\d,]+) of ([\d,]+) bytes", output)[0]
    assert int(height.replace(",", "")) <= int(capacity.replace(",", "")) == 256 * 1024


def serving(output: str) -> None:
    price, least, whole = map(float, re.findall(r"less than (\d+) an hour, and at least (\d+); .* ([\d.]+)", output)[0])
    assert least < price <= math.ceil(whole)
    assert int(re.findall(r"more than (\d+) tokens/s", output)[0]) >= 1_800


def tensor_parallel(output: str) -> None:
    makespans = [float(value) for value in re.findall(r"^teams of .* ([\d.]+) ms$", output, flags=re.MULTILINE)]
    assert makespans == sorted(makespans, reverse=True)
    assert makespans[0] > 2 * makespans[2]
    (bound,) = map(float, re.findall(r"less than ([\d.]+) ms", output))
    assert 0.98 * makespans[-1] < bound <= makespans[-1]
    single, pipeline = output.split("a token for four requests")
    stages = re.findall(r"(\d+) tasks on (\S+):", pipeline)
    assert sum(int(count) for count, _ in stages) == 26
    members = [member for _, team in stages for member in team.split("+")]
    assert len(members) == len(set(members)) == 6
    teams = {name: int(count) for count, name in re.findall(r"(\d+) tasks on (\S+)", single)}
    mixed = [team for team in teams if team.count("+") == 3]
    assert sum(teams[team] for team in mixed) >= sum(teams.values()) - 1 == 49
    assert {team.count("fast") for team in mixed} == {1, 2}
    assert max(teams, key=lambda team: teams[team]).count("fast") == 2


def quantisation(output: str) -> None:
    lines = output.splitlines()
    makespans, gaps = ([float(re.findall(text, line)[0]) for line in lines] for text in (r"([\d.]+) ms", r"([\d.]+)%"))
    assert makespans == sorted(makespans, reverse=True)
    assert max(gaps) < 2
    on_gpu = [[int(count) for count in re.findall(r"(\d+) with", line)] for line in lines]
    on_cpu = [int(re.findall(r"(\d+) layers on the CPU", line)[0]) for line in lines]
    assert [sum(gpu) + cpu for gpu, cpu in zip(on_gpu, on_cpu, strict=True)] == [32] * len(lines)
    assert on_cpu[0] > 5
    assert on_gpu[0][1:] == [0, 0]
    assert on_cpu[1:] == [0, 0]
    assert on_gpu[1][0] >= 4


CLAIMS: dict[str, Callable[[str], None]] = {
    claims.__name__: claims
    for claims in (
        transformer, edge_pipeline, workflow, heuristic_gaps, own_solver, embedding, lost_device, infeasible,
        robustness, what_if, language_model, four_stages, tensor_parallel, quantisation, serving, microcontroller,
    )
}  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_prints_what_its_page_shows_and_states(name: str, tmp_path: Path) -> None:
    outputs = run_script(name, tmp_path)
    CLAIMS[name]("".join(outputs))
    assert (FOLDER / f"{name}.md").read_text(encoding="utf-8") == page(read_script(name), outputs), (
        f"run python docs/_pages/example_pages.py {name}"
    )
    assert [path.name for path in tmp_path.iterdir()] == [f"{name}.png"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_has_a_small_picture_and_links_that_lead_somewhere(name: str) -> None:
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    assert f"](../images/examples/{name}.png)" in text
    assert (PICTURES / f"{name}.png").stat().st_size < 200_000
    for target in filter(is_relative, targets(text)):
        assert (FOLDER / target.partition("#")[0]).is_file(), target


def test_the_index_and_the_navigation_have_every_script() -> None:
    assert sorted(EXAMPLES) == sorted(path.stem for path in FOLDER.glob("*.py")) == sorted(CLAIMS)
    assert sorted(EXAMPLES) == sorted(path.stem for path in PICTURES.glob("*.png"))
    text = (FOLDER / "index.md").read_text(encoding="utf-8")
    assert text == index([read_script(name) for name in EXAMPLES]), "run python docs/_pages/example_pages.py"
    pages = re.findall(r"examples/(\w+)\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert pages == ["index", *EXAMPLES]


def test_scripts_are_short_and_start_with_a_question() -> None:
    for name in EXAMPLES:
        script = read_script(name)
        code = [line for block in script.blocks if block.is_code for line in block.text.splitlines() if line.strip()]
        assert len(code) <= 60, name
        assert script.question.endswith("?"), name


@pytest.mark.parametrize("name", EXAMPLES)
def test_they_use_public_names_only(name: str) -> None:
    modules = re.findall(
        r"^\| `(placeopt\.[\w.]+)` \|", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    for node in ast.walk(ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            assert not [alias.name for alias in node.names if alias.name.startswith(("placeopt.", "placeopt_solvers"))]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("placeopt"):
            assert node.module in modules, f"{node.module} is not in the list of modules in docs/api.md"
            public = importlib.import_module(node.module or "")
            names = getattr(public, "__all__", [each for each in vars(public) if not each.startswith("_")])
            assert {alias.name for alias in node.names} <= set(names)


def test_they_are_typed() -> None:
    pytest.importorskip("mypy", reason="mypy is not installed: pip install 'placeopt[test]'")
    scripts = [str(FOLDER / f"{name}.py") for name in EXAMPLES]
    command = [sys.executable, "-m", "mypy", "--strict", *scripts]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
