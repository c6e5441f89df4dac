"""
Loops in C++ over the arrays of a problem. They can be stopped, and run without Python's lock.
"""

from collections.abc import Callable
from typing import Annotated

import numpy
import numpy.typing
from numpy.typing import NDArray


class StoppedError(Exception):
    pass

class Stop:
    """
    Whether loops must end: at a signal, once `should_stop` is true, or after `seconds`.
    """

    def __init__(self, should_stop: Callable[[], bool] | None = None, seconds: float | None = None) -> None: ...

class Problem:
    """The checked arrays of a problem; they must not change while it exists."""

    def __init__(self, problem: object) -> None:
        """
        Check the arrays; raises a UsageError that names the first wrong one. `model.native` keeps the result.
        """

    @property
    def n(self) -> int:
        """Number of tasks."""

    @property
    def m(self) -> int:
        """Number of devices."""

class Timeline:
    """
    A schedule under construction.

    Tasks are placed in a topological order. Each starts as early as its data, its device and, under port contention, the
    ports allow. With `insertion` it may use a gap between other tasks. The first task of a colocation group decides for the
    group, whose memory is reserved at once. With `record`, placements can be taken back. Arrays are read-only views.
    """

    def __init__(self, problem: Problem, groups: object, insertion: bool = True, record: bool = False) -> None: ...

    @property
    def home(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(g,) device of each group, -1 for groups without a home."""

    @property
    def room(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """
        (m,) bytes left on each device; under live memory beyond resident ones.
        """

    @property
    def left(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(b,) what is left of each budget."""

    @property
    def device(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) device of each task, -1 before it is placed."""

    @property
    def start(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) start of each placed task."""

    @property
    def end(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) end of each placed task."""

    @property
    def free(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(m,) end of the last task of each device."""

    @property
    def closed(self) -> numpy.typing.NDArray[numpy.int64]:
        """The devices that were closed, for heuristics that close devices."""

    @property
    def moves(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """
        (e,) start of each edge's transfer, -1 without a separate one; empty without port contention.
        """

    @property
    def trees(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """
        (m, 2 leaves) the profile of each device under live memory, otherwise empty.
        """

    @property
    def placed(self) -> int:
        """Number of placements that can be taken back: a mark for `resume`."""

    def usage(self, resource: int) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64]]:
        """
        Return the ticks (k,) from which another amount of a renewable resource is in use, and these amounts.
        """

    def can_run(self, task: int, device: int) -> bool:
        """
        Return whether a device can take a task: by its memory and its group, and apart from others.
        """

    def earliest(self, task: int, device: int) -> int:
        """Return the earliest start of a task whose producers are placed."""

    def place(self, task: int, device: int) -> int:
        """Place a task at its earliest start, and return that."""

    def resume(self, placed: int) -> None:
        """Take back placements, the latest first, until so many are left."""

def insert_tasks(timeline: Timeline, sequence: numpy.typing.NDArray[numpy.int64], row: numpy.typing.NDArray[numpy.int64], ticks: numpy.typing.NDArray[numpy.int64], stop: Stop) -> int:
    """
    Place the tasks in turn where they end first, plus ticks[row[task], device]; return -1 or the task that no device can take.
    """

def list_tasks(timeline: Timeline, sequence: numpy.typing.NDArray[numpy.int64], measure: int, stop: Stop) -> int:
    """
    Place the tasks in turn on the device with the least measure: 0 their end, 1 their duration, 2 the end of the tasks there, 3 its index; return -1 or the task that no device can take.
    """

def fill_devices(timeline: Timeline, sequence: numpy.typing.NDArray[numpy.int64], weight: numpy.typing.NDArray[numpy.int64], share: numpy.typing.NDArray[numpy.int64], stop: Stop) -> int:
    """
    Append the tasks in turn to the first device until it is full or holds its share (m,) of the weight (g,) of groups, then to the next; return -1 or the task that no device can take.
    """

def look_ahead(timeline: Timeline, sequence: numpy.typing.NDArray[numpy.int64], stop: Stop) -> int:
    """
    Place the tasks in turn where the last of their consumers ends first; return -1 or the task that no device can take.
    """

def fill_in_order(timeline: Timeline, sequence: numpy.typing.NDArray[numpy.int64], overfill: bool, stop: Stop) -> int:
    """
    Append the tasks in turn by Celeritas's Order-Place; the rest is as for `adjust_in_order`.
    """

def adjust_in_order(timeline: Timeline, sequence: numpy.typing.NDArray[numpy.int64], overfill: bool, stop: Stop) -> int:
    """
    Place the tasks in turn by Celeritas's Adjusting Placement; return -1 or the task that no device can take. With `overfill`, it goes to the device with the most memory left.
    """

def balance_batches(timeline: Timeline, sequence: numpy.typing.NDArray[numpy.int64], bounds: numpy.typing.NDArray[numpy.int64], stop: Stop) -> int:
    """
    Place batches of independent tasks in turn, each balanced over the devices; return -1 or the task that no device can take.
    """

def longest_paths(problem: Problem, work: numpy.typing.NDArray[numpy.float64], transfer: numpy.typing.NDArray[numpy.float64], backwards: bool, before: numpy.typing.NDArray[numpy.float64] | None = None) -> numpy.typing.NDArray[numpy.float64]:
    """
    Return the longest path (n,) that ends just before each task, at least `before` (n,), over work (n,) and transfer (e,); with `backwards` the longest path that begins just after it.
    """

def tied_depths(problem: Problem, rank: numpy.typing.NDArray[numpy.float64]) -> numpy.typing.NDArray[numpy.int64]:
    """
    Return the most tasks (n,) of equal rank (n,) that precede each task on a path of such tasks.
    """

def highest_first(problem: Problem, preference: numpy.typing.NDArray[numpy.int64]) -> numpy.typing.NDArray[numpy.int64]:
    """
    Return the tasks (n,) in the order in which the ready task that comes first in `preference` (n,) comes next.
    """

def optimistic_costs(problem: Problem, feasible: numpy.typing.NDArray[numpy.bool_], transfer: numpy.typing.NDArray[numpy.int64], stop: Stop) -> numpy.typing.NDArray[numpy.int64]:
    """
    Return the optimistic cost table (n, m) of PEFT in ticks, for the mean ticks (e,) of each edge.
    """

def longest_path(problem: Problem, first: int, behind: numpy.typing.NDArray[numpy.float64]) -> numpy.typing.NDArray[numpy.int64]:
    """
    Return the tasks of the path from `first` along the out-edges with the largest `behind` (e,).
    """

def place_pairs(timeline: Timeline, sequence: numpy.typing.NDArray[numpy.int64], work: numpy.typing.NDArray[numpy.int64], batches: bool, closing: bool, stop: Stop) -> int:
    """
    Place the pair of a ready task and a device with the least start plus work (n, m), until none is left; ties go by `sequence` (n,), then by device. With `batches`, all ready tasks come before those that become ready meanwhile; with `closing`, a device without room for a task that is chosen for it takes no further groups. Return -1 or the first ready task that no device can take.
    """

def place_neediest(timeline: Timeline, by_gap: bool, batches: bool, stop: Stop) -> int:
    """
    Place the ready task with the latest earliest end, or with the widest gap to the second, where it ends first; return -1 or the first ready task that no device can take.
    """

def place_favourites(timeline: Timeline, sequence: numpy.typing.NDArray[numpy.int64], work: numpy.typing.NDArray[numpy.int64], parent: numpy.typing.NDArray[numpy.int64], urgent_first: bool, closing: bool, stop: Stop) -> int:
    """
    Place all tasks as m-SCT, with the favourite parent (n,) of each task, -1 for none; the rest is as for `place_pairs`.
    """

def place_by_clock(timeline: Timeline, sequence: numpy.typing.NDArray[numpy.int64], child: numpy.typing.NDArray[numpy.int64], closing: bool, stop: Stop) -> int:
    """
    Place all tasks as Baechi's released m-SCT, with the favourite child (n,) of each task, -1 for none; the rest is as for `place_pairs`.
    """

def place_by_level(timeline: Timeline, median: numpy.typing.NDArray[numpy.int64], level: numpy.typing.NDArray[numpy.int64], heaviest: numpy.typing.NDArray[numpy.int64], stop: Stop) -> int:
    """
    Place all tasks as GDL, with the median duration (n,), the static level (n,) and the out-edge with most data (n,) of each task, -1 for exits; return -1 or the task that no device can take.
    """

def place_on_two(timeline: Timeline, sequence: numpy.typing.NDArray[numpy.int64], detour: numpy.typing.NDArray[numpy.int64], stop: Stop) -> int:
    """
    Place the tasks in turn as FCP; a device counts as idle later by detour (n, m). Return -1 or the task with the lowest index that no device can take.
    """

def place_by_type(timeline: Timeline, sequence: numpy.typing.NDArray[numpy.int64], detour: numpy.typing.NDArray[numpy.int64], stop: Stop) -> int:
    """
    Place all tasks as FLB; a start counts as later by detour (n, m), and ties go by `sequence` (n,). Return -1 or the first ready task that no device can take.
    """

def draw_pairs(timeline: Timeline, chance: numpy.typing.NDArray[numpy.float64], alpha: float, stop: Stop) -> int:
    """
    Place all tasks as WBA, with a random number (n,) for each step and the share alpha of the range of increases; return -1 or the task that no device can take.
    """

def fixed_levels(timeline: Timeline, median: numpy.typing.NDArray[numpy.int64], level: numpy.typing.NDArray[numpy.int64], heaviest: numpy.typing.NDArray[numpy.int64], stop: Stop) -> numpy.typing.NDArray[numpy.int64]:
    """
    Return the part (n, m) of GDL's levels that never changes; the arguments are those of `place_by_level`.
    """

def imaginary_levels(timeline: Timeline, stop: Stop) -> numpy.typing.NDArray[numpy.int64]:
    """Return the best imaginary levels (n, m) of BIL in ticks."""

def place_by_imaginary_level(timeline: Timeline, stop: Stop) -> int:
    """Place all tasks as BIL; return -1 or the task that no device can take."""

def make_room(timeline: Timeline, fixed: numpy.typing.NDArray[numpy.int64], group: int, stop: Stop) -> bool:
    """
    Assign a group, for which no device has room by live memory, to one after evictions of groups without a home in `fixed` (g,); return False if none can take it.
    """

def pack_groups(timeline: Timeline, fixed: numpy.typing.NDArray[numpy.int64], turn: numpy.typing.NDArray[numpy.int64], stay: bool, stop: Stop) -> int:
    """
    Assign the groups in turn to the device with the most room by live memory, or `stay` on the last one while it has room; evictions are those of `make_room`. Return -1 or the group that no device can take.
    """

def missing_bytes(timeline: Timeline, group: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    Return the bytes (m,) that each device lacks for a group without a home, by live memory.
    """

def append_with_waits(timeline: Timeline, output: numpy.typing.NDArray[numpy.int64], scratch: numpy.typing.NDArray[numpy.int64], room: numpy.typing.NDArray[numpy.int64], device: numpy.typing.NDArray[numpy.int64], sequence: numpy.typing.NDArray[numpy.int64], stop: Stop) -> tuple[int, int]:
    """
    Append all tasks in a topological sequence (n,) on their device (n,), each as soon as the device has the memory for it: `output` and `scratch` (n,) of `room` (m,) bytes. Return -1 or the first task that finds no memory, and the number of tasks that waited.
    """

class Chronological:
    """
    A search that appends tasks to identical devices by their starts.

    placeopt_solvers.exact._chronological has the rules. The targets of the edges out of task i are target[start[i]:start[i + 1]], and
    `transfer` are their ticks between two devices. At most 64 tasks. It remembers up to `states` refuted states.
    """

    def __init__(self, devices: int, duration: numpy.typing.NDArray[numpy.int64], start: numpy.typing.NDArray[numpy.int64], target: numpy.typing.NDArray[numpy.int64], transfer: numpy.typing.NDArray[numpy.int64], states: int) -> None: ...

    def search(self, makespan: int, nodes: int, stop: Stop) -> bool | None:
        """
        Return whether there is a schedule of at most `makespan` ticks; None if that is not known after `nodes` nodes. Further calls must not have longer makespans.
        """

    @property
    def visited(self) -> int:
        """Nodes so far."""

    @property
    def begin(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) start of each task, after `search` returned True."""

    @property
    def device(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) its device."""

def dominant_sequence_clusters(problem: Problem, work: numpy.typing.NDArray[numpy.int64], transfer: numpy.typing.NDArray[numpy.int64], blevel: numpy.typing.NDArray[numpy.int64], stop: Stop) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64]]:
    """
    Return the cluster (n,) and the start (n,) of each task by DSC, for work (n,), transfer (e,), and the longest path blevel (n,) from each task.
    """

def linear_clusters(problem: Problem, work: numpy.typing.NDArray[numpy.int64], transfer: numpy.typing.NDArray[numpy.int64], stop: Stop) -> numpy.typing.NDArray[numpy.int64]:
    """
    Return the path (n,) of each task in linear clustering, for work (n,) and transfer (e,); longer paths first.
    """

def greedy_matching(source: numpy.typing.NDArray[numpy.int64], target: numpy.typing.NDArray[numpy.int64], nodes: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    Return the edges of a greedy matching of nodes 0 to nodes - 1: in turn, each edge of which both ends are free.
    """

def map_clusters(timeline: Timeline, members: numpy.typing.NDArray[numpy.int64], start: numpy.typing.NDArray[numpy.int64], cluster: numpy.typing.NDArray[numpy.int64], turn: numpy.typing.NDArray[numpy.int64], work: numpy.typing.NDArray[numpy.int64], wrap: bool, stop: Stop) -> tuple[int, int]:
    """
    Assign a home to every group by clusters: members[start[c]:start[c + 1]] are the groups of cluster c, `cluster` (g,) that of each group, `turn` (c,) the order of mapping and `work` (g, m) the ticks of groups. Return -1 or the group that no device can take, and the number of clusters that no device could take whole.
    """

def keep_parts(timeline: Timeline, sequence: numpy.typing.NDArray[numpy.int64], wanted: numpy.typing.NDArray[numpy.int64], start: numpy.typing.NDArray[numpy.int64], neighbours: numpy.typing.NDArray[numpy.int64], weight: numpy.typing.NDArray[numpy.int64], work: numpy.typing.NDArray[numpy.int64], stop: Stop) -> int:
    """
    Assign each group to the device `wanted` (g,) if that can take it, the others where most weight of their edges to placed groups leads: neighbours[start[k]:start[k + 1]] of group k. Return -1 or the group that no device takes.
    """

class Passes:
    """
    Forward and backward passes over a part of a schedule.

    Each pass places all tasks again, with the schedule of the pass before as its knowledge of what follows. `head` (n, m) are
    the ticks from which a device is free and data from outside is there, `behind` (n, m) those that follow outside. `device`
    and `tail` (n,) are the devices of a schedule of `span` ticks, and the ticks from the start of each task to its end.
    """

    def __init__(self, problem: Problem, groups: object, head: numpy.typing.NDArray[numpy.int64], behind: numpy.typing.NDArray[numpy.int64], device: numpy.typing.NDArray[numpy.int64], tail: numpy.typing.NDArray[numpy.int64], span: int, seed: int) -> None: ...

    def run(self, passes: int, noise: int, aim: int, stop: Stop) -> None:
        """
        Make passes in alternating directions, until stopped.

        With `noise`, random ticks up to this many thousandths of it are added to each duration when devices are compared. With `aim`, devices with which a task keeps a makespan of this many thousandths of the best one count as equal.
        """

    @property
    def span(self) -> int:
        """Makespan of the best schedule."""

    @property
    def device(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """
        (n,) devices of the best arrangement, once one is shorter than the schedule at the start.
        """

    @property
    def start(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) its starts."""

def earliest_starts(problem: Problem, sequence: numpy.typing.NDArray[numpy.int64], device: numpy.typing.NDArray[numpy.int64]) -> numpy.typing.NDArray[numpy.int64]:
    """
    Return the earliest starts (n,) of a topological sequence (n,) of tasks on their devices (n,), without ports.
    """

def tails(problem: Problem, sequence: numpy.typing.NDArray[numpy.int64], device: numpy.typing.NDArray[numpy.int64]) -> numpy.typing.NDArray[numpy.int64]:
    """
    Return the ticks (n,) from the start of each task to the end of the longest path from it, of tasks, transfers and the sequence (n,) of its device (n,).
    """

def latest_starts(problem: Problem, sequence: numpy.typing.NDArray[numpy.int64], device: numpy.typing.NDArray[numpy.int64], deadline: numpy.typing.NDArray[numpy.int64]) -> numpy.typing.NDArray[numpy.int64]:
    """
    Return the latest starts (n,) with which each task and its followers meet their deadlines (n,), 2^63 - 1 for none.
    """

def topological_order(start: numpy.typing.NDArray[numpy.int64], target: numpy.typing.NDArray[numpy.int64]) -> numpy.typing.NDArray[numpy.int64]:
    """
    Return a topological order of the nodes, first in first out, with successors target[start[i]:start[i + 1]]; shorter than the graph if there is a cycle.
    """

def last_ready_first(problem: Problem, preference: numpy.typing.NDArray[numpy.int64]) -> numpy.typing.NDArray[numpy.int64]:
    """
    Return the topological order (n,) in which the task that became ready last comes first; tasks that become ready together come as in `preference` (n,).
    """

def raise_paths(order: numpy.typing.NDArray[numpy.int64], start: numpy.typing.NDArray[numpy.int64], target: numpy.typing.NDArray[numpy.int64], work: numpy.typing.NDArray[numpy.int64], transfer: numpy.typing.NDArray[numpy.int64] | None, before: numpy.typing.NDArray[numpy.int64]) -> numpy.typing.NDArray[numpy.int64]:
    """
    Return the longest path (n,) that ends just before each node, at least `before` (n,), over work (n,) and transfer (e,), None for none; `order` is topological.
    """

def raise_float_paths(order: numpy.typing.NDArray[numpy.int64], start: numpy.typing.NDArray[numpy.int64], target: numpy.typing.NDArray[numpy.int64], work: numpy.typing.NDArray[numpy.float64], transfer: numpy.typing.NDArray[numpy.float64] | None, before: numpy.typing.NDArray[numpy.float64]) -> numpy.typing.NDArray[numpy.float64]:
    """Return the same for floating-point weights."""

def components(left: numpy.typing.NDArray[numpy.int64], right: numpy.typing.NDArray[numpy.int64], nodes: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    Return the smallest member of the component of each node, for edges between left[k] and right[k].
    """

def siblings(start: numpy.typing.NDArray[numpy.int64], target: numpy.typing.NDArray[numpy.int64]) -> numpy.typing.NDArray[numpy.int64]:
    """
    Return labels that two nodes share if and only if they have the same set of predecessors.
    """

def latest_ends(problem: Problem, least: numpy.typing.NDArray[numpy.int64], end: numpy.typing.NDArray[numpy.int64]) -> numpy.typing.NDArray[numpy.int64]:
    """
    Return the latest ends (n,) of tasks of at least `least` (n,) ticks that meet the deadlines `end` (n,).
    """

def not_implied(problem: Problem, level: numpy.typing.NDArray[numpy.int64], required: numpy.typing.NDArray[numpy.int64], covers: numpy.typing.NDArray[numpy.int64], removable: numpy.typing.NDArray[numpy.bool_], triangle: bool, budget: int, stop: Stop) -> numpy.typing.NDArray[numpy.bool_]:
    """
    Return the edges (e,) that remain after those that paths over others imply (placeopt.passes.dominated_edges).
    """

def join_producers(problem: Problem, candidate: numpy.typing.NDArray[numpy.bool_], free: numpy.typing.NDArray[numpy.bool_], least: numpy.typing.NDArray[numpy.int64], release: numpy.typing.NDArray[numpy.int64], deadline: numpy.typing.NDArray[numpy.int64], sharing: numpy.typing.NDArray[numpy.bool_]) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64]]:
    """
    Return the representative, the release time and the deadline (n,) of each task after candidates have joined their producers (placeopt.passes.zero_time); -1 represents a task that is removed.
    """

def join_consumers(problem: Problem, candidate: numpy.typing.NDArray[numpy.bool_], free: numpy.typing.NDArray[numpy.bool_], least: numpy.typing.NDArray[numpy.int64], release: numpy.typing.NDArray[numpy.int64], deadline: numpy.typing.NDArray[numpy.int64]) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64]]:
    """Return the same after candidates have joined their consumers."""

