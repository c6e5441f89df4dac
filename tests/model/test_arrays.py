"""Arguments of `build_problem` and of functions of schedules: errors name argument and place."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import placeopt as po
from placeopt.model.arrays import by_index, csr, inverse
from placeopt.model.building import build_problem
from placeopt.model.problem import Problem
from placeopt.simulation import make_evaluator, retime, simulate, simulate_noisy


def diamond(**changes: Any) -> Problem:
    """a to b and c, both to d, on two devices."""
    arrays: dict[str, Any] = {
        "task_names": ("a", "b", "c", "d"),
        "device_names": ("cpu", "gpu"),
        "duration": [[1, 2], [3, 4], [5, 6], [7, 8]],
        "edges": [(0, 1), (0, 2), (1, 3), (2, 3)],
        "payload": [1, 2, 3, 4],
    }
    return build_problem(**(arrays | changes))


FAR = 10**9
TASKS = ("resident", "output", "scratch", "release", "deadline")
LINKS = ("latency", "byte_ticks_num", "byte_ticks_den", "byte_energy_num", "byte_energy_den")

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "an edge to nowhere": (
        {"edges": [(0, 1), (0, FAR), (1, 3), (2, 3)]},
        f"edges[1] is (0, {FAR}); expected two tasks, each from 0 to 3",
    ),
    "an edge from the end": (
        {"edges": [(0, 1), (0, 2), (1, 3), (-1, 3)]},
        "edges[3] is (-1, 3); expected two tasks, each from 0 to 3",
    ),
    "edges of three": ({"edges": [(0, 1, 2)]}, "edges: has shape (1, 3); expected (1, 2): pairs x 2 tasks"),
    "a flat list of edges": ({"edges": [0, 1, 1, 2]}, "edges: has shape (4,); expected (4, 2): pairs x 2 tasks"),
    "ragged edges": ({"edges": [(0, 1), (2,)]}, "edges: has rows of different lengths"),
    "half a task": ({"edges": [(0, 1), (0, 1.5)]}, "edges[1, 1] is 1.5; expected a whole number of 64 bits"),
    "named ends": ({"edges": [("a", "b")]}, "edges: holds <U1; expected whole numbers"),
    "edges that are a number": ({"edges": 5}, "edges is 5; expected pairs of tasks"),
    "edges without tasks": (
        {"task_names": [], "duration": [], "edges": [(0, 0)], "payload": [1]},
        "edges[0] is (0, 0); expected none, as there are no tasks",
    ),
    "too few payloads": ({"payload": [1, 2]}, "payload: has shape (2,); expected (4,): edges"),
    "a negative payload": ({"payload": [1, -2, 3, 4]}, "payload[1] is -2; expected 0 or more"),
    "no amount of bytes": (
        {"payload": [1, float("nan"), 3, 4]},
        "payload[1] is nan; expected a whole number of 64 bits",
    ),
    "too many bytes": ({"payload": [1, 2**63, 3, 4]}, "payload[1] is 9.22"),
    "far too many bytes": ({"payload": [1, 2**70, 3, 4]}, f"payload[1] is {2**70}; expected a whole number of 64 bits"),
    "unequal outputs": (
        {"shared": [True] * 4},
        "payload: shared edges of a have 1 and 2 bytes; expected the same: they carry one output",
    ),
    "neither shared nor not": ({"shared": [0, 1, 2, 0]}, "shared[2] is 2; expected true or false, or 1 or 0"),
    "feasible in words": ({"feasible": [["yes", "no"]] * 4}, "feasible: holds <U3; expected truth values"),
    "feasible for each device": (
        {"feasible": [True, False]},
        "feasible: has shape (2,); expected (4, 2): tasks x devices",
    ),
    "a negative duration": (
        {"duration": [[1, 2], [3, 4], [5, -6], [7, 8]]},
        "duration[2, 1] is -6; expected 0 or more",
    ),
    "a duration of half a tick": (
        {"duration": [[1, 2], [3, 4.5], [5, 6], [7, 8]]},
        "duration[1, 1] is 4.5; expected a whole number of 64 bits",
    ),
    "an endless duration": (
        {"duration": [[1, 2], [3, float("inf")], [5, 6], [7, 8]]},
        "duration[1, 1] is inf; expected a whole number of 64 bits",
    ),
    "durations of devices": (
        {"duration": np.ones((2, 4))},
        "duration: has shape (2, 4); expected (4, 2): tasks x devices",
    ),
    "no durations": ({"duration": None}, "duration: has shape (); expected (4, 2): tasks x devices"),
    "ragged durations": (
        {"duration": [[1, 2], [3], [5, 6], [7, 8]]},
        "duration: has rows of different lengths; expected (4, 2): tasks x devices",
    ),
    "a group for each device": ({"group": [0, 1]}, "group: has shape (2,); expected (4,): tasks"),
    "groups by name": ({"group": ["x", "x", "y", "z"]}, "group: holds <U1; expected whole numbers"),
    "a separation from nowhere": (
        {"separation": [(0, 1), (2, 4)]},
        "separation[1] is (2, 4); expected two tasks, each from 0 to 3",
    ),
    "a separation from itself": (
        {"separation": [(0, 1), (2, 2)]},
        "separation[1] separates c from itself; expected two tasks",
    ),
    "a forward task that is nowhere": ({"forward": [0, 1, 2, 4]}, "forward[3] is 4; expected 0 to 3"),
    "a negative forward task": ({"forward": [0, 1, 2, -1]}, "forward[3] is -1; expected 0 to 3"),
    "forward of forward": (
        {"forward": [0, 0, 1, 3]},
        "forward[2] is 1, which has the forward task 0; expected one that is its own",
    ),
    "no denominator": ({"byte_ticks_den": [[1, 0], [1, 1]]}, "byte_ticks_den[0, 1] is 0; expected 1 or more"),
    "no time to spend power in": ({"power_den": [1, 0]}, "power_den[1] is 0; expected 1 or more"),
    "a ratio of large numbers": (
        {"byte_ticks_num": [[0, 2**40], [0, 0]], "byte_ticks_den": [[1, 2**22], [1, 1]]},
        "byte_ticks_num[0, 1] is 1099511627776 and byte_ticks_den[0, 1] is 4194304; expected a product below 2^62",
    ),
    "power of large numbers": (
        {"power_num": [0, 2**61], "power_den": [1, 2]},
        "power_num[1] is 2305843009213693952 and power_den[1] is 2; expected a product below 2^62",
    ),
    "a negative relocation": ({"relocation": [[0, 0]] * 3 + [[0, -1]]}, "relocation[3, 1] is -1; expected 0 or more"),
    "a negative capacity": ({"capacity": [4, -1]}, "capacity[1] is -1; expected 0 or more"),
    "a task twice": (
        {"task_names": ("a", "b", "a", "d")},
        'task_names[2] is "a", and so is task_names[0]; expected each name once',
    ),
    "a device twice": (
        {"device_names": ("cpu", "cpu")},
        'device_names[1] is "cpu", and so is device_names[0]; expected each name once',
    ),
    "a number for a name": ({"task_names": ("a", "b", 3, "d")}, "task_names[2] is 3; expected a name, a text"),
    "a number of tasks": ({"task_names": 4}, "task_names is 4; expected a list of names"),
    "too few types": ({"device_types": ("x",)}, "device_types: 1 names; expected 2"),
    "no contention of ours": (
        {"contention": "ports"},
        "contention is 'ports'; expected none, port, half_duplex; did you mean port?",
    ),
    "no memory model of ours": (
        {"memory_model": "pea"},
        "memory_model is 'pea'; expected sum, peak; did you mean peak?",
    ),
    "a name for an objective": ({"objective": "makespan"}, "objective is a str; expected an Objective"),
    "a tick of no time": ({"resolution": 0}, "resolution is 0; expected a positive number of seconds"),
    **{f"negative {name}": ({name: [0, 0, -3, 0]}, f"{name}[2] is -3; expected 0 or more") for name in TASKS[:-1]},
    **{f"{name} of devices": ({name: [0, 0]}, f"{name}: has shape (2,); expected (4,): tasks") for name in TASKS},
    **{
        f"negative {name}": (
            {name: [[1, 1], [-1, 1]]},
            f"{name}[1, 0] is -1; expected {int(name.endswith('den'))} or more",
        )
        for name in LINKS
    },
    **{
        f"{name} in a row": ({name: [1, 1]}, f"{name}: has shape (2,); expected (2, 2): devices x devices")
        for name in LINKS
    },
}


@pytest.mark.parametrize("what", list(WRONG))
def test_what_is_wrong_is_named_with_its_place(what: str) -> None:
    change, message = WRONG[what]
    with pytest.raises(po.UsageError, match=re.escape(message)):
        diamond(**change)


def test_what_a_task_takes_where_it_may_not_run_is_not_looked_at() -> None:
    feasible = [[True, True], [True, False], [True, True], [True, True]]
    problem = diamond(duration=[[1, 2], [3, float("inf")], [5, 6], [7, 8]], feasible=feasible)
    assert problem.duration.tolist() == [[1, 2], [3, 0], [5, 6], [7, 8]]


@pytest.mark.parametrize("kind", [list, tuple, np.array, iter, set])
def test_pairs_may_come_in_any_collection(kind: Callable[[Any], Any]) -> None:
    pairs = [(0, 1), (0, 2), (1, 3)]
    problem = diamond(edges=kind(pairs), payload=None, separation=kind([(2, 1)]))
    assert sorted(zip(problem.edge_source.tolist(), problem.edge_target.tolist(), strict=True)) == pairs
    assert problem.separation.tolist() == [[1, 2]]


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float32, object, np.bool_])
def test_numbers_may_come_in_any_kind(dtype: Any) -> None:
    problem = diamond(payload=np.ones(4, dtype=dtype))
    assert (problem.payload.dtype, problem.payload.tolist()) == (np.int64, [1, 1, 1, 1])


def test_large_wrong_graphs_are_refused_before_compiled_code_runs() -> None:
    n = 500_000
    edges = np.column_stack((np.arange(n - 1), np.arange(1, n)))
    edges[123_456, 1] = n + 5
    with pytest.raises(po.UsageError, match=re.escape(f"edges[123456] is (123456, {n + 5}); expected two tasks")):
        build_problem(task_names=list(map(str, range(n))), device_names="d", duration=np.ones((n, 1)), edges=edges)


def transferred(edge: Any, start: Any) -> po.Schedule:
    return po.Schedule(np.zeros(4), np.array([0, 1, 4, 9]), po.Transfers(np.array(edge), np.array(start)))


@pytest.mark.parametrize(
    ("device", "message"),
    [
        (["a", "b"], "device: holds <U1; expected whole numbers"),
        ([0, 1.5], "device[1] is 1.5; expected a whole number of 64 bits"),
        ([0, float("nan")], "device[1] is nan; expected a whole number of 64 bits"),
        (np.array([0, 2**63], dtype=np.uint64), f"device[1] is {2**63}; expected a whole number of 64 bits"),
        ([0, 2**70], f"device[1] is {2**70}; expected a whole number of 64 bits"),
        ([[0], [0, 1]], "device: has rows of different lengths; expected an array"),
        (None, "device: holds object; expected whole numbers"),
    ],
)
def test_a_schedule_holds_whole_numbers(device: Any, message: str) -> None:
    with pytest.raises(po.UsageError, match=re.escape(message)):
        po.Schedule(device, [0, 0])  # type: ignore[arg-type]


def placed(device: Any) -> po.Schedule:
    return po.Schedule(np.array(device), np.zeros(np.shape(device)))


DEVICES: dict[str, tuple[Any, str]] = {
    "beyond": ([0, FAR, 0, 0], f"device: task b is on device {FAR}; expected an index from 0 to 1"),
    "negative": ([0, 0, -FAR, 0], f"device: task c is on device -{FAR}; expected an index from 0 to 1"),
    "last from the end": ([0, 0, 0, -1], "device: task d is on device -1; expected an index from 0 to 1"),
    "short": ([0, 0, 0], r"device: has shape \(3,\); expected one device for each of 4 tasks"),
    "long": ([0] * 5, r"device: has shape \(5,\); expected one device for each of 4 tasks"),
    "square": ([[0, 0], [0, 0]], r"device: has shape \(2, 2\); expected one device for each of 4 tasks"),
}
USES: dict[str, Callable[[Problem, Any], Any]] = {
    "simulate": simulate,
    "simulate_noisy": lambda problem, device: simulate_noisy(problem, device, noise=0.1, runs=2, seed=0),
    "retime": lambda problem, device: retime(problem, placed(device)),
    "evaluator": lambda problem, device: make_evaluator(problem)(device),
    "initial": lambda problem, device: po.solve(problem, "annealing", initial=placed(device)),
    **{
        use.__name__: lambda problem, device, use=use: use(problem, placed(device))
        for use in (po.measure, po.evaluate, po.fits, po.lateness, po.device_uses, po.resource_uses, po.plan_document)
    },
}


@pytest.mark.parametrize("contention", ["none", "port"])
@pytest.mark.parametrize("use", list(USES))
@pytest.mark.parametrize("what", list(DEVICES))
def test_devices_that_do_not_exist_are_refused(what: str, use: str, contention: Any) -> None:
    device, message = DEVICES[what]
    with pytest.raises(po.UsageError, match=message):
        USES[use](diamond(contention=contention), device)


@pytest.mark.parametrize("what", list(DEVICES))
def test_the_verifier_says_so_too(what: str) -> None:
    device, _ = DEVICES[what]
    schedule = po.Schedule(np.array(device), np.zeros(np.shape(device)))
    report = po.verify(diamond(), schedule)
    assert not report.feasible
    assert {violation.rule.value for violation in report.violations} >= {"placement"}


@pytest.mark.parametrize("edge", [FAR, -1, -FAR, 4])
def test_transfers_of_no_edge_are_refused(edge: int) -> None:
    problem = diamond(contention="port")
    for use in (retime, po.measure, po.plan_document):
        with pytest.raises(po.UsageError, match=f"transfers: edge {edge} does not exist; expected an index from 0"):
            use(problem, transferred([0, edge], [1, 1]))
    assert not po.verify(problem, transferred([0, edge], [1, 1])).feasible


@pytest.mark.parametrize(
    "wrong", [{"number": [0]}, {"leader": [0, 2]}, {"leader": [0]}, {"recompute": [0, 0, 0]}, {"synchronise": [1]}]
)
def test_stages_of_no_task_or_device_are_refused(wrong: dict[str, Any]) -> None:
    right = {"number": [0] * 4, "leader": [0, 1], "recompute": [0, 0], "synchronise": [0, 0]}
    (name,) = wrong
    with pytest.raises(po.UsageError, match=f"^{name}: (has shape|device 2 does not exist)"):
        po.plan_document(diamond(), po.Schedule([0] * 4, [0] * 4, None, po.Stages(**(right | wrong))))


def test_values_are_combined_by_their_index() -> None:
    index, values = np.array([2, 0, 2]), np.array([[1, 10], [2, 20], [3, 30]])
    assert by_index(np.add, index, values, 3).tolist() == [[2, 20], [0, 0], [4, 40]]
    assert by_index(np.minimum, index, values[:, 0], 3, 7).tolist() == [2, 7, 1]
    assert by_index(np.add, index, 1, 4).tolist() == [1, 0, 2, 0]


def test_an_inverse_permutation_holds_positions() -> None:
    assert inverse(np.array([2, 0, 1])).tolist() == [1, 2, 0]


def test_pairs_become_distinct_sorted_rows() -> None:
    start, other = csr(4, np.array([[2, 1], [0, 3], [2, 0], [2, 1]]))
    assert (start.tolist(), other.tolist()) == ([0, 1, 1, 3, 3], [3, 0, 1])
    assert [each.tolist() for each in csr(2, np.zeros((0, 2), dtype=np.int64))] == [[0, 0, 0], []]
