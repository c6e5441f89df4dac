"""Search in windows: moves in large graphs cost only what they change, and the makespan stays exact.

In a window of consecutive positions of the order, all moves have known surroundings: the ends of the tasks before it,
and the ticks that must follow each task after it. The longest path through the window and the one around it give the
makespan. A move is evaluated as soon as the tasks up to its last position are timed; only if it is accepted, the
changed times are repaired up to the borders of the window. Windows slide over the order, again and again.

    state   order, placement, times, and the buffers of a move
    timing  times before and after each task: computed, and repaired after a change
    moves   which task moves where, and how to undo it
    search  the windows, one after the other

This works without contention, deadlines, live memory and memory tiers; the rest of `_local_search` supports them.
"""
