"""The compiled problem: exact ratios, edges both ways, topological order, device classes, fingerprint."""

from __future__ import annotations

import itertools
from dataclasses import fields, replace
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placeopt import engine
from placeopt.errors import UsageError
from placeopt.model import building
from placeopt.model.building import build_problem, with_changes
from placeopt.model.problem import UNLIMITED, Objective, Problem, Term, ratio_ceil, transfer_ticks


def diamond(**changes: Any) -> Problem:
    """a to b and c, both to d, on two devices; edges in no order."""
    arrays: dict[str, Any] = {
        "task_names": ("a", "b", "c", "d"),
        "device_names": ("cpu", "gpu"),
        "duration": [[1, 2], [3, 4], [5, 6], [7, 8]],
        "edges": [(2, 3), (0, 2), (1, 3), (0, 1)],
        "payload": [23, 2, 13, 1],
        "shared": [True, False, False, True],
    }
    return build_problem(**(arrays | changes))


class TestRatios:
    @settings(deadline=None, max_examples=300)
    @given(st.integers(0, 2**60), st.integers(0, 2**61), st.integers(1, 2**61))
    def test_are_rounded_up_exactly_wherever_the_result_fits(self, amount: int, num: int, den: int) -> None:
        num = num % (2**62 // den)
        exact = ceil(Fraction(amount) * num / den)
        amount = amount if exact < 2**62 else amount * 2**61 // exact
        exact = ceil(Fraction(amount) * num / den)
        found = ratio_ceil(np.array([amount]), np.array([num]), np.array([den]))
        assert (found.dtype, found.tolist()) == (np.int64, [exact])
        assert ratio_ceil(amount, num, den) == exact
        latency = amount % 1000
        transfer = transfer_ticks(np.array([amount]), np.array([latency]), np.array([num]), np.array([den]))
        assert transfer.tolist() == [latency + exact]
        assert transfer_ticks(amount, latency, num, den) == latency + exact

    @pytest.mark.parametrize(
        ("amount", "num", "den", "expected"),
        [(0, 5, 3, 0), (1, 1, 3, 1), (3, 1, 3, 1), (4, 1, 3, 2), (7, 0, 1, 0), (2**60, 1, 1, 2**60),
         (2**60, 1, 2**61, 1), (3_000_000, 1, 12, 250_000), (3_000_001, 1, 12, 250_001),
         (2**60 - 1, 3, 1, 3 * 2**60 - 3)],
    )  # fmt: skip
    def test_by_hand(self, amount: int, num: int, den: int, expected: int) -> None:
        assert ratio_ceil(amount, num, den) == transfer_ticks(amount, 0, num, den) == expected

    def test_transfers_between_devices_elementwise(self) -> None:
        problem = diamond(latency=[[9, 5], [7, 9]], byte_ticks_num=[[1, 1], [2, 1]], byte_ticks_den=[[1, 4], [3, 1]])
        assert problem.latency.tolist() == [[0, 5], [7, 0]]  # none on the diagonal
        assert problem.transfer(10, 0, 1) == 5 + 3
        assert problem.transfer(10, 1, 0) == 7 + 7
        assert problem.transfer(10, 1, 1) == 0
        assert problem.transfer(np.array([0, 4, 5]), np.array([0, 0, 1]), np.array([1, 0, 0])).tolist() == [5, 0, 11]


class TestBuild:
    def test_edges_are_sorted_and_what_belongs_to_them_follows(self) -> None:
        problem = diamond()
        assert problem.edge_source.tolist() == [0, 0, 1, 2]
        assert problem.edge_target.tolist() == [1, 2, 3, 3]
        assert problem.payload.tolist() == [1, 2, 13, 23]
        assert problem.shared.tolist() == [True, False, False, True]
        assert problem.out_start.tolist() == [0, 2, 3, 4, 4]
        assert problem.in_start.tolist() == [0, 0, 1, 2, 4]
        assert problem.in_edge.tolist() == [0, 1, 2, 3]
        assert problem.order.tolist() == [0, 1, 2, 3]
        assert (problem.n_tasks, problem.n_devices, problem.n_edges, problem.n_groups) == (4, 2, 4, 4)

    def test_what_is_left_out_is_free(self) -> None:
        problem = build_problem(task_names=["a"], device_names=["x", "y"], duration=[[1, 2]])  # type: ignore[arg-type]
        assert problem.feasible.tolist() == [[True, True]]
        assert problem.capacity.tolist() == [UNLIMITED, UNLIMITED]
        assert problem.memory.tolist() == [0]
        assert problem.device_types == ("x", "y")
        assert problem.transfer(10**9, 0, 1) == 0
        assert problem.resolution == Fraction(1, 10**9)
        assert problem.objective.single == "makespan"
        assert (problem.contention, problem.memory_model, problem.name) == ("none", "sum", "")
        assert problem.separation.shape == (0, 2)

    def test_nothing_at_all(self) -> None:
        problem = build_problem(task_names=[], device_names=["x"], duration=np.zeros((0, 1), dtype=np.int64))
        assert (problem.n_tasks, problem.n_edges, problem.n_groups) == (0, 0, 0)
        assert problem.order.tolist() == []
        assert problem.group_feasible().shape == (0, 1)
        assert problem.out_start.tolist() == problem.in_start.tolist() == [0]
        assert len(problem.fingerprint()) == 16

    def test_durations_are_zero_where_the_task_may_not_run(self) -> None:
        problem = diamond(feasible=[[True, False], [True, True], [False, True], [True, True]])
        assert problem.duration.tolist() == [[1, 0], [3, 4], [0, 6], [7, 8]]

    def test_groups_are_numbered_by_first_appearance(self) -> None:
        problem = diamond(group=[7, 3, 7, -1], feasible=[[True, False], [True, True], [True, True], [False, True]])
        assert problem.group.tolist() == [0, 1, 0, 2]
        assert problem.n_groups == 3
        assert problem.group_feasible().tolist() == [[True, False], [True, True], [False, True]]

    def test_durations_are_masked_where_a_task_cannot_run(self) -> None:
        problem = build_problem(
            task_names=("a", "b"), device_names=("x", "y", "z"), duration=[[9, 4, 7], [3, 2, 1]],
            feasible=[[True, False, True], [True, True, True]],
        )  # fmt: skip
        assert problem.duration.argmin(axis=1).tolist() == [1, 2]
        found = problem.feasible_duration()
        assert found.argmin(axis=1).tolist() == [2, 2]
        assert found.min(axis=1).tolist() == [7, 1]
        assert found.mean(axis=1).tolist() == [8, 2]
        assert np.shares_memory(found.data, problem.duration)

    def test_separation_has_each_pair_once_the_smaller_first(self) -> None:
        assert diamond(separation=[(3, 1), (1, 3), (0, 2)]).separation.tolist() == [[0, 2], [1, 3]]

    def test_memory_is_everything_a_task_ever_holds(self) -> None:
        problem = diamond(resident=[1, 2, 3, 4], output=[10, 0, 0, 0], scratch=[0, 0, 100, 0])
        assert problem.memory.tolist() == [11, 2, 103, 4]

    def test_arrays_are_copies_and_read_only(self) -> None:
        duration = np.ones((4, 2), dtype=np.int64)
        payload = np.arange(4)
        problem = diamond(duration=duration, payload=payload)
        duration[0, 0] = payload[0] = 99
        assert problem.duration[0, 0] == 1
        assert 99 not in problem.payload
        arrays = [getattr(problem, field.name) for field in fields(problem)]
        arrays = [array for array in arrays if isinstance(array, np.ndarray)]
        assert len(arrays) == 31
        for array in arrays:
            with pytest.raises(ValueError, match=r"read-only$"):
                array[...] = 0

    @pytest.mark.parametrize(
        ("edges", "around"),
        [
            ([(0, 1), (1, 0)], "a -> b -> a"),
            ([(2, 2)], "c -> c"),
            ([(0, 1), (1, 2), (2, 3), (3, 1)], "b -> c -> d -> b"),
        ],
    )
    def test_cycles_are_named(self, edges: list[tuple[int, int]], around: str) -> None:
        with pytest.raises(UsageError, match=f"^the edges contain a cycle: {around}$"):
            diamond(edges=edges, payload=None, shared=None)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    """How many tasks, and edges of a random DAG whose order is not that of the numbers."""
    n = draw(st.integers(1, 12))
    order = draw(st.permutations(range(n)))
    pairs = list(itertools.combinations(order, 2))
    return n, draw(st.lists(st.sampled_from(pairs), unique=True, max_size=30)) if pairs else []


def kahn(n: int, edges: list[tuple[int, int]]) -> list[int]:
    """Kahn's algorithm with a plain queue."""
    waiting = {j: sum(target == j for _, target in edges) for j in range(n)}
    queue = [j for j in range(n) if waiting[j] == 0]
    for i in queue:
        for j in sorted(target for source, target in edges if source == i):
            waiting[j] -= 1
            if waiting[j] == 0:
                queue.append(j)
    return queue


class TestOrder:
    @settings(deadline=None)
    @given(graphs())
    def test_is_kahns(self, graph: tuple[int, list[tuple[int, int]]]) -> None:
        n, edges = graph
        problem = diamond(
            task_names=[str(k) for k in range(n)], duration=np.ones((n, 2)), edges=edges, payload=None, shared=None
        )
        assert problem.order.tolist() == kahn(n, edges)
        place = {task: k for k, task in enumerate(problem.order.tolist())}
        assert all(place[a] < place[b] for a, b in edges)
        assert len(place) == n

    def test_is_the_same_plain_and_compiled_with_and_without_cycles(self) -> None:
        rng = np.random.default_rng(0)
        for cyclic in (False, True):
            n = 200
            pairs = np.unique(np.sort(rng.integers(0, n, (600, 2)), axis=1), axis=0)
            pairs = pairs[pairs[:, 0] != pairs[:, 1]]
            if cyclic:
                pairs = np.vstack([pairs, [[150, 149], [149, 150]]])
            pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
            out_start = np.searchsorted(pairs[:, 0], np.arange(n + 1)).astype(np.int64)
            order = engine.topological_order(out_start, pairs[:, 1].copy()).tolist()
            assert (len(order) == n) is not cyclic
            place = {node: at for at, node in enumerate(order)}
            assert all(place.get(a, n) < at for node, at in place.items() for a, b in pairs.tolist() if b == node)


class TestTables:
    def test_a_changed_problem_shares_the_tables_of_the_first(self) -> None:
        first = build_problem(task_names=["a"], device_names=["d", "e"], duration=[[1, 2]], relocation=[[0, 3]])
        second = with_changes(first, release=[4])
        for name in ("duration", "feasible", "relocation"):
            assert getattr(second, name) is getattr(first, name)

    def test_an_array_that_its_owner_can_change_is_copied(self) -> None:
        ticks = np.array([[1, 2]])
        view = ticks[:]
        view.flags.writeable = False  # and yet `ticks` changes it
        for table in (ticks, view):
            problem = build_problem(task_names=["a"], device_names=["d", "e"], duration=table)
            assert not np.shares_memory(problem.duration, ticks)

    def test_a_shared_table_is_masked_where_tasks_may_not_run(self) -> None:
        ticks = np.array([[1, 2]])
        ticks.flags.writeable = False
        problem = build_problem(task_names=["a"], device_names=["d", "e"], duration=ticks, feasible=[[True, False]])
        assert (problem.duration.tolist(), ticks.tolist()) == ([[1, 0]], [[1, 2]])


class TestDeviceClasses:
    def classes(self, m: int, **changes: Any) -> list[int]:
        problem = build_problem(
            task_names=["a"], device_names=[str(d) for d in range(m)],
            **({"duration": np.ones((1, m), dtype=np.int64)} | changes),
        )  # fmt: skip
        return problem.device_class.tolist()

    def test_by_hand(self) -> None:
        assert self.classes(3) == [0, 0, 0]
        assert self.classes(3, duration=[[1, 2, 1]]) == [0, 1, 0]

    def test_of_large_tables_that_are_compared_in_blocks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A difference in the last row, and one between devices that differ from the first in an earlier block."""
        monkeypatch.setattr(building, "_BLOCK", 10)  # blocks of two rows
        ticks = np.ones((7, 5), dtype=np.int64)
        ticks[2, [1, 3, 4]], ticks[6, 3] = 2, 5
        arrays: dict[str, Any] = {"task_names": [*"abcdefg"], "device_names": [*"vwxyz"], "duration": ticks}
        assert build_problem(**arrays).device_class.tolist() == [0, 1, 0, 2, 1]
        able = np.ones((7, 5), dtype=np.bool_)
        able[5, 0] = False
        assert build_problem(**arrays, feasible=able).device_class.tolist() == [0, 1, 2, 3, 1]
        assert self.classes(3, capacity=[5, 5, 6]) == [0, 0, 1]
        assert self.classes(3, feasible=[[True, False, True]]) == [0, 1, 0]
        assert self.classes(2, feasible=[[True, False]], duration=[[0, 0]]) == [0, 1]  # no time is not no way
        assert self.classes(3, power_num=[1, 1, 2]) == [0, 0, 1]
        assert self.classes(3, power_num=[1, 1, 1], power_den=[1, 2, 1]) == [0, 1, 0]
        assert self.classes(3, power_num=[1, 3, 2], power_den=[2, 6, 4]) == [0, 0, 0]  # the same ratio

    @pytest.mark.parametrize(
        "links", ["latency", "byte_ticks_num", "byte_ticks_den", "byte_energy_num", "byte_energy_den"]
    )
    def test_links_tell_devices_apart(self, links: str) -> None:
        pair = np.array([[1, 5, 2, 2], [5, 1, 2, 2], [2, 2, 1, 5], [2, 2, 5, 1]])

        def classes(values: np.ndarray) -> list[int]:
            return self.classes(len(values), **{links.replace("_den", "_num"): np.ones_like(values), links: values})

        assert classes(pair) == [0, 0, 1, 1]  # within a pair, but not with the other pair
        ring = np.array([[1, 5, 2, 5], [5, 1, 5, 2], [2, 5, 1, 5], [5, 2, 5, 1]])
        assert classes(ring) == [0, 1, 0, 1]  # opposite corners have the same neighbours
        one_way = np.array([[1, 5, 2], [6, 1, 2], [2, 2, 1]])
        assert classes(one_way) == [0, 1, 2]

    def test_the_diagonal_of_links_means_nothing(self) -> None:
        assert self.classes(3, latency=np.diag([1, 2, 3])) == [0, 0, 0]

    @settings(deadline=None)
    @given(st.data())
    def test_are_the_devices_whose_swap_changes_nothing(self, data: st.DataObject) -> None:
        m = data.draw(st.integers(1, 5))
        numbers = st.sampled_from([1, 1, 1, 2])
        cells = st.lists(st.lists(numbers, min_size=m, max_size=m), min_size=m, max_size=m)
        columns = st.lists(numbers, min_size=m, max_size=m)
        problem = build_problem(
            task_names=["a"], device_names=[str(d) for d in range(m)],
            duration=np.array([data.draw(columns)]), capacity=np.array(data.draw(columns)),
            latency=np.array(data.draw(cells)),
            byte_ticks_num=np.ones((m, m), dtype=np.int64), byte_ticks_den=np.array(data.draw(cells)),
        )  # fmt: skip

        def swappable(a: int, b: int) -> bool:
            swapped = np.arange(m)
            swapped[[a, b]] = b, a
            off = ~np.eye(m, dtype=bool)
            return all(
                np.array_equal(array[..., swapped][swapped][off], array[off])
                for array in (problem.latency, problem.byte_ticks_den)
            ) and all(np.array_equal(row[..., swapped], row) for row in (problem.duration, problem.capacity))

        for a, b in itertools.combinations(range(m), 2):
            assert (problem.device_class[a] == problem.device_class[b]) == swappable(a, b)


class TestFingerprint:
    def test_depends_on_nothing_but_what_decides_the_answer(self) -> None:
        problem = diamond()
        assert problem.fingerprint() == diamond().fingerprint()
        assert problem.fingerprint() == diamond(name="x", description="y").fingerprint()
        shuffled = diamond(
            edges=[(0, 1), (0, 2), (1, 3), (2, 3)], payload=[1, 2, 13, 23], shared=[True, False, False, True]
        )
        assert problem.fingerprint() == shuffled.fingerprint()
        assert problem.fingerprint() == diamond(group=[4, 3, 2, 1]).fingerprint()

    def test_is_known(self) -> None:
        """Written into plan files: it may change only with the problem's meaning, or with the format's version."""
        assert diamond().fingerprint() == "874a5a96757ad2a7"

    CHANGES: tuple[dict[str, Any], ...] = (
        {"resolution": Fraction(1)}, {"task_names": ("a", "b", "c", "e")}, {"device_names": ("cpu", "tpu")},
        {"duration": [[1, 2], [3, 4], [5, 6], [7, 9]]}, {"feasible": [[True, True]] * 3 + [[True, False]]},
        {"resident": [1, 0, 0, 0]}, {"output": [1, 0, 0, 0]}, {"scratch": [1, 0, 0, 0]}, {"capacity": [1, 2]},
        {"edges": [(2, 3), (0, 2), (1, 3), (1, 2)]}, {"payload": [23, 2, 13, 0]},
        {"shared": [True, True, False, False]},
        {"latency": [[0, 1], [0, 0]]}, {"byte_ticks_num": [[1, 1], [1, 1]]},
        {"byte_ticks_num": [[1, 1], [1, 1]], "byte_ticks_den": [[1, 2], [1, 1]]},
        {"power_num": [0, 1]}, {"power_num": [0, 1], "power_den": [1, 2]}, {"byte_energy_num": [[0, 1], [0, 0]]},
        {"byte_energy_num": [[0, 1], [0, 0]], "byte_energy_den": [[1, 2], [1, 1]]},
        {"group": [0, 0, 1, 2]}, {"separation": [(1, 2)]},
        {"objective": Objective(((Term("makespan", Fraction(2)),),))}, {"contention": "port"}, {"memory_model": "peak"},
    )  # fmt: skip

    def test_every_change_changes_it(self) -> None:
        found = [diamond().fingerprint(), *(diamond(**change).fingerprint() for change in self.CHANGES)]
        assert len(set(found)) == len(found)
        assert replace(diamond(), device_types=("a", "b")).fingerprint() != diamond().fingerprint()


class TestObjective:
    def test_what_means_nothing_is_refused(self) -> None:
        for levels in ((), ((),), ((Term("makespan"),), ())):
            with pytest.raises(UsageError, match="an objective needs at least one level, and a metric at every level"):
                Objective(levels)
        with pytest.raises(UsageError, match="the weight of makespan is -1; expected a number that is not negative"):
            Term("makespan", Fraction(-1))
        with pytest.raises(UsageError, match=r"metric is 'makespam'; expected .*; did you mean makespan\?"):
            Term("makespam")  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("levels", "text", "metrics", "single"),
        [
            (((Term("makespan"),),), "makespan", ("makespan",), "makespan"),
            (((Term("energy", Fraction(2)),),), "2 energy", ("energy",), None),
            (
                ((Term("makespan"), Term("communication", Fraction(1, 1000))), (Term("energy"), Term("makespan"))),
                "makespan + 0.001 communication, then energy + makespan",
                ("makespan", "communication", "energy"),
                None,
            ),
        ],
    )
    def test_in_words(
        self, levels: tuple[tuple[Term, ...], ...], text: str, metrics: tuple[str, ...], single: str | None
    ) -> None:
        objective = Objective(levels)
        assert (str(objective), objective.metrics, objective.single) == (text, metrics, single)


def test_arrays_in_another_order_are_brought_into_that_of_c() -> None:
    """Compiled code is made for one order: for another it would be made once more."""
    duration, feasible = np.asfortranarray([[1, 2, 3], [4, 5, 6]]), np.asfortranarray([[True, True, False], [True] * 3])
    links = np.asfortranarray(np.arange(9).reshape(3, 3))
    built = build_problem(
        task_names=["a", "b"],
        device_names=["x", "y", "z"],
        duration=duration,
        feasible=feasible,
        latency=links,
        byte_ticks_num=links,
        edges=np.asfortranarray([[0, 1], [1, 0]])[:1],
    )
    tables = {f.name: getattr(built, f.name) for f in fields(built)}
    for name, array in tables.items():
        assert not isinstance(array, np.ndarray) or array.flags.c_contiguous, name
    assert built.duration.tolist() == [[1, 2, 0], [4, 5, 6]]


def test_columns_of_another_problem_become_contiguous() -> None:
    problem = build_problem(task_names="ab", device_names="xyz", duration=np.arange(6).reshape(2, 3))
    arrays = {name: getattr(problem, name)[:, ::2] for name in ("duration", "feasible")}
    made = replace(problem, device_names=("x", "z"), **arrays)
    assert made.duration.tolist() == [[0, 2], [3, 5]]
    assert made.duration.flags.c_contiguous
    assert made.feasible.flags.c_contiguous
