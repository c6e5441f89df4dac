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