def join_neighbours(problem: Problem, candidate: numpy.typing.NDArray[numpy.bool_], least: numpy.typing.NDArray[numpy.int64], deadline: numpy.typing.NDArray[numpy.int64], allowed: numpy.typing.NDArray[numpy.bool_], moves_free: bool) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64]]:
    """
    Return the group (n,) of each task after single zero-time tasks have moved into a neighbour's group, and when those that moved run (n,): 1 when the last producer ends, 2 when the first consumer starts; 0 for the others.
    """

class Unions:
    """
    Colocation groups in a union-find structure; a union is represented by its smallest group.

    `feasible` (g, m) are the devices of each group, `memory` (g,) and `capacity` (m,) bytes. The groups left[k] and right[k]
    must be apart.
    """

    def __init__(self, feasible: numpy.typing.NDArray[numpy.bool_], memory: numpy.typing.NDArray[numpy.int64], capacity: numpy.typing.NDArray[numpy.int64], left: numpy.typing.NDArray[numpy.int64], right: numpy.typing.NDArray[numpy.int64]) -> None: ...

    @property
    def parent(self) -> numpy.typing.NDArray[numpy.int64]:
        """(g,) the representative of each group's union."""

    @property
    def feasible(self) -> numpy.typing.NDArray[numpy.bool_]:
        """
        (g, m), whether every task of each group's union may run on the device.
        """

    def unite(self, left: numpy.typing.NDArray[numpy.int64], right: numpy.typing.NDArray[numpy.int64]) -> None:
        """
        Unite the groups left[k] and right[k] in turn, where allowed: some device may run both and has the memory, and they need not be apart.
        """

    def join(self, left: int, right: int) -> bool:
        """Unite two groups if that is allowed; return whether they are united."""

    def unite_clusters(self, order: numpy.typing.NDArray[numpy.int64], group: numpy.typing.NDArray[numpy.int64], first: numpy.typing.NDArray[numpy.bool_]) -> numpy.typing.NDArray[numpy.bool_]:
        """
        Unite all groups (n,) that meet between two positions with `first` (n,) of an order (n,); where that is not allowed, the cluster is split. Return `first` with these cuts.
        """

    def unite_meeting(self, capacity: numpy.typing.NDArray[numpy.int64], work: numpy.typing.NDArray[numpy.float64], most: float, growth: float, order: numpy.typing.NDArray[numpy.int64], group: numpy.typing.NDArray[numpy.int64], several: numpy.typing.NDArray[numpy.bool_], first: numpy.typing.NDArray[numpy.bool_]) -> bool:
        """
        Unite the groups that `several` (g,) selects where they meet between two positions with `first` (n,), for devices of `capacity` (m,) bytes. A union has at most `most` of the work (g,), or `growth` times the work of its largest group. Return whether some groups that meet could not be united.
        """

    def first_positions(self, order: numpy.typing.NDArray[numpy.int64], group: numpy.typing.NDArray[numpy.int64], memory: numpy.typing.NDArray[numpy.int64], apart_start: numpy.typing.NDArray[numpy.int64], apart: numpy.typing.NDArray[numpy.int64], longest: int, most: int) -> numpy.typing.NDArray[numpy.int64]:
        """
        Return the first position (n + 1,) from which all tasks before a position of the order (n,) may be one cluster: of at most `longest` tasks and `most` bytes of memory (n,) that one device may run, without groups that must be apart, those of group k at apart[apart_start[k]:apart_start[k + 1]]. A larger task is a cluster by itself.
        """

