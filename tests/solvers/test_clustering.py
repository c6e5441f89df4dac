"""Clusters as their definitions say, and put on devices with all that must be kept."""

from __future__ import annotations

import ctypes
import itertools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from brute_force import optimum, small_problem
from placeopt_solvers.clustering._clusters import Clustering, ClusterSettings, mean_weights
from placeopt_solvers.clustering.dsc import dominant_sequence_clusters
from placeopt_solvers.clustering.lc import linear_clusters
from placeopt_solvers.clustering.metis import Balance, MetisSettings, group_graph, meant_devices, parts

import placeopt as po
from placeopt.errors import MissingExtraError, UsageError
from placeopt.model.arrays import Int
from placeopt.model.building import build_problem
from placeopt.model.problem import Objective, Problem
from placeopt.model.schedule import makespan
from placeopt.protocol import Answer, Options, Termination
from placeopt.protocol.registry import find_solver

NAMES = ("dsc", "lc", "metis")
CLUSTERINGS: tuple[Callable[[Problem], Clustering], ...] = (dominant_sequence_clusters, linear_clusters)


def problem(durations: list[int], edges: dict[tuple[int, int], int], devices: int = 2, **rest: Any) -> Problem:
    """Like devices; a byte takes a tick between two of them. Edges with their payloads."""
    n = len(durations)
    values: dict[str, Any] = {
        "duration": np.repeat(np.array(durations).reshape(n, 1), devices, axis=1),
        "byte_ticks_num": np.ones((devices, devices), dtype=np.int64),
    }
    return build_problem(
        task_names=[f"t{i}" for i in range(n)],
        device_names=[f"d{d}" for d in range(devices)],
        edges=list(edges),
        payload=list(edges.values()),
        **values | rest,
    )


def random_problem(seed: int, tasks: int = 20, devices: int = 3, **rest: Any) -> Problem:
    rng = np.random.default_rng(seed)
    n, density = int(rng.integers(1, tasks + 1)), rng.choice([0.1, 0.2, 0.4])
    edges = {(a, b): int(rng.integers(0, 9)) for b in range(n) for a in range(b) if rng.random() < density}
    return problem(rng.integers(0, 9, n).tolist(), edges, devices, **rest)


def answer(case: Problem, name: str, seed: int = 0, **settings: Any) -> Answer:
    if name == "metis":
        pytest.importorskip("pymetis")
    solver = find_solver(name)
    return solver.solve(case, Options(seed=seed), solver.settings_type(**settings))


def placed(case: Problem, name: str, **settings: Any) -> list[int]:
    found = answer(case, name, **settings)
    assert found.schedule is not None, found.message
    return found.schedule.device.tolist()


def members(cluster: Int) -> list[list[int]]:
    return [np.flatnonzero(cluster == c).tolist() for c in range(int(cluster.max(initial=-1)) + 1)]


def parallel_time(case: Problem, clustering: Clustering) -> float:
    """Ticks until all is done with a device for each cluster."""
    return float((clustering.start + mean_weights(case)[0]).max()) / 1000


