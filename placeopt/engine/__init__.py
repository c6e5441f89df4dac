"""Hot loops in C++ over the arrays of a problem: a timeline, and the algorithms that fill it.

    Problem      the checked arrays of a problem; `placeopt.model.native` keeps one for each
    Timeline     a schedule under construction
    Stop         whether loops must end

The sources are in `native/`, with one algorithm in each file. `_core` is compiled when placeopt is installed. Its
functions check every argument, and raise a UsageError that names the wrong one. They run without Python's lock, and
raise StoppedError within milliseconds once they are to stop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

try:
    from placeopt.engine._core import Problem as Problem
except ImportError as error:
    raise ImportError(f"placeopt's native engine is not compiled ({error}); run `pip install -e .` again") from error

from placeopt.engine._core import ChainDivider as ChainDivider
from placeopt.engine._core import Chronological as Chronological
from placeopt.engine._core import CriticalPaths as CriticalPaths
from placeopt.engine._core import GpNet as GpNet
from placeopt.engine._core import LocalSearch as LocalSearch
from placeopt.engine._core import Passes as Passes
from placeopt.engine._core import Placement as Placement
from placeopt.engine._core import PlacementRules as PlacementRules
from placeopt.engine._core import Propagation as Propagation
from placeopt.engine._core import Sampler as Sampler
from placeopt.engine._core import Simulation as Simulation
from placeopt.engine._core import StageSearch as StageSearch
from placeopt.engine._core import Stop as Stop
from placeopt.engine._core import StoppedError as StoppedError
from placeopt.engine._core import Timeline as Timeline
from placeopt.engine._core import Unions as Unions
from placeopt.engine._core import WindowMoves as WindowMoves
from placeopt.engine._core import adjust_in_order as adjust_in_order
from placeopt.engine._core import append_with_waits as append_with_waits
from placeopt.engine._core import arrange_stages as arrange_stages
from placeopt.engine._core import balance_batches as balance_batches
from placeopt.engine._core import best_interval as best_interval
from placeopt.engine._core import best_spread as best_spread
from placeopt.engine._core import best_window as best_window
from placeopt.engine._core import choose_rivals as choose_rivals
from placeopt.engine._core import components as components
from placeopt.engine._core import critical_path as critical_path
from placeopt.engine._core import divide_order as divide_order
from placeopt.engine._core import divide_sets as divide_sets
from placeopt.engine._core import dominant_sequence_clusters as dominant_sequence_clusters
from placeopt.engine._core import draw_pairs as draw_pairs
from placeopt.engine._core import earliest_heads as earliest_heads
from placeopt.engine._core import earliest_starts as earliest_starts
from placeopt.engine._core import edge_paths as edge_paths
from placeopt.engine._core import execute_runs as execute_runs
from placeopt.engine._core import fill_devices as fill_devices
from placeopt.engine._core import fill_in_order as fill_in_order
from placeopt.engine._core import fill_shares as fill_shares
from placeopt.engine._core import first_fit as first_fit
from placeopt.engine._core import fit_buffers as fit_buffers
from placeopt.engine._core import fixed_levels as fixed_levels
from placeopt.engine._core import greedy_matching as greedy_matching
from placeopt.engine._core import grow_trees as grow_trees
from placeopt.engine._core import highest_first as highest_first
from placeopt.engine._core import hold_most as hold_most
from placeopt.engine._core import imaginary_levels as imaginary_levels
from placeopt.engine._core import insert_tasks as insert_tasks
from placeopt.engine._core import join_consumers as join_consumers
from placeopt.engine._core import join_neighbours as join_neighbours
from placeopt.engine._core import join_producers as join_producers
from placeopt.engine._core import keep_parts as keep_parts
from placeopt.engine._core import last_ready_first as last_ready_first
from placeopt.engine._core import latest_ends as latest_ends
from placeopt.engine._core import latest_starts as latest_starts
from placeopt.engine._core import least_cuts as least_cuts
from placeopt.engine._core import linear_clusters as linear_clusters
from placeopt.engine._core import list_tasks as list_tasks
from placeopt.engine._core import longest_path as longest_path
from placeopt.engine._core import longest_paths as longest_paths
from placeopt.engine._core import look_ahead as look_ahead
from placeopt.engine._core import lower_height as lower_height
from placeopt.engine._core import make_room as make_room
from placeopt.engine._core import map_clusters as map_clusters
from placeopt.engine._core import missing_bytes as missing_bytes
from placeopt.engine._core import not_implied as not_implied
from placeopt.engine._core import optimistic_costs as optimistic_costs
from placeopt.engine._core import pack_groups as pack_groups
from placeopt.engine._core import pass_messages as pass_messages
from placeopt.engine._core import place_by_clock as place_by_clock
from placeopt.engine._core import place_by_imaginary_level as place_by_imaginary_level
from placeopt.engine._core import place_by_level as place_by_level
from placeopt.engine._core import place_by_type as place_by_type
from placeopt.engine._core import place_favourites as place_favourites
from placeopt.engine._core import place_neediest as place_neediest
from placeopt.engine._core import place_on_two as place_on_two
from placeopt.engine._core import place_pairs as place_pairs
from placeopt.engine._core import play_rounds as play_rounds
from placeopt.engine._core import raise_favourites as raise_favourites
from placeopt.engine._core import raise_float_paths as raise_float_paths
from placeopt.engine._core import raise_keys as raise_keys
from placeopt.engine._core import raise_paths as raise_paths
from placeopt.engine._core import shortest_detours as shortest_detours
from placeopt.engine._core import siblings as siblings
from placeopt.engine._core import split_flow as split_flow
from placeopt.engine._core import tails as tails
from placeopt.engine._core import tied_depths as tied_depths
from placeopt.engine._core import topological_order as topological_order

_should_stop: ContextVar[Callable[[], bool] | None] = ContextVar("_should_stop", default=None)


@contextmanager
def stopping(should_stop: Callable[[], bool]) -> Iterator[None]:
    """In the block, loops end once `should_stop` is true; they raise StoppedError if their result is incomplete."""
    token = _should_stop.set(should_stop)
    try:
        yield
    finally:
        _should_stop.reset(token)


def stopped() -> bool:
    """Return whether the enclosing `stopping` says that loops must end."""
    should_stop = _should_stop.get()
    return should_stop is not None and should_stop()


def poll() -> None:
    """Raise StoppedError if the enclosing `stopping` says so: for loops in Python."""
    if stopped():
        raise StoppedError("stopped before the result was complete")


def current_stop() -> Stop:
    """Return when a loop must end: at a signal, or as the enclosing `stopping` states."""
    return Stop(_should_stop.get())