def least_cuts(start: numpy.typing.NDArray[numpy.int64], source: numpy.typing.NDArray[numpy.int64], weight: numpy.typing.NDArray[numpy.int64], low: numpy.typing.NDArray[numpy.int64], stop: Stop) -> numpy.typing.NDArray[numpy.int64]:
    """
    Return the last cut (n + 1,) before each position such that the edges between clusters weigh least; source[start[j]:start[j + 1]] lead to the node at position j, and `low` (n + 1,) are the first positions of its cluster.
    """

def earliest_heads(edges: tuple[numpy.typing.NDArray[numpy.int64], ...], links: tuple[numpy.typing.NDArray[numpy.generic], ...], tasks: tuple[numpy.typing.NDArray[numpy.generic], ...], most: int, budget: int, release: numpy.typing.NDArray[numpy.int64], stop: Stop) -> numpy.typing.NDArray[numpy.int64]:
    """
    Return the heads (n, k) of placeopt.bounding.quick.paths, from release times (n,), 2^61 where not allowed. `edges` are order (n,), start (n + 1,) and producer (e,); `links` latency, num, den and linked (k, k); `tasks` capacity (k,), duration, busy and allowed (n, k), group (n,), group_memory (g,), payload, together and apart (e,). Once stopped, the heads are weaker.
    """