class TestDsc:
    def test_the_reduction_warranty_keeps_a_cluster_free(self) -> None:
        """Worked by hand. Tasks a 1, x 11, b 1, y 10; edges a -> x 1, a -> y 10, b -> y 1.

        Bottom levels: y 10, b 12, x 11, a 1 + 10 + 10 = 21. Examined:
        a  priority 21, of its own: 0-1. x is free with 2 + 11 = 13, y partially free with 11 + 10 = 21, b free: 12.
        x  13 before b's 12; could start at 1 behind a instead of 2. But y has 21, and behind a it could start at 1
           instead of 11, so nothing may join a: x has a cluster of its own, 2-13.
        b  of its own, 0-1. y is free: 11 from a, 2 from b.
        y  joins a at max(1, 2) = 2, ends at 12.
        Together 13; without the warranty x runs at 1-12 behind a, and y at 11-21 elsewhere.
        """
        case = problem([1, 11, 1, 10], {(0, 1): 1, (0, 3): 10, (2, 3): 1})
        found = dominant_sequence_clusters(case)
        assert members(found.cluster) == [[0, 3], [1], [2]]
        assert (found.start / 1000).tolist() == [0, 2, 0, 2]
        assert parallel_time(case, found) == 13

    def test_a_join_worked_by_hand(self) -> None:
        """Three tasks of 2, 3 and 4 that send 7, 6 and 1 to the last one, 1 long.

        Arrivals 9, 9 and 5. Behind the first (of equal ones by index) at 2 it would wait for 9; with the second in
        front of it at 2-5 it waits for 5 from the third, whose end there would be 9: it stays. The join runs at 5-6.
        """
        case = problem([2, 3, 4, 1], {(0, 3): 7, (1, 3): 6, (2, 3): 1})
        found = dominant_sequence_clusters(case)
        assert members(found.cluster) == [[0, 1, 3], [2]]
        assert (found.start / 1000).tolist() == [0, 2, 0, 5]

    @pytest.mark.parametrize("seed", range(40))
    def test_forks_and_joins_are_optimal(self, seed: int) -> None:
        """Yang and Gerasoulis 1994 prove that DSC is optimal for fork and join graphs."""
        rng = np.random.default_rng(seed)
        k = int(rng.integers(1, 8))
        work, sent = rng.integers(1, 9, k).tolist(), rng.integers(0, 12, k).tolist()
        best = min(
            max([sum(w for i, w in enumerate(work) if chosen >> i & 1)]
                + [work[i] + sent[i] for i in range(k) if not chosen >> i & 1])
            for chosen in range(2**k)
        )  # fmt: skip
        fork = problem([3, *work], {(0, i + 1): sent[i] for i in range(k)})
        assert parallel_time(fork, dominant_sequence_clusters(fork)) == 3 + best
        join = problem([*work, 3], {(i, k): sent[i] for i in range(k)})
        assert parallel_time(join, dominant_sequence_clusters(join)) == 3 + best

    @pytest.mark.parametrize("seed", range(60))
    def test_a_literal_reading_gives_the_same(self, seed: int) -> None:
        case = random_problem(seed)
        found = dominant_sequence_clusters(case)
        cluster, start = literal_dsc(case)
        assert found.cluster.tolist() == cluster
        assert found.start.tolist() == start

    @pytest.mark.parametrize("seed", range(30))
    def test_it_is_a_schedule_no_longer_than_without_clusters(self, seed: int) -> None:
        case = random_problem(seed)
        found, (work, transfer) = dominant_sequence_clusters(case), mean_weights(case)
        end = found.start + work
        for (a, b), c in zip(zip(case.edge_source, case.edge_target, strict=True), transfer, strict=True):
            assert found.start[b] >= end[a] + (0 if found.cluster[a] == found.cluster[b] else c)
        for tasks in members(found.cluster):
            assert tasks, "clusters without tasks are gone"
            in_turn = sorted(tasks, key=lambda i: (found.start[i], end[i]))
            assert all(end[a] <= found.start[b] for a, b in itertools.pairwise(in_turn))
        apart = linear_ways(case, dict.fromkeys(range(case.n_tasks)))
        assert parallel_time(case, found) <= max(apart.values(), default=0) / 1000


def literal_dsc(case: Problem) -> tuple[list[int], list[int]]:
    """DSC as the module tells it, with lists instead of heaps and every producer looked at every time."""
    work, transfer = (weights.tolist() for weights in mean_weights(case))
    n = case.n_tasks
    sent = dict(zip(zip(case.edge_source.tolist(), case.edge_target.tolist(), strict=True), transfer, strict=True))
    producers = {j: [a for a, b in sent if b == j] for j in range(n)}
    consumers = {i: [b for a, b in sent if a == i] for i in range(n)}
    blevel: dict[int, int] = {}
    for i in reversed(case.order.tolist()):
        blevel[i] = work[i] + max((sent[i, j] + blevel[j] for j in consumers[i]), default=0)
    cluster: dict[int, int] = {}
    start: dict[int, int] = {}
    tail: dict[int, int] = {}

    def arrivals(j: int, but: int | None = None) -> list[tuple[int, int]]:
        """Arrival and producer of all data that is on its way to j from other clusters than `but`."""
        return [(start[p] + work[p] + sent[p, j], p) for p in producers[j] if p in cluster and cluster[p] != but]

    def tlevel(j: int) -> int:
        return max((arrival for arrival, _ in arrivals(j)), default=0)

    def dominant(j: int) -> int | None:
        """The cluster whose data comes last; of equal ones that examined first."""
        latest = [p for arrival, p in arrivals(j) if arrival == tlevel(j)]
        return cluster[min(latest, key=examined.index)] if latest else None

    def appended(j: int, c: int) -> int:
        return max([tail[c], *(arrival for arrival, _ in arrivals(j, c))])

    examined: list[int] = []
    for made in range(n):
        free = [i for i in range(n) if i not in cluster and all(p in cluster for p in producers[i])]
        partial = [
            i for i in range(n) if i not in cluster and i not in free and any(p in cluster for p in producers[i])
        ]
        x = min(free, key=lambda i: (-tlevel(i) - blevel[i], i))
        barred = None
        if partial:
            y = min(partial, key=lambda i: (-tlevel(i) - blevel[i], i))
            c = dominant(y)
            if tlevel(y) + blevel[y] > tlevel(x) + blevel[x] and c is not None and appended(y, c) < tlevel(y):
                barred = c
        c, best = dominant(x), tlevel(x)
        chosen = made
        if c is not None and c != barred:
            pulled: list[tuple[int, int]] = []
            end = tail[c]
            others = sorted(arrivals(x, c), key=lambda each: (-each[0], each[1]))
            while others:
                arrival, p = others[0]
                alone = [q for q in cluster if cluster[q] == cluster[p]] == [p] and consumers[p] == [x]
                begin = max([end, *(there for there, _ in arrivals(p, c))])
                if not alone or begin + work[p] >= max(end, arrival):
                    break
                pulled.append((p, begin))
                end = begin + work[p]
                others = others[1:]
            begin = max([end, *(arrival for arrival, _ in others)])
            if begin < best:
                chosen, best = c, begin
                for p, moved in pulled:
                    cluster[p], start[p] = c, moved
        cluster[x], start[x] = chosen, best
        tail[chosen] = best + work[x]
        examined.append(x)
    numbers = {c: k for k, c in enumerate(sorted(set(cluster.values())))}
    return [numbers[cluster[i]] for i in range(n)], [start[i] for i in range(n)]


def linear_ways(case: Problem, left: dict[int, None]) -> dict[int, int]:
    """The longest way from each of the tasks left to the end, in parts of a tick."""
    work, transfer = mean_weights(case)
    ways: dict[int, int] = {}
    for i in reversed(case.order.tolist()):
        if i in left:
            edges = range(case.out_start[i], case.out_start[i + 1])
            ahead = [int(transfer[k]) + ways[int(case.edge_target[k])] for k in edges if case.edge_target[k] in ways]
            ways[i] = int(work[i]) + max(ahead, default=0)
    return ways