def best_window(by_tail: numpy.typing.NDArray[numpy.int64], rank: numpy.typing.NDArray[numpy.int64], head: numpy.typing.NDArray[numpy.int64], tail: numpy.typing.NDArray[numpy.int64], weight: numpy.typing.NDArray[numpy.int64], scale: int) -> tuple[int, int]:
    """
    Return the largest scale (R + Q) + weight of {head >= R, tail >= Q} over all heads R and tails Q (n,). `by_tail` is the order of decreasing tails, `rank` the position of each task by increasing heads. The second number is a task whose tail is that Q, -1 without tasks.
    """

def best_spread(order: numpy.typing.NDArray[numpy.int64], near: numpy.typing.NDArray[numpy.int64], duration: numpy.typing.NDArray[numpy.int64], far: numpy.typing.NDArray[numpy.int64], level: int, count: int) -> int:
    """
    Return the largest sum of durations, `count` smallest near ends and `count` smallest far ends (n,) over the tasks with far >= level, in the order of decreasing near: all prefixes with at least `count` tasks; -2^62 without one.
    """

def best_interval(starts: numpy.typing.NDArray[numpy.int64], ends: numpy.typing.NDArray[numpy.int64], head: numpy.typing.NDArray[numpy.int64], duration: numpy.typing.NDArray[numpy.int64], tail: numpy.typing.NDArray[numpy.int64], allowed: numpy.typing.NDArray[numpy.bool_], price: numpy.typing.NDArray[numpy.int64], worth: numpy.typing.NDArray[numpy.int64], scale: int, memory_worth: int, least: int, too_long: int, stop: Stop) -> int:
    """
    Return the largest bound by energetic reasoning (placeopt.bounding.energetic) over the starts and the ascending ends of intervals, beyond a makespan of `least`, or 0; matrices are (n, k).
    """