class TestLc:
    def test_paths_worked_by_hand(self) -> None:
        """Tasks 1 to 5 with durations 2, 3, 3, 4, 1; 1 -> 2 -> 4 with 4 and 1, 1 -> 3 -> 5 with 1 and 1.

        Ways: 4 alone 4, 2: 3 + 1 + 4 = 8, 1: 2 + 4 + 8 = 14; 5 alone 1, 3: 3 + 1 + 1 = 5. First 1, 2, 4, then 3, 5.
        The edge 1 -> 3 lies across, so 3 starts at 2 + 1 = 3 and 5 at 6; 2 starts at 2, 4 at 5.
        """
        case = problem([2, 3, 3, 4, 1], {(0, 1): 4, (1, 3): 1, (0, 2): 1, (2, 4): 1})
        found = linear_clusters(case)
        assert members(found.cluster) == [[0, 1, 3], [2, 4]]
        assert (found.start / 1000).tolist() == [0, 2, 3, 5, 6]

    @pytest.mark.parametrize("seed", range(60))
    def test_each_is_a_longest_path_of_what_is_left(self, seed: int) -> None:
        case = random_problem(seed)
        transfer = mean_weights(case)[1]
        left = dict.fromkeys(range(case.n_tasks))
        producers: dict[int, list[int]] = {i: [] for i in left}
        for a, b in zip(case.edge_source.tolist(), case.edge_target.tolist(), strict=True):
            producers[b].append(a)
        expected: list[list[int]] = []
        while left:
            ways = linear_ways(case, left)
            roots = [i for i in left if not any(a in left for a in producers[i])]
            i: int | None = min(roots, key=lambda task: (-ways[task], task))
            path = []
            while i is not None:
                path.append(i)
                ahead = [
                    (-int(transfer[k]) - ways[int(case.edge_target[k])], int(case.edge_target[k]))
                    for k in range(case.out_start[i], case.out_start[i + 1])
                    if case.edge_target[k] in ways
                ]
                i = min(ahead)[1] if ahead else None
            expected.append(sorted(path))
            for i in path:
                del left[i]
        assert members(linear_clusters(case).cluster) == expected


class TestMapping:
    # Three clusters: a task of 9, a chain of 1 + 2, a chain of 2 + 3. LC makes the first, the third, then the second.
    CHAINS = ([9, 1, 2, 2, 3], {(1, 2): 0, (3, 4): 0})

    def test_glb_takes_the_clusters_as_they_start_to_the_least_loaded(self) -> None:
        """All start at 0, so they go as they were made: 9 to d0, 2 + 3 and then 1 + 2 to d1."""
        assert placed(problem(*self.CHAINS), "lc") == [0, 1, 1, 1, 1]

    def test_glb_order_is_that_of_starts(self) -> None:
        # A chain of 1 + 3 + 6, then 5 and 3 alone: made in this order, and all start at 0.
        case = problem([1, 6, 3, 5], {(0, 1): 3})
        assert members(linear_clusters(case).cluster) == [[0, 1], [3], [2]]
        assert placed(case, "lc") == [0, 0, 1, 1]
        # A second consumer, of 6, starts at 1 + 2 = 3: it was made second and comes last. By then d1 has 5 + 3, so it
        # joins the 7 on d0; coming second it would have had d1 for itself.
        case = problem([1, 6, 6, 5, 3], {(0, 1): 3, (0, 2): 2})
        assert members(linear_clusters(case).cluster) == [[0, 1], [2], [3], [4]]
        assert placed(case, "lc", mapping="glb") == [0, 0, 0, 1, 1]
        assert placed(case, "lc", mapping="wrap") == [0, 0, 1, 0, 1]

    def test_wrap_takes_them_in_turn(self) -> None:
        assert placed(problem(*self.CHAINS), "lc", mapping="wrap") == [0, 0, 0, 1, 1]
        assert placed(problem(*self.CHAINS, devices=3), "lc", mapping="wrap") == [0, 2, 2, 1, 1]

    def test_a_device_too_small_is_passed_over(self) -> None:
        sizes, room = np.array([4, 1, 1, 1, 1]), np.array([3, 9])
        assert placed(problem(*self.CHAINS, resident=sizes, capacity=room), "lc") == [1, 1, 1, 0, 0]
        assert placed(problem(*self.CHAINS, resident=sizes, capacity=room), "lc", mapping="wrap") == [1, 0, 0, 1, 1]

    @pytest.mark.parametrize("name", ["dsc", "lc"])
    def test_a_cluster_larger_than_every_device_is_split_and_told(self, name: str) -> None:
        case = problem(
            [2, 2, 2, 2], {(0, 1): 9, (1, 2): 9, (2, 3): 9}, resident=np.full(4, 3), capacity=np.array([7, 7])
        )
        found = answer(case, name)
        assert found.schedule is not None
        assert found.schedule.device.tolist() == [0, 0, 1, 1], "cut once, not at every task"
        assert found.stats == {"clusters": 1, "split": 1}
        assert found.clusters is not None
        assert found.clusters.tolist() == [0, 0, 1, 1], "the parts count"
        assert found.message == "a cluster was split because no device could take the whole cluster"

    def test_separation_and_feasibility_split_clusters(self) -> None:
        chain = ([2, 2, 2], {(0, 1): 9, (1, 2): 9})
        assert placed(problem(*chain, separation=[(0, 2)]), "dsc") == [0, 0, 1]
        allowed = np.array([[True, False], [True, True], [False, True]])
        assert placed(problem(*chain, feasible=allowed), "dsc")[::2] == [0, 1]

    def test_a_group_belongs_to_the_cluster_of_its_first_task(self) -> None:
        case = problem([9, 9, 1, 1], {(0, 2): 5, (1, 3): 5}, group=np.array([0, 1, 2, 0]))
        assert members(linear_clusters(case).cluster) == [[0, 2], [1, 3]]
        assert placed(case, "lc") == [0, 1, 0, 0]

    def test_unlike_devices_are_loaded_in_their_own_ticks(self) -> None:
        """Two tasks, each 2 on d0 and 8 on d1: the second ends at 4 behind the first, so d0 takes both."""
        case = problem([0, 0], {}, duration=np.array([[2, 8], [2, 8]]))
        assert placed(case, "lc") == [0, 0]

    def test_tasks_on_a_device_run_by_bottom_level(self) -> None:
        # On one device: the task with most behind it first, whatever its index.
        case = problem([1, 1, 7], {(1, 2): 3}, devices=1)
        found = answer(case, "dsc")
        assert found.schedule is not None
        assert found.schedule.start.tolist() == [8, 0, 1]

    def test_settings_are_checked(self) -> None:
        with pytest.raises(UsageError, match="mapping"):
            po.solve(problem([1], {}), "dsc", mapping="roundabout")
        assert ClusterSettings().mapping == "glb"


class TestMetis:
    @pytest.fixture(autouse=True)
    def _installed(self) -> None:
        pytest.importorskip("pymetis")

    def test_two_cliques_come_apart(self) -> None:
        """Two chains with heavy edges, a light edge between: the cut is the light one, and the shares are equal."""
        edges = {(i, i + 1): 50 for i in range(7)} | {(3, 4): 1}
        device = placed(problem([5] * 8, edges), "metis")
        assert len(set(device[:4])) == len(set(device[4:])) == 1
        assert device[0] != device[4]

    def test_groups_are_one_vertex_and_parallel_edges_one_edge(self) -> None:
        case = problem([1] * 4, {(0, 2): 4, (1, 3): 8, (0, 3): 4, (2, 3): 99}, group=np.array([0, 0, 1, 1]))
        graph = group_graph(case, "duration")
        assert graph.starts.tolist() == [0, 1, 2]
        assert graph.neighbours.tolist() == [1, 0]
        assert graph.weight.tolist() == [2**29] * 2
        assert graph.size.tolist() == [2**29] * 2

    @pytest.mark.parametrize("balance", ["duration", "memory", "both"])
    def test_shares_follow_devices(self, balance: Balance) -> None:
        """d0 is three times as fast and has three times the memory: about three quarters go there."""
        n = 200
        case = problem(
            [0] * n, {(i, i + 1): 1 for i in range(n - 1)}, duration=np.tile([10, 30], (n, 1)),
            resident=np.full(n, 100), capacity=np.array([15_100, 5_100]),
        )  # fmt: skip
        wanted = meant_devices(case, group_graph(case, balance), balance, 0)
        assert 140 <= int((wanted == 0).sum()) <= 155
        assert answer(case, "metis", balance=balance).termination is Termination.COMPLETED

    def test_what_does_not_fit_moves_to_its_neighbours(self) -> None:
        """All are meant for d0 with room for two: the largest stay, the third follows its edges to d2."""
        case = problem([1, 1, 1, 1], {(0, 3): 1, (1, 2): 9, (2, 3): 50}, devices=3,
                       resident=np.array([3, 3, 2, 2]), capacity=np.array([6, 9, 9]),
                       feasible=np.array([[1, 0, 0], [1, 1, 1], [1, 1, 1], [0, 0, 1]], dtype=np.bool_))  # fmt: skip
        assert placed(case, "metis")[0] == 0
        assert placed(case, "metis")[3] == 2

    @pytest.mark.parametrize("k", [2, 3, 7, 9, 12])
    def test_parts_have_their_shares(self, k: int) -> None:
        share = np.arange(k, dtype=np.float64) + 3
        share /= share.sum()
        graph = group_graph(random_problem(8, tasks=1000, devices=2), "duration")
        found = np.bincount(parts(graph, share, 1), weights=graph.size, minlength=k) / graph.size.sum()
        assert found == pytest.approx(share, abs=0.03)

    @pytest.mark.parametrize("k", [2, 5, 12])
    def test_metis_has_nothing_to_complain_of(self, k: int, capfd: pytest.CaptureFixture[str]) -> None:
        """It writes to the standard output when it has nothing left to halve, which would spoil what we print."""
        libc = ctypes.CDLL(None)
        for seed in range(40):
            case = random_problem(seed, tasks=15, devices=k)
            share = np.random.default_rng(seed).random(k) ** 6
            found = parts(group_graph(case, "duration"), share / share.sum(), seed)
            assert ((found >= 0) & (found < k)).all()
        libc.fflush(None)
        assert capfd.readouterr() == ("", "")

    def test_the_seed_decides(self) -> None:
        case = random_problem(5, tasks=60, devices=4)
        assert placed(case, "metis") == placed(case, "metis")
        assert answer(case, "metis", seed=2**40).termination is Termination.COMPLETED

    def test_without_pymetis_it_says_what_to_do(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pymetis", None)
        with pytest.raises(MissingExtraError, match=r"pip install 'placeopt\[metis\]'"):
            po.solve(problem([1, 1], {}), "metis")

    def test_nothing_to_balance_is_balanced_by_number(self) -> None:
        device = placed(problem([0] * 6, {}), "metis")
        assert sorted(device) == [0, 0, 0, 1, 1, 1]
        assert MetisSettings().balance == "duration"


@pytest.mark.parametrize("name", NAMES)
class TestAll:
    @pytest.mark.parametrize("seed", range(25))
    def test_small_problems_are_kept_to_and_not_beaten(self, name: str, seed: int) -> None:
        if name == "metis":
            pytest.importorskip("pymetis")
        case = small_problem(np.random.default_rng(seed), Objective(), times=seed % 2 == 1)
        best = optimum(case)
        result = po.solve(case, name)
        if result.schedule is None:
            assert result.message
            return
        assert all(found.rule == "deadline" for found in result.violations)
        if result.feasible:
            assert best is not None
            assert result.objective is not None
            assert result.objective >= best[0][0]

    def test_full_devices_are_repaired_or_told(self, name: str) -> None:
        sizes = np.array([4, 4, 3, 3, 2, 2])
        case = problem([1] * 6, {(0, 1): 1, (1, 2): 1}, resident=sizes, capacity=np.array([9, 9]))
        found = answer(case, name)
        assert found.schedule is not None
        assert np.bincount(found.schedule.device, weights=sizes).tolist() == [9, 9]
        found = answer(problem([1] * 3, {}, resident=np.array([5, 5, 5]), capacity=np.array([9, 9])), name)
        assert found.termination is Termination.FAILED
        assert "which takes 5 B: it would need 1 B more on d0, 1 B more on d1" in found.message

    def test_a_long_chain_stays_together(self, name: str) -> None:
        case = problem([1] * 30, {(i, i + 1): 100 for i in range(29)})
        found = answer(case, name)
        assert found.schedule is not None
        assert makespan(case, found.schedule) <= 30 + 100 * (name == "metis")