class LocalSearch:
    """
    An order of the tasks and a device for each group, evaluated incrementally.

    The schedule starts every task, in the order, as soon as its device, its release and its data allow. `instance` are the
    arrays of placeopt_solvers._local_search.instance. Arrays are read-only views.
    """

    def __init__(self, instance: object, seed: int) -> None: ...

    def load(self, order: numpy.typing.NDArray[numpy.int64], home: numpy.typing.NDArray[numpy.int64]) -> None:
        """Continue from a topological order (n,) and the devices (g,) of groups."""

    def return_to_best(self) -> None:
        """Continue from the best state so far, if there is one."""

    def set_penalties(self, late: float, overfull: float) -> None:
        """
        Change the penalties of a tick of lateness and of a byte above the capacity.
        """

    def walk(self, shares: numpy.typing.NDArray[numpy.int64], begin: int, end: int, rounds: int, hot: float, cold: float, enough: float, stop: Stop) -> int:
        """
        Try the moves `begin` to `end` of a walk of `rounds` moves; return how many were evaluated.

        Temperatures fall from `hot` to `cold` along it. A temperature of 0 accepts moves that do not increase the cost; an infinite one accepts every move. `shares` (6,) are the cumulative percentages of the kinds of moves. At a cost of `enough` the walk ends.
        """

    def tabu(self, shares: numpy.typing.NDArray[numpy.int64], begin: int, rounds: int, candidates: int, tenure: int, enough: float, stop: Stop) -> int:
        """
        Run rounds of tabu search, numbered from `begin`; return how many states were evaluated.

        Each makes the best of some candidates, and forbids undoing it for `tenure` to 2 `tenure` rounds.
        """

    def propose(self, kind: int) -> int:
        """
        Change the state by a random move, swap, shift, run, cluster or exchange (0 to 5); return the first position whose times change, n if none.
        """

    def evaluate(self, first: int, limit: float) -> float:
        """Return the cost after a proposal, infinite if it is over the limit."""

    def accept(self, value: float) -> None:
        """Keep the last proposal, whose cost is `value`."""

    def rewind(self, first: int) -> None:
        """
        Restore the times before the last evaluation, if it was within its limit; comes before `undo`.
        """

    def undo(self) -> None:
        """Undo the last proposal."""

    def look_ahead(self) -> numpy.typing.NDArray[numpy.int64]:
        """
        Return the ticks (n,) from each task's end to the end of the last task, a lower bound with ports.
        """

    def find_critical(self) -> numpy.typing.NDArray[numpy.int64]:
        """
        Return the tasks of a critical path, from the last one; none if these are all tasks.
        """

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """
        The position from which what follows is known, the last position of the last proposal, the position at which the last evaluation stopped, and the number of groups that moved.
        """

    @property
    def sums(self) -> numpy.typing.NDArray[numpy.int64]:
        """
        (n + 2 m,) positions of tasks in the order, and the load and the room of devices.
        """

    def time_all(self) -> None:
        """Time all tasks, also where the cost does not depend on times."""

    def take_news(self) -> bool:
        """Return whether a better best state was found since the last call."""

    @property
    def cost(self) -> float:
        """Cost of the state."""

    @property
    def guide(self) -> float:
        """Part of the last evaluation that only guides the search."""

    @property
    def penalty(self) -> float:
        """Part of the last evaluation that penalises violated constraints."""

    @property
    def held(self) -> float:
        """Cost of the best feasible state, infinite without one."""

    @property
    def order(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) the tasks in a topological order."""

    @property
    def home(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(g,) the device of each group."""

    @property
    def best_order(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) the order of the best feasible state."""

    @property
    def best_home(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(g,) its devices."""

    @property
    def device(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) the device of each task."""

    @property
    def ticks(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) ticks of each task on its device."""

    @property
    def end(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) end of each task."""

    @property
    def delay(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(e,) ticks of each in-edge's transfer."""

    @property
    def arrive(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(e,) arrival of each in-edge's data; empty without ports."""

class WindowMoves:
    """
    An order and a placement, and moves in a window of the order that keep the makespan exact.

    `instance` are the arrays of placeopt_solvers._local_search.instance. Arrays are read-only views; ends are valid before the window's
    end, tails from its begin on.
    """

    def __init__(self, instance: object, seed: int) -> None: ...

    def load(self, order: numpy.typing.NDArray[numpy.int64], device: numpy.typing.NDArray[numpy.int64]) -> None:
        """
        Continue from a topological order (n,) and devices (n,); the window is empty and at the begin.
        """

    def reserve(self, first: int, free: numpy.typing.NDArray[numpy.int64]) -> None:
        """
        From position `first` on, devices are not free before the ticks `free` (m,). Counts from the next `load` on.
        """

    def enter(self, low: int, high: int) -> None:
        """
        Move the window to the positions [low, high), where neither is lower than before.
        """

    def walk(self, tuning: tuple[int, ...], begin: int, end: int, rounds: int, hot: float, cold: float, stop: Stop) -> int:
        """
        Try the moves `begin` to `end` of a walk of `rounds` moves in the window; return the number of the next.

        Temperatures fall from `hot` to `cold` ticks along the walk; 0 accepts moves that do not increase the makespan.
        """

    def keep_best(self) -> None:
        """Store the state as the best so far."""

    def settle(self) -> None:
        """
        End the moves in the window: store the state if it is not longer than the best one, and return to that one otherwise.
        """

    def propose(self, tuning: tuple[int, ...], limit: float) -> bool:
        """
        Apply a random move; return False if there is none, or its makespan is certainly above `limit`.
        """

    def evaluate(self, limit: int) -> bool:
        """
        Time a proposal; return whether the makespan is at most `limit`. Then `accept` or `reject` it.
        """

    def accept(self) -> None:
        """Repair the tails after a proposal."""

    def reject(self) -> None:
        """Reverse a proposal and its times."""

    @property
    def marked(self) -> bool:
        """Whether a task is to be timed again."""

    @property
    def low(self) -> int:
        """First position of the window."""

    @property
    def high(self) -> int:
        """Position after the window."""

    @property
    def span(self) -> int:
        """The makespan in ticks."""

    @property
    def held(self) -> int:
        """The makespan of the best state in ticks."""

    @property
    def evaluated(self) -> int:
        """Moves that walks evaluated."""

    @property
    def fresh(self) -> bool:
        """Whether the best state and this one are the same outside the window."""

    @property
    def order(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) the tasks in a topological order."""

    @property
    def position(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) the position of each task in it."""

    @property
    def device(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) the device of each task."""

    @property
    def ticks(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) ticks of each task on its device."""

    @property
    def delay(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(e,) ticks of each in-edge's transfer."""

    @property
    def end(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) end of each task."""

    @property
    def after(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) ticks after each task's end."""

    @property
    def reach(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) longest path that leaves the window at each of its tasks."""

    @property
    def before(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) the task before each on its device, or -1."""

    @property
    def behind(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) the task after each on its device, or -1."""

    @property
    def first(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(m,) the first task of each device, or -1."""

    @property
    def room(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(m,) bytes left on each device."""

    @property
    def best_order(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) the order of the best state."""

    @property
    def best_device(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) its devices."""

class CriticalPaths:
    """
    An order and a placement, and tabu search that moves tasks of a longest path.

    `instance` are the arrays of placeopt_solvers._local_search.instance. Arrays are read-only views.
    """

    def __init__(self, instance: object, seed: int) -> None: ...

    def load(self, order: numpy.typing.NDArray[numpy.int64], device: numpy.typing.NDArray[numpy.int64]) -> None:
        """
        Continue from a topological order (n,) and devices (n,), with an empty tabu list.
        """

    def search(self, rounds: int, most: int, enough: int, stop: Stop) -> int:
        """
        Make moves until `rounds` in a row have not shortened the best state, or its makespan is at most `enough`; return their number.

        The search also ends after about `most` steps of work.
        """

    @property
    def span(self) -> int:
        """The makespan in ticks."""

    @property
    def held(self) -> int:
        """The makespan of the best state since `load`, in ticks."""

    @property
    def work(self) -> int:
        """Elementary steps so far."""

    @property
    def order(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) the tasks in a topological order."""

    @property
    def device(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) the device of each task."""

    @property
    def end(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) end of each task."""

    @property
    def after(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) ticks after each task's end."""

    @property
    def best_order(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) the order of the best state."""

    @property
    def best_device(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) its devices."""

class Simulation:
    """
    Executions of placements of a problem; one at a time.

    Ticks are those of the current placement, until `set_ticks` replaces them; times are those of the last execution. Arrays are
    read-only views.
    """

    def __init__(self, problem: Problem, memory: numpy.typing.NDArray[numpy.int64]) -> None: ...

    def place(self, device: numpy.typing.NDArray[numpy.int64]) -> None:
        """Take a placement (n,) and compute its ticks."""

    def set_ticks(self, task_ticks: numpy.typing.NDArray[numpy.int64], edge_ticks: numpy.typing.NDArray[numpy.int64]) -> None:
        """Replace the ticks of tasks (n,) and of transfers (e,)."""

    def set_rank(self, rank: numpy.typing.NDArray[numpy.int64]) -> None:
        """
        Set the rank (n,) of tasks: by priority, the smallest goes first; by order, the position on the device.
        """

    def run(self, discipline: int, stop: Stop) -> int:
        """
        Execute the placement first in first out (0), by priority (1) or in order (2); return the makespan in ticks.

        In an order with a circular wait, tasks that never start have the start -1.
        """

    def makespan(self, device: numpy.typing.NDArray[numpy.int64], stop: Stop) -> int:
        """
        Return the makespan in ticks of another placement (n,), first in first out.
        """

    def replay(self, nodes: numpy.typing.NDArray[numpy.int64], representative: numpy.typing.NDArray[numpy.int64], stop: Stop) -> int:
        """
        Execute tasks i and transfers n + edge in the order of `nodes`; return the makespan in ticks.

        `representative` (e,) is the edge that stands for each one's transfer, -1 for edges that use no port.
        """

    @property
    def device(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) the placement."""

    @property
    def task_ticks(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) ticks of each task."""

    @property
    def edge_ticks(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(e,) ticks of each edge's transfer, 0 on one device."""

    @property
    def rank(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) rank of each task."""

    @property
    def start(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) start of each task."""

    @property
    def moves(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(e,) with ports: start of each edge's transfer, or -1."""

def raise_keys(problem: Problem, representative: numpy.typing.NDArray[numpy.int64], task_start: numpy.typing.NDArray[numpy.int64], task_end: numpy.typing.NDArray[numpy.int64], move_start: numpy.typing.NDArray[numpy.int64], move_end: numpy.typing.NDArray[numpy.int64]) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64]]:
    """
    Return the keys (start, end) of tasks (n,) and transfers (e,), raised so that none is below a predecessor's.
    """

def critical_path(problem: Problem, start: numpy.typing.NDArray[numpy.int64], end: numpy.typing.NDArray[numpy.int64], edge_ticks: numpy.typing.NDArray[numpy.int64], before: numpy.typing.NDArray[numpy.int64]) -> numpy.typing.NDArray[numpy.int64]:
    """
    Return the critical path, first to last, of an execution; `before` (n,) is the task before each on its device.
    """

def execute_runs(sequence: numpy.typing.NDArray[numpy.int64], lap: numpy.typing.NDArray[numpy.int64], ticks: numpy.typing.NDArray[numpy.int64], device: numpy.typing.NDArray[numpy.int64], tracks: numpy.typing.NDArray[numpy.int64], in_start: numpy.typing.NDArray[numpy.int64], before: numpy.typing.NDArray[numpy.int64], lag: numpy.typing.NDArray[numpy.int64], member_start: numpy.typing.NDArray[numpy.int64], member: numpy.typing.NDArray[numpy.int64], together: bool, runs: int, window: int, stop: Stop) -> numpy.typing.NDArray[numpy.int64]:
    """
    Return the end of each run of a pipeline; arguments as in placeopt.simulation.pipelines.
    """

class Sampler:
    """
    Random placements of groups, and moves of random tasks to where they end first.

    The best placement has the least lateness, then the least makespan, first in first out. Arrays are read-only views.
    """

    def __init__(self, problem: Problem, groups: object, deadline: numpy.typing.NDArray[numpy.int64], memory: numpy.typing.NDArray[numpy.int64], seed: int) -> None: ...

    def draw_home(self, tries: int) -> bool:
        """
        Draw a placement of the groups that keeps memory and separation; return whether one of `tries` does.
        """

    def mix_home(self, changes: int) -> None:
        """
        Change `home` at random; each change keeps all rules and is as likely as its inverse.
        """

    def set_home(self, home: numpy.typing.NDArray[numpy.int64]) -> None:
        """Set a placement (g,) that keeps all rules."""

    def start_from(self, home: numpy.typing.NDArray[numpy.int64], room: numpy.typing.NDArray[numpy.int64], moves: int, stop: Stop) -> None:
        """
        Continue with `moves` moves from a placement (g,) that leaves this room (m,).
        """

    def sample(self, count: int, steps: int, tries: int, stop: Stop) -> int:
        """
        Try placements, each drawn one followed by `steps` moves, and keep the best; return how many were tried.
        """

    def finish(self, task: int, device: int) -> int:
        """
        Return the tick at which a task would end on a device if it started with its last input.
        """

    def relocate(self) -> bool:
        """
        Move a random task, with its group, to the device where it ends first; return whether the device changes.
        """

    @property
    def value(self, /) -> tuple[int, int] | None:
        """The lateness and the makespan of the best placement in ticks."""

    def forget_best(self) -> None:
        """Let the next placement be the best."""

    @property
    def home(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(g,) the device of each group."""

    @property
    def device(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) the current placement."""

    @property
    def best(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) the best placement."""

class ChainDivider:
    """
    Divisions of a chain into stages whose loads are at most a period.

    `chain` is that of placeopt_solvers.pipelines._chains.chain. With `layered`, prices count the devices behind a stage if memory limits
    the runs under way. Loops raise StoppedError.
    """

    def __init__(self, chain: object, layered: bool) -> None: ...

    def begin(self, period: int, price: numpy.typing.NDArray[numpy.int64], stop: Stop) -> bool:
        """
        Start a search for a period with prices (c,) of devices; return whether they allow a division.
        """

    def rooms(self, weight: numpy.typing.NDArray[numpy.int64], stop: Stop) -> numpy.typing.NDArray[numpy.int64]:
        """
        Return the most weight of a stage for each device of each class (c,); `weight` (n + 1,) holds sums over nodes.
        """

    def used(self) -> numpy.typing.NDArray[numpy.int64]:
        """
        Return the devices (c,) that the cheapest stages of the last `begin` use.
        """

    def table(self, stop: Stop) -> tuple[numpy.typing.NDArray[numpy.int64], bool]:
        """
        Search all vectors of used devices; return the begin, the end, the class and the team of each stage (s, 4), the first one first, and whether the search was complete. Without stages, there is no division with the period.
        """

    def beam(self, width: int, stop: Stop) -> tuple[numpy.typing.NDArray[numpy.int64], bool]:
        """
        The same with at most `width` vectors for each number of used devices. It is complete if none was left out.
        """

    def least_load(self, label: int, team: int, runs: int, begin: int, end: int, before: int, after: int) -> int:
        """
        Return the least load of a stage with `runs` runs under way and links `before` and `after` it; 2^62 if none fits.
        """

    @property
    def least_cost(self) -> int:
        """The price of the cheapest stages for all nodes; 2^62 without."""

    @property
    def next(self) -> int:
        """The least load that was above the period; 2^62 without."""

    @property
    def rows(self) -> int:
        """Numbers of devices behind a stage that prices count."""

class GpNet:
    """
    The gpNet of a placement, as in placeopt.learning.graphs.gpnet. Arrays are read-only views.
    """

    def __init__(self, problem: Problem, first: numpy.typing.NDArray[numpy.int64], device: numpy.typing.NDArray[numpy.int64], block: numpy.typing.NDArray[numpy.int64], pivot: numpy.typing.NDArray[numpy.int64]) -> None: ...

    def move(self, tasks: numpy.typing.NDArray[numpy.int64], nodes: numpy.typing.NDArray[numpy.int64]) -> None:
        """Move tasks to other nodes of theirs."""

    def potential(self, start: numpy.typing.NDArray[numpy.int64], end: numpy.typing.NDArray[numpy.int64]) -> numpy.typing.NDArray[numpy.float64]:
        """Return the start-time potential (N,) of nodes in ticks."""

    def insertion(self, potential: numpy.typing.NDArray[numpy.float64], start: numpy.typing.NDArray[numpy.int64], end: numpy.typing.NDArray[numpy.int64], head: numpy.typing.NDArray[numpy.int64], following: numpy.typing.NDArray[numpy.int64], stop: Stop) -> numpy.typing.NDArray[numpy.float64]:
        """
        Return the ticks (N,) by which tasks would end later at each node, in the first sufficient gap of its device.

        `head` (m,) is the first task of each device, `following` (n,) the next one on the same device, -1 for none.
        """

    @property
    def pivot(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) the node of each task."""

    @property
    def source(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(E,) of each edge."""

    @property
    def target(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(E,) of each edge."""

    @property
    def data(self) -> Annotated[NDArray[numpy.float64], dict(writable=False)]:
        """(4, E) bytes, ticks per byte, latency and transfer ticks of each edge."""

def pass_messages(node: numpy.typing.NDArray[numpy.int64], node_bounds: numpy.typing.NDArray[numpy.int64], edge: numpy.typing.NDArray[numpy.int64], edge_bounds: numpy.typing.NDArray[numpy.int64], sender: numpy.typing.NDArray[numpy.int64], receiver: numpy.typing.NDArray[numpy.int64], data: numpy.typing.NDArray[numpy.float64], weights: tuple[numpy.typing.NDArray[numpy.float64], ...], start: numpy.typing.NDArray[numpy.float64]) -> numpy.typing.NDArray[numpy.float64]:
    """
    Return the embeddings (N, o) of GiPH's message passing, from the features `start` (N, o), level by level.

    Levels are `node` (N,) and `edge` (E,) with their bounds; `data` (E, g); `weights` are message (h, o + g), its bias (h,), update (o, h) and its bias (o,).
    """

class PlacementRules:
    """The checked arrays of placeopt.submodular.placement.model.Model."""

    def __init__(self, problem: Problem, model: object) -> None: ...

class Placement:
    """
    A growing placement of tasks, with the benefits of Carbonari et al. 2017.

    `home` (g,) are the devices of groups that are placed already, whose memory is reserved; -1 for the others. Arrays are read-only
    views.
    """

    def __init__(self, rules: PlacementRules, home: numpy.typing.NDArray[numpy.int64]) -> None: ...

    def copy(self) -> Placement:
        """Return an independent copy."""

    def gains(self, elements: numpy.typing.NDArray[numpy.int64]) -> numpy.typing.NDArray[numpy.float64]:
        """
        Return the increase of f by each of the pairs u m + i; minus infinity where not feasible.
        """

    def open(self, elements: numpy.typing.NDArray[numpy.int64]) -> numpy.typing.NDArray[numpy.bool_]:
        """Return whether each of the pairs u m + i can be placed."""

    def place(self, task: int, device: int) -> None:
        """Place a task."""

    def occupy(self, task: int, device: int) -> None:
        """Place a task without computing benefits, as far as `open` requires."""

    def place_all(self, kind: numpy.typing.NDArray[numpy.int64], lazy: bool, stop: Stop) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64], int, bool]:
        """
        Place all tasks by greedy; return the task and the device of each round, f after it, the number of pairs evaluated, and whether it was stopped.

        Of several empty devices of one `kind` (m,), only the first is evaluated.
        """

    @property
    def value(self) -> float:
        """f of the placement."""

    @property
    def device(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) device of each task, -1 if it is not placed."""

    @property
    def home(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(g,) device of each group, -1 without."""

    @property
    def used(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(m,) bytes on each device, those reserved for groups included."""

    @property
    def benefit(self) -> Annotated[NDArray[numpy.float64], dict(writable=False)]:
        """(m,) sum of the benefits on each device."""

    @property
    def fetched(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """
        (m, g) ticks of transfers of the unplaced tasks of each group, for each device.
        """

    @property
    def parallel(self) -> Annotated[NDArray[numpy.int32], dict(writable=False)]:
        """(m, n) number of tasks on each device parallel to each unplaced task."""

    @property
    def compared(self) -> int:
        """Dependents of placed tasks whose lost dependencies were computed."""

class Propagation:
    """
    Start windows and clusters of tasks that follow from a makespan.

    placeopt.bounding.destructive has the rules. There are n tasks, e edges and k classes of devices: `head`, `tail` and
    `duration` (n, k) are ticks, with heads of 2^61 where a task does not run, `move` (e, k, k) the ticks from a device of the
    first class to another device of the second, `capacity` (k,) and `memory` (n,) bytes, and `separation` (p, 2) tasks that do
    not share a device. After `refutes` returned False, the arrays hold for every schedule within the makespan; they are
    read-only views.
    """

    def __init__(self, problem: Problem, head: numpy.typing.NDArray[numpy.int64], tail: numpy.typing.NDArray[numpy.int64], duration: numpy.typing.NDArray[numpy.int64], move: numpy.typing.NDArray[numpy.int64], capacity: numpy.typing.NDArray[numpy.int64], memory: numpy.typing.NDArray[numpy.int64], separation: numpy.typing.NDArray[numpy.int64]) -> None: ...

    def refutes(self, makespan: int, most: int, probe: int, whole: int, changes: int, stop: Stop) -> bool:
        """
        Return whether the rules refute the makespan: alone if `most` is 0, else also by assumptions about single edges, in up to about `most` cases. A probe takes about `probe` steps and makes at most `changes` changes; what follows from a decision takes about `whole` steps.
        """

    @property
    def cases(self) -> int:
        """Number of cases of the last makespan."""

    @property
    def start(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """
        (n, k) earliest start of each task on each class, 2^61 if it does not run there.
        """

    @property
    def latest(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n, k) latest start."""

    @property
    def cut(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(e,) 1 if the ends of the edge run on different devices."""

    @property
    def cluster(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(n,) tasks with the same number run on one device."""

def hold_most(order: numpy.typing.NDArray[numpy.int64], amount: numpy.typing.NDArray[numpy.int64], worth: numpy.typing.NDArray[numpy.int64], excluded: numpy.typing.NDArray[numpy.bool], producer: numpy.typing.NDArray[numpy.int64], start: numpy.typing.NDArray[numpy.int64], consumer: numpy.typing.NDArray[numpy.int64], ticks: numpy.typing.NDArray[numpy.int64], gain: numpy.typing.NDArray[numpy.int64], copies: numpy.typing.NDArray[numpy.int64], limit: int, sets: int, stop: Stop) -> tuple[int, numpy.typing.NDArray[numpy.int64]]:
    """
    Return the most that a set of groups is worth, with what it sends and receives, within a load of `limit`.

    Each item's `producer` (x,) precedes its consumers, those of item j at start[j]:start[j + 1], in `order` (g,). A group has a load `amount` (g,) and a `worth` (g,), and is not in the set if `excluded` (g,). An item takes `ticks` (x,) whenever it is sent, at most `copies` (x,) times, and if it is received; it is worth `gain` (x,) if sent, -gain if received. All loads add up to less than 2^30. The result: the most, and sets of at most `sets` worths (placeopt.bounding.borders.frontier): 1 for each group, and how often each item is sent, -1 if it is received, as (s, g + x).
    """

def grow_trees(start: numpy.typing.NDArray[numpy.int64], neighbour: numpy.typing.NDArray[numpy.int64], pair: numpy.typing.NDArray[numpy.int64], ends: numpy.typing.NDArray[numpy.float64], appeal: numpy.typing.NDArray[numpy.float64], outside: numpy.typing.NDArray[numpy.float64], memory: numpy.typing.NDArray[numpy.int64], limit: int, most: int, stop: Stop) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64]]:
    """
    Return a tree of at most `most` groups from each group that needs more than `limit` bytes of memory (g,), without dispensable leaves.

    The neighbours of group g are at start[g]:start[g + 1]. Trees grow along the pairs with the fewest `ends` (q,), ties by the largest `appeal` (q,), and are abandoned at a value of 2; a leaf costs `outside` (g,). The result: bounds (g + 1,) of trees; their members, the position of the parent of each in its tree or -1, and the pair to it; and the value (g,) of the cover of each tree (placeopt.bounding.relaxation.covers).
    """

def shortest_detours(start: numpy.typing.NDArray[numpy.int64], neighbour: numpy.typing.NDArray[numpy.int64], pair: numpy.typing.NDArray[numpy.int64], low: numpy.typing.NDArray[numpy.int64], high: numpy.typing.NDArray[numpy.int64], moved: numpy.typing.NDArray[numpy.float64], pairs: numpy.typing.NDArray[numpy.int64], limit: numpy.typing.NDArray[numpy.float64], most: int, stop: Stop) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.float64]]:
    """
    Return the shortest path between the groups `low` and `high` (q,) of each pair of `pairs` (p,) that avoids this pair, of lengths `moved` (q,).

    Only if it is shorter than `limit` (p,) and has at most `most` pairs. The result: bounds (p + 1,) of paths, their pairs, and the length (p,) of each.
    """

def edge_paths(source: numpy.typing.NDArray[numpy.int64], target: numpy.typing.NDArray[numpy.int64], ticks: numpy.typing.NDArray[numpy.float64], nodes: int, backwards: bool = False) -> numpy.typing.NDArray[numpy.float64]:
    """
    Return the longest path (nodes,) to each node, or `backwards` from it, over edges (e,) in the order of their sources; nodes are in topological order.
    """

def choose_rivals(start: numpy.typing.NDArray[numpy.int64], edge: numpy.typing.NDArray[numpy.int64], ticks: numpy.typing.NDArray[numpy.int64], delay: numpy.typing.NDArray[numpy.int64]) -> numpy.typing.NDArray[numpy.int64]:
    """
    Return the delay (e,) that the other members of an edge's set of rivals allow, -1 outside of sets. edge[start[i]:start[i + 1]] are the edges of task i, the longest `ticks` (e,) first. Sets of 2, 3, 4, 6, 8, 12, ... edges and of all edges are tried; the one is chosen whose `delay` (e,) one favourite hides least.
    """

def raise_favourites(order: numpy.typing.NDArray[numpy.int64], source: numpy.typing.NDArray[numpy.int64], target: numpy.typing.NDArray[numpy.int64], out_rival: numpy.typing.NDArray[numpy.bool_], in_rival: numpy.typing.NDArray[numpy.bool_], room: numpy.typing.NDArray[numpy.float64], space: numpy.typing.NDArray[numpy.float64], y: numpy.typing.NDArray[numpy.float64]) -> numpy.typing.NDArray[numpy.float64]:
    """
    Return y (e,), raised edge by edge in an order as far as `room` (n,) of the producers and `space` (n,) of the consumers allow.
    """

def play_rounds(board: tuple[numpy.typing.NDArray[numpy.generic], ...], state: tuple[numpy.typing.NDArray[numpy.float64], ...], first: int, last: int, stop: Stop) -> tuple[tuple[numpy.typing.NDArray[numpy.float64], ...], int]:
    """
    Return the state after the rounds `first` to `last`, and how many were played.

    Board and state are those of placeopt.bounding.sct.game. Once stopped, the averages are those of the rounds before.
    """

def split_flow(start: numpy.typing.NDArray[numpy.int64], target: numpy.typing.NDArray[numpy.int64], flow: numpy.typing.NDArray[numpy.float64], whole: int) -> numpy.typing.NDArray[numpy.int64]:
    """
    Return `whole` divided over the lanes in proportion to `flow` (a,), as integers (a,) that are conserved at every task.
    """

def fill_shares(start: numpy.typing.NDArray[numpy.int64], target: numpy.typing.NDArray[numpy.int64], length: numpy.typing.NDArray[numpy.float64], fixed: numpy.typing.NDArray[numpy.float64], hidden: numpy.typing.NDArray[numpy.float64], weight: numpy.typing.NDArray[numpy.float64], rival: numpy.typing.NDArray[numpy.bool_], limit: numpy.typing.NDArray[numpy.float64], stop: Stop) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]:
    """
    Return the y (e,) that the best shares of the producers allow under limits (e,) of the consumers, and the longest path (n,) from each task, its length included.
    """

def divide_sets(sets: object, costs: object, below: int, stop: Stop) -> tuple[int, numpy.typing.NDArray[numpy.int64]] | None:
    """
    Return the least period of stages below a period, and these stages (t, 4), the first one first; None if there are none.

    Each stage has the set of last nodes that it extends, its class, the number of its devices, and whether they compute outputs again. `sets` and `costs` are those of placeopt_solvers.pipelines._shared.ideals. Raises StoppedError.
    """

def divide_order(units: object, line: object, order: object, below: int, stop: Stop) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64]]:
    """
    Return the best stages from each cut of an order on, for each state of the devices: (b, q) the least period, the cut where the first of these stages ends, and its move (team * classes + class) * 2 + whether it computes outputs again.

    Arguments are those of placeopt_solvers.pipelines._search.division. Raises StoppedError.
    """

class StageSearch:
    """
    A placement of the units of a pipeline, evaluated incrementally.

    A place is a stage that may be empty, or a device if stages are not limited. `units` are those of
    placeopt_solvers.pipelines._search.units. Arrays are read-only views.
    """

    def __init__(self, units: object, place: numpy.typing.NDArray[numpy.int64], home: numpy.typing.NDArray[numpy.int64], leader: numpy.typing.NDArray[numpy.int64], again: numpy.typing.NDArray[numpy.int64], seed: int, squares: int, scale: int, stop: Stop) -> None:
        """
        Start from the place (k,) of each unit, the device (l,) of each place, the leader (m,) of each device's team, and 1 for devices (m,) that compute outputs again.

        The cost is the norm with the power 2^squares, of loads divided by `scale` ticks.
        """

    def anneal(self, begin: int, end: int, rounds: int, hot: float, cold: float, stop: Stop) -> None:
        """
        Try the moves `begin` to `end` of a cooling of `rounds` moves, whose temperature falls from `hot` to `cold`.

        Raises StoppedError; then only the best placement remains valid.
        """

    def assess(self) -> float:
        """Return the cost; set `period` and `over`."""

    def propose(self) -> bool:
        """Move random units; return whether the result satisfies all but memory."""

    def undo(self) -> None:
        """Undo the last proposal."""

    def rearrange(self) -> bool:
        """
        Change devices, teams or recomputation at random; return whether anything changed.
        """

    def restore(self) -> None:
        """Undo the last rearrangement."""

    def valid(self, unit: int) -> bool:
        """Return whether a unit may be where it is, memory aside."""

    @property
    def sums(self) -> numpy.typing.NDArray[numpy.int64]:
        """
        All that is kept of teams, items, places and devices, apart from `load`.
        """

    @property
    def load(self) -> numpy.typing.NDArray[numpy.int64]:
        """(m, 3) ticks of each device: computing, sent, received."""

    @property
    def weight(self) -> float:
        """Weight of memory above the capacities. Setting it assesses the state."""

    @weight.setter
    def weight(self, arg: float, /) -> None: ...

    @property
    def period(self) -> int:
        """Period as last assessed."""

    @property
    def over(self) -> int:
        """Bytes above the capacities as last assessed."""

    @property
    def known(self) -> bool:
        """Whether there is a best placement, whose memory suffices."""

    @property
    def best_period(self) -> int:
        """Its period."""

    @property
    def place(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(k,) the place of each unit."""

    @property
    def home(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(l,) the device of each place."""

    @property
    def leader(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(m,) the leader of each device's team."""

    @property
    def again(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(m,) 1 for devices that compute outputs again."""

    @property
    def best_place(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(k,) places of the best placement."""

    @property
    def best_home(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(l,) its devices of places."""

    @property
    def best_leader(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(m,) its leaders."""

    @property
    def best_again(self) -> Annotated[NDArray[numpy.int64], dict(writable=False)]:
        """(m,) its recomputation."""

def first_fit(buffers: object, order: numpy.typing.NDArray[numpy.int64], stop: Stop) -> numpy.typing.NDArray[numpy.int64]:
    """
    Return offsets (n,): each buffer in the order (n,) at the least free offset; those with given offsets come first.
    """

def lower_height(buffers: object, offset: numpy.typing.NDArray[numpy.int64], target: int, seed: int, most: int, stop: Stop) -> numpy.typing.NDArray[numpy.int64]:
    """
    Return the best offsets (n,) of up to `most` moves of buffers, from given ones without overlaps; ends at the target height.
    """

def fit_buffers(buffers: object, order: numpy.typing.NDArray[numpy.int64], capacity: int, most: int, stop: Stop) -> tuple[str, int, numpy.typing.NDArray[numpy.int64]]:
    """
    Search offsets within a capacity; ties end by the order (n,). Return "found", "refuted", or "limit" after `most` nodes or at the stop; the nodes; and offsets (n,), which hold if found.
    """

def arrange_stages(serving: object, site: numpy.typing.NDArray[numpy.int64], begin: numpy.typing.NDArray[numpy.int64], end: numpy.typing.NDArray[numpy.int64], wanted: int, steps: int, seed: int, stop: Stop) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], int]:
    """
    Return the layers (v,) of nodes with the largest flow that a search from stages finds, and this flow.

    `begin` and `end` are (v,) layers of nodes; nodes with common layers hold the same ones. `site` (v,) is the site of each node. The search ends once the flow is `wanted`, after `steps` steps, or if stopped.
    """
